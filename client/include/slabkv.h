/*
 * slabkv.h - C client library of slabkv, the manager of KV-cache blocks.
 *
 * The manager knows where every block is stored; block bytes never pass through it. This library
 * talks to the manager over HTTP and moves the bytes itself, between the caller's buffers and the
 * slab files on a file system mounted on this machine:
 *
 *	slabkv_put   start (the manager reserves slots), write, sync, finish
 *	slabkv_get   lookup (locations under a lease), read, verify the checksum
 *
 * A hit from slabkv_get means that the buffers hold exactly the bytes that were put. A flipped
 * byte, a short file, a wrong mount or an expired lease all read as a miss. Calls wait for the
 * manager no longer than the caller's timeout; put and get as a whole take no longer than
 * io_timeout_ms.
 *
 * Threads: any number of threads may use one `struct slabkv *` at the same time. Calls are
 * synchronous and each uses its own connection; slabkv_async_open makes a queue for operations that
 * complete later. slabkv_close must be the last use. Everything else (options, results, buffers)
 * belongs to one call at a time.
 *
 * Errors: functions return SLABKV_OK or a negative SLABKV_E_* from the list below, and no other
 * number; `err` (may be NULL) then holds the text. Any call may fail with SLABKV_E_INVALID, _NOMEM
 * or _INTERNAL, and one that talks to the manager also with _NETWORK, _TIMEOUT, _NOT_READY,
 * _NOT_OWNER, _UNAUTHENTICATED, _FORBIDDEN or _UNKNOWN_OUTCOME; each function lists only the codes
 * that mean something particular to its caller. Outputs are set only on SLABKV_OK unless stated
 * otherwise. Results returned through a pointer to pointer are read-only; release them with
 * slabkv_free.
 *
 * Compatibility: structs grow at their end, and programs built against an older header keep
 * working.
 *	- A struct that the caller provides begins with `size`, which the caller sets to sizeof
 *	  of that struct. Members that are 0 or NULL have the meaning documented at the member;
 *	  memory beyond `size` is never read. A `size` that is too small is SLABKV_E_INVALID,
 *	  field "size".
 *	- Array elements carry no size; the array's `..._size` is the distance between elements,
 *	  sizeof *array for arrays of the caller. Use SLABKV_AT to index arrays in results.
 *	- struct slabkv_error, slabkv_key and slabkv_buf never change.
 *
 * Units: bytes and milliseconds. Strings are NUL-terminated UTF-8 and borrowed for the call. Names
 * of storages, groups, instances and specs: 1..127 of [A-Za-z0-9._:=@+,-], starting with a letter,
 * digit or '_'. An instance may be named like a model: several such parts joined by '/', 127
 * characters in all ("Qwen/Qwen3-32B").
 *
 * Fork: handles, queues and pools belong to the parent only. In the child every call on them fails
 * with SLABKV_E_INVALID, field "handle", and closing them does nothing. With the engine "usrbio"
 * the child should call exec soon: the mappings it inherits keep the parent's memory at the FUSE
 * daemon alive.
 *
 * Internal errors: when the library finds one of its own invariants broken, it logs where and
 * disables the handle instead of ending the process. From then on every lookup and get is a miss
 * with SLABKV_E_INTERNAL, field "handle", and every other call fails with the same error. The
 * handle can still be closed, and another one opened.
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
#define SLABKV_VERSION_NUMBER                                                    \
	((uint32_t)((SLABKV_VERSION_MAJOR << 16) | (SLABKV_VERSION_MINOR << 8) | \
		    SLABKV_VERSION_PATCH))
/* The same for the library that is loaded. Static. */
SLABKV_API const char *slabkv_version(void);
SLABKV_API uint32_t slabkv_version_number(void);

/* Element i of an array in a result whose elements are `stride` bytes apart:
 * SLABKV_AT(struct slabkv_location, l->loc, l->loc_size, i). */
#define SLABKV_AT(type, array, stride, i) \
	((const type *)(const void *)((const char *)(array) + (size_t)(stride) * (size_t)(i)))

#define SLABKV_MAX_KEYS 16384u /* keys in one call */
#define SLABKV_MAX_SPECS 32u   /* specs of one instance */

/* ---- errors ---------------------------------------------------------------------------------- */

/* Errors of the manager and of the library itself. slabkv_code gives the code as sent on the
 * wire. */
enum slabkv_status {
	SLABKV_OK = 0,
	SLABKV_E_INVALID = -1,         /* an argument is invalid; err.field names it */
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
	SLABKV_E_UNKNOWN_OUTCOME = -19, /* may or may not have happened */
	SLABKV_E_UNAVAILABLE = -20,     /* no healthy storage; or no mount of it on this machine */
	SLABKV_E_NO_SPACE = -21,
	SLABKV_E_QUOTA = -22,
	SLABKV_E_NOMEM = -23,   /* here or at the manager */
	SLABKV_E_CORRUPT = -24, /* a damaged superblock */
	SLABKV_E_FOREIGN = -25, /* the directory or file belongs to another storage */
	SLABKV_E_IO = -26,
	SLABKV_E_TIMEOUT = -27,
	SLABKV_E_FENCED = -28,
	SLABKV_E_NETWORK = -29, /* no manager could be reached */
	SLABKV_E_MISMATCH = -30,
};

/* Describes an error, for a human reader. */
struct slabkv_error {
	int code;          /* enum slabkv_status */
	char field[96];    /* the request field at fault, or "" */
	char message[320]; /* a sentence; "" with SLABKV_OK */
};

/* Short stable name of a status ("not_found"). Static, never NULL. */
SLABKV_API const char *slabkv_code(int status);
/* Returns a sentence about a status. Static, never NULL. */
SLABKV_API const char *slabkv_text(int status);

/* ---- handle ---------------------------------------------------------------------------------- */

/* A handle: connections, mounts and open slab files. */
struct slabkv;

/* A block whose bytes do not match the checksum stored when they were written. */
struct slabkv_mismatch {
	const char *instance;
	uint32_t key;     /* index into the call's keys */
	const char *spec; /* name */
	const char *storage;
	const char *path; /* the slab file, relative to the storage's root */
	uint64_t offset;
	uint64_t length;
	uint64_t generation;
};

/* How to reach the managers and the storages. Fill it with slabkv_options_init, or set every option
 * by name with slabkv_options_new. slabkv_open copies all strings; the callbacks and their contexts
 * must live as long as the handle. */
