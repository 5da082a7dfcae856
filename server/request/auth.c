/*
 * auth.c - reads the tokens file and compares bearer tokens, also those that come as a Basic password.
 *
 * Owns the table of digests; the tokens' texts are wiped after reading. A presented token is hashed
 * under a random key of this process and compared with every digest in constant time, so neither
 * its length nor a matching beginning shows in the time taken. Any thread checks (read lock); a
 * reload builds a new table first and swaps it under the write lock. No lock is held across file
 * I/O. Tokens given while it runs are kept the same way, with the fingerprint that people compare.
 */
#include <skv/auth.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <sodium.h>

#include <skv/hash.h>
#include <skv/mem.h>
#include <skv/ops.h>

#define TOKEN_MIN 16
#define TOKEN_MAX 512
#define TOKEN_ROOM (TOKEN_MAX + 1)
#define BASIC_MAX (TOKEN_MAX + 256) /* with the user's name */

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
		     struct skv_error *err)
{
	char *rest = NULL;
	char *word[4];
	struct auth_token *token;
	void *grown = t->v;

	word[0] = strtok_r(line, " \t\r\n", &rest);
	if (!word[0] || word[0][0] == '#')
		return SKV_OK;
	for (int i = 1; i < 4; i++)
		word[i] = strtok_r(NULL, " \t\r\n", &rest);
	if (!word[2] || word[3])
		return skv_fail(err, SKV_E_INVALID, "tokens_file",
				"%s:%u: expected 'role tenant token'", a->path, number);
	if (skv_grow(&grown, &t->cap, t->n + 1, sizeof *t->v) != SKV_OK)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	t->v = grown;
	token = &t->v[t->n];
	if (!parse_role(word[0], &token->role))
		return skv_fail(err, SKV_E_INVALID, "tokens_file",
				"%s:%u: the role must be read, write or admin", a->path, number);
	if (!skv_model_name_valid(word[1], strlen(word[1])))
		return skv_fail(err, SKV_E_INVALID, "tokens_file",
				"%s:%u: the tenant must be 1..%u of A-Z a-z 0-9 . _ - : = @ + , (usually: "
				"default)", a->path, number, SKV_MAX_NAME);
	if (!token_valid(word[2]))
		return skv_fail(err, SKV_E_INVALID, "tokens_file",
				"%s:%u: a token has %d..%d visible ASCII characters; make one with "
				"'openssl rand -hex 32'",
				a->path, number, TOKEN_MIN, TOKEN_MAX);
	snprintf(token->tenant, sizeof token->tenant, "%s", word[1]);
	digest(a, word[2], strlen(word[2]), token->digest);
	t->n++;
	return SKV_OK;
}

static int check_mode(const struct auth *a, FILE *f, struct skv_error *err)
{
	struct stat st;

	if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode))
		return skv_fail(err, SKV_E_INVALID, "tokens_file", "%s is not a regular file",
				a->path);
	if (st.st_mode & (S_IROTH | S_IWOTH | S_IWGRP))
		return skv_fail(err, SKV_E_INVALID, "tokens_file",
				"%s is readable by everybody or writable by others: run 'chmod "
				"600 %s', and replace the tokens if others have used this machine",
				a->path, a->path);
	return SKV_OK;
}

static int read_table(const struct auth *a, struct table *t, struct skv_error *err)
{
	FILE *f = fopen(a->path, "re");
	unsigned number = 0;
	char *line = NULL;
	size_t size = 0;
	int rc;

	if (!f)
		return skv_fail(err, SKV_E_INVALID, "tokens_file", "cannot read %s: %s", a->path,
				strerror(errno));
	rc = check_mode(a, f, err);
	while (rc == SKV_OK && getline(&line, &size, f) >= 0)
		rc = read_line(a, line, ++number, t, err);
	if (rc == SKV_OK && t->n == 0)
		rc = skv_fail(err, SKV_E_INVALID, "tokens_file",
			      "%s holds no token: add a line 'admin default TOKEN'", a->path);
	if (line)
		sodium_memzero(line, size);
	free(line); /* getline's own */
	fclose(f);
	return rc;
}

int skv_auth_reload(struct auth *a, struct skv_error *err)
{
	struct table t = { 0 };
	struct auth_token *old;
	int rc;

	if (!a->path)
		return SKV_OK;
	rc = read_table(a, &t, err);
	if (rc != SKV_OK) {
		skv_free(t.v);
		return rc;
	}
	skv_rwlock_write(&a->lock);
	old = a->tokens;
	a->tokens = t.v;
	a->n = t.n;
	skv_rwlock_write_unlock(&a->lock);
	skv_free(old);
	return SKV_OK;
}

