/*
 * sqlite_owner.c - ownership leases of the SQLite store.
 *
 * Owns the rows of table `owner` and the memory of other hosts' leases (`sightings`, under the
 * admin connection's lock). A lease runs on CLOCK_BOOTTIME of the boot that wrote it; both
 * processes read the same clock, since the database is on a local disk. A lease has ended when
 *   - its time has passed on this boot, or
 *   - its process is provably dead, or
 *   - it was written before the last boot of a host of this name: that process cannot live, or
 *   - it comes from another host's boot (a disk that was moved, a clone) and stood unchanged for
 *     its whole length while this store watched.
 *
 * Any thread, by the admin connection. A standby that polls only reads.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "sqlite_store.h"

struct lease {
	char owner[192]; /* "" = no owner */
	char boot_id[37];
	uint64_t fence;
	uint64_t expires_ms;
	uint64_t ttl_ms;
};

static void copy_text(char *out, size_t size, sqlite3_stmt *st, int column)
{
	const char *text = (const char *)sqlite3_column_text(st, column);

	snprintf(out, size, "%s", text ? text : "");
}

static int read_lease(struct db *d, uint32_t partition, struct lease *out, struct skv_error *err)
{
	sqlite3_stmt *st = db_stmt(d, SQL_OWNER);
	int code, rc = SKV_OK;

	memset(out, 0, sizeof *out);
	if (!st)
		return db_fail(d, err, "owner");
	sqlite3_bind_int64(st, 1, partition);
	code = sqlite3_step(st);
	if (code == SQLITE_ROW) {
		copy_text(out->owner, sizeof out->owner, st, 0);
		out->fence = (uint64_t)sqlite3_column_int64(st, 1);
		out->expires_ms = (uint64_t)sqlite3_column_int64(st, 2);
		out->ttl_ms = (uint64_t)sqlite3_column_int64(st, 3);
		copy_text(out->boot_id, sizeof out->boot_id, st, 4);
	} else if (code != SQLITE_DONE) {
		rc = db_fail(d, err, "owner");
	}
	sqlite3_reset(st);
	return rc;
}

int check_fence(struct db *d, uint32_t partition, uint64_t fence, struct skv_error *err)
{
	sqlite3_stmt *st;
	int code, rc = SKV_OK;

	ASSERT_IN_READ(d);
	st = db_stmt(d, SQL_FENCE);
	if (!st)
		return db_fail(d, err, "owner");
	sqlite3_bind_int64(st, 1, partition);
	code = sqlite3_step(st);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		rc = db_fail(d, err, "owner");
	else if (code == SQLITE_DONE || (uint64_t)sqlite3_column_int64(st, 0) != fence)
		rc = skv_fail(err, SKV_E_FENCED, NULL, "partition %u has a newer owner", partition);
	sqlite3_reset(st);
	return rc;
}

/* Returns true once the foreign lease has been seen unchanged for its whole length. */
static bool waited_out(struct sqlite_store *s, uint32_t partition, const struct lease *l,
		       uint64_t now)
{
	struct sighting *at = &s->sightings[partition % SIGHTINGS];

	assert(skv_mutex_held(&s->admin.lock));
	if (!at->used || at->partition != partition || at->fence != l->fence ||
	    at->expires_ms != l->expires_ms)
		*at = (struct sighting){ partition, l->fence, l->expires_ms, now, true };
	return now - at->seen_ms >= l->ttl_ms;
}

uint64_t sqlite_renewed(void *self, uint32_t partition)
{
	struct sqlite_store *s = self;
	const struct sighting *at = &s->sightings[partition % SIGHTINGS];
	uint64_t seen;

	skv_mutex_lock(&s->admin.lock);
	seen = at->used && at->partition == partition ? at->seen_ms : 0;
	skv_mutex_unlock(&s->admin.lock);
	return seen;
}

static bool same_host(const char *a, const char *b)
{
	size_t n = owner_host(a);

	return n > 0 && n == owner_host(b) && strncmp(a, b, n) == 0;
}

static bool may_take(struct sqlite_store *s, uint32_t partition, const char *owner,
		     const struct lease *l, uint64_t now)
{
	bool over;

	if (l->owner[0] == '\0' || strcmp(l->owner, owner) == 0)
		return true;
	over = waited_out(s, partition, l, now); /* always, so that it sees each renewal */
	if (strcmp(l->boot_id, s->boot_id) == 0)
		return now >= l->expires_ms || skv_owner_is_dead(l->owner);
	return same_host(l->owner, owner) || over;
}

struct wish {
	uint32_t partition;
	const char *owner;
	uint32_t ttl_ms;
	uint64_t now;
};

static int check_free(struct sqlite_store *s, const struct wish *w, struct lease *l,
		      struct skv_error *err)
{
	int rc = read_lease(&s->admin, w->partition, l, err);

	if (rc == SKV_OK && !may_take(s, w->partition, w->owner, l, w->now))
		rc = skv_fail(err, SKV_E_NOT_OWNER, NULL, "partition %u belongs to %s",
			      w->partition, l->owner);
	return rc;
}