struct slabkv_options {
	size_t size; /* set by slabkv_options_init and slabkv_options_new */
	/* Managers, "http://host:port" or "host:port", at most 16; one text may name several, with
	 * commas between them. When one cannot be reached, is not ready or does not own the
	 * partition, the next is tried. NULL and 0: the environment variable SLABKV_URL, else
	 * http://127.0.0.1:7333.
	 *
	 * With several managers, the handle remembers from their answers which manager owns which
	 * partition, and asks the owner first. A manager may redirect a call to an owner that is
	 * not in this list: then the token and the call's contents go there, too. The owner's URL
	 * must have the scheme that all of these have. Use https:// where others can change network
	 * traffic: then the owner needs a certificate that ca_file vouches for. With a single
	 * manager, calls go nowhere else. */
	const char *const *urls;
	uint32_t n_urls;
	const char *token; /* bearer token, or NULL */
	/* Limit of one call to the manager, retries included. Default 10000. */
	uint32_t timeout_ms;
	/* Rounds over all managers before a call fails, even with time left. Default 16. Waits
	 * between rounds: 50 ms, doubling up to 250 ms, after a second 1 s. */
	uint32_t rounds;
	/* Directories where storages are mounted on this machine, at most 64; each is recognised by
	 * the marker file `slabkv-storage` in it. NULL and 0: the root that the manager names is
	 * tried, and used only if its marker proves that it is the same storage. */
	const char *const *mounts;
	uint32_t n_mounts;
	/* Verify checksums of what is read (every write stores them). Default true. False: lost,
	 * torn or foreign bytes may count as hits; on 3FS a lost chunk before others reads as
	 * zeros. */
	bool verify;
	/* How bytes are moved.
	 *	- "posix": preadv and pwritev, through the page cache.
	 *	- "uring": io_uring, with O_DIRECT where file offsets and buffers are
	 *	  page-aligned.
	 *	- "usrbio": 3FS's native interface for files on 3FS; other files as "auto".
	 *	- "auto": usrbio for files on 3FS if its client library is installed, else uring
	 *	  if the kernel allows it, else posix.
	 * NULL: the environment variable SLABKV_ENGINE, else "auto". If uring does not work here or
	 * 3FS's library is missing, another engine is used; slabkv_engine tells which and why. */
	const char *engine;
	/* Called at the end of every call to the manager, on the caller's thread; for an
	 * asynchronous operation on a thread of the library, which must not be blocked. `op`
	 * ("lookup", "start", "finish", "match", ...) is static; `us` is the duration with all
	 * retries, in microseconds. */
	void (*on_call)(void *ctx, const char *op, uint64_t us, int status);
	void *on_call_ctx;
	/* Called for every mismatch, on the caller's thread, before the call returns. */
	void (*on_mismatch)(void *ctx, const struct slabkv_mismatch *m);
	void *on_mismatch_ctx;
	/* Requests that "uring" keeps in flight per call, at most 1024. 0: 64. */
	uint32_t depth;
	/* For asynchronous queues opened without options of their own. 0: their defaults. */
	uint32_t async_threads;
	uint32_t async_in_flight;
	void *owned; /* used by slabkv_options_new: leave it alone */
	/* The engine "usrbio". It uses read_iov_size + write_iov_size of shared memory per process,
	 * and a little for each ring. slabkv_option lists ranges and defaults. */
	/* 3FS's client library; NULL: $HF3FS_LIB, else found by the dynamic linker. */
	const char *hf3fs_lib;
	/* Where 3FS is mounted. NULL: taken from the first file opened. A handle uses one 3FS. */
	const char *hf3fs_mount_point;
	/* Directories of storages, separated by commas: the same as `mounts`. Blocks are spread
	 * over the storages of their group. NULL: none. */
	const char *hf3fs_base_path;
	uint64_t hf3fs_read_iov_size;  /* buffers for reads, bytes; shared by all calls */
	uint64_t hf3fs_write_iov_size; /* for writes */
	uint64_t hf3fs_read_io_size;   /* largest single request, bytes */
	uint64_t hf3fs_write_io_size;
	uint32_t hf3fs_ior_entries;   /* requests in flight per ring */
	/* Requests processed together, at most (the sign is ignored); 0: all. */
	int32_t hf3fs_io_depth;
	int32_t hf3fs_numa_id;        /* NUMA node of buffers and rings; -1: any */
	uint32_t hf3fs_io_thread_num; /* pairs of rings, each used by one thread at a time */
	/* A request that has not completed after this time is abandoned: a read becomes a miss, a
	 * write fails and its slot stays unused for the grace period. 3FS itself retries for 60 s.
	 * The request's buffer stays out of use until it completes; one that moves straight between
	 * file and the caller's memory is waited for until it completes or the daemon's process has
	 * ended. */
	uint32_t hf3fs_read_timeout_ms;
	uint32_t hf3fs_write_timeout_ms;
	/* CA certificates for https, PEM. NULL: $SSL_CERT_FILE, else the system's usual places. */
	const char *ca_file;
	/* Limit of connecting to one manager, so that a host that drops packets costs no more.
	 * Default 1000. */
	uint32_t connect_timeout_ms;
	/* A call that was not answered after this time is sent to the next manager, too, and the
	 * first good answer counts: calls may be repeated harmlessly. 0: never. Default 1000. */
	uint32_t hedge_ms;
	/* Certificate of this client and its key, PEM, shown to managers that ask for one. NULL:
	 * none. */
	const char *cert_file;
	const char *key_file;
	/* Report blocks that are a mismatch to the manager, which hides them, so that their keys
	 * can be put again: at once if the token may delete there, else after a mover's check. One
	 * call of a second at most for each get that meets any. Default true. */
	bool report;
	/* Limit of a whole slabkv_put, slabkv_get or slabkv_batch, from call to return: calls to
	 * the manager, opening files, moving bytes. 0: none. Default 60000. A put with a longer
	 * deadline_ms has that limit. Blocks that did not move in time are SLABKV_ERROR or
	 * SLABKV_FAILED, `why` SLABKV_E_TIMEOUT, and *err names the storage and the file.
	 *
	 * When the file system does not answer (a lost node of 3FS), the kernel keeps the buffers
	 * of its requests. So:
	 *	- on file systems of the network (3FS and others by FUSE, NFS, SMB, 9p) a thread of
	 *	  the library moves the bytes, in memory of its own, and the caller's are copied.
	 *	  The call returns in time, and nothing touches its buffers afterwards. The thread
	 *	  stays until the file system answers, with its memory, its open file and, after
	 *	  slabkv_close, the handle. The process cannot end before (Linux waits for such
	 *	  threads).
	 *	- "usrbio" gives up its requests itself, and the memory that it keeps is its own.
	 *	  The call waits for requests that move directly between a file and registered
	 *	  memory of the caller, and for opening and syncing there.
	 *	- on local file systems the call waits for a request, and starts none after the
	 *	  limit.
	 * A put whose storage fails, or does not answer in half of the time, goes to another
	 * storage of the group. A write that was left behind ends its session without `quiesced`:
	 * its slot rests for the grace period. */
	uint32_t io_timeout_ms;
};

