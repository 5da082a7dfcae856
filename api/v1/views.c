/*
 * views.c - what GET tells about storages, groups and instances: one, a list, and read back by clients.
 *
 * A view is the object's own fields plus what the manager knows of it now. No state; any thread.
 */
#include "parts.h"

#include <kvb/superblock.h>

#include <string.h>

static void storage_fields(struct kvb_buf *b, const struct kvb_storage_view *v)
{
	kvb_jout_field_string(b, "name", v->spec.name);
	kvb_jout_storage_fields(b, &v->spec);
	kvb_jout_field_string(b, "uuid", v->uuid);
	kvb_jout_field_bool(b, "healthy", v->healthy);
	kvb_jout_field_text(b, "problem", v->problem);
	kvb_jout_field_u64(b, "files", v->files);
	kvb_jout_field_u64(b, "draining_files", v->draining_files);
	kvb_jout_field_u64(b, "file_bytes", v->file_bytes);
	kvb_jout_field_u64(b, "assigned_bytes", v->assigned_bytes);
	kvb_jout_field_u64(b, "used_bytes", v->used_bytes);
	kvb_jout_field_u64(b, "quarantined_bytes", v->quarantined_bytes);
	kvb_jout_field_u64(b, "free_bytes", v->free_bytes);
}

static void group_fields(struct kvb_buf *b, const struct kvb_group_view *v)
{
	kvb_jout_field_string(b, "name", v->spec.name);
	kvb_jout_group_fields(b, &v->spec);
	kvb_jout_field_u64(b, "blocks", v->blocks);
	kvb_jout_field_u64(b, "used_bytes", v->used_bytes);
	kvb_jout_field_u64(b, "room_bytes", v->room_bytes);
	kvb_jout_field_u64(b, "pinned_bytes", v->pinned_bytes);
	kvb_jout_field_u64(b, "soft_pinned_bytes", v->soft_pinned_bytes);
	kvb_jout_field_u64(b, "leased_bytes", v->leased_bytes);
	kvb_jout_field_u64(b, "open_bytes", v->open_bytes);
	kvb_jout_field_u64(b, "evicted_blocks", v->evicted_blocks);
	kvb_jout_field_u64(b, "hits", v->hits);
}

static void write_placements(struct kvb_buf *b, const struct kvb_placement *v, uint32_t n)
{
	if (!n)
		return;
	kvb_jout_name(b, "placements");
	kvb_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++) {
		kvb_jout_open(b, '{');
		kvb_jout_field_string(b, "storage", v[i].storage);
		kvb_jout_field_string(b, "spec", v[i].spec);
		kvb_jout_field_string(b, "fit", v[i].fit);
		kvb_jout_field_u64(b, "slot_bytes", v[i].slot_bytes);
		kvb_jout_field_u64(b, "wasted_bytes", v[i].wasted_bytes);
		kvb_jout_field_u64(b, "copied_bytes", v[i].copied_bytes);
		kvb_jout_close(b, '}');
	}
	kvb_jout_close(b, ']');
}

static void instance_fields(struct kvb_buf *b, const struct kvb_instance_view *v)
{
	kvb_jout_field_string(b, "id", v->spec.id);
	kvb_jout_field_string(b, "tenant", v->spec.tenant);
	kvb_jout_instance_fields(b, &v->spec);
	kvb_jout_field_u64(b, "blocks", v->blocks);
	kvb_jout_field_u64(b, "used_bytes", v->used_bytes);
	kvb_jout_field_u64(b, "open_sessions", v->open_sessions);
	kvb_jout_field_u64(b, "open_bytes", v->open_bytes);
	kvb_jout_field_u64(b, "leased_bytes", v->leased_bytes);
	kvb_jout_field_u64(b, "share_bytes", v->share_bytes);
	kvb_jout_field_u64(b, "pinned_bytes", v->pinned_bytes);
	kvb_jout_field_u64(b, "soft_pinned_bytes", v->soft_pinned_bytes);
	kvb_jout_field_u64(b, "evicted_blocks", v->evicted_blocks);
	kvb_jout_field_u64(b, "hits", v->hits);
	write_placements(b, v->placements, v->n_placements);
}

void kvb_v1_write_storage_view(struct kvb_buf *out, const struct kvb_storage_view *v)
{
	kvb_jout_begin(out);
	storage_fields(out, v);
	kvb_jout_close(out, '}');
}

