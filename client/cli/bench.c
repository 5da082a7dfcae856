/*
 * bench.c - slabkv bench: calls per second, latency and CPU cost of a manager.
 *
 * Threads share one handle and repeat one operation for some seconds; each has its own
 * histogram. The manager's CPU time is read from /proc when its process is named and on this
 * machine; the client's own work competes with it there, which the printed number of cores puts
 * into proportion. A call that the manager refuses for lack of room is counted, not fatal: it
 * lowers the success ratio.
 */
#include "bench.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include <skv/clock.h>
#include <skv/mem.h>

struct worker {
	struct skv_bench_call call;
	const struct skv_bench_op *op;
	pthread_t thread;
	uint64_t begin_us, end_us;
	int status;
	struct skv_bench_outcome o; /* this thread's part */
};

/* The storage or the manager is at its limits; the next call may well succeed. */
static bool is_refusal(int status)
{
	return status == SLABKV_E_NO_SPACE || status == SLABKV_E_QUOTA ||
	       status == SLABKV_E_TOO_MANY || status == SLABKV_E_TIMEOUT ||
	       status == SLABKV_E_UNAVAILABLE || status == SLABKV_E_JOURNAL_FULL;
}

static void add_call(struct skv_bench_outcome *o, const struct skv_bench_call *c, uint64_t us)
{
	o->calls++;
	skv_histogram_add(&o->latency, us);
	o->asked += c->asked;
	o->done += c->done;
	o->bytes += c->bytes;
	o->ios += c->ios;
	if (c->first_us || c->second_us) {
		skv_histogram_add(&o->half[0], c->first_us);
		skv_histogram_add(&o->half[1], c->second_us);
	}
}

/* With --rate: when this thread may send its next call. */
static uint64_t pace(const struct worker *w, uint64_t now)
{
	const struct skv_bench *b = w->call.b;
	uint64_t due = w->begin_us + (b->rate ? w->o.asked * b->n_clients * 1000000 / b->rate : 0);

	for (due = due < w->end_us ? due : w->end_us; now < due && !atomic_load(&b->stop);
	     now = skv_now_us()) {
		uint64_t left = due - now < 10000 ? due - now : 10000;

		nanosleep(&(struct timespec){ .tv_nsec = (long)left * 1000 }, NULL);
	}
	return now;
}

static void begin(struct skv_bench_call *c, uint64_t now)
{
	c->begin_us = now;
	c->first_us = c->second_us = c->asked = c->done = c->bytes = c->ios = 0;
}

/* Returns the time. */
static uint64_t end(struct worker *w, int status)
{
	const struct skv_bench_call *c = &w->call;
	uint64_t now = skv_now_us();

	assert(c->asked <= c->b->keys && c->begin_us <= now);
	if (status != SLABKV_OK && !is_refusal(status)) {
		w->status = status;
		return now;
	}
	w->o.refused += status != SLABKV_OK;
	if (c->asked > 0) /* else there was nothing left to do, or nothing is done so far */
		add_call(&w->o, c, now - c->begin_us);
	return now;
}

static void *work(void *ctx)
{
	struct worker *w = ctx;
	struct skv_bench_call *c = &w->call;
	uint64_t now = skv_now_us();
	int status;

	do { /* a first call, also where the time is over before it */
		begin(c, now);
		now = end(w, w->op->call(c));
		if (w->status != SLABKV_OK)
			break;
		now = pace(w, now);
		c->turn += c->b->n_clients;
	} while (now < w->end_us && !atomic_load(&c->b->stop));
	for (begin(c, now); w->op->rest && w->op->rest(c, &status); begin(c, now))
		now = end(w, status);
	if (w->status != SLABKV_OK)
		atomic_store(&c->b->stop, true);
	return NULL;
}

static uint64_t cpu(const struct skv_bench *b)
{
	return b->manager_pid ? skv_machine_cpu_ns(b->manager_pid) : 0;
}

static void merge(struct skv_bench_outcome *into, const struct skv_bench_outcome *from)
{
	into->calls += from->calls;
	into->refused += from->refused;
	into->asked += from->asked;
	into->done += from->done;
	into->bytes += from->bytes;
	into->ios += from->ios;
	skv_histogram_merge(&into->latency, &from->latency);
	for (int i = 0; i < 2; i++)
		skv_histogram_merge(&into->half[i], &from->half[i]);
	assert(into->latency.count == into->calls);
	assert(into->half[0].count == into->half[1].count && into->half[0].count <= into->calls);
}

/* Runs one operation on all threads. */
static int measure(struct skv_bench *b, const struct skv_bench_op *op, struct worker *w,
		   struct skv_bench_outcome *out, struct slabkv_error *err)
{
	uint64_t begin, cpu_begin;
	uint32_t started;
	int rc = op->prepare ? op->prepare(b, err) : SLABKV_OK;

	if (rc != SLABKV_OK)
		return rc;
	assert(b->keys >= 1 && b->keys <= SLABKV_MAX_KEYS); /* the room in every call's ids */
	memset(out, 0, sizeof *out);
	atomic_store(&b->stop, false);
	atomic_store(&b->made, 0);
	begin = skv_now_us();
	cpu_begin = cpu(b);
	for (started = 0; started < b->n_clients; started++) {
		memset(&w[started].o, 0, sizeof w[started].o);
		w[started].op = w[started].call.op = op;
		w[started].status = SLABKV_OK;
		w[started].call.turn = started;
		w[started].begin_us = begin;
		w[started].end_us = begin + (uint64_t)(b->seconds * 1e6);
		if (pthread_create(&w[started].thread, NULL, work, &w[started]) != 0)
			break;
	}
	for (uint32_t i = 0; i < started; i++)
		pthread_join(w[i].thread, NULL);
	out->wall_us = skv_now_us() - begin;
	out->cpu_ns = cpu(b) - cpu_begin;
	for (uint32_t i = 0; i < started; i++) {
		merge(out, &w[i].o);
		if (w[i].status != SLABKV_OK && rc == SLABKV_OK) {
			rc = w[i].status;
			*err = w[i].call.err;
		}
	}
	return rc;
}

