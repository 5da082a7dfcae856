/*
 * lock.h - mutex, striped reader-writer lock and condition with the checks we want in every build.
 *
 * skv_mutex remembers its owner, so that `_locked` helpers can assert that the caller holds it.
 * Misuse (unlock by a stranger, relock) aborts: it is a bug, never input.
 * No lock is held across backend or network I/O.
 */
#ifndef SKV_LOCK_H
#define SKV_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct skv_mutex {
	pthread_mutex_t m;
	_Atomic uintptr_t owner; /* pthread_self of the holder, 0 when free */
};

/* For much reading and little writing: readers of different threads share no cache line, a writer takes every
 * stripe in turn (about 25 ns each). As many stripes as there are processors, at most SKV_RWLOCK_STRIPES. A thread
 * that reads must not read again before it has unlocked: a writer that waits comes between. */
#define SKV_RWLOCK_STRIPES 32u
struct skv_rwlock {
	struct {
		pthread_rwlock_t l;
		char apart[128 - sizeof(pthread_rwlock_t)]; /* two lines: however the whole is aligned */
	} stripe[SKV_RWLOCK_STRIPES];
	uint32_t n;
	_Atomic uintptr_t writer;
};

struct skv_cond {
	pthread_cond_t c; /* CLOCK_MONOTONIC */
};

void skv_mutex_init(struct skv_mutex *m);
void skv_mutex_destroy(struct skv_mutex *m);
void skv_mutex_lock(struct skv_mutex *m);
void skv_mutex_unlock(struct skv_mutex *m);
bool skv_mutex_held(const struct skv_mutex *m); /* by the calling thread */

void skv_rwlock_init(struct skv_rwlock *l);
void skv_rwlock_destroy(struct skv_rwlock *l);
void skv_rwlock_read(struct skv_rwlock *l);
void skv_rwlock_read_unlock(struct skv_rwlock *l);
void skv_rwlock_write(struct skv_rwlock *l);
void skv_rwlock_write_unlock(struct skv_rwlock *l);
bool skv_rwlock_write_held(const struct skv_rwlock *l); /* by the calling thread */

void skv_cond_init(struct skv_cond *c);
void skv_cond_destroy(struct skv_cond *c);
void skv_cond_signal(struct skv_cond *c);
void skv_cond_broadcast(struct skv_cond *c);
void skv_cond_wait(struct skv_cond *c, struct skv_mutex *m);
/* False when `timeout_ms` passed first. */
bool skv_cond_wait_ms(struct skv_cond *c, struct skv_mutex *m, uint64_t timeout_ms);

#endif
