/*
 * objects.c - administration over all partitions: where storages, groups and instances are made,
 * changed and deleted.
 *
 * A group and its instances are in one partition, for good; so is a storage of type `external`, and
 * a group that names one goes to its partition. Storages with slab files are in all, with the same
 * name, directory and uuid, each with its lease of the capacity (capacity.c). Names are unique over
 * all: calls that make or delete take turns.
 */
#include "route.h"

#include <string.h>

#include <skv/arena.h>
#include <skv/storage.h>

#include <model/files.h>
#include <journal/registry_write.h>

enum how { ANY, NEW, THERE };

/* ---- groups and instances -------------------------------------------------------------------- */

/* That of an external storage that it names, wherever it is; NULL: any. */
static struct skv_core *place_of_group(struct skv_core *c, const struct skv_group_spec *g,
				       struct skv_error *err)
{
	for (uint32_t s = 0; s < g->n_storages; s++) {
		struct skv_core *at = route_storage(c, g->storages[s], err);
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

	*at = route_group(c, g->name, err);
	if (route_has_group(*at, g->name))
		return SKV_OK;
	place_group_key(key, g->name);
	return place_take(c->route, key, place_of_group(c, g, err), at, err);
}

int skv_core_group_put(struct skv_core *c, const struct skv_group_spec *g, const uint64_t *expect,
		       bool *created, struct skv_error *err)
{
	struct skv_core *at;
	int rc;

	c = whole(c);
	if (!c->route)
		return one_group_put(c, g, expect, created, err);
	route_turn_take(c->route);
	rc = core_of_group(c, g, &at, err);
	if (rc == SKV_OK)
		rc = one_group_put(at, g, expect, created, err);
	route_turn_leave(c->route);
	return rc;
}

int skv_core_group_create(struct skv_core *c, const struct skv_group_spec *g, struct skv_error *err)
{
	struct skv_core *at;
	int rc;

	c = whole(c);
	if (!c->route)
		return one_group_create(c, g, err);
	route_turn_take(c->route);
	rc = core_of_group(c, g, &at, err);
	if (rc == SKV_OK)
		rc = one_group_create(at, g, err);
	route_turn_leave(c->route);
	return rc;
}

int skv_core_group_delete(struct skv_core *c, const char *name, struct skv_error *err)
{
	int rc;

	if (!c->route)
		return one_group_delete(c, name, err);
	route_turn_take(c->route);
	rc = one_group_delete(route_group(c, name, err), name, err);
	route_turn_leave(c->route);
	return rc;
}

/* An existing one stays where it is, another one goes to its group. */
static int core_of_instance(struct skv_core *c, const struct skv_instance_spec *i,
			    struct skv_core **at, struct skv_error *err)
{
	struct skv_core *group;
	char key[PLACE_KEY];

	*at = route_instance(c, i->tenant, i->id, err);
	if (route_has_instance(*at, i->tenant, i->id))
		return SKV_OK;
	group = route_group(c, i->group, err);
	if (one_state_get(group) == SKV_CORE_READY && !route_has_group(group, i->group)) {
		*at = group; /* there is none, it says */
		return SKV_OK;
	}
	registry_instance_key(key, i->tenant, i->id);
	return place_take(c->route, key, group, at, err);
}

int skv_core_instance_put(struct skv_core *c, const struct skv_instance_spec *i, bool *created,
			  struct skv_error *err)
{
	struct skv_core *at;
	int rc;

	c = whole(c);
	if (!c->route)
		return one_instance_put(c, i, created, err);
	route_turn_take(c->route);
	rc = core_of_instance(c, i, &at, err);
	if (rc == SKV_OK)
		rc = one_instance_put(at, i, created, err);
	route_turn_leave(c->route);
	return rc;
}

int skv_core_instance_create(struct skv_core *c, const struct skv_instance_spec *i,
			     struct skv_error *err)
{
	struct skv_core *at;
	int rc;

	c = whole(c);
	if (!c->route)
		return one_instance_create(c, i, err);
	route_turn_take(c->route);
	rc = core_of_instance(c, i, &at, err);
	if (rc == SKV_OK)
		rc = one_instance_create(at, i, err);
	route_turn_leave(c->route);
	return rc;
}

int skv_core_instance_delete(struct skv_core *c, const char *tenant, const char *id,
			     struct skv_error *err)
{
	return one_instance_delete(core_of(c, tenant, id, err), tenant, id, err);
}

int skv_core_instance_delete_unused(struct skv_core *c, const char *tenant, const char *id,
				    uint64_t unused_ms, bool with_blocks, struct skv_error *err)
{
	return one_instance_delete_unused(core_of(c, tenant, id, err), tenant, id, unused_ms,
					  with_blocks, err);
}

/* ---- storages -------------------------------------------------------------------------------- */

static int put_one(struct skv_core *one, const struct skv_storage_spec *s, enum how how,
		   bool *created, struct skv_error *err)
{
	switch (how) {
	case NEW: return one_storage_create(one, s, err);
	case THERE: return one_storage_change(one, s, err);
	default: return one_storage_put(one, s, created, err);
	}
}

/* *v: as it is in that partition. */
static int look(struct skv_core *one, const char *name, struct skv_arena *a,
		struct skv_storage_view **v, struct skv_error *err)
{
	uint32_t n;

