/*
 * search.h - which keys of a request are hits: prefixes, batches, windows, hybrids; lengths without locations.
 */
#ifndef SKV_CORE_OPS_SEARCH_H
#define SKV_CORE_OPS_SEARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <model/block.h>
#include <model/objects.h>

struct partition;
struct skv_arena;
struct skv_error;
struct skv_lookup_req;

/* What cannot be read now: volumes as a whole, and files of others. */
struct unread {
	const struct partition *p;
	uint32_t *gone; /* [n_gone] volumes; in the arena of the call */
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
	size_t birth;           /* of the hit before (birth_next) */
};
/* Under the read lock. SKV_E_NOT_FOUND (instance), SKV_E_INVALID, SKV_E_NOMEM. */
int search_run(struct partition *p, const struct skv_lookup_req *req, struct skv_arena *a, struct search *s,
	       struct skv_error *err);

#endif
