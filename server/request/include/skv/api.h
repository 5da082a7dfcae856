/*
 * api.h - an API: its operations, how messages become calls, how failures look.
 *
 * A transport serves a list of APIs and a mask of planes; it knows how bytes travel, an API what
 * they mean. The native API is server/v1, KVCM's server/kvcm; main connects them.
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

/* READY: needs a ready core. OWNED: answered only while it owns its partition. BLOCKS: runs on a
 * worker, because it may wait for a disk or a mount. BODY: reads a request body. SCRAPE: open to
 * everyone if the service's metrics are. HELD: waits while ownership or the store moves, and runs
 * again (skv/pause.h). TENANT: of role ADMIN, and the operation itself checks what the caller's
 * tenant owns; without this flag only administrators of tenant "default" may call (skv/tenants.h).
 * RAW: parameters are percent-decoded and not empty, the API checks them; otherwise they must be
 * names. PACED: its blocks count in the tenant's blocks_per_s, and a caller that owes too many is
 * refused before the body is decoded. MANAGERS: the other managers of the store may call, too, for
 * one partition: by Slabkv-Place, with the token that this manager publishes for them
 * (skv_auth_is_manager). PARTS: the operation asks each owner for its part (skv/forward.h), also at
 * a manager without partitions. PAGED: a list, of which `limit` and `after` choose a page (struct
 * skv_page). */
enum {
	ROUTE_READY = 1, ROUTE_OWNED = 2, ROUTE_CORE = ROUTE_READY | ROUTE_OWNED,
	ROUTE_BLOCKS = 4, ROUTE_BODY = 8, ROUTE_SCRAPE = 16, ROUTE_RAW = 32, ROUTE_HELD = 64,
	ROUTE_TENANT = 128, ROUTE_PACED = 256, ROUTE_MANAGERS = 512, ROUTE_PARTS = 1024,
	ROUTE_PAGED = 2048,
};

/* Audience of a route: a port may leave planes out. */
enum { SKV_PLANE_META = 1, SKV_PLANE_ADMIN = 2, SKV_PLANE_DEBUG = 4, SKV_PLANE_ALL = 7 };

struct skv_route {
	const char *name;    /* in /metrics and logs */
	const char *method;  /* of HTTP; NULL: none */
	/* Segments in braces are parameters, in order skv_request.param[0], [1] */
	const char *pattern;
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

/* The fields of a request's header besides the target. gRPC has none of them. */
struct skv_head {
	const char *content_type; /* NULL: none; the same for the next */
	const char *accept;
	/* a parameter of the query; valid until the call ends; NULL: none */
	const char *(*argument)(void *ctx, const char *name);
	void *ctx;
};

struct skv_api {
	const char *name;   /* label of its metrics: "v1" */
	const char *prefix; /* unknown paths with this prefix are refused by this API */
	const struct skv_route *routes;
	size_t n_routes;
	size_t state_size; /* size of skv_request.state: zeroed for each call, in its arena */
	void *ctx;         /* context of the API; NULL: none */
	/* Returns true if an unknown path belongs to this API, whatever the prefixes. NULL: by
	 * prefix only. */
	bool (*owns)(const char *path);
	bool slash_redirect; /* a path followed by '/' is redirected (307) to the path itself */

	/* Called after the header is read. Its error is reported unless the transport finds an
	 * earlier one. */
	int (*head)(struct skv_request *c, const struct skv_head *h);
	/* Puts the state back to what it was before `run`, for a HELD route that runs again. */
	void (*again)(struct skv_request *c);
	/* How long a call of a HELD route that has just failed for the first time may wait for a
	 * better moment, ms; NULL: hold_ms. */
	uint32_t (*patience)(struct skv_request *c);
	/* gRPC: finds in the message p[0..n) what HTTP has as parameters and body. The message
	 * stays valid until the end. */
	int (*message)(struct skv_request *c, const uint8_t *p, size_t n);
	/* Answers a call that failed with c->status and c->err, which is safe for clients; its
	 * route may be NULL. Returns the transport's status. HTTP: its status, with the body in
	 * c->out or c->fixed and the headers in c->type, c->location, c->retry_after and c->close.
	 * gRPC: its code; with 0 c->out is a normal answer, else it is ignored. */
	unsigned (*fail)(struct skv_request *c);
	/* Adds its own metric families to /metrics; NULL: none. */
	void (*expose)(const struct skv_api *api, struct skv_service *s, struct skv_arena *a,
		       struct skv_buf *out);
	/* FileDescriptorSet of its gRPC services, for reflection and health; NULL: none. */
	const uint8_t *(*descriptors)(size_t *n);

	unsigned first_op; /* index of routes[0] in the service's metrics: skv_service_add */
};

#define SKV_APIS_MAX 4

/* The APIs that a transport serves. */
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

/* `path` is as received, not decoded. HEAD finds GET's row. *api is always set: the API that
 * answers. SKV_E_NOT_FOUND: no such path; SKV_E_METHOD: it has other methods; SKV_E_INVALID: a
 * parameter is not a name, or cannot be decoded. */
int skv_route_find(const struct skv_apis *apis, const char *method, const char *path,
		   const struct skv_api **api, const struct skv_route **out,
		   struct route_param params[ROUTE_PARAMS], struct skv_error *err);
/* The last route of a connection: clients of an engine request the same route again and again. */
struct skv_route_memo {
	char method[8], path[184]; /* "": none; longer ones are not kept */
	const struct skv_api *api;
	const struct skv_route *route;
	struct route_param params[ROUTE_PARAMS];
};
/* skv_route_find, at once where the memo has it. Always with the same `apis`. */
int skv_route_find_again(struct skv_route_memo *memo, const struct skv_apis *apis,
			 const char *method, const char *path, const struct skv_api **api,
			 const struct skv_route **out, struct route_param params[ROUTE_PARAMS],
			 struct skv_error *err);
/* The same for the path of a gRPC method: SKV_E_UNSUPPORTED: no such method. */
int skv_route_find_grpc(const struct skv_apis *apis, const char *path, const struct skv_api **api,
			const struct skv_route **out, struct skv_error *err);
/* Fills *p; SKV_E_INVALID if value[0..n) is not a name. */
int skv_route_param(struct route_param *p, const char *name, const char *value, size_t n,
		    struct skv_error *err);
/* "GET, HEAD, PUT, OPTIONS": the methods of `path`; false if the path does not exist. */
bool skv_route_allow(const struct skv_apis *apis, const char *path, char *out, size_t size);

/* Returns true if `path` is unknown, but without its trailing '/' a path of an API that redirects.
 * Then `out` has that path, which never begins like a host name. */
bool skv_route_without_slash(const struct skv_apis *apis, const char *path, char *out, size_t size);

/* Decodes %XX of s[0..n) into out (NUL-terminated). False: a broken escape, a NUL byte, or no
 * room. */
bool skv_percent_decode(const char *s, size_t n, char *out, size_t size);
/* A message as a header field can carry it, as gRPC wants it in grpc-message. */
#define SKV_ENCODED_MAX (3 * SKV_MESSAGE_MAX + 1)
void skv_percent_encode(const char *s, char out[SKV_ENCODED_MAX]);

#endif
