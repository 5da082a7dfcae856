/* admin.c - the administrators' turn, and groups: create, change, delete. Views are in stats.c. */
#include "admin.h"

#include <stdio.h>
#include <string.h>

#include <skv/store.h>

#include <assert.h>
#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/one.h>
#include <lock/turn.h>
#include <model/device.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/policy.h>
#include <journal/registry.h>
#include <journal/registry_write.h>
#include <ops/start.h>

/* ---- turn ------------------------------------------------------------------------------------ */

int admin_leave(struct skv_core *c, int rc)
{
	turn_leave(c);
	return rc;
}

static int begin(struct skv_core *c, struct skv_error *err)
{
	int rc;

	c->turn_fence = owner_fence(c);
	rc = core_gate(c, err);
	return rc == SKV_OK ? rc : admin_leave(c, rc);
}

int admin_enter(struct skv_core *c, struct skv_error *err)
{
	turn_take(c);
	return begin(c, err);
}

int admin_try(struct skv_core *c, struct skv_error *err)
{
	return turn_try(c) ? begin(c, err)
			   : skv_fail(err, SKV_E_TIMEOUT, NULL, "an administrator is at work");
}

struct partition *admin_lock(struct skv_core *c, int *rc, struct skv_error *err)
{
	struct partition *p = admin_follow(c);

	if (!p)
		*rc = gate_recovering(err);
	return p;
}

int admin_out_of_step(struct skv_core *c, int rc)
{
	owner_ask_reload(c, c->turn_fence);
	return rc;
}

int admin_written(struct skv_core *c, int rc)
{
	bool astray = rc == SKV_E_UNKNOWN_OUTCOME || rc == SKV_E_CONFLICT || rc == SKV_E_NOT_FOUND;

	return astray ? admin_out_of_step(c, rc) : rc;
}

struct partition *admin_follow(struct skv_core *c)
{
	core_lock(c);
	if (c->partition && c->partition->fence == c->turn_fence)
		return c->partition;
	core_unlock(c);
	return NULL;
}

int admin_check_put(enum skv_put how, bool exists, const char *what, const char *field,
		    const char *name, struct skv_error *err)
{
	if (how == SKV_PUT_NEW && exists)
		return skv_fail(err, SKV_E_CONFLICT, field, "%s '%s' exists already", what, name);
	if (how == SKV_PUT_THERE && !exists)
		return skv_fail(err, SKV_E_NOT_FOUND, field, "no %s '%s'", what, name);
	return SKV_OK;
}

int admin_check_marks(uint32_t high, uint32_t low, struct skv_error *err)
{
	if (high > 100)
		return skv_fail(err, SKV_E_INVALID, "high_percent", "0 to 100, not %u", high);
	if (high && high < 100 && (low == 0 || low > high))
		return skv_fail(err, SKV_E_INVALID, "low_percent", "1 to high_percent (%u), not %u",
				high, low);
	if (low && (high == 0 || high == 100))
		return skv_fail(err, SKV_E_INVALID, "low_percent",
				"only with a high_percent of 1 to 99");
	return SKV_OK;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static int check_quotas(const struct skv_group_spec *g, struct skv_error *err)
{
	char field[SKV_FIELD_MAX];

	if (g->n_quotas > SKV_MAX_QUOTAS)
		return skv_fail(err, SKV_E_INVALID, "quotas", "%u at most", SKV_MAX_QUOTAS);
	for (uint32_t i = 0; i < g->n_quotas; i++) {
		snprintf(field, sizeof field, "quotas[%u].type", i);
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(g->quotas[i].type, g->quotas[j].type) == 0)
				return skv_fail(err, SKV_E_INVALID, field, "'%s' is named twice",
						g->quotas[i].type);
	}
	return SKV_OK;
}

/* Returns true if the group mixes storages that count slots with storages that hold bytes. */
static bool counts_and_bytes(const struct partition *p, const struct skv_group_spec *g)
{
	bool counted[2] = { false, false };

	for (uint32_t i = 0; i < g->n_storages; i++) {
		int at = volume_find(p, g->storages[i]);

		if (at >= 0)
			counted[p->volume[at].dev->ops->counted] = true;
	}
	return counted[0] && counted[1];
}

static bool has_counted(const struct partition *p, const struct skv_group_spec *g)
{
	for (uint32_t i = 0; i < g->n_storages; i++) {
		int at = volume_find(p, g->storages[i]);

		if (at >= 0 && p->volume[at].dev->ops->counted)
			return true;
	}
	return false;
}

