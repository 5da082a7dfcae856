/*
 * core.h - the block manager, without any wire protocol: index, sessions, leases, eviction,
 * journal, recovery.
 *
 * A `struct skv_cluster` uses a metadata store, tries to own its partitions, recovers, then
 * answers. Each partition is a `struct skv_core`, which has the block operations; skv_find
 * (skv/find.h) names the one that a call is for. A group is in one partition, with its instances
 * and their blocks, and stays there. While another manager owns a partition this one is a standby:
 * every block operation returns SKV_E_NOT_OWNER; it takes over when the owner's lease ends.
 *
 * Any thread may call. Calls that wait for durability take a `struct skv_done`: they return
 * SKV_PENDING and later call done->fn exactly once, from a thread of the core (which fn must not
 * block); any other result is final and done->fn is not called. Request, result, error and arena
 * must stay valid until then. Results are complete when fn is called with SKV_OK.
 *
 * Besides the errors listed, every call may return SKV_E_NOT_READY, SKV_E_NOT_OWNER, SKV_E_NOMEM.
 */
#ifndef SKV_CORE_H
#define SKV_CORE_H

#include <skv/arena.h>
#include <skv/clock.h>
#include <skv/ops.h>
#include <skv/status.h>

struct skv_cluster; /* all partitions of a store */
struct skv_core;    /* a partition of a cluster; lives as long as that */
struct skv_store;   /* skv/store.h */

/* The family of an external storage (tenant NULL) or of an instance, by its name; false: none.
 * Members of a family are in one partition: the first is made in any partition, the others beside
 * it, or not at all. Pure; all managers of a store use the same function. */
typedef bool skv_family_fn(const char *tenant, const char *name, char out[SKV_MAX_NAME + 1]);

struct skv_core_options {
	struct skv_store *store;        /* borrowed, must outlive the core */
	const struct skv_clock *clock;  /* NULL = skv_clock_system */
	uint32_t owner_lease_ms;        /* 1000..60000, default 5000 */
	uint32_t lease_default_ms;      /* default 10000 */
	uint32_t lease_max_ms;          /* default 60000 */
	uint32_t session_default_ms;    /* default 30000 */
	uint32_t session_max_ms;        /* default 600000 */
	uint32_t grace_ms; /* grace after a session's deadline; default 2000 for local files */
	uint32_t grace_max_ms; /* the longest grace that a start may ask for; default 0: grace_ms */
	/* Limit of deadline plus grace of `relaxed` starts; 0, the default: no start is relaxed.
	 * After a power loss, which may have lost such starts, free slots of external storages are
	 * not reused for this long. */
	uint32_t relaxed_ms;
	uint32_t max_sessions;          /* open sessions; default 65536 */
	uint32_t max_remembered;        /* ended request ids kept; default 262144 */
	uint32_t leased_percent; /* limit of leased bytes, of an instance's share; default 90 */
	/* Limit of open sessions' bytes, of the storages' capacity; default 50. */
	uint32_t open_percent;
	uint32_t free_percent; /* eviction keeps at most this much free, by demand; default 2 */
	/* bytes; default 256 MiB; a checkpoint's size if that is more. A checkpoint begins at a
	 * quarter of it, or later: when the journal is half as long as the checkpoint. */
	uint64_t journal_limit;
	/* On first ownership: take over slab directories that another copy of the store, now
	 * stopped permanently, has used since. The state counts as rolled back: free slots are not
	 * reused for session_max_ms and the grace, and blocks without a checksum are dropped. */
	bool adopt;
	/* Called on a thread of the core, perhaps several times, when the ownership of a partition
	 * has been given up because loading it has failed ten times in a row: a new process that
	 * reopens the store may succeed (`why` is SKV_E_NOT_READY). Or somebody has to act first:
	 * another copy of the store is using a slab directory (SKV_E_FOREIGN), or the store is
	 * damaged or cannot be written by this process (SKV_E_UNAVAILABLE); it is tried again after
	 * two leases. NULL = keep trying. */
	void (*hopeless)(void *ctx, int why);
	void *hopeless_ctx;
	/* Instances that hold nothing are dropped after so long without a call that uses them; 0,
	 * the default: never. */
	uint64_t instance_idle_ms;
	bool standby_cold; /* a standby does not keep the partition loaded */
	/* True: owns nothing until skv_cluster_may_own permits partitions; false: may own all. */
	bool assigned;
	bool manual;               /* tests: no timer threads; the test calls skv_cluster_tick */
	/* Directories that storages may lie below, separated by commas; NULL or "" = any.
	 * Borrowed. */
	const char *storage_roots;
	const char *fs_master_token_file; /* token for fs-masters; NULL or "" = none */
	/* Tests: 36 characters instead of the machine's boot id; NULL = the real one. */
	const char *boot_id;
};

