/*
 * bench_ops.c - the metadata operations of `slabkv bench`, and their objects.
 *
 * The storage has type "null" (addresses without bytes), so neither the file system nor the data
 * path of the library is in the numbers. Blocks are numbered: 0..population-1 are there to be
 * found, higher ones are made as the run goes on, and MISSING ones never are.
 */
#include "bench.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/hash.h>
#include <skv/mem.h>

#define MISSING (1ull << 62)
#define FILL_KEYS 4096u /* blocks of one unmeasured call */
_Static_assert(FILL_KEYS <= SLABKV_MAX_KEYS, "one call");

static void count(struct skv_bench_call *c, uint64_t asked, uint64_t done)
{
	c->asked = asked;
	c->done = done;
}

bool skv_bench_call_open(struct skv_bench_call *c, struct skv_bench *b, uint32_t keys)
{
	*c = (struct skv_bench_call){ .b = b };
	c->ids = skv_calloc(keys, sizeof *c->ids);
	c->sums = skv_calloc(keys, sizeof *c->sums);
	c->texts = b->text ? skv_calloc(keys, sizeof *c->texts) : NULL;
	c->strings = b->text ? skv_calloc(keys, sizeof *c->strings) : NULL;
	return c->ids && c->sums && (!b->text || (c->texts && c->strings));
}

void skv_bench_call_close(struct skv_bench_call *c)
{
	skv_free(c->ids);
	skv_free(c->sums);
	skv_free(c->texts);
	skv_free(c->strings);
}

/* Returns the names of c->ids. */
static struct slabkv_keys names(struct skv_bench_call *c, uint32_t n)
{
	static const char digits[] = "0123456789abcdef";

	if (!c->b->text)
		return slabkv_keys_ints(c->ids, n);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t x = 0;

		for (uint32_t k = 0; k < SKV_BENCH_TEXT; k++, x >>= 4) {
			if (k % 16 == 0) /* the first 16 alone differ from id to id */
				x = (c->ids[i] + k) * 0x9e3779b97f4a7c15u;
			c->texts[i][k] = digits[x & 15];
		}
		c->strings[i] = c->texts[i];
	}
	return slabkv_keys_strings(c->strings, n);
}

/* ---- start and finish ------------------------------------------------------------------------ */

static int start_finish(struct skv_bench_call *c, uint32_t n)
{
	const struct slabkv_keys keys = names(c, n);
	struct slabkv_finish_options done = { .size = sizeof(struct slabkv_finish_options),
					      .quiesced = true };
	struct slabkv_finished finished = { .size = sizeof(struct slabkv_finished) };
	const struct slabkv_put_options how = { .size = sizeof(struct slabkv_put_options),
						.independent = c->b->independent };
	const struct slabkv_session *s;
	uint64_t begin = skv_now_us(), middle;
	int rc;

	count(c, n, 0);
	rc = slabkv_start(c->b->kv, c->b->name, &keys, &how, NULL, &s, &c->err);
	middle = skv_now_us();
	if (rc != SLABKV_OK)
		return rc;
	if (c->b->checksums) {
		for (uint32_t i = 0; i < n; i++)
			c->sums[i] = ~c->ids[i] * 0x9e3779b97f4a7c15u;
		done.checksums = c->sums;
		done.n_checksums = s->n_write;
	}
	if (s->n_write > 0)
		rc = slabkv_finish(c->b->kv, s->id, &done, &finished, &c->err);
	c->first_us = middle - begin;
	c->second_us = skv_now_us() - middle;
	if (rc == SLABKV_OK)
		c->done = finished.committed;
	slabkv_free(s);
	return rc;
}

void skv_bench_name_fresh(struct skv_bench_call *c, uint32_t n)
{
	uint64_t first = atomic_fetch_add(&c->b->next_id, n);

	assert(first + n <= MISSING);
	for (uint32_t i = 0; i < n; i++)
		c->ids[i] = first + i;
}

static int call_start(struct skv_bench_call *c)
{
	int rc;

	skv_bench_name_fresh(c, c->b->keys);
	rc = start_finish(c, c->b->keys);
	if (atomic_fetch_add(&c->b->made, c->done) + c->done >= c->b->max_blocks)
		atomic_store(&c->b->stop, true);
	return rc;
}

