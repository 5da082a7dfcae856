/*
 * test_redis_silent.c - going on without a replica that is silent (?silent_ms=), on a real cluster
 * of three masters with a replica each: what is recorded, who may be a primary, how a replica comes
 * back, and what a manager that was killed on the way leaves.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "redis_calls.h"

#define KEYS 16
#define URL "p?replicas=0&timeout_ms=8000&silent_ms=1000"

static struct servers servers;
static int primary, replica; /* of partition 0 */

static struct skv_store *open_all(const char *tail)
{
	char url[600];
	const struct skv_store_options o = { .path = url };
	struct skv_store *s = NULL;

	servers_url(&servers, tail, url, sizeof url);
	if (skv_store_open(&skv_store_redis, &o, &s, &err) != SKV_OK)
		fail_msg("%s", err.message);
	return s;
}

/* It asks this server first. */
static struct skv_store *open_one(int i, const char *tail)
{
	struct servers one = servers;
	struct skv_store *s;

	servers.port[0] = servers.port[i];
	servers.n = 1;
	s = open_all(tail);
	servers = one;
	return s;
}

static void refused(const char *tail, int status, const char *part)
{
	char url[400];

	servers_url(&servers, tail, url, sizeof url);
	refused_url(url, status, part);
}

static int ignore_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	(void)ctx;
	(void)number;
	(void)bytes;
	(void)n;
	return SKV_OK;
}

static int count_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	(void)bytes;
	(void)n;
	*(uint64_t *)ctx = seq;
	return SKV_OK;
}

static int load(struct skv_store *s, uint64_t *last)
{
	const struct skv_load_sink sink = { ignore_slice, count_record, last };
	uint64_t base;

	*last = 0;
	return skv_store_load(s, 0, &base, &sink, &err);
}

static void begin(void)
{
	servers_start_cluster(&servers, 500);
	primary = servers_primary(&servers, "{p.0}:journal");
	replica = primary + 3;
}

/* ---- what is recorded, and listed ------------------------------------------------------------ */

static void replica_id(char out[48])
{
	snprintf(out, 48, "%.40s", servers_ask(&servers, replica, "CLUSTER MYID"));
}

/* The record of this node in another shard; "": there is none. */
static const char *record(const char *id)
{
	static char text[1100];

	for (int k = 0; k < KEYS; k++)
		for (int i = 0; i < servers.n; i++) {
			const char *said;

			if (i == primary || i == replica || servers.pid[i] <= 0)
				continue;
			said = servers_ask(&servers, i, "HGET {p.silent.%d}:nodes %s", k, id);
			if (said[0] && said[0] != '-') {
				snprintf(text, sizeof text, "%s", said);
				return text;
			}
		}
	return "";
}

/* Writes it like a manager that was killed just after. */
static void set_record(const char *id, const char *state)
{
	char of[48];

	snprintf(of, sizeof of, "%.40s", servers_ask(&servers, primary, "CLUSTER MYID"));
	for (int k = 0; k < KEYS; k++)
		for (int i = 0; i < 3; i++) {
			if (i == primary)
				continue;
			if (servers_ask(&servers, i,
					"EVAL return(redis.call('HSET',KEYS[1],ARGV[1],table."
					"concat({ARGV[2],ARGV[3],ARGV[4],ARGV[5]},string.char("
					"32)))) 1 "
					"{p.silent.%d}:nodes %s %s 0123456789abcdef 127.0.0.1:%u "
					"%s",
					k, id, state, servers.port[replica], of)[0] != '-')
				return;
		}
	fail();
}

static int listed_by(const char *id)
{
	int n = 0;

	for (int i = 0; i < 3; i++)
		n += servers.pid[i] > 0 && strstr(servers_ask(&servers, i, "CLUSTER NODES"), id);
	return n;
}

static void forget(const char *id)
{
	for (int i = 0; i < servers.n; i++)
		if (i != replica)
			servers_ask(&servers, i, "CLUSTER FORGET %s", id);
}

/* Appends until it is one like the others: its record is gone, and all masters list it. (Redis from
 * 7.2 on and Valkey tell each other for 60 s what is forgotten.) */
