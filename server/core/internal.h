/*
 * internal.h - what the files of the core share: the state of a partition and who may touch it.
 *
 * core->lock (reader-writer) protects core->part and everything reachable from it. Lookups hold it
 * for reading and write only the atomic marks of a block; everything else holds it for writing. It
 * is never held across I/O: durable effects go through the committer (commit.c), files through the
 * devices' threads (device.c), checkpoints are copied out under it in small pieces (checkpoint.c).
 *
 * Lock order: core->lock, then commit.lock. admin_turn is taken before either, never inside.
 *
 * A change of state has two halves. The *early* half happens under the lock when the request is
 * accepted and its journal record is queued (slots taken, blocks marked); the *late* half when the
 * record is durable (blocks visible, slots free). If the append fails, the early half is undone,
 * newest first. So nothing is visible, answered or reused before it is durable.
 */
#ifndef KVB_CORE_INTERNAL_H
#define KVB_CORE_INTERNAL_H

#include <assert.h>
#include <stdatomic.h>

#include <kvb/core.h>
#include <kvb/lock.h>
#include <kvb/log.h>
#include <kvb/mem.h>
#include <kvb/pool.h>
#include <kvb/storage.h>
#include <kvb/store.h>
#include <kvb/superblock.h>

#define NO_BLOCK 0u
#define MAX_STORAGES 64u
#define REMEMBER_MS 600000u /* request ids of ended sessions live this long past their deadline */
#define SLICE_BYTES ((size_t)1 << 20)

/* ---- blocks ----------------------------------------------------------------------------------- */

enum slot_state { SLOT_ABSENT, SLOT_WRITING, SLOT_COMMITTED, SLOT_REMOVING };

/* One spec of one block: 28 bytes, so that a block of one spec fills a cache line. */
struct slot {
	uint64_t checksum;
	uint64_t generation : 48; /* MAX_GENERATION */
	uint64_t space : 8;       /* index into part->space */
	uint64_t state : 2;       /* enum slot_state */
	uint64_t has_checksum : 1;
	uint32_t slab; /* handle in the space's pool */
	uint32_t index;
	uint32_t queued; /* place in the eviction queue of its class (heap.c); 0 = none, or another slot has it */
} __attribute__((packed, aligned(4)));

#define MAX_GENERATION (1ull << 47) /* at a million blocks a second, four years */

/* A block's entry stays while any of its slots is not ABSENT or another block names it as parent
 * (then it is a miss for everybody, but keeps the chain linked). */
struct block {
	struct kvb_key key;
	_Atomic uint64_t mark; /* last use and end of lease (mark.h); the only thing that readers write */
	uint32_t parent;       /* id; while free: next free entry */
	uint32_t children : 31; /* entries whose parent this is */
	uint32_t used : 1;      /* 0 = the entry is free */
	uint32_t live_children : 31; /* of the children: those with a slot that is WRITING or COMMITTED */
	uint32_t live : 1;           /* counted in the parent's live_children */
	struct slot slot[];          /* one per spec of the instance */
};

/* Entries come in aligned chunks, so that a pointer to one leads to its id and instance (table.c). An id is
 * chunk number << CHUNK_SHIFT | place. */
#define CHUNK_SHIFT 8u
#define CHUNK_PLACES (1u << CHUNK_SHIFT)
#define CHUNK_BYTES 16384u
#define CHUNK_HEAD 64u

struct chunk {
	struct instance *inst;
	struct chunk *next; /* while in no instance: next such one */
	uint64_t snapshot;  /* number of the newest snapshot that has this chunk already */
	uint32_t number;
	uint32_t stride; /* bytes of one entry */
	uint32_t places; /* entries that fit */
	uint32_t fresh;  /* places from here on were never used */
};

/* Key -> block id, open addressing in independently growing segments (index.c). */
#define INDEX_SEGMENTS 64u
struct segment {
	uint64_t *cells; /* tag << 32 | id, 0 = empty; in order of tags */
	uint32_t homes;  /* places that tags are spread over; a few cells more */
	uint32_t count;
};

/* Two min-heaps of (key, id) that share memory: an id is in one of them or in none (heap.c). */
struct heap_chunk;
struct heap {
	struct heap_chunk **v;
	size_t cap;
	uint32_t chunks;
	uint32_t n;
};
struct heap_pair {
	struct heap heap[2];
	struct heap_chunk *spare;
	size_t chunks; /* in both heaps and spare */
	/* Where the place of an id is kept: 0 = in no heap. Never NULL for an id that is in one, or is being
	 * pushed. */
	uint32_t *(*place)(void *ctx, uint32_t id);
	void *ctx;
};

/* Eviction order of one instance's blocks with slots of one class in one space (evict.c). */
struct evict_queue {
	struct part *part;
	struct instance *inst;
	uint32_t space;
	uint32_t class_id;
	struct heap_pair heaps;
};

