/*
 * test_one.c - the etcd client with one real server: operations, transactions, quota, users, TLS,
 * watches, many threads.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "etcd_calls.h"
#include "shell.h"

#define TEXT(s) { (s), sizeof(s) - 1 }

/* ---- operations ------------------------------------------------------------------------------ */

static void check_ranges(struct skv_etcd *c)
{
	uint8_t room[16];
	const struct skv_etcd_bytes prefix = TEXT("r/");
	struct skv_etcd_op op = { SKV_ETCD_RANGE, .key = prefix, .limit = 2,
				  .end = skv_etcd_prefix_end(prefix, room) };
	struct skv_etcd_answer a = { 0 };
	struct skv_etcd_kv kv;

	for (const char *k = "abc"; *k; k++) {
		const char key[] = { 'r', '/', *k, '\0' };

		expect(put(c, key, key), SKV_OK, NULL);
	}
	expect(skv_etcd_run(c, &op, &a, &err), SKV_OK, NULL);
	assert_int_equal(a.result.count, 3);
	assert_true(a.result.more);
	assert_true(skv_etcd_next_kv(&a.result, &kv));
	assert_memory_equal(kv.key.p, "r/a", 3);
	assert_int_equal(kv.version, 1);
	assert_int_equal(kv.mod_revision, kv.create_revision);
	assert_true(skv_etcd_next_kv(&a.result, &kv));
	assert_false(skv_etcd_next_kv(&a.result, &kv));
	op.count_only = op.serializable = true;
	expect(skv_etcd_run(c, &op, &a, &err), SKV_OK, NULL);
	assert_int_equal(a.result.count, 3);
	assert_false(skv_etcd_next_kv(&a.result, &kv));
	op = (struct skv_etcd_op){ SKV_ETCD_DELETE, .key = prefix, .end = op.end };
	expect(skv_etcd_run(c, &op, &a, &err), SKV_OK, NULL);
	assert_int_equal(a.result.count, 3);
	skv_etcd_answer_free(&a);
}

/* An inner transaction swaps what an outer one has found. */
static void check_transactions(struct skv_etcd *c)
{
	const struct skv_etcd_compare absent = { SKV_ETCD_CREATE, SKV_ETCD_EQUAL,
						 .key = TEXT("t") };
	const struct skv_etcd_compare is_old = { SKV_ETCD_VALUE, SKV_ETCD_EQUAL,
						 .key = TEXT("t"), .value = TEXT("old") };
	const struct skv_etcd_op put_old = { SKV_ETCD_PUT, .key = TEXT("t"), .value = TEXT("old") };
	const struct skv_etcd_op put_new = { SKV_ETCD_PUT, .key = TEXT("t"), .value = TEXT("new") };
	const struct skv_etcd_op read = { SKV_ETCD_RANGE, .key = TEXT("t") };
	const struct skv_etcd_txn swap = { &is_old, 1, &put_new, 1, &read, 1 };
	const struct skv_etcd_op inner[] = { read, { SKV_ETCD_TXN, .txn = &swap } };
	const struct skv_etcd_txn txn = { &absent, 1, &put_old, 1, inner, 2 };
	const struct skv_etcd_op op = { SKV_ETCD_TXN, .txn = &txn };
	struct skv_etcd_answer a = { 0 };
	struct skv_etcd_result r, deeper;
	struct skv_etcd_kv kv;

	expect(skv_etcd_run(c, &op, &a, &err), SKV_OK, NULL);
	assert_true(a.result.succeeded);
	expect(skv_etcd_run(c, &op, &a, &err), SKV_OK, NULL);
	assert_false(a.result.succeeded);
	assert_true(skv_etcd_next_result(&a.result, &r));
	assert_int_equal(r.kind, SKV_ETCD_RANGE);
	assert_true(skv_etcd_next_kv(&r, &kv));
	assert_memory_equal(kv.value.p, "old", 3);
	assert_true(skv_etcd_next_result(&a.result, &r));
	assert_true(r.kind == SKV_ETCD_TXN && r.succeeded);
	assert_true(skv_etcd_next_result(&r, &deeper));
	assert_int_equal(deeper.kind, SKV_ETCD_PUT);
	assert_false(skv_etcd_next_result(&a.result, &r));
	assert_string_equal(get(c, "t"), "new");
	skv_etcd_answer_free(&a);
}