	return one_storages(one, name, a, v, &n, err);
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
static int put_slabs(struct route *r, const struct skv_storage_spec *spec, enum how how,
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
		struct skv_core *one = r->core[i];

		s.capacity = lease;
		if (route_has_storage(one, s.name, NULL))
			rc = look(one, s.name, &a, &v, err);
		if (rc == SKV_OK && route_has_storage(one, s.name, NULL))
			s.capacity = v[0].spec.capacity;
		if (rc == SKV_OK && !s.capacity) /* capacity.c makes it */
			continue;
		if (rc == SKV_OK)
			rc = put_one(one, &s, i ? ANY : how, i ? NULL : created, err);
		if (rc == SKV_OK && i == 0)
			rc = capacity_put_total(r, s.name, spec->capacity, err);
		if (rc == SKV_OK && i == 0)
			rc = look(one, s.name, &a, &v, err);
		if (rc == SKV_OK && i == 0) {
			s.file_size = v[0].spec.file_size;
			s.chunk_size = v[0].spec.chunk_size;
		}
	}
	skv_arena_destroy(&a);
	return rc;
}

static int put_storage(struct skv_core *c, const struct skv_storage_spec *s, enum how how,
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
		return put_one(c, s, how, created, err);
	route_turn_take(r);
	rc = route_all(r, err);
	if (rc != SKV_OK) {
		route_turn_leave(r);
		return rc;
	}
	at = route_storage(c, s->name, err);
	if (!route_has_storage(at, s->name, &counted)) {
		counted = ops && ops->counted;
		place_storage_key(key, s->name);
		if (counted && how != THERE)
			rc = place_take(r, key, NULL, &at, err);
	}
	if (rc != SKV_OK)
		; /* it has no place */
	else if (!ops || counted || ops->counted || one_state_get(at) != SKV_CORE_READY)
		rc = put_one(at, s, how, created, err);
	else
		rc = put_slabs(r, s, how, created, err);
	route_turn_leave(r);
	return rc;
}

int skv_core_storage_put(struct skv_core *c, const struct skv_storage_spec *s, bool *created,
			 struct skv_error *err)
{
	return put_storage(c, s, ANY, created, err);
}

int skv_core_storage_create(struct skv_core *c, const struct skv_storage_spec *s,
			    struct skv_error *err)
{
	return put_storage(c, s, NEW, NULL, err);
}

int skv_core_storage_change(struct skv_core *c, const struct skv_storage_spec *s,
			    struct skv_error *err)
{
	return put_storage(c, s, THERE, NULL, err);
}

/* From the last to the first, which has the directory's marker. One that is in use stops it; those
 * that are gone by then are made again (capacity.c). */
static int delete_slabs(struct route *r, const char *name, struct skv_error *err)
{
	int rc = SKV_OK;

	for (uint32_t i = r->n; rc == SKV_OK && i-- > 0;)
		if (i == 0 || route_has_storage(r->core[i], name, NULL))
			rc = one_storage_delete(r->core[i], name, err);
	return rc == SKV_OK ? capacity_del_total(r, name, err) : rc;
}

int skv_core_storage_delete(struct skv_core *c, const char *name, struct skv_error *err)
{
	struct route *r = c->route;
	struct skv_core *at;
	bool counted;
	int rc;

	if (!r)
		return one_storage_delete(c, name, err);
	route_turn_take(r);
	rc = route_all(r, err);
	at = route_storage(c, name, err);
	if (rc == SKV_OK)
		rc = route_has_storage(at, name, &counted) && !counted
			     ? delete_slabs(r, name, err)
			     : one_storage_delete(at, name, err);
	route_turn_leave(r);
	return rc;
}

/* ---- slab files ------------------------------------------------------------------------------ */

int skv_core_files(struct skv_core *c, const char *storage, struct skv_arena *a,
		   struct skv_file_view **out, uint32_t *n, struct skv_error *err)
{
	struct skv_file_view *all = NULL;
	struct route *r = c->route;
	int rc;

	if (!r)
		return one_files(c, storage, a, out, n, err);
	*n = 0;
	rc = route_all(r, err);
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++) {
		struct skv_file_view *v, *both;
		uint32_t more;

		if (!route_has_storage(r->core[i], storage, NULL))
			continue;
		rc = one_files(r->core[i], storage, a, &v, &more, err);
		both = rc == SKV_OK ? skv_arena_alloc(a, (*n + more + 1) * sizeof *both) : NULL;
		if (rc == SKV_OK && !both)
			rc = SKV_E_NOMEM;
		if (rc != SKV_OK)
			break;
		if (*n)
			memcpy(both, all, *n * sizeof *both);
		if (more)
			memcpy(both + *n, v, more * sizeof *both);
		*n += more;
		all = both;
	}
	*out = all;
	return rc == SKV_OK && !all
		       ? one_files(route_storage(c, storage, err), storage, a, out, n, err)
		       : rc;
}

/* Its number names the partition; a number that none has is told by the first. */
static struct skv_core *core_of_file(struct skv_core *c, const char *storage, uint32_t file,
				     struct skv_error *err)
{
	struct route *r = c->route;
	bool counted;

	if (!r)
		return c;
	if (route_has_storage(c, storage, &counted) && !counted)
		return file >> FILE_SHIFT < r->n ? r->core[file >> FILE_SHIFT] : c;
	return route_storage(c, storage, err);
}

int skv_core_file_drain(struct skv_core *c, const char *storage, uint32_t file, bool on, bool move,
			struct skv_error *err)
{
	const int rc = c->route ? route_all(c->route, err) : SKV_OK;

	if (rc != SKV_OK)
		return rc;
	return one_file_drain(core_of_file(c, storage, file, err), storage, file, on, move, err);
}

int skv_core_file_forget(struct skv_core *c, const char *storage, uint32_t file,
			 struct skv_error *err)
{
	const int rc = c->route ? route_all(c->route, err) : SKV_OK;

	if (rc != SKV_OK)
		return rc;
	return one_file_forget(core_of_file(c, storage, file, err), storage, file, err);
}
