/*
 * pause.c - keeps calls waiting while ownership or the store moves. See pause.h.
 *
 * Owns struct skv_pause of the service: a list, and the thread that checks it every TICK_MS while
 * it is not empty. Calls run again on that thread (or a worker, as their route says), one after the
 * other; none of them blocks. One lock, over the list, never held while a call runs.
 *
 * Running again is harmless: operations may be repeated. An administrator's write whose outcome is
 * not known is not repeated: its sender must read it back.
 */
#include <skv/pause.h>

#include <assert.h>
#include <inttypes.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/request.h>

#define TICK_MS 10u
#define AGAIN_MS 100u /* a failed store is not asked more often */
#define HOPELESS_MS 5000u /* others need not wait, after a call was given up */

static uint64_t now_ms(void) { return skv_now_ms(&skv_clock_system); }

/* Could the same call succeed a moment later? */
static bool passes(const struct skv_request *c, int status)
{
	switch (status) {
	case SKV_E_NOT_READY:
	case SKV_E_NOT_OWNER:
	case SKV_E_STORE_IO:
	case SKV_E_STORE_FULL:
		return true;
	case SKV_E_FENCED:
	case SKV_E_UNKNOWN_OUTCOME:
		return !(c->route->flags & ROUTE_BLOCKS);
	default:
		return false;
	}
}

/* Returns true if the call's partition can be asked here. If that is not known, any. */
static bool can_run(const struct skv_request *c)
{
	struct skv_cluster *cluster = c->s->cluster;
	const struct skv_target none = { .kind = SKV_TARGET_NONE };
	struct skv_door all;

	if (skv_request_is_of_one(c))
		return skv_cluster_partition_may_answer(cluster, c->door.partition) == SKV_OK;
	skv_find(cluster, &none, &all);
	return skv_door_check(&all) == SKV_OK;
}

static bool is_at_end(const struct skv_request *c, uint64_t now)
{
	return now >= c->wait.until_ms || skv_service_ends(c->s) ||
	       skv_cluster_state_get(c->s->cluster) == SKV_CORE_STOPPED;
}

/* Nobody answers it here: it is at its end, or another manager does, and can be asked now. */
static bool is_over(struct skv_request *c, uint64_t now)
{
	return is_at_end(c, now) ||
	       (skv_cluster_owned_elsewhere(c->s->cluster, skv_request_partition(c),
					    c->wait.since_ms) &&
		!skv_forward_is_soon(c));
}

static bool may_run(struct skv_request *c, uint64_t now)
{
	return now >= c->wait.again_ms &&
	       (can_run(c) || (c->forwarding.parts && now >= c->forwarding.again_ms));
}

bool skv_pause_was_vain(struct skv_request *c)
{
	assert(c->wait.since_ms);
	return now_ms() >= c->wait.until_ms ||
	       (!skv_forward_can(c) &&
		skv_cluster_owned_elsewhere(c->s->cluster, skv_request_partition(c),
					    c->wait.since_ms));
}

static atomic_uint_fast64_t *gave_up_ms(struct skv_request *c)
{
	const uint32_t number = skv_request_partition(c);

	assert(number < SKV_MAX_PARTITIONS);
	return &c->s->pause.gave_up_ms[number];
}

void skv_pause_give_up(struct skv_request *c)
{
	atomic_store_explicit(gave_up_ms(c), now_ms(), memory_order_relaxed);
}

bool skv_pause_is_hopeless(struct skv_request *c)
{
	const uint64_t since = atomic_load_explicit(gave_up_ms(c), memory_order_relaxed);

	return since && now_ms() - since < HOPELESS_MS;
}

/* ---- the list -------------------------------------------------------------------------------- */

static void put(struct skv_pause *p, struct skv_request *c, uint64_t now, bool first)
{
	uint32_t was;
	bool begins;

	skv_gauge_move(&c->s->metrics, GAUGE_calls_waiting, 1);
	skv_mutex_lock(&p->lock);
	begins = p->begun_ms == 0;
	if (begins)
		p->begun_ms = now;
	p->held += first;
	c->wait.next = p->waiting;
	p->waiting = c;
	if (begins) {
		skv_cond_signal(&p->wake);
		was = skv_log_partition(skv_request_is_of_one(c) ? c->door.partition + 1 : 0);
		skv_log(SKV_LOG_INFO, "calls", "calls wait: %s",
			c->err.message[0] ? c->err.message : skv_status_text(c->wait.status));
		skv_log_partition(was);
	}
	skv_mutex_unlock(&p->lock);
}

static uint32_t patience_of(struct skv_request *c)
{
	return c->api->patience ? c->api->patience(c) : c->s->o.hold_ms;
}

