/*
 * pin.c - pin, unpin and the list of pins in JSON: requests and answers, both directions.
 *
 * No state; any thread.
 */
#include "parts.h"

static const char *const kinds[] = { "soft", "hard", NULL };

/* ---- pin ---------------------------------------------------------------------------------------- */

int kvb_v1_read_pin_req(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_pin_req *out,
			struct kvb_error *err)
{
	static const char *const fields[] = { "keys", "keys_int", "keys_hex", "kind", "ttl_ms", NULL };
	struct kvb_pin_req r = { .tenant = in->tenant, .kind = KVB_PIN_HARD };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JREQUEST, KVB_JMAX_KEYS, err);
	struct kvb_jat kind = kvb_jat_get(&top, "kind"), ttl = kvb_jat_get(&top, "ttl_ms");

	kvb_jat_object(&d, &top, fields);
	if (kind.v)
		r.kind = (enum kvb_pin_kind)(KVB_PIN_SOFT + kvb_jat_word(&d, &kind, kinds));
	if (ttl.v)
		r.ttl_ms = kvb_jat_u64(&d, &ttl, 0, KVB_MAX_PIN_MS);
	r.keys = kvb_jat_keys(&d, &top, &r.n_keys);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

void kvb_v1_write_pin_req(struct kvb_buf *out, const struct kvb_pin_req *req, const struct kvb_key_input *keys)
{
	kvb_jout_begin(out);
	kvb_jout_field_string(out, "kind", kinds[req->kind == KVB_PIN_HARD]);
	kvb_jout_field_u64(out, "ttl_ms", req->ttl_ms);
	kvb_jout_keys(out, keys);
	kvb_jout_close(out, '}');
}

void kvb_v1_write_pin_res(struct kvb_buf *out, const struct kvb_pin_res *r)
{
	kvb_jout_begin(out);
	kvb_jout_field_u64(out, "n_keys", r->n_keys);
	kvb_jout_field_u64(out, "pinned", r->pinned);
	kvb_jout_name(out, "missing");
	kvb_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n_keys; i++)
		if (r->missing[i])
			kvb_jout_u64(out, i);
	kvb_jout_close(out, ']');
	kvb_jout_close(out, '}');
}

int kvb_v1_read_pin_res(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_pin_res *out,
			struct kvb_error *err)
{
	struct kvb_pin_res r = { 0 };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JANSWER, KVB_JMAX_KEYS, err);
	struct kvb_jat n_keys = kvb_jat_get(&top, "n_keys"), pinned = kvb_jat_get(&top, "pinned"),
		       missing = kvb_jat_get(&top, "missing");
	struct kvb_jat item = kvb_jat_first(&missing);
	uint32_t count;

	r.n_keys = kvb_jat_u32(&d, &n_keys, 0, KVB_MAX_KEYS);
	r.pinned = kvb_jat_u32(&d, &pinned, 0, KVB_MAX_KEYS);
	count = kvb_jat_array(&d, &missing, 0, r.n_keys);
	r.missing = kvb_jdoc_alloc(&d, r.n_keys + 1, sizeof *r.missing);
	for (uint32_t i = 0; kvb_jdoc_ok(&d) && i < count; i++, kvb_jat_next(&item)) {
		uint32_t at = kvb_jat_u32(&d, &item, 0, r.n_keys - 1);

		if (kvb_jdoc_ok(&d))
			r.missing[at] = true;
	}
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

/* ---- unpin -------------------------------------------------------------------------------------- */

int kvb_v1_read_unpin_req(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_unpin_req *out,
			  struct kvb_error *err)
{
	static const char *const with_keys[] = { "keys", "keys_int", "keys_hex", NULL };
	static const char *const with_all[] = { "all", NULL };
	struct kvb_unpin_req r = { .tenant = in->tenant };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JREQUEST, KVB_JMAX_KEYS, err);
	struct kvb_jat all = kvb_jat_get(&top, "all");

	kvb_jat_object(&d, &top, all.v ? with_all : with_keys);
	if (all.v && !kvb_jat_bool(&d, &all))
		kvb_jdoc_fail(&d, &all, KVB_E_INVALID, "must be true: all pins end");
	if (!all.v)
		r.keys = kvb_jat_keys(&d, &top, &r.n_keys);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

