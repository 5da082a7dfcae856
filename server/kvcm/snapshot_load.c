/*
 * snapshot_load.c - applies a configuration snapshot.
 *
 * First everything is compared with the manager and with itself: names given twice, groups and
 * storages that are nowhere, what may not change. Then storages that are new are made, which can
 * fail on a file system that is not there: those made before it go again, and nothing has changed.
 * What follows is written to the store only. Objects that the snapshot does not name stay.
 *
 * A snapshot may come from another manager. A storage that is there keeps its place, whatever
 * place the snapshot's has; one that the peer's API made gets the place that this manager gives
 * to its message (model.h).
 *
 * No state; any thread that may block.
 */
#include "snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model_internal.h"

struct load {
	struct skv_core *core;
	const struct kvcm_model *model;
	const struct kvcm_snapshot *s;
	struct skv_arena *a;
	struct skv_stats have;
	struct skv_error *err;
};

static int bad(const struct load *l, const char *list, uint32_t i, const char *field,
	       const char *what, const char *name)
{
	char at[SKV_FIELD_MAX];

	snprintf(at, sizeof at, "%s[%" PRIu32 "].%s", list, i, field);
	return skv_fail(l->err, SKV_E_INVALID, at, what, name);
}

/* ---- storages -------------------------------------------------------------------------------- */

static const struct skv_storage_spec *storage_there(const struct load *l, const char *name)
{
	for (uint32_t i = 0; i < l->have.n_storages; i++)
		if (strcmp(l->have.storages[i].spec.name, name) == 0)
			return &l->have.storages[i].spec;
	return NULL;
}

static bool storage_will_be(const struct load *l, const char *name)
{
	for (uint32_t i = 0; i < l->s->n_storages; i++)
		if (strcmp(l->s->storages[i].name, name) == 0)
			return true;
	return storage_there(l, name) != NULL;
}

/* The KVCM message that a storage was made from; NULL: another API made it. */
static const KvcmAdmin__StorageConfig *message_of(const struct load *l,
						  const struct skv_storage_spec *s)
{
	return (const KvcmAdmin__StorageConfig *)kvcm_model_message(
		&kvcm_admin__storage_config__descriptor, s->extra, l->a);
}

/* Do both messages mean one directory? */
static bool same_place(const KvcmAdmin__StorageConfig *a, const KvcmAdmin__StorageConfig *b)
{
	if (a->storage_spec_case != b->storage_spec_case)
		return false;
	if (a->storage_spec_case == KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_NFS)
		return strcmp(a->nfs->root_path, b->nfs->root_path) == 0;
	if (a->storage_spec_case == KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_THREEFS)
		return strcmp(a->threefs->mountpoint, b->threefs->mountpoint) == 0 &&
		       strcmp(a->threefs->root_dir, b->threefs->root_dir) == 0;
	return true;
}

