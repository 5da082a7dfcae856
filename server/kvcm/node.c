/*
 * node.c - the documents in which managers of one store leave their endpoints. See node.h.
 */
#include "node.h"

#include <stdio.h>
#include <string.h>

#include <kvb/core.h>
#include <kvb/kvcm_run.h>
#include <kvb/store.h>

#include "model_internal.h"

#define PREFIX "node/"
#define NAME_ROOM (sizeof PREFIX + 192)

static void document_name(const char *owner, char out[NAME_ROOM])
{
	snprintf(out, NAME_ROOM, PREFIX "%s", owner);
}

/* Documents of managers that are provably dead; one that is gone otherwise is of no harm. */
static int sweep(struct kvb_core *core, struct kvb_arena *a, struct kvb_error *err)
{
	struct kvb_doc *docs;
	uint32_t n;
	int rc = kvb_core_doc_list(core, PREFIX, a, &docs, &n, err);

	for (uint32_t i = 0; rc == KVB_OK && i < n; i++) {
		if (kvb_owner_is_dead(docs[i].name + strlen(PREFIX)))
			rc = kvb_core_doc_delete(core, docs[i].name, err);
		if (rc == KVB_E_NOT_FOUND) /* another one sweeps too */
			rc = KVB_OK;
	}
	return rc;
}

int kvcm_node_publish(struct kvb_core *core, const KvcmAdmin__NodeEndpoint *own, struct kvb_error *err)
{
	char self[192], leader[192], name[NAME_ROOM];
	struct kvb_arena a;
	const char *text;
	uint64_t left;
	int rc;

	kvb_arena_init(&a);
	kvb_core_leader(core, self, leader, &left);
	document_name(self, name);
	text = kvcm_model_text(&own->base, &a);
	rc = text ? kvb_core_doc_put(core, name, UINT64_MAX, text, NULL, err) : kvcm_model_nomem(err);
	if (rc == KVB_OK)
		rc = sweep(core, &a, err);
	kvb_arena_destroy(&a);
	return rc;
}

void kvcm_node_retire(struct kvb_core *core)
{
	char self[192], leader[192], name[NAME_ROOM];
	struct kvb_error ignored;
	uint64_t left;

	kvb_core_leader(core, self, leader, &left);
	document_name(self, name);
	kvb_core_doc_delete(core, name, &ignored);
}

int kvcm_node_cluster(struct kvb_core *core, const KvcmAdmin__NodeEndpoint *own, struct kvb_arena *a,
		      struct kvcm_cluster *out, struct kvb_error *err)
{
	char self[192], leader[192], name[NAME_ROOM];
	struct kvb_error ignored;
	struct kvb_doc doc;

	*out = (struct kvcm_cluster){ .self = own->node_id, .leader = "" };
	kvb_core_leader(core, self, leader, &out->remaining_ms);
	if (!*leader)
		return KVB_OK;
	if (strcmp(self, leader) == 0) {
		out->leader = own->node_id;
		out->endpoint = own;
		return KVB_OK;
	}
	document_name(leader, name);
	if (kvb_core_doc_get(core, name, a, &doc, &ignored) == KVB_OK)
		out->endpoint = (const KvcmAdmin__NodeEndpoint *)kvcm_model_message(
			&kvcm_admin__node_endpoint__descriptor, doc.text, a);
	/* A leader that has not published yet is still somebody. */
	out->leader = out->endpoint ? out->endpoint->node_id : kvb_arena_strndup(a, leader, strlen(leader));
	return out->leader ? KVB_OK : kvcm_model_nomem(err);
}

KvcmMeta__MetaNodeEndpoint *kvcm_node_for_meta(const KvcmAdmin__NodeEndpoint *e, struct kvb_arena *a)
{
	KvcmMeta__MetaNodeEndpoint *m = kvb_arena_alloc(a, sizeof *m);

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
