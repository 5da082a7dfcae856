/*
 * pb_pin.c - pin, unpin, the list of pins and that of keys in protobuf: requests and answers, both directions.
 *
 * No state; any thread.
 */
#include "pb.h"

#include <skv/check.h>

enum { PIN_SOFT = 4, PIN_TTL = 5 };
enum { PINNED_N_KEYS = 1, PINNED_PINNED = 2, PINNED_MISSING = 3 };
enum { UNPIN_ALL = 4 };
enum { KEYS_KEYS = 1, KEYS_NEXT = 2 };
enum { PINS_KEYS = 1, PINS_KINDS = 2, PINS_TTLS = 3, PINS_NEXT = 4 };

/* ---- pin ---------------------------------------------------------------------------------------- */

int skv_pb_read_pin_req(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pin_req *out,
			struct skv_error *err)
{
	struct skv_pin_req q = { .tenant = in->tenant, .kind = SKV_PIN_HARD };
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd message = skv_rd_make(text, n), r = message;
	struct skv_pbkeys keys = { 0 };
	struct pb_field f;

	while (skv_pb_next(&d, &r, &f)) {
		if (f.number == PIN_SOFT)
			q.kind = skv_pb_u32(&d, &f, "kind", 1) ? SKV_PIN_SOFT : SKV_PIN_HARD;
		else if (f.number == PIN_TTL)
			q.ttl_ms = skv_pb_u64(&d, &f, "ttl_ms", SKV_MAX_PIN_MS);
		else
			skv_pb_keys_field(&d, &keys, &f);
	}
	q.keys = skv_pb_keys(&d, &keys, message, &q.n_keys);
	if (skv_pb_ok(&d))
		*out = q;
	return d.status;
}

void skv_pb_write_pin_req(struct skv_buf *out, const struct skv_pin_req *req, const struct skv_key_input *keys)
{
	skv_pb_put_keys(out, keys);
	skv_pb_put_uint(out, PIN_SOFT, req->kind == SKV_PIN_SOFT);
	skv_pb_put_uint(out, PIN_TTL, req->ttl_ms);
}

void skv_pb_write_pin_res(struct skv_buf *out, const struct skv_pin_res *r)
{
	size_t begin;

	skv_pb_put_uint(out, PINNED_N_KEYS, r->n_keys);
	skv_pb_put_uint(out, PINNED_PINNED, r->pinned);
	if (r->pinned == r->n_keys)
		return;
	begin = skv_pb_put_begin(out, PINNED_MISSING, 3 * (size_t)r->n_keys);
	for (uint32_t i = 0; i < r->n_keys; i++)
		if (r->missing[i])
			skv_put_varint(out, i);
	skv_pb_put_end(out, begin);
}

int skv_pb_read_pin_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pin_res *out,
			struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd message = skv_rd_make(text, n), r = message;
	struct skv_pin_res a = { 0 };
	size_t count = 0;
	uint64_t *missing;
	struct pb_field f;

	while (skv_pb_next(&d, &r, &f)) {
		if (f.number == PINNED_N_KEYS)
			a.n_keys = skv_pb_u32(&d, &f, "n_keys", SKV_MAX_KEYS);
		else if (f.number == PINNED_PINNED)
			a.pinned = skv_pb_u32(&d, &f, "pinned", SKV_MAX_KEYS);
		else if (f.number == PINNED_MISSING)
			count += skv_pb_numbers(&d, &f, "missing", PB_VARINT);
	}
	skv_pb_count(&d, "missing", count, 0, a.n_keys);
	missing = skv_pb_all_numbers(&d, message, PINNED_MISSING, "missing", PB_VARINT, count);
	a.missing = skv_pb_alloc(&d, a.n_keys + 1, sizeof *a.missing);
	for (uint32_t i = 0; skv_pb_ok(&d) && i < count; i++) {
		if (missing[i] >= a.n_keys)
			skv_pb_fail(&d, "missing", i, SKV_E_INVALID, "must be below %u", a.n_keys);
		else
			a.missing[missing[i]] = true;
	}
	if (skv_pb_ok(&d))
		*out = a;
	return d.status;
}

/* ---- unpin -------------------------------------------------------------------------------------- */

int skv_pb_read_unpin_req(const struct skv_v1_in *in, const char *text, size_t n, struct skv_unpin_req *out,
			  struct skv_error *err)
{
	struct skv_unpin_req q = { .tenant = in->tenant };
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd message = skv_rd_make(text, n), r = message;
	struct skv_pbkeys keys = { 0 };
	bool all = false;
	struct pb_field f;

