/*
 * core.h - the block manager without any wire: index, sessions, leases, eviction, journal, recovery.
 *
 * A `struct skv_core` opens a metadata store, tries to own its partition, recovers, then answers.
 * While another manager owns the partition it is a standby and every block operation returns
 * SKV_E_NOT_OWNER; it takes over when the owner's lease ends.
 *
 * Calls are made from any thread. Those that must wait for durability take a `struct skv_done`: they
 * return SKV_PENDING and later, exactly once, call done->fn from a thread of the core (which must not
 * block in it); any other result is final and done->fn is not called. Request, result, error and
 * arena must stay valid until then. Results are complete when fn is called with SKV_OK.
 *
 * All results may be one of SKV_E_NOT_READY, SKV_E_NOT_OWNER, SKV_E_NOMEM besides those listed.
 */
#ifndef SKV_CORE_H
#define SKV_CORE_H

#include <skv/arena.h>
#include <skv/clock.h>
#include <skv/ops.h>
#include <skv/status.h>


struct skv_core;
struct skv_store; /* skv/store.h */

struct skv_core_options {
	struct skv_store *store;        /* stays the caller's, must outlive the core */
	const struct skv_clock *clock;  /* NULL = skv_clock_system */
	uint32_t owner_lease_ms;        /* 1000..60000, default 5000 */
	uint32_t lease_default_ms;      /* default 10000 */
	uint32_t lease_max_ms;          /* default 60000 */
	uint32_t session_default_ms;    /* default 30000 */
	uint32_t session_max_ms;        /* default 600000 */
	uint32_t grace_ms;              /* storage grace after a deadline; default 2000 for local files */
	uint32_t grace_max_ms;          /* what a start may ask for; default 0: grace_ms, and no more */
	/* Deadline and grace together of starts that ask to be `relaxed` are at most this; 0, the default: none is. After a
	 * power loss, which may have taken such starts along, free slots of external storages rest for so long. */
	uint32_t relaxed_ms;
	uint32_t max_sessions;          /* open at a time; default 65536 */
	uint32_t max_remembered;        /* ended request ids kept; default 262144 */
	uint32_t leased_percent;        /* of an instance's share that may be leased; default 90 */
	uint32_t open_percent;          /* of the storages' bytes that open sessions may hold; default 50 */
	uint32_t free_percent;          /* evict ahead of need down to this much free; default 2 */
	uint64_t journal_limit;         /* bytes; default 256 MiB. A quarter of it triggers a checkpoint; up to half with many blocks */
	bool adopt; /* in the first reign: slab directories where another copy of the store went on, and was stopped for good,
		       are taken over. The state counts as one that went back in time: free slots rest for session_max_ms
		       and the grace, blocks without checksum go */
	/* Called once, on a thread of the core, when what this manager owns could not be loaded ten times in a row, or another
	 * copy of its store goes on in a slab directory. It has given the ownership back; a new process, with the store
	 * opened anew, may do better. NULL = try on. */
	void (*hopeless)(void *ctx);
	void *hopeless_ctx;
	bool manual;                    /* tests: no threads for time; the test calls skv_core_tick */
	const char *fs_master_token_file; /* what the manager shows to fs-masters; NULL or "" = nothing */
	const char *boot_id;            /* tests: 36 characters instead of this boot's id; NULL = its own */
};

/* Fills *o with the defaults above (store stays NULL). */
void skv_core_options_init(struct skv_core_options *o);

/* Starts the threads; recovery runs in the background (see skv_core_state). */
int skv_core_create(const struct skv_core_options *o, struct skv_core **out, struct skv_error *err);
/* Stops taking requests, completes or fails what is pending, checkpoints, gives the ownership back. */
void skv_core_shutdown(struct skv_core *c);
/* After shutdown: waits until no thread of the core is inside a file system any more. False: one still is after
 * timeout_ms, and skv_core_destroy would wait for it; the process should end without. */
bool skv_core_quiet(struct skv_core *c, uint32_t timeout_ms);
void skv_core_destroy(struct skv_core *c); /* after shutdown, or alone: like a crash of the process */

