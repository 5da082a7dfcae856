/*
 * test_lock.c - locks exclude, know their owner, and abort on misuse (tried in a child process).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/lock.h>

enum { THREADS = 4, ROUNDS = 20000 };

struct shared {
	struct skv_mutex m;
	struct skv_rwlock l;
	struct skv_cond c;
	long count; /* protected by m or l, as the test has it */
	int turn;   /* protected by m */
};

static void setup(struct shared *s)
{
	skv_mutex_init(&s->m);
	skv_rwlock_init(&s->l);
	skv_cond_init(&s->c);
	s->count = 0;
	s->turn = 0;
}

static void teardown(struct shared *s)
{
	skv_cond_destroy(&s->c);
	skv_rwlock_destroy(&s->l);
	skv_mutex_destroy(&s->m);
}

static void run(void *(*fn)(void *), struct shared *s)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, fn, s), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static void *add_under_mutex(void *p)
{
	struct shared *s = p;

	for (int i = 0; i < ROUNDS; i++) {
		skv_mutex_lock(&s->m);
		s->count++;
		skv_mutex_unlock(&s->m);
	}
	return NULL;
}

static void *add_under_rwlock(void *p)
{
	struct shared *s = p;
	long seen = 0;

	for (int i = 0; i < ROUNDS; i++) {
		if (i % 4 == 0) {
			skv_rwlock_write(&s->l);
			s->count += 4;
			skv_rwlock_write_unlock(&s->l);
		} else {
			skv_rwlock_read(&s->l);
			seen |= s->count; /* a sum of fours: never with a half one in it */
			skv_rwlock_read_unlock(&s->l);
		}
	}
	return (void *)(seen & 3);
}

static void a_mutex_excludes(void **state)
{
	struct shared s;

	(void)state;
	setup(&s);
	run(add_under_mutex, &s);
	assert_int_equal(s.count, (long)THREADS * ROUNDS);
	teardown(&s);
}

static void a_write_lock_excludes(void **state)
{
	struct shared s;

	(void)state;
	setup(&s);
	run(add_under_rwlock, &s);
	assert_int_equal(s.count, (long)THREADS * ROUNDS);
	teardown(&s);
}

static void *ask(void *p)
{
	struct shared *s = p;

	return (void *)(uintptr_t)(skv_mutex_held(&s->m) || skv_rwlock_write_held(&s->l));
}

static void owners_are_known(void **state)
{
	struct shared s;
	pthread_t t;
	void *held;

	(void)state;
	setup(&s);
	assert_false(skv_mutex_held(&s.m));
	assert_false(skv_rwlock_write_held(&s.l));
	skv_mutex_lock(&s.m);
	skv_rwlock_write(&s.l);
	assert_true(skv_mutex_held(&s.m));
	assert_true(skv_rwlock_write_held(&s.l));
	assert_int_equal(pthread_create(&t, NULL, ask, &s), 0);
	pthread_join(t, &held);
	assert_null(held); /* held, but not by the one who asked */
	skv_rwlock_write_unlock(&s.l);
	skv_mutex_unlock(&s.m);
	assert_false(skv_mutex_held(&s.m));
	assert_false(skv_rwlock_write_held(&s.l));
	skv_rwlock_read(&s.l);
	assert_false(skv_rwlock_write_held(&s.l));
	skv_rwlock_read_unlock(&s.l);
	teardown(&s);
}

/* Two threads pass a turn to and fro. */
static void *even(void *p)
{
	struct shared *s = p;

	for (int i = 0; i < 1000; i++) {
		skv_mutex_lock(&s->m);
		while (s->turn % 2 != 0)
			skv_cond_wait(&s->c, &s->m);
		s->turn++;
		skv_cond_broadcast(&s->c);
		skv_mutex_unlock(&s->m);
	}
	return NULL;
}

static void waiting_gives_the_lock_away_and_back(void **state)
{
	struct shared s;
	pthread_t t;

	(void)state;
	setup(&s);
	assert_int_equal(pthread_create(&t, NULL, even, &s), 0);
	for (int i = 0; i < 1000; i++) {
		skv_mutex_lock(&s.m);
		while (s.turn % 2 != 1)
			assert_true(skv_cond_wait_ms(&s.c, &s.m, 60000));
		assert_true(skv_mutex_held(&s.m));
		s.turn++;
		skv_cond_signal(&s.c);
		skv_mutex_unlock(&s.m);
	}
	pthread_join(t, NULL);
	assert_int_equal(s.turn, 2000);
	teardown(&s);
}

static void waiting_ends_in_time(void **state)
{
	struct shared s;
	uint64_t begin = skv_now_us();

	(void)state;
	setup(&s);
	skv_mutex_lock(&s.m);
	while (skv_cond_wait_ms(&s.c, &s.m, 30))
		; /* woken for no reason */
	assert_true(skv_mutex_held(&s.m));
	assert_true(skv_now_us() - begin >= 30000);
	(void)skv_cond_wait_ms(&s.c, &s.m, 0);
	skv_mutex_unlock(&s.m);
	teardown(&s);
}

