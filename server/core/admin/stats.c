/* stats.c - views of storages, groups, instances and the totals, copied out under the read lock. */
#include <stdio.h>
#include <string.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/one.h>
#include <model/device.h>
#include <model/files.h>
#include <model/find.h>
#include <model/geometry.h>
#include <model/leases.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/pin.h>
#include <model/quota_share.h>
#include <model/volume.h>
#include <journal/snapshot.h>
#include <storage/device.h>

#include <assert.h>
#include "idle.h"
static char *dup_text(struct skv_arena *a, const char *s)
{
	return skv_arena_strndup(a, s, strlen(s));
}

static int copy_masters(const struct device *d, struct skv_arena *a, struct skv_storage_spec *out)
{
	const char **v = skv_arena_calloc(a, d->n_masters + 1, sizeof *v);

	for (uint32_t i = 0; v && i < d->n_masters; i++) {
		v[i] = dup_text(a, d->masters[i]);
		if (!v[i])
			return SKV_E_NOMEM;
	}
	out->fs_master = v;
	out->n_fs_master = d->n_masters;
	return v ? SKV_OK : SKV_E_NOMEM;
}

/* The device's own text may contain paths: only the log gets it. */
static const char *problem_of(const struct device *d)
{
	switch (atomic_load(&d->refused)) {
	case REFUSED_COPY:
		return "another copy of this store went on in its directory: use that one; or stop "
		       "it for good, and start this one once with --adopt";
	case REFUSED_DAMAGED:
		return "an owner file in its directory is damaged, so it does not say whether "
		       "another copy of this store runs there: make sure that none does, and start "
		       "this one once with --adopt";
	case REFUSED_BACK:
		return "the store went back in time: its directory has seen later changes; bring "
		       "the newest store back, or start this one once with --adopt";
	case REFUSED_NOT:
		break;
	}
	if (!atomic_load(&d->healthy))
		return "not usable now; the manager's log says why";
	return device_hangs(d) ? "the file system does not answer" : "its last check is too old";
}

static void view_check(const struct volume_file *f, uint64_t now_ms, struct skv_storage_view *v)
{
	const struct file_check *c = &f->check;
	const uint64_t age = now_ms > c->checked_ms ? now_ms - c->checked_ms : 0;

	v->scrub_unchecked_files += !c->checked_ms;
	if (c->checked_ms && age > v->scrub_oldest_ms)
		v->scrub_oldest_ms = age;
	v->scrub_slots += c->slots;
	v->scrub_unsummed_slots += c->unsummed;
}

/* What its file system has for more slab files. */
static uint64_t fs_free_of(const struct volume *s)
{
	const uint64_t file_bytes = s->file_bytes - s->vanished_bytes;
	const uint64_t reach = atomic_load(&s->dev->reach);

	if (reach == UINT64_MAX)
		return s->dev->ops->chunked && s->grow_full ? 0 : UINT64_MAX;
	return reach > file_bytes ? reach - file_bytes : 0;
}

