/*
 * sqlite_housekeeping.c - housekeeping of the SQLite store, on a thread of its own.
 *
 * Owns the thread and two connections. It copies the logs into the database files (a PASSIVE
 * checkpoint, which blocks nobody), restarts a log that has grown long all the same, deletes
 * journal rows and slices that a checkpoint made dead, and re-makes the reserve. Each step is one
 * small transaction, and between two of them it sleeps for a moment: a thread that waits for the
 * write turn gets it.
 *
 * It works only in a process that has owned a partition: a standby leaves the owner's files alone.
 * Its work can be repeated or left undone at any point; failures are logged once and tried again
 * later.
 */
#include <assert.h>
#include <poll.h>

#include <skv/log.h>

#include "sqlite_store.h"

#define ROUND_MS 1000
#define WAL_FRAMES_LONG 8192 /* 32 MiB: the log should begin anew */
#define WAL_FRAMES_SMALL 256 /* 1 MiB: copied and synced in about the time of one commit */
#define COPIES 6             /* tries to get that close behind a busy writer */
#define HELD_US 1000000      /* between two tries to begin anew a log that somebody reads */
#define AHEAD_FRAMES 4096    /* 16 MiB not copied: appends begin to wait */
#define LONG_FRAMES 16384    /* 64 MiB of log: the same */
#define AHEAD_STEP 512       /* each 2 MiB more: one millisecond longer */
#define PACE_MAX_MS 20
#define STEP_ROWS 64
#define STEP_BYTES (1 << 20)

/* Sleeps until kicked or for `ms`. False when the thread must end. */
static bool rest(struct keep *k, uint64_t ms, bool for_kick)
{
	bool go;

	skv_mutex_lock(&k->lock);
	if (!k->stop && !(for_kick && k->kicked))
		skv_cond_wait_ms(&k->wake, &k->lock, ms);
	if (for_kick)
		k->kicked = false;
	go = !k->stop;
	skv_mutex_unlock(&k->lock);
	return go;
}

void housekeeping_kick(struct sqlite_store *s)
{
	struct keep *k = &s->keep;

	skv_mutex_lock(&k->lock);
	k->kicked = true;
	skv_cond_signal(&k->wake);
	skv_mutex_unlock(&k->lock);
}

/* ---- write-ahead logs ------------------------------------------------------------------------ */

static int frames_of(const struct file *f)
{
	return atomic_load_explicit(&f->wal_frames, memory_order_relaxed);
}

/* A failed sync may have lost pages of the database file, and a later sync would not report it. The
 * log still has them all: from here on it only grows, and the next recovery copies it from its
 * beginning. */
static int copy_lost(struct db *d, struct skv_error *err)
{
	atomic_store(&d->file->copy_lost, true);
	return skv_fail(err, SKV_E_STORE_IO, NULL,
			"%s cannot be synced: its log is kept and grows; restart the manager",
			d->file->path);
}

/* Copies the log into the database file; *copied is the number of frames that are there now. */
static int copy_log(struct db *d, int *copied, struct skv_error *err)
{
	struct file *f = d->file;
	int in_log = 0;
	int code;

	assert(skv_mutex_held(&d->lock));
	code = sqlite3_wal_checkpoint_v2(d->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log,
					 copied);
	if (code == SQLITE_IOERR_FSYNC)
		return copy_lost(d, err);
	/* Busy: another process is at it. */
	if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY)
		return db_fail(d, err, "log");
	atomic_store_explicit(&f->wal_held, code != SQLITE_OK || *copied < in_log,
			      memory_order_relaxed);
	atomic_store_explicit(&f->wal_copied, *copied, memory_order_relaxed);
	return SKV_OK;
}

/* SQLite syncs the database file only when a copy has reached the end of the log. Behind a busy
 * writer that is the last one, which keeps writers out: nothing may be left to sync for it. */
static int sync_copy(struct db *d, struct skv_error *err)
{
	sqlite3_file *file = NULL;

	assert(skv_mutex_held(&d->lock));
	if (sqlite3_file_control(d->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) !=
		    SQLITE_OK ||
	    !file || !file->pMethods)
		return db_fail(d, err, "log");
	return file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) == SQLITE_OK ? SKV_OK
									    : copy_lost(d, err);
}

/* The longer the log, the longer writers may be kept out to begin it anew. */
static bool little_left(const struct file *f, int copied)
{
	return frames_of(f) - copied <= WAL_FRAMES_SMALL + frames_of(f) / 64;
}

/* Copies the last frames; the next commit then begins the log anew. A reader that still needs the
 * old one makes this fail at once; it is tried again later. Caller holds the turn. */
