/*
 * partition.h - a partition: all that the lock protects, and who may touch it.
 */
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
struct lease;
struct partition;
struct session;
struct trim_op;

#define SESSION_BUCKETS 65536u

struct removal {
	uint32_t block;
	uint32_t specs;      /* those that were committed when it was marked */
	uint64_t hold_until; /* 0 = free at once */
};

/* Blocks picked for removal. mark() hides the block at once (its committed slots become REMOVING);
 * queue() puts the record of all of them into the journal, or un-marks them (SKV_E_NOMEM). */
#define MAX_PICKS 16384u /* by eviction in one call: it holds the lock, and a record has bounds */
struct picks {
	struct removal *v;
	size_t n;
	size_t cap;
	bool relaxed; /* of the record: see change.h */
};

struct snapshot {
	bool active;
	bool failed;      /* out of memory or an append failed: start again later */
	bool exact;       /* no lease is given any more: it holds the ends of those that run, not the horizons */
	void (*copy)(struct partition *p, uint32_t chunk); /* into `out` (journal/snapshot.c) */
	uint64_t number;  /* grows; chunks remember the newest they are in */
	uint64_t seq;     /* state as of this batch */
	uint64_t barrier; /* last change queued when it began: must be durable before it counts */
	uint64_t journal_bytes; /* before it: what the checkpoint will truncate */
	uint32_t next_chunk, end_chunk;
	struct skv_buf out;      /* blocks copied out, cut into slices by the checkpointer */
	struct skv_buf tail;     /* sessions, holds, counters: the last slice */
};

struct partition {
	struct skv_core *core;
	uint64_t fence; /* of all that it writes to the store; each load has another one, so it tells parts apart, too */
	uint64_t seq; /* newest durable batch */
	uint64_t journal_bytes;

	struct volume *volume;
	uint32_t *volume_name; /* [n_volume] hash of each one's name */
	uint32_t n_volume;
	uint32_t n_gap; /* of these: deleted, to be used again */
	size_t cap_volume, cap_volume_name;
	struct group **group;
	uint32_t *group_name; /* [n_group] hash of each one's name */
	size_t n_group, cap_group, cap_group_name;
	struct instance **inst;
	uint32_t *inst_name; /* [n_inst] hash of each one's tenant and id */
	size_t n_inst, cap_inst, cap_inst_name;
	struct group detached; /* of dropped instances */
	struct instance *retired; /* what was cleared or dropped, until it is swept (clear.c) */

	struct chunk **chunk; /* [1..n_chunk-1]; 0 is never used, so that id 0 means none */
	size_t n_chunk, cap_chunk;
	uint16_t *chunk_stride; /* of chunk[i], and there too: but heads of chunks share few sets of a cache */
	size_t cap_chunk_stride;
	struct chunk *spare_chunk; /* of dropped instances: to be used again */
	void **region;             /* memory of the chunks */
	size_t n_region, cap_region;
	uint32_t region_left; /* chunks of the newest region that are not in use yet */
	uint64_t blocks;

	struct session **session; /* by number, NULL = free */
	size_t n_session, cap_session;
	uint32_t *session_free;
	size_t n_session_free, cap_session_free;
	struct session *session_by_id[SESSION_BUCKETS];
	struct session *session_by_request[SESSION_BUCKETS];
	struct session *ended_head, *ended_tail;
	uint64_t open_sessions, ended_sessions;
	struct skv_heaps deadlines; /* open sessions, by deadline: one heap */

	uint64_t next_generation;
	struct birth *birth; /* when generations were given out, oldest first (birth.c) */
	size_t n_births, cap_births;
	int64_t birth_base;          /* their times are the clock's since boot, and this; */
	_Atomic int64_t birth_shift; /* so much more is the wall clock's, when it was last looked at */
	uint32_t lease_shift; /* width of lease_window, of all instances: 2^shift ms */
	uint64_t use_base; /* added to the clock for uses, so that they go on where they were before a boot */
	_Atomic uint64_t last_use; /* the newest of all, see use_now */
	uint64_t reign_generation; /* blocks below it were there when the partition was loaded */
	uint64_t mix_seed;

	uint64_t old_horizon; /* boot time ms: until then what an older version, or a power loss, left behind may be leased */
	uint64_t horizon_at;  /* boot time ms: when the ticker looks at horizons again, */
	uint64_t horizon_spell; /* and when a new spell of lease_lately begins */

	struct trim_op *trims; /* those that wait for no record (trim.c) */
	uint64_t trimmed_at;   /* when the last portion was done; 0 = never */

	uint64_t searches;    /* for victims: number of the newest */
	size_t tick_volume, tick_group, tick_inst; /* where the next tick's portions of them begin */
	uint64_t n_waiting;   /* starts in the lines of all groups */
	uint64_t wait_turn;   /* rounds of start_serve_waiters; 1 before the first */
	uint64_t store_full_until;
	bool rolled_back; /* the store went back in time: another copy of it went on in its directories */
	bool unclean; /* the machine rebooted without a clean shutdown */
	uint64_t freeze_until; /* after an unclean boot that lost records: what was free then waits until here */
	/* The registry's "behind": starts that a power loss takes along may last so long, deadline and grace together; those
	 * of external storages only, or all. While loading of the reign before, then of this one. */
	uint32_t behind_ms;
	bool behind_all;
	uint64_t behind_version;
	bool lossy; /* unclean, and it was so in the reign before, or rolled back: what was told may be lost */
	bool loading; /* nothing is queued for eviction yet */
	struct snapshot snap;
	uint64_t checkpointed; /* number of the newest snapshot that is durable */
	struct lease *lease; /* while loading: what a clean stop wrote down */
	size_t n_lease, cap_lease;
	struct picks lost; /* marked while loading: bytes that a power loss may have taken; gone before READY */
};

/* Who may change the partition, and who may look into it. Before the core has it, and when it has it no longer, it is the
 * thread's that loads it or takes it down. What is called for each block and slot of a call leaves it to its callers. */
#define ASSERT_EXCLUSIVE(p) assert((p)->core->partition != (p) || skv_rwlock_write_held(&(p)->core->lock))
#define ASSERT_SHARED(p) assert((p)->core->partition != (p) || skv_rwlock_held(&(p)->core->lock))

/* What one tick looks at, of objects that may be very many: places from..to-1. */
struct portion {
	size_t from, to;
};

#endif
