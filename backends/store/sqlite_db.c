/*
 * sqlite_db.c - connections, prepared statements and transactions of the SQLite store.
 *
 * Owns the meaning of SQLite's errors. A transaction that fails before COMMIT is rolled back:
 * nothing was changed. COMMIT itself failing on a full disk changed nothing either, because the
 * frame that makes a transaction valid is written last and was cut short. Any other failure of
 * COMMIT leaves the outcome open: the frames may be whole in the log although no reader sees them
 * now, and a recovery after a crash would bring them back. Such a file is `unsettled`: before its
 * next transaction or read, a small commit is written, which lands on top of those frames and so
 * makes "not committed" final.
 *
 * Called with the locks that sqlite_store.h describes. Never retries a caller's request.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sqlite_store.h"

#define COMMON_PRAGMAS                                                                             \
	"PRAGMA wal_autocheckpoint = 0;"                                                           \
	"PRAGMA journal_size_limit = 67108864;"                                                    \
	"PRAGMA secure_delete = OFF;"                                                              \
	"PRAGMA cache_size = -8192;"

#define UNSYNCED_MAX (256u << 10) /* bytes that a commit may sync in its turn besides its own */

static const char *const sql_text[SQL_COUNT] = {
#define SQL_TEXT(name, text) [SQL_##name] = text,
	SQL_MAP(SQL_TEXT)
#undef SQL_TEXT
};

void db_init(struct db *d, struct file *f, bool full)
{
	memset(d, 0, sizeof *d);
	d->file = f;
	d->full = full;
	skv_mutex_init(&d->lock);
}

void db_drop(struct db *d)
{
	for (int i = 0; i < SQL_COUNT; i++) {
		sqlite3_finalize(d->stmt[i]);
		d->stmt[i] = NULL;
	}
	/* The last one to close would copy the log and delete it. */
	if (d->handle && atomic_load(&d->file->copy_lost))
		sqlite3_db_config(d->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_close(d->handle);
	d->handle = NULL;
	d->later = false;
}

void db_destroy(struct db *d)
{
	db_drop(d);
	skv_mutex_destroy(&d->lock);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static int status_of(sqlite3 *handle)
{
	int code = handle ? sqlite3_extended_errcode(handle) : SQLITE_NOMEM;
	int system = handle ? sqlite3_system_errno(handle) : 0;

	switch (code & 0xff) {
	case SQLITE_FULL:
		return SKV_E_STORE_FULL;
	case SQLITE_NOMEM:
		return SKV_E_NOMEM;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return SKV_E_CORRUPT;
	case SQLITE_IOERR:
		if (code == SQLITE_IOERR_NOMEM)
			return SKV_E_NOMEM;
		if ((code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_SHMSIZE) &&
		    (system == ENOSPC || system == EDQUOT))
			return SKV_E_STORE_FULL;
		return SKV_E_STORE_IO;
	default:
		return SKV_E_STORE_IO;
	}
}

/* Returns true if this process must not write the files, which only a person can change. SQLite
 * reports this in many ways. */
static bool is_barred(const struct db *d)
{
	const int code = d->handle ? sqlite3_errcode(d->handle) & 0xff : SQLITE_NOMEM;

	if (code != SQLITE_READONLY && code != SQLITE_CANTOPEN && code != SQLITE_PERM &&
	    code != SQLITE_IOERR)
		return false;
	return access(d->file->path, W_OK) != 0 && (errno == EACCES || errno == EROFS);
}

/* Returns the remedy that the message names before SQLite's own words. */
static const char *remedy_of(int status)
{
	switch (status) {
	case SKV_E_UNAVAILABLE:
		return "the store cannot be written: mount its file system for writing, or give "
		       "its files to this user: ";
	case SKV_E_CORRUPT:
		return "the database is damaged: stop its managers and restore a backup: ";
	case SKV_E_STORE_FULL:
		return "no space left for the store: ";
	default:
		return "";
	}
}

int db_fail(struct db *d, struct skv_error *err, const char *what)
{
	int status = is_barred(d) ? SKV_E_UNAVAILABLE : status_of(d->handle);

	assert(skv_mutex_held(&d->lock));
	if (d->handle && (sqlite3_errcode(d->handle) & 0xff) == SQLITE_BUSY)
		return skv_fail(err, status, NULL,
				"%s: another process keeps the database locked; nothing was "
				"changed, try again (%d)",
				what, sqlite3_extended_errcode(d->handle));
	return skv_fail(err, status, NULL, "%s: %s%s (%d)", what, remedy_of(status),
			d->handle ? sqlite3_errmsg(d->handle) : "out of memory",
			d->handle ? sqlite3_extended_errcode(d->handle) : 0);
}

/* ---- connections ----------------------------------------------------------------------------- */

static int on_commit(void *ctx, sqlite3 *handle, const char *schema, int frames)
{
	struct file *f = ctx;

	int copied = atomic_load_explicit(&f->wal_copied, memory_order_relaxed);

	(void)handle;
	(void)schema;
	if (frames < copied) { /* the log began anew */
		copied = 0;
		atomic_store_explicit(&f->wal_copied, 0, memory_order_relaxed);
	}
	atomic_store_explicit(&f->wal_frames, frames, memory_order_relaxed);
	if (frames >= KEEP_WAL_FRAMES && frames - copied >= KEEP_COPY_FRAMES)
		housekeeping_kick(f->store);
	return SQLITE_OK;
}

int db_exec(struct db *d, const char *text, struct skv_error *err)
{
	assert(skv_mutex_held(&d->lock));
	if (sqlite3_exec(d->handle, text, NULL, NULL, NULL) != SQLITE_OK)
		return db_fail(d, err, "database");
	return SKV_OK;
}

int db_ready(struct db *d, struct skv_error *err)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	int rc = SKV_OK;

	assert(skv_mutex_held(&d->lock));
	if (d->handle)
		return SKV_OK;
	if (sqlite3_open_v2(d->file->path, &d->handle, flags, d->file->store->vfs) != SQLITE_OK)
		rc = db_fail(d, err, "cannot open the database");
	if (rc == SKV_OK) {
		sqlite3_busy_timeout(d->handle, BUSY_MS);
		rc = db_exec(d,
			     d->full ? COMMON_PRAGMAS "PRAGMA synchronous = FULL"
				     : COMMON_PRAGMAS "PRAGMA synchronous = NORMAL",
			     err);
	}
	if (rc == SKV_OK)
		sqlite3_wal_hook(d->handle, on_commit, d->file);
	else
		db_drop(d);
	return rc;
}

sqlite3_stmt *db_stmt(struct db *d, enum sql which)
{
	sqlite3_stmt **st = &d->stmt[which];

	assert(skv_mutex_held(&d->lock));
	if (*st) {
		sqlite3_reset(*st);
		sqlite3_clear_bindings(*st);
	} else if (sqlite3_prepare_v3(d->handle, sql_text[which], -1, SQLITE_PREPARE_PERSISTENT, st,
				      NULL) != SQLITE_OK) {
		*st = NULL;
	}
	return *st;
}

int db_done(sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);

	/* After an error this gives the same one again and keeps its message. */
	sqlite3_reset(st);
	return rc;
}

