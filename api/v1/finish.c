/*
 * finish.c - how sessions and blocks end: finish, abort and delete, requests and answers, both ways.
 *
 * What succeeded must be said: a finish without `success` is refused, for a forgotten field must not
 * publish blocks. No state; any thread.
 */
#include "parts.h"

static const char *const states[] = { "open", "finished", "aborted", "expired", NULL };

/* ---- finish ------------------------------------------------------------------------------------- */

static void read_mask(struct kvb_jdoc *d, const struct kvb_jat *at, struct kvb_finish_req *r)
{
	uint32_t n = kvb_jat_array(d, at, 0, KVB_MAX_KEYS);
	bool *mask = kvb_jdoc_alloc(d, n, sizeof *mask);
	struct kvb_jat item = kvb_jat_first(at);

	for (uint32_t i = 0; mask && i < n; i++, kvb_jat_next(&item))
		mask[i] = kvb_jat_bool(d, &item);
	r->mask_kind = KVB_MASK_BITS;
	r->mask_count = n;
	r->mask = mask;
}

static void read_success(struct kvb_jdoc *d, const struct kvb_jat *at, struct kvb_finish_req *r)
{
	static const char *const fields[] = { "count", "mask", NULL };
	struct kvb_jat count = kvb_jat_get(at, "count"), mask = kvb_jat_get(at, "mask");

	if (kvb_jat_is(at, KVB_JSON_TRUE)) {
		r->mask_kind = KVB_MASK_ALL;
		return;
	}
	if (at->v && !kvb_jat_is(at, KVB_JSON_OBJECT))
		kvb_jdoc_fail(d, at, KVB_E_INVALID,
			      "must be true, {\"count\": n} or {\"mask\": [true, false, ...]}");
	kvb_jat_object(d, at, fields);
	if (!count.v == !mask.v)
		kvb_jdoc_fail(d, at, KVB_E_INVALID, "must have one of count and mask");
	if (mask.v) {
		read_mask(d, &mask, r);
	} else {
		r->mask_kind = KVB_MASK_COUNT;
		r->mask_count = kvb_jat_u32(d, &count, 0, KVB_MAX_KEYS);
	}
}

static void read_checksums(struct kvb_jdoc *d, const struct kvb_jat *at, struct kvb_finish_req *r)
{
	uint32_t n = kvb_jat_array(d, at, 0, KVB_MAX_KEYS * KVB_MAX_SPECS);
	uint64_t *sums = kvb_jdoc_alloc(d, n, sizeof *sums);
	struct kvb_jat item = kvb_jat_first(at);

	for (uint32_t i = 0; sums && i < n; i++, kvb_jat_next(&item))
		if (!kvb_jat_is(&item, KVB_JSON_NULL))
			sums[i] = kvb_jat_hex64(d, &item);
	r->n_checksums = n;
	r->checksums = sums;
}

int kvb_v1_read_finish_req(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_finish_req *out, struct kvb_error *err)
{
	static const char *const fields[] = { "success", "checksums", "quiesced", NULL };
	struct kvb_finish_req r = { .tenant = in->tenant };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JREQUEST, KVB_JMAX_FINISH, err);
	struct kvb_jat success = kvb_jat_get(&top, "success"), sums = kvb_jat_get(&top, "checksums"),
		       quiesced = kvb_jat_get(&top, "quiesced");

	kvb_jat_object(&d, &top, fields);
	read_success(&d, &success, &r);
	if (sums.v)
		read_checksums(&d, &sums, &r);
	if (quiesced.v)
		r.quiesced = kvb_jat_bool(&d, &quiesced);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

static void write_success(struct kvb_buf *b, const struct kvb_finish_req *req)
{
	kvb_jout_name(b, "success");
	if (req->mask_kind == KVB_MASK_ALL) {
		kvb_jout_bool(b, true);
		return;
	}
	kvb_jout_open(b, '{');
	if (req->mask_kind == KVB_MASK_COUNT) {
		kvb_jout_field_u64(b, "count", req->mask_count);
	} else {
		kvb_jout_name(b, "mask");
		kvb_jout_open(b, '[');
		for (uint32_t i = 0; i < req->mask_count; i++)
			kvb_jout_bool(b, req->mask[i]);
		kvb_jout_close(b, ']');
	}
	kvb_jout_close(b, '}');
}

void kvb_v1_write_finish_req(struct kvb_buf *out, const struct kvb_finish_req *req)
{
	kvb_buf_reserve(out, 64 + (size_t)req->n_checksums * 20);
	kvb_jout_begin(out);
	write_success(out, req);
	if (req->n_checksums) {
		kvb_jout_name(out, "checksums");
		kvb_jout_open(out, '[');
		for (uint32_t i = 0; i < req->n_checksums; i++)
			kvb_jout_hex64(out, req->checksums[i]);
		kvb_jout_close(out, ']');
	}
	kvb_jout_field_bool(out, "quiesced", req->quiesced);
	kvb_jout_close(out, '}');
}

void kvb_v1_write_finish_res(struct kvb_buf *out, const struct kvb_finish_res *r)
{
	kvb_jout_begin(out);
	kvb_jout_field_string(out, "state", states[r->state]);
	kvb_jout_field_u64(out, "committed", r->committed);
	kvb_jout_field_u64(out, "failed", r->failed);
	kvb_jout_close(out, '}');
}

