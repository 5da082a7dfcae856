/*
 * memory_journal.c - journal and checkpoints of the memory store.
 *
 * Owns nothing of its own; works on the partitions of memory_store.c under that store's lock. Bytes
 * are immutable and counted, so load takes references under the lock and delivers without it: a
 * sink may call the store, and an append meanwhile is simply not part of the delivery.
 *
 * Any thread. Never waits.
 */
#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include "memory_internal.h"

static int no_memory(struct skv_error *err)
{
	return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

static uint64_t last_seq(const struct part *p) { return p->base_seq + p->journal.n; }

static int append_locked(struct part *p, uint64_t seq, struct blob *b, struct skv_error *err)
{
	if (seq != last_seq(p) + 1)
		return skv_fail(err, SKV_E_CONFLICT, "seq",
				"the newest record is %llu, not the one before %llu",
				(unsigned long long)last_seq(p), (unsigned long long)seq);
	if (skv_grow((void **)&p->journal.at, &p->journal.cap, p->journal.n + 1,
		     sizeof p->journal.at[0]) != SKV_OK)
		return no_memory(err);
	p->journal.at[p->journal.n++] = blob_ref(b);
	p->journal_bytes += b->n;
	return SKV_OK;
}

int memory_append(void *self, uint32_t partition, uint64_t fence, uint64_t seq, const void *bytes,
		  size_t n, unsigned flags, struct skv_error *err)
{
	struct memory *m = ((struct handle *)self)->memory;
	struct blob *b = blob_make(bytes, n);
	struct part *p;
	int rc;

	(void)flags;
	if (!b)
		return no_memory(err);
	skv_mutex_lock(&m->lock);
	rc = part_fenced_locked(m, partition, fence, &p, err);
	if (rc == SKV_OK)
		rc = append_locked(p, seq, b, err);
	skv_mutex_unlock(&m->lock);
	blob_unref(b);
	return rc;
}

int memory_checkpoint_begin(void *self, uint32_t partition, uint64_t fence, uint64_t *id,
			    struct skv_error *err)
{
	struct memory *m = ((struct handle *)self)->memory;
	struct part *p;
	int rc;

	skv_mutex_lock(&m->lock);
	rc = part_fenced_locked(m, partition, fence, &p, err);
	if (rc == SKV_OK) {
		blobs_clear(&p->draft);
		*id = p->building = ++p->last_id;
	}
	skv_mutex_unlock(&m->lock);
	return rc;
}

static int building_locked(struct memory *m, uint32_t partition, uint64_t fence, uint64_t id,
			   struct part **p, struct skv_error *err)
{
	int rc = part_fenced_locked(m, partition, fence, p, err);

	if (rc == SKV_OK && (id == 0 || (*p)->building != id))
		rc = skv_fail(err, SKV_E_CONFLICT, "id",
			      "checkpoint %llu is not the one begun last", (unsigned long long)id);
	return rc;
}

static int set_slice_locked(struct blobs *draft, uint32_t number, struct blob *b,
			    struct skv_error *err)
{
	if (skv_grow((void **)&draft->at, &draft->cap, (size_t)number + 1, sizeof draft->at[0]) !=
	    SKV_OK)
		return no_memory(err);
	while (draft->n <= number)
		draft->at[draft->n++] = NULL;
	assert(number < draft->n && draft->n <= draft->cap);
	blob_unref(draft->at[number]);
	draft->at[number] = blob_ref(b);
	return SKV_OK;
}

int memory_checkpoint_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			    uint32_t number, const void *bytes, size_t n, struct skv_error *err)
{
	struct memory *m = ((struct handle *)self)->memory;
	struct blob *b = blob_make(bytes, n);
	struct part *p;
	int rc;

	if (!b)
		return no_memory(err);
	skv_mutex_lock(&m->lock);
	rc = building_locked(m, partition, fence, id, &p, err);
	if (rc == SKV_OK)
		rc = set_slice_locked(&p->draft, number, b, err);
	skv_mutex_unlock(&m->lock);
	blob_unref(b);
	return rc;
}

static int check_draft(const struct part *p, uint32_t slices, uint64_t upto_seq,
		       struct skv_error *err)
{
	for (uint32_t i = 0; i < slices; i++)
		if (i >= p->draft.n || !p->draft.at[i])
			return skv_fail(err, SKV_E_CONFLICT, "slices", "slice %u of %u is missing",
					i, slices);
	if (upto_seq < p->base_seq || upto_seq > last_seq(p))
		return skv_fail(err, SKV_E_CONFLICT, "upto_seq",
				"the journal does not cover %llu to %llu",
				(unsigned long long)p->base_seq, (unsigned long long)upto_seq);
	return SKV_OK;
}

static void truncate_journal(struct part *p, uint64_t upto_seq)
{
	size_t gone;

	assert(upto_seq >= p->base_seq && upto_seq <= last_seq(p));
	gone = (size_t)(upto_seq - p->base_seq);
	for (size_t i = 0; i < gone; i++) {
		assert(p->journal_bytes >= p->journal.at[i]->n);
		p->journal_bytes -= p->journal.at[i]->n;
		blob_unref(p->journal.at[i]);
	}
	p->journal.n -= gone;
	if (gone > 0)
		memmove(p->journal.at, p->journal.at + gone,
			p->journal.n * sizeof p->journal.at[0]);
	p->base_seq = upto_seq;
	assert(p->journal.n > 0 || p->journal_bytes == 0);
}

