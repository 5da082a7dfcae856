/*
 * commit.h - group commit: the one thread that appends to the journal.
 */
#ifndef SKV_CORE_JOURNAL_COMMIT_H
#define SKV_CORE_JOURNAL_COMMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <pthread.h>

#include <skv/lock.h>

#include <model/partition.h>

struct change;
struct skv_core;

/* Deferred syncs (sync.c). The committer's own; other threads may use it under the core's lock
 * while no round runs, unless noted. */
struct behind {
	/* Appended, but their slots may not be reused before a sync covers them; oldest first. */
	struct change *head, *tail;
	uint64_t deferred; /* how many were ever put on the list */
	uint64_t covered;  /* of these, the first so many are covered by a sync */
	uint64_t applied;  /* number of these that have left the list */
	bool dirty;        /* something was appended that no requested sync covers */
	uint64_t dirty_since; /* ms */
	uint64_t upto;     /* position that the requested sync will cover, */
	struct journal_end end; /* and the end of the journal then */
	/* Protected by commit.lock: */
	bool asked; /* a sync is requested; cleared by the committer */
	bool done;  /* ... and is done */
	int status; /* of the sync */
	bool stop;
	struct skv_cond wake; /* for the sync thread: requested, or stop */
	pthread_t thread;
};

struct commit {
	struct skv_mutex lock;
	struct skv_cond wake; /* for the committer: work, a snapshot requested, or stop */
	struct skv_cond idle; /* for others: a round is over */
	struct change *head, *tail;
	uint64_t queued;   /* number of the newest queued change */
	uint64_t appended; /* number of the newest durable or failed change */
	bool busy;         /* a round is running: the partition must not be freed */
	bool stop;
	bool snapshot_wanted;
	bool several; /* committer only: the last batch had more than one change */
	struct behind behind;
	pthread_t thread;
};

int commit_init(struct skv_core *c); /* SKV_E_NOMEM */
void commit_destroy(struct skv_core *c);
int commit_start_thread(struct skv_core *c);
void commit_stop_thread(struct skv_core *c);
/* Makes a round: appends queued changes, applies them, begins a requested snapshot. Returns true if
 * there was work. */
bool commit_round(struct skv_core *c);
/* Under the write lock: fails everything queued; a running round fails what it has in flight. */
void commit_drain(struct skv_core *c, int status);
/* Waits until no round runs. No lock held. */
void commit_wait_idle(struct skv_core *c);
/* Has the committer begin a snapshot; in manual mode begins it here. */
void commit_ask_snapshot(struct skv_core *c);
uint64_t commit_appended(struct skv_core *c);
/* Nothing is queued, in flight, or waiting for a sync. */
bool commit_is_done(struct skv_core *c);
/* Waits until a round is over, at most `ms`. */
void commit_wait_round(struct skv_core *c, uint32_t ms);
/* Waits until the change of this number is durable; false: it failed. Manual mode runs the rounds
 * here. */
bool commit_wait_appended(struct skv_core *c, uint64_t number);
/* Under the write lock: the apply step, then its waiters. */
void commit_apply(struct skv_core *c, struct change *ch);
/* Completes its waiters; `fill`: with their results. */
void commit_complete(struct skv_core *c, struct change *ch, int status, bool fill);
/* Under the write lock: memory no longer matches the store. Every call is refused until the
 * partition is reloaded; `batch` (may be NULL) and everything queued fail. */
void commit_stop_partition(struct skv_core *c, struct change *batch, int status);

#endif
