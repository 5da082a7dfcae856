/*
 * sqlite_keep.c - housekeeping of the SQLite store, on a thread of its own.
 *
 * Owns the thread and two connections. It copies the logs into the database files (a PASSIVE
 * checkpoint, which keeps nobody out), has a log begin anew when it has grown too long all the
 * same, deletes journal rows and slices that a checkpoint made dead, and re-makes the reserve. Each
 * step is one small transaction, and between two of them it sleeps for a moment: whoever waits for
 * the write turn gets it.
 *
 * It works only in a process that has owned a partition: a standby leaves the owner's files alone.
 * What it does can be repeated or left undone at any point; failures are logged once and tried
 * again later.
 */
#include <kvb/log.h>

#include "sqlite_store.h"

#define ROUND_MS 1000
#define WAL_FRAMES_LONG 4096 /* 16 MiB: the log should begin anew when that costs little */
#define WAL_FRAMES_MAX 16384 /* 64 MiB: it must, whatever it costs */
#define WAL_FRAMES_SMALL 256 /* 1 MiB: copied in about the time of one commit */
#define COPIES 4             /* tries to get that close behind a busy writer */
#define STEP_ROWS 64
#define STEP_BYTES (1 << 20)

/* Sleeps until kicked or for `ms`. False when the thread must end. */
static bool rest(struct keep *k, uint64_t ms, bool for_kick)
{
	bool go;

	kvb_mutex_lock(&k->lock);
	if (!k->stop && !(for_kick && k->kicked))
		kvb_cond_wait_ms(&k->wake, &k->lock, ms);
	if (for_kick)
		k->kicked = false;
	go = !k->stop;
	kvb_mutex_unlock(&k->lock);
	return go;
}

void keep_kick(struct sqlite_store *s)
{
	struct keep *k = &s->keep;

	kvb_mutex_lock(&k->lock);
	k->kicked = true;
	kvb_cond_signal(&k->wake);
	kvb_mutex_unlock(&k->lock);
}

/* ---- write-ahead logs
 * ------------------------------------------------------------------------------- */

static int frames_of(const struct file *f)
{
	return atomic_load_explicit(&f->wal_frames, memory_order_relaxed);
}

/* Copies what is in the log into the database file; *left gets the frames that were appended
 * meanwhile. */
static int copy_log(struct db *d, int *left, struct kvb_error *err)
{
	int in_log = 0, copied = 0;
	int code = sqlite3_wal_checkpoint_v2(d->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log,
					     &copied);

	*left = frames_of(d->file) - copied;
	/* Busy: another process is at it. */
	return code == SQLITE_OK || (code & 0xff) == SQLITE_BUSY ? KVB_OK : db_fail(d, err, "log");
}

/* Keeps writers out while the last frames are copied; the next commit then begins the log anew. A
 * reader that still needs the old one makes this fail at once, and the next round tries again. */
static void restart_log(struct db *d)
{
	kvb_mutex_lock(&d->file->turn);
	sqlite3_busy_timeout(d->handle, 0);
	if (sqlite3_wal_checkpoint_v2(d->handle, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL) ==
	    SQLITE_OK)
		atomic_store_explicit(&d->file->wal_frames, 0, memory_order_relaxed);
	sqlite3_busy_timeout(d->handle, BUSY_MS);
	kvb_mutex_unlock(&d->file->turn);
}

static int keep_log(struct db *d, struct kvb_error *err)
{
	int left = 0, rc;

	if (frames_of(d->file) < KEEP_WAL_FRAMES)
		return KVB_OK;
	kvb_mutex_lock(&d->lock);
	rc = db_ready(d, err);
	if (rc == KVB_OK)
		rc = copy_log(d, &left, err);
	for (int i = 1; rc == KVB_OK && i < COPIES && left > WAL_FRAMES_SMALL; i++)
		rc = copy_log(d, &left, err);
	if (rc == KVB_OK && ((frames_of(d->file) >= WAL_FRAMES_LONG && left <= WAL_FRAMES_SMALL) ||
			     frames_of(d->file) >= WAL_FRAMES_MAX))
		restart_log(d);
	kvb_mutex_unlock(&d->lock);
	return rc;
}

