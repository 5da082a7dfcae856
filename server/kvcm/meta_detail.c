/*
 * meta_detail.c - getCacheMetaDetail: everything known about keys, for diagnosis.
 *
 * A block's specs in one state are one location. Nothing is leased or used by it, so what it names
 * may be another block's a moment later. No state.
 */
#include "meta.h"

#include <assert.h>
#include <stdio.h>

struct detail {
	struct skv_states_req req;
	struct skv_states_res res;
	uint32_t *index; /* [n_keys] which key of the request each one is */
};

int kvcm_run_meta_getCacheMetaDetail(struct kvcm_request *k)
{
	const KvcmMeta__GetCacheMetaDetailRequest *req = k->req;
	struct detail *own = k->own = skv_arena_calloc(&k->c->arena, 1, sizeof *own);
	struct kvcm_keys keys = { .n = 0 };
	int rc;

	if (!own)
		return kvcm_nomem(k);
	rc = kvcm_take_keys(k, req->instance_id, req->block_keys, req->n_block_keys, req->token_ids,
			    req->n_token_ids, KVCM_MAX_KEYS, &keys);
	own->index = skv_arena_alloc(&k->c->arena, (keys.n + 1u) * sizeof *own->index);
	if (rc == SKV_OK && !own->index)
		rc = kvcm_nomem(k);
	if (rc == SKV_OK)
		rc = kvcm_take_unmasked(k, (const ProtobufCMessage *)req->block_mask, &keys,
					own->index);
	if (rc == SKV_OK) /* each is a message of its own */
		rc = kvcm_check_places(k, req->instance_id, keys.n, 3, req->n_block_keys == 0);
	if (rc != SKV_OK)
		return rc;
	own->req = (struct skv_states_req){
		.tenant = k->c->caller.tenant,
		.instance = req->instance_id,
		.keys = keys.v,
		.n_keys = keys.n,
		.want_parents = true,
	};
	return kvcm_states(k, &own->req, &own->res);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static bool add_spec(struct kvcm_request *k, const struct skv_states_res *res, uint32_t spec,
		     const struct skv_location *loc, KvcmMeta__CacheLocationDetail *out)
{
	KvcmMeta__LocationSpec *s =
		skv_proto_make(&kvcm_meta__location_spec__descriptor, &k->c->arena);
	const struct skv_file_ref *file = &res->files.v[loc->file];
	char id[KVCM_LOCATION_ID];
	struct skv_buf uri;

	assert(loc->file < res->files.n && spec < res->n_specs);
	if (!s)
		return false;
	skv_buf_init(&uri);
	kvcm_uri(file, kvcm_root_to_read(k, file), loc, &uri);
	s->name = (char *)res->specs[spec];
	s->uri = uri.failed ? NULL
			    : skv_arena_strndup(&k->c->arena, (const char *)uri.data, uri.len);
	skv_buf_destroy(&uri);
	if (out->n_location_specs == 0) {
		kvcm_location_id(loc->generation, id);
		out->location_id = kvcm_text(k, "%.*s", KVCM_LOCATION_ID, id);
		out->type = (KvcmMeta__StorageType)kvcm_storage_type(file->type);
	}
	out->location_specs[out->n_location_specs++] = s;
	return s->uri != NULL;
}

/* The row's specs in one state; none: NULL is put nowhere. */
static bool add_location(struct kvcm_request *k, const struct skv_states_res *res, uint32_t row,
			 uint8_t state, KvcmMeta__CacheLocationStatus status,
			 KvcmMeta__CacheMetaDetailItem *item)
{
	const uint8_t *states = res->state + (size_t)row * res->n_specs;
	KvcmMeta__CacheLocationDetail *at = NULL;

	for (uint32_t s = 0; s < res->n_specs; s++) {
		if (states[s] != state)
			continue;
		if (!at) {
			at = skv_proto_make(&kvcm_meta__cache_location_detail__descriptor,
					    &k->c->arena);
			if (at)
				at->location_specs = skv_arena_calloc(&k->c->arena, res->n_specs,
								      sizeof(void *));
			if (!at || !at->location_specs)
				return false;
		}
		if (!add_spec(k, res, s, &res->loc[(size_t)row * res->n_specs + s], at))
			return false;
	}
	if (!at)
		return true;
	at->status = status;
	at->spec_size = (int32_t)at->n_location_specs;
	at->create_time = (int64_t)res->created_ms[row] * 1000;
	assert(item->n_locations < 3); /* states */
	item->locations[item->n_locations++] = at;
	return true;
}

static bool add_prev(struct kvcm_request *k, const struct skv_key *prev,
		     KvcmMeta__CacheMetaDetailItem *item)
{
	KvcmMeta__CacheMetaDetailItem__PropertiesEntry *p = skv_proto_make(
		&kvcm_meta__cache_meta_detail_item__properties_entry__descriptor, &k->c->arena);

	item->properties = skv_arena_calloc(&k->c->arena, 1, sizeof *item->properties);
	if (!p || !item->properties)
		return false;
	item->prev_block_key = kvcm_text(k, "%lld", (long long)prev->lo);
	p->key = "BP#prev_key";
	p->value = item->prev_block_key;
	item->properties[item->n_properties++] = p;
	return true;
}

static bool fill_item(struct kvcm_request *k, const struct detail *own, uint32_t row,
		      KvcmMeta__CacheMetaDetailItem *item)
{
	const struct skv_states_res *res = &own->res;

	item->request_index = (int32_t)own->index[row];
	item->block_key = (int64_t)own->req.keys[row].lo;
	item->status = skv_proto_make(&kvcm_meta__status__descriptor, &k->c->arena);
	item->locations = skv_arena_calloc(&k->c->arena, 4, sizeof *item->locations);
	if (!item->status || !item->locations)
		return false;
	item->status->code = KVCM_META__ERROR_CODE__OK;
	if (res->parent[row] && !add_prev(k, res->parent[row], item))
		return false;
	if (!add_location(k, res, row, SKV_SLOT_COMMITTED,
			  KVCM_META__CACHE_LOCATION_STATUS__CLS_SERVING, item) ||
	    !add_location(k, res, row, SKV_SLOT_WRITING,
			  KVCM_META__CACHE_LOCATION_STATUS__CLS_WRITING, item) ||
	    !add_location(k, res, row, SKV_SLOT_REMOVING,
			  KVCM_META__CACHE_LOCATION_STATUS__CLS_DELETING, item))
		return false;
	if (item->n_locations == 0) {
		item->locations[0] =
			skv_proto_make(&kvcm_meta__cache_location_detail__descriptor, &k->c->arena);
		item->n_locations = item->locations[0] != NULL;
	}
	return item->n_locations > 0;
}

int kvcm_write_cache_meta_detail(struct kvcm_request *k)
{
	KvcmMeta__GetCacheMetaDetailResponse *out = k->res;
	const struct detail *own = k->own;

	assert(own->res.n_keys == own->req.n_keys);
	out->items = skv_arena_calloc(&k->c->arena, own->req.n_keys + 1u, sizeof *out->items);
	if (!out->items)
		return kvcm_nomem(k);
	for (uint32_t i = 0; i < own->req.n_keys; i++) {
		KvcmMeta__CacheMetaDetailItem *item = skv_proto_make(
			&kvcm_meta__cache_meta_detail_item__descriptor, &k->c->arena);

		if (!item || !fill_item(k, own, i, item))
			return kvcm_nomem(k);
		out->items[out->n_items++] = item;
	}
	return SKV_OK;
}
