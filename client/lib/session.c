/*
 * session.c - start, finish, abort: the two-phase write as the manager knows it. No state here; the
 * session lives at the manager. Any thread.
 *
 * A start without a request id gets a random one, so that a retry after a lost answer finds the
 * same session instead of colliding with it.
 */
#include "client.h"

#include <string.h>

/* Callers pass session ids back: they must be safe in a path. */
static int check_session(const char *id, struct skv_error *err)
{
	struct skv_key k;

	if (id && skv_key_from_hex(id, strlen(id), &k))
		return SKV_OK;
	return skv_fail(err, SKV_E_INVALID, "session", "32 hex digits");
}

/* Checks that the answer fits the request, and that every index is in range. */
static bool start_fits(const struct skv_start_res *res, const struct skv_start_req *req,
		       uint32_t n_keys)
{
	struct skv_key k;
	uint32_t n_write = 0;

	if (res->n_keys != n_keys || res->n_specs < 1 || res->n_specs > SKV_MAX_SPECS ||
	    (req->n_specs && res->n_specs != req->n_specs))
		return false;
	for (uint32_t i = 0; i < n_keys; i++) {
		n_write += res->outcome[i] == SKV_START_WRITE;
		for (uint32_t s = 0; res->outcome[i] == SKV_START_WRITE && s < res->n_specs; s++) {
			const struct skv_location *loc = &res->loc[(size_t)i * res->n_specs + s];

			if (loc->length > 0 && loc->file >= res->files.n)
				return false;
		}
	}
	return n_write == res->n_write &&
	       (n_write == 0 || skv_key_from_hex(res->session, strlen(res->session), &k));
}

/* A repeated id of a session that is over. */
static int session_over(enum skv_session_state state, struct skv_error *err)
{
	if (state == SKV_SESSION_EXPIRED)
		return skv_fail(err, SKV_E_SESSION_EXPIRED, "request_id",
				"this session has expired");
	if (state == SKV_SESSION_DELETED)
		return skv_fail(err, SKV_E_SESSION_ENDED, "request_id",
				"all that this session wrote was deleted");
	return skv_fail(err, SKV_E_SESSION_ENDED, "request_id", "this session has ended");
}

static int start_call(struct slabkv *kv, const struct skv_start_req *req,
		      const struct skv_key_input *keys, struct skv_arena *a,
		      struct skv_start_answer *out, struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	struct skv_exchange x;
	uint32_t *order = skv_arena_calloc(a, SKV_MAX_SPECS, sizeof *order);
	int rc;

	if (!order)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_exchange_begin(&x, "start", "POST", "/v1/instances/%s/start",
			   SKV_SEGMENT(req->instance));
	skv_pb_write_start_req(&x.body, req, keys);
	rc = skv_exchange_do(kv, &x, err);
	if (rc == SKV_OK)
		rc = skv_pb_read_start_res(&in, SKV_ANSWER(x), &out->res, err);
	if (rc == SKV_OK && out->res.state != SKV_SESSION_OPEN)
		rc = session_over(out->res.state, err);
	if (rc == SKV_OK && (!start_fits(&out->res, req, keys->n) ||
			     !skv_specs_order(out->res.specs, out->res.n_specs, req->specs,
					      req->n_specs, order, &out->buffer)))
		rc = skv_bad_answer(&x, err);
	out->submit_until_ms = x.answer.sent_ms + out->res.deadline_ms;
	skv_exchange_end(&x);
	return rc;
}

int skv_session_start(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		      const struct slabkv_put_options *o, const struct skv_session_how *how,
		      struct skv_arena *a, struct skv_start_answer *out, struct skv_error *err)
{
	static const struct slabkv_put_options none = { .size = sizeof none };
	const struct slabkv_keys *before;
	struct skv_start_req req = { .tenant = "", .instance = instance,
				     .request_id = how->request_id, .avoid = how->avoid,
				     .n_avoid = how->n_avoid };
	struct skv_key_input input, parent;
	struct skv_key dice;
	char random_id[SKV_KEY_HEX + 1];
	int rc = skv_model_name_check(instance, "instance", err);

