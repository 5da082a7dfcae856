/*
 * fs_master_api.h - the API of an fs-master: manages slab files below one root for managers without
 * a mount.
 *
 * It needs no core. Directories are direct children of the root, without symbolic links. Any number
 * of replicas may serve one root, since all state is there. Messages: skv/fs_master.h and
 * docs/reference/PROTOCOL.md.
 */
#ifndef SKV_FS_MASTER_API_H
#define SKV_FS_MASTER_API_H

#include <skv/api.h>

/* `root` is an absolute directory, which need not exist yet. The API must outlive every transport
 * and service that uses it (skv_fs_master_destroy). SKV_E_INVALID, SKV_E_NOMEM. */
int skv_fs_master_create(const char *root, struct skv_api **out, struct skv_error *err);
void skv_fs_master_destroy(struct skv_api *api); /* NULL is allowed */

#endif
