/*
 * head.c - values of gRPC's own header fields: grpc-timeout.
 *
 * No state; any thread.
 */
#include "internal.h"

#include <assert.h>
#include <string.h>

bool skv_grpc_timeout(const char *s, size_t n, uint64_t *ms)
{
	uint64_t v = 0;

	if (n < 2 || n > 9)
		return false;
	for (size_t i = 0; i + 1 < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	assert(v <= 99999999); /* so nothing below overflows */
	switch (s[n - 1]) {
	case 'H':
		v *= 3600 * 1000;
		break;
	case 'M':
		v *= 60 * 1000;
		break;
	case 'S':
		v *= 1000;
		break;
	case 'm':
		break;
	case 'u':
		v = (v + 999) / 1000;
		break;
	case 'n':
		v = (v + 999999) / 1000000;
		break;
	default:
		return false;
	}
	*ms = v;
	return true;
}
