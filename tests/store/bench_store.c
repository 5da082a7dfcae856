/* bench_store.c - see bench_store.h. One thread. */
#include "bench_store.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include <skv/mem.h>

const struct bench_kind bench_kinds[5] = {
	{ "memory", &skv_store_memory, SKV_DURABILITY_FULL, false, NULL },
	{ "sqlite full", &skv_store_sqlite, SKV_DURABILITY_FULL, false, NULL },
	{ "sqlite normal", &skv_store_sqlite, SKV_DURABILITY_NORMAL, false, NULL },
	{ "fault over sqlite", &skv_store_sqlite, SKV_DURABILITY_FULL, true, NULL },
	{ "sqlite in memory", &skv_store_sqlite, SKV_DURABILITY_NORMAL, false,
	  SKV_STORE_MEMORY_VFS },
};
const struct bench_kind *bench_kind = &bench_kinds[1];
void (*bench_url)(char *out, size_t size);
const char *bench_base = "/tmp";

/* A store in memory goes with its last connection: the bench has one of its own. */
static void keep_in_memory(struct bench *b)
{
	static const char *const tails[2] = { "", "-checkpoint" };

	for (int i = 0; i < 2; i++)
		assert_int_equal(sqlite3_open_v2(bench_file(b, tails[i]), &b->kept[i],
						 SQLITE_OPEN_READWRITE, bench_kind->vfs),
				 SQLITE_OK);
}

int bench_setup(void **state)
{
	struct bench *b = calloc(1, sizeof *b);

	assert_non_null(b);
	snprintf(b->dir, sizeof b->dir, "%s/skv-store-XXXXXX", bench_base);
	assert_non_null(mkdtemp(b->dir));
	if (bench_url)
		bench_url(b->path, sizeof b->path);
	else
		snprintf(b->path, sizeof b->path, "%s/store.db", b->dir);
	skv_fake_clock_init(&b->clock, 1000000);
	b->options = (struct skv_store_options){
		.path = b->path,
		.durability = bench_kind->durability,
		.vfs = bench_kind->vfs,
		.clock = &b->clock.clock,
	};
	if (bench_kind->vfs)
		keep_in_memory(b);
	*state = b;
	return 0;
}

static void remove_dir(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	char file[512];

	while (d && (e = readdir(d)) != NULL) {
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		if (e->d_name[0] != '.')
			unlink(file);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

int bench_teardown(void **state)
{
	struct bench *b = *state;

	skv_mem_fail_at(0);
	skv_memory_store_forget(b->path);
	sqlite3_close(b->kept[0]);
	sqlite3_close(b->kept[1]);
	remove_dir(b->dir);
	free(b);
	return 0;
}

void bench_ok(const struct bench *b, int rc)
{
	if (rc != SKV_OK)
		fail_msg("%s: %s", skv_status_name(rc), b->err.message);
}

struct skv_store *bench_open(struct bench *b)
{
	struct skv_store *below, *s;

	bench_ok(b, skv_store_open(bench_kind->ops, &b->options, &below, &b->err));
	if (!bench_kind->under_fault)
		return below;
	bench_ok(b, skv_fault_store_open(below, &s, &b->err));
	return s;
}

const char *bench_file(struct bench *b, const char *tail)
{
	static char text[400];

	snprintf(text, sizeof text, "%s%s", b->path, tail);
	return text;
}

void bench_sql(struct bench *b, const char *tail, const char *text)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(bench_file(b, tail), &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", text, sqlite3_errmsg(db));
	sqlite3_close(db);
}

int64_t bench_ask(struct bench *b, const char *tail, const char *text)
{
	sqlite3_stmt *st;
	sqlite3 *db;
	int64_t n;

	assert_int_equal(sqlite3_open(bench_file(b, tail), &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	assert_int_equal(sqlite3_prepare_v2(db, text, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return n;
}

uint64_t bench_acquire(struct bench *b, struct skv_store *s, const char *owner, uint32_t ttl_ms)
{
	uint64_t fence = 0;

	bench_ok(b, skv_store_acquire(s, 0, owner, ttl_ms, &fence, NULL, 0, &b->err));
	assert_int_not_equal(fence, 0);
	return fence;
}

void bench_append(struct bench *b, struct skv_store *s, uint64_t fence, uint64_t seq,
		  const char *text)
{
	bench_ok(b, skv_store_append(s, 0, fence, seq, text, strlen(text), 0, &b->err));
}

void bench_fill(uint64_t seq, uint8_t *bytes, size_t n)
{
	uint64_t x = seq * 0x9e3779b97f4a7c15ull + 1;

	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		bytes[i] = (uint8_t)x;
	}
}

/* ---- load as text ---------------------------------------------------------------------------- */

struct text {
	struct skv_buf buf;
	const uint64_t *base;
	bool begun, records;
};

static void begin(struct text *t, bool records)
{
	if (!t->begun)
		skv_buf_printf(&t->buf, "%llu|", (unsigned long long)*t->base);
	else if (records == t->records)
		skv_buf_printf(&t->buf, ",");
	if (records && !t->records)
		skv_buf_printf(&t->buf, "|");
	t->begun = true;
	t->records = records;
}

static int add_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	struct text *t = ctx;

	(void)number;
	begin(t, false);
	skv_put_bytes(&t->buf, bytes, n);
	return SKV_OK;
}

static int add_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct text *t = ctx;

	begin(t, true);
	skv_buf_printf(&t->buf, "%llu:", (unsigned long long)seq);
	skv_put_bytes(&t->buf, bytes, n);
	return SKV_OK;
}

char *bench_load(struct bench *b, struct skv_store *s, uint32_t partition)
{
	uint64_t base = 99;
	struct text t = { .base = &base };
	const struct skv_load_sink sink = { add_slice, add_record, &t };
	char *out;

	bench_ok(b, skv_store_load(s, partition, &base, &sink, &b->err));
	if (!t.begun)
		begin(&t, false);
	if (!t.records)
		skv_put_u8(&t.buf, '|');
	skv_put_u8(&t.buf, 0);
	assert_false(t.buf.failed);
	out = strdup((char *)t.buf.data);
	skv_buf_destroy(&t.buf);
	return out;
}

void bench_holds(struct bench *b, struct skv_store *s, uint32_t partition, const char *want)
{
	char *got = bench_load(b, s, partition);

	assert_string_equal(got, want);
	free(got);
}
