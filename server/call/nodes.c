/*
 * nodes.c - documents in which managers of one store tell where they are to be found. See nodes.h.
 */
#include <kvb/nodes.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <kvb/core.h>
#include <kvb/store.h>

#define NAME_ROOM (32 + KVB_OWNER_NAME)

static void document_name(const char *kind, const char *owner, char out[NAME_ROOM])
{
	snprintf(out, NAME_ROOM, "%.30s/%s", kind, owner);
}

static void own_name(struct kvb_core *core, const char *kind, char out[NAME_ROOM])
{
	char self[KVB_OWNER_NAME], leader[KVB_OWNER_NAME];
	uint64_t left;

	kvb_core_leader(core, self, leader, &left);
	document_name(kind, self, out);
}

/* Documents of managers that are provably dead; one that is gone otherwise is of no harm. */
static int sweep(struct kvb_core *core, const char *kind, struct kvb_arena *a, struct kvb_error *err)
{
	char prefix[NAME_ROOM];
	struct kvb_doc *docs;
	uint32_t n;
	int rc;

	document_name(kind, "", prefix);
	rc = kvb_core_doc_list(core, prefix, a, &docs, &n, err);
	for (uint32_t i = 0; rc == KVB_OK && i < n; i++) {
		if (kvb_owner_is_dead(docs[i].name + strlen(prefix)))
			rc = kvb_core_doc_delete(core, docs[i].name, err);
		if (rc == KVB_E_NOT_FOUND) /* another one sweeps too */
			rc = KVB_OK;
	}
	return rc;
}

int kvb_node_publish(struct kvb_core *core, const char *kind, const char *text, struct kvb_error *err)
{
	char name[NAME_ROOM];
	struct kvb_arena a;
	int rc;

	own_name(core, kind, name);
	rc = kvb_core_doc_put(core, name, UINT64_MAX, text, NULL, err);
	kvb_arena_init(&a);
	if (rc == KVB_OK)
		rc = sweep(core, kind, &a, err);
	kvb_arena_destroy(&a);
	return rc;
}

void kvb_node_retire(struct kvb_core *core, const char *kind)
{
	char name[NAME_ROOM];
	struct kvb_error ignored;

	own_name(core, kind, name);
	kvb_core_doc_delete(core, name, &ignored);
}

int kvb_node_text(struct kvb_core *core, const char *kind, const char *owner, struct kvb_arena *a, const char **text,
		  struct kvb_error *err)
{
	char name[NAME_ROOM];
	struct kvb_doc doc;
	int rc;

	document_name(kind, owner, name);
	rc = kvb_core_doc_get(core, name, a, &doc, err);
	if (rc == KVB_OK)
		*text = doc.text;
	return rc;
}
