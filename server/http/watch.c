/*
 * watch.c - closes connections that are idle or too slow.
 *
 * libmicrohttpd's own timeout restarts with every byte, so a client that drips one byte a second
 * would stay for ever. Here each phase of a connection (waiting, sending the request, taking the
 * answer) has one deadline, set by request.c; and while a body or an answer is on its way, the
 * kernel's counts of the connection tell whether it keeps the minimum rate. Past either the socket
 * is shut down, which the thread that serves it sees as the end of the stream. Owns the ring of
 * connections and one thread. The lock is held over shutdown(2), which does not block, so that the
 * descriptor cannot be closed and reused meanwhile.
 */
#include "watch.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include <skv/clock.h>

/* A phase is looked at from the second round on that finds it: most are over
 * by then and cost no call. */
static bool is_slow_locked(struct watch *w, struct watched *c, uint64_t now) SKV_REQUIRES(w->lock)
{
	const uint32_t phase = atomic_load_explicit(&c->phase, memory_order_relaxed);
	uint64_t received, taken;

	assert(skv_mutex_held(&w->lock));
	if (phase != c->seen) {
		c->seen = phase;
		c->pace = (struct skv_pace){ 0 };
		return false;
	}
	if (phase % FLOWS == FLOW_NONE || skv_pace_due(&c->pace, &w->limit) > now ||
	    !skv_pace_socket(c->fd, &received, &taken))
		return false;
	return !skv_pace_keeps(&c->pace, &w->limit, now,
			       phase % FLOWS == FLOW_BODY ? received : taken) &&
	       atomic_load(&c->phase) == phase;
}

static bool is_late(struct watched *c, uint64_t now)
{
	const uint64_t deadline = atomic_load(&c->deadline_ms);

	return deadline != 0 && now >= deadline;
}

static uint32_t drop_late_locked(struct watch *w, uint64_t now) SKV_REQUIRES(w->lock)
{
	uint32_t dropped = 0;

	assert(skv_mutex_held(&w->lock));
	for (struct watched *c = w->head.next; c != &w->head; c = c->next) {
		if (!is_late(c, now) && !is_slow_locked(w, c, now))
			continue;
		shutdown(c->fd, SHUT_RDWR);
		atomic_store(&c->deadline_ms, 0);
		dropped++;
	}
	return dropped;
}

static void *watch(void *arg)
{
	struct watch *w = arg;

	skv_mutex_lock(&w->lock);
	while (!w->stopping) {
		uint64_t now;
		uint32_t dropped;

		skv_cond_wait_ms(&w->wake, &w->lock, w->interval_ms);
		now = skv_now_ms(&skv_clock_system);
		dropped = drop_late_locked(w, now);
		skv_mutex_unlock(&w->lock);
		w->tick(w->ctx, now, dropped);
		skv_mutex_lock(&w->lock);
	}
	skv_mutex_unlock(&w->lock);
	return NULL;
}

int skv_watch_start(struct watch *w, uint32_t interval_ms, const struct skv_pace_limit *limit,
		    void (*tick)(void *ctx, uint64_t now_ms, uint32_t dropped), void *ctx,
		    struct skv_error *err)
{
	memset(w, 0, sizeof *w);
	skv_mutex_init(&w->lock);
	skv_cond_init(&w->wake);
	w->head.next = w->head.prev = &w->head;
	w->interval_ms = interval_ms;
	w->limit = *limit;
	w->tick = tick;
	w->ctx = ctx;
	if (pthread_create(&w->thread, NULL, watch, w) == 0)
		return SKV_OK;
	skv_cond_destroy(&w->wake);
	skv_mutex_destroy(&w->lock);
	return skv_fail(err, SKV_E_NOMEM, NULL, "cannot start a thread");
}

void skv_watch_stop(struct watch *w)
{
	skv_mutex_lock(&w->lock);
	w->stopping = true;
	skv_cond_signal(&w->wake);
	skv_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	assert(w->head.next == &w->head);
	skv_cond_destroy(&w->wake);
	skv_mutex_destroy(&w->lock);
}

void skv_watch_add(struct watch *w, struct watched *c)
{
	skv_mutex_lock(&w->lock);
	assert(!w->stopping);
	c->next = w->head.next;
	c->prev = &w->head;
	c->next->prev = c;
	w->head.next = c;
	skv_mutex_unlock(&w->lock);
	atomic_fetch_add(&w->open, 1);
}

void skv_watch_remove(struct watch *w, struct watched *c)
{
	skv_mutex_lock(&w->lock);
	assert(c->prev->next == c && c->next->prev == c);
	c->prev->next = c->next;
	c->next->prev = c->prev;
	skv_mutex_unlock(&w->lock);
	atomic_fetch_sub(&w->open, 1);
}
