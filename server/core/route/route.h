/*
 * route.h - the partitions of a store behind one handle: which core a call is for. A core knows one
 * partition, and nothing of this.
 */
#ifndef SKV_CORE_ROUTE_ROUTE_H
#define SKV_CORE_ROUTE_ROUTE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <pthread.h>

#include <skv/arena.h>
#include <skv/asks.h>
#include <skv/core.h>
#include <skv/find.h>
#include <skv/lock.h>

#include <lock/core.h>
#include <lock/one.h>
#include <model/tier.h>

#include "place_table.h"

#define ROUTE_HINTS 4096u /* a power of two */
#define ROUTE_FAMILIES 256u

struct skv_store;
struct tenant_rules;

struct route_total {
	char storage[SKV_MAX_NAME + 1];
	uint64_t bytes;
};

/* Where a family was when the partitions that were asked had seen so many changes (families.c). */
struct route_family {
	struct skv_key name;
	uint64_t turn;
	uint32_t at; /* as route->n: in none that is here */
};

/* A handle: all partitions, or one of them (skv_cluster_part). */
struct skv_cluster {
	struct route *route;
	struct skv_core *core; /* the partition; NULL: all */
};

struct route {
	uint32_t n; /* at least 1 */
	struct skv_cluster all, part[SKV_MAX_PARTITIONS];
	struct skv_core *core[SKV_MAX_PARTITIONS];
	struct skv_store *view[SKV_MAX_PARTITIONS]; /* [0]: NULL */
	struct tenant_rules *rules;
	bool manual; /* no thread: see skv_core_options */
	/* By hash of an instance's name: where one was found last. */
	_Atomic uint8_t hint[ROUTE_HINTS];
	_Atomic uint32_t move_turn; /* partitions give moves in turn */
	/* at.c; NULL: no other manager is called. `ask_ctx` is set before. */
	_Atomic(skv_ask_fn *) ask;
	void *ask_ctx;
	/* Serialises administrators' calls that concern several partitions. */
	struct skv_mutex lock;
	struct skv_cond wake;
	bool busy; /* both under `lock` */
	struct places places; /* under `lock` */
	skv_family_fn *family_of; /* does not change; NULL: there are no families */
	struct route_family family[ROUTE_FAMILIES]; /* under `lock`, by hash of the name */
	atomic_bool all_placed; /* the store has a place for every object */
	/* capacity.c: `stop` and `total` under `lock` */
	bool stop;
	struct route_total *total; /* as in the registry, while this manager leads */
	uint32_t n_total;
	size_t cap_total;
	pthread_t thread;
	bool has_thread;
};

/* The partition that has an instance, a group, a storage or a family; NULL: none that is here. */
struct skv_cluster *route_here(struct route *r, const struct skv_target *t);
/* Returns the partition to call for an object that is in none here: place_look. */
struct skv_cluster *route_elsewhere(struct route *r, const struct skv_target *t, bool *unknown);
/* Would a call for all have to ask other managers, which this thread may not wait for? */
bool route_must_wait(const struct route *r);
/* The partition that has it, or may have it (place_look); one that is READY and does not have it,
 * whose answer is that it does not exist. */
struct skv_cluster *route_instance(struct route *r, const char *tenant, const char *id);
/* Of a session or a move; the first one if it is no id. */
struct skv_cluster *route_by_id(struct route *r, const char *id);
struct skv_cluster *route_group(struct route *r, const char *name);
struct skv_cluster *route_storage(struct route *r, const char *name);
bool route_has_instance(struct skv_core *one, const char *tenant, const char *id);
bool route_has_group(struct skv_core *one, const char *name);
/* *counted (may be NULL): it is of type external. */
bool route_has_storage(struct skv_core *one, const char *name, bool *counted);
/* at.c: all are here, or their owners may be asked by this thread. */
int route_everywhere(const struct route *r, struct skv_error *err);
/* The first that is not READY, else the first. */
struct skv_cluster *route_missing(struct route *r);

/* views.c: what another partition has of the storage. */
void route_add_storage(struct skv_storage_view *to, const struct skv_storage_view *v);
/* Computes the values that follow from the sums over partitions. SKV_E_NOMEM. */
int route_tell_totals(struct skv_cluster *c, struct skv_arena *a, struct skv_storage_view *v,
		      uint32_t n);
