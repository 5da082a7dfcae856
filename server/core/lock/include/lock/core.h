/*
 * core.h - struct skv_core, one partition: what its components share, and a pointer to each one's
 * own state.
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
#include <skv/hash.h>
#include <skv/lock.h>
#include <skv/log.h>
#include <skv/storage.h>

struct commit;
struct completion;
struct device;
struct gate;
struct partition;
struct record_ops;
struct regions;
struct standby;
struct skv_clock;
struct skv_core;
struct skv_store;
struct tenant_rules;

/* Events that upper layers handle. */
struct core_events {
	/* Manual mode has no threads: does their work while the caller waits. */
	void (*step)(struct skv_core *c);
	/* Under the write lock: slots became free, or there may be room for another file. */
	void (*volume_freed)(struct partition *p);
	/* Under the write lock: the partition ends. Fails what waits without a record. */
	void (*fail_waiting)(struct partition *p, int status, const char *text);
	/* Called under the write lock, before its release: other partitions may need to know this
	 * partition's changes. */
	void (*unlocking)(struct partition *p);
};

/* Failures of one kind in a row. */
struct core_failure {
	uint32_t n; /* 0: the newest try has succeeded */
	int status;
	uint64_t logged_ms;
};

struct skv_core {
	struct skv_core_options o;
	const struct core_events *events;
	const struct record_ops *const *records; /* [RECORD_TYPES] by type; NULL: unused */
	const struct skv_clock *clock;
	struct skv_store *store;
	struct skv_secret secret; /* the store's; immutable once has_secret is set */
	_Atomic bool has_secret;  /* set by the first load */
	char owner[192];
	char boot_id[37];
	uint64_t started_ms;

	uint32_t number;            /* of its partition */
	bool shares;                /* lock/one.h, as the next */
	struct tenant_rules *rules; /* of all partitions */
	struct regions *regions;    /* memory of its partition's entries */

	struct skv_rwlock lock;
	struct partition *partition; /* NULL unless READY (or recovering into it) */
	struct gate *gate; /* the ownership (lock/gate.h) */

	struct commit *commit;
	struct written *written; /* times of change of slab files (storage/written.c) */
	struct skv_mutex turn_lock; /* owner thread, ticker, checkpointer: stop and wake */
	struct skv_cond turn_wake;
	bool stop;
	bool checkpoint_asked;
	bool checkpointing; /* a thread has the turn to write one */
	bool admin_busy;
	uint32_t admin_log; /* partition of the administrator thread's log lines otherwise */
	uint64_t turn_fence; /* fence under which the administrator in turn writes */
	/* Numbers that were taken from the registry under that fence; of the administrator in
	 * turn. */
	struct {
		uint64_t fence;
		uint32_t next, end;
	} ids;
	struct core_failure lease_failure; /* owner thread: calls for the lease */
	bool lease_ran_out; /* owner thread: not renewed in time; counted */
	struct core_failure standby_failure; /* ticker */
	atomic_int load_result; /* of the newest load that failed */
	bool owner_asked; /* the owner thread has something to do now */
	/* The ticker's (recovery/standby.c): */
	struct standby *standby;  /* the partition, kept loaded; NULL = it is not */
	_Atomic bool standby_unsupported; /* the store cannot be followed */
	_Atomic bool standby_loaded;
	/* Of its journal: what is applied, and not yet. */
	_Atomic uint64_t standby_seq, standby_behind;
	_Atomic uint64_t seen_ms; /* wall time of the owner thread's last check of the ownership */
	/* Under turn_lock (claim.c): */
	/* the newest, of the fence incarnation_fence; 0 = none */
	struct skv_storage_owner incarnation;
	uint64_t incarnation_fence;
	bool rolled_back;     /* ticker only: the work that o.adopt requires is done, durably */
	/* Owner thread, ticker, checkpointer. Started and stopped with the core; manual mode has
	 * none, and no committer. */
	pthread_t thread[3];
	uint32_t n_threads;
	bool committing;

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

/* Log lines of this thread concern the core's partition from now on; returns what the caller gives
 * to skv_log_partition at the end. A thread of a core begins with it, and so does its
 * administrators' turn. */
static inline uint32_t core_log(const struct skv_core *c)
{
	return skv_log_partition(c->number + 1);
}

#define CORE_FAILURE_MS 30000u /* the same failure is logged so often */
/* Counts a failure. True if it is to be logged: the first one, another status, and now and then. */
static inline bool core_failure_is_news(struct core_failure *f, int status, uint64_t now)
{
	const bool news = f->n++ == 0 || status != f->status ||
			  now - f->logged_ms >= CORE_FAILURE_MS;

	f->status = status;
	f->logged_ms = news ? now : f->logged_ms;
	return news;
}

#define COUNT(core, name, by) \
	atomic_fetch_add_explicit(&(core)->count.name, (uint64_t)(by), memory_order_relaxed)

#endif
