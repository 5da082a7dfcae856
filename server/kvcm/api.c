/*
 * api.c - KVCM's API for the transports: routes, bodies, answers, failures.
 *
 * A body is proto3 JSON over HTTP, whatever its content type says, and the binary form over gRPC.
 * An operation's answer is HTTP 200 or gRPC OK, with its error in the header of the message. An
 * invalid body is 400 and {}, an unknown path 404; a call that the transport refuses (too large,
 * too many) has the transport's status. No locks.
 */
#include "op_list.h"

#include <assert.h>
#include <stdio.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/mem.h>

#include "metrics.h"
#include "protosets.h"

/* ---- one call -------------------------------------------------------------------------------- */

static const struct skv_proto_codec *codec_of(const struct skv_request *c)
{
	return c->wire == WIRE_GRPC ? &skv_proto_binary : &skv_proto_json;
}

static int head(struct skv_request *c, const struct skv_head *h)
{
	struct kvcm_request *k = c->state;

	(void)h;
	k->c = c;
	k->op = c->route ? c->route->own : NULL;
	k->trace_id = "";
	return SKV_OK;
}

/* The whole message is the request. */
static int message(struct skv_request *c, const uint8_t *p, size_t n)
{
	c->body = n ? (const char *)p : "";
	c->n_body = n;
	return SKV_OK;
}

/* Field names of older KVCM versions. */
static const struct skv_proto_alias aliases[] = {
	{ &kvcm_meta__register_instance_request__descriptor, "query_type", "default_query_type" },
	{ &kvcm_admin__register_instance_request__descriptor, "query_type", "default_query_type" },
	{ &kvcm_admin__instance_group__descriptor, "event_reporting_storage_candidates",
	  "event_report_storage_candidates" },
	{ NULL, NULL, NULL },
};

/* Requests that change settings note unknown fields. Other requests are frequent, and come from
 * clients of different versions. */
static int read_message(struct kvcm_request *k, ProtobufCMessage **out)
{
	struct skv_request *c = k->c;

	if (!(k->op->flags & KVCM_WORKER))
		return codec_of(c)->read(k->op->request, c->body, c->n_body, &c->arena, out,
					 &c->err);
	k->notes = skv_arena_calloc(&c->arena, 1, sizeof *k->notes);
	if (!k->notes)
		return kvcm_nomem(k);
	k->notes->aliases = aliases;
	if (c->wire == WIRE_GRPC)
		return skv_proto_read_binary_noted(k->op->request, c->body, c->n_body, &c->arena,
						   k->notes, out, &c->err);
	return skv_proto_read_json_noted(k->op->request, c->body, c->n_body, &c->arena, k->notes,
					 out, &c->err);
}

/* The answer is empty, as KVCM's: the reason is in the log, one line a second. */
static void log_unread(const struct kvcm_request *k)
{
	static atomic_uint_fast64_t last;
	uint64_t now = skv_now_ms(&skv_clock_system) / 1000 + 1, was = atomic_load(&last);

	if (was != now && atomic_compare_exchange_strong(&last, &was, now))
		skv_log(SKV_LOG_WARN, "kvcm", "%s: malformed body: %s%s%s", k->op->name,
			k->c->err.field, *k->c->err.field ? ": " : "", k->c->err.message);
}

static int run(struct skv_request *c)
{
	struct kvcm_request *k = c->state;
	ProtobufCMessage *m;
	int rc;

	assert(!k->req && !k->res);
	rc = read_message(k, &m);
	if (rc != SKV_OK) {
		k->unread = rc != SKV_E_NOMEM;
		if (k->unread)
			log_unread(k);
		return rc;
	}
	k->req = m;
	k->trace_id = kvcm_field(k, "trace_id");
	k->res = skv_proto_make(k->op->response, &c->arena);
	return k->res ? kvcm_op_run(k) : kvcm_nomem(k);
}

static void again(struct skv_request *c)
{
	struct kvcm_request *k = c->state;

	*k = (struct kvcm_request){ .c = c, .op = k->op, .trace_id = "" };
}

