/*
 * op_blocks.c - the block operations: match, lookup, start, finish, abort, delete, trim, one block.
 *
 * Each run function decodes into the request's struct and calls the core with the request's own
 * completion; each write function encodes the result. Nothing here waits, allocates outside the
 * request, or keeps state.
 */
#include "native.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int kvb_op_match_run(struct kvb_call *r)
{
	struct kvb_v1_in in = kvb_native_input(r);
	int rc = native_of(r)->body_codec->read_match_req(&in, r->body, r->n_body, &native_of(r)->u.match.req,
				       &r->err);

	if (rc != KVB_OK)
		return rc;
	native_of(r)->u.match.req.tenant = r->caller.tenant;
	return kvb_core_match(r->s->core, &native_of(r)->u.match.req, &native_of(r)->u.match.res, &r->arena, &r->err);
}
void kvb_op_match_write(struct kvb_call *r) { native_of(r)->codec->write_match_res(&r->out, &native_of(r)->u.match.res); }

int kvb_op_lookup_run(struct kvb_call *r)
{
	struct kvb_v1_in in = kvb_native_input(r);
	struct kvb_lookup_req *req = &native_of(r)->u.lookup.req;
	int rc = native_of(r)->body_codec->read_lookup_req(&in, r->body, r->n_body, req, &r->err);

	if (rc != KVB_OK)
		return rc;
	req->tenant = r->caller.tenant;
	req->instance = r->param[0].value;
	return kvb_core_lookup(r->s->core, req, &native_of(r)->u.lookup.res, &r->arena, &r->err, &r->done);
}
void kvb_op_lookup_write(struct kvb_call *r)
{
	native_of(r)->codec->write_lookup_res(&r->out, &native_of(r)->u.lookup.res);
}

int kvb_op_start_run(struct kvb_call *r)
{
	struct kvb_v1_in in = kvb_native_input(r);
	struct kvb_start_req *req = &native_of(r)->u.start.req;
	int rc = native_of(r)->body_codec->read_start_req(&in, r->body, r->n_body, req, &r->err);

	if (rc != KVB_OK)
		return rc;
	req->tenant = r->caller.tenant;
	req->instance = r->param[0].value;
	return kvb_core_start(r->s->core, req, &native_of(r)->u.start.res, &r->arena, &r->err, &r->done);
}
void kvb_op_start_write(struct kvb_call *r) { native_of(r)->codec->write_start_res(&r->out, &native_of(r)->u.start.res); }

int kvb_op_delete_run(struct kvb_call *r)
{
	struct kvb_v1_in in = kvb_native_input(r);
	struct kvb_delete_req *req = &native_of(r)->u.del.req;
	int rc = native_of(r)->body_codec->read_delete_req(&in, r->body, r->n_body, req, &r->err);

	if (rc != KVB_OK)
		return rc;
	req->tenant = r->caller.tenant;
	req->instance = r->param[0].value;
	return kvb_core_delete(r->s->core, req, &native_of(r)->u.del.res, &r->arena, &r->err, &r->done);
}
void kvb_op_delete_write(struct kvb_call *r) { native_of(r)->codec->write_delete_res(&r->out, &native_of(r)->u.del.res); }

int kvb_op_trim_run(struct kvb_call *r)
{
	struct kvb_v1_in in = kvb_native_input(r);
	struct kvb_trim_req *req = &native_of(r)->u.trim.req;
	int rc = native_of(r)->body_codec->read_trim_req(&in, r->body, r->n_body, req, &r->err);

	if (rc != KVB_OK)
		return rc;
	req->tenant = r->caller.tenant;
	req->instance = r->param[0].value;
	return kvb_core_trim(r->s->core, req, &native_of(r)->u.trim.res, &r->arena, &r->err, &r->done);
}
void kvb_op_trim_write(struct kvb_call *r) { native_of(r)->codec->write_trim_res(&r->out, &native_of(r)->u.trim.res); }

/* ---- sessions -------------------------------------------------------------------------------- */

static int check_session(struct kvb_call *r)
{
	struct kvb_key ignored;

	if (kvb_key_from_hex(r->param[0].value, strlen(r->param[0].value), &ignored))
		return KVB_OK;
	return kvb_fail(&r->err, KVB_E_INVALID, "session", "a session id has %d hex digits",
			KVB_SESSION_ID_HEX);
}

