/*
 * test_etcd.c - behaviour of the store on etcd alone: lost answers, late and grouped appends,
 * leases of other hosts, damage, leftovers, limits. Real etcd servers. The first argument selects
 * cases.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/mem.h>

#include "bench_store.h"
#include "etcd_calls.h"
#include "etcd_proxy.h"
#include "shell.h"

static struct etcd_servers servers;
static struct skv_etcd *direct; /* a client beside the store */
static struct skv_fake_clock fake;

static int start(void **state)
{
	(void)state;
	etcd_start(&servers, 1, false, "");
	direct = open_at(etcd_endpoints(&servers, 0), LONG_MS);
	wait_ready(direct);
	skv_fake_clock_init(&fake, 1000000);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	skv_etcd_close(direct);
	etcd_stop(&servers);
	return 0;
}

static void ok(int rc)
{
	if (rc != SKV_OK)
		fail_msg("%s: %s", skv_status_name(rc), err.message);
}

static int try_open(const char *url, struct skv_store **out)
{
	const struct skv_store_options o = { .path = url, .clock = &fake.clock };

	assert_ptr_equal(skv_store_backend(url), &skv_store_etcd);
	return skv_store_open(&skv_store_etcd, &o, out, &err);
}

/* `rest`: the prefix and options. port 0: without a proxy. */
static struct skv_store *open_store(uint16_t port, const char *rest)
{
	struct skv_store *s = NULL;
	char url[512];

	snprintf(url, sizeof url, "etcd://127.0.0.1:%u/%s", port ? port : servers.client[0], rest);
	ok(try_open(url, &s));
	return s;
}

static uint64_t acquire(struct skv_store *s, uint32_t partition, const char *owner)
{
	uint64_t fence = 0;

	ok(skv_store_acquire(s, partition, owner, 60000, &fence, NULL, 0, &err));
	return fence;
}

static int append(struct skv_store *s, uint32_t partition, uint64_t fence, uint64_t seq)
{
	uint8_t bytes[100];

	bench_fill(seq, bytes, sizeof bytes);
	return skv_store_append(s, partition, fence, seq, bytes, sizeof bytes, 0, &err);
}

/* Records that a load delivers; each must have the bytes that its number gives. */
static int count_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	uint8_t want[100];

	bench_fill(seq, want, sizeof want);
	if (n == sizeof want)
		assert_memory_equal(bytes, want, n);
	++*(uint64_t *)ctx;
	return SKV_OK;
}

static int ignore_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	(void)ctx;
	(void)number;
	(void)bytes;
	(void)n;
	return SKV_OK;
}

static int load(struct skv_store *s, uint32_t partition, uint64_t *records)
{
	const struct skv_load_sink sink = { ignore_slice, count_record, records };
	uint64_t base;

	*records = 0;
	return skv_store_load(s, partition, &base, &sink, &err);
}

static uint64_t newest(struct skv_store *s, uint32_t partition)
{
	struct skv_store_stats st;

	ok(skv_store_stats_get(s, partition, &st, &err));
	return st.last_seq;
}

static uint64_t mod_of(const char *key, struct skv_buf *value)
{
	struct skv_etcd_answer a = { 0 };
	struct skv_etcd_kv kv = { .mod_revision = 0 };
	const struct skv_etcd_op op = { SKV_ETCD_RANGE, .key = skv_etcd_text(key) };

	ok(skv_etcd_run(direct, &op, &a, &err));
	if (skv_etcd_next_kv(&a.result, &kv) && value) {
		skv_buf_clear(value);
		skv_put_bytes(value, kv.value.p, kv.value.n);
	}
	skv_etcd_answer_free(&a);
	return kv.mod_revision;
}

static void set(const char *key, const void *bytes, size_t n)
{
	ok(skv_etcd_run(direct, &(struct skv_etcd_op){ SKV_ETCD_PUT, .key = skv_etcd_text(key),
						       .value = { bytes, n } }, NULL, &err));
}

static void del(const char *key)
{
	ok(skv_etcd_run(direct, &(struct skv_etcd_op){ SKV_ETCD_DELETE,
						       .key = skv_etcd_text(key) }, NULL, &err));
}

static void del_below(const char *prefix)
{
	uint8_t end[300];
	struct skv_etcd_op op = { SKV_ETCD_DELETE, .key = skv_etcd_text(prefix) };

	op.end = skv_etcd_prefix_end(op.key, end);
	ok(skv_etcd_run(direct, &op, NULL, &err));
}

/* Keys that begin with a text; *first (may be NULL): the first one. */
static uint64_t keys_below(const char *prefix, char first[256])
{
	struct skv_etcd_answer a = { 0 };
	struct skv_etcd_kv kv;
	uint8_t end[300];
	uint64_t n;
	struct skv_etcd_op op = { SKV_ETCD_RANGE, .key = skv_etcd_text(prefix), .keys_only = true };

	op.end = skv_etcd_prefix_end(op.key, end);
	ok(skv_etcd_run(direct, &op, &a, &err));
	n = a.result.count;
	if (first && skv_etcd_next_kv(&a.result, &kv))
		snprintf(first, 256, "%.*s", (int)kv.key.n, (const char *)kv.key.p);
	skv_etcd_answer_free(&a);
	return n;
}

/* ---- answers that are lost ------------------------------------------------------------------- */

