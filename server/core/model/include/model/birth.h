/* birth.h - when blocks were created, derived from generations instead of a timestamp per block. */
#ifndef SKV_CORE_MODEL_BIRTH_H
#define SKV_CORE_MODEL_BIRTH_H

#include <stdint.h>
#include <stddef.h>

struct partition;

/* Blocks from this generation on were started at this time or later. */
struct birth {
	uint64_t generation;
	uint64_t ms; /* of the birth clock (birth.c) */
};

/* Generations from `generation` on are given out at `ms` or later. A time before that of an older
 * generation counts as that one. Drops detail when short of memory. */
void birth_note(struct partition *p, uint64_t generation, uint64_t ms);
/* Starts the birth clock once all entries are loaded. `base`: birth_base of the last owner, if it
 * ran on this boot, else 0; `lead`: its birth_most_lead. */
void birth_begin(struct partition *p, int64_t base, uint64_t lead);
/* The birth clock, ms: of an entry noted now. It is never set. */
uint64_t birth_now(const struct partition *p);
/* Reads the wall clock, which times are converted with from now on. */
void birth_look(struct partition *p);
/* A wall time on the birth clock. */
uint64_t birth_from_wall(const struct partition *p, uint64_t wall_ms);
/* The lowest generation given out after `ms` of the birth clock, as far as is known. */
uint64_t birth_after(const struct partition *p, uint64_t ms);
/* About when this generation was given out, as wall time; 0 if unknown. */
uint64_t birth_of(const struct partition *p, uint64_t generation);
/* The same for many nearby generations: *at, 0 at first, is the position of the previous one. */
uint64_t birth_next(const struct partition *p, uint64_t generation, size_t *at);

#endif
