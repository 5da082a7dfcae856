/*
 * hf3fs.h - shared by the files of the hf3fs API: the API's state, a call, an operation's row.
 *
 * A call: path and body are parsed (space.c, body.c) -> the core is asked, in portions of as many
 * keys as it takes -> the answer, or its substitute on failure (fail.c). An operation is a
 * row in ops_table.h and the functions that it names; it does not know about statuses, failure
 * modes or portions.
 */
#ifndef SKV_HF3FS_H
#define SKV_HF3FS_H

#include <stdatomic.h>

#include <skv/request.h>
#include <skv/core.h>
#include <skv/json.h>
#include <skv/json_out.h>
#include <skv/ops.h>
#include <skv/portions.h>
#include <skv/hf3fs_api.h>

#include "metrics_table.h"
#include "space.h"

struct hf3fs_request;

enum hf3fs_counter {
#define COUNTER_ENUM(number, ...) HF3FS_##number,
	SKV_HF3FS_COUNTERS(COUNTER_ENUM)
#undef COUNTER_ENUM
	HF3FS_COUNTERS
};

/* A space whose creation was requested but failed. */
struct wish {
	char name[SKV_MAX_NAME + 1]; /* space_name */
	uint64_t num_pages;
	uint64_t tried_ms; /* time of the last attempt */
};

#define WISHES_MAX 1024u

struct hf3fs_watch;

struct pages {
	struct skv_api api;
	struct skv_hf3fs_api_options o;
	atomic_uint_fast64_t counters[HF3FS_COUNTERS];
	struct hf3fs_ranks *ranks; /* ranks.c */
	struct hf3fs_watch *watch; /* watch.c; NULL: no files are watched */
	struct skv_mutex wish_lock;
	struct wish *wishes; /* [WISHES_MAX]; these two protected by wish_lock */
	uint32_t n_wishes;
};

/* BARE: an empty body is {}. WHOLE: about the space, whatever keys it names. KEYS_FIRST: upstream
 * reads the keys before it looks up the space. MAKES: creates the space, or else remembers the
 * wish. GRANTS: fulfils a remembered wish. VLLM: of vLLM's client. RANKED: the rank is in the body.
 * ECHOES: and in the answer. ALL: about the spaces of all ranks. */
enum {
	HF3FS_BARE = 1,
	HF3FS_WHOLE = 2,
	HF3FS_KEYS_FIRST = 4,
	HF3FS_MAKES = 8,
	HF3FS_GRANTS = 16,
	HF3FS_VLLM = 32,
	HF3FS_RANKED = 64,
	HF3FS_ECHOES = 128,
	HF3FS_ALL = 256,
};

struct hf3fs_op {
	const char *name;
	unsigned flags;
	enum hf3fs_counter undone; /* counter of answers given although the call failed */
	/* Parses the body, an object; sets k->part.total to the number of keys. */
	int (*read)(struct hf3fs_request *k, const struct skv_json_node *body);
	/* Asks the core for the keys of the portion, with k->part.done. Returns the core's
	 * result. */
	int (*ask)(struct hf3fs_request *k);
	/* After the core's answer: counts, and adds an element for each key to the answer. False:
	 * the other keys get none. NULL: nothing to do. */
	bool (*tell)(struct hf3fs_request *k);
	const char *list; /* name of the answer's list; NULL: the answer is 204 */
	const char *none; /* element for a key of which nothing is known */
	/* VLLM only, each may be NULL: */
	/* adds the elements for all remaining keys, instead of `none` */
	void (*rest)(struct hf3fs_request *k);
	void (*say)(struct hf3fs_request *k);  /* the answer is not a list: writes it */
	const char *need;    /* refuses a body without rank or list: 400 */
	const char *trouble; /* start of the message of a 500 from upstream's handler */
};

#define VLLM_SCHEDULER UINT64_MAX         /* instead of num_pages: nothing to initialize */

/* skv_request.state. */
struct hf3fs_request {
	struct skv_request *c;
	const struct hf3fs_op *op; /* NULL: no operation */
	struct space space;
	const char *detail; /* why the request is refused with c->http; NULL: it is not */
	const char *bad_rank; /* the text in place of a rank that is not one; NULL: it is one */
	bool late;   /* upstream looks up the space before it finds that out */
	bool raised; /* upstream's server raises: 500 */
	bool caught; /* upstream's handler would report the reason: op->trouble */
	struct job job; /* on a worker */

	struct skv_portions part; /* total: keys of the request, or pages if more */
	bool over;                /* the answer has no elements for further portions */
	uint32_t told;            /* elements in the answer */