int kvb_v1_read_finish_res(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_finish_res *out, struct kvb_error *err)
{
	struct kvb_finish_res r;
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JANSWER, KVB_JMAX_OBJECT, err);
	struct kvb_jat state = kvb_jat_get(&top, "state"), committed = kvb_jat_get(&top, "committed"),
		       failed = kvb_jat_get(&top, "failed");

	r.state = (enum kvb_session_state)kvb_jat_word(&d, &state, states);
	r.committed = kvb_jat_u32(&d, &committed, 0, UINT32_MAX);
	r.failed = kvb_jat_u32(&d, &failed, 0, UINT32_MAX);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

/* ---- abort -------------------------------------------------------------------------------------- */

int kvb_v1_read_abort_req(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_abort_req *out, struct kvb_error *err)
{
	static const char *const fields[] = { "quiesced", NULL };
	struct kvb_abort_req r = { .tenant = in->tenant };
	struct kvb_jdoc d;
	struct kvb_jat top, quiesced;

	if (n == 0) { /* `curl -X POST` without a body is the plain abort */
		text = "{}";
		n = 2;
	}
	top = kvb_jdoc_open(&d, in, text, n, KVB_JREQUEST, KVB_JMAX_OBJECT, err);
	quiesced = kvb_jat_get(&top, "quiesced");
	kvb_jat_object(&d, &top, fields);
	if (quiesced.v)
		r.quiesced = kvb_jat_bool(&d, &quiesced);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

void kvb_v1_write_abort_req(struct kvb_buf *out, const struct kvb_abort_req *req)
{
	kvb_jout_begin(out);
	kvb_jout_field_bool(out, "quiesced", req->quiesced);
	kvb_jout_close(out, '}');
}

/* ---- delete ------------------------------------------------------------------------------------- */

int kvb_v1_read_delete_req(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_delete_req *out, struct kvb_error *err)
{
	static const char *const fields[] = { "keys", "keys_int", "keys_hex", NULL };
	struct kvb_delete_req r = { .tenant = in->tenant };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JREQUEST, KVB_JMAX_KEYS, err);

	kvb_jat_object(&d, &top, fields);
	r.keys = kvb_jat_keys(&d, &top, &r.n_keys);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

void kvb_v1_write_delete_req(struct kvb_buf *out, const struct kvb_delete_req *req,
			     const struct kvb_key_input *keys)
{
	(void)req; /* the instance is in the path, the keys in `keys` */
	kvb_jout_begin(out);
	kvb_jout_keys(out, keys);
	kvb_jout_close(out, '}');
}

void kvb_v1_write_delete_res(struct kvb_buf *out, const struct kvb_delete_res *r)
{
	kvb_jout_begin(out);
	kvb_jout_field_u64(out, "deleted", r->deleted);
	if (r->pinned)
		kvb_jout_field_u64(out, "pinned", r->pinned);
	kvb_jout_close(out, '}');
}

int kvb_v1_read_delete_res(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_delete_res *out, struct kvb_error *err)
{
	struct kvb_delete_res r = { 0 };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JANSWER, KVB_JMAX_OBJECT, err);
	struct kvb_jat deleted = kvb_jat_get(&top, "deleted"), pinned = kvb_jat_get(&top, "pinned");

	r.deleted = kvb_jat_u32(&d, &deleted, 0, UINT32_MAX);
	if (pinned.v)
		r.pinned = kvb_jat_u32(&d, &pinned, 0, UINT32_MAX);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

/* ---- trim --------------------------------------------------------------------------------------- */

int kvb_v1_read_trim_req(const struct kvb_v1_in *in, const char *text, size_t n,
			 struct kvb_trim_req *out, struct kvb_error *err)
{
	static const char *const fields[] = { "from_ms", "to_ms", NULL };
	struct kvb_trim_req r = { .tenant = in->tenant };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JREQUEST, KVB_JMAX_OBJECT, err);
	struct kvb_jat from = kvb_jat_get(&top, "from_ms"), to = kvb_jat_get(&top, "to_ms");

	kvb_jat_object(&d, &top, fields);
	if (from.v)
		r.from_ms = kvb_jat_u64(&d, &from, 0, KVB_MAX_WALL_MS);
	r.to_ms = kvb_jat_u64(&d, &to, 0, KVB_MAX_WALL_MS);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

void kvb_v1_write_trim_req(struct kvb_buf *out, const struct kvb_trim_req *req)
{
	kvb_jout_begin(out);
	kvb_jout_field_u64(out, "from_ms", req->from_ms);
	kvb_jout_field_u64(out, "to_ms", req->to_ms < KVB_MAX_WALL_MS ? req->to_ms : KVB_MAX_WALL_MS);
	kvb_jout_close(out, '}');
}

void kvb_v1_write_trim_res(struct kvb_buf *out, const struct kvb_trim_res *r)
{
	kvb_jout_begin(out);
	kvb_jout_field_u64(out, "deleted", r->deleted);
	kvb_jout_close(out, '}');
}

int kvb_v1_read_trim_res(const struct kvb_v1_in *in, const char *text, size_t n,
			 struct kvb_trim_res *out, struct kvb_error *err)
{
	struct kvb_trim_res r;
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JANSWER, KVB_JMAX_OBJECT, err);
	struct kvb_jat deleted = kvb_jat_get(&top, "deleted");

	r.deleted = kvb_jat_u64(&d, &deleted, 0, KVB_MAX_WALL_MS);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}
