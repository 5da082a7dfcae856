/*
 * meta_replicate.c - replicateCache: requests copies of blocks in a storage of the fast tier.
 *
 * KVCM copies before it answers; here the answer reports the requests to movers, and the copy is
 * found when a mover has made it. A block is copied whole, from its own location: source_specs may
 * only name its specs. The outcome of an item is in its result; of a single one, as older clients
 * send it, in the header. No state.
 */
#include "meta.h"

#include <assert.h>
#include <string.h>

#define TARGET "target_node_id"

/* The items of the request, or the one that it is itself. */
struct replication {
	struct kvcm_request *k;
	const char *instance;
	const struct skv_instance_spec *spec;
	KvcmMeta__ReplicateCacheItem **items;
	KvcmMeta__ReplicateCacheItem one, *only;
	size_t n;
	struct skv_key *keys;                  /* [n] */
	KvcmMeta__ReplicateCacheResult **result; /* [n] */
	uint32_t count[SKV_WANT_OUTCOMES];
};

static bool has_spec(const struct skv_instance_spec *spec, const char *name)
{
	for (uint32_t i = 0; i < spec->n_specs; i++)
		if (strcmp(spec->specs[i].name, name) == 0)
			return true;
	return false;
}

static const char *wrong_field(const struct replication *r,
			       const KvcmMeta__ReplicateCacheItem *item)
{
	if (!*item->target_node_id)
		return TARGET;
	for (size_t i = 0; i < item->n_source_specs; i++)
		if (!has_spec(r->spec, item->source_specs[i]->spec_name))
			return "source_specs";
	return NULL;
}

/* An item that cannot be: of several only that one. */
static int refuse(struct replication *r, size_t i, int rc, int code)
{
	if (r->items == &r->only)
		return kvcm_with_code(r->k, rc, code);
	r->result[i]->code = (KvcmMeta__ErrorCode)code;
	skv_error_clear(&r->k->c->err);
	r->k->message = NULL;
	return SKV_OK;
}

/* Items i..i+n-1, which have one target. */
static int want(struct replication *r, size_t i, uint32_t n)
{
	struct skv_want_req req = { .tenant = r->k->c->caller.tenant, .instance = r->instance,
				    .from = "", .to = r->items[i]->target_node_id,
				    .keys = r->keys + i, .n_keys = n };
	struct skv_want_res res;
	int rc = kvcm_want(r->k, &req, "", TARGET, &res);

	if (rc == SKV_E_INVALID || rc == SKV_E_UNSUPPORTED || rc == SKV_E_UNAVAILABLE) {
		const int code = kvcm_code(rc);

		for (uint32_t j = 1; j < n; j++) /* refuse reports it once, for item i */
			r->result[i + j]->code = (KvcmMeta__ErrorCode)code;
		return refuse(r, i, rc, code);
	}
	for (uint32_t j = 0; rc == SKV_OK && j < n; j++) {
		const enum skv_want_outcome is = res.outcome[j];

		r->result[i + j]->code = (KvcmMeta__ErrorCode)kvcm_want_code(is);
		r->result[i + j]->already_exists = is == SKV_WANT_THERE;
		r->count[is]++;
	}
	return rc;
}

/* How many items from i on are alike. */
static uint32_t alike(const struct replication *r, size_t i)
{
	size_t n = 1;

	while (i + n < r->n && n < SKV_MAX_KEYS && !wrong_field(r, r->items[i + n]) &&
	       strcmp(r->items[i + n]->target_node_id, r->items[i]->target_node_id) == 0)
		n++;
	return (uint32_t)n;
}

static int want_all(struct replication *r)
{
	int rc = SKV_OK;

	for (size_t i = 0, n; rc == SKV_OK && i < r->n; i += n) {
		const char *wrong = wrong_field(r, r->items[i]);

		n = wrong ? 1 : alike(r, i);
		rc = wrong ? refuse(r, i, kvcm_missing(r->k, wrong),
				    KVCM_META__ERROR_CODE__INVALID_ARGUMENT)
			   : want(r, i, (uint32_t)n);
	}
	return rc;
}

static int take_items(struct replication *r, const KvcmMeta__ReplicateCacheRequest *req)
{
	struct skv_arena *a = &r->k->c->arena;

	kvcm_meta__replicate_cache_item__init(&r->one);
	r->one.block_key = req->block_key;
	r->one.target_node_id = req->target_node_id;
	r->one.n_source_specs = req->n_source_specs;
	r->one.source_specs = req->source_specs;
	r->only = &r->one;
	r->items = req->n_items ? req->items : &r->only;
	r->n = req->n_items ? req->n_items : 1;
	if (r->n > SKV_MAX_KEYS)
		return skv_fail(&r->k->c->err, SKV_E_TOO_LARGE, "items",
				"items: %zu, %u at most in a request", r->n, SKV_MAX_KEYS);
	r->keys = skv_arena_calloc(a, r->n, sizeof *r->keys);
	r->result = skv_arena_calloc(a, r->n, sizeof *r->result);
	for (size_t i = 0; r->keys && r->result && i < r->n; i++) {
		r->keys[i] = kvcm_core_key(r->items[i]->block_key);
		r->result[i] = skv_arena_alloc(a, sizeof *r->result[i]);
		if (!r->result[i])
			return kvcm_nomem(r->k);
		kvcm_meta__replicate_cache_result__init(r->result[i]);
	}
	return r->keys && r->result ? SKV_OK : kvcm_nomem(r->k);
}

/* A single block that was not asked for fails the call. */
static int settle(struct replication *r, KvcmMeta__ReplicateCacheResponse *out)
{
	struct kvcm_request *k = r->k;
	const int code = r->result[0]->code;
	uint32_t is = 0;

	assert(r->n > 0);
	while (is < SKV_WANT_FULL && !r->count[is])
		is++;
	if (r->items == &r->only && code != KVCM_META__ERROR_CODE__OK)
		return kvcm_with_code(k, skv_fail(&k->c->err, SKV_E_UNAVAILABLE, "block_key",
						  "block_key: it is %s", kvcm_want_word(is)), code);
	out->results = r->result;
	out->n_results = r->n;
	out->already_exists = r->count[SKV_WANT_THERE] == r->n;
	k->message = kvcm_text(k, "%zu blocks: %s", r->n, kvcm_want_words(k, r->count));
	return SKV_OK;
}

int kvcm_run_meta_replicateCache(struct kvcm_request *k)
{
	const KvcmMeta__ReplicateCacheRequest *req = k->req;
	struct replication r = { .k = k, .instance = req->instance_id };
	int rc;

	if (!*req->instance_id)
		return kvcm_missing(k, "instance_id");
	rc = kvcm_take_instance(k, req->instance_id, &r.spec);
	if (rc == SKV_OK)
		rc = take_items(&r, req);
	if (rc == SKV_OK)
		rc = want_all(&r);
	return rc == SKV_OK ? settle(&r, k->res) : rc;
}
