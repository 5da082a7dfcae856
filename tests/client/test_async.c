/*
 * test_async.c - the asynchronous queue with a real manager: every operation completes exactly
 * once, with the right bytes or with a reason; also when the queue is closed or the manager killed
 * in the middle. Buffers come from a pool, so that a pin that is lost or kept shows.
 */
#include "fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"

#define BYTES 4096u
#define POOL_BUFFERS 512u

struct scene {
	struct daemon d;
	struct slabkv_options o;
	const char *url;
	struct slabkv *kv;
	struct slabkv_async *a;
	struct slabkv_pool *pool;
	atomic_uint starts, lookups; /* calls to the manager */
};

static void on_call(void *ctx, const char *op, uint64_t us, int status)
{
	struct scene *s = ctx;

	(void)us;
	(void)status;
	if (strcmp(op, "start") == 0)
		atomic_fetch_add(&s->starts, 1);
	if (strcmp(op, "lookup") == 0)
		atomic_fetch_add(&s->lookups, 1);
}

static void open_async(struct scene *s, uint32_t in_flight, uint32_t threads)
{
	struct slabkv_async_options o;

	slabkv_async_options_init(&o, sizeof o);
	o.max_in_flight = in_flight;
	o.threads = threads;
	assert_int_equal(slabkv_async_open(s->kv, &o, &s->a, NULL), SLABKV_OK);
}

static int setup(void **state)
{
	static const struct slabkv_spec spec = { "kv", BYTES };
	static const struct slabkv_instance m = { .size = sizeof(struct slabkv_instance),
						  .id = "m",
						  .group = "default",
						  .specs = &spec,
						  .spec_size = sizeof(struct slabkv_spec),
						  .n_specs = 1 };
	struct slabkv_pool_options po;
	struct scene *s = calloc(1, sizeof *s);

	assert_non_null(s);
	daemon_start(&s->d);
	slabkv_options_init(&s->o, sizeof s->o);
	s->url = s->d.url;
	s->o.urls = &s->url;
	s->o.n_urls = 1;
	s->o.on_call = on_call;
	s->o.on_call_ctx = s;
	assert_int_equal(slabkv_open(&s->o, &s->kv, NULL), SLABKV_OK);
	assert_int_equal(slabkv_instance_put(s->kv, &m, NULL), SLABKV_OK);
	slabkv_pool_options_init(&po, sizeof po);
	po.bytes = POOL_BUFFERS * BYTES;
	po.buffer_bytes = BYTES;
	assert_int_equal(slabkv_pool_create(&po, &s->pool, NULL), SLABKV_OK);
	assert_int_equal(slabkv_pool_attach(s->kv, s->pool, NULL), SLABKV_OK);
	open_async(s, 4096, 4);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	slabkv_close(s->kv); /* with whatever queue is open */
	assert_int_equal(slabkv_pool_destroy(s->pool), SLABKV_OK);
	daemon_remove(&s->d);
	free(s);
	return 0;
}

