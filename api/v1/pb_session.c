/*
 * pb_session.c - start and finish in protobuf: requests and answers, both directions.
 *
 * As in JSON, an open session's answer counts all its keys, and a finish must list the successful
 * blocks. No state; any thread.
 */
#include "pb.h"

#include <skv/check.h>

enum {
	REQ_ID = 4,
	REQ_SPECS = 5,
	REQ_DEADLINE = 6,
	REQ_PARENT = 7,
	REQ_PARENT_LAST = 9,
	REQ_INDEPENDENT = 10,
	REQ_SELECTIVE = 11,
	REQ_AVOID = 12
};
enum {
	RES_SESSION = 1,
	RES_STATE = 2,
	RES_DEADLINE = 3,
	RES_N_KEYS = 4,
	RES_N_WRITE = 5,
	RES_SPECS = 6,
	RES_FILES = 7,
	RES_COPY_INSTANCE = 10,
};
enum { FIN_ALL = 1, FIN_COUNT = 2, FIN_MASK = 3, FIN_CHECKSUMS = 4, FIN_QUIESCED = 5 };
enum { ENDED_STATE = 1, ENDED_COMMITTED = 2, ENDED_FAILED = 3, ENDED_DELETED = 4 };

#define MAX_FILES 65536u /* of one answer, for the reader */
#define HEAD_MAX 4096u   /* room for all but files and columns, to grow the buffer once */

/* ---- start ----------------------------------------------------------------------------------- */

int skv_pb_read_start_req(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_start_req *out, struct skv_error *err)
{
	struct skv_start_req q = { .tenant = in->tenant, .request_id = "" };
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd message = skv_rd_make(text, n), r = message;
	struct skv_pbkeys keys = { 0 };
	struct pb_field f, parent = { 0 }, id = { 0 };

	while (skv_pb_next(&d, &r, &f)) {
		if (f.number == REQ_ID)
			id = f;
		else if (f.number == REQ_DEADLINE)
			q.deadline_ms = skv_pb_u32(&d, &f, "deadline_ms", UINT32_MAX);
		else if (f.number == REQ_SPECS)
			q.n_specs++;
		else if (f.number >= REQ_PARENT && f.number <= REQ_PARENT_LAST)
			parent = f;
		else if (f.number == REQ_INDEPENDENT)
			q.independent = skv_pb_u64(&d, &f, "independent", UINT64_MAX) != 0;
		else if (f.number == REQ_SELECTIVE)
			q.selective = skv_pb_u64(&d, &f, "selective", UINT64_MAX) != 0;
		else if (f.number == REQ_AVOID)
			q.n_avoid++;
		else
			skv_pb_keys_fields(&d, &keys, &r, &f);
	}
	if (id.number)
		q.request_id =
			skv_pb_text(&d, &id, "request_id", PB_NO_INDEX, 0, SKV_MAX_REQUEST_ID);
	q.keys = skv_pb_keys(&d, &keys, message, &q.n_keys);
	q.has_parent = parent.number != 0;
	if (q.has_parent)
		q.parent = skv_pb_parent(&d, &parent);
	skv_pb_count(&d, "specs", q.n_specs, 0, SKV_MAX_SPECS);
	if (q.n_specs)
		q.specs = skv_pb_names(&d, message, REQ_SPECS, "specs", q.n_specs);
	skv_pb_count(&d, "avoid", q.n_avoid, 0, SKV_MAX_AVOID);
	if (q.n_avoid)
		q.avoid = skv_pb_names(&d, message, REQ_AVOID, "avoid", q.n_avoid);
	if (skv_pb_ok(&d))
		*out = q;
	return d.status;
}

void skv_pb_write_start_req(struct skv_buf *out, const struct skv_start_req *req,
			    const struct skv_key_input *keys)
{
	skv_pb_put_keys(out, keys);
	skv_pb_put_text(out, REQ_ID, req->request_id);
	skv_pb_put_texts(out, REQ_SPECS, req->specs, req->n_specs);
	skv_pb_put_uint(out, REQ_DEADLINE, req->deadline_ms);
	skv_pb_put_parent(out, keys->parent);
	skv_pb_put_uint(out, REQ_INDEPENDENT, req->independent);
	skv_pb_put_uint(out, REQ_SELECTIVE, req->selective);
	skv_pb_put_texts(out, REQ_AVOID, req->avoid, req->n_avoid);
}