int db_run(struct db *d, enum sql which)
{
	sqlite3_stmt *st = db_stmt(d, which);

	return st ? db_done(st) : sqlite3_extended_errcode(d->handle);
}

/* ---- transactions ---------------------------------------------------------------------------- */

static void rollback(struct db *d)
{
	if (d->handle && !sqlite3_get_autocommit(d->handle))
		db_run(d, SQL_ROLLBACK);
	/* Should even that fail, a closed connection has no open transaction. */
	if (d->handle && !sqlite3_get_autocommit(d->handle))
		db_drop(d);
	assert(!d->handle || sqlite3_get_autocommit(d->handle));
}

static int commit(struct db *d, struct skv_error *err)
{
	int status, code;

	ASSERT_IN_TX(d);
	code = db_run(d, SQL_COMMIT);

	if (code == SQLITE_DONE)
		return SKV_OK;
	status = db_fail(d, err, "commit");
	rollback(d);
	if (status == SKV_E_STORE_FULL || (code & 0xff) == SQLITE_BUSY)
		return status;
	atomic_store(&d->file->unsettled, true);
	db_drop(d);
	if (err)
		err->status = SKV_E_UNKNOWN_OUTCOME;
	return SKV_E_UNKNOWN_OUTCOME;
}

/* Outside of a transaction. SQLite takes this pragma in when it is prepared, so it has no statement
 * to keep; it changes only where calls of both kinds alternate. */
static int set_later(struct db *d, bool later, struct skv_error *err)
{
	int rc = SKV_OK;

	/* The connection does not change inside a transaction. */
	assert(sqlite3_get_autocommit(d->handle));
	if (d->full && d->later != later)
		rc = db_exec(d, later ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL",
			     err);
	if (rc == SKV_OK)
		d->later = d->full && later;
	return rc;
}

