/*
 * bench_report.c - output of `slabkv bench`: a table, or JSON with machine, version and commit.
 * Stateless.
 */
#include "bench.h"

#include <assert.h>
#include <inttypes.h>

#ifndef SKV_COMMIT
#define SKV_COMMIT "unknown"
#endif

static double rate(const struct skv_bench_outcome *o, uint64_t n)
{
	return o->wall_us ? (double)n * 1e6 / (double)o->wall_us : 0;
}

static double per(uint64_t total_ns, uint64_t n)
{
	return n ? (double)total_ns / 1000 / (double)n : 0;
}

static double success(const struct skv_bench_outcome *o)
{
	return o->asked ? (double)o->done / (double)o->asked : 0;
}

static double mib_s(const struct skv_bench_outcome *o)
{
	return rate(o, o->bytes) / (1 << 20);
}

void skv_bench_print_head(const struct skv_bench *b)
{
	struct skv_machine m;

	skv_machine_read(&m);
	printf("slabkv %s (%s), API %s, %u clients, %g s each, engine %s, on %s, "
	       "%ld cores, %s\n",
	       slabkv_version(), SKV_COMMIT, b->api->name, b->n_clients, b->seconds,
	       slabkv_engine(b->kv, NULL), m.cpu, m.cores, m.kernel);
	printf("%-14s %6s %10s %12s %8s %8s %8s %8s%s%s\n", "operation", "keys", "calls/s",
	       "keys/s", "p50 us", "p99 us", "p999 us", "success",
	       b->n_data ? "    MiB/s  I/O per block" : "",
	       b->manager_pid ? "   CPU/call    CPU/key (us)" : "");
}

static void print_half(const char *name, const struct skv_histogram *h)
{
	printf("  %-12s %6s %10s %12s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 "\n", name, "", "", "",
	       skv_histogram_quantile(h, 0.5), skv_histogram_quantile(h, 0.99),
	       skv_histogram_quantile(h, 0.999));
}

void skv_bench_print_row(const struct skv_bench *b, const struct skv_bench_op *op,
			 const struct skv_bench_outcome *o)
{
	uint64_t keys = o->calls * b->keys;

	assert(o->latency.count == o->calls && op->data == (b->n_data > 0));
	assert(!op->halves[0] == !op->halves[1]);
	printf("%-14s %6u %10.0f %12.0f %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8.4f", op->name,
	       b->keys, rate(o, o->calls), rate(o, keys), skv_histogram_quantile(&o->latency, 0.5),
	       skv_histogram_quantile(&o->latency, 0.99),
	       skv_histogram_quantile(&o->latency, 0.999), success(o));
	if (op->data)
		printf(" %8.0f %14.4f", mib_s(o), o->done ? (double)o->ios / (double)o->done : 0);
	if (b->manager_pid)
		printf(" %10.1f %10.3f", per(o->cpu_ns, o->calls), per(o->cpu_ns, keys));
	if (op->data)
		printf("  blocks of %" PRIu64 " bytes", b->block_bytes);
	putchar('\n');
	for (int i = 0; i < 2 && op->halves[i]; i++)
		print_half(op->halves[i], &o->half[i]);
	fflush(stdout);
}

static json_t *latency_json(const struct skv_histogram *h)
{
	return json_pack("{sI sI sI sI}", "p50_us", (json_int_t)skv_histogram_quantile(h, 0.5),
			 "p99_us", (json_int_t)skv_histogram_quantile(h, 0.99), "p999_us",
			 (json_int_t)skv_histogram_quantile(h, 0.999), "max_us",
			 (json_int_t)h->max);
}

json_t *skv_bench_row_json(const struct skv_bench *b, const struct skv_bench_op *op,
			   const struct skv_bench_outcome *o)
{
	uint64_t keys = o->calls * b->keys;
	json_t *row = json_pack("{ss sI sI sI sI sf sf sf}", "operation", op->name, "keys",
				(json_int_t)b->keys, "calls", (json_int_t)o->calls, "refused",
				(json_int_t)o->refused, "wall_us", (json_int_t)o->wall_us,
				"calls_per_s", rate(o, o->calls), "keys_per_s", rate(o, keys),
				"success", success(o));

	if (!row)
		return NULL;
	json_object_update_new(row, latency_json(&o->latency));
	for (int i = 0; i < 2 && op->halves[i]; i++)
		json_object_set_new(row, op->halves[i], latency_json(&o->half[i]));
	if (op->data) {
		json_object_set_new(row, "block_bytes", json_integer((json_int_t)b->block_bytes));
		json_object_set_new(row, "bytes", json_integer((json_int_t)o->bytes));
		json_object_set_new(row, "mib_per_s", json_real(mib_s(o)));
		json_object_set_new(row, "ios", json_integer((json_int_t)o->ios));
		json_object_set_new(row, "blocks", json_integer((json_int_t)o->done));
	}
	if (b->manager_pid) {
		json_object_set_new(row, "manager_cpu_us_per_call",
				    json_real(per(o->cpu_ns, o->calls)));
		json_object_set_new(row, "manager_cpu_us_per_key", json_real(per(o->cpu_ns, keys)));
	}
	return row;
}

json_t *skv_bench_json(const struct skv_bench *b, json_t *rows)
{
	struct skv_machine m;

	skv_machine_read(&m);
	return json_pack("{ss ss ss ss sI ss sI sf ss ss so}", "version", slabkv_version(),
			 "commit", SKV_COMMIT, "api", b->api->name, "cpu", m.cpu, "cores",
			 (json_int_t)m.cores, "kernel", m.kernel, "clients",
			 (json_int_t)b->n_clients, "seconds", b->seconds,
			 "engine", slabkv_engine(b->kv, NULL), "name", b->name, "operations", rows);
}
