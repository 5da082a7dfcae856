/*
 * etcd_keeper.c - housekeeping of a handle that owns partitions, in a thread of its own.
 *
 * It removes records that a checkpoint covers, in steps small enough not to delay an append, and
 * the bytes of checkpoints that were replaced or given up; and it compacts etcd's history. History
 * is kept for COMPACT_MS to twice that: loads read at one revision, and watches that broke go on
 * from one. After a crash the next owner continues all of this.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/log.h>

#include "etcd_store.h"

#define STEP 64u           /* records removed by one transaction */
#define COMPACT_MS 20000u
#define LOOK_MS 5000u      /* between two looks for work that failed */

/* Removes the oldest records, if the checkpoint covers them. *n: how many. */
static int remove_step(struct etcd_store *s, uint32_t partition, uint64_t fence, uint64_t *n,
		       struct skv_error *err)
{
	struct skv_etcd_answer a = { 0 }, removed = { 0 };
	struct etcd_key k[4];
	const struct skv_etcd_bytes from = etcd_key(s, &k[0], "b/%05u/", partition);
	struct skv_etcd_op ops[] = {
		etcd_range(etcd_key(s, &k[1], "c/%05u/head", partition)),
		etcd_range_to(from, etcd_key(s, &k[2], "b/%05u0", partition), STEP) };
	const struct skv_etcd_compare owner =
		etcd_mod_is(etcd_key(s, &k[3], "e/%05u", partition), fence);
	struct skv_etcd_op del = { .kind = SKV_ETCD_DELETE, .key = from };
	struct skv_etcd_txn t = { &owner, 1, &del, 1, NULL, 0 };
	struct skv_etcd_result page;
	struct etcd_key covered;
	struct etcd_head head;
	struct skv_etcd_kv kv;
	int rc;

	assert(fence);
	ops[1].keys_only = true;
	*n = 0;
	rc = etcd_read(s, ops, 2, &a, err);
	if (rc == SKV_OK) {
		kv = etcd_first(&a);
		rc = etcd_get_head(&kv, &head, err);
	}
	if (rc == SKV_OK && skv_etcd_next_result(&a.result, &page)) {
		const struct skv_etcd_bytes end = etcd_key(
			s, &covered, "b/%05u/%016llx", partition, (unsigned long long)head.seq + 1);

		while (skv_etcd_next_kv(&page, &kv) && memcmp(kv.key.p, end.p, end.n) < 0) {
			del.end = kv.key;
			++*n;
		}
		if (*n < STEP)
			del.end = end;
		if (*n > 0)
			rc = etcd_as_owner(s, partition, &t, &removed, err);
	}
	skv_etcd_answer_free(&a);
	skv_etcd_answer_free(&removed);
	return rc;
}

static bool stopping(struct etcd_store *s)
{
	bool yes;

	skv_mutex_lock(&s->lock);
	yes = s->keeper.stop;
	skv_mutex_unlock(&s->lock);
	return yes;
}

static int tidy(struct etcd_store *s, struct etcd_part *part, uint64_t fence)
{
	struct skv_error err = { 0 };
	const uint32_t was = skv_log_partition(part->number + 1);
	uint64_t n;
	int rc;

	etcd_take(s, &part->checkpointing);
	rc = etcd_checkpoints_tidy(s, part, fence, &err);
	etcd_give(s, &part->checkpointing);
	do
		rc = rc == SKV_OK ? remove_step(s, part->number, fence, &n, &err) : rc;
	while (rc == SKV_OK && n > 0 && !stopping(s));
	if (rc != SKV_OK && rc != SKV_E_FENCED && !part->complained)
		skv_log(SKV_LOG_WARN, "store",
			"what a checkpoint has replaced is not removed yet: %s", err.message);
	part->complained = rc != SKV_OK;
	skv_log_partition(was);
	return rc;
}

/* The next partition with something to do. */
static struct etcd_part *next_untidy_locked(struct etcd_store *s, uint64_t *fence)
	SKV_REQUIRES(s->lock)
{
	assert(skv_mutex_held(&s->lock));
	for (struct etcd_part *p = s->parts; p; p = p->next)
		if (p->owned && p->untidy) {
			p->untidy = false;
			*fence = p->owned;
			return p;
		}
	return NULL;
}

static bool owns_any_locked(const struct etcd_store *s) SKV_REQUIRES(s->lock)
{
	assert(skv_mutex_held((struct skv_mutex *)&s->lock));
	for (const struct etcd_part *p = s->parts; p; p = p->next)
		if (p->owned)
			return true;
	return false;
}

/* Forgets history that is older than the time before last. */
static void compact_when_due(struct etcd_store *s)
{
	const uint64_t now = skv_now_us();
	struct skv_error err = { 0 };
	int rc;

	if (s->keeper.compact_us && now - s->keeper.compact_us < COMPACT_MS * 1000u)
		return;
	s->keeper.compact_us = now;
	rc = s->keeper.compact_revision
		     ? skv_etcd_compact(s->client, s->keeper.compact_revision, &err)
		     : SKV_OK;
	if (rc != SKV_OK && rc != SKV_E_CONFLICT) /* another manager may have been faster */
		skv_log(SKV_LOG_WARN, "store", "etcd's history is not compacted: %s", err.message);
	s->keeper.compact_revision = atomic_load(&s->revision);
}

static void *keep(void *ctx)
{
	struct etcd_store *s = ctx;
	struct etcd_part *part;
	uint64_t fence;

	skv_mutex_lock(&s->lock);
	while (!s->keeper.stop) {
		const bool owns = owns_any_locked(s);

		part = next_untidy_locked(s, &fence);
		skv_mutex_unlock(&s->lock);
		if (owns)
			compact_when_due(s);
		if (part && tidy(s, part, fence) != SKV_OK) {
			skv_mutex_lock(&s->lock);
			part->untidy = true;
			part = NULL;
		} else {
			skv_mutex_lock(&s->lock);
		}
		if (!part && !s->keeper.stop)
			skv_cond_wait_ms(&s->keeper.wake, &s->lock, LOOK_MS);
	}
	skv_mutex_unlock(&s->lock);
	return NULL;
}

int etcd_keeper_start(struct etcd_store *s, struct skv_error *err)
{
	int rc = SKV_OK;

	skv_mutex_lock(&s->lock);
	if (!s->keeper.running && pthread_create(&s->keeper.thread, NULL, keep, s) != 0)
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "cannot start a thread");
	s->keeper.running |= rc == SKV_OK;
	skv_mutex_unlock(&s->lock);
	return rc;
}

void etcd_keeper_wake_locked(struct etcd_store *s)
{
	assert(skv_mutex_held(&s->lock));
	skv_cond_signal(&s->keeper.wake);
}

void etcd_keeper_stop(struct etcd_store *s)
{
	bool running;

	skv_mutex_lock(&s->lock);
	running = s->keeper.running;
	s->keeper.stop = true;
	skv_cond_signal(&s->keeper.wake);
	skv_mutex_unlock(&s->lock);
	if (running)
		pthread_join(s->keeper.thread, NULL);
}
