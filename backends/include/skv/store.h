/*
 * store.h - metadata store: registry, ownership, journal, checkpoints. It knows no slabs or blocks.
 *
 * A backend fills a `struct skv_store_ops`; callers use the guarded wrappers skv_store_* below, which
 * check arguments, count and time every call. Backends: "sqlite" (embedded default), "redis" (Redis or
 * Valkey, for managers on several hosts), "memory" (tests, benchmarks; forgets at close unless shared, see
 * skv_memory_store_*), "fault" (stacks on another).
 *
 * Results of every call: SKV_OK; SKV_E_STORE_FULL or SKV_E_STORE_IO = nothing was changed;
 * SKV_E_UNKNOWN_OUTCOME = it may or may not have been changed (ask again before relying on either);
 * SKV_E_FENCED = the given fence is not the partition's newest: nothing was changed. Every write takes one, and it is
 * checked in the transaction of the write itself.
 *
 * Threads: all calls may come from any thread, at the same time; a backend serialises what it must.
 * append/sync never wait for checkpoint_*. Housekeeping keeps an append waiting for about one commit's
 * time now and then, and for up to 20 ms each time while appends outrun it.
 */
#ifndef SKV_STORE_H
#define SKV_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/bytes.h>
#include <skv/clock.h>
#include <skv/status.h>

enum skv_durability {
	SKV_DURABILITY_FULL,   /* append returns after a sync, unless it is told otherwise: survives power loss */
	SKV_DURABILITY_NORMAL, /* append survives kill -9 at once, power loss only after skv_store_sync */
};

struct skv_store_options {
	const char *path; /* sqlite: database file; redis: URL; memory: name of a shared store, "" = private */
	enum skv_durability durability;
	uint64_t reserve_bytes; /* space kept aside for SKV_APPEND_URGENT when the disk is full */
	const char *vfs; /* sqlite: name of a registered SQLite VFS to go through; NULL = the default */
	const struct skv_clock *clock; /* runs ownership leases; NULL = skv_clock_system */
};

/* Limits, checked by the wrappers (SKV_E_INVALID, SKV_E_TOO_LARGE). */
#define SKV_STORE_KEY_MAX 1024u              /* bytes of a registry key, without the NUL */
#define SKV_STORE_VALUE_MAX (1u << 20)       /* bytes of a registry document */
#define SKV_STORE_BATCH_MAX (64u << 20)      /* bytes of one append */
#define SKV_STORE_SLICE_MAX (32u << 20)      /* bytes of one checkpoint slice */
#define SKV_STORE_SLICES_MAX (1u << 20)      /* slices of one checkpoint */
#define SKV_STORE_PARTITION_MAX 65535u       /* largest partition number */
#define SKV_STORE_SEQ_MAX ((1ull << 47) - 1) /* largest seq: 400 years at 10,000 appends a second */

/* Versions begin at 1, also of a key that was deleted: only together with a fence do they tell that nothing has happened
 * since. As expected version: SKV_VERSION_NONE = must not exist. */
#define SKV_VERSION_NONE 0ull

/* In whose name the registry is written: the owner of this partition by this acquire. */
struct skv_fence {
	uint32_t partition;
	uint64_t number; /* of skv_store_acquire */
};

enum {
	SKV_APPEND_URGENT = 1, /* may use the reserved space (deletes, finishes, expiry) */
	/* FULL: need not be synced: survives kill -9 at once, power loss after the next skv_store_sync or the next append
	 * without this flag, of any partition. NORMAL: says nothing. What power loss leaves is a prefix of the journal still. */
	SKV_APPEND_LATER = 2,
};

/* Where skv_store_load delivers. Return SKV_OK to go on; another value ends the load with it. */
struct skv_load_sink {
	int (*slice)(void *ctx, uint32_t number, const void *bytes, size_t n);
	int (*record)(void *ctx, uint64_t seq, const void *bytes, size_t n);
	void *ctx;
};

struct skv_store_stats {
	uint64_t journal_bytes; /* payload after the newest checkpoint */
	uint64_t last_seq;      /* newest appended, 0 if none */
	uint64_t free_bytes;    /* on the disk of the store; UINT64_MAX if unknown */
};

typedef int (*skv_registry_fn)(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version);

/* The backend's table. `size` is sizeof of the struct the backend was compiled with; new members go to
 * the end. All members are required unless marked. Meanings: the wrappers below. */
struct skv_store_ops {
	size_t size;
	const char *name;
	int (*open)(const struct skv_store_options *o, void **self, struct skv_error *err);
	void (*close)(void *self);

	int (*get)(void *self, const char *key, struct skv_buf *value, uint64_t *version, struct skv_error *err);
	int (*put)(void *self, const struct skv_fence *fence, const char *key, uint64_t expect, const void *bytes,
		   size_t n, uint64_t *version, struct skv_error *err);
	int (*del)(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
		   struct skv_error *err);
	int (*list)(void *self, const char *prefix, skv_registry_fn fn, void *ctx, struct skv_error *err);

