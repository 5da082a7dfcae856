/*
 * storage.c - administration of storages: create, change, delete.
 *
 * Deleting takes three steps, because the journal still refers to it: it is disabled in the
 * registry, so that no slots are taken there, even after a reload; a checkpoint without it replaces
 * the journal; then its documents and files are removed. If a step fails it is enabled again.
 */
#include <stdio.h>
#include <string.h>

#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <assert.h>
#include <lock/core.h>
#include <lock/lock.h>
#include <lock/one.h>
#include <model/block.h>
#include <model/device.h>
#include <model/files.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/volume.h>
#include <journal/registry.h>
#include <journal/registry_write.h>
#include <storage/claim.h>
#include <storage/device.h>
#include <evict/clear.h>
#include <recovery/checkpoint.h>
#include "admin.h"

#define DEFAULT_FILE (1ull << 30) /* KVCM's local SDK maps whole files */
/* Chunks of a slab file on 3FS, within these bounds: few enough files for a host to keep all
 * open, */
#define CHUNKED_FILE_CHUNKS 16384u
/* Small enough that deleting one does not overload 3FS's garbage collection. */
#define CHUNKED_FILE_MIN (4ull << 30)
#define CHUNKED_FILE_MAX (64ull << 30)
#define CHUNKED_FILES 8u /* at least, so that files are spread over all chains */
#define COUNTED_UNIT 4096u        /* slots */
#define FILES_MAX 100000u
#define COUNTED_MAX (1ull << 32)

