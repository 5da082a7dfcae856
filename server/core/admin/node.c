/*
 * node.c - checks that a storage of type memory names one memory node that no other storage uses.
 */
#include <assert.h>
#include <string.h>

#include <lock/lock.h>
#include <model/device.h>
#include <model/partition.h>
#include <model/volume.h>
#include "admin.h"

int admin_check_node(const struct skv_storage_spec *s, struct skv_error *err)
{
	if (s->n_fs_master != 1)
		return skv_fail(err, SKV_E_INVALID, "fs_master",
				"a storage of type memory has one memory node, as "
				"http://host:port/NAME; for more nodes make more storages");
	if (s->root[0])
		return skv_fail(err, SKV_E_INVALID, "root",
				"a storage of type memory has no directory");
	return SKV_OK;
}

/* The last part of a memory node's URL. */
static const char *name_of(const char *url)
{
	const char *slash = strrchr(url, '/');

	assert(slash); /* skv_storage_check_master */
	return slash + 1;
}

int admin_check_node_free(const struct partition *p, const struct skv_storage_spec *s,
			  struct skv_error *err)
{
	const char *name = name_of(s->fs_master[0]);

	ASSERT_SHARED(p);
	for (uint32_t i = 0; i < p->n_volume; i++) {
		const struct volume *v = &p->volume[i];

		if (!v->pool || !v->dev->ops->forgetful ||
		    strcmp(name_of(v->dev->masters[0]), name) != 0)
			continue;
		return skv_fail(err, SKV_E_CONFLICT, "fs_master",
				"storage '%s' has a memory node named '%s' already: give each node "
				"a --memory-name of its own",
				v->dev->name, name);
	}
	return SKV_OK;
}
