/*
 * sqlite_copies.c - a copy of every important row, on other pages of the same database.
 *
 * Journal rows and slices carry checksums. Rows of registry, owner and checkpoint do not, and
 * a page that was damaged where they lie could read as a smaller store, or an empty one. So
 * each of these tables has a twin that triggers keep, in the same transaction, whatever
 * program writes: also one that does not know of it. An acquire of a partition compares them before
 * it writes anything. If they differ, that is remembered, and no load is answered.
 *
 * By the admin connection, inside its transaction.
 */
#include <stdio.h>
#include <string.h>

#include "sqlite_store.h"

/* name, columns, the same of a trigger's row, the key */
#define COPIES(X)                                                                                  \
	X(registry, "key TEXT PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL",         \
	  "key, version, value",                                                                   \
	  "new.key, new.version, new.value", "key")                                                \
	X(owner,                                                                                   \
	  "partition INTEGER PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL, "           \
	  "expires_boottime_ms INTEGER NOT NULL,"                                                  \
	  " ttl_ms INTEGER NOT NULL, boot_id TEXT NOT NULL",                                       \
	  "partition, owner, fence, expires_boottime_ms, ttl_ms, boot_id",                         \
	  "new.partition, new.owner, new.fence, new.expires_boottime_ms, new.ttl_ms, new.boot_id", \
	  "partition")                                                                             \
	X(checkpoint,                                                                              \
	  "partition INTEGER PRIMARY KEY, id INTEGER NOT NULL, slices INTEGER NOT NULL, upto_seq " \
	  "INTEGER NOT NULL,"                                                                      \
	  " upto_total INTEGER NOT NULL, building INTEGER NOT NULL, last_id INTEGER NOT NULL",     \
	  "partition, id, slices, upto_seq, upto_total, building, last_id",                        \
	  "new.partition, new.id, new.slices, new.upto_seq, new.upto_total, "                      \
	  "new.building, new.last_id", "partition")

#define MAKE(name, columns, list, row, key)                                     \
	"CREATE TABLE copy_" #name "(" columns ") STRICT;"                      \
	"INSERT INTO copy_" #name "(" list ") SELECT " list " FROM " #name ";"  \
	"CREATE TRIGGER copy_" #name "_made AFTER INSERT ON " #name " BEGIN"    \
	" DELETE FROM copy_" #name " WHERE " key " = new." key ";"              \
	" INSERT INTO copy_" #name "(" list ") VALUES(" row "); END;"           \
	"CREATE TRIGGER copy_" #name "_changed AFTER UPDATE ON " #name " BEGIN" \
	" DELETE FROM copy_" #name " WHERE " key " = old." key ";"              \
	" INSERT INTO copy_" #name "(" list ") VALUES(" row "); END;"           \
	"CREATE TRIGGER copy_" #name "_gone AFTER DELETE ON " #name " BEGIN"    \
	" DELETE FROM copy_" #name " WHERE " key " = old." key "; END;"
static const char make_copies[] = COPIES(MAKE);

/* Rows without an equal one in the other table. Both ways find it by its key, so through both
 * indexes: a damaged index differs, too. `new` is a row of the outer table, as it is in the
 * triggers. Nothing is sorted. */
#define ALONE(of, in, list, row, key)                                                       \
	"(SELECT count(*) FROM " of " AS new WHERE NOT EXISTS (SELECT 1 FROM " in " WHERE " \
	key " = new." key " AND (" list ") IS (" row ")))"
#define DIFFERS(name, columns, list, row, key)                                  \
	{ #name, "SELECT " ALONE(#name, "copy_" #name, list, row, key) " + "    \
		 ALONE("copy_" #name, #name, list, row, key) },
static const struct {
	const char *name, *differs;
} tables[] = { COPIES(DIFFERS) };

/* Returns -1 if the database gave no answer, or has no such table. */
static int64_t ask(struct db *d, const char *text)
{
	sqlite3_stmt *st = NULL;
	int64_t n = -1;

	if (sqlite3_prepare_v2(d->handle, text, -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return n;
}

int copies_make(struct db *d, struct skv_error *err)
{
	ASSERT_IN_TX(d);
	return db_exec(d, make_copies, err);
}

void copies_compare(struct db *d, char damage[COPIES_DAMAGE])
{
	ASSERT_IN_TX(d);
	damage[0] = '\0';
	for (size_t i = 0; i < sizeof tables / sizeof tables[0] && !damage[0]; i++) {
		int64_t n = ask(d, tables[i].differs);

		if (n != 0)
			snprintf(
				damage, COPIES_DAMAGE,
				"the database is damaged: rows of table '%s' differ "
				"from their copies",
				tables[i].name);
	}
}

int copies_check_pages(struct db *d, struct skv_error *err)
{
	sqlite3_stmt *st = NULL;
	const char *text;
	int rc = SKV_OK;

	ASSERT_IN_READ(d);
	if (sqlite3_prepare_v2(d->handle, "PRAGMA quick_check(1)", -1, &st, NULL) !=
		    SQLITE_OK ||
	    sqlite3_step(st) != SQLITE_ROW)
		rc = db_fail(d, err, "database");
	text = rc == SKV_OK ? (const char *)sqlite3_column_text(st, 0) : NULL;
	if (rc == SKV_OK && (!text || strcmp(text, "ok") != 0))
		rc = skv_fail(err, SKV_E_CORRUPT, NULL, "the database is damaged: %s (%s)",
			      text ? text : "?", d->file->path);
	sqlite3_finalize(st);
	return rc;
}
