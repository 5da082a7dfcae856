/*
 * pin.c - the list of pins in JSON, both directions: an array of objects,
 * which is columns in protobuf.
 *
 * No state; any thread.
 */
#include "parts.h"

static const char *const kinds[] = { "soft", "hard", NULL };

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

static void read_pin(struct skv_jdoc *d, const struct skv_jat *at, const struct skv_pins_res *r,
		     uint32_t i)
{
	struct skv_jat key = skv_jat_get(at, "key"), kind = skv_jat_get(at, "kind"),
		       ttl = skv_jat_get(at, "ttl_ms");

	r->key[i] = skv_jat_key_hex(d, &key);
	r->kind[i] = (uint8_t)(SKV_PIN_SOFT + skv_jat_word(d, &kind, kinds));
	r->ttl_ms[i] = skv_jat_u64(d, &ttl, 0, SKV_MAX_PIN_MS);
}

int skv_v1_read_pins_res(const struct skv_v1_in *in, const char *text, size_t n,
			 struct skv_pins_res *out, struct skv_error *err)
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
