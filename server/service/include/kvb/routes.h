/* routes.h - every operation: which method and path, or which gRPC method, mean it. Constant data, any thread. */
#ifndef KVB_ROUTES_H
#define KVB_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include <kvb/limits.h>
#include <kvb/status.h>

#include <kvb/routes_table.h>

struct kvb_call;

enum role { ROLE_OPEN, ROLE_READ, ROLE_WRITE, ROLE_ADMIN };

enum { ROUTE_CORE = 1, ROUTE_BLOCKS = 2, ROUTE_BODY = 4 };

enum route_id {
#define ROUTE_ENUM(name, ...) ROUTE_ID_##name,
	KVB_ROUTES(ROUTE_ENUM)
#undef ROUTE_ENUM
	ROUTE_COUNT
};

struct route {
	enum route_id id;
	const char *name;
	const char *method;
	const char *pattern;
	enum role role;
	unsigned flags;
	const char *grpc;     /* path of its gRPC method; NULL: none */
	unsigned char target; /* field of its request message that is param[0]; 0: none */
	unsigned char body;   /* field of it that the codec reads; 0: the whole message */
	/* Decodes r and calls the core: KVB_OK, KVB_PENDING, or an error with r->err filled. */
	int (*run)(struct kvb_call *r);
	/* Encodes the result of a successful run into r->out (or r->fixed). */
	void (*write)(struct kvb_call *r);
};

extern const struct route kvb_routes[ROUTE_COUNT];

#define ROUTE_PARAMS 2
/* Path parameters after percent-decoding; name and value, both NUL-terminated. */
struct route_param {
	char name[16];
	char value[KVB_MAX_NAME + 1];
};

/* `path` is as it came over the wire, not decoded. HEAD finds GET's row. KVB_E_NOT_FOUND: no such
 * path; KVB_E_METHOD: *allow tells the methods it has; KVB_E_INVALID: a parameter is not a name. */
int kvb_route_find(const char *method, const char *path, const struct route **out,
		   struct route_param params[ROUTE_PARAMS], struct kvb_error *err);
/* Fills *p; KVB_E_INVALID when value[0..n) is no name. */
int kvb_route_param(struct route_param *p, const char *name, const char *value, size_t n,
		    struct kvb_error *err);
/* "GET, HEAD, PUT, OPTIONS": the methods of `path`; false when there is no such path. */
bool kvb_route_allow(const char *path, char *out, size_t size);

/* Decodes %XX of s[0..n) into out (NUL-terminated). False: a broken escape, a NUL byte, or no
 * room. */
bool kvb_percent_decode(const char *s, size_t n, char *out, size_t size);

/* The functions of the rows. */
#define ROUTE_PROTOTYPES(name, ...)                                                                \
	int kvb_op_##name##_run(struct kvb_call *r);                                            \
	void kvb_op_##name##_write(struct kvb_call *r);
KVB_ROUTES(ROUTE_PROTOTYPES)
#undef ROUTE_PROTOTYPES

#endif
