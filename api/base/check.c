/* check.c - what a failed check does in a program of ours: it tells where and ends the process. No state; any thread. */
#include <skv/check.h>

#include <stdio.h>
#include <stdlib.h>

__attribute__((weak)) bool skv_check_failed(const char *expr, const char *file, int line)
{
	fprintf(stderr, "%s:%d: this is not true: %s\n", file, line, expr);
	abort();
}
