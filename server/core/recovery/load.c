/* load.c - turns documents of the registry into objects of a partition. */
#include <recovery/load.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/device.h>
#include <model/files.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/volume.h>
#include <journal/document.h>
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

/* Into masters[], of SKV_MAX_FS_MASTERS elements. */
static void get_master(struct skv_rd *in, char **masters, struct skv_storage_spec *s)
{
	in->failed |= s->n_fs_master == SKV_MAX_FS_MASTERS;
	if (!in->failed)
		masters[s->n_fs_master++] = doc_get_text(in, SKV_MAX_URL);
}

static void get_storage_fields(struct skv_rd *in, unsigned format, struct skv_storage_spec *s,
			       char **masters)
{
	for (uint64_t tag; (tag = doc_next_field(in, format)) != 0;) {
		switch (tag) {
		case STORAGE_HIGH_PERCENT: s->high_percent = doc_get_small(in, 100); break;
		case STORAGE_LOW_PERCENT: s->low_percent = doc_get_small(in, 100); break;
		case STORAGE_DRAINING: {
			uint32_t how = doc_get_small(in, 2);

			s->draining = how > 0;
			s->move = how == 2;
			break;
		}
		case STORAGE_CHUNK: s->chunk_size = doc_get_small(in, SKV_CHUNK_MAX); break;
		case STORAGE_ANY_MOUNT: s->any_mount = doc_get_small(in, 1); break;
		case STORAGE_FS_MASTER: get_master(in, masters, s); break;
		default: in->failed = true;
		}
	}
}

static int load_storage(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct loader *l = ctx;
	struct skv_rd in = skv_rd_make(bytes, n);
	unsigned format = doc_version(&in, DOC_FIELDS);
	struct storage_doc d = { 0 };
	struct skv_storage_spec *s = &d.spec;
	char *masters[SKV_MAX_FS_MASTERS] = { 0 };
	const uint8_t *uuid;
	struct device *dev;
	int rc = SKV_OK;

	d.id = skv_get_u32(&in);
	uuid = skv_get_bytes(&in, 16);
	if (!format || !uuid)
		return doc_bad(l->err, key);
	memcpy(d.uuid, uuid, 16);
	s->name = doc_get_text(&in, SKV_MAX_NAME);
	s->type = doc_get_text(&in, SKV_MAX_NAME);
	s->root = doc_get_text(&in, SKV_MAX_ROOT);
	s->capacity = skv_get_u64(&in);
	s->file_size = skv_get_u64(&in);
	s->unit = skv_get_u64(&in);
	s->enabled = skv_get_u8(&in) != 0;
	s->client_root = format > 1 ? doc_get_text(&in, SKV_MAX_ROOT) : skv_strdup("");
	s->client_mount = format > 1 ? doc_get_text(&in, SKV_MAX_ROOT) : skv_strdup("");
	s->extra = format > 1 ? doc_get_text(&in, SKV_MAX_EXTRA) : skv_strdup("");
	get_storage_fields(&in, format, s, masters);
	s->fs_master = (const char *const *)masters;
	if (in.failed)
		rc = doc_bad(l->err, key);
	else if (!s->name || !s->type || !s->root || !s->client_root || !s->client_mount ||
		 !s->extra)
		rc = SKV_E_NOMEM;
	for (uint32_t i = 0; i < s->n_fs_master && rc == SKV_OK; i++)
		rc = masters[i] ? SKV_OK : SKV_E_NOMEM;
	if (rc == SKV_OK)
		rc = use_device(l->p, &d, &dev);
	if (rc == SKV_OK)
		rc = partition_add_volume(l->p, dev, s, version);
	skv_free((char *)s->name);
	skv_free((char *)s->type);
	skv_free((char *)s->root);
	skv_free((char *)s->client_root);
	skv_free((char *)s->client_mount);
	skv_free((char *)s->extra);
	for (uint32_t i = 0; i < s->n_fs_master; i++)
		skv_free(masters[i]);
	return rc;
}

