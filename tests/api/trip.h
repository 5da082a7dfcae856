/*
 * trip.h - for round trips: one arena and buffer per trip, random values with the extremes in them,
 * and comparison that takes NULL for an error, not for an equal.
 */
#ifndef TESTS_API_TRIP_H
#define TESTS_API_TRIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/v1_json.h>

#define ROUNDS 300

struct trip {
	struct skv_arena made; /* memory of the written text */
	struct skv_arena read;
	struct skv_buf text;
	struct skv_v1_in in;
	struct skv_error err;
	struct skv_secret secret;
	uint64_t random;
};

static inline void trip_begin(struct trip *t, uint64_t seed)
{
	memset(t, 0, sizeof *t);
	skv_arena_init(&t->made);
	skv_arena_init(&t->read);
	skv_buf_init(&t->text);
	memset(&t->secret, 7, sizeof t->secret);
	t->in = (struct skv_v1_in){ .arena = &t->read, .secret = &t->secret, .tenant = "default" };
	t->random = seed * 0x9e3779b97f4a7c15u + 1;
}

static inline void trip_end(struct trip *t)
{
	skv_arena_destroy(&t->made);
	skv_arena_destroy(&t->read);
	skv_buf_destroy(&t->text);
}

/* Returns the written text, as the arguments `text, n` of a reader, in memory of exactly that
 * size. */
static inline const char *trip_text(struct trip *t)
{
	assert_false(t->text.failed);
	return (const char *)t->text.data;
}

static inline uint64_t rnd(struct trip *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return t->random * 0x2545f4914f6cdd1du;
}

/* 0..n-1 */
static inline uint32_t below(struct trip *t, uint32_t n) { return (uint32_t)(rnd(t) >> 33) % n; }

/* Any width, and the values at which encoders break. */
static inline uint64_t any64(struct trip *t)
{
	static const uint64_t edges[] = { 0,         1,          UINT32_MAX, 1ull << 53,
					  INT64_MAX, 1ull << 63, UINT64_MAX };

	if (below(t, 2))
		return edges[below(t, sizeof edges / sizeof edges[0])];
	return rnd(t) >> below(t, 64);
}

static inline uint32_t any32(struct trip *t) { return (uint32_t)any64(t); }

static inline void *made(struct trip *t, size_t n, size_t size)
{
	void *p = skv_arena_calloc(&t->made, n, size);

	assert_non_null(p);
	return p;
}

/* A valid name, 1..127 characters. `i` makes it unique. */
static inline const char *any_name(struct trip *t, uint32_t i)
{
	static const char letters[] = "abcXYZ019._-";
	uint32_t n = below(t, 8) ? below(t, 20) : SKV_MAX_NAME - 10;
	char *s = made(t, 1, SKV_MAX_NAME + 1);
	int at = snprintf(s, 11, "n%u", i);

	s[at++] = '_';
	for (uint32_t k = 0; k < n && (uint32_t)at < SKV_MAX_NAME; k++)
		s[at++] = letters[below(t, sizeof letters - 1)];
	return s;
}

static inline const char *const *any_names(struct trip *t, uint32_t n)
{
	const char **v = made(t, n ? n : 1, sizeof *v);

	for (uint32_t i = 0; i < n; i++)
		v[i] = any_name(t, i);
	return v;
}

/* Any UTF-8 text of at most `max` bytes, with all that must be escaped. */
static inline const char *any_text(struct trip *t, uint32_t max)
{
	static const char *const pieces[] = { "a",
					      "\"",
					      "\\",
					      "/",
					      "\n",
					      "\t",
					      "\x01",
					      "\x1f",
					      "\x7f",
					      "é",
					      "漢",
					      "😀",
					      "\xf4\x8f\xbf\xbf",
					      "\xef\xbf\xbf",
					      "{",
					      "}",
					      ",",
					      "\\u0041" };
	uint32_t n = below(t, max + 1);
	char *s = made(t, 1, max + 1);
	uint32_t at = 0;

	while (at < n) {
		const char *piece = pieces[below(t, sizeof pieces / sizeof pieces[0])];

		if (at + strlen(piece) > max)
			break;
		memcpy(s + at, piece, strlen(piece));
		at += (uint32_t)strlen(piece);
	}
	return s;
}

static inline void any_uuid(struct trip *t, char out[37])
{
	uint64_t a = rnd(t), b = rnd(t);

	snprintf(out, 37, "%08x-%04x-%04x-%04x-%012llx", (uint32_t)a, (unsigned)(a >> 32 & 0xffff),
		 (unsigned)(a >> 48), (unsigned)(b >> 48),
		 (unsigned long long)(b & 0xffffffffffffu));
}

static inline void same_names(const char *const *a, uint32_t na, const char *const *b, uint32_t nb)
{
	assert_int_equal(na, nb);
	for (uint32_t i = 0; i < na; i++)
		assert_string_equal(a[i], b[i]);
}

/* cmocka's assert_int_equal compares 64 bits, but says so in hex only; this is for symmetry. */
#define same(a, b) assert_true((uint64_t)(a) == (uint64_t)(b))

/* A read that must succeed; shows the text and the reason if it does not. */
#define read_back(t, reader, out)                                                            \
	do {                                                                                 \
		int status_ = reader(&(t)->in, trip_text(t), (t)->text.len, out, &(t)->err); \
                                                                                             \
		if (status_ != SKV_OK)                                                       \
			fail_msg("%s: %s at '%s'\n%.*s", #reader, (t)->err.message,          \
				 (t)->err.field,                                             \
				 (int)((t)->text.len < 2000 ? (t)->text.len : 2000),         \
				 trip_text(t));                                              \
	} while (0)

#endif
