/*
 * test_core_threads.c - the core with its own threads, under several callers
 * at once, on real clocks.
 *
 * What it proves is mostly for the thread sanitizer; by itself it checks that nobody is handed a
 * slot that another session holds, that everything adds up afterwards, and that stopping under
 * load completes every call.
 */
#include "core_env.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define ROUNDS 150
#define SLOTS 16384

struct shared {
	struct env e;
	_Atomic int holder[SLOTS]; /* 1 + thread that has an open session on the slot */
	_Atomic int stop;
	unsigned chains; /* of 16 keys each */
	bool slow;
	_Atomic uint64_t written, hits, refused;
};

struct caller {
	struct shared *s;
	int no;
	unsigned seed;
};

struct answer {
	struct skv_mutex lock;
	struct skv_cond cond;
	bool over;
	int status;
};

static void on_done(void *ctx, int status)
{
	struct answer *a = ctx;

	skv_mutex_lock(&a->lock);
	a->over = true;
	a->status = status;
	skv_cond_signal(&a->cond);
	skv_mutex_unlock(&a->lock);
}

static int wait_for(struct answer *a, int rc)
{
	if (rc == SKV_PENDING) {
		skv_mutex_lock(&a->lock);
		while (!a->over)
			skv_cond_wait(&a->cond, &a->lock);
		rc = a->status;
		skv_mutex_unlock(&a->lock);
	}
	skv_mutex_destroy(&a->lock);
	skv_cond_destroy(&a->cond);
	return rc;
}

static struct skv_done answer_init(struct answer *a)
{
	memset(a, 0, sizeof *a);
	skv_mutex_init(&a->lock);
	skv_cond_init(&a->cond);
	return (struct skv_done){ on_done, a };
}

static uint32_t slot_of(const struct skv_start_res *r, uint32_t i)
{
	uint32_t file = (uint32_t)strtoul(r->files.v[r->loc[i].file].path + 5, NULL, 10);

	return file * 256 + (uint32_t)(r->loc[i].offset / 4096);
}

static void hold(struct caller *c, const struct skv_start_res *r, bool on)
{
	for (uint32_t i = 0; i < r->n_keys; i++) {
		uint32_t slot;
		int was = on ? 0 : 1 + c->no;

		if (r->outcome[i] != SKV_START_WRITE)
			continue;
		slot = slot_of(r, i);
		assert_true(slot < SLOTS);
		if (!atomic_compare_exchange_strong(&c->s->holder[slot], &was, on ? 1 + c->no : 0))
			fail_msg("slot %u belongs to caller %d", slot, was);
	}
}

static void put_some(struct caller *c, struct skv_arena *a)
{
	struct skv_key keys[16];
	struct skv_start_req req = { .tenant = "t", .instance = "i", .request_id = "", .keys = keys,
				     .n_keys = 16 };
	struct skv_start_res res;
	struct skv_finish_req fin = { .tenant = "t", .mask_kind = SKV_MASK_ALL, .quiesced = true };
	struct skv_finish_res fres;
	struct skv_error err = { 0 };
	struct answer w;
	struct skv_done done = answer_init(&w);
	int rc;

	env_keys(keys, 16, rand_r(&c->seed) % c->s->chains, 1);
	rc = wait_for(&w, skv_core_start(c->s->e.core, &req, &res, a, &err, &done));
	if (rc == SKV_E_SESSION_ENDED)
		return; /* another caller deleted a block while it waited for room */
	if (rc != SKV_OK) {
		atomic_fetch_add(&c->s->refused, 1);
		poll(NULL, 0, 1);
		return;
	}
	if (res.n_write == 0)
		return;
	hold(c, &res, true);
	hold(c, &res, false); /* from the finish on, another may be handed it */
	fin.session = res.session;
	done = answer_init(&w);
	rc = wait_for(&w, skv_core_finish(c->s->e.core, &fin, &fres, a, &err, &done));
	if (rc == SKV_OK)
		atomic_fetch_add(&c->s->written, fres.committed);
	else
		atomic_fetch_add(&c->s->refused, 1);
}

static void look_up(struct caller *c, struct skv_arena *a)
{
	struct skv_key keys[16];
	struct skv_lookup_req req = { .tenant = "t", .instance = "i", .keys = keys, .n_keys = 16,
				      .lease_ms = 5 };
	struct skv_lookup_res res;
	struct skv_error err = { 0 };
	struct answer w;
	struct skv_done done = answer_init(&w);

	env_keys(keys, 16, rand_r(&c->seed) % c->s->chains, 1);
	if (wait_for(&w, skv_core_lookup(c->s->e.core, &req, &res, a, &err, &done)) == SKV_OK)
		atomic_fetch_add(&c->s->hits, res.matched);
}

static void delete_some(struct caller *c, struct skv_arena *a)
{
	struct skv_key key;
	struct skv_delete_req req = { .tenant = "t", .instance = "i", .keys = &key, .n_keys = 1 };
	struct skv_delete_res res;
	struct skv_error err = { 0 };
	struct answer w;
	struct skv_done done = answer_init(&w);

	env_keys(&key, 1, rand_r(&c->seed) % c->s->chains, 1 + rand_r(&c->seed) % 16);
	wait_for(&w, skv_core_delete(c->s->e.core, &req, &res, a, &err, &done));
}

