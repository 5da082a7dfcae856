/*
 * space_set.h - a set of a part's spaces, by their index.
 *
 * A value of four words: copied, compared and joined without a loop over spaces. Pure; no state.
 */
#ifndef SKV_CORE_SPACE_SET_H
#define SKV_CORE_SPACE_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MAX_STORAGES 256u /* a slot names its space in 8 bits */

struct space_set {
	uint64_t word[MAX_STORAGES / 64];
};

static inline void space_set_add(struct space_set *s, uint32_t space) { s->word[space / 64] |= 1ull << space % 64; }

static inline bool space_set_has(const struct space_set *s, uint32_t space)
{
	return s->word[space / 64] >> space % 64 & 1;
}

static inline struct space_set space_set_all(void)
{
	struct space_set s;

	memset(&s, 0xff, sizeof s);
	return s;
}

static inline void space_set_join(struct space_set *s, const struct space_set *other)
{
	for (unsigned i = 0; i < MAX_STORAGES / 64; i++)
		s->word[i] |= other->word[i];
}

static inline bool space_set_meets(const struct space_set *a, const struct space_set *b)
{
	uint64_t both = 0;

	for (unsigned i = 0; i < MAX_STORAGES / 64; i++)
		both |= a->word[i] & b->word[i];
	return both != 0;
}

static inline bool space_set_empty(const struct space_set *s) { return !space_set_meets(s, s); }

#endif
