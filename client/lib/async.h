/*
 * async.h - inside of the asynchronous queue: async.c keeps the operations, async_work.c does them.
 */
#ifndef KVB_CLIENT_ASYNC_H
#define KVB_CLIENT_ASYNC_H

#include <pthread.h>

#include "client.h"

#define KVB_ASYNC_IN_FLIGHT 4096u
#define KVB_ASYNC_THREADS 4u
#define KVB_ASYNC_BATCH 128u
#define KVB_ASYNC_SHARE 16u /* operations are not spread over more threads than this fills */

struct kvb_async_batch;

/* In the queue, in the hands of one worker, or done. Fixed once submitted, but the last four. */
struct kvb_async_op {
	struct kvb_async_batch *batch;
	uint32_t index;
	enum kvblock_op_kind kind;
	enum kvblock_key_form form;
	union kvblock_key_value key; /* strings: in the batch's arena */
	uint64_t hash;               /* of the key */
	const char *instance;
	struct kvblock_buf *bufs; /* [n_bufs] */
	struct kvb_region **pins; /* [n_bufs] */
	uint32_t n_bufs;
	const struct kvb_async_op *after; /* put: the one before in its chain, for comparing only */
	bool has_parent;
	union kvblock_key_value parent;
	uint64_t tag;
	enum kvblock_result result;
	int why;
	struct kvb_async_op *prev, *next; /* async.lock: in the list that it is in */
};

/* What one submit has brought; goes when the last of it has been drained. */
struct kvb_async_batch {
	struct kvb_arena arena;
	uint64_t id;
	uint32_t left; /* async.lock: not drained */
	uint32_t n;
	struct kvb_async_op *ops;
};

struct kvb_async_list {
	struct kvb_async_op *head, *tail;
	uint32_t n;
};

/* One thread, and room for one call. */
struct kvb_async_worker {
	struct kvblock_async *async;
	pthread_t thread;
	struct kvb_async_op **ops; /* [batch] */
	uint32_t n;
	struct kvblock_block *blocks; /* [batch] */
	union kvb_async_keys {
		const char **strings;
		uint64_t *ints;
		struct kvblock_key *wide;
		void *room; /* [batch] of the largest */
	} keys;
};

struct kvblock_async {
	struct kvblock *kv;
	struct kvblock_async *next_of_handle; /* kv->async_lock */
	uint32_t max_in_flight, batch, n_workers; /* fixed */
	struct kvb_async_worker *workers;
	int fd; /* eventfd: 1 while `done` holds something, else 0 */
	struct kvb_mutex lock;
	struct kvb_cond work;     /* something is queued, or no more will be */
	struct kvb_cond stopped;  /* all workers have ended */
	struct kvb_async_list queue, done;
	uint32_t in_flight; /* submitted (or about to be) and not drained */
	uint64_t last_id;
	bool stopping, joined;
};

void kvb_async_append(struct kvb_async_list *l, struct kvb_async_op *op);
void kvb_async_remove(struct kvb_async_list *l, struct kvb_async_op *op);
/* Lets go of the operation's memory and makes its completion known. With the lock. */
void kvb_async_complete_locked(struct kvblock_async *a, struct kvb_async_op *op);

/* Body of a worker thread: until nothing is queued and nothing more will be. */
void *kvb_async_work(void *worker);

#endif
