/*
 * commit.c - group commit: the one thread that appends to the journal.
 *
 * Changes (change.h) are queued under the partition's write lock, so journal order is memory order.
 * A round takes everything queued, appends it as one batch, applies each change under the write
 * lock and then completes its waiters. If the append definitely failed, the prepared changes are
 * undone, newest first, including those queued since, because later ones may build on earlier ones.
 * If its outcome is unknown, or another owner has taken over, memory cannot be trusted: the
 * partition is stopped and reloaded (owner.c).
 *
 * A batch is appended without a sync in NORMAL durability, and in FULL if all of it is relaxed.
 * Changes of such a batch that free slots are applied only after a sync (sync.c).
 *
 * Locks: the partition's write lock, then commit.lock; neither is held while appending.
 */
#include <journal/commit.h>

#include <assert.h>
#include <sched.h>
#include <string.h>

#include <skv/json_out.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/turn.h>
#include <model/partition.h>
#include <journal/change.h>
#include <journal/end.h>
#include <journal/record.h>
#include <journal/snapshot.h>
#include <journal/sync.h>

#define BATCH_BYTES ((size_t)8 << 20)
#define LINK_BYTES 64u /* of a batch's link, at most */
#define STALL_MS 1000u /* an append this long is counted as a stall */
#define STORE_FULL_MS 1000u /* how long starts are refused before one may try again */

struct change *change_make(const struct change_ops *ops)
{
	struct change *ch = skv_calloc(1, ops->size);

	assert(ops->size >= sizeof *ch);
	if (ch)
		ch->ops = ops;
	return ch;
}

void change_destroy(struct change *ch)
{
	if (!ch)
		return;
	if (ch->ops->destroy)
		ch->ops->destroy(ch);
	skv_buf_destroy(&ch->rec);
	skv_free(ch);
}

bool change_frees_slots(const struct change *ch)
{
	(void)ch;
	return true;
}

void change_wait(struct change *ch, struct waiter *w)
{
	w->next = ch->waiters;
	ch->waiters = w;
}

void change_queue(struct partition *p, struct change *ch)
{
	struct commit *q = p->core->commit;

	ASSERT_EXCLUSIVE(p);
	skv_mutex_lock(&q->lock);
	ch->number = ++q->queued;
	ch->next = NULL;
	if (q->tail)
		q->tail->next = ch;
	else
		q->head = ch;
	q->tail = ch;
	skv_cond_signal(&q->wake);
	skv_mutex_unlock(&q->lock);
}

uint64_t commit_appended(struct skv_core *c)
{
	uint64_t n;

	skv_mutex_lock(&c->commit->lock);
	n = c->commit->appended;
	skv_mutex_unlock(&c->commit->lock);
	return n;
}

/* ---- apply steps ----------------------------------------------------------------------------- */

void commit_complete(struct skv_core *c, struct change *ch, int status, bool fill)
{
	while (ch->waiters) {
		struct waiter *w = ch->waiters;
		int rc = status;

		ch->waiters = w->next;
		if (fill && w->fill)
			rc = w->fill(w, c->partition, ch, status);
		if (rc == SKV_PENDING)
			continue;
		if (rc != SKV_OK && w->err && w->err->status == SKV_OK)
			skv_fail(w->err, rc, NULL, "%s", skv_status_text(rc));
		core_complete(c, &w->completion, rc);
	}
}

void commit_apply(struct skv_core *c, struct change *ch)
{
	if (ch->ops->apply)
		ch->ops->apply(c->partition, ch);
	commit_complete(c, ch, SKV_OK, true);
	change_destroy(ch);
}

static void undo(struct skv_core *c, struct change *ch, int status)
{
	if (ch->ops->undo)
		ch->ops->undo(c->partition, ch);
	commit_complete(c, ch, status, true);
	change_destroy(ch);
}

static bool frees_slots(const struct change *ch)
{
	return ch->ops->frees_slots && ch->ops->frees_slots(ch);
}

/* ---- failure --------------------------------------------------------------------------------- */

static struct change *reverse(struct change *ch)
{
	struct change *out = NULL;

	while (ch) {
		struct change *next = ch->next;

		ch->next = out;
		out = ch;
		ch = next;
	}
	return out;
}

static struct change *join(struct change *a, struct change *b)
{
	struct change *end = a;

	if (!a)
		return b;
	while (end->next)
		end = end->next;
	end->next = b;
	return a;
}

/* Takes everything queued since the batch; under the write lock nothing can be added. */
static struct change *take_queue(struct skv_core *c)
{
	struct change *ch;

	skv_mutex_lock(&c->commit->lock);
	ch = c->commit->head;
	c->commit->head = c->commit->tail = NULL;
	skv_mutex_unlock(&c->commit->lock);
	return ch;
}