void skv_pb_write_start_res(struct skv_buf *out, const struct skv_start_res *r)
{
	skv_buf_reserve(out, HEAD_MAX);
	skv_pb_put_text(out, RES_SESSION, r->session);
	skv_pb_put_uint(out, RES_STATE, r->state);
	skv_pb_put_uint(out, RES_DEADLINE, r->deadline_ms);
	skv_pb_put_uint(out, RES_N_KEYS, r->n_keys);
	skv_pb_put_uint(out, RES_N_WRITE, r->n_write);
	skv_pb_put_texts(out, RES_SPECS, r->specs, r->n_specs);
	skv_pb_put_files(out, RES_FILES, &r->files);
	if (r->state != SKV_SESSION_OPEN)
		return;
	skv_put_started(out, false, r);
	if (r->copy_instance)
		skv_pb_put_text(out, RES_COPY_INSTANCE, r->copy_instance);
}

/* Fills r->outcome from the runs, which must cover all keys; returns how many are to be written. */
static uint32_t read_outcomes(struct skv_pbdoc *d, struct skv_rd message, struct skv_start_res *r,
			      size_t n_runs)
{
	uint64_t *runs = skv_pb_all_numbers(d, message, RES_OUTCOMES, "outcome_runs", PB_VARINT,
					    n_runs);
	uint32_t at = 0, writes = 0;

	for (size_t i = 0; skv_pb_ok(d) && i < n_runs; i++) {
		uint32_t outcome = runs[i] % 4;
		uint64_t n = runs[i] / 4;

		if (n > r->n_keys - at) {
			skv_pb_fail(d, "outcome_runs", (uint32_t)i, SKV_E_INVALID,
				    "more than %u keys", r->n_keys);
			return 0;
		}
		SKV_CHECK(n <= r->n_keys - at);
		memset(r->outcome + at, (int)outcome, n);
		at += (uint32_t)n;
		writes += outcome == SKV_START_WRITE ? (uint32_t)n : 0;
	}
	if (at != r->n_keys)
		skv_pb_fail(d, "outcome_runs", PB_NO_INDEX, SKV_E_INVALID,
			    "%u outcomes for %u keys", at, r->n_keys);
	return writes;
}

/* Array sizes of an answer, counted before the arrays are read. */
struct counts {
	size_t n_specs, n_files, n_runs, n_columns;
};

static void read_blocks(struct skv_pbdoc *d, struct skv_rd message, struct skv_start_res *r,
			const struct counts *n)
{
	struct skv_col_rows rows = { .located = SKV_START_WRITE, .n_rows = r->n_keys };

	skv_pb_count(d, "specs", n->n_specs, 0, SKV_MAX_SPECS);
	skv_pb_count(d, "files", n->n_files, 0, MAX_FILES);
	skv_pb_count(d, "columns", n->n_columns, 0, SKV_MAX_SPECS);
	skv_pb_count(d, "outcome_runs", n->n_runs, 0, r->n_keys);
	if (!skv_pb_ok(d))
		return;
	r->n_specs = (uint32_t)n->n_specs;
	r->specs = skv_pb_names(d, message, RES_SPECS, "specs", r->n_specs);
	skv_pb_files(d, message, RES_FILES, (uint32_t)n->n_files, &r->files);
	r->outcome = skv_pb_alloc(d, r->n_keys, sizeof *r->outcome);
	r->loc = skv_pb_alloc(d, (size_t)r->n_keys * r->n_specs, sizeof *r->loc);
	if (!skv_pb_ok(d))
		return;
	/* The session's keys may not be counted: nothing is to be written. */
	if (r->state != SKV_SESSION_OPEN) {
		memset(r->outcome, SKV_START_BUSY, r->n_keys);
		return;
	}
	rows.n_located = read_outcomes(d, message, r, n->n_runs);
	if (rows.n_located != r->n_write)
		skv_pb_fail(d, "n_write", PB_NO_INDEX, SKV_E_INVALID,
			    "there are %u blocks to write", rows.n_located);
	rows.mark = r->outcome;
	rows.n_specs = r->n_specs;
	if (skv_pb_ok(d))
		skv_pb_columns(d, message, RES_COLUMNS, (uint32_t)n->n_columns, &rows, r->files.n,
			       r->loc);
}

