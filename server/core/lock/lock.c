/*
 * lock.c - the core's lock, and what is called once it is released.
 */
#include "internal.h"

void core_lock(struct skv_core *c) { skv_rwlock_write(&c->lock); }

void core_unlock(struct skv_core *c)
{
	struct completion *w = c->completions, *first = NULL;

	c->completions = NULL;
	while (w) { /* oldest first */
		struct completion *next = w->next;

		w->next = first;
		first = w;
		w = next;
	}
	skv_rwlock_write_unlock(&c->lock);
	while (first) {
		struct completion *next = first->next; /* done may release its memory */

		first->done.fn(first->done.ctx, first->status);
		first = next;
	}
}

void core_complete(struct skv_core *c, struct completion *w, int status)
{
	w->status = status;
	w->next = c->completions;
	c->completions = w;
}
