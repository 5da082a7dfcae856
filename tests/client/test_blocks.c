/* test_blocks.c - put, get, lookup, match, delete against the stand-in, where nothing goes
 * wrong. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void blocks_come_back(void **state)
{
	struct fixture *f = *state;
	struct set b;

	set_init(&b, 100, 20);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.io.done, 20);
	assert_int_equal(b.io.bytes, 20 * FIX_BYTES);
	assert_int_equal(b.io.ios, 1); /* neighbouring slots: one write */
	assert_true(f->s.last_finish.quiesced);
	assert_int_equal(f->s.last_finish.n_checksums, 20);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 20);
	assert_int_equal(b.io.ios, 1);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(b.blocks[i].result, SLABKV_HIT);
		assert_true(set_right(&b, i));
	}
	set_free(&b);
}

/* Memory of a caller, and what has been copied to or from there, but for a few bytes at a time. */
static const char *_Atomic watched;
static size_t watched_bytes;
static atomic_ulong copied;

static void watch(const void *to, const void *from, size_t n)
{
	const char *base = atomic_load(&watched), *a = to, *b = from;

	if (base && n >= 64 && ((a < base + watched_bytes && base < a + n) ||
				(b < base + watched_bytes && base < b + n)))
		atomic_fetch_add(&copied, n);
}

void *__real_memcpy(void *to, const void *from, size_t n);
void *__wrap_memcpy(void *to, const void *from, size_t n);
void *__real_memmove(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n);

void *__wrap_memcpy(void *to, const void *from, size_t n)
{
	watch(to, from, n);
	return __real_memcpy(to, from, n);
}

void *__wrap_memmove(void *to, const void *from, size_t n)
{
	watch(to, from, n);
	return __real_memmove(to, from, n);
}

/* Between the caller's buffers and the kernel nothing is copied. */
static void blocks_are_not_copied(void **state)
{
	static const char *const engines[] = { "uring", "posix" };
	static char elsewhere[FIX_BYTES];
	void *(*volatile copy)(void *, const void *, size_t) = __wrap_memcpy;
	struct fixture *f = *state;
	struct set b;

	for (uint32_t e = 0; e < 2; e++) {
		f->o.engine = engines[e];
		fixture_reopen(f, NULL, NULL);
		set_init(&b, 1000 + 100 * e, 64);
		set_fill(&b);
		watched_bytes = (size_t)b.n * FIX_BYTES;
		atomic_store(&copied, 0);
		atomic_store(&watched, (const char *)b.memory);
		assert_int_equal(slabkv_put(f->kv, "m", &b.keys, NULL, b.blocks, sizeof *b.blocks,
					    &b.io, &b.err), SLABKV_OK);
		assert_int_equal(b.io.done, 64);
		assert_int_equal(slabkv_get(f->kv, "m", &b.keys, NULL, b.blocks, sizeof *b.blocks,
					    &b.io, &b.err), SLABKV_OK);
		assert_int_equal(b.io.done, 64);
		assert_int_equal(atomic_load(&copied), 0);
		copy(elsewhere, b.bufs[3].data, FIX_BYTES); /* this would be seen */
		assert_int_equal(atomic_load(&copied), FIX_BYTES);
		atomic_store(&watched, NULL);
		set_free(&b);
	}
}

static void slots_with_gaps_come_back(void **state)
{
	struct fixture *f = *state;
	struct set b;

	f->s.gap = 512;
	set_init(&b, 1, 5);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.io.ios, 5);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 5);
	assert_true(set_right(&b, 4));
	set_free(&b);
}

static void prefix_stops_batch_goes_on(void **state)
{
	struct fixture *f = *state;
	struct set b;

	put_all(f, 1, 2);
	put_all(f, 4, 1);
	set_init(&b, 1, 5);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 2);
	assert_int_equal(b.blocks[3].result, SLABKV_MISS);
	assert_int_equal(set_get(f, &b, SLABKV_BATCH), SLABKV_OK);
	assert_int_equal(b.io.done, 3);
	assert_int_equal(b.blocks[2].result, SLABKV_MISS);
	assert_int_equal(b.blocks[3].result, SLABKV_HIT);
	assert_true(set_right(&b, 3));
	set_free(&b);
}

