/*
 * admin_storage.c - KVCM's storages: add, update, enable, disable, remove, list.
 *
 * The message is translated by model.h. A storage keeps its blocks as long as it lives here, so it
 * is not removed while it holds some, and updating never moves it. No state. All but the listing
 * block: they run on workers.
 */
#include "op_list.h"

#include <assert.h>
#include <string.h>

static const struct kvcm_model *model(const struct kvcm_request *k) { return &kvcm_of(k)->model; }

/* Finds the storage's spec. SKV_E_NOT_FOUND names it. */
static int find(struct kvcm_request *k, const char *name, struct skv_storage_spec *out)
{
	struct skv_storage_view *v;
	int rc = skv_cluster_storage(kvcm_cluster(k), name, &k->c->arena, &v, &k->c->err);

	if (rc == SKV_E_NOT_FOUND)
		return skv_fail(&k->c->err, rc, NULL, "there is no storage %.100s", name);
	if (rc == SKV_OK)
		*out = v[0].spec;
	return rc;
}

/* Path of a required field that is missing, within the message. */
static const char *missing(const KvcmAdmin__StorageConfig *m)
{
	if (!m)
		return "storage";
	if (!*m->global_unique_name)
		return "storage.global_unique_name";
	switch (m->storage_spec_case) {
	case KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC__NOT_SET:
		return "storage.storage_spec";
	case KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_THREEFS:
		return !*m->threefs->mountpoint ? "storage.threefs.mountpoint"
		       : !*m->threefs->root_dir ? "storage.threefs.root_dir"
						: NULL;
	case KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_NFS:
		return *m->nfs->root_path ? NULL : "storage.nfs.root_path";
	default:
		return NULL;
	}
}

int kvcm_run_admin_addStorage(struct kvcm_request *k)
{
	const KvcmAdmin__AddStorageRequest *req = k->req;
	const KvcmAdmin__StorageConfig *m = req->storage;
	struct skv_storage_spec have;
	int rc;

	if (missing(m))
		return kvcm_missing(k, missing(m));
	rc = find(k, m->global_unique_name, &have); /* before its directory is touched */
	if (rc == SKV_E_NOT_FOUND)
		rc = kvcm_storage_create(kvcm_cluster(k), m, model(k), &k->c->err);
	else if (rc == SKV_OK)
		rc = skv_fail(&k->c->err, SKV_E_CONFLICT, "name", "it exists");
	if (rc == SKV_E_CONFLICT && strcmp(k->c->err.field, "name") == 0)
		return skv_fail(&k->c->err, SKV_E_CONFLICT, NULL,
				"the storage %s exists: updateStorage changes it",
				m->global_unique_name);
	return rc;
}

/* Elsewhere, with `force_update`: an empty storage goes and is made anew; if that
 * fails the old one comes back. */
static int replace(struct kvcm_request *k, const KvcmAdmin__StorageConfig *m,
		   const struct skv_storage_spec *have)
{
	struct skv_error ignored;
	int rc = skv_cluster_storage_delete(kvcm_cluster(k), have->name, &k->c->err);

	if (rc != SKV_OK)
		return rc;
	rc = kvcm_storage_create(kvcm_cluster(k), m, model(k), &k->c->err);
	if (rc != SKV_OK)
		skv_cluster_storage_put(kvcm_cluster(k), have, SKV_PUT_NEW, NULL, &ignored);
	return rc;
}

int kvcm_run_admin_updateStorage(struct kvcm_request *k)
{
	const KvcmAdmin__UpdateStorageRequest *req = k->req;
	const KvcmAdmin__StorageConfig *m = req->storage, *was;
	struct skv_storage_spec have;
	int rc;

	if (missing(m))
		return kvcm_missing(k, missing(m));
	rc = find(k, m->global_unique_name, &have);
	if (rc != SKV_OK)
		return rc;
	was = kvcm_storage_message(&have, &k->c->arena);
	if (!was)
		return kvcm_nomem(k);
	if (was->storage_spec_case != m->storage_spec_case)
		return skv_fail(&k->c->err, SKV_E_INVALID, "storage.storage_spec",
				"storage.storage_spec: a storage keeps its type; add another one");
	rc = kvcm_storage_change(kvcm_cluster(k), m, model(k), &k->c->err);
	if (rc == SKV_E_CONFLICT && req->force_update)
		rc = replace(k, m, &have);
	else if (rc == SKV_E_CONFLICT)
		return skv_fail(
			&k->c->err, SKV_E_INVALID, "storage.storage_spec",
			"storage.storage_spec: a storage does not move; force_update makes an "
			"empty one anew");
	return rc;
}

static int set_enabled(struct kvcm_request *k, const char *name, bool enabled)
{
	struct skv_storage_spec spec;
	int rc;

	if (!*name)
		return kvcm_missing(k, "storage_unique_name");
	rc = find(k, name, &spec);
	if (rc != SKV_OK)
		return rc;
	spec.enabled = enabled;
	return skv_cluster_storage_put(kvcm_cluster(k), &spec, SKV_PUT_THERE, NULL, &k->c->err);
}

int kvcm_run_admin_enableStorage(struct kvcm_request *k)
{
	return set_enabled(
		k, ((const KvcmAdmin__EnableStorageRequest *)k->req)->storage_unique_name, true);
}

int kvcm_run_admin_disableStorage(struct kvcm_request *k)
{
	return set_enabled(
		k, ((const KvcmAdmin__DisableStorageRequest *)k->req)->storage_unique_name, false);
}

int kvcm_run_admin_removeStorage(struct kvcm_request *k)
{
	const char *name = ((const KvcmAdmin__RemoveStorageRequest *)k->req)->storage_unique_name;
	int rc;

	if (!*name)
		return kvcm_missing(k, "storage_unique_name");
	rc = skv_cluster_storage_delete(kvcm_cluster(k), name, &k->c->err);
	if (rc == SKV_E_NOT_FOUND)
		return skv_fail(&k->c->err, rc, NULL, "there is no storage %.100s", name);
	if (rc == SKV_E_IN_USE)
		return skv_fail(&k->c->err, rc, NULL,
				"the storage %.100s is in use: first trimCache or removeInstance, "
				"and let only storage_candidates name it", name);
	return rc;
}

int kvcm_run_admin_listStorage(struct kvcm_request *k)
{
	KvcmAdmin__ListStorageResponse *res = k->res;
	struct skv_storage_view *v;
	uint32_t n;
	int rc = skv_cluster_every_storage(kvcm_cluster(k), "", &k->c->arena, &v, &n, &k->c->err);

	if (rc != SKV_OK)
		return rc;
	res->storage = skv_arena_calloc(&k->c->arena, n + 1, sizeof(void *));
	if (!res->storage)
		return kvcm_nomem(k);
	for (; res->n_storage < n; res->n_storage++) {
		res->storage[res->n_storage] =
			kvcm_storage_message(&v[res->n_storage].spec, &k->c->arena);
		if (!res->storage[res->n_storage])
			return kvcm_nomem(k);
	}
	return SKV_OK;
}