int kvb_op_finish_run(struct kvb_call *r)
{
	struct kvb_v1_in in = kvb_native_input(r);
	struct kvb_finish_req *req = &native_of(r)->u.finish.req;
	int rc = check_session(r);

	if (rc == KVB_OK)
		rc = native_of(r)->body_codec->read_finish_req(&in, r->body, r->n_body, req, &r->err);
	if (rc != KVB_OK)
		return rc;
	req->tenant = r->caller.tenant;
	req->session = r->param[0].value;
	return kvb_core_finish(r->s->core, req, &native_of(r)->u.finish.res, &r->arena, &r->err, &r->done);
}
void kvb_op_finish_write(struct kvb_call *r)
{
	native_of(r)->codec->write_finish_res(&r->out, &native_of(r)->u.finish.res);
}

int kvb_op_abort_run(struct kvb_call *r)
{
	struct kvb_v1_in in = kvb_native_input(r);
	struct kvb_abort_req *req = &native_of(r)->u.finish.abort;
	int rc = check_session(r);

	if (rc == KVB_OK)
		rc = native_of(r)->body_codec->read_abort_req(&in, r->body, r->n_body, req, &r->err);
	if (rc != KVB_OK)
		return rc;
	req->tenant = r->caller.tenant;
	req->session = r->param[0].value;
	return kvb_core_abort(r->s->core, req, &native_of(r)->u.finish.res, &r->arena, &r->err, &r->done);
}
void kvb_op_abort_write(struct kvb_call *r)
{
	native_of(r)->codec->write_finish_res(&r->out, &native_of(r)->u.finish.res);
}

/* ---- one block, for a person ----------------------------------------------------------------- */

static int get_block(struct kvb_call *r, struct kvb_key key)
{
	return kvb_core_block(r->s->core, r->caller.tenant, r->param[0].value, key, &native_of(r)->u.block,
			      &r->arena, &r->err);
}

int kvb_op_block_get_run(struct kvb_call *r)
{
	struct kvb_key key;

	if (!kvb_key_from_hex(r->param[1].value, strlen(r->param[1].value), &key))
		return kvb_fail(&r->err, KVB_E_INVALID, "key",
				"a key in the path has %d hex digits; use ?key= or ?key_int= for "
				"others", KVB_KEY_HEX);
	return get_block(r, key);
}
void kvb_op_block_get_write(struct kvb_call *r)
{
	native_of(r)->codec->write_block_view(&r->out, &native_of(r)->u.block);
}

static int key_from_text(struct kvb_call *r, const char *raw, struct kvb_key *out)
{
	char text[KVB_MAX_KEY_STRING + 1];

	if (!kvb_percent_decode(raw, strlen(raw), text, sizeof text) || !*text)
		return kvb_fail(&r->err, KVB_E_INVALID, "key",
				"a key has 1..%u bytes, percent-encoded", KVB_MAX_KEY_STRING);
	*out = kvb_key_from_string(kvb_core_secret(r->s->core), text, strlen(text));
	return KVB_OK;
}

static int key_from_int(struct kvb_call *r, const char *text, struct kvb_key *out)
{
	char *end = NULL;

	errno = 0;
	*out = (struct kvb_key){ 0, strtoull(text, &end, 10) };
	if (*text < '0' || *text > '9' || *end || errno)
		return kvb_fail(&r->err, KVB_E_INVALID, "key_int",
				"a decimal number below 2^64 is expected");
	return KVB_OK;
}

int kvb_op_block_find_run(struct kvb_call *r)
{
	const char *text = native_of(r)->key_text;
	const char *number = native_of(r)->key_number;
	struct kvb_key key;
	int rc;

	if (!text == !number)
		return kvb_fail(&r->err, KVB_E_INVALID, "key",
				"give either ?key=TEXT or ?key_int=NUMBER");
	rc = text ? key_from_text(r, text, &key) : key_from_int(r, number, &key);
	return rc == KVB_OK ? get_block(r, key) : rc;
}
void kvb_op_block_find_write(struct kvb_call *r) { kvb_op_block_get_write(r); }
