/*
 * describe.c - the changeable description of a storage's device: its fs-masters, its paths as
 * clients see them, what its owner stores with it.
 *
 * Under the write lock, or before the device is shared.
 */
#include <storage/device.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>
#include <skv/ops.h>
#include <skv/status.h>

#include <model/device.h>

static void free_masters(char **v, uint32_t n)
{
	for (uint32_t i = 0; v && i < n; i++)
		skv_free(v[i]);
	skv_free(v);
}

bool device_same_masters(const struct device *d, const struct skv_storage_spec *s)
{
	bool same = d->n_masters == s->n_fs_master;

	for (uint32_t i = 0; same && i < d->n_masters; i++)
		same = strcmp(d->masters[i], s->fs_master[i]) == 0;
	return same;
}

static int take_masters(struct device *d, const struct skv_storage_spec *s)
{
	char **v;
	bool ok;

	if (device_same_masters(d, s))
		return SKV_OK;
	v = skv_calloc(s->n_fs_master + 1, sizeof *v);
	ok = v != NULL;
	for (uint32_t i = 0; ok && i < s->n_fs_master; i++)
		ok = (v[i] = skv_strdup(s->fs_master[i])) != NULL;
	if (!ok) {
		free_masters(v, s->n_fs_master);
		return SKV_E_NOMEM;
	}
	free_masters(d->masters, d->n_masters);
	d->masters = v;
	d->n_masters = s->n_fs_master;
	atomic_store(&d->reopen, true);
	return SKV_OK;
}

int device_describe(struct device *d, const struct skv_storage_spec *s)
{
	char *root = skv_strdup(s->client_root), *mount = skv_strdup(s->client_mount),
	     *extra = skv_strdup(s->extra);

	if (!root || !mount || !extra || take_masters(d, s) != SKV_OK) {
		skv_free(root);
		skv_free(mount);
		skv_free(extra);
		return SKV_E_NOMEM;
	}
	skv_free(d->client_root);
	skv_free(d->client_mount);
	skv_free(d->extra);
	d->client_root = root;
	d->client_mount = mount;
	d->extra = extra;
	return SKV_OK;
}

void device_forget_description(struct device *d)
{
	assert(!d->running); /* the device's thread reads these fields */
	skv_free(d->client_root);
	skv_free(d->client_mount);
	skv_free(d->extra);
	free_masters(d->masters, d->n_masters);
}
