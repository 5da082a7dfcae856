/*
 * health.c - decides whether blocks may be written to a storage, and read from it, by three kinds
 * of calls into its file system, each for itself.
 *
 * On 3FS a file's bytes lie on other hosts than its metadata, and those of each chunk on hosts of
 * their own. So one lost node blocks some writes for ever, and some reads until another replica is
 * asked, while all others continue. Writes stop with the first call of any kind that fails or
 * hangs, for a slot lies on many nodes. Reads go on as long as some slab file can be read, and the
 * claim of the directory is renewed.
 *
 * The storage's threads note their calls here. What changes is logged and counted, by the storage's
 * thread at the end of its step, and by the ticker. A hang is no event: each query compares times.
 * d->lock guards `problem` and the state of the log.
 */
#include <storage/device.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/log.h>

#include <lock/core.h>
#include <model/device.h>
#include <storage/claim.h>
#include "health.h"

#define HANG_MS 5000u

static bool is_late(const struct device *d, enum call_kind kind)
{
	uint64_t since = atomic_load_explicit(&d->call[kind].since, memory_order_relaxed);

	return since != 0 && skv_now_ms(d->core->clock) - since >= HANG_MS;
}

static bool has_failed(const struct device *d, enum call_kind kind)
{
	return atomic_load_explicit(&d->call[kind].failed, memory_order_relaxed);
}

/* The first reason, and the kind of call that it is about. */
static enum storage_fault find_fault(const struct device *d, bool reads, enum call_kind *kind)
{
	*kind = CALL_ROOT;
	if (has_failed(d, CALL_ROOT) &&
	    !(reads && atomic_load_explicit(&d->unheard, memory_order_relaxed)))
		return STORAGE_FAILED;
	*kind = CALL_READ;
	if (has_failed(d, CALL_READ))
		return STORAGE_FAILED;
	if (is_late(d, CALL_READ))
		return STORAGE_HANGS;
	*kind = CALL_ROOT;
	if (reads) /* without masters: leases that another copy may know nothing of */
		return claim_overdue(d) && !d->n_masters ? STORAGE_OVERDUE : STORAGE_WELL;
	*kind = CALL_WRITE;
	if (has_failed(d, CALL_WRITE))
		return STORAGE_FAILED;
	if (is_late(d, CALL_WRITE))
		return STORAGE_HANGS;
	*kind = CALL_ROOT;
	if (is_late(d, CALL_ROOT))
		return STORAGE_HANGS;
	return claim_overdue(d) ? STORAGE_OVERDUE : STORAGE_WELL;
}

enum storage_fault device_fault(const struct device *d, bool reads)
{
	enum call_kind kind;

	return find_fault(d, reads, &kind);
}

bool device_healthy(const struct device *d) { return device_fault(d, false) == STORAGE_WELL; }
bool device_readable(const struct device *d) { return device_fault(d, true) == STORAGE_WELL; }

bool device_hangs(const struct device *d)
{
	return is_late(d, CALL_ROOT) || is_late(d, CALL_WRITE) || is_late(d, CALL_READ);
}

void health_begin(struct device *d, enum call_kind kind)
{
	uint64_t none = 0, now = skv_now_ms(d->core->clock);

	assert(kind < CALL_KINDS);
	atomic_compare_exchange_strong(&d->call[kind].since, &none, now ? now : 1);
}

void health_end(struct device *d, enum call_kind kind, bool answers, bool waits)
{
	struct call_state *c = &d->call[kind];

	assert(kind < CALL_KINDS);
	if (!waits)
		atomic_store(&c->since, 0);
	else if (answers)
		atomic_store(&c->since, skv_now_ms(d->core->clock));
}

void health_note(struct device *d, enum call_kind kind, int rc, const char *problem)
{
	struct call_state *c = &d->call[kind];

	assert(kind < CALL_KINDS);
	if (rc == SKV_OK || !problem)
		problem = "";
	else if (!problem[0])
		problem = skv_status_text(rc);
	skv_mutex_lock(&d->lock);
	snprintf(c->problem, sizeof c->problem, "%s", problem);
	skv_mutex_unlock(&d->lock);
	atomic_store(&c->failed, rc != SKV_OK);
}

/* ---- logging and counting -------------------------------------------------------------------- */

static void explain(struct device *d, enum storage_fault fault, enum call_kind kind,
		    char out[SKV_MESSAGE_MAX]) SKV_REQUIRES(d->lock)
{
	static const char *const hangs[CALL_KINDS] = {
		[CALL_ROOT] = "its file system does not answer",
		[CALL_WRITE] = "a write does not return",
		[CALL_READ] = "reads of its slab files do not return",
	};

	assert(skv_mutex_held(&d->lock));
	snprintf(out, SKV_MESSAGE_MAX, "%s",
		 fault == STORAGE_FAILED  ? d->call[kind].problem
		 : fault == STORAGE_HANGS ? hangs[kind]
		 : fault == STORAGE_WELL  ? ""
					  : "the last check of its owner files is too old");
}

static void count_change(struct device *d, enum storage_fault writes, bool reads)
{
	if (writes != d->shown_fault) {
		COUNT(d->core, storage_failed, writes == STORAGE_FAILED);
		COUNT(d->core, storage_hung, writes == STORAGE_HANGS || writes == STORAGE_OVERDUE);
	}
	COUNT(d->core, storage_unread,
	      !reads && (d->shown_reads || d->shown_fault == STORAGE_UNKNOWN));
}

static bool watch_locked(struct device *d, struct health_news *n) SKV_REQUIRES(d->lock)
{
	enum call_kind kind, read_kind;
	const enum storage_fault writes = find_fault(d, false, &kind);
	const enum storage_fault read_fault = find_fault(d, true, &read_kind);
	const bool reads = read_fault == STORAGE_WELL;
	char why[SKV_MESSAGE_MAX];

	explain(d, reads ? writes : read_fault, reads ? kind : read_kind, why);
	/* the partition is being loaded or dropped: no fault of the storage */
	if (writes == STORAGE_FAILED && !why[0])
		return false;
	if (writes == d->shown_fault && reads == d->shown_reads && strcmp(why, d->shown) == 0)
		return false;
	count_change(d, writes, reads);
	n->level = writes == STORAGE_WELL     ? SKV_LOG_INFO
		   : writes == STORAGE_FAILED ? SKV_LOG_ERROR
					      : SKV_LOG_WARN; /* the write may only be late */
	snprintf(n->text, sizeof n->text, "'%s' %s%s", d->name,
		 writes == STORAGE_WELL ? "is healthy"
		 : reads ? "takes no new blocks, those that it has are read: "
			 : "is not usable: ",
		 why);
	d->shown_fault = writes;
	d->shown_reads = reads;
	memcpy(d->shown, why, sizeof d->shown);
	return true;
}

bool health_watch(struct device *d, struct health_news *n)
{
	bool news;

	skv_mutex_lock(&d->lock);
	news = watch_locked(d, n);
	skv_mutex_unlock(&d->lock);
	return news;
}
