/*
 * op_cluster.c - the managers of one store: who they are, what this one owns or follows; draining.
 *
 * Members are those of skv/members.h. Everything lives in the request.
 */
#include "v1.h"

#include <string.h>

#include <skv/core.h>
#include <skv/members.h>

struct members {
	struct skv_member *v;
	uint32_t n;
};

static const char *state_text(enum skv_core_state state)
{
	static const char *const texts[] = { "standby", "recovering", "ready", "stopped" };

	return texts[state];
}

/* An owner's name without what tells the cores of one process apart. */
static void process_of(const char *owner, char out[SKV_MEMBER_ID])
{
	const char *end = strrchr(owner, '.');
	const size_t n = end ? (size_t)(end - owner) : strlen(owner);

	_Static_assert(SKV_MEMBER_ID == SKV_OWNER_NAME, "it fits");
	memcpy(out, owner, n);
	out[n] = '\0';
}

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

		process_of(v[i].name, m->id);
		m->url = v[i].peer;
		m->draining = v[i].draining;
	}
	out->n_members = n;
	return SKV_OK;
}

/* Where clients reach it, if it tells them. */
static const char *url_of(const struct members *known, const char *id)
{
	char other[SKV_MEMBER_ID];

	for (uint32_t i = 0; *id && i < known->n; i++) {
		process_of(known->v[i].name, other);
		if (strcmp(other, id) == 0)
			return known->v[i].url;
	}
	return "";
}

static int list_partitions(struct skv_request *r, const struct members *known,
			   struct skv_cluster_view *out)
{
	const uint32_t n = skv_core_partitions(r->s->core);

	out->partitions = skv_arena_calloc(&r->arena, n, sizeof *out->partitions);
	if (!out->partitions)
		return skv_fail(&r->err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < n; i++) {
		struct skv_member_partition *p = &out->partitions[i];
		struct skv_partition_view v;

		skv_core_partition_get(r->s->core, i, &v);
		*p = (struct skv_member_partition){
			.number = i, .state = state_text(v.state), .loaded = v.loaded,
			.record = v.loaded ? v.seq : 0, .behind = v.loaded ? v.behind : 0,
			.blocks = v.blocks, .groups = v.groups, .epoch = v.epoch,
		};
		process_of(v.owner, p->owner);
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

	*out = (struct skv_cluster_view){
		.version = SKV_VERSION,
		.state = state_text(skv_core_state_get(r->s->core)),
		.draining = skv_core_draining(r->s->core),
	};
	skv_core_leader(r->s->core, self, leader, &left);
	process_of(self, out->id);
	rc = skv_members_list(r->s, &r->arena, &known.v, &known.n, &r->err);
	if (rc == SKV_OK)
		rc = list_members(r, &known, out);
	return rc == SKV_OK ? list_partitions(r, &known, out) : rc;
}
void skv_op_cluster_get_write(struct skv_request *r)
{
	v1_of(r)->codec->write_cluster_view(&r->out, &v1_of(r)->u.cluster);
}

int skv_op_cluster_put_run(struct skv_request *r)
{
	const struct skv_v1_in in = { .arena = &r->arena, .tenant = r->caller.tenant };
	struct skv_drain_spec spec;
	int rc = v1_of(r)->body_codec->read_drain(&in, r->body, r->n_body, &spec, &r->err);

	if (rc == SKV_OK)
		rc = skv_core_drain(r->s->core, spec.draining, &r->err);
	return rc == SKV_OK ? skv_op_cluster_get_run(r) : rc;
}
void skv_op_cluster_put_write(struct skv_request *r) { skv_op_cluster_get_write(r); }
