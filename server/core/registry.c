/*
 * registry.c - documents of the metadata store's registry, and the objects of a part made from them.
 *
 * Keys: "secret", "next-id", "storage/<name>", "group/<name>", "instance/<tenant>/<id>",
 * "file/<storage id>/<file>" (both 8 hex digits; made before the slab file itself: the claim to it) and
 * "dropped/<instance id>" (8 hex digits; a deleted instance's document, while the journal may name it).
 * A document begins with u8 version. Strings are varint length + bytes. docs/ON_DISK.md has the tables.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOC_VERSION 1u

static void put_text(struct kvb_buf *out, const char *s) { kvb_put_string(out, s, strlen(s)); }

/* A NUL-terminated copy of a string of the document, NULL on failure. */
static char *get_text(struct kvb_rd *in, size_t max)
{
	size_t n = 0;
	const char *s = kvb_get_string(in, &n, max);
	char *copy = s ? kvb_malloc(n + 1) : NULL;

	if (copy) {
		memcpy(copy, s, n);
		copy[n] = '\0';
	}
	return copy;
}

static bool version_is_known(struct kvb_rd *in) { return kvb_get_u8(in) == DOC_VERSION && !in->failed; }

static int bad_document(struct kvb_error *err, const char *key)
{
	return kvb_fail(err, KVB_E_CORRUPT, NULL, "registry document '%s' is malformed or from a newer version", key);
}

void registry_put_storage(struct kvb_buf *out, const struct storage_doc *d)
{
	kvb_put_u8(out, DOC_VERSION);
	kvb_put_u32(out, d->id);
	kvb_put_bytes(out, d->uuid, 16);
	put_text(out, d->spec.name);
	put_text(out, d->spec.type);
	put_text(out, d->spec.root);
	kvb_put_u64(out, d->spec.capacity);
	kvb_put_u64(out, d->spec.file_size);
	kvb_put_u64(out, d->spec.unit);
	kvb_put_u8(out, d->spec.enabled);
}

void registry_put_group(struct kvb_buf *out, const struct kvb_group_spec *g)
{
	kvb_put_u8(out, DOC_VERSION);
	put_text(out, g->name);
	kvb_put_u64(out, g->capacity);
	kvb_put_varint(out, g->n_storages);
	for (uint32_t i = 0; i < g->n_storages; i++)
		put_text(out, g->storages[i]);
}

void registry_put_instance(struct kvb_buf *out, const struct kvb_instance_spec *i, uint32_t id)
{
	kvb_put_u8(out, DOC_VERSION);
	kvb_put_u32(out, id);
	put_text(out, i->tenant);
	put_text(out, i->id);
	put_text(out, i->group);
	kvb_put_u32(out, i->block_tokens);
	put_text(out, i->extra);
	kvb_put_varint(out, i->n_specs);
	for (uint32_t s = 0; s < i->n_specs; s++) {
		put_text(out, i->specs[s].name);
		kvb_put_u64(out, i->specs[s].size);
	}
}

void registry_file_key(char out[64], uint32_t storage_id, uint32_t file)
{
	snprintf(out, 64, "file/%08x/%08x", storage_id, file);
}

int registry_next_id(struct kvb_core *c, uint32_t *id, struct kvb_error *err)
{
	for (;;) {
		struct kvb_buf b = { 0 };
		uint64_t version = KVB_VERSION_NONE;
		uint32_t next = 1;
		uint8_t bytes[4];
		int rc = kvb_store_get(c->store, "next-id", &b, &version, err);

		if (rc == KVB_OK) {
			struct kvb_rd in = kvb_rd_make(b.data, b.len);

			next = kvb_get_u32(&in);
		} else if (rc == KVB_E_NOT_FOUND) {
			version = KVB_VERSION_NONE;
		}
		kvb_buf_destroy(&b);
		if (rc != KVB_OK && rc != KVB_E_NOT_FOUND)
			return rc;
		for (int i = 0; i < 4; i++)
			bytes[i] = (uint8_t)((next + 1) >> (8 * i));
		rc = kvb_store_put(c->store, "next-id", version, bytes, 4, NULL, err);
		if (rc == KVB_E_CONFLICT)
			continue;
		kvb_error_clear(rc == KVB_OK ? err : NULL);
		*id = next;
		return rc;
	}
}