	memset(out, 0, sizeof *out);
	if (!o)
		o = &none;
	req.specs = o->specs;
	req.n_specs = o->n_specs;
	req.deadline_ms = o->deadline_ms;
	req.independent = o->independent;
	if (rc == SKV_OK && !SKV_HAS(o, independent))
		rc = skv_size_refuse(err, "sizeof");
	if (rc == SKV_OK && SKV_HAS(o, flags)) {
		req.selective = (o->flags & SLABKV_PUT_SELECTIVE) != 0;
		if (o->flags & ~SLABKV_PUT_SELECTIVE)
			rc = skv_fail(err, SKV_E_INVALID, "flags", "unknown to this version");
	}
	if (rc == SKV_OK && req.n_specs > SKV_MAX_SPECS)
		rc = skv_fail(err, SKV_E_INVALID, "specs", "at most %u specs", SKV_MAX_SPECS);
	if (rc == SKV_OK)
		rc = skv_keys_input(keys, "keys", a, &input, err);
	before = rc == SKV_OK ? keys->parent : NULL;
	if (before && before->n != 1)
		rc = skv_fail(err, SKV_E_INVALID, "parent", "exactly one key");
	if (rc == SKV_OK && before)
		rc = skv_keys_input(before, "parent", a, &parent, err);
	if (rc == SKV_OK && before && skv_keys_are_text(before) != skv_keys_are_text(keys))
		rc = skv_fail(err, SKV_E_INVALID, "parent", "in another form than the keys");
	if (rc != SKV_OK)
		return rc;
	req.has_parent = before != NULL;
	if (before)
		input.parent = &parent;
	if (!how->request_id) {
		skv_random(&dice, sizeof dice);
		skv_key_to_hex(dice, random_id);
		req.request_id = random_id;
	}
	return start_call(kv, &req, &input, a, out, err);
}

/* Sends the request that was written into x->body, and reads its answer. */
static int end_session(struct slabkv *kv, struct skv_exchange *x, struct skv_arena *a,
		       struct skv_finish_res *res, struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	int rc = skv_exchange_do(kv, x, err);

	if (rc == SKV_OK)
		rc = skv_pb_read_finish_res(&in, SKV_ANSWER(*x), res, err);
	skv_exchange_end(x);
	return rc;
}

int skv_session_finish(struct slabkv *kv, const struct skv_finish_req *req, struct skv_arena *a,
		       struct skv_finish_res *res, struct skv_error *err)
{
	struct skv_exchange x;
	int rc = check_session(req->session, err);

	if (rc != SKV_OK)
		return rc;
	skv_exchange_begin(&x, "finish", "POST", "/v1/sessions/%s/finish", req->session);
	skv_pb_write_finish_req(&x.body, req);
	return end_session(kv, &x, a, res, err);
}

int skv_session_abort(struct slabkv *kv, const char *session, bool quiesced, struct skv_error *err)
{
	struct skv_abort_req req = { .tenant = "", .session = session, .quiesced = quiesced };
	struct skv_finish_res res;
	struct skv_exchange x;
	struct skv_arena a;
	int rc = check_session(session, err);

	if (rc != SKV_OK)
		return rc;
	skv_exchange_begin(&x, "abort", "POST", "/v1/sessions/%s/abort", session);
	skv_pb_write_abort_req(&x.body, &req);
	skv_arena_init(&a);
	rc = end_session(kv, &x, &a, &res, err);
	skv_arena_destroy(&a);
	return rc;
}

static void fill_finished(const struct skv_finish_res *r, struct slabkv_finished *out)
{
	out->committed = r->committed;
	out->failed = r->failed;
	out->deleted = r->n_deleted;
	for (uint32_t i = 0; out->gone && i < out->n_gone; i++)
		out->gone[i] = false;
	for (uint32_t i = 0; out->gone && i < r->n_deleted; i++)
		if (r->deleted[i] < out->n_gone)
			out->gone[r->deleted[i]] = true;
}

int slabkv_finish(struct slabkv *kv, const char *session, const struct slabkv_finish_options *o,
		   struct slabkv_finished *res, struct slabkv_error *err)
{
	static const struct slabkv_finish_options none = { .size = sizeof none };
	struct skv_finish_req req = { .tenant = "", .session = session };
	struct skv_finish_res r = { 0 };
	struct skv_error e = { 0 };
	struct skv_arena a;
	int rc;

	if (!o)
		o = &none;
	skv_arena_init(&a);
	req.mask_kind = o->mask ? SKV_MASK_BITS : SKV_MASK_ALL;
	req.mask = o->mask;
	req.mask_count = o->mask ? o->n_mask : 0;
	req.checksums = o->checksums;
	req.n_checksums = o->checksums ? o->n_checksums : 0;
	req.quiesced = o->quiesced;
	rc = skv_enter(kv, &e);
	if (rc == SKV_OK && (!SKV_HAS(o, quiesced) || (res && !SKV_HAS(res, n_gone))))
		rc = skv_size_refuse(&e, "sizeof");
	if (rc == SKV_OK)
		rc = skv_session_finish(kv, &req, &a, &r, &e);
	if (rc == SKV_OK && res)
		fill_finished(&r, res);
	skv_arena_destroy(&a);
	return skv_result_fail(err, &e, rc);
}

int slabkv_abort(struct slabkv *kv, const char *session, bool quiesced, struct slabkv_error *err)
{
	struct skv_error e = { 0 };

	int rc = skv_enter(kv, &e);

	return skv_result_fail(err, &e,
			       rc == SKV_OK ? skv_session_abort(kv, session, quiesced, &e) : rc);
}