static void put_back(struct skv_core *c, struct change *ch)
{
	struct commit *q = c->commit;

	skv_mutex_lock(&q->lock);
	q->head = join(ch, q->head);
	for (q->tail = q->head; q->tail && q->tail->next;)
		q->tail = q->tail->next;
	skv_mutex_unlock(&q->lock);
}

/* Undoes, newest first, the changes that allocate (or all); returns the others in their old
 * order. */
static struct change *undo_some(struct skv_core *c, struct change *all, bool only_more, int status)
{
	struct change *keep = NULL;

	for (struct change *ch = reverse(all), *next; ch; ch = next) {
		next = ch->next;
		if (only_more && !ch->ops->makes_more) {
			ch->next = keep;
			keep = ch;
		} else {
			undo(c, ch, status);
		}
	}
	return keep;
}

static bool any_makes_more(const struct change *ch)
{
	while (ch && !ch->ops->makes_more)
		ch = ch->next;
	return ch != NULL;
}

/* The append failed. If the disk is full, changes that allocate are refused; those that free or end
 * something use the store's reserve. */
static void append_failed(struct skv_core *c, struct change *batch, int status, bool urgent)
{
	struct partition *p = c->partition;
	bool full = status == SKV_E_STORE_FULL;
	struct change *all = join(batch, take_queue(c));
	bool more = any_makes_more(all);

	COUNT(c, commit_failures, 1);
	snapshot_abort(p);
	if (full)
		p->store_full_until = skv_now_ms(c->clock) + STORE_FULL_MS;
	skv_log(SKV_LOG_WARN, "core", "append to the metadata store failed: %s",
		skv_status_text(status));
	if (full && (more || !urgent)) {
		put_back(c, undo_some(c, all, true, status));
		return;
	}
	undo_some(c, all, false, status);
}

/* Undoes the changes, newest first, and completes their waiters with `status`. */
static void give_up(struct skv_core *c, struct change *all, int status)
{
	for (struct change *ch = reverse(all), *next; ch; ch = next) {
		next = ch->next;
		if (ch->ops->undo)
			ch->ops->undo(c->partition, ch);
		commit_complete(c, ch, status, false);
		change_destroy(ch);
	}
}

/* Everything before the first queued change has ended; what was put back has not. Under the write
 * lock: nothing is being queued. */
static void note_ended(struct skv_core *c)
{
	struct commit *q = c->commit;
	uint64_t ended;

	skv_mutex_lock(&q->lock);
	ended = q->head ? q->head->number - 1 : q->queued;
	if (q->appended < ended)
		q->appended = ended;
	skv_mutex_unlock(&q->lock);
}

void commit_drain(struct skv_core *c, int status)
{
	c->events->fail_waiting(c->partition, status, skv_status_text(status));
	give_up(c, take_queue(c), status);
	note_ended(c); /* a later snapshot does not wait for them */
}

void commit_stop_partition(struct skv_core *c, struct change *batch, int status)
{
	bool fenced = status == SKV_E_FENCED && owner_lost(c, c->partition->fence);

	snapshot_abort(c->partition);
	if (!fenced)
		owner_ask_reload(c, c->partition->fence);
	skv_log(SKV_LOG_ERROR, "core", "%s: the partition stops and is loaded again",
		fenced ? "another manager has taken over"
		       : "the outcome of a write to the store is unknown");
	status = fenced ? SKV_E_NOT_OWNER : SKV_E_UNKNOWN_OUTCOME;
	c->events->fail_waiting(c->partition, status, skv_status_text(status));
	give_up(c, join(batch, take_queue(c)), status);
}

/* ---- a round --------------------------------------------------------------------------------- */

/* A batch, and its common properties. */
struct round {
	struct change *batch;
	size_t bytes;
	bool urgent, relaxed;
	struct journal_end end; /* once it is appended */
};

static void take_batch(struct skv_core *c, struct round *r)
{
	struct commit *q = c->commit;
	struct change *last = NULL;

	*r = (struct round){ .batch = q->head, .urgent = true, .relaxed = true };
	for (struct change *ch = q->head;
	     ch && (r->bytes == 0 || r->bytes + ch->rec.len <= BATCH_BYTES); ch = ch->next) {
		r->bytes += ch->rec.len;
		r->urgent &= ch->urgent;
		r->relaxed &= ch->relaxed;
		last = ch;
	}
	if (last) {
		q->head = last->next;
		if (!q->head)
			q->tail = NULL;
		last->next = NULL;
	}
}

/* A lease that has ended does not matter here: the store refuses the batch if another manager has
 * taken over, and nobody else can have written if none has. */