static bool readable(const struct scene *s, int timeout_ms)
{
	struct pollfd p = { .fd = slabkv_async_fd(s->a), .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

/* Waits for a completion. */
static struct slabkv_completion next(const struct scene *s)
{
	struct slabkv_completion c;

	while (slabkv_drain(s->a, &c, sizeof(struct slabkv_completion), 1) == 0)
		assert_true(readable(s, 60000));
	return c;
}

static uint8_t byte_of(uint64_t key, uint32_t version, uint32_t at)
{
	return (uint8_t)(key * 31 + version * 101 + at * 7 + (at >> 8) + 1);
}

static void fill(void *data, uint64_t key, uint32_t version)
{
	for (uint32_t i = 0; i < BYTES; i++)
		((uint8_t *)data)[i] = byte_of(key, version, i);
}

static bool right(const void *data, uint64_t key, uint32_t version)
{
	for (uint32_t i = 0; i < BYTES; i++)
		if (((const uint8_t *)data)[i] != byte_of(key, version, i))
			return false;
	return true;
}

static void buffer(const struct scene *s, struct slabkv_buf *iov)
{
	assert_int_equal(slabkv_pool_get(s->pool, 60000, iov), SLABKV_OK);
}

/* Keys of operations: a submit copies them, so each is needed for a while only. */
static _Thread_local struct one {
	uint64_t number;
	struct slabkv_key wide;
	const char *string;
	struct slabkv_keys keys;
} ring[512];
static _Thread_local uint32_t turn;

static struct slabkv_keys *int_key(uint64_t number)
{
	struct one *o = &ring[turn++ % 512];

	o->number = number;
	o->keys = slabkv_keys_ints(&o->number, 1);
	return &o->keys;
}

static struct slabkv_keys *wide_key(struct slabkv_key wide)
{
	struct one *o = &ring[turn++ % 512];

	o->wide = wide;
	o->keys = slabkv_keys_wide(&o->wide, 1);
	return &o->keys;
}

static struct slabkv_keys *string_key(const char *string, const char *parent)
{
	struct one *o = &ring[turn++ % 512];

	o->string = string;
	o->keys = slabkv_keys_strings(&o->string, 1);
	o->keys.parent = parent ? string_key(parent, NULL) : NULL;
	return &o->keys;
}

static struct slabkv_op op_of(enum slabkv_op_kind kind, uint64_t key, const struct slabkv_buf *iov)
{
	return (struct slabkv_op){
		.kind = kind, .key = int_key(key), .instance = "m", .bufs = iov,
		.n_bufs = iov ? 1 : 0, .tag = key
	};
}

static void assert_pool_quiet(const struct scene *s)
{
	struct slabkv_pool_info info = { .size = sizeof(struct slabkv_pool_info) };

	slabkv_pool_info(s->pool, &info);
	assert_int_equal(info.leaving, 0);
	assert_int_equal(info.free, info.n_buffers);
}

/* ---- what it promises ------------------------------------------------------------------------ */

#define CHAIN 40u

static void chains_and_batches_share_calls(void **state)
{
	struct scene *s = *state;
	struct slabkv_op ops[CHAIN];
	struct slabkv_buf iov[CHAIN];
	struct slabkv_completion c;
	uint64_t batch, second;
	bool seen[CHAIN] = { false };

	for (uint32_t i = 0; i < CHAIN; i++) {
		buffer(s, &iov[i]);
		fill(iov[i].data, i + 1, 0);
		ops[i] = op_of(SLABKV_OP_PUT, i + 1, &iov[i]);
		ops[i].chained = i > 0;
	}
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), CHAIN, &batch, NULL),
			 SLABKV_OK);
	for (uint32_t i = 0; i < CHAIN; i++) {
		c = next(s);
		assert_int_equal(c.result, SLABKV_WRITTEN);
		assert_int_equal(c.why, SLABKV_OK);
		assert_int_equal(c.batch, batch);
		assert_int_equal(c.left, CHAIN - 1 - i);
		assert_int_equal(c.tag, c.index + 1);
		assert_false(seen[c.index]);
		seen[c.index] = true;
	}
	assert_true(s->starts <= CHAIN / 16 + 1);
	for (uint32_t i = 0; i < CHAIN; i++) {
		memset(iov[i].data, 0, BYTES);
		ops[i] = op_of(i % 2 ? SLABKV_OP_GET : SLABKV_OP_EXISTS, i + 1,
			       i % 2 ? &iov[i] : NULL);
	}
	ops[0].key = int_key(4711);
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), CHAIN, &second, NULL),
			 SLABKV_OK);
	assert_true(second != batch);
	for (uint32_t i = 0; i < CHAIN; i++) {
		c = next(s);
		assert_int_equal(c.result, c.index == 0 ? SLABKV_MISS : SLABKV_HIT);
		if (c.index % 2)
			assert_true(right(iov[c.index].data, c.tag, 0));
	}
	assert_true(s->lookups <= 2 * (CHAIN / 16 + 1));
	for (uint32_t i = 0; i < CHAIN; i++)
		ops[i] = op_of(SLABKV_OP_DELETE, i + 1, NULL);
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), CHAIN, NULL, NULL),
			 SLABKV_OK);
	for (uint32_t i = 0; i < CHAIN; i++)
		assert_int_equal(next(s).result, SLABKV_GONE);
	for (uint32_t i = 0; i < CHAIN; i++) {
		ops[i] = op_of(SLABKV_OP_GET, i + 1, &iov[i]);
		assert_int_equal(slabkv_pool_put(s->pool, iov[i].data), SLABKV_OK);
	}
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), CHAIN, NULL, NULL),
			 SLABKV_OK);
	for (uint32_t i = 0; i < CHAIN; i++)
		assert_int_equal(next(s).result, SLABKV_MISS);
	assert_pool_quiet(s);
}

