/*
 * capacity.c - a storage's capacity is leased to the partitions.
 *
 * All partitions use one directory, without knowing each other. The part of the capacity that a
 * partition may use is in its own document of the storage, as that document's capacity: its lease.
 * The capacity of all together is in the first partition's document "capacity/<storage>". This
 * thread moves leases, a slab file's worth at a time, to a partition that is about to need another
 * file: from capacity that is in no file yet; else from the partition with the largest lease, if
 * the other has less than its even share: the missing part, a file's worth at most. If that part is
 * in a file, the file is drained (evict/drain.c), and the lease moves once the file is gone. Leases
 * and files never exceed the whole, unless the whole was lowered.
 *
 * A lease is lowered durably before another is raised; capacity that a crash leaves in no lease is
 * spare. The lead does this for all partitions, and calls the owners of the others (at.c). One
 * thread for all storages, in turn with administrators. `total` is under route->lock.
 */
#include "at.h"

#include <stdio.h>
#include <string.h>

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <lock/gate.h>
#include <journal/registry_write.h>

#include "route.h"

#define STEP_MS 50 /* unless something was moved: then there may be more */
#define ASK_MS 300 /* where other managers have partitions */

/* ---- the capacity of all together ------------------------------------------------------------ */

static void total_key(char out[160], const char *storage)
{
	snprintf(out, 160, "capacity/%s", storage);
}

/* *bytes is 0 without a document. */
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
	uint64_t have, version, fence = owner_fence(r->core[0]);
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
	uint64_t have, version, fence = owner_fence(r->core[0]);
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

/* A partition's usage, here or with another manager. */
struct use {
	struct skv_storage_view *storages;
	uint32_t n_storages;
};

struct lease {
	struct skv_cluster *part;
	struct skv_storage_view *view; /* NULL: this partition does not have it yet */
	uint64_t bytes;
	uint64_t files; /* of it, in files: may be more, until they are drained */
	bool used;      /* groups name it */
	bool wants;
};

struct leases {
	struct lease v[SKV_MAX_PARTITIONS];
	uint32_t n, n_used;
	uint64_t unit, step;
	uint64_t total, held;
	bool draining; /* a lease was lowered, its file is still there */
};

/* The new size of a lease. */
struct change {
	struct lease *lease;
	uint64_t bytes;
};

static uint64_t at_least(uint64_t v, uint64_t bound) { return v > bound ? v : bound; }
static uint64_t at_most(uint64_t v, uint64_t bound) { return v < bound ? v : bound; }

static int look_at(struct route *r, struct skv_arena *a, struct use use[SKV_MAX_PARTITIONS])
{
	struct skv_error err = { 0 };
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++)
		rc = route_every_storage(&r->part[i], "", a, &use[i].storages,
					 &use[i].n_storages, &err);
	return rc;
}

static struct skv_storage_view *view_in(const struct use *use, const char *name)
{
	for (uint32_t i = 0; i < use->n_storages; i++)
		if (strcmp(use->storages[i].spec.name, name) == 0)
			return &use->storages[i];
	return NULL;
}

static void gather(struct route *r, const struct use *use,
		   const struct skv_storage_view *first, struct leases *l)
{
	*l = (struct leases){ .n = r->n, .unit = first->spec.unit };
	l->step = at_least(first->spec.file_size / l->unit * l->unit, l->unit);
	for (uint32_t i = 0; i < r->n; i++) {
		struct lease *k = &l->v[i];

		k->part = &r->part[i];
		k->view = view_in(&use[i], first->spec.name);
		if (!k->view)
			continue;
		k->used = k->view->groups > 0;
		l->n_used += k->used;
		k->bytes = k->view->spec.capacity;
		k->files = k->view->file_bytes;
		k->wants = k->used && k->view->free_bytes < l->step;
		l->draining |= k->files > k->bytes;
		l->held += at_least(k->bytes, k->files);
	}
}