int registry_secret(struct kvb_core *c, struct kvb_error *err)
{
	struct kvb_secret fresh;
	struct kvb_buf b = { 0 };
	int rc = kvb_store_get(c->store, "secret", &b, NULL, err);

	if (rc == KVB_E_NOT_FOUND) {
		kvb_random(fresh.bytes, sizeof fresh.bytes);
		rc = kvb_store_put(c->store, "secret", KVB_VERSION_NONE, fresh.bytes, sizeof fresh.bytes, NULL, err);
		if (rc == KVB_OK || rc == KVB_E_CONFLICT) {
			kvb_error_clear(err);
			kvb_buf_clear(&b);
			rc = kvb_store_get(c->store, "secret", &b, NULL, err);
		}
	}
	if (rc == KVB_OK && b.len != sizeof c->secret.bytes)
		rc = bad_document(err, "secret");
	if (rc == KVB_OK)
		memcpy(c->secret.bytes, b.data, b.len);
	kvb_buf_destroy(&b);
	return rc;
}

/* ---- objects of a part ---------------------------------------------------------------------------- */

int part_add_space(struct part *p, struct device *d, const struct kvb_storage_spec *s, uint64_t version)
{
	struct kvb_pool_options o = { .unit = d->unit, .header = d->ops->header, .trailer = d->ops->trailer };
	struct space *sp;
	uint32_t at = 0;

	while (at < p->n_space && p->space[at].pool)
		at++;
	if (at == MAX_STORAGES)
		return KVB_E_TOO_MANY;
	sp = &p->space[at];
	*sp = (struct space){ .dev = d, .version = version, .capacity = s->capacity, .enabled = s->enabled };
	sp->pool = kvb_pool_create(&o);
	if (!sp->pool) {
		*sp = (struct space){ 0 };
		return KVB_E_NOMEM;
	}
	if (at == p->n_space)
		p->n_space++;
	return KVB_OK;
}

static struct space *space_by_id(struct part *p, uint32_t storage_id)
{
	for (uint32_t i = 0; i < p->n_space; i++)
		if (p->space[i].pool && p->space[i].dev->id == storage_id)
			return &p->space[i];
	return NULL;
}

int part_add_file(struct space *s, uint32_t file, uint64_t length)
{
	int rc;

	if (file < s->files)
		return KVB_OK; /* made while the partition was loaded again: it was in the registry */
	rc = kvb_pool_add_file(s->pool, file, length);
	if (rc != KVB_OK)
		return rc;
	s->file_bytes += length;
	s->files = file + 1;
	return KVB_OK;
}

int part_add_claimed(struct space *s)
{
	uint64_t length = s->claimed_length;

	s->claimed_length = 0;
	return length ? part_add_file(s, s->claimed, length) : KVB_OK;
}

void group_spec_free(struct kvb_group_spec *g)
{
	kvb_free((char *)g->name);
	for (uint32_t i = 0; g->storages && i < g->n_storages; i++)
		kvb_free((char *)g->storages[i]);
	kvb_free((void *)g->storages);
	memset(g, 0, sizeof *g);
}

int group_spec_copy(struct kvb_group_spec *out, const struct kvb_group_spec *g)
{
	const char **names = kvb_calloc(g->n_storages, sizeof *names);
	bool ok = names != NULL;

	*out = (struct kvb_group_spec){ .name = kvb_strdup(g->name), .capacity = g->capacity, .storages = names,
					.n_storages = g->n_storages };
	for (uint32_t i = 0; ok && i < g->n_storages; i++) {
		names[i] = kvb_strdup(g->storages[i]);
		ok = names[i] != NULL;
	}
	if (ok && out->name)
		return KVB_OK;
	group_spec_free(out);
	return KVB_E_NOMEM;
}

int part_add_group(struct part *p, const struct kvb_group_spec *g, uint64_t version)
{
	struct group *copy = kvb_calloc(1, sizeof *copy);
	void *v = p->group;

	if (!copy)
		return KVB_E_NOMEM;
	if (kvb_grow(&v, &p->cap_group, p->n_group + 1, sizeof *p->group) != KVB_OK ||
	    ((p->group = v), group_spec_copy(&copy->spec, g)) != KVB_OK) {
		kvb_free(copy);
		return KVB_E_NOMEM;
	}
	copy->version = version;
	p->group[p->n_group++] = copy;
	return KVB_OK;
}

void part_remove_group(struct part *p, const char *name)
{
	for (size_t i = 0; i < p->n_group; i++) {
		struct group *g = p->group[i];

		if (strcmp(g->spec.name, name) != 0)
			continue;
		start_fail_line(p, g, KVB_E_NOT_FOUND, "its group was deleted");
		p->group[i] = p->group[--p->n_group];
		group_spec_free(&g->spec);
		kvb_free(g);
		return;
	}
}

