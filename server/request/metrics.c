/*
 * metrics.c - the transports' counters and latency histograms, and their Prometheus text.
 *
 * Each thread adds to one of a few shards with relaxed atomics (no lock, no shared cache line while
 * threads are few); a reader sums the shards. Sums are not one instant's picture, but every counter
 * only grows, and a histogram's count is taken from its own buckets, so each is consistent in
 * itself.
 */
#include <skv/metrics.h>

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include <skv/clock.h>
#include <skv/mem.h>

static _Thread_local unsigned my_shard; /* 0 = none yet, else shard + 1 */

static struct metrics_shard *shard_of(struct metrics *m)
{
	static atomic_uint next;

	if (my_shard == 0)
		my_shard = atomic_fetch_add(&next, 1) % METRIC_SHARDS + 1;
	return &m->shards[my_shard - 1];
}

int skv_metrics_init(struct metrics *m, unsigned n_ops, struct skv_error *err)
{
	m->n_ops = n_ops;
	m->ops = skv_calloc((size_t)METRIC_SHARDS * WIRE_COUNT * n_ops, sizeof *m->ops);
	if (!m->ops)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (unsigned i = 0; i < METRIC_SHARDS * WIRE_COUNT; i++)
		m->shards[i / WIRE_COUNT].wire[i % WIRE_COUNT] = m->ops + (size_t)i * n_ops;
	return SKV_OK;
}

void skv_metrics_destroy(struct metrics *m) { skv_free(m->ops); }

static void add(atomic_uint_fast64_t *at, uint64_t n)
{
	atomic_fetch_add_explicit(at, n, memory_order_relaxed);
}

static uint64_t get(const atomic_uint_fast64_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

void skv_metrics_add(struct metrics *m, enum metric which, uint64_t n)
{
	add(&shard_of(m)->counters[which], n);
}

static unsigned bucket_of(uint64_t us)
{
	static const uint32_t bounds[] = {
#define BOUND(us, text) us,
		SKV_LATENCY_BUCKETS(BOUND)
#undef BOUND
	};
	unsigned i = 0;

	while (i < BUCKET_INF && us > bounds[i])
		i++;
	return i;
}

void skv_metrics_request(struct metrics *m, const struct metric_request *r)
{
	struct metrics_op *op;
	unsigned code = r->code;

	assert(r->wire < WIRE_COUNT && r->op < m->n_ops);
	op = &shard_of(m)->wire[r->wire][r->op];

	if (r->wire == WIRE_HTTP)
		code = code / 100 < 6 ? code / 100 : 5;
	add(&op->requests[code < METRIC_CODES ? code : 2], 1); /* gRPC 2: UNKNOWN */
	add(&op->buckets[bucket_of(r->us)], 1);
	add(&op->sum_us, r->us);
	if (r->failed)
		add(&op->failed, 1);
}

void skv_metrics_totals(const struct metrics *m, unsigned op, struct metric_totals *out)
{
	*out = (struct metric_totals){ 0 };
	for (unsigned i = 0; i < METRIC_SHARDS * WIRE_COUNT; i++) {
		const struct metrics_op *o = &m->ops[(size_t)i * m->n_ops + op];

	assert(op < m->n_ops);
		for (unsigned b = 0; b < BUCKETS; b++)
			out->calls += get(&o->buckets[b]);
		out->failed += get(&o->failed);
		out->us += get(&o->sum_us);
	}
}

uint64_t skv_gauge_move(struct metrics *m, enum gauge which, int n)
{
	const uint64_t before = atomic_fetch_add(&m->gauges[which], (uint64_t)(int64_t)n);

	assert(n >= 0 || before >= (uint64_t) - (int64_t)n);
	return before;
}

uint64_t skv_gauge_get(const struct metrics *m, enum gauge which)
{
	return atomic_load(&m->gauges[which]);
}

uint32_t skv_gauge_await_zero(const struct metrics *m, enum gauge which, uint32_t timeout_ms)
{
	const uint64_t end = skv_now_ms(&skv_clock_system) + timeout_ms;

	while (skv_gauge_get(m, which) > 0 && skv_now_ms(&skv_clock_system) < end)
		poll(NULL, 0, 5);
	return (uint32_t)skv_gauge_get(m, which);
}

uint64_t skv_metrics_get(const struct metrics *m, enum metric which)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < METRIC_SHARDS; i++)
		sum += get(&m->shards[i].counters[which]);
	return sum;
}

void skv_metrics_head(struct skv_buf *out, const char *name, const char *suffix, const char *type,
		      const char *help)
{
	skv_buf_printf(out, "# HELP slabkv_%s%s %s\n# TYPE slabkv_%s%s %s\n", name, suffix, help,
		       name, suffix, type);
}

/* An operation in a line's labels. */
struct op_label {
	unsigned op;
	const char *name;
	const char *api;
};

static const char *const wires[WIRE_COUNT] = { "http", "grpc" };

static void write_code(enum metric_wire wire, const struct op_label *l, unsigned code, uint64_t n,
		       struct skv_buf *out)
{
	static const char *const grpc[METRIC_CODES] = {
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
		"ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
		"ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
		"UNAUTHENTICATED",
	};

	if (wire == WIRE_HTTP && (n > 0 || code == 2))
		skv_buf_printf(
			out,
			"slabkv_http_requests_total{op=\"%s\",api=\"%s\",status=\"%uxx\"} %" PRIu64
			"\n",
			l->name, l->api, code, n);
	else if (wire == WIRE_GRPC && (n > 0 || code == 0))
		skv_buf_printf(
			out,
			"slabkv_grpc_requests_total{op=\"%s\",api=\"%s\",code=\"%s\"} %" PRIu64
			"\n",
			l->name, l->api, grpc[code], n);
}

