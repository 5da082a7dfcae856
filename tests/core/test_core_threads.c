/*
 * test_core_threads.c - the core with its own threads, under several callers at once, on real clocks.
 *
 * What it proves is mostly for the thread sanitizer; by itself it checks that nobody is handed a slot
 * that another session holds, that everything adds up afterwards, and that stopping under load
 * completes every call.
 */
#include "core_env.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define ROUNDS 150
#define SLOTS 4096

struct shared {
	struct env e;
	_Atomic int holder[SLOTS]; /* 1 + thread that has an open session on the slot */
	_Atomic int stop;
	_Atomic uint64_t written, hits, refused;
};

struct caller {
	struct shared *s;
	int no;
	unsigned seed;
};

struct answer {
	struct kvb_mutex lock;
	struct kvb_cond cond;
	bool over;
	int status;
};

static void on_done(void *ctx, int status)
{
	struct answer *a = ctx;

	kvb_mutex_lock(&a->lock);
	a->over = true;
	a->status = status;
	kvb_cond_signal(&a->cond);
	kvb_mutex_unlock(&a->lock);
}

static int wait_for(struct answer *a, int rc)
{
	if (rc == KVB_PENDING) {
		kvb_mutex_lock(&a->lock);
		while (!a->over)
			kvb_cond_wait(&a->cond, &a->lock);
		rc = a->status;
		kvb_mutex_unlock(&a->lock);
	}
	kvb_mutex_destroy(&a->lock);
	kvb_cond_destroy(&a->cond);
	return rc;
}

static struct kvb_done answer_init(struct answer *a)
{
	memset(a, 0, sizeof *a);
	kvb_mutex_init(&a->lock);
	kvb_cond_init(&a->cond);
	return (struct kvb_done){ on_done, a };
}

static uint32_t slot_of(const struct kvb_start_res *r, uint32_t i)
{
	uint32_t file = (uint32_t)strtoul(r->files.v[r->loc[i].file].path + 5, NULL, 10);

	return file * 256 + (uint32_t)(r->loc[i].offset / 4096);
}

static void hold(struct caller *c, const struct kvb_start_res *r, bool on)
{
	for (uint32_t i = 0; i < r->n_keys; i++) {
		uint32_t slot;
		int was = on ? 0 : 1 + c->no;

		if (r->outcome[i] != KVB_START_WRITE)
			continue;
		slot = slot_of(r, i);
		assert_true(slot < SLOTS);
		if (!atomic_compare_exchange_strong(&c->s->holder[slot], &was, on ? 1 + c->no : 0))
			fail_msg("slot %u belongs to caller %d", slot, was);
	}
}

static void put_some(struct caller *c, struct kvb_arena *a)
{
	struct kvb_key keys[16];
	struct kvb_start_req req = { .tenant = "t", .instance = "i", .request_id = "", .keys = keys, .n_keys = 16 };
	struct kvb_start_res res;
	struct kvb_finish_req fin = { .tenant = "t", .mask_kind = KVB_MASK_ALL, .quiesced = true };
	struct kvb_finish_res fres;
	struct kvb_error err = { 0 };
	struct answer w;
	struct kvb_done done = answer_init(&w);
	int rc;

	env_keys(keys, 16, rand_r(&c->seed) % 60, 1);
	rc = wait_for(&w, kvb_core_start(c->s->e.core, &req, &res, a, &err, &done));
	if (rc != KVB_OK) {
		atomic_fetch_add(&c->s->refused, 1);
		return;
	}
	if (res.n_write == 0)
		return;
	hold(c, &res, true);
	hold(c, &res, false); /* from the finish on, another may be handed it */
	fin.session = res.session;
	done = answer_init(&w);
	rc = wait_for(&w, kvb_core_finish(c->s->e.core, &fin, &fres, a, &err, &done));
	if (rc == KVB_OK)
		atomic_fetch_add(&c->s->written, fres.committed);
	else
		atomic_fetch_add(&c->s->refused, 1);
}

