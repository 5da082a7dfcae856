/* load.c - turns documents of the registry into objects of a partition. */
#include <recovery/load.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/arena.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/device.h>
#include <model/files.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/volume.h>
#include <journal/registry.h>
#include <storage/device.h>

struct loader {
	struct partition *p;
	struct registry_view *view;
	struct skv_error *err;
};

/* The device outlives reloads: created by the first load, reused by later ones. */
static int use_device(struct partition *p, const struct storage_doc *d, struct device **out)
{
	struct skv_core *c = p->core;
	int rc;

	core_lock(c);
	*out = device_find(c, d->id);
	rc = *out ? device_describe(*out, &d->spec) : SKV_OK;
	core_unlock(c);
	if (*out)
		return rc;
	rc = device_make(c, &d->spec, d->id, d->uuid, out);
	if (rc != SKV_OK)
		return rc;
	core_lock(c);
	rc = device_add(c, *out);
	core_unlock(c);
	if (rc == SKV_OK)
		return device_start(*out);
	device_destroy(*out);
	*out = NULL;
	return rc;
}

static int load_storage(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct loader *l = ctx;
	struct storage_doc d = { 0 };
	struct skv_arena a;
	struct device *dev;
	int rc;

	skv_arena_init(&a);
	rc = registry_get_storage(&a, key, bytes, n, &d, l->err);
	if (rc == SKV_OK)
		rc = use_device(l->p, &d, &dev);
	if (rc == SKV_OK)
		rc = partition_add_volume(l->p, dev, &d.spec, version);
	skv_arena_destroy(&a);
	return rc;
}

static int load_group(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct loader *l = ctx;
	struct skv_group_spec g = { 0 };
	struct skv_arena a;
	int rc;

	skv_arena_init(&a);
	rc = registry_get_group(&a, key, bytes, n, &g, l->err);
	if (rc == SKV_OK)
		rc = partition_add_group(l->p, &g, version);
	skv_arena_destroy(&a);
	return rc;
}

static int add_instance(struct partition *p, const struct skv_instance_spec *i, uint32_t id,
			uint64_t version, bool dropped)
{
	int rc = SKV_OK;

	ASSERT_EXCLUSIVE(p);
	if (!dropped) {
		rc = partition_add_instance(p, i, id);
		if (rc == SKV_OK)
			instance_by_id(p, id)->registered = true;
	} else if (instance_by_id(p, id)) {
		version = instance_by_id(p, id)->version; /* still registered */
	} else {
		rc = partition_add_instance_to(p, i, id, NULL);
	}
	if (rc == SKV_OK)
		instance_by_id(p, id)->version = version;
	if (rc == SKV_OK && dropped)
		partition_set_dropped(p, id);
	return rc;
}

static int instance_document(struct loader *l, const char *key, const void *bytes, size_t n,
			     uint64_t version, bool dropped)
{
	struct skv_instance_spec i = { 0 };
	struct skv_arena a;
	uint32_t id;
	int rc;

	skv_arena_init(&a);
	rc = registry_get_instance(&a, key, bytes, n, &i, &id, l->err);
	if (rc == SKV_OK)
		rc = add_instance(l->p, &i, id, version, dropped);
	if (rc == SKV_E_CORRUPT)
		doc_bad(l->err, key);
	skv_arena_destroy(&a);
	return rc;
}

static int load_instance(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	return instance_document(ctx, key, bytes, n, version, false);
}

static int load_dropped(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	return instance_document(ctx, key, bytes, n, version, true);
}

/* Files come in order of their numbers. The last one of a storage may have been claimed by a
 * manager that died before creating it: it counts once the journal refers to it, growth has created
 * it, or its document was changed since. */
static int load_file(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct loader *l = ctx;
	struct volume_file f = { .version = version };
	unsigned storage;
	struct volume *s;
	int rc;

	if (sscanf(key, "file/%8x/%8x", &storage, &f.number) != 2 ||
	    !registry_get_file(bytes, n, &f) || !file_is_of(f.number, l->p->core->number))
		return doc_bad(l->err, key);
	s = volume_by_id(l->p, storage);
	if (!s)
		return SKV_OK; /* the storage was deleted */
	rc = file_add_claim(s);
	if (rc == SKV_OK && (f.asked || f.lost || f.state == FILE_GONE))
		rc = file_add(s, &f);
	else if (rc == SKV_OK)
		s->claim = f;
	return rc == SKV_E_INVALID ? doc_bad(l->err, key) : rc;
}

/* ---- loading everything, and changes --------------------------------------------------------- */

