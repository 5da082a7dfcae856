/*
 * metrics.h - counters of the fronts: cheap to add from any thread, summed when read.
 */
#ifndef KVB_METRICS_H
#define KVB_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include <kvb/bytes.h>

#include <kvb/metrics_table.h>
#include <kvb/routes.h>

enum metric {
#define METRIC_ENUM(name, ...) METRIC_##name,
	KVB_FRONT_COUNTERS(METRIC_ENUM)
#undef METRIC_ENUM
	METRIC_COUNT
};

enum gauge {
#define GAUGE_ENUM(name, help) GAUGE_##name,
	KVB_FRONT_GAUGES(GAUGE_ENUM)
#undef GAUGE_ENUM
	GAUGE_COUNT
};

enum {
#define BUCKET_ENUM(us, text) BUCKET_##us,
	KVB_LATENCY_BUCKETS(BUCKET_ENUM)
#undef BUCKET_ENUM
	BUCKET_INF,
	BUCKETS
};

#define METRIC_SHARDS 16
#define METRIC_OPS (ROUTE_COUNT + 1) /* the last: no such route */
#define METRIC_CODES 17              /* HTTP status / 100, or the gRPC status */

enum metric_wire { WIRE_HTTP, WIRE_GRPC, WIRE_COUNT };

struct metrics_wire {
	atomic_uint_fast64_t requests[METRIC_OPS][METRIC_CODES];
	atomic_uint_fast64_t buckets[METRIC_OPS][BUCKETS];
	atomic_uint_fast64_t sum_us[METRIC_OPS];
};

/* Threads share a shard only when there are more than METRIC_SHARDS of them. */
struct metrics_shard {
	_Alignas(64) atomic_uint_fast64_t counters[METRIC_COUNT];
	struct metrics_wire wire[WIRE_COUNT];
};

struct metrics {
	struct metrics_shard shards[METRIC_SHARDS];
	atomic_uint_fast64_t gauges[GAUGE_COUNT];
};

void kvb_metrics_add(struct metrics *m, enum metric which, uint64_t n);
/* One request of operation `op` (ROUTE_COUNT: none) ended after `us`. `code`: HTTP status or gRPC status. */
void kvb_metrics_request(struct metrics *m, enum metric_wire wire, unsigned op, unsigned code, uint64_t us);
/* Sum over the shards. */
uint64_t kvb_metrics_get(const struct metrics *m, enum metric which);
/* Moves a gauge; returns what it was before. */
uint64_t kvb_gauge_move(struct metrics *m, enum gauge which, int n);
uint64_t kvb_gauge_get(const struct metrics *m, enum gauge which);

/* "# HELP ...\n# TYPE ...\n" of one metric. */
void kvb_metrics_head(struct kvb_buf *out, const char *name, const char *suffix, const char *type,
		      const char *help);
/* The counters, gauges and histograms above in Prometheus text format 0.0.4. */
void kvb_metrics_write(const struct metrics *m, struct kvb_buf *out);

#endif