bool skv_pause_call(struct skv_request *c, int status)
{
	struct skv_pause *p = &c->s->pause;
	const uint64_t now = now_ms();
	const bool first = c->wait.since_ms == 0;

	assert(status != SKV_PENDING);
	if (!p->started || status == SKV_OK || !passes(c, status))
		return false;
	if (first) {
		c->wait.since_ms = now;
		c->wait.until_ms = now + patience_of(c);
	}
	if (is_over(c, now))
		return skv_forward_call(c, status); /* the owner was found just now */
	if (first)
		skv_metrics_add(&c->s->metrics, METRIC_calls_held, 1);
	c->wait.status = status;
	c->wait.again_ms = can_run(c) ? now + AGAIN_MS : now;
	put(p, c, now, first); /* the last touch */
	return true;
}

/* Removes calls that run again or are over. */
static struct skv_request *take_due_locked(struct skv_pause *p) SKV_REQUIRES(p->lock)
{
	const uint64_t now = now_ms();
	struct skv_request *due = NULL, **at = &p->waiting;

	assert(skv_mutex_held(&p->lock));
	while (*at) {
		struct skv_request *c = *at;

		if (!p->stopping && !is_over(c, now) && !may_run(c, now)) {
			at = &c->wait.next;
			continue;
		}
		*at = c->wait.next;
		c->wait.next = due; /* the oldest first */
		due = c;
	}
	return due;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void fail(struct skv_pause *p, struct skv_request *c)
{
	if (now_ms() >= c->wait.until_ms) {
		skv_metrics_add(&c->s->metrics, METRIC_calls_held_failed, 1);
		skv_mutex_lock(&p->lock);
		p->failed++;
		skv_mutex_unlock(&p->lock);
	}
	c->wait.done.fn(c->wait.done.ctx, c->wait.status);
}

/* Returns true if the owner must be found again: the manager that was asked did not have the
 * object, and this manager may have named any partition when it did not know. */
static bool begins_again(const struct skv_request *c, uint64_t now)
{
	return c->forwarding.refused && !is_at_end(c, now);
}

static void go_on(struct skv_pause *p, struct skv_request *c)
{
	int rc;

	skv_gauge_move(&c->s->metrics, GAUGE_calls_waiting, -1);
	if (is_over(c, now_ms()) && !begins_again(c, now_ms())) {
		if (skv_forward_call(c, SKV_E_NOT_OWNER))
			return;
		if (now_ms() < c->wait.until_ms && skv_forward_is_soon(c))
			put(p, c, now_ms(), false); /* the owner changed just now */
		else
			fail(p, c);
		return;
	}
	rc = c->wait.run(c);
	if (rc != SKV_PENDING)
		c->done.fn(c->done.ctx, rc);
}

static void tell_end_locked(struct skv_pause *p) SKV_REQUIRES(p->lock)
{
	const uint64_t ms = now_ms() - p->begun_ms;

	assert(skv_mutex_held(&p->lock) && !p->waiting && p->begun_ms);
	skv_log(p->failed ? SKV_LOG_WARN : SKV_LOG_INFO, "calls",
		"calls go on after %" PRIu64 " ms: waited %" PRIu64 ", failed %" PRIu64, ms,
		p->held, p->failed);
	p->begun_ms = p->held = p->failed = 0;
}

static void *look(void *arg)
{
	struct skv_pause *p = arg;

	skv_mutex_lock(&p->lock);
	while (!p->stopping || p->waiting) {
		struct skv_request *due, *next;

		if (!p->begun_ms) {
			skv_cond_wait(&p->wake, &p->lock);
			continue;
		}
		due = take_due_locked(p);
		skv_mutex_unlock(&p->lock);
		for (; due; due = next) {
			next = due->wait.next;
			go_on(p, due);
		}
		skv_mutex_lock(&p->lock);
		if (!p->waiting)
			tell_end_locked(p);
		else
			skv_cond_wait_ms(&p->wake, &p->lock, TICK_MS);
	}
	skv_mutex_unlock(&p->lock);
	return NULL;
}

int skv_pause_start(struct skv_pause *p, struct skv_error *err)
{
	assert(!p->started);
	skv_mutex_init(&p->lock);
	skv_cond_init(&p->wake);
	p->started = pthread_create(&p->thread, NULL, look, p) == 0;
	if (p->started)
		return SKV_OK;
	skv_cond_destroy(&p->wake);
	skv_mutex_destroy(&p->lock);
	return skv_fail(err, SKV_E_NOMEM, NULL, "cannot start a thread");
}

void skv_pause_stop(struct skv_pause *p)
{
	if (!p->started)
		return;
	skv_mutex_lock(&p->lock);
	p->stopping = true;
	skv_cond_broadcast(&p->wake);
	skv_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	assert(!p->waiting);
	skv_cond_destroy(&p->wake);
	skv_mutex_destroy(&p->lock);
}
