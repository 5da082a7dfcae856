/*
 * docs.c - documents that an API keeps in the metadata store ("doc/<name>"); the core does not read them.
 *
 * No state and no lock: the store has both. They do not need the ownership, so a standby can tell where it is
 * to be found, and who leads.
 */
#include "internal.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "doc/"

static int doc_key(char key[KVB_MAX_DOC_NAME + sizeof PREFIX], const char *name, size_t least, struct kvb_error *err)
{
	size_t n = strlen(name);
	bool printable = true;

	for (size_t i = 0; i < n; i++)
		printable &= name[i] > 32 && name[i] < 127;
	if (n < least || n > KVB_MAX_DOC_NAME || !printable)
		return kvb_fail(err, KVB_E_INVALID, "name", "1 to %u printable ASCII characters", KVB_MAX_DOC_NAME);
	snprintf(key, KVB_MAX_DOC_NAME + sizeof PREFIX, PREFIX "%s", name);
	return KVB_OK;
}

static int no_memory(struct kvb_error *err) { return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory"); }

int kvb_core_doc_get(struct kvb_core *c, const char *name, struct kvb_arena *a, struct kvb_doc *out,
		     struct kvb_error *err)
{
	char key[KVB_MAX_DOC_NAME + sizeof PREFIX];
	struct kvb_buf b = { 0 };
	uint64_t version = 0;
	int rc = doc_key(key, name, 1, err);

	if (rc == KVB_OK)
		rc = kvb_store_get(c->store, key, &b, &version, err);
	if (rc == KVB_OK) {
		*out = (struct kvb_doc){ .name = kvb_arena_strndup(a, name, strlen(name)),
					 .text = kvb_arena_strndup(a, b.len ? (const char *)b.data : "", b.len),
					 .version = version };
		rc = out->name && out->text ? KVB_OK : no_memory(err);
	}
	kvb_buf_destroy(&b);
	return rc;
}

int kvb_core_doc_put(struct kvb_core *c, const char *name, uint64_t expect, const char *text, uint64_t *version,
		     struct kvb_error *err)
{
	char key[KVB_MAX_DOC_NAME + sizeof PREFIX];
	size_t n = strlen(text);
	int rc = doc_key(key, name, 1, err);

	if (rc == KVB_OK && n > KVB_MAX_DOC)
		rc = kvb_fail(err, KVB_E_TOO_LARGE, "text", "%zu bytes, %u at most", n, KVB_MAX_DOC);
	return rc == KVB_OK ? kvb_store_put(c->store, key, expect, text, n, version, err) : rc;
}

int kvb_core_doc_delete(struct kvb_core *c, const char *name, struct kvb_error *err)
{
	char key[KVB_MAX_DOC_NAME + sizeof PREFIX];
	int rc = doc_key(key, name, 1, err);

	return rc == KVB_OK ? kvb_store_del(c->store, key, KVB_VERSION_ANY, err) : rc;
}

struct listing {
	struct kvb_arena *arena;
	struct kvb_doc *v;
	uint32_t n, cap;
};

static int list_one(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct listing *l = ctx;
	const char *name = key + sizeof PREFIX - 1;

	if (l->n == l->cap) {
		uint32_t cap = l->cap ? 2 * l->cap : 16;
		struct kvb_doc *v = kvb_arena_alloc(l->arena, cap * sizeof *v);

		if (!v)
			return KVB_E_NOMEM;
		if (l->n)
			memcpy(v, l->v, l->n * sizeof *v);
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n] = (struct kvb_doc){ .name = kvb_arena_strndup(l->arena, name, strlen(name)),
				       .text = kvb_arena_strndup(l->arena, n ? bytes : "", n),
				       .version = version };
	return l->v[l->n].name && l->v[l->n++].text ? KVB_OK : KVB_E_NOMEM;
}

int kvb_core_doc_list(struct kvb_core *c, const char *prefix, struct kvb_arena *a, struct kvb_doc **out, uint32_t *n,
		      struct kvb_error *err)
{
	char key[KVB_MAX_DOC_NAME + sizeof PREFIX];
	struct listing l = { .arena = a };
	int rc = doc_key(key, prefix, 0, err);

	if (rc == KVB_OK)
		rc = kvb_store_list(c->store, key, list_one, &l, err);
	*out = l.v;
	*n = l.n;
	return rc;
}