struct instance {
	struct kvb_instance_spec spec; /* strings owned */
	uint32_t id;                   /* durable number, never reused */
	struct group *group;
	bool deleting;   /* a record that drops it is queued or durable: nobody uses it any more */
	bool registered; /* while loading: "instance/..." names it */
	bool dropped;    /* "dropped/..." names it: only for records that the journal may still have */
	uint64_t dropped_before; /* newest snapshot that began after that */
	uint64_t block_bytes; /* all specs */
	/* class of each spec in each space, found when first used (UINT32_MAX = not yet) */
	uint32_t *class_of; /* [MAX_STORAGES * n_specs] */

	struct segment index[INDEX_SEGMENTS];
	uint32_t free_block;  /* list of entries that were used and are free */
	struct chunk *newest; /* its fresh places come next */
	uint64_t entries;    /* in use, linked ones without slots included */
	uint64_t entries_made;
	uint64_t blocks; /* with all specs committed or some committed: at least one slot COMMITTED */
	uint64_t used_bytes;
	uint64_t open_bytes;
	uint64_t open_sessions;
	struct evict_queue **queue;
	size_t n_queue, cap_queue;
	/* Upper bound of leased bytes: windows of lease_max_ms, see lookup.c */
	_Atomic uint64_t lease_window[4];
	_Atomic uint64_t lease_window_no;
};

struct group {
	struct kvb_group_spec spec; /* strings owned */
	uint64_t version;
	uint64_t used_bytes;
	uint64_t removing_bytes;
	uint64_t blocks;
	uint32_t n_instances;
	struct start_op *wait_head, *wait_tail; /* starts waiting for space, first come first served */
	uint64_t turn; /* newest round of start_serve_waiters that has looked at the line */
};

/* From this generation on blocks were started at this time or later. */
struct era {
	uint64_t generation;
	uint64_t wall_ms;
};

/* ---- storages --------------------------------------------------------------------------------- */

/* One storage as a device: outlives reloads of the partition. Has a thread of its own, because its
 * file system may hang. */
struct device {
	struct kvb_core *core;
	char *name;
	char *type;
	char *root;
	uint8_t uuid[16];
	uint32_t id;
	uint64_t unit;
	uint64_t file_size;
	const struct kvb_storage_ops *ops;

	struct kvb_mutex lock; /* below core->lock: protects the rest */
	struct kvb_cond wake;
	pthread_t thread;
	bool running;
	bool stop;
	bool grow_asked;
	struct kvb_storage *storage; /* NULL until it could be opened; used by the thread only */
	bool files_checked;          /* since the last open */
	uint32_t last_check;         /* file that was looked at last while running; by the thread only */
	_Atomic bool healthy;
	_Atomic bool probed; /* since the part was loaded */
	_Atomic uint64_t busy_since; /* boot time ms of a running call into the file system, 0 = none */
	_Atomic uint64_t fs_free;
	char problem[KVB_MESSAGE_MAX];
};

/* What the core keeps for each size class of a space. */
struct space_class {
	uint64_t stride;
	uint64_t removing; /* slots that queued removals will free */
	uint64_t wanted_ms; /* when somebody last asked for slots: keep some free ahead of need */
};

/* A storage as the partition sees it. */
struct space {
	struct device *dev;
	uint64_t version; /* of the registry document */
	uint64_t capacity;
	bool enabled;
	struct kvb_pool *pool;
	uint32_t files; /* numbers 0..files-1 exist */
	uint64_t file_bytes;
	uint32_t claimed; /* while loading: a registered file that may not have been made, */
	uint64_t claimed_length; /* 0 = none */
	bool growing;
	uint64_t grow_again_at; /* after a failure: not before this time */
	bool grow_full;         /* it failed because the file system is full */
	uint64_t grow_failing_since; /* 0 = the newest growth was well */
	struct space_class *class; /* by class id of the pool */
	size_t n_class, cap_class;
};

/* ---- sessions --------------------------------------------------------------------------------- */

struct session_write {
	uint32_t block;
	uint32_t specs; /* bit per spec that this session writes */
};

struct session {
	struct kvb_key id;
	struct kvb_key tenant;  /* hash of its name: only it may finish or abort */
	struct kvb_key request; /* hash of tenant, instance, request id; {0,0} = none */
	struct kvb_key body;    /* hash of what was asked */
	struct session *id_next;      /* chain in part->session_by_id */
	struct session *request_next; /* chain in part->session_by_request */
	struct session *queue_next;   /* ended ones, oldest first */
	uint32_t number;              /* index in part->session */
	uint32_t due;                 /* place in part->deadlines, 0 = not in it */
	struct instance *inst; /* NULL once ended */
	enum kvb_session_state state;
	struct txn *pending; /* start, finish, abort or expiry on its way to the journal */
	bool starting;
	uint64_t deadline_at; /* boot time ms */
	uint32_t deadline_ms; /* full duration */
	uint64_t created_ms;  /* wall */
	uint64_t generation;  /* of the first written block; the others follow */
	uint64_t forget_at;
	uint32_t specs; /* asked for */
	uint32_t n_keys;
	uint32_t n_write;
	uint64_t bytes;
	uint8_t *outcome;            /* [n_keys] */
	struct kvb_key *keys;        /* [n_keys], until ended */
	bool has_parent;
	struct kvb_key parent;
	struct session_write *write; /* [n_write] */
	uint32_t committed;
	uint32_t failed;
};

