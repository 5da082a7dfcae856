/*
 * failing_assert.c - loaded into slabkvd (LD_PRELOAD): an assert fails when the manager waits for
 * signals.
 */
#undef NDEBUG
#include <assert.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	(void)set;
	(void)timeout;
	assert(info != NULL); /* the manager passes NULL */
	return 0;
}
