/*
 * objects.c - bodies of PUT for storages, groups and instances, and their fields inside views.
 *
 * Written by people, so defaults are kind (type "file", group "default") and sizes may be "64M". What
 * can be judged from the body alone is judged here; what needs the registry is the core's.
 * `name` and `id` come from the path, never from the body.
 *
 * No state; any thread.
 */
#include "parts.h"

#include <string.h>

/* Storages that have no directory of ours. */
static bool without_root(const char *type) { return strcmp(type, "null") == 0 || strcmp(type, "external") == 0; }

/* Fields that need not be there; left out of what is written, too, when they say nothing. */
static const char *text_or_none(struct ref_jdoc *d, const struct ref_jat *object, const char *name, size_t max)
{
	struct ref_jat at = ref_jat_get(object, name);

	return at.v ? ref_jat_string(d, &at, 0, max) : "";
}

static uint64_t size_or_0(struct ref_jdoc *d, const struct ref_jat *object, const char *name, uint64_t max)
{
	struct ref_jat at = ref_jat_get(object, name);

	return at.v ? ref_jat_size(d, &at, 0, max) : 0;
}

static bool bool_or_false(struct ref_jdoc *d, const struct ref_jat *object, const char *name)
{
	struct ref_jat at = ref_jat_get(object, name);

	return at.v && ref_jat_bool(d, &at);
}

static void write_text(struct skv_buf *b, const char *name, const char *s)
{
	if (s && *s)
		ref_jout_field_string(b, name, s);
}

static void read_marks(struct ref_jdoc *d, const struct ref_jat *object, uint32_t *high, uint32_t *low)
{
	*high = (uint32_t)size_or_0(d, object, "high_percent", 100);
	*low = (uint32_t)size_or_0(d, object, "low_percent", 100);
}

static void write_number(struct skv_buf *b, const char *name, uint64_t v)
{
	if (v)
		ref_jout_field_u64(b, name, v);
}

static void read_masters(struct ref_jdoc *d, const struct ref_jat *at, struct skv_storage_spec *out)
{
	struct ref_jat masters = ref_jat_get(at, "fs_master");
	const char **urls;

	if (!masters.v)
		return;
	out->n_fs_master = ref_jat_array(d, &masters, 0, SKV_MAX_FS_MASTERS);
	urls = ref_jdoc_alloc(d, out->n_fs_master + 1, sizeof *urls);
	for (uint32_t i = 0; urls && i < out->n_fs_master; i++) {
		struct ref_jat item = ref_jat_item(&masters, i);

		urls[i] = ref_jat_string(d, &item, 1, SKV_MAX_URL);
	}
	out->fs_master = urls;
}

static void read_root(struct ref_jdoc *d, const struct ref_jat *at, struct skv_storage_spec *out)
{
	struct ref_jat root = ref_jat_get(at, "root");
	bool none = without_root(out->type) || out->n_fs_master > 0;

	out->root = "";
	if (root.v || !none)
		out->root = ref_jat_string(d, &root, none ? 0 : 1, SKV_MAX_ROOT);
	if (ref_jdoc_ok(d) && out->root[0] && out->root[0] != '/')
		ref_jdoc_fail(d, &root, SKV_E_INVALID, "must be an absolute directory, like /data/kv");
}

static void read_sizes(struct ref_jdoc *d, const struct ref_jat *at, struct skv_storage_spec *out)
{
	struct ref_jat capacity = ref_jat_get(at, "capacity"), file_size = ref_jat_get(at, "file_size"),
		       unit = ref_jat_get(at, "unit");

	out->capacity = ref_jat_size(d, &capacity, 1, UINT64_MAX);
	if (file_size.v)
		out->file_size = ref_jat_size(d, &file_size, 0, UINT64_MAX);
	if (unit.v)
		out->unit = ref_jat_size(d, &unit, 0, UINT64_MAX);
	if (out->unit & (out->unit - 1))
		ref_jdoc_fail(d, &unit, SKV_E_INVALID, "must be a power of two");
	else if (out->unit && out->capacity % out->unit)
		ref_jdoc_fail(d, &capacity, SKV_E_INVALID, "must be a multiple of the unit, %llu",
			      (unsigned long long)out->unit);
}

