/* test_http_places.c - calls on names that are elsewhere: partition 0's owner says where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

#define LOOKUP "/v1/instances/m/lookup"
#define KEYS "{\"keys_int\":[1,2,3]}"

/* The asked one owns partition 2, lead 0, third 1. */
struct three {
	struct fixture *asked, *lead, *third;
	char peer[2][64];
};

static int setup(void **state)
{
	static struct three t;
	struct fixture **each[] = { &t.asked, &t.lead, &t.third };

	for (size_t i = 0; i < 3; i++) {
		void *x;

		assert_int_equal(fixture_setup(&x), 0);
		*each[i] = x;
		(*each[i])->so.forward = i == 0;
		(*each[i])->so.hold_ms = i == 0 ? 10000 : 0;
		if (i)
			fixture_start(*each[i]);
	}
	snprintf(t.peer[0], sizeof t.peer[0], "http://127.0.0.1:%u", (unsigned)t.lead->port);
	snprintf(t.peer[1], sizeof t.peer[1], "http://127.0.0.1:%u", (unsigned)t.third->port);
	fake_core_owner(t.asked->core, 0, "lead", t.peer[0]);
	fake_core_owner(t.asked->core, 1, "third", t.peer[1]);
	fake_core_owner(t.lead->core, 1, "third", t.peer[1]);
	fake_core_owner(t.third->core, 0, "lead", t.peer[0]);
	fixture_start(t.asked);
	*state = &t;
	return 0;
}

static int teardown(void **state)
{
	struct three *t = *state;
	void *each[] = { t->asked, t->lead, t->third };

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(fixture_teardown(&each[i]), 0);
	return 0;
}

static int lookup(const struct three *t)
{
	struct answer a = http_call(t->asked->port, "POST", LOOKUP, NULL, KEYS);
	int status = a.status;

	answer_free(&a);
	return status;
}

static void test_the_lead_says_where_it_is(void **state)
{
	const struct three *t = *state;

	fake_core_is_elsewhere(t->asked->core, 0, false);
	fake_core_is_elsewhere(t->lead->core, 1, true);
	assert_int_equal(lookup(t), 200);
	assert_int_equal(fake_core_calls(t->lead->core), 1);
	assert_int_equal(fake_core_calls(t->third->core), 1);
	assert_int_equal(fake_core_alone(t->third->core), 2);
	assert_int_equal(fake_core_learned(t->asked->core), 2);
	assert_int_equal(skv_metrics_get(&t->asked->service->metrics, METRIC_calls_forwarded), 1);
	assert_int_equal(skv_metrics_get(&t->asked->service->metrics, METRIC_calls_forward_failed),
			 0);
}

static void test_what_is_remembered_may_be_over(void **state)
{
	const struct three *t = *state;

	fake_core_is_elsewhere(t->asked->core, 1, false); /* it was there once */
	fake_core_is_elsewhere(t->third->core, 0, false);
	fake_core_is_elsewhere(t->lead->core, 1, true); /* and is not there any more */
	assert_int_equal(lookup(t), 404);
	assert_int_equal(fake_core_calls(t->asked->core), 1);
	assert_int_equal(fake_core_calls(t->lead->core), 1);
	assert_int_equal(fake_core_calls(t->third->core), 2);
	assert_int_equal(fake_core_alone(t->third->core), 2);
}

/* It is its own that knows. */
static void test_the_lead_was_asked(void **state)
{
	const struct three *t = *state;

	fake_core_is_elsewhere(t->asked->core, 1, true);
	assert_int_equal(lookup(t), 200);
	assert_int_equal(fake_core_alone(t->third->core), 2);
	assert_int_equal(fake_core_calls(t->lead->core), 0);
	assert_int_equal(fake_core_learned(t->asked->core), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_lead_says_where_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_remembered_may_be_over, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_the_lead_was_asked, setup, teardown),
	};

	return cmocka_run_group_tests_name("http_places", tests, NULL, NULL);
}