#define SKV_MAX_PARTITIONS 16u /* of a store; a slab directory has an owner file of each */
/* The partition that the id of a session or a move names, 0..255; UINT32_MAX: it is no id. */
uint32_t skv_session_partition(const char *id);

/* Fills *o with the defaults above (store stays NULL). */
void skv_core_options_init(struct skv_core_options *o);

/* Options that no core reads. */
struct skv_cluster_options {
	/* How many, at least: the store may have more, those that were ever used in it; up to
	 * SKV_MAX_PARTITIONS. 0: only the first. */
	uint32_t partitions;
	skv_family_fn *family; /* NULL: no families */
};

/* Starts the threads; recovery runs in the background (see skv_core_state). `all` NULL: zeros. */
int skv_cluster_create(const struct skv_core_options *o, const struct skv_cluster_options *all,
		       struct skv_cluster **out, struct skv_error *err);
/* Takes over, from now on, what may change at run time: lease_default_ms, session_default_ms,
 * max_sessions, leased_percent, open_percent, free_percent, journal_limit, instance_idle_ms. Any
 * thread. */
void skv_cluster_change(struct skv_cluster *c, const struct skv_core_options *o);
/* Stops accepting requests, completes or fails pending ones, writes a checkpoint, gives up
 * ownership. */
void skv_cluster_shutdown(struct skv_cluster *c);
/* After shutdown: waits until no thread of the core is inside a file system call. False: one
 * still is after timeout_ms; skv_cluster_destroy would wait for it, so the process should exit
 * without it. */
bool skv_cluster_quiet(struct skv_cluster *c, uint32_t timeout_ms);
/* After shutdown, or without it: like a crash of the process. */
void skv_cluster_destroy(struct skv_cluster *c);

enum skv_core_state { SKV_CORE_STANDBY, SKV_CORE_RECOVERING, SKV_CORE_READY, SKV_CORE_STOPPED };
/* Of several partitions: READY if one is, at least, and no other one is being loaded or about to be
 * acquired; RECOVERING if one is; STANDBY if others own all. */
enum skv_core_state skv_cluster_state_get(const struct skv_cluster *c);
/* SKV_OK if this manager owns a partition, its lease is valid, and at least one storage is healthy
 * there. Else the reason in *err. */
int skv_cluster_ready(struct skv_cluster *c, struct skv_error *err);
/* Which partitions may be owned here, from now on: bit n is number n. One that may not be is given
 * up, as by a demotion; one that may be is acquired as soon as nobody owns it. Any thread, never
 * blocks. */
void skv_cluster_may_own(struct skv_cluster *c, uint32_t partitions);
/* Checks whether all groups, instances and external storages of the store have a place (decision
 * 0050). From then on managers may share the partitions. Blocks on the store; any thread. */
int skv_cluster_placed(struct skv_cluster *c, bool *placed, struct skv_error *err);
/* Is there a storage in any partition that is loaded here: the store is not a new one. Any thread.
 */
bool skv_cluster_has_storages(struct skv_cluster *c);
/* SKV_OK while this manager owns all partitions and their leases are valid. */
int skv_cluster_may_answer(const struct skv_cluster *c);
/* The same of one partition; `number` is below skv_cluster_partitions, here and below. */
enum skv_core_state skv_cluster_partition_state(const struct skv_cluster *c, uint32_t number);
int skv_cluster_partition_may_answer(const struct skv_cluster *c, uint32_t number);
/* May a call be looked at: one partition, at least, is READY. Which it is for, is found out by the
 * call: one that is for another ends with SKV_E_NOT_OWNER or SKV_E_NOT_READY (skv_find). */
bool skv_cluster_may_begin(const struct skv_cluster *c);
/* A handle for calls of administration that are for one partition: objects of other partitions do
 * not exist, new objects are made there, and no other manager is asked. The handle lives as long as
 * c, and supports the functions named after objects and views. */
struct skv_cluster *skv_cluster_part(struct skv_cluster *c, uint32_t number);
/* The core of a partition. */
struct skv_core *skv_cluster_core(const struct skv_cluster *c, uint32_t number);
#define SKV_OWNER_NAME 192 /* bytes, NUL included */
/* Of a partition that is READY here: its fence, which grows with each ownership; else 0. Any
 * thread. */
uint64_t skv_cluster_partition_epoch(const struct skv_cluster *c, uint32_t number);
/* Gives up all partitions that it owns and claims none for stay_out_ms; another manager of the
 * store may take them. Sessions, leases and blocks pass to the next owner. Blocks until done.
 * SKV_E_NOT_OWNER: it does not own the first one. */
int skv_cluster_demote(struct skv_cluster *c, uint32_t stay_out_ms, struct skv_error *err);
/* Gives up ownership and claims none (`on`), until it is taken back or the process ends: for a
 * manager that is about to be upgraded. Blocks until another one may take it. SKV_E_TIMEOUT: it is
 * not given up yet, and will be. */
