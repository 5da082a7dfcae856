/* test_hold.c - the bounds of what calls hold, and the minimum rate, without connections. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skv/hold.h>
#include <skv/pace.h>
#include <skv/peers.h>

#define MIB (1024u * 1024)
#define SMALL SKV_HOLD_SMALL

static const struct skv_hold_options options = { 16 * MIB, 2 * MIB, 25, 50, 25 };

static struct skv_hold from(const char *address, const char *tenant)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct skv_hold h = { .tenant = tenant };

	assert_int_equal(inet_pton(AF_INET, address, &a.sin_addr), 1);
	skv_hold_address((const struct sockaddr *)&a, h.address);
	return h;
}

static void test_an_address_and_a_tenant_have_shares(void **state)
{
	struct skv_hold one = from("10.0.0.1", "a"), two = from("10.0.0.1", "a"),
			three = from("10.0.0.2", "a"), four = from("10.0.0.3", "a"),
			other = from("10.0.0.3", "b");
	struct skv_holds hs;

	(void)state;
	skv_holds_init(&hs, &options);
	assert_null(skv_hold_add(&hs, &one, 2 * MIB));
	assert_null(skv_hold_add(&hs, &two, 2 * MIB));
	assert_non_null(strstr(skv_hold_add(&hs, &two, 1), "this address"));
	assert_int_equal(two.bytes, 2 * MIB);
	assert_null(skv_hold_add(&hs, &three, 4 * MIB)); /* the tenant has 8 of 16 now */
	assert_non_null(strstr(skv_hold_add(&hs, &four, SMALL + 1), "this tenant"));
	assert_false(four.large);
	assert_null(skv_hold_add(&hs, &four, SMALL)); /* a small call is nobody's share */
	assert_null(skv_hold_add(&hs, &other, 4 * MIB));
	skv_hold_release(&hs, &one);
	assert_null(skv_hold_add(&hs, &two, 2 * MIB));
	skv_hold_release(&hs, &two);
	skv_hold_release(&hs, &three);
	skv_hold_release(&hs, &four);
	skv_hold_release(&hs, &other);
	skv_holds_destroy(&hs);
}

/* A limit of the tenant's own, which one call alone may exceed up to what any call may hold. */
static void test_a_tenant_has_a_limit_of_its_own(void **state)
{
	struct skv_hold one = from("10.0.0.1", "a"), two = from("10.0.0.2", "a"),
			other = from("10.0.0.3", "b");
	struct skv_holds hs;

	(void)state;
	skv_holds_init(&hs, &options);
	one.tenant_max = two.tenant_max = 4 * MIB;
	assert_null(skv_hold_add(&hs, &one, 3 * MIB));
	assert_int_equal(skv_hold_of_tenant(&hs, "a"), 3 * MIB);
	assert_non_null(strstr(skv_hold_add(&hs, &two, 2 * MIB), "this tenant"));
	assert_null(skv_hold_add(&hs, &two, 1 * MIB));
	assert_null(skv_hold_add(&hs, &other, 4 * MIB));
	skv_hold_release(&hs, &one);
	skv_hold_release(&hs, &two);
	assert_int_equal(skv_hold_of_tenant(&hs, "a"), 0);
	one.tenant_max = 1;
	assert_null(skv_hold_add(&hs, &one, options.one));
	assert_non_null(skv_hold_add(&hs, &one, 1));
	skv_hold_release(&hs, &one);
	skv_hold_release(&hs, &other);
	skv_holds_destroy(&hs);
}

static void test_large_calls_leave_a_reserve(void **state)
{
	struct skv_hold large[6], small = from("10.0.1.1", NULL);
	struct skv_holds hs;

	(void)state;
	skv_holds_init(&hs, &options);
	for (unsigned i = 0; i < 6; i++) {
		char address[] = "10.0.0.0";

		address[7] = (char)('0' + i);
		large[i] = from(address, NULL);
		assert_null(skv_hold_add(&hs, &large[i], 2 * MIB));
	}
	assert_non_null(skv_hold_add(&hs, &small, SMALL + 1));
	for (unsigned i = 0; i < 4 * MIB / SMALL; i++) { /* the reserve is for many small ones */
		struct skv_hold h = from("10.0.1.1", NULL);

		assert_null(skv_hold_add(&hs, &h, SMALL));
		atomic_fetch_add(&hs.bytes, SMALL); /* the bytes stay when h goes */
		skv_hold_release(&hs, &h);
	}
	assert_non_null(skv_hold_add(&hs, &small, 1));
	atomic_fetch_sub(&hs.bytes, 4 * MIB);
	for (unsigned i = 0; i < 6; i++)
		skv_hold_release(&hs, &large[i]);
	skv_holds_destroy(&hs);
}

