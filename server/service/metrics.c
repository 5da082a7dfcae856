/*
 * metrics.c - the fronts' counters and latency histograms, and their Prometheus text.
 *
 * Each thread adds to one of a few shards with relaxed atomics (no lock, no shared cache line while
 * threads are few); a reader sums the shards. Sums are not one instant's picture, but every counter
 * only grows, and a histogram's count is taken from its own buckets, so each is consistent in
 * itself.
 */
#include <kvb/metrics.h>

#include <inttypes.h>
#include <stdio.h>

static _Thread_local unsigned my_shard; /* 0 = none yet, else shard + 1 */

static struct metrics_shard *shard_of(struct metrics *m)
{
	static atomic_uint next;

	if (my_shard == 0)
		my_shard = atomic_fetch_add(&next, 1) % METRIC_SHARDS + 1;
	return &m->shards[my_shard - 1];
}

static void add(atomic_uint_fast64_t *at, uint64_t n)
{
	atomic_fetch_add_explicit(at, n, memory_order_relaxed);
}

static uint64_t get(const atomic_uint_fast64_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

void kvb_metrics_add(struct metrics *m, enum metric which, uint64_t n)
{
	add(&shard_of(m)->counters[which], n);
}

static unsigned bucket_of(uint64_t us)
{
	static const uint32_t bounds[] = {
#define BOUND(us, text) us,
		KVB_LATENCY_BUCKETS(BOUND)
#undef BOUND
	};
	unsigned i = 0;

	while (i < BUCKET_INF && us > bounds[i])
		i++;
	return i;
}

void kvb_metrics_request(struct metrics *m, enum metric_wire wire, unsigned op, unsigned code, uint64_t us)
{
	struct metrics_wire *w = &shard_of(m)->wire[wire];

	if (wire == WIRE_HTTP)
		code = code / 100 < 6 ? code / 100 : 5;
	add(&w->requests[op][code < METRIC_CODES ? code : 2], 1); /* gRPC 2: UNKNOWN */
	add(&w->buckets[op][bucket_of(us)], 1);
	add(&w->sum_us[op], us);
}

uint64_t kvb_gauge_move(struct metrics *m, enum gauge which, int n)
{
	return atomic_fetch_add(&m->gauges[which], (uint64_t)(int64_t)n);
}

uint64_t kvb_gauge_get(const struct metrics *m, enum gauge which) { return atomic_load(&m->gauges[which]); }

uint64_t kvb_metrics_get(const struct metrics *m, enum metric which)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < METRIC_SHARDS; i++)
		sum += get(&m->shards[i].counters[which]);
	return sum;
}

void kvb_metrics_head(struct kvb_buf *out, const char *name, const char *suffix, const char *type,
		      const char *help)
{
	kvb_buf_printf(out, "# HELP kvblock_%s%s %s\n# TYPE kvblock_%s%s %s\n", name, suffix, help,
		       name, suffix, type);
}

static const char *op_name(unsigned op)
{
	return op < ROUTE_COUNT ? kvb_routes[op].name : "none";
}

static const char *const wires[WIRE_COUNT] = { "http", "grpc" };

static void write_code(enum metric_wire wire, unsigned op, unsigned code, uint64_t n, struct kvb_buf *out)
{
	static const char *const grpc[METRIC_CODES] = {
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
		"ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
		"ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
		"UNAUTHENTICATED",
	};

	if (wire == WIRE_HTTP && (code == 2 || code == 4 || code == 5))
		kvb_buf_printf(out,
			       "kvblock_http_requests_total{op=\"%s\",status=\"%uxx\"} %" PRIu64 "\n",
			       op_name(op), code, n);
	else if (wire == WIRE_GRPC && (n > 0 || code == 0))
		kvb_buf_printf(out,
			       "kvblock_grpc_requests_total{op=\"%s\",code=\"%s\"} %" PRIu64 "\n",
			       op_name(op), grpc[code], n);
}

static void write_requests(const struct metrics *m, enum metric_wire wire, struct kvb_buf *out)
{
	char name[32];

	snprintf(name, sizeof name, "%s_requests", wires[wire]);
	kvb_metrics_head(out, name, "_total", "counter", "requests by operation and status");
	for (unsigned op = 0; op < METRIC_OPS; op++) {
		for (unsigned code = 0; code < METRIC_CODES; code++) {
			uint64_t sum = 0;

			for (unsigned i = 0; i < METRIC_SHARDS; i++)
				sum += get(&m->shards[i].wire[wire].requests[op][code]);
			write_code(wire, op, code, sum, out);
		}
	}
}

static void write_histogram(const struct metrics *m, enum metric_wire wire, unsigned op,
			    struct kvb_buf *out)
{
	static const char *const bounds[] = {
#define BOUND_TEXT(us, text) text,
		KVB_LATENCY_BUCKETS(BOUND_TEXT)
#undef BOUND_TEXT
		"+Inf",
	};
	uint64_t count = 0, sum = 0;

	for (unsigned b = 0; b < BUCKETS; b++) {
		for (unsigned i = 0; i < METRIC_SHARDS; i++)
			count += get(&m->shards[i].wire[wire].buckets[op][b]);
		kvb_buf_printf(out,
			       "kvblock_%s_request_seconds_bucket{op=\"%s\",le=\"%s\"} "
			       "%" PRIu64 "\n",
			       wires[wire], op_name(op), bounds[b], count);
	}
	for (unsigned i = 0; i < METRIC_SHARDS; i++)
		sum += get(&m->shards[i].wire[wire].sum_us[op]);
	kvb_buf_printf(out,
		       "kvblock_%s_request_seconds_sum{op=\"%s\"} %" PRIu64 ".%06" PRIu64 "\n"
		       "kvblock_%s_request_seconds_count{op=\"%s\"} %" PRIu64 "\n",
		       wires[wire], op_name(op), sum / 1000000, sum % 1000000, wires[wire], op_name(op),
		       count);
}

void kvb_metrics_write(const struct metrics *m, struct kvb_buf *out)
{
#define WRITE_COUNTER(name, help)                                                                  \
	kvb_metrics_head(out, #name, "_total", "counter", help);                                   \
	kvb_buf_printf(out, "kvblock_" #name "_total %" PRIu64 "\n",                               \
		       kvb_metrics_get(m, METRIC_##name));
	KVB_FRONT_COUNTERS(WRITE_COUNTER)
#undef WRITE_COUNTER
#define WRITE_GAUGE(name, help)                                                                    \
	kvb_metrics_head(out, #name, "", "gauge", help);                                           \
	kvb_buf_printf(out, "kvblock_" #name " %" PRIu64 "\n", kvb_gauge_get(m, GAUGE_##name));
	KVB_FRONT_GAUGES(WRITE_GAUGE)
#undef WRITE_GAUGE
	for (unsigned wire = 0; wire < WIRE_COUNT; wire++) {
		char name[32];

		write_requests(m, wire, out);
		snprintf(name, sizeof name, "%s_request_seconds", wires[wire]);
		kvb_metrics_head(out, name, "", "histogram",
				 "time from the request's headers to its answer");
		for (unsigned op = 0; op < METRIC_OPS; op++)
			write_histogram(m, wire, op, out);
	}
}
