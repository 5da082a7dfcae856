/*
 * expose.c - writes /metrics: counters of transports, core and store, gauges, and the APIs' own.
 *
 * Everything comes from the tables in metrics_table.h and SKV_CORE_COUNTERS. A standby or
 * recovering manager has no statistics: its gauges are left out, the rest is shown. An
 * fs-master has no core. No state.
 */
#include <skv/request.h>

#include <inttypes.h>

#include <skv/core.h>
#include <skv/mem.h>

#include "expose.h"

#define OBJECT_BYTES 32768u /* of all metrics of one storage, group and instance, at most */

static void gauge(struct skv_buf *out, const char *name, const char *help, uint64_t value)
{
	skv_metrics_head(out, name, "", "gauge", help);
	skv_buf_printf(out, "slabkv_%s %" PRIu64 "\n", name, value);
}

static void counter(struct skv_buf *out, const char *name, const char *help, uint64_t value)
{
	skv_metrics_head(out, name, "_total", "counter", help);
	skv_buf_printf(out, "slabkv_%s_total %" PRIu64 "\n", name, value);
}

static void write_transports(const struct skv_service *s, struct skv_buf *out)
{
	skv_metrics_write(&s->metrics, s->apis, s->n_apis, out);
	gauge(out, "http_body_held_bytes",
	      "bytes that calls hold, of all fronts: requests, and answers until they are sent",
	      atomic_load(&s->holds.bytes));
}

static void write_core(const struct skv_cluster *cluster, struct skv_buf *out)
{
	struct skv_core_counters c;

	skv_cluster_counters_get(cluster, &c);
#define WRITE_COUNTER(name, help) counter(out, #name, help, c.name);
	SKV_CORE_COUNTERS(WRITE_COUNTER)
#undef WRITE_COUNTER
	skv_metrics_head(out, "lock_wait_seconds", "_total", "counter",
			 "time that reads of the state waited for changes");
	skv_buf_printf(out, "slabkv_lock_wait_seconds_total %.6f\n", (double)c.lock_wait_us / 1e6);
	skv_metrics_head(out, "state", "", "gauge", "1 for the state this manager is in");
	for (unsigned i = 0; skv_state_texts[i]; i++)
		skv_buf_printf(out, "slabkv_state{state=\"%s\"} %d\n", skv_state_texts[i],
			       skv_cluster_state_get(cluster) == (enum skv_core_state)i);
}

static void write_store(const struct skv_cluster *cluster, struct skv_buf *out)
{
	struct skv_core_store_counters got;
	const struct skv_core_store_counters *c = &got;

	skv_cluster_store_counters_get(cluster, &got);
#define WRITE_COUNTER(name, help, value) counter(out, #name, help, value);
	SKV_STORE_COUNTERS(WRITE_COUNTER)
#undef WRITE_COUNTER
	skv_metrics_head(out, "store_append_seconds", "_total", "counter", "time spent in appends");
	skv_buf_printf(out, "slabkv_store_append_seconds_total %.6f\n", (double)c->append_us / 1e6);
	skv_metrics_head(out, "store_append_max_seconds", "", "gauge", "the slowest append");
	skv_buf_printf(out, "slabkv_store_append_max_seconds %.6f\n",
		       (double)c->append_max_us / 1e6);
	skv_metrics_head(out, "store_wait_seconds", "", "gauge",
			 "how long the oldest call of the metadata store has been under way");
	skv_buf_printf(out, "slabkv_store_wait_seconds %.6f\n", (double)c->wait_us / 1e6);
}

static void write_build(struct skv_buf *out)
{
	skv_metrics_head(out, "build_info", "", "gauge", "1, with the version that runs");
	skv_buf_printf(out, "slabkv_build_info{version=\"%s\"} 1\n", SKV_VERSION);
}

/* Returns true if any operation of the API was called; its families are left out before. */
static bool is_used(const struct skv_service *s, const struct skv_api *api)
{
	struct metric_totals t;

	for (unsigned i = 0; i < api->n_routes; i++) {
		skv_metrics_totals(&s->metrics, api->first_op + i, &t);
		if (t.calls > 0)
			return true;
	}
	return false;
}

