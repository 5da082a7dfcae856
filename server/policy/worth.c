/* worth.c - see worth.h. No locks: the caller serialises access. */
#include "worth.h"

#include <assert.h>

#define FADE 0.95   /* of the counts, at each update */
#define PRIOR 20.0  /* a class begins as if this many of its blocks had the chances of all */
#define SURE 1e-6   /* a chance below this is none */
#define SQRT2 1.4142135623730951

/* The age at which a range begins. */
static double begin_of(uint32_t range)
{
	return (double)(1ull << range / 2) * (range % 2 ? SQRT2 : 1);
}

static uint32_t range_of(uint64_t age)
{
	uint32_t octave = age ? 63 - (uint32_t)__builtin_clzll(age) : 0,
		 range = 2 * octave + ((double)age >= (double)(1ull << octave) * SQRT2);

	return range < WORTH_AGES ? range : WORTH_AGES - 1;
}

void worth_again(struct worth *w, uint32_t class, uint64_t age)
{
	assert(class < WORTH_CLASSES);
	w->again[class][range_of(age)]++;
}

void worth_never(struct worth *w, uint32_t class, uint64_t age, uint32_t n)
{
	assert(class < WORTH_CLASSES);
	w->never[class][range_of(age)] += n;
}

/* left[a]: blocks of a class (of all: NULL) that were seen at that age or later. */
static void count_left(const struct worth *w, uint32_t first, uint32_t end, double *again,
		       double *left)
{
	double sum = 0;

	for (uint32_t a = WORTH_AGES; a-- > 0;) {
		again[a] = 0;
		for (uint32_t c = first; c < end; c++) {
			again[a] += w->again[c][a];
			sum += w->again[c][a] + w->never[c][a];
		}
		left[a] = sum;
	}
}

/* The best ratio of hits to time, from the begin of an age range on. */
static double best_ratio(const double *chance, uint32_t from)
{
	double stays = 1, hits = 0, time = 0, best = 0;

	for (uint32_t a = from; a < WORTH_AGES && stays > SURE; a++) {
		hits += stays * chance[a];
		time += stays * (begin_of(a + 1) - begin_of(a)) * (1 - chance[a] / 2);
		stays *= 1 - chance[a];
		best = hits / time > best ? hits / time : best;
	}
	return best;
}

void worth_update(struct worth *w)
{
	double all_again[WORTH_AGES], all_left[WORTH_AGES], again[WORTH_AGES], left[WORTH_AGES],
		chance[WORTH_AGES];

	count_left(w, 0, WORTH_CLASSES, all_again, all_left);
	for (uint32_t c = 0; c < WORTH_CLASSES; c++) {
		count_left(w, c, c + 1, again, left);
		for (uint32_t a = 0; a < WORTH_AGES; a++) {
			double all = (all_again[a] + 0.1) / (all_left[a] + 1),
			       prior = PRIOR * all_left[a] / (all_left[0] + 1) + 0.01;

			chance[a] = (again[a] + prior * all) / (left[a] + prior);
		}
		for (uint32_t a = 0; a < WORTH_AGES; a++) {
			w->index[c][a] = (float)best_ratio(chance, a);
			w->again[c][a] *= FADE;
			w->never[c][a] *= FADE;
		}
	}
}

/* Between the middles of two ranges in proportion, so that equal classes do not differ by a range's
 * edge. */
double worth_of(const struct worth *w, uint32_t class, uint64_t age)
{
	uint32_t range = range_of(age), next = range + 1 < WORTH_AGES ? range + 1 : range;
	double begin = begin_of(range),
	       part = ((double)age - begin) / (begin_of(range + 1) - begin);

	assert(class < WORTH_CLASSES);
	part = part < 0 ? 0 : part > 1 ? 1 : part;
	return w->index[class][range] * (1 - part) + w->index[class][next] * part;
}
