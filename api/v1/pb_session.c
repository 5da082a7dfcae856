/*
 * pb_session.c - start, finish and abort in protobuf: requests and answers, both directions.
 *
 * The same insistence as in JSON: an open session's answer counts all its keys, and a finish says what
 * succeeded. No state; any thread.
 */
#include "pb.h"

enum { REQ_ID = 4, REQ_SPECS = 5, REQ_DEADLINE = 6, REQ_PARENT = 7, REQ_PARENT_LAST = 9 };
enum {
	RES_SESSION = 1,
	RES_STATE = 2,
	RES_DEADLINE = 3,
	RES_N_KEYS = 4,
	RES_N_WRITE = 5,
	RES_SPECS = 6,
	RES_FILES = 7,
	RES_OUTCOMES = 8,
	RES_COLUMNS = 9,
};
enum { FIN_ALL = 1, FIN_COUNT = 2, FIN_MASK = 3, FIN_CHECKSUMS = 4, FIN_QUIESCED = 5 };
enum { ENDED_STATE = 1, ENDED_COMMITTED = 2, ENDED_FAILED = 3 };

#define MAX_FILES 65536u /* of one answer, for the reader */
#define HEAD_MAX 4096u   /* room for all but files and columns, to grow the buffer once */

/* ---- start -------------------------------------------------------------------------------------- */

int kvb_pb_read_start_req(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_start_req *out, struct kvb_error *err)
{
	struct kvb_start_req q = { .tenant = in->tenant, .request_id = "" };
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd message = kvb_rd_make(text, n), r = message;
	struct kvb_pbkeys keys = { 0 };
	struct kvb_pbf f, parent = { 0 }, id = { 0 };

	while (kvb_pb_next(&d, &r, &f)) {
		if (f.num == REQ_ID)
			id = f;
		else if (f.num == REQ_DEADLINE)
			q.deadline_ms = kvb_pb_u32(&d, &f, "deadline_ms", UINT32_MAX);
		else if (f.num == REQ_SPECS)
			q.n_specs++;
		else if (f.num >= REQ_PARENT && f.num <= REQ_PARENT_LAST)
			parent = f;
		else
			kvb_pb_keys_field(&d, &keys, &f);
	}
	if (id.num)
		q.request_id = kvb_pb_text(&d, &id, "request_id", PB_NO_INDEX, 0, KVB_MAX_REQUEST_ID);
	q.keys = kvb_pb_keys(&d, &keys, message, &q.n_keys);
	q.has_parent = parent.num != 0;
	if (q.has_parent)
		q.parent = kvb_pb_parent(&d, &parent);
	kvb_pb_count(&d, "specs", q.n_specs, 0, KVB_MAX_SPECS);
	if (q.n_specs)
		q.specs = kvb_pb_names(&d, message, REQ_SPECS, "specs", q.n_specs);
	if (kvb_pb_ok(&d))
		*out = q;
	return d.status;
}

void kvb_pb_write_start_req(struct kvb_buf *out, const struct kvb_start_req *req,
			    const struct kvb_key_input *keys, const struct kvb_key_input *parent)
{
	kvb_pb_put_keys(out, keys);
	kvb_pb_put_text(out, REQ_ID, req->request_id);
	kvb_pb_put_texts(out, REQ_SPECS, req->specs, req->n_specs);
	kvb_pb_put_uint(out, REQ_DEADLINE, req->deadline_ms);
	kvb_pb_put_parent(out, parent);
}

static void put_outcomes(struct kvb_buf *b, const struct kvb_start_res *r)
{
	size_t begin;
	uint8_t *p;

	if (r->n_keys == 0)
		return; /* an empty packed field is left out */
	begin = kvb_pb_put_begin(b, RES_OUTCOMES, 5 * (size_t)r->n_keys);
	if (b->failed)
		return;
	p = b->data + begin;
	for (uint32_t i = 0; i < r->n_keys;) {
		uint32_t from = i;

		while (i < r->n_keys && r->outcome[i] == r->outcome[from])
			i++;
		p = kvb_pb_raw_varint(p, r->outcome[from] + 4ull * (i - from));
	}
	b->len = (size_t)(p - b->data);
	kvb_pb_put_end(b, begin);
}

