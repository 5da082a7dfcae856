/*
 * sqlite_journal.c - append and sync: the committer's path of the SQLite store.
 *
 * Owns the append connection and the sync connection. An append is one transaction: check the
 * fence, check that seq follows, insert one row. A row's id is partition * 2^47 + seq, so that the
 * newest row of a partition is one step in one tree, and appends touch its right edge only. `total`
 * counts the bytes ever appended; the journal's size is a difference of two of them, never a scan.
 *
 * Any thread; appends go one at a time. Sync has a connection of its own and takes no part in the
 * write turn: it neither waits for an append nor holds one up.
 */
#include <assert.h>

#include <skv/hash.h>

#include "sqlite_store.h"

#define SEQ_BITS 47

static_assert(SKV_STORE_SEQ_MAX == (1ull << SEQ_BITS) - 1, "seq fills the low bits of a row's id");
static_assert(SKV_STORE_PARTITION_MAX == (1u << (63 - SEQ_BITS)) - 1,
	      "partition fills the high bits");

int64_t journal_id(uint32_t partition, uint64_t seq)
{
	assert(partition <= SKV_STORE_PARTITION_MAX);
	return (int64_t)((uint64_t)partition << SEQ_BITS | seq);
}

uint64_t journal_seq(int64_t id) { return (uint64_t)id & SKV_STORE_SEQ_MAX; }

/* Little-endian on every machine: the sums are a durable format. */
static uint64_t sum_of(const uint64_t *fields, size_t n)
{
	uint8_t bytes[5 * 8];

	assert(n * 8 <= sizeof bytes);
	for (size_t i = 0; i < n * 8; i++)
		bytes[i] = (uint8_t)(fields[i / 8] >> (i % 8 * 8));
	return skv_checksum(bytes, n * 8);
}

uint64_t journal_sum(int64_t id, uint64_t total, const void *bytes, size_t n)
{
	return sum_of((uint64_t[]){ (uint64_t)id, total, n, skv_checksum(bytes, n) }, 4);
}

uint64_t slice_sum(uint32_t partition, uint64_t checkpoint, uint32_t number, const void *bytes,
		   size_t n)
{
	return sum_of((uint64_t[]){ partition, checkpoint, number, n, skv_checksum(bytes, n) }, 5);
}

int read_tail(struct db *d, uint32_t partition, const struct head *h, struct tail *out,
	      struct skv_error *err)
{
	sqlite3_stmt *st = db_stmt(d, SQL_TAIL);
	int code, rc = SKV_OK;

	if (!st)
		return db_fail(d, err, "journal");
	sqlite3_bind_int64(st, 1, journal_id(partition, h->upto_seq + 1));
	sqlite3_bind_int64(st, 2, journal_id(partition, SKV_STORE_SEQ_MAX));
	code = sqlite3_step(st);
	if (code == SQLITE_ROW) {
		out->seq = journal_seq(sqlite3_column_int64(st, 0));
		out->total = (uint64_t)sqlite3_column_int64(st, 1);
	} else if (code == SQLITE_DONE) {
		*out = (struct tail){ h->upto_seq, h->upto_total };
	} else {
		rc = db_fail(d, err, "journal");
	}
	sqlite3_reset(st);
	return rc;
}

struct batch {
	uint32_t partition;
	uint64_t fence;
	uint64_t seq;
	const void *bytes;
	size_t n;
	bool later; /* need not be synced */
};

/* Inside a transaction: may this batch be next? *total gets the bytes up to and with it. */
static int check_batch(struct db *d, const struct batch *b, uint64_t *total, struct skv_error *err)
{
	struct head h;
	struct tail t;
	int rc = check_fence(d, b->partition, b->fence, err);

	if (rc == SKV_OK)
		rc = read_head(d, b->partition, &h, err);
	if (rc == SKV_OK)
		rc = read_tail(d, b->partition, &h, &t, err);
	if (rc != SKV_OK)
		return rc;
	if (b->seq != t.seq + 1)
		return skv_fail(err, SKV_E_CONFLICT, "seq",
				"the newest record is %llu, not the one before %llu",
				(unsigned long long)t.seq, (unsigned long long)b->seq);
	*total = t.total + b->n;
	return SKV_OK;
}

