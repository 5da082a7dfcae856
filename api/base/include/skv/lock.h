/*
 * lock.h - mutex, striped reader-writer lock and condition, with checks in every build.
 *
 * skv_mutex remembers its owner, so that `_locked` helpers can assert that the caller holds it.
 * Misuse (unlock by another thread, relock) aborts: it is a bug, never input. No lock is held
 * across backend or network I/O.
 */
#ifndef SKV_LOCK_H
#define SKV_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Attributes for clang's analysis of locks (-Wthread-safety, rules_locks); empty for gcc. A lock is
 * named as the caller can name it, `m` or `s->lock`, and the struct must be complete there. Not
 * expressed: which stripe of an skv_rwlock a reader locks, a lock under an alias or a condition. */
#ifdef __clang__
#define SKV_LOCK_ATTRIBUTE(x) __attribute__((x))
#else
#define SKV_LOCK_ATTRIBUTE(x)
#endif
/* Declares a type whose objects are locks. */
#define SKV_CAPABILITY(kind) SKV_LOCK_ATTRIBUTE(capability(kind))
/* The function locks, for writing or for reading, and returns with the lock held. */
#define SKV_ACQUIRES(...) SKV_LOCK_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define SKV_ACQUIRES_SHARED(...) SKV_LOCK_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
/* The function locks only if it returns `ok`: true (a pointer: not NULL) or false. */
#define SKV_TRY_ACQUIRES(ok, ...) SKV_LOCK_ATTRIBUTE(try_acquire_capability(ok, __VA_ARGS__))
/* The function unlocks what was locked for writing, or for reading. */
#define SKV_RELEASES(...) SKV_LOCK_ATTRIBUTE(release_capability(__VA_ARGS__))
#define SKV_RELEASES_SHARED(...) SKV_LOCK_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
/* The caller holds the lock, for writing or at least for reading. */
#define SKV_REQUIRES(...) SKV_LOCK_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define SKV_REQUIRES_SHARED(...) SKV_LOCK_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
/* The analysis skips the body of this definition: a comment there says why. */
#define SKV_NO_LOCK_CHECK SKV_LOCK_ATTRIBUTE(no_thread_safety_analysis)

/* The address of this variable identifies the thread that holds a lock. */
extern _Thread_local char skv_thread_mark;
static inline uintptr_t skv_thread(void) { return (uintptr_t)&skv_thread_mark; }
/* Locks of this file that the thread holds. Must be 0 when it waits for a file system or the
 * network. */
extern _Thread_local unsigned skv_thread_locks;
/* True if the thread may wait for other managers, while nobody waits for the thread. Threads that
 * serve a transport, or hold resources that others need, must not wait. False unless the thread
 * sets it. */
extern _Thread_local bool skv_thread_waits;

struct SKV_CAPABILITY("mutex") skv_mutex {
	pthread_mutex_t m;
	_Atomic uintptr_t owner; /* skv_thread of the holder, 0 when free */
};

/* For many reads and few writes: readers of different threads share no cache line, a writer takes
 * every stripe in turn (about 25 ns each). As many stripes as processors, at most
 * SKV_RWLOCK_STRIPES. Writers take turns: waiting readers are admitted between two writers, so a
 * reader waits for one writer at most. A reading thread must not read-lock again before it has
 * unlocked, because a waiting writer would deadlock with it. So a thread holds at most one such
 * lock for reading, and knows which. */
#define SKV_RWLOCK_STRIPES 32u
struct SKV_CAPABILITY("rwlock") skv_rwlock {
	struct {
		pthread_rwlock_t l;
		/* two cache lines, for any alignment of the whole */
		char apart[128 - sizeof(pthread_rwlock_t)];
	} stripe[SKV_RWLOCK_STRIPES];
	uint32_t n;
	_Atomic uintptr_t writer;
	pthread_mutex_t turn; /* of writers; held while writing */
	_Atomic uint32_t waiting; /* readers, now */
	_Atomic uint64_t waits;   /* reads that had to wait, and how long in all */
	_Atomic uint64_t waited_us;
};

struct skv_cond {
	pthread_cond_t c; /* CLOCK_MONOTONIC */
};

void skv_mutex_init(struct skv_mutex *m);
void skv_mutex_destroy(struct skv_mutex *m);
void skv_mutex_lock(struct skv_mutex *m) SKV_ACQUIRES(m);
void skv_mutex_unlock(struct skv_mutex *m) SKV_RELEASES(m);
/* By the calling thread. Relaxed suffices: a thread sees its own last write, and no other thread's
 * mark equals its own. */
static inline bool skv_mutex_held(const struct skv_mutex *m)
{
	return atomic_load_explicit(&m->owner, memory_order_relaxed) == skv_thread();
}

void skv_rwlock_init(struct skv_rwlock *l);
void skv_rwlock_destroy(struct skv_rwlock *l);
void skv_rwlock_read(struct skv_rwlock *l) SKV_ACQUIRES_SHARED(l);
void skv_rwlock_read_unlock(struct skv_rwlock *l) SKV_RELEASES_SHARED(l);
void skv_rwlock_write(struct skv_rwlock *l) SKV_ACQUIRES(l);
void skv_rwlock_write_unlock(struct skv_rwlock *l) SKV_RELEASES(l);
/* Pauses a write: admits waiting readers, but no other writer, and returns when they have left. The
 * protected state must be consistent for readers at that moment. */
void skv_rwlock_write_pause(struct skv_rwlock *l) SKV_REQUIRES(l);
/* For a writer that may pause, or unlock and lock again: is it worth it? */
static inline bool skv_rwlock_readers_wait(const struct skv_rwlock *l)
{
	return atomic_load_explicit(&l->waiting, memory_order_relaxed) > 0;
}
/* For writing; for reading or writing; by the calling thread. */
static inline bool skv_rwlock_write_held(const struct skv_rwlock *l)
{
	return atomic_load_explicit(&l->writer, memory_order_relaxed) == skv_thread();
}
/* the lock that this thread holds for reading */
extern _Thread_local const struct skv_rwlock *skv_thread_reads;
static inline bool skv_rwlock_held(const struct skv_rwlock *l)
{
	return skv_thread_reads == l || skv_rwlock_write_held(l);
}

void skv_cond_init(struct skv_cond *c);
void skv_cond_destroy(struct skv_cond *c);
void skv_cond_signal(struct skv_cond *c);
void skv_cond_broadcast(struct skv_cond *c);
void skv_cond_wait(struct skv_cond *c, struct skv_mutex *m) SKV_REQUIRES(m);
/* Returns false if `timeout_ms` passed first. */
bool skv_cond_wait_ms(struct skv_cond *c, struct skv_mutex *m, uint64_t timeout_ms)
	SKV_REQUIRES(m);

#endif