/* `mount` may be "": then every path is below it. */
static bool lies_below(const char *path, const char *mount)
{
	size_t n = strlen(mount);

	while (n > 0 && mount[n - 1] == '/')
		n--;
	if (n == 0)
		return *mount == '\0' || *path == '/';
	return *mount == '/' && strncmp(path, mount, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Slots of a few chunks are packed into segments, which are longer if the unit is (geometry.c). */
uint64_t one_storage_unit(const struct skv_storage_spec *s)
{
	return skv_storage_find(s->type)->chunked ? SKV_UNIT_MAX
						  : skv_pool_default_unit(s->capacity);
}

static int check_sizes(struct skv_storage_spec *s, struct skv_error *err)
{
	if (s->unit == 0)
		s->unit = one_storage_unit(s);
	if (s->unit < 4096 || (s->unit & (s->unit - 1)) || s->unit > (1ull << 40))
		return skv_fail(err, SKV_E_INVALID, "unit", "a power of two from 4096 on");
	if (s->capacity < s->unit || s->capacity > (1ull << 60))
		return skv_fail(err, SKV_E_INVALID, "capacity",
				"at least one slab unit (%llu bytes)", (unsigned long long)s->unit);
	s->capacity -= s->capacity % s->unit;
	if (s->file_size == 0 && skv_storage_find(s->type)->chunked)
		return SKV_OK; /* settle_chunks: when the chunk size is known */
	if (s->file_size == 0)
		s->file_size = s->unit > DEFAULT_FILE ? s->unit : DEFAULT_FILE;
	if (s->file_size < s->unit || s->file_size % s->unit || s->file_size > (1ull << 46))
		return skv_fail(err, SKV_E_INVALID, "file_size",
				"a multiple of the slab unit (%llu bytes)",
				(unsigned long long)s->unit);
	if (s->capacity / s->file_size > FILES_MAX)
		return skv_fail(err, SKV_E_INVALID, "file_size",
				"would make more than %u files: larger files", FILES_MAX);
	return SKV_OK;
}

static uint64_t at_most(uint64_t v, uint64_t bound) { return v < bound ? v : bound; }

/* Sets what depends on the chunk size, once it is known. */
static int settle_chunks(struct skv_storage_spec *s, uint64_t chunk, struct skv_error *err)
{
	uint64_t least = 4 * chunk, n = chunk * CHUNKED_FILE_CHUNKS;

	s->chunk_size = chunk;
	if (s->file_size == 0) {
		n = at_most(n < CHUNKED_FILE_MIN ? CHUNKED_FILE_MIN : n, CHUNKED_FILE_MAX);
		n = at_most(n, s->capacity / CHUNKED_FILES);
		n = n < least ? least : n;
		s->file_size = at_most((n + s->unit - 1) / s->unit * s->unit, s->capacity);
		if (s->capacity / s->file_size > FILES_MAX)
			s->file_size = s->capacity / FILES_MAX / s->unit * s->unit + s->unit;
	}
	if (s->file_size < least)
		return skv_fail(
			err, SKV_E_INVALID, s->capacity < least ? "capacity" : "file_size",
			"a slab file needs four chunks at least (%llu bytes): its first and "
			"last are no slots",
			(unsigned long long)least);
	return SKV_OK;
}

static int check_chunks(const struct skv_storage_spec *s, const struct skv_storage_ops *ops,
			struct skv_error *err)
{
	const uint64_t c = s->chunk_size;

	if (!ops->chunked && (c || s->any_mount))
		return skv_fail(err, SKV_E_INVALID, c ? "chunk_size" : "any_mount",
				"a storage of type '%s' has no chunks", s->type);
	if (c && ((c & (c - 1)) || c > SKV_CHUNK_MAX ||
		  c < (s->any_mount ? SKV_SUPERBLOCK_SIZE : SKV_CHUNK_MIN)))
		return skv_fail(err, SKV_E_INVALID, "chunk_size",
				"a power of two from 32 KiB to 64 MiB, or 0: the directory's");
	if (s->n_fs_master && ops->edge == 0)
		return skv_fail(err, SKV_E_INVALID, "fs_master",
				"a storage of type '%s' has no slab files", s->type);
	for (uint32_t i = 0; i < s->n_fs_master; i++) {
		struct skv_error why;
		char field[SKV_FIELD_MAX];

		snprintf(field, sizeof field, "fs_master[%u]", i);
		if (skv_storage_check_master(s->fs_master[i], &why) != SKV_OK)
			return skv_fail(err, SKV_E_INVALID, field, "%s", why.message);
	}
	return SKV_OK;
}

/* For a storage whose slots are only counted; any capacity is valid, even none. */
static int check_count(struct skv_storage_spec *s, struct skv_error *err)
{
	if (s->unit)
		return skv_fail(err, SKV_E_INVALID, "unit", "a storage of type '%s' has none",
				s->type);
	if (s->file_size)
		return skv_fail(err, SKV_E_INVALID, "file_size", "a storage of type '%s' has none",
				s->type);
	if (s->draining)
		return skv_fail(err, SKV_E_INVALID, "draining",
				"not of type '%s': clear the instances on it", s->type);
	if (s->capacity > COUNTED_MAX)
		return skv_fail(err, SKV_E_INVALID, "capacity", "%llu slots at most", COUNTED_MAX);
	s->unit = COUNTED_UNIT;
	s->file_size = COUNTED_MAX;
	return SKV_OK;
}

static int check_storage(struct skv_storage_spec *s, struct skv_error *err)
{
	const struct skv_storage_ops *ops = skv_storage_find(s->type);
	bool addresses_only = ops && (ops->counted || strcmp(s->type, "null") == 0);

	if (!ops)
		return skv_fail(err, SKV_E_INVALID, "type",
				"'%s' is not a storage type: use file, hf3fs, memory, null or "
				"external",
				s->type);
	if (s->n_fs_master > SKV_MAX_FS_MASTERS)
		return skv_fail(err, SKV_E_INVALID, "fs_master", "%u at most", SKV_MAX_FS_MASTERS);
	if (!(addresses_only || (s->n_fs_master && !s->root[0])) &&
	    (s->root[0] != '/' || strlen(s->root) > SKV_MAX_ROOT))
		return skv_fail(err, SKV_E_INVALID, "root", "an absolute directory is needed");
	if (s->client_root[0] &&
	    (s->client_root[0] != '/' || strlen(s->client_root) > SKV_MAX_ROOT))
		return skv_fail(err, SKV_E_INVALID, "client_root",
				"an absolute directory, or nothing");
	if (!lies_below(*s->client_root ? s->client_root : s->root, s->client_mount))
		return skv_fail(err, SKV_E_INVALID, "client_mount", "%s does not lie below it",
				*s->client_root ? "client_root" : "root");
	if (s->move && !s->draining)
		return skv_fail(err, SKV_E_INVALID, "move", "only of a storage that is draining");
	if (strlen(s->extra) > SKV_MAX_EXTRA)
		return skv_fail(err, SKV_E_TOO_LARGE, "extra", "%u bytes at most", SKV_MAX_EXTRA);
	if (admin_check_marks(s->high_percent, s->low_percent, err) != SKV_OK)
		return SKV_E_INVALID;
	if (check_chunks(s, ops, err) != SKV_OK ||
	    (ops->forgetful && admin_check_node(s, err) != SKV_OK))
		return SKV_E_INVALID;
	return ops->counted ? check_count(s, err) : check_sizes(s, err);
}

static int fixed_field(struct skv_error *err, const char *field)
{
	return skv_fail(err, SKV_E_CONFLICT, field, "cannot change once the storage exists");
}

static int compare_storage(const struct volume *s, const struct skv_storage_spec *n,
			   struct skv_error *err)
{
	if (strcmp(s->dev->type, n->type) != 0)
		return fixed_field(err, "type");
	if (strcmp(s->dev->root, n->root) != 0)
		return fixed_field(err, "root");
	if (s->dev->unit != n->unit)
		return fixed_field(err, "unit");
	if (s->dev->file_size != n->file_size)
		return fixed_field(err, "file_size");
	if (s->dev->chunk != n->chunk_size)
		return fixed_field(err, "chunk_size");
	if (s->dev->any_mount != n->any_mount)
		return fixed_field(err, "any_mount");
	if (n->capacity < s->capacity && s->dev->ops->counted)
		return skv_fail(err, SKV_E_CONFLICT, "capacity",
				"cannot shrink below %llu: the clients' files have that many pages",
				(unsigned long long)s->capacity);
	return SKV_OK;
}

static bool same_description(const struct device *d, const struct skv_storage_spec *s)
{
	return strcmp(d->client_root, s->client_root) == 0 &&
	       strcmp(d->client_mount, s->client_mount) == 0 && strcmp(d->extra, s->extra) == 0 &&
	       device_same_masters(d, s);
}

static int put_storage_doc(struct skv_core *c, const struct storage_doc *d, uint64_t expect,
			   uint64_t *version, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	char key[160];
	int rc;

	registry_put_storage(&b, d);
	snprintf(key, sizeof key, "storage/%s", d->spec.name);
	rc = admin_written(c, registry_put(c, c->turn_fence, key, expect, &b, version, err));
	skv_buf_destroy(&b);
	return rc;
}

static void adopt_storage(struct skv_core *c, const struct skv_storage_spec *s, uint64_t version)
{
	struct partition *p = admin_follow(c);
	int at;

	if (!p)
		return;
	at = volume_find(p, s->name);
	if (at >= 0) {
		p->volume[at].version = version;
		p->volume[at].capacity = s->capacity;
		p->volume[at].enabled = s->enabled;
		p->volume[at].draining = s->draining;
		if (p->volume[at].moving != s->move)
			for (size_t i = 0; i < p->volume[at].n_file; i++)
				file_scan_again(&p->volume[at].file[i]);
		p->volume[at].moving = s->move;
		p->volume[at].fit_due = true;
		files_settle(&p->volume[at]);
		p->volume[at].high_percent = s->high_percent;
		p->volume[at].low_percent = s->low_percent;
		if (partition_count_slots(&p->volume[at]) != SKV_OK)
			admin_out_of_step(c, SKV_OK);
		/* `s` may point to the device's own strings */
		if (!same_description(p->volume[at].dev, s) &&
		    device_describe(p->volume[at].dev, s) != SKV_OK)
			admin_out_of_step(c, SKV_OK);
	}
	core_unlock(c);
}

static int update_storage(struct skv_core *c, const struct skv_storage_spec *s,
			  struct skv_error *err)
{
	struct storage_doc d = { .spec = *s };
	uint64_t version = 0;
	bool same = false;
	int at, rc = SKV_OK;
	struct partition *p = admin_lock(c, &rc, err);

	if (!p)
		return rc;
	at = volume_find(p, s->name);
	if (at < 0) {
		core_unlock(c);
		return SKV_E_NOT_FOUND;
	}
	if (!d.spec.chunk_size)
		d.spec.chunk_size = p->volume[at].dev->chunk;
	if (!d.spec.file_size) /* with chunks: as settled when it was created */
		d.spec.file_size = p->volume[at].dev->file_size;
	s = &d.spec;
	rc = compare_storage(&p->volume[at], s, err);
	version = p->volume[at].version;
	d.id = p->volume[at].dev->id;
	memcpy(d.uuid, p->volume[at].dev->uuid, 16);
	same = p->volume[at].capacity == s->capacity && p->volume[at].enabled == s->enabled &&
	       p->volume[at].draining == s->draining && p->volume[at].moving == s->move &&
	       p->volume[at].high_percent == s->high_percent &&
	       p->volume[at].low_percent == s->low_percent &&
	       same_description(p->volume[at].dev, s);
	core_unlock(c);
	if (rc != SKV_OK || same)
		return rc;
	rc = put_storage_doc(c, &d, version, &version, err);
	if (rc == SKV_OK)
		adopt_storage(c, s, version);
	return rc;
}

/* Checks the limit of storages. */
static int check_number(const struct partition *p, const struct skv_storage_spec *s,
			struct skv_error *err)
{
	const bool counted = skv_storage_find(s->type)->counted;
	uint32_t with_files = 0;

	ASSERT_SHARED(p);
	for (uint32_t i = 0; !counted && i < p->n_volume; i++)
		with_files += p->volume[i].pool && !p->volume[i].dev->ops->counted;
	if (with_files >= MAX_FILE_STORAGES)
		return skv_fail(err, SKV_E_TOO_MANY, NULL, "%u storages with slab files at most",
				MAX_FILE_STORAGES);
	if (p->n_volume - p->n_gap == MAX_VOLUMES)
		return skv_fail(err, SKV_E_TOO_MANY, NULL,
				"%u storages at most, page spaces included", MAX_VOLUMES);
	return SKV_OK;
}

static int same_root(struct skv_core *c, const struct skv_storage_spec *s, struct skv_error *err)
{
	int rc = SKV_OK;
	struct partition *p = admin_lock(c, &rc, err);

	if (!p)
		return rc;
	rc = check_number(p, s, err);
	for (uint32_t i = 0; rc == SKV_OK && s->root[0] && i < p->n_volume; i++)
		if (p->volume[i].pool && strcmp(p->volume[i].dev->root, s->root) == 0)
			rc = skv_fail(err, SKV_E_CONFLICT, "root",
				      "storage '%s' has this directory already",
				      p->volume[i].dev->name);
	if (rc == SKV_OK && skv_storage_find(s->type)->forgetful)
		rc = admin_check_node_free(p, s, err);
	core_unlock(c);
	return rc;
}

/* The reason may contain paths: it is logged, and the API hides it from callers. */
static int root_refused(const struct skv_storage_spec *s, int rc, const struct skv_error *why,
			struct skv_error *err)
{
	skv_log(SKV_LOG_ERROR, "storage", "'%s' cannot be made: %s", s->name, why->message);
	return skv_fail(err, rc,
			why->field[0]    ? why->field
			: s->n_fs_master ? "fs_master"
					 : "root",
			"%s", why->message);
}

/* Always the same for a name in this store: the marker in the root is written before the registry
 * document, and after a crash in between the retry must recognise the directory. */
static void derive_uuid(const struct skv_core *c, const char *name, uint8_t uuid[16])
{
	char text[SKV_MAX_NAME + 16];
	int n = snprintf(text, sizeof text, "storage/%s", name);
	struct skv_key k = skv_key_from_string(one_secret(c), text, (size_t)n);

	for (int i = 0; i < 8; i++) {
		uuid[i] = (uint8_t)(k.hi >> (56 - 8 * i));
		uuid[8 + i] = (uint8_t)(k.lo >> (56 - 8 * i));
	}
}

/* Adds the new storage to the partition; *dev is NULL once the core owns it. After a reload the
 * partition makes a device from the registry itself. */
static int add_storage(struct skv_core *c, const struct skv_storage_spec *s, uint64_t version,
		       struct device **dev)
{
	struct partition *p = admin_follow(c);
	struct device *d = *dev;
	int rc = SKV_OK;

	if (!p)
		return SKV_OK;
	if (volume_find(p, s->name) < 0) {
		rc = partition_add_volume(p, d, s, version);
		if (rc == SKV_OK)
			rc = device_add(c, d);
		if (rc == SKV_OK) {
			device_opened(d);
			*dev = NULL;
		}
	}
	core_unlock(c);
	if (rc != SKV_OK)
		return admin_out_of_step(c, rc);
	return *dev ? SKV_OK : device_start(d);
}

static int create_storage(struct skv_core *c, const struct skv_storage_spec *s,
			  struct skv_error *err)
{
	struct storage_doc d = { .spec = *s };
	struct device *dev = NULL;
	struct skv_error why = { 0 };
	uint64_t version = 0;
	int rc = same_root(c, s, err);

	if (rc == SKV_OK)
		rc = registry_next_id(c, c->turn_fence, &d.id, err);
	derive_uuid(c, s->name, d.uuid);
	if (rc == SKV_OK)
		rc = device_make(c, s, d.id, d.uuid, &dev);
	if (rc != SKV_OK)
		return rc;
	dev->fresh = true;
	rc = device_open(dev, c->number == 0, &why); /* the first makes it for all */
	dev->fresh = false;
	if (rc == SKV_OK)
		rc = claim_look(dev, &why);
	if (rc != SKV_OK)
		rc = root_refused(s, rc, &why, err);
	if (rc == SKV_OK && dev->ops->chunked)
		rc = settle_chunks(&d.spec, skv_storage_chunk(dev->storage), err);
	dev->chunk = d.spec.chunk_size;
	dev->edge = skv_storage_edge(dev->ops, dev->chunk);
	dev->file_size = d.spec.file_size;
	if (rc == SKV_OK)
		rc = put_storage_doc(c, &d, SKV_VERSION_NONE, &version, err);
	if (rc == SKV_OK)
		rc = add_storage(c, s, version, &dev);
	if (dev)
		device_destroy(dev);
	return rc;
}

/* Administrators take turns, so what was found stays valid. A storage that exists keeps its unit,
 * whatever the default is for its new capacity. */
static int is_meant(struct skv_core *c, struct skv_storage_spec *s, enum skv_put how,
		    struct skv_error *err)
{
	int at, rc = SKV_OK;
	struct partition *p = admin_lock(c, &rc, err);

	if (!p)
		return rc;
	at = volume_find(p, s->name);
	if (at >= 0 && !s->unit && !p->volume[at].dev->ops->counted)
		s->unit = p->volume[at].dev->unit;
	rc = admin_check_put(how, at >= 0, "storage", "name", s->name, err);
	core_unlock(c);
	return rc;
}

int one_storage_put(struct skv_core *c, const struct skv_storage_spec *spec, enum skv_put how,
		    bool *created, struct skv_error *err)
{
	struct skv_storage_spec s = *spec;
	int rc = admin_enter(c, err);

	s.client_root = s.client_root ? s.client_root : "";
	s.client_mount = s.client_mount ? s.client_mount : "";
	s.extra = s.extra ? s.extra : "";
	s.root = s.root ? s.root : "";

	if (rc != SKV_OK)
		return rc;
	if (created)
		*created = false;
	rc = is_meant(c, &s, how, err);
	if (rc != SKV_OK)
		return admin_leave(c, rc);
	rc = check_storage(&s, err);
	if (rc == SKV_OK)
		rc = update_storage(c, &s, err);
	if (rc == SKV_E_NOT_FOUND && how != SKV_PUT_THERE) {
		skv_error_clear(err);
		rc = create_storage(c, &s, err);
		if (created)
			*created = rc == SKV_OK;
	}
	return admin_leave(c, rc);
}

static int storage_idle(const struct partition *p, int at, struct skv_error *err)
{
	const struct volume *s = &p->volume[at];
	struct skv_pool_stats st;

	ASSERT_SHARED(p);
	for (size_t g = 0; s->n_groups && g < p->n_group; g++)
		for (uint32_t i = 0; i < p->group[g]->spec.n_storages; i++)
			if (!p->group[g]->spec.loose_storages &&
			    strcmp(p->group[g]->spec.storages[i], s->dev->name) == 0)
				return skv_fail(err, SKV_E_IN_USE, "name", "group '%s' names it",
						p->group[g]->spec.name);
	skv_pool_stats(s->pool, &st);
	/* Held slots do not matter: the files are removed, so nobody is given slots that a late
	 * writer may touch. */
	if (st.used_bytes || s->growing)
		return skv_fail(
			err, SKV_E_IN_USE, "name",
			"it holds %llu bytes of blocks: set \"draining\" and wait "
			"until it is empty",
			(unsigned long long)st.used_bytes);
	if (device_hangs(s->dev))
		return skv_fail(err, SKV_E_UNAVAILABLE, "name",
				"its file system does not answer: try again when it does");
	return SKV_OK;
}

/* Copies the strings of a spec: the device's may change while the call goes on without the lock. */
static bool keep_texts(struct skv_arena *a, struct skv_storage_spec *s)
{
	const char **text[] = { &s->name,        &s->type,         &s->root,
				&s->client_root, &s->client_mount, &s->extra };
	const char **masters = skv_arena_calloc(a, s->n_fs_master + 1, sizeof *masters);
	bool ok = masters != NULL;

	for (size_t i = 0; ok && i < sizeof text / sizeof text[0]; i++)
		ok = (*text[i] = skv_arena_strndup(a, *text[i], strlen(*text[i]))) != NULL;
	for (uint32_t i = 0; ok && i < s->n_fs_master; i++)
		ok = (masters[i] = skv_arena_strndup(a, s->fs_master[i],
						     strlen(s->fs_master[i]))) != NULL;
	if (ok)
		s->fs_master = masters;
	return ok;
}

/* Checks that it is idle and copies its document, with strings in the arena. */
static int look_at(struct skv_core *c, const char *name, struct skv_arena *a, struct storage_doc *d,
		   uint64_t *version, struct skv_error *err)
{
	int at, rc = SKV_OK;
	struct partition *p = admin_lock(c, &rc, err);

	if (!p)
		return rc;
	at = volume_find(p, name);
	rc = at < 0 ? skv_fail(err, SKV_E_NOT_FOUND, "name", "no storage '%s'", name)
		    : storage_idle(p, at, err);
	if (rc == SKV_OK) {
		const struct volume *s = &p->volume[at];

		*version = s->version;
		d->id = s->dev->id;
		memcpy(d->uuid, s->dev->uuid, 16);
		d->spec = (struct skv_storage_spec){ .chunk_size = s->dev->chunk,
						     .any_mount = s->dev->any_mount,
						     .fs_master =
							     (const char *const *)s->dev->masters,
						     .n_fs_master = s->dev->n_masters,
						     .name = s->dev->name, .type = s->dev->type,
						     .root = s->dev->root,
						     .client_root = s->dev->client_root,
						     .client_mount = s->dev->client_mount,
						     .extra = s->dev->extra,
						     .capacity = s->capacity,
						     .file_size = s->dev->file_size,
						     .unit = s->dev->unit, .enabled = s->enabled,
						     .draining = s->draining,
						     .high_percent = s->high_percent,
						     .low_percent = s->low_percent };
		if (!keep_texts(a, &d->spec))
			rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	core_unlock(c);
	return rc;
}

static int set_enabled(struct skv_core *c, struct storage_doc *d, bool on, uint64_t *version,
		       struct skv_error *err)
{
	int rc;

	if (d->spec.enabled == on)
		return SKV_OK;
	d->spec.enabled = on;
	rc = put_storage_doc(c, d, *version, version, err);
	if (rc == SKV_OK)
		adopt_storage(c, &d->spec, *version);
	return rc;
}

/* Copies every file that the registry has for the volume, including gone ones and the claimed
 * one. */
static int copy_files(const struct volume *s, struct volume_file **out, size_t *n)
{
	*n = s->n_file;
	*out = skv_calloc(s->n_file + 1, sizeof **out);
	if (!*out)
		return SKV_E_NOMEM;
	if (s->n_file)
		memcpy(*out, s->file, s->n_file * sizeof **out);
	if (s->claim.length)
		(*out)[(*n)++] = s->claim;
	return SKV_OK;
}

/* Removes the volume from the partition, unless a reload has done so already; the caller then owns
 * the device and its files. */
static struct device *take_device(struct skv_core *c, uint32_t id)
{
	struct device *d;

	core_lock(c);
	d = device_find(c, id);
	if (d)
		device_remove(c, d);
	core_unlock(c);
	return d;
}

static int list_files(struct skv_core *c, const char *name, struct volume_file **out, size_t *n,
		      struct skv_error *err)
{
	int at, rc = SKV_OK;
	struct partition *p = admin_lock(c, &rc, err);

	if (!p)
		return rc;
	at = volume_find(p, name);
	rc = at < 0 ? skv_fail(err, SKV_E_NOT_FOUND, "name", "no storage '%s'", name)
		    : copy_files(&p->volume[at], out, n);
	core_unlock(c);
	return rc;
}

/* Forgets a storage. The storage is disabled and empty, so its files do not change. */
static int forget_storage(struct skv_core *c, const char *name, uint32_t id, uint64_t version,
			  struct skv_error *err)
{
	struct volume_file *files = NULL;
	struct device *d;
	size_t n = 0;
	char key[160];
	int rc = list_files(c, name, &files, &n, err);

	snprintf(key, sizeof key, "storage/%s", name);
	if (rc == SKV_OK)
		rc = admin_written(c, registry_del(c, c->turn_fence, key, version, err));
	if (rc != SKV_OK) {
		skv_free(files);
		return rc;
	}
	d = take_device(c, id);
	/* A document left behind belongs to no storage: loading skips it. */
	for (size_t i = 0; i < n; i++) {
		char file_key[64];

		registry_file_key(file_key, id, files[i].number);
		registry_del(c, c->turn_fence, file_key, files[i].version, NULL);
	}
	if (d)
		device_retire(d, c->turn_fence, files, n);
	skv_free(files);
	return SKV_OK;
}

int one_storage_delete(struct skv_core *c, const char *name, struct skv_error *err)
{
	struct storage_doc d = { 0 }, again = { 0 };
	struct skv_arena a;
	uint64_t version = 0;
	bool enabled;
	int rc = admin_enter(c, err);

	if (rc != SKV_OK)
		return rc;
	skv_arena_init(&a);
	retired_finish(c); /* the storage may contain retired instances only */
	rc = look_at(c, name, &a, &d, &version, err);
	if (rc != SKV_OK) {
		skv_arena_destroy(&a);
		return admin_leave(c, rc);
	}
	enabled = d.spec.enabled;
	rc = set_enabled(c, &d, false, &version, err);
	if (rc == SKV_OK) /* a start may have come before the storage was disabled */
		rc = look_at(c, name, &a, &again, &version, err);
	if (rc == SKV_OK)
		rc = checkpoint_run(c, false, err);
	if (rc == SKV_OK)
		rc = forget_storage(c, name, d.id, version, err);
	if (rc != SKV_OK && rc != SKV_E_UNKNOWN_OUTCOME && enabled &&
	    set_enabled(c, &d, true, &version, NULL) != SKV_OK)
		skv_log(SKV_LOG_WARN, "core",
			"storage '%s' was not deleted and stays disabled: enable it again", name);
	skv_arena_destroy(&a);
	return admin_leave(c, rc);
}