	int (*acquire)(void *self, uint32_t partition, const char *owner, uint32_t ttl_ms, uint64_t *fence,
		       char *holder, size_t holder_size, struct skv_error *err);
	int (*renew)(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms, struct skv_error *err);
	int (*release)(void *self, uint32_t partition, uint64_t fence, struct skv_error *err);

	int (*append)(void *self, uint32_t partition, uint64_t fence, uint64_t seq, const void *bytes,
		      size_t n, unsigned flags, struct skv_error *err);
	int (*sync)(void *self, struct skv_error *err);

	int (*checkpoint_begin)(void *self, uint32_t partition, uint64_t fence, uint64_t *id,
				struct skv_error *err);
	int (*checkpoint_slice)(void *self, uint32_t partition, uint64_t fence, uint64_t id, uint32_t number,
				const void *bytes, size_t n, struct skv_error *err);
	int (*checkpoint_commit)(void *self, uint32_t partition, uint64_t fence, uint64_t id,
				 uint32_t slices, uint64_t upto_seq, struct skv_error *err);
	int (*checkpoint_abort)(void *self, uint32_t partition, uint64_t id);

	int (*load)(void *self, uint32_t partition, uint64_t *base_seq, const struct skv_load_sink *sink,
		    struct skv_error *err);
	int (*stats)(void *self, uint32_t partition, struct skv_store_stats *out, struct skv_error *err);
};

struct skv_store; /* wrapper around one opened backend */

extern const struct skv_store_ops skv_store_sqlite;
extern const struct skv_store_ops skv_store_memory;
extern const struct skv_store_ops skv_store_redis;

/* The backend that the text of --store names, and in *path what it is opened with: ":memory:" (nothing is kept),
 * redis://... (Redis or Valkey: redis_url.c has the form), else a database file. */
const struct skv_store_ops *skv_store_backend(const char *text, const char **path);
/* The text as people and logs may see it: without user and password. */
#define SKV_STORE_SHOWN_MAX 256
void skv_store_shown(const char *text, char out[SKV_STORE_SHOWN_MAX]);

/* Opens. A database on a network mount is refused (WAL needs shared memory): SKV_E_UNSUPPORTED. */
int skv_store_open(const struct skv_store_ops *ops, const struct skv_store_options *o,
		   struct skv_store **out, struct skv_error *err);
void skv_store_close(struct skv_store *s);
const char *skv_store_name(const struct skv_store *s);
enum skv_durability skv_store_durability(const struct skv_store *s);

/* Registry: small documents by key (<= 1 MiB each). SKV_E_NOT_FOUND; SKV_E_CONFLICT when the version
 * is not the expected one. put and del are durable when they return, in both modes. `version` may be NULL.
 * `fence` is looked at first. NULL: the document is nobody's but its writer's, whoever owns what (where a manager is to be
 * found); never for what a partition is made of. */
int skv_store_get(struct skv_store *s, const char *key, struct skv_buf *value, uint64_t *version,
		  struct skv_error *err);
int skv_store_put(struct skv_store *s, const struct skv_fence *fence, const char *key, uint64_t expect,
		  const void *bytes, size_t n, uint64_t *version, struct skv_error *err);
int skv_store_del(struct skv_store *s, const struct skv_fence *fence, const char *key, uint64_t expect,
		  struct skv_error *err);
/* In key order. `fn` returns SKV_OK to go on; another value ends the call with it. It sees one moment's
 * state and may call the store itself. */
int skv_store_list(struct skv_store *s, const char *prefix, skv_registry_fn fn, void *ctx,
		   struct skv_error *err);

/* Ownership of a partition for ttl_ms from the call's begin. `fence` grows with every acquire and
 * release, so that whatever the one before still has in flight is fenced. SKV_E_NOT_OWNER while
 * another owner's lease runs; `holder` (may be NULL) then gets its name.
 * A lease ends early when its process is provably dead on this boot of this host (the owner text is
 * "<host>:<pid>:<start time>:<boot id>:<random>", see skv_owner_name), or when the same host name has
 * booted since. After another host's boot its clock cannot be compared: the lease then ends when it
 * stood unchanged for its full length under the eyes of the store that wants it.
 * ttl_ms 0 only looks: SKV_OK if it could be had, and nothing is taken. */
int skv_store_acquire(struct skv_store *s, uint32_t partition, const char *owner, uint32_t ttl_ms,
		      uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err);
/* SKV_E_FENCED when somebody else has, or had, it. A lease that ran out unseen can be renewed. */
int skv_store_renew(struct skv_store *s, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
		    struct skv_error *err);
int skv_store_release(struct skv_store *s, uint32_t partition, uint64_t fence, struct skv_error *err);
/* A name for this process as owner, another one at each call. `out` holds 192 bytes. The random part is
 * preceded by the number of the pid namespace and a dot: a pid means nothing in another one. */