/* Of a store with several. */
static void write_partitions(struct skv_cluster *cluster, struct skv_buf *out)
{
	uint32_t n = skv_cluster_partitions(cluster);
	struct skv_partition_view v;

#define WRITE_GAUGE(metric, help, value)                                                  \
	skv_metrics_head(out, #metric, "", "gauge", help);                                \
	for (uint32_t i = 0; i < n; i++) {                                                \
		skv_cluster_partition_get(cluster, i, &v);                                \
		skv_buf_printf(out, "slabkv_" #metric "{partition=\"%u\"} %" PRIu64 "\n", \
			       (unsigned)i, (uint64_t)(value));                           \
	}
	if (n > 1) {
		SKV_PARTITION_GAUGES(WRITE_GAUGE)
	}
#undef WRITE_GAUGE
}

static void write_stats(const struct skv_stats *s, struct skv_buf *out)
{
	skv_metrics_head(out, "uptime_seconds", "", "gauge", "since this manager started");
	skv_buf_printf(out, "slabkv_uptime_seconds %.3f\n", (double)s->uptime_ms / 1e3);
#define WRITE_GAUGE(name, help, value) gauge(out, #name, help, value);
	SKV_STATS_GAUGES(WRITE_GAUGE)
#undef WRITE_GAUGE
#define WRITE_EACH(kind, suffix, type, metric, help, value)                                      \
	skv_metrics_head(out, #metric, suffix, type, help);                                      \
	for (uint32_t i = 0; i < s->n_##kind##s; i++) {                                          \
		const struct skv_##kind##_view *v = &s->kind##s[i];                              \
		skv_buf_printf(out, "slabkv_" #metric suffix "{" #kind "=\"%s\"} %" PRIu64 "\n", \
			       v->spec.name, (uint64_t)(value));                                 \
	}
#define WRITE_STORAGES(...) WRITE_EACH(storage, "", "gauge", __VA_ARGS__)
	SKV_STORAGE_GAUGES(WRITE_STORAGES)
#undef WRITE_STORAGES
#define WRITE_GROUPS(...) WRITE_EACH(group, "", "gauge", __VA_ARGS__)
	SKV_GROUP_GAUGES(WRITE_GROUPS)
#undef WRITE_GROUPS
#define WRITE_GROUPS(...) WRITE_EACH(group, "_total", "counter", __VA_ARGS__)
	SKV_GROUP_COUNTERS(WRITE_GROUPS)
#undef WRITE_GROUPS
#undef WRITE_EACH
#define WRITE_INSTANCES(metric, help, value)                                                 \
	skv_metrics_head(out, #metric, "", "gauge", help);                                   \
	for (uint32_t i = 0; i < s->n_instances; i++) {                                      \
		const struct skv_instance_view *v = &s->instances[i];                        \
		if (v->share_bytes)                                                          \
			skv_buf_printf(out,                                                  \
				       "slabkv_" #metric "{tenant=\"%s\",instance=\"%s\"} %" \
				       PRIu64 "\n",                                          \
				       v->spec.tenant, v->spec.id, (uint64_t)(value));       \
	}
	SKV_INSTANCE_GAUGES(WRITE_INSTANCES)
#undef WRITE_INSTANCES
}

struct skv_page skv_metrics_page(const struct skv_service *s)
{
	struct skv_page page = SKV_PAGE;

	page.brief = true;
	if (s->o.answer_max / OBJECT_BYTES < page.limit)
		page.limit = 1 + (uint32_t)(s->o.answer_max / OBJECT_BYTES);
	return page;
}

void skv_request_expose(struct skv_request *c)
{
	struct skv_service *s = c->s;
	struct skv_buf *out = &c->out;
	struct skv_page page = skv_metrics_page(s);
	struct skv_stats stats;
	struct skv_error ignored;

	gauge(out, "memory_limit_bytes", "memory_max, or the limit of the control group; 0: none",
	      skv_mem_most());
	write_build(out);
	skv_process_write(out);
	write_transports(s, out);
	if (s->cluster) {
		write_core(s->cluster, out);
		write_store(s->cluster, out);
		write_partitions(s->cluster, out);
	}
	skv_tenant_page(c, &page);
	if (s->cluster &&
	    skv_cluster_stats(s->cluster, &page, &c->arena, &stats, &ignored) == SKV_OK)
		write_stats(&stats, out);
	for (size_t i = 0; i < s->n_apis && skv_tenant_is_operator(c); i++)
		if (s->apis[i]->expose && (s->apis[i] == c->api || is_used(s, s->apis[i])))
			s->apis[i]->expose(s->apis[i], s, &c->arena, out);
}
