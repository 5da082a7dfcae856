/*
 * replay.c - slabkv replay: a trace of requests against a running manager, every byte verified.
 *
 * The main thread reads the trace, makes the instance, starts the client threads (replay_worker.c)
 * and shows progress; they share one handle. The contents of a block are a pure function of
 * instance, spec and key (pattern.h), so what is read is checked byte by byte, besides the
 * checksum.
 */
#include "replay.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/mem.h>

static int load(struct skv_replay *r, const char *path)
{
	bool is_stdin = strcmp(path, "-") == 0;
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	char why[256];
	int rc;

	if (!f)
		return skv_cli_usage(r->cli, "%s: %s", path, strerror(errno));
	rc = skv_trace_read(f, r->requests, &r->trace, why);
	if (!is_stdin)
		fclose(f);
	if (rc != 0)
		return skv_cli_usage(r->cli, "%s: %s", path, why);
	if (r->trace.n == 0)
		return skv_cli_usage(r->cli, "%s holds no request", path);
	if (!r->hits_path)
		return SKV_EXIT_OK;
	r->hits = skv_calloc(r->trace.n, sizeof *r->hits);
	if (!r->hits)
		return skv_cli_usage(r->cli, "out of memory");
	r->hits_file = fopen(r->hits_path, "we");
	if (!r->hits_file)
		return skv_cli_usage(r->cli, "%s: %s", r->hits_path, strerror(errno));
	return SKV_EXIT_OK;
}

static int make_instance(struct skv_replay *r)
{
	struct slabkv_spec specs[SLABKV_MAX_SPECS];
	char names[SLABKV_MAX_SPECS][8];
	struct slabkv_instance i = { .size = sizeof(struct slabkv_instance), .id = r->instance,
				     .group = r->group, .block_tokens = 512,
				      .specs = specs, .spec_size = sizeof(struct slabkv_spec),
				      .n_specs = r->n_specs };
	struct slabkv_error err;

	_Static_assert(SLABKV_MAX_SPECS <= 100, "no name is made twice");
	assert(r->n_specs >= 1 && r->n_specs <= SLABKV_MAX_SPECS &&
	       r->block_bytes % r->n_specs == 0);
	for (uint32_t s = 0; s < r->n_specs; s++) {
		snprintf(names[s], sizeof names[s], "tp%u", s % 100);
		specs[s] = (struct slabkv_spec){ names[s], r->block_bytes / r->n_specs };
	}
	if (skv_cli_make_instance(r->kv, &i, r->storage, &err) != SLABKV_OK)
		return skv_cli_fail(r->cli, &err);
	return SKV_EXIT_OK;
}

static void merge(struct skv_replay *r, const struct skv_replay_worker *w)
{
	const uint64_t *from = (const uint64_t *)&w->counts;
	uint64_t *to = (uint64_t *)&r->sum;

	_Static_assert(sizeof w->counts % sizeof *from == 0, "nothing but uint64_t");
	for (size_t i = 0; i < sizeof w->counts / sizeof *from; i++)
		to[i] += from[i];
	skv_histogram_merge(&r->lookup, &w->lookup);
	skv_histogram_merge(&r->start, &w->start);
	skv_histogram_merge(&r->finish, &w->finish);
}

static void watch(struct skv_replay *r)
{
	bool terminal = isatty(STDERR_FILENO);

	skv_mutex_lock(&r->lock);
	while (r->running > 0) {
		assert(r->running <= r->n_clients); /* below 0 it would be huge */
		skv_cond_wait_ms(&r->ended, &r->lock, 200);
		if (terminal)
			skv_replay_progress(r);
	}
	skv_mutex_unlock(&r->lock);
	if (terminal)
		fputs("\r\033[K", stderr);
}

static int run_workers(struct skv_replay *r, struct skv_replay_worker *w)
{
	uint32_t started = 0;
	bool ok = true;

	for (uint32_t i = 0; i < r->n_clients && ok; i++)
		ok = skv_replay_worker_init(&w[i], r);
	if (!ok)
		return skv_cli_usage(r->cli,
				     "out of memory: use fewer --clients or smaller --block-bytes");
	r->begin_us = skv_now_us();
	r->running = r->n_clients;
	for (; started < r->n_clients; started++)
		if (pthread_create(&w[started].thread, NULL, skv_replay_work, &w[started]) != 0)
			break;
	if (started < r->n_clients) {
		atomic_store(&r->stop, true);
		skv_mutex_lock(&r->lock);
		r->running -= r->n_clients - started;
		skv_mutex_unlock(&r->lock);
	}
	watch(r);
	for (uint32_t i = 0; i < started; i++)
		pthread_join(w[i].thread, NULL);
	assert(r->running == 0 && atomic_load(&r->done) <= r->trace.n);
	r->wall_us = skv_now_us() - r->begin_us;
	return started == r->n_clients ? SKV_EXIT_OK : skv_cli_usage(r->cli, "no more threads");
}

