/* test_grpc_parts.c - values of header fields, the timer wheel, and what a
 * message's name and body are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "internal.h"
#include "v1.h"
#include <skv/pb.h>

static void timeouts(void **state)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t ms;
	} all[] = {
		{ "1H", true, 3600000 }, { "2M", true, 120000 },  { "3S", true, 3000 },
		{ "100m", true, 100 },	 { "1u", true, 1 },	  { "1001u", true, 2 },
		{ "1n", true, 1 },       { "0n", true, 0 },
		{ "99999999H", true, 359999996400000ull },
		{ "", false, 0 },	 { "m", false, 0 },	  { "1", false, 0 },
		{ "1s", false, 0 },	 { "-1m", false, 0 },	  { "1 m", false, 0 },
		{ "123456789m", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		uint64_t ms = 0;

		if (skv_grpc_timeout(all[i].text, strlen(all[i].text), &ms) != all[i].good ||
		    ms != all[i].ms)
			fail_msg("%s: %llu", all[i].text, (unsigned long long)ms);
	}
}

static void percent(void **state)
{
	char long_text[SKV_MESSAGE_MAX], out[3 * SKV_MESSAGE_MAX + 1];

	(void)state;
	skv_percent_encode("plain ~ text", out);
	assert_string_equal(out, "plain ~ text");
	skv_percent_encode("50% \n\xc3\xa9\x7f", out);
	assert_string_equal(out, "50%25 %0A%C3%A9%7F");
	memset(long_text, '%', sizeof long_text);
	long_text[sizeof long_text - 1] = '\0';
	skv_percent_encode(long_text, out);
	assert_int_equal(strlen(out), 3 * (sizeof long_text - 1));
}

/* ---- wheel ----------------------------------------------------------------------------------- */

#define TIMERS 2000

struct test_timer {
	struct timer t;
	uint64_t fired;
};

static struct wheel wheel;
static struct test_timer timers[TIMERS];
static unsigned fired;

static void note_fired(struct timer *t, uint64_t now_ms)
{
	struct test_timer *x = (struct test_timer *)t;

	assert_true(t->at_ms <= now_ms);
	assert_true(now_ms - t->at_ms < 2 * WHEEL_MS);
	x->fired++;
	fired++;
}

/* Clears another one of the same time, and sets itself again once. */
static void meddle(struct timer *t, uint64_t now_ms)
{
	struct test_timer *x = (struct test_timer *)t;

	x->fired++;
	skv_wheel_clear(&wheel, &timers[1].t);
	if (x->fired == 1)
		skv_wheel_set(&wheel, t, now_ms);
}

static void wheel_fires_in_time(void **state)
{
	uint64_t now = 1000003, seed = 7;

	(void)state;
	memset(timers, 0, sizeof timers);
	fired = 0;
	skv_wheel_init(&wheel, now);
	assert_int_equal(skv_wheel_wait(&wheel, now), -1);
	for (unsigned i = 0; i < TIMERS; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		timers[i].t.fire = note_fired;
		skv_wheel_set(&wheel, &timers[i].t, now + 1 + (seed >> 33) % 10000);
		if (i % 3 == 0)
			skv_wheel_set(&wheel, &timers[i].t, timers[i].t.at_ms + 5); /* moved */
	}
	while (wheel.n > 0) {
		int wait = skv_wheel_wait(&wheel, now);

		assert_in_range(wait, 0, WHEEL_SLOTS * WHEEL_MS);
		now += (uint64_t)(wait ? wait : 1);
		skv_wheel_run(&wheel, now);
	}
	assert_int_equal(fired, TIMERS);
}

static void wheel_after_a_pause(void **state)
{
	uint64_t now = 5000;

	(void)state;
	memset(timers, 0, sizeof timers);
	skv_wheel_init(&wheel, now);
	timers[0].t.fire = meddle;
	timers[1].t.fire = note_fired;
	skv_wheel_set(&wheel, &timers[0].t, now + 100);
	skv_wheel_set(&wheel, &timers[1].t, now + 100);
	skv_wheel_run(&wheel, now + 1000000); /* many rounds at once */
	assert_int_equal(timers[0].fired, 1);
	assert_int_equal(timers[1].fired, 0);
	skv_wheel_run(&wheel, now + 1000000 + 2 * WHEEL_MS);
	assert_int_equal(timers[0].fired, 2);
	assert_int_equal(wheel.n, 0);
}

