/*
 * admin_metrics.c - getMetrics: the metrics of metrics.h as messages.
 *
 * No state. Any node answers.
 */
#include "op_list.h"

#include <skv/clock.h>

#include "metrics.h"

#include <assert.h>

#define FIRST_ROOM 64

struct list {
	struct skv_arena *a;
	KvcmAdmin__GetMetricsResponse *res;
	size_t room;
	bool failed;
};

static bool grow(struct list *l)
{
	size_t room = l->room ? 2 * l->room : FIRST_ROOM;
	KvcmAdmin__MetricsData **v;

	if (l->res->n_metrics < l->room)
		return true;
	v = skv_arena_calloc(l->a, room, sizeof *v);
	if (!v)
		return false;
	for (size_t i = 0; i < l->res->n_metrics; i++)
		v[i] = l->res->metrics[i];
	l->res->metrics = v;
	l->room = room;
	return true;
}

static KvcmAdmin__MetricsTag *make_tag(struct list *l, const char *key, const char *value)
{
	KvcmAdmin__MetricsTag *tag = skv_arena_alloc(l->a, sizeof *tag);

	if (!tag)
		return NULL;
	kvcm_admin__metrics_tag__init(tag);
	tag->tag_key = (char *)key;
	tag->tag_value = (char *)value;
	return tag;
}

static KvcmAdmin__MetricsData *make_entry(struct list *l, const struct kvcm_metric *m)
{
	KvcmAdmin__MetricsData *d = skv_arena_alloc(l->a, sizeof *d);
	KvcmAdmin__MetricValue *v = skv_arena_alloc(l->a, sizeof *v);
	KvcmAdmin__MetricsTag **tags = skv_arena_calloc(l->a, m->n_tags + 1, sizeof *tags);

	if (!d || !v || !tags)
		return NULL;
	assert(m->n_tags <= sizeof m->tag / sizeof m->tag[0]);
	kvcm_admin__metrics_data__init(d);
	kvcm_admin__metric_value__init(v);
	v->value_case = m->is_real ? KVCM_ADMIN__METRIC_VALUE__VALUE_FLOAT_VALUE
				   : KVCM_ADMIN__METRIC_VALUE__VALUE_INT_VALUE;
	if (m->is_real)
		v->float_value = m->real;
	else
		v->int_value = m->whole;
	d->metric_name = (char *)m->name;
	d->metric_value = v;
	d->metric_tags = tags;
	for (; d->n_metric_tags < m->n_tags; d->n_metric_tags++) {
		tags[d->n_metric_tags] =
			make_tag(l, m->tag[d->n_metric_tags].key, m->tag[d->n_metric_tags].value);
		if (!tags[d->n_metric_tags])
			return NULL;
	}
	return d;
}

static void add(void *ctx, const struct kvcm_metric *m)
{
	struct list *l = ctx;
	KvcmAdmin__MetricsData *d = !l->failed && grow(l) ? make_entry(l, m) : NULL;

	assert(!d || l->res->n_metrics < l->room);
	if (d)
		l->res->metrics[l->res->n_metrics++] = d;
	else
		l->failed = true;
}

int kvcm_run_admin_getMetrics(struct kvcm_request *k)
{
	struct list l = { .a = &k->c->arena, .res = k->res };

	l.res->timestamp = (int64_t)skv_wall_ms(&skv_clock_system);
	kvcm_metrics_each(k->c->api, k->c->s, l.a, add, &l);
	return l.failed ? kvcm_nomem(k) : SKV_OK;
}
