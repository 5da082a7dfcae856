/*
 * redis_load.c - delivers a partition's checkpoint and the records after it. Each load has a connection's link of its own, so
 * that a sink may call the store.
 *
 * What a load reads is kept for a minute at a time: it says so before it begins, and again as it goes on. Checksums of
 * slices and the chain of the records are verified.
 *
 * Any thread.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/mem.h>

#include "redis_store.h"

#define CHUNKS 16u   /* of one answer: 4 MiB */
#define RECORDS 256u /* of one answer, and at most a MiB or one record more */
#define KEEP_MS 10000u

struct load {
	struct redis_link link; /* its own; never in the store's list */
	char nonce[REDIS_OP + 1];
	uint64_t said_us;
	uint64_t checkpoint, slices, base, last;
	char chain[SKV_KEY_HEX + 1], end[SKV_KEY_HEX + 1];
	const struct skv_load_sink *sink;
};

static int run(struct load *d, enum redis_script script, const struct redis_args *a, redisReply **r, struct skv_error *err)
{
	int rc;

	*r = NULL;
	skv_mutex_lock(&d->link.lock);
	rc = redis_run(&d->link, script, a, 0, r, err);
	skv_mutex_unlock(&d->link.lock);
	if (rc == SKV_E_UNKNOWN_OUTCOME)
		return skv_fail(err, SKV_E_STORE_IO, "store", "no primary answers");
	if (rc == SKV_OK && !redis_says(*r, "OK"))
		rc = redis_odd(*r, err);
	return rc;
}

static int corrupt(struct skv_error *err, const char *what, uint64_t number)
{
	return skv_fail(err, SKV_E_CORRUPT, NULL, what, (unsigned long long)number);
}

/* Says that it reads. The first time what it says back is what is delivered. */
static int say(struct load *d, bool first, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	redis_arg_key(&a, d->link.store, d->link.tag, "head");
	redis_arg_key(&a, d->link.store, d->link.tag, "loads");
	redis_arg_text(&a, d->nonce);
	rc = run(d, RUN_LOAD, &a, &r, err);
	d->said_us = skv_now_us();
	if (rc == SKV_OK && first) {
		d->checkpoint = redis_u64(r, 1);
		d->slices = redis_u64(r, 2);
		d->base = redis_u64(r, 3);
		snprintf(d->chain, sizeof d->chain, "%s", redis_text(r, 4));
		d->last = redis_u64(r, 5);
		snprintf(d->end, sizeof d->end, "%s", redis_text(r, 6));
	}
	freeReplyObject(r);
	return rc;
}

static int keep(struct load *d, struct skv_error *err)
{
	return skv_now_us() - d->said_us > KEEP_MS * 1000u ? say(d, false, err) : SKV_OK;
}

/* ---- slices ------------------------------------------------------------------------------------ */

static int slice_facts(struct load *d, uint32_t number, uint64_t *sum, uint64_t *bytes, uint64_t *chunks, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	char name[32];
	redisReply *r;
	int rc;

	snprintf(name, sizeof name, "c%" PRIu64, d->checkpoint);
	redis_arg_key(&a, d->link.store, d->link.tag, name);
	redis_arg_u64(&a, number);
	rc = run(d, RUN_SLICE, &a, &r, err);
	if (rc == SKV_OK && (sscanf(redis_text(r, 1), "%" SCNu64 " %" SCNu64 " %" SCNu64, sum, bytes, chunks) != 3 ||
			     *bytes > SKV_STORE_SLICE_MAX || *chunks > SKV_STORE_SLICE_MAX / REDIS_CHUNK_BYTES))
		rc = corrupt(err, "slice %llu of the checkpoint is missing", number);
	freeReplyObject(r);
	return rc;
}

static int read_chunks(struct load *d, uint32_t number, uint64_t from, uint64_t to, struct skv_buf *b, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	char name[48];
	redisReply *r;
	int rc;

	assert(from < to && to - from <= CHUNKS);
	snprintf(name, sizeof name, "c%" PRIu64 ".%u", d->checkpoint, number);
	redis_arg_key(&a, d->link.store, d->link.tag, name);
	redis_arg_u64(&a, from);
	redis_arg_u64(&a, to);
	rc = run(d, RUN_CHUNKS, &a, &r, err);
	for (size_t i = 1; rc == SKV_OK && i < r->elements; i++) {
		if (r->element[i]->type != REDIS_REPLY_STRING)
			rc = corrupt(err, "a part of slice %llu is missing", number);
		else
			skv_put_bytes(b, r->element[i]->str, r->element[i]->len);
	}
	freeReplyObject(r);
	return rc == SKV_OK && b->failed ? redis_no_memory(err) : rc;
}

