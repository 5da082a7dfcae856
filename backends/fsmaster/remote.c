/*
 * remote.c - a storage that fs-masters look after.
 *
 * Each step is one call (kvb/fs_master.h) to any of the fs-masters: they keep no state, and every call may be repeated. The
 * one that answered last is asked first; one that is not there, is not allowed in, or cannot get at its own mount is passed
 * over for the next, within a time that all of them share. Who answers with a reason that would be any other's, too (no room,
 * somebody else's file), has the last word.
 *
 * Owns the addresses and the number of the one that answered last. Any thread; no lock; blocks for BRIEF_MS or, where
 * files are made, LONG_MS at most.
 */
#include "remote.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <kvb/arena.h>
#include <kvb/clock.h>
#include <kvb/fs_master.h>
#include <kvb/limits.h>
#include <kvb/log.h>
#include <kvb/mem.h>
#include <kvb/v1_json.h>

#include "http.h"

#define BRIEF_MS 4500u /* less than what the core takes for a hang */
#define LONG_MS 60000u /* a file whose space must be written */
#define LEAST_MS 500u  /* for one fs-master */
#define TOKEN_MAX 512u

struct remote {
	char *name;
	const char *type;
	char *token_file;
	struct kvb_fs_request identity;
	struct kvb_arena arena; /* of urls */
	const char *urls[KVB_MAX_FS_MASTERS]; /* "http://host:port/fs/DIR" */
	uint32_t n;
	atomic_uint last; /* who answered */
};

/* ---- addresses --------------------------------------------------------------------------------- */

/* Where the name of the directory begins; NULL: the URL has not the form. */
static const char *directory_in(const char *url)
{
	const char *host = strncmp(url, "http://", 7) == 0 ? url + 7 : strncmp(url, "https://", 8) == 0 ? url + 8 : NULL;
	const char *slash = host ? strrchr(host, '/') : NULL;

	if (!slash || slash == host || strpbrk(host, "@?#% \t\r\n\"<>\\") || strlen(url) > KVB_MAX_URL)
		return NULL;
	return kvb_name_valid(slash + 1, strlen(slash + 1)) ? slash + 1 : NULL;
}

int kvb_storage_check_master(const char *url, struct kvb_error *err)
{
	if (directory_in(url))
		return KVB_OK;
	return kvb_fail(err, KVB_E_INVALID, "fs_master",
			"'%.120s' is not the form http://host:port/DIR, where DIR is the directory below the fs-master's root "
			"(no user, no query; a token goes into fs_master_token_file)",
			url);
}

static int take_urls(struct remote *r, const struct kvb_storage_config *c, struct kvb_error *err)
{
	for (uint32_t i = 0; i < c->n_masters; i++) {
		const char *url = c->masters[i], *dir = directory_in(url);
		char text[KVB_MAX_URL + sizeof KVB_FS_PREFIX];

		if (!dir)
			return kvb_storage_check_master(url, err);
		snprintf(text, sizeof text, "%.*s%s%s", (int)(dir - 1 - url), url, KVB_FS_PREFIX, dir);
		r->urls[i] = kvb_arena_strndup(&r->arena, text, strlen(text));
		if (!r->urls[i])
			return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
		r->n = i + 1;
	}
	return KVB_OK;
}

/* ---- calls ------------------------------------------------------------------------------------- */

/* Read for each call, so that a new token counts at once. */
static int read_token(const struct remote *r, char token[TOKEN_MAX + 2], struct kvb_error *err)
{
	FILE *f;
	bool read;

	token[0] = '\0';
	if (!r->token_file || !*r->token_file)
		return KVB_OK;
	f = fopen(r->token_file, "re");
	read = f && fgets(token, TOKEN_MAX + 2, f);
	if (f)
		fclose(f);
	token[strcspn(token, " \t\r\n")] = '\0';
	if (read && *token)
		return KVB_OK;
	return kvb_fail(err, KVB_E_UNAUTHENTICATED, "fs_master_token_file",
			"cannot read a token for the fs-masters of storage '%s' from the first line of %.120s", r->name,
			r->token_file);
}

/* The answer of one fs-master as a status; `text` is its body. */
static int judge(struct kvb_arena *a, long http, const struct kvb_buf *text, enum kvb_fs_verb verb, const char *url,
		 struct kvb_fs_answer *out, struct kvb_error *err)
{
	const struct kvb_v1_in in = { .arena = a };
	struct kvb_error why = { 0 };
	int rc;