/* Loses the answer, or the request, of a call once and twice: it is done once, and said so. */
static void lose_all(enum etcd_proxy_rule rule, const char *prefix)
{
	struct etcd_proxy p;
	struct skv_store *s;
	uint64_t fence, version, id, records;
	struct skv_buf v = { 0 };

	etcd_proxy_start(&p, servers.client[0]);
	s = open_store(p.port, prefix);
	for (int n = 1; n <= 2; n++) {
		struct skv_fence f;
		char key[16];

#define LOSE(call, text)                                                  \
	do {                                                              \
		etcd_proxy_lose(&p, rule, text, n);                       \
		ok(call);                                                 \
		assert_int_equal(p.rule, ETCD_PROXY_PASS);                \
	} while (0)
		LOSE(skv_store_acquire(s, 0, "me", 60000, &fence, NULL, 0, &err), "/n/00000");
		f = (struct skv_fence){ .number = fence };
		snprintf(key, sizeof key, "key%d", n);
		LOSE(skv_store_put(s, &f, key, SKV_VERSION_NONE, "a", 1, &version, &err), "/r/key");
		LOSE(skv_store_put(s, &f, key, version, "b", 1, &version, &err), "/r/key");
		assert_int_equal(version, 2);
		LOSE(skv_store_get(s, key, &v, &version, &err), "/r/key");
		assert_int_equal(version, 2);
		LOSE(skv_store_del(s, &f, key, version, &err), "/r/key");
		assert_int_equal(skv_store_get(s, key, &v, &version, &err), SKV_E_NOT_FOUND);
		LOSE(append(s, 0, fence, (uint64_t)n * 2 - 1), "/b/00000");
		LOSE(append(s, 0, fence, (uint64_t)n * 2), "/b/00000");
		LOSE(skv_store_renew(s, 0, fence, 60000, &err), "/m/");
		LOSE(skv_store_checkpoint_begin(s, 0, fence, &id, &err), "/c/00000/w/");
		LOSE(skv_store_checkpoint_slice(s, 0, fence, id, 0, "slice", 5, &err), "/c/00000/");
		LOSE(skv_store_checkpoint_commit(s, 0, fence, id, 1, (uint64_t)n * 2, &err),
		     "/c/00000/head");
		LOSE(skv_store_release(s, 0, fence, &err), "/e/00000");
		assert_int_equal(skv_store_renew(s, 0, fence, 1000, &err), SKV_E_FENCED);
	}
	assert_true(p.cuts >= 33);
	assert_int_equal(newest(s, 0), 4);
	ok(load(s, 0, &records));
	assert_int_equal(records, 0);
	skv_buf_destroy(&v);
	skv_store_close(s);
	etcd_proxy_stop(&p);
}

static void a_lost_answer_is_no_unknown_outcome(void **state)
{
	(void)state;
	lose_all(ETCD_PROXY_LOSE_ANSWER, "answers");
}

static void a_lost_request_is_sent_again(void **state)
{
	(void)state;
	lose_all(ETCD_PROXY_LOSE_REQUEST, "requests");
}

/* ---- late appends and groups ----------------------------------------------------------------- */

struct appender {
	struct skv_store *s;
	uint32_t partition;
	uint64_t fence, seq;
	int rc;
	pthread_t thread;
};

static void *append_one(void *ctx)
{
	struct appender *a = ctx;
	uint8_t bytes[100];

	bench_fill(a->seq, bytes, sizeof bytes);
	a->rc = skv_store_append(a->s, a->partition, a->fence, a->seq, bytes, sizeof bytes, 0,
				 NULL);
	return NULL;
}

static void begin_append(struct appender *a)
{
	assert_int_equal(pthread_create(&a->thread, NULL, append_one, a), 0);
}

static void wait_held(const struct etcd_proxy *p)
{
	while (!p->held)
		poll(NULL, 0, 5);
}

/* The old owner's transaction arrives after the next owner's acquire. */
static void a_late_append_is_fenced(void **state)
{
	struct appender a = { .partition = 0, .seq = 2 };
	struct etcd_proxy p;
	struct skv_store *next = open_store(0, "late");
	uint64_t fence, records;

	(void)state;
	etcd_proxy_start(&p, servers.client[0]);
	a.s = open_store(p.port, "late");
	a.fence = acquire(a.s, 0, "old");
	ok(append(a.s, 0, a.fence, 1));
	etcd_proxy_lose(&p, ETCD_PROXY_HOLD, "", 0);
	begin_append(&a);
	wait_held(&p);
	fence = acquire(next, 0, "old"); /* the store's own name, so that no lease has to end */
	ok(append(next, 0, fence, 2));
	etcd_proxy_lose(&p, ETCD_PROXY_PASS, "", 0);
	pthread_join(a.thread, NULL);
	assert_int_equal(a.rc, SKV_E_FENCED);
	ok(load(next, 0, &records));
	assert_int_equal(records, 2);
	assert_int_equal(skv_store_renew(a.s, 0, a.fence, 1000, &err), SKV_E_FENCED);
	skv_store_close(a.s);
	assert_int_equal(keys_below("late/m/", NULL), 1); /* no lease is left of who has nothing */
	ok(skv_store_release(next, 0, fence, &err));
	skv_store_close(next);
	assert_int_equal(keys_below("late/m/", NULL), 0);
	etcd_proxy_stop(&p);
}

/* Appends that come while one is under way go together; one that is fenced harms only itself. */
static void run_group(struct etcd_proxy *p, struct skv_store *s, struct skv_store *other,
		      uint64_t fence[4], uint64_t seq, bool fenced)
{
	struct appender a[4];

	etcd_proxy_lose(p, ETCD_PROXY_HOLD, "", 0);
	for (uint32_t i = 0; i < 4; i++) {
		a[i] = (struct appender){ s, i, fence[i], seq, SKV_OK, 0 };
		begin_append(&a[i]);
		if (i == 0)
			wait_held(p);
	}
	poll(NULL, 0, 200); /* a group of fewer would not harm */
	if (fenced)
		acquire(other, 2, "me");
	etcd_proxy_lose(p, ETCD_PROXY_PASS, "", 0);
	for (uint32_t i = 0; i < 4; i++) {
		pthread_join(a[i].thread, NULL);
		assert_int_equal(a[i].rc, fenced && i == 2 ? SKV_E_FENCED : SKV_OK);
	}
}