static void every_form_of_key(void **state)
{
	struct scene *s = *state;
	char names[2][16] = { "a key", "another" };
	struct slabkv_op ops[4];
	struct slabkv_buf iov[4];

	for (uint32_t i = 0; i < 4; i++) {
		buffer(s, &iov[i]);
		fill(iov[i].data, i, 7);
		ops[i] = op_of(SLABKV_OP_PUT, i, &iov[i]);
		ops[i].key = i < 2 ? string_key(names[i], i == 1 ? names[0] : NULL)
				   : wide_key((struct slabkv_key){ UINT64_MAX, i });
	}
	assert_int_equal(slabkv_submit(s->a, &ops[0], sizeof(struct slabkv_op), 1, NULL, NULL),
			 SLABKV_OK);
	assert_int_equal(next(s).result, SLABKV_WRITTEN);
	assert_int_equal(slabkv_submit(s->a, &ops[1], sizeof(struct slabkv_op), 3, NULL, NULL),
			 SLABKV_OK);
	memset(names, 'x', sizeof names); /* the names have been copied */
	for (int i = 0; i < 3; i++)
		assert_int_equal(next(s).result, SLABKV_WRITTEN);
	for (uint32_t i = 0; i < 4; i++) {
		memset(iov[i].data, 0, BYTES);
		ops[i].kind = SLABKV_OP_GET;
	}
	memcpy(names, (char[2][16]){ "a key", "another" }, sizeof names);
	ops[1].key = string_key(names[1], NULL);
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), 4, NULL, NULL),
			 SLABKV_OK);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(next(s).result, SLABKV_HIT);
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(right(iov[i].data, i, 7));
		assert_int_equal(slabkv_pool_put(s->pool, iov[i].data), SLABKV_OK);
	}
}

static void the_descriptor_is_readable_while_there_is_something(void **state)
{
	struct scene *s = *state;
	struct slabkv_completion c[16];
	struct slabkv_op ops[10];
	uint32_t n = 0;

	assert_false(readable(s, 0));
	assert_int_equal(slabkv_drain(s->a, c, sizeof(struct slabkv_completion), 16), 0);
	for (uint32_t i = 0; i < 10; i++)
		ops[i] = op_of(SLABKV_OP_EXISTS, i, NULL);
	for (int round = 0; round < 20; round++) {
		assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), 10, NULL, NULL),
				 SLABKV_OK);
		for (n = 0; n < 10;) {
			uint32_t got;

			assert_true(readable(s, 60000));
			assert_true(readable(s, 0)); /* looking changes nothing */
			got = slabkv_drain(s->a, c, sizeof(struct slabkv_completion), 3);
			assert_true(got > 0);
			n += got;
		}
		assert_int_equal(n, 10);
		assert_false(readable(s, 0));
	}
	ops[0].key = int_key(1ull << 40);
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), 1, NULL, NULL),
			 SLABKV_OK);
	slabkv_async_stop(s->a, false);
	assert_true(readable(s, 0));
	assert_int_equal(slabkv_drain(s->a, c, sizeof(struct slabkv_completion), 16), 1);
	assert_int_equal(c[0].result, SLABKV_MISS);
	assert_false(readable(s, 0));
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), 1, NULL, NULL),
			 SLABKV_E_UNAVAILABLE);
	slabkv_async_stop(s->a, true); /* again: nothing */
	slabkv_async_close(s->a);
}

