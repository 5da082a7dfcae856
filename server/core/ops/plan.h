/*
 * plan.h - what a start asks for, and what of it is left to write: one try's plan before it looks for room.
 */
#ifndef SKV_CORE_OPS_PLAN_H
#define SKV_CORE_OPS_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/limits.h>

#include <ops/start.h>

struct block;
struct instance;
struct partition;
struct skv_arena;
struct skv_error;
struct skv_start_req;

/* What one try finds out. */
struct plan {
	struct instance *inst;
	uint32_t specs;                      /* asked for, of any key */
	uint32_t n_keys;
	struct block **have;                 /* [n_keys] entries, NULL = none */
	uint8_t *outcome;                    /* [n_keys] */
	uint32_t *missing;                   /* [n_keys] specs to write */
	uint32_t n_write;
	uint32_t need[SKV_MAX_SPECS];        /* slots per spec */
	uint64_t bytes;
	uint64_t since; /* when the start came (boot time ms) */
	bool keeps;     /* what exists already is not evicted for the rest */
	bool no_wait;     /* takes what there is, rather than wait for leases and grace times to end */
	struct grants grants;
};

/* plan.c: fills what the request asks of plan->inst and what is left to write. SKV_E_INVALID, SKV_E_TOO_LARGE,
 * SKV_E_TOO_MANY, SKV_E_NOMEM. */
int plan_make(const struct partition *p, const struct skv_start_req *req, struct skv_arena *a, struct plan *plan,
	      struct skv_error *err);
/* Leaves the first n writes; the others have no room. `whole`: n or none, and none where a key is BUSY. */
void plan_cut(struct plan *plan, uint64_t n, bool whole);
/* n_write, need and bytes by the outcomes. */
void plan_count(struct plan *plan);

#endif
