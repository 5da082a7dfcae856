/*
 * rights.c - what a caller may, by its tenant: the part of tenants.h that knows calls.
 *
 * No state of its own, no locks but those of tenants.c.
 */
#include <skv/tenants.h>

#include <assert.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/core.h>
#include <skv/log.h>
#include <skv/request.h>

/* Has the caller's tenant the page space of this storage or group? */
static bool has_space(struct skv_request *c, const char *name)
{
	const char *id = strchr(name + strlen(SKV_SPACES), ':');
	struct skv_instance_view *v;
	struct skv_error ignored;
	uint32_t n = 0;

	assert(strncmp(name, SKV_SPACES, strlen(SKV_SPACES)) == 0);
	return id &&
	       skv_core_instances(c->s->core, c->caller.tenant, id + 1, &c->arena, &v, &n,
				  &ignored) == SKV_OK &&
	       n == 1 && strcmp(v[0].spec.group, name) == 0;
}

static bool may_use(struct skv_request *c, enum skv_owned kind, const char *name)
{
	assert(kind == SKV_OWNED_GROUP || kind == SKV_OWNED_STORAGE);
	if (strncmp(name, SKV_SPACES, strlen(SKV_SPACES)) == 0)
		return has_space(c, name);
	return skv_tenants_may_use(&c->s->tenants, c->caller.tenant, kind, name);
}

bool skv_tenant_is_operator(const struct skv_request *c)
{
	return !c->s->tenants.on || !*c->caller.tenant ||
	       strcmp(c->caller.tenant, SKV_OPERATOR) == 0;
}

bool skv_tenant_is_own(const struct skv_request *c, const char *tenant)
{
	return skv_tenant_is_operator(c) || strcmp(c->caller.tenant, tenant) == 0;
}

/* The operator's administrators are let in however many calls their tenant makes. */
static int check_rate(struct skv_request *c)
{
	if (!c->s->tenants.on || (skv_tenant_is_operator(c) && c->caller.role >= ROLE_ADMIN) ||
	    skv_tenants_pass(&c->s->tenants, c->caller.tenant, skv_now_us()))
		return SKV_OK;
	skv_metrics_add(&c->s->metrics, METRIC_tenant_refused, 1);
	return skv_fail(&c->err, SKV_E_TOO_MANY, NULL,
			"tenant '%s' is over its requests_per_s: retry later", c->caller.tenant);
}

int skv_tenant_check_route(struct skv_request *c)
{
	int rc = check_rate(c);

	if (rc != SKV_OK || skv_tenant_is_operator(c))
		return rc;
	assert(c->s->tenants.on && c->route);
	if (!atomic_load(&c->s->tenants.read))
		return skv_fail(&c->err, SKV_E_NOT_READY, NULL,
				"the tenants in the store have not been read yet: retry");
	if (c->route->role < ROLE_ADMIN || c->route->flags & ROUTE_TENANT)
		return SKV_OK;
	return skv_fail(&c->err, SKV_E_FORBIDDEN, NULL,
			"this is for administrators of tenant '" SKV_OPERATOR "'");
}

bool skv_tenant_sees(struct skv_request *c, enum skv_owned kind, const char *name)
{
	return skv_tenant_is_operator(c) || may_use(c, kind, name);
}

static int is_not_there(struct skv_request *c, enum skv_owned kind, const char *field,
			const char *name)
{
	return skv_fail(&c->err, SKV_E_NOT_FOUND, field, "no %s '%s'",
			kind == SKV_OWNED_GROUP ? "group" : "storage", name);
}

int skv_tenant_use(struct skv_request *c, enum skv_owned kind, const char *name)
{
	const char *field = kind == SKV_OWNED_GROUP ? "group" : "storages";

	if (skv_tenant_is_operator(c) && (!c->s->tenants.on || c->caller.role >= ROLE_ADMIN))
		return SKV_OK;
	if (may_use(c, kind, name))
		return SKV_OK;
	if (skv_tenant_is_operator(c))
		return skv_fail(&c->err, SKV_E_FORBIDDEN, field, "'%s' belongs to other tenants",
				name);
	return is_not_there(c, kind, field, name);
}

