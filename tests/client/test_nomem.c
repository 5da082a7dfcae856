/*
 * test_nomem.c - every n-th allocation of the client failing, for n = 1, 2, 3... until the scenario
 * succeeds: each failure is an error (never a crash, a leak or wrong bytes) and the next try works.
 *
 * The stand-in runs in a process of its own, so that only the client's allocations fail.
 */
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kvb/mem.h>

struct remote {
	char url[64];
	char root[64];
};

static struct remote remote;
static pid_t child;

static int start_child(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		static struct standin s;
		struct remote r;
		int signal_number;
		sigset_t term;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigemptyset(&term);
		sigaddset(&term, SIGTERM);
		sigprocmask(SIG_BLOCK, &term, NULL);
		standin_start(&s);
		memcpy(r.url, s.url, sizeof r.url);
		memcpy(r.root, s.root, sizeof r.root);
		if (write(ends[1], &r, sizeof r) == (ssize_t)sizeof r)
			sigwait(&term, &signal_number);
		standin_stop(&s);
		_exit(0);
	}
	assert_int_equal(read(ends[0], &remote, sizeof remote), sizeof remote);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static int stop_child(void **state)
{
	int status;

	(void)state;
	kill(child, SIGTERM);
	assert_int_equal(waitpid(child, &status, 0), child);
	return 0;
}

struct scene {
	struct kvblock *kv;
	struct kvblock_pool *pool;
	struct set b;
	bool done; /* everything succeeded */
};

static bool fine(int rc)
{
	assert_true(rc == KVBLOCK_OK || rc == KVBLOCK_E_NOMEM);
	return rc == KVBLOCK_OK;
}

static const struct kvblock_spec spec = { "kv", FIX_BYTES };
static const struct kvblock_instance m = { .id = "m", .group = "g", .specs = &spec, .n_specs = 1 };

/* A pool, a queue, gets through both. False at the first failure. */
static bool play_async(struct scene *s)
{
	struct kvblock_async_options o;
	struct kvblock_pool_options po;
	struct kvblock_completion c[2];
	struct kvblock_async *a;
	struct kvblock_buf buf;
	struct kvblock_op ops[2];
	struct iovec iov[2];
	bool hits;

	kvblock_pool_options_init(&po);
	po.bytes = 2 * FIX_BYTES;
	po.buffer_bytes = FIX_BYTES;
	if (!fine(kvblock_pool_create(&po, &s->pool, NULL)) ||
	    !fine(kvblock_pool_attach(s->kv, s->pool, NULL)))
		return false;
	kvblock_async_options_init(&o);
	o.threads = 1;
	if (!fine(kvblock_async_open(s->kv, &o, &a, NULL)))
		return false;
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(kvblock_pool_get(s->pool, 0, &buf), KVBLOCK_OK);
		iov[i] = (struct iovec){ buf.data, buf.size };
		ops[i] = (struct kvblock_op){ .kind = KVBLOCK_OP_GET,
					      .form = KVBLOCK_KEYS_INT,
					      .key.number = s->b.ids[i],
					      .instance = "m",
					      .iov = &iov[i],
					      .n_iov = 1,
					      .length = FIX_BYTES };
	}
	hits = fine(kvblock_submit(a, ops, 2, NULL, NULL));
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(kvblock_pool_put(s->pool, iov[i].iov_base), KVBLOCK_OK);
	if (!hits) {
		kvblock_async_close(a);
		return false;
	}
	kvblock_async_stop(a, false);
	assert_int_equal(kvblock_drain(a, c, 2), 2);
	for (int i = 0; i < 2; i++) {
		assert_true(c[i].result == KVBLOCK_HIT || c[i].why == KVBLOCK_E_NOMEM);
		hits = hits && c[i].result == KVBLOCK_HIT;
	}
	kvblock_async_close(a);
	return hits;
}

/* Open, register, put, lookup, get, match, delete. Ends at the first failure. */
static void play(struct scene *s)
{
	const char *instance = "m", *url = remote.url, *mount = remote.root, *text;
	const struct kvblock_locations *l;
	const struct kvblock_instance_info *info;
	struct kvblock_options o;
	uint32_t matched;
	int rc;

	kvblock_options_init(&o);
	o.urls = &url;
	o.n_urls = 1;
	o.mounts = &mount;
	o.n_mounts = 1;
	o.token = "secret";
	if (!fine(kvblock_open(&o, &s->kv, NULL)) || !fine(kvblock_instance_put(s->kv, &m, NULL)))
		return;
	if (!fine(kvblock_instance_get(s->kv, "m", &info, NULL)))
		return;
	kvblock_free(info);
	set_fill(&s->b);
	rc = kvblock_put(s->kv, "m", &s->b.keys, NULL, s->b.blocks, &s->b.io, NULL);
	if (!fine(rc) || s->b.io.done != s->b.n)
		return;
	if (!fine(kvblock_lookup(s->kv, "m", &s->b.keys, NULL, &l, NULL)))
		return;
	kvblock_free(l);
	set_clear(&s->b);
	if (!fine(kvblock_get(s->kv, "m", &s->b.keys, NULL, s->b.blocks, &s->b.io, NULL)))
		return;
	for (uint32_t i = 0; i < s->b.n; i++)
		if (s->b.blocks[i].result == KVBLOCK_HIT)
			assert_true(set_right(&s->b, i));
	if (s->b.io.done != s->b.n ||
	    !fine(kvblock_match(s->kv, &instance, 1, &s->b.keys, &matched, NULL)))
		return;
	if (!play_async(s))
		return;
	if (!fine(kvblock_stats(s->kv, &text, NULL)))
		return;
	kvblock_free(text);
	if (!fine(kvblock_delete(s->kv, "m", &s->b.keys, NULL, NULL)))
		return;
	s->done = true;
}

static void each_allocation_may_fail(void **state)
{
	unsigned long n;

	(void)state;
	for (n = 1; n < 3000; n++) {
		struct scene s = { 0 };

		/* Keys of their own for each try: what a failed try has written stays there. */
		set_init(&s.b, n * 10, 2);
		kvb_mem_fail_at(n);
		play(&s);
		kvb_mem_fail_at(0);
		/* The handle survives: nothing is held back, nothing is left locked. */
		if (s.kv && !s.done) {
			struct kvblock_keys keys = s.b.keys;

			assert_int_equal(kvblock_instance_put(s.kv, &m, NULL), KVBLOCK_OK);
			assert_int_equal(kvblock_delete(s.kv, "m", &keys, NULL, NULL), KVBLOCK_OK);
			set_fill(&s.b);
			assert_int_equal(
				kvblock_put(s.kv, "m", &keys, NULL, s.b.blocks, &s.b.io, NULL),
				KVBLOCK_OK);
			/* a session that could not be ended may still hold them */
			assert_int_equal(s.b.io.failed, 0);
		}
		kvblock_close(s.kv);
		assert_int_equal(kvblock_pool_destroy(s.pool), KVBLOCK_OK);
		set_free(&s.b);
		if (s.done)
			break;
	}
	assert_true(n > 20 && n < 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_allocation_may_fail, start_child, stop_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
