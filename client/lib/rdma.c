/*
 * rdma.c - the RDMA devices that a handle uses, and its memory there (see rdma.h).
 *
 * Owns a protection domain for each device, and each region's registration on it. Registering takes
 * long, since pages are pinned: that happens under `setup`, which no I/O takes; `lock` is for what
 * I/O looks at.
 *
 * Locks: skv_rdma.setup, before skv_rdma.lock.
 */
#include "rdma_qp.h"

#include <errno.h>
#include <string.h>

#include <skv/check.h>
#include <skv/lock.h>
#include <skv/log.h>
#include <skv/mem.h>

struct region {
	char *base;
	size_t length;
	struct ibv_mr *mr[SKV_MN_DEVICES]; /* by device; NULL: it could not be registered there */
	struct region *next;
};

struct skv_rdma {
	struct skv_mutex setup; /* held by a thread that changes registrations */
	struct skv_mutex lock;  /* protects the following members */
	const struct skv_rdma_lib *lib; /* NULL: no device yet */
	struct skv_rdma_device dev[SKV_MN_DEVICES];
	uint32_t n;
	struct region *regions;
};

int skv_rdma_create(struct skv_rdma **out, struct skv_error *err)
{
	struct skv_rdma *r = skv_calloc(1, sizeof *r);

	if (!r)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_mutex_init(&r->setup);
	skv_mutex_init(&r->lock);
	*out = r;
	return SKV_OK;
}

static void free_region(const struct skv_rdma *r, struct region *g)
{
	for (uint32_t i = 0; i < r->n; i++)
		SKV_CHECK(!g->mr[i] || r->lib->ibv_dereg_mr(g->mr[i]) == 0);
	skv_free(g);
}

void skv_rdma_destroy(struct skv_rdma *r)
{
	if (!r)
		return;
	while (r->regions) {
		struct region *g = r->regions;

		r->regions = g->next;
		free_region(r, g);
	}
	for (uint32_t i = 0; i < r->n; i++)
		SKV_CHECK(r->lib->ibv_dealloc_pd(r->dev[i].pd) == 0); /* no queue pair is left */
	skv_mutex_destroy(&r->lock);
	skv_mutex_destroy(&r->setup);
	skv_free(r);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct ibv_mr *register_on(const struct skv_rdma_lib *lib, const struct skv_rdma_device *d,
				  const struct region *g)
{
	struct ibv_mr *mr = lib->ibv_reg_mr(d->pd, g->base, g->length, IBV_ACCESS_LOCAL_WRITE);

	if (!mr)
		skv_log(SKV_LOG_WARN, "client",
			"%zu bytes cannot be registered on RDMA device %s (%s), and are copied: "
			"raise the limit of locked memory (ulimit -l)",
			g->length, lib->ibv_get_device_name(d->verbs->device), strerror(errno));
	return mr;
}

void skv_rdma_map(struct skv_rdma *r, void *base, size_t length)
{
	struct region *g = skv_calloc(1, sizeof *g);

	if (!g)
		return; /* bytes of this region will be copied */
	*g = (struct region){ .base = base, .length = length };
	skv_mutex_lock(&r->setup);
	for (uint32_t i = 0; i < r->n; i++)
		g->mr[i] = register_on(r->lib, &r->dev[i], g);
	skv_mutex_lock(&r->lock);
	g->next = r->regions;
	r->regions = g;
	skv_mutex_unlock(&r->lock);
	skv_mutex_unlock(&r->setup);
}

void skv_rdma_unmap(struct skv_rdma *r, void *base)
{
	struct region **at, *g;

	skv_mutex_lock(&r->setup);
	skv_mutex_lock(&r->lock);
	for (at = &r->regions; *at && (*at)->base != base; at = &(*at)->next)
		;
	g = *at;
	if (g)
		*at = g->next;
	skv_mutex_unlock(&r->lock);
	if (g)
		free_region(r, g);
	skv_mutex_unlock(&r->setup);
}

bool skv_rdma_key(struct skv_rdma *r, const struct skv_rdma_device *d, const void *data,
		  size_t length, uint32_t *lkey)
{
	const char *at = data;
	bool known = false;

	skv_mutex_lock(&r->lock);
	for (const struct region *g = r->regions; g && !known; g = g->next) {
		known = g->mr[d->number] && at >= g->base && at < g->base + g->length &&
			length <= (size_t)(g->base + g->length - at);
		if (known)
			*lkey = g->mr[d->number]->lkey;
	}
	skv_mutex_unlock(&r->lock);
	return known;
}

/* ---- devices --------------------------------------------------------------------------------- */

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static int make_device(struct skv_rdma *r, const struct skv_rdma_lib *lib,
		       struct ibv_context *verbs, struct skv_error *err)
{
	struct skv_rdma_device *d = &r->dev[r->n];
	struct ibv_device_attr a;

	if (r->n == SKV_MN_DEVICES)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL, "more than %u RDMA devices",
				SKV_MN_DEVICES);
	*d = (struct skv_rdma_device){ .verbs = verbs, .number = r->n };
	if (lib->ibv_query_device(verbs, &a) == 0)
		d->pd = lib->ibv_alloc_pd(verbs);
	if (!d->pd)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL, "RDMA device %s cannot be used: %s",
				lib->ibv_get_device_name(verbs->device), strerror(errno));
	d->depth = least(SKV_QP_DEPTH, (uint32_t)a.max_qp_wr);
	d->sges = least(SKV_QP_SGES, (uint32_t)a.max_sge);
	d->reads = (uint8_t)least(16, (uint32_t)a.max_qp_init_rd_atom);
	return SKV_OK;
}

static const struct skv_rdma_device *find_locked(const struct skv_rdma *r,
						 const struct ibv_context *verbs)
	SKV_REQUIRES(r->setup)
{
	SKV_CHECK(skv_mutex_held(&r->setup));
	for (uint32_t i = 0; i < r->n; i++)
		if (r->dev[i].verbs == verbs)
			return &r->dev[i];
	return NULL;
}

const struct skv_rdma_device *skv_rdma_device_of(struct skv_rdma *r,
						 const struct skv_rdma_lib *lib,
						 struct ibv_context *verbs, struct skv_error *err)
{
	const struct skv_rdma_device *d;

	skv_mutex_lock(&r->setup);
	d = find_locked(r, verbs);
	if (!d && make_device(r, lib, verbs, err) == SKV_OK) {
		d = &r->dev[r->n];
		r->lib = lib;
		for (struct region *g = r->regions; g; g = g->next) {
			struct ibv_mr *mr = register_on(lib, d, g);

			skv_mutex_lock(&r->lock);
			g->mr[r->n] = mr;
			skv_mutex_unlock(&r->lock);
		}
		r->n++;
	}
	skv_mutex_unlock(&r->setup);
	return d;
}
