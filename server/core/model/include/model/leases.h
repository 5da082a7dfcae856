/* leases.h - leased bytes per instance, for the limit on them. */
#ifndef SKV_CORE_MODEL_LEASES_H
#define SKV_CORE_MODEL_LEASES_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/hash.h>

#include <model/partition.h>

/* How long a start waits for leases and grace periods to end; leases no longer than this are not
 * limited. */
#define SOON_MS 1000u
/* Of a block that has been removed. */
struct lease {
	uint32_t inst; /* durable number */
	struct skv_key key;
	uint64_t until; /* boot time ms */
};

/* The leases that a lookup adds; ends are on the clock of uses, as in marks. */
struct lease_tally {
	uint64_t now;          /* current window */
	uint64_t to, from;     /* windows */
	uint64_t added, moved; /* blocks added to `to`; `moved`: those moved from `from` */
	uint64_t moved_from;
};
/* log2 of a window's length in ms. */
uint32_t lease_shift(uint32_t longest_ms);
/* Returns true if a lease with this end is counted. */
bool lease_counts(const struct partition *p, uint64_t end, uint64_t now);
void lease_moves(struct instance *inst, struct lease_tally *t, uint64_t from, uint64_t to);
/* Moves the end of a block's lease; `before` 0 or in the past: it had none. */
static inline void lease_note(const struct partition *p, struct instance *inst,
			      struct lease_tally *t, uint64_t before, uint64_t end)
{
	const uint64_t from = before >> p->lease_shift, to = end >> p->lease_shift;

	if (from != to && to >= t->now)
		lease_moves(inst, t, from, to);
}
struct lease_tally lease_tally_begin(const struct partition *p, struct instance *inst,
				     uint64_t now);
void lease_tally_end(struct instance *inst, const struct lease_tally *t);
/* Leased bytes of the instance, a lower bound; leases of the last window or two may still be
 * counted after their end. */
uint64_t leased_bytes(const struct partition *p, struct instance *inst, uint64_t now);
/* Call before `to` is shared. */
void leases_copy(struct instance *to, const struct instance *from);

#endif