static void check_maintenance(struct skv_etcd *c)
{
	struct skv_etcd_status status;
	const uint64_t now = wait_ready(c);
	unsigned raised = 99;
	const struct skv_etcd_op past = { SKV_ETCD_RANGE, .key = TEXT("t"), .revision = 2 };

	expect(skv_etcd_status_get(c, &status, &err), SKV_OK, NULL);
	assert_true(status.leader == status.member_id && status.db_bytes > 0 && *status.version);
	expect(skv_etcd_alarms(c, 0, &raised, &err), SKV_OK, NULL);
	assert_int_equal(raised, 0);
	expect(skv_etcd_compact(c, now, &err), SKV_OK, NULL);
	expect(skv_etcd_compact(c, now - 1, &err), SKV_E_CONFLICT, "compacted");
	expect(skv_etcd_run(c, &past, NULL, &err), SKV_E_CONFLICT, "list again");
}

static void operations_do_what_etcd_says(void **state)
{
	struct etcd_servers s;
	struct skv_etcd *c;

	(void)state;
	etcd_start(&s, 1, false, "");
	c = open_at(etcd_endpoints(&s, 0), LONG_MS);
	expect(put(c, "a", "1"), SKV_OK, NULL);
	assert_string_equal(get(c, "a"), "1");
	check_ranges(c);
	check_transactions(c);
	check_maintenance(c);
	expect(skv_etcd_run(c, &(struct skv_etcd_op){ .kind = SKV_ETCD_PUT }, NULL, &err),
	       SKV_E_INVALID, "key is not provided");
	skv_etcd_close(c);
	etcd_stop(&s);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void a_full_server_says_what_to_do(void **state)
{
	static char big[(1 << 20) + 1], huge[(2 << 20) + 1];
	struct etcd_servers s;
	unsigned raised = 0;
	struct skv_etcd *c;
	int rc = SKV_OK;

	(void)state;
	memset(big, 'x', sizeof big - 1);
	memset(huge, 'x', sizeof huge - 1);
	etcd_start(&s, 1, false, "--quota-backend-bytes 16777216");
	c = open_at(etcd_endpoints(&s, 0), LONG_MS);
	expect(put(c, "huge", huge), SKV_E_TOO_LARGE, "--max-request-bytes");
	for (int i = 0; i < 100 && rc == SKV_OK; i++)
		rc = put(c, "big", big);
	expect(rc, SKV_E_STORE_FULL, "--quota-backend-bytes");
	assert_int_equal(strlen(get(c, "big")), 4095); /* reads go on */
	expect(put(c, "small", "1"), SKV_E_STORE_FULL, "defragment");
	assert_string_equal(get(c, "small"), "");
	expect(skv_etcd_alarms(c, 0, &raised, &err), SKV_OK, NULL);
	assert_int_equal(raised, 1u << SKV_ETCD_ALARM_NOSPACE);
	expect(skv_etcd_compact(c, wait_ready(c), &err), SKV_OK, NULL);
	expect(skv_etcd_defragment(c, LONG_MS, &err), SKV_OK, NULL);
	expect(skv_etcd_alarms(c, raised, &raised, &err), SKV_OK, NULL);
	assert_int_equal(raised, 0);
	expect(put(c, "small", "1"), SKV_OK, NULL);
	skv_etcd_close(c);
	etcd_stop(&s);
}

/* ---- users ----------------------------------------------------------------------------------- */

static void run_etcdctl(const struct etcd_servers *s, const char *login, const char *what)
{
	char command[900];

	snprintf(command, sizeof command,
		 "ETCDCTL_API=3 etcdctl --dial-timeout 60s --command-timeout 60s --endpoints %s %s "
		 "%s >>'%s/etcdctl.log' 2>&1",
		 etcd_endpoints(s, 0), login, what, s->dir);
	if (test_shell(command) != 0)
		fail_msg("etcdctl %s: see %s/etcdctl.log", what, s->dir);
}

static void users_log_in_again_when_their_token_ends(void **state)
{
	struct skv_etcd_options o = { .user = "manager", .password = "secret",
				      .timeout_ms = LONG_MS };
	struct skv_etcd *c, *other;
	struct etcd_servers s;
	struct skv_etcd_watch *w;
	struct skv_etcd_event e;

	(void)state;
	if (test_shell("command -v etcdctl >/dev/null") != 0) {
		printf("skipped: there is no etcdctl (package etcd-client)\n");
		skip();
	}
	etcd_start(&s, 1, false, "--auth-token-ttl 1");
	o.endpoints = etcd_endpoints(&s, 0);
	c = open_client(&o);
	expect(put(c, "ours/before", "1"), SKV_OK, NULL); /* users are off: no token is needed */
	run_etcdctl(&s, "", "user add root:rooted");
	run_etcdctl(&s, "", "user add manager:secret");
	run_etcdctl(&s, "", "role add ours");
	run_etcdctl(&s, "", "role grant-permission ours --prefix=true readwrite ours/");
	run_etcdctl(&s, "", "user grant-role manager ours");
	run_etcdctl(&s, "", "auth enable");
	expect(put(c, "ours/a", "1"), SKV_OK, NULL);
	expect(put(c, "others/a", "1"), SKV_E_FORBIDDEN, "role");
	expect(skv_etcd_watch_open(c, skv_etcd_text("others/a"), (struct skv_etcd_bytes){ 0 }, 0,
				   &w, &err), SKV_OK, NULL);
	expect(skv_etcd_watch_next(w, LONG_MS, &e, &err), SKV_E_FORBIDDEN, "permission denied");
	skv_etcd_watch_close(w);

	/* Restarted, the server knows no token of before. */
	etcd_kill(&s, 0);
	etcd_start_one(&s, 0);
	expect(put(c, "ours/a", "2"), SKV_OK, NULL);
	run_etcdctl(&s, "--user root:rooted", "user add third:third"); /* the auth store is newer */
	expect(put(c, "ours/a", "3"), SKV_OK, NULL);
	test_shell("sleep 3"); /* past the token's second: etcd's clock is not ours to turn */
	assert_string_equal(get(c, "ours/a"), "3");

	o.password = "wrong";
	other = open_client(&o);
	expect(put(other, "ours/a", "4"), SKV_E_FORBIDDEN, "user or password is wrong");
	skv_etcd_close(other);
	other = open_at(o.endpoints, LONG_MS);
	expect(put(other, "ours/a", "4"), SKV_E_FORBIDDEN, "a user and a password are needed");
	skv_etcd_close(other);
	assert_string_equal(get(c, "ours/a"), "3");
	skv_etcd_close(c);
	etcd_stop(&s);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

static void name_files(const struct etcd_servers *s, struct skv_net_tls *tls, const char *ca,
		       const char *name)
{
	char file[80];

	*tls = (struct skv_net_tls){ .on = true };
	snprintf(file, sizeof file, "%s.crt", ca);
	snprintf(tls->ca_file, sizeof tls->ca_file, "%s", etcd_file(s, file));
	if (!name)
		return;
	snprintf(file, sizeof file, "%s.crt", name);
	snprintf(tls->cert_file, sizeof tls->cert_file, "%s", etcd_file(s, file));
	snprintf(file, sizeof file, "%s.key", name);
	snprintf(tls->key_file, sizeof tls->key_file, "%s", etcd_file(s, file));
}

/* The first calls may end before a connection was refused. */
static void refused(const struct skv_etcd_options *o, const char *why)
{
	struct skv_etcd *c = open_client(o);
	int rc = put(c, "a", "2");

	for (uint32_t ms = 0; rc == SKV_E_STORE_IO && !strstr(err.message, why) && ms < LONG_MS;
	     ms += o->timeout_ms)
		rc = put(c, "a", "2");
	expect(rc, SKV_E_STORE_IO, why);
	skv_etcd_close(c);
}

static void tls_proves_both_sides(void **state)
{
	struct skv_etcd_options o = { .timeout_ms = LONG_MS };
	struct etcd_servers s;
	struct skv_etcd *c;

	(void)state;
	etcd_start(&s, 1, true, "");
	o.endpoints = etcd_endpoints(&s, 0);
	name_files(&s, &o.tls, "ca", "client");
	c = open_client(&o);
	expect(put(c, "a", "1"), SKV_OK, NULL);
	snprintf(o.tls.server_name, sizeof o.tls.server_name, "etcd.example");
	skv_etcd_close(c);
	c = open_client(&o);
	assert_string_equal(get(c, "a"), "1");
	o.timeout_ms = 1500;
	snprintf(o.tls.server_name, sizeof o.tls.server_name, "other.example");
	refused(&o, "certificate is refused");
	name_files(&s, &o.tls, "other", "client");
	refused(&o, "certificate is refused");
	name_files(&s, &o.tls, "ca", NULL);
	refused(&o, "TLS");
	name_files(&s, &o.tls, "ca", "stranger");
	refused(&o, "TLS");
	name_files(&s, &o.tls, "none", "client");
	refused(&o, "cannot be used");
	o.tls = (struct skv_net_tls){ 0 };
	refused(&o, "TLS must be on");
	assert_string_equal(get(c, "a"), "1");
	skv_etcd_close(c);
	etcd_stop(&s);
}

/* ---- watches --------------------------------------------------------------------------------- */

static struct skv_etcd_watch *watch_all(struct skv_etcd *c, uint64_t from)
{
	static uint8_t room[8];
	const struct skv_etcd_bytes prefix = TEXT("w/");
	struct skv_etcd_watch *w = NULL;

	expect(skv_etcd_watch_open(c, prefix, skv_etcd_prefix_end(prefix, room), from, &w, &err),
	       SKV_OK, NULL);
	return w;
}

static void expect_event(struct skv_etcd_watch *w, const char *key, const char *value)
{
	struct skv_etcd_event e;

	expect(skv_etcd_watch_next(w, LONG_MS, &e, &err), SKV_OK, NULL);
	assert_int_equal(e.kv.key.n, strlen(key));
	assert_memory_equal(e.kv.key.p, key, e.kv.key.n);
	assert_int_equal(e.deleted, value == NULL);
	if (value)
		assert_memory_equal(e.kv.value.p, value, e.kv.value.n);
}

/* Broken by a restart, and compacted while it is away: both are said. */
static void a_watch_goes_on_or_says_that_it_cannot(void **state)
{
	const struct skv_etcd_op del = { SKV_ETCD_DELETE, .key = TEXT("w/a") };
	struct skv_etcd_watch *w, *old;
	struct skv_etcd_event e;
	struct etcd_servers s;
	struct skv_etcd *c;
	uint64_t from;

	(void)state;
	etcd_start(&s, 1, false, "");
	c = open_at(etcd_endpoints(&s, 0), LONG_MS);
	from = wait_ready(c) + 1;
	w = watch_all(c, from);
	expect(put(c, "w/a", "1"), SKV_OK, NULL);
	expect(put(c, "x/a", "1"), SKV_OK, NULL);
	expect_event(w, "w/a", "1");
	etcd_kill(&s, 0);
	etcd_start_one(&s, 0);
	expect(skv_etcd_run(c, &del, NULL, &err), SKV_OK, NULL);
	expect(put(c, "w/b", "2"), SKV_OK, NULL);
	expect_event(w, "w/a", NULL);
	expect_event(w, "w/b", "2");
	expect(skv_etcd_watch_next(w, 1, &e, &err), SKV_E_TIMEOUT, NULL);

	expect(skv_etcd_compact(c, wait_ready(c), &err), SKV_OK, NULL);
	old = watch_all(c, from);
	expect(skv_etcd_watch_next(old, LONG_MS, &e, &err), SKV_E_CONFLICT, "list again");
	expect(skv_etcd_watch_next(old, 1, &e, &err), SKV_E_CONFLICT, "list again");
	skv_etcd_watch_close(old);
	expect(put(c, "w/c", "3"), SKV_OK, NULL);
	expect_event(w, "w/c", "3");
	skv_etcd_watch_close(w);
	skv_etcd_close(c);
	etcd_stop(&s);
}

/* A reader that lags by more than the client holds loses nothing, through restarts, and with
 * transactions that etcd splits. */
static void a_slow_reader_loses_nothing(void **state)
{
	enum { ROUNDS = 60, KEYS = 3 };
	static char big[400 << 10];
	struct skv_etcd_op op[KEYS];
	const struct skv_etcd_txn txn = { .then = op, .n_then = KEYS };
	const struct skv_etcd_op all = { SKV_ETCD_TXN, .txn = &txn };
	char key[KEYS][32], want[32];
	struct skv_etcd_watch *w;
	struct skv_etcd_event e;
	struct etcd_servers s;
	struct skv_etcd *c;

	(void)state;
	memset(big, 'b', sizeof big);
	etcd_start(&s, 1, false, "--max-request-bytes 1400000");
	c = open_at(etcd_endpoints(&s, 0), LONG_MS);
	w = watch_all(c, wait_ready(c) + 1);
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < KEYS; k++) {
			snprintf(key[k], sizeof key[k], "w/%03d.%d", i, k);
			op[k] = (struct skv_etcd_op){ SKV_ETCD_PUT, .key = skv_etcd_text(key[k]),
						      .value = { big, sizeof big } };
		}
		expect(skv_etcd_run(c, &all, NULL, &err), SKV_OK, NULL);
	}
	for (int i = 0; i < ROUNDS * KEYS; i++) {
		if (i % 50 == 20) {
			etcd_kill(&s, 0);
			etcd_start_one(&s, 0);
		}
		snprintf(want, sizeof want, "w/%03d.%d", i / KEYS, i % KEYS);
		expect(skv_etcd_watch_next(w, LONG_MS, &e, &err), SKV_OK, NULL);
		assert_int_equal(e.kv.key.n, strlen(want));
		assert_memory_equal(e.kv.key.p, want, e.kv.key.n);
		assert_int_equal(e.kv.value.n, sizeof big);
	}
	skv_etcd_watch_close(w);
	skv_etcd_close(c);
	etcd_stop(&s);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 8, CALLS = 150 };
