/*
 * idle.c - measures how long each instance is unused, across restarts, and drops empty ones after
 * instance_idle_ms.
 *
 * A call uses an instance: its registration (also again), a lookup, a start. Blocks, pins and
 * sessions are no uses, but an instance that has any is not dropped. Only time counts in which a
 * manager owned the partition, so a fleet that was switched off for a month loses no instance; wall
 * clocks do not matter. Document "unused" of the registry has the seconds of each instance that is
 * unused for an hour at least, written once an hour and at a clean end: a kill loses an hour.
 *
 * The ticker looks at the instances in portions (idle_look). Work that blocks on the store is the
 * checkpointer thread's, which takes the administrators' turn only if it is free, so that
 * checkpoints do not wait for a file system that hangs.
 */
#include "idle.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include <skv/bytes.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <journal/registry_write.h>
#include "admin.h"

#define DOCUMENT "unused"
#define VERSION 1u
#define STORE_MS 3600000u   /* between two writes of the document */
#define ROUND_INSTANCES 64u /* dropped in a round */
#define ENTRY_MAX 16u       /* bytes of one in the document: two varints */
#define LATEST_MS (1ull << 52)

uint64_t idle_ms(const struct partition *p, const struct instance *inst)
{
	uint64_t now = skv_now_ms(p->core->clock);

	ASSERT_SHARED(p);
	if (atomic_load_explicit(&inst->used, memory_order_relaxed) || !p->idle.known)
		return 0;
	if (inst->used_at)
		return now > inst->used_at ? now - inst->used_at : 0;
	return inst->unused_before + (now - p->idle.since);
}

bool idle_is_empty(const struct instance *inst)
{
	return !inst->blocks && !inst->open && !inst->pins.n && !inst->used_bytes &&
	       !inst->open_bytes && !inst->clear;
}

static bool is_due(const struct partition *p, const struct instance *inst)
{
	const uint64_t limit = p->core->o.instance_idle_ms;

	return limit && !inst->deleting && !inst->retired && idle_is_empty(inst) &&
	       idle_ms(p, inst) >= limit;
}

void idle_look(struct partition *p, struct portion at, uint64_t now)
{
	ASSERT_EXCLUSIVE(p);
	for (size_t i = at.from; i < at.to; i++) {
		struct instance *inst = p->inst[i];

		if (atomic_exchange_explicit(&inst->used, false, memory_order_relaxed))
			inst->used_at = now ? now : 1;
		else if (is_due(p, inst))
			p->idle.due = true;
	}
}

/* ---- the document ---------------------------------------------------------------------------- */

struct entry {
	uint64_t id, seconds;
};

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* NULL with *n 0: none, or of a newer version. */
static struct entry *read_entries(const struct skv_buf *doc, uint64_t *n)
{
	struct skv_rd in = skv_rd_make(doc->data, doc->len);
	bool known = doc->len && skv_get_u8(&in) == VERSION;
	struct entry *v;

	*n = known ? skv_get_varint(&in) : 0;
	if (in.failed || *n > skv_rd_left(&in) / 2)
		*n = 0;
	v = *n ? skv_calloc(*n, sizeof *v) : NULL;
	for (uint64_t i = 0; v && i < *n; i++)
		v[i] = (struct entry){ skv_get_varint(&in), skv_get_varint(&in) };
	if (!v || in.failed)
		*n = 0;
	if (*n)
		qsort(v, *n, sizeof *v, compare);
	return v;
}

/* Applies a document about instances that were not used since the partition was loaded. An
 * unreadable document counts as none: everything is unused from now on. */
static void take(struct partition *p, const struct entry *v, uint64_t n)
{
	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; n && i < p->n_inst; i++) {
		const struct entry key = { .id = p->inst[i]->id };
		const struct entry *e = bsearch(&key, v, n, sizeof *v, compare);

		if (e && e->seconds <= LATEST_MS / 1000)
			p->inst[i]->unused_before = e->seconds * 1000;
	}
}

static bool learn(struct skv_core *c)
{
	struct skv_error err = { 0 };
	struct skv_buf doc = { 0 };
	uint64_t fence = 0, version = SKV_VERSION_NONE, n;
	struct entry *entries;
	bool known;
	int rc;

	core_lock(c);
	known = !c->partition || c->partition->idle.known;
	if (c->partition)
		fence = c->partition->fence;
	core_unlock(c);
	if (known)
		return fence != 0;
	rc = skv_store_get(c->store, DOCUMENT, &doc, &version, &err);
	entries = read_entries(&doc, &n);
	core_lock(c);
	if ((rc == SKV_OK || rc == SKV_E_NOT_FOUND) && c->partition &&
	    c->partition->fence == fence) {
		struct partition *p = c->partition;

		p->idle.version = rc == SKV_OK ? version : SKV_VERSION_NONE;
		if (rc == SKV_OK)
			take(p, entries, n);
		p->idle.since = p->idle.stored_at = skv_now_ms(c->clock);
		p->idle.known = known = true;
	}
	core_unlock(c);
	skv_free(entries);
	skv_buf_destroy(&doc);
	return known;
}

