/*
 * views.c - what GET tells about storages, groups and instances: one, a list, and read back by clients.
 *
 * A view is the object's own fields plus what the manager knows of it now. No state; any thread.
 */
#include "parts.h"

#include <skv/superblock.h>

#include <string.h>

static void storage_fields(struct skv_buf *b, const struct skv_storage_view *v)
{
	ref_jout_field_string(b, "name", v->spec.name);
	ref_jout_storage_fields(b, &v->spec);
	ref_jout_field_string(b, "uuid", v->uuid);
	ref_jout_field_bool(b, "healthy", v->healthy);
	ref_jout_field_text(b, "problem", v->problem);
	ref_jout_field_u64(b, "files", v->files);
	ref_jout_field_u64(b, "draining_files", v->draining_files);
	ref_jout_field_u64(b, "bad_files", v->bad_files);
	ref_jout_field_u64(b, "file_bytes", v->file_bytes);
	ref_jout_field_u64(b, "assigned_bytes", v->assigned_bytes);
	ref_jout_field_u64(b, "used_bytes", v->used_bytes);
	ref_jout_field_u64(b, "quarantined_bytes", v->quarantined_bytes);
	ref_jout_field_u64(b, "free_bytes", v->free_bytes);
}

static void group_fields(struct skv_buf *b, const struct skv_group_view *v)
{
	ref_jout_field_string(b, "name", v->spec.name);
	ref_jout_group_fields(b, &v->spec);
	ref_jout_field_u64(b, "blocks", v->blocks);
	ref_jout_field_u64(b, "used_bytes", v->used_bytes);
	ref_jout_field_u64(b, "room_bytes", v->room_bytes);
	ref_jout_field_u64(b, "pinned_bytes", v->pinned_bytes);
	ref_jout_field_u64(b, "soft_pinned_bytes", v->soft_pinned_bytes);
	ref_jout_field_u64(b, "leased_bytes", v->leased_bytes);
	ref_jout_field_u64(b, "open_bytes", v->open_bytes);
	ref_jout_field_u64(b, "evicted_blocks", v->evicted_blocks);
	ref_jout_field_u64(b, "hits", v->hits);
}

static void write_placements(struct skv_buf *b, const struct skv_placement *v, uint32_t n)
{
	if (!n)
		return;
	ref_jout_name(b, "placements");
	ref_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++) {
		ref_jout_open(b, '{');
		ref_jout_field_string(b, "storage", v[i].storage);
		ref_jout_field_string(b, "spec", v[i].spec);
		ref_jout_field_string(b, "fit", v[i].fit);
		ref_jout_field_u64(b, "slot_bytes", v[i].slot_bytes);
		ref_jout_field_u64(b, "wasted_bytes", v[i].wasted_bytes);
		ref_jout_field_u64(b, "copied_bytes", v[i].copied_bytes);
		ref_jout_close(b, '}');
	}
	ref_jout_close(b, ']');
}

static void instance_fields(struct skv_buf *b, const struct skv_instance_view *v)
{
	ref_jout_field_string(b, "id", v->spec.id);
	ref_jout_field_string(b, "tenant", v->spec.tenant);
	ref_jout_instance_fields(b, &v->spec);
	ref_jout_field_u64(b, "blocks", v->blocks);
	ref_jout_field_u64(b, "used_bytes", v->used_bytes);
	ref_jout_field_u64(b, "open_sessions", v->open_sessions);
	ref_jout_field_u64(b, "open_bytes", v->open_bytes);
	ref_jout_field_u64(b, "leased_bytes", v->leased_bytes);
	ref_jout_field_u64(b, "share_bytes", v->share_bytes);
	ref_jout_field_u64(b, "pinned_bytes", v->pinned_bytes);
	ref_jout_field_u64(b, "soft_pinned_bytes", v->soft_pinned_bytes);
	ref_jout_field_u64(b, "evicted_blocks", v->evicted_blocks);
	ref_jout_field_u64(b, "hits", v->hits);
	write_placements(b, v->placements, v->n_placements);
}

void ref_write_storage_view(struct skv_buf *out, const struct skv_storage_view *v)
{
	ref_jout_begin(out);
	storage_fields(out, v);
	ref_jout_close(out, '}');
}

void ref_write_group_view(struct skv_buf *out, const struct skv_group_view *v)
{
	ref_jout_begin(out);
	group_fields(out, v);
	ref_jout_close(out, '}');
}

void ref_write_instance_view(struct skv_buf *out, const struct skv_instance_view *v)
{
	ref_jout_begin(out);
	instance_fields(out, v);
	ref_jout_close(out, '}');
}

/* ---- lists -------------------------------------------------------------------------------------- */

void ref_jout_storages(struct skv_buf *b, const struct skv_storage_view *v, uint32_t n)
{
	ref_jout_name(b, "storages");
	ref_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++) {
		ref_jout_open(b, '{');
		storage_fields(b, &v[i]);
		ref_jout_close(b, '}');
	}
	ref_jout_close(b, ']');
}

void ref_jout_groups(struct skv_buf *b, const struct skv_group_view *v, uint32_t n)
{
	ref_jout_name(b, "groups");
	ref_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++) {
		ref_jout_open(b, '{');
		group_fields(b, &v[i]);
		ref_jout_close(b, '}');
	}
	ref_jout_close(b, ']');
}

void ref_jout_instances(struct skv_buf *b, const struct skv_instance_view *v, uint32_t n)
{
	ref_jout_name(b, "instances");
	ref_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++) {
		ref_jout_open(b, '{');
		instance_fields(b, &v[i]);
		ref_jout_close(b, '}');
	}
	ref_jout_close(b, ']');
}

