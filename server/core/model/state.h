/*
 * state.h - the state of a partition and of the core: what the files of the core share. Functions are in internal.h,
 * with the rules of locking.
 */
#ifndef SKV_CORE_STATE_H
#define SKV_CORE_STATE_H

#include <assert.h>
#include <stdatomic.h>

#include <skv/core.h>
#include <skv/heap.h>
#include <skv/lock.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/policy.h>
#include <skv/pool.h>
#include <skv/storage.h>
#include <skv/store.h>
#include <skv/superblock.h>

#include "rows.h"

#define NO_BLOCK 0u
#define REMEMBER_MS 600000u /* request ids of ended sessions live this long past their deadline */
#define SOON_MS 1000u /* a start waits so long for leases and grace times to end; leases no longer than this have no cap */
#define SLICE_BYTES ((size_t)1 << 20)
#define LEASE_WINDOWS 256u /* a ring; leases of lease_max_ms span half of it */

/* ---- blocks ----------------------------------------------------------------------------------- */

enum slot_state { SLOT_ABSENT, SLOT_WRITING, SLOT_COMMITTED, SLOT_REMOVING };

/* One spec of one block: 28 bytes, so that a block of one spec fills a cache line. */
struct slot {
	uint64_t checksum; /* while WRITING: for an anonymous session its number + 1, and SETTLING; else 0 */
	uint64_t generation : 47; /* MAX_GENERATION */
	uint64_t space : 17;      /* index into part->space: MAX_SPACES */
	uint32_t slab : 26;       /* handle in the space's pool: SKV_POOL_SLABS */
	uint32_t tag : 5; /* of the first slot, whatever its state: the policy's, of the block (skv/policy.h) */
	uint32_t has_checksum : 1;
	uint32_t index : 30; /* SKV_SLAB_SLOTS */
	uint32_t state : 2;  /* enum slot_state */
	uint32_t queued; /* place in the eviction queue of its class (queue.c); 0 = none, or another slot has it */
} __attribute__((packed, aligned(4)));

#define MAX_SPACES (1u << 17)
#define MAX_FILE_STORAGES 256u  /* those with slab files: each has threads */
#define MAX_GROUP_STORAGES 256u /* that a group names */
_Static_assert(sizeof(struct slot) == 28, "a block of one spec fills a cache line");
_Static_assert(SKV_POOL_SLABS <= 1u << 26 && SKV_SLAB_SLOTS <= 1u << 30, "a slot names its place");

#define SETTLING (1ull << 32) /* a record is on its way that commits the slot or gives it up */

#define MAX_GENERATION (1ull << 47) /* at a million blocks a second, four years */

/* A block's entry stays while any of its slots is not ABSENT or another block names it as parent
 * (then it is a miss for everybody, but keeps the chain linked). */
struct block {
	struct skv_key key;
	_Atomic uint64_t mark; /* last use and end of lease (mark.h); the only thing that readers write */
	uint32_t parent;       /* id; while free: next free entry */
	uint32_t children : 30; /* entries whose parent this is */
	uint32_t pinned : 1;    /* in the instance's pins (pin.c) */
	uint32_t used : 1;      /* 0 = the entry is free */
	uint32_t live_children : 30; /* of the children: those with a slot that is WRITING or COMMITTED */
	uint32_t live : 1;           /* counted in the parent's live_children */
	uint32_t kept : 1;           /* out of eviction's sight while room is made for the rest of its start */
	struct slot slot[];          /* one per spec of the instance */
};

/* Entries come in aligned chunks, so that a pointer to one leads to its id and instance (table.c). An id is
 * chunk number << CHUNK_SHIFT | place. */
#define CHUNK_SHIFT 8u
#define CHUNK_PLACES (1u << CHUNK_SHIFT)
#define CHUNK_BYTES 16384u
#define CHUNK_HEAD 64u
#define MAX_ENTRIES (SKV_HEAP_IDS - CHUNK_PLACES) /* of an instance: its eviction queues hold no more */