/* Fills *o, of `size` bytes, with the defaults. */
SLABKV_API void slabkv_options_init(struct slabkv_options *o, size_t size);
/* Options on the heap, with the defaults, for languages that cannot see the struct: set them by
 * name, release with slabkv_options_free after slabkv_open (or instead of it). NULL: out of
 * memory. */
SLABKV_API struct slabkv_options *slabkv_options_new(void);
SLABKV_API void slabkv_options_free(struct slabkv_options *o);

/* Sets one option by the name that connectors and their users know ("hf3fs_io_depth", "-8").
 * Options from slabkv_options_new copy the text, others borrow it until slabkv_open. Lists ("urls",
 * "mounts") are comma-separated and need slabkv_options_new. Sizes: "200M", powers of 1024;
 * booleans: true, false, 1, 0. SLABKV_E_INVALID: err.field is the name, the message says what is
 * allowed; *o is unchanged. */
SLABKV_API int slabkv_options_set(struct slabkv_options *o, const char *name, const char *value,
				    struct slabkv_error *err);

/* An option that slabkv_options_set accepts. Static. */
struct slabkv_option {
	const char *name;
	const char *range; /* "128..1024"; "an absolute path" */
	const char *value; /* the default; "" = none */
	const char *meaning;
};
/* Option number i, counted from 0; NULL after the last. */
SLABKV_API const struct slabkv_option *slabkv_option(uint32_t i);
/* The two callbacks, for languages that cannot see the struct. fn NULL: none. */
SLABKV_API void slabkv_options_on_call(struct slabkv_options *o,
				       void (*fn)(void *ctx, const char *op, uint64_t us,
						  int status),
				       void *ctx);
SLABKV_API void slabkv_options_on_mismatch(struct slabkv_options *o,
					   void (*fn)(void *ctx, const struct slabkv_mismatch *m),
					   void *ctx);

/* Opens a handle; `o` NULL: the defaults. Contacts no manager: one that is down is noticed by the
 * first call. SLABKV_E_INVALID (err.field names the option). */
SLABKV_API int slabkv_open(const struct slabkv_options *o, struct slabkv **out,
			     struct slabkv_error *err);
/* Releases a handle. NULL is allowed. No call may be running. Asynchronous queues that are still
 * open are closed first (slabkv_async_close) and must not be used any more. */
SLABKV_API void slabkv_close(struct slabkv *kv);

/* The trace that calls of this thread belong to from now on, as the value of the header traceparent
 * of W3C trace context ("00-" 32 hex digits "-" 16 hex digits "-" 2 hex digits); NULL: none, as at
 * first. With every handle; an asynchronous operation has that of the thread that submitted it.
 * Managers log it (trace_id, span_id) and pass it on. SLABKV_E_INVALID, and nothing changes: it is
 * none. */
SLABKV_API int slabkv_trace(const char *traceparent);
/* Limits the next request of this thread to a manager to a single try of at most `ms`; without an
 * answer the call ends with SLABKV_E_TIMEOUT. 0: as the options say, which is the default. For
 * calls that only read, by threads that cannot wait for long, such as Python's main thread, which
 * must handle signals: a call that took too long is repeated on another thread. */
SLABKV_API void slabkv_try_for(uint32_t ms);

/* The engine in use: "posix", "uring", or "usrbio" once a file on 3FS is open (from the start if it
 * was asked for by name with hf3fs_mount_point). *why (may be NULL): why it is not the one asked
 * for, or "". Both strings belong to the handle. */
SLABKV_API const char *slabkv_engine(const struct slabkv *kv, const char **why);

/* Releases any result of this library (anything returned through a pointer to pointer). NULL is
 * allowed. Any thread; results may outlive the handle. */
SLABKV_API void slabkv_free(const void *result);

/* ---- objects that are registered once -------------------------------------------------------- */

/* A kind of objects of the manager. One is a JSON object with the fields of the schema StorageView,
 * GroupView, InstanceView or TenantView (GET /v1/openapi.json, docs/reference/PROTOCOL.md). */
enum slabkv_object { SLABKV_STORAGE, SLABKV_GROUP, SLABKV_INSTANCE, SLABKV_TENANT };

/* Registers an object or changes it: reads what exists, sets the `fields` and puts the result.
 * `fields` is a JSON object with fields of the schema StorageSpec, GroupSpec, InstanceSpec or
 * TenantSpec, like {"capacity": "10G"}: an omitted field keeps its value, or has its default in a
 * new object. Of two concurrent changes of one object one may overwrite the other. Setting equal
 * values is SLABKV_OK. *json (may be NULL): the resulting object; release it with slabkv_free.
 * SLABKV_E_CONFLICT: err.field names a field that may not change. Retried; safe to repeat. */
SLABKV_API int slabkv_object_set(struct slabkv *kv, enum slabkv_object kind, const char *name,
				 const char *fields, const char **json, struct slabkv_error *err);

/* Reads one, or (`name` NULL) the first page of all, as {"storages": [...]}, "groups", "instances"
 * or "tenants"; if more follow it has "next" (slabkv_call: ?after=). SLABKV_E_NOT_FOUND. Release
 * *json (may be NULL) with slabkv_free. */
SLABKV_API int slabkv_object_get(struct slabkv *kv, enum slabkv_object kind, const char *name,
				 const char **json, struct slabkv_error *err);

/* Removes one. Removing an instance deletes all its blocks; a storage or group in use is
 * SLABKV_E_IN_USE. One that does not exist is SLABKV_OK, so that a repeated call is harmless. */
SLABKV_API int slabkv_object_delete(struct slabkv *kv, enum slabkv_object kind, const char *name,
				    struct slabkv_error *err);

/* In slabkv_instance: sets a number to 0, which means that it is not named. */
#define SLABKV_NONE UINT64_MAX

/* A part of a block, e.g. one tensor-parallel rank's. */
struct slabkv_spec {
	const char *name;
	uint64_t size; /* exact bytes, 1 .. 4 GiB */
};

/* A deployment of a model: the layout of its blocks. Fixed at registration, except `extra`,
 * `weight` and `capacity`. */
struct slabkv_instance {
	size_t size;
	const char *id;                   /* required */
	const char *group;                /* default "default" */
	uint32_t block_tokens;            /* tokens per block, for display; 0 = unknown */
	/* Parts of a block, in the order of buffers; required for a new one. */
	const struct slabkv_spec *specs;
	size_t spec_size;                 /* distance between elements: sizeof *specs */
	uint32_t n_specs;                 /* 1..SLABKV_MAX_SPECS */
	const char *extra;                /* opaque text, at most 16384 bytes */
	uint64_t weight;                  /* in a group that divides its capacity (default 1) */
	uint64_t capacity;                /* share in bytes; NONE (default): by weight */
};

/* Registers an instance or changes it, as slabkv_object_set. A member that is 0 or NULL is not
 * named; "" empties a text. */
