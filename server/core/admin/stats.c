/* stats.c - views of storages, groups, instances and the totals, copied out under the read lock. */
#include <stdio.h>
#include <string.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/one.h>
#include <model/device.h>
#include <model/files.h>
#include <model/find.h>
#include <model/geometry.h>
#include <model/layouts.h>
#include <model/leases.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/pin.h>
#include <model/quota_share.h>
#include <model/volume.h>
#include <journal/snapshot.h>
#include <storage/device.h>

#include <assert.h>
#include "idle.h"
static char *dup_text(struct skv_arena *a, const char *s)
{
	return skv_arena_strndup(a, s, strlen(s));
}

static int copy_masters(const struct device *d, struct skv_arena *a, struct skv_storage_spec *out)
{
	const char **v = skv_arena_calloc(a, d->n_masters + 1, sizeof *v);

	for (uint32_t i = 0; v && i < d->n_masters; i++) {
		v[i] = dup_text(a, d->masters[i]);
		if (!v[i])
			return SKV_E_NOMEM;
	}
	out->fs_master = v;
	out->n_fs_master = d->n_masters;
	return v ? SKV_OK : SKV_E_NOMEM;
}

/* The device's own text may contain paths: only the log gets it. */
static const char *problem_of(const struct device *d)
{
	static const char *const text[][2] = { /* [1]: its blocks are read all the same */
		[STORAGE_WELL] = { "", "" },
		[STORAGE_FAILED] = { "not usable now; the manager's log says why",
				     "takes no new blocks now; the manager's log says why" },
		[STORAGE_HANGS] = { "the file system does not answer",
				    "takes no new blocks now: a write does not return" },
		[STORAGE_OVERDUE] = { "its last check is too old",
				      "takes no new blocks now: its last check is too old" },
	};

	switch (atomic_load(&d->refused)) {
	case REFUSED_COPY:
		return "another copy of this store went on in its directory: use that one; or stop "
		       "it for good, and start this one once with --adopt";
	case REFUSED_DAMAGED:
		return "an owner file in its directory is damaged, so it does not say whether "
		       "another copy of this store runs there: make sure that none does, and start "
		       "this one once with --adopt";
	case REFUSED_BACK:
		return "the store went back in time: its directory has seen later changes; bring "
		       "the newest store back, or start this one once with --adopt";
	case REFUSED_NOT:
		break;
	}
	return text[device_fault(d, false)][device_readable(d)];
}

static void view_check(const struct volume_file *f, uint64_t now_ms, struct skv_storage_view *v)
{
	const struct file_check *c = &f->check;
	const uint64_t age = now_ms > c->checked_ms ? now_ms - c->checked_ms : 0;

	v->scrub_unchecked_files += !c->checked_ms;
	if (c->checked_ms && age > v->scrub_oldest_ms)
		v->scrub_oldest_ms = age;
	v->scrub_slots += c->slots;
	v->scrub_unsummed_slots += c->unsummed;
}

/* Returns the bytes that the file system has for more slab files. */
static uint64_t fs_free_of(const struct volume *s)
{
	const uint64_t file_bytes = s->file_bytes - s->vanished_bytes;
	const uint64_t reach = atomic_load(&s->dev->reach);

	if (reach == UINT64_MAX)
		return s->dev->ops->chunked && s->grow_full ? 0 : UINT64_MAX;
	return reach > file_bytes ? reach - file_bytes : 0;
}

/* Views are copies in the arena; `brief`: without `extra`. */
static int view_storage(const struct volume *s, bool brief, struct skv_arena *a,
			struct skv_storage_view *v)
{
	struct device *d = s->dev;
	struct skv_pool_stats st;

