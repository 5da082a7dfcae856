/*
 * client.h - the handle and what the files of the library share. Not installed.
 *
 * Inside the library everything speaks kvb/ops.h and `struct kvb_error`; the public functions
 * translate at the edge (result.c).
 */
#ifndef KVB_CLIENT_H
#define KVB_CLIENT_H

#include <stdatomic.h>

#include <kvb/arena.h>
#include <kvb/bytes.h>
#include <kvb/clock.h>
#include <kvb/lock.h>
#include <kvb/ops.h>
#include <kvb/status.h>
#include <kvb/v1_codec.h>

#include <kvblock.h>

#include "engine.h"
#include "files.h"
#include "http.h"
#include "memory.h"
#include "mount.h"
#include "plan.h"

#define KVB_MAX_URLS 16u
#define KVB_MAX_MOUNTS 64u
#define KVB_DEFAULT_URL "http://127.0.0.1:7333"

/* Fixed once open, but `current` and `codec`. */
struct kvblock {
	const struct kvb_clock *clock;
	char **urls; /* without trailing '/' */
	uint32_t n_urls;
	atomic_uint current; /* the URL that answered last */
	/* Of requests and answers; JSON from the moment a manager refuses the other. */
	_Atomic(const struct kvb_v1_codec *) codec;
	uint32_t timeout_ms;
	uint32_t rounds;
	bool verify;
	bool checksum;
	uint32_t async_threads;   /* of queues that do not say; 0: their own default */
	uint32_t async_in_flight;
	void (*on_call)(void *ctx, const char *op, uint64_t us, int status);
	void *on_call_ctx;
	void (*on_mismatch)(void *ctx, const struct kvblock_mismatch *m);
	void *on_mismatch_ctx;
	struct kvb_http *http;
	struct kvb_engine *engine;
	struct kvb_error engine_why; /* why it is not the engine that was asked for */
	struct kvb_memory *memory;
	struct kvb_mounts *mounts;
	struct kvb_files_cache *files;
	struct kvb_mutex async_lock;  /* protects async */
	struct kvblock_async *async;  /* open queues */
	atomic_bool closing;          /* calls give up instead of trying once more */
};

/* kvblock_open with the two things that tests replace. NULL = system clock, the engine of `o`. */
int kvb_client_open(const struct kvblock_options *o, const struct kvb_clock *clock,
		    const struct kvb_engine_ops *engine, struct kvblock **out,
		    struct kvb_error *err);

/* ---- call.c: one operation at whichever manager answers -------------------------------------- */

struct kvb_call {
	const char *op;     /* for on_call and messages; static */
	const char *method;
	const char *path;   /* "/v1/..." */
	const struct kvb_buf *body; /* may be NULL */
	const struct kvb_v1_codec *codec; /* of the body and wanted for the answer; NULL: JSON */
	uint32_t rounds;    /* 0 = the handle's */
};

struct kvb_answer {
	struct kvb_buf body; /* release with kvb_buf_destroy, also after an error */
	uint64_t sent_ms;    /* clock just before the answered request was sent */
	const struct kvb_v1_codec *codec; /* of body */
	bool refused; /* the manager does not read call.codec: see kvb_call_again */
};

/* Repeats as long as that can help (so only idempotent operations come here), within timeout_ms. */
int kvb_call_do(struct kvblock *kv, const struct kvb_call *c, struct kvb_answer *a,
		struct kvb_error *err);
/* After a call whose body was in the handle's codec: true when the manager has refused that codec. The
 * handle has then gone over to JSON, and the caller encodes and calls once more. */
bool kvb_call_again(struct kvblock *kv, struct kvb_answer *a);

/* ---- result.c: results that the caller frees, and the edge ----------------------------------- */

/* Zeroed memory that kvblock_free releases, together with its arena. NULL when out of memory. */
void *kvb_result_new(size_t size);
struct kvb_arena *kvb_result_arena(void *result);
/* Copies the inner error out; returns `status`. */
int kvb_result_fail(struct kvblock_error *out, const struct kvb_error *err, int status);
/* The same for get and put, which keep what went wrong with single blocks although they succeed. */
int kvb_result_finish(struct kvblock_error *out, const struct kvb_error *err, int status);

