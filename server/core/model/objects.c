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
#include <model/layouts.h>
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
	void *volume = p->volume, *order = p->volume_order;
	int rc = p->n_volume == MAX_VOLUMES
			 ? SKV_E_TOO_MANY
			 : skv_grow(&volume, &p->cap_volume, p->n_volume + 1, sizeof *p->volume);

	ASSERT_EXCLUSIVE(p);
	p->volume = volume;
	if (rc == SKV_OK)
		rc = skv_grow(&order, &p->cap_volume_order, p->n_volume + 1,
			      sizeof *p->volume_order);
	p->volume_order = order;
	return rc;
}

/* Makes room for an element, or takes one away. */
static void insert_place(void *v, size_t n, size_t at, size_t size)
{
	assert(at <= n);
	memmove((char *)v + (at + 1) * size, (char *)v + at * size, (n - at) * size);
}

static void remove_place(void *v, size_t n, size_t at, size_t size)
{
	assert(at < n);
	memmove((char *)v + at * size, (char *)v + (at + 1) * size, (n - at - 1) * size);
}

/* Puts it in order. Loose groups may name a storage before it is made. */
static void name_volume(struct partition *p, uint32_t at)
{
	const char *name = p->volume[at].dev->name;
	const size_t place = volume_place(p, name);

	insert_place(p->volume_order, p->n_named++, place, sizeof *p->volume_order);
	p->volume_order[place] = at;
	for (size_t g = 0; g < p->n_group; g++) {
		const struct skv_group_spec *spec = &p->group[g]->spec;

		for (uint32_t i = 0; spec->loose_storages && i < spec->n_storages; i++) {
			if (strcmp(spec->storages[i], name) != 0)
				continue;
			p->volume[at].n_groups++;
			layouts_enter(p, p->group[g], &p->volume[at]);
		}
	}
}

