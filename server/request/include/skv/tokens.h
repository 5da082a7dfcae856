/*
 * tokens.h - bearer tokens in the store: every manager of the store accepts them.
 *
 * Each is a document "token/NAME" with one line of token.h, or two while a token is replaced and
 * the previous one is still accepted. Stored tokens count only beside a tokens file, which has the
 * first administrator's. A thread of each manager reads them every SKV_TOKENS_EVERY_MS; the manager
 * that changes them, at once.
 */
#ifndef SKV_TOKENS_H
#define SKV_TOKENS_H

#include <pthread.h>
#include <stdbool.h>

#include <skv/arena.h>
#include <skv/lock.h>
#include <skv/ops.h>
#include <skv/status.h>

struct auth;
struct skv_cluster;
struct skv_tenants;

#define SKV_TOKENS_EVERY_MS 2000u

struct skv_tokens {
	struct auth *auth;
	struct skv_tenants *tenants;
	struct skv_cluster *cluster;
	struct skv_mutex lock;
	struct skv_cond wake;
	bool ending; /* protected by lock */
	bool running;
	bool told; /* of the thread: that they cannot be read */
	pthread_t thread;
};

/* Reads them, and with them the tenants, if the store answers, and goes on doing so. A no-op
 * without a tokens file. */
int skv_tokens_start(struct skv_tokens *t, struct auth *auth, struct skv_tenants *tenants,
		     struct skv_cluster *cluster, struct skv_error *err);
/* Blocks as long as a call of the store does. */
void skv_tokens_stop(struct skv_tokens *t);

/* Adds the token `name`, or replaces it. Durable, and accepted here, when it returns. Blocks.
 * SKV_E_CONFLICT: there is no tokens file, or it has a token of that name. */
int skv_tokens_put(struct skv_tokens *t, const char *name, const struct skv_token_spec *spec,
		   bool *created, struct skv_error *err);
/* Revokes it: not accepted here any more when it returns; elsewhere after SKV_TOKENS_EVERY_MS.
 * Blocks. SKV_E_NOT_FOUND, SKV_E_CONFLICT: it is of the file. */
int skv_tokens_delete(struct skv_tokens *t, const char *name, struct skv_error *err);
/* Lists the tokens of the file and of the store; `name` NULL: all. SKV_E_NOT_FOUND. */
int skv_tokens_list(struct skv_tokens *t, const char *name, struct skv_arena *a,
		    struct skv_token_view **out, uint32_t *n, struct skv_error *err);

#endif