static int view_storage(struct volume *s, struct skv_arena *a, struct skv_storage_view *v)
{
	struct device *d = s->dev;
	struct skv_pool_stats st;

	memset(v, 0, sizeof *v);
	skv_pool_stats(s->pool, &st);
	v->spec = (struct skv_storage_spec){ .name = dup_text(a, d->name),
					     .type = dup_text(a, d->type),
					     .root = dup_text(a, d->root),
					     .client_root = dup_text(a, d->client_root),
					     .client_mount = dup_text(a, d->client_mount),
					     .extra = dup_text(a, d->extra),
					     .capacity = s->capacity,
					     .file_size = d->file_size, .unit = d->unit,
					     .enabled = s->enabled, .draining = s->draining,
					     .move = s->moving,
					     .high_percent = s->high_percent,
					     .low_percent = s->low_percent };
	v->spec.chunk_size = d->chunk;
	v->spec.any_mount = d->any_mount;
	if (copy_masters(d, a, &v->spec) != SKV_OK)
		return SKV_E_NOMEM;
	if (d->ops->counted)
		v->spec.file_size = v->spec.unit = 0;
	skv_uuid_to_text(d->uuid, v->uuid);
	v->healthy = device_healthy(d);
	v->problem = v->healthy ? "" : problem_of(d);
	for (const struct volume_file *f = file_next(s, 0); f; f = file_next(s, f->number + 1)) {
		v->files++;
		v->bad_files += f->bad != NULL;
		v->draining_files += f->state == FILE_GOING || file_drains(s, f);
		view_check(f, skv_wall_ms(d->core->clock), v);
	}
	v->writing_ms = atomic_load(&d->writing_ms);
	v->file_bytes = st.file_bytes;
	v->assigned_bytes = st.assigned_bytes;
	v->used_bytes = st.used_bytes;
	v->quarantined_bytes = st.held_bytes;
	v->free_bytes = !s->draining && s->capacity > st.assigned_bytes
				? s->capacity - st.assigned_bytes
				: 0;
	v->fs_free_bytes = fs_free_of(s);
	return v->spec.name && v->spec.type && v->spec.root && v->spec.client_root &&
			       v->spec.client_mount && v->spec.extra
		       ? SKV_OK
		       : SKV_E_NOMEM;
}

/* Sums over its instances. */
static void sum_group(const struct partition *p, const struct group *g, struct skv_group_view *v)
{
	ASSERT_SHARED(p);
	v->room_bytes = group_room(p, g);
	v->evicted_blocks = g->evicted;
	for (size_t i = 0; i < p->n_inst; i++) {
		struct instance *inst = p->inst[i];

		if (inst->group != g)
			continue;
		v->pinned_bytes += pinned_bytes(inst, true);
		v->soft_pinned_bytes += pinned_bytes(inst, false);
		v->leased_bytes += leased_bytes(p, inst, skv_now_ms(p->core->clock));
		v->open_bytes += inst->open_bytes;
		v->hits += atomic_load(&inst->hits);
	}
}

static int view_group(const struct partition *p, const struct group *g, struct skv_arena *a,
		      struct skv_group_view *v)
{
	const struct skv_group_spec *have = &g->spec;
	const char **names = skv_arena_alloc(a, (have->n_storages + 1) * sizeof *names);
	struct skv_type_quota *quotas = skv_arena_alloc(a, (have->n_quotas + 1) * sizeof *quotas);

	ASSERT_SHARED(p);
	*v = (struct skv_group_view){ .spec = *have, .used_bytes = g->used_bytes,
				      .blocks = g->count.blocks };
	sum_group(p, g, v);
	v->spec.name = dup_text(a, have->name);
	v->spec.extra = dup_text(a, have->extra);
	v->spec.policy = dup_text(a, have->policy);
	v->spec.tier_of = dup_text(a, have->tier_of);
	v->spec.storages = names;
	v->spec.quotas = quotas;
	if (!names || !quotas || !v->spec.name || !v->spec.extra || !v->spec.policy ||
	    !v->spec.tier_of)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < have->n_storages; i++) {
		names[i] = dup_text(a, have->storages[i]);
		if (!names[i])
			return SKV_E_NOMEM;
	}
	for (uint32_t i = 0; i < have->n_quotas; i++) {
		quotas[i] = have->quotas[i];
		quotas[i].type = dup_text(a, have->quotas[i].type);
		if (!quotas[i].type)
			return SKV_E_NOMEM;
	}
	return SKV_OK;
}

/* Its layout on those storages of its group that have chunks. */
static int view_placements(const struct partition *p, const struct instance *inst,
			   struct skv_arena *a, struct skv_instance_view *v)
{
	const struct skv_group_spec *g = &inst->group->spec;
	struct skv_placement *out =
		skv_arena_calloc(a, (size_t)g->n_storages * inst->spec.n_specs + 1, sizeof *out);