/* Running calls are counted beyond the bounds, and their owner may begin nothing until they are
 * gone. */
static void test_answers_refuse_what_comes_after(void **state)
{
	struct skv_hold unread = from("10.0.0.1", NULL), same = from("10.0.0.1", NULL),
			other = from("10.0.0.2", NULL);
	struct skv_holds hs;

	(void)state;
	skv_holds_init(&hs, &options);
	skv_hold_force(&hs, &unread, 5 * MIB);
	assert_non_null(strstr(skv_hold_check(&hs, &same, false), "this address"));
	assert_null(skv_hold_check(&hs, &other, false));
	skv_hold_force(&hs, &unread, 12 * MIB);
	assert_non_null(skv_hold_check(&hs, &other, false));
	assert_null(skv_hold_check(&hs, &same, true)); /* a call of an operator */
	skv_hold_force(&hs, &unread, 4 * MIB);
	assert_non_null(skv_hold_check(&hs, &same, true));
	skv_hold_release(&hs, &unread);
	assert_null(skv_hold_check(&hs, &same, false));
	skv_holds_destroy(&hs);
}

/* A body that alone is more than a share passes when nobody else holds anything. */
static void test_one_body_fits_every_share(void **state)
{
	const struct skv_hold_options narrow = { 4 * MIB, 3 * MIB, 50, 1, 1 };
	struct skv_hold h = from("10.0.0.1", "a");
	struct skv_holds hs;

	(void)state;
	skv_holds_init(&hs, &narrow);
	for (unsigned i = 0; i < 48; i++)
		assert_null(skv_hold_add(&hs, &h, SMALL));
	assert_non_null(skv_hold_add(&hs, &h, 1));
	skv_hold_release(&hs, &h);
	skv_holds_destroy(&hs);
}

static void test_addresses(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		/* A single host may have all of these. */
		{ "2001:db8::1", "2001:db8::ffff:1", true },
		{ "2001:db8::1", "2001:db8:0:1::1", false },
		{ "::ffff:10.0.0.1", "::ffff:10.0.0.2", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sockaddr_in6 a = { .sin6_family = AF_INET6 }, b = a;
		uint8_t x[SKV_ADDRESS_BYTES], y[SKV_ADDRESS_BYTES];

		assert_int_equal(inet_pton(AF_INET6, rows[i].a, &a.sin6_addr), 1);
		assert_int_equal(inet_pton(AF_INET6, rows[i].b, &b.sin6_addr), 1);
		skv_hold_address((const struct sockaddr *)&a, x);
		skv_hold_address((const struct sockaddr *)&b, y);
		assert_int_equal(memcmp(x, y, sizeof x) == 0, rows[i].same);
	}
}

static void test_connections_of_an_address(void **state)
{
	struct skv_hold one = from("10.0.0.1", NULL), two = from("10.0.0.2", NULL);
	struct skv_peers p;

	(void)state;
	skv_peers_init(&p, 2);
	assert_true(skv_peers_enter(&p, one.address));
	assert_true(skv_peers_enter(&p, one.address));
	assert_false(skv_peers_enter(&p, one.address));
	assert_true(skv_peers_enter(&p, two.address));
	skv_peers_leave(&p, one.address);
	assert_true(skv_peers_enter(&p, one.address));
	skv_peers_leave(&p, one.address);
	skv_peers_leave(&p, one.address);
	skv_peers_leave(&p, two.address);
	skv_peers_destroy(&p);
}

static void test_pace(void **state)
{
	const struct skv_pace_limit l = { 1000, 5000 }, none = { 0, 5000 };
	struct skv_pace p = { 0 };

	(void)state;
	assert_int_equal(skv_pace_due(&p, &none), UINT64_MAX);
	assert_int_equal(skv_pace_due(&p, &l), 0);
	/* begins: what has moved by then does not count */
	assert_true(skv_pace_keeps(&p, &l, 100, 70000));
	assert_int_equal(skv_pace_due(&p, &l), 5100);
	assert_true(skv_pace_keeps(&p, &l, 5099, 70000));
	assert_true(skv_pace_keeps(&p, &l, 5100, 75000));
	assert_false(skv_pace_keeps(&p, &l, 10100, 79999));
	assert_true(skv_pace_keeps(&p, &none, 99999, 79999));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_address_and_a_tenant_have_shares),
		cmocka_unit_test(test_a_tenant_has_a_limit_of_its_own),
		cmocka_unit_test(test_large_calls_leave_a_reserve),
		cmocka_unit_test(test_answers_refuse_what_comes_after),
		cmocka_unit_test(test_one_body_fits_every_share),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_connections_of_an_address),
		cmocka_unit_test(test_pace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