int skv_cluster_drain(struct skv_cluster *c, bool on, struct skv_error *err);
bool skv_cluster_draining(const struct skv_cluster *c);
/* Owner names (skv_owner_name) of this manager and of the first partition's owner ("" = none, or
 * not known yet), and how long this manager's lease still runs. Works on a standby too. */
void skv_cluster_leader(struct skv_cluster *c, char self[SKV_OWNER_NAME],
			char leader[SKV_OWNER_NAME], uint64_t *remaining_ms);
/* Returns true if another manager answers for a partition, for a call that arrived at `since_ms`
 * (skv_now_ms of the core's clock): it has renewed its lease since (or a while has passed), is not
 * late with its renewal, and its process, if on this host, runs. False: this manager answers,
 * or the ownership may be moving: wait. */
bool skv_cluster_owned_elsewhere(struct skv_cluster *c, uint32_t number, uint64_t since_ms);
/* As skv_cluster_leader, of a partition. A manager has a name per partition; the part before the
 * last '.' is the same in all of them. */
void skv_cluster_partition_leader(struct skv_cluster *c, uint32_t number, char self[SKV_OWNER_NAME],
				  char leader[SKV_OWNER_NAME], uint64_t *remaining_ms);
/* Wall time, ms, of this manager's last check of the ownership: several times per lease, on a
 * standby too. */
uint64_t skv_cluster_owner_seen_ms(const struct skv_cluster *c);
/* Returns true if the manager owns the partition but the last attempt to load it failed; it retries
 * by itself. */
bool skv_cluster_load_fails(const struct skv_cluster *c);
/* Waits until READY (skv_cluster_state_get) or timeout; SKV_E_TIMEOUT. */
int skv_cluster_wait_ready(struct skv_cluster *c, uint32_t timeout_ms);
/* manual mode: does all work that is due (expiry, holds, eviction, lease renewal, checkpoints). */
void skv_cluster_tick(struct skv_cluster *c);

struct skv_done {
	void (*fn)(void *ctx, int status);
	void *ctx;
};

/* The store's secret for hashing string keys; all zero until the core has been READY once, so check
 * the state first. Borrowed, any thread. */
const struct skv_secret *skv_cluster_secret(const struct skv_cluster *c);
/* For a manager that has had no partition: is the secret known? Reads it from the store on a thread
 * that may wait (skv_thread_waits). SKV_E_NOT_READY on others. */
int skv_cluster_read_secret(struct skv_cluster *c, struct skv_error *err);

/* ---- administration: blocking (store and file system I/O), any thread but the core's --------- */

/* Checks the directory of a storage against storage_roots. SKV_E_FORBIDDEN. Blocks on its file
 * system. Puts of storages without fs-masters call it themselves; other callers must, before they
 * touch directories. */
int skv_cluster_root_allowed(const struct skv_cluster *c, const char *root, struct skv_error *err);
/* The permitted effects of a put. */
enum skv_put {
	SKV_PUT_ANY, /* make the object, or change it */
	/* make it: SKV_E_CONFLICT, field "name" (of an instance "id"), if it exists; that one stays
	 * as it is. Safe against a concurrent put, unlike a look-up before it */
	SKV_PUT_NEW,
	SKV_PUT_THERE, /* change it: SKV_E_NOT_FOUND, field "name", if it does not exist */
};
/* An identical put is SKV_OK; a member that may not change: SKV_E_CONFLICT naming the field.
 * *created (may be NULL) tells whether it was made. The storage's root is opened before it is
 * registered. */
int skv_cluster_storage_put(struct skv_cluster *c, const struct skv_storage_spec *s,
			    enum skv_put how, bool *created, struct skv_error *err);
/* `expect` (may be NULL): only if the group's `version` equals it; else SKV_E_CONFLICT, field
 * "version". */
int skv_cluster_group_put(struct skv_cluster *c, const struct skv_group_spec *g, enum skv_put how,
			  const uint64_t *expect, bool *created, struct skv_error *err);
/* SKV_E_QUOTA ("max_instances", "max_spaces"): the tenant has as many as it may have. */
int skv_cluster_instance_put(struct skv_cluster *c, const struct skv_instance_spec *i,
			     enum skv_put how, bool *created, struct skv_error *err);
/* A view, allocated in `a`. SKV_E_NOT_FOUND. */
int skv_cluster_storage(struct skv_cluster *c, const char *name, struct skv_arena *a,
			struct skv_storage_view **out, struct skv_error *err);
int skv_cluster_group(struct skv_cluster *c, const char *name, struct skv_arena *a,
		      struct skv_group_view **out, struct skv_error *err);
int skv_cluster_instance(struct skv_cluster *c, const char *tenant, const char *id,
			 struct skv_arena *a, struct skv_instance_view **out,
			 struct skv_error *err);