struct name;
struct chunk {
	struct instance *inst;
	struct name **names; /* [places] of a `named` instance's blocks, NULL = none, or an empty one (names.c) */
	struct chunk *next; /* of the same instance, or of none */
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

/* Eviction order of one instance's blocks with slots of one class in one space (queue.c). */
enum { EVICT_LEASED, EVICT_SOFT, EVICT_HELD, EVICT_FIRST }; /* heaps: leased; pinned soft; only its slots are leased; those
							       * of the policy's queues follow */
struct evict_queue {
	struct partition *part;
	struct instance *inst;
	struct evict_set *set; /* NULL: of a ghost that stays one */
	uint32_t member;       /* of the set; not while the instance is a ghost */
	uint32_t space;
	uint32_t class_id;
	uint32_t top[SKV_HEAPS_MAX]; /* places in the set's heaps */
	struct skv_heaps heaps;
};

/* A member of a set, and what its instance has for its part (share.c). */
struct rival {
	uint64_t over;
	const struct evict_queue *q;
};

/* Those of a group's instances for one class in one space, and in the same heaps their tops. */
struct evict_set {
	struct group *group;
	uint32_t space;
	uint32_t class_id;
	struct skv_heaps tops;
	struct evict_queue **member;
	size_t cap;
	uint32_t n;
	uint32_t hidden; /* of ghosts that may come back */
	/* In a group with parts, during one search: members that may have victims, who is most over its part first. */
	struct rival *rival;
	size_t cap_rival;
	uint32_t n_rivals;
	bool rivals_soft;     /* for what is pinned soft */
	uint64_t rivals_of;   /* which search */
	struct evict_set *next; /* of the same space */
};

/* A block that eviction leaves alone (pin.c). */
struct pin {
	uint32_t block; /* id; NO_BLOCK = the cell is empty */
	uint32_t kind;  /* enum skv_pin_kind */
	uint64_t until; /* boot time ms; 0 = until it is unpinned */
};

/* By block id, open addressing. */
struct pins {
	struct pin *cell;
	uint32_t cells; /* a power of two, or 0 */
	uint32_t n;
	uint32_t hard;  /* of n */
	uint32_t timed; /* of n: those that end by themselves */
	uint32_t looked; /* the cell where the ticker goes on */
};

struct instance {
	struct skv_instance_spec spec; /* strings owned */
	uint32_t id;                   /* durable number, never reused */
	struct group *group;
	uint64_t version; /* of its document, "instance/..." or "dropped/..." */
	bool deleting;   /* a record that drops it is queued or durable: nobody uses it any more */
	struct change *clear; /* CLEAR or DROP on its way: it takes the place of what that leaves as a ghost */
	/* Of a ghost (clear.c): */
	bool ghost;
	bool cleared; /* its record is durable: it may be swept */
	struct instance *next_ghost;

	bool registered; /* while loading: "instance/..." names it */
	bool dropped;    /* "dropped/..." names it: only for records that the journal may still have */
	uint64_t dropped_before; /* newest snapshot that began after that */
	uint64_t block_bytes; /* all specs */
	uint64_t hash;        /* of its name: tells its blocks from others' in what policies remember */
	/* rows.h: of each space that it has had slots in, the class of each spec there (UINT32_MAX = not found yet) */
	uint32_t *classes; /* [n_classes * (1 + n_specs)] */
	uint32_t n_classes;
	size_t cap_classes;

