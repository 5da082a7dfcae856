/*
 * fs_master.h - shared by the files of the fs-master: its part of a call, its root.
 */
#ifndef SKV_SERVER_FS_MASTER_H
#define SKV_SERVER_FS_MASTER_H

#include <skv/request.h>
#include <skv/fs_master.h>
#include <skv/fs_master_api.h>
#include <skv/storage.h>

struct fs_master {
	struct skv_api api;
	char *root;
};

/* skv_request.state. */
struct fs_request {
	struct skv_fs_answer answer; /* open, probe, owners, look */
	struct skv_storage_stat stat;
	uint32_t *files; /* list, in the call's arena */
	size_t n_files;
};

static inline struct fs_request *fs_of(struct skv_request *c) { return c->state; }

static inline const struct fs_master *fs_master_of(const struct skv_request *c)
{
	return c->api->ctx;
}

/* SKV_E_UNAVAILABLE: the root is not there. The caller closes *fd. */
int fs_open_root(const struct skv_request *c, int *fd, struct skv_error *err);

/* ---- ops.c ----------------------------------------------------------------------------------- */

#define FS_OPS(X)                                                             \
	X(index, GET, "/", OPEN, 0)                                           \
	X(healthz, GET, "/healthz", OPEN, 0)                                  \
	X(readyz, GET, "/readyz", OPEN, ROUTE_BLOCKS)                         \
	X(metrics, GET, "/metrics", READ, ROUTE_SCRAPE)                       \
	X(stat, GET, "/fs/{dir}", READ, ROUTE_BLOCKS)                         \
	X(list, GET, "/fs/{dir}/files", READ, ROUTE_BLOCKS)                   \
	X(stat_file, GET, "/fs/{dir}/files/{file}", READ, ROUTE_BLOCKS)

#define FS_PROTOTYPES(name, ...)                       \
	int fs_op_##name##_run(struct skv_request *c);    \
	void fs_op_##name##_write(struct skv_request *c);
FS_OPS(FS_PROTOTYPES)
#undef FS_PROTOTYPES
/* The verbs of skv/fs_master.h; which one, the route's `own` says. */
int fs_verb_run(struct skv_request *c);
void fs_verb_write(struct skv_request *c);

#endif
