/*
 * auth.c - reads the tokens file and compares bearer tokens, also those that
 * come as a Basic password.
 *
 * Owns the tables of hashes; texts are wiped after reading. The SHA-256 of a presented token is
 * compared with every one in constant time, so the time reveals neither its length nor a matching
 * prefix. Any thread checks (read lock); a reload builds a new table first and swaps it under the
 * write lock. No lock is held across file I/O. Tokens given while it runs are kept the same way,
 * with a fingerprint for comparison by people.
 */
#include <skv/auth.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <sodium.h>

#include <skv/clock.h>
#include <skv/hash.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/ops.h>

#define TOKEN_ROOM (AUTH_TEXT_MAX + 1)
#define BASIC_MAX (AUTH_TEXT_MAX + 256) /* with the user's name */

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

int skv_auth_add_line(struct auth_table *t, char *line, const char *where, unsigned number,
		      struct skv_error *err)
{
	void *grown = t->v;
	bool found;
	int rc;

	if (skv_grow(&grown, &t->cap, t->n + 1, sizeof *t->v) != SKV_OK)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	t->v = grown;
	assert(t->n < t->cap);
	t->v[t->n] = (struct auth_token){ 0 };
	snprintf(t->v[t->n].name, sizeof t->v[t->n].name, "line-%u", number);
	rc = skv_token_read(line, where, number, &t->v[t->n], &found, err);
	t->n += rc == SKV_OK && found;
	return rc;
}

static int read_table(const struct auth *a, struct auth_table *t, struct skv_error *err)
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
		rc = skv_auth_add_line(t, line, a->path, ++number, err);
	if (rc == SKV_OK && t->n == 0)
		rc = skv_fail(err, SKV_E_INVALID, "tokens_file",
			      "%s holds no token: add the line that 'slabkv token new --role "
			      "admin' prints",
			      a->path);
	if (line)
		sodium_memzero(line, size);
	free(line); /* getline's own */
	fclose(f);
	return rc;
}

/* Puts `fresh` in the place of *at; the old table is freed. */
static void swap(struct auth *a, struct auth_table *at, struct auth_table *fresh)
{
	struct auth_token *old;

	skv_rwlock_write(&a->lock);
	old = at->v;
	*at = *fresh;
	skv_rwlock_write_unlock(&a->lock);
	*fresh = (struct auth_table){ 0 };
	skv_free(old);
}

int skv_auth_reload(struct auth *a, struct skv_error *err)
{
	struct auth_table t = { 0 };
	size_t clear = 0;
	int rc;

	if (!a->path)
		return SKV_OK;
	rc = read_table(a, &t, err);
	if (rc != SKV_OK) {
		skv_free(t.v);
		return rc;
	}
	for (size_t i = 0; i < t.n; i++)
		clear += t.v[i].clear;
	if (clear)
		skv_log(SKV_LOG_WARN, "main",
			"%s: tokens in clear text: %zu: 'slabkv token hash' prints it with hashes",
			a->path, clear);
	swap(a, &a->file, &t);
	return SKV_OK;
}

void skv_auth_use_store(struct auth *a) { a->uses_store = a->path != NULL; }

uint64_t skv_auth_begin_stored(struct auth *a) { return atomic_fetch_add(&a->turns, 1) + 1; }

void skv_auth_set_stored(struct auth *a, struct auth_table *t, uint64_t turn)
{
	struct auth_table other = *t;

	assert(a->uses_store && turn > 0 && turn <= atomic_load(&a->turns));
	skv_rwlock_write(&a->lock);
	if (turn > a->stored_turn) {
		other = a->stored;
		a->stored = *t;
		a->stored_turn = turn;
	}
	skv_rwlock_write_unlock(&a->lock);
	*t = other;
}

static int copy_locked(const struct auth *a, const struct auth_table *from, struct skv_arena *arena,
		       struct auth_table *to) SKV_REQUIRES_SHARED(a->lock)
{
	assert(skv_rwlock_held(&a->lock));
	to->n = from->n;
	to->v = skv_arena_calloc(arena, from->n + 1, sizeof *to->v);
	if (to->v && from->n)
		memcpy(to->v, from->v, from->n * sizeof *to->v);
	return to->v ? SKV_OK : SKV_E_NOMEM;
}

int skv_auth_list(struct auth *a, struct skv_arena *arena, struct auth_table *file,
		  struct auth_table *stored, struct skv_error *err)
{
	int rc;

	skv_rwlock_read(&a->lock);
	rc = copy_locked(a, &a->file, arena, file);
	if (rc == SKV_OK)
		rc = copy_locked(a, &a->stored, arena, stored);
	skv_rwlock_read_unlock(&a->lock);
	return rc == SKV_OK ? rc : skv_fail(err, rc, NULL, "out of memory");
}

