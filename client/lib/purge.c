/*
 * purge.c - removes everything that is stored or being written for some instances, for new weights
 * or an erasure. Stateless; any thread.
 */
#include "client.h"

static const char *given(const char *s) { return s ? s : ""; }

static int purge_call(struct slabkv *kv, const struct skv_purge_req *req, struct skv_arena *a,
		      struct skv_purge_res *res, struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	struct skv_exchange x;
	int rc;

	skv_exchange_begin(&x, "purge", "POST", "/v1/purge");
	skv_pb_write_purge_req(&x.body, req);
	rc = skv_exchange_do(kv, &x, err);
	if (rc == SKV_OK)
		rc = skv_pb_read_purge_res(&in, SKV_ANSWER(x), res, err);
	skv_exchange_end(&x);
	return rc;
}

int slabkv_purge(struct slabkv *kv, const struct slabkv_purge *what, struct slabkv_purged *res,
		 struct slabkv_error *err)
{
	struct skv_purge_res r = { 0 };
	struct skv_error e = { 0 };
	struct skv_purge_req req;
	struct skv_arena a;
	int rc = skv_enter(kv, &e);

	skv_arena_init(&a);
	if (rc == SKV_OK && (!SKV_HAS(what, tenant) || (res && !SKV_HAS(res, sessions))))
		rc = skv_size_refuse(&e, "sizeof");
	if (rc == SKV_OK) {
		req = (struct skv_purge_req){ .tenant = "", .instances = what->instances,
					      .n_instances = what->n_instances,
					      .prefix = given(what->prefix),
					      .group = given(what->group),
					      .whose = given(what->tenant) };
		rc = purge_call(kv, &req, &a, &r, &e);
	}
	if (rc == SKV_OK && res) {
		res->instances = r.n_instances;
		res->blocks = r.blocks;
		res->sessions = r.sessions;
	}
	skv_arena_destroy(&a);
	return skv_result_fail(err, &e, rc);
}
