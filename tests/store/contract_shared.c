/* contract_shared.c - cases of the contract: what several handles and threads see. See
 * test_contract.c. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "contract.h"

/* ---- persistence and concurrency
 * -------------------------------------------------------------------- */

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

enum { LOAD_APPENDS = 300, LOAD_BYTES = 3000 };

struct crowd {
	struct skv_store *store;
	uint64_t fence;
	_Atomic uint64_t appended;
	_Atomic bool done;
	_Atomic int failures;
};

static void *append_many(void *ctx)
{
	struct crowd *c = ctx;
	uint8_t bytes[LOAD_BYTES];

	for (uint64_t seq = 1; seq <= LOAD_APPENDS; seq++) {
		bench_fill(seq, bytes, sizeof bytes);
		if (skv_store_append(c->store, 0, c->fence, seq, bytes, sizeof bytes, 0, NULL) !=
		    SKV_OK)
			c->failures++;
		c->appended = seq;
	}
	c->done = true;
	return NULL;
}

static void *checkpoint_many(void *ctx)
{
	struct crowd *c = ctx;
	uint8_t bytes[LOAD_BYTES];

	while (!c->done) {
		uint64_t upto = c->appended, id = 0;
		int rc = skv_store_checkpoint_begin(c->store, 0, c->fence, &id, NULL);

		bench_fill(upto, bytes, sizeof bytes);
		for (uint32_t i = 0; rc == SKV_OK && i < 3; i++)
			rc = skv_store_checkpoint_slice(c->store, 0, c->fence, id, i, bytes,
							sizeof bytes, NULL);
		if (rc == SKV_OK)
			rc = skv_store_checkpoint_commit(c->store, 0, c->fence, id, 3, upto, NULL);
		if (rc != SKV_OK)
			c->failures++;
	}
	return NULL;
}

static void *register_many(void *ctx)
{
	struct crowd *c = ctx;
	uint64_t version = SKV_VERSION_NONE;

	while (!c->done) {
		if (skv_store_put(c->store, NULL, "crowd", version, "x", 1, &version, NULL) != SKV_OK)
			c->failures++;
		if (skv_store_renew(c->store, 0, c->fence, 60000, NULL) != SKV_OK)
			c->failures++;
		if (skv_store_sync(c->store, NULL) != SKV_OK)
			c->failures++;
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

	*l = (struct crowd_load){ 0 };
	if (skv_store_load(c->store, 0, &l->base, &sink, NULL) != SKV_OK || l->wrong)
		c->failures++;
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
