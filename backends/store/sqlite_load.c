/*
 * sqlite_load.c - loads a partition, and computes the journal's size.
 *
 * Load opens connections of its own and gives them back at its end, so it waits for nobody, keeps
 * no cache, and its sink may call the store. It trusts nothing: every slice and row must carry the
 * sum of its bytes and its place, numbers must follow each other, totals must add up.
 *
 * Any thread. Holds only the locks of its own connections.
 */
#include "sqlite_store.h"

#define FOLLOW_BYTES (1u << 20) /* of one call */

struct load {
	uint32_t partition;
	struct db main, slices;
	struct head head;
	const struct skv_load_sink *sink;
	struct skv_error *err;
};

/* A transaction's view begins with its first read, not with BEGIN. */
static int fix_view(struct db *d, struct skv_error *err)
{
	sqlite3_stmt *st = db_stmt(d, SQL_STORE_ID);
	int rc = SKV_OK;

	if (!st || sqlite3_step(st) != SQLITE_ROW)
		rc = db_fail(d, err, "database");
	if (st)
		sqlite3_reset(st);
	return rc;
}

static int read_slices_begin(struct load *l)
{
	int rc = read_begin(&l->slices, l->err);

	if (rc != SKV_OK)
		return rc;
	rc = fix_view(&l->slices, l->err);
	if (rc != SKV_OK)
		read_end(&l->slices);
	return rc;
}

static int read_main_begin(struct load *l)
{
	int rc = read_begin(&l->main, l->err);

	if (rc != SKV_OK)
		return rc;
	rc = read_head(&l->main, l->partition, &l->head, l->err);
	if (rc != SKV_OK)
		read_end(&l->main);
	return rc;
}

/*
 * Views of both files that fit together. Slices are written before a head names them and deleted
 * after it has left them, so a view of the slices is right for a head that was there before it and
 * is there after it. Two reads of the main file around it tell; they differ only if a checkpoint
 * was committed just then.
 */
static int views_begin(struct load *l)
{
	for (;;) {
		uint64_t before;
		int rc = read_main_begin(l);

		if (rc != SKV_OK)
			return rc;
		before = l->head.id;
		read_end(&l->main);
		rc = read_slices_begin(l);
		if (rc != SKV_OK)
			return rc;
		rc = read_main_begin(l);
		if (rc == SKV_OK && l->head.id == before)
			return SKV_OK;
		read_end(&l->slices);
		if (rc != SKV_OK)
			return rc;
		read_end(&l->main);
	}
}

static void views_end(struct load *l)
{
	read_end(&l->main);
	read_end(&l->slices);
}

/* Steps to the next row. SKV_E_NOT_FOUND when there is none. */
static int next_row(struct db *d, sqlite3_stmt *st, struct skv_error *err)
{
	int code = sqlite3_step(st);

	if (code == SQLITE_ROW)
		return SKV_OK;
	return code == SQLITE_DONE ? SKV_E_NOT_FOUND : db_fail(d, err, "load");
}

/* A blob's bytes; SQLite may answer NULL for an empty one, or when it is out of memory. */
static int row_bytes(struct db *d, sqlite3_stmt *st, int column, const void **bytes, size_t *n,
		     struct skv_error *err)
{
	*bytes = sqlite3_column_blob(st, column);
	*n = (size_t)sqlite3_column_bytes(st, column);
	if (!*bytes && (sqlite3_errcode(d->handle) & 0xff) == SQLITE_NOMEM)
		return db_fail(d, err, "load");
	if (!*bytes)
		*bytes = "";
	return SKV_OK;
}