void kvb_pb_write_start_res(struct kvb_buf *out, const struct kvb_start_res *r)
{
	struct kvb_pbrows rows = { .mark = r->outcome,
				   .located = KVB_START_WRITE,
				   .n_rows = r->n_keys,
				   .n_specs = r->n_specs };

	kvb_buf_reserve(out, HEAD_MAX);
	kvb_pb_put_text(out, RES_SESSION, r->session);
	kvb_pb_put_uint(out, RES_STATE, r->state);
	kvb_pb_put_uint(out, RES_DEADLINE, r->deadline_ms);
	kvb_pb_put_uint(out, RES_N_KEYS, r->n_keys);
	kvb_pb_put_uint(out, RES_N_WRITE, r->n_write);
	kvb_pb_put_texts(out, RES_SPECS, r->specs, r->n_specs);
	kvb_pb_put_files(out, RES_FILES, &r->files);
	if (r->state != KVB_SESSION_OPEN)
		return;
	put_outcomes(out, r);
	for (uint32_t i = 0; i < r->n_keys; i++)
		rows.n_located += r->outcome[i] == KVB_START_WRITE;
	kvb_pb_put_columns(out, RES_COLUMNS, &rows, r->loc);
}

/* Fills r->outcome from the runs, which must cover all keys; returns how many are to be written. */
static uint32_t read_outcomes(struct kvb_pbdoc *d, struct kvb_rd message, struct kvb_start_res *r,
			      size_t n_runs)
{
	uint64_t *runs = kvb_pb_all_numbers(d, message, RES_OUTCOMES, "outcome_runs", PB_VARINT,
					    n_runs);
	uint32_t at = 0, writes = 0;

	for (size_t i = 0; kvb_pb_ok(d) && i < n_runs; i++) {
		uint32_t outcome = runs[i] % 4;
		uint64_t n = runs[i] / 4;

		if (outcome > KVB_START_BUSY || n > r->n_keys - at) {
			kvb_pb_fail(d, "outcome_runs", (uint32_t)i, KVB_E_INVALID,
				    "no such outcome, or more than %u keys", r->n_keys);
			return 0;
		}
		memset(r->outcome + at, (int)outcome, n);
		at += (uint32_t)n;
		writes += outcome == KVB_START_WRITE ? (uint32_t)n : 0;
	}
	if (at != r->n_keys)
		kvb_pb_fail(d, "outcome_runs", PB_NO_INDEX, KVB_E_INVALID, "%u outcomes for %u keys", at,
			    r->n_keys);
	return writes;
}

/* What the fields of an answer count to, before its arrays are read. */
struct counts {
	size_t n_specs, n_files, n_runs, n_columns;
};

static void read_blocks(struct kvb_pbdoc *d, struct kvb_rd message, struct kvb_start_res *r,
			const struct counts *n)
{
	struct kvb_pbrows rows = { .located = KVB_START_WRITE, .n_rows = r->n_keys };

	kvb_pb_count(d, "specs", n->n_specs, 0, KVB_MAX_SPECS);
	kvb_pb_count(d, "files", n->n_files, 0, MAX_FILES);
	kvb_pb_count(d, "columns", n->n_columns, 0, KVB_MAX_SPECS);
	kvb_pb_count(d, "outcome_runs", n->n_runs, 0, r->n_keys);
	if (!kvb_pb_ok(d))
		return;
	r->n_specs = (uint32_t)n->n_specs;
	r->specs = kvb_pb_names(d, message, RES_SPECS, "specs", r->n_specs);
	kvb_pb_files(d, message, RES_FILES, (uint32_t)n->n_files, &r->files);
	r->outcome = kvb_pb_alloc(d, r->n_keys, sizeof *r->outcome);
	r->loc = kvb_pb_alloc(d, (size_t)r->n_keys * r->n_specs, sizeof *r->loc);
	if (!kvb_pb_ok(d))
		return;
	if (r->state != KVB_SESSION_OPEN) { /* its keys may not be counted: nothing to be written */
		memset(r->outcome, KVB_START_BUSY, r->n_keys);
		return;
	}
	rows.n_located = read_outcomes(d, message, r, n->n_runs);
	if (rows.n_located != r->n_write)
		kvb_pb_fail(d, "n_write", PB_NO_INDEX, KVB_E_INVALID, "there are %u blocks to write",
			    rows.n_located);
	rows.mark = r->outcome;
	rows.n_specs = r->n_specs;
	if (kvb_pb_ok(d))
		kvb_pb_columns(d, message, RES_COLUMNS, (uint32_t)n->n_columns, &rows, r->files.n, r->loc);
}

