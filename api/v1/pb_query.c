/*
 * pb_query.c - match and lookup in protobuf: requests and answers, both directions.
 *
 * No state; any thread.
 */
#include "pb.h"

#include <skv/check.h>

enum { MATCH_INSTANCES = 4, MATCHED_INSTANCES = 1, MATCHED_COUNTS = 2 };
enum { LOOKUP_MODE = 4, LOOKUP_SPECS = 5, LOOKUP_LEASE = 6, LOOKUP_PARTIAL = 7, LOOKUP_WINDOW = 8 };
enum {
	FOUND_N_KEYS = 1,
	FOUND_MATCHED = 2,
	FOUND_LEASE = 3,
	FOUND_SPECS = 4,
	FOUND_FILES = 5,
};

#define MAX_FILES 65536u /* of one answer, for the reader */
#define HEAD_MAX 4096u   /* room for all but files and columns, to grow the buffer once */

/* ---- match ----------------------------------------------------------------------------------- */

int skv_pb_read_match_req(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_match_req *out, struct skv_error *err)
{
	struct skv_match_req m = { .tenant = in->tenant };
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd message = skv_rd_make(text, n), r = message;
	struct skv_pbkeys keys = { 0 };
	struct pb_field f;

	while (skv_pb_next(&d, &r, &f)) {
		skv_pb_keys_fields(&d, &keys, &r, &f);
		m.n_instances += f.number == MATCH_INSTANCES;
	}
	skv_pb_count(&d, "instances", m.n_instances, 1, SKV_MAX_INSTANCES_PER_MATCH);
	m.instances = skv_pb_model_names(&d, message, MATCH_INSTANCES, "instances", m.n_instances);
	m.keys = skv_pb_keys(&d, &keys, message, &m.n_keys);
	if (skv_pb_ok(&d))
		*out = m;
	return d.status;
}

void skv_pb_write_match_req(struct skv_buf *out, const struct skv_match_req *req,
			    const struct skv_key_input *keys)
{
	skv_pb_put_keys(out, keys);
	skv_pb_put_texts(out, MATCH_INSTANCES, req->instances, req->n_instances);
}

void skv_pb_write_match_res(struct skv_buf *out, const struct skv_match_res *r)
{
	skv_pb_put_texts(out, MATCHED_INSTANCES, r->instances, r->n_instances);
	skv_pb_put_numbers(out, MATCHED_COUNTS, r->matched, r->n_instances);
}

