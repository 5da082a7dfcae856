/*
 * token.c - a token's line: read and written. See token.h. No state.
 */
#include <skv/token.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <skv/ops.h>
#include <skv/tls_peer.h>

#define HASHED "sha256:"
#define CERTIFICATE "cert:"

static const char *const roles[] = { "", "read", "write", "admin" };

bool skv_role_parse(const char *s, enum role *out)
{
	for (unsigned i = ROLE_READ; i <= ROLE_ADMIN; i++) {
		if (strcmp(s, roles[i]) == 0) {
			*out = (enum role)i;
			return true;
		}
	}
	return false;
}

const char *skv_role_name(enum role role)
{
	assert((size_t)role < sizeof roles / sizeof roles[0]);
	return roles[role];
}

bool skv_token_hash_parse(const char *s, uint8_t out[SKV_SHA256])
{
	struct skv_key half[2];

	_Static_assert(2 * SKV_KEY_HEX == 2 * SKV_SHA256, "a hash is read as two keys");
	if (strlen(s) != 2 * SKV_KEY_HEX || !skv_key_from_hex(s, SKV_KEY_HEX, &half[0]) ||
	    !skv_key_from_hex(s + SKV_KEY_HEX, SKV_KEY_HEX, &half[1]))
		return false;
	for (unsigned i = 0; i < SKV_SHA256; i++) {
		const struct skv_key *k = &half[i / 16];

		out[i] = (uint8_t)((i % 16 < 8 ? k->hi : k->lo) >> (56 - 8 * (i % 8)));
	}
	return true;
}

/* ---- times ----------------------------------------------------------------------------------- */

void skv_time_text(uint64_t s, char out[SKV_TIME_ROOM])
{
	const time_t t = (time_t)s;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || strftime(out, SKV_TIME_ROOM, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		snprintf(out, SKV_TIME_ROOM, "?");
}

bool skv_time_parse(const char *text, uint64_t *s)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%d", &tm);
	time_t t;

	if (end && *end == 'T')
		end = strptime(end, "T%H:%M:%SZ", &tm);
	if (!end || *end)
		return false;
	t = timegm(&tm);
	*s = (uint64_t)t;
	return t > 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int refuse(struct skv_error *err, const char *where, unsigned number, const char *what)
{
	return skv_fail(err, SKV_E_INVALID, "tokens_file", "%s:%u: %s", where, number, what);
}

/* Visible ASCII only: what a header can carry unchanged. */
static bool visible(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s >= 0x7f)
			return false;
	return true;
}

static bool text_valid(const char *s)
{
	return visible(s) && strlen(s) >= AUTH_TEXT_MIN && strlen(s) <= AUTH_TEXT_MAX;
}

/* Returns NULL, or the reason why the text is invalid. */
static const char *take_secret(const char *s, struct auth_token *out)
{
	const size_t n = strlen(HASHED);

	if (strncmp(s, HASHED, n) == 0)
		return skv_token_hash_parse(s + n, out->digest)
			       ? NULL
			       : "sha256: is followed by 64 hex digits; 'slabkv token new' makes "
				 "such a line";
	if (strncmp(s, CERTIFICATE, strlen(CERTIFICATE)) == 0) {
		s += strlen(CERTIFICATE);
		if (!visible(s) || !*s || strlen(s) > SKV_TLS_NAME_MAX)
			return "cert: is followed by 1..255 visible ASCII characters, a name in "
			       "clients' certificates";
		out->certificate = true;
		skv_sha256(s, strlen(s), out->digest);
		return NULL;
	}
	if (!text_valid(s))
		return "a token has 16..512 visible ASCII characters; make one with 'slabkv token "
		       "new' or 'openssl rand -hex 32'";
	out->clear = true;
	skv_sha256(s, strlen(s), out->digest);
	return NULL;
}

static const char *take_option(const char *s, struct auth_token *out)
{
	if (strncmp(s, "name=", 5) == 0) {
		if (!skv_name_valid(s + 5, strlen(s + 5)) || strlen(s + 5) > AUTH_NAME)
			return "a name has 1..63 of A-Z a-z 0-9 . _ - : = @ + ,";
		snprintf(out->name, sizeof out->name, "%s", s + 5);
		return NULL;
	}
	if (strncmp(s, "expires=", 8) == 0)
		return skv_time_parse(s + 8, &out->expires_s)
			       ? NULL
			       : "expires= is a time in UTC, 2027-01-31 or 2027-01-31T12:00:00Z";
	if (strncmp(s, "created=", 8) == 0)
		return skv_time_parse(s + 8, &out->created_s)
			       ? NULL
			       : "created= is a time in UTC, 2027-01-31 or 2027-01-31T12:00:00Z";
	return "expected 'role tenant token', then name=, created=, expires= or nothing";
}

int skv_token_read(char *line, const char *where, unsigned number, struct auth_token *out,
		   bool *found, struct skv_error *err)
{
	char *rest = NULL, *word[3], *option;
	const char *wrong;

	word[0] = strtok_r(line, " \t\r\n", &rest);
	*found = word[0] && word[0][0] != '#';
	if (!*found)
		return SKV_OK;
	word[1] = strtok_r(NULL, " \t\r\n", &rest);
	word[2] = strtok_r(NULL, " \t\r\n", &rest);
	if (!word[2])
		return refuse(err, where, number, "expected 'role tenant token'");
	if (!skv_role_parse(word[0], &out->role))
		return refuse(err, where, number, "the role must be read, write or admin");
	if (!skv_model_name_valid(word[1], strlen(word[1])))
		return refuse(err, where, number,
			      "the tenant must be 1..127 of A-Z a-z 0-9 . _ - : = @ + , (usually: "
			      "default)");
	snprintf(out->tenant, sizeof out->tenant, "%s", word[1]);
	wrong = take_secret(word[2], out);
	while (!wrong && (option = strtok_r(NULL, " \t\r\n", &rest)) != NULL)
		wrong = take_option(option, out);
	return wrong ? refuse(err, where, number, wrong) : SKV_OK;
}

static void put_time(struct skv_buf *out, const char *name, uint64_t s)
{
	char text[SKV_TIME_ROOM];

	if (!s)
		return;
	skv_time_text(s, text);
	skv_buf_printf(out, " %s=%s", name, text);
}

void skv_token_write(struct skv_buf *out, const struct auth_token *t)
{
	assert(!t->certificate && t->role != ROLE_OPEN && *t->tenant && *t->name);
	skv_buf_printf(out, "%s %s " HASHED, skv_role_name(t->role), t->tenant);
	for (unsigned i = 0; i < SKV_SHA256; i++)
		skv_buf_printf(out, "%02x", t->digest[i]);
	skv_buf_printf(out, " name=%s", t->name);
	put_time(out, "created", t->created_s);
	put_time(out, "expires", t->expires_s);
	skv_buf_printf(out, "\n");
}
