/*
 * lock.h - the core's lock, and what is called once it is released.
 */
#ifndef SKV_CORE_LOCK_LOCK_H
#define SKV_CORE_LOCK_LOCK_H

#include <skv/core.h>

/* Somebody who is called once the lock is released. */
struct completion {
	struct completion *next;
	struct skv_done done;
	int status;
};

void core_lock(struct skv_core *c);
/* Releases the write lock, then calls what became complete under it. */
void core_unlock(struct skv_core *c);
/* Under the write lock: w->done is called with the status after the unlock. */
void core_complete(struct skv_core *c, struct completion *w, int status);

#endif
