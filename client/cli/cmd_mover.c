/*
 * cmd_mover.c - slabkv mover: copies the blocks of what drains with --move, and those that are
 * wanted in fast tiers, until told to end.
 *
 * It keeps nothing: killed at any point it costs a repeat. One thread; its I/O has idle priority.
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

#define IDLE_MS 500u     /* between questions when there is nothing to move */
#define TELL_MS 10000u   /* between lines of progress */
#define ONCE_MS 5000u    /* --once ends when there was nothing to move so long */
#define DEADLINE_MS 60000u
#define MOST_SLOTS 128u
#define SLICES 4u        /* of a second, which a limit is kept in */

struct mover {
	struct skv_cli *cli;
	struct slabkv *kv;
	uint64_t limit; /* bytes per second; 0 = none */
	bool once;
	uint64_t slot;  /* bytes of one, as of the last round; 0 = not known yet */
	uint64_t moved, failed, mismatches, bytes; /* since told */
	uint64_t told_us;
	uint64_t all_moved, all_failed, all_bytes;
	bool complained; /* of a manager that does not answer; told once */
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

/* What it does not get from the kernel it does without. */
static void stand_back(void)
{
	const int whoever = 1, idle = 3 << 13; /* IOPRIO_WHO_PROCESS, IOPRIO_CLASS_IDLE */

	(void)!nice(10);
	(void)syscall(SYS_ioprio_set, whoever, 0, idle);
}

/* Ends early when it is told to end. */
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

/* True: it may be tried again. */
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

static int work(struct mover *m)
{
	uint64_t idle_since = skv_now_us();
	int rc = SKV_EXIT_OK;

	while (!ending) {
		struct slabkv_move_options o = { .size = sizeof o, .max = slots_of_round(m),
						 .deadline_ms = DEADLINE_MS };
		struct slabkv_moved r = { .size = sizeof r };
		struct slabkv_error err;
		uint64_t began = skv_now_us();
		int status = slabkv_move(m->kv, &o, &r, &err);

		m->moved += r.moved;
		m->failed += r.failed;
		m->mismatches += r.mismatches;
		m->bytes += r.bytes;
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
		if (m->once && skv_now_us() - idle_since > ONCE_MS * 1000ull)
			break;
		if (r.moved)
			keep_limit(m, &r, began);
		else
			rest(IDLE_MS);
	}
	tell(m, true);
	return rc;
}

int skv_cmd_mover(struct skv_cli *cli, int argc, char **argv)
{
	enum { OPT_LIMIT = 1, OPT_ONCE };
	static const struct option options[] = { { "limit", required_argument, NULL, OPT_LIMIT },
						 { "once", no_argument, NULL, OPT_ONCE },
						 SKV_CLI_GLOBAL_OPTIONS };
	struct mover m = { .cli = cli, .told_us = skv_now_us() };
	int opt, rc = SKV_EXIT_OK;

	while (rc == SKV_EXIT_OK &&
	       (opt = getopt_long(argc, argv, SKV_CLI_SHORT, options, NULL)) != -1) {
		if (opt == OPT_ONCE)
			m.once = true;
		else if (opt != OPT_LIMIT)
			rc = skv_cli_global_option(cli, opt, optarg);
		else if (!skv_args_size(optarg, &m.limit) || m.limit == 0)
			rc = skv_cli_usage(cli, "--limit: '%s' is not bytes per second like 200M",
					   optarg);
	}
	if (rc == SKV_EXIT_OK && optind < argc)
		rc = skv_cli_usage(cli, "'%s': it takes no arguments", argv[optind]);
	listen_to_signals();
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_open(cli, NULL, &m.kv);
	if (rc != SKV_EXIT_OK)
		return rc;
	stand_back();
	rc = work(&m);
	assert(m.moved == 0 && m.failed == 0); /* all is told */
	if (cli->json && rc == SKV_EXIT_OK)
		rc = skv_cli_print_json(json_pack("{s:I, s:I, s:I}", "moved",
						  (json_int_t)m.all_moved, "failed",
						  (json_int_t)m.all_failed, "bytes",
						  (json_int_t)m.all_bytes));
	slabkv_close(m.kv);
	return rc;
}
