/*
 * bench_data.c - `slabkv bench --data`: put and get of real bytes on an existing storage.
 *
 * Every page of a block begins with a stamp that tells its block and its place, and the library
 * compares the checksum of what it reads: what is counted as done has been verified in both ways.
 * Buffers are aligned to pages, so that an engine may pass the page cache by.
 */
#include "bench.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include <skv/mem.h>

#define PAGE 4096u

static uint64_t stride(const struct skv_bench *b)
{
	return (b->block_bytes + PAGE - 1) / PAGE * PAGE;
}

static uint64_t stamp(uint64_t id, uint64_t at) { return (id + 1) * 0x9e3779b97f4a7c15u ^ at; }

static void fill_block(const struct skv_bench *b, uint8_t *data, uint64_t id)
{
	for (uint64_t at = 0; at + sizeof(uint64_t) <= b->block_bytes; at += PAGE) {
		uint64_t v = stamp(id, at);

		memcpy(data + at, &v, sizeof v);
	}
}

static bool check_block(const struct skv_bench *b, const uint8_t *data, uint64_t id)
{
	for (uint64_t at = 0; at + sizeof(uint64_t) <= b->block_bytes; at += PAGE) {
		uint64_t v = stamp(id, at);

		if (memcmp(data + at, &v, sizeof v) != 0)
			return false;
	}
	return true;
}

/* One buffer for all blocks of a call. What "usrbio" may use without a copy is
 * shared memory with a name. */
static bool make_buffers(struct skv_bench_call *c)
{
	static atomic_uint serial;
	struct slabkv_pool_options o;
	struct slabkv_buf buf;
	char name[32];

	slabkv_pool_options_init(&o, sizeof o);
	o.bytes = o.buffer_bytes = stride(c->b) * c->b->keys;
	if (strcmp(slabkv_engine(c->b->kv, NULL), "usrbio") == 0) {
		snprintf(name, sizeof name, "bench%u", atomic_fetch_add(&serial, 1));
		o.kind = SLABKV_MEMORY_SHARED;
		o.shm_name = name;
	}
	if (slabkv_pool_create(&o, &c->pool, NULL) != SLABKV_OK ||
	    slabkv_pool_get(c->pool, 0, &buf) != SLABKV_OK)
		return false;
	assert(buf.size == o.buffer_bytes);
	c->buffers = buf.data;
	memset(c->buffers, 0x5a, o.bytes);
	/* Faster with "uring" and "usrbio"; where it cannot be, everything works all the same. */
	return slabkv_pool_attach(c->b->kv, c->pool, NULL) == SLABKV_OK;
}

bool skv_bench_data_open(struct skv_bench_call *c)
{
	c->bufs = skv_calloc(c->b->keys, sizeof *c->bufs);
	c->blocks = skv_calloc(c->b->keys, sizeof *c->blocks);
	if (!c->bufs || !c->blocks || !make_buffers(c)) {
		skv_bench_data_close(c);
		return false;
	}
	for (uint32_t i = 0; i < c->b->keys; i++) {
		c->bufs[i] =
			(struct slabkv_buf){ c->buffers + i * stride(c->b), c->b->block_bytes };
		c->blocks[i] = (struct slabkv_block){ .bufs = &c->bufs[i], .n_bufs = 1 };
	}
	return true;
}

void skv_bench_data_close(struct skv_bench_call *c)
{
	if (c->pool) {
		slabkv_pool_detach(c->b->kv, c->pool);
		if (c->buffers)
			slabkv_pool_put(c->pool, c->buffers);
		slabkv_pool_destroy(c->pool);
	}
	skv_free(c->bufs);
	skv_free(c->blocks);
	c->buffers = NULL;
	c->pool = NULL;
	c->bufs = NULL;
	c->blocks = NULL;
}

static int prepare_put(struct skv_bench *b, struct slabkv_error *err)
{
	(void)err;
	b->put_from = atomic_load(&b->next_id);
	return SLABKV_OK;
}

