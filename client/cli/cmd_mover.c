/*
 * cmd_mover.c - slabkv mover: copies blocks of files and storages that drain with --move, and
 * blocks wanted in fast tiers, and verifies blocks reported as damaged, until stopped. slabkv
 * scrub: verifies all blocks, the longest unchecked first.
 *
 * Both keep no state: a kill at any point costs a repeat. One thread; I/O has idle priority.
 */
#include "cli.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <skv/clock.h>

#define IDLE_MS 500u     /* pause between requests when there is nothing to move */
#define TELL_MS 10000u   /* between lines of progress */
#define ONCE_MS 5000u    /* --once ends after this time without anything to move */
#define DEADLINE_MS 60000u
#define MOST_SLOTS 128u
#define SLICES 4u        /* of a second, which a limit is kept in */
#define SCRUB_LIMIT (100ull << 20) /* bytes per second, by default */
#define SCRUB_OLDER_S (7 * 86400ull)

struct mover {
	struct skv_cli *cli;
	struct slabkv *kv;
	uint64_t limit; /* bytes per second; 0 = none */
	bool once;
	bool scrub;
	uint64_t older_s;  /* scrub: what was checked since is left out; 0 = once: nothing is */
	uint64_t began_ms;  /* when the scrub began, by the manager's clock; 0 = not known yet */
	struct { uint64_t right, bytes, damaged, unread; } checked; /* in all */
	uint64_t left_bytes; /* of the scrub, as of the last round */
	uint64_t slot;  /* bytes of one, as of the last round; 0 = not known yet */
	uint64_t moved, failed, mismatches, bytes; /* since the last report */
	uint64_t told_us;
	uint64_t all_moved, all_failed, all_bytes;
	bool complained; /* of a manager that does not answer; reported once */
};

static volatile sig_atomic_t ending;

static void on_signal(int number)
{
	(void)number;
	ending = 1;
}

static void listen_to_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
}

/* Lowers the process's priority, as far as the kernel permits. */
static void stand_back(void)
{
	const int whoever = 1, idle = 3 << 13; /* IOPRIO_WHO_PROCESS, IOPRIO_CLASS_IDLE */

	(void)!nice(10);
	(void)syscall(SYS_ioprio_set, whoever, 0, idle);
}

/* Waits; ends early on a signal to end. */
static void rest(uint64_t ms)
{
	const uint64_t until = skv_now_us() + ms * 1000;

	while (!ending && skv_now_us() < until) {
		uint64_t left = until - skv_now_us();
		struct timespec t = { .tv_nsec = (long)(left < 100000 ? left : 100000) * 1000 };

		nanosleep(&t, NULL);
	}
}

static void tell(struct mover *m, bool last)
{
	uint64_t now = skv_now_us();
	char size[24];

	if (!last && now - m->told_us < TELL_MS * 1000ull)
		return;
	m->told_us = now;
	if (!m->moved && !m->failed)
		return;
	skv_args_print_size(m->bytes, size);
	fprintf(stderr, "moved %" PRIu64 " blocks (%s)", m->moved, size);
	if (m->failed)
		fprintf(stderr, ", %" PRIu64 " not: they went meanwhile, or could not be copied",
			m->failed);
	if (m->mismatches)
		fprintf(stderr, "; %" PRIu64 " had a wrong checksum", m->mismatches);
	fputc('\n', stderr);
	m->all_moved += m->moved;
	m->all_failed += m->failed;
	m->all_bytes += m->bytes;
	m->moved = m->failed = m->mismatches = m->bytes = 0;
}

static void tell_checked(struct mover *m, bool last)
{
	uint64_t now = skv_now_us();
	char size[24], left[24];

	if (!last && now - m->told_us < TELL_MS * 1000ull)
		return;
	m->told_us = now;
	skv_args_print_size(m->checked.bytes, size);
	skv_args_print_size(m->left_bytes, left);
	fprintf(stderr,
		"verified %" PRIu64 " blocks (%s), %" PRIu64 " were damaged, %" PRIu64
		" could not be read; %s of slab files are due\n",
		m->checked.right, size, m->checked.damaged, m->checked.unread, left);
}

/* So many that a limit is kept from one part of a second to the next. */
static uint32_t slots_of_round(const struct mover *m)
{
	uint64_t n;

	if (!m->limit)
		return MOST_SLOTS;
	n = m->slot ? m->limit / SLICES / m->slot : 1;
	return n < 1 ? 1 : n > MOST_SLOTS ? MOST_SLOTS : (uint32_t)n;
}

/* A limit counts what is copied once: it is read and written. */
static void keep_limit(struct mover *m, const struct slabkv_moved *r, uint64_t began_us)
{
	uint64_t took = skv_now_us() - began_us, due;

	if (r->moved)
		m->slot = r->bytes / r->moved;
	if (!m->limit || !r->bytes)
		return;
	due = r->bytes * 1000000 / m->limit;
	if (due > took)
		rest((due - took) / 1000);
}

/* Returns true if a retry may help. */
static bool complain(struct mover *m, int status, const struct slabkv_error *err, int *rc)
{
	const bool over = status == SLABKV_E_SESSION_EXPIRED ||
			  status == SLABKV_E_NOT_FOUND;

	if (status == SLABKV_E_FORBIDDEN || status == SLABKV_E_UNAUTHENTICATED ||
	    status == SLABKV_E_INTERNAL) {
		*rc = skv_cli_fail(m->cli, err);
		return false;
	}
	if (!m->complained || over)
		fprintf(stderr, "slabkv mover: %s%s\n", err->message,
			over ? "; these blocks are moved again" : "; it is tried again");
	m->complained = true;
	return true;
}

