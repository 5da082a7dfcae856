/*
 * test_cluster.c - the etcd client with three real servers: a writer whose servers are killed,
 * paused and all restarted loses nothing that was acknowledged and finds nothing that was certainly
 * not executed; a watch beside it sees each write once.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "etcd_calls.h"
#include "shell.h"

enum { DONE_WRITES = 400, WRITES = 4000 }; /* so many are acknowledged, of at most so many */
static struct etcd_servers servers;

/* Index of the leader, as any member that answers says. */
static uint32_t find_leader(void)
{
	for (uint32_t i = 0;; i = (i + 1) % servers.n) {
		char endpoint[40];
		struct skv_etcd_status status = { 0 };
		struct skv_etcd *c;
		int rc;

		snprintf(endpoint, sizeof endpoint, "127.0.0.1:%u", servers.client[i]);
		c = open_at(endpoint, LONG_MS);
		rc = servers.pid[i] ? skv_etcd_status_get(c, &status, &err) : SKV_E_STORE_IO;
		skv_etcd_close(c);
		if (rc == SKV_OK && status.leader == status.member_id)
			return i;
	}
}

enum outcome { NONE, DONE, NOT_DONE, MAYBE };

struct writer {
	struct skv_etcd *c;
	enum outcome outcome[WRITES];
	char why[WRITES][SKV_MESSAGE_MAX]; /* error texts of failed writes */
	int n;            /* writes */
	_Atomic int done; /* acknowledged writes */
	_Atomic bool odd; /* a status that no write may have */
};

/* Each write makes its own key, which must not exist. Ends when enough are acknowledged: how many
 * fail meanwhile depends on how fast the servers recover. */
static void *write_keys(void *ctx)
{
	struct writer *w = ctx;

	for (int i = 0; i < WRITES && w->done < DONE_WRITES; i++) {
		char key[16];
		const struct skv_etcd_compare absent = { SKV_ETCD_CREATE, SKV_ETCD_EQUAL,
							 .key = { key, 6 } };
		const struct skv_etcd_op put_one = { SKV_ETCD_PUT, .key = { key, 6 } };
		const struct skv_etcd_txn txn = { &absent, 1, &put_one, 1, NULL, 0 };
		const struct skv_etcd_op op = { SKV_ETCD_TXN, .txn = &txn };
		struct skv_etcd_answer a = { 0 };
		struct skv_error e = { 0 };
		int rc;

		snprintf(key, sizeof key, "k/%04d", i);
		rc = skv_etcd_run(w->c, &op, &a, &e);
		memcpy(w->why[i], e.message, sizeof e.message);
		w->outcome[i] = rc == SKV_OK			? DONE
				: rc == SKV_E_STORE_IO		? NOT_DONE
				: rc == SKV_E_UNKNOWN_OUTCOME	? MAYBE
								: NONE;
		/* A write that was repeated although it had been executed finds its key. */
		if (w->outcome[i] == NONE || (rc == SKV_OK && !a.result.succeeded))
			w->odd = true;
		skv_etcd_answer_free(&a);
		w->n = i + 1;
		w->done += w->outcome[i] == DONE;
	}
	return NULL;
}

static void wait_for(const struct writer *w, int done)
{
	while (w->done < done)
		poll(NULL, 0, 5);
}

static void check_writes(struct writer *w)
{
	int maybe = 0;

	assert_false(w->odd);
	assert_int_equal(w->done, DONE_WRITES);
	for (int i = 0; i < w->n; i++) {
		const char key[] = { 'k', '/', (char)('0' + i / 1000), (char)('0' + i / 100 % 10),
				     (char)('0' + i / 10 % 10), (char)('0' + i % 10) };
		const struct skv_etcd_op op = { SKV_ETCD_RANGE, .key = { key, sizeof key },
						.count_only = true };
		struct skv_etcd_answer a = { 0 };

		expect(skv_etcd_run_within(w->c, LONG_MS, &op, &a, &err), SKV_OK, NULL);
		if (w->outcome[i] == DONE && a.result.count != 1)
			fail_msg("write %d was acknowledged, and is lost", i);
		if (w->outcome[i] == NOT_DONE && a.result.count != 0)
			fail_msg("write %d was not executed, and is there: %s", i, w->why[i]);
		maybe += w->outcome[i] == MAYBE;
		skv_etcd_answer_free(&a);
	}
	printf("%d writes acknowledged, %d of unknown outcome, %d not executed\n", w->done, maybe,
	       w->n - w->done - maybe);
}

