/*
 * redis_owner.c - ownership leases of the store on Redis.
 *
 * A lease has ended if
 *	- it was given up, or
 *	- it is from this boot of this host, and its time has passed on the shared clock, or its
 *	  process is provably dead, or
 *	- it is from another host, and this handle has seen no renewal for its full length, on
 *	  its own clock.
 * The server's clock is never used: the next primary may have another.
 *
 * A fence is taken in the partition's keys first, then copied to the registry, where writes of
 * documents check it (redis_store.h); both are acknowledged before it is returned. A release
 * removes them in the reverse order.
 *
 * Any thread.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/mem.h>

#include "redis_store.h"

int redis_fenced(uint32_t partition, struct skv_error *err)
{
	return skv_fail(err, SKV_E_FENCED, NULL, "partition %u has a newer owner", partition);
}

/* ---- nonces ---------------------------------------------------------------------------------- */

static struct redis_fence *of_partition_locked(struct redis_store *s, uint32_t partition)
{
	struct redis_fence *f;

	assert(skv_mutex_held(&s->lock));
	for (f = s->fences; f && f->partition != partition; f = f->next)
		;
	return f;
}

static void remember(struct redis_store *s, uint32_t partition, uint64_t fence,
		     const char nonce[REDIS_OP + 1], const char *mark)
{
	struct redis_fence *f;

	assert(fence > 0 && strlen(nonce) <= REDIS_OP);
	skv_mutex_lock(&s->lock);
	f = of_partition_locked(s, partition);
	if (!f && (f = skv_calloc(1, sizeof *f)) != NULL) {
		f->partition = partition;
		f->next = s->fences;
		s->fences = f;
	}
	if (f) { /* without memory for it, it is looked up each time */
		f->number = fence;
		memcpy(f->nonce, nonce, sizeof f->nonce);
		snprintf(f->least, sizeof f->least, "%s", mark);
	}
	skv_mutex_unlock(&s->lock);
}

void redis_marks_known(struct redis_store *s, uint32_t partition, uint64_t fence,
		       char least[SKV_STORE_MARK], char mine[SKV_STORE_MARK])
{
	const struct redis_fence *f;

	skv_mutex_lock(&s->lock);
	f = of_partition_locked(s, partition);
	snprintf(least, SKV_STORE_MARK, "%s", f && f->number == fence ? f->least : "");
	snprintf(mine, SKV_STORE_MARK, "%s", f ? f->mine : "");
	skv_mutex_unlock(&s->lock);
}

void redis_mark_learn(struct redis_store *s, const struct skv_fence *fence, const char *mark,
		      bool acknowledged)
{
	struct redis_fence *f;

	skv_mutex_lock(&s->lock);
	f = of_partition_locked(s, fence->partition);
	if (f && f->number == fence->number && skv_mark_older(f->least, mark))
		snprintf(f->least, sizeof f->least, "%s", mark);
	if (f && acknowledged && skv_mark_older(f->mine, mark))
		snprintf(f->mine, sizeof f->mine, "%s", mark);
	skv_mutex_unlock(&s->lock);
}

/* The greatest that this handle has had. A primary that lost acquires would give numbers out again,
 * which the registry, on another shard, may know. */
static uint64_t greatest_fence(struct redis_store *s, uint32_t partition)
{
	const struct redis_fence *f;
	const struct redis_sighting *at;
	uint64_t most = 0;

	skv_mutex_lock(&s->lock);
	for (f = s->fences; f; f = f->next)
		if (f->partition == partition && f->number > most)
			most = f->number;
	for (at = s->sightings; at; at = at->next)
		if (at->partition == partition && at->most > most)
			most = at->most;
	skv_mutex_unlock(&s->lock);
	return most;
}

static bool recall(struct redis_store *s, uint32_t partition, uint64_t fence,
		   char out[REDIS_OP + 1])
{
	const struct redis_fence *f;

	skv_mutex_lock(&s->lock);
	for (f = s->fences; f && (f->partition != partition || f->number != fence); f = f->next)
		;
	if (f)
		memcpy(out, f->nonce, sizeof f->nonce);
	skv_mutex_unlock(&s->lock);
	return f != NULL;
}

/* ---- looking --------------------------------------------------------------------------------- */

struct lease {
	uint64_t fence, beats, ttl_ms, expires_ms;
	char nonce[REDIS_OP + 1];
	char owner[192]; /* "" = nobody */
	char boot_id[37];
};

static int look(struct redis_link *l, struct lease *out, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	redis_arg_key(&a, l->store, l->tag, "owner");
	rc = redis_run(l, RUN_LOOK, &a, 0, &r, err);
	if (rc != SKV_OK)
		return rc == SKV_E_UNKNOWN_OUTCOME
			       ? skv_fail(err, SKV_E_STORE_IO, "store", "no primary answers")
			       : rc;
	*out = (struct lease){ .fence = redis_u64(r, 1), .beats = redis_u64(r, 3),
			       .ttl_ms = redis_u64(r, 5),
			       .expires_ms = redis_u64(r, 7) };
	snprintf(out->nonce, sizeof out->nonce, "%s", redis_text(r, 2));
	snprintf(out->owner, sizeof out->owner, "%s", redis_text(r, 4));
	snprintf(out->boot_id, sizeof out->boot_id, "%s", redis_text(r, 6));
	freeReplyObject(r);
	return SKV_OK;
}

