/*
 * wait.c - holds calls until this manager owns the partition.
 *
 * A client told to retry does so after a second, but a restart is faster: so its call is held, as
 * long as pages_retry_ms allows. One worker wakes all that wait. Only calls with complete bodies
 * are held, so the limits on bodies bound them. One lock, over the list.
 */
#include "hf3fs.h"

#include <skv/clock.h>

#include <assert.h>

#define SLICE_MS 20u /* between checks for calls whose time is over */
#define MAKE_MS 10000u /* how long an initialize waits */

uint64_t pages_down_ms(struct hf3fs_request *k)
{
	atomic_uint_fast64_t *since = &pages_of(k)->down_since;
	uint64_t now = skv_now_ms(&skv_clock_system);
	uint_fast64_t first = 0;

	return atomic_compare_exchange_strong(since, &first, now) ? 0 : now - first;
}

/* Takes calls off the list that need not wait any more. *last: none is left. */
static struct hf3fs_request *take_due(struct pages *p, bool all, bool *last)
{
	const uint64_t now = skv_now_ms(&skv_clock_system);
	struct hf3fs_request *due = NULL, **end = &due, **at;

	skv_mutex_lock(&p->wait_lock);
	assert(p->waking);
	for (at = &p->waiting; *at;) {
		struct hf3fs_request *k = *at;

		if (!all && k->wait_until > now) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		*end = k;
		end = &k->next;
	}
	*end = NULL;
	*last = !p->waiting;
	p->waking = !*last;
	skv_mutex_unlock(&p->wait_lock);
	return due;
}

/* Is it decided who answers? This manager, nobody any more (it is shutting down, and does not wait
 * for its own calls), or another one with a known address. */
static bool is_ended(struct skv_service *s)
{
	char url[SKV_URL_MAX];

	if (skv_service_ends(s))
		return true;
	switch (skv_core_state_get(s->core)) {
	case SKV_CORE_READY:
	case SKV_CORE_STOPPED:
		return true;
	case SKV_CORE_STANDBY:
		return skv_service_leader_url(s, url) == SKV_OK;
	case SKV_CORE_RECOVERING:
		break;
	}
	return false;
}

static void wake(struct job *job, bool expired)
{
	struct pages *p = (struct pages *)((char *)job - offsetof(struct pages, waker));
	struct skv_service *s = p->service;
	bool last = false;

	while (!last) {
		bool ready = skv_core_wait_ready(s->core, SLICE_MS) == SKV_OK;
		struct hf3fs_request *k = take_due(p, expired || is_ended(s), &last), *next;

		for (; k; k = next) {
			int rc;

			if (ready)
				hf3fs_is_up(k);
			next = k->next;
			rc = hf3fs_begin(k);
			if (rc != SKV_PENDING)
				k->c->done.fn(k->c->done.ctx, rc);
		}
	}
}

/* How much longer it may wait. */
static uint64_t patience_of(struct hf3fs_request *k)
{
	const uint64_t most = pages_of(k)->o.retry_ms;
	uint64_t down;

	if (is_ended(k->c->s))
		return 0;
	down = pages_down_ms(k);
	return k->op->flags & HF3FS_MAKES ? MAKE_MS : down < most ? most - down : 0;
}

bool hf3fs_wait(struct hf3fs_request *k)
{
	struct pages *p = pages_of(k);
	const uint64_t ms = patience_of(k), now = skv_now_ms(&skv_clock_system);
	bool waits;

	if (ms == 0)
		return false;
	k->wait_until = now + ms;
	skv_mutex_lock(&p->wait_lock);
	assert(!p->waiting || p->waking);
	if (!p->waking) { /* else a worker has the job, and reads it without this lock */
		p->service = k->c->s;
		p->waker.run = wake;
		p->waking = skv_workers_submit(&k->c->s->workers, &p->waker, now);
	}
	waits = p->waking;
	if (waits) {
		hf3fs_count(k, HF3FS_held, 1);
		k->next = p->waiting;
		p->waiting = k;
	}
	skv_mutex_unlock(&p->wait_lock);
	return waits;
}