SLABKV_API int slabkv_instance_put(struct slabkv *kv, const struct slabkv_instance *i,
				   struct slabkv_error *err);

/* Reads one back, all members set. SLABKV_E_NOT_FOUND. Release *out with slabkv_free. */
SLABKV_API int slabkv_instance_get(struct slabkv *kv, const char *id,
				   const struct slabkv_instance **out, struct slabkv_error *err);

/* ---- keys ------------------------------------------------------------------------------------ */

/* A 128-bit key. The integer n is the key {0, n}. */
struct slabkv_key {
	uint64_t hi;
	uint64_t lo;
};

enum slabkv_key_form {
	/* Any text, 1..1024 bytes of UTF-8; the manager hashes it with its secret. */
	SLABKV_KEYS_STRING,
	SLABKV_KEYS_INT,    /* 64-bit numbers, e.g. block hashes of an engine */
	SLABKV_KEYS_WIDE,   /* 128-bit */
	SLABKV_KEYS_BYTES,  /* as SLABKV_KEYS_WIDE, packed: 16 bytes each, big-endian */
	SLABKV_KEYS_TEXT,   /* as SLABKV_KEYS_STRING, packed into one text that `offsets` splits */
};

/* The keys of one call, all in one form, no key twice, and the block before them in their chain.
 * Use the functions below, or zero the struct and set what is needed. */
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
	/* SLABKV_KEYS_TEXT: [n + 1]; key i is text[offsets[i] .. offsets[i + 1] - 1] */
	const uint64_t *offsets;
	/* Puts: the block before the first key in its chain: one key (n = 1) without a parent of
	 * its own; a string if the keys are strings, else a number. NULL: the first key starts a
	 * chain. */
	const struct slabkv_keys *parent;
};

/* Fill a struct slabkv_keys. The array is borrowed, not copied. */
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
static inline struct slabkv_keys slabkv_keys_text(const char *v, const uint64_t *offsets,
						  uint32_t n)
{
	struct slabkv_keys k = slabkv_keys_of(SLABKV_KEYS_TEXT, n);

	k.v.text = v;
	k.offsets = offsets;
	return k;
}

/* ---- blocks: the calls that most programs need ----------------------------------------------- */

/* Buffer for one spec of one block. The library does not use it after the call returns. */
struct slabkv_buf {
	void *data;    /* put only reads it */
	uint64_t size; /* bytes; put: exactly the spec's size; get: at least */
};

enum slabkv_result {
	/* slabkv_get */
	SLABKV_HIT,      /* the buffers hold the bytes that were put */
	SLABKV_MISS,     /* not found; buffer contents are undefined */
	SLABKV_MISMATCH, /* a miss: wrong checksum under a valid lease, so the data is damaged */
	SLABKV_ERROR,    /* a miss: the bytes could not be read (see `why`) */
	/* slabkv_put */
	SLABKV_WRITTEN, /* committed by this call */
	SLABKV_EXISTS,  /* already stored */
	SLABKV_BUSY,    /* another writer holds it; nothing done */
	SLABKV_FAILED,  /* not stored (see `why`) */
	/* asynchronous operations only */
	SLABKV_GONE,      /* deleted, or did not exist */
	SLABKV_CANCELLED, /* not started */
	/* slabkv_put with SLABKV_PUT_SELECTIVE only */
	SLABKV_NOT_ADMITTED, /* not stored: worth less than the block it would replace */
	/* slabkv_put */
	/* Not stored: it was deleted, or all of its instance, while it was written or waited for
	 * room. */
	SLABKV_DELETED,
};

/* A block of a call. In: the buffers; out: the rest. */
struct slabkv_block {
	const struct slabkv_buf *bufs; /* a buffer for each spec of the call, in its order */
	uint32_t n_bufs;
	enum slabkv_result result;
	int why; /* SLABKV_OK, or the SLABKV_E_* behind SLABKV_ERROR and SLABKV_FAILED */
};

/* Summary of a get or put. */
struct slabkv_io {
	size_t size;         /* set by the caller */
	uint32_t done;       /* hits; blocks written */
	uint32_t matched;    /* get: hits reported by the manager, before reading */
	uint32_t mismatches; /* get: blocks with a wrong checksum under a valid lease */
	uint32_t failed;     /* get: SLABKV_ERROR; put: SLABKV_FAILED, SLABKV_DELETED */
	uint32_t exists;     /* put */
	uint32_t busy;       /* put */
	uint32_t ios; /* file-system requests: adjacent slots are merged (usrbio: cut at io_size) */
	uint64_t bytes;      /* of hits, or of blocks written */
	uint64_t not_admitted; /* put */
	/* In the fast tier: get: hits read there; put: blocks written there, too. */
	uint64_t copies;
};

#define SLABKV_LEASE_DEFAULT UINT32_MAX

enum slabkv_mode {
	SLABKV_PREFIX, /* stop at the first missing key */
	SLABKV_BATCH,  /* each key by itself */
	/* Only the last `window` consecutive keys that exist: what a sliding window attends to; 1 =
	 * the last state. */
	SLABKV_WINDOW,
	/* Each key by itself, to choose from: hits are leased but do not count as used; where the
	 * manager cannot lease all, the last keys become misses first. Read the chosen ones with
	 * another mode. */
	SLABKV_TRAILING,
};

struct slabkv_lookup_options {
	size_t size;
	enum slabkv_mode mode;
	const char *const *specs; /* subset of specs; NULL and 0 = all of the instance */
	uint32_t n_specs;
	/* How long locations stay valid; 0 = no lease, or SLABKV_LEASE_DEFAULT. */
	uint32_t lease_ms;
	uint32_t window;   /* SLABKV_WINDOW: 1..keys->n */
};

/* Reads blocks. `blocks` has keys->n elements, `block_size` apart (sizeof *blocks). keys->parent is
 * ignored. `o` NULL: prefix, all specs, default lease. `io` may be NULL. SLABKV_OK whenever the
 * manager answered, even if every key is a miss; *err then describes the first block with
 * SLABKV_ERROR, if any. On any other result every block is SLABKV_MISS. SLABKV_E_NOT_FOUND: no such
 * instance. */
SLABKV_API int slabkv_get(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
			  const struct slabkv_lookup_options *o, struct slabkv_block *blocks,
			  size_t block_size, struct slabkv_io *io, struct slabkv_error *err);

/* Flags of slabkv_put_options. SELECTIVE: blocks that the group's policy considers worth less than
 * the blocks they would replace may be refused, with all following ones: SLABKV_NOT_ADMITTED. That
 * is no failure: continue without storing them. */
#define SLABKV_PUT_SELECTIVE 1ull