	struct segment index[INDEX_SEGMENTS];
	uint32_t free_block;  /* list of entries that were used and are free */
	struct chunk *newest; /* the first of its chunks; its fresh places come next */
	uint64_t entries;    /* in use, linked ones without slots included */
	uint64_t entries_made;
	uint64_t blocks; /* with all specs committed or some committed: at least one slot COMMITTED */
	uint64_t used_bytes;
	uint64_t removing_bytes; /* of these, on their way out */
	uint64_t evicted;        /* blocks, since the part was loaded */
	uint64_t open_bytes;
	struct pins pins;
	uint64_t open_sessions;
	struct session *open; /* those sessions */
	struct evict_queue **queue;
	size_t n_queue, cap_queue;
	/* Leased bytes, by the window in which the lease ends, and their sum (leases.c) */
	_Atomic int64_t lease_window[LEASE_WINDOWS];
	_Atomic int64_t leased_bytes;
	_Atomic uint64_t lease_window_no; /* those before it are empty */
	/* horizon.c */
	uint64_t horizon;             /* durable: no lease on its blocks ends later (boot time ms) */
	uint64_t horizon_coming;      /* the longest that is on its way, */
	struct change *horizon_change; /* with this; NULL = none is */
	_Atomic uint32_t lease_asked; /* ms: the longest since the ticker looked */
	uint32_t lease_lately[2];     /* ms: the longest of this spell, and of the one before */
	uint64_t reign_lease; /* what was there when the part was loaded counts as leased until here */
	_Atomic uint64_t hits; /* keys that lookups found, since the part was loaded */
	_Atomic uint64_t leased_until; /* no lease on its blocks ends later (boot time ms) */
	_Atomic uint64_t found_until;  /* none that keeps more than slots does */
};

/* What a group has in one space. */
struct group_space {
	uint32_t space;
	uint64_t used_bytes; /* those on their way out included */
	uint64_t removing_bytes;
};

struct group {
	struct skv_group_spec spec; /* strings owned */
	uint64_t version;
	uint64_t used_bytes;
	uint64_t removing_bytes;
	struct skv_policy_counts count;
	uint64_t open_blocks; /* of open sessions */
	struct group_space *in; /* rows.h: each space that it has had slots in. Limbo keeps none */
	uint32_t n_in;
	size_t cap_in;
	bool falling;        /* it was above its high watermark, and is not below the low one yet */
	uint64_t reclaim_at; /* the next step of eviction in the background: not before */
	uint32_t n_instances;
	uint64_t weights;    /* of its instances that have no capacity of their own (share.c) */
	uint64_t capacities; /* of the others */
	uint64_t room;       /* what parts are taken of, when victims were last looked for */
	uint64_t evicted;    /* blocks, since the part was loaded */
	struct start_op *wait_head, *wait_tail; /* starts waiting for space, first come first served */
	uint64_t turn; /* newest round of start_serve_waiters that has looked at the line */
	const struct skv_policy_ops *policy;
	void *policy_state;
	uint64_t too_old; /* blocks below this generation go by its ttl_ms; 0 = none */
	uint32_t n_queues; /* heaps that its evict_queues have for candidates */
	uint32_t requeue; /* the policy has changed: chunks from here on are to be queued again; 0 = none */
};

/* From this generation on blocks were started at this time or later. */
struct era {
	uint64_t generation;
	uint64_t wall_ms; /* era.c */
};

/* ---- storages --------------------------------------------------------------------------------- */

/* One storage as a device: outlives reloads of the partition. Has a thread of its own, because its
 * file system may hang. */
struct device {
	struct skv_core *core;
	char *name;
	char *type;
	char *root;
	/* As the registry has them now; changed under core->lock. */
	char *client_root;
	char *client_mount;
	char *extra;
	char **masters; /* URLs of fs-masters; none: the manager works in `root` itself */
	uint32_t n_masters;
	uint8_t uuid[16];
	uint32_t id;
	uint64_t unit;
	uint64_t file_size;
	uint64_t chunk; /* 0 = it has none, or is of before there were any */
	uint64_t edge;  /* header and trailer of a slab file, each */
	bool any_mount;
	bool fresh; /* its chunk size, if it was not told, is what the directory says: of one that is being made */
	const struct skv_storage_ops *ops;

