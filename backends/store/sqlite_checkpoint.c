/*
 * sqlite_checkpoint.c - writing checkpoints: begin, slices, commit, abort.
 *
 * Owns the head and the slice connection. `begin` draws an id that was never used before and notes
 * it as the one being built; slices go to the second file, each in a synced transaction of its own;
 * `commit` makes the head row name them and, by that, the journal rows up to upto_seq dead. Only
 * begin, commit and abort write to the main file, a row each.
 *
 * Any thread; a partition's checkpoints come from one writer at a time, a late one is fenced or
 * writes waste. Slices and rows that died are deleted by sqlite_housekeeping.c.
 */
#include "sqlite_store.h"

int read_head(struct db *d, uint32_t partition, struct head *out, struct skv_error *err)
{
	sqlite3_stmt *st;
	int code, rc = SKV_OK;

	ASSERT_IN_READ(d);
	st = db_stmt(d, SQL_HEAD);
	*out = (struct head){ 0 };
	if (!st)
		return db_fail(d, err, "checkpoint");
	sqlite3_bind_int64(st, 1, partition);
	code = sqlite3_step(st);
	if (code == SQLITE_ROW) {
		out->id = (uint64_t)sqlite3_column_int64(st, 0);
		out->slices = (uint32_t)sqlite3_column_int64(st, 1);
		out->upto_seq = (uint64_t)sqlite3_column_int64(st, 2);
		out->upto_total = (uint64_t)sqlite3_column_int64(st, 3);
		out->building = (uint64_t)sqlite3_column_int64(st, 4);
		out->last_id = (uint64_t)sqlite3_column_int64(st, 5);
	} else if (code != SQLITE_DONE) {
		rc = db_fail(d, err, "checkpoint");
	}
	sqlite3_reset(st);
	return rc;
}

/* Runs a statement whose parameters are a partition and an id. */
static int run_with_id(struct db *d, enum sql which, uint32_t partition, uint64_t id,
		       struct skv_error *err)
{
	sqlite3_stmt *st;

	ASSERT_IN_TX(d);
	st = db_stmt(d, which);
	if (!st)
		return db_fail(d, err, "checkpoint");
	sqlite3_bind_int64(st, 1, partition);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)id);
	return db_done(st) == SQLITE_DONE ? SKV_OK : db_fail(d, err, "checkpoint");
}

int sqlite_checkpoint_begin(void *self, uint32_t partition, uint64_t fence, uint64_t *id,
			    struct skv_error *err)
{
	struct sqlite_store *s = self;
	struct head h = { 0 };
	int rc = tx_begin(&s->head, err);

	if (rc != SKV_OK)
		return rc;
	rc = check_fence(&s->head, partition, fence, err);
	if (rc == SKV_OK)
		rc = read_head(&s->head, partition, &h, err);
	if (rc == SKV_OK)
		rc = run_with_id(&s->head, SQL_BUILD, partition, h.last_id + 1, err);
	rc = tx_end(&s->head, rc, err);
	if (rc == SKV_OK)
		*id = h.last_id + 1;
	return rc;
}

/* Inside a transaction or a read of the main file. */
static int check_building(struct db *d, uint32_t partition, uint64_t fence, uint64_t id,
			  struct head *h, struct skv_error *err)
{
	int rc = check_fence(d, partition, fence, err);

	if (rc == SKV_OK)
		rc = read_head(d, partition, h, err);
	if (rc == SKV_OK && (id == 0 || h->building != id))
		rc = skv_fail(err, SKV_E_CONFLICT, "id",
			      "checkpoint %llu is not the one begun last", (unsigned long long)id);
	return rc;
}

struct slice {
	uint32_t partition, number;
	uint64_t checkpoint;
	const void *bytes;
	size_t n;
};

static int write_slice(struct db *d, const struct slice *p, struct skv_error *err)
{
	sqlite3_stmt *st;
	int rc = tx_begin(d, err);

	if (rc != SKV_OK)
		return rc;
	st = db_stmt(d, SQL_SLICE);
	if (st) {
		uint64_t sum = slice_sum(p->partition, p->checkpoint, p->number, p->bytes, p->n);

		sqlite3_bind_int64(st, 1, p->partition);
		sqlite3_bind_int64(st, 2, (sqlite3_int64)p->checkpoint);
		sqlite3_bind_int64(st, 3, p->number);
		sqlite3_bind_int64(st, 4, (sqlite3_int64)sum);
		sqlite3_bind_blob64(st, 5, p->bytes, p->n, SQLITE_STATIC);
	}
	if (!st || db_done(st) != SQLITE_DONE)
		rc = db_fail(d, err, "checkpoint slice");
	return tx_end(d, rc, err);
}

/* The same, as a read of its own. */
static int ask_building(struct sqlite_store *s, uint32_t partition, uint64_t fence, uint64_t id,
			struct skv_error *err)
{
	struct head h;
	int rc = read_begin(&s->head, err);