/* Exit code of a replay that ran. */
static int verdict(struct skv_replay *r)
{
	assert(!r->fatal || r->error.code);
	/* nothing else ends it before the trace does */
	assert(r->fatal || r->sum.requests == r->trace.n);
	if (r->error.code)
		fprintf(stderr, "slabkv replay: %s%s\n",
			r->fatal ? "stopped: " : "first failure: ", r->error.message);
	if (r->sum.mismatches > 0)
		return SKV_EXIT_MISMATCH;
	if (r->fatal) {
		int code = skv_cli_exit_of(r->error.code);

		return code == SKV_EXIT_MISS ? SKV_EXIT_REFUSED : code;
	}
	return r->sum.failed || r->sum.read_errors ? SKV_EXIT_REFUSED : SKV_EXIT_OK;
}

static int replay(struct skv_replay *r)
{
	struct skv_replay_worker *w = skv_calloc(r->n_clients, sizeof *w);
	int rc = w ? run_workers(r, w) : skv_cli_usage(r->cli, "out of memory");

	for (uint32_t i = 0; w && i < r->n_clients; i++) {
		merge(r, &w[i]);
		skv_replay_worker_free(&w[i]);
	}
	skv_free(w);
	if (rc == SKV_EXIT_OK && r->hits)
		rc = skv_replay_write_hits(r);
	if (rc == SKV_EXIT_OK)
		rc = skv_replay_report(r);
	return rc == SKV_EXIT_OK ? verdict(r) : rc;
}

static int open_and_replay(struct skv_replay *r)
{
	struct slabkv_options o;
	char name[64];
	int rc;

	skv_cli_options(r->cli, &o);
	o.on_call = skv_replay_on_call;
	/* A manager that restarts in the middle is waited for. */
	o.rounds = 1000;
	if (!r->instance) {
		snprintf(name, sizeof name, "replay-%llux%u", (unsigned long long)r->block_bytes,
			 r->n_specs);
		r->instance = name;
	}
	rc = skv_cli_open(r->cli, &o, &r->kv);
	if (rc != SKV_EXIT_OK)
		return rc;
	rc = make_instance(r);
	if (rc == SKV_EXIT_OK)
		rc = replay(r);
	slabkv_close(r->kv);
	return rc;
}

static bool parse_factor(const char *text, void *to) { return skv_args_factor(text, to); }

int skv_cmd_replay(struct skv_cli *cli, int argc, char **argv)
{
	static struct skv_replay r; /* histograms are large for a stack */
	const struct skv_cli_option options[] = {
		{ "block-bytes", SKV_CLI_SIZE, &r.block_bytes, 1, 1ull << 32, "a size, at most 4G",
		  NULL },
		{ "spec-count", SKV_CLI_NUMBER, &r.n_specs, 1, SLABKV_MAX_SPECS, "1..32", NULL },
		{ "clients", SKV_CLI_NUMBER, &r.n_clients, 1, 1024, "1..1024", NULL },
		{ "requests", SKV_CLI_COUNT, &r.requests, 1, UINT32_MAX, "a number", NULL },
		{ "speed", SKV_CLI_PARSED, &r.speed, 0, 0, "a factor above 0, e.g. 10",
		  parse_factor },
		{ "lease", SKV_CLI_NUMBER, &r.lease_ms, 0, 600000, "milliseconds, 0..600000",
		  NULL },
		{ "hits", SKV_CLI_TEXT, &r.hits_path, 0, 0, NULL, NULL },
		{ "instance", SKV_CLI_TEXT, &r.instance, 0, 0, NULL, NULL },
		{ "group", SKV_CLI_TEXT, &r.group, 0, 0, NULL, NULL },
		{ "storage", SKV_CLI_TEXT, &r.storage, 0, 0, NULL, NULL },
		SKV_CLI_OPTIONS_END
	};
	int rc;

	r = (struct skv_replay){ .cli = cli, .group = "default", .storage = "default",
				 .block_bytes = 65536, .n_specs = 1, .n_clients = 4,
				 .lease_ms = SLABKV_LEASE_DEFAULT };
	skv_mutex_init(&r.lock);
	skv_cond_init(&r.ended);
	rc = skv_cli_parse(cli, argc, argv, options, NULL);
	if (rc == SKV_EXIT_OK && argc - optind != 1)
		rc = skv_cli_usage(cli,
				   "name one trace, or - for stdin (slabkv gen-trace makes one)");
	if (rc == SKV_EXIT_OK && r.block_bytes % r.n_specs != 0)
		rc = skv_cli_usage(cli, "--block-bytes must be a multiple of --spec-count");
	if (rc == SKV_EXIT_OK)
		rc = load(&r, argv[optind]);
	if (rc == SKV_EXIT_OK)
		rc = open_and_replay(&r);
	if (r.hits_file)
		fclose(r.hits_file);
	skv_free(r.hits);
	skv_trace_free(&r.trace);
	skv_cond_destroy(&r.ended);
	skv_mutex_destroy(&r.lock);
	return rc;
}
