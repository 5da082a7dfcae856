/*
 * test_core_quota_share.c - accounting of shares of a group's capacity in each mode, borrowed and
 * given back, watermarks of storages and groups; documents of all that, and a restart.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)

static struct env e;

static int setup(void **state)
{
	(void)state;
	env_quiet();
	env_init(&e);
	env_open(&e);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	env_check(&e);
	env_destroy(&e);
	return 0;
}

static const char *const one[] = { "s" };

static struct skv_group_spec group(void)
{
	return (struct skv_group_spec){ .name = "g", .storages = one, .n_storages = 1,
					.extra = "" };
}

static int put_group(const struct skv_group_spec *g)
{
	return skv_cluster_group_put(e.cluster, g, SKV_PUT_ANY, NULL, NULL, &e.err);
}

static struct skv_storage_spec storage(uint64_t capacity)
{
	return (struct skv_storage_spec){ .name = "s", .type = "null", .root = "",
					  .capacity = capacity, .unit = UNIT,
					  .file_size = 16 * UNIT, .enabled = true };
}

static int put_storage(const struct skv_storage_spec *s)
{
	return skv_cluster_storage_put(e.cluster, s, SKV_PUT_ANY, NULL, &e.err);
}

static int put_instance(const char *id, uint32_t weight, uint64_t capacity)
{
	const struct skv_spec spec = { "kv", BLOCK };
	const struct skv_instance_spec i = { .tenant = "t", .id = id, .group = "g", .specs = &spec,
					     .n_specs = 1,
					     .extra = "", .weight = weight, .capacity = capacity };

	return skv_cluster_instance_put(e.cluster, &i, SKV_PUT_ANY, NULL, &e.err);
}

static void refused(int rc, int status, const char *field)
{
	assert_int_equal(rc, status);
	assert_string_equal(e.err.field, field);
	skv_error_clear(&e.err);
}

static void test_documents(void **state)
{
	struct skv_group_spec g = group();
	struct skv_storage_spec s = storage(16 * UNIT);
	struct skv_stats st;

	(void)state;
	s.high_percent = 90;
	s.low_percent = 80;
	assert_int_equal(put_storage(&s), SKV_OK);
	g.high_percent = 70;
	g.low_percent = 60;
	g.pin_percent = 25;
	g.share = SKV_SHARE_FIXED;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put_instance("i", 7, 0), SKV_OK);
	assert_int_equal(put_instance("j", 0, 2 * BLOCK), SKV_OK);
	assert_int_equal(put_instance("j", 0, 3 * BLOCK), SKV_OK); /* may change */
	assert_int_equal(put_instance("i", 0, 0), SKV_OK); /* registered again: they stay */
	assert_int_equal(put_instance("j", 0, 0), SKV_OK);
	for (int round = 0; round < 2; round++) {
		env_stats(&e, &st);
		assert_int_equal(st.storages[0].spec.high_percent, 90);
		assert_int_equal(st.storages[0].spec.low_percent, 80);
		assert_int_equal(st.groups[0].spec.high_percent, 70);
		assert_int_equal(st.groups[0].spec.low_percent, 60);
		assert_int_equal(st.groups[0].spec.pin_percent, 25);
		assert_int_equal(st.groups[0].spec.share, SKV_SHARE_FIXED);
		assert_int_equal(st.instances[0].spec.weight, 7);
		assert_int_equal(st.instances[1].spec.capacity, 3 * BLOCK);
		env_crash(&e);
		env_open(&e);
	}
	g = group();
	s = storage(16 * UNIT);
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put_storage(&s), SKV_OK);
	env_stats(&e, &st);
	assert_int_equal(st.storages[0].spec.high_percent, 0);
	assert_int_equal(st.groups[0].spec.share, SKV_SHARE_GROUP);
}

