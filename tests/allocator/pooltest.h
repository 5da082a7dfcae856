/* pooltest.h - what the allocator's tests share: a pool in one line, and checked calls. */
#ifndef KVB_TESTS_POOLTEST_H
#define KVB_TESTS_POOLTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <kvb/mem.h>
#include <kvb/pool.h>
#include <kvb/status.h>

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

static inline struct kvb_pool *make_pool(uint64_t unit, uint64_t header, uint64_t trailer)
{
	struct kvb_pool_options o = { .unit = unit, .header = header, .trailer = trailer };
	struct kvb_pool *p = kvb_pool_create(&o);

	assert_non_null(p);
	return p;
}

static inline uint32_t make_class(struct kvb_pool *p, uint64_t stride, uint64_t align)
{
	uint32_t id = UINT32_MAX;

	assert_int_equal(kvb_pool_class(p, stride, align, &id), KVB_OK);
	return id;
}

static inline void check(const struct kvb_pool *p)
{
	struct kvb_error err;

	kvb_error_clear(&err);
	if (kvb_pool_check(p, &err))
		fail_msg("%s", err.message);
}

/* Takes `count` slots that must come as one run. */
static inline struct kvb_run alloc_run(struct kvb_pool *p, uint32_t class_id, uint32_t count)
{
	struct kvb_run *runs = kvb_malloc(count * sizeof *runs);
	struct kvb_run run;
	uint32_t n = 0;

	assert_non_null(runs);
	assert_int_equal(kvb_pool_alloc(p, class_id, count, runs, &n), KVB_OK);
	assert_int_equal(n, 1);
	assert_int_equal(runs[0].count, count);
	run = runs[0];
	kvb_free(runs);
	check(p);
	return run;
}

static inline struct kvb_slab_info slab_info(const struct kvb_pool *p, uint32_t slab)
{
	struct kvb_slab_info info;

	assert_true(kvb_pool_slab(p, slab, &info));
	return info;
}

static inline struct kvb_pool_stats pool_stats(const struct kvb_pool *p)
{
	struct kvb_pool_stats st;

	kvb_pool_stats(p, &st);
	return st;
}

static inline struct kvb_run sub_run(struct kvb_run run, uint32_t at, uint32_t count)
{
	assert_true(at + count <= run.count);
	return (struct kvb_run){ run.slab, run.first + at, count };
}

/* For kvb_pool_each_slab. */
struct slab_list {
	uint32_t v[4096];
	uint32_t n;
};

static inline void list_slab(void *ctx, uint32_t slab)
{
	struct slab_list *l = ctx;

	assert_true(l->n < 4096);
	l->v[l->n++] = slab;
}

#endif
