/*
 * bench_data.c - `slabkv bench --data`: put and get of real bytes on an existing storage.
 *
 * A thread keeps some calls under way, by an asynchronous queue of its own: the bytes of one move
 * while the next one's start or lookup, checksums and sync take place.
 *
 * Every page of a block begins with a stamp that tells its block and its place, and the library
 * compares the checksum of what it reads: every counted block has been verified in both ways.
 * Buffers are aligned to pages, so that an engine may bypass the page cache.
 */
#include "bench.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
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

/* A call of a thread: a batch of its queue. */
struct move {
	uint64_t first; /* block */
	uint64_t begin_us;
	bool busy;
	struct slabkv_io io;
	void **data;      /* [keys] */
	uint8_t *results; /* [keys] */
};

/* The calls of a thread. The next is made while others are under way. */
struct skv_bench_moves {
	struct slabkv_pool *pool;
	uint8_t *buffers; /* of it: n * keys blocks */
	struct slabkv_async *queue;
	uint64_t *lengths; /* [keys] */
	uint32_t n, n_busy;
	struct move *v; /* [n] */
};

/* Makes a buffer for all blocks of a thread. "usrbio" needs no copy for named shared memory. */
static bool make_buffers(const struct skv_bench *b, struct skv_bench_moves *m)
{
	static atomic_uint serial;
	struct slabkv_pool_options o;
	struct slabkv_buf buf;
	char name[32];

	slabkv_pool_options_init(&o, sizeof o);
	o.bytes = o.buffer_bytes = stride(b) * b->keys * m->n;
	if (strcmp(slabkv_engine(b->kv, NULL), "usrbio") == 0) {
		snprintf(name, sizeof name, "bench%u", atomic_fetch_add(&serial, 1));
		o.kind = SLABKV_MEMORY_SHARED;
		o.shm_name = name;
	}
	if (slabkv_pool_create(&o, &m->pool, NULL) != SLABKV_OK ||
	    slabkv_pool_get(m->pool, 0, &buf) != SLABKV_OK)
		return false;
	assert(buf.size == o.buffer_bytes);
	m->buffers = buf.data;
	memset(m->buffers, 0x5a, o.bytes);
	/* Faster with "uring" and "usrbio"; where it cannot be, everything works all the same. */
	return slabkv_pool_attach(b->kv, m->pool, NULL) == SLABKV_OK;
}

static bool make_moves(const struct skv_bench *b, struct skv_bench_moves *m)
{
	struct slabkv_async_options o;

	assert(b->in_flight > 0 && b->keys > 0);
	slabkv_async_options_init(&o, sizeof o);
	o.threads = o.max_in_flight = m->n = b->in_flight;
	m->v = skv_calloc(m->n, sizeof *m->v);
	m->lengths = skv_calloc(b->keys, sizeof *m->lengths);
	if (!m->v || !m->lengths || !make_buffers(b, m) ||
	    slabkv_async_open(b->kv, &o, &m->queue, NULL) != SLABKV_OK)
		return false;
	for (uint32_t i = 0; i < b->keys; i++)
		m->lengths[i] = b->block_bytes;
	for (uint32_t k = 0; k < m->n; k++) {
		struct move *v = &m->v[k];

		v->data = skv_calloc(b->keys, sizeof *v->data);
		v->results = skv_calloc(b->keys, sizeof *v->results);
		if (!v->data || !v->results)
			return false;
		for (uint32_t i = 0; i < b->keys; i++)
			v->data[i] = m->buffers + ((uint64_t)k * b->keys + i) * stride(b);
	}
	return true;
}

bool skv_bench_data_open(struct skv_bench_call *c)
{
	c->moves = skv_calloc(1, sizeof *c->moves);
	if (c->moves && make_moves(c->b, c->moves))
		return true;
	skv_bench_data_close(c);
	return false;
}

void skv_bench_data_close(struct skv_bench_call *c)
{
	struct skv_bench_moves *m = c->moves;

	if (!m)
		return;
	slabkv_async_close(m->queue);
	if (m->pool) {
		slabkv_pool_detach(c->b->kv, m->pool);
		if (m->buffers)
			slabkv_pool_put(m->pool, m->buffers);
		slabkv_pool_destroy(m->pool);
	}
	for (uint32_t k = 0; m->v && k < m->n; k++) {
		skv_free(m->v[k].data);
		skv_free(m->v[k].results);
	}
	skv_free(m->v);
	skv_free(m->lengths);
	skv_free(m);
	c->moves = NULL;
}

