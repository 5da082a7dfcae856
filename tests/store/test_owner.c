/*
 * test_owner.c - names of owners, and when a lease ends early: its process died, its machine
 * booted.
 *
 * Processes are children of the test; leases of other boots and hosts are written into the
 * database.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

	kvb_owner_name(text);
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
	return kvb_owner_is_dead(text);
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

		kvb_owner_name(text);
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
	assert_false(kvb_owner_is_dead(""));
	assert_false(kvb_owner_is_dead("anybody"));
	assert_false(kvb_owner_is_dead("a:1:2"));
	assert_false(kvb_owner_is_dead("::::"));
}

static void a_killed_process_is_dead_at_once(void **state)
{
	char name[192];
	pid_t pid = make_child(name);
	siginfo_t info;

	(void)state;
	assert_false(kvb_owner_is_dead(name));
	kill(pid, SIGSTOP);
	assert_false(kvb_owner_is_dead(name)); /* it may go on */
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(kvb_owner_is_dead(name)); /* a zombie */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(kvb_owner_is_dead(name));
}

static void a_dead_owners_lease_is_free(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	char name[192], holder[192];
	pid_t pid = make_child(name);
	uint64_t old = bench_acquire(b, s, name, 60000), now;

	assert_int_equal(
		kvb_store_acquire(s, 0, "next", 1000, &now, holder, sizeof holder, &b->err),
		KVB_E_NOT_OWNER);
	assert_string_equal(holder, name);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	now = bench_acquire(b, s, "next", 1000);
	assert_true(now > old);
	assert_int_equal(kvb_store_append(s, 0, old, 1, "x", 1, 0, &b->err), KVB_E_FENCED);
	kvb_store_close(s);
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
	struct kvb_store *s = bench_open(b);
	char me[192];
	uint64_t fence = bench_acquire(b, s, "old", 60000), now;

	if (bench_kind->ops == &kvb_store_memory) {
		kvb_store_close(s);
		return;
	}
	kvb_owner_name(me);
	other_boot(b, own_name());
	now = bench_acquire(b, s, me, 60000);
	assert_true(now > fence);
	kvb_store_close(s);
}

/* Its clock says nothing here: only time under our own eyes counts. */
static void a_lease_of_another_host_is_waited_out(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	struct name stranger = own_name();
	char me[192];
	uint64_t fence = bench_acquire(b, s, "old", 5000);

	if (bench_kind->ops == &kvb_store_memory) {
		kvb_store_close(s);
		return;
	}
	snprintf(stranger.host, sizeof stranger.host, "elsewhere");
	kvb_owner_name(me);
	other_boot(b, stranger);
	kvb_fake_clock_advance(&b->clock, 1000000);
	assert_int_equal(kvb_store_acquire(s, 0, me, 1000, &fence, NULL, 0, &b->err),
			 KVB_E_NOT_OWNER);
	kvb_fake_clock_advance(&b->clock, 4999);
	assert_int_equal(kvb_store_acquire(s, 0, me, 1000, &fence, NULL, 0, &b->err),
			 KVB_E_NOT_OWNER);
	/* It moved: it lives. */
	bench_sql(b, "", "UPDATE owner SET expires_boottime_ms = expires_boottime_ms + 1");
	kvb_fake_clock_advance(&b->clock, 1);
	assert_int_equal(kvb_store_acquire(s, 0, me, 1000, &fence, NULL, 0, &b->err),
			 KVB_E_NOT_OWNER);
	kvb_fake_clock_advance(&b->clock, 5000);
	bench_ok(b, kvb_store_acquire(s, 0, me, 1000, &fence, NULL, 0, &b->err));
	kvb_store_close(s);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
	const struct CMUnitTest names[] = {
		cmocka_unit_test(names_differ),
		cmocka_unit_test(only_a_proven_death_counts),
		cmocka_unit_test(a_killed_process_is_dead_at_once),
	};
	const struct CMUnitTest leases[] = {
		CASE(a_dead_owners_lease_is_free),
		CASE(a_lease_of_this_host_ends_with_its_boot),
		CASE(a_lease_of_another_host_is_waited_out),
	};
	int failed = cmocka_run_group_tests_name("owner names", names, NULL, NULL);

	for (int i = 0; i < 2; i++) {
		bench_kind = &bench_kinds[i];
		failed += cmocka_run_group_tests_name(bench_kind->name, leases, NULL, NULL);
	}
	return failed != 0;
}
