/*
 * request.c - a call of an operation: id, caller, where it runs, its answer.
 *
 * The common part of HTTP and gRPC, so that an operation is declared and checked once. A call that
 * waits completes through its skv_done, whether the core or a worker ends it. Messages of a backend
 * about this host's files go to the log; the client gets the sentence without the paths. No state
 * of its own, no locks.
 */
#include <skv/request.h>

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>

#define KEEP_ANSWER (64u * 1024) /* a buffer up to this is kept for the next answer */

static void on_arena_grown(struct skv_arena *a, size_t n)
{
	struct skv_request *c =
		(struct skv_request *)((char *)a - offsetof(struct skv_request, arena));

	skv_hold_force(&c->s->holds, &c->hold, n);
}

void skv_request_init(struct skv_request *c, struct skv_service *s, enum metric_wire wire)
{
	memset(c, 0, sizeof *c);
	c->s = s;
	c->wire = wire;
	c->body = "";
	skv_arena_init(&c->arena);
	c->arena.grown = on_arena_grown;
	skv_buf_init(&c->out);
}

/* A call that holds nothing may have no service: tests make such. */
static void give_back(struct skv_request *c)
{
	if (c->hold.large || c->hold.bytes > 0)
		skv_hold_release(&c->s->holds, &c->hold);
}

void skv_request_reset(struct skv_request *c)
{
	skv_buf_clear(&c->out);
	skv_arena_reset(&c->arena);
	give_back(c);
	c->hold.tenant = NULL;
	c->hold.tenant_max = 0;
	*c = (struct skv_request){ .s = c->s, .wire = c->wire, .body = "", .hold = c->hold,
				   .out = c->out, .arena = c->arena };
}

void skv_request_destroy(struct skv_request *c)
{
	give_back(c);
	skv_buf_destroy(&c->out);
	skv_arena_destroy(&c->arena);
}

void skv_request_take_id(struct skv_request *c, const char *given, size_t n)
{
	bool good = given && n > 0 && n <= REQUEST_ID_MAX;
	char hex[16];

	for (size_t i = 0; good && i < n; i++)
		good = isalnum((unsigned char)given[i]) || (given[i] && strchr("._-:", given[i]));
	if (good) {
		memcpy(c->id, given, n);
		c->id[n] = '\0';
		return;
	}
	skv_hex64((uint64_t)c->s->id_prefix << 32 |
			  (uint32_t)atomic_fetch_add(&c->s->id_next, 1), hex);
	memcpy(c->id, hex, 8);
	c->id[8] = '-';
	memcpy(c->id + 9, hex + 8, 8);
	c->id[17] = '\0';
}

int skv_request_open(struct skv_request *c, const struct skv_api *api, const struct skv_head *h)
{
	assert(!c->api && !c->dispatched);
	c->api = api;
	c->state = skv_arena_calloc(&c->arena, 1, api->state_size);
	if (!c->state)
		return skv_fail(&c->err, SKV_E_NOMEM, NULL, "out of memory");
	return api->head(c, h);
}

/* Only where tokens decide: what a KVCM client sends to an open service is nobody's guess. */
static int check_guard(struct skv_request *c, int rc)
{
	const bool right = rc == SKV_OK && c->caller.credentials == CREDENTIALS_GOOD;
	const struct skv_guard_try shown = { c->hold.address, c->caller.token, right };

	if (c->caller.credentials == CREDENTIALS_NONE ||
	    (rc == SKV_OK && !*c->caller.name && c->caller.role >= c->route->role))
		return rc;
	if (skv_guard_pass(&c->s->guard, &shown, skv_now_ms(&skv_clock_system)))
		return rc;
	skv_metrics_add(&c->s->metrics, METRIC_auth_throttled, 1);
	c->guarded = true;
	c->caller = (struct caller){ .role = ROLE_OPEN };
	return skv_fail(&c->err, SKV_E_TOO_MANY, NULL,
			"too many wrong tokens came from this address: retry later");
}