static void count(struct mover *m, const struct slabkv_moved *r)
{
	assert(m->kv && (m->limit || !m->scrub));
	if (r->checks) {
		m->checked.right += r->moved;
		m->checked.bytes += r->bytes;
		m->checked.damaged += r->hidden;
		m->checked.unread += r->unread;
		return;
	}
	m->moved += r->moved;
	m->failed += r->failed;
	m->mismatches += r->mismatches;
	m->bytes += r->bytes;
}

/* Returns true if nothing is left to do. */
static bool is_done(const struct mover *m, const struct slabkv_moved *r, uint64_t idle_since_us)
{
	if (!m->once)
		return false;
	return m->scrub ? !r->taken && !r->more
			: skv_now_us() - idle_since_us > ONCE_MS * 1000ull;
}

/* Returns the time before which the next round of a scrub asks for blocks: 0 (all blocks) until the
 * manager has reported its time. */
static uint64_t check_before(const struct mover *m)
{
	assert(m->scrub || !m->older_s);
	return m->older_s ? skv_wall_ms(&skv_clock_system) - m->older_s * 1000 : m->began_ms;
}

static int work(struct mover *m)
{
	uint64_t idle_since = skv_now_us();
	int rc = SKV_EXIT_OK;

	while (!ending) {
		struct slabkv_move_options o = { .size = sizeof o, .max = slots_of_round(m),
						 .deadline_ms = DEADLINE_MS, .check = m->scrub,
						 .check_before_ms = check_before(m) };
		struct slabkv_moved r = { .size = sizeof r };
		struct slabkv_error err;
		uint64_t began = skv_now_us();
		int status = slabkv_move(m->kv, &o, &r, &err);

		count(m, &r);
		if (status != SLABKV_OK && !complain(m, status, &err, &rc))
			break;
		if (status == SLABKV_OK) {
			if (r.failed && *err.message && !m->complained)
				fprintf(stderr, "slabkv mover: %s\n", err.message);
			m->complained = r.failed > 0;
		}
		if (r.moved)
			idle_since = skv_now_us();
		tell(m, false);
		if (m->scrub) {
			m->left_bytes = r.left_bytes;
			tell_checked(m, false);
			m->began_ms = m->began_ms ? m->began_ms : r.now_ms;
		}
		if (status == SLABKV_OK && is_done(m, &r, idle_since))
			break;
		if (r.moved)
			keep_limit(m, &r, began);
		else
			rest(IDLE_MS);
	}
	tell(m, true);
	if (m->scrub || m->checked.right || m->checked.damaged)
		tell_checked(m, true);
	return rc;
}

static int parse(struct mover *m, int argc, char **argv)
{
	const struct skv_cli_option options[] = {
		{ "older", SKV_CLI_TIME, &m->older_s, 0, 0, "a time, like 7d or 12h", NULL },
		{ "limit", SKV_CLI_SIZE, &m->limit, 1, UINT64_MAX, "bytes per second, like 200M",
		  NULL },
		{ "once", SKV_CLI_FLAG, &m->once, 0, 0, NULL, NULL },
		SKV_CLI_OPTIONS_END
	};
	int rc = skv_cli_parse(m->cli, argc, argv, m->scrub ? options : options + 1, NULL);

	if (rc == SKV_EXIT_OK && optind < argc)
		rc = skv_cli_usage(m->cli, "'%s': it takes no arguments", argv[optind]);
	return rc;
}

static int run(struct mover *m)
{
	int rc;

	listen_to_signals();
	rc = skv_cli_open(m->cli, NULL, &m->kv);
	if (rc != SKV_EXIT_OK)
		return rc;
	stand_back();
	rc = work(m);
	slabkv_close(m->kv);
	assert(m->moved == 0 && m->failed == 0); /* all is reported */
	return rc;
}

int skv_cmd_mover(struct skv_cli *cli, int argc, char **argv)
{
	struct mover m = { .cli = cli, .told_us = skv_now_us() };
	int rc = parse(&m, argc, argv);

	if (rc == SKV_EXIT_OK)
		rc = run(&m);
	if (cli->json && rc == SKV_EXIT_OK)
		rc = skv_cli_print_json(json_pack("{s:I, s:I, s:I}", "moved",
						  (json_int_t)m.all_moved, "failed",
						  (json_int_t)m.all_failed, "bytes",
						  (json_int_t)m.all_bytes));
	return rc;
}

int skv_cmd_scrub(struct skv_cli *cli, int argc, char **argv)
{
	struct mover m = { .cli = cli, .told_us = skv_now_us(), .scrub = true,
			   .limit = SCRUB_LIMIT };
	int rc = parse(&m, argc, argv);

	assert(m.scrub && m.limit > 0);
	if (!m.once && !m.older_s)
		m.older_s = SCRUB_OLDER_S;
	if (rc == SKV_EXIT_OK)
		rc = run(&m);
	if (cli->json && rc == SKV_EXIT_OK)
		rc = skv_cli_print_json(json_pack("{s:I, s:I, s:I, s:I, s:b}", "right",
						  (json_int_t)m.checked.right, "bytes",
						  (json_int_t)m.checked.bytes, "damaged",
						  (json_int_t)m.checked.damaged, "unread",
						  (json_int_t)m.checked.unread, "whole",
						  m.once && !ending));
	if (rc != SKV_EXIT_OK)
		return rc;
	return m.checked.damaged ? SKV_EXIT_MISMATCH
	       : m.checked.unread ? SKV_EXIT_MISS : SKV_EXIT_OK;
}