#define SESSION_BUCKETS 65536u

/* ---- the partition ---------------------------------------------------------------------------- */

struct removal {
	uint32_t block;
	uint32_t specs;      /* those that were committed when it was marked */
	uint64_t hold_until; /* 0 = free at once */
};

/* Blocks picked for removal. mark() hides the block at once (its committed slots become REMOVING);
 * queue() puts the record of all of them into the journal, or un-marks them (KVB_E_NOMEM). */
struct picks {
	struct removal *v;
	size_t n;
	size_t cap;
};
struct snapshot {
	bool active;
	bool failed;      /* out of memory or an append failed: start again later */
	uint64_t number;  /* grows; chunks remember the newest they are in */
	uint64_t seq;     /* state as of this batch */
	uint64_t barrier; /* last transaction queued when it began: must be durable before it counts */
	uint64_t journal_bytes; /* before it: what the checkpoint will truncate */
	uint32_t next_chunk, end_chunk;
	struct kvb_buf out;      /* blocks copied out, cut into slices by the checkpointer */
	struct kvb_buf tail;     /* sessions, holds, counters: the last slice */
};

struct part {
	struct kvb_core *core;
	uint64_t fence;
	uint64_t seq; /* newest durable batch */
	uint64_t journal_bytes;

	struct space space[MAX_STORAGES];
	uint32_t n_space;
	struct group **group;
	size_t n_group, cap_group;
	struct instance **inst;
	size_t n_inst, cap_inst;
	struct group limbo; /* of dropped instances */

	struct chunk **chunk; /* [1..n_chunk-1]; 0 is never used, so that id 0 means none */
	size_t n_chunk, cap_chunk;
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
	struct heap_pair deadlines; /* open sessions, by deadline; only the first heap */

	uint64_t next_generation;
	struct era *era; /* when generations were given out, oldest first (era.c) */
	size_t n_era, cap_era;
	uint64_t use_base; /* added to the clock for uses, so that they go on where they were before a boot */
	_Atomic uint64_t use_sequence;
	uint64_t reign_generation; /* blocks below it were there when the part was loaded: */
	uint64_t reign_lease;      /* each counts as leased until here */
	uint64_t mix_seed;

	uint64_t horizon_durable; /* no lease ends later than this (boot time ms) */
	struct txn *horizon_txn; /* on its way */
	_Atomic bool horizon_used; /* a lease was granted since it was last extended */

	uint64_t n_waiting;   /* starts in the lines of all groups */
	uint64_t wait_turn;   /* rounds of start_serve_waiters */
	uint64_t wait_spaces; /* bit per space that the first of some line waits for */
	uint64_t store_full_until;
	bool unclean; /* the machine rebooted without a clean shutdown */
	uint64_t freeze_until; /* NORMAL, after an unclean boot: what was free then waits until here */
	bool loading; /* nothing is queued for eviction yet */
	struct snapshot snap;
	struct picks lost; /* marked while loading: bytes that a power loss may have taken; gone before READY */
};

/* ---- journal ---------------------------------------------------------------------------------- */

enum txn_kind { TXN_START, TXN_FINISH, TXN_END, TXN_REMOVE, TXN_HORIZON, TXN_DROP };

/* Someone who waits for a transaction. Lives in the request's arena. */
struct waiter {
	struct waiter *next;
	struct kvb_done done;
	/* Called under the write lock after the transaction was applied, to fill the answer; may be
	 * NULL. `status` is the transaction's. Returns the status to report. */
	int (*fill)(struct waiter *w, struct part *p, const struct txn *t, int status);
	const void *req;
	void *res;
	struct kvb_arena *arena;
	struct kvb_error *err;
	int status;
};

struct txn {
	struct txn *next;
	uint64_t number;
	enum txn_kind kind;
	bool urgent;
	struct kvb_buf rec;
	struct waiter *waiters;

	struct session *session; /* START, FINISH, END */
	/* FINISH */
	uint8_t *success; /* bytes, one per written block */
	uint64_t *sums;   /* [n_write * n_specs], or NULL */
	uint64_t hold_until; /* FINISH, END: of the slots that fail; DROP: at least so long, of all */
	enum kvb_session_state end_state;
	/* REMOVE */
	struct removal *removal;
	size_t n_removal;
	/* HORIZON */
	uint64_t horizon;
	/* DROP */
	struct instance *inst;
};