/* Returns true if the call names a single partition. Only other managers may. */
static bool names_place(struct skv_request *c)
{
	const struct skv_origin *o = c->forwarding.origin;

	return o && o->header(c, SKV_PLACE);
}

/* Takes the named partition of another manager's call. It is never the first one, whose owner
 * calls. */
static int take_place(struct skv_request *c)
{
	const char *tenant = c->forwarding.origin->header(c, SKV_TENANT);
	uint32_t number;

	if (sscanf(c->forwarding.origin->header(c, SKV_PLACE), "%2" SCNu32, &number) != 1 ||
	    number == 0 || number >= skv_cluster_partitions(c->s->cluster))
		return skv_fail(&c->err, SKV_E_INVALID, SKV_PLACE, "there is no such partition");
	if (tenant && !skv_model_name_valid(tenant, strlen(tenant)))
		return skv_fail(&c->err, SKV_E_INVALID, SKV_TENANT, "it is no name");
	c->alone = skv_cluster_part(c->s->cluster, number);
	snprintf(c->caller.tenant, sizeof c->caller.tenant, "%s", tenant ? tenant : "");
	return SKV_OK;
}

int skv_request_authorize(struct skv_request *c, const char *authorization,
			  const struct skv_tls_peer *peer)
{
	enum role need = c->route->role;
	int rc;

	if (need == ROLE_OPEN ||
	    (c->route->flags & ROUTE_SCRAPE && atomic_load(&c->s->metrics_open)))
		return SKV_OK;
	if (c->route->flags & ROUTE_MANAGERS && names_place(c) &&
	    skv_auth_is_manager(&c->s->auth, authorization, &c->caller))
		return take_place(c);
	rc = skv_auth_check(&c->s->auth, authorization, peer, &c->caller, &c->err);
	rc = check_guard(c, rc);
	if (rc == SKV_OK && names_place(c))
		rc = skv_fail(&c->err, SKV_E_FORBIDDEN, SKV_PLACE,
			      "only managers of the store ask for one partition");
	if (rc != SKV_OK)
		return rc;
	/* without tokens all are one tenant: there are no others to leave room for */
	if (c->s->auth.path) {
		c->hold.tenant = c->caller.tenant;
		c->hold.tenant_max = skv_tenants_max_held(&c->s->tenants, c->caller.tenant);
	}
	if (c->caller.role < need && c->caller.credentials != CREDENTIALS_GOOD)
		return skv_fail(
			&c->err, SKV_E_UNAUTHENTICATED, NULL,
			"this call needs the role admin: send 'Authorization: Bearer TOKEN'");
	if (c->caller.role < need)
		return skv_fail(&c->err, SKV_E_FORBIDDEN, NULL, "this call needs the role %s",
				need == ROLE_ADMIN ? "admin" : "write");
	return skv_tenant_check_route(c);
}

/* ---- running --------------------------------------------------------------------------------- */

static struct skv_cluster *cluster_of(const struct skv_request *c)
{
	return c->alone ? c->alone : c->s->cluster;
}

struct skv_core *skv_request_core(const struct skv_request *c)
{
	assert(c->door.core);
	return c->door.core;
}

struct skv_cluster *skv_request_cluster(const struct skv_request *c)
{
	return c->door.alone && !(c->route->flags & ROUTE_BLOCKS) ? c->door.part : cluster_of(c);
}

enum skv_where skv_request_find(struct skv_request *c, enum skv_target_kind kind,
				const char *tenant, const char *name)
{
	c->target = (struct skv_target){ kind, tenant ? tenant : c->caller.tenant, name,
					 c->target.refused };
	return skv_find(cluster_of(c), &c->target, &c->door);
}

