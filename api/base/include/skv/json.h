/*
 * json.h - parses any JSON text into an index of its values; the writer is skv/json_out.h.
 *
 * One pass over the text checks all of it (RFC 8259 grammar, UTF-8, limits, no duplicate name in an
 * object) and leaves one node of 16 bytes per value and per name, in text order, in the arena. A
 * reader then walks the nodes in any order, without looking at the text again:
 *
 *		struct skv_json_limits limits = { .depth = 16, .values = 4096 };
 *		struct skv_json_doc doc;
 *		if (skv_json_parse(&doc, arena, text, n, &limits))
 *			v = skv_json_get(doc.root, "keys", 4);
 *		if (v && v->type == SKV_JSON_ARRAY)
 *			for (i = 0, e = skv_json_first(v); i < v->n; i++, e = skv_json_next(e))
 *				...
 *
 * Nodes of strings point into the text, or into the arena if they had escapes: both must live as
 * long as the nodes. Strings have no NUL at their end, and none inside: \u0000 is refused, unless
 * `nul`.
 *
 * Accepted: one object or array, with nothing but white space around it; no byte order mark, no
 * comments. Integers of -2^63..2^63-1 (with `wide` to 2^64-1) are exact, others are refused, not
 * rounded; -0 is the integer 0. 1.0 and 1e3 are fractions (SKV_JSON_REAL), kept as text; those
 * beyond the range of double are refused. Escaped surrogates must come in pairs.
 *
 * Stateless; any thread, one document each.
 */
#ifndef SKV_JSON_H
#define SKV_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <skv/arena.h>

#define SKV_JSON_MAX_DEPTH 128u /* bound of skv_json_limits.depth */

enum skv_json_type {
	SKV_JSON_OBJECT,
	SKV_JSON_ARRAY,
	SKV_JSON_STRING,
	SKV_JSON_INTEGER,  /* .i */
	SKV_JSON_REAL,     /* .s, .n: as it is written */
	SKV_JSON_TRUE,
	SKV_JSON_FALSE,
	SKV_JSON_NULL,
	SKV_JSON_UNSIGNED, /* .u, over 2^63-1; only with `wide` */
};

struct skv_json_node {
	uint32_t type : 4;
	uint32_t span : 28; /* nodes of the value, itself included */
	uint32_t n; /* bytes of a string or fraction, elements of an array, fields of an object */
	union {
		const char *s;
		int64_t i;
		uint64_t u;
	};
};

struct skv_json_limits {
	unsigned depth; /* open brackets, at most SKV_JSON_MAX_DEPTH */
	size_t values;  /* opening brackets and commas together */
	bool wide;
	bool nul;
};

enum skv_json_fault {
	SKV_JSON_OK,
	SKV_JSON_SYNTAX,
	SKV_JSON_UTF8,   /* not UTF-8 */
	SKV_JSON_NUL,    /* \u0000, without `nul` */
	SKV_JSON_NUMBER, /* too large a number */
	SKV_JSON_TWICE,  /* a duplicate name */
	SKV_JSON_LIMIT,  /* a limit of skv_json_limits, or 4 GiB of text, is exceeded */
	SKV_JSON_NOMEM,
};

struct skv_json_doc {
	const struct skv_json_node *root; /* NULL after a failure */
	enum skv_json_fault fault;        /* the first one in the text */
	size_t at; /* byte where it was noticed: usually the end of the offending token */
	const char *what;                 /* SKV_JSON_SYNTAX: in words. Static. */
};

/* Returns false after a failure. `text` need not end in a NUL. */
bool skv_json_parse(struct skv_json_doc *doc, struct skv_arena *arena, const char *text, size_t n,
		    const struct skv_json_limits *limits);
/* Line (from 1) and column (characters before it on the line) of byte `at`. */
void skv_json_line(const char *text, size_t at, unsigned *line, unsigned *column);

/* First element of an array, name of the first field of an object; only when ->n > 0. */
static inline const struct skv_json_node *skv_json_first(const struct skv_json_node *v)
{
	return v + 1;
}

/* The next element or field name after a value, if there is one. A field's value follows its name,
 * which is itself a string: skv_json_next(name). */
static inline const struct skv_json_node *skv_json_next(const struct skv_json_node *v)
{
	return v + v->span;
}

static inline bool skv_json_is(const struct skv_json_node *v, const char *s, size_t n)
{
	return v->n == n && memcmp(v->s, s, n) == 0;
}

/* Value of a field; NULL if there is none, or if `object` is not an object (or NULL). */
const struct skv_json_node *skv_json_get(const struct skv_json_node *object, const char *name,
					 size_t n);

#endif