/* A new owner also ends the checkpoint that the last one may have left unfinished. */
static int write_lease(struct sqlite_store *s, const struct wish *w, uint64_t fence,
		       struct skv_error *err)
{
	sqlite3_stmt *st;

	ASSERT_IN_TX(&s->admin);
	assert(w->ttl_ms > 0);
	st = db_stmt(&s->admin, SQL_OWN);
	if (!st)
		return db_fail(&s->admin, err, "owner");
	sqlite3_bind_int64(st, 1, w->partition);
	sqlite3_bind_text(st, 2, w->owner, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 3, (sqlite3_int64)fence);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)(w->now + w->ttl_ms));
	sqlite3_bind_int64(st, 5, w->ttl_ms);
	sqlite3_bind_text(st, 6, s->boot_id, -1, SQLITE_STATIC);
	if (db_done(st) != SQLITE_DONE)
		return db_fail(&s->admin, err, "owner");
	if (s->damage[0])
		return SKV_OK; /* not overwritten: the next owner finds it, too */
	st = db_stmt(&s->admin, SQL_UNBUILD);
	if (!st)
		return db_fail(&s->admin, err, "checkpoint");
	sqlite3_bind_int64(st, 1, w->partition);
	sqlite3_bind_int64(st, 2, 0);
	return db_done(st) == SQLITE_DONE ? SKV_OK : db_fail(&s->admin, err, "checkpoint");
}

static int take(struct sqlite_store *s, const struct wish *w, struct lease *l,
		struct skv_error *err)
{
	int rc = tx_begin(&s->admin, err);

	if (rc != SKV_OK)
		return rc;
	rc = check_free(s, w, l, err);
	if (rc == SKV_OK)
		copies_compare(&s->admin, s->damage);
	if (rc == SKV_OK)
		rc = write_lease(s, w, l->fence + 1, err);
	return tx_end(&s->admin, rc, err);
}

int sqlite_acquire(void *self, uint32_t partition, const char *owner, uint32_t ttl_ms,
		   uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err)
{
	struct sqlite_store *s = self;
	const struct wish w = { partition, owner, ttl_ms, skv_now_ms(s->clock) };
	struct lease l = { 0 };
	int rc = read_begin(&s->admin, err);

	if (rc == SKV_OK) {
		rc = check_free(s, &w, &l, err);
		read_end(&s->admin);
	}
	if (rc == SKV_OK && ttl_ms > 0)
		rc = take(s, &w, &l, err);
	if (rc == SKV_E_NOT_OWNER)
		snprintf(holder, holder_size, "%s", l.owner);
	if (rc != SKV_OK || ttl_ms == 0)
		return rc;
	*fence = l.fence + 1;
	atomic_store(&s->owned, true);
	housekeeping_kick(s);
	return SKV_OK;
}

/* Inside a transaction: the statement is bound; it must have found its row. */
static int change_lease(struct db *d, sqlite3_stmt *st, uint32_t partition, struct skv_error *err)
{
	ASSERT_IN_TX(d);
	if (db_done(st) != SQLITE_DONE)
		return db_fail(d, err, "owner");
	if (sqlite3_changes(d->handle) == 0)
		return skv_fail(err, SKV_E_FENCED, NULL, "partition %u has a newer owner",
				partition);
	return SKV_OK;
}

static int renew_once(struct sqlite_store *s, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
		      struct skv_error *err)
{
	uint64_t now = skv_now_ms(s->clock);
	sqlite3_stmt *st;
	int rc = tx_begin(&s->admin, err);

	if (rc != SKV_OK)
		return rc;
	st = db_stmt(&s->admin, SQL_RENEW);
	if (st) {
		sqlite3_bind_int64(st, 1, partition);
		sqlite3_bind_int64(st, 2, (sqlite3_int64)fence);
		sqlite3_bind_int64(st, 3, (sqlite3_int64)(now + ttl_ms));
		sqlite3_bind_int64(st, 4, ttl_ms);
		rc = change_lease(&s->admin, st, partition, err);
	} else {
		rc = db_fail(&s->admin, err, "owner");
	}
	return tx_end(&s->admin, rc, err);
}

int sqlite_renew(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
		 struct skv_error *err)
{
	struct sqlite_store *s = self;
	int rc = renew_once(s, partition, fence, ttl_ms, err);

	if (rc != SKV_E_STORE_FULL || !reserve_release(s))
		return rc;
	skv_error_clear(err); /* lookups continue while the disk is full */
	return renew_once(s, partition, fence, ttl_ms, err);
}

int sqlite_release(void *self, uint32_t partition, uint64_t fence, struct skv_error *err)
{
	struct sqlite_store *s = self;
	sqlite3_stmt *st;
	int rc = tx_begin(&s->admin, err);

	if (rc != SKV_OK)
		return rc;
	st = db_stmt(&s->admin, SQL_RELEASE);
	if (st) {
		sqlite3_bind_int64(st, 1, partition);
		sqlite3_bind_int64(st, 2, (sqlite3_int64)fence);
		rc = change_lease(&s->admin, st, partition, err);
	} else {
		rc = db_fail(&s->admin, err, "owner");
	}
	return tx_end(&s->admin, rc, err);
}
