/*
 * pb_objects.c - storages, groups and instances in protobuf: bodies of PUT, views, lists, and the
 * manager's numbers, through protobuf-c.
 *
 * The same defaults and checks as objects.c and views.c have for JSON. No state; any thread.
 */
#include "pb_gen.h"

#include <skv/superblock.h>

/* Storages that have no directory of ours. */
static bool without_root(const char *type) { return strcmp(type, "null") == 0 || strcmp(type, "external") == 0; }

#define FAIL(d, name, ...) skv_pb_fail(d, name, PB_NO_INDEX, SKV_E_INVALID, __VA_ARGS__)

/* ---- specs, read -------------------------------------------------------------------------------- */

static void check_percent(struct skv_pbdoc *d, const char *name, uint32_t percent)
{
	if (percent > 100)
		FAIL(d, name, "must be at most 100, not %u", percent);
}

static void check_marks(struct skv_pbdoc *d, uint32_t high, uint32_t low)
{
	check_percent(d, "high_percent", high);
	check_percent(d, "low_percent", low);
}

static void check_root(struct skv_pbdoc *d, const struct skv_storage_spec *s)
{
	if (!*s->root && !without_root(s->type) && !s->n_fs_master)
		FAIL(d, "root", "the field is required");
	else if (*s->root && *s->root != '/')
		FAIL(d, "root", "must be an absolute directory, like /data/kv");
}

static void take_masters(struct skv_pbdoc *d, const Slabkv__V1__StorageSpec *m, struct skv_storage_spec *out)
{
	const char **urls;

	skv_pb_count(d, "fs_master", m->n_fs_master, 0, SKV_MAX_FS_MASTERS);
	urls = skv_pb_alloc(d, m->n_fs_master + 1, sizeof *urls);
	for (uint32_t i = 0; urls && i < m->n_fs_master && skv_pb_ok(d); i++) {
		urls[i] = skv_pb_check_text(d, m->fs_master[i], "fs_master", SKV_MAX_URL);
		if (!*urls[i])
			skv_pb_fail(d, "fs_master", i, SKV_E_INVALID, "must not be empty");
		out->n_fs_master = i + 1;
	}
	out->fs_master = urls;
}

static void take_storage(struct skv_pbdoc *d, const Slabkv__V1__StorageSpec *m,
			 struct skv_storage_spec *out)
{
	out->type = *m->type ? skv_pb_check_name(d, m->type, "type", PB_NO_INDEX) : "file";
	out->root = skv_pb_check_text(d, m->root, "root", SKV_MAX_ROOT);
	out->capacity = m->capacity;
	out->file_size = m->file_size;
	out->unit = m->unit;
	out->enabled = m->presence_of_enabled_case ==
				       SLABKV__V1__STORAGE_SPEC__PRESENCE_OF_ENABLED_ENABLED
			       ? m->enabled
			       : true;
	out->draining = m->draining;
	out->client_root = skv_pb_check_text(d, m->client_root, "client_root", SKV_MAX_ROOT);
	out->client_mount = skv_pb_check_text(d, m->client_mount, "client_mount", SKV_MAX_ROOT);
	out->extra = skv_pb_check_text(d, m->extra, "extra", SKV_MAX_EXTRA);
	out->high_percent = m->high_percent;
	out->low_percent = m->low_percent;
	check_marks(d, m->high_percent, m->low_percent);
	out->chunk_size = m->chunk_size;
	out->any_mount = m->any_mount;
	take_masters(d, m, out);
	check_root(d, out);
	if (out->capacity == 0)
		FAIL(d, "capacity", "the field is required");
	else if (out->unit & (out->unit - 1))
		FAIL(d, "unit", "must be a power of two");
	else if (out->unit && out->capacity % out->unit)
		FAIL(d, "capacity", "must be a multiple of the unit, %llu",
		     (unsigned long long)out->unit);
}

