/*
 * ops.h - the plain structs behind every API: what a request asks and what the core answers.
 *
 * Each wire API (native JSON, protobuf, KVCM, SGLang) decodes into these, calls the core, and encodes
 * the result; nothing here knows HTTP, JSON or SQL. All pointers are borrowed from the request's
 * arena and live until the answer is encoded. Durations are milliseconds, sizes bytes.
 * Strings are NUL-terminated, already checked (skv_name_valid) by the decoder.
 */
#ifndef SKV_OPS_H
#define SKV_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/hash.h>
#include <skv/limits.h>

/* 1..127 of [A-Za-z0-9._:=@+,-], beginning with a letter, digit or '_': safe in URLs, paths and logs. */
bool skv_name_valid(const char *s, size_t n);
/* Names of instances and tenants may be those of models: parts that are names, with one '/' between neighbours, 127 characters
 * in all ("Qwen/Qwen3-32B", as Hugging Face has them). Never a path of a file. */
bool skv_model_name_valid(const char *s, size_t n);

/* ---- objects that an administrator makes ---------------------------------------------------- */

/* A named place for blocks. `name`, `type`, `root`, `unit`, `file_size` never change; `capacity` may
 * grow, the rest may change. */
struct skv_storage_spec {
	const char *name;
	const char *type;   /* "file" (slab files below `root`), "hf3fs" (the same on a 3FS mount), "null"
			       (addresses only, for benchmarks), "external" (one file, which clients make
			       themselves: slots are counted and nothing else is known of it. All its sizes and offsets
			       are numbers of slots, `capacity` may be any number, `unit` and `file_size` are 0) */
	const char *root;   /* absolute directory on the manager's host; "" for "null" and, if it is reached through
			       fs-masters and nowhere mounted, where it is as clients see it, or "" */
	const char *client_root;  /* `root` as the clients' hosts see it, for APIs that name whole paths; "" = `root` */
	const char *client_mount; /* the mount point there, which client_root lies below; "" = not told */
	uint64_t capacity;  /* bytes of slab files at most; a multiple of `unit` */
	uint64_t file_size; /* bytes of one slab file; 0 = default: 1 GiB or the capacity, if smaller; of "hf3fs" by chunk
			       size 4 to 64 GiB, and an eighth of the capacity at most */
	uint64_t unit;      /* slab unit, a power of two; 0 = default 64 MiB */
	bool enabled;       /* false: no new blocks go there; those there stay readable */
	bool draining;      /* true: no new blocks go there, those there are evicted, and its files go one by one; not `external` */
	/* Eviction in the background, of the capacity: begins when blocks use more than `high`, ends at `low`. 0, 0: the
	 * manager's free_percent, for each size of slots. high 100: none; else 0 < low <= high < 100 */
	uint32_t high_percent;
	uint32_t low_percent;
	const char *extra;  /* opaque text of the API that made it, at most SKV_MAX_EXTRA bytes; "" if none */
	/* Of "hf3fs"; fixed once it is made: */
	uint64_t chunk_size; /* a power of two, 64 KiB to 64 MiB: what the directory must say; 0 = it is asked when the storage
				is made, and told from then on */
	bool any_mount;      /* the directory may lie on a mount that is not 3FS (tests); a chunk_size is then believed */
	/* URLs of fs-masters that do what is to be done with slab files, "http://host:port/DIR": DIR is the directory below
	 * their root. None: the manager does it itself, in `root`. May change. */
	const char *const *fs_master;
	uint32_t n_fs_master; /* 0..SKV_MAX_FS_MASTERS */
};

/* What a group may have on all storages of one type. */
struct skv_type_quota {
	const char *type;
	uint64_t capacity; /* bytes at most: a storage of that type is passed over when it would be more; 0 = no bound */
	uint64_t reclaim;  /* evict in the background while more is used; 0 = none */
};

/* What the instances of a group may have of its capacity; the least of that and of its storages is shared out.
 * An instance's *part* is its own `capacity`, else what those leave, divided by weights. */
