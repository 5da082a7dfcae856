/*
 * lookup.h - what the files of a lookup call of each other.
 */
#ifndef SKV_CORE_LOOKUP_H
#define SKV_CORE_LOOKUP_H

#include "change.h"

/* What cannot be read now: spaces as a whole, and files of others. */
struct unread {
	const struct partition *p;
	uint32_t *gone; /* [n_gone] spaces; in the arena of the call */
	uint32_t n_gone;
	bool any; /* else all can be: no slot needs a look */
};
bool slot_unread(const struct unread *u, const struct slot *s);

/* Is the spec committed, and where it can be read? */
static inline bool spec_there(const struct block *b, uint32_t spec, const struct unread *u)
{
	return b->slot[spec].state == SLOT_COMMITTED && !(u->any && slot_unread(u, &b->slot[spec]));
}

/* What one lookup found. */
struct search {
	struct instance *inst;
	uint32_t mask;      /* specs asked for */
	struct unread gone; /* what cannot be read, or shall not be */
	struct block **hit; /* of the first n_seen keys; NULL = miss */
	uint32_t n_seen;
	uint32_t matched;
	uint64_t lease_until; /* lookup.c */
	bool denied;          /* by the cap on leases; */
	uint32_t hidden;      /* so many hits became misses for that */
	size_t era;           /* of the hit before (era_next) */
};
/* Under the read lock. SKV_E_NOT_FOUND (instance), SKV_E_INVALID, SKV_E_NOMEM. */
int search_run(struct partition *p, const struct skv_lookup_req *req, struct skv_arena *a, struct search *s,
	       struct skv_error *err);

/* ---- horizon.c -------------------------------------------------------------------------------------- */

/* Under the write lock: a lease of `ms` is asked for that ends after the instance's horizon. Queues a longer one, or
 * finds one on its way; `again`: for one that was too late when it was durable. */
int horizon_extend(struct partition *p, struct instance *inst, uint64_t now, uint32_t ms, bool again, struct change **out);

#endif
