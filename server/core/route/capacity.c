/*
 * capacity.c - a storage's capacity is leased to the partitions.
 *
 * All of them use one directory, and none knows the others. What one may use of the capacity is in
 * its own document of the storage, as the capacity that it was given: its lease. What all may use
 * together is the first partition's document "capacity/<storage>". Here leases are moved, a slab
 * file's worth at a time: to a partition that is about to need another file, from what is in no
 * file yet; else from the one that has most, if the other has less than its even share: what is
 * missing of that, a file's worth at most. Where that was in a file, the file is drained
 * (evict/drain.c), and the lease is given on once it is gone. What is leased and what is in files
 * is never more than the whole, unless the whole was lowered.
 *
 * A lease is lowered durably before another is raised; what a crash leaves in none is spare. One
 * thread for all storages, in turn with administrators. `total` is under route->lock.
 */
#include "route.h"

#include <stdio.h>
#include <string.h>

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <journal/registry_write.h>

#define STEP_MS 50 /* unless something was moved: then there may be more */

/* ---- what all may use together --------------------------------------------------------------- */

static void total_key(char out[160], const char *storage)
{
	snprintf(out, 160, "capacity/%s", storage);
}

/* 0: there is no document. */
static int read_total(struct route *r, const char *storage, uint64_t *bytes, uint64_t *version,
		      struct skv_error *err)
{
	struct skv_buf b = { 0 };
	char key[160];
	int rc;

	*bytes = 0;
	*version = SKV_VERSION_NONE;
	total_key(key, storage);
	rc = skv_store_get(r->core[0]->store, key, &b, version, err);
	if (rc == SKV_OK) {
		struct skv_rd in = skv_rd_make(b.data, b.len);
		unsigned format = skv_get_u8(&in);

		*bytes = skv_get_u64(&in);
		if (format != 1 || in.failed)
			rc = skv_fail(err, SKV_E_CORRUPT, NULL, "registry: %s is malformed", key);
	} else if (rc == SKV_E_NOT_FOUND) {
		skv_error_clear(err);
		rc = SKV_OK;
	}
	skv_buf_destroy(&b);
	return rc;
}

/* Callers hold the lock. NULL: not known. */
static struct route_total *find_total(struct route *r, const char *storage)
{
	for (uint32_t i = 0; i < r->n_total; i++)
		if (strcmp(r->total[i].storage, storage) == 0)
			return &r->total[i];
	return NULL;
}

static void keep_total(struct route *r, const char *storage, uint64_t bytes)
{
	struct route_total *t;
	void *v = r->total;

	skv_mutex_lock(&r->lock);
	t = find_total(r, storage);
	if (!t && skv_grow(&v, &r->cap_total, r->n_total + 1, sizeof *r->total) == SKV_OK) {
		r->total = v;
		t = &r->total[r->n_total++];
		snprintf(t->storage, sizeof t->storage, "%s", storage);
	}
	if (t)
		t->bytes = bytes;
	skv_mutex_unlock(&r->lock);
}

static void forget_totals(struct route *r)
{
	skv_mutex_lock(&r->lock);
	r->n_total = 0;
	skv_mutex_unlock(&r->lock);
}

uint64_t capacity_total(struct route *r, const char *storage)
{
	struct route_total *t;
	uint64_t bytes;

	skv_mutex_lock(&r->lock);
	t = find_total(r, storage);
	bytes = t ? t->bytes : 0;
	skv_mutex_unlock(&r->lock);
	return bytes;
}

int capacity_put_total(struct route *r, const char *storage, uint64_t bytes, struct skv_error *err)
{
	uint64_t have, version, fence = atomic_load(&r->core[0]->fence);
	struct skv_buf b = { 0 };
	char key[160];
	int rc = read_total(r, storage, &have, &version, err);

	total_key(key, storage);
	skv_put_u8(&b, 1);
	skv_put_u64(&b, bytes);
	if (rc == SKV_OK && have != bytes)
		rc = registry_put(r->core[0], fence, key, version, &b, NULL, err);
	skv_buf_destroy(&b);
	if (rc == SKV_OK)
		keep_total(r, storage, bytes);
	return rc;
}

