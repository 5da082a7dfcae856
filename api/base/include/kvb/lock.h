/*
 * lock.h - mutex, striped reader-writer lock and condition with the checks we want in every build.
 *
 * kvb_mutex remembers its owner, so that `_locked` helpers can assert that the caller holds it.
 * Misuse (unlock by a stranger, relock) aborts: it is a bug, never input.
 * No lock is held across backend or network I/O.
 */
#ifndef KVB_LOCK_H
#define KVB_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct kvb_mutex {
	pthread_mutex_t m;
	_Atomic uintptr_t owner; /* pthread_self of the holder, 0 when free */
};

/* For much reading and little writing: readers of different threads share no cache line, a writer takes every
 * stripe in turn (about 25 ns each). As many stripes as there are processors, at most KVB_RWLOCK_STRIPES. A thread
 * that reads must not read again before it has unlocked: a writer that waits comes between. */
#define KVB_RWLOCK_STRIPES 32u
struct kvb_rwlock {
	struct {
		pthread_rwlock_t l;
		char apart[128 - sizeof(pthread_rwlock_t)]; /* two lines: however the whole is aligned */
	} stripe[KVB_RWLOCK_STRIPES];
	uint32_t n;
	_Atomic uintptr_t writer;
};

struct kvb_cond {
	pthread_cond_t c; /* CLOCK_MONOTONIC */
};

void kvb_mutex_init(struct kvb_mutex *m);
void kvb_mutex_destroy(struct kvb_mutex *m);
void kvb_mutex_lock(struct kvb_mutex *m);
void kvb_mutex_unlock(struct kvb_mutex *m);
bool kvb_mutex_held(const struct kvb_mutex *m); /* by the calling thread */

void kvb_rwlock_init(struct kvb_rwlock *l);
void kvb_rwlock_destroy(struct kvb_rwlock *l);
void kvb_rwlock_read(struct kvb_rwlock *l);
void kvb_rwlock_read_unlock(struct kvb_rwlock *l);
void kvb_rwlock_write(struct kvb_rwlock *l);
void kvb_rwlock_write_unlock(struct kvb_rwlock *l);
bool kvb_rwlock_write_held(const struct kvb_rwlock *l); /* by the calling thread */

void kvb_cond_init(struct kvb_cond *c);
void kvb_cond_destroy(struct kvb_cond *c);
void kvb_cond_signal(struct kvb_cond *c);
void kvb_cond_broadcast(struct kvb_cond *c);
void kvb_cond_wait(struct kvb_cond *c, struct kvb_mutex *m);
/* False when `timeout_ms` passed first. */
bool kvb_cond_wait_ms(struct kvb_cond *c, struct kvb_mutex *m, uint64_t timeout_ms);

#endif
