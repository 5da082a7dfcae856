/*
 * pb_objects.c - storages, groups and instances in protobuf: bodies of PUT, views, lists, and the
 * manager's numbers, through protobuf-c.
 *
 * The same defaults and checks as objects.c and views.c have for JSON. No state; any thread.
 */
#include "pb_gen.h"

#include <kvb/superblock.h>

/* Storages that have no directory of ours. */
static bool without_root(const char *type) { return strcmp(type, "null") == 0 || strcmp(type, "external") == 0; }

#define FAIL(d, name, ...) kvb_pb_fail(d, name, PB_NO_INDEX, KVB_E_INVALID, __VA_ARGS__)

/* ---- specs, read -------------------------------------------------------------------------------- */

static void check_percent(struct kvb_pbdoc *d, const char *name, uint32_t percent)
{
	if (percent > 100)
		FAIL(d, name, "must be at most 100, not %u", percent);
}

static void check_marks(struct kvb_pbdoc *d, uint32_t high, uint32_t low)
{
	check_percent(d, "high_percent", high);
	check_percent(d, "low_percent", low);
}

static void check_root(struct kvb_pbdoc *d, const struct kvb_storage_spec *s)
{
	if (!*s->root && !without_root(s->type) && !s->n_fs_master)
		FAIL(d, "root", "the field is required");
	else if (*s->root && *s->root != '/')
		FAIL(d, "root", "must be an absolute directory, like /data/kv");
}

static void take_masters(struct kvb_pbdoc *d, const Kvblock__V1__StorageSpec *m, struct kvb_storage_spec *out)
{
	const char **urls;

	kvb_pb_count(d, "fs_master", m->n_fs_master, 0, KVB_MAX_FS_MASTERS);
	urls = kvb_pb_alloc(d, m->n_fs_master + 1, sizeof *urls);
	for (uint32_t i = 0; urls && i < m->n_fs_master && kvb_pb_ok(d); i++) {
		urls[i] = kvb_pb_check_text(d, m->fs_master[i], "fs_master", KVB_MAX_URL);
		if (!*urls[i])
			kvb_pb_fail(d, "fs_master", i, KVB_E_INVALID, "must not be empty");
		out->n_fs_master = i + 1;
	}
	out->fs_master = urls;
}

static void take_storage(struct kvb_pbdoc *d, const Kvblock__V1__StorageSpec *m,
			 struct kvb_storage_spec *out)
{
	out->type = *m->type ? kvb_pb_check_name(d, m->type, "type", PB_NO_INDEX) : "file";
	out->root = kvb_pb_check_text(d, m->root, "root", KVB_MAX_ROOT);
	out->capacity = m->capacity;
	out->file_size = m->file_size;
	out->unit = m->unit;
	out->enabled = m->presence_of_enabled_case ==
				       KVBLOCK__V1__STORAGE_SPEC__PRESENCE_OF_ENABLED_ENABLED
			       ? m->enabled
			       : true;
	out->draining = m->draining;
	out->client_root = kvb_pb_check_text(d, m->client_root, "client_root", KVB_MAX_ROOT);
	out->client_mount = kvb_pb_check_text(d, m->client_mount, "client_mount", KVB_MAX_ROOT);
	out->extra = kvb_pb_check_text(d, m->extra, "extra", KVB_MAX_EXTRA);
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

static void take_quotas(struct kvb_pbdoc *d, const Kvblock__V1__GroupSpec *m, struct kvb_group_spec *out)
{
	struct kvb_type_quota *quotas;

	kvb_pb_count(d, "quotas", m->n_quotas, 0, KVB_MAX_QUOTAS);
	quotas = kvb_pb_alloc(d, m->n_quotas + 1, sizeof *quotas);
	for (uint32_t i = 0; quotas && i < m->n_quotas && kvb_pb_ok(d); i++) {
		struct kvb_pbat here = { d->at, "quotas", i };

		d->at = &here;
		quotas[i].type = kvb_pb_check_name(d, m->quotas[i]->type, "type", PB_NO_INDEX);
		quotas[i].capacity = m->quotas[i]->capacity;
		quotas[i].reclaim = m->quotas[i]->reclaim;
		d->at = here.up;
	}
	out->quotas = quotas;
	out->n_quotas = (uint32_t)m->n_quotas;
}

static void take_limits(struct kvb_pbdoc *d, const Kvblock__V1__GroupSpec *m, struct kvb_group_spec *out)
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
	out->policy = kvb_pb_check_text(d, m->policy, "policy", KVB_MAX_NAME);
	out->ttl_ms = m->ttl_ms;
	out->version = m->version;
	out->extra = kvb_pb_check_text(d, m->extra, "extra", KVB_MAX_EXTRA);
	out->high_percent = m->high_percent;
	out->low_percent = m->low_percent;
	out->pin_percent = m->pin_percent;
	check_marks(d, m->high_percent, m->low_percent);
	check_percent(d, "pin_percent", m->pin_percent);
	if ((unsigned)m->share > KVB_SHARE_FIXED)
		FAIL(d, "share", "must be at most %d", KVB_SHARE_FIXED);
	else
		out->share = (enum kvb_share)m->share;
}

