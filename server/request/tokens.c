/*
 * tokens.c - tokens in the store. See tokens.h.
 *
 * Owns the thread that reads them. Documents are written by workers that serve an administrator;
 * the table belongs to auth.c, which keeps the reading that began last. The lock is only for the
 * thread's end; none is held across a call of the store.
 */
#include <skv/tokens.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/auth.h>
#include <skv/clock.h>
#include <skv/core.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>
#include <skv/tenants.h>

#define PREFIX "token/"

static uint64_t now_s(void) { return skv_wall_ms(&skv_clock_system) / 1000; }

static void document_name(const char *name, char out[sizeof PREFIX + SKV_MAX_NAME])
{
	snprintf(out, sizeof PREFIX + SKV_MAX_NAME, PREFIX "%s", name);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The lines of one document. */
static int add_lines(const struct skv_doc *doc, struct auth_table *t, struct skv_arena *a,
		     struct skv_error *err)
{
	char *text = skv_arena_alloc(a, strlen(doc->text) + 1), *rest = NULL;
	unsigned number = 0;
	int rc = text ? SKV_OK : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");

	if (rc == SKV_OK)
		memcpy(text, doc->text, strlen(doc->text) + 1);
	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && rc == SKV_OK;
	     line = strtok_r(NULL, "\n", &rest)) {
		const size_t before = t->n;

		rc = skv_auth_add_line(t, line, doc->name, ++number, err);
		if (t->n > before)
			snprintf(t->v[before].name, sizeof t->v[before].name, "%s",
				 doc->name + strlen(PREFIX));
	}
	return rc;
}

static int read_all(struct skv_tokens *t, struct skv_error *err)
{
	const uint64_t turn = skv_auth_begin_stored(t->auth);
	struct auth_table fresh = { 0 };
	struct skv_doc *docs;
	struct skv_arena a;
	uint32_t n = 0;
	int rc;

	skv_arena_init(&a);
	rc = skv_cluster_doc_list(t->cluster, PREFIX, &a, &docs, &n, err);
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		struct skv_error bad;

		/* a bad document is no reason to refuse all others */
		if (add_lines(&docs[i], &fresh, &a, &bad) == SKV_E_NOMEM)
			rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	skv_arena_destroy(&a);
	if (rc == SKV_OK)
		skv_auth_set_stored(t->auth, &fresh, turn);
	skv_free(fresh.v);
	return rc;
}

static bool wait_for_end(struct skv_tokens *t)
{
	bool ending;

	skv_mutex_lock(&t->lock);
	if (!t->ending)
		skv_cond_wait_ms(&t->wake, &t->lock, SKV_TOKENS_EVERY_MS);
	ending = t->ending;
	skv_mutex_unlock(&t->lock);
	return ending;
}

static void read_both(struct skv_tokens *t)
{
	struct skv_error err;
	int rc = read_all(t, &err);

	if (rc == SKV_OK)
		rc = skv_tenants_read(t->tenants, &err);
	if (rc != SKV_OK && !t->told)
		skv_log(SKV_LOG_WARN, "tokens",
			"the tokens and tenants in the store cannot be read, those known stay: %s",
			err.message);
	t->told = rc != SKV_OK;
}

static void *read_on(void *arg)
{
	struct skv_tokens *t = arg;

	while (!wait_for_end(t))
		read_both(t);
	return NULL;
}

int skv_tokens_start(struct skv_tokens *t, struct auth *auth, struct skv_tenants *tenants,
		     struct skv_cluster *cluster, struct skv_error *err)
{
	*t = (struct skv_tokens){ .auth = auth, .tenants = tenants, .cluster = cluster };
	skv_mutex_init(&t->lock);
	skv_cond_init(&t->wake);
	if (!auth->path || !cluster)
		return SKV_OK;
	skv_auth_use_store(auth);
	skv_tenants_use_store(tenants, cluster);
	read_both(t);
	t->running = pthread_create(&t->thread, NULL, read_on, t) == 0;
	return t->running ? SKV_OK
			  : skv_fail(err, SKV_E_NOMEM, NULL, "cannot start a thread for tokens");
}

void skv_tokens_stop(struct skv_tokens *t)
{
	skv_mutex_lock(&t->lock);
	t->ending = true;
	skv_cond_broadcast(&t->wake);
	skv_mutex_unlock(&t->lock);
	if (t->running)
		pthread_join(t->thread, NULL);
	skv_cond_destroy(&t->wake);
	skv_mutex_destroy(&t->lock);
}

/* ---- changing -------------------------------------------------------------------------------- */

/* Refuses what the file decides. */
static int check_name(struct skv_tokens *t, const char *name, struct skv_error *err)
{
	struct auth_table file, stored;
	struct skv_arena a;
	int rc;

	if (!t->running)
		return skv_fail(err, SKV_E_CONFLICT, NULL,
				"without a tokens_file everybody is admin: start the manager with "
				"one that has an administrator's token ('slabkv token new')");
	if (strlen(name) > AUTH_NAME)
		return skv_fail(err, SKV_E_INVALID, "name", "a token's name has at most %d "
				"characters", AUTH_NAME);
	skv_arena_init(&a);
	rc = skv_auth_list(t->auth, &a, &file, &stored, err);
	for (size_t i = 0; rc == SKV_OK && i < file.n; i++)
		if (strcmp(file.v[i].name, name) == 0)
			rc = skv_fail(err, SKV_E_CONFLICT, "name",
				      "this token is in the tokens_file: change its line there, "
				      "and send SIGHUP");
	if (rc == SKV_OK && stored.n >= AUTH_STORED_MAX)
		rc = skv_fail(err, SKV_E_TOO_MANY, NULL, "there are %d tokens, the most",
			      AUTH_STORED_MAX);
	skv_arena_destroy(&a);
	return rc;
}

