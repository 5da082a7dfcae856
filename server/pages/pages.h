/*
 * pages.h - what the files of the pages API share: the API's state, a call, an operation's row.
 *
 * A call: its path and body are read (space.c, body.c) -> the core is asked, for so many keys at a time as it takes
 * (api.c) -> the answer, or what stands for it when there is none (fail.c). An operation is a row in ops_table.h and
 * the functions that it names; it knows no statuses, modes of failure or portions.
 */
#ifndef KVB_PAGES_H
#define KVB_PAGES_H

#include <stdatomic.h>

#include <kvb/call.h>
#include <kvb/core.h>
#include <kvb/json.h>
#include <kvb/json_out.h>
#include <kvb/ops.h>
#include <kvb/pages_api.h>

#include "metrics_table.h"
#include "space.h"

struct pages_call;

enum pages_counter {
#define COUNTER_ENUM(name, help) PAGES_##name,
	KVB_PAGES_COUNTERS(COUNTER_ENUM)
#undef COUNTER_ENUM
	PAGES_COUNTERS
};

struct pages {
	struct kvb_api api;
	struct kvb_pages_options o;
	atomic_uint_fast64_t counters[PAGES_COUNTERS];
	atomic_uint_fast64_t down_since; /* ms, when a call first found nobody answering for the partition; 0: it does */
};

/* LOSES: when it cannot be done its answer is that it was, and it is counted as dropped. */
enum { PAGES_LOSES = 1 };

struct pages_op {
	const char *name;
	unsigned flags;
	/* Takes what it needs from the body, an object; k->total becomes the number of keys. */
	int (*read)(struct pages_call *k, const struct kvb_json_node *body);
	/* Asks the core for the k->n keys from k->at on, with k->done: the core's result. */
	int (*ask)(struct pages_call *k);
	/* These are there: counts them, and adds their elements to the answer. False: for the others there is nothing. */
	bool (*tell)(struct pages_call *k);
	const char *list; /* name of the answer's list; NULL: the answer is 204 */
	const char *none; /* its element for a key of which nothing is known */
};

/* kvb_call.state. */
struct pages_call {
	struct kvb_call *c;
	const struct pages_op *op; /* NULL: no operation */
	struct space space;
	const char *detail; /* the request is refused with c->http, and why; NULL: it is not */
	struct kvb_done done;

	uint32_t total; /* keys of the request */
	uint32_t at, n; /* portion that the core was asked for last; n 0: it is told already */
	uint32_t told;  /* elements in the answer */

	struct kvb_key *keys;    /* [total] */
	struct kvb_bytes *names; /* [total] of reservations; an empty one: too long a key */
	bool has_parent;
	struct kvb_key parent;
	union {
		struct {
			struct kvb_lookup_req req;
			struct kvb_lookup_res res;
		} lookup;
	} u;
};

static inline struct pages *pages_of(const struct pages_call *k) { return k->c->api->ctx; }
static inline struct kvb_core *pages_core(const struct pages_call *k) { return k->c->s->core; }
static inline bool pages_strict(const struct pages_call *k) { return pages_of(k)->o.strict_upstream; }

static inline void pages_count(const struct pages_call *k, enum pages_counter which, uint64_t n)
{
	atomic_fetch_add_explicit(&pages_of(k)->counters[which], n, memory_order_relaxed);
}

/* ---- api.c ------------------------------------------------------------------------------------- */

/* Asks for what is left, portion by portion. Status as of a route's run. */
int pages_go(struct pages_call *k);
/* The answer with what was told so far and nothing for the other keys. */
void pages_answer(struct pages_call *k);

/* ---- fail.c ------------------------------------------------------------------------------------ */

/* kvb_api.fail. */
unsigned pages_fail(struct kvb_call *c);
/* The request is refused: `http`, and in the mode of upstream 500 where `raises` is true. Returns KVB_E_INVALID. */
int pages_refuse(struct pages_call *k, unsigned http, bool raises, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int pages_nomem(struct pages_call *k);
/* The core has answered. */
void pages_is_up(struct pages_call *k);

/* ---- body.c ------------------------------------------------------------------------------------ */

/* Fills k->space from the path and the body, then what the operation reads. */
int pages_read(struct pages_call *k);
int pages_read_keys(struct pages_call *k, const struct kvb_json_node *body);

/* ---- operations -------------------------------------------------------------------------------- */

int pages_lookup_ask(struct pages_call *k);
bool pages_exists_tell(struct pages_call *k);

/* ---- metrics.c --------------------------------------------------------------------------------- */

void pages_expose(const struct kvb_api *api, struct kvb_service *s, struct kvb_arena *a, struct kvb_buf *out);

#endif