int memory_checkpoint_commit(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			     uint32_t slices, uint64_t upto_seq, struct skv_error *err)
{
	struct memory *m = ((struct handle *)self)->memory;
	struct part *p;
	int rc;

	skv_mutex_lock(&m->lock);
	rc = building_locked(m, partition, fence, id, &p, err);
	if (rc == SKV_OK)
		rc = check_draft(p, slices, upto_seq, err);
	if (rc == SKV_OK) {
		blobs_clear(&p->slices);
		while (p->draft.n > slices)
			blob_unref(p->draft.at[--p->draft.n]);
		assert(p->draft.n == slices);
		p->slices = p->draft;
		p->draft = (struct blobs){ 0 };
		p->building = 0;
		truncate_journal(p, upto_seq);
	}
	skv_mutex_unlock(&m->lock);
	return rc;
}

int memory_checkpoint_abort(void *self, uint32_t partition, uint64_t id)
{
	struct memory *m = ((struct handle *)self)->memory;
	struct part *p;

	skv_mutex_lock(&m->lock);
	p = part_find_locked(m, partition);
	if (p && id != 0 && p->building == id) {
		p->building = 0;
		blobs_clear(&p->draft);
	}
	skv_mutex_unlock(&m->lock);
	return p ? SKV_OK : SKV_E_NOMEM;
}

/* ---- load ------------------------------------------------------------------------------------ */

/* Copies the blobs from the first-th on. */
static bool copy_refs(const struct blobs *from, size_t first, struct blobs *to)
{
	if (skv_grow((void **)&to->at, &to->cap, from->n, sizeof to->at[0]) != SKV_OK)
		return false;
	assert(to->n == 0 && first <= from->n);
	for (size_t i = first; i < from->n; i++)
		to->at[to->n++] = blob_ref(from->at[i]);
	return true;
}

static int deliver(const struct blobs *slices, const struct blobs *journal, uint64_t base_seq,
		   const struct skv_load_sink *sink)
{
	int rc = SKV_OK;

	for (size_t i = 0; rc == SKV_OK && i < slices->n; i++)
		rc = sink->slice(sink->ctx, (uint32_t)i, slices->at[i]->bytes, slices->at[i]->n);
	for (size_t i = 0; rc == SKV_OK && i < journal->n; i++)
		rc = sink->record(sink->ctx, base_seq + 1 + i, journal->at[i]->bytes,
				  journal->at[i]->n);
	return rc;
}

int memory_load(void *self, uint32_t partition, uint64_t *base_seq,
		const struct skv_load_sink *sink, struct skv_error *err)
{
	struct memory *m = ((struct handle *)self)->memory;
	struct blobs slices = { 0 }, journal = { 0 };
	uint64_t base = 0;
	struct part *p;
	bool good;
	int rc;

	skv_mutex_lock(&m->lock);
	p = part_find_locked(m, partition);
	good = p && copy_refs(&p->slices, 0, &slices) && copy_refs(&p->journal, 0, &journal);
	if (p)
		base = p->base_seq;
	skv_mutex_unlock(&m->lock);
	if (good) {
		*base_seq = base;
		rc = deliver(&slices, &journal, base, sink);
	} else {
		rc = no_memory(err);
	}
	blobs_clear(&slices);
	blobs_clear(&journal);
	return rc;
}

/* Under the lock: is what comes after *at still there? */
static int look_locked(const struct part *p, struct skv_position *at, struct skv_error *err)
{
	if (at->known && (at->seq < p->base_seq || at->seq > last_seq(p)))
		return skv_fail(err, SKV_E_CONFLICT, "seq", "record %llu is gone",
				(unsigned long long)at->seq + 1);
	at->newest = last_seq(p);
	at->base = p->base_seq;
	return SKV_OK;
}

int memory_follow(void *self, uint32_t partition, struct skv_position *at,
		  const struct skv_load_sink *sink, struct skv_error *err)
{
	struct memory *m = ((struct handle *)self)->memory;
	struct blobs slices = { 0 }, journal = { 0 };
	int rc = SKV_OK;
	struct part *p;

	skv_mutex_lock(&m->lock);
	p = part_find_locked(m, partition);
	if (!p)
		rc = no_memory(err);
	if (rc == SKV_OK)
		rc = look_locked(p, at, err);
	if (rc == SKV_OK &&
	    (!copy_refs(&p->journal, at->known ? at->seq - at->base : 0, &journal) ||
	     (!at->known && !copy_refs(&p->slices, 0, &slices))))
		rc = no_memory(err);
	skv_mutex_unlock(&m->lock);
	if (rc == SKV_OK && !at->known) {
		rc = deliver(&slices, &(struct blobs){ 0 }, 0, sink);
		at->known = rc == SKV_OK;
		at->seq = at->known ? at->base : 0;
	}
	for (size_t i = 0; rc == SKV_OK && i < journal.n; i++) {
		rc = sink->record(sink->ctx, at->seq + 1, journal.at[i]->bytes, journal.at[i]->n);
		at->seq += rc == SKV_OK;
	}
	blobs_clear(&slices);
	blobs_clear(&journal);
	return rc;
}

int memory_stats(void *self, uint32_t partition, struct skv_store_stats *out, struct skv_error *err)
{
	struct memory *m = ((struct handle *)self)->memory;
	const struct part *p;

	skv_mutex_lock(&m->lock);
	p = part_find_locked(m, partition);
	if (p)
		*out = (struct skv_store_stats){ p->journal_bytes, last_seq(p), UINT64_MAX };
	skv_mutex_unlock(&m->lock);
	return p ? SKV_OK : no_memory(err);
}
