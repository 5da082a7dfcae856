/*
 * admin_migrate.c - migrateCache: moves blocks of a storage to another one of their group, or
 * copies them to its fast tier.
 *
 * A block is accepted once movers were asked for it. Only COPY: a MARK would ask the engine to
 * write the block again, without a checksum, into a place where it would not count. No state.
 */
#include "meta.h"

#include <assert.h>
#include <string.h>

#define SAMPLE 100 /* the peer's, if the request does not say how many */
#define SOURCE "source_storage_name"
#define TARGET "target_storage_name"

static int check_method(struct kvcm_request *k, KvcmAdmin__MigrationMethod method)
{
	switch (method) {
	case KVCM_ADMIN__MIGRATION_METHOD__MIGRATION_METHOD_COPY:
		return SKV_OK;
	case KVCM_ADMIN__MIGRATION_METHOD__MIGRATION_METHOD_MARK:
	case KVCM_ADMIN__MIGRATION_METHOD__MIGRATION_METHOD_BOTH:
		return skv_fail(&k->c->err, SKV_E_UNSUPPORTED, "method",
				"method: blocks are not marked for engines to write them again: "
				"ask for MIGRATION_METHOD_COPY, which slabkv mover does");
	default:
		return kvcm_missing(k, "method");
	}
}

static int check(struct kvcm_request *k, const KvcmAdmin__MigrateCacheRequest *req)
{
	if (!*req->instance_id)
		return kvcm_missing(k, "instance_id");
	if (!*req->source_storage_name)
		return kvcm_missing(k, SOURCE);
	if (!*req->target_storage_name)
		return kvcm_missing(k, TARGET);
	if (req->rule && req->rule->sample_count < 0)
		return kvcm_missing(k, "rule.sample_count");
	return check_method(k, req->method);
}

int kvcm_run_admin_migrateCache(struct kvcm_request *k)
{
	const KvcmAdmin__MigrateCacheRequest *req = k->req;
	KvcmAdmin__MigrateCacheResponse *out = k->res;
	struct skv_want_req want = { .tenant = k->c->caller.tenant, .instance = req->instance_id,
				     .from = req->source_storage_name,
				     .to = req->target_storage_name, .may_move = true };
	struct kvcm_keys keys = { .n = 0 };
	struct skv_want_res res;
	int rc = check(k, req);

	if (rc == SKV_OK && req->n_block_keys > 0)
		rc = kvcm_take_keys(k, req->instance_id, req->block_keys, req->n_block_keys, NULL,
				    0, SKV_MAX_KEYS, &keys);
	if (rc == SKV_OK)
		rc = kvcm_keys_once(k, &keys, NULL, NULL);
	if (rc != SKV_OK)
		return rc;
	want.keys = keys.v;
	want.n_keys = keys.n;
	want.sample = req->rule && req->rule->sample_count ? (uint32_t)req->rule->sample_count
							    : SAMPLE;
	if (want.sample > SKV_MAX_KEYS)
		want.sample = SKV_MAX_KEYS;
	rc = kvcm_want(k, &want, SOURCE, TARGET, &res);
	if (rc != SKV_OK)
		return rc;
	out->accepted = res.count[SKV_WANT_ASKED];
	for (uint32_t i = 0; i < SKV_WANT_OUTCOMES; i++)
		out->rejected += i == SKV_WANT_ASKED ? 0 : res.count[i];
	assert(keys.n == 0 || out->accepted + out->rejected == keys.n);
	k->message = kvcm_text(k, "blocks: %s", kvcm_want_words(k, res.count));
	return SKV_OK;
}