/* Appends the line of the previous token, which ends after spec->keep_s; nothing without one. */
static int keep_old(const struct skv_doc *doc, const struct skv_token_spec *spec,
		    struct skv_arena *a, struct skv_buf *out, struct skv_error *err)
{
	struct auth_table old = { 0 };
	const uint64_t until = now_s() + spec->keep_s;
	int rc = add_lines(doc, &old, a, err);

	if (rc == SKV_OK && old.n > 0) {
		struct auth_token *last = &old.v[0]; /* the newest stands first */

		if (!last->expires_s || last->expires_s > until)
			last->expires_s = until;
		skv_token_write(out, last);
	}
	skv_free(old.v);
	return rc == SKV_E_INVALID ? SKV_OK : rc;
}

int skv_tokens_put(struct skv_tokens *t, const char *name, const struct skv_token_spec *spec,
		   bool *created, struct skv_error *err)
{
	char document[sizeof PREFIX + SKV_MAX_NAME];
	struct auth_token made = { .created_s = now_s(), .expires_s = spec->expires_s };
	struct skv_buf text = { 0 };
	struct skv_arena a;
	struct skv_doc old;
	int rc = check_name(t, name, err);

	if (rc == SKV_OK && (!skv_role_parse(spec->role, &made.role) ||
			     !skv_token_hash_parse(spec->hash, made.digest)))
		rc = skv_fail(err, SKV_E_INVALID, "hash", "64 hex digits are expected");
	if (rc != SKV_OK)
		return rc;
	snprintf(made.name, sizeof made.name, "%s", name);
	snprintf(made.tenant, sizeof made.tenant, "%s", spec->tenant);
	document_name(name, document);
	skv_arena_init(&a);
	skv_token_write(&text, &made);
	rc = skv_cluster_doc_get(t->cluster, document, &a, &old, err);
	*created = rc == SKV_E_NOT_FOUND;
	if (rc == SKV_OK && spec->keep_s)
		rc = keep_old(&old, spec, &a, &text, err);
	if (rc == SKV_E_NOT_FOUND)
		rc = SKV_OK;
	skv_put_u8(&text, '\0');
	if (rc == SKV_OK && text.failed)
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc == SKV_OK)
		rc = skv_cluster_doc_put(t->cluster, document, SKV_PUT_ANY, (char *)text.data,
					 err);
	skv_buf_destroy(&text);
	skv_arena_destroy(&a);
	return rc == SKV_OK ? read_all(t, err) : rc;
}

int skv_tokens_delete(struct skv_tokens *t, const char *name, struct skv_error *err)
{
	char document[sizeof PREFIX + SKV_MAX_NAME];
	int rc = check_name(t, name, err);

	if (rc != SKV_OK && rc != SKV_E_TOO_MANY)
		return rc;
	document_name(name, document);
	rc = skv_cluster_doc_delete(t->cluster, document, err);
	if (rc == SKV_E_NOT_FOUND)
		return skv_fail(err, rc, NULL, "there is no token '%s'", name);
	return rc == SKV_OK ? read_all(t, err) : rc;
}

/* ---- listing --------------------------------------------------------------------------------- */

static struct skv_token_view view_of(const struct auth_token *v, const char *source, uint64_t now)
{
	struct skv_token_view out = {
		.source = source, .role = skv_role_name(v->role), .created_s = v->created_s,
		.expires_s = v->expires_s, .expired = v->expires_s && now >= v->expires_s,
		.clear = v->clear,
	};

	snprintf(out.name, sizeof out.name, "%s", v->name);
	snprintf(out.tenant, sizeof out.tenant, "%s", v->tenant);
	return out;
}

int skv_tokens_list(struct skv_tokens *t, const char *name, struct skv_arena *a,
		    struct skv_token_view **out, uint32_t *n, struct skv_error *err)
{
	const uint64_t now = now_s();
	struct auth_table file, stored;
	int rc = skv_auth_list(t->auth, a, &file, &stored, err);

	*n = 0;
	if (rc != SKV_OK)
		return rc;
	*out = skv_arena_calloc(a, file.n + stored.n + 1, sizeof **out);
	if (!*out)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (size_t i = 0; i < file.n + stored.n; i++) {
		const bool of_file = i < file.n;
		const struct auth_token *v = of_file ? &file.v[i] : &stored.v[i - file.n];

		if (!name || strcmp(name, v->name) == 0)
			(*out)[(*n)++] = view_of(v, of_file ? "file" : "store", now);
	}
	if (name && *n == 0)
		return skv_fail(err, SKV_E_NOT_FOUND, NULL, "there is no token '%s'", name);
	return SKV_OK;
}
