/*
 * finish.c - how sessions and blocks end: finish, abort and delete, requests and answers, both ways.
 *
 * What succeeded must be said: a finish without `success` is refused, for a forgotten field must not
 * publish blocks. No state; any thread.
 */
#include "parts.h"

static const char *const states[] = { "open", "finished", "aborted", "expired", NULL };

/* ---- finish ------------------------------------------------------------------------------------- */

static void read_mask(struct ref_jdoc *d, const struct ref_jat *at, struct skv_finish_req *r)
{
	uint32_t n = ref_jat_array(d, at, 0, SKV_MAX_KEYS);
	bool *mask = ref_jdoc_alloc(d, n, sizeof *mask);

	for (uint32_t i = 0; mask && i < n; i++) {
		struct ref_jat item = ref_jat_item(at, i);

		mask[i] = ref_jat_bool(d, &item);
	}
	r->mask_kind = SKV_MASK_BITS;
	r->mask_count = n;
	r->mask = mask;
}

static void read_success(struct ref_jdoc *d, const struct ref_jat *at, struct skv_finish_req *r)
{
	static const char *const fields[] = { "count", "mask", NULL };
	struct ref_jat count = ref_jat_get(at, "count"), mask = ref_jat_get(at, "mask");

	if (at->v && json_is_true(at->v)) {
		r->mask_kind = SKV_MASK_ALL;
		return;
	}
	if (at->v && !json_is_object(at->v))
		ref_jdoc_fail(d, at, SKV_E_INVALID,
			      "must be true, {\"count\": n} or {\"mask\": [true, false, ...]}");
	ref_jat_object(d, at, fields);
	if (!count.v == !mask.v)
		ref_jdoc_fail(d, at, SKV_E_INVALID, "must have one of count and mask");
	if (mask.v) {
		read_mask(d, &mask, r);
	} else {
		r->mask_kind = SKV_MASK_COUNT;
		r->mask_count = ref_jat_u32(d, &count, 0, SKV_MAX_KEYS);
	}
}

static void read_checksums(struct ref_jdoc *d, const struct ref_jat *at, struct skv_finish_req *r)
{
	uint32_t n = ref_jat_array(d, at, 0, SKV_MAX_KEYS * SKV_MAX_SPECS);
	uint64_t *sums = ref_jdoc_alloc(d, n, sizeof *sums);

	for (uint32_t i = 0; sums && i < n; i++) {
		struct ref_jat item = ref_jat_item(at, i);

		if (!json_is_null(item.v))
			sums[i] = ref_jat_hex64(d, &item);
	}
	r->n_checksums = n;
	r->checksums = sums;
}

int ref_read_finish_req(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_finish_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "success", "checksums", "quiesced", NULL };
	struct skv_finish_req r = { .tenant = in->tenant };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_FINISH, err);
	struct ref_jat success = ref_jat_get(&top, "success"), sums = ref_jat_get(&top, "checksums"),
		       quiesced = ref_jat_get(&top, "quiesced");

	ref_jat_object(&d, &top, fields);
	read_success(&d, &success, &r);
	if (sums.v)
		read_checksums(&d, &sums, &r);
	if (quiesced.v)
		r.quiesced = ref_jat_bool(&d, &quiesced);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

static void write_success(struct skv_buf *b, const struct skv_finish_req *req)
{
	ref_jout_name(b, "success");
	if (req->mask_kind == SKV_MASK_ALL) {
		ref_jout_bool(b, true);
		return;
	}
	ref_jout_open(b, '{');
	if (req->mask_kind == SKV_MASK_COUNT) {
		ref_jout_field_u64(b, "count", req->mask_count);
	} else {
		ref_jout_name(b, "mask");
		ref_jout_open(b, '[');
		for (uint32_t i = 0; i < req->mask_count; i++)
			ref_jout_bool(b, req->mask[i]);
		ref_jout_close(b, ']');
	}
	ref_jout_close(b, '}');
}

void ref_write_finish_req(struct skv_buf *out, const struct skv_finish_req *req)
{
	skv_buf_reserve(out, 64 + (size_t)req->n_checksums * 20);
	ref_jout_begin(out);
	write_success(out, req);
	if (req->n_checksums) {
		ref_jout_name(out, "checksums");
		ref_jout_open(out, '[');
		for (uint32_t i = 0; i < req->n_checksums; i++)
			ref_jout_hex64(out, req->checksums[i]);
		ref_jout_close(out, ']');
	}
	ref_jout_field_bool(out, "quiesced", req->quiesced);
	ref_jout_close(out, '}');
}

void ref_write_finish_res(struct skv_buf *out, const struct skv_finish_res *r)
{
	ref_jout_begin(out);
	ref_jout_field_string(out, "state", states[r->state]);
	ref_jout_field_u64(out, "committed", r->committed);
	ref_jout_field_u64(out, "failed", r->failed);
	ref_jout_close(out, '}');
}

int ref_read_finish_res(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_finish_res *out, struct skv_error *err)
{
	struct skv_finish_res r;
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_OBJECT, err);
	struct ref_jat state = ref_jat_get(&top, "state"), committed = ref_jat_get(&top, "committed"),
		       failed = ref_jat_get(&top, "failed");

	r.state = (enum skv_session_state)ref_jat_word(&d, &state, states);
	r.committed = ref_jat_u32(&d, &committed, 0, UINT32_MAX);
	r.failed = ref_jat_u32(&d, &failed, 0, UINT32_MAX);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