static void take_quotas(struct skv_pbdoc *d, const Slabkv__V1__GroupSpec *m, struct skv_group_spec *out)
{
	struct skv_type_quota *quotas;

	skv_pb_count(d, "quotas", m->n_quotas, 0, SKV_MAX_QUOTAS);
	quotas = skv_pb_alloc(d, m->n_quotas + 1, sizeof *quotas);
	for (uint32_t i = 0; quotas && i < m->n_quotas && skv_pb_ok(d); i++) {
		struct skv_pbat here = { d->at, "quotas", i };

		d->at = &here;
		quotas[i].type = skv_pb_check_name(d, m->quotas[i]->type, "type", PB_NO_INDEX);
		quotas[i].capacity = m->quotas[i]->capacity;
		quotas[i].reclaim = m->quotas[i]->reclaim;
		d->at = here.up;
	}
	out->quotas = quotas;
	out->n_quotas = (uint32_t)m->n_quotas;
}

static void take_limits(struct skv_pbdoc *d, const Slabkv__V1__GroupSpec *m, struct skv_group_spec *out)
{
	out->loose_storages = m->loose_storages;
	take_quotas(d, m, out);
	out->max_blocks = m->max_blocks;
	out->max_instances = m->max_instances;
	out->reclaim_bytes = m->reclaim_bytes;
	out->reclaim_blocks = m->reclaim_blocks;
	out->reclaim_step_bytes = m->reclaim_step_bytes;
	out->reclaim_step_percent = m->reclaim_step_percent;
	out->reclaim_period_ms = m->reclaim_period_ms;
	out->max_idle_ms = m->max_idle_ms;
	out->policy = skv_pb_check_text(d, m->policy, "policy", SKV_MAX_NAME);
	out->ttl_ms = m->ttl_ms;
	out->version = m->version;
	out->extra = skv_pb_check_text(d, m->extra, "extra", SKV_MAX_EXTRA);
	out->high_percent = m->high_percent;
	out->low_percent = m->low_percent;
	out->pin_percent = m->pin_percent;
	check_marks(d, m->high_percent, m->low_percent);
	check_percent(d, "pin_percent", m->pin_percent);
	if ((unsigned)m->share > SKV_SHARE_FIXED)
		FAIL(d, "share", "must be at most %d", SKV_SHARE_FIXED);
	else
		out->share = (enum skv_share)m->share;
}

static void take_group(struct skv_pbdoc *d, const Slabkv__V1__GroupSpec *m,
		       struct skv_group_spec *out)
{
	out->capacity = m->capacity;
	take_limits(d, m, out);
	skv_pb_count(d, "storages", m->n_storages, out->loose_storages ? 0 : 1, SKV_PB_FIELDS);
	for (uint32_t i = 0; i < m->n_storages && skv_pb_ok(d); i++) {
		skv_pb_check_name(d, m->storages[i], "storages", i);
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(m->storages[i], m->storages[j]) == 0)
				skv_pb_fail(d, "storages", i, SKV_E_INVALID, "'%s' is named twice",
					    m->storages[i]);
	}
	out->storages = (const char *const *)m->storages;
	out->n_storages = (uint32_t)m->n_storages;
}

static void take_spec(struct skv_pbdoc *d, const Slabkv__V1__Spec *m, uint32_t i,
		      struct skv_spec *specs)
{
	struct skv_pbat here = { d->at, "specs", i };

	d->at = &here;
	specs[i].name = skv_pb_check_name(d, m->name, "name", PB_NO_INDEX);
	specs[i].size = m->size;
	if (m->size < SKV_MIN_SPEC_SIZE || m->size > SKV_MAX_SPEC_SIZE)
		FAIL(d, "size", "must be from %llu to %llu, not %llu", SKV_MIN_SPEC_SIZE,
		     SKV_MAX_SPEC_SIZE, (unsigned long long)m->size);
	for (uint32_t j = 0; j < i && skv_pb_ok(d); j++)
		if (strcmp(specs[i].name, specs[j].name) == 0)
			FAIL(d, "name", "'%s' is named twice", m->name);
	d->at = here.up;
}

