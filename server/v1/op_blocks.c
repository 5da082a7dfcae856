/*
 * op_blocks.c - the block operations: match, all CALLs of skv/v1_operations.h,
 * finish, abort, one block, moves.
 *
 * Each run function decodes into the request's struct and calls the core with the request's own
 * completion; each write function encodes the result. Nothing here waits, allocates outside the
 * request, or keeps state.
 */
#include "match_split.h"
#include "v1.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void find_instances(struct skv_request *r, const struct skv_match_req *req)
{
	skv_request_find(r, SKV_TARGET_INSTANCE, NULL, req->instances[0]);
	for (uint32_t i = 1; r->door.alone && i < req->n_instances; i++)
		skv_request_find_too(r, req->instances[i]);
}

int skv_op_match_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	int rc = v1_of(r)->body_codec->read_match_req(&in, r->body, r->n_body,
						      &v1_of(r)->u.match.req, &r->err);

	if (rc != SKV_OK)
		return rc;
	v1_of(r)->u.match.req.tenant = r->caller.tenant;
	find_instances(r, &v1_of(r)->u.match.req);
	rc = skv_core_match(skv_request_core(r), &v1_of(r)->u.match.req, &v1_of(r)->u.match.res,
			    &r->arena, &r->err);
	return rc == SKV_OK ? rc : match_split(r, rc);
}

void skv_op_match_write(struct skv_request *r)
{
	v1_of(r)->codec->write_match_res(&r->out, &v1_of(r)->u.match.res);
}

/* Sent on by another manager, or to one, it may have been carried out before: its id tells. */
static void name_start(struct skv_request *r, struct skv_start_req *req)
{
	const char *id = *req->request_id ? NULL : skv_forward_id(r);

	if (id)
		req->request_id = id;
}

#define CALL_FUNCTIONS(name, ...)                                                                  \
	int skv_op_##name##_run(struct skv_request *r)                                             \
	{                                                                                          \
		struct skv_v1_in in = skv_v1_input(r);                                             \
		struct skv_##name##_req *req = &v1_of(r)->u.name.req;                              \
		int rc = v1_of(r)->body_codec->read_##name##_req(&in, r->body, r->n_body, req,     \
								 &r->err);                         \
                                                                                                   \
		if (rc != SKV_OK)                                                                  \
			return rc;                                                                 \
		req->tenant = r->caller.tenant;                                                    \
		req->instance = r->param[0].value;                                                 \
		if (ROUTE_ID_##name == ROUTE_ID_start)                                             \
			name_start(r, &v1_of(r)->u.start.req);                                     \
		if (ROUTE_ID_##name == ROUTE_ID_lookup)                                            \
			v1_of(r)->u.lookup.req.want_copies = true;                                 \
		if (ROUTE_ID_##name == ROUTE_ID_report)                                            \
			v1_of(r)->u.report.req.may_delete =                                        \
				r->caller.role >= skv_routes[ROUTE_ID_delete].role;                \
		return skv_core_##name(skv_request_core(r), req, &v1_of(r)->u.name.res, &r->arena, \
				       &r->err, &r->done);                                         \
	}                                                                                          \
	void skv_op_##name##_write(struct skv_request *r)                                          \
	{                                                                                          \
		v1_of(r)->codec->write_##name##_res(&r->out, &v1_of(r)->u.name.res);               \
	}
SKV_OPERATIONS(SKV_NOTHING, CALL_FUNCTIONS)

/* ---- sessions -------------------------------------------------------------------------------- */

static int check_session(struct skv_request *r)
{
	struct skv_key ignored;

	if (skv_key_from_hex(r->param[0].value, strlen(r->param[0].value), &ignored))
		return SKV_OK;
	return skv_fail(&r->err, SKV_E_INVALID, "session", "a session id has %d hex digits",
			SKV_SESSION_ID_HEX);
}

int skv_op_finish_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_finish_req *req = &v1_of(r)->u.finish.req;
	int rc = check_session(r);

	if (rc == SKV_OK)
		rc = v1_of(r)->body_codec->read_finish_req(&in, r->body, r->n_body, req, &r->err);
	if (rc != SKV_OK)
		return rc;
	req->tenant = r->caller.tenant;
	req->session = r->param[0].value;
	return skv_core_finish(skv_request_core(r), req, &v1_of(r)->u.finish.res, &r->arena,
			       &r->err, &r->done);
}
void skv_op_finish_write(struct skv_request *r)
{
	v1_of(r)->codec->write_finish_res(&r->out, &v1_of(r)->u.finish.res);
}

int skv_op_abort_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_abort_req *req = &v1_of(r)->u.finish.abort;
	int rc = check_session(r);

	if (rc == SKV_OK)
		rc = v1_of(r)->body_codec->read_abort_req(&in, r->body, r->n_body, req, &r->err);
	if (rc != SKV_OK)
		return rc;
	req->tenant = r->caller.tenant;
	req->session = r->param[0].value;
	return skv_core_abort(skv_request_core(r), req, &v1_of(r)->u.finish.res, &r->arena, &r->err,
			      &r->done);
}
void skv_op_abort_write(struct skv_request *r)
{
	v1_of(r)->codec->write_finish_res(&r->out, &v1_of(r)->u.finish.res);
}

/* ---- one block, for a person ----------------------------------------------------------------- */

