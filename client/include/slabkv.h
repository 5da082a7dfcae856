/*
 * slabkv.h - C client of slabkv, the manager of KV-cache blocks.
 *
 * The manager knows where every block lies; it never sees a byte of one. This library asks it over
 * HTTP, then moves the bytes itself between the caller's buffers and the slab files on a mount of
 * this machine:
 *
 *	slabkv_put   start (slots are handed out), write, sync, finish
 *	slabkv_get   lookup (locations under a lease), read, verify the checksum
 *
 * What slabkv_get calls a hit are the bytes that were put, or it is not called a hit: a flipped
 * byte, a short file, a wrong mount, a lease that ran out all read as a miss. Nothing waits longer
 * than the caller's timeout on the manager; reads and writes wait as long as the file system does.
 *
 * Threads: a `struct slabkv *` may be used by any number of threads at a time; calls are
 * synchronous, each uses its own connection. slabkv_async_open gives a queue for operations that
 * complete later. slabkv_close must be the last use. Everything else
 * (options, results, buffers) belongs to one call at a time.
 *
 * Errors: functions return SLABKV_OK or a negative SLABKV_E_* of the list below, and no other number; `err`
 * (may be NULL) then holds the sentence. Any call may end with SLABKV_E_INVALID, _NOMEM, _INTERNAL, and one that
 * asks the manager also with _NETWORK, _TIMEOUT, _NOT_READY, _NOT_OWNER, _UNAUTHENTICATED, _FORBIDDEN or
 * _UNKNOWN_OUTCOME; each function names the others that tell its caller something. Outputs are set only on
 * SLABKV_OK unless said otherwise. Results that are returned through a pointer to pointer are read-only and
 * released with slabkv_free.
 *
 * Growth: structs get new members at their end, and programs that were built before go on working.
 *	- A struct that the caller provides begins with `size`: its size as the caller was built, sizeof x. Members
 *	  that are 0 or NULL mean what they say at their place; memory behind `size` is not looked at.
 *	  Too small a size is SLABKV_E_INVALID, field "size".
 *	- Elements of arrays have no size; what takes or gives the array has their distance (`..._size`), given as
 *	  sizeof *array. Elements of results are reached with SLABKV_AT.
 *	- struct slabkv_error, slabkv_key and slabkv_buf never change.
 *
 * Units: bytes and milliseconds. Strings are NUL-terminated UTF-8 and borrowed for the call. Names
 * of storages, groups, instances and specs: 1..127 of [A-Za-z0-9._:=@+,-], beginning with a letter, digit or '_'.
 * An instance's may be a model's: such parts with a '/' between them, 127 characters in all ("Qwen/Qwen3-32B").
 *
 * After fork a handle, a queue or a pool belongs to the parent alone: in the child every call with it is
 * SLABKV_E_INVALID, field "handle", and to close it does nothing. With the engine "usrbio" the child should call exec
 * soon: what it has inherited keeps the parent's memory with the FUSE daemon alive.
 *
 * A fault of the library's own: where it finds something untrue that it relies on, it logs the place and takes the
 * handle out of use instead of ending the process: from then on each lookup and get is a miss with SLABKV_E_INTERNAL,
 * field "handle", and so is every other call an error. To close it is still right, and another handle may be opened.
 */
#ifndef SLABKV_H
#define SLABKV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLABKV_API __attribute__((visibility("default")))

/* Version of this header. */
#define SLABKV_VERSION_MAJOR 0
#define SLABKV_VERSION_MINOR 1
#define SLABKV_VERSION_PATCH 0
#define SLABKV_VERSION "0.1.0"
/* For comparing: 0x00MMmmpp. */
#define SLABKV_VERSION_NUMBER \
	((uint32_t)((SLABKV_VERSION_MAJOR << 16) | (SLABKV_VERSION_MINOR << 8) | SLABKV_VERSION_PATCH))
/* The same of the library that is loaded. Static. */
SLABKV_API const char *slabkv_version(void);
SLABKV_API uint32_t slabkv_version_number(void);

/* Element i of an array in a result whose elements lie `stride` bytes apart: SLABKV_AT(struct slabkv_location, l->loc,
 * l->loc_size, i). */
#define SLABKV_AT(type, array, stride, i) \
	((const type *)(const void *)((const char *)(array) + (size_t)(stride) * (size_t)(i)))

#define SLABKV_MAX_KEYS 16384u /* keys in one call */
#define SLABKV_MAX_SPECS 32u   /* specs of one instance */

/* ---- errors ---------------------------------------------------------------------------------- */

/* The manager's answers and the library's own. slabkv_code gives the code as it stands on the
 * wire. */
enum slabkv_status {
	SLABKV_OK = 0,
	SLABKV_E_INVALID = -1,         /* an argument is not valid; err.field names it */
	SLABKV_E_UNAUTHENTICATED = -2, /* no valid token */
	SLABKV_E_FORBIDDEN = -3,       /* the token's role does not allow it */
	SLABKV_E_NOT_FOUND = -4,
	SLABKV_E_METHOD = -5,
	SLABKV_E_CONFLICT = -6, /* the object exists with other content */
	SLABKV_E_IN_USE = -7,
	SLABKV_E_SESSION_EXPIRED = -8, /* the deadline has passed: nothing was committed */
	SLABKV_E_SESSION_ENDED = -9,
	SLABKV_E_TOO_LARGE = -10, /* over a limit, e.g. SLABKV_MAX_KEYS */
	SLABKV_E_TOO_MANY = -11,
	SLABKV_E_INTERNAL = -12,
	SLABKV_E_UNSUPPORTED = -13,
	SLABKV_E_NOT_READY = -14,
	SLABKV_E_NOT_OWNER = -15,
	SLABKV_E_JOURNAL_FULL = -16,
	SLABKV_E_STORE_FULL = -17,
	SLABKV_E_STORE_IO = -18,
	SLABKV_E_UNKNOWN_OUTCOME = -19, /* it may or may not have happened */
	SLABKV_E_UNAVAILABLE = -20,     /* no healthy storage; or no mount of it on this machine */
	SLABKV_E_NO_SPACE = -21,
	SLABKV_E_QUOTA = -22,
	SLABKV_E_NOMEM = -23,   /* here or at the manager */
	SLABKV_E_CORRUPT = -24, /* a superblock is damaged */
	SLABKV_E_FOREIGN = -25, /* the directory or file is not that storage's */
	SLABKV_E_IO = -26,
	SLABKV_E_TIMEOUT = -27,
	SLABKV_E_FENCED = -28,
	SLABKV_E_NETWORK = -29, /* no manager could be reached */
	SLABKV_E_MISMATCH = -30,
};

/* What went wrong, for a person. */
struct slabkv_error {
	int code;          /* enum slabkv_status */
	char field[96];    /* the field of the request that is meant, or "" */
	char message[320]; /* a sentence; "" with SLABKV_OK */
};

/* Short stable name of a status ("not_found"). Static, never NULL. */
SLABKV_API const char *slabkv_code(int status);
/* One sentence about a status. Static, never NULL. */
SLABKV_API const char *slabkv_text(int status);

/* ---- handle ---------------------------------------------------------------------------------- */

/* A handle: connections, mounts and open slab files. */
struct slabkv;