int skv_auth_init(struct auth *a, const char *path, struct skv_error *err)
{
	int rc;

	memset(a, 0, sizeof *a);
	skv_rwlock_init(&a->lock);
	skv_random(a->key, sizeof a->key);
	if (!path || !*path)
		return SKV_OK;
	a->path = skv_strdup(path);
	rc = a->path ? skv_auth_reload(a, err) : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc != SKV_OK)
		skv_auth_destroy(a);
	return rc;
}

void skv_auth_destroy(struct auth *a)
{
	skv_free(a->tokens);
	skv_free(a->path);
	skv_rwlock_destroy(&a->lock);
	memset(a, 0, sizeof *a);
}

static int refuse(struct caller *out, enum credentials why, struct skv_error *err)
{
	out->credentials = why;
	return skv_fail(err, SKV_E_UNAUTHENTICATED, NULL,
			"a valid token is required: send 'Authorization: Bearer TOKEN'");
}

/* Every entry is compared, so that the time does not tell which one it was. */
static void find_locked(const struct auth *a, const struct auth_token *v, size_t n, const uint8_t sum[AUTH_DIGEST],
			struct caller *out)
{
	assert(skv_rwlock_held(&a->lock));
	for (size_t i = 0; i < n; i++) {
		if (skv_equal_secret(sum, v[i].digest, AUTH_DIGEST) && out->credentials != CREDENTIALS_GOOD) {
			out->credentials = CREDENTIALS_GOOD;
			out->role = v[i].role;
			memcpy(out->tenant, v[i].tenant, sizeof out->tenant);
		}
	}
}

/* The words behind a scheme; NULL: it is another one, or there is not one word. */
static const char *after_scheme(const char *header, const char *scheme)
{
	const size_t n = strlen(scheme);

	if (strncasecmp(header, scheme, n) != 0 || (header[n] != ' ' && header[n] != '\t'))
		return NULL;
	header += n + strspn(header + n, " \t");
	return *header && !strpbrk(header, " \t") ? header : NULL;
}

/* The password of base64("user:password"): what clients make of http://user:TOKEN@host. Any user. GOOD or MALFORMED. */
static enum credentials read_basic(const char *text, char token[TOKEN_ROOM])
{
	const size_t n = strlen(text);
	char plain[BASIC_MAX];
	enum credentials rc = CREDENTIALS_MALFORMED;
	size_t len = 0;
	const char *colon;

	if (n > sodium_base64_ENCODED_LEN(sizeof plain, sodium_base64_VARIANT_ORIGINAL))
		return CREDENTIALS_MALFORMED;
	if (sodium_base642bin((unsigned char *)plain, sizeof plain, text, n, NULL, &len, NULL,
			      sodium_base64_VARIANT_ORIGINAL) != 0)
		return CREDENTIALS_MALFORMED;
	assert(len <= sizeof plain);
	colon = memchr(plain, ':', len);
	if (colon) {
		const size_t size = len - (size_t)(colon + 1 - plain);

		if (size > 0 && size <= TOKEN_MAX && !memchr(colon, '\0', size + 1)) {
			memcpy(token, colon + 1, size);
			token[size] = '\0';
			rc = CREDENTIALS_GOOD;
		}
	}
	sodium_memzero(plain, sizeof plain);
	return rc;
}

/* What `header` holds; GOOD: its token is in `token`, and *otherwise is what to call it if nobody has that. */
static enum credentials read_header(const char *header, char token[TOKEN_ROOM], enum credentials *otherwise)
{
	const char *bearer, *basic;

	*otherwise = CREDENTIALS_UNKNOWN;
	if (!header)
		return CREDENTIALS_NONE;
	bearer = after_scheme(header, "Bearer");
	basic = after_scheme(header, "Basic");
	if (basic) {
		*otherwise = CREDENTIALS_MALFORMED; /* some other password */
		return read_basic(basic, token);
	}
	if (!bearer)
		return CREDENTIALS_MALFORMED;
	if (strlen(bearer) > TOKEN_MAX)
		return CREDENTIALS_UNKNOWN;
	memcpy(token, bearer, strlen(bearer) + 1);
	return CREDENTIALS_GOOD;
}

