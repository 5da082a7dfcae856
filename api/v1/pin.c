/*
 * pin.c - the list of pins in JSON: an array of objects, which is columns in protobuf.
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