/* An array of elements of that size; none: v is NULL, or has room for one. */
struct route_joined {
	size_t size;
	void *v;
	uint32_t n;
	size_t cap;
};
/* Adds `more` elements. SKV_E_NOMEM. */
static inline int route_join(struct skv_arena *a, struct route_joined *all, const void *v,
			     uint32_t more)
{
	const size_t n = (size_t)all->n + more;

	assert(all->size && all->n <= all->cap);
	if (!all->v || n > all->cap) {
		const size_t cap = n > 2 * all->cap ? n : 2 * all->cap;
		char *both = skv_arena_alloc(a, (cap + 1) * all->size);

		if (!both)
			return SKV_E_NOMEM;
		if (all->n)
			memcpy(both, all->v, all->n * all->size);
		all->v = both;
		all->cap = cap;
	}
	if (more)
		memcpy((char *)all->v + all->n * all->size, v, more * all->size);
	all->n = (uint32_t)n;
	return SKV_OK;
}

/* lists.c: all that one partition has, wherever it is, as skv_cluster_every_storage. */
int route_every_storage(struct skv_cluster *at, const char *tenant, struct skv_arena *a,
			struct skv_storage_view **out, uint32_t *n, struct skv_error *err);

/* objects.c: where an instance is to be made: an existing one stays where it is, another one goes
 * to its group. In the administrators' turn. */
int route_place_instance(struct route *r, const struct skv_instance_spec *i,
			 struct skv_cluster **at, struct skv_error *err);

/* tiers.c: `at` has the instance's group. */
int tiers_check_instance(struct skv_cluster *at, const struct skv_instance_spec *i,
			 struct skv_error *err);
/* The instance is registered: its copy instance is, too, or a log line says why not. */
void tiers_put_instance(struct skv_cluster *at, const struct skv_instance_spec *i);
/* A group was put: if it is a fast tier, the copies of all instances of the other one. */
int tiers_put_group(struct skv_cluster *at, const struct skv_group_spec *g, struct skv_error *err);
/* A fast tier is about to be deleted: with all its copies, which nobody misses. */
int tiers_empty_group(struct skv_cluster *at, const char *group, struct skv_error *err);
/* The copy instance of an instance that is about to be deleted; false = it has none. */
bool tiers_copies_of(struct skv_cluster *at, const char *tenant, const char *id,
		     char out[TIER_NAME]);
void tiers_drop_copies(struct skv_cluster *at, const char *tenant, const char *copies);

void route_turn_take(struct route *r);
bool route_turn_try(struct route *r);
void route_turn_leave(struct route *r);

/* capacity.c: leases of a storage's capacity to partitions, in the storage's document of each. One
 * step, of the thread, or in manual mode of each tick. True: something was moved. */
bool capacity_step(struct route *r);
int capacity_start(struct route *r);
void capacity_stop(struct route *r);
/* Returns the bytes that all partitions together may use of the storage; 0: not known (no such
 * storage). */
uint64_t capacity_total(struct route *r, const char *storage);
int capacity_put_total(struct route *r, const char *storage, uint64_t bytes, struct skv_error *err);
int capacity_del_total(struct route *r, const char *storage, struct skv_error *err);

/* places.c: by the key of the object's document, which partition to ask for what none that is here
 * has. Sets *unknown (may be NULL) if only the store knows, and this thread may not wait for it. */
struct skv_cluster *place_look(struct route *r, const char *key, uint32_t refused, bool *unknown);
/* families.c: the partition that has the instances of a family; NULL: none that is here. */
struct skv_cluster *family_here(struct route *r, const char *family);
/* Which one an object with this key is to be made in; that may be elsewhere, or partition 0 if that
 * is: its owner says. `wanted` NULL: wherever; else there, if it does not exist. SKV_E_CONFLICT:
 * its family is elsewhere. In the administrators' turn; blocks. */
int place_take(struct route *r, const char *key, struct skv_cluster *wanted,
	       struct skv_cluster **at, struct skv_error *err);
/* Returns true if a partition is another manager's. One that is RECOVERING will be here soon. */
bool place_elsewhere(const struct route *r);
/* By the thread of capacity.c, or each tick. */
void places_step(struct route *r);
/* In the turn: who leads has read all places then. What is unknown to one that became the lead a
 * moment ago would be given a place anywhere. Blocks. */
int places_know(struct route *r, struct skv_error *err);

static inline struct skv_core *route_core(const struct skv_cluster *c, uint32_t number)
{
	assert(number < c->route->n);
	return c->route->core[number];
}

#endif
