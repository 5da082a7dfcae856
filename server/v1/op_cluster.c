/*
 * op_cluster.c - the managers of a store: the list of members, the partitions that this one owns or
 * follows; draining; moves.
 *
 * Members are those of skv/members.h. Everything lives in the request.
 */
#include "v1.h"

#include <string.h>

#include <skv/core.h>
#include <skv/mem.h>
#include <skv/members.h>
#include <skv/nodes.h>

struct members {
	struct skv_member *v;
	uint32_t n;
};

_Static_assert(SKV_MEMBER_ID == SKV_OWNER_NAME, "a process's id fits");

static int list_members(struct skv_request *r, const struct members *known,
			struct skv_cluster_view *out)
{
	const struct skv_member *v = known->v;
	const uint32_t n = known->n;

	out->members = skv_arena_calloc(&r->arena, n + 1, sizeof *out->members);
	if (!out->members)
		return skv_fail(&r->err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < n; i++) {
		struct skv_member_view *m = &out->members[i];

		skv_node_process(v[i].name, m->id);
		m->url = v[i].peer;
		m->draining = v[i].draining;
	}
	out->n_members = n;
	return SKV_OK;
}

/* Returns the member's address for clients, if published. */
static const char *url_of(const struct members *known, const char *id)
{
	char other[SKV_MEMBER_ID];

	for (uint32_t i = 0; *id && i < known->n; i++) {
		skv_node_process(known->v[i].name, other);
		if (strcmp(other, id) == 0)
			return known->v[i].url;
	}
	return "";
}

static int list_partitions(struct skv_request *r, const struct members *known,
			   struct skv_cluster_view *out)
{
	struct skv_homes *homes = skv_arena_alloc(&r->arena, sizeof *homes);
	const uint32_t n = skv_cluster_partitions(r->s->cluster);
	int rc;

	out->partitions = skv_arena_calloc(&r->arena, n, sizeof *out->partitions);
	if (!out->partitions || !homes)
		return skv_fail(&r->err, SKV_E_NOMEM, NULL, "out of memory");
	rc = skv_homes_read(r->s->cluster, homes, &r->err);
	if (rc != SKV_OK)
		return rc;
	for (uint32_t i = 0; i < n; i++) {
		struct skv_member_partition *p = &out->partitions[i];
		struct skv_partition_view v;

		skv_cluster_partition_get(r->s->cluster, i, &v);
		*p = (struct skv_member_partition){
			.number = i, .state = skv_state_texts[v.state], .loaded = v.loaded,
			.record = v.loaded ? v.seq : 0, .behind = v.loaded ? v.behind : 0,
			.blocks = v.blocks, .groups = v.groups, .epoch = v.epoch,
			.home = homes->peer[i],
		};
		skv_node_process(v.owner, p->owner);
		p->url = url_of(known, p->owner);
	}
	out->n_partitions = n;
	return SKV_OK;
}

int skv_op_cluster_get_run(struct skv_request *r)
{
	struct skv_cluster_view *out = &v1_of(r)->u.cluster;
	char self[SKV_OWNER_NAME], leader[SKV_OWNER_NAME];
	struct members known = { .n = 0 };
	uint64_t left;
	int rc;

	v1_of(r)->answer = out;
	*out = (struct skv_cluster_view){
		.version = SKV_VERSION,
		.state = skv_state_texts[skv_cluster_state_get(r->s->cluster)],
		.draining = skv_cluster_draining(r->s->cluster),
	};
	skv_cluster_leader(r->s->cluster, self, leader, &left);
	skv_node_process(self, out->id);
	rc = skv_members_list(r->s, &r->arena, &known.v, &known.n, &r->err);
	if (rc == SKV_OK)
		rc = list_members(r, &known, out);
	return rc == SKV_OK ? list_partitions(r, &known, out) : rc;
}

int skv_op_cluster_put_run(struct skv_request *r)
{
	const struct skv_v1_in in = { .arena = &r->arena, .tenant = r->caller.tenant };
	struct skv_drain_spec spec;
	int rc = v1_of(r)->body_codec->read_drain(&in, r->body, r->n_body, &spec, &r->err);

	if (rc == SKV_OK)
		rc = skv_cluster_drain(r->s->cluster, spec.draining, &r->err);
	return rc == SKV_OK ? skv_op_cluster_get_run(r) : rc;
}

/* ---- moves ----------------------------------------------------------------------------------- */

/* Members have addresses of their own, or none can be told from another. */
static int check_home(struct skv_request *r, const char *url)
{
	struct skv_member_seen *v;
	uint32_t n, found = 0;
	bool draining = false;
	int rc;

	if (!r->s->spread.started || !r->s->spread.shares)
		return skv_fail(&r->err, SKV_E_UNSUPPORTED, NULL,
				"one manager has all of this store: it is a file, or has one "
				"partition");
	rc = skv_members_seen(&r->s->members, &v, &n);
	for (uint32_t i = 0; i < n; i++) {
		if (strcmp(v[i].peer, url) != 0)
			continue;
		draining = v[i].draining;
		found++;
	}
	skv_free(v);
	if (rc != SKV_OK)
		return skv_fail(&r->err, rc, NULL, "out of memory");
	if (found != 1)
		return skv_fail(&r->err, SKV_E_INVALID, "member",
				found ? "several members have that url"
				      : "there is no member with that url");
	return draining ? skv_fail(&r->err, SKV_E_CONFLICT, "member", "it is drained") : SKV_OK;
}

int skv_op_home_put_run(struct skv_request *r)
{
	const struct skv_v1_in in = { .arena = &r->arena, .tenant = r->caller.tenant };
	const uint32_t n = skv_cluster_partitions(r->s->cluster);
	struct skv_home_spec spec;
	int rc = v1_of(r)->body_codec->read_home(&in, r->body, r->n_body, &spec, &r->err);

	if (rc == SKV_OK && spec.partition >= n)
		rc = skv_fail(&r->err, SKV_E_INVALID, "partition", "must be below %u", (unsigned)n);
	if (rc == SKV_OK && *spec.member)
		rc = check_home(r, spec.member);
	if (rc == SKV_OK)
		rc = skv_home_put(r->s->cluster, spec.partition, spec.member, &r->err);
	return rc == SKV_OK ? skv_op_cluster_get_run(r) : rc;
}
