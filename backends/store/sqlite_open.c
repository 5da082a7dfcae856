/*
 * sqlite_open.c - opens and closes the SQLite store: checks the file and its schema, creates a new
 * one.
 *
 * Owns the schema. A file is ours by SQLite's application id; one that is not ours is never
 * written, and neither is one of a newer schema. A new store is made in one transaction, so a crash
 * leaves either an empty database, which the next open takes for new, or a whole one. A store in
 * memory has the same schema in two of SQLite's "memdb" databases, which go with their last
 * connection: they have no log, and take at most MEMORY_BYTES each.
 *
 * One thread: nobody else knows the store yet, or any more.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <skv/hash.h>
#include <skv/log.h>
#include <skv/mem.h>

#include "sqlite_store.h"

#define HEADER 100 /* bytes of SQLite's file header; fileformat2.html, section 1.3 */
#define USER_VERSION_AT 60
#define APPLICATION_ID_AT 68
#define WAL_TRIES_US 2000000 /* how long to try to turn on the log of a new file */
#define MEMORY_BYTES ((sqlite3_int64)2047 << 20) /* SQLite allocates at most 2 GiB at once */

static const char main_schema[] =
	"CREATE TABLE store(id INTEGER NOT NULL, settled INTEGER NOT NULL) STRICT;"
	"CREATE TABLE registry(key TEXT PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT "
	"NULL) STRICT;"
	"CREATE TABLE owner(partition INTEGER PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT "
	"NULL,"
	" expires_boottime_ms INTEGER NOT NULL, ttl_ms INTEGER NOT NULL, boot_id TEXT NOT NULL) "
	"STRICT;"
	/* id = partition * 2^47 + seq; total = bytes ever appended to the partition, with this row
	 */
	"CREATE TABLE journal(id INTEGER PRIMARY KEY, total INTEGER NOT NULL, sum INTEGER NOT NULL,"
	" bytes BLOB NOT NULL) STRICT;"
	/* id = 0: none yet; building = the one being written, 0: none; last_id: the newest ever
	   begun */
	"CREATE TABLE checkpoint(partition INTEGER PRIMARY KEY, id INTEGER NOT NULL DEFAULT 0,"
	" slices INTEGER NOT NULL DEFAULT 0, upto_seq INTEGER NOT NULL DEFAULT 0,"
	" upto_total INTEGER NOT NULL DEFAULT 0, building INTEGER NOT NULL DEFAULT 0,"
	" last_id INTEGER NOT NULL DEFAULT 0) STRICT;";

static const char checkpoint_schema[] =
	"CREATE TABLE store(id INTEGER NOT NULL, settled INTEGER NOT NULL) STRICT;"
	"CREATE TABLE slice(partition INTEGER NOT NULL, checkpoint INTEGER NOT NULL, number "
	"INTEGER NOT NULL,"
	" sum INTEGER NOT NULL, bytes BLOB NOT NULL, UNIQUE(partition, checkpoint, number)) "
	"STRICT;";

struct kind {
	uint32_t application_id;
	const char *schema;
};

static const struct kind main_kind = { MAIN_APPLICATION_ID, main_schema };
static const struct kind checkpoint_kind = { CHECKPOINT_APPLICATION_ID, checkpoint_schema };

/* ---- whose file is it ------------------------------------------------------------------------ */

static int foreign(const struct file *f, struct skv_error *err)
{
	return skv_fail(err, SKV_E_FOREIGN, NULL,
			"%s is not a store of slabkv; it was left alone", f->path);
}

