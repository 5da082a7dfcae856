/*
 * tiers.c - copy instances (decision 0051): made with the instances whose copies they have, and
 * with their group, and deleted with these.
 *
 * They are objects like others, with places of their own; a fast tier is in the partition of the
 * group that it is of. In the administrators' turn. Blocks.
 */
#include "at.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/arena.h>
#include <skv/log.h>

#include <lock/gate.h>
#include <lock/lock.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/tier.h>

#include "route.h"

/* A group's relations to others; "" = none. */
struct ties {
	char fast[SKV_MAX_NAME + 1]; /* fast tier of the group */
	char slow[SKV_MAX_NAME + 1]; /* group whose fast tier this is */
};

/* From the partition, if that is here: a view sums up all instances of the group. */
static bool ties_here(struct skv_core *at, const char *group, struct ties *t)
{
	const struct group *g = NULL;

	skv_rwlock_read(&at->lock);
	if (at->partition && core_gate(at, NULL) == SKV_OK)
		g = group_find(at->partition, group);
	if (g) {
		snprintf(t->fast, sizeof t->fast, "%s", g->fast ? g->fast->spec.name : "");
		snprintf(t->slow, sizeof t->slow, "%s", g->spec.tier_of);
	}
	skv_rwlock_read_unlock(&at->lock);
	return g != NULL;
}

/* A fast tier is in the partition of its group, wherever that is. */
static int ties_of(struct skv_cluster *at, const char *group, struct ties *t, struct skv_error *err)
{
	struct skv_group_view *v;
	struct skv_arena a;
	int rc;

	*t = (struct ties){ .fast = "" };
	if (ties_here(at->core, group, t))
		return SKV_OK;
	skv_arena_init(&a);
	rc = at_group(at, group, &a, &v, err);
	if (rc == SKV_OK) {
		snprintf(t->fast, sizeof t->fast, "%s", v->fast ? v->fast : "");
		snprintf(t->slow, sizeof t->slow, "%s", v->spec.tier_of ? v->spec.tier_of : "");
	} else if (rc == SKV_E_NOT_FOUND) {
		skv_error_clear(err);
		rc = SKV_OK;
	}
	assert(!*t->fast || !*t->slow);
	skv_arena_destroy(&a);
	return rc;
}

int tiers_check_instance(struct skv_cluster *at, const struct skv_instance_spec *i,
			 struct skv_error *err)
{
	struct ties t;
	int rc = ties_of(at, i->group, &t, err);

	if (rc != SKV_OK || !*t.slow)
		return rc;
	return skv_fail(err, SKV_E_INVALID, "group",
			"'%s' is the fast tier of group '%s': register instances there", i->group,
			t.slow);
}

static int put_copies(struct skv_cluster *at, const struct skv_instance_spec *i, const char *fast,
		      struct skv_error *err)
{
	struct skv_instance_spec copies = { .tenant = i->tenant, .group = fast,
					    .block_tokens = i->block_tokens, .specs = i->specs,
					    .n_specs = i->n_specs, .extra = "",
					    .numbered = i->numbered };
	char name[TIER_NAME];
	int rc;

	tier_name(name, i->id, fast);
	if (strlen(name) > SKV_MAX_NAME)
		return skv_fail(err, SKV_E_TOO_LARGE, "id", "'%s' has more than %u characters",
				name, SKV_MAX_NAME);
	copies.id = name;
	rc = route_place_instance(at->route, &copies, &at, err);
	return rc == SKV_OK ? at_instance_put(at, &copies, SKV_PUT_ANY, NULL, err) : rc;
}

void tiers_put_instance(struct skv_cluster *at, const struct skv_instance_spec *i)
{
	struct skv_error err = { 0 };
	struct ties t;
	int rc = ties_of(at, i->group, &t, &err);
	const uint32_t was = core_log(at->core);

	if (rc == SKV_OK && *t.fast)
		rc = put_copies(at, i, t.fast, &err);
	if (rc != SKV_OK)
		skv_log(SKV_LOG_WARN, "core", "instance %s has no copies in group %s: %s%s%s",
			i->id, t.fast, err.field, *err.field ? ": " : "", err.message);
	skv_log_partition(was);
}

int tiers_put_group(struct skv_cluster *at, const struct skv_group_spec *g, struct skv_error *err)
{
	struct skv_page page = SKV_PAGE;
	struct skv_instance_list list;
	struct skv_arena a;
	int rc;

	if (!g->tier_of || !*g->tier_of)
		return SKV_OK;
	skv_arena_init(&a);
	do {
		rc = at_instance_list(at, &page, &a, &list, err);
		for (uint32_t i = 0; rc == SKV_OK && i < list.n_instances; i++)
			if (strcmp(list.instances[i].spec.group, g->tier_of) == 0)
				rc = put_copies(at, &list.instances[i].spec, g->name, err);
	} while (rc == SKV_OK && skv_page_next(&page, list.next));
	skv_arena_destroy(&a);
	return rc;
}

int tiers_empty_group(struct skv_cluster *at, const char *group, struct skv_error *err)
{
	struct skv_page page = SKV_PAGE;
	struct skv_instance_list list;
	struct skv_arena a;
	struct ties t;
	int rc = ties_of(at, group, &t, err);

	if (rc != SKV_OK || !*t.slow)
		return rc;
	skv_arena_init(&a);
	do {
		rc = at_instance_list(at, &page, &a, &list, err);
		for (uint32_t i = 0; rc == SKV_OK && i < list.n_instances; i++) {
			const struct skv_instance_spec *spec = &list.instances[i].spec;

			if (strcmp(spec->group, group) == 0)
				rc = at_instance_delete(at, spec->tenant, spec->id, NULL, err);
		}
	} while (rc == SKV_OK && skv_page_next(&page, list.next));
	skv_arena_destroy(&a);
	return rc;
}

/* Where one cannot tell, they stay until they are unused. */
bool tiers_copies_of(struct skv_cluster *at, const char *tenant, const char *id,
		     char out[TIER_NAME])
{
	struct skv_error ignored = { 0 };
	struct skv_instance_view *v;
	struct ties t = { .fast = "" };
	struct skv_arena a;
	bool has = false;

	skv_arena_init(&a);
	if (at_instance(at, tenant, id, &a, &v, &ignored) == SKV_OK &&
	    ties_of(at, v->spec.group, &t, &ignored) == SKV_OK && *t.fast) {
		tier_name(out, id, t.fast);
		has = at_instance(at, tenant, out, &a, &v, &ignored) == SKV_OK;
	}
	skv_arena_destroy(&a);
	return has;
}

void tiers_drop_copies(struct skv_cluster *at, const char *tenant, const char *copies)
{
	const uint32_t was = core_log(at->core);
	struct skv_error err = { 0 };

	if (at_instance_delete(at, tenant, copies, NULL, &err) != SKV_OK)
		skv_log(SKV_LOG_WARN, "core", "copy instance %s stays until it is unused: %s",
			copies, err.message);
	skv_log_partition(was);
}
