/*
 * v1.c - the native API: its routes, its codecs, its errors.
 *
 * A request is JSON or protobuf by its header, gRPC's is protobuf. A failure has the HTTP status of
 * its skv status and a document with code, message, field and id; over gRPC the trailers have it.
 * No state of its own.
 */
#include "v1.h"

#include <assert.h>
#include <string.h>

static void write_answer(struct skv_request *r)
{
	const struct v1_row *row = r->route->own;

	assert(!row->answer || v1_of(r)->answer);
	if (row->answer)
		v1_of(r)->codec->write_named(row->answer, &r->out, v1_of(r)->answer);
}

const struct skv_route skv_routes[SKV_OP_COUNT] = {
#define ROUTE_ROW(writer, op, method, pattern, role, flags, grpc, target, body, tag, request,      \
		  answer, ...)                                                                     \
	{ #op,                                                                                     \
	  #method,                                                                                 \
	  pattern,                                                                                 \
	  ROLE_##role,                                                                             \
	  (flags) | ((flags) & ROUTE_READY ? ROUTE_HELD : 0),                                      \
	  SKV_PLANE_ALL,                                                                           \
	  grpc,                                                                                    \
	  &(const struct v1_row){ target, body, request, answer },                                 \
	  skv_op_##op##_run,                                                                       \
	  writer },
#define OWN_ROW(op, ...) ROUTE_ROW(skv_op_##op##_write, op, __VA_ARGS__)
#define TABLE_ROW(op, ...) ROUTE_ROW(write_answer, op, __VA_ARGS__)
	SKV_OPERATIONS(OWN_ROW, TABLE_ROW, OWN_ROW)
#undef ROUTE_ROW
#undef OWN_ROW
#undef TABLE_ROW
};

static bool has_body(const struct skv_request *c)
{
	return c->route && c->route->flags & ROUTE_BODY;
}

/* A GET has no body and is answered as it accepts; otherwise the body's type decides, and without
 * one what is accepted. A request that is no operation is answered like one with a body. */
static void take_codecs(struct skv_request *c, const struct skv_head *h)
{
	struct v1_request *n = v1_of(c);
	bool body = !c->route || strcmp(c->route->method, "POST") == 0 ||
		    strcmp(c->route->method, "PUT") == 0;
	const char *type = body ? h->content_type : NULL;
	const struct skv_v1_codec *accepted = skv_v1_codec_of_accept(h->accept);

	n->body_codec = skv_v1_codec_of_type(type);
	n->codec = type && n->body_codec ? n->body_codec : accepted ? accepted : &skv_v1_json;
}

static int v1_head(struct skv_request *c, const struct skv_head *h)
{
	struct v1_request *n = v1_of(c);

	if (c->wire == WIRE_GRPC) {
		n->body_codec = n->codec = &skv_v1_pb;
		return SKV_OK;
	}
	assert(!c->route || (c->route >= skv_routes && c->route < skv_routes + SKV_OP_COUNT));
	take_codecs(c, h);
	c->type = n->codec->content_type;
	if (c->route == &skv_routes[SKV_OP_block_find] && h->argument) {
		n->key_text = h->argument(h->ctx, "key");
		n->key_number = h->argument(h->ctx, "key_int");
	}
	if (c->route == &skv_routes[SKV_OP_instance_delete] && h->argument) {
		n->unused_s = h->argument(h->ctx, "unused_s");
		n->with_blocks = h->argument(h->ctx, "with_blocks");
	}
	if (c->route && strcmp(c->route->method, "PUT") == 0 && h->argument) {
		n->only = h->argument(h->ctx, "only");
		n->version = h->argument(h->ctx, "version");
	}
	if (c->route && c->route->flags & ROUTE_PAGED && h->argument) {
		n->limit = h->argument(h->ctx, "limit");
		n->after = h->argument(h->ctx, "after");
	}
	if ((c->route == &skv_routes[SKV_OP_pins] || c->route == &skv_routes[SKV_OP_keys]) &&
	    h->argument) {
		n->cursor = h->argument(h->ctx, "cursor");
		n->max = h->argument(h->ctx, "max");
	}
	if (n->body_codec || !has_body(c))
		return SKV_OK;
	return skv_fail(&c->err, SKV_E_UNSUPPORTED, "Content-Type", "a body is one of: %s",
			skv_v1_codec_types());
}

static unsigned http_status(const struct skv_request *c)
{
	const struct v1_request *n = c->state;

	if (c->http)
		return c->http;
	if (c->status == SKV_E_UNSUPPORTED && has_body(c) && n && !n->body_codec)
		return 415;
	return (unsigned)skv_status_http(c->status);
}

static unsigned v1_fail(struct skv_request *c)
{
	const struct v1_request *n = c->state;
	const struct skv_v1_codec *codec = n && n->codec ? n->codec : &skv_v1_json;

	assert(c->status != SKV_OK);
	/* The trailers of gRPC are the answer. */
	if (c->wire == WIRE_GRPC)
		return (unsigned)skv_status_grpc(c->status);
	c->type = codec->content_type;
	codec->write_error(&c->out, &c->err, c->id);
	if (c->out.failed)
		c->fixed = codec->no_memory;
	return http_status(c);
}

struct skv_v1_in skv_v1_input(struct skv_request *c)
{
	return (struct skv_v1_in){
		.arena = &c->arena,
		.secret = skv_cluster_secret(c->s->cluster),
		.tenant = c->caller.tenant,
	};
}

static void v1_again(struct skv_request *c) { memset(&v1_of(c)->u, 0, sizeof v1_of(c)->u); }

struct skv_api skv_v1_api = {
	.name = "v1",
	.prefix = "/",
	.routes = skv_routes,
	.n_routes = SKV_OP_COUNT,
	.state_size = sizeof(struct v1_request),
	.head = v1_head,
	.again = v1_again,
	.message = skv_v1_message,
	.fail = v1_fail,
	.descriptors = skv_v1_protoset,
};