struct commit {
	struct kvb_mutex lock;
	struct kvb_cond wake; /* the committer: work, a snapshot wanted, or stop */
	struct kvb_cond idle; /* others: a round is over */
	struct txn *head, *tail;
	uint64_t queued;   /* number of the newest queued */
	uint64_t appended; /* number of the newest durable, or failed */
	bool busy;         /* a round is running: the part must stay */
	bool stop;
	bool snapshot_wanted;
	/* NORMAL only, used by the committer alone: appended, but their slots may not be reused before a
	 * sync covers them. */
	struct txn *unsynced_head, *unsynced_tail;
	uint64_t unsynced_since;
	pthread_t thread;
};

struct kvb_core {
	struct kvb_core_options o;
	const struct kvb_clock *clock;
	struct kvb_store *store;
	struct kvb_secret secret;
	char owner[192];
	char boot_id[37];
	uint64_t started_ms;

	struct kvb_rwlock lock;
	struct part *part; /* NULL unless READY (or recovering into it) */
	_Atomic int state; /* enum kvb_core_state */
	_Atomic uint64_t owned_until; /* end of the ownership lease, boot time ms */
	_Atomic uint64_t fence;
	_Atomic bool reload_asked; /* an append had an unknown outcome */
	_Atomic bool fenced;       /* the store told that somebody else owns the partition */

	struct commit commit;
	struct kvb_mutex turn_lock; /* keeper, ticker, checkpointer: stop and wake */
	struct kvb_cond turn_wake;
	bool stop;
	bool checkpoint_asked;
	bool checkpointing; /* somebody has the turn to write one */
	bool admin_busy;
	bool standby_told; /* keeper only */
	_Atomic uint32_t failed_loads; /* in a row */
	/* Keeper, ticker, checkpointer. Started and stopped by whoever creates and ends the core; manual
	 * mode has none, and no committer. */
	pthread_t thread[3];
	uint32_t n_threads;
	bool committing;
	_Atomic bool closing; /* shutting down: nothing new */

	struct device *device[MAX_STORAGES];
	uint32_t n_device; /* both guarded by `lock` */
	struct waiter *completions; /* under `lock`: to be called once it is released */

	struct {
#define CORE_COUNTER_ATOMIC(name, help) _Atomic uint64_t name;
		KVB_CORE_COUNTERS(CORE_COUNTER_ATOMIC)
#undef CORE_COUNTER_ATOMIC
	} count;
};

#define COUNT(core, name, by) \
	atomic_fetch_add_explicit(&(core)->count.name, (uint64_t)(by), memory_order_relaxed)

/* ---- core.c: the lock ----------------------------------------------------------------------------- */

void core_lock(struct kvb_core *c);
/* Releases the write lock, then calls what became complete under it. */
void core_unlock(struct kvb_core *c);
/* Under the write lock: the waiter's done is called with w->status after the unlock. */
void core_complete(struct kvb_core *c, struct waiter *w, int status);

/* Sleeps until ms have passed or somebody wakes all (manual mode: steps the storages). False = stop. */
bool core_pause(struct kvb_core *c, uint32_t ms);

/* ---- table.c: entries -------------------------------------------------------------------------- */

static inline struct chunk *block_chunk(const struct block *b)
{
	return (struct chunk *)((uintptr_t)b & ~(uintptr_t)(CHUNK_BYTES - 1));
}

static inline struct block *chunk_place(const struct chunk *c, uint32_t place)
{
	return (struct block *)((char *)c + CHUNK_HEAD + (size_t)c->stride * place);
}

static inline struct instance *block_instance(const struct block *b) { return block_chunk(b)->inst; }

static inline uint32_t block_id(const struct block *b)
{
	const struct chunk *c = block_chunk(b);

	return c->number << CHUNK_SHIFT | (uint32_t)((uintptr_t)b - (uintptr_t)c - CHUNK_HEAD) / c->stride;
}

struct block *block_get(const struct part *p, uint32_t id);
/* A fresh, indexed entry without slots, or NULL (out of memory). Room in the eviction queues is
 * reserved, so that queueing it later cannot fail. */
struct block *block_make(struct part *p, struct instance *inst, struct kvb_key key);
/* Frees the entry, and upward its parents, where nothing needs them any more. */
void block_maybe_free(struct part *p, struct block *b);
void block_set_parent(struct part *p, struct block *b, struct block *parent);
/* After any change of slot states: keeps the parent's count of live children. */
void block_update_live(struct part *p, struct block *b);
/* Before any change of an entry that a checkpoint stores: copies its chunk out if one is running. */
void block_touch(struct part *p, const struct block *b);
bool block_has_committed(const struct instance *inst, const struct block *b);
bool block_has_writing(const struct instance *inst, const struct block *b);
/* Calls fn for each entry in use. */
void block_each(const struct part *p, const struct instance *only,
		void (*fn)(void *ctx, struct part *p, struct block *b), void *ctx);
