/*
 * route.h - the partitions of this process behind one handle: which core a call is for.
 *
 * The handle that skv_core_create returns is partition 0's core. With more than one its `route`
 * knows all of them; with one it is NULL, and calls go straight on.
 */
#ifndef SKV_CORE_ROUTE_ROUTE_H
#define SKV_CORE_ROUTE_ROUTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <pthread.h>

#include <skv/core.h>
#include <skv/find.h>
#include <skv/lock.h>

#include <lock/core.h>
#include <lock/one.h>
#include <model/tier.h>

#include "place_table.h"

#define ROUTE_HINTS 4096u /* a power of two */

struct skv_store;

struct route_total {
	char storage[SKV_MAX_NAME + 1];
	uint64_t bytes;
};

struct route {
	uint32_t n; /* at least 2 */
	struct skv_core *core[SKV_MAX_PARTITIONS]; /* [0] is the handle */
	struct skv_store *view[SKV_MAX_PARTITIONS]; /* [0]: NULL */
	/* By hash of an instance's name: where one was found last. */
	_Atomic uint8_t hint[ROUTE_HINTS];
	_Atomic uint32_t move_turn; /* partitions give moves in turn */
	_Atomic(const struct skv_core_asks *) asks; /* ask.c; NULL: nobody is asked */
	/* Administrators whose call concerns several partitions take turns. */
	struct skv_mutex lock;
	struct skv_cond wake;
	bool busy; /* both under `lock` */
	struct places places; /* under `lock` */
	atomic_bool all_placed; /* the store says that every object has a place */
	/* capacity.c: `stop` and `total` under `lock` */
	bool stop;
	struct route_total *total; /* as in the registry, while this manager leads */
	uint32_t n_total;
	size_t cap_total;
	pthread_t thread;
	bool has_thread;
};

/* The core that has an instance, a group or a storage; NULL: none that is here. */
struct skv_core *route_here(struct route *r, const struct skv_target *t);
/* The core to ask for one that none here has: place_look. */
struct skv_core *route_elsewhere(struct route *r, const struct skv_target *t,
				 struct skv_door *door);
/* Would a call for all have to ask other managers, which this thread may not wait for? */
bool route_must_wait(const struct route *r);
/* The core that has it, or may have it (place_look); one that is READY and does not have it, whose
 * answer is that it does not exist. */
struct skv_core *route_instance(struct skv_core *c, const char *tenant, const char *id);
struct skv_core *route_session(struct skv_core *c, const char *id);
struct skv_core *route_move(struct skv_core *c, const char *id);
struct skv_core *route_group(struct skv_core *c, const char *name);
struct skv_core *route_storage(struct skv_core *c, const char *name);
bool route_has_instance(struct skv_core *one, const char *tenant, const char *id);
bool route_has_group(struct skv_core *one, const char *name);
/* *counted (may be NULL): it is of type external. */
bool route_has_storage(struct skv_core *one, const char *name, bool *counted);
/* ask.c: the same, but those that other managers have may be asked. */
int route_everywhere(const struct route *r, struct skv_error *err);
/* Is this partition another manager's, which this thread asks? */
bool route_asks(const struct route *r, const struct skv_core *one);
/* The partition `at` is asked, here or there; q->partition is set. c: the handle, or one of a
 * single partition, then `at` is the same. */
int route_ask(struct skv_core *c, struct skv_core *at, struct skv_ask *q, struct skv_told *out,
	      struct skv_arena *a, struct skv_error *err);
/* The first that is not READY, else the first. */
struct skv_core *route_missing(const struct route *r);
/* For calls that make objects: all partitions, also of a handle for one (skv_core_alone). */
static inline struct skv_core *whole(struct skv_core *c)
{
	return c->o.lead && c->o.lead->route ? c->o.lead : c;
}

/* objects.c: where an instance is to be made: an existing one stays where it is, another one goes
 * to its group. In the administrators' turn. */
int route_place_instance(struct skv_core *c, const struct skv_instance_spec *i,
			 struct skv_core **at, struct skv_error *err);

/* tiers.c: `at` has the instance's group. */
int tiers_check_instance(struct skv_core *c, struct skv_core *at,
			 const struct skv_instance_spec *i, struct skv_error *err);
/* The instance is registered: its copy instance is, too, or a log line says why not. */
void tiers_put_instance(struct skv_core *c, struct skv_core *at,
			const struct skv_instance_spec *i);
/* A group was put: if it is a fast tier, the copies of all instances of the other one. */
int tiers_put_group(struct skv_core *c, struct skv_core *at, const struct skv_group_spec *g,
		    struct skv_error *err);
/* A fast tier is about to be deleted: with all its copies, which nobody misses. */
int tiers_empty_group(struct skv_core *c, struct skv_core *at, const char *group,
		      struct skv_error *err);
/* The copy instance of an instance that is about to be deleted; false = it has none. */
bool tiers_copies_of(struct skv_core *c, struct skv_core *at, const char *tenant, const char *id,
		     char out[TIER_NAME]);
void tiers_drop_copies(struct skv_core *c, struct skv_core *at, const char *tenant,
		       const char *copies);

void route_turn_take(struct route *r);
bool route_turn_try(struct route *r);
void route_turn_leave(struct route *r);

/* capacity.c: leases of a storage's capacity to partitions, in the storage's document of each. One
 * step, of the thread, or in manual mode of each tick. True: something was moved. */
bool capacity_step(struct route *r);
int capacity_start(struct route *r);
void capacity_stop(struct route *r);
/* What all partitions together may use of it; 0: not known (no such storage). */
uint64_t capacity_total(struct route *r, const char *storage);
int capacity_put_total(struct route *r, const char *storage, uint64_t bytes, struct skv_error *err);
int capacity_del_total(struct route *r, const char *storage, struct skv_error *err);

/* places.c: by the key of the object's document, which core to ask for what no partition that is
 * here has. *door (may be NULL) gets its name, whether that is sure, and `unknown`. */
struct skv_core *place_look(struct route *r, const char *key, uint32_t refused,
			    struct skv_door *door);
/* families.c: the same for a family. *has: not, if it is known that there is nothing of it. */
struct skv_core *family_look(struct skv_core *c, const struct skv_target *t, bool *has,
			     struct skv_door *door);
/* Which one an object with this key is to be made in; that may be elsewhere, or partition 0 if that
 * is: its owner says. `wanted` NULL: wherever; else there, if it does not exist. In the
 * administrators' turn; blocks. */
int place_take(struct route *r, const char *key, struct skv_core *wanted, struct skv_core **at,
	       struct skv_error *err);
/* What the owner of partition 0 has said. */
void place_learn(struct route *r, struct skv_key name, uint32_t partition);
/* Who that is, as far as is known here: a hash of its name. */
uint64_t place_lead(struct route *r);
/* Is a partition another manager's? One that is RECOVERING will be here soon. */
bool place_elsewhere(const struct route *r);
/* By the thread of capacity.c, or each tick. */
void places_step(struct route *r);
/* In the turn: who leads has read all places then. What is unknown to one that became the lead a
 * moment ago would be given a place anywhere. Blocks. */
int places_know(struct route *r, struct skv_error *err);

/* The core for calls on an instance. */
static inline struct skv_core *core_of(struct skv_core *c, const char *tenant, const char *id)
{
	return c->route ? route_instance(c, tenant, id) : c;
}

#endif