/* ---- messages -------------------------------------------------------------------------------- */

static int take(struct skv_request *c, enum skv_operation id, const void *p, size_t n)
{
	skv_request_reset(c);
	c->route = &skv_routes[id];
	assert_int_equal(skv_request_open(c, &skv_v1_api,
					  &(struct skv_head){ .content_type = NULL }), SKV_OK);
	return c->api->message(c, p, n);
}

static void names_and_bodies(void **state)
{
	struct skv_service s = { 0 };
	struct skv_request c;

	(void)state;
	skv_request_init(&c, &s, WIRE_GRPC);
	assert_int_equal(take(&c, SKV_OP_lookup, "\x7a\x01m\x08\x01", 5), SKV_OK);
	assert_string_equal(c.param[0].value, "m");
	assert_int_equal(c.n_body, 5);
	assert_int_equal(take(&c, SKV_OP_lookup, "\x08\x01", 2), SKV_E_INVALID);
	assert_string_equal(c.err.field, "instance");
	assert_int_equal(take(&c, SKV_OP_lookup, "\x78\x01", 2), SKV_E_INVALID);
	assert_int_equal(take(&c, SKV_OP_lookup, "\x7a\x02m", 3), SKV_E_INVALID);
	assert_int_equal(take(&c, SKV_OP_instance_put, "\x0a\x01m\x12\x02xy", 7), SKV_OK);
	assert_memory_equal(c.body, "xy", 2);
	assert_int_equal(c.n_body, 2);
	assert_int_equal(take(&c, SKV_OP_instance_put, "\x0a\x01m", 3), SKV_OK);
	assert_int_equal(c.n_body, 0);
	assert_int_equal(take(&c, SKV_OP_instance_put, "\x0a\x01m\x12\x01x\x12\x01y", 9),
			 SKV_E_INVALID);
	assert_int_equal(take(&c, SKV_OP_instance_put, "\x0a\x01m\x10\x01", 5), SKV_E_INVALID);
	assert_int_equal(take(&c, SKV_OP_block_get, "\x0a\x01m\x22\x02\x00%", 7), SKV_OK);
	assert_string_equal(v1_of(&c)->key_text, "%00%25");
	assert_ptr_equal(c.route, &skv_routes[SKV_OP_block_find]);
	assert_int_equal(take(&c, SKV_OP_block_get, "\x0a\x01m\x19\x07\0\0\0\0\0\0\0", 12),
			 SKV_OK);
	assert_string_equal(v1_of(&c)->key_number, "7");
	assert_int_equal(take(&c, SKV_OP_block_get,
			      "\x0a\x01m\x12\x10"
			      "0123456789abcdef",
			      21),
			 SKV_OK);
	assert_string_equal(c.param[1].value, "30313233343536373839616263646566");
	assert_int_equal(take(&c, SKV_OP_block_get, "\x0a\x01m", 3), SKV_E_INVALID);
	skv_request_destroy(&c);
}

/* Every method of the table is in the descriptors, with the field that the table names. */
static void services_are_described(void **state)
{
	const struct skv_apis apis = { { &skv_v1_api }, 1, SKV_PLANE_ALL };

	(void)state;
	assert_true(skv_grpc_service_known(&apis, "slabkv.v1.SlabKV", 16));
	assert_true(skv_grpc_service_known(&apis, "grpc.health.v1.Health", 21));
	assert_false(skv_grpc_service_known(&apis, "slabkv.v1.SlabK", 15));
	assert_false(skv_grpc_service_known(&apis, "SlabKV", 6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeouts),
		cmocka_unit_test(percent),
		cmocka_unit_test(wheel_fires_in_time),
		cmocka_unit_test(wheel_after_a_pause),
		cmocka_unit_test(names_and_bodies),
		cmocka_unit_test(services_are_described),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
