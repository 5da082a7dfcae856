/*
 * json_text.h - strings and numbers inside JSON text, without memory. Private to api/base.
 *
 * Each function starts behind the first byte of what it reads, stays before `end`, and leaves in `at`
 * where it stopped: after a fault, where the fault was noticed. No state; any thread.
 */
#ifndef KVB_JSON_TEXT_H
#define KVB_JSON_TEXT_H

#include <kvb/json.h>

struct kvb_json_at {
	const char *p;
	const char *end;
	enum kvb_json_fault fault;
	const char *what;
};

/* Stops at p with a fault; always false. A byte at p that begins no UTF-8 character is the worse fault:
 * whoever looked at it (a number or word ends only there) has met that one first. */
bool kvb_json_stop(struct kvb_json_at *a, const char *p, enum kvb_json_fault fault, const char *what);

/* From behind the opening quote to behind the closing one. */
bool kvb_json_skip_string(struct kvb_json_at *a, bool *escaped);
/* Writes what the text s,n of a skipped string means to `out`, which has room for n bytes. Returns the
 * length, or SIZE_MAX when a surrogate is alone. */
size_t kvb_json_unescape(const char *s, size_t n, char *out, bool *nul);
/* A number from its first byte: INTEGER, REAL or (with `wide`) UNSIGNED; only n, type and the value are set. */
bool kvb_json_number(struct kvb_json_at *a, bool wide, struct kvb_json_node *out);

#endif