/* ---- dead rows
 * -------------------------------------------------------------------------------------- */

/* The end of the next step: dead rows up to *last, none when *last stays 0. */
static int plan_step(struct db *d, uint32_t partition, uint64_t upto_seq, int64_t *first,
		     int64_t *last, struct kvb_error *err)
{
	sqlite3_stmt *st = db_stmt(d, SQL_OLD_ROWS);
	int64_t bytes = 0;
	int code = SQLITE_DONE;

	*last = 0;
	if (!st)
		return db_fail(d, err, "journal");
	sqlite3_bind_int64(st, 1, journal_id(partition, 1));
	sqlite3_bind_int64(st, 2, journal_id(partition, upto_seq));
	sqlite3_bind_int64(st, 3, STEP_ROWS);
	while (bytes < STEP_BYTES && (code = sqlite3_step(st)) == SQLITE_ROW) {
		if (*last == 0)
			*first = sqlite3_column_int64(st, 0);
		*last = sqlite3_column_int64(st, 0);
		bytes += sqlite3_column_int64(st, 1);
	}
	sqlite3_reset(st);
	return code == SQLITE_ROW || code == SQLITE_DONE ? KVB_OK : db_fail(d, err, "journal");
}

static int drop_range(struct db *d, int64_t first, int64_t last, struct kvb_error *err)
{
	sqlite3_stmt *st = db_stmt(d, SQL_DROP_ROWS);

	if (!st)
		return db_fail(d, err, "journal");
	sqlite3_bind_int64(st, 1, first);
	sqlite3_bind_int64(st, 2, last);
	return db_done(st) == SQLITE_DONE ? KVB_OK : db_fail(d, err, "journal");
}

/* Deletes one step's rows; *more tells whether there were any. A row that is dead stays dead, so
 * planning and deleting need not be one transaction. */
static int drop_rows(struct db *d, uint32_t partition, uint64_t upto_seq, bool *more,
		     struct kvb_error *err)
{
	int64_t first = 0, last = 0;
	int rc = read_begin(d, err);

	if (rc != KVB_OK)
		return rc;
	rc = plan_step(d, partition, upto_seq, &first, &last, err);
	read_end(d);
	*more = rc == KVB_OK && last != 0;
	if (!*more)
		return rc;
	rc = tx_begin(d, err);
	if (rc != KVB_OK)
		return rc;
	return tx_end(d, drop_range(d, first, last, err), err);
}

/* ---- dead slices
 * ------------------------------------------------------------------------------------ */

/* A slice is dead when its checkpoint was begun before `h` was read and is neither the head's nor
 * the one being built. */
static int find_dead_slice(struct db *d, uint32_t partition, const struct head *h, int64_t *row,
			   struct kvb_error *err)
{
	sqlite3_stmt *st = db_stmt(d, SQL_OLD_SLICE);
	int code;

	*row = 0;
	if (!st)
		return db_fail(d, err, "checkpoint slices");
	sqlite3_bind_int64(st, 1, partition);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)h->last_id);
	sqlite3_bind_int64(st, 3, (sqlite3_int64)h->id);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)h->building);
	code = sqlite3_step(st);
	if (code == SQLITE_ROW)
		*row = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return code == SQLITE_ROW || code == SQLITE_DONE ? KVB_OK
							 : db_fail(d, err, "checkpoint slices");
}

static int drop_row(struct db *d, int64_t row, struct kvb_error *err)
{
	sqlite3_stmt *st = db_stmt(d, SQL_DROP_SLICE);

	if (!st)
		return db_fail(d, err, "checkpoint slices");
	sqlite3_bind_int64(st, 1, row);
	return db_done(st) == SQLITE_DONE ? KVB_OK : db_fail(d, err, "checkpoint slices");
}