static void take_instance(struct skv_pbdoc *d, const Slabkv__V1__InstanceSpec *m,
			  struct skv_instance_spec *out)
{
	struct skv_spec *specs;

	out->group = *m->group ? skv_pb_check_name(d, m->group, "group", PB_NO_INDEX) : "default";
	out->block_tokens = m->block_tokens;
	skv_pb_count(d, "specs", m->n_specs, 1, SKV_MAX_SPECS);
	specs = skv_pb_alloc(d, m->n_specs, sizeof *specs);
	for (uint32_t i = 0; specs && i < m->n_specs && skv_pb_ok(d); i++)
		take_spec(d, m->specs[i], i, specs);
	out->specs = specs;
	out->n_specs = (uint32_t)m->n_specs;
	out->extra = skv_pb_check_text(d, m->extra, "extra", SKV_MAX_EXTRA);
	out->numbered = m->numbered;
	out->named = m->named;
	out->weight = m->weight;
	out->capacity = m->capacity;
	if (m->weight > SKV_MAX_WEIGHT)
		FAIL(d, "weight", "must be at most %u, not %u", SKV_MAX_WEIGHT, m->weight);
}

int skv_pb_read_storage(const struct skv_v1_in *in, const char *text, size_t n,
			struct skv_storage_spec *out, struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_storage_spec s = { .name = NULL };
	Slabkv__V1__StorageSpec *m =
		skv_pb_unpack(&d, &slabkv__v1__storage_spec__descriptor, text, n);

	if (m)
		take_storage(&d, m, &s);
	if (skv_pb_ok(&d))
		*out = s;
	return d.status;
}

int skv_pb_read_group(const struct skv_v1_in *in, const char *text, size_t n,
		      struct skv_group_spec *out, struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_group_spec g = { .name = NULL };
	Slabkv__V1__GroupSpec *m =
		skv_pb_unpack(&d, &slabkv__v1__group_spec__descriptor, text, n);

	if (m)
		take_group(&d, m, &g);
	if (skv_pb_ok(&d))
		*out = g;
	return d.status;
}

int skv_pb_read_instance(const struct skv_v1_in *in, const char *text, size_t n,
			 struct skv_instance_spec *out, struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_instance_spec i = { .tenant = in->tenant };
	Slabkv__V1__InstanceSpec *m =
		skv_pb_unpack(&d, &slabkv__v1__instance_spec__descriptor, text, n);

	if (m)
		take_instance(&d, m, &i);
	if (skv_pb_ok(&d))
		*out = i;
	return d.status;
}

/* ---- views, read by clients --------------------------------------------------------------------- */

/* True when the spec is there; its fields are named below "spec". */
static bool enter_spec(struct skv_pbdoc *d, const void *spec, struct skv_pbat *at)
{
	*at = (struct skv_pbat){ d->at, "spec", PB_NO_INDEX };
	if (!spec)
		FAIL(d, "spec", "the field is required");
	else
		d->at = at;
	return spec != NULL;
}

static void take_storage_state(struct skv_pbdoc *d, const Slabkv__V1__StorageView *m,
			       struct skv_storage_view *v)
{
	uint8_t bytes[16];

	if (strlen(m->uuid) != 36 || skv_uuid_from_text(m->uuid, bytes) != SKV_OK)
		FAIL(d, "uuid", "is not a UUID");
	else
		memcpy(v->uuid, m->uuid, sizeof v->uuid);
	v->spec.name = skv_pb_check_name(d, m->name, "name", PB_NO_INDEX);
	v->healthy = m->healthy;
	v->problem = skv_pb_check_text(d, m->problem, "problem", 4096);
	v->files = m->files;
	v->draining_files = m->draining_files;
	v->bad_files = m->bad_files;
	v->file_bytes = m->file_bytes;
	v->assigned_bytes = m->assigned_bytes;
	v->used_bytes = m->used_bytes;
	v->quarantined_bytes = m->quarantined_bytes;
	v->free_bytes = m->free_bytes;
}

