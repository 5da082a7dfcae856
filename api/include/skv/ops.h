/*
 * ops.h - requests and results of the core, as plain structs, behind every API.
 *
 * Each wire API (native JSON, protobuf, KVCM, SGLang) decodes into these, calls the core, and
 * encodes the result; nothing here knows HTTP, JSON or SQL. All pointers are borrowed from the
 * request's arena and live until the answer is encoded. Durations are milliseconds, sizes bytes.
 * Strings are NUL-terminated, already checked (skv_name_valid) by the decoder.
 */
#ifndef SKV_OPS_H
#define SKV_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/hash.h>
#include <skv/limits.h>

/* 1..127 of [A-Za-z0-9._:=@+,-], starting with a letter, digit or '_': safe in URLs, paths and
 * logs. */
bool skv_name_valid(const char *s, size_t n);
/* Names of instances and tenants may be those of models: names joined by single '/', 127 characters
 * in all ("Qwen/Qwen3-32B", as on Hugging Face). Never a file's path. */
bool skv_model_name_valid(const char *s, size_t n);

/* ---- administered objects -------------------------------------------------------------------- */

/* A named place for blocks. `name`, `type`, `root`, `unit`, `file_size` never change; `capacity`
 * may grow, the others may change. */
struct skv_storage_spec {
	const char *name;
	/* "file" (slab files below `root`), "hf3fs" (the same on a 3FS mount), "null" (addresses
	 * only, for benchmarks), "external" (one file that clients create: slots are only counted.
	 * All its sizes and offsets are slot numbers, `capacity` may be any number, `unit` and
	 * `file_size` are 0). */
	const char *type;
	/* Absolute directory on the manager's host; "" for "null". With fs-masters and no mount
	 * here: its path on clients, or "". */
	const char *root;
	/* `root` as seen on clients, for APIs that return whole paths; "" = `root`. */
	const char *client_root;
	/* The clients' mount point, which contains client_root; "" = unknown. */
	const char *client_mount;
	uint64_t capacity;  /* limit of all slab files, bytes; a multiple of `unit` */
	/* Bytes of one slab file; 0 = default: 1 GiB or the capacity, if smaller; for "hf3fs" 4 to
	 * 64 GiB by chunk size, and at most an eighth of the capacity. */
	uint64_t file_size;
	uint64_t unit;      /* slab unit, 2^n; 0 = capacity / 1024, from 1 to 64 MiB (hf3fs: 64) */
	bool enabled;       /* false: takes no new blocks; existing ones stay readable */
	/* True: takes no new blocks, existing ones are evicted, and its files are removed one by
	 * one; not `external`. */
	bool draining;
	/* While it is draining: movers copy its blocks to other storages of their groups, none is
	 * evicted; what cannot be moved stays. */
	bool move;
	/* Watermarks: background eviction starts when blocks use more than `high` percent of the
	 * capacity and stops at `low`. 0, 0: the manager's free_percent, for each size of slots.
	 * high 100: off; else 0 < low <= high < 100 */
	uint32_t high_percent;
	uint32_t low_percent;
	/* Opaque text of the API that created it, at most SKV_MAX_EXTRA bytes; "" if none. */
	const char *extra;
	/* "hf3fs" only; fixed at creation: */
	/* A power of two, 32 KiB to 64 MiB, which the directory must have; 0 = read from the
	 * directory at creation, and reported from then on. */
	uint64_t chunk_size;
	/* The directory may be on a mount that is not 3FS (tests); chunk_size is not checked
	 * then. */
	bool any_mount;
	/* URLs of fs-masters that handle the slab files, "http://host:port/DIR": DIR is the
	 * directory below their root. None: the manager handles them itself, in `root`. May
	 * change. */
	const char *const *fs_master;
	uint32_t n_fs_master; /* 0..SKV_MAX_FS_MASTERS */
};

/* Quota of a group for all storages of one type. */
struct skv_type_quota {
	const char *type;
	/* Bytes at most: storages of that type are skipped when it would be exceeded; 0 = no
	 * limit. */
	uint64_t capacity;
	uint64_t reclaim;  /* background eviction while more is used; 0 = none */
};

/* The division of a group's capacity (or its storages', if less) among its instances. An instance's
 * *share* is its own `capacity`, or else a part of the remaining capacity, by weight. */
enum skv_share {
	/* No shares: the group's least valuable blocks go, whichever instance they belong to. */
	SKV_SHARE_GROUP,
	/* Unused shares may be borrowed. Victims come from the instance furthest over its share. */
	SKV_SHARE_PROPORTIONAL,
	/* No instance exceeds its share. Its starts evict its own blocks only, besides those of
	 * instances that exceed theirs (because it was lowered). */
	SKV_SHARE_FIXED,
};

/* Quota, placement and eviction for several instances. Everything but the name may change, with
 * immediate effect. 0 means no limit. */
