/*
 * objects.c - administration over all partitions: where storages, groups and instances are made,
 * changed and deleted.
 *
 * A group and its instances are in one partition, for good; so is a storage of type `external`, and
 * a group that names one goes to its partition; it is made beside its family, if it has one.
 * Storages with slab files are in all, with the same name, directory and uuid, each with its lease
 * of the capacity (capacity.c). Names are unique over all: calls that make or delete take turns.
 */
#include "route.h"

#include <string.h>

#include <skv/arena.h>
#include <skv/storage.h>

#include <model/files.h>
#include <journal/registry_write.h>

/* q is for `at`, here or there. *created may be NULL. */
static int ask_for(struct skv_core *c, struct skv_core *at, struct skv_ask *q, bool *created,
		   struct skv_error *err)
{
	struct skv_told t;
	struct skv_arena a;
	int rc;

	skv_arena_init(&a);
	rc = route_ask(c, at, q, &t, &a, err);
	if (rc == SKV_OK && created)
		*created = t.created;
	skv_arena_destroy(&a);
	return rc;
}

/* ---- groups and instances -------------------------------------------------------------------- */

/* That of the group whose fast tier it is, or of an external storage that it names, wherever that
 * is; NULL: any. */
static struct skv_core *place_of_group(struct skv_core *c, const struct skv_group_spec *g)
{
	if (g->tier_of && *g->tier_of)
		return route_group(c, g->tier_of);
	for (uint32_t s = 0; s < g->n_storages; s++) {
		struct skv_core *at = route_storage(c, g->storages[s]);
		bool counted;

		if (route_has_storage(at, g->storages[s], &counted)
			    ? counted
			    : one_state_get(at) == SKV_CORE_STANDBY)
			return at;
	}
	return NULL;
}

static int core_of_group(struct skv_core *c, const struct skv_group_spec *g, struct skv_core **at,
			 struct skv_error *err)
{
	char key[PLACE_KEY];

	*at = route_group(c, g->name);
	if (route_has_group(*at, g->name))
		return SKV_OK;
	place_group_key(key, g->name);
	return place_take(c->route, key, place_of_group(c, g), at, err);
}

static int put_group(struct skv_core *c, struct skv_ask *q, bool *created, struct skv_error *err)
{
	struct skv_core *at;
	int rc = SKV_OK;

	at = c = whole(c);
	q->name = q->group->name;
	q->n_group = 1;
	if (c->route) {
		route_turn_take(c->route);
		rc = places_know(c->route, err);
		if (rc == SKV_OK)
			rc = core_of_group(c, q->group, &at, err);
	}
	if (rc == SKV_OK)
		rc = ask_for(c, at, q, created, err);
	if (rc == SKV_OK)
		rc = tiers_put_group(c, at, q->group, err);
	if (c->route)
		route_turn_leave(c->route);
	return rc;
}

int skv_core_group_put(struct skv_core *c, const struct skv_group_spec *g, const uint64_t *expect,
		       bool *created, struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_GROUP_PUT, .group = g, .expects = expect != NULL,
			     .expect = expect ? *expect : 0 };

	return put_group(c, &q, created, err);
}

int skv_core_group_create(struct skv_core *c, const struct skv_group_spec *g, struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_GROUP_CREATE, .group = g };

	return put_group(c, &q, NULL, err);
}

int skv_core_group_delete(struct skv_core *c, const char *name, struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_GROUP_DELETE, .name = name };
	struct skv_core *at = c;
	int rc = SKV_OK;

	if (c->route) {
		route_turn_take(c->route);
		rc = places_know(c->route, err);
		if (rc == SKV_OK)
			at = route_group(c, name);
	}
	if (rc == SKV_OK)
		rc = tiers_empty_group(c, at, name, err);
	if (rc == SKV_OK)
		rc = ask_for(c, at, &q, NULL, err);
	if (c->route)
		route_turn_leave(c->route);
	return rc;
}

int route_place_instance(struct skv_core *c, const struct skv_instance_spec *i,
			 struct skv_core **at, struct skv_error *err)
{
	struct skv_core *group;
	char key[PLACE_KEY];