	ASSERT_SHARED(p);
	for (uint32_t k = 0; out && k < g->n_storages; k++) {
		int at = volume_find(p, g->storages[k]);

		for (uint32_t s = 0; at >= 0 && p->volume[at].dev->chunk && s < inst->spec.n_specs;
		     s++) {
			struct geometry how = volume_geometry(&p->volume[at], &inst->spec, s);
			struct skv_placement *to = &out[v->n_placements++];

			*to = (struct skv_placement){ dup_text(a, g->storages[k]),
						      v->spec.specs[s].name,
						      fit_text(how.fit),
						      how.stride,
						      how.wasted,
						      how.copied };
			if (!to->storage)
				return SKV_E_NOMEM;
		}
	}
	v->placements = out;
	return out ? SKV_OK : SKV_E_NOMEM;
}

static int view_instance(const struct partition *p, struct instance *inst, struct skv_arena *a,
			 struct skv_instance_view *v)
{
	struct skv_spec *specs = skv_arena_alloc(a, inst->spec.n_specs * sizeof *specs);

	ASSERT_SHARED(p);
	memset(v, 0, sizeof *v);
	v->spec = inst->spec;
	v->spec.tenant = dup_text(a, inst->spec.tenant);
	v->spec.id = dup_text(a, inst->spec.id);
	v->spec.group = dup_text(a, inst->spec.group);
	v->spec.extra = dup_text(a, inst->spec.extra);
	v->spec.specs = specs;
	for (uint32_t s = 0; specs && s < inst->spec.n_specs; s++) {
		specs[s] = (struct skv_spec){ dup_text(a, inst->spec.specs[s].name),
					      inst->spec.specs[s].size };
		if (!specs[s].name)
			return SKV_E_NOMEM;
	}
	v->blocks = inst->blocks;
	v->used_bytes = inst->used_bytes;
	v->open_sessions = inst->open_sessions;
	v->open_bytes = inst->open_bytes;
	v->leased_bytes = leased_bytes(p, inst, skv_now_ms(p->core->clock));
	if (inst->group->spec.share != SKV_SHARE_GROUP)
		v->share_bytes = quota_share_of(inst, group_room(p, inst->group));
	v->pinned_bytes = pinned_bytes(inst, true);
	v->soft_pinned_bytes = pinned_bytes(inst, false);
	v->evicted_blocks = inst->evicted;
	v->hits = atomic_load(&inst->hits);
	v->unused_ms = idle_ms(p, inst);
	return specs && v->spec.tenant && v->spec.id && v->spec.group && v->spec.extra
		       ? view_placements(p, inst, a, v)
		       : SKV_E_NOMEM;
}

static int storages_locked(struct partition *p, const char *name, struct skv_arena *a,
			   struct skv_storage_view **out, uint32_t *n)
{
	const int only = name ? volume_find(p, name) : -1;
	const uint32_t first = only < 0 ? 0 : (uint32_t)only, end = !name      ? p->n_volume
								    : only < 0 ? 0
									       : first + 1;
	struct skv_storage_view *v = skv_arena_alloc(a, (end - first + 1) * sizeof *v);
	int rc = v ? SKV_OK : SKV_E_NOMEM;

	ASSERT_SHARED(p);
	*n = 0;
	for (uint32_t i = first; rc == SKV_OK && i < end; i++)
		if (p->volume[i].pool)
			rc = view_storage(&p->volume[i], a, &v[(*n)++]);
	*out = v;
	return rc;
}

static int groups_locked(struct partition *p, const char *name, struct skv_arena *a,
			 struct skv_group_view **out, uint32_t *n)
{
	struct group *only = name ? group_find(p, name) : NULL;
	struct skv_group_view *v = skv_arena_alloc(a, ((name ? 1 : p->n_group) + 1) * sizeof *v);
	int rc = v ? SKV_OK : SKV_E_NOMEM;

	ASSERT_SHARED(p);
	*n = 0;
	if (rc == SKV_OK && only)
		rc = view_group(p, only, a, &v[(*n)++]);
	for (size_t i = 0; rc == SKV_OK && !name && i < p->n_group; i++)
		rc = view_group(p, p->group[i], a, &v[(*n)++]);
	*out = v;
	return rc;
}