	memset(v, 0, sizeof *v);
	skv_pool_stats(s->pool, &st);
	v->groups = s->n_groups;
	v->spec = (struct skv_storage_spec){ .name = dup_text(a, d->name),
					     .type = dup_text(a, d->type),
					     .root = dup_text(a, d->root),
					     .client_root = dup_text(a, d->client_root),
					     .client_mount = dup_text(a, d->client_mount),
					     .extra = brief ? "" : dup_text(a, d->extra),
					     .capacity = s->capacity,
					     .file_size = d->file_size, .unit = d->unit,
					     .enabled = s->enabled, .draining = s->draining,
					     .move = s->moving,
					     .high_percent = s->high_percent,
					     .low_percent = s->low_percent };
	v->spec.chunk_size = d->chunk;
	v->spec.any_mount = d->any_mount;
	if (copy_masters(d, a, &v->spec) != SKV_OK)
		return SKV_E_NOMEM;
	if (d->ops->counted)
		v->spec.file_size = v->spec.unit = 0;
	skv_uuid_to_text(d->uuid, v->uuid);
	v->healthy = device_healthy(d);
	v->problem = v->healthy ? "" : problem_of(d);
	for (const struct volume_file *f = file_next(s, 0); f; f = file_next(s, f->number + 1)) {
		v->files++;
		v->bad_files += f->bad != NULL;
		v->draining_files += f->state == FILE_GOING || file_drains(s, f);
		view_check(f, skv_wall_ms(d->core->clock), v);
	}
	v->writing_ms = atomic_load(&d->writing_ms);
	v->file_bytes = st.file_bytes;
	v->assigned_bytes = st.assigned_bytes;
	v->used_bytes = st.used_bytes;
	v->quarantined_bytes = st.held_bytes;
	v->free_bytes = !s->draining && s->capacity > st.assigned_bytes
				? s->capacity - st.assigned_bytes
				: 0;
	v->fs_free_bytes = fs_free_of(s);
	return v->spec.name && v->spec.type && v->spec.root && v->spec.client_root &&
			       v->spec.client_mount && v->spec.extra
		       ? SKV_OK
		       : SKV_E_NOMEM;
}

/* Sums over its instances. */
static void sum_group(const struct partition *p, const struct group *g, struct skv_group_view *v)
{
	ASSERT_SHARED(p);
	v->room_bytes = group_room(p, g);
	v->evicted_blocks = g->evicted;
	for (struct instance *inst = g->members; inst; inst = inst->next_member) {
		v->pinned_bytes += pinned_bytes(inst, true);
		v->soft_pinned_bytes += pinned_bytes(inst, false);
		v->leased_bytes += leased_bytes(p, inst, skv_now_ms(p->core->clock));
		v->open_bytes += inst->open_bytes;
		v->hits += atomic_load(&inst->hits);
	}
}

static int view_group(const struct partition *p, const struct group *g, bool brief,
		      struct skv_arena *a, struct skv_group_view *v)
{
	const struct skv_group_spec *have = &g->spec;
	const char **names = skv_arena_alloc(a, (have->n_storages + 1) * sizeof *names);
	struct skv_type_quota *quotas = skv_arena_alloc(a, (have->n_quotas + 1) * sizeof *quotas);

	ASSERT_SHARED(p);
	*v = (struct skv_group_view){ .spec = *have, .used_bytes = g->used_bytes,
				      .blocks = g->count.blocks };
	sum_group(p, g, v);
	v->spec.name = dup_text(a, have->name);
	v->spec.extra = brief ? "" : dup_text(a, have->extra);
	v->spec.policy = dup_text(a, have->policy);
	v->spec.tier_of = dup_text(a, have->tier_of);
	v->fast = g->fast ? dup_text(a, g->fast->spec.name) : "";
	v->spec.storages = names;
	v->spec.quotas = quotas;
	if (!names || !quotas || !v->spec.name || !v->spec.extra || !v->spec.policy ||
	    !v->spec.tier_of || !v->fast)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < have->n_storages; i++) {
		names[i] = dup_text(a, have->storages[i]);
		if (!names[i])
			return SKV_E_NOMEM;
	}
	for (uint32_t i = 0; i < have->n_quotas; i++) {
		quotas[i] = have->quotas[i];
		quotas[i].type = dup_text(a, have->quotas[i].type);
		if (!quotas[i].type)
			return SKV_E_NOMEM;
	}
	return SKV_OK;
}

