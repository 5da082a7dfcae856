/*
 * test_contract.c - guarantees beyond single calls: a failed check never ends the process, a handle
 * is not used after fork, batches as arrays side by side, and buffers that nobody touches once
 * their operation is reported.
 */
#include "fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <skv/log.h>

/* ---- an engine that does what a test wants --------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool shut;    /* reads wait */
	bool waiting; /* a read waits */
	bool breaks;  /* a check fails in the midst of a read */
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void set_gate(bool shut)
{
	pthread_mutex_lock(&gate.lock);
	gate.shut = shut;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

static void wait_until_somebody_waits(void)
{
	pthread_mutex_lock(&gate.lock);
	while (!gate.waiting)
		pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

static void read_late(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		      const struct skv_io_call *by)
{
	pthread_mutex_lock(&gate.lock);
	while (gate.shut) {
		gate.waiting = true;
		pthread_cond_broadcast(&gate.changed);
		pthread_cond_wait(&gate.changed, &gate.lock);
	}
	gate.waiting = false;
	pthread_mutex_unlock(&gate.lock);
	skv_engine_posix.read(e, runs, n, by);
	if (gate.breaks)
		(void)SKV_CHECK(n == 0); /* the fault */
}

static void use_engine(struct fixture *f)
{
	static struct skv_engine_ops ops;

	ops = skv_engine_posix;
	ops.read = read_late;
	fixture_reopen(f, NULL, &ops);
	f->kv->engine->ops = &ops;
}

/* Ends a child without the parent's exit handlers. */
static void leave(bool good) { _exit(good ? 0 : 1); }

static void expect_success(pid_t pid)
{
	int status;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool completed(struct slabkv_async *a, struct slabkv_completion *c)
{
	struct pollfd p = { .fd = slabkv_async_fd(a), .events = POLLIN };

	return poll(&p, 1, 30000) == 1 && slabkv_drain(a, c, sizeof *c, 1) == 1;
}

/* ---- a check that fails ---------------------------------------------------------------------- */

/* In the child: the check fails on a worker thread of a live queue. */
static bool survives(struct fixture *f)
{
	const struct slabkv_locations *l;
	struct slabkv_completion c;
	struct slabkv_async *a;
	struct slabkv *other;
	uint32_t matched;
	struct set b;
	struct slabkv_keys key;
	struct slabkv_op op = { .kind = SLABKV_OP_GET, .instance = "m", .key = &key, .n_bufs = 1 };
	const char *m = "m";
	bool good;

	skv_check_hook = NULL;
	use_engine(f);
	set_init(&b, 1, 2);
	key = slabkv_keys_ints(&b.ids[0], 1);
	op.bufs = &b.bufs[0];
	good = slabkv_async_open(f->kv, NULL, &a, NULL) == SLABKV_OK &&
	       set_get(f, &b, SLABKV_PREFIX) == SLABKV_OK && b.io.done == 2;
	gate.breaks = true;
	good = good && slabkv_submit(a, &op, sizeof op, 1, NULL, NULL) == SLABKV_OK &&
	       completed(a, &c);
	/* although the bytes were read */
	good = good && c.result == SLABKV_ERROR && c.why == SLABKV_E_INTERNAL;
	gate.breaks = false;
	/* every lookup is a miss, every call an error with a sentence */
	good = good && set_get(f, &b, SLABKV_PREFIX) == SLABKV_E_INTERNAL &&
	       b.blocks[0].result == SLABKV_MISS && b.io.done == 0 &&
	       strcmp(b.err.field, "handle") == 0 && b.err.message[0];
	good = good && set_put(f, &b) == SLABKV_E_INTERNAL && b.blocks[0].result == SLABKV_FAILED;
	good = good && slabkv_lookup(f->kv, "m", &b.keys, NULL, &l, NULL) == SLABKV_E_INTERNAL;
	good = good && slabkv_match(f->kv, &m, 1, &b.keys, &matched, NULL) == SLABKV_E_INTERNAL;
	good = good && slabkv_ready(f->kv, NULL) == SLABKV_E_INTERNAL;
	good = good && slabkv_submit(a, &op, sizeof op, 1, NULL, NULL) == SLABKV_E_INTERNAL;
	slabkv_close(f->kv); /* with the queue */
	/* another handle works */
	f->kv = NULL;
	good = good && slabkv_open(&f->o, &other, NULL) == SLABKV_OK;
	if (good) {
		f->kv = other;
		good = set_get(f, &b, SLABKV_PREFIX) == SLABKV_OK && b.io.done == 2;
	}
	set_free(&b);
	return good;
}

static void a_failed_check_takes_the_handle_out_of_use(void **state)
{
	struct fixture *f = *state;
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	print_message("skipped: ThreadSanitizer starts no threads after a fork\n");
	skip();
#endif
	put_all(f, 1, 2);
	pid = fork();
	if (pid == 0) {
		skv_log_level_set(SKV_LOG_ERROR);
		f->kv = NULL; /* the parent's */
		leave(survives(f));
	}
	expect_success(pid);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static bool says_so(int rc, const struct slabkv_error *err)
{
	return rc == SLABKV_E_INVALID && strcmp(err->field, "handle") == 0 &&
	       strstr(err->message, "fork");
}

static void after_fork_the_handle_is_the_parents(void **state)
{
	struct fixture *f = *state;
	struct slabkv_pool_options po;
	struct slabkv_completion c;
	struct slabkv_pool *pool;
	struct slabkv_async *a;
	struct slabkv_buf buf;
	struct set b;
	pid_t pid;

	set_init(&b, 1, 1);
	slabkv_pool_options_init(&po, sizeof po);
	po.bytes = po.buffer_bytes = 4096;
	assert_int_equal(slabkv_pool_create(&po, &pool, NULL), SLABKV_OK);
	assert_int_equal(slabkv_async_open(f->kv, NULL, &a, NULL), SLABKV_OK);
	pid = fork();
	if (pid == 0) {
		bool good = says_so(set_get(f, &b, SLABKV_PREFIX), &b.err) &&
			    b.blocks[0].result == SLABKV_MISS;
		struct slabkv_batch batch = {
			.size = sizeof batch, .kind = SLABKV_OP_EXISTS, .instance = "m",
			.keys = &b.keys
		};
		uint8_t result = 99;

		batch.results = &result;
		good = good && says_so(set_put(f, &b), &b.err) &&
		       says_so(slabkv_ready(f->kv, &b.err), &b.err);
		good = good && says_so(slabkv_batch(f->kv, &batch, &b.err), &b.err) &&
		       result == SLABKV_ERROR;
		good = good && says_so(slabkv_batch_submit(a, &batch, NULL, &b.err), &b.err);
		good = good && slabkv_drain(a, &c, sizeof c, 1) == 0 && slabkv_cancel(a, 0) == 0;
		good = good && slabkv_pool_get(pool, 0, &buf) == SLABKV_E_INVALID &&
		       slabkv_pool_destroy(pool) == SLABKV_E_INVALID;
		slabkv_async_close(a);
		slabkv_close(f->kv); /* nothing, and no waiting for threads that are not here */
		leave(good);
	}
	expect_success(pid);
	slabkv_async_close(a);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_OK);
	assert_int_equal(set_put(f, &b), SLABKV_OK); /* the parent goes on */
	set_free(&b);
}

/* ---- batches --------------------------------------------------------------------------------- */

#define MANY 128u

struct arrays {
	uint8_t keys[MANY * 16];
	void *data[MANY];
	uint64_t lengths[MANY];
	uint8_t results[MANY];
	int32_t whys[MANY];
	struct slabkv_keys k;
	struct slabkv_io io;
	struct slabkv_batch b;
};

static void arrays_init(struct arrays *s, struct set *set, enum slabkv_op_kind kind)
{
	bool moves = kind <= SLABKV_OP_GET;

	memset(s, 0, sizeof *s);
	for (uint32_t i = 0; i < set->n; i++) {
		s->keys[16 * i + 14] = (uint8_t)(set->ids[i] >> 8);
		s->keys[16 * i + 15] = (uint8_t)set->ids[i];
		s->data[i] = set->bufs[i].data;
		s->lengths[i] = set->bufs[i].size;
		s->results[i] = 99;
	}
	s->k = slabkv_keys_bytes(s->keys, set->n);
	s->b = (struct slabkv_batch){ .size = sizeof s->b,
				      .kind = kind,
				      .n_bufs = moves ? 1 : 0,
				      .instance = "m",
				      .keys = &s->k,
				      .data = moves ? s->data : NULL,
				      .lengths = moves ? s->lengths : NULL,
				      .results = s->results,
				      .whys = s->whys,
				      .tag = 7,
				      .io = &s->io };
	s->io.size = sizeof s->io;
	s->io.failed = 99;
}

static void expect_all(const struct arrays *s, uint32_t n, enum slabkv_result result, int why)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(s->results[i], result);
		assert_int_equal(s->whys[i], why);
	}
}

static void batches_take_arrays(void **state)
{
	struct fixture *f = *state;
	struct slabkv_error err;
	struct arrays s;
	struct set set;

	set_init(&set, 1, MANY);
	set_fill(&set);
	arrays_init(&s, &set, SLABKV_OP_PUT);
	assert_int_equal(slabkv_batch(f->kv, &s.b, &err), SLABKV_OK);
	expect_all(&s, MANY, SLABKV_WRITTEN, SLABKV_OK);
	assert_true(s.io.done == MANY && s.io.bytes == MANY * FIX_BYTES && s.io.failed == 0);
	arrays_init(&s, &set, SLABKV_OP_PUT);
	s.b.size = offsetof(struct slabkv_batch, io); /* of a program built before there was one */
	assert_int_equal(slabkv_batch(f->kv, &s.b, &err), SLABKV_OK);
	assert_true(s.results[0] == SLABKV_EXISTS && s.io.failed == 99);
	arrays_init(&s, &set, SLABKV_OP_EXISTS);
	assert_int_equal(slabkv_batch(f->kv, &s.b, &err), SLABKV_OK);
	expect_all(&s, MANY, SLABKV_HIT, SLABKV_OK);
	set_clear(&set);
	arrays_init(&s, &set, SLABKV_OP_GET);
	s.keys[16 * 3] = 1; /* an absent block: the others are found, each on its own */
	assert_int_equal(slabkv_batch(f->kv, &s.b, &err), SLABKV_OK);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(s.results[i], i == 3 ? SLABKV_MISS : SLABKV_HIT);
		assert_true(i == 3 || set_right(&set, i));
	}
	arrays_init(&s, &set, SLABKV_OP_GET);
	s.lengths[5] = FIX_BYTES - 1;
	assert_int_equal(slabkv_batch(f->kv, &s.b, &err), SLABKV_OK);
	assert_int_equal(s.results[5], SLABKV_ERROR);
	assert_int_equal(s.whys[5], SLABKV_E_INVALID);
	assert_int_equal(s.results[4], SLABKV_HIT);
	assert_true(s.io.matched == MANY && s.io.done == MANY - 1 && s.io.failed == 1);
	arrays_init(&s, &set, SLABKV_OP_DELETE);
	assert_int_equal(slabkv_batch(f->kv, &s.b, &err), SLABKV_OK);
	expect_all(&s, MANY, SLABKV_GONE, SLABKV_OK);
	arrays_init(&s, &set, SLABKV_OP_GET);
	s.b.instance = "unknown";
	assert_int_equal(slabkv_batch(f->kv, &s.b, &err), SLABKV_E_NOT_FOUND);
	expect_all(&s, MANY, SLABKV_ERROR, SLABKV_E_NOT_FOUND);
#define BAD(change, name)                                                            \
	do {                                                                         \
		arrays_init(&s, &set, SLABKV_OP_GET);                                \
		change;                                                              \
		assert_int_equal(slabkv_batch(f->kv, &s.b, &err), SLABKV_E_INVALID); \
		assert_string_equal(err.field, name);                                \
	} while (0)
	BAD(s.b.size = offsetof(struct slabkv_batch, tag), "size");
	BAD(s.io.size = offsetof(struct slabkv_io, bytes), "size");
	BAD(s.b.kind = (enum slabkv_op_kind)9, "kind");
	BAD(s.b.n_bufs = 0, "n_bufs");
	BAD(s.b.data = NULL, "data");
	BAD(s.b.lengths = NULL, "lengths");
	BAD(s.b.results = NULL, "results");
	BAD(s.b.keys = NULL, "keys");
	BAD(s.b.instance = "../x", "instance");
#undef BAD
	set_free(&set);
}

