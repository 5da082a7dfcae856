/*
 * tenant.c - tenants of a partition: found, made, and what they use of each storage.
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
	for (size_t i = 0; i < p->n_tenant; i++)
		if (strcmp(p->tenant[i]->name, name) == 0)
			return p->tenant[i];
	if (skv_grow(&v, &p->cap_tenant, p->n_tenant + 1, sizeof *p->tenant) != SKV_OK)
		return NULL;
	p->tenant = v;
	t = skv_calloc(1, sizeof *t);
	if (t) {
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

uint64_t tenant_pins(const struct partition *p, const struct tenant *t)
{
	uint64_t n = 0;

	ASSERT_SHARED(p);
	for (size_t i = 0; i < p->n_inst; i++)
		n += p->inst[i]->tenant == t ? p->inst[i]->pins.n : 0;
	return n;
}

void tenants_free(struct partition *p)
{
	for (size_t i = 0; i < p->n_tenant; i++) {
		skv_free(p->tenant[i]->in);
		skv_free(p->tenant[i]->name);
		skv_free(p->tenant[i]);
	}
	skv_free(p->tenant);
	p->tenant = NULL;
	p->n_tenant = p->cap_tenant = 0;
}