/* Writes entries of instances unused for an hour or more. A document has room for some 80,000; the
 * others count from zero after a restart. */
static void put_entries(const struct partition *p, struct skv_buf *out)
{
	struct skv_buf entries = { 0 };
	uint64_t n = 0;

	ASSERT_SHARED(p);
	for (size_t i = 0; i < p->n_inst; i++) {
		const struct instance *inst = p->inst[i];
		uint64_t ms = inst->dropped ? 0 : idle_ms(p, inst);

		if (ms < STORE_MS || entries.len + 2 * ENTRY_MAX > SKV_STORE_VALUE_MAX)
			continue;
		skv_put_varint(&entries, inst->id);
		skv_put_varint(&entries, (ms < LATEST_MS ? ms : LATEST_MS) / 1000);
		n++;
	}
	skv_put_u8(out, VERSION);
	skv_put_varint(out, n);
	skv_put_bytes(out, entries.data, entries.len);
	out->failed |= entries.failed;
	skv_buf_destroy(&entries);
}

void idle_store(struct skv_core *c)
{
	struct skv_error err = { 0 };
	struct skv_buf doc = { 0 };
	uint64_t fence = 0, version = 0;
	struct partition *p;
	int rc = SKV_E_NOT_READY;

	core_lock(c);
	p = c->partition;
	if (p && p->idle.known) {
		fence = p->fence;
		version = p->idle.version;
		put_entries(p, &doc);
		p->idle.stored_at = skv_now_ms(c->clock);
	}
	core_unlock(c);
	if (fence)
		rc = registry_put(c, fence, DOCUMENT, version, &doc, &version, &err);
	skv_buf_destroy(&doc);
	core_lock(c);
	p = c->partition;
	if (p && p->fence == fence && rc == SKV_OK)
		p->idle.version = version;
	else if (p && p->fence == fence) /* of unknown version now: read again */
		p->idle.known = p->idle.known && rc == SKV_E_NOMEM;
	core_unlock(c);
	if (fence && rc != SKV_OK)
		skv_log(SKV_LOG_WARN, "core", "how long instances are unused is not stored: %s",
			err.message);
}

/* ---- the end --------------------------------------------------------------------------------- */

struct due {
	char tenant[SKV_MAX_NAME + 1], id[SKV_MAX_NAME + 1];
};

/* How many of them are in `out`, of ROUND_INSTANCES. */
static uint32_t find_due(struct skv_core *c, struct due *out, struct skv_unused *limit)
{
	struct partition *p;
	uint32_t n = 0;

	core_lock(c);
	*limit = (struct skv_unused){ c->o.instance_idle_ms, false };
	p = c->partition;
	for (size_t i = 0; p && p->idle.due && i < p->n_inst && n < ROUND_INSTANCES; i++) {
		const struct instance *inst = p->inst[i];

		if (!is_due(p, inst))
			continue;
		snprintf(out[n].tenant, sizeof out[n].tenant, "%s", inst->spec.tenant);
		snprintf(out[n++].id, sizeof out[n].id, "%s", inst->spec.id);
	}
	if (p)
		p->idle.due = n == ROUND_INSTANCES;
	core_unlock(c);
	return n;
}

static void drop_due(struct skv_core *c)
{
	struct due *due = skv_calloc(ROUND_INSTANCES, sizeof *due);
	struct skv_unused limit = { .ms = 0 };
	uint32_t n = due ? find_due(c, due, &limit) : 0, dropped = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct skv_error err = { 0 };
		int rc = instance_end(c, due[i].tenant, due[i].id, &limit, false, &err);

		if (rc == SKV_OK)
			skv_log(SKV_LOG_INFO, "core",
				"instance %s of tenant %s: dropped, empty, days unused: %llu",
				due[i].id, due[i].tenant,
				(unsigned long long)(limit.ms / 86400000));
		else if (rc != SKV_E_IN_USE && rc != SKV_E_NOT_FOUND)
			break; /* the next round tries again */
		dropped += rc == SKV_OK;
	}
	COUNT(c, idle_instances, dropped);
	skv_free(due);
}

void idle_round(struct skv_core *c)
{
	uint64_t stored_at = 0;
	bool due = false;

	if (core_gate(c, NULL) != SKV_OK || !learn(c))
		return;
	core_lock(c);
	if (c->partition) {
		stored_at = c->partition->idle.stored_at;
		due = c->partition->idle.due;
	}
	core_unlock(c);
	if (skv_now_ms(c->clock) - stored_at >= STORE_MS)
		idle_store(c);
	if (due)
		drop_due(c);
}
