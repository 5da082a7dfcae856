/*
 * query.c - match, lookup, delete. No state; any thread.
 *
 * An answer is believed only as far as it fits the question: counts and indices are checked here,
 * so that nothing behind it has to.
 */
#include "client.h"

#include <stdio.h>
#include <string.h>

/* ---- match ----------------------------------------------------------------------------------- */

static int match(struct slabkv *kv, const struct skv_match_req *req,
		 const struct slabkv_keys *keys, uint32_t *matched, struct skv_arena *a,
		 struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	struct skv_key_input input;
	struct skv_match_res res = { 0 };
	struct skv_exchange x;
	char about[SKV_PATH_MAX];
	int rc = skv_keys_input(keys, "keys", a, &input, err);

	if (rc != SKV_OK)
		return rc;
	snprintf(about, sizeof about, "/v1/instances/%s", SKV_SEGMENT(req->instances[0]));
	skv_exchange_begin(&x, "match", "POST", "/v1/match");
	x.call.about = about;
	skv_pb_write_match_req(&x.body, req, &input);
	rc = skv_exchange_do(kv, &x, err);
	if (rc == SKV_OK)
		rc = skv_pb_read_match_res(&in, SKV_ANSWER(x), &res, err);
	if (rc == SKV_OK && res.n_instances != req->n_instances)
		rc = skv_bad_answer(&x, err);
	for (uint32_t i = 0; rc == SKV_OK && i < res.n_instances; i++) {
		if (res.matched[i] > keys->n)
			rc = skv_bad_answer(&x, err);
		matched[i] = res.matched[i];
	}
	skv_exchange_end(&x);
	return rc;
}

