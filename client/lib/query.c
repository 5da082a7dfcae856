/*
 * query.c - match, lookup, delete. No state; any thread.
 *
 * An answer is believed only as far as it fits the question: counts and indices are checked here,
 * so that nothing behind it has to.
 */
#include "client.h"
#include "paths.h"

#include <stdio.h>
#include <string.h>

static int bad_answer(struct kvb_error *err, const char *op)
{
	return kvb_fail(err, KVB_E_INTERNAL, NULL,
			"%s: the manager's answer does not fit the question", op);
}

/* ---- match ----------------------------------------------------------------------------------- */

static int match(struct kvblock *kv, const struct kvb_match_req *req,
		 const struct kvblock_keys *keys, uint32_t *matched, struct kvb_arena *a,
		 struct kvb_error *err)
{
	struct kvb_v1_in in = { .arena = a };
	struct kvb_key_input input;
	struct kvb_match_res res = { 0 };
	struct kvb_buf body = { 0 };
	struct kvb_answer answer = { 0 };
	struct kvb_call c = {
		.op = "match", .method = "POST", .path = KVB_PATH_MATCH, .body = &body
	};
	int rc = kvb_keys_input(keys, "keys", a, &input, err);

	if (rc != KVB_OK)
		return rc;
	do {
		c.codec = kv->codec;
		kvb_buf_clear(&body);
		c.codec->write_match_req(&body, req, &input);
		rc = kvb_call_do(kv, &c, &answer, err);
	} while (kvb_call_again(kv, &answer));
	if (rc == KVB_OK)
		rc = answer.codec->read_match_res(&in, (const char *)answer.body.data,
						 answer.body.len, &res, err);
	if (rc == KVB_OK && res.n_instances != req->n_instances)
		rc = bad_answer(err, c.op);
	for (uint32_t i = 0; rc == KVB_OK && i < res.n_instances; i++) {
		if (res.matched[i] > keys->n)
			rc = bad_answer(err, c.op);
		matched[i] = res.matched[i];
	}
	kvb_buf_destroy(&answer.body);
	kvb_buf_destroy(&body);
	return rc;
}

