/* test_http_held.c - large bodies that never end, and who may send all the same. */
#include <arpa/inet.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "fixture.h"

#define LOOKUP "/v1/instances/m/lookup"
#define KEYS "{\"keys_int\":[1,2,3]}"
#define MIB (1024u * 1024)
#define SLOW 16

/* A body of 1 MiB that is announced and stays one byte short, or ends before with an answer. */
static void send_almost(struct http *h, const char *headers)
{
	char *spaces = malloc(MIB), line[256];

	assert_non_null(spaces);
	memset(spaces, ' ', MIB);
	snprintf(line, sizeof line, "%sContent-Length: %u\r\n", headers, MIB);
	http_request(h, "POST", LOOKUP, line, NULL);
	http_send(h, spaces, MIB - 1);
	free(spaces);
}

static void open_from(struct http *h, uint16_t port, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) },
	from = { .sin_family = AF_INET };

	memset(h, 0, sizeof *h);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
	h->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(h->fd >= 0);
	assert_int_equal(bind(h->fd, (struct sockaddr *)&from, sizeof from), 0);
	assert_int_equal(connect(h->fd, (struct sockaddr *)&to, sizeof to), 0);
}

/* Until `held` of those bodies are there but for their last byte, and `refused` were too much. */
static void await_bodies(struct fixture *x, unsigned held, unsigned refused)
{
	while (atomic_load(&x->service->holds.bytes) != (uint64_t)held * (MIB - 1) ||
	       skv_metrics_get(&x->service->metrics, METRIC_calls_refused_held) != refused)
		sched_yield();
}

/* SLOW of them, one after the other, of which `fit` are held. */
static void send_slow_bodies(struct fixture *x, struct http *slow, unsigned fit,
			     const char *headers, bool many_addresses)
{
	for (unsigned i = 0; i < SLOW; i++) {
		char address[16];

		snprintf(address, sizeof address, "127.0.0.%u", many_addresses ? 10 + i : 1);
		open_from(&slow[i], x->port, address);
		send_almost(&slow[i], headers);
		await_bodies(x, i < fit ? i + 1 : fit, i < fit ? 0 : i + 1 - fit);
	}
}

static void options(struct fixture *x)
{
	x->so.body_max = MIB;
	x->so.body_total_max = SLOW * MIB;
	x->so.pace.bytes_per_s = 0; /* the connections stay as long as the test looks */
}

static void assert_large_body(struct http *h, const char *headers, int status)
{
	char *body = calloc(1, 100001), line[256];
	struct answer a;

	assert_non_null(body);
	memset(body, ' ', 100000);
	memcpy(body, KEYS, sizeof KEYS - 1);
	snprintf(line, sizeof line, "%s", headers);
	http_request(h, "POST", LOOKUP, line, body);
	a = http_read(h, false);
	assert_int_equal(a.status, status);
	if (status == 429)
		assert_error(&a, 429, "too_many");
	answer_free(&a);
	free(body);
}

/* The bodies of one address are bounded together, so small calls go on, and so do
 * large ones from elsewhere. */
static void test_13_21_slow_bodies_leave_room(void **state)
{
	struct fixture *x = *state;
	struct http slow[SLOW], h;
	struct answer a;

	options(x);
	fixture_start(x);
	send_slow_bodies(x, slow, 4, "", false);
	for (int i = 0; i < 20; i++) {
		a = http_call(x->port, "POST", LOOKUP, NULL, KEYS);
		assert_int_equal(a.status, 200);
		answer_free(&a);
	}
	open_from(&h, x->port, "127.0.0.2");
	assert_large_body(&h, "", 200);
	http_close(&h);
	for (int i = 0; i < SLOW; i++)
		http_close(&slow[i]);
	while (atomic_load(&x->service->holds.bytes) > 0)
		sched_yield();
	http_open(&h, x->port);
	assert_large_body(&h, "", 200);
	http_close(&h);
}

static void test_13_21_a_tenant_leaves_room_to_others(void **state)
{
	struct fixture *x = *state;
	struct http slow[SLOW], h;

	options(x);
	x->so.body_address_percent = 100;
	x->so.body_tenant_percent = 25;
	fixture_three_tokens(x);
	fixture_start(x);
	send_slow_bodies(x, slow, 4, BEARER(TOKEN_WRITE), false);
	http_open(&h, x->port);
	assert_large_body(&h, BEARER(TOKEN_READ), 200);
	http_close(&h);
	for (int i = 0; i < SLOW; i++)
		http_close(&slow[i]);
}

/* From many addresses: what is left of the total is for small calls. */
static void test_13_21_a_reserve_for_small_bodies(void **state)
{
	struct fixture *x = *state;
	struct http slow[SLOW], h;
	struct answer a;

	options(x);
	fixture_start(x);
	send_slow_bodies(x, slow, 12, "", true);
	open_from(&h, x->port, "127.0.0.2");
	http_request(&h, "POST", LOOKUP, NULL, KEYS);
	a = http_read(&h, false);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	http_close(&h);
	for (int i = 0; i < SLOW; i++)
		http_close(&slow[i]);
}

/* All of it came at once, so the time that its length allows is far from over: it is cut
 * off because nothing moves. */
static void test_13_21_bodies_that_stand_still_are_cut_off(void **state)
{
	struct fixture *x = *state;
	struct http h;

	options(x);
	x->so.pace = (struct skv_pace_limit){ 65536, 100 };
	fixture_start(x);
	http_open(&h, x->port);
	send_almost(&h, "");
	assert_true(http_ended(&h));
	http_close(&h);
	while (atomic_load(&x->service->holds.bytes) > 0)
		sched_yield();
	while (skv_metrics_get(&x->service->metrics, METRIC_http_connections_dropped) < 1)
		sched_yield(); /* counted once a whole round of connections was cut */
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_13_21_slow_bodies_leave_room),
		T(test_13_21_a_tenant_leaves_room_to_others),
		T(test_13_21_a_reserve_for_small_bodies),
		T(test_13_21_bodies_that_stand_still_are_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