static void look_up(struct caller *c, struct kvb_arena *a)
{
	struct kvb_key keys[16];
	struct kvb_lookup_req req = { .tenant = "t", .instance = "i", .keys = keys, .n_keys = 16, .lease_ms = 5 };
	struct kvb_lookup_res res;
	struct kvb_error err = { 0 };
	struct answer w;
	struct kvb_done done = answer_init(&w);

	env_keys(keys, 16, rand_r(&c->seed) % 60, 1);
	if (wait_for(&w, kvb_core_lookup(c->s->e.core, &req, &res, a, &err, &done)) == KVB_OK)
		atomic_fetch_add(&c->s->hits, res.matched);
}

static void delete_some(struct caller *c, struct kvb_arena *a)
{
	struct kvb_key key;
	struct kvb_delete_req req = { .tenant = "t", .instance = "i", .keys = &key, .n_keys = 1 };
	struct kvb_delete_res res;
	struct kvb_error err = { 0 };
	struct answer w;
	struct kvb_done done = answer_init(&w);

	env_keys(&key, 1, rand_r(&c->seed) % 60, 1 + rand_r(&c->seed) % 16);
	wait_for(&w, kvb_core_delete(c->s->e.core, &req, &res, a, &err, &done));
}

static void *call(void *arg)
{
	struct caller *c = arg;
	struct kvb_arena a;

	kvb_arena_init(&a);
	for (int i = 0; i < ROUNDS || (c->s->stop == -1); i++) {
		switch (rand_r(&c->seed) % 4) {
		case 0: case 1: put_some(c, &a); break;
		case 2: look_up(c, &a); break;
		default: delete_some(c, &a);
		}
		kvb_arena_reset(&a);
		if (atomic_load(&c->s->stop) == 1)
			break;
	}
	kvb_arena_destroy(&a);
	return NULL;
}

static struct shared *open_all(void)
{
	struct shared *s = calloc(1, sizeof *s);

	assert_non_null(s);
	env_init(&s->e);
	s->e.o.manual = false;
	s->e.o.clock = NULL;
	s->e.o.owner_lease_ms = 2000;
	s->e.o.journal_limit = 256 << 10; /* checkpoints run beside */
	assert_int_equal(kvb_store_open(s->e.ops, &s->e.store_options, &s->e.store, &s->e.err), KVB_OK);
	s->e.o.store = s->e.store;
	assert_int_equal(kvb_core_create(&s->e.o, &s->e.core, &s->e.err), KVB_OK);
	assert_int_equal(kvb_core_wait_ready(s->e.core, 10000), KVB_OK);
	env_make(&s->e, 2 << 20, 65536, 4096); /* about half of what is put */
	return s;
}

static void start_callers(struct shared *s, struct caller *c, pthread_t *t)
{
	for (int i = 0; i < THREADS; i++) {
		c[i] = (struct caller){ s, i, (unsigned)i + 1 };
		assert_int_equal(pthread_create(&t[i], NULL, call, &c[i]), 0);
	}
}

static void many_callers(void **state)
{
	struct shared *s = open_all();
	struct caller c[THREADS];
	pthread_t t[THREADS];
	struct kvb_core_counters n;

	(void)state;
	start_callers(s, c, t);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	env_check(&s->e);
	kvb_core_counters_get(s->e.core, &n);
	assert_true(atomic_load(&s->written) > 500);
	assert_true(n.evicted_blocks > 0);
	assert_int_equal(n.committed_blocks, atomic_load(&s->written));
	assert_int_equal(atomic_load(&s->refused), 0);
	kvb_core_shutdown(s->e.core);
	env_destroy(&s->e);
	free(s);
}

/* Stopping answers everybody; nobody waits for ever. */
static void stop_under_load(void **state)
{
	struct shared *s = open_all();
	struct caller c[THREADS];
	pthread_t t[THREADS];

	(void)state;
	atomic_store(&s->stop, -1); /* go on until told */
	start_callers(s, c, t);
	while (atomic_load(&s->written) < 50)
		sched_yield();
	kvb_core_shutdown(s->e.core);
	atomic_store(&s->stop, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	env_destroy(&s->e);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_callers),
		cmocka_unit_test(stop_under_load),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
