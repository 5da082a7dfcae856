/*
 * bench.c - kvblock bench: how many metadata calls a manager answers, how fast, at what CPU cost.
 *
 * Threads share one handle and repeat one operation for some seconds; each has its own histogram.
 * The manager's CPU time is read from /proc when its process is named and on this machine; the
 * client's own work competes with it there, which the printed number of cores puts into proportion.
 */
#include "bench.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include <kvb/clock.h>
#include <kvb/mem.h>

struct worker {
	struct kvb_bench *b;
	const struct kvb_bench_op *op;
	pthread_t thread;
	uint32_t number;
	uint64_t end_us;
	uint64_t *fresh;
	int status;
	struct kvblock_error err;
	struct kvb_histogram latency;
};

struct outcome {
	uint64_t calls;
	uint64_t wall_us;
	uint64_t cpu_ns; /* of the manager; 0 = unknown */
	struct kvb_histogram latency;
};

static void *work(void *ctx)
{
	struct worker *w = ctx;
	uint64_t now = kvb_now_us();

	for (uint64_t turn = w->number; now < w->end_us && !atomic_load(&w->b->stop);
	     turn += w->b->n_clients) {
		uint64_t begin = now;

		w->status = w->op->call(w->b, w->fresh, turn, &w->err);
		now = kvb_now_us();
		if (w->status != KVBLOCK_OK)
			break;
		kvb_histogram_add(&w->latency, now - begin);
	}
	if (w->status != KVBLOCK_OK)
		atomic_store(&w->b->stop, true);
	return NULL;
}

static uint64_t cpu(const struct kvb_bench *b)
{
	return b->manager_pid ? kvb_machine_cpu_ns(b->manager_pid) : 0;
}

/* Runs one operation on all threads. */
static int measure(struct kvb_bench *b, const struct kvb_bench_op *op, struct worker *w,
		   struct outcome *out, struct kvblock_error *err)
{
	uint64_t begin = kvb_now_us(), cpu_begin = cpu(b);
	uint32_t started;
	int rc = KVBLOCK_OK;

	memset(out, 0, sizeof *out);
	atomic_store(&b->stop, false);
	for (started = 0; started < b->n_clients; started++) {
		uint64_t *fresh = w[started].fresh;

		w[started] = (struct worker){ .b = b, .op = op, .number = started, .fresh = fresh,
					      .end_us = begin + (uint64_t)b->seconds * 1000000 };
		if (pthread_create(&w[started].thread, NULL, work, &w[started]) != 0)
			break;
	}
	for (uint32_t i = 0; i < started; i++)
		pthread_join(w[i].thread, NULL);
	out->wall_us = kvb_now_us() - begin;
	out->cpu_ns = cpu(b) - cpu_begin;
	for (uint32_t i = 0; i < started; i++) {
		kvb_histogram_merge(&out->latency, &w[i].latency);
		if (w[i].status != KVBLOCK_OK && rc == KVBLOCK_OK) {
			rc = w[i].status;
			*err = w[i].err;
		}
	}
	out->calls = out->latency.count;
	return rc;
}

static double rate(const struct outcome *o, uint64_t n)
{
	return o->wall_us ? (double)n * 1e6 / (double)o->wall_us : 0;
}

static double cpu_us(const struct outcome *o, uint64_t n)
{
	return n ? (double)o->cpu_ns / 1000 / (double)n : 0;
}

static void print_row(const struct kvb_bench *b, const struct kvb_bench_op *op,
		      const struct outcome *o)
{
	uint64_t keys = op->single ? 1 : b->keys;

	printf("%-20s %6" PRIu64 " %10.0f %12.0f %8" PRIu64 " %8" PRIu64 " %8" PRIu64, op->name,
	       keys, rate(o, o->calls), rate(o, o->calls * keys),
	       kvb_histogram_quantile(&o->latency, 0.5), kvb_histogram_quantile(&o->latency, 0.99),
	       kvb_histogram_quantile(&o->latency, 0.999));
	if (b->manager_pid)
		printf(" %10.1f %10.3f", cpu_us(o, o->calls), cpu_us(o, o->calls * keys));
	putchar('\n');
	fflush(stdout);
}

static json_t *row_json(const struct kvb_bench *b, const struct kvb_bench_op *op,
			const struct outcome *o)
{
	uint64_t keys = op->single ? 1 : b->keys;
	json_t *row = json_pack("{ss sI sI sI sf sf sI sI sI}", "operation", op->name, "keys",
				(json_int_t)keys, "calls", (json_int_t)o->calls, "wall_us",
				(json_int_t)o->wall_us, "calls_per_s", rate(o, o->calls),
				"keys_per_s", rate(o, o->calls * keys), "p50_us",
				(json_int_t)kvb_histogram_quantile(&o->latency, 0.5), "p99_us",
				(json_int_t)kvb_histogram_quantile(&o->latency, 0.99), "p999_us",
				(json_int_t)kvb_histogram_quantile(&o->latency, 0.999));

	if (row && b->manager_pid) {
		json_object_set_new(row, "manager_cpu_us_per_call", json_real(cpu_us(o, o->calls)));
		json_object_set_new(row, "manager_cpu_us_per_key",
				    json_real(cpu_us(o, o->calls * keys)));
	}
	return row;
}