struct skv_group_spec {
	const char *name;
	uint64_t capacity; /* limit for block data, bytes; 0 = only the storages' limits */
	/* In order of preference; at least one, unless loose_storages. */
	const char *const *storages;
	uint32_t n_storages;
	/* Eviction policy: a name of skv/policy.h; "" (or NULL) = the default, `reuse`. */
	const char *policy;
	/* Only for policy `ttl`, at least 1: blocks written longer ago are evicted. */
	uint64_t ttl_ms;
	bool loose_storages; /* storages need not exist (yet), and may be deleted */
	const struct skv_type_quota *quotas; /* at most one per type */
	uint32_t n_quotas;
	uint64_t max_blocks;    /* starts beyond it are refused; blocks being written count */
	uint32_t max_instances; /* registrations beyond it are refused */
	/* Background eviction while more than this is used. */
	uint64_t reclaim_bytes;
	uint64_t reclaim_blocks;
	/* Limit of a step per period: the larger of this many bytes and this percentage of the used
	 * bytes. 0 and 0: no limit. */
	uint64_t reclaim_step_bytes;
	uint32_t reclaim_step_percent;
	uint32_t reclaim_period_ms;
	/* Blocks not looked up for this long are evicted; for policies ordered by use: reuse,
	 * deferred, selective, lru. */
	uint64_t max_idle_ms;
	/* Watermarks as a storage's, of the group's capacity (or its storages', if less). */
	uint32_t high_percent;
	uint32_t low_percent;
	/* 0..100 of the same may be pinned hard, and of an instance's share of it; 0 = 50. */
	uint32_t pin_percent;
	enum skv_share share;
	/* The group whose fast tier this one is: its instances have copies of blocks of that one's,
	 * and are registered with them. Fixed when the group is made. "" (or NULL) = none. */
	const char *tier_of;
	bool write_through;   /* of a fast tier: writers of blocks are asked to write a copy, too */
	/* Of a fast tier: movers copy what was used so often, 1..SKV_MAX_PROMOTE; 0 = never. */
	uint32_t promote_after;
	/* Of a fast tier: movers copy every block, and a block whose location is lost survives in
	 * its copy. */
	bool replicate;
	uint64_t version;     /* the caller's own number, see skv_cluster_group_put */
	/* Opaque text of the API that created it, at most SKV_MAX_EXTRA bytes; "" if none. */
	const char *extra;
};

struct skv_spec {
	const char *name;
	uint64_t size; /* exact bytes, SKV_MIN_SPEC_SIZE..SKV_MAX_SPEC_SIZE */
};

/* A deployment of a model: the layout of its blocks. Fixed at registration, except `extra`,
 * `weight` and `capacity`, which take effect at once. */
struct skv_instance_spec {
	const char *tenant;
	const char *id;
	const char *group;
	uint32_t block_tokens; /* tokens per block, for display and KVCM; 0 = unknown */
	const struct skv_spec *specs;
	uint32_t n_specs;  /* 1..SKV_MAX_SPECS */
	const char *extra; /* opaque text, "" if none */
	/* Slots are at multiples of their own size, so that offset / size is an integer (KVCM's
	 * blkid). */
	bool numbered;
	bool named;    /* each block keeps the name given by its start, durably, for exports */
	/* In a group with shares; in an update 0 and 0 leave both unchanged. */
	uint32_t weight;   /* 1..SKV_MAX_WEIGHT, 0 = 1 */
	uint64_t capacity; /* share in bytes, 0 = by weight */
};

/* Borrowed bytes; p is not NULL even if n is 0. */
struct skv_bytes {
	const void *p;
	size_t n;
};

/* ---- locations ------------------------------------------------------------------------------- */

/* A slab file that an answer refers to. Clients map `uuid` to their own mount by the superblock
 * (skv/superblock.h) and open `path` below it. */
struct skv_file_ref {
	const char *storage; /* name */
	const char *type;    /* "file", "hf3fs" */
	/* Of the storage, or its root; "" for "null". NULL in what a client reads. */
	const char *client_root;
	char uuid[37];       /* of the storage, text form */
	char path[64];       /* relative to the storage's root */
};

/* Where one spec of one block is stored. `length` 0 = not stored (see the result's own comment). */
struct skv_location {
	uint32_t file; /* index into the answer's files[] */
	uint64_t offset;
	uint64_t length;
	uint64_t generation; /* number of this use of the slot; never repeated */
	uint64_t checksum;   /* skv_checksum of the bytes, when has_checksum */
	bool has_checksum;
};

struct skv_files {
	struct skv_file_ref *v;
	uint32_t n;
};

/* ---- lookups --------------------------------------------------------------------------------- */

/* Length of the longest present prefix, per instance. Takes no lease and does not count as use:
 * safe to poll. */
struct skv_match_req {
	const char *tenant;
	const char *const *instances;
	uint32_t n_instances;
	const struct skv_key *keys;
	uint32_t n_keys;
};
struct skv_match_res {
	uint32_t n_instances;
	const char *const *instances; /* the request's instances */
	uint32_t *matched;            /* leading keys present with all specs */
};

enum skv_lookup_mode {
	SKV_LOOKUP_PREFIX, /* stop at the first miss */
	SKV_LOOKUP_BATCH,  /* every key on its own */
	/* Only the last run of `window` consecutive hits is a hit (sliding-window attention). */
	SKV_LOOKUP_WINDOW,
	/* Each key by itself, for readers that will read only the last few hits (a window, a
	 * state), of unknown number. Hits that cannot be leased are misses, beginning with the
	 * first ones. The lookup does not count as use, because most hits will not be read. */
	SKV_LOOKUP_TRAILING,
	/* Attention layers and layers with a state (Mamba): the longest prefix whose keys all have
	 * `full_specs`, less `drop` keys; within it the last key that also has `state_specs`. The
	 * hits are the keys up to that last key; without such a key there is no hit. */
	SKV_LOOKUP_HYBRID,
};

#define SKV_LEASE_DEFAULT UINT32_MAX

