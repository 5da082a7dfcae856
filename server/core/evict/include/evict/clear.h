/*
 * clear.h - deletes all blocks of an instance at once: a clear, or a drop (with the instance
 * itself).
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

/* Queues the CLEAR or DROP record of the instance, which becomes a retired instance. SKV_E_NOMEM
 * changes nothing. */
int clear_queue(struct partition *p, struct instance *inst, bool drop, struct change **out);
/* How many blocks the instance had. `ch`: from clear_queue. */
uint64_t clear_blocks(const struct change *ch);
/* Sweeps about `n` blocks of cleared retired instances: of the group (NULL = all), with slots in
 * the volume. Returns how many. */
#define ANY_VOLUME UINT32_MAX
uint32_t retired_sweep(struct partition *p, const struct group *g, uint32_t volume,
		       uint32_t blocks);
/* Returns true if retired instances exist that are not swept yet, or whose record is not durable
 * yet. */
bool retired_left(const struct partition *p, const struct group *g, uint32_t volume);
/* Sweeps a portion. Returns true if more work is due now. */
bool retired_go_on(struct partition *p);
/* Unlinks the swept instances, for retired_free, which needs no lock. */
struct instance *retired_take_swept(struct partition *p);
void retired_free(struct instance *retired);
/* Sweeps all whose record is durable, releasing the lock now and then. Call without the lock. */
void retired_finish(struct skv_core *c);

extern const struct change_ops clear_ops, drop_ops;

#endif