static int append(struct skv_core *c, struct round *r)
{
	const struct partition *p = c->partition;
	const uint64_t begin = skv_now_ms(c->clock);
	struct skv_buf b = { 0 };
	struct skv_error err = { 0 };
	int rc;

	if (!skv_buf_reserve(&b, r->bytes + LINK_BYTES))
		return SKV_E_NOMEM;
	record_link(&b, p, p->end.number + 1);
	for (const struct change *ch = r->batch; ch; ch = ch->next) {
		skv_put_bytes(&b, ch->rec.data, ch->rec.len);
		COUNT(c, commit_records, 1);
	}
	r->bytes = b.len;
	r->end = journal_end_of(p, p->end.number + 1, &b);
	/* Only this thread advances the partition's seq and end, and the partition stays while
	 * commit.busy is set. */
	rc = skv_store_append(
		c->store, 0, p->fence, p->seq + 1, b.data, b.len,
		(r->urgent ? SKV_APPEND_URGENT : 0) | (r->relaxed ? SKV_APPEND_LATER : 0), &err);
	skv_buf_destroy(&b);
	COUNT(c, commit_stalls, skv_now_ms(c->clock) - begin >= STALL_MS);
	if (rc != SKV_OK)
		skv_log(SKV_LOG_WARN, "core", "append: %s", err.message);
	/* Nothing was written; to clients it is the store that fails, not a storage. */
	return rc == SKV_E_UNAVAILABLE ? SKV_E_STORE_IO : rc;
}

static void append_done(struct skv_core *c, const struct round *r) SKV_REQUIRES(c->lock)
{
	bool synced = skv_store_durability(c->store) == SKV_DURABILITY_FULL && !r->relaxed;
	struct change *batch = r->batch;

	COUNT(c, commits, 1);
	journal_appended(c->partition, r->end, r->bytes);
	if (synced)
		journal_is_durable(c->partition);
	c->partition->store_full_until = 0;
	while (batch) {
		struct change *next = batch->next;

		/* The applied batches are complete, so waiting readers and starts can proceed
		 * here. */
		if (batch != r->batch && skv_rwlock_readers_wait(&c->lock)) {
			core_unlock(c);
			core_lock(c);
		}
		/* in journal order */
		if (frees_slots(batch) && (!synced || c->commit->behind.head))
			sync_defer(c, batch);
		else
			commit_apply(c, batch);
		batch = next;
	}
	if (synced)
		sync_covers_all(c);
	else
		sync_is_behind(c);
	c->events->volume_freed(c->partition);
}

static bool append_round(struct skv_core *c)
{
	struct round r;
	uint64_t last = 0;
	int rc;

	/* Callers that arrived together tend to do so again. If they wait for this processor,
	 * yielding puts them into the same append. */
	if (c->commit->several)
		sched_yield();
	skv_mutex_lock(&c->commit->lock);
	take_batch(c, &r);
	skv_mutex_unlock(&c->commit->lock);
	if (!r.batch)
		return false;
	for (const struct change *ch = r.batch; ch; ch = ch->next)
		last = ch->number;
	c->commit->several = last != r.batch->number;
	rc = append(c, &r);
	core_lock(c);
	if (rc == SKV_OK)
		append_done(c, &r);
	else if (rc == SKV_E_STORE_FULL || rc == SKV_E_STORE_IO || rc == SKV_E_NOMEM)
		append_failed(c, r.batch, rc, r.urgent);
	else
		commit_stop_partition(c, r.batch, rc);
	note_ended(c);
	core_unlock(c);
	return true;
}

static void begin_snapshot(struct skv_core *c)
{
	bool synced = !c->commit->behind.head || sync_now(c);

	if (synced)
		sync_apply(c, true); /* memory now matches the journal */
	core_lock(c);
	if (c->partition && synced && owner_ready(c)) {
		uint64_t barrier;

		skv_mutex_lock(&c->commit->lock);
		barrier = c->commit->queued;
		skv_mutex_unlock(&c->commit->lock);
		snapshot_begin(c->partition, barrier);
		checkpoint_begun(c);
	}
	core_unlock(c);
}

