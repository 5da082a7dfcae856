/*
 * meta_backend.c - getCacheLocationsByBackend.
 *
 * A block has one place here, so of several selectors the one of its storage's type
 * chooses it. Selectors for storages that only report (event reports) are understood
 * and find nothing. No state.
 */
#include "meta.h"

#include <assert.h>
#include <string.h>

struct by_backend {
	struct kvcm_ask ask;
	struct kvcm_locations locations;
	struct kvcm_mask mask;
	uint64_t types; /* a bit for each requested StorageType */
};

static bool is_type(int type)
{
	return type > KVCM_META__STORAGE_TYPE__ST_UNSPECIFIED &&
	       type <= KVCM_META__STORAGE_TYPE__ST_TAIRMEMPOOL_SSD;
}

static bool is_strategy(int strategy, int type)
{
	switch (strategy) {
	case KVCM_META__LOCATION_SELECT_STRATEGY__LSS_WEIGHTED_RANDOM:
		return true;
	case KVCM_META__LOCATION_SELECT_STRATEGY__LSS_V6D_PREFIX:
	case KVCM_META__LOCATION_SELECT_STRATEGY__LSS_V6D_COVERAGE:
		return type == KVCM_META__STORAGE_TYPE__ST_EVENT_REPORT_L2;
	default:
		return false;
	}
}

static int take_selectors(struct kvcm_request *k,
			  const KvcmMeta__GetCacheLocationsByBackendRequest *req,
			  struct by_backend *own)
{
	for (size_t i = 0; i < req->n_backend_selectors; i++) {
		int type = (int)req->backend_selectors[i]->backend_type;

		if (!is_type(type) || own->types >> type & 1 ||
		    !is_strategy((int)req->backend_selectors[i]->strategy, type))
			return kvcm_missing(k, "backend_selectors");
		assert(type < 64);
		own->types |= (uint64_t)1 << type;
	}
	return own->types ? SKV_OK : kvcm_missing(k, "backend_selectors");
}

static int check_names(struct kvcm_request *k,
		       const KvcmMeta__GetCacheLocationsByBackendRequest *req, uint32_t n_keys)
{
	if (req->n_location_spec_names > 0 && req->n_location_spec_names != n_keys)
		return kvcm_missing(k, "location_spec_names");
	for (size_t i = 0; i < req->n_location_spec_names; i++)
		if (!*req->location_spec_names[i])
			return kvcm_missing(k, "location_spec_names");
	return SKV_OK;
}

int kvcm_run_meta_getCacheLocationsByBackend(struct kvcm_request *k)
{
	const KvcmMeta__GetCacheLocationsByBackendRequest *req = k->req;
	struct by_backend *own = k->own = skv_arena_calloc(&k->c->arena, 1, sizeof *own);
	struct kvcm_keys keys;
	int rc;

	if (!own)
		return kvcm_nomem(k);
	rc = kvcm_take_keys(k, req->instance_id, req->block_keys, req->n_block_keys, req->token_ids,
			    req->n_token_ids, KVCM_MAX_KEYS, &keys);
	if (rc == SKV_OK)
		rc = kvcm_check_places(k, req->instance_id, keys.n, 0, req->n_block_keys == 0);
	if (rc == SKV_OK && req->query_type != KVCM_META__QUERY_TYPE__QT_BATCH_GET)
		rc = kvcm_missing(k, "query_type");
	if (rc == SKV_OK)
		rc = take_selectors(k, req, own);
	if (rc == SKV_OK)
		rc = check_names(k, req, keys.n);
	own->mask = kvcm_mask_of((const ProtobufCMessage *)req->block_mask);
	if (rc == SKV_OK && kvcm_mask_check(&own->mask, keys.n, true, &k->c->err) != SKV_OK)
		rc = kvcm_missing(k, "block_mask");
	if (rc != SKV_OK)
		return rc;
	own->ask.req = (struct skv_lookup_req){
		.tenant = k->c->caller.tenant,
		.instance = req->instance_id,
		.mode = SKV_LOOKUP_BATCH,
		.partial = true,
		.skip_disabled = true,
		.files_only = true,
		.want_created = true,
		.lease_ms = kvcm_lease_ms(k, req->instance_id),
		.only_leased = true,
		.slots_only = true,
	};
	return kvcm_ask(k, &keys, &own->ask);
}

/* The requested specs of row i. */
static uint32_t asked_columns(const KvcmMeta__GetCacheLocationsByBackendRequest *req,
			      const struct by_backend *own, uint32_t i)
{
	const struct skv_lookup_res *res = &own->ask.res;
	uint32_t asked = 0;

	assert(i < res->n_keys && res->n_specs <= SKV_MAX_SPECS);
	for (uint32_t s = 0; s < res->n_specs; s++) {
		const struct skv_location *loc = &res->loc[(size_t)i * res->n_specs + s];

		if (loc->length == 0 ||
		    !(own->types >> kvcm_storage_type(res->files.v[loc->file].type) & 1) ||
		    (req->n_location_spec_names > 0 &&
		     strcmp(res->specs[s], req->location_spec_names[i]) != 0))
			continue;
		asked |= (uint32_t)1 << s;
	}
	return asked;
}

int kvcm_write_by_backend(struct kvcm_request *k)
{
	struct by_backend *own = k->own;
	struct skv_lookup_res *res = &own->ask.res;
	uint32_t *columns;
	int rc = kvcm_ask_join(&own->ask);

	if (rc != SKV_OK)
		return rc;
	columns = skv_arena_calloc(&k->c->arena, res->n_keys + 1, sizeof *columns);
	if (!columns)
		return kvcm_nomem(k);
	assert(res->n_keys <= own->ask.keys.n);
	for (uint32_t i = 0; i < res->n_keys; i++) {
		if (res->hit[i] && !kvcm_mask_skips(&own->mask, i))
			columns[i] = asked_columns(k->req, own, i);
		res->hit[i] = columns[i] != 0;
	}
	own->locations = (struct kvcm_locations){
		.field = 2,
		.vectors = true,
		.miss = KVCM_MISS_EMPTY,
		.files = &res->files,
		.roots = kvcm_roots(k, &res->files, true),
		.n_specs = res->n_specs,
		.specs = res->specs,
		.loc = res->loc,
		.row_columns = columns,
		.n = res->n_keys,
		.hit = res->hit,
		.status = KVCM_SERVING,
		.row_created_ms = res->created_ms,
	};
	if (!own->locations.roots)
		return kvcm_nomem(k);
	kvcm_splice(k, 0, &own->locations);
	return SKV_OK;
}
