/*
 * session.c - start, finish, abort: the two-phase write as the manager knows it. No state here; the
 * session lives at the manager. Any thread.
 *
 * A start without a request id gets a random one, so that a retry after a lost answer finds the
 * same session instead of colliding with it.
 */
#include "client.h"
#include "paths.h"

#include <stdio.h>
#include <string.h>

static int bad_answer(struct kvb_error *err, const char *op)
{
	return kvb_fail(err, KVB_E_INTERNAL, NULL,
			"%s: the manager's answer does not fit the question", op);
}

/* Session ids come back from callers: they must be safe in a path. */
static int check_session(const char *id, struct kvb_error *err)
{
	struct kvb_key k;

	if (id && kvb_key_from_hex(id, strlen(id), &k))
		return KVB_OK;
	return kvb_fail(err, KVB_E_INVALID, "session", "32 hex digits");
}

/* Does the answer fit the question, and is every index inside it? */
static bool start_fits(const struct kvb_start_res *res, const struct kvb_start_req *req,
		       uint32_t n_keys)
{
	struct kvb_key k;
	uint32_t n_write = 0;

	if (res->n_keys != n_keys || res->n_specs < 1 || res->n_specs > KVB_MAX_SPECS ||
	    (req->n_specs && res->n_specs != req->n_specs))
		return false;
	for (uint32_t i = 0; i < n_keys; i++) {
		n_write += res->outcome[i] == KVB_START_WRITE;
		for (uint32_t s = 0; res->outcome[i] == KVB_START_WRITE && s < res->n_specs; s++) {
			const struct kvb_location *loc = &res->loc[(size_t)i * res->n_specs + s];

			if (loc->length > 0 && loc->file >= res->files.n)
				return false;
		}
	}
	return n_write == res->n_write &&
	       (n_write == 0 || kvb_key_from_hex(res->session, strlen(res->session), &k));
}

/* A repeated id of a session that is over. */
static int session_over(enum kvb_session_state state, struct kvb_error *err)
{
	if (state == KVB_SESSION_EXPIRED)
		return kvb_fail(err, KVB_E_SESSION_EXPIRED, "request_id",
				"this session has expired");
	return kvb_fail(err, KVB_E_SESSION_ENDED, "request_id", "this session has ended");
}

static int start_call(struct kvblock *kv, const struct kvb_start_req *req,
		      const struct kvb_key_input *keys, const struct kvb_key_input *parent,
		      struct kvb_arena *a, struct kvb_start_answer *out, struct kvb_error *err)
{
	struct kvb_v1_in in = { .arena = a };
	char path[KVB_PATH_MAX];
	struct kvb_buf body = { 0 };
	struct kvb_answer answer = { 0 };
	struct kvb_call c = { .op = "start", .method = "POST", .path = path, .body = &body };
	int rc;

	snprintf(path, sizeof path, KVB_PATH_START, req->instance);
	do {
		c.codec = kv->codec;
		kvb_buf_clear(&body);
		c.codec->write_start_req(&body, req, keys, parent);
		rc = kvb_call_do(kv, &c, &answer, err);
	} while (kvb_call_again(kv, &answer));
	if (rc == KVB_OK)
		rc = answer.codec->read_start_res(&in, (const char *)answer.body.data,
						 answer.body.len, &out->res, err);
	if (rc == KVB_OK && out->res.state != KVB_SESSION_OPEN)
		rc = session_over(out->res.state, err);
	if (rc == KVB_OK && !start_fits(&out->res, req, keys->n))
		rc = bad_answer(err, c.op);
	out->submit_until_ms = answer.sent_ms + out->res.deadline_ms;
	kvb_buf_destroy(&answer.body);
	kvb_buf_destroy(&body);
	return rc;
}

/* Key and parent must be in one form on the wire: the wider one when they differ. */
static void same_form(struct kvb_key_input *keys, struct kvb_key_input *parent)
{
	if (keys->form != parent->form)
		keys->form = parent->form = KVB_KEYS_HEX;
}

int kvb_session_start(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys,
		      const struct kvblock_put_options *o, const char *request_id,
		      struct kvb_arena *a, struct kvb_start_answer *out, struct kvb_error *err)
{
	static const struct kvblock_put_options none;
	struct kvb_start_req req = { .tenant = "", .instance = instance, .request_id = request_id };
	struct kvb_key_input input, parent;
	struct kvb_key dice;
	char random_id[KVB_KEY_HEX + 1];
	int rc = kvb_name_check(instance, "instance", err);

