/* bench.h - what the two files of `kvblock bench` share. */
#ifndef KVB_CLI_BENCH_H
#define KVB_CLI_BENCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "cli.h"
#include "histogram.h"

struct kvb_bench {
	struct kvb_cli *cli;
	struct kvblock *kv;
	uint32_t keys;
	uint32_t n_clients;
	uint32_t seconds;
	uint64_t max_blocks;
	long manager_pid;  /* 0 = not told */
	char name[64];     /* of storage, group and instance */
	uint64_t *hot;     /* [keys]: keys that are there */
	atomic_bool stop;
	atomic_ullong made; /* blocks that start+finish committed */
};

struct kvb_bench_op {
	const char *name;
	bool single; /* one key instead of bench->keys */
	/* One call (or the pair start and finish). `fresh`: room for bench->keys; `turn`: a number
	 * that no other call of the run has. KVBLOCK_OK or the error. */
	int (*call)(struct kvb_bench *b, uint64_t *fresh, uint64_t turn, struct kvblock_error *err);
};

extern const struct kvb_bench_op kvb_bench_ops[];
extern const size_t kvb_bench_n_ops;

/* Storage of type null, group, instance, and the hot keys; all of it is removed again by
 * _remove. */
int kvb_bench_prepare(struct kvb_bench *b, struct kvblock_error *err);
void kvb_bench_remove(struct kvb_bench *b);

#endif