struct slabkv_put_options {
	size_t size;
	const char *const *specs; /* specs that this writer writes; NULL and 0 = all */
	uint32_t n_specs;
	uint32_t deadline_ms; /* limit of the whole put; 0 = the manager's default */
	/* The keys are not a chain and have no parent: each block is evicted by its own use alone,
	 * while a chain is evicted from its tail. For blocks whose neighbours may be missing, e.g.
	 * states and sliding windows of hybrid models, where only the last blocks of a prompt are
	 * stored and read (SLABKV_WINDOW). */
	bool independent;
	uint64_t flags; /* SLABKV_PUT_*; others are SLABKV_E_INVALID */
};

/* Writes blocks. The keys are one chain after keys->parent, head first, unless `independent`.
 * `blocks` has keys->n elements, `block_size` apart (sizeof *blocks). `o` and `io` may be NULL. A
 * block returned as SLABKV_WRITTEN is durable and visible to every reader. SLABKV_OK whenever the
 * session was ended, even if blocks failed; *err then describes the first failed block. A put
 * larger than the manager takes in one session (for example half of a group's capacity) uses
 * several sessions. On an error no block is SLABKV_WRITTEN; after SLABKV_E_NETWORK or _TIMEOUT at
 * the end of the session a block may be stored all the same, and is then complete. */
SLABKV_API int slabkv_put(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
			  const struct slabkv_put_options *o, struct slabkv_block *blocks,
			  size_t block_size, struct slabkv_io *io, struct slabkv_error *err);

/* How many leading keys each of several instances has, with all specs. Takes no lease and does not
 * affect eviction: for schedulers. Fills matched[n_instances]. At most 64 instances. */
SLABKV_API int slabkv_match(struct slabkv *kv, const char *const *instances,
			      uint32_t n_instances, const struct slabkv_keys *keys,
			      uint32_t *matched, struct slabkv_error *err);

/* Deletes blocks: they are misses at once; their space is reused when no lease covers it. *deleted
 * (may be NULL): how many were stored or being written (at the last attempt, if retried). */
SLABKV_API int slabkv_delete(struct slabkv *kv, const char *instance,
			       const struct slabkv_keys *keys, uint32_t *deleted,
			       struct slabkv_error *err);

/* A round of a mover: takes some blocks of files and storages that drain with `move`, copies their
 * bytes to the locations that the manager assigns, and reports the result. A block whose bytes do
 * not match the checksum of their write stays in place. A mover that is killed costs a repeat,
 * never a block; any number of movers may run at once. Needs a token of role admin. */
struct slabkv_move_options {
	size_t size;          /* sizeof of this struct, as the caller knows it */
	uint32_t max;         /* slots at most; 0 = 128, the most */
	uint32_t deadline_ms; /* for all of them; 0 = the manager's default for sessions */
	/* True: a scrub, which reads and verifies blocks instead of moving them: blocks of slab
	 * files whose last check began before check_before_ms (the manager's clock, ms since 1970;
	 * 0: all), the longest unchecked first. The manager hides damaged blocks, so that their
	 * keys can be put again. */
	bool check;
	uint64_t check_before_ms;
};
struct slabkv_moved {
	size_t size;    /* as above */
	uint32_t taken; /* slots; 0: nothing to move now */
	uint32_t moved;
	uint32_t failed; /* not copied, or their blocks were removed meanwhile */
	uint32_t mismatches; /* of these: bytes that had another checksum */
	uint64_t bytes; /* bytes copied; 0 unless a block was moved */
	bool checks; /* the slots were verified only: `moved` counts those that are right */
	uint32_t hidden; /* damaged, and hidden now */
	uint32_t unread; /* of a check: could not be read */
	/* Of a scrub: */
	bool more; /* some slab files are due: call again, even if nothing was taken */
	uint64_t left_bytes; /* used bytes of these */
	uint64_t now_ms; /* the manager's clock */
};
/* `o` may be NULL. SLABKV_OK even if some blocks failed: then *err has the first reason, if it is
 * an error. SLABKV_E_SESSION_EXPIRED: the round took longer than the deadline, nothing was
 * moved. */
SLABKV_API int slabkv_move(struct slabkv *kv, const struct slabkv_move_options *o,
			   struct slabkv_moved *out, struct slabkv_error *err);

enum slabkv_pin_kind {
	SLABKV_PIN_SOFT = 1, /* evicted only when nothing else can be */
	SLABKV_PIN_HARD = 2, /* never evicted */
};

/* Pins blocks, i.e. protects them from eviction: those of the keys that exist now. ttl_ms: the pin
 * expires by itself; 0 = when unpinned, hard pins only. A block has one pin: hard wins over soft,
 * of equal kinds the later expiry. Pins survive restarts of the manager and go when the block is
 * deleted. *pinned (may be NULL): how many of the keys are pinned; missing[keys->n] (may be NULL):
 * keys that do not exist. SLABKV_E_QUOTA, field "pinned_bytes": over the limit for hard pins;
 * nothing was pinned. Retried; safe to repeat. */
SLABKV_API int slabkv_pin(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
			  enum slabkv_pin_kind kind, uint64_t ttl_ms, uint32_t *pinned,
			  bool *missing, struct slabkv_error *err);
/* Removes pins of both kinds; keys NULL = all of the instance. *unpinned (may be NULL): how many
 * blocks were pinned (at the last attempt, if retried). */
SLABKV_API int slabkv_unpin(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
			      uint64_t *unpinned, struct slabkv_error *err);

struct slabkv_pin_info {
	struct slabkv_key key;
	enum slabkv_pin_kind kind;
	uint64_t ttl_ms; /* time left; 0 = until unpinned */
};
struct slabkv_pins {
	uint32_t n;
	const struct slabkv_pin_info *v;
	size_t v_size; /* distance between elements */
	uint64_t next; /* cursor of the next page; 0 = this was the last */
};
/* Returns a page of the instance's pins, in no particular order. cursor 0 = start. Release *out
 * with slabkv_free. */
SLABKV_API int slabkv_pins(struct slabkv *kv, const char *instance, uint64_t cursor,
			     const struct slabkv_pins **out, struct slabkv_error *err);

struct slabkv_key_list {
	uint32_t n;
	const struct slabkv_key *keys;
	uint64_t next; /* cursor of the next page; 0 = this was the last */
};
/* Returns a page of the keys of the instance's blocks, in no particular order and in the manager's
 * own form: string keys as their hashes. cursor 0 = start; a page may be empty though more follow.
 * A block that exists throughout is listed once. SLABKV_E_INVALID, field "cursor": the manager has
 * restarted, start again. Release *out with slabkv_free. */
SLABKV_API int slabkv_list(struct slabkv *kv, const char *instance, uint64_t cursor,
			   const struct slabkv_key_list **out, struct slabkv_error *err);

/* ---- blocks: for programs that move the bytes themselves ------------------------------------- */

/* A slab file that locations refer to. Before using it, check that its superblock belongs to the
 * storage. */
