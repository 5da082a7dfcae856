/*
 * replay.h - what the decoders of durable records share (replay.c, replay_blocks.c).
 */
#ifndef SKV_CORE_REPLAY_H
#define SKV_CORE_REPLAY_H

#include "internal.h"

static inline struct skv_key get_key(struct skv_rd *r)
{
	uint64_t hi = skv_get_u64(r);

	return (struct skv_key){ .hi = hi, .lo = skv_get_u64(r) };
}

static inline int corrupt(struct skv_error *err, const char *what)
{
	return skv_fail(err, SKV_E_CORRUPT, NULL, "stored record: %s", what);
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

static inline bool get_name(struct skv_rd *in, struct skv_bytes *name)
{
	name->p = skv_get_string(in, &name->n, SKV_MAX_BLOCK_NAME);
	return !in->failed;
}

/* Where slots lie: in a space of the part. */
struct place {
	uint32_t space;
	struct skv_slab_place slab;
};
/* Of slots that are in use, so in a registered storage. SKV_E_CORRUPT. */
int replay_place(struct replay *r, struct skv_rd *in, struct place *out, struct skv_error *err);
/* Takes slots run->first.. of the place for a spec; sets run->slab. SKV_E_CORRUPT, SKV_E_NOMEM. */
int replay_take(struct replay *r, struct instance *inst, uint32_t spec, const struct place *pl, struct skv_run *run,
		struct skv_error *err);

/* replay_blocks.c */
int replay_remove(struct replay *r, struct skv_rd *in, struct skv_error *err);
int replay_blocks(struct replay *r, struct skv_rd *in, bool named, struct skv_error *err);

#endif
