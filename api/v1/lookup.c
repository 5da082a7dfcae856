/*
 * lookup.c - match and lookup: requests and answers, both directions.
 *
 * A lookup's answer has one entry for each hit, with its position in the request, so that misses cost
 * nothing. No state; any thread.
 */
#include "parts.h"

#define LOCATION_BYTES 160 /* room for one location as text, to grow the buffer once */

static const char *const modes[] = { "prefix", "batch", "window", NULL };

/* ---- match -------------------------------------------------------------------------------------- */

int kvb_v1_read_match_req(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_match_req *out, struct kvb_error *err)
{
	static const char *const fields[] = { "instances", "keys", "keys_int", "keys_hex", NULL };
	struct kvb_match_req r = { .tenant = in->tenant };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JREQUEST, KVB_JMAX_KEYS, err);
	struct kvb_jat instances = kvb_jat_get(&top, "instances");

	kvb_jat_object(&d, &top, fields);
	r.instances = kvb_jat_names(&d, &instances, 1, KVB_MAX_INSTANCES_PER_MATCH, &r.n_instances);
	r.keys = kvb_jat_keys(&d, &top, &r.n_keys);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

void kvb_v1_write_match_req(struct kvb_buf *out, const struct kvb_match_req *req,
			    const struct kvb_key_input *keys)
{
	kvb_jout_begin(out);
	kvb_jout_field_strings(out, "instances", req->instances, req->n_instances);
	kvb_jout_keys(out, keys);
	kvb_jout_close(out, '}');
}

void kvb_v1_write_match_res(struct kvb_buf *out, const struct kvb_match_res *r)
{
	kvb_jout_begin(out);
	kvb_jout_name(out, "results");
	kvb_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n_instances; i++) {
		kvb_jout_open(out, '{');
		kvb_jout_field_string(out, "instance", r->instances[i]);
		kvb_jout_field_u64(out, "matched", r->matched[i]);
		kvb_jout_close(out, '}');
	}
	kvb_jout_close(out, ']');
	kvb_jout_close(out, '}');
}

int kvb_v1_read_match_res(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_match_res *out, struct kvb_error *err)
{
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JANSWER, KVB_JMAX_OBJECT, err);
	struct kvb_jat results = kvb_jat_get(&top, "results"), item = kvb_jat_first(&results);
	uint32_t count = kvb_jat_array(&d, &results, 0, KVB_MAX_INSTANCES_PER_MATCH);
	const char **instances = kvb_jdoc_alloc(&d, count, sizeof *instances);
	uint32_t *matched = kvb_jdoc_alloc(&d, count, sizeof *matched);

	for (uint32_t i = 0; kvb_jdoc_ok(&d) && i < count; i++, kvb_jat_next(&item)) {
		struct kvb_jat name = kvb_jat_get(&item, "instance");
		struct kvb_jat length = kvb_jat_get(&item, "matched");

		instances[i] = kvb_jat_name(&d, &name);
		matched[i] = kvb_jat_u32(&d, &length, 0, KVB_MAX_KEYS);
	}
	if (kvb_jdoc_ok(&d))
		*out = (struct kvb_match_res){ count, instances, matched };
	return kvb_jdoc_close(&d);
}

/* ---- lookup ------------------------------------------------------------------------------------- */

int kvb_v1_read_lookup_req(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_lookup_req *out, struct kvb_error *err)
{
	static const char *const fields[] = { "keys",  "keys_int", "keys_hex", "mode",
					      "specs", "lease_ms", "partial",  "window", NULL };
	struct kvb_lookup_req r = { .tenant = in->tenant, .lease_ms = KVB_LEASE_DEFAULT };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JREQUEST, KVB_JMAX_KEYS, err);
	struct kvb_jat mode = kvb_jat_get(&top, "mode"), specs = kvb_jat_get(&top, "specs"),
		       lease = kvb_jat_get(&top, "lease_ms"),
		       partial = kvb_jat_get(&top, "partial"), window = kvb_jat_get(&top, "window");

	kvb_jat_object(&d, &top, fields);
	r.keys = kvb_jat_keys(&d, &top, &r.n_keys);
	if (mode.v)
		r.mode = (enum kvb_lookup_mode)kvb_jat_word(&d, &mode, modes);
	if (specs.v)
		r.specs = kvb_jat_names(&d, &specs, 1, KVB_MAX_SPECS, &r.n_specs);
	if (lease.v)
		r.lease_ms = kvb_jat_u32(&d, &lease, 0, KVB_LEASE_DEFAULT - 1);
	if (partial.v)
		r.partial = kvb_jat_bool(&d, &partial);
	if (window.v)
		r.window = kvb_jat_u32(&d, &window, 0, KVB_MAX_KEYS);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

