/*
 * calls.c - block operations that are not for one partition. The others are the core's
 * (skv/core.h).
 */
#include "route.h"

#include <stdio.h>

#include <skv/arena.h>

#include <model/rules.h>

/* Matches the requests one by one: each may be in another partition. */
static int match_each(struct route *r, const struct skv_match_req *req, struct skv_match_res *res,
		      struct skv_arena *a, struct skv_error *err)
{
	uint32_t *matched = skv_arena_calloc(a, req->n_instances + 1, sizeof *matched);
	int rc = matched ? SKV_OK : SKV_E_NOMEM;

	for (uint32_t i = 0; rc == SKV_OK && i < req->n_instances; i++) {
		struct skv_match_req one = *req;
		struct skv_match_res got = { 0 };

		one.instances = &req->instances[i];
		one.n_instances = 1;
		rc = one_match(route_instance(r, req->tenant, req->instances[i])->core, &one, &got,
			       a, err);
		if (rc == SKV_OK)
			matched[i] = got.matched[0];
		else if (err && err->field[0])
			snprintf(err->field, sizeof err->field, "instances[%u]", i);
	}
	*res = (struct skv_match_res){ req->n_instances, req->instances, matched };
	return rc;
}

int skv_cluster_match(struct skv_cluster *c, const struct skv_match_req *req,
		      struct skv_match_res *res, struct skv_arena *a, struct skv_error *err)
{
	struct skv_core *first = c->core ? c->core : c->route->core[0];
	const int rc =
		rules_pace(first, req->tenant, (uint64_t)req->n_keys * req->n_instances, err);

	if (rc != SKV_OK)
		return rc;
	return c->core || c->route->n == 1 ? one_match(first, req, res, a, err)
					   : match_each(c->route, req, res, a, err);
}

/* Of the first partition that may have something, another one each time. */
int skv_cluster_move_take(struct skv_cluster *c, const struct skv_move_take_req *req,
			  struct skv_move_take_res *res, struct skv_arena *a, struct skv_error *err,
			  const struct skv_done *done)
{
	struct route *r = c->route;
	uint32_t turn = atomic_fetch_add(&r->move_turn, 1);

	for (uint32_t i = 0; i < r->n; i++)
		if (one_move_due(r->core[(turn + i) % r->n], req))
			return one_move_take(r->core[(turn + i) % r->n], req, res, a, err, done);
	return one_move_take(r->core[0], req, res, a, err, done);
}

int skv_cluster_clear(struct skv_cluster *c, const struct skv_clear_req *req,
		      struct skv_clear_res *res, struct skv_arena *a, struct skv_error *err,
		      const struct skv_done *done)
{
	struct skv_cluster *at = c->core ? c : route_instance(c->route, req->tenant, req->instance);

	return skv_core_clear(at->core, req, res, a, err, done);
}
