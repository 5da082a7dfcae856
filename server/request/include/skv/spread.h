/*
 * spread.h - which partitions this manager may own: it shares them with the others that are there
 * (skv/members.h), as skv_assign says, and says so to the core (skv_cluster_may_own).
 *
 * All managers look at the same: who is there, and who owns what. One that has too much lets go of
 * one partition at a time, to a member that follows it; what is free is taken by who should have
 * it, or after a while by whoever is there. What two of them do at once is settled by the leases of
 * the partitions.
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
	char holder[SKV_OWNER_NAME]; /* the process that owns it; "" = nobody */
	char before[SKV_OWNER_NAME]; /* the one that did before that; "" = not known */
	uint64_t lost_ms;            /* when that one was seen to have it no more */
	uint64_t free_ms;            /* since when nobody owns it */
};

/* In the service. Zeros: not started. */
struct skv_spread {
	struct skv_cluster *cluster;
	struct skv_members *members;
	bool shares; /* the store is made for several that write at once; else one has all */
	bool placed; /* of the thread, as is what follows until `lock` */
	uint64_t asked_ms;
	struct skv_spread_of of[SKV_MAX_PARTITIONS];
	uint32_t given; /* the partition that was let go last, + 1; 0 = it has gone */
	uint64_t given_ms;
	pthread_t thread;
	bool started;
	struct skv_mutex lock; /* of what follows */
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
