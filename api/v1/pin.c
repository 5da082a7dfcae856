/*
 * pin.c - pin, unpin, the list of pins and that of keys in JSON: requests and answers, both directions.
 *
 * No state; any thread.
 */
#include "parts.h"

static const char *const kinds[] = { "soft", "hard", NULL };

/* ---- pin ---------------------------------------------------------------------------------------- */

int skv_v1_read_pin_req(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pin_req *out,
			struct skv_error *err)
{
	static const char *const fields[] = { "keys", "keys_int", "keys_hex", "kind", "ttl_ms", NULL };
	struct skv_pin_req r = { .tenant = in->tenant, .kind = SKV_PIN_HARD };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_KEYS, err);
	struct skv_jat kind = skv_jat_get(&top, "kind"), ttl = skv_jat_get(&top, "ttl_ms");

	skv_jat_object(&d, &top, fields);
	if (kind.v)
		r.kind = (enum skv_pin_kind)(SKV_PIN_SOFT + skv_jat_word(&d, &kind, kinds));
	if (ttl.v)
		r.ttl_ms = skv_jat_u64(&d, &ttl, 0, SKV_MAX_PIN_MS);
	r.keys = skv_jat_keys(&d, &top, &r.n_keys);
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}

void skv_v1_write_pin_req(struct skv_buf *out, const struct skv_pin_req *req, const struct skv_key_input *keys)
{
	skv_jout_begin(out);
	skv_jout_field_string(out, "kind", kinds[req->kind == SKV_PIN_HARD]);
	skv_jout_field_u64(out, "ttl_ms", req->ttl_ms);
	skv_jout_keys(out, keys);
	skv_jout_close(out, '}');
}

void skv_v1_write_pin_res(struct skv_buf *out, const struct skv_pin_res *r)
{
	skv_jout_begin(out);
	skv_jout_field_u64(out, "n_keys", r->n_keys);
	skv_jout_field_u64(out, "pinned", r->pinned);
	skv_jout_name(out, "missing");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n_keys; i++)
		if (r->missing[i])
			skv_jout_u64(out, i);
	skv_jout_close(out, ']');
	skv_jout_close(out, '}');
}

int skv_v1_read_pin_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pin_res *out,
			struct skv_error *err)
{
	struct skv_pin_res r = { 0 };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_KEYS, err);
	struct skv_jat n_keys = skv_jat_get(&top, "n_keys"), pinned = skv_jat_get(&top, "pinned"),
		       missing = skv_jat_get(&top, "missing");
	struct skv_jat item = skv_jat_first(&missing);
	uint32_t count;

	r.n_keys = skv_jat_u32(&d, &n_keys, 0, SKV_MAX_KEYS);
	r.pinned = skv_jat_u32(&d, &pinned, 0, SKV_MAX_KEYS);
	count = skv_jat_array(&d, &missing, 0, r.n_keys);
	r.missing = skv_jdoc_alloc(&d, r.n_keys + 1, sizeof *r.missing);
	for (uint32_t i = 0; skv_jdoc_ok(&d) && i < count; i++, skv_jat_next(&item)) {
		uint32_t at = skv_jat_u32(&d, &item, 0, r.n_keys - 1);

		if (skv_jdoc_ok(&d))
			r.missing[at] = true;
	}
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}

/* ---- unpin -------------------------------------------------------------------------------------- */

int skv_v1_read_unpin_req(const struct skv_v1_in *in, const char *text, size_t n, struct skv_unpin_req *out,
			  struct skv_error *err)
{
	static const char *const with_keys[] = { "keys", "keys_int", "keys_hex", NULL };
	static const char *const with_all[] = { "all", NULL };
	struct skv_unpin_req r = { .tenant = in->tenant };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_KEYS, err);
	struct skv_jat all = skv_jat_get(&top, "all");

	skv_jat_object(&d, &top, all.v ? with_all : with_keys);
	if (all.v && !skv_jat_bool(&d, &all))
		skv_jdoc_fail(&d, &all, SKV_E_INVALID, "must be true: all pins end");
	if (!all.v)
		r.keys = skv_jat_keys(&d, &top, &r.n_keys);
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}

