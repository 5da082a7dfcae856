/*
 * native.c - the native API: its routes, its codecs, its errors.
 *
 * A request is JSON or protobuf as its header says, gRPC's is protobuf. A failure has the HTTP status of its kvb
 * status and a document with code, message, field and id; over gRPC it is told by trailers. No state of its own.
 */
#include "native.h"

#include <string.h>

const struct kvb_route kvb_routes[ROUTE_COUNT] = {
#define ROUTE_ROW(op, method, pattern, role, flags, grpc, target, body)                            \
	{ #op,                                                                                     \
	  #method,                                                                                 \
	  pattern,                                                                                 \
	  ROLE_##role,                                                                             \
	  flags,                                                                                   \
	  KVB_PLANE_ALL,                                                                           \
	  grpc,                                                                                    \
	  &(const struct native_row){ target, body },                                              \
	  kvb_op_##op##_run,                                                                       \
	  kvb_op_##op##_write },
	KVB_ROUTES(ROUTE_ROW)
#undef ROUTE_ROW
};

static bool has_body(const struct kvb_call *c) { return c->route && c->route->flags & ROUTE_BODY; }

/* A GET has no body and is answered as it accepts; otherwise the body's type decides, and without one what is
 * accepted. A request that is no operation is answered like one with a body. */
static void take_codecs(struct kvb_call *c, const struct kvb_head *h)
{
	struct native_call *n = native_of(c);
	bool body = !c->route || strcmp(c->route->method, "POST") == 0 || strcmp(c->route->method, "PUT") == 0;
	const char *type = body ? h->content_type : NULL;
	const struct kvb_v1_codec *accepted = kvb_v1_codec_of_accept(h->accept);

	n->body_codec = kvb_v1_codec_of_type(type);
	n->codec = type && n->body_codec ? n->body_codec : accepted ? accepted : &kvb_v1_json;
}

static int native_head(struct kvb_call *c, const struct kvb_head *h)
{
	struct native_call *n = native_of(c);

	if (c->wire == WIRE_GRPC) {
		n->body_codec = n->codec = &kvb_v1_pb;
		return KVB_OK;
	}
	take_codecs(c, h);
	c->type = n->codec->content_type;
	if (c->route == &kvb_routes[ROUTE_ID_block_find] && h->argument) {
		n->key_text = h->argument(h->ctx, "key");
		n->key_number = h->argument(h->ctx, "key_int");
	}
	if (c->route == &kvb_routes[ROUTE_ID_pins] && h->argument) {
		n->cursor = h->argument(h->ctx, "cursor");
		n->max = h->argument(h->ctx, "max");
	}
	if (n->body_codec || !has_body(c))
		return KVB_OK;
	return kvb_fail(&c->err, KVB_E_UNSUPPORTED, "Content-Type", "a body is one of: %s", kvb_v1_codec_types());
}

static unsigned http_status(const struct kvb_call *c)
{
	const struct native_call *n = c->state;

	if (c->http)
		return c->http;
	if (c->status == KVB_E_UNSUPPORTED && has_body(c) && n && !n->body_codec)
		return 415;
	return (unsigned)kvb_status_http(c->status);
}

static unsigned native_fail(struct kvb_call *c)
{
	const struct native_call *n = c->state;
	const struct kvb_v1_codec *codec = n && n->codec ? n->codec : &kvb_v1_json;

	if (c->wire == WIRE_GRPC)
		return (unsigned)kvb_status_grpc(c->status); /* its answer is its trailers */
	c->type = codec->content_type;
	codec->write_error(&c->out, &c->err, c->id);
	if (c->out.failed)
		c->fixed = codec->no_memory;
	return http_status(c);
}

struct kvb_v1_in kvb_native_input(struct kvb_call *c)
{
	return (struct kvb_v1_in){
		.arena = &c->arena,
		.secret = kvb_core_secret(c->s->core),
		.tenant = c->caller.tenant,
	};
}

struct kvb_api kvb_native_api = {
	.name = "v1",
	.prefix = "/",
	.routes = kvb_routes,
	.n_routes = ROUTE_COUNT,
	.state_size = sizeof(struct native_call),
	.head = native_head,
	.message = kvb_native_message,
	.fail = native_fail,
	.descriptors = kvb_native_protoset,
};
