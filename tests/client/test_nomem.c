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

#include <skv/mem.h>

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
	struct slabkv *kv;
	struct slabkv_pool *pool;
	struct set b;
	bool done; /* everything succeeded */
};

static bool fine(int rc)
{
	assert_true(rc == SLABKV_OK || rc == SLABKV_E_NOMEM);
	return rc == SLABKV_OK;
}

static const struct slabkv_spec spec = { "kv", FIX_BYTES };
static const struct slabkv_instance m = { .size = sizeof(struct slabkv_instance),
					  .id = "m",
					  .group = "g",
					  .specs = &spec,
					  .spec_size = sizeof(struct slabkv_spec),
					  .n_specs = 1 };

/* A pool, a queue, gets through both. False at the first failure. */
static bool play_async(struct scene *s)
{
	struct slabkv_async_options o;
	struct slabkv_pool_options po;
	struct slabkv_completion c[2];
	struct slabkv_async *a;
	struct slabkv_buf buf;
	struct slabkv_op ops[2];
	struct slabkv_buf iov[2];
	struct slabkv_keys keys[2];
	bool hits;

	slabkv_pool_options_init(&po, sizeof po);
	po.bytes = 2 * FIX_BYTES;
	po.buffer_bytes = FIX_BYTES;
	if (!fine(slabkv_pool_create(&po, &s->pool, NULL)) ||
	    !fine(slabkv_pool_attach(s->kv, s->pool, NULL)))
		return false;
	slabkv_async_options_init(&o, sizeof o);
	o.threads = 1;
	if (!fine(slabkv_async_open(s->kv, &o, &a, NULL)))
		return false;
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(slabkv_pool_get(s->pool, 0, &buf), SLABKV_OK);
		iov[i] = buf;
		keys[i] = slabkv_keys_ints(&s->b.ids[i], 1);
		ops[i] = (struct slabkv_op){
			.kind = SLABKV_OP_GET, .key = &keys[i], .instance = "m", .bufs = &iov[i],
			.n_bufs = 1
		};
	}
	hits = fine(slabkv_submit(a, ops, sizeof(struct slabkv_op), 2, NULL, NULL));
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(slabkv_pool_put(s->pool, iov[i].data), SLABKV_OK);
	if (!hits) {
		slabkv_async_close(a);
		return false;
	}
	slabkv_async_stop(a, false);
	assert_int_equal(slabkv_drain(a, c, sizeof(struct slabkv_completion), 2), 2);
	for (int i = 0; i < 2; i++) {
		assert_true(c[i].result == SLABKV_HIT || c[i].why == SLABKV_E_NOMEM);
		hits = hits && c[i].result == SLABKV_HIT;
	}
	slabkv_async_close(a);
	return hits;
}

/* Open, register, put, lookup, get, match, delete. Ends at the first failure. */
static void play(struct scene *s)
{
	const char *instance = "m", *url = remote.url, *mount = remote.root;
	const struct slabkv_locations *l;
	const struct slabkv_instance *layout;
	const char *json;
	struct slabkv_options o;
	uint32_t matched;
	int rc;

	slabkv_options_init(&o, sizeof o);
	o.urls = &url;
	o.n_urls = 1;
	o.mounts = &mount;
	o.n_mounts = 1;
	o.token = "secret";
	if (!fine(slabkv_open(&o, &s->kv, NULL)) || !fine(slabkv_instance_put(s->kv, &m, NULL)))
		return;
	if (!fine(slabkv_instance_get(s->kv, "m", &layout, NULL)))
		return;
	slabkv_free(layout);
	set_fill(&s->b);
	rc = slabkv_put(s->kv, "m", &s->b.keys, NULL, s->b.blocks, sizeof(struct slabkv_block),
			&s->b.io, NULL);
	if (!fine(rc) || s->b.io.done != s->b.n)
		return;
	if (!fine(slabkv_lookup(s->kv, "m", &s->b.keys, NULL, &l, NULL)))
		return;
	slabkv_free(l);
	set_clear(&s->b);
	if (!fine(slabkv_get(s->kv, "m", &s->b.keys, NULL, s->b.blocks, sizeof(struct slabkv_block),
			     &s->b.io, NULL)))
		return;
	for (uint32_t i = 0; i < s->b.n; i++)
		if (s->b.blocks[i].result == SLABKV_HIT)
			assert_true(set_right(&s->b, i));
	if (s->b.io.done != s->b.n ||
	    !fine(slabkv_match(s->kv, &instance, 1, &s->b.keys, &matched, NULL)))
		return;
	if (!play_async(s))
		return;
	if (!fine(slabkv_object_set(s->kv, SLABKV_INSTANCE, "m", "{\"extra\":\"x\"}", &json, NULL)))
		return;
	slabkv_free(json);
	if (!fine(slabkv_object_get(s->kv, SLABKV_INSTANCE, "m", &json, NULL)))
		return;
	slabkv_free(json);
	if (!fine(slabkv_delete(s->kv, "m", &s->b.keys, NULL, NULL)))
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
		skv_mem_fail_at(n);
		play(&s);
		skv_mem_fail_at(0);
		/* The handle survives: nothing is held back, nothing is left locked. */
		if (s.kv && !s.done) {
			struct slabkv_keys keys = s.b.keys;

			assert_int_equal(slabkv_instance_put(s.kv, &m, NULL), SLABKV_OK);
			assert_int_equal(slabkv_delete(s.kv, "m", &keys, NULL, NULL), SLABKV_OK);
			set_fill(&s.b);
			assert_int_equal(slabkv_put(s.kv, "m", &keys, NULL, s.b.blocks,
						    sizeof(struct slabkv_block), &s.b.io, NULL),
					 SLABKV_OK);
			/* a session that could not be ended may still hold them */
			assert_int_equal(s.b.io.failed, 0);
		}
		slabkv_close(s.kv);
		assert_int_equal(slabkv_pool_destroy(s.pool), SLABKV_OK);
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
