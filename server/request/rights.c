/*
 * rights.c - the rights of a caller, by its tenant: the part of tenants.h that knows calls.
 *
 * No state of its own, no locks but those of tenants.c.
 */
#include <skv/tenants.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/core.h>
#include <skv/log.h>
#include <skv/request.h>

/* Returns true if the caller's tenant has the page space of this storage or group. */
static bool has_space(struct skv_request *c, const char *name)
{
	const char *id = strchr(name + strlen(SKV_SPACES), ':');

	assert(strncmp(name, SKV_SPACES, strlen(SKV_SPACES)) == 0);
	return id && skv_cluster_has_instance(c->s->cluster, c->caller.tenant, id + 1, name) ==
			     SKV_OK;
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
	return c->alone || !c->s->tenants.on || !*c->caller.tenant ||
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

/* Existence is checked before anything else, so that a missing object is answered as one that the
 * caller may not see. Errors but "not found" are left to the operation. */
static bool is_there(struct skv_request *c, enum skv_owned kind, const char *name)
{
	const int rc = kind == SKV_OWNED_GROUP ? skv_cluster_has_group(c->s->cluster, name)
					       : skv_cluster_has_storage(c->s->cluster, name);

	return rc != SKV_E_NOT_FOUND;
}

int skv_tenant_use(struct skv_request *c, enum skv_owned kind, const char *name)
{
	const char *field = kind == SKV_OWNED_GROUP ? "group" : "storages";

	if (skv_tenant_is_operator(c) && (!c->s->tenants.on || c->caller.role >= ROLE_ADMIN))
		return SKV_OK;
	if (skv_tenant_is_operator(c))
		return may_use(c, kind, name) ? SKV_OK
					      : skv_fail(&c->err, SKV_E_FORBIDDEN, field,
							 "'%s' belongs to other tenants", name);
	if (may_use(c, kind, name) && is_there(c, kind, name))
		return SKV_OK;
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
	if (!may_use(c, kind, name) || !is_there(c, kind, name))
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
	int rc = skv_tenants_list(t, c->caller.tenant, NULL, &c->arena, &v, &n, NULL, &c->err);

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

int skv_tenant_names(struct skv_request *c, const char *name)
{
	const char *tenant = c->caller.tenant;
	const size_t n = strlen(tenant);

	if (skv_tenant_is_operator(c) || (strncmp(name, tenant, n) == 0 && name[n] == ':' &&
					  strncmp(name, SKV_SPACES, strlen(SKV_SPACES)) != 0))
		return SKV_OK;
	return skv_fail(&c->err, SKV_E_FORBIDDEN, "name",
			"names of what tenant '%s' makes begin with '%s:'", tenant, tenant);
}

int skv_tenant_claim(struct skv_request *c, const char *group, bool *claimed)
{
	struct skv_tenants *t = &c->s->tenants;
	int rc;

	*claimed = false;
	if (skv_tenant_is_operator(c))
		return SKV_OK;
	skv_tenants_enter(t);
	rc = skv_tenants_reread(t, &c->err);
	if (rc != SKV_OK || skv_tenants_owns(t, c->caller.tenant, SKV_OWNED_GROUP, group))
		return skv_tenants_leave(t, rc);
	rc = skv_tenant_names(c, group);
	if (rc == SKV_OK &&
	    (!may_use(c, SKV_OWNED_GROUP, group) || is_there(c, SKV_OWNED_GROUP, group)))
		rc = skv_fail(&c->err, SKV_E_FORBIDDEN, "name", "tenant '%s' does not own '%s'",
			      c->caller.tenant, group);
	if (rc == SKV_OK)
		rc = set_own(c, group, true);
	*claimed = rc == SKV_OK;
	return skv_tenants_leave(t, rc);
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

void skv_tenant_look(struct skv_request *c, struct skv_tenant_view *t)
{
	skv_cluster_tenant_use(c->s->cluster, t->name, &t->use);
	t->use.held_bytes = skv_hold_of_tenant(&c->s->holds, t->name);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Without memory for the hidden names, all are hidden. */
static bool sees(void *ctx, bool is_storage, const char *name)
{
	const struct skv_hidden *h = ctx;
	const enum skv_owned kind = is_storage ? SKV_OWNED_STORAGE : SKV_OWNED_GROUP;

	return h && !bsearch(&name, h->name[kind], h->n[kind], sizeof name, skv_hidden_order);
}

void skv_tenant_page(struct skv_request *c, struct skv_page *page)
{
	const char *tenant = c->caller.tenant;

	if (!c->s->tenants.on || !*tenant || strcmp(tenant, SKV_OPERATOR) == 0)
		return;
	page->tenant = tenant;
	page->sees = sees;
	page->ctx = skv_tenants_hidden(&c->s->tenants, tenant, &c->arena);
}
