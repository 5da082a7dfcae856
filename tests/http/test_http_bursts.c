/* test_http_bursts.c - many keep-alive connections that send at the same
 * moment: each is answered. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "box.h"

#define MOST 1024
#define ROUNDS 3

static void make_room_for_descriptors(void)
{
	struct rlimit r;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = r.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
	assert_true(r.rlim_cur >= MOST + 128);
}

static void read_answer(struct http *h, unsigned i, unsigned n)
{
	struct answer a = http_read(h, false); /* fails the test when nothing comes */

	if (a.status != 200)
		fail_msg("request %u of %u at once: status %d", i + 1, n, a.status);
	answer_free(&a);
}

/* The manager stands still while the requests come, so that its threads find all of
 * them ready when they look. */
static void burst(struct manager *m, struct http *h, unsigned n)
{
	int status;

	assert_int_equal(kill(m->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(m->pid, &status, WUNTRACED), m->pid);
	assert_true(WIFSTOPPED(status));
	for (unsigned i = 0; i < n; i++)
		http_request(&h[i], "GET", "/healthz", NULL, NULL);
	assert_int_equal(kill(m->pid, SIGCONT), 0);
	for (unsigned i = 0; i < n; i++)
		read_answer(&h[i], i, n);
}

static void bursts(struct box *b, const char *threads)
{
	static const unsigned sizes[] = { 127, 128, 129, 256, 384, 512, 1024 };
	struct manager *m = box_start(b, 0, LIST(threads, "--owner_lease_ms=60000"));
	struct http *h = calloc(MOST, sizeof *h);

	assert_non_null(h);
	for (unsigned i = 0; i < MOST; i++) {
		http_open(&h[i], m->port);
		/* the connection's thread knows it from here on */
		http_request(&h[i], "GET", "/healthz", NULL, NULL);
		read_answer(&h[i], i, MOST);
	}
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
			burst(m, h, sizes[i]);
	for (unsigned i = 0; i < MOST; i++)
		http_close(&h[i]);
	free(h);
	manager_stop(m);
}

/* libmicrohttpd 0.9.75 takes 128 events at a time, and waits for more before it looks at
 * them when it got as many. */
static void test_13_23_bursts_on_one_thread(void **state) { bursts(*state, "--threads=1"); }

/* Connections are dealt in turn: 256 at once are 128 for each thread. */
static void test_13_23_bursts_on_two_threads(void **state) { bursts(*state, "--threads=2"); }

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, box_setup, box_teardown)
	const struct CMUnitTest tests[] = {
		T(test_13_23_bursts_on_one_thread),
		T(test_13_23_bursts_on_two_threads),
	};

	make_room_for_descriptors();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