struct slabkv_file {
	const char *storage;
	const char *type;
	char uuid[37];
	char path[64]; /* relative to the storage's root */
};

/* Where one spec of one block is stored. */
struct slabkv_location {
	uint32_t file; /* index into files */
	bool has_checksum;
	uint64_t offset;
	uint64_t length;     /* 0 = not stored */
	uint64_t generation; /* of the slot; never reused */
	uint64_t checksum;   /* XXH3-64 of the bytes */
};

/* Result of slabkv_lookup. */
struct slabkv_locations {
	uint32_t n_keys;
	/* PREFIX: leading hits; BATCH, TRAILING: all hits; WINDOW: `window` or 0. */
	uint32_t matched;
	uint32_t n_specs;
	const char *const *specs; /* names of the columns, always in the instance's order */
	const bool *hit;                    /* [n_keys] */
	const struct slabkv_location *loc; /* [n_keys * n_specs], valid where hit */
	size_t loc_size;                   /* distance between elements of `loc` */
	uint32_t n_files;
	const struct slabkv_file *files;
	size_t file_size;  /* distance between elements of `files` */
	uint32_t lease_ms; /* granted; counted from before the request was sent */
	/* The same as a CLOCK_BOOTTIME time; later the slots may be reused. */
	uint64_t valid_until_ms;
};

/* Looks up locations without reading. `o` NULL as in slabkv_get. Release *out with slabkv_free. */
SLABKV_API int slabkv_lookup(struct slabkv *kv, const char *instance,
			       const struct slabkv_keys *keys,
			       const struct slabkv_lookup_options *o,
			       const struct slabkv_locations **out, struct slabkv_error *err);

enum slabkv_outcome {
	SLABKV_START_WRITE,  /* write the locations with length > 0, then finish */
	SLABKV_START_EXISTS, /* already committed */
	SLABKV_START_BUSY,   /* being written by another open session */
	/* With SLABKV_PUT_SELECTIVE only: not stored; continue without storing it. */
	SLABKV_START_NOT_ADMITTED,
};

/* Result of slabkv_start. */
struct slabkv_session {
	char id[33]; /* "" if nothing is to be written: no finish needed */
	uint32_t n_keys;
	uint32_t n_specs;
	const char *const *specs; /* names of the columns, always in the instance's order */
	const uint8_t *outcome;             /* [n_keys] enum slabkv_outcome */
	const struct slabkv_location *loc; /* [n_keys * n_specs], length 0 = do not write it */
	size_t loc_size;                   /* distance between elements of `loc` */
	uint32_t n_write;                   /* keys with SLABKV_START_WRITE */
	uint32_t n_files;
	const struct slabkv_file *files;
	size_t file_size;         /* distance between elements of `files` */
	uint32_t deadline_ms;     /* counted from before the request was sent */
	uint64_t submit_until_ms; /* the same as a CLOCK_BOOTTIME time; submit nothing later */
};

/* Opens a write session. `request_id` (at most 127 characters; NULL = random) makes the call
 * idempotent: the same id gets the same answer. `o` may be NULL. SLABKV_E_SESSION_ENDED or
 * _EXPIRED: the id belongs to a session that is over. Release *out with slabkv_free (which does not
 * end the session). */
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
	bool quiesced; /* no write is in flight any more: failed slots need no grace period */
};

/* Result of a session. */
struct slabkv_finished {
	size_t size; /* set by the caller */
	uint32_t committed;
	uint32_t failed;
	uint32_t deleted; /* while they were written: they are not published */
	/* NULL, or set by the caller: [n_gone], set to whether block i of the session's n_write was
	 * deleted. */
	bool *gone;
	uint32_t n_gone;
};

/* Ends a session and publishes the blocks that the mask names. Sync local files first. `res` may be
 * NULL. A repeated call returns the same numbers. */
SLABKV_API int slabkv_finish(struct slabkv *kv, const char *session,
			       const struct slabkv_finish_options *o, struct slabkv_finished *res,
			       struct slabkv_error *err);
/* Ends a session without committing anything. */
SLABKV_API int slabkv_abort(struct slabkv *kv, const char *session, bool quiesced,
			      struct slabkv_error *err);

/* Selects the blocks to remove: exactly one member is given. */
struct slabkv_purge {
	size_t size; /* set by the caller */
	const char *const *instances; /* [n_instances] */
	uint32_t n_instances;
	const char *prefix; /* of names of instances; NULL = not given, as the next two */
	const char *group;
	const char *tenant; /* another than the caller's: an administrator of the operator */
};
/* Counts of a purge. */
struct slabkv_purged {
	size_t size; /* set by the caller */
	uint32_t instances;
	uint64_t blocks;
	uint64_t sessions; /* open ones */
};
/* Removes all blocks that are stored or being written before the call, for new weights or an
 * erasure: once the call has returned SLABKV_OK, none of them can be found or is published. The
 * cost does not depend on the number of blocks. Sessions end; their finish reports the deleted
 * blocks. `res` may be NULL. SLABKV_E_NOT_FOUND: an instance does not exist, the others are purged.
 * After any other error some instances may be purged: repeat the call. */
SLABKV_API int slabkv_purge(struct slabkv *kv, const struct slabkv_purge *what,
			    struct slabkv_purged *res, struct slabkv_error *err);

/* XXH3-64, the checksum of locations. */
SLABKV_API uint64_t slabkv_checksum(const void *data, size_t size);

/* ---- many operations at a time --------------------------------------------------------------- */

enum slabkv_op_kind {
	SLABKV_OP_PUT,    /* ends as WRITTEN, EXISTS, BUSY, DELETED or FAILED */
	SLABKV_OP_GET,    /* HIT, MISS, MISMATCH or ERROR */
	SLABKV_OP_EXISTS, /* HIT, MISS or ERROR */
	SLABKV_OP_DELETE, /* GONE or FAILED */
};

/* An operation on many blocks of an instance, in parallel arrays, for callers for which structs are
 * expensive, such as other languages. */
struct slabkv_batch {
	size_t size;
	enum slabkv_op_kind kind;
	/* Put and get: buffers of a block, one for each spec of the instance, in its order; else
	 * 0. */
	uint32_t n_bufs;
	const char *instance;
	/* In any form; slabkv_keys_bytes and slabkv_keys_text take packed keys. Put: one chain,
	 * head first, behind its `parent`, unless `independent`; get, exists, delete: each by
	 * itself. */
	const struct slabkv_keys *keys;
	void *const *data;       /* [keys->n * n_bufs]: block by block */
	/* [keys->n * n_bufs], bytes; put: exactly the specs' sizes, get: at least. */
	const uint64_t *lengths;
	/* [keys->n], out: enum slabkv_result; always set, except after SLABKV_E_INVALID. */
	uint8_t *results;
	/* [keys->n], out, or NULL: SLABKV_OK or the SLABKV_E_* behind ERROR and FAILED. */
	int32_t *whys;
	bool independent; /* as in slabkv_put_options */
	uint64_t tag;     /* slabkv_batch_submit: returned with the completion */
	/* Put and get: counts, as those calls return them; out, set when `results` are, or NULL. */
	struct slabkv_io *io;
};

