/*
 * store.h - metadata store: registry, ownership, journal, checkpoints. The store knows nothing of
 * slabs or blocks.
 *
 * A backend fills a `struct skv_store_ops`; callers use the guarded wrappers skv_store_* below,
 * which check arguments, count and time every call. Backends: "sqlite" (embedded default) and
 * "etcd" (for managers on several hosts).
 *
 * Results of every call: SKV_OK; SKV_E_STORE_FULL or SKV_E_STORE_IO = nothing was changed;
 * SKV_E_UNKNOWN_OUTCOME = it may or may not have been changed (read before relying on either);
 * SKV_E_FENCED = the fence is not the partition's newest: nothing was changed. Every write takes a
 * fence, which is checked in the transaction of the write itself.
 *
 * Threads: all calls may come from any thread, concurrently; a backend serialises as needed. append
 * and sync never wait for checkpoint_*. Housekeeping delays an append by about one commit's time
 * now and then, and by up to 20 ms while appends outrun it.
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
	/* Append returns after a sync unless told otherwise: survives power loss. */
	SKV_DURABILITY_FULL,
	SKV_DURABILITY_NORMAL, /* append survives kill -9; power loss only after skv_store_sync */
};

struct skv_store_options {
	const char *path; /* sqlite: database file, or SKV_STORE_IN_MEMORY; etcd: URL */
	enum skv_durability durability;
	uint64_t reserve_bytes; /* reserved for SKV_APPEND_URGENT when the disk is full */
	/* Sqlite: name of a registered SQLite VFS; NULL = the default. Of SKV_STORE_MEMORY_VFS:
	 * `path` begins with '/' and names a store in memory for as long as one is open. */
	const char *vfs;
	const struct skv_clock *clock; /* clock of ownership leases; NULL = skv_clock_system */
};

/* Limits, checked by the wrappers (SKV_E_INVALID, SKV_E_TOO_LARGE). */
#define SKV_STORE_KEY_MAX 1024u              /* bytes of a registry key, without the NUL */
#define SKV_STORE_VALUE_MAX (1u << 20)       /* bytes of a registry document */
#define SKV_STORE_BATCH_MAX (64u << 20)      /* bytes of one append */
#define SKV_STORE_SLICE_MAX (24u << 20)      /* bytes of one checkpoint slice */
#define SKV_STORE_SLICES_MAX (1u << 20)      /* slices of one checkpoint */
#define SKV_STORE_PARTITION_MAX 65535u       /* largest partition number */
/* largest seq: 400 years at 10,000 appends per second */
#define SKV_STORE_SEQ_MAX ((1ull << 47) - 1)

/* Document of a store that is the target of an unfinished copy (slabkvd migrate): no manager may
 * use the store. */
#define SKV_STORE_UNFINISHED "migrating"
/* Document of a backup, and of a store that was restored from one (slabkvd backup): its contents
 * are outdated, so no manager may serve from it. In the view of each partition. */
#define SKV_STORE_BACKUP "backup"

/* Versions start at 1, again after a delete: only together with a fence do they prove that nothing
 * has changed. As expected version: SKV_VERSION_NONE = must not exist. */
#define SKV_VERSION_NONE 0ull

/* The writer of the registry: the owner of this partition, by this acquire. */
struct skv_fence {
	uint32_t partition;
	uint64_t number; /* of skv_store_acquire */
};

enum {
	SKV_APPEND_URGENT = 1, /* may use the reserved space (deletes, finishes, expiry) */
	/* FULL: need not be synced: survives kill -9 at once, power loss after the next
	 * skv_store_sync or the next append without this flag, of any partition. NORMAL: no effect.
	 * A power loss still leaves a prefix of the journal. */
	SKV_APPEND_LATER = 2,
};

/* Receives what skv_store_load reads. Return SKV_OK to continue; any other value ends the load with
 * it. */
struct skv_load_sink {
	int (*slice)(void *ctx, uint32_t number, const void *bytes, size_t n);
	int (*record)(void *ctx, uint64_t seq, const void *bytes, size_t n);
	void *ctx;
};