	if (http == 200 && verb != KVB_FS_OPEN && verb != KVB_FS_PROBE)
		return KVB_OK;
	if (http == 200) {
		rc = kvb_fs_read_answer(a, (const char *)text->data, text->len, out, &why);
		return rc == KVB_OK ? rc : kvb_fail(err, KVB_E_NETWORK, NULL, "%s: its answer is none of an fs-master", url);
	}
	rc = text->len ? kvb_v1_read_error(&in, (const char *)text->data, text->len, &why) : KVB_E_NETWORK;
	if (rc == KVB_E_UNAUTHENTICATED || rc == KVB_E_FORBIDDEN)
		return kvb_fail(err, rc, "fs_master_token_file",
				"%s: it does not know the token, or only with another role than admin: give the manager one in "
				"fs_master_token_file",
				url);
	/* A directory that is missing is "unavailable"; whoever does not know the path is somebody else. */
	if (rc == KVB_E_METHOD || (rc == KVB_E_NOT_FOUND && (verb == KVB_FS_OPEN || verb == KVB_FS_PROBE)))
		rc = KVB_E_NETWORK;
	if (http >= 400 && why.status == rc && why.message[0])
		return kvb_fail(err, rc, why.field[0] ? why.field : NULL, "%s: %s", url, why.message);
	return kvb_fail(err, KVB_E_NETWORK, NULL, "%s: HTTP status %ld from something that is no fs-master: check the URL", url, http);
}

/* May another fs-master know better? */
static bool passes_over(int rc)
{
	switch (rc) {
	case KVB_E_NETWORK:
	case KVB_E_UNAUTHENTICATED:
	case KVB_E_FORBIDDEN:
	case KVB_E_NOT_FOUND:
	case KVB_E_NOT_READY:
	case KVB_E_TOO_MANY:
	case KVB_E_TIMEOUT:
	case KVB_E_UNAVAILABLE:
	case KVB_E_IO:
	case KVB_E_INTERNAL:
		return true;
	default:
		return false;
	}
}

static int ask(struct remote *r, struct kvb_arena *a, uint32_t i, enum kvb_fs_verb verb, const char *token,
	       const struct kvb_buf *body, uint32_t timeout_ms, struct kvb_fs_answer *out, struct kvb_error *err)
{
	char url[KVB_MAX_URL + 32];
	struct kvb_buf text = { 0 };
	long http = 0;
	int rc;

	snprintf(url, sizeof url, "%s/%s", r->urls[i], kvb_fs_verb_text(verb));
	rc = kvb_fsm_post(url, token, body, timeout_ms, &http, &text, err);
	if (rc == KVB_OK)
		rc = judge(a, http, &text, verb, r->urls[i], out, err);
	kvb_buf_destroy(&text);
	return rc;
}

/* Asks one after the other; of those that failed, who answered at all counts for more than who did not. */
static int ask_all(struct remote *r, enum kvb_fs_verb verb, const char *token, const struct kvb_buf *body,
		   struct kvb_fs_answer *out, struct kvb_error *err)
{
	const bool brief = verb != KVB_FS_CREATE || r->identity.chunk; /* files with chunks get their length only */
	const uint64_t end = kvb_now_ms(&kvb_clock_system) + (brief ? BRIEF_MS : LONG_MS);
	const uint32_t first = atomic_load(&r->last) % r->n;
	struct kvb_error why = { 0 };
	int rc = KVB_E_NETWORK;

	for (uint32_t k = 0; k < r->n; k++) {
		const uint32_t i = (first + k) % r->n, left = r->n - k;
		const uint64_t now = kvb_now_ms(&kvb_clock_system);
		uint64_t part = now < end ? (end - now) / (brief ? left : 1) : 0;
		struct kvb_arena a;
		int got;

		kvb_arena_init(&a);
		got = ask(r, &a, i, verb, token, body, part > LEAST_MS ? (uint32_t)part : LEAST_MS, out, &why);
		kvb_arena_destroy(&a);
		if (got == KVB_OK || !passes_over(got)) {
			atomic_store(&r->last, i);
			rc = got;
			*err = why;
			break;
		}
		kvb_log(KVB_LOG_DEBUG, "storage", "'%s': %s", r->name, why.message);
		if (rc == KVB_E_NETWORK) {
			rc = got;
			*err = why;
		}
	}
	if (rc == KVB_OK)
		kvb_error_clear(err);
	return rc;
}

