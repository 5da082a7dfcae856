/*
 * nodes.c - documents by which the managers of one store announce themselves. See nodes.h.
 */
#include <skv/nodes.h>

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <skv/core.h>
#include <skv/store.h>

#define NAME_ROOM (32 + SKV_OWNER_NAME)

static void document_name(const char *kind, const char *owner, char out[NAME_ROOM])
{
	snprintf(out, NAME_ROOM, "%.30s/%s", kind, owner);
}

static void own_name(struct skv_cluster *cluster, const char *kind, char out[NAME_ROOM])
{
	char self[SKV_OWNER_NAME], leader[SKV_OWNER_NAME];
	uint64_t left;

	skv_cluster_leader(cluster, self, leader, &left);
	document_name(kind, self, out);
}

/* Documents of managers that are provably dead; one that is gone otherwise is of no harm. */
static int sweep(struct skv_cluster *cluster, const char *kind, struct skv_arena *a,
		 struct skv_error *err)
{
	char prefix[NAME_ROOM];
	struct skv_doc *docs;
	uint32_t n;
	int rc;

	document_name(kind, "", prefix);
	rc = skv_cluster_doc_list(cluster, prefix, a, &docs, &n, err);
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		if (skv_owner_is_dead(docs[i].name + strlen(prefix)))
			rc = skv_cluster_doc_retire(cluster, docs[i].name, err);
		if (rc == SKV_E_NOT_FOUND) /* another one sweeps too */
			rc = SKV_OK;
	}
	return rc;
}

int skv_node_publish(struct skv_cluster *cluster, const char *kind, const char *text,
		     struct skv_error *err)
{
	char name[NAME_ROOM];
	struct skv_arena a;
	int rc;

	own_name(cluster, kind, name);
	rc = skv_cluster_doc_publish(cluster, name, text, err);
	skv_arena_init(&a);
	if (rc == SKV_OK)
		rc = sweep(cluster, kind, &a, err);
	skv_arena_destroy(&a);
	return rc;
}

void skv_node_retire(struct skv_cluster *cluster, const char *kind)
{
	char name[NAME_ROOM];
	struct skv_error ignored;

	own_name(cluster, kind, name);
	skv_cluster_doc_retire(cluster, name, &ignored);
}

void skv_node_process(const char *owner, char *out)
{
	const char *end = strrchr(owner, '.');
	const size_t n = end ? (size_t)(end - owner) : strlen(owner);

	assert(n < SKV_OWNER_NAME);
	memcpy(out, owner, n);
	out[n] = '\0';
}

/* Reads the text of a process, which publishes under its owner name of the first partition. */
static int text_of_process(struct skv_cluster *cluster, const char *kind, const char *owner,
			   struct skv_arena *a, struct skv_doc *out, struct skv_error *err)
{
	const char *end = strrchr(owner, '.');
	char prefix[NAME_ROOM];
	struct skv_doc *docs;
	uint32_t n = 0;
	int rc;

	if (!end)
		return SKV_E_NOT_FOUND;
	document_name(kind, owner, prefix);
	*(strrchr(prefix, '.') + 1) = '\0';
	rc = skv_cluster_doc_list(cluster, prefix, a, &docs, &n, err);
	if (rc == SKV_OK && n == 0)
		return SKV_E_NOT_FOUND;
	if (rc == SKV_OK)
		*out = docs[0];
	return rc;
}

int skv_node_text(struct skv_cluster *cluster, const char *kind, const char *owner,
		  struct skv_arena *a, const char **text, struct skv_error *err)
{
	char name[NAME_ROOM];
	struct skv_doc doc;
	int rc;

	document_name(kind, owner, name);
	rc = skv_cluster_doc_get(cluster, name, a, &doc, err);
	if (rc == SKV_E_NOT_FOUND)
		rc = text_of_process(cluster, kind, owner, a, &doc, err);
	if (rc == SKV_OK)
		*text = doc.text;
	return rc;
}

int skv_node_list(struct skv_cluster *cluster, const char *kind, struct skv_arena *a,
		  struct skv_doc **out, uint32_t *n, struct skv_error *err)
{
	char prefix[NAME_ROOM];
	struct skv_doc *docs;
	uint32_t all = 0;
	int rc;

	document_name(kind, "", prefix);
	*n = 0;
	rc = skv_cluster_doc_list(cluster, prefix, a, &docs, &all, err);
	for (uint32_t i = 0; rc == SKV_OK && i < all; i++) {
		docs[i].name += strlen(prefix);
		if (!skv_owner_is_dead(docs[i].name))
			docs[(*n)++] = docs[i];
	}
	*out = docs;
	return rc;
}
