/*
 * fs_master_api.h - the API of an fs-master: slab files below one root, for managers that have no mount.
 *
 * It needs no core. Directories are names below the root and nothing else: no symbolic link is followed below it. Any number
 * of replicas may serve one root; all that they know lies there. Messages: skv/fs_master.h, for people docs/PROTOCOL.md.
 */
#ifndef SKV_FS_MASTER_API_H
#define SKV_FS_MASTER_API_H

#include <skv/api.h>

/* `root` is an absolute directory; it need not be there yet. The API lives until skv_fs_master_destroy, which no front or
 * service must outlive. SKV_E_INVALID, SKV_E_NOMEM. */
int skv_fs_master_create(const char *root, struct skv_api **out, struct skv_error *err);
void skv_fs_master_destroy(struct skv_api *api); /* NULL is allowed */

#endif