/* A follower's position. Zeros: at the beginning. */
struct skv_position {
	bool known;
	/* Set by the caller: it needs all that was acknowledged before the call, not just what a
	 * backend knows without asking its servers. */
	bool fresh;
	uint64_t seq;    /* the newest record that it has */
	uint64_t newest; /* newest record of the store when it was last read */
	uint64_t base;   /* end of the newest checkpoint at that time */
	/* Private to the backend: proves that the store's history is still the followed one. */
	uint64_t total;
	char mark[40];
};

struct skv_store_stats {
	uint64_t journal_bytes; /* payload after the newest checkpoint */
	uint64_t last_seq;      /* newest appended, 0 if none */
	uint64_t free_bytes;    /* on the disk of the store; UINT64_MAX if unknown */
};

typedef int (*skv_registry_fn)(void *ctx, const char *key, const void *bytes, size_t n,
			       uint64_t version);

/* A backend's operations. `size` is sizeof the struct it was compiled with; new members go to the
 * end. All members are required unless marked. Semantics: the wrappers below. */
struct skv_store_ops {
	size_t size;
	const char *name;
	int (*open)(const struct skv_store_options *o, void **self, struct skv_error *err);
	void (*close)(void *self);

	int (*get)(void *self, const char *key, struct skv_buf *value, uint64_t *version,
		   struct skv_error *err);
	int (*put)(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
		   const void *bytes, size_t n, uint64_t *version, struct skv_error *err);
	int (*del)(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
		   struct skv_error *err);
	int (*list)(void *self, const char *prefix, skv_registry_fn fn, void *ctx,
		    struct skv_error *err);

	int (*acquire)(void *self, uint32_t partition, const char *owner, uint32_t ttl_ms,
		       uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err);
	int (*renew)(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
		     struct skv_error *err);
	int (*release)(void *self, uint32_t partition, uint64_t fence, struct skv_error *err);

	int (*append)(void *self, uint32_t partition, uint64_t fence, uint64_t seq,
		      const void *bytes, size_t n, unsigned flags, struct skv_error *err);
	int (*sync)(void *self, uint32_t partition, struct skv_error *err);

	int (*checkpoint_begin)(void *self, uint32_t partition, uint64_t fence, uint64_t *id,
				struct skv_error *err);
	int (*checkpoint_slice)(void *self, uint32_t partition, uint64_t fence, uint64_t id,
				uint32_t number, const void *bytes, size_t n,
				struct skv_error *err);
	int (*checkpoint_commit)(void *self, uint32_t partition, uint64_t fence, uint64_t id,
				 uint32_t slices, uint64_t upto_seq, struct skv_error *err);
	int (*checkpoint_abort)(void *self, uint32_t partition, uint64_t id);

	int (*load)(void *self, uint32_t partition, uint64_t *base_seq,
		    const struct skv_load_sink *sink, struct skv_error *err);
	int (*stats)(void *self, uint32_t partition, struct skv_store_stats *out,
		     struct skv_error *err);

	int (*follow)(void *self, uint32_t partition, struct skv_position *at,
		      const struct skv_load_sink *sink, struct skv_error *err); /* may be NULL */
	uint64_t (*renewed)(void *self, uint32_t partition); /* may be NULL */
	int (*changes)(void *self, const char *const *prefixes, size_t n, uint64_t *at, bool *all,
		       skv_registry_fn fn, void *ctx, struct skv_error *err); /* may be NULL */
};

struct skv_store; /* wrapper around one opened backend */

extern const struct skv_store_ops skv_store_sqlite;
extern const struct skv_store_ops skv_store_etcd;

/* A path of SQLite's: a store in memory of its own, which goes when it is closed. It takes a
 * journal of 2 GiB and checkpoints of as much; a load keeps writers out while it lasts. */
#define SKV_STORE_IN_MEMORY ":memory:"
#define SKV_STORE_MEMORY_VFS "memdb" /* is SQLite's own, from 3.36 on */
/* The backend of a --store text: etcd://... (see etcd_url.c), else a path of SQLite's. NULL: a URL
 * of an unknown scheme, which skv_store_open refuses. */
const struct skv_store_ops *skv_store_backend(const char *text);
/* Returns true if the text names a file. */
bool skv_store_is_file(const char *text);
/* The --store text for logs and display: without user and password. */
#define SKV_STORE_SHOWN_MAX 256
void skv_store_shown(const char *text, char out[SKV_STORE_SHOWN_MAX]);

