/*
 * pb_query.c - match, lookup and delete in protobuf: requests and answers, both directions.
 *
 * No state; any thread.
 */
#include "pb.h"

enum { MATCH_INSTANCES = 4, MATCHED_INSTANCES = 1, MATCHED_COUNTS = 2 };
enum { LOOKUP_MODE = 4, LOOKUP_SPECS = 5, LOOKUP_LEASE = 6, LOOKUP_PARTIAL = 7, LOOKUP_WINDOW = 8 };
enum {
	FOUND_N_KEYS = 1,
	FOUND_MATCHED = 2,
	FOUND_LEASE = 3,
	FOUND_SPECS = 4,
	FOUND_FILES = 5,
	FOUND_RUNS = 6,
	FOUND_COLUMNS = 7,
};

enum { TRIM_FROM = 1, TRIM_TO = 2 };

#define MAX_FILES 65536u /* of one answer, for the reader */
#define HEAD_MAX 4096u   /* room for all but files and columns, to grow the buffer once */

/* ---- match -------------------------------------------------------------------------------------- */

int kvb_pb_read_match_req(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_match_req *out, struct kvb_error *err)
{
	struct kvb_match_req m = { .tenant = in->tenant };
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd message = kvb_rd_make(text, n), r = message;
	struct kvb_pbkeys keys = { 0 };
	struct kvb_pbf f;

	while (kvb_pb_next(&d, &r, &f)) {
		kvb_pb_keys_field(&d, &keys, &f);
		m.n_instances += f.num == MATCH_INSTANCES;
	}
	kvb_pb_count(&d, "instances", m.n_instances, 1, KVB_MAX_INSTANCES_PER_MATCH);
	m.instances = kvb_pb_names(&d, message, MATCH_INSTANCES, "instances", m.n_instances);
	m.keys = kvb_pb_keys(&d, &keys, message, &m.n_keys);
	if (kvb_pb_ok(&d))
		*out = m;
	return d.status;
}

void kvb_pb_write_match_req(struct kvb_buf *out, const struct kvb_match_req *req,
			    const struct kvb_key_input *keys)
{
	kvb_pb_put_keys(out, keys);
	kvb_pb_put_texts(out, MATCH_INSTANCES, req->instances, req->n_instances);
}

void kvb_pb_write_match_res(struct kvb_buf *out, const struct kvb_match_res *r)
{
	size_t begin;

	kvb_pb_put_texts(out, MATCHED_INSTANCES, r->instances, r->n_instances);
	if (r->n_instances == 0)
		return;
	begin = kvb_pb_put_begin(out, MATCHED_COUNTS, 5 * (size_t)r->n_instances);
	for (uint32_t i = 0; i < r->n_instances; i++)
		kvb_put_varint(out, r->matched[i]);
	kvb_pb_put_end(out, begin);
}

int kvb_pb_read_match_res(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_match_res *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd message = kvb_rd_make(text, n), r = message;
	struct kvb_match_res m = { 0 };
	size_t count = 0;
	uint64_t *counts;
	struct kvb_pbf f;

	while (kvb_pb_next(&d, &r, &f)) {
		m.n_instances += f.num == MATCHED_INSTANCES;
		if (f.num == MATCHED_COUNTS)
			count += kvb_pb_numbers(&d, &f, "matched", PB_VARINT);
	}
	kvb_pb_count(&d, "instances", m.n_instances, 0, KVB_MAX_INSTANCES_PER_MATCH);
	kvb_pb_count(&d, "matched", count, m.n_instances, m.n_instances);
	m.instances = kvb_pb_names(&d, message, MATCHED_INSTANCES, "instances", m.n_instances);
	counts = kvb_pb_all_numbers(&d, message, MATCHED_COUNTS, "matched", PB_VARINT, count);
	m.matched = kvb_pb_alloc(&d, count, sizeof *m.matched);
	for (uint32_t i = 0; kvb_pb_ok(&d) && i < count; i++) {
		if (counts[i] > KVB_MAX_KEYS)
			kvb_pb_fail(&d, "matched", i, KVB_E_INVALID, "must be at most %u",
				    KVB_MAX_KEYS);
		m.matched[i] = (uint32_t)counts[i];
	}
	if (kvb_pb_ok(&d))
		*out = m;
	return d.status;
}

