/*
 * ranks.c - which ranks of a tenant have a space of vLLM's: a cache in front of the core's registry.
 *
 * A key exists when all of them have it, so each such call needs the list. It is read anew once a second (an
 * administrator, or another manager before this one, may have changed it), and at once after this API has made or
 * dropped a space. Owns the cache; its lock is held for copies only.
 */
#include "pages.h"

#include <string.h>

#include <skv/clock.h>
#include <skv/lock.h>
#include <skv/mem.h>

#define TENANTS 64u
#define RANKS_MAX 256u /* no more storages than that */
#define FRESH_MS 1000u

struct tenant {
	char name[SKV_MAX_NAME + 1]; /* "": none */
	uint64_t read_ms;
	uint32_t n;
	int64_t rank[RANKS_MAX];
};

struct pages_ranks {
	struct skv_mutex lock; /* protects the rest */
	uint64_t turn; /* of forgetting */
	struct tenant tenant[TENANTS];
};

int pages_ranks_create(struct pages_ranks **out)
{
	struct pages_ranks *r = skv_calloc(1, sizeof *r);

	if (!r)
		return SKV_E_NOMEM;
	skv_mutex_init(&r->lock);
	*out = r;
	return SKV_OK;
}

void pages_ranks_destroy(struct pages_ranks *r)
{
	if (!r)
		return;
	skv_mutex_destroy(&r->lock);
	skv_free(r);
}

void pages_ranks_forget(struct pages *p)
{
	skv_mutex_lock(&p->ranks->lock);
	p->ranks->turn++;
	for (uint32_t i = 0; i < TENANTS; i++)
		p->ranks->tenant[i].name[0] = '\0';
	skv_mutex_unlock(&p->ranks->lock);
}

/* How many; -1: it is not known, or not any more. */
static int known(struct pages_ranks *r, const char *name, uint64_t now, int64_t *out, uint64_t *turn)
{
	int n = -1;

	skv_mutex_lock(&r->lock);
	*turn = r->turn;
	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct tenant *t = &r->tenant[i];

		if (strcmp(t->name, name) != 0 || now - t->read_ms >= FRESH_MS)
			continue;
		memcpy(out, t->rank, t->n * sizeof *out);
		n = (int)t->n;
		break;
	}
	skv_mutex_unlock(&r->lock);
	return n;
}

/* In the place of what was read first. Not if something has changed since `turn`. */
static void keep(struct pages_ranks *r, const char *name, uint64_t now, const int64_t *v, uint32_t n, uint64_t turn)
{
	struct tenant *t = &r->tenant[0];

	skv_mutex_lock(&r->lock);
	for (uint32_t i = 0; i < TENANTS && strcmp(t->name, name) != 0; i++)
		if (!r->tenant[i].name[0] || strcmp(r->tenant[i].name, name) == 0 ||
		    (t->name[0] && r->tenant[i].read_ms < t->read_ms))
			t = &r->tenant[i];
	if (turn == r->turn) {
		memcpy(t->name, name, strlen(name) + 1);
		memcpy(t->rank, v, n * sizeof *v);
		t->n = n;
		t->read_ms = now;
	}
	skv_mutex_unlock(&r->lock);
}

static int read_ranks(struct pages_call *k, int64_t *out, uint32_t *n)
{
	struct skv_instance_view *v;
	struct space s;
	uint32_t count;
	int rc = skv_core_instances(pages_core(k), k->space.tenant, NULL, &k->c->arena, &v, &count, &k->c->err);

	*n = 0;
	for (uint32_t i = 0; rc == SKV_OK && i < count && *n < RANKS_MAX; i++)
		if (space_of(&v[i].spec, &k->c->arena, &s) && s.n_ns == sizeof SPACE_NS_VLLM - 1 &&
		    memcmp(s.ns, SPACE_NS_VLLM, s.n_ns) == 0)
			out[(*n)++] = s.rank;
	return rc;
}

int pages_ranks(struct pages_call *k, const int64_t **v, uint32_t *n)
{
	struct pages_ranks *r = pages_of(k)->ranks;
	uint64_t now = skv_now_ms(&skv_clock_system), turn;
	int64_t *out = skv_arena_alloc(&k->c->arena, RANKS_MAX * sizeof *out);
	int found, rc;

	if (!out)
		return pages_nomem(k);
	found = known(r, k->space.tenant, now, out, &turn);
	*v = out;
	*n = found < 0 ? 0 : (uint32_t)found;
	if (found >= 0)
		return SKV_OK;
	rc = read_ranks(k, out, n);
	if (rc == SKV_OK)
		keep(r, k->space.tenant, now, out, *n, turn);
	return rc;
}
