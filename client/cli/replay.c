/*
 * replay.c - kvblock replay: a trace of requests against a running manager, every byte verified.
 *
 * The main thread reads the trace, makes the instance, starts the client threads (replay_worker.c)
 * and shows progress; they share one handle. The contents of a block are a pure function of
 * instance, spec and key (pattern.h), so what is read is checked byte by byte, besides the
 * checksum.
 */
#include "replay.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <kvb/clock.h>
#include <kvb/mem.h>

static int load(struct kvb_replay *r, const char *path)
{
	bool is_stdin = strcmp(path, "-") == 0;
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	char why[256];
	int rc;

	if (!f)
		return kvb_cli_usage(r->cli, "%s: %s", path, strerror(errno));
	rc = kvb_trace_read(f, r->requests, &r->trace, why);
	if (!is_stdin)
		fclose(f);
	if (rc != 0)
		return kvb_cli_usage(r->cli, "%s: %s", path, why);
	if (r->trace.n == 0)
		return kvb_cli_usage(r->cli, "%s holds no request", path);
	if (!r->hits_path)
		return KVB_EXIT_OK;
	r->hits = kvb_calloc(r->trace.n, sizeof *r->hits);
	if (!r->hits)
		return kvb_cli_usage(r->cli, "out of memory");
	r->hits_file = fopen(r->hits_path, "we");
	if (!r->hits_file)
		return kvb_cli_usage(r->cli, "%s: %s", r->hits_path, strerror(errno));
	return KVB_EXIT_OK;
}

static int make_instance(struct kvb_replay *r)
{
	struct kvblock_spec specs[KVBLOCK_MAX_SPECS];
	char names[KVBLOCK_MAX_SPECS][8];
	struct kvblock_instance i = { .id = r->instance, .group = r->group, .block_tokens = 512,
				      .specs = specs, .n_specs = r->n_specs };
	struct kvblock_error err;

	for (uint32_t s = 0; s < r->n_specs; s++) {
		snprintf(names[s], sizeof names[s], "tp%u", s % 100);
		specs[s] = (struct kvblock_spec){ names[s], r->block_bytes / r->n_specs };
	}
	if (kvb_cli_make_instance(r->kv, &i, r->storage, &err) != KVBLOCK_OK)
		return kvb_cli_fail(r->cli, &err);
	return KVB_EXIT_OK;
}

static void merge(struct kvb_replay *r, const struct kvb_replay_worker *w)
{
	const uint64_t *from = (const uint64_t *)&w->counts;
	uint64_t *to = (uint64_t *)&r->sum;

	for (size_t i = 0; i < sizeof w->counts / sizeof *from; i++)
		to[i] += from[i];
	kvb_histogram_merge(&r->lookup, &w->lookup);
	kvb_histogram_merge(&r->start, &w->start);
	kvb_histogram_merge(&r->finish, &w->finish);
}

static void watch(struct kvb_replay *r)
{
	bool terminal = isatty(STDERR_FILENO);

	kvb_mutex_lock(&r->lock);
	while (r->running > 0) {
		kvb_cond_wait_ms(&r->ended, &r->lock, 200);
		if (terminal)
			kvb_replay_progress(r);
	}
	kvb_mutex_unlock(&r->lock);
	if (terminal)
		fputs("\r\033[K", stderr);
}

static int run_workers(struct kvb_replay *r, struct kvb_replay_worker *w)
{
	uint32_t started = 0;
	bool ok = true;

	for (uint32_t i = 0; i < r->n_clients && ok; i++)
		ok = kvb_replay_worker_init(&w[i], r);
	if (!ok)
		return kvb_cli_usage(r->cli,
				     "out of memory: use fewer --clients or smaller --block-bytes");
	r->begin_us = kvb_now_us();
	r->running = r->n_clients;
	for (; started < r->n_clients; started++)
		if (pthread_create(&w[started].thread, NULL, kvb_replay_work, &w[started]) != 0)
			break;
	if (started < r->n_clients) {
		atomic_store(&r->stop, true);
		kvb_mutex_lock(&r->lock);
		r->running -= r->n_clients - started;
		kvb_mutex_unlock(&r->lock);
	}
	watch(r);
	for (uint32_t i = 0; i < started; i++)
		pthread_join(w[i].thread, NULL);
	r->wall_us = kvb_now_us() - r->begin_us;
	return started == r->n_clients ? KVB_EXIT_OK : kvb_cli_usage(r->cli, "no more threads");
}

/* Exit code of a replay that ran. */
static int verdict(struct kvb_replay *r)
{
	if (r->error.code)
		fprintf(stderr, "kvblock replay: %s%s\n",
			r->fatal ? "stopped: " : "first failure: ", r->error.message);
	if (r->sum.mismatches > 0)
		return KVB_EXIT_MISMATCH;
	if (r->fatal) {
		int code = kvb_cli_exit_of(r->error.code);

		return code == KVB_EXIT_MISS ? KVB_EXIT_REFUSED : code;
	}
	return r->sum.failed || r->sum.read_errors ? KVB_EXIT_REFUSED : KVB_EXIT_OK;
}

