/*
 * fuzz_pages.c - any bytes as the body of one of SGLang's or vLLM's calls, in both
 * modes, over a real core.
 *
 * First byte: the operation, and in its highest bit the mode. The core has a small space with some
 * pages stored, some reserved, one too many, and time that passes. Every answer must be one that
 * there is, with an element for each key; from time to time all slots are counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_env.h"
#include "body.h"

#define RUNS 2000u /* then all begins anew */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Names of blocks hang on chunks, which are no memory of malloc: while the
 * core lives they look lost. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

static struct env env;
static struct skv_api *apis[2]; /* by default, strict */
static struct skv_service *service;
static struct skv_request call;
static unsigned ops[32], n_ops; /* numbers of routes: SGLang's, then vLLM's, without tenants */
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

/* Returns the status of the answer. */
static unsigned run(const struct skv_api *api, unsigned op, const uint8_t *p, size_t n)
{
	char cause[SKV_MESSAGE_MAX];
	int rc;

	skv_request_init(&call, service, WIRE_HTTP);
	call.route = &api->routes[op];
	call.path = "/0/x";
	must(skv_route_param(&call.param[0], "rank", "0", 1, &env.err) == SKV_OK, "no rank");
	must(skv_request_open(&call, api, &(struct skv_head){ .content_type = NULL }) == SKV_OK &&
		     skv_request_authorize(&call, NULL, NULL) == SKV_OK,
	     "not let in");
	call.body = n ? (const char *)p : "";
	call.n_body = n;
	call.done = (struct skv_done){ on_done, NULL };
	completed = 1;
	rc = skv_request_run(&call);
	for (unsigned i = 0; rc == SKV_PENDING && completed == 1; i++) {
		must(i < 100000, "it never completes");
		if (!skv_workers_run_next(&service->workers))
			env_advance(&env, 10);
	}
	call.status = rc == SKV_PENDING ? completed : rc;
	rc = skv_request_finish(&call, cause);
	return rc != SKV_OK ? call.answer : call.http ? call.http : 200;
}

/* `answer`: a part of the answer. */
static void run_text(const char *name, const char *text, const char *answer)
{
	unsigned i = 0;

	while (strcmp(apis[0]->routes[i].name, name) != 0)
		i++;
	must(run(apis[0], i, (const uint8_t *)text, strlen(text)) < 300,
	     "what all begins with is refused");
	skv_put_u8(&call.out, 0);
	text = call.fixed ? call.fixed : (const char *)call.out.data;
	must(strstr(text, answer) != NULL, text);
	skv_request_destroy(&call);
}

static void list_ops(void)
{
	n_ops = 0;
	for (int own = 1; own >= 0; own--) {
		for (unsigned i = 0; i < apis[0]->n_routes; i++) {
			const struct skv_route *r = &apis[0]->routes[i];

			if (r->own && !strstr(r->pattern, "{tenant}") &&
			    (strncmp(r->pattern, "/{rank}/", 8) == 0) == own)
				ops[n_ops++] = i;
		}
	}
	must(n_ops == 13, "another number of operations");
}

static void begin(void)
{
	struct skv_hf3fs_api_options po = { .lease_ms = 500, .reserve_ms = 1000, .grace_ms = 500 };
	struct skv_service_options o;

	env_quiet();
	env_init(&env);
	env_open(&env);
	must(skv_hf3fs_api_create(&po, &apis[0], &env.err) == SKV_OK, "no API");
	po.strict_upstream = true;
	must(skv_hf3fs_api_create(&po, &apis[1], &env.err) == SKV_OK, "no API");
	skv_service_options_init(&o);
	o.apis = apis;
	o.n_apis = 2;
	must(skv_service_create(&o, &service, &env.err) == SKV_OK, "no service");
	service->cluster = env.cluster;
	skv_workers_init(&service->workers, WORKERS_QUEUE);
	list_ops();
	run_text("initialize", "{\"num_pages\":6}", "");
	run_text("vllm_initialize", "{\"num_pages\":3}", "");
	run_text("reserve", "{\"keys\":[[\"a\",\"\"],[\"b\",\"\"],[\"c\",null],[1,\"\"]]}",
		 "[false,0],[false,1],[false,2],[false,3]");
	run_text(
		"confirm",
		"{\"written_keys_to_confirm\":[[\"a\",0],[\"b\",1],[\"c\",2]],"
		"\"pages_to_release\":[]}", "");
	run_text("exists", "{\"keys\":[\"a\",\"b\",\"d\"]}", "[true,true,false]");
}

static void end(void)
{
	env_check(&env);
	skv_workers_stop(&service->workers);
	skv_service_destroy(service);
	skv_hf3fs_api_destroy(apis[0]);
	skv_hf3fs_api_destroy(apis[1]);
	env_shutdown(&env);
	env_destroy(&env);
}

/* An element for each key, and nothing of one that is not there. An answer repeats keys of its
 * request, so the limits of requests apply. */
static void check_list(void)
{
	const struct hf3fs_request *k = call.state;
	const struct skv_json_node *list;
	struct skv_json_doc doc;

	must(skv_json_parse(&doc, &call.arena, (const char *)call.out.data, call.out.len,
			    &body_limits),
	     "the answer is no JSON");
	list = skv_json_get(doc.root, k->op->list, strlen(k->op->list));
	must(list && list->type == SKV_JSON_ARRAY && (list->n == k->part.total || k->op->rest),
	     "not as many elements as keys");
}

static void check(unsigned status, bool strict)
{
	const struct hf3fs_request *k = call.state;

	if (status == 200 && k->op->list) {
		check_list();
	} else if (status == 200) {
		must(k->op->say && call.out.len > 2, "200 without an answer");
	} else if (status == 204) {
		must(!k->op->list && call.out.len == 0 && !call.fixed, "204 with a body");
	} else if (status == 500) {
		must(strict && (call.fixed ? strcmp(call.fixed, "Internal Server Error") == 0
					   : call.out.len > 12),
		     "500");
	} else {
		must(status == 400 || status == 422 || (strict && status == 404), "another status");
		must(!strict || status == 404 || k->op->flags & HF3FS_VLLM, "upstream raises here");
		must(call.out.len > 12 && memcmp(call.out.data, "{\"detail\":\"", 11) == 0,
		     "no detail");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool strict;
	unsigned op;

	if (size == 0)
		return 0;
	if (runs++ % RUNS == 0) {
		if (service)
			end();
		begin();
	}
	strict = data[0] & 0x80;
	op = (data[0] & 0x7f) % n_ops;
	check(run(apis[strict], ops[op], data + 1, size - 1), strict);
	skv_request_destroy(&call);
	env_advance(&env, 20);
	return 0;
}