/* Bytes that were read do not have the checksum of the bytes that were written. */
struct slabkv_mismatch {
	const char *instance;
	uint32_t key;     /* index into the call's keys */
	const char *spec; /* name */
	const char *storage;
	const char *path; /* of the slab file, relative to the storage's root */
	uint64_t offset;
	uint64_t length;
	uint64_t generation;
};

/* How to reach the managers and the storages. From slabkv_options_init, or, for programs that set all by name, from
 * slabkv_options_new. All strings are copied by slabkv_open; the callbacks and their contexts must live as long as
 * the handle. */
struct slabkv_options {
	size_t size; /* of this struct as the caller was built; set by slabkv_options_init and slabkv_options_new */
	/* Managers, "http://host:port", or "host:port". The next is tried when one cannot be reached, is not ready
	 * or does not own the partition. NULL and 0: http://127.0.0.1:7333. At most 16. */
	const char *const *urls;
	uint32_t n_urls;
	const char *token; /* bearer token, or NULL */
	/* For one call to a manager, retries included. Default 10000. */
	uint32_t timeout_ms;
	/* Rounds over all managers before a call gives up, also when time is left. Default 12.
	 * Waits between rounds: 50 ms, doubling up to 1 s. */
	uint32_t rounds;
	/* Directories where storages are mounted on this machine; each is recognised by the marker
	 * `slabkv-storage` in it. NULL and 0: the root that the manager names is tried, and used
	 * only if its marker proves that it is the same storage. At most 64. */
	const char *const *mounts;
	uint32_t n_mounts;
	bool verify;        /* compare checksums of what is read. Default true */
	bool checksum;      /* give checksums with what is written. Default true */
	/* How bytes are moved. "posix": preadv and pwritev, through the page cache. "uring":
	 * io_uring, past the page cache (O_DIRECT) where the place in the file and the buffers are
	 * aligned to pages. "usrbio": 3FS's native interface for files on 3FS, as "auto" for others.
	 * "auto": usrbio for files on 3FS where its client library is, else uring where the kernel
	 * allows it, else posix. NULL: what the environment says in SLABKV_ENGINE, else "auto". Where
	 * uring cannot work, or 3FS's library is not there, another takes its place; slabkv_engine
	 * tells. */
	const char *engine;
	/* Called at the end of every call to a manager, on the caller's thread (of an asynchronous
	 * operation: on a thread of the library, which must not be held up): `op` ("lookup",
	 * "start", "finish", "match", ...; static), its duration with all retries in microseconds,
	 * its result. */
	void (*on_call)(void *ctx, const char *op, uint64_t us, int status);
	void *on_call_ctx;
	/* Called for every mismatch, on the caller's thread, before the call returns. */
	void (*on_mismatch)(void *ctx, const struct slabkv_mismatch *m);
	void *on_mismatch_ctx;
	/* Requests that "uring" keeps in flight in one call, at most 1024. 0: 64. */
	uint32_t depth;
	/* How requests travel: "protobuf" (default, also NULL) or "json". A manager that does not
	 * read protobuf is spoken to in JSON from then on. */
	const char *codec;
	/* Of asynchronous queues that are opened without options of their own. 0: their defaults. */
	uint32_t async_threads;
	uint32_t async_in_flight;
	void *owned; /* of slabkv_options_new: never touch it */
	/* The engine "usrbio". Shared memory of a process: read_iov_size + write_iov_size + a little for each ring.
	 * slabkv_option tells ranges and defaults. */
	const char *hf3fs_lib; /* 3FS's client library; NULL: $HF3FS_LIB, else as the linker finds it */
	/* Where 3FS is mounted. NULL: found by the first file. A handle uses one 3FS. */
	const char *hf3fs_mount_point;
	/* Directories of storages, separated by commas: the same as `mounts`. Blocks spread over the
	 * storages of their group. NULL: none. */
	const char *hf3fs_base_path;
	uint64_t hf3fs_read_iov_size;  /* bytes of buffers for reads; all calls share them */
	uint64_t hf3fs_write_iov_size; /* for writes */
	uint64_t hf3fs_read_io_size;   /* bytes of one request at most */
	uint64_t hf3fs_write_io_size;
	uint32_t hf3fs_ior_entries;   /* requests in flight in a ring */
	int32_t hf3fs_io_depth;       /* at most so many are executed together (the sign is ignored); 0: all */
	int32_t hf3fs_numa_id;        /* of buffers and rings; -1: anywhere */
	uint32_t hf3fs_io_thread_num; /* pairs of rings, each used by one thread at a time */
	/* A request that is not back after so long is given up: a read is a miss, a write fails and its
	 * slot rests. 3FS itself tries for 60 s. Its memory stays away until it is back; a read that goes
	 * straight into memory of the caller's is waited for until it is, or the daemon's process has ended. */
	uint32_t hf3fs_read_timeout_ms;
	uint32_t hf3fs_write_timeout_ms;
	/* Certificates to trust for https, in PEM. NULL: $SSL_CERT_FILE, else where systems have them. */
	const char *ca_file;
};

/* Fills *o, of `size` bytes, with the defaults. */
SLABKV_API void slabkv_options_init(struct slabkv_options *o, size_t size);
/* Options on the heap, with the defaults, for languages that do not know the struct: set by name, released with
 * slabkv_options_free after slabkv_open (or instead of it). NULL: no memory. */
SLABKV_API struct slabkv_options *slabkv_options_new(void);
SLABKV_API void slabkv_options_free(struct slabkv_options *o);

/* Sets one option by its name, as connectors and their users know it ("hf3fs_io_depth", "-8"). Texts of options from
 * slabkv_options_new are copied, others are borrowed until slabkv_open. Lists ("urls", "mounts") are separated by
 * commas and need slabkv_options_new. Sizes: "200M", powers of 1024; booleans: true, false, 1, 0. SLABKV_E_INVALID:
 * err.field is the name, the message says what it may be; *o is unchanged. */
SLABKV_API int slabkv_options_set(struct slabkv_options *o, const char *name, const char *value,
				    struct slabkv_error *err);

/* A name that slabkv_options_set knows. Static. */
struct slabkv_option {
	const char *name;
	const char *range; /* "128..1024"; "a path" */
	const char *value; /* the default; "" = none */
	const char *meaning;
};
/* The i-th of them, from 0 on; NULL after the last. */
SLABKV_API const struct slabkv_option *slabkv_option(uint32_t i);
/* The two callbacks, for programs that do not know the struct. fn NULL: none. */
SLABKV_API void slabkv_options_on_call(struct slabkv_options *o,
				       void (*fn)(void *ctx, const char *op, uint64_t us, int status), void *ctx);
SLABKV_API void slabkv_options_on_mismatch(struct slabkv_options *o,
					   void (*fn)(void *ctx, const struct slabkv_mismatch *m), void *ctx);

/* Makes a handle; `o` NULL: the defaults. Contacts nobody: a manager that is down is found at the first call.
 * SLABKV_E_INVALID (field names the option). */
SLABKV_API int slabkv_open(const struct slabkv_options *o, struct slabkv **out,
			     struct slabkv_error *err);
/* Releases a handle. NULL is allowed. No call may be running. Asynchronous queues that are still open
 * are closed first (slabkv_async_close) and must not be used any more. */
