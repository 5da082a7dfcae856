/*
 * sqlite_store.h - internals of the SQLite store: its two files, connections, transactions.
 *
 * Locks, in the order in which they may be taken:
 *   db.lock    one thread at a time on a connection (they are opened without SQLite's own mutex)
 *   file.turn  one write transaction at a time in this process on a file; SQLite would also keep
 *              writers apart, but by polling; here the next one starts at once
 *   keep.lock  the housekeeping thread's sleep
 * The first two are held across disk I/O on purpose; they are private to the store.
 */
#ifndef SKV_STORE_SQLITE_STORE_H
#define SKV_STORE_SQLITE_STORE_H

#include <assert.h>
#include <stdatomic.h>

#include <sqlite3.h>

#include <skv/lock.h>

#include "internal.h"

#define SCHEMA_VERSION 1
#define BUSY_MS 2000 /* how long a write waits for another process's transaction */
#define MAIN_APPLICATION_ID 0x534b566d       /* "SKVm" */
#define CHECKPOINT_APPLICATION_ID 0x534b5663 /* "SKVc" */

/* Every statement. A connection prepares those that it uses, once. */
#define SQL_MAP(X)                                                                                 \
	X(BEGIN, "BEGIN")                                                                          \
	X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                          \
	X(COMMIT, "COMMIT")                                                                        \
	X(ROLLBACK, "ROLLBACK")                                                                    \
	X(SETTLE, "UPDATE store SET settled = settled + 1")                                        \
	X(STORE_ID, "SELECT id FROM store")                                                        \
	X(GET, "SELECT value, version FROM registry WHERE key = ?1")                               \
	X(PUT, "INSERT INTO registry(key, version, value) VALUES(?1, ?2, ?3)"                      \
	       " ON CONFLICT(key) DO UPDATE SET version = ?2, value = ?3")                         \
	X(DEL, "DELETE FROM registry WHERE key = ?1")                                              \
	X(LIST, "SELECT key, value, version FROM registry WHERE key >= ?1 ORDER BY key")           \
	X(OWNER, "SELECT owner, fence, expires_boottime_ms, ttl_ms, boot_id FROM owner"            \
		 " WHERE partition = ?1")                                                          \
	X(FENCE, "SELECT fence FROM owner WHERE partition = ?1 AND owner <> ''")                   \
	X(OWN, "INSERT INTO owner(partition, owner, fence, expires_boottime_ms, ttl_ms, boot_id)"  \
	       " VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT(partition) DO UPDATE SET"              \
	       " owner = ?2, fence = ?3, expires_boottime_ms = ?4, ttl_ms = ?5, boot_id = ?6")     \
	X(RENEW, "UPDATE owner SET expires_boottime_ms = ?3, ttl_ms = ?4"                          \
		 " WHERE partition = ?1 AND fence = ?2 AND owner <> ''")                           \
	X(RELEASE, "UPDATE owner SET owner = '', fence = fence + 1"                                \
		   " WHERE partition = ?1 AND fence = ?2 AND owner <> ''")                         \
	X(APPEND, "INSERT INTO journal(id, total, sum, bytes) VALUES(?1, ?2, ?3, ?4)")             \
	X(TAIL,                                                                                    \
	  "SELECT id, total FROM journal WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1")     \
	X(TOTAL, "SELECT total FROM journal WHERE id = ?1")                                        \
	X(RECORDS,                                                                                 \
	  "SELECT id, total, sum, bytes FROM journal WHERE id BETWEEN ?1 AND ?2 ORDER BY id")      \
	X(OLD_ROWS, "SELECT id, length(bytes) FROM journal WHERE id BETWEEN ?1 AND ?2"             \
		    " ORDER BY id LIMIT ?3")                                                       \
	X(DROP_ROWS, "DELETE FROM journal WHERE id BETWEEN ?1 AND ?2")                             \
	X(HEAD, "SELECT id, slices, upto_seq, upto_total, building, last_id FROM checkpoint"       \
		" WHERE partition = ?1")                                                           \
	X(NEXT_HEAD, "SELECT partition FROM checkpoint WHERE partition >= ?1"                      \
		     " ORDER BY partition LIMIT 1")                                                \
	X(BUILD, "INSERT INTO checkpoint(partition, building, last_id) VALUES(?1, ?2, ?2)"         \
		 " ON CONFLICT(partition) DO UPDATE SET building = ?2, last_id = ?2")              \
	X(UNBUILD, "UPDATE checkpoint SET building = 0 WHERE partition = ?1 AND building <> 0"     \
		   " AND (?2 = 0 OR building = ?2)")                                               \
	X(FLIP, "UPDATE checkpoint SET id = ?2, slices = ?3, upto_seq = ?4, upto_total = ?5,"      \
		" building = 0 WHERE partition = ?1")                                              \
	X(SLICE, "INSERT INTO slice(partition, checkpoint, number, sum, bytes)"                    \
		 " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(partition, checkpoint, number)"          \
		 " DO UPDATE SET sum = ?4, bytes = ?5")                                            \
	X(COUNT_SLICES, "SELECT count(*) FROM slice WHERE partition = ?1 AND checkpoint = ?2"      \
			" AND number < ?3")                                                        \
	X(SLICES, "SELECT number, sum, bytes FROM slice WHERE partition = ?1 AND checkpoint = ?2"  \
		  " AND number < ?3 ORDER BY number")                                              \
	X(OLD_SLICE, "SELECT rowid FROM slice WHERE partition = ?1 AND checkpoint <= ?2"           \
		     " AND checkpoint <> ?3 AND checkpoint <> ?4 LIMIT 1")                         \
	X(DROP_SLICE, "DELETE FROM slice WHERE rowid = ?1")

