/*
 * forward.c - forwards calls to the manager that owns their partition. See forward.h.
 *
 * The relay's thread carries all calls; the data of a call is in its arena. No lock, no state but
 * the relay. A call that another owner should answer by now is given up, and waits with the others
 * (pause.c); pause.c also decides when it is retried and when it fails.
 */
#include <skv/forward.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/core.h>
#include <skv/hash.h>
#include <skv/log.h>
#include <skv/relay.h>
#include <skv/request.h>

#include "forward_grpc.h"

#define CALL_MS 60000u  /* longer than any call waits for room and for an owner */
#define CONNECT_MS 300u
#define AGAIN_MS 50u    /* after a try that failed */
#define TELL_MS 10000u  /* between two lines of the log */
#define MORE_BYTES 4096u /* of an answer, beyond our own bound: the owner judges that */

enum { STATUS, TYPE, LOCATION, CHALLENGE, RETRY_AFTER, WANTED };

struct forwarded {
	struct skv_request *c;
	struct skv_relay_call call;
	struct skv_relay_header *want; /* by the numbers above; of gRPC: forward_grpc.h */
	uint32_t partition;
	char owner[SKV_OWNER_NAME]; /* name of the owner that is asked */
	struct parts *of;           /* NULL: it is the whole call */
	struct skv_part *part;
};

/* A call in parts. Only the relay's thread changes it. */
struct parts {
	struct skv_part *part;
	uint32_t n, left;
	int (*join)(struct skv_request *c, struct skv_part *part, uint32_t n);
	struct forwarded *failed; /* NULL: none */
};

static uint64_t now_ms(void) { return skv_now_ms(&skv_clock_system); }

/* ---- forwarded headers and bodies ------------------------------------------------------------ */

/* Returns true if the client has shown a certificate. Another manager cannot check it, and so
 * cannot admit the client. */
static bool shows_certificate(const struct skv_request *c, const char *authorization)
{
	return c->s->auth.path && c->route->role != ROLE_OPEN && !authorization;
}

static void ask(struct skv_request *c)
{
	struct skv_forwarding *f = &c->forwarding;
	const char *route;

	f->asked = true;
	f->stays = true;
	if (!c->s->forward.started || !f->origin || !(c->route->flags & ROUTE_HELD) || f->came ||
	    shows_certificate(c, f->origin->header(c, "Authorization")))
		return;
	route = f->origin->header(c, SKV_ROUTE);
	f->redirects = route && strcmp(route, "redirect") == 0 && !f->origin->message;
	f->stays = route && (strcmp(route, "redirect") == 0 || strcmp(route, "direct") == 0);
}

enum where { NOWHERE, SOON, NOW };

static enum where where(struct skv_request *c, char url[SKV_URL_MAX], char owner[SKV_OWNER_NAME])
{
	const uint32_t number = skv_request_partition(c);
	int rc;

	if (!c->forwarding.asked)
		ask(c);
	if (c->forwarding.parts)
		return SOON;
	if (c->forwarding.stays ||
	    skv_cluster_partition_state(c->s->cluster, number) != SKV_CORE_STANDBY)
		return NOWHERE;
	rc = skv_service_peer(c->s, number, url, owner);
	if (rc == SKV_E_NOT_READY || (rc == SKV_OK && now_ms() < c->forwarding.again_ms))
		return SOON;
	return rc == SKV_OK ? NOW : NOWHERE;
}

bool skv_forward_is_soon(struct skv_request *c)
{
	char url[SKV_URL_MAX], owner[SKV_OWNER_NAME];

	return where(c, url, owner) == SOON;
}

bool skv_forward_can(struct skv_request *c)
{
	char url[SKV_URL_MAX], owner[SKV_OWNER_NAME];

	return where(c, url, owner) != NOWHERE;
}

static bool is_id(const char *s)
{
	const size_t n = strlen(s);

	return n > 0 && n <= SKV_FORWARD_ID &&
	       strspn(s, "0123456789abcdefghijklmnopqrstuvwxyz-") == n;
}

/* Returns the id under which the call is forwarded, or was forwarded to this manager. */
static const char *id_of(struct skv_request *c)
{
	struct skv_forwarding *f = &c->forwarding;
	uint64_t random[2];

	if (*f->id)
		return f->id;
	if (f->came && is_id(f->came)) {
		memcpy(f->id, f->came, strlen(f->came) + 1);
	} else {
		skv_random(random, sizeof random);
		snprintf(f->id, sizeof f->id, "%016llx%016llx", (unsigned long long)random[0],
			 (unsigned long long)random[1]);
	}
	return f->id;
}

