/*
 * remote.c - a storage managed by fs-masters.
 *
 * Each step is one call (skv/fs_master.h) to any of the fs-masters: they keep no state, and every
 * call may be repeated. The fs-master that answered last is asked first. One that is unreachable,
 * denied, or without its mount is skipped for the next, within a time that all of them share. An
 * error that every fs-master would return (no space, another storage's file) is final.
 *
 * Owns the addresses and the number of the one that answered last. Any thread; no lock; blocks for
 * BRIEF_MS or, where files are made, LONG_MS at most.
 */
#include "remote.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <skv/arena.h>
#include <skv/clock.h>
#include <skv/fs_master.h>
#include <skv/http.h>
#include <skv/limits.h>
#include <skv/lock.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/v1_json.h>

#define BRIEF_MS 4500u /* less than the core's limit for a hang */
#define LONG_MS 60000u /* a file whose space must be written */
#define LEAST_MS 500u  /* for one fs-master */
#define TOKEN_MAX 512u
#define CONNECT_MS 1000u
#define ANSWER_MAX (64u << 10) /* bytes */

struct remote {
	char *name;
	const char *type;
	char *token_file;
	struct skv_fs_request identity;
	struct skv_arena arena; /* of urls */
	const char *urls[SKV_MAX_FS_MASTERS]; /* "http://host:port/fs/DIR" */
	uint32_t n;
	atomic_uint last; /* index of the URL that answered last */
};

/* ---- addresses ------------------------------------------------------------------------------- */

/* Where the name of the directory begins; NULL: the URL has not the form. */
static const char *directory_in(const char *url)
{
	const char *host = strncmp(url, "http://", 7) == 0    ? url + 7
			   : strncmp(url, "https://", 8) == 0 ? url + 8
							      : NULL;
	const char *slash = host ? strrchr(host, '/') : NULL;

	if (!slash || slash == host || strpbrk(host, "@?#% \t\r\n\"<>\\") ||
	    strlen(url) > SKV_MAX_URL)
		return NULL;
	return skv_name_valid(slash + 1, strlen(slash + 1)) ? slash + 1 : NULL;
}

int skv_storage_check_master(const char *url, struct skv_error *err)
{
	if (directory_in(url))
		return SKV_OK;
	return skv_fail(
		err, SKV_E_INVALID, "fs_master",
		"'%.120s' is not the form http://host:port/DIR, where DIR is the directory below "
		"the fs-master's root (no user, no query; a token goes into fs_master_token_file)",
		url);
}