/* ---- lookup ------------------------------------------------------------------------------------- */

int kvb_pb_read_lookup_req(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_lookup_req *out, struct kvb_error *err)
{
	struct kvb_lookup_req q = { .tenant = in->tenant, .lease_ms = KVB_LEASE_DEFAULT };
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd message = kvb_rd_make(text, n), r = message;
	struct kvb_pbkeys keys = { 0 };
	struct kvb_pbf f;

	while (kvb_pb_next(&d, &r, &f)) {
		if (f.num == LOOKUP_MODE)
			q.mode = (enum kvb_lookup_mode)kvb_pb_u32(&d, &f, "mode", KVB_LOOKUP_WINDOW);
		else if (f.num == LOOKUP_LEASE)
			q.lease_ms = kvb_pb_u32(&d, &f, "lease_ms", KVB_LEASE_DEFAULT - 1);
		else if (f.num == LOOKUP_PARTIAL)
			q.partial = kvb_pb_u64(&d, &f, "partial", UINT64_MAX) != 0;
		else if (f.num == LOOKUP_WINDOW)
			q.window = kvb_pb_u32(&d, &f, "window", KVB_MAX_KEYS);
		else if (f.num == LOOKUP_SPECS)
			q.n_specs++;
		else
			kvb_pb_keys_field(&d, &keys, &f);
	}
	q.keys = kvb_pb_keys(&d, &keys, message, &q.n_keys);
	kvb_pb_count(&d, "specs", q.n_specs, 0, KVB_MAX_SPECS);
	if (q.n_specs)
		q.specs = kvb_pb_names(&d, message, LOOKUP_SPECS, "specs", q.n_specs);
	if (kvb_pb_ok(&d))
		*out = q;
	return d.status;
}

void kvb_pb_write_lookup_req(struct kvb_buf *out, const struct kvb_lookup_req *req,
			     const struct kvb_key_input *keys)
{
	kvb_pb_put_keys(out, keys);
	kvb_pb_put_uint(out, LOOKUP_MODE, req->mode);
	kvb_pb_put_texts(out, LOOKUP_SPECS, req->specs, req->n_specs);
	if (req->lease_ms != KVB_LEASE_DEFAULT)
		kvb_pb_put_present(out, LOOKUP_LEASE, req->lease_ms);
	kvb_pb_put_uint(out, LOOKUP_PARTIAL, req->partial);
	kvb_pb_put_uint(out, LOOKUP_WINDOW, req->window);
}

/* Misses, hits, misses, hits ...; returns how many hits there are. */
static uint32_t put_hits(struct kvb_buf *b, const struct kvb_lookup_res *r)
{
	size_t before = b->len;
	size_t begin = kvb_pb_put_begin(b, FOUND_RUNS, 3 * (size_t)r->n_keys + 5);
	uint8_t *p;
	bool hit = false;
	uint32_t run = 0, hits = 0;

	if (b->failed)
		return 0;
	p = b->data + begin;
	for (uint32_t i = 0; i < r->n_keys; i++) {
		if (r->hit[i] != hit) {
			p = kvb_pb_raw_varint(p, run);
			hit = !hit;
			run = 0;
		}
		hits += hit;
		run++;
	}
	if (hit)
		p = kvb_pb_raw_varint(p, run);
	b->len = (size_t)(p - b->data);
	kvb_pb_put_end(b, begin);
	if (hits == 0)
		b->len = before; /* an empty packed field is left out */
	return hits;
}

void kvb_pb_write_lookup_res(struct kvb_buf *out, const struct kvb_lookup_res *r)
{
	struct kvb_pbrows rows = { .mark = (const uint8_t *)r->hit,
				   .located = true,
				   .n_rows = r->n_keys,
				   .n_specs = r->n_specs };

	kvb_buf_reserve(out, HEAD_MAX);
	kvb_pb_put_uint(out, FOUND_N_KEYS, r->n_keys);
	kvb_pb_put_uint(out, FOUND_MATCHED, r->matched);
	kvb_pb_put_uint(out, FOUND_LEASE, r->lease_ms);
	kvb_pb_put_texts(out, FOUND_SPECS, r->specs, r->n_specs);
	kvb_pb_put_files(out, FOUND_FILES, &r->files);
	rows.n_located = put_hits(out, r);
	kvb_pb_put_columns(out, FOUND_COLUMNS, &rows, r->loc);
}

