/*
 * redis_load.c - delivers a partition's checkpoint and the records after it. Each load has a link
 * of its own, so that a sink may call the store; a follower keeps one.
 *
 * A load protects what it reads for a minute at a time: it registers before it begins, and renews
 * that as it goes on. Verifies checksums of slices and the chain of records.
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

#define CHUNKS 16u   /* per answer: 4 MiB */
#define RECORDS 256u /* per answer, and at most a MiB or one record more */
#define KEEP_MS 10000u

struct load {
	struct redis_link *link; /* locked. Of a load: its own, never in the store's list, so that a
				    sink may call the store */
	char nonce[REDIS_OP + 1];
	uint64_t said_us;
	uint64_t checkpoint, slices, base, last;
	char chain[SKV_KEY_HEX + 1], end[SKV_KEY_HEX + 1];
	const struct skv_load_sink *sink;
	bool refused;       /* the sink has ended it */
	bool next_is_first; /* not even the first record follows what a follower has */
};

static int run(struct load *d, enum redis_script script, const struct redis_args *a, redisReply **r,
	       struct skv_error *err)
{
	int rc;

	*r = NULL;
	rc = redis_run(d->link, script, a, 0, r, err);
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

/* Registers the load. The first answer names what is to be delivered. */
static int say(struct load *d, bool first, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	redis_arg_key(&a, d->link->store, d->link->tag, "head");
	redis_arg_key(&a, d->link->store, d->link->tag, "loads");
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

/* ---- slices ---------------------------------------------------------------------------------- */

static int slice_facts(struct load *d, uint32_t number, uint64_t *sum, uint64_t *bytes,
		       uint64_t *chunks, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	char name[32];
	redisReply *r;
	int rc;

	snprintf(name, sizeof name, "c%" PRIu64, d->checkpoint);
	redis_arg_key(&a, d->link->store, d->link->tag, name);
	redis_arg_u64(&a, number);
	rc = run(d, RUN_SLICE, &a, &r, err);
	if (rc == SKV_OK &&
	    (sscanf(redis_text(r, 1), "%" SCNu64 " %" SCNu64 " %" SCNu64, sum, bytes, chunks) !=
		     3 ||
	     *bytes > SKV_STORE_SLICE_MAX || *chunks > SKV_STORE_SLICE_MAX / REDIS_CHUNK_BYTES))
		rc = corrupt(err, "slice %llu of the checkpoint is missing", number);
	freeReplyObject(r);
	return rc;
}

static int read_chunks(struct load *d, uint32_t number, uint64_t from, uint64_t to,
		       struct skv_buf *b, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	char name[48];
	redisReply *r;
	int rc;

	assert(from < to && to - from <= CHUNKS);
	snprintf(name, sizeof name, "c%" PRIu64 ".%u", d->checkpoint, number);
	redis_arg_key(&a, d->link->store, d->link->tag, name);
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
		rc = read_chunks(d, number, at, at + CHUNKS < chunks ? at + CHUNKS : chunks, b,
				 err);
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

/* ---- records --------------------------------------------------------------------------------- */

static int deliver_record(struct load *d, uint64_t want, const redisReply *r, size_t at,
			  struct skv_error *err)
{
	const redisReply *bytes = r->element[at + 3];
	char chain[SKV_KEY_HEX + 1];
	int rc;

	if (redis_u64(r, at) != want)
		return corrupt(err, "record %llu of the journal is missing", want);
	if (bytes->type != REDIS_REPLY_STRING)
		return corrupt(err, "record %llu has no bytes", want);
	redis_chain(chain, d->chain, redis_u64(r, at + 1), want, bytes->str, bytes->len);
	if (strcmp(chain, redis_text(r, at + 2)) != 0)
		return corrupt(err, "record %llu is damaged, or follows another history", want);
	assert(strlen(chain) == SKV_KEY_HEX);
	rc = d->sink->record(d->sink->ctx, want, bytes->str, bytes->len);
	d->refused = rc != SKV_OK;
	if (rc == SKV_OK)
		memcpy(d->chain, chain, sizeof d->chain);
	return rc;
}

/* Delivers a portion of the records from *next on. */
static int deliver_some(struct load *d, uint64_t *next, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	char from[32];
	redisReply *r;
	int rc;

	assert(*next > d->base && *next <= d->last);
	snprintf(from, sizeof from, "%" PRIu64 "-1", *next);
	redis_arg_key(&a, d->link->store, d->link->tag, "journal");
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
		return corrupt(err, "the journal ends before the checkpoint, at record %llu",
			       d->last);
	while (rc == SKV_OK && next <= d->last) {
		rc = keep(d, err);
		if (rc == SKV_OK)
			rc = deliver_some(d, &next, err);
	}
	if (rc == SKV_OK && strcmp(d->chain, d->end) != 0)
		rc = corrupt(err, "the journal's end is not that of record %llu", d->last);
	return rc;
}

static int begin(struct load *d, struct redis_store *s, uint32_t partition,
		 const struct skv_load_sink *sink, struct skv_error *err)
{
	*d = (struct load){ .link = skv_calloc(1, sizeof *d->link), .sink = sink };
	if (!d->link)
		return redis_no_memory(err);
	d->link->store = s;
	d->link->tag = partition;
	d->link->use = REDIS_LOAD;
	skv_mutex_init(&d->link->lock);
	skv_mutex_lock(&d->link->lock);
	redis_new_op(d->nonce);
	return SKV_OK;
}

static void end(struct load *d)
{
	struct skv_error ignored = { 0 };
	struct redis_args a = { .n = 0 };
	redisReply *r;

	redis_arg_key(&a, d->link->store, d->link->tag, "loads");
	redis_arg_text(&a, d->nonce);
	(void)run(d, RUN_LOADED, &a, &r, &ignored); /* else it expires in a minute */
	freeReplyObject(r);
	skv_mutex_unlock(&d->link->lock);
	redis_link_destroy(d->link);
}

static int deliver_all(struct load *d, uint64_t *base_seq, struct skv_error *err)
{
	int rc = say(d, true, err);

	if (rc == SKV_OK) {
		*base_seq = d->base;
		rc = deliver_slices(d, err);
	}
	return rc == SKV_OK ? deliver_records(d, err) : rc;
}

int redis_load(void *self, uint32_t partition, uint64_t *base_seq, const struct skv_load_sink *sink,
	       struct skv_error *err)
{
	struct load d;
	int rc = begin(&d, self, partition, sink, err);

	if (rc != SKV_OK)
		return rc;
	rc = deliver_all(&d, base_seq, err);
	end(&d);
	return rc;
}

/* ---- following ------------------------------------------------------------------------------- */

static int follow_from_nowhere(struct redis_store *s, uint32_t partition, struct skv_position *at,
			       const struct skv_load_sink *sink, struct skv_error *err)
{
	struct load d;
	uint64_t base = 0;
	int rc = begin(&d, s, partition, sink, err);

	if (rc != SKV_OK)
		return rc;
	rc = deliver_all(&d, &base, err);
	if (rc == SKV_OK) {
		*at = (struct skv_position){ .known = true, .seq = d.last, .newest = d.last,
					     .base = base };
		memcpy(at->mark, d.chain, sizeof d.chain);
	}
	end(&d);
	return rc;
}

static int gone(const struct skv_position *at, const char *why, struct skv_error *err)
{
	return skv_fail(err, SKV_E_CONFLICT, "seq", "what follows record %llu is gone: %s",
			(unsigned long long)at->seq, why);
}

/* What this primary has. What was read from another one that had more is not its history. */
static int look_at_head(struct load *d, struct skv_position *at, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	redis_arg_key(&a, d->link->store, d->link->tag, "head");
	rc = run(d, RUN_HEAD, &a, &r, err);
	if (rc == SKV_OK) {
		d->last = redis_u64(r, 1);
		d->base = redis_u64(r, 4);
		if (d->base > at->seq)
			rc = gone(at, "a checkpoint has replaced it", err);
		else if (d->last < at->seq ||
			 (d->last == at->seq && strcmp(redis_text(r, 2), at->mark) != 0))
			rc = gone(at, "the primary has another history", err);
	}
	freeReplyObject(r);
	return rc;
}

/* A record that does not follow: is it damaged, or has the store left what this
 * follower knows since it looked? */
static int look_again(struct load *d, struct skv_position *at, struct skv_error *err)
{
	struct skv_error ignored = { 0 };
	int rc = look_at_head(d, at, &ignored);

	if (rc == SKV_E_CONFLICT || d->next_is_first)
		return gone(at, "the store went on from an older state, or it was cut off", err);
	return err->status;
}

static int follow(struct load *d, struct skv_position *at, struct skv_error *err)
{
	uint64_t next = at->seq + 1;
	int rc = look_at_head(d, at, err);

	if (rc != SKV_OK)
		return rc;
	at->newest = d->last;
	at->base = d->base;
	if (next > d->last)
		return SKV_OK;
	d->base = at->seq;
	memcpy(d->chain, at->mark, sizeof d->chain);
	rc = deliver_some(d, &next, err);
	d->next_is_first = next == at->seq + 1;
	at->seq = next - 1;
	memcpy(at->mark, d->chain, sizeof d->chain);
	assert(at->seq <= at->newest);
	return rc == SKV_E_CORRUPT && !d->refused ? look_again(d, at, err) : rc;
}

int redis_follow(void *self, uint32_t partition, struct skv_position *at,
		 const struct skv_load_sink *sink, struct skv_error *err)
{
	struct load d = { .sink = sink };
	int rc;

	if (!at->known)
		return follow_from_nowhere(self, partition, at, sink, err);
	d.link = redis_link_take(self, partition, REDIS_FOLLOW);
	if (!d.link)
		return redis_no_memory(err);
	rc = follow(&d, at, err);
	redis_link_give(d.link);
	return rc;
}