enum skv_share {
	SKV_SHARE_GROUP, /* no parts: the least valuable blocks of the group go, whoever's they are */
	/* What others leave may be borrowed. When something must go, it comes from the instance that has most for its part. */
	SKV_SHARE_PROPORTIONAL,
	/* No instance has more than its part. Its starts evict its own blocks and nobody else's of the group, but for those of
	 * an instance that has more than its part (for it was larger). */
	SKV_SHARE_FIXED,
};

/* Quota, placement and eviction for several instances. All but the name may change; what changes counts at once. A
 * bound or line that is 0 does not exist. */
struct skv_group_spec {
	const char *name;
	uint64_t capacity;           /* bytes of block data at most; 0 = only the storages limit */
	const char *const *storages; /* candidates in order of preference; at least one, unless loose_storages */
	uint32_t n_storages;
	const char *policy; /* which blocks go first: a name of skv/policy.h; "" (or NULL) = the default, `reuse` */
	uint64_t ttl_ms;    /* of policy `ttl`, and of no other: blocks written longer ago go; then at least 1 */
	bool loose_storages; /* storages that do not exist are passed over until they do, and may be deleted */
	const struct skv_type_quota *quotas; /* one for each type at most */
	uint32_t n_quotas;
	uint64_t max_blocks;    /* a start that would make more is refused; those being written count */
	uint32_t max_instances; /* a registration that would make more is refused */
	/* Eviction in the background: while more than this is used, as the policy says. */
	uint64_t reclaim_bytes;
	uint64_t reclaim_blocks;
	/* At most a step in each period: so many bytes or so many percent of what is used, the larger. 0 and 0: all at
	 * once. */
	uint64_t reclaim_step_bytes;
	uint32_t reclaim_step_percent;
	uint32_t reclaim_period_ms;
	uint64_t max_idle_ms; /* blocks that nobody has looked up for so long go; of policies that keep the order of uses:
			       * reuse, lru, lru-plain, lfu */
	uint32_t high_percent; /* as a storage's, of the group's capacity (or its storages', if that is less) */
	uint32_t low_percent;
	uint32_t pin_percent; /* 0..100 of the same may be pinned hard, and of an instance's part in it; 0 = 50 */
	enum skv_share share;
	uint64_t version;     /* the caller's own number, see skv_core_group_put */
	const char *extra;    /* opaque text of the API that made it, at most SKV_MAX_EXTRA bytes; "" if none */
};

struct skv_spec {
	const char *name;
	uint64_t size; /* exact bytes, SKV_MIN_SPEC_SIZE..SKV_MAX_SPEC_SIZE */
};

/* One model deployment: the layout of its blocks. Everything but `extra`, `weight` and `capacity` is fixed once
 * registered; these count at once. */
struct skv_instance_spec {
	const char *tenant;
	const char *id;
	const char *group;
	uint32_t block_tokens; /* tokens per block, for people and KVCM; 0 = not told */
	const struct skv_spec *specs;
	uint32_t n_specs;  /* 1..SKV_MAX_SPECS */
	const char *extra; /* opaque text, "" if none */
	bool numbered; /* slots lie at multiples of their own size, so offset / size is a whole number (KVCM's blkid) */
	bool named;    /* each block keeps the name that its start gave it, durably, for exports */
	/* In a group that shares; of one that is registered 0 and 0 leave both as they are. */
	uint32_t weight;   /* 1..SKV_MAX_WEIGHT, 0 = 1 */
	uint64_t capacity; /* bytes of its part, 0 = by weight */
};

/* Bytes that somebody else owns; p is not NULL when n is 0. */
struct skv_bytes {
	const void *p;
	size_t n;
};

/* ---- locations -------------------------------------------------------------------------------- */

/* A slab file that an answer refers to. Clients map `uuid` to their own mount by the superblock
 * (skv/superblock.h) and open `path` below it. */
struct skv_file_ref {
	const char *storage; /* name */
	const char *type;    /* "file", "hf3fs" */
	const char *client_root; /* of the storage, or its root; "" for "null". NULL in what a client has read */
	char uuid[37];       /* of the storage, text form */
	char path[64];       /* relative to the storage's root */
};

