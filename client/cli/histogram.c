/* histogram.c - see histogram.h. Buckets 0..63 hold single values; then 64 per octave, of which the
 * lower 32 are never used twice: value v with top bit b >= 6 goes to octave b - 5, linear
 * within. */
#include "histogram.h"

#include <assert.h>

#define SUB 64u
_Static_assert(SKV_HISTOGRAM_BUCKETS % SUB == 0, "whole octaves");

static uint32_t index_of(uint64_t v)
{
	uint32_t octave;

	if (v < SUB)
		return (uint32_t)v;
	octave = 63u - (uint32_t)__builtin_clzll(v) - 5u; /* 1 for 64..127 */
	if (octave > SKV_HISTOGRAM_BUCKETS / SUB - 1)
		return SKV_HISTOGRAM_BUCKETS - 1;
	assert((v >> (octave - 1)) / SUB == 1); /* 64..127: its place within the octave */
	return octave * SUB + (uint32_t)((v >> (octave - 1)) - SUB);
}

/* Largest value of a bucket. */
static uint64_t upper(uint32_t index)
{
	uint32_t octave = index / SUB;

	assert(index < SKV_HISTOGRAM_BUCKETS);
	if (octave == 0)
		return index;
	return ((uint64_t)(index % SUB + SUB + 1) << (octave - 1)) - 1;
}

void skv_histogram_add(struct skv_histogram *h, uint64_t us)
{
	uint32_t at = index_of(us);

	assert(at == 0 || us > upper(at - 1));
	assert(us <= upper(at) || at == SKV_HISTOGRAM_BUCKETS - 1);
	h->count++;
	h->sum += us;
	if (us > h->max)
		h->max = us;
	h->bucket[at]++;
}

void skv_histogram_merge(struct skv_histogram *into, const struct skv_histogram *from)
{
	assert(from->count > 0 ? from->max <= from->sum : from->sum == 0 && from->max == 0);
	into->count += from->count;
	into->sum += from->sum;
	if (from->max > into->max)
		into->max = from->max;
	for (uint32_t i = 0; i < SKV_HISTOGRAM_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
}

uint64_t skv_histogram_quantile(const struct skv_histogram *h, double q)
{
	uint64_t want = (uint64_t)(q * (double)h->count);
	uint64_t seen = 0;

	assert(q >= 0 && q <= 1);
	if (h->count == 0)
		return 0;
	if (want >= h->count)
		want = h->count - 1;
	for (uint32_t i = 0; i < SKV_HISTOGRAM_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen > want)
			return upper(i) < h->max ? upper(i) : h->max;
	}
	return h->max;
}