static void take_group(struct kvb_pbdoc *d, const Kvblock__V1__GroupSpec *m,
		       struct kvb_group_spec *out)
{
	out->capacity = m->capacity;
	take_limits(d, m, out);
	kvb_pb_count(d, "storages", m->n_storages, out->loose_storages ? 0 : 1, KVB_PB_FIELDS);
	for (uint32_t i = 0; i < m->n_storages && kvb_pb_ok(d); i++) {
		kvb_pb_check_name(d, m->storages[i], "storages", i);
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(m->storages[i], m->storages[j]) == 0)
				kvb_pb_fail(d, "storages", i, KVB_E_INVALID, "'%s' is named twice",
					    m->storages[i]);
	}
	out->storages = (const char *const *)m->storages;
	out->n_storages = (uint32_t)m->n_storages;
}

static void take_spec(struct kvb_pbdoc *d, const Kvblock__V1__Spec *m, uint32_t i,
		      struct kvb_spec *specs)
{
	struct kvb_pbat here = { d->at, "specs", i };

	d->at = &here;
	specs[i].name = kvb_pb_check_name(d, m->name, "name", PB_NO_INDEX);
	specs[i].size = m->size;
	if (m->size < KVB_MIN_SPEC_SIZE || m->size > KVB_MAX_SPEC_SIZE)
		FAIL(d, "size", "must be from %llu to %llu, not %llu", KVB_MIN_SPEC_SIZE,
		     KVB_MAX_SPEC_SIZE, (unsigned long long)m->size);
	for (uint32_t j = 0; j < i && kvb_pb_ok(d); j++)
		if (strcmp(specs[i].name, specs[j].name) == 0)
			FAIL(d, "name", "'%s' is named twice", m->name);
	d->at = here.up;
}

static void take_instance(struct kvb_pbdoc *d, const Kvblock__V1__InstanceSpec *m,
			  struct kvb_instance_spec *out)
{
	struct kvb_spec *specs;

	out->group = *m->group ? kvb_pb_check_name(d, m->group, "group", PB_NO_INDEX) : "default";
	out->block_tokens = m->block_tokens;
	kvb_pb_count(d, "specs", m->n_specs, 1, KVB_MAX_SPECS);
	specs = kvb_pb_alloc(d, m->n_specs, sizeof *specs);
	for (uint32_t i = 0; specs && i < m->n_specs && kvb_pb_ok(d); i++)
		take_spec(d, m->specs[i], i, specs);
	out->specs = specs;
	out->n_specs = (uint32_t)m->n_specs;
	out->extra = kvb_pb_check_text(d, m->extra, "extra", KVB_MAX_EXTRA);
	out->numbered = m->numbered;
	out->named = m->named;
	out->weight = m->weight;
	out->capacity = m->capacity;
	if (m->weight > KVB_MAX_WEIGHT)
		FAIL(d, "weight", "must be at most %u, not %u", KVB_MAX_WEIGHT, m->weight);
}

