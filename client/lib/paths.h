/* paths.h - the URLs of the native API that the library uses (docs/PROTOCOL.md). */
#ifndef KVB_CLIENT_PATHS_H
#define KVB_CLIENT_PATHS_H

#define KVB_PATH_MAX 512

/* %s: a valid name */
#define KVB_PATH_STORAGE "/v1/storages/%s"
#define KVB_PATH_GROUP "/v1/groups/%s"
#define KVB_PATH_INSTANCE "/v1/instances/%s"
#define KVB_PATH_MATCH "/v1/match"
#define KVB_PATH_LOOKUP "/v1/instances/%s/lookup"
#define KVB_PATH_START "/v1/instances/%s/start"
#define KVB_PATH_DELETE "/v1/instances/%s/delete"
#define KVB_PATH_PIN "/v1/instances/%s/pin"
#define KVB_PATH_UNPIN "/v1/instances/%s/unpin"
#define KVB_PATH_PINS "/v1/instances/%s/pins?cursor=%" PRIu64
#define KVB_PATH_BLOCK "/v1/instances/%s/blocks/%s"
#define KVB_PATH_BLOCK_FIND "/v1/instances/%s/blocks?key=%s"
/* %s: a session id */
#define KVB_PATH_FINISH "/v1/sessions/%s/finish"
#define KVB_PATH_ABORT "/v1/sessions/%s/abort"
#define KVB_PATH_STATS "/v1/stats"
#define KVB_PATH_READY "/readyz"

#endif
