/* identity.c - see identity.h. No state. */
#include "identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pb_messages.h"

static void broken(const char *what, size_t m, const char *text, size_t n, const struct skv_buf *a,
		   const struct skv_buf *b)
{
	fprintf(stderr, "%s: %s\n%.*s\n", messages[m].name, what, (int)n, text);
	fprintf(stderr, "first: %.*s\nthen:  %.*s\n", (int)a->len, (const char *)a->data,
		(int)b->len, (const char *)b->data);
	abort();
}

static bool same(const struct skv_buf *a, const struct skv_buf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

int check_identity(size_t m, const char *text, size_t n)
{
	struct skv_buf first = { 0 }, again = { 0 };
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena, .secret = &test_secret, .tenant = "default" };
	/* the reader of errors returns the error that it read */
	const bool error = strcmp(messages[m].name, "error") == 0;
	struct skv_error err = { 0 };
	int rc, rc_again = SKV_OK;

	if (messages[m].written)
		return SKV_E_UNSUPPORTED;
	skv_arena_init(&arena);
	rc = messages[m].echo(&in, text, n, &first, &err);
	if (rc != SKV_OK && err.status != rc)
		broken("another status than told", m, text, n, &first, &again);
	if (rc != SKV_OK && !error && first.len > 0)
		broken("refused, and written", m, text, n, &first, &again);
	if (error) /* from JSON to JSON */
		rc_again = messages[m].echo(&in, (const char *)first.data, first.len, &again, &err);
	else if (rc == SKV_OK)
		rc_again = pb_message_find(messages[m].name)
				   ->echo(&in, (const char *)first.data, first.len, &again, &err);
	if ((error ? rc_again != rc : rc_again != SKV_OK) || !same(&first, &again))
		broken("read again it is another", m, text, n, &first, &again);
	skv_buf_destroy(&first);
	skv_buf_destroy(&again);
	skv_arena_destroy(&arena);
	return rc;
}
