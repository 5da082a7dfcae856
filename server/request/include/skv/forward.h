/*
 * forward.h - forwards calls that reached another manager to the owner of the partition, one hop,
 * and returns the owner's answer: a client behind any load balancer need not know the owner.
 *
 * A call of a HELD route that ends with not_owner is forwarded unchanged, over persistent
 * connections, without a thread. If the owner does not answer, or no longer owns the partition, the
 * call waits (skv/pause.h) and goes to the next owner, or runs here. The operation may have been
 * done by then; so each call has an id of its own for all tries, which makes a start repeatable.
 *
 * A gRPC call is forwarded as POST of the method's path, with the message as body and Content-Type
 * application/grpc; the owner runs it as gRPC, so its failures are the same. The answer, 200, has
 * grpc-status, grpc-message and slabkv-field as headers, and the message as body.
 *
 * Headers of a request:
 *	Slabkv-Forwarded: ID     it was forwarded, and is not again
 *	Slabkv-Route: direct     the client finds the owner itself: not_owner is the answer, and
 *	                         answers tell who it is (skv/owner.h)
 *	Slabkv-Route: redirect   the same, as 307 with the owner's address
 *	Slabkv-Part: 1           a part of a call for several owners: it is not parted again
 *	Slabkv-Place: N          another manager asks for partition N only: what is not there
 *	                         does not exist. It shows the token of managers, and names an
 *	                         operation of ROUTE_MANAGERS, which is not forwarded and does not
 *	                         wait here
 *	Slabkv-Tenant: T         beside that: whose instances; absent: all tenants'
 * and of an answer to one that was forwarded:
 *	Slabkv-Status: CODE      the wire code of a failure
 *
 * The store has the partition of a name that is in no partition here (skv/find.h). An owner without
 * the name looks in the store itself, and returns not_owner if the name is elsewhere: then the name
 * is looked up again.
 */
#ifndef SKV_FORWARD_H
#define SKV_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/bytes.h>
#include <skv/leader.h>
#include <skv/status.h>

struct skv_cluster;
struct skv_relay;
struct skv_request;
struct skv_service;

#define SKV_FORWARDED "Slabkv-Forwarded"
#define SKV_ROUTE "Slabkv-Route"
#define SKV_PART "Slabkv-Part"
#define SKV_STATUS "Slabkv-Status"
#define SKV_PLACE "Slabkv-Place"
#define SKV_TENANT "Slabkv-Tenant"
#define SKV_GRPC_TYPE "application/grpc"
#define SKV_GRPC_CODE "grpc-status"
#define SKV_GRPC_MESSAGE "grpc-message" /* percent-encoded */
#define SKV_GRPC_FIELD "slabkv-field"
#define SKV_FORWARD_ID 32 /* characters */

/* Describes a call for its transport, until the call is answered. Any thread. */
struct skv_origin {
	const char *(*header)(struct skv_request *c, const char *name); /* NULL: none */
	/* Appends path and query as they came. */
	void (*target)(struct skv_request *c, struct skv_buf *out);
	/* Of gRPC: its message, which is forwarded in HTTP. NULL: HTTP. */
	const void *(*message)(struct skv_request *c, size_t *n);
};

/* Of a call, in it. */
struct skv_forwarding {
	const struct skv_origin *origin; /* NULL: its transport cannot */
	/* The header SKV_FORWARDED, from the transport, of a call that another manager forwarded;
	 * NULL: not forwarded. */
	const char *came;
	bool asked;                      /* the following fields are known */
	bool stays;                      /* the call is not forwarded */
	bool redirects;                  /* the call is answered with the owner's address */
	bool sent;                       /* and has not come back yet */
	bool answered;                   /* the answer is another manager's */
	bool refused; /* the manager that was asked last is not the owner, or not ready */
	bool moved;                      /* for the first time: it may be elsewhere by now */
	bool parts; /* the call is for several owners: not forwarded as a whole */
	uint64_t again_ms;               /* not before then */
	char id[SKV_FORWARD_ID + 1];     /* "" = none yet */
};

/* In the service. */
struct skv_forward {
	bool started; /* set once */
	struct skv_relay *relay;
	uint64_t told_ms; /* the log, why calls do not go on; 0: not yet. The relay's */
};

int skv_forward_start(struct skv_forward *f, struct skv_error *err);
/* Calls that are on their way end without an answer. Nothing if it was not started. */
void skv_forward_stop(struct skv_forward *f);
/* Takes a call that has ended with `status` if another manager is to answer it: then it completes
 * later. */
bool skv_forward_call(struct skv_request *c, int status);
/* A part of a call that is for several owners: one for each of them. Lives as long as the call. */
struct skv_part {
	uint32_t partition;    /* a partition of the part's owner, */
	uint32_t partitions;   /* and bits of all that are asked about */
	char url[SKV_URL_MAX];
	char owner[SKV_OWNER_NAME];
	const char *body;      /* set by the caller: protobuf */
	size_t n_body;
	int http;              /* the answer: its status */
	struct skv_buf answer; /* valid during `join` */
	struct forwarded *sent;
};
/* Returns true if this call may be parted. Not if it is a part; nor if the client finds the owner
 * itself, and no instance of the call is here. */
bool skv_forward_may_part(struct skv_request *c, bool some_here);
/* *at: the number of the part for the owner of this partition, which is added to the *n of part[],
 * if it is new. part[] has room for SKV_MAX_PARTITIONS + 1, zeroed before the first.
 * SKV_E_NOT_OWNER: who that is will be known soon. From now on the call waits and runs again when
 * it fails so (c->forwarding.parts). */
int skv_forward_part(struct skv_request *c, uint32_t partition, struct skv_part *part, uint32_t *n,
		     uint32_t *at);
/* Sends each as POST of `path`. When all are answered, `join` makes the call's result of them, on
 * the relay's thread; if one is refused, or not answered, the call runs again. SKV_PENDING;
 * SKV_E_NOMEM: nothing was sent. */
int skv_forward_parts(struct skv_request *c, const char *path, struct skv_part *part, uint32_t n,
		      int (*join)(struct skv_request *c, struct skv_part *part, uint32_t n));
/* Another manager is to answer it, and will soon be known, or asked again. */
bool skv_forward_is_soon(struct skv_request *c);
/* The same, or it can be asked now. */
bool skv_forward_can(struct skv_request *c);
/* After a failure: if the client wants to be redirected, true, and c->location. */
bool skv_forward_redirects(struct skv_request *c);

#endif