void ref_write_storage_list(struct skv_buf *out, const struct skv_storage_view *v, uint32_t n)
{
	ref_jout_begin(out);
	ref_jout_storages(out, v, n);
	ref_jout_close(out, '}');
}

void ref_write_group_list(struct skv_buf *out, const struct skv_group_view *v, uint32_t n)
{
	ref_jout_begin(out);
	ref_jout_groups(out, v, n);
	ref_jout_close(out, '}');
}

void ref_write_instance_list(struct skv_buf *out, const struct skv_instance_view *v, uint32_t n)
{
	ref_jout_begin(out);
	ref_jout_instances(out, v, n);
	ref_jout_close(out, '}');
}

/* ---- read by clients ---------------------------------------------------------------------------- */

static uint64_t count(struct ref_jdoc *d, const struct ref_jat *object, const char *name)
{
	struct ref_jat at = ref_jat_get(object, name);

	return ref_jat_u64(d, &at, 0, UINT64_MAX);
}

/* What managers of before did not tell. */
static uint64_t count_or_0(struct ref_jdoc *d, const struct ref_jat *object, const char *name)
{
	struct ref_jat at = ref_jat_get(object, name);

	return at.v ? ref_jat_u64(d, &at, 0, UINT64_MAX) : 0;
}

static const char *name_of(struct ref_jdoc *d, const struct ref_jat *object, const char *name)
{
	struct ref_jat at = ref_jat_get(object, name);

	return ref_jat_name(d, &at);
}

static const char *model_name_of(struct ref_jdoc *d, const struct ref_jat *object, const char *name)
{
	struct ref_jat at = ref_jat_get(object, name);

	return ref_jat_model_name(d, &at);
}

static void read_storage_state(struct ref_jdoc *d, const struct ref_jat *top, struct skv_storage_view *v)
{
	struct ref_jat uuid = ref_jat_get(top, "uuid"), healthy = ref_jat_get(top, "healthy"),
		       problem = ref_jat_get(top, "problem"), files = ref_jat_get(top, "files"),
		       draining = ref_jat_get(top, "draining_files"), bad = ref_jat_get(top, "bad_files");
	const char *text = ref_jat_string(d, &uuid, 36, 36);
	uint8_t bytes[16];

	if (ref_jdoc_ok(d) && skv_uuid_from_text(text, bytes) != SKV_OK)
		ref_jdoc_fail(d, &uuid, SKV_E_INVALID, "is not a UUID");
	else
		memcpy(v->uuid, text, strlen(text) + 1);
	v->healthy = ref_jat_bool(d, &healthy);
	v->problem = ref_jat_string(d, &problem, 0, 4096);
	v->files = ref_jat_u32(d, &files, 0, UINT32_MAX);
	v->draining_files = draining.v ? ref_jat_u32(d, &draining, 0, UINT32_MAX) : 0;
	v->bad_files = bad.v ? ref_jat_u32(d, &bad, 0, UINT32_MAX) : 0;
	v->file_bytes = count(d, top, "file_bytes");
	v->assigned_bytes = count(d, top, "assigned_bytes");
	v->used_bytes = count(d, top, "used_bytes");
	v->quarantined_bytes = count(d, top, "quarantined_bytes");
	v->free_bytes = count(d, top, "free_bytes");
}

int ref_read_storage_view(const struct skv_v1_in *in, const char *text, size_t n,
			     struct skv_storage_view *out, struct skv_error *err)
{
	struct skv_storage_view v = { .problem = "" };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_OBJECT, err);

	ref_jat_storage(&d, &top, &v.spec);
	v.spec.name = name_of(&d, &top, "name");
	read_storage_state(&d, &top, &v);
	if (ref_jdoc_ok(&d))
		*out = v;
	return ref_jdoc_close(&d);
}

int ref_read_group_view(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_group_view *out, struct skv_error *err)
{
	struct skv_group_view v = { .blocks = 0 };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_OBJECT, err);

	ref_jat_group(&d, &top, &v.spec);
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
	if (ref_jdoc_ok(&d))
		*out = v;
	return ref_jdoc_close(&d);
}

static void read_placements(struct ref_jdoc *d, const struct ref_jat *top, struct skv_instance_view *out)
{
	struct ref_jat at = ref_jat_get(top, "placements");
	struct skv_placement *v;

	if (!at.v)
		return;
	out->n_placements = ref_jat_array(d, &at, 0, SKV_MAX_PLACEMENTS);
	v = ref_jdoc_alloc(d, out->n_placements + 1, sizeof *v);
	for (uint32_t i = 0; v && i < out->n_placements; i++) {
		struct ref_jat item = ref_jat_item(&at, i);

		v[i] = (struct skv_placement){ .storage = name_of(d, &item, "storage"), .spec = name_of(d, &item, "spec"),
					       .fit = name_of(d, &item, "fit"), .slot_bytes = count(d, &item, "slot_bytes"),
					       .wasted_bytes = count(d, &item, "wasted_bytes"),
					       .copied_bytes = count(d, &item, "copied_bytes") };
	}
	out->placements = v;
}

int ref_read_instance_view(const struct skv_v1_in *in, const char *text, size_t n,
			      struct skv_instance_view *out, struct skv_error *err)
{
	struct skv_instance_view v = { .blocks = 0 };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_OBJECT, err);

	ref_jat_instance(&d, &top, &v.spec);
	v.spec.id = model_name_of(&d, &top, "id");
	v.spec.tenant = model_name_of(&d, &top, "tenant");
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
	if (ref_jdoc_ok(&d))
		*out = v;
	return ref_jdoc_close(&d);
}