static int index_of(const struct skv_etcd_kv *kv)
{
	char digits[5] = "";

	assert_int_equal(kv->key.n, 6);
	memcpy(digits, (const char *)kv->key.p + 2, 4);
	return atoi(digits);
}

/* Every key that exists, once, in order of revisions. A write of unknown outcome may come later. */
static void check_events(struct skv_etcd_watch *w, struct skv_etcd *c)
{
	uint8_t room[4];
	const struct skv_etcd_bytes prefix = { "k/", 2 };
	const struct skv_etcd_op op = { SKV_ETCD_RANGE, .key = prefix, .keys_only = true,
					.end = skv_etcd_prefix_end(prefix, room) };
	uint64_t revision[WRITES] = { 0 }, last = 0;
	struct skv_etcd_answer a = { 0 };
	struct skv_etcd_event e;
	struct skv_etcd_kv kv;
	int rc;

	expect(skv_etcd_run_within(c, LONG_MS, &op, &a, &err), SKV_OK, NULL);
	while (skv_etcd_next_kv(&a.result, &kv))
		revision[index_of(&kv)] = kv.mod_revision;
	for (uint64_t n = 0; n < a.result.count; n++) {
		expect(skv_etcd_watch_next(w, LONG_MS, &e, &err), SKV_OK, NULL);
		assert_int_equal(e.kv.mod_revision, revision[index_of(&e.kv)]);
		assert_true(e.kv.mod_revision > last);
		last = e.kv.mod_revision;
	}
	rc = skv_etcd_watch_next(w, 1, &e, &err);
	if (rc != SKV_OK || e.kv.mod_revision <= a.revision)
		expect(rc, SKV_E_TIMEOUT, NULL);
	skv_etcd_answer_free(&a);
}

static void restart_all(void)
{
	for (uint32_t i = 0; i < servers.n; i++)
		etcd_kill(&servers, i);
	for (uint32_t i = 0; i < servers.n; i++)
		etcd_start_one(&servers, i);
}

static void nothing_acknowledged_is_lost(void **state)
{
	static struct writer w;
	struct skv_etcd_watch *watch;
	struct skv_etcd_options o = { .timeout_ms = 2000, .silent_ms = 300 };
	pthread_t thread;
	uint32_t leader;
	uint8_t room[4];
	const struct skv_etcd_bytes prefix = { "k/", 2 };

	(void)state;
	etcd_start(&servers, 3, false, "--snapshot-count 100");
	o.endpoints = etcd_endpoints(&servers, 0);
	w.c = open_client(&o);
	expect(skv_etcd_watch_open(w.c, prefix, skv_etcd_prefix_end(prefix, room),
				   wait_ready(w.c) + 1, &watch, &err), SKV_OK, NULL);
	assert_int_equal(pthread_create(&thread, NULL, write_keys, &w), 0);
	wait_for(&w, 50);
	leader = find_leader();
	etcd_kill(&servers, leader);
	wait_for(&w, 100);
	etcd_start_one(&servers, leader);
	wait_for(&w, 150);
	leader = find_leader();
	etcd_signal(&servers, leader, SIGSTOP);
	wait_for(&w, 200);
	etcd_signal(&servers, leader, SIGCONT);
	wait_for(&w, 250);
	etcd_kill(&servers, 0); /* the endpoint in use, perhaps */
	etcd_start_one(&servers, 0);
	wait_for(&w, 300);
	restart_all();
	pthread_join(thread, NULL);
	check_writes(&w);
	check_events(watch, w.c);
	skv_etcd_watch_close(watch);
	skv_etcd_close(w.c);
	etcd_stop(&servers);
}

/* Reads move on from a member that hangs, and from one without a leader; a write to it is not said
 * to have failed. */
