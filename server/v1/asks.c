/*
 * asks.c - administration of one partition between managers: how its owner is asked. What that one
 * does is in op_cluster.c.
 *
 * The manager that leads encodes what its core asks (skv_core_asks) and posts it to the owner, with
 * the relay that calls are sent on by; the thread waits for the answer. No state but what the
 * service has.
 */
#include <skv/v1_api.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/lock.h>
#include <skv/relay.h>
#include <skv/service.h>
#include <skv/v1_codec.h>
#include <skv/core.h>

#define LOOK_MS 10000u /* for the answer to a question */
#define DO_MS 60000u   /* for a change: directories may be slow */
#define CONNECT_MS 300u

struct asking {
	struct skv_relay_call call;
	struct skv_service *s;
	uint32_t partition;
	char owner[SKV_OWNER_NAME], url[SKV_URL_MAX + 16];
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

	if (skv_service_ends(k->s) || skv_core_partition_state(k->s->core, 0) != SKV_CORE_READY ||
	    skv_core_partition_state(k->s->core, k->partition) != SKV_CORE_STANDBY)
		return true;
	skv_core_partition_leader(k->s->core, k->partition, self, owner, &left);
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

static bool changes(enum skv_ask_what what)
{
	switch (what) {
	case SKV_ASK_STORAGES:
	case SKV_ASK_FILES:
	case SKV_ASK_GROUPS:
	case SKV_ASK_INSTANCES:
	case SKV_ASK_USE:
	case SKV_ASK_STATS:
		return false;
	default:
		return true;
	}
}

static void post(struct asking *k, const char *token, const struct skv_buf *body, bool change)
{
	char authorization[SKV_PEER_TOKEN + 32];

	snprintf(authorization, sizeof authorization, "Authorization: Bearer %s", token);
	k->call = (struct skv_relay_call){
		.method = "POST",
		.url = k->url,
		.line = { "Content-Type: application/json", "Accept: application/json",
			  authorization },
		.n_lines = *token ? 3 : 2,
		.body = body->data,
		.n_body = body->len,
		.answer_max = k->s->o.answer_max,
		.timeout_ms = change ? DO_MS : LOOK_MS,
		.connect_ms = CONNECT_MS,
		.given_up = given_up,
		.done = ended,
		.ctx = k,
	};
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

/* There is no answer. */
static int fail(const struct asking *k, bool change, struct skv_error *err)
{
	const struct skv_relay_call *c = &k->call;
	const bool done = change && c->sent;

	if (c->rc == SKV_E_NOMEM)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (c->rc == SKV_E_TOO_LARGE)
		return skv_fail(err, SKV_E_TOO_LARGE, NULL,
				"what partition %u has is more than answer_max",
				(unsigned)k->partition);
	return skv_fail(err, done ? SKV_E_UNKNOWN_OUTCOME : SKV_E_NETWORK, NULL,
			"its owner %.60s does not answer%s%s", k->owner,
			*c->why.message ? ": " : "", c->why.message);
}

static int take(const struct asking *k, struct skv_told *out, struct skv_arena *a,
		struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	const char *text = (const char *)k->call.answer.data;
	struct skv_error why = { 0 };
	int rc;

	if (k->call.status == 200) {
		rc = skv_v1_read_told_res(&in, text, k->call.answer.len, out, err);
		if (rc == SKV_OK && out->code && *out->code)
			rc = skv_fail(err, skv_status_from_name(out->code),
				      *out->field ? out->field : NULL, "%s", out->message);
		else if (rc != SKV_OK)
			rc = skv_fail(err, SKV_E_UNAVAILABLE, NULL,
				      "the answer of the owner of partition %u, %.60s, cannot be "
				      "read (%.60s: %.60s): are all managers of one version?",
				      (unsigned)k->partition, k->owner, err->field, err->message);
		return rc;
	}
	rc = skv_v1_read_error(&in, text ? text : "", k->call.answer.len, &why);
	if (rc == SKV_E_NOT_OWNER || rc == SKV_E_NOT_READY)
		return skv_fail(err, rc, NULL, "%.60s says: %s", k->owner, why.message);
	return skv_fail(err, SKV_E_UNAVAILABLE, NULL,
			"the owner of partition %u, %.60s, refuses (%ld): %.160s",
			(unsigned)k->partition, k->owner, k->call.status, why.message);
}

static int ask(void *ctx, const struct skv_ask *q, struct skv_told *out, struct skv_arena *a,
	       struct skv_error *err)
{
	struct asking k = { .s = ctx, .partition = q->partition };
	const bool change = changes(q->what);
	char url[SKV_URL_MAX], token[SKV_PEER_TOKEN];
	struct skv_buf body = { 0 };
	int rc;

	assert(skv_thread_waits && skv_thread_locks == 0);
	if (!k.s->forward.started)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
				"another manager has partition %u, and this one asks none: start "
				"managers with forward", (unsigned)q->partition);
	if (skv_service_peer_wait(k.s, q->partition, url, token, k.owner) != SKV_OK)
		return skv_fail(err, SKV_E_NOT_OWNER, NULL, "%s%.60s%s",
				*k.owner ? "its owner " : "nobody owns it", k.owner,
				*k.owner ? " has told no address" : "");
	snprintf(k.url, sizeof k.url, "%s/v1/partition", url);
	skv_v1_write_ask_req(&body, q);
	if (body.failed)
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	else {
		post(&k, token, &body, change);
		rc = k.call.rc == SKV_OK ? take(&k, out, a, err) : fail(&k, change, err);
		skv_buf_destroy(&k.call.answer);
	}
	skv_buf_destroy(&body);
	return rc;
}

void skv_v1_asks(struct skv_service *s, struct skv_core_asks *out)
{
	*out = (struct skv_core_asks){ .ask = ask, .ctx = s };
}
