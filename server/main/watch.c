/*
 * watch.c - detects hanging calls of the store, ends waits for them, and measures memory.
 *
 * A mount that does not answer gives its callers no error: they wait in the kernel. So one thread,
 * which calls no file system, logs hanging calls. A manager that must end does not wait for them:
 * results that the store has not acknowledged were returned to nobody, so ending in the middle is
 * like kill -9.
 *
 * State: `watch`, `has_watch`, `unwatched` of struct service.
 */
#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/store.h>

#include "memory.h"
#include "serve.h"

#define LOOK_MS 100
#define TOLD_US 5000000u /* a store on etcd gives up a request after this time */
#define END_US 15000000u

static uint64_t look(struct service *s, bool *told)
{
	const char *what;
	const uint64_t us = skv_store_wait_us(s->store, &what);

	if (us >= TOLD_US && !*told)
		skv_log(SKV_LOG_WARN, "main",
			"the store %s has not answered '%s' for %" PRIu64
			" s: check its file system, or etcd",
			s->store_shown, what, us / 1000000);
	else if (us < TOLD_US && *told)
		skv_log(SKV_LOG_INFO, "main", "the store %s answers again", s->store_shown);
	*told = us >= TOLD_US;
	return us;
}

static void *watch(void *arg)
{
	struct service *s = arg;
	const uint64_t most = memory_max(s->p);
	bool told = false;

	while (!atomic_load(&s->unwatched)) {
		const uint64_t us = look(s, &told);

		if (us >= END_US && atomic_load(&s->stopping)) {
			skv_log(SKV_LOG_WARN, "main", "ending although the store hangs");
			_exit(atomic_load(&s->exit_status));
		}
		memory_look(most);
		poll(NULL, 0, LOOK_MS);
	}
	return NULL;
}

void serve_watch(struct service *s)
{
	assert(s->store && !s->has_watch);
	s->has_watch = pthread_create(&s->watch, NULL, watch, s) == 0;
}

void serve_unwatch(struct service *s)
{
	atomic_store(&s->unwatched, true);
	if (s->has_watch)
		pthread_join(s->watch, NULL);
	s->has_watch = false;
}
