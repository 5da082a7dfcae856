/*
 * clear.h - all blocks of an instance go at once: by a clear, or with the instance itself (a drop).
 */
#ifndef SKV_CORE_EVICT_CLEAR_H
#define SKV_CORE_EVICT_CLEAR_H

#include <stdbool.h>
#include <stdint.h>

#include <journal/change.h>

struct group;
struct instance;
struct partition;
struct skv_core;

/* Queues the record of a CLEAR or a DROP of the instance, which becomes a retired instance. SKV_E_NOMEM changes nothing. */
int clear_queue(struct partition *p, struct instance *inst, bool drop, struct change **out);
/* How many its instance had. `ch`: of clear_queue. */
uint64_t clear_blocks(const struct change *ch);
/* Sweeps about so many blocks of cleared retired instances: of the group's (NULL = all), of those that had slots in the volume.
 * Returns how many. */
#define ANY_VOLUME UINT32_MAX
uint32_t retired_sweep(struct partition *p, const struct group *g, uint32_t volume, uint32_t blocks);
/* Are there any that are not swept yet, or whose record is on its way? */
bool retired_left(const struct partition *p, const struct group *g, uint32_t volume);
/* A portion. True when there is more to do at once. */
bool retired_go_on(struct partition *p);
/* Those that are swept, for retired_free, which needs no lock. */
struct instance *retired_take_swept(struct partition *p);
void retired_free(struct instance *retired);
/* Sweeps all whose record is durable, with others' calls in between. No lock. */
void retired_finish(struct skv_core *c);

extern const struct change_ops clear_ops, drop_ops;

#endif
