/*
 * admin.c - storages, groups and instances: made, changed and deleted by an administrator.
 *
 * The registry document is written first, then the part follows. Calls may block for store and file
 * system I/O; they run one at a time (the admin turn) and hold no lock while they block. Views are in
 * stats.c.
 */
#include "internal.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_UNIT (64ull << 20)
#define DEFAULT_FILE (1ull << 30) /* KVCM's local SDK maps whole files */

/* ---- turn ----------------------------------------------------------------------------------------- */

static int enter(struct kvb_core *c, struct kvb_error *err)
{
	int rc;

	kvb_mutex_lock(&c->turn_lock);
	while (c->admin_busy)
		kvb_cond_wait(&c->turn_wake, &c->turn_lock);
	c->admin_busy = true;
	kvb_mutex_unlock(&c->turn_lock);
	rc = core_gate(c, err);
	if (rc == KVB_OK)
		return KVB_OK;
	kvb_mutex_lock(&c->turn_lock);
	c->admin_busy = false;
	kvb_cond_broadcast(&c->turn_wake);
	kvb_mutex_unlock(&c->turn_lock);
	return rc;
}

static int leave(struct kvb_core *c, int rc)
{
	kvb_mutex_lock(&c->turn_lock);
	c->admin_busy = false;
	kvb_cond_broadcast(&c->turn_wake);
	kvb_mutex_unlock(&c->turn_lock);
	return rc;
}

/* The registry has (or may have) changed and the part could not follow: what is in memory is not the
 * truth any more, so the partition is loaded again. Returns rc. */
static int out_of_step(struct kvb_core *c, int rc)
{
	int ready = KVB_CORE_READY;

	atomic_store(&c->reload_asked, true);
	atomic_compare_exchange_strong(&c->state, &ready, KVB_CORE_RECOVERING);
	return rc;
}

/* Result of a write to the registry: not knowing it means loading again. */
static int written(struct kvb_core *c, int rc) { return rc == KVB_E_UNKNOWN_OUTCOME ? out_of_step(c, rc) : rc; }

/* The part under the write lock, or the reason why not. */
static struct part *lock_part(struct kvb_core *c, int *rc, struct kvb_error *err)
{
	core_lock(c);
	if (!c->part) {
		core_unlock(c);
		*rc = kvb_fail(err, KVB_E_NOT_READY, NULL, "recovering");
		return NULL;
	}
	return c->part;
}

/* ---- storages ---------------------------------------------------------------------------------------- */

static int check_storage(struct kvb_storage_spec *s, struct kvb_error *err)
{
	const struct kvb_storage_ops *ops = kvb_storage_find(s->type);
	bool addresses_only = ops && strcmp(s->type, "null") == 0;

	if (!ops)
		return kvb_fail(err, KVB_E_INVALID, "type", "'%s' is not a storage type: use file or null", s->type);
	if (!addresses_only && (s->root[0] != '/' || strlen(s->root) > KVB_MAX_ROOT))
		return kvb_fail(err, KVB_E_INVALID, "root", "an absolute directory is needed");
	if (s->unit == 0)
		s->unit = DEFAULT_UNIT;
	if (s->unit < 4096 || (s->unit & (s->unit - 1)) || s->unit > (1ull << 40))
		return kvb_fail(err, KVB_E_INVALID, "unit", "a power of two from 4096 on");
	if (s->capacity < s->unit || s->capacity > (1ull << 60))
		return kvb_fail(err, KVB_E_INVALID, "capacity", "at least one slab unit (%llu bytes)",
				(unsigned long long)s->unit);
	s->capacity -= s->capacity % s->unit;
	if (s->file_size == 0)
		s->file_size = s->unit > DEFAULT_FILE ? s->unit : DEFAULT_FILE;
	if (s->file_size < s->unit || s->file_size % s->unit || s->file_size > (1ull << 46))
		return kvb_fail(err, KVB_E_INVALID, "file_size", "a multiple of the slab unit (%llu bytes)",
				(unsigned long long)s->unit);
	if (s->capacity / s->file_size > 100000)
		return kvb_fail(err, KVB_E_INVALID, "file_size", "would make more than 100000 files: larger files");
	return KVB_OK;
}

static int fixed_field(struct kvb_error *err, const char *field)
{
	return kvb_fail(err, KVB_E_CONFLICT, field, "cannot change once the storage exists");
}