void table_drop(struct part *p, struct instance *inst); /* all chunks of the instance are spare */
void table_destroy(struct part *p);
/* End of its lease (boot time ms), 0 or in the past if none runs. */
uint64_t block_lease(const struct part *p, const struct instance *inst, const struct block *b);
/* The least generation of its slots, 0 if it has none. */
uint64_t block_generation(const struct instance *inst, const struct block *b);

/* ---- era.c: when a block was made ------------------------------------------------------------------- */

/* Generations from `generation` on are given out from `wall_ms` on. Forgets detail when short of memory. */
void era_note(struct part *p, uint64_t generation, uint64_t wall_ms);
/* About when this generation was given out; 0 if nobody knows. */
uint64_t era_of(const struct part *p, uint64_t generation);

/* ---- index.c ------------------------------------------------------------------------------------ */

struct block *index_find(const struct part *p, const struct instance *inst, struct kvb_key key);
/* For a batch: fetches the key's cell into the cache. */
void index_prefetch(const struct part *p, const struct instance *inst, struct kvb_key key);
int index_insert(struct part *p, struct instance *inst, const struct block *b);
void index_remove(struct part *p, struct instance *inst, const struct block *b);
void index_destroy(struct instance *inst);

/* ---- heap.c ------------------------------------------------------------------------------------- */

void heap_pair_init(struct heap_pair *hp, uint32_t *(*place)(void *ctx, uint32_t id), void *ctx);
void heap_pair_destroy(struct heap_pair *hp);
/* Room for n ids in both heaps together. KVB_E_NOMEM changes nothing. */
int heap_pair_reserve(struct heap_pair *hp, size_t n);
/* Into heap `which` (0 or 1); the id is in none. Room must be reserved. */
void heap_push(struct heap_pair *hp, unsigned which, uint64_t key, uint32_t id);
/* Out of whichever heap it is in. */
void heap_remove(struct heap_pair *hp, uint32_t id);
/* The least key; false when empty. */
bool heap_top(const struct heap_pair *hp, unsigned which, uint64_t *key, uint32_t *id);

/* ---- space.c: slots ------------------------------------------------------------------------------ */

int space_class(struct part *p, struct instance *inst, uint32_t spec, uint32_t space, uint32_t *class_id);
/* Marks a slot ABSENT and frees it, or holds it until hold_until. Counts bytes. */
void slot_release(struct part *p, struct block *b, uint32_t spec, uint64_t hold_until);
/* Bytes that this space can hand out now without eviction, for one spec. */
bool space_usable(const struct space *s);
bool space_has_room(const struct space *s); /* the capacity allows another file */
bool space_can_grow(const struct part *p, const struct space *s);
void space_ask_growth(struct part *p, struct space *s);
/* Fills a location from a slot. */
void slot_location(const struct part *p, const struct instance *inst, const struct block *b,
		   uint32_t spec, struct kvb_location *out);
/* Table of files of one answer: adds what locations refer to. */
struct file_table {
	struct kvb_arena *arena;
	struct kvb_files *files;
	uint32_t *seen; /* space << 24 | file, per entry */
	uint32_t cap;
};
int file_table_add(struct file_table *t, const struct part *p, const struct slot *s, uint32_t *index);
int location_fill(struct file_table *t, const struct part *p, const struct instance *inst,
		  const struct block *b, uint32_t spec, struct kvb_location *out);

/* ---- evict.c ------------------------------------------------------------------------------------- */

/* Queues the block where eviction may find it, or nowhere; call whenever it may have become evictable. */
void evict_consider(struct part *p, struct block *b);
/* Out of all queues: it is written, removed, or gone. */
void evict_forget(struct block *b);
/* Room for all entries of the instance in the queue of this class; before slots of the class are taken. */
int evict_reserve(struct part *p, struct instance *inst, uint32_t space, uint32_t class_id);
/* The same in all its queues, before there are more entries. */
int evict_reserve_all(struct instance *inst, uint64_t entries);
/* Queues the removal of blocks so that `slots` of (space, class) become free; returns how many slots
 * are on their way because of this call (it bounds the blocks of one call: fewer is no end). */
uint64_t evict_slots(struct part *p, uint32_t space, uint32_t class_id, uint64_t slots);
/* Same for a group, by bytes. */
uint64_t evict_group_bytes(struct part *p, struct group *g, uint64_t bytes);
/* Empties slabs of other classes for `class_id`. True when something is on its way. */
bool evict_steal(struct part *p, uint32_t space, uint32_t class_id);
void evict_ahead(struct part *p);
/* When the next lease on blocks in this space ends, by what their queues know; UINT64_MAX = none runs. */
uint64_t evict_next_lease(const struct part *p, uint32_t space);
void evict_forget_space(struct instance *inst, uint32_t space); /* no block of it has slots there any more */
void evict_destroy_queues(struct instance *inst);
bool block_evictable(const struct part *p, const struct instance *inst, const struct block *b, uint64_t now);

