/* lock.c - the core's lock, and completions that run after it is released. */
#include <lock/lock.h>

#include <assert.h>

#include <lock/core.h>

void core_lock(struct skv_core *c) { skv_rwlock_write(&c->lock); }

void core_unlock(struct skv_core *c)
{
	struct completion *w = c->completions, *first = NULL;

	assert(skv_rwlock_write_held(&c->lock));
	if (c->partition)
		c->events->unlocking(c->partition);
	c->completions = NULL;
	while (w) { /* oldest first */
		struct completion *next = w->next;

		w->next = first;
		first = w;
		w = next;
	}
	skv_rwlock_write_unlock(&c->lock);
	while (first) {
		struct completion *next = first->next; /* done may free it */

		first->done.fn(first->done.ctx, first->status);
		first = next;
	}
}

/* Pauses only if the thread holds the lock, which the analysis cannot know. */
void core_let_read(struct skv_core *c, size_t i) SKV_NO_LOCK_CHECK
{
	if (i % READ_PORTION == 0 && skv_rwlock_readers_wait(&c->lock) &&
	    skv_rwlock_write_held(&c->lock))
		skv_rwlock_write_pause(&c->lock);
}

void core_complete(struct skv_core *c, struct completion *w, int status)
{
	assert(skv_rwlock_write_held(&c->lock));
	w->status = status;
	w->next = c->completions;
	c->completions = w;
}
