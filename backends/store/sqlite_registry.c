/*
 * sqlite_registry.c - the registry of the SQLite store: small documents by key, with versions.
 *
 * Owns nothing; works through the admin connection, whose commits sync in both modes. Any thread. A
 * compare-and-set is one write transaction, which looks at the fence first, so it holds against
 * other processes as well.
 */
#include <assert.h>
#include <string.h>

#include "sqlite_store.h"

static int no_memory(struct skv_error *err)
{
	return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

/* value may be NULL. SKV_E_NOT_FOUND without a sentence of its own when there is no such row. */
static int read_row(struct db *d, const char *key, struct skv_buf *value, uint64_t *version,
		    struct skv_error *err)
{
	sqlite3_stmt *st = db_stmt(d, SQL_GET);
	int code, rc = SKV_OK;

	if (!st)
		return db_fail(d, err, "registry");
	sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	code = sqlite3_step(st);
	if (code == SQLITE_ROW) {
		if (value)
			skv_put_bytes(value, sqlite3_column_blob(st, 0),
				      (size_t)sqlite3_column_bytes(st, 0));
		*version = (uint64_t)sqlite3_column_int64(st, 1);
		if (value && value->failed)
			rc = no_memory(err);
	} else {
		rc = code == SQLITE_DONE ? SKV_E_NOT_FOUND : db_fail(d, err, "registry");
	}
	sqlite3_reset(st);
	return rc;
}

int sqlite_get(void *self, const char *key, struct skv_buf *value, uint64_t *version,
	       struct skv_error *err)
{
	struct db *d = &((struct sqlite_store *)self)->admin;
	uint64_t got = 0;
	int rc = read_begin(d, err);

	if (rc != SKV_OK)
		return rc;
	rc = read_row(d, key, value, &got, err);
	read_end(d);
	if (rc == SKV_OK)
		*version = got;
	return rc;
}

/* Inside a transaction. *version is the row's, SKV_VERSION_NONE when there is none. */
static int check_version(struct db *d, const char *key, uint64_t expect, uint64_t *version,
			 struct skv_error *err)
{
	int rc;

	ASSERT_IN_TX(d);
	rc = read_row(d, key, NULL, version, err);
	if (rc == SKV_E_NOT_FOUND)
		*version = SKV_VERSION_NONE;
	else if (rc != SKV_OK)
		return rc;
	if (expect == *version)
		return SKV_OK;
	return skv_fail(err, SKV_E_CONFLICT, NULL,
			*version ? "the entry has version %llu" : "there is no such entry",
			(unsigned long long)*version);
}

static int write_row(struct db *d, const char *key, uint64_t version, const void *bytes, size_t n,
		     struct skv_error *err)
{
	sqlite3_stmt *st;

	ASSERT_IN_TX(d);
	assert(n <= SKV_STORE_VALUE_MAX);
	st = db_stmt(d, SQL_PUT);
	if (!st)
		return db_fail(d, err, "registry");
	sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)version);
	sqlite3_bind_blob64(st, 3, bytes, n, SQLITE_STATIC);
	return db_done(st) == SQLITE_DONE ? SKV_OK : db_fail(d, err, "registry");
}

int sqlite_put(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
	       const void *bytes, size_t n, uint64_t *version, struct skv_error *err)
{
	struct db *d = &((struct sqlite_store *)self)->admin;
	uint64_t is = 0;
	int rc = tx_begin(d, err);

	if (rc != SKV_OK)
		return rc;
	if (fence)
		rc = check_fence(d, fence->partition, fence->number, err);
	if (rc == SKV_OK)
		rc = check_version(d, key, expect, &is, err);
	if (rc == SKV_OK)
		rc = write_row(d, key, is + 1, bytes, n, err);
	rc = tx_end(d, rc, err);
	if (rc == SKV_OK)
		*version = is + 1;
	return rc;
}

static int delete_row(struct db *d, const char *key, struct skv_error *err)
{
	sqlite3_stmt *st;

	ASSERT_IN_TX(d);
	st = db_stmt(d, SQL_DEL);
	if (!st)
		return db_fail(d, err, "registry");
	sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	return db_done(st) == SQLITE_DONE ? SKV_OK : db_fail(d, err, "registry");
}

int sqlite_del(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
	       struct skv_error *err)
{
	struct db *d = &((struct sqlite_store *)self)->admin;
	uint64_t is = 0;
	int rc = tx_begin(d, err);

	if (rc != SKV_OK)
		return rc;
	if (fence)
		rc = check_fence(d, fence->partition, fence->number, err);
	if (rc == SKV_OK)
		rc = read_row(d, key, NULL, &is, err);
	if (rc == SKV_OK)
		rc = check_version(d, key, expect, &is, err);
	if (rc == SKV_OK)
		rc = delete_row(d, key, err);
	return tx_end(d, rc, err);
}

static int collect(struct db *d, const char *prefix, struct skv_buf *b, struct skv_error *err)
{
	sqlite3_stmt *st = db_stmt(d, SQL_LIST);
	int code;

	if (!st)
		return db_fail(d, err, "registry");
	sqlite3_bind_text(st, 1, prefix, -1, SQLITE_STATIC);
	while ((code = sqlite3_step(st)) == SQLITE_ROW) {
		const char *key = (const char *)sqlite3_column_text(st, 0);

		if (!key || strncmp(key, prefix, strlen(prefix)) != 0)
			break;
		listing_add(b, key, sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1),
			    (uint64_t)sqlite3_column_int64(st, 2));
	}
	if (code != SQLITE_ROW && code != SQLITE_DONE) {
		int rc = db_fail(d, err, "registry");

		sqlite3_reset(st);
		return rc;
	}
	sqlite3_reset(st);
	return SKV_OK;
}

int sqlite_list(void *self, const char *prefix, skv_registry_fn fn, void *ctx,
		struct skv_error *err)
{
	struct db *d = &((struct sqlite_store *)self)->admin;
	struct skv_buf b;
	int rc = read_begin(d, err);

	if (rc != SKV_OK)
		return rc;
	skv_buf_init(&b);
	rc = collect(d, prefix, &b, err);
	read_end(d);
	if (rc == SKV_OK)
		return listing_deliver(&b, fn, ctx, err);
	skv_buf_destroy(&b);
	return rc;
}
