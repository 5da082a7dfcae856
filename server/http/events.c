/*
 * events.c - limits how many events libmicrohttpd takes from epoll at a time.
 *
 * libmicrohttpd 0.9.75 asks for 128 events and, when it got exactly as many, waits for more before
 * it looks at the first: without end, if nothing else happens. So it never gets that many: the
 * program has an epoll_wait of its own, which a shared library that the program is linked with
 * finds before the C library's. Remaining events are reported in the next round. Other callers in
 * the process only get the same bound. No state, any thread. Decision 0026.
 */
#include <dlfcn.h>
#include <sys/epoll.h>

#include "internal.h"

#define EVENTS_MOST 127 /* MAX_EVENTS of libmicrohttpd, minus 1 */

__attribute__((visibility("default"), used)) int epoll_wait(int fd, struct epoll_event *events,
							    int n, int timeout_ms)
{
	return epoll_pwait(fd, events, n > EVENTS_MOST ? EVENTS_MOST : n, timeout_ms, NULL);
}

bool skv_events_bounded(void)
{
	return dlsym(RTLD_DEFAULT, "epoll_wait") == (void *)epoll_wait;
}
