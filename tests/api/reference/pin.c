/*
 * pin.c - pin, unpin and the list of pins in JSON: requests and answers, both directions.
 *
 * No state; any thread.
 */
#include "parts.h"

static const char *const kinds[] = { "soft", "hard", NULL };

/* ---- pin ---------------------------------------------------------------------------------------- */

int ref_read_pin_req(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pin_req *out,
			struct skv_error *err)
{
	static const char *const fields[] = { "keys", "keys_int", "keys_hex", "kind", "ttl_ms", NULL };
	struct skv_pin_req r = { .tenant = in->tenant, .kind = SKV_PIN_HARD };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_KEYS, err);
	struct ref_jat kind = ref_jat_get(&top, "kind"), ttl = ref_jat_get(&top, "ttl_ms");

	ref_jat_object(&d, &top, fields);
	if (kind.v)
		r.kind = (enum skv_pin_kind)(SKV_PIN_SOFT + ref_jat_word(&d, &kind, kinds));
	if (ttl.v)
		r.ttl_ms = ref_jat_u64(&d, &ttl, 0, SKV_MAX_PIN_MS);
	r.keys = ref_jat_keys(&d, &top, &r.n_keys);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

void ref_write_pin_req(struct skv_buf *out, const struct skv_pin_req *req, const struct skv_key_input *keys)
{
	ref_jout_begin(out);
	ref_jout_field_string(out, "kind", kinds[req->kind == SKV_PIN_HARD]);
	ref_jout_field_u64(out, "ttl_ms", req->ttl_ms);
	ref_jout_keys(out, keys);
	ref_jout_close(out, '}');
}

void ref_write_pin_res(struct skv_buf *out, const struct skv_pin_res *r)
{
	ref_jout_begin(out);
	ref_jout_field_u64(out, "n_keys", r->n_keys);
	ref_jout_field_u64(out, "pinned", r->pinned);
	ref_jout_name(out, "missing");
	ref_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n_keys; i++)
		if (r->missing[i])
			ref_jout_u64(out, i);
	ref_jout_close(out, ']');
	ref_jout_close(out, '}');
}

int ref_read_pin_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pin_res *out,
			struct skv_error *err)
{
	struct skv_pin_res r = { 0 };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_KEYS, err);
	struct ref_jat n_keys = ref_jat_get(&top, "n_keys"), pinned = ref_jat_get(&top, "pinned"),
		       missing = ref_jat_get(&top, "missing");
	uint32_t count;

	r.n_keys = ref_jat_u32(&d, &n_keys, 0, SKV_MAX_KEYS);
	r.pinned = ref_jat_u32(&d, &pinned, 0, SKV_MAX_KEYS);
	count = ref_jat_array(&d, &missing, 0, r.n_keys);
	r.missing = ref_jdoc_alloc(&d, r.n_keys + 1, sizeof *r.missing);
	for (uint32_t i = 0; ref_jdoc_ok(&d) && i < count; i++) {
		struct ref_jat item = ref_jat_item(&missing, i);
		uint32_t at = ref_jat_u32(&d, &item, 0, r.n_keys - 1);

		if (ref_jdoc_ok(&d))
			r.missing[at] = true;
	}
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

/* ---- unpin -------------------------------------------------------------------------------------- */

int ref_read_unpin_req(const struct skv_v1_in *in, const char *text, size_t n, struct skv_unpin_req *out,
			  struct skv_error *err)
{
	static const char *const with_keys[] = { "keys", "keys_int", "keys_hex", NULL };
	static const char *const with_all[] = { "all", NULL };
	struct skv_unpin_req r = { .tenant = in->tenant };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_KEYS, err);
	struct ref_jat all = ref_jat_get(&top, "all");

	ref_jat_object(&d, &top, all.v ? with_all : with_keys);
	if (all.v && !ref_jat_bool(&d, &all))
		ref_jdoc_fail(&d, &all, SKV_E_INVALID, "must be true: all pins end");
	if (!all.v)
		r.keys = ref_jat_keys(&d, &top, &r.n_keys);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

void ref_write_unpin_req(struct skv_buf *out, const struct skv_unpin_req *req, const struct skv_key_input *keys)
{
	(void)req;
	ref_jout_begin(out);
	if (keys->n)
		ref_jout_keys(out, keys);
	else
		ref_jout_field_bool(out, "all", true);
	ref_jout_close(out, '}');
}