int capacity_del_total(struct route *r, const char *storage, struct skv_error *err)
{
	uint64_t have, version, fence = atomic_load(&r->core[0]->fence);
	char key[160];
	int rc = read_total(r, storage, &have, &version, err);

	total_key(key, storage);
	if (rc == SKV_OK && have)
		rc = registry_del(r->core[0], fence, key, version, err);
	if (rc == SKV_OK)
		keep_total(r, storage, 0);
	return rc;
}

/* ---- one storage ----------------------------------------------------------------------------- */

struct lease {
	struct skv_core *one;
	struct skv_storage_view *view; /* NULL: this partition does not have it yet */
	uint64_t bytes;
	uint64_t files; /* of it, in files: may be more, until they are drained */
	bool used;      /* there are groups */
	bool wants;
};

struct leases {
	struct lease v[SKV_MAX_PARTITIONS];
	uint32_t n, n_used;
	uint64_t unit, step;
	uint64_t total, held;
	bool draining; /* a lease was lowered, its file is still there */
};

static uint64_t at_least(uint64_t v, uint64_t bound) { return v > bound ? v : bound; }
static uint64_t at_most(uint64_t v, uint64_t bound) { return v < bound ? v : bound; }

static int look_at(struct route *r, const struct skv_storage_view *first, struct skv_arena *a,
		   struct leases *l)
{
	struct skv_error err = { 0 };

	*l = (struct leases){ .n = r->n, .unit = first->spec.unit };
	l->step = at_least(first->spec.file_size / l->unit * l->unit, l->unit);
	for (uint32_t i = 0; i < r->n; i++) {
		struct lease *k = &l->v[i];
		struct skv_group_view *groups;
		uint32_t n;
		int rc = one_storages(r->core[i], first->spec.name, a, &k->view, &n, &err);

		k->one = r->core[i];
		if (rc == SKV_E_NOT_FOUND)
			k->view = NULL;
		else if (rc != SKV_OK)
			return rc;
		rc = one_groups(k->one, NULL, a, &groups, &n, &err);
		if (rc != SKV_OK)
			return rc;
		k->used = n > 0;
		l->n_used += k->used;
		if (!k->view)
			continue;
		k->bytes = k->view->spec.capacity;
		k->files = k->view->file_bytes;
		k->wants = k->used && k->view->free_bytes < l->step;
		l->draining |= k->files > k->bytes;
		l->held += at_least(k->bytes, k->files);
	}
	return SKV_OK;
}

static int set_lease(struct lease *k, const struct skv_storage_view *first, uint64_t bytes)
{
	struct skv_storage_spec s = k->view ? k->view->spec : first->spec;
	struct skv_error err = { 0 };
	int rc;

	s.capacity = bytes;
	rc = k->view ? one_storage_change(k->one, &s, &err) : one_storage_create(k->one, &s, &err);
	if (rc != SKV_OK)
		skv_log(SKV_LOG_WARN, "storage",
			"'%s': partition %u cannot be given %llu bytes of the capacity now: %s",
			s.name, (unsigned)k->one->o.partition, (unsigned long long)bytes,
			err.message);
	return rc;
}

/* The partition that wants more and has least, or NULL. */
static struct lease *neediest(struct leases *l)
{
	struct lease *found = NULL;

	for (uint32_t i = 0; i < l->n; i++)
		if (l->v[i].view && l->v[i].wants && (!found || l->v[i].bytes < found->bytes))
			found = &l->v[i];
	return found;
}

/* What it can give at once, keeping a unit. */
static uint64_t idle_of(const struct leases *l, const struct lease *k)
{
	uint64_t keep = at_least(k->files, l->unit);

	return k->view && !k->wants && k->bytes > keep ? (k->bytes - keep) / l->unit * l->unit : 0;
}

static struct lease *idlest(struct leases *l)
{
	struct lease *found = NULL;

	for (uint32_t i = 0; i < l->n; i++)
		if (idle_of(l, &l->v[i]) && (!found || idle_of(l, &l->v[i]) > idle_of(l, found)))
			found = &l->v[i];
	return found;
}

static struct lease *largest(struct leases *l)
{
	struct lease *found = &l->v[0];

	for (uint32_t i = 1; i < l->n; i++)
		if (l->v[i].bytes > found->bytes)
			found = &l->v[i];
	return found;
}