/* Waits for one of the thread's calls and counts it. */
static int complete(struct skv_bench_call *c)
{
	struct skv_bench_moves *m = c->moves;
	struct pollfd p = { .fd = slabkv_async_fd(m->queue), .events = POLLIN };
	struct slabkv_completion done;
	struct move *v;

	assert(m->n_busy > 0);
	while (slabkv_drain(m->queue, &done, sizeof done, 1) == 0)
		poll(&p, 1, -1);
	assert(done.tag < m->n);
	v = &m->v[done.tag];
	assert(v->busy);
	v->busy = false;
	m->n_busy--;
	c->begin_us = v->begin_us;
	c->asked = c->b->keys;
	c->bytes = v->io.bytes;
	c->ios = v->io.ios;
	for (uint32_t i = 0; i < c->b->keys; i++)
		c->done += v->results[i] == SLABKV_WRITTEN ||
			   (v->results[i] == SLABKV_HIT &&
			    check_block(c->b, v->data[i], v->first + i));
	if (done.result == SLABKV_ERROR) {
		c->err.code = done.why;
		snprintf(c->err.message, sizeof c->err.message, "%s: %s", c->op->name,
			 slabkv_text(done.why));
	}
	return done.result == SLABKV_ERROR ? done.why : SLABKV_OK;
}

/* Begins a call on the blocks from `first` on; when as many as may be are under way then, waits for
 * one. */
static int submit(struct skv_bench_call *c, enum slabkv_op_kind kind, uint64_t first)
{
	const struct slabkv_keys keys = slabkv_keys_ints(c->ids, c->b->keys);
	struct skv_bench_moves *m = c->moves;
	struct move *v = m->v;
	int rc;

	assert(m->n_busy < m->n);
	while (v->busy)
		v++;
	assert(v < m->v + m->n);
	for (uint32_t i = 0; i < c->b->keys; i++) {
		c->ids[i] = first + i;
		if (kind == SLABKV_OP_PUT)
			fill_block(c->b, v->data[i], first + i);
		else
			memset(v->data[i], 0, sizeof(uint64_t)); /* earlier bytes are no hit */
	}
	v->first = first;
	v->begin_us = c->begin_us;
	v->io.size = sizeof v->io;
	rc = slabkv_batch_submit(m->queue,
				 &(struct slabkv_batch){ .size = sizeof(struct slabkv_batch),
							 .kind = kind,
							 .n_bufs = 1,
							 .instance = c->b->name,
							 .keys = &keys,
							 .data = v->data,
							 .lengths = m->lengths,
							 .results = v->results,
							 .tag = (uint64_t)(v - m->v),
							 .io = &v->io },
				 NULL, &c->err);
	if (rc != SLABKV_OK)
		return rc;
	v->busy = true;
	return ++m->n_busy < m->n ? SLABKV_OK : complete(c);
}

static bool rest(struct skv_bench_call *c, int *status)
{
	bool any = c->moves->n_busy > 0;

	if (any)
		*status = complete(c);
	return any;
}

static int prepare_put(struct skv_bench *b, struct slabkv_error *err)
{
	(void)err;
	b->put_from = atomic_load(&b->next_id);
	return SLABKV_OK;
}

static int call_put(struct skv_bench_call *c)
{
	uint64_t bytes = c->b->keys * c->b->block_bytes;

	if (atomic_fetch_add(&c->b->made, bytes) + bytes >= c->b->data_bytes)
		atomic_store(&c->b->stop, true);
	return submit(c, SLABKV_OP_PUT, atomic_fetch_add(&c->b->next_id, c->b->keys));
}

/* Prepares to read the ranges that put has written. */
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
	uint64_t ranges = (c->b->put_to - c->b->put_from) / c->b->keys;
	uint64_t first = c->b->put_from + c->turn * 7919 % ranges * c->b->keys;

	/* put made whole calls of as many keys */
	assert((c->b->put_to - c->b->put_from) % c->b->keys == 0);
	assert(first >= c->b->put_from && first + c->b->keys <= c->b->put_to);
	return submit(c, SLABKV_OP_GET, first);
}

const struct skv_bench_op skv_bench_put = { .name = "put",
					    .option = "put",
					    .data = true,
					    .prepare = prepare_put,
					    .call = call_put,
					    .rest = rest };
const struct skv_bench_op skv_bench_get = { .name = "get",
					    .option = "get",
					    .data = true,
					    .prepare = prepare_get,
					    .call = call_get,
					    .rest = rest };

int skv_bench_data_prepare(struct skv_bench *b, struct slabkv_error *err)
{
	const struct slabkv_spec spec = { "kv", b->block_bytes };
	const struct slabkv_instance instance = {
		.size = sizeof(struct slabkv_instance), .id = b->name, .group = b->name,
		.specs = &spec, .spec_size = sizeof(struct slabkv_spec), .n_specs = 1
	};
	int rc;

	assert(b->block_bytes > 0 && b->block_bytes <= 1ull << 32);
	rc = skv_cli_object_set(b->kv, SLABKV_GROUP, b->name,
				json_pack("{s:[s]}", "storages", b->storage), NULL, err);
	return rc == SLABKV_OK ? slabkv_instance_put(b->kv, &instance, err) : rc;
}

void skv_bench_data_remove(struct skv_bench *b)
{
	struct slabkv_error err;

	if (slabkv_object_delete(b->kv, SLABKV_INSTANCE, b->name, &err) != SLABKV_OK ||
	    slabkv_object_delete(b->kv, SLABKV_GROUP, b->name, &err) != SLABKV_OK)
		fprintf(stderr, "slabkv bench: %s is left at the manager: %s\n", b->name,
			err.message);
}
