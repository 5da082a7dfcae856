/*
 * errand.c - runs calls that a file system may block for long, each on a thread of its own.
 *
 * Where space must be written instead of reserved, creating a slab file takes seconds or minutes. A
 * probing write, and a check of a slab file, wait as long as the storage node that has their bytes.
 * None of them delays the storage's own thread or each other. A thread exists only while it has
 * something to do, and takes no lock while in the file system; the opened storage is shared, so
 * that one that is stuck does not keep it from being opened anew. In manual mode, or if no thread
 * can be created, the storage's own thread does the work. While that thread is stuck itself, the
 * ticker continues to request reads.
 *
 * Checks of slab files have several threads. While one of them waits, small files are read, too: so
 * that any number of unreadable files does not hide that others can be read.
 */
#include "errand.h"

#include <assert.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/mem.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/device.h>
#include <storage/claim.h>
#include <storage/device.h>
#include "device_look.h"
#include "files_look.h"
#include "health.h"
#include "make_files.h"
#include "remove_files.h"

/* Through fs-masters nothing is tried but the owner file: their probes write, too. */
static void try_write(struct device *d)
{
	const struct look before = device_look(d);
	struct skv_storage *s = device_use(d);
	struct skv_storage_health h;
	struct skv_error err = { 0 };
	int rc = SKV_OK;

	if (!s)
		return;
	health_begin(d, CALL_WRITE);
	if (!atomic_load(&d->remote)) {
		rc = skv_storage_probe(s, SKV_PROBE_WRITE, &h, &err);
		if (rc == SKV_OK)
			device_measure(d, &before, h.free_bytes);
	}
	if (rc == SKV_OK)
		rc = claim_keep(d, s, &err);
	health_end(d, CALL_WRITE, rc == SKV_OK, false);
	health_note(d, CALL_WRITE, rc, err.message);
	skv_storage_close(s);
}

static void check_files(struct device *d, bool small)
{
	struct skv_storage *s = device_use(d);

	if (s)
		files_look(d, s, small);
	skv_storage_close(s);
}

/* Files requested meanwhile are created at once; failed removals wait for the next step. */
static void make_and_remove(struct device *d)
{
	make_next_file(d);
	if (device_look(d).ending && device_healthy(d))
		remove_files(d);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define ANSWER_US 1000000u /* between two answers while the root is opened */

struct order {
	struct device *d;
	unsigned slot;
};

/* Returns true if a probe is running whose result is awaited after the root was opened. */
static bool tries_locked(const struct device *d) SKV_REQUIRES(d->lock)
{
	bool busy = !atomic_load(&d->files_checked);

	assert(skv_mutex_held(&d->lock));
	for (unsigned i = ERRAND_WRITE; i < ERRANDS; i++)
		busy |= d->errand[i].busy;
	return busy;
}

static void run(struct device *d, unsigned slot)
{
	if (slot == ERRAND_FILES)
		make_and_remove(d);
	else if (slot == ERRAND_WRITE)
		try_write(d);
	else
		check_files(d, slot >= ERRAND_SMALL);
}

static void *errand(void *arg)
{
	struct order o = *(struct order *)arg;
	bool more;

	skv_free(arg);
	core_log(o.d->core);
	run(o.d, o.slot);
	more = o.slot == ERRAND_FILES && device_grows(o.d);
	skv_mutex_lock(&o.d->lock);
	o.d->errand[o.slot].busy = false;
	/* a note of the journal's end that was asked for too late for this one */
	o.d->asked |= more || (o.slot == ERRAND_WRITE && o.d->errand[o.slot].again);
	o.d->returned++;
	skv_cond_signal(&o.d->wake);
	skv_mutex_unlock(&o.d->lock); /* the device may be gone from here */
	return NULL;
}

void errands_join(struct device *d)
{
	skv_mutex_lock(&d->lock);
	assert(!d->running || d->stop); /* so none begins any more */
	for (unsigned i = 0; i < ERRANDS; i++)
		while (d->errand[i].busy)
			skv_cond_wait_ms(&d->wake, &d->lock, ANSWER_US / 1000);
	skv_mutex_unlock(&d->lock);
}

/* The thread is detached, so that a process whose storage hangs accumulates no ended threads.
 * `busy` is true while the thread may still use the device. */
static bool start_thread_locked(struct device *d, unsigned slot) SKV_REQUIRES(d->lock)
{
	struct order *o = skv_malloc(sizeof *o);
	pthread_t thread;

	assert(skv_mutex_held(&d->lock) && !d->errand[slot].busy);
	d->errand[slot].again = false;
	if (!o)
		return false;
	*o = (struct order){ d, slot };
	if (pthread_create(&thread, NULL, errand, o) != 0) {
		skv_free(o);
		return false;
	}
	pthread_detach(thread);
	return true;
}

/* Requests an errand. May wait for the file system only if `here`: without a thread the errand runs
 * at once. Returns false if the previous one has not returned. */
static bool ask(struct device *d, unsigned slot, bool here)
{
	struct errand *e = &d->errand[slot];
	bool may, started;

	assert(slot < ERRANDS);
	if (d->core->o.manual) {
		run(d, slot);
		return true;
	}
	skv_mutex_lock(&d->lock);
	may = !e->busy && !d->stop;
	e->again |= e->busy;
	started = may && start_thread_locked(d, slot);
	e->busy |= may && (started || here);
	skv_mutex_unlock(&d->lock);
	if (may && !started && here) {
		run(d, slot);
		skv_mutex_lock(&d->lock);
		e->busy = false;
		skv_mutex_unlock(&d->lock);
	}
	return may;
}

/* A thread of these that is free, or (`all`) each. False: one was not. */
static bool ask_one(struct device *d, unsigned from, unsigned to, bool all, bool here)
{
	bool all_free = true, asked = false;

	for (unsigned i = from; i < to && (all || !asked); i++) {
		asked = ask(d, i, here);
		all_free &= asked;
	}
	return all_free;
}

static void ask_reads(struct device *d, bool here)
{
	const bool all = !atomic_load(&d->files_checked);

	if (!ask_one(d, ERRAND_READ, ERRAND_SMALL, all, here))
		ask_one(d, ERRAND_SMALL, ERRANDS, false, here);
}

void errands_try(struct device *d)
{
	if (!d->ops->steady)
		ask(d, ERRAND_WRITE, true);
	ask_reads(d, true);
}

void errands_go_on(struct device *d) { ask_reads(d, false); }

void errands_work(struct device *d, const struct look *k)
{
	if (k->growing || k->ending)
		ask(d, ERRAND_FILES, true);
}

void errands_wait(struct device *d)
{
	uint64_t until = skv_now_us() + ANSWER_US;
	uint32_t returned;

	skv_mutex_lock(&d->lock);
	returned = d->returned;
	while (!d->stop && !d->core->o.manual && tries_locked(d) && skv_now_us() < until) {
		skv_cond_wait_ms(&d->wake, &d->lock, ANSWER_US / 1000);
		if (d->returned != returned)
			until = skv_now_us() + ANSWER_US;
		returned = d->returned;
	}
	skv_mutex_unlock(&d->lock);
}