const char *skv_request_start_id(struct skv_request *c, uint32_t n)
{
	const size_t size = SKV_FORWARD_ID + 12;
	char *id;

	if (!c->wait.run && !c->forwarding.came)
		return "";
	id = skv_arena_alloc(&c->arena, size);
	if (id)
		snprintf(id, size, "%s-%" PRIu32, id_of(c), n);
	return id ? id : "";
}

/* ---- the answer ------------------------------------------------------------------------------ */

static const char *keep(struct skv_request *c, const char *value)
{
	return *value ? skv_arena_strndup(&c->arena, value, strlen(value)) : NULL;
}

static void take_http(struct skv_request *c, struct skv_relay_call *call)
{
	const struct skv_relay_header *want = call->want;
	unsigned seconds = 0;

	assert(call->status >= 200 && call->status < 600);
	skv_buf_destroy(&c->out);
	c->out = call->answer;
	c->http = (unsigned)call->status;
	c->type = keep(c, want[TYPE].value);
	c->location = keep(c, want[LOCATION].value);
	c->challenge = keep(c, want[CHALLENGE].value);
	if (sscanf(want[RETRY_AFTER].value, "%9u", &seconds) == 1)
		c->retry_after = seconds;
}

/* Logs a permanent fault for the operator, at a limited rate, on the relay's thread. */
static void tell(struct skv_forward *to, const struct skv_error *why)
{
	const uint64_t now = now_ms();

	if (!*why->field || (to->told_ms && now - to->told_ms < TELL_MS))
		return;
	to->told_ms = now;
	skv_log(SKV_LOG_WARN, "calls",
		"calls cannot go on to the manager that owns the partition, %s", why->message);
}

/* Returns true if the manager is not the owner any more, or not yet again. */
static bool is_of_nobody(const struct forwarded *f)
{
	const int status = skv_status_from_name(f->want[STATUS].value);

	return *f->want[STATUS].value &&
	       (status == SKV_E_NOT_OWNER || status == SKV_E_NOT_READY);
}

static void fail_with(struct forwarded *f, int status)
{
	const struct skv_error *why = &f->call.why;
	struct skv_request *c = f->c;
	const uint32_t asked = f->part ? f->part->partitions : 1u << f->partition;

	skv_buf_destroy(&f->call.answer);
	skv_metrics_add(&c->s->metrics, METRIC_calls_forward_failed, 1);
	if (*why->message)
		skv_fail(&c->err, status, *why->field ? why->field : NULL,
			 "the manager that owns the partition does not answer, %s", why->message);
	else
		skv_fail(&c->err, status, NULL,
			 "the manager that owns the partition does not answer: retry");
	tell(&c->s->forward, why);
	c->forwarding.refused = is_of_nobody(f);
	c->forwarding.moved = c->forwarding.refused && !(c->target.refused & asked);
	c->forwarding.again_ms = c->forwarding.moved ? 0 : now_ms() + AGAIN_MS;
	c->target.refused |= c->forwarding.refused ? asked : 0;
	c->done.fn(c->done.ctx, status);
}

static void take_answer(struct forwarded *f)
{
	struct skv_request *c = f->c;
	int status = SKV_OK;

	skv_error_clear(&c->err);
	if (!c->forwarding.origin->message) {
		take_http(c, &f->call);
	} else if (!forward_grpc_take(c, &f->call, &status)) {
		c->forwarding.stays = true;
		fail_with(f, SKV_E_NOT_OWNER);
		return;
	}
	c->forwarding.answered = true;
	skv_metrics_add(&c->s->metrics, METRIC_calls_forwarded, 1);
	c->done.fn(c->done.ctx, status);
}

/* The last one ends the call. */
static void part_done(struct forwarded *f)
{
	struct parts *all = f->of;
	struct skv_request *c = f->c;
	int rc;

	f->part->http = (int)f->call.status;
	f->part->answer = f->call.answer;
	f->call.answer = (struct skv_buf){ 0 };
	if (f->call.rc != SKV_OK || is_of_nobody(f))
		all->failed = f;
	assert(all->left > 0);
	if (--all->left > 0)
		return;
	skv_error_clear(&c->err);
	rc = all->failed ? SKV_E_NOT_OWNER : all->join(c, all->part, all->n);
	for (uint32_t i = 0; i < all->n; i++)
		skv_buf_destroy(&all->part[i].answer);
	if (all->failed)
		fail_with(all->failed, SKV_E_NOT_OWNER);
	else
		c->done.fn(c->done.ctx, rc);
}

