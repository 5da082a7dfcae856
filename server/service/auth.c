/*
 * auth.c - reads the tokens file and compares bearer tokens.
 *
 * Owns the table of digests; the tokens' texts are wiped after reading. A presented token is hashed
 * under a random key of this process and compared with every digest in constant time, so neither
 * its length nor a matching beginning shows in the time taken. Any thread checks (read lock); a
 * reload builds a new table first and swaps it under the write lock. No lock is held across file
 * I/O.
 */
#include <kvb/auth.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <sodium.h>

#include <kvb/hash.h>
#include <kvb/mem.h>
#include <kvb/ops.h>

#define TOKEN_MIN 16
#define TOKEN_MAX 512

struct table {
	struct auth_token *v;
	size_t cap;
	size_t n;
};

static void digest(const struct auth *a, const char *token, size_t n, uint8_t out[AUTH_DIGEST])
{
	crypto_generichash(out, AUTH_DIGEST, (const uint8_t *)token, n, a->key, sizeof a->key);
}

static bool parse_role(const char *s, enum role *out)
{
	static const struct {
		const char *name;
		enum role role;
	} roles[] = { { "read", ROLE_READ }, { "write", ROLE_WRITE }, { "admin", ROLE_ADMIN } };

	for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
		if (strcmp(s, roles[i].name) == 0) {
			*out = roles[i].role;
			return true;
		}
	}
	return false;
}

/* Visible ASCII only: what a header can carry unchanged. */
static bool token_valid(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f)
			return false;
	return n >= TOKEN_MIN && n <= TOKEN_MAX;
}

/* Messages name the line, never its content. */
static int read_line(const struct auth *a, char *line, unsigned number, struct table *t,
		     struct kvb_error *err)
{
	char *rest = NULL;
	char *word[4];
	struct auth_token *token;
	void *grown = t->v;

	word[0] = strtok_r(line, " \t\r\n", &rest);
	if (!word[0] || word[0][0] == '#')
		return KVB_OK;
	for (int i = 1; i < 4; i++)
		word[i] = strtok_r(NULL, " \t\r\n", &rest);
	if (!word[2] || word[3])
		return kvb_fail(err, KVB_E_INVALID, "tokens_file",
				"%s:%u: expected 'role tenant token'", a->path, number);
	if (kvb_grow(&grown, &t->cap, t->n + 1, sizeof *t->v) != KVB_OK)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	t->v = grown;
	token = &t->v[t->n];
	if (!parse_role(word[0], &token->role))
		return kvb_fail(err, KVB_E_INVALID, "tokens_file",
				"%s:%u: the role must be read, write or admin", a->path, number);
	if (!kvb_name_valid(word[1], strlen(word[1])))
		return kvb_fail(err, KVB_E_INVALID, "tokens_file",
				"%s:%u: the tenant must be 1..%u of A-Z a-z 0-9 . _ - (usually: "
				"default)", a->path, number, KVB_MAX_NAME);
	if (!token_valid(word[2]))
		return kvb_fail(err, KVB_E_INVALID, "tokens_file",
				"%s:%u: a token has %d..%d visible ASCII characters; make one with "
				"'openssl rand -hex 32'",
				a->path, number, TOKEN_MIN, TOKEN_MAX);
	snprintf(token->tenant, sizeof token->tenant, "%s", word[1]);
	digest(a, word[2], strlen(word[2]), token->digest);
	t->n++;
	return KVB_OK;
}

static int check_mode(const struct auth *a, FILE *f, struct kvb_error *err)
{
	struct stat st;

	if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode))
		return kvb_fail(err, KVB_E_INVALID, "tokens_file", "%s is not a regular file",
				a->path);
	if (st.st_mode & (S_IROTH | S_IWOTH | S_IWGRP))
		return kvb_fail(err, KVB_E_INVALID, "tokens_file",
				"%s is readable by everybody or writable by others: run 'chmod "
				"600 %s', and replace the tokens if others have used this machine",
				a->path, a->path);
	return KVB_OK;
}

static int read_table(const struct auth *a, struct table *t, struct kvb_error *err)
{
	FILE *f = fopen(a->path, "re");
	unsigned number = 0;
	char *line = NULL;
	size_t size = 0;
	int rc;

	if (!f)
		return kvb_fail(err, KVB_E_INVALID, "tokens_file", "cannot read %s: %s", a->path,
				strerror(errno));
	rc = check_mode(a, f, err);
	while (rc == KVB_OK && getline(&line, &size, f) >= 0)
		rc = read_line(a, line, ++number, t, err);
	if (rc == KVB_OK && t->n == 0)
		rc = kvb_fail(err, KVB_E_INVALID, "tokens_file",
			      "%s holds no token: add a line 'admin default TOKEN'", a->path);
	if (line)
		sodium_memzero(line, size);
	free(line); /* getline's own */
	fclose(f);
	return rc;
}

int kvb_auth_reload(struct auth *a, struct kvb_error *err)
{
	struct table t = { 0 };
	struct auth_token *old;
	int rc;

	if (!a->path)
		return KVB_OK;
	rc = read_table(a, &t, err);
	if (rc != KVB_OK) {
		kvb_free(t.v);
		return rc;
	}
	kvb_rwlock_write(&a->lock);
	old = a->tokens;
	a->tokens = t.v;
	a->n = t.n;
	kvb_rwlock_write_unlock(&a->lock);
	kvb_free(old);
	return KVB_OK;
}

int kvb_auth_init(struct auth *a, const char *path, struct kvb_error *err)
{
	int rc;

	memset(a, 0, sizeof *a);
	kvb_rwlock_init(&a->lock);
	kvb_random(a->key, sizeof a->key);
	if (!path || !*path)
		return KVB_OK;
	a->path = kvb_strdup(path);
	rc = a->path ? kvb_auth_reload(a, err) : kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	if (rc != KVB_OK)
		kvb_auth_destroy(a);
	return rc;
}

void kvb_auth_destroy(struct auth *a)
{
	kvb_free(a->tokens);
	kvb_free(a->path);
	kvb_rwlock_destroy(&a->lock);
	memset(a, 0, sizeof *a);
}

static int refuse(struct kvb_error *err)
{
	return kvb_fail(err, KVB_E_UNAUTHENTICATED, NULL,
			"a valid token is required: send 'Authorization: Bearer TOKEN'");
}

int kvb_auth_check(struct auth *a, const char *header, struct caller *out, struct kvb_error *err)
{
	uint8_t sum[AUTH_DIGEST];
	bool found = false;
	size_t n;

	if (!a->path) {
		out->role = ROLE_ADMIN;
		snprintf(out->tenant, sizeof out->tenant, "default");
		return KVB_OK;
	}
	if (!header || strncasecmp(header, "Bearer ", 7) != 0)
		return refuse(err);
	header += 7 + strspn(header + 7, " ");
	n = strlen(header);
	if (n > TOKEN_MAX)
		return refuse(err);
	digest(a, header, n, sum);
	kvb_rwlock_read(&a->lock);
	for (size_t i = 0; i < a->n; i++) {
		/* Every entry is compared, so that the time does not tell which one it was. */
		if (kvb_equal_secret(sum, a->tokens[i].digest, sizeof sum) && !found) {
			found = true;
			out->role = a->tokens[i].role;
			memcpy(out->tenant, a->tokens[i].tenant, sizeof out->tenant);
		}
	}
	kvb_rwlock_read_unlock(&a->lock);
	return found ? KVB_OK : refuse(err);
}