/* Runs the batch on this thread, with one call to the manager and one transfer. SLABKV_OK whenever
 * the manager answered, even if single blocks failed; *err then describes the first. */
SLABKV_API int slabkv_batch(struct slabkv *kv, const struct slabkv_batch *b,
			    struct slabkv_error *err);

/* A queue of asynchronous operations, with a file descriptor that signals completions. Threads of
 * the library do the work; operations queued at the same time share calls to the manager: gets,
 * exists and deletes of one instance and one form of keys, puts of one chain. Operations in flight
 * are unordered: wait for a put before a get of the same block.
 *
 * Memory: what the buffers point to must stay unchanged until the operation's completion has been
 * drained; instance, keys and the arrays of buffers are copied. Buffers of an attached pool may be
 * returned earlier (slabkv_pool_put): they become free when no operation uses them any more.
 *
 * An operation completes only when no I/O can touch its buffers any more, even if it was cancelled,
 * failed or timed out meanwhile. The same holds when slabkv_async_stop, slabkv_async_close and
 * slabkv_close return, so they may take as long as the file system does.
 *
 * Any thread may submit, drain and cancel. */
struct slabkv_async;

struct slabkv_async_options {
	size_t size;            /* sizeof this struct */
	uint32_t max_in_flight; /* submitted and not drained; default 4096, at most 1048576 */
	uint32_t threads;       /* worker threads; default 4, at most 64 */
	uint32_t batch;         /* operations per call to the manager; default 128, at most 1024 */
};

/* Fills *o, of `size` bytes, with the defaults. */
SLABKV_API void slabkv_async_options_init(struct slabkv_async_options *o, size_t size);

/* Opens a queue on the handle; `o` NULL = defaults. SLABKV_E_INVALID, SLABKV_E_NOMEM,
 * SLABKV_E_UNAVAILABLE (no thread or descriptor to be had). */
SLABKV_API int slabkv_async_open(struct slabkv *kv, const struct slabkv_async_options *o,
				   struct slabkv_async **out, struct slabkv_error *err);

/* An eventfd, readable exactly while there are completions to drain: for poll, epoll or an event
 * loop. It belongs to the library: never close or read it. */
SLABKV_API int slabkv_async_fd(const struct slabkv_async *a);

/* An operation on one block. */
struct slabkv_op {
	enum slabkv_op_kind kind;
	const char *instance;
	const struct slabkv_keys *key; /* a single key (n = 1); puts: with its parent, if any */
	/* Put and get: one element for each spec of the instance, in its order; put: exactly the
	 * spec's size, get: at least. Other kinds: NULL and 0. */
	const struct slabkv_buf *bufs;
	uint32_t n_bufs;
	/* Put: the previous operation of this submit is the put of this block's predecessor, so
	 * this key has no parent of its own. Chained puts travel together; each put without it
	 * starts a chain. */
	bool chained;
	uint64_t tag; /* the caller's; returned with the completion */
};

/* How an operation ended. */
struct slabkv_completion {
	uint64_t tag;
	uint64_t batch; /* as returned by slabkv_submit or slabkv_batch_submit */
	uint32_t index; /* of the operation within its submit; for a batch 0 */
	uint32_t left;  /* operations of that submit still to be drained; 0 = this is the last */
	enum slabkv_op_kind kind;
	/* For a batch: SLABKV_CANCELLED, SLABKV_ERROR (the whole call failed), or the kind's result
	 * for success; its `results` hold each block's. */
	enum slabkv_result result;
	int why; /* the SLABKV_E_* behind ERROR and FAILED, else SLABKV_OK */
};

/* Submits n operations, `op_size` apart (sizeof *ops), all or none, without waiting. *batch (may be
 * NULL) is the submit's number. SLABKV_E_TOO_MANY: the queue has room for fewer than n; drain, then
 * retry. SLABKV_E_INVALID (err.field names the member), SLABKV_E_TOO_LARGE (n over max_in_flight),
 * SLABKV_E_UNAVAILABLE (stopped). */
SLABKV_API int slabkv_submit(struct slabkv_async *a, const struct slabkv_op *ops, size_t op_size,
			     uint32_t n, uint64_t *batch, struct slabkv_error *err);
/* Submits b as one operation with one completion. `results`, `whys` and `io` are filled before it
 * completes and must stay valid until then, as must the buffers; everything else is copied. *batch
 * (may be NULL) is the submit's number. Errors as slabkv_submit.
 *
 * Each batch is a call of its own, on one of the queue's threads. A caller that has the next batch
 * submitted while one is under way keeps the storage busy: its start or lookup, its checksums and
 * its sync take place while the other one's bytes move. Two at a time are enough; each needs
 * buffers of its own. */
SLABKV_API int slabkv_batch_submit(struct slabkv_async *a, const struct slabkv_batch *b,
				   uint64_t *batch, struct slabkv_error *err);
/* Takes up to `max` completions, `completion_size` apart (sizeof *out), without waiting. Returns
 * how many. */
SLABKV_API uint32_t slabkv_drain(struct slabkv_async *a, struct slabkv_completion *out,
				 size_t completion_size, uint32_t max);
/* Cancels the operations of a submit (0: of all) that have not started; they complete as
 * SLABKV_CANCELLED, the others as usual. Returns how many were cancelled. */
SLABKV_API uint32_t slabkv_cancel(struct slabkv_async *a, uint64_t batch);

/* Stops accepting operations, finishes those in flight (`cancel`: only those already started) and
 * returns when all have completed; completions can still be drained. Started operations take as
 * long as their calls: at worst the handle's timeout_ms for each, plus the file system's time. Do
 * not call it from a callback of the handle. */
SLABKV_API void slabkv_async_stop(struct slabkv_async *a, bool cancel);
/* slabkv_async_stop with cancel, then releases the queue with all undrained completions. No other
 * call on it may be running. NULL is allowed. */
SLABKV_API void slabkv_async_close(struct slabkv_async *a);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Any memory can serve as a buffer. Memory that the handle knows (attached pools, registered
 * memory) is
 *	- faster with "uring": registered with the kernel once, not pinned for each request;
 *	- faster with "usrbio", if shared: pieces of 1 MiB and more are read and written without
 *	  a copy;
 *	- safer: a pool's buffer is not handed out again while a get, a put or an uncompleted
 *	  asynchronous operation uses it, no matter who returned it, and the memory stays
 *	  registered that long. */