/* Runs a small transaction on top of whatever a failed commit left, synced on any connection.
 * Caller holds lock and turn. */
static int settle_once(struct db *d, struct skv_error *err)
{
	int rc;

	ASSERT_IN_TX(d);
	rc = db_ready(d, err);
	if (rc == SKV_OK)
		rc = d->full ? set_later(d, false, err)
			     : db_exec(d, "PRAGMA synchronous = FULL", err);
	if (rc != SKV_OK)
		return rc;
	if (db_run(d, SQL_BEGIN_WRITE) != SQLITE_DONE)
		return db_fail(d, err, "begin");
	if (db_run(d, SQL_SETTLE) != SQLITE_DONE) {
		rc = db_fail(d, err, "settle");
		rollback(d);
		return rc;
	}
	rc = commit(d, err);
	if (rc == SKV_OK)
		atomic_store(&d->file->unsettled, false);
	if (rc == SKV_OK && !d->full)
		db_drop(d); /* opens again as it was */
	/* The requested transaction has not begun, so it changed nothing. */
	if (rc == SKV_E_UNKNOWN_OUTCOME)
		rc = skv_fail(err, SKV_E_STORE_IO, NULL, "the database cannot be written");
	return rc;
}

static int settle(struct db *d, struct skv_error *err)
{
	int rc;

	if (!atomic_load(&d->file->unsettled))
		return SKV_OK;
	rc = settle_once(d, err);
	if (rc == SKV_E_STORE_FULL && reserve_release(d->file->store))
		rc = settle_once(d, err);
	return rc;
}

/* A commit that syncs does so in its turn, together with everything appended without a sync since
 * the last one. The part already written is synced before the turn; the sync itself records a
 * failure. */
static void sync_ahead(const struct db *d)
{
	struct sqlite_store *s = d->file->store;

	assert(!skv_mutex_held(&d->file->turn));
	if (atomic_load_explicit(&d->file->unsynced, memory_order_relaxed) >= UNSYNCED_MAX)
		sqlite_sync(s, 0, NULL);
}

int tx_begin(struct db *d, struct skv_error *err) { return tx_begin_later(d, false, err); }

/* The analysis of locks does not follow a begin that locks only where it returns SKV_OK. */
int tx_begin_later(struct db *d, bool later, struct skv_error *err) SKV_NO_LOCK_CHECK
{
	int rc;

	if (d->full && !later)
		sync_ahead(d);
	skv_mutex_lock(&d->lock);
	skv_mutex_lock(&d->file->turn);
	rc = settle(d, err);
	if (rc == SKV_OK)
		rc = db_ready(d, err);
	if (rc == SKV_OK)
		rc = set_later(d, later, err);
	if (rc == SKV_OK && db_run(d, SQL_BEGIN_WRITE) != SQLITE_DONE)
		rc = db_fail(d, err, "begin");
	assert(rc != SKV_OK || !sqlite3_get_autocommit(d->handle));
	if (rc != SKV_OK) {
		skv_mutex_unlock(&d->file->turn);
		skv_mutex_unlock(&d->lock);
	}
	return rc;
}

int tx_end(struct db *d, int rc, struct skv_error *err) SKV_NO_LOCK_CHECK /* as its begin */
{
	ASSERT_IN_TX(d);
	if (rc == SKV_OK)
		rc = commit(d, err);
	else
		rollback(d);
	skv_mutex_unlock(&d->file->turn);
	skv_mutex_unlock(&d->lock);
	return rc;
}

int read_begin(struct db *d, struct skv_error *err) SKV_NO_LOCK_CHECK /* as tx_begin */
{
	int rc;

	skv_mutex_lock(&d->lock);
	if (atomic_load(&d->file->unsettled)) {
		skv_mutex_lock(&d->file->turn);
		rc = settle(d, err);
		skv_mutex_unlock(&d->file->turn);
	} else {
		rc = SKV_OK;
	}
	if (rc == SKV_OK)
		rc = db_ready(d, err);
	if (rc == SKV_OK && db_run(d, SQL_BEGIN) != SQLITE_DONE)
		rc = db_fail(d, err, "begin");
	if (rc != SKV_OK)
		skv_mutex_unlock(&d->lock);
	return rc;
}

void read_end(struct db *d) SKV_NO_LOCK_CHECK /* as its begin */
{
	rollback(d);
	skv_mutex_unlock(&d->lock);
}
