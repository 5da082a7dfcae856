/*
 * objects.c - storages, groups and instances in a partition: added, found, removed.
 *
 * Owns their strings. Called while loading, when the partition is private, and by administrators
 * under the write lock. Nothing here touches the store (registry.c does).
 */
#include <model/objects.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <model/block.h>
#include <model/device.h>
#include <model/files.h>
#include <model/find.h>
#include <model/index.h>
#include <model/leases.h>
#include <model/partition.h>
#include <model/pin.h>
#include <model/policy.h>
#include <model/queue.h>
#include <model/quota_share.h>
#include <model/tenant.h>
#include <model/tier.h>
#include <model/volume.h>

/* Makes room for one more. */
static int volumes_reserve(struct partition *p)
{
	void *volume = p->volume, *name = p->volume_name;
	int rc = p->n_volume == MAX_VOLUMES
			 ? SKV_E_TOO_MANY
			 : skv_grow(&volume, &p->cap_volume, p->n_volume + 1, sizeof *p->volume);

	ASSERT_EXCLUSIVE(p);
	p->volume = volume;
	if (rc == SKV_OK)
		rc = skv_grow(&name, &p->cap_volume_name, p->n_volume + 1, sizeof *p->volume_name);
	p->volume_name = name;
	return rc;
}

int partition_add_volume(struct partition *p, struct device *d, const struct skv_storage_spec *s,
			 uint64_t version)
{
	struct skv_pool_options o = { .unit = d->unit, .header = d->edge, .trailer = d->edge };
	struct volume *sp;
	uint32_t at = p->n_gap ? 0 : p->n_volume;
	int rc;

	ASSERT_EXCLUSIVE(p);
	while (at < p->n_volume && p->volume[at].pool)
		at++;
	rc = at == p->n_volume ? volumes_reserve(p) : SKV_OK;
	if (rc != SKV_OK)
		return rc;
	sp = &p->volume[at];
	*sp = (struct volume){ .dev = d, .version = version, .capacity = s->capacity,
			       .enabled = s->enabled, .draining = s->draining,
			       .moving = s->move,
			      .high_percent = s->high_percent, .low_percent = s->low_percent };
	sp->pool = skv_pool_create(&o);
	if (!sp->pool) {
		*sp = (struct volume){ 0 };
		return SKV_E_NOMEM;
	}
	sp->next_file = d->ops->counted ? 0 : file_first_number(p->core->o.partition);
	rc = partition_count_slots(sp);
	if (rc != SKV_OK) {
		skv_pool_destroy(sp->pool);
		*sp = (struct volume){ 0 };
		return rc;
	}
	p->volume_name[at] = name_hash(d->name, "");
	if (at == p->n_volume)
		p->n_volume++;
	else
		p->n_gap--;
	return SKV_OK;
}

int partition_count_slots(struct volume *s)
{
	int rc = s->dev->ops->counted && s->capacity ? skv_pool_add_file(s->pool, 0, s->capacity)
						     : SKV_OK;

	if (rc == SKV_OK && s->dev->ops->counted)
		s->file_bytes = s->capacity;
	return rc;
}

struct volume *volume_by_id(struct partition *p, uint32_t storage_id)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < p->n_volume; i++)
		if (p->volume[i].pool && p->volume[i].dev->id == storage_id)
			return &p->volume[i];
	return NULL;
}

void group_spec_free(struct skv_group_spec *g)
{
	skv_free((char *)g->name);
	skv_free((char *)g->extra);
	skv_free((char *)g->policy);
	skv_free((char *)g->tier_of);
	for (uint32_t i = 0; g->storages && i < g->n_storages; i++)
		skv_free((char *)g->storages[i]);
	for (uint32_t i = 0; g->quotas && i < g->n_quotas; i++)
		skv_free((char *)g->quotas[i].type);
	skv_free((void *)g->storages);
	skv_free((void *)g->quotas);
	memset(g, 0, sizeof *g);
}

