/*
 * meta_cache.c - getCacheMeta: locations and states of blocks.
 *
 * Nothing is leased or used by it. No state.
 */
#include "meta.h"

#include <assert.h>
#include <stdio.h>

struct states {
	struct skv_states_req req;
	struct skv_states_res res;
	uint8_t *status; /* [n_keys] enum kvcm_status */
	struct kvcm_locations locations, replicas;
};

int kvcm_run_meta_getCacheMeta(struct kvcm_request *k)
{
	const KvcmMeta__GetCacheMetaRequest *req = k->req;
	struct states *own = k->own = skv_arena_calloc(&k->c->arena, 1, sizeof *own);
	struct kvcm_keys keys;
	int rc;

	if (!own)
		return kvcm_nomem(k);
	rc = kvcm_take_keys(k, req->instance_id, req->block_keys, req->n_block_keys, req->token_ids,
			    req->n_token_ids, KVCM_MAX_KEYS, &keys);
	if (rc == SKV_OK)
		rc = kvcm_take_unmasked(k, (const ProtobufCMessage *)req->block_mask, &keys,
					NULL);
	if (rc == SKV_OK) /* each is written twice, and in a text */
		rc = kvcm_check_places(k, req->instance_id, keys.n, 3, req->n_block_keys == 0);
	if (rc != SKV_OK)
		return rc;
	own->req = (struct skv_states_req){
		.tenant = k->c->caller.tenant,
		.instance = req->instance_id,
		.keys = keys.v,
		.n_keys = keys.n,
	};
	return kvcm_states(k, &own->req, &own->res);
}

/* A block has the state of the best of its specs; specs in other states are left out of its
 * location. */
static enum kvcm_status settle(struct skv_states_res *res, uint32_t row)
{
	static const struct {
		uint8_t state;
		enum kvcm_status status;
	} order[] = { { SKV_SLOT_COMMITTED, KVCM_SERVING },
		      { SKV_SLOT_WRITING, KVCM_WRITING },
		      { SKV_SLOT_REMOVING, KVCM_DELETING } };
	const uint8_t *state = res->state + (size_t)row * res->n_specs;
	struct skv_location *loc = res->loc + (size_t)row * res->n_specs;

	assert(row < res->n_keys);
	for (unsigned i = 0; i < sizeof order / sizeof order[0]; i++) {
		uint32_t found = 0;

		for (uint32_t s = 0; s < res->n_specs; s++)
			found += state[s] == order[i].state;
		if (found == 0)
			continue;
		for (uint32_t s = 0; s < res->n_specs; s++)
			if (state[s] != order[i].state)
				loc[s].length = 0;
		return order[i].status;
	}
	return KVCM_NOT_FOUND;
}

static char *meta_of(struct kvcm_request *k, const struct states *own, uint32_t row)
{
	const struct skv_location *loc = own->res.loc + (size_t)row * own->res.n_specs;
	enum kvcm_status status = (enum kvcm_status)own->status[row];
	char id[KVCM_LOCATION_ID];
	int n = 0;

	for (uint32_t s = 0; s < own->res.n_specs && n == 0; s++) {
		if (loc[s].length > 0) {
			kvcm_location_id(loc[s].generation, id);
			n = KVCM_LOCATION_ID;
		}
	}
	return kvcm_text(k, "{\"id\":\"%.*s\",\"status\":\"%s\"}", n, id, kvcm_status_name(status));
}

int kvcm_write_cache_meta(struct kvcm_request *k)
{
	KvcmMeta__GetCacheMetaResponse *out = k->res;
	struct states *own = k->own;
	struct skv_states_res *res = &own->res;

	assert(res->n_keys == own->req.n_keys);
	out->metas = skv_arena_calloc(&k->c->arena, own->req.n_keys + 1, sizeof *out->metas);
	own->status = skv_arena_calloc(&k->c->arena, own->req.n_keys + 1, 1);
	if (!out->metas || !own->status)
		return kvcm_nomem(k);
	for (uint32_t i = 0; i < own->req.n_keys; i++) {
		own->status[i] = (uint8_t)settle(res, i);
		out->metas[out->n_metas++] = meta_of(k, own, i);
	}
	own->locations = (struct kvcm_locations){
		.field = 2,
		.miss = KVCM_MISS_EMPTY,
		.files = &res->files,
		.roots = kvcm_roots(k, &res->files, true),
		.n_specs = res->n_specs,
		.specs = res->specs,
		.loc = res->loc,
		.columns = KVCM_ALL_COLUMNS,
		.n = own->req.n_keys,
		.row_status = own->status,
		.row_created_ms = res->created_ms,
	};
	own->replicas = own->locations;
	own->replicas.field = 4;
	own->replicas.vectors = true;
	if (!own->locations.roots)
		return kvcm_nomem(k);
	kvcm_splice(k, 0, &own->locations);
	kvcm_splice(k, 1, &own->replicas);
	return SKV_OK;
}
