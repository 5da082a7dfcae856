/*
 * client.h - the handle and internal interfaces of the library. Not installed.
 *
 * Inside the library everything speaks skv/ops.h and `struct skv_error`; the public functions
 * translate at the edge (result.c).
 */
#ifndef SKV_CLIENT_H
#define SKV_CLIENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/check.h>
#include <skv/clock.h>
#include <skv/http.h>
#include <skv/lock.h>
#include <skv/ops.h>
#include <skv/status.h>
#include <skv/v1_pb.h>

#include <slabkv.h>

#include "engine.h"
#include "files.h"
#include "memory.h"
#include "mount.h"
#include "owners.h"
#include "plan.h"

#define SKV_PATH_MAX 512u /* part of a URL after the manager's address */
#define SKV_MAX_URLS 16u
#define SKV_MAX_MOUNTS 64u
#define SKV_DEFAULT_URL "http://127.0.0.1:7333"

/* Fixed once open, except `current`. */
struct slabkv {
	const struct skv_clock *clock;
	char **urls; /* without trailing '/' */
	uint32_t n_urls;
	atomic_uint current; /* the URL that answered last */
	atomic_uint_fast64_t forward_until_us; /* calls without a known owner are forwarded */
	/* Known owners; NULL: with a single manager no answer needs to name the owner. */
	struct skv_owners *owners;
	uint32_t timeout_ms;
	uint32_t io_timeout_ms; /* of a whole get or put; 0: none */
	uint32_t rounds;
	uint32_t connect_ms;
	uint32_t hedge_ms; /* 0: never */
	bool verify;
	bool report; /* damage that is read, to the manager: */
	_Atomic uint64_t report_again_ms; /* not before, as the last report failed */
	_Atomic uint64_t failed_again_ms; /* no earlier line of the log about blocks that failed */
	_Atomic uint64_t failed_untold;   /* since the last such log line */
	uint32_t async_threads;   /* of queues without a number of their own; 0: the default */
	uint32_t async_in_flight;
	void (*on_call)(void *ctx, const char *op, uint64_t us, int status);
	void *on_call_ctx;
	void (*on_mismatch)(void *ctx, const struct slabkv_mismatch *m);
	void *on_mismatch_ctx;
	struct skv_http *http;
	char *token; /* for memory nodes; NULL: none */
	struct skv_engine *engine;
	struct skv_error engine_why; /* why it is not the requested engine */
	struct skv_memory *memory;
	struct skv_rdma *rdma;
	struct skv_mounts *mounts;
	struct skv_files_cache *files;
	struct skv_mutex async_lock;  /* protects async */
	struct slabkv_async *async;  /* open queues */
	atomic_bool closing;          /* calls fail instead of retrying */
	atomic_bool broken;           /* an invariant was broken: every call fails */
	atomic_uint users; /* the caller, and threads left behind (late.c); the last frees it: */
	void (*destroy)(struct slabkv *kv);
	pid_t pid;                    /* process that made the handle; fixed */
};

/* ---- handle.c: at the entry of every public function ----------------------------------------- */

/* True if the struct that `p` points to reaches to the end of the member, according to its size. */
#define SKV_HAS(p, member) ((p)->size >= offsetof(__typeof__(*(p)), member) + sizeof((p)->member))
/* SKV_E_INVALID, field "size": `what` names the function or macro that sets it. */
int skv_size_refuse(struct skv_error *err, const char *what);

/* Checks that this process may use the handle. SKV_E_INVALID after a fork, SKV_E_INTERNAL once an
 * invariant was broken. Until the next skv_result_fail on this thread, a failing check disables
 * this handle. */
int skv_enter(struct slabkv *kv, struct skv_error *err);
/* Returns true, with *err, if an invariant was broken. */
bool skv_is_broken(const struct slabkv *kv, struct skv_error *err);
/* Returns true, with *err, if another process, which has forked this one, created the handle. */
bool skv_is_foreign(pid_t pid, struct skv_error *err);
/* Tests: called first when a check fails. NULL: none. */
extern void (*skv_check_hook)(const char *expr, const char *file, int line);
/* The thread works for `kv`; NULL: for none. */
void skv_handle_of_thread(struct slabkv *kv);
const char *skv_trace_of_thread(void); /* slabkv_trace; "": none */
uint32_t skv_take_try_for(void); /* slabkv_try_for, which then is 0 again */
/* The whole operation of this thread ends in `ms` (0: never), and so do its calls to managers. */
void skv_deadline_of_thread(uint32_t ms);
uint64_t skv_thread_ends_us(void); /* skv_now_us; UINT64_MAX: never */
/* When 1/share of the time that is left is over, by the handle's clock; UINT64_MAX: never. */
uint64_t skv_share_ends_ms(const struct slabkv *kv, uint32_t share);