/* Leased locations: until lease_ms after the request was *sent*, no returned slot is reused. */
struct skv_lookup_req {
	const char *tenant;
	const char *instance;
	enum skv_lookup_mode mode;
	const struct skv_key *keys;
	uint32_t n_keys;
	const char *const *specs; /* names; n_specs 0 = all of the instance */
	uint32_t n_specs;
	uint32_t lease_ms; /* 0 = none, SKV_LEASE_DEFAULT = the manager's; limited by the manager */
	bool partial;         /* a single spec suffices for a hit; not in HYBRID */
	bool skip_disabled;   /* specs on disabled storages count as absent, */
	bool files_only; /* and storages of type memory: the caller's clients only read files */
	/* Hits that cannot be leased for lease_ms (limited as above) are misses. */
	bool only_leased;
	/* The lease protects only the bytes at their offsets: if the group needs room the block may
	 * be evicted, and its slots wait for the end of the lease. */
	bool slots_only;
	bool peek;            /* no lease, no use: invisible to eviction */
	bool want_created;    /* fill created_ms */
	bool want_copies;     /* fill copy */
	bool runs;            /* JSON: see the result's */
	uint32_t window;      /* WINDOW: 1..n_keys */
	uint32_t full_specs;  /* HYBRID: bit per spec in order of registration; not 0 */
	uint32_t state_specs; /* HYBRID: the same */
	uint32_t drop;        /* HYBRID */
};
/* Only hits are leased and count as used (TRAILING: only leased). */
struct skv_lookup_res {
	uint32_t n_keys;  /* of the request */
	uint32_t matched; /* hits: PREFIX and HYBRID: leading ones; WINDOW: `window` or 0 */
	uint32_t n_specs; /* columns of loc */
	const char *const *specs; /* names of the specs */
	bool *hit;                /* [n_keys] */
	/* [n_keys * n_specs], valid where hit; partial and HYBRID: length 0 where
	 * the block has no such spec */
	struct skv_location *loc;
	/* [n_keys * n_specs], valid where hit: a copy in the fast tier of the group, with the same
	 * checksum and under the same lease; length 0 = none. NULL: there are none at all, or
	 * not wanted. */
	struct skv_location *copy;
	/* [n_keys] wall time, valid where hit, 0 = unknown; NULL unless wanted. */
	uint64_t *created_ms;
	uint32_t lease_ms;        /* granted; may be less than requested, 0 = none */
	bool runs; /* for the codec, not set by the core: JSON has runs of neighbours, too */
	struct skv_files files;
};

/* ---- two-phase write ------------------------------------------------------------------------- */

struct skv_start_req {
	const char *tenant;
	const char *instance;
	/* "" = none: the call is not idempotent; else a start with the same one and the same keys
	 * is answered with the session that the first has opened, while it is remembered. */
	const char *request_id;
	/* A chain, head first, unless `independent`; keys are distinct. */
	const struct skv_key *keys;
	uint32_t n_keys;
	bool has_parent;
	struct skv_key parent;    /* the block before keys[0]; none with `independent` */
	const char *const *specs; /* specs that this writer writes; n_specs 0 = all */
	uint32_t n_specs;
	/* [n_keys] specs that this writer writes of each key: bit per spec in order of
	 * registration, not 0. NULL = `specs` for all; else n_specs is 0. The session's specs
	 * (columns of locations and checksums) are those of any key. */
	const uint32_t *key_specs;
	uint32_t deadline_ms; /* 0 = the manager's default; limited by the manager */
	/* Grace for uncommitted slots after the deadline; the manager's own if that is longer. */
	uint32_t grace_ms;
	/* [n_keys] name of each block, 0..SKV_MAX_BLOCK_NAME bytes; NULL unless
	 * the instance is `named`. */
	const struct skv_bytes *names;
	/* [n_keys] the slots to take, by offset, in an instance of one spec on one `external`
	 * storage; NULL = any. One that is not free or does not exist: outcome NO_ROOM. For
	 * imports. */
	const uint64_t *offsets;
	/* If the room does not suffice for all blocks, the first ones are written: the others have
	 * the outcome NO_ROOM. */
	bool fit;
	/* With `fit`: all that are not EXISTS are written, or none; also none if one is BUSY. */
	bool whole;
	/* The keys are not a chain: none is the parent of another, and each is evicted by its own
	 * use alone. For blocks whose neighbours may be missing, e.g. states and windows of hybrid
	 * models, where only the last blocks of a prompt are stored and read. */
	bool independent;
	/* With `anonymous`: answered once appended, synced a little later: a power loss may undo
	 * it. */
	bool relaxed;
	/* The session is ended only by skv_core_finish_partial or its deadline, then forgotten. */
	bool anonymous;
	/* In an instance of one spec the manager may leave out the last blocks, with the outcome
	 * NOT_ADMITTED: blocks that could only replace earlier blocks of the same chain; and
	 * under a policy that admits (`selective`) all blocks from the first one on that is worth
	 * less than the block it would replace. Without `selective`, or with several specs, no
	 * block is left out; blocks of the request's own chain are then evicted if no others may
	 * be. Not with `whole` or `offsets`. */
	bool selective;
	/* The caller's protocol has no checksums: nothing goes to storages of type memory. */
	bool unsummed;
	/* Also return the locations of keys with outcome EXISTS, and count that as a use: no
	 * lease. */
	bool want_existing;
	/* Of the group's: the only one to take slots of; NULL = any. Not with `fit`, `selective` or
	 * request ids. */
	const char *storage;
	/* [n_avoid] storages to take no slots of, because the writer cannot write there. A request
	 * id does not cover this field. */
	const char *const *avoid;
	uint32_t n_avoid;
	bool runs; /* JSON: see the result's; no more part of it */
};

