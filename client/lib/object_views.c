/*
 * object_views.c - converts the manager's views of storages, groups and instances to public
 * results. Stateless; any thread.
 */
#include "objects.h"

#include <string.h>

static enum slabkv_switch switch_of(bool on) { return on ? SLABKV_YES : SLABKV_NO; }

/* A bound that is 0 when there is none. */
static uint64_t bound(uint64_t v) { return v ? v : SLABKV_NONE; }

static const char *text(const char *s) { return s ? s : ""; }

const struct slabkv_storage_info *skv_storage_info(struct skv_arena *a,
						   const struct skv_storage_view *v)
{
	struct slabkv_storage_info *info = skv_arena_calloc(a, 1, sizeof *info);
	struct slabkv_storage *spec = skv_arena_calloc(a, 1, sizeof *spec);

	if (!info || !spec)
		return NULL;
	*spec = (struct slabkv_storage){ .size = sizeof *spec,
					  .name = v->spec.name,
					  .type = text(v->spec.type),
					  .root = text(v->spec.root),
					  .capacity = v->spec.capacity,
					  .file_size = v->spec.file_size,
					  .unit = v->spec.unit,
					  .enabled = switch_of(v->spec.enabled),
					  .draining = switch_of(v->spec.draining),
					  .high_percent = v->spec.high_percent,
					  .low_percent = v->spec.low_percent,
					  .client_root = text(v->spec.client_root),
					  .client_mount = text(v->spec.client_mount),
					  .chunk_size = v->spec.chunk_size,
					  .any_mount = switch_of(v->spec.any_mount),
					  .fs_master = v->spec.fs_master,
					  .n_fs_master = v->spec.n_fs_master };
	*info = (struct slabkv_storage_info){ .spec = spec,
					       .healthy = v->healthy,
					       .problem = text(v->problem),
					       .files = v->files,
					       .draining_files = v->draining_files,
					       .bad_files = v->bad_files,
					       .file_bytes = v->file_bytes,
					       .assigned_bytes = v->assigned_bytes,
					       .used_bytes = v->used_bytes,
					       .quarantined_bytes = v->quarantined_bytes,
					       .free_bytes = v->free_bytes,
					       .available_bytes = v->available_bytes };
	memcpy(info->uuid, v->uuid, sizeof info->uuid);
	return info;
}

const struct slabkv_group_info *skv_group_info(struct skv_arena *a, const struct skv_group_view *v)
{
	struct slabkv_group_info *info = skv_arena_calloc(a, 1, sizeof *info);
	struct slabkv_group *spec = skv_arena_calloc(a, 1, sizeof *spec);

	SKV_CHECK(v->spec.share <= SKV_SHARE_FIXED);
	if (!info || !spec)
		return NULL;
	*spec = (struct slabkv_group){ .size = sizeof *spec,
					.name = v->spec.name,
					.capacity = bound(v->spec.capacity),
					.storages = v->spec.storages,
					.n_storages = v->spec.n_storages,
					.policy = text(v->spec.policy),
					.ttl_ms = v->spec.ttl_ms,
					.max_idle_ms = bound(v->spec.max_idle_ms),
					.max_blocks = bound(v->spec.max_blocks),
					.max_instances = bound(v->spec.max_instances),
					.high_percent = v->spec.high_percent,
					.low_percent = v->spec.low_percent,
					.pin_percent = v->spec.pin_percent ? v->spec.pin_percent
						: 50,
					.share = (enum slabkv_share)((int)v->spec.share + 1),
					.tier_of = text(v->spec.tier_of),
					.write_through = switch_of(v->spec.write_through),
					.promote_after = bound(v->spec.promote_after),
					.replicate = switch_of(v->spec.replicate) };
	*info = (struct slabkv_group_info){ .spec = spec,
					     .used_bytes = v->used_bytes,
					     .blocks = v->blocks,
					     .room_bytes = v->room_bytes,
					     .pinned_bytes = v->pinned_bytes,
					     .soft_pinned_bytes = v->soft_pinned_bytes,
					     .leased_bytes = v->leased_bytes,
					     .open_bytes = v->open_bytes,
					     .evicted_blocks = v->evicted_blocks,
					     .hits = v->hits };
	return info;
}

static const struct slabkv_placement *placements(struct skv_arena *a,
						 const struct skv_instance_view *v)
{
	struct slabkv_placement *to = skv_arena_calloc(a, (size_t)v->n_placements + 1, sizeof *to);

	for (uint32_t i = 0; to && i < v->n_placements; i++) {
		const struct skv_placement *p = &v->placements[i];

		to[i] = (struct slabkv_placement){
			p->storage, p->spec, p->fit, p->slot_bytes, p->wasted_bytes, p->copied_bytes
		};
	}
	return to;
}

static const struct slabkv_spec *specs(struct skv_arena *a, const struct skv_instance_spec *v)
{
	struct slabkv_spec *to = skv_arena_calloc(a, (size_t)v->n_specs + 1, sizeof *to);

	for (uint32_t i = 0; to && i < v->n_specs; i++)
		to[i] = (struct slabkv_spec){ v->specs[i].name, v->specs[i].size };
	return to;
}

const struct slabkv_instance_info *skv_instance_info(struct skv_arena *a,
						     const struct skv_instance_view *v)
{
	struct slabkv_instance_info *info = skv_arena_calloc(a, 1, sizeof *info);
	struct slabkv_instance *spec = skv_arena_calloc(a, 1, sizeof *spec);

	SKV_CHECK(v->spec.n_specs <= SKV_MAX_SPECS);
	if (!info || !spec)
		return NULL;
	*spec = (struct slabkv_instance){ .size = sizeof *spec,
					   .id = v->spec.id,
					   .group = v->spec.group,
					   .block_tokens = v->spec.block_tokens,
					   .specs = specs(a, &v->spec),
					   .spec_size = sizeof *spec->specs,
					   .n_specs = v->spec.n_specs,
					   .extra = text(v->spec.extra),
					   .weight = v->spec.weight ? v->spec.weight : 1,
					   .capacity = bound(v->spec.capacity) };
	*info = (struct slabkv_instance_info){ .spec = spec,
						.blocks = v->blocks,
						.used_bytes = v->used_bytes,
						.open_sessions = v->open_sessions,
						.open_bytes = v->open_bytes,
						.leased_bytes = v->leased_bytes,
						.placements = placements(a, v),
						.n_placements = v->n_placements,
						.placement_size = sizeof *info->placements,
						.share_bytes = v->share_bytes,
						.pinned_bytes = v->pinned_bytes,
						.soft_pinned_bytes = v->soft_pinned_bytes,
						.evicted_blocks = v->evicted_blocks,
						.hits = v->hits };
	return spec->specs && info->placements ? info : NULL;
}