enum sql {
#define SQL_ENUM(name, text) SQL_##name,
	SQL_MAP(SQL_ENUM)
#undef SQL_ENUM
	SQL_COUNT
};

#define COPIES_DAMAGE 128 /* bytes of a sentence */

struct sqlite_store;

/* A database file with its write-ahead log. */
struct file {
	struct sqlite_store *store;
	char *path;
	struct skv_mutex turn;
	/* A commit failed in a way that may have left its frames in the log: invisible to open
	 * connections, but a recovery would find them. The next transaction overwrites them
	 * first. */
	_Atomic bool unsettled;
	_Atomic int wal_frames; /* in the log at the newest commit of this process */
	_Atomic int wal_copied; /* of them in the database file, as housekeeping last saw it */
	_Atomic bool wal_held;  /* a reader keeps housekeeping from copying or beginning anew */
	_Atomic bool copy_lost; /* a sync of the database file failed: the log must stay */
	_Atomic uint64_t unsynced; /* bytes appended since the newest sync began */
	uint64_t held_until_us; /* the housekeeping thread's own */
};

/* A connection. */
struct db {
	struct file *file;
	bool full; /* a commit syncs the log, except after tx_begin_later without sync */
	struct skv_mutex lock;
	bool later; /* lock; of a full one: it is set not to sync now */
	sqlite3 *handle;               /* lock; NULL until used, and after an unknown outcome */
	sqlite3_stmt *stmt[SQL_COUNT]; /* lock */
};

/* Another host's lease as this store saw it first; guarded by admin.lock. */
#define SIGHTINGS 8
struct sighting {
	uint32_t partition;
	uint64_t fence, expires_ms;
	uint64_t seen_ms;
	bool used;
};

struct keep {
	pthread_t thread;
	bool running;
	struct skv_mutex lock;
	struct skv_cond wake;
	bool stop;   /* lock */
	bool kicked; /* lock */
	int said;    /* the last failure that was logged; the thread's own */
};

