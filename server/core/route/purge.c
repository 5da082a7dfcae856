/*
 * purge.c - a purge over all partitions: each does its own part, here or at the manager that owns
 * it. No state.
 */
#include "at.h"

#include <stdio.h>
#include <string.h>

#include <skv/arena.h>

#include "route.h"

/* Totals of a purge, and its first failure. */
struct purge {
	const struct skv_purge_req *req;
	struct skv_purge_res *res;
	struct skv_arena *a;
	struct skv_error failure;
	uint32_t failed; /* partitions */
};

static int check_request(const struct skv_purge_req *q, struct skv_error *err)
{
	const uint32_t given = (q->n_instances > 0) + (*q->prefix != 0) + (*q->group != 0) +
			       (*q->whose != 0);

	return given == 1 ? SKV_OK
			  : skv_fail(err, SKV_E_INVALID, "instances",
				     "give exactly one of instances, prefix, group and tenant");
}

static int add(struct purge *g, const struct skv_purge_res *more)
{
	struct skv_purge_res *all = g->res;
	const uint32_t n = all->n_instances + more->n_instances;
	const char **names = skv_arena_calloc(g->a, n + 1u, sizeof *names);

	if (!names)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < n; i++)
		names[i] = i < all->n_instances ? all->instances[i]
						: more->instances[i - all->n_instances];
	*all = (struct skv_purge_res){ .n_instances = n, .instances = names,
				       .blocks = all->blocks + more->blocks,
				       .sessions = all->sessions + more->sessions };
	return SKV_OK;
}

/* Purges a partition. After a failure the others continue: everything that can be purged is. */
static void purge_partition(struct purge *g, struct skv_cluster *at)
{
	struct skv_purge_res more;
	struct skv_error err = { 0 };
	int rc = at_purge(at, g->req, &more, g->a, &err);

	if (rc == SKV_OK)
		rc = add(g, &more);
	if (rc == SKV_OK)
		return;
	if (!g->failed++)
		skv_fail(&g->failure, rc, NULL, "partition %u: %.200s", (unsigned)at->core->number,
			 *err.message ? err.message : skv_status_text(rc));
}

static bool is_purged(const struct skv_purge_res *res, const char *name)
{
	for (uint32_t i = 0; i < res->n_instances; i++)
		if (strcmp(res->instances[i], name) == 0)
			return true;
	return false;
}

/* Names those that are not purged, as far as they are known, and why. */
static int report_failure(const struct purge *g, struct skv_error *err)
{
	char names[120] = "";
	size_t n = 0;

	for (uint32_t i = 0; i < g->req->n_instances && n < sizeof names; i++)
		if (!is_purged(g->res, g->req->instances[i]))
			n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : " ",
					      g->req->instances[i]);
	*err = g->failure;
	return skv_fail(err, g->failure.status, NULL,
			"not purged yet:%s, in %u of the partitions; purged instances: %u; repeat "
			"the call: %.120s",
			n ? names : " all that is meant", g->failed, g->res->n_instances,
			g->failure.message);
}

static int report_missing(const struct skv_purge_req *q, const struct skv_purge_res *res,
			  struct skv_error *err)
{
	char field[SKV_FIELD_MAX];

	for (uint32_t i = 0; i < q->n_instances; i++) {
		if (is_purged(res, q->instances[i]))
			continue;
		snprintf(field, sizeof field, "instances[%u]", i);
		return skv_fail(err, SKV_E_NOT_FOUND, field,
				"no instance '%s'; purged instances: %u", q->instances[i],
				res->n_instances);
	}
	return SKV_OK;
}

int skv_cluster_purge(struct skv_cluster *c, const struct skv_purge_req *req,
		      struct skv_purge_res *res, struct skv_arena *a, struct skv_error *err)
{
	struct purge g = { .req = req, .res = res, .a = a };
	int rc = check_request(req, err);

	if (rc == SKV_OK && c->core)
		return one_purge(c->core, req, res, a, err);
	*res = (struct skv_purge_res){ .blocks = 0 };
	if (rc == SKV_OK)
		rc = route_everywhere(c->route, err);
	if (rc != SKV_OK)
		return rc;
	for (uint32_t i = 0; i < c->route->n; i++)
		purge_partition(&g, &c->route->part[i]);
	return g.failed ? report_failure(&g, err) : report_missing(req, res, err);
}
