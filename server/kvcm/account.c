/*
 * account.c - accounts as documents of the core.
 *
 * A password is kept only as Argon2id with a salt of its own (libsodium), at the library's interactive cost. The
 * document is {"role":N,"password":"$argon2id$..."}. No state; any thread that may block.
 */
#include "account.h"

#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include <kvb/json.h>
#include <kvb/json_out.h>
#include <kvb/ops.h>

#define PREFIX "account/"
#define ROLES 2

/* kvb_core_doc_put's `expect` */
#define DOC_NEW 0u
#define DOC_ANY UINT64_MAX

static int document_name(const char *name, char out[sizeof PREFIX + KVB_MAX_NAME], struct kvb_error *err)
{
	if (!kvb_name_valid(name, strlen(name)))
		return kvb_fail(err, KVB_E_INVALID, "user_name",
				"user_name must be 1..%u of A-Z a-z 0-9 . _ - : = @ + , and begin with a letter, digit or _",
				KVB_MAX_NAME);
	snprintf(out, sizeof PREFIX + KVB_MAX_NAME, PREFIX "%s", name);
	return KVB_OK;
}

int kvcm_account_check(const struct kvcm_account *account, struct kvb_error *err)
{
	char ignored[sizeof PREFIX + KVB_MAX_NAME];
	size_t n = strlen(account->hash);
	int rc = document_name(account->name, ignored, err);

	if (rc != KVB_OK)
		return rc;
	if (account->role < 0 || account->role >= ROLES)
		return kvb_fail(err, KVB_E_INVALID, "role", "there is no role %d", account->role);
	if (n >= crypto_pwhash_STRBYTES || strncmp(account->hash, crypto_pwhash_STRPREFIX, strlen(crypto_pwhash_STRPREFIX)) != 0 ||
	    strspn(account->hash, "$=,+/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != n)
		return kvb_fail(err, KVB_E_INVALID, "password", "a password is kept as its hash, " crypto_pwhash_STRPREFIX "...");
	return KVB_OK;
}

static int put(struct kvb_core *core, const struct kvcm_account *account, uint64_t expect, struct kvb_error *err)
{
	char name[sizeof PREFIX + KVB_MAX_NAME];
	struct kvb_buf text;
	int rc = kvcm_account_check(account, err);

	if (rc == KVB_OK)
		rc = document_name(account->name, name, err);
	if (rc != KVB_OK)
		return rc;
	kvb_buf_init(&text);
	kvb_jout_begin(&text);
	kvb_jout_field_u64(&text, "role", (uint64_t)account->role);
	kvb_jout_field_string(&text, "password", account->hash);
	kvb_jout_close(&text, '}');
	kvb_put_u8(&text, '\0');
	rc = text.failed ? kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory")
			 : kvb_core_doc_put(core, name, expect, (const char *)text.data, NULL, err);
	kvb_buf_destroy(&text);
	return rc;
}

int kvcm_account_put(struct kvb_core *core, const struct kvcm_account *account, struct kvb_error *err)
{
	return put(core, account, DOC_ANY, err);
}

int kvcm_account_add(struct kvb_core *core, const char *name, const char *password, int role, struct kvb_error *err)
{
	char hash[crypto_pwhash_STRBYTES];
	struct kvcm_account account = { name, role, crypto_pwhash_STRPREFIX };
	size_t n = strlen(password);
	int rc = kvcm_account_check(&account, err); /* before the work */

	if (rc != KVB_OK)
		return rc;
	if (n == 0 || n > KVCM_PASSWORD_MAX)
		return kvb_fail(err, KVB_E_INVALID, "password", "a password has 1..%d bytes", KVCM_PASSWORD_MAX);
	if (crypto_pwhash_str(hash, password, n, crypto_pwhash_OPSLIMIT_INTERACTIVE,
			      crypto_pwhash_MEMLIMIT_INTERACTIVE) != 0)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	account.hash = hash;
	rc = put(core, &account, DOC_NEW, err);
	if (rc == KVB_E_CONFLICT)
		return kvb_fail(err, rc, "user_name", "the account %s exists", name);
	return rc;
}

int kvcm_account_delete(struct kvb_core *core, const char *name, struct kvb_error *err)
{
	char document[sizeof PREFIX + KVB_MAX_NAME];
	int rc = document_name(name, document, err);

	if (rc == KVB_OK)
		rc = kvb_core_doc_delete(core, document, err);
	if (rc == KVB_E_NOT_FOUND)
		return kvb_fail(err, rc, "user_name", "there is no account %s", name);
	return rc;
}

static bool parse(struct kvb_arena *a, const struct kvb_doc *doc, struct kvcm_account *out)
{
	const struct kvb_json_node *role, *hash;
	struct kvb_json_doc json;

	if (!kvb_json_parse(&json, a, doc->text, strlen(doc->text), &(struct kvb_json_limits){ .depth = 4, .values = 64 }))
		return false;
	role = kvb_json_get(json.root, "role", 4);
	hash = kvb_json_get(json.root, "password", 8);
	if (!role || role->type != KVB_JSON_INTEGER || role->i < 0 || role->i >= ROLES || !hash ||
	    hash->type != KVB_JSON_STRING)
		return false;
	out->name = doc->name + strlen(PREFIX);
	out->role = (int)role->i;
	out->hash = kvb_arena_strndup(a, hash->s, hash->n);
	return out->hash != NULL;
}

int kvcm_account_list(struct kvb_core *core, struct kvb_arena *a, struct kvcm_account **out, uint32_t *n,
		      struct kvb_error *err)
{
	struct kvb_doc *docs = NULL;
	uint32_t count = 0;
	int rc = kvb_core_doc_list(core, PREFIX, a, &docs, &count, err);

	if (rc != KVB_OK)
		return rc;
	*out = kvb_arena_calloc(a, count ? count : 1, sizeof **out);
	if (!*out)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < count; i++)
		if (!parse(a, &docs[i], &(*out)[i]))
			return kvb_fail(err, KVB_E_CORRUPT, NULL, "the account %s cannot be read",
					docs[i].name + strlen(PREFIX));
	*n = count;
	return KVB_OK;
}
