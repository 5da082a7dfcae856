/*
 * run.h - a simulation: a trace, a policy, a capacity. Each runs on one thread and shares nothing
 * but the trace.
 *
 * Semantics of a request in policy mode, as in the manager: its blocks are looked up in the state
 * at arrival; the leading blocks that are present are used; then blocks of other requests are
 * evicted to make room for all absent ones, which come in; of a request that is larger than the
 * capacity the first blocks, as many as fit, are kept and written. One by one (and of the optimum):
 * every present block is used, in request order; then the absent ones come in, in order, with one
 * victim for each once the capacity is reached.
 *
 * With a fast tier (docs/decisions/0051): the fast tier is searched for copies of the used blocks;
 * then used blocks with enough uses, and with write_through new blocks, enter the fast tier, all at
 * the same time. A block in the fast tier alone is no hit.
 */
#ifndef SKV_SIMULATE_RUN_H
#define SKV_SIMULATE_RUN_H

#include <stdatomic.h>
#include <stdbool.h>

#include <skv/limits.h>

#include "refs.h"

struct counts {
	uint64_t block_hits;
	uint64_t prefix_hits;
	uint64_t inserted;
	uint64_t evicted;
	uint64_t examined; /* entries that evictions looked at */
};

/* Of a fast tier. */
struct tier_counts {
	uint64_t hits;     /* hits of prefix_hits that the fast tier had */
	uint64_t promoted; /* copied up, because they were found often enough */
	uint64_t written;  /* by requests that wrote them to the slow tier, too */
	uint64_t evicted;
};

/* The hits of a request: leading blocks, and blocks after the first miss. */
struct request_hits {
	uint32_t prefix;
	uint32_t behind;
	uint32_t written;
};

struct run {
	const struct refs *refs;
	const char *policy; /* of simulated_policy(), or "belady" */
	uint64_t blocks;    /* capacity, at least 1; with tiers, of the slow one */
	uint64_t fast_blocks;   /* of a fast tier before it, 0 = none; policy mode only */
	uint32_t promote_after; /* uses after which a block is copied up, 0 = never */
	bool write_through;     /* writes go into both tiers */
	bool full;
	bool one_by_one;    /* not in full mode */
	/* Name of the instance, NULL = as slabkv replay calls it: policies hash it with the
	 * keys. */
	const char *instance;
	uint64_t ttl_ms;          /* full: of policy `ttl` */
	uint64_t block_bytes;     /* full: bytes of a block */
	/* Full: of the storage, 0 = `blocks` bound the group, and the storage is large enough. */
	uint64_t storage_bytes;
	uint64_t storage_unit;    /* full: 0 = default, */
	uint64_t storage_file;    /* full: 0 = 1 GiB, as skv_storage_spec */
	struct request_hits *hits; /* [refs->n_requests], or NULL */
	/* results */
	struct counts counts;
	struct tier_counts tier;
	int status;
	struct skv_error err; /* unless it is SKV_OK */
};

/* Set from a signal handler or any thread: every simulation ends soon, with SKV_E_TIMEOUT. */
extern atomic_bool run_stop;
/* Requests that all runs have done, for progress. */
extern atomic_ullong run_done;

#define RUN_TENANT "default" /* of callers without a token */
/* Writes the name of the instance. */
void run_instance(const struct run *r, char name[SKV_MAX_NAME + 1]);

/* Returns false to end the run; called once per request. */
bool run_goes_on(struct run *r);
/* Notes the hits of a request. */
void run_note(struct run *r, uint32_t request, struct request_hits hits);

/* Each fills counts, and returns SKV_OK, or what is in err, too. */
int run_policy(struct run *r);
int run_belady(struct run *r);
int run_full(struct run *r);

/* Runs all on so many threads. The first failure, with its run's err. */
int run_all(struct run *runs, uint32_t n, uint32_t threads,
	    void (*progress)(uint64_t done, uint64_t all), struct skv_error *err);

#endif
