/*
 * objects.c - administration over all partitions: makes, changes and deletes storages, groups and
 * instances.
 *
 * A group and its instances are in one partition, permanently; so is a storage of type `external`.
 * A group that names such a storage is made in its partition; an object of a family is made beside
 * its family. Storages with slab files are in all, with the same name, directory and uuid, each
 * with its lease of the capacity (capacity.c). Names are unique over all: calls that make or delete
 * take turns.
 *
 * A call on a handle for one partition comes from another manager and concerns that partition only.
 */
#include "at.h"

#include <string.h>

#include <skv/arena.h>
#include <skv/storage.h>

#include <model/files.h>
#include <journal/registry_write.h>

#include "route.h"

/* Takes the administrators' turn, and knows all places; also when it fails. */
static int enter(struct route *r, struct skv_error *err)
{
	if (r->n == 1)
		return SKV_OK;
	route_turn_take(r);
	return places_know(r, err);
}

static int leave(struct route *r, int rc)
{
	if (r->n > 1)
		route_turn_leave(r);
	return rc;
}

/* ---- groups and instances -------------------------------------------------------------------- */

/* Returns the place of the group whose fast tier this is, or of an external storage that the group
 * names, in any partition; NULL: any. */
static struct skv_cluster *place_of_group(struct route *r, const struct skv_group_spec *g)
{
	if (g->tier_of && *g->tier_of)
		return route_group(r, g->tier_of);
	for (uint32_t s = 0; s < g->n_storages; s++) {
		struct skv_cluster *at = route_storage(r, g->storages[s]);
		bool counted;

		if (route_has_storage(at->core, g->storages[s], &counted)
			    ? counted
			    : one_state_get(at->core) == SKV_CORE_STANDBY)
			return at;
	}
	return NULL;
}

static int part_of_group(struct route *r, const struct skv_group_spec *g, struct skv_cluster **at,
			 struct skv_error *err)
{
	char key[PLACE_KEY];

	*at = route_group(r, g->name);
	if (r->n == 1 || route_has_group((*at)->core, g->name))
		return SKV_OK;
	place_group_key(key, g->name);
	return place_take(r, key, place_of_group(r, g), at, err);
}

int skv_cluster_group_put(struct skv_cluster *c, const struct skv_group_spec *g, enum skv_put how,
			  const uint64_t *expect, bool *created, struct skv_error *err)
{
	struct skv_cluster *at;
	int rc;

	if (c->core)
		return one_group_put(c->core, g, how, expect, created, err);
	rc = enter(c->route, err);
	if (rc == SKV_OK)
		rc = part_of_group(c->route, g, &at, err);
	if (rc == SKV_OK)
		rc = at_group_put(at, g, how, expect, created, err);
	if (rc == SKV_OK)
		rc = tiers_put_group(at, g, err);
	return leave(c->route, rc);
}

int skv_cluster_group_delete(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	struct skv_cluster *at;
	int rc;

	if (c->core)
		return one_group_delete(c->core, name, err);
	rc = enter(c->route, err);
	at = route_group(c->route, name);
	if (rc == SKV_OK)
		rc = tiers_empty_group(at, name, err);
	if (rc == SKV_OK)
		rc = at_group_delete(at, name, err);
	return leave(c->route, rc);
}

int route_place_instance(struct route *r, const struct skv_instance_spec *i,
			 struct skv_cluster **at, struct skv_error *err)
{
	struct skv_cluster *group;
	char key[PLACE_KEY];

	*at = route_instance(r, i->tenant, i->id);
	if (r->n == 1 || route_has_instance((*at)->core, i->tenant, i->id))
		return SKV_OK;
	group = route_group(r, i->group);
	if (one_state_get(group->core) == SKV_CORE_READY &&
	    !route_has_group(group->core, i->group)) {
		*at = group; /* the core answers that the group does not exist */
		return SKV_OK;
	}
	registry_instance_key(key, i->tenant, i->id);
	return place_take(r, key, group, at, err);
}