static int deliver_slice(struct load *d, uint32_t number, struct skv_buf *b, struct skv_error *err)
{
	uint64_t sum, bytes, chunks;
	int rc = slice_facts(d, number, &sum, &bytes, &chunks, err);

	skv_buf_clear(b);
	for (uint64_t at = 0; rc == SKV_OK && at < chunks; at += CHUNKS)
		rc = read_chunks(d, number, at, at + CHUNKS < chunks ? at + CHUNKS : chunks, b, err);
	if (rc == SKV_OK && (b->len != bytes || skv_checksum(b->data, b->len) != sum))
		rc = corrupt(err, "slice %llu is damaged", number);
	return rc == SKV_OK ? d->sink->slice(d->sink->ctx, number, b->data, b->len) : rc;
}

static int deliver_slices(struct load *d, struct skv_error *err)
{
	struct skv_buf b;
	int rc = SKV_OK;

	skv_buf_init(&b);
	for (uint64_t i = 0; rc == SKV_OK && i < d->slices; i++) {
		rc = keep(d, err);
		if (rc == SKV_OK)
			rc = deliver_slice(d, (uint32_t)i, &b, err);
	}
	skv_buf_destroy(&b);
	return rc;
}

/* ---- records ----------------------------------------------------------------------------------- */

static int deliver_record(struct load *d, uint64_t want, const redisReply *r, size_t at, struct skv_error *err)
{
	const redisReply *bytes = r->element[at + 3];
	char chain[SKV_KEY_HEX + 1];

	if (redis_u64(r, at) != want)
		return corrupt(err, "record %llu of the journal is missing", want);
	if (bytes->type != REDIS_REPLY_STRING)
		return corrupt(err, "record %llu has no bytes", want);
	redis_chain(chain, d->chain, redis_u64(r, at + 1), want, bytes->str, bytes->len);
	if (strcmp(chain, redis_text(r, at + 2)) != 0)
		return corrupt(err, "record %llu is damaged, or follows another history", want);
	memcpy(d->chain, chain, sizeof d->chain);
	assert(strlen(d->chain) == SKV_KEY_HEX);
	return d->sink->record(d->sink->ctx, want, bytes->str, bytes->len);
}

/* A portion of the records from *next on. */
static int deliver_some(struct load *d, uint64_t *next, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	char from[32];
	redisReply *r;
	int rc;

	assert(*next > d->base && *next <= d->last);
	snprintf(from, sizeof from, "%" PRIu64 "-1", *next);
	redis_arg_key(&a, d->link.store, d->link.tag, "journal");
	redis_arg_text(&a, from);
	redis_arg_u64(&a, d->last);
	redis_arg_u64(&a, RECORDS);
	rc = run(d, RUN_RECORDS, &a, &r, err);
	if (rc == SKV_OK && (r->elements < 5 || (r->elements - 1) % 4 != 0))
		rc = corrupt(err, "record %llu of the journal is missing", *next);
	for (size_t i = 1; rc == SKV_OK && i < r->elements; i += 4) {
		rc = deliver_record(d, *next, r, i, err);
		*next += rc == SKV_OK;
	}
	freeReplyObject(r);
	return rc;
}

static int deliver_records(struct load *d, struct skv_error *err)
{
	uint64_t next = d->base + 1;
	int rc = SKV_OK;

	if (d->last < d->base)
		return corrupt(err, "the journal ends before the checkpoint, at record %llu", d->last);
	while (rc == SKV_OK && next <= d->last) {
		rc = keep(d, err);
		if (rc == SKV_OK)
			rc = deliver_some(d, &next, err);
	}
	if (rc == SKV_OK && strcmp(d->chain, d->end) != 0)
		rc = corrupt(err, "the journal's end is not that of record %llu", d->last);
	return rc;
}

static void end(struct load *d)
{
	struct skv_error ignored = { 0 };
	struct redis_args a = { .n = 0 };
	redisReply *r;

	redis_arg_key(&a, d->link.store, d->link.tag, "loads");
	redis_arg_text(&a, d->nonce);
	(void)run(d, RUN_LOADED, &a, &r, &ignored); /* else it is forgotten in a minute */
	freeReplyObject(r);
	if (d->link.c)
		redisFree(d->link.c);
	skv_mutex_destroy(&d->link.lock);
	skv_free(d);
}

int redis_load(void *self, uint32_t partition, uint64_t *base_seq, const struct skv_load_sink *sink, struct skv_error *err)
{
	struct load *d = skv_calloc(1, sizeof *d);
	int rc;

	if (!d)
		return redis_no_memory(err);
	d->link.store = self;
	d->link.tag = partition;
	d->link.use = REDIS_BULK;
	d->sink = sink;
	skv_mutex_init(&d->link.lock);
	redis_new_op(d->nonce);
	rc = say(d, true, err);
	if (rc == SKV_OK) {
		*base_seq = d->base;
		rc = deliver_slices(d, err);
	}
	if (rc == SKV_OK)
		rc = deliver_records(d, err);
	end(d);
	return rc;
}
