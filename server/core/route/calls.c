/*
 * calls.c - block operations: each goes to the core that has the instance, or the session.
 */
#include "route.h"

#include <stdio.h>

#include <skv/arena.h>
#include <skv/clock.h>

#include <model/rules.h>

static int over_rate(struct skv_core *c, const char *tenant, struct skv_error *err)
{
	COUNT(c, tenant_over_rate, 1);
	return skv_fail(err, SKV_E_TOO_MANY, SKV_BLOCKS_PER_S,
			"tenant '%s' is over its blocks_per_s: retry later", tenant);
}

/* Before a call on n blocks. */
static int check_pace(struct skv_core *c, const char *tenant, uint64_t n, struct skv_error *err)
{
	const uint32_t blocks = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;

	return rules_pass(c->rules, tenant, blocks, skv_now_us()) ? SKV_OK
								  : over_rate(c, tenant, err);
}

int skv_core_tenant_check(struct skv_core *c, const char *tenant, struct skv_error *err)
{
	return rules_shut(c->rules, tenant, skv_now_us()) ? over_rate(c, tenant, err) : SKV_OK;
}

unsigned skv_core_tenant_wait(struct skv_core *c, const char *tenant)
{
	return (unsigned)((rules_owed(c->rules, tenant, skv_now_us()) + 999999) / 1000000);
}

/* Schedulers ask for several instances at once, of any partition: one by one then. */
static int match_each(struct skv_core *c, const struct skv_match_req *req,
		      struct skv_match_res *res, struct skv_arena *a, struct skv_error *err)
{
	uint32_t *matched = skv_arena_calloc(a, req->n_instances + 1, sizeof *matched);
	int rc = matched ? SKV_OK : SKV_E_NOMEM;

	for (uint32_t i = 0; rc == SKV_OK && i < req->n_instances; i++) {
		struct skv_match_req one = *req;
		struct skv_match_res got = { 0 };

		one.instances = &req->instances[i];
		one.n_instances = 1;
		rc = one_match(core_of(c, req->tenant, req->instances[i]), &one, &got, a, err);
		if (rc == SKV_OK)
			matched[i] = got.matched[0];
		else if (err && err->field[0])
			snprintf(err->field, sizeof err->field, "instances[%u]", i);
	}
	*res = (struct skv_match_res){ req->n_instances, req->instances, matched };
	return rc;
}

int skv_core_match(struct skv_core *c, const struct skv_match_req *req, struct skv_match_res *res,
		   struct skv_arena *a, struct skv_error *err)
{
	const int rc = check_pace(c, req->tenant, (uint64_t)req->n_keys * req->n_instances, err);

	if (rc != SKV_OK)
		return rc;
	return c->route ? match_each(c, req, res, a, err) : one_match(c, req, res, a, err);
}

int skv_core_lookup(struct skv_core *c, const struct skv_lookup_req *req,
		    struct skv_lookup_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done)
{
	const int rc = check_pace(c, req->tenant, req->n_keys, err);

	if (rc != SKV_OK)
		return rc;
	return one_lookup(core_of(c, req->tenant, req->instance), req, res, a, err, done);
}

int skv_core_lookup_length(struct skv_core *c, const struct skv_lookup_req *req, uint32_t *matched,
			   struct skv_arena *a, struct skv_error *err)
{
	const int rc = check_pace(c, req->tenant, req->n_keys, err);

	if (rc != SKV_OK)
		return rc;
	return one_lookup_length(core_of(c, req->tenant, req->instance), req, matched, a, err);
}

int skv_core_start(struct skv_core *c, const struct skv_start_req *req, struct skv_start_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	const int rc = check_pace(c, req->tenant, req->n_keys, err);

	if (rc != SKV_OK)
		return rc;
	return one_start(core_of(c, req->tenant, req->instance), req, res, a, err, done);
}

int skv_core_finish(struct skv_core *c, const struct skv_finish_req *req,
		    struct skv_finish_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done)
{
	return one_finish(route_session(c, req->session), req, res, a, err, done);
}

int skv_core_abort(struct skv_core *c, const struct skv_abort_req *req, struct skv_finish_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	return one_abort(route_session(c, req->session), req, res, a, err, done);
}

int skv_core_written(struct skv_core *c, const struct skv_finish_req *req,
		     struct skv_written_res *res, struct skv_arena *a, struct skv_error *err)
{
	return one_written(route_session(c, req->session), req, res, a, err);
}