SLABKV_API void slabkv_close(struct slabkv *kv);

/* The engine in use: "posix", "uring", or "usrbio" once a file on 3FS is open (or from the begin, when it was
 * asked for by name with hf3fs_mount_point). *why (may be NULL): the reason why it is not the one that was asked
 * for, or "". Both belong to the handle. */
SLABKV_API const char *slabkv_engine(const struct slabkv *kv, const char **why);

/* Releases any result of this library (whatever was returned through a pointer to pointer). NULL is
 * allowed. Any thread; results may outlive the handle. */
SLABKV_API void slabkv_free(const void *result);

/* ---- objects that are registered once -------------------------------------------------------- */

/* A put changes what it names and leaves the rest, also what other APIs have set. In the structs of puts a member
 * that is 0 or NULL is not named: what is there already keeps what it has, what is new gets the manager's default.
 * To set a number to 0 say SLABKV_NONE; to empty a text say "", a list a pointer that is not NULL with no elements. */
#define SLABKV_NONE UINT64_MAX

/* Of a put; what is read back is YES or NO. */
enum slabkv_switch { SLABKV_KEEP = 0, SLABKV_YES = 1, SLABKV_NO = 2 };

/* A place for blocks. Everything but `capacity`, `enabled`, `draining`, the marks, `fs_master`, `client_root` and
 * `client_mount` is fixed once made. */
struct slabkv_storage {
	size_t size;
	const char *name;   /* needed */
	const char *type;   /* "file" (slab files below root; the default), "hf3fs" (the same on a 3FS mount),
			       "null" (addresses without bytes) */
	const char *root;   /* absolute directory on the manager's machine; "" for "null" */
	uint64_t capacity;  /* bytes of slab files at most; a multiple of the unit. A new one needs it */
	uint64_t file_size; /* bytes of one slab file */
	uint64_t unit;      /* slab unit in bytes, power of two (default 64 MiB) */
	enum slabkv_switch enabled;  /* NO: takes no new blocks (default YES) */
	enum slabkv_switch draining; /* YES: no new blocks, those there are evicted, its files go (default NO) */
	/* Eviction in the background begins when blocks use more than `high` percent of the capacity and ends at `low`;
	 * high 100: none. */
	uint64_t high_percent;
	uint64_t low_percent;
	const char *client_root;  /* `root` as clients see it, for APIs that name whole paths */
	const char *client_mount; /* the mount point there */
	/* Of "hf3fs": */
	uint64_t chunk_size;          /* bytes: what the directory must say; not named: it is asked */
	enum slabkv_switch any_mount; /* YES: a mount that is not 3FS will do */
	const char *const *fs_master; /* "http://host:port/DIR" of fs-masters that work there for the manager */
	uint32_t n_fs_master;
};