/* Where one spec of one block lies. `length` 0 = nothing here (see the result's own comment). */
struct skv_location {
	uint32_t file; /* index into the answer's files[] */
	uint64_t offset;
	uint64_t length;
	uint64_t generation; /* number of this slot's life; never repeated */
	uint64_t checksum;   /* skv_checksum of the bytes, when has_checksum */
	bool has_checksum;
};

struct skv_files {
	struct skv_file_ref *v;
	uint32_t n;
};

/* ---- lookups ---------------------------------------------------------------------------------- */

/* Length of the longest present prefix, per instance. No lease, no touch: safe to poll. */
struct skv_match_req {
	const char *tenant;
	const char *const *instances;
	uint32_t n_instances;
	const struct skv_key *keys;
	uint32_t n_keys;
};
struct skv_match_res {
	uint32_t n_instances;
	const char *const *instances; /* those of the request */
	uint32_t *matched;            /* leading keys present with all specs */
};

enum skv_lookup_mode {
	SKV_LOOKUP_PREFIX, /* stop at the first miss */
	SKV_LOOKUP_BATCH,  /* every key on its own */
	/* The last run of `window` consecutive hits is hit, nothing else is (attention over a sliding window). */
	SKV_LOOKUP_WINDOW,
	/* Every key on its own, for who reads only the last few of them (a window, a state) and has not said how many: hits
	 * that cannot be leased are misses, the first ones before the last; and it counts as no use, for most of them will
	 * not be read. */
	SKV_LOOKUP_TRAILING,
	/* Attention layers and layers with a state (Mamba): the longest prefix whose keys all have `full_specs`, less
	 * `drop` keys; within it the last key that has `state_specs` too. The hits are the keys up to that one;
	 * without such a key there are none. */
	SKV_LOOKUP_HYBRID,
};

#define SKV_LEASE_DEFAULT UINT32_MAX

/* Locations of blocks, leased: until lease_ms after the request was *sent*, no located slot is reused. */
struct skv_lookup_req {
	const char *tenant;
	const char *instance;
	enum skv_lookup_mode mode;
	const struct skv_key *keys;
	uint32_t n_keys;
	const char *const *specs; /* names; n_specs 0 = all of the instance */
	uint32_t n_specs;
	uint32_t lease_ms; /* 0 = none, SKV_LEASE_DEFAULT = the manager's; capped by the manager */
	bool partial;         /* one of the specs is enough for a hit; not in HYBRID */
	bool skip_disabled;   /* specs on disabled storages are not there */
	bool only_leased;     /* hits that cannot be leased for lease_ms (capped as above) are misses */
	bool slots_only;      /* the lease keeps the bytes at their offsets, and no more: when the group needs room the block may be
				* evicted all the same, and its slots wait for the end of the lease */
	bool peek;            /* no lease, and no use: eviction does not learn of it */
	bool want_created;    /* fill created_ms */
	uint32_t window;      /* WINDOW: 1..n_keys */
	uint32_t full_specs;  /* HYBRID: bit per spec in order of registration; not 0 */
	uint32_t state_specs; /* HYBRID: the same */
	uint32_t drop;        /* HYBRID */
};
/* Only hits are leased and count as used (TRAILING: are leased). */
struct skv_lookup_res {
	uint32_t n_keys;  /* of the request */
	uint32_t matched; /* hits: PREFIX and HYBRID: leading ones; WINDOW: `window` or 0 */
	uint32_t n_specs; /* columns of loc */
	const char *const *specs; /* their names */
	bool *hit;                /* [n_keys] */
	/* [n_keys * n_specs], valid where hit; partial and HYBRID: length 0 where the block has no such spec */
	struct skv_location *loc;
	uint64_t *created_ms;     /* [n_keys] wall time, valid where hit, 0 = unknown; NULL unless wanted */
	uint32_t lease_ms;        /* granted; may be less than asked, 0 = none */
	struct skv_files files;
};

/* ---- two-phase write -------------------------------------------------------------------------- */

