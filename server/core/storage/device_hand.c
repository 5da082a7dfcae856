/*
 * device_hand.c - a storage's second thread, which creates and removes slab files.
 *
 * Where space must be written instead of reserved, creating a slab file takes seconds or minutes,
 * and so may removing a large one. That is not a hang: meanwhile the first thread keeps probing,
 * and judges the file system's health by that. The second thread exists only while there is
 * something to do, and takes no lock while in the file system. In manual mode, or if no thread can
 * be created, the first does its work.
 */
#include "device_hand.h"

#include <skv/mem.h>

#include <lock/core.h>
#include <model/device.h>
#include <storage/device.h>
#include "remove_files.h"

struct errand {
	struct device *d;
	bool grow, drain;
};

static void run(const struct errand *e)
{
	if (e->grow)
		device_grow(e->d);
	if (e->drain)
		remove_files(e->d);
}

/* Files requested meanwhile are created at once; failed removals wait for the next probe. */
static void *hand(void *arg)
{
	struct errand e = *(struct errand *)arg;
	bool more;

	skv_free(arg);
	core_log(e.d->core);
	run(&e);
	more = device_grows(e.d);
	skv_mutex_lock(&e.d->lock);
	e.d->hand_busy = false;
	if (more) {
		e.d->asked = true;
		skv_cond_signal(&e.d->wake);
	}
	skv_mutex_unlock(&e.d->lock);
	return NULL;
}

void hand_join(struct device *d)
{
	if (d->has_hand)
		pthread_join(d->hand, NULL);
	d->has_hand = false;
}

static bool start_hand(struct device *d, const struct errand *e)
{
	struct errand *copy = skv_malloc(sizeof *copy);

	if (!copy)
		return false;
	*copy = *e;
	d->hand_busy = true; /* no other thread reads it now */
	d->has_hand = pthread_create(&d->hand, NULL, hand, copy) == 0;
	if (d->has_hand)
		return true;
	d->hand_busy = false;
	skv_free(copy);
	return false;
}

void hand_ask(struct device *d, bool grow, bool drain)
{
	struct errand e = { d, grow, drain };
	bool busy;

	if (!grow && !drain)
		return;
	skv_mutex_lock(&d->lock);
	busy = d->hand_busy;
	skv_mutex_unlock(&d->lock);
	if (busy)
		return;
	hand_join(d);
	if (d->core->o.manual || !start_hand(d, &e))
		run(&e);
}