void ref_jat_storage(struct ref_jdoc *d, const struct ref_jat *at, struct skv_storage_spec *out)
{
	struct ref_jat type = ref_jat_get(at, "type"), enabled = ref_jat_get(at, "enabled");

	out->name = NULL;
	out->type = type.v ? ref_jat_name(d, &type) : "file";
	read_masters(d, at, out);
	read_root(d, at, out);
	read_sizes(d, at, out);
	out->enabled = enabled.v ? ref_jat_bool(d, &enabled) : true;
	out->draining = bool_or_false(d, at, "draining");
	out->client_root = text_or_none(d, at, "client_root", SKV_MAX_ROOT);
	out->client_mount = text_or_none(d, at, "client_mount", SKV_MAX_ROOT);
	out->extra = text_or_none(d, at, "extra", SKV_MAX_EXTRA);
	read_marks(d, at, &out->high_percent, &out->low_percent);
	out->chunk_size = size_or_0(d, at, "chunk_size", UINT64_MAX);
	out->any_mount = bool_or_false(d, at, "any_mount");
}

void ref_jout_storage_fields(struct skv_buf *b, const struct skv_storage_spec *s)
{
	ref_jout_field_string(b, "type", s->type);
	ref_jout_field_string(b, "root", s->root);
	ref_jout_field_u64(b, "capacity", s->capacity);
	ref_jout_field_u64(b, "file_size", s->file_size);
	ref_jout_field_u64(b, "unit", s->unit);
	ref_jout_field_bool(b, "enabled", s->enabled);
	if (s->draining)
		ref_jout_field_bool(b, "draining", true);
	write_text(b, "client_root", s->client_root);
	write_text(b, "client_mount", s->client_mount);
	write_text(b, "extra", s->extra);
	write_number(b, "high_percent", s->high_percent);
	write_number(b, "low_percent", s->low_percent);
	write_number(b, "chunk_size", s->chunk_size);
	if (s->any_mount)
		ref_jout_field_bool(b, "any_mount", true);
	if (s->n_fs_master)
		ref_jout_field_strings(b, "fs_master", s->fs_master, s->n_fs_master);
}

static const char *const quota_fields[] = { "type", "capacity", "reclaim", NULL };

static void read_quotas(struct ref_jdoc *d, const struct ref_jat *at, struct skv_group_spec *out)
{
	uint32_t n = ref_jat_array(d, at, 0, SKV_MAX_QUOTAS);
	struct skv_type_quota *quotas = ref_jdoc_alloc(d, n + 1, sizeof *quotas);
	
	for (uint32_t i = 0; quotas && i < n; i++) {
		struct ref_jat item = ref_jat_item(at, i);
		struct ref_jat type = ref_jat_get(&item, "type");

		ref_jat_object(d, &item, quota_fields);
		quotas[i].type = ref_jat_name(d, &type);
		quotas[i].capacity = size_or_0(d, &item, "capacity", UINT64_MAX);
		quotas[i].reclaim = size_or_0(d, &item, "reclaim", UINT64_MAX);
	}
	out->quotas = quotas;
	out->n_quotas = n;
}

static const char *const shares[] = { "group", "proportional", "fixed", NULL };

static void read_limits(struct ref_jdoc *d, const struct ref_jat *at, struct skv_group_spec *out)
{
	struct ref_jat quotas = ref_jat_get(at, "quotas"), share = ref_jat_get(at, "share");

	out->loose_storages = bool_or_false(d, at, "loose_storages");
	if (quotas.v)
		read_quotas(d, &quotas, out);
	out->max_blocks = size_or_0(d, at, "max_blocks", UINT64_MAX);
	out->max_instances = (uint32_t)size_or_0(d, at, "max_instances", UINT32_MAX);
	out->reclaim_bytes = size_or_0(d, at, "reclaim_bytes", UINT64_MAX);
	out->reclaim_blocks = size_or_0(d, at, "reclaim_blocks", UINT64_MAX);
	out->reclaim_step_bytes = size_or_0(d, at, "reclaim_step_bytes", UINT64_MAX);
	out->reclaim_step_percent = (uint32_t)size_or_0(d, at, "reclaim_step_percent", 100);
	out->reclaim_period_ms = (uint32_t)size_or_0(d, at, "reclaim_period_ms", UINT32_MAX);
	out->max_idle_ms = size_or_0(d, at, "max_idle_ms", UINT64_MAX);
	out->policy = text_or_none(d, at, "policy", SKV_MAX_NAME);
	out->ttl_ms = size_or_0(d, at, "ttl_ms", UINT64_MAX);
	out->version = size_or_0(d, at, "version", UINT64_MAX);
	read_marks(d, at, &out->high_percent, &out->low_percent);
	out->pin_percent = (uint32_t)size_or_0(d, at, "pin_percent", 100);
	if (share.v)
		out->share = ref_jat_word(d, &share, shares);
	out->extra = text_or_none(d, at, "extra", SKV_MAX_EXTRA);
}