static int check_storage(const struct load *l, uint32_t i)
{
	const struct skv_storage_spec *s = &l->s->storages[i], *old = storage_there(l, s->name);
	const KvcmAdmin__StorageConfig *was, *m = message_of(l, s);

	for (uint32_t j = 0; j < i; j++)
		if (strcmp(l->s->storages[j].name, s->name) == 0)
			return bad(l, "storages", i, "name", "the storage %s is named twice",
				   s->name);
	if (m && strcmp(m->global_unique_name, s->name) != 0)
		return bad(l, "storages", i, "spec.extra",
			   "it is not the message of the storage %s", s->name);
	if (!old)
		return SKV_OK;
	was = message_of(l, old);
	if (strcmp(old->type, s->type) != 0)
		return bad(l, "storages", i, "spec.type", "the storage %s exists with another type",
			   s->name);
	if (!was != !m || (m && !same_place(was, m)))
		return bad(l, "storages", i, "spec.extra", "the storage %s exists elsewhere",
			   s->name);
	if (s->capacity < old->capacity)
		return bad(l, "storages", i, "spec.capacity",
			   "the storage %s exists and cannot shrink", s->name);
	return SKV_OK;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static bool group_will_be(const struct load *l, const char *name)
{
	for (uint32_t i = 0; i < l->s->n_groups; i++)
		if (strcmp(l->s->groups[i].name, name) == 0)
			return true;
	for (uint32_t i = 0; i < l->have.n_groups; i++)
		if (strcmp(l->have.groups[i].spec.name, name) == 0)
			return true;
	return false;
}

static int check_group(const struct load *l, uint32_t i)
{
	const struct skv_group_spec *g = &l->s->groups[i];

	for (uint32_t j = 0; j < i; j++)
		if (strcmp(l->s->groups[j].name, g->name) == 0)
			return bad(l, "groups", i, "name", "the group %s is named twice", g->name);
	for (uint32_t k = 0; k < g->n_storages && !g->loose_storages; k++) {
		char field[64];

		snprintf(field, sizeof field, "spec.storages[%" PRIu32 "]", k);
		if (!storage_will_be(l, g->storages[k]))
			return bad(l, "groups", i, field, "there is no storage %s", g->storages[k]);
	}
	return SKV_OK;
}

/* ---- instances ------------------------------------------------------------------------------- */

static bool same_instance(const struct skv_instance_spec *a, const struct skv_instance_spec *b)
{
	return strcmp(a->tenant, b->tenant) == 0 && strcmp(a->id, b->id) == 0;
}

static const struct skv_instance_spec *instance_there(const struct load *l,
						      const struct skv_instance_spec *s)
{
	for (uint32_t i = 0; i < l->have.n_instances; i++)
		if (same_instance(&l->have.instances[i].spec, s))
			return &l->have.instances[i].spec;
	return NULL;
}

static const char *changed_field(const struct skv_instance_spec *old,
				 const struct skv_instance_spec *s)
{
	if (strcmp(old->group, s->group) != 0)
		return "spec.group";
	if (old->block_tokens != s->block_tokens)
		return "spec.block_tokens";
	if (old->numbered != s->numbered)
		return "spec.numbered";
	if (old->named != s->named)
		return "spec.named";
	if (old->n_specs != s->n_specs)
		return "spec.specs";
	for (uint32_t i = 0; i < s->n_specs; i++)
		if (strcmp(old->specs[i].name, s->specs[i].name) != 0 ||
		    old->specs[i].size != s->specs[i].size)
			return "spec.specs";
	return NULL;
}

static int check_instance(const struct load *l, uint32_t i)
{
	const struct skv_instance_spec *s = &l->s->instances[i], *old = instance_there(l, s);
	const char *field = old ? changed_field(old, s) : NULL;

	for (uint32_t j = 0; j < i; j++)
		if (same_instance(&l->s->instances[j], s))
			return bad(l, "instances", i, "id", "the instance %s is named twice",
				   s->id);
	if (!group_will_be(l, s->group))
		return bad(l, "instances", i, "spec.group", "there is no group %s", s->group);
	return field ? bad(l, "instances", i, field, "the instance %s exists with another one",
			   s->id)
		     : SKV_OK;
}

static int check_account(const struct load *l, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++)
		if (strcmp(l->s->accounts[j].name, l->s->accounts[i].name) == 0)
			return bad(l, "accounts", i, "user_name", "the account %s is named twice",
				   l->s->accounts[i].name);
	return SKV_OK;
}