static void bounds_and_refusals(void **state)
{
	struct scene *s = *state;
	struct slabkv_async_options o;
	struct slabkv_async *other;
	struct slabkv_op ops[9], bad;
	struct slabkv_keys wrong;
	struct slabkv_error err;
	char memory[BYTES];
	struct slabkv_buf iov = { memory, BYTES };
	uint32_t drained = 0;

	slabkv_async_close(s->a);
	open_async(s, 8, 1);
	for (uint32_t i = 0; i < 9; i++)
		ops[i] = op_of(SLABKV_OP_EXISTS, i, NULL);
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), 9, NULL, &err),
			 SLABKV_E_TOO_LARGE);
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), 8, NULL, &err),
			 SLABKV_OK);
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), 1, NULL, &err),
			 SLABKV_E_TOO_MANY);
	for (; drained < 8; drained++) {
		(void)next(s);
		assert_int_equal(
			slabkv_submit(s->a, ops, sizeof(struct slabkv_op), drained + 2, NULL, &err),
			drained == 7 ? SLABKV_E_TOO_LARGE : SLABKV_E_TOO_MANY);
	}
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), 8, NULL, &err),
			 SLABKV_OK);
#define BAD(change, name)                                                                     \
	do {                                                                                  \
		bad = op_of(SLABKV_OP_PUT, 1, &iov);                                          \
		change;                                                                       \
		assert_int_equal(slabkv_submit(s->a, &bad, sizeof(struct slabkv_op), 1, NULL, \
					       &err),                                         \
				 SLABKV_E_INVALID);                                           \
		assert_string_equal(err.field, name);                                         \
	} while (0)
	BAD(bad.kind = (enum slabkv_op_kind)9, "kind");
	BAD(bad.instance = "../x", "instance");
	BAD(wrong = *bad.key; wrong.form = (enum slabkv_key_form)7; bad.key = &wrong, "key");
	BAD(wrong = *bad.key; wrong.n = 2; bad.key = &wrong, "key");
	BAD(bad.key = NULL, "key");
	BAD(bad.key = string_key("", NULL), "key");
	BAD(bad.n_bufs = 0, "bufs");
	BAD(bad.kind = SLABKV_OP_DELETE, "bufs");
	BAD(bad.chained = true, "chained");
	BAD(bad.kind = SLABKV_OP_GET; bad.key = string_key("a", "b"), "chained");
#undef BAD
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), 0, NULL, &err),
			 SLABKV_E_INVALID);
	slabkv_async_options_init(&o, sizeof o);
	o.threads = 65;
	assert_int_equal(slabkv_async_open(s->kv, &o, &other, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "threads");
}

/* A buffer of the wrong size or an unknown instance fails that operation, with the reason. */
/* Operations share calls, and the manager refuses a call with such a key as a whole:
 * it must not get that far. */
static void a_key_that_is_not_utf8_is_refused_at_submit(void **state)
{
	static const char *const bad[] = { "\xff", "ab\xc3", "\xed\xa0\x80", "\xc0\x80",
					   "\xf5\x80\x80\x80" };
	struct scene *s = *state;
	struct slabkv_op op = op_of(SLABKV_OP_EXISTS, 1, NULL), put = op;
	struct slabkv_keys keys = slabkv_keys_strings(&bad[0], 1);
	struct slabkv_error err;
	struct slabkv_buf iov;

	buffer(s, &iov);
	put = op_of(SLABKV_OP_PUT, 1, &iov);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		op.key = string_key(bad[i], NULL);
		put.key = string_key("\xc3\xa4", bad[i]);
		assert_int_equal(slabkv_submit(s->a, &op, sizeof(struct slabkv_op), 1, NULL, &err),
				 SLABKV_E_INVALID);
		assert_string_equal(err.field, "key");
		assert_int_equal(slabkv_submit(s->a, &put, sizeof(struct slabkv_op), 1, NULL, &err),
				 SLABKV_E_INVALID);
	}
	assert_int_equal(slabkv_delete(s->kv, "m", &keys, NULL, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "keys");
	put.key = string_key("\xc3\xa4", NULL);
	assert_int_equal(slabkv_submit(s->a, &put, sizeof(struct slabkv_op), 1, NULL, NULL),
			 SLABKV_OK);
	assert_int_equal(next(s).result, SLABKV_WRITTEN);
	assert_int_equal(slabkv_pool_put(s->pool, iov.data), SLABKV_OK);
}