/* Members added in version 2. False: out of memory, unless in->failed. */
static bool get_group_limits(struct skv_rd *in, struct skv_group_spec *g)
{
	struct skv_type_quota *quotas;
	uint64_t count;

	g->loose_storages = skv_get_u8(in) != 0;
	count = skv_get_varint(in);
	in->failed |= count > SKV_MAX_QUOTAS;
	if (in->failed)
		return false;
	quotas = skv_calloc(count + 1, sizeof *quotas);
	g->quotas = quotas;
	for (; quotas && g->n_quotas < count; g->n_quotas++) {
		quotas[g->n_quotas].type = doc_get_text(in, SKV_MAX_NAME);
		quotas[g->n_quotas].capacity = skv_get_u64(in);
		quotas[g->n_quotas].reclaim = skv_get_u64(in);
		if (!quotas[g->n_quotas].type)
			return false;
	}
	g->max_blocks = skv_get_u64(in);
	g->max_instances = skv_get_u32(in);
	g->reclaim_bytes = skv_get_u64(in);
	g->reclaim_blocks = skv_get_u64(in);
	g->reclaim_step_bytes = skv_get_u64(in);
	g->reclaim_step_percent = skv_get_u32(in);
	g->reclaim_period_ms = skv_get_u32(in);
	g->max_idle_ms = skv_get_u64(in);
	g->version = skv_get_u64(in);
	g->extra = doc_get_text(in, SKV_MAX_EXTRA);
	return quotas && g->extra;
}

static void get_group_fields(struct skv_rd *in, unsigned format, struct skv_group_spec *g)
{
	for (uint64_t tag; (tag = doc_next_field(in, format)) != 0;) {
		switch (tag) {
		case GROUP_HIGH_PERCENT: g->high_percent = doc_get_small(in, 100); break;
		case GROUP_LOW_PERCENT: g->low_percent = doc_get_small(in, 100); break;
		case GROUP_PIN_PERCENT: g->pin_percent = doc_get_small(in, 100); break;
		case GROUP_POLICY:
			skv_free((char *)g->policy);
			g->policy = doc_get_text(in, SKV_MAX_NAME);
			break;
		case GROUP_TIER_OF:
			skv_free((char *)g->tier_of);
			g->tier_of = doc_get_text(in, SKV_MAX_NAME);
			break;
		case GROUP_WRITE_THROUGH: g->write_through = doc_get_small(in, 1); break;
		case GROUP_PROMOTE_AFTER:
			g->promote_after = doc_get_small(in, SKV_MAX_PROMOTE);
			break;
		case GROUP_REPLICATE: g->replicate = doc_get_small(in, 1); break;
		case GROUP_TTL_MS: g->ttl_ms = skv_get_varint(in); break;
		case GROUP_SHARE: g->share = doc_get_small(in, SKV_SHARE_FIXED); break;
		default: in->failed = true;
		}
	}
}

static bool get_group(struct skv_rd *in, unsigned format, struct skv_group_spec *g)
{
	const char **names;
	uint64_t count;

	g->name = doc_get_text(in, SKV_MAX_NAME);
	g->capacity = skv_get_u64(in);
	count = skv_get_varint(in);
	in->failed |= count > MAX_GROUP_STORAGES;
	if (in->failed)
		return false;
	names = skv_calloc(count + 1, sizeof *names);
	g->storages = names;
	for (; names && g->n_storages < count; g->n_storages++) {
		names[g->n_storages] = doc_get_text(in, SKV_MAX_NAME);
		if (!names[g->n_storages])
			return false;
	}
	if (format > 1) {
		if (!g->name || !names || !get_group_limits(in, g))
			return false;
		g->policy = skv_strdup("");
		g->tier_of = skv_strdup("");
		get_group_fields(in, format, g);
		return g->policy != NULL && g->tier_of != NULL;
	}
	g->policy = skv_strdup("");
	g->tier_of = skv_strdup("");
	g->extra = skv_strdup("");
	return g->name && names && g->policy && g->tier_of && g->extra;
}

static int load_group(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct loader *l = ctx;
	struct skv_rd in = skv_rd_make(bytes, n);
	unsigned format = doc_version(&in, DOC_FIELDS);
	struct skv_group_spec g = { 0 };
	bool read = format && get_group(&in, format, &g);
	int rc;

	if (!format || in.failed)
		rc = doc_bad(l->err, key);
	else
		rc = read ? partition_add_group(l->p, &g, version) : SKV_E_NOMEM;
	group_spec_free(&g);
	return rc;
}