/* Each (key, spec) has one writer. A block written with some specs may get the other specs later,
 * even while the first are still being written. */
enum skv_start_outcome {
	SKV_START_WRITE,  /* write the locations with length > 0, then finish */
	SKV_START_EXISTS, /* all requested specs are committed: nothing to do */
	/* Nothing left to write, but other sessions are still writing, or it is being removed. */
	SKV_START_BUSY,
	SKV_START_NOT_ADMITTED, /* with `selective` only: not stored; continue without storing it */
	SKV_START_NO_ROOM,      /* with `fit` or `offsets` only: not now */
};

enum skv_session_state {
	SKV_SESSION_OPEN,
	SKV_SESSION_FINISHED,
	SKV_SESSION_ABORTED,
	SKV_SESSION_EXPIRED,
	SKV_SESSION_DELETED /* all that it wrote was deleted meanwhile, with all of its instance */
};

struct skv_start_res {
	char session[SKV_SESSION_ID_HEX + 1]; /* "" if there is nothing to write */
	enum skv_session_state state;         /* not OPEN: a repeated id; there are no locations */
	uint32_t deadline_ms;                 /* remaining; submit no write later */
	uint32_t n_keys;
	uint32_t n_specs;
	const char *const *specs;
	uint8_t *outcome;         /* [n_keys] enum skv_start_outcome */
	/* [n_keys * n_specs], length 0 = do not write this one; see want_existing. */
	struct skv_location *loc;
	uint32_t n_write;         /* keys with outcome WRITE */
	/* The instance that also gets the blocks once they are committed (`write_through`); "" or
	 * NULL = none. */
	const char *copy_instance;
	bool runs; /* as in a lookup's result */
	struct skv_files files;
};

/* Slots that a finish would commit: of each spec the first one, where the manager sees its file in
 * a directory of type `file`. */
struct skv_written_place {
	const char *root; /* of the storage, as the manager sees it */
	char path[64];    /* of the slab file, below it */
	uint64_t offset;
	uint64_t length;
};
struct skv_written_res {
	uint64_t since_ms; /* boot time of the start; 0: unknown, since it was before a recovery */
	struct skv_written_place v[SKV_MAX_SPECS];
	uint32_t n;
};

/* ---- moves ----------------------------------------------------------------------------------- */

/* Slots whose blocks are to move, for one mover: it reads the bytes at from[i], checks their
 * checksum, writes them to to[i] before the deadline, and finishes. A block stays where it is, and
 * is a hit, until then; it may be deleted or evicted meanwhile. */
#define SKV_MAX_MOVE_SLOTS 128u
struct skv_move_take_req {
	uint32_t max;         /* slots at most; 0 = SKV_MAX_MOVE_SLOTS */
	uint32_t deadline_ms; /* 0 = the manager's default; bounded by it */
	/* A scrub: slots to read and verify, of slab files whose last check began before
	 * check_before_ms (wall clock of the manager; 0 = now), the longest unchecked first. */
	bool check;
	uint64_t check_before_ms;
};
/* Where a scrub is. */
struct skv_scrub_progress {
	uint64_t now_ms; /* the manager's wall clock */
	uint64_t left_bytes; /* used bytes of slab files that are due */
	bool more; /* more blocks are due: ask again, even if this answer is empty */
};
struct skv_move_take_res {
	char move[SKV_SESSION_ID_HEX + 1]; /* "" = there is nothing to move now */
	bool checks; /* the slots are to be verified only: there is no `to` */
	struct skv_scrub_progress scrub;
	uint32_t deadline_ms; /* remaining; nothing may be written after */
	uint32_t n;
	struct skv_location *from; /* [n], each with a checksum */
	struct skv_location *to;   /* [n], of the same generations and checksums */
	struct skv_files files;    /* of both */
};

/* The same as it is told: locations in a form of their own, since all have a checksum. */
struct skv_move_file {
	const char *storage; /* name */
	const char *type;
	const char *uuid; /* of the storage, text form */
	const char *path; /* relative to its root */
};
struct skv_move_slot {
	uint32_t from_file; /* index into files */
	uint32_t to_file;
	uint64_t from_offset;
	uint64_t to_offset;
	uint64_t length; /* 0: the block is gone, nothing to copy */
	uint64_t generation; /* of the bytes: it stays */
	const char *checksum; /* skv_checksum of them, 16 hex digits */
};
struct skv_move_view {
	const char *move; /* id of the move; "" = nothing to move now */
	uint32_t deadline_ms;
	bool checks;
	struct skv_scrub_progress scrub;
	uint32_t n_files;
	const struct skv_move_file *files;
	uint32_t n_slots;
	const struct skv_move_slot *slots;
};

/* Ends a move. Slots that were copied are given to their blocks, if these are as they were. */
struct skv_move_finish_req {
	const char *move;
	uint32_t n_moved; /* of the move: all of its slots */
	/* [n_moved]: copied, and durable there; of a check: read whole, with the right checksum. */
	const bool *moved;
	const bool *damaged; /* [n_moved]: read whole, with a wrong checksum; NULL = none */
	bool quiesced; /* no write is in flight any more: other targets need no grace period */
};
struct skv_move_finish_res {
	uint32_t moved;
	uint32_t failed; /* not copied, or their blocks were removed meanwhile */
	uint32_t hidden; /* of these: damaged, and hidden now */
};

/* ---- damage ---------------------------------------------------------------------------------- */

