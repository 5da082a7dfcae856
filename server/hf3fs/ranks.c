/*
 * ranks.c - the ranks of a tenant that have a vLLM space: a cache of the core's registry.
 *
 * A key exists when all ranks have it, so each call needs the list. All of a tenant's vLLM spaces
 * are a family, which lies in one partition (SKV_TARGET_FAMILY); the call goes to its owner, which
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
	uint32_t partition;
	uint64_t turn; /* of the partition, when it was listed */
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
static int known(struct hf3fs_ranks *r, const struct hf3fs_request *k, uint64_t turn,
		 struct ranks *out)
{
	int rc = SKV_E_NOT_FOUND;

	skv_mutex_lock(&r->lock);
	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct tenant *t = &r->tenant[i];

		if (strcmp(t->name, k->space.tenant) != 0 ||
		    t->partition != k->c->door.partition || t->turn != turn)
			continue;
		out->v = skv_arena_alloc(&k->c->arena, t->n * sizeof *out->v);
		rc = out->v ? SKV_OK : SKV_E_NOMEM;
		out->n = out->v ? t->n : 0;
		if (out->n)
			memcpy(out->v, t->rank, t->n * sizeof *out->v);
		break;
	}
	skv_mutex_unlock(&r->lock);
	return rc;
}

/* Replaces the oldest entry. Not if memory is short. */
static void keep(struct hf3fs_ranks *r, const struct hf3fs_request *k, uint64_t turn,
		 const struct ranks *ranks)
{
	const char *name = k->space.tenant;
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
	t->partition = k->c->door.partition;
	t->turn = turn;
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

static int read_ranks(struct hf3fs_request *k, struct ranks *out)
{
	struct skv_instance_view *v;
	uint32_t count;
	int rc = skv_cluster_every_instance(
		skv_cluster_part(k->c->s->cluster, k->c->door.partition), k->space.tenant,
		&k->c->arena, &v, &count, &k->c->err);

	return rc == SKV_OK ? pick_ranks(k, v, count, out) : rc;
}

int hf3fs_ranks_find(struct hf3fs_request *k)
{
	char *family = skv_arena_alloc(&k->c->arena, SKV_MAX_NAME + 1);

	if (!family)
		return hf3fs_nomem(k);
	space_family(k->space.tenant, family);
	skv_request_find(k->c, SKV_TARGET_FAMILY, NULL, family);
	return SKV_OK;
}

int hf3fs_ranks(struct hf3fs_request *k, const int64_t **v, uint32_t *n)
{
	struct hf3fs_ranks *r = pages_of(k)->ranks;
	struct ranks ranks = { 0 };
	uint64_t turn;
	int rc;

	*v = NULL;
	*n = 0;
	if (k->c->door.where != SKV_HERE) /* nowhere: none has been initialized */
		return skv_request_check_door(k->c);
	turn = skv_cluster_partition_turn(k->c->s->cluster, k->c->door.partition);
	rc = known(r, k, turn, &ranks);
	if (rc == SKV_E_NOMEM)
		return hf3fs_nomem(k);
	if (rc == SKV_E_NOT_FOUND) {
		rc = read_ranks(k, &ranks);
		if (rc == SKV_OK)
			keep(r, k, turn, &ranks);
	}
	*v = ranks.v;
	*n = ranks.n;
	return rc;
}
