/* contract_shared.c - cases of the contract: what several handles and threads see. See
 * test_contract.c. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "contract.h"

/* ---- persistence and concurrency ------------------------------------------------------------- */

void a_reopened_store_has_everything(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000), other;
	struct skv_buf v = { 0 };

	contract_put(b, s, "k", "value");
	bench_append(b, s, fence, 1, "one");
	bench_append(b, s, fence, 2, "two");
	contract_checkpoint(b, s, fence, 1, (const char *[]){ "slice" }, 1);
	skv_store_close(s);
	s = bench_open(b);
	bench_ok(b, skv_store_get(s, "k", &v, NULL, &b->err));
	assert_memory_equal(v.data, "value", 5);
	bench_holds(b, s, 0, "1|slice|2:two");
	assert_int_equal(skv_store_acquire(s, 0, "other", 1000, &other, NULL, 0, &b->err),
			 SKV_E_NOT_OWNER);
	bench_append(b, s, fence, 3, "three");
	bench_holds(b, s, 0, "1|slice|2:two,3:three");
	skv_buf_destroy(&v);
	skv_store_close(s);
}

void two_openers_see_each_other(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b), *other = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000);
	struct skv_buf v = { 0 };

	contract_put(b, s, "k", "value");
	bench_ok(b, skv_store_get(other, "k", &v, NULL, &b->err));
	bench_append(b, s, fence, 1, "one");
	bench_holds(b, other, 0, "0||1:one");
	contract_checkpoint(b, s, fence, 1, (const char *[]){ "slice" }, 1);
	bench_holds(b, other, 0, "1|slice|");
	skv_buf_destroy(&v);
	skv_store_close(s);
	bench_holds(b, other, 0, "1|slice|");
	skv_store_close(other);
}

static int no_key(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	(void)bytes;
	(void)n;
	(void)version;
	assert_string_equal(key, ctx);
	return SKV_E_NOT_READY; /* seen */
}

void a_partition_is_a_store_of_its_own(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b), *two, *three;
	struct skv_buf v = { 0 };
	uint64_t f0, f2, version;
	struct skv_fence fence = { 0 };

	assert_int_equal(skv_store_partition(s, 0, "all", &two, &b->err), SKV_E_INVALID);
	bench_ok(b, skv_store_partition(s, 2, "all", &two, &b->err));
	bench_ok(b, skv_store_partition(s, 3, "all", &three, &b->err));
	f0 = bench_acquire(b, s, "zero", 1000);
	f2 = bench_acquire(b, two, "two", 1000);
	bench_append(b, s, f0, 1, "zero");
	bench_append(b, two, f2, 1, "two");
	contract_checkpoint(b, two, f2, 1, (const char *[]){ "slice" }, 1);
	bench_append(b, two, f2, 2, "more");
	bench_holds(b, s, 0, "0||1:zero");
	bench_holds(b, s, 2, "1|slice|2:more");
	bench_holds(b, two, 0, "1|slice|2:more");
	bench_holds(b, three, 0, "0||");

	/* A manager that is refused the shared document sees the owner's renewals there, too. */
	assert_int_equal(skv_store_acquire(two, 0, "other", 1000, &f0, NULL, 0, &b->err),
			 SKV_E_NOT_OWNER);
	assert_true(skv_store_renewed_ms(two, 0) == skv_store_renewed_ms(s, 2));
	assert_true(!skv_store_renewed_ms(s, 2) == (strcmp(skv_store_name(s), "memory") == 0));

	/* A key of its own, written by its own owner only. */
	fence.number = f2;
	bench_ok(b, skv_store_put(two, &fence, "k", SKV_VERSION_NONE, "2", 1, &version, &b->err));
	fence.number = f2 + 1;
	assert_int_equal(skv_store_put(two, &fence, "k", version, "x", 1, NULL, &b->err),
			 SKV_E_FENCED);
	assert_int_equal(skv_store_get(s, "k", &v, NULL, &b->err), SKV_E_NOT_FOUND);
	assert_int_equal(skv_store_get(three, "k", &v, NULL, &b->err), SKV_E_NOT_FOUND);
	bench_ok(b, skv_store_get(s, "partition/2/k", &v, NULL, &b->err));
	assert_int_equal(skv_store_list(two, "", no_key, "k", &b->err), SKV_E_NOT_READY);
	bench_ok(b, skv_store_list(three, "", no_key, "", &b->err));
	fence.number = f2;
	bench_ok(b, skv_store_del(two, &fence, "k", version, &b->err));
	assert_int_equal(skv_store_get(two, "k", &v, NULL, &b->err), SKV_E_NOT_FOUND);

	/* And one of all. */
	bench_ok(b, skv_store_put(two, &fence, "all", SKV_VERSION_NONE, "shared", 6, NULL,
				  &b->err));
	skv_buf_clear(&v);
	bench_ok(b, skv_store_get(three, "all", &v, NULL, &b->err));
	assert_memory_equal(v.data, "shared", 6);
	skv_buf_clear(&v);
	bench_ok(b, skv_store_get(s, "all", &v, NULL, &b->err));
	skv_buf_destroy(&v);
	skv_store_close(three);
	skv_store_close(two);
	skv_store_close(s);
}