static void write_requests(const struct metrics *m, enum metric_wire wire, const struct op_label *l,
			   struct skv_buf *out)
{
	for (unsigned code = 0; code < METRIC_CODES; code++) {
		uint64_t sum = 0;

		for (unsigned i = 0; i < METRIC_SHARDS; i++)
			sum += get(&m->shards[i].wire[wire][l->op].requests[code]);
		write_code(wire, l, code, sum, out);
	}
}

static void write_failed(const struct metrics *m, enum metric_wire wire, const struct op_label *l,
			 struct skv_buf *out)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < METRIC_SHARDS; i++)
		sum += get(&m->shards[i].wire[wire][l->op].failed);
	skv_buf_printf(out, "slabkv_%s_failed_requests_total{op=\"%s\",api=\"%s\"} %" PRIu64 "\n",
		       wires[wire], l->name, l->api, sum);
}

static void write_histogram(const struct metrics *m, enum metric_wire wire,
			    const struct op_label *l, struct skv_buf *out)
{
	static const char *const bounds[] = {
#define BOUND_TEXT(us, text) text,
		SKV_LATENCY_BUCKETS(BOUND_TEXT)
#undef BOUND_TEXT
		"+Inf",
	};
	uint64_t count = 0, sum = 0;

	for (unsigned b = 0; b < BUCKETS; b++) {
		for (unsigned i = 0; i < METRIC_SHARDS; i++)
			count += get(&m->shards[i].wire[wire][l->op].buckets[b]);
		skv_buf_printf(out,
			       "slabkv_%s_request_seconds_bucket{op=\"%s\",api=\"%s\",le=\"%s\"} "
			       "%" PRIu64 "\n",
			       wires[wire], l->name, l->api, bounds[b], count);
	}
	for (unsigned i = 0; i < METRIC_SHARDS; i++)
		sum += get(&m->shards[i].wire[wire][l->op].sum_us);
	skv_buf_printf(out,
		       "slabkv_%s_request_seconds_sum{op=\"%s\",api=\"%s\"} %" PRIu64 ".%06" PRIu64
		       "\n"
		       "slabkv_%s_request_seconds_count{op=\"%s\",api=\"%s\"} %" PRIu64 "\n",
		       wires[wire], l->name, l->api, sum / 1000000, sum % 1000000, wires[wire],
		       l->name, l->api, count);
}

/* Writes the metrics of one operation, for `wire`. */
typedef void write_op(const struct metrics *m, enum metric_wire wire, const struct op_label *l,
		      struct skv_buf *out);

/* Returns true if the operation has a series. Of a hundred operations those that nobody calls over
 * this wire have none. */
static bool is_used(const struct metrics *m, enum metric_wire wire, unsigned op)
{
	for (unsigned i = 0; i < METRIC_SHARDS; i++)
		for (unsigned b = 0; b < BUCKETS; b++)
			if (get(&m->shards[i].wire[wire][op].buckets[b]) > 0)
				return true;
	return false;
}

static void each_op(const struct metrics *m, enum metric_wire wire,
		    const struct skv_api *const *apis, size_t n, write_op *write,
		    struct skv_buf *out)
{
	for (size_t a = 0; a < n; a++) {
		for (unsigned i = 0; i < apis[a]->n_routes; i++) {
			struct op_label l = { apis[a]->first_op + i, apis[a]->routes[i].name,
					      apis[a]->name };

			if (is_used(m, wire, l.op))
				write(m, wire, &l, out);
		}
	}
	if (is_used(m, wire, METRIC_OP_NONE))
		write(m, wire, &(struct op_label){ METRIC_OP_NONE, "none", "" }, out);
}

void skv_metrics_write(const struct metrics *m, const struct skv_api *const *apis, size_t n,
		       struct skv_buf *out)
{
#define WRITE_COUNTER(name, help)                                                                  \
	skv_metrics_head(out, #name, "_total", "counter", help);                                   \
	skv_buf_printf(out, "slabkv_" #name "_total %" PRIu64 "\n",                               \
		       skv_metrics_get(m, METRIC_##name));
	SKV_HTTPD_COUNTERS(WRITE_COUNTER)
#undef WRITE_COUNTER
#define WRITE_GAUGE(name, help)                                                                    \
	skv_metrics_head(out, #name, "", "gauge", help);                                           \
	skv_buf_printf(out, "slabkv_" #name " %" PRIu64 "\n", skv_gauge_get(m, GAUGE_##name));
	SKV_HTTPD_GAUGES(WRITE_GAUGE)
#undef WRITE_GAUGE
	for (unsigned wire = 0; wire < WIRE_COUNT; wire++) {
		char name[48];

		snprintf(name, sizeof name, "%s_requests", wires[wire]);
		skv_metrics_head(out, name, "_total", "counter",
				 "requests by operation and status");
		each_op(m, wire, apis, n, write_requests, out);
		snprintf(name, sizeof name, "%s_failed_requests", wires[wire]);
		skv_metrics_head(out, name, "_total", "counter",
				 "requests that were answered with an error, whatever the status");
		each_op(m, wire, apis, n, write_failed, out);
		snprintf(name, sizeof name, "%s_request_seconds", wires[wire]);
		skv_metrics_head(out, name, "", "histogram",
				 "time from the request's headers to its answer");
		each_op(m, wire, apis, n, write_histogram, out);
	}
}
