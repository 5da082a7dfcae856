/*
 * auth.h - bearer tokens: which role and tenant a caller has.
 */
#ifndef KVB_AUTH_H
#define KVB_AUTH_H

#include <stdbool.h>

#include <kvb/limits.h>
#include <kvb/lock.h>
#include <kvb/status.h>

#include <kvb/routes.h>

#define AUTH_DIGEST 32 /* bytes */
#define AUTH_KEY 32    /* bytes */

struct auth_token {
	uint8_t digest[AUTH_DIGEST]; /* of the token's text, under auth.key */
	enum role role;
	char tenant[KVB_MAX_NAME + 1];
};

struct auth {
	char *path; /* NULL = no tokens: everybody is admin of "default" */
	uint8_t key[AUTH_KEY]; /* random, of this process */
	struct kvb_rwlock lock;
	struct auth_token *tokens; /* protected by lock */
	size_t n;                  /* protected by lock */
};

/* Who calls. */
struct caller {
	enum role role;
	char tenant[KVB_MAX_NAME + 1];
};

/* `path` "" or NULL = no tokens. Reads the file: KVB_E_INVALID with the remedy. */
int kvb_auth_init(struct auth *a, const char *path, struct kvb_error *err);
void kvb_auth_destroy(struct auth *a);
/* Reads the file again; on failure the old tokens stay. Any thread. */
int kvb_auth_reload(struct auth *a, struct kvb_error *err);
/* `header` is the Authorization header or NULL. KVB_E_UNAUTHENTICATED. Any thread. */
int kvb_auth_check(struct auth *a, const char *header, struct caller *out, struct kvb_error *err);

#endif