/* ---- abort -------------------------------------------------------------------------------------- */

int ref_read_abort_req(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_abort_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "quiesced", NULL };
	struct skv_abort_req r = { .tenant = in->tenant };
	struct ref_jdoc d;
	struct ref_jat top, quiesced;

	if (n == 0) { /* `curl -X POST` without a body is the plain abort */
		text = "{}";
		n = 2;
	}
	top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_OBJECT, err);
	quiesced = ref_jat_get(&top, "quiesced");
	ref_jat_object(&d, &top, fields);
	if (quiesced.v)
		r.quiesced = ref_jat_bool(&d, &quiesced);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

void ref_write_abort_req(struct skv_buf *out, const struct skv_abort_req *req)
{
	ref_jout_begin(out);
	ref_jout_field_bool(out, "quiesced", req->quiesced);
	ref_jout_close(out, '}');
}

/* ---- delete ------------------------------------------------------------------------------------- */

int ref_read_delete_req(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_delete_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "keys", "keys_int", "keys_hex", NULL };
	struct skv_delete_req r = { .tenant = in->tenant };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_KEYS, err);

	ref_jat_object(&d, &top, fields);
	r.keys = ref_jat_keys(&d, &top, &r.n_keys);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

void ref_write_delete_req(struct skv_buf *out, const struct skv_delete_req *req,
			     const struct skv_key_input *keys)
{
	(void)req; /* the instance is in the path, the keys in `keys` */
	ref_jout_begin(out);
	ref_jout_keys(out, keys);
	ref_jout_close(out, '}');
}

void ref_write_delete_res(struct skv_buf *out, const struct skv_delete_res *r)
{
	ref_jout_begin(out);
	ref_jout_field_u64(out, "deleted", r->deleted);
	if (r->pinned)
		ref_jout_field_u64(out, "pinned", r->pinned);
	ref_jout_close(out, '}');
}

int ref_read_delete_res(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_delete_res *out, struct skv_error *err)
{
	struct skv_delete_res r = { 0 };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_OBJECT, err);
	struct ref_jat deleted = ref_jat_get(&top, "deleted"), pinned = ref_jat_get(&top, "pinned");

	r.deleted = ref_jat_u32(&d, &deleted, 0, UINT32_MAX);
	if (pinned.v)
		r.pinned = ref_jat_u32(&d, &pinned, 0, UINT32_MAX);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

/* ---- files --------------------------------------------------------------------------------------- */

int ref_read_file_wish(const struct skv_v1_in *in, const char *text, size_t n, struct skv_file_wish *out,
		       struct skv_error *err)
{
	static const char *const fields[] = { "file", "draining", "forget", NULL };
	struct skv_file_wish w = { 0 };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_OBJECT, err);
	struct ref_jat file = ref_jat_get(&top, "file"), draining = ref_jat_get(&top, "draining"),
		       forget = ref_jat_get(&top, "forget");

	ref_jat_object(&d, &top, fields);
	w.file = ref_jat_u32(&d, &file, 0, UINT32_MAX);
	w.draining = ref_jat_bool(&d, &draining);
	w.forget = forget.v && ref_jat_bool(&d, &forget);
	if (ref_jdoc_ok(&d))
		*out = w;
	return ref_jdoc_close(&d);
}

void ref_write_file_wish(struct skv_buf *out, const struct skv_file_wish *w)
{
	ref_jout_begin(out);
	ref_jout_field_u64(out, "file", w->file);
	ref_jout_field_bool(out, "draining", w->draining);
	if (w->forget)
		ref_jout_field_bool(out, "forget", true);
	ref_jout_close(out, '}');
}

/* ---- trim --------------------------------------------------------------------------------------- */

int ref_read_trim_req(const struct skv_v1_in *in, const char *text, size_t n,
			 struct skv_trim_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "from_ms", "to_ms", NULL };
	struct skv_trim_req r = { .tenant = in->tenant };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_OBJECT, err);
	struct ref_jat from = ref_jat_get(&top, "from_ms"), to = ref_jat_get(&top, "to_ms");

	ref_jat_object(&d, &top, fields);
	if (from.v)
		r.from_ms = ref_jat_u64(&d, &from, 0, SKV_MAX_WALL_MS);
	r.to_ms = ref_jat_u64(&d, &to, 0, SKV_MAX_WALL_MS);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

void ref_write_trim_req(struct skv_buf *out, const struct skv_trim_req *req)
{
	ref_jout_begin(out);
	ref_jout_field_u64(out, "from_ms", req->from_ms);
	ref_jout_field_u64(out, "to_ms", req->to_ms < SKV_MAX_WALL_MS ? req->to_ms : SKV_MAX_WALL_MS);
	ref_jout_close(out, '}');
}

void ref_write_trim_res(struct skv_buf *out, const struct skv_trim_res *r)
{
	ref_jout_begin(out);
	ref_jout_field_u64(out, "deleted", r->deleted);
	ref_jout_close(out, '}');
}

int ref_read_trim_res(const struct skv_v1_in *in, const char *text, size_t n,
			 struct skv_trim_res *out, struct skv_error *err)
{
	struct skv_trim_res r;
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_OBJECT, err);
	struct ref_jat deleted = ref_jat_get(&top, "deleted");

	r.deleted = ref_jat_u64(&d, &deleted, 0, SKV_MAX_WALL_MS);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}