/* ---- options.c ------------------------------------------------------------------------------- */

/* The defaults of the engine "usrbio". */
void kvb_hf3fs_init(struct kvblock_hf3fs *h);
/* KVB_E_INVALID naming the first option that is out of its range. */
int kvb_options_check(const struct kvblock_options *o, struct kvb_error *err);

/* ---- keys.c ---------------------------------------------------------------------------------- */

/* Checks `keys` and puts them into the form that travels. `field` names them in errors. */
int kvb_keys_input(const struct kvblock_keys *keys, const char *field, struct kvb_arena *a,
		   struct kvb_key_input *out, struct kvb_error *err);
/* KVB_E_INVALID naming `field` unless `name` may stand in a path. */
int kvb_name_check(const char *name, const char *field, struct kvb_error *err);

/* ---- query.c, session.c: operations as the data path uses them ------------------------------- */

struct kvb_lookup_answer {
	struct kvb_lookup_res res; /* in the arena */
	uint64_t valid_until_ms;
};
int kvb_query_lookup(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys,
		     const struct kvblock_lookup_options *o, struct kvb_arena *a,
		     struct kvb_lookup_answer *out, struct kvb_error *err);

struct kvb_start_answer {
	struct kvb_start_res res; /* in the arena */
	uint64_t submit_until_ms;
};
int kvb_session_start(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys,
		      const struct kvblock_put_options *o, const char *request_id,
		      struct kvb_arena *a, struct kvb_start_answer *out, struct kvb_error *err);
int kvb_session_finish(struct kvblock *kv, const struct kvb_finish_req *req,
		       struct kvb_finish_res *res, struct kvb_error *err);
int kvb_session_abort(struct kvblock *kv, const char *session, bool quiesced,
		      struct kvb_error *err);

/* The storage as the manager tells it; result of kvb_result_new. */
int kvb_object_storage(struct kvblock *kv, const char *name, struct kvblock_storage_info **out,
		       struct kvb_error *err);

/* ---- transfer.c: pieces of a get or put ------------------------------------------------------ */

struct kvb_transfer {
	struct kvblock *kv;
	struct kvb_arena *arena;
	const struct kvb_files *files;
	struct kvb_slab_file **open; /* [files->n], NULL = not open */
	struct kvb_slab_file **dropped; /* [files->n], what `open` was before it was opened anew */
	int *why;                    /* [files->n], status of opening */
	struct kvb_piece *pieces;
	uint32_t n_pieces;
	struct kvb_plan plan;
	uint32_t ios;           /* requests made */
	bool loose;             /* a write was given up, but may still reach the storage */
	struct kvb_error first; /* the first thing that went wrong, for the caller's err */
};

/* Room for `max` pieces. KVB_E_NOMEM. Pair with kvb_transfer_end. */
int kvb_transfer_begin(struct kvb_transfer *t, struct kvblock *kv, struct kvb_arena *a,
		       const struct kvb_files *files, uint64_t max);
/* Adds one spec of one block at its location. `exact`: the buffer must have just that size. */
void kvb_transfer_add(struct kvb_transfer *t, uint32_t block, uint32_t spec,
		      const struct kvb_location *loc, const struct kvblock_block *to, bool exact);
/* Opens the files that pieces lie in, checks bounds, makes the plan. Single failures become the
 * pieces' status. KVB_E_NOMEM. */
int kvb_transfer_plan(struct kvb_transfer *t, bool write);
/* Moves the bytes and settles the pieces. */
void kvb_transfer_run(struct kvb_transfer *t, bool write, const struct kvb_deadline *by);
/* Makes written files durable; pieces in a file that cannot be synced get its status. */
void kvb_transfer_sync(struct kvb_transfer *t);
void kvb_transfer_end(struct kvb_transfer *t);

/* A directory that is storage `name`/`uuid`, asking the manager for its root when the caller named
 * no mounts. Release with kvb_mount_release. */
int kvb_transfer_mount(struct kvblock *kv, const char *name, const uint8_t uuid[16],
		       struct kvb_mount **out, struct kvb_error *err);

#endif