static int call_put(struct skv_bench_call *c)
{
	const struct slabkv_keys keys = slabkv_keys_ints(c->ids, c->b->keys);
	uint64_t first = atomic_fetch_add(&c->b->next_id, c->b->keys);
	struct slabkv_io io = { .size = sizeof(struct slabkv_io) };
	int rc;

	/* opened for this size */
	assert(c->bufs[0].data == c->buffers && c->bufs[0].size == c->b->block_bytes);
	for (uint32_t i = 0; i < c->b->keys; i++) {
		c->ids[i] = first + i;
		fill_block(c->b, c->bufs[i].data, first + i);
	}
	rc = slabkv_put(c->b->kv, c->b->name, &keys, NULL, c->blocks, sizeof(struct slabkv_block),
			&io, &c->err);
	c->asked = c->b->keys;
	c->done = io.done;
	c->bytes = io.bytes;
	c->ios = io.ios;
	if (atomic_fetch_add(&c->b->made, io.bytes) + io.bytes >= c->b->data_bytes)
		atomic_store(&c->b->stop, true);
	return rc;
}

/* What put has written, in ranges as it was written. */
static int prepare_get(struct skv_bench *b, struct slabkv_error *err)
{
	b->put_to = atomic_load(&b->next_id);
	if (b->put_to > b->put_from)
		return SLABKV_OK;
	snprintf(err->message, sizeof err->message, "nothing was put");
	return err->code = SLABKV_E_INTERNAL;
}

static int call_get(struct skv_bench_call *c)
{
	const struct slabkv_lookup_options o = { .size = sizeof(struct slabkv_lookup_options),
						 .mode = SLABKV_BATCH,
						  .lease_ms = SLABKV_LEASE_DEFAULT };
	const struct slabkv_keys keys = slabkv_keys_ints(c->ids, c->b->keys);
	uint64_t ranges = (c->b->put_to - c->b->put_from) / c->b->keys;
	uint64_t first = c->b->put_from + c->turn * 7919 % ranges * c->b->keys;
	struct slabkv_io io = { .size = sizeof(struct slabkv_io) };
	int rc;

	/* put went by whole calls of as many keys */
	assert((c->b->put_to - c->b->put_from) % c->b->keys == 0);
	assert(first >= c->b->put_from && first + c->b->keys <= c->b->put_to);
	for (uint32_t i = 0; i < c->b->keys; i++) {
		c->ids[i] = first + i;
		memset(c->bufs[i].data, 0, sizeof(uint64_t)); /* the last call's bytes are no hit */
	}
	rc = slabkv_get(c->b->kv, c->b->name, &keys, &o, c->blocks, sizeof(struct slabkv_block),
			&io, &c->err);
	c->asked = c->b->keys;
	c->bytes = io.bytes;
	c->ios = io.ios;
	for (uint32_t i = 0; rc == SLABKV_OK && i < c->b->keys; i++)
		c->done += c->blocks[i].result == SLABKV_HIT &&
			   check_block(c->b, c->bufs[i].data, first + i);
	return rc;
}

const struct skv_bench_op skv_bench_put = {
	.name = "put", .option = "put", .data = true, .prepare = prepare_put, .call = call_put
};
const struct skv_bench_op skv_bench_get = {
	.name = "get", .option = "get", .data = true, .prepare = prepare_get, .call = call_get
};

int skv_bench_data_prepare(struct skv_bench *b, struct slabkv_error *err)
{
	const struct slabkv_group group = { .size = sizeof(struct slabkv_group), .name = b->name,
					     .storages = &b->storage,
					     .n_storages = 1 };
	const struct slabkv_spec spec = { "kv", b->block_bytes };
	const struct slabkv_instance instance = {
		.size = sizeof(struct slabkv_instance), .id = b->name, .group = b->name,
		.specs = &spec, .spec_size = sizeof(struct slabkv_spec), .n_specs = 1
	};
	int rc;

	assert(b->block_bytes > 0 && b->block_bytes <= 1ull << 32);
	assert(b->api == SKV_BENCH_V1); /* the only one of which bytes are moved */
	rc = slabkv_group_put(b->kv, &group, err);
	return rc == SLABKV_OK ? slabkv_instance_put(b->kv, &instance, err) : rc;
}

void skv_bench_data_remove(struct skv_bench *b)
{
	struct slabkv_error err;

	if (slabkv_instance_delete(b->kv, b->name, &err) != SLABKV_OK ||
	    slabkv_group_delete(b->kv, b->name, &err) != SLABKV_OK)
		fprintf(stderr, "slabkv bench: %s is left at the manager: %s\n", b->name,
			err.message);
}