/* Opens a store. SKV_E_UNSUPPORTED: `ops` is NULL, or the database lies on a network mount (WAL
 * needs shared memory). */
int skv_store_open(const struct skv_store_ops *ops, const struct skv_store_options *o,
		   struct skv_store **out, struct skv_error *err);
void skv_store_close(struct skv_store *s);
const char *skv_store_name(const struct skv_store *s);
enum skv_durability skv_store_durability(const struct skv_store *s);

/* Registry: small documents by key (<= 1 MiB each). SKV_E_NOT_FOUND; SKV_E_CONFLICT if the version
 * is not the expected one. put and del are durable on return, in both modes. `version` may be NULL.
 * `fence` is checked first. fence NULL: a document that only its writer uses, whoever is owner
 * (e.g. a manager's address); never for the state of a partition. */
int skv_store_get(struct skv_store *s, const char *key, struct skv_buf *value, uint64_t *version,
		  struct skv_error *err);
int skv_store_put(struct skv_store *s, const struct skv_fence *fence, const char *key,
		  uint64_t expect, const void *bytes, size_t n, uint64_t *version,
		  struct skv_error *err);
int skv_store_del(struct skv_store *s, const struct skv_fence *fence, const char *key,
		  uint64_t expect, struct skv_error *err);
/* In key order, a consistent snapshot. `fn` returns SKV_OK to continue, another value ends the call
 * with it; it may call the store. */
int skv_store_list(struct skv_store *s, const char *prefix, skv_registry_fn fn, void *ctx,
		   struct skv_error *err);

/* Lists changes incrementally: delivers the documents whose keys begin with one of the prefixes,
 * and that were written or removed (SKV_VERSION_NONE and no bytes) since the call that set *at, in
 * the order of the changes. Asks no server, so a change may be reported some milliseconds late. If
 * *at is 0, or the backend does not know what has changed since: lists them all, one prefix after
 * the other, and sets *all. *at moves if the call succeeds. */
int skv_store_changes(struct skv_store *s, const char *const *prefixes, size_t n, uint64_t *at,
		      bool *all, skv_registry_fn fn, void *ctx, struct skv_error *err);

/* Takes ownership of a partition for ttl_ms, counted from the start of the call. `fence` grows with
 * every acquire and release, so that writes of the previous owner still in flight are rejected.
 * SKV_E_NOT_OWNER while another owner's lease runs; `holder` (may be NULL) then gets its name. A
 * lease ends early if its process is provably dead on this boot of this host (the owner text is
 * "<host>:<pid>:<start time>:<boot id>:<random>", see skv_owner_name), or if the same host name has
 * booted since. After another host's boot its clock cannot be compared: then the lease ends when
 * this handle has seen it unchanged for its full length. ttl_ms 0 only checks: SKV_OK if it could
 * be taken; nothing is changed. What may pass by itself is SKV_E_STORE_IO, SKV_E_STORE_FULL or
 * SKV_E_NOMEM; SKV_E_UNAVAILABLE or SKV_E_FORBIDDEN: this process may not write the store;
 * SKV_E_CORRUPT: it is damaged. */
int skv_store_acquire(struct skv_store *s, uint32_t partition, const char *owner, uint32_t ttl_ms,
		      uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err);
/* SKV_E_FENCED if another manager owns, or has owned, it since. An expired lease that nobody took
 * can be renewed. */
int skv_store_renew(struct skv_store *s, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
		    struct skv_error *err);
int skv_store_release(struct skv_store *s, uint32_t partition, uint64_t fence,
		      struct skv_error *err);
/* When this handle noticed the newest renewal of another owner's lease, by the clock of the leases.
 * Acquires that are refused look for one. 0: none was seen. */
uint64_t skv_store_renewed_ms(struct skv_store *s, uint32_t partition);
/* A name for this process as owner, different at each call. `out` has 192 bytes. The random part
 * begins with the number of the pid namespace and a dot, because a pid means nothing in another
 * one. */
void skv_owner_name(char out[192]);
/* Returns true only if the named owner is provably gone: same boot, no such process. */
bool skv_owner_is_dead(const char *owner);