static void what_is_there_is_not_written_again(void **state)
{
	struct fixture *f = *state;
	const struct slabkv_session *other;
	const uint64_t busy = 3;
	struct slabkv_keys busy_key = slabkv_keys_ints(&busy, 1);
	struct set b;

	put_all(f, 1, 2);
	assert_int_equal(slabkv_start(f->kv, "m", &busy_key, NULL, NULL, &other, NULL),
			 SLABKV_OK);
	set_init(&b, 1, 4);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.blocks[0].result, SLABKV_EXISTS);
	assert_int_equal(b.blocks[1].result, SLABKV_EXISTS);
	assert_int_equal(b.blocks[2].result, SLABKV_BUSY);
	assert_int_equal(b.blocks[3].result, SLABKV_WRITTEN);
	assert_int_equal(b.io.exists, 2);
	assert_int_equal(b.io.busy, 1);
	assert_int_equal(slabkv_abort(f->kv, other->id, true, NULL), SLABKV_OK);
	assert_int_equal(slabkv_abort(f->kv, other->id, true, NULL), SLABKV_OK);
	slabkv_free(other);
	/* all there: no session is needed */
	f->s.finishes = 0;
	set_free(&b);
	set_init(&b, 1, 2);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(f->s.finishes, 0);
	set_free(&b);
}

static void move(struct fixture *f, bool put, const char *const *specs, char *one, char *other)
{
	const uint64_t id = 5;
	struct slabkv_keys key = slabkv_keys_ints(&id, 1);
	const struct slabkv_put_options p = { .size = sizeof(struct slabkv_put_options),
					      .specs = specs,
					      .n_specs = specs ? 2 : 0 };
	const struct slabkv_lookup_options g = { .size = sizeof(struct slabkv_lookup_options),
						 .specs = specs,
						 .n_specs = specs ? 2 : 0,
						 .lease_ms = SLABKV_LEASE_DEFAULT };
	struct slabkv_buf bufs[2] = { { one, 1000 }, { other, 1000 } };
	struct slabkv_block block = { .bufs = bufs, .n_bufs = 2 };

	if (put)
		assert_int_equal(slabkv_put(f->kv, "tp", &key, &p, &block,
					    sizeof(struct slabkv_block), NULL, NULL),
				 SLABKV_OK);
	else
		assert_int_equal(slabkv_get(f->kv, "tp", &key, &g, &block,
					    sizeof(struct slabkv_block), NULL, NULL),
				 SLABKV_OK);
	assert_int_equal(block.result, put ? SLABKV_WRITTEN : SLABKV_HIT);
}

/* Specs of one size, named in another order than the instance's: buffers go by name, on both
 * ways. */
static void specs_named_in_another_order_keep_their_bytes(void **state)
{
	static const struct slabkv_spec specs[] = { { "tp0", 1000 }, { "tp1", 1000 } };
	static const struct slabkv_instance tp = { .size = sizeof(struct slabkv_instance),
						   .id = "tp",
						   .group = "g",
						   .specs = specs,
						   .spec_size = sizeof(struct slabkv_spec),
						   .n_specs = 2 };
	static const char *const turned[] = { "tp1", "tp0" }, *const straight[] = { "tp0", "tp1" };
	static const char *const *const orders[] = { NULL, straight, turned };
	struct fixture *f = *state;
	char zero[1000], one[1000];

	assert_int_equal(slabkv_instance_put(f->kv, &tp, NULL), SLABKV_OK);
	memset(zero, '0', sizeof zero);
	memset(one, '1', sizeof one);
	move(f, true, turned, one, zero);
	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
		char first[1000] = "", second[1000] = "";
		bool is_turned = orders[i] == turned;

		move(f, false, orders[i], first, second);
		assert_memory_equal(is_turned ? second : first, zero, sizeof zero);
		assert_memory_equal(is_turned ? first : second, one, sizeof one);
	}
}