static void appends_go_together(void **state)
{
	struct etcd_proxy p;
	struct skv_store *s, *other = open_store(0, "group");
	uint64_t fence[4], records, seq = 1, mod;

	(void)state;
	etcd_proxy_start(&p, servers.client[0]);
	s = open_store(p.port, "group");
	for (uint32_t i = 0; i < 4; i++) {
		fence[i] = acquire(s, i, "me");
		ok(append(s, i, fence[i], 1));
	}
	do { /* a thread that is late has missed the group */
		assert_true(seq < 50);
		run_group(&p, s, other, fence, ++seq, false);
		mod = mod_of("group/n/00001", NULL);
	} while (mod_of("group/n/00002", NULL) != mod || mod_of("group/n/00003", NULL) != mod);
	run_group(&p, s, other, fence, ++seq, true);
	for (uint32_t i = 0; i < 4; i++) {
		ok(load(other, i, &records));
		assert_int_equal(records, i == 2 ? seq - 1 : seq);
	}
	skv_store_close(s);
	skv_store_close(other);
	etcd_proxy_stop(&p);
}

/* ---- leases of another host ------------------------------------------------------------------ */

/* The lease as a manager of another host has written it. */
static void move_lease_to_another_host(const char *prefix)
{
	char key[256] = "";
	struct skv_buf value = { 0 };

	assert_int_equal(keys_below(prefix, key), 1);
	mod_of(key, &value);
	assert_true(value.len > 36);
	memcpy(value.data + value.len - 36, "00000000-1111-2222-3333-444444444444", 36);
	set(key, value.data, value.len);
	skv_buf_destroy(&value);
}

/* Looks in steps of the clock until the lease has ended for it. Returns how long that took. */
static uint64_t wait_out(struct skv_store *s, const char *owner)
{
	uint64_t fence, ms = 0;
	int rc;

	while ((rc = skv_store_acquire(s, 0, owner, 1000, &fence, NULL, 0, &err)) ==
	       SKV_E_NOT_OWNER) {
		skv_fake_clock_advance(&fake, 50);
		ms += 50;
		poll(NULL, 0, 60); /* the store reads at most each 50 ms */
		assert_true(ms < 60000);
	}
	ok(rc);
	return ms;
}

static void another_hosts_lease_is_waited_out(void **state)
{
	struct skv_store *s = open_store(0, "waits"), *next = open_store(0, "waits");
	uint64_t fence, other, ms;

	(void)state;
	ok(skv_store_acquire(s, 0, "far", 1000, &fence, NULL, 0, &err));
	move_lease_to_another_host("waits/m/");
	assert_int_equal(skv_store_acquire(next, 0, "near", 1000, &other, NULL, 0, &err),
			 SKV_E_NOT_OWNER);
	/* A pause of the claimant is no proof: it counts two intervals at most. */
	skv_fake_clock_advance(&fake, 60000);
	poll(NULL, 0, 60);
	assert_int_equal(skv_store_acquire(next, 0, "near", 1000, &other, NULL, 0, &err),
			 SKV_E_NOT_OWNER);
	/* Nor is an outage: what was counted before does not count. */
	skv_fake_clock_advance(&fake, 100);
	etcd_signal(&servers, 0, SIGSTOP);
	poll(NULL, 0, 60);
	assert_int_not_equal(skv_store_acquire(next, 0, "near", 1000, &other, NULL, 0, &err),
			     SKV_OK);
	etcd_signal(&servers, 0, SIGCONT);
	skv_fake_clock_advance(&fake, 60000);
	assert_int_equal(skv_store_acquire(next, 0, "near", 1000, &other, NULL, 0, &err),
			 SKV_E_NOT_OWNER);
	ms = wait_out(next, "near");
	assert_true(ms >= 1000);
	assert_int_equal(append(s, 0, fence, 1), SKV_E_FENCED);
	skv_store_close(next);
	skv_store_close(s);
}

/* A renewal that comes between the look and the claim wins. */
static void a_renewal_ends_the_count(void **state)
{
	struct skv_store *s = open_store(0, "renews"), *next = open_store(0, "renews");
	uint64_t fence, other;

	(void)state;
	ok(skv_store_acquire(s, 0, "far", 1000, &fence, NULL, 0, &err));
	move_lease_to_another_host("renews/m/");
	for (int i = 0; i < 30; i++) {
		assert_int_equal(skv_store_acquire(next, 0, "near", 1000, &other, NULL, 0, &err),
				 SKV_E_NOT_OWNER);
		skv_fake_clock_advance(&fake, 50);
		poll(NULL, 0, 60);
		if (i % 10 == 0) {
			ok(skv_store_renew(s, 0, fence, 1000, &err));
			move_lease_to_another_host("renews/m/");
		}
	}
	skv_store_close(next);
	skv_store_close(s);
}

/* Nor does an outage end the lease of a process on this host at once. */
static void a_lease_goes_on_after_an_outage(void **state)
{
	struct skv_store *s = open_store(0, "outage"), *next = open_store(0, "outage");
	uint64_t fence, other;

	(void)state;
	ok(skv_store_acquire(s, 0, "one", 1000, &fence, NULL, 0, &err));
	assert_int_equal(skv_store_acquire(next, 0, "two", 1000, &other, NULL, 0, &err),
			 SKV_E_NOT_OWNER);
	etcd_signal(&servers, 0, SIGSTOP);
	poll(NULL, 0, 60);
	expect(skv_store_acquire(next, 0, "two", 1000, &other, NULL, 0, &err), SKV_E_STORE_IO,
	       NULL);
	skv_fake_clock_advance(&fake, 60000);
	etcd_signal(&servers, 0, SIGCONT);
	assert_int_equal(skv_store_acquire(next, 0, "two", 1000, &other, NULL, 0, &err),
			 SKV_E_NOT_OWNER);
	assert_true(wait_out(next, "two") >= 1000);
	skv_store_close(next);
	skv_store_close(s);
}