	struct skv_mutex lock; /* below core->lock: protects the rest */
	struct skv_cond wake;
	pthread_t thread;
	bool running;
	_Atomic bool ended; /* the thread has nothing more to do */
	bool stop;
	bool asked; /* to look at once */
	struct skv_storage *storage; /* NULL until it could be opened; set by the thread only */
	/* The second thread (device_hand.c): */
	pthread_t hand;
	bool has_hand;     /* to be joined; by the first thread only */
	bool hand_busy;
	bool used_by_hand; /* the storage: it must not be closed */
	bool files_checked;          /* since the last open */
	uint32_t next_check;         /* of the files, while running: none below; by the thread only */
	uint32_t next_bad;           /* the same of the bad ones */
	uint32_t stuck_file;         /* + 1: told in the log that it could not be removed; by who removes only */
	struct skv_storage_owner claim; /* its owner file of the reign claim_fence; incarnation 0 = none (claim.c) */
	uint64_t claim_fence;
	_Atomic uint64_t looked_at; /* boot time ms: when the newest look at owner files began that was well */
	_Atomic bool refused;       /* another copy of the store goes on there */
	_Atomic bool unheard; /* no fs-master answered: nobody knows whether its bytes are there; those who use them will see */
	_Atomic bool reopen; /* its masters have changed since it was opened */
	_Atomic bool healthy;
	_Atomic bool probed; /* since the part was loaded */
	_Atomic uint64_t busy_since; /* boot time ms of a running call into the file system, 0 = none */
	_Atomic uint64_t fs_free;
	char problem[SKV_MESSAGE_MAX];
};

/* What the core keeps for each size class of a space. */
struct space_class {
	uint64_t stride;
	uint64_t removing; /* slots that queued removals will free */
	uint64_t wanted_ms; /* when somebody last asked for slots: keep some free ahead of need */
	uint64_t taken;     /* slots, since the space's demand_at */
	uint64_t demand;    /* slots taken in the last eight looks, or so */
	uint64_t evicted;   /* slots for its own sake, since it last looked at others' (steer.c) */
	uint64_t idle_ms;   /* what the blocks had been that it evicted lately */
};

/* A slab file. Its number is never given again, not even to the next one when it has gone: clients keep files open, and
 * what a late one writes must not reach another's bytes. */
enum file_state {
	FILE_IN_USE, /* or draining */
	FILE_GOING,  /* nothing is in it, nothing durable names it, and nobody may want it back any more */
	FILE_GONE,   /* by the registry, too; no file of the pool. Only its name and its document may be there yet */
};
struct space_file {
	uint32_t number;
	enum file_state state;
	uint64_t length;
	uint64_t version; /* of its document */
	bool rests;       /* while it is made: it was there before, and has writers that nobody knows */
	/* Why it drains, if it does; if the storage does, all of its files do. */
	bool drains; /* as it is listed */
	bool closed; /* to new blocks: it drains, or is bad; as the pool has it */
	bool asked;  /* an administrator wants it; durable */
	bool shrink; /* the capacity has no room for it; found anew after a restart */
	bool removed; /* of one that is gone: its name, too */
	/* What the looks at it found (bad_files.c): */
	const char *bad;    /* its bytes are not there: why, a constant; nothing is placed in it, its blocks are misses */
	uint64_t bad_since; /* boot time ms of the first look that was certain of it; 0 = none was */
	bool lost;          /* given up for good; durable */
	/* The walk through its slots (drain.c): */
	uint32_t pass, unit, slot;
	bool picked;       /* something in this pass */
	uint64_t oldest;   /* use, ms */
	uint64_t again_at; /* boot time ms: there is nothing to do before */
	bool empty;        /* since before the snapshot after this one: */
	uint64_t snapshot;
	uint64_t writing, pinned;         /* slots of blocks that are being written, or pinned hard, when it last came through; */
	uint64_t saw_writing, saw_pinned; /* and in the pass that goes on */
};

/* A storage as the partition sees it. */
struct space {
	struct device *dev;
	uint64_t version; /* of the registry document */
	uint64_t capacity;
	bool enabled;
	uint32_t high_percent, low_percent;
	bool falling; /* as a group's */
	struct skv_pool *pool;
	uint64_t used_bytes; /* of all groups, those on their way out included */
	uint64_t removing_bytes;
	uint64_t demand_at; /* when what was taken was last counted (evict.c) */
	uint64_t wait_turn; /* newest round of start_serve_waiters in which the first of some line waits for slots here */
	bool draining; /* no new blocks go there, and all files drain */
	struct space_file *file; /* by number */
	size_t n_file, cap_file;
	uint32_t n_bad; /* of them, not gone */
	uint32_t *drain; /* numbers of those that drain and are not GOING yet; room for all files */
	size_t n_drain, cap_drain;
	size_t drain_at;    /* of these: where the ticker goes on */
	uint64_t stays;     /* bytes of those that do not drain */
	uint32_t n_ending;  /* GOING or GONE */
	bool fit_due;       /* capacity or files have changed: perhaps some should go, or may stay after all */
	size_t fit_at;      /* of `drain`: where that look goes on */
	size_t fit_turn;    /* of looks for the cheapest */
	uint32_t next_file; /* greater than all numbers ever given */
	uint64_t file_bytes;     /* of files that are there, draining ones included */
	struct space_file claim; /* a registered file that may not have been made; length 0 = none */
	bool growing;
	uint64_t growing_since;
	uint64_t grow_again_at; /* after a failure: not before this time */
	bool grow_full;         /* it failed because the file system is full */
	uint64_t grow_failing_since; /* 0 = the newest growth was well */
	struct evict_set *sets; /* of all groups */
	struct space_class *class; /* by class id of the pool */
	uint64_t stolen_until; /* boot time ms: leases on what evict_steal_leased took end by then */
	size_t n_class, cap_class;
};

/* ---- sessions --------------------------------------------------------------------------------- */

struct session_write {
	uint32_t block;
	uint32_t specs; /* bit per spec that this session writes; 0 = settled */
};

struct session {
	struct skv_key id;
	struct skv_key tenant;  /* hash of its name: only it may finish or abort */
	struct skv_key request; /* hash of tenant, instance, request id; {0,0} = none */
	struct skv_key body;    /* hash of what was asked */
	struct session *id_next;      /* chain in part->session_by_id */
	struct session *request_next; /* chain in part->session_by_request */
	struct session *queue_next;   /* ended ones, oldest first */
	uint32_t number;              /* index in part->session */
	uint32_t due;                 /* place in part->deadlines, 0 = not in it */
	struct instance *inst; /* NULL once ended */
	struct session *open_next, *open_before; /* of the same instance, while open */
	uint32_t instance;     /* its durable number, kept; 0 = not known: ended, by an older version */
	enum skv_session_state state;
	struct change *pending; /* start, finish, abort or expiry on its way to the journal */
	uint32_t settling;   /* writes that are SETTLING: no expiry meanwhile */
	bool starting;
	bool anonymous; /* ends write by write (settle.c), or expires; forgotten then */
	bool relaxed;   /* its start was; not after a reload */
	bool independent; /* its keys are no chain */
	uint64_t deadline_at; /* boot time ms */
	uint32_t deadline_ms; /* full duration */
	uint32_t grace_ms;    /* after it, if longer than the manager's */
	uint64_t created_ms;  /* wall */
	uint64_t generation;  /* of the first written block; the others follow */
	uint64_t forget_at;
	uint32_t specs; /* asked for */
	uint32_t n_keys;
	uint32_t n_write;
	uint32_t n_left; /* of them: not settled */
	uint64_t bytes;  /* of these */
	uint8_t *outcome;            /* [n_keys] */
	struct skv_key *keys;        /* [n_keys], until ended */
	bool has_parent;
	struct skv_key parent;
	struct session_write *write; /* [n_write] */
	uint32_t committed;
	uint32_t failed;
	uint64_t finished_as; /* hash of what its finish said of each block; 0 = not finished, or by an older version */
};

#define SESSION_BUCKETS 65536u

/* ---- the partition ---------------------------------------------------------------------------- */

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
/* Of a block that was there once. */
struct lease {
	uint32_t inst; /* durable number */
	struct skv_key key;
	uint64_t until; /* boot time ms */
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