static void done(void *ctx)
{
	struct forwarded *f = ctx;

	if (f->of) {
		part_done(f);
		return;
	}
	switch (f->call.rc) {
	case SKV_OK:
		if (is_of_nobody(f))
			fail_with(f, SKV_E_NOT_OWNER);
		else
			take_answer(f);
		break;
	case SKV_E_TOO_LARGE:
	case SKV_E_NOMEM:
		fail_with(f, f->call.rc);
		break;
	default:
		fail_with(f, f->call.sent ? SKV_E_UNKNOWN_OUTCOME : SKV_E_NOT_OWNER);
	}
}

/* Another one owns the partition now, or this manager does. */
static bool given_up(void *ctx)
{
	const struct forwarded *f = ctx;
	struct skv_cluster *cluster = f->c->s->cluster;
	const uint32_t number = f->partition;
	char self[SKV_OWNER_NAME], owner[SKV_OWNER_NAME];
	uint64_t left;

	if (skv_cluster_partition_state(cluster, number) != SKV_CORE_STANDBY)
		return true;
	skv_cluster_partition_leader(cluster, number, self, owner, &left);
	return strcmp(owner, f->owner) != 0;
}

/* ---- the call -------------------------------------------------------------------------------- */

static const char *line(struct skv_request *c, const char *name, const char *value)
{
	const size_t n = strlen(name) + strlen(value) + 3;
	char *text = skv_arena_alloc(&c->arena, n);

	if (text)
		snprintf(text, n, "%s: %s", name, value);
	return text;
}

/* Returns false if out of memory. */
static bool add_line(struct forwarded *f, const char *name, const char *value)
{
	const char *text = value ? line(f->c, name, value) : NULL;

	assert(f->call.n_lines < SKV_RELAY_LINES);
	if (text)
		f->call.line[f->call.n_lines++] = text;
	return text || !value;
}

static bool make_lines(struct forwarded *f)
{
	static const char *const kept[] = { "Content-Type", "Accept", "Authorization" };
	struct skv_request *c = f->c;
	bool ok = true;

	for (size_t i = f->of ? 2 : 0; i < sizeof kept / sizeof kept[0]; i++)
		ok &= add_line(f, kept[i], c->forwarding.origin->header(c, kept[i]));
	if (f->of)
		ok &= add_line(f, kept[0], "application/x-protobuf") && add_line(f, SKV_PART, "1");
	return ok && add_line(f, "X-Request-Id", c->id) &&
	       add_line(f, "traceparent", *c->trace ? c->trace : NULL) &&
	       add_line(f, "tracestate",
			*c->trace ? c->forwarding.origin->header(c, "tracestate") : NULL) &&
	       add_line(f, SKV_FORWARDED, id_of(c));
}

static const char *make_url(struct skv_request *c, const char *base)
{
	struct skv_buf b = { 0 };
	const char *url;

	skv_put_bytes(&b, base, strlen(base));
	c->forwarding.origin->target(c, &b);
	url = b.failed ? NULL : skv_arena_strndup(&c->arena, (const char *)b.data, b.len);
	skv_buf_destroy(&b);
	return url;
}

/* Writes the body, and requests the needed headers of the answer. */
static bool make_http(struct forwarded *f)
{
	static const char *const names[WANTED] = {
		[TYPE] = "Content-Type", [LOCATION] = "Location", [CHALLENGE] = "WWW-Authenticate",
		[RETRY_AFTER] = "Retry-After", [STATUS] = SKV_STATUS,
	};
	const struct skv_request *c = f->c;

	f->call.method = c->route->method;
	f->call.body = c->route->flags & ROUTE_BODY ? c->body : NULL;
	f->call.n_body = c->route->flags & ROUTE_BODY ? c->n_body : 0;
	return forward_want(f->c, &f->call, names, WANTED);
}

static struct forwarded *begin(struct skv_request *c, uint32_t partition, const char *owner)
{
	struct forwarded *f = skv_arena_calloc(&c->arena, 1, sizeof *f);

	if (!f)
		return NULL;
	f->c = c;
	f->partition = partition;
	memcpy(f->owner, owner, sizeof f->owner);
	f->call = (struct skv_relay_call){
		.answer_max = c->s->o.answer_max + MORE_BYTES,
		.timeout_ms = CALL_MS,
		.connect_ms = CONNECT_MS,
		.given_up = given_up,
		.done = done,
		.ctx = f,
	};
	return f;
}

static struct forwarded *make(struct skv_request *c, const char *base, const char *owner)
{
	struct forwarded *f = begin(c, skv_request_partition(c), owner);
	bool made;

	if (!f)
		return NULL;
	f->call.url = make_url(c, base);
	made = c->forwarding.origin->message ? forward_grpc_make(c, &f->call) : make_http(f);
	f->want = f->call.want;
	return made && f->call.url && make_lines(f) ? f : NULL;
}

