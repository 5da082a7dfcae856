/*
 * request.h - one call of an operation, whatever brought it: HTTP and gRPC embed it in their requests.
 *
 * Life: skv_request_init once; for each call fill route and parameters; skv_request_open; skv_request_authorize; fill the
 * body; skv_request_run; when it is complete skv_request_finish on any one thread; skv_request_reset. While skv_request_run has
 * returned SKV_PENDING nobody but the completion touches it.
 */
#ifndef SKV_REQUEST_H
#define SKV_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/api.h>
#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/core.h>
#include <skv/hold.h>
#include <skv/service.h>

#define REQUEST_ID_MAX 64

struct skv_request {
	struct skv_service *s;
	enum metric_wire wire;
	const struct skv_api *api;     /* NULL: not known yet */
	const struct skv_route *route; /* NULL: none */
	void *state;                   /* the API's, see skv_api.state_size */
	const char *path;              /* HTTP: as it came, not decoded, without the query; else NULL */
	struct route_param param[ROUTE_PARAMS];
	struct caller caller;
	char id[REQUEST_ID_MAX + 1];
	uint64_t begin_us;
	const char *body; /* n_body bytes, never NULL; borrowed until the call is complete */
	size_t n_body;

	struct skv_done done; /* called once after SKV_PENDING, from another thread */
	struct job job;
	bool dispatched; /* the operation ran or runs */
	int status;      /* result */
	struct skv_error err;

	struct skv_hold hold; /* what it holds; its address is the connection's */
	struct skv_arena arena;
	struct skv_buf out; /* the answer */
	const char *fixed;  /* static answer instead of out */
	const char *type;   /* content type */
	bool created;       /* a put made a new object */
	bool failed;        /* the answer tells of a failure, though the transport may not */
	unsigned http;      /* HTTP status that goes before that of `status`, successful or not; 0: none */
	unsigned answer;    /* status of the transport after skv_request_finish; a successful one 0 */
	/* Headers of an HTTP answer; the strings live as long as the call. */
	const char *challenge; /* WWW-Authenticate; NULL: the transport's own */
	const char *location;  /* Location; NULL: none */
	unsigned retry_after;  /* seconds; 0: skv_request_retry_after of `status` */
	bool close;            /* the connection ends with the answer */
};

void skv_request_init(struct skv_request *c, struct skv_service *s, enum metric_wire wire);
/* Everything as after init, but arena and answer buffer keep their memory, and the hold its address. Nothing is held. */
void skv_request_reset(struct skv_request *c);
void skv_request_destroy(struct skv_request *c);

/* Counts n more bytes of the request's body. SKV_E_TOO_MANY: too many are held; nothing is counted. */
int skv_request_hold_body(struct skv_request *c, size_t n);

/* Takes the caller's id (n bytes, may be NULL) if it can stand in a log line and a header, else one of ours. */
void skv_request_take_id(struct skv_request *c, const char *given, size_t n);
/* Whose call it is, and what the header says about its form. The API's answer is that of its `head`. */
int skv_request_open(struct skv_request *c, const struct skv_api *api, const struct skv_head *h);
/* Fills c->caller from the Authorization header (or NULL) and checks the route's role. */
int skv_request_authorize(struct skv_request *c, const char *authorization);
/* SKV_OK when the core is ready for a call; else c->err tells why. What ROUTE_READY asks for, for those that have to
 * look at the message first. */
int skv_request_check_core(struct skv_request *c);
/* Runs the operation here, on a worker, or later in the core: then SKV_PENDING, and c->done is called. Without having run
 * it SKV_E_TOO_MANY, if calls hold too much already. */
int skv_request_run(struct skv_request *c);
/* After the operation, c->status being its result: encodes a successful one into c->out (or c->fixed). A
 * failure has c->err filled and fit for the client, and is encoded by its API; `cause` gets what the log may
 * know. The answer counts as held from here on. Returns c->status. */
int skv_request_finish(struct skv_request *c, char cause[SKV_MESSAGE_MAX]);
/* Counts the call, which has its answer, under its route. `code`: the transport's status; returns how long it took. */
uint64_t skv_request_count(const struct skv_request *c, unsigned code);
/* Seconds after which the same call may succeed; 0 = repeating does not help. */
unsigned skv_request_retry_after(int status);
/* Replaces words that look like paths of this host by "(path)". */
void skv_request_scrub(char *message);

#endif