/* A user more; one less, the last of whom frees the handle. */
void skv_handle_keep(struct slabkv *kv);
void skv_handle_drop(struct slabkv *kv);

/* slabkv_open with two replacements for tests. NULL = system clock, the engine of `o`. */
int skv_client_open(const struct slabkv_options *o, const struct skv_clock *clock,
		    const struct skv_engine_ops *engine, struct slabkv **out,
		    struct skv_error *err);

/* ---- call.c: one operation at whichever manager answers -------------------------------------- */

struct skv_call {
	const char *op;     /* for on_call and messages; static */
	const char *method;
	const char *path;   /* "/v1/..." */
	/* Path of the call's object, if another one; NULL: the call's own path. */
	const char *about;
	const struct skv_buf *body; /* may be NULL */
	bool json;          /* body and answer; else protobuf */
	uint32_t rounds;    /* 0 = the handle's */
	uint32_t timeout_ms; /* at most; 0 = the handle's */
};

struct skv_answer {
	struct skv_buf body; /* release with skv_buf_destroy, also after an error */
	uint64_t sent_ms;    /* clock just before the answered request was sent */
};

/* Retries as long as that can help (so only for idempotent operations), within timeout_ms. */
int skv_call_do(struct slabkv *kv, const struct skv_call *c, struct skv_answer *a,
		struct skv_error *err);

/* An operation in protobuf, from skv_exchange_begin to skv_exchange_end: its request is written
 * into `body`, its answer read from answer.body. Stays where it was begun. */
struct skv_exchange {
	struct skv_call call;
	char path[SKV_PATH_MAX];
	struct skv_buf body;
	struct skv_answer answer;
};
/* `format` makes the path. */
void skv_exchange_begin(struct skv_exchange *x, const char *op, const char *method,
			const char *format, ...) __attribute__((format(printf, 4, 5)));
int skv_exchange_do(struct slabkv *kv, struct skv_exchange *x, struct skv_error *err);
void skv_exchange_end(struct skv_exchange *x);
/* The answer as the two arguments `text, n` of a reader. */
#define SKV_ANSWER(x) (const char *)(x).answer.body.data, (x).answer.body.len
/* SKV_E_INTERNAL: the answer contradicts its request. */
int skv_bad_answer(const struct skv_exchange *x, struct skv_error *err);

/* ---- result.c: results that the caller frees, and the edge ----------------------------------- */

/* Zeroed memory that slabkv_free releases, together with its arena. NULL if out of memory. */
void *skv_result_new(size_t size);
struct skv_arena *skv_result_arena(void *result);
/* A copy of the bytes as a result, with a NUL behind them. SKV_E_NOMEM. */
int skv_result_text(const struct skv_buf *from, const char **text, struct skv_error *err);
/* Copies the inner error out; returns `status`. */
int skv_result_fail(struct slabkv_error *out, const struct skv_error *err, int status);
/* The same for get and put, which report failures of single blocks although they succeed. */
int skv_result_finish(struct slabkv_error *out, const struct skv_error *err, int status);

/* ---- options.c ------------------------------------------------------------------------------- */

/* The engine's part of `o`; texts are borrowed. */
void skv_hf3fs_of(const struct slabkv_options *o, struct skv_hf3fs_options *out);
/* The defaults of the engine "usrbio". */
void skv_hf3fs_init(struct skv_hf3fs_options *h);
/* The same in *o. */
void skv_hf3fs_defaults(struct slabkv_options *o);
/* SKV_E_INVALID naming the first option that is out of its range. */
int skv_options_check(const struct slabkv_options *o, struct skv_error *err);

/* ---- keys.c ---------------------------------------------------------------------------------- */