int skv_cluster_instance_put(struct skv_cluster *c, const struct skv_instance_spec *i,
			     enum skv_put how, bool *created, struct skv_error *err)
{
	struct skv_cluster *at;
	int rc;

	if (c->core)
		return one_instance_put(c->core, i, how, created, err);
	rc = enter(c->route, err);
	if (rc == SKV_OK)
		rc = route_place_instance(c->route, i, &at, err);
	if (rc == SKV_OK)
		rc = tiers_check_instance(at, i, err);
	if (rc == SKV_OK)
		rc = at_instance_put(at, i, how, created, err);
	if (rc == SKV_OK)
		tiers_put_instance(at, i);
	return leave(c->route, rc);
}

int skv_cluster_instance_delete(struct skv_cluster *c, const char *tenant, const char *id,
				const struct skv_unused *unused, struct skv_error *err)
{
	char copies[TIER_NAME];
	struct skv_cluster *at;
	bool has;
	int rc;

	if (c->core)
		return one_instance_delete(c->core, tenant, id, unused, err);
	at = route_instance(c->route, tenant, id);
	has = tiers_copies_of(at, tenant, id, copies);
	rc = at_instance_delete(at, tenant, id, unused, err);
	if (rc == SKV_OK && has)
		tiers_drop_copies(at, tenant, copies);
	return rc;
}

/* ---- storages -------------------------------------------------------------------------------- */

/* *v: as it is in that partition; NULL: it is not. */
static int look(struct skv_cluster *at, const char *name, struct skv_arena *a,
		struct skv_storage_view **v, struct skv_error *err)
{
	int rc = at_storage(at, name, a, v, err);

	if (rc != SKV_OK)
		*v = NULL;
	if (rc == SKV_E_NOT_FOUND) {
		skv_error_clear(err);
		rc = SKV_OK;
	}
	return rc;
}

/* Computes the capacity that a new storage gives each partition, in whole units. */
static int first_lease(const struct route *r, struct skv_storage_spec *s, uint64_t *lease,
		       struct skv_error *err)
{
	s->unit = s->unit ? s->unit : one_storage_unit(s);
	*lease = s->capacity / r->n / s->unit * s->unit;
	return *lease ? SKV_OK
		      : skv_fail(err, SKV_E_INVALID, "capacity",
				 "at least one slab unit (%llu bytes) for each of %u partitions",
				 (unsigned long long)s->unit, (unsigned)r->n);
}

/* Puts a storage with slab files. The first partition reports errors, and the values that follow
 * from the directory's chunks. */
static int put_slabs(struct route *r, const struct skv_storage_spec *spec, enum skv_put how,
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
		rc = look(&r->part[i], s.name, &a, &v, err);
		s.capacity = rc == SKV_OK && v ? v->spec.capacity : lease;
		if (rc == SKV_OK && !s.capacity) /* capacity.c makes it */
			continue;
		if (rc == SKV_OK)
			rc = at_storage_put(&r->part[i], &s, i ? SKV_PUT_ANY : how,
					    i ? NULL : created, err);
		if (rc == SKV_OK && i == 0)
			rc = capacity_put_total(r, s.name, spec->capacity, err);
		if (rc == SKV_OK && i == 0)
			rc = look(&r->part[0], s.name, &a, &v, err);
		if (rc == SKV_OK && i == 0 && v) {
			s.file_size = v->spec.file_size;
			s.chunk_size = v->spec.chunk_size;
		}
	}
	skv_arena_destroy(&a);
	return rc;
}

int skv_cluster_storage_put(struct skv_cluster *c, const struct skv_storage_spec *s,
			    enum skv_put how, bool *created, struct skv_error *err)
{
	const struct skv_storage_ops *ops = s->type ? skv_storage_find(s->type) : NULL;
	struct route *r = c->route;
	struct skv_cluster *at = c->core ? c : &r->part[0];
	bool counted = false;
	char key[PLACE_KEY];
	int rc = SKV_OK;