int skv_pb_read_storage_view(const struct skv_v1_in *in, const char *text, size_t n,
			     struct skv_storage_view *out, struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_storage_view v = { .problem = "" };
	Slabkv__V1__StorageView *m =
		skv_pb_unpack(&d, &slabkv__v1__storage_view__descriptor, text, n);
	struct skv_pbat at;

	if (m && enter_spec(&d, m->spec, &at)) {
		take_storage(&d, m->spec, &v.spec);
		d.at = at.up;
		take_storage_state(&d, m, &v);
	}
	if (skv_pb_ok(&d))
		*out = v;
	return d.status;
}

int skv_pb_read_group_view(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_group_view *out, struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_group_view v = { .blocks = 0 };
	Slabkv__V1__GroupView *m =
		skv_pb_unpack(&d, &slabkv__v1__group_view__descriptor, text, n);
	struct skv_pbat at;

	if (m && enter_spec(&d, m->spec, &at)) {
		take_group(&d, m->spec, &v.spec);
		d.at = at.up;
		v.spec.name = skv_pb_check_name(&d, m->name, "name", PB_NO_INDEX);
		v.blocks = m->blocks;
		v.used_bytes = m->used_bytes;
		v.room_bytes = m->room_bytes;
		v.pinned_bytes = m->pinned_bytes;
		v.soft_pinned_bytes = m->soft_pinned_bytes;
		v.leased_bytes = m->leased_bytes;
		v.open_bytes = m->open_bytes;
		v.evicted_blocks = m->evicted_blocks;
		v.hits = m->hits;
	}
	if (skv_pb_ok(&d))
		*out = v;
	return d.status;
}

static void take_placements(struct skv_pbdoc *d, const Slabkv__V1__InstanceView *m, struct skv_instance_view *out)
{
	struct skv_placement *v = skv_pb_alloc(d, m->n_placements + 1, sizeof *v);

	for (uint32_t i = 0; v && i < m->n_placements && skv_pb_ok(d); i++) {
		const Slabkv__V1__Placement *p = m->placements[i];
		struct skv_pbat here = { d->at, "placements", i };

		d->at = &here;
		v[i] = (struct skv_placement){ .storage = skv_pb_check_name(d, p->storage, "storage", PB_NO_INDEX),
					       .spec = skv_pb_check_name(d, p->spec, "spec", PB_NO_INDEX),
					       .fit = skv_pb_check_name(d, p->fit, "fit", PB_NO_INDEX),
					       .slot_bytes = p->slot_bytes, .wasted_bytes = p->wasted_bytes,
					       .copied_bytes = p->copied_bytes };
		d->at = here.up;
	}
	out->placements = v;
	out->n_placements = v ? (uint32_t)m->n_placements : 0;
}

int skv_pb_read_instance_view(const struct skv_v1_in *in, const char *text, size_t n,
			      struct skv_instance_view *out, struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_instance_view v = { .blocks = 0 };
	Slabkv__V1__InstanceView *m =
		skv_pb_unpack(&d, &slabkv__v1__instance_view__descriptor, text, n);
	struct skv_pbat at;

	if (m && enter_spec(&d, m->spec, &at)) {
		take_instance(&d, m->spec, &v.spec);
		d.at = at.up;
		v.spec.id = skv_pb_check_model_name(&d, m->id, "id", PB_NO_INDEX);
		v.spec.tenant = skv_pb_check_model_name(&d, m->tenant, "tenant", PB_NO_INDEX);
		v.blocks = m->blocks;
		v.used_bytes = m->used_bytes;
		v.open_sessions = m->open_sessions;
		v.open_bytes = m->open_bytes;
		v.leased_bytes = m->leased_bytes;
		v.share_bytes = m->share_bytes;
		v.pinned_bytes = m->pinned_bytes;
		v.soft_pinned_bytes = m->soft_pinned_bytes;
		v.evicted_blocks = m->evicted_blocks;
		v.hits = m->hits;
		take_placements(&d, m, &v);
	}
	if (skv_pb_ok(&d))
		*out = v;
	return d.status;
}

/* ---- specs, written ----------------------------------------------------------------------------- */

