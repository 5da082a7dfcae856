/*
 * commit.h - group commit: the one thread that appends to the journal.
 */
#ifndef SKV_CORE_JOURNAL_COMMIT_H
#define SKV_CORE_JOURNAL_COMMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <pthread.h>

#include <skv/lock.h>

struct change;
struct skv_core;

/* Syncs behind the committer (sync.c): its own, and others' under the core's lock while no round runs, but for what
 * is named. */
struct behind {
	struct change *head, *tail; /* appended, but their slots may not be reused before a sync covers them; oldest first */
	uint64_t deferred; /* how many were ever put there */
	uint64_t covered;  /* the first so many of all: a sync covers them */
	uint64_t applied;  /* the first so many of all have left it */
	bool dirty;        /* something was appended that no sync that was asked for covers */
	uint64_t dirty_since; /* ms */
	uint64_t upto;     /* what the sync that is asked for will cover */
	/* Protected by commit.lock: */
	bool asked; /* the thread has one to do; the committer takes that back */
	bool done;  /* ... and has done it */
	int status; /* of it */
	bool stop;
	struct skv_cond wake; /* the thread: asked, or stop */
	pthread_t thread;
};

struct commit {
	struct skv_mutex lock;
	struct skv_cond wake; /* the committer: work, a snapshot wanted, or stop */
	struct skv_cond idle; /* others: a round is over */
	struct change *head, *tail;
	uint64_t queued;   /* number of the newest queued */
	uint64_t appended; /* number of the newest durable, or failed */
	bool busy;         /* a round is running: the partition must stay */
	bool stop;
	bool snapshot_wanted;
	bool several; /* the committer's own: the last batch was more than one change */
	struct behind behind;
	pthread_t thread;
};

int commit_init(struct skv_core *c); /* SKV_E_NOMEM */
void commit_destroy(struct skv_core *c);
int commit_start_thread(struct skv_core *c);
void commit_stop_thread(struct skv_core *c);
/* One round: appends what is queued, applies it, begins a wanted snapshot. True if it did anything. */
bool commit_round(struct skv_core *c);
/* Under the write lock: fails everything queued; in-flight work is failed by its round. */
void commit_drain(struct skv_core *c, int status);
/* Waits until no round runs. No lock held. */
void commit_wait_idle(struct skv_core *c);
/* Has the committer begin a snapshot (threads), or begins it here (manual). */
void commit_ask_snapshot(struct skv_core *c);
uint64_t commit_appended(struct skv_core *c);
/* Nothing is queued, on its way, or waits for a sync. */
bool commit_is_done(struct skv_core *c);
/* Until a round is over, so many ms at most. */
void commit_wait_round(struct skv_core *c, uint32_t ms);
/* Until the change of this number is durable; false: it is not going to be. Manual mode does the rounds. */
bool commit_wait_appended(struct skv_core *c, uint64_t number);
/* Under the write lock: the apply step, then its waiters. */
void commit_apply(struct skv_core *c, struct change *ch);
/* Completes those who wait for it; `fill`: with what it has come to. */
void commit_complete(struct skv_core *c, struct change *ch, int status, bool fill);
/* Under the write lock: what is in memory is no longer the truth: everybody is refused until it is loaded again. `batch`
 * (may be NULL) and all that is queued fail. */
void commit_stop_partition(struct skv_core *c, struct change *batch, int status);

#endif
