/*
 * lock.c - pthread locks that know their owner.
 *
 * The owner is written only by the thread that holds the lock, and compared only with the asking
 * thread itself.
 *
 * Misuse (locking twice, unlocking as another thread, waiting without holding) is a failed check in
 * every build: a bug of ours, never input. If a check lets the program go on (skv/check.h), such a
 * call does nothing. Clang's analysis cannot see that these functions lock, so it skips their
 * bodies.
 */
#undef NDEBUG
#include <skv/lock.h>

#include <skv/check.h>
#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* The expression must yield 0; the text of the failed check names it. */
#define MUST(expr) SKV_CHECK((expr) == 0)

_Thread_local char skv_thread_mark;
_Thread_local unsigned skv_thread_locks;
_Thread_local bool skv_thread_waits;
_Thread_local const struct skv_rwlock *skv_thread_reads;

void skv_mutex_init(struct skv_mutex *m)
{
	MUST(pthread_mutex_init(&m->m, NULL));
	atomic_init(&m->owner, 0);
}

void skv_mutex_destroy(struct skv_mutex *m) { MUST(pthread_mutex_destroy(&m->m)); }

void skv_mutex_lock(struct skv_mutex *m) SKV_NO_LOCK_CHECK
{
	if (!MUST(skv_mutex_held(m)))
		return;
	MUST(pthread_mutex_lock(&m->m));
	atomic_store_explicit(&m->owner, skv_thread(), memory_order_relaxed);
	skv_thread_locks++;
}

void skv_mutex_unlock(struct skv_mutex *m) SKV_NO_LOCK_CHECK
{
	if (!MUST(!skv_mutex_held(m)))
		return;
	skv_thread_locks--;
	atomic_store_explicit(&m->owner, 0, memory_order_relaxed);
	MUST(pthread_mutex_unlock(&m->m));
}

void skv_rwlock_init(struct skv_rwlock *l)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_rwlockattr_t a;

	l->n = processors < 1                          ? 1
	       : processors < (long)SKV_RWLOCK_STRIPES ? (uint32_t)processors
						       : SKV_RWLOCK_STRIPES;
	MUST(pthread_rwlockattr_init(&a));
	/* Writers (starts, finishes) must not starve behind a stream of lookups. */
	MUST(pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
	for (uint32_t i = 0; i < l->n; i++)
		MUST(pthread_rwlock_init(&l->stripe[i].l, &a));
	MUST(pthread_rwlockattr_destroy(&a));
	MUST(pthread_mutex_init(&l->turn, NULL));
	atomic_init(&l->writer, 0);
	atomic_init(&l->waiting, 0);
	atomic_init(&l->waits, 0);
	atomic_init(&l->waited_us, 0);
}

void skv_rwlock_destroy(struct skv_rwlock *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		MUST(pthread_rwlock_destroy(&l->stripe[i].l));
	MUST(pthread_mutex_destroy(&l->turn));
}

/* Threads get stripes in the order of their first reads, and keep them. */
static pthread_rwlock_t *own_stripe(struct skv_rwlock *l)
{
	static _Atomic uint32_t threads;
	static _Thread_local uint32_t number; /* of this thread, from 1 */

	if (number == 0)
		number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % (1u << 30) +
			 1;
	return &l->stripe[number % l->n].l;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void read_later(struct skv_rwlock *l)
{
	uint64_t since = now_us();

	atomic_fetch_add_explicit(&l->waiting, 1, memory_order_relaxed);
	MUST(pthread_rwlock_rdlock(own_stripe(l)));
	atomic_fetch_sub_explicit(&l->waiting, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->waits, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->waited_us, now_us() - since, memory_order_relaxed);
}

void skv_rwlock_read(struct skv_rwlock *l) SKV_NO_LOCK_CHECK
{
	SKV_CHECK(!skv_thread_reads && !skv_rwlock_write_held(l));
	if (pthread_rwlock_tryrdlock(own_stripe(l)) != 0)
		read_later(l);
	skv_thread_reads = l;
	skv_thread_locks++;
}

void skv_rwlock_read_unlock(struct skv_rwlock *l) SKV_NO_LOCK_CHECK
{
	SKV_CHECK(skv_thread_reads == l);
	skv_thread_reads = NULL;
	skv_thread_locks--;
	MUST(pthread_rwlock_unlock(own_stripe(l)));
}

/* Takes the stripes. Caller: the writer whose turn it is. */
static void take_stripes(struct skv_rwlock *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		MUST(pthread_rwlock_wrlock(&l->stripe[i].l));
	atomic_store_explicit(&l->writer, skv_thread(), memory_order_relaxed);
}

static void give_stripes(struct skv_rwlock *l)
{
	atomic_store_explicit(&l->writer, 0, memory_order_relaxed);
	for (uint32_t i = l->n; i-- > 0;)
		MUST(pthread_rwlock_unlock(&l->stripe[i].l));
}

void skv_rwlock_write(struct skv_rwlock *l) SKV_NO_LOCK_CHECK
{
	SKV_CHECK(skv_thread_reads != l);
	MUST(skv_rwlock_write_held(l));
	/* If writers waited for the stripes, each would hand them to the next, past all readers. */
	MUST(pthread_mutex_lock(&l->turn));
	take_stripes(l);
	skv_thread_locks++;
}

void skv_rwlock_write_unlock(struct skv_rwlock *l) SKV_NO_LOCK_CHECK
{
	MUST(!skv_rwlock_write_held(l));
	skv_thread_locks--;
	give_stripes(l);
	MUST(pthread_mutex_unlock(&l->turn));
}

/* An unlocked stripe belongs to its waiters, so it cannot be locked again before them. */
void skv_rwlock_write_pause(struct skv_rwlock *l)
{
	if (!MUST(!skv_rwlock_write_held(l)))
		return;
	give_stripes(l);
	take_stripes(l);
}

void skv_cond_init(struct skv_cond *c)
{
	pthread_condattr_t a;

	MUST(pthread_condattr_init(&a));
	MUST(pthread_condattr_setclock(&a, CLOCK_MONOTONIC));
	MUST(pthread_cond_init(&c->c, &a));
	MUST(pthread_condattr_destroy(&a));
}

void skv_cond_destroy(struct skv_cond *c) { MUST(pthread_cond_destroy(&c->c)); }
void skv_cond_signal(struct skv_cond *c) { MUST(pthread_cond_signal(&c->c)); }
void skv_cond_broadcast(struct skv_cond *c) { MUST(pthread_cond_broadcast(&c->c)); }

void skv_cond_wait(struct skv_cond *c, struct skv_mutex *m)
{
	if (!MUST(!skv_mutex_held(m)))
		return;
	atomic_store_explicit(&m->owner, 0, memory_order_relaxed);
	MUST(pthread_cond_wait(&c->c, &m->m));
	atomic_store_explicit(&m->owner, skv_thread(), memory_order_relaxed);
}

bool skv_cond_wait_ms(struct skv_cond *c, struct skv_mutex *m, uint64_t timeout_ms)
{
	struct timespec t;
	int rc;

	if (!MUST(!skv_mutex_held(m)))
		return false;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += (time_t)(timeout_ms / 1000);
	t.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	atomic_store_explicit(&m->owner, 0, memory_order_relaxed);
	rc = pthread_cond_timedwait(&c->c, &m->m, &t);
	atomic_store_explicit(&m->owner, skv_thread(), memory_order_relaxed);
	MUST(rc != 0 && rc != ETIMEDOUT);
	return rc == 0;
}
