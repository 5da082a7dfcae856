/* birth.h - when blocks were created, derived from generations instead of a timestamp per block. */
#ifndef SKV_CORE_MODEL_BIRTH_H
#define SKV_CORE_MODEL_BIRTH_H

#include <stdint.h>
#include <stddef.h>

struct partition;

/* Blocks from this generation on were started at this time or later. */
struct birth {
	uint64_t generation;
	uint64_t wall_ms; /* birth.c */
};

/* Generations from `generation` on are given out at `wall_ms` or later. Drops detail when short of
 * memory. */
void birth_note(struct partition *p, uint64_t generation, uint64_t wall_ms);
/* Loaded entries lie in the past; new ones use birth_look's time. */
void birth_begin(struct partition *p);
/* Reads the wall clock, which later times are converted with. Returns the time for an entry noted
 * now. */
uint64_t birth_look(struct partition *p);
/* Wall time of entry i. */
uint64_t birth_wall_ms(const struct partition *p, size_t i);
/* The lowest generation given out later than this, as far as is known. */
uint64_t birth_after(const struct partition *p, uint64_t wall_ms);
/* About when this generation was given out; 0 if unknown. */
uint64_t birth_of(const struct partition *p, uint64_t generation);
/* The same for many nearby generations: *at, 0 at first, is the position of the previous one. */
uint64_t birth_next(const struct partition *p, uint64_t generation, size_t *at);

#endif