void skv_v1_write_unpin_req(struct skv_buf *out, const struct skv_unpin_req *req, const struct skv_key_input *keys)
{
	(void)req;
	skv_jout_begin(out);
	if (keys->n)
		skv_jout_keys(out, keys);
	else
		skv_jout_field_bool(out, "all", true);
	skv_jout_close(out, '}');
}

/* ---- the list ----------------------------------------------------------------------------------- */

void skv_v1_write_pins_res(struct skv_buf *out, const struct skv_pins_res *r)
{
	skv_jout_begin(out);
	skv_jout_name(out, "pins");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n; i++) {
		skv_jout_open(out, '{');
		skv_jout_name(out, "key");
		skv_jout_key(out, r->key[i]);
		skv_jout_field_string(out, "kind", kinds[r->kind[i] == SKV_PIN_HARD]);
		skv_jout_field_u64(out, "ttl_ms", r->ttl_ms[i]);
		skv_jout_close(out, '}');
	}
	skv_jout_close(out, ']');
	skv_jout_field_u64(out, "next", r->next);
	skv_jout_close(out, '}');
}

static void read_pin(struct skv_jdoc *d, const struct skv_jat *at, const struct skv_pins_res *r, uint32_t i)
{
	struct skv_jat key = skv_jat_get(at, "key"), kind = skv_jat_get(at, "kind"), ttl = skv_jat_get(at, "ttl_ms");

	r->key[i] = skv_jat_key_hex(d, &key);
	r->kind[i] = (uint8_t)(SKV_PIN_SOFT + skv_jat_word(d, &kind, kinds));
	r->ttl_ms[i] = skv_jat_u64(d, &ttl, 0, SKV_MAX_PIN_MS);
}

int skv_v1_read_pins_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pins_res *out,
			 struct skv_error *err)
{
	struct skv_pins_res r = { 0 };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_KEYS * 4, err);
	struct skv_jat pins = skv_jat_get(&top, "pins"), next = skv_jat_get(&top, "next");
	struct skv_jat item = skv_jat_first(&pins);

	r.n = skv_jat_array(&d, &pins, 0, SKV_MAX_KEYS);
	r.key = skv_jdoc_alloc(&d, r.n + 1, sizeof *r.key);
	r.kind = skv_jdoc_alloc(&d, r.n + 1, sizeof *r.kind);
	r.ttl_ms = skv_jdoc_alloc(&d, r.n + 1, sizeof *r.ttl_ms);
	for (uint32_t i = 0; skv_jdoc_ok(&d) && i < r.n; i++, skv_jat_next(&item))
		read_pin(&d, &item, &r, i);
	r.next = skv_jat_u64(&d, &next, 0, UINT64_MAX);
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}

/* ---- keys --------------------------------------------------------------------------------------- */

void skv_v1_write_keys_res(struct skv_buf *out, const struct skv_keys_res *r)
{
	skv_buf_reserve(out, 64 + (size_t)r->n * 36);
	skv_jout_begin(out);
	skv_jout_name(out, "keys_hex");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n; i++)
		skv_jout_key(out, r->key[i]);
	skv_jout_close(out, ']');
	skv_jout_field_u64(out, "next", r->next);
	skv_jout_close(out, '}');
}

int skv_v1_read_keys_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_keys_res *out,
			 struct skv_error *err)
{
	struct skv_keys_res r = { 0 };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_KEYS, err);
	struct skv_jat keys = skv_jat_get(&top, "keys_hex"), next = skv_jat_get(&top, "next");
	struct skv_jat item = skv_jat_first(&keys);

	r.n = skv_jat_array(&d, &keys, 0, SKV_MAX_KEYS);
	r.key = skv_jdoc_alloc(&d, r.n + 1, sizeof *r.key);
	for (uint32_t i = 0; skv_jdoc_ok(&d) && i < r.n; i++, skv_jat_next(&item))
		r.key[i] = skv_jat_key_hex(&d, &item);
	r.next = skv_jat_u64(&d, &next, 0, UINT64_MAX);
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}
