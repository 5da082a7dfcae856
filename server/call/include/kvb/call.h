/*
 * call.h - one call of an operation, whatever brought it: HTTP and gRPC embed it in their requests.
 *
 * Life: kvb_call_init once; for each call fill route and parameters; kvb_call_open; kvb_call_authorize; fill the
 * body; kvb_call_run; when it is complete kvb_call_finish on any one thread; kvb_call_reset. While kvb_call_run has
 * returned KVB_PENDING nobody but the completion touches it.
 */
#ifndef KVB_CALL_H
#define KVB_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvb/api.h>
#include <kvb/arena.h>
#include <kvb/bytes.h>
#include <kvb/core.h>
#include <kvb/service.h>

#define REQUEST_ID_MAX 64

struct kvb_call {
	struct kvb_service *s;
	enum metric_wire wire;
	const struct kvb_api *api;     /* NULL: not known yet */
	const struct kvb_route *route; /* NULL: none */
	void *state;                   /* the API's, see kvb_api.state_size */
	const char *path;              /* HTTP: as it came, not decoded, without the query; else NULL */
	struct route_param param[ROUTE_PARAMS];
	struct caller caller;
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
	const char *type;   /* content type */
	bool created;       /* a put made a new object */
	bool failed;        /* the answer tells of a failure, though the transport may not */
	unsigned http;      /* HTTP status that goes before that of `status`, successful or not; 0: none */
	unsigned answer;    /* status of the transport after kvb_call_finish; a successful one 0 */
	/* Headers of an HTTP answer; the strings live as long as the call. */
	const char *challenge; /* WWW-Authenticate; NULL: the front's own */
	const char *location;  /* Location; NULL: none */
	unsigned retry_after;  /* seconds; 0: kvb_call_retry_after of `status` */
	bool close;            /* the connection ends with the answer */
};

void kvb_call_init(struct kvb_call *c, struct kvb_service *s, enum metric_wire wire);
/* Everything as after init, but arena and answer buffer keep their memory. */
void kvb_call_reset(struct kvb_call *c);
void kvb_call_destroy(struct kvb_call *c);

/* Takes the caller's id (n bytes, may be NULL) if it can stand in a log line and a header, else one of ours. */
void kvb_call_take_id(struct kvb_call *c, const char *given, size_t n);
/* Whose call it is, and what the header says about its form. The API's answer is that of its `head`. */
int kvb_call_open(struct kvb_call *c, const struct kvb_api *api, const struct kvb_head *h);
/* Fills c->caller from the Authorization header (or NULL) and checks the route's role. */
int kvb_call_authorize(struct kvb_call *c, const char *authorization);
/* KVB_OK when the core is ready for a call; else c->err tells why. What ROUTE_READY asks for, for those that have to
 * look at the message first. */
int kvb_call_check_core(struct kvb_call *c);
/* Runs the operation here, on a worker, or later in the core: then KVB_PENDING, and c->done is called. */
int kvb_call_run(struct kvb_call *c);
/* After the operation, c->status being its result: encodes a successful one into c->out (or c->fixed). A
 * failure has c->err filled and fit for the client, and is encoded by its API; `cause` gets what the log may
 * know. Returns c->status. */
int kvb_call_finish(struct kvb_call *c, char cause[KVB_MESSAGE_MAX]);
/* Counts the call, which has its answer, under its route. `code`: the transport's status; returns how long it took. */
uint64_t kvb_call_count(const struct kvb_call *c, unsigned code);
/* Seconds after which the same call may succeed; 0 = repeating does not help. */
unsigned kvb_call_retry_after(int status);
/* Replaces words that look like paths of this host by "(path)". */
void kvb_call_scrub(char *message);

#endif