int skv_request_check_door(struct skv_request *c)
{
	if (c->door.where == SKV_THERE || c->door.unknown)
		return skv_fail(&c->err, SKV_E_NOT_OWNER, NULL,
				"this manager is not the owner: ask the owner");
	if (c->door.where == SKV_SOON)
		return skv_fail(&c->err, SKV_E_NOT_READY, NULL,
				"the partition is being loaded: retry");
	return SKV_OK;
}

static void find_none(struct skv_request *c)
{
	const struct skv_target none = { .kind = SKV_TARGET_NONE };

	skv_find(cluster_of(c), &none, &c->door);
}

/* Returns the kind of object that the first parameter of the route's path names. */
static enum skv_target_kind named_by_path(const struct skv_request *c)
{
	const char *name = c->param[0].name, *pattern = c->route->pattern;

	if (c->route->flags & ROUTE_RAW || !*name)
		return SKV_TARGET_NONE;
	if (strcmp(name, "session") == 0)
		return SKV_TARGET_SESSION;
	if (strcmp(name, "move") == 0)
		return SKV_TARGET_MOVE;
	if (strncmp(pattern, "/v1/instances/", 14) == 0)
		return SKV_TARGET_INSTANCE;
	if (strncmp(pattern, "/v1/groups/", 11) == 0)
		return SKV_TARGET_GROUP;
	return strncmp(pattern, "/v1/storages/", 13) == 0 ? SKV_TARGET_STORAGE : SKV_TARGET_NONE;
}

/* Finds where the call belongs, before the operation looks at anything. A memory node and an
 * fs-master have no core, and no such calls. */
static void begin_run(struct skv_request *c)
{
	const enum skv_target_kind kind = named_by_path(c);

	if (kind != SKV_TARGET_NONE || c->route->flags & (ROUTE_OWNED | ROUTE_HELD))
		skv_request_find(c, kind, NULL, c->param[0].value);
}

/* Of a call for one partition that one says whether it is ready. */
static bool needs_core(const struct skv_request *c)
{
	return c->route->flags & ROUTE_READY && !c->alone;
}

/* Returns true if this manager has no partition, and the call's owners can be asked for their
 * parts. Then only the store's secret is needed here, to read keys that are texts. */
static bool is_parted(struct skv_request *c)
{
	return c->route->flags & ROUTE_PARTS && !skv_cluster_may_begin(c->s->cluster) &&
	       skv_cluster_state_get(c->s->cluster) == SKV_CORE_STANDBY &&
	       skv_forward_may_part(c, false);
}

static int check_ready(struct skv_request *c)
{
	if (!needs_core(c) ||
	    (is_parted(c) && skv_cluster_read_secret(c->s->cluster, &c->err) == SKV_OK))
		return SKV_OK;
	return skv_request_check_core(c);
}

/* A call on one object of another manager goes there as it came, before it is decoded.
 * Administration (ROUTE_BLOCKS) may ask that manager itself. */
static int run_here(struct skv_request *c)
{
	int rc = SKV_OK;

	if (skv_target_is_of_one(c->target.kind) && c->door.where == SKV_THERE &&
	    !(c->route->flags & ROUTE_BLOCKS))
		rc = skv_request_check_door(c);
	if (rc == SKV_OK)
		rc = check_ready(c);
	return rc == SKV_OK ? c->route->run(c) : rc;
}

static void run_job(struct job *job, bool expired)
{
	struct skv_request *c =
		(struct skv_request *)((char *)job - offsetof(struct skv_request, job));
	const bool asks = c->asks;
	int rc;

	if (expired) {
		skv_metrics_add(&c->s->metrics, METRIC_http_admin_refused, 1);
		rc = skv_fail(&c->err, SKV_E_TIMEOUT, NULL,
			      "earlier administration calls hang; this one was not started: retry");
	} else {
		begin_run(c); /* the call may have waited for long */
		rc = run_here(c);
	}
	assert(rc != SKV_PENDING || asks); /* a pending call may be over and gone by now */
	if (rc != SKV_PENDING)
		c->done.fn(c->done.ctx, rc);
}