void kvb_v1_write_group_view(struct kvb_buf *out, const struct kvb_group_view *v)
{
	kvb_jout_begin(out);
	group_fields(out, v);
	kvb_jout_close(out, '}');
}

void kvb_v1_write_instance_view(struct kvb_buf *out, const struct kvb_instance_view *v)
{
	kvb_jout_begin(out);
	instance_fields(out, v);
	kvb_jout_close(out, '}');
}

/* ---- lists -------------------------------------------------------------------------------------- */

void kvb_jout_storages(struct kvb_buf *b, const struct kvb_storage_view *v, uint32_t n)
{
	kvb_jout_name(b, "storages");
	kvb_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++) {
		kvb_jout_open(b, '{');
		storage_fields(b, &v[i]);
		kvb_jout_close(b, '}');
	}
	kvb_jout_close(b, ']');
}

void kvb_jout_groups(struct kvb_buf *b, const struct kvb_group_view *v, uint32_t n)
{
	kvb_jout_name(b, "groups");
	kvb_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++) {
		kvb_jout_open(b, '{');
		group_fields(b, &v[i]);
		kvb_jout_close(b, '}');
	}
	kvb_jout_close(b, ']');
}

void kvb_jout_instances(struct kvb_buf *b, const struct kvb_instance_view *v, uint32_t n)
{
	kvb_jout_name(b, "instances");
	kvb_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++) {
		kvb_jout_open(b, '{');
		instance_fields(b, &v[i]);
		kvb_jout_close(b, '}');
	}
	kvb_jout_close(b, ']');
}

void kvb_v1_write_storage_list(struct kvb_buf *out, const struct kvb_storage_view *v, uint32_t n)
{
	kvb_jout_begin(out);
	kvb_jout_storages(out, v, n);
	kvb_jout_close(out, '}');
}

void kvb_v1_write_group_list(struct kvb_buf *out, const struct kvb_group_view *v, uint32_t n)
{
	kvb_jout_begin(out);
	kvb_jout_groups(out, v, n);
	kvb_jout_close(out, '}');
}

void kvb_v1_write_instance_list(struct kvb_buf *out, const struct kvb_instance_view *v, uint32_t n)
{
	kvb_jout_begin(out);
	kvb_jout_instances(out, v, n);
	kvb_jout_close(out, '}');
}

/* ---- read by clients ---------------------------------------------------------------------------- */

static uint64_t count(struct kvb_jdoc *d, const struct kvb_jat *object, const char *name)
{
	struct kvb_jat at = kvb_jat_get(object, name);

	return kvb_jat_u64(d, &at, 0, UINT64_MAX);
}

/* What managers of before did not tell. */
static uint64_t count_or_0(struct kvb_jdoc *d, const struct kvb_jat *object, const char *name)
{
	struct kvb_jat at = kvb_jat_get(object, name);

	return at.v ? kvb_jat_u64(d, &at, 0, UINT64_MAX) : 0;
}

static const char *name_of(struct kvb_jdoc *d, const struct kvb_jat *object, const char *name)
{
	struct kvb_jat at = kvb_jat_get(object, name);

	return kvb_jat_name(d, &at);
}

static void read_storage_state(struct kvb_jdoc *d, const struct kvb_jat *top, struct kvb_storage_view *v)
{
	struct kvb_jat uuid = kvb_jat_get(top, "uuid"), healthy = kvb_jat_get(top, "healthy"),
		       problem = kvb_jat_get(top, "problem"), files = kvb_jat_get(top, "files"),
		       draining = kvb_jat_get(top, "draining_files");
	const char *text = kvb_jat_string(d, &uuid, 36, 36);
	uint8_t bytes[16];

	if (kvb_jdoc_ok(d) && kvb_uuid_from_text(text, bytes) != KVB_OK)
		kvb_jdoc_fail(d, &uuid, KVB_E_INVALID, "is not a UUID");
	else
		memcpy(v->uuid, text, strlen(text) + 1);
	v->healthy = kvb_jat_bool(d, &healthy);
	v->problem = kvb_jat_string(d, &problem, 0, 4096);
	v->files = kvb_jat_u32(d, &files, 0, UINT32_MAX);
	v->draining_files = draining.v ? kvb_jat_u32(d, &draining, 0, UINT32_MAX) : 0; /* an older manager has none */
	v->file_bytes = count(d, top, "file_bytes");
	v->assigned_bytes = count(d, top, "assigned_bytes");
	v->used_bytes = count(d, top, "used_bytes");
	v->quarantined_bytes = count(d, top, "quarantined_bytes");
	v->free_bytes = count(d, top, "free_bytes");
}

