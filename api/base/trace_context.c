/*
 * trace_context.c - W3C trace context: the header traceparent. No state; any thread.
 */
#include <skv/trace_context.h>

#include <string.h>

/* Lower-case hex digits in s[0..n), not all of them 0 if `some`. */
static bool is_hex(const char *s, size_t n, bool some)
{
	bool any = !some;

	for (size_t i = 0; i < n; i++) {
		if (!strchr("0123456789abcdef", s[i]) || !s[i])
			return false;
		any |= s[i] != '0';
	}
	return any;
}

bool skv_trace_take(const char *s, size_t n, char out[SKV_TRACE_SIZE])
{
	const bool ok = s && n >= SKV_TRACE_SIZE - 1 && is_hex(s, 2, false) && s[2] == '-' &&
			is_hex(s + 3, 32, true) && s[35] == '-' && is_hex(s + 36, 16, true) &&
			s[52] == '-' && is_hex(s + 53, 2, false) && strncmp(s, "ff", 2) != 0;
	/* a later version may have more behind it; of version 00 it is an error */
	const bool ends = ok && (n == SKV_TRACE_SIZE - 1 ||
				 (s[SKV_TRACE_SIZE - 1] == '-' && strncmp(s, "00", 2) != 0));

	if (!ends) {
		out[0] = '\0';
		return false;
	}
	memcpy(out, s, SKV_TRACE_SIZE - 1);
	memcpy(out, "00", 2);
	out[SKV_TRACE_SIZE - 1] = '\0';
	return true;
}

unsigned skv_trace_fields(const char *trace, struct skv_trace_ids *ids,
			  struct skv_log_field out[SKV_TRACE_FIELDS])
{
	if (!*trace)
		return 0;
	memcpy(ids->trace, trace + 3, 32);
	ids->trace[32] = '\0';
	memcpy(ids->span, trace + 36, 16);
	ids->span[16] = '\0';
	out[0] = (struct skv_log_field)SKV_TEXT("trace_id", ids->trace);
	out[1] = (struct skv_log_field)SKV_TEXT("span_id", ids->span);
	return SKV_TRACE_FIELDS;
}