static int check_id(const struct file *f, uint32_t is, uint32_t version, uint32_t wanted,
		    struct skv_error *err)
{
	if (is != wanted)
		return foreign(f, err);
	if (version > SCHEMA_VERSION)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
				"%s has schema %u, this version knows %d: use the version of "
				"slabkvd that wrote it, or "
				"a newer one",
				f->path, version, SCHEMA_VERSION);
	return SKV_OK;
}

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Returns a number from a statement, or -1 without a row. */
static int64_t ask_number(sqlite3 *handle, const char *text)
{
	sqlite3_stmt *st;
	int64_t n = -1;

	if (sqlite3_prepare_v2(handle, text, -1, &st, NULL) != SQLITE_OK)
		return -1;
	if (sqlite3_step(st) == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return n;
}

/* The header has no application id: a new file of ours whose log holds it, an empty file, or a
 * foreign database. If it cannot be read without writing (after a crash halfway), the caller
 * continues: make_or_check checks again, inside its transaction. */
static int look_inside(sqlite3 *handle, const struct file *f, uint32_t wanted,
		       struct skv_error *err)
{
	int64_t tables = ask_number(handle, "SELECT count(*) FROM sqlite_schema");

	if (tables <= 0)
		return (sqlite3_errcode(handle) & 0xff) == SQLITE_NOTADB ? foreign(f, err) : SKV_OK;
	return check_id(f, (uint32_t)ask_number(handle, "PRAGMA application_id"),
			(uint32_t)ask_number(handle, "PRAGMA user_version"), wanted, err);
}

static int check_header(sqlite3 *handle, const struct file *f, uint32_t wanted,
			struct skv_error *err)
{
	static const uint8_t zeros[HEADER];
	uint8_t header[HEADER] = { 0 };
	sqlite3_file *raw = NULL;
	sqlite3_int64 size = 0;

	if (sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &raw) != SQLITE_OK ||
	    !raw || !raw->pMethods || raw->pMethods->xFileSize(raw, &size) != SQLITE_OK)
		return skv_fail(err, SKV_E_STORE_IO, NULL, "cannot read %s", f->path);
	if (size == 0)
		return SKV_OK;
	if (size < HEADER)
		return foreign(f, err);
	if (raw->pMethods->xRead(raw, header, HEADER, 0) != SQLITE_OK)
		return skv_fail(err, SKV_E_STORE_IO, NULL, "cannot read %s", f->path);
	/* Zeros: power may have been lost while the first page was written; SQLite's journal will
	 * tell. */
	if (memcmp(header, "SQLite format 3", 16) != 0 && memcmp(header, zeros, HEADER) != 0)
		return foreign(f, err);
	if (big_endian(header + APPLICATION_ID_AT) != 0)
		return check_id(f, big_endian(header + APPLICATION_ID_AT),
				big_endian(header + USER_VERSION_AT), wanted, err);
	return look_inside(handle, f, wanted, err);
}

/* Looks without writing, through SQLite: see sqlite_files.c about opening the file ourselves. */
static int check_ours(const struct file *f, const struct kind *kind, struct skv_error *err)
{
	const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	sqlite3 *handle;
	int rc;

	if (sqlite3_open_v2(f->path, &handle, flags, f->store->vfs) == SQLITE_OK)
		rc = check_header(handle, f, kind->application_id, err);
	else
		rc = skv_fail(err, SKV_E_STORE_IO, NULL, "cannot open %s: %s", f->path,
			      handle ? sqlite3_errmsg(handle) : "out of memory");
	sqlite3_close(handle);
	return rc;
}

/* Makes the file if there is none. */
static int claim_file(const struct file *f, const struct kind *kind, struct skv_error *err)
{
	int rc = f->store->in_memory ? SKV_OK : files_make(f->path, err);

	return rc == SKV_OK && !f->store->in_memory ? check_ours(f, kind, err) : rc;
}

/* ---- make it new ----------------------------------------------------------------------------- */

static int use_wal_once(struct db *d, bool *busy, struct skv_error *err)
{
	sqlite3_stmt *st = NULL;
	const char *mode = NULL;
	int rc = SKV_OK;

	assert(!d->file->store->in_memory && skv_mutex_held(&d->lock));
	if (sqlite3_prepare_v2(d->handle, "PRAGMA journal_mode = WAL", -1, &st, NULL) !=
		    SQLITE_OK ||
	    sqlite3_step(st) != SQLITE_ROW) {
		*busy = (sqlite3_errcode(d->handle) & 0xff) == SQLITE_BUSY;
		rc = db_fail(d, err, "cannot turn on the write-ahead log");
	} else {
		mode = (const char *)sqlite3_column_text(st, 0);
	}
	if (rc == SKV_OK && (!mode || strcmp(mode, "wal") != 0))
		rc = skv_fail(
			err, SKV_E_UNSUPPORTED, NULL,
			"%s: no write-ahead log is possible here: put the store on a local disk",
			d->file->path);
	sqlite3_finalize(st);
	return rc;
}

/* When several connections enable a new file's log together, SQLite refuses all but one without
 * waiting. */
static int use_wal(struct db *d, struct skv_error *err)
{
	const struct timespec moment = { 0, 5000000 };
	uint64_t deadline = skv_now_us() + WAL_TRIES_US;

	for (;;) {
		bool busy = false;
		int rc = use_wal_once(d, &busy, err);

		if (!busy || skv_now_us() >= deadline)
			return rc;
		nanosleep(&moment, NULL);
	}
}

