/* lock.h - the core's lock, and completions that run after it is released. */
#ifndef SKV_CORE_LOCK_LOCK_H
#define SKV_CORE_LOCK_LOCK_H

#include <skv/core.h>

#include <lock/core.h>

/* A callback to run after the lock is released. */
struct completion {
	struct completion *next;
	struct skv_done done;
	int status;
};

void core_lock(struct skv_core *c) SKV_ACQUIRES(c->lock);
/* Releases the write lock, then runs the completions queued under it. */
void core_unlock(struct skv_core *c) SKV_RELEASES(c->lock);
/* Called before block i of a long change, in portions of some microseconds: admits waiting lookups,
 * but no writers. Each block must be changed wholly, or not at all; the caller's knowledge stays
 * valid, except for marks of blocks. Without the write lock, as while loading, does nothing. */
#define READ_PORTION 32u
void core_let_read(struct skv_core *c, size_t i);
/* Under the write lock: w->done is called with the status after the unlock. */
void core_complete(struct skv_core *c, struct completion *w, int status);

#endif
