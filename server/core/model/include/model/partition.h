/* partition.h - a partition: everything that the core's lock protects, and who may access it. */
#ifndef SKV_CORE_MODEL_PARTITION_H
#define SKV_CORE_MODEL_PARTITION_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <skv/bytes.h>
#include <skv/heap.h>
#include <skv/lock.h>

#include <lock/core.h>
#include <model/objects.h>
#include <model/volume.h>

struct birth;
struct damage;
struct lease;
struct move;
struct partition;
struct session;
struct trim_op;
struct wishes;

#define SESSION_BUCKETS 65536u
#define INSTANCE_BUCKETS 16384u

#define USES_NOTED 1024u /* blocks of a record of uses, at most */

struct removal {
	uint32_t block;
	uint32_t specs;      /* specs that were COMMITTED when the block was marked */
	uint64_t hold_until; /* 0 = free at once */
};

/* Blocks picked for removal. mark() hides a block at once (its committed slots become REMOVING);
 * queue() journals the record of all of them, or un-marks them (SKV_E_NOMEM). */
#define MAX_PICKS 16384u /* limit of one eviction: it holds the lock, and records are bounded */
struct picks {
	struct removal *v;
	size_t n;
	size_t cap;
	bool relaxed; /* of the record: see change.h */
};

struct snapshot {
	bool active;
	bool failed;      /* out of memory, or an append failed: start again later */
	/* No leases are granted any more: store the ends of running ones, not horizons. */
	bool exact;
	/* copies into `out` (journal/snapshot.c) */
	void (*copy)(struct partition *p, uint32_t chunk);
	uint64_t number;  /* increases; chunks remember the newest that has them */
	uint64_t seq;     /* state as of this batch */
	/* Last change queued when it began: must be durable before the snapshot counts. */
	uint64_t barrier;
	uint64_t journal_bytes; /* before the checkpoint: bytes that it will truncate */
	uint64_t blocks;        /* when it began */
	uint32_t next_chunk, end_chunk;
	struct skv_buf out;      /* blocks, cut into slices by the checkpointer */
	struct skv_buf leases;   /* of the blocks, and holds of those that were cleared */
	struct skv_buf tail;     /* sessions, holds, counters: the last slice */
};

/* An end of the journal. Each batch carries the one before it, so that batches of two histories are
 * never read as one. */
struct journal_end {
	uint64_t epoch;  /* fence of the owner that appended last */
	uint64_t number; /* acknowledged batches; an owner's first records do not count */
	uint64_t chain;  /* XXH3-64 of the last batch, which has that of the one before */
};

struct partition {
	struct skv_core *core;
	/* Of all its writes to the store; each load has a new one, so it also identifies the
	 * partition. */
	uint64_t fence;
	uint64_t seq; /* newest durable batch */
	uint64_t journal_bytes;

	struct volume *volume;
	uint32_t *volume_order; /* [n_named] volumes in order of their names (find.h) */
	uint32_t n_volume;
	uint32_t n_gap;   /* of these: deleted, reusable */
	uint32_t n_named; /* and the others */
	size_t cap_volume, cap_volume_order;
	struct group **group; /* in order of their names */
	size_t n_group, cap_group;
	uint32_t n_tiers; /* of these: fast tiers of others */
	struct wishes *wishes; /* blocks that are wanted there, or in another storage */
	struct instance **inst; /* in order of tenant, id and number */
	size_t n_inst, cap_inst;
	struct instance *inst_of_id[INSTANCE_BUCKETS]; /* by number, chained by next_of_id */
	uint32_t inst_turn; /* counts changes of which there are */
	struct tenant **tenant; /* tenants that have had instances */
	size_t n_tenant, cap_tenant;
	struct tenant *touched; /* by touched_next: tenants whose rules' sums are not updated yet */
	/* Of the newest search for victims: how many share its room; 0 = one alone. */
	uint32_t tenants_counted;
	struct group detached; /* of dropped instances */
	struct instance *retired; /* cleared or dropped instances, until swept (clear.c) */