/* Fills in the instance's layout on those storages of its group that have chunks. */
static int view_placements(const struct partition *p, const struct instance *inst,
			   struct skv_arena *a, struct skv_instance_view *v)
{
	const struct skv_group_spec *g = &inst->group->spec;
	struct skv_placement *out =
		skv_arena_calloc(a, (size_t)g->n_storages * inst->spec.n_specs + 1, sizeof *out);

	ASSERT_SHARED(p);
	for (uint32_t k = 0; out && k < g->n_storages; k++) {
		int at = volume_find(p, g->storages[k]);

		for (uint32_t s = 0; at >= 0 && p->volume[at].dev->chunk && s < inst->spec.n_specs;
		     s++) {
			struct geometry how = volume_geometry(&p->volume[at], &inst->spec, s);
			struct skv_placement *to = &out[v->n_placements++];

			*to = (struct skv_placement){ dup_text(a, g->storages[k]),
						      v->spec.specs[s].name,
						      fit_text(how.fit),
						      how.stride,
						      how.wasted,
						      how.copied };
			if (!to->storage)
				return SKV_E_NOMEM;
		}
	}
	v->placements = out;
	return out ? SKV_OK : SKV_E_NOMEM;
}

static int view_layouts(const struct partition *p, const struct instance *inst,
			struct skv_arena *a, struct skv_instance_view *v)
{
	const struct layouts_room room = layouts_room_of(p, inst);
	char text[SKV_MESSAGE_MAX];

	layouts_warn(&room, text);
	v->layouts = room.layouts;
	v->layouts_left = room.left;
	v->warning = dup_text(a, text);
	return v->warning ? view_placements(p, inst, a, v) : SKV_E_NOMEM;
}

static int view_instance(const struct partition *p, struct instance *inst, bool brief,
			 struct skv_arena *a, struct skv_instance_view *v)
{
	struct skv_spec *specs = skv_arena_alloc(a, inst->spec.n_specs * sizeof *specs);

	ASSERT_SHARED(p);
	memset(v, 0, sizeof *v);
	v->spec = inst->spec;
	v->spec.tenant = dup_text(a, inst->spec.tenant);
	v->spec.id = dup_text(a, inst->spec.id);
	v->spec.group = dup_text(a, inst->spec.group);
	v->spec.extra = brief ? "" : dup_text(a, inst->spec.extra);
	v->spec.specs = specs;
	for (uint32_t s = 0; specs && s < inst->spec.n_specs; s++) {
		specs[s] = (struct skv_spec){ dup_text(a, inst->spec.specs[s].name),
					      inst->spec.specs[s].size };
		if (!specs[s].name)
			return SKV_E_NOMEM;
	}
	v->blocks = inst->blocks;
	v->used_bytes = inst->used_bytes;
	v->open_sessions = inst->open_sessions;
	v->open_bytes = inst->open_bytes;
	v->leased_bytes = leased_bytes(p, inst, skv_now_ms(p->core->clock));
	if (inst->group->spec.share != SKV_SHARE_GROUP)
		v->share_bytes = quota_share_of(inst, group_room(p, inst->group));
	v->pinned_bytes = pinned_bytes(inst, true);
	v->soft_pinned_bytes = pinned_bytes(inst, false);
	v->evicted_blocks = inst->evicted;
	v->hits = atomic_load(&inst->hits);
	v->unused_ms = idle_ms(p, inst);
	return specs && v->spec.tenant && v->spec.id && v->spec.group && v->spec.extra
		       ? view_layouts(p, inst, a, v)
		       : SKV_E_NOMEM;
}

/* ---- pages of lists -------------------------------------------------------------------------- */

/* The source of a list: positions in a sorted array of the partition. */
struct kind {
	size_t size; /* of a view */
	size_t (*begin)(const struct partition *p, const struct skv_page *page);
	size_t (*end)(const struct partition *p, const struct skv_page *page);
	bool (*is_shown)(const struct partition *p, size_t at, const struct skv_page *page);
	/* Returns true if the object has the name of the previous one. NULL: none has. */
	bool (*is_twin)(const struct partition *p, size_t at);
	int (*view)(const struct partition *p, size_t at, bool brief, struct skv_arena *a, void *v);
	/* As a cursor, in the arena. NULL: out of memory. */
	char *(*name)(const struct partition *p, size_t at, const struct skv_page *page,
		      struct skv_arena *a);
};

