/*
 * api.h - an API: its operations, how its messages become calls, how its failures look.
 *
 * A transport is given the APIs that it serves and a mask of planes; it knows how bytes travel, an API what they mean.
 * The native API is server/v1, the one for clients of KVCM server/kvcm; both are wired by main.
 */
#ifndef SKV_API_H
#define SKV_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/bytes.h>
#include <skv/limits.h>
#include <skv/status.h>

struct skv_arena;
struct skv_request;
struct skv_service;

enum role { ROLE_OPEN, ROLE_READ, ROLE_WRITE, ROLE_ADMIN };

/* READY: needs a core that is ready. OWNED: the answer is given only while it owns its partition. BLOCKS: run on a
 * worker, because it may wait for a disk or a mount. BODY: reads a request body. SCRAPE: open to everybody when
 * the service's metrics are. RAW: parameters are percent-decoded and not empty, the API checks them; without it they
 * are names. */
enum {
	ROUTE_READY = 1, ROUTE_OWNED = 2, ROUTE_CORE = ROUTE_READY | ROUTE_OWNED,
	ROUTE_BLOCKS = 4, ROUTE_BODY = 8, ROUTE_SCRAPE = 16, ROUTE_RAW = 32,
};

/* Who a route is for: a port may leave planes out. */
enum { SKV_PLANE_META = 1, SKV_PLANE_ADMIN = 2, SKV_PLANE_DEBUG = 4, SKV_PLANE_ALL = 7 };

struct skv_route {
	const char *name;    /* in /metrics and logs */
	const char *method;  /* of HTTP; NULL: none */
	const char *pattern; /* segments in braces are parameters, in order skv_request.param[0], [1] */
	enum role role;
	unsigned flags;
	unsigned planes;
	const char *grpc; /* path of its gRPC method; NULL: none */
	const void *own;  /* the API's own row */
	/* Decodes c and calls the core: SKV_OK, SKV_PENDING, or an error with c->err filled. */
	int (*run)(struct skv_request *c);
	/* Encodes the result of a successful run into c->out (or c->fixed). */
	void (*write)(struct skv_request *c);
};

/* What the header of a request says besides where it goes. gRPC has none of it. */
struct skv_head {
	const char *content_type; /* NULL: none; the same for the next */
	const char *accept;
	const char *(*argument)(void *ctx, const char *name); /* of the query; until the call ends; NULL: none */
	void *ctx;
};

struct skv_api {
	const char *name;   /* label of its metrics: "v1" */
	const char *prefix; /* paths that begin so and are nobody's are its to refuse */
	const struct skv_route *routes;
	size_t n_routes;
	size_t state_size; /* bytes of skv_request.state: zeroed for each call, in its arena */
	void *ctx;         /* its own; NULL: none */
	/* Of a path that nobody has: it is this API's to refuse, whatever the prefixes. NULL: by prefix only. */
	bool (*owns)(const char *path);
	bool slash_redirect; /* a path of it with '/' behind is answered 307 with the path itself */

	/* The header is read. An error is told unless the transport finds one that comes first. */
	int (*head)(struct skv_request *c, const struct skv_head *h);
	/* gRPC: finds in the message p[0..n) what HTTP has as parameters and body. It stays valid until the end. */
	int (*message)(struct skv_request *c, const uint8_t *p, size_t n);
	/* A call that failed with c->status and c->err, which is fit for the client; its route may be NULL. Returns the
	 * transport's status. HTTP: its status, the body is written to c->out or c->fixed, headers are c->type,
	 * c->location, c->retry_after and c->close. gRPC: its code; with 0 c->out is an answer like any other, else it
	 * is not looked at. */
	unsigned (*fail)(struct skv_request *c);
	/* Adds its own families to /metrics; NULL: none. */
	void (*expose)(const struct skv_api *api, struct skv_service *s, struct skv_arena *a, struct skv_buf *out);
	/* FileDescriptorSet of its gRPC services, for reflection and health; NULL: none. */
	const uint8_t *(*descriptors)(size_t *n);

	unsigned first_op; /* number of routes[0] in the service's metrics: skv_service_add */
};

#define SKV_APIS_MAX 4

/* What a transport serves. */
struct skv_apis {
	const struct skv_api *v[SKV_APIS_MAX];
	size_t n;
	unsigned planes;
};

#define ROUTE_PARAMS 2
/* Path parameters after percent-decoding; name and value, both NUL-terminated. */
struct route_param {
	char name[16];
	char value[SKV_MAX_NAME + 1];
};

/* `path` is as it came over the wire, not decoded. HEAD finds GET's row. *api is set in any case: who answers.
 * SKV_E_NOT_FOUND: no such path; SKV_E_METHOD: it has other methods; SKV_E_INVALID: a parameter is not a name, or
 * cannot be decoded. */
int skv_route_find(const struct skv_apis *apis, const char *method, const char *path, const struct skv_api **api,
		   const struct skv_route **out, struct route_param params[ROUTE_PARAMS], struct skv_error *err);
/* Fills *p; SKV_E_INVALID when value[0..n) is no name. */
int skv_route_param(struct route_param *p, const char *name, const char *value, size_t n,
		    struct skv_error *err);
/* "GET, HEAD, PUT, OPTIONS": the methods of `path`; false when there is no such path. */
bool skv_route_allow(const struct skv_apis *apis, const char *path, char *out, size_t size);

/* Nobody has `path`, but without its trailing '/' it is one of an API that redirects: true, and that path in `out`.
 * It never begins with what clients take for the name of a host. */
bool skv_route_without_slash(const struct skv_apis *apis, const char *path, char *out, size_t size);

/* Decodes %XX of s[0..n) into out (NUL-terminated). False: a broken escape, a NUL byte, or no
 * room. */
bool skv_percent_decode(const char *s, size_t n, char *out, size_t size);

#endif