	struct chunk **chunk; /* [1..n_chunk-1]; 0 is unused, so that id 0 means none */
	size_t n_chunk, cap_chunk;
	/* Copies of chunk[i]->stride: heads of chunks compete for few cache sets. */
	uint16_t *chunk_stride;
	size_t cap_chunk_stride;
	struct chunk *spare_chunk; /* of dropped instances, reusable */
	void **region;             /* memory of the chunks */
	size_t n_region, cap_region;
	uint32_t region_left; /* unused chunks of the newest region */
	uint64_t blocks;
	uint64_t most_blocks; /* limit of blocks, since memory is full; 0: any number */

	struct session **session; /* by number, NULL = free */
	size_t n_session, cap_session;
	uint32_t *session_free;
	size_t n_session_free, cap_session_free;
	struct session *session_by_id[SESSION_BUCKETS];
	struct session *session_by_request[SESSION_BUCKETS];
	struct session *ended_head, *ended_tail;
	uint64_t open_sessions, ended_sessions;
	struct skv_heaps deadlines; /* open sessions, by deadline: one heap */

	struct move *moves; /* open moves (move.c) */
	uint32_t n_moves;
	/* Records in flight that give blocks other slots: until they are applied, no record may
	 * name a block by its slot. */
	uint32_t swapping;
	uint32_t move_volume; /* the volume after the last that gave a move */
	uint64_t mover_at;    /* boot time ms: a mover asked for moves last; 0 = none did */
	struct { /* the scan for what lacks a copy, or a place (ops/heal.c) */
		uint32_t at; /* next block, by id */
		uint64_t began, again_at; /* boot time ms */
		bool found; /* something, in this pass */
	} heal;

	struct damages { /* slots whose bytes are or may be damaged (damage.h) */
		struct damage *v; /* by generation */
		size_t n, cap;
		size_t n_hidden; /* of these */
	} damage;
	struct { /* ops/damage.c */
		uint64_t again_at; /* boot time ms: the ticker's next look */
		uint64_t paced_at; /* and time at which that many more reports were last allowed: */
		uint32_t allowed;
	} reports;

	uint64_t next_generation;
	struct birth *birth; /* when generations were given out, oldest first (birth.c) */
	size_t n_births, cap_births;
	int64_t birth_base;         /* times of births are the clock since boot plus this; */
	_Atomic int64_t birth_lead; /* the wall clock's lead over that, when last read, */
	uint64_t birth_most_lead;   /* and the greatest on this boot; ms */
	uint32_t lease_shift; /* width of lease_window in all instances: 2^shift ms */
	/* Added to the clock for uses, so that they continue across boots and owners:
	 * use_clock(). */
	int64_t use_base;
	_Atomic uint64_t last_use; /* the newest of all, see use_now */
	uint64_t loaded_generation; /* blocks below it were loaded with the partition */
	uint64_t mix_seed;

	struct { /* the ticker's report of uses (ops/uses.c) */
		uint32_t at;      /* next chunk of this pass; 0 = there is none */
		uint64_t next_at; /* boot time ms: the next pass begins, */
		uint64_t told_at; /* and the last record was queued */
		uint64_t generation; /* next_generation then */
		uint32_t id[USES_NOTED], n; /* blocks that were used, by entry */
	} uses;
	uint64_t loaded_at; /* ms of the clock of uses */

	/* Boot time ms: until then blocks from an older version, or from before a power loss, may
	 * be leased. */
	uint64_t old_horizon;
	uint64_t horizon_at;  /* boot time ms: the ticker's next check of horizons, */
	uint64_t horizon_spell; /* and the start of a new period of lease_lately */

	struct trim_op *trims; /* trims that wait for no record (trim.c) */
	uint64_t trimmed_at;   /* time of the last portion; 0 = never */