enum { LOAD_APPENDS = 300, LOAD_BYTES = 3000 };

struct crowd {
	struct skv_store *store;
	uint64_t fence;
	_Atomic uint64_t appended;
	_Atomic bool done;
	_Atomic int failures;
};

/* Records a call of a thread. The first failure is reported. */
static void came(struct crowd *c, const char *what, int rc, const struct skv_error *err)
{
	if (rc != SKV_OK && c->failures++ == 0)
		print_error("%s: %s: %s\n", what, skv_status_name(rc), err->message);
}

static void *append_many(void *ctx)
{
	struct crowd *c = ctx;
	uint8_t bytes[LOAD_BYTES];
	struct skv_error err = { 0 };

	for (uint64_t seq = 1; seq <= LOAD_APPENDS; seq++) {
		bench_fill(seq, bytes, sizeof bytes);
		came(c, "append",
		     skv_store_append(c->store, 0, c->fence, seq, bytes, sizeof bytes, 0, &err),
		     &err);
		c->appended = seq;
	}
	c->done = true;
	return NULL;
}

static void *checkpoint_many(void *ctx)
{
	struct crowd *c = ctx;
	uint8_t bytes[LOAD_BYTES];
	struct skv_error err = { 0 };

	while (!c->done) {
		uint64_t upto = c->appended, id = 0;
		int rc = skv_store_checkpoint_begin(c->store, 0, c->fence, &id, &err);

		bench_fill(upto, bytes, sizeof bytes);
		for (uint32_t i = 0; rc == SKV_OK && i < 3; i++)
			rc = skv_store_checkpoint_slice(c->store, 0, c->fence, id, i, bytes,
							sizeof bytes, &err);
		if (rc == SKV_OK)
			rc = skv_store_checkpoint_commit(c->store, 0, c->fence, id, 3, upto, &err);
		came(c, "checkpoint", rc, &err);
	}
	return NULL;
}

static void *register_many(void *ctx)
{
	struct crowd *c = ctx;
	uint64_t version = SKV_VERSION_NONE;
	struct skv_error err = { 0 };

	while (!c->done) {
		came(c, "put",
		     skv_store_put(c->store, NULL, "crowd", version, "x", 1, &version, &err), &err);
		came(c, "renew", skv_store_renew(c->store, 0, c->fence, 60000, &err), &err);
		came(c, "sync", skv_store_sync(c->store, 0, &err), &err);
	}
	return NULL;
}

struct crowd_load {
	uint64_t base, next;
	int slices, wrong;
};

static int crowd_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	struct crowd_load *l = ctx;
	uint8_t want[LOAD_BYTES];

	bench_fill(l->base, want, sizeof want);
	if (number != (uint32_t)l->slices++ || n != sizeof want || memcmp(bytes, want, n) != 0)
		l->wrong++;
	l->next = l->base + 1;
	return SKV_OK;
}

static int crowd_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct crowd_load *l = ctx;
	uint8_t want[LOAD_BYTES];

	bench_fill(seq, want, sizeof want);
	if (seq != (l->next ? l->next : 1) || n != sizeof want || memcmp(bytes, want, n) != 0)
		l->wrong++;
	l->next = seq + 1;
	return SKV_OK;
}

static void load_once(struct crowd *c, struct crowd_load *l)
{
	const struct skv_load_sink sink = { crowd_slice, crowd_record, l };

	struct skv_error err = { 0 };

	*l = (struct crowd_load){ 0 };
	came(c, "load", skv_store_load(c->store, 0, &l->base, &sink, &err), &err);
	c->failures += l->wrong;
}

static void *load_many(void *ctx)
{
	struct crowd *c = ctx;
	struct crowd_load l;

	while (!c->done)
		load_once(c, &l);
	return NULL;
}

void a_crowd_of_threads(void **state)
{
	struct bench *b = *state;
	struct crowd c = { .store = bench_open(b) };
	void *(*const work[])(void *) = { append_many, checkpoint_many, register_many, load_many };
	struct crowd_load l;
	pthread_t t[4];

	c.fence = bench_acquire(b, c.store, "me", 60000);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, work[i], &c), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(c.failures, 0);
	load_once(&c, &l);
	assert_int_equal(c.failures, 0);
	assert_int_equal(l.next, LOAD_APPENDS + 1);
	skv_store_close(c.store);
}