static int hand_to_worker(struct skv_request *c)
{
	c->job.run = run_job;
	if (skv_workers_submit(&c->s->workers, &c->job, skv_now_ms(&skv_clock_system)))
		return SKV_PENDING;
	skv_metrics_add(&c->s->metrics, METRIC_http_admin_refused, 1);
	return skv_fail(&c->err, SKV_E_TOO_MANY, NULL, "too many administration calls are waiting");
}

/* Before a partition is ready there is no secret for string keys, so nothing is decoded either. */
int skv_request_check_core(struct skv_request *c)
{
	if (skv_cluster_may_begin(c->s->cluster))
		return skv_service_begun(c->s, &c->err);
	switch (skv_cluster_state_get(c->s->cluster)) {
	case SKV_CORE_READY:
		return SKV_OK;
	case SKV_CORE_STANDBY:
		return skv_fail(&c->err, SKV_E_NOT_OWNER, NULL,
				"this manager is a standby: ask the owner, or retry");
	case SKV_CORE_RECOVERING:
		return skv_fail(&c->err, SKV_E_NOT_READY, NULL,
				"this manager is recovering: retry");
	case SKV_CORE_STOPPED:
		break;
	}
	return skv_fail(&c->err, SKV_E_NOT_READY, NULL, "this manager is shutting down");
}

/* Refuses the call if bodies, running calls and unread answers hold too much. An operator's view is
 * exempt. */
static int check_held(struct skv_request *c)
{
	const bool essential = c->route->flags & ROUTE_SCRAPE ||
			       !(c->route->flags & (ROUTE_BODY | ROUTE_CORE | ROUTE_BLOCKS));
	const char *why = skv_hold_check(&c->s->holds, &c->hold, essential);

	if (!why)
		return SKV_OK;
	skv_metrics_add(&c->s->metrics, METRIC_calls_refused_held, 1);
	return skv_fail(&c->err, SKV_E_TOO_MANY, NULL, "%s", why);
}

int skv_request_hold_body(struct skv_request *c, size_t n)
{
	const char *why = skv_hold_add(&c->s->holds, &c->hold, n);

	if (!why)
		return SKV_OK;
	skv_metrics_add(&c->s->metrics, METRIC_calls_refused_held, 1);
	return skv_fail(&c->err, SKV_E_TOO_MANY, NULL, "%s", why);
}

static int run_once(struct skv_request *c)
{
	int rc = SKV_OK;

	begin_run(c);
	c->asks |= c->door.unknown && c->target.kind != SKV_TARGET_NONE;
	c->asks |= is_parted(c) && skv_cluster_read_secret(c->s->cluster, &c->err) != SKV_OK;
	if (!(c->route->flags & ROUTE_BLOCKS) && !c->asks)
		return run_here(c);
	if (needs_core(c) && !c->asks)
		rc = skv_request_check_core(c);
	return rc == SKV_OK ? hand_to_worker(c) : rc;
}

/* Continues a call that has waited, or needs a thread that may. */
static int run_again(struct skv_request *c)
{
	assert(c->dispatched && c->route->flags & ROUTE_HELD && !c->forwarding.answered);
	skv_error_clear(&c->err);
	skv_buf_clear(&c->out);
	c->fixed = NULL;
	c->http = 0;
	c->failed = c->created = false;
	c->forwarding.parts = false;
	c->target.kind = SKV_TARGET_NONE;
	c->door = (struct skv_door){ .core = NULL };
	c->api->again(c);
	return run_once(c);
}

void skv_request_log(const struct skv_request *c, enum skv_log_level level, const char *component,
		     const char *message, const struct skv_log_field *fields, size_t n)
{
	const bool known = c->target.kind != SKV_TARGET_NONE && skv_request_is_of_one(c);
	const uint32_t was = skv_log_partition(known ? c->door.partition + 1 : 0);

	skv_log_fields(level, component, message, fields, n);
	skv_log_partition(was);
}

