/*
 * lists.c - lists and statistics over all partitions: a page of each, merged in order of names.
 *
 * A partition's page ends at its `next`; objects of other partitions after that name are left to
 * the next page. Storages with slab files are in all partitions: their views are added up.
 */
#include "at.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/arena.h>

#include <lock/gate.h>

#include "route.h"

/* A page of one partition, or of all, in the layout of all lists. */
struct part {
	char *v;
	uint32_t n;
	const char *next;
};

struct kind {
	size_t size; /* of a view */
	/* Returns the view's name as in a cursor; `room` holds the name if it must be composed. */
	const char *(*name)(const void *v, bool all_tenants, char room[SKV_MAX_CURSOR + 1]);
	void (*add)(void *to, const void *v); /* of the same name; NULL: there are none */
};

static const char *storage_name(const void *v, bool all_tenants, char room[SKV_MAX_CURSOR + 1])
{
	(void)all_tenants;
	(void)room;
	return ((const struct skv_storage_view *)v)->spec.name;
}

static const char *group_name(const void *v, bool all_tenants, char room[SKV_MAX_CURSOR + 1])
{
	(void)all_tenants;
	(void)room;
	return ((const struct skv_group_view *)v)->spec.name;
}

static const char *instance_name(const void *v, bool all_tenants, char room[SKV_MAX_CURSOR + 1])
{
	const struct skv_instance_spec *i = &((const struct skv_instance_view *)v)->spec;

	if (!all_tenants)
		return i->id;
	snprintf(room, SKV_MAX_CURSOR + 1, "%s%%%s", i->tenant, i->id);
	return room;
}

static void add_storage(void *to, const void *v) { route_add_storage(to, v); }

static const struct kind storages = { sizeof(struct skv_storage_view), storage_name, add_storage };
static const struct kind groups = { sizeof(struct skv_group_view), group_name, NULL };
static const struct kind instances = { sizeof(struct skv_instance_view), instance_name, NULL };

/* ---- merging --------------------------------------------------------------------------------- */

struct merge {
	const struct kind *k;
	const struct part *part; /* [n] */
	uint32_t n;
	bool all_tenants;
	const char *bound; /* names behind it are not known of all; "": they are */
	uint32_t at[SKV_MAX_PARTITIONS];
};

static void find_bound(struct merge *m)
{
	m->bound = "";
	for (uint32_t i = 0; i < m->n; i++) {
		const char *next = m->part[i].next ? m->part[i].next : "";

		if (*next && (!*m->bound || strcmp(next, m->bound) < 0))
			m->bound = next;
	}
}

/* The part whose next view has the first name, which is put into `name`; m->n: none is left. */
static uint32_t first_of(const struct merge *m, char name[SKV_MAX_CURSOR + 1])
{
	char room[SKV_MAX_CURSOR + 1];
	uint32_t best = m->n;

	for (uint32_t i = 0; i < m->n; i++) {
		const char *own;

		if (m->at[i] == m->part[i].n)
			continue;
		own = m->k->name(m->part[i].v + m->at[i] * m->k->size, m->all_tenants, room);
		if (best < m->n && strcmp(own, name) >= 0)
			continue;
		best = i;
		snprintf(name, SKV_MAX_CURSOR + 1, "%s", own);
	}
	return *m->bound && best < m->n && strcmp(name, m->bound) > 0 ? m->n : best;
}

static char *dup_text(struct skv_arena *a, const char *s)
{
	return skv_arena_strndup(a, s, strlen(s));
}