static void *acquire_two(void *ctx)
{
	struct appender *a = ctx;

	a->rc = skv_store_acquire(a->s, 0, "two", 1000, &a->fence, NULL, 0, NULL);
	return NULL;
}

/* The same if one read lasts as long as an election: its owner could not renew it meanwhile. */
static void a_lease_goes_on_after_a_long_read(void **state)
{
	struct skv_store *s = open_store(0, "long"), *next = open_store(0, "long");
	struct appender a = { .s = next };
	uint64_t fence, other;

	(void)state;
	ok(skv_store_acquire(s, 0, "one", 1000, &fence, NULL, 0, &err));
	assert_int_equal(skv_store_acquire(next, 0, "two", 1000, &other, NULL, 0, &err),
			 SKV_E_NOT_OWNER);
	etcd_signal(&servers, 0, SIGSTOP);
	poll(NULL, 0, 60);
	assert_int_equal(pthread_create(&a.thread, NULL, acquire_two, &a), 0);
	poll(NULL, 0, 100);
	skv_fake_clock_advance(&fake, 60000);
	etcd_signal(&servers, 0, SIGCONT);
	assert_int_equal(pthread_join(a.thread, NULL), 0);
	assert_int_equal(a.rc, SKV_E_NOT_OWNER);
	assert_int_equal(skv_store_acquire(next, 0, "two", 1000, &other, NULL, 0, &err),
			 SKV_E_NOT_OWNER);
	assert_true(wait_out(next, "two") >= 900);
	skv_store_close(next);
	skv_store_close(s);
}

/* ---- news ------------------------------------------------------------------------------------ */

static int follow(struct skv_store *s, struct skv_position *at, uint64_t *records)
{
	const struct skv_load_sink sink = { ignore_slice, count_record, records };

	return skv_store_follow(s, 0, at, &sink, &err);
}

static void a_follower_asks_only_for_news(void **state)
{
	struct skv_store *s = open_store(0, "news"), *f;
	struct skv_position at = { 0 };
	uint64_t fence = acquire(s, 0, "me"), records = 0, asked;
	struct etcd_proxy p;
	int rc;

	(void)state;
	etcd_proxy_start(&p, servers.client[0]);
	f = open_store(p.port, "news");
	ok(append(s, 0, fence, 1));
	ok(follow(f, &at, &records));
	ok(follow(f, &at, &records)); /* the watch was opened meanwhile */
	assert_int_equal(records, 1);
	poll(NULL, 0, 300); /* for answers to the watch */
	asked = p.asked;
	for (int i = 0; i < 1000; i++)
		ok(follow(f, &at, &records));
	assert_true(p.asked - asked < 200); /* acknowledgements of the connection at most */
	ok(append(s, 0, fence, 2));
	while (at.seq < 2)
		ok(follow(f, &at, &records));
	assert_int_equal(records, 2);

	/* History that is gone, in the middle of it: nothing is missed. */
	etcd_proxy_lose(&p, ETCD_PROXY_HOLD, "", 0);
	ok(append(s, 0, fence, 3));
	ok(skv_etcd_compact(direct, mod_of("news/n/00000", NULL), &err));
	etcd_proxy_lose(&p, ETCD_PROXY_PASS, "", 0);
	while (at.seq < 3)
		ok(follow(f, &at, &records));
	assert_int_equal(records, 3);

	/* A follower that was left behind has to load again. */
	at = (struct skv_position){ .known = true, .seq = 1, .total = 100 };
	uint64_t id;
	ok(skv_store_checkpoint_begin(s, 0, fence, &id, &err));
	ok(skv_store_checkpoint_commit(s, 0, fence, id, 0, 3, &err));
	while ((rc = follow(f, &at, &records)) == SKV_OK)
		poll(NULL, 0, 5);
	assert_int_equal(rc, SKV_E_CONFLICT);
	skv_store_close(f);
	skv_store_close(s);
	etcd_proxy_stop(&p);
}

struct changes {
	struct skv_store *s;
	uint64_t at;
	unsigned lists;   /* calls that listed all */
	char told[300];   /* "key=bytes," of each document, "key-," of each that is gone */
};

static int tell_change(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct changes *c = ctx;
	const size_t len = strlen(c->told);

	if (version == SKV_VERSION_NONE)
		snprintf(c->told + len, sizeof c->told - len, "%s-,", key);
	else
		snprintf(c->told + len, sizeof c->told - len, "%s=%.*s,", key, n < 9 ? (int)n : 1,
			 (const char *)bytes);
	return SKV_OK;
}

static void expect_changes(struct changes *c, const char *want, unsigned lists)
{
	static const char *const kinds[] = { "storage/", "group/" };

	c->told[0] = '\0';
	c->lists = 0;
	do {
		bool all = false;

		poll(NULL, 0, 5);
		ok(skv_store_changes(c->s, kinds, 2, &c->at, &all, tell_change, c, &err));
		c->lists += all;
	} while (strlen(c->told) < strlen(want));
	assert_string_equal(c->told, want);
	assert_int_equal(c->lists, lists);
}

static void write_document(struct skv_store *s, const char *key, uint64_t expect, const char *text)
{
	ok(skv_store_put(s, NULL, key, expect, text, strlen(text), NULL, &err));
}

/* A single changed document is reported alone, however many there are; no change is missed if the
 * news are lost, or exceed the kept history. */
