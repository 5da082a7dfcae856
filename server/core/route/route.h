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
#include <skv/lock.h>

#include <lock/core.h>
#include <lock/one.h>

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
	/* Administrators whose call concerns several partitions take turns. */
	struct skv_mutex lock;
	struct skv_cond wake;
	bool busy; /* both under `lock` */
	/* capacity.c: `stop` and `total` under `lock` */
	bool stop;
	struct route_total *total; /* as in the registry, while this manager leads */
	uint32_t n_total;
	size_t cap_total;
	pthread_t thread;
	bool has_thread;
};

/* The core that has it. None: one that is not ready, if any, so that the answer says that; else
 * the first, whose answer is that it does not exist. */
struct skv_core *route_instance(struct skv_core *c, const char *tenant, const char *id);
struct skv_core *route_session(struct skv_core *c, const char *id);
struct skv_core *route_group(struct skv_core *c, const char *name);
struct skv_core *route_storage(struct skv_core *c, const char *name);
bool route_has_instance(struct skv_core *one, const char *tenant, const char *id);
bool route_has_group(struct skv_core *one, const char *name);
/* *counted (may be NULL): it is of type external. */
bool route_has_storage(struct skv_core *one, const char *name, bool *counted);
/* SKV_OK if all are READY and owned: a call that changes or joins all must not leave one out. */
int route_all(const struct route *r, struct skv_error *err);
/* Where the next object that belongs to one partition is made: the one with fewest of them. */
struct skv_core *route_least(struct route *r);

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

/* The core for calls on an instance. */
static inline struct skv_core *core_of(struct skv_core *c, const char *tenant, const char *id)
{
	return c->route ? route_instance(c, tenant, id) : c;
}

#endif