static int merge(const struct kind *k, const struct part *part, uint32_t n,
		 const struct skv_page *page, struct skv_arena *a, struct part *out)
{
	struct merge m = { .k = k, .part = part, .n = n, .all_tenants = !page->tenant };
	char name[SKV_MAX_CURSOR + 1], last[SKV_MAX_CURSOR + 1] = "";
	uint32_t i;

	assert(n <= SKV_MAX_PARTITIONS);
	if (n == 1) {
		*out = part[0];
		out->next = out->next ? out->next : "";
		return SKV_OK;
	}
	find_bound(&m);
	*out = (struct part){ .v = skv_arena_alloc(a, (page->limit + (size_t)1) * k->size),
			      .next = "" };
	if (!out->v)
		return SKV_E_NOMEM;
	while ((i = first_of(&m, name)) < n) {
		const char *v = part[i].v + m.at[i] * k->size;
		const bool same = out->n && k->add && strcmp(name, last) == 0;

		if (!same && out->n == page->limit) {
			out->next = dup_text(a, last);
			return out->next ? SKV_OK : SKV_E_NOMEM;
		}
		m.at[i]++;
		if (same) {
			k->add(out->v + (out->n - 1) * k->size, v);
			continue;
		}
		memcpy(out->v + out->n++ * k->size, v, k->size);
		memcpy(last, name, sizeof last);
	}
	out->next = m.bound;
	return SKV_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* A page of the list of one partition, wherever it is. */
typedef int list_fn(struct skv_cluster *at, const struct skv_page *page, struct skv_arena *a,
		    struct part *out, struct skv_error *err);

/* `here`: of those partitions that are. */
static int list_all(struct route *r, const struct kind *k, list_fn *list, bool here,
		    const struct skv_page *page, struct skv_arena *a, struct part *out,
		    struct skv_error *err)
{
	struct part part[SKV_MAX_PARTITIONS] = { { .n = 0 } };
	uint32_t n = 0;
	int rc = here ? SKV_OK : route_everywhere(r, err);

	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++)
		if (!here || one_state_get(r->core[i]) != SKV_CORE_STANDBY)
			rc = list(&r->part[i], page, a, &part[n++], err);
	if (rc == SKV_OK && n == 0)
		rc = core_gate(r->core[0], err);
	return rc == SKV_OK ? merge(k, part, n, page, a, out) : rc;
}