static void test_bad_fields(void **state)
{
	struct skv_group_spec g = group();
	struct skv_storage_spec s = storage(16 * UNIT);

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	g.high_percent = 101;
	refused(put_group(&g), SKV_E_INVALID, "high_percent");
	g.high_percent = 90;
	refused(put_group(&g), SKV_E_INVALID, "low_percent");
	g.low_percent = 91;
	refused(put_group(&g), SKV_E_INVALID, "low_percent");
	g.high_percent = 0;
	g.low_percent = 50;
	refused(put_group(&g), SKV_E_INVALID, "low_percent");
	g = group();
	g.pin_percent = 101;
	refused(put_group(&g), SKV_E_INVALID, "pin_percent");
	s.high_percent = 100;
	s.low_percent = 1;
	refused(put_storage(&s), SKV_E_INVALID, "low_percent");
	refused(put_instance("j", SKV_MAX_WEIGHT + 1, 0), SKV_E_INVALID, "weight");
	refused(put_instance("j", 0, BLOCK - 1), SKV_E_INVALID, "capacity");
	refused(put_instance("i", SKV_MAX_WEIGHT + 1, 0), SKV_E_INVALID, "weight");
}

/* ---- what instances have --------------------------------------------------------------------- */

#define ROOM 40u /* blocks that the group may have */

/* The group with this share, and a storage that is larger. */
static void make(enum skv_share share)
{
	struct skv_storage_spec s = storage(16 * UNIT);
	struct skv_group_spec g = group();

	assert_int_equal(put_storage(&s), SKV_OK);
	g.capacity = ROOM * BLOCK;
	g.share = share;
	assert_int_equal(put_group(&g), SKV_OK);
	env_advance(&e, 20);
}

static uint64_t next_key = 1;

/* Starts n blocks of chains of their own; commits them if that is well. */
static int try_put(const char *instance, uint32_t n)
{
	struct skv_key keys[64];
	struct skv_start_res res;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];
	int rc;

	env_keys(keys, n, next_key++, 1);
	rc =
		env_start(&e, &(struct env_start){ .instance = instance, .keys = keys, .n = n,
						   .independent = true }, &res);
	if (rc != SKV_OK)
		return rc;
	assert_int_equal(res.n_write, n);
	memcpy(session, res.session, sizeof session);
	return env_finish(&e, session, NULL, 0, &f);
}

static void put(const char *instance, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(try_put(instance, 1), SKV_OK);
}

static const struct skv_instance_view *view(const char *id)
{
	struct skv_instance_view *v;

	skv_arena_reset(&e.arena);
	assert_int_equal(skv_cluster_instance(e.cluster, "t", id, &e.arena, &v, &e.err),
			 SKV_OK);
	return v;
}

static uint64_t blocks(const char *id) { return view(id)->blocks; }

/* All of it until now, in one of the instances. */
static void lease_all(const char *id, uint32_t ms)
{
	for (uint64_t hi = 1; hi < next_key; hi++) {
		struct skv_key keys[64];
		struct skv_lookup_res res;
		struct skv_lookup_req req = { .tenant = "t", .instance = id, .keys = keys,
					      .n_keys = 64, .lease_ms = ms };

		env_keys(keys, 64, hi, 1);
		assert_int_equal(env_lookup_req(&e, &req, &res), SKV_OK);
		assert_true(res.matched == 0 || res.lease_ms == ms);
	}
}

/* Without parts who writes takes all. */
static void test_group_wide(void **state)
{
	(void)state;
	make(SKV_SHARE_GROUP);
	assert_int_equal(put_instance("a", 0, 0), SKV_OK);
	assert_int_equal(put_instance("b", 9, 0), SKV_OK);
	put("b", ROOM);
	put("a", ROOM);
	assert_int_equal(blocks("a"), ROOM);
	assert_int_equal(blocks("b"), 0);
}

static void test_borrowed_and_given_back(void **state)
{
	(void)state;
	make(SKV_SHARE_PROPORTIONAL);
	assert_int_equal(put_instance("a", 1, 0), SKV_OK);
	assert_int_equal(put_instance("b", 3, 0), SKV_OK);
	put("a", ROOM); /* all of it: nobody else wants it */
	assert_int_equal(blocks("a"), ROOM);
	put("b", 20);
	assert_int_equal(blocks("b"), 20);
	assert_int_equal(blocks("a"), ROOM - 20);
	put("b", 100);
	assert_int_equal(blocks("b"), 30);
	assert_int_equal(blocks("a"), 10);
	put("a", 100); /* no more than its share now, and b keeps its own */
	assert_int_equal(blocks("b"), 30);
	assert_int_equal(blocks("a"), 10);
}