static void several_specs_keep_their_order(void **state)
{
	struct fixture *f = *state;
	static const struct slabkv_spec specs[] = { { "tp0", 1000 }, { "tp1", 3000 } };
	static const struct slabkv_instance two = { .size = sizeof(struct slabkv_instance),
						    .id = "two",
						    .group = "g",
						    .specs = specs,
						    .spec_size = sizeof(struct slabkv_spec),
						    .n_specs = 2 };
	char a[1000], b[3000];
	struct slabkv_buf bufs[2] = { { a, sizeof a }, { b, sizeof b } };
	struct slabkv_block block = { .bufs = bufs, .n_bufs = 2 };
	const struct slabkv_key key = { 7, 9 };
	struct slabkv_keys keys = slabkv_keys_wide(&key, 1);
	struct slabkv_error err;

	assert_int_equal(slabkv_instance_put(f->kv, &two, &err), SLABKV_OK);
	memset(a, 'a', sizeof a);
	memset(b, 'b', sizeof b);
	assert_int_equal(slabkv_put(f->kv, "two", &keys, NULL, &block, sizeof(struct slabkv_block),
				    NULL, &err),
			 SLABKV_OK);
	assert_int_equal(block.result, SLABKV_WRITTEN);
	memset(a, 0, sizeof a);
	memset(b, 0, sizeof b);
	assert_int_equal(slabkv_get(f->kv, "two", &keys, NULL, &block, sizeof(struct slabkv_block),
				    NULL, &err),
			 SLABKV_OK);
	assert_int_equal(block.result, SLABKV_HIT);
	assert_true(a[0] == 'a' && a[999] == 'a' && b[0] == 'b' && b[2999] == 'b');
	/* too few or too small buffers are an error of the block, never an overrun */
	block.n_bufs = 1;
	assert_int_equal(slabkv_get(f->kv, "two", &keys, NULL, &block, sizeof(struct slabkv_block),
				    NULL, &err),
			 SLABKV_OK);
	assert_int_equal(block.result, SLABKV_ERROR);
	assert_int_equal(block.why, SLABKV_E_INVALID);
	assert_int_equal(err.code, SLABKV_E_INVALID);
	block.n_bufs = 2;
	bufs[1].size = 2999;
	assert_int_equal(slabkv_get(f->kv, "two", &keys, NULL, &block, sizeof(struct slabkv_block),
				    NULL, &err),
			 SLABKV_OK);
	assert_int_equal(block.result, SLABKV_ERROR);
	assert_string_equal(err.field, "bufs");
}

static void keys_have_three_forms(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = { "a/0", "a/1", "\xc3\xa4" };
	const uint64_t ints[] = { 5, UINT64_MAX, 1ull << 63 };
	const struct slabkv_key wide[] = { { 0, 5 }, { 0, UINT64_MAX }, { 0, 1ull << 63 } };
	const uint8_t bytes[48] = { [15] = 5, [24] = 255, 255, 255, 255,
				    255,      255,        255, 255, [40] = 128 };
	const uint64_t offsets[] = { 0, 3, 6, 8 };
	const struct slabkv_keys forms[] = { slabkv_keys_strings(names, 3),
					     slabkv_keys_ints(ints, 3), slabkv_keys_wide(wide, 3),
					     slabkv_keys_bytes(bytes, 3),
					     slabkv_keys_text("a/0a/1\xc3\xa4", offsets, 3) };
	struct set b;

	set_init(&b, 0, 3);
	set_fill(&b);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(slabkv_put(f->kv, "m", &forms[i], NULL, b.blocks,
					    sizeof(struct slabkv_block), &b.io, NULL),
				 SLABKV_OK);
		assert_int_equal(b.io.done, 3);
	}
	/* an integer is the same key as {0, n}, whichever way it is written; texts
	 * side by side are the strings */
	for (int i = 2; i < 5; i++) {
		set_clear(&b);
		assert_int_equal(slabkv_get(f->kv, "m", &forms[i], NULL, b.blocks,
					    sizeof(struct slabkv_block), &b.io, NULL),
				 SLABKV_OK);
		assert_int_equal(b.io.done, 3);
		assert_true(set_right(&b, 2));
	}
	set_free(&b);
}

