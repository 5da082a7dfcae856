/*
 * lookup.c - match and lookup in JSON: requests that are read, answers that are written.
 *
 * A lookup's answer has one entry for each hit, with its position in the request, so that misses
 * cost nothing. No state; any thread.
 */
#include "parts.h"

#include <skv/check.h>

#define LOCATION_BYTES 160 /* room for one location as text, to grow the buffer once */

static const char *const modes[] = { "prefix", "batch", "window", "trailing", NULL };

/* ---- match ----------------------------------------------------------------------------------- */

int skv_v1_read_match_req(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_match_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "instances", "keys", "keys_int", "keys_hex", NULL };
	struct skv_match_req r = { .tenant = in->tenant };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JMAX_KEYS, err);
	struct skv_jat instances = skv_jat_get(&top, "instances");

	skv_jat_object(&d, &top, fields);
	r.instances =
		skv_jat_model_names(&d, &instances, 1, SKV_MAX_INSTANCES_PER_MATCH, &r.n_instances);
	r.keys = skv_jat_keys(&d, &top, &r.n_keys);
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}

void skv_v1_write_match_res(struct skv_buf *out, const struct skv_match_res *r)
{
	skv_jout_begin(out);
	skv_jout_name(out, "results");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n_instances; i++) {
		skv_jout_open(out, '{');
		skv_jout_field_string(out, "instance", r->instances[i]);
		skv_jout_field_u64(out, "matched", r->matched[i]);
		skv_jout_close(out, '}');
	}
	skv_jout_close(out, ']');
	skv_jout_close(out, '}');
}

/* ---- lookup ---------------------------------------------------------------------------------- */

int skv_v1_read_lookup_req(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_lookup_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "keys",  "keys_int", "keys_hex", "mode",
					      "specs", "lease_ms", "partial",  "window", NULL };
	struct skv_lookup_req r = { .tenant = in->tenant, .lease_ms = SKV_LEASE_DEFAULT };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JMAX_KEYS, err);
	struct skv_jat mode = skv_jat_get(&top, "mode"), specs = skv_jat_get(&top, "specs"),
		       lease = skv_jat_get(&top, "lease_ms"),
		       partial = skv_jat_get(&top, "partial"), window = skv_jat_get(&top, "window");

	skv_jat_object(&d, &top, fields);
	r.keys = skv_jat_keys(&d, &top, &r.n_keys);
	if (mode.v)
		r.mode = (enum skv_lookup_mode)skv_jat_word(&d, &mode, modes);
	if (specs.v)
		r.specs = skv_jat_names(&d, &specs, 1, SKV_MAX_SPECS, &r.n_specs);
	if (lease.v)
		r.lease_ms = skv_jat_u32(&d, &lease, 0, SKV_LEASE_DEFAULT - 1);
	if (partial.v)
		r.partial = skv_jat_bool(&d, &partial);
	if (window.v)
		r.window = skv_jat_u32(&d, &window, 0, SKV_MAX_KEYS);
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}

static bool any_location(const struct skv_location *loc, uint32_t n)
{
	while (n && loc[n - 1].length == 0)
		n--;
	return n > 0;
}

static void write_hit(struct skv_buf *b, const struct skv_lookup_res *r, uint32_t i, bool first)
{
	const struct skv_location *copy = r->copy ? r->copy + (size_t)i * r->n_specs : NULL;
	char *p = skv_jraw_begin(b, 64 + (copy ? 2 : 1) * r->n_specs * SKV_JRAW_LOCATION);

	if (!p)
		return;
	if (!first)
		*p++ = ',';
	p = skv_jraw_text(p, "{\"index\":");
	p = skv_jraw_digits(p, i);
	p = skv_jraw_locations(p, "locations", r->loc + (size_t)i * r->n_specs, r->n_specs);
	if (copy && any_location(copy, r->n_specs))
		p = skv_jraw_locations(p, "copies", copy, r->n_specs);
	*p++ = '}';
	SKV_CHECK((const uint8_t *)p <= b->data + b->cap);
	skv_jraw_end(b, p);
}

void skv_v1_write_lookup_res(struct skv_buf *out, const struct skv_lookup_res *r)
{
	bool first = true;

	skv_buf_reserve(out, (size_t)LOCATION_BYTES * (1 + (size_t)r->matched * r->n_specs));
	skv_jout_begin(out);
	skv_jout_field_u64(out, "n_keys", r->n_keys);
	skv_jout_field_u64(out, "matched", r->matched);
	skv_jout_field_u64(out, "lease_ms", r->lease_ms);
	skv_jout_field_strings(out, "specs", r->specs, r->n_specs);
	skv_jout_files(out, &r->files);
	skv_jout_name(out, "blocks");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n_keys; i++) {
		if (!r->hit[i])
			continue;
		write_hit(out, r, i, first);
		first = false;
	}
	skv_jout_close(out, ']');
	skv_jout_close(out, '}');
}
