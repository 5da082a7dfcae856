/*
 * metrics.h - counters of the transports: cheap to add from any thread, summed when read.
 */
#ifndef SKV_METRICS_H
#define SKV_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/bytes.h>

#include <skv/api.h>
#include <skv/metrics_table.h>

enum metric {
#define METRIC_ENUM(name, ...) METRIC_##name,
	SKV_HTTPD_COUNTERS(METRIC_ENUM)
#undef METRIC_ENUM
	METRIC_COUNT
};

enum gauge {
#define GAUGE_ENUM(name, help) GAUGE_##name,
	SKV_HTTPD_GAUGES(GAUGE_ENUM)
#undef GAUGE_ENUM
	GAUGE_COUNT
};

enum {
#define BUCKET_ENUM(us, text) BUCKET_##us,
	SKV_LATENCY_BUCKETS(BUCKET_ENUM)
#undef BUCKET_ENUM
	BUCKET_INF,
	BUCKETS
};

#define METRIC_SHARDS 16
#define METRIC_OP_NONE 0 /* unknown route; those of the APIs follow */
#define METRIC_CODES 17  /* HTTP status / 100, or the gRPC status */

enum metric_wire { WIRE_HTTP, WIRE_GRPC, WIRE_COUNT };

/* Calls of one operation over one wire. */
struct metrics_op {
	atomic_uint_fast64_t requests[METRIC_CODES];
	atomic_uint_fast64_t buckets[BUCKETS];
	atomic_uint_fast64_t sum_us;
	atomic_uint_fast64_t failed;
};

/* Threads share a shard only when there are more than METRIC_SHARDS of them. */
struct metrics_shard {
	_Alignas(64) atomic_uint_fast64_t counters[METRIC_COUNT];
	struct metrics_op *wire[WIRE_COUNT]; /* by operation */
};

struct metrics {
	struct metrics_shard shards[METRIC_SHARDS];
	atomic_uint_fast64_t gauges[GAUGE_COUNT];
	unsigned n_ops;
	struct metrics_op *ops; /* of all shards and wires */
};

/* For operations below `n_ops`. SKV_E_NOMEM. */
int skv_metrics_init(struct metrics *m, unsigned n_ops, struct skv_error *err);
void skv_metrics_destroy(struct metrics *m);
void skv_metrics_add(struct metrics *m, enum metric which, uint64_t n);
struct metric_request {
	enum metric_wire wire;
	unsigned op;
	unsigned code; /* HTTP status or gRPC status */
	bool failed;   /* regardless of the code */
	uint64_t us;
};
/* Counts a finished request. */
void skv_metrics_request(struct metrics *m, const struct metric_request *r);
struct metric_totals {
	uint64_t calls, failed, us;
};
/* Of one operation over all wires. */
void skv_metrics_totals(const struct metrics *m, unsigned op, struct metric_totals *out);
/* Sum over the shards. */
uint64_t skv_metrics_get(const struct metrics *m, enum metric which);
/* Moves a gauge; returns what it was before. */
uint64_t skv_gauge_move(struct metrics *m, enum gauge which, int n);
uint64_t skv_gauge_get(const struct metrics *m, enum gauge which);
/* Waits until the gauge is 0, at most so long, and returns its value. Polls: it is for the end of a
 * process, and the code that ends a call must not have to touch the transport afterwards. */
uint32_t skv_gauge_await_zero(const struct metrics *m, enum gauge which, uint32_t timeout_ms);

/* "# HELP ...\n# TYPE ...\n" of one metric. */
void skv_metrics_head(struct skv_buf *out, const char *name, const char *suffix, const char *type,
		      const char *help);
/* The counters, gauges and histograms above in Prometheus text format 0.0.4. Operations never
 * called over a wire are left out. */
void skv_metrics_write(const struct metrics *m, const struct skv_api *const *apis, size_t n,
		       struct skv_buf *out);

#endif