static void parents_travel(void **state)
{
	struct fixture *f = *state;
	const uint64_t head = UINT64_MAX;
	const char *const word = "head";
	struct slabkv_keys parent = slabkv_keys_ints(&head, 1);
	struct slabkv_keys text = slabkv_keys_strings(&word, 1);
	struct slabkv_put_options o = { .size = sizeof o };
	struct set b;

	set_init(&b, 1, 2);
	b.keys.parent = &parent;
	set_fill(&b);
	assert_int_equal(slabkv_put(f->kv, "m", &b.keys, &o, b.blocks, sizeof(struct slabkv_block),
				    &b.io, &b.err),
			 SLABKV_OK);
	assert_int_equal(b.io.done, 2);
	b.keys.parent = &text;
	assert_int_equal(slabkv_put(f->kv, "m", &b.keys, &o, b.blocks, sizeof(struct slabkv_block),
				    &b.io, &b.err),
			 SLABKV_E_INVALID);
	assert_string_equal(b.err.field, "parent");
	assert_int_equal(b.blocks[0].result, SLABKV_FAILED);
	set_free(&b);
}

static void match_and_delete(void **state)
{
	struct fixture *f = *state;
	static const struct slabkv_spec spec = { "kv", FIX_BYTES };
	static const struct slabkv_instance empty = { .size = sizeof(struct slabkv_instance),
						      .id = "n",
						      .group = "g",
						      .specs = &spec,
						      .spec_size = sizeof(struct slabkv_spec),
						      .n_specs = 1 };
	const char *const instances[] = { "n", "m" };
	uint32_t matched[2], deleted;
	struct set b;

	assert_int_equal(slabkv_instance_put(f->kv, &empty, NULL), SLABKV_OK);
	put_all(f, 1, 3);
	set_init(&b, 1, 5);
	assert_int_equal(slabkv_match(f->kv, instances, 2, &b.keys, matched, &b.err), SLABKV_OK);
	assert_int_equal(matched[0], 0);
	assert_int_equal(matched[1], 3);
	assert_int_equal(slabkv_delete(f->kv, "m", &b.keys, &deleted, &b.err), SLABKV_OK);
	assert_int_equal(deleted, 3);
	assert_int_equal(slabkv_delete(f->kv, "m", &b.keys, &deleted, &b.err), SLABKV_OK);
	assert_int_equal(deleted, 0);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 0);
	set_free(&b);
}

static void locations_for_those_who_read_themselves(void **state)
{
	struct fixture *f = *state;
	const struct slabkv_locations *l;
	const struct skv_location *truth;
	uint64_t now = skv_now_ms(&skv_clock_system);
	struct set b;

	put_all(f, 1, 2);
	set_init(&b, 1, 3);
	assert_int_equal(slabkv_lookup(f->kv, "m", &b.keys, NULL, &l, &b.err), SLABKV_OK);
	truth = standin_find(&f->s, "m", 2);
	assert_int_equal(l->matched, 2);
	assert_true(l->hit[1] && !l->hit[2]);
	assert_int_equal(l->loc[1].offset, truth->offset);
	assert_int_equal(l->loc[1].generation, truth->generation);
	assert_true(l->loc[1].has_checksum && l->loc[1].checksum == truth->checksum);
	assert_string_equal(l->specs[0], "kv");
	assert_string_equal(l->files[l->loc[1].file].storage, "default");
	assert_true(l->valid_until_ms >= now + l->lease_ms);
	slabkv_free(l);
	set_free(&b);
}