static int get_block(struct skv_request *r, struct skv_key key)
{
	return skv_core_block(skv_request_core(r), r->caller.tenant, r->param[0].value, key,
			      &v1_of(r)->u.block, &r->arena, &r->err);
}

int skv_op_block_get_run(struct skv_request *r)
{
	struct skv_key key;

	if (!skv_key_from_hex(r->param[1].value, strlen(r->param[1].value), &key))
		return skv_fail(&r->err, SKV_E_INVALID, "key",
				"a key in the path has %d hex digits; use ?key= or ?key_int= for "
				"others", SKV_KEY_HEX);
	return get_block(r, key);
}
void skv_op_block_get_write(struct skv_request *r)
{
	v1_of(r)->codec->write_block_view(&r->out, &v1_of(r)->u.block);
}

static int key_from_text(struct skv_request *r, const char *raw, struct skv_key *out)
{
	char text[SKV_MAX_KEY_STRING + 1];

	if (!skv_percent_decode(raw, strlen(raw), text, sizeof text) || !*text)
		return skv_fail(&r->err, SKV_E_INVALID, "key",
				"a key has 1..%u bytes, percent-encoded", SKV_MAX_KEY_STRING);
	*out = skv_key_from_string(skv_core_secret(r->s->core), text, strlen(text));
	return SKV_OK;
}

static int key_from_int(struct skv_request *r, const char *text, struct skv_key *out)
{
	char *end = NULL;

	errno = 0;
	*out = (struct skv_key){ 0, strtoull(text, &end, 10) };
	if (*text < '0' || *text > '9' || *end || errno)
		return skv_fail(&r->err, SKV_E_INVALID, "key_int",
				"a decimal number below 2^64 is expected");
	return SKV_OK;
}

int skv_op_block_find_run(struct skv_request *r)
{
	const char *text = v1_of(r)->key_text;
	const char *number = v1_of(r)->key_number;
	struct skv_key key;
	int rc;

	if (!text == !number)
		return skv_fail(&r->err, SKV_E_INVALID, "key",
				"give either ?key=TEXT or ?key_int=NUMBER");
	assert((text != NULL) + (number != NULL) == 1);
	rc = text ? key_from_text(r, text, &key) : key_from_int(r, number, &key);
	return rc == SKV_OK ? get_block(r, key) : rc;
}
void skv_op_block_find_write(struct skv_request *r) { skv_op_block_get_write(r); }

/* ---- moves, for movers ----------------------------------------------------------------------- */

int skv_op_move_take_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_move_take_req *req = &v1_of(r)->u.move.take;
	int rc = v1_of(r)->body_codec->read_move_take(&in, r->body, r->n_body, req, &r->err);

	if (rc != SKV_OK)
		return rc;
	return skv_core_move_take(skv_request_core(r), req, &v1_of(r)->u.move.taken, &r->arena,
				  &r->err, &r->done);
}

static bool fill_files(struct skv_request *r, const struct skv_files *files,
		       struct skv_move_view *v)
{
	struct skv_move_file *f = skv_arena_calloc(&r->arena, files->n + 1u, sizeof *f);

	for (uint32_t i = 0; f && i < files->n; i++)
		f[i] = (struct skv_move_file){ files->v[i].storage, files->v[i].type,
					       files->v[i].uuid, files->v[i].path };
	v->files = f;
	v->n_files = files->n;
	return f != NULL;
}

static bool fill_slots(struct skv_request *r, const struct skv_move_take_res *res,
		       struct skv_move_view *v)
{
	struct skv_move_slot *s = skv_arena_calloc(&r->arena, res->n + 1u, sizeof *s);
	char(*sums)[17] = skv_arena_calloc(&r->arena, res->n + 1u, sizeof *sums);

	for (uint32_t i = 0; s && sums && i < res->n; i++) {
		snprintf(sums[i], sizeof sums[i], "%016llx",
			 (unsigned long long)res->from[i].checksum);
		s[i] = (struct skv_move_slot){
			.from_file = res->from[i].file, .from_offset = res->from[i].offset,
			.to_file = res->checks ? 0 : res->to[i].file,
			.to_offset = res->checks ? 0 : res->to[i].offset,
			.length = res->from[i].length, .generation = res->from[i].generation,
			.checksum = sums[i],
		};
	}
	v->slots = s;
	v->n_slots = res->n;
	return s && sums;
}

void skv_op_move_take_write(struct skv_request *r)
{
	const struct skv_move_take_res *res = &v1_of(r)->u.move.taken;
	struct skv_move_view v = { .move = res->move, .deadline_ms = res->deadline_ms,
				   .checks = res->checks, .scrub = res->scrub };

	if (fill_files(r, &res->files, &v) && fill_slots(r, res, &v))
		v1_of(r)->codec->write_move_view(&r->out, &v);
	else
		r->out.failed = true;
}

int skv_op_move_finish_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_move_finish_req *req = &v1_of(r)->u.move.finish;
	int rc = v1_of(r)->body_codec->read_move_finish_req(&in, r->body, r->n_body, req, &r->err);

	if (rc != SKV_OK)
		return rc;
	req->move = r->param[0].value;
	return skv_core_move_finish(skv_request_core(r), req, &v1_of(r)->u.move.finished, &r->arena,
				    &r->err, &r->done);
}

void skv_op_move_finish_write(struct skv_request *r)
{
	v1_of(r)->codec->write_move_finish_res(&r->out, &v1_of(r)->u.move.finished);
}