enum skv_core_state { SKV_CORE_STANDBY, SKV_CORE_RECOVERING, SKV_CORE_READY, SKV_CORE_STOPPED };
enum skv_core_state skv_core_state_get(const struct skv_core *c);
/* SKV_OK when this manager owns its partition, its lease runs, and at least one storage is healthy.
 * Else the reason in *err. */
int skv_core_ready(struct skv_core *c, struct skv_error *err);
/* SKV_OK while this manager is inside its ownership lease. The transport calls it just before an answer
 * leaves, so that a manager that was stopped in between says nothing. */
int skv_core_may_answer(const struct skv_core *c);
#define SKV_OWNER_NAME 192 /* bytes, NUL included */
/* Gives the ownership back, and does not ask for it again for so long; another manager of the store may have it
 * meanwhile. Sessions, leases and blocks are the next owner's. Waits until it is done. SKV_E_NOT_OWNER. Blocks. */
int skv_core_demote(struct skv_core *c, uint32_t stay_out_ms, struct skv_error *err);
/* Owner names (skv_owner_name) of this manager and of the one that owns the partition: "" = nobody, or not known yet; and
 * how long this one's ownership still runs. On a standby too. */
void skv_core_leader(struct skv_core *c, char self[SKV_OWNER_NAME], char leader[SKV_OWNER_NAME],
		     uint64_t *remaining_ms);
/* Wall time, ms, when this manager last looked after the ownership: several times a lease, on a standby too. */
uint64_t skv_core_owner_seen_ms(const struct skv_core *c);
/* It owns the partition, and the last try to load it failed; the next one comes by itself. */
bool skv_core_load_fails(const struct skv_core *c);
/* Waits until READY or timeout; SKV_E_TIMEOUT. */
int skv_core_wait_ready(struct skv_core *c, uint32_t timeout_ms);
/* manual mode: does whatever time has made due (expiry, holds, eviction, renewal, checkpoints). */
void skv_core_tick(struct skv_core *c);

struct skv_done {
	void (*fn)(void *ctx, int status);
	void *ctx;
};

/* The store's secret for string keys; all zero until the core has been READY for the first time: ask for the state first.
 * Borrowed, any thread. */
const struct skv_secret *skv_core_secret(const struct skv_core *c);

/* ---- administration: blocking (store and file system I/O), any thread but the core's ---------- */

/* Create or update. Same again is SKV_OK; what may not change: SKV_E_CONFLICT naming the field.
 * *created (may be NULL) tells which. The storage's root is opened before anything is registered. */
int skv_core_storage_put(struct skv_core *c, const struct skv_storage_spec *s, bool *created,
			 struct skv_error *err);
/* `expect` (may be NULL): only if the group's `version` is that; else SKV_E_CONFLICT, field "version". */
int skv_core_group_put(struct skv_core *c, const struct skv_group_spec *g, const uint64_t *expect, bool *created,
		       struct skv_error *err);
int skv_core_instance_put(struct skv_core *c, const struct skv_instance_spec *i, bool *created,
			  struct skv_error *err);
/* The same, but only what does not exist yet: SKV_E_CONFLICT, field "name" (of an instance "id") for what does, which stays
 * as it is. Whoever looks first and then puts may meet another one who does the same. */
int skv_core_storage_create(struct skv_core *c, const struct skv_storage_spec *s, struct skv_error *err);
int skv_core_group_create(struct skv_core *c, const struct skv_group_spec *g, struct skv_error *err);
int skv_core_instance_create(struct skv_core *c, const struct skv_instance_spec *i, struct skv_error *err);
/* The same, but only what exists: SKV_E_NOT_FOUND, field "name". */
int skv_core_storage_change(struct skv_core *c, const struct skv_storage_spec *s, struct skv_error *err);
/* Views live in `a`. SKV_E_NOT_FOUND. name NULL = all (n results), else exactly one. */
int skv_core_storages(struct skv_core *c, const char *name, struct skv_arena *a,
		      struct skv_storage_view **out, uint32_t *n, struct skv_error *err);
int skv_core_groups(struct skv_core *c, const char *name, struct skv_arena *a,
		    struct skv_group_view **out, uint32_t *n, struct skv_error *err);
