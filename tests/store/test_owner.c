/*
 * test_owner.c - names of owners, and when a lease ends early: its process died, its machine
 * booted.
 *
 * Also: what a standby can do while another process, frozen inside a transaction, keeps the write
 * locks. Processes are children of the test; leases of other boots and hosts are written into the
 * database.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "bench_store.h"

struct name {
	char host[65];
	long pid;
	unsigned long long start_time;
	char boot_id[37];
	unsigned long long pid_space;
	char random[20];
};

static struct name own_name(void)
{
	char text[192];
	struct name n;

	skv_owner_name(text);
	assert_int_equal(sscanf(text, "%64[^:]:%ld:%llu:%36[^:]:%llu.%19s", n.host, &n.pid,
				&n.start_time, n.boot_id, &n.pid_space, n.random),
			 6);
	return n;
}

static void write_name(const struct name *n, char out[192])
{
	snprintf(out, 192, "%s:%ld:%llu:%s:%llu.%s", n->host, n->pid, n->start_time, n->boot_id,
		 n->pid_space, n->random);
}

static bool is_dead(struct name n)
{
	char text[192];

	write_name(&n, text);
	return skv_owner_is_dead(text);
}

/* A child that writes its name and then waits to be killed. */
static pid_t make_child(char name[192])
{
	int p[2];
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char text[192] = "";

		skv_owner_name(text);
		if (write(p[1], text, sizeof text) == (ssize_t)sizeof text)
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(p[0], name, 192), 192);
	close(p[0]);
	close(p[1]);
	return pid;
}

static void names_differ(void **state)
{
	struct name a = own_name(), b = own_name();

	(void)state;
	assert_int_equal(a.pid, getpid());
	assert_string_equal(a.host, b.host);
	assert_true(a.start_time > 0 && a.pid_space > 0);
	assert_string_not_equal(a.random, b.random);
	assert_int_equal(strlen(a.random), 16);
}

static void only_a_proven_death_counts(void **state)
{
	struct name me = own_name(), other;

	(void)state;
	assert_false(is_dead(me));
	other = me;
	other.start_time++; /* our pid, but another process's */
	assert_true(is_dead(other));
	other = me;
	other.pid = 0x7ffffff0;
	assert_true(is_dead(other));
	snprintf(other.host, sizeof other.host, "another-host");
	assert_false(is_dead(other));
	other = me;
	other.pid = 0x7ffffff0;
	other.boot_id[0] = other.boot_id[0] == 'f' ? 'e' : 'f';
	assert_false(is_dead(other));
	other = me;
	other.pid = 0x7ffffff0;
	other.pid_space++;
	assert_false(is_dead(other));
	assert_false(skv_owner_is_dead(""));
	assert_false(skv_owner_is_dead("anybody"));
	assert_false(skv_owner_is_dead("a:1:2"));
	assert_false(skv_owner_is_dead("::::"));
}

static void a_killed_process_is_dead_at_once(void **state)
{
	char name[192];
	pid_t pid = make_child(name);
	siginfo_t info;

	(void)state;
	assert_false(skv_owner_is_dead(name));
	kill(pid, SIGSTOP);
	assert_false(skv_owner_is_dead(name)); /* a stopped process may continue */
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(skv_owner_is_dead(name)); /* a zombie */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(skv_owner_is_dead(name));
}