static void a_silent_member_is_left(void **state)
{
	struct skv_etcd_options o = { .timeout_ms = LONG_MS, .silent_ms = 200 };
	struct skv_etcd *c;
	int rc;

	(void)state;
	etcd_start(&servers, 3, false, "");
	o.endpoints = etcd_endpoints(&servers, 0);
	c = open_client(&o);
	wait_ready(c);
	expect(put(c, "a", "1"), SKV_OK, NULL);
	etcd_signal(&servers, 0, SIGSTOP); /* c is connected to it */
	assert_string_equal(get(c, "a"), "1");
	etcd_signal(&servers, 0, SIGCONT);
	etcd_signal(&servers, 1, SIGSTOP);
	rc = put_once(c, "a", "2");
	assert_true(rc == SKV_OK || rc == SKV_E_UNKNOWN_OUTCOME);
	expect(put(c, "a", "3"), SKV_OK, NULL);
	assert_string_equal(get(c, "a"), "3");
	etcd_signal(&servers, 1, SIGCONT);
	skv_etcd_close(c);

	/* A single member alone has no leader; the client reports this at its deadline. */
	etcd_kill(&servers, 1);
	etcd_kill(&servers, 2);
	o.timeout_ms = 3000;
	c = open_client(&o);
	rc = put_once(c, "a", "4");
	assert_true(rc == SKV_E_STORE_IO || rc == SKV_E_UNKNOWN_OUTCOME);
	rc = skv_etcd_run(c, &(struct skv_etcd_op){ SKV_ETCD_RANGE, .key = { "a", 1 } }, NULL,
			  &err);
	expect(rc, SKV_E_STORE_IO, NULL);
	etcd_start_one(&servers, 1);
	wait_ready(c);
	skv_etcd_close(c);
	etcd_stop(&servers);
}

/* Endpoints of two clusters, and a cluster that was put back to an older state, are not taken for
 * the same one. */
static void another_history_is_refused(void **state)
{
	struct etcd_servers other;
	char both[80], command[900];
	struct skv_etcd *c;

	(void)state;
	etcd_start(&servers, 1, false, "");
	etcd_start(&other, 1, false, "");
	c = open_at(etcd_endpoints(&servers, 0), LONG_MS);
	wait_ready(c);
	skv_etcd_close(c);
	snprintf(both, sizeof both, "127.0.0.1:%u,127.0.0.1:%u", servers.client[0],
		 other.client[0]);
	c = open_at(both, LONG_MS);
	wait_ready(c); /* connected to the first */
	etcd_kill(&servers, 0);
	expect(put(c, "a", "1"), SKV_E_FOREIGN, "correct the endpoints");
	skv_etcd_close(c);
	etcd_stop(&other);

	etcd_start_one(&servers, 0);
	snprintf(both, sizeof both, "127.0.0.1:%u", servers.client[0]);
	c = open_at(both, LONG_MS);
	expect(put(c, "a", "1"), SKV_OK, NULL);
	etcd_kill(&servers, 0);
	snprintf(command, sizeof command, "cp -r %s/m0 %s/old", servers.dir, servers.dir);
	assert_int_equal(test_shell(command), 0);
	etcd_start_one(&servers, 0);
	for (int i = 0; i < 20; i++) /* more than the repetitions of the put below */
		expect(put(c, "a", "2"), SKV_OK, NULL);
	etcd_kill(&servers, 0);
	snprintf(command, sizeof command, "rm -r %s/m0 && mv %s/old %s/m0", servers.dir,
		 servers.dir, servers.dir);
	assert_int_equal(test_shell(command), 0);
	etcd_start_one(&servers, 0);
	expect(put(c, "b", "1"), SKV_E_CORRUPT, "went back");
	for (int i = 0; i < 30; i++) /* also when etcd has more revisions than it had */
		expect(put(c, "b", "2"), SKV_E_CORRUPT, "went back");
	skv_etcd_close(c);
	c = open_at(both, LONG_MS);
	expect(put(c, "b", "3"), SKV_OK, NULL);
	skv_etcd_close(c);
	etcd_stop(&servers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_acknowledged_is_lost),
		cmocka_unit_test(a_silent_member_is_left),
		cmocka_unit_test(another_history_is_refused),
	};

	return etcd_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