static void write_limits(struct skv_buf *b, const struct skv_group_spec *g)
{
	if (g->loose_storages)
		ref_jout_field_bool(b, "loose_storages", true);
	if (g->n_quotas) {
		ref_jout_name(b, "quotas");
		ref_jout_open(b, '[');
	}
	for (uint32_t i = 0; i < g->n_quotas; i++) {
		ref_jout_open(b, '{');
		ref_jout_field_string(b, "type", g->quotas[i].type);
		write_number(b, "capacity", g->quotas[i].capacity);
		write_number(b, "reclaim", g->quotas[i].reclaim);
		ref_jout_close(b, '}');
	}
	if (g->n_quotas)
		ref_jout_close(b, ']');
	write_number(b, "max_blocks", g->max_blocks);
	write_number(b, "max_instances", g->max_instances);
	write_number(b, "reclaim_bytes", g->reclaim_bytes);
	write_number(b, "reclaim_blocks", g->reclaim_blocks);
	write_number(b, "reclaim_step_bytes", g->reclaim_step_bytes);
	write_number(b, "reclaim_step_percent", g->reclaim_step_percent);
	write_number(b, "reclaim_period_ms", g->reclaim_period_ms);
	write_number(b, "max_idle_ms", g->max_idle_ms);
	write_text(b, "policy", g->policy);
	write_number(b, "ttl_ms", g->ttl_ms);
	write_number(b, "version", g->version);
	write_number(b, "high_percent", g->high_percent);
	write_number(b, "low_percent", g->low_percent);
	write_number(b, "pin_percent", g->pin_percent);
	if (g->share != SKV_SHARE_GROUP)
		ref_jout_field_string(b, "share", shares[g->share]);
	write_text(b, "extra", g->extra);
}

void ref_jat_group(struct ref_jdoc *d, const struct ref_jat *at, struct skv_group_spec *out)
{
	struct ref_jat capacity = ref_jat_get(at, "capacity"), storages = ref_jat_get(at, "storages");

	out->name = NULL;
	if (capacity.v)
		out->capacity = ref_jat_size(d, &capacity, 0, UINT64_MAX);
	read_limits(d, at, out);
	out->storages = ref_jat_names(d, &storages, out->loose_storages ? 0 : 1, SKV_JMAX_OBJECT, &out->n_storages);
}

void ref_jout_group_fields(struct skv_buf *b, const struct skv_group_spec *g)
{
	ref_jout_field_u64(b, "capacity", g->capacity);
	ref_jout_field_strings(b, "storages", g->storages, g->n_storages);
	write_limits(b, g);
}

static void read_spec(struct ref_jdoc *d, const struct ref_jat *at, struct skv_spec *out)
{
	static const char *const fields[] = { "name", "size", NULL };
	struct ref_jat name = ref_jat_get(at, "name"), size = ref_jat_get(at, "size");

	ref_jat_object(d, at, fields);
	out->name = ref_jat_name(d, &name);
	out->size = ref_jat_size(d, &size, SKV_MIN_SPEC_SIZE, SKV_MAX_SPEC_SIZE);
}

static void read_specs(struct ref_jdoc *d, const struct ref_jat *at, struct skv_instance_spec *out)
{
	uint32_t n = ref_jat_array(d, at, 1, SKV_MAX_SPECS);
	struct skv_spec *specs = ref_jdoc_alloc(d, n, sizeof *specs);

	for (uint32_t i = 0; specs && i < n; i++) {
		struct ref_jat item = ref_jat_item(at, i);
		struct ref_jat name = ref_jat_get(&item, "name");

		read_spec(d, &item, &specs[i]);
		for (uint32_t j = 0; j < i && ref_jdoc_ok(d); j++)
			if (strcmp(specs[i].name, specs[j].name) == 0)
				ref_jdoc_fail(d, &name, SKV_E_INVALID, "'%s' is named twice",
					      specs[i].name);
	}
	out->specs = specs;
	out->n_specs = n;
}

