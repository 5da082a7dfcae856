/*
 * call.h - one call of an operation, whatever brought it: HTTP and gRPC embed it in their requests.
 *
 * Life: kvb_call_init once; for each call fill route, parameters, caller, codecs and body; kvb_call_run;
 * when it is complete kvb_call_finish on any one thread; kvb_call_reset. While kvb_call_run has
 * returned KVB_PENDING nobody but the completion touches it.
 */
#ifndef KVB_CALL_H
#define KVB_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvb/arena.h>
#include <kvb/bytes.h>
#include <kvb/core.h>
#include <kvb/ops.h>
#include <kvb/routes.h>
#include <kvb/service.h>
#include <kvb/v1_codec.h>

#define REQUEST_ID_MAX 64

struct kvb_call {
	struct kvb_service *s;
	const struct route *route; /* NULL: none */
	struct route_param param[ROUTE_PARAMS];
	const char *key_text;   /* block_find: one of these two, percent-encoded text or decimal digits */
	const char *key_number;
	struct caller caller;
	const struct kvb_v1_codec *body_codec; /* of the body */
	const struct kvb_v1_codec *codec;      /* of the answer */
	char id[REQUEST_ID_MAX + 1];
	uint64_t begin_us;
	const char *body; /* n_body bytes, never NULL; borrowed until the call is complete */
	size_t n_body;

	struct kvb_done done; /* called once after KVB_PENDING, from another thread */
	struct job job;
	bool dispatched; /* the operation ran or runs */
	int status;      /* result */
	struct kvb_error err;

	struct kvb_arena arena;
	struct kvb_buf out; /* the answer */
	const char *fixed;  /* static answer instead of out */
	const char *type;   /* content type; NULL: the codec's, or JSON when fixed */
	bool created;       /* a put made a new object */
	union {
		struct {
			struct kvb_storage_view *v;
			uint32_t n;
		} storages;
		struct {
			struct kvb_group_view *v;
			uint32_t n;
		} groups;
		struct {
			struct kvb_instance_view *v;
			uint32_t n;
		} instances;
		struct {
			struct kvb_match_req req;
			struct kvb_match_res res;
		} match;
		struct {
			struct kvb_lookup_req req;
			struct kvb_lookup_res res;
		} lookup;
		struct {
			struct kvb_start_req req;
			struct kvb_start_res res;
		} start;
		struct {
			struct kvb_finish_req req;
			struct kvb_abort_req abort;
			struct kvb_finish_res res;
		} finish;
		struct {
			struct kvb_delete_req req;
			struct kvb_delete_res res;
		} del;
		struct kvb_block_view block;
		struct kvb_stats stats;
	} u;
};

void kvb_call_init(struct kvb_call *c, struct kvb_service *s);
/* Everything as after init, but arena and answer buffer keep their memory. */
void kvb_call_reset(struct kvb_call *c);
void kvb_call_destroy(struct kvb_call *c);

/* Takes the caller's id (n bytes, may be NULL) if it can stand in a log line and a header, else one of ours. */
void kvb_call_take_id(struct kvb_call *c, const char *given, size_t n);
/* Fills c->caller from the Authorization header (or NULL) and checks the route's role. */
int kvb_call_authorize(struct kvb_call *c, const char *authorization);
/* Runs the operation here, on a worker, or later in the core: then KVB_PENDING, and c->done is called. */
int kvb_call_run(struct kvb_call *c);
/* After the operation, c->status being its result: encodes a successful one into c->out (or c->fixed). A
 * failure has c->err filled and fit for the client; `cause` gets what the log may know. Returns c->status. */
int kvb_call_finish(struct kvb_call *c, char cause[KVB_MESSAGE_MAX]);
/* Seconds after which the same call may succeed; 0 = repeating does not help. */
unsigned kvb_call_retry_after(int status);
/* Replaces words that look like paths of this host by "(path)". */
void kvb_call_scrub(char *message);

/* ---- for the operations ---------------------------------------------------------------------- */

/* What the decoders need to know; the core must have been ready. */
struct kvb_v1_in kvb_call_input(struct kvb_call *c);

#endif
