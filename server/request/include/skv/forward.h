/*
 * forward.h - calls that came to the wrong manager go on to the one that owns the partition, one
 * hop, and its answer is told: a client behind any load balancer need not know who that is.
 *
 * A call of a HELD route that ends with not_owner is sent on as it came, over connections that stay
 * open, without a thread. If the owner does not answer, or is the owner no more, the call waits
 * (skv/pause.h) and goes to the next one, or runs here. What it asked for may have been done by
 * then; so each has an id of its own for all tries, which makes a start repeatable.
 *
 * A gRPC call is sent on as POST of the method's path, with the message as body and Content-Type
 * application/grpc; the owner runs it as gRPC, so its failures are the same. The answer, 200, has
 * grpc-status, grpc-message and slabkv-field as headers, and the message as body.
 *
 * Headers of a request:
 *	Slabkv-Forwarded: ID     it was sent on, and is not again
 *	Slabkv-Route: direct     the client finds the owner itself: not_owner is the answer, and
 *	                         answers tell who it is (skv/owner.h)
 *	Slabkv-Route: redirect   the same, as 307 with the owner's address
 *	Slabkv-Place: N          partition 0's owner says that what the call names is in N: what
 *	                         is not there does not exist
 * and of an answer to one that was sent on:
 *	Slabkv-Status: CODE      the wire code of a failure
 *	Slabkv-Place: N          of partition 0's owner, with not_owner or not_ready: it is in N
 *
 * So a call on a name that is in no partition here goes to partition 0's owner, unless it is
 * remembered where it is, and from there, by this manager, to who has it.
 */
#ifndef SKV_FORWARD_H
#define SKV_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/bytes.h>
#include <skv/status.h>

struct skv_core;
struct skv_relay;
struct skv_request;
struct skv_service;

#define SKV_FORWARDED "Slabkv-Forwarded"
#define SKV_ROUTE "Slabkv-Route"
#define SKV_STATUS "Slabkv-Status"
#define SKV_PLACE "Slabkv-Place"
#define SKV_GRPC_TYPE "application/grpc"
#define SKV_GRPC_CODE "grpc-status"
#define SKV_GRPC_MESSAGE "grpc-message" /* percent-encoded */
#define SKV_GRPC_FIELD "slabkv-field"
#define SKV_FORWARD_ID 32 /* characters */

/* How a transport tells what a call was, until it is answered. Any thread. */
struct skv_origin {
	const char *(*header)(struct skv_request *c, const char *name); /* NULL: none */
	/* Appends path and query as they came. */
	void (*target)(struct skv_request *c, struct skv_buf *out);
	/* Of gRPC: its message, which is sent on in HTTP. NULL: HTTP. */
	const void *(*message)(struct skv_request *c, size_t *n);
};

/* Of a call, in it. */
struct skv_forwarding {
	const struct skv_origin *origin; /* NULL: its transport cannot */
	bool asked;                      /* what follows is known */
	bool stays;                      /* it is not sent on */
	bool redirects;                  /* it is answered with the owner's address */
	bool sent;                       /* and has not come back yet */
	bool answered;                   /* what it has as answer is another manager's */
	bool refused;                    /* who was asked last is not the owner, or not ready */
	bool here;                       /* skv_forward_comes_back */
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
/* Another manager is to answer it, and will soon be known, or asked again. */
bool skv_forward_is_soon(struct skv_request *c);
/* The same, or it can be asked now. */
bool skv_forward_can(struct skv_request *c);
/* Partition 0's owner was asked just now, and has told that it is for a partition that is here
 * (c->alone). */
bool skv_forward_comes_back(struct skv_request *c);
/* After a failure: if the client wants to be redirected, true, and c->location. */
bool skv_forward_redirects(struct skv_request *c);
/* The id under which the call was sent on, here or by the manager before; NULL: it was not. */
const char *skv_forward_id(struct skv_request *c);
/* The partition that another manager sent it here for; NULL: it did not, or any. */
struct skv_core *skv_forward_place(struct skv_request *c);
/* A call that another manager sent here has ended with `status`: is that one told where it would
 * succeed, so that it asks there? */
bool skv_forward_tells(struct skv_request *c, int status);
/* After a failure: if this manager knows where it would succeed, true, and that partition. */
bool skv_forward_knows(const struct skv_request *c, uint32_t *number);
/* Did another manager send it here? */
bool skv_forward_came(struct skv_request *c);

#endif
