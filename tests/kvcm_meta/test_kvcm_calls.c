/*
 * test_kvcm_calls.c - KVCM's operations as calls, without a transport: the table, a life over JSON
 * and binary, sessions with nothing to write, groups of specs, what a failed call answers.
 *
 * What clients see on the wire is in tests/kvcm, written by somebody who shares
 * no code with the server.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core_env.h"
#include "meta.h"

static struct env env;
static struct kvcm *kvcm;
static struct skv_service *service;
static struct skv_request call;
static int completed; /* 1: not yet */

static int open_all(void **state)
{
	struct skv_service_options o;
	struct skv_api *apis[1];

	(void)state;
	env_quiet();
	env_init(&env);
	env_open(&env);
	assert_int_equal(env_storage(&env, "s", 16 << 20, 1 << 20), SKV_OK);
	assert_int_equal(env_group(&env, "g", 0, "s"), SKV_OK);
	assert_int_equal(kvcm_create(&(struct kvcm_options){ .own = NULL }, &kvcm, &env.err),
			 SKV_OK);
	skv_service_options_init(&o);
	apis[0] = kvcm_api(kvcm);
	o.apis = apis;
	o.n_apis = 1;
	assert_int_equal(skv_service_create(&o, &service, &env.err), SKV_OK);
	service->cluster = env.cluster;
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	skv_request_destroy(&call);
	skv_service_destroy(service);
	kvcm_destroy(kvcm);
	env_shutdown(&env);
	env_destroy(&env);
	return 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void on_done(void *ctx, int status)
{
	(void)ctx;
	completed = status;
}

static const struct skv_route *route_of(const char *name)
{
	const struct skv_api *api = kvcm_api(kvcm);

	for (size_t i = 0; i < api->n_routes; i++)
		if (strcmp(api->routes[i].name, name) == 0)
			return &api->routes[i];
	fail_msg("no operation %s", name);
	return NULL;
}

/* Runs it to its answer, workers included. */
static void run(enum metric_wire wire, const char *name, const void *body, size_t n)
{
	char cause[SKV_MESSAGE_MAX];
	int rc;

	skv_request_destroy(&call);
	skv_request_init(&call, service, wire);
	call.route = route_of(name);
	assert_int_equal(skv_request_open(&call, kvcm_api(kvcm),
					  &(struct skv_head){ .content_type = NULL }), SKV_OK);
	assert_int_equal(skv_request_authorize(&call, NULL, NULL), SKV_OK);
	assert_int_equal(call.api->message(&call, body, n), SKV_OK);
	call.done = (struct skv_done){ on_done, NULL };
	completed = 1;
	call.dispatched = true;
	rc = call.route->run(&call); /* here, whatever the flags */
	while (rc == SKV_PENDING && completed == 1)
		skv_cluster_tick(env.cluster);
	call.status = rc == SKV_PENDING ? completed : rc;
	skv_request_finish(&call, cause);
	skv_put_u8(&call.out, 0);
	call.out.len--;
	skv_request_count(&call, 200);
}

static const char *ask(const char *name, const char *body)
{
	run(WIRE_HTTP, name, body, strlen(body));
	return call.fixed ? call.fixed : (const char *)call.out.data;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

static void expect(const char *name, const char *body, const char *part)
{
	has(ask(name, body), part);
}

/* The text between `before` and the next quote. */
static const char *cut(const char *text, const char *before)
{
	static char out[128];
	const char *at = strstr(text, before);

	if (!at)
		fail_msg("'%s' is not in: %s", before, text);
	at += strlen(before);
	snprintf(out, sizeof out, "%.*s", (int)strcspn(at, "\""), at);
	return out;
}

#define INSTANCE "{\"instance_id\":\"m\","

static void register_m(const char *more)
{
	char body[512];

	snprintf(
		body, sizeof body,
		INSTANCE
		"\"instance_group\":\"g\",\"block_size\":2,"
		"\"location_spec_infos\":[{\"name\":\"a\",\"size\":4096},{\"name\":\"b\","
		"\"size\":\"8192\"}],\"model_deployment\":{\"model_name\":\"x\","
		"\"dtype\":\"y\"}%s}",
		more);
	expect("RegisterInstance", body, "\"code\":\"OK\"");
	has((char *)call.out.data, "\"storage_configs\":\"[");
}

static void finish(const char *session, const char *mask, const char *part)
{
	char body[256];

	snprintf(body, sizeof body, INSTANCE "\"write_session_id\":\"%s\",\"success_blocks\":%s}",
		 session, mask);
	expect("FinishWriteCache", body, part);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Every row is a method of its service, with its messages, and every method has a row. */
static void test_rows_are_the_services(void **state)
{
	const ProtobufCServiceDescriptor *services[] = { &kvcm_meta__meta_service__descriptor,
							 &kvcm_admin__admin_service__descriptor,
							 &kvcm_debug__debug_service__descriptor };
	const unsigned planes[] = { SKV_PLANE_META, SKV_PLANE_ADMIN, SKV_PLANE_DEBUG };
	const struct skv_api *api = kvcm_api(kvcm);
	size_t found = 0, methods = 0;

	(void)state;
	for (size_t s = 0; s < 3; s++)
		methods += services[s]->n_methods;
	for (size_t i = 0; i < api->n_routes; i++) {
		const struct skv_route *r = &api->routes[i];
		const struct kvcm_op *op = r->own;
		const ProtobufCMethodDescriptor *m = NULL;

		for (size_t s = 0; s < 3 && op; s++)
			if (r->planes == planes[s])
				m = protobuf_c_service_descriptor_get_method_by_name(services[s],
										     r->name);
		if (!op)
			continue; /* a page */
		if (!m || m->input != op->request || m->output != op->response)
			fail_msg("%s is not what its service says", r->name);
		assert_string_equal(strrchr(r->grpc, '/') + 1, r->name);
		assert_string_equal(r->pattern + 6, r->name + 1); /* /api/xYZ of XYZ */
		assert_int_equal(r->pattern[5], r->name[0] | 0x20);
		if (r->planes != SKV_PLANE_META)
			assert_int_equal(r->role, ROLE_ADMIN);
		found++;
	}
	assert_int_equal(found, methods);
}

/* ---- a life ---------------------------------------------------------------------------------- */

static void test_life(void **state)
{
	char session[128];
	const char *text;

	(void)state;
	register_m("");
	text = ask("StartWriteCache",
		   INSTANCE "\"block_keys\":[1,-2,1,\"3\"],\"write_timeout_seconds\":30}");
	/* 1 is repeated */
	has(text, "\"block_mask\":{\"bool_masks\":{\"values\":[false,false,true,false]}}");
	has(text, "\"status\":\"CLS_WRITING\"");
	snprintf(session, sizeof session, "%s", cut(text, "\"write_session_id\":\""));
	finish(session, "{\"offset\":4}", "\"code\":\"INVALID_ARGUMENT\"");
	finish(session, "{\"offset\":2}", "\"code\":\"OK\"");
	finish(session, "{\"offset\":2}", "\"code\":\"OK\"");
	expect("GetCacheLocationLen", INSTANCE "\"query_type\":2,\"block_keys\":[1,-2,3]}",
	       "\"cache_location_len\":\"2\"");
	text = ask("GetCacheLocation",
		   INSTANCE "\"query_type\":\"QT_BATCH_GET\",\"block_keys\":[3,1]}");
	has(text, "\"locations\":[{\"type\":\"ST_UNSPECIFIED\",\"spec_size\":2,");
	has(text, "\"status\":\"CLS_SERVING\"");
	expect("RemoveCache", INSTANCE "\"block_keys\":[1,-2],\"block_mask\":{\"offset\":1}}",
	       "removed");
	text = ask("GetCacheMeta", INSTANCE "\"block_keys\":[1,-2]}");
	has(text, "\\\"status\\\":\\\"CLS_SERVING\\\"}\",\"{\\\"id\\\":");
	expect("TrimCache", INSTANCE "\"strategy\":\"TS_REMOVE_ALL_META\"}", "\"code\":\"OK\"");
	expect("GetCacheLocationLen", INSTANCE "\"query_type\":2,\"block_keys\":[1]}",
	       "\"cache_location_len\":\"0\"");
}

/* Keys that are tokens' are the same keys. */
static void test_tokens(void **state)
{
	(void)state;
	register_m("");
	has(ask("StartWriteCache",
		INSTANCE "\"token_ids\":[1,2,3,4,5],\"write_timeout_seconds\":30}"),
	    "{\"offset\":0}");
	expect("StartWriteCache",
	       INSTANCE
	       "\"block_keys\":[-8366447769517741626,455111481605203084],"
	       "\"write_timeout_seconds\":30}",
	       "\"block_mask\":{\"offset\":2},\"locations\":[]");
	expect("StartWriteCache", INSTANCE "\"token_ids\":[1],\"write_timeout_seconds\":30}",
	       "\"block_mask\":{\"offset\":0},\"locations\":[]");
}

static void test_groups_of_specs(void **state)
{
	static const char groups[] =
		",\"location_spec_groups\":[{\"name\":\"full1\",\"spec_names\":[\"a\"]},"
		"{\"name\":\"state\",\"spec_names\":[\"b\"]}]";
	const char *text;

	(void)state;
	register_m(groups);
	expect("StartWriteCache",
	       INSTANCE "\"block_keys\":[1,2],\"location_spec_group_names\":[\"full1\"]}",
	       "\"code\":\"INVALID_ARGUMENT\"");
	expect("StartWriteCache",
	       INSTANCE "\"block_keys\":[1],\"location_spec_group_names\":[\"none\"]}",
	       "\"code\":\"INVALID_ARGUMENT\"");
	text = ask("StartWriteCache",
		   INSTANCE "\"block_keys\":[1,2],\"write_timeout_seconds\":30,"
			    "\"location_spec_group_names\":[\"full1\",\"full1\"]}");
	finish(cut(text, "\"write_session_id\":\""), "{\"offset\":2}", "\"code\":\"OK\"");
	text = ask("StartWriteCache", INSTANCE "\"block_keys\":[2],\"write_timeout_seconds\":30,"
					       "\"location_spec_group_names\":[\"state\"]}");
	has(text, "\"spec_size\":1,\"location_specs\":[{\"name\":\"b\"");
	expect("GetCacheLocationLen", INSTANCE "\"query_type\":4,\"block_keys\":[1,2]}",
	       "\"cache_location_len\":\"0\"");
	text = ask("StartWriteCache", INSTANCE "\"block_keys\":[1],\"write_timeout_seconds\":30}");
	finish(cut(text, "\"write_session_id\":\""), "{\"offset\":1}", "\"code\":\"OK\"");
	expect("GetCacheLocationLen", INSTANCE "\"query_type\":4,\"block_keys\":[1,2]}",
	       "\"cache_location_len\":\"1\"");
}

/* ---- sessions with nothing to write ---------------------------------------------------------- */

static void test_empty_sessions(void **state)
{
	char session[128];

	(void)state;
	register_m("");
	ask("StartWriteCache", INSTANCE "\"block_keys\":[1],\"write_timeout_seconds\":30}");
	snprintf(session, sizeof session, "%s",
		 cut(ask("StartWriteCache", INSTANCE "\"block_keys\":[1]}"),
		     "\"write_session_id\":\""));
	assert_int_equal(strlen(session), SKV_SESSION_ID_HEX);
	finish(session, "{\"offset\":1}", "\"code\":\"INVALID_ARGUMENT\"");
	finish(session, "{\"bool_masks\":{\"values\":[true]}}", "\"code\":\"INVALID_ARGUMENT\"");
	/* as vLLM's connector does */
	finish(session, "{\"bool_masks\":{\"offset\":0}}", "\"code\":\"OK\"");
	finish(session, "{}", "\"code\":\"OK\"");
	session[3] = session[3] == '0' ? '1' : '0'; /* of another time */
	finish(session, "{}", "\"code\":\"INTERNAL_ERROR\"");
	finish("0123456789abcdef0123456789abcdef", "{}", "\"code\":\"INTERNAL_ERROR\"");
}

/* An id made by ourselves tells its time: what is too old is over. */
static void test_empty_sessions_end(void **state)
{
	struct kvcm_request *k;
	char mine[SKV_SESSION_ID_HEX + 1];

	(void)state;
	register_m("");
	ask("GetInstanceInfo", INSTANCE "\"trace_id\":\"t\"}");
	k = call.state;
	kvcm_empty_make(k, "m", mine);
	assert_int_equal(kvcm_empty_check(k, "m", mine), KVCM_EMPTY_OPEN);
	assert_int_equal(kvcm_empty_check(k, "n", mine), KVCM_EMPTY_NONE);
	assert_int_equal(kvcm_empty_check(k, "m", "x"), KVCM_EMPTY_NONE);
	snprintf(call.caller.tenant, sizeof call.caller.tenant, "other");
	assert_int_equal(kvcm_empty_check(k, "m", mine), KVCM_EMPTY_NONE);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void test_failures(void **state)
{
	(void)state;
	expect("GetCacheLocation", "{\"instance_id\":\"gone\",\"trace_id\":\"t\"}",
	       "{\"header\":{\"status\":{\"code\":\"INSTANCE_NOT_EXIST\",\"message\":\"get "
	       "GetCacheLocation metrics collector failed\"},\"request_id\":\"\","
	       "\"tracer_result\":\"\"},\"locations\":[]");
	assert_int_equal(call.answer, 200);
	register_m("");
	expect("GetCacheLocation", INSTANCE "\"trace_id\":\"t\"}",
	       "{GetCacheLocation: {block_keys}}\"},\"request_id\":\"t_");
	expect("GetCacheLocation", INSTANCE "\"block_keys\":[1]}", "{query_type}");
	expect("GetCacheLocation", INSTANCE "\"block_keys\":[1]", "{}");
	assert_int_equal(call.answer, 400);
	assert_null(call.type);
	expect("GetCacheLocation", "", "{}");
	assert_int_equal(call.answer, 400);
	expect("StartWriteCache", INSTANCE "\"block_keys\":[1],\"min_replica_count\":2}",
	       "\"code\":\"UNSUPPORTED\"");
	expect("ReportEvent", INSTANCE "\"events\":[]}",
	       "\"item_results\":[],\"committed_snapshot_version\":\"\"");
	skv_cluster_shutdown(env.cluster);
	expect("GetCacheLocation", "{\"instance_id\":\"gone\"}",
	       "\"code\":\"SERVER_NOT_LEADER\",\"message\":\"Server is not leader\"");
	assert_true(call.failed);
}

static void test_faults(void **state)
{
	const struct kvcm_fault fault = { .api = "GetCacheLocation" };

	(void)state;
	register_m("");
	assert_int_equal(kvcm_faults_inject(&kvcm->faults, &fault, &env.err), SKV_OK);
	expect("GetCacheLocation", INSTANCE "\"trace_id\":\"t\"}",
	       "GetCacheLocation fail due to fault injection");
	expect("GetCacheLocation", "{\"instance_id\":\"gone\"}", "INSTANCE_NOT_EXIST");
}

/* ---- binary ---------------------------------------------------------------------------------- */

static void test_binary(void **state)
{
	KvcmMeta__GetCacheLocationLenResponse *res;
	const char message[] = "\x12\x01m\x18\x02\x22\x01\x01"; /* instance m, prefix, key 1 */

	(void)state;
	register_m("");
	run(WIRE_GRPC, "GetCacheLocationLen", message, sizeof message - 1);
	assert_int_equal(call.status, SKV_OK);
	res = kvcm_meta__get_cache_location_len_response__unpack(NULL, call.out.len, call.out.data);
	assert_non_null(res);
	assert_int_equal(res->header->status->code, KVCM_META__ERROR_CODE__OK);
	assert_int_equal(res->cache_location_len, 0);
	kvcm_meta__get_cache_location_len_response__free_unpacked(res, NULL);
	/* An error of the API is an answer, bytes that are no message are not. */
	run(WIRE_GRPC, "GetCacheLocationLen", "", 0);
	assert_int_equal(call.answer, 0);
	assert_true(call.failed && call.out.len > 0);
	run(WIRE_GRPC, "GetCacheLocationLen", "\x12\x09m", 3);
	assert_int_equal(call.answer, 3);
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_rows_are_the_services), T(test_life),    T(test_tokens),
		T(test_groups_of_specs),
		T(test_empty_sessions), T(test_empty_sessions_end),     T(test_failures),
		T(test_faults), T(test_binary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