	struct skv_key *keys; /* [n_keys] */
	uint32_t n_keys;
	union {
		struct {
			struct skv_lookup_req req;
			struct skv_lookup_res res;
		} lookup;
		struct {
			struct skv_bytes *names; /* [n_keys] n 0: the key is too long */
			bool has_parent;
			struct skv_key parent; /* of keys[0] */
			uint32_t *where; /* [n] of the portion: index in req; NULL: identity */
			struct skv_start_req req;
			struct skv_start_res res;
		} reserve;
		struct {
			uint64_t *pages;    /* [n_keys] of the keys */
			uint64_t *released; /* [n_released] */
			uint32_t n_released;
			struct skv_partial_req req;
			struct skv_partial_res res;
		} confirm;
		struct {
			struct skv_delete_req req;
			struct skv_delete_res res;
		} del;
		struct {
			struct skv_clear_req req;
			struct skv_clear_res res;
		} clear;
		uint64_t num_pages; /* initialize */
		struct {
			struct skv_json_node *node; /* [n_keys] */
			bool has_parent;
			struct skv_key parent; /* of keys[0] */
			uint64_t *page;  /* [n_keys] UINT64_MAX: none */
			uint32_t *where; /* of start_req's keys: index in all keys */
			bool *spare;     /* [n] of the portion: another client is writing it */
			uint32_t rounds; /* number of starts, for the portion */
			struct skv_lookup_req find;
			struct skv_lookup_res found;
			struct skv_start_req start_req;
			struct skv_start_res start_res;
		} allocate;
		struct {
			const int64_t *v; /* [n] the tenant's */
			uint32_t n;
			struct skv_portions each; /* portions of one key */
			bool prefix;     /* only the keys before the first miss */
			/* The first rank's locations are returned: the others' need no lease. */
			bool only_first;
			uint32_t matched;
			struct space space;
			/* [part.n] of the first rank; UINT64_MAX: not on all ranks */
			uint64_t *page;
			struct skv_lookup_req req;
			struct skv_lookup_res res;
		} ranks;
		struct {
			uint64_t num_pages, have;   /* requested; of the space */
			uint64_t cursor;
			uint32_t max;
			struct skv_bytes *names;    /* [n_keys] */
			uint64_t *offsets;           /* [n_keys] */
			uint64_t imported, there, taken, outside, unfit;
			struct skv_start_req start_req;
			struct skv_start_res start_res;
			struct skv_partial_req partial_req;
			struct skv_partial_res partial_res;
			struct skv_clear_req clear_req;
			struct skv_clear_res clear_res;
			struct skv_export_res export_res;
		} admin;
	} u;
};

static inline struct pages *pages_of(const struct hf3fs_request *k) { return k->c->api->ctx; }
static inline struct skv_core *hf3fs_core(const struct hf3fs_request *k)
{
	return skv_request_core(k->c);
}
static inline struct skv_cluster *hf3fs_cluster(const struct hf3fs_request *k)
{
	return skv_request_cluster(k->c);
}

static inline bool hf3fs_strict(const struct hf3fs_request *k)
{
	return pages_of(k)->o.strict_upstream;
}

/* Otherwise it is 204. */
static inline bool hf3fs_has_answer(const struct hf3fs_op *op) { return op->list || op->say; }

static inline void hf3fs_count(const struct hf3fs_request *k, enum hf3fs_counter which, uint64_t n)
{
	atomic_fetch_add_explicit(&pages_of(k)->counters[which], n, memory_order_relaxed);
}

/* ---- api.c ----------------------------------------------------------------------------------- */

/* Processes the rest, portion by portion. Status as of a route's run. */
int hf3fs_go(struct hf3fs_request *k);
/* Completes the answer with nothing for the remaining keys. */
void hf3fs_answer(struct hf3fs_request *k);
/* Restarts the answer. */
void hf3fs_untell(struct hf3fs_request *k);

/* ---- fail.c ---------------------------------------------------------------------------------- */

/* skv_api.fail. */
unsigned hf3fs_fail(struct skv_request *c);
/* skv_api.patience. */
uint32_t hf3fs_patience(struct skv_request *c);
/* Refuses the request with `http`, or in upstream mode with 500 if `raises`. Returns
 * SKV_E_INVALID. */