int skv_auth_init(struct auth *a, const char *path, struct skv_error *err)
{
	uint64_t random[2];
	int rc;

	memset(a, 0, sizeof *a);
	skv_random(random, sizeof random);
	snprintf(a->manager, sizeof a->manager, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
	skv_rwlock_init(&a->lock);
	if (!path || !*path)
		return SKV_OK;
	a->path = skv_strdup(path);
	rc = a->path ? skv_auth_reload(a, err)
		     : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc != SKV_OK)
		skv_auth_destroy(a);
	return rc;
}

void skv_auth_destroy(struct auth *a)
{
	skv_free(a->file.v);
	skv_free(a->stored.v);
	skv_free(a->path);
	skv_rwlock_destroy(&a->lock);
	memset(a, 0, sizeof *a);
}

static int refuse(struct caller *out, enum credentials why, bool expired, struct skv_error *err)
{
	out->credentials = why;
	return skv_fail(err, SKV_E_UNAUTHENTICATED, NULL,
			expired ? "this token has expired: an administrator makes another"
				: "a valid token is required: send 'Authorization: Bearer TOKEN'");
}

/* The credentials that a client has shown: a token, or a name in its certificate. */
struct shown {
	uint8_t sum[SKV_SHA256];
	bool certificate;
};

/* Every entry is compared, so that the time does not tell which one it was. *expired: it is one of
 * them, but its time is over. */
static void find_locked(const struct auth *a, const struct auth_table *t,
			const struct shown *shown, struct caller *out, bool *expired)
	SKV_REQUIRES_SHARED(a->lock)
{
	const uint64_t now = skv_wall_ms(&skv_clock_system) / 1000;

	assert(skv_rwlock_held(&a->lock));
	for (size_t i = 0; i < t->n; i++) {
		const struct auth_token *v = &t->v[i];

		if (!skv_equal_secret(shown->sum, v->digest, SKV_SHA256) ||
		    v->certificate != shown->certificate || out->credentials == CREDENTIALS_GOOD)
			continue;
		if (v->expires_s && now >= v->expires_s) {
			*expired = true;
			continue;
		}
		out->credentials = CREDENTIALS_GOOD;
		out->role = v->role;
		memcpy(out->tenant, v->tenant, sizeof out->tenant);
		memcpy(out->name, v->name, sizeof out->name);
	}
}

/* The credentials after a scheme; NULL: another scheme, or not exactly one word. */
static const char *after_scheme(const char *header, const char *scheme)
{
	const size_t n = strlen(scheme);

	if (strncasecmp(header, scheme, n) != 0 || (header[n] != ' ' && header[n] != '\t'))
		return NULL;
	header += n + strspn(header + n, " \t");
	return *header && !strpbrk(header, " \t") ? header : NULL;
}

/* The password of base64("user:password"): what clients make of http://user:TOKEN@host. Any
 * user. GOOD or MALFORMED. */
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

		if (size > 0 && size <= AUTH_TEXT_MAX && !memchr(colon, '\0', size + 1)) {
			memcpy(token, colon + 1, size);
			token[size] = '\0';
			rc = CREDENTIALS_GOOD;
		}
	}
	sodium_memzero(plain, sizeof plain);
	return rc;
}

/* Reads `header`; GOOD: its token is in `token`, and *otherwise is the result if no caller has that
 * token. */
static enum credentials read_header(const char *header, char token[TOKEN_ROOM],
				    enum credentials *otherwise)
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
	if (strlen(bearer) > AUTH_TEXT_MAX)
		return CREDENTIALS_UNKNOWN;
	memcpy(token, bearer, strlen(bearer) + 1);
	return CREDENTIALS_GOOD;
}

/* Looks the credentials up in the tables; NULL: none were shown. Returns true if tokens are
 * configured. */
static bool look(struct auth *a, const struct shown *shown, struct caller *out, bool *expired,
		 bool *unread)
{
	struct auth_table given_table;
	bool given;

	skv_rwlock_read(&a->lock);
	given = a->n_given > 0;
	given_table = (struct auth_table){ .v = a->given, .n = a->n_given };
	if (shown && (a->path || given)) {
		find_locked(a, &a->file, shown, out, expired);
		find_locked(a, &a->stored, shown, out, expired);
		find_locked(a, &given_table, shown, out, expired);
	}
	*unread = a->uses_store && a->stored_turn == 0;
	skv_rwlock_read_unlock(&a->lock);
	return given;
}

/* A caller without a token, by its certificate. Only the file names certificates. */
static int check_peer(struct auth *a, const struct skv_tls_peer *peer, struct caller *out,
		      struct skv_error *err)
{
	struct shown name = { .certificate = true };
	bool expired = false, unread;