/* Makes n blocks, unmeasured. */
static int fill(struct skv_bench *b, uint64_t n, struct slabkv_error *err)
{
	struct skv_bench_call c;
	int rc = SLABKV_OK;

	if (!skv_bench_call_open(&c, b, FILL_KEYS)) {
		skv_bench_call_close(&c);
		snprintf(err->message, sizeof err->message, "out of memory");
		return err->code = SLABKV_E_NOMEM;
	}
	while (n > 0 && rc == SLABKV_OK) {
		uint32_t now = n < FILL_KEYS ? (uint32_t)n : FILL_KEYS;

		skv_bench_name_fresh(&c, now);
		rc = start_finish(&c, now);
		n -= now;
	}
	*err = c.err;
	skv_bench_call_close(&c);
	return rc;
}

/* ---- lookup and match ------------------------------------------------------------------------ */

/* A permutation of 0..n-1 without a pattern that a codec could shorten. */
static uint64_t shuffle(uint64_t x, uint64_t n)
{
	unsigned bits = n > 2 ? 64u - (unsigned)__builtin_clzll(n - 1) : 1;
	uint64_t mask = (1ull << bits) - 1;

	assert(x < n && n - 1 <= mask); /* so its cycle returns below n */
	do { /* a permutation of `bits` bits; values >= n are permuted again */
		x = x * 0x9e3779b97f4a7c15u & mask;
		x ^= x >> (bits / 2 + 1);
		x = x * 0xbf58476d1ce4e5b9u & mask;
		x ^= x >> (bits / 2 + 1);
	} while (x >= n);
	return x;
}

/* The i-th block of this call: from a range of the population that differs from call to call, or,
 * scattered, from anywhere in it. */
static uint64_t asked_for(const struct skv_bench_call *c, uint32_t i)
{
	uint64_t places = c->b->population - c->b->keys + 1;

	assert(c->b->keys <= c->b->population && i < c->b->keys);
	if (c->b->scatter)
		return shuffle((c->turn * c->b->keys + i) % c->b->population, c->b->population);
	return c->turn * c->b->keys % places + i;
}

/* Number of hits. A prefix hits up to a point; in a batch the misses lie between the hits. */
uint32_t skv_bench_name_hits(struct skv_bench_call *c)
{
	uint32_t n = c->b->keys, hits = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t upto = (uint32_t)(c->b->hits * (c->b->mode == SLABKV_PREFIX ? n : i + 1));
		bool hit = c->b->mode == SLABKV_PREFIX ? i < upto : hits < upto;

		c->ids[i] = asked_for(c, i) + (hit ? 0 : MISSING);
		hits += hit;
	}
	assert(hits <= (uint32_t)(c->b->hits * n) && hits <= n);
	return hits;
}

static int call_lookup(struct skv_bench_call *c)
{
	const struct slabkv_lookup_options o = { .size = sizeof(struct slabkv_lookup_options),
						 .mode = c->b->mode,
						  .lease_ms = SLABKV_LEASE_DEFAULT };
	const struct slabkv_locations *l;
	uint32_t hits = skv_bench_name_hits(c);
	const struct slabkv_keys keys = names(c, c->b->keys);
	int rc = slabkv_lookup(c->b->kv, c->b->name, &keys, &o, &l, &c->err);

	count(c, hits, 0);
	if (rc != SLABKV_OK)
		return rc;
	count(c, hits ? hits : 1, hits ? l->matched : l->matched == 0);
	slabkv_free(l);
	return SLABKV_OK;
}

static int call_match(struct skv_bench_call *c)
{
	const char *instance = c->b->name;
	struct slabkv_keys keys;
	uint32_t matched = 0;
	int rc;

	for (uint32_t i = 0; i < c->b->keys; i++)
		c->ids[i] = asked_for(c, i);
	keys = names(c, c->b->keys);
	rc = slabkv_match(c->b->kv, &instance, 1, &keys, &matched, &c->err);
	count(c, c->b->keys, matched);
	return rc;
}

/* ---- delete ---------------------------------------------------------------------------------- */

static int prepare_delete(struct skv_bench *b, struct slabkv_error *err)
{
	uint64_t n = (uint64_t)b->keys * 2048, most = b->full ? b->capacity / b->slot_bytes / 2 : n;
	int rc;

	n = n < 32768 ? 32768 : n > 262144 ? 262144 : n;
	n = n > most ? most : n;
	n = n > b->max_blocks ? b->max_blocks : n;
	b->stock = atomic_load(&b->next_id);
	rc = fill(b, n - n % b->keys, err);
	b->stock_end = atomic_load(&b->next_id);
	assert(rc != SLABKV_OK || (b->stock_end - b->stock) % b->keys == 0);
	return rc;
}

