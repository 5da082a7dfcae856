/*
 * json_text.h - strings and numbers inside JSON text, without memory. Private to api/base.
 *
 * Each function starts behind the first byte of what it reads, stays before `end`, and leaves in `at`
 * where it stopped: after a fault, where the fault was noticed. No state; any thread.
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

/* Stops at p with a fault; always false. A byte at p that begins no UTF-8 character is the worse fault:
 * whoever looked at it (a number or word ends only there) has met that one first. */
bool skv_json_stop(struct skv_json_at *a, const char *p, enum skv_json_fault fault, const char *what);

/* From behind the opening quote to behind the closing one. */
bool skv_json_skip_string(struct skv_json_at *a, bool *escaped);
/* Writes what the text s,n of a skipped string means to `out`, which has room for n bytes. Returns the
 * length, or SIZE_MAX when a surrogate is alone. */
size_t skv_json_unescape(const char *s, size_t n, char *out, bool *nul);
/* A number from its first byte: INTEGER, REAL or (with `wide`) UNSIGNED; only n, type and the value are set. */
bool skv_json_number(struct skv_json_at *a, bool wide, struct skv_json_node *out);

#endif
