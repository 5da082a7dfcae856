/*
 * lookup.c - match and lookup: requests and answers, both directions.
 *
 * A lookup's answer has one entry for each hit, with its position in the request, so that misses cost
 * nothing. No state; any thread.
 */
#include "parts.h"

#define LOCATION_BYTES 128 /* room for one location as text, to grow the buffer once */

static const char *const modes[] = { "prefix", "batch", "window", "trailing", NULL };

/* ---- match -------------------------------------------------------------------------------------- */

int ref_read_match_req(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_match_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "instances", "keys", "keys_int", "keys_hex", NULL };
	struct skv_match_req r = { .tenant = in->tenant };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_KEYS, err);
	struct ref_jat instances = ref_jat_get(&top, "instances");

	ref_jat_object(&d, &top, fields);
	r.instances = ref_jat_model_names(&d, &instances, 1, SKV_MAX_INSTANCES_PER_MATCH, &r.n_instances);
	r.keys = ref_jat_keys(&d, &top, &r.n_keys);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

void ref_write_match_req(struct skv_buf *out, const struct skv_match_req *req,
			    const struct skv_key_input *keys)
{
	ref_jout_begin(out);
	ref_jout_field_strings(out, "instances", req->instances, req->n_instances);
	ref_jout_keys(out, keys);
	ref_jout_close(out, '}');
}

void ref_write_match_res(struct skv_buf *out, const struct skv_match_res *r)
{
	ref_jout_begin(out);
	ref_jout_name(out, "results");
	ref_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n_instances; i++) {
		ref_jout_open(out, '{');
		ref_jout_field_string(out, "instance", r->instances[i]);
		ref_jout_field_u64(out, "matched", r->matched[i]);
		ref_jout_close(out, '}');
	}
	ref_jout_close(out, ']');
	ref_jout_close(out, '}');
}

int ref_read_match_res(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_match_res *out, struct skv_error *err)
{
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_OBJECT, err);
	struct ref_jat results = ref_jat_get(&top, "results");
	uint32_t count = ref_jat_array(&d, &results, 0, SKV_MAX_INSTANCES_PER_MATCH);
	const char **instances = ref_jdoc_alloc(&d, count, sizeof *instances);
	uint32_t *matched = ref_jdoc_alloc(&d, count, sizeof *matched);

	for (uint32_t i = 0; ref_jdoc_ok(&d) && i < count; i++) {
		struct ref_jat item = ref_jat_item(&results, i);
		struct ref_jat name = ref_jat_get(&item, "instance");
		struct ref_jat length = ref_jat_get(&item, "matched");

		instances[i] = ref_jat_model_name(&d, &name);
		matched[i] = ref_jat_u32(&d, &length, 0, SKV_MAX_KEYS);
	}
	if (ref_jdoc_ok(&d))
		*out = (struct skv_match_res){ count, instances, matched };
	return ref_jdoc_close(&d);
}

/* ---- lookup ------------------------------------------------------------------------------------- */

int ref_read_lookup_req(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_lookup_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "keys",  "keys_int", "keys_hex", "mode",
					      "specs", "lease_ms", "partial",  "window", NULL };
	struct skv_lookup_req r = { .tenant = in->tenant, .lease_ms = SKV_LEASE_DEFAULT };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_KEYS, err);
	struct ref_jat mode = ref_jat_get(&top, "mode"), specs = ref_jat_get(&top, "specs"),
		       lease = ref_jat_get(&top, "lease_ms"),
		       partial = ref_jat_get(&top, "partial"), window = ref_jat_get(&top, "window");

	ref_jat_object(&d, &top, fields);
	r.keys = ref_jat_keys(&d, &top, &r.n_keys);
	if (mode.v)
		r.mode = (enum skv_lookup_mode)ref_jat_word(&d, &mode, modes);
	if (specs.v)
		r.specs = ref_jat_names(&d, &specs, 1, SKV_MAX_SPECS, &r.n_specs);
	if (lease.v)
		r.lease_ms = ref_jat_u32(&d, &lease, 0, SKV_LEASE_DEFAULT - 1);
	if (partial.v)
		r.partial = ref_jat_bool(&d, &partial);
	if (window.v)
		r.window = ref_jat_u32(&d, &window, 0, SKV_MAX_KEYS);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