	*at = route_instance(c, i->tenant, i->id);
	if (route_has_instance(*at, i->tenant, i->id))
		return SKV_OK;
	group = route_group(c, i->group);
	if (one_state_get(group) == SKV_CORE_READY && !route_has_group(group, i->group)) {
		*at = group; /* there is none, it says */
		return SKV_OK;
	}
	registry_instance_key(key, i->tenant, i->id);
	return place_take(c->route, key, group, at, err);
}

static int put_instance(struct skv_core *c, enum skv_ask_what what,
			const struct skv_instance_spec *i, bool *created, struct skv_error *err)
{
	struct skv_ask q = { .what = what, .tenant = i->tenant, .name = i->id, .instance = i,
			     .n_instance = 1 };
	struct skv_core *at;
	int rc = SKV_OK;

	at = c = whole(c);
	if (c->route) {
		route_turn_take(c->route);
		rc = places_know(c->route, err);
		if (rc == SKV_OK)
			rc = route_place_instance(c, i, &at, err);
	}
	if (rc == SKV_OK)
		rc = tiers_check_instance(c, at, i, err);
	if (rc == SKV_OK)
		rc = ask_for(c, at, &q, created, err);
	if (rc == SKV_OK)
		tiers_put_instance(c, at, i);
	if (c->route)
		route_turn_leave(c->route);
	return rc;
}

int skv_core_instance_put(struct skv_core *c, const struct skv_instance_spec *i, bool *created,
			  struct skv_error *err)
{
	return put_instance(c, SKV_ASK_INSTANCE_PUT, i, created, err);
}

int skv_core_instance_create(struct skv_core *c, const struct skv_instance_spec *i,
			     struct skv_error *err)
{
	return put_instance(c, SKV_ASK_INSTANCE_CREATE, i, NULL, err);
}

static int delete_instance(struct skv_core *c, struct skv_ask *q, struct skv_error *err)
{
	struct skv_core *at = core_of(c, q->tenant, q->name);
	char copies[TIER_NAME];
	bool has = tiers_copies_of(c, at, q->tenant, q->name, copies);
	int rc = ask_for(c, at, q, NULL, err);

	if (rc == SKV_OK && has)
		tiers_drop_copies(c, at, q->tenant, copies);
	return rc;
}

int skv_core_instance_delete(struct skv_core *c, const char *tenant, const char *id,
			     struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_INSTANCE_DELETE, .tenant = tenant, .name = id };

	return delete_instance(c, &q, err);
}

int skv_core_instance_delete_unused(struct skv_core *c, const char *tenant, const char *id,
				    uint64_t unused_ms, bool with_blocks, struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_INSTANCE_DELETE_UNUSED, .tenant = tenant, .name = id,
			     .unused_ms = unused_ms, .with_blocks = with_blocks };

	return delete_instance(c, &q, err);
}

/* ---- storages -------------------------------------------------------------------------------- */

static int put_one(struct skv_core *c, struct skv_core *at, const struct skv_storage_spec *s,
		   enum skv_ask_what how, bool *created, struct skv_error *err)
{
	struct skv_ask q = { .what = how, .name = s->name, .storage = s, .n_storage = 1 };

	return ask_for(c, at, &q, created, err);
}

/* *v: as it is in that partition; NULL: it is not. */
static int look(struct route *r, uint32_t number, const char *name, struct skv_arena *a,
		struct skv_storage_view **v, struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_STORAGES, .name = name };
	struct skv_told t;
	int rc = route_ask(r->core[0], r->core[number], &q, &t, a, err);

	*v = rc == SKV_OK ? t.storages : NULL;
	if (rc == SKV_E_NOT_FOUND) {
		skv_error_clear(err);
		rc = SKV_OK;
	}
	return rc;
}

/* What a new storage gives each partition, in whole units. */
static int first_lease(const struct route *r, const struct skv_storage_spec *s, uint64_t *lease,
		       struct skv_error *err)
{
	uint64_t unit = s->unit ? s->unit : 64ull << 20;

