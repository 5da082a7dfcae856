/*
 * defaults.c - creates the storage `default` and the default group at the first start.
 *
 * Runs on its own thread (serve.c) because opening a directory may block. Existing objects stay as
 * they are, except that the storage's capacity grows when the parameters say so. Stateless.
 */
#include "main.h"

#include <assert.h>
#include <string.h>

#include <skv/log.h>

#include "compat.h"

#define DEFAULT_STORAGE "default"
#define DEFAULT_GROUP "default"

static int create_storage(const struct skv_params *p, const struct skv_compat *compat,
			  struct skv_cluster *cluster, struct skv_error *err)
{
	char root[SKV_MAX_ROOT + 1];
	struct skv_storage_spec spec = {
		.name = DEFAULT_STORAGE,
		.type = "file",
		.root = root,
		.capacity = p->storage_capacity,
		.file_size = p->storage_file_size,
		.unit = p->storage_unit,
		.enabled = true,
	};
	struct skv_error cause;
	int rc = skv_absolute_root(p, root, err);

	if (rc == SKV_OK)
		rc = skv_compat_place(compat, root, err);
	if (rc != SKV_OK)
		return rc;
	assert(root[0] == '/');
	rc = skv_cluster_storage_put(cluster, &spec, SKV_PUT_NEW, NULL, &cause);
	if (rc == SKV_E_CONFLICT && strcmp(cause.field, "name") == 0)
		return SKV_OK; /* somebody was faster */
	if (rc == SKV_OK || rc == SKV_E_NOT_READY || rc == SKV_E_NOT_OWNER)
		return rc;
	return skv_fail(err, rc, "storage_root",
			"cannot make the storage '" DEFAULT_STORAGE "': %.200s; choose another "
			"directory with --storage-root, or mend this one",
			cause.message);
}

static int grow_storage(const struct skv_params *p, struct skv_cluster *cluster,
			const struct skv_storage_view *have, struct skv_error *err)
{
	struct skv_storage_spec spec = have->spec;
	char root[SKV_MAX_ROOT + 1];

	if (skv_params_is_given(p, SKV_PARAM_storage_root) &&
	    skv_absolute_root(p, root, err) == SKV_OK &&
	    strcmp(root, spec.root) != 0)
		skv_log(SKV_LOG_WARN, "main",
			"storage_root is %s, but the storage '" DEFAULT_STORAGE "' of this store "
			"lies in %s and stays there",
			root, spec.root);
	assert(spec.unit > 0);
	spec.capacity = p->storage_capacity - p->storage_capacity % spec.unit;
	if (!skv_params_is_given(p, SKV_PARAM_storage_capacity) ||
	    spec.capacity <= have->spec.capacity)
		return SKV_OK;
	return skv_cluster_storage_put(cluster, &spec, SKV_PUT_THERE, NULL, err);
}

static int make_storage(const struct skv_params *p, const struct skv_compat *compat,
			struct skv_cluster *cluster, struct skv_arena *a, struct skv_error *err)
{
	struct skv_storage_view *v;
	int rc = skv_cluster_storage(cluster, DEFAULT_STORAGE, a, &v, err);

	if (rc == SKV_E_NOT_FOUND)
		return create_storage(p, compat, cluster, err);
	if (rc != SKV_OK)
		return rc;
	return grow_storage(p, cluster, &v[0], err);
}

static int make_group(struct skv_cluster *cluster, struct skv_arena *a, struct skv_error *err)
{
	const char *const storages[] = { DEFAULT_STORAGE };
	struct skv_group_spec spec = { .name = DEFAULT_GROUP, .storages = storages,
				      .n_storages = 1 };
	struct skv_group_view *v;
	int rc = skv_cluster_group(cluster, DEFAULT_GROUP, a, &v, err);

	if (rc == SKV_E_NOT_FOUND)
		rc = skv_cluster_group_put(cluster, &spec, SKV_PUT_NEW, NULL, NULL, err);
	/* somebody was faster */
	return rc == SKV_E_CONFLICT && strcmp(err->field, "name") == 0 ? SKV_OK : rc;
}

int skv_defaults_make(const struct skv_params *p, const struct skv_compat *compat,
		      struct skv_cluster *cluster, struct skv_error *err)
{
	struct skv_arena a;
	int rc;

	skv_arena_init(&a);
	rc = make_storage(p, compat, cluster, &a, err);
	if (rc == SKV_OK)
		rc = make_group(cluster, &a, err);
	skv_arena_destroy(&a);
	return rc;
}
