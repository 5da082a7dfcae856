/*
 * asks.c - calls the owner of a partition, for administration between managers.
 *
 * The lead sends its core's request (skv_cluster_ask_by) as the ordinary operation, with the relay
 * of forwarded calls and the token that the owner publishes for managers; Slabkv-Place names the
 * partition, Slabkv-Tenant the tenant. The thread waits for the answer. No state but the service's.
 */
#include <skv/v1_api.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/asks.h>
#include <skv/lock.h>
#include <skv/relay.h>
#include <skv/service.h>
#include <skv/v1_pb.h>

#include "v1.h"

#define LOOK_MS 10000u /* for the answer to a question */
#define DO_MS 60000u   /* for a change: directories may be slow */
#define CONNECT_MS 300u
#define PROTOBUF "application/x-protobuf"
#define PATH_MAX_BYTES (3 * (SKV_MAX_NAME + SKV_MAX_CURSOR) + 128)

struct asking {
	struct skv_relay_call call;
	struct skv_service *s;
	struct skv_peer_call *q;
	const struct skv_route *route;
	char owner[SKV_OWNER_NAME], url[SKV_URL_MAX + PATH_MAX_BYTES];
	char authorization[SKV_PEER_TOKEN + 32], place[32], tenant[SKV_MAX_NAME + 32];
	struct skv_mutex lock; /* of the next */
	struct skv_cond wake;
	bool ended;
};

/* Another one owns the partition now, or somebody else leads. */
static bool given_up(void *ctx)
{
	const struct asking *k = ctx;
	char self[SKV_OWNER_NAME], owner[SKV_OWNER_NAME];
	uint64_t left;

	if (skv_service_ends(k->s) ||
	    skv_cluster_partition_state(k->s->cluster, 0) != SKV_CORE_READY ||
	    skv_cluster_partition_state(k->s->cluster, k->q->partition) != SKV_CORE_STANDBY)
		return true;
	skv_cluster_partition_leader(k->s->cluster, k->q->partition, self, owner, &left);
	return strcmp(owner, k->owner) != 0;
}

static void ended(void *ctx)
{
	struct asking *k = ctx;

	skv_mutex_lock(&k->lock);
	k->ended = true;
	skv_cond_signal(&k->wake);
	skv_mutex_unlock(&k->lock);
}

/* ---- the call -------------------------------------------------------------------------------- */

/* The route's path with the name in it; names of models have slashes. */
static void put_path(struct skv_buf *b, const char *pattern, const char *name)
{
	const char *open = strchr(pattern, '{');

	assert(!open == !name);
	skv_put_bytes(b, pattern, open ? (size_t)(open - pattern) : strlen(pattern));
	for (const char *p = name; p && *p; p++)
		skv_put_bytes(b, *p == '/' ? "%2F" : p, *p == '/' ? 3 : 1);
	if (open)
		skv_put_bytes(b, strchr(open, '}') + 1, strlen(strchr(open, '}') + 1));
}

static void put_query(struct skv_buf *b, const struct skv_peer_call *q)
{
	static const char *const only[] = { [SKV_PUT_NEW] = "new", [SKV_PUT_THERE] = "existing" };
	const char *next = "?";

	assert(!q->version || q->op == SKV_OP_group_put);
	assert(!q->unused || q->op == SKV_OP_instance_delete);
	if (q->page) {
		skv_buf_printf(b, "?limit=%" PRIu32 "&after=", q->page->limit);
		for (const char *p = q->page->after; p && *p; p++)
			skv_buf_printf(b, "%%%02X", (unsigned char)*p);
	}
	if (q->how != SKV_PUT_ANY) {
		skv_buf_printf(b, "?only=%s", only[q->how]);
		next = "&";
	}
	if (q->version)
		skv_buf_printf(b, "%sversion=%" PRIu64, next, *q->version);
	if (q->unused)
		skv_buf_printf(b, "?unused_s=%" PRIu64 "&with_blocks=%s",
			       (q->unused->ms + 999) / 1000,
			       q->unused->with_blocks ? "true" : "false");
}