/* A page of all, allocated in `a`. Of instances of all tenants: those in the partitions that are
 * here, and `after` and `next` are TENANT%ID. */
int skv_cluster_storage_list(struct skv_cluster *c, const struct skv_page *page,
			     struct skv_arena *a, struct skv_storage_list *out,
			     struct skv_error *err);
int skv_cluster_group_list(struct skv_cluster *c, const struct skv_page *page, struct skv_arena *a,
			   struct skv_group_list *out, struct skv_error *err);
int skv_cluster_instance_list(struct skv_cluster *c, const struct skv_page *page,
			      struct skv_arena *a, struct skv_instance_list *out,
			      struct skv_error *err);
/* All pages of them, for answers that have none. `tenant` is that of the page; "" of storages and
 * groups: all but those of page spaces, which are few. */
int skv_cluster_every_storage(struct skv_cluster *c, const char *tenant, struct skv_arena *a,
			      struct skv_storage_view **out, uint32_t *n, struct skv_error *err);
int skv_cluster_every_group(struct skv_cluster *c, const char *tenant, struct skv_arena *a,
			    struct skv_group_view **out, uint32_t *n, struct skv_error *err);
int skv_cluster_every_instance(struct skv_cluster *c, const char *tenant, struct skv_arena *a,
			       struct skv_instance_view **out, uint32_t *n, struct skv_error *err);
/* Check whether the objects exist; make no view of objects in a partition that is here. `group`
 * (NULL: any): the group that the instance must be in. SKV_OK, SKV_E_NOT_FOUND; other errors: not
 * known. */
int skv_cluster_has_instance(struct skv_cluster *c, const char *tenant, const char *id,
			     const char *group);
int skv_cluster_has_group(struct skv_cluster *c, const char *name);
int skv_cluster_has_storage(struct skv_cluster *c, const char *name);
/* SKV_E_IN_USE: a storage with live blocks or in a group's list; a group with instances. Deleting
 * an instance deletes all its blocks. SKV_E_NOT_FOUND. */
int skv_cluster_storage_delete(struct skv_cluster *c, const char *name, struct skv_error *err);
int skv_cluster_group_delete(struct skv_cluster *c, const char *name, struct skv_error *err);
/* `unused` (may be NULL): only if no registration, lookup or start has named the instance for that
 * long and, unless with_blocks, it holds no block, pin or session; else SKV_E_IN_USE. */
struct skv_unused {
	uint64_t ms;
	bool with_blocks;
};
int skv_cluster_instance_delete(struct skv_cluster *c, const char *tenant, const char *id,
				const struct skv_unused *unused, struct skv_error *err);

/* Changes with each instance that is made or deleted in that partition. Any thread. */
uint64_t skv_cluster_partition_turn(struct skv_cluster *c, uint32_t number);

/* Slab files of a storage, in order of their numbers; none for type `external`. SKV_E_NOT_FOUND
 * ("name"). */
int skv_cluster_files(struct skv_cluster *c, const char *storage, struct skv_arena *a,
		      struct skv_file_view **out, uint32_t *n, struct skv_error *err);
/* Stores the wish durably; the work is done in the background (skv_cluster_files shows progress),
 * and repeating the call is SKV_OK. draining: nothing new is placed in the file; its blocks are
 * evicted (leased ones become misses at once and their slots wait for the lease's end); writes in
 * progress wait for their session. With `move` no block is evicted: movers copy the blocks to other
 * slab files. Then the file is removed, and the storage may make a new file if the file system has
 * space. Not draining: cancels a drain; SKV_E_CONFLICT ("draining"): the file is already empty and
 * being removed. forget: gives up a bad file, or a file of an unhealthy storage, with all its
 * blocks; SKV_E_CONFLICT ("forget"): the file is sound. SKV_E_NOT_FOUND ("name", "file"),
 * SKV_E_INVALID ("move", of a file that is not to drain). */
int skv_cluster_file_put(struct skv_cluster *c, const char *storage,
			 const struct skv_file_wish *wish, struct skv_error *err);

/* Sets each tenant's limits for all partitions of this manager, for each spec; 0 = any number.
 * `others`: limits of tenants that are not among the n. The limits apply from the next call on;
 * existing objects over a limit stay. One thread at a time. SKV_E_NOMEM: some are set. */
int skv_cluster_tenants_set(struct skv_cluster *c, const struct skv_tenant_view *v, uint32_t n,
			    const struct skv_tenant_spec *others);
/* Checks whether the tenant may have another instance, or page space, in this manager's partitions.
 * SKV_E_QUOTA, field "max_instances" or "max_spaces". A registration checks again. Any thread. */
int skv_cluster_tenant_room(struct skv_cluster *c, const char *tenant, bool space,
			    struct skv_error *err);
