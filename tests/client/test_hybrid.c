/*
 * test_hybrid.c - the library with a real manager, as a client of a hybrid model: of the states and
 * windows of a prompt only the last ones are put, found again by window, and evicted by their own
 * use, with the prompt's other blocks.
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon.h"

#define BLOCK 4096u
#define PROMPTS 8u
#define LONG 10u /* blocks of a prompt */

struct hybrid {
	struct daemon d;
	struct slabkv *kv;
};

/* Attention and states of a model, in a group with room for so many blocks of both. */
static void make_model(struct hybrid *h, uint32_t blocks)
{
	static const char *const names[] = { "kv", "states" };
	const struct slabkv_spec spec = { "all", BLOCK };
	struct slabkv_instance i = { .size = sizeof(struct slabkv_instance),
				     .group = "g",
				     .specs = &spec,
				     .spec_size = sizeof(struct slabkv_spec),
				     .n_specs = 1 };
	char group[80];

	snprintf(group, sizeof group, "{\"storages\":[\"default\"],\"capacity\":%llu}",
		 (unsigned long long)blocks * BLOCK);
	assert_int_equal(slabkv_object_set(h->kv, SLABKV_GROUP, "g", group, NULL, NULL), SLABKV_OK);
	for (uint32_t n = 0; n < 2; n++) {
		i.id = names[n];
		assert_int_equal(slabkv_instance_put(h->kv, &i, NULL), SLABKV_OK);
	}
}

static int setup(void **state)
{
	struct hybrid *h = calloc(1, sizeof *h);
	const char *url = h->d.url;
	struct slabkv_options o;

	assert_non_null(h);
	daemon_start(&h->d);
	slabkv_options_init(&o, sizeof o);
	o.urls = &url;
	o.n_urls = 1;
	assert_int_equal(slabkv_open(&o, &h->kv, NULL), SLABKV_OK);
	*state = h;
	return 0;
}

static int teardown(void **state)
{
	struct hybrid *h = *state;

	slabkv_close(h->kv);
	daemon_remove(&h->d);
	free(h);
	return 0;
}

/* ---- a prompt: keys p << 8 | 0.. ------------------------------------------------------------- */

struct prompt {
	uint64_t id[LONG];
	char bytes[LONG][BLOCK];
	struct slabkv_buf buf[LONG];
	struct slabkv_block block[LONG];
};

static void prompt_init(struct prompt *p, uint64_t number)
{
	for (uint32_t i = 0; i < LONG; i++) {
		p->id[i] = number << 8 | i;
		memset(p->bytes[i], (int)(number * LONG + i), BLOCK);
		p->buf[i] = (struct slabkv_buf){ p->bytes[i], BLOCK };
		p->block[i] = (struct slabkv_block){ .bufs = &p->buf[i], .n_bufs = 1 };
	}
}

/* Puts the instance's blocks from `from` on. */
static void put(struct hybrid *h, const char *instance, uint64_t number, uint32_t from,
		const struct slabkv_put_options *o)
{
	struct slabkv_error err = { 0 };
	struct slabkv_keys keys;
	struct slabkv_io io = { .size = sizeof(struct slabkv_io) };
	struct prompt p;

	prompt_init(&p, number);
	keys = slabkv_keys_ints(p.id + from, LONG - from);
	if (slabkv_put(h->kv, instance, &keys, o, p.block + from, sizeof(struct slabkv_block), &io,
		       &err) != SLABKV_OK)
		fail_msg("%s at %s", err.message, err.field);
	assert_int_equal(io.done, LONG - from);
}

static const struct slabkv_put_options independent = { .size = sizeof(struct slabkv_put_options),
						       .independent = true };

static void put_states(struct hybrid *h, uint64_t number)
{
	put(h, "states", number, LONG - 2, &independent);
}

/* Bit i: block i is a hit, with the right bytes. */
static uint32_t get(struct hybrid *h, const char *instance, uint64_t number, enum slabkv_mode mode,
		    uint32_t window)
{
	const struct slabkv_lookup_options o = { .size = sizeof(struct slabkv_lookup_options),
						 .mode = mode,
						 /* no lease: it would keep them */
						 .window = window };
	struct slabkv_error err = { 0 };
	struct prompt want, got;
	struct slabkv_keys keys = slabkv_keys_ints(got.id, LONG);
	uint32_t hits = 0;

	prompt_init(&want, number);
	prompt_init(&got, number);
	memset(got.bytes, 0, sizeof got.bytes);
	if (slabkv_get(h->kv, instance, &keys, &o, got.block, sizeof(struct slabkv_block), NULL,
		       &err) != SLABKV_OK)
		fail_msg("%s at %s", err.message, err.field);
	for (uint32_t i = 0; i < LONG; i++)
		if (got.block[i].result == SLABKV_HIT) {
			assert_memory_equal(got.bytes[i], want.bytes[i], BLOCK);
			hits |= 1u << i;
		}
	return hits;
}