static void batches_complete_later(void **state)
{
	struct fixture *f = *state;
	const char *texts[] = { "one", "two" };
	struct slabkv_completion c;
	struct slabkv_async *a;
	struct arrays s, parked;
	struct set set;
	uint64_t id, second;

	assert_int_equal(slabkv_async_open(f->kv, NULL, &a, NULL), SLABKV_OK);
	set_init(&set, 1, 40);
	set_fill(&set);
	arrays_init(&s, &set, SLABKV_OP_PUT);
	s.k = slabkv_keys_strings(texts, 2);
	assert_int_equal(slabkv_batch_submit(a, &s.b, &id, NULL), SLABKV_OK);
	texts[0] = texts[1] = NULL; /* copied */
	assert_true(completed(a, &c));
	assert_true(c.result == SLABKV_WRITTEN && c.tag == 7 && c.batch == id && c.left == 0 &&
		    c.why == SLABKV_OK);
	expect_all(&s, 2, SLABKV_WRITTEN, SLABKV_OK);
	arrays_init(&s, &set, SLABKV_OP_GET);
	s.b.instance = "unknown";
	assert_int_equal(slabkv_batch_submit(a, &s.b, NULL, NULL), SLABKV_OK);
	assert_true(completed(a, &c));
	assert_true(c.result == SLABKV_ERROR && c.why == SLABKV_E_NOT_FOUND);
	expect_all(&s, 40, SLABKV_ERROR, SLABKV_E_NOT_FOUND);
	slabkv_async_close(a);

	/* A single thread is held up: operations queued after it can be cancelled. */
	put_all(f, 1, 40);
	use_engine(f);
	f->o.async_threads = 1;
	fixture_reopen(f, NULL, NULL);
	use_engine(f);
	assert_int_equal(slabkv_async_open(f->kv, NULL, &a, NULL), SLABKV_OK);
	set_gate(true);
	arrays_init(&s, &set, SLABKV_OP_GET);
	arrays_init(&parked, &set, SLABKV_OP_EXISTS);
	assert_int_equal(slabkv_batch_submit(a, &s.b, &id, NULL), SLABKV_OK);
	wait_until_somebody_waits();
	assert_int_equal(slabkv_batch_submit(a, &parked.b, &second, NULL), SLABKV_OK);
	assert_int_equal(slabkv_cancel(a, id), 0); /* begun */
	assert_int_equal(slabkv_cancel(a, second), 1);
	assert_true(completed(a, &c) && c.batch == second && c.result == SLABKV_CANCELLED);
	expect_all(&parked, 40, SLABKV_CANCELLED, SLABKV_OK);
	assert_true(parked.io.failed == 0 && parked.io.done == 0);
	set_gate(false);
	assert_true(completed(a, &c) && c.batch == id && c.result == SLABKV_HIT);
	expect_all(&s, 40, SLABKV_HIT, SLABKV_OK);
	slabkv_async_close(a);
	set_free(&set);
}