int slabkv_match(struct slabkv *kv, const char *const *instances, uint32_t n_instances,
		  const struct slabkv_keys *keys, uint32_t *matched, struct slabkv_error *err)
{
	struct skv_match_req req = { .tenant = "",
				     .instances = instances,
				     .n_instances = n_instances };
	struct skv_error e = { 0 };
	struct skv_arena a;
	int rc = skv_enter(kv, &e);

	if (rc == SKV_OK && (n_instances < 1 || n_instances > SKV_MAX_INSTANCES_PER_MATCH))
		rc = skv_fail(&e, SKV_E_INVALID, "instances", "1..%u instances",
			      SKV_MAX_INSTANCES_PER_MATCH);
	for (uint32_t i = 0; rc == SKV_OK && i < n_instances; i++)
		rc = skv_model_name_check(instances[i], "instances", &e);
	if (rc == SKV_OK) {
		skv_arena_init(&a);
		rc = match(kv, &req, keys, matched, &a, &e);
		skv_arena_destroy(&a);
	}
	return skv_result_fail(err, &e, rc);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* A copy is proven by the checksum that its block has, too. */
static bool copy_fits(const struct skv_lookup_res *res, size_t i)
{
	const struct skv_location *loc = &res->loc[i], *copy = res->copy ? &res->copy[i] : NULL;

	return !copy || !copy->length ||
	       (copy->file < res->files.n && copy->length == loc->length && copy->has_checksum &&
		loc->has_checksum && copy->checksum == loc->checksum);
}

static bool lookup_fits(const struct skv_lookup_res *res, const struct skv_lookup_req *req,
			uint32_t n_keys)
{
	if (res->n_keys != n_keys || res->matched > n_keys || res->n_specs < 1 ||
	    res->n_specs > SKV_MAX_SPECS || (req->n_specs && res->n_specs != req->n_specs))
		return false;
	for (uint32_t k = 0; k < n_keys; k++) {
		if (!res->hit[k])
			continue;
		for (uint32_t s = 0; s < res->n_specs; s++)
			if (res->loc[(size_t)k * res->n_specs + s].file >= res->files.n ||
			    res->loc[(size_t)k * res->n_specs + s].length == 0 ||
			    /* no caller asked for parts of blocks */
			    !copy_fits(res, (size_t)k * res->n_specs + s))
				return false;
	}
	return true;
}

static int lookup_call(struct slabkv *kv, const struct skv_lookup_req *req,
		       const struct skv_key_input *keys, struct skv_arena *a,
		       struct skv_lookup_answer *out, struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	struct skv_exchange x;
	uint32_t *order = skv_arena_calloc(a, SKV_MAX_SPECS, sizeof *order);
	int rc;

	if (!order)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_exchange_begin(&x, "lookup", "POST", "/v1/instances/%s/lookup",
			   SKV_SEGMENT(req->instance));
	skv_pb_write_lookup_req(&x.body, req, keys);
	rc = skv_exchange_do(kv, &x, err);
	if (rc == SKV_OK)
		rc = skv_pb_read_lookup_res(&in, SKV_ANSWER(x), &out->res, err);
	if (rc == SKV_OK && (!lookup_fits(&out->res, req, keys->n) ||
			     !skv_specs_order(out->res.specs, out->res.n_specs, req->specs,
					      req->n_specs, order, &out->buffer)))
		rc = skv_bad_answer(&x, err);
	out->valid_until_ms = x.answer.sent_ms + out->res.lease_ms;
	skv_exchange_end(&x);
	return rc;
}

static enum skv_lookup_mode mode_of(enum slabkv_mode m)
{
	static const enum skv_lookup_mode modes[] = { [SLABKV_PREFIX] = SKV_LOOKUP_PREFIX,
						      [SLABKV_BATCH] = SKV_LOOKUP_BATCH,
						      [SLABKV_WINDOW] = SKV_LOOKUP_WINDOW,
						      [SLABKV_TRAILING] = SKV_LOOKUP_TRAILING };

	return (unsigned)m < sizeof modes / sizeof modes[0] ? modes[m] : SKV_LOOKUP_PREFIX;
}

int skv_query_lookup(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		     const struct slabkv_lookup_options *o, struct skv_arena *a,
		     struct skv_lookup_answer *out, struct skv_error *err)
{
	struct skv_lookup_req req = { .tenant = "", .instance = instance, .mode = SKV_LOOKUP_PREFIX,
				      .lease_ms = SKV_LEASE_DEFAULT };
	struct skv_key_input input;
	int rc = skv_model_name_check(instance, "instance", err);

	memset(out, 0, sizeof *out);
	if (rc == SKV_OK && o && !SKV_HAS(o, window))
		rc = skv_size_refuse(err, "sizeof(struct slabkv_lookup_options)");
	if (rc == SKV_OK && o) {
		req.mode = mode_of(o->mode);
		req.window = o->mode == SLABKV_WINDOW ? o->window : 0;
		req.specs = o->specs;
		req.n_specs = o->n_specs;
		req.lease_ms = o->lease_ms;
	}
	if (rc == SKV_OK && req.n_specs > SKV_MAX_SPECS)
		rc = skv_fail(err, SKV_E_INVALID, "specs", "at most %u specs", SKV_MAX_SPECS);
	if (rc == SKV_OK && req.window > SKV_MAX_KEYS)
		rc = skv_fail(err, SKV_E_INVALID, "window", "1 to the number of keys");
	if (rc == SKV_OK)
		rc = skv_keys_input(keys, "keys", a, &input, err);
	return rc == SKV_OK ? lookup_call(kv, &req, &input, a, out, err) : rc;
}

int skv_blocks_exist(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		     struct skv_arena *a, const bool **hit, struct skv_error *err)
{
	static const struct slabkv_lookup_options each = { .size = sizeof each,
							   .mode = SLABKV_BATCH };
	struct skv_lookup_answer answer;
	int rc = skv_query_lookup(kv, instance, keys, &each, a, &answer, err);

	if (rc == SKV_OK && skv_is_broken(kv, err))
		rc = SKV_E_INTERNAL;
	SKV_CHECK(rc != SKV_OK || answer.res.n_keys == keys->n);
	if (rc == SKV_OK)
		*hit = answer.res.hit;
	return rc;
}

/* ---- delete ---------------------------------------------------------------------------------- */

static int delete_blocks(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
			 struct skv_arena *a, struct skv_delete_res *res, struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	struct skv_delete_req req = { .tenant = "", .instance = instance };
	struct skv_key_input input;
	struct skv_exchange x;
	int rc = skv_model_name_check(instance, "instance", err);

	if (rc == SKV_OK)
		rc = skv_keys_input(keys, "keys", a, &input, err);
	if (rc != SKV_OK)
		return rc;
	skv_exchange_begin(&x, "delete", "POST", "/v1/instances/%s/delete", SKV_SEGMENT(instance));
	skv_pb_write_delete_req(&x.body, &req, &input);
	rc = skv_exchange_do(kv, &x, err);
	if (rc == SKV_OK)
		rc = skv_pb_read_delete_res(&in, SKV_ANSWER(x), res, err);
	skv_exchange_end(&x);
	return rc;
}

int skv_delete_blocks(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		      uint32_t *deleted, struct skv_error *err)
{
	struct skv_delete_res res = { 0 };
	struct skv_arena a;
	int rc;

	skv_arena_init(&a);
	rc = delete_blocks(kv, instance, keys, &a, &res, err);
	skv_arena_destroy(&a);
	if (rc == SKV_OK && deleted)
		*deleted = res.deleted + res.writing;
	return rc;
}

int slabkv_delete(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		   uint32_t *deleted, struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	int rc = skv_enter(kv, &e);

	if (rc == SKV_OK)
		rc = skv_delete_blocks(kv, instance, keys, deleted, &e);
	return skv_result_fail(err, &e, rc);
}
