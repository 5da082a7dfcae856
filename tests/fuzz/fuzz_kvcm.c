/*
 * fuzz_kvcm.c - any bytes as the message of one of KVCM's meta calls, JSON or
 * binary, over a real core.
 *
 * First byte: the operation, and in its highest bit the form. The core has one instance with two
 * specs in two groups and some blocks, storages without bytes, and time that passes. Every call
 * must get an answer that the peer has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core_env.h"
#include "op_list.h"

#define RUNS 5000u /* then all begins anew */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct env env;
static struct kvcm *kvcm;
static struct skv_service *service;
static struct skv_request call;
static unsigned runs;
static int completed; /* 1: not yet */

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void on_done(void *ctx, int status)
{
	(void)ctx;
	completed = status;
}

static void run(const struct skv_route *route, enum metric_wire wire, const uint8_t *p, size_t n)
{
	char cause[SKV_MESSAGE_MAX];
	int rc;

	skv_request_init(&call, service, wire);
	call.route = route;
	must(skv_request_open(&call, kvcm_api(kvcm), &(struct skv_head){ .content_type = NULL }) ==
			     SKV_OK &&
		     skv_request_authorize(&call, NULL, NULL) == SKV_OK &&
		     call.api->message(&call, p, n) == SKV_OK,
	     "not let in");
	call.done = (struct skv_done){ on_done, NULL };
	call.dispatched = true;
	if (route->flags & (ROUTE_OWNED | ROUTE_HELD)) /* as skv_request_run does */
		skv_request_find(&call, SKV_TARGET_NONE, NULL, NULL);
	completed = 1;
	rc = route->run(&call);
	for (unsigned i = 0; rc == SKV_PENDING && completed == 1; i++) {
		must(i < 100000, "it never completes");
		env_advance(&env, 10);
	}
	call.status = rc == SKV_PENDING ? completed : rc;
	skv_request_finish(&call, cause);
}

static void run_text(const char *name, const char *text)
{
	const struct skv_api *api = kvcm_api(kvcm);
	size_t i = 0;

	while (strcmp(api->routes[i].name, name) != 0)
		i++;
	run(&api->routes[i], WIRE_HTTP, (const uint8_t *)text, strlen(text));
	must(call.status == SKV_OK, "what all begins with is refused");
	skv_request_destroy(&call);
}

static void begin(void)
{
	struct skv_service_options o;
	struct skv_api *apis[1];

	env_quiet();
	env_init(&env);
	env_open(&env);
	must(env_storage(&env, "s", 1 << 24, 1 << 20) == SKV_OK &&
		     env_group(&env, "g", 0, "s") == SKV_OK,
	     "no group");
	must(kvcm_create(&(struct kvcm_options){ .own = NULL }, &kvcm, &env.err) == SKV_OK,
	  "no API");
	skv_service_options_init(&o);
	apis[0] = kvcm_api(kvcm);
	o.apis = apis;
	o.n_apis = 1;
	must(skv_service_create(&o, &service, &env.err) == SKV_OK, "no service");
	service->cluster = env.cluster;
	run_text(
		"RegisterInstance",
		"{\"instance_id\":\"m\",\"instance_group\":\"g\",\"block_size\":2,"
		"\"default_query_type\":2,\"location_spec_infos\":[{\"name\":\"a\",\"size\":4096},"
		"{\"name\":\"b\",\"size\":512}],\"location_spec_groups\":[{\"name\":\"full\","
		"\"spec_names\":[\"a\"]},{\"name\":\"st\",\"spec_names\":[\"b\"]}],"
		"\"model_deployment\":{\"model_name\":\"x\",\"dtype\":\"y\"}}");
	run_text("StartWriteCache",
		 "{\"instance_id\":\"m\",\"block_keys\":[1,2,3],\"write_timeout_seconds\":9}");
}

static void end(void)
{
	skv_service_destroy(service);
	kvcm_destroy(kvcm);
	env_shutdown(&env);
	env_destroy(&env);
}

/* The answers that there are: a message whose header has a code, or that there was no message. */
static void check(enum metric_wire wire, bool failed)
{
	if (wire == WIRE_GRPC) {
		must(!failed || call.answer == 0 || call.answer == 3 || call.answer == 8,
		     "another gRPC status");
		return;
	}
	if (failed && call.answer == 400)
		must(call.fixed && strcmp(call.fixed, "{}") == 0, "400 without {}");
	else
		must((!failed || call.answer == 200) && (call.fixed || call.out.len > 20) &&
			     memcmp(call.fixed ? call.fixed : (const char *)call.out.data,
				    "{\"header\":{\"status\":", 20) == 0,
		     "an answer without a header");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct skv_api *api;
	enum metric_wire wire;
	size_t n_meta = 0;
	int status;

	if (size == 0)
		return 0;
	if (runs++ % RUNS == 0) {
		if (service)
			end();
		begin();
	}
	api = kvcm_api(kvcm);
	while (api->routes[n_meta].planes == SKV_PLANE_META)
		n_meta++;
	wire = data[0] & 0x80 ? WIRE_GRPC : WIRE_HTTP;
	n_meta = (data[0] & 0x7f) % n_meta;
	if (strcmp(api->routes[n_meta].name, "GetClusterInfo") == 0)
		return 0; /* asks for this manager's endpoint, which main knows */
	run(&api->routes[n_meta], wire, data + 1, size - 1);
	status = call.status;
	check(wire, status != SKV_OK);
	skv_request_destroy(&call);
	env_advance(&env, 100);
	return 0;
}
