/*
 * wire.h - one connection that speaks another project's API as its own clients do: JSON over
 * HTTP/1.1, or unary gRPC over HTTP/2. libslabkv speaks the native API only.
 */
#ifndef SKV_BENCH_WIRE_H
#define SKV_BENCH_WIRE_H

#include <stdbool.h>

#include <slabkv.h>

#include <skv/bytes.h>

struct skv_wire;
struct skv_cli;

/* Connects at the first call. `base` begins every call's address: "http://host:port/api/" for JSON,
 * "http://host:port/package.Service/" for gRPC; copied. Token, time and certificates are those of
 * the command line. NULL: out of memory. One thread at a time. */
struct skv_wire *skv_wire_open(const char *base, bool grpc, const struct skv_cli *cli);
void skv_wire_close(struct skv_wire *w); /* NULL is fine */

/* Where a request's message is built: empty it belongs to the next call. For gRPC its length is put
 * before it by skv_wire_call. */
struct skv_buf *skv_wire_request(struct skv_wire *w);
/* Sends the request as a call of `method` and waits. SLABKV_OK: *answer and *n are the answer's
 * message, valid until the next call (HTTP 200, or gRPC status 0). Else SLABKV_E_NETWORK, _TIMEOUT
 * or _INTERNAL, in *err too. */
int skv_wire_call(struct skv_wire *w, const char *method, const char **answer, size_t *n,
		  struct slabkv_error *err);

#endif
