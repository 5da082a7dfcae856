/*
 * bench_store.h - a work bench for store tests: a temporary directory, kinds of stores to run a
 * test against, and short ways to use and look at a store.
 */
#ifndef BENCH_STORE_H
#define BENCH_STORE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <skv/store.h>

#include "fault_store.h"
#include "memory_store.h"

/* A way to open a store. */
struct bench_kind {
	const char *name;
	const struct skv_store_ops *ops;
	enum skv_durability durability;
	bool under_fault; /* stack a fault store without a rule on it */
	const char *vfs;  /* NULL: files */
};

extern const struct bench_kind bench_kinds[5];
/* The kind that bench_open opens; set by the test program before it runs a group. */
extern const struct bench_kind *bench_kind;
/* NULL, or what names the store in place of a file in the bench's directory; set by the test
 * program before it runs a group. */
extern void (*bench_url)(char *out, size_t size);
/* Where temporary directories are made; "/tmp" unless the test program says otherwise. */
extern const char *bench_base;

struct bench {
	char dir[64];  /* removed at the end */
	char path[320]; /* of the database in it; the name of a memory store, or a URL */
	struct skv_error err;
	struct skv_fake_clock clock;
	struct sqlite3 *kept[2];
	struct skv_store_options options; /* options of bench_open; a test may change them */
};

int bench_setup(void **state);
int bench_teardown(void **state);
struct skv_store *bench_open(struct bench *b);
/* path + tail; valid until the next call */
const char *bench_file(struct bench *b, const char *tail);
/* Runs SQL on the database file (`tail` as above) with a connection of its own. */
void bench_sql(struct bench *b, const char *tail, const char *text);
int64_t bench_ask(struct bench *b, const char *tail, const char *text);

/* Succeed, or the test fails with the store's sentence. */
uint64_t bench_acquire(struct bench *b, struct skv_store *s, const char *owner, uint32_t ttl_ms);
void bench_append(struct bench *b, struct skv_store *s, uint64_t fence, uint64_t seq,
		  const char *text);
void bench_ok(const struct bench *b, int rc);
/* Batch bytes that depend on seq alone. */
void bench_fill(uint64_t seq, uint8_t *bytes, size_t n);

/* Returns the result of a load as text: "base|slice,slice|seq:record,seq:record". To be freed. */
char *bench_load(struct bench *b, struct skv_store *s, uint32_t partition);
/* The same compared. */
void bench_holds(struct bench *b, struct skv_store *s, uint32_t partition, const char *want);

#endif