static void read_session(struct kvb_pbdoc *d, const struct kvb_pbf *f, struct kvb_start_res *r)
{
	const char *s = kvb_pb_text(d, f, "session", PB_NO_INDEX, 0, KVB_SESSION_ID_HEX);
	struct kvb_key ignored;

	if (*s && !kvb_key_from_hex(s, strlen(s), &ignored))
		kvb_pb_fail(d, "session", PB_NO_INDEX, KVB_E_INVALID, "must be exactly 32 hex digits");
	else
		memcpy(r->session, s, strlen(s) + 1);
}

int kvb_pb_read_start_res(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_start_res *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd message = kvb_rd_make(text, n), r = message;
	struct kvb_start_res a = { .session = "" };
	struct counts count = { 0 };
	struct kvb_pbf f;

	while (kvb_pb_next(&d, &r, &f)) {
		if (f.num == RES_SESSION)
			read_session(&d, &f, &a);
		else if (f.num == RES_STATE)
			a.state = (enum kvb_session_state)kvb_pb_u32(&d, &f, "state",
								     KVB_SESSION_EXPIRED);
		else if (f.num == RES_DEADLINE)
			a.deadline_ms = kvb_pb_u32(&d, &f, "deadline_ms", UINT32_MAX);
		else if (f.num == RES_N_KEYS)
			a.n_keys = kvb_pb_u32(&d, &f, "n_keys", KVB_MAX_KEYS);
		else if (f.num == RES_N_WRITE)
			a.n_write = kvb_pb_u32(&d, &f, "n_write", KVB_MAX_KEYS);
		else if (f.num == RES_OUTCOMES)
			count.n_runs += kvb_pb_numbers(&d, &f, "outcome_runs", PB_VARINT);
		count.n_specs += f.num == RES_SPECS;
		count.n_files += f.num == RES_FILES;
		count.n_columns += f.num == RES_COLUMNS;
	}
	read_blocks(&d, message, &a, &count);
	if (kvb_pb_ok(&d))
		*out = a;
	return d.status;
}

/* ---- finish ------------------------------------------------------------------------------------- */

static void read_mask(struct kvb_pbdoc *d, const struct kvb_pbf *f, struct kvb_finish_req *q)
{
	bool *mask;

	if (!kvb_pb_wire(d, f, "success.mask", PB_BYTES))
		return;
	kvb_pb_count(d, "success.mask", f->n, 0, KVB_MAX_KEYS);
	mask = kvb_pb_alloc(d, f->n, sizeof *mask);
	for (size_t i = 0; mask && i < f->n; i++) {
		if (f->p[i] > 1)
			kvb_pb_fail(d, "success.mask", (uint32_t)i, KVB_E_INVALID, "must be 0 or 1");
		mask[i] = f->p[i] == 1;
	}
	q->mask_kind = KVB_MASK_BITS;
	q->mask_count = (uint32_t)f->n;
	q->mask = mask;
}

/* The last member of the oneof that came; f->num 0 when none did. */
static void read_success(struct kvb_pbdoc *d, const struct kvb_pbf *f, struct kvb_finish_req *q)
{
	if (f->num == FIN_MASK) {
		read_mask(d, f, q);
	} else if (f->num == FIN_COUNT) {
		q->mask_kind = KVB_MASK_COUNT;
		q->mask_count = kvb_pb_u32(d, f, "success.count", KVB_MAX_KEYS);
	} else if (f->num == 0) {
		kvb_pb_fail(d, "success", PB_NO_INDEX, KVB_E_INVALID, "the field is required");
	} else if (kvb_pb_u64(d, f, "success", UINT64_MAX) == 0) {
		kvb_pb_fail(d, "success", PB_NO_INDEX, KVB_E_INVALID,
			    "must be true, a count or a mask");
	}
}