static int insert_batch(struct db *d, const struct batch *b, uint64_t total, struct skv_error *err)
{
	int64_t id;
	sqlite3_stmt *st = db_stmt(d, SQL_APPEND);

	ASSERT_IN_TX(d);
	assert(b->seq > 0 && b->seq <= SKV_STORE_SEQ_MAX);
	id = journal_id(b->partition, b->seq);

	if (!st)
		return db_fail(d, err, "journal");
	sqlite3_bind_int64(st, 1, id);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)total);
	sqlite3_bind_int64(st, 3, (sqlite3_int64)journal_sum(id, total, b->bytes, b->n));
	sqlite3_bind_blob64(st, 4, b->bytes, b->n, SQLITE_STATIC);
	return db_done(st) == SQLITE_DONE ? SKV_OK : db_fail(d, err, "journal");
}

static int append_once(struct sqlite_store *s, const struct batch *b, struct skv_error *err)
{
	struct db *d = &s->append;
	uint64_t total = 0;
	int rc = tx_begin_later(d, b->later, err);

	if (rc != SKV_OK)
		return rc;
	rc = check_batch(d, b, &total, err);
	if (rc == SKV_OK)
		rc = insert_batch(d, b, total, err);
	return tx_end(d, rc, err);
}

int sqlite_append(void *self, uint32_t partition, uint64_t fence, uint64_t seq, const void *bytes,
		  size_t n, unsigned flags, struct skv_error *err)
{
	struct sqlite_store *s = self;
	const struct batch b = { partition, fence, seq, bytes, n, (flags & SKV_APPEND_LATER) != 0 };
	bool synced = s->durability == SKV_DURABILITY_FULL && !b.later;
	int rc;

	if (b.later)
		atomic_store(&s->later, true);

	if ((flags & SKV_APPEND_URGENT) == 0) {
		housekeeping_pace(&s->main);
		if (reserve_only(s)) {
			housekeeping_kick(s);
			return skv_fail(err, SKV_E_STORE_FULL, NULL,
					"the disk is full: what is left is for deletes");
		}
	}
	rc = append_once(s, &b, err);
	if (rc == SKV_OK && !synced)
		atomic_fetch_add_explicit(&s->main.unsynced, n, memory_order_relaxed);
	if (rc != SKV_E_STORE_FULL)
		return rc;
	housekeeping_kick(s); /* a checkpoint of the log or deleted rows may make room */
	if ((flags & SKV_APPEND_URGENT) == 0 || !reserve_release(s))
		return rc;
	skv_error_clear(err);
	return append_once(s, &b, err);
}

/* SQLite exposes its handle of the log, so this goes through the VFS like SQLite's own syncs.
 * Frames that a checkpoint has meanwhile moved into the database file were synced by it on both
 * sides. */
static int sync_log(struct db *d, struct skv_error *err)
{
	sqlite3_file *log = NULL;
	int code = sqlite3_file_control(d->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);

	if (code != SQLITE_OK || !log || !log->pMethods)
		return skv_fail(err, SKV_E_STORE_IO, NULL, "the database's log is not open (%d)",
				code);
	code = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
	if (code != SQLITE_OK)
		return skv_fail(err, SKV_E_STORE_IO, NULL,
				"the database's log cannot be synced (%d)", code);
	return SKV_OK;
}

int sqlite_sync(void *self, uint32_t partition, struct skv_error *err)
{
	struct sqlite_store *s = self;
	int rc;

	(void)partition; /* a single file holds all partitions */
	if (s->in_memory || (s->durability == SKV_DURABILITY_FULL && !atomic_load(&s->later)))
		return SKV_OK;
	skv_mutex_lock(&s->sync.lock);
	if (atomic_load(&s->sync_lost)) {
		rc = skv_fail(err, SKV_E_STORE_IO, NULL,
			      "an earlier sync of the database failed, so its last changes "
			      "may be lost: restart the manager");
	} else {
		atomic_store_explicit(&s->main.unsynced, 0, memory_order_relaxed);
		rc = sync_log(&s->sync, err);
		if (rc != SKV_OK)
			atomic_store(&s->sync_lost, true);
	}
	skv_mutex_unlock(&s->sync.lock);
	return rc;
}
