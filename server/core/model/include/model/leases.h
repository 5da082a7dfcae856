/*
 * leases.h - how many bytes of an instance are leased, for the cap on them.
 */
#ifndef SKV_CORE_MODEL_LEASES_H
#define SKV_CORE_MODEL_LEASES_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/hash.h>

#include <model/partition.h>

#define SOON_MS 1000u /* a start waits so long for leases and grace times to end; leases no longer than this have no cap */
/* Of a block that was there once. */
struct lease {
	uint32_t inst; /* durable number */
	struct skv_key key;
	uint64_t until; /* boot time ms */
};

/* What one lookup adds: ends are in the milliseconds of uses, as marks have them. */
struct lease_tally {
	uint64_t now;          /* window of the present */
	uint64_t to, from;     /* windows */
	uint64_t added, moved; /* blocks, into `to`; of `moved` those since `from` was set */
	uint64_t moved_from;
};
/* Of a window: 2^shift ms. */
uint32_t lease_shift(uint32_t longest_ms);
/* Is a lease with this end counted? */
bool lease_counts(const struct partition *p, uint64_t end, uint64_t now);
void lease_moves(struct instance *inst, struct lease_tally *t, uint64_t from, uint64_t to);
/* The end of a block's lease moves; `before` 0 or in the past: it had none. */
static inline void lease_note(const struct partition *p, struct instance *inst, struct lease_tally *t, uint64_t before, uint64_t end)
{
	const uint64_t from = before >> p->lease_shift, to = end >> p->lease_shift;

	if (from != to && to >= t->now)
		lease_moves(inst, t, from, to);
}
struct lease_tally lease_tally_begin(const struct partition *p, struct instance *inst, uint64_t now);
void lease_tally_end(struct instance *inst, const struct lease_tally *t);
/* Bytes of the instance that are leased: at least, and with what ended within the last window or two. */
uint64_t leased_bytes(const struct partition *p, struct instance *inst, uint64_t now);
/* Before anybody else uses `to`. */
void leases_copy(struct instance *to, const struct instance *from);

#endif