/* A storage as the manager sees it now. */
struct slabkv_storage_info {
	const struct slabkv_storage *spec; /* all members set */
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

/* How the capacity of a group is divided among its instances (docs/EVICTION.md). */
enum slabkv_share {
	SLABKV_SHARE_KEEP,         /* of a put: not named */
	SLABKV_SHARE_GROUP,        /* not at all (default) */
	SLABKV_SHARE_PROPORTIONAL, /* by weight; what others leave may be borrowed */
	SLABKV_SHARE_FIXED,        /* by weight, and no more */
};

/* Quota and placement for several instances. All but the name may change. */
struct slabkv_group {
	size_t size;
	const char *name;            /* needed */
	uint64_t capacity;           /* bytes of blocks at most; NONE (default): only the storages limit */
	const char *const *storages; /* names, preferred first; a new one needs at least one */
	uint32_t n_storages;
	const char *policy; /* which blocks go first when room is needed, by name; "" = the manager's default */
	uint64_t ttl_ms;    /* of policy "ttl", which needs it, and of no other: blocks written longer ago go */
	uint64_t max_idle_ms;   /* blocks that nobody has looked up for so long go; NONE (default): never */
	uint64_t max_blocks;    /* NONE (default): no bound */
	uint64_t max_instances; /* NONE (default): no bound */
	uint64_t high_percent;  /* as a storage's, of the group's capacity */
	uint64_t low_percent;
	uint64_t pin_percent; /* of the capacity may be pinned hard, 0..100 (default 50) */
	enum slabkv_share share;
};

struct slabkv_group_info {
	const struct slabkv_group *spec; /* all members set */
	uint64_t used_bytes;
	uint64_t blocks;
	uint64_t room_bytes; /* that it may have: its capacity, or its storages', if that is less */
	uint64_t pinned_bytes;
	uint64_t soft_pinned_bytes;
	uint64_t leased_bytes; /* estimate */
	uint64_t open_bytes;   /* of open sessions */
	uint64_t evicted_blocks;
	uint64_t hits; /* keys that lookups found */
};

/* One part of a block. */
struct slabkv_spec {
	const char *name;
	uint64_t size; /* exact bytes, 1 .. 4 GiB */
};

/* One model deployment: the layout of its blocks. Everything but `extra`, `weight` and `capacity` is fixed once
 * registered. */
struct slabkv_instance {
	size_t size;
	const char *id;                   /* needed */
	const char *group;                /* default "default" */
	uint32_t block_tokens;            /* tokens in a block, for people; 0 = not told */
	const struct slabkv_spec *specs;  /* parts of a block, in the order of buffers; a new one needs them */
	size_t spec_size;                 /* from one element to the next: sizeof *specs */
	uint32_t n_specs;                 /* 1..SLABKV_MAX_SPECS */
	const char *extra;                /* opaque text, at most 16384 bytes */
	uint64_t weight;                  /* in a group that shares (default 1) */
	uint64_t capacity;                /* bytes of its part there; NONE (default): by weight */
};

/* How slots for a spec lie on the chunks of a storage (type hf3fs): a write of a part of a chunk reads and writes all of
 * it. */
struct slabkv_placement {
	const char *storage;
	const char *spec;
	const char *fit; /* "whole" chunks; "rounded" up to them; packed in "segments"; "copied": in the midst of chunks */
	uint64_t slot_bytes;   /* from one slot to the next */
	uint64_t wasted_bytes; /* of each that hold nothing */
	uint64_t copied_bytes; /* read and written again for each slot written, in the mean */
};

struct slabkv_instance_info {
	const struct slabkv_instance *spec; /* all members set */
	uint64_t blocks;
	uint64_t used_bytes;
	uint64_t open_sessions;
	uint64_t open_bytes;   /* of open sessions */
	uint64_t leased_bytes; /* estimate */
	const struct slabkv_placement *placements; /* of each spec on each storage of its group that has chunks */
	uint32_t n_placements;
	size_t placement_size; /* from one element to the next */
	uint64_t share_bytes;  /* its part, 0 in a group without parts */
	uint64_t pinned_bytes;
	uint64_t soft_pinned_bytes;
	uint64_t evicted_blocks;
	uint64_t hits;
};

/* Registers or updates: asks what is there, changes what is named and puts that. Two that put one object at the same
 * time may lose the change of one of them. The same again is SLABKV_OK. SLABKV_E_CONFLICT names the field that may
 * not change. Retried: harmless to repeat. */
SLABKV_API int slabkv_storage_put(struct slabkv *kv, const struct slabkv_storage *s,
				    struct slabkv_error *err);
SLABKV_API int slabkv_group_put(struct slabkv *kv, const struct slabkv_group *g,
				  struct slabkv_error *err);
SLABKV_API int slabkv_instance_put(struct slabkv *kv, const struct slabkv_instance *i,
				     struct slabkv_error *err);

/* Reads one back. SLABKV_E_NOT_FOUND. Release *out with slabkv_free. */
SLABKV_API int slabkv_storage_get(struct slabkv *kv, const char *name,
				    const struct slabkv_storage_info **out,
				    struct slabkv_error *err);
SLABKV_API int slabkv_group_get(struct slabkv *kv, const char *name,
				  const struct slabkv_group_info **out, struct slabkv_error *err);
SLABKV_API int slabkv_instance_get(struct slabkv *kv, const char *id,
				     const struct slabkv_instance_info **out,
				     struct slabkv_error *err);

struct slabkv_storages {
	uint32_t n;
	const struct slabkv_storage_info *const *v;
};
struct slabkv_groups {
	uint32_t n;
	const struct slabkv_group_info *const *v;
};
struct slabkv_instances {
	uint32_t n;
	const struct slabkv_instance_info *const *v;
};
/* All of them. Release *out with slabkv_free. */
SLABKV_API int slabkv_storages(struct slabkv *kv, const struct slabkv_storages **out, struct slabkv_error *err);
SLABKV_API int slabkv_groups(struct slabkv *kv, const struct slabkv_groups **out, struct slabkv_error *err);
SLABKV_API int slabkv_instances(struct slabkv *kv, const struct slabkv_instances **out, struct slabkv_error *err);

/* Removes one. An instance goes with all its blocks; a storage or group that is used is
 * SLABKV_E_IN_USE. One that is not there is SLABKV_OK (so that a repeated call is harmless). */
SLABKV_API int slabkv_storage_delete(struct slabkv *kv, const char *name,
				       struct slabkv_error *err);
SLABKV_API int slabkv_group_delete(struct slabkv *kv, const char *name,
				     struct slabkv_error *err);
SLABKV_API int slabkv_instance_delete(struct slabkv *kv, const char *id,
					struct slabkv_error *err);

/* A slab file of a storage. */
struct slabkv_slab_file {
	uint32_t file; /* its number, given once */
	uint64_t length;
	const char *state; /* "used", "draining", "removing" (nothing is in it any more), "bad" (its blocks are misses) */
	const char *why;   /* it drains or is bad: one word, or "" */
	const char *waits_for;      /* what the drain waits for; "" = nothing */
	uint64_t assigned_bytes;    /* in slabs */
	uint64_t used_bytes;        /* slots of live blocks, open sessions included */
	uint64_t quarantined_bytes; /* slots waiting for a lease or a grace to end */
};
struct slabkv_slab_files {
	uint32_t n;
	const struct slabkv_slab_file *v;
	size_t v_size; /* from one element to the next */
};
/* All slab files of a storage. SLABKV_E_NOT_FOUND. Release *out with slabkv_free. */
SLABKV_API int slabkv_storage_files(struct slabkv *kv, const char *storage, const struct slabkv_slab_files **out,
				    struct slabkv_error *err);

enum slabkv_file_wish {
	SLABKV_FILE_KEEP,   /* ends a drain that was asked for */
	SLABKV_FILE_DRAIN,  /* nothing new goes there, its blocks are evicted, and it is removed */
	SLABKV_FILE_FORGET, /* it is bad: given up with its blocks */
};
/* What is to become of slab file number `file`. SLABKV_E_NOT_FOUND. Retried: harmless to repeat. */
SLABKV_API int slabkv_storage_file_set(struct slabkv *kv, const char *storage, uint32_t file,
				       enum slabkv_file_wish wish, struct slabkv_error *err);

/* ---- keys ------------------------------------------------------------------------------------ */

/* A 128-bit key. The integer n is the key {0, n}. */
struct slabkv_key {
	uint64_t hi;
	uint64_t lo;
};

enum slabkv_key_form {
	SLABKV_KEYS_STRING, /* any text, 1..1024 bytes of UTF-8; the manager hashes it with its secret */
	SLABKV_KEYS_INT,    /* 64-bit numbers, e.g. block hashes of an engine */
	SLABKV_KEYS_WIDE,   /* 128-bit */
	SLABKV_KEYS_BYTES,  /* the same as 16 bytes each, side by side, the most significant first */
	SLABKV_KEYS_TEXT,   /* as SLABKV_KEYS_STRING, but side by side in one text, which `offsets` cuts up */
};

/* The keys of one call, all in one form, no key twice, and the block that stands before them in their chain. Use the
 * functions below, or fill it with zeros and set what is needed. */
struct slabkv_keys {
	size_t size;
	enum slabkv_key_form form;
	uint32_t n; /* 1..SLABKV_MAX_KEYS */
	union {
		const char *const *strings;
		const uint64_t *ints;
		const struct slabkv_key *wide;
		const uint8_t *bytes; /* [16 * n] */
		const char *text;     /* no NUL needed; none inside a key */
	} v;
	const uint64_t *offsets; /* SLABKV_KEYS_TEXT: [n + 1]; key i is text[offsets[i] .. offsets[i + 1] - 1] */
	/* Puts: the block before the first key in its chain: one key (n = 1) without a parent of its own, a string if
	 * those are strings, else a number. NULL: the first key begins a chain. */
	const struct slabkv_keys *parent;
};

/* Borrow the array; nothing is copied. */
static inline struct slabkv_keys slabkv_keys_of(enum slabkv_key_form form, uint32_t n)
{
	struct slabkv_keys k;

	k.size = sizeof k;
	k.form = form;
	k.n = n;
	k.v.strings = NULL;
	k.offsets = NULL;
	k.parent = NULL;
	return k;
}
static inline struct slabkv_keys slabkv_keys_strings(const char *const *v, uint32_t n)
{
	struct slabkv_keys k = slabkv_keys_of(SLABKV_KEYS_STRING, n);

	k.v.strings = v;
	return k;
}
static inline struct slabkv_keys slabkv_keys_ints(const uint64_t *v, uint32_t n)
{
	struct slabkv_keys k = slabkv_keys_of(SLABKV_KEYS_INT, n);

	k.v.ints = v;
	return k;
}
static inline struct slabkv_keys slabkv_keys_wide(const struct slabkv_key *v, uint32_t n)
{
	struct slabkv_keys k = slabkv_keys_of(SLABKV_KEYS_WIDE, n);

	k.v.wide = v;
	return k;
}
static inline struct slabkv_keys slabkv_keys_bytes(const uint8_t *v, uint32_t n)
{
	struct slabkv_keys k = slabkv_keys_of(SLABKV_KEYS_BYTES, n);

	k.v.bytes = v;
	return k;
}
static inline struct slabkv_keys slabkv_keys_text(const char *v, const uint64_t *offsets, uint32_t n)
{
	struct slabkv_keys k = slabkv_keys_of(SLABKV_KEYS_TEXT, n);

	k.v.text = v;
	k.offsets = offsets;
	return k;
}

/* ---- blocks: the calls that most programs need ----------------------------------------------- */

/* Memory of one spec of one block. The caller's, untouched after the call returns. */
struct slabkv_buf {
	void *data;    /* put only reads it */
	uint64_t size; /* bytes; put: exactly the spec's size; get: at least */
};

enum slabkv_result {
	/* slabkv_get */
	SLABKV_HIT,      /* the bytes that were put are in the buffers */
	SLABKV_MISS,     /* not there; buffers hold nothing of use */
	SLABKV_MISMATCH, /* a miss because a checksum differed, under a running lease: damage */
	SLABKV_ERROR,    /* a miss because the bytes could not be read (`why` tells) */
	/* slabkv_put */
	SLABKV_WRITTEN, /* committed by this call */
	SLABKV_EXISTS,  /* was there already */
	SLABKV_BUSY,    /* another writer is at it; nothing done */
	SLABKV_FAILED,  /* not stored (`why` tells) */
	/* asynchronous operations only */
	SLABKV_GONE,      /* deleted, or was not there */
	SLABKV_CANCELLED, /* never begun */
};

/* One block of a call: buffers in, the rest out. */
struct slabkv_block {
	const struct slabkv_buf *bufs; /* one for each spec of the call, in its order */
	uint32_t n_bufs;
	enum slabkv_result result;
	int why; /* SLABKV_OK, or the SLABKV_E_* behind SLABKV_ERROR and SLABKV_FAILED */
};

/* What a get or put did. */
struct slabkv_io {
	size_t size;         /* set by the caller */
	uint32_t done;       /* hits; blocks written */
	uint32_t matched;    /* get: hits that the manager named, before reading */
	uint32_t mismatches; /* get: blocks with a wrong checksum under a running lease */
	uint32_t failed;     /* get: SLABKV_ERROR; put: SLABKV_FAILED */
	uint32_t exists;     /* put */
	uint32_t busy;       /* put */
	uint32_t ios;        /* requests to the file system: neighbouring slots go as one (usrbio: cut at io_size) */
	uint64_t bytes;      /* of the hits, of the blocks written */
};

#define SLABKV_LEASE_DEFAULT UINT32_MAX

enum slabkv_mode {
	SLABKV_PREFIX, /* stop at the first key that is not there */
	SLABKV_BATCH,  /* every key on its own */
	/* The last run of `window` keys that are there, and no others: what a sliding window reaches; 1 = the last
	 * state. */
	SLABKV_WINDOW,
	/* Every key on its own, to choose from: hits are leased, but do not count as used, and those that the
	 * manager cannot lease are misses, the last keys last. What is chosen is then read with another mode. */
	SLABKV_TRAILING,
};

struct slabkv_lookup_options {
	size_t size;
	enum slabkv_mode mode;
	const char *const *specs; /* which specs, NULL and 0 = all of the instance */
	uint32_t n_specs;
	uint32_t lease_ms; /* how long locations stay valid; 0 = none, or SLABKV_LEASE_DEFAULT */
	uint32_t window;   /* SLABKV_WINDOW: 1..keys->n */
};

/* Reads blocks. `blocks` has keys->n elements, `block_size` apart: sizeof *blocks. keys->parent is ignored. `o` NULL:
 * prefix, all specs, default lease. `io` may be NULL. SLABKV_OK whenever the manager answered, also when all are
 * misses; *err then tells about the first block with SLABKV_ERROR, if there is one. Otherwise every block is
 * SLABKV_MISS. SLABKV_E_NOT_FOUND: no such instance. */
SLABKV_API int slabkv_get(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
			  const struct slabkv_lookup_options *o, struct slabkv_block *blocks, size_t block_size,
			  struct slabkv_io *io, struct slabkv_error *err);

struct slabkv_put_options {
	size_t size;
	const char *const *specs; /* which specs this writer brings, NULL and 0 = all */
	uint32_t n_specs;
	uint32_t deadline_ms; /* time for the whole put; 0 = the manager's default */
	/* The keys are no chain, and have no parent: each block is evicted by its own use alone, where a chain
	 * goes from its tail on. For blocks whose neighbours may be missing: states and windows of hybrid models,
	 * of which the last ones of a prompt are stored and read (SLABKV_WINDOW). */
	bool independent;
};

/* Writes blocks, keys as one chain behind keys->parent, head first, unless they are `independent`. `blocks` has keys->n
 * elements, `block_size` apart: sizeof *blocks. `o` and `io` may be NULL. What this returns as SLABKV_WRITTEN is
 * durable and can be found by everyone. SLABKV_OK whenever the session was brought to its end, also if blocks failed;
 * *err then tells about the first that did. On an error no block is SLABKV_WRITTEN (after SLABKV_E_NETWORK or _TIMEOUT
 * at the end of the session it may be stored all the same, and is then complete). */
SLABKV_API int slabkv_put(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
			  const struct slabkv_put_options *o, struct slabkv_block *blocks, size_t block_size,
			  struct slabkv_io *io, struct slabkv_error *err);

/* How many leading keys each of several instances has, with all specs. No lease, no effect on
 * eviction: for schedulers. matched[n_instances] is filled. At most 64 instances. */
SLABKV_API int slabkv_match(struct slabkv *kv, const char *const *instances,
			      uint32_t n_instances, const struct slabkv_keys *keys,
			      uint32_t *matched, struct slabkv_error *err);

/* Makes blocks unfindable at once; their space comes back when no lease runs on it. *deleted (may
 * be NULL): how many were there (in the last try, if it was retried). */
SLABKV_API int slabkv_delete(struct slabkv *kv, const char *instance,
			       const struct slabkv_keys *keys, uint32_t *deleted,
			       struct slabkv_error *err);

enum slabkv_pin_kind {
	SLABKV_PIN_SOFT = 1, /* is evicted when nothing else may be */
	SLABKV_PIN_HARD = 2, /* is not evicted */
};

/* Keeps blocks from eviction: those of the keys that are there now. ttl_ms: the pin ends by itself after so
 * long; 0 = when it is unpinned, hard only. A block has one pin: the harder kind, of equal ones the later end. It
 * survives restarts of the manager and goes with the block when that is deleted. *pinned (may be NULL):
 * how many keys are; missing[keys->n] (may be NULL): those that are not there. SLABKV_E_QUOTA, field
 * "pinned_bytes": too much would be pinned hard; nothing is. Retried: harmless to repeat. */
SLABKV_API int slabkv_pin(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
			    enum slabkv_pin_kind kind, uint64_t ttl_ms, uint32_t *pinned, bool *missing,
			    struct slabkv_error *err);
/* Ends pins of either kind; keys NULL = all of the instance. *unpinned (may be NULL): how many blocks were
 * pinned (in the last try, if it was retried). */
SLABKV_API int slabkv_unpin(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
			      uint64_t *unpinned, struct slabkv_error *err);

struct slabkv_pin_info {
	struct slabkv_key key;
	enum slabkv_pin_kind kind;
	uint64_t ttl_ms; /* what is left; 0 = until it is unpinned */
};
struct slabkv_pins {
	uint32_t n;
	const struct slabkv_pin_info *v;
	size_t v_size; /* from one element to the next */
	uint64_t next; /* cursor of the next portion; 0 = that was all */
};
/* A portion of the instance's pins, in no order. cursor 0 = from the begin. Release *out with
 * slabkv_free. */
SLABKV_API int slabkv_pins(struct slabkv *kv, const char *instance, uint64_t cursor,
			     const struct slabkv_pins **out, struct slabkv_error *err);

struct slabkv_key_list {
	uint32_t n;
	const struct slabkv_key *keys;
	uint64_t next; /* cursor of the next portion; 0 = that was all */
};
/* A portion of the keys of the instance's blocks, in no order, and in the manager's own form: string keys as what
 * they were hashed to. cursor 0 = from the begin; a portion may be empty though others follow. A block that is there
 * all the time is told once. SLABKV_E_INVALID, field "cursor": the manager has been restarted, begin again. Release
 * *out with slabkv_free. */
SLABKV_API int slabkv_list(struct slabkv *kv, const char *instance, uint64_t cursor, const struct slabkv_key_list **out,
			     struct slabkv_error *err);

/* ---- blocks: for programs that move the bytes themselves ------------------------------------- */

/* A slab file that locations refer to. Open it only after its superblock proved to be the
 * storage's. */
struct slabkv_file {
	const char *storage;
	const char *type;
	char uuid[37];
	char path[64]; /* relative to the storage's root */
};

/* Where one spec of one block lies. */
struct slabkv_location {
	uint32_t file; /* index into files */
	bool has_checksum;
	uint64_t offset;
	uint64_t length;     /* 0 = nothing here */
	uint64_t generation; /* of the slot; never repeated */
	uint64_t checksum;   /* XXH3-64 of the bytes */
};

/* Result of slabkv_lookup. */
struct slabkv_locations {
	uint32_t n_keys;
	uint32_t matched; /* PREFIX: leading hits; BATCH, TRAILING: all hits; WINDOW: `window` or 0 */
	uint32_t n_specs;
	const char *const *specs; /* names of the columns: in the instance's order, whatever order was asked for */
	const bool *hit;                    /* [n_keys] */
	const struct slabkv_location *loc; /* [n_keys * n_specs], valid where hit */
	size_t loc_size;                   /* from one element of `loc` to the next */
	uint32_t n_files;
	const struct slabkv_file *files;
	size_t file_size;  /* from one element of `files` to the next */
	uint32_t lease_ms; /* granted, counted from before the request was sent */
	uint64_t valid_until_ms; /* the same as a time of CLOCK_BOOTTIME: slots may be reused */
};

/* Locations without reading. `o` NULL as in slabkv_get. Release *out with slabkv_free. */
SLABKV_API int slabkv_lookup(struct slabkv *kv, const char *instance,
			       const struct slabkv_keys *keys,
			       const struct slabkv_lookup_options *o,
			       const struct slabkv_locations **out, struct slabkv_error *err);

enum slabkv_outcome {
	SLABKV_START_WRITE,  /* write the locations with length > 0, then finish */
	SLABKV_START_EXISTS, /* committed already */
	SLABKV_START_BUSY,   /* another open session writes it */
};

/* Result of slabkv_start. */
struct slabkv_session {
	char id[33]; /* "" when nothing is to be written: no finish needed */
	uint32_t n_keys;
	uint32_t n_specs;
	const char *const *specs; /* names of the columns: in the instance's order, whatever order was asked for */
	const uint8_t *outcome;             /* [n_keys] enum slabkv_outcome */
	const struct slabkv_location *loc; /* [n_keys * n_specs], length 0 = do not write it */
	size_t loc_size;                   /* from one element of `loc` to the next */
	uint32_t n_write;                   /* keys with SLABKV_START_WRITE */
	uint32_t n_files;
	const struct slabkv_file *files;
	size_t file_size;         /* from one element of `files` to the next */
	uint32_t deadline_ms;     /* counted from before the request was sent */
	uint64_t submit_until_ms; /* the same as a time of CLOCK_BOOTTIME: submit nothing later */
};

/* Opens a write session. `request_id` (at most 127 characters; NULL = a random one) makes a
 * repetition of the same call get the same answer. `o` may be NULL. SLABKV_E_SESSION_ENDED or
 * _EXPIRED: the id was used by a session that is over. Release *out with slabkv_free (which does
 * not end the session). */
SLABKV_API int slabkv_start(struct slabkv *kv, const char *instance,
			      const struct slabkv_keys *keys, const struct slabkv_put_options *o,
			      const char *request_id, const struct slabkv_session **out,
			      struct slabkv_error *err);

struct slabkv_finish_options {
	size_t size;
	/* Which of the session's n_write blocks were written, in request order; NULL and 0 =
	 * all. */
	const bool *mask;
	uint32_t n_mask;
	/* XXH3-64 of the bytes, a row of n_specs for each of the n_write blocks; NULL and 0:
	 * none */
	const uint64_t *checksums;
	uint32_t n_checksums;
	bool quiesced; /* every submitted write has completed: failed slots need no grace */
};

/* Counts of a session that is over. */
struct slabkv_finished {
	size_t size; /* set by the caller */
	uint32_t committed;
	uint32_t failed;
};

/* Ends a session: what the mask names can be found from now on. Sync local files before. `res` may
 * be NULL. A repetition gives the same numbers. */
SLABKV_API int slabkv_finish(struct slabkv *kv, const char *session,
			       const struct slabkv_finish_options *o, struct slabkv_finished *res,
			       struct slabkv_error *err);
/* Ends a session without committing anything. */
SLABKV_API int slabkv_abort(struct slabkv *kv, const char *session, bool quiesced,
			      struct slabkv_error *err);

/* XXH3-64, the checksum of locations. */
SLABKV_API uint64_t slabkv_checksum(const void *data, size_t size);

/* ---- many operations at a time --------------------------------------------------------------- */

enum slabkv_op_kind {
	SLABKV_OP_PUT,    /* ends as WRITTEN, EXISTS, BUSY or FAILED */
	SLABKV_OP_GET,    /* HIT, MISS, MISMATCH or ERROR */
	SLABKV_OP_EXISTS, /* HIT, MISS or ERROR */
	SLABKV_OP_DELETE, /* GONE or FAILED */
};

/* One operation on many blocks of an instance, as arrays side by side: for callers to whom each struct costs, such as
 * other languages. */
struct slabkv_batch {
	size_t size;
	enum slabkv_op_kind kind;
	uint32_t n_bufs; /* put and get: buffers of a block, one for each spec of the instance, in its order; else 0 */
	const char *instance;
	/* In any form; slabkv_keys_bytes and slabkv_keys_text take them side by side. Put: one chain, head first,
	 * behind its `parent`, unless `independent`; get, exists, delete: each on its own. */
	const struct slabkv_keys *keys;
	void *const *data;       /* [keys->n * n_bufs]: block by block */
	const uint64_t *lengths; /* [keys->n * n_bufs], bytes; put: exactly those of the specs, get: at least */
	uint8_t *results; /* [keys->n], out: enum slabkv_result; set whatever is returned, but for SLABKV_E_INVALID */
	int32_t *whys;    /* [keys->n], out, or NULL: SLABKV_OK or the SLABKV_E_* behind ERROR and FAILED */
	bool independent; /* as in slabkv_put_options */
	uint64_t tag;     /* slabkv_batch_submit: the caller's; comes back with the completion */
};

/* Does it, on this thread, in one call to the manager and one transfer. SLABKV_OK whenever the manager answered, also
 * when single blocks failed; *err then tells about the first. */
SLABKV_API int slabkv_batch(struct slabkv *kv, const struct slabkv_batch *b, struct slabkv_error *err);

/* A queue of operations with one file descriptor that tells when some have completed. Threads of the
 * library do the work; operations that are queued at the same time share calls to the manager:
 * gets, exists and deletes of one instance and one form of keys, puts of one chain. There is no
 * order between operations in flight: wait for a put before the get that wants its bytes.
 *
 * Memory: what the buffers point to must stay as it is until the operation's completion has been drained;
 * instance, keys and the arrays of buffers themselves are copied. Buffers of an attached pool may be given back earlier
 * (slabkv_pool_put): they become free when nothing uses them any more.
 *
 * A completion is told only when no I/O can touch the operation's buffers any more: also that of one that was cancelled
 * or failed, whatever time-out has passed meanwhile. The same holds when slabkv_async_stop, _close and slabkv_close
 * return. So they may take as long as the file system does.
 *
 * Any thread may submit, drain and cancel. */
struct slabkv_async;

struct slabkv_async_options {
	size_t size;            /* of this struct as the caller was built */
	uint32_t max_in_flight; /* submitted and not drained; default 4096, at most 1048576 */
	uint32_t threads;       /* that work; default 4, at most 64 */
	uint32_t batch;         /* operations that one call may carry; default 128, at most 1024 */
};

/* Fills *o, of `size` bytes, with the defaults. */
SLABKV_API void slabkv_async_options_init(struct slabkv_async_options *o, size_t size);

/* Makes a queue on the handle; `o` NULL = defaults. SLABKV_E_INVALID, SLABKV_E_NOMEM,
 * SLABKV_E_UNAVAILABLE (no thread, no descriptor). */
SLABKV_API int slabkv_async_open(struct slabkv *kv, const struct slabkv_async_options *o,
				   struct slabkv_async **out, struct slabkv_error *err);

/* An eventfd (the library's: never close or read it) that is readable exactly as long as there are
 * completions to drain: for poll, epoll, an event loop. */
SLABKV_API int slabkv_async_fd(const struct slabkv_async *a);

/* One operation on one block. */
struct slabkv_op {
	enum slabkv_op_kind kind;
	const char *instance;
	const struct slabkv_keys *key; /* one (n = 1); puts: with its parent, if it has one */
	/* Put and get: one element for each spec of the instance, in its order; put: exactly of its
	 * size, get: at least. Else NULL and 0. */
	const struct slabkv_buf *bufs;
	uint32_t n_bufs;
	/* Put: the operation before this one in the same submit is the put of this block's
	 * predecessor in its chain, so its key has no parent of its own. Chains travel together; puts without it begin
	 * a chain each. */
	bool chained;
	uint64_t tag; /* the caller's; comes back with the completion */
};

/* How an operation ended. */
struct slabkv_completion {
	uint64_t tag;
	uint64_t batch; /* as slabkv_submit or slabkv_batch_submit named it */
	uint32_t index; /* of the operation in that submit; of a batch 0 */
	uint32_t left;  /* operations of that submit that have not been drained; 0 = this is the last */
	enum slabkv_op_kind kind;
	/* Of a batch: SLABKV_CANCELLED, SLABKV_ERROR (the whole call failed), or that of the kind that means success;
	 * its `results` tell of each block. */
	enum slabkv_result result;
	int why; /* the SLABKV_E_* behind ERROR and FAILED, else SLABKV_OK */
};

/* Submits n operations, `op_size` apart (sizeof *ops), all or none; does not wait for anything. *batch (may be NULL)
 * names them. SLABKV_E_TOO_MANY: fewer than n places are free; drain, then try again. SLABKV_E_INVALID (field
 * names the member), SLABKV_E_TOO_LARGE (n over max_in_flight), SLABKV_E_UNAVAILABLE (stopped). */
SLABKV_API int slabkv_submit(struct slabkv_async *a, const struct slabkv_op *ops, size_t op_size, uint32_t n,
			     uint64_t *batch, struct slabkv_error *err);
/* Submits b as one operation, with one completion. `results` and `whys` are written before that is told, and must stay
 * until then, as what the buffers point to; all else is copied. *batch (may be NULL) names it. Errors as
 * slabkv_submit. */
SLABKV_API int slabkv_batch_submit(struct slabkv_async *a, const struct slabkv_batch *b, uint64_t *batch,
				   struct slabkv_error *err);
/* Takes up to `max` completions, `completion_size` apart (sizeof *out), without waiting; how many. */
SLABKV_API uint32_t slabkv_drain(struct slabkv_async *a, struct slabkv_completion *out, size_t completion_size,
				 uint32_t max);
/* Cancels what has not been begun of a submit (0: of all); each such operation completes as
 * SLABKV_CANCELLED, the others as they would. How many were cancelled. */
SLABKV_API uint32_t slabkv_cancel(struct slabkv_async *a, uint64_t batch);

/* Takes no more operations, ends those that are in flight (`cancel`: begins none of them any more)
 * and returns when all have completed. They can be drained afterwards. What has been begun ends as
 * slowly as its calls: at worst the handle's timeout_ms for each, and the file system's time. Not
 * from a callback of the handle. */
SLABKV_API void slabkv_async_stop(struct slabkv_async *a, bool cancel);
/* slabkv_async_stop with cancel, then releases the queue with all completions that were not
 * drained. No other call on it may be running. NULL is allowed. */
SLABKV_API void slabkv_async_close(struct slabkv_async *a);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Any memory will do for the buffers of any call. Memory that the handle has been told of is faster
 * with the engine "uring" (it is registered with the kernel once, not pinned for each request), and with
 * "usrbio", if it is shared memory (pieces of 1 MiB and more are read and written without a copy), and
 * safer: from the entry of a get or put to its exit, and from the submit of an asynchronous operation to its
 * completion, no buffer of it is handed out again, whoever gave it back, and its memory stays registered. */

enum slabkv_memory {
	SLABKV_MEMORY_HOST,   /* pages of this process alone */
	SLABKV_MEMORY_SHARED, /* shared memory: other processes may map the same pages */
	SLABKV_MEMORY_DEVICE, /* memory of an accelerator: SLABKV_E_UNSUPPORTED so far */
};

/* Buffers of one size, all of them taken from the machine when the pool is made. Any thread. */
struct slabkv_pool;

struct slabkv_pool_options {
	size_t size;           /* of this struct as the caller was built */
	uint64_t bytes;        /* of all buffers, at most */
	uint64_t buffer_bytes; /* of one buffer; in memory rounded up to whole pages */
	int numa_node;         /* where the memory should be; -1 (default) = anywhere */
	enum slabkv_memory kind; /* SLABKV_MEMORY_HOST (default) or _SHARED */
	/* SHARED: a name. The object in /dev/shm has it together with the
	 * pid namespace, the pid and the start time of this process: slabkv_pool_info.shm tells.
	 * What processes that are dead have left is removed when a shared pool is made. */
	const char *shm_name;
};

/* Fills *o, of `size` bytes, with the defaults: no bytes, any node, host memory. */
SLABKV_API void slabkv_pool_options_init(struct slabkv_pool_options *o, size_t size);

/* Makes a pool; every page is there when it returns. SLABKV_E_INVALID (field names the option),
 * SLABKV_E_NOMEM, SLABKV_E_NO_SPACE (/dev/shm is full), SLABKV_E_IN_USE (this process has a pool
 * of that shm_name), SLABKV_E_UNSUPPORTED. */
SLABKV_API int slabkv_pool_create(const struct slabkv_pool_options *o, struct slabkv_pool **out,
				    struct slabkv_error *err);
/* Gives the memory back. SLABKV_E_IN_USE, and nothing happens, while a buffer is out or a handle has
 * it attached. NULL is allowed. */
SLABKV_API int slabkv_pool_destroy(struct slabkv_pool *pool);

/* Takes a buffer: buf->data is aligned to pages, buf->size is buffer_bytes. Its contents are
 * whatever was in it. Waits up to `timeout_ms` for one; SLABKV_E_TOO_MANY when there is none. */
SLABKV_API int slabkv_pool_get(struct slabkv_pool *pool, uint32_t timeout_ms,
				 struct slabkv_buf *buf);
/* Gives it back, also while operations on it are in flight: then it becomes free when the last of
 * them is over. SLABKV_E_INVALID when `data` is no buffer that is out. */
SLABKV_API int slabkv_pool_put(struct slabkv_pool *pool, void *data);

/* A pool as it is now. */
struct slabkv_pool_info {
	size_t size; /* set by the caller */
	void *base; /* of the first buffer; they lie side by side */
	uint64_t bytes;
	uint64_t buffer_bytes;
	uint64_t stride; /* from one buffer to the next */
	uint32_t n_buffers;
	uint32_t free;
	uint32_t leaving; /* given back, but still in use by an operation */
	int numa_node;    /* -1: anywhere, also when the machine did not allow the choice */
	enum slabkv_memory kind;
	char shm[200]; /* SHARED: name for shm_open(3); else "" */
};
SLABKV_API int slabkv_pool_info(struct slabkv_pool *pool, struct slabkv_pool_info *out);

/* Removes shared memory of pools whose process is dead (pid and start time; never by age). How many.
 * Objects of other pid namespaces are left alone: whether their process lives cannot be seen. */
SLABKV_API uint32_t slabkv_pool_sweep(void);

/* Tells the handle of a pool. SLABKV_OK also when the engine could not register the memory (*err
 * then tells why): everything works, only slower. A pool may be attached to several handles. */
SLABKV_API int slabkv_pool_attach(struct slabkv *kv, struct slabkv_pool *pool,
				    struct slabkv_error *err);
/* SLABKV_E_IN_USE while operations of this handle use a buffer of it, SLABKV_E_NOT_FOUND.
 * slabkv_close detaches what is still attached. */
SLABKV_API int slabkv_pool_detach(struct slabkv *kv, struct slabkv_pool *pool);

/* The same for memory that belongs to somebody else: shared memory of another process, later memory
 * of an accelerator. It must stay mapped until it is unregistered or the handle is closed. Regions
 * must not overlap (SLABKV_E_CONFLICT). SLABKV_E_UNSUPPORTED for SLABKV_MEMORY_DEVICE. */
SLABKV_API int slabkv_memory_register(struct slabkv *kv, void *base, uint64_t bytes,
					enum slabkv_memory kind, struct slabkv_error *err);
/* SLABKV_E_IN_USE, SLABKV_E_NOT_FOUND. */
SLABKV_API int slabkv_memory_unregister(struct slabkv *kv, void *base);

/* ---- the manager and the mounts -------------------------------------------------------------- */

/* The manager's numbers. Those of storages, groups and instances are slabkv_storages and so on. */
struct slabkv_stats {
	const char *version; /* of the manager */
	const char *owner;   /* id of the manager that owns the partition */
	const char *state;   /* "ready", "standby", "recovering", "stopped" */
	uint64_t uptime_ms;
	uint64_t blocks;
	uint64_t sessions;      /* open */
	uint64_t journal_bytes; /* since the last checkpoint */
	uint64_t journal_limit;
	uint64_t evicted_blocks;
	uint64_t expired_sessions;
};
/* Release *out with slabkv_free. */
SLABKV_API int slabkv_stats(struct slabkv *kv, const struct slabkv_stats **out, struct slabkv_error *err);

/* One part of a block, for a person. */
struct slabkv_part_info {
	const char *spec;
	const char *state; /* "absent", "writing", "committed", "deleting" */
	/* Where it lies; length 0: nowhere. */
	const char *storage;
	const char *path; /* of the slab file, relative to the storage's root */
	uint64_t offset;
	uint64_t length;
	uint64_t generation;
	bool has_checksum;
	uint64_t checksum;
};
/* What the manager knows of one block. */
struct slabkv_block_info {
	struct slabkv_key key; /* in the manager's own form */
	bool has_parent;
	struct slabkv_key parent;
	uint32_t children;
	uint64_t created_ms; /* wall time, since 1970 */
	uint64_t idle_ms;    /* since the last lookup or the commit */
	uint64_t lease_ms;   /* remaining */
	uint32_t n_parts;
	const struct slabkv_part_info *parts; /* of each spec */
	size_t part_size;                     /* from one element to the next */
};
/* keys->n is 1. SLABKV_E_NOT_FOUND. No effect on lease or eviction. Release *out with slabkv_free. */
SLABKV_API int slabkv_block_get(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
				const struct slabkv_block_info **out, struct slabkv_error *err);

/* One call of the manager's HTTP API, in JSON (docs/PROTOCOL.md), for programs that print what it answers or use what
 * has no function here: `method` "GET", "POST" or "PUT", `path` "/v1/...", `body` a JSON text, or NULL. It may be sent
 * more than once, like all calls. The answer's text is released with slabkv_free. */
SLABKV_API int slabkv_call(struct slabkv *kv, const char *method, const char *path, const char *body, const char **json,
			   struct slabkv_error *err);
/* SLABKV_OK when a manager is reached and ready to answer (GET /readyz). One try, no waiting. */
SLABKV_API int slabkv_ready(struct slabkv *kv, struct slabkv_error *err);
/* Where storage `name` is mounted on this machine, proved by its marker: *path, released with
 * slabkv_free. SLABKV_E_UNAVAILABLE or SLABKV_E_FOREIGN with the reason. */
SLABKV_API int slabkv_mount_find(struct slabkv *kv, const char *name, const char **path,
				   struct slabkv_error *err);

enum slabkv_verdict { SLABKV_GOOD, SLABKV_WARNING, SLABKV_BAD };

/* One thing that was looked at. The texts are borrowed for the call. */
struct slabkv_check {
	const char *name; /* a word or two */
	enum slabkv_verdict verdict;
	const char *detail; /* what was found */
	const char *remedy; /* what to do about it; "" when it is good */
};

/* Looks whether a directory of this machine is fit for blocks, with these options: what it is mounted as, and on
 * 3FS chunk size, client library, limits, shared memory, rings; then bytes there and back in a file of its own,
 * which it removes. `tell` is called for each thing, on this thread. Contacts no manager. SLABKV_OK when it could
 * look, whatever it found; SLABKV_E_INVALID (an option). Waits as long as the file system does. */
SLABKV_API int slabkv_mount_check(const struct slabkv_options *o, const char *dir,
				    void (*tell)(void *ctx, const struct slabkv_check *c), void *ctx,
				    struct slabkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
