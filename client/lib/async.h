/*
 * async.h - internals of the asynchronous queue: async.c keeps the operations, async_work.c runs
 * them.
 */
#ifndef SKV_CLIENT_ASYNC_H
#define SKV_CLIENT_ASYNC_H

#include <pthread.h>

#include <skv/trace_context.h>

#include "batch.h"
#include "client.h"

#define SKV_ASYNC_IN_FLIGHT 4096u
#define SKV_ASYNC_THREADS 4u
#define SKV_ASYNC_BATCH 128u
#define SKV_ASYNC_SHARE 16u /* operations per thread before another thread is used */

struct skv_async_batch;

/* Queued, with one worker, or done. Fixed once submitted, except the last four members. */
struct skv_async_op {
	struct skv_async_batch *batch;
	uint32_t index;
	enum slabkv_op_kind kind;
	/* A single key, in the batch's arena: a string or 128 bits; puts: with its parent. */
	struct slabkv_keys key;
	uint64_t hash;           /* of the key */
	const char *instance;
	struct slabkv_buf *bufs; /* [n_bufs] */
	struct skv_region **pins; /* [n_bufs] */
	uint32_t n_bufs;
	/* Put: its predecessor in the chain, for comparison only. */
	const struct skv_async_op *after;
	/* A whole batch: then key and bufs are not used, but for pins. */
	const struct slabkv_batch *many;
	uint64_t tag;
	enum slabkv_result result;
	int why;
	struct skv_async_op *prev, *next; /* async.lock: links of its current list */
};

/* The operations of one submit; freed when the last one has been drained. */
struct skv_async_batch {
	struct skv_arena arena;
	char trace[SKV_TRACE_SIZE]; /* of the thread that submitted it */
	uint64_t id;
	uint32_t left; /* async.lock: not drained */
	uint32_t n;
	struct skv_async_op *ops;
};

struct skv_async_list {
	struct skv_async_op *head, *tail;
	uint32_t n;
};

/* A thread, and its buffers for one call. */
struct skv_async_worker {
	struct slabkv_async *async;
	pthread_t thread;
	struct skv_async_op **ops; /* [batch] */
	uint32_t n;
	struct slabkv_block *blocks; /* [batch] */
	union skv_async_keys {
		const char **strings;
		struct slabkv_key *wide;
		void *room; /* [batch] of the largest */
	} keys;
};

struct slabkv_async {
	struct slabkv *kv;
	struct slabkv_async *next_of_handle; /* kv->async_lock */
	uint32_t max_in_flight, batch, n_workers; /* fixed */
	struct skv_async_worker *workers;
	int fd; /* eventfd: 1 while `done` is not empty, else 0 */
	struct skv_mutex lock;
	struct skv_cond work;     /* something is queued, or nothing more will be */
	struct skv_cond stopped;  /* all workers have ended */
	struct skv_async_list queue, done;
	uint32_t in_flight; /* submitted (or about to be) and not drained */
	uint64_t last_id;
	bool stopping, joined;
};

void skv_async_append(struct skv_async_list *l, struct skv_async_op *op);
void skv_async_remove(struct skv_async_list *l, struct skv_async_op *op);
/* Releases the operation's pins and publishes its completion. With the lock. */
void skv_async_complete_locked(struct slabkv_async *a, struct skv_async_op *op)
	SKV_REQUIRES(a->lock);

/* Body of a worker thread: runs until the queue is empty and nothing more will come. */
void *skv_async_work(void *worker);

#endif