static int compare_storage(const struct space *s, const struct kvb_storage_spec *n, struct kvb_error *err)
{
	if (strcmp(s->dev->type, n->type) != 0)
		return fixed_field(err, "type");
	if (strcmp(s->dev->root, n->root) != 0)
		return fixed_field(err, "root");
	if (s->dev->unit != n->unit)
		return fixed_field(err, "unit");
	if (s->dev->file_size != n->file_size)
		return fixed_field(err, "file_size");
	if (n->capacity < s->capacity)
		return kvb_fail(err, KVB_E_CONFLICT, "capacity", "cannot shrink below %llu",
				(unsigned long long)s->capacity);
	return KVB_OK;
}

static int put_storage_doc(struct kvb_core *c, const struct storage_doc *d, uint64_t expect, uint64_t *version,
			   struct kvb_error *err)
{
	struct kvb_buf b = { 0 };
	char key[160];
	int rc;

	registry_put_storage(&b, d);
	snprintf(key, sizeof key, "storage/%s", d->spec.name);
	rc = b.failed ? KVB_E_NOMEM : written(c, kvb_store_put(c->store, key, expect, b.data, b.len, version, err));
	kvb_buf_destroy(&b);
	return rc;
}

static int update_storage(struct kvb_core *c, const struct kvb_storage_spec *s, struct kvb_error *err)
{
	struct storage_doc d = { .spec = *s };
	uint64_t version = 0;
	bool same = false;
	int at, rc = KVB_OK;
	struct part *p = lock_part(c, &rc, err);

	if (!p)
		return rc;
	at = space_find(p, s->name);
	if (at < 0) {
		core_unlock(c);
		return KVB_E_NOT_FOUND;
	}
	rc = compare_storage(&p->space[at], s, err);
	version = p->space[at].version;
	d.id = p->space[at].dev->id;
	memcpy(d.uuid, p->space[at].dev->uuid, 16);
	same = p->space[at].capacity == s->capacity && p->space[at].enabled == s->enabled;
	core_unlock(c);
	if (rc != KVB_OK || same)
		return rc;
	rc = put_storage_doc(c, &d, version, &version, err);
	if (rc != KVB_OK || !(p = lock_part(c, &rc, err)))
		return rc;
	at = space_find(p, s->name);
	if (at >= 0) {
		p->space[at].version = version;
		p->space[at].capacity = s->capacity;
		p->space[at].enabled = s->enabled;
	}
	core_unlock(c);
	return KVB_OK;
}

static int same_root(struct kvb_core *c, const struct kvb_storage_spec *s, struct kvb_error *err)
{
	int rc = KVB_OK;
	struct part *p = lock_part(c, &rc, err);

	if (!p)
		return rc;
	if (p->n_space == MAX_STORAGES)
		rc = kvb_fail(err, KVB_E_TOO_MANY, NULL, "%u storages at most", MAX_STORAGES);
	for (uint32_t i = 0; rc == KVB_OK && i < p->n_space; i++)
		if (s->root[0] && p->space[i].pool && strcmp(p->space[i].dev->root, s->root) == 0)
			rc = kvb_fail(err, KVB_E_CONFLICT, "root", "storage '%s' has this directory already",
				      p->space[i].dev->name);
	core_unlock(c);
	return rc;
}

/* Reasons of the file system name paths: they go to the log; the caller learns the kind of fault. */
static int root_refused(const struct kvb_storage_spec *s, int rc, const struct kvb_error *why, struct kvb_error *err)
{
	kvb_log(KVB_LOG_ERROR, "storage", "'%s' cannot be made: %s", s->name, why->message);
	if (rc == KVB_E_FOREIGN)
		return kvb_fail(err, rc, "root", "the directory holds somebody else's files or another storage");
	return kvb_fail(err, rc, "root", "the directory cannot be used (%s); the manager's log says why",
			kvb_status_text(rc));
}

/* Always the same for a name in this store: the marker in the root is written before the registry
 * document, and a crash between the two must not make the directory foreign to the next try. */
static void derive_uuid(const struct kvb_core *c, const char *name, uint8_t uuid[16])
{
	char text[KVB_MAX_NAME + 16];
	int n = snprintf(text, sizeof text, "storage/%s", name);
	struct kvb_key k = kvb_key_from_string(&c->secret, text, (size_t)n);

	for (int i = 0; i < 8; i++) {
		uuid[i] = (uint8_t)(k.hi >> (56 - 8 * i));
		uuid[8 + i] = (uint8_t)(k.lo >> (56 - 8 * i));
	}
}