static void *call(void *arg)
{
	struct caller *c = arg;
	struct skv_arena a;

	skv_arena_init(&a);
	for (int i = 0; i < ROUNDS || (c->s->stop == -1); i++) {
		switch (rand_r(&c->seed) % 4) {
		case 0: case 1: put_some(c, &a); break;
		case 2: look_up(c, &a); break;
		default: delete_some(c, &a);
		}
		skv_arena_reset(&a);
		if (atomic_load(&c->s->stop) == 1)
			break;
	}
	skv_arena_destroy(&a);
	return NULL;
}

/* The store takes its time over a call. */
static void slow(struct shared *s, const char *call, uint32_t ms)
{
	struct skv_fault rule = { .kind = SKV_FAULT_DELAY, .call = call, .delay_ms = ms };

	assert_int_equal(skv_fault_store_open(s->e.store, &s->e.store, &s->e.err), SKV_OK);
	skv_fault_store_set(s->e.store, &rule);
}

static void open_core(struct shared *s)
{
	assert_int_equal(skv_store_open(s->e.ops, &s->e.store_options, &s->e.store, &s->e.err),
			 SKV_OK);
	if (s->slow) {
		/* much happens while a record, or a checkpoint that has begun, is on its way */
		slow(s, "append", 2);
		slow(s, "checkpoint_begin", 30);
	}
	s->e.o.store = s->e.store;
	env_create(&s->e);
	assert_int_equal(skv_cluster_wait_ready(s->e.cluster, 10000), SKV_OK);
}

static struct shared *open_all(unsigned chains, uint64_t journal, bool slow_store)
{
	struct shared *s = calloc(1, sizeof *s);

	assert_non_null(s);
	s->chains = chains;
	s->slow = slow_store;
	env_init(&s->e);
	s->e.o.manual = false;
	s->e.o.clock = NULL;
	s->e.o.owner_lease_ms = 2000;
	s->e.o.journal_limit = journal; /* checkpoints run beside */
	/* The partition is loaded again and again: slots held then become free soon. */
	if (slow_store) {
		s->e.o.lease_max_ms = s->e.o.lease_default_ms = 20;
		s->e.o.session_default_ms = 200;
		s->e.o.grace_ms = 10;
	}
	open_core(s);
	/* about half of what is put */
	env_make(&s->e, (uint64_t)chains * 16 * 4096 / 2, 65536, 4096);
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
	struct shared *s = open_all(60, 256 << 10, false);
	struct caller c[THREADS];
	pthread_t t[THREADS];
	struct skv_core_counters n;

	(void)state;
	start_callers(s, c, t);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	env_check(&s->e);
	skv_cluster_counters_get(s->e.cluster, &n);
	assert_true(atomic_load(&s->written) > 500);
	assert_true(n.evicted_blocks > 0);
	assert_int_equal(n.committed_blocks, atomic_load(&s->written));
	assert_int_equal(atomic_load(&s->refused), 0);
	skv_cluster_shutdown(s->e.cluster);
	env_destroy(&s->e);
	free(s);
}