/* A reader's report: a location of a lookup, read under its lease, had a wrong checksum. */
#define SKV_MAX_DAMAGED 256u
struct skv_damage {
	uint32_t key;     /* index into keys */
	const char *spec; /* "" or NULL: the instance's only one */
	/* Of the location: names the slot, be it the block's or its copy's in a fast tier. */
	uint64_t generation;
};
struct skv_report_req {
	const char *tenant;
	const char *instance;
	const struct skv_key *keys;
	uint32_t n_keys;
	uint32_t n_damaged;
	const struct skv_damage *damaged;
	/* The caller may delete there: the slots are hidden at once. Else movers check them
	 * first. */
	bool may_delete;
};
struct skv_report_res {
	uint32_t hidden; /* misses from now on, or read from their copies */
	uint32_t queued; /* a mover will check them */
	uint32_t stale;  /* no committed slot has that generation: nothing was done */
	uint32_t refused; /* too many wait for a check: report them when they are read again */
};

enum skv_mask_kind { SKV_MASK_ALL, SKV_MASK_COUNT, SKV_MASK_BITS };

struct skv_finish_req {
	const char *tenant;
	const char *instance; /* NULL = not checked; else the session must be this instance's */
	const char *session;  /* 32 hex digits */
	/* Which of the session's written blocks (request order, WRITE only) succeeded. */
	enum skv_mask_kind mask_kind;
	/* COUNT: the first so many; BITS: length of mask, must equal n_write. */
	uint32_t mask_count;
	const bool *mask;       /* BITS */
	uint32_t n_checksums;   /* 0, or n_write * n_specs of the session */
	const uint64_t *checksums; /* row per written block; columns not written are ignored */
	const bool *no_checksum;   /* [n_checksums]: true = this one is not given; NULL = all are */
	bool quiesced; /* no write is in flight any more: failed slots need no grace period */
};
struct skv_finish_res {
	enum skv_session_state state;
	uint32_t committed;
	uint32_t failed;
	/* Blocks that were deleted while they were written, among those that the session writes (0
	 * = the first), in order. They are not published, even if the finish reports success. */
	uint32_t n_deleted;
	const uint32_t *deleted; /* [n_deleted] */
};

struct skv_abort_req {
	const char *tenant;
	const char *instance; /* as for finish */
	const char *session;
	bool quiesced;
};

/* Ends single writes, by key and slot, in an instance of one spec on one `external` storage: for
 * protocols without sessions. Entries that do not match are ignored and counted: a key that is not
 * being written, or in another slot; a slot that nobody writes. So a repeated call changes nothing.
 * A session ends with its last write. */
struct skv_partial_req {
	const char *tenant;
	const char *instance;
	const struct skv_key *keys; /* [n_commit] written: to be committed */
	const uint64_t *offsets;    /* [n_commit] where */
	uint32_t n_commit;          /* 0..SKV_MAX_KEYS */
	/* [n_give_up] offsets of slots that were not written, or not completely. */
	const uint64_t *give_up;
	/* 0..SKV_MAX_KEYS; such a slot is free after its session's deadline and grace. */
	uint32_t n_give_up;
	/* As for a start; a call that gives up slots is still answered after a sync. */
	bool relaxed;
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
};
struct skv_delete_res {
	uint32_t deleted; /* blocks that existed */
	uint32_t writing; /* writes of open sessions given up */
	uint32_t pinned;  /* number of these that had a pin, now gone */
};

/* ---- documents of APIs ----------------------------------------------------------------------- */

/* A small text that an API keeps in the store; the core does not read it. */
struct skv_doc {
	const char *name;
	const char *text;
	uint64_t version; /* grows with each put */
};

/* ---- tokens ---------------------------------------------------------------------------------- */

/* A bearer token as an administrator adds it. Its text stays with whoever made it. */
struct skv_token_spec {
	const char *role;   /* "read", "write", "admin" */
	const char *tenant;
	const char *hash;   /* SHA-256 of the text, 64 hex digits */
	uint64_t expires_s; /* seconds since 1970; 0 = never */
	uint64_t keep_s;    /* time for which the previous token of this name is still accepted */
};
struct skv_token_view {
	char name[64];
	const char *source; /* "file", "store" */
	const char *role;
	char tenant[SKV_MAX_NAME + 1];
	uint64_t created_s, expires_s;
	bool expired;
	bool clear; /* the file has its text */
};

/* ---- tenants --------------------------------------------------------------------------------- */

/* The rights of a tenant. A group or storage that a tenant names belongs to the tenants that name
 * it; other tenants neither use nor see it. A group or storage that no tenant names is open to
 * all. */
struct skv_tenant_spec {
	const char *const *groups; /* groups in which the tenant may register instances */
	uint32_t n_groups;
	const char *const *storages; /* and name these in groups of its own */
	uint32_t n_storages;
	const char *const *own_groups; /* the same, and its administrators change these */
	uint32_t n_own_groups;
	const char *const *own_storages; /* the same, and they drain files of these */
	uint32_t n_own_storages;
	uint32_t max_instances;  /* without page spaces; 0 = 1000, of tenant default any number */
	uint32_t max_spaces;     /* page spaces of the hf3fs APIs; 0 as before */
	uint32_t requests_per_s; /* of all its callers, to one manager; 0 = any number, as below */
	uint64_t max_bytes;      /* of blocks, in all storages; beyond it its own blocks go first */
	uint64_t max_blocks;     /* blocks, including those being written; the same */
	uint32_t max_sessions;   /* open */
	uint32_t max_pins;       /* pinned blocks */
	uint32_t blocks_per_s;   /* named by its calls, to one manager */
	uint32_t weight;         /* of its share of a storage: 1..SKV_MAX_WEIGHT, 0 = 1 */
	uint64_t max_held_bytes; /* by its large calls at a time, at one manager */
};
/* A tenant's usage of these limits, at the manager that is asked. */
struct skv_tenant_use {
	uint64_t bytes;
	uint64_t blocks;
	uint64_t sessions;
	uint64_t pins;
	uint64_t instances;
	uint64_t spaces;
	uint64_t held_bytes;
};
struct skv_tenant_view {
	char name[SKV_MAX_NAME + 1];
	struct skv_tenant_spec spec;
	struct skv_tenant_use use;
};

