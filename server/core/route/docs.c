/*
 * docs.c - documents that an API keeps in the metadata store ("doc/<name>"), with those of
 * partition 0; the core does not read them.
 *
 * Stateless, no lock: the store does both. Readable on a standby too. Put and delete need
 * ownership, like everything the managers of a store share. A document that a manager publishes
 * about itself does not, so that a standby can announce its address.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/store.h>

#include <lock/gate.h>
#include <journal/registry_write.h>

#include "route.h"

#define PREFIX "doc/"

static int doc_key(char key[SKV_MAX_DOC_NAME + sizeof PREFIX], const char *name, size_t least,
		   struct skv_error *err)
{
	size_t n = strlen(name);
	bool printable = true;

	for (size_t i = 0; i < n; i++)
		printable &= name[i] > 32 && name[i] < 127;
	if (n < least || n > SKV_MAX_DOC_NAME || !printable)
		return skv_fail(err, SKV_E_INVALID, "name", "1 to %u printable ASCII characters",
				SKV_MAX_DOC_NAME);
	snprintf(key, SKV_MAX_DOC_NAME + sizeof PREFIX, PREFIX "%s", name);
	return SKV_OK;
}

static int no_memory(struct skv_error *err)
{
	return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

int skv_cluster_doc_get(struct skv_cluster *c, const char *name, struct skv_arena *a,
			struct skv_doc *out, struct skv_error *err)
{
	char key[SKV_MAX_DOC_NAME + sizeof PREFIX];
	struct skv_buf b = { 0 };
	uint64_t version = 0;
	int rc = doc_key(key, name, 1, err);

	if (rc == SKV_OK)
		rc = skv_store_get(c->route->core[0]->store, key, &b, &version, err);
	if (rc == SKV_OK) {
		*out = (struct skv_doc){ .name = skv_arena_strndup(a, name, strlen(name)),
					 .text = skv_arena_strndup(a, b.len ? (const char *)b.data
					     : "", b.len),
					 .version = version };
		rc = out->name && out->text ? SKV_OK : no_memory(err);
	}
	skv_buf_destroy(&b);
	return rc;
}

/* *version is SKV_VERSION_NONE if there is no document. */
static int version_of(struct skv_core *c, const char *key, uint64_t *version, struct skv_error *err)
{
	struct skv_buf ignored = { 0 };
	int rc = skv_store_get(c->store, key, &ignored, version, err);

	skv_buf_destroy(&ignored);
	if (rc != SKV_E_NOT_FOUND)
		return rc;
	skv_error_clear(err);
	*version = SKV_VERSION_NONE;
	return SKV_OK;
}

/* `text` NULL: delete. */
static int write_version(struct skv_core *c, const char *key, const char *text,
			 const uint64_t *fence, uint64_t expect, struct skv_error *err)
{
	struct skv_buf doc = { 0 };
	int rc;

	if (!text && expect == SKV_VERSION_NONE)
		return skv_fail(err, SKV_E_NOT_FOUND, NULL, "there is no such document");
	if (!text)
		return fence ? registry_del(c, *fence, key, expect, err)
			     : skv_store_del(c->store, NULL, key, expect, err);
	if (!fence)
		return skv_store_put(c->store, NULL, key, expect, text, strlen(text), NULL, err);
	skv_put_bytes(&doc, text, strlen(text));
	rc = registry_put(c, *fence, key, expect, &doc, NULL, err);
	skv_buf_destroy(&doc);
	return rc;
}

/* `fenced`: by the owner of partition 0; else a manager's own document. `made`: must not exist. */
static int write_doc(struct skv_cluster *c, const char *name, const char *text, bool fenced,
		     bool made, struct skv_error *err)
{
	struct skv_core *one = c->route->core[0];
	const uint64_t fence = owner_fence(one);
	char key[SKV_MAX_DOC_NAME + sizeof PREFIX];
	uint64_t expect = SKV_VERSION_NONE;
	int rc = doc_key(key, name, 1, err);

	if (rc == SKV_OK && text && strlen(text) > SKV_MAX_DOC)
		rc = skv_fail(err, SKV_E_TOO_LARGE, "text", "%zu bytes, %u at most", strlen(text),
			      SKV_MAX_DOC);
	if (rc == SKV_OK && fenced)
		rc = core_gate(one, err);
	if (rc != SKV_OK)
		return rc;
	do {
		rc = made ? SKV_OK : version_of(one, key, &expect, err);
		if (rc == SKV_OK)
			rc = write_version(one, key, text, fenced ? &fence : NULL, expect, err);
	} while (!made && rc == SKV_E_CONFLICT);
	if (rc == SKV_OK)
		skv_error_clear(err);
	return rc;
}

int skv_cluster_doc_put(struct skv_cluster *c, const char *name, enum skv_put how, const char *text,
			struct skv_error *err)
{
	assert(how != SKV_PUT_THERE);
	return write_doc(c, name, text, true, how == SKV_PUT_NEW, err);
}

int skv_cluster_doc_delete(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	return write_doc(c, name, NULL, true, false, err);
}

int skv_cluster_doc_publish(struct skv_cluster *c, const char *name, const char *text,
			    struct skv_error *err)
{
	return write_doc(c, name, text, false, false, err);
}

int skv_cluster_doc_retire(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	return write_doc(c, name, NULL, false, false, err);
}

struct listing {
	struct skv_arena *arena;
	struct skv_doc *v;
	uint32_t n, cap;
};

static int list_one(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct listing *l = ctx;
	const char *name = key + sizeof PREFIX - 1;

	if (l->n == l->cap) {
		uint32_t cap = l->cap ? 2 * l->cap : 16;
		struct skv_doc *v = skv_arena_alloc(l->arena, cap * sizeof *v);

		if (!v)
			return SKV_E_NOMEM;
		if (l->n)
			memcpy(v, l->v, l->n * sizeof *v);
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n] = (struct skv_doc){ .name = skv_arena_strndup(l->arena, name, strlen(name)),
				       .text = skv_arena_strndup(l->arena, n ? bytes : "", n),
				       .version = version };
	return l->v[l->n].name && l->v[l->n++].text ? SKV_OK : SKV_E_NOMEM;
}

int skv_cluster_doc_list(struct skv_cluster *c, const char *prefix, struct skv_arena *a,
			 struct skv_doc **out, uint32_t *n, struct skv_error *err)
{
	char key[SKV_MAX_DOC_NAME + sizeof PREFIX];
	struct listing l = { .arena = a };
	int rc = doc_key(key, prefix, 0, err);

	if (rc == SKV_OK)
		rc = skv_store_list(c->route->core[0]->store, key, list_one, &l, err);
	*out = l.v;
	*n = l.n;
	return rc;
}