static int copy_last(struct db *d, struct skv_error *err)
{
	struct file *f = d->file;
	int code;

	ASSERT_IN_TX(d);
	sqlite3_busy_timeout(d->handle, 0);
	code = sqlite3_wal_checkpoint_v2(d->handle, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
	sqlite3_busy_timeout(d->handle, BUSY_MS);
	if (code == SQLITE_IOERR_FSYNC)
		return copy_lost(d, err);
	if (code == SQLITE_OK) {
		atomic_store_explicit(&f->wal_frames, 0, memory_order_relaxed);
		atomic_store_explicit(&f->wal_copied, 0, memory_order_relaxed);
	} else {
		atomic_store_explicit(&f->wal_held, true, memory_order_relaxed);
		f->held_until_us = skv_now_us() + HELD_US;
	}
	return SKV_OK;
}

/* Copies and syncs until little is left, and only then keeps writers out. */
static int begin_anew(struct db *d, struct skv_error *err)
{
	struct file *f = d->file;
	bool done = false;
	int copied = 0, rc = SKV_OK;

	assert(skv_mutex_held(&d->lock));
	for (int i = 0; rc == SKV_OK && !done && i < COPIES; i++) {
		rc = copy_log(d, &copied, err);
		if (rc == SKV_OK)
			rc = sync_copy(d, err);
		if (rc != SKV_OK || !little_left(f, copied))
			continue;
		skv_mutex_lock(&f->turn);
		done = little_left(f, copied); /* others may have had the turn first */
		if (done)
			rc = copy_last(d, err);
		skv_mutex_unlock(&f->turn);
	}
	return rc;
}

static int housekeeping_log(struct db *d, struct skv_error *err)
{
	struct file *f = d->file;
	int copied = 0, rc;

	if (frames_of(f) < KEEP_WAL_FRAMES || atomic_load(&f->copy_lost))
		return SKV_OK;
	skv_mutex_lock(&d->lock);
	rc = db_ready(d, err);
	if (rc == SKV_OK && (frames_of(f) < WAL_FRAMES_LONG || skv_now_us() < f->held_until_us))
		rc = copy_log(d, &copied, err);
	else if (rc == SKV_OK)
		rc = begin_anew(d, err);
	skv_mutex_unlock(&d->lock);
	return rc;
}

void housekeeping_pace(const struct file *f)
{
	int frames = frames_of(f);
	int ahead =
		frames - atomic_load_explicit(&f->wal_copied, memory_order_relaxed) - AHEAD_FRAMES;
	int ms;

	if (frames - LONG_FRAMES > ahead)
		ahead = frames - LONG_FRAMES;
	/* A commit that waits for housekeeping must see progress. */
	if (ahead <= 0 || atomic_load_explicit(&f->wal_held, memory_order_relaxed) ||
	    atomic_load(&f->copy_lost))
		return;
	ms = 1 + ahead / AHEAD_STEP;
	poll(NULL, 0, ms < PACE_MAX_MS ? ms : PACE_MAX_MS);
}

/* ---- dead rows ------------------------------------------------------------------------------- */

/* The end of the next step: dead rows up to *last, none when *last stays 0. */
static int plan_step(struct db *d, uint32_t partition, uint64_t upto_seq, int64_t *first,
		     int64_t *last, struct skv_error *err)
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
	return code == SQLITE_ROW || code == SQLITE_DONE ? SKV_OK : db_fail(d, err, "journal");
}

static int drop_range(struct db *d, int64_t first, int64_t last, struct skv_error *err)
{
	sqlite3_stmt *st;

	ASSERT_IN_TX(d);
	st = db_stmt(d, SQL_DROP_ROWS);
	if (!st)
		return db_fail(d, err, "journal");
	sqlite3_bind_int64(st, 1, first);
	sqlite3_bind_int64(st, 2, last);
	return db_done(st) == SQLITE_DONE ? SKV_OK : db_fail(d, err, "journal");
}

/* Deletes one step's rows; *more tells whether there were any. A row that is dead stays dead, so
 * planning and deleting need not be one transaction. */
static int drop_rows(struct db *d, uint32_t partition, uint64_t upto_seq, bool *more,
		     struct skv_error *err)
{
	int64_t first = 0, last = 0;
	int rc = read_begin(d, err);

	if (rc != SKV_OK)
		return rc;
	rc = plan_step(d, partition, upto_seq, &first, &last, err);
	read_end(d);
	*more = rc == SKV_OK && last != 0;
	if (!*more)
		return rc;
	rc = tx_begin(d, err);
	if (rc != SKV_OK)
		return rc;
	return tx_end(d, drop_range(d, first, last, err), err);
}

/* ---- dead slices ----------------------------------------------------------------------------- */

/* A slice is dead when its checkpoint was begun before `h` was read and is neither the head's nor
 * the one being built. */
static int find_dead_slice(struct db *d, uint32_t partition, const struct head *h, int64_t *row,
			   struct skv_error *err)
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
	return code == SQLITE_ROW || code == SQLITE_DONE ? SKV_OK
							 : db_fail(d, err, "checkpoint slices");
}

