/*
 * evict.h - blocks on their way out: chosen, removed, cleared; files that drain. All calls under the write lock but where
 * said.
 */
#ifndef SKV_CORE_EVICT_H
#define SKV_CORE_EVICT_H

#include "change.h"

/* ---- room is needed --------------------------------------------------------------------------------- */

/* For whom something is evicted. */
struct evict_for {
	const struct instance *whose; /* its start asks for it; NULL = nobody's: ahead of need */
	uint64_t bytes; /* that the start brings: they count for it already */
	bool soft; /* also what is pinned soft, when nothing else is left */
	bool over; /* evict_steal only: nothing but of instances that have more than their part */
};
/* Queues the removal of blocks so that `slots` of (space, class) become free; returns how many slots
 * are on their way because of this call (it bounds the blocks of one call: fewer is no end). */
uint64_t evict_slots(struct partition *p, uint32_t space, uint32_t class_id, uint64_t slots, const struct evict_for *w);
/* Same for a group, by bytes; on storages of this type only (NULL = any). */
uint64_t evict_group_bytes(struct partition *p, struct group *g, const char *type, uint64_t bytes, const struct evict_for *w);
/* Same of one instance. */
uint64_t evict_instance_bytes(struct partition *p, struct instance *inst, uint64_t bytes, bool soft);
/* Bytes of the group on storages of a type, those on their way out not counted (*removing gets them; may be NULL). */
uint64_t group_type_bytes(const struct partition *p, const struct group *g, const char *type, uint64_t *removing);
/* Keeps a little free in every class that somebody used lately, so that starts rarely wait, and so that a start
 * just after a recovery finds slots that no lease horizon covers. True when there is more to do at once. */
bool evict_ahead(struct partition *p, struct portion spaces, struct portion groups);
/* Empties slabs of other classes for `class_id`. True when something is on its way. */
bool evict_steal(struct partition *p, uint32_t space, uint32_t class_id, const struct evict_for *w);
/* The same where leases run in every window: its slots come free when they end. One window at a time: true while that is
 * waited for. */
bool evict_steal_leased(struct partition *p, uint32_t space, uint32_t class_id, const struct evict_for *w);

/* ---- remove.c --------------------------------------------------------------------------------------- */

int remove_mark(struct partition *p, struct picks *k, struct block *b);
int remove_queue(struct partition *p, struct picks *k, struct change **out);
void remove_cancel(struct partition *p, struct picks *k);
/* They are gone: what a record of them does when it is durable. */
void removals_apply(struct partition *p, const struct removal *v, size_t n);

/* ---- clear.c ---------------------------------------------------------------------------------------- */

/* Queues the record of a CLEAR or a DROP of the instance, which becomes a ghost. SKV_E_NOMEM changes nothing. */
int clear_queue(struct partition *p, struct instance *inst, bool drop, struct change **out);
/* How many its instance had. `ch`: of clear_queue. */
uint64_t clear_blocks(const struct change *ch);
/* Sweeps about so many blocks of cleared ghosts: of the group's (NULL = all), of those that had slots in the space.
 * Returns how many. */
#define ANY_SPACE UINT32_MAX
uint32_t ghosts_sweep(struct partition *p, const struct group *g, uint32_t space, uint32_t blocks);
/* Are there any that are not swept yet, or whose record is on its way? */
bool ghosts_left(const struct partition *p, const struct group *g, uint32_t space);
/* A portion. True when there is more to do at once. */
bool ghosts_go_on(struct partition *p);
/* Those that are swept, for ghosts_free, which needs no lock. */
struct instance *ghosts_take_swept(struct partition *p);
void ghosts_free(struct instance *ghosts);
/* Sweeps all whose record is durable, with others' calls in between. No lock. */
void ghosts_finish(struct skv_core *c);

/* ---- drain.c: files that go ------------------------------------------------------------------------- */

/* A portion of what draining files still hold is on its way out, and files are chosen for a capacity that is less than
 * what was made. True when there is more to do at once. */
bool drains_go_on(struct partition *p, struct portion spaces);
/* What a file waits for, for people; "" = nothing. */
const char *drain_waits_for(const struct space *s, const struct space_file *f, const struct skv_file_info *info);

extern const struct change_ops remove_ops, clear_ops, drop_ops;

#endif
