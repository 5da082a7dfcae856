/*
 * torture_load.c - see torture.h. What a block holds follows from its model and key alone, so that
 * any hit can be judged, whoever wrote it and however often.
 */
#include "torture.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *const model_name[N_MODELS] = { "one", "big" };
const uint64_t model_bytes[N_MODELS] = { 1 << 20, 4497408 };

uint64_t load_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t word(uint64_t seed, uint64_t i) { return (seed + i) * 0x9e3779b97f4a7c15u; }

static uint64_t seed_of(const char *instance, uint64_t key)
{
	return (key + 1) * 0xd1342543de82ef95u +
	       (uint64_t)(unsigned char)instance[0] * 0xff51afd7ed558ccdu;
}

static void fill(void *data, uint64_t bytes, uint64_t seed)
{
	uint64_t *w = data;

	for (uint64_t i = 0; i < bytes / 8; i++)
		w[i] = word(seed, i);
}

static void check(const void *data, uint64_t bytes, const char *instance, uint64_t key)
{
	const uint64_t *w = data, seed = seed_of(instance, key);

	for (uint64_t i = 0; i < bytes / 8; i++)
		MUST(w[i] == word(seed, i), "a wrong byte: %s, key %llu, at %llu of %llu", instance,
		     (unsigned long long)key, (unsigned long long)i * 8, (unsigned long long)bytes);
}

/* ---- handle ---------------------------------------------------------------------------------- */

static void on_mismatch(void *ctx, const struct slabkv_mismatch *m)
{
	(void)ctx;
	MUST(false, "a wrong checksum under a lease: %s, key %u, %s at %llu", m->instance, m->key,
	     m->path, (unsigned long long)m->offset);
}

static void set(struct slabkv_options *o, const char *name, const char *value)
{
	struct slabkv_error err;

	MUST(slabkv_options_set(o, name, value, &err) == SLABKV_OK, "%s: %s", name, err.message);
}

struct slabkv *load_open(const char *mount, const char *url, const char *timeout_ms)
{
	struct slabkv_options o;
	struct slabkv_error err;
	struct slabkv *kv;

	slabkv_options_init(&o, sizeof o);
	o.urls = &url;
	o.n_urls = 1;
	o.timeout_ms = 30000;
	o.engine = "usrbio";
	o.on_mismatch = on_mismatch;
	set(&o, "hf3fs_mount_point", mount);
	set(&o, "threefs_read_iov_size", "64M");
	set(&o, "threefs_write_iov_size", "64M");
	set(&o, "threefs_read_timeout_ms", timeout_ms);
	set(&o, "threefs_write_timeout_ms", timeout_ms);
	MUST(slabkv_open(&o, &kv, &err) == SLABKV_OK, "%s: %s", err.field, err.message);
	return kv;
}

#define POOLED (THREADS / 4)

void load_attach(struct load *l)
{
	struct slabkv_pool_options o;
	struct slabkv_error err;

	slabkv_pool_options_init(&o, sizeof o);
	o.kind = SLABKV_MEMORY_SHARED;
	o.shm_name = "torture";
	o.buffer_bytes = CHAIN * model_bytes[BIG];
	o.bytes = POOLED * o.buffer_bytes;
	MUST(slabkv_pool_create(&o, &l->pool, &err) == SLABKV_OK, "%s", err.message);
	MUST(slabkv_pool_attach(l->kv, l->pool, &err) == SLABKV_OK, "%s", err.message);
}

void load_close(struct load *l)
{
	if (l->pool)
		MUST(slabkv_pool_detach(l->kv, l->pool) == SLABKV_OK, "the pool is still in use");
	slabkv_close(l->kv);
	MUST(slabkv_pool_destroy(l->pool) == SLABKV_OK, "a buffer of the pool is still in use");
	l->pool = NULL;
}

/* ---- one chain ------------------------------------------------------------------------------- */

struct chain {
	enum model model;
	uint8_t *memory; /* CHAIN blocks of the largest model */
	uint64_t ids[CHAIN];
	struct slabkv_buf bufs[CHAIN];
	struct slabkv_block blocks[CHAIN];
	struct slabkv_keys keys;
};