static char **make_texts(struct skv_pbmake *make, const char *const *v, uint32_t n)
{
	char **all = skv_pb_make(make, n, sizeof *all);

	for (uint32_t i = 0; all && i < n; i++)
		all[i] = skv_pb_make_text(make, v[i]);
	return all;
}

static Slabkv__V1__StorageSpec *make_storage(struct skv_pbmake *make,
					      const struct skv_storage_spec *s)
{
	Slabkv__V1__StorageSpec *m = skv_pb_make(make, 1, sizeof *m);

	if (!m)
		return NULL;
	slabkv__v1__storage_spec__init(m);
	m->type = skv_pb_make_text(make, s->type);
	m->root = skv_pb_make_text(make, s->root);
	m->capacity = s->capacity;
	m->file_size = s->file_size;
	m->unit = s->unit;
	m->presence_of_enabled_case = SLABKV__V1__STORAGE_SPEC__PRESENCE_OF_ENABLED_ENABLED;
	m->enabled = s->enabled;
	m->draining = s->draining;
	m->client_root = skv_pb_make_text(make, s->client_root ? s->client_root : "");
	m->client_mount = skv_pb_make_text(make, s->client_mount ? s->client_mount : "");
	m->extra = skv_pb_make_text(make, s->extra ? s->extra : "");
	m->high_percent = s->high_percent;
	m->low_percent = s->low_percent;
	m->chunk_size = s->chunk_size;
	m->any_mount = s->any_mount;
	m->fs_master = make_texts(make, s->fs_master, s->n_fs_master);
	m->n_fs_master = m->fs_master ? s->n_fs_master : 0;
	return m;
}

static void init_quota(void *m) { slabkv__v1__type_quota__init(m); }

static void make_limits(struct skv_pbmake *make, const struct skv_group_spec *g, Slabkv__V1__GroupSpec *m)
{
	m->loose_storages = g->loose_storages;
	m->quotas = (void *)skv_pb_make_messages(make, g->n_quotas, sizeof **m->quotas, init_quota);
	m->n_quotas = m->quotas ? g->n_quotas : 0;
	for (uint32_t i = 0; i < m->n_quotas; i++) {
		m->quotas[i]->type = skv_pb_make_text(make, g->quotas[i].type);
		m->quotas[i]->capacity = g->quotas[i].capacity;
		m->quotas[i]->reclaim = g->quotas[i].reclaim;
	}
	m->max_blocks = g->max_blocks;
	m->max_instances = g->max_instances;
	m->reclaim_bytes = g->reclaim_bytes;
	m->reclaim_blocks = g->reclaim_blocks;
	m->reclaim_step_bytes = g->reclaim_step_bytes;
	m->reclaim_step_percent = g->reclaim_step_percent;
	m->reclaim_period_ms = g->reclaim_period_ms;
	m->max_idle_ms = g->max_idle_ms;
	m->policy = skv_pb_make_text(make, g->policy ? g->policy : "");
	m->ttl_ms = g->ttl_ms;
	m->version = g->version;
	m->extra = skv_pb_make_text(make, g->extra ? g->extra : "");
	m->high_percent = g->high_percent;
	m->low_percent = g->low_percent;
	m->pin_percent = g->pin_percent;
	m->share = (Slabkv__V1__Share)g->share;
}

static Slabkv__V1__GroupSpec *make_group(struct skv_pbmake *make, const struct skv_group_spec *g)
{
	Slabkv__V1__GroupSpec *m = skv_pb_make(make, 1, sizeof *m);

	if (!m)
		return NULL;
	slabkv__v1__group_spec__init(m);
	m->capacity = g->capacity;
	m->n_storages = g->n_storages;
	m->storages = make_texts(make, g->storages, g->n_storages);
	make_limits(make, g, m);
	return m;
}

static void init_spec(void *m) { slabkv__v1__spec__init(m); }