static int replay(struct kvb_replay *r)
{
	struct kvb_replay_worker *w = kvb_calloc(r->n_clients, sizeof *w);
	int rc = w ? run_workers(r, w) : kvb_cli_usage(r->cli, "out of memory");

	for (uint32_t i = 0; w && i < r->n_clients; i++) {
		merge(r, &w[i]);
		kvb_replay_worker_free(&w[i]);
	}
	kvb_free(w);
	if (rc == KVB_EXIT_OK && r->hits)
		rc = kvb_replay_write_hits(r);
	if (rc == KVB_EXIT_OK)
		rc = kvb_replay_report(r);
	return rc == KVB_EXIT_OK ? verdict(r) : rc;
}

static int open_and_replay(struct kvb_replay *r)
{
	struct kvblock_options o;
	char name[64];
	int rc;

	kvb_cli_options(r->cli, &o);
	o.on_call = kvb_replay_on_call;
	o.checksum = !r->no_checksum;
	/* A manager that restarts in the middle is waited for. */
	o.rounds = 1000;
	if (!r->instance) {
		snprintf(name, sizeof name, "replay-%llux%u", (unsigned long long)r->block_bytes,
			 r->n_specs);
		r->instance = name;
	}
	rc = kvb_cli_open(r->cli, &o, &r->kv);
	if (rc != KVB_EXIT_OK)
		return rc;
	rc = make_instance(r);
	if (rc == KVB_EXIT_OK)
		rc = replay(r);
	kvblock_close(r->kv);
	return rc;
}

static int set_option(struct kvb_replay *r, int opt, const char *value)
{
	uint64_t v = 0;
	bool ok = true;

	switch (opt) {
	case 'b':
		ok = kvb_args_size(value, &r->block_bytes) && r->block_bytes >= 1 &&
		     r->block_bytes <= 1ull << 32;
		return ok ? 0 : kvb_cli_usage(r->cli, "--block-bytes: a size, at most 4G");
	case 's':
		ok = kvb_args_number(value, 1, KVBLOCK_MAX_SPECS, &v);
		r->n_specs = (uint32_t)v;
		return ok ? 0 : kvb_cli_usage(r->cli, "--spec-count: 1..%u", KVBLOCK_MAX_SPECS);
	case 'c':
		ok = kvb_args_number(value, 1, 1024, &v);
		r->n_clients = (uint32_t)v;
		return ok ? 0 : kvb_cli_usage(r->cli, "--clients: 1..1024");
	case 'n':
		ok = kvb_args_number(value, 1, UINT32_MAX, &r->requests);
		return ok ? 0 : kvb_cli_usage(r->cli, "--requests: a number");
	case 'x':
		ok = kvb_args_factor(value, &r->speed);
		return ok ? 0 : kvb_cli_usage(r->cli, "--speed: a factor above 0, e.g. 10");
	case 'k':
		r->no_checksum = true;
		return 0;
	case 'l':
		ok = kvb_args_number(value, 0, 600000, &v);
		r->lease_ms = (uint32_t)v;
		return ok ? 0 : kvb_cli_usage(r->cli, "--lease: milliseconds, 0..600000");
	case 't':
		r->hits_path = value;
		return 0;
	case KVB_OPT_INSTANCE:
		r->instance = value;
		return 0;
	case 'g':
		r->group = value;
		return 0;
	case 'r':
		r->storage = value;
		return 0;
	default:
		return kvb_cli_global_option(r->cli, opt, value);
	}
}

int kvb_cmd_replay(struct kvb_cli *cli, int argc, char **argv)
{
	static const struct option options[] = {
		{ "block-bytes", required_argument, NULL, 'b' },
		{ "spec-count", required_argument, NULL, 's' },
		{ "clients", required_argument, NULL, 'c' },
		{ "requests", required_argument, NULL, 'n' },
		{ "speed", required_argument, NULL, 'x' },
		{ "no-checksum", no_argument, NULL, 'k' },
		{ "lease", required_argument, NULL, 'l' },
		{ "hits", required_argument, NULL, 't' },
		{ "instance", required_argument, NULL, KVB_OPT_INSTANCE },
		{ "group", required_argument, NULL, 'g' },
		{ "storage", required_argument, NULL, 'r' },
		KVB_CLI_GLOBAL_OPTIONS,
	};
	static struct kvb_replay r; /* histograms are large for a stack */
	int opt, rc = KVB_EXIT_OK;

	r = (struct kvb_replay){ .cli = cli, .group = "default", .storage = "default",
				 .block_bytes = 65536, .n_specs = 1, .n_clients = 4,
				 .lease_ms = KVBLOCK_LEASE_DEFAULT };
	kvb_mutex_init(&r.lock);
	kvb_cond_init(&r.ended);
	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, KVB_CLI_SHORT, options, NULL)) != -1)
		rc = set_option(&r, opt, optarg);
	if (rc == KVB_EXIT_OK && argc - optind != 1)
		rc = kvb_cli_usage(cli,
				   "name one trace, or - for stdin (kvblock gen-trace makes one)");
	if (rc == KVB_EXIT_OK && r.block_bytes % r.n_specs != 0)
		rc = kvb_cli_usage(cli, "--block-bytes must be a multiple of --spec-count");
	if (rc == KVB_EXIT_OK)
		rc = load(&r, argv[optind]);
	if (rc == KVB_EXIT_OK)
		rc = open_and_replay(&r);
	if (r.hits_file)
		fclose(r.hits_file);
	kvb_free(r.hits);
	kvb_trace_free(&r.trace);
	kvb_cond_destroy(&r.ended);
	kvb_mutex_destroy(&r.lock);
	return rc;
}
