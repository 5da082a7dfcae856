/*
 * test_etcd_kills.c - the store on etcd while its servers are killed, all restarted, or full, under
 * appends with a ledger: whatever was acknowledged is there, once, with its bytes; what was refused
 * is not. Prints the longest pause of an append.
 *
 * The first argument selects cases; SKV_ROUNDS is the number of kills.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_store.h"
#include "etcd_calls.h"

#define PARTITIONS 4
#define BYTES 2000

static struct etcd_servers servers;

static int stop(void **state)
{
	(void)state;
	etcd_stop(&servers);
	return 0;
}

static struct skv_store *open_store(void)
{
	struct skv_store_options o = { .durability = SKV_DURABILITY_FULL };
	struct skv_store *s = NULL;
	char url[300];

	snprintf(url, sizeof url, "etcd://%s/kills", etcd_endpoints(&servers, 0));
	o.path = url;
	expect(skv_store_open(&skv_store_etcd, &o, &s, &err), SKV_OK, NULL);
	return s;
}

static void start_servers(uint32_t n, const char *options)
{
	struct skv_etcd *c;

	etcd_start(&servers, n, false, options);
	c = open_at(etcd_endpoints(&servers, 0), LONG_MS);
	wait_ready(c);
	skv_etcd_close(c);
}

/* ---- writers with a ledger ------------------------------------------------------------------- */

struct writer {
	struct skv_store *s;
	uint32_t partition;
	pthread_t thread;
	_Atomic uint64_t acknowledged; /* up to this record */
	uint64_t longest_us;
	uint64_t unknown; /* outcomes */
};

static _Atomic bool done;

/* As a manager does after an outcome that is not known. */
static uint64_t acquire_again(struct writer *w, uint64_t *fence)
{
	struct skv_store_stats st = { 0 };
	int rc;

	do
		rc = skv_store_acquire(w->s, w->partition, "me", 60000, fence, NULL, 0, NULL);
	while (rc != SKV_OK && !done);
	do
		rc = skv_store_stats_get(w->s, w->partition, &st, NULL);
	while (rc != SKV_OK && !done);
	return st.last_seq;
}

static void *write_many(void *ctx)
{
	struct writer *w = ctx;
	uint64_t fence = 0, seq = acquire_again(w, &fence), begin = skv_now_us();
	uint8_t bytes[BYTES];

	while (!done) {
		int rc;

		bench_fill(seq + 1 + w->partition * 1000000u, bytes, sizeof bytes);
		rc = skv_store_append(w->s, w->partition, fence, seq + 1, bytes, sizeof bytes, 0,
				      NULL);
		if (rc == SKV_OK) {
			const uint64_t now = skv_now_us();

			w->acknowledged = ++seq;
			w->longest_us = now - begin > w->longest_us ? now - begin : w->longest_us;
			begin = now;
		} else if (rc != SKV_E_STORE_IO) {
			w->unknown += rc == SKV_E_UNKNOWN_OUTCOME;
			seq = acquire_again(w, &fence);
		}
	}
	return NULL;
}

struct check {
	uint32_t partition;
	uint64_t seq;
};

static int check_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct check *c = ctx;
	uint8_t want[BYTES];

	assert_int_equal(seq, ++c->seq);
	assert_int_equal(n, sizeof want);
	bench_fill(seq + c->partition * 1000000u, want, sizeof want);
	assert_memory_equal(bytes, want, n);
	return SKV_OK;
}

static int no_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	(void)ctx;
	(void)bytes;
	fail_msg("slice %u of %zu bytes", number, n);
	return SKV_OK;
}

/* All that was acknowledged, and at most one record more. */
static void check_all(struct writer *w)
{
	for (uint32_t i = 0; i < PARTITIONS; i++) {
		struct check c = { .partition = i };
		const struct skv_load_sink sink = { no_slice, check_record, &c };
		uint64_t base;

		expect(skv_store_load(w[i].s, i, &base, &sink, &err), SKV_OK, NULL);
		assert_true(c.seq >= w[i].acknowledged && c.seq <= w[i].acknowledged + 1);
	}
}

static void start_writers(struct writer *w, struct skv_store *s)
{
	done = false;
	for (uint32_t i = 0; i < PARTITIONS; i++) {
		w[i] = (struct writer){ .s = s, .partition = i };
		assert_int_equal(pthread_create(&w[i].thread, NULL, write_many, &w[i]), 0);
	}
}

static void stop_writers(struct writer *w, const char *what)
{
	uint64_t longest = 0, records = 0, unknown = 0;

	done = true;
	for (uint32_t i = 0; i < PARTITIONS; i++) {
		pthread_join(w[i].thread, NULL);
		longest = w[i].longest_us > longest ? w[i].longest_us : longest;
		records += w[i].acknowledged;
		unknown += w[i].unknown;
	}
	printf("%s: %llu records, longest pause %llu ms, %llu outcomes not known\n", what,
	       (unsigned long long)records, (unsigned long long)longest / 1000,
	       (unsigned long long)unknown);
}