static Slabkv__V1__InstanceSpec *make_instance(struct skv_pbmake *make,
						const struct skv_instance_spec *i)
{
	Slabkv__V1__InstanceSpec *m = skv_pb_make(make, 1, sizeof *m);

	if (!m)
		return NULL;
	slabkv__v1__instance_spec__init(m);
	m->group = skv_pb_make_text(make, i->group);
	m->block_tokens = i->block_tokens;
	m->extra = skv_pb_make_text(make, i->extra);
	m->numbered = i->numbered;
	m->named = i->named;
	m->weight = i->weight;
	m->capacity = i->capacity;
	m->specs = (void *)skv_pb_make_messages(make, i->n_specs, sizeof **m->specs, init_spec);
	if (!m->specs)
		return NULL;
	m->n_specs = i->n_specs;
	for (uint32_t s = 0; s < i->n_specs; s++) {
		m->specs[s]->name = skv_pb_make_text(make, i->specs[s].name);
		m->specs[s]->size = i->specs[s].size;
	}
	return m;
}

void skv_pb_write_storage(struct skv_buf *out, const struct skv_storage_spec *s)
{
	struct skv_pbmake make;

	skv_pb_make_begin(&make);
	skv_pb_pack(&make, out, make_storage(&make, s));
}

void skv_pb_write_group(struct skv_buf *out, const struct skv_group_spec *g)
{
	struct skv_pbmake make;

	skv_pb_make_begin(&make);
	skv_pb_pack(&make, out, make_group(&make, g));
}

void skv_pb_write_instance(struct skv_buf *out, const struct skv_instance_spec *i)
{
	struct skv_pbmake make;

	skv_pb_make_begin(&make);
	skv_pb_pack(&make, out, make_instance(&make, i));
}

/* ---- views, written ----------------------------------------------------------------------------- */

static void fill_storage(struct skv_pbmake *make, const struct skv_storage_view *v,
			 Slabkv__V1__StorageView *m)
{
	m->name = skv_pb_make_text(make, v->spec.name);
	m->spec = make_storage(make, &v->spec);
	m->uuid = skv_pb_make_text(make, v->uuid);
	m->healthy = v->healthy;
	m->problem = skv_pb_make_text(make, v->problem);
	m->files = v->files;
	m->draining_files = v->draining_files;
	m->bad_files = v->bad_files;
	m->file_bytes = v->file_bytes;
	m->assigned_bytes = v->assigned_bytes;
	m->used_bytes = v->used_bytes;
	m->quarantined_bytes = v->quarantined_bytes;
	m->free_bytes = v->free_bytes;
}

static void fill_group(struct skv_pbmake *make, const struct skv_group_view *v,
		       Slabkv__V1__GroupView *m)
{
	m->name = skv_pb_make_text(make, v->spec.name);
	m->spec = make_group(make, &v->spec);
	m->blocks = v->blocks;
	m->used_bytes = v->used_bytes;
	m->room_bytes = v->room_bytes;
	m->pinned_bytes = v->pinned_bytes;
	m->soft_pinned_bytes = v->soft_pinned_bytes;
	m->leased_bytes = v->leased_bytes;
	m->open_bytes = v->open_bytes;
	m->evicted_blocks = v->evicted_blocks;
	m->hits = v->hits;
}

static void init_placement(void *m) { slabkv__v1__placement__init(m); }

static void make_placements(struct skv_pbmake *make, const struct skv_instance_view *v, Slabkv__V1__InstanceView *m)
{
	m->placements = (void *)skv_pb_make_messages(make, v->n_placements, sizeof **m->placements, init_placement);
	m->n_placements = m->placements ? v->n_placements : 0;
	for (uint32_t i = 0; i < m->n_placements; i++) {
		Slabkv__V1__Placement *p = m->placements[i];

		p->storage = skv_pb_make_text(make, v->placements[i].storage);
		p->spec = skv_pb_make_text(make, v->placements[i].spec);
		p->fit = skv_pb_make_text(make, v->placements[i].fit);
		p->slot_bytes = v->placements[i].slot_bytes;
		p->wasted_bytes = v->placements[i].wasted_bytes;
		p->copied_bytes = v->placements[i].copied_bytes;
	}
}