	memset(out, 0, sizeof *out);
	if (!o)
		o = &none;
	req.specs = o->specs;
	req.n_specs = o->n_specs;
	req.deadline_ms = o->deadline_ms;
	req.has_parent = o->parent != NULL;
	if (rc == KVB_OK && (req.n_specs > KVB_MAX_SPECS || (o->parent && o->parent->n != 1)))
		rc = kvb_fail(err, KVB_E_INVALID, o->parent ? "parent" : "specs", "too many");
	if (rc == KVB_OK)
		rc = kvb_keys_input(keys, "keys", a, &input, err);
	if (rc == KVB_OK && o->parent)
		rc = kvb_keys_input(o->parent, "parent", a, &parent, err);
	if (rc == KVB_OK && o->parent && (o->parent->form == KVBLOCK_KEYS_STRING) !=
						 (keys->form == KVBLOCK_KEYS_STRING))
		rc = kvb_fail(err, KVB_E_INVALID, "parent", "in another form than the keys");
	if (rc != KVB_OK)
		return rc;
	if (o->parent)
		same_form(&input, &parent);
	if (!request_id) {
		kvb_random(&dice, sizeof dice);
		kvb_key_to_hex(dice, random_id);
		req.request_id = random_id;
	}
	return start_call(kv, &req, &input, o->parent ? &parent : NULL, a, out, err);
}

/* One of req and abort is NULL. */
static int end_call(struct kvblock *kv, const char *op, const char *path,
		    const struct kvb_finish_req *req, const struct kvb_abort_req *abort,
		    struct kvb_finish_res *res, struct kvb_error *err)
{
	struct kvb_buf body = { 0 };
	struct kvb_call c = { .op = op, .method = "POST", .path = path, .body = &body };
	struct kvb_answer answer = { 0 };
	struct kvb_v1_in in;
	struct kvb_arena a;
	int rc;

	do {
		c.codec = kv->codec;
		kvb_buf_clear(&body);
		if (req)
			c.codec->write_finish_req(&body, req);
		else
			c.codec->write_abort_req(&body, abort);
		rc = kvb_call_do(kv, &c, &answer, err);
	} while (kvb_call_again(kv, &answer));

	kvb_arena_init(&a);
	in = (struct kvb_v1_in){ .arena = &a };
	if (rc == KVB_OK)
		rc = answer.codec->read_finish_res(&in, (const char *)answer.body.data,
						   answer.body.len, res, err);
	kvb_arena_destroy(&a);
	kvb_buf_destroy(&answer.body);
	kvb_buf_destroy(&body);
	return rc;
}

int kvb_session_finish(struct kvblock *kv, const struct kvb_finish_req *req,
		       struct kvb_finish_res *res, struct kvb_error *err)
{
	char path[KVB_PATH_MAX];
	int rc = check_session(req->session, err);

	if (rc != KVB_OK)
		return rc;
	snprintf(path, sizeof path, KVB_PATH_FINISH, req->session);
	return end_call(kv, "finish", path, req, NULL, res, err);
}

int kvb_session_abort(struct kvblock *kv, const char *session, bool quiesced, struct kvb_error *err)
{
	struct kvb_abort_req req = { .tenant = "", .session = session, .quiesced = quiesced };
	struct kvb_finish_res res;
	char path[KVB_PATH_MAX];
	int rc = check_session(session, err);

	if (rc != KVB_OK)
		return rc;
	snprintf(path, sizeof path, KVB_PATH_ABORT, session);
	return end_call(kv, "abort", path, NULL, &req, &res, err);
}

int kvblock_finish(struct kvblock *kv, const char *session, const struct kvblock_finish_options *o,
		   struct kvblock_finished *res, struct kvblock_error *err)
{
	static const struct kvblock_finish_options none;
	struct kvb_finish_req req = { .tenant = "", .session = session };
	struct kvb_finish_res r = { 0 };
	struct kvb_error e = { 0 };
	int rc;

	if (!o)
		o = &none;
	req.mask_kind = o->mask ? KVB_MASK_BITS : KVB_MASK_ALL;
	req.mask = o->mask;
	req.mask_count = o->mask ? o->n_mask : 0;
	req.checksums = o->checksums;
	req.n_checksums = o->checksums ? o->n_checksums : 0;
	req.quiesced = o->quiesced;
	rc = kvb_session_finish(kv, &req, &r, &e);
	if (rc == KVB_OK && res)
		*res = (struct kvblock_finished){ r.committed, r.failed };
	return kvb_result_fail(err, &e, rc);
}

int kvblock_abort(struct kvblock *kv, const char *session, bool quiesced, struct kvblock_error *err)
{
	struct kvb_error e = { 0 };

	return kvb_result_fail(err, &e, kvb_session_abort(kv, session, quiesced, &e));
}
