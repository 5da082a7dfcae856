/* test_faults.c - faults on order: which call they hit, what replaces what, how many there may
 * be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "faults.h"

static struct kvcm_faults faults;
static struct skv_error err;

static int make(void **state)
{
	(void)state;
	kvcm_faults_init(&faults);
	return 0;
}

static int drop(void **state)
{
	(void)state;
	kvcm_faults_destroy(&faults);
	return 0;
}

static void order(const char *api, bool once, int32_t at)
{
	struct kvcm_fault f = { .once = once, .at = at };

	snprintf(f.api, sizeof f.api, "%s", api);
	assert_int_equal(kvcm_faults_inject(&faults, &f, &err), SKV_OK);
}

static void always_hits_every_call_of_its_own(void **state)
{
	(void)state;
	assert_false(kvcm_faults_hit(&faults, "StartWriteCache", "t_1"));
	order("StartWriteCache", false, 0);
	assert_true(kvcm_faults_hit(&faults, "StartWriteCache", "t_1"));
	assert_true(kvcm_faults_hit(&faults, "StartWriteCache", ""));
	assert_false(kvcm_faults_hit(&faults, "FinishWriteCache", "t_1"));
	assert_false(kvcm_faults_hit(&faults, "startWriteCache", "t_1"));
	assert_true(kvcm_faults_remove(&faults, "StartWriteCache"));
	assert_false(kvcm_faults_hit(&faults, "StartWriteCache", "t_1"));
	assert_false(kvcm_faults_remove(&faults, "StartWriteCache"));
}

static void once_goes_by_the_trace_id(void **state)
{
	static const char *const others[] = { "",
					      "2",
					      "_",
					      "t_",
					      "t_3",
					      "t_2_",
					      "t_2_1",
					      "t_2x",
					      "t_ 2",
					      "t_+2",
					      "t_99999999999999999999999",
					      "t_4294967298" };

	(void)state;
	order("GetCacheLocation", true, 2);
	assert_true(kvcm_faults_hit(&faults, "GetCacheLocation", "t_2"));
	assert_true(kvcm_faults_hit(&faults, "GetCacheLocation", "a_b_02"));
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		assert_false(kvcm_faults_hit(&faults, "GetCacheLocation", others[i]));
	order("GetCacheLocation", true, -1); /* replaces the other */
	assert_false(kvcm_faults_hit(&faults, "GetCacheLocation", "t_2"));
	assert_true(kvcm_faults_hit(&faults, "GetCacheLocation", "t_-1"));
	kvcm_faults_clear(&faults);
	assert_false(kvcm_faults_hit(&faults, "GetCacheLocation", "t_-1"));
}

static void there_is_a_bound(void **state)
{
	struct kvcm_fault f = { .api = "" };
	char name[32];

	(void)state;
	assert_int_equal(kvcm_faults_inject(&faults, &f, &err), SKV_E_INVALID);
	for (int i = 0; i < KVCM_FAULTS_MAX; i++) {
		snprintf(name, sizeof name, "Op%d", i);
		order(name, false, 0);
	}
	snprintf(f.api, sizeof f.api, "OneMore");
	assert_int_equal(kvcm_faults_inject(&faults, &f, &err), SKV_E_TOO_MANY);
	order("Op3", true, 1); /* no new entry */
	assert_true(kvcm_faults_remove(&faults, "Op0"));
	assert_true(kvcm_faults_hit(&faults, "Op63", ""));
	assert_int_equal(kvcm_faults_inject(&faults, &f, &err), SKV_OK);
	kvcm_faults_clear(&faults);
	assert_false(kvcm_faults_hit(&faults, "Op63", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(always_hits_every_call_of_its_own),
		cmocka_unit_test(once_goes_by_the_trace_id),
		cmocka_unit_test(there_is_a_bound),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