/* A fast tier has copies of one other group, which has no other tier, and is none. */
static int check_tier(const struct partition *p, const struct skv_group_spec *g,
		      struct skv_error *err)
{
	const struct group *have = group_find(p, g->name);
	const struct group *slow = *g->tier_of ? group_find(p, g->tier_of) : NULL;

	ASSERT_SHARED(p);
	if (have && strcmp(have->spec.tier_of, g->tier_of) != 0)
		return skv_fail(err, SKV_E_CONFLICT, "tier_of",
				"it is fixed when a group is made: delete the group first");
	if (g->promote_after > SKV_MAX_PROMOTE)
		return skv_fail(err, SKV_E_INVALID, "promote_after", "0 to %u", SKV_MAX_PROMOTE);
	if (!*g->tier_of && (g->write_through || g->promote_after || g->replicate))
		return skv_fail(err, SKV_E_INVALID,
				g->write_through   ? "write_through"
				: g->promote_after ? "promote_after"
						   : "replicate",
				"only of a fast tier (tier_of)");
	if (!*g->tier_of)
		return SKV_OK;
	if (strcmp(g->name, g->tier_of) == 0)
		return skv_fail(err, SKV_E_INVALID, "tier_of", "another group, not itself");
	if (!slow)
		return skv_fail(err, SKV_E_NOT_FOUND, "tier_of",
				"no group '%s' in this one's partition: create it first",
				g->tier_of);
	if (*slow->spec.tier_of || (have && have->fast))
		return skv_fail(err, SKV_E_INVALID, "tier_of",
				"two tiers are the most, but '%s' is the fast tier of '%s'",
				*slow->spec.tier_of ? slow->spec.name : have->fast->spec.name,
				*slow->spec.tier_of ? slow->spec.tier_of : g->name);
	if (slow->fast && slow->fast != have)
		return skv_fail(err, SKV_E_CONFLICT, "tier_of", "group '%s' has a fast tier: '%s'",
				g->tier_of, slow->fast->spec.name);
	if (has_counted(p, g) || has_counted(p, &slow->spec))
		return skv_fail(err, SKV_E_INVALID, "tier_of",
				"not of, and not for, storages of type external");
	return SKV_OK;
}

static int check_group(const struct partition *p, const struct skv_group_spec *g,
		       struct skv_error *err)
{
	char field[SKV_FIELD_MAX];
	int rc;

	ASSERT_SHARED(p);
	if ((g->n_storages == 0 && !g->loose_storages) || g->n_storages > MAX_GROUP_STORAGES)
		return skv_fail(err, SKV_E_INVALID, "storages", "name 1..%u storages",
				MAX_GROUP_STORAGES);
	for (uint32_t i = 0; i < g->n_storages; i++) {
		snprintf(field, sizeof field, "storages[%u]", i);
		if (!g->loose_storages && volume_find(p, g->storages[i]) < 0)
			return skv_fail(err, SKV_E_NOT_FOUND, field,
					"no storage '%s': create it first", g->storages[i]);
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(g->storages[i], g->storages[j]) == 0)
				return skv_fail(err, SKV_E_INVALID, field, "'%s' is named twice",
						g->storages[i]);
	}
	if (counts_and_bytes(p, g))
		return skv_fail(err, SKV_E_INVALID, "storages",
				"must be all of type external, or none");
	rc = policy_check(g, err);
	if (rc == SKV_OK)
		rc = check_tier(p, g, err);
	if (rc != SKV_OK)
		return rc;
	if (g->reclaim_step_percent > 100)
		return skv_fail(err, SKV_E_INVALID, "reclaim_step_percent", "0 to 100");
	if (admin_check_marks(g->high_percent, g->low_percent, err) != SKV_OK)
		return SKV_E_INVALID;
	if (g->pin_percent > 100)
		return skv_fail(err, SKV_E_INVALID, "pin_percent", "0 to 100, not %u",
				g->pin_percent);
	if (strlen(g->extra) > SKV_MAX_EXTRA)
		return skv_fail(err, SKV_E_TOO_LARGE, "extra", "%u bytes at most", SKV_MAX_EXTRA);
	return check_quotas(g, err);
}