static void read_session(struct skv_pbdoc *d, const struct pb_field *f, struct skv_start_res *r)
{
	const char *s = skv_pb_text(d, f, "session", PB_NO_INDEX, 0, SKV_SESSION_ID_HEX);
	struct skv_key ignored;

	if (*s && !skv_key_from_hex(s, strlen(s), &ignored))
		skv_pb_fail(d, "session", PB_NO_INDEX, SKV_E_INVALID,
			    "must be exactly 32 hex digits");
	else
		memcpy(r->session, s, strlen(s) + 1);
}

int skv_pb_read_start_res(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_start_res *out, struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd message = skv_rd_make(text, n), r = message;
	struct skv_start_res a = { .session = "" };
	struct counts count = { 0 };
	struct pb_field f;

	while (skv_pb_next(&d, &r, &f)) {
		if (f.number == RES_SESSION)
			read_session(&d, &f, &a);
		else if (f.number == RES_STATE)
			a.state = (enum skv_session_state)skv_pb_u32(&d, &f, "state",
								     SKV_SESSION_DELETED);
		else if (f.number == RES_DEADLINE)
			a.deadline_ms = skv_pb_u32(&d, &f, "deadline_ms", UINT32_MAX);
		else if (f.number == RES_N_KEYS)
			a.n_keys = skv_pb_u32(&d, &f, "n_keys", SKV_MAX_KEYS);
		else if (f.number == RES_N_WRITE)
			a.n_write = skv_pb_u32(&d, &f, "n_write", SKV_MAX_KEYS);
		else if (f.number == RES_COPY_INSTANCE)
			a.copy_instance = skv_pb_text(&d, &f, "copy_instance", PB_NO_INDEX, 1,
						      SKV_MAX_NAME);
		else if (f.number == RES_OUTCOMES)
			count.n_runs += skv_pb_numbers(&d, &f, "outcome_runs", PB_VARINT);
		count.n_specs += f.number == RES_SPECS;
		count.n_files += f.number == RES_FILES;
		count.n_columns += f.number == RES_COLUMNS;
	}
	read_blocks(&d, message, &a, &count);
	if (skv_pb_ok(&d))
		*out = a;
	return d.status;
}

/* ---- finish ---------------------------------------------------------------------------------- */

static void read_mask(struct skv_pbdoc *d, const struct pb_field *f, struct skv_finish_req *q)
{
	bool *mask;

	if (!skv_pb_wire(d, f, "success.mask", PB_BYTES))
		return;
	skv_pb_count(d, "success.mask", f->n, 0, SKV_MAX_KEYS);
	mask = skv_pb_alloc(d, f->n, sizeof *mask);
	for (size_t i = 0; mask && i < f->n; i++) {
		if (f->p[i] > 1)
			skv_pb_fail(d, "success.mask", (uint32_t)i, SKV_E_INVALID,
				    "must be 0 or 1");
		mask[i] = f->p[i] == 1;
	}
	q->mask_kind = SKV_MASK_BITS;
	q->mask_count = (uint32_t)f->n;
	q->mask = mask;
}

/* The last member of the oneof that came; f->number 0 when none did. */
static void read_success(struct skv_pbdoc *d, const struct pb_field *f, struct skv_finish_req *q)
{
	if (f->number == FIN_MASK) {
		read_mask(d, f, q);
	} else if (f->number == FIN_COUNT) {
		q->mask_kind = SKV_MASK_COUNT;
		q->mask_count = skv_pb_u32(d, f, "success.count", SKV_MAX_KEYS);
	} else if (f->number == 0) {
		skv_pb_fail(d, "success", PB_NO_INDEX, SKV_E_INVALID, "the field is required");
	} else if (skv_pb_u64(d, f, "success", UINT64_MAX) == 0) {
		skv_pb_fail(d, "success", PB_NO_INDEX, SKV_E_INVALID,
			    "must be true, a count or a mask");
	}
}