/* `end` is done with *out, once it is full. */
#define LIST_OF(kind, here, end)                                                                   \
	static int kind##_part(struct skv_cluster *at, const struct skv_page *page,                \
			       struct skv_arena *a, struct part *out, struct skv_error *err)       \
	{                                                                                          \
		struct skv_##kind##_list list = { .next = "" };                                    \
		const int rc = at_##kind##_list(at, page, a, &list, err);                          \
                                                                                                   \
		*out = (struct part){ (char *)list.kind##s, list.n_##kind##s, list.next };         \
		return rc;                                                                         \
	}                                                                                          \
                                                                                                   \
	int skv_cluster_##kind##_list(struct skv_cluster *c, const struct skv_page *page,          \
				      struct skv_arena *a, struct skv_##kind##_list *out,          \
				      struct skv_error *err)                                       \
	{                                                                                          \
		struct part all = { .n = 0 };                                                      \
		int rc;                                                                            \
                                                                                                   \
		if (c->core) {                                                                     \
			rc = one_##kind##_list(c->core, page, a, out, err);                        \
		} else {                                                                           \
			rc = list_all(c->route, &kind##s, kind##_part, here, page, a, &all, err);  \
			*out = (struct skv_##kind##_list){ (void *)all.v, all.n, all.next };       \
		}                                                                                  \
		return rc == SKV_OK ? (end) : rc;                                                  \
	}
LIST_OF(storage, false, route_tell_totals(c, a, out->storages, out->n_storages))
LIST_OF(group, false, SKV_OK)
LIST_OF(instance, !page->tenant, SKV_OK)

/* All pages that `list` gives, in one array. */
#define EVERY(kind, function, list)                                                                \
	int function(struct skv_cluster *c, const char *tenant, struct skv_arena *a,               \
		     struct skv_##kind##_view **out, uint32_t *n, struct skv_error *err)           \
	{                                                                                          \
		struct skv_page page = SKV_PAGE;                                                   \
		struct skv_##kind##_list part;                                                     \
		struct route_joined all = { .size = sizeof **out };                                \
		int rc;                                                                            \
                                                                                                   \
		page.tenant = tenant;                                                              \
		do {                                                                               \
			rc = list(c, &page, a, &part, err);                                        \
			if (rc == SKV_OK)                                                          \
				rc = route_join(a, &all, part.kind##s, part.n_##kind##s);          \
		} while (rc == SKV_OK && skv_page_next(&page, part.next));                         \
		*out = all.v;                                                                      \
		*n = all.n;                                                                        \
		return rc;                                                                         \
	}
EVERY(storage, route_every_storage, at_storage_list)
EVERY(storage, skv_cluster_every_storage, skv_cluster_storage_list)
EVERY(group, skv_cluster_every_group, skv_cluster_group_list)
EVERY(instance, skv_cluster_every_instance, skv_cluster_instance_list)

/* ---- statistics ------------------------------------------------------------------------------ */

static void add_numbers(struct skv_stats *to, const struct skv_stats *s)
{
	to->blocks += s->blocks;
	to->sessions += s->sessions;
	to->journal_bytes += s->journal_bytes;
	to->journal_limit += s->journal_limit;
	to->evicted_blocks += s->evicted_blocks;
	to->expired_sessions += s->expired_sessions;
	to->all_storages += s->all_storages;
	to->all_groups += s->all_groups;
	to->all_instances += s->all_instances;
}

/* `s` [n] of the partitions into *out, whose other members stay. */
static int add_up(const struct skv_stats *s, uint32_t n, const struct skv_page *page,
		  struct skv_arena *a, struct skv_stats *out)
{
	struct part part[SKV_MAX_PARTITIONS] = { { .n = 0 } }, all;
	int rc;

#define MERGE(kind)                                                                                \
	for (uint32_t i = 0; i < n; i++)                                                           \
		part[i] = (struct part){ (char *)s[i].kind, s[i].n_##kind, "" };                   \
	rc = merge(&kind, part, n, page, a, &all);                                                 \
	if (rc != SKV_OK)                                                                          \
		return rc;                                                                         \
	out->kind = (void *)all.v;                                                                 \
	out->n_##kind = all.n;
	MERGE(storages)
	MERGE(groups)
	MERGE(instances)
#undef MERGE
	for (uint32_t i = 0; i < n; i++)
		add_numbers(out, &s[i]);
	return SKV_OK;
}

/* Returns statistics of all partitions; `ask`: also of other managers' partitions. */
static int stats_of(struct skv_cluster *c, bool ask, const struct skv_page *page,
		    struct skv_arena *a, struct skv_stats *out, struct skv_error *err)
{
	struct skv_stats s[SKV_MAX_PARTITIONS];
	struct route *r = c->route;
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++)
		rc = ask ? at_stats(&r->part[i], page, a, &s[i], err)
			 : one_stats(r->core[i], page, a, &s[i], err);
	if (rc != SKV_OK)
		return rc;
	*out = (struct skv_stats){ .uptime_ms = s[0].uptime_ms };
	out->state = ask ? "ready" : skv_state_texts[skv_cluster_state_get(c)];
	memcpy(out->version, s[0].version, sizeof out->version);
	memcpy(out->owner, s[0].owner, sizeof out->owner);
	rc = add_up(s, r->n, page, a, out);
	return rc == SKV_OK ? route_tell_totals(c, a, out->storages, out->n_storages) : rc;
}

int skv_cluster_stats(struct skv_cluster *c, const struct skv_page *page, struct skv_arena *a,
		      struct skv_stats *out, struct skv_error *err)
{
	return stats_of(c, false, page, a, out, err);
}

static uint32_t count_in(const struct route *r, enum skv_core_state state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n; i++)
		n += one_state_get(r->core[i]) == state;
	return n;
}

int skv_cluster_stats_all(struct skv_cluster *c, const struct skv_page *page, struct skv_arena *a,
			  struct skv_stats *out, struct skv_error *err)
{
	struct route *r = c->route;
	int rc;

	if (c->core) { /* another manager calls: a partition without the object reports that */
		rc = core_gate(c->core, err);
		return rc == SKV_OK ? one_stats(c->core, page, a, out, err) : rc;
	}
	if (count_in(r, SKV_CORE_STANDBY) == 0 || count_in(r, SKV_CORE_READY) == 0)
		return skv_cluster_stats(c, page, a, out, err);
	rc = route_everywhere(r, err); /* then partition 0 is here */
	return rc == SKV_OK ? stats_of(c, true, page, a, out, err) : rc;
}