/* Checks `keys` and converts them to the form sent on the wire. `field` names them in errors. */
int skv_keys_input(const struct slabkv_keys *keys, const char *field, struct skv_arena *a,
		   struct skv_key_input *out, struct skv_error *err);
/* Block i of a caller's array. */
static inline struct slabkv_block *skv_block_at(struct slabkv_block *v, size_t size, uint32_t i)
{
	return (struct slabkv_block *)(void *)((char *)v + size * i);
}
/* Returns true for a form whose keys are strings. */
bool skv_keys_are_text(const struct slabkv_keys *keys);
/* An answer's columns are in the instance's order, a caller's buffers in that of its requested
 * specs. (*out)[i]: which of a block's buffers belongs to column i; NULL if no specs were
 * requested: then it is i. False: the columns are not the requested specs, each once. `order` has
 * room for SKV_MAX_SPECS. */
bool skv_specs_order(const char *const *columns, uint32_t n, const char *const *asked,
		     uint32_t n_asked, uint32_t *order, const uint32_t **out);
/* SKV_E_INVALID naming `field` if `name` is not allowed in a path. */
int skv_name_check(const char *name, const char *field, struct skv_error *err);
/* Of an instance: may hold slashes. */
int skv_model_name_check(const char *name, const char *field, struct skv_error *err);
/* A checked name as one segment of a path: '/' becomes %2F. Lives as long as the block around. */
#define SKV_SEGMENT_MAX (3 * SKV_MAX_NAME + 1)
#define SKV_SEGMENT(name) skv_path_segment(name, (char[SKV_SEGMENT_MAX]){ 0 })
const char *skv_path_segment(const char *name, char out[SKV_SEGMENT_MAX]);

/* ---- query.c, session.c: operations as the data path uses them ------------------------------- */

struct skv_lookup_answer {
	struct skv_lookup_res res; /* in the arena */
	const uint32_t *buffer;    /* [n_specs]: see skv_specs_order */
	uint64_t valid_until_ms;
};
int skv_query_lookup(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		     const struct slabkv_lookup_options *o, struct skv_arena *a,
		     struct skv_lookup_answer *out, struct skv_error *err);

struct skv_start_answer {
	struct skv_start_res res; /* in the arena */
	const uint32_t *buffer;   /* [n_specs]: see skv_specs_order */
	uint64_t submit_until_ms;
};
struct skv_session_how {
	const char *request_id;   /* NULL: a random one */
	const char *const *avoid; /* [n_avoid] storages to take no slots of */
	uint32_t n_avoid;
};
int skv_session_start(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		      const struct slabkv_put_options *o, const struct skv_session_how *how,
		      struct skv_arena *a, struct skv_start_answer *out, struct skv_error *err);
int skv_session_finish(struct slabkv *kv, const struct skv_finish_req *req, struct skv_arena *a,
		       struct skv_finish_res *res, struct skv_error *err);
int skv_session_abort(struct slabkv *kv, const char *session, bool quiesced,
		      struct skv_error *err);

/* ---- get.c, put.c: with the handle entered --------------------------------------------------- */

int skv_get_blocks(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		   const struct slabkv_lookup_options *o, struct slabkv_block *blocks,
		   size_t block_size, struct slabkv_io *io, struct skv_error *err);
int skv_put_blocks(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		   const struct slabkv_put_options *o, struct slabkv_block *blocks,
		   size_t block_size, struct slabkv_io *io, struct skv_error *err);
/* query.c */
int skv_delete_blocks(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		      uint32_t *deleted, struct skv_error *err);
/* A lookup without a lease; hit[keys->n]. */
int skv_blocks_exist(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		     struct skv_arena *a, const bool **hit, struct skv_error *err);
/* Copies the counts to the caller's struct, as far as it reaches; it may be NULL. */
void skv_io_tell(struct slabkv_io *io, const struct slabkv_io *counts);
/* Checks a caller's array of blocks and its counts. SKV_E_INVALID. */
int skv_blocks_check(const struct slabkv_block *blocks, size_t block_size,
		     const struct slabkv_io *io, struct skv_error *err);

/* ---- damage.c -------------------------------------------------------------------------------- */

