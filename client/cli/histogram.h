/*
 * histogram.h - latencies in microseconds, log-linear: 64 buckets for each power of two, so a
 * quantile is at most 1.6 % above the true one. Shared by replay and bench. One thread at a time:
 * give each its own and merge.
 */
#ifndef SKV_CLI_HISTOGRAM_H
#define SKV_CLI_HISTOGRAM_H

#include <stdint.h>

#define SKV_HISTOGRAM_BUCKETS (64 * 36) /* up to 2^40 us */

struct skv_histogram {
	uint64_t count;
	uint64_t sum;
	uint64_t max;
	uint64_t bucket[SKV_HISTOGRAM_BUCKETS];
};

/* All-zero is an empty histogram. */
void skv_histogram_add(struct skv_histogram *h, uint64_t us);
void skv_histogram_merge(struct skv_histogram *into, const struct skv_histogram *from);
/* Upper bound of the bucket that holds quantile q (0..1); 0 when empty; never above max. */
uint64_t skv_histogram_quantile(const struct skv_histogram *h, double q);

#endif
