/*
 * metrics.c - the numbers of metrics_table.h, one after the other, and their Prometheus text.
 *
 * No state; any thread. Names of objects are names (skv_name_valid), so a label needs no escapes.
 */
#include "metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <skv/api.h>
#include <skv/core.h>
#include <skv/service.h>

#include "metrics_table.h"

#define COUNTER true
#define GAUGE false
#define INT false
#define REAL true

struct walk {
	void (*sink)(void *ctx, const struct kvcm_metric *metric);
	void *ctx;
};

static void tell(const struct walk *w, struct kvcm_metric *m, double real, uint64_t whole)
{
	m->real = real;
	m->whole = whole > INT64_MAX ? INT64_MAX : (int64_t)whole;
	w->sink(w->ctx, m);
}

/* The form decides which of the two a reader takes. */
#define TELL(metric, value) tell(w, &(metric), (double)(value), (uint64_t)(value))
#define METRIC(n, type, form, h) { .name = (n), .help = (h), .counter = (type), .is_real = (form) }

/* Sums over all routes with the name of route `i`: meta and admin share some names. False if an
 * earlier route has it. */
static bool totals_of(const struct skv_api *api, const struct skv_service *s, size_t i,
		      struct metric_totals *out)
{
	struct metric_totals one;

	assert(i < api->n_routes);
	*out = (struct metric_totals){ 0 };
	for (size_t k = 0; k < api->n_routes; k++) {
		if (strcmp(api->routes[k].name, api->routes[i].name) != 0)
			continue;
		if (k < i)
			return false;
		skv_metrics_totals(&s->metrics, api->first_op + (unsigned)k, &one);
		out->calls += one.calls;
		out->failed += one.failed;
		out->us += one.us;
	}
	return out->calls > 0;
}

static void each_op(const struct walk *w, const struct skv_api *api, const struct skv_service *s)
{
	struct metric_totals totals;
	const struct metric_totals *t = &totals;

#define EACH(title, kind, form, expr, text)                             \
	for (size_t i = 0; i < api->n_routes; i++) {                    \
		struct kvcm_metric m = METRIC(title, kind, form, text); \
		m.n_tags = 1;                                           \
		m.tag[0].key = "api_name";                              \
		m.tag[0].value = api->routes[i].name;                   \
		if (totals_of(api, s, i, &totals))                      \
			TELL(m, expr);                                  \
	}
	KVCM_OP_METRICS(EACH)
#undef EACH
}

static void each_group(const struct walk *w, const struct skv_stats *s)
{
#define EACH(title, kind, form, expr, text)                             \
	for (uint32_t i = 0; i < s->n_groups; i++) {                    \
		const struct skv_group_view *v = &s->groups[i];         \
		struct kvcm_metric m = METRIC(title, kind, form, text); \
		m.n_tags = 1;                                           \
		m.tag[0].key = "instance_group";                        \
		m.tag[0].value = v->spec.name;                          \
		TELL(m, expr);                                          \
	}
	KVCM_GROUP_METRICS(EACH)
#undef EACH
}

static void each_instance(const struct walk *w, const struct skv_stats *s)
{
#define EACH(title, kind, form, expr, text)                             \
	for (uint32_t i = 0; i < s->n_instances; i++) {                 \
		const struct skv_instance_view *v = &s->instances[i];   \
		struct kvcm_metric m = METRIC(title, kind, form, text); \
		m.n_tags = 2;                                           \
		m.tag[0].key = "instance_group";                        \
		m.tag[0].value = v->spec.group;                         \
		m.tag[1].key = "instance_id";                           \
		m.tag[1].value = v->spec.id;                            \
		m.n_tags += strcmp(v->spec.tenant, "default") != 0;     \
		m.tag[2].key = "tenant";                                \
		m.tag[2].value = v->spec.tenant;                        \
		TELL(m, expr);                                          \
	}
	KVCM_INSTANCE_METRICS(EACH)
#undef EACH
}

static void each_storage(const struct walk *w, const struct skv_stats *s)
{
#define EACH(title, kind, form, expr, text)                             \
	for (uint32_t i = 0; i < s->n_storages; i++) {                  \
		const struct skv_storage_view *v = &s->storages[i];     \
		struct kvcm_metric m = METRIC(title, kind, form, text); \
		m.n_tags = 2;                                           \
		m.tag[0].key = "type";                                  \
		m.tag[0].value = v->spec.type;                          \
		m.tag[1].key = "unique_name";                           \
		m.tag[1].value = v->spec.name;                          \
		TELL(m, expr);                                          \
	}
	KVCM_STORAGE_METRICS(EACH)
#undef EACH
}

static void each_total(const struct walk *w, const struct skv_cluster *cluster,
		       const struct skv_stats *s)
{
	struct skv_core_counters got;
	const struct skv_core_counters *c = &got;

	skv_cluster_counters_get(cluster, &got);
#define EACH(title, kind, form, expr, text)                             \
	do {                                                            \
		struct kvcm_metric m = METRIC(title, kind, form, text); \
		TELL(m, expr);                                          \
	} while (0);
	KVCM_TOTAL_METRICS(EACH)
#undef EACH
}

void kvcm_metrics_each(const struct skv_api *api, struct skv_service *s, struct skv_arena *a,
		       void (*sink)(void *ctx, const struct kvcm_metric *metric), void *ctx)
{
	const struct walk w = { sink, ctx };
	struct skv_error ignored;
	const struct skv_page page = skv_metrics_page(s);
	struct skv_stats stats;

	each_op(&w, api, s);
	if (skv_cluster_stats(s->cluster, &page, a, &stats, &ignored) != SKV_OK)
		return;
	each_total(&w, s->cluster, &stats);
	each_group(&w, &stats);
	each_instance(&w, &stats);
	each_storage(&w, &stats);
}

/* ---- Prometheus ------------------------------------------------------------------------------ */

struct text {
	struct skv_buf *out;
	const char *family; /* the last name */
};

static void put_name(struct skv_buf *out, const char *name)
{
	skv_put_bytes(out, "kvcm_", 5);
	for (; *name; name++)
		skv_put_u8(out, *name == '.' ? '_' : (uint8_t)*name);
}

static void put_line(void *ctx, const struct kvcm_metric *m)
{
	struct text *t = ctx;

	assert(m->n_tags <= sizeof m->tag / sizeof m->tag[0]);
	if (t->family != m->name) {
		skv_buf_printf(t->out, "# HELP ");
		put_name(t->out, m->name);
		skv_buf_printf(t->out, " %s\n# TYPE ", m->help);
		put_name(t->out, m->name);
		skv_buf_printf(t->out, " %s\n", m->counter ? "counter" : "gauge");
		t->family = m->name;
	}
	put_name(t->out, m->name);
	for (unsigned i = 0; i < m->n_tags; i++)
		skv_buf_printf(t->out, "%s%s=\"%s\"", i ? "," : "{", m->tag[i].key,
			       m->tag[i].value);
	skv_buf_printf(t->out, "%s ", m->n_tags ? "}" : "");
	if (m->is_real)
		skv_buf_printf(t->out, "%.6g\n", m->real);
	else
		skv_buf_printf(t->out, "%" PRId64 "\n", m->whole);
}

void kvcm_metrics_write(const struct skv_api *api, struct skv_service *s, struct skv_arena *a,
			struct skv_buf *out)
{
	struct text t = { out, NULL };

	kvcm_metrics_each(api, s, a, put_line, &t);
}