/* Stopping answers everybody; nobody waits for ever. */
static void stop_under_load(void **state)
{
	struct shared *s = open_all(60, 256 << 10, false);
	struct caller c[THREADS];
	pthread_t t[THREADS];

	(void)state;
	atomic_store(&s->stop, -1); /* go on until told */
	start_callers(s, c, t);
	while (atomic_load(&s->written) < 50)
		sched_yield();
	skv_cluster_shutdown(s->e.cluster);
	atomic_store(&s->stop, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	env_destroy(&s->e);
	free(s);
}

/* Returns the contents, slot by slot. */
static uint64_t *contents(struct shared *s)
{
	uint64_t *all = calloc((size_t)s->chains * 16, sizeof *all);

	for (unsigned i = 0; i < s->chains; i++) {
		struct skv_key keys[16];
		struct skv_lookup_req req = { .tenant = "t", .instance = "i",
					      .mode = SKV_LOOKUP_BATCH, .keys = keys,
					      .n_keys = 16, .peek = true };
		struct skv_lookup_res res;

		env_keys(keys, 16, i, 1);
		skv_arena_reset(&s->e.arena);
		assert_int_equal(skv_core_lookup(s->e.core, &req, &res, &s->e.arena, &s->e.err,
						 &(struct skv_done){ 0 }),
				 SKV_OK);
		for (unsigned j = 0; j < 16; j++)
			all[i * 16 + j] = res.hit[j] ? res.loc[j].generation : 0;
	}
	return all;
}

static void clear_all(struct shared *s)
{
	struct skv_clear_req req = { .tenant = "t", .instance = "i" };
	struct skv_clear_res res;
	struct answer w;
	struct skv_done done = answer_init(&w);

	skv_arena_reset(&s->e.arena);
	assert_int_equal(
		wait_for(&w, skv_core_clear(s->e.core, &req, &res, &s->e.arena, &s->e.err, &done)),
		SKV_OK);
}

static void drop_all(struct shared *s)
{
	struct skv_spec spec = { "kv", 4096 };

	assert_int_equal(skv_cluster_instance_delete(s->e.cluster, "t", "i", NULL, &s->e.err),
			 SKV_OK);
	assert_int_equal(env_instance(&s->e, "i", "g", &spec, 1), SKV_OK);
}

static uint64_t checkpoints(struct shared *s)
{
	struct skv_core_counters n;

	skv_cluster_counters_get(s->e.cluster, &n);
	return n.checkpoints;
}

/* The partition goes and is loaded again, from a checkpoint that was just written. */
static void load_again(struct shared *s)
{
	uint64_t n = checkpoints(s);

	for (int i = 0; i < 1000 && checkpoints(s) == n; i++)
		poll(NULL, 0, 1);
	assert_int_equal(skv_cluster_demote(s->e.cluster, 1, &s->e.err), SKV_OK);
	assert_int_equal(skv_cluster_wait_ready(s->e.cluster, 10000), SKV_OK);
	env_check(&s->e);
}

/* Clears in the middle of starts, finishes, lookups, evictions and checkpoints: what is
 * loaded is what was there. */
static void clears(void **state)
{
	struct shared *s = open_all(1000, 128 << 10, true);
	struct caller c[THREADS];
	pthread_t t[THREADS];

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		uint64_t *before, *after;

		atomic_store(&s->stop, -1);
		start_callers(s, c, t);
		for (int i = 0; i < 16; i++) {
			uint64_t from = atomic_load(&s->written);

			for (int ms = 0; ms < 100 && atomic_load(&s->written) < from + 500; ms++)
				poll(NULL, 0, 1);
			if (i % 4 == 3)
				drop_all(s);
			else
				clear_all(s);
			env_check(&s->e);
			if (i % 2)
				load_again(s);
		}
		atomic_store(&s->stop, 1);
		for (int i = 0; i < THREADS; i++)
			pthread_join(t[i], NULL);
		before = contents(s);
		load_again(s);
		after = contents(s);
		assert_memory_equal(before, after, s->chains * 16 * sizeof *before);
		free(before);
		free(after);
	}
	print_message("%llu blocks written, %llu checkpoints\n",
		      (unsigned long long)atomic_load(&s->written),
		      (unsigned long long)checkpoints(s));
	assert_true(atomic_load(&s->written) > 1000 && checkpoints(s) > 10);
	env_destroy(&s->e);
	free(s);
}

/* ---- what a lookup finds while a change is applied ------------------------------------------- */

#define LONG 4096u

struct watch {
	struct env *e;
	struct skv_key keys[LONG];
	_Atomic bool stop;
	_Atomic int between; /* how often it found the end of a chain before its beginning */
};

static uint32_t found(struct watch *w, struct skv_arena *a, uint32_t i)
{
	const char *id = "i";
	struct skv_match_req req = {
		.tenant = "t", .instances = &id, .n_instances = 1, .keys = &w->keys[i], .n_keys = 1
	};
	struct skv_match_res res;
	struct skv_error err = { 0 };

	skv_arena_reset(a);
	assert_int_equal(skv_cluster_match(w->e->cluster, &req, &res, a, &err), SKV_OK);
	return res.matched[0];
}

static void *watch(void *arg)
{
	struct watch *w = arg;
	struct skv_arena a;

	skv_arena_init(&a);
	while (!atomic_load(&w->stop))
		if (found(w, &a, LONG - 1) && !found(w, &a, 0))
			atomic_fetch_add(&w->between, 1);
	skv_arena_destroy(&a);
	return NULL;
}

/* A finish makes a long chain visible from its end, and lets lookups in between its portions: they
 * need not wait for all of it. */
static void lookups_come_in_between(void **state)
{
	struct watch w = { 0 };
	struct env e;
	pthread_t t;

	(void)state;
	env_init(&e);
	env_open(&e);
	env_make(&e, (uint64_t)LONG * 4096 * 4, (uint64_t)LONG * 4096, 4096);
	w.e = &e;
	env_keys(w.keys, LONG, 1, 1);
	assert_int_equal(pthread_create(&t, NULL, watch, &w), 0);
	for (int i = 0; i < 2000 && !atomic_load(&w.between); i++) {
		uint32_t deleted;

		assert_int_equal(env_put(&e, w.keys, LONG), LONG);
		assert_int_equal(env_delete(&e, w.keys, LONG, &deleted), SKV_OK);
		assert_int_equal(deleted, LONG);
	}
	atomic_store(&w.stop, true);
	pthread_join(t, NULL);
	assert_true(atomic_load(&w.between) > 0);
	env_check(&e);
	env_destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_callers),
		cmocka_unit_test(stop_under_load),
		cmocka_unit_test(clears),
		cmocka_unit_test(lookups_come_in_between),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