static void changes_are_no_lists(void **state)
{
	struct skv_store *s = open_store(0, "changes");
	struct etcd_proxy p;
	struct changes c = { 0 }, quick;
	char *large = calloc(1, SKV_STORE_VALUE_MAX);
	uint64_t asked;

	(void)state;
	etcd_proxy_start(&p, servers.client[0]);
	c.s = open_store(p.port, "changes");
	write_document(s, "group/a", SKV_VERSION_NONE, "1");
	write_document(s, "other/a", SKV_VERSION_NONE, "1");
	write_document(s, "storage/a", SKV_VERSION_NONE, "1");
	expect_changes(&c, "storage/a=1,group/a=1,", 1);
	poll(NULL, 0, 300); /* for answers to the watch */
	asked = p.asked;
	write_document(s, "storage/a", 1, "2");
	write_document(s, "other/a", 1, "2");
	write_document(s, "group/b", SKV_VERSION_NONE, "1");
	ok(skv_store_del(s, NULL, "group/b", 1, &err));
	write_document(s, "group/b", SKV_VERSION_NONE, "2");
	expect_changes(&c, "storage/a=2,group/b=1,group/b-,group/b=2,", 0);
	assert_true(p.asked - asked < 200);

	etcd_proxy_lose(&p, ETCD_PROXY_HOLD, "", 0); /* the watch resumes too late */
	etcd_kill(&servers, 0);
	etcd_start_one(&servers, 0);
	wait_ready(direct);
	write_document(s, "storage/a", 2, "3");
	write_document(s, "group/a", 1, "2");
	ok(skv_etcd_compact(direct, mod_of("changes/r/group/a", NULL), &err));
	etcd_proxy_lose(&p, ETCD_PROXY_PASS, "", 0);
	expect_changes(&c, "storage/a=3,group/a=2,group/b=2,", 1);

	quick = c; /* of the same handle */
	memset(large, 'x', SKV_STORE_VALUE_MAX - 1);
	for (uint64_t i = 0; i < 4; i++) {
		write_document(s, "group/b", 1 + i, large);
		expect_changes(&quick, "group/b=x,", 0);
	}
	write_document(s, "group/a", 2, "3");
	expect_changes(&quick, "group/a=3,", 0);
	expect_changes(&c, "storage/a=3,group/a=3,group/b=x,", 1);
	free(large);
	skv_store_close(c.s);
	skv_store_close(s);
	etcd_proxy_stop(&p);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void expect_corrupt(struct skv_store *s, const char *part)
{
	uint64_t records;

	expect(load(s, 0, &records), SKV_E_CORRUPT, part);
}

static void damage_below_the_end_is_loud(void **state)
{
	static const char key[] = "damage/b/00000/0000000000000002/0000";
	struct skv_store *s = open_store(0, "damage");
	uint64_t fence = acquire(s, 0, "me"), records;
	struct skv_buf value = { 0 }, older = { 0 }, end = { 0 };

	(void)state;
	for (uint64_t seq = 1; seq <= 3; seq++)
		ok(append(s, 0, fence, seq));
	mod_of(key, &value);
	mod_of("damage/n/00000", &end);
	value.data[value.len - 1] ^= 1;
	set(key, value.data, value.len);
	expect_corrupt(s, key);
	del(key);
	expect_corrupt(s, key);
	mod_of("damage/b/00000/0000000000000001/0000", &older);
	set(key, older.data, older.len); /* of the same journal */
	expect_corrupt(s, key);
	value.data[value.len - 1] ^= 1;
	set(key, value.data, value.len);
	ok(load(s, 0, &records));
	assert_int_equal(records, 3);
	/* Above the end there is nothing, whatever lies there. */
	set("damage/b/00000/0000000000000004/0000", "garbage", 7);
	set("damage/b/00000/0000000000000004/0001", "garbage", 7);
	ok(load(s, 0, &records));
	assert_int_equal(records, 3);
	ok(append(s, 0, fence, 4));
	ok(append(s, 0, fence, 5));
	ok(load(s, 0, &records));
	assert_int_equal(records, 5);
	/* An end that is older, and none. */
	set("damage/n/00000", end.data, end.len);
	ok(load(s, 0, &records));
	assert_int_equal(records, 3);
	assert_int_equal(append(s, 0, fence, 6), SKV_E_CONFLICT);
	del("damage/n/00000");
	expect_corrupt(s, "damage/n/00000");
	set("damage/n/00000", end.data, end.len);
	del_below("damage/b/");
	expect_corrupt(s, "damage/b/00000/0000000000000001/0000");
	skv_buf_destroy(&value);
	skv_buf_destroy(&older);
	skv_buf_destroy(&end);
	skv_store_close(s);
}

/* A store without keys is no new one to a handle that knew it. */
static void a_deleted_store_is_no_new_one(void **state)
{
	struct skv_store *s = open_store(0, "gone"), *next = open_store(0, "gone"), *after;
	uint64_t fence = acquire(s, 0, "me"), other;
	struct skv_buf v = { 0 };

	(void)state;
	ok(append(s, 0, fence, 1));
	del_below("gone/");
	assert_int_equal(append(s, 0, fence, 2), SKV_E_FENCED);
	expect(skv_store_acquire(next, 0, "me", 1000, &other, NULL, 0, &err), SKV_E_CORRUPT,
	       "gone/");
	expect(skv_store_get(next, "key", &v, NULL, &err), SKV_E_CORRUPT, "gone/");
	assert_int_equal(keys_below("gone/", NULL), 0);
	after = open_store(0, "gone"); /* slab directories tell who has opened it so */
	expect(skv_store_acquire(s, 0, "me", 1000, &other, NULL, 0, &err), SKV_E_CORRUPT, "gone/");
	acquire(after, 0, "other");
	skv_store_close(after);
	skv_store_close(next);
	skv_store_close(s);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static char folder[300];

static struct skv_store *open_with_files(const char *prefix)
{
	char rest[400];

	snprintf(folder, sizeof folder, "%s/%s", servers.dir, prefix);
	snprintf(rest, sizeof rest, "mkdir -p '%s'", folder);
	assert_int_equal(test_shell(rest), 0);
	snprintf(rest, sizeof rest, "%s?checkpoints=%s", prefix, folder);
	return open_store(0, rest);
}

static int in_folder(const char *format, int want)
{
	char command[900];

	snprintf(command, sizeof command, format, folder);
	return test_shell(command) == want;
}

/* Slices of `n` bytes each, which begin with a text. */
static int checkpoint(struct skv_store *s, uint64_t fence, const char *text, size_t n,
		      uint64_t upto)
{
	char *bytes = calloc(1, n + strlen(text) + 1);
	uint64_t id;
	int rc = skv_store_checkpoint_begin(s, 0, fence, &id, &err);

	memcpy(bytes, text, strlen(text));
	for (uint32_t i = 0; rc == SKV_OK && i < 2; i++)
		rc = skv_store_checkpoint_slice(s, 0, fence, id, i, bytes, n, &err);
	if (rc == SKV_OK)
		rc = skv_store_checkpoint_commit(s, 0, fence, id, 2, upto, &err);
	free(bytes);
	return rc;
}

static void a_damaged_file_is_loud(void **state)
{
	struct skv_store *s = open_with_files("files"), *without = open_store(0, "files");
	uint64_t fence = acquire(s, 0, "me"), records;

	(void)state;
	ok(append(s, 0, fence, 1));
	ok(checkpoint(s, fence, "older", 7, 1));
	ok(load(s, 0, &records));
	expect(load(without, 0, &records), SKV_E_UNSUPPORTED, "checkpoints=DIR");
	assert_true(in_folder("cp %s/files-00000-*.checkpoint /tmp/skv-etcd-older.$PPID", 0));
	ok(append(s, 0, fence, 2));
	ok(checkpoint(s, fence, "newer", 7, 2));
	while (!in_folder("test $(ls %s | wc -l) = 1", 0))
		poll(NULL, 0, 20);
	assert_true(in_folder("cp %s/files-00000-*.checkpoint /tmp/skv-etcd-newer.$PPID", 0));
	assert_true(in_folder("cp /tmp/skv-etcd-older.$PPID $(echo %s/files-00000-*)", 0));
	expect_corrupt(s, "damaged, at byte 14"); /* the index of the file */
	assert_true(in_folder("cp /tmp/skv-etcd-newer.$PPID $(echo %s/files-00000-*)", 0));
	ok(load(s, 0, &records));
	assert_true(in_folder("printf X | dd of=$(echo %s/files-00000-*) bs=1 seek=9 conv=notrunc "
			      "2>/dev/null", 0));
	expect_corrupt(s, "damaged, at byte 7");
	assert_true(in_folder("truncate -s 20 %s/files-00000-*", 0));
	expect_corrupt(s, "ends at byte 20");
	assert_true(in_folder("rm %s/files-00000-*", 0));
	expect_corrupt(s, "/files-00000-");
	assert_true(in_folder("rmdir %s", 0));
	expect(load(s, 0, &records), SKV_E_IO, "cannot be used");
	assert_int_equal(test_shell("rm /tmp/skv-etcd-older.$PPID /tmp/skv-etcd-newer.$PPID"), 0);
	skv_store_close(without);
	skv_store_close(s);
}

/* The same inside etcd: two slices of 1 MiB and a bit are three pieces. */
static void a_damaged_piece_is_loud(void **state)
{
	static const size_t size = (1 << 20) + 100;
	struct skv_store *s = open_store(0, "pieces");
	struct skv_buf head = { 0 }, older = { 0 }, piece = { 0 };
	uint64_t fence = acquire(s, 0, "me"), records;
	char key[256];

	(void)state;
	ok(append(s, 0, fence, 1));
	ok(checkpoint(s, fence, "older", size, 1));
	mod_of("pieces/c/00000/head", &older);
	ok(append(s, 0, fence, 2));
	ok(checkpoint(s, fence, "newer", size, 2));
	while (keys_below("pieces/c/00000/p/", key) > 3 || keys_below("pieces/b/", NULL) > 0)
		poll(NULL, 0, 20);
	key[strlen(key) - 1] = '1';
	mod_of(key, &piece);
	piece.data[200] ^= 1;
	set(key, piece.data, piece.len);
	expect_corrupt(s, "damaged, at byte 1048676");
	set(key, piece.data, 50);
	expect_corrupt(s, "ends at byte 1048626");
	del(key);
	expect_corrupt(s, key);
	piece.data[200] ^= 1;
	set(key, piece.data, piece.len);
	ok(load(s, 0, &records));
	mod_of("pieces/c/00000/head", &head);
	/* The bytes of the head's pieces are gone. */
	set("pieces/c/00000/head", older.data, older.len);
	expect_corrupt(s, "is missing");
	set("pieces/c/00000/head", head.data, head.len);
	ok(load(s, 0, &records));
	del("pieces/c/00000/head"); /* the records that it covers are gone */
	expect_corrupt(s, "pieces/b/00000/0000000000000001/0000");
	skv_buf_destroy(&head);
	skv_buf_destroy(&older);
	skv_buf_destroy(&piece);
	skv_store_close(s);
}

/* ---- a folder of checkpoints that fails, or is slow ------------------------------------------ */

static struct {
	_Atomic int opening, reading, writing, syncing; /* errors of the next call, each */
	_Atomic bool hold, held;                        /* writes wait */
} trouble;

static bool fails(_Atomic int *error)
{
	errno = atomic_exchange(error, 0);
	return errno != 0;
}

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode)
{
	const bool is_one = strstr(path, ".checkpoint") != NULL;

	return is_one && fails(&trouble.opening) ? -1 : __real_open(path, flags, mode);
}

ssize_t __real_pread(int fd, void *bytes, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *bytes, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *bytes, size_t n, off_t at)
{
	return fails(&trouble.reading) ? -1 : __real_pread(fd, bytes, n, at);
}

ssize_t __real_pwrite(int fd, const void *bytes, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	while (trouble.hold) {
		trouble.held = true;
		poll(NULL, 0, 5);
	}
	return fails(&trouble.writing) ? -1 : __real_pwrite(fd, bytes, n, at);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd) { return fails(&trouble.syncing) ? -1 : __real_fsync(fd); }

static void *checkpoint_one(void *ctx)
{
	struct appender *a = ctx;

	a->rc = checkpoint(a->s, a->fence, "slow", 100, a->seq);
	return NULL;
}

/* Nothing is lost, and appends go on. */
static void a_folder_may_fail(void **state)
{
	struct skv_store *s = open_with_files("trouble");
	struct appender a = { .s = s, .seq = 1 };
	uint64_t seq = 1, records;

	(void)state;
	a.fence = acquire(s, 0, "me");
	ok(append(s, 0, a.fence, seq));
	ok(checkpoint(s, a.fence, "first", 100, 1));
	for (int i = 0; i < 4; i++) {
		trouble.opening = i == 0 ? EACCES : 0;
		trouble.writing = i == 1 ? ENOSPC : i == 2 ? EIO : 0;
		trouble.syncing = i == 3 ? EIO : 0;
		expect(checkpoint(s, a.fence, "next", 100, seq),
		       i == 1 ? SKV_E_STORE_FULL : SKV_E_STORE_IO, "/trouble-00000-");
		ok(append(s, 0, a.fence, ++seq));
		ok(load(s, 0, &records));
		assert_int_equal(records, seq - 1);
	}
	trouble.reading = EIO;
	expect(load(s, 0, &records), SKV_E_STORE_IO, "/trouble-00000-");
	trouble.opening = ENOENT; /* as from a cache of the folder that is old */
	expect_corrupt(s, "/trouble-00000-");
	ok(load(s, 0, &records));

	trouble.hold = true;
	assert_int_equal(pthread_create(&a.thread, NULL, checkpoint_one, &a), 0);
	while (!trouble.held)
		poll(NULL, 0, 5);
	for (int i = 0; i < 20; i++)
		ok(append(s, 0, a.fence, ++seq));
	ok(load(s, 0, &records));
	trouble.hold = false;
	assert_int_equal(pthread_join(a.thread, NULL), 0);
	ok(a.rc);
	ok(load(s, 0, &records));
	assert_int_equal(records, seq - 1);
	while (!in_folder("test $(ls %s | wc -l) = 1", 0)) /* the failed checkpoint is removed */
		poll(NULL, 0, 20);
	skv_store_close(s);
}

/* A manager that dies while it writes a checkpoint leaves a file; the next owner removes it, and
 * nothing that etcd does not name. */
static void leftovers_are_removed_by_name(void **state)
{
	struct skv_store *s = open_with_files("left"), *next;
	uint64_t fence = acquire(s, 0, "me"), id;

	(void)state;
	ok(append(s, 0, fence, 1));
	ok(skv_store_checkpoint_begin(s, 0, fence, &id, &err));
	ok(skv_store_checkpoint_slice(s, 0, fence, id, 0, "a slice", 7, &err));
	assert_true(in_folder("touch %s/left-00000-0123456789abcdef.checkpoint", 0));
	assert_true(in_folder("test $(ls %s | wc -l) = 2", 0));
	skv_store_close(s);
	assert_int_equal(keys_below("left/c/00000/w/", NULL), 1);
	next = open_with_files("left");
	fence = acquire(next, 0, "me");
	while (keys_below("left/c/00000/w/", NULL) > 0)
		poll(NULL, 0, 20);
	assert_true(in_folder("test \"$(ls %s)\" = left-00000-0123456789abcdef.checkpoint", 0));

	/* The replaced one goes, too, and the records that are covered. */
	for (int i = 0; i < 2; i++) {
		ok(skv_store_checkpoint_begin(next, 0, fence, &id, &err));
		ok(skv_store_checkpoint_slice(next, 0, fence, id, 0, "a slice", 7, &err));
		ok(skv_store_checkpoint_commit(next, 0, fence, id, 1, 1, &err));
	}
	while (keys_below("left/c/00000/w/", NULL) > 1 || keys_below("left/b/", NULL) > 0)
		poll(NULL, 0, 20);
	assert_true(in_folder("test $(ls %s | wc -l) = 2", 0));
	skv_store_close(next);
}

static void a_large_checkpoint_needs_files(void **state)
{
	struct skv_store *s = open_store(0, "large");
	uint8_t *bytes = calloc(1, SKV_STORE_SLICE_MAX);
	uint64_t fence = acquire(s, 0, "me"), id;
	int rc = SKV_OK;

	(void)state;
	ok(skv_store_checkpoint_begin(s, 0, fence, &id, &err));
	for (uint32_t i = 0; rc == SKV_OK && i < 5; i++)
		rc = skv_store_checkpoint_slice(s, 0, fence, id, i, bytes, SKV_STORE_SLICE_MAX,
						&err);
	expect(rc, SKV_E_TOO_LARGE, "checkpoints=DIR");
	while (keys_below("large/c/00000/", NULL) > 0)
		poll(NULL, 0, 20);
	free(bytes);
	skv_store_close(s);
}

/* ---- URLs ------------------------------------------------------------------------------------ */

static void urls_are_checked(void **state)
{
	static const struct {
		const char *url, *says;
	} bad[] = {
		{ "etcd://", "no address" },
		{ "etcd://secret@h:1", "user:password@" },
		{ "etcd://u:secret%@h:1", "malformed" },
		{ "etcd://h:1/a/b", "prefix" },
		{ "etcd://h:1/p?timeout=3", "'timeout' is unknown" },
		{ "etcd://h:1/p?tls=maybe", "tls" },
		{ "etcd://h:1/p?ca=/x", "tls=on" },
		{ "etcd://h:1/p?tls=on&cert=/x", "go together" },
		{ "etcd://h:1/p?checkpoints=x", "absolute" },
		{ "etcd://h:1/p?checkpoints=", "empty" },
		{ "etcd://h:99999/p", "" },
	};
	char shown[SKV_STORE_SHOWN_MAX];
	struct skv_store *s;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		expect(try_open(bad[i].url, &s), SKV_E_INVALID, bad[i].says);
		assert_null(strstr(err.message, "secret"));
	}
	skv_store_shown("etcd://u:secret@h:1,i:2/p?tls=on", shown);
	assert_string_equal(shown, "etcd://h:1,i:2/p?tls=on");
	set("taken/format", "another program", 15);
	snprintf(shown, sizeof shown, "etcd://%s/taken", etcd_endpoints(&servers, 0));
	expect(try_open(shown, &s), SKV_E_UNSUPPORTED, "another prefix");
}