int group_spec_copy(struct skv_group_spec *out, const struct skv_group_spec *g)
{
	const char **names = skv_calloc(g->n_storages + 1, sizeof *names);
	struct skv_type_quota *quotas = skv_calloc(g->n_quotas + 1, sizeof *quotas);
	bool ok = names && quotas;

	*out = *g;
	out->name = skv_strdup(g->name);
	out->extra = skv_strdup(g->extra);
	out->policy = skv_strdup(g->policy);
	out->tier_of = skv_strdup(g->tier_of);
	out->storages = names;
	out->quotas = quotas;
	for (uint32_t i = 0; ok && i < g->n_storages; i++)
		ok = (names[i] = skv_strdup(g->storages[i])) != NULL;
	for (uint32_t i = 0; ok && i < g->n_quotas; i++) {
		quotas[i] = g->quotas[i];
		ok = (quotas[i].type = skv_strdup(g->quotas[i].type)) != NULL;
	}
	if (ok && out->name && out->extra && out->policy && out->tier_of)
		return SKV_OK;
	group_spec_free(out);
	return SKV_E_NOMEM;
}

void group_free(struct group *g)
{
	policy_unset(g);
	group_spec_free(&g->spec);
	skv_free(g->in);
	skv_free(g);
}

int partition_add_group(struct partition *p, const struct skv_group_spec *g, uint64_t version)
{
	struct group *copy = skv_calloc(1, sizeof *copy);
	void *v = p->group, *name = p->group_name;

	ASSERT_EXCLUSIVE(p);
	if (!copy)
		return SKV_E_NOMEM;
	if (skv_grow(&v, &p->cap_group, p->n_group + 1, sizeof *p->group) != SKV_OK ||
	    ((p->group = v), skv_grow(&name, &p->cap_group_name, p->n_group + 1,
				      sizeof *p->group_name)) != SKV_OK ||
	    ((p->group_name = name), group_spec_copy(&copy->spec, g)) != SKV_OK) {
		skv_free(copy);
		return SKV_E_NOMEM;
	}
	copy->version = version;
	if (policy_set(p, copy) != SKV_OK) {
		group_free(copy);
		return SKV_E_NOMEM;
	}
	p->group_name[p->n_group] = name_hash(g->name, "");
	p->group[p->n_group++] = copy;
	p->n_tiers += *copy->spec.tier_of != '\0';
	tier_link(p, copy);
	return SKV_OK;
}

/* Moves the group's remaining usage to the detached group: retired instances' only, since it has no
 * others. */
static void leave_detached(struct partition *p, const struct group *g)
{
	struct group *to = &p->detached;

	for (struct instance *retired = p->retired; retired; retired = retired->next_retired)
		if (retired->group == g)
			retired->group = to;
	to->used_bytes += g->used_bytes;
}

void partition_remove_group(struct partition *p, const char *name)
{
	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; i < p->n_group; i++) {
		struct group *g = p->group[i];

		if (strcmp(g->spec.name, name) != 0)
			continue;
		assert(!g->wait_head && !g->fast);
		p->n_tiers -= *g->spec.tier_of != '\0';
		tier_unlink(p, g);
		leave_detached(p, g);
		p->group[i] = p->group[--p->n_group];
		p->group_name[i] = p->group_name[p->n_group];
		for (uint32_t s = 0; s < p->n_volume; s++)
			evict_free_sets(p, s, g);
		group_free(g);
		return;
	}
}

void instance_free(struct instance *inst)
{
	struct skv_instance_spec *s;

	if (!inst)
		return;
	s = &inst->spec;
	for (uint32_t i = 0; s->specs && i < s->n_specs; i++)
		skv_free((char *)s->specs[i].name);
	skv_free((void *)s->specs);
	skv_free((char *)s->tenant);
	skv_free((char *)s->id);
	skv_free((char *)s->group);
	skv_free((char *)s->extra);
	skv_free(inst->classes);
	index_destroy(inst);
	evict_destroy_queues(inst);
	pins_destroy(inst);
	skv_free(inst);
}