/* One change at a time: the next step sees what came of it. */
/* True: something was changed. */
static bool balance(struct leases *l, const struct skv_storage_view *first)
{
	struct lease *to = neediest(l), *from = largest(l);
	uint64_t sum = 0, even = l->total / at_least(l->n_used, 1);

	for (uint32_t i = 0; i < l->n; i++)
		sum += l->v[i].bytes;
	for (uint32_t i = 1; i < l->n; i++) {
		if (!l->v[i].view) { /* the store was given more partitions */
			return set_lease(&l->v[i], first, l->unit) == SKV_OK;
		}
	}
	if (sum > l->total && from->bytes > l->unit) {
		uint64_t over = (sum - l->total + l->unit - 1) / l->unit * l->unit;

		return set_lease(from, first,
				 at_least(from->bytes - at_most(over, from->bytes),
					  l->unit)) == SKV_OK;
	}
	if (!to)
		return false;
	if (l->total > l->held && l->total - l->held >= l->unit) {
		uint64_t spare = (l->total - l->held) / l->unit * l->unit;

		return set_lease(to, first, to->bytes + at_most(spare, l->step)) == SKV_OK;
	}
	if (idlest(l)) {
		from = idlest(l);
		return set_lease(from, first,
				 from->bytes - at_most(idle_of(l, from), l->step)) == SKV_OK;
	}
	if (even < to->bytes + l->unit || from->bytes < even + l->unit || l->draining)
		return false;
	sum = at_most(at_most(l->step, even - to->bytes), from->bytes - even);
	return set_lease(from, first, from->bytes - sum / l->unit * l->unit) == SKV_OK;
}

static int step_storage(struct route *r, const struct skv_storage_view *first, struct skv_arena *a,
			bool *moved)
{
	struct skv_error err = { 0 };
	struct leases l;
	uint64_t version;
	int rc = look_at(r, first, a, &l);

	if (rc != SKV_OK)
		return rc;
	l.total = capacity_total(r, first->spec.name);
	if (!l.total) {
		rc = read_total(r, first->spec.name, &l.total, &version, &err);
		for (uint32_t i = 0; rc == SKV_OK && !version && i < l.n; i++)
			l.total += l.v[i].bytes; /* of a store that had one partition */
		if (rc == SKV_OK)
			rc = capacity_put_total(r, first->spec.name, l.total, &err);
	}
	if (rc == SKV_OK)
		*moved |= balance(&l, first);
	return rc;
}

/* ---- all of them ----------------------------------------------------------------------------- */

bool capacity_step(struct route *r)
{
	struct skv_storage_view *v;
	struct skv_error err = { 0 };
	struct skv_arena a;
	uint32_t n = 0;
	bool moved = false;

	if (skv_core_state_get(r->core[0]) != SKV_CORE_READY) {
		forget_totals(r); /* another manager may change them */
		return false;
	}
	if (!route_turn_try(r))
		return false;
	skv_arena_init(&a);
	if (one_storages(r->core[0], NULL, &a, &v, &n, &err) != SKV_OK)
		n = 0;
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(v[i].spec.type, "external") != 0 &&
		    step_storage(r, &v[i], &a, &moved) != SKV_OK)
			break;
	skv_arena_destroy(&a);
	route_turn_leave(r);
	return moved;
}

static void *run(void *arg)
{
	struct route *r = arg;
	bool moved;

	skv_mutex_lock(&r->lock);
	while (!r->stop) {
		skv_mutex_unlock(&r->lock);
		moved = capacity_step(r);
		places_step(r);
		skv_mutex_lock(&r->lock);
		if (!r->stop && !moved)
			skv_cond_wait_ms(&r->wake, &r->lock, STEP_MS);
	}
	skv_mutex_unlock(&r->lock);
	return NULL;
}

int capacity_start(struct route *r)
{
	if (pthread_create(&r->thread, NULL, run, r) != 0)
		return SKV_E_NOMEM;
	r->has_thread = true;
	return SKV_OK;
}

void capacity_stop(struct route *r)
{
	skv_mutex_lock(&r->lock);
	r->stop = true;
	skv_cond_broadcast(&r->wake);
	skv_mutex_unlock(&r->lock);
	if (r->has_thread)
		pthread_join(r->thread, NULL);
	r->has_thread = false;
}