/* In the order in which documents refer to others. */
static const char *const kinds[] = { "storage/", "group/", "instance/", "dropped/", "file/" };
static const skv_registry_fn loads[] = { load_storage, load_group, load_instance, load_dropped,
					 load_file };
#define KINDS (sizeof kinds / sizeof kinds[0])

/* A document that was removed and written again has the version of the first one. */
static uint64_t fingerprint(const void *bytes, size_t n, uint64_t version)
{
	return version + skv_hash128(bytes, n).lo;
}

/* The place of a document that is, or was, known, or that of a new one; NULL: out of memory. */
static struct registry_seen *find_seen(struct registry_view *view, struct skv_key key)
{
	size_t i = key.lo & (view->cap - 1);

	assert(view->n < view->cap);
	while (view->v[i].known && !skv_key_equal(view->v[i].key, key))
		i = (i + 1) & (view->cap - 1);
	return &view->v[i];
}

static int make_room(struct registry_view *view)
{
	struct registry_view larger = *view;

	if (2 * view->n < view->cap)
		return SKV_OK;
	larger.cap = view->cap ? 2 * view->cap : 64;
	larger.v = skv_calloc(larger.cap, sizeof *larger.v);
	if (!larger.v)
		return SKV_E_NOMEM;
	for (size_t i = 0; i < view->cap; i++)
		if (view->v[i].known)
			*find_seen(&larger, view->v[i].key) = view->v[i];
	skv_free(view->v);
	*view = larger;
	return SKV_OK;
}

static int changed(struct skv_error *err)
{
	return skv_fail(err, SKV_E_CONFLICT, NULL, "storages, groups or instances were changed");
}

/* A file that could not be made: its claim was taken back. */
static int forget(struct partition *p, struct registry_seen *seen, struct skv_error *err)
{
	struct volume *v = seen->is_file ? volume_by_id(p, seen->storage) : NULL;

	if (!v || !v->claim.length || v->claim.number != seen->file)
		return changed(err);
	v->claim = (struct volume_file){ 0 };
	seen->there = false;
	return SKV_OK;
}

static int load_document(struct loader *l, const char *key, const void *bytes, size_t n,
			 uint64_t version)
{
	for (size_t i = 0; i < KINDS; i++)
		if (strncmp(key, kinds[i], strlen(kinds[i])) == 0)
			return loads[i](l, key, bytes, n, version);
	return SKV_OK;
}

/* A document as it is now; one that is gone has no version. */
static int take_document(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct loader *l = ctx;
	struct registry_view *view = l->view;
	const uint64_t print = fingerprint(bytes, n, version);
	struct registry_seen *seen;
	int rc = make_room(view);

	if (rc != SKV_OK)
		return rc;
	seen = find_seen(view, skv_hash128(key, strlen(key)));
	seen->pass = view->pass;
	if (version == SKV_VERSION_NONE)
		return seen->there ? forget(l->p, seen, l->err) : SKV_OK;
	if (seen->there)
		return seen->fingerprint == print ? SKV_OK : changed(l->err);
	rc = load_document(l, key, bytes, n, version);
	if (rc != SKV_OK)
		return rc;
	view->n += !seen->known;
	seen->known = seen->there = true;
	seen->key = skv_hash128(key, strlen(key));
	seen->fingerprint = print;
	seen->is_file = sscanf(key, "file/%8x/%8x", &seen->storage, &seen->file) == 2;
	return SKV_OK;
}

/* Forgets the documents that a complete list did not contain. */
static int forget_the_rest(struct partition *p, struct registry_view *view, struct skv_error *err)
{
	int rc = SKV_OK;

	for (size_t i = 0; rc == SKV_OK && i < view->cap; i++)
		if (view->v[i].there && view->v[i].pass != view->pass)
			rc = forget(p, &view->v[i], err);
	return rc;
}

int registry_load_more(struct partition *p, struct registry_view *view, struct skv_error *err)
{
	struct loader l = { p, view, err };
	bool all = false;
	int rc;

	ASSERT_EXCLUSIVE(p);
	view->pass++;
	rc = skv_store_changes(p->core->store, kinds, KINDS, &view->at, &all, take_document, &l,
			       err);
	return rc == SKV_OK && all ? forget_the_rest(p, view, err) : rc;
}

void registry_view_free(struct registry_view *view)
{
	skv_free(view->v);
	*view = (struct registry_view){ 0 };
}

int registry_load(struct partition *p, struct skv_error *err)
{
	struct registry_view view = { 0 };
	int rc = registry_load_more(p, &view, err);

	registry_view_free(&view);
	return rc;
}
