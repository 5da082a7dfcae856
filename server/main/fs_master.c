/*
 * fs_master.c - the role fs-master: the API of server/fsmaster. It keeps nothing between calls.
 */
#include <assert.h>
#include <unistd.h>

#include <skv/fs_master_api.h>
#include <skv/log.h>

#include "role.h"

static int create(const struct skv_params *p, struct skv_api **out, struct skv_error *err)
{
	return skv_fs_master_create(p->root, out, err);
}

static void announce(const struct skv_params *p, const struct skv_api *api, const char *url)
{
	(void)api;
	assert(p->root[0] == '/');
	skv_log(SKV_LOG_INFO, "main", "fs-master of %s listening on %s", p->root, url);
	if (access(p->root, R_OK | W_OK | X_OK) != 0)
		skv_log(SKV_LOG_WARN, "main",
			"%s is not there or not writable: is the file system mounted? It is looked "
			"for with each call",
			p->root);
}

int skv_serve_fs_master(const struct skv_params *p)
{
	static const struct skv_role role = {
		.create = create,
		.destroy = skv_fs_master_destroy,
		.announce = announce,
		.body_max = 256u << 10, /* a punch of a thousand ranges takes 50 KB */
		.hangs = "a file system",
	};

	return skv_role_serve(&role, p);
}