struct sqlite_store {
	struct file main, slices;
	struct db append;    /* the committer: durability as opened */
	struct db sync;      /* never writes; its handle of the log is what skv_store_sync syncs */
	struct db admin;     /* registry and ownership */
	struct db head;      /* checkpoint heads, in the main file */
	struct db slice;     /* checkpoint slices, in the second file */
	struct db housekeeping_main; /* housekeeping */
	struct db housekeeping_slices;
	bool in_memory; /* no files: no log, nothing to sync, no reserve */
	enum skv_durability durability;
	const struct skv_clock *clock;
	char *vfs; /* NULL = SQLite's default */
	char boot_id[37];
	char *reserve_path;
	uint64_t reserve_bytes;
	_Atomic bool reserve_gone; /* the reserve was given back to the disk and not rebuilt yet */
	_Atomic bool later;     /* FULL: something was appended without a sync */
	/* A sync failed: the records that it should have covered may be lost. */
	_Atomic bool sync_lost;
	_Atomic bool owned;     /* this object acquired a partition: it keeps the house */
	struct sighting sightings[SIGHTINGS];
	char damage[COPIES_DAMAGE]; /* admin.lock: what the newest acquire found; "" = nothing */
	struct keep keep;
};

/* ---- sqlite_db.c: connections, statements, transactions -------------------------------------- */

void db_init(struct db *d, struct file *f, bool full);
/* Closes the connection if it is open; it opens again when it is next used. */
void db_drop(struct db *d);
void db_destroy(struct db *d);
/* Opens `d` if it is closed. Caller holds d->lock, or `d` is not shared yet. */
int db_ready(struct db *d, struct skv_error *err);
/* Runs SQL text (schema, pragmas). */
int db_exec(struct db *d, const char *text, struct skv_error *err);
/* The statement, reset and without bindings; NULL when it cannot be prepared (see db_fail). */
sqlite3_stmt *db_stmt(struct db *d, enum sql which);
/* Runs a bound statement that gives no rows, and resets it. SQLITE_DONE or SQLite's error. */
int db_done(sqlite3_stmt *st);
/* The same for a statement without bindings. */
int db_run(struct db *d, enum sql which);
/* Reports SQLite's last error on this connection. Never SKV_OK. */
int db_fail(struct db *d, struct skv_error *err, const char *what);

/* A write transaction: takes lock and turn. After SKV_OK, tx_end must follow. */
int tx_begin(struct db *d, struct skv_error *err);
/* `later`: a connection that syncs at commits leaves it out this time. */
int tx_begin_later(struct db *d, bool later, struct skv_error *err);
/* Commits when `rc` is SKV_OK, else rolls back; gives both locks back. The result of the whole. */
int tx_end(struct db *d, int rc, struct skv_error *err);
/* Between tx_begin and tx_end; between one of the begins and its end. */
#define ASSERT_IN_TX(d) assert(skv_mutex_held(&(d)->lock) && skv_mutex_held(&(d)->file->turn))
#define ASSERT_IN_READ(d) assert(skv_mutex_held(&(d)->lock))
/* A moment's state: takes the lock. After SKV_OK, read_end must follow. */
int read_begin(struct db *d, struct skv_error *err);
void read_end(struct db *d);

/* ---- sqlite_open.c --------------------------------------------------------------------------- */

int sqlite_store_open(const struct skv_store_options *o, void **self, struct skv_error *err);
void sqlite_store_close(void *self);

/* ---- sqlite_files.c: the files around the databases ------------------------------------------ */

/* SKV_E_UNSUPPORTED if the path is on a file system that several machines share. */
int files_check_local(const char *path, struct skv_error *err);
bool files_type_is_shared(unsigned long type); /* statfs(2) f_type */
/* Makes the file, empty, mode 0600, if there is none. */
int files_make(const char *path, struct skv_error *err);
uint64_t files_free_bytes(const char *path); /* UINT64_MAX if unknown */
/* Reserves the space if that leaves as much again; quietly does nothing otherwise. */
void reserve_make(struct sqlite_store *s);
/* Gives the space back to the disk. False when there was none. */
bool reserve_release(struct sqlite_store *s);
/* Returns true if the space left on the disk is reserved for urgent writes: deletes, and the
 * ownership. */
bool reserve_only(struct sqlite_store *s);

/* ---- the calls, by subject ------------------------------------------------------------------- */

int sqlite_get(void *self, const char *key, struct skv_buf *value, uint64_t *version,
	       struct skv_error *err);