int skv_pb_read_match_res(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_match_res *out, struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd message = skv_rd_make(text, n), r = message;
	struct skv_match_res m = { 0 };
	size_t count = 0;
	uint64_t *counts;
	struct pb_field f;

	while (skv_pb_next(&d, &r, &f)) {
		m.n_instances += f.number == MATCHED_INSTANCES;
		if (f.number == MATCHED_COUNTS)
			count += skv_pb_numbers(&d, &f, "matched", PB_VARINT);
	}
	skv_pb_count(&d, "instances", m.n_instances, 0, SKV_MAX_INSTANCES_PER_MATCH);
	skv_pb_count(&d, "matched", count, m.n_instances, m.n_instances);
	m.instances =
		skv_pb_model_names(&d, message, MATCHED_INSTANCES, "instances", m.n_instances);
	counts = skv_pb_all_numbers(&d, message, MATCHED_COUNTS, "matched", PB_VARINT, count);
	m.matched = skv_pb_alloc(&d, count, sizeof *m.matched);
	for (uint32_t i = 0; skv_pb_ok(&d) && i < count; i++) {
		if (counts[i] > SKV_MAX_KEYS)
			skv_pb_fail(&d, "matched", i, SKV_E_INVALID, "must be at most %u",
				    SKV_MAX_KEYS);
		m.matched[i] = (uint32_t)counts[i];
	}
	if (skv_pb_ok(&d))
		*out = m;
	return d.status;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

int skv_pb_read_lookup_req(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_lookup_req *out, struct skv_error *err)
{
	struct skv_lookup_req q = { .tenant = in->tenant, .lease_ms = SKV_LEASE_DEFAULT };
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd message = skv_rd_make(text, n), r = message;
	struct skv_pbkeys keys = { 0 };
	struct pb_field f;

	while (skv_pb_next(&d, &r, &f)) {
		if (f.number == LOOKUP_MODE)
			q.mode = (enum skv_lookup_mode)skv_pb_u32(&d, &f, "mode",
								  SKV_LOOKUP_TRAILING);
		else if (f.number == LOOKUP_LEASE)
			q.lease_ms = skv_pb_u32(&d, &f, "lease_ms", SKV_LEASE_DEFAULT - 1);
		else if (f.number == LOOKUP_PARTIAL)
			q.partial = skv_pb_u64(&d, &f, "partial", UINT64_MAX) != 0;
		else if (f.number == LOOKUP_WINDOW)
			q.window = skv_pb_u32(&d, &f, "window", SKV_MAX_KEYS);
		else if (f.number == LOOKUP_SPECS)
			q.n_specs++;
		else
			skv_pb_keys_fields(&d, &keys, &r, &f);
	}
	q.keys = skv_pb_keys(&d, &keys, message, &q.n_keys);
	skv_pb_count(&d, "specs", q.n_specs, 0, SKV_MAX_SPECS);
	if (q.n_specs)
		q.specs = skv_pb_names(&d, message, LOOKUP_SPECS, "specs", q.n_specs);
	if (skv_pb_ok(&d))
		*out = q;
	return d.status;
}

void skv_pb_write_lookup_req(struct skv_buf *out, const struct skv_lookup_req *req,
			     const struct skv_key_input *keys)
{
	skv_pb_put_keys(out, keys);
	skv_pb_put_uint(out, LOOKUP_MODE, req->mode);
	skv_pb_put_texts(out, LOOKUP_SPECS, req->specs, req->n_specs);
	if (req->lease_ms != SKV_LEASE_DEFAULT)
		skv_pb_put_present(out, LOOKUP_LEASE, req->lease_ms);
	skv_pb_put_uint(out, LOOKUP_PARTIAL, req->partial);
	skv_pb_put_uint(out, LOOKUP_WINDOW, req->window);
}

void skv_pb_write_lookup_res(struct skv_buf *out, const struct skv_lookup_res *r)
{
	skv_buf_reserve(out, HEAD_MAX);
	skv_pb_put_uint(out, FOUND_N_KEYS, r->n_keys);
	skv_pb_put_uint(out, FOUND_MATCHED, r->matched);
	skv_pb_put_uint(out, FOUND_LEASE, r->lease_ms);
	skv_pb_put_texts(out, FOUND_SPECS, r->specs, r->n_specs);
	skv_pb_put_files(out, FOUND_FILES, &r->files);
	skv_put_found(out, false, r);
}

/* Fills r->hit from the runs; returns how many hits there are. */
static uint32_t read_hits(struct skv_pbdoc *d, struct skv_rd message, struct skv_lookup_res *r,
			  size_t n_runs)
{
	uint64_t *runs = skv_pb_all_numbers(d, message, FOUND_RUNS, "hit_runs", PB_VARINT, n_runs);
	uint32_t at = 0, hits = 0;

	for (size_t i = 0; skv_pb_ok(d) && i < n_runs; i++) {
		if (runs[i] > r->n_keys - at) {
			skv_pb_fail(d, "hit_runs", (uint32_t)i, SKV_E_INVALID, "more than %u keys",
				    r->n_keys);
			break;
		}
		SKV_CHECK(at <= r->n_keys);
		memset(r->hit + at, i % 2, runs[i]);
		at += (uint32_t)runs[i];
		hits += i % 2 ? (uint32_t)runs[i] : 0;
	}
	return hits;
}

/* Array sizes of an answer, counted before the arrays are read. */
struct found {
	size_t n_specs, n_files, n_runs, n_columns, n_copies;
};

static void read_found(struct skv_pbdoc *d, struct skv_rd message, struct skv_lookup_res *r,
		       const struct found *n)
{
	struct skv_col_rows rows = { .located = true, .n_rows = r->n_keys };

	skv_pb_count(d, "specs", n->n_specs, 0, SKV_MAX_SPECS);
	skv_pb_count(d, "files", n->n_files, 0, MAX_FILES);
	skv_pb_count(d, "columns", n->n_columns, 0, SKV_MAX_SPECS);
	skv_pb_count(d, "copies", n->n_copies, 0, SKV_MAX_SPECS);
	skv_pb_count(d, "hit_runs", n->n_runs, 0, r->n_keys + 1);
	if (!skv_pb_ok(d))
		return;
	r->n_specs = (uint32_t)n->n_specs;
	r->specs = skv_pb_names(d, message, FOUND_SPECS, "specs", r->n_specs);
	skv_pb_files(d, message, FOUND_FILES, (uint32_t)n->n_files, &r->files);
	r->hit = skv_pb_alloc(d, r->n_keys, sizeof *r->hit);
	r->loc = skv_pb_alloc(d, (size_t)r->n_keys * r->n_specs, sizeof *r->loc);
	rows.n_located = read_hits(d, message, r, n->n_runs);
	if (r->matched > rows.n_located)
		skv_pb_fail(d, "matched", PB_NO_INDEX, SKV_E_INVALID, "must be at most %u, not %u",
			    rows.n_located, r->matched);
	SKV_CHECK(rows.n_located <= r->n_keys);
	rows.mark = (const uint8_t *)r->hit;
	rows.n_specs = r->n_specs;
	if (skv_pb_ok(d))
		skv_pb_columns(d, message, FOUND_COLUMNS, (uint32_t)n->n_columns, &rows, r->files.n,
			       r->loc);
	if (n->n_copies && skv_pb_ok(d))
		r->copy = skv_pb_alloc(d, (size_t)r->n_keys * r->n_specs, sizeof *r->copy);
	if (r->copy && skv_pb_ok(d))
		skv_pb_columns(d, message, FOUND_COPIES, (uint32_t)n->n_copies, &rows, r->files.n,
			       r->copy);
	for (uint32_t i = 0; skv_pb_ok(d) && i < r->n_keys; i++)
		if (r->hit[i] && !skv_located(&r->loc[(size_t)i * r->n_specs], r->n_specs))
			skv_pb_fail(d, "columns", PB_NO_INDEX, SKV_E_INVALID,
				    "a hit without any location");
}

int skv_pb_read_lookup_res(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_lookup_res *out, struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd message = skv_rd_make(text, n), r = message;
	struct skv_lookup_res a = { .n_keys = 0 };
	struct found count = { 0 };
	struct pb_field f;

	while (skv_pb_next(&d, &r, &f)) {
		if (f.number == FOUND_N_KEYS)
			a.n_keys = skv_pb_u32(&d, &f, "n_keys", SKV_MAX_KEYS);
		else if (f.number == FOUND_MATCHED)
			a.matched = skv_pb_u32(&d, &f, "matched", SKV_MAX_KEYS);
		else if (f.number == FOUND_LEASE)
			a.lease_ms = skv_pb_u32(&d, &f, "lease_ms", UINT32_MAX);
		else if (f.number == FOUND_RUNS)
			count.n_runs += skv_pb_numbers(&d, &f, "hit_runs", PB_VARINT);
		count.n_specs += f.number == FOUND_SPECS;
		count.n_files += f.number == FOUND_FILES;
		count.n_columns += f.number == FOUND_COLUMNS;
		count.n_copies += f.number == FOUND_COPIES;
	}
	read_found(&d, message, &a, &count);
	if (skv_pb_ok(&d))
		*out = a;
	return d.status;
}
