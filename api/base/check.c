/* check.c - default handler of failed checks: logs the place and ends the process. Stateless; any
 * thread. */
#include <skv/check.h>

#include <stdio.h>
#include <stdlib.h>

__attribute__((weak)) bool skv_check_failed(const char *expr, const char *file, int line)
{
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expr);
	abort();
}
