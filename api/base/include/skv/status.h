/*
 * status.h - the list of results that every layer returns.
 *
 * A function that can fail returns `int`: SKV_OK (0) or a negative SKV_E_* value. Outputs are set
 * only on SKV_OK unless the declaration says otherwise. The function that first knows the cause
 * fills a `struct skv_error` (skv_fail); intermediate layers pass both on unchanged, and the
 * outermost layer logs once.
 *
 * SKV_STATUS_MAP is also the only place that maps an error to an HTTP status and a gRPC code.
 * Columns: NAME, number, wire code (the `code` of an error answer), HTTP, gRPC, default text.
 */
#ifndef SKV_STATUS_H
#define SKV_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#define SKV_STATUS_MAP(X)                                                                          \
	X(OK, 0, "ok", 200, 0, "success")                                                          \
	X(E_INVALID, -1, "invalid_argument", 400, 3, "a field of the request is not valid")        \
	X(E_UNAUTHENTICATED, -2, "unauthenticated", 401, 16, "a valid bearer token is required")   \
	X(E_FORBIDDEN, -3, "forbidden", 403, 7,                                                    \
	  "the token's role or tenant does not allow this call")                                   \
	X(E_NOT_FOUND, -4, "not_found", 404, 5, "no such object")                                  \
	X(E_METHOD, -5, "method_not_allowed", 405, 12, "the path exists, the method does not")     \
	X(E_CONFLICT, -6, "conflict", 409, 6, "the object exists with other content")              \
	X(E_IN_USE, -7, "in_use", 409, 9, "the object is still in use")                            \
	X(E_SESSION_EXPIRED, -8, "session_expired", 410, 9, "the session's deadline has passed")   \
	X(E_SESSION_ENDED, -9, "session_ended", 409, 9, "the session has ended already")           \
	X(E_TOO_LARGE, -10, "too_large", 413, 8, "the request is over a limit")                    \
	X(E_TOO_MANY, -11, "too_many", 429, 8, "too many of these at a time")                      \
	X(E_INTERNAL, -12, "internal", 500, 13, "a bug of the server")                             \
	X(E_UNSUPPORTED, -13, "unsupported", 501, 12, "not supported by this server")              \
	X(E_NOT_READY, -14, "not_ready", 503, 14, "the server is starting or recovering")          \
	X(E_NOT_OWNER, -15, "not_owner", 503, 14, "another manager owns this partition")           \
	X(E_JOURNAL_FULL, -16, "journal_full", 503, 14, "the journal is at its bound")             \
	X(E_STORE_FULL, -17, "store_full", 503, 14, "the metadata store is out of space")          \
	X(E_STORE_IO, -18, "store_io", 503, 14, "the metadata store failed; nothing was written")  \
	X(E_UNKNOWN_OUTCOME, -19, "unknown_outcome", 503, 14, "it may or may not be stored: retry")\
	X(E_UNAVAILABLE, -20, "unavailable", 503, 14, "no healthy storage")                        \
	X(E_NO_SPACE, -21, "no_space", 507, 8, "no room, and nothing that may be evicted")         \
	X(E_QUOTA, -22, "over_quota", 507, 8, "a quota is reached, and nothing may be evicted")    \
	X(E_NOMEM, -23, "out_of_memory", 503, 8, "out of memory")                                  \
	X(E_CORRUPT, -24, "corrupt", 500, 15, "stored data does not match its checksum or format") \
	X(E_FOREIGN, -25, "foreign", 409, 9, "the file or directory belongs to somebody else")     \
	X(E_IO, -26, "io", 500, 14, "an input/output error")                                       \
	X(E_TIMEOUT, -27, "timeout", 504, 4, "it took too long")                                   \
	X(E_FENCED, -28, "fenced", 503, 14, "a newer owner has taken over")                        \
	X(E_NETWORK, -29, "network", 503, 14, "the other side could not be reached")               \
	X(E_MISMATCH, -30, "mismatch", 500, 15, "bytes read differ from the bytes written")

enum skv_status {
#define SKV_STATUS_ENUM(name, number, code, http, grpc, text) SKV_##name = (number),
	SKV_STATUS_MAP(SKV_STATUS_ENUM)
#undef SKV_STATUS_ENUM
	/* Not an error: the call continues, and its completion function is called later, exactly
	 * once. */
	SKV_PENDING = 1,
};

#define SKV_FIELD_MAX 96
#define SKV_MESSAGE_MAX 320

/* The error, for a human reader. `field` names the request field (JSON path such as `keys_hex[3]`)
 * or is empty. `message` must not contain server-side paths or internals if it can reach a client.
 * Both are NUL-terminated. */
struct skv_error {
	int status;
	char field[SKV_FIELD_MAX];
	char message[SKV_MESSAGE_MAX];
};

/* Texts and codes of a status. Unknown numbers are answered as E_INTERNAL. Never NULL. */
const char *skv_status_name(int status); /* wire code, e.g. "not_found" */
const char *skv_status_text(int status);
int skv_status_http(int status);
int skv_status_grpc(int status);
/* Wire code back to a status; E_INTERNAL for a code that is not in the list. */
int skv_status_from_name(const char *name);

/* Sets *err (if not NULL) and returns `status`. `field` may be NULL. Texts are truncated to
 * fit, never inside a UTF-8 character. `field` and arguments may point into *err, to extend its
 * message. */
int skv_fail(struct skv_error *err, int status, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Clears *err to SKV_OK with empty texts. NULL is allowed. */
void skv_error_clear(struct skv_error *err);

#endif