static void test_three(void **state)
{
	(void)state;
	make(SKV_SHARE_PROPORTIONAL);
	assert_int_equal(put_instance("a", 1, 0), SKV_OK);
	assert_int_equal(put_instance("b", 3, 0), SKV_OK);
	assert_int_equal(put_instance("c", 0, 20 * BLOCK), SKV_OK);
	for (int i = 0; i < 100; i++) {
		put("a", 1);
		put("b", 1);
	}
	assert_int_equal(blocks("a"), ROOM / 4); /* the unused share of c is lent by weight */
	assert_int_equal(blocks("b"), ROOM * 3 / 4);
	put("c", 100);
	assert_int_equal(blocks("c"), 20);
	assert_int_equal(blocks("a"), 5);
	assert_int_equal(blocks("b"), 15);
	assert_int_equal(put_instance("b", 1, 0), SKV_OK); /* weights change under load */
	for (int i = 0; i < 50; i++) {
		put("a", 1);
		put("b", 1);
		put("c", 1);
	}
	assert_int_equal(blocks("a"), 10);
	assert_int_equal(blocks("b"), 10);
	assert_int_equal(blocks("c"), 20);
}

/* The instance most over its share has leased blocks: the next one loses blocks, and the first one
 * loses them later. */
static void test_borrowed_and_leased(void **state)
{
	(void)state;
	make(SKV_SHARE_PROPORTIONAL);
	assert_int_equal(put_instance("a", 1, 0), SKV_OK);
	assert_int_equal(put_instance("b", 1, 0), SKV_OK);
	put("b", 10);
	put("a", 30);
	lease_all("a", 5000);
	put("b", 5);
	assert_int_equal(blocks("a"), 30);
	assert_int_equal(blocks("b"), 10);
	env_advance(&e, 5100);
	put("b", 5);
	assert_int_equal(blocks("a"), 25);
	assert_int_equal(blocks("b"), 15);
}

static void test_fixed(void **state)
{
	(void)state;
	make(SKV_SHARE_FIXED);
	assert_int_equal(put_instance("a", 1, 0), SKV_OK);
	assert_int_equal(put_instance("b", 3, 0), SKV_OK);
	put("a", 50); /* never more, though there is room */
	assert_int_equal(blocks("a"), 10);
	put("b", 50);
	assert_int_equal(blocks("b"), 30);
	assert_int_equal(blocks("a"), 10);
	put("a", 10);
	assert_int_equal(blocks("b"), 30);
	refused(try_put("a", 11), SKV_E_QUOTA, "weight");
	assert_int_equal(blocks("a"), 10);
	assert_int_equal(try_put("a", 10), SKV_OK);
}

static void test_fixed_capacity(void **state)
{
	struct skv_pin_res pinned;
	struct skv_key key;

	(void)state;
	make(SKV_SHARE_FIXED);
	assert_int_equal(put_instance("i", 0, 8 * BLOCK), SKV_OK);
	assert_int_equal(put_instance("b", 0, 0), SKV_OK);
	put("b", 50);
	assert_int_equal(blocks("b"), ROOM - 8);
	put("i", 8);
	lease_all("i", 5000);
	refused(try_put("i", 1), SKV_E_QUOTA, "capacity"); /* all of its own is leased */
	assert_int_equal(blocks("b"), ROOM - 8);
	env_advance(&e, 5100);
	put("i", 4); /* progress when leases end */
	assert_int_equal(put_instance("i", 0, 12 * BLOCK), SKV_OK);
	put("i", 20);
	assert_int_equal(blocks("i"), 12);
	assert_int_equal(blocks("b"), ROOM - 12); /* instance b had more than its current share */
	assert_int_equal(put_instance("i", 0, 3 * BLOCK), SKV_OK);
	env_advance(&e, 20);
	env_advance(&e, 20);
	assert_int_equal(blocks("i"), 3); /* in the background */
	for (uint64_t n = 0; n < 2; n++) {
		key = (struct skv_key){ next_key - 1 - n, 1 };
		assert_int_equal(env_pin(&e, &key, 1, SKV_PIN_HARD, 0, &pinned),
				 n == 0 ? SKV_OK : SKV_E_QUOTA);
	}
	/* half of its share, not of the group's room */
	assert_string_equal(e.err.field, "pinned_bytes");
}

