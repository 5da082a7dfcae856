/*
 * expose.c - the families of /metrics: the transports' counters, the core's, the store's, gauges, the APIs' own.
 *
 * Everything comes from the tables in metrics_table.h and SKV_CORE_COUNTERS. A standby or
 * recovering manager has no statistics: its gauges are left out, the rest is shown. An fs-master has no core. No state.
 */
#include <skv/service.h>

#include <inttypes.h>

#include <skv/core.h>

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
	gauge(out, "http_body_held_bytes", "bytes that calls hold, of all fronts: requests, and answers until they are sent",
	      atomic_load(&s->holds.bytes));
}

static void write_core(const struct skv_core *core, struct skv_buf *out)
{
	static const char *const states[] = { "standby", "recovering", "ready", "stopped" };
	struct skv_core_counters c;

	skv_core_counters_get(core, &c);
#define WRITE_COUNTER(name, help) counter(out, #name, help, c.name);
	SKV_CORE_COUNTERS(WRITE_COUNTER)
#undef WRITE_COUNTER
	skv_metrics_head(out, "state", "", "gauge", "1 for the state this manager is in");
	for (unsigned i = 0; i < sizeof states / sizeof states[0]; i++)
		skv_buf_printf(out, "slabkv_state{state=\"%s\"} %d\n", states[i],
			       skv_core_state_get(core) == (enum skv_core_state)i);
}

static void write_store(const struct skv_core *core, struct skv_buf *out)
{
	struct skv_core_store_counters got;
	const struct skv_core_store_counters *c = &got;

	skv_core_store_counters_get(core, &got);
#define WRITE_COUNTER(name, help, value) counter(out, #name, help, value);
	SKV_STORE_COUNTERS(WRITE_COUNTER)
#undef WRITE_COUNTER
	gauge(out, "store_append_max_us", "microseconds of the slowest append", c->append_max_us);
}

static void write_stats(const struct skv_stats *s, struct skv_buf *out)
{
#define WRITE_GAUGE(name, help, value) gauge(out, #name, help, value);
	SKV_STATS_GAUGES(WRITE_GAUGE)
#undef WRITE_GAUGE
#define WRITE_STORAGES(metric, help, value)							\
	skv_metrics_head(out, #metric, "", "gauge", help);					\
	for (uint32_t i = 0; i < s->n_storages; i++) {						\
		const struct skv_storage_view *v = &s->storages[i];				\
		skv_buf_printf(out, "slabkv_" #metric "{storage=\"%s\"} %" PRIu64 "\n",	\
			       v->spec.name, (uint64_t)(value));				\
	}
	SKV_STORAGE_GAUGES(WRITE_STORAGES)
#undef WRITE_STORAGES
#define WRITE_GROUPS(metric, help, value)							\
	skv_metrics_head(out, #metric, "", "gauge", help);					\
	for (uint32_t i = 0; i < s->n_groups; i++) {						\
		const struct skv_group_view *v = &s->groups[i];					\
		skv_buf_printf(out, "slabkv_" #metric "{group=\"%s\"} %" PRIu64 "\n",		\
			       v->spec.name, (uint64_t)(value));				\
	}
	SKV_GROUP_GAUGES(WRITE_GROUPS)
#undef WRITE_GROUPS
#define WRITE_GROUPS(metric, help, value)							\
	skv_metrics_head(out, #metric, "_total", "counter", help);				\
	for (uint32_t i = 0; i < s->n_groups; i++) {						\
		const struct skv_group_view *v = &s->groups[i];					\
		skv_buf_printf(out, "slabkv_" #metric "_total{group=\"%s\"} %" PRIu64 "\n",	\
			       v->spec.name, (uint64_t)(value));				\
	}
	SKV_GROUP_COUNTERS(WRITE_GROUPS)
#undef WRITE_GROUPS
#define WRITE_INSTANCES(metric, help, value)							\
	skv_metrics_head(out, #metric, "", "gauge", help);					\
	for (uint32_t i = 0; i < s->n_instances; i++) {						\
		const struct skv_instance_view *v = &s->instances[i];				\
		if (v->share_bytes)								\
			skv_buf_printf(out,							\
				       "slabkv_" #metric "{tenant=\"%s\",instance=\"%s\"} %" PRIu64 "\n", \
				       v->spec.tenant, v->spec.id, (uint64_t)(value));		\
	}
	SKV_INSTANCE_GAUGES(WRITE_INSTANCES)
#undef WRITE_INSTANCES
}

void skv_service_expose(struct skv_service *s, struct skv_arena *a, struct skv_buf *out)
{
	struct skv_stats stats;
	struct skv_error ignored;

	write_transports(s, out);
	if (s->core) {
		write_core(s->core, out);
		write_store(s->core, out);
	}
	if (s->core && skv_core_stats(s->core, a, &stats, &ignored) == SKV_OK)
		write_stats(&stats, out);
	for (size_t i = 0; i < s->n_apis; i++)
		if (s->apis[i]->expose)
			s->apis[i]->expose(s->apis[i], s, a, out);
}