int skv_tenant_change(struct skv_request *c, enum skv_owned kind, const char *name)
{
	struct skv_tenants *t = &c->s->tenants;

	assert(c->caller.role >= ROLE_ADMIN);
	if (skv_tenant_is_operator(c))
		return SKV_OK;
	if (skv_tenants_owns(t, c->caller.tenant, kind, name))
		return SKV_OK;
	if (!may_use(c, kind, name))
		return is_not_there(c, kind, "name", name);
	return skv_fail(&c->err, SKV_E_FORBIDDEN, "name", "tenant '%s' does not own '%s'",
			c->caller.tenant, name);
}

/* ---- groups that a tenant makes -------------------------------------------------------------- */

/* In the turn: the caller's own groups with, or without, this one. */
static int set_own(struct skv_request *c, const char *group, bool with)
{
	struct skv_tenants *t = &c->s->tenants;
	struct skv_tenant_view *v, none = { .spec = { .n_groups = 0 } };
	struct skv_tenant_spec *s;
	const char **own;
	uint32_t n = 0, k = 0;
	int rc = skv_tenants_list(t, c->caller.tenant, &c->arena, &v, &n, &c->err);

	assert(t->busy && !skv_tenant_is_operator(c));
	if (rc != SKV_OK && rc != SKV_E_NOT_FOUND)
		return rc;
	assert(rc != SKV_OK || n == 1);
	s = rc == SKV_OK ? &v[0].spec : &none.spec;
	skv_error_clear(&c->err);
	own = skv_arena_calloc(&c->arena, s->n_own_groups + 1, sizeof *own);
	if (!own)
		return skv_fail(&c->err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < s->n_own_groups; i++)
		if (strcmp(s->own_groups[i], group) != 0)
			own[k++] = s->own_groups[i];
	if (with)
		own[k++] = group;
	assert(k <= s->n_own_groups + 1);
	s->own_groups = own;
	s->n_own_groups = k;
	if (k > SKV_TENANT_GROUPS)
		return skv_fail(&c->err, SKV_E_QUOTA, "own_groups",
				"tenant '%s' has %u groups, the most", c->caller.tenant,
				SKV_TENANT_GROUPS);
	return skv_tenants_write(t, c->caller.tenant, s, &c->err);
}

int skv_tenant_claim(struct skv_request *c, const char *group, bool *claimed)
{
	struct skv_tenants *t = &c->s->tenants;
	struct skv_group_view *v;
	uint32_t n;
	int rc;

	*claimed = false;
	if (skv_tenant_is_operator(c))
		return SKV_OK;
	skv_tenants_enter(t);
	rc = skv_tenants_reread(t, &c->err);
	if (rc == SKV_OK)
		rc = skv_tenant_change(c, SKV_OWNED_GROUP, group);
	if (rc != SKV_E_FORBIDDEN && rc != SKV_E_NOT_FOUND)
		return skv_tenants_leave(t, rc);
	/* nobody's may be there; somebody's need not be */
	if (rc == SKV_E_FORBIDDEN &&
	    skv_core_groups(c->s->core, group, &c->arena, &v, &n, &c->err) == SKV_E_NOT_FOUND &&
	    strncmp(group, SKV_SPACES, strlen(SKV_SPACES)) != 0) {
		skv_error_clear(&c->err);
		rc = set_own(c, group, true);
		*claimed = rc == SKV_OK;
		return skv_tenants_leave(t, rc);
	}
	return skv_tenants_leave(t, skv_fail(&c->err, SKV_E_FORBIDDEN, "name",
				 "a group of this name is not tenant '%s's own", c->caller.tenant));
}

