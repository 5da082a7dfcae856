/*
 * test_core_share.c - what counts against what: parts of a group's capacity in each mode, borrowed and given back,
 * watermarks of storages and groups; documents of all that, and a restart.
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

static struct kvb_group_spec group(void)
{
	return (struct kvb_group_spec){ .name = "g", .storages = one, .n_storages = 1, .extra = "" };
}

static int put_group(const struct kvb_group_spec *g) { return kvb_core_group_put(e.core, g, NULL, NULL, &e.err); }

static struct kvb_storage_spec storage(uint64_t capacity)
{
	return (struct kvb_storage_spec){ .name = "s", .type = "null", .root = "", .capacity = capacity, .unit = UNIT,
					  .file_size = 16 * UNIT, .enabled = true };
}

static int put_storage(const struct kvb_storage_spec *s) { return kvb_core_storage_put(e.core, s, NULL, &e.err); }

static int put_instance(const char *id, uint32_t weight, uint64_t capacity)
{
	const struct kvb_spec spec = { "kv", BLOCK };
	const struct kvb_instance_spec i = { .tenant = "t", .id = id, .group = "g", .specs = &spec, .n_specs = 1,
					     .extra = "", .weight = weight, .capacity = capacity };

	return kvb_core_instance_put(e.core, &i, NULL, &e.err);
}

static void refused(int rc, int status, const char *field)
{
	assert_int_equal(rc, status);
	assert_string_equal(e.err.field, field);
	kvb_error_clear(&e.err);
}

static void test_documents(void **state)
{
	struct kvb_group_spec g = group();
	struct kvb_storage_spec s = storage(16 * UNIT);
	struct kvb_stats st;

	(void)state;
	s.high_percent = 90;
	s.low_percent = 80;
	assert_int_equal(put_storage(&s), KVB_OK);
	g.high_percent = 70;
	g.low_percent = 60;
	g.pin_percent = 25;
	g.share = KVB_SHARE_FIXED;
	assert_int_equal(put_group(&g), KVB_OK);
	assert_int_equal(put_instance("i", 7, 0), KVB_OK);
	assert_int_equal(put_instance("j", 0, 2 * BLOCK), KVB_OK);
	assert_int_equal(put_instance("j", 0, 3 * BLOCK), KVB_OK); /* may change */
	for (int round = 0; round < 2; round++) {
		env_stats(&e, &st);
		assert_int_equal(st.storages[0].spec.high_percent, 90);
		assert_int_equal(st.storages[0].spec.low_percent, 80);
		assert_int_equal(st.groups[0].spec.high_percent, 70);
		assert_int_equal(st.groups[0].spec.low_percent, 60);
		assert_int_equal(st.groups[0].spec.pin_percent, 25);
		assert_int_equal(st.groups[0].spec.share, KVB_SHARE_FIXED);
		assert_int_equal(st.instances[0].spec.weight, 7);
		assert_int_equal(st.instances[1].spec.capacity, 3 * BLOCK);
		env_crash(&e);
		env_open(&e);
	}
	g = group();
	s = storage(16 * UNIT);
	assert_int_equal(put_group(&g), KVB_OK);
	assert_int_equal(put_storage(&s), KVB_OK);
	env_stats(&e, &st);
	assert_int_equal(st.storages[0].spec.high_percent, 0);
	assert_int_equal(st.groups[0].spec.share, KVB_SHARE_GROUP);
}

static void test_bad_fields(void **state)
{
	struct kvb_group_spec g = group();
	struct kvb_storage_spec s = storage(16 * UNIT);

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	g.high_percent = 101;
	refused(put_group(&g), KVB_E_INVALID, "high_percent");
	g.high_percent = 90;
	refused(put_group(&g), KVB_E_INVALID, "low_percent");
	g.low_percent = 91;
	refused(put_group(&g), KVB_E_INVALID, "low_percent");
	g.high_percent = 0;
	g.low_percent = 50;
	refused(put_group(&g), KVB_E_INVALID, "low_percent");
	g = group();
	g.pin_percent = 101;
	refused(put_group(&g), KVB_E_INVALID, "pin_percent");
	s.high_percent = 100;
	s.low_percent = 1;
	refused(put_storage(&s), KVB_E_INVALID, "low_percent");
	refused(put_instance("j", KVB_MAX_WEIGHT + 1, 0), KVB_E_INVALID, "weight");
	refused(put_instance("j", 0, BLOCK - 1), KVB_E_INVALID, "capacity");
	refused(put_instance("i", KVB_MAX_WEIGHT + 1, 0), KVB_E_INVALID, "weight");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_documents, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_fields, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
