/*
 * test_v1_golden.c - requests in JSON that the codec once took or refused, and answers that it once
 * wrote, as a codec on jansson did, byte for byte.
 *
 * A line of golden/v1_json.tsv is a message's name, a document, a status, the field at fault, what
 * is told of it, and what is written of what was read, with tabs between them; "\n", "\t", "\\" and
 * "\xNN" stand for what they say. Of a request JSON is read and protobuf written, of an answer the
 * other way round. Of syntax errors only the line and column count. The file was
 * made of 4,000,000 random documents: the shortest for each kind of error and of result. It does
 * not change, but for messages that get new fields: then lines are added.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"

#define LINE_MAX_BYTES 65536
enum { NAME, TEXT, STATUS, FIELD, MESSAGE, WRITTEN, COLUMNS };

/* In place; returns the length. */
static size_t unescape(char *s)
{
	char *to = s;

	for (const char *p = s; *p; p++) {
		unsigned byte;

		if (*p != '\\') {
			*to++ = *p;
		} else if (*++p == 'x') {
			assert_int_equal(sscanf(p, "x%2x", &byte), 1);
			*to++ = (char)byte;
			p += 2;
		} else {
			*to++ = *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
		}
	}
	*to = '\0';
	return (size_t)(to - s);
}

static void check_line(char *line, unsigned number)
{
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena, .secret = &test_secret, .tenant = "default" };
	struct skv_buf out = { 0 };
	struct skv_error err = { 0 };
	char *column[COLUMNS], *exact;
	size_t n = 0, message_n, written_n;
	int rc;

	while (n < COLUMNS && (column[n] = strsep(&line, "\t")))
		n++;
	assert_int_equal(n, COLUMNS);
	n = unescape(column[TEXT]);
	unescape(column[FIELD]);
	message_n = unescape(column[MESSAGE]);
	written_n = unescape(column[WRITTEN]);
	exact = malloc(n ? n : 1); /* the exact size, so that a read past the end is detected */
	assert_non_null(exact);
	memcpy(exact, column[TEXT], n);
	skv_arena_init(&arena);
	rc = message_find(column[NAME])->echo(&in, exact, n, &out, &err);
	if (strcmp(rc == SKV_OK ? "ok" : skv_status_name(rc), column[STATUS]) != 0 ||
	    strcmp(err.field, column[FIELD]) != 0 ||
	    strncmp(err.message, column[MESSAGE], message_n) != 0)
		fail_msg("line %u: %s at '%s': %s", number,
			 rc == SKV_OK ? "ok" : skv_status_name(rc), err.field, err.message);
	if (strncmp(column[MESSAGE], "not JSON at ", 12) != 0 && strlen(err.message) != message_n)
		fail_msg("line %u: told more: %s", number, err.message);
	if (out.len != written_n ||
	    (written_n && memcmp(out.data, column[WRITTEN], written_n) != 0))
		fail_msg("line %u: written: %.*s", number, (int)out.len, (const char *)out.data);
	skv_buf_destroy(&out);
	skv_arena_destroy(&arena);
	free(exact);
}

static void test_golden(void **state)
{
	static char line[LINE_MAX_BYTES];
	unsigned lines = 0;
	FILE *f = fopen(GOLDEN, "r");

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		assert_non_null(strchr(line, '\n'));
		*strchr(line, '\n') = '\0';
		check_line(line, ++lines);
	}
	assert_int_equal(ferror(f), 0);
	fclose(f);
	assert_true(lines > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_golden) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