	while (skv_pb_next(&d, &r, &f)) {
		if (f.number == UNPIN_ALL)
			all = skv_pb_u64(&d, &f, "all", 1) != 0;
		else
			skv_pb_keys_field(&d, &keys, &f);
	}
	if (all && (keys.raw_len || keys.n_ints || keys.n_strings))
		skv_pb_fail(&d, "all", PB_NO_INDEX, SKV_E_INVALID, "all, or keys: not both");
	if (!all)
		q.keys = skv_pb_keys(&d, &keys, message, &q.n_keys);
	if (skv_pb_ok(&d))
		*out = q;
	return d.status;
}

void skv_pb_write_unpin_req(struct skv_buf *out, const struct skv_unpin_req *req, const struct skv_key_input *keys)
{
	(void)req;
	if (keys->n)
		skv_pb_put_keys(out, keys);
	else
		skv_pb_put_uint(out, UNPIN_ALL, 1);
}

/* ---- the list ----------------------------------------------------------------------------------- */

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

static struct skv_key load_key(const uint8_t *raw)
{
	return (struct skv_key){ skv_pb_load64_be(raw), skv_pb_load64_be(raw + 8) };
}

static void take_pins(struct skv_pbdoc *d, struct skv_pins_res *a, const uint8_t *raw, const uint64_t *kinds,
		      const uint64_t *ttls)
{
	a->key = skv_pb_alloc(d, a->n + 1, sizeof *a->key);
	a->kind = skv_pb_alloc(d, a->n + 1, sizeof *a->kind);
	a->ttl_ms = skv_pb_alloc(d, a->n + 1, sizeof *a->ttl_ms);
	for (uint32_t i = 0; skv_pb_ok(d) && i < a->n; i++) {
		if (kinds[i] != SKV_PIN_SOFT && kinds[i] != SKV_PIN_HARD)
			skv_pb_fail(d, "kinds", i, SKV_E_INVALID, "must be 1 or 2");
		if (ttls[i] > SKV_MAX_PIN_MS)
			skv_pb_fail(d, "ttl_ms", i, SKV_E_INVALID, "must be at most %llu", SKV_MAX_PIN_MS);
		a->key[i] = load_key(raw + 16 * i);
		a->kind[i] = (uint8_t)kinds[i];
		a->ttl_ms[i] = ttls[i];
	}
}

int skv_pb_read_pins_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pins_res *out,
			 struct skv_error *err)
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
		skv_pb_fail(&d, "keys_raw", PB_NO_INDEX, SKV_E_INVALID, "must be 16 bytes for each key");
	skv_pb_count(&d, "keys_raw", n_raw / 16, 0, SKV_MAX_KEYS);
	a.n = (uint32_t)(n_raw / 16);
	skv_pb_count(&d, "kinds", n_kinds, a.n, a.n);
	skv_pb_count(&d, "ttl_ms", n_ttls, a.n, a.n);
	if (skv_pb_ok(&d))
		take_pins(&d, &a, raw, skv_pb_all_numbers(&d, message, PINS_KINDS, "kinds", PB_VARINT, n_kinds),
			  skv_pb_all_numbers(&d, message, PINS_TTLS, "ttl_ms", PB_VARINT, n_ttls));
	if (skv_pb_ok(&d))
		*out = a;
	return d.status;
}

/* ---- keys --------------------------------------------------------------------------------------- */

void skv_pb_write_keys_res(struct skv_buf *out, const struct skv_keys_res *r)
{
	if (r->n)
		put_keys(out, r->key, r->n);
	skv_pb_put_uint(out, KEYS_NEXT, r->next);
}

int skv_pb_read_keys_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_keys_res *out,
			 struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd r = skv_rd_make(text, n);
	struct skv_keys_res a = { 0 };
	const uint8_t *raw = NULL;
	size_t n_raw = 0;
	struct pb_field f;

	while (skv_pb_next(&d, &r, &f)) {
		if (f.number == KEYS_KEYS && skv_pb_wire(&d, &f, "keys_raw", PB_BYTES)) {
			raw = f.p;
			n_raw = f.n;
		} else if (f.number == KEYS_NEXT) {
			a.next = skv_pb_u64(&d, &f, "next", UINT64_MAX);
		}
	}
	if (skv_pb_ok(&d) && n_raw % 16)
		skv_pb_fail(&d, "keys_raw", PB_NO_INDEX, SKV_E_INVALID, "must be 16 bytes for each key");
	skv_pb_count(&d, "keys_raw", n_raw / 16, 0, SKV_MAX_KEYS);
	a.n = (uint32_t)(n_raw / 16);
	a.key = skv_pb_alloc(&d, a.n + 1, sizeof *a.key);
	for (uint32_t i = 0; skv_pb_ok(&d) && i < a.n; i++)
		a.key[i] = load_key(raw + 16 * i);
	if (skv_pb_ok(&d))
		*out = a;
	return d.status;
}