static _Atomic int wrong;

/* Counts in one key by compare and swap, against the others. */
static void *count(void *client)
{
	struct skv_etcd_compare same = { SKV_ETCD_MOD, SKV_ETCD_EQUAL, .key = TEXT("count") };
	const struct skv_etcd_op read = { SKV_ETCD_RANGE, .key = TEXT("count") };
	struct skv_etcd_op write = { SKV_ETCD_PUT, .key = TEXT("count") };
	const struct skv_etcd_txn txn = { &same, 1, &write, 1, &read, 1 };
	const struct skv_etcd_op op = { SKV_ETCD_TXN, .txn = &txn };
	struct skv_etcd_answer a = { 0 };
	struct skv_etcd_result r;
	struct skv_etcd_kv kv;
	char next[16] = "1";
	int done = 0;

	while (done < CALLS && !wrong) {
		write.value = skv_etcd_text(next);
		if (skv_etcd_run(client, &op, &a, NULL) != SKV_OK ||
		    !skv_etcd_next_result(&a.result, &r)) {
			wrong++;
		} else if (a.result.succeeded) {
			done++;
			same.number = a.revision;
			snprintf(next, sizeof next, "%d", atoi(next) + 1);
		} else if (skv_etcd_next_kv(&r, &kv)) {
			snprintf(next, sizeof next, "%.*s", (int)kv.value.n,
				 (const char *)kv.value.p);
			snprintf(next, sizeof next, "%d", atoi(next) + 1);
			same.number = kv.mod_revision;
		}
	}
	skv_etcd_answer_free(&a);
	return NULL;
}