static int make_schema(struct db *d, const struct kind *kind, uint64_t id, struct skv_error *err)
{
	char text[192];
	int n, rc;

	ASSERT_IN_TX(d);
	rc = db_exec(d, kind->schema, err);
	if (rc == SKV_OK && kind == &main_kind)
		rc = copies_make(d, err);
	n = snprintf(text, sizeof text,
		 "INSERT INTO store(id, settled) VALUES(%lld, 0); PRAGMA application_id = %u; "
		 "PRAGMA user_version = %d",
		 (long long)id, kind->application_id, SCHEMA_VERSION);
	assert(n > 0 && (size_t)n < sizeof text);
	return rc == SKV_OK ? db_exec(d, text, err) : rc;
}

/* Inside a transaction or a read. *empty tells a database that has no schema yet. */
static int check_schema(struct db *d, const struct kind *kind, bool *empty, struct skv_error *err)
{
	int64_t tables, is;

	ASSERT_IN_READ(d);
	tables = ask_number(d->handle, "SELECT count(*) FROM sqlite_schema");
	is = ask_number(d->handle, "PRAGMA application_id");

	if (tables < 0 || is < 0)
		return db_fail(d, err, "database");
	*empty = tables == 0 && is == 0;
	if (*empty)
		return SKV_OK;
	return check_id(d->file, (uint32_t)is,
			(uint32_t)ask_number(d->handle, "PRAGMA user_version"),
			kind->application_id, err);
}

/* Checks again inside the transaction: if two open a new file together, the second finds the schema
 * of the first. */