static uint64_t acknowledged(const struct writer *w)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < PARTITIONS; i++)
		n += w[i].acknowledged;
	return n;
}

static void wait_for_more(const struct writer *w)
{
	const uint64_t then = acknowledged(w);

	while (acknowledged(w) < then + 50)
		poll(NULL, 0, 10);
}

/* ---- scenes ---------------------------------------------------------------------------------- */

/* The member that says that it leads. */
static uint32_t find_leader(void)
{
	for (;;)
		for (uint32_t i = 0; i < servers.n; i++) {
			struct skv_etcd_status st = { .leader = 0 };
			char at[32];
			struct skv_etcd *c;
			int rc;

			snprintf(at, sizeof at, "127.0.0.1:%u", servers.client[i]);
			c = open_at(at, 1000);
			rc = skv_etcd_status_get(c, &st, &err);
			skv_etcd_close(c);
			if (rc == SKV_OK && st.leader && st.leader == st.member_id)
				return i;
		}
}

static unsigned rounds(void)
{
	const char *n = getenv("SKV_ROUNDS");

	return n ? (unsigned)strtoul(n, NULL, 10) : 3;
}

static void leaders_are_killed(void **state)
{
	struct writer w[PARTITIONS];
	struct skv_store *s;

	(void)state;
	start_servers(3, "");
	s = open_store();
	start_writers(w, s);
	for (unsigned i = 0; i < rounds(); i++) {
		const uint32_t leader = find_leader();

		wait_for_more(w);
		etcd_kill(&servers, leader);
		wait_for_more(w);
		etcd_start_one(&servers, leader);
		wait_for_more(w);
	}
	stop_writers(w, "leader killed");
	check_all(w);
	skv_store_close(s);
}

static void all_are_killed(void **state)
{
	struct writer w[PARTITIONS];
	struct skv_store *s;

	(void)state;
	start_servers(3, "");
	s = open_store();
	start_writers(w, s);
	for (unsigned i = 0; i < rounds(); i++) {
		wait_for_more(w);
		for (uint32_t k = 0; k < servers.n; k++)
			etcd_kill(&servers, k);
		for (uint32_t k = 0; k < servers.n; k++)
			etcd_start_one(&servers, k);
		wait_for_more(w);
	}
	stop_writers(w, "all killed");
	check_all(w);
	skv_store_close(s);
}

/* Nothing is lost when etcd's quota is reached, and the message says what to do. */
static void a_full_etcd_refuses(void **state)
{
	struct skv_store *s;
	struct writer w[PARTITIONS] = { 0 };
	struct skv_store_stats st;
	uint8_t bytes[BYTES];
	uint64_t fence;
	unsigned raised;
	struct skv_etcd *c;
	struct skv_etcd_answer a = { 0 };
	int rc;

	(void)state;
	start_servers(1, "--quota-backend-bytes 4194304");
	s = open_store();
	for (uint32_t i = 0; i < PARTITIONS; i++)
		w[i] = (struct writer){ .s = s, .partition = i };
	expect(skv_store_acquire(s, 0, "me", 60000, &fence, NULL, 0, &err), SKV_OK, NULL);
	do {
		bench_fill(w[0].acknowledged + 1, bytes, sizeof bytes);
		rc = skv_store_append(s, 0, fence, w[0].acknowledged + 1, bytes, sizeof bytes, 0,
				      &err);
		w[0].acknowledged += rc == SKV_OK;
	} while (rc == SKV_OK);
	expect(rc, SKV_E_STORE_FULL, "quota");
	expect(skv_store_stats_get(s, 0, &st, &err), SKV_OK, NULL);
	assert_int_equal(st.last_seq, w[0].acknowledged); /* refused appends are absent */
	check_all(w);

	/* Room is made as the message says; then it goes on. */
	c = open_at(etcd_endpoints(&servers, 0), LONG_MS);
	expect(skv_etcd_run(c, &(struct skv_etcd_op){ SKV_ETCD_RANGE, .key = skv_etcd_text("x") },
			    &a, &err), SKV_OK, NULL);
	expect(skv_etcd_compact(c, a.revision, &err), SKV_OK, NULL);
	expect(skv_etcd_defragment(c, LONG_MS, &err), SKV_OK, NULL);
	expect(skv_etcd_alarms(c, 1u << SKV_ETCD_ALARM_NOSPACE, &raised, &err), SKV_OK, NULL);
	bench_fill(w[0].acknowledged + 1, bytes, sizeof bytes);
	rc = skv_store_append(s, 0, fence, w[0].acknowledged + 1, bytes, sizeof bytes, 0, &err);
	if (rc == SKV_OK)
		w[0].acknowledged++;
	else
		expect(rc, SKV_E_STORE_FULL, NULL); /* live data alone may fill so small a quota */
	check_all(w);
	skv_etcd_answer_free(&a);
	skv_etcd_close(c);
	skv_store_close(s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_teardown(leaders_are_killed, stop),
		cmocka_unit_test_teardown(all_are_killed, stop),
		cmocka_unit_test_teardown(a_full_etcd_refuses, stop),
	};

	if (!etcd_is_here())
		return 77;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
