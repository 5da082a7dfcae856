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

static int doc_key(char key[SKV_MAX_DOC_NAME + sizeof PREFIX], const char *name, size_t least, struct skv_error *err)
{
	size_t n = strlen(name);
	bool printable = true;

	for (size_t i = 0; i < n; i++)
		printable &= name[i] > 32 && name[i] < 127;
	if (n < least || n > SKV_MAX_DOC_NAME || !printable)
		return skv_fail(err, SKV_E_INVALID, "name", "1 to %u printable ASCII characters", SKV_MAX_DOC_NAME);
	snprintf(key, SKV_MAX_DOC_NAME + sizeof PREFIX, PREFIX "%s", name);
	return SKV_OK;
}

static int no_memory(struct skv_error *err) { return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory"); }

int skv_core_doc_get(struct skv_core *c, const char *name, struct skv_arena *a, struct skv_doc *out,
		     struct skv_error *err)
{
	char key[SKV_MAX_DOC_NAME + sizeof PREFIX];
	struct skv_buf b = { 0 };
	uint64_t version = 0;
	int rc = doc_key(key, name, 1, err);

	if (rc == SKV_OK)
		rc = skv_store_get(c->store, key, &b, &version, err);
	if (rc == SKV_OK) {
		*out = (struct skv_doc){ .name = skv_arena_strndup(a, name, strlen(name)),
					 .text = skv_arena_strndup(a, b.len ? (const char *)b.data : "", b.len),
					 .version = version };
		rc = out->name && out->text ? SKV_OK : no_memory(err);
	}
	skv_buf_destroy(&b);
	return rc;
}

int skv_core_doc_put(struct skv_core *c, const char *name, uint64_t expect, const char *text, uint64_t *version,
		     struct skv_error *err)
{
	char key[SKV_MAX_DOC_NAME + sizeof PREFIX];
	size_t n = strlen(text);
	int rc = doc_key(key, name, 1, err);

	if (rc == SKV_OK && n > SKV_MAX_DOC)
		rc = skv_fail(err, SKV_E_TOO_LARGE, "text", "%zu bytes, %u at most", n, SKV_MAX_DOC);
	return rc == SKV_OK ? skv_store_put(c->store, key, expect, text, n, version, err) : rc;
}

int skv_core_doc_delete(struct skv_core *c, const char *name, struct skv_error *err)
{
	char key[SKV_MAX_DOC_NAME + sizeof PREFIX];
	int rc = doc_key(key, name, 1, err);

	return rc == SKV_OK ? skv_store_del(c->store, key, SKV_VERSION_ANY, err) : rc;
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

int skv_core_doc_list(struct skv_core *c, const char *prefix, struct skv_arena *a, struct skv_doc **out, uint32_t *n,
		      struct skv_error *err)
{
	char key[SKV_MAX_DOC_NAME + sizeof PREFIX];
	struct listing l = { .arena = a };
	int rc = doc_key(key, prefix, 0, err);

	if (rc == SKV_OK)
		rc = skv_store_list(c->store, key, list_one, &l, err);
	*out = l.v;
	*n = l.n;
	return rc;
}
