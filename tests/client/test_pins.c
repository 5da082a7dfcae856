/*
 * test_pins.c - a call has its buffers from its entry to its exit: whatever other threads do
 * meanwhile, nobody gets one of them out of its pool, and their memory stays registered.
 * "Meanwhile" is here the end of each of the call's own calls to the manager: start or lookup,
 * before a byte has moved, and finish, after the last one has.
 */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

struct scene {
	struct fixture *f;
	struct slabkv_pool *pool;
	struct slabkv_buf buf;
	void *region; /* registered, or NULL */
	uint32_t seen;
};

static void meddle(void *ctx, const char *op, uint64_t us, int status)
{
	struct scene *s = ctx;
	struct slabkv_buf other;

	(void)us;
	assert_int_equal(status, SLABKV_OK);
	if (strcmp(op, "start") != 0 && strcmp(op, "lookup") != 0 && strcmp(op, "finish") != 0)
		return;
	s->seen++;
	if (s->region) {
		assert_int_equal(slabkv_memory_unregister(s->f->kv, s->region), SLABKV_E_IN_USE);
		return;
	}
	assert_int_equal(slabkv_pool_detach(s->f->kv, s->pool), SLABKV_E_IN_USE);
	/* Given back by somebody: away at once, but in nobody's hands before the call is over. */
	assert_int_equal(slabkv_pool_put(s->pool, s->buf.data),
			 strcmp(op, "finish") == 0 ? SLABKV_E_INVALID : SLABKV_OK);
	assert_int_equal(slabkv_pool_get(s->pool, 0, &other), SLABKV_E_TOO_MANY);
}

static void open_with(struct fixture *f, struct scene *s)
{
	*s = (struct scene){ .f = f };
	f->o.on_call = meddle;
	f->o.on_call_ctx = s;
	fixture_reopen(f, NULL, NULL);
}

static void one_block(struct scene *s, uint64_t key, bool put)
{
	struct slabkv_block block = { .bufs = &s->buf, .n_bufs = 1 };
	struct slabkv_keys keys = slabkv_keys_ints(&key, 1);
	struct slabkv *kv = s->f->kv;

	if (put)
		assert_int_equal(slabkv_put(kv, "m", &keys, NULL, &block,
					    sizeof(struct slabkv_block), NULL, NULL),
				 SLABKV_OK);
	else
		assert_int_equal(slabkv_get(kv, "m", &keys, NULL, &block,
					    sizeof(struct slabkv_block), NULL, NULL),
				 SLABKV_OK);
	assert_int_equal(block.result, put ? SLABKV_WRITTEN : SLABKV_HIT);
}

static void a_pools_buffer_is_the_calls_until_it_ends(void **state)
{
	struct slabkv_pool_options o;
	struct slabkv_pool_info info = { .size = sizeof(struct slabkv_pool_info) };
	struct fixture *f = *state;
	struct scene s;

	open_with(f, &s);
	slabkv_pool_options_init(&o, sizeof o);
	o.bytes = o.buffer_bytes = FIX_BYTES;
	assert_int_equal(slabkv_pool_create(&o, &s.pool, NULL), SLABKV_OK);
	assert_int_equal(slabkv_pool_attach(f->kv, s.pool, NULL), SLABKV_OK);
	for (int put = 1; put >= 0; put--) {
		assert_int_equal(slabkv_pool_get(s.pool, 0, &s.buf), SLABKV_OK);
		memset(s.buf.data, put ? 0x5a : 0, FIX_BYTES);
		s.seen = 0;
		one_block(&s, 1, put);
		assert_int_equal(s.seen, put ? 2 : 1);
		slabkv_pool_info(s.pool, &info);
		assert_int_equal(info.free, 1); /* the buffer came back with the end of the call */
		assert_int_equal(info.leaving, 0);
	}
	assert_int_equal(slabkv_pool_detach(f->kv, s.pool), SLABKV_OK);
	assert_int_equal(slabkv_pool_destroy(s.pool), SLABKV_OK);
}

static void registered_memory_stays_while_a_call_uses_it(void **state)
{
	struct fixture *f = *state;
	struct scene s;

	open_with(f, &s);
	s.region = calloc(1, FIX_BYTES);
	s.buf = (struct slabkv_buf){ s.region, FIX_BYTES };
	assert_int_equal(
		slabkv_memory_register(f->kv, s.region, FIX_BYTES, SLABKV_MEMORY_HOST, NULL),
		SLABKV_OK);
	one_block(&s, 1, true);
	assert_int_equal(s.seen, 2);
	one_block(&s, 1, false);
	assert_int_equal(s.seen, 3);
	assert_int_equal(slabkv_memory_unregister(f->kv, s.region), SLABKV_OK);
	free(s.region);
}

/* Also when the call fails. */
static void a_failed_call_lets_go(void **state)
{
	struct fixture *f = *state;
	struct slabkv_block block = { 0 };
	struct slabkv_keys none = { .form = SLABKV_KEYS_INT, .n = 1 };
	struct slabkv_buf buf;
	void *region = calloc(1, FIX_BYTES);

	buf = (struct slabkv_buf){ region, FIX_BYTES };
	block = (struct slabkv_block){ .bufs = &buf, .n_bufs = 1 };
	assert_int_equal(slabkv_memory_register(f->kv, region, FIX_BYTES, SLABKV_MEMORY_HOST, NULL),
			 SLABKV_OK);
	assert_int_equal(slabkv_put(f->kv, "m", &none, NULL, &block, sizeof(struct slabkv_block),
				    NULL, NULL),
			 SLABKV_E_INVALID);
	assert_int_equal(slabkv_get(f->kv, "m", &none, NULL, &block, sizeof(struct slabkv_block),
				    NULL, NULL),
			 SLABKV_E_INVALID);
	assert_int_equal(slabkv_memory_unregister(f->kv, region), SLABKV_OK);
	free(region);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(a_pools_buffer_is_the_calls_until_it_ends),
		T(registered_memory_stays_while_a_call_uses_it),
		T(a_failed_call_lets_go),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