#define SKV_BLOCKS_PER_S "blocks_per_s"
/* SKV_E_TOO_MANY with that field, if the tenant owes so much that a call on any block would be
 * refused; it counts as one. Any thread. */
int skv_cluster_tenant_check(struct skv_cluster *c, const char *tenant, struct skv_error *err);
/* Seconds until a tenant that is over this rate owes nothing; 0 = it does not. Any thread. */
unsigned skv_cluster_tenant_wait(struct skv_cluster *c, const char *tenant);
/* Returns the tenant's usage in the partitions that this manager owns; `held_bytes` is 0. Any
 * thread. */
void skv_cluster_tenant_use(struct skv_cluster *c, const char *tenant, struct skv_tenant_use *out);

/* ---- block operations ------------------------------------------------------------------------ */

/* SKV_E_NOT_FOUND with field "instances[i]" or "instance": unknown instance (all calls below).
 * SKV_E_TOO_MANY with field SKV_BLOCKS_PER_S: the tenant is over that rate (match, lookup,
 * lookup_length, start, pin, states, want). */
int skv_cluster_match(struct skv_cluster *c, const struct skv_match_req *req,
		      struct skv_match_res *res, struct skv_arena *a, struct skv_error *err);
/* May be SKV_PENDING: the first lookup after a quiet period waits until a new lease horizon is
 * durable. SKV_E_INVALID ("specs[i]", "window", "full_specs", "state_specs"). */
int skv_core_lookup(struct skv_core *c, const struct skv_lookup_req *req,
		    struct skv_lookup_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done);
/* Only res->matched of such a lookup; takes no lease, does not count as use, never SKV_PENDING. */
int skv_core_lookup_length(struct skv_core *c, const struct skv_lookup_req *req, uint32_t *matched,
			   struct skv_arena *a, struct skv_error *err);
/* SKV_E_INVALID (duplicate key: field "keys[i]"; "key_specs[i]"), SKV_E_CONFLICT (request id reused
 * with another body), SKV_E_NO_SPACE, SKV_E_QUOTA (of the group: field "max_blocks", "quotas", or
 * none for its capacity; of the instance's fixed share: "weight", "capacity"; "instance": at the
 * limit of blocks per instance; of the tenant, when none of its own may go: "max_bytes",
 * "max_blocks"), SKV_E_TOO_MANY (sessions; of the tenant: "max_sessions"),
 * SKV_E_JOURNAL_FULL, SKV_E_STORE_*, SKV_E_UNAVAILABLE (no healthy storage). */
int skv_core_start(struct skv_core *c, const struct skv_start_req *req, struct skv_start_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done);
/* SKV_E_NOT_FOUND (unknown session, or another instance's), SKV_E_SESSION_EXPIRED,
 * SKV_E_SESSION_ENDED (aborted, or finished with another outcome), SKV_E_INVALID (mask or checksum
 * count). Repeating a finish: SKV_OK, same numbers. */
int skv_core_finish(struct skv_core *c, const struct skv_finish_req *req,
		    struct skv_finish_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done);
/* Returns the locations of the blocks that the client of an open session reports as written. Takes
 * no lock for long, changes nothing. res->n is 0 for every request that skv_core_finish refuses. */
int skv_core_written(struct skv_core *c, const struct skv_finish_req *req,
		     struct skv_written_res *res, struct skv_arena *a, struct skv_error *err);
/* Looks there without waiting. False: skv_core_written_check must decide. */
bool skv_core_written_glance(struct skv_core *c, const struct skv_written_res *r);
/* Checks those locations. SKV_E_IO: some bytes have certainly not arrived; the text names them.
 * Blocks on the file system. */
int skv_core_written_check(struct skv_core *c, const struct skv_written_res *r,
			   struct skv_error *err);
int skv_core_abort(struct skv_core *c, const struct skv_abort_req *req, struct skv_finish_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done);
/* Blocks of the keys, also those being written: their sessions' finish reports them as deleted and
 * does not publish them. Starts that wait for room to write one of them fail. SKV_E_STORE_*. */
int skv_core_delete(struct skv_core *c, const struct skv_delete_req *req,
		    struct skv_delete_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done);
/* Trims the instance in portions, so that other calls can proceed between them; SKV_OK once
 * everything is durable. Blocks being written are given up: their sessions report them as deleted;
 * leased slots are held until the lease ends. After a failure some blocks are deleted: repeat the
 * call. SKV_E_INVALID ("from_ms"), SKV_E_STORE_*. */
int skv_core_trim(struct skv_core *c, const struct skv_trim_req *req, struct skv_trim_res *res,
		  struct skv_arena *a, struct skv_error *err, const struct skv_done *done);
