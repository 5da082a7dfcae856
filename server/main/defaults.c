/*
 * defaults.c - the storage `default` and the default group, made at the first start.
 *
 * Runs on a thread of its own (serve.c) because opening a directory may block. What exists stays as
 * it is, except that the storage's capacity grows when the parameters name a higher one. No state.
 */
#include "main.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <kvb/log.h>

#include "compat.h"

#define DEFAULT_STORAGE "default"

static bool is_given(const struct kvb_params *p, enum kvb_param i)
{
	return p->source[i] != KVB_FROM_DEFAULT;
}

/* The registry keeps an absolute path: the next start may have another working directory. */
static int absolute_root(const struct kvb_params *p, char out[KVB_MAX_ROOT + 1],
			 struct kvb_error *err)
{
	const char *root = p->storage_root;
	char cwd[KVB_MAX_ROOT + 1] = "";
	int n;

	if (*root != '/' && !getcwd(cwd, sizeof cwd))
		return kvb_fail(err, KVB_E_INVALID, "storage_root",
				"cannot make %.100s an absolute path: %s; name one with "
				"--storage-root", root,
				strerror(errno));
	while (strncmp(root, "./", 2) == 0)
		root += 2;
	if (*root == '/' || strcmp(cwd, "/") == 0)
		n = snprintf(out, KVB_MAX_ROOT + 1, "%s%s", *root == '/' ? "" : "/", root);
	else
		n = snprintf(out, KVB_MAX_ROOT + 1, "%s/%s", cwd, root);
	if (n < 0 || n > (int)KVB_MAX_ROOT)
		return kvb_fail(err, KVB_E_INVALID, "storage_root",
				"the path of storage_root is over %u characters", KVB_MAX_ROOT);
	return KVB_OK;
}

static int create_storage(const struct kvb_params *p, const struct kvb_compat *compat, struct kvb_core *core,
			  struct kvb_error *err)
{
	char root[KVB_MAX_ROOT + 1];
	struct kvb_storage_spec spec = {
		.name = DEFAULT_STORAGE,
		.type = "file",
		.root = root,
		.capacity = p->storage_capacity - p->storage_capacity % p->storage_unit,
		.file_size = p->storage_file_size,
		.unit = p->storage_unit,
		.enabled = true,
	};
	struct kvb_error cause;
	int rc = absolute_root(p, root, err);

	if (rc == KVB_OK)
		rc = kvb_compat_place(compat, root, err);
	if (rc != KVB_OK)
		return rc;
	rc = kvb_core_storage_put(core, &spec, NULL, &cause);
	if (rc == KVB_OK || rc == KVB_E_NOT_READY || rc == KVB_E_NOT_OWNER)
		return rc;
	return kvb_fail(err, rc, "storage_root",
			"cannot make the storage '" DEFAULT_STORAGE "': %.200s; choose another "
			"directory with --storage-root, or mend this one",
			cause.message);
}

static int grow_storage(const struct kvb_params *p, struct kvb_core *core,
			const struct kvb_storage_view *have, struct kvb_error *err)
{
	struct kvb_storage_spec spec = have->spec;
	uint64_t unit = spec.unit ? spec.unit : p->storage_unit;
	char root[KVB_MAX_ROOT + 1];

	if (is_given(p, KVB_PARAM_storage_root) && absolute_root(p, root, err) == KVB_OK &&
	    strcmp(root, spec.root) != 0)
		kvb_log(KVB_LOG_WARN, "main",
			"storage_root is %s, but the storage '" DEFAULT_STORAGE "' of this store "
			"lies in %s and stays there",
			root, spec.root);
	spec.capacity = p->storage_capacity - p->storage_capacity % unit;
	if (!is_given(p, KVB_PARAM_storage_capacity) || spec.capacity <= have->spec.capacity)
		return KVB_OK;
	return kvb_core_storage_put(core, &spec, NULL, err);
}

static int make_storage(const struct kvb_params *p, const struct kvb_compat *compat, struct kvb_core *core,
			struct kvb_arena *a, struct kvb_error *err)
{
	struct kvb_storage_view *v;
	uint32_t n;
	int rc = kvb_core_storages(core, DEFAULT_STORAGE, a, &v, &n, err);

	if (rc == KVB_E_NOT_FOUND)
		return create_storage(p, compat, core, err);
	return rc == KVB_OK ? grow_storage(p, core, &v[0], err) : rc;
}

static int make_group(const struct kvb_params *p, struct kvb_core *core, struct kvb_arena *a,
		      struct kvb_error *err)
{
	const char *const storages[] = { DEFAULT_STORAGE };
	struct kvb_group_spec spec = { .name = p->default_group, .storages = storages,
				      .n_storages = 1 };
	struct kvb_group_view *v;
	uint32_t n;
	int rc = kvb_core_groups(core, p->default_group, a, &v, &n, err);

	return rc == KVB_E_NOT_FOUND ? kvb_core_group_put(core, &spec, NULL, NULL, err) : rc;
}

int kvb_defaults_make(const struct kvb_params *p, const struct kvb_compat *compat, struct kvb_core *core,
		      struct kvb_error *err)
{
	struct kvb_arena a;
	int rc;

	kvb_arena_init(&a);
	rc = make_storage(p, compat, core, &a, err);
	if (rc == KVB_OK)
		rc = make_group(p, core, &a, err);
	kvb_arena_destroy(&a);
	return rc;
}
