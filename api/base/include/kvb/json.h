/*
 * json.h - reads any JSON text into an index of its values; the writer is kvb/json_out.h.
 *
 * One pass over the text checks all of it (RFC 8259 grammar, UTF-8, limits, no name twice in an object)
 * and leaves one node of 16 bytes per value and per name, in text order, in the arena. A reader then
 * walks the nodes in whatever order its message wants, without looking at text again:
 *
 *	struct kvb_json_doc doc;
 *	if (kvb_json_parse(&doc, arena, text, n, &(struct kvb_json_limits){ .depth = 16, .values = 4096 }))
 *		v = kvb_json_get(doc.root, "keys", 4);
 *	if (v && v->type == KVB_JSON_ARRAY)
 *		for (i = 0, e = kvb_json_first(v); i < v->n; i++, e = kvb_json_next(e))
 *			...
 *
 * Nodes of strings point into the text, or into the arena where there were escapes: both must
 * live as long as the nodes. Strings have no NUL at their end, and none inside: \u0000 is refused, but with `nul`.
 *
 * What is taken: a document is one object or array with nothing but space round it; no byte order
 * mark, no comments. Integers of -2^63..2^63-1 (with `wide` to 2^64-1) are exact, others are refused, not
 * rounded; -0 is the integer 0. 1.0 and 1e3 are fractions (KVB_JSON_REAL), kept as text; those over the
 * range of double are refused. Escaped surrogates must come in pairs.
 *
 * No state; any thread, one document each.
 */
#ifndef KVB_JSON_H
#define KVB_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <kvb/arena.h>

#define KVB_JSON_MAX_DEPTH 128u /* bound of kvb_json_limits.depth */

enum kvb_json_type {
	KVB_JSON_OBJECT,
	KVB_JSON_ARRAY,
	KVB_JSON_STRING,
	KVB_JSON_INTEGER,  /* .i */
	KVB_JSON_REAL,     /* .s, .n: as it is written */
	KVB_JSON_TRUE,
	KVB_JSON_FALSE,
	KVB_JSON_NULL,
	KVB_JSON_UNSIGNED, /* .u, over 2^63-1; only with `wide` */
};

struct kvb_json_node {
	uint32_t type : 4;
	uint32_t span : 28; /* nodes of the value, its own included */
	uint32_t n;         /* bytes of a string or fraction, elements of an array, fields of an object */
	union {
		const char *s;
		int64_t i;
		uint64_t u;
	};
};

struct kvb_json_limits {
	unsigned depth; /* open brackets, at most KVB_JSON_MAX_DEPTH */
	size_t values;  /* opening brackets and commas together */
	bool wide;
	bool nul;
};

enum kvb_json_fault {
	KVB_JSON_OK,
	KVB_JSON_SYNTAX,
	KVB_JSON_UTF8,   /* not UTF-8 */
	KVB_JSON_NUL,    /* \u0000, without `nul` */
	KVB_JSON_NUMBER, /* too large a number */
	KVB_JSON_TWICE,  /* a name given twice */
	KVB_JSON_LIMIT,  /* one of kvb_json_limits, or 4 GiB of text */
	KVB_JSON_NOMEM,
};

struct kvb_json_doc {
	const struct kvb_json_node *root; /* NULL after a failure */
	enum kvb_json_fault fault;        /* the first in the text */
	size_t at;                        /* byte where it was noticed: mostly the end of the token at fault */
	const char *what;                 /* KVB_JSON_SYNTAX: in words. Static. */
};

/* False after a failure. `text` need not end in a NUL. */
bool kvb_json_parse(struct kvb_json_doc *doc, struct kvb_arena *arena, const char *text, size_t n,
		    const struct kvb_json_limits *limits);
/* Line (from 1) and column (characters before it on the line) of byte `at`. */
void kvb_json_line(const char *text, size_t at, unsigned *line, unsigned *column);

/* First element of an array, name of the first field of an object; only when ->n > 0. */
static inline const struct kvb_json_node *kvb_json_first(const struct kvb_json_node *v)
{
	return v + 1;
}

/* What stands after a value: the next element or field name, as long as there is one. The value of a
 * field comes right after its name, which is itself a string: kvb_json_next(name). */
static inline const struct kvb_json_node *kvb_json_next(const struct kvb_json_node *v)
{
	return v + v->span;
}

static inline bool kvb_json_is(const struct kvb_json_node *v, const char *s, size_t n)
{
	return v->n == n && memcmp(v->s, s, n) == 0;
}

/* Value of a field; NULL if there is none, or if `object` is none (or NULL). */
const struct kvb_json_node *kvb_json_get(const struct kvb_json_node *object, const char *name, size_t n);

#endif