int skv_core_finish_partial(struct skv_core *c, const struct skv_partial_req *req,
			    struct skv_partial_res *res, struct skv_arena *a, struct skv_error *err,
			    const struct skv_done *done)
{
	return one_finish_partial(core_of(c, req->tenant, req->instance), req, res, a, err,
				  done);
}

int skv_core_report(struct skv_core *c, const struct skv_report_req *req,
		    struct skv_report_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done)
{
	const int rc = check_pace(c, req->tenant, req->n_damaged, err);

	if (rc != SKV_OK)
		return rc;
	return one_report(core_of(c, req->tenant, req->instance), req, res, a, err, done);
}

/* Of the first partition that may have something, another one each time. */
int skv_core_move_take(struct skv_core *c, const struct skv_move_take_req *req,
		       struct skv_move_take_res *res, struct skv_arena *a, struct skv_error *err,
		       const struct skv_done *done)
{
	struct route *r = c->route;
	uint32_t turn = r ? atomic_fetch_add(&r->move_turn, 1) : 0;

	for (uint32_t i = 0; r && i < r->n; i++)
		if (one_move_due(r->core[(turn + i) % r->n], req))
			return one_move_take(r->core[(turn + i) % r->n], req, res, a, err, done);
	return one_move_take(c, req, res, a, err, done);
}

int skv_core_move_finish(struct skv_core *c, const struct skv_move_finish_req *req,
			 struct skv_move_finish_res *res, struct skv_arena *a,
			 struct skv_error *err, const struct skv_done *done)
{
	return one_move_finish(route_move(c, req->move), req, res, a, err, done);
}

int skv_core_delete(struct skv_core *c, const struct skv_delete_req *req,
		    struct skv_delete_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done)
{
	return one_delete(core_of(c, req->tenant, req->instance), req, res, a, err, done);
}

int skv_core_trim(struct skv_core *c, const struct skv_trim_req *req, struct skv_trim_res *res,
		  struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	return one_trim(core_of(c, req->tenant, req->instance), req, res, a, err, done);
}

int skv_core_clear(struct skv_core *c, const struct skv_clear_req *req, struct skv_clear_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	return one_clear(core_of(c, req->tenant, req->instance), req, res, a, err, done);
}

int skv_core_pin(struct skv_core *c, const struct skv_pin_req *req, struct skv_pin_res *res,
		 struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	const int rc = check_pace(c, req->tenant, req->n_keys, err);

	if (rc != SKV_OK)
		return rc;
	return one_pin(core_of(c, req->tenant, req->instance), req, res, a, err, done);
}

int skv_core_unpin(struct skv_core *c, const struct skv_unpin_req *req, struct skv_unpin_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	return one_unpin(core_of(c, req->tenant, req->instance), req, res, a, err, done);
}

int skv_core_pins(struct skv_core *c, const struct skv_pins_req *req, struct skv_pins_res *res,
		  struct skv_arena *a, struct skv_error *err)
{
	return one_pins(core_of(c, req->tenant, req->instance), req, res, a, err);
}

int skv_core_export(struct skv_core *c, const struct skv_export_req *req,
		    struct skv_export_res *res, struct skv_arena *a, struct skv_error *err)
{
	return one_export(core_of(c, req->tenant, req->instance), req, res, a, err);
}

int skv_core_states(struct skv_core *c, const struct skv_states_req *req,
		    struct skv_states_res *res, struct skv_arena *a, struct skv_error *err)
{
	const int rc = check_pace(c, req->tenant, req->n_keys, err);

	if (rc != SKV_OK)
		return rc;
	return one_states(core_of(c, req->tenant, req->instance), req, res, a, err);
}

int skv_core_want(struct skv_core *c, const struct skv_want_req *req, struct skv_want_res *res,
		  struct skv_arena *a, struct skv_error *err)
{
	const uint32_t n = req->n_keys ? req->n_keys : req->sample;
	const int rc = check_pace(c, req->tenant, n, err);

	if (rc != SKV_OK)
		return rc;
	return one_want(core_of(c, req->tenant, req->instance), req, res, a, err);
}

int skv_core_block(struct skv_core *c, const char *tenant, const char *instance, struct skv_key key,
		   struct skv_block_view *out, struct skv_arena *a, struct skv_error *err)
{
	return one_block(core_of(c, tenant, instance), tenant, instance, key, out, a, err);
}
