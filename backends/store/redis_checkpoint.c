/*
 * redis_checkpoint.c - checkpoints of the store on Redis: slices in chunks of 256 KiB, each written
 * by a script that is answered before the next is sent, so that appends on their own connection get
 * in between.
 *
 * What a commit made obsolete is removed in small portions afterwards, unless a load still reads
 * it.
 *
 * Any thread.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/mem.h>

#include "redis_store.h"

#define TRIM_ROWS 128u

static int told(const redisReply *r, uint32_t partition, uint64_t id, struct skv_error *err)
{
	if (redis_says(r, "OK"))
		return SKV_OK;
	if (redis_says(r, "FENCED"))
		return redis_fenced(partition, err);
	if (redis_says(r, "CONFLICT"))
		return skv_fail(err, SKV_E_CONFLICT, "id",
				"checkpoint %llu is not the one begun last",
				(unsigned long long)id);
	if (redis_says(r, "MISSING"))
		return skv_fail(err, SKV_E_CONFLICT, "slices", "slice %s is missing",
				redis_text(r, 1));
	if (redis_says(r, "RANGE"))
		return skv_fail(err, SKV_E_CONFLICT, "upto_seq",
				"the journal reaches from %s to %s only", redis_text(r, 1),
				redis_text(r, 2));
	return redis_odd(r, err);
}

/* ---- removal of old checkpoints
 * -------------------------------------------------------------------- */

static bool drop_slices(struct redis_link *l, uint64_t id, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	char name[32];
	redisReply *r, *dropped;
	bool more;

	assert(id > 0 && l->use == REDIS_BULK);
	snprintf(name, sizeof name, "c%" PRIu64, id);
	redis_arg_key(&a, l->store, l->tag, name);
	redis_arg_key(&a, l->store, l->tag, "loads");
	redis_arg_key(&a, l->store, l->tag, "garbage");
	redis_arg_u64(&a, id);
	if (redis_run(l, RUN_DOOMED, &a, 0, &r, err) != SKV_OK)
		return false;
	more = redis_says(r, "OK") && r->elements > 1;
	for (size_t i = 1; more && i < r->elements; i++) {
		struct redis_args d = { .n = 0 };
		char slice[64];

		snprintf(slice, sizeof slice, "%.31s.%.20s", name, redis_text(r, i));
		redis_arg_key(&d, l->store, l->tag, name);
		redis_arg_key(&d, l->store, l->tag, slice);
		redis_arg_text(&d, redis_text(r, i));
		more = redis_run(l, RUN_DROP, &d, 0, &dropped, err) == SKV_OK;
		freeReplyObject(dropped);
	}
	freeReplyObject(r);
	return more;
}

/* Not essential: failures are retried after the next commit. */
static void sweep(struct redis_link *l)
{
	struct skv_error ignored = { 0 };
	bool more = true;

	while (more) {
		struct redis_args a = { .n = 0 };
		uint64_t id;
		redisReply *r;

		redis_arg_key(&a, l->store, l->tag, "head");
		redis_arg_key(&a, l->store, l->tag, "garbage");
		redis_arg_key(&a, l->store, l->tag, "loads");
		redis_arg_key(&a, l->store, l->tag, "journal");
		redis_arg_u64(&a, TRIM_ROWS);
		if (redis_run(l, RUN_SWEEP, &a, 0, &r, &ignored) != SKV_OK)
			return;
		id = redis_u64(r, 1);
		more = redis_u64(r, 2) > 0 || id > 0;
		freeReplyObject(r);
		while (id && drop_slices(l, id, &ignored))
			;
		if (ignored.status != SKV_OK)
			return;
	}
}

/* ---- operations ------------------------------------------------------------------------------ */

static void arg_fence(struct redis_args *a, uint64_t fence, const char *nonce)
{
	redis_arg_u64(a, fence);
	redis_arg_text(a, nonce);
}

int redis_checkpoint_begin(void *self, uint32_t partition, uint64_t fence, uint64_t *id,
			   struct skv_error *err)
{
	struct redis_store *s = self;
	struct redis_args a = { .n = 0 };
	char nonce[REDIS_OP + 1], op[REDIS_OP + 1];
	struct redis_link *l;
	redisReply *r;
	int rc = redis_nonce(s, partition, fence, nonce, err);

	if (rc != SKV_OK)
		return rc;
	l = redis_link_take(s, partition, REDIS_BULK);
	if (!l)
		return redis_no_memory(err);
	redis_new_op(op);
	redis_arg_key(&a, s, partition, "owner");
	redis_arg_key(&a, s, partition, "head");
	redis_arg_key(&a, s, partition, "garbage");
	arg_fence(&a, fence, nonce);
	redis_arg_text(&a, op);
	rc = redis_run(l, RUN_BEGIN, &a, 0, &r, err);
	if (rc == SKV_OK)
		rc = told(r, partition, 0, err);
	if (rc == SKV_OK) {
		*id = redis_u64(r, 1);
		sweep(l);
	}
	redis_link_give(l);
	freeReplyObject(r);
	return rc;
}

struct chunk {
	uint64_t fence, id, sum;
	const char *nonce;
	uint32_t number, at, of;
	const uint8_t *bytes;
	size_t n, total;
};