static int create_storage(struct kvb_core *c, const struct kvb_storage_spec *s, struct kvb_error *err)
{
	struct storage_doc d = { .spec = *s };
	struct device *dev = NULL;
	struct kvb_error why = { 0 };
	uint64_t version = 0;
	struct part *p;
	int rc = same_root(c, s, err);

	if (rc == KVB_OK)
		rc = registry_next_id(c, &d.id, err);
	derive_uuid(c, s->name, d.uuid);
	if (rc == KVB_OK)
		rc = device_make(c, s, d.id, d.uuid, &dev);
	if (rc != KVB_OK)
		return rc;
	rc = device_open(dev, true, &why);
	if (rc != KVB_OK)
		rc = root_refused(s, rc, &why, err);
	if (rc == KVB_OK)
		rc = put_storage_doc(c, &d, KVB_VERSION_NONE, &version, err);
	if (rc == KVB_OK && (p = lock_part(c, &rc, err)) != NULL) {
		rc = part_add_space(p, dev, s, version);
		if (rc == KVB_OK)
			rc = device_add(c, dev);
		atomic_store(&dev->healthy, rc == KVB_OK);
		atomic_store(&dev->fs_free, UINT64_MAX);
		dev->problem[0] = '\0';
		core_unlock(c);
	}
	if (rc == KVB_OK)
		return device_start(dev);
	device_destroy(dev);
	return version ? out_of_step(c, rc) : rc;
}

int kvb_core_storage_put(struct kvb_core *c, const struct kvb_storage_spec *spec, bool *created, struct kvb_error *err)
{
	struct kvb_storage_spec s = *spec;
	int rc = enter(c, err);

	if (rc != KVB_OK)
		return rc;
	if (created)
		*created = false;
	rc = check_storage(&s, err);
	if (rc == KVB_OK)
		rc = update_storage(c, &s, err);
	if (rc == KVB_E_NOT_FOUND) {
		kvb_error_clear(err);
		rc = create_storage(c, &s, err);
		if (created)
			*created = rc == KVB_OK;
	}
	return leave(c, rc);
}

static int storage_idle(const struct part *p, int at, struct kvb_error *err)
{
	struct kvb_pool_stats st;

	for (size_t g = 0; g < p->n_group; g++)
		for (uint32_t i = 0; i < p->group[g]->spec.n_storages; i++)
			if (strcmp(p->group[g]->spec.storages[i], p->space[at].dev->name) == 0)
				return kvb_fail(err, KVB_E_IN_USE, "name", "group '%s' names it", p->group[g]->spec.name);
	kvb_pool_stats(p->space[at].pool, &st);
	/* Held slots do not matter: the files go, so nobody can be handed what a late writer touches. */
	if (st.used_bytes || p->space[at].growing)
		return kvb_fail(err, KVB_E_IN_USE, "name", "%llu bytes of blocks are in it",
				(unsigned long long)st.used_bytes);
	return KVB_OK;
}

int kvb_core_storage_delete(struct kvb_core *c, const char *name, struct kvb_error *err)
{
	struct part *p;
	struct device *dev = NULL;
	uint32_t files = 0;
	char key[160];
	int at, rc = enter(c, err);

	if (rc != KVB_OK)
		return rc;
	p = lock_part(c, &rc, err);
	if (!p)
		return leave(c, rc);
	at = space_find(p, name);
	rc = at < 0 ? kvb_fail(err, KVB_E_NOT_FOUND, "name", "no storage '%s'", name) : storage_idle(p, at, err);
	if (rc == KVB_OK) {
		dev = p->space[at].dev;
		files = p->space[at].files;
		p->space[at].enabled = false; /* nobody takes slots from here on */
	}
	core_unlock(c);
	if (rc != KVB_OK)
		return leave(c, rc);
	snprintf(key, sizeof key, "storage/%s", name);
	rc = written(c, kvb_store_del(c->store, key, KVB_VERSION_ANY, err));
	for (uint32_t f = 0; rc == KVB_OK && f < files; f++) {
		char file_key[64];

		registry_file_key(file_key, dev->id, f);
		rc = kvb_store_del(c->store, file_key, KVB_VERSION_ANY, err);
		if (rc == KVB_E_NOT_FOUND)
			rc = KVB_OK;
	}
	if (rc == KVB_OK)
		rc = device_retire(c, dev, files);
	return leave(c, rc);
}

/* ---- groups -------------------------------------------------------------------------------------------- */

