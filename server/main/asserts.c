/*
 * asserts.c - writes a line in the log's format when an assert fails, before the process ends.
 *
 * Takes the place of the C library's own function, and of the function that failed checks call
 * (skv/check.h). Any thread, whatever locks it holds. No state.
 */
#include "main.h"

#include <stdlib.h>
#include <string.h>

#include <skv/check.h>
#include <skv/log.h>

/* Visible: shared libraries' asserts come here, too. */
void __assert_fail(const char *expr, const char *file, unsigned line, const char *function)
	__attribute__((noreturn, visibility("default")));

void __assert_fail(const char *expr, const char *file, unsigned line, const char *function)
{
	char text[1024];

	snprintf(text, sizeof text, "%s:%u: %s: Assertion `%s' failed.", file, line, function,
		 expr);
	skv_sink_say("slabkvd", text);
	abort();
}

bool skv_check_failed(const char *expr, const char *file, int line)
{
	__assert_fail(expr, file, (unsigned)line, "");
}