static int deliver_slice(struct load *l, sqlite3_stmt *st, uint32_t number)
{
	const void *bytes;
	size_t n;
	int rc = next_row(&l->slices, st, l->err);

	if (rc == SKV_E_NOT_FOUND ||
	    (rc == SKV_OK && (uint32_t)sqlite3_column_int64(st, 0) != number))
		return skv_fail(l->err, SKV_E_CORRUPT, NULL,
				"checkpoint %llu: slice %u of %u is missing (file %s)",
				(unsigned long long)l->head.id, number, l->head.slices,
				l->slices.file->path);
	if (rc == SKV_OK)
		rc = row_bytes(&l->slices, st, 2, &bytes, &n, l->err);
	if (rc != SKV_OK)
		return rc;
	if ((uint64_t)sqlite3_column_int64(st, 1) !=
	    slice_sum(l->partition, l->head.id, number, bytes, n))
		return skv_fail(l->err, SKV_E_CORRUPT, NULL,
				"checkpoint %llu: slice %u does not match its checksum",
				(unsigned long long)l->head.id, number);
	return l->sink->slice(l->sink->ctx, number, bytes, n);
}

static int deliver_slices(struct load *l)
{
	sqlite3_stmt *st = db_stmt(&l->slices, SQL_SLICES);
	int rc = SKV_OK;

	if (!st)
		return db_fail(&l->slices, l->err, "load");
	sqlite3_bind_int64(st, 1, l->partition);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)l->head.id);
	sqlite3_bind_int64(st, 3, l->head.slices);
	for (uint32_t i = 0; rc == SKV_OK && i < l->head.slices; i++)
		rc = deliver_slice(l, st, i);
	sqlite3_reset(st);
	return rc;
}

static int deliver_record(struct db *d, sqlite3_stmt *st, struct tail *last,
			  const struct skv_load_sink *sink, struct skv_error *err)
{
	int64_t id = sqlite3_column_int64(st, 0);
	uint64_t total = (uint64_t)sqlite3_column_int64(st, 1);
	const void *bytes;
	size_t n;
	int rc = row_bytes(d, st, 3, &bytes, &n, err);

	if (rc != SKV_OK)
		return rc;
	if (journal_seq(id) != last->seq + 1)
		return skv_fail(err, SKV_E_CORRUPT, NULL, "journal: record %llu is missing",
				(unsigned long long)last->seq + 1);
	if ((uint64_t)sqlite3_column_int64(st, 2) != journal_sum(id, total, bytes, n) ||
	    total != last->total + n)
		return skv_fail(err, SKV_E_CORRUPT, NULL,
				"journal: record %llu does not match its checksum",
				(unsigned long long)journal_seq(id));
	rc = sink->record(sink->ctx, last->seq + 1, bytes, n);
	if (rc == SKV_OK)
		*last = (struct tail){ last->seq + 1, total };
	return rc;
}

/* Delivers the records after *last and advances *last, whose last member gets the bytes delivered
 * to `most`. */
static int deliver_records(struct db *d, uint32_t partition, struct tail *last, uint64_t most,
			   const struct skv_load_sink *sink, struct skv_error *err)
{
	uint64_t begin = last->total;
	sqlite3_stmt *st = db_stmt(d, SQL_RECORDS);
	bool at_end = false;
	int rc;

	if (!st)
		return db_fail(d, err, "load");
	sqlite3_bind_int64(st, 1, journal_id(partition, last->seq + 1));
	sqlite3_bind_int64(st, 2, journal_id(partition, SKV_STORE_SEQ_MAX));
	do {
		rc = next_row(d, st, err);
		at_end = rc == SKV_E_NOT_FOUND;
		if (rc == SKV_OK)
			rc = deliver_record(d, st, last, sink, err);
	} while (rc == SKV_OK && last->total - begin < most);
	sqlite3_reset(st);
	return at_end ? SKV_OK : rc;
}

/* *last gets the newest record that was delivered. */
static int load_all(struct sqlite_store *s, uint32_t partition, uint64_t *base_seq,
		    struct tail *last, const struct skv_load_sink *sink, struct skv_error *err)
{
	struct load l = { .partition = partition, .sink = sink, .err = err };
	int rc;

