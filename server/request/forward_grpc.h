/*
 * forward_grpc.h - forwards gRPC calls to the owner: the parts that only gRPC needs. For forward.c.
 */
#ifndef SKV_FORWARD_GRPC_H
#define SKV_FORWARD_GRPC_H

#include <stdbool.h>

#include <skv/relay.h>

struct skv_request;

/* Asks for these headers of the answer, of any call. False: out of memory. */
bool forward_want(struct skv_request *c, struct skv_relay_call *call, const char *const *names,
		  unsigned n);

/* Method, body, and what of the answer is asked for, SKV_STATUS first. False: out of memory. */
bool forward_grpc_make(struct skv_request *c, struct skv_relay_call *call);
/* Takes the owner's answer, or its failure, with *status. False: it says nothing of gRPC, as
 * managers do that are too old to take such calls; nothing is taken. */
bool forward_grpc_take(struct skv_request *c, struct skv_relay_call *call, int *status);

#endif
