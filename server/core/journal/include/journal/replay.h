/*
 * replay.h - durable records on their way back: one table of operations for each record type, and what their decoders share.
 *
 * Input is what record.c wrote, but it is treated as foreign: every count is bounded by the bytes that are there, every
 * reference is looked up, every slot must be free to be taken. A record that does not fit is SKV_E_CORRUPT; nothing
 * aborts. The partition is the loader's alone, nobody else sees it yet.
 */
#ifndef SKV_CORE_JOURNAL_REPLAY_H
#define SKV_CORE_JOURNAL_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <skv/bytes.h>
#include <skv/hash.h>
#include <skv/limits.h>
#include <skv/pool.h>
#include <skv/status.h>

#include <model/block.h>
#include <model/partition.h>

struct session;
struct skv_bytes;

/* What is gathered beside the state itself. */
struct replay {
	struct partition *p;
	uint64_t now;
	bool orphans;     /* records of an instance that is no longer registered */
	bool clean;       /* the newest horizon record was written by a clean shutdown */
	char boot_id[37]; /* of that record, "" = none seen */
	uint64_t horizon_until;
	uint32_t horizon_span;
	uint64_t freeze_ms; /* what is left of a freeze, by that record */
};

/* Applies a sequence of records (a journal batch or a checkpoint slice), each by its type's operations in core->records. */
int replay_records(struct replay *r, const void *bytes, size_t n, struct skv_error *err);

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

/* Where slots lie: in a volume of the partition. */
struct place {
	uint32_t volume;
	struct skv_slab_place slab;
};
/* SKV_E_NOT_FOUND: of a storage that is not registered. */
int replay_get_place(struct replay *r, struct skv_rd *in, struct place *out, struct skv_error *err);
/* Of slots that are in use, so in a registered storage. SKV_E_CORRUPT. */
int replay_place(struct replay *r, struct skv_rd *in, struct place *out, struct skv_error *err);
/* Takes slots run->first.. of the place for a spec; sets run->slab. SKV_E_CORRUPT, SKV_E_NOMEM. */
int replay_take(struct replay *r, struct instance *inst, uint32_t spec, const struct place *pl, struct skv_run *run,
		struct skv_error *err);
/* The open session that the record of an end refers to; *out NULL = skip the record. SKV_E_CORRUPT. */
int replay_session(struct replay *r, struct skv_key id, struct session **out, struct skv_error *err);
/* A time that this boot's clock tells, or that lies so far ahead again. */
uint64_t replay_get_end(const struct replay *r, struct skv_rd *in);
/* Until when blocks that go with this record may be leased. */
uint64_t replay_get_leased_until(const struct replay *r, struct skv_rd *in);

#endif