static void instance_free(struct instance *inst)
{
	struct kvb_instance_spec *s = &inst->spec;

	for (uint32_t i = 0; s->specs && i < s->n_specs; i++)
		kvb_free((char *)s->specs[i].name);
	kvb_free((void *)s->specs);
	kvb_free((char *)s->tenant);
	kvb_free((char *)s->id);
	kvb_free((char *)s->group);
	kvb_free((char *)s->extra);
	kvb_free(inst->class_of);
	index_destroy(inst);
	evict_destroy_queues(inst);
	kvb_free(inst);
}

static int instance_copy(struct instance *inst, const struct kvb_instance_spec *i)
{
	struct kvb_spec *specs = kvb_calloc(i->n_specs, sizeof *specs);
	size_t cells = (size_t)MAX_STORAGES * i->n_specs;
	bool ok = specs != NULL;

	inst->spec = (struct kvb_instance_spec){
		.tenant = kvb_strdup(i->tenant), .id = kvb_strdup(i->id), .group = kvb_strdup(i->group),
		.block_tokens = i->block_tokens, .specs = specs, .n_specs = i->n_specs, .extra = kvb_strdup(i->extra),
	};
	inst->class_of = kvb_malloc(cells * sizeof *inst->class_of);
	for (uint32_t s = 0; ok && s < i->n_specs; s++) {
		specs[s] = (struct kvb_spec){ kvb_strdup(i->specs[s].name), i->specs[s].size };
		ok = specs[s].name != NULL;
		inst->block_bytes += i->specs[s].size;
	}
	if (!ok || !inst->class_of || !inst->spec.tenant || !inst->spec.id || !inst->spec.group || !inst->spec.extra)
		return KVB_E_NOMEM;
	memset(inst->class_of, 0xff, cells * sizeof *inst->class_of);
	return KVB_OK;
}

static int add_instance(struct part *p, const struct kvb_instance_spec *i, uint32_t id, struct group *g)
{
	struct instance *inst = kvb_calloc(1, sizeof *inst);
	void *v = p->inst;

	if (!inst || instance_copy(inst, i) != KVB_OK ||
	    kvb_grow(&v, &p->cap_inst, p->n_inst + 1, sizeof *p->inst) != KVB_OK) {
		if (inst)
			instance_free(inst);
		return KVB_E_NOMEM;
	}
	p->inst = v;
	inst->id = id;
	inst->group = g;
	g->n_instances++;
	p->inst[p->n_inst++] = inst;
	return KVB_OK;
}

int part_add_instance(struct part *p, const struct kvb_instance_spec *i, uint32_t id)
{
	struct group *g = group_find(p, i->group);

	return g ? add_instance(p, i, id, g) : KVB_E_CORRUPT;
}

struct instance *instance_by_id(const struct part *p, uint32_t id)
{
	for (size_t i = 0; i < p->n_inst; i++)
		if (p->inst[i]->id == id)
			return p->inst[i];
	return NULL;
}

void part_set_dropped(struct part *p, uint32_t id)
{
	struct instance *inst = instance_by_id(p, id);

	if (!inst || inst->dropped)
		return;
	inst->deleting = inst->dropped = true;
	inst->group->n_instances--;
	inst->group = &p->limbo;
	p->limbo.n_instances++;
}

void part_remove_instance(struct part *p, struct instance *inst)
{
	for (size_t i = 0; i < p->n_inst; i++) {
		if (p->inst[i] != inst)
			continue;
		p->inst[i] = p->inst[--p->n_inst];
		inst->group->n_instances--;
		instance_free(inst);
		return;
	}
}

struct group *group_find(const struct part *p, const char *name)
{
	for (size_t i = 0; i < p->n_group; i++)
		if (strcmp(p->group[i]->spec.name, name) == 0)
			return p->group[i];
	return NULL;
}

int space_find(const struct part *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_space; i++)
		if (p->space[i].pool && strcmp(p->space[i].dev->name, name) == 0)
			return (int)i;
	return -1;
}

/* ---- loading ----------------------------------------------------------------------------------------- */

struct loader {
	struct part *p;
	struct kvb_error *err;
};

/* The device outlives reloads: made on the first one, found again on later ones. */
static int use_device(struct part *p, const struct storage_doc *d, struct device **out)
{
	struct kvb_core *c = p->core;
	int rc;

	core_lock(c);
	*out = device_find(c, d->id);
	core_unlock(c);
	if (*out)
		return KVB_OK;
	rc = device_make(c, &d->spec, d->id, d->uuid, out);
	if (rc != KVB_OK)
		return rc;
	core_lock(c);
	rc = device_add(c, *out);
	core_unlock(c);
	if (rc == KVB_OK)
		rc = device_start(*out);
	return rc;
}