/* Returns true if the call runs again: the owner that was asked refused it for the first time, and
 * the object may be elsewhere. */
static bool runs_again(struct skv_request *c)
{
	int rc;

	if (!c->forwarding.moved)
		return false;
	c->forwarding.moved = false;
	rc = run_again(c);
	if (rc != SKV_PENDING)
		c->done.fn(c->done.ctx, rc);
	return true;
}

/* Finds where a call that failed with `status` may succeed. An object that is not at its known
 * place is looked for anew; a call on an object that is here may have failed because of other
 * partitions. */
static void find_again(struct skv_request *c, int status)
{
	if ((status != SKV_E_NOT_OWNER && status != SKV_E_NOT_READY) || !c->door.core)
		return;
	if (c->target.kind == SKV_TARGET_NONE && !skv_cluster_may_begin(c->s->cluster)) {
		c->door = (struct skv_door){ .core = NULL }; /* any partition serves this call */
		return;
	}
	if (c->door.where == SKV_HERE)
		c->target.refused |= 1u << c->door.partition;
	skv_find(cluster_of(c), &c->target, &c->door);
	if (c->door.where == SKV_HERE && !c->door.alone)
		find_none(c);
}

/* Returns true if the call has ended, but not for the client: another manager answers it, or the
 * call waits. A manager must not report results from a time of ownership that has ended. */
static bool goes_on(struct skv_request *c, int status)
{
	if (c->forwarding.answered)
		return false;
	if (status == SKV_OK && c->route->flags & ROUTE_OWNED && c->door.core)
		status = skv_door_check(&c->door);
	if (status == SKV_OK)
		return false;
	if (!c->forwarding.sent)
		find_again(c, status);
	c->forwarding.sent = false;
	if (status == SKV_E_NOT_OWNER && c->door.unknown && !c->asks) {
		c->asks = true;
		if (run_again(c) == SKV_PENDING)
			return true;
		status = c->err.status;
	}
	return runs_again(c) || skv_forward_call(c, status) || skv_pause_call(c, status);
}

/* The operation has ended on another thread. */
static void ended(void *ctx, int status)
{
	struct skv_request *c = ctx;

	if (!goes_on(c, status))
		c->wait.done.fn(c->wait.done.ctx, status);
}

int skv_request_run(struct skv_request *c)
{
	bool held;
	int rc;

	assert(!c->dispatched);
	rc = check_held(c);
	if (rc == SKV_OK && c->route->flags & ROUTE_PACED)
		rc = skv_cluster_tenant_check(c->s->cluster, c->caller.tenant, &c->err);
	if (rc != SKV_OK)
		return rc;
	c->dispatched = true;
	/* the forwarding manager may know better: a place that is remembered here is read again */
	c->target.refused = c->forwarding.came ? UINT32_MAX : 0;
	held = c->route->flags & ROUTE_HELD && !c->alone &&
	       (c->s->pause.started || c->s->forward.started);
	if (held) {
		c->wait = (struct skv_wait){ .done = c->done, .run = run_again };
		c->done = (struct skv_done){ ended, c };
	}
	rc = run_once(c);
	return held && rc != SKV_PENDING && goes_on(c, rc) ? SKV_PENDING : rc;
}

/* ---- the answer ------------------------------------------------------------------------------ */

unsigned skv_request_retry_after(int status)
{
	switch (status) {
	case SKV_E_NOT_READY:
	case SKV_E_NOT_OWNER:
	case SKV_E_FENCED:
	case SKV_E_UNKNOWN_OUTCOME:
	case SKV_E_TOO_MANY:
	case SKV_E_NOMEM:
		return 1;
	case SKV_E_JOURNAL_FULL:
	case SKV_E_STORE_IO:
	case SKV_E_UNAVAILABLE:
		return 2;
	case SKV_E_STORE_FULL:
		return 10;
	default:
		return 0;
	}
}