int skv_core_instances(struct skv_core *c, const char *tenant, const char *id, struct skv_arena *a,
		       struct skv_instance_view **out, uint32_t *n, struct skv_error *err);
/* SKV_E_IN_USE: a storage with files of live blocks or named by a group; a group with instances. An
 * instance goes with all its blocks. A missing object is SKV_E_NOT_FOUND. */
int skv_core_storage_delete(struct skv_core *c, const char *name, struct skv_error *err);
int skv_core_group_delete(struct skv_core *c, const char *name, struct skv_error *err);
int skv_core_instance_delete(struct skv_core *c, const char *tenant, const char *id, struct skv_error *err);

/* Slab files of a storage, in order of their numbers; none of type `external`. SKV_E_NOT_FOUND ("name"). */
int skv_core_files(struct skv_core *c, const char *storage, struct skv_arena *a, struct skv_file_view **out, uint32_t *n,
		   struct skv_error *err);
/* Wants the file drained, or (`on` false) not any more: durable, and done in the background (skv_core_files tells how
 * far). Nothing new is placed in it; its blocks are evicted, those under a lease are a miss at once and their slots wait
 * for its end; what is being written waits for its session. Then the file is removed, and the storage may grow by
 * another one, which lies where the file system has room now. Again is SKV_OK. SKV_E_NOT_FOUND ("name", "file"), SKV_E_CONFLICT
 * ("draining": it is empty and being removed). */
int skv_core_file_drain(struct skv_core *c, const char *storage, uint32_t file, bool on, struct skv_error *err);
/* Gives up a file that is bad, or whose storage is not well, with all its blocks: durable, and done in the background. Again is
 * SKV_OK. SKV_E_NOT_FOUND ("name", "file"), SKV_E_CONFLICT ("forget": it is whole). */
int skv_core_file_forget(struct skv_core *c, const char *storage, uint32_t file, struct skv_error *err);

/* ---- block operations ------------------------------------------------------------------------- */

/* SKV_E_NOT_FOUND with field "instances[i]" or "instance" when the instance is unknown (all below). */
int skv_core_match(struct skv_core *c, const struct skv_match_req *req, struct skv_match_res *res,
		   struct skv_arena *a, struct skv_error *err);
/* May be SKV_PENDING: the first lookup after a quiet time waits until the lease horizon is durable. SKV_E_INVALID
 * ("specs[i]", "window", "full_specs", "state_specs"). */
int skv_core_lookup(struct skv_core *c, const struct skv_lookup_req *req, struct skv_lookup_res *res,
		    struct skv_arena *a, struct skv_error *err, const struct skv_done *done);
/* What res->matched of such a lookup would be; no lease, no use, never SKV_PENDING. */
int skv_core_lookup_length(struct skv_core *c, const struct skv_lookup_req *req, uint32_t *matched,
			   struct skv_arena *a, struct skv_error *err);
/* SKV_E_INVALID (duplicate key: field "keys[i]"; "key_specs[i]"), SKV_E_CONFLICT (request id with another body),
 * SKV_E_NO_SPACE, SKV_E_QUOTA (of the group; field "max_blocks", "quotas", or none for its capacity; "weight", "capacity":
 * of the instance's fixed share; "instance": it has as many blocks as there may be in one), SKV_E_TOO_MANY (sessions), SKV_E_JOURNAL_FULL, SKV_E_STORE_*, SKV_E_UNAVAILABLE (no healthy storage). */
int skv_core_start(struct skv_core *c, const struct skv_start_req *req, struct skv_start_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done);
/* SKV_E_NOT_FOUND (unknown session, or another instance's), SKV_E_SESSION_EXPIRED, SKV_E_SESSION_ENDED (aborted,
 * or finished with another outcome), SKV_E_INVALID (mask or checksum count). A finished session finished again as before:
 * SKV_OK, same numbers. */
int skv_core_finish(struct skv_core *c, const struct skv_finish_req *req, struct skv_finish_res *res,
		    struct skv_arena *a, struct skv_error *err, const struct skv_done *done);
int skv_core_abort(struct skv_core *c, const struct skv_abort_req *req, struct skv_finish_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done);
int skv_core_delete(struct skv_core *c, const struct skv_delete_req *req, struct skv_delete_res *res,
		    struct skv_arena *a, struct skv_error *err, const struct skv_done *done);