void kvb_v1_write_lookup_req(struct kvb_buf *out, const struct kvb_lookup_req *req,
			     const struct kvb_key_input *keys)
{
	kvb_jout_begin(out);
	kvb_jout_field_string(out, "mode", modes[req->mode]);
	if (req->n_specs)
		kvb_jout_field_strings(out, "specs", req->specs, req->n_specs);
	if (req->lease_ms != KVB_LEASE_DEFAULT)
		kvb_jout_field_u64(out, "lease_ms", req->lease_ms);
	if (req->partial)
		kvb_jout_field_bool(out, "partial", true);
	if (req->window)
		kvb_jout_field_u64(out, "window", req->window);
	kvb_jout_keys(out, keys);
	kvb_jout_close(out, '}');
}

static void write_hit(struct kvb_buf *b, const struct kvb_lookup_res *r, uint32_t i, bool first)
{
	char *p = kvb_jraw_begin(b, 64 + r->n_specs * KVB_JRAW_LOCATION);

	if (!p)
		return;
	if (!first)
		*p++ = ',';
	p = kvb_jraw_text(p, "{\"index\":");
	p = kvb_jraw_digits(p, i);
	p = kvb_jraw_locations(p, r->loc + (size_t)i * r->n_specs, r->n_specs);
	*p++ = '}';
	kvb_jraw_end(b, p);
}

void kvb_v1_write_lookup_res(struct kvb_buf *out, const struct kvb_lookup_res *r)
{
	bool first = true;

	kvb_buf_reserve(out, (size_t)LOCATION_BYTES * (1 + (size_t)r->matched * r->n_specs));
	kvb_jout_begin(out);
	kvb_jout_field_u64(out, "n_keys", r->n_keys);
	kvb_jout_field_u64(out, "matched", r->matched);
	kvb_jout_field_u64(out, "lease_ms", r->lease_ms);
	kvb_jout_field_strings(out, "specs", r->specs, r->n_specs);
	kvb_jout_files(out, &r->files);
	kvb_jout_name(out, "blocks");
	kvb_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n_keys; i++) {
		if (!r->hit[i])
			continue;
		write_hit(out, r, i, first);
		first = false;
	}
	kvb_jout_close(out, ']');
	kvb_jout_close(out, '}');
}

/* One hit; `next` is the first position that it may have. */
static uint32_t read_hit(struct kvb_jdoc *d, const struct kvb_jat *at, struct kvb_lookup_res *r,
			 uint32_t next)
{
	struct kvb_jat index = kvb_jat_get(at, "index");
	uint32_t i = kvb_jat_u32(d, &index, next, r->n_keys - 1);
	struct kvb_location *loc = r->loc + (size_t)i * r->n_specs;
	uint32_t s = 0;

	kvb_jat_locations(d, at, r->files.n, loc, r->n_specs);
	while (kvb_jdoc_ok(d) && s < r->n_specs && loc[s].length == 0)
		s++;
	if (s == r->n_specs)
		kvb_jdoc_fail(d, at, KVB_E_INVALID, "a hit without any location");
	if (kvb_jdoc_ok(d))
		r->hit[i] = true;
	return i + 1;
}

int kvb_v1_read_lookup_res(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_lookup_res *out, struct kvb_error *err)
{
	struct kvb_lookup_res r = { .n_keys = 0 };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JANSWER, KVB_JMAX_ANSWER, err);
	struct kvb_jat n_keys = kvb_jat_get(&top, "n_keys"), matched = kvb_jat_get(&top, "matched"),
		       lease = kvb_jat_get(&top, "lease_ms"), specs = kvb_jat_get(&top, "specs"),
		       blocks = kvb_jat_get(&top, "blocks"), item = kvb_jat_first(&blocks);
	uint32_t hits, next = 0;

	r.n_keys = kvb_jat_u32(&d, &n_keys, 0, KVB_MAX_KEYS);
	r.lease_ms = kvb_jat_u32(&d, &lease, 0, UINT32_MAX);
	r.specs = kvb_jat_names(&d, &specs, 0, KVB_MAX_SPECS, &r.n_specs);
	kvb_jat_files(&d, &top, &r.files);
	hits = kvb_jat_array(&d, &blocks, 0, r.n_keys);
	r.matched = kvb_jat_u32(&d, &matched, 0, hits);
	r.hit = kvb_jdoc_alloc(&d, r.n_keys, sizeof *r.hit);
	r.loc = kvb_jdoc_alloc(&d, (size_t)r.n_keys * r.n_specs, sizeof *r.loc);
	for (uint32_t i = 0; kvb_jdoc_ok(&d) && i < hits; i++, kvb_jat_next(&item))
		next = read_hit(&d, &item, &r, next);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}