	if (s->root && s->n_fs_master == 0 && !c->core)
		rc = one_root_allowed(r->core[0], s->root, err);
	if (rc != SKV_OK)
		return rc;
	if (c->core || r->n == 1)
		return one_storage_put(at->core, s, how, created, err);
	route_turn_take(r);
	rc = route_everywhere(r, err);
	if (rc == SKV_OK)
		rc = places_know(r, err);
	if (rc != SKV_OK) {
		route_turn_leave(r);
		return rc;
	}
	at = route_storage(r, s->name);
	if (!route_has_storage(at->core, s->name, &counted)) {
		counted = ops && ops->counted;
		place_storage_key(key, s->name);
		if (counted && how != SKV_PUT_THERE)
			rc = place_take(r, key, NULL, &at, err);
	}
	if (rc != SKV_OK)
		; /* the storage has no place */
	else if (!ops || counted || ops->counted || one_state_get(at->core) != SKV_CORE_READY)
		rc = at_storage_put(at, s, how, created, err);
	else
		rc = put_slabs(r, s, how, created, err);
	route_turn_leave(r);
	return rc;
}

/* From the last to the first, which has the directory's marker. One that is in use stops it; those
 * that are gone by then are made again (capacity.c). */
static int delete_slabs(struct route *r, const char *name, struct skv_error *err)
{
	int rc = SKV_OK;

	for (uint32_t i = r->n; rc == SKV_OK && i-- > 0;) {
		rc = at_storage_delete(&r->part[i], name, err);
		if (rc == SKV_E_NOT_FOUND && i > 0) {
			skv_error_clear(err);
			rc = SKV_OK;
		}
	}
	return rc == SKV_OK ? capacity_del_total(r, name, err) : rc;
}

int skv_cluster_storage_delete(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	struct route *r = c->route;
	struct skv_cluster *at = c->core ? c : &r->part[0];
	bool counted;
	int rc;

	if (c->core || r->n == 1)
		return one_storage_delete(at->core, name, err);
	route_turn_take(r);
	rc = route_everywhere(r, err);
	if (rc == SKV_OK) {
		at = route_storage(r, name);
		rc = route_has_storage(at->core, name, &counted) && !counted
			     ? delete_slabs(r, name, err)
			     : at_storage_delete(at, name, err);
	}
	route_turn_leave(r);
	return rc;
}

/* ---- slab files ------------------------------------------------------------------------------ */

int skv_cluster_files(struct skv_cluster *c, const char *storage, struct skv_arena *a,
		      struct skv_file_view **out, uint32_t *n, struct skv_error *err)
{
	struct route *r = c->route;
	struct route_joined all = { .size = sizeof **out };
	int rc;

	if (c->core)
		return one_files(c->core, storage, a, out, n, err);
	rc = route_everywhere(r, err);
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++) {
		uint32_t more = 0;

		rc = at_files(&r->part[i], storage, a, out, &more, err);
		if (rc == SKV_OK)
			rc = route_join(a, &all, *out, more);
		else if (rc == SKV_E_NOT_FOUND)
			rc = SKV_OK;
	}
	*out = all.v;
	*n = all.n;
	if (rc == SKV_OK && all.v)
		skv_error_clear(err);
	return rc == SKV_OK && !all.v ? SKV_E_NOT_FOUND : rc;
}

/* Returns the partition of a file's number; the first partition answers for unknown numbers. */
static struct skv_cluster *part_of_file(struct route *r, const char *storage, uint32_t file)
{
	const uint32_t number = file >> FILE_SHIFT;
	bool counted;

	if (route_has_storage(r->core[0], storage, &counted) && !counted)
		return &r->part[number < r->n ? number : 0];
	return route_storage(r, storage);
}

int skv_cluster_file_put(struct skv_cluster *c, const char *storage,
			 const struct skv_file_wish *wish, struct skv_error *err)
{
	struct route *r = c->route;
	int rc;

	if (c->core)
		return one_file_put(c->core, storage, wish, err);
	rc = route_everywhere(r, err);
	return rc == SKV_OK ? at_file_put(part_of_file(r, storage, wish->file), storage, wish, err)
			    : rc;
}