/* Goes through the instance in portions, others' calls in between; SKV_OK once all of it is durable. Blocks that are
 * being written stay (of those that have other specs, these go); slots under a lease are held until it ends. After a
 * failure some are deleted: to be repeated. SKV_E_INVALID ("from_ms"), SKV_E_STORE_*. */
int skv_core_trim(struct skv_core *c, const struct skv_trim_req *req, struct skv_trim_res *res, struct skv_arena *a,
		  struct skv_error *err, const struct skv_done *done);
/* SKV_E_INVALID ("keys", "kind", "ttl_ms"), SKV_E_QUOTA ("pinned_bytes": more would be pinned hard
 * than pin_percent of the group's room, or of the instance's share, allows; then nothing is pinned), SKV_E_JOURNAL_FULL,
 * SKV_E_STORE_*. */
int skv_core_pin(struct skv_core *c, const struct skv_pin_req *req, struct skv_pin_res *res, struct skv_arena *a,
		 struct skv_error *err, const struct skv_done *done);
/* SKV_E_STORE_*: then they are pinned as before. */
int skv_core_unpin(struct skv_core *c, const struct skv_unpin_req *req, struct skv_unpin_res *res, struct skv_arena *a,
		   struct skv_error *err, const struct skv_done *done);
/* No lease, no use. SKV_E_INVALID ("max", "cursor"). */
int skv_core_pins(struct skv_core *c, const struct skv_pins_req *req, struct skv_pins_res *res, struct skv_arena *a,
		  struct skv_error *err);
/* SKV_OK whatever was ignored. SKV_E_TOO_LARGE ("keys", "give_up"), SKV_E_UNSUPPORTED (not an instance of one spec on one
 * `external` storage), SKV_E_STORE_* (then all is as before). */
int skv_core_finish_partial(struct skv_core *c, const struct skv_partial_req *req, struct skv_partial_res *res,
		    struct skv_arena *a, struct skv_error *err, const struct skv_done *done);
/* The cost of the call does not grow with the number of blocks: they are hidden at once, and their slots come free
 * behind it, also when somebody needs them; those under a lease when it ends. Waits for the record. SKV_E_STORE_*. */
int skv_core_clear(struct skv_core *c, const struct skv_clear_req *req, struct skv_clear_res *res, struct skv_arena *a,
		   struct skv_error *err, const struct skv_done *done);
/* No lease, no use. SKV_E_INVALID ("cursor", "max"). */
int skv_core_export(struct skv_core *c, const struct skv_export_req *req, struct skv_export_res *res,
		    struct skv_arena *a, struct skv_error *err);
/* No lease, no use. SKV_E_TOO_LARGE ("keys"). */
int skv_core_states(struct skv_core *c, const struct skv_states_req *req, struct skv_states_res *res,
		    struct skv_arena *a, struct skv_error *err);
int skv_core_block(struct skv_core *c, const char *tenant, const char *instance, struct skv_key key,
		   struct skv_block_view *out, struct skv_arena *a, struct skv_error *err);
int skv_core_stats(struct skv_core *c, struct skv_arena *a, struct skv_stats *out, struct skv_error *err);

/* ---- counters: one table (Prometheus names are slabkv_<name>_total, or without _total for gauges) */
#define SKV_CORE_COUNTERS(X)                                                                       \
	X(match_keys, "keys asked for by match")                                                   \
	X(lookup_keys, "keys asked for by lookup")                                                 \
	X(lookup_hits, "keys found by lookup")                                                     \
	X(start_keys, "keys asked for by start")                                                   \
	X(start_writes, "blocks handed out for writing")                                           \
	X(start_exists, "keys of start that were there already")                                   \
	X(start_busy, "keys of start that another session was writing")                            \
	X(start_waits, "starts that waited for eviction")                                          \
	X(committed_blocks, "blocks committed by finish")                                          \
	X(failed_blocks, "blocks of sessions that were not committed")                             \
	X(deleted_blocks, "blocks deleted by request")                                             \
	X(evicted_blocks, "blocks evicted")                                                        \
	X(evict_examined, "entries examined by eviction")                                          \
	X(steered_windows, "times that a class took a window of slabs that others had left idle")  \
	X(drained_blocks, "blocks evicted because their slab file drains")                         \
	X(expired_sessions, "sessions that passed their deadline")                                 \
	X(commits, "journal appends (group commits)")                                              \
	X(commit_records, "records in them")                                                       \
	X(commit_failures, "journal appends that failed")                                          \
	X(reloads, "reloads after an append of unknown outcome")                                   \
	X(checkpoints, "checkpoints written")                                                      \
	X(checkpoint_failures, "checkpoints that failed")                                          \
	X(takeovers, "times this manager became owner")                                            \
	X(lease_denied, "lookups whose lease was cut by the cap")                                  \
	X(lease_hidden, "keys that are stored and were told as missing, for the cap on leases")    \
	X(pinned_blocks, "blocks pinned by request")                                               \
	X(quota_refused, "starts and pins that a quota refused")