bool commit_round(struct skv_core *c)
{
	struct commit *q = c->commit;
	bool did = false, snapshot, hurry = false, low = false, ready;

	skv_mutex_lock(&q->lock);
	q->busy = true;
	snapshot = q->snapshot_wanted;
	skv_mutex_unlock(&q->lock);
	did = sync_collect(c);
	skv_rwlock_read(&c->lock);
	ready = c->partition && owner_ready(c);
	if (ready)
		hurry = c->partition->n_waiting > 0;
	if (ready)
		low = c->partition->room_is_low;
	skv_rwlock_read_unlock(&c->lock);
	if (!ready) {
		core_lock(c);
		if (c->partition)
			commit_drain(c, SKV_E_NOT_READY);
		sync_forget(c, SKV_E_UNKNOWN_OUTCOME);
		core_unlock(c);
	} else {
		did |= append_round(c);
		if (sync_is_due(c, hurry || low))
			did |= sync_ask(c);
		sync_apply(c, hurry || c->o.manual);
		if (snapshot)
			begin_snapshot(c);
	}
	skv_mutex_lock(&q->lock);
	q->busy = false;
	if (snapshot)
		q->snapshot_wanted = false;
	skv_cond_broadcast(&q->idle);
	skv_mutex_unlock(&q->lock);
	return did;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Under commit.lock. */
static void wait_for_work(struct commit *q) SKV_REQUIRES(q->lock)
{
	const struct behind *b = &q->behind;

	if (q->head || q->snapshot_wanted || b->done || b->covered > b->applied)
		return;
	if (b->dirty && !b->asked)
		skv_cond_wait_ms(&q->wake, &q->lock, SYNC_BEHIND_MS);
	else
		skv_cond_wait(&q->wake, &q->lock);
}

static void *committer(void *arg)
{
	struct skv_core *c = arg;
	struct commit *q = c->commit;

	core_log(c);
	skv_mutex_lock(&q->lock);
	while (!q->stop) {
		wait_for_work(q);
		skv_mutex_unlock(&q->lock);
		commit_round(c);
		skv_mutex_lock(&q->lock);
	}
	skv_mutex_unlock(&q->lock);
	return NULL;
}

int commit_init(struct skv_core *c)
{
	c->commit = skv_calloc(1, sizeof *c->commit);
	if (!c->commit)
		return SKV_E_NOMEM;
	skv_mutex_init(&c->commit->lock);
	skv_cond_init(&c->commit->wake);
	skv_cond_init(&c->commit->idle);
	skv_cond_init(&c->commit->behind.wake);
	return SKV_OK;
}

void commit_destroy(struct skv_core *c)
{
	if (!c->commit)
		return;
	sync_forget(c, SKV_E_NOT_READY);
	skv_cond_destroy(&c->commit->behind.wake);
	skv_mutex_destroy(&c->commit->lock);
	skv_cond_destroy(&c->commit->wake);
	skv_cond_destroy(&c->commit->idle);
	skv_free(c->commit);
	c->commit = NULL;
}

int commit_start_thread(struct skv_core *c)
{
	int rc = sync_start_thread(c);

	if (rc == SKV_OK && pthread_create(&c->commit->thread, NULL, committer, c) != 0) {
		sync_stop_thread(c);
		rc = SKV_E_NOMEM;
	}
	return rc;
}

void commit_stop_thread(struct skv_core *c)
{
	skv_mutex_lock(&c->commit->lock);
	c->commit->stop = true;
	skv_cond_signal(&c->commit->wake);
	skv_mutex_unlock(&c->commit->lock);
	pthread_join(c->commit->thread, NULL);
	sync_stop_thread(c);
}

void commit_wait_idle(struct skv_core *c)
{
	skv_mutex_lock(&c->commit->lock);
	while (c->commit->busy)
		skv_cond_wait(&c->commit->idle, &c->commit->lock);
	skv_mutex_unlock(&c->commit->lock);
}

void commit_ask_snapshot(struct skv_core *c)
{
	struct commit *q = c->commit;

	skv_mutex_lock(&q->lock);
	q->snapshot_wanted = true;
	skv_cond_signal(&q->wake);
	while (!c->o.manual && q->snapshot_wanted && !q->stop)
		skv_cond_wait(&q->idle, &q->lock);
	skv_mutex_unlock(&q->lock);
	if (c->o.manual)
		commit_round(c);
}

bool commit_is_done(struct skv_core *c)
{
	const struct commit *q = c->commit;
	bool done;

	skv_mutex_lock(&c->commit->lock);
	done = !q->head && !q->busy && !q->behind.head;
	skv_mutex_unlock(&c->commit->lock);
	return done;
}

void commit_wait_round(struct skv_core *c, uint32_t ms)
{
	skv_mutex_lock(&c->commit->lock);
	skv_cond_wait_ms(&c->commit->idle, &c->commit->lock, ms);
	skv_mutex_unlock(&c->commit->lock);
}

bool commit_wait_appended(struct skv_core *c, uint64_t number)
{
	struct commit *q = c->commit;
	bool appended;

	if (c->o.manual)
		while (commit_appended(c) < number && commit_round(c))
			;
	skv_mutex_lock(&q->lock);
	while (!c->o.manual && q->appended < number && !q->stop && owner_ready(c))
		skv_cond_wait_ms(&q->idle, &q->lock, 100);
	appended = q->appended >= number;
	skv_mutex_unlock(&q->lock);
	return appended;
}