enum slabkv_memory {
	SLABKV_MEMORY_HOST,   /* private pages of this process */
	SLABKV_MEMORY_SHARED, /* shared memory: other processes may map the same pages */
	SLABKV_MEMORY_DEVICE, /* accelerator memory: SLABKV_E_UNSUPPORTED so far */
};

/* A pool of buffers of one size, all allocated when it is created. Any thread. */
struct slabkv_pool;

struct slabkv_pool_options {
	size_t size;           /* sizeof this struct */
	uint64_t bytes;        /* limit of all buffers together */
	uint64_t buffer_bytes; /* of one buffer; rounded up to whole pages */
	int numa_node;         /* NUMA node to allocate on; -1 (default) = any */
	enum slabkv_memory kind; /* SLABKV_MEMORY_HOST (default) or _SHARED */
	/* SHARED: a name. The object in /dev/shm is named after it and this process's pid
	 * namespace, pid and start time (slabkv_pool_info.shm). Creating a shared pool removes
	 * objects left by dead processes. */
	const char *shm_name;
};

/* Fills *o, of `size` bytes, with the defaults: 0 bytes, any node, host memory. */
SLABKV_API void slabkv_pool_options_init(struct slabkv_pool_options *o, size_t size);

/* Creates a pool and allocates every page. SLABKV_E_INVALID (err.field names the option),
 * SLABKV_E_NOMEM, SLABKV_E_NO_SPACE (/dev/shm is full), SLABKV_E_IN_USE (this process has a pool of
 * that shm_name), SLABKV_E_UNSUPPORTED. */
SLABKV_API int slabkv_pool_create(const struct slabkv_pool_options *o, struct slabkv_pool **out,
				    struct slabkv_error *err);
/* Frees the memory. SLABKV_E_IN_USE, without effect, while a buffer is taken or a handle has the
 * pool attached. NULL is allowed. */
SLABKV_API int slabkv_pool_destroy(struct slabkv_pool *pool);

/* Takes a buffer: buf->data is page-aligned, buf->size is buffer_bytes, the contents are undefined.
 * Waits up to `timeout_ms` for one; SLABKV_E_TOO_MANY if none is free by then. */
SLABKV_API int slabkv_pool_get(struct slabkv_pool *pool, uint32_t timeout_ms,
				 struct slabkv_buf *buf);
/* Returns a buffer, even while operations use it: then it becomes free when the last of them has
 * completed. SLABKV_E_INVALID if `data` is not a buffer taken from this pool. */
SLABKV_API int slabkv_pool_put(struct slabkv_pool *pool, void *data);

/* State of a pool. */
struct slabkv_pool_info {
	size_t size; /* set by the caller */
	void *base; /* address of the first buffer; they are contiguous */
	uint64_t bytes;
	uint64_t buffer_bytes;
	uint64_t stride; /* distance between buffers */
	uint32_t n_buffers;
	uint32_t free;
	uint32_t leaving; /* returned, but still used by an operation */
	int numa_node;    /* -1: any, also if the machine did not allow a choice */
	enum slabkv_memory kind;
	char shm[200]; /* SHARED: name for shm_open(3); else "" */
};
SLABKV_API int slabkv_pool_info(struct slabkv_pool *pool, struct slabkv_pool_info *out);

/* Removes shared memory of pools whose process is dead, judged by pid and start time, never by age.
 * Returns how many. Objects of other pid namespaces are left alone, because their processes cannot
 * be seen. */
SLABKV_API uint32_t slabkv_pool_sweep(void);

/* Makes the pool's memory known to the handle. SLABKV_OK even if the engine could not register
 * it (*err then says why): everything works, only slower. A pool may be attached to several
 * handles. */
SLABKV_API int slabkv_pool_attach(struct slabkv *kv, struct slabkv_pool *pool,
				    struct slabkv_error *err);
/* SLABKV_E_IN_USE while operations of this handle use one of its buffers, SLABKV_E_NOT_FOUND.
 * slabkv_close detaches whatever is still attached. */
SLABKV_API int slabkv_pool_detach(struct slabkv *kv, struct slabkv_pool *pool);

/* The same for memory not from a pool: shared memory of another process, later accelerator memory.
 * It must stay mapped until it is unregistered or the handle is closed. Regions must not overlap
 * (SLABKV_E_CONFLICT). SLABKV_E_UNSUPPORTED for SLABKV_MEMORY_DEVICE. */
SLABKV_API int slabkv_memory_register(struct slabkv *kv, void *base, uint64_t bytes,
					enum slabkv_memory kind, struct slabkv_error *err);
/* SLABKV_E_IN_USE, SLABKV_E_NOT_FOUND. */
SLABKV_API int slabkv_memory_unregister(struct slabkv *kv, void *base);

/* ---- the manager and the mounts -------------------------------------------------------------- */

/* Calls the manager's HTTP API in JSON (PROTOCOL.md), for programs that print the answer or need
 * data without a function here (counters: GET /v1/stats; slab files: GET and PUT
 * /v1/storages/NAME/files; one block: GET /v1/instances/ID/blocks?key=KEY). `path` is "/v1/...",
 * `body` a JSON text or NULL. Like all calls, this one may be sent more than once. Release *json
 * with slabkv_free. */
SLABKV_API int slabkv_call(struct slabkv *kv, const char *method, const char *path,
			   const char *body, const char **json, struct slabkv_error *err);
/* SLABKV_OK if a manager is reachable and ready (GET /readyz). One attempt, no waiting. */
SLABKV_API int slabkv_ready(struct slabkv *kv, struct slabkv_error *err);
/* Where storage `name` is mounted on this machine, proved by its marker file: *path, released with
 * slabkv_free. Of type memory: a sentence that says which node it is, and whether over TCP.
 * SLABKV_E_UNAVAILABLE or SLABKV_E_FOREIGN with the reason. */
SLABKV_API int slabkv_mount_find(struct slabkv *kv, const char *name, const char **path,
				   struct slabkv_error *err);

enum slabkv_verdict { SLABKV_GOOD, SLABKV_WARNING, SLABKV_BAD };

/* A result of slabkv_mount_check. The texts are borrowed for the call. */
struct slabkv_check {
	const char *name; /* a word or two */
	enum slabkv_verdict verdict;
	const char *detail; /* result of the check */
	const char *remedy; /* how to fix it; "" when good */
};

/* Checks whether a directory of this machine is suitable for blocks, with these options: the mount;
 * on 3FS also chunk size, client library, limits, shared memory and rings; then writes and reads
 * back a file of its own, which it removes. Calls `tell` for each check, on this thread. Contacts
 * no manager. SLABKV_OK if the checks could run, even if one failed; SLABKV_E_INVALID (an option).
 * Takes as long as the file system does. */
SLABKV_API int slabkv_mount_check(const struct slabkv_options *o, const char *dir,
				  void (*tell)(void *ctx, const struct slabkv_check *c), void *ctx,
				  struct slabkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