static int load_storage(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct loader *l = ctx;
	struct kvb_rd in = kvb_rd_make(bytes, n);
	struct storage_doc d = { 0 };
	const uint8_t *uuid;
	struct device *dev;
	char *name, *type, *root;
	int rc = KVB_OK;

	if (!version_is_known(&in))
		return bad_document(l->err, key);
	d.id = kvb_get_u32(&in);
	uuid = kvb_get_bytes(&in, 16);
	if (uuid)
		memcpy(d.uuid, uuid, 16);
	name = get_text(&in, KVB_MAX_NAME);
	type = get_text(&in, KVB_MAX_NAME);
	root = get_text(&in, KVB_MAX_ROOT);
	d.spec = (struct kvb_storage_spec){ .name = name, .type = type, .root = root };
	d.spec.capacity = kvb_get_u64(&in);
	d.spec.file_size = kvb_get_u64(&in);
	d.spec.unit = kvb_get_u64(&in);
	d.spec.enabled = kvb_get_u8(&in) != 0;
	if (in.failed || !name || !type || !root)
		rc = in.failed ? bad_document(l->err, key) : KVB_E_NOMEM;
	if (rc == KVB_OK)
		rc = use_device(l->p, &d, &dev);
	if (rc == KVB_OK)
		rc = part_add_space(l->p, dev, &d.spec, version);
	kvb_free(name);
	kvb_free(type);
	kvb_free(root);
	return rc;
}

static int load_group(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct loader *l = ctx;
	struct kvb_rd in = kvb_rd_make(bytes, n);
	struct kvb_group_spec g = { 0 };
	const char **names;
	uint64_t count;
	int rc;

	if (!version_is_known(&in))
		return bad_document(l->err, key);
	g.name = get_text(&in, KVB_MAX_NAME);
	g.capacity = kvb_get_u64(&in);
	count = kvb_get_varint(&in);
	if (in.failed || count > MAX_STORAGES) {
		kvb_free((char *)g.name);
		return bad_document(l->err, key);
	}
	names = kvb_calloc(count, sizeof *names);
	g.storages = names;
	for (g.n_storages = 0; names && g.n_storages < count; g.n_storages++)
		names[g.n_storages] = get_text(&in, KVB_MAX_NAME);
	rc = in.failed ? bad_document(l->err, key) : KVB_OK;
	for (uint32_t i = 0; rc == KVB_OK && i < count; i++)
		if (!names || !names[i])
			rc = KVB_E_NOMEM;
	if (rc == KVB_OK)
		rc = g.name && names ? part_add_group(l->p, &g, version) : KVB_E_NOMEM;
	group_spec_free(&g);
	return rc;
}

static int instance_document(struct loader *l, const char *key, const void *bytes, size_t n, bool dropped)
{
	struct kvb_rd in = kvb_rd_make(bytes, n);
	struct kvb_spec specs[KVB_MAX_SPECS] = { { 0 } };
	struct kvb_instance_spec i = { .specs = specs };
	uint64_t count;
	uint32_t id;
	int rc;

	if (!version_is_known(&in))
		return bad_document(l->err, key);
	id = kvb_get_u32(&in);
	i.tenant = get_text(&in, KVB_MAX_NAME);
	i.id = get_text(&in, KVB_MAX_NAME);
	i.group = get_text(&in, KVB_MAX_NAME);
	i.block_tokens = kvb_get_u32(&in);
	i.extra = get_text(&in, KVB_MAX_EXTRA);
	count = kvb_get_varint(&in);
	rc = in.failed || count == 0 || count > KVB_MAX_SPECS ? bad_document(l->err, key) : KVB_OK;
	for (; rc == KVB_OK && i.n_specs < count; i.n_specs++) {
		specs[i.n_specs].name = get_text(&in, KVB_MAX_NAME);
		specs[i.n_specs].size = kvb_get_u64(&in);
		if (in.failed || specs[i.n_specs].size == 0)
			rc = bad_document(l->err, key);
		else if (!specs[i.n_specs].name)
			rc = KVB_E_NOMEM;
	}
	if (rc == KVB_OK && (!i.tenant || !i.id || !i.group || !i.extra))
		rc = KVB_E_NOMEM;
	if (rc == KVB_OK && !dropped) {
		rc = part_add_instance(l->p, &i, id);
		if (rc == KVB_OK)
			l->p->inst[l->p->n_inst - 1]->registered = true;
	}
	if (rc == KVB_OK && dropped && !instance_by_id(l->p, id)) /* else its registration has not gone yet */
		rc = add_instance(l->p, &i, id, &l->p->limbo);
	if (rc == KVB_OK && dropped)
		part_set_dropped(l->p, id);
	if (rc == KVB_E_CORRUPT)
		bad_document(l->err, key);
	kvb_free((char *)i.tenant);
	kvb_free((char *)i.id);
	kvb_free((char *)i.group);
	kvb_free((char *)i.extra);
	for (uint32_t s = 0; s < KVB_MAX_SPECS; s++)
		kvb_free((char *)specs[s].name);
	return rc;
}

