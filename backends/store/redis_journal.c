/*
 * redis_journal.c - appends to the journal stream of a partition.
 *
 * A link remembers the chain hash that its next record follows. It asks the primary if it does not
 * know it, and again if another manager has appended. If the primary's chain is not the one that
 * this handle wrote, history was rolled back: nothing is appended.
 *
 * Any thread; one append at a time on a partition.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/mem.h>

#include "redis_store.h"

#define MEMORY_MS 1000u

void redis_chain(char out[SKV_KEY_HEX + 1], const char *before, uint64_t fence, uint64_t seq,
		 const void *bytes, size_t n)
{
	char text[SKV_KEY_HEX + 64 + SKV_KEY_HEX];
	char sum[SKV_KEY_HEX + 1];
	int len;

	skv_key_to_hex(skv_hash128(bytes, n), sum);
	len = snprintf(text, sizeof text, "%s %llu %llu %s", before, (unsigned long long)fence,
		       (unsigned long long)seq, sum);
	assert(len > 0 && (size_t)len < sizeof text);
	skv_key_to_hex(skv_hash128(text, (size_t)len), out);
}

/* Reads the newest record's number and chain. */
static int learn(struct redis_link *l, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	assert(l->use == REDIS_JOURNAL);
	redis_arg_key(&a, l->store, l->tag, "head");
	rc = redis_run(l, RUN_HEAD, &a, 0, &r, err);
	if (rc != SKV_OK)
		return rc == SKV_E_UNKNOWN_OUTCOME
			       ? skv_fail(err, SKV_E_STORE_IO, "store", "no primary answers")
			       : rc;
	l->chain_seq = redis_u64(r, 1);
	snprintf(l->chain, sizeof l->chain, "%s", redis_text(r, 2));
	freeReplyObject(r);
	return SKV_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t info_number(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	unsigned long long v = 0;

	return at && sscanf(at + strlen(name), "%llu", &v) == 1 ? v : 0;
}

/* INFO memory, at most once a second. */
static void look_at_memory(struct redis_link *l)
{
	struct redis_store *s = l->store;
	struct skv_error ignored = { 0 };
	redisReply *r;
	bool look;

	skv_mutex_lock(&s->lock);
	look = !s->memory_us || skv_now_us() - s->memory_us > MEMORY_MS * 1000u;
	skv_mutex_unlock(&s->lock);
	if (!look || redis_link_connect(l, skv_now_us(), &ignored) != SKV_OK)
		return;
	r = redis_command(l->c, "INFO memory");
	if (!r)
		redis_link_drop(l);
	skv_mutex_lock(&s->lock);
	s->memory_us = skv_now_us();
	if (r && r->type == REDIS_REPLY_STRING) {
		s->memory_used = info_number(r->str, "\nused_memory:");
		s->memory_max = info_number(r->str, "\nmaxmemory:");
	}
	skv_mutex_unlock(&s->lock);
	freeReplyObject(r);
}

/* Memory for urgent appends is reserved. */
static bool is_full(struct redis_link *l)
{
	struct redis_store *s = l->store;
	bool full;

	if (!s->reserve_bytes)
		return false;
	look_at_memory(l);
	skv_mutex_lock(&s->lock);
	full = s->memory_max && s->memory_used + s->reserve_bytes > s->memory_max;
	skv_mutex_unlock(&s->lock);
	return full;
}

/* ---- append ---------------------------------------------------------------------------------- */

struct record {
	uint64_t fence, seq;
	const void *bytes;
	size_t n;
	const char *nonce;
	unsigned flags;
};

static int send_record(struct redis_link *l, const struct record *rec, redisReply **r,
		       struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	char op[REDIS_OP + 1], chain[SKV_KEY_HEX + 1];
	int rc;

	assert(skv_mutex_held(&l->lock) && l->use == REDIS_JOURNAL);
	redis_new_op(op);
	redis_chain(chain, l->chain, rec->fence, rec->seq, rec->bytes, rec->n);
	redis_arg_key(&a, l->store, l->tag, "owner");
	redis_arg_key(&a, l->store, l->tag, "head");
	redis_arg_key(&a, l->store, l->tag, "journal");
	redis_arg_u64(&a, rec->fence);
	redis_arg_text(&a, rec->nonce);
	redis_arg_u64(&a, rec->seq);
	redis_arg_text(&a, op);
	redis_arg_text(&a, l->chain);
	redis_arg_text(&a, chain);
	redis_arg_bytes(&a, rec->bytes, rec->n);
	rc = redis_run(l, RUN_APPEND, &a, rec->flags & SKV_APPEND_LATER ? 0 : REDIS_ACKNOWLEDGED, r,
		       err);
	if (rc != SKV_OK || !redis_says(*r, "OK")) {
		l->chain_seq = UINT64_MAX; /* learned anew */
		return rc;
	}
	l->chain_seq = rec->seq;
	memcpy(l->chain, chain, sizeof l->chain);
	l->behind = rec->flags & SKV_APPEND_LATER;
	return SKV_OK;
}

static int append_locked(struct redis_link *l, const struct record *rec, struct skv_error *err)
{
	bool mine = l->chain_seq + 1 == rec->seq;
	redisReply *r = NULL;
	int rc = mine ? SKV_OK : learn(l, err);

	if (rc == SKV_OK)
		rc = send_record(l, rec, &r, err);
	if (rc != SKV_OK)
		return rc;
	if (redis_says(r, "FENCED"))
		rc = redis_fenced(l->tag, err);
	else if (redis_says(r, "CONFLICT"))
		rc = skv_fail(err, SKV_E_CONFLICT, "seq",
			      "the newest record is %s, not the one before %llu", redis_text(r, 1),
			      (unsigned long long)rec->seq);
	else if (redis_says(r, "CHAIN"))
		rc = skv_fail(
			err, mine ? SKV_E_CORRUPT : SKV_E_CONFLICT, "seq",
			"record %llu is not the one that this manager wrote: the store "
			"went back in time",
			(unsigned long long)rec->seq - 1);
	else if (!redis_says(r, "OK"))
		rc = redis_odd(r, err);
	freeReplyObject(r);
	return rc;
}

int redis_append(void *self, uint32_t partition, uint64_t fence, uint64_t seq, const void *bytes,
		 size_t n, unsigned flags, struct skv_error *err)
{
	struct redis_store *s = self;
	char nonce[REDIS_OP + 1];
	struct record rec = { fence, seq, bytes, n, nonce, flags };
	struct redis_link *l;
	int rc = redis_nonce(s, partition, fence, nonce, err);

	if (rc != SKV_OK)
		return rc;
	l = redis_link_take(s, partition, REDIS_JOURNAL);
	if (!l)
		return redis_no_memory(err);
	if (!(flags & SKV_APPEND_URGENT) && is_full(l))
		rc = skv_fail(
			err, SKV_E_STORE_FULL, "store",
			"memory is nearly full and the rest is kept for deletions: "
			"raise maxmemory");
	else
		rc = append_locked(l, &rec, err);
	redis_link_give(l);
	return rc;
}

/* Records appended without waiting must still be the newest, on any connection: WAIT on a
 * connection that has written nothing returns at once. */
static int sync_link(struct redis_link *l, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	assert(skv_mutex_held(&l->lock) && (!l->behind || l->use == REDIS_JOURNAL));
	if (!l->behind)
		return SKV_OK;
	if (l->chain_seq == UINT64_MAX)
		return skv_fail(err, SKV_E_STORE_IO, "store",
				"the outcome of the last append is unknown");
	redis_arg_key(&a, l->store, l->tag, "owner");
	redis_arg_key(&a, l->store, l->tag, "head");
	redis_arg_text(&a, l->chain);
	rc = redis_run(l, RUN_CONFIRM, &a, REDIS_ACKNOWLEDGED, &r, err);
	if (rc == SKV_OK && !redis_says(r, "OK"))
		rc = skv_fail(err, SKV_E_STORE_IO, "store",
			      "record %llu is gone: the store went back in time",
			      (unsigned long long)l->chain_seq);
	freeReplyObject(r);
	l->behind = rc != SKV_OK;
	return rc;
}

int redis_sync(void *self, uint32_t partition, struct skv_error *err)
{
	struct redis_link *l = redis_link_take(self, partition, REDIS_JOURNAL);
	int rc;

	if (!l)
		return redis_no_memory(err);
	rc = sync_link(l, err);
	redis_link_give(l);
	return rc == SKV_E_UNKNOWN_OUTCOME
		       ? skv_fail(err, SKV_E_STORE_IO, "store", "not all replicas have it")
		       : rc;
}

int redis_stats(void *self, uint32_t partition, struct skv_store_stats *out, struct skv_error *err)
{
	struct redis_store *s = self;
	struct redis_link *l = redis_link_take(s, partition, REDIS_BULK);
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	if (!l)
		return redis_no_memory(err);
	redis_arg_key(&a, s, partition, "head");
	rc = redis_run(l, RUN_HEAD, &a, 0, &r, err);
	if (rc == SKV_OK)
		look_at_memory(l);
	redis_link_give(l);
	if (rc != SKV_OK)
		return rc == SKV_E_UNKNOWN_OUTCOME
			       ? skv_fail(err, SKV_E_STORE_IO, "store", "no primary answers")
			       : rc;
	*out = (struct skv_store_stats){ .journal_bytes = redis_u64(r, 3) - redis_u64(r, 5),
					 .last_seq = redis_u64(r, 1),
					 .free_bytes = UINT64_MAX };
	freeReplyObject(r);
	skv_mutex_lock(&s->lock);
	if (s->memory_max)
		out->free_bytes =
			s->memory_max > s->memory_used ? s->memory_max - s->memory_used : 0;
	skv_mutex_unlock(&s->lock);
	return SKV_OK;
}