int kvb_v1_read_storage_view(const struct kvb_v1_in *in, const char *text, size_t n,
			     struct kvb_storage_view *out, struct kvb_error *err)
{
	struct kvb_storage_view v = { .problem = "" };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JANSWER, KVB_JMAX_OBJECT, err);

	kvb_jat_storage(&d, &top, &v.spec);
	v.spec.name = name_of(&d, &top, "name");
	read_storage_state(&d, &top, &v);
	if (kvb_jdoc_ok(&d))
		*out = v;
	return kvb_jdoc_close(&d);
}

int kvb_v1_read_group_view(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_group_view *out, struct kvb_error *err)
{
	struct kvb_group_view v = { .blocks = 0 };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JANSWER, KVB_JMAX_OBJECT, err);

	kvb_jat_group(&d, &top, &v.spec);
	v.spec.name = name_of(&d, &top, "name");
	v.blocks = count(&d, &top, "blocks");
	v.used_bytes = count(&d, &top, "used_bytes");
	v.room_bytes = count_or_0(&d, &top, "room_bytes");
	v.pinned_bytes = count_or_0(&d, &top, "pinned_bytes");
	v.soft_pinned_bytes = count_or_0(&d, &top, "soft_pinned_bytes");
	v.leased_bytes = count_or_0(&d, &top, "leased_bytes");
	v.open_bytes = count_or_0(&d, &top, "open_bytes");
	v.evicted_blocks = count_or_0(&d, &top, "evicted_blocks");
	v.hits = count_or_0(&d, &top, "hits");
	if (kvb_jdoc_ok(&d))
		*out = v;
	return kvb_jdoc_close(&d);
}

static void read_placements(struct kvb_jdoc *d, const struct kvb_jat *top, struct kvb_instance_view *out)
{
	struct kvb_jat at = kvb_jat_get(top, "placements"), item;
	struct kvb_placement *v;

	if (!at.v)
		return;
	out->n_placements = kvb_jat_array(d, &at, 0, KVB_MAX_PLACEMENTS);
	v = kvb_jdoc_alloc(d, out->n_placements + 1, sizeof *v);
	item = kvb_jat_first(&at);
	for (uint32_t i = 0; v && i < out->n_placements; i++, kvb_jat_next(&item))
		v[i] = (struct kvb_placement){ .storage = name_of(d, &item, "storage"), .spec = name_of(d, &item, "spec"),
					       .fit = name_of(d, &item, "fit"), .slot_bytes = count(d, &item, "slot_bytes"),
					       .wasted_bytes = count(d, &item, "wasted_bytes"),
					       .copied_bytes = count(d, &item, "copied_bytes") };
	out->placements = v;
}

int kvb_v1_read_instance_view(const struct kvb_v1_in *in, const char *text, size_t n,
			      struct kvb_instance_view *out, struct kvb_error *err)
{
	struct kvb_instance_view v = { .blocks = 0 };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JANSWER, KVB_JMAX_OBJECT, err);

	kvb_jat_instance(&d, &top, &v.spec);
	v.spec.id = name_of(&d, &top, "id");
	v.spec.tenant = name_of(&d, &top, "tenant");
	v.blocks = count(&d, &top, "blocks");
	v.used_bytes = count(&d, &top, "used_bytes");
	v.open_sessions = count(&d, &top, "open_sessions");
	v.open_bytes = count(&d, &top, "open_bytes");
	v.leased_bytes = count(&d, &top, "leased_bytes");
	v.share_bytes = count_or_0(&d, &top, "share_bytes");
	v.pinned_bytes = count_or_0(&d, &top, "pinned_bytes");
	v.soft_pinned_bytes = count_or_0(&d, &top, "soft_pinned_bytes");
	v.evicted_blocks = count_or_0(&d, &top, "evicted_blocks");
	v.hits = count_or_0(&d, &top, "hits");
	read_placements(&d, &top, &v);
	if (kvb_jdoc_ok(&d))
		*out = v;
	return kvb_jdoc_close(&d);
}