static int make_or_check(struct db *d, const struct kind *kind, uint64_t id, struct skv_error *err)
{
	bool empty = false;
	int rc = tx_begin(d, err);

	if (rc != SKV_OK)
		return rc;
	rc = check_schema(d, kind, &empty, err);
	if (rc == SKV_OK && empty)
		rc = make_schema(d, kind, id, err);
	rc = tx_end(d, rc, err);
	/* The header then tells whose it is without the log. It is only a convenience: errors do
	 * not matter. */
	if (rc == SKV_OK && empty)
		sqlite3_wal_checkpoint_v2(d->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	return rc;
}

static int set_limit(struct db *d, struct skv_error *err)
{
	sqlite3_int64 bytes = MEMORY_BYTES;

	assert(d->file->store->in_memory && skv_mutex_held(&d->lock));
	return sqlite3_file_control(d->handle, "main", SQLITE_FCNTL_SIZE_LIMIT, &bytes) == SQLITE_OK
		       ? SKV_OK
		       : db_fail(d, err, "database");
}

/* Writes only when there is no schema: an owner that is busy, or frozen inside a commit, keeps the
 * write lock, and a standby must start all the same. (Turning on the log where it is on only
 * reads.) */
static int open_database(struct db *d, const struct kind *kind, uint64_t id, struct skv_error *err)
{
	bool empty = false;
	int rc;

	skv_mutex_lock(&d->lock);
	rc = db_ready(d, err);
	if (rc == SKV_OK)
		rc = d->file->store->in_memory ? set_limit(d, err) : use_wal(d, err);
	skv_mutex_unlock(&d->lock);
	if (rc == SKV_OK)
		rc = read_begin(d, err);
	if (rc != SKV_OK)
		return rc;
	rc = check_schema(d, kind, &empty, err);
	read_end(d);
	return rc == SKV_OK && empty ? make_or_check(d, kind, id, err) : rc;
}

static int read_id(struct db *d, uint64_t *id, struct skv_error *err)
{
	sqlite3_stmt *st;
	int rc = read_begin(d, err);

	if (rc != SKV_OK)
		return rc;
	st = db_stmt(d, SQL_STORE_ID);
	if (st && sqlite3_step(st) == SQLITE_ROW)
		*id = (uint64_t)sqlite3_column_int64(st, 0);
	else
		rc = db_fail(d, err, "database");
	if (st)
		sqlite3_reset(st);
	read_end(d);
	return rc;
}

static int open_files(struct sqlite_store *s, struct skv_error *err)
{
	uint64_t fresh, id = 0, other = 0;
	int rc = claim_file(&s->main, &main_kind, err);

	skv_random(&fresh, sizeof fresh);
	if (rc == SKV_OK)
		rc = open_database(&s->admin, &main_kind, fresh >> 1, err);
	if (rc == SKV_OK)
		rc = read_id(&s->admin, &id, err);
	if (rc == SKV_OK)
		rc = claim_file(&s->slices, &checkpoint_kind, err);
	if (rc == SKV_OK)
		rc = open_database(&s->slice, &checkpoint_kind, id, err);
	if (rc == SKV_OK)
		rc = read_id(&s->slice, &other, err);
	if (rc == SKV_OK && id != other)
		rc = skv_fail(err, SKV_E_FOREIGN, NULL, "%s belongs to another store than %s",
			      s->slices.path, s->main.path);
	return rc == SKV_E_UNKNOWN_OUTCOME
		       ? skv_fail(err, SKV_E_STORE_IO, NULL, "cannot write %s", s->main.path)
		       : rc;
}

/* ---- open and close -------------------------------------------------------------------------- */

static void init_parts(struct sqlite_store *s, const struct skv_store_options *o)
{
	s->durability = o->durability;
	s->clock = o->clock ? o->clock : &skv_clock_system;
	skv_boot_id(s->boot_id);
	s->main.store = s->slices.store = s;
	skv_mutex_init(&s->main.turn);
	skv_mutex_init(&s->slices.turn);
	db_init(&s->append, &s->main, o->durability == SKV_DURABILITY_FULL);
	db_init(&s->sync, &s->main, true);
	db_init(&s->admin, &s->main, true);
	db_init(&s->head, &s->main, true);
	db_init(&s->slice, &s->slices, true);
	/* Housekeeping deletes only dead rows: its commits need no sync. */
	db_init(&s->housekeeping_main, &s->main, false);
	db_init(&s->housekeeping_slices, &s->slices, false);
	skv_mutex_init(&s->keep.lock);
	skv_cond_init(&s->keep.wake);
}

/* `path` with a tail; not taken for a URI, whatever it begins with. */
static char *path_with(const char *path, const char *tail)
{
	const char *here = *path == '/' ? "" : "./";
	size_t n = strlen(here) + strlen(path) + strlen(tail) + 1;
	char *out = skv_malloc(n);

	if (out)
		snprintf(out, n, "%s%s%s", here, path, tail);
	return out;
}

static int init_paths(struct sqlite_store *s, const struct skv_store_options *o,
		      struct skv_error *err)
{
	const bool private = strcmp(o->path, SKV_STORE_IN_MEMORY) == 0;
	const char *path = o->path, *vfs = private ? SKV_STORE_MEMORY_VFS : o->vfs;
	char name[32];
	uint64_t number;

	skv_random(&number, sizeof number);
	snprintf(name, sizeof name, "/slabkv-%016llx", (unsigned long long)number);
	if (private)
		path = name;
	s->in_memory = vfs && strcmp(vfs, SKV_STORE_MEMORY_VFS) == 0;
	assert(!s->in_memory || *path == '/'); /* memdb shares no others between connections */
	s->reserve_bytes = s->in_memory ? 0 : o->reserve_bytes;
	s->main.path = path_with(path, "");
	s->slices.path = path_with(path, "-checkpoint");
	s->reserve_path = path_with(path, "-reserve");
	s->vfs = vfs ? skv_strdup(vfs) : NULL;
	if (!s->main.path || !s->slices.path || !s->reserve_path || (vfs && !s->vfs))
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	return SKV_OK;
}

/* A connection that is open and has read has its log open too, which sync needs. */
static int open_sync(struct sqlite_store *s, struct skv_error *err)
{
	uint64_t id;

	return read_id(&s->sync, &id, err);
}

int sqlite_store_open(const struct skv_store_options *o, void **self, struct skv_error *err)
{
	struct sqlite_store *s;
	int rc;

	if (*o->path == '\0')
		return skv_fail(err, SKV_E_INVALID, "path", "the path of the database is empty");
	s = skv_calloc(1, sizeof *s);
	if (!s)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	init_parts(s, o);
	rc = init_paths(s, o, err);
	if (rc == SKV_OK && !s->in_memory)
		rc = files_check_local(s->main.path, err);
	if (rc == SKV_OK)
		rc = open_files(s, err);
	if (rc == SKV_OK)
		rc = open_sync(s, err);
	if (rc == SKV_OK)
		rc = housekeeping_start(s, err);
	if (rc != SKV_OK) {
		sqlite_store_close(s);
		return rc;
	}
	reserve_make(s);
	*self = s;
	return SKV_OK;
}

void sqlite_store_close(void *self)
{
	struct sqlite_store *s = self;
	struct db *all[] = { &s->append, &s->sync,      &s->admin,      &s->head,
			     &s->slice,  &s->housekeeping_main, &s->housekeeping_slices };

	housekeeping_stop(s);
	assert(!s->keep.running);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		db_destroy(all[i]);
	skv_mutex_destroy(&s->main.turn);
	skv_mutex_destroy(&s->slices.turn);
	skv_cond_destroy(&s->keep.wake);
	skv_mutex_destroy(&s->keep.lock);
	skv_free(s->main.path);
	skv_free(s->slices.path);
	skv_free(s->reserve_path);
	skv_free(s->vfs);
	skv_free(s);
}
