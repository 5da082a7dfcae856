/*
 * find.c - finds storages, groups, instances and specs by name.
 *
 * Hashes of the names are in arrays of their own, so that a search among thousands touches few of
 * them. Under the read lock.
 */
#include <model/find.h>

#include <stdio.h>
#include <string.h>

#include <model/device.h>
#include <model/objects.h>
#include <model/partition.h>

uint32_t name_hash(const char *name, const char *more)
{
	return (uint32_t)(skv_hash128(name, strlen(name)).lo +
			  31 * skv_hash128(more, strlen(more)).lo);
}

struct group *group_find(const struct partition *p, const char *name)
{
	uint32_t hash = name_hash(name, "");

	ASSERT_SHARED(p);
	for (size_t i = 0; i < p->n_group; i++)
		if (p->group_name[i] == hash && strcmp(p->group[i]->spec.name, name) == 0)
			return p->group[i];
	return NULL;
}

int volume_find(const struct partition *p, const char *name)
{
	uint32_t hash = name_hash(name, "");

	ASSERT_SHARED(p);
	for (uint32_t i = 0; i < p->n_volume; i++)
		if (p->volume_name[i] == hash && p->volume[i].pool &&
		    strcmp(p->volume[i].dev->name, name) == 0)
			return (int)i;
	return -1;
}

struct instance *instance_find(const struct partition *p, const char *tenant, const char *id)
{
	uint32_t name = name_hash(tenant, id);

	ASSERT_SHARED(p);
	for (size_t i = 0; i < p->n_inst; i++)
		if (p->inst_name[i] == name && !p->inst[i]->dropped &&
		    strcmp(p->inst[i]->spec.id, id) == 0 &&
		    strcmp(p->inst[i]->spec.tenant, tenant) == 0)
			return p->inst[i];
	return NULL;
}

int instance_need(const struct partition *p, const char *tenant, const char *id, const char *field,
		  struct instance **out, struct skv_error *err)
{
	struct instance *inst = instance_find(p, tenant, id);

	ASSERT_SHARED(p);
	if (!inst || inst->deleting)
		return skv_fail(err, SKV_E_NOT_FOUND, field, "no instance '%s': register it first",
				id);
	*out = inst;
	return SKV_OK;
}

int specs_resolve(const struct instance *inst, const char *const *names, uint32_t n, uint32_t *mask,
		  struct skv_error *err)
{
	char field[SKV_FIELD_MAX];

	*mask = n ? 0 : (uint32_t)((1ull << inst->spec.n_specs) - 1);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t s = 0;

		while (s < inst->spec.n_specs && strcmp(inst->spec.specs[s].name, names[i]) != 0)
			s++;
		snprintf(field, sizeof field, "specs[%u]", i);
		if (s == inst->spec.n_specs)
			return skv_fail(err, SKV_E_INVALID, field, "instance '%s' has no spec '%s'",
					inst->spec.id, names[i]);
		if (*mask >> s & 1)
			return skv_fail(err, SKV_E_INVALID, field, "'%s' is named twice", names[i]);
		*mask |= 1u << s;
	}
	return SKV_OK;
}

int specs_names(const struct instance *inst, uint32_t mask, struct skv_arena *a,
		const char *const **names, uint32_t *n)
{
	const char **v = skv_arena_alloc(a, SKV_MAX_SPECS * sizeof *v);
	uint32_t count = 0;

	for (uint32_t s = 0; v && s < inst->spec.n_specs; s++) {
		if (!(mask >> s & 1))
			continue;
		v[count] = skv_arena_strndup(a, inst->spec.specs[s].name,
					     strlen(inst->spec.specs[s].name));
		if (!v[count++])
			return SKV_E_NOMEM;
	}
	*names = v;
	*n = count;
	return v ? SKV_OK : SKV_E_NOMEM;
}
