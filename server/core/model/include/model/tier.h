/*
 * tier.h - fast tiers: a group may have copies of the blocks of another one (decision 0051).
 *
 * A copy is a block of the same key in the *copy instance*, ID@GROUP. It counts for a spec that is
 * committed in both, with equal checksums; so nothing here has to change with a block. Under the
 * partition's lock.
 */
#ifndef SKV_CORE_MODEL_TIER_H
#define SKV_CORE_MODEL_TIER_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/limits.h>

struct block;
struct group;
struct instance;
struct partition;
struct slot;

/* Room for a name that may be too long, to be told so. */
#define TIER_NAME (2 * SKV_MAX_NAME + 2)

void tier_name(char out[TIER_NAME], const char *id, const char *group);
/* The group was added, or is about to be removed. */
void tier_link(struct partition *p, struct group *g);
void tier_unlink(struct partition *p, struct group *g);
/* Of the instance, if it is registered with the same specs, and not being deleted; else NULL. */
struct instance *tier_copies(const struct partition *p, const struct instance *inst);
/* Returns the committed copy of that spec of the block, in its copy instance (NULL is allowed), or
 * NULL. The copy's storage may be gone. */
const struct slot *tier_copy(const struct partition *p, const struct instance *copies,
			     const struct block *b, uint32_t spec);

#endif