void ref_write_lookup_req(struct skv_buf *out, const struct skv_lookup_req *req,
			     const struct skv_key_input *keys)
{
	ref_jout_begin(out);
	ref_jout_field_string(out, "mode", modes[req->mode]);
	if (req->n_specs)
		ref_jout_field_strings(out, "specs", req->specs, req->n_specs);
	if (req->lease_ms != SKV_LEASE_DEFAULT)
		ref_jout_field_u64(out, "lease_ms", req->lease_ms);
	if (req->partial)
		ref_jout_field_bool(out, "partial", true);
	if (req->window)
		ref_jout_field_u64(out, "window", req->window);
	ref_jout_keys(out, keys);
	ref_jout_close(out, '}');
}

void ref_write_lookup_res(struct skv_buf *out, const struct skv_lookup_res *r)
{
	skv_buf_reserve(out, (size_t)LOCATION_BYTES * (1 + (size_t)r->matched * r->n_specs));
	ref_jout_begin(out);
	ref_jout_field_u64(out, "n_keys", r->n_keys);
	ref_jout_field_u64(out, "matched", r->matched);
	ref_jout_field_u64(out, "lease_ms", r->lease_ms);
	ref_jout_field_strings(out, "specs", r->specs, r->n_specs);
	ref_jout_files(out, &r->files);
	ref_jout_name(out, "blocks");
	ref_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n_keys; i++) {
		if (!r->hit[i])
			continue;
		ref_jout_open(out, '{');
		ref_jout_field_u64(out, "index", i);
		ref_jout_locations(out, r->loc + (size_t)i * r->n_specs, r->n_specs);
		ref_jout_close(out, '}');
	}
	ref_jout_close(out, ']');
	ref_jout_close(out, '}');
}

/* One hit; `next` is the first position that it may have. */
static uint32_t read_hit(struct ref_jdoc *d, const struct ref_jat *at, struct skv_lookup_res *r,
			 uint32_t next)
{
	struct ref_jat index = ref_jat_get(at, "index");
	uint32_t i = ref_jat_u32(d, &index, next, r->n_keys - 1);
	struct skv_location *loc = r->loc + (size_t)i * r->n_specs;
	uint32_t s = 0;

	ref_jat_locations(d, at, r->files.n, loc, r->n_specs);
	while (ref_jdoc_ok(d) && s < r->n_specs && loc[s].length == 0)
		s++;
	if (s == r->n_specs)
		ref_jdoc_fail(d, at, SKV_E_INVALID, "a hit without any location");
	if (ref_jdoc_ok(d))
		r->hit[i] = true;
	return i + 1;
}

int ref_read_lookup_res(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_lookup_res *out, struct skv_error *err)
{
	struct skv_lookup_res r = { .n_keys = 0 };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_ANSWER, err);
	struct ref_jat n_keys = ref_jat_get(&top, "n_keys"), matched = ref_jat_get(&top, "matched"),
		       lease = ref_jat_get(&top, "lease_ms"), specs = ref_jat_get(&top, "specs"),
		       blocks = ref_jat_get(&top, "blocks");
	uint32_t hits, next = 0;

	r.n_keys = ref_jat_u32(&d, &n_keys, 0, SKV_MAX_KEYS);
	r.lease_ms = ref_jat_u32(&d, &lease, 0, UINT32_MAX);
	r.specs = ref_jat_names(&d, &specs, 0, SKV_MAX_SPECS, &r.n_specs);
	ref_jat_files(&d, &top, &r.files);
	hits = ref_jat_array(&d, &blocks, 0, r.n_keys);
	r.matched = ref_jat_u32(&d, &matched, 0, hits);
	r.hit = ref_jdoc_alloc(&d, r.n_keys, sizeof *r.hit);
	r.loc = ref_jdoc_alloc(&d, (size_t)r.n_keys * r.n_specs, sizeof *r.loc);
	for (uint32_t i = 0; ref_jdoc_ok(&d) && i < hits; i++) {
		struct ref_jat item = ref_jat_item(&blocks, i);

		next = read_hit(&d, &item, &r, next);
	}
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}
