/*
 * match.c - reports how much of a prompt each of several instances has, in all partitions.
 *
 * Each instance is found first (skv_find). Instances here are matched here. Each other owner is
 * called once, for all its instances. A manager called this way calls no other: if it lacks an
 * instance it returns not_owner, and the whole match runs again. All data is in the request's
 * arena. No state of its own.
 */
#include "v1.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/core.h>
#include <skv/v1_pb.h>

#define HERE UINT8_MAX

/* Names the instance. */
static int fail_at(struct skv_request *r, uint32_t number, int rc, struct skv_error err)
{
	char field[SKV_FIELD_MAX];

	assert(rc < 0 && number < v1_of(r)->u.match.req.n_instances);
	snprintf(field, sizeof field, "instances[%" PRIu32 "]", number);
	return skv_fail(&r->err, rc, field, "%s",
			*err.message ? err.message : skv_status_text(rc));
}

/* The request for those that `of` says are of this part, and where they are in the whole one. */
static bool pick(struct skv_request *r, const uint8_t *of, uint32_t part, struct skv_match_req *out,
		 uint32_t **at)
{
	const struct skv_match_req *req = &v1_of(r)->u.match.req;
	const char **names = skv_arena_alloc(&r->arena, req->n_instances * sizeof *names);

	*at = skv_arena_alloc(&r->arena, req->n_instances * sizeof **at);
	*out = *req;
	out->instances = names;
	out->n_instances = 0;
	for (uint32_t i = 0; names && *at && i < req->n_instances; i++) {
		if (of[i] != part)
			continue;
		(*at)[out->n_instances] = i;
		names[out->n_instances++] = req->instances[i];
	}
	assert(!names || !*at || out->n_instances > 0); /* none is asked for nothing */
	return names && *at;
}

/* ---- the answers ----------------------------------------------------------------------------- */

static int take_failure(struct skv_request *r, const struct skv_part *p, const uint32_t *at,
			uint32_t n)
{
	const struct skv_v1_in in = { .arena = &r->arena };
	struct skv_error err = { 0 };
	uint32_t number = 0;
	int rc = skv_pb_read_error(&in, (const char *)p->answer.data, p->answer.len, &err);

	if (sscanf(err.field, "instances[%" SCNu32 "]", &number) != 1 || number >= n)
		number = 0;
	return fail_at(r, at[number], rc, err);
}

static int take(struct skv_request *r, const struct skv_part *p, uint32_t part)
{
	const struct skv_v1_in in = { .arena = &r->arena };
	struct skv_match_req asked;
	struct skv_match_res res;
	uint32_t *at;
	int rc;

	if (!pick(r, v1_of(r)->u.match.of, part, &asked, &at))
		return SKV_E_NOMEM;
	if (p->http != 200)
		return take_failure(r, p, at, asked.n_instances);
	rc = skv_pb_read_match_res(&in, (const char *)p->answer.data, p->answer.len, &res, &r->err);
	if (rc == SKV_OK && res.n_instances != asked.n_instances)
		rc = skv_fail(&r->err, SKV_E_INTERNAL, NULL, "another answer than was asked for");
	for (uint32_t i = 0; rc == SKV_OK && i < res.n_instances; i++)
		v1_of(r)->u.match.matched[at[i]] = res.matched[i];
	return rc;
}

static int join(struct skv_request *r, struct skv_part *part, uint32_t n)
{
	const struct skv_match_req *req = &v1_of(r)->u.match.req;
	int rc = SKV_OK;

	assert(n > 0 && n <= SKV_MAX_PARTITIONS && n <= req->n_instances);
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++)
		rc = take(r, &part[i], i);
	v1_of(r)->u.match.res = (struct skv_match_res){ req->n_instances, req->instances,
							v1_of(r)->u.match.matched };
	return rc;
}

/* ---- the parts ------------------------------------------------------------------------------- */

/* Matches the instances that are here, or nowhere. */
static int match_here(struct skv_request *r)
{
	const struct skv_match_req *req = &v1_of(r)->u.match.req;
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i < req->n_instances; i++) {
		struct skv_match_req one = *req;
		struct skv_match_res got;

		if (v1_of(r)->u.match.of[i] != HERE)
			continue;
		one.instances = &req->instances[i];
		one.n_instances = 1;
		rc = skv_cluster_match(r->s->cluster, &one, &got, &r->arena, &r->err);
		if (rc == SKV_OK)
			v1_of(r)->u.match.matched[i] = got.matched[0];
		else if (*r->err.field)
			return fail_at(r, i, rc, r->err);
	}
	return rc;
}

