/*
 * plan.h - from pieces (one spec of one block, at its location, with its buffer) to runs: adjacent
 * pieces in a file become one I/O. Pure: no I/O, no lock, no state.
 */
#ifndef SKV_CLIENT_PLAN_H
#define SKV_CLIENT_PLAN_H

#include <stdint.h>

#include <skv/arena.h>

#include "engine.h"

struct skv_piece {
	uint32_t block;               /* index into the call's blocks */
	uint32_t spec;                /* column */
	uint32_t file_index;          /* of the answer's files */
	struct skv_engine_file *file; /* open; NULL while status is not SKV_OK */
	uint64_t offset;
	uint64_t length;
	void *data;
	int status;        /* in: SKV_OK = include it. out: result of the I/O */
	uint64_t done;     /* in: 0. out: leading bytes moved */
	uint64_t ended_ms; /* out */
	bool prove;        /* in: the checksum of its bytes is wanted (transfer.c) */
	uint64_t checksum; /* in: of a read to be proven: what it should be */
	bool summed;       /* `sum` is that of all its bytes */
	uint64_t sum;
	uint32_t run;      /* index of the run; set by skv_plan_make */
	uint64_t run_at;   /* offset within the run */
	bool late;         /* out: the call's time was over before there was an answer */
};

struct skv_plan {
	struct skv_piece **order; /* included pieces, by file and offset */
	uint32_t n_order;
	struct skv_io_run *runs;
	uint32_t n_runs;
};

/* Builds the runs. Pieces whose status is not SKV_OK, and complete ones, are left out; of two
 * overlapping pieces the later one is refused (SKV_E_CORRUPT), because a manager that returns such
 * locations cannot be trusted. Allocates from `a`. SKV_E_NOMEM. */
int skv_plan_make(struct skv_piece *pieces, uint32_t n, struct skv_arena *a, struct skv_plan *out);
/* After the I/O: distributes each run's result to its pieces. A piece is complete if done ==
 * length. */
void skv_plan_settle(const struct skv_plan *plan);

#endif
