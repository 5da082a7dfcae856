/*
 * lookup.c - match and lookup in JSON: requests that are read, answers that are written.
 *
 * A lookup's answer has one entry for each hit, with its position in the request, so that misses
 * cost nothing; or, where the request asks for it, runs of neighbours (columns.c).
 *
 * No state; any thread.
 */
#include "columns.h"
#include "parts.h"

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
					      "specs", "lease_ms", "partial",  "window",
					      "runs",  NULL };
	struct skv_lookup_req r = { .tenant = in->tenant };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JMAX_KEYS, err);
	struct skv_jat mode = skv_jat_get(&top, "mode"), specs = skv_jat_get(&top, "specs");

	skv_jat_object(&d, &top, fields);
	r.keys = skv_jat_keys(&d, &top, &r.n_keys);
	if (mode.v)
		r.mode = (enum skv_lookup_mode)skv_jat_word(&d, &mode, modes);
	if (specs.v)
		r.specs = skv_jat_names(&d, &specs, 1, SKV_MAX_SPECS, &r.n_specs);
	r.lease_ms = skv_jat_number(&d, &top, "lease_ms", SKV_LEASE_DEFAULT - 1, SKV_LEASE_DEFAULT);
	r.partial = skv_jat_flag(&d, &top, "partial");
	r.window = skv_jat_number(&d, &top, "window", SKV_MAX_KEYS, 0);
	r.runs = skv_jat_flag(&d, &top, "runs");
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}

static void write_hits(struct skv_buf *out, const struct skv_lookup_res *r)
{
	skv_buf_reserve(out, SKV_JOUT_LOCATION * (1 + (size_t)r->matched * r->n_specs));
	skv_jout_name(out, "blocks");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n_keys; i++) {
		const size_t at = (size_t)i * r->n_specs;
		const struct skv_location *copy = r->copy ? r->copy + at : NULL;

		if (r->hit[i])
			skv_jout_block(out, i, NULL, r->loc + at,
				       copy && skv_located(copy, r->n_specs) ? copy : NULL,
				       r->n_specs);
	}
	skv_jout_close(out, ']');
}

void skv_v1_write_lookup_res(struct skv_buf *out, const struct skv_lookup_res *r)
{
	skv_jout_begin(out);
	skv_jout_field_u64(out, "n_keys", r->n_keys);
	skv_jout_field_u64(out, "matched", r->matched);
	skv_jout_field_u64(out, "lease_ms", r->lease_ms);
	skv_jout_field_strings(out, "specs", r->specs, r->n_specs);
	skv_jout_files(out, &r->files);
	if (r->runs)
		skv_put_found(out, true, r);
	else
		write_hits(out, r);
	skv_jout_close(out, '}');
}