static int check_group(const struct part *p, const struct kvb_group_spec *g, struct kvb_error *err)
{
	char field[KVB_FIELD_MAX];

	if (g->n_storages == 0 || g->n_storages > MAX_STORAGES)
		return kvb_fail(err, KVB_E_INVALID, "storages", "name 1..%u storages", MAX_STORAGES);
	for (uint32_t i = 0; i < g->n_storages; i++) {
		snprintf(field, sizeof field, "storages[%u]", i);
		if (space_find(p, g->storages[i]) < 0)
			return kvb_fail(err, KVB_E_NOT_FOUND, field, "no storage '%s': make it first", g->storages[i]);
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(g->storages[i], g->storages[j]) == 0)
				return kvb_fail(err, KVB_E_INVALID, field, "'%s' is named twice", g->storages[i]);
	}
	return KVB_OK;
}

static bool same_group(const struct kvb_group_spec *a, const struct kvb_group_spec *b)
{
	if (a->capacity != b->capacity || a->n_storages != b->n_storages)
		return false;
	for (uint32_t i = 0; i < a->n_storages; i++)
		if (strcmp(a->storages[i], b->storages[i]) != 0)
			return false;
	return true;
}

static int adopt_group(struct kvb_core *c, const struct kvb_group_spec *g, uint64_t version, struct kvb_error *err)
{
	struct kvb_group_spec copy;
	struct group *have;
	int rc = KVB_OK;
	struct part *p = lock_part(c, &rc, err);

	if (!p)
		return rc;
	have = group_find(p, g->name);
	if (!have) {
		rc = part_add_group(p, g, version);
	} else {
		rc = group_spec_copy(&copy, g);
		if (rc == KVB_OK) {
			group_spec_free(&have->spec);
			have->spec = copy;
			have->version = version;
		}
	}
	core_unlock(c);
	return rc == KVB_OK ? rc : out_of_step(c, rc);
}

int kvb_core_group_put(struct kvb_core *c, const struct kvb_group_spec *g, bool *created, struct kvb_error *err)
{
	struct kvb_buf b = { 0 };
	uint64_t version = KVB_VERSION_NONE;
	const struct group *have;
	struct part *p;
	char key[160];
	bool same;
	int rc = enter(c, err);

	if (rc != KVB_OK)
		return rc;
	p = lock_part(c, &rc, err);
	if (!p)
		return leave(c, rc);
	have = group_find(p, g->name);
	rc = check_group(p, g, err);
	same = have && same_group(&have->spec, g);
	if (have)
		version = have->version;
	core_unlock(c);
	if (created)
		*created = rc == KVB_OK && !have;
	if (rc != KVB_OK || same)
		return leave(c, rc);
	registry_put_group(&b, g);
	snprintf(key, sizeof key, "group/%s", g->name);
	rc = b.failed ? KVB_E_NOMEM : written(c, kvb_store_put(c->store, key, version, b.data, b.len, &version, err));
	kvb_buf_destroy(&b);
	if (rc == KVB_OK)
		rc = adopt_group(c, g, version, err);
	return leave(c, rc);
}

int kvb_core_group_delete(struct kvb_core *c, const char *name, struct kvb_error *err)
{
	struct part *p;
	struct group *g;
	char key[160];
	int rc = enter(c, err);

	if (rc != KVB_OK)
		return rc;
	p = lock_part(c, &rc, err);
	if (!p)
		return leave(c, rc);
	g = group_find(p, name);
	if (!g)
		rc = kvb_fail(err, KVB_E_NOT_FOUND, "name", "no group '%s'", name);
	else if (g->n_instances)
		rc = kvb_fail(err, KVB_E_IN_USE, "name", "%u instances are in it", g->n_instances);
	core_unlock(c);
	snprintf(key, sizeof key, "group/%s", name);
	if (rc == KVB_OK)
		rc = written(c, kvb_store_del(c->store, key, KVB_VERSION_ANY, err));
	if (rc != KVB_OK || !(p = lock_part(c, &rc, err)))
		return leave(c, rc);
	for (size_t i = 0; i < p->n_group; i++) {
		if (p->group[i] != g)
			continue;
		p->group[i] = p->group[--p->n_group];
		group_spec_free(&g->spec);
		kvb_free(g);
		break;
	}
	core_unlock(c);
	return leave(c, KVB_OK);
}

/* ---- instances ------------------------------------------------------------------------------------------- */