int hf3fs_refuse(struct hf3fs_request *k, unsigned http, bool raises, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int hf3fs_nomem(struct hf3fs_request *k);
/* Upstream's server raises here: answers 500 and closes the connection. */
unsigned hf3fs_raise(struct hf3fs_request *k);

/* ---- body.c ---------------------------------------------------------------------------------- */

/* Fills k->space from the path and the body, then runs the operation's `read`. */
int hf3fs_read(struct hf3fs_request *k);

/* ---- make.c: spaces -------------------------------------------------------------------------- */

/* Creates the space, or one that was wished for or dropped, on a worker, then runs the operation.
 * SKV_PENDING, SKV_E_NOT_FOUND (there is none, or not now), SKV_E_TOO_MANY. */
int hf3fs_make_later(struct hf3fs_request *k);
/* Runs a job on a worker, as hf3fs_make_later does: SKV_PENDING, or SKV_E_TOO_MANY. */
int hf3fs_on_worker(struct hf3fs_request *k, void (*run)(struct job *job, bool expired));
/* On a worker. Also SKV_OK if it exists. */
int hf3fs_make(struct hf3fs_request *k, uint64_t num_pages);
/* On a worker: removes the space with all its keys; the next reservation creates it again, except
 * in upstream mode. */
int hf3fs_drop(struct hf3fs_request *k);
/* Finds the core of the space for all following calls. */
void hf3fs_locate(struct hf3fs_request *k);
/* SKV_E_NOT_FOUND: not initialized. */
int hf3fs_find(struct hf3fs_request *k);
void hf3fs_wish_add(struct hf3fs_request *k);

/* ---- operations: the functions of the rows --------------------------------------------------- */

int hf3fs_read_initialize(struct hf3fs_request *k, const struct skv_json_node *body);
int hf3fs_read_keys(struct hf3fs_request *k, const struct skv_json_node *body);
int hf3fs_read_reserve(struct hf3fs_request *k, const struct skv_json_node *body);
int hf3fs_read_confirm(struct hf3fs_request *k, const struct skv_json_node *body);
int hf3fs_read_nothing(struct hf3fs_request *k, const struct skv_json_node *body);
int hf3fs_ask_exists(struct hf3fs_request *k);
int hf3fs_ask_get(struct hf3fs_request *k);
int hf3fs_ask_reserve(struct hf3fs_request *k);
int hf3fs_ask_confirm(struct hf3fs_request *k);
int hf3fs_ask_delete(struct hf3fs_request *k);
int hf3fs_ask_clear(struct hf3fs_request *k);
bool hf3fs_tell_exists(struct hf3fs_request *k);
bool hf3fs_tell_get(struct hf3fs_request *k);
bool hf3fs_tell_reserve(struct hf3fs_request *k);
bool hf3fs_tell_confirm(struct hf3fs_request *k);

/* vllm.c, vllm_body.c */
int vllm_read_initialize(struct hf3fs_request *k, const struct skv_json_node *body);
int vllm_read_keys(struct hf3fs_request *k, const struct skv_json_node *body);
int vllm_read_allocate(struct hf3fs_request *k, const struct skv_json_node *body);
int vllm_read_confirm(struct hf3fs_request *k, const struct skv_json_node *body);
int vllm_ask_allocate(struct hf3fs_request *k);
int vllm_ask_exists(struct hf3fs_request *k);
int vllm_ask_locations(struct hf3fs_request *k);
int vllm_ask_clear(struct hf3fs_request *k);
bool vllm_tell_allocate(struct hf3fs_request *k);
bool vllm_tell_exists(struct hf3fs_request *k);
bool vllm_tell_locations(struct hf3fs_request *k);
void vllm_rest_allocate(struct hf3fs_request *k);
void vllm_say_initialize(struct hf3fs_request *k);

/* ---- ranks.c: the ranks of a tenant that have a vLLM space ---------------------------------- */

int hf3fs_ranks_create(struct hf3fs_ranks **out);
void hf3fs_ranks_destroy(struct hf3fs_ranks *r); /* NULL is allowed */
/* Finds where they are: skv_request_find. SKV_E_NOMEM. */
int hf3fs_ranks_find(struct hf3fs_request *k);
/* After that: all of them, in *v (in the call's arena); *n may be 0. Statuses as of
 * skv_request_check_door. */
int hf3fs_ranks(struct hf3fs_request *k, const int64_t **v, uint32_t *n);

/* ---- watch.c: the clients' page files -------------------------------------------------------- */

enum hf3fs_file_state { HF3FS_FILE_NONE, HF3FS_FILE_THERE, HF3FS_FILE_UNSEEN };
struct pages_file_view {
	char path[2 * SKV_FILE_PATH_MAX + 2];
	enum hf3fs_file_state state;
	uint64_t drops; /* how often its keys were dropped since this process started */
};
/* Returns false if the space's file is not watched. */
bool hf3fs_watch_view(struct pages *p, const struct space *s, struct pages_file_view *out);
/* Has its file checked now and waits for that, but not for long, and not if a check hangs. */
void hf3fs_watch_look(struct pages *p, const struct space *s);
void hf3fs_watch_destroy(struct hf3fs_watch *w); /* after skv_hf3fs_api_quiet; NULL is allowed */

/* ---- admin.c: slabkv pages ------------------------------------------------------------------- */

int hf3fs_admin_list(struct skv_request *c);
int hf3fs_admin_export(struct skv_request *c);
int hf3fs_admin_import(struct skv_request *c);
int hf3fs_admin_clear(struct skv_request *c);
void hf3fs_admin_list_write(struct skv_request *c);
void hf3fs_admin_export_write(struct skv_request *c);
void hf3fs_admin_import_write(struct skv_request *c);
void hf3fs_admin_clear_write(struct skv_request *c);
unsigned hf3fs_admin_fail(struct skv_request *c);

/* ---- metrics.c ------------------------------------------------------------------------------- */

void hf3fs_expose(const struct skv_api *api, struct skv_service *s, struct skv_arena *a,
		  struct skv_buf *out);

#endif