	assert(a->path && peer->n > 0);
	*out = (struct caller){ .credentials = CREDENTIALS_UNKNOWN };
	for (uint32_t i = 0; i < peer->n && out->credentials != CREDENTIALS_GOOD; i++) {
		skv_sha256(peer->names[i], strlen(peer->names[i]), name.sum);
		look(a, &name, out, &expired, &unread);
	}
	if (out->credentials == CREDENTIALS_GOOD)
		return SKV_OK;
	out->credentials = CREDENTIALS_NONE; /* nothing to guess */
	if (expired)
		return skv_fail(err, SKV_E_UNAUTHENTICATED, NULL,
				"the line of this certificate in tokens_file has expired");
	return skv_fail(err, SKV_E_UNAUTHENTICATED, NULL,
			"the certificate of %.100s has no line in tokens_file: add 'role tenant "
			"cert:NAME', or send a token", peer->names[0]);
}

int skv_auth_check(struct auth *a, const char *header, const struct skv_tls_peer *peer,
		   struct caller *out, struct skv_error *err)
{
	struct shown text = { .certificate = false };
	char token[TOKEN_ROOM];
	enum credentials unknown, shown = read_header(header, token, &unknown);
	bool given, expired = false, unread;

	if (shown == CREDENTIALS_NONE && a->path && peer && peer->n > 0)
		return check_peer(a, peer, out, err);
	*out = (struct caller){ .credentials = CREDENTIALS_UNKNOWN };
	if (shown == CREDENTIALS_GOOD) {
		skv_sha256(token, strlen(token), text.sum);
		memcpy(&out->token, text.sum, sizeof out->token);
	}
	given = look(a, shown == CREDENTIALS_GOOD ? &text : NULL, out, &expired, &unread);
	if (out->credentials == CREDENTIALS_GOOD)
		return SKV_OK;
	if (a->path && shown == CREDENTIALS_GOOD && unread) {
		out->credentials = CREDENTIALS_NONE; /* not the client's fault */
		return skv_fail(err, SKV_E_NOT_READY, NULL,
				"the tokens in the store have not been read yet: retry");
	}
	if (a->path)
		return refuse(out, shown == CREDENTIALS_GOOD ? unknown : shown, expired, err);
	out->role = given ? ROLE_WRITE : ROLE_ADMIN;
	out->credentials = given && shown == CREDENTIALS_GOOD ? unknown : shown;
	if (!given)
		out->credentials = CREDENTIALS_GOOD;
	snprintf(out->tenant, sizeof out->tenant, "default");
	return SKV_OK;
}

/* ---- other managers -------------------------------------------------------------------------- */

const char *skv_auth_manager_token(const struct auth *a) { return a->manager; }

bool skv_auth_is_manager(const struct auth *a, const char *header, struct caller *out)
{
	enum credentials unknown;
	char token[TOKEN_ROOM];

	assert(*a->manager);
	if (read_header(header, token, &unknown) != CREDENTIALS_GOOD ||
	    strlen(token) != sizeof a->manager - 1 ||
	    sodium_memcmp(token, a->manager, sizeof a->manager - 1) != 0)
		return false;
	*out = (struct caller){ .role = ROLE_ADMIN, .credentials = CREDENTIALS_GOOD };
	snprintf(out->tenant, sizeof out->tenant, "default");
	snprintf(out->name, sizeof out->name, "manager");
	return true;
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

static int make_given(const char *tenant, const char *text, const char *field,
		      struct auth_token *out, struct skv_error *err)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f)
			n = 0;
	if (n == 0 || n > AUTH_TEXT_MAX)
		return skv_fail(err, SKV_E_INVALID, field,
				"a token has 1..%d visible ASCII characters", AUTH_TEXT_MAX);
	*out = (struct auth_token){ .role = ROLE_ADMIN, .fingerprint = fingerprint(text) };
	snprintf(out->tenant, sizeof out->tenant, "%s", tenant);
	skv_sha256(text, n, out->digest);
	return SKV_OK;
}

int skv_auth_give(struct auth *a, const char *tenant, const char *const *tokens, size_t n,
		  struct skv_error *err)
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
		rc = make_given(tenant, tokens[i], field, &made[i], err);
		snprintf(made[i].name, sizeof made[i].name, "given-%zu", i);
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

int skv_auth_rotate(struct auth *a, const char *old_token, const char *new_token,
		    struct skv_error *err)
{
	uint8_t sum[SKV_SHA256];
	struct auth_token made;
	bool found = false;
	int rc = make_given("", new_token, "new_token", &made, err);

	if (rc != SKV_OK)
		return rc;
	skv_sha256(old_token, strlen(old_token), sum);
	skv_rwlock_write(&a->lock);
	for (size_t i = 0; i < a->n_given; i++) {
		if (skv_equal_secret(sum, a->given[i].digest, SKV_SHA256)) {
			memcpy(made.tenant, a->given[i].tenant, sizeof made.tenant);
			memcpy(made.name, a->given[i].name, sizeof made.name);
			a->given[i] = made;
			found = true;
		}
	}
	skv_rwlock_write_unlock(&a->lock);
	return found ? SKV_OK : skv_fail(err, SKV_E_INVALID, "old_token", "there is no such token");
}

bool skv_auth_given(struct auth *a, struct skv_arena *arena, const uint32_t **fingerprints,
		    size_t *n)
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