	/* idle.c: instances that nobody uses */
	struct {
		bool known;       /* the store's document was read, */
		bool due;         /* and the ticker has seen one that is to be dropped */
		uint64_t since;   /* boot time ms: then */
		uint64_t stored_at; /* of its document, which has this version */
		uint64_t version;
	} idle;

	uint64_t searches;    /* searches for victims so far */
	size_t tick_volume, tick_group, tick_inst; /* where the next tick's portions begin */
	uint64_t n_waiting;   /* starts waiting, in all groups */
	bool room_is_low;     /* of the free slots that a class keeps, most wait for a sync */
	uint64_t wait_turn;   /* rounds of start_serve_waiters */
	uint64_t store_full_until;
	/* The store was rolled back: another copy of it has used its directories since. */
	bool rolled_back;
	bool unclean; /* the machine rebooted without a clean shutdown */
	/* After an unclean boot that lost records: slots free then are not reused before this. */
	uint64_t freeze_until;
	/* The registry's "behind": the longest deadline plus grace of starts that a power loss may
	 * lose; for external storages only, or for all. While loading the previous owner's, then
	 * this one's. */
	uint32_t behind_ms;
	bool behind_all;
	uint64_t behind_version;
	/* Acknowledged records may be lost: unclean after an ownership that deferred syncs, or
	 * rolled back. */
	bool lossy;
	bool loading; /* nothing is in eviction queues yet */
	bool roomy; /* loading what the store has: tables of indexes double, until index_fit */
	bool learning; /* of a standby: policies learn births and evictions as they are replayed */
	/* Ends of the journal: of appended records; of records that survive a power loss; as
	 * loaded. */
	struct journal_end end, durable, loaded;
	/* Ticker only: the number that directories were asked to note, and the time of the next
	 * request. */
	uint64_t noted, note_at;
	struct snapshot snap;
	uint64_t checkpoint_bytes; /* of the newest checkpoint, */
	uint64_t checkpoint_blocks; /* and how many blocks it has */
	uint64_t checkpointed; /* number of the newest snapshot that is durable */
	struct lease *lease; /* while loading: leases written by a clean stop */
	size_t n_lease, cap_lease;
	/* Marked while loading: bytes that a power loss may have destroyed; gone before READY. */
	struct picks lost;
};

/* Assert that the caller may change, or read, the partition. Before and after the core has the
 * partition, the thread that loads or frees it owns it. Functions called for each block and slot of
 * a call leave the check to their callers. */
#define ASSERT_EXCLUSIVE(p) \
	assert((p)->core->partition != (p) || skv_rwlock_write_held(&(p)->core->lock))
#define ASSERT_SHARED(p) assert((p)->core->partition != (p) || skv_rwlock_held(&(p)->core->lock))

/* The clock of uses at a time since boot: milliseconds of the store's life. */
static inline uint64_t use_clock(const struct partition *p, uint64_t boot_ms)
{
	return boot_ms + (uint64_t)p->use_base;
}

/* The time since boot at which that clock shows or showed so much; 0 = before. */
static inline uint64_t use_clock_at(const struct partition *p, uint64_t ms)
{
	int64_t at = (int64_t)ms - p->use_base;

	return at > 0 ? (uint64_t)at : 0;
}

/* Generations are given out in order, and never twice: the next one is `next` at least. */
static inline void generation_least(struct partition *p, uint64_t next)
{
	if (p->next_generation < next)
		p->next_generation = next;
}

/* Of the free slots that a class keeps, most wait for a sync; or a sync has ended. */
static inline void room_note(struct partition *p, bool low) { p->room_is_low = low; }

/* Empty, for the caller alone; NULL: out of memory. */
struct partition *partition_make(struct skv_core *c);

/* Objects from..to-1, the part of many objects that one tick visits. */
struct portion {
	size_t from, to;
};

#endif