struct skv_start_req {
	const char *tenant;
	const char *instance;
	const char *request_id;     /* "" = none: the call is then not idempotent */
	const struct skv_key *keys; /* one chain, head first, unless `independent`; no key twice */
	uint32_t n_keys;
	bool has_parent;
	struct skv_key parent;    /* the block before keys[0]; none with `independent` */
	const char *const *specs; /* specs that this writer brings; n_specs 0 = all */
	uint32_t n_specs;
	/* [n_keys] specs that this writer brings of each key: bit per spec in order of registration, not 0. NULL = `specs`
	 * of all; with it n_specs is 0. The session's specs (columns of locations and checksums) are those of any key. */
	const uint32_t *key_specs;
	uint32_t deadline_ms; /* 0 = the manager's default; capped by the manager */
	uint32_t grace_ms;    /* of slots that are not committed, after the deadline; the manager's own if that is longer */
	/* [n_keys] name of each block, 0..SKV_MAX_BLOCK_NAME bytes; NULL unless the instance is `named`. */
	const struct skv_bytes *names;
	/* [n_keys] the slots to take, by offset, in an instance of one spec on one `external` storage; NULL = any. One that is
	 * not free, or lies outside: outcome NO_ROOM. For imports. */
	const uint64_t *offsets;
	bool fit;           /* where there is no room for all, the first so many are written: the others have the outcome NO_ROOM */
	bool whole;         /* with `fit`: all that are not EXISTS are written, or none; none, too, where one is BUSY */
	/* The keys are no chain: none is the parent of another, and each goes by its own use alone. For blocks whose neighbours
	 * may be missing: states and windows of hybrid models, of which the last ones of a prompt are stored and read. */
	bool independent;
	bool relaxed;       /* with `anonymous`: is answered when the journal has it, synced a little later: a power loss may undo it */
	bool anonymous;     /* its session is ended by skv_core_finish_partial or its deadline only, and forgotten then; request_id "" */
	bool want_existing; /* fill the locations of keys with outcome EXISTS, and count that as a use: no lease */
};

/* Each (key, spec) has one writer. A block that was written with some specs gets the others later, also while those
 * are still being written. */
enum skv_start_outcome {
	SKV_START_WRITE,  /* write the locations with length > 0, then finish */
	SKV_START_EXISTS, /* all of its specs asked for are committed: nothing to do */
	SKV_START_BUSY,   /* nothing is left to write, but other sessions are still writing, or it is being removed */
	SKV_START_NO_ROOM, /* with `fit` or `offsets` only: not now */
};

enum skv_session_state { SKV_SESSION_OPEN, SKV_SESSION_FINISHED, SKV_SESSION_ABORTED, SKV_SESSION_EXPIRED };

struct skv_start_res {
	char session[SKV_SESSION_ID_HEX + 1]; /* "" when nothing is to be written */
	enum skv_session_state state;         /* not OPEN: a repeated id; no locations follow */
	uint32_t deadline_ms;                 /* remaining; submit no write after it */
	uint32_t n_keys;
	uint32_t n_specs;
	const char *const *specs;
	uint8_t *outcome;         /* [n_keys] enum skv_start_outcome */
	struct skv_location *loc; /* [n_keys * n_specs], length 0 = do not write this one; see want_existing */
	uint32_t n_write;         /* keys with outcome WRITE */
	struct skv_files files;
};

enum skv_mask_kind { SKV_MASK_ALL, SKV_MASK_COUNT, SKV_MASK_BITS };

struct skv_finish_req {
	const char *tenant;
	const char *instance; /* NULL = not checked; else the session must be this instance's */
	const char *session;  /* 32 hex digits */
	/* Which of the session's written blocks (request order, WRITE only) succeeded. */
	enum skv_mask_kind mask_kind;
	uint32_t mask_count;    /* COUNT: the first so many; BITS: length of mask, must equal n_write */
	const bool *mask;       /* BITS */
	uint32_t n_checksums;   /* 0, or n_write * n_specs of the session */
	const uint64_t *checksums; /* row per written block; columns not written are ignored */
	const bool *no_checksum;   /* [n_checksums]: true = none is given there; NULL = all are */
	bool quiesced; /* all completions arrived: failed slots need no grace */
};
struct skv_finish_res {
	enum skv_session_state state;
	uint32_t committed;
	uint32_t failed;
};

