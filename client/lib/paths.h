/* paths.h - the URLs of the native API that the library uses (docs/PROTOCOL.md). */
#ifndef SKV_CLIENT_PATHS_H
#define SKV_CLIENT_PATHS_H

#define SKV_PATH_MAX 512

/* %s: a valid name; of an instance by skv_path_name, because a model's name may hold a slash */
#define SKV_PATH_INSTANCE "/v1/instances/%s"
#define SKV_PATH_MATCH "/v1/match"
#define SKV_PATH_LOOKUP "/v1/instances/%s/lookup"
#define SKV_PATH_START "/v1/instances/%s/start"
#define SKV_PATH_DELETE "/v1/instances/%s/delete"
#define SKV_PATH_REPORT "/v1/instances/%s/report"
#define SKV_PATH_PIN "/v1/instances/%s/pin"
#define SKV_PATH_UNPIN "/v1/instances/%s/unpin"
#define SKV_PATH_PINS "/v1/instances/%s/pins?cursor=%" PRIu64
#define SKV_PATH_KEYS "/v1/instances/%s/keys?cursor=%" PRIu64 "&max=%u"
/* %s: a session id */
#define SKV_PATH_FINISH "/v1/sessions/%s/finish"
#define SKV_PATH_ABORT "/v1/sessions/%s/abort"
#define SKV_PATH_MOVE_TAKE "/v1/moves/take"
/* %s: a move's id */
#define SKV_PATH_MOVE_FINISH "/v1/moves/%s/finish"
#define SKV_PATH_PURGE "/v1/purge"
#define SKV_PATH_READY "/readyz"

#endif