bool skv_forward_call(struct skv_request *c, int status)
{
	char url[SKV_URL_MAX], owner[SKV_OWNER_NAME];
	struct forwarded *f;

	assert(status != SKV_PENDING);
	if (status != SKV_E_NOT_OWNER || where(c, url, owner) != NOW)
		return false;
	f = make(c, url, owner);
	if (!f)
		return false;
	c->forwarding.sent = true;
	skv_relay_call(c->s->forward.relay, &f->call); /* the last touch */
	return true;
}

/* ---- calls in parts -------------------------------------------------------------------------- */

bool skv_forward_may_part(struct skv_request *c, bool some_here)
{
	const struct skv_origin *origin = c->forwarding.origin;

	return c->s->forward.started && origin && !origin->header(c, SKV_PART) &&
	       (some_here || !origin->header(c, SKV_ROUTE)) &&
	       !shows_certificate(c, origin->header(c, "Authorization"));
}

int skv_forward_part(struct skv_request *c, uint32_t partition, struct skv_part *part, uint32_t *n,
		     uint32_t *at)
{
	struct skv_part *p = &part[*n];

	assert(*n <= SKV_MAX_PARTITIONS && partition < SKV_MAX_PARTITIONS);
	c->forwarding.parts = true;
	c->forwarding.again_ms = now_ms() + AGAIN_MS;
	if (skv_service_peer(c->s, partition, p->url, p->owner) != SKV_OK)
		return skv_fail(&c->err, SKV_E_NOT_OWNER, NULL,
				"the owner of partition %" PRIu32 " is not known: retry",
				partition);
	p->partition = partition;
	p->partitions = 0;
	for (*at = 0; strcmp(part[*at].url, p->url) != 0; ++*at)
		assert(*at < *n);
	part[*at].partitions |= 1u << partition;
	*n += *at == *n;
	return SKV_OK;
}

static bool make_part(struct skv_request *c, const char *path, struct parts *all,
		      struct skv_part *p)
{
	struct forwarded *f = begin(c, p->partition, p->owner);
	const size_t n = strlen(p->url) + strlen(path) + 1;
	char *url = skv_arena_alloc(&c->arena, n);

	if (!f || !url || !make_http(f))
		return false;
	snprintf(url, n, "%s%s", p->url, path);
	f->want = f->call.want;
	f->of = all;
	f->part = p;
	f->call.url = url;
	f->call.method = "POST";
	f->call.body = p->body;
	f->call.n_body = p->n_body;
	p->sent = f;
	return make_lines(f);
}

int skv_forward_parts(struct skv_request *c, const char *path, struct skv_part *part, uint32_t n,
		      int (*join)(struct skv_request *c, struct skv_part *part, uint32_t n))
{
	struct skv_relay *relay = c->s->forward.relay;
	struct parts *all = skv_arena_calloc(&c->arena, 1, sizeof *all);
	bool made = all != NULL;

	assert(n > 0 && c->forwarding.parts);
	for (uint32_t i = 0; made && i < n; i++)
		made = make_part(c, path, all, &part[i]);
	if (!made)
		return SKV_E_NOMEM;
	*all = (struct parts){ .part = part, .n = n, .left = n, .join = join };
	c->forwarding.sent = true;
	for (uint32_t i = 0; i < n; i++) /* the last one is the last touch */
		skv_relay_call(relay, &part[i].sent->call);
	return SKV_PENDING;
}

int skv_request_owner_url(struct skv_request *c, char out[SKV_URL_MAX])
{
	if (c->forwarding.came)
		return SKV_E_NOT_READY;
	return skv_forward_can(c)
		       ? SKV_E_NOT_FOUND
		       : skv_service_owner_url(c->s, skv_request_partition(c), out);
}

bool skv_forward_redirects(struct skv_request *c)
{
	char url[SKV_URL_MAX];

	if (c->status != SKV_E_NOT_OWNER || !c->route || !c->forwarding.origin)
		return false;
	if (!c->forwarding.asked)
		ask(c);
	if (!c->forwarding.redirects ||
	    skv_service_owner_url(c->s, skv_request_partition(c), url) != SKV_OK)
		return false;
	c->location = make_url(c, url);
	return c->location != NULL;
}

int skv_forward_start(struct skv_forward *f, struct skv_error *err)
{
	int rc = skv_relay_start(&f->relay, err);

	f->started = rc == SKV_OK;
	return rc;
}

void skv_forward_stop(struct skv_forward *f)
{
	if (!f->started)
		return;
	f->started = false;
	skv_relay_stop(f->relay);
	f->relay = NULL;
}