static void taken_back(struct skv_store *s, uint64_t fence, uint64_t *seq, const char *id)
{
	for (int tries = 0; tries < 2000; tries++) {
		appended(s, fence, ++*seq);
		if (!record(id)[0] && listed_by(id) == 3)
			return;
		poll(NULL, 0, 50);
	}
	fail_msg("after 100 s: record '%s', listed by %d", record(id), listed_by(id));
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void it_is_for_clusters(void **state)
{
	(void)state;
	servers_start(&servers, 1, NULL);
	refused("p?silent_ms=1000", SKV_E_UNSUPPORTED, "this is no cluster: leave it out");
	refused("p?silent_ms=999", SKV_E_INVALID, "silent_ms is not 0 or a number from 1000");
	refused("p?silent_ms=1501", SKV_E_INVALID, "more than half of timeout_ms");
	servers_stop(&servers);
}

/* All of it: while its disk is slow, a server keeps what was written for 2 s in memory. */
static void in_its_file(int i)
{
	for (int tries = 0; tries < 500; tries++) {
		const char *said = servers_ask(&servers, i, "INFO persistence");

		if (strstr(said, "aof_rewrite_in_progress:0") &&
		    strstr(said, "aof_rewrite_scheduled:0") &&
		    strstr(said, "aof_buffer_length:0\r"))
			return;
		poll(NULL, 0, 20);
	}
	fail();
}

/* Nobody votes for it; somebody makes it the primary by force: it is not taken for one. */
static void what_was_acknowledged_without_it_is_not_lost(void **state)
{
	static const char *const again[] = { "--cluster-enabled", "yes", "--appendonly", "yes",
					     "--cluster-node-timeout", "500", NULL };
	struct skv_store *s, *other;
	uint64_t fence, seq = 0, last;
	char id[48];
	int rc = SKV_E_INTERNAL;

	(void)state;
	begin();
	replica_id(id);
	servers_ask(&servers, primary, "CONFIG SET appendonly yes");
	for (int i = 0; i < servers.n; i++) /* or the others would not even be asked */
		servers_ask(&servers, i, "CONFIG SET cluster-require-full-coverage no");
	s = open_all(URL);
	other = open_one(replica, "p?replicas=0&timeout_ms=2500&silent_ms=1000");
	fence = acquire(s);
	appended(s, fence, ++seq);
	servers_signal(&servers, replica, SIGSTOP);
	while (seq < 20)
		appended(s, fence, ++seq);
	assert_memory_equal(record(id), "out ", 4);
	assert_int_equal(listed_by(id), 0);
	refused("p?replicas=0", SKV_E_UNSUPPORTED, "set silent_ms here, too");
	in_its_file(primary);
	servers_signal(&servers, primary, SIGKILL);
	servers_signal(&servers, replica, SIGCONT);
	assert_string_equal(servers_ask(&servers, replica, "CLUSTER FAILOVER TAKEOVER"), "OK");
	assert_int_equal(load(other, &last), SKV_E_STORE_IO);
	if (!strstr(err.message, "was silent when others acknowledged"))
		fail_msg("%s", err.message);
	assert_int_not_equal(append(other, fence, seq + 1), SKV_OK);
	servers_again(&servers, primary, again);
	for (int tries = 0; tries < 100 && (rc = load(other, &last)) != SKV_OK; tries++)
		poll(NULL, 0, 100);
	if (rc != SKV_OK)
		fail_msg("%s", err.message);
	assert_int_equal(last, seq);
	skv_store_close(other);
	skv_store_close(s);
	servers_stop(&servers);
}

static void it_comes_back(void **state)
{
	struct skv_store *s;
	uint64_t fence, seq = 0, last;
	char id[48];

	(void)state;
	begin();
	replica_id(id);
	s = open_all(URL);
	fence = acquire(s);
	servers_signal(&servers, replica, SIGSTOP);
	while (seq < 20)
		appended(s, fence, ++seq);
	servers_signal(&servers, replica, SIGCONT);
	taken_back(s, fence, &seq, id);
	servers_signal(&servers, replica, SIGSTOP); /* once more */
	for (int i = 0; i < 100; i++)
		appended(s, fence, ++seq);
	assert_int_equal(listed_by(id), 0);
	servers_signal(&servers, replica, SIGCONT);
	taken_back(s, fence, &seq, id);
	servers_signal(&servers, primary, SIGKILL);
	assert_int_equal(load(s, &last), SKV_OK); /* it is elected, and has all */
	assert_int_equal(last, seq);
	skv_store_close(s);
	servers_stop(&servers);
}

/* Another manager has just begun to count it: what this one knows is older than its last look. */
static void who_counts_again_is_waited_for(void **state)
{
	struct skv_store *s;
	uint64_t fence, seq = 0;
	char id[48];

	(void)state;
	begin();
	replica_id(id);
	s = open_all(URL);
	fence = acquire(s);
	servers_signal(&servers, replica, SIGSTOP);
	appended(s, fence, ++seq);
	for (int i = 0; i < 4; i++) {
		appended(s, fence, ++seq);
		set_record(id, "back");
		appended(s, fence, ++seq); /* so it is found to be silent once more */
		assert_memory_equal(record(id), "out ", 4);
	}
	skv_store_close(s);
	servers_stop(&servers);
}

/* A connection that was not used for a while: its server may have been a replica meanwhile. */
static void an_idle_connection_is_looked_at_again(void **state)
{
	struct skv_store *s;
	uint64_t fence;
	char id[48];

	(void)state;
	begin();
	s = open_all("p?replicas=0&timeout_ms=2500&silent_ms=1000");
	fence = acquire(s);
	appended(s, fence, 1);
	snprintf(id, sizeof id, "%.40s", servers_ask(&servers, primary, "CLUSTER MYID"));
	set_record(id, "out");
	poll(NULL, 0, 600); /* it is idle */
	assert_int_equal(append(s, fence, 2), SKV_E_STORE_IO);
	if (!strstr(err.message, "was silent when others acknowledged"))
		fail_msg("%s", err.message);
	skv_store_close(s);
	servers_stop(&servers);
}

/* Two shards have a silent replica each, so neither can acknowledge a record: a third one does. */
static void a_host_is_gone(void **state)
{
	struct skv_store *s;
	uint64_t fence, seq = 0;
	char id[48];
	int other = 0;

	(void)state;
	begin();
	replica_id(id);
	s = open_all(URL);
	fence = acquire(s);
	for (int k = 0; k < KEYS && (other == primary || k == 0); k++)
		for (int i = 0; i < 3; i++)
			if (servers_ask(&servers, i, "EXISTS {p.silent.%d}:nodes", k)[0] != '-')
				other = i;
	assert_int_not_equal(other, primary);
	servers_signal(&servers, replica, SIGSTOP);
	servers_signal(&servers, other + 3, SIGSTOP); /* of the first key's shard */
	while (seq < 20)
		appended(s, fence, ++seq);
	assert_int_equal(listed_by(id), 0);
	servers_signal(&servers, replica, SIGCONT);
	servers_signal(&servers, other + 3, SIGCONT);
	taken_back(s, fence, &seq, id);
	skv_store_close(s);
	servers_stop(&servers);
}

static void over_tls_it_comes_back(void **state)
{
	servers_use_tls(true);
	it_comes_back(state);
	servers_use_tls(false);
}

/* A manager is killed after each step: the next one brings it to an end. */
static void what_a_killed_manager_left_is_ended(void **state)
{
	static const struct {
		const char *state;
		bool silent, forgotten;
	} left[] = {
		{ "out", false, false }, { "out", true, false }, { "out", false, true },
		{ "out", true, true },   { "back", false, true }, { "back", true, true },
		{ "in", false, true },   { "in", false, false },  { "in", true, false },
	};
	struct skv_store *s;
	uint64_t fence, seq = 0;
	char id[48];

	(void)state;
	begin();
	replica_id(id);
	for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
		set_record(id, left[i].state);
		if (left[i].forgotten)
			forget(id);
		if (left[i].silent)
			servers_signal(&servers, replica, SIGSTOP);
		s = open_all(URL);
		fence = acquire(s);
		appended(s, fence, ++seq);
		if (left[i].silent) {
			assert_memory_equal(record(id), "out ", 4);
			assert_int_equal(listed_by(id), 0);
			servers_signal(&servers, replica, SIGCONT);
		}
		taken_back(s, fence, &seq, id);
		skv_store_close(s);
	}
	servers_stop(&servers);
}

