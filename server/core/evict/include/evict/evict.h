/*
 * evict.h - eviction: makes room by removing the committed blocks that their group's policy ranks
 * first.
 */
#ifndef SKV_CORE_EVICT_EVICT_H
#define SKV_CORE_EVICT_EVICT_H

#include <stdbool.h>
#include <stdint.h>

#include <model/partition.h>

/* Blocks that would take the room of victims, head first, of a caller that can do without some of
 * them: a policy that admits decides about each. An eviction ends at the first refused block. */
struct newcomers {
	const struct group *group; /* theirs; NULL = any, of which nothing is known */
	const uint64_t *hash;      /* [n]; n 0 = nothing is known of them */
	uint32_t n;
	uint32_t at;  /* of these the first that has no room yet */
	bool refused; /* result: this block, and those after it */
	bool full;    /* result: blocks of the same request (`kept`) were not evicted */
};

/* The purpose of an eviction. */
struct evict_for {
	struct newcomers *in; /* NULL = all are admitted */
	const struct instance *whose; /* the instance whose start needs room; NULL = background */
	uint64_t bytes; /* bytes of that start; they count as used by its instance already */
	bool soft; /* may take soft-pinned blocks when nothing else is left */
	/* evict_rebalance only: take only from instances over their quota share, or of tenants over
	 * theirs. */
	bool over;
};
/* Queues the removal of blocks until `slots` of (volume, class) will become free. Returns how many
 * slots this call frees; a single call is bounded, so a lower number does not mean that no more can
 * be freed. */
uint64_t evict_slots(struct partition *p, uint32_t volume, uint32_t class_id, uint64_t slots,
		     const struct evict_for *w);
/* Selects the blocks to evict, in all storages. */
struct evict_what {
	const struct group *group;   /* of this group; NULL only with `of` */
	const char *type;            /* on storages of this type; NULL = any */
	const struct instance *only; /* of this instance, which is the group's; NULL = any */
	const struct tenant *of;     /* of this tenant, in all its groups; NULL = any */
	bool blocks;                 /* blocks are needed, not bytes */
};
/* Frees `need` of these; fewer where no more may go, or more than a call frees are needed. */
uint64_t evict_some(struct partition *p, const struct evict_what *what, uint64_t need,
		    const struct evict_for *w);
/* Frees bytes of a storage from any instance. */
uint64_t evict_volume_bytes(struct partition *p, uint32_t volume, uint64_t bytes);
/* Evicts at most `blocks` blocks of the group not used since then (a mark's time), except those
 * with a used descendant. True: there may be more. */
bool evict_idle(struct partition *p, struct group *g, uint64_t since, uint64_t blocks);
/* The same for blocks with an older generation; for policies ordered by birth. */
bool evict_older(struct partition *p, struct group *g, uint64_t generation, uint64_t blocks);
/* Keeps some slots free in every class used lately, so that starts rarely wait, and so that a start
 * right after a recovery finds slots not covered by a lease horizon. Returns true if more work is
 * due now. */
bool evict_ahead(struct partition *p, struct portion volumes, struct portion groups);
/* The same behind a start that has taken slots of the class: as many go as it took, so that a full
 * storage keeps its free slots however fast it is written. */
void evict_behind(struct partition *p, uint32_t volume, uint32_t class_id, uint64_t taken);
/* Returns true if the tenant of `w->whose` is within its share of the volume with its bytes, and
 * others have blocks there. */
bool evict_below_tenant_share(struct partition *p, uint32_t volume, const struct evict_for *w);
bool block_evictable(const struct partition *p, const struct instance *inst, const struct block *b,
		     uint64_t now);

/* Counts an evicted block of the instance. */
void evict_count(struct partition *p, struct instance *inst);

#endif