	if (rc != SKV_OK)
		return rc;
	rc = check_building(&s->head, partition, fence, id, &h, err);
	read_end(&s->head);
	return rc;
}

int sqlite_checkpoint_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			    uint32_t number, const void *bytes, size_t n, struct skv_error *err)
{
	struct sqlite_store *s = self;
	const struct slice p = { partition, number, id, bytes, n };
	int rc = ask_building(s, partition, fence, id, err);

	return rc == SKV_OK ? write_slice(&s->slice, &p, err) : rc;
}

static int check_slices(struct db *d, uint32_t partition, uint64_t id, uint32_t slices,
			struct skv_error *err)
{
	uint32_t found = 0;
	sqlite3_stmt *st;
	int rc = read_begin(d, err);

	if (rc != SKV_OK)
		return rc;
	st = db_stmt(d, SQL_COUNT_SLICES);
	if (st) {
		sqlite3_bind_int64(st, 1, partition);
		sqlite3_bind_int64(st, 2, (sqlite3_int64)id);
		sqlite3_bind_int64(st, 3, slices);
	}
	if (!st || sqlite3_step(st) != SQLITE_ROW)
		rc = db_fail(d, err, "checkpoint slices");
	else
		found = (uint32_t)sqlite3_column_int64(st, 0);
	if (st)
		sqlite3_reset(st);
	read_end(d);
	if (rc == SKV_OK && found != slices)
		rc = skv_fail(err, SKV_E_CONFLICT, "slices", "%u of %u slices are there", found,
			      slices);
	return rc;
}

/* Bytes appended up to and with `seq`. */
static int read_total(struct db *d, uint32_t partition, const struct head *h, uint64_t seq,
		      uint64_t *total, struct skv_error *err)
{
	sqlite3_stmt *st;
	int code, rc = SKV_OK;

	*total = h->upto_total;
	if (seq == h->upto_seq)
		return SKV_OK;
	st = db_stmt(d, SQL_TOTAL);
	if (!st)
		return db_fail(d, err, "journal");
	sqlite3_bind_int64(st, 1, journal_id(partition, seq));
	code = seq < h->upto_seq ? SQLITE_DONE : sqlite3_step(st);
	if (code == SQLITE_ROW)
		*total = (uint64_t)sqlite3_column_int64(st, 0);
	else if (code == SQLITE_DONE)
		rc = skv_fail(err, SKV_E_CONFLICT, "upto_seq",
			      "the journal does not cover %llu to %llu",
			      (unsigned long long)h->upto_seq, (unsigned long long)seq);
	else
		rc = db_fail(d, err, "journal");
	sqlite3_reset(st);
	return rc;
}

static int flip(struct db *d, uint32_t partition, const struct head *h, struct skv_error *err)
{
	sqlite3_stmt *st;

	ASSERT_IN_TX(d);
	st = db_stmt(d, SQL_FLIP);
	if (!st)
		return db_fail(d, err, "checkpoint");
	sqlite3_bind_int64(st, 1, partition);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)h->id);
	sqlite3_bind_int64(st, 3, h->slices);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)h->upto_seq);
	sqlite3_bind_int64(st, 5, (sqlite3_int64)h->upto_total);
	return db_done(st) == SQLITE_DONE ? SKV_OK : db_fail(d, err, "checkpoint");
}

static int commit_head(struct sqlite_store *s, uint32_t partition, uint64_t fence,
		       struct head *next, struct skv_error *err)
{
	struct head h;
	int rc = tx_begin(&s->head, err);

	if (rc != SKV_OK)
		return rc;
	rc = check_building(&s->head, partition, fence, next->id, &h, err);
	if (rc == SKV_OK)
		rc = read_total(&s->head, partition, &h, next->upto_seq, &next->upto_total, err);
	if (rc == SKV_OK)
		rc = flip(&s->head, partition, next, err);
	return tx_end(&s->head, rc, err);
}

int sqlite_checkpoint_commit(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			     uint32_t slices, uint64_t upto_seq, struct skv_error *err)
{
	struct sqlite_store *s = self;
	struct head next = { .id = id, .upto_seq = upto_seq, .slices = slices };
	int rc = ask_building(s, partition, fence, id, err);

	if (rc == SKV_OK)
		rc = check_slices(&s->slice, partition, id, slices, err);
	if (rc == SKV_OK)
		rc = commit_head(s, partition, fence, &next, err);
	if (rc == SKV_OK)
		housekeeping_kick(s);
	return rc;
}

int sqlite_checkpoint_abort(void *self, uint32_t partition, uint64_t id)
{
	struct sqlite_store *s = self;
	int rc;

	if (id == 0)
		return SKV_OK;
	rc = tx_begin(&s->head, NULL);
	if (rc != SKV_OK)
		return rc;
	rc = run_with_id(&s->head, SQL_UNBUILD, partition, id, NULL);
	rc = tx_end(&s->head, rc, NULL);
	housekeeping_kick(s);
	return rc;
}