void ref_jat_instance(struct ref_jdoc *d, const struct ref_jat *at, struct skv_instance_spec *out)
{
	struct ref_jat group = ref_jat_get(at, "group"), tokens = ref_jat_get(at, "block_tokens"),
		       specs = ref_jat_get(at, "specs"), extra = ref_jat_get(at, "extra");

	out->tenant = d->in->tenant;
	out->id = NULL;
	out->group = group.v ? ref_jat_name(d, &group) : "default";
	if (tokens.v)
		out->block_tokens = ref_jat_u32(d, &tokens, 0, UINT32_MAX);
	read_specs(d, &specs, out);
	out->extra = extra.v ? ref_jat_string(d, &extra, 0, SKV_MAX_EXTRA) : "";
	out->numbered = bool_or_false(d, at, "numbered");
	out->named = bool_or_false(d, at, "named");
	out->weight = (uint32_t)size_or_0(d, at, "weight", SKV_MAX_WEIGHT);
	out->capacity = size_or_0(d, at, "capacity", UINT64_MAX);
}

void ref_jout_instance_fields(struct skv_buf *b, const struct skv_instance_spec *i)
{
	ref_jout_field_string(b, "group", i->group);
	ref_jout_field_u64(b, "block_tokens", i->block_tokens);
	ref_jout_name(b, "specs");
	ref_jout_open(b, '[');
	for (uint32_t s = 0; s < i->n_specs; s++) {
		ref_jout_open(b, '{');
		ref_jout_field_string(b, "name", i->specs[s].name);
		ref_jout_field_u64(b, "size", i->specs[s].size);
		ref_jout_close(b, '}');
	}
	ref_jout_close(b, ']');
	ref_jout_field_string(b, "extra", i->extra);
	if (i->numbered)
		ref_jout_field_bool(b, "numbered", true);
	if (i->named)
		ref_jout_field_bool(b, "named", true);
	write_number(b, "weight", i->weight);
	write_number(b, "capacity", i->capacity);
}

/* ---- the bodies --------------------------------------------------------------------------------- */

int ref_read_storage(const struct skv_v1_in *in, const char *text, size_t n,
			struct skv_storage_spec *out, struct skv_error *err)
{
	static const char *const fields[] = { "type", "root", "capacity", "file_size", "unit", "enabled", "draining",
					      "client_root", "client_mount", "extra", "high_percent",
					      "low_percent", "chunk_size", "any_mount",
					      "fs_master", NULL };
	struct skv_storage_spec s = { .name = NULL };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_OBJECT, err);

	ref_jat_object(&d, &top, fields);
	ref_jat_storage(&d, &top, &s);
	if (ref_jdoc_ok(&d))
		*out = s;
	return ref_jdoc_close(&d);
}

int ref_read_group(const struct skv_v1_in *in, const char *text, size_t n, struct skv_group_spec *out,
		      struct skv_error *err)
{
	static const char *const fields[] = {
		"capacity", "storages", "loose_storages", "quotas", "max_blocks", "max_instances", "reclaim_bytes",
		"policy", "ttl_ms",
		"reclaim_blocks", "reclaim_step_bytes", "reclaim_step_percent", "reclaim_period_ms", "max_idle_ms",
		"version", "extra", "high_percent", "low_percent", "pin_percent", "share", NULL
	};
	struct skv_group_spec g = { .name = NULL };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_OBJECT, err);

	ref_jat_object(&d, &top, fields);
	ref_jat_group(&d, &top, &g);
	if (ref_jdoc_ok(&d))
		*out = g;
	return ref_jdoc_close(&d);
}

int ref_read_instance(const struct skv_v1_in *in, const char *text, size_t n,
			 struct skv_instance_spec *out, struct skv_error *err)
{
	static const char *const fields[] = { "group", "block_tokens", "specs", "extra", "numbered", "named",
					      "weight", "capacity", NULL };
	struct skv_instance_spec i = { .id = NULL };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_OBJECT, err);

	ref_jat_object(&d, &top, fields);
	ref_jat_instance(&d, &top, &i);
	if (ref_jdoc_ok(&d))
		*out = i;
	return ref_jdoc_close(&d);
}

void ref_write_storage(struct skv_buf *out, const struct skv_storage_spec *s)
{
	ref_jout_begin(out);
	ref_jout_storage_fields(out, s);
	ref_jout_close(out, '}');
}

void ref_write_group(struct skv_buf *out, const struct skv_group_spec *g)
{
	ref_jout_begin(out);
	ref_jout_group_fields(out, g);
	ref_jout_close(out, '}');
}

void ref_write_instance(struct skv_buf *out, const struct skv_instance_spec *i)
{
	ref_jout_begin(out);
	ref_jout_instance_fields(out, i);
	ref_jout_close(out, '}');
}
