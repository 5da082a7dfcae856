/*
 * op_blocks.c - the block operations: match, all CALLs of skv/v1_operations.h,
 * finish, abort, one block, moves.
 *
 * Each run function decodes into the request's struct and calls the core with the request's own
 * completion; each write function encodes the result. Nothing here waits, allocates outside the
 * request, or keeps state.
 */
#include "v1.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int skv_op_match_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_match_req *req = &v1_of(r)->u.match.req;
	int rc = v1_of(r)->body_codec->read_match_req(&in, r->body, r->n_body, req, &r->err);

	req->tenant = r->caller.tenant;
	return rc == SKV_OK ? v1_match(r) : rc;
}

void skv_op_match_write(struct skv_request *r)
{
	v1_of(r)->codec->write_match_res(&r->out, &v1_of(r)->u.match.res);
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
		if (SKV_OP_##name == SKV_OP_start && !*v1_of(r)->u.start.req.request_id)       \
			v1_of(r)->u.start.req.request_id = skv_request_start_id(r, 0);             \
		if (SKV_OP_##name == SKV_OP_lookup)                                            \
			v1_of(r)->u.lookup.req.want_copies = true;                                 \
		if (SKV_OP_##name == SKV_OP_report)                                            \
			v1_of(r)->u.report.req.may_delete =                                        \
				r->caller.role >= skv_routes[SKV_OP_delete].role;                \
		return skv_core_##name(skv_request_core(r), req, &v1_of(r)->u.name.res, &r->arena, \
				       &r->err, &r->done);                                         \
	}                                                                                          \
	void skv_op_##name##_write(struct skv_request *r)                                          \
	{                                                                                          \
		if (SKV_OP_##name == SKV_OP_lookup)                                            \
			v1_of(r)->u.lookup.res.runs = v1_of(r)->u.lookup.req.runs;                 \
		if (SKV_OP_##name == SKV_OP_start)                                             \
			v1_of(r)->u.start.res.runs = v1_of(r)->u.start.req.runs;                   \
		v1_of(r)->codec->write_##name##_res(&r->out, &v1_of(r)->u.name.res);               \
	}
SKV_OPERATIONS(SKV_NOTHING, SKV_NOTHING, CALL_FUNCTIONS)

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
	*out = skv_key_from_string(skv_cluster_secret(r->s->cluster), text, strlen(text));
	return SKV_OK;
}

int skv_op_block_find_run(struct skv_request *r)
{
	const char *text = v1_of(r)->key_text;
	const char *number = v1_of(r)->key_number;
	struct skv_key key = { 0, 0 };
	int rc;

	if (!text == !number)
		return skv_fail(&r->err, SKV_E_INVALID, "key",
				"give either ?key=TEXT or ?key_int=NUMBER");
	assert((text != NULL) + (number != NULL) == 1);
	rc = text ? key_from_text(r, text, &key)
		  : skv_v1_number(r, "key_int", number, &key.lo);
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
	return skv_cluster_move_take(skv_request_cluster(r), req, &v1_of(r)->u.move.taken,
				     &r->arena, &r->err, &r->done);
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
	v1_of(r)->answer = &v1_of(r)->u.move.finished;
	return skv_core_move_finish(skv_request_core(r), req, &v1_of(r)->u.move.finished, &r->arena,
				    &r->err, &r->done);
}

