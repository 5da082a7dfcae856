/*
 * auth.h - bearer tokens: a caller's role and tenant.
 *
 * Tokens are kept as hashes (token.h).
 *
 * A token comes as `Bearer TOKEN`, or as the password of `Basic` with any user: many clients send
 * that for http://user:TOKEN@host.
 *
 * Three tables: the tokens file; tokens in the store, which an administrator adds and revokes by
 * the API and which count only beside a file (tokens.h); and tokens that an administrator sets
 * while the manager runs ("given" below: in memory, of role admin). Without any table, every caller
 * is admin of "default". With given tokens only, callers without a token may still call everything
 * that needs no admin, as the tenant "default".
 */
#ifndef SKV_AUTH_H
#define SKV_AUTH_H

#include <stdatomic.h>
#include <stdbool.h>

#include <stdint.h>

#include <skv/arena.h>
#include <skv/limits.h>
#include <skv/lock.h>
#include <skv/status.h>

#include <skv/api.h>
#include <skv/tls_peer.h>
#include <skv/token.h>

#define AUTH_GIVEN_MAX 256
#define AUTH_STORED_MAX 4096 /* tokens in the store */

struct auth_table {
	struct auth_token *v;
	size_t n, cap;
};

struct auth {
	char *path; /* NULL = no tokens: everybody is admin of "default" */
	struct skv_rwlock lock;
	struct auth_table file, stored; /* protected by lock */
	/* Protected by lock: of the reading that made `stored`; 0 = none has yet. */
	uint64_t stored_turn;
	atomic_uint_fast64_t turns;     /* of readings that have begun */
	bool uses_store;                /* set once: there will be a `stored` */
	struct auth_token given[AUTH_GIVEN_MAX]; /* protected by lock */
	size_t n_given;                          /* protected by lock */
	char manager[33]; /* set once */
};

/* The result of checking the Authorization header, or the certificate. */
enum credentials {
	CREDENTIALS_NONE,
	CREDENTIALS_MALFORMED, /* no token in a known form */
	CREDENTIALS_UNKNOWN,   /* an unknown token */
	CREDENTIALS_GOOD,
};

/* The caller. */
struct caller {
	enum role role;
	enum credentials credentials;
	char tenant[SKV_MAX_NAME + 1];
	char name[AUTH_NAME + 1]; /* of the token, for the audit log; "" = none */
	uint64_t token;           /* a part of the hash of the one that was shown; 0 = none */
};

/* Appends the token of a line (skv_token_read); a line without one adds nothing. */
int skv_auth_add_line(struct auth_table *t, char *line, const char *where, unsigned number,
		      struct skv_error *err);

/* `path` "" or NULL = no tokens. Reads the file: SKV_E_INVALID with the remedy. */
int skv_auth_init(struct auth *a, const char *path, struct skv_error *err);
void skv_auth_destroy(struct auth *a);
/* Rereads the file; on failure the old tokens stay. Any thread. */
int skv_auth_reload(struct auth *a, struct skv_error *err);
/* Tokens in the store count from now on: until they have been read, a token that is in no table is
 * SKV_E_NOT_READY. Before calls come. */
void skv_auth_use_store(struct auth *a);
/* A reading of the store begins: the number for its end. Any thread. */
uint64_t skv_auth_begin_stored(struct auth *a);
/* Exchanges the table for the previous one, unless a read that began later was faster; the caller
 * then frees the table in *t. Any thread. */
void skv_auth_set_stored(struct auth *a, struct auth_table *t, uint64_t turn);
/* Copies of the tokens of the file and of the store, in `arena`. SKV_E_NOMEM. Any thread. */
int skv_auth_list(struct auth *a, struct skv_arena *arena, struct auth_table *file,
		  struct auth_table *stored, struct skv_error *err);
/* `header` is the Authorization header or NULL; then `peer` counts: the client's certificate, or
 * NULL. SKV_E_UNAUTHENTICATED, out->credentials says why. Any thread. */
int skv_auth_check(struct auth *a, const char *header, const struct skv_tls_peer *peer,
		   struct caller *out, struct skv_error *err);

/* Text of the token by which other managers of the store call this one, new with each process: 32
 * hex digits, NUL-terminated. Known after skv_auth_init. */
const char *skv_auth_manager_token(const struct auth *a);
/* Returns true if the header has the token of managers. Then *out is a manager: an administrator of
 * tenant default. Any thread. */
bool skv_auth_is_manager(const struct auth *a, const char *header, struct caller *out);

/* Replaces all given tokens; n 0: removes them. SKV_E_INVALID naming "tokens[i]". Any thread. */
int skv_auth_give(struct auth *a, const char *tenant, const char *const *tokens, size_t n,
		  struct skv_error *err);
/* Replaces one given token. SKV_E_INVALID: field "old_token" if it is unknown, "new_token". Any
 * thread. */
int skv_auth_rotate(struct auth *a, const char *old_token, const char *new_token,
		    struct skv_error *err);
/* The given tokens' fingerprints, in `arena`. Returns whether any token is required. Any thread. */
bool skv_auth_given(struct auth *a, struct skv_arena *arena, const uint32_t **fingerprints,
		    size_t *n);

#endif
