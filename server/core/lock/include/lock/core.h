/*
 * core.h - struct skv_core: what its components share, and a pointer to each one's own state.
 *
 * `lock` (reader-writer) protects the partition and everything reachable from it. Lookups hold it
 * for reading and write only the atomic marks of blocks; everything else holds it for writing. It
 * is never held across I/O: durable effects go through the committer (journal/commit.c), files
 * through the devices' threads (storage/device.c), checkpoints are copied out under it in small
 * pieces (journal/snapshot.c).
 *
 * Lock order: core->lock, then commit.lock or a device's lock. The administrators' turn is taken
 * before any of them.
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
struct regions;
struct registry_copy;
struct route;
struct standby;
struct skv_clock;
struct skv_core;
struct skv_store;
struct tenant_rules;

#define DEMOTE_NONE UINT64_MAX

/* Events that upper layers handle. */
struct core_events {
	/* Manual mode has no threads: does their work while the caller waits. */
	void (*step)(struct skv_core *c);
	/* Under the write lock: slots came free, or there may be room for another file. */
	void (*volume_freed)(struct partition *p);
	/* Under the write lock: the partition ends. Fails what waits without a record. */
	void (*fail_waiting)(struct partition *p, int status, const char *text);
	/* Under the write lock, before it is released: other partitions may learn what has changed
	 * in this one. */
	void (*unlocking)(struct partition *p);
};

struct skv_core {
	struct skv_core_options o;
	const struct core_events *events;
	const struct record_ops *const *records; /* [RECORD_TYPES] by type; NULL: unused */
	const struct skv_clock *clock;
	struct skv_store *store;
	_Atomic(struct known_secret *) secret; /* the store's newest; NULL before the first load */
	char owner[192];
	char boot_id[37];
	uint64_t started_ms;

	struct tenant_rules *rules; /* of all partitions; the leading core's */
	struct regions *regions;    /* memory of its partition's entries */
	struct route *route; /* of the handle of several partitions: all of them; else NULL */

	struct skv_rwlock lock;
	struct partition *partition; /* NULL unless READY (or recovering into it) */
	_Atomic int state; /* enum skv_core_state */
	_Atomic uint64_t owned_until; /* end of the ownership lease, boot time ms */
	_Atomic uint64_t fence;
	_Atomic uint64_t given_up; /* how often it stopped to be READY, or was about to */
	_Atomic bool reload_asked; /* memory no longer matches the store: the owner thread starts
				    * over */
	_Atomic bool fenced;       /* the store reported another owner of the partition */

	struct commit *commit;
	struct skv_mutex turn_lock; /* owner thread, ticker, checkpointer: stop and wake */
	struct skv_cond turn_wake;
	bool stop;
	bool checkpoint_asked;
	bool checkpointing; /* a thread has the turn to write one */
	bool admin_busy;
	uint64_t turn_fence; /* fence under which the administrator in turn writes */
	bool standby_logged; /* owner thread only */
	_Atomic bool has_rival; /* another manager was seen to own the partition, when
				   it was looked at last */
	/* The ticker's (recovery/standby.c): */
	struct standby *standby;  /* the partition, kept loaded; NULL = it is not */
	_Atomic bool standby_unsupported; /* the store cannot be followed */
	_Atomic bool standby_loaded;
	_Atomic uint64_t standby_seq, standby_behind; /* of its journal: what is
							 applied, and not yet */
	_Atomic uint32_t failed_loads; /* in a row */
	/* Of a store that may go back in time: its registry, and what this manager publishes about
	 * itself. */
	struct registry_copy *registry, *published;
	/* Under `lock` (recovery/restore.c): what this manager owned until kept_until, without what
	 * was not durable. NULL: nothing, or the store has no less. */
	struct partition *_Atomic kept; /* read without it, too */
	_Atomic uint64_t kept_until; /* read without it, too; 0 if there is none */
	_Atomic uint64_t acquired_at; /* the newest ownership, boot time ms */
	/* A record of the journal that this process knows to be durable: a store that has less
	 * went back in time. */
	_Atomic uint64_t known_seq;
	_Atomic uint64_t seen_ms;   /* wall time of the owner thread's last check of the
				     * ownership */
	_Atomic uint64_t demote_ms; /* a demotion was requested: stay out this long; DEMOTE_NONE */
	_Atomic bool draining;      /* it stays out until this is taken back */
	_Atomic bool may_own;       /* it may be acquired here (skv_core_may_own) */
	_Atomic bool step_asked;    /* the owner thread has something to do now */
	_Atomic uint64_t out_until; /* no claim before this boot time ms */
	/* Under turn_lock (claim.c): */
	/* the newest, of the fence incarnation_fence; 0 = none */
	struct skv_storage_owner incarnation;
	uint64_t incarnation_fence;
	uint64_t noted_at, noted_seq; /* ticker only: what the standby had read then */
	bool went_back;       /* ticker only: the store has less than known_seq */
	bool rough;           /* ticker only: what is loaded may lack what was written last */
	bool let_others;      /* ticker only: whoever knows more had the time to restore it */
	bool rolled_back;     /* ticker only: what o.adopt requires is done, durably */
	bool gave_up;             /* owner thread only: because of that */
	_Atomic bool turned_away; /* another copy of the store uses a directory: this manager gives
				   * up */
	char holder[192];           /* under turn_lock: the partition's other owner; "" unknown, or
				     * none */
	/* Owner thread, ticker, checkpointer. Started and stopped with the core; manual mode has
	 * none, and no committer. */
	pthread_t thread[3];
	uint32_t n_threads;
	bool committing;
	_Atomic bool closing; /* shutting down: accept nothing new */

	struct device **device;
	uint32_t n_device; /* both guarded by `lock` */
	size_t cap_device;
	struct completion *completions; /* under `lock`: to be called after it is released */

	struct {
#define CORE_COUNTER_ATOMIC(name, help) _Atomic uint64_t name;
		SKV_CORE_COUNTERS(CORE_COUNTER_ATOMIC)
#undef CORE_COUNTER_ATOMIC
	} count;
};

#define COUNT(core, name, by) \
	atomic_fetch_add_explicit(&(core)->count.name, (uint64_t)(by), memory_order_relaxed)

#endif
