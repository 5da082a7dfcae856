/*
 * wire.h - one connection that speaks another project's API as its own clients do: JSON over HTTP/1.1, or
 * unary gRPC over HTTP/2 in clear text. For `kvblock bench --api`; libkvblock speaks the native API only.
 */
#ifndef KVB_CLI_WIRE_H
#define KVB_CLI_WIRE_H

#include <stdbool.h>

#include <kvblock.h>

#include <kvb/bytes.h>

struct kvb_wire;

/* Connects at the first call. `base` begins every call's address: "http://host:port/api/" for JSON,
 * "http://host:port/package.Service/" for gRPC. `token` may be NULL; both are copied. NULL: out of memory.
 * One thread at a time. */
struct kvb_wire *kvb_wire_open(const char *base, bool grpc, const char *token, uint32_t timeout_ms);
void kvb_wire_close(struct kvb_wire *w); /* NULL is fine */

/* Where a request's message is built: empty it belongs to the next call. For gRPC its length is put before it by
 * kvb_wire_call. */
struct kvb_buf *kvb_wire_request(struct kvb_wire *w);
/* Sends the request as a call of `method` and waits. KVBLOCK_OK: *answer and *n are the answer's message, valid until
 * the next call (HTTP 200, or gRPC status 0). Else KVBLOCK_E_NETWORK, _TIMEOUT or _INTERNAL, in *err too. */
int kvb_wire_call(struct kvb_wire *w, const char *method, const char **answer, size_t *n, struct kvblock_error *err);

#endif