static void the_longest_call(void **state)
{
	struct fixture *f = *state;
	static const struct slabkv_spec spec = { "kv", 16 };
	static const struct slabkv_instance small = { .size = sizeof(struct slabkv_instance),
						      .id = "small",
						      .group = "g",
						      .specs = &spec,
						      .spec_size = sizeof(struct slabkv_spec),
						      .n_specs = 1 };
	struct slabkv_error err;
	struct set b;

	/* the stand-in looks for keys one by one; under a sanitizer that takes its time */
	f->o.timeout_ms = 600000;
	f->s.deadline_ms = 1200000;
	fixture_reopen(f, NULL, NULL);
	assert_int_equal(slabkv_instance_put(f->kv, &small, &err), SLABKV_OK);
	set_init(&b, 1, SLABKV_MAX_KEYS);
	set_fill(&b);
	for (uint32_t i = 0; i < b.n; i++)
		b.bufs[i].size = 16;
	assert_int_equal(slabkv_put(f->kv, "small", &b.keys, NULL, b.blocks,
				    sizeof(struct slabkv_block), &b.io, &err),
			 SLABKV_OK);
	assert_int_equal(b.io.done, SLABKV_MAX_KEYS);
	set_clear(&b);
	assert_int_equal(slabkv_get(f->kv, "small", &b.keys, NULL, b.blocks,
				    sizeof(struct slabkv_block), &b.io, &err),
			 SLABKV_OK);
	assert_int_equal(b.io.done, SLABKV_MAX_KEYS);
	assert_int_equal(b.io.ios, SLABKV_MAX_KEYS / SKV_RUN_IOV);
	b.keys.n = SLABKV_MAX_KEYS + 1;
	assert_int_equal(slabkv_lookup(f->kv, "small", &b.keys, NULL, NULL, &err),
			 SLABKV_E_TOO_LARGE);
	b.keys.n = 0;
	assert_int_equal(slabkv_lookup(f->kv, "small", &b.keys, NULL, NULL, &err),
			 SLABKV_E_INVALID);
	assert_string_equal(err.field, "keys");
	set_free(&b);
}

struct thread {
	struct fixture *f;
	pthread_t id;
	uint64_t first;
	uint32_t bad;
};

static void *busy_thread(void *ctx)
{
	struct thread *t = ctx;
	struct set b;

	set_init(&b, t->first, 8);
	for (int i = 0; i < 10; i++) {
		for (uint32_t k = 0; k < b.n; k++)
			b.ids[k] = t->first + (uint64_t)i * 8 + k;
		t->bad += set_put(t->f, &b) != SLABKV_OK || b.io.done != b.n;
		t->bad += set_get(t->f, &b, SLABKV_PREFIX) != SLABKV_OK || b.io.done != b.n;
		for (uint32_t k = 0; k < b.n; k++)
			t->bad += !set_right(&b, k);
	}
	set_free(&b);
	return NULL;
}

static void threads_share_a_handle(void **state)
{
	struct fixture *f = *state;
	struct thread t[6];

	for (uint32_t i = 0; i < 6; i++) {
		t[i] = (struct thread){ .f = f, .first = 1000 * (i + 1) };
		assert_int_equal(pthread_create(&t[i].id, NULL, busy_thread, &t[i]), 0);
	}
	for (uint32_t i = 0; i < 6; i++) {
		pthread_join(t[i].id, NULL);
		assert_int_equal(t[i].bad, 0);
	}
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(blocks_come_back),	   T(blocks_are_not_copied),
		T(slots_with_gaps_come_back),
		T(prefix_stops_batch_goes_on), T(what_is_there_is_not_written_again),
		T(specs_named_in_another_order_keep_their_bytes),
		T(several_specs_keep_their_order), T(keys_have_three_forms),
		T(parents_travel),	   T(match_and_delete),
		T(locations_for_those_who_read_themselves), T(the_longest_call),
		T(threads_share_a_handle),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