static void encode(struct kvcm_request *k)
{
	struct skv_request *c = k->c;

	for (unsigned i = 0; i + 1 < sizeof k->splice / sizeof k->splice[0]; i++)
		if (k->splice[i + 1].field)
			k->splice[i].next = &k->splice[i + 1];
	codec_of(c)->write(k->res, k->splice[0].field ? k->splice : NULL, &c->out);
	c->type = codec_of(c)->content_type;
}

static void answer_failure(struct kvcm_request *k, int status)
{
	struct skv_request *c = k->c;
	int code;

	assert(status != SKV_OK && status != SKV_PENDING);
	code = kvcm_answer_code(k, status);
	k->res = skv_proto_make(k->op->response, &c->arena);
	k->splice[0].field = 0;
	if (k->res && kvcm_put_header(k, code, kvcm_answer_message(k, status)))
		encode(k);
	else
		c->out.failed = true;
}

static void write(struct skv_request *c)
{
	struct kvcm_request *k = c->state;
	int rc = k->op->write ? k->op->write(k) : SKV_OK;

	if (rc == SKV_OK &&
	    !kvcm_put_header(k, KVCM_META__ERROR_CODE__OK, kvcm_answer_message(k, SKV_OK)))
		rc = kvcm_nomem(k);
	if (rc == SKV_OK) {
		encode(k);
	} else {
		c->failed = true;
		answer_failure(k, rc);
	}
}

/* ---- failures -------------------------------------------------------------------------------- */

static const char out_of_memory[] =
	"{\"header\":{\"status\":{\"code\":\"INTERNAL_ERROR\",\"message\":\"out of memory\"},"
	"\"request_id\":\"\"}}";

static unsigned fixed(struct skv_request *c, const char *text, unsigned status)
{
	c->fixed = text;
	c->type = "application/json";
	return status;
}

/* KVCM 3.12: a refused caller gets an HTTP status. */
static unsigned refuse_caller(struct skv_request *c)
{
	if (c->status == SKV_E_FORBIDDEN)
		return fixed(c, "{\"error\":\"forbidden\"}", 403);
	c->challenge = c->caller.credentials == CREDENTIALS_MALFORMED
			       ? "Bearer realm=\"kvcm\", error=\"invalid_request\""
		       : c->caller.credentials == CREDENTIALS_UNKNOWN
			       ? "Bearer realm=\"kvcm\", error=\"invalid_token\""
			       : "Bearer realm=\"kvcm\"";
	return fixed(c, "{\"error\":\"unauthorized\"}", 401);
}

/* Nothing of the operation has been done, or there is none. */
static unsigned fail_outside(struct skv_request *c)
{
	struct kvcm_request *k = c->state;

	if (c->status == SKV_E_UNAUTHENTICATED || c->status == SKV_E_FORBIDDEN)
		return refuse_caller(c);
	if (!c->route || !k || !k->op)
		return fixed(c, "{}", c->http ? c->http : c->status == SKV_E_METHOD ? 404 :
					      (unsigned)skv_status_http(c->status));
	answer_failure(k, c->status);
	if (c->http)
		return c->http;
	/* While draining, KVCM says "ask another one" in the header, where clients look for it. */
	return c->status == SKV_E_NOT_READY ? 200 : (unsigned)skv_status_http(c->status);
}

static unsigned fail(struct skv_request *c)
{
	struct kvcm_request *k = c->state;
	unsigned status = 200;

	assert(c->status != SKV_OK);
	if (c->wire == WIRE_GRPC && (!c->dispatched || !k || k->unread))
		return (unsigned)skv_status_grpc(c->status);
	if (k && k->unread) {
		c->fixed = "{}"; /* without a content type, as KVCM's */
		return 400;
	}
	if (!c->dispatched || !k || !k->op)
		status = fail_outside(c);
	else
		answer_failure(k, c->status);
	if (c->out.failed) {
		skv_buf_clear(&c->out);
		if (c->wire == WIRE_GRPC)
			return (unsigned)skv_status_grpc(SKV_E_NOMEM);
		return fixed(c, out_of_memory, 200);
	}
	return c->wire == WIRE_GRPC ? 0 : status;
}