static int conflict(struct kvb_error *err, const char *field, const char *id)
{
	return kvb_fail(err, KVB_E_CONFLICT, field, "instance '%s' is registered with another %s", id, field);
}

static int compare_instance(const struct instance *have, const struct kvb_instance_spec *i, struct kvb_error *err)
{
	if (strcmp(have->spec.group, i->group) != 0)
		return conflict(err, "group", i->id);
	if (have->spec.block_tokens != i->block_tokens)
		return conflict(err, "block_tokens", i->id);
	if (have->spec.n_specs != i->n_specs)
		return conflict(err, "specs", i->id);
	for (uint32_t s = 0; s < i->n_specs; s++)
		if (have->spec.specs[s].size != i->specs[s].size ||
		    strcmp(have->spec.specs[s].name, i->specs[s].name) != 0)
			return conflict(err, "specs", i->id);
	return KVB_OK;
}

/* Each spec must fit into one slab file of some storage of the group. */
static int check_fit(const struct part *p, const struct group *g, const struct kvb_instance_spec *i,
		     struct kvb_error *err)
{
	for (uint32_t s = 0; s < i->n_specs; s++) {
		bool fits = false;
		char field[KVB_FIELD_MAX];

		for (uint32_t k = 0; k < g->spec.n_storages; k++) {
			int at = space_find(p, g->spec.storages[k]);
			const struct space *sp = at < 0 ? NULL : &p->space[at];
			uint64_t file = sp ? (sp->dev->file_size < sp->capacity ? sp->dev->file_size : sp->capacity) : 0;

			if (sp && file > sp->dev->ops->header + sp->dev->ops->trailer + slot_align(i->specs[s].size) &&
			    i->specs[s].size <= file - sp->dev->ops->header - sp->dev->ops->trailer -
							slot_align(i->specs[s].size))
				fits = true;
		}
		snprintf(field, sizeof field, "specs[%u].size", s);
		if (!fits)
			return kvb_fail(err, KVB_E_INVALID, field,
					"%llu bytes do not fit into a slab file of any storage of group '%s'",
					(unsigned long long)i->specs[s].size, g->spec.name);
	}
	return KVB_OK;
}

static int check_instance(const struct part *p, const struct kvb_instance_spec *i, struct kvb_error *err)
{
	const struct group *g = group_find(p, i->group);
	char field[KVB_FIELD_MAX];

	if (!g)
		return kvb_fail(err, KVB_E_NOT_FOUND, "group", "no group '%s': make it first", i->group);
	if (i->n_specs == 0 || i->n_specs > KVB_MAX_SPECS)
		return kvb_fail(err, KVB_E_INVALID, "specs", "name 1..%u specs", KVB_MAX_SPECS);
	for (uint32_t s = 0; s < i->n_specs; s++) {
		snprintf(field, sizeof field, "specs[%u].name", s);
		for (uint32_t j = 0; j < s; j++)
			if (strcmp(i->specs[j].name, i->specs[s].name) == 0)
				return kvb_fail(err, KVB_E_INVALID, field, "'%s' is named twice", i->specs[s].name);
	}
	return check_fit(p, g, i, err);
}

static void instance_key(char out[300], const char *tenant, const char *id)
{
	snprintf(out, 300, "instance/%s/%s", tenant, id);
}

static int put_instance_doc(struct kvb_core *c, const struct kvb_instance_spec *i, uint32_t id, uint64_t expect,
			    struct kvb_error *err)
{
	struct kvb_buf b = { 0 };
	char key[300];
	int rc;

	registry_put_instance(&b, i, id);
	instance_key(key, i->tenant, i->id);
	rc = b.failed ? KVB_E_NOMEM : written(c, kvb_store_put(c->store, key, expect, b.data, b.len, NULL, err));
	kvb_buf_destroy(&b);
	return rc;
}

static int update_extra(struct kvb_core *c, const struct kvb_instance_spec *i, uint32_t id, struct kvb_error *err)
{
	struct instance *have;
	struct part *p;
	char *extra;
	int rc = put_instance_doc(c, i, id, KVB_VERSION_ANY, err);

	if (rc != KVB_OK || !(p = lock_part(c, &rc, err)))
		return rc;
	have = instance_find(p, i->tenant, i->id);
	extra = kvb_strdup(i->extra);
	if (have && extra) {
		kvb_free((char *)have->spec.extra);
		have->spec.extra = extra;
	} else {
		kvb_free(extra);
	}
	core_unlock(c);
	return KVB_OK;
}