void kvb_v1_write_unpin_req(struct kvb_buf *out, const struct kvb_unpin_req *req, const struct kvb_key_input *keys)
{
	(void)req;
	kvb_jout_begin(out);
	if (keys->n)
		kvb_jout_keys(out, keys);
	else
		kvb_jout_field_bool(out, "all", true);
	kvb_jout_close(out, '}');
}

void kvb_v1_write_unpin_res(struct kvb_buf *out, const struct kvb_unpin_res *r)
{
	kvb_jout_begin(out);
	kvb_jout_field_u64(out, "unpinned", r->unpinned);
	kvb_jout_close(out, '}');
}

int kvb_v1_read_unpin_res(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_unpin_res *out,
			  struct kvb_error *err)
{
	struct kvb_unpin_res r;
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JANSWER, KVB_JMAX_OBJECT, err);
	struct kvb_jat unpinned = kvb_jat_get(&top, "unpinned");

	r.unpinned = kvb_jat_u64(&d, &unpinned, 0, UINT64_MAX);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

/* ---- the list ----------------------------------------------------------------------------------- */

void kvb_v1_write_pins_res(struct kvb_buf *out, const struct kvb_pins_res *r)
{
	kvb_jout_begin(out);
	kvb_jout_name(out, "pins");
	kvb_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n; i++) {
		kvb_jout_open(out, '{');
		kvb_jout_name(out, "key");
		kvb_jout_key(out, r->key[i]);
		kvb_jout_field_string(out, "kind", kinds[r->kind[i] == KVB_PIN_HARD]);
		kvb_jout_field_u64(out, "ttl_ms", r->ttl_ms[i]);
		kvb_jout_close(out, '}');
	}
	kvb_jout_close(out, ']');
	kvb_jout_field_u64(out, "next", r->next);
	kvb_jout_close(out, '}');
}

static void read_pin(struct kvb_jdoc *d, const struct kvb_jat *at, const struct kvb_pins_res *r, uint32_t i)
{
	struct kvb_jat key = kvb_jat_get(at, "key"), kind = kvb_jat_get(at, "kind"), ttl = kvb_jat_get(at, "ttl_ms");

	r->key[i] = kvb_jat_key_hex(d, &key);
	r->kind[i] = (uint8_t)(KVB_PIN_SOFT + kvb_jat_word(d, &kind, kinds));
	r->ttl_ms[i] = kvb_jat_u64(d, &ttl, 0, KVB_MAX_PIN_MS);
}

int kvb_v1_read_pins_res(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_pins_res *out,
			 struct kvb_error *err)
{
	struct kvb_pins_res r = { 0 };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JANSWER, KVB_JMAX_KEYS * 4, err);
	struct kvb_jat pins = kvb_jat_get(&top, "pins"), next = kvb_jat_get(&top, "next");
	struct kvb_jat item = kvb_jat_first(&pins);

	r.n = kvb_jat_array(&d, &pins, 0, KVB_MAX_KEYS);
	r.key = kvb_jdoc_alloc(&d, r.n + 1, sizeof *r.key);
	r.kind = kvb_jdoc_alloc(&d, r.n + 1, sizeof *r.kind);
	r.ttl_ms = kvb_jdoc_alloc(&d, r.n + 1, sizeof *r.ttl_ms);
	for (uint32_t i = 0; kvb_jdoc_ok(&d) && i < r.n; i++, kvb_jat_next(&item))
		read_pin(&d, &item, &r, i);
	r.next = kvb_jat_u64(&d, &next, 0, UINT64_MAX);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}