static bool aborts(void (*fn)(struct shared *))
{
	pid_t pid = fork();
	struct shared s;
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		int nowhere = open("/dev/null", O_WRONLY);

		signal(SIGABRT, SIG_DFL);
		dup2(nowhere, STDERR_FILENO);
		setup(&s);
		fn(&s);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* Wrong on purpose, so the analysis of locks skips them. */
static void nothing_wrong(struct shared *s)
{
	skv_mutex_lock(&s->m);
	skv_mutex_unlock(&s->m);
}
static void lock_twice(struct shared *s) SKV_NO_LOCK_CHECK
{
	skv_mutex_lock(&s->m);
	skv_mutex_lock(&s->m);
}
static void unlock_free(struct shared *s) SKV_NO_LOCK_CHECK { skv_mutex_unlock(&s->m); }
static void *stranger(void *p) SKV_NO_LOCK_CHECK
{
	skv_mutex_unlock(&((struct shared *)p)->m);
	return NULL;
}
static void unlock_as_a_stranger(struct shared *s) SKV_NO_LOCK_CHECK
{
	pthread_t t;

	skv_mutex_lock(&s->m);
	if (pthread_create(&t, NULL, stranger, s) == 0)
		pthread_join(t, NULL);
}
static void write_twice(struct shared *s) SKV_NO_LOCK_CHECK
{
	skv_rwlock_write(&s->l);
	skv_rwlock_write(&s->l);
}
static void write_unlock_free(struct shared *s) SKV_NO_LOCK_CHECK
{
	skv_rwlock_write_unlock(&s->l);
}
static void wait_without_lock(struct shared *s) SKV_NO_LOCK_CHECK { skv_cond_wait(&s->c, &s->m); }
static void timed_wait_without_lock(struct shared *s) SKV_NO_LOCK_CHECK
{
	(void)skv_cond_wait_ms(&s->c, &s->m, 1);
}

static void misuse_aborts(void **state)
{
	(void)state;
	assert_false(aborts(nothing_wrong));
	assert_true(aborts(lock_twice));
	assert_true(aborts(unlock_free));
	assert_true(aborts(unlock_as_a_stranger));
	assert_true(aborts(write_twice));
	assert_true(aborts(write_unlock_free));
	assert_true(aborts(wait_without_lock));
	assert_true(aborts(timed_wait_without_lock));
}

/* ---- readers between writers ----------------------------------------------------------------- */

static _Atomic bool has_read, has_written;
static _Atomic long before_reader; /* times that the second writer came first */

static void *read_once(void *p)
{
	struct shared *s = p;

	skv_rwlock_read(&s->l);
	has_read = true;
	skv_rwlock_read_unlock(&s->l);
	return NULL;
}

static void *write_once(void *p)
{
	struct shared *s = p;

	skv_rwlock_write(&s->l);
	before_reader += !has_read;
	has_written = true;
	skv_rwlock_write_unlock(&s->l);
	return NULL;
}

/* Of a reader and a writer that both wait for a writer, the reader comes first. Seldom it is put
 * off the processor just before it waits, so most rounds count. */
static void a_reader_waits_for_one_writer(void **state)
{
	struct shared s;

	(void)state;
	setup(&s);
	before_reader = 0;
	for (int i = 0; i < 40; i++) {
		pthread_t reader, writer;

		has_read = false;
		skv_rwlock_write(&s.l);
		assert_int_equal(pthread_create(&writer, NULL, write_once, &s), 0);
		assert_int_equal(pthread_create(&reader, NULL, read_once, &s), 0);
		while (!skv_rwlock_readers_wait(&s.l))
			sched_yield();
		poll(NULL, 0, 3); /* if they do not wait by now, the round shows nothing */
		skv_rwlock_write_unlock(&s.l);
		pthread_join(reader, NULL);
		pthread_join(writer, NULL);
	}
	assert_true(before_reader < 20);
	assert_int_equal(s.l.waits, 40);
	assert_true(s.l.waited_us >= 40 * 3000);
	teardown(&s);
}

/* In the middle of a write the reader that waits comes in, and the writer that waits does not. */
static void a_pause_is_for_readers(void **state)
{
	struct shared s;
	int came = 0;

	(void)state;
	setup(&s);
	before_reader = 0;
	for (int i = 0; i < 40; i++) {
		pthread_t reader, writer;

		has_read = has_written = false;
		skv_rwlock_write(&s.l);
		assert_int_equal(pthread_create(&writer, NULL, write_once, &s), 0);
		assert_int_equal(pthread_create(&reader, NULL, read_once, &s), 0);
		while (!skv_rwlock_readers_wait(&s.l))
			sched_yield();
		poll(NULL, 0, 3);
		skv_rwlock_write_pause(&s.l);
		assert_true(skv_rwlock_write_held(&s.l));
		assert_false(has_written);
		came += has_read;
		skv_rwlock_write_unlock(&s.l);
		pthread_join(reader, NULL);
		pthread_join(writer, NULL);
		assert_true(has_written);
	}
	assert_true(came > 20);
	teardown(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_waits_for_one_writer),
		cmocka_unit_test(a_pause_is_for_readers),
		cmocka_unit_test(a_mutex_excludes),
		cmocka_unit_test(a_write_lock_excludes),
		cmocka_unit_test(owners_are_known),
		cmocka_unit_test(waiting_gives_the_lock_away_and_back),
		cmocka_unit_test(waiting_ends_in_time),
		cmocka_unit_test(misuse_aborts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
