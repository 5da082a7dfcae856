/*
 * pb_pin.c - the list of pins in protobuf, both directions: columns.
 *
 * No state; any thread.
 */
#include "pb.h"

#include <skv/check.h>

enum { PINS_KEYS = 1, PINS_KINDS = 2, PINS_TTLS = 3, PINS_NEXT = 4 };

static void put_keys(struct skv_buf *out, const struct skv_key *key, uint32_t n)
{
	const struct skv_key_input keys = { .form = SKV_KEYS_HEX, .n = n, .keys = key };

	skv_pb_put_keys(out, &keys); /* field 1, as in requests */
}

void skv_pb_write_pins_res(struct skv_buf *out, const struct skv_pins_res *r)
{
	size_t begin;

	if (r->n) {
		put_keys(out, r->key, r->n);
		begin = skv_pb_put_begin(out, PINS_KINDS, r->n);
		for (uint32_t i = 0; i < r->n; i++) {
			SKV_CHECK(r->kind[i] == SKV_PIN_SOFT || r->kind[i] == SKV_PIN_HARD);
			skv_put_varint(out, r->kind[i]);
		}
		skv_pb_put_end(out, begin);
		begin = skv_pb_put_begin(out, PINS_TTLS, 10 * (size_t)r->n);
		for (uint32_t i = 0; i < r->n; i++)
			skv_put_varint(out, r->ttl_ms[i]);
		skv_pb_put_end(out, begin);
	}
	skv_pb_put_uint(out, PINS_NEXT, r->next);
}

static void take_pins(struct skv_pbdoc *d, struct skv_pins_res *a, const uint8_t *raw,
		      const uint64_t *kinds, const uint64_t *ttls)
{
	a->key = skv_pb_alloc(d, a->n + 1, sizeof *a->key);
	a->kind = skv_pb_alloc(d, a->n + 1, sizeof *a->kind);
	a->ttl_ms = skv_pb_alloc(d, a->n + 1, sizeof *a->ttl_ms);
	for (uint32_t i = 0; skv_pb_ok(d) && i < a->n; i++) {
		if (kinds[i] != SKV_PIN_SOFT && kinds[i] != SKV_PIN_HARD)
			skv_pb_fail(d, "kinds", i, SKV_E_INVALID, "must be 1 or 2");
		if (ttls[i] > SKV_MAX_PIN_MS)
			skv_pb_fail(d, "ttl_ms", i, SKV_E_INVALID, "must be at most %llu",
				    SKV_MAX_PIN_MS);
		a->key[i] = skv_pb_load_key(raw + 16 * i);
		a->kind[i] = (uint8_t)kinds[i];
		a->ttl_ms[i] = ttls[i];
	}
}

int skv_pb_read_pins_res(const struct skv_v1_in *in, const char *text, size_t n,
			 struct skv_pins_res *out, struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd message = skv_rd_make(text, n), r = message;
	struct skv_pins_res a = { 0 };
	size_t n_kinds = 0, n_ttls = 0, n_raw = 0;
	const uint8_t *raw = NULL;
	struct pb_field f;

	while (skv_pb_next(&d, &r, &f)) {
		if (f.number == PINS_KEYS && skv_pb_wire(&d, &f, "keys_raw", PB_BYTES)) {
			raw = f.p;
			n_raw = f.n;
		} else if (f.number == PINS_KINDS) {
			n_kinds += skv_pb_numbers(&d, &f, "kinds", PB_VARINT);
		} else if (f.number == PINS_TTLS) {
			n_ttls += skv_pb_numbers(&d, &f, "ttl_ms", PB_VARINT);
		} else if (f.number == PINS_NEXT) {
			a.next = skv_pb_u64(&d, &f, "next", UINT64_MAX);
		}
	}
	if (skv_pb_ok(&d) && n_raw % 16)
		skv_pb_fail(&d, "keys_raw", PB_NO_INDEX, SKV_E_INVALID,
			    "must be 16 bytes for each key");
	skv_pb_count(&d, "keys_raw", n_raw / 16, 0, SKV_MAX_KEYS);
	a.n = (uint32_t)(n_raw / 16);
	skv_pb_count(&d, "kinds", n_kinds, a.n, a.n);
	skv_pb_count(&d, "ttl_ms", n_ttls, a.n, a.n);
	if (skv_pb_ok(&d))
		take_pins(&d, &a, raw,
			  skv_pb_all_numbers(&d, message, PINS_KINDS, "kinds", PB_VARINT, n_kinds),
			  skv_pb_all_numbers(&d, message, PINS_TTLS, "ttl_ms", PB_VARINT, n_ttls));
	if (skv_pb_ok(&d))
		*out = a;
	return d.status;
}