int skv_pb_read_finish_req(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_finish_req *out, struct skv_error *err)
{
	struct skv_finish_req q = { .tenant = in->tenant };
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd message = skv_rd_make(text, n), r = message;
	struct pb_field f, success = { 0 };
	size_t sums = 0;

	while (skv_pb_next(&d, &r, &f)) {
		if (f.number >= FIN_ALL && f.number <= FIN_MASK)
			success = f;
		else if (f.number == FIN_CHECKSUMS)
			sums += skv_pb_numbers(&d, &f, "checksums", PB_FIXED64);
		else if (f.number == FIN_QUIESCED)
			q.quiesced = skv_pb_u64(&d, &f, "quiesced", UINT64_MAX) != 0;
	}
	read_success(&d, &success, &q);
	skv_pb_count(&d, "checksums", sums, 0, SKV_MAX_KEYS * SKV_MAX_SPECS);
	if (skv_pb_ok(&d) && sums) {
		q.checksums = skv_pb_all_numbers(&d, message, FIN_CHECKSUMS, "checksums",
						 PB_FIXED64, sums);
		q.n_checksums = (uint32_t)sums;
	}
	if (skv_pb_ok(&d))
		*out = q;
	return d.status;
}

void skv_pb_write_finish_req(struct skv_buf *out, const struct skv_finish_req *req)
{
	uint8_t *p;

	if (req->mask_kind == SKV_MASK_ALL)
		skv_pb_put_present(out, FIN_ALL, true);
	else if (req->mask_kind == SKV_MASK_COUNT)
		skv_pb_put_present(out, FIN_COUNT, req->mask_count);
	else
		skv_pb_put_bytes(out, FIN_MASK, req->mask, req->mask_count);
	if (req->n_checksums) {
		skv_put_varint(out, FIN_CHECKSUMS << 3 | PB_BYTES);
		skv_put_varint(out, req->n_checksums * 8ull);
		if (!skv_buf_reserve(out, req->n_checksums * (size_t)8))
			return;
		p = out->data + out->len;
		for (uint32_t i = 0; i < req->n_checksums; i++)
			p = skv_pb_raw_64(p, req->checksums[i]);
		SKV_CHECK((size_t)(p - out->data) <= out->cap);
		out->len = (size_t)(p - out->data);
	}
	skv_pb_put_uint(out, FIN_QUIESCED, req->quiesced);
}

void skv_pb_write_finish_res(struct skv_buf *out, const struct skv_finish_res *r)
{
	skv_pb_put_uint(out, ENDED_STATE, r->state);
	skv_pb_put_uint(out, ENDED_COMMITTED, r->committed);
	skv_pb_put_uint(out, ENDED_FAILED, r->failed);
	skv_pb_put_numbers(out, ENDED_DELETED, r->deleted, r->n_deleted);
}

static void read_deleted(struct skv_pbdoc *d, struct skv_rd message, struct skv_finish_res *r,
			 size_t n)
{
	uint64_t *all;
	uint32_t *deleted;

	skv_pb_count(d, "deleted", n, 0, SKV_MAX_KEYS);
	all = skv_pb_ok(d) ? skv_pb_all_numbers(d, message, ENDED_DELETED, "deleted", PB_VARINT, n)
			   : NULL;
	deleted = skv_pb_ok(d) ? skv_pb_alloc(d, n, sizeof *deleted) : NULL;
	for (size_t i = 0; deleted && i < n; i++) {
		if (all[i] >= SKV_MAX_KEYS || (i && all[i] <= deleted[i - 1]))
			skv_pb_fail(d, "deleted", (uint32_t)i, SKV_E_INVALID,
				    "not a block of a session, or not in order");
		deleted[i] = (uint32_t)all[i];
	}
	r->n_deleted = (uint32_t)n;
	r->deleted = deleted;
}

int skv_pb_read_finish_res(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_finish_res *out, struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd message = skv_rd_make(text, n), r = message;
	size_t deleted = 0;
	struct skv_finish_res a = { .state = SKV_SESSION_OPEN };
	struct pb_field f;

	while (skv_pb_next(&d, &r, &f)) {
		if (f.number == ENDED_STATE)
			a.state = (enum skv_session_state)skv_pb_u32(&d, &f, "state",
								     SKV_SESSION_DELETED);
		else if (f.number == ENDED_COMMITTED)
			a.committed = skv_pb_u32(&d, &f, "committed", UINT32_MAX);
		else if (f.number == ENDED_FAILED)
			a.failed = skv_pb_u32(&d, &f, "failed", UINT32_MAX);
		else if (f.number == ENDED_DELETED)
			deleted += skv_pb_numbers(&d, &f, "deleted", PB_VARINT);
	}
	if (deleted)
		read_deleted(&d, message, &a, deleted);
	if (skv_pb_ok(&d))
		*out = a;
	return d.status;
}
