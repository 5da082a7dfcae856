/*
 * hf3fs.h - what the files of the hf3fs API share: the API's state, a call, an operation's row.
 *
 * A call: its path and body are read (space.c, body.c) -> the core is asked, for so many keys at a time as it takes
 * (api.c) -> the answer, or what stands for it when there is none (fail.c). An operation is a row in ops_table.h and
 * the functions that it names; it knows no statuses, modes of failure or portions.
 */
#ifndef SKV_HF3FS_H
#define SKV_HF3FS_H

#include <stdatomic.h>

#include <skv/request.h>
#include <skv/core.h>
#include <skv/json.h>
#include <skv/json_out.h>
#include <skv/ops.h>
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

/* A space that could not be made when it was asked for. */
struct wish {
	char name[SKV_MAX_NAME + 1]; /* space_name */
	uint64_t num_pages;
	uint64_t tried_ms; /* when it was tried last */
};

#define WISHES_MAX 1024u

struct hf3fs_watch;

struct pages {
	struct skv_api api;
	struct skv_hf3fs_api_options o;
	atomic_uint_fast64_t counters[HF3FS_COUNTERS];
	struct skv_mutex wait_lock;
	struct hf3fs_request *waiting; /* these four protected by wait_lock */
	bool waking; /* the waker is on its way */
	struct job waker;
	struct skv_service *service; /* of those that wait */
	struct hf3fs_ranks *ranks; /* ranks.c */
	struct hf3fs_watch *watch; /* watch.c; NULL: no files are looked at */
	struct skv_mutex wish_lock;
	struct wish *wishes; /* [WISHES_MAX]; these two protected by wish_lock */
	uint32_t n_wishes;
	atomic_uint_fast64_t down_since; /* ms, when a call first found nobody answering for the partition; 0: it does */
};

/* BARE: an empty body is {}. WHOLE: of the space, whatever keys it names. KEYS_FIRST: upstream looks for the keys
 * before it looks for the space. MAKES: the space, or else a wish for it. GRANTS: makes good a wish. VLLM: of vLLM's
 * client. RANKED: the rank stands in the body. ECHOES: and in the answer. */
enum {
	HF3FS_BARE = 1, HF3FS_WHOLE = 2, HF3FS_KEYS_FIRST = 4, HF3FS_MAKES = 8, HF3FS_GRANTS = 16, HF3FS_VLLM = 32,
	HF3FS_RANKED = 64, HF3FS_ECHOES = 128,
};

struct hf3fs_op {
	const char *name;
	unsigned flags;
	enum hf3fs_counter undone; /* counts that it was answered though nobody could do it */
	/* Takes what it needs from the body, an object; k->total becomes the number of keys. */
	int (*read)(struct hf3fs_request *k, const struct skv_json_node *body);
	/* Asks the core for the k->n keys from k->at on, with k->done: the core's result. */
	int (*ask)(struct hf3fs_request *k);
	/* It has answered: counts, and adds an element for each to the answer. False: for the others there is nothing.
	 * NULL: there is nothing to do. */
	bool (*tell)(struct hf3fs_request *k);
	const char *list; /* name of the answer's list; NULL: the answer is 204 */
	const char *none; /* its element for a key of which nothing is known */
	/* VLLM only, each may be NULL: */
	void (*rest)(struct hf3fs_request *k); /* adds the elements for all other keys, instead of `none` */
	void (*say)(struct hf3fs_request *k);  /* the answer is no list: writes it */
	const char *need;    /* refuses a body without rank or list: 400 */
	const char *trouble; /* begins the reason of a 500 that upstream's handler answers */
};

#define VLLM_SCHEDULER UINT64_MAX         /* instead of num_pages: there is nothing to initialize */

/* skv_request.state. */
struct hf3fs_request {
	struct skv_request *c;
	const struct hf3fs_op *op; /* NULL: no operation */
	struct space space;
	const char *detail; /* the request is refused with c->http, and why; NULL: it is not */
	const char *bad_rank; /* what stands for a rank, and is none; NULL: it is one */
	bool late;   /* upstream has looked for the space before it finds that out */
	bool raised; /* upstream's server raises: 500 */
	bool caught; /* upstream's handler would tell why it fails: op->trouble */
	struct skv_done done;
	struct job job; /* on a worker */
	struct hf3fs_request *next; /* while it waits */
	uint64_t wait_until;     /* ms */