/* ---- remove.c ------------------------------------------------------------------------------------- */

int remove_mark(struct part *p, struct picks *k, struct block *b);
void blocks_count(struct part *p, struct instance *inst, int by); /* blocks with a committed slot */
int remove_queue(struct part *p, struct picks *k, struct txn **out);
void remove_cancel(struct part *p, struct picks *k);
void remove_apply(struct part *p, struct txn *t);
void remove_undo(struct part *p, struct txn *t);
void drop_apply(struct part *p, struct txn *t);

/* ---- session.c ------------------------------------------------------------------------------------ */

struct session *session_find(const struct part *p, struct kvb_key id);
struct session *session_by_request(const struct part *p, struct kvb_key request);
uint32_t *session_due_place(void *ctx, uint32_t number); /* of part->deadlines */
int session_add(struct part *p, struct session *s); /* takes ownership on success */
void session_destroy(struct part *p, struct session *s); /* forgets it altogether */
/* Ends it: releases the lists, keeps id and outcome until forget_at (longer while a transaction still
 * names it: one that was queued before its instance was dropped). */
void session_end(struct part *p, struct session *s, enum kvb_session_state state);
void session_forget_due(struct part *p, uint64_t now);
void session_expire_due(struct part *p, uint64_t now);
/* Its end could not be journaled: look at the deadline again soon. */
void session_retry_expiry(struct part *p, struct session *s);
struct txn *session_queue_end(struct part *p, struct session *s, enum kvb_session_state state, bool quiesced);
/* The i-th written block's slots of this session are given up; free when hold_until has passed. */
void session_release(struct part *p, struct session *s, uint32_t i, uint64_t hold_until);
struct session *session_make(uint32_t n_keys, uint32_t n_write);
void session_free(struct session *s);
void session_id_text(struct kvb_key id, char out[KVB_SESSION_ID_HEX + 1]);
struct kvb_key tenant_hash(const char *tenant);
bool session_id_parse(const char *hex, struct kvb_key *out);
void end_apply(struct part *p, struct txn *t);

/* ---- start.c, finish.c, lookup.c ------------------------------------------------------------------ */

void start_undo(struct part *p, struct txn *t);
void start_apply(struct part *p, struct txn *t);
/* Serves the lines of waiting starts as far as space goes. */
void start_serve_waiters(struct part *p);
void start_fail_line(struct part *p, struct group *g, int status, const char *text);
void start_fail_waiters(struct part *p, int status, const char *text);
/* One slot handed to a session's block. */
struct grant {
	uint8_t space;
	uint32_t slab;
	uint32_t index;
};
/* v[spec][i] belongs to the i-th written block that takes this spec. */
struct grants {
	struct grant *v[KVB_MAX_SPECS];
	uint32_t n[KVB_MAX_SPECS];
};
void grants_free(struct part *p, struct grants *g); /* the slots, not the arrays */
/* Makes the session's entries and gives them their slots. On KVB_E_NOMEM all slots granted are free
 * again and nothing is linked. Used by start and by replay. */
int start_link(struct part *p, struct session *s, struct grants *g);
/* KVB_E_CONFLICT: keys[*at] is the same as keys[*first]. KVB_E_NOMEM. */
int keys_duplicate(const struct kvb_key *keys, uint32_t n, uint32_t *at, uint32_t *first);
/* The reverse, for a start that never became durable: slots are free at once. */
void start_unlink(struct part *p, struct session *s);
void finish_apply(struct part *p, struct txn *t);
void commit_slot(struct part *p, struct block *b, uint32_t spec, const uint64_t *sum);
/* The use of a block now: grows with each call. */
uint64_t use_now(struct part *p, uint64_t now);
/* Looks an instance up; fails with KVB_E_NOT_FOUND naming `field`. */
struct instance *instance_find(const struct part *p, const char *tenant, const char *id);
int instance_need(const struct part *p, const char *tenant, const char *id, const char *field,
		  struct instance **out, struct kvb_error *err);
int specs_resolve(const struct instance *inst, const char *const *names, uint32_t n, uint32_t *mask,
		  struct kvb_error *err);
/* Names of the specs in `mask`, in the instance's order, copied into the arena. */
int specs_names(const struct instance *inst, uint32_t mask, struct kvb_arena *a, const char *const **names,
		uint32_t *n);
struct group *group_find(const struct part *p, const char *name);
int space_find(const struct part *p, const char *name); /* index or -1 */

/* ---- room.c ------------------------------------------------------------------------------------------- */

enum { TRY_WAIT = 2, TRY_WAIT_QUOTA }; /* not now: slots are on their way, or room in the group's quota */

