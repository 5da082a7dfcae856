/*
 * bench.c - kvblock bench: how many calls a manager answers, how fast, at what CPU cost.
 *
 * Threads share one handle and repeat one operation for some seconds; each has its own histogram.
 * The manager's CPU time is read from /proc when its process is named and on this machine; the
 * client's own work competes with it there, which the printed number of cores puts into proportion.
 * A call that the manager refuses for lack of room is counted, not fatal: it lowers the success ratio.
 */
#include "bench.h"

#include <string.h>
#include <time.h>

#include <kvb/clock.h>
#include <kvb/mem.h>

struct worker {
	struct kvb_bench_call call;
	const struct kvb_bench_op *op;
	pthread_t thread;
	uint64_t begin_us, end_us;
	int status;
	struct kvb_bench_outcome o; /* this thread's part */
};

/* The storage or the manager is at its limits; the next call may well succeed. */
static bool is_refusal(int status)
{
	return status == KVBLOCK_E_NO_SPACE || status == KVBLOCK_E_QUOTA ||
	       status == KVBLOCK_E_TOO_MANY || status == KVBLOCK_E_TIMEOUT ||
	       status == KVBLOCK_E_UNAVAILABLE || status == KVBLOCK_E_JOURNAL_FULL;
}

static void add_call(struct kvb_bench_outcome *o, const struct kvb_bench_call *c, uint64_t us)
{
	o->calls++;
	kvb_histogram_add(&o->latency, us);
	o->asked += c->asked;
	o->done += c->done;
	o->bytes += c->bytes;
	o->ios += c->ios;
	if (c->first_us || c->second_us) {
		kvb_histogram_add(&o->half[0], c->first_us);
		kvb_histogram_add(&o->half[1], c->second_us);
	}
}

/* With --rate: until this thread's part of it may go on. */
static uint64_t pace(const struct worker *w, uint64_t now)
{
	const struct kvb_bench *b = w->call.b;
	uint64_t due = w->begin_us + (b->rate ? w->o.asked * b->n_clients * 1000000 / b->rate : 0);

	for (due = due < w->end_us ? due : w->end_us; now < due && !atomic_load(&b->stop); now = kvb_now_us()) {
		uint64_t left = due - now < 10000 ? due - now : 10000;

		nanosleep(&(struct timespec){ .tv_nsec = (long)left * 1000 }, NULL);
	}
	return now;
}

static void *work(void *ctx)
{
	struct worker *w = ctx;
	struct kvb_bench_call *c = &w->call;
	uint64_t now = kvb_now_us();

	for (; now < w->end_us && !atomic_load(&c->b->stop); c->turn += c->b->n_clients) {
		uint64_t begin = now;

		c->first_us = c->second_us = c->asked = c->done = c->bytes = c->ios = 0;
		w->status = w->op->call(c);
		now = kvb_now_us();
		if (w->status != KVBLOCK_OK && !is_refusal(w->status))
			break;
		w->o.refused += w->status != KVBLOCK_OK;
		w->status = KVBLOCK_OK;
		if (c->asked > 0) /* else there was nothing left to do */
			add_call(&w->o, c, now - begin);
		now = pace(w, now);
	}
	if (w->status != KVBLOCK_OK)
		atomic_store(&c->b->stop, true);
	return NULL;
}

static uint64_t cpu(const struct kvb_bench *b)
{
	return b->manager_pid ? kvb_machine_cpu_ns(b->manager_pid) : 0;
}

static void merge(struct kvb_bench_outcome *into, const struct kvb_bench_outcome *from)
{
	into->calls += from->calls;
	into->refused += from->refused;
	into->asked += from->asked;
	into->done += from->done;
	into->bytes += from->bytes;
	into->ios += from->ios;
	kvb_histogram_merge(&into->latency, &from->latency);
	for (int i = 0; i < 2; i++)
		kvb_histogram_merge(&into->half[i], &from->half[i]);
}

/* Runs one operation on all threads. */
static int measure(struct kvb_bench *b, const struct kvb_bench_op *op, struct worker *w,
		   struct kvb_bench_outcome *out, struct kvblock_error *err)
{
	uint64_t begin, cpu_begin;
	uint32_t started;
	int rc = op->prepare ? op->prepare(b, err) : KVBLOCK_OK;

	if (rc != KVBLOCK_OK)
		return rc;
	memset(out, 0, sizeof *out);
	atomic_store(&b->stop, false);
	atomic_store(&b->made, 0);
	begin = kvb_now_us();
	cpu_begin = cpu(b);
	for (started = 0; started < b->n_clients; started++) {
		memset(&w[started].o, 0, sizeof w[started].o);
		w[started].op = w[started].call.op = op;
		w[started].status = KVBLOCK_OK;
		w[started].call.turn = started;
		w[started].begin_us = begin;
		w[started].end_us = begin + (uint64_t)(b->seconds * 1e6);
		if (pthread_create(&w[started].thread, NULL, work, &w[started]) != 0)
			break;
	}
	for (uint32_t i = 0; i < started; i++)
		pthread_join(w[i].thread, NULL);
	out->wall_us = kvb_now_us() - begin;
	out->cpu_ns = cpu(b) - cpu_begin;
	for (uint32_t i = 0; i < started; i++) {
		merge(out, &w[i].o);
		if (w[i].status != KVBLOCK_OK && rc == KVBLOCK_OK) {
			rc = w[i].status;
			*err = w[i].call.err;
		}
	}
	return rc;
}