struct skv_abort_req {
	const char *tenant;
	const char *instance; /* as for finish */
	const char *session;
	bool quiesced;
};

/* Ends writes one by one, by key and place, in an instance of one spec on one `external` storage: for protocols whose
 * clients know no sessions. What is not as said is ignored and counted: a key that is not being written, or elsewhere; a
 * slot that nobody is writing. So a repeated call changes nothing. A session ends with its last write. */
struct skv_partial_req {
	const char *tenant;
	const char *instance;
	const struct skv_key *keys; /* [n_commit] written: to be committed */
	const uint64_t *offsets;    /* [n_commit] where */
	uint32_t n_commit;          /* 0..SKV_MAX_KEYS */
	const uint64_t *give_up;    /* [n_give_up] offsets of slots that were not written, or not wholly */
	uint32_t n_give_up;         /* 0..SKV_MAX_KEYS; such a slot is free after its session's deadline and grace */
	bool relaxed;               /* as of a start; one that gives up slots is answered after a sync all the same */
};
struct skv_partial_res {
	uint32_t committed;
	uint32_t given_up;
	uint32_t ignored_commits;
	uint32_t ignored_give_ups;
};

struct skv_delete_req {
	const char *tenant;
	const char *instance;
	const struct skv_key *keys;
	uint32_t n_keys;
	bool writing; /* what open sessions are writing of these blocks, too: their slots are held until deadline and grace */
};
struct skv_delete_res {
	uint32_t deleted; /* blocks that were there */
	uint32_t revoked; /* writes of open sessions that were given up */
	uint32_t pinned;  /* of them: had a pin, which is gone, too */
};

/* ---- documents of APIs ------------------------------------------------------------------------- */

/* A small text that an API keeps in the store, beside what the core knows of. */
struct skv_doc {
	const char *name;
	const char *text;
	uint64_t version; /* grows with each put */
};

/* ---- pins -------------------------------------------------------------------------------------- */

enum skv_pin_kind {
	SKV_PIN_NONE,
	SKV_PIN_SOFT, /* is evicted when nothing else may be */
	SKV_PIN_HARD, /* is not evicted */
};

/* Keeps blocks from being evicted: those of the keys that are there now, mostly a prefix. A block has one pin. If it
 * has one already, the harder kind wins, of equal ones the later end; so the same call again changes nothing but the end. A
 * pin covers all that is or will be written of its block, and is durable: after a restart what was left of its time
 * begins anew. A deletion by request, a trim or a clear takes the block all the same, and its pin. */
struct skv_pin_req {
	const char *tenant;
	const char *instance;
	const struct skv_key *keys;
	uint32_t n_keys;        /* 1..SKV_MAX_KEYS */
	enum skv_pin_kind kind; /* not NONE */
	uint64_t ttl_ms; /* 0 = until it is unpinned, HARD only; else up to SKV_MAX_PIN_MS. It may end two seconds late */
};
/* All keys that are there are pinned, or (an error) none. */
struct skv_pin_res {
	uint32_t n_keys;
	uint32_t pinned;
	bool *missing; /* [n_keys] not there, or on its way out: not pinned */
};

/* Ends pins, of either kind. */
struct skv_unpin_req {
	const char *tenant;
	const char *instance;
	const struct skv_key *keys; /* n_keys 0 = all that the instance has */
	uint32_t n_keys;
};
struct skv_unpin_res {
	uint64_t unpinned; /* blocks that were pinned */
};

