/*
 * plan.h - the plan of an attempt: what a start still has to write, made before the search for
 * slots.
 */
#ifndef SKV_CORE_OPS_PLAN_H
#define SKV_CORE_OPS_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/limits.h>

#include <evict/evict.h>
#include <ops/start.h>

struct block;
struct instance;
struct partition;
struct skv_arena;
struct skv_error;
struct skv_start_req;

/* Result of one attempt. */
struct plan {
	struct instance *inst;
	uint32_t specs;                      /* requested, of any key */
	uint32_t n_keys;
	struct block **have;                 /* [n_keys] entries, NULL = none */
	uint8_t *outcome;                    /* [n_keys] */
	uint32_t *missing;                   /* [n_keys] specs to write */
	uint32_t n_write;
	uint32_t need[SKV_MAX_SPECS];        /* slots per spec */
	uint64_t bytes;
	uint64_t since; /* when the start arrived (boot time ms) */
	/* Block that the request's blocks continue; NULL = none, or not found. */
	struct block *parent;
	bool keeps; /* existing blocks of the request stay even if nothing else may be evicted */
	const char *storage; /* the only one that it may take slots of; NULL = any of the group */
	const char *const *avoid; /* [n_avoid] storages that it takes no slots of */
	uint32_t n_avoid;
	bool unsummed;    /* not to memory */
	bool no_wait; /* takes what is free now instead of waiting for leases and grace periods */
	/* writes of a request that lets the manager leave some out (`selective`); else n is 0 */
	struct newcomers newcomers;
	struct grants grants;
};

static inline struct newcomers *newcomers_of(struct plan *plan)
{
	return plan->newcomers.n ? &plan->newcomers : NULL;
}

/* Returns true if the last writes are left out, because the policy refused them, or the request
 * exceeds a limit. */
static inline bool plan_leaves_out(const struct plan *plan)
{
	return plan->newcomers.refused || (plan->newcomers.full && !plan->no_wait);
}

/* plan.c: fills in the requested blocks of plan->inst and those left to write. SKV_E_INVALID,
 * SKV_E_TOO_LARGE, SKV_E_TOO_MANY, SKV_E_NOMEM. */
int plan_make(const struct partition *p, const struct skv_start_req *req, struct skv_arena *a,
	      struct plan *plan, struct skv_error *err);
/* Keeps the first n writes; the others get no slots: NOT_ADMITTED if plan_leaves_out, else NO_ROOM.
 * `whole`: n or none, and none if a key is BUSY. */
void plan_cut(struct plan *plan, uint64_t n, bool whole);
/* Computes n_write, need and bytes from the outcomes. */
void plan_count(struct plan *plan);

#endif