int kvb_pb_read_finish_req(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_finish_req *out, struct kvb_error *err)
{
	struct kvb_finish_req q = { .tenant = in->tenant };
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd message = kvb_rd_make(text, n), r = message;
	struct kvb_pbf f, success = { 0 };
	size_t sums = 0;

	while (kvb_pb_next(&d, &r, &f)) {
		if (f.num >= FIN_ALL && f.num <= FIN_MASK)
			success = f;
		else if (f.num == FIN_CHECKSUMS)
			sums += kvb_pb_numbers(&d, &f, "checksums", PB_FIXED64);
		else if (f.num == FIN_QUIESCED)
			q.quiesced = kvb_pb_u64(&d, &f, "quiesced", UINT64_MAX) != 0;
	}
	read_success(&d, &success, &q);
	kvb_pb_count(&d, "checksums", sums, 0, KVB_MAX_KEYS * KVB_MAX_SPECS);
	if (kvb_pb_ok(&d) && sums) {
		q.checksums = kvb_pb_all_numbers(&d, message, FIN_CHECKSUMS, "checksums", PB_FIXED64,
						 sums);
		q.n_checksums = (uint32_t)sums;
	}
	if (kvb_pb_ok(&d))
		*out = q;
	return d.status;
}

void kvb_pb_write_finish_req(struct kvb_buf *out, const struct kvb_finish_req *req)
{
	uint8_t *p;

	if (req->mask_kind == KVB_MASK_ALL)
		kvb_pb_put_present(out, FIN_ALL, true);
	else if (req->mask_kind == KVB_MASK_COUNT)
		kvb_pb_put_present(out, FIN_COUNT, req->mask_count);
	else
		kvb_pb_put_bytes(out, FIN_MASK, req->mask, req->mask_count);
	if (req->n_checksums) {
		kvb_put_varint(out, FIN_CHECKSUMS << 3 | PB_BYTES);
		kvb_put_varint(out, req->n_checksums * 8ull);
		if (!kvb_buf_reserve(out, req->n_checksums * (size_t)8))
			return;
		p = out->data + out->len;
		for (uint32_t i = 0; i < req->n_checksums; i++)
			p = kvb_pb_raw_64(p, req->checksums[i]);
		out->len = (size_t)(p - out->data);
	}
	kvb_pb_put_uint(out, FIN_QUIESCED, req->quiesced);
}

void kvb_pb_write_finish_res(struct kvb_buf *out, const struct kvb_finish_res *r)
{
	kvb_pb_put_uint(out, ENDED_STATE, r->state);
	kvb_pb_put_uint(out, ENDED_COMMITTED, r->committed);
	kvb_pb_put_uint(out, ENDED_FAILED, r->failed);
}

int kvb_pb_read_finish_res(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_finish_res *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd r = kvb_rd_make(text, n);
	struct kvb_finish_res a = { .state = KVB_SESSION_OPEN };
	struct kvb_pbf f;

	while (kvb_pb_next(&d, &r, &f)) {
		if (f.num == ENDED_STATE)
			a.state = (enum kvb_session_state)kvb_pb_u32(&d, &f, "state",
								     KVB_SESSION_EXPIRED);
		else if (f.num == ENDED_COMMITTED)
			a.committed = kvb_pb_u32(&d, &f, "committed", UINT32_MAX);
		else if (f.num == ENDED_FAILED)
			a.failed = kvb_pb_u32(&d, &f, "failed", UINT32_MAX);
	}
	if (kvb_pb_ok(&d))
		*out = a;
	return d.status;
}

/* ---- abort -------------------------------------------------------------------------------------- */

int kvb_pb_read_abort_req(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_abort_req *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd r = kvb_rd_make(text, n);
	struct kvb_abort_req q = { .tenant = in->tenant };
	struct kvb_pbf f;

	while (kvb_pb_next(&d, &r, &f))
		if (f.num == 1)
			q.quiesced = kvb_pb_u64(&d, &f, "quiesced", UINT64_MAX) != 0;
	if (kvb_pb_ok(&d))
		*out = q;
	return d.status;
}

void kvb_pb_write_abort_req(struct kvb_buf *out, const struct kvb_abort_req *req)
{
	kvb_pb_put_uint(out, 1, req->quiesced);
}
