/*
 * match_split.c - a match over instances that several managers own: each is asked for alone.
 *
 * This manager asks itself, over the relay, once for each instance: such a call waits for, or goes
 * on to, the owner of its partition like any other, and does not come here. All answers together
 * are the answer; if one fails, so does the match, naming the instance. What belongs to it is in
 * the request's arena. The parts end on the relay's thread, the last one ends the call.
 */
#include "match_split.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <skv/core.h>
#include <skv/relay.h>
#include <skv/v1_json.h>

#define CALL_MS 60000u /* as of calls that go on: server/request/forward.c */
#define CONNECT_MS 1000u
#define ANSWER_MAX 4096u

struct part {
	struct split *of;
	uint32_t number; /* of the instance */
	struct skv_relay_call call;
	int rc;
	uint32_t matched;
	struct skv_error err;
};

struct split {
	struct skv_request *r;
	struct skv_done done; /* the call's own */
	_Atomic uint32_t left;
	uint32_t n;
	struct part *part;
	char url[SKV_URL_MAX + 16];
	const char *authorization; /* the whole line; NULL = none */
};

static int take(struct part *p)
{
	const struct skv_v1_in in = { .arena = &p->of->r->arena };
	const char *text = (const char *)p->call.answer.data;
	struct skv_match_res res;
	int rc;

	assert(p->number < p->of->n && p == &p->of->part[p->number]);
	if (p->call.rc == SKV_E_NOMEM)
		return p->call.rc;
	if (p->call.rc != SKV_OK)
		return skv_fail(&p->err, SKV_E_UNAVAILABLE, NULL, "no answer: retry");
	if (p->call.status != 200) {
		rc = skv_v1_read_error(&in, text, p->call.answer.len, &p->err);
		/* it has waited for its owner in vain, and need not again */
		if (rc == SKV_E_NOT_OWNER || rc == SKV_E_NOT_READY)
			rc = p->err.status = SKV_E_UNAVAILABLE;
		return rc;
	}
	rc = skv_v1_read_match_res(&in, text, p->call.answer.len, &res, &p->err);
	if (rc == SKV_OK && res.n_instances != 1)
		rc = skv_fail(&p->err, SKV_E_INTERNAL, NULL, "another answer than was asked for");
	if (rc == SKV_OK)
		p->matched = res.matched[0];
	return rc;
}

/* The first one that failed says why. */
static int join(struct split *s)
{
	struct v1_request *v = v1_of(s->r);
	uint32_t *matched = skv_arena_calloc(&s->r->arena, s->n, sizeof *matched);

	assert(s->n == v->u.match.req.n_instances && atomic_load(&s->left) == 0);
	if (!matched)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct part *p = &s->part[i];
		char field[SKV_FIELD_MAX];

		snprintf(field, sizeof field, "instances[%" PRIu32 "]", i);
		if (p->rc != SKV_OK)
			return skv_fail(&s->r->err, p->rc, field, "%s",
					*p->err.message ? p->err.message
							: skv_status_text(p->rc));
		matched[i] = p->matched;
	}
	v->u.match.res = (struct skv_match_res){ s->n, v->u.match.req.instances, matched };
	return SKV_OK;
}

static void part_done(void *ctx)
{
	struct part *p = ctx;
	struct split *s = p->of;

	assert(atomic_load(&s->left) > 0);
	p->rc = take(p);
	skv_buf_destroy(&p->call.answer);
	if (atomic_fetch_sub(&s->left, 1) > 1)
		return;
	skv_error_clear(&s->r->err);
	s->done.fn(s->done.ctx, join(s));
}

/* False: out of memory. */
static bool make(struct split *s, uint32_t number)
{
	struct skv_request *r = s->r;
	const struct skv_match_req *req = &v1_of(r)->u.match.req;
	const struct skv_key_input keys = { .form = SKV_KEYS_HEX, .n = req->n_keys,
					    .keys = req->keys };
	struct skv_match_req one = *req;
	struct part *p = &s->part[number];
	struct skv_buf body = { 0 };

	one.instances = &req->instances[number];
	one.n_instances = 1;
	skv_v1_write_match_req(&body, &one, &keys);
	*p = (struct part){ .of = s, .number = number };
	p->call = (struct skv_relay_call){
		.method = "POST", .url = s->url, .line = { "Content-Type: application/json" },
		.n_lines = 1, .n_body = body.len, .answer_max = ANSWER_MAX,
		.timeout_ms = CALL_MS, .connect_ms = CONNECT_MS, .done = part_done, .ctx = p,
	};
	if (!body.failed)
		p->call.body = skv_arena_strndup(&r->arena, (const char *)body.data, body.len);
	skv_buf_destroy(&body);
	if (s->authorization)
		p->call.line[p->call.n_lines++] = s->authorization;
	return p->call.body != NULL;
}

/* Nobody owns all if some are here: clients that find the owner themselves would never find it. */
static bool has_some(struct skv_request *r)
{
	const struct skv_match_req *req = &v1_of(r)->u.match.req;
	struct skv_target t = { .kind = SKV_TARGET_INSTANCE, .tenant = req->tenant };
	struct skv_door door = { .where = SKV_NOWHERE };

	for (uint32_t i = 0; door.where != SKV_HERE && i < req->n_instances; i++) {
		t.name = req->instances[i];
		skv_find(r->s->core, &t, &door);
	}
	return door.where == SKV_HERE;
}

/* Who shows a certificate, and no token, is somebody else to itself. */
static bool may_ask(struct skv_request *r, const char *authorization)
{
	return r->s->forward.started && *r->s->peer && (!r->s->auth.path || authorization) &&
	       (!r->forwarding.origin->header(r, SKV_ROUTE) || has_some(r));
}

/* False: out of memory. */
static bool keep_token(struct split *s, const char *authorization)
{
	static const char name[] = "Authorization: ";
	const size_t n = authorization ? strlen(authorization) : 0;
	char *line;

	if (!authorization)
		return true;
	s->authorization = line = skv_arena_alloc(&s->r->arena, sizeof name + n);
	if (!line)
		return false;
	memcpy(line, name, sizeof name - 1);
	memcpy(line + sizeof name - 1, authorization, n + 1);
	return true;
}

int match_split(struct skv_request *r, int rc)
{
	const struct skv_match_req *req = &v1_of(r)->u.match.req;
	const char *authorization;
	struct split *s;

	assert(rc != SKV_OK && rc != SKV_PENDING);
	if ((rc != SKV_E_NOT_OWNER && rc != SKV_E_NOT_READY) || req->n_instances < 2 ||
	    !r->forwarding.origin)
		return rc;
	authorization = r->forwarding.origin->header(r, "Authorization");
	if (!may_ask(r, authorization))
		return rc;
	s = skv_arena_calloc(&r->arena, 1, sizeof *s);
	if (!s)
		return SKV_E_NOMEM;
	*s = (struct split){ .r = r, .done = r->done, .n = req->n_instances };
	atomic_init(&s->left, s->n);
	snprintf(s->url, sizeof s->url, "%s/v1/match", r->s->peer);
	s->part = skv_arena_calloc(&r->arena, s->n, sizeof *s->part);
	if (!s->part || !keep_token(s, authorization))
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < s->n; i++)
		if (!make(s, i))
			return SKV_E_NOMEM;
	skv_metrics_add(&r->s->metrics, METRIC_matches_split, 1);
	for (uint32_t i = 0, n = s->n; i < n; i++) /* the last one is the last touch */
		skv_relay_call(r->s->forward.relay, &s->part[i].call);
	return SKV_PENDING;
}
