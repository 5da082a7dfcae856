/*
 * ranks.c - the ranks of a tenant that have a vLLM space: a cache of the core's registry.
 *
 * A key exists when all ranks have it, so each call needs the list. All of a tenant's vLLM spaces
 * are a family, which lies in one partition (skv_core_family); the call goes to its owner, which
 * lists them again after any was made or removed there, by whomever. Owns the cache; its lock is
 * held for copies only.
 */
#include "hf3fs.h"

#include <assert.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/core.h>
#include <skv/lock.h>
#include <skv/mem.h>

#define TENANTS 64u

struct tenant {
	char name[SKV_MAX_NAME + 1]; /* "": none */
	uint32_t partition; /* as the family's when it was listed, as `turn` */
	uint64_t turn;
	uint64_t read_ms;
	uint32_t n;
	int64_t *rank; /* [n] */
};

struct hf3fs_ranks {
	struct skv_mutex lock; /* protects the rest */
	struct tenant tenant[TENANTS];
};

/* A tenant's ranks, as read. */
struct ranks {
	int64_t *v; /* in the arena of the call */
	uint32_t n;
};

int hf3fs_ranks_create(struct hf3fs_ranks **out)
{
	struct hf3fs_ranks *r = skv_calloc(1, sizeof *r);

	if (!r)
		return SKV_E_NOMEM;
	skv_mutex_init(&r->lock);
	*out = r;
	return SKV_OK;
}

void hf3fs_ranks_destroy(struct hf3fs_ranks *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < TENANTS; i++)
		skv_free(r->tenant[i].rank);
	skv_mutex_destroy(&r->lock);
	skv_free(r);
}

/* SKV_E_NOT_FOUND: not cached, or outdated. SKV_E_NOMEM. */
static int known(struct hf3fs_ranks *r, const char *name, const struct skv_family *f,
		 struct skv_arena *a, struct ranks *out)
{
	int rc = SKV_E_NOT_FOUND;

	skv_mutex_lock(&r->lock);
	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct tenant *t = &r->tenant[i];

		if (strcmp(t->name, name) != 0 || t->partition != f->partition ||
		    t->turn != f->turn)
			continue;
		out->v = skv_arena_alloc(a, t->n * sizeof *out->v);
		rc = out->v ? SKV_OK : SKV_E_NOMEM;
		out->n = out->v ? t->n : 0;
		if (out->n)
			memcpy(out->v, t->rank, t->n * sizeof *out->v);
		break;
	}
	skv_mutex_unlock(&r->lock);
	return rc;
}

/* Replaces the oldest entry. Not if memory is short, nor by an empty list, which may be one that
 * is only remembered to be whole. */
static void keep(struct hf3fs_ranks *r, const char *name, const struct skv_family *f,
		 const struct ranks *ranks)
{
	struct tenant *t = &r->tenant[0];
	int64_t *v = ranks->n ? skv_malloc(ranks->n * sizeof *v) : NULL, *unused;

	assert(strlen(name) < sizeof t->name);
	if (!v)
		return;
	memcpy(v, ranks->v, ranks->n * sizeof *v);
	skv_mutex_lock(&r->lock);
	for (uint32_t i = 0; i < TENANTS && strcmp(t->name, name) != 0; i++)
		if (!r->tenant[i].name[0] || strcmp(r->tenant[i].name, name) == 0 ||
		    (t->name[0] && r->tenant[i].read_ms < t->read_ms))
			t = &r->tenant[i];
	memcpy(t->name, name, strlen(name) + 1);
	unused = t->rank;
	t->rank = v;
	t->n = ranks->n;
	t->partition = f->partition;
	t->turn = f->turn;
	t->read_ms = skv_now_ms(&skv_clock_system);
	skv_mutex_unlock(&r->lock);
	skv_free(unused);
}

static int pick_ranks(struct hf3fs_request *k, const struct skv_instance_view *v, uint32_t count,
		      struct ranks *out)
{
	struct space s;

	out->v = skv_arena_alloc(&k->c->arena, (count + 1) * sizeof *out->v);
	if (!out->v)
		return hf3fs_nomem(k);
	for (uint32_t i = 0; i < count; i++)
		if (space_of(&v[i].spec, &k->c->arena, &s) && s.n_ns == sizeof SPACE_NS_VLLM - 1 &&
		    memcmp(s.ns, SPACE_NS_VLLM, s.n_ns) == 0)
			out->v[out->n++] = s.rank;
	return SKV_OK;
}

static int read_ranks(struct hf3fs_request *k, const struct skv_family *f, struct ranks *out)
{
	struct skv_instance_view *v;
	uint32_t count;
	int rc = skv_core_family_instances(hf3fs_core(k), f, k->space.tenant, &k->c->arena, &v,
					   &count, &k->c->err);

	return rc == SKV_OK ? pick_ranks(k, v, count, out) : rc;
}

int hf3fs_ranks(struct hf3fs_request *k, const int64_t **v, uint32_t *n)
{
	struct hf3fs_ranks *r = pages_of(k)->ranks;
	char *family = skv_arena_alloc(&k->c->arena, SKV_MAX_NAME + 1);
	struct ranks ranks = { 0 };
	struct skv_family f;
	int rc;

	if (!family)
		return hf3fs_nomem(k);
	space_family(k->space.tenant, family);
	skv_request_find(k->c, SKV_TARGET_FAMILY, NULL, family);
	rc = skv_core_family(hf3fs_core(k), family, &f, &k->c->err);
	if (rc == SKV_OK)
		rc = known(r, k->space.tenant, &f, &k->c->arena, &ranks);
	else if (rc == SKV_E_NOT_FOUND)
		rc = SKV_OK; /* none has been initialized */
	if (rc == SKV_E_NOMEM)
		return hf3fs_nomem(k);
	if (rc == SKV_E_NOT_FOUND) {
		rc = read_ranks(k, &f, &ranks);
		if (rc == SKV_OK)
			keep(r, k->space.tenant, &f, &ranks);
	}
	*v = ranks.v;
	*n = ranks.n;
	return rc;
}

int hf3fs_ranks_anywhere(struct hf3fs_request *k, const int64_t **v, uint32_t *n)
{
	struct ranks ranks = { 0 };
	struct skv_instance_view *all;
	uint32_t count;
	int rc = skv_core_instances(hf3fs_core(k), k->space.tenant, NULL, &k->c->arena, &all,
				    &count, &k->c->err);

	if (rc == SKV_OK)
		rc = pick_ranks(k, all, count, &ranks);
	*v = ranks.v;
	*n = ranks.n;
	return rc;
}