	uint32_t total; /* keys of the request, or pages if these are more */
	uint32_t at, n; /* portion that the core was asked for last; n 0: it is told already */
	uint32_t told;  /* elements in the answer */

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
			uint32_t *where; /* [n] of the portion: which key of req each one is; NULL: each its own */
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
			uint32_t *where; /* of start_req's keys: which of all each one is */
			bool *spare;     /* [n] of the portion: somebody else is writing it */
			uint32_t rounds; /* of starts, for the portion */
			struct skv_lookup_req find;
			struct skv_lookup_res found;
			struct skv_start_req start_req;
			struct skv_start_res start_res;
		} allocate;
		struct {
			const int64_t *v; /* [n] the tenant's */
			uint32_t n;
			uint32_t turn; /* that is asked now */
			bool prefix;     /* of the keys before the first miss only */
			bool only_first; /* the first rank's are told: the others' need no lease */
			uint32_t matched;
			struct space space;
			uint64_t *page; /* [k->n] of the first rank; UINT64_MAX: not all have it */
			struct skv_lookup_req req;
			struct skv_lookup_res res;
		} ranks;
		struct {
			uint64_t num_pages, have;   /* asked for; of the space */
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
static inline struct skv_core *hf3fs_core(const struct hf3fs_request *k) { return k->c->s->core; }
static inline bool hf3fs_strict(const struct hf3fs_request *k) { return pages_of(k)->o.strict_upstream; }

/* Else it is 204. */
static inline bool hf3fs_has_answer(const struct hf3fs_op *op) { return op->list || op->say; }

static inline void hf3fs_count(const struct hf3fs_request *k, enum hf3fs_counter which, uint64_t n)
{
	atomic_fetch_add_explicit(&pages_of(k)->counters[which], n, memory_order_relaxed);
}

/* ---- api.c ------------------------------------------------------------------------------------- */

/* What a route's run does once the core is ready, or need not be waited for any more. */
int hf3fs_begin(struct hf3fs_request *k);
/* Asks for what is left, portion by portion. Status as of a route's run. */
int hf3fs_go(struct hf3fs_request *k);
/* The answer with what was told so far and nothing for the other keys. */
void hf3fs_answer(struct hf3fs_request *k);
/* The answer is begun anew, nothing told. */
void hf3fs_untell(struct hf3fs_request *k);

/* ---- fail.c ------------------------------------------------------------------------------------ */

/* skv_api.fail. */
unsigned hf3fs_fail(struct skv_request *c);
/* The request is refused: `http`, and in the mode of upstream 500 where `raises` is true. Returns SKV_E_INVALID. */
int hf3fs_refuse(struct hf3fs_request *k, unsigned http, bool raises, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int hf3fs_nomem(struct hf3fs_request *k);
/* Upstream's server raises here: the answer is 500 and the connection ends. */
unsigned hf3fs_raise(struct hf3fs_request *k);
/* The core has answered. */
void hf3fs_is_up(struct hf3fs_request *k);

/* ---- wait.c ------------------------------------------------------------------------------------ */

/* True: hf3fs_begin is called later, and the call completed with its result. False: there is nothing to wait for. */
bool hf3fs_wait(struct hf3fs_request *k);
/* How long it has been known that nobody answers for the partition. */
uint64_t pages_down_ms(struct hf3fs_request *k);

/* ---- body.c ------------------------------------------------------------------------------------ */

/* Fills k->space from the path and the body, then what the operation reads. */
int hf3fs_read(struct hf3fs_request *k);

/* ---- make.c: spaces ---------------------------------------------------------------------------- */

/* Makes the space, or one that was wished for, on a worker, then asks what the operation has to ask. SKV_PENDING,
 * SKV_E_NOT_FOUND (there is no such wish, or not now), SKV_E_TOO_MANY. */
int hf3fs_make_later(struct hf3fs_request *k);
/* What hf3fs_make_later has a worker do: SKV_PENDING, or SKV_E_TOO_MANY. */
int hf3fs_on_worker(struct hf3fs_request *k, void (*run)(struct job *job, bool expired));
/* On a worker. SKV_OK, too, when it is there. */
int hf3fs_make(struct hf3fs_request *k, uint64_t num_pages);
/* On a worker: the space is gone with all its keys; who reserves in it makes it anew, unless upstream is followed. */
int hf3fs_drop(struct hf3fs_request *k);
/* SKV_E_NOT_FOUND: nobody has initialized it. */
int hf3fs_find(struct hf3fs_request *k);
void hf3fs_wish_add(struct hf3fs_request *k);

/* ---- operations: the functions of the rows ----------------------------------------------------- */

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

/* ---- ranks.c: which ranks of a tenant have a space of vLLM's ------------------------------------ */

int hf3fs_ranks_create(struct hf3fs_ranks **out);
void hf3fs_ranks_destroy(struct hf3fs_ranks *r); /* NULL is allowed */
/* In *v (in the call's arena); as they were a second ago at most. */
int hf3fs_ranks(struct hf3fs_request *k, const int64_t **v, uint32_t *n);
/* Somebody has come or gone. */
void hf3fs_ranks_forget(struct pages *p);

/* ---- watch.c: the clients' page files ---------------------------------------------------------- */

enum hf3fs_file_state { HF3FS_FILE_NONE, HF3FS_FILE_THERE, HF3FS_FILE_UNSEEN };
struct pages_file_view {
	char path[2 * SKV_FILE_PATH_MAX + 2];
	enum hf3fs_file_state state;
	uint64_t drops; /* how often its keys were dropped since this process began */
};
/* False: its file is not looked at. */
bool hf3fs_watch_view(struct pages *p, const struct space *s, struct pages_file_view *out);
/* Has its file looked at now, and waits for that: but not for long, and not where it hangs. */
void hf3fs_watch_look(struct pages *p, const struct space *s);
void hf3fs_watch_destroy(struct hf3fs_watch *w); /* after skv_hf3fs_api_quiet; NULL is allowed */

/* ---- admin.c: slabkv pages -------------------------------------------------------------------- */

int hf3fs_admin_list(struct skv_request *c);
int hf3fs_admin_export(struct skv_request *c);
int hf3fs_admin_import(struct skv_request *c);
int hf3fs_admin_clear(struct skv_request *c);
void hf3fs_admin_list_write(struct skv_request *c);
void hf3fs_admin_export_write(struct skv_request *c);
void hf3fs_admin_import_write(struct skv_request *c);
void hf3fs_admin_clear_write(struct skv_request *c);
unsigned hf3fs_admin_fail(struct skv_request *c);

/* ---- metrics.c --------------------------------------------------------------------------------- */

void hf3fs_expose(const struct skv_api *api, struct skv_service *s, struct skv_arena *a, struct skv_buf *out);

#endif