static int drop_slice(struct db *d, uint32_t partition, const struct head *h, bool *more,
		      struct kvb_error *err)
{
	int64_t row = 0;
	int rc = read_begin(d, err);

	if (rc != KVB_OK)
		return rc;
	rc = find_dead_slice(d, partition, h, &row, err);
	read_end(d);
	*more = rc == KVB_OK && row != 0;
	if (!*more)
		return rc;
	rc = tx_begin(d, err);
	if (rc != KVB_OK)
		return rc;
	return tx_end(d, drop_row(d, row, err), err);
}

/* ---- rounds
 * ----------------------------------------------------------------------------------------- */

/* The next partition with a checkpoint row, from `partition` on. KVB_E_NOT_FOUND at the end. */
static int next_head(struct db *d, uint32_t partition, uint32_t *found, struct head *h,
		     struct kvb_error *err)
{
	sqlite3_stmt *st;
	int code, rc = read_begin(d, err);

	if (rc != KVB_OK)
		return rc;
	st = db_stmt(d, SQL_NEXT_HEAD);
	if (st)
		sqlite3_bind_int64(st, 1, partition);
	code = st ? sqlite3_step(st) : SQLITE_ERROR;
	if (code == SQLITE_ROW)
		*found = (uint32_t)sqlite3_column_int64(st, 0);
	else
		rc = code == SQLITE_DONE ? KVB_E_NOT_FOUND : db_fail(d, err, "checkpoint");
	if (st)
		sqlite3_reset(st);
	if (rc == KVB_OK)
		rc = read_head(d, *found, h, err);
	read_end(d);
	return rc;
}

static int clean_partition(struct sqlite_store *s, uint32_t partition, const struct head *h,
			   struct kvb_error *err)
{
	bool more = true;
	int rc = KVB_OK;

	while (rc == KVB_OK && more && rest(&s->keep, 1, false)) {
		rc = drop_rows(&s->keep_main, partition, h->upto_seq, &more, err);
		if (rc == KVB_OK && more)
			rc = keep_log(&s->keep_main, err);
	}
	more = true;
	while (rc == KVB_OK && more && rest(&s->keep, 1, false)) {
		rc = drop_slice(&s->keep_slices, partition, h, &more, err);
		if (rc == KVB_OK && more)
			rc = keep_log(&s->keep_slices, err);
	}
	return rc;
}

static int round_of(struct sqlite_store *s, struct kvb_error *err)
{
	struct head h;
	uint32_t partition = 0;
	int rc = keep_log(&s->keep_main, err);

	if (rc == KVB_OK)
		rc = keep_log(&s->keep_slices, err);
	while (rc == KVB_OK) {
		rc = next_head(&s->keep_main, partition, &partition, &h, err);
		if (rc == KVB_OK)
			rc = clean_partition(s, partition, &h, err);
		partition++;
	}
	reserve_make(s);
	return rc == KVB_E_NOT_FOUND ? KVB_OK : rc;
}

static void *keep_main(void *ctx)
{
	struct sqlite_store *s = ctx;

	while (rest(&s->keep, ROUND_MS, true)) {
		struct kvb_error err = { 0 };
		int rc = atomic_load(&s->owned) ? round_of(s, &err) : KVB_OK;

		if (rc != KVB_OK && rc != s->keep.said)
			kvb_log(KVB_LOG_WARN, "store", "housekeeping: %s", err.message);
		s->keep.said = rc;
	}
	return NULL;
}

int keep_start(struct sqlite_store *s, struct kvb_error *err)
{
	if (pthread_create(&s->keep.thread, NULL, keep_main, s) != 0)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "cannot start the housekeeping thread");
	s->keep.running = true;
	return KVB_OK;
}

void keep_stop(struct sqlite_store *s)
{
	struct keep *k = &s->keep;

	if (!k->running)
		return;
	kvb_mutex_lock(&k->lock);
	k->stop = true;
	kvb_cond_signal(&k->wake);
	kvb_mutex_unlock(&k->lock);
	pthread_join(k->thread, NULL);
	k->running = false;
}