int kvblock_match(struct kvblock *kv, const char *const *instances, uint32_t n_instances,
		  const struct kvblock_keys *keys, uint32_t *matched, struct kvblock_error *err)
{
	struct kvb_match_req req = { .tenant = "",
				     .instances = instances,
				     .n_instances = n_instances };
	struct kvb_error e = { 0 };
	struct kvb_arena a;
	int rc = KVB_OK;

	if (n_instances < 1 || n_instances > KVB_MAX_INSTANCES_PER_MATCH)
		rc = kvb_fail(&e, KVB_E_INVALID, "instances", "1..%u instances",
			      KVB_MAX_INSTANCES_PER_MATCH);
	for (uint32_t i = 0; rc == KVB_OK && i < n_instances; i++)
		rc = kvb_name_check(instances[i], "instances", &e);
	if (rc == KVB_OK) {
		kvb_arena_init(&a);
		rc = match(kv, &req, keys, matched, &a, &e);
		kvb_arena_destroy(&a);
	}
	return kvb_result_fail(err, &e, rc);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static bool lookup_fits(const struct kvb_lookup_res *res, const struct kvb_lookup_req *req,
			uint32_t n_keys)
{
	if (res->n_keys != n_keys || res->matched > n_keys || res->n_specs < 1 ||
	    res->n_specs > KVB_MAX_SPECS || (req->n_specs && res->n_specs != req->n_specs))
		return false;
	for (uint32_t k = 0; k < n_keys; k++) {
		if (!res->hit[k])
			continue;
		for (uint32_t s = 0; s < res->n_specs; s++)
			if (res->loc[(size_t)k * res->n_specs + s].file >= res->files.n ||
			    res->loc[(size_t)k * res->n_specs + s].length == 0) /* nobody asked for parts of blocks */
				return false;
	}
	return true;
}

static int lookup_call(struct kvblock *kv, const struct kvb_lookup_req *req,
		       const struct kvb_key_input *keys, struct kvb_arena *a,
		       struct kvb_lookup_answer *out, struct kvb_error *err)
{
	struct kvb_v1_in in = { .arena = a };
	char path[KVB_PATH_MAX];
	struct kvb_buf body = { 0 };
	struct kvb_answer answer = { 0 };
	struct kvb_call c = { .op = "lookup", .method = "POST", .path = path, .body = &body };
	int rc;

	snprintf(path, sizeof path, KVB_PATH_LOOKUP, req->instance);
	do {
		c.codec = kv->codec;
		kvb_buf_clear(&body);
		c.codec->write_lookup_req(&body, req, keys);
		rc = kvb_call_do(kv, &c, &answer, err);
	} while (kvb_call_again(kv, &answer));
	if (rc == KVB_OK)
		rc = answer.codec->read_lookup_res(&in, (const char *)answer.body.data,
						 answer.body.len, &out->res, err);
	if (rc == KVB_OK && !lookup_fits(&out->res, req, keys->n))
		rc = bad_answer(err, c.op);
	out->valid_until_ms = answer.sent_ms + out->res.lease_ms;
	kvb_buf_destroy(&answer.body);
	kvb_buf_destroy(&body);
	return rc;
}

int kvb_query_lookup(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys,
		     const struct kvblock_lookup_options *o, struct kvb_arena *a,
		     struct kvb_lookup_answer *out, struct kvb_error *err)
{
	struct kvb_lookup_req req = { .tenant = "", .instance = instance, .mode = KVB_LOOKUP_PREFIX,
				      .lease_ms = KVB_LEASE_DEFAULT };
	struct kvb_key_input input;
	int rc = kvb_name_check(instance, "instance", err);

	memset(out, 0, sizeof *out);
	if (o) {
		req.mode = o->mode == KVBLOCK_BATCH ? KVB_LOOKUP_BATCH : KVB_LOOKUP_PREFIX;
		req.specs = o->specs;
		req.n_specs = o->n_specs;
		req.lease_ms = o->lease_ms;
	}
	if (rc == KVB_OK && req.n_specs > KVB_MAX_SPECS)
		rc = kvb_fail(err, KVB_E_INVALID, "specs", "at most %u specs", KVB_MAX_SPECS);
	if (rc == KVB_OK)
		rc = kvb_keys_input(keys, "keys", a, &input, err);
	return rc == KVB_OK ? lookup_call(kv, &req, &input, a, out, err) : rc;
}

/* ---- delete ---------------------------------------------------------------------------------- */

static int delete_blocks(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys,
			 struct kvb_arena *a, struct kvb_delete_res *res, struct kvb_error *err)
{
	struct kvb_v1_in in = { .arena = a };
	struct kvb_delete_req req = { .tenant = "", .instance = instance };
	char path[KVB_PATH_MAX];
	struct kvb_key_input input;
	struct kvb_buf body = { 0 };
	struct kvb_answer answer = { 0 };
	struct kvb_call c = { .op = "delete", .method = "POST", .path = path, .body = &body };
	int rc = kvb_name_check(instance, "instance", err);

	if (rc == KVB_OK)
		rc = kvb_keys_input(keys, "keys", a, &input, err);
	if (rc != KVB_OK)
		return rc;
	snprintf(path, sizeof path, KVB_PATH_DELETE, instance);
	do {
		c.codec = kv->codec;
		kvb_buf_clear(&body);
		c.codec->write_delete_req(&body, &req, &input);
		rc = kvb_call_do(kv, &c, &answer, err);
	} while (kvb_call_again(kv, &answer));
	if (rc == KVB_OK)
		rc = answer.codec->read_delete_res(&in, (const char *)answer.body.data,
						 answer.body.len, res, err);
	kvb_buf_destroy(&answer.body);
	kvb_buf_destroy(&body);
	return rc;
}

int kvblock_delete(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys,
		   uint32_t *deleted, struct kvblock_error *err)
{
	struct kvb_delete_res res = { 0 };
	struct kvb_error e = { 0 };
	struct kvb_arena a;
	int rc;

	kvb_arena_init(&a);
	rc = delete_blocks(kv, instance, keys, &a, &res, &e);
	kvb_arena_destroy(&a);
	if (rc == KVB_OK && deleted)
		*deleted = res.deleted;
	return kvb_result_fail(err, &e, rc);
}