struct skv_core_counters {
#define SKV_CORE_COUNTER_FIELD(name, help) uint64_t name;
	SKV_CORE_COUNTERS(SKV_CORE_COUNTER_FIELD)
#undef SKV_CORE_COUNTER_FIELD
};
/* What was counted since skv_core_create. Any thread. */
void skv_core_counters_get(const struct skv_core *c, struct skv_core_counters *out);

/* What the core's metadata store counted since it was opened (skv/store.h). Any thread. */
struct skv_core_store_counters {
	uint64_t calls;
	uint64_t errors;
	uint64_t appends;
	uint64_t append_bytes;
	uint64_t append_us; /* summed */
	uint64_t append_max_us;
};
void skv_core_store_counters_get(const struct skv_core *c, struct skv_core_store_counters *out);

/* ---- documents of APIs ------------------------------------------------------------------------------ */

/* Small texts by name (1..SKV_MAX_DOC_NAME printable ASCII characters), in the store at once, readable on a standby too:
 * for accounts, nodes and the like. They block for the store. Versions begin at 1; `expect` 0 = must not exist,
 * SKV_DOC_ANY = as it is. Put and delete take the ownership, until they are durable: SKV_E_NOT_OWNER. SKV_E_NOT_FOUND,
 * SKV_E_CONFLICT, SKV_E_TOO_LARGE. */
#define SKV_DOC_ANY UINT64_MAX
int skv_core_doc_get(struct skv_core *c, const char *name, struct skv_arena *a, struct skv_doc *out,
		     struct skv_error *err);
int skv_core_doc_put(struct skv_core *c, const char *name, uint64_t expect, const char *text, uint64_t *version,
		     struct skv_error *err);
int skv_core_doc_delete(struct skv_core *c, const char *name, struct skv_error *err);
/* On a standby too, as it is: only for what a manager says of itself, under a name of its own; and its end. */
int skv_core_doc_publish(struct skv_core *c, const char *name, const char *text, struct skv_error *err);
int skv_core_doc_retire(struct skv_core *c, const char *name, struct skv_error *err);
/* Those whose names begin with `prefix`, in order of their names. */
int skv_core_doc_list(struct skv_core *c, const char *prefix, struct skv_arena *a, struct skv_doc **out, uint32_t *n,
		      struct skv_error *err);

/* ---- offline check (slabkvd fsck): the store must have no running owner ---------------------- */

struct skv_fsck_report {
	uint64_t blocks;
	uint64_t sessions;
	uint64_t used_slots;
	uint64_t held_slots;
	uint64_t problems; /* 0 = clean */
};
/* Loads the partition without changing the store and verifies: no slot with two owners, every
 * block's slots used exactly once, links, counts, allocator invariants; `files` also checks slab files, through
 * fs-masters with the token in that file (NULL = none).
 * Each problem goes to say(). SKV_OK even with problems; an error when it could not check. */
int skv_core_fsck(struct skv_store *store, bool files, const char *fs_master_token_file,
		  void (*say)(void *ctx, const char *text), void *ctx, struct skv_fsck_report *out, struct skv_error *err);

/* Test hook: the same check on the running core (takes the lock). SKV_OK or SKV_E_CORRUPT. */
int skv_core_check(struct skv_core *c, struct skv_error *err);

#endif