/* SKV_E_INVALID ("keys", "ttl_ms"), SKV_E_QUOTA ("pinned_bytes": hard pins would exceed
 * pin_percent of the group's capacity or of the instance's share; "max_pins": of the tenant;
 * nothing was pinned),
 * SKV_E_JOURNAL_FULL, SKV_E_STORE_*. */
int skv_core_pin(struct skv_core *c, const struct skv_pin_req *req, struct skv_pin_res *res,
		 struct skv_arena *a, struct skv_error *err, const struct skv_done *done);
/* SKV_E_STORE_*: all pins are unchanged. */
int skv_core_unpin(struct skv_core *c, const struct skv_unpin_req *req, struct skv_unpin_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done);
/* Takes no lease, does not count as use. SKV_E_INVALID ("max", "cursor"). */
int skv_core_pins(struct skv_core *c, const struct skv_pins_req *req, struct skv_pins_res *res,
		  struct skv_arena *a, struct skv_error *err);
/* SKV_OK even if entries were ignored. SKV_E_TOO_LARGE ("keys", "give_up"), SKV_E_UNSUPPORTED (not
 * an instance of one spec on one `external` storage), SKV_E_STORE_* (nothing has changed). */
int skv_core_finish_partial(struct skv_core *c, const struct skv_partial_req *req,
			    struct skv_partial_res *res, struct skv_arena *a, struct skv_error *err,
			    const struct skv_done *done);
/* Clears the instance at a constant cost: blocks are hidden at once and their slots are freed in
 * the background, sooner if a start needs them; leased ones when the lease ends. Waits for the
 * record. SKV_E_STORE_*. */
int skv_core_clear(struct skv_core *c, const struct skv_clear_req *req, struct skv_clear_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done);
/* In the partition that has the instance. */
int skv_cluster_clear(struct skv_cluster *c, const struct skv_clear_req *req,
		      struct skv_clear_res *res, struct skv_arena *a, struct skv_error *err,
		      const struct skv_done *done);
/* Clears all selected instances, in all partitions. Blocks. SKV_E_INVALID (not exactly one of the
 * four), SKV_E_NOT_FOUND ("instances[i]": the others are purged), SKV_E_UNAVAILABLE and
 * SKV_E_STORE_*: *err names the instances that are not purged; all others are. Safe to repeat. */
int skv_cluster_purge(struct skv_cluster *c, const struct skv_purge_req *req,
		      struct skv_purge_res *res, struct skv_arena *a, struct skv_error *err);
/* Takes no lease, does not count as use. SKV_E_INVALID ("cursor", "max"). */
int skv_core_export(struct skv_core *c, const struct skv_export_req *req,
		    struct skv_export_res *res, struct skv_arena *a, struct skv_error *err);
/* Takes no lease, does not count as use. SKV_E_TOO_LARGE ("keys"). */
int skv_core_states(struct skv_core *c, const struct skv_states_req *req,
		    struct skv_states_res *res, struct skv_arena *a, struct skv_error *err);
/* In memory alone. SKV_E_INVALID ("from", "to"), SKV_E_UNSUPPORTED ("to": the group has no fast
 * tier), SKV_E_UNAVAILABLE ("to" takes no blocks now), SKV_E_TOO_LARGE ("keys"). */
int skv_core_want(struct skv_core *c, const struct skv_want_req *req, struct skv_want_res *res,
		  struct skv_arena *a, struct skv_error *err);
int skv_core_block(struct skv_core *c, const char *tenant, const char *instance, struct skv_key key,
		   struct skv_block_view *out, struct skv_arena *a, struct skv_error *err);
/* Slots that a reader found damaged. SKV_E_NOT_FOUND (instance), SKV_E_INVALID ("damaged[i].key",
 * "damaged[i].spec"), SKV_E_STORE_* (nothing is hidden: repeat it). */
int skv_core_report(struct skv_core *c, const struct skv_report_req *req,
		    struct skv_report_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done);
/* Takes a portion of the blocks that drain with `move`, of any partition of this manager. SKV_OK
 * with res->n 0: nothing to move now. With `check`, or if reports wait for a check, takes a portion
 * to verify instead (res->checks). SKV_E_INVALID ("max"), SKV_E_STORE_*. */
int skv_cluster_move_take(struct skv_cluster *c, const struct skv_move_take_req *req,
			  struct skv_move_take_res *res, struct skv_arena *a, struct skv_error *err,
			  const struct skv_done *done);
/* SKV_E_NOT_FOUND ("move": no such move, or it has ended: its blocks are at the reported
 * locations), SKV_E_INVALID ("move", "moved"), SKV_E_SESSION_EXPIRED ("move"), SKV_E_STORE_*
 * (nothing has changed: repeat it). */
int skv_core_move_finish(struct skv_core *c, const struct skv_move_finish_req *req,
			 struct skv_move_finish_res *res, struct skv_arena *a,
			 struct skv_error *err, const struct skv_done *done);