int kvb_pb_read_storage(const struct kvb_v1_in *in, const char *text, size_t n,
			struct kvb_storage_spec *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_storage_spec s = { .name = NULL };
	Kvblock__V1__StorageSpec *m =
		kvb_pb_unpack(&d, &kvblock__v1__storage_spec__descriptor, text, n);

	if (m)
		take_storage(&d, m, &s);
	if (kvb_pb_ok(&d))
		*out = s;
	return d.status;
}

int kvb_pb_read_group(const struct kvb_v1_in *in, const char *text, size_t n,
		      struct kvb_group_spec *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_group_spec g = { .name = NULL };
	Kvblock__V1__GroupSpec *m =
		kvb_pb_unpack(&d, &kvblock__v1__group_spec__descriptor, text, n);

	if (m)
		take_group(&d, m, &g);
	if (kvb_pb_ok(&d))
		*out = g;
	return d.status;
}

int kvb_pb_read_instance(const struct kvb_v1_in *in, const char *text, size_t n,
			 struct kvb_instance_spec *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_instance_spec i = { .tenant = in->tenant };
	Kvblock__V1__InstanceSpec *m =
		kvb_pb_unpack(&d, &kvblock__v1__instance_spec__descriptor, text, n);

	if (m)
		take_instance(&d, m, &i);
	if (kvb_pb_ok(&d))
		*out = i;
	return d.status;
}

/* ---- views, read by clients --------------------------------------------------------------------- */

/* True when the spec is there; its fields are named below "spec". */
static bool enter_spec(struct kvb_pbdoc *d, const void *spec, struct kvb_pbat *at)
{
	*at = (struct kvb_pbat){ d->at, "spec", PB_NO_INDEX };
	if (!spec)
		FAIL(d, "spec", "the field is required");
	else
		d->at = at;
	return spec != NULL;
}

static void take_storage_state(struct kvb_pbdoc *d, const Kvblock__V1__StorageView *m,
			       struct kvb_storage_view *v)
{
	uint8_t bytes[16];

	if (strlen(m->uuid) != 36 || kvb_uuid_from_text(m->uuid, bytes) != KVB_OK)
		FAIL(d, "uuid", "is not a UUID");
	else
		memcpy(v->uuid, m->uuid, sizeof v->uuid);
	v->spec.name = kvb_pb_check_name(d, m->name, "name", PB_NO_INDEX);
	v->healthy = m->healthy;
	v->problem = kvb_pb_check_text(d, m->problem, "problem", 4096);
	v->files = m->files;
	v->draining_files = m->draining_files;
	v->file_bytes = m->file_bytes;
	v->assigned_bytes = m->assigned_bytes;
	v->used_bytes = m->used_bytes;
	v->quarantined_bytes = m->quarantined_bytes;
	v->free_bytes = m->free_bytes;
}

int kvb_pb_read_storage_view(const struct kvb_v1_in *in, const char *text, size_t n,
			     struct kvb_storage_view *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_storage_view v = { .problem = "" };
	Kvblock__V1__StorageView *m =
		kvb_pb_unpack(&d, &kvblock__v1__storage_view__descriptor, text, n);
	struct kvb_pbat at;

	if (m && enter_spec(&d, m->spec, &at)) {
		take_storage(&d, m->spec, &v.spec);
		d.at = at.up;
		take_storage_state(&d, m, &v);
	}
	if (kvb_pb_ok(&d))
		*out = v;
	return d.status;
}

