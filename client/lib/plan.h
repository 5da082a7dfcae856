/*
 * plan.h - from pieces (one spec of one block, at its location, with its buffer) to runs: pieces
 * that lie side by side in a file become one I/O. Pure: no I/O, no lock, no state.
 */
#ifndef KVB_CLIENT_PLAN_H
#define KVB_CLIENT_PLAN_H

#include <stdint.h>

#include <kvb/arena.h>

#include "engine.h"

struct kvb_region;

struct kvb_piece {
	uint32_t block;               /* index into the call's blocks */
	uint32_t spec;                /* column */
	uint32_t file_index;          /* of the answer's files */
	struct kvb_engine_file *file; /* open; NULL while status is not KVB_OK */
	uint64_t offset;
	uint64_t length;
	void *data;
	int status;        /* in: KVB_OK = take part. out: of the I/O */
	uint64_t done;     /* in: 0. out: leading bytes moved */
	uint64_t ended_ms; /* out */
	uint32_t run;      /* which run moves it; set by kvb_plan_make */
	uint64_t run_at;   /* where in the run it begins */
	struct kvb_region *pinned; /* transfer.c */
};

struct kvb_plan {
	struct kvb_piece **order; /* pieces that take part, by file and offset */
	uint32_t n_order;
	struct kvb_io_run *runs;
	uint32_t n_runs;
};

/* Builds the runs. Pieces whose status is not KVB_OK, and those that are whole, stay out; of two pieces that share a byte the
 * later one is refused (KVB_E_CORRUPT): a manager that says so is not to be believed. Memory from
 * `a`. KVB_E_NOMEM. */
int kvb_plan_make(struct kvb_piece *pieces, uint32_t n, struct kvb_arena *a, struct kvb_plan *out);
/* After the I/O: gives each piece its share of its run's result. A piece is whole when done ==
 * length. */
void kvb_plan_settle(const struct kvb_plan *plan);

#endif
