/*
 * node.c - the published endpoints of the managers of one store. See node.h.
 */
#include "node.h"

#include <string.h>

#include <skv/core.h>
#include <skv/kvcm_run.h>
#include <skv/nodes.h>

#include "model_internal.h"

#define KIND "node"

int kvcm_node_publish(struct skv_cluster *cluster, const KvcmAdmin__NodeEndpoint *own,
		      struct skv_error *err)
{
	struct skv_arena a;
	const char *text;
	int rc;

	skv_arena_init(&a);
	text = kvcm_model_text(&own->base, &a);
	rc = text ? skv_node_publish(cluster, KIND, text, err) : kvcm_model_nomem(err);
	skv_arena_destroy(&a);
	return rc;
}

void kvcm_node_retire(struct skv_cluster *cluster) { skv_node_retire(cluster, KIND); }

int kvcm_node_cluster(struct skv_cluster *cluster, const KvcmAdmin__NodeEndpoint *own,
		      struct skv_arena *a, struct kvcm_cluster *out, struct skv_error *err)
{
	char self[SKV_OWNER_NAME], leader[SKV_OWNER_NAME];
	struct skv_error ignored;
	const char *text;

	*out = (struct kvcm_cluster){ .self = own->node_id, .leader = "" };
	skv_cluster_leader(cluster, self, leader, &out->remaining_ms);
	if (!*leader)
		return SKV_OK;
	if (strcmp(self, leader) == 0) {
		out->leader = own->node_id;
		out->endpoint = own;
		return SKV_OK;
	}
	if (skv_node_text(cluster, KIND, leader, a, &text, &ignored) == SKV_OK)
		out->endpoint = (const KvcmAdmin__NodeEndpoint *)kvcm_model_message(
			&kvcm_admin__node_endpoint__descriptor, text, a);
	/* A leader that has not published yet is still somebody. */
	out->leader = out->endpoint ? out->endpoint->node_id
				    : skv_arena_strndup(a, leader, strlen(leader));
	return out->leader ? SKV_OK : kvcm_model_nomem(err);
}

KvcmMeta__MetaNodeEndpoint *kvcm_node_for_meta(const KvcmAdmin__NodeEndpoint *e,
					       struct skv_arena *a)
{
	KvcmMeta__MetaNodeEndpoint *m = skv_arena_alloc(a, sizeof *m);

	if (!m)
		return NULL;
	kvcm_meta__meta_node_endpoint__init(m);
	m->node_id = e->node_id;
	m->host = e->host;
	m->meta_rpc_port = e->meta_rpc_port;
	m->meta_http_port = e->meta_http_port;
	m->custom_info = e->custom_info;
	return m;
}
