/*
 * compare.c - the codec against the reference, one document at a time. No state but its arenas.
 */
#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct result {
	int status;
	struct skv_error err;
	struct skv_buf out;
};

static void run(const struct message *m, const char *text, size_t n, struct result *r)
{
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena, .secret = &test_secret, .tenant = "default" };

	skv_arena_init(&arena);
	skv_buf_init(&r->out);
	skv_error_clear(&r->err);
	r->status = m->echo(&in, text, n, &r->out, &r->err);
	skv_arena_destroy(&arena);
}

/* Each parser describes bad syntax in its own words, but at the same line and column. */
static size_t compared(const char *message)
{
	static const char start[] = "not JSON at ";
	const char *colon = strchr(message, ':');

	return strncmp(message, start, sizeof start - 1) == 0 && colon ? (size_t)(colon - message) + 1 :
									  strlen(message) + 1;
}

static void differ(const char *what, const struct message *m, const char *text, size_t n,
		   const struct result *a, const struct result *b)
{
	fprintf(stderr, "%s: %s\n%.*s\n", m->name, what, (int)n, text);
	fprintf(stderr, "codec: %d at '%s': %s\n%.*s\n", a->status, a->err.field, a->err.message,
		(int)a->out.len, (const char *)a->out.data);
	fprintf(stderr, "reference: %d at '%s': %s\n%.*s\n", b->status, b->err.field, b->err.message,
		(int)b->out.len, (const char *)b->out.data);
	abort();
}

int compare_codecs(size_t m, const char *text, size_t n)
{
	struct result a, b;
	size_t same;

	run(&messages[m], text, n, &a);
	if (n && memchr(text, 0, n)) { /* see reference.h */
		if (a.status == SKV_OK)
			differ("a raw NUL is taken", &messages[m], text, n, &a, &a);
		skv_buf_destroy(&a.out);
		return a.status;
	}
	run(&reference_messages[m], text, n, &b);
	same = compared(b.err.message);
	if (a.status != b.status)
		differ("status", &messages[m], text, n, &a, &b);
	if (a.status != SKV_OK && strcmp(a.err.field, b.err.field) != 0)
		differ("field", &messages[m], text, n, &a, &b);
	if (a.status != SKV_OK && strncmp(a.err.message, b.err.message, same) != 0)
		differ("message", &messages[m], text, n, &a, &b);
	if (a.out.len != b.out.len || (a.out.len && memcmp(a.out.data, b.out.data, a.out.len) != 0))
		differ("value", &messages[m], text, n, &a, &b);
	skv_buf_destroy(&a.out);
	skv_buf_destroy(&b.out);
	return a.status;
}