int sqlite_put(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
	       const void *bytes, size_t n, uint64_t *version, struct skv_error *err);
int sqlite_del(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
	       struct skv_error *err);
int sqlite_list(void *self, const char *prefix, skv_registry_fn fn, void *ctx,
		struct skv_error *err);

int sqlite_acquire(void *self, uint32_t partition, const char *owner, uint32_t ttl_ms,
		   uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err);
int sqlite_renew(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
		 struct skv_error *err);
uint64_t sqlite_renewed(void *self, uint32_t partition);
int sqlite_release(void *self, uint32_t partition, uint64_t fence, struct skv_error *err);
/* Inside a transaction or a read: SKV_E_FENCED unless `fence` is the newest. */
int check_fence(struct db *d, uint32_t partition, uint64_t fence, struct skv_error *err);

/* ---- sqlite_copies.c ------------------------------------------------------------------------- */

/* Inside the transaction that makes the other tables. */
int copies_make(struct db *d, struct skv_error *err);
/* Inside a transaction, before it writes: `damage` tells of rows that differ from their copies, ""
 * if none do. */
void copies_compare(struct db *d, char damage[COPIES_DAMAGE]);
/* Inside a read: SKV_E_CORRUPT when pages do not hold together. */
int copies_check_pages(struct db *d, struct skv_error *err);

/* The newest committed checkpoint of a partition; zeros when there is none. */
struct head {
	uint64_t id, upto_seq, upto_total, building, last_id;
	uint32_t slices;
};
int read_head(struct db *d, uint32_t partition, struct head *out, struct skv_error *err);

/* The newest journal record, or the checkpoint's end when there is none after it. */
struct tail {
	uint64_t seq;
	uint64_t total; /* bytes ever appended to the partition, up to and with it */
};
int read_tail(struct db *d, uint32_t partition, const struct head *h, struct tail *out,
	      struct skv_error *err);

/* A journal row's id and a row's checksum, which covers where it belongs as well. */
int64_t journal_id(uint32_t partition, uint64_t seq);
uint64_t journal_seq(int64_t id);
uint64_t journal_sum(int64_t id, uint64_t total, const void *bytes, size_t n);
uint64_t slice_sum(uint32_t partition, uint64_t checkpoint, uint32_t number, const void *bytes,
		   size_t n);

int sqlite_append(void *self, uint32_t partition, uint64_t fence, uint64_t seq, const void *bytes,
		  size_t n, unsigned flags, struct skv_error *err);
int sqlite_sync(void *self, uint32_t partition, struct skv_error *err);

int sqlite_checkpoint_begin(void *self, uint32_t partition, uint64_t fence, uint64_t *id,
			    struct skv_error *err);
int sqlite_checkpoint_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			    uint32_t number, const void *bytes, size_t n, struct skv_error *err);
int sqlite_checkpoint_commit(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			     uint32_t slices, uint64_t upto_seq, struct skv_error *err);
int sqlite_checkpoint_abort(void *self, uint32_t partition, uint64_t id);

int sqlite_load(void *self, uint32_t partition, uint64_t *base_seq,
		const struct skv_load_sink *sink, struct skv_error *err);
int sqlite_follow(void *self, uint32_t partition, struct skv_position *at,
		  const struct skv_load_sink *sink, struct skv_error *err);
int sqlite_stats(void *self, uint32_t partition, struct skv_store_stats *out,
		 struct skv_error *err);

/* ---- sqlite_housekeeping.c: the housekeeping thread ------------------------------------------ */

int housekeeping_start(struct sqlite_store *s, struct skv_error *err);
void housekeeping_stop(struct sqlite_store *s);
void housekeeping_kick(struct sqlite_store *s);
/* Frames in a log from which the thread is woken. */
#define KEEP_WAL_FRAMES 1024 /* 4 MiB */
#define KEEP_COPY_FRAMES \
	256 /* and so many of them not copied: SQLite sorts up to 4096 frames for each copy */
/* Waits a few milliseconds when appends run away from the thread. */
void housekeeping_pace(const struct file *f);

#endif