static void fill_instance(struct skv_pbmake *make, const struct skv_instance_view *v,
			  Slabkv__V1__InstanceView *m)
{
	m->id = skv_pb_make_text(make, v->spec.id);
	m->tenant = skv_pb_make_text(make, v->spec.tenant);
	m->spec = make_instance(make, &v->spec);
	m->blocks = v->blocks;
	m->used_bytes = v->used_bytes;
	m->open_sessions = v->open_sessions;
	m->open_bytes = v->open_bytes;
	m->leased_bytes = v->leased_bytes;
	m->share_bytes = v->share_bytes;
	m->pinned_bytes = v->pinned_bytes;
	m->soft_pinned_bytes = v->soft_pinned_bytes;
	m->evicted_blocks = v->evicted_blocks;
	m->hits = v->hits;
	make_placements(make, v, m);
}

/* For each kind: an array of views, one view written, a list written. */
#define VIEWS(kind, Kind)                                                                            \
	static void init_##kind(void *m) { slabkv__v1__##kind##_view__init(m); }                    \
	static Slabkv__V1__##Kind##View **make_##kind##_views(                                      \
		struct skv_pbmake *make, const struct skv_##kind##_view *v, uint32_t n)              \
	{                                                                                            \
		Slabkv__V1__##Kind##View **all = (void *)skv_pb_make_messages(                      \
			make, n, sizeof **all, init_##kind);                                         \
                                                                                                     \
		for (uint32_t i = 0; all && i < n; i++)                                              \
			fill_##kind(make, &v[i], all[i]);                                            \
		return all;                                                                          \
	}                                                                                            \
	void skv_pb_write_##kind##_view(struct skv_buf *out, const struct skv_##kind##_view *v)      \
	{                                                                                            \
		struct skv_pbmake make;                                                              \
		Slabkv__V1__##Kind##View **all;                                                     \
                                                                                                     \
		skv_pb_make_begin(&make);                                                            \
		all = make_##kind##_views(&make, v, 1);                                              \
		skv_pb_pack(&make, out, all ? all[0] : NULL);                                        \
	}                                                                                            \
	void skv_pb_write_##kind##_list(struct skv_buf *out, const struct skv_##kind##_view *v,      \
					uint32_t n)                                                  \
	{                                                                                            \
		Slabkv__V1__##Kind##List m;                                                         \
		struct skv_pbmake make;                                                              \
                                                                                                     \
		skv_pb_make_begin(&make);                                                            \
		slabkv__v1__##kind##_list__init(&m);                                                \
		m.n_##kind##s = n;                                                                   \
		m.kind##s = make_##kind##_views(&make, v, n);                                        \
		skv_pb_pack(&make, out, &m);                                                         \
	}
VIEWS(storage, Storage)
VIEWS(group, Group)
VIEWS(instance, Instance)

void skv_pb_write_stats(struct skv_buf *out, const struct skv_stats *s)
{
	struct skv_pbmake make;
	Slabkv__V1__Stats m;

	skv_pb_make_begin(&make);
	slabkv__v1__stats__init(&m);
	m.version = skv_pb_make_text(&make, s->version);
	m.state = skv_pb_make_text(&make, s->state);
	m.owner = skv_pb_make_text(&make, s->owner);
	m.uptime_ms = s->uptime_ms;
	m.blocks = s->blocks;
	m.sessions = s->sessions;
	m.journal_bytes = s->journal_bytes;
	m.journal_limit = s->journal_limit;
	m.evicted_blocks = s->evicted_blocks;
	m.expired_sessions = s->expired_sessions;
	m.n_storages = s->n_storages;
	m.storages = make_storage_views(&make, s->storages, s->n_storages);
	m.n_groups = s->n_groups;
	m.groups = make_group_views(&make, s->groups, s->n_groups);
	m.n_instances = s->n_instances;
	m.instances = make_instance_views(&make, s->instances, s->n_instances);
	skv_pb_pack(&make, out, &m);
}
