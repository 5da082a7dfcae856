/*
 * remote.h - a storage that fs-masters look after: the functions of any type whose configuration names some.
 */
#ifndef KVB_FSMASTER_REMOTE_H
#define KVB_FSMASTER_REMOTE_H

#include <kvb/storage.h>

/* Opens it for type `type`; the other members of `kvb_remote` take what this gives. */
int kvb_remote_open(const char *type, const struct kvb_storage_config *c, void **self, struct kvb_error *err);
extern const struct kvb_storage_ops kvb_remote; /* but for what the type says: name, edge, grace, chunked */

#endif
