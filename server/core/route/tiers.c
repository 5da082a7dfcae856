/*
 * tiers.c - copy instances (decision 0051): made with the instances whose copies they have, and
 * with their group, and deleted with these.
 *
 * They are objects like others, with places of their own; a fast tier is in the partition of the
 * group that it is of. In the administrators' turn. Blocks.
 */
#include "route.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/arena.h>
#include <skv/log.h>

#include <lock/lock.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/tier.h>

/* What a group is to others; "" = nothing. */
struct ties {
	char fast[SKV_MAX_NAME + 1]; /* its fast tier */
	char slow[SKV_MAX_NAME + 1]; /* whose fast tier it is */
};

static struct ties ties_here(struct skv_core *one, const char *group)
{
	struct ties t = { .fast = "" };
	const struct group *g;

	skv_rwlock_read(&one->lock);
	g = one->partition ? group_find(one->partition, group) : NULL;
	if (g && g->fast)
		snprintf(t.fast, sizeof t.fast, "%s", g->fast->spec.name);
	if (g)
		snprintf(t.slow, sizeof t.slow, "%s", g->spec.tier_of);
	skv_rwlock_read_unlock(&one->lock);
	assert(!*t.fast || !*t.slow);
	return t;
}

/* A fast tier is in the partition of its group, wherever that is. */
static int ties_of(struct skv_core *c, struct skv_core *at, const char *group, struct ties *t,
		   struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_GROUPS };
	struct skv_told told;
	struct skv_arena a;
	int rc;

	*t = ties_here(at, group);
	if (!route_asks(c->route, at))
		return SKV_OK;
	skv_arena_init(&a);
	rc = route_ask(c, at, &q, &told, &a, err);
	for (uint32_t i = 0; rc == SKV_OK && i < told.n_groups; i++) {
		const struct skv_group_spec *g = &told.groups[i].spec;

		if (strcmp(g->name, group) == 0)
			snprintf(t->slow, sizeof t->slow, "%s", g->tier_of ? g->tier_of : "");
		else if (g->tier_of && strcmp(g->tier_of, group) == 0)
			snprintf(t->fast, sizeof t->fast, "%s", g->name);
	}
	skv_arena_destroy(&a);
	return rc;
}

int tiers_check_instance(struct skv_core *c, struct skv_core *at,
			 const struct skv_instance_spec *i, struct skv_error *err)
{
	struct ties t;
	int rc = ties_of(c, at, i->group, &t, err);

	if (rc != SKV_OK || !*t.slow)
		return rc;
	return skv_fail(err, SKV_E_INVALID, "group",
			"'%s' is the fast tier of group '%s': register instances there", i->group,
			t.slow);
}

static int put_copies(struct skv_core *c, struct skv_core *at, const struct skv_instance_spec *i,
		      const char *fast, struct skv_error *err)
{
	struct skv_instance_spec copies = { .tenant = i->tenant, .group = fast,
					    .block_tokens = i->block_tokens, .specs = i->specs,
					    .n_specs = i->n_specs, .extra = "",
					    .numbered = i->numbered };
	struct skv_ask q = { .what = SKV_ASK_INSTANCE_PUT, .tenant = i->tenant,
			     .instance = &copies, .n_instance = 1 };
	char name[TIER_NAME];
	struct skv_told told;
	struct skv_arena a;
	int rc = SKV_OK;

	tier_name(name, i->id, fast);
	if (strlen(name) > SKV_MAX_NAME)
		return skv_fail(err, SKV_E_TOO_LARGE, "id", "'%s' has more than %u characters",
				name, SKV_MAX_NAME);
	q.name = copies.id = name;
	if (c->route)
		rc = route_place_instance(c, &copies, &at, err);
	if (rc != SKV_OK)
		return rc;
	skv_arena_init(&a);
	rc = route_ask(c, at, &q, &told, &a, err);
	skv_arena_destroy(&a);
	return rc;
}

void tiers_put_instance(struct skv_core *c, struct skv_core *at,
			const struct skv_instance_spec *i)
{
	struct skv_error err = { 0 };
	struct ties t;
	int rc = ties_of(c, at, i->group, &t, &err);
	const uint32_t was = core_log(at);

	if (rc == SKV_OK && *t.fast)
		rc = put_copies(c, at, i, t.fast, &err);
	if (rc != SKV_OK)
		skv_log(SKV_LOG_WARN, "core", "instance %s has no copies in group %s: %s%s%s",
			i->id, t.fast, err.field, *err.field ? ": " : "", err.message);
	skv_log_partition(was);
}