int kvb_pb_read_group_view(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_group_view *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_group_view v = { .blocks = 0 };
	Kvblock__V1__GroupView *m =
		kvb_pb_unpack(&d, &kvblock__v1__group_view__descriptor, text, n);
	struct kvb_pbat at;

	if (m && enter_spec(&d, m->spec, &at)) {
		take_group(&d, m->spec, &v.spec);
		d.at = at.up;
		v.spec.name = kvb_pb_check_name(&d, m->name, "name", PB_NO_INDEX);
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
	if (kvb_pb_ok(&d))
		*out = v;
	return d.status;
}

static void take_placements(struct kvb_pbdoc *d, const Kvblock__V1__InstanceView *m, struct kvb_instance_view *out)
{
	struct kvb_placement *v = kvb_pb_alloc(d, m->n_placements + 1, sizeof *v);

	for (uint32_t i = 0; v && i < m->n_placements && kvb_pb_ok(d); i++) {
		const Kvblock__V1__Placement *p = m->placements[i];
		struct kvb_pbat here = { d->at, "placements", i };

		d->at = &here;
		v[i] = (struct kvb_placement){ .storage = kvb_pb_check_name(d, p->storage, "storage", PB_NO_INDEX),
					       .spec = kvb_pb_check_name(d, p->spec, "spec", PB_NO_INDEX),
					       .fit = kvb_pb_check_name(d, p->fit, "fit", PB_NO_INDEX),
					       .slot_bytes = p->slot_bytes, .wasted_bytes = p->wasted_bytes,
					       .copied_bytes = p->copied_bytes };
		d->at = here.up;
	}
	out->placements = v;
	out->n_placements = v ? (uint32_t)m->n_placements : 0;
}

int kvb_pb_read_instance_view(const struct kvb_v1_in *in, const char *text, size_t n,
			      struct kvb_instance_view *out, struct kvb_error *err)
{
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_instance_view v = { .blocks = 0 };
	Kvblock__V1__InstanceView *m =
		kvb_pb_unpack(&d, &kvblock__v1__instance_view__descriptor, text, n);
	struct kvb_pbat at;

	if (m && enter_spec(&d, m->spec, &at)) {
		take_instance(&d, m->spec, &v.spec);
		d.at = at.up;
		v.spec.id = kvb_pb_check_name(&d, m->id, "id", PB_NO_INDEX);
		v.spec.tenant = kvb_pb_check_name(&d, m->tenant, "tenant", PB_NO_INDEX);
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
	if (kvb_pb_ok(&d))
		*out = v;
	return d.status;
}

/* ---- specs, written ----------------------------------------------------------------------------- */

static char **make_texts(struct kvb_pbmake *make, const char *const *v, uint32_t n)
{
	char **all = kvb_pb_make(make, n, sizeof *all);

	for (uint32_t i = 0; all && i < n; i++)
		all[i] = kvb_pb_make_text(make, v[i]);
	return all;
}

static Kvblock__V1__StorageSpec *make_storage(struct kvb_pbmake *make,
					      const struct kvb_storage_spec *s)
{
	Kvblock__V1__StorageSpec *m = kvb_pb_make(make, 1, sizeof *m);

	if (!m)
		return NULL;
	kvblock__v1__storage_spec__init(m);
	m->type = kvb_pb_make_text(make, s->type);
	m->root = kvb_pb_make_text(make, s->root);
	m->capacity = s->capacity;
	m->file_size = s->file_size;
	m->unit = s->unit;
	m->presence_of_enabled_case = KVBLOCK__V1__STORAGE_SPEC__PRESENCE_OF_ENABLED_ENABLED;
	m->enabled = s->enabled;
	m->draining = s->draining;
	m->client_root = kvb_pb_make_text(make, s->client_root ? s->client_root : "");
	m->client_mount = kvb_pb_make_text(make, s->client_mount ? s->client_mount : "");
	m->extra = kvb_pb_make_text(make, s->extra ? s->extra : "");
	m->high_percent = s->high_percent;
	m->low_percent = s->low_percent;
	m->chunk_size = s->chunk_size;
	m->any_mount = s->any_mount;
	m->fs_master = make_texts(make, s->fs_master, s->n_fs_master);
	m->n_fs_master = m->fs_master ? s->n_fs_master : 0;
	return m;
}

static void init_quota(void *m) { kvblock__v1__type_quota__init(m); }

static void make_limits(struct kvb_pbmake *make, const struct kvb_group_spec *g, Kvblock__V1__GroupSpec *m)
{
	m->loose_storages = g->loose_storages;
	m->quotas = (void *)kvb_pb_make_messages(make, g->n_quotas, sizeof **m->quotas, init_quota);
	m->n_quotas = m->quotas ? g->n_quotas : 0;
	for (uint32_t i = 0; i < m->n_quotas; i++) {
		m->quotas[i]->type = kvb_pb_make_text(make, g->quotas[i].type);
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
	m->policy = kvb_pb_make_text(make, g->policy ? g->policy : "");
	m->ttl_ms = g->ttl_ms;
	m->version = g->version;
	m->extra = kvb_pb_make_text(make, g->extra ? g->extra : "");
	m->high_percent = g->high_percent;
	m->low_percent = g->low_percent;
	m->pin_percent = g->pin_percent;
	m->share = (Kvblock__V1__Share)g->share;
}

static Kvblock__V1__GroupSpec *make_group(struct kvb_pbmake *make, const struct kvb_group_spec *g)
{
	Kvblock__V1__GroupSpec *m = kvb_pb_make(make, 1, sizeof *m);

	if (!m)
		return NULL;
	kvblock__v1__group_spec__init(m);
	m->capacity = g->capacity;
	m->n_storages = g->n_storages;
	m->storages = make_texts(make, g->storages, g->n_storages);
	make_limits(make, g, m);
	return m;
}

static void init_spec(void *m) { kvblock__v1__spec__init(m); }

static Kvblock__V1__InstanceSpec *make_instance(struct kvb_pbmake *make,
						const struct kvb_instance_spec *i)
{
	Kvblock__V1__InstanceSpec *m = kvb_pb_make(make, 1, sizeof *m);

	if (!m)
		return NULL;
	kvblock__v1__instance_spec__init(m);
	m->group = kvb_pb_make_text(make, i->group);
	m->block_tokens = i->block_tokens;
	m->extra = kvb_pb_make_text(make, i->extra);
	m->numbered = i->numbered;
	m->named = i->named;
	m->weight = i->weight;
	m->capacity = i->capacity;
	m->specs = (void *)kvb_pb_make_messages(make, i->n_specs, sizeof **m->specs, init_spec);
	if (!m->specs)
		return NULL;
	m->n_specs = i->n_specs;
	for (uint32_t s = 0; s < i->n_specs; s++) {
		m->specs[s]->name = kvb_pb_make_text(make, i->specs[s].name);
		m->specs[s]->size = i->specs[s].size;
	}
	return m;
}

void kvb_pb_write_storage(struct kvb_buf *out, const struct kvb_storage_spec *s)
{
	struct kvb_pbmake make;

	kvb_pb_make_begin(&make);
	kvb_pb_pack(&make, out, make_storage(&make, s));
}

void kvb_pb_write_group(struct kvb_buf *out, const struct kvb_group_spec *g)
{
	struct kvb_pbmake make;

	kvb_pb_make_begin(&make);
	kvb_pb_pack(&make, out, make_group(&make, g));
}

void kvb_pb_write_instance(struct kvb_buf *out, const struct kvb_instance_spec *i)
{
	struct kvb_pbmake make;

	kvb_pb_make_begin(&make);
	kvb_pb_pack(&make, out, make_instance(&make, i));
}

/* ---- views, written ----------------------------------------------------------------------------- */

static void fill_storage(struct kvb_pbmake *make, const struct kvb_storage_view *v,
			 Kvblock__V1__StorageView *m)
{
	m->name = kvb_pb_make_text(make, v->spec.name);
	m->spec = make_storage(make, &v->spec);
	m->uuid = kvb_pb_make_text(make, v->uuid);
	m->healthy = v->healthy;
	m->problem = kvb_pb_make_text(make, v->problem);
	m->files = v->files;
	m->draining_files = v->draining_files;
	m->file_bytes = v->file_bytes;
	m->assigned_bytes = v->assigned_bytes;
	m->used_bytes = v->used_bytes;
	m->quarantined_bytes = v->quarantined_bytes;
	m->free_bytes = v->free_bytes;
}

static void fill_group(struct kvb_pbmake *make, const struct kvb_group_view *v,
		       Kvblock__V1__GroupView *m)
{
	m->name = kvb_pb_make_text(make, v->spec.name);
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

static void init_placement(void *m) { kvblock__v1__placement__init(m); }

static void make_placements(struct kvb_pbmake *make, const struct kvb_instance_view *v, Kvblock__V1__InstanceView *m)
{
	m->placements = (void *)kvb_pb_make_messages(make, v->n_placements, sizeof **m->placements, init_placement);
	m->n_placements = m->placements ? v->n_placements : 0;
	for (uint32_t i = 0; i < m->n_placements; i++) {
		Kvblock__V1__Placement *p = m->placements[i];

		p->storage = kvb_pb_make_text(make, v->placements[i].storage);
		p->spec = kvb_pb_make_text(make, v->placements[i].spec);
		p->fit = kvb_pb_make_text(make, v->placements[i].fit);
		p->slot_bytes = v->placements[i].slot_bytes;
		p->wasted_bytes = v->placements[i].wasted_bytes;
		p->copied_bytes = v->placements[i].copied_bytes;
	}
}

static void fill_instance(struct kvb_pbmake *make, const struct kvb_instance_view *v,
			  Kvblock__V1__InstanceView *m)
{
	m->id = kvb_pb_make_text(make, v->spec.id);
	m->tenant = kvb_pb_make_text(make, v->spec.tenant);
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
	static void init_##kind(void *m) { kvblock__v1__##kind##_view__init(m); }                    \
	static Kvblock__V1__##Kind##View **make_##kind##_views(                                      \
		struct kvb_pbmake *make, const struct kvb_##kind##_view *v, uint32_t n)              \
	{                                                                                            \
		Kvblock__V1__##Kind##View **all = (void *)kvb_pb_make_messages(                      \
			make, n, sizeof **all, init_##kind);                                         \
                                                                                                     \
		for (uint32_t i = 0; all && i < n; i++)                                              \
			fill_##kind(make, &v[i], all[i]);                                            \
		return all;                                                                          \
	}                                                                                            \
	void kvb_pb_write_##kind##_view(struct kvb_buf *out, const struct kvb_##kind##_view *v)      \
	{                                                                                            \
		struct kvb_pbmake make;                                                              \
		Kvblock__V1__##Kind##View **all;                                                     \
                                                                                                     \
		kvb_pb_make_begin(&make);                                                            \
		all = make_##kind##_views(&make, v, 1);                                              \
		kvb_pb_pack(&make, out, all ? all[0] : NULL);                                        \
	}                                                                                            \
	void kvb_pb_write_##kind##_list(struct kvb_buf *out, const struct kvb_##kind##_view *v,      \
					uint32_t n)                                                  \
	{                                                                                            \
		Kvblock__V1__##Kind##List m;                                                         \
		struct kvb_pbmake make;                                                              \
                                                                                                     \
		kvb_pb_make_begin(&make);                                                            \
		kvblock__v1__##kind##_list__init(&m);                                                \
		m.n_##kind##s = n;                                                                   \
		m.kind##s = make_##kind##_views(&make, v, n);                                        \
		kvb_pb_pack(&make, out, &m);                                                         \
	}
VIEWS(storage, Storage)
VIEWS(group, Group)
VIEWS(instance, Instance)

void kvb_pb_write_stats(struct kvb_buf *out, const struct kvb_stats *s)
{
	struct kvb_pbmake make;
	Kvblock__V1__Stats m;

	kvb_pb_make_begin(&make);
	kvblock__v1__stats__init(&m);
	m.version = kvb_pb_make_text(&make, s->version);
	m.state = kvb_pb_make_text(&make, s->state);
	m.owner = kvb_pb_make_text(&make, s->owner);
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
	kvb_pb_pack(&make, out, &m);
}