/* A portion of an instance's pins, in no order. */
struct skv_pins_req {
	const char *tenant;
	const char *instance;
	uint64_t cursor; /* 0 = from the begin, else `next` of the portion before */
	uint32_t max;    /* 1..SKV_MAX_KEYS */
};
/* Of pins that come and go between two portions others may be missed, or told twice. */
struct skv_pins_res {
	uint32_t n;
	struct skv_key *key; /* [n] */
	uint8_t *kind;       /* [n] enum skv_pin_kind */
	uint64_t *ttl_ms;    /* [n] what is left, at least 1; 0 = until it is unpinned */
	uint64_t next;       /* 0 = that was all */
};

/* A portion of the keys of an instance's committed blocks, in no order: those of skv_export_req. */
struct skv_keys_res {
	uint32_t n;
	struct skv_key *key; /* [n] */
	uint64_t next;       /* cursor of the next portion; 0 = that was all */
};

/* Deletes blocks by the time when their oldest spec was started: those that had been started before the call. Times are
 * those that lookups and views tell as created_ms: to the millisecond for young blocks, to a 150th of their age for old
 * ones. */
struct skv_trim_req {
	const char *tenant;
	const char *instance;
	uint64_t from_ms; /* wall time, inclusive */
	uint64_t to_ms;   /* the same; UINT64_MAX = up to now */
};
struct skv_trim_res {
	uint64_t deleted; /* blocks that were there */
};

/* Deletes all blocks of an instance at once; its registration stays. What is being written counts as given up. */
struct skv_clear_req {
	const char *tenant;
	const char *instance;
};
struct skv_clear_res {
	uint64_t deleted; /* blocks that were there */
};

/* A portion of an instance's committed blocks, in no order. */
struct skv_export_req {
	const char *tenant;
	const char *instance;
	uint64_t cursor; /* 0 = from the begin, else `next` of the portion before, which is below 2^63 */
	uint32_t max;    /* 1..SKV_MAX_KEYS; a portion may be somewhat smaller, or empty */
	bool keys_only;  /* neither names nor locations: of the answer n, key, use and next are set, n_specs is 0 */
};
/* Each block that is there all the time is told exactly once. */
struct skv_export_res {
	uint32_t n;
	uint32_t n_specs;        /* of the instance: columns of loc */
	struct skv_key *key;     /* [n] */
	struct skv_bytes *name;  /* [n] empty unless the instance is `named` */
	struct skv_location *loc; /* [n * n_specs], length 0 = absent */
	uint64_t *use;           /* [n] a later use is a larger number */
	uint64_t next;           /* 0 = that was all */
	struct skv_files files;
};

enum skv_slot_state { SKV_SLOT_ABSENT, SKV_SLOT_WRITING, SKV_SLOT_COMMITTED, SKV_SLOT_REMOVING };

/* What is known of some keys, spec by spec. */
struct skv_states_req {
	const char *tenant;
	const char *instance;
	const struct skv_key *keys;
	uint32_t n_keys;
	bool want_parents;
};
struct skv_states_res {
	uint32_t n_keys;
	uint32_t n_specs; /* of the instance: columns */
	const char *const *specs;
	uint8_t *state;           /* [n_keys * n_specs] enum skv_slot_state */
	struct skv_location *loc; /* the same; length 0 = absent. To be read only where committed, and not without a lease */
	uint64_t *created_ms;     /* [n_keys] wall time; 0 = nothing there, or not known */
	const struct skv_key **parent; /* want_parents: [n_keys] the key before it; NULL = none is known */
	struct skv_files files;
};

/* ---- views for people ------------------------------------------------------------------------- */

struct skv_block_view {
	struct skv_key key;
	bool has_parent;
	struct skv_key parent;
	uint32_t children;
	uint64_t created_ms;  /* wall time */
	uint64_t idle_ms;     /* since the last lookup or the commit */
	uint32_t lease_ms;    /* remaining */
	uint32_t n_specs;     /* of the instance */
	const char *const *specs;
	const char **state;       /* "absent" | "writing" | "committed" | "deleting" */
	struct skv_location *loc; /* [n_specs], length 0 when absent */
	struct skv_files files;
};

/* What an administrator wants of a slab file. */
struct skv_file_wish {
	uint32_t file;
	bool draining;
	bool forget; /* it is bad, and given up with its blocks */
};