/* ---- nobody touches a buffer whose operation is over ----------------------------------------- */

struct closer {
	struct slabkv_async *a;
	atomic_bool closed;
};

static void *close_queue(void *arg)
{
	struct closer *c = arg;

	slabkv_async_close(c->a);
	atomic_store(&c->closed, true);
	return NULL;
}

/* The storage answers after every time-out there is. Nothing is reported before, whatever is asked
 * for meanwhile; once the queue is closed the buffers are the caller's. */
static void late_bytes_touch_nothing(void **state)
{
	struct fixture *f = *state;
	struct slabkv_keys keys[2];
	struct slabkv_op ops[2];
	struct pollfd p = { .events = POLLIN };
	struct closer closer = { NULL, false };
	struct slabkv_completion c;
	pthread_t thread;
	struct set b;

	put_all(f, 1, 2);
	f->o.timeout_ms = 100;
	use_engine(f);
	set_init(&b, 1, 2);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(slabkv_async_open(f->kv, NULL, &closer.a, NULL), SLABKV_OK);
		for (uint32_t i = 0; i < 2; i++) {
			keys[i] = slabkv_keys_ints(&b.ids[i], 1);
			ops[i] = (struct slabkv_op){ .kind = SLABKV_OP_GET,
						     .instance = "m",
						     .key = &keys[i],
						     .bufs = &b.bufs[i],
						     .n_bufs = 1,
						     .tag = i };
		}
		set_clear(&b);
		set_gate(true);
		gate.waiting = false;
		assert_int_equal(slabkv_submit(closer.a, ops, sizeof ops[0], 2, NULL, NULL),
				 SLABKV_OK);
		wait_until_somebody_waits();
		assert_int_equal(slabkv_cancel(closer.a, 0), 0);
		p.fd = slabkv_async_fd(closer.a);
		/* four times the time-out, and nothing is reported */
		assert_int_equal(poll(&p, 1, 400), 0);
		if (round == 0) {
			set_gate(false);
			for (int i = 0; i < 2; i++) {
				assert_true(completed(closer.a, &c));
				assert_int_equal(c.result, SLABKV_HIT);
				memset(b.bufs[c.tag].data, 0xa5, FIX_BYTES);
			}
			slabkv_async_close(closer.a);
		} else {
			atomic_store(&closer.closed, false);
			assert_int_equal(pthread_create(&thread, NULL, close_queue, &closer), 0);
			assert_int_equal(poll(NULL, 0, 300), 0);
			assert_false(atomic_load(&closer.closed));
			set_gate(false);
			pthread_join(thread, NULL);
			memset(b.memory, 0xa5, 2 * FIX_BYTES);
		}
		(void)poll(NULL, 0, 50);
		for (uint32_t i = 0; i < 2 * FIX_BYTES; i++)
			assert_int_equal(b.memory[i], 0xa5);
	}
	set_free(&b);
}