static int take_urls(struct remote *r, const struct skv_storage_config *c, struct skv_error *err)
{
	assert(c->n_masters > 0 && c->n_masters <= SKV_MAX_FS_MASTERS);
	for (uint32_t i = 0; i < c->n_masters; i++) {
		const char *url = c->masters[i], *dir = directory_in(url);
		char text[SKV_MAX_URL + sizeof SKV_FS_PREFIX];

		if (!dir)
			return skv_storage_check_master(url, err);
		snprintf(text, sizeof text, "%.*s%s%s", (int)(dir - 1 - url), url, SKV_FS_PREFIX,
			 dir);
		r->urls[i] = skv_arena_strndup(&r->arena, text, strlen(text));
		if (!r->urls[i])
			return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
		r->n = i + 1;
	}
	return SKV_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Read for each call, so that a new token counts at once. */
static int read_token(const struct remote *r, char token[TOKEN_MAX + 2], struct skv_error *err)
{
	FILE *f;
	bool read;

	token[0] = '\0';
	if (!r->token_file || !*r->token_file)
		return SKV_OK;
	f = fopen(r->token_file, "re");
	read = f && fgets(token, TOKEN_MAX + 2, f);
	if (f)
		fclose(f);
	token[strcspn(token, " \t\r\n")] = '\0';
	if (read && *token)
		return SKV_OK;
	return skv_fail(
		err, SKV_E_UNAUTHENTICATED, "fs_master_token_file",
		"cannot read a token for the fs-masters of storage '%s' from the first "
		"line of %.120s",
		r->name, r->token_file);
}

/* The answer of one fs-master as a status; `text` is its body. */
static int judge(struct skv_arena *a, long http, const struct skv_buf *text, enum skv_fs_verb verb,
		 const char *url, struct skv_fs_answer *out, struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	struct skv_error why = { 0 };
	int rc;

	if (http == 200 && !skv_fs_answers(verb))
		return SKV_OK;
	if (http == 200) {
		rc = skv_fs_read_answer(a, verb, (const char *)text->data, text->len, out, &why);
		return rc == SKV_OK
			       ? rc
			       : skv_fail(err, SKV_E_NETWORK, NULL,
					  "%s: the response is not an fs-master's: check the URL",
					  url);
	}
	rc = text->len ? skv_v1_read_error(&in, (const char *)text->data, text->len, &why)
		       : SKV_E_NETWORK;
	if (rc == SKV_E_UNAUTHENTICATED || rc == SKV_E_FORBIDDEN)
		return skv_fail(
			err, rc, "fs_master_token_file",
			"%s: it rejects the token: put one of role admin into fs_master_token_file",
			url);
	/* A directory that is missing is "unavailable"; whoever does not know
	 * the path is somebody else. */
	if (rc == SKV_E_METHOD ||
	    (rc == SKV_E_NOT_FOUND && (verb == SKV_FS_OPEN || verb == SKV_FS_PROBE)))
		rc = SKV_E_NETWORK;
	if (http >= 400 && why.status == rc && why.message[0])
		return skv_fail(err, rc, why.field[0] ? why.field : NULL, "%s: %s", url,
				why.message);
	return skv_fail(err, SKV_E_NETWORK, NULL,
			"%s: HTTP status %ld, and not from an fs-master: check the URL", url, http);
}

/* Returns true if another fs-master may give a better answer. */
static bool passes_over(int rc)
{
	switch (rc) {
	case SKV_E_NETWORK:
	case SKV_E_UNAUTHENTICATED:
	case SKV_E_FORBIDDEN:
	case SKV_E_NOT_FOUND:
	case SKV_E_NOT_READY:
	case SKV_E_TOO_MANY:
	case SKV_E_TIMEOUT:
	case SKV_E_UNAVAILABLE:
	case SKV_E_IO:
	case SKV_E_INTERNAL:
		return true;
	default:
		return false;
	}
}

/* A connection for each call: calls are rare, and nothing that was learned of an
 * fs-master (its address, say) shall outlive it. SKV_E_NETWORK: there is no answer that
 * can be used, for whatever reason. */
static int post(const char *url, const char *token, const struct skv_buf *body, uint32_t timeout_ms,
		long *http, struct skv_buf *answer, struct skv_error *err)
{
	const struct skv_http_request request = {
		.method = "POST", .url = url, .body = body->data, .body_len = body->len,
		.form = SKV_HTTP_JSON,
		.timeout_ms = timeout_ms, .connect_ms = CONNECT_MS, .answer_max = ANSWER_MAX,
	};
	struct skv_http *connection;
	int rc;

	assert(skv_thread_locks == 0);
	rc = skv_http_create(*token ? token : NULL, NULL, &connection, err);
	if (rc != SKV_OK)
		return rc;
	rc = skv_http_do(connection, &request, answer, http, err);
	skv_http_destroy(connection);
	if (rc != SKV_OK && rc != SKV_E_NOMEM)
		rc = err->status = SKV_E_NETWORK;
	return rc;
}

static int ask(struct remote *r, struct skv_arena *a, uint32_t i, enum skv_fs_verb verb,
	       const char *token, const struct skv_buf *body, uint32_t timeout_ms,
	       struct skv_fs_answer *out, struct skv_error *err)
{
	char url[SKV_MAX_URL + 32];
	struct skv_buf text = { 0 };
	long http = 0;
	int rc;

	assert(i < r->n);
	snprintf(url, sizeof url, "%s/%s", r->urls[i], skv_fs_verb_text(verb));
	rc = post(url, token, body, timeout_ms, &http, &text, err);
	if (rc == SKV_OK)
		rc = judge(a, http, &text, verb, r->urls[i], out, err);
	skv_buf_destroy(&text);
	return rc;
}

/* Asks one fs-master after the other. If all fail, an error answered by one counts for more than a
 * failed connection. */
static int ask_all(struct remote *r, struct skv_arena *a, enum skv_fs_verb verb, const char *token,
		   const struct skv_buf *body, struct skv_fs_answer *out, struct skv_error *err)
{
	/* files with chunks get their length only */
	const bool brief = verb != SKV_FS_CREATE || r->identity.chunk;
	const uint64_t end = skv_now_ms(&skv_clock_system) + (brief ? BRIEF_MS : LONG_MS);
	const uint32_t first = atomic_load(&r->last) % r->n;
	struct skv_error why = { 0 };
	int rc = SKV_E_NETWORK;

	for (uint32_t k = 0; k < r->n; k++) {
		const uint32_t i = (first + k) % r->n, left = r->n - k;
		const uint64_t now = skv_now_ms(&skv_clock_system);
		uint64_t part = now < end ? (end - now) / (brief ? left : 1) : 0;
		int got = ask(r, a, i, verb, token, body,
			      part > LEAST_MS ? (uint32_t)part : LEAST_MS, out, &why);

		if (got == SKV_OK || !passes_over(got)) {
			atomic_store(&r->last, i);
			rc = got;
			*err = why;
			break;
		}
		skv_log(SKV_LOG_DEBUG, "storage", "'%s': %s", r->name, why.message);
		if (rc == SKV_E_NETWORK) {
			rc = got;
			*err = why;
		}
	}
	if (rc == SKV_OK)
		skv_error_clear(err);
	return rc;
}

/* Calls the fs-master; the answer's strings lie in `a`. */
static int call_in(struct remote *r, struct skv_arena *a, enum skv_fs_verb verb,
		   const struct skv_fs_request *q, struct skv_fs_answer *out, struct skv_error *err)
{
	char token[TOKEN_MAX + 2];
	struct skv_buf body = { 0 };
	int rc = read_token(r, token, err);

	if (rc != SKV_OK)
		return rc;
	skv_fs_write_request(&body, verb, q);
	rc = body.failed ? skv_fail(err, SKV_E_NOMEM, NULL, "out of memory")
			 : ask_all(r, a, verb, token, &body, out, err);
	skv_buf_destroy(&body);
	memset(token, 0, sizeof token);
	return rc;
}

static int call(struct remote *r, enum skv_fs_verb verb, const struct skv_fs_request *q,
		struct skv_fs_answer *out, struct skv_error *err)
{
	struct skv_arena a;
	int rc;

	skv_arena_init(&a);
	rc = call_in(r, &a, verb, q, out, err);
	skv_arena_destroy(&a);
	return rc;
}

/* ---- the members ----------------------------------------------------------------------------- */

static void remote_close(void *self)
{
	struct remote *r = self;

	skv_arena_destroy(&r->arena);
	skv_free(r->name);
	skv_free(r->token_file);
	skv_free(r);
}

int skv_remote_make(const char *type, const struct skv_storage_config *c, void **self,
		    struct skv_error *err)
{
	struct remote *r = skv_calloc(1, sizeof *r);
	int rc;

	if (!r)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_arena_init(&r->arena);
	r->name = skv_strdup(c->name);
	r->token_file = skv_strdup(c->token_file ? c->token_file : "");
	rc = r->name && r->token_file ? take_urls(r, c, err)
				      : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	r->identity = (struct skv_fs_request){ .storage = r->name, .type = type, .unit = c->unit,
					       .chunk = c->chunk,
					       .any_mount = c->any_mount,
					       .read_chunk = c->read_chunk,
					       .may_create = c->may_create };
	memcpy(r->identity.uuid, c->uuid, 16);
	if (rc == SKV_OK)
		*self = r;
	else
		remote_close(r);
	return rc;
}

int skv_remote_open(const char *type, const struct skv_storage_config *c, void **self,
		    struct skv_error *err)
{
	struct skv_fs_answer answer = { 0 };
	struct remote *r;
	void *made;
	int rc = skv_remote_make(type, c, &made, err);

	if (rc != SKV_OK)
		return rc;
	r = made;
	rc = call(r, SKV_FS_OPEN, &r->identity, &answer, err);
	if (rc != SKV_OK) {
		remote_close(r);
		return rc;
	}
	r->identity.chunk = answer.chunk;
	*self = r;
	return SKV_OK;
}

static int of_file(void *self, enum skv_fs_verb verb, uint32_t file, uint64_t length,
		   struct skv_error *err)
{
	struct remote *r = self;
	struct skv_fs_request q = r->identity;

	q.file = file;
	q.length = length;
	return call(r, verb, &q, NULL, err);
}

static int remote_create(void *self, uint32_t file, uint64_t length, struct skv_error *err)
{
	return of_file(self, SKV_FS_CREATE, file, length, err);
}

static int remote_check(void *self, uint32_t file, uint64_t length, struct skv_error *err)
{
	return of_file(self, SKV_FS_CHECK, file, length, err);
}

static int remote_mend(void *self, uint32_t file, uint64_t length, struct skv_error *err)
{
	return of_file(self, SKV_FS_MEND, file, length, err);
}

static int remote_remove(void *self, uint32_t file, struct skv_error *err)
{
	return of_file(self, SKV_FS_DELETE, file, 0, err);
}

static int remote_punch(void *self, uint32_t file, uint64_t length,
			const struct skv_storage_range *v, uint32_t n, struct skv_error *err)
{
	struct remote *r = self;
	struct skv_fs_request q = r->identity;

	assert(n <= SKV_PUNCH_MAX);
	q.file = file;
	q.length = length;
	q.ranges = v;
	q.n_ranges = n;
	return call(r, SKV_FS_PUNCH, &q, NULL, err);
}

static int remote_probe(void *self, enum skv_probe what, struct skv_storage_health *out,
			struct skv_error *err)
{
	struct remote *r = self;
	struct skv_fs_answer answer = { 0 };
	int rc = call(r, SKV_FS_PROBE, &r->identity, &answer, err);

	(void)what;
	if (rc == SKV_OK)
		*out = (struct skv_storage_health){ answer.free_bytes, answer.total_bytes,
						    answer.epoch, answer.writing_ms };
	return rc;
}

static int remote_owners(void *self, const struct skv_storage_owner *mine,
			 struct skv_storage_owner v[SKV_STORAGE_OWNERS], uint32_t *n,
			 struct skv_error *err)
{
	struct remote *r = self;
	struct skv_fs_answer answer = { 0 };
	struct skv_arena a;
	int rc;

	(void)mine;
	skv_arena_init(&a);
	rc = call_in(r, &a, SKV_FS_OWNERS, &r->identity, &answer, err);
	if (rc == SKV_OK) {
		assert(answer.n_owners <= SKV_STORAGE_OWNERS);
		memcpy(v, answer.owners, answer.n_owners * sizeof *v);
		*n = answer.n_owners;
	}
	skv_arena_destroy(&a);
	return rc;
}

static int of_owner(struct remote *r, enum skv_fs_verb verb, const struct skv_storage_owner *o,
		    struct skv_error *err)
{
	struct skv_fs_request q = r->identity;

	assert(verb == SKV_FS_CLAIM || verb == SKV_FS_DISOWN);
	q.owner = *o;
	return call(r, verb, &q, NULL, err);
}

static int remote_claim(void *self, const struct skv_storage_owner *o, struct skv_error *err)
{
	return of_owner(self, SKV_FS_CLAIM, o, err);
}

static int remote_disown(void *self, const struct skv_storage_owner *o, struct skv_error *err)
{
	return of_owner(self, SKV_FS_DISOWN, o, err);
}

static int remote_leave(void *self, struct skv_error *err)
{
	struct remote *r = self;

	return call(r, SKV_FS_LEAVE, &r->identity, NULL, err);
}

int skv_remote_look(void *self, const char *path, struct skv_file_look *out, struct skv_error *err)
{
	const struct skv_fs_request q = { .path = path };
	struct skv_fs_answer answer = { 0 };
	int rc = call(self, SKV_FS_LOOK, &q, &answer, err);

	if (rc == SKV_OK)
		*out = answer.look;
	return rc;
}

static uint64_t remote_chunk(void *self) { return ((const struct remote *)self)->identity.chunk; }

const struct skv_storage_ops skv_remote = {
	.size = sizeof(struct skv_storage_ops),
	.close = remote_close,
	.create_file = remote_create,
	.check_file = remote_check,
	.remove_file = remote_remove,
	.probe = remote_probe,
	.punch_file = remote_punch,
	.chunk = remote_chunk,
	.owners = remote_owners,
	.claim = remote_claim,
	.disown = remote_disown,
	.mend_file = remote_mend,
	.leave = remote_leave,
};