static void single_operations_fail_alone(void **state)
{
	struct scene *s = *state;
	char memory[2 * BYTES];
	struct slabkv_buf iov[2] = { { memory, BYTES }, { memory + BYTES, BYTES - 1 } };
	struct slabkv_op ops[4];

	memset(memory, 1, sizeof memory);
	ops[0] = op_of(SLABKV_OP_PUT, 1, &iov[0]);
	ops[1] = op_of(SLABKV_OP_PUT, 2, &iov[1]);
	ops[1].chained = true;
	ops[2] = op_of(SLABKV_OP_GET, 3, &iov[0]);
	ops[2].instance = "unknown";
	ops[3] = op_of(SLABKV_OP_EXISTS, 3, NULL);
	ops[3].instance = "unknown";
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), 4, NULL, NULL),
			 SLABKV_OK);
	for (int i = 0; i < 4; i++) {
		struct slabkv_completion c = next(s);

		switch (c.index) {
		case 0:
			assert_int_equal(c.result, SLABKV_WRITTEN);
			break;
		case 1:
			assert_int_equal(c.result, SLABKV_FAILED);
			assert_int_equal(c.why, SLABKV_E_INVALID);
			break;
		default:
			assert_int_equal(c.result, SLABKV_ERROR);
			assert_int_equal(c.why, SLABKV_E_NOT_FOUND);
		}
	}
}

/* ---- many threads ---------------------------------------------------------------------------- */

#define THREADS 4u
#define KEYS 48u      /* of each thread */
#define OPS 1200u     /* of each thread */

/* A key: the expected state, and the operation in flight on it. */
struct key {
	atomic_bool busy;
	bool present;
	uint32_t version;
	uint64_t number;
	enum slabkv_op_kind kind;
	struct slabkv_buf iov;
};

struct submitter {
	struct scene *s;
	pthread_t thread;
	struct key keys[KEYS];
	unsigned int seed;
	atomic_uint *wrong;
};

static uint32_t dice(struct submitter *t, uint32_t n)
{
	t->seed = t->seed * 1103515245u + 12345u;
	return (t->seed >> 8) % n;
}

static void *submit_many(void *ctx)
{
	struct submitter *t = ctx;

	for (uint32_t i = 0; i < OPS; i++) {
		struct key *k = &t->keys[dice(t, KEYS)];
		struct slabkv_op op;
		int rc;

		while (atomic_load(&k->busy))
			poll(NULL, 0, 1);
		k->kind = (enum slabkv_op_kind)dice(t, 4);
		if (k->kind == SLABKV_OP_PUT || k->kind == SLABKV_OP_GET)
			buffer(t->s, &k->iov);
		if (k->kind == SLABKV_OP_PUT && !k->present)
			k->version++;
		if (k->kind == SLABKV_OP_PUT)
			fill(k->iov.data, k->number, k->version);
		op = op_of(k->kind, k->number, k->kind <= SLABKV_OP_GET ? &k->iov : NULL);
		op.tag = (uint64_t)(uintptr_t)k;
		atomic_store(&k->busy, true);
		while ((rc = slabkv_submit(t->s->a, &op, sizeof(struct slabkv_op), 1, NULL,
					   NULL)) == SLABKV_E_TOO_MANY)
			poll(NULL, 0, 1);
		if (rc != SLABKV_OK)
			atomic_fetch_add(t->wrong, 1);
		/* A put's buffer is given back at once: nobody gets it before the put is over. */
		if (k->kind == SLABKV_OP_PUT &&
		    slabkv_pool_put(t->s->pool, op.bufs->data) != SLABKV_OK)
			atomic_fetch_add(t->wrong, 1);
	}
	return NULL;
}

