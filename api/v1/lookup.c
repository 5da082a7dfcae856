/*
 * lookup.c - match and lookup: requests and answers, both directions.
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
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_KEYS, err);
	struct skv_jat instances = skv_jat_get(&top, "instances");

	skv_jat_object(&d, &top, fields);
	r.instances =
		skv_jat_model_names(&d, &instances, 1, SKV_MAX_INSTANCES_PER_MATCH, &r.n_instances);
	r.keys = skv_jat_keys(&d, &top, &r.n_keys);
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}

void skv_v1_write_match_req(struct skv_buf *out, const struct skv_match_req *req,
			    const struct skv_key_input *keys)
{
	skv_jout_begin(out);
	skv_jout_field_strings(out, "instances", req->instances, req->n_instances);
	skv_jout_keys(out, keys);
	skv_jout_close(out, '}');
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

int skv_v1_read_match_res(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_match_res *out, struct skv_error *err)
{
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_OBJECT, err);
	struct skv_jat results = skv_jat_get(&top, "results"), item = skv_jat_first(&results);
	uint32_t count = skv_jat_array(&d, &results, 0, SKV_MAX_INSTANCES_PER_MATCH);
	const char **instances = skv_jdoc_alloc(&d, count, sizeof *instances);
	uint32_t *matched = skv_jdoc_alloc(&d, count, sizeof *matched);

	for (uint32_t i = 0; skv_jdoc_ok(&d) && i < count; i++, skv_jat_next(&item)) {
		struct skv_jat name = skv_jat_get(&item, "instance");
		struct skv_jat length = skv_jat_get(&item, "matched");

		instances[i] = skv_jat_model_name(&d, &name);
		matched[i] = skv_jat_u32(&d, &length, 0, SKV_MAX_KEYS);
	}
	if (skv_jdoc_ok(&d))
		*out = (struct skv_match_res){ count, instances, matched };
	return skv_jdoc_close(&d);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

int skv_v1_read_lookup_req(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_lookup_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "keys",  "keys_int", "keys_hex", "mode",
					      "specs", "lease_ms", "partial",  "window", NULL };
	struct skv_lookup_req r = { .tenant = in->tenant, .lease_ms = SKV_LEASE_DEFAULT };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_KEYS, err);
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

void skv_v1_write_lookup_req(struct skv_buf *out, const struct skv_lookup_req *req,
			     const struct skv_key_input *keys)
{
	skv_jout_begin(out);
	SKV_CHECK(req->mode <= SKV_LOOKUP_TRAILING); /* HYBRID is for callers in this process */
	skv_jout_field_string(out, "mode", modes[req->mode]);
	if (req->n_specs)
		skv_jout_field_strings(out, "specs", req->specs, req->n_specs);
	if (req->lease_ms != SKV_LEASE_DEFAULT)
		skv_jout_field_u64(out, "lease_ms", req->lease_ms);
	if (req->partial)
		skv_jout_field_bool(out, "partial", true);
	if (req->window)
		skv_jout_field_u64(out, "window", req->window);
	skv_jout_keys(out, keys);
	skv_jout_close(out, '}');
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

/* One hit; `next` is the first position that it may have. */
static uint32_t read_hit(struct skv_jdoc *d, const struct skv_jat *at, struct skv_lookup_res *r,
			 uint32_t next)
{
	struct skv_jat index = skv_jat_get(at, "index");
	uint32_t i = skv_jat_u32(d, &index, next, r->n_keys - 1);
	struct skv_location *loc = r->loc + (size_t)i * r->n_specs;
	struct skv_jat copies = skv_jat_get(at, "copies");

	SKV_CHECK(i < r->n_keys && (i >= next || !skv_jdoc_ok(d)));
	skv_jat_locations(d, at, "locations", r->files.n, loc, r->n_specs);
	if (copies.v && !r->copy)
		r->copy = skv_jdoc_alloc(d, (size_t)r->n_keys * r->n_specs, sizeof *r->copy);
	if (copies.v && skv_jdoc_ok(d))
		skv_jat_locations(d, at, "copies", r->files.n, r->copy + (size_t)i * r->n_specs,
				  r->n_specs);
	if (skv_jdoc_ok(d) && !any_location(loc, r->n_specs))
		skv_jdoc_fail(d, at, SKV_E_INVALID, "a hit without any location");
	if (skv_jdoc_ok(d))
		r->hit[i] = true;
	return i + 1;
}

int skv_v1_read_lookup_res(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_lookup_res *out, struct skv_error *err)
{
	struct skv_lookup_res r = { .n_keys = 0 };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_ANSWER, err);
	struct skv_jat n_keys = skv_jat_get(&top, "n_keys"), matched = skv_jat_get(&top, "matched"),
		       lease = skv_jat_get(&top, "lease_ms"), specs = skv_jat_get(&top, "specs"),
		       blocks = skv_jat_get(&top, "blocks"), item = skv_jat_first(&blocks);
	uint32_t hits, next = 0;

	r.n_keys = skv_jat_u32(&d, &n_keys, 0, SKV_MAX_KEYS);
	r.lease_ms = skv_jat_u32(&d, &lease, 0, UINT32_MAX);
	r.specs = skv_jat_names(&d, &specs, 0, SKV_MAX_SPECS, &r.n_specs);
	skv_jat_files(&d, &top, &r.files);
	hits = skv_jat_array(&d, &blocks, 0, r.n_keys);
	r.matched = skv_jat_u32(&d, &matched, 0, hits);
	r.hit = skv_jdoc_alloc(&d, r.n_keys, sizeof *r.hit);
	r.loc = skv_jdoc_alloc(&d, (size_t)r.n_keys * r.n_specs, sizeof *r.loc);
	for (uint32_t i = 0; skv_jdoc_ok(&d) && i < hits; i++, skv_jat_next(&item))
		next = read_hit(&d, &item, &r, next);
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}