static int bench_one(struct kvb_bench *b, const struct kvb_bench_op *op, struct worker *w,
		     json_t *rows)
{
	static struct kvb_bench_outcome o;
	struct kvblock_error err;

	if (measure(b, op, w, &o, &err) != KVBLOCK_OK)
		return kvb_cli_fail(b->cli, &err);
	if (b->cli->json)
		json_array_append_new(rows, kvb_bench_row_json(b, op, &o));
	else
		kvb_bench_print_row(b, op, &o);
	return KVB_EXIT_OK;
}

static int bench_metadata(struct kvb_bench *b, struct worker *w, json_t *rows)
{
	int rc = KVB_EXIT_OK;

	for (uint32_t s = 0; s < b->n_sizes && rc == KVB_EXIT_OK; s++) {
		b->keys = (uint32_t)b->sizes[s];
		for (uint32_t i = 0; i < b->n_ops && rc == KVB_EXIT_OK; i++)
			rc = bench_one(b, b->ops[i], w, rows);
	}
	return rc;
}

static int bench_block_size(struct kvb_bench *b, struct worker *w, json_t *rows)
{
	struct kvblock_error err;
	uint32_t opened = 0;
	int rc;

	if (kvb_bench_data_prepare(b, &err) != KVBLOCK_OK)
		return kvb_cli_fail(b->cli, &err);
	while (opened < b->n_clients && kvb_bench_data_open(&w[opened].call))
		opened++;
	if (opened < b->n_clients)
		rc = kvb_cli_usage(b->cli, "out of memory for %u x %u blocks", b->n_clients, b->keys);
	else
		rc = bench_one(b, &kvb_bench_put, w, rows);
	if (rc == KVB_EXIT_OK)
		rc = bench_one(b, &kvb_bench_get, w, rows);
	for (uint32_t i = 0; i < opened; i++)
		kvb_bench_data_close(&w[i].call);
	if (rc != KVB_EXIT_UNREACHABLE && !b->keep)
		kvb_bench_data_remove(b);
	return rc;
}

static int bench_data(struct kvb_bench *b, struct worker *w, json_t *rows)
{
	int rc = KVB_EXIT_OK;

	for (uint32_t s = 0; s < b->n_sizes && rc == KVB_EXIT_OK; s++) {
		b->keys = (uint32_t)b->sizes[s];
		for (uint32_t i = 0; i < b->n_data && rc == KVB_EXIT_OK; i++) {
			b->block_bytes = b->data[i];
			rc = bench_block_size(b, w, rows);
		}
	}
	return rc;
}

static int run(struct kvb_bench *b, struct worker *w)
{
	json_t *rows = json_array();
	int rc;

	if (!b->cli->json)
		kvb_bench_print_head(b);
	rc = b->n_data > 0 ? bench_data(b, w, rows) : bench_metadata(b, w, rows);
	if (rc == KVB_EXIT_OK && b->cli->json)
		return kvb_cli_print_json(kvb_bench_json(b, rows));
	json_decref(rows);
	return rc;
}

static int bench(struct kvb_bench *b)
{
	struct worker *w = kvb_calloc(b->n_clients, sizeof *w);
	struct kvblock_error err;
	bool ok = w != NULL;
	int rc;

	for (uint32_t i = 0; i < b->n_clients && ok; i++) {
		w[i].call.b = b;
		w[i].call.ids = kvb_calloc(KVBLOCK_MAX_KEYS, sizeof *w[i].call.ids);
		ok = w[i].call.ids != NULL;
	}
	if (!ok) {
		rc = kvb_cli_usage(b->cli, "out of memory");
	} else {
		rc = kvb_bench_prepare(b, &err) == KVBLOCK_OK ? KVB_EXIT_OK
							      : kvb_cli_fail(b->cli, &err);
		if (rc == KVB_EXIT_OK)
			rc = run(b, w);
		if (rc != KVB_EXIT_UNREACHABLE && !b->keep)
			kvb_bench_remove(b);
	}
	for (uint32_t i = 0; w && i < b->n_clients; i++) {
		kvb_bench_kvcm_close(&w[i].call);
		kvb_free(w[i].call.ids);
	}
	kvb_free(w);
	return rc;
}

int kvb_cmd_bench(struct kvb_cli *cli, int argc, char **argv)
{
	struct kvb_bench b = { .cli = cli };
	struct kvblock_options o;
	int rc = kvb_bench_options(&b, argc, argv);

	if (rc != KVB_EXIT_OK)
		return rc;
	kvb_cli_options(cli, &o);
	o.depth = b.depth;
	rc = kvb_cli_open(cli, &o, &b.kv);
	if (rc == KVB_EXIT_OK) {
		rc = bench(&b);
		kvblock_close(b.kv);
	}
	return rc;
}