	struct space *space;
	uint32_t *space_name; /* [n_space] hash of each one's name */
	uint32_t n_space;
	uint32_t n_gap; /* of these: deleted, to be used again */
	size_t cap_space, cap_space_name;
	struct group **group;
	uint32_t *group_name; /* [n_group] hash of each one's name */
	size_t n_group, cap_group, cap_group_name;
	struct instance **inst;
	uint32_t *inst_name; /* [n_inst] hash of each one's tenant and id */
	size_t n_inst, cap_inst, cap_inst_name;
	struct group limbo; /* of dropped instances */
	struct instance *ghosts; /* what was cleared or dropped, until it is swept (clear.c) */

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
	struct era *era; /* when generations were given out, oldest first (era.c) */
	size_t n_era, cap_era;
	int64_t era_base;          /* their times are the clock's since boot, and this; */
	_Atomic int64_t era_shift; /* so much more is the wall clock's, when it was last looked at */
	uint32_t lease_shift; /* width of lease_window, of all instances: 2^shift ms */
	uint64_t use_base; /* added to the clock for uses, so that they go on where they were before a boot */
	_Atomic uint64_t last_use; /* the newest of all, see use_now */
	uint64_t reign_generation; /* blocks below it were there when the part was loaded */
	uint64_t mix_seed;

	uint64_t old_horizon; /* boot time ms: until then what an older version, or a power loss, left behind may be leased */
	uint64_t horizon_at;  /* boot time ms: when the ticker looks at horizons again, */
	uint64_t horizon_spell; /* and when a new spell of lease_lately begins */

	struct trim_op *trims; /* those that wait for no record (trim.c) */
	uint64_t trimmed_at;   /* when the last portion was done; 0 = never */