/* The first n blocks of a chain. */
static void aim(struct chain *c, enum model model, uint32_t number, uint32_t n)
{
	uint64_t bytes = model_bytes[model];

	c->model = model;
	for (uint32_t i = 0; i < n; i++) {
		c->ids[i] = number * CHAIN + i;
		c->bufs[i] = (struct slabkv_buf){ c->memory + i * bytes, bytes };
		c->blocks[i] = (struct slabkv_block){ .bufs = &c->bufs[i], .n_bufs = 1 };
	}
	c->keys = slabkv_keys_ints(c->ids, n);
}

static void progress(const struct load *l)
{
	if (l->progress >= 0)
		(void)!write(l->progress, "x", 1);
}

/* How many are there now. */
static uint32_t put(struct load *l, struct chain *c)
{
	const char *name = model_name[c->model];
	const struct slabkv_put_options o = { .size = sizeof(struct slabkv_put_options),
					      .deadline_ms = 3000 };
	uint32_t there = 0;

	for (uint32_t i = 0; i < c->keys.n; i++)
		fill(c->bufs[i].data, c->bufs[i].size, seed_of(name, c->ids[i]));
	if (slabkv_put(l->kv, name, &c->keys, &o, c->blocks, sizeof(struct slabkv_block), NULL,
		       NULL) != SLABKV_OK) {
		atomic_fetch_add(&l->failed, c->keys.n);
		return 0;
	}
	for (uint32_t i = 0; i < c->keys.n; i++) {
		switch (c->blocks[i].result) {
		case SLABKV_WRITTEN:
			atomic_fetch_add(&l->written, 1);
			there++;
			progress(l);
			break;
		case SLABKV_EXISTS:
			atomic_fetch_add(&l->exists, 1);
			there++;
			break;
		case SLABKV_BUSY:
			atomic_fetch_add(&l->busy, 1);
			break;
		default:
			atomic_fetch_add(&l->failed, 1);
		}
	}
	return there;
}

/* How many are there and right. */
static uint32_t get(struct load *l, struct chain *c)
{
	const char *name = model_name[c->model];
	uint32_t hits = 0;

	if (slabkv_get(l->kv, name, &c->keys, NULL, c->blocks, sizeof(struct slabkv_block), NULL,
		       NULL) != SLABKV_OK) {
		atomic_fetch_add(&l->errors, c->keys.n);
		return 0;
	}
	for (uint32_t i = 0; i < c->keys.n; i++) {
		if (c->blocks[i].result == SLABKV_HIT) {
			check(c->bufs[i].data, c->bufs[i].size, name, c->ids[i]);
			hits++;
			progress(l);
		} else {
			atomic_fetch_add(
				c->blocks[i].result == SLABKV_ERROR ? &l->errors : &l->misses, 1);
		}
	}
	atomic_fetch_add(&l->hits, hits);
	return hits;
}

static void chain_init(struct load *l, struct chain *c, bool pooled)
{
	struct slabkv_buf buf = { 0 };

	if (pooled)
		MUST(slabkv_pool_get(l->pool, 0, &buf) == SLABKV_OK, "no buffer in the pool");
	c->memory = pooled ? buf.data : aligned_alloc(4096, CHAIN * model_bytes[BIG]);
	MUST(c->memory, "no memory");
}

static void chain_free(struct load *l, struct chain *c, bool pooled)
{
	if (pooled)
		MUST(slabkv_pool_put(l->pool, c->memory) == SLABKV_OK,
		     "the pool's buffer is not one");
	else
		free(c->memory);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct hand {
	struct load *l;
	int index;
};

static uint32_t dice(uint64_t *state, uint32_t sides)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 33) % sides;
}