static int check(const struct load *l)
{
	int rc = SKV_OK;

	for (uint32_t i = 0; i < l->s->n_storages && rc == SKV_OK; i++)
		rc = check_storage(l, i);
	for (uint32_t i = 0; i < l->s->n_groups && rc == SKV_OK; i++)
		rc = check_group(l, i);
	for (uint32_t i = 0; i < l->s->n_instances && rc == SKV_OK; i++)
		rc = check_instance(l, i);
	for (uint32_t i = 0; i < l->s->n_accounts && rc == SKV_OK; i++)
		rc = check_account(l, i);
	return rc;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Names the object that could not be put. */
static int failed(const struct load *l, const char *list, uint32_t i)
{
	char at[SKV_FIELD_MAX];

	snprintf(at, sizeof at, "%s[%" PRIu32 "]%s%.60s", list, i, *l->err->field ? "." : "",
		 l->err->field);
	return skv_fail(l->err, l->err->status, at, "%s", l->err->message);
}

/* Adds a storage from its KVCM message, with the sizes of the snapshot. */
static int put_message(const struct load *l, const KvcmAdmin__StorageConfig *m,
		       const struct skv_storage_spec *s)
{
	struct kvcm_model model = *l->model;
	struct skv_storage_view *v;
	struct skv_storage_spec now;
	uint32_t n;
	int rc;

	model.storage_capacity = s->capacity;
	model.storage_file_size = s->file_size;
	if (s->unit)
		model.storage_unit = s->unit;
	rc = storage_there(l, s->name) ? kvcm_storage_change(l->core, m, &model, l->err)
					: kvcm_storage_create(l->core, m, &model, l->err);
	if (rc == SKV_OK)
		rc = skv_core_storages(l->core, s->name, l->a, &v, &n, l->err);
	if (rc != SKV_OK || v[0].spec.enabled == s->enabled)
		return rc;
	now = v[0].spec;
	now.enabled = s->enabled;
	return skv_core_storage_change(l->core, &now, l->err);
}

static int put_storage(const struct load *l, uint32_t i)
{
	const struct skv_storage_spec *old = storage_there(l, l->s->storages[i].name);
	const KvcmAdmin__StorageConfig *m = message_of(l, &l->s->storages[i]);
	struct skv_storage_spec s = l->s->storages[i];

	if (m)
		return put_message(l, m, &s);
	if (old) {
		bool moved = strcmp(old->root, s.root) != 0;

		s.root = old->root;
		s.unit = old->unit;
		s.file_size = old->file_size;
		s.draining = old->draining;
		s.client_mount = old->client_mount;
		if (moved)
			s.client_root = old->client_root;
	}
	return skv_core_storage_put(l->core, &s, NULL, l->err);
}

static int make_storages(const struct load *l)
{
	int rc = SKV_OK;
	uint32_t i;

	for (i = 0; i < l->s->n_storages && rc == SKV_OK; i++)
		if (!storage_there(l, l->s->storages[i].name))
			rc = put_storage(l, i);
	if (rc == SKV_OK)
		return SKV_OK;
	failed(l, "storages", --i);
	for (;; i--) { /* no blocks there yet */
		struct skv_error ignored;

		if (!storage_there(l, l->s->storages[i].name))
			skv_core_storage_delete(l->core, l->s->storages[i].name, &ignored);
		if (i == 0)
			return rc;
	}
}

static int put_rest(const struct load *l)
{
	for (uint32_t i = 0; i < l->s->n_storages; i++)
		if (storage_there(l, l->s->storages[i].name) && put_storage(l, i) != SKV_OK)
			return failed(l, "storages", i);
	for (uint32_t i = 0; i < l->s->n_groups; i++)
		if (skv_core_group_put(l->core, &l->s->groups[i], NULL, NULL, l->err) != SKV_OK)
			return failed(l, "groups", i);
	for (uint32_t i = 0; i < l->s->n_instances; i++)
		if (skv_core_instance_put(l->core, &l->s->instances[i], NULL, l->err) != SKV_OK)
			return failed(l, "instances", i);
	for (uint32_t i = 0; i < l->s->n_accounts; i++)
		if (kvcm_account_put(l->core, &l->s->accounts[i], l->err) != SKV_OK)
			return failed(l, "accounts", i);
	return SKV_OK;
}

int kvcm_snapshot_load(struct skv_core *core, const struct kvcm_model *model,
		       const struct kvcm_snapshot *s, struct skv_arena *a, struct skv_error *err)
{
	struct load l = { .core = core, .model = model, .s = s, .a = a, .err = err };
	int rc = skv_core_stats(core, a, &l.have, err);

	if (rc == SKV_OK)
		rc = check(&l);
	if (rc == SKV_OK)
		rc = make_storages(&l);
	return rc == SKV_OK ? put_rest(&l) : rc;
}
