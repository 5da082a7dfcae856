/*
 * auth.h - bearer tokens: which role and tenant a caller has.
 *
 * A token comes as `Bearer TOKEN`, or as the password of `Basic`, whoever the user is: many clients make that of
 * http://user:TOKEN@host.
 *
 * Two tables: the tokens file, and the tokens that an administrator gives while the manager runs ("given" below:
 * in memory, of role admin). With neither everybody is admin of "default". With given ones only, whoever shows
 * none of them may still do all that needs no admin, as the tenant "default".
 */
#ifndef SKV_AUTH_H
#define SKV_AUTH_H

#include <stdbool.h>

#include <stdint.h>

#include <skv/arena.h>
#include <skv/limits.h>
#include <skv/lock.h>
#include <skv/status.h>

#include <skv/api.h>

#define AUTH_DIGEST 32 /* bytes */
#define AUTH_KEY 32    /* bytes */
#define AUTH_GIVEN_MAX 256

struct auth_token {
	uint8_t digest[AUTH_DIGEST]; /* of the token's text, under auth.key */
	enum role role;
	char tenant[SKV_MAX_NAME + 1];
	uint32_t fingerprint; /* FNV-1a of the text; of given ones only */
};

struct auth {
	char *path; /* NULL = no tokens: everybody is admin of "default" */
	uint8_t key[AUTH_KEY]; /* random, of this process */
	struct skv_rwlock lock;
	struct auth_token *tokens; /* protected by lock */
	size_t n;                  /* protected by lock */
	struct auth_token given[AUTH_GIVEN_MAX]; /* protected by lock */
	size_t n_given;                          /* protected by lock */
};

/* What came as Authorization. */
enum credentials {
	CREDENTIALS_NONE,
	CREDENTIALS_MALFORMED, /* no token in a known form */
	CREDENTIALS_UNKNOWN,   /* one that nobody has been given */
	CREDENTIALS_GOOD,
};

/* Who calls. */
struct caller {
	enum role role;
	enum credentials credentials;
	char tenant[SKV_MAX_NAME + 1];
};

/* `path` "" or NULL = no tokens. Reads the file: SKV_E_INVALID with the remedy. */
int skv_auth_init(struct auth *a, const char *path, struct skv_error *err);
void skv_auth_destroy(struct auth *a);
/* Reads the file again; on failure the old tokens stay. Any thread. */
int skv_auth_reload(struct auth *a, struct skv_error *err);
/* `header` is the Authorization header or NULL. SKV_E_UNAUTHENTICATED, out->credentials then tells why. Any thread. */
int skv_auth_check(struct auth *a, const char *header, struct caller *out, struct skv_error *err);

/* Replaces all given tokens; n 0: none any more. SKV_E_INVALID naming "tokens[i]". Any thread. */
int skv_auth_give(struct auth *a, const char *tenant, const char *const *tokens, size_t n, struct skv_error *err);
/* Replaces one of them. SKV_E_INVALID: field "old_token" if there is no such one, "new_token". Any thread. */
int skv_auth_rotate(struct auth *a, const char *old_token, const char *new_token, struct skv_error *err);
/* The given ones' fingerprints, in `arena`. Returns whether any token is asked for at all. Any thread. */
bool skv_auth_given(struct auth *a, struct skv_arena *arena, const uint32_t **fingerprints, size_t *n);

#endif
