/* bench.h - shared by the files of `slabkv bench`: the run, an operation, a worker's call. */
#ifndef SKV_CLI_BENCH_H
#define SKV_CLI_BENCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "cli.h"
#include "histogram.h"

#define SKV_BENCH_SIZES 16 /* most values of --keys, --ops, --data */
#define SKV_BENCH_TEXT 64u /* characters of a key that is a text: a SHA-256 in hex */
#define SKV_BENCH_IN_FLIGHT 16u

struct skv_bench_op;

struct skv_bench;
struct skv_bench_call;

/* The calls that are measured. `slabkv bench` measures skv_bench_native, tests/bench other ones. */
struct skv_bench_api {
	const char *name;
	const struct skv_bench_op *ops;
	uint32_t n_ops;
	const char *op_names; /* for the message about a wrong --ops */
	/* Registers instance b->name in the group of that name, with blocks of b->slot_bytes. */
	int (*register_instance)(struct skv_bench *b, struct slabkv_error *err);
	/* Releases the objects that calls keep in c->own; or NULL. */
	void (*close)(struct skv_bench_call *c);
};

struct skv_bench {
	struct skv_cli *cli;
	struct slabkv *kv;
	/* the benchmark that was requested */
	const struct skv_bench_api *api;
	const struct skv_bench_op *ops[SKV_BENCH_SIZES];
	uint32_t n_ops;
	uint64_t sizes[SKV_BENCH_SIZES]; /* --keys */
	uint32_t n_sizes;
	uint64_t data[SKV_BENCH_SIZES]; /* --data: bytes of a block */
	uint32_t n_data;
	uint32_t n_clients;
	double seconds;
	/* Blocks a second that all threads ask for together; 0 = as many as they can. */
	uint64_t rate;
	double hits; /* share of present keys in a lookup */
	enum slabkv_mode mode;
	bool scatter; /* a lookup's keys lie all over the population, not side by side */
	bool text; /* keys are texts of SKV_BENCH_TEXT characters, not numbers */
	bool checksums; /* finish has one for each block */
	bool independent; /* start: blocks are no chains */
	const char *policy; /* of the group; NULL = the manager's default */
	bool full; /* fill the storage before anything is measured */
	bool keep; /* leave the objects there */
	uint32_t depth;
	uint32_t in_flight; /* calls of a thread that move bytes at a time */
	uint64_t capacity;
	uint64_t slot_bytes;
	uint64_t population; /* blocks that lookups and matches find */
	uint64_t max_blocks;
	uint64_t data_bytes;
	const char *storage; /* of --data */
	long manager_pid;    /* 0 = not reported */
	/* of the run */
	char name[64];	     /* of storage, group and instance */
	uint32_t keys;	     /* of the running operation */
	uint64_t block_bytes; /* of the running data operation */
	atomic_bool stop;
	atomic_ullong next_id; /* the next block number never used */
	atomic_ullong made;    /* blocks that the running operation made or removed */
	uint64_t stock;        /* first block of what `delete` may remove, or `get` read */
	uint64_t stock_end;
	uint64_t put_from, put_to; /* range of keys that `put` has written */
};

/* A thread's call. The operation fills in the second half. */
struct skv_bench_call {
	struct skv_bench *b;
	const struct skv_bench_op *op;
	void *own; /* the API's */
	uint64_t *ids; /* room for the largest --keys */
	uint64_t *sums; /* as many: checksums for finish */
	char (*texts)[SKV_BENCH_TEXT + 1]; /* --text: of each id, and where it is */
	const char **strings;
	struct skv_bench_moves *moves; /* data: those of this thread (bench_data.c) */
	uint64_t turn; /* a number that no other call of the run has */
	uint64_t begin_us;            /* in: now; out: begin of the counted time */
	uint64_t first_us, second_us; /* durations of the two halves, if any */
	uint64_t asked, done; /* blocks that should be there or be made; that were */
	uint64_t bytes, ios;
	struct slabkv_error err;
};

struct skv_bench_op {
	const char *name; /* in the table */
	const char *option; /* for --ops */
	const char *halves[2]; /* names of the two halves, or NULL */
	bool data; /* moves bytes */
	/* Makes the objects that the operation needs, unmeasured; or NULL. */
	int (*prepare)(struct skv_bench *b, struct slabkv_error *err);
	/* Makes a call. Returns SLABKV_OK, or the error that is then in c->err. */
	int (*call)(struct skv_bench_call *c);
	/* Where a call returns before its work is done: counts a call that is still under way.
	 * False: there is none. Or NULL. */
	bool (*rest)(struct skv_bench_call *c, int *status);
};

/* The results of an operation. */
struct skv_bench_outcome {
	uint64_t calls;
	uint64_t refused; /* calls that the manager answered with no room, no time or too many */
	uint64_t wall_us;
	uint64_t cpu_ns; /* of the manager; 0 = unknown */
	uint64_t asked, done, bytes, ios;
	struct skv_histogram latency, half[2];
};

/* ---- bench_ops.c: metadata ------------------------------------------------------------------- */

/* Room for a call's keys. False: no memory; close it all the same. */
bool skv_bench_call_open(struct skv_bench_call *c, struct skv_bench *b, uint32_t keys);
void skv_bench_call_close(struct skv_bench_call *c);

extern const struct skv_bench_api skv_bench_native;

/* Adds the operation of b->api with this name to b->ops. False when there is none, or no room. */
bool skv_bench_op_add(struct skv_bench *b, const char *option);
/* Fills c->ids with b->keys blocks for a lookup; returns the number of present ones. */
uint32_t skv_bench_name_hits(struct skv_bench_call *c);
/* Fills c->ids with n new block numbers. */
void skv_bench_name_fresh(struct skv_bench_call *c, uint32_t n);

/* Storage of type null (or, with --data, an existing one), group, instance, the blocks that lookups
 * find; all of it is removed again by _remove. */
int skv_bench_prepare(struct skv_bench *b, struct slabkv_error *err);
void skv_bench_remove(struct skv_bench *b);

/* ---- bench_data.c: bytes --------------------------------------------------------------------- */

extern const struct skv_bench_op skv_bench_put, skv_bench_get;

/* Instance for blocks of b->block_bytes. */
int skv_bench_data_prepare(struct skv_bench *b, struct slabkv_error *err);
void skv_bench_data_remove(struct skv_bench *b);
/* Buffers of one thread. False: no memory. */
bool skv_bench_data_open(struct skv_bench_call *c);
void skv_bench_data_close(struct skv_bench_call *c);

/* ---- bench.c, bench_options.c, bench_report.c ------------------------------------------------ */

/* The command, for the calls of `api`. */
int skv_bench(struct skv_cli *cli, const struct skv_bench_api *api, int argc, char **argv);
/* SKV_EXIT_OK, SKV_EXIT_USAGE, or -1 after --help. */
int skv_bench_options(struct skv_bench *b, int argc, char **argv);
void skv_bench_print_head(const struct skv_bench *b);
void skv_bench_print_row(const struct skv_bench *b, const struct skv_bench_op *op,
			 const struct skv_bench_outcome *o);
json_t *skv_bench_row_json(const struct skv_bench *b, const struct skv_bench_op *op,
			   const struct skv_bench_outcome *o);
json_t *skv_bench_json(const struct skv_bench *b, json_t *rows);

#endif