static int drop_row(struct db *d, int64_t row, struct skv_error *err)
{
	sqlite3_stmt *st;

	ASSERT_IN_TX(d);
	st = db_stmt(d, SQL_DROP_SLICE);
	if (!st)
		return db_fail(d, err, "checkpoint slices");
	sqlite3_bind_int64(st, 1, row);
	return db_done(st) == SQLITE_DONE ? SKV_OK : db_fail(d, err, "checkpoint slices");
}

static int drop_slice(struct db *d, uint32_t partition, const struct head *h, bool *more,
		      struct skv_error *err)
{
	int64_t row = 0;
	int rc = read_begin(d, err);

	if (rc != SKV_OK)
		return rc;
	rc = find_dead_slice(d, partition, h, &row, err);
	read_end(d);
	*more = rc == SKV_OK && row != 0;
	if (!*more)
		return rc;
	rc = tx_begin(d, err);
	if (rc != SKV_OK)
		return rc;
	return tx_end(d, drop_row(d, row, err), err);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Ignores a partition number of a damaged page: the round would never end. */
static int take_partition(int64_t said, uint32_t from, uint32_t *found, struct skv_error *err)
{
	if (said < from || said > SKV_STORE_PARTITION_MAX)
		return skv_fail(err, SKV_E_CORRUPT, NULL, "checkpoint of a partition %lld",
				(long long)said);
	*found = (uint32_t)said;
	return SKV_OK;
}

/* The next partition with a checkpoint row, from `partition` on. SKV_E_NOT_FOUND at the end. */
static int next_head(struct db *d, uint32_t partition, uint32_t *found, struct head *h,
		     struct skv_error *err)
{
	sqlite3_stmt *st;
	int code, rc = read_begin(d, err);

	if (rc != SKV_OK)
		return rc;
	st = db_stmt(d, SQL_NEXT_HEAD);
	if (st)
		sqlite3_bind_int64(st, 1, partition);
	code = st ? sqlite3_step(st) : SQLITE_ERROR;
	if (code == SQLITE_ROW)
		rc = take_partition(sqlite3_column_int64(st, 0), partition, found, err);
	else
		rc = code == SQLITE_DONE ? SKV_E_NOT_FOUND : db_fail(d, err, "checkpoint");
	if (st)
		sqlite3_reset(st);
	if (rc == SKV_OK)
		rc = read_head(d, *found, h, err);
	read_end(d);
	return rc;
}

static int clean_partition(struct sqlite_store *s, uint32_t partition, const struct head *h,
			   struct skv_error *err)
{
	bool more = true;
	int rc = SKV_OK;

	while (rc == SKV_OK && more && rest(&s->keep, 1, false)) {
		rc = drop_rows(&s->housekeeping_main, partition, h->upto_seq, &more, err);
		if (rc == SKV_OK && more)
			rc = housekeeping_log(&s->housekeeping_main, err);
	}
	more = true;
	while (rc == SKV_OK && more && rest(&s->keep, 1, false)) {
		rc = drop_slice(&s->housekeeping_slices, partition, h, &more, err);
		if (rc == SKV_OK && more)
			rc = housekeeping_log(&s->housekeeping_slices, err);
	}
	return rc;
}

static int round_of(struct sqlite_store *s, struct skv_error *err)
{
	struct head h;
	uint32_t partition = 0;
	int rc = housekeeping_log(&s->housekeeping_main, err);

	if (rc == SKV_OK)
		rc = housekeeping_log(&s->housekeeping_slices, err);
	while (rc == SKV_OK && rest(&s->keep, 0, false)) {
		rc = next_head(&s->housekeeping_main, partition, &partition, &h, err);
		if (rc == SKV_OK)
			rc = clean_partition(s, partition, &h, err);
		partition++;
	}
	reserve_make(s);
	return rc == SKV_E_NOT_FOUND ? SKV_OK : rc;
}

static void *housekeeping_main(void *ctx)
{
	struct sqlite_store *s = ctx;

	while (rest(&s->keep, ROUND_MS, true)) {
		struct skv_error err = { 0 };
		int rc = atomic_load(&s->owned) ? round_of(s, &err) : SKV_OK;

		if (rc != SKV_OK && rc != s->keep.said)
			skv_log(SKV_LOG_WARN, "store", "housekeeping: %s", err.message);
		s->keep.said = rc;
	}
	return NULL;
}

int housekeeping_start(struct sqlite_store *s, struct skv_error *err)
{
	assert(!s->keep.running && !s->keep.stop);
	if (pthread_create(&s->keep.thread, NULL, housekeeping_main, s) != 0)
		return skv_fail(err, SKV_E_NOMEM, NULL, "cannot start the housekeeping thread");
	s->keep.running = true;
	return SKV_OK;
}

void housekeeping_stop(struct sqlite_store *s)
{
	struct keep *k = &s->keep;

	if (!k->running)
		return;
	skv_mutex_lock(&k->lock);
	k->stop = true;
	skv_cond_signal(&k->wake);
	skv_mutex_unlock(&k->lock);
	pthread_join(k->thread, NULL);
	k->running = false;
}
