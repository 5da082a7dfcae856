/*
 * account.c - accounts, stored as documents of the core.
 *
 * A password is kept only as Argon2id with a salt of its own (libsodium), at the
 * library's interactive cost. The document is {"role":N,"password":"$argon2id$..."}. No
 * state; any thread that may block.
 */
#include "account.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include <skv/json.h>
#include <skv/json_out.h>
#include <skv/lock.h>
#include <skv/ops.h>

#define PREFIX "account/"
#define ROLES 2

static int document_name(const char *name, char out[sizeof PREFIX + SKV_MAX_NAME],
			 struct skv_error *err)
{
	if (!skv_name_valid(name, strlen(name)))
		return skv_fail(
			err, SKV_E_INVALID, "user_name",
			"user_name must be 1..%u of A-Z a-z 0-9 . _ - : = @ + , and begin with a "
			"letter, digit or _",
			SKV_MAX_NAME);
	assert(strlen(name) <= SKV_MAX_NAME);
	snprintf(out, sizeof PREFIX + SKV_MAX_NAME, PREFIX "%s", name);
	return SKV_OK;
}

static int insert(struct skv_cluster *cluster, const char *document, int role, const char *hash,
		  struct skv_error *err)
{
	struct skv_buf text;
	int rc;

	skv_buf_init(&text);
	skv_jout_begin(&text);
	skv_jout_field_u64(&text, "role", (uint64_t)role);
	skv_jout_field_string(&text, "password", hash);
	skv_jout_close(&text, '}');
	skv_put_u8(&text, '\0');
	rc = text.failed
		     ? skv_fail(err, SKV_E_NOMEM, NULL, "out of memory")
		     : skv_cluster_doc_put(cluster, document, SKV_PUT_NEW,
					   (const char *)text.data, err);
	skv_buf_destroy(&text);
	return rc;
}

int kvcm_account_add(struct skv_cluster *cluster, const char *name, const char *password, int role,
		     struct skv_error *err)
{
	char hash[crypto_pwhash_STRBYTES], document[sizeof PREFIX + SKV_MAX_NAME];
	size_t n = strlen(password);
	int rc = document_name(name, document, err);

	if (rc != SKV_OK)
		return rc;
	if (role < 0 || role >= ROLES)
		return skv_fail(err, SKV_E_INVALID, "role", "there is no role %d", role);
	if (n == 0 || n > KVCM_PASSWORD_MAX)
		return skv_fail(err, SKV_E_INVALID, "password", "a password has 1..%d bytes",
				KVCM_PASSWORD_MAX);
	assert(skv_thread_locks == 0); /* hashing takes a tenth of a second */
	if (crypto_pwhash_str(hash, password, n, crypto_pwhash_OPSLIMIT_INTERACTIVE,
			      crypto_pwhash_MEMLIMIT_INTERACTIVE) != 0)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	rc = insert(cluster, document, role, hash, err);
	if (rc == SKV_E_CONFLICT)
		return skv_fail(err, rc, "user_name", "the account %s exists", name);
	return rc;
}

int kvcm_account_delete(struct skv_cluster *cluster, const char *name, struct skv_error *err)
{
	char document[sizeof PREFIX + SKV_MAX_NAME];
	int rc = document_name(name, document, err);

	if (rc == SKV_OK)
		rc = skv_cluster_doc_delete(cluster, document, err);
	if (rc == SKV_E_NOT_FOUND)
		return skv_fail(err, rc, "user_name", "there is no account %s", name);
	return rc;
}

static bool parse(struct skv_arena *a, const struct skv_doc *doc, struct kvcm_account *out)
{
	const struct skv_json_node *role, *hash;
	struct skv_json_doc json;

	if (!skv_json_parse(&json, a, doc->text, strlen(doc->text),
			    &(struct skv_json_limits){ .depth = 4, .values = 64 }))
		return false;
	role = skv_json_get(json.root, "role", 4);
	hash = skv_json_get(json.root, "password", 8);
	if (!role || role->type != SKV_JSON_INTEGER || role->i < 0 || role->i >= ROLES || !hash ||
	    hash->type != SKV_JSON_STRING)
		return false;
	assert(strncmp(doc->name, PREFIX, strlen(PREFIX)) == 0);
	out->name = doc->name + strlen(PREFIX);
	out->role = (int)role->i;
	out->hash = skv_arena_strndup(a, hash->s, hash->n);
	return out->hash != NULL;
}

int kvcm_account_list(struct skv_cluster *cluster, struct skv_arena *a, struct kvcm_account **out,
		      uint32_t *n, struct skv_error *err)
{
	struct skv_doc *docs = NULL;
	uint32_t count = 0;
	int rc = skv_cluster_doc_list(cluster, PREFIX, a, &docs, &count, err);

	if (rc != SKV_OK)
		return rc;
	*out = skv_arena_calloc(a, count ? count : 1, sizeof **out);
	if (!*out)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < count; i++)
		if (!parse(a, &docs[i], &(*out)[i]))
			return skv_fail(err, SKV_E_CORRUPT, NULL, "the account %s cannot be read",
					docs[i].name + strlen(PREFIX));
	*n = count;
	return SKV_OK;
}
