/*
 * token.h - a bearer token as it is kept: its SHA-256, never its text.
 *
 * A line of text has a token: `role tenant sha256:HEX [name=NAME] [created=TIME] [expires=TIME]`;
 * TIME is UTC, `2027-01-31` or `2027-01-31T12:00:00Z`. A tokens file may have the text of a token
 * in place of sha256:HEX. Tokens are random texts of 256 bits, so that a fast hash without a salt
 * is enough: nobody can try them all (docs/decisions/0039).
 */
#ifndef SKV_TOKEN_H
#define SKV_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/api.h>
#include <skv/bytes.h>
#include <skv/hash.h>
#include <skv/limits.h>
#include <skv/status.h>

#define AUTH_NAME 63 /* longest name of a token */
#define AUTH_TEXT_MIN 16
#define AUTH_TEXT_MAX 512

struct auth_token {
	uint8_t digest[SKV_SHA256]; /* of its text */
	bool certificate; /* the digest is of a name in a client's certificate, not of a token */
	enum role role;
	char tenant[SKV_MAX_NAME + 1];
	char name[AUTH_NAME + 1]; /* "line-7" without one, "given-0" */
	uint64_t created_s, expires_s; /* since 1970; 0 = not told, never */
	uint32_t fingerprint;     /* FNV-1a of the text; of given ones only */
	bool clear;               /* the token was read from a line with its text */
};

/* "read", "write" or "admin". */
bool skv_role_parse(const char *s, enum role *out);
const char *skv_role_name(enum role role); /* "" of ROLE_OPEN */
/* Exactly 64 hex digits. */
bool skv_token_hash_parse(const char *s, uint8_t out[SKV_SHA256]);
/* Reads a line, and changes it; `where` and `number` begin the messages, which never have its
 * contents. *out keeps its name if the line has none. SKV_E_INVALID. False in *found: the line was
 * empty or a comment. */
int skv_token_read(char *line, const char *where, unsigned number, struct auth_token *out,
		   bool *found, struct skv_error *err);
/* Appends the line of a token, not of a certificate. */
void skv_token_write(struct skv_buf *out, const struct auth_token *t);

/* Room for "2027-01-31T12:00:00Z". */
#define SKV_TIME_ROOM 32
void skv_time_text(uint64_t s, char out[SKV_TIME_ROOM]);
/* Returns false if the text is neither a date nor a time in UTC. */
bool skv_time_parse(const char *text, uint64_t *s);

#endif
