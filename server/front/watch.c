/*
 * watch.c - closes connections that are idle or too slow.
 *
 * libmicrohttpd's own timeout restarts with every byte, so a client that drips one byte a second
 * would stay for ever. Here each phase of a connection (waiting, sending the request, taking the
 * answer) has one deadline, set by request.c; past it the socket is shut down, which the thread
 * that serves it sees as the end of the stream. Owns the ring of connections and one thread. The
 * lock is held over shutdown(2), which does not block, so that the descriptor cannot be closed and
 * reused meanwhile.
 */
#include "watch.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include <kvb/clock.h>

static uint32_t drop_late_locked(struct watch *w, uint64_t now)
{
	uint32_t dropped = 0;

	assert(kvb_mutex_held(&w->lock));
	for (struct watched *c = w->head.next; c != &w->head; c = c->next) {
		uint64_t deadline = atomic_load(&c->deadline_ms);

		if (deadline == 0 || now < deadline)
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

	kvb_mutex_lock(&w->lock);
	while (!w->stopping) {
		uint64_t now;
		uint32_t dropped;

		kvb_cond_wait_ms(&w->wake, &w->lock, w->interval_ms);
		now = kvb_now_ms(&kvb_clock_system);
		dropped = drop_late_locked(w, now);
		kvb_mutex_unlock(&w->lock);
		w->tick(w->ctx, now, dropped);
		kvb_mutex_lock(&w->lock);
	}
	kvb_mutex_unlock(&w->lock);
	return NULL;
}

int kvb_watch_start(struct watch *w, uint32_t interval_ms,
		    void (*tick)(void *ctx, uint64_t now_ms, uint32_t dropped), void *ctx,
		    struct kvb_error *err)
{
	memset(w, 0, sizeof *w);
	kvb_mutex_init(&w->lock);
	kvb_cond_init(&w->wake);
	w->head.next = w->head.prev = &w->head;
	w->interval_ms = interval_ms;
	w->tick = tick;
	w->ctx = ctx;
	if (pthread_create(&w->thread, NULL, watch, w) == 0)
		return KVB_OK;
	kvb_cond_destroy(&w->wake);
	kvb_mutex_destroy(&w->lock);
	return kvb_fail(err, KVB_E_NOMEM, NULL, "cannot start a thread");
}

void kvb_watch_stop(struct watch *w)
{
	kvb_mutex_lock(&w->lock);
	w->stopping = true;
	kvb_cond_signal(&w->wake);
	kvb_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	assert(w->head.next == &w->head);
	kvb_cond_destroy(&w->wake);
	kvb_mutex_destroy(&w->lock);
}

void kvb_watch_add(struct watch *w, struct watched *c)
{
	kvb_mutex_lock(&w->lock);
	c->next = w->head.next;
	c->prev = &w->head;
	c->next->prev = c;
	w->head.next = c;
	kvb_mutex_unlock(&w->lock);
	atomic_fetch_add(&w->open, 1);
}

void kvb_watch_remove(struct watch *w, struct watched *c)
{
	kvb_mutex_lock(&w->lock);
	c->prev->next = c->next;
	c->next->prev = c->prev;
	kvb_mutex_unlock(&w->lock);
	atomic_fetch_sub(&w->open, 1);
}