/* Another manager knows nothing of it, and does the same beside. */
static void two_managers_do_it_side_by_side(void **state)
{
	struct skv_store *s, *other;
	uint64_t fence, theirs, seq = 0;
	char id[48];

	(void)state;
	begin();
	replica_id(id);
	s = open_all(URL);
	other = open_all(URL);
	fence = acquire(s);
	appended(s, fence, ++seq);
	servers_signal(&servers, replica, SIGSTOP);
	appended(s, fence, ++seq);
	theirs = acquire(other);
	appended(other, theirs, ++seq);
	assert_int_equal(append(s, fence, seq + 1), SKV_E_FENCED);
	servers_signal(&servers, replica, SIGCONT);
	taken_back(other, theirs, &seq, id);
	skv_store_close(other);
	skv_store_close(s);
	servers_stop(&servers);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_for_clusters),
		cmocka_unit_test(what_was_acknowledged_without_it_is_not_lost),
		cmocka_unit_test(it_comes_back),
		cmocka_unit_test(who_counts_again_is_waited_for),
		cmocka_unit_test(an_idle_connection_is_looked_at_again),
		cmocka_unit_test(a_host_is_gone),
		cmocka_unit_test(over_tls_it_comes_back),
		cmocka_unit_test(what_a_killed_manager_left_is_ended),
		cmocka_unit_test(two_managers_do_it_side_by_side),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (!servers_available())
		return 77;
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