	*lease = s->capacity / r->n / unit * unit;
	return *lease ? SKV_OK
		      : skv_fail(err, SKV_E_INVALID, "capacity",
				 "at least one slab unit (%llu bytes) for each of %u partitions",
				 (unsigned long long)unit, (unsigned)r->n);
}

/* The first partition says what is wrong, and what the directory's chunks make of it. */
static int put_slabs(struct route *r, const struct skv_storage_spec *spec, enum skv_ask_what how,
		     bool *created, struct skv_error *err)
{
	struct skv_storage_spec s = *spec;
	struct skv_storage_view *v;
	struct skv_arena a;
	uint64_t lease = 0;
	int rc = SKV_OK;

	skv_arena_init(&a);
	if (!route_has_storage(r->core[0], s.name, NULL))
		rc = first_lease(r, &s, &lease, err);
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++) {
		rc = look(r, i, s.name, &a, &v, err);
		s.capacity = rc == SKV_OK && v ? v->spec.capacity : lease;
		if (rc == SKV_OK && !s.capacity) /* capacity.c makes it */
			continue;
		if (rc == SKV_OK)
			rc = put_one(r->core[0], r->core[i], &s, i ? SKV_ASK_STORAGE_PUT : how,
				     i ? NULL : created, err);
		if (rc == SKV_OK && i == 0)
			rc = capacity_put_total(r, s.name, spec->capacity, err);
		if (rc == SKV_OK && i == 0)
			rc = look(r, 0, s.name, &a, &v, err);
		if (rc == SKV_OK && i == 0 && v) {
			s.file_size = v->spec.file_size;
			s.chunk_size = v->spec.chunk_size;
		}
	}
	skv_arena_destroy(&a);
	return rc;
}

static int put_storage(struct skv_core *c, const struct skv_storage_spec *s, enum skv_ask_what how,
		       bool *created, struct skv_error *err)
{
	const struct skv_storage_ops *ops = s->type ? skv_storage_find(s->type) : NULL;
	struct skv_core *at;
	bool counted = false;
	char key[PLACE_KEY];
	struct route *r;
	int rc = SKV_OK;

	c = whole(c);
	r = c->route;
	if (s->root && s->n_fs_master == 0)
		rc = skv_core_root_allowed(c, s->root, err);
	if (rc != SKV_OK)
		return rc;
	if (!r)
		return put_one(c, c, s, how, created, err);
	route_turn_take(r);
	rc = route_everywhere(r, err);
	if (rc == SKV_OK)
		rc = places_know(r, err);
	if (rc != SKV_OK) {
		route_turn_leave(r);
		return rc;
	}
	at = route_storage(c, s->name);
	if (!route_has_storage(at, s->name, &counted)) {
		counted = ops && ops->counted;
		place_storage_key(key, s->name);
		if (counted && how != SKV_ASK_STORAGE_CHANGE)
			rc = place_take(r, key, NULL, &at, err);
	}
	if (rc != SKV_OK)
		; /* it has no place */
	else if (!ops || counted || ops->counted || one_state_get(at) != SKV_CORE_READY)
		rc = put_one(c, at, s, how, created, err);
	else
		rc = put_slabs(r, s, how, created, err);
	route_turn_leave(r);
	return rc;
}

int skv_core_storage_put(struct skv_core *c, const struct skv_storage_spec *s, bool *created,
			 struct skv_error *err)
{
	return put_storage(c, s, SKV_ASK_STORAGE_PUT, created, err);
}

int skv_core_storage_create(struct skv_core *c, const struct skv_storage_spec *s,
			    struct skv_error *err)
{
	return put_storage(c, s, SKV_ASK_STORAGE_CREATE, NULL, err);
}

int skv_core_storage_change(struct skv_core *c, const struct skv_storage_spec *s,
			    struct skv_error *err)
{
	return put_storage(c, s, SKV_ASK_STORAGE_CHANGE, NULL, err);
}

/* From the last to the first, which has the directory's marker. One that is in use stops it; those
 * that are gone by then are made again (capacity.c). */
