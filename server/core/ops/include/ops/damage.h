/* damage.h - hides blocks whose bytes are damaged (damage.c has skv_core_report). */
#ifndef SKV_CORE_OPS_DAMAGE_H
#define SKV_CORE_OPS_DAMAGE_H

#include <stdint.h>

#include <journal/change.h>

struct move;
struct partition;
struct skv_move_finish_req;

/* Applies a mover's findings about the move's slots: hides damaged slots, forgets suspects that are
 * sound. Returns how many were hidden; *last is the change to wait for, NULL = none. */
uint32_t damages_settle(struct partition *p, const struct move *m,
			const struct skv_move_finish_req *req, struct change **last);
/* Forgets slots that are gone, and removes hidden ones that lost their copy. Ticker only. */
void damages_go_on(struct partition *p, uint64_t now);

/* scrub.c: progress of a slab file's scrub. */
extern const struct change_ops checked_ops;

#endif
