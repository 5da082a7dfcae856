/*
 * metrics.h - this manager's numbers under the peer's names: for getMetrics and for Prometheus.
 */
#ifndef KVCM_METRICS_H
#define KVCM_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include <kvb/arena.h>
#include <kvb/bytes.h>

struct kvb_api;
struct kvb_service;

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

/* Calls `sink` for each number; those of one name come one after the other. A follower has no objects to tell of.
 * Strings live in `a` or in the constant tables. */
void kvcm_metrics_each(const struct kvb_api *api, struct kvb_service *s, struct kvb_arena *a,
		       void (*sink)(void *ctx, const struct kvcm_metric *metric), void *ctx);
/* All of it in Prometheus text format 0.0.4, names beginning with kvcm_: kvb_api.expose. */
void kvcm_metrics_write(const struct kvb_api *api, struct kvb_service *s, struct kvb_arena *a, struct kvb_buf *out);

#endif