static int bench_one(struct skv_bench *b, const struct skv_bench_op *op, struct worker *w,
		     json_t *rows)
{
	static struct skv_bench_outcome o;
	struct slabkv_error err;

	if (measure(b, op, w, &o, &err) != SLABKV_OK)
		return skv_cli_fail(b->cli, &err);
	if (b->cli->json)
		json_array_append_new(rows, skv_bench_row_json(b, op, &o));
	else
		skv_bench_print_row(b, op, &o);
	return SKV_EXIT_OK;
}

static int bench_metadata(struct skv_bench *b, struct worker *w, json_t *rows)
{
	int rc = SKV_EXIT_OK;

	assert(b->n_ops > 0 && b->n_ops <= SKV_BENCH_SIZES);
	for (uint32_t s = 0; s < b->n_sizes && rc == SKV_EXIT_OK; s++) {
		b->keys = (uint32_t)b->sizes[s];
		for (uint32_t i = 0; i < b->n_ops && rc == SKV_EXIT_OK; i++)
			rc = bench_one(b, b->ops[i], w, rows);
	}
	return rc;
}

static int bench_block_size(struct skv_bench *b, struct worker *w, json_t *rows)
{
	struct slabkv_error err;
	uint32_t opened = 0;
	int rc;

	if (skv_bench_data_prepare(b, &err) != SLABKV_OK)
		return skv_cli_fail(b->cli, &err);
	while (opened < b->n_clients && skv_bench_data_open(&w[opened].call))
		opened++;
	if (opened < b->n_clients)
		rc = skv_cli_usage(b->cli, "out of memory for %u x %u blocks", b->n_clients,
				   b->keys);
	else
		rc = bench_one(b, &skv_bench_put, w, rows);
	if (rc == SKV_EXIT_OK)
		rc = bench_one(b, &skv_bench_get, w, rows);
	for (uint32_t i = 0; i < opened; i++)
		skv_bench_data_close(&w[i].call);
	if (rc != SKV_EXIT_UNREACHABLE && !b->keep)
		skv_bench_data_remove(b);
	return rc;
}

static int bench_data(struct skv_bench *b, struct worker *w, json_t *rows)
{
	int rc = SKV_EXIT_OK;

	for (uint32_t s = 0; s < b->n_sizes && rc == SKV_EXIT_OK; s++) {
		b->keys = (uint32_t)b->sizes[s];
		for (uint32_t i = 0; i < b->n_data && rc == SKV_EXIT_OK; i++) {
			b->block_bytes = b->data[i];
			rc = bench_block_size(b, w, rows);
		}
	}
	return rc;
}

static int run(struct skv_bench *b, struct worker *w)
{
	json_t *rows = json_array();
	int rc;

	if (!b->cli->json)
		skv_bench_print_head(b);
	rc = b->n_data > 0 ? bench_data(b, w, rows) : bench_metadata(b, w, rows);
	if (rc == SKV_EXIT_OK && b->cli->json)
		return skv_cli_print_json(skv_bench_json(b, rows));
	json_decref(rows);
	return rc;
}

static int bench(struct skv_bench *b)
{
	struct worker *w = skv_calloc(b->n_clients, sizeof *w);
	struct slabkv_error err;
	bool ok = w != NULL;
	int rc;

	for (uint32_t i = 0; i < b->n_clients && ok; i++)
		ok = skv_bench_call_open(&w[i].call, b, SLABKV_MAX_KEYS);
	if (!ok) {
		rc = skv_cli_usage(b->cli, "out of memory");
	} else {
		rc = skv_bench_prepare(b, &err) == SLABKV_OK ? SKV_EXIT_OK
							      : skv_cli_fail(b->cli, &err);
		if (rc == SKV_EXIT_OK)
			rc = run(b, w);
		if (rc != SKV_EXIT_UNREACHABLE && !b->keep)
			skv_bench_remove(b);
	}
	for (uint32_t i = 0; w && i < b->n_clients; i++) {
		if (b->api->close)
			b->api->close(&w[i].call);
		skv_bench_call_close(&w[i].call);
	}
	skv_free(w);
	return rc;
}

int skv_bench(struct skv_cli *cli, const struct skv_bench_api *api, int argc, char **argv)
{
	struct skv_bench b = { .cli = cli, .api = api };
	struct slabkv_options o;
	int rc = skv_bench_options(&b, argc, argv);

	if (rc != SKV_EXIT_OK)
		return rc;
	skv_cli_options(cli, &o);
	o.depth = b.depth;
	rc = skv_cli_open(cli, &o, &b.kv);
	if (rc == SKV_EXIT_OK) {
		rc = bench(&b);
		slabkv_close(b.kv);
	}
	return rc;
}

int skv_cmd_bench(struct skv_cli *cli, int argc, char **argv)
{
	return skv_bench(cli, &skv_bench_native, argc, argv);
}