/* Fills r->hit from the runs; returns how many hits there are. */
static uint32_t read_hits(struct kvb_pbdoc *d, struct kvb_rd message, struct kvb_lookup_res *r,
			  size_t n_runs)
{
	uint64_t *runs = kvb_pb_all_numbers(d, message, FOUND_RUNS, "hit_runs", PB_VARINT, n_runs);
	uint32_t at = 0, hits = 0;

	for (size_t i = 0; kvb_pb_ok(d) && i < n_runs; i++) {
		if (runs[i] > r->n_keys - at) {
			kvb_pb_fail(d, "hit_runs", (uint32_t)i, KVB_E_INVALID, "more than %u keys",
				    r->n_keys);
			break;
		}
		memset(r->hit + at, i % 2, runs[i]);
		at += (uint32_t)runs[i];
		hits += i % 2 ? (uint32_t)runs[i] : 0;
	}
	return hits;
}

/* What the fields of an answer count to, before its arrays are read. */
struct found {
	size_t n_specs, n_files, n_runs, n_columns;
};

static bool located_anywhere(const struct kvb_location *loc, uint32_t n)
{
	while (n && loc[n - 1].length == 0)
		n--;
	return n > 0;
}

static void read_found(struct kvb_pbdoc *d, struct kvb_rd message, struct kvb_lookup_res *r,
		       const struct found *n)
{
	struct kvb_pbrows rows = { .located = true, .n_rows = r->n_keys };

	kvb_pb_count(d, "specs", n->n_specs, 0, KVB_MAX_SPECS);
	kvb_pb_count(d, "files", n->n_files, 0, MAX_FILES);
	kvb_pb_count(d, "columns", n->n_columns, 0, KVB_MAX_SPECS);
	kvb_pb_count(d, "hit_runs", n->n_runs, 0, r->n_keys + 1);
	if (!kvb_pb_ok(d))
		return;
	r->n_specs = (uint32_t)n->n_specs;
	r->specs = kvb_pb_names(d, message, FOUND_SPECS, "specs", r->n_specs);
	kvb_pb_files(d, message, FOUND_FILES, (uint32_t)n->n_files, &r->files);
	r->hit = kvb_pb_alloc(d, r->n_keys, sizeof *r->hit);
	r->loc = kvb_pb_alloc(d, (size_t)r->n_keys * r->n_specs, sizeof *r->loc);
	rows.n_located = read_hits(d, message, r, n->n_runs);
	if (r->matched > rows.n_located)
		kvb_pb_fail(d, "matched", PB_NO_INDEX, KVB_E_INVALID, "must be at most %u, not %u",
			    rows.n_located, r->matched);
	rows.mark = (const uint8_t *)r->hit;
	rows.n_specs = r->n_specs;
	if (kvb_pb_ok(d))
		kvb_pb_columns(d, message, FOUND_COLUMNS, (uint32_t)n->n_columns, &rows, r->files.n, r->loc);
	for (uint32_t i = 0; kvb_pb_ok(d) && i < r->n_keys; i++)
		if (r->hit[i] && !located_anywhere(&r->loc[(size_t)i * r->n_specs], r->n_specs))
			kvb_pb_fail(d, "columns", PB_NO_INDEX, KVB_E_INVALID, "a hit without any location");
}

int kvb_pb_read_lookup_res(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_lookup_res *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd message = kvb_rd_make(text, n), r = message;
	struct kvb_lookup_res a = { .n_keys = 0 };
	struct found count = { 0 };
	struct kvb_pbf f;

	while (kvb_pb_next(&d, &r, &f)) {
		if (f.num == FOUND_N_KEYS)
			a.n_keys = kvb_pb_u32(&d, &f, "n_keys", KVB_MAX_KEYS);
		else if (f.num == FOUND_MATCHED)
			a.matched = kvb_pb_u32(&d, &f, "matched", KVB_MAX_KEYS);
		else if (f.num == FOUND_LEASE)
			a.lease_ms = kvb_pb_u32(&d, &f, "lease_ms", UINT32_MAX);
		else if (f.num == FOUND_RUNS)
			count.n_runs += kvb_pb_numbers(&d, &f, "hit_runs", PB_VARINT);
		count.n_specs += f.num == FOUND_SPECS;
		count.n_files += f.num == FOUND_FILES;
		count.n_columns += f.num == FOUND_COLUMNS;
	}
	read_found(&d, message, &a, &count);
	if (kvb_pb_ok(&d))
		*out = a;
	return d.status;
}