int skv_auth_check(struct auth *a, const char *header, struct caller *out, struct skv_error *err)
{
	uint8_t sum[AUTH_DIGEST];
	char token[TOKEN_ROOM];
	enum credentials unknown, shown = read_header(header, token, &unknown);
	bool tokens, given;

	if (shown == CREDENTIALS_GOOD)
		digest(a, token, strlen(token), sum);
	out->credentials = CREDENTIALS_UNKNOWN;
	skv_rwlock_read(&a->lock);
	given = a->n_given > 0;
	tokens = a->path || given;
	if (shown == CREDENTIALS_GOOD && tokens) {
		find_locked(a, a->tokens, a->n, sum, out);
		find_locked(a, a->given, a->n_given, sum, out);
	}
	skv_rwlock_read_unlock(&a->lock);
	if (out->credentials == CREDENTIALS_GOOD)
		return SKV_OK;
	if (a->path)
		return refuse(out, shown == CREDENTIALS_GOOD ? unknown : shown, err);
	out->role = given ? ROLE_WRITE : ROLE_ADMIN;
	out->credentials = given && shown == CREDENTIALS_GOOD ? unknown : shown;
	if (!given)
		out->credentials = CREDENTIALS_GOOD;
	snprintf(out->tenant, sizeof out->tenant, "default");
	return SKV_OK;
}

/* ---- given while it runs --------------------------------------------------------------------- */

/* FNV-1a, 32 bits. */
static uint32_t fingerprint(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

static int make_given(const struct auth *a, const char *tenant, const char *text, const char *field,
		      struct auth_token *out, struct skv_error *err)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f)
			n = 0;
	if (n == 0 || n > TOKEN_MAX)
		return skv_fail(err, SKV_E_INVALID, field, "a token has 1..%d visible ASCII characters", TOKEN_MAX);
	*out = (struct auth_token){ .role = ROLE_ADMIN, .fingerprint = fingerprint(text) };
	snprintf(out->tenant, sizeof out->tenant, "%s", tenant);
	digest(a, text, n, out->digest);
	return SKV_OK;
}

int skv_auth_give(struct auth *a, const char *tenant, const char *const *tokens, size_t n, struct skv_error *err)
{
	struct auth_token *made;
	int rc = SKV_OK;

	if (n > AUTH_GIVEN_MAX)
		return skv_fail(err, SKV_E_INVALID, "tokens", "%d tokens at most", AUTH_GIVEN_MAX);
	made = skv_calloc(AUTH_GIVEN_MAX, sizeof *made);
	if (!made)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (size_t i = 0; i < n && rc == SKV_OK; i++) {
		char field[32];

		snprintf(field, sizeof field, "tokens[%zu]", i);
		rc = make_given(a, tenant, tokens[i], field, &made[i], err);
	}
	if (rc == SKV_OK) {
		skv_rwlock_write(&a->lock);
		memcpy(a->given, made, AUTH_GIVEN_MAX * sizeof *made);
		a->n_given = n;
		skv_rwlock_write_unlock(&a->lock);
	}
	skv_free(made);
	return rc;
}

int skv_auth_rotate(struct auth *a, const char *old_token, const char *new_token, struct skv_error *err)
{
	uint8_t sum[AUTH_DIGEST];
	struct auth_token made;
	bool found = false;
	int rc = make_given(a, "", new_token, "new_token", &made, err);

	if (rc != SKV_OK)
		return rc;
	digest(a, old_token, strlen(old_token), sum);
	skv_rwlock_write(&a->lock);
	for (size_t i = 0; i < a->n_given; i++) {
		if (skv_equal_secret(sum, a->given[i].digest, AUTH_DIGEST)) {
			memcpy(made.tenant, a->given[i].tenant, sizeof made.tenant);
			a->given[i] = made;
			found = true;
		}
	}
	skv_rwlock_write_unlock(&a->lock);
	return found ? SKV_OK : skv_fail(err, SKV_E_INVALID, "old_token", "there is no such token");
}

bool skv_auth_given(struct auth *a, struct skv_arena *arena, const uint32_t **fingerprints, size_t *n)
{
	uint32_t *out = skv_arena_calloc(arena, AUTH_GIVEN_MAX, sizeof *out);
	size_t have;

	skv_rwlock_read(&a->lock);
	have = a->n_given;
	assert(have <= AUTH_GIVEN_MAX);
	for (size_t i = 0; out && i < have; i++)
		out[i] = a->given[i].fingerprint;
	skv_rwlock_read_unlock(&a->lock);
	*fingerprints = out;
	*n = out ? have : 0;
	return a->path || have > 0;
}