static int all_instances(struct skv_core *c, struct skv_core *at, struct skv_told *told,
			 struct skv_arena *a, struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_INSTANCES };

	return route_ask(c, at, &q, told, a, err);
}

int tiers_put_group(struct skv_core *c, struct skv_core *at, const struct skv_group_spec *g,
		    struct skv_error *err)
{
	struct skv_told told;
	struct skv_arena a;
	int rc;

	if (!g->tier_of || !*g->tier_of)
		return SKV_OK;
	skv_arena_init(&a);
	rc = all_instances(c, at, &told, &a, err);
	for (uint32_t i = 0; rc == SKV_OK && i < told.n_instances; i++) {
		const struct skv_instance_spec *spec = &told.instances[i].spec;

		if (strcmp(spec->group, g->tier_of) == 0)
			rc = put_copies(c, at, spec, g->name, err);
	}
	skv_arena_destroy(&a);
	return rc;
}

static int delete_one(struct skv_core *c, struct skv_core *at, const char *tenant, const char *id,
		      struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_INSTANCE_DELETE, .tenant = tenant, .name = id };
	struct skv_told told;
	struct skv_arena a;
	int rc;

	skv_arena_init(&a);
	rc = route_ask(c, at, &q, &told, &a, err);
	skv_arena_destroy(&a);
	return rc;
}

int tiers_empty_group(struct skv_core *c, struct skv_core *at, const char *group,
		      struct skv_error *err)
{
	struct skv_told told;
	struct skv_arena a;
	struct ties t;
	int rc = ties_of(c, at, group, &t, err);

	if (rc != SKV_OK || !*t.slow)
		return rc;
	skv_arena_init(&a);
	rc = all_instances(c, at, &told, &a, err);
	for (uint32_t i = 0; rc == SKV_OK && i < told.n_instances; i++) {
		const struct skv_instance_spec *spec = &told.instances[i].spec;

		if (strcmp(spec->group, group) == 0)
			rc = delete_one(c, at, spec->tenant, spec->id, err);
	}
	skv_arena_destroy(&a);
	return rc;
}

static bool copies_here(struct skv_core *one, const char *tenant, const char *id,
			char out[TIER_NAME])
{
	const struct instance *inst;
	bool has = false;

	skv_rwlock_read(&one->lock);
	inst = one->partition ? instance_find(one->partition, tenant, id) : NULL;
	if (inst && inst->group->fast) {
		tier_name(out, id, inst->group->fast->spec.name);
		has = instance_find(one->partition, tenant, out) != NULL;
	}
	skv_rwlock_read_unlock(&one->lock);
	return has;
}

/* Where one cannot tell, they stay until they are unused. */
static bool copies_there(struct skv_core *c, struct skv_core *at, const char *tenant,
			 const char *id, char out[TIER_NAME])
{
	struct skv_ask q = { .what = SKV_ASK_INSTANCES, .tenant = tenant, .name = id };
	struct skv_error ignored = { 0 };
	struct skv_told told;
	struct skv_arena a;
	struct ties t = { .fast = "" };
	bool has = false;

	skv_arena_init(&a);
	if (route_ask(c, at, &q, &told, &a, &ignored) == SKV_OK && told.n_instances == 1 &&
	    ties_of(c, at, told.instances[0].spec.group, &t, &ignored) == SKV_OK && *t.fast) {
		tier_name(out, id, t.fast);
		q.name = out;
		has = route_ask(c, at, &q, &told, &a, &ignored) == SKV_OK &&
		      told.n_instances == 1;
	}
	skv_arena_destroy(&a);
	return has;
}

bool tiers_copies_of(struct skv_core *c, struct skv_core *at, const char *tenant, const char *id,
		     char out[TIER_NAME])
{
	return route_asks(c->route, at) ? copies_there(c, at, tenant, id, out)
					: copies_here(at, tenant, id, out);
}

void tiers_drop_copies(struct skv_core *c, struct skv_core *at, const char *tenant,
		       const char *copies)
{
	const uint32_t was = core_log(at);
	struct skv_error err = { 0 };

	if (delete_one(c, at, tenant, copies, &err) != SKV_OK)
		skv_log(SKV_LOG_WARN, "core", "copy instance %s stays until it is unused: %s",
			copies, err.message);
	skv_log_partition(was);
}