static bool as_expected(struct scene *s, struct key *k, const struct slabkv_completion *c)
{
	bool fine = true;

	switch (k->kind) {
	case SLABKV_OP_PUT:
		fine = c->result == (k->present ? SLABKV_EXISTS : SLABKV_WRITTEN);
		k->present = true;
		break;
	case SLABKV_OP_GET:
		fine = c->result == (k->present ? SLABKV_HIT : SLABKV_MISS);
		if (k->present && !right(k->iov.data, k->number, k->version))
			fine = false;
		fine &= slabkv_pool_put(s->pool, k->iov.data) == SLABKV_OK;
		break;
	case SLABKV_OP_EXISTS:
		fine = c->result == (k->present ? SLABKV_HIT : SLABKV_MISS);
		break;
	case SLABKV_OP_DELETE:
		fine = c->result == SLABKV_GONE;
		k->present = false;
	}
	if (!fine)
		print_message("key %llu: kind %d, result %d, why %d\n",
			      (unsigned long long)k->number, (int)k->kind, (int)c->result, c->why);
	return fine;
}

static void thousands_from_four_threads(void **state)
{
	struct scene *s = *state;
	struct submitter *t = calloc(THREADS, sizeof *t);
	struct slabkv_completion c[32];
	atomic_uint wrong = 0;
	uint32_t n = 0;

	assert_non_null(t);
	slabkv_async_close(s->a);
	open_async(s, 100, 3);
	for (uint32_t i = 0; i < THREADS; i++) {
		t[i].s = s;
		t[i].seed = i + 1;
		t[i].wrong = &wrong;
		for (uint32_t k = 0; k < KEYS; k++)
			t[i].keys[k].number = (i + 1) * 1000 + k;
		assert_int_equal(pthread_create(&t[i].thread, NULL, submit_many, &t[i]), 0);
	}
	while (n < THREADS * OPS) {
		uint32_t got = slabkv_drain(s->a, c, sizeof(struct slabkv_completion), 32);

		if (got == 0)
			assert_true(readable(s, 60000));
		for (uint32_t i = 0; i < got; i++) {
			struct key *k = (struct key *)(uintptr_t)c[i].tag;

			if (!atomic_load(&k->busy) || !as_expected(s, k, &c[i]))
				atomic_fetch_add(&wrong, 1);
			atomic_store(&k->busy, false);
		}
		n += got;
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(t[i].thread, NULL);
	assert_int_equal(wrong, 0);
	assert_false(readable(s, 0));
	assert_pool_quiet(s);
	free(t);
}

/* ---- ends ------------------------------------------------------------------------------------ */

#define MANY 600u

/* Puts of single blocks, each a call or two. Buffers are given back at once. */
static uint64_t submit_puts(const struct scene *s, uint64_t first, uint32_t n)
{
	struct slabkv_op *ops = calloc(n, sizeof *ops);
	struct slabkv_buf *iov = calloc(n, sizeof *iov);
	uint64_t batch;

	assert_true(ops && iov);
	for (uint32_t i = 0; i < n; i++) {
		buffer(s, &iov[i]);
		fill(iov[i].data, first + i, 0);
		ops[i] = op_of(SLABKV_OP_PUT, first + i, &iov[i]);
	}
	assert_int_equal(slabkv_submit(s->a, ops, sizeof(struct slabkv_op), n, &batch, NULL),
			 SLABKV_OK);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(slabkv_pool_put(s->pool, iov[i].data), SLABKV_OK);
	free(ops);
	free(iov);
	return batch;
}

static void cancelled_operations_complete_too(void **state)
{
	struct scene *s = *state;
	uint64_t first = submit_puts(s, 1, 200), second = submit_puts(s, 1001, 200);
	uint32_t cancelled = slabkv_cancel(s->a, second), n[2][2] = { { 0 } };

	for (uint32_t i = 0; i < 400; i++) {
		struct slabkv_completion c = next(s);

		assert_true(c.batch == first || c.batch == second);
		assert_true(c.result == SLABKV_WRITTEN || c.result == SLABKV_CANCELLED);
		n[c.batch == second][c.result == SLABKV_CANCELLED]++;
	}
	assert_int_equal(n[0][0], 200);
	assert_int_equal(n[1][1], cancelled);
	assert_true(cancelled > 0);
	assert_int_equal(slabkv_cancel(s->a, 0), 0);
	assert_pool_quiet(s);
}

static void stop_ends_what_is_in_flight(void **state)
{
	struct scene *s = *state;
	struct slabkv_completion c[MANY];
	uint32_t n, written = 0, cancelled = 0;

	submit_puts(s, 1, 300);
	slabkv_async_stop(s->a, false);
	n = slabkv_drain(s->a, c, sizeof(struct slabkv_completion), MANY);
	assert_int_equal(n, 300);
	for (uint32_t i = 0; i < n; i++)
		written += c[i].result == SLABKV_WRITTEN;
	assert_int_equal(written, 300);
	slabkv_async_close(s->a);
	open_async(s, 4096, 2);
	submit_puts(s, 1001, 400);
	slabkv_async_stop(s->a, true);
	assert_pool_quiet(s); /* before anything is drained */
	n = slabkv_drain(s->a, c, sizeof(struct slabkv_completion), MANY);
	assert_int_equal(n, 400);
	for (uint32_t i = 0; i < n; i++)
		cancelled += c[i].result == SLABKV_CANCELLED;
	assert_true(cancelled > 0);
	assert_int_equal(slabkv_pool_detach(s->kv, s->pool), SLABKV_OK);
}

/* With operations in flight, not drained, on two queues; then the handle itself (teardown). */
static void close_in_the_middle(void **state)
{
	struct scene *s = *state;
	struct slabkv_async *other;

	assert_int_equal(slabkv_async_open(s->kv, NULL, &other, NULL), SLABKV_OK);
	submit_puts(s, 1, 200);
	(void)next(s);
	slabkv_async_close(s->a);
	assert_pool_quiet(s);
	s->a = other;
	submit_puts(s, 1001, 300);
	(void)next(s);
}

static void the_manager_dies_in_the_middle(void **state)
{
	struct scene *s = *state;
	uint32_t n = 0, errors = 0, n_written = 0;
	uint64_t written[400];
	struct slabkv_op op = op_of(SLABKV_OP_EXISTS, 1, NULL);

	slabkv_close(s->kv); /* another one, that gives up soon */
	s->o.timeout_ms = 700;
	s->o.rounds = 2;
	assert_int_equal(slabkv_open(&s->o, &s->kv, NULL), SLABKV_OK);
	assert_int_equal(slabkv_pool_attach(s->kv, s->pool, NULL), SLABKV_OK);
	open_async(s, 4096, 16);
	submit_puts(s, 1, 400);
	for (; n < 20; n++) {
		struct slabkv_completion c = next(s);

		assert_int_equal(c.result, SLABKV_WRITTEN);
		written[n_written++] = c.tag; /* in no particular order */
	}
	daemon_kill(&s->d);
	for (; n < 400; n++) {
		struct slabkv_completion c = next(s);

		assert_true(c.result == SLABKV_WRITTEN || c.result == SLABKV_FAILED);
		assert_true((c.result == SLABKV_FAILED) == (c.why != SLABKV_OK));
		errors += c.result == SLABKV_FAILED;
		if (c.result == SLABKV_WRITTEN)
			written[n_written++] = c.tag;
	}
	assert_true(errors > 0);
	assert_false(readable(s, 0));
	assert_pool_quiet(s);
	assert_int_equal(slabkv_submit(s->a, &op, sizeof(struct slabkv_op), 1, NULL, NULL),
			 SLABKV_OK);
	assert_int_equal(next(s).result, SLABKV_ERROR);
	daemon_again(&s->d);
	daemon_wait(s->kv);
	for (uint32_t i = 0; i < n_written; i++) { /* acknowledged blocks exist */
		op = op_of(SLABKV_OP_EXISTS, written[i], NULL);
		assert_int_equal(slabkv_submit(s->a, &op, sizeof(struct slabkv_op), 1, NULL, NULL),
				 SLABKV_OK);
		assert_int_equal(next(s).result, SLABKV_HIT);
	}
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(chains_and_batches_share_calls),
		T(every_form_of_key),
		T(the_descriptor_is_readable_while_there_is_something),
		T(bounds_and_refusals),
		T(a_key_that_is_not_utf8_is_refused_at_submit),
		T(single_operations_fail_alone),
		T(thousands_from_four_threads),
		T(cancelled_operations_complete_too),
		T(stop_ends_what_is_in_flight),
		T(close_in_the_middle),
		T(the_manager_dies_in_the_middle),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
