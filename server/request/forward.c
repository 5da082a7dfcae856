/*
 * forward.c - calls go on to the manager that owns their partition. See forward.h.
 *
 * The relay's thread carries all of them; what belongs to one is in its arena. No lock, no state
 * but the relay. A call that another owner should answer by now is given up there, and waits with
 * the others (pause.c), which also decides when it is tried again and when it fails.
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

enum { STATUS, PLACE, TYPE, LOCATION, CHALLENGE, RETRY_AFTER, WANTED };

struct forwarded {
	struct skv_request *c;
	struct skv_relay_call call;
	struct skv_relay_header *want; /* by the numbers above; of gRPC: forward_grpc.h */
	char owner[SKV_OWNER_NAME]; /* who is asked */
};

static uint64_t now_ms(void) { return skv_now_ms(&skv_clock_system); }

/* ---- what is sent on ------------------------------------------------------------------------- */

/* What another manager cannot check, it cannot let in. */
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
	if (!c->s->forward.started || !f->origin || !(c->route->flags & ROUTE_HELD) ||
	    f->origin->header(c, SKV_FORWARDED) ||
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
	if (c->forwarding.stays ||
	    skv_core_partition_state(c->s->core, number) != SKV_CORE_STANDBY)
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

const char *skv_forward_id(struct skv_request *c)
{
	struct skv_forwarding *f = &c->forwarding;
	const char *given;

	if (!*f->id && f->origin) {
		given = f->origin->header(c, SKV_FORWARDED);
		if (given && is_id(given))
			memcpy(f->id, given, strlen(given) + 1);
	}
	return *f->id ? f->id : NULL;
}

bool skv_forward_came(struct skv_request *c)
{
	return c->forwarding.origin && c->forwarding.origin->header(c, SKV_FORWARDED);
}

/* ---- which partition it is for --------------------------------------------------------------- */

/* False: none, or of a store with more than are here. */
static bool read_place(const struct skv_request *c, const char *text, uint32_t *number)
{
	return text && sscanf(text, "%2" SCNu32, number) == 1 &&
	       *number < skv_core_partitions(c->s->core);
}

struct skv_core *skv_forward_place(struct skv_request *c)
{
	uint32_t number;

	return skv_forward_came(c) &&
			       read_place(c, c->forwarding.origin->header(c, SKV_PLACE), &number)
		       ? skv_core_alone(c->s->core, number)
		       : NULL;
}

bool skv_forward_tells(struct skv_request *c, int status)
{
	return status == SKV_E_NOT_OWNER && c->door.sure && skv_forward_came(c);
}

bool skv_forward_knows(const struct skv_request *c, uint32_t *number)
{
	*number = c->door.partition;
	return c->door.sure && (c->status == SKV_E_NOT_OWNER || c->status == SKV_E_NOT_READY);
}

/* It may be here: that what is not there does not exist holds here, too. */
static void take_place(struct skv_request *c, uint32_t number)
{
	c->forwarding.here =
		skv_core_partition_state(c->s->core, number) == SKV_CORE_READY;
	c->alone = c->forwarding.here ? skv_core_alone(c->s->core, number) : NULL;
}

bool skv_forward_comes_back(struct skv_request *c)
{
	const bool here = c->forwarding.here;

	c->forwarding.here = false;
	return here;
}

/* Who was asked does not have it: is there another one to ask at once? */
static bool asks_another(const struct forwarded *f)
{
	struct skv_request *c = f->c;
	const uint32_t asked = skv_request_partition(c);
	const bool named = c->door.name[0] || c->door.name[1];
	uint32_t number = 0;

	if (asked == 0 && read_place(c, f->want[PLACE].value, &number)) {
		if (named)
			skv_core_learn(c->s->core, c->door.name, number);
		c->door.sure = true;
		take_place(c, number);
	} else if (asked == 0 || !named || c->door.sure) {
		return false;
	}
	assert(number < skv_core_partitions(c->s->core));
	c->door.where = SKV_THERE;
	c->door.partition = number;
	return number != asked;
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

/* What does not pass by itself is for the operator, too; the relay's thread, now and then. */
static void tell(struct skv_forward *to, const struct skv_error *why)
{
	const uint64_t now = now_ms();

	if (!*why->field || (to->told_ms && now - to->told_ms < TELL_MS))
		return;
	to->told_ms = now;
	skv_log(SKV_LOG_WARN, "calls",
		"calls cannot go on to the manager that owns the partition, %s", why->message);
}

/* It is not the owner any more, or not yet again. */
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

	skv_buf_destroy(&f->call.answer);
	c->alone = NULL; /* whom it is for is found out anew */
	skv_metrics_add(&c->s->metrics, METRIC_calls_forward_failed, 1);
	if (*why->message)
		skv_fail(&c->err, status, *why->field ? why->field : NULL,
			 "the manager that owns the partition does not answer, %s", why->message);
	else
		skv_fail(&c->err, status, NULL,
			 "the manager that owns the partition does not answer: retry");
	tell(&c->s->forward, why);
	c->forwarding.again_ms = now_ms() + AGAIN_MS;
	c->forwarding.refused = is_of_nobody(f);
	c->done.fn(c->done.ctx, status);
}

static void go_elsewhere(struct forwarded *f)
{
	struct skv_request *c = f->c;

	assert(!c->forwarding.answered);
	skv_buf_destroy(&f->call.answer);
	skv_fail(&c->err, SKV_E_NOT_OWNER, NULL, "another manager owns the partition: retry");
	c->done.fn(c->done.ctx, SKV_E_NOT_OWNER);
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

static void done(void *ctx)
{
	struct forwarded *f = ctx;

	switch (f->call.rc) {
	case SKV_OK:
		if (is_of_nobody(f) && asks_another(f))
			go_elsewhere(f);
		else if (is_of_nobody(f))
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
	struct skv_core *core = f->c->s->core;
	const uint32_t number = skv_request_partition(f->c);
	char self[SKV_OWNER_NAME], owner[SKV_OWNER_NAME];
	uint64_t left;

	if (skv_core_partition_state(core, number) != SKV_CORE_STANDBY)
		return true;
	skv_core_partition_leader(core, number, self, owner, &left);
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

/* False: out of memory. */
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
	char place[12] = "";
	bool ok = true;

	if (c->door.sure)
		snprintf(place, sizeof place, "%" PRIu32, c->door.partition);
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		ok &= add_line(f, kept[i], c->forwarding.origin->header(c, kept[i]));
	return ok && add_line(f, "X-Request-Id", c->id) &&
	       add_line(f, "traceparent", *c->trace ? c->trace : NULL) &&
	       add_line(f, "tracestate",
			*c->trace ? c->forwarding.origin->header(c, "tracestate") : NULL) &&
	       add_line(f, SKV_PLACE, *place ? place : NULL) &&
	       add_line(f, SKV_FORWARDED, skv_forward_id(c));
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

/* The body, and what of the answer is asked for. */
static bool make_http(struct forwarded *f)
{
	static const char *const names[WANTED] = {
		[TYPE] = "Content-Type", [LOCATION] = "Location", [CHALLENGE] = "WWW-Authenticate",
		[RETRY_AFTER] = "Retry-After", [STATUS] = SKV_STATUS, [PLACE] = SKV_PLACE,
	};
	const struct skv_request *c = f->c;

	f->call.method = c->route->method;
	f->call.body = c->route->flags & ROUTE_BODY ? c->body : NULL;
	f->call.n_body = c->route->flags & ROUTE_BODY ? c->n_body : 0;
	return forward_want(f->c, &f->call, names, WANTED);
}

static struct forwarded *make(struct skv_request *c, const char *base, const char *owner)
{
	struct forwarded *f = skv_arena_calloc(&c->arena, 1, sizeof *f);
	bool made;

	if (!f)
		return NULL;
	if (!skv_forward_id(c)) {
		uint64_t random[2];

		skv_random(random, sizeof random);
		snprintf(c->forwarding.id, sizeof c->forwarding.id, "%016llx%016llx",
			 (unsigned long long)random[0], (unsigned long long)random[1]);
	}
	f->c = c;
	memcpy(f->owner, owner, sizeof f->owner);
	f->call = (struct skv_relay_call){
		.url = make_url(c, base),
		.answer_max = c->s->o.answer_max + MORE_BYTES,
		.timeout_ms = CALL_MS,
		.connect_ms = CONNECT_MS,
		.given_up = given_up,
		.done = done,
		.ctx = f,
	};
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