static int make_url(struct asking *k, const char *base, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	bool fits;

	skv_put_bytes(&b, base, strlen(base));
	put_path(&b, k->route->pattern, k->q->name);
	put_query(&b, k->q);
	fits = !b.failed && b.len < sizeof k->url;
	if (fits)
		snprintf(k->url, sizeof k->url, "%.*s", (int)b.len, (const char *)b.data);
	skv_buf_destroy(&b);
	return fits ? SKV_OK : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

static void add_line(struct asking *k, char *to, size_t size, const char *name, const char *value)
{
	assert(k->call.n_lines < SKV_RELAY_LINES);
	snprintf(to, size, "%s: %s", name, value);
	k->call.line[k->call.n_lines++] = to;
}

static bool changes(const struct asking *k) { return strcmp(k->route->method, "GET") != 0; }

static void send(struct asking *k, const char *token, const struct skv_buf *body)
{
	char number[16], bearer[SKV_PEER_TOKEN + 8];

	k->call = (struct skv_relay_call){
		.method = k->route->method,
		.url = k->url,
		.line = { "Content-Type: " PROTOBUF, "Accept: " PROTOBUF },
		.n_lines = 2,
		.body = k->q->req ? body->data : NULL,
		.n_body = body->len,
		.answer_max = k->s->o.answer_max,
		.timeout_ms = changes(k) ? DO_MS : LOOK_MS,
		.connect_ms = CONNECT_MS,
		.given_up = given_up,
		.done = ended,
		.ctx = k,
	};
	snprintf(number, sizeof number, "%" PRIu32, k->q->partition);
	snprintf(bearer, sizeof bearer, "Bearer %s", token);
	add_line(k, k->authorization, sizeof k->authorization, "Authorization", bearer);
	add_line(k, k->place, sizeof k->place, SKV_PLACE, number);
	if (k->q->tenant && *k->q->tenant)
		add_line(k, k->tenant, sizeof k->tenant, SKV_TENANT, k->q->tenant);
	skv_mutex_init(&k->lock);
	skv_cond_init(&k->wake);
	skv_relay_call(k->s->forward.relay, &k->call);
	skv_mutex_lock(&k->lock);
	while (!k->ended)
		skv_cond_wait(&k->wake, &k->lock);
	skv_mutex_unlock(&k->lock);
	skv_cond_destroy(&k->wake);
	skv_mutex_destroy(&k->lock);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Fails: there is no answer. */
static int fail(const struct asking *k, struct skv_error *err)
{
	const struct skv_relay_call *c = &k->call;
	const bool done = changes(k) && c->sent;

	if (c->rc == SKV_E_NOMEM)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (c->rc == SKV_E_TOO_LARGE)
		return skv_fail(err, SKV_E_TOO_LARGE, NULL,
				"what partition %u has is more than answer_max",
				(unsigned)k->q->partition);
	return skv_fail(err, done ? SKV_E_UNKNOWN_OUTCOME : SKV_E_NETWORK, NULL,
			"its owner %.60s does not answer%s%s", k->owner,
			*c->why.message ? ": " : "", c->why.message);
}

/* Reads a failure. A failure of the operation is the answer; a refusal by the owner itself, outside
 * the operation, is not. */
static int read_failure(const struct asking *k, const struct skv_v1_in *in, const char *text,
			struct skv_error *err)
{
	struct skv_error why = { 0 };
	const int rc = skv_pb_read_error(in, text, k->call.answer.len, &why);
	const bool told = skv_status_http(rc) == k->call.status;

	switch (told ? rc : SKV_E_FORBIDDEN) {
	case SKV_E_NOT_OWNER:
	case SKV_E_NOT_READY:
		return skv_fail(err, rc, NULL, "%.60s says: %s", k->owner, why.message);
	case SKV_E_UNAUTHENTICATED:
	case SKV_E_FORBIDDEN:
	case SKV_E_TOO_MANY:
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL,
				"the owner of partition %u, %.60s, refuses (%ld): %.160s",
				(unsigned)k->q->partition, k->owner, k->call.status, why.message);
	default:
		return skv_fail(err, rc, *why.field ? why.field : NULL, "%s", why.message);
	}
}

static int take(struct asking *k, struct skv_error *err)
{
	struct skv_arena own;
	const struct skv_v1_in in = { .arena = k->q->arena ? k->q->arena : &own };
	const char *text = k->call.answer.data ? (const char *)k->call.answer.data : "";
	const struct v1_row *row = k->route->own;
	int rc = SKV_OK;

	skv_arena_init(&own);
	k->q->created = k->call.status == 201;
	if (k->call.status >= 300)
		rc = read_failure(k, &in, text, err);
	else if (k->q->res)
		rc = skv_pb_read_named(row->answer, &in, text, k->call.answer.len, k->q->res, err);
	if (rc != SKV_OK && k->call.status < 300)
		rc = skv_fail(err, SKV_E_UNAVAILABLE, NULL,
			      "the answer of the owner of partition %u, %.60s, cannot be read "
			      "(%.60s: %.60s): are all managers of one version?",
			      (unsigned)k->q->partition, k->owner, err->field, err->message);
	skv_arena_destroy(&own);
	return rc;
}

static int ask(void *ctx, struct skv_peer_call *q, struct skv_error *err)
{
	struct asking k = { .s = ctx, .q = q, .route = &skv_routes[q->op] };
	const struct v1_row *row = k.route->own;
	char url[SKV_URL_MAX], token[SKV_PEER_TOKEN];
	struct skv_buf body = { 0 };
	int rc;

	assert(skv_thread_waits && skv_thread_locks == 0 && k.route->flags & ROUTE_MANAGERS);
	if (!k.s->forward.started)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
				"another manager has partition %u, and this one asks none: start "
				"managers with forward", (unsigned)q->partition);
	if (skv_service_peer_wait(k.s, q->partition, url, token, k.owner) != SKV_OK)
		return skv_fail(err, SKV_E_NOT_OWNER, NULL, "%s%.60s%s",
				*k.owner ? "its owner " : "nobody owns it", k.owner,
				*k.owner ? " has told no address" : "");
	rc = make_url(&k, url, err);
	if (rc == SKV_OK && q->req)
		skv_pb_write_named(row->request, &body, q->req);
	if (body.failed)
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc == SKV_OK) {
		send(&k, token, &body);
		rc = k.call.rc == SKV_OK ? take(&k, err) : fail(&k, err);
		skv_buf_destroy(&k.call.answer);
	}
	skv_buf_destroy(&body);
	return rc;
}

void skv_v1_ask_others(struct skv_service *s)
{
	assert(s->started && s->cluster);
	skv_cluster_ask_by(s->cluster, ask, s);
}
