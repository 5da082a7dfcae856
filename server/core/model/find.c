/*
 * find.c - finds storages, groups, instances and specs by name.
 *
 * The arrays are sorted, so that a search among very many touches few of them, and lists are read a
 * page at a time. Under the read lock.
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

/* A name that is looked for. */
struct wanted {
	const char *tenant, *name;
	uint32_t number;
};

/* Returns a negative number if the object at that place comes before the name. */
typedef int order_fn(const struct partition *p, size_t at, const struct wanted *w);

static size_t place(const struct partition *p, size_t n, order_fn *order, const struct wanted *w)
{
	size_t lo = 0;

	ASSERT_SHARED(p);
	while (lo < n) {
		size_t mid = lo + (n - lo) / 2;

		if (order(p, mid, w) < 0)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

static int group_order(const struct partition *p, size_t at, const struct wanted *w)
{
	return strcmp(p->group[at]->spec.name, w->name);
}

size_t group_place(const struct partition *p, const char *name)
{
	return place(p, p->n_group, group_order, &(struct wanted){ .name = name });
}

struct group *group_find(const struct partition *p, const char *name)
{
	const size_t at = group_place(p, name);

	return at < p->n_group && strcmp(p->group[at]->spec.name, name) == 0 ? p->group[at] : NULL;
}

static const char *volume_name(const struct partition *p, size_t at)
{
	return p->volume[p->volume_order[at]].dev->name;
}

static int volume_order(const struct partition *p, size_t at, const struct wanted *w)
{
	return strcmp(volume_name(p, at), w->name);
}

size_t volume_place(const struct partition *p, const char *name)
{
	return place(p, p->n_named, volume_order, &(struct wanted){ .name = name });
}

int volume_find(const struct partition *p, const char *name)
{
	const size_t at = volume_place(p, name);

	return at < p->n_named && strcmp(volume_name(p, at), name) == 0 ? (int)p->volume_order[at]
									: -1;
}

static int instance_order(const struct partition *p, size_t at, const struct wanted *w)
{
	const struct instance *inst = p->inst[at];
	int order = strcmp(inst->spec.tenant, w->tenant);

	if (order == 0)
		order = strcmp(inst->spec.id, w->name);
	return order ? order : inst->id < w->number ? -1 : inst->id > w->number;
}

size_t instance_place(const struct partition *p, const char *tenant, const char *id,
		      uint32_t number)
{
	return place(p, p->n_inst, instance_order, &(struct wanted){ tenant, id, number });
}

struct instance *instance_find(const struct partition *p, const char *tenant, const char *id)
{
	const size_t end = instance_place(p, tenant, id, UINT32_MAX);
	struct instance *inst = end ? p->inst[end - 1] : NULL;

	return inst && !inst->dropped && strcmp(inst->spec.id, id) == 0 &&
			       strcmp(inst->spec.tenant, tenant) == 0
		       ? inst
		       : NULL;
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
