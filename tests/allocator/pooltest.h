/* pooltest.h - shared by the allocator's tests: a pool in one line, and checked calls. */
#ifndef SKV_TESTS_POOLTEST_H
#define SKV_TESTS_POOLTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <skv/mem.h>
#include <skv/pool.h>
#include <skv/status.h>

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

static inline struct skv_pool *make_pool(uint64_t unit, uint64_t header, uint64_t trailer)
{
	struct skv_pool_options o = { .unit = unit, .header = header, .trailer = trailer };
	struct skv_pool *p = skv_pool_create(&o);

	assert_non_null(p);
	return p;
}

static inline uint32_t make_class(struct skv_pool *p, uint64_t stride, uint64_t align)
{
	uint32_t id = UINT32_MAX;

	assert_int_equal(skv_pool_class(p, stride, align, &id), SKV_OK);
	return id;
}

static inline void check(const struct skv_pool *p)
{
	struct skv_error err;

	skv_error_clear(&err);
	if (skv_pool_check(p, &err))
		fail_msg("%s", err.message);
}

/* Takes `count` slots that must come as one run. */
static inline struct skv_run alloc_run(struct skv_pool *p, uint32_t class_id, uint32_t count)
{
	struct skv_run *runs = skv_malloc(count * sizeof *runs);
	struct skv_run run;
	uint32_t n = 0;

	assert_non_null(runs);
	assert_int_equal(skv_pool_alloc(p, class_id, count, runs, &n), SKV_OK);
	assert_int_equal(n, 1);
	assert_int_equal(runs[0].count, count);
	run = runs[0];
	skv_free(runs);
	check(p);
	return run;
}

static inline struct skv_slab_info slab_info(const struct skv_pool *p, uint32_t slab)
{
	struct skv_slab_info info;

	assert_true(skv_pool_slab(p, slab, &info));
	return info;
}

static inline struct skv_pool_stats pool_stats(const struct skv_pool *p)
{
	struct skv_pool_stats st;

	skv_pool_stats(p, &st);
	return st;
}

static inline struct skv_run sub_run(struct skv_run run, uint32_t at, uint32_t count)
{
	assert_true(at + count <= run.count);
	return (struct skv_run){ run.slab, run.first + at, count };
}

/* For skv_pool_each_slab. */
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