/* The n-th allocation fails, of the store or of its client, wherever that is. A call may fail then;
 * what it leaves is what its answer says, and a store that is opened again goes on. */
static void play_without_memory(uint64_t *acknowledged, unsigned long n)
{
	struct skv_store *s = NULL;
	struct skv_buf v = { 0 };
	uint64_t fence = 0, id = 0, seq = *acknowledged + 1, version, records;
	char url[128];
	int rc;

	snprintf(url, sizeof url, "etcd://127.0.0.1:%u/nomem", servers.client[0]);
	skv_mem_fail_at(n);
	rc = try_open(url, &s);
	if (rc == SKV_OK)
		rc = skv_store_acquire(s, 0, "me", 60000, &fence, NULL, 0, &err);
	if (rc == SKV_OK && append(s, 0, fence, seq) == SKV_OK)
		*acknowledged = seq;
	if (rc == SKV_OK && skv_store_checkpoint_begin(s, 0, fence, &id, &err) == SKV_OK &&
	    skv_store_checkpoint_slice(s, 0, fence, id, 0, "slice", 5, &err) == SKV_OK)
		skv_store_checkpoint_commit(s, 0, fence, id, 1, *acknowledged, &err);
	if (rc == SKV_OK && skv_store_put(s, NULL, "k", SKV_VERSION_NONE, "v", 1, &version, &err) ==
				    SKV_OK)
		skv_store_get(s, "k", &v, &version, &err);
	if (rc == SKV_OK && load(s, 0, &records) == SKV_OK)
		skv_store_renew(s, 0, fence, 60000, &err);
	skv_mem_fail_at(0);
	skv_buf_destroy(&v);
	skv_store_close(s);
}