static int call(struct remote *r, enum kvb_fs_verb verb, const struct kvb_fs_request *q, struct kvb_fs_answer *out,
		struct kvb_error *err)
{
	char token[TOKEN_MAX + 2];
	struct kvb_buf body = { 0 };
	int rc = read_token(r, token, err);

	if (rc != KVB_OK)
		return rc;
	kvb_fs_write_request(&body, verb, q);
	rc = body.failed ? kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory") : ask_all(r, verb, token, &body, out, err);
	kvb_buf_destroy(&body);
	memset(token, 0, sizeof token);
	return rc;
}

/* ---- the members ------------------------------------------------------------------------------- */

static void remote_close(void *self)
{
	struct remote *r = self;

	kvb_arena_destroy(&r->arena);
	kvb_free(r->name);
	kvb_free(r->token_file);
	kvb_free(r);
}

int kvb_remote_open(const char *type, const struct kvb_storage_config *c, void **self, struct kvb_error *err)
{
	struct remote *r = kvb_calloc(1, sizeof *r);
	struct kvb_fs_answer answer = { 0 };
	int rc;

	if (!r)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	kvb_arena_init(&r->arena);
	r->name = kvb_strdup(c->name);
	r->token_file = kvb_strdup(c->token_file ? c->token_file : "");
	rc = r->name && r->token_file ? take_urls(r, c, err) : kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	r->identity = (struct kvb_fs_request){ .storage = r->name, .type = type, .unit = c->unit, .chunk = c->chunk,
					       .any_mount = c->any_mount, .read_chunk = c->read_chunk,
					       .may_create = c->may_create };
	memcpy(r->identity.uuid, c->uuid, 16);
	if (rc == KVB_OK)
		rc = call(r, KVB_FS_OPEN, &r->identity, &answer, err);
	if (rc != KVB_OK) {
		remote_close(r);
		return rc;
	}
	r->identity.chunk = answer.chunk;
	*self = r;
	return KVB_OK;
}

static int of_file(void *self, enum kvb_fs_verb verb, uint32_t file, uint64_t length, struct kvb_error *err)
{
	struct remote *r = self;
	struct kvb_fs_request q = r->identity;

	q.file = file;
	q.length = length;
	return call(r, verb, &q, NULL, err);
}

static int remote_create(void *self, uint32_t file, uint64_t length, struct kvb_error *err)
{
	return of_file(self, KVB_FS_CREATE, file, length, err);
}

static int remote_check(void *self, uint32_t file, uint64_t length, struct kvb_error *err)
{
	return of_file(self, KVB_FS_CHECK, file, length, err);
}

static int remote_remove(void *self, uint32_t file, struct kvb_error *err)
{
	return of_file(self, KVB_FS_DELETE, file, 0, err);
}

static int remote_punch(void *self, uint32_t file, uint64_t length, const struct kvb_storage_range *v, uint32_t n,
			struct kvb_error *err)
{
	struct remote *r = self;
	struct kvb_fs_request q = r->identity;
	uint64_t ranges[KVB_PUNCH_MAX][2];

	for (uint32_t i = 0; i < n; i++) {
		ranges[i][0] = v[i].begin;
		ranges[i][1] = v[i].end;
	}
	q.file = file;
	q.length = length;
	q.ranges = (const uint64_t(*)[2])ranges;
	q.n_ranges = n;
	return call(r, KVB_FS_PUNCH, &q, NULL, err);
}

static int remote_probe(void *self, struct kvb_storage_health *out, struct kvb_error *err)
{
	struct remote *r = self;
	struct kvb_fs_answer answer = { 0 };
	int rc = call(r, KVB_FS_PROBE, &r->identity, &answer, err);

	if (rc == KVB_OK)
		*out = (struct kvb_storage_health){ answer.free_bytes, answer.total_bytes };
	return rc;
}

static uint64_t remote_chunk(void *self) { return ((const struct remote *)self)->identity.chunk; }

const struct kvb_storage_ops kvb_remote = {
	.size = sizeof(struct kvb_storage_ops),
	.close = remote_close,
	.create_file = remote_create,
	.check_file = remote_check,
	.remove_file = remote_remove,
	.probe = remote_probe,
	.punch_file = remote_punch,
	.chunk = remote_chunk,
};
