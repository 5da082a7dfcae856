/*
 * call.c - one call of an operation: id, caller, where it runs, its answer.
 *
 * What HTTP and gRPC have in common, so that an operation is declared and checked once. A call that
 * waits completes through its kvb_done, whether the core or a worker ends it. What a backend says about
 * this host's files goes to the log; the client gets the sentence without the paths. No state of its
 * own, no locks.
 */
#include <kvb/call.h>

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <kvb/clock.h>

void kvb_call_init(struct kvb_call *c, struct kvb_service *s, enum metric_wire wire)
{
	memset(c, 0, sizeof *c);
	c->s = s;
	c->wire = wire;
	c->body = "";
	kvb_arena_init(&c->arena);
	kvb_buf_init(&c->out);
}

void kvb_call_reset(struct kvb_call *c)
{
	kvb_buf_clear(&c->out);
	kvb_arena_reset(&c->arena);
	*c = (struct kvb_call){ .s = c->s, .wire = c->wire, .body = "", .out = c->out, .arena = c->arena };
}

void kvb_call_destroy(struct kvb_call *c)
{
	kvb_buf_destroy(&c->out);
	kvb_arena_destroy(&c->arena);
}

void kvb_call_take_id(struct kvb_call *c, const char *given, size_t n)
{
	bool good = given && n > 0 && n <= REQUEST_ID_MAX;

	for (size_t i = 0; good && i < n; i++)
		good = isalnum((unsigned char)given[i]) || (given[i] && strchr("._-:", given[i]));
	if (good) {
		memcpy(c->id, given, n);
		c->id[n] = '\0';
		return;
	}
	snprintf(c->id, sizeof c->id, "%08" PRIx32 "-%08" PRIxFAST32, c->s->id_prefix,
		 atomic_fetch_add(&c->s->id_next, 1));
}

int kvb_call_open(struct kvb_call *c, const struct kvb_api *api, const struct kvb_head *h)
{
	c->api = api;
	c->state = kvb_arena_calloc(&c->arena, 1, api->state_size);
	if (!c->state)
		return kvb_fail(&c->err, KVB_E_NOMEM, NULL, "out of memory");
	return api->head(c, h);
}

