/*
 * tenant.c - tenants of a partition: found, made, what they use of each storage and have in all.
 *
 * One struct for each tenant that has had an instance. Under the write lock; volume.c counts.
 */
#include <model/tenant.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>
#include <skv/status.h>

#include <model/objects.h>
#include <model/partition.h>
#include <model/rows.h>
#include <model/rules.h>

struct tenant *tenant_need(struct partition *p, const char *name)
{
	void *v = p->tenant;
	struct tenant *t;

	ASSERT_EXCLUSIVE(p);
	for (size_t i = p->n_tenant; i-- > 0;) /* when loading, mostly the newest */
		if (strcmp(p->tenant[i]->name, name) == 0)
			return p->tenant[i];
	if (skv_grow(&v, &p->cap_tenant, p->n_tenant + 1, sizeof *p->tenant) != SKV_OK)
		return NULL;
	p->tenant = v;
	t = skv_calloc(1, sizeof *t);
	if (t) {
		t->partition = p;
		t->name = skv_strdup(name);
		t->rule = rules_need(p->core->rules, name);
	}
	if (!t || !t->name || !t->rule) {
		skv_free(t ? t->name : NULL);
		skv_free(t);
		return NULL;
	}
	p->tenant[p->n_tenant++] = t;
	return t;
}

struct tenant_volume *tenant_in(const struct tenant *t, uint32_t volume)
{
	if (t->n_in && t->in->volume == volume)
		return t->in; /* the only one of most tenants */
	return row_find(t->in, sizeof *t->in, t->n_in, volume);
}

int tenant_enters(struct tenant *t, uint32_t volume)
{
	void *v = t->in;
	int rc;

	if (tenant_in(t, volume))
		return SKV_OK;
	rc = skv_grow(&v, &t->cap_in, t->n_in + 1, sizeof *t->in);
	t->in = v;
	if (rc == SKV_OK)
		row_insert(t->in, sizeof *t->in, &t->n_in, volume);
	return rc;
}

void tenant_used_add(struct tenant *t, uint32_t volume, int64_t bytes)
{
	struct tenant_volume *in = tenant_in(t, volume);

	assert(in);
	in->used_bytes += (uint64_t)bytes;
	t->used_bytes += (uint64_t)bytes;
	tenant_touch(t);
}

void tenant_removing_add(struct tenant *t, uint32_t volume, int64_t bytes)
{
	struct tenant_volume *in = tenant_in(t, volume);

	assert(in);
	in->removing_bytes += (uint64_t)bytes;
	t->removing_bytes += (uint64_t)bytes;
	if (bytes > 0)
		t->used -= (uint64_t)bytes < t->used ? (uint64_t)bytes : t->used;
}

void tenant_touch(struct tenant *t)
{
	if (t->touched)
		return;
	t->touched = true;
	t->touched_next = t->partition->touched;
	t->partition->touched = t;
}

void tenant_count(const struct instance *inst, int sign)
{
	const char *tier_of = inst->group->spec.tier_of;
	struct tenant *t = inst->tenant;
	uint64_t *n = strncmp(inst->spec.group, SKV_SPACES, strlen(SKV_SPACES)) == 0
			      ? &t->spaces
			      : &t->instances;

	if (inst->dropped || !tier_of || *tier_of) /* no copies, no detached ones */
		return;
	assert(sign > 0 || *n > 0);
	*n += (uint64_t)sign;
	tenant_touch(t);
}

uint64_t tenant_has(const struct tenant *t, enum tenant_thing what)
{
	const uint64_t has[TENANT_THINGS] = {
		[TENANT_BYTES] = t->used_bytes,
		[TENANT_BLOCKS] = t->blocks + t->open_blocks,
		[TENANT_SESSIONS] = t->open_sessions,
		[TENANT_PINS] = t->pins,
		[TENANT_INSTANCES] = t->instances,
		[TENANT_SPACES] = t->spaces,
	};

	assert(what < TENANT_THINGS);
	return has[what];
}

uint64_t tenant_elsewhere(const struct tenant *t, enum tenant_thing what)
{
	const uint64_t sum = rule_sum(t->rule, what);

	ASSERT_SHARED(t->partition);
	assert(sum >= t->told[what]);
	return sum - t->told[what];
}

static void tell(struct tenant *t, enum tenant_thing what, uint64_t has)
{
	if (has == t->told[what])
		return;
	rule_add(t->rule, what, (int64_t)(has - t->told[what]));
	t->told[what] = has;
}

void tenants_tell(struct partition *p)
{
	struct tenant *t = p->touched, *next;

	ASSERT_EXCLUSIVE(p);
	for (p->touched = NULL; t; t = next) {
		next = t->touched_next;
		assert(t->touched && t->partition == p);
		t->touched = false;
		for (int what = 0; what < TENANT_THINGS; what++)
			tell(t, what, tenant_has(t, what));
	}
}

uint64_t tenant_part(struct partition *p, const struct group *g, const struct tenant *t,
		     uint64_t bytes)
{
	uint64_t weights = 0;

	ASSERT_EXCLUSIVE(p);
	assert(t->partition == p);
	for (size_t i = 0; i < p->n_tenant; i++)
		p->tenant[i]->used = p->tenant[i] == t;
	for (const struct instance *inst = g->members; inst; inst = inst->next_member)
		inst->tenant->used = 1;
	for (size_t i = 0; i < p->n_tenant; i++)
		weights += p->tenant[i]->used * rule_weight(p->tenant[i]->rule);
	return rule_part(bytes, rule_weight(t->rule), weights);
}

void tenants_free(struct partition *p)
{
	for (size_t i = 0; i < p->n_tenant; i++) {
		for (int what = 0; what < TENANT_THINGS; what++)
			tell(p->tenant[i], what, 0);
		skv_free(p->tenant[i]->in);
		skv_free(p->tenant[i]->name);
		skv_free(p->tenant[i]);
	}
	skv_free(p->tenant);
	p->tenant = NULL;
	p->n_tenant = p->cap_tenant = 0;
	p->touched = NULL;
}