#define ALL ((1u << LONG) - 1)
#define LAST (1u << (LONG - 1))

/* ---- scenes ---------------------------------------------------------------------------------- */

static void the_last_blocks_without_the_first(void **state)
{
	struct hybrid *h = *state;
	const struct slabkv_locations *l;
	struct slabkv_lookup_options o = { .size = sizeof(struct slabkv_lookup_options),
					   .mode = SLABKV_TRAILING,
					   .lease_ms = 10000 };
	struct slabkv_error err;
	struct slabkv_keys keys;
	struct prompt p;

	make_model(h, 40);
	put_states(h, 1);
	assert_int_equal(get(h, "states", 1, SLABKV_BATCH, 0), LAST | LAST >> 1);
	assert_int_equal(get(h, "states", 1, SLABKV_TRAILING, 0), LAST | LAST >> 1);
	assert_int_equal(get(h, "states", 1, SLABKV_WINDOW, 2), LAST | LAST >> 1);
	assert_int_equal(get(h, "states", 1, SLABKV_WINDOW, 1), LAST);
	assert_int_equal(get(h, "states", 1, SLABKV_WINDOW, 3), 0);
	assert_int_equal(get(h, "states", 1, SLABKV_PREFIX, 0), 0);
	prompt_init(&p, 1);
	keys = slabkv_keys_ints(p.id, LONG);
	assert_int_equal(slabkv_lookup(h->kv, "states", &keys, &o, &l, &err), SLABKV_OK);
	assert_int_equal(l->matched, 2);
	assert_int_equal(l->lease_ms, 10000);
	slabkv_free(l);
	for (uint32_t w = 0; w <= LONG + 1; w += LONG + 1) {
		o = (struct slabkv_lookup_options){ .size = sizeof o, .mode = SLABKV_WINDOW,
						    .window = w };
		assert_int_equal(slabkv_lookup(h->kv, "states", &keys, &o, &l, &err),
				 SLABKV_E_INVALID);
		assert_string_equal(err.field, "window");
	}
}

static void independent_blocks_have_no_parent(void **state)
{
	struct hybrid *h = *state;
	const struct slabkv_session *s;
	struct slabkv_error err;
	struct prompt p;
	struct slabkv_keys parent = slabkv_keys_ints(p.id, 1), keys = slabkv_keys_ints(p.id + 1, 2);
	const struct slabkv_put_options o = { .size = sizeof(struct slabkv_put_options),
					      .independent = true };

	make_model(h, 40);
	prompt_init(&p, 1);
	keys.parent = &parent;
	assert_int_equal(slabkv_start(h->kv, "states", &keys, &o, NULL, &s, &err),
			 SLABKV_E_INVALID);
	assert_string_equal(err.field, "parent");
}

/* Which prompts are there as a whole, with the last state; *torn: of how many only something is. */
static uint32_t whole(struct hybrid *h, uint32_t *torn)
{
	uint32_t n = 0;

	*torn = 0;
	for (uint32_t p = PROMPTS; p-- > 0;) {
		uint32_t kv = get(h, "kv", p, SLABKV_PREFIX, 0),
			 last = get(h, "states", p, SLABKV_WINDOW, 1);

		n |= (uint32_t)(kv == ALL && last == LAST) << p;
		*torn += (kv || last) && !(kv == ALL && last == LAST);
	}
	return n;
}

static void states_leave_with_their_prompts(void **state)
{
	struct hybrid *h = *state;
	uint32_t torn, n;

	make_model(h, PROMPTS * (LONG + 2) + 3); /* 2 % are kept free */
	for (uint32_t p = 0; p < PROMPTS; p++) {
		put(h, "kv", p, 0, NULL);
		put_states(h, p);
	}
	assert_int_equal(whole(h, &torn), (1u << PROMPTS) - 1); /* and so they are used */
	for (uint32_t i = 0; i < PROMPTS / 2; i++)
		put_states(h, PROMPTS + i); /* take the room of the states that nobody has read */
	assert_int_equal(whole(h, &torn), (1u << PROMPTS) - 1);
	for (uint32_t i = 0; i < 2; i++)
		put(h, "kv", 2 * PROMPTS + i, 0, NULL);
	n = whole(h, &torn);
	/* the default policy also weighs what it has learned of each kind */
	assert_true(torn <= 3);
	assert_in_range(__builtin_popcount(n), PROMPTS - 4, PROMPTS - 1);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(the_last_blocks_without_the_first),
		T(independent_blocks_have_no_parent),
		T(states_leave_with_their_prompts),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