int redis_nonce(struct redis_store *s, uint32_t partition, uint64_t fence, char out[REDIS_OP + 1],
		struct skv_error *err)
{
	struct redis_link *l;
	struct lease now;
	int rc;

	if (recall(s, partition, fence, out))
		return SKV_OK;
	l = redis_link_take(s, partition, REDIS_OWNER);
	if (!l)
		return redis_no_memory(err);
	rc = look(l, &now, err);
	redis_link_give(l);
	if (rc != SKV_OK)
		return rc;
	if (!now.owner[0] || now.fence != fence)
		return redis_fenced(partition, err);
	memcpy(out, now.nonce, sizeof now.nonce);
	remember(s, partition, fence, out, "");
	return SKV_OK;
}

/* ---- expiry
 * -------------------------------------------------------------------------------------- */

/* Has this handle seen it unchanged for its full length? */
static bool waited_out(struct redis_store *s, uint32_t partition, const struct lease *l,
		       uint64_t now)
{
	struct redis_sighting *at;
	bool over = false;

	skv_mutex_lock(&s->lock);
	for (at = s->sightings; at && at->partition != partition; at = at->next)
		;
	if (!at && (at = skv_calloc(1, sizeof *at)) != NULL) {
		at->partition = partition;
		at->next = s->sightings;
		s->sightings = at;
		at->seen_ms = UINT64_MAX;
	}
	if (at && (at->seen_ms == UINT64_MAX || at->fence != l->fence || at->beats != l->beats ||
		   strcmp(at->nonce, l->nonce) != 0)) {
		at->fence = l->fence;
		at->most = l->fence > at->most ? l->fence : at->most;
		at->beats = l->beats;
		memcpy(at->nonce, l->nonce, sizeof at->nonce);
		at->seen_ms = now;
	}
	assert(!at || at->seen_ms != UINT64_MAX);
	if (at)
		over = now - at->seen_ms >= l->ttl_ms;
	skv_mutex_unlock(&s->lock);
	return over;
}

uint64_t redis_renewed(void *self, uint32_t partition)
{
	struct redis_store *s = self;
	const struct redis_sighting *at;
	uint64_t seen;

	skv_mutex_lock(&s->lock);
	for (at = s->sightings; at && at->partition != partition; at = at->next)
		;
	seen = at ? at->seen_ms : 0;
	skv_mutex_unlock(&s->lock);
	return seen;
}