#define PAGE_LOOKS 16384u /* objects that are looked at under the lock for one page */

/* A page of it, in the layout of all lists. */
struct any_list {
	void *v;
	uint32_t n;
	const char *next;
};

static int fill(const struct partition *p, const struct kind *k, const struct skv_page *page,
		struct skv_arena *a, struct any_list *out)
{
	const size_t end = k->end(p, page);
	size_t at = k->begin(p, page), first = at, held;
	char *v = skv_arena_alloc(a, (1 + (end - at < page->limit ? end - at : page->limit)) *
					     k->size);
	int rc = v ? SKV_OK : SKV_E_NOMEM;

	ASSERT_SHARED(p);
	assert(at <= end && page->limit >= 1 && page->limit <= SKV_MAX_PAGE);
	*out = (struct any_list){ .v = v, .next = "" };
	for (held = a->total; rc == SKV_OK && at < end; at++) {
		const bool full = out->n == page->limit || at - first >= PAGE_LOOKS ||
				  a->total - held > page->bytes;

		if (full && !(k->is_twin && k->is_twin(p, at))) {
			out->next = k->name(p, at - 1, page, a);
			return out->next ? SKV_OK : SKV_E_NOMEM;
		}
		if (!k->is_shown(p, at, page))
			continue;
		rc = k->view(p, at, page->brief, a, v);
		v += k->size;
		out->n++;
	}
	return rc;
}

static const char *after(const struct skv_page *page) { return page->after ? page->after : ""; }

/* Page spaces are the tenant's that has the instance in the group of their name. */
static bool is_seen(const struct partition *p, const struct skv_page *page, bool is_storage,
		    const char *name)
{
	const struct group *g;
	const struct instance *inst;

	if (!page->tenant)
		return true;
	if (strncmp(name, SKV_SPACES, strlen(SKV_SPACES)) != 0)
		return !page->sees || page->sees(page->ctx, is_storage, name);
	g = group_find(p, name);
	inst = g ? g->members : NULL;
	while (inst && (inst->deleting || strcmp(inst->spec.tenant, page->tenant) != 0))
		inst = inst->next_member;
	return inst;
}

static struct volume *named_volume(const struct partition *p, size_t at)
{
	assert(at < p->n_named);
	return &p->volume[p->volume_order[at]];
}

static size_t storage_begin(const struct partition *p, const struct skv_page *page)
{
	const size_t at = volume_place(p, after(page));

	return at + (at < p->n_named && strcmp(named_volume(p, at)->dev->name, after(page)) == 0);
}

static size_t storage_end(const struct partition *p, const struct skv_page *page)
{
	(void)page;
	return p->n_named;
}

static bool storage_is_shown(const struct partition *p, size_t at, const struct skv_page *page)
{
	return is_seen(p, page, true, named_volume(p, at)->dev->name);
}

static int storage_view(const struct partition *p, size_t at, bool brief, struct skv_arena *a,
			void *v)
{
	return view_storage(named_volume(p, at), brief, a, v);
}

static char *storage_name(const struct partition *p, size_t at, const struct skv_page *page,
			  struct skv_arena *a)
{
	(void)page;
	return dup_text(a, named_volume(p, at)->dev->name);
}

static const struct kind storage_kind = {
	.size = sizeof(struct skv_storage_view), .begin = storage_begin, .end = storage_end,
	.is_shown = storage_is_shown, .view = storage_view, .name = storage_name,
};

static size_t group_begin(const struct partition *p, const struct skv_page *page)
{
	const size_t at = group_place(p, after(page));

	return at + (at < p->n_group && strcmp(p->group[at]->spec.name, after(page)) == 0);
}

static size_t group_end(const struct partition *p, const struct skv_page *page)
{
	(void)page;
	return p->n_group;
}

static bool group_is_shown(const struct partition *p, size_t at, const struct skv_page *page)
{
	return is_seen(p, page, false, p->group[at]->spec.name);
}