/* What one try finds out. */
struct plan {
	struct instance *inst;
	uint32_t specs;                      /* asked for */
	uint8_t *outcome;                    /* [n_keys] */
	uint32_t *missing;                   /* [n_keys] specs to write */
	uint32_t n_write;
	uint32_t need[KVB_MAX_SPECS];        /* slots per spec */
	uint64_t bytes;
	uint64_t since; /* when the start came (boot time ms) */
	struct grants grants;
};

/* What open sessions may hold: KVB_OK, KVB_E_TOO_LARGE, KVB_E_TOO_MANY. */
int room_limits(const struct part *p, const struct plan *plan, struct kvb_error *err);
/* The group's quota: KVB_OK, TRY_WAIT_QUOTA (eviction within the group is on its way), KVB_E_QUOTA. */
int room_quota(struct part *p, const struct plan *plan, struct kvb_error *err);
/* Takes the plan's slots, all in one storage. KVB_OK, TRY_WAIT, KVB_E_NO_SPACE, KVB_E_UNAVAILABLE,
 * KVB_E_NOMEM. */
int room_take(struct part *p, struct plan *plan, struct kvb_arena *a, struct kvb_error *err);
/* Bit per space that the group takes slots from. */
uint64_t group_spaces(const struct part *p, const struct group *g);

/* ---- record.c: durable records ---------------------------------------------------------------------- */

void record_start(struct kvb_buf *out, const struct part *p, const struct session *s);
void record_finish(struct kvb_buf *out, const struct session *s, const struct txn *t, uint64_t now);
void record_end(struct kvb_buf *out, const struct session *s, const struct txn *t, uint64_t now);
/* As many of the n removals as belong to the first one's instance; returns how many. */
size_t record_remove(struct kvb_buf *out, const struct part *p, const struct removal *r, size_t n,
		     uint64_t now);
/* `clean`: an orderly shutdown follows. */
void record_horizon(struct kvb_buf *out, const struct part *p, uint64_t until, bool clean);
void record_drop(struct kvb_buf *out, const struct instance *inst);
/* Pieces of a checkpoint. */
void record_chunk(struct kvb_buf *out, const struct part *p, const struct chunk *c);
void record_ended(struct kvb_buf *out, const struct session *s, uint64_t now);
void record_hold(struct kvb_buf *out, const struct space *space, struct kvb_run run, uint64_t left_ms);
void record_counters(struct kvb_buf *out, const struct part *p);
void record_eras(struct kvb_buf *out, const struct part *p);
/* Length in bytes of the record at the begin of n bytes, 0 if there is none. */
size_t record_length(const void *bytes, size_t n);
/* Start of a class's slots: whole pages begin at page boundaries (O_DIRECT, 3FS chunks). */
uint64_t slot_align(uint64_t size);

/* What replay gathers beside the state itself (replay.c). */
struct replay {
	struct part *p;
	uint64_t now;
	bool orphans;     /* records of an instance that is no longer registered */
	bool clean;       /* the newest horizon record was written by a clean shutdown */
	char boot_id[37]; /* of that record, "" = none seen */
	uint64_t horizon_until;
	uint32_t horizon_span;
	uint64_t freeze_ms; /* what is left of a freeze, by that record */
	uint64_t newest_use;
};
/* Applies a sequence of records (a journal batch or a checkpoint slice). */
int replay_records(struct replay *r, const void *bytes, size_t n, struct kvb_error *err);

/* ---- commit.c ---------------------------------------------------------------------------------------- */

struct txn *txn_make(enum txn_kind kind);
void txn_destroy(struct txn *t); /* NULL is allowed */
/* Under the write lock: queues a transaction whose record is complete. */
void commit_queue(struct part *p, struct txn *t);
void txn_wait(struct txn *t, struct waiter *w);
void commit_init(struct kvb_core *c);
void commit_destroy(struct kvb_core *c);
int commit_start_thread(struct kvb_core *c);
void commit_stop_thread(struct kvb_core *c);
/* One round: appends what is queued, applies it, begins a wanted snapshot. True if it did anything. */
bool commit_round(struct kvb_core *c);
/* Under the write lock: fails everything queued; in-flight work is failed by its round. */
void commit_drain(struct kvb_core *c, int status);
/* Under the write lock, when no round runs: what waited for a sync is forgotten with the part. */
void commit_forget_unsynced(struct kvb_core *c, int status);
/* Waits until no round runs. No lock held. */
void commit_wait_idle(struct kvb_core *c);
/* Has the committer begin a snapshot (threads), or begins it here (manual). */
void commit_ask_snapshot(struct kvb_core *c);
uint64_t commit_appended(struct kvb_core *c);

/* ---- checkpoint.c, recover.c, owner.c, device.c, admin.c, tick.c ------------------------------------- */

void snapshot_touch_chunk(struct part *p, uint32_t chunk);
void snapshot_abort(struct part *p);
/* Under the write lock, by the committer between two batches. */
void snapshot_begin(struct part *p, uint64_t barrier);
/* Writes one checkpoint of the current part. `clean`: the last one of an orderly shutdown. */
int checkpoint_run(struct kvb_core *c, bool clean, struct kvb_error *err);

