/*
 * check.h - what must be true: one macro for code that may run inside somebody else's process.
 *
 * SKV_CHECK(expr) is the value of expr; where it is false, skv_check_failed is told first. In the manager and in tests
 * that ends the process, as an assert does. In the client library it takes the handle out of use (docs/decisions/0030),
 * and the caller goes on: so whatever stands behind a check must be safe also where it did not hold, or the check
 * guards it:
 *
 *	if (!SKV_CHECK(i < n))
 *		return SKV_E_INTERNAL;
 *
 * For what the program itself has made, never for input, a peer, a disk or lack of memory.
 */
#ifndef SKV_CHECK_H
#define SKV_CHECK_H

#include <stdbool.h>

#define SKV_CHECK(expr) skv_check(!!(expr), #expr, __FILE__, __LINE__)

/* Ends the process, unless the program has another function of this name, which returns false. Any thread, whatever locks it
 * holds. */
bool skv_check_failed(const char *expr, const char *file, int line);

static inline bool skv_check(bool holds, const char *expr, const char *file, int line)
{
	return __builtin_expect(holds, true) || skv_check_failed(expr, file, line);
}

#endif
