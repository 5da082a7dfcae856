/*
 * metrics.h - this manager's metrics under KVCM's names: for getMetrics and for Prometheus.
 */
#ifndef KVCM_METRICS_H
#define KVCM_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/bytes.h>

struct skv_api;
struct skv_service;

struct kvcm_metric {
	const char *name;
	const char *help;
	bool counter; /* else a gauge */
	bool is_real;
	int64_t whole;
	double real;
	unsigned n_tags;
	struct {
		const char *key;
		const char *value;
	} tag[3];
};

/* Calls `sink` for each number; those of one name come one after the other. A follower has no
 * objects to tell of. Strings live in `a` or in the constant tables. */
void kvcm_metrics_each(const struct skv_api *api, struct skv_service *s, struct skv_arena *a,
		       void (*sink)(void *ctx, const struct kvcm_metric *metric), void *ctx);
/* All of it in Prometheus text format 0.0.4, names beginning with kvcm_: skv_api.expose. */
void kvcm_metrics_write(const struct skv_api *api, struct skv_service *s, struct skv_arena *a,
			struct skv_buf *out);

#endif