	uint64_t searches;    /* for victims: number of the newest */
	size_t tick_space, tick_group, tick_inst; /* where the next tick's portions of them begin */
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

/* ---- journal ---------------------------------------------------------------------------------- */

/* One write that is committed or given up. */
struct settled {
	struct session *session;
	uint32_t write;
	bool success;
};

/* An instance, and how late its leases may end. */
struct horizon {
	struct instance *inst;
	uint64_t until; /* boot time ms */
};

/* A block whose pin is set or, with SKV_PIN_NONE, ended; and what it was before, for the undo. */
struct repin {
	struct skv_key key;
	struct pin from, to;
};

/* Somebody who is called once the lock is released. */
struct completion {
	struct completion *next;
	struct skv_done done;
	int status;
};

/* Someone who waits for a change. Lives in the request's arena. */
struct waiter {
	struct completion completion;
	struct waiter *next; /* of the same change */
	/* Called under the write lock after the change was applied, or undone, to fill the answer; may be
	 * NULL. `status` is the change's. Returns the status to report; SKV_PENDING = nothing yet, it goes on. */
	int (*fill)(struct waiter *w, struct partition *p, const struct change *ch, int status);
	const void *req;
	void *res;
	struct skv_arena *arena;
	struct skv_error *err;
};

/* Syncs behind the committer (sync.c): its own, and others' under the core's lock while no round runs, but for what
 * is named. */
struct behind {
	struct change *head, *tail; /* appended, but their slots may not be reused before a sync covers them; oldest first */
	uint64_t deferred; /* how many were ever put there */
	uint64_t covered;  /* the first so many of all: a sync covers them */
	uint64_t applied;  /* the first so many of all have left it */
	bool dirty;        /* something was appended that no sync that was asked for covers */
	uint64_t dirty_since; /* ms */
	uint64_t upto;     /* what the sync that is asked for will cover */
	/* Protected by commit.lock: */
	bool asked; /* the thread has one to do; the committer takes that back */
	bool done;  /* ... and has done it */
	int status; /* of it */
	bool stop;
	struct skv_cond wake; /* the thread: asked, or stop */
	pthread_t thread;
};

struct commit {
	struct skv_mutex lock;
	struct skv_cond wake; /* the committer: work, a snapshot wanted, or stop */
	struct skv_cond idle; /* others: a round is over */
	struct change *head, *tail;
	uint64_t queued;   /* number of the newest queued */
	uint64_t appended; /* number of the newest durable, or failed */
	bool busy;         /* a round is running: the part must stay */
	bool stop;
	bool snapshot_wanted;
	bool several; /* the committer's own: the last batch was more than one change */
	struct behind behind;
	pthread_t thread;
};

#define DEMOTE_NONE UINT64_MAX

/* Readers keep pointers to it: it never changes, and stays as long as the core. */
struct known_secret {
	struct skv_secret secret;
	struct known_secret *before; /* that the store had before, if somebody took it away */
};

/* What happens that somebody above waits for. */
struct core_events {
	/* Manual mode, which has no threads: does what theirs would while the caller waits. */
	void (*step)(struct skv_core *c);
	/* Under the write lock: slots came free, or there may be room for another file. */
	void (*space_freed)(struct partition *p);
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
	struct partition *part; /* NULL unless READY (or recovering into it) */
	_Atomic int state; /* enum skv_core_state */
	_Atomic uint64_t owned_until; /* end of the ownership lease, boot time ms */
	_Atomic uint64_t fence;
	_Atomic bool reload_asked; /* what is in memory is not the truth any more: the keeper begins anew */
	_Atomic bool fenced;       /* the store told that somebody else owns the partition */

	struct commit *commit;
	struct skv_mutex turn_lock; /* keeper, ticker, checkpointer: stop and wake */
	struct skv_cond turn_wake;
	bool stop;
	bool checkpoint_asked;
	bool checkpointing; /* somebody has the turn to write one */
	bool admin_busy;
	uint64_t turn_fence; /* of the administrator whose turn it is: in whose name its call writes */
	bool standby_told; /* keeper only */
	_Atomic uint32_t failed_loads; /* in a row */
	_Atomic uint64_t seen_ms;   /* wall time of the keeper's last look at the ownership */
	_Atomic uint64_t demote_ms; /* asked for: stay out so long; DEMOTE_NONE */
	uint64_t out_until;         /* keeper only: no claim before, boot time ms */
	/* Under turn_lock (claim.c): */
	struct skv_storage_owner incarnation; /* the newest of the reign incarnation_fence; 0 = none */
	uint64_t incarnation_fence;
	bool rolled_back;     /* the ticker's: what o.adopt asks of the state is done, durably */
	bool gave_up;             /* the keeper's: because of that */
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