/* Slots of one call that had a wrong checksum. */
struct skv_damage_list {
	struct skv_damage v[SKV_MAX_DAMAGED];
	uint32_t n;
};
/* `spec` is borrowed. False: the list is full, the slot is left for later. */
bool skv_damage_note(struct skv_damage_list *l, uint32_t key, const char *spec,
		     uint64_t generation);
/* Reports them once, unless the handle does not. Changes the list. */
void skv_damage_report(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		       struct skv_damage_list *l, struct skv_arena *a);

/* objects.c: the manager's view of the storage, with texts in the arena. */
int skv_object_storage(struct slabkv *kv, const char *name, struct skv_arena *a,
		       struct skv_storage_view *out, struct skv_error *err);

/* ---- transfer.c: pieces of a get or put ------------------------------------------------------ */

struct skv_transfer {
	struct slabkv *kv;
	struct skv_arena *arena;
	const struct skv_files *files;
	const uint32_t *buffer;      /* the buffer of each column; NULL: the same number */
	struct skv_slab_file **open; /* [files->n], NULL = not open */
	struct skv_slab_file **dropped; /* [files->n], previous value of `open` before a reopen */
	int *why;                    /* [files->n], status of opening */
	struct skv_piece *pieces;
	uint32_t n_pieces;
	uint64_t max_pieces; /* capacity */
	struct skv_plan plan;
	bool write;
	bool past_cache; /* reads the storage itself: a scrub's */
	uint32_t next_sum; /* of plan.order: the first one that is not summed, if it is to be */
	uint32_t ios;           /* requests made */
	bool in_flight;             /* a write was abandoned, but may still reach the storage */
	struct skv_error first; /* the first failure, for the caller's err */
};

/* Makes room for `max` pieces. SKV_E_NOMEM. Pair with skv_transfer_end. */
int skv_transfer_begin(struct skv_transfer *t, struct slabkv *kv, struct skv_arena *a,
		       const struct skv_files *files, uint64_t max);
/* Adds one spec of one block at its location. `exact`: the buffer must have exactly that size.
 * `prove`: the checksum of its bytes will be asked for; a read is compared with the location's. */
void skv_transfer_add(struct skv_transfer *t, uint32_t block, uint32_t spec,
		      const struct skv_location *loc, const struct slabkv_block *to, bool exact,
		      bool prove);
/* Opens the pieces' files, checks bounds, makes the plan. Single failures are stored as the pieces'
 * status. SKV_E_NOMEM. */
int skv_transfer_plan(struct skv_transfer *t, bool write);
/* Moves the bytes and sets the pieces' results. Sums pieces to be proven while others move. What
 * was read with a wrong checksum is read once more, past the page cache: a mismatch after it is the
 * file's, not this machine's. */
void skv_transfer_run(struct skv_transfer *t, const struct skv_io_call *by);
/* The checksum of a piece that is whole. */
uint64_t skv_transfer_sum(struct skv_piece *p);
/* Returns true if a whole piece that must be verified has the written bytes. */
static inline bool skv_transfer_proves(struct skv_piece *p)
{
	return skv_transfer_sum(p) == p->checksum;
}
/* Syncs written files; pieces in a file that cannot be synced get its status. */
void skv_transfer_sync(struct skv_transfer *t);
void skv_transfer_end(struct skv_transfer *t);
/* late.c: plans, runs and syncs a transfer (above), until by->until_ms at most where the file
 * system may hang. After that nothing touches the caller's buffers; such pieces are `late`, and a
 * write is `in_flight`. SKV_E_NOMEM. */
int skv_transfer_move(struct skv_transfer *t, bool write, const struct skv_io_call *by);
/* Logs that `n` blocks of a call failed, with `first`, its first reason: at most one line in ten
 * seconds for each handle, which also counts the blocks of calls without a line. Programs that
 * treat failures of a cache as misses would never know. */
void skv_transfer_tell(struct slabkv *kv, const char *call, uint32_t n,
		       const struct skv_error *first);

/* The directory of storage `name`/`uuid`, asking the manager for its root if the caller named no
 * mounts. Release with skv_mount_release. */
int skv_transfer_mount(struct slabkv *kv, const char *name, const uint8_t uuid[16],
		       struct skv_mount **out, struct skv_error *err);

#endif