/* ---- the API --------------------------------------------------------------------------------- */

enum { PLANE_meta = SKV_PLANE_META, PLANE_admin = SKV_PLANE_ADMIN, PLANE_debug = SKV_PLANE_DEBUG };

#define SERVICE_meta "/kv_cache_manager.proto.meta.MetaService/"
#define SERVICE_admin "/kv_cache_manager.proto.admin.AdminService/"
#define SERVICE_debug "/kv_cache_manager.proto.debug.DebugService/"

#define ROUTE_FLAGS(flags)                                        \
	(ROUTE_BODY | ((flags) & KVCM_LEADER ? ROUTE_OWNED | ROUTE_HELD : 0) | \
	  ((flags) & KVCM_WORKER ? ROUTE_BLOCKS : 0) | ((flags) & KVCM_TENANT ? ROUTE_TENANT : 0))

static const struct kvcm_op ops[] = {
#define OP(service, title, path, req, res, role_, flags_, write_, done_, failed_) \
	{ .name = #title,                                                         \
	  .request = &kvcm_##service##__##req##__descriptor,                      \
	  .response = &kvcm_##service##__##res##__descriptor,                     \
	  .flags = flags_,                                                        \
	  .run = kvcm_run_##service##_##path,                                     \
	  .write = write_,                                                        \
	  .done = done_,                                                          \
	  .failed = failed_ },
	KVCM_OPS(OP)
#undef OP
};

enum op_number {
#define NUMBER(service, title, ...) NUMBER_##service##_##title,
	KVCM_OPS(NUMBER)
#undef NUMBER
};

static const struct skv_route routes[] = {
#define ROUTE(service, title, path, req, res, role_, flags_, ...) \
	{ .name = #title,                                         \
	  .method = "POST",                                       \
	  .pattern = "/api/" #path,                               \
	  .role = ROLE_##role_,                                   \
	  .flags = ROUTE_FLAGS(flags_),                           \
	  .planes = PLANE_##service,                              \
	  .grpc = SERVICE_##service #title,                       \
	  .own = &ops[NUMBER_##service##_##title],                \
	  .run = run,                                             \
	  .write = write },
	KVCM_OPS(ROUTE)
#undef ROUTE
#define PAGE(title, path, role_, flags_)  \
	{ .name = #title,                 \
	  .method = "GET",                \
	  .pattern = path,                \
	  .role = ROLE_##role_,           \
	  .flags = flags_,                \
	  .planes = SKV_PLANE_ADMIN,      \
	  .run = kvcm_page_##title##_run, \
	  .write = kvcm_page_##title##_write },
	KVCM_PAGES(PAGE)
#undef PAGE
};

int kvcm_create(const struct kvcm_options *o, struct kvcm **out, struct skv_error *err)
{
	struct kvcm *m = skv_calloc(1, sizeof *m);

	if (!m)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (o->model)
		m->model = *o->model;
	m->own = o->own;
	m->transfer_ms = o->transfer_ms ? o->transfer_ms : KVCM_TRANSFER_MS;
	m->check_writes = o->check_writes;
	atomic_init(&m->campaign_delay_ms, KVCM_CAMPAIGN_DELAY_MS);
	kvcm_faults_init(&m->faults);
	m->api = (struct skv_api){
		.name = "kvcm",
		.prefix = "/api/",
		.routes = routes,
		.n_routes = sizeof routes / sizeof routes[0],
		.state_size = sizeof(struct kvcm_request),
		.ctx = m,
		.head = head,
		.again = again,
		.message = message,
		.fail = fail,
		.expose = kvcm_metrics_write,
		.descriptors = kvcm_protoset,
	};
	assert(m->transfer_ms > 0);
	*out = m;
	return SKV_OK;
}

struct skv_api *kvcm_api(struct kvcm *m) { return &m->api; }

void kvcm_destroy(struct kvcm *m)
{
	if (!m)
		return;
	kvcm_faults_destroy(&m->faults);
	skv_free(m);
}