/* ---- delete ------------------------------------------------------------------------------------- */

int kvb_pb_read_delete_req(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_delete_req *out, struct kvb_error *err)
{
	struct kvb_delete_req q = { .tenant = in->tenant };
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd message = kvb_rd_make(text, n), r = message;
	struct kvb_pbkeys keys = { 0 };
	struct kvb_pbf f;

	while (kvb_pb_next(&d, &r, &f))
		kvb_pb_keys_field(&d, &keys, &f);
	q.keys = kvb_pb_keys(&d, &keys, message, &q.n_keys);
	if (kvb_pb_ok(&d))
		*out = q;
	return d.status;
}

void kvb_pb_write_delete_req(struct kvb_buf *out, const struct kvb_delete_req *req,
			     const struct kvb_key_input *keys)
{
	(void)req; /* the instance is in the path, the keys in `keys` */
	kvb_pb_put_keys(out, keys);
}

void kvb_pb_write_delete_res(struct kvb_buf *out, const struct kvb_delete_res *r)
{
	kvb_pb_put_uint(out, 1, r->deleted);
	kvb_pb_put_uint(out, 2, r->pinned);
}

int kvb_pb_read_delete_res(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_delete_res *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd r = kvb_rd_make(text, n);
	struct kvb_delete_res a = { 0 };
	struct kvb_pbf f;

	while (kvb_pb_next(&d, &r, &f)) {
		if (f.num == 1)
			a.deleted = kvb_pb_u32(&d, &f, "deleted", UINT32_MAX);
		else if (f.num == 2)
			a.pinned = kvb_pb_u32(&d, &f, "pinned", UINT32_MAX);
	}
	if (kvb_pb_ok(&d))
		*out = a;
	return d.status;
}

/* ---- trim --------------------------------------------------------------------------------------- */

int kvb_pb_read_trim_req(const struct kvb_v1_in *in, const char *text, size_t n,
			 struct kvb_trim_req *out, struct kvb_error *err)
{
	struct kvb_trim_req q = { .tenant = in->tenant };
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd r = kvb_rd_make(text, n);
	bool to = false;
	struct kvb_pbf f;

	while (kvb_pb_next(&d, &r, &f)) {
		if (f.num == TRIM_FROM)
			q.from_ms = kvb_pb_u64(&d, &f, "from_ms", KVB_MAX_WALL_MS);
		if (f.num == TRIM_TO)
			q.to_ms = kvb_pb_u64(&d, &f, "to_ms", KVB_MAX_WALL_MS);
		to |= f.num == TRIM_TO;
	}
	if (kvb_pb_ok(&d) && !to)
		kvb_pb_fail(&d, "to_ms", PB_NO_INDEX, KVB_E_INVALID, "the field is required");
	if (kvb_pb_ok(&d))
		*out = q;
	return d.status;
}

void kvb_pb_write_trim_req(struct kvb_buf *out, const struct kvb_trim_req *req)
{
	kvb_pb_put_uint(out, TRIM_FROM, req->from_ms);
	kvb_pb_put_present(out, TRIM_TO, req->to_ms < KVB_MAX_WALL_MS ? req->to_ms : KVB_MAX_WALL_MS);
}

void kvb_pb_write_trim_res(struct kvb_buf *out, const struct kvb_trim_res *r) { kvb_pb_put_uint(out, 1, r->deleted); }

int kvb_pb_read_trim_res(const struct kvb_v1_in *in, const char *text, size_t n,
			 struct kvb_trim_res *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd r = kvb_rd_make(text, n);
	struct kvb_trim_res a = { 0 };
	struct kvb_pbf f;

	while (kvb_pb_next(&d, &r, &f))
		if (f.num == 1)
			a.deleted = kvb_pb_u64(&d, &f, "deleted", KVB_MAX_WALL_MS);
	if (kvb_pb_ok(&d))
		*out = a;
	return d.status;
}
