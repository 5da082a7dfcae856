/*
 * calls.c - calls of the hf3fs API over a core without threads (calls.h). Owns
 * all that calls.h declares.
 */
#include "calls.h"

#include <stdatomic.h>
#include <string.h>

struct env env;
struct skv_api *api;
struct skv_service *service;
struct skv_request call;
unsigned status;
const char *tokens = "";
const char *authorization;
static atomic_int completed; /* 1: not yet */

struct skv_hf3fs_api_options options(void)
{
	return (struct skv_hf3fs_api_options){ .lease_ms = 5000, .reserve_ms = 4000,
					       .grace_ms = 2000, .retry_ms = 0 };
}

void open_api(const struct skv_hf3fs_api_options *o)
{
	struct skv_service_options so;

	assert_int_equal(skv_hf3fs_api_create(o, &api, &env.err), SKV_OK);
	skv_service_options_init(&so);
	so.apis = &api;
	so.n_apis = 1;
	so.tokens_file = tokens;
	assert_int_equal(skv_service_create(&so, &service, &env.err), SKV_OK);
	service->cluster = env.cluster;
	skv_workers_init(&service->workers, WORKERS_QUEUE);
	if (o->retry_ms)
		assert_int_equal(skv_pause_start(&service->pause, &env.err), SKV_OK);
}

void close_api(void)
{
	skv_request_destroy(&call);
	skv_workers_stop(&service->workers);
	skv_service_destroy(service);
	skv_hf3fs_api_destroy(api);
	memset(&call, 0, sizeof call);
}

int open_all(void **state)
{
	const struct skv_hf3fs_api_options o = options();

	(void)state;
	env_quiet();
	env_init(&env);
	env.o.grace_ms = 1000;
	env_open(&env);
	open_api(&o);
	return 0;
}

int close_all(void **state)
{
	(void)state;
	close_api();
	env_shutdown(&env);
	env_destroy(&env);
	return 0;
}

void change(const struct skv_hf3fs_api_options *o)
{
	close_api();
	open_api(o);
}

void go_strict(void)
{
	struct skv_hf3fs_api_options o = options();

	o.strict_upstream = true;
	change(&o);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void on_done(void *ctx, int rc)
{
	(void)ctx;
	completed = rc;
}

bool run_job(void)
{
	return skv_workers_run_next(&service->workers);
}

const char *ask_n(const char *path, const char *body, size_t n)
{
	const struct skv_apis apis = { .v = { api }, .n = 1, .planes = SKV_PLANE_ALL };
	char cause[SKV_MESSAGE_MAX];
	const struct skv_api *whose;
	int rc;

	skv_request_destroy(&call);
	skv_request_init(&call, service, WIRE_HTTP);
	call.path = path;
	rc = skv_route_find(&apis, body ? "POST" : "GET", path, &whose, &call.route, call.param,
			    &call.err);
	if (skv_request_open(&call, whose, &(struct skv_head){ .content_type = NULL }) != SKV_OK)
		rc = SKV_E_NOMEM;
	if (rc == SKV_OK)
		rc = skv_request_authorize(&call, authorization, NULL);
	call.body = body ? body : "";
	call.n_body = n;
	call.done = (struct skv_done){ on_done, NULL };
	completed = 1;
	if (rc == SKV_OK)
		rc = skv_request_run(&call);
	while (rc == SKV_PENDING && completed == 1)
		if (!run_job())
			skv_cluster_tick(env.cluster);
	call.status = rc == SKV_PENDING ? completed : rc;
	rc = skv_request_finish(&call, cause);
	status = rc != SKV_OK ? call.answer : call.http ? call.http : 200;
	skv_put_u8(&call.out, 0);
	call.out.len--;
	skv_request_count(&call, status);
	return call.fixed ? call.fixed : (const char *)call.out.data;
}

const char *ask(const char *path, const char *body)
{
	return ask_n(path, body, body ? strlen(body) : 0);
}

void expect(const char *path, const char *body, unsigned code, const char *answer)
{
	const char *got = ask(path, body);

	if (status != code || strcmp(got, answer) != 0)
		fail_msg("%s %s: %u %s, not %u %s", path, body, status, got, code, answer);
}

void expect_in(const char *path, const char *body, unsigned code, const char *part)
{
	const char *got = ask(path, body);

	if (status != code || !strstr(got, part))
		fail_msg("%s %s: %u %s, not %u with %s", path, body, status, got, code, part);
}

uint64_t counted(enum hf3fs_counter which)
{
	return atomic_load(&((struct pages *)api->ctx)->counters[which]);
}