/* Of the partitions that are here; `page` is of each list. */
int skv_cluster_stats(struct skv_cluster *c, const struct skv_page *page, struct skv_arena *a,
		      struct skv_stats *out, struct skv_error *err);

/* How many partitions, and what one is doing; `number` is below that. Any thread. */
uint32_t skv_cluster_partitions(const struct skv_cluster *c);
struct skv_partition_view {
	enum skv_core_state state;
	uint64_t blocks;
	uint64_t sessions;
	uint64_t journal_bytes;
	uint32_t groups;
	uint64_t seq;    /* newest record of the journal that is applied here */
	uint64_t behind; /* of a standby: records that it knows of, and are not */
	uint64_t epoch;  /* of the owner: its fence, which grows with each ownership; else 0 */
	bool loaded;     /* the partition is owned or followed; else the other fields are void */
	bool takes;      /* another manager's partition that could be owned here at once */
	char owner[SKV_OWNER_NAME]; /* "" = no owner, or not known yet */
};
void skv_cluster_partition_get(struct skv_cluster *c, uint32_t number,
			       struct skv_partition_view *out);

/* Statistics of all partitions, also of other managers'; skv_cluster_stats covers only this
 * manager's partitions. A manager without partitions reports itself. */
int skv_cluster_stats_all(struct skv_cluster *c, const struct skv_page *page, struct skv_arena *a,
			  struct skv_stats *out, struct skv_error *err);

/* ---- counters: one table (Prometheus names are slabkv_<name>_total, or
 * without _total for gauges) */
#define SKV_CORE_COUNTERS(X)                                                                       \
	X(match_keys, "keys asked for by match")                                                   \
	X(lookup_keys, "keys asked for by lookup")                                                 \
	X(lookup_hits, "keys found by lookup")                                                     \
	X(start_keys, "keys asked for by start")                                                   \
	X(start_writes, "blocks handed out for writing")                                           \
	X(start_exists, "keys of start that were there already")                                   \
	X(start_not_admitted, "keys of start left out: refused by the policy, or too many")       \
	X(start_busy, "keys of start that another session was writing")                            \
	X(start_waits, "starts that waited for eviction")                                          \
	X(committed_blocks, "blocks committed by finish")                                          \
	X(failed_blocks, "blocks of sessions that were not committed")                             \
	X(deleted_blocks, "blocks deleted by request")                                             \
	X(evicted_blocks, "blocks evicted")                                                        \
	X(evict_examined, "entries examined by eviction")                                          \
	X(steered_windows, "times that a class took a window of slabs that others had left idle")  \
	X(drained_blocks, "blocks evicted because their slab file drains")                         \
	X(move_starts, "slots given to movers")                                                    \
	X(moved_blocks, "slots of blocks moved")                                                   \
	X(moved_bytes, "bytes of them")                                                            \
	X(move_failures, "slots that movers could not move, or whose block went meanwhile")        \
	X(moves_expired, "slots that movers gave no answer for")                                   \
	X(copy_wishes, "times that a block was wanted in a fast tier or another storage")          \
	X(copy_wishes_ended, "of these: taken by movers, or forgotten for newer ones")             \
	X(copied_blocks, "blocks that movers copied into a fast tier")                             \
	X(copied_bytes, "bytes of them")                                                           \
	X(damage_reports, "slots that readers reported as damaged")                                \
	X(damage_stale, "of these: slots that no block has any more")                              \
	X(damage_queued, "of these: left to a check by movers")                                    \
	X(damage_refused, "of these: refused, because too many wait for a check")                  \
	X(damage_refuted, "reports that a check found wrong")                                      \
	X(damaged_blocks, "slots of blocks hidden because their bytes are damaged")                \
	X(damage_healed, "of these: slots that movers restored from copies")                       \
	X(scrubbed_blocks, "slots of blocks that were read and verified")                          \
	X(scrubbed_bytes, "bytes of them")                                                         \
	X(scrub_unread, "slots that a scrub could not read")                                       \
	X(expired_sessions, "sessions that passed their deadline")                                 \
	X(idle_instances, "empty instances dropped because nobody used them")                      \
	X(commits, "journal appends (group commits)")                                              \
	X(commit_records, "records in them")                                                       \
	X(commit_failures, "journal appends that failed")                                          \
	X(commit_stalls, "journal appends that took a second or longer")                           \
	X(lease_failures, "calls for an ownership that the store refused or did not answer")       \
	X(leases_lost, "ownerships that ran out, or that another manager took")                    \
	X(store_refusals, "acquires, loads and directories refused until somebody repairs them")   \
	X(corrupt_loads, "loads that met damage in the journal, a checkpoint or the registry")     \
	X(storage_failed, "times that a storage took no blocks any more: its file system failed")  \
	X(storage_hung, "the same: it did not answer, or its owner files could not be checked")    \
	X(storage_unread, "times that its blocks became misses for such a reason")                 \
	X(adoptions, "loads that took over directories of another copy of the store")              \
	X(reloads, "reloads after an append of unknown outcome")                                   \
	X(checkpoint_bytes, "bytes written for checkpoints")                                       \
	X(checkpoints, "checkpoints written")                                                      \
	X(checkpoint_failures, "checkpoints that failed")                                          \
	X(takeovers, "times this manager became owner")                                            \
	X(warm_takeovers, "those of them that went on from what a standby had loaded")             \
	X(standby_loads, "times a standby has loaded the state, to follow it")                     \
	X(lease_denied, "lookups whose lease was cut by the cap")                                  \
	X(lease_hidden, "keys that are stored and were told as missing, for the cap on leases")    \
	X(pinned_blocks, "blocks pinned by request")                                               \
	X(quota_refused, "starts and pins that a quota refused")                                   \
	X(tenant_over_bytes, "starts that their tenant's max_bytes refused")                       \
	X(tenant_over_blocks, "starts that their tenant's max_blocks refused")                     \
	X(tenant_over_sessions, "starts that their tenant's max_sessions refused")                 \
	X(tenant_over_pins, "pins that their tenant's max_pins refused")                           \
	X(tenant_over_rate, "calls on blocks that their tenant's blocks_per_s refused")            \
	X(lock_waits, "reads of the state that waited for a change")

