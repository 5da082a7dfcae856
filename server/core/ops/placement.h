/*
 * placement.h - finds slots for a start: free ones, by growing a storage, by evicting, by emptying
 * other classes' slabs.
 */
#ifndef SKV_CORE_OPS_PLACEMENT_H
#define SKV_CORE_OPS_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

struct grants;
struct partition;
struct plan;
struct skv_arena;
struct skv_error;
struct skv_start_req;

void grants_free(struct partition *p, struct grants *g); /* frees the slots, not the arrays */

/* Not now: slots, room in the group's quota, or in the limit of the tenant, are on their way. */
enum { TRY_WAIT = 2, TRY_WAIT_QUOTA, TRY_WAIT_TENANT };
/* Protect present blocks of the plan's request, and the blocks that it continues, from eviction;
 * end the protection. Both while the lock is held once. */
void placement_keep(struct partition *p, const struct plan *plan);
void placement_let_go(struct partition *p, const struct plan *plan);
/* Where nothing else may go: is the request served all the same, at the cost of its own blocks? */
bool placement_eats_own(const struct plan *plan);
/* Checks the limits of open sessions, and those that evict nothing (limits.h): SKV_OK,
 * SKV_E_TOO_LARGE, SKV_E_TOO_MANY, SKV_E_QUOTA. */
int placement_limits(struct partition *p, struct plan *plan, struct skv_error *err);
/* Takes the plan's slots, all in one storage. SKV_OK, TRY_WAIT, SKV_E_NO_SPACE, SKV_E_UNAVAILABLE,
 * SKV_E_NOMEM. */
int placement_take(struct partition *p, struct plan *plan, struct skv_arena *a,
		   struct skv_error *err);
/* Takes the slots that the request names, if free; the other keys get none. As placement_take. */
int placement_take_offsets(struct partition *p, const struct skv_start_req *req, struct plan *plan,
			   struct skv_arena *a, struct skv_error *err);
/* Called when a start has taken the plan's slots permanently: frees others in their place. */
void placement_taken(struct partition *p, const struct plan *plan);
/* For plans of one spec: how many of its blocks a session may have at all; */
uint64_t placement_most(const struct partition *p, const struct plan *plan);
/* how many of its blocks the limits of open sessions and blocks allow; */
uint64_t placement_bound(const struct partition *p, const struct plan *plan);
/* Returns the number of slots that could be taken at once, without eviction. */
uint64_t placement_now(struct partition *p, const struct plan *plan);

#endif