void skv_owner_name(char out[192]);
/* True only when the owner named is provably gone: same boot, no such process. */
bool skv_owner_is_dead(const char *owner);

/* Journal: appends one batch as `seq`, which must be last_seq + 1 (else SKV_E_CONFLICT), in one
 * transaction that also checks the fence. Durability as opened. At most SKV_STORE_BATCH_MAX bytes a batch,
 * else SKV_E_TOO_LARGE. */
int skv_store_append(struct skv_store *s, uint32_t partition, uint64_t fence, uint64_t seq,
		     const void *bytes, size_t n, unsigned flags, struct skv_error *err);
/* Everything appended before the call is on stable media. FULL: nothing to do, unless something was appended with
 * SKV_APPEND_LATER. Once it has
 * failed it keeps failing until the store is opened anew: the kernel reports a lost write only once,
 * so a later success would prove nothing. */
int skv_store_sync(struct skv_store *s, struct skv_error *err);

/* Checkpoint: slices (<= SKV_STORE_SLICE_MAX, numbered from 0) written in transactions of their own; commit
 * makes them the state at `upto_seq` and truncates the journal up to it, atomically. Old slices and
 * rows are removed in small steps afterwards. An unfinished checkpoint leaves nothing behind: it ends
 * with abort, with the next begin, and with the next acquire. A slice may be written again. Slice and
 * commit: SKV_E_CONFLICT when `id` is not the checkpoint begun last, when slices are missing, or when
 * upto_seq is not between the last checkpoint's and the last record's. */
int skv_store_checkpoint_begin(struct skv_store *s, uint32_t partition, uint64_t fence, uint64_t *id,
			       struct skv_error *err);
int skv_store_checkpoint_slice(struct skv_store *s, uint32_t partition, uint64_t fence, uint64_t id,
			       uint32_t number, const void *bytes, size_t n, struct skv_error *err);
int skv_store_checkpoint_commit(struct skv_store *s, uint32_t partition, uint64_t fence, uint64_t id,
				uint32_t slices, uint64_t upto_seq, struct skv_error *err);
int skv_store_checkpoint_abort(struct skv_store *s, uint32_t partition, uint64_t id);

/* Delivers the newest committed checkpoint's slices in order, then the journal records after it in
 * order of seq. *base_seq = the checkpoint's upto_seq (0 if none), set before the first delivery.
 * SKV_E_CORRUPT for a gap in seq, a missing slice, or a bad checksum of a row. */
int skv_store_load(struct skv_store *s, uint32_t partition, uint64_t *base_seq,
		   const struct skv_load_sink *sink, struct skv_error *err);
int skv_store_stats_get(struct skv_store *s, uint32_t partition, struct skv_store_stats *out,
			struct skv_error *err);

/* memory: drops the shared store of that name; who has it open keeps it until close. */
void skv_memory_store_forget(const char *name);

/* What the wrapper counted since open. */
struct skv_store_counters {
	uint64_t calls;
	uint64_t errors;
	uint64_t appends;
	uint64_t append_bytes;
	uint64_t append_us; /* summed */
	uint64_t append_max_us;
};
void skv_store_counters_get(const struct skv_store *s, struct skv_store_counters *out);

/* ---- fault backend: stacks on an opened store ------------------------------------------------- */

enum skv_fault_kind {
	SKV_FAULT_NONE,
	SKV_FAULT_ERROR,          /* the call fails with `status`; the store below is not asked */
	SKV_FAULT_DELAY,          /* sleeps delay_ms, then asks */
	SKV_FAULT_UNKNOWN_BEFORE, /* returns SKV_E_UNKNOWN_OUTCOME without asking */
	SKV_FAULT_UNKNOWN_AFTER,  /* asks, then returns SKV_E_UNKNOWN_OUTCOME */
	SKV_FAULT_CALL,           /* calls fn, then asks: what happens while a call is on its way */
};
struct skv_fault {
	enum skv_fault_kind kind;
	const char *call;   /* "append", "renew"...; NULL = every call */
	uint64_t at;        /* the n-th matching call from now on (1 = next); 0 = each one */
	uint64_t times;     /* how many calls from there on; 0 = without end */
	int status;         /* for ERROR */
	uint32_t delay_ms;  /* for DELAY */
	void (*fn)(void *ctx, const char *call); /* for CALL: on the caller's thread, no lock held; may replace the rule */
	void *ctx;
};
/* Wraps `below` (then owned by the new store). */
int skv_fault_store_open(struct skv_store *below, struct skv_store **out, struct skv_error *err);
/* Replaces the rule. Any thread. */
void skv_fault_store_set(struct skv_store *s, const struct skv_fault *rule);
/* Matching calls seen since the rule was set. */
uint64_t skv_fault_store_seen(const struct skv_store *s);

#endif