/* ---- managers of one store ------------------------------------------------------------------- */

#define SKV_MEMBER_ID 192 /* bytes; of a process: "host:pid:..." */

struct skv_member_view {
	char id[SKV_MEMBER_ID];
	const char *url; /* where managers reach it */
	bool draining;   /* as last published */
};
/* A partition, as known to the manager that is asked. */
struct skv_member_partition {
	uint32_t number;
	const char *state; /* as of skv_stats */
	char owner[SKV_MEMBER_ID]; /* "" = nobody, or not known yet */
	bool loaded;       /* owned here, or followed */
	uint64_t record;   /* newest of the journal that is applied here */
	uint64_t behind;   /* records that are not applied yet */
	uint64_t blocks;   /* of the owner only, as the following members */
	uint32_t groups;
	uint64_t epoch;  /* grows with each ownership */
	const char *url; /* where clients reach the owner; "" = it does not tell */
	const char *home; /* url of the member that it was moved to; "" = none */
};
extern const char *const skv_state_texts[]; /* of enum skv_core_state, ends with NULL */
struct skv_cluster_view {
	char id[SKV_MEMBER_ID]; /* of the manager that is asked */
	const char *version;
	const char *state;
	bool draining; /* the manager owns no partition and will acquire none */
	struct skv_member_view *members; /* present members, including this one */
	uint32_t n_members;
	struct skv_member_partition *partitions;
	uint32_t n_partitions;
};
struct skv_drain_spec {
	bool draining;
};
/* A partition is moved to a member, as long as that is there. */
struct skv_home_spec {
	uint32_t partition;
	const char *member; /* url of the member; "" = to none */
};

/* ---- pins ------------------------------------------------------------------------------------ */

enum skv_pin_kind {
	SKV_PIN_NONE,
	SKV_PIN_SOFT, /* evicted only when nothing else can be */
	SKV_PIN_HARD, /* is not evicted */
};

/* Protects blocks from eviction: those of the keys that exist now, usually a prefix. A block has
 * one pin: hard wins over soft, of equal kinds the later expiry, so repeating a call changes only
 * the expiry. A pin covers all that is or will be written of its block, and is durable: after a
 * restart its remaining time starts anew. A delete, trim or clear removes the block and its pin. */
struct skv_pin_req {
	const char *tenant;
	const char *instance;
	const struct skv_key *keys;
	uint32_t n_keys;        /* 1..SKV_MAX_KEYS */
	bool hard;              /* SKV_PIN_HARD, else SOFT */
	/* 0 = until unpinned, HARD only; else up to SKV_MAX_PIN_MS. May expire two seconds late. */
	uint64_t ttl_ms;
};
/* All keys that exist are pinned, or (on error) none. */
struct skv_pin_res {
	uint32_t n_keys;
	uint32_t pinned;
	bool *missing; /* [n_keys] absent, or being removed: not pinned */
};

/* Removes pins of either kind. */
struct skv_unpin_req {
	const char *tenant;
	const char *instance;
	const struct skv_key *keys;
	uint32_t n_keys;
	bool all; /* in place of keys: all that the instance has */
};
struct skv_unpin_res {
	uint64_t unpinned; /* blocks that were pinned */
};

/* A page of an instance's pins, in no particular order. */
struct skv_pins_req {
	const char *tenant;
	const char *instance;
	uint64_t cursor; /* 0 = start, else `next` of the previous page */
	uint32_t max;    /* 1..SKV_MAX_KEYS */
};
/* Pins that come and go between two pages may cause others to be missed or repeated. */
struct skv_pins_res {
	uint32_t n;
	struct skv_key *key; /* [n] */
	uint8_t *kind;       /* [n] enum skv_pin_kind */
	uint64_t *ttl_ms;    /* [n] time left, at least 1; 0 = until unpinned */
	uint64_t next;       /* 0 = that was the last page */
};

/* A page of the keys of an instance's committed blocks, in no particular order: see
 * skv_export_req. */
struct skv_keys_res {
	uint32_t n;
	struct skv_key *key; /* [n] */
	uint64_t next;       /* cursor of the next page; 0 = that was the last */
};

/* Deletes blocks, started before the call, by the start time of their oldest spec. Times are as
 * reported in created_ms: to the millisecond for young blocks, to a 150th of their age for old
 * ones. */
struct skv_trim_req {
	const char *tenant;
	const char *instance;
	uint64_t from_ms; /* wall time, inclusive */
	uint64_t to_ms;   /* likewise; UINT64_MAX = up to now */
};
struct skv_trim_res {
	uint64_t deleted; /* blocks that existed */
	uint64_t writing; /* writes of open sessions given up */
};

/* Deletes all blocks of an instance at once; its registration stays. Writes in progress are given
 * up. */