static int send_chunk(struct redis_link *l, const struct chunk *c, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	char slices[32], slice[48];
	redisReply *r;
	int rc;

	assert(c->at < c->of && c->n <= REDIS_CHUNK_BYTES);
	snprintf(slices, sizeof slices, "c%" PRIu64, c->id);
	snprintf(slice, sizeof slice, "c%" PRIu64 ".%u", c->id, c->number);
	redis_arg_key(&a, l->store, l->tag, "owner");
	redis_arg_key(&a, l->store, l->tag, "head");
	redis_arg_key(&a, l->store, l->tag, slices);
	redis_arg_key(&a, l->store, l->tag, slice);
	arg_fence(&a, c->fence, c->nonce);
	redis_arg_u64(&a, c->id);
	redis_arg_u64(&a, c->number);
	redis_arg_u64(&a, c->at);
	redis_arg_u64(&a, c->of);
	redis_arg_u64(&a, c->sum);
	redis_arg_u64(&a, c->total);
	redis_arg_bytes(&a, c->bytes, c->n);
	rc = redis_run(l, RUN_CHUNK, &a, 0, &r, err);
	if (rc == SKV_OK)
		rc = told(r, l->tag, c->id, err);
	freeReplyObject(r);
	return rc;
}

int redis_checkpoint_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			   uint32_t number, const void *bytes, size_t n, struct skv_error *err)
{
	struct redis_store *s = self;
	char nonce[REDIS_OP + 1];
	struct chunk c = { .fence = fence, .id = id, .nonce = nonce, .number = number, .total = n };
	int rc = redis_nonce(s, partition, fence, nonce, err);
	struct redis_link *l;

	if (rc != SKV_OK)
		return rc;
	l = redis_link_take(s, partition, REDIS_BULK);
	if (!l)
		return redis_no_memory(err);
	c.sum = skv_checksum(bytes, n);
	c.of = (uint32_t)((n + REDIS_CHUNK_BYTES - 1) / REDIS_CHUNK_BYTES);
	c.of += c.of == 0; /* an empty slice still has one chunk */
	for (; rc == SKV_OK && c.at < c.of; c.at++) {
		size_t off = c.at * REDIS_CHUNK_BYTES;

		assert(off <= n);
		c.bytes = (const uint8_t *)bytes + off;
		c.n = n - off < REDIS_CHUNK_BYTES ? n - off : REDIS_CHUNK_BYTES;
		rc = send_chunk(l, &c, err);
	}
	redis_link_give(l);
	return rc;
}

/* `chain`: of a history that begins here; NULL: the checkpoint takes the place of records. */
static int commit(struct redis_store *s, uint32_t partition, uint64_t fence, uint64_t id,
		  uint32_t slices, uint64_t upto_seq, const char *chain, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	char nonce[REDIS_OP + 1], op[REDIS_OP + 1], name[32];
	struct redis_link *l;
	redisReply *r;
	int rc = redis_nonce(s, partition, fence, nonce, err);

	if (rc != SKV_OK)
		return rc;
	l = redis_link_take(s, partition, REDIS_BULK);
	if (!l)
		return redis_no_memory(err);
	redis_new_op(op);
	snprintf(name, sizeof name, "c%" PRIu64, id);
	redis_arg_key(&a, s, partition, "owner");
	redis_arg_key(&a, s, partition, "head");
	redis_arg_key(&a, s, partition, name);
	redis_arg_key(&a, s, partition, "journal");
	redis_arg_key(&a, s, partition, "garbage");
	arg_fence(&a, fence, nonce);
	redis_arg_u64(&a, id);
	redis_arg_u64(&a, slices);
	redis_arg_u64(&a, upto_seq);
	redis_arg_text(&a, op);
	if (chain)
		redis_arg_text(&a, chain);
	rc = redis_run(l, chain ? RUN_RESTORE : RUN_COMMIT, &a, REDIS_ACKNOWLEDGED, &r, err);
	if (rc == SKV_OK)
		rc = told(r, partition, id, err);
	freeReplyObject(r);
	if (rc == SKV_OK)
		sweep(l);
	redis_link_give(l);
	return rc;
}

int redis_checkpoint_commit(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			    uint32_t slices, uint64_t upto_seq, struct skv_error *err)
{
	return commit(self, partition, fence, id, slices, upto_seq, NULL, err);
}

int redis_restore(void *self, uint32_t partition, uint64_t fence, uint64_t id, uint32_t slices,
		  uint64_t upto_seq, struct skv_error *err)
{
	char chain[SKV_KEY_HEX + 1], op[REDIS_OP + 1];

	redis_new_op(op); /* nobody has had this one: all that others know is another history */
	redis_chain(chain, "", fence, upto_seq, op, sizeof op);
	return commit(self, partition, fence, id, slices, upto_seq, chain, err);
}

int redis_checkpoint_abort(void *self, uint32_t partition, uint64_t id)
{
	struct redis_store *s = self;
	struct redis_link *l = redis_link_take(s, partition, REDIS_BULK);
	struct skv_error ignored = { 0 };
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	if (!l)
		return SKV_E_NOMEM;
	redis_arg_key(&a, s, partition, "head");
	redis_arg_key(&a, s, partition, "garbage");
	redis_arg_u64(&a, id);
	rc = redis_run(l, RUN_ABORT, &a, 0, &r, &ignored);
	freeReplyObject(r);
	if (rc == SKV_OK)
		sweep(l);
	redis_link_give(l);
	return rc;
}
