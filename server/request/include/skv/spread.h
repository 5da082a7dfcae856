/*
 * spread.h - the partitions that this manager may own: shares them with the other present members
 * (skv/members.h) by skv_assign, and sets them in the core (skv_cluster_may_own).
 *
 * All managers use the same input: the present members and the current owners. A manager with too
 * many partitions releases one at a time, to a member that follows it. The assigned member takes a
 * free partition, or after a while any present member. The leases of the partitions decide between
 * two members that act at once.
 */
#ifndef SKV_SPREAD_H
#define SKV_SPREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/core.h>
#include <skv/lock.h>
#include <skv/members.h>
#include <skv/status.h>

struct skv_spread_of {
	char holder[SKV_OWNER_NAME]; /* process that owns the partition; "" = none */
	char before[SKV_OWNER_NAME]; /* process that owned it before; "" = not known */
	uint64_t lost_ms;            /* when that one was seen to have it no more */
	uint64_t free_ms;            /* time since which it has no owner */
};

/* In the service. Zeros: not started. */
struct skv_spread {
	struct skv_cluster *cluster;
	struct skv_members *members;
	bool shares; /* the store is made for several that write at once; else one has all */
	bool placed; /* of the thread, as the following members until `lock` */
	uint64_t asked_ms;
	struct skv_spread_of of[SKV_MAX_PARTITIONS];
	uint32_t given; /* the partition that was released last, + 1; 0 = taken over */
	uint64_t given_ms;
	pthread_t thread;
	bool started;
	struct skv_mutex lock; /* protects the following members */
	struct skv_cond wake;
	bool stopping;
};

/* From now on, of a core that was made with `assigned` and has several partitions; `members` are
 * started. `shares`: see above. SKV_E_NOMEM. */
int skv_spread_start(struct skv_spread *s, struct skv_cluster *cluster, struct skv_members *members,
		     bool shares, struct skv_error *err);
/* Stops the spreading; owned partitions stay. Does nothing if it was not started, or is stopped. */
void skv_spread_stop(struct skv_spread *s);

/* A step of the thread, for tests: at `now_ms` of the clock of the members. */
void skv_spread_step(struct skv_spread *s, uint64_t now_ms);

#endif
