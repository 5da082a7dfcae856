/*
 * marks.c - which of two marks of a registry is the older one.
 *
 * A mark is "NUMBER NONCE". Each write raises the number; a registry that lost a write may get one
 * with the same number later, by who does not know, never with the same nonce. Stateless.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static uint64_t number(const char *mark) { return strtoull(mark, NULL, 10); }

bool skv_mark_older(const char *a, const char *b)
{
	return strcmp(a, b) != 0 && number(a) <= number(b);
}
