/* replay.h - shared by the files of `slabkv replay`. */
#ifndef SKV_CLI_REPLAY_H
#define SKV_CLI_REPLAY_H

#include <pthread.h>
#include <stdatomic.h>

#include <skv/lock.h>
#include <skv/trace.h>

#include "cli.h"
#include "histogram.h"

/* Sums; each thread has its own, merged at the end. */
struct skv_replay_counts {
	uint64_t requests;
	uint64_t blocks;      /* references in the trace */
	uint64_t prefix_hits; /* leading blocks that lookup named */
	uint64_t exists;      /* present after the first miss */
	uint64_t verified;    /* blocks read of which every byte was right */
	uint64_t read_misses; /* found by lookup, but gone or late when read */
	uint64_t read_errors;
	uint64_t mismatches;
	uint64_t written;
	uint64_t busy;   /* another client was writing them: skipped */
	uint64_t not_admitted; /* by the group's policy */
	uint64_t failed; /* not stored: no space, I/O */
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t ios;
};

/* The hits of a request. */
struct skv_replay_hits {
	uint32_t prefix;
	uint32_t behind; /* blocks found after the first miss */
	uint32_t written;
	bool done;
};

struct skv_replay {
	struct skv_cli *cli;
	struct slabkv *kv;
	struct skv_trace trace;
	/* options */
	const char *instance;
	const char *group;
	const char *storage;
	uint64_t block_bytes;
	uint32_t n_specs;
	uint32_t n_clients;
	uint64_t requests;
	double speed; /* 0 = as fast as possible */
	uint32_t lease_ms; /* of lookups; SLABKV_LEASE_DEFAULT = the manager's */
	const char *hits_path; /* NULL: no file with the hits of each request */
	FILE *hits_file;       /* open since before the first request */
	struct skv_replay_hits *hits; /* [trace.n], one thread each */
	/* progress; any thread */
	atomic_size_t next; /* request to take */
	atomic_size_t done;
	atomic_ullong bytes;
	atomic_bool stop;
	uint64_t begin_us;
	uint64_t wall_us;
	struct skv_mutex lock; /* protects running, error */
	struct skv_cond ended;
	uint32_t running;
	struct slabkv_error error; /* the first one that ended the replay or made a block fail */
	bool fatal;
	/* results, after the threads have ended */
	struct skv_replay_counts sum;
	struct skv_histogram lookup, start, finish;
};

struct skv_replay_worker {
	struct skv_replay *r;
	pthread_t thread;
	struct skv_replay_counts counts;
	struct skv_histogram lookup, start, finish;
	/* room for `window` blocks */
	uint32_t window;
	uint8_t *memory;
	struct slabkv_buf *bufs;     /* [window * n_specs] */
	struct slabkv_block *blocks; /* [window] */
};

#define SKV_REPLAY_MEMORY (256ull << 20) /* of one thread, at least one block */

/* Blocks that a thread handles in one call: the longest request, as far as memory goes. */
uint32_t skv_replay_window(const struct skv_replay *r);
bool skv_replay_worker_init(struct skv_replay_worker *w, struct skv_replay *r);
void skv_replay_worker_free(struct skv_replay_worker *w);
/* Thread function: takes requests until there is none or the replay stops. */
void *skv_replay_work(void *worker);
/* slabkv_options.on_call: sorts durations into the histograms of the calling thread. */
void skv_replay_on_call(void *ctx, const char *op, uint64_t us, int status);

/* Writes the file of hits, in the form of `slabkvd simulate --hits`; requests that did not end are
 * left out. 0 or an exit code. */
int skv_replay_write_hits(struct skv_replay *r);
/* Prints the table or JSON. 0 or an exit code. */
int skv_replay_report(struct skv_replay *r);
/* Prints a progress line on stderr. */
void skv_replay_progress(const struct skv_replay *r);

#endif