static int group_view(const struct partition *p, size_t at, bool brief, struct skv_arena *a,
		      void *v)
{
	return view_group(p, p->group[at], brief, a, v);
}

static char *group_name(const struct partition *p, size_t at, const struct skv_page *page,
			struct skv_arena *a)
{
	(void)page;
	return dup_text(a, p->group[at]->spec.name);
}

static const struct kind group_kind = {
	.size = sizeof(struct skv_group_view), .begin = group_begin, .end = group_end,
	.is_shown = group_is_shown, .view = group_view, .name = group_name,
};

/* Of all tenants' instances a cursor is TENANT%ID; no name has a '%'. */
static size_t instance_begin(const struct partition *p, const struct skv_page *page)
{
	const char *name = after(page), *id = strchr(name, '%');
	char tenant[SKV_MAX_NAME + 1];

	if (page->tenant)
		return *name ? instance_place(p, page->tenant, name, UINT32_MAX)
			     : instance_place(p, page->tenant, "", 0);
	if (!id)
		return instance_place(p, name, "", 0);
	snprintf(tenant, sizeof tenant, "%.*s", (int)(id - name), name);
	return instance_place(p, tenant, id + 1, UINT32_MAX);
}

static size_t instance_end(const struct partition *p, const struct skv_page *page)
{
	const size_t begin = instance_begin(p, page);
	const size_t end = page->tenant ? instance_place(p, page->tenant, "\x7f", 0) : p->n_inst;

	return begin < end ? end : begin; /* a cursor may be any text */
}

static bool instance_is_shown(const struct partition *p, size_t at, const struct skv_page *page)
{
	(void)page;
	return !p->inst[at]->deleting;
}

static bool instance_is_twin(const struct partition *p, size_t at)
{
	const struct skv_instance_spec *a = &p->inst[at - 1]->spec, *b = &p->inst[at]->spec;

	return strcmp(a->id, b->id) == 0 && strcmp(a->tenant, b->tenant) == 0;
}

static int instance_view(const struct partition *p, size_t at, bool brief, struct skv_arena *a,
			 void *v)
{
	return view_instance(p, p->inst[at], brief, a, v);
}

static char *instance_name(const struct partition *p, size_t at, const struct skv_page *page,
			   struct skv_arena *a)
{
	char name[SKV_MAX_CURSOR + 1];

	if (page->tenant)
		return dup_text(a, p->inst[at]->spec.id);
	snprintf(name, sizeof name, "%s%%%s", p->inst[at]->spec.tenant, p->inst[at]->spec.id);
	return dup_text(a, name);
}

static const struct kind instance_kind = {
	.size = sizeof(struct skv_instance_view), .begin = instance_begin, .end = instance_end,
	.is_shown = instance_is_shown, .is_twin = instance_is_twin, .view = instance_view,
	.name = instance_name,
};

static int fill_one(struct skv_core *c, const struct kind *k, const struct skv_page *page,
		    struct skv_arena *a, struct any_list *out, struct skv_error *err)
{
	int rc = core_gate(c, err);

	*out = (struct any_list){ .next = "" };
	if (rc != SKV_OK)
		return rc;
	skv_rwlock_read(&c->lock);
	rc = c->partition ? fill(c->partition, k, page, a, out) : gate_recovering(err);
	skv_rwlock_read_unlock(&c->lock);
	return rc;
}

