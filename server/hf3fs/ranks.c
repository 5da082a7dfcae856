/*
 * ranks.c - the ranks of a tenant that have a vLLM space: a cache of the core's registry.
 *
 * A key exists when all ranks have it, so each call needs the list. It is reread once a second (an
 * administrator or the previous owner may have changed it), and at once after this API has created
 * or dropped a space. Owns the cache; its lock is held for copies only.
 */
#include "hf3fs.h"

#include <assert.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/lock.h>
#include <skv/mem.h>

#define TENANTS 64u
#define FRESH_MS 1000u

struct tenant {
	char name[SKV_MAX_NAME + 1]; /* "": none */
	uint64_t read_ms;
	uint32_t n;
	int64_t *rank; /* [n] */
};

struct hf3fs_ranks {
	struct skv_mutex lock; /* protects the rest */
	uint64_t turn; /* of forgetting */
	struct tenant tenant[TENANTS];
};

/* A tenant's ranks, as read. */
struct ranks {
	int64_t *v; /* in the arena of the call */
	uint32_t n;
	uint64_t turn; /* counts invalidations, as of before it was read */
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

void hf3fs_ranks_forget(struct pages *p)
{
	skv_mutex_lock(&p->ranks->lock);
	p->ranks->turn++;
	for (uint32_t i = 0; i < TENANTS; i++)
		p->ranks->tenant[i].name[0] = '\0';
	skv_mutex_unlock(&p->ranks->lock);
}

/* SKV_E_NOT_FOUND: not cached, or outdated. SKV_E_NOMEM. */
static int known(struct hf3fs_ranks *r, const char *name, uint64_t now, struct skv_arena *a,
		 struct ranks *out)
{
	int rc = SKV_E_NOT_FOUND;

	skv_mutex_lock(&r->lock);
	out->turn = r->turn;
	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct tenant *t = &r->tenant[i];

		if (strcmp(t->name, name) != 0 || now - t->read_ms >= FRESH_MS)
			continue;
		out->v = skv_arena_alloc(a, (t->n + 1) * sizeof *out->v);
		rc = out->v ? SKV_OK : SKV_E_NOMEM;
		out->n = out->v ? t->n : 0;
		if (out->n)
			memcpy(out->v, t->rank, t->n * sizeof *out->v);
		break;
	}
	skv_mutex_unlock(&r->lock);
	return rc;
}

/* Replaces the oldest entry. Not if something has changed since it was read, or memory is short. */
static void keep(struct hf3fs_ranks *r, const char *name, uint64_t now, const struct ranks *ranks)
{
	struct tenant *t = &r->tenant[0];
	int64_t *v = skv_malloc((ranks->n + 1) * sizeof *v), *unused = v;

	assert(strlen(name) < sizeof t->name);
	if (!v)
		return;
	if (ranks->n)
		memcpy(v, ranks->v, ranks->n * sizeof *v);
	skv_mutex_lock(&r->lock);
	for (uint32_t i = 0; i < TENANTS && strcmp(t->name, name) != 0; i++)
		if (!r->tenant[i].name[0] || strcmp(r->tenant[i].name, name) == 0 ||
		    (t->name[0] && r->tenant[i].read_ms < t->read_ms))
			t = &r->tenant[i];
	if (ranks->turn == r->turn) {
		memcpy(t->name, name, strlen(name) + 1);
		unused = t->rank;
		t->rank = v;
		t->n = ranks->n;
		t->read_ms = now;
	}
	skv_mutex_unlock(&r->lock);
	skv_free(unused);
}

static int read_ranks(struct hf3fs_request *k, struct ranks *out)
{
	struct skv_instance_view *v;
	struct space s;
	uint32_t count;
	int rc = skv_core_instances(k->c->s->core, k->space.tenant, NULL, &k->c->arena, &v, &count,
				    &k->c->err);

	if (rc != SKV_OK)
		return rc;
	out->v = skv_arena_alloc(&k->c->arena, (count + 1) * sizeof *out->v);
	if (!out->v)
		return hf3fs_nomem(k);
	for (uint32_t i = 0; i < count; i++)
		if (space_of(&v[i].spec, &k->c->arena, &s) && s.n_ns == sizeof SPACE_NS_VLLM - 1 &&
		    memcmp(s.ns, SPACE_NS_VLLM, s.n_ns) == 0)
			out->v[out->n++] = s.rank;
	return SKV_OK;
}

int hf3fs_ranks(struct hf3fs_request *k, const int64_t **v, uint32_t *n)
{
	struct hf3fs_ranks *r = pages_of(k)->ranks;
	uint64_t now = skv_now_ms(&skv_clock_system);
	struct ranks ranks = { 0 };
	int rc = known(r, k->space.tenant, now, &k->c->arena, &ranks);

	if (rc == SKV_E_NOT_FOUND) {
		rc = read_ranks(k, &ranks);
		if (rc == SKV_OK)
			keep(r, k->space.tenant, now, &ranks);
	} else if (rc != SKV_OK) {
		rc = hf3fs_nomem(k);
	}
	*v = ranks.v;
	*n = ranks.n;
	return rc;
}