/* A start writes the part that fits into a fixed share; the rest has no room. */
static void test_fixed_and_fit(void **state)
{
	struct skv_start_res res;
	struct skv_key keys[8];

	(void)state;
	make(SKV_SHARE_FIXED);
	assert_int_equal(put_instance("i", 0, 6 * BLOCK), SKV_OK);
	put("i", 4);
	lease_all("i", 5000);
	env_keys(keys, 8, next_key++, 1);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = keys, .n = 8, .fit = true },
				   &res), SKV_OK);
	assert_int_equal(res.n_write, 2);
	assert_int_equal(env_abort(&e, res.session, true), SKV_OK);
	env_advance(&e, 5100);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = keys, .n = 8, .fit = true },
				   &res), SKV_OK);
	assert_int_equal(res.n_write, 6); /* of its own making */
}

/* Of another class, in slabs of its own: what has more than its share gives up whole slabs. */
static void test_parts_across_classes(void **state)
{
	const struct skv_spec spec = { "kv", 2 * BLOCK };
	const struct skv_instance_spec other = { .tenant = "t", .id = "b", .group = "g",
						 .specs = &spec, .n_specs = 1, .extra = "" };
	struct skv_storage_spec s = storage(4 * UNIT);
	struct skv_group_spec g = group();

	(void)state;
	assert_int_equal(put_storage(&s), SKV_OK);
	g.share = SKV_SHARE_PROPORTIONAL;
	assert_int_equal(put_group(&g), SKV_OK);
	env_advance(&e, 20);
	assert_int_equal(put_instance("a", 1, 0), SKV_OK);
	assert_int_equal(skv_cluster_instance_put(e.cluster, &other, SKV_PUT_ANY, NULL, &e.err),
			 SKV_OK);
	put("a", 62);
	assert_true(blocks("a") >= 60);
	for (int i = 0; i < 2; i++) {
		put("b", 30);
		assert_in_range(blocks("b"), 14, 16); /* half of the room, in whole slabs */
		assert_in_range(blocks("a"), 30, 32);
		put("a", 62);
		assert_in_range(blocks("b"), 14, 16);
		assert_in_range(blocks("a"), 30, 32);
	}
}

static void test_capacity_lowered(void **state)
{
	struct skv_group_spec g = group();

	(void)state;
	make(SKV_SHARE_PROPORTIONAL);
	assert_int_equal(put_instance("a", 1, 0), SKV_OK);
	assert_int_equal(put_instance("b", 3, 0), SKV_OK);
	put("b", 20);
	put("a", 20);
	g.capacity = 24 * BLOCK;
	g.share = SKV_SHARE_PROPORTIONAL;
	assert_int_equal(put_group(&g), SKV_OK);
	env_advance(&e, 20);
	env_advance(&e, 20);
	assert_int_equal(blocks("a"), 6);
	assert_int_equal(blocks("b"), 18);
	g.share = SKV_SHARE_FIXED; /* the mode may change, too */
	assert_int_equal(put_group(&g), SKV_OK);
	put("a", 20);
	assert_int_equal(blocks("a"), 6);
	assert_int_equal(blocks("b"), 18);
}