int kvb_call_authorize(struct kvb_call *c, const char *authorization)
{
	enum role need = c->route->role;
	int rc;

	if (need == ROLE_OPEN || (c->route->flags & ROUTE_SCRAPE && c->s->o.metrics_open))
		return KVB_OK;
	rc = kvb_auth_check(&c->s->auth, authorization, &c->caller, &c->err);
	if (rc != KVB_OK)
		return rc;
	if (c->caller.role < need && c->caller.credentials != CREDENTIALS_GOOD)
		return kvb_fail(&c->err, KVB_E_UNAUTHENTICATED, NULL,
				"this call needs the role admin: send 'Authorization: Bearer TOKEN'");
	if (c->caller.role < need)
		return kvb_fail(&c->err, KVB_E_FORBIDDEN, NULL, "this call needs the role %s",
				need == ROLE_ADMIN ? "admin" : "write");
	return KVB_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static void run_job(struct job *job, bool expired)
{
	struct kvb_call *c = (struct kvb_call *)((char *)job - offsetof(struct kvb_call, job));
	int rc;

	if (expired) {
		kvb_metrics_add(&c->s->metrics, METRIC_http_admin_refused, 1);
		rc = kvb_fail(&c->err, KVB_E_TIMEOUT, NULL,
			      "earlier administration calls hang; it was not begun");
	} else {
		rc = c->route->run(c);
	}
	assert(rc != KVB_PENDING);
	c->done.fn(c->done.ctx, rc);
}

static int hand_to_worker(struct kvb_call *c)
{
	c->job.run = run_job;
	if (kvb_workers_submit(&c->s->workers, &c->job, kvb_now_ms(&kvb_clock_system)))
		return KVB_PENDING;
	kvb_metrics_add(&c->s->metrics, METRIC_http_admin_refused, 1);
	return kvb_fail(&c->err, KVB_E_TOO_MANY, NULL, "too many administration calls are waiting");
}

/* Before a core is ready there is no secret for string keys, so nothing is decoded either. */
int kvb_call_check_core(struct kvb_call *c)
{
	switch (kvb_core_state_get(c->s->core)) {
	case KVB_CORE_READY:
		return KVB_OK;
	case KVB_CORE_STANDBY:
		return kvb_fail(&c->err, KVB_E_NOT_OWNER, NULL,
				"this manager is a standby: ask the owner, or retry");
	case KVB_CORE_RECOVERING:
		return kvb_fail(&c->err, KVB_E_NOT_READY, NULL,
				"this manager is recovering: retry");
	case KVB_CORE_STOPPED:
		break;
	}
	return kvb_fail(&c->err, KVB_E_NOT_READY, NULL, "this manager is shutting down");
}

int kvb_call_run(struct kvb_call *c)
{
	int rc = KVB_OK;

	c->dispatched = true;
	if (c->route->flags & ROUTE_READY)
		rc = kvb_call_check_core(c);
	if (rc != KVB_OK)
		return rc;
	return c->route->flags & ROUTE_BLOCKS ? hand_to_worker(c) : c->route->run(c);
}

/* ---- the answer ------------------------------------------------------------------------------ */

unsigned kvb_call_retry_after(int status)
{
	switch (status) {
	case KVB_E_NOT_READY:
	case KVB_E_NOT_OWNER:
	case KVB_E_FENCED:
	case KVB_E_UNKNOWN_OUTCOME:
	case KVB_E_TOO_MANY:
	case KVB_E_NOMEM:
		return 1;
	case KVB_E_JOURNAL_FULL:
	case KVB_E_STORE_IO:
	case KVB_E_UNAVAILABLE:
		return 2;
	case KVB_E_STORE_FULL:
		return 10;
	default:
		return 0;
	}
}

void kvb_call_scrub(char *message)
{
	static const char hidden[] = "(path)";
	static const char ends[] = " \t'\"(),;";
	char out[KVB_MESSAGE_MAX];
	size_t k = 0;
	bool word = true; /* at the beginning of one */

	for (size_t i = 0; message[i] && k + sizeof hidden < sizeof out;) {
		size_t n = word ? strcspn(message + i, ends) : 1;

		if (word && (message[i] == '/' || strncmp(message + i, "./", 2) == 0 ||
			     strncmp(message + i, "../", 3) == 0)) {
			memcpy(out + k, hidden, sizeof hidden - 1);
			k += sizeof hidden - 1;
			i += n;
		}
		if (!message[i])
			break;
		word = strchr(ends, message[i]) != NULL;
		out[k++] = message[i++];
	}
	out[k] = '\0';
	memcpy(message, out, k + 1);
}

/* A manager that lost its ownership meanwhile (it was stopped, say) must not tell what it knew. */
static void check_ownership(struct kvb_call *c)
{
	int rc;

	if (!c->dispatched || !(c->route->flags & ROUTE_OWNED) || kvb_status_http(c->status) >= 500)
		return;
	rc = kvb_core_may_answer(c->s->core);
	if (rc != KVB_OK)
		c->status = kvb_fail(&c->err, KVB_E_NOT_OWNER, NULL,
				     "this manager does not own the partition any more: retry");
}

int kvb_call_finish(struct kvb_call *c, char cause[KVB_MESSAGE_MAX])
{
	check_ownership(c);
	if (c->status == KVB_OK && c->route) {
		c->route->write(c);
		if (c->out.failed)
			c->status = kvb_fail(&c->err, KVB_E_NOMEM, NULL, "out of memory");
	}
	if (c->status == KVB_OK)
		return KVB_OK;
	if (c->err.status != c->status || !*c->err.message)
		kvb_fail(&c->err, c->status, NULL, "%s", kvb_status_text(c->status));
	memcpy(cause, c->err.message, KVB_MESSAGE_MAX);
	if (kvb_status_http(c->status) >= 500 || c->status == KVB_E_FOREIGN)
		kvb_call_scrub(c->err.message);
	kvb_buf_clear(&c->out);
	c->fixed = NULL;
	c->type = NULL;
	c->failed = true;
	c->answer = c->api->fail(c);
	return c->status;
}

uint64_t kvb_call_count(const struct kvb_call *c, unsigned code)
{
	uint64_t us = kvb_now_us() - c->begin_us;
	unsigned op = c->route ? c->api->first_op + (unsigned)(c->route - c->api->routes) : METRIC_OP_NONE;

	kvb_metrics_request(&c->s->metrics, &(struct metric_request){ c->wire, op, code, c->failed, us });
	return us;
}