void skv_tenant_disclaim(struct skv_request *c, const char *group)
{
	const struct skv_error before = c->err;

	if (skv_tenant_is_operator(c))
		return;
	skv_tenants_enter(&c->s->tenants);
	if (set_own(c, group, false) != SKV_OK)
		skv_log(SKV_LOG_WARN, "tenants",
			"tenant %s still owns group %s, which is not there: %s", c->caller.tenant,
			group, c->err.message);
	skv_tenants_leave(&c->s->tenants, SKV_OK);
	c->err = before;
}

/* ---- instances ------------------------------------------------------------------------------- */

static bool is_space(const struct skv_instance_view *v)
{
	return strncmp(v->spec.group, SKV_SPACES, strlen(SKV_SPACES)) == 0;
}

/* Is it there already, or one too many? */
static int check_count(struct skv_request *c, const char *id, bool space, uint32_t most)
{
	struct skv_instance_view *v;
	uint32_t n, have = 0;
	int rc = skv_core_instances(c->s->core, c->caller.tenant, NULL, &c->arena, &v, &n, &c->err);

	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		if (strcmp(v[i].spec.id, id) == 0)
			return SKV_OK;
		have += space == is_space(&v[i]);
	}
	if (rc == SKV_OK && have >= most)
		rc = skv_fail(&c->err, SKV_E_QUOTA, space ? "max_spaces" : "max_instances",
			      "tenant '%s' has %u %s, the most", c->caller.tenant, have,
			      space ? "page spaces" : "instances");
	return rc;
}

int skv_tenant_begin_instance(struct skv_request *c, const char *id, bool space)
{
	struct skv_tenants *t = &c->s->tenants;
	const uint32_t most = t->on ? skv_tenants_limit(t, c->caller.tenant, space) : 0;
	int rc;

	assert(!c->makes);
	if (!most)
		return SKV_OK;
	skv_tenants_enter(t); /* two at a time would both count themselves in */
	rc = check_count(c, id, space, most);
	c->makes = rc == SKV_OK;
	return c->makes ? rc : skv_tenants_leave(t, rc);
}

void skv_tenant_end_instance(struct skv_request *c)
{
	if (c->makes)
		skv_tenants_leave(&c->s->tenants, SKV_OK);
	c->makes = false;
}

int skv_tenant_look(struct skv_request *c, struct skv_tenant_view *t)
{
	struct skv_instance_view *v;
	uint32_t n = 0;
	int rc = skv_core_instances(c->s->core, t->name, NULL, &c->arena, &v, &n, &c->err);

	skv_core_tenant_use(c->s->core, t->name, &t->use);
	t->use.held_bytes = skv_hold_of_tenant(&c->s->holds, t->name);
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++)
		*(is_space(&v[i]) ? &t->use.spaces : &t->use.instances) += 1;
	return rc;
}

/* ---- lists ----------------------------------------------------------------------------------- */

void skv_tenant_filter_storages(struct skv_request *c, struct skv_storage_view *v, uint32_t *n)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < *n; i++)
		if (skv_tenant_sees(c, SKV_OWNED_STORAGE, v[i].spec.name))
			v[k++] = v[i];
	*n = k;
}

void skv_tenant_filter_groups(struct skv_request *c, struct skv_group_view *v, uint32_t *n)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < *n; i++)
		if (skv_tenant_sees(c, SKV_OWNED_GROUP, v[i].spec.name))
			v[k++] = v[i];
	*n = k;
}

void skv_tenant_filter_stats(struct skv_request *c, struct skv_stats *s)
{
	uint32_t k = 0;

	if (skv_tenant_is_operator(c))
		return;
	for (uint32_t i = 0; i < s->n_instances; i++)
		if (strcmp(s->instances[i].spec.tenant, c->caller.tenant) == 0)
			s->instances[k++] = s->instances[i];
	s->n_instances = k;
	skv_tenant_filter_storages(c, s->storages, &s->n_storages);
	skv_tenant_filter_groups(c, s->groups, &s->n_groups);
	assert(c->s->tenants.on);
}