void partition_forget_name(struct partition *p, uint32_t at)
{
	const size_t place = volume_place(p, p->volume[at].dev->name);

	ASSERT_EXCLUSIVE(p);
	assert(p->volume_order[place] == at);
	remove_place(p->volume_order, p->n_named--, place, sizeof *p->volume_order);
	p->n_gap++;
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
	sp->next_file = d->ops->counted ? 0 : file_first_number(p->core->number);
	rc = partition_count_slots(sp);
	if (rc != SKV_OK) {
		skv_pool_destroy(sp->pool);
		*sp = (struct volume){ 0 };
		return rc;
	}
	if (at == p->n_volume)
		p->n_volume++;
	else
		p->n_gap--;
	name_volume(p, at);
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

/* Counts (or, sign -1, uncounts) a group that names these storages. */
static void count_storages(struct partition *p, const struct group *g, int sign)
{
	for (uint32_t i = 0; i < g->spec.n_storages; i++) {
		const int at = volume_find(p, g->spec.storages[i]);

		assert(at < 0 || sign > 0 || p->volume[at].n_groups > 0);
		if (at >= 0)
			p->volume[at].n_groups += (uint32_t)sign;
	}
}

int partition_change_group(struct partition *p, struct group *have, const struct skv_group_spec *g)
{
	struct skv_group_spec copy;

	ASSERT_EXCLUSIVE(p);
	if (group_spec_copy(&copy, g) != SKV_OK)
		return SKV_E_NOMEM;
	count_storages(p, have, -1);
	layouts_count_group(p, have, -1);
	group_spec_free(&have->spec);
	have->spec = copy;
	count_storages(p, have, 1);
	layouts_count_group(p, have, 1);
	return SKV_OK;
}

int partition_add_group(struct partition *p, const struct skv_group_spec *g, uint64_t version)
{
	struct group *copy = skv_calloc(1, sizeof *copy);
	void *v = p->group;
	size_t at;

	ASSERT_EXCLUSIVE(p);
	if (!copy)
		return SKV_E_NOMEM;
	if (skv_grow(&v, &p->cap_group, p->n_group + 1, sizeof *p->group) != SKV_OK ||
	    ((p->group = v), group_spec_copy(&copy->spec, g)) != SKV_OK) {
		skv_free(copy);
		return SKV_E_NOMEM;
	}
	copy->version = version;
	if (policy_set(p, copy) != SKV_OK) {
		group_free(copy);
		return SKV_E_NOMEM;
	}
	at = group_place(p, g->name);
	insert_place(p->group, p->n_group++, at, sizeof *p->group);
	p->group[at] = copy;
	count_storages(p, copy, 1);
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
	struct group *g = group_find(p, name);

	ASSERT_EXCLUSIVE(p);
	assert(g && !g->wait_head && !g->fast && !g->members);
	p->n_tiers -= *g->spec.tier_of != '\0';
	tier_unlink(p, g);
	leave_detached(p, g);
	count_storages(p, g, -1);
	remove_place(p->group, p->n_group, group_place(p, name), sizeof *p->group);
	p->n_group--;
	for (uint32_t s = 0; s < p->n_volume; s++)
		evict_free_sets(p, s, g);
	group_free(g);
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
	void *inst = p->inst;
	int rc = skv_grow(&inst, &p->cap_inst, p->n_inst + 1, sizeof *p->inst);

	ASSERT_EXCLUSIVE(p);
	p->inst = inst;
	return rc;
}

/* Where it is in the partition's order. */
static size_t place_of(const struct partition *p, const struct instance *inst)
{
	const size_t at = instance_place(p, inst->spec.tenant, inst->spec.id, inst->id);

	assert(at < p->n_inst && p->inst[at] == inst);
	return at;
}

/* Returns the pointer to the instance in the chain of its number. */
static struct instance **id_link(struct partition *p, const struct instance *inst)
{
	struct instance **link = &p->inst_of_id[inst->id % INSTANCE_BUCKETS];

	while (*link != inst)
		link = &(*link)->next_of_id;
	return link;
}

int partition_add_instance_to(struct partition *p, const struct skv_instance_spec *i, uint32_t id,
			      struct group *g)
{
	struct instance *inst = skv_calloc(1, sizeof *inst);
	struct instance **bucket = &p->inst_of_id[id % INSTANCE_BUCKETS];
	size_t at;

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
	inst->hash = skv_policy_space(i->tenant, i->id);
	group_join(g ? g : &p->detached, inst);
	layouts_count(p, inst, 1);
	at = instance_place(p, i->tenant, i->id, id);
	insert_place(p->inst, p->n_inst++, at, sizeof *p->inst);
	p->inst[at] = inst;
	inst->next_of_id = *bucket;
	*bucket = inst;
	tenant_count(inst, 1);
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
	struct instance *inst = p->inst_of_id[id % INSTANCE_BUCKETS];

	ASSERT_SHARED(p);
	while (inst && inst->id != id)
		inst = inst->next_of_id;
	return inst;
}

void partition_set_dropped(struct partition *p, uint32_t id)
{
	struct instance *inst = instance_by_id(p, id);

	ASSERT_EXCLUSIVE(p);
	if (!inst || inst->dropped)
		return;
	tenant_count(inst, -1);
	inst->deleting = inst->dropped = true;
	evict_destroy_queues(inst); /* the instance is empty, and its queues belong to its group */
	layouts_count(p, inst, -1);
	group_leave(inst);
	group_join(&p->detached, inst);
}

void partition_remove_instance(struct partition *p, struct instance *inst)
{
	ASSERT_EXCLUSIVE(p);
	tenant_count(inst, -1);
	*id_link(p, inst) = inst->next_of_id;
	remove_place(p->inst, p->n_inst, place_of(p, inst), sizeof *p->inst);
	p->n_inst--;
	layouts_count(p, inst, -1);
	group_leave(inst);
	instance_free(inst);
}

void instances_free(struct partition *p)
{
	while (p->n_inst) {
		struct instance *inst = p->inst[--p->n_inst];

		tenant_count(inst, -1);
		group_leave(inst);
		instance_free(inst);
	}
	skv_free(p->inst);
}

void partition_replace_instance(struct partition *p, struct instance *of, struct instance *by)
{
	ASSERT_EXCLUSIVE(p);
	assert(by->id == of->id && by->group == of->group && by->tenant == of->tenant);
	p->inst[place_of(p, of)] = by;
	by->next_of_id = of->next_of_id;
	*id_link(p, of) = by;
	group_replace(of, by);
	p->inst_turn++;
}
