/*
 * check.h - invariant checks for code that may run inside another program's process.
 *
 * SKV_CHECK(expr) is the value of expr; if it is false, skv_check_failed is called first. In the
 * manager and in tests that ends the process, like an assert. In the client library it disables the
 * handle (docs/decisions/0030), and the caller goes on: code after a check must be safe even if it
 * failed, or be guarded by it:
 *
 *		if (!SKV_CHECK(i < n))
 *			return SKV_E_INTERNAL;
 *
 * For the program's own invariants, never for input, a peer, a disk or lack of memory.
 */
#ifndef SKV_CHECK_H
#define SKV_CHECK_H

#include <stdbool.h>

#define SKV_CHECK(expr) skv_check(!!(expr), #expr, __FILE__, __LINE__)

/* Ends the process, unless the program defines its own function of this name, which returns false.
 * Any thread, whatever locks it holds. */
bool skv_check_failed(const char *expr, const char *file, int line);

static inline bool skv_check(bool holds, const char *expr, const char *file, int line)
{
	return __builtin_expect(holds, true) || skv_check_failed(expr, file, line);
}

#endif