static int call_delete(struct skv_bench_call *c)
{
	struct slabkv_keys keys;
	uint64_t first = c->b->stock + atomic_fetch_add(&c->b->made, c->b->keys);
	uint32_t deleted = 0;
	int rc;

	if (first + c->b->keys > c->b->stock_end) {
		atomic_store(&c->b->stop, true);
		return SLABKV_OK;
	}
	assert(first >= c->b->population); /* outside the blocks that lookups find */
	for (uint32_t i = 0; i < c->b->keys; i++)
		c->ids[i] = first + i;
	keys = names(c, c->b->keys);
	rc = slabkv_delete(c->b->kv, c->b->name, &keys, &deleted, &c->err);
	count(c, c->b->keys, deleted);
	return rc;
}

static const struct skv_bench_op ops[] = {
	{ .name = "lookup", .option = "lookup", .call = call_lookup },
	{ .name = "match", .option = "match", .call = call_match },
	{ .name = "start+finish",
	  .option = "start",
	  .halves = { "start", "finish" },
	  .call = call_start },
	{ .name = "delete", .option = "delete", .prepare = prepare_delete, .call = call_delete },
};

bool skv_bench_op_add(struct skv_bench *b, const char *option)
{
	for (uint32_t i = 0; i < b->api->n_ops && b->n_ops < SKV_BENCH_SIZES; i++) {
		if (strcmp(b->api->ops[i].option, option) != 0)
			continue;
		b->ops[b->n_ops++] = &b->api->ops[i];
		return true;
	}
	return false;
}

/* ---- the objects ----------------------------------------------------------------------------- */

static int register_instance(struct skv_bench *b, struct slabkv_error *err)
{
	const struct slabkv_spec spec = { "kv", b->slot_bytes };
	const struct slabkv_instance instance = {
		.size = sizeof(struct slabkv_instance), .id = b->name, .group = b->name,
		.specs = &spec, .spec_size = sizeof(struct slabkv_spec), .n_specs = 1
	};

	return slabkv_instance_put(b->kv, &instance, err);
}

const struct skv_bench_api skv_bench_native = {
	.name = "v1",
	.ops = ops,
	.n_ops = sizeof ops / sizeof ops[0],
	.op_names = "lookup,match,start,delete",
	.register_instance = register_instance,
};

static int make_objects(struct skv_bench *b, struct slabkv_error *err)
{
	const uint64_t file_size = b->capacity < 1ull << 40 ? b->capacity : 1ull << 40;
	const char *name = b->name;
	int rc = skv_cli_object_set(b->kv, SLABKV_STORAGE, name,
				    json_pack("{ss sI sI}", "type", "null", "capacity",
					      (json_int_t)b->capacity, "file_size",
					      (json_int_t)file_size),
				    NULL, err);

	if (rc == SLABKV_OK)
		rc = skv_cli_object_set(b->kv, SLABKV_GROUP, name,
					json_pack("{s:[s] ss}", "storages", name, "policy",
						  b->policy ? b->policy : ""),
					NULL, err);
	return rc == SLABKV_OK ? b->api->register_instance(b, err) : rc;
}

int skv_bench_prepare(struct skv_bench *b, struct slabkv_error *err)
{
	uint64_t dice, fresh, fits = b->capacity / b->slot_bytes;
	int rc;

	skv_random(&dice, sizeof dice);
	snprintf(b->name, sizeof b->name, "bench-%016" PRIx64, dice);
	if (b->n_data > 0)
		return SLABKV_OK;
	rc = make_objects(b, err);
	atomic_store(&b->next_id, b->population);
	if (rc == SLABKV_OK && b->full && fits > b->population)
		rc = fill(b, fits + fits / 50 - b->population, err);
	fresh = atomic_exchange(&b->next_id, 0);
	if (rc == SLABKV_OK) /* last, so that it is not evicted first */
		rc = fill(b, b->population, err);
	assert(rc != SLABKV_OK || atomic_load(&b->next_id) == b->population);
	assert(fresh >= b->population);
	atomic_store(&b->next_id, fresh);
	return rc;
}

void skv_bench_remove(struct skv_bench *b)
{
	struct slabkv_error err;

	if (b->n_data > 0)
		return;
	if (slabkv_object_delete(b->kv, SLABKV_INSTANCE, b->name, &err) != SLABKV_OK ||
	    slabkv_object_delete(b->kv, SLABKV_GROUP, b->name, &err) != SLABKV_OK ||
	    slabkv_object_delete(b->kv, SLABKV_STORAGE, b->name, &err) != SLABKV_OK)
		fprintf(stderr, "slabkv bench: %s is left at the manager: %s\n", b->name,
			err.message);
}
