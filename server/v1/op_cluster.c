/*
 * op_cluster.c - the managers of one store: who they are, what this one owns or follows; draining.
 *
 * Members are those whose address is in the store (skv/nodes.h). Everything lives in the request.
 */
#include "v1.h"

#include <string.h>

#include <skv/core.h>
#include <skv/nodes.h>

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

static int list_members(struct skv_request *r, struct skv_cluster_view *out)
{
	struct skv_doc *docs;
	uint32_t n;
	int rc = skv_node_list(r->s->core, SKV_NODE_PEER, &r->arena, &docs, &n, &r->err);

	if (rc != SKV_OK)
		return rc;
	out->members = skv_arena_calloc(&r->arena, n + 1, sizeof *out->members);
	if (!out->members)
		return skv_fail(&r->err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < n; i++) {
		struct skv_member_view *m = &out->members[out->n_members];

		if (strlen(docs[i].name) >= SKV_OWNER_NAME)
			continue;
		process_of(docs[i].name, m->id);
		m->url = docs[i].text;
		out->n_members++;
	}
	return SKV_OK;
}

static int list_partitions(struct skv_request *r, struct skv_cluster_view *out)
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
			.blocks = v.blocks, .groups = v.groups,
		};
		process_of(v.owner, p->owner);
	}
	out->n_partitions = n;
	return SKV_OK;
}

int skv_op_cluster_get_run(struct skv_request *r)
{
	struct skv_cluster_view *out = &v1_of(r)->u.cluster;
	char self[SKV_OWNER_NAME], leader[SKV_OWNER_NAME];
	uint64_t left;
	int rc;

	*out = (struct skv_cluster_view){
		.version = SKV_VERSION,
		.state = state_text(skv_core_state_get(r->s->core)),
		.draining = skv_core_draining(r->s->core),
	};
	skv_core_leader(r->s->core, self, leader, &left);
	process_of(self, out->id);
	rc = list_members(r, out);
	return rc == SKV_OK ? list_partitions(r, out) : rc;
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