static unsigned n_descriptors(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* More than are remembered: each is told apart, and those that ended keep no descriptor. */
static void many_processes_are_told_apart(void **state)
{
	enum { N = 20 };
	const unsigned before = n_descriptors();
	char name[N][192];
	pid_t pid[N];

	(void)state;
	for (int i = 0; i < N; i++)
		pid[i] = make_child(name[i]);
	for (int i = 0; i < N; i++) {
		assert_false(skv_owner_is_dead(name[i]));
		assert_false(skv_owner_is_dead(name[i]));
	}
	assert_true(n_descriptors() < before + N);
	for (int i = 0; i < N; i++) {
		for (int k = i; k < N; k++)
			assert_false(skv_owner_is_dead(name[k]));
		kill(pid[i], SIGKILL);
		assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
		for (int k = 0; k <= i; k++)
			assert_true(skv_owner_is_dead(name[k]));
	}
	for (int i = 0; i < N; i++)
		assert_true(skv_owner_is_dead(name[i]));
	assert_true(n_descriptors() <= before);
}

static void a_dead_owners_lease_is_free(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	char name[192], holder[192];
	pid_t pid = make_child(name);
	uint64_t old = bench_acquire(b, s, name, 60000), now;

	assert_int_equal(
		skv_store_acquire(s, 0, "next", 1000, &now, holder, sizeof holder, &b->err),
		SKV_E_NOT_OWNER);
	assert_string_equal(holder, name);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	now = bench_acquire(b, s, "next", 1000);
	assert_true(now > old);
	assert_int_equal(skv_store_append(s, 0, old, 1, "x", 1, 0, &b->err), SKV_E_FENCED);
	skv_store_close(s);
}

/* Makes the lease one of another boot, written by this name. */
static void other_boot(struct bench *b, struct name n)
{
	char sql[512], name[192];

	snprintf(n.boot_id, sizeof n.boot_id, "01234567-0123-0123-0123-0123456789ab");
	write_name(&n, name);
	snprintf(sql, sizeof sql, "UPDATE owner SET boot_id = '%s', owner = '%s'", n.boot_id, name);
	bench_sql(b, "", sql);
}

static void a_lease_of_this_host_ends_with_its_boot(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	char me[192];
	uint64_t fence = bench_acquire(b, s, "old", 60000), now;

	if (bench_kind->ops == &skv_store_memory) {
		skv_store_close(s);
		return;
	}
	skv_owner_name(me);
	other_boot(b, own_name());
	now = bench_acquire(b, s, me, 60000);
	assert_true(now > fence);
	skv_store_close(s);
}

/* The clock of another host means nothing here: only time measured by this host counts. */
static void a_lease_of_another_host_is_waited_out(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	struct name stranger = own_name();
	char me[192];
	uint64_t fence = bench_acquire(b, s, "old", 5000);

	if (bench_kind->ops == &skv_store_memory) {
		skv_store_close(s);
		return;
	}
	snprintf(stranger.host, sizeof stranger.host, "elsewhere");
	skv_owner_name(me);
	other_boot(b, stranger);
	skv_fake_clock_advance(&b->clock, 1000000);
	assert_int_equal(skv_store_acquire(s, 0, me, 1000, &fence, NULL, 0, &b->err),
			 SKV_E_NOT_OWNER);
	skv_fake_clock_advance(&b->clock, 4999);
	assert_int_equal(skv_store_acquire(s, 0, me, 1000, &fence, NULL, 0, &b->err),
			 SKV_E_NOT_OWNER);
	/* The row moved: its owner lives. */
	bench_sql(b, "", "UPDATE owner SET expires_boottime_ms = expires_boottime_ms + 1");
	skv_fake_clock_advance(&b->clock, 1);
	assert_int_equal(skv_store_acquire(s, 0, me, 1000, &fence, NULL, 0, &b->err),
			 SKV_E_NOT_OWNER);
	skv_fake_clock_advance(&b->clock, 5000);
	bench_ok(b, skv_store_acquire(s, 0, me, 1000, &fence, NULL, 0, &b->err));
	skv_store_close(s);
}

/* ---- another process is frozen inside a transaction ------------------------------------------ */

/* Runs a child's write transaction on a file of the store; true when it has the lock. */
static bool lock_file(struct bench *b, const char *tail)
{
	sqlite3 *db;

	return sqlite3_open(bench_file(b, tail), &db) == SQLITE_OK &&
	       sqlite3_exec(db, "BEGIN IMMEDIATE; UPDATE store SET settled = settled + 1", NULL,
			    NULL, NULL) == SQLITE_OK;
}

/* A stopped child that keeps the write locks of both files. No store is open here meanwhile: after
 * fork, SQLite may be used in one of the two processes only. */
static pid_t freeze_a_writer(struct bench *b)
{
	int p[2], status;
	char told = 0;
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* A test that fails must not leave it behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (lock_file(b, "") && lock_file(b, "-checkpoint") && write(p[1], "x", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(p[1]);
	assert_int_equal(read(p[0], &told, 1), 1);
	close(p[0]);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static void kill_writer(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_standby_starts_while_the_owner_is_frozen(void **state)
{
	struct bench *b = *state;
	char holder[192] = "";
	struct skv_buf v = { 0 };
	uint64_t fence, begin;
	struct skv_store *s = bench_open(b);
	pid_t pid;

	bench_acquire(b, s, "owner", 60000);
	bench_ok(b, skv_store_put(s, NULL, "k", SKV_VERSION_NONE, "x", 1, NULL, &b->err));
	skv_store_close(s);
	pid = freeze_a_writer(b);
	b->options.reserve_bytes = 65536;
	begin = skv_now_us();
	s = bench_open(b);
	bench_ok(b, skv_store_get(s, "k", &v, NULL, &b->err));
	bench_holds(b, s, 0, "0||");
	assert_int_equal(
		skv_store_acquire(s, 0, "next", 1000, &fence, holder, sizeof holder, &b->err),
		SKV_E_NOT_OWNER);
	assert_string_equal(holder, "owner");
	assert_true(skv_now_us() - begin < 2000000); /* the call did not wait */
	skv_store_close(s);
	kill_writer(pid);
	skv_buf_destroy(&v);
}

/* The lease is over, but the write lock is not: the standby is told to try again, and can. */
static void an_acquire_that_finds_the_store_locked(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	uint64_t old = bench_acquire(b, s, "owner", 1000), fence = 0, begin;
	pid_t pid;

	skv_store_close(s);
	pid = freeze_a_writer(b);
	skv_fake_clock_advance(&b->clock, 1000);
	s = bench_open(b);
	for (int i = 0; i < 2; i++) {
		begin = skv_now_us();
		assert_int_equal(skv_store_acquire(s, 0, "next", 1000, &fence, NULL, 0, &b->err),
				 SKV_E_STORE_IO);
		assert_non_null(strstr(b->err.message, "locked; nothing was changed, try again"));
		assert_true(skv_now_us() - begin < 10000000);
	}
	kill_writer(pid);
	fence = bench_acquire(b, s, "next", 1000);
	assert_true(fence > old);
	bench_append(b, s, fence, 1, "one");
	bench_holds(b, s, 0, "0||1:one");
	skv_store_close(s);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
	const struct CMUnitTest names[] = {
		cmocka_unit_test(names_differ),
		cmocka_unit_test(only_a_proven_death_counts),
		cmocka_unit_test(a_killed_process_is_dead_at_once),
		cmocka_unit_test(many_processes_are_told_apart),
	};
	const struct CMUnitTest leases[] = {
		CASE(a_dead_owners_lease_is_free),
		CASE(a_lease_of_this_host_ends_with_its_boot),
		CASE(a_lease_of_another_host_is_waited_out),
	};
	const struct CMUnitTest frozen[] = {
		CASE(a_standby_starts_while_the_owner_is_frozen),
		CASE(an_acquire_that_finds_the_store_locked),
	};
	int failed = cmocka_run_group_tests_name("owner names", names, NULL, NULL);

	for (int i = 0; i < 2; i++) {
		bench_kind = &bench_kinds[i];
		failed += cmocka_run_group_tests_name(bench_kind->name, leases, NULL, NULL);
	}
	for (int i = 1; i < 3; i++) {
		bench_kind = &bench_kinds[i];
		failed += cmocka_run_group_tests_name(bench_kind->name, frozen, NULL, NULL);
	}
	return failed != 0;
}
