/*
 * replay.h - decoding of durable records: one table of operations per record type, and helpers of
 * the decoders.
 *
 * The input was written by record.c but is treated as untrusted: every count is bounded by the
 * bytes present, every reference is looked up, every slot must be free to be taken. A record that
 * does not fit is SKV_E_CORRUPT; nothing aborts. The partition is private to the loader.
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

/* Collected besides the state itself. */
struct replay {
	struct partition *p;
	uint64_t now;
	bool orphans;     /* the journal has records of an instance no longer registered */
	/* Objects that a record names are registered by now: SKV_E_NOT_FOUND is "read it". */
	bool follows;
	bool clean;       /* the newest horizon record was written by a clean shutdown */
	char boot_id[37]; /* from that record, "" = none seen */
	uint64_t horizon_until;
	uint32_t horizon_span;
	uint64_t freeze_ms; /* remaining time of a freeze, from that record */
	int64_t birth_base;  /* from that record, 0 = unknown; on its boot */
	uint64_t birth_lead; /* ms, from that record */
	uint32_t *chunk; /* by a chunk's number in the checkpoint: its number here, 0 = not seen */
	size_t n_chunk, cap_chunk;
	/* Called when all consecutive records of type `settles` have been read. */
	int (*settle)(struct replay *r, struct skv_error *err);
	uint8_t settles; /* type of those records */
};

/* Applies a sequence of records (a journal batch or a checkpoint slice), each by its type's
 * operations in core->records. */
int replay_records(struct replay *r, const void *bytes, size_t n, struct skv_error *err);
/* The same from byte *at on, which is left at the first record that was not applied.
 * SKV_E_NOT_FOUND, of one that follows: it refers to something that is not known here,
 * and has changed nothing. */
int replay_records_from(struct replay *r, const void *bytes, size_t n, size_t *at,
			struct skv_error *err);
/* A record of an instance that is not registered: it is skipped, and remembered. */
int replay_orphan(struct replay *r);
/* Ends the replay after the last record, with any result. */
int replay_close(struct replay *r, int rc, struct skv_error *err);

static inline struct skv_key get_key(struct skv_rd *r)
{
	uint64_t hi = skv_get_u64(r);

	return (struct skv_key){ .hi = hi, .lo = skv_get_u64(r) };
}

static inline int corrupt(struct skv_error *err, const char *what)
{
	return skv_fail(err, SKV_E_CORRUPT, NULL, "stored record: %s", what);
}

/* Generations first..first+n-1 are used: never hand them out again. */
static inline bool given(struct replay *r, uint64_t first, uint64_t n)
{
	if (first == 0 || first + n > MAX_GENERATION)
		return false;
	generation_least(r->p, first + n);
	return true;
}

static inline bool get_name(struct skv_rd *in, struct skv_bytes *name)
{
	name->p = skv_get_string(in, &name->n, SKV_MAX_BLOCK_NAME);
	return !in->failed;
}

/* Location of slots: in a volume of the partition. */
struct place {
	uint32_t volume;
	struct skv_slab_place slab;
};
/* SKV_E_NOT_FOUND: of an unregistered storage. */
int replay_get_place(struct replay *r, struct skv_rd *in, struct place *out, struct skv_error *err);
/* For slots in use, so the storage must be registered. SKV_E_CORRUPT. */
int replay_place(struct replay *r, struct skv_rd *in, struct place *out, struct skv_error *err);
/* Takes slots run->first.. of the place for a spec; sets run->slab. SKV_E_CORRUPT, SKV_E_NOMEM. */
int replay_take(struct replay *r, struct instance *inst, uint32_t spec, const struct place *pl,
		struct skv_run *run, struct skv_error *err);
/* The open session that an end record refers to; *out NULL = skip the record. SKV_E_CORRUPT. */
int replay_session(struct replay *r, struct skv_key id, struct session **out,
		   struct skv_error *err);
/* A recorded time on this boot's clock; after a reboot the same distance from now. */
uint64_t replay_get_end(const struct replay *r, struct skv_rd *in);

#endif