static int instance_copy(struct instance *inst, const struct skv_instance_spec *i)
{
	struct skv_spec *specs = skv_calloc(i->n_specs, sizeof *specs);
	bool ok = specs != NULL;

	inst->spec = (struct skv_instance_spec){
		.tenant = skv_strdup(i->tenant), .id = skv_strdup(i->id),
		.group = skv_strdup(i->group),
		.block_tokens = i->block_tokens, .specs = specs, .n_specs = i->n_specs,
		.extra = skv_strdup(i->extra),
		.numbered = i->numbered, .named = i->named, .weight = i->weight,
		.capacity = i->capacity,
	};
	for (uint32_t s = 0; ok && s < i->n_specs; s++) {
		specs[s] = (struct skv_spec){ skv_strdup(i->specs[s].name), i->specs[s].size };
		ok = specs[s].name != NULL;
	}
	inst->block_bytes = spec_block_bytes(i);
	return ok && inst->spec.tenant && inst->spec.id && inst->spec.group && inst->spec.extra
		       ? SKV_OK
		       : SKV_E_NOMEM;
}

/* Makes room for one more. */
static int instances_reserve(struct partition *p)
{
	void *inst = p->inst, *name = p->inst_name;
	int rc = skv_grow(&inst, &p->cap_inst, p->n_inst + 1, sizeof *p->inst);

	ASSERT_EXCLUSIVE(p);
	p->inst = inst;
	if (rc == SKV_OK)
		rc = skv_grow(&name, &p->cap_inst_name, p->n_inst + 1, sizeof *p->inst_name);
	p->inst_name = name;
	return rc;
}

int partition_add_instance_to(struct partition *p, const struct skv_instance_spec *i, uint32_t id,
			      struct group *g)
{
	struct instance *inst = skv_calloc(1, sizeof *inst);

	ASSERT_EXCLUSIVE(p);
	if (!inst || instance_copy(inst, i) != SKV_OK || instances_reserve(p) != SKV_OK) {
		instance_free(inst);
		return SKV_E_NOMEM;
	}
	inst->tenant = tenant_need(p, i->tenant);
	if (!inst->tenant) {
		instance_free(inst);
		return SKV_E_NOMEM;
	}
	inst->id = id;
	inst->hash = name_hash(i->tenant, i->id);
	group_join(g, inst);
	p->inst_name[p->n_inst] = name_hash(i->tenant, i->id);
	p->inst[p->n_inst++] = inst;
	p->inst_turn++;
	return SKV_OK;
}

int partition_add_instance(struct partition *p, const struct skv_instance_spec *i, uint32_t id)
{
	struct group *g = group_find(p, i->group);

	ASSERT_EXCLUSIVE(p);
	return g ? partition_add_instance_to(p, i, id, g) : SKV_E_CORRUPT;
}

struct instance *instance_again(const struct instance *inst)
{
	struct instance *fresh = skv_calloc(1, sizeof *fresh);

	if (!fresh || instance_copy(fresh, &inst->spec) != SKV_OK) {
		instance_free(fresh);
		return NULL;
	}
	fresh->id = inst->id;
	fresh->version = inst->version;
	fresh->hash = inst->hash;
	fresh->group = inst->group;
	fresh->tenant = inst->tenant;
	atomic_init(&fresh->used, atomic_load(&inst->used));
	fresh->used_at = inst->used_at;
	fresh->unused_before = inst->unused_before;
	leases_copy(fresh, inst); /* leases stay counted */
	atomic_init(&fresh->hits, atomic_load(&inst->hits));
	fresh->evicted = inst->evicted;
	return fresh;
}

struct instance *instance_by_id(const struct partition *p, uint32_t id)
{
	ASSERT_SHARED(p);
	for (size_t i = 0; i < p->n_inst; i++)
		if (p->inst[i]->id == id)
			return p->inst[i];
	return NULL;
}

void partition_set_dropped(struct partition *p, uint32_t id)
{
	struct instance *inst = instance_by_id(p, id);

	ASSERT_EXCLUSIVE(p);
	if (!inst || inst->dropped)
		return;
	inst->deleting = inst->dropped = true;
	evict_destroy_queues(inst); /* it is empty, and its queues belong to its group */
	group_leave(inst);
	group_join(&p->detached, inst);
}

void partition_remove_instance(struct partition *p, struct instance *inst)
{
	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; i < p->n_inst; i++) {
		if (p->inst[i] != inst)
			continue;
		p->inst[i] = p->inst[--p->n_inst];
		p->inst_name[i] = p->inst_name[p->n_inst];
		group_leave(inst);
		instance_free(inst);
		return;
	}
}