static int write_parts(struct skv_request *r, struct skv_part *part, uint32_t n)
{
	const struct skv_match_req *req = &v1_of(r)->u.match.req;
	const struct skv_key_input keys = { .form = SKV_KEYS_HEX, .n = req->n_keys,
					    .keys = req->keys };

	for (uint32_t i = 0; i < n; i++) {
		struct skv_buf body = { 0 };
		struct skv_match_req some;
		uint32_t *at;

		if (!pick(r, v1_of(r)->u.match.of, i, &some, &at))
			return SKV_E_NOMEM;
		skv_pb_write_match_req(&body, &some, &keys);
		part[i].n_body = body.len;
		if (!body.failed)
			part[i].body = skv_arena_strndup(&r->arena, (const char *)body.data,
							 body.len);
		skv_buf_destroy(&body);
		if (!part[i].body)
			return SKV_E_NOMEM;
	}
	return SKV_OK;
}

/* `of` names partitions: it becomes the parts. */
static int ask_owners(struct skv_request *r, uint8_t *of)
{
	const uint32_t n_instances = v1_of(r)->u.match.req.n_instances;
	/* an entry more than the limit: the next owner is examined before it is known to be new */
	struct skv_part *part = skv_arena_calloc(&r->arena, SKV_MAX_PARTITIONS + 1, sizeof *part);
	uint32_t n = 0, at = 0;
	bool here = false;
	int rc = part ? SKV_OK : SKV_E_NOMEM;

	for (uint32_t i = 0; rc == SKV_OK && i < n_instances; i++) {
		here |= of[i] == HERE;
		if (of[i] == HERE)
			continue;
		rc = skv_forward_part(r, of[i], part, &n, &at);
		of[i] = (uint8_t)at;
	}
	if (rc != SKV_OK)
		return rc;
	assert(n > 0);
	if (!here && n == 1 && !r->forwarding.came) { /* forward the call unchanged */
		r->forwarding.parts = false;
		return skv_request_check_door(r);
	}
	r->door = (struct skv_door){ .core = NULL }; /* nothing is looked up here, unless */
	if (here)
		skv_request_find(r, SKV_TARGET_NONE, NULL, NULL);
	rc = match_here(r);
	if (rc == SKV_OK)
		rc = write_parts(r, part, n);
	if (rc != SKV_OK)
		return rc;
	skv_metrics_add(&r->s->metrics, METRIC_matches_split, 1);
	return skv_forward_parts(r, "/v1/match", part, n, join);
}

/* Finds the owners; *there: the number of instances of other managers. The door is that of the last
 * of these, if there are any; else for all. */
static int find_all(struct skv_request *r, uint8_t *of, uint32_t *there)
{
	const struct skv_match_req *req = &v1_of(r)->u.match.req;
	uint32_t other = 0, first = 0;
	bool same = true;

	*there = 0;
	for (uint32_t i = 0; i < req->n_instances; i++) {
		const enum skv_where where =
			skv_request_find(r, SKV_TARGET_INSTANCE, NULL, req->instances[i]);

		if (where == SKV_SOON)
			return skv_request_check_door(r);
		assert(r->door.partition < SKV_MAX_PARTITIONS);
		of[i] = where == SKV_THERE ? (uint8_t)r->door.partition : HERE;
		other = where == SKV_THERE ? i : other;
		*there += where == SKV_THERE;
		first = i ? first : r->door.partition;
		same &= r->door.alone && r->door.partition == first;
	}
	if (*there)
		skv_request_find(r, SKV_TARGET_INSTANCE, NULL, req->instances[other]);
	else if (!same && req->n_instances > 1)
		skv_request_find(r, SKV_TARGET_NONE, NULL, NULL);
	return SKV_OK;
}

int v1_match(struct skv_request *r)
{
	const struct skv_match_req *req = &v1_of(r)->u.match.req;
	const size_t n = req->n_instances + (size_t)1;
	uint8_t *of = skv_arena_alloc(&r->arena, n);
	uint32_t there;
	int rc;

	v1_of(r)->u.match.of = of;
	v1_of(r)->u.match.matched = skv_arena_calloc(&r->arena, n, sizeof(uint32_t));
	if (!of || !v1_of(r)->u.match.matched)
		return SKV_E_NOMEM;
	rc = find_all(r, of, &there);
	if (rc != SKV_OK)
		return rc;
	if (there == 0)
		return skv_cluster_match(skv_request_cluster(r), req, &v1_of(r)->u.match.res,
					 &r->arena, &r->err);
	return skv_forward_may_part(r, there < req->n_instances) ? ask_owners(r, of)
								  : skv_request_check_door(r);
}
