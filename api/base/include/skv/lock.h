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
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What a lock knows its holder by. */
extern _Thread_local char skv_thread_mark;
static inline uintptr_t skv_thread(void) { return (uintptr_t)&skv_thread_mark; }
/* Locks of this file that the thread holds. Nobody waits for a file system or the network with one. */
extern _Thread_local unsigned skv_thread_locks;

struct skv_mutex {
	pthread_mutex_t m;
	_Atomic uintptr_t owner; /* skv_thread of the holder, 0 when free */
};

/* For much reading and little writing: readers of different threads share no cache line, a writer takes every
 * stripe in turn (about 25 ns each). As many stripes as there are processors, at most SKV_RWLOCK_STRIPES. A thread
 * that reads must not read again before it has unlocked: a writer that waits comes between. So it reads under one such
 * lock at a time, and knows which. */
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
/* By the calling thread. Its own last write is what a thread sees, and nobody else's mark equals its own: relaxed will do. */
static inline bool skv_mutex_held(const struct skv_mutex *m)
{
	return atomic_load_explicit(&m->owner, memory_order_relaxed) == skv_thread();
}

void skv_rwlock_init(struct skv_rwlock *l);
void skv_rwlock_destroy(struct skv_rwlock *l);
void skv_rwlock_read(struct skv_rwlock *l);
void skv_rwlock_read_unlock(struct skv_rwlock *l);
void skv_rwlock_write(struct skv_rwlock *l);
void skv_rwlock_write_unlock(struct skv_rwlock *l);
/* For writing; for reading or writing; by the calling thread. */
static inline bool skv_rwlock_write_held(const struct skv_rwlock *l)
{
	return atomic_load_explicit(&l->writer, memory_order_relaxed) == skv_thread();
}
extern _Thread_local const struct skv_rwlock *skv_thread_reads; /* the one that the thread holds for reading */
static inline bool skv_rwlock_held(const struct skv_rwlock *l)
{
	return skv_thread_reads == l || skv_rwlock_write_held(l);
}

void skv_cond_init(struct skv_cond *c);
void skv_cond_destroy(struct skv_cond *c);
void skv_cond_signal(struct skv_cond *c);
void skv_cond_broadcast(struct skv_cond *c);
void skv_cond_wait(struct skv_cond *c, struct skv_mutex *m);
/* False when `timeout_ms` passed first. */
bool skv_cond_wait_ms(struct skv_cond *c, struct skv_mutex *m, uint64_t timeout_ms);

#endif