struct part *part_make(struct kvb_core *c);
void part_destroy(struct part *p);
/* Loads registry, checkpoint and journal into a new part. No lock: nobody else sees it yet. */
int part_load(struct kvb_core *c, uint64_t fence, struct part **out, struct kvb_error *err);
/* Verifies everything; each problem goes to say(). */
uint64_t part_check(struct part *p, void (*say)(void *ctx, const char *text), void *ctx);

/* Ownership: acquire, renew, give up. Called again and again by the keeper; returns ms to wait. */
uint32_t owner_step(struct kvb_core *c);
/* The part is owned but not loaded: load it and go READY. Called by the ticker. False = try later. */
bool owner_load(struct kvb_core *c);
/* Forgets the part: everything waiting fails with `status`. */
void owner_drop(struct kvb_core *c, int status, enum kvb_core_state next);
bool owner_valid(const struct kvb_core *c);

int device_make(struct kvb_core *c, const struct kvb_storage_spec *s, uint32_t id, const uint8_t uuid[16],
		struct device **out);
int device_start(struct device *d);
void device_destroy(struct device *d); /* stops its thread first */
/* One step of its thread: open, probe, check files, grow. */
void device_step(struct device *d);
/* Opens the root for the first time, so that a bad one is refused at once. */
int device_open(struct device *d, bool may_create, struct kvb_error *err);
bool device_healthy(const struct device *d);
/* Looks whether files 0..files-1 are there and ours (fsck). */
int device_check_files(struct device *d, uint32_t files, struct kvb_error *err);
struct device *device_find(const struct kvb_core *c, uint32_t id);
int device_add(struct kvb_core *c, struct device *d); /* under the write lock */
/* A call into its file system has not come back for long. */
bool device_hangs(const struct device *d);
/* Under the write lock: the core and its part forget the device and its (empty) space. */
void device_remove(struct kvb_core *c, struct device *d);
/* Ends its thread, removes its files, destroys it. */
void device_retire(struct device *d, uint32_t files);

/* Registry documents (registry.c), used by recovery and administration. */
struct storage_doc {
	struct kvb_storage_spec spec;
	uint32_t id;
	uint8_t uuid[16];
};
int registry_load(struct part *p, struct kvb_error *err);
void registry_put_storage(struct kvb_buf *out, const struct storage_doc *d);
void registry_put_group(struct kvb_buf *out, const struct kvb_group_spec *g);
void registry_put_instance(struct kvb_buf *out, const struct kvb_instance_spec *i, uint32_t id);
int registry_next_id(struct kvb_core *c, uint32_t *id, struct kvb_error *err);
int registry_secret(struct kvb_core *c, struct kvb_error *err);
void registry_file_key(char out[64], uint32_t storage_id, uint32_t file);
void registry_instance_key(char out[300], const char *tenant, const char *id);
/* The second half of an instance's deletion, after its record; may be repeated. `doc`: its document. */
int registry_move_to_dropped(struct kvb_core *c, const char *instance_key, uint32_t id, const struct kvb_buf *doc,
			     struct kvb_error *err);
/* The same for all instances of a part that was just loaded and is nobody else's yet. */
int registry_finish_drops(struct part *p, struct kvb_error *err);
int registry_forget_dropped(struct kvb_core *c, uint32_t id, struct kvb_error *err);
/* Adds to the part; strings are copied. */
int part_add_space(struct part *p, struct device *d, const struct kvb_storage_spec *s, uint64_t version);
int part_add_group(struct part *p, const struct kvb_group_spec *g, uint64_t version);
int part_add_instance(struct part *p, const struct kvb_instance_spec *i, uint32_t id);
/* A file that is there already is no error: nothing changes. */
int part_add_file(struct space *s, uint32_t file, uint64_t length);
int part_add_claimed(struct space *s);
void part_remove_group(struct part *p, const char *name);
struct instance *instance_by_id(const struct part *p, uint32_t id); /* dropped ones too */
/* Its registration has moved to "dropped/...": only replay of older records may still need it. */
void part_set_dropped(struct part *p, uint32_t id);
void part_remove_instance(struct part *p, struct instance *inst);
void group_spec_free(struct kvb_group_spec *g);
int group_spec_copy(struct kvb_group_spec *out, const struct kvb_group_spec *g);

/* Whatever time has made due. Returns ms to wait until the next one. */
uint32_t tick_once(struct kvb_core *c);
/* Queues a longer lease horizon, or finds the one on its way. */
int horizon_extend(struct part *p, uint64_t now, struct txn **out);
uint32_t horizon_span(const struct kvb_core *c);

/* Has the checkpointer write a checkpoint soon. */
void checkpoint_ask(struct kvb_core *c);

/* Common gate of all block calls: state and ownership. */
int core_gate(const struct kvb_core *c, struct kvb_error *err);

#endif