static int delete_slabs(struct route *r, const char *name, struct skv_error *err)
{
	int rc = SKV_OK;

	for (uint32_t i = r->n; rc == SKV_OK && i-- > 0;) {
		struct skv_ask q = { .what = SKV_ASK_STORAGE_DELETE, .name = name };

		rc = ask_for(r->core[0], r->core[i], &q, NULL, err);
		if (rc == SKV_E_NOT_FOUND && i > 0) {
			skv_error_clear(err);
			rc = SKV_OK;
		}
	}
	return rc == SKV_OK ? capacity_del_total(r, name, err) : rc;
}

int skv_core_storage_delete(struct skv_core *c, const char *name, struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_STORAGE_DELETE, .name = name };
	struct route *r = c->route;
	struct skv_core *at;
	bool counted;
	int rc;

	if (!r)
		return ask_for(c, c, &q, NULL, err);
	route_turn_take(r);
	rc = route_everywhere(r, err);
	if (rc == SKV_OK) {
		at = route_storage(c, name);
		rc = route_has_storage(at, name, &counted) && !counted
			     ? delete_slabs(r, name, err)
			     : ask_for(c, at, &q, NULL, err);
	}
	route_turn_leave(r);
	return rc;
}

/* ---- slab files ------------------------------------------------------------------------------ */

/* After the *n of *all, in a new array. */
static int add_files(struct skv_arena *a, struct skv_file_view **all, uint32_t *n,
		     const struct skv_told *t)
{
	struct skv_file_view *both = skv_arena_alloc(a, (*n + t->n_files + 1) * sizeof *both);

	if (!both)
		return SKV_E_NOMEM;
	if (*n)
		memcpy(both, *all, *n * sizeof *both);
	if (t->n_files)
		memcpy(both + *n, t->files, t->n_files * sizeof *both);
	*all = both;
	*n += t->n_files;
	return SKV_OK;
}

int skv_core_files(struct skv_core *c, const char *storage, struct skv_arena *a,
		   struct skv_file_view **out, uint32_t *n, struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_FILES, .name = storage };
	struct route *r = c->route;
	struct skv_told t;
	int rc;

	if (!r)
		return one_files(c, storage, a, out, n, err);
	*n = 0;
	*out = NULL;
	rc = route_everywhere(r, err);
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++) {
		rc = route_ask(c, r->core[i], &q, &t, a, err);
		if (rc == SKV_OK)
			rc = add_files(a, out, n, &t);
		else if (rc == SKV_E_NOT_FOUND)
			rc = SKV_OK;
	}
	if (rc == SKV_OK && *out)
		skv_error_clear(err);
	return rc == SKV_OK && !*out ? SKV_E_NOT_FOUND : rc;
}

/* Its number names the partition; a number that none has is told by the first. */
static struct skv_core *core_of_file(struct skv_core *c, const char *storage, uint32_t file)
{
	struct route *r = c->route;
	bool counted;

	if (route_has_storage(c, storage, &counted) && !counted)
		return file >> FILE_SHIFT < r->n ? r->core[file >> FILE_SHIFT] : c;
	return route_storage(c, storage);
}

static int change_file(struct skv_core *c, enum skv_ask_what what, const char *storage,
		       const struct skv_file_wish *wish, struct skv_error *err)
{
	struct skv_ask q = { .what = what, .name = storage, .file = wish, .n_file = 1 };
	struct skv_core *at = c;
	int rc = c->route ? route_everywhere(c->route, err) : SKV_OK;

	if (rc == SKV_OK && c->route)
		at = core_of_file(c, storage, wish->file);
	return rc == SKV_OK ? ask_for(c, at, &q, NULL, err) : rc;
}

int skv_core_file_drain(struct skv_core *c, const char *storage, uint32_t file, bool on, bool move,
			struct skv_error *err)
{
	const struct skv_file_wish wish = { .file = file, .draining = on, .move = move };

	return change_file(c, SKV_ASK_FILE_DRAIN, storage, &wish, err);
}

int skv_core_file_forget(struct skv_core *c, const char *storage, uint32_t file,
			 struct skv_error *err)
{
	const struct skv_file_wish wish = { .file = file, .draining = true, .forget = true };

	return change_file(c, SKV_ASK_FILE_FORGET, storage, &wish, err);
}