/* A clear's bytes are nobody's part while they are swept; what was written since is. */
static void test_cleared(void **state)
{
	uint64_t n;

	(void)state;
	make(SKV_SHARE_FIXED);
	assert_int_equal(put_instance("i", 1, 0), SKV_OK);
	assert_int_equal(put_instance("b", 1, 0), SKV_OK);
	put("i", 20);
	put("b", 20);
	assert_int_equal(env_clear(&e, "i", &n), SKV_OK);
	assert_int_equal(n, 20);
	put("i", 30);
	assert_int_equal(blocks("i"), 20);
	assert_int_equal(blocks("b"), 20);
	assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "b", NULL, &e.err), SKV_OK);
	put("i", 40); /* all of it is its share now */
	assert_int_equal(blocks("i"), ROOM);
}

/* ---- watermarks ------------------------------------------------------------------------------ */

static void settle(void)
{
	for (int i = 0; i < 10; i++)
		env_advance(&e, 20);
}

static void test_group_watermarks(void **state)
{
	struct skv_group_spec g = group();

	(void)state;
	make(SKV_SHARE_GROUP);
	assert_int_equal(put_instance("a", 0, 0), SKV_OK);
	g.capacity = ROOM * BLOCK;
	g.high_percent = 90;
	g.low_percent = 50;
	assert_int_equal(put_group(&g), SKV_OK);
	put("a", 36);
	settle();
	assert_int_equal(blocks("a"), 36); /* 90 %: not above */
	put("a", 1);
	settle();
	assert_int_equal(blocks("a"), 20);
	put("a", 15);
	settle();
	assert_int_equal(blocks("a"), 35);
	g.high_percent = 100;
	g.low_percent = 0;
	assert_int_equal(put_group(&g), SKV_OK);
	put("a", 5);
	settle();
	assert_int_equal(blocks("a"), ROOM);
	put("a", 3); /* inline: the bytes needed */
	assert_int_equal(blocks("a"), ROOM);
}

static void test_storage_watermarks(void **state)
{
	struct skv_storage_spec s = storage(4 * UNIT);
	struct skv_group_spec g = group();
	uint64_t all;

	(void)state;
	e.o.free_percent = 2;
	env_crash(&e);
	env_open(&e);
	s.high_percent = 75;
	s.low_percent = 25;
	assert_int_equal(put_storage(&s), SKV_OK);
	assert_int_equal(put_group(&g), SKV_OK);
	g.name = "h"; /* any tenant's group */
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put_instance("a", 0, 0), SKV_OK);
	settle();
	put("a", 48);
	settle();
	assert_int_equal(blocks("a"), 48);
	put("a", 1);
	settle();
	assert_int_equal(blocks("a"), 16);
	put("a", 31);
	env_crash(&e); /* marks are kept; that it was falling need not be */
	env_open(&e);
	settle();
	assert_int_equal(blocks("a"), 47);
	s.high_percent = 100;
	s.low_percent = 0;
	assert_int_equal(put_storage(&s), SKV_OK);
	for (int i = 0; i < 30; i++)
		put("a", 1);
	settle();
	all = blocks("a");
	assert_in_range(all, 60, 64); /* nothing ahead of need */
	put("a", 5);
	assert_int_equal(blocks("a"), all);
}

/* Leases above the mark: what may go goes, the rest when they end. */
static void test_watermark_and_leases(void **state)
{
	struct skv_group_spec g = group();

	(void)state;
	make(SKV_SHARE_GROUP);
	assert_int_equal(put_instance("a", 0, 0), SKV_OK);
	put("a", 30);
	lease_all("a", 5000);
	put("a", 8);
	g.capacity = ROOM * BLOCK;
	g.high_percent = 90;
	g.low_percent = 50;
	assert_int_equal(put_group(&g), SKV_OK);
	settle();
	assert_int_equal(blocks("a"), 30);
	env_advance(&e, 3600000); /* a jump of the clock */
	settle();
	assert_int_equal(blocks("a"), 20);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_documents), T(test_bad_fields), T(test_group_wide),
		T(test_borrowed_and_given_back), T(test_three),
		T(test_borrowed_and_leased), T(test_fixed), T(test_fixed_capacity),
		T(test_fixed_and_fit), T(test_parts_across_classes),
		T(test_capacity_lowered), T(test_cleared), T(test_group_watermarks),
		T(test_storage_watermarks),
		T(test_watermark_and_leases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