void ref_write_unpin_res(struct skv_buf *out, const struct skv_unpin_res *r)
{
	ref_jout_begin(out);
	ref_jout_field_u64(out, "unpinned", r->unpinned);
	ref_jout_close(out, '}');
}

int ref_read_unpin_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_unpin_res *out,
			  struct skv_error *err)
{
	struct skv_unpin_res r;
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_OBJECT, err);
	struct ref_jat unpinned = ref_jat_get(&top, "unpinned");

	r.unpinned = ref_jat_u64(&d, &unpinned, 0, UINT64_MAX);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

/* ---- the list ----------------------------------------------------------------------------------- */

void ref_write_pins_res(struct skv_buf *out, const struct skv_pins_res *r)
{
	ref_jout_begin(out);
	ref_jout_name(out, "pins");
	ref_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n; i++) {
		ref_jout_open(out, '{');
		ref_jout_name(out, "key");
		ref_jout_key(out, r->key[i]);
		ref_jout_field_string(out, "kind", kinds[r->kind[i] == SKV_PIN_HARD]);
		ref_jout_field_u64(out, "ttl_ms", r->ttl_ms[i]);
		ref_jout_close(out, '}');
	}
	ref_jout_close(out, ']');
	ref_jout_field_u64(out, "next", r->next);
	ref_jout_close(out, '}');
}

static void read_pin(struct ref_jdoc *d, const struct ref_jat *at, const struct skv_pins_res *r, uint32_t i)
{
	struct ref_jat key = ref_jat_get(at, "key"), kind = ref_jat_get(at, "kind"), ttl = ref_jat_get(at, "ttl_ms");

	r->key[i] = ref_jat_key_hex(d, &key);
	r->kind[i] = (uint8_t)(SKV_PIN_SOFT + ref_jat_word(d, &kind, kinds));
	r->ttl_ms[i] = ref_jat_u64(d, &ttl, 0, SKV_MAX_PIN_MS);
}

int ref_read_pins_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pins_res *out,
			 struct skv_error *err)
{
	struct skv_pins_res r = { 0 };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_KEYS * 4, err);
	struct ref_jat pins = ref_jat_get(&top, "pins"), next = ref_jat_get(&top, "next");

	r.n = ref_jat_array(&d, &pins, 0, SKV_MAX_KEYS);
	r.key = ref_jdoc_alloc(&d, r.n + 1, sizeof *r.key);
	r.kind = ref_jdoc_alloc(&d, r.n + 1, sizeof *r.kind);
	r.ttl_ms = ref_jdoc_alloc(&d, r.n + 1, sizeof *r.ttl_ms);
	for (uint32_t i = 0; ref_jdoc_ok(&d) && i < r.n; i++) {
		struct ref_jat item = ref_jat_item(&pins, i);

		read_pin(&d, &item, &r, i);
	}
	r.next = ref_jat_u64(&d, &next, 0, UINT64_MAX);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

void ref_write_keys_res(struct skv_buf *out, const struct skv_keys_res *r)
{
	ref_jout_begin(out);
	ref_jout_name(out, "keys_hex");
	ref_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n; i++)
		ref_jout_key(out, r->key[i]);
	ref_jout_close(out, ']');
	ref_jout_field_u64(out, "next", r->next);
	ref_jout_close(out, '}');
}

int ref_read_keys_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_keys_res *out,
			 struct skv_error *err)
{
	struct skv_keys_res r = { 0 };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_KEYS, err);
	struct ref_jat keys = ref_jat_get(&top, "keys_hex"), next = ref_jat_get(&top, "next");

	r.n = ref_jat_array(&d, &keys, 0, SKV_MAX_KEYS);
	r.key = ref_jdoc_alloc(&d, r.n + 1, sizeof *r.key);
	for (uint32_t i = 0; ref_jdoc_ok(&d) && i < r.n; i++) {
		struct ref_jat item = ref_jat_item(&keys, i);

		r.key[i] = ref_jat_key_hex(&d, &item);
	}
	r.next = ref_jat_u64(&d, &next, 0, UINT64_MAX);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}
