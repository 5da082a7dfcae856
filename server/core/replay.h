/*
 * replay.h - what the decoders of durable records share (replay.c, replay_blocks.c).
 */
#ifndef KVB_CORE_REPLAY_H
#define KVB_CORE_REPLAY_H

#include "internal.h"

static inline struct kvb_key get_key(struct kvb_rd *r)
{
	uint64_t hi = kvb_get_u64(r);

	return (struct kvb_key){ .hi = hi, .lo = kvb_get_u64(r) };
}

static inline int corrupt(struct kvb_error *err, const char *what)
{
	return kvb_fail(err, KVB_E_CORRUPT, NULL, "stored record: %s", what);
}

/* Generations first..first+n-1 were given out: none of them may be given again. */
static inline bool given(struct replay *r, uint64_t first, uint64_t n)
{
	if (first == 0 || first + n > MAX_GENERATION)
		return false;
	if (r->p->next_generation < first + n)
		r->p->next_generation = first + n;
	return true;
}

static inline bool get_name(struct kvb_rd *in, struct kvb_bytes *name)
{
	name->p = kvb_get_string(in, &name->n, KVB_MAX_BLOCK_NAME);
	return !in->failed;
}

/* Where slots lie: in a space of the part. */
struct place {
	uint32_t space;
	struct kvb_slab_place slab;
};
/* Of slots that are in use, so in a registered storage. KVB_E_CORRUPT. */
int replay_place(struct replay *r, struct kvb_rd *in, struct place *out, struct kvb_error *err);
/* Takes slots run->first.. of the place for a spec; sets run->slab. KVB_E_CORRUPT, KVB_E_NOMEM. */
int replay_take(struct replay *r, struct instance *inst, uint32_t spec, const struct place *pl, struct kvb_run *run,
		struct kvb_error *err);

/* replay_blocks.c */
int replay_remove(struct replay *r, struct kvb_rd *in, struct kvb_error *err);
int replay_blocks(struct replay *r, struct kvb_rd *in, bool named, struct kvb_error *err);

#endif
