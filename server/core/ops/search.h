/* search.h - finds the hits of a lookup: prefix, batch, window, hybrid; or only their number. */
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

/* The unreadable slots: whole volumes, and files of other volumes. */
struct unread {
	const struct partition *p;
	uint32_t *gone; /* [n_gone] volumes; in the call's arena */
	uint32_t n_gone;
	bool any; /* false: everything is readable, no slot needs a check */
	/* If any is not: copies in the fast tier, which are read then. NULL = there are none. */
	const struct instance *copies;
	struct unread *copies_unread;
};
bool slot_unread(const struct unread *u, const struct slot *s);

/* Returns true if the spec is committed and readable at its own location. */
static inline bool spec_there(const struct block *b, uint32_t spec, const struct unread *u)
{
	return b->slot[spec].state == SLOT_COMMITTED && !(u->any && slot_unread(u, &b->slot[spec]));
}

/* Returns true if the spec is committed, unreadable at its own location, but readable in a copy. */
bool spec_stands_in(const struct block *b, uint32_t spec, const struct unread *u);

/* Result of one lookup. */
struct search {
	struct instance *inst;
	uint32_t mask;      /* requested specs */
	struct unread gone; /* slots that cannot or must not be read */
	struct block **hit; /* of the first n_seen keys; NULL = miss */
	uint32_t n_seen;
	uint32_t matched;
	uint64_t lease_until; /* lookup.c */
	bool denied;          /* by the limit on leased bytes; */
	uint32_t hidden;      /* hits that became misses because of it */
	size_t birth;           /* of the previous hit (birth_next) */
};
/* Under the read lock. SKV_E_NOT_FOUND (instance), SKV_E_INVALID, SKV_E_NOMEM. */
int search_run(struct partition *p, const struct skv_lookup_req *req, struct skv_arena *a,
	       struct search *s, struct skv_error *err);

/* Copies of the hits of `s` in the fast tier: *copies has a hit where a requested spec has one;
 * inst NULL: there is no fast tier. SKV_E_NOMEM. */
int search_copies(const struct partition *p, const struct skv_lookup_req *req,
		  const struct search *s, struct skv_arena *a, struct search *copies);
/* Returns true if this spec of `copy` is a copy of the block's (decision 0051). */
static inline bool spec_is_copy(const struct block *copy, const struct block *b, uint32_t spec,
				const struct unread *u)
{
	const struct slot *x = &copy->slot[spec], *y = &b->slot[spec];

	return y->state == SLOT_COMMITTED && spec_there(copy, spec, u) && x->has_checksum &&
	       y->has_checksum && x->checksum == y->checksum;
}

#endif
