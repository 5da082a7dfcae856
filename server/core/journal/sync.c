/*
 * sync.c - deferred syncs of records appended without one (NORMAL durability, relaxed changes).
 *
 * An appended record is in the kernel: it survives kill -9 and may be acknowledged. A power loss
 * may still cut the end of the journal, so changes that free slots wait here for a sync: no slot is
 * reused while the disk may still have its previous life. A sync follows SYNC_BEHIND_MS after the
 * first unsynced append, or at once if someone waits for it. Its own thread does it, so that
 * appends and answers continue. An append that syncs covers everything before it.
 *
 * State: commit.behind. Used by the committer only, and by the thread that drops the partition
 * while no round runs.
 */
#include <journal/sync.h>

#include <skv/log.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/partition.h>
#include <journal/change.h>
#include <journal/commit.h>

#define PORTION 512u /* removals applied per hold of the lock */

void sync_is_behind(struct skv_core *c)
{
	struct behind *b = &c->commit->behind;

	if (!b->dirty)
		b->dirty_since = skv_now_ms(c->clock);
	b->dirty = true;
}

void sync_covers_all(struct skv_core *c)
{
	c->commit->behind.covered = c->commit->behind.deferred;
	c->commit->behind.dirty = false;
}

void sync_defer(struct skv_core *c, struct change *ch)
{
	struct behind *b = &c->commit->behind;

	ch->next = NULL;
	if (b->tail)
		b->tail->next = ch;
	else
		b->head = ch;
	b->tail = ch;
	b->deferred++;
}

bool sync_is_due(const struct skv_core *c, bool hurry)
{
	const struct behind *b = &c->commit->behind;

	if (!b->dirty || b->asked)
		return false;
	if ((hurry && b->deferred > b->covered) ||
	    skv_now_ms(c->clock) - b->dirty_since >= SYNC_BEHIND_MS)
		return true;
	for (const struct change *ch = b->head; ch; ch = ch->next)
		if (ch->waiters)
			return true;
	return false;
}

void sync_forget(struct skv_core *c, int status)
{
	struct behind *b = &c->commit->behind;
	struct change *ch;

	/* The committer may be checking for work before it sleeps. */
	skv_mutex_lock(&c->commit->lock);
	ch = b->head;
	b->head = b->tail = NULL;
	b->covered = b->applied = b->deferred;
	b->dirty = false;
	skv_mutex_unlock(&c->commit->lock);
	while (ch) {
		struct change *next = ch->next;

		if (c->partition && ch->ops->apply) /* an appended change is part of the state */
			ch->ops->apply(c->partition, ch);
		commit_complete(c, ch, status, false);
		change_destroy(ch);
		ch = next;
	}
}

void sync_apply(struct skv_core *c, bool all)
{
	struct behind *b = &c->commit->behind;
	size_t blocks = 0;

	if (b->applied == b->covered)
		return;
	core_lock(c);
	while (b->applied < b->covered && c->partition && (all || blocks < PORTION)) {
		struct change *ch = b->head;

		if (blocks && skv_rwlock_readers_wait(&c->lock)) {
			core_unlock(c);
			core_lock(c);
		}

		b->head = ch->next;
		if (!ch->next)
			b->tail = NULL;
		b->applied++;
		blocks += 1 + ch->blocks;
		commit_apply(c, ch);
	}
	if (c->partition) {
		room_note(c->partition, false);
		c->events->volume_freed(c->partition);
	}
	core_unlock(c);
}

/* ---- syncs ----------------------------------------------------------------------------------- */

static int sync_store(struct skv_core *c)
{
	struct skv_error err = { 0 };
	int rc = skv_store_sync(c->store, 0, &err);

	if (rc != SKV_OK)
		skv_log(SKV_LOG_ERROR, "core", "sync of the metadata store failed: %s",
			err.message);
	return rc;
}

/* After a failed sync the disk's state is unknown, and the next sync may not report it. */
static bool ended(struct skv_core *c, int status, uint64_t upto)
{
	struct behind *b = &c->commit->behind;

	core_lock(c);
	if (status == SKV_OK) {
		if (b->covered < upto) /* else a later one was faster, or the list was dropped */
			b->covered = upto;
		if (c->partition && c->partition->fence == b->end.epoch &&
		    c->partition->durable.number < b->end.number)
			c->partition->durable = b->end;
		core_unlock(c);
		return true;
	}
	if (c->partition)
		commit_stop_partition(c, NULL, SKV_E_UNKNOWN_OUTCOME);
	sync_forget(c, SKV_E_UNKNOWN_OUTCOME);
	core_unlock(c);
	return false;
}

bool sync_now(struct skv_core *c)
{
	c->commit->behind.dirty = false;
	c->commit->behind.end = c->partition ? c->partition->end : (struct journal_end){ 0 };
	return ended(c, sync_store(c), c->commit->behind.deferred);
}

bool sync_ask(struct skv_core *c)
{
	struct behind *b = &c->commit->behind;

	if (c->o.manual)
		return sync_now(c);
	skv_mutex_lock(&c->commit->lock);
	b->dirty = false;
	b->upto = b->deferred;
	b->end = c->partition ? c->partition->end : (struct journal_end){ 0 };
	b->asked = true;
	b->done = false;
	skv_cond_signal(&b->wake);
	skv_mutex_unlock(&c->commit->lock);
	return true;
}

bool sync_collect(struct skv_core *c)
{
	struct behind *b = &c->commit->behind;
	int status;
	bool done;

	skv_mutex_lock(&c->commit->lock);
	done = b->done;
	status = b->status;
	if (done)
		b->asked = b->done = false;
	skv_mutex_unlock(&c->commit->lock);
	return done && ended(c, status, b->upto);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *syncer(void *arg)
{
	struct skv_core *c = arg;
	struct behind *b = &c->commit->behind;

	core_log(c);
	skv_mutex_lock(&c->commit->lock);
	while (!b->stop) {
		int rc;

		if (!b->asked || b->done) {
			skv_cond_wait(&b->wake, &c->commit->lock);
			continue;
		}
		skv_mutex_unlock(&c->commit->lock);
		rc = sync_store(c);
		skv_mutex_lock(&c->commit->lock);
		b->status = rc;
		b->done = true;
		skv_cond_signal(&c->commit->wake);
	}
	skv_mutex_unlock(&c->commit->lock);
	return NULL;
}

int sync_start_thread(struct skv_core *c)
{
	return pthread_create(&c->commit->behind.thread, NULL, syncer, c) == 0 ? SKV_OK
									       : SKV_E_NOMEM;
}

void sync_stop_thread(struct skv_core *c)
{
	skv_mutex_lock(&c->commit->lock);
	c->commit->behind.stop = true;
	skv_cond_signal(&c->commit->behind.wake);
	skv_mutex_unlock(&c->commit->lock);
	pthread_join(c->commit->behind.thread, NULL);
}
