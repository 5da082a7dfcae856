/*
 * damage.h - slots whose bytes are damaged, or were reported to be.
 *
 * *Hidden* slots are damaged: readers get the copy in the group's fast tier instead, and movers
 * give them another location. Blocks without such a copy are removed and never listed here. The
 * other slots are *suspects*: reported by callers that may not delete, until a mover has checked
 * them. Entries are found by generation, which identifies a slot of the partition, and are in
 * memory only: after a restart the next reader or scrub reports them again. Under the write lock;
 * damage_hides under the read lock.
 */
#ifndef SKV_CORE_MODEL_DAMAGE_H
#define SKV_CORE_MODEL_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/hash.h>

#include <model/block.h>
#include <model/partition.h>

#define MAX_DAMAGE 4096u /* entries of a partition */

struct damage {
	uint64_t generation;
	struct skv_key key;
	uint32_t instance; /* durable number of the instance */
	uint32_t spec;
	bool hidden;
	uint64_t asked_until; /* boot time ms: a mover is checking a suspect until then */
};

/* NULL: unknown. Valid until the next add or remove. */
struct damage *damage_find(const struct partition *p, uint64_t generation);
/* Adds the slot, or makes a suspect hidden; a known slot is never made visible again.
 * SKV_E_TOO_MANY, SKV_E_NOMEM. */
int damage_add(struct partition *p, const struct block *b, uint32_t spec, bool hidden);
/* Forgets the slot; harmless for an unknown one. */
void damage_remove(struct partition *p, uint64_t generation);
/* A mover checks the suspect at this place until then. */
void damage_ask(struct partition *p, size_t at, uint64_t until);
void damages_free(struct partition *p);
/* Returns true if the slot is hidden. Costs nothing while none is. */
static inline bool damage_hides(const struct partition *p, const struct slot *s)
{
	const struct damage *d = p->damage.n_hidden ? damage_find(p, s->generation) : NULL;

	return d && d->hidden;
}
/* The committed block whose slot the entry names; NULL: that slot's life has ended. */
struct block *damage_block(const struct partition *p, const struct damage *d);

#endif