struct skv_clear_req {
	const char *tenant;
	const char *instance;
};
struct skv_clear_res {
	uint64_t deleted; /* blocks that existed */
};

/* Removes everything that is stored or being written for some instances from before the call: one
 * clear each. Exactly one of the last four is given. */
struct skv_purge_req {
	const char *tenant; /* tenant whose instances are listed; "" = all tenants' */
	const char *const *instances; /* names of the instances */
	uint32_t n_instances;
	const char *prefix; /* or how their names begin, "" = not given; the same for the next */
	const char *group;
	const char *whose; /* tenant */
};
struct skv_purge_res {
	uint32_t n_instances;
	const char *const *instances; /* names of the instances */
	uint64_t blocks;   /* blocks that existed */
	uint64_t sessions; /* open ones: their writes are not published */
};

/* A page of an instance's committed blocks, in no particular order. */
struct skv_export_req {
	const char *tenant;
	const char *instance;
	uint64_t cursor; /* 0 = start, else `next` of the previous page, which is below 2^63 */
	uint32_t max;    /* 1..SKV_MAX_KEYS; a page may be somewhat smaller, or empty */
	/* Without names and locations: only n, key, use and next are set, n_specs is 0. */
	bool keys_only;
};
/* Each block that exists throughout is listed exactly once. */
struct skv_export_res {
	uint32_t n;
	uint32_t n_specs;        /* of the instance: columns of loc */
	struct skv_key *key;     /* [n] */
	struct skv_bytes *name;  /* [n] empty unless the instance is `named` */
	struct skv_location *loc; /* [n * n_specs], length 0 = absent */
	uint64_t *use;           /* [n] larger = used later */
	uint64_t next;           /* 0 = that was the last page */
	struct skv_files files;
};

enum skv_slot_state { SKV_SLOT_ABSENT, SKV_SLOT_WRITING, SKV_SLOT_COMMITTED, SKV_SLOT_REMOVING };

/* State of some keys, spec by spec. */
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
	/* likewise; length 0 = absent. Readable only if committed, and not without a lease. */
	struct skv_location *loc;
	uint64_t *created_ms;     /* [n_keys] wall time; 0 = absent, or unknown */
	/* want_parents: [n_keys] the previous key in its chain; NULL = unknown. */
	const struct skv_key **parent;
	struct skv_files files;
};

/* Requests blocks in another storage. Movers copy or move them later; until then nothing is
 * durable, and a request may be forgotten. */
struct skv_want_req {
	const char *tenant;
	const char *instance;
	const char *from; /* storage that they lie in; "" = whichever */
	/* A storage of the fast tier of their group, or "": any of it. They are to have copies
	 * there. With `may_move` also another storage of their group: they are to lie there. */
	const char *to;
	bool may_move;
	const struct skv_key *keys;
	uint32_t n_keys; /* 0: a sample of blocks in `from`: */
	uint32_t sample; /* at most this many */
};
enum skv_want_outcome {
	SKV_WANT_ASKED,      /* a mover will be told; it may be at work already */
	SKV_WANT_THERE,      /* a copy of the block, or the block itself, is already there */
	SKV_WANT_ABSENT,     /* no such block, or not all of it */
	SKV_WANT_ELSEWHERE,  /* not in `from` */
	SKV_WANT_BUSY,       /* being written, or moved */
	SKV_WANT_UNSUMMED,   /* without a checksum, which a mover needs */
	SKV_WANT_UNREADABLE, /* the block's storage or slab file cannot be read now */
	SKV_WANT_FULL,       /* too many are waiting for movers */
	SKV_WANT_OUTCOMES
};
struct skv_want_res {
	uint8_t *outcome;                  /* [n_keys] enum skv_want_outcome; NULL of a sample */
	uint32_t count[SKV_WANT_OUTCOMES]; /* how many of each */
};

/* ---- views ----------------------------------------------------------------------------------- */

struct skv_block_view {
	struct skv_key key;
	bool has_parent;
	struct skv_key parent;
	uint32_t children;
	uint64_t created_ms;  /* wall time */
	uint64_t idle_ms;     /* since the last lookup, or the commit */
	uint32_t lease_ms;    /* remaining */
	uint32_t n_specs;     /* of the instance */
	const char *const *specs;
	const char **state;       /* "absent" | "writing" | "committed" | "deleting" */
	struct skv_location *loc; /* [n_specs], length 0 when absent */
	struct skv_files files;
};

/* An administrator's request for a slab file. */
struct skv_file_wish {
	uint32_t file;
	bool draining;
	bool move;   /* draining: movers copy its blocks elsewhere, none is evicted */
	bool forget; /* give up the damaged file with its blocks */
};

/* A slab file. Texts are constants. */
struct skv_file_view {
	uint32_t file; /* number, never reused */
	uint64_t length;
	/* "used", "draining", "removing" (empty by now), "bad" (its blocks are misses). */
	const char *state;
	/* Why it drains: "asked", "capacity" (exceeds it), "storage" (drains), "lost" (given up);
	 * why it is bad: "missing", "damaged", "unreadable"; else "". */
	const char *why;
	const char *waits_for; /* reason why the drain waits; "" = none */
	uint64_t assigned_bytes;    /* in slabs */
	uint64_t used_bytes;        /* slots of live blocks and open sessions */
	uint64_t quarantined_bytes; /* slots waiting for a lease or a grace period to end */
};