/* tenant NULL = all tenants (totals). */
static int instances_locked(struct partition *p, const char *tenant, const char *id,
			    struct skv_arena *a, struct skv_instance_view **out, uint32_t *n)
{
	struct skv_instance_view *v = skv_arena_alloc(a, (p->n_inst + 1) * sizeof *v);
	int rc = v ? SKV_OK : SKV_E_NOMEM;

	ASSERT_SHARED(p);
	*n = 0;
	for (size_t i = 0; rc == SKV_OK && i < p->n_inst; i++) {
		struct instance *inst = p->inst[i];

		if (!inst->deleting && (!tenant || strcmp(inst->spec.tenant, tenant) == 0) &&
		    (!id || strcmp(inst->spec.id, id) == 0))
			rc = view_instance(p, inst, a, &v[(*n)++]);
	}
	*out = v;
	return rc;
}

static int missing(struct skv_error *err, const char *kind, const char *field, const char *name)
{
	return skv_fail(err, SKV_E_NOT_FOUND, field, "no %s '%s'", kind, name);
}

int one_storages(struct skv_core *c, const char *name, struct skv_arena *a,
		 struct skv_storage_view **out, uint32_t *n, struct skv_error *err)
{
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	skv_rwlock_read(&c->lock);
	rc = c->partition ? storages_locked(c->partition, name, a, out, n)
			  : gate_recovering(err);
	skv_rwlock_read_unlock(&c->lock);
	return rc == SKV_OK && name && *n == 0 ? missing(err, "storage", "name", name) : rc;
}

int one_groups(struct skv_core *c, const char *name, struct skv_arena *a,
	       struct skv_group_view **out, uint32_t *n, struct skv_error *err)
{
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	skv_rwlock_read(&c->lock);
	rc = c->partition ? groups_locked(c->partition, name, a, out, n)
			  : gate_recovering(err);
	skv_rwlock_read_unlock(&c->lock);
	return rc == SKV_OK && name && *n == 0 ? missing(err, "group", "name", name) : rc;
}

int one_instances(struct skv_core *c, const char *tenant, const char *id, struct skv_arena *a,
		  struct skv_instance_view **out, uint32_t *n, struct skv_error *err)
{
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	skv_rwlock_read(&c->lock);
	rc = c->partition ? instances_locked(c->partition, tenant, id, a, out, n)
		     : gate_recovering(err);
	skv_rwlock_read_unlock(&c->lock);
	return rc == SKV_OK && id && *n == 0 ? missing(err, "instance", "id", id) : rc;
}

static const char *state_name(int state)
{
	static const char *const names[] = { "standby", "recovering", "ready", "stopped" };

	return names[state];
}

static int totals(struct partition *p, struct skv_arena *a, struct skv_stats *out)
{
	int rc = storages_locked(p, NULL, a, &out->storages, &out->n_storages);

	ASSERT_SHARED(p);
	if (rc == SKV_OK)
		rc = groups_locked(p, NULL, a, &out->groups, &out->n_groups);
	if (rc == SKV_OK)
		rc = instances_locked(p, NULL, NULL, a, &out->instances, &out->n_instances);
	out->blocks = p->blocks;
	out->sessions = p->open_sessions;
	out->journal_bytes = p->journal_bytes;
	out->journal_limit = journal_bound(p);
	return rc;
}

int one_stats(struct skv_core *c, struct skv_arena *a, struct skv_stats *out,
	      struct skv_error *err)
{
	int rc = SKV_OK;

	(void)err;
	memset(out, 0, sizeof *out);
	snprintf(out->version, sizeof out->version, "%s", SKV_VERSION);
	snprintf(out->owner, sizeof out->owner, "%.63s", c->owner);
	out->state = state_name((int)one_state_get(c));
	out->uptime_ms = skv_now_ms(c->clock) - c->started_ms;
	out->evicted_blocks = atomic_load(&c->count.evicted_blocks);
	out->expired_sessions = atomic_load(&c->count.expired_sessions);
	skv_rwlock_read(&c->lock);
	out->journal_limit = c->o.journal_limit;
	if (c->partition)
		rc = totals(c->partition, a, out);
	skv_rwlock_read_unlock(&c->lock);
	return rc;
}