static int load_instance(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	(void)version;
	return instance_document(ctx, key, bytes, n, false);
}

static int load_dropped(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	(void)version;
	return instance_document(ctx, key, bytes, n, true);
}

/* Files come in order of their numbers. The last one of a storage may have been claimed by a manager that died
 * before making it: it counts once something in the journal names it, or growth has made it. */
static int load_file(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct loader *l = ctx;
	struct kvb_rd in = kvb_rd_make(bytes, n);
	unsigned storage, file;
	struct space *s;
	uint64_t length;
	int rc;

	(void)version;
	if (!version_is_known(&in) || sscanf(key, "file/%8x/%8x", &storage, &file) != 2)
		return bad_document(l->err, key);
	length = kvb_get_u64(&in);
	if (in.failed || length == 0)
		return bad_document(l->err, key);
	s = space_by_id(l->p, storage);
	if (!s)
		return KVB_OK; /* its storage was deleted */
	rc = part_add_claimed(s);
	s->claimed = file;
	s->claimed_length = length;
	return rc == KVB_E_INVALID ? bad_document(l->err, key) : rc;
}

int registry_load(struct part *p, struct kvb_error *err)
{
	struct loader l = { p, err };
	struct kvb_store *s = p->core->store;
	int rc = kvb_store_list(s, "storage/", load_storage, &l, err);

	if (rc == KVB_OK)
		rc = kvb_store_list(s, "group/", load_group, &l, err);
	if (rc == KVB_OK)
		rc = kvb_store_list(s, "instance/", load_instance, &l, err);
	if (rc == KVB_OK)
		rc = kvb_store_list(s, "dropped/", load_dropped, &l, err);
	if (rc == KVB_OK)
		rc = kvb_store_list(s, "file/", load_file, &l, err);
	return rc;
}

/* ---- deleted instances --------------------------------------------------------------------------------- */

void registry_instance_key(char out[300], const char *tenant, const char *id)
{
	snprintf(out, 300, "instance/%s/%s", tenant, id);
}

static void dropped_key(char out[64], uint32_t id) { snprintf(out, 64, "dropped/%08x", id); }

static int gone(struct kvb_error *err, int rc)
{
	if (rc != KVB_E_NOT_FOUND)
		return rc;
	kvb_error_clear(err);
	return KVB_OK;
}

int registry_move_to_dropped(struct kvb_core *c, const char *instance_key, uint32_t id, const struct kvb_buf *doc,
			     struct kvb_error *err)
{
	char key[64];
	int rc;

	dropped_key(key, id);
	rc = kvb_store_put(c->store, key, KVB_VERSION_ANY, doc->data, doc->len, NULL, err);
	return rc == KVB_OK ? gone(err, kvb_store_del(c->store, instance_key, KVB_VERSION_ANY, err)) : rc;
}

int registry_forget_dropped(struct kvb_core *c, uint32_t id, struct kvb_error *err)
{
	char key[64];

	dropped_key(key, id);
	return gone(err, kvb_store_del(c->store, key, KVB_VERSION_ANY, err));
}

/* A manager died between the record and the registry. */
int registry_finish_drops(struct part *p, struct kvb_error *err)
{
	int rc = KVB_OK;

	for (size_t i = 0; rc == KVB_OK && i < p->n_inst; i++) {
		struct instance *inst = p->inst[i];
		struct kvb_buf doc = { 0 };
		char key[300];

		if (!inst->deleting || !inst->registered)
			continue;
		registry_instance_key(key, inst->spec.tenant, inst->spec.id);
		registry_put_instance(&doc, &inst->spec, inst->id);
		rc = doc.failed ? KVB_E_NOMEM : registry_move_to_dropped(p->core, key, inst->id, &doc, err);
		kvb_buf_destroy(&doc);
		inst->registered = rc != KVB_OK;
		if (rc == KVB_OK)
			part_set_dropped(p, inst->id);
	}
	return rc;
}
