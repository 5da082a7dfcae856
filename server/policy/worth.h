/*
 * worth.h - the worth of keeping a block, by its class and age, learned from the ages at which
 * blocks of the class were used again.
 *
 * The worth is a Gittins index: of all ages up to which the block could be kept, the best ratio of
 * expected hits to expected time in the store. Ages and times are counts of births.
 */
#ifndef SKV_WORTH_H
#define SKV_WORTH_H

#include <stdint.h>

#define WORTH_CLASSES 6u
#define WORTH_AGES 56u /* half octaves */

/* Zeroed, then worth_update(): everything is worth the same at the same age. */
struct worth {
	double again[WORTH_CLASSES][WORTH_AGES]; /* used again at that age */
	double never[WORTH_CLASSES][WORTH_AGES]; /* not known to be, until then */
	float index[WORTH_CLASSES][WORTH_AGES];
};

void worth_again(struct worth *w, uint32_t class, uint64_t age);
/* `n` blocks of that class and age were not. */
void worth_never(struct worth *w, uint32_t class, uint64_t age, uint32_t n);
/* Computes all indices; older counts decay. */
void worth_update(struct worth *w);
double worth_of(const struct worth *w, uint32_t class, uint64_t age);

#endif