struct skv_storage_view {
	struct skv_storage_spec spec;
	char uuid[37];
	bool healthy;
	const char *problem; /* sentence with the remedy; also of a healthy one; "": none */
	uint32_t groups;            /* groups that name this storage */
	uint32_t files;
	uint32_t draining_files;    /* of them */
	uint32_t bad_files;         /* of these: lost or damaged */
	uint64_t file_bytes;        /* slab files created so far */
	uint64_t assigned_bytes;    /* in slabs */
	uint64_t used_bytes;        /* slots of live blocks and open sessions */
	uint64_t quarantined_bytes; /* slots waiting for a lease or a grace period to end */
	/* Bytes that slab files can use: the capacity, or less if the file system has no more. */
	uint64_t available_bytes;
	uint64_t free_bytes;        /* available_bytes - assigned_bytes; of a draining one 0 */
	/* Bytes the file system has for more slab files; UINT64_MAX: unbounded, or not known
	 * yet. */
	uint64_t fs_free_bytes;
	/* Of type memory: age of the oldest write that has not ended; for /metrics only, as the
	 * following. */
	uint64_t writing_ms;
	/* Scrubs: slab files never checked whole; the greatest age of the other files' last check
	 * (its begin); checked slots, and those without a checksum. */
	uint64_t scrub_unchecked_files;
	uint64_t scrub_oldest_ms;
	uint64_t scrub_slots;
	uint64_t scrub_unsummed_slots;
};
/* Protected blocks count as whole blocks: those pinned hard, soft, leased (an estimate: granted in
 * the current lease window); writes of open sessions count in bytes. Counters start when the
 * manager loads the partition. */
struct skv_group_view {
	struct skv_group_spec spec;
	const char *fast; /* fast tier of the group; "" (or NULL) = none */
	uint64_t used_bytes;
	uint64_t blocks;
	/* Bytes the group may use: the smaller of its and its storages' capacity. */
	uint64_t room_bytes;
	uint64_t pinned_bytes;
	uint64_t soft_pinned_bytes;
	uint64_t leased_bytes;
	uint64_t open_bytes;
	uint64_t evicted_blocks;
	uint64_t hits; /* keys that lookups found */
};
/* How a spec's slots are laid out on the chunks of a storage. Writing part of a 3FS chunk reads and
 * rewrites all of it. */
struct skv_placement {
	const char *storage;
	const char *spec;
	/* "whole" chunks; "rounded" up to chunks; packed in "segments"; "copied": not
	 * chunk-aligned. */
	const char *fit;
	uint64_t slot_bytes;   /* distance between slots */
	uint64_t wasted_bytes; /* unused bytes in each slot */
	uint64_t copied_bytes; /* rewritten for each slot written, on average */
};
#define SKV_FITS(X) \
	X(WHOLE, "whole") X(ROUNDED, "rounded") X(SEGMENTS, "segments") X(COPIED, "copied")

struct skv_instance_view {
	struct skv_instance_spec spec;
	/* each spec on each storage of the group that has chunks */
	const struct skv_placement *placements;
	uint32_t n_placements;
	/* Sizes of slots on the storage where the spec that has least room has most, those of all
	 * instances; how many more like this one find a slab there. */
	uint64_t layouts;
	uint64_t layouts_left;
	const char *warning; /* a sentence: layouts may find no room; "" (or NULL): none */
	uint64_t blocks;
	uint64_t used_bytes;
	uint64_t open_sessions;
	uint64_t open_bytes;   /* of open sessions */
	uint64_t leased_bytes; /* as a group's, like the following */
	uint64_t share_bytes;  /* share of the group; 0 if the group does not divide its capacity */
	uint64_t pinned_bytes;
	uint64_t soft_pinned_bytes;
	uint64_t evicted_blocks;
	uint64_t hits;
	/* Since a registration, lookup or start has named it; time without an owner does not
	 * count. */
	uint64_t unused_ms;
};

/* A part of a list, which is in order of the names' bytes. */
struct skv_page {
	const char *after; /* `next` of the part before; "" or NULL: from the first one */
	uint32_t limit;    /* objects, 1..SKV_MAX_PAGE */
	uint32_t bytes;    /* the page ends with the object that exceeds this size */
	bool brief;        /* without `extra` */
	/* NULL: all objects, of all tenants. Else this tenant's instances and page spaces, and the
	 * other storages and groups for which `sees` returns true; `sees` must not call the
	 * core. */
	const char *tenant;
	bool (*sees)(void *ctx, bool is_storage, const char *name);
	void *ctx;
};
/* Moves on to the next page; false: that was the last one. */
static inline bool skv_page_next(struct skv_page *page, const char *next)
{
	page->after = next;
	return next && *next;
}
#define SKV_PAGE { .limit = SKV_MAX_PAGE, .bytes = SKV_PAGE_BYTES }

/* Of the lists, which are the first page of each, how many there are in all. */
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
	uint64_t all_storages;
	uint64_t all_groups;
	uint64_t all_instances;
};

/* Pages of lists, as they are told. `next` is where the list goes on; "" (or NULL): nowhere. */
#define SKV_LIST_OF(kind)                                                                          \
	struct skv_##kind##_list {                                                                 \
		struct skv_##kind##_view *kind##s;                                                 \
		uint32_t n_##kind##s;                                                              \
		const char *next;                                                                  \
	};
SKV_LIST_OF(storage)
SKV_LIST_OF(file)
SKV_LIST_OF(group)
SKV_LIST_OF(instance)
SKV_LIST_OF(token)
SKV_LIST_OF(tenant)

#endif
