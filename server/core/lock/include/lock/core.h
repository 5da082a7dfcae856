/*
 * core.h - the core: what its components share, and a pointer for each to what is its own.
 *
 * `lock` (reader-writer) protects the partition and everything reachable from it. Lookups hold it for reading and write
 * only the atomic marks of a block; everything else holds it for writing. It is never held across I/O: durable effects go
 * through the committer (journal/commit.c), files through the devices' threads (storage/device.c), checkpoints are copied
 * out under it in small pieces (journal/snapshot.c).
 *
 * Lock order: core->lock, then commit.lock or a device's lock. The administrators' turn is taken before any, never inside.
 */
#ifndef SKV_CORE_LOCK_CORE_H
#define SKV_CORE_LOCK_CORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <pthread.h>

#include <skv/core.h>
#include <skv/lock.h>
#include <skv/storage.h>

struct commit;
struct completion;
struct device;
struct known_secret;
struct partition;
struct record_ops;
struct skv_clock;
struct skv_core;
struct skv_store;

#define DEMOTE_NONE UINT64_MAX

/* What happens that somebody above waits for. */
struct core_events {
	/* Manual mode, which has no threads: does what theirs would while the caller waits. */
	void (*step)(struct skv_core *c);
	/* Under the write lock: slots came free, or there may be room for another file. */
	void (*volume_freed)(struct partition *p);
	/* The same: the partition ends. What waits without a record fails. */
	void (*fail_waiting)(struct partition *p, int status, const char *text);
};

struct skv_core {
	struct skv_core_options o;
	const struct core_events *events;
	const struct record_ops *const *records; /* [RECORD_TYPES] by type; NULL: there is none */
	const struct skv_clock *clock;
	struct skv_store *store;
	_Atomic(struct known_secret *) secret; /* of the store, newest; NULL before the first load */
	char owner[192];
	char boot_id[37];
	uint64_t started_ms;

	struct skv_rwlock lock;
	struct partition *partition; /* NULL unless READY (or recovering into it) */
	_Atomic int state; /* enum skv_core_state */
	_Atomic uint64_t owned_until; /* end of the ownership lease, boot time ms */
	_Atomic uint64_t fence;
	_Atomic bool reload_asked; /* what is in memory is not the truth any more: the owner thread begins anew */
	_Atomic bool fenced;       /* the store told that somebody else owns the partition */

	struct commit *commit;
	struct skv_mutex turn_lock; /* owner thread, ticker, checkpointer: stop and wake */
	struct skv_cond turn_wake;
	bool stop;
	bool checkpoint_asked;
	bool checkpointing; /* somebody has the turn to write one */
	bool admin_busy;
	uint64_t turn_fence; /* of the administrator whose turn it is: in whose name its call writes */
	bool standby_told; /* owner thread only */
	_Atomic uint32_t failed_loads; /* in a row */
	_Atomic uint64_t seen_ms;   /* wall time of the owner thread's last look at the ownership */
	_Atomic uint64_t demote_ms; /* asked for: stay out so long; DEMOTE_NONE */
	uint64_t out_until;         /* owner thread only: no claim before, boot time ms */
	/* Under turn_lock (claim.c): */
	struct skv_storage_owner incarnation; /* the newest of the reign incarnation_fence; 0 = none */
	uint64_t incarnation_fence;
	bool rolled_back;     /* the ticker's: what o.adopt asks of the state is done, durably */
	bool gave_up;             /* the owner thread's: because of that */
	_Atomic bool turned_away; /* another copy of the store goes on in a directory: this manager gives up */
	char holder[192];           /* under turn_lock: who else owns the partition; "" unknown, or nobody */
	/* Keeper, ticker, checkpointer. Started and stopped by whoever creates and ends the core; manual
	 * mode has none, and no committer. */
	pthread_t thread[3];
	uint32_t n_threads;
	bool committing;
	_Atomic bool closing; /* shutting down: nothing new */

	struct device **device;
	uint32_t n_device; /* both guarded by `lock` */
	size_t cap_device;
	struct completion *completions; /* under `lock`: to be called once it is released */

	struct {
#define CORE_COUNTER_ATOMIC(name, help) _Atomic uint64_t name;
		SKV_CORE_COUNTERS(CORE_COUNTER_ATOMIC)
#undef CORE_COUNTER_ATOMIC
	} count;
};

#define COUNT(core, name, by) \
	atomic_fetch_add_explicit(&(core)->count.name, (uint64_t)(by), memory_order_relaxed)

#endif