static void *work(void *arg)
{
	struct hand h = *(struct hand *)arg;
	struct load *l = h.l;
	uint64_t rng = (l->seed * THREADS + (uint64_t)h.index + 1) * 0x9e3779b97f4a7c15u;
	bool pooled = l->pool && h.index < POOLED;
	struct chain c;

	free(arg);
	chain_init(l, &c, pooled);
	while (!atomic_load(&l->stop)) {
		uint32_t what = dice(&rng, 10);

		aim(&c, (enum model)dice(&rng, N_MODELS), dice(&rng, l->chains),
		    1 + dice(&rng, CHAIN));
		atomic_store(&l->busy_since[h.index], load_now_ms());
		if (what < 4)
			(void)put(l, &c);
		else if (what < 9)
			(void)get(l, &c);
		else
			(void)slabkv_delete(l->kv, model_name[c.model], &c.keys, NULL, NULL);
		atomic_store(&l->busy_since[h.index], 0);
	}
	chain_free(l, &c, pooled);
	return NULL;
}

void load_start(struct load *l, pthread_t threads[THREADS], int n)
{
	for (int i = 0; i < n; i++) {
		struct hand *h = malloc(sizeof *h);

		MUST(h, "no memory");
		*h = (struct hand){ l, i };
		MUST(pthread_create(&threads[i], NULL, work, h) == 0, "no thread");
	}
}

void load_settle(struct load *l)
{
	uint64_t until = load_now_ms() + 90000;
	struct chain c;

	chain_init(l, &c, false);
	for (int model = 0; model < N_MODELS; model++) {
		for (uint32_t i = 0; i < l->chains; i++) {
			aim(&c, (enum model)model, i, CHAIN);
			while (put(l, &c) < CHAIN || get(l, &c) < CHAIN) {
				MUST(load_now_ms() < until, "chain %u of %s does not come back: %s",
				     i, model_name[model], slabkv_text(c.blocks[0].why));
				poll(NULL, 0, 20);
			}
		}
	}
	chain_free(l, &c, false);
}

uint64_t load_prefix(struct load *l, const char *mount, const char *instance, uint64_t bytes,
		     uint32_t n)
{
	struct slabkv_spec spec = { "kv", bytes };
	const struct slabkv_instance m = { .size = sizeof(struct slabkv_instance),
					   .id = instance,
					   .group = "g",
					   .specs = &spec,
					   .spec_size = sizeof(struct slabkv_spec),
					   .n_specs = 1 };
	const struct slabkv_put_options patient = { .size = sizeof(struct slabkv_put_options),
						    .deadline_ms = 60000 };
	uint64_t *ids = calloc(n, sizeof *ids), before, ios;
	struct slabkv_buf *bufs = calloc(n, sizeof *bufs);
	struct slabkv_block *blocks = calloc(n, sizeof *blocks);
	uint8_t *memory = aligned_alloc(4096, n * bytes);
	struct slabkv_keys keys = slabkv_keys_ints(ids, n);
	struct slabkv_error err;
	struct slabkv_io io = { .size = sizeof(struct slabkv_io) };

	MUST(ids && bufs && blocks && memory, "no memory");
	MUST(slabkv_instance_put(l->kv, &m, &err) == SLABKV_OK, "%s", err.message);
	for (uint32_t i = 0; i < n; i++) {
		ids[i] = i;
		bufs[i] = (struct slabkv_buf){ memory + i * bytes, bytes };
		blocks[i] = (struct slabkv_block){ .bufs = &bufs[i], .n_bufs = 1 };
		fill(bufs[i].data, bytes, seed_of(instance, i));
	}
	MUST(slabkv_put(l->kv, instance, &keys, &patient, blocks, sizeof(struct slabkv_block), &io,
			&err) == SLABKV_OK &&
		     io.done == n,
	     "%u of %u written: %s", io.done, n, err.message);
	memset(memory, 0, n * bytes);
	before = standin_count(mount, COUNT_read_ios);
	MUST(slabkv_get(l->kv, instance, &keys, NULL, blocks, sizeof(struct slabkv_block), &io,
			&err) == SLABKV_OK &&
		     io.done == n,
	     "%u of %u read: %s", io.done, n, err.message);
	ios = standin_count(mount, COUNT_read_ios) - before;
	for (uint32_t i = 0; i < n; i++)
		check(bufs[i].data, bytes, instance, i);
	MUST(slabkv_object_delete(l->kv, SLABKV_INSTANCE, instance, &err) == SLABKV_OK, "%s",
	     err.message);
	free(ids);
	free(bufs);
	free(blocks);
	free(memory);
	return ios;
}