static int create_instance(struct kvb_core *c, const struct kvb_instance_spec *i, struct kvb_error *err)
{
	struct part *p;
	uint32_t id = 0;
	int rc = registry_next_id(c, &id, err);

	if (rc == KVB_OK)
		rc = put_instance_doc(c, i, id, KVB_VERSION_NONE, err);
	if (rc != KVB_OK || !(p = lock_part(c, &rc, err)))
		return rc;
	rc = part_add_instance(p, i, id);
	core_unlock(c);
	return rc == KVB_OK ? rc : out_of_step(c, rc);
}

int kvb_core_instance_put(struct kvb_core *c, const struct kvb_instance_spec *i, bool *created, struct kvb_error *err)
{
	const struct instance *have;
	struct part *p;
	bool new_extra = false;
	uint32_t id = 0;
	int rc = enter(c, err);

	if (rc != KVB_OK)
		return rc;
	p = lock_part(c, &rc, err);
	if (!p)
		return leave(c, rc);
	have = instance_find(p, i->tenant, i->id);
	if (have && have->deleting)
		rc = kvb_fail(err, KVB_E_IN_USE, "id", "it is being deleted");
	else
		rc = have ? compare_instance(have, i, err) : check_instance(p, i, err);
	if (have) {
		id = have->id;
		new_extra = strcmp(have->spec.extra, i->extra) != 0;
	}
	core_unlock(c);
	if (rc == KVB_OK && !have)
		rc = create_instance(c, i, err);
	else if (rc == KVB_OK && new_extra)
		rc = update_extra(c, i, id, err);
	if (created)
		*created = rc == KVB_OK && !have;
	return leave(c, rc);
}

/* Waits for a journaled transaction, on a thread that may block. */
struct latch {
	struct kvb_mutex lock;
	struct kvb_cond cond;
	bool over;
	int status;
};

static void latch_open(void *ctx, int status)
{
	struct latch *l = ctx;

	kvb_mutex_lock(&l->lock);
	l->over = true;
	l->status = status;
	kvb_cond_signal(&l->cond);
	kvb_mutex_unlock(&l->lock);
}

static int latch_wait(struct kvb_core *c, struct latch *l)
{
	while (c->o.manual && !l->over && commit_round(c))
		;
	kvb_mutex_lock(&l->lock);
	while (!l->over)
		kvb_cond_wait(&l->cond, &l->lock);
	kvb_mutex_unlock(&l->lock);
	return l->status;
}

static int queue_drop(struct part *p, struct instance *inst, struct waiter *w)
{
	struct txn *t = txn_make(TXN_DROP);

	if (t)
		record_drop(&t->rec, inst);
	if (!t || t->rec.failed) {
		txn_destroy(t);
		return KVB_E_NOMEM;
	}
	t->inst = inst;
	t->urgent = true;
	inst->deleting = true;
	txn_wait(t, w);
	commit_queue(p, t);
	return KVB_PENDING;
}

int kvb_core_instance_delete(struct kvb_core *c, const char *tenant, const char *id, struct kvb_error *err)
{
	struct latch latch = { .over = false };
	struct waiter w = { .done = { latch_open, &latch }, .err = err };
	struct instance *inst;
	struct part *p;
	char key[300];
	int rc = enter(c, err);

	if (rc != KVB_OK)
		return rc;
	p = lock_part(c, &rc, err);
	if (!p)
		return leave(c, rc);
	kvb_mutex_init(&latch.lock);
	kvb_cond_init(&latch.cond);
	inst = instance_find(p, tenant, id);
	if (!inst)
		rc = kvb_fail(err, KVB_E_NOT_FOUND, "id", "no instance '%s'", id);
	else if (inst->deleting)
		rc = KVB_OK; /* journaled by an earlier call whose second half failed */
	else
		rc = queue_drop(p, inst, &w);
	core_unlock(c);
	if (rc == KVB_PENDING)
		rc = latch_wait(c, &latch);
	kvb_mutex_destroy(&latch.lock);
	kvb_cond_destroy(&latch.cond);
	instance_key(key, tenant, id);
	if (rc == KVB_OK)
		rc = written(c, kvb_store_del(c->store, key, KVB_VERSION_ANY, err));
	if (rc == KVB_OK && (p = lock_part(c, &rc, err)) != NULL) {
		inst = instance_find(p, tenant, id);
		if (inst)
			part_remove_instance(p, inst);
		core_unlock(c);
	}
	return leave(c, rc);
}
