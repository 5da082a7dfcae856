/*
 * json_text.h - strings and numbers inside JSON text, without allocation. Private to api/base.
 *
 * Each function starts after the first byte of what it reads, stays before `end`, and leaves in
 * `at` where it stopped; after a fault, where the fault was noticed. Stateless; any thread.
 */
#ifndef SKV_JSON_TEXT_H
#define SKV_JSON_TEXT_H

#include <skv/json.h>

struct skv_json_at {
	const char *p;
	const char *end;
	enum skv_json_fault fault;
	const char *what;
};

/* Stops at p with a fault; always false. If the byte at p does not start a UTF-8 character, that
 * fault takes precedence: the reader that looked at it met it first. */
bool skv_json_stop(struct skv_json_at *a, const char *p, enum skv_json_fault fault,
		   const char *what);

/* From after the opening quote to after the closing one. */
bool skv_json_skip_string(struct skv_json_at *a, bool *escaped);
/* Unescapes the text s,n of a skipped string to `out`, which has room for n bytes. Returns the
 * length, or SIZE_MAX for a lone surrogate. */
size_t skv_json_unescape(const char *s, size_t n, char *out, bool *nul);
/* A number from its first byte: INTEGER, REAL or (with `wide`) UNSIGNED; only n,
 * type and the value are set. */
bool skv_json_number(struct skv_json_at *a, bool wide, struct skv_json_node *out);

#endif
