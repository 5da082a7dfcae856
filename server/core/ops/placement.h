/*
 * placement.h - finds slots for a start: takes free ones, lets a storage grow, evicts, empties other slabs.
 */
#ifndef SKV_CORE_OPS_PLACEMENT_H
#define SKV_CORE_OPS_PLACEMENT_H

#include <stdint.h>

struct grants;
struct partition;
struct plan;
struct skv_arena;
struct skv_error;
struct skv_start_req;

void grants_free(struct partition *p, struct grants *g); /* the slots, not the arrays */

enum { TRY_WAIT = 2, TRY_WAIT_QUOTA }; /* not now: slots are on their way, or room in the group's quota */
/* What open sessions may hold: SKV_OK, SKV_E_TOO_LARGE, SKV_E_TOO_MANY. */
int placement_limits(const struct partition *p, const struct plan *plan, struct skv_error *err);
/* The group's quota, the instance's part of it, and how many blocks one instance holds: SKV_OK, TRY_WAIT_QUOTA (eviction within
 * the group is on its way), SKV_E_QUOTA. */
int placement_quota(struct partition *p, const struct plan *plan, struct skv_error *err);
/* Takes the plan's slots, all in one storage. SKV_OK, TRY_WAIT, SKV_E_NO_SPACE, SKV_E_UNAVAILABLE,
 * SKV_E_NOMEM. */
int placement_take(struct partition *p, struct plan *plan, struct skv_arena *a, struct skv_error *err);
/* The slots that the request names, of those that are free; the other keys have no room. As placement_take. */
int placement_take_offsets(struct partition *p, const struct skv_start_req *req, struct plan *plan, struct skv_arena *a,
		     struct skv_error *err);
/* For plans of one spec. How many of its blocks the bounds of open sessions and blocks allow: */
uint64_t placement_bound(const struct partition *p, const struct plan *plan);
/* how many could be taken at once, without any eviction. */
uint64_t placement_now(struct partition *p, const struct plan *plan);

#endif
