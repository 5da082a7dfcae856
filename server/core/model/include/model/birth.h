/*
 * birth.h - when blocks were made, without a time in each of them.
 */
#ifndef SKV_CORE_MODEL_BIRTH_H
#define SKV_CORE_MODEL_BIRTH_H

#include <stdint.h>
#include <stddef.h>

struct partition;

/* From this generation on blocks were started at this time or later. */
struct birth {
	uint64_t generation;
	uint64_t wall_ms; /* birth.c */
};

/* Generations from `generation` on are given out from `wall_ms` on. Forgets detail when short of memory. */
void birth_note(struct partition *p, uint64_t generation, uint64_t wall_ms);
/* What was loaded lies in the past; from here on pairs have the time that birth_look tells. */
void birth_begin(struct partition *p);
/* Looks at the wall clock, by which times are told from here on. Returns the time for a pair that is noted now. */
uint64_t birth_look(struct partition *p);
/* Of pair i, by the wall clock. */
uint64_t birth_told(const struct partition *p, size_t i);
/* The least generation that was given out later than this, as far as anybody knows. */
uint64_t birth_after(const struct partition *p, uint64_t wall_ms);
/* About when this generation was given out; 0 if nobody knows. */
uint64_t birth_of(const struct partition *p, uint64_t generation);
/* The same of many that are near each other: *at, 0 at first, is where the one before was found. */
uint64_t birth_next(const struct partition *p, uint64_t generation, size_t *at);

#endif