static bool set_lease(const struct change *c, const struct skv_storage_view *first)
{
	const struct skv_storage_view *have = c->lease->view;
	struct skv_storage_spec s = have ? have->spec : first->spec;
	struct skv_error err = { 0 };
	uint32_t was;
	int rc;

	s.capacity = c->bytes;
	rc = at_storage_put(c->lease->part, &s, have ? SKV_PUT_THERE : SKV_PUT_NEW, NULL, &err);
	was = core_log(c->lease->part->core);
	if (rc != SKV_OK)
		skv_log(SKV_LOG_WARN, "storage",
			"'%s': the partition cannot be given %llu bytes of the capacity now: %s",
			s.name, (unsigned long long)c->bytes, err.message);
	skv_log_partition(was);
	return rc == SKV_OK;
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

/* Returns the bytes that the lease can give at once, keeping a unit. */
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

static bool to_be(struct change *c, struct lease *lease, uint64_t bytes)
{
	*c = (struct change){ lease, bytes };
	return true;
}

/* Decides a single change: the next step sees its result. Returns false if no change is needed. */
static bool decide(struct leases *l, struct change *c)
{
	struct lease *to = neediest(l), *from = largest(l);
	uint64_t sum = 0, even = l->total / at_least(l->n_used, 1);

	for (uint32_t i = 0; i < l->n; i++)
		sum += l->v[i].bytes;
	for (uint32_t i = 1; i < l->n; i++)
		if (!l->v[i].view) /* the store was given more partitions */
			return to_be(c, &l->v[i], l->unit);
	if (sum > l->total && from->bytes > l->unit) {
		uint64_t over = (sum - l->total + l->unit - 1) / l->unit * l->unit;

		return to_be(c, from,
			     at_least(from->bytes - at_most(over, from->bytes), l->unit));
	}
	if (!to)
		return false;
	if (l->total > l->held && l->total - l->held >= l->unit) {
		uint64_t spare = (l->total - l->held) / l->unit * l->unit;

		return to_be(c, to, to->bytes + at_most(spare, l->step));
	}
	if (idlest(l)) {
		from = idlest(l);
		return to_be(c, from, from->bytes - at_most(idle_of(l, from), l->step));
	}
	if (even < to->bytes + l->unit || from->bytes < even + l->unit || l->draining)
		return false;
	sum = at_most(at_most(l->step, even - to->bytes), from->bytes - even);
	return to_be(c, from, from->bytes - sum / l->unit * l->unit);
}

/* Learns the total of a storage, on a new lead. */
static int learn_total(struct route *r, const char *storage, struct leases *l)
{
	struct skv_error err = { 0 };
	uint64_t version;
	int rc = read_total(r, storage, &l->total, &version, &err);

	for (uint32_t i = 0; rc == SKV_OK && !version && i < l->n; i++)
		l->total += l->v[i].bytes; /* of a store that had one partition */
	return rc == SKV_OK ? capacity_put_total(r, storage, l->total, &err) : rc;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Finds the next step for each storage; with `act`, performs it. Returns true if there was a
 * step. */
static bool step_all(struct route *r, struct skv_arena *a, bool act)
{
	struct use use[SKV_MAX_PARTITIONS] = { { 0 } };
	bool any = false;

	if (look_at(r, a, use) != SKV_OK)
		return false;
	for (uint32_t i = 0; i < use[0].n_storages; i++) {
		const struct skv_storage_view *first = &use[0].storages[i];
		struct change c;
		struct leases l;

		if (strcmp(first->spec.type, "external") == 0)
			continue;
		gather(r, use, first, &l);
		l.total = capacity_total(r, first->spec.name);
		if (!l.total && act && learn_total(r, first->spec.name, &l) != SKV_OK)
			break;
		if (!l.total && !act)
			any = true; /* the total is learned in turn */
		else if (decide(&l, &c))
			any |= !act || set_lease(&c, first);
	}
	return any;
}

/* Administrators wait for the turn, so it is not taken to look. */
bool capacity_step(struct route *r)
{
	struct skv_error err = { 0 };
	struct skv_arena a;
	bool moved = false;

	if (one_state_get(r->core[0]) != SKV_CORE_READY) {
		forget_totals(r); /* another manager may change them */
		return false;
	}
	if (route_everywhere(r, &err) != SKV_OK)
		return false;
	skv_arena_init(&a);
	if (step_all(r, &a, false) && route_turn_try(r)) {
		skv_arena_reset(&a);
		moved = step_all(r, &a, true);
		route_turn_leave(r);
	}
	skv_arena_destroy(&a);
	return moved;
}

/* Returns the pause between steps; other managers are called over the network. */
static uint32_t step_ms(struct route *r)
{
	return one_state_get(route_missing(r)->core) == SKV_CORE_READY ? STEP_MS : ASK_MS;
}

static void *run(void *arg)
{
	struct route *r = arg;
	bool moved;

	skv_thread_waits = true;
	skv_mutex_lock(&r->lock);
	while (!r->stop) {
		skv_mutex_unlock(&r->lock);
		moved = capacity_step(r);
		places_step(r);
		skv_mutex_lock(&r->lock);
		if (!r->stop && !moved)
			skv_cond_wait_ms(&r->wake, &r->lock, step_ms(r));
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