static void threads_share_one_connection(void **state)
{
	pthread_t thread[THREADS];
	struct etcd_servers s;
	struct skv_etcd *c;
	char want[16];

	(void)state;
	etcd_start(&s, 1, false, "");
	c = open_at(etcd_endpoints(&s, 0), LONG_MS);
	wait_ready(c);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, count, c), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(wrong, 0);
	snprintf(want, sizeof want, "%d", THREADS * CALLS);
	assert_string_equal(get(c, "count"), want);
	skv_etcd_close(c);
	etcd_stop(&s);
}

static void bad_options_are_named(void **state)
{
	struct skv_etcd_options o = { .endpoints = "a:1,b:x" };
	struct skv_etcd *c;

	(void)state;
	expect(skv_etcd_open(&o, &c, &err), SKV_E_INVALID, "'b:x'");
	o.endpoints = "";
	expect(skv_etcd_open(&o, &c, &err), SKV_E_INVALID, "host:port");
	o.endpoints = "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q";
	expect(skv_etcd_open(&o, &c, &err), SKV_E_INVALID, "16 endpoints");
	o.endpoints = "[::1]:2379";
	o.watch_silent_ms = 100;
	expect(skv_etcd_open(&o, &c, &err), SKV_E_INVALID, "5000");
	o.watch_silent_ms = 0;
	snprintf(o.tls.cert_file, sizeof o.tls.cert_file, "x");
	expect(skv_etcd_open(&o, &c, &err), SKV_E_INVALID, "go together");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_options_are_named),
		cmocka_unit_test(operations_do_what_etcd_says),
		cmocka_unit_test(a_full_server_says_what_to_do),
		cmocka_unit_test(users_log_in_again_when_their_token_ends),
		cmocka_unit_test(tls_proves_both_sides),
		cmocka_unit_test(a_watch_goes_on_or_says_that_it_cannot),
		cmocka_unit_test(a_slow_reader_loses_nothing),
		cmocka_unit_test(threads_share_one_connection),
	};

	return etcd_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