#define ONE_LIST(kind)                                                                             \
	int one_##kind##_list(struct skv_core *c, const struct skv_page *page,                     \
			      struct skv_arena *a, struct skv_##kind##_list *out,                  \
			      struct skv_error *err)                                               \
	{                                                                                          \
		struct any_list any;                                                               \
		const int rc = fill_one(c, &kind##_kind, page, a, &any, err);                      \
                                                                                                   \
		*out = (struct skv_##kind##_list){ any.v, any.n, any.next };                       \
		return rc;                                                                         \
	}
ONE_LIST(storage)
ONE_LIST(group)
ONE_LIST(instance)

/* ---- one ------------------------------------------------------------------------------------- */

static int missing(struct skv_error *err, const char *kind, const char *field, const char *name)
{
	return skv_fail(err, SKV_E_NOT_FOUND, field, "no %s '%s'", kind, name);
}

/* Makes the view of one object, if it exists. */
#define ONE_VIEW(find, make, kind, field, name)                                                    \
	int rc = core_gate(c, err);                                                                \
                                                                                                   \
	*out = skv_arena_alloc(a, sizeof **out);                                                   \
	if (rc == SKV_OK && !*out)                                                                 \
		rc = SKV_E_NOMEM;                                                                  \
	if (rc != SKV_OK)                                                                          \
		return rc;                                                                         \
	skv_rwlock_read(&c->lock);                                                                 \
	if (!c->partition)                                                                         \
		rc = gate_recovering(err);                                                         \
	else if (find)                                                                             \
		rc = make;                                                                         \
	else                                                                                       \
		rc = missing(err, kind, field, name);                                              \
	skv_rwlock_read_unlock(&c->lock);                                                          \
	return rc;

int one_storage(struct skv_core *c, const char *name, struct skv_arena *a,
		struct skv_storage_view **out, struct skv_error *err)
{
	int at;

	ONE_VIEW((at = volume_find(c->partition, name)) >= 0,
		 view_storage(&c->partition->volume[at], false, a, *out), "storage", "name", name)
}

int one_group(struct skv_core *c, const char *name, struct skv_arena *a,
	      struct skv_group_view **out, struct skv_error *err)
{
	const struct group *g;

	ONE_VIEW((g = group_find(c->partition, name)) != NULL,
		 view_group(c->partition, g, false, a, *out), "group", "name", name)
}

int one_instance(struct skv_core *c, const char *tenant, const char *id, struct skv_arena *a,
		 struct skv_instance_view **out, struct skv_error *err)
{
	struct instance *inst;

	ONE_VIEW((inst = instance_find(c->partition, tenant, id)) && !inst->deleting,
		 view_instance(c->partition, inst, false, a, *out), "instance", "id", id)
}

/* Storages with slab files are in all partitions, and counted in the first one. */
static uint64_t count_storages(const struct partition *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_named; i++)
		n += p->core->number == 0 || named_volume(p, i)->dev->ops->counted;
	return n;
}

static int totals(struct partition *p, const struct skv_page *page, struct skv_arena *a,
		  struct skv_stats *out)
{
	struct any_list s = { 0 }, g = { 0 }, i = { 0 };
	int rc = fill(p, &storage_kind, page, a, &s);

	ASSERT_SHARED(p);
	if (rc == SKV_OK)
		rc = fill(p, &group_kind, page, a, &g);
	if (rc == SKV_OK)
		rc = fill(p, &instance_kind, page, a, &i);
	out->storages = s.v;
	out->n_storages = s.n;
	out->groups = g.v;
	out->n_groups = g.n;
	out->instances = i.v;
	out->n_instances = i.n;
	out->all_storages = count_storages(p);
	out->all_groups = p->n_group;
	out->all_instances = p->n_inst - p->detached.n_instances;
	out->blocks = p->blocks;
	out->sessions = p->open_sessions;
	out->journal_bytes = p->journal_bytes;
	out->journal_limit = journal_bound(p);
	return rc;
}

int one_stats(struct skv_core *c, const struct skv_page *page, struct skv_arena *a,
	      struct skv_stats *out, struct skv_error *err)
{
	int rc = SKV_OK;

	(void)err;
	memset(out, 0, sizeof *out);
	snprintf(out->version, sizeof out->version, "%s", SKV_VERSION);
	snprintf(out->owner, sizeof out->owner, "%.63s", c->owner);
	out->state = skv_state_texts[(int)one_state_get(c)];
	out->uptime_ms = skv_now_ms(c->clock) - c->started_ms;
	out->evicted_blocks = atomic_load(&c->count.evicted_blocks);
	out->expired_sessions = atomic_load(&c->count.expired_sessions);
	skv_rwlock_read(&c->lock);
	out->journal_limit = c->o.journal_limit;
	if (c->partition)
		rc = totals(c->partition, page, a, out);
	skv_rwlock_read_unlock(&c->lock);
	return rc;
}