/* Compares their documents, so that no field is forgotten. */
static bool same_group(const struct skv_group_spec *a, const struct skv_group_spec *b)
{
	struct skv_buf x = { 0 }, y = { 0 };
	bool same;

	registry_put_group(&x, a);
	registry_put_group(&y, b);
	same = !x.failed && !y.failed && x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
	skv_buf_destroy(&x);
	skv_buf_destroy(&y);
	return same;
}

static int check_version(const struct group *have, const uint64_t *expect, struct skv_error *err)
{
	uint64_t is = have ? have->spec.version : 0;

	if (!expect || *expect == is)
		return SKV_OK;
	return skv_fail(err, SKV_E_CONFLICT, "version",
			"it is %llu, not %llu: the group was changed meanwhile",
			(unsigned long long)is, (unsigned long long)*expect);
}

static int adopt_group(struct skv_core *c, const struct skv_group_spec *g, uint64_t version)
{
	struct group *have;
	int rc = SKV_OK;
	struct partition *p = admin_follow(c);

	if (!p)
		return SKV_OK;
	have = group_find(p, g->name);
	if (!have) {
		rc = partition_add_group(p, g, version);
	} else {
		rc = partition_change_group(p, have, g);
		if (rc == SKV_OK) {
			rc = policy_set(p, have);
			have->version = version;
			have->reclaim_at = 0;
		}
	}
	core_unlock(c);
	return rc == SKV_OK ? rc : admin_out_of_step(c, rc);
}

int one_group_put(struct skv_core *c, const struct skv_group_spec *spec, enum skv_put how,
		  const uint64_t *expect, bool *created, struct skv_error *err)
{
	struct skv_group_spec copy = *spec, *g = &copy;
	struct skv_buf b = { 0 };
	uint64_t version = SKV_VERSION_NONE;
	const struct group *have;
	struct partition *p;
	char key[160];
	bool same;
	int rc = admin_enter(c, err);

	if (rc != SKV_OK)
		return rc;
	g->extra = g->extra ? g->extra : "";
	g->policy = g->policy ? g->policy : "";
	g->tier_of = g->tier_of ? g->tier_of : "";
	p = admin_lock(c, &rc, err);
	if (!p)
		return admin_leave(c, rc);
	have = group_find(p, g->name);
	rc = admin_check_put(how, have != NULL, "group", "name", g->name, err);
	if (rc == SKV_OK)
		rc = check_group(p, g, err);
	if (rc == SKV_OK)
		rc = check_version(have, expect, err);
	same = rc == SKV_OK && have && same_group(&have->spec, g);
	if (have)
		version = have->version;
	core_unlock(c);
	if (created)
		*created = rc == SKV_OK && !have;
	if (rc != SKV_OK || same)
		return admin_leave(c, rc);
	registry_put_group(&b, g);
	snprintf(key, sizeof key, "group/%s", g->name);
	rc = admin_written(c, registry_put(c, c->turn_fence, key, version, &b, &version, err));
	skv_buf_destroy(&b);
	if (rc == SKV_OK)
		rc = adopt_group(c, g, version);
	return admin_leave(c, rc);
}

int one_group_delete(struct skv_core *c, const char *name, struct skv_error *err)
{
	const struct group *g;
	uint64_t version = 0;
	struct partition *p;
	char key[160];
	int rc = admin_enter(c, err);

	if (rc != SKV_OK)
		return rc;
	p = admin_lock(c, &rc, err);
	if (!p)
		return admin_leave(c, rc);
	g = group_find(p, name);
	if (!g)
		rc = skv_fail(err, SKV_E_NOT_FOUND, "name", "no group '%s'", name);
	else if (g->n_instances)
		rc = skv_fail(err, SKV_E_IN_USE, "name", "%u instances are in it", g->n_instances);
	else if (g->fast)
		rc = skv_fail(err, SKV_E_IN_USE, "name",
			      "it has a fast tier: delete group '%s' first", g->fast->spec.name);
	else
		version = g->version;
	core_unlock(c);
	snprintf(key, sizeof key, "group/%s", name);
	if (rc == SKV_OK)
		rc = admin_written(c, registry_del(c, c->turn_fence, key, version, err));
	if (rc != SKV_OK)
		return admin_leave(c, rc);
	p = admin_follow(c);
	if (p) {
		struct group *gone = group_find(p, name);

		if (gone) {
			start_fail_line(p, gone, SKV_E_NOT_FOUND, "its group was deleted");
			partition_remove_group(p, name);
		}
		core_unlock(c);
	}
	return admin_leave(c, rc);
}
