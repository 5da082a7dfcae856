/*
 * expose.c - the families of /metrics: the fronts' counters, the core's, the store's, gauges, the APIs' own.
 *
 * Everything comes from the tables in metrics_table.h and KVB_CORE_COUNTERS. A standby or
 * recovering manager has no statistics: its gauges are left out, the rest is shown. An fs-master has no core. No state.
 */
#include <kvb/service.h>

#include <inttypes.h>

#include <kvb/core.h>

static void gauge(struct kvb_buf *out, const char *name, const char *help, uint64_t value)
{
	kvb_metrics_head(out, name, "", "gauge", help);
	kvb_buf_printf(out, "kvblock_%s %" PRIu64 "\n", name, value);
}

static void counter(struct kvb_buf *out, const char *name, const char *help, uint64_t value)
{
	kvb_metrics_head(out, name, "_total", "counter", help);
	kvb_buf_printf(out, "kvblock_%s_total %" PRIu64 "\n", name, value);
}

static void write_fronts(const struct kvb_service *s, struct kvb_buf *out)
{
	kvb_metrics_write(&s->metrics, s->apis, s->n_apis, out);
	gauge(out, "http_body_held_bytes", "bytes of requests in memory, of all fronts",
	      atomic_load(&s->body_held));
}

static void write_core(const struct kvb_core *core, struct kvb_buf *out)
{
	static const char *const states[] = { "standby", "recovering", "ready", "stopped" };
	struct kvb_core_counters c;

	kvb_core_counters_get(core, &c);
#define WRITE_COUNTER(name, help) counter(out, #name, help, c.name);
	KVB_CORE_COUNTERS(WRITE_COUNTER)
#undef WRITE_COUNTER
	kvb_metrics_head(out, "state", "", "gauge", "1 for the state this manager is in");
	for (unsigned i = 0; i < sizeof states / sizeof states[0]; i++)
		kvb_buf_printf(out, "kvblock_state{state=\"%s\"} %d\n", states[i],
			       kvb_core_state_get(core) == (enum kvb_core_state)i);
}

static void write_store(const struct kvb_core *core, struct kvb_buf *out)
{
	struct kvb_core_store_counters got;
	const struct kvb_core_store_counters *c = &got;

	kvb_core_store_counters_get(core, &got);
#define WRITE_COUNTER(name, help, value) counter(out, #name, help, value);
	KVB_STORE_COUNTERS(WRITE_COUNTER)
#undef WRITE_COUNTER
	gauge(out, "store_append_max_us", "microseconds of the slowest append", c->append_max_us);
}

static void write_stats(const struct kvb_stats *s, struct kvb_buf *out)
{
#define WRITE_GAUGE(name, help, value) gauge(out, #name, help, value);
	KVB_STATS_GAUGES(WRITE_GAUGE)
#undef WRITE_GAUGE
#define WRITE_STORAGES(metric, help, value)							\
	kvb_metrics_head(out, #metric, "", "gauge", help);					\
	for (uint32_t i = 0; i < s->n_storages; i++) {						\
		const struct kvb_storage_view *v = &s->storages[i];				\
		kvb_buf_printf(out, "kvblock_" #metric "{storage=\"%s\"} %" PRIu64 "\n",	\
			       v->spec.name, (uint64_t)(value));				\
	}
	KVB_STORAGE_GAUGES(WRITE_STORAGES)
#undef WRITE_STORAGES
#define WRITE_GROUPS(metric, help, value)							\
	kvb_metrics_head(out, #metric, "", "gauge", help);					\
	for (uint32_t i = 0; i < s->n_groups; i++) {						\
		const struct kvb_group_view *v = &s->groups[i];					\
		kvb_buf_printf(out, "kvblock_" #metric "{group=\"%s\"} %" PRIu64 "\n",		\
			       v->spec.name, (uint64_t)(value));				\
	}
	KVB_GROUP_GAUGES(WRITE_GROUPS)
#undef WRITE_GROUPS
#define WRITE_GROUPS(metric, help, value)							\
	kvb_metrics_head(out, #metric, "_total", "counter", help);				\
	for (uint32_t i = 0; i < s->n_groups; i++) {						\
		const struct kvb_group_view *v = &s->groups[i];					\
		kvb_buf_printf(out, "kvblock_" #metric "_total{group=\"%s\"} %" PRIu64 "\n",	\
			       v->spec.name, (uint64_t)(value));				\
	}
	KVB_GROUP_COUNTERS(WRITE_GROUPS)
#undef WRITE_GROUPS
#define WRITE_INSTANCES(metric, help, value)							\
	kvb_metrics_head(out, #metric, "", "gauge", help);					\
	for (uint32_t i = 0; i < s->n_instances; i++) {						\
		const struct kvb_instance_view *v = &s->instances[i];				\
		if (v->share_bytes)								\
			kvb_buf_printf(out,							\
				       "kvblock_" #metric "{tenant=\"%s\",instance=\"%s\"} %" PRIu64 "\n", \
				       v->spec.tenant, v->spec.id, (uint64_t)(value));		\
	}
	KVB_INSTANCE_GAUGES(WRITE_INSTANCES)
#undef WRITE_INSTANCES
}

void kvb_service_expose(struct kvb_service *s, struct kvb_arena *a, struct kvb_buf *out)
{
	struct kvb_stats stats;
	struct kvb_error ignored;

	write_fronts(s, out);
	if (s->core) {
		write_core(s->core, out);
		write_store(s->core, out);
	}
	if (s->core && kvb_core_stats(s->core, a, &stats, &ignored) == KVB_OK)
		write_stats(&stats, out);
	for (size_t i = 0; i < s->n_apis; i++)
		if (s->apis[i]->expose)
			s->apis[i]->expose(s->apis[i], s, a, out);
}