/* ---- names and numbers ----------------------------------------------------------------------- */

static void the_version_is_a_number(void **state)
{
	char text[32];

	(void)state;
	snprintf(text, sizeof text, "%d.%d.%d", SLABKV_VERSION_MAJOR, SLABKV_VERSION_MINOR,
		 SLABKV_VERSION_PATCH);
	assert_string_equal(text, SLABKV_VERSION);
	assert_string_equal(text, slabkv_version());
	assert_int_equal(slabkv_version_number(), SLABKV_VERSION_NUMBER);
}

/* A status that slabkv.h does not name is a failed check, and comes out as one that it names. */
static void only_named_codes_come_out(void **state)
{
	struct slabkv_error err;
	struct skv_error e = { 0 };
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		skv_log_level_set(SKV_LOG_ERROR);
		skv_check_hook = NULL;
		leave(skv_result_fail(&err, &e, SKV_PENDING) == SLABKV_E_INTERNAL &&
		      err.code == SLABKV_E_INTERNAL &&
		      skv_result_fail(&err, &e, SLABKV_E_MISMATCH) == SLABKV_E_MISMATCH);
	}
	expect_success(pid);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(a_failed_check_takes_the_handle_out_of_use),
		T(after_fork_the_handle_is_the_parents),
		T(batches_take_arrays),
		T(batches_complete_later),
		T(late_bytes_touch_nothing),
		cmocka_unit_test(the_version_is_a_number),
		cmocka_unit_test(only_named_codes_come_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