static void memory_may_run_out_anywhere(void **state)
{
	struct skv_buf v = { 0 };
	uint64_t acknowledged = 0, version, last;
	struct skv_store *s;

	(void)state;
	skv_log_level_set(SKV_LOG_ERROR); /* the keeper warns */
	for (unsigned long n = 1; n < 200; n++) {
		play_without_memory(&acknowledged, n);
		s = open_store(0, "nomem");
		last = newest(s, 0);
		assert_true(last == acknowledged || last == acknowledged + 1);
		acknowledged = last;
		if (skv_store_get(s, "k", &v, &version, &err) == SKV_OK)
			ok(skv_store_del(s, NULL, "k", version, &err));
		ok(load(s, 0, &last));
		skv_store_close(s);
	}
	skv_log_level_set(SKV_LOG_INFO);
	skv_buf_destroy(&v);
}

/* Certificates on both sides; and a password that may not be seen. */
static void certificates_on_both_sides(void **state)
{
	struct etcd_servers secure;
	struct skv_store *s;
	char url[1500];
	uint64_t fence;

	(void)state;
	etcd_start(&secure, 1, true, "");
	snprintf(url, sizeof url, "etcd://127.0.0.1:%u/tls?tls=on&ca=%s&cert=%s&key=%s",
		 secure.client[0], etcd_file(&secure, "ca.crt"), etcd_file(&secure, "client.crt"),
		 etcd_file(&secure, "client.key"));
	while (try_open(url, &s) != SKV_OK) /* until the server is up */
		poll(NULL, 0, 100);
	fence = acquire(s, 0, "me");
	ok(append(s, 0, fence, 1));
	skv_store_close(s);
	expect(try_open("etcd://root:secret@127.0.0.1:1/p", &s), SKV_E_STORE_IO, "127.0.0.1:1");
	assert_null(strstr(err.message, "secret"));
	etcd_stop(&secure);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(a_lost_answer_is_no_unknown_outcome),
		cmocka_unit_test(a_lost_request_is_sent_again),
		cmocka_unit_test(a_late_append_is_fenced),
		cmocka_unit_test(appends_go_together),
		cmocka_unit_test(another_hosts_lease_is_waited_out),
		cmocka_unit_test(a_renewal_ends_the_count),
		cmocka_unit_test(a_lease_goes_on_after_an_outage),
		cmocka_unit_test(a_lease_goes_on_after_a_long_read),
		cmocka_unit_test(a_follower_asks_only_for_news),
		cmocka_unit_test(changes_are_no_lists),
		cmocka_unit_test(damage_below_the_end_is_loud),
		cmocka_unit_test(a_deleted_store_is_no_new_one),
		cmocka_unit_test(a_damaged_file_is_loud),
		cmocka_unit_test(a_damaged_piece_is_loud),
		cmocka_unit_test(a_folder_may_fail),
		cmocka_unit_test(leftovers_are_removed_by_name),
		cmocka_unit_test(a_large_checkpoint_needs_files),
		cmocka_unit_test(memory_may_run_out_anywhere),
		cmocka_unit_test(urls_are_checked),
		cmocka_unit_test(certificates_on_both_sides),
	};

	if (!etcd_is_here())
		return 77;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(cases, start, stop);
}