struct skv_core_counters {
#define SKV_CORE_COUNTER_FIELD(name, help) uint64_t name;
	SKV_CORE_COUNTERS(SKV_CORE_COUNTER_FIELD)
#undef SKV_CORE_COUNTER_FIELD
	uint64_t lock_wait_us; /* duration of lock_waits; in seconds as a metric */
};
/* Counts since skv_cluster_create. Any thread. */
void skv_cluster_counters_get(const struct skv_cluster *c, struct skv_core_counters *out);

/* Counters of the metadata store since it was opened (skv/store.h). Any thread. */
struct skv_core_store_counters {
	uint64_t calls;
	uint64_t errors;
	uint64_t appends;
	uint64_t append_bytes;
	uint64_t append_us; /* summed */
	uint64_t append_max_us;
	uint64_t wait_us; /* of the oldest call that is under way now; 0: none is */
};
void skv_cluster_store_counters_get(const struct skv_cluster *c,
				    struct skv_core_store_counters *out);

/* ---- documents of APIs ----------------------------------------------------------------------- */

/* Small texts by name (1..SKV_MAX_DOC_NAME printable ASCII characters), written through to the
 * store and readable on a standby too: for accounts, nodes and the like. Calls block on the store.
 * Put (ANY or NEW) and delete need ownership until they are durable: SKV_E_NOT_OWNER.
 * SKV_E_NOT_FOUND, SKV_E_CONFLICT (NEW: it exists), SKV_E_TOO_LARGE. */
int skv_cluster_doc_get(struct skv_cluster *c, const char *name, struct skv_arena *a,
			struct skv_doc *out, struct skv_error *err);
int skv_cluster_doc_put(struct skv_cluster *c, const char *name, enum skv_put how, const char *text,
			struct skv_error *err);
int skv_cluster_doc_delete(struct skv_cluster *c, const char *name, struct skv_error *err);
/* Put and delete, also for a standby: only for documents about the manager itself, under a name of
 * its own. */
int skv_cluster_doc_publish(struct skv_cluster *c, const char *name, const char *text,
			    struct skv_error *err);
int skv_cluster_doc_retire(struct skv_cluster *c, const char *name, struct skv_error *err);
/* Documents whose names begin with `prefix`, in order of their names. */
int skv_cluster_doc_list(struct skv_cluster *c, const char *prefix, struct skv_arena *a,
			 struct skv_doc **out, uint32_t *n, struct skv_error *err);

/* ---- offline check (slabkvd fsck): the store must have no running owner ---------------------- */

struct skv_fsck_report {
	uint64_t blocks;
	uint64_t sessions;
	uint64_t used_slots;
	uint64_t held_slots;
	uint64_t problems; /* 0 = clean */
};
/* Loads the partition without changing the store and verifies that no slot has two owners, every
 * block's slots are used exactly once, and links, counts and allocator invariants hold; `files`
 * also checks slab files, through fs-masters with the token in that file (NULL = none). Reports
 * each problem to say(). SKV_OK even with problems; an error if it could not check. */
int skv_cluster_fsck(struct skv_store *store, bool files, const char *fs_master_token_file,
		     void (*say)(void *ctx, const char *text), void *ctx,
		     struct skv_fsck_report *out, struct skv_error *err);

/* Test hook: the same check on the running core (takes the lock). SKV_OK or SKV_E_CORRUPT. */
int skv_cluster_check(struct skv_cluster *c, struct skv_error *err);

#endif