/* One slab file. Texts are constants. */
struct skv_file_view {
	uint32_t file; /* number, given once */
	uint64_t length;
	const char *state;     /* "used", "draining", "removing" (nothing is in it any more), "bad" (its blocks are misses) */
	const char *why;       /* it drains: "asked", "capacity" (has no room for it), "storage" (drains), "lost" (given up); it is
				  bad: "missing", "damaged", "unreadable"; else "" */
	const char *waits_for; /* what the drain waits for; "" = nothing */
	uint64_t assigned_bytes;    /* in slabs */
	uint64_t used_bytes;        /* slots of live blocks, open sessions included */
	uint64_t quarantined_bytes; /* slots waiting for a lease or a grace to end */
};

struct skv_storage_view {
	struct skv_storage_spec spec;
	char uuid[37];
	bool healthy;
	const char *problem; /* sentence, "" when healthy */
	uint32_t files;
	uint32_t draining_files;    /* of them */
	uint32_t bad_files;         /* of them: lost or damaged */
	uint64_t file_bytes;        /* of slab files made so far */
	uint64_t assigned_bytes;    /* in slabs */
	uint64_t used_bytes;        /* slots of live blocks, open sessions included */
	uint64_t quarantined_bytes; /* slots waiting for a lease or a grace to end */
	uint64_t free_bytes;        /* file_bytes and room to grow, less assigned */
};
/* What is held counts whole blocks: those pinned hard, soft, leased (an estimate: granted in the current lease window);
 * what open sessions write counts in bytes. Counters begin when the manager has loaded the partition. */
struct skv_group_view {
	struct skv_group_spec spec;
	uint64_t used_bytes;
	uint64_t blocks;
	uint64_t room_bytes; /* that it may have: its capacity, or its storages', if that is less */
	uint64_t pinned_bytes;
	uint64_t soft_pinned_bytes;
	uint64_t leased_bytes;
	uint64_t open_bytes;
	uint64_t evicted_blocks;
	uint64_t hits; /* keys that lookups found */
};
/* How slots for a spec lie on the chunks of a storage. On 3FS a write of a part of a chunk reads and writes all of it. */
struct skv_placement {
	const char *storage;
	const char *spec;
	const char *fit; /* "whole": of whole chunks; "rounded": up to whole chunks; "segments": packed and written one behind
			    the other; "copied": in the midst of chunks */
	uint64_t slot_bytes;   /* from one slot to the next */
	uint64_t wasted_bytes; /* of each slot's share of the file: they hold nothing */
	uint64_t copied_bytes; /* that are read and written again for each slot written, in the mean */
};
#define SKV_FITS(X) X(WHOLE, "whole") X(ROUNDED, "rounded") X(SEGMENTS, "segments") X(COPIED, "copied")

struct skv_instance_view {
	struct skv_instance_spec spec;
	const struct skv_placement *placements; /* of each spec on each storage of the group that has chunks */
	uint32_t n_placements;
	uint64_t blocks;
	uint64_t used_bytes;
	uint64_t open_sessions;
	uint64_t open_bytes;   /* of open sessions */
	uint64_t leased_bytes; /* as a group's, and so are the others */
	uint64_t share_bytes;  /* its part, 0 in a group without parts */
	uint64_t pinned_bytes;
	uint64_t soft_pinned_bytes;
	uint64_t evicted_blocks;
	uint64_t hits;
};

struct skv_stats {
	char version[32];
	char owner[64];     /* id of the owning manager */
	const char *state;  /* "ready" | "standby" | "recovering" | "stopped" */
	uint64_t uptime_ms;
	uint64_t blocks;
	uint64_t sessions;
	uint64_t journal_bytes; /* since the last checkpoint */
	uint64_t journal_limit;
	uint64_t evicted_blocks;
	uint64_t expired_sessions;
	struct skv_storage_view *storages;
	uint32_t n_storages;
	struct skv_group_view *groups;
	uint32_t n_groups;
	struct skv_instance_view *instances;
	uint32_t n_instances;
};

#endif
