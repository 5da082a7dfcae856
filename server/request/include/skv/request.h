/*
 * request.h - a call of an operation, independent of the transport: HTTP and gRPC embed it in their
 * requests.
 *
 * Life cycle: skv_request_init once; for each call fill route and parameters; skv_request_open;
 * skv_request_authorize; fill the body; skv_request_run; when complete skv_request_finish on any
 * one thread; skv_request_reset. After skv_request_run has returned SKV_PENDING only the completion
 * may touch the request.
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
#include <skv/find.h>
#include <skv/forward.h>
#include <skv/hold.h>
#include <skv/log.h>
#include <skv/pause.h>
#include <skv/service.h>
#include <skv/trace_context.h>

#define REQUEST_ID_MAX 64

struct skv_request {
	struct skv_service *s;
	enum metric_wire wire;
	const struct skv_api *api;     /* NULL: not known yet */
	const struct skv_route *route; /* NULL: none */
	void *state;                   /* the API's, see skv_api.state_size */
	const char *path; /* HTTP: as received, not decoded, without the query; else NULL */
	struct route_param param[ROUTE_PARAMS];
	struct skv_target target; /* NONE: no object, several, or not known yet */
	struct skv_door door;     /* where that is, since it began to run: skv_request_find */
	struct caller caller;
	char id[REQUEST_ID_MAX + 1];
	char trace[SKV_TRACE_SIZE]; /* traceparent of the caller, "" if it gave none */
	uint64_t begin_us;
	const char *body; /* n_body bytes, never NULL; borrowed until the call is complete */
	size_t n_body;

	struct skv_done done; /* called once after SKV_PENDING, from another thread */
	struct job job;
	struct skv_wait wait;
	struct skv_forwarding forwarding; /* the transport sets the origin */
	bool guarded;    /* the client's address showed too many wrong tokens */
	bool dispatched; /* the operation ran or runs */
	bool asks;       /* other managers, so it runs on a worker */
	int status;      /* result */
	struct skv_error err;

	struct skv_hold hold; /* bytes held by the call; the address is the connection's */
	struct skv_arena arena;
	struct skv_buf out; /* the answer */
	const char *fixed;  /* static answer instead of out */
	const char *type;   /* content type */
	struct skv_cluster
		*alone;     /* the partition that another manager asks for; NULL: none does */
	bool created;       /* a put made a new object */
	bool failed; /* the answer reports a failure even if the transport's status does not */
	unsigned http;      /* HTTP status that overrides that of `status`; 0: none */
	unsigned answer;    /* the transport's status after skv_request_finish; 0 for success */
	/* Headers of an HTTP answer; the strings live as long as the call. */
	const char *challenge; /* WWW-Authenticate; NULL: the transport's own */
	const char *location;  /* Location; NULL: none */
	unsigned retry_after;  /* seconds; 0: skv_request_retry_after of `status` */
	bool close;            /* close the connection after the answer */
};

void skv_request_init(struct skv_request *c, struct skv_service *s, enum metric_wire wire);
/* As after init, but arena and answer buffer keep their memory, and the hold its address. Nothing
 * is held. */
void skv_request_reset(struct skv_request *c);
void skv_request_destroy(struct skv_request *c);

/* Counts n more bytes of the request's body. SKV_E_TOO_MANY: over a limit; nothing is counted. */
int skv_request_hold_body(struct skv_request *c, size_t n);

/* Takes the caller's id (n bytes, may be NULL) if it is safe in a log line and a header, else makes
 * one. */
void skv_request_take_id(struct skv_request *c, const char *given, size_t n);
/* Sets the API and passes it the header. Returns the result of its `head`. */
int skv_request_open(struct skv_request *c, const struct skv_api *api, const struct skv_head *h);
/* Fills c->caller from the Authorization header (or NULL), without one from the client's
 * certificate (or NULL), and checks the route's role. */
int skv_request_authorize(struct skv_request *c, const char *authorization,
			  const struct skv_tls_peer *peer);
/* SKV_OK if the core can look at calls; else c->err says why. The check of ROUTE_READY, for
 * operations that must read the message first. */
int skv_request_check_core(struct skv_request *c);
/* Finds where the call belongs, by the object that its message names. What a path names is found
 * before the operation runs. `tenant` (NULL: the caller's) and `name` live as long as the call. */
enum skv_where skv_request_find(struct skv_request *c, enum skv_target_kind kind,
				const char *tenant, const char *name);
/* SKV_OK if its partition is here, or its object nowhere. Else SKV_E_NOT_OWNER, SKV_E_NOT_READY:
 * the call waits, or goes on. */
int skv_request_check_door(struct skv_request *c);
/* Returns true if the call is for one known partition. */
static inline bool skv_request_is_of_one(const struct skv_request *c)
{
	return c->door.alone || c->door.where == SKV_THERE || c->door.where == SKV_SOON;
}
/* The partition that a call which has failed is for; the first if it is not known. */
static inline uint32_t skv_request_partition(const struct skv_request *c)
{
	return c->door.where == SKV_NOWHERE ? 0 : c->door.partition;
}
/* Returns the owner's address, for a client that connects to the owner itself. SKV_E_NOT_READY: the
 * address will be known soon, or another manager forwarded the call and asks the next one;
 * SKV_E_NOT_FOUND: nobody publishes an address, or the call is forwarded from here. Never
 * blocks. */
int skv_request_owner_url(struct skv_request *c, char out[SKV_URL_MAX]);
/* The partition that its object was found in, for calls on blocks. */
struct skv_core *skv_request_core(const struct skv_request *c);
/* For calls on objects by name: that partition alone, if the object is whole in it; else all. */
struct skv_cluster *skv_request_cluster(const struct skv_request *c);
/* Runs the operation here, on a worker, or later in the core: then SKV_PENDING, and c->done is
 * called. SKV_E_TOO_MANY without running it if calls hold too much already. */
int skv_request_run(struct skv_request *c);
/* For `request_id` of the n-th start of this call, the same at every try: one that was carried out,
 * but not answered, because its owner gave the partition up meanwhile or another manager could not
 * be reached, is run again, here or elsewhere, and must find its own session. "": the call is never
 * run again, or memory ran out. In the call's arena. */
const char *skv_request_start_id(struct skv_request *c, uint32_t n);
/* After the operation, with c->status its result: encodes a successful one into c->out (or
 * c->fixed). A failure is encoded by its API from c->err, made safe for the client; `cause` gets
 * the details for the log. The answer counts as held from here on. Returns c->status. */
int skv_request_finish(struct skv_request *c, char cause[SKV_MESSAGE_MAX]);
/* skv_log_fields of a call that has ended; the line carries its partition, if it was for one. */
void skv_request_log(const struct skv_request *c, enum skv_log_level level, const char *component,
		     const char *message, const struct skv_log_field *fields, size_t n);
/* Counts the answered call under its route. `code`: the transport's status; returns the call's
 * duration. */
uint64_t skv_request_count(const struct skv_request *c, unsigned code);
/* Seconds after which a retry may succeed; 0 = retrying does not help. */
unsigned skv_request_retry_after(int status);
/* Writes all families of /metrics into c->out; of APIs without any call yet only those of c->api,
 * which serves the request. A tenant's caller gets families without names of other tenants'
 * objects. expose.c. */
void skv_request_expose(struct skv_request *c);
/* Replaces words that look like paths of this host by "(path)". */
void skv_request_scrub(char *message);

#endif