	skv_mutex_lock(&s->admin.lock);
	rc = s->damage[0] ? skv_fail(err, SKV_E_CORRUPT, NULL, "%s (%s)", s->damage, s->main.path)
			  : SKV_OK;
	skv_mutex_unlock(&s->admin.lock);
	if (rc != SKV_OK)
		return rc;
	db_init(&l.main, &s->main, true);
	db_init(&l.slices, &s->slices, true);
	rc = views_begin(&l);
	if (rc == SKV_OK) {
		*base_seq = l.head.upto_seq;
		rc = copies_check_pages(&l.main, err);
		if (rc == SKV_OK)
			rc = deliver_slices(&l);
		*last = (struct tail){ l.head.upto_seq, l.head.upto_total };
		if (rc == SKV_OK)
			rc = deliver_records(&l.main, partition, last, UINT64_MAX, sink, err);
		views_end(&l);
	}
	db_destroy(&l.main);
	db_destroy(&l.slices);
	return rc;
}

int sqlite_load(void *self, uint32_t partition, uint64_t *base_seq,
		const struct skv_load_sink *sink, struct skv_error *err)
{
	struct tail last;

	return load_all(self, partition, base_seq, &last, sink, err);
}

static int follow_from_nowhere(struct sqlite_store *s, uint32_t partition, struct skv_position *at,
			       const struct skv_load_sink *sink, struct skv_error *err)
{
	struct tail last = { 0 };
	uint64_t base = 0;
	int rc = load_all(s, partition, &base, &last, sink, err);

	if (rc == SKV_OK)
		*at = (struct skv_position){ .known = true, .seq = last.seq, .newest = last.seq,
					     .base = base, .total = last.total };
	return rc;
}

/* On this host the journal only goes forward, but rows that a checkpoint has replaced go. */
static int follow_in_view(struct db *d, uint32_t partition, struct skv_position *at,
			  const struct skv_load_sink *sink, struct skv_error *err)
{
	struct tail newest, last = { at->seq, at->total };
	struct head h;
	int rc = read_head(d, partition, &h, err);

	ASSERT_IN_READ(d);
	if (rc == SKV_OK)
		rc = read_tail(d, partition, &h, &newest, err);
	if (rc != SKV_OK)
		return rc;
	if (newest.seq < at->seq || h.upto_seq > at->seq ||
	    (newest.seq == at->seq && newest.total != at->total))
		return skv_fail(err, SKV_E_CONFLICT, "seq", "record %llu is gone",
				(unsigned long long)at->seq + 1);
	at->newest = newest.seq;
	at->base = h.upto_seq;
	if (newest.seq > at->seq)
		rc = deliver_records(d, partition, &last, FOLLOW_BYTES, sink, err);
	at->seq = last.seq;
	at->total = last.total;
	return rc;
}

int sqlite_follow(void *self, uint32_t partition, struct skv_position *at,
		  const struct skv_load_sink *sink, struct skv_error *err)
{
	struct sqlite_store *s = self;
	int rc;

	if (!at->known)
		return follow_from_nowhere(s, partition, at, sink, err);
	rc = read_begin(&s->admin, err);
	if (rc != SKV_OK)
		return rc;
	rc = follow_in_view(&s->admin, partition, at, sink, err);
	read_end(&s->admin);
	return rc;
}

int sqlite_stats(void *self, uint32_t partition, struct skv_store_stats *out, struct skv_error *err)
{
	struct sqlite_store *s = self;
	struct head h;
	struct tail t;
	int rc = read_begin(&s->admin, err);

	if (rc != SKV_OK)
		return rc;
	rc = read_head(&s->admin, partition, &h, err);
	if (rc == SKV_OK)
		rc = read_tail(&s->admin, partition, &h, &t, err);
	read_end(&s->admin);
	if (rc == SKV_OK)
		*out = (struct skv_store_stats){
			.journal_bytes = t.total - h.upto_total,
			.last_seq = t.seq,
			.free_bytes = files_free_bytes(s->main.path),
		};
	return rc;
}
