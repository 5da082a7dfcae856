/* report.h - results of simulations: table, CSV, JSON. Functions write to a stream and return 0, or
 * -1 on failure. */
#ifndef SKV_SIMULATE_REPORT_H
#define SKV_SIMULATE_REPORT_H

#include <assert.h>
#include <stdio.h>

#include <skv/model.h>

#include "run.h"

/* The worth of a trace's blocks in bytes and tokens. */
struct sizing {
	struct skv_model model;
	struct skv_model_bytes bytes; /* for each token */
	const char *dtype;
	uint32_t tp;
	uint32_t block_tokens; /* of a block of the manager */
};

struct report {
	const struct refs *refs; /* [n_refs] traces */
	uint32_t n_refs;
	const char *const *policies;
	uint32_t n_policies;
	const uint64_t *blocks; /* capacities */
	uint32_t n_blocks;
	const struct run *runs;      /* [n_refs * n_policies * n_blocks], in this order */
	const struct sizing *sizing; /* NULL: none */
	uint32_t trace_tokens;       /* of a block of the trace */
	uint64_t tier_bytes;         /* with tiers: bytes of a block of the trace; else 0 */
};

static inline const struct run *report_run(const struct report *r, uint32_t trace, uint32_t policy,
					   uint32_t blocks)
{
	assert(trace < r->n_refs && policy < r->n_policies && blocks < r->n_blocks);
	return &r->runs[((size_t)trace * r->n_policies + policy) * r->n_blocks + blocks];
}

static inline double report_rate(uint64_t hits, const struct refs *t)
{
	return t->n_refs ? (double)hits / (double)t->n_refs : 0;
}

int report_table(const struct report *r, FILE *out);
int report_csv(const struct report *r, FILE *out);
int report_json(const struct report *r, FILE *out);
/* Writes a line for each request of a run: request, blocks, leading hits, hits after the first
 * miss, written. */
int report_hits(const struct run *run, FILE *out);
/* Bytes of a token and of blocks of some lengths. */
int report_sizing(const struct sizing *s, FILE *out);

#endif
