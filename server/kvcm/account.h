/*
 * account.h - accounts: a name, a role, a password's hash, each a document of the core
 * ("account/<name>").
 *
 * Nothing here lets anybody in: tokens do (skv/auth.h). Accounts are kept
 * for tools that manage them.
 */
#ifndef KVCM_ACCOUNT_H
#define KVCM_ACCOUNT_H

#include <stdint.h>

#include <skv/arena.h>
#include <skv/core.h>

#define KVCM_PASSWORD_MAX 1024 /* bytes */

struct kvcm_account {
	const char *name; /* skv_name_valid */
	int role;         /* of the peer's enum AccountRole: 0 user, 1 admin */
	const char *hash; /* of the password, as crypto_pwhash_str writes it */
};

/* Adds an account. The hash takes a tenth of a second and 64 MiB. Blocks.
 * SKV_E_CONFLICT: the account exists; SKV_E_INVALID names "user_name", "role" or "password". */
int kvcm_account_add(struct skv_cluster *cluster, const char *name, const char *password, int role,
		     struct skv_error *err);
/* SKV_E_NOT_FOUND. Blocks. */
int kvcm_account_delete(struct skv_cluster *cluster, const char *name, struct skv_error *err);
/* All, by name, in `a`. */
int kvcm_account_list(struct skv_cluster *cluster, struct skv_arena *a, struct kvcm_account **out,
		      uint32_t *n, struct skv_error *err);

#endif
