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

static const struct pb_message *in_protobuf(size_t m)
{
	for (size_t i = 0; i < n_pb_messages; i++)
		if (strcmp(pb_messages[i].name, messages[m].name) == 0)
			return &pb_messages[i];
	abort();
}

/* Answers that contradict themselves, which no server sends: JSON lets a match name an instance
 * twice, and a pin may miss keys of which all are pinned, which protobuf does not write. */
static bool contradicts_itself(size_t m, const struct skv_buf *first, const struct skv_error *err)
{
	unsigned n_keys, pinned;
	char head[64];

	if (strcmp(messages[m].name, "match_res") == 0)
		return strstr(err->message, "is named twice");
	snprintf(head, sizeof head, "%.*s", (int)first->len, (const char *)first->data);
	return strcmp(messages[m].name, "pin_res") == 0 &&
	       sscanf(head, "{\"n_keys\":%u,\"pinned\":%u,", &n_keys, &pinned) == 2 &&
	       n_keys == pinned;
}

int check_identity(size_t m, const char *text, size_t n)
{
	struct skv_buf first = { 0 }, again = { 0 }, pb = { 0 }, json = { 0 };
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena, .secret = &test_secret, .tenant = "default" };
	/* its reader returns what it read */
	const bool error = strcmp(messages[m].name, "error") == 0;
	struct skv_error err = { 0 };
	int rc, rc_pb;

	skv_arena_init(&arena);
	rc = messages[m].echo(&in, text, n, &first, &err);
	if (rc != SKV_OK && err.status != rc)
		broken("another status than told", m, text, n, &first, &again);
	if (rc != SKV_OK && !error && first.len > 0)
		broken("refused, and written", m, text, n, &first, &again);
	if (rc == SKV_OK || error) {
		if (messages[m].echo(&in, (const char *)first.data, first.len, &again, &err) !=
			    rc ||
		    !same(&first, &again))
			broken("read again it is another", m, text, n, &first, &again);
		rc_pb = in_protobuf(m)->convert(&in, (const char *)first.data, first.len, &pb,
						&json, &err);
		if ((rc_pb != SKV_OK || !same(&first, &json)) &&
		    !contradicts_itself(m, &first, &err))
			broken("through protobuf it is another", m, text, n, &first, &json);
	}
	skv_buf_destroy(&first);
	skv_buf_destroy(&again);
	skv_buf_destroy(&pb);
	skv_buf_destroy(&json);
	skv_arena_destroy(&arena);
	return rc;
}