/* Journal: appends one batch as `seq`, which must be last_seq + 1 (else SKV_E_CONFLICT), in one
 * transaction that also checks the fence. Durability as opened. At most SKV_STORE_BATCH_MAX bytes,
 * else SKV_E_TOO_LARGE. */
int skv_store_append(struct skv_store *s, uint32_t partition, uint64_t fence, uint64_t seq,
		     const void *bytes, size_t n, unsigned flags, struct skv_error *err);
/* Puts everything that was appended to the partition before the call on stable media; of other
 * partitions it says nothing, since another manager may have them now. FULL: only needed after
 * SKV_APPEND_LATER. After a failure it keeps failing until the store is reopened: the kernel
 * reports a lost write only once, so a later success would prove nothing. */
int skv_store_sync(struct skv_store *s, uint32_t partition, struct skv_error *err);

/* Checkpoint: slices (<= SKV_STORE_SLICE_MAX, numbered from 0) written in transactions of their
 * own; commit makes them the state at `upto_seq` and truncates the journal up to it, atomically.
 * Old slices and rows are removed in small steps afterwards. An unfinished checkpoint leaves
 * nothing behind: abort, the next begin and the next acquire remove it. A slice may be rewritten.
 * Slice and commit: SKV_E_CONFLICT if `id` is not the newest begun checkpoint, slices are missing,
 * or upto_seq is not between the last checkpoint's and the last record's. */
int skv_store_checkpoint_begin(struct skv_store *s, uint32_t partition, uint64_t fence,
			       uint64_t *id, struct skv_error *err);
int skv_store_checkpoint_slice(struct skv_store *s, uint32_t partition, uint64_t fence, uint64_t id,
			       uint32_t number, const void *bytes, size_t n, struct skv_error *err);
int skv_store_checkpoint_commit(struct skv_store *s, uint32_t partition, uint64_t fence,
				uint64_t id, uint32_t slices, uint64_t upto_seq,
				struct skv_error *err);
int skv_store_checkpoint_abort(struct skv_store *s, uint32_t partition, uint64_t id);

/* Delivers the newest committed checkpoint's slices in order, then the journal records after it in
 * order of seq. *base_seq = the checkpoint's upto_seq (0 if none), set before the first delivery.
 * SKV_E_CORRUPT for a gap in seq, a missing slice, or a bad checksum of a row. */
int skv_store_load(struct skv_store *s, uint32_t partition, uint64_t *base_seq,
		   const struct skv_load_sink *sink, struct skv_error *err);
int skv_store_stats_get(struct skv_store *s, uint32_t partition, struct skv_store_stats *out,
			struct skv_error *err);
/* Loads incrementally: delivers the records after *at, in order of seq, and advances *at. From an
 * empty *at it delivers the checkpoint first. A call delivers about a MiB of records, so call it
 * again until at->seq is at->newest. Delivered records may not be acknowledged yet. The sink must
 * not call the store. SKV_E_CONFLICT: the following records are no longer available (a checkpoint
 * has replaced them), or the store continued from an older state (a replica that had less became
 * the primary): load anew. A record at which the sink ended the call is delivered again.
 * SKV_E_UNSUPPORTED: this backend cannot follow. */
int skv_store_follow(struct skv_store *s, uint32_t partition, struct skv_position *at,
		     const struct skv_load_sink *sink, struct skv_error *err);

/* Partition `number` (from 1 on) of `below` as a store of its own, in which it is partition 0 and
 * has a registry for itself: "partition/<number>/<key>" below. Only the key `shared` (kept, not
 * copied) is everybody's. `below` is borrowed and outlives it; others may use it meanwhile. */
int skv_store_partition(struct skv_store *below, uint32_t number, const char *shared,
			struct skv_store **out, struct skv_error *err);

/* Counters of the wrapper since open. */
struct skv_store_counters {
	uint64_t calls;
	uint64_t errors;
	uint64_t appends;
	uint64_t append_bytes;
	uint64_t append_us; /* summed */
	uint64_t append_max_us;
};
void skv_store_counters_get(const struct skv_store *s, struct skv_store_counters *out);
/* For how long the oldest call has been under way, in microseconds; 0: none is. *what names it, ""
 * or a constant. A file system that hangs is noticed by it. Any thread, never blocks. */
uint64_t skv_store_wait_us(struct skv_store *s, const char **what);

#endif