static void get_instance_fields(struct skv_rd *in, unsigned format, struct skv_instance_spec *i)
{
	for (uint64_t tag; (tag = doc_next_field(in, format)) != 0;) {
		switch (tag) {
		case INSTANCE_WEIGHT: i->weight = doc_get_small(in, SKV_MAX_WEIGHT); break;
		case INSTANCE_CAPACITY: i->capacity = skv_get_varint(in); break;
		default: in->failed = true;
		}
	}
}

static int instance_document(struct loader *l, const char *key, const void *bytes, size_t n,
			     uint64_t version, bool dropped)
{
	struct skv_rd in = skv_rd_make(bytes, n);
	struct skv_spec specs[SKV_MAX_SPECS] = { { 0 } };
	struct skv_instance_spec i = { .specs = specs };
	unsigned format = doc_version(&in, DOC_FIELDS);
	uint64_t count;
	uint32_t id;
	int rc;

	if (!format)
		return doc_bad(l->err, key);
	id = skv_get_u32(&in);
	i.tenant = doc_get_text(&in, SKV_MAX_NAME);
	i.id = doc_get_text(&in, SKV_MAX_NAME);
	i.group = doc_get_text(&in, SKV_MAX_NAME);
	i.block_tokens = skv_get_u32(&in);
	i.extra = doc_get_text(&in, SKV_MAX_EXTRA);
	count = skv_get_varint(&in);
	rc = in.failed || count == 0 || count > SKV_MAX_SPECS ? doc_bad(l->err, key) : SKV_OK;
	for (; rc == SKV_OK && i.n_specs < count; i.n_specs++) {
		specs[i.n_specs].name = doc_get_text(&in, SKV_MAX_NAME);
		specs[i.n_specs].size = skv_get_u64(&in);
		if (in.failed || specs[i.n_specs].size == 0)
			rc = doc_bad(l->err, key);
		else if (!specs[i.n_specs].name)
			rc = SKV_E_NOMEM;
	}
	i.numbered = rc == SKV_OK && format > 1 && skv_get_u8(&in) != 0;
	i.named = rc == SKV_OK && format >= DOC_NAMED && skv_get_u8(&in) != 0;
	if (rc == SKV_OK)
		get_instance_fields(&in, format, &i);
	if (rc == SKV_OK && in.failed)
		rc = doc_bad(l->err, key);
	if (rc == SKV_OK && (!i.tenant || !i.id || !i.group || !i.extra))
		rc = SKV_E_NOMEM;
	if (rc == SKV_OK && !dropped) {
		rc = partition_add_instance(l->p, &i, id);
		if (rc == SKV_OK)
			l->p->inst[l->p->n_inst - 1]->registered = true;
	}
	if (rc == SKV_OK && dropped && instance_by_id(l->p, id))
		version = instance_by_id(l->p, id)->version; /* still registered */
	else if (rc == SKV_OK && dropped)
		rc = partition_add_instance_to(l->p, &i, id, &l->p->detached);
	if (rc == SKV_OK)
		instance_by_id(l->p, id)->version = version;
	if (rc == SKV_OK && dropped)
		partition_set_dropped(l->p, id);
	if (rc == SKV_E_CORRUPT)
		doc_bad(l->err, key);
	skv_free((char *)i.tenant);
	skv_free((char *)i.id);
	skv_free((char *)i.group);
	skv_free((char *)i.extra);
	for (uint32_t s = 0; s < SKV_MAX_SPECS; s++)
		skv_free((char *)specs[s].name);
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
	    !registry_get_file(bytes, n, &f) ||
	    !file_is_of(f.number, l->p->core->o.partition))
		return doc_bad(l->err, key);
	s = volume_by_id(l->p, storage);
	if (!s)
		return SKV_OK; /* its storage was deleted */
	rc = file_add_claim(s);
	if (rc == SKV_OK && (f.asked || f.lost || f.state == FILE_GONE))
		rc = file_add(s, &f);
	else if (rc == SKV_OK)
		s->claim = f;
	return rc == SKV_E_INVALID ? doc_bad(l->err, key) : rc;
}

/* ---- all of it, and what is new -------------------------------------------------------------- */

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

/* Those that a list of all has not had are gone. */
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