static int bench_all(struct kvb_bench *b, struct worker *w, json_t *rows)
{
	static struct outcome o;
	struct kvblock_error err;

	if (!b->cli->json)
		printf("%-20s %6s %10s %12s %8s %8s %8s%s\n", "operation", "keys", "calls/s",
		       "keys/s", "p50 us", "p99 us", "p999 us",
		       b->manager_pid ? "   CPU/call    CPU/key (us)" : "");
	for (size_t i = 0; i < kvb_bench_n_ops; i++) {
		if (measure(b, &kvb_bench_ops[i], w, &o, &err) != KVBLOCK_OK)
			return kvb_cli_fail(b->cli, &err);
		if (b->cli->json)
			json_array_append_new(rows, row_json(b, &kvb_bench_ops[i], &o));
		else
			print_row(b, &kvb_bench_ops[i], &o);
	}
	return KVB_EXIT_OK;
}

/* Machine and version: a number without them means nothing. */
static int report(struct kvb_bench *b, struct worker *w)
{
	struct kvb_machine m;
	json_t *rows = json_array();
	int rc;

	kvb_machine_read(&m);
	if (!b->cli->json)
		printf("kvblock %s, %u clients, %u s each, on %s, %ld cores, %s\n",
		       kvblock_version(), b->n_clients, b->seconds, m.cpu, m.cores, m.kernel);
	rc = bench_all(b, w, rows);
	if (rc != KVB_EXIT_OK || !b->cli->json) {
		json_decref(rows);
		return rc;
	}
	return kvb_cli_print_json(json_pack("{ss ss sI ss sI sI so}", "version", kvblock_version(),
					    "cpu", m.cpu, "cores", (json_int_t)m.cores, "kernel",
					    m.kernel, "clients", (json_int_t)b->n_clients,
					    "seconds", (json_int_t)b->seconds, "operations", rows));
}

static int bench(struct kvb_bench *b)
{
	struct worker *w = kvb_calloc(b->n_clients, sizeof *w);
	struct kvblock_error err;
	bool ok;
	int rc;

	b->hot = kvb_calloc(b->keys, sizeof *b->hot);
	ok = w && b->hot;
	for (uint32_t i = 0; i < b->n_clients && ok; i++)
		ok = (w[i].fresh = kvb_calloc(b->keys, sizeof *w[i].fresh)) != NULL;
	if (!ok) {
		rc = kvb_cli_usage(b->cli, "out of memory");
	} else {
		rc = kvb_bench_prepare(b, &err) == KVBLOCK_OK ? KVB_EXIT_OK
							      : kvb_cli_fail(b->cli, &err);
		if (rc == KVB_EXIT_OK)
			rc = report(b, w);
		if (rc != KVB_EXIT_UNREACHABLE)
			kvb_bench_remove(b);
	}
	for (uint32_t i = 0; w && i < b->n_clients; i++)
		kvb_free(w[i].fresh);
	kvb_free(w);
	kvb_free(b->hot);
	return rc;
}

static int set_option(struct kvb_bench *b, int opt, const char *value)
{
	uint64_t v = 0;
	bool ok = false;

	if (opt == 'k')
		ok = kvb_args_number(value, 1, KVBLOCK_MAX_KEYS, &v);
	else if (opt == 'c' || opt == 's')
		ok = kvb_args_number(value, 1, opt == 'c' ? 1024 : 86400, &v);
	else if (opt == 'p')
		ok = kvb_args_number(value, 1, INT32_MAX, &v) && kvb_machine_cpu_ns((long)v) > 0;
	else if (opt == 'm')
		ok = kvb_args_number(value, 1, UINT32_MAX, &v);
	else
		return kvb_cli_global_option(b->cli, opt, value);
	if (!ok)
		return kvb_cli_usage(b->cli, "%s",
				     opt == 'k'	  ? "--keys: 1..16384"
				     : opt == 'c' ? "--clients: 1..1024"
				     : opt == 's' ? "--seconds: 1..86400"
				     : opt == 'p' ? "--manager-pid: no such process here"
						  : "--max-blocks: a number");
	if (opt == 'k')
		b->keys = (uint32_t)v;
	else if (opt == 'c')
		b->n_clients = (uint32_t)v;
	else if (opt == 's')
		b->seconds = (uint32_t)v;
	else if (opt == 'p')
		b->manager_pid = (long)v;
	else
		b->max_blocks = v;
	return KVB_EXIT_OK;
}

int kvb_cmd_bench(struct kvb_cli *cli, int argc, char **argv)
{
	static const struct option options[] = {
		{ "keys", required_argument, NULL, 'k' },
		{ "clients", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 's' },
		{ "manager-pid", required_argument, NULL, 'p' },
		{ "max-blocks", required_argument, NULL, 'm' },
		KVB_CLI_GLOBAL_OPTIONS,
	};
	struct kvb_bench b = {
		.cli = cli, .keys = 512, .n_clients = 4, .seconds = 5, .max_blocks = 1000000
	};
	int opt, rc = KVB_EXIT_OK;

	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, "", options, NULL)) != -1)
		rc = set_option(&b, opt, optarg);
	if (rc == KVB_EXIT_OK && optind < argc)
		rc = kvb_cli_usage(cli, "takes no arguments");
	if (rc == KVB_EXIT_OK)
		rc = kvb_cli_open(cli, NULL, &b.kv);
	if (rc == KVB_EXIT_OK) {
		rc = bench(&b);
		kvblock_close(b.kv);
	}
	return rc;
}