static bool may_take(struct redis_store *s, uint32_t partition, const char *owner,
		     const struct lease *l, uint64_t now)
{
	bool over;

	if (l->owner[0] == '\0' || strcmp(l->owner, owner) == 0)
		return true;
	over = waited_out(s, partition, l, now); /* always, so that it sees each renewal */
	if (strcmp(l->boot_id, s->boot_id) == 0)
		return now >= l->expires_ms || skv_owner_is_dead(l->owner);
	return over;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* From here on only documents written with this fence are accepted. The registry's mark, too. */
static int mirror(struct redis_store *s, uint32_t partition, uint64_t fence, const char *nonce,
		  char mark[SKV_STORE_MARK], struct skv_error *err)
{
	struct redis_link *l = redis_link_take(s, REDIS_REGISTRY, REDIS_OWNER);
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	if (!l)
		return redis_no_memory(err);
	redis_arg_key(&a, s, REDIS_REGISTRY, "meta");
	redis_arg_u64(&a, partition);
	redis_arg_u64(&a, fence);
	redis_arg_text(&a, nonce);
	rc = redis_run(l, RUN_MIRROR, &a, REDIS_ACKNOWLEDGED, &r, err);
	snprintf(mark, SKV_STORE_MARK, "%s", rc == SKV_OK ? redis_text(r, 1) : "");
	freeReplyObject(r);
	redis_link_give(l);
	return rc;
}

static void arg_lease(struct redis_args *a, const struct redis_store *s, uint64_t now,
		      uint32_t ttl_ms)
{
	assert(s->boot_id[0]);
	redis_arg_u64(a, ttl_ms);
	redis_arg_text(a, s->boot_id);
	redis_arg_u64(a, now + ttl_ms);
}

/* SKV_E_CONFLICT: it has changed since it was read. */
static int take(struct redis_link *l, const struct lease *seen, const char *owner, uint32_t ttl_ms,
		uint64_t now, const char nonce[REDIS_OP + 1], uint64_t *fence,
		struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	assert(l->use == REDIS_OWNER && ttl_ms > 0 && strlen(nonce) == REDIS_OP);
	redis_arg_key(&a, l->store, l->tag, "owner");
	redis_arg_key(&a, l->store, l->tag, "head");
	redis_arg_key(&a, l->store, l->tag, "garbage");
	redis_arg_u64(&a, seen->fence);
	redis_arg_text(&a, seen->nonce);
	redis_arg_u64(&a, seen->beats);
	redis_arg_text(&a, owner);
	redis_arg_text(&a, nonce);
	arg_lease(&a, l->store, now, ttl_ms);
	redis_arg_u64(&a, greatest_fence(l->store, l->tag));
	rc = redis_run(l, RUN_ACQUIRE, &a, REDIS_ACKNOWLEDGED, &r, err);
	if (rc != SKV_OK)
		return rc;
	*fence = redis_u64(r, 1);
	if (redis_says(r, "CHANGED"))
		rc = SKV_E_CONFLICT;
	else if (!redis_says(r, "OK"))
		rc = redis_odd(r, err);
	freeReplyObject(r);
	return rc;
}

int redis_acquire(void *self, uint32_t partition, const char *owner, uint32_t ttl_ms,
		  uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err)
{
	struct redis_store *s = self;
	uint64_t now = skv_now_ms(s->clock), taken = 0;
	struct redis_link *l = redis_link_take(s, partition, REDIS_OWNER);
	char nonce[REDIS_OP + 1], mark[SKV_STORE_MARK];
	struct lease seen;
	int rc;

	if (!l)
		return redis_no_memory(err);
	redis_new_op(nonce);
	do {
		rc = look(l, &seen, err);
		if (rc == SKV_OK && !may_take(s, partition, owner, &seen, now)) {
			snprintf(holder, holder_size, "%s", seen.owner);
			rc = skv_fail(err, SKV_E_NOT_OWNER, NULL, "partition %u belongs to %s",
				      partition, seen.owner);
		} else if (rc == SKV_OK && ttl_ms > 0) {
			rc = take(l, &seen, owner, ttl_ms, now, nonce, &taken, err);
		}
	} while (rc == SKV_E_CONFLICT);
	redis_link_give(l);
	if (rc != SKV_OK || ttl_ms == 0)
		return rc;
	assert(taken > seen.fence);
	rc = mirror(s, partition, taken, nonce, mark, err);
	if (rc != SKV_OK)
		return rc; /* the lease runs out */
	remember(s, partition, taken, nonce, mark);
	*fence = taken;
	return SKV_OK;
}

int redis_renew(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
		struct skv_error *err)
{
	struct redis_store *s = self;
	uint64_t now = skv_now_ms(s->clock);
	struct redis_args a = { .n = 0 };
	char nonce[REDIS_OP + 1];
	int rc = redis_nonce(s, partition, fence, nonce, err);
	struct redis_link *l;
	redisReply *r;

	if (rc != SKV_OK)
		return rc;
	l = redis_link_take(s, partition, REDIS_OWNER);
	if (!l)
		return redis_no_memory(err);
	redis_arg_key(&a, s, partition, "owner");
	redis_arg_u64(&a, fence);
	redis_arg_text(&a, nonce);
	arg_lease(&a, s, now, ttl_ms);
	rc = redis_run(l, RUN_RENEW, &a, REDIS_ACKNOWLEDGED, &r, err);
	redis_link_give(l);
	if (rc == SKV_OK && !redis_says(r, "OK"))
		rc = redis_says(r, "FENCED") ? redis_fenced(partition, err) : redis_odd(r, err);
	freeReplyObject(r);
	return rc;
}

int redis_release(void *self, uint32_t partition, uint64_t fence, struct skv_error *err)
{
	struct redis_store *s = self;
	struct redis_args a = { .n = 0 };
	char nonce[REDIS_OP + 1], op[REDIS_OP + 1], ignored[SKV_STORE_MARK];
	int rc = redis_nonce(s, partition, fence, nonce, err);
	struct redis_link *l;
	struct lease now;
	redisReply *r = NULL;

	if (rc != SKV_OK)
		return rc;
	l = redis_link_take(s, partition, REDIS_OWNER);
	if (!l)
		return redis_no_memory(err);
	redis_new_op(op);
	redis_arg_key(&a, s, partition, "owner");
	redis_arg_u64(&a, fence);
	redis_arg_text(&a, nonce);
	redis_arg_text(&a, op);
	rc = look(l, &now, err);
	if (rc == SKV_OK && (now.fence != fence || strcmp(now.nonce, nonce) != 0 || !now.owner[0]))
		rc = redis_fenced(partition, err);
	if (rc == SKV_OK)
		rc = mirror(s, partition, fence + 1, "-", ignored, err);
	if (rc == SKV_OK)
		rc = redis_run(l, RUN_RELEASE, &a, REDIS_ACKNOWLEDGED, &r, err);
	redis_link_give(l);
	if (rc == SKV_OK && !redis_says(r, "OK"))
		rc = redis_says(r, "FENCED") ? redis_fenced(partition, err) : redis_odd(r, err);
	freeReplyObject(r);
	return rc;
}