void skv_request_scrub(char *message)
{
	static const char hidden[] = "(path)";
	static const char ends[] = " \t'\"(),;";
	char out[SKV_MESSAGE_MAX];
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
	assert(k < sizeof out);
	out[k] = '\0';
	memcpy(message, out, k + 1);
}

/* A manager that lost its ownership meanwhile (it was stopped, say) must not tell what it knew;
 * without a door it has looked at nothing. */
static void check_ownership(struct skv_request *c)
{
	int rc;

	if (!c->dispatched || !(c->alone || c->route->flags & ROUTE_OWNED) || !c->door.core ||
	    skv_status_http(c->status) >= 500)
		return;
	rc = skv_door_check(&c->door);
	if (rc != SKV_OK)
		c->status = skv_fail(&c->err, SKV_E_NOT_OWNER, NULL,
				     "this manager does not own the partition any more: retry");
}

static void write_answer(struct skv_request *c)
{
	const uint64_t most = c->s->o.answer_max;

	c->out.max = most;
	c->route->write(c);
	if (c->out.over || c->out.len > most) {
		skv_metrics_add(&c->s->metrics, METRIC_answers_too_large, 1);
		c->status = skv_fail(&c->err, SKV_E_TOO_LARGE, NULL,
				     "the answer is over %" PRIu64 " bytes: ask for less at a time",
				     most);
	} else if (c->out.failed) {
		c->status = skv_fail(&c->err, SKV_E_NOMEM, NULL, "out of memory");
	}
}

static void write_failure(struct skv_request *c, char cause[SKV_MESSAGE_MAX])
{
	if (c->err.status != c->status || !*c->err.message)
		skv_fail(&c->err, c->status, NULL, "%s", skv_status_text(c->status));
	memcpy(cause, c->err.message, SKV_MESSAGE_MAX);
	if (c->status == SKV_E_TOO_MANY && strcmp(c->err.field, SKV_BLOCKS_PER_S) == 0)
		c->retry_after = skv_cluster_tenant_wait(c->s->cluster, c->caller.tenant);
	if (!c->alone && (skv_status_http(c->status) >= 500 || c->status == SKV_E_FOREIGN))
		skv_request_scrub(c->err.message);
	if (c->out.cap > KEEP_ANSWER)
		skv_buf_destroy(&c->out);
	skv_buf_clear(&c->out);
	c->fixed = NULL;
	c->type = NULL;
	c->failed = true;
	c->answer = c->api->fail(c);
	if (skv_forward_redirects(c))
		c->answer = 307;
}

int skv_request_finish(struct skv_request *c, char cause[SKV_MESSAGE_MAX])
{
	assert(c->status != SKV_PENDING);
	if (c->forwarding.answered) {
		c->failed |= c->http >= 400 || c->status != SKV_OK;
		memcpy(cause, c->err.message, SKV_MESSAGE_MAX);
		skv_hold_force(&c->s->holds, &c->hold, c->out.cap);
		return c->status;
	}
	check_ownership(c);
	if (c->status == SKV_OK && c->route) {
		write_answer(c);
		/* the process may have been stopped in there for longer than its lease */
		check_ownership(c);
	}
	if (c->status != SKV_OK)
		write_failure(c, cause);
	if (c->out.cap - c->out.len > KEEP_ANSWER)
		skv_buf_trim(&c->out);
	skv_hold_force(&c->s->holds, &c->hold, c->out.cap);
	return c->status;
}

uint64_t skv_request_count(const struct skv_request *c, unsigned code)
{
	uint64_t us = skv_now_us() - c->begin_us;
	unsigned op = c->route ? c->api->first_op + (unsigned)(c->route - c->api->routes)
			       : METRIC_OP_NONE;

	skv_metrics_request(&c->s->metrics,
			    &(struct metric_request){ c->wire, op, code, c->failed, us });
	return us;
}
