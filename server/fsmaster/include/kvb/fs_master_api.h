/*
 * fs_master_api.h - the API of an fs-master: slab files below one root, for managers that have no mount.
 *
 * It needs no core. Directories are names below the root and nothing else: no symbolic link is followed below it. Any number
 * of replicas may serve one root; all that they know lies there. Messages: kvb/fs_master.h, for people docs/PROTOCOL.md.
 */
#ifndef KVB_FS_MASTER_API_H
#define KVB_FS_MASTER_API_H

#include <kvb/api.h>

/* `root` is an absolute directory; it need not be there yet. The API lives until kvb_fs_master_destroy, which no front or
 * service must outlive. KVB_E_INVALID, KVB_E_NOMEM. */
int kvb_fs_master_create(const char *root, struct kvb_api **out, struct kvb_error *err);
void kvb_fs_master_destroy(struct kvb_api *api); /* NULL is allowed */

#endif
