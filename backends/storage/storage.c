/*
 * storage.c - the guarded wrapper around a storage backend, and the list of backends.
 *
 * Owns the opened handle. Every call of every backend passes here: arguments are checked once, the
 * call is counted and timed, a failure always has an error text, and one debug line reports request
 * and result. This keeps backends small.
 *
 * Called from any thread; there is no lock. A call blocks as long as
 * the backend does. Nothing is retried here: the caller knows what a repetition would mean.
 */
#include <skv/storage.h>

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/limits.h>
#include <skv/lock.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/superblock.h>

#include "remote.h"

struct skv_storage {
	const struct skv_storage_ops *type; /* operations of the storage's type */
	const struct skv_storage_ops *ops;  /* operations that serve the calls */
	void *self;
	char *name;
	atomic_uint users;
};

static const struct skv_storage_ops *const known[] = { &skv_storage_file, &skv_storage_hf3fs,
						       &skv_storage_null, &skv_storage_external,
						       &skv_storage_memory };

const struct skv_storage_ops *skv_storage_find(const char *type)
{
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strcmp(type, known[i]->type) == 0)
			return known[i];
	return NULL;
}

static bool is_complete(const struct skv_storage_ops *ops)
{
	return ops->size >= sizeof *ops && ops->type && ops->open && ops->close &&
	       ops->create_file && ops->check_file && ops->remove_file && ops->probe &&
	       !ops->chunked == !ops->chunk && !ops->owners == !ops->claim &&
	       !ops->owners == !ops->disown;
}

/* A call in progress. `err` is never NULL inside: the backend may always explain itself. */
struct call {
	const char *what;
	const char *name; /* of the storage */
	uint64_t begin_us;
	struct skv_error *err;
	struct skv_error unasked;
};

static void call_begin(struct call *c, const char *name, const char *what, struct skv_error *err)
{
	assert(skv_thread_locks == 0);
	c->what = what;
	c->name = name;
	c->begin_us = skv_now_us();
	c->err = err ? err : &c->unasked;
	skv_error_clear(c->err);
}

/* Ends the call: makes sure that a failure is a known status with a sentence, and logs. */
static int call_end(struct call *c, int rc)
{
	const uint64_t us = skv_now_us() - c->begin_us;

	if (rc > 0 || (rc < 0 && skv_status_from_name(skv_status_name(rc)) != rc))
		rc = skv_fail(c->err, SKV_E_INTERNAL, NULL, "%s: the backend answered %d", c->what,
			      rc);
	else if (rc != SKV_OK && c->err->message[0] == '\0')
		skv_fail(c->err, rc, NULL, "%s: %s", c->what, skv_status_text(rc));
	skv_log(SKV_LOG_DEBUG, "storage", "%s: %s: %s, %llu us%s%s", c->name, c->what,
		skv_status_name(rc), (unsigned long long)us, rc == SKV_OK ? "" : ": ",
		rc == SKV_OK ? "" : c->err->message);
	assert(rc <= SKV_OK && (rc == SKV_OK || c->err->message[0]));
	return rc;
}

static int check_config(const struct skv_storage_ops *ops, const struct skv_storage_config *c,
			struct skv_error *err)
{
	static const uint8_t zero[sizeof c->uuid];

	if (!is_complete(ops))
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
				"the storage backend lacks a function");
	if (!c->name || c->name[0] == '\0')
		return skv_fail(err, SKV_E_INVALID, "name", "a storage needs a name");
	if (memcmp(c->uuid, zero, sizeof zero) == 0)
		return skv_fail(err, SKV_E_INVALID, "uuid", "a storage needs a uuid");
	if (c->unit == 0 || (c->unit & (c->unit - 1)) != 0)
		return skv_fail(err, SKV_E_INVALID, "unit", "the unit must be a power of two");
	if (c->n_masters && (c->n_masters > SKV_MAX_FS_MASTERS || !ops->edge))
		return skv_fail(err, SKV_E_INVALID, "fs_master",
				"%u at most, of types file, hf3fs and memory", SKV_MAX_FS_MASTERS);
	if (c->chunk && !ops->chunked)
		return skv_fail(err, SKV_E_INVALID, "chunk_size",
				"a storage of type '%s' has no chunks", ops->type);
	if ((c->chunk & (c->chunk - 1)) != 0 || c->chunk > SKV_CHUNK_MAX ||
	    (c->chunk && c->chunk < SKV_SUPERBLOCK_SIZE))
		return skv_fail(err, SKV_E_INVALID, "chunk_size", "a power of two, 64 MiB at most");
	return SKV_OK;
}

int skv_storage_open(const struct skv_storage_ops *ops, const struct skv_storage_config *c,
		     struct skv_storage **out, struct skv_error *err)
{
	struct skv_storage *s = NULL;
	struct call call;
	int rc;

	call_begin(&call, c->name ? c->name : "?", "open", err);
	rc = check_config(ops, c, call.err);
	if (rc == SKV_OK) {
		s = skv_calloc(1, sizeof *s);
		if (s)
			s->name = skv_strdup(c->name);
		if (!s || !s->name)
			rc = skv_fail(call.err, SKV_E_NOMEM, NULL, "out of memory");
	}
	if (rc == SKV_OK) {
		s->type = ops;
		s->ops = c->n_masters ? &skv_remote : ops;
		rc = c->n_masters ? skv_remote_open(ops->type, c, &s->self, call.err)
				  : ops->open(c, &s->self, call.err);
	}
	rc = call_end(&call, rc);
	if (rc == SKV_OK) {
		atomic_init(&s->users, 1);
		*out = s;
		return SKV_OK;
	}
	if (s)
		skv_free(s->name);
	skv_free(s);
	return rc;
}

struct skv_storage *skv_storage_share(struct skv_storage *s)
{
	const unsigned users = atomic_fetch_add(&s->users, 1);

	assert(users > 0);
	(void)users;
	return s;
}

void skv_storage_close(struct skv_storage *s)
{
	if (!s || atomic_fetch_sub(&s->users, 1) > 1)
		return;
	s->ops->close(s->self);
	skv_free(s->name);
	skv_free(s);
}

const struct skv_storage_ops *skv_storage_ops_of(const struct skv_storage *s) { return s->type; }

uint64_t skv_storage_chunk(const struct skv_storage *s)
{
	const uint64_t chunk = s->type->chunked ? s->ops->chunk(s->self) : 0;

	assert((chunk & (chunk - 1)) == 0);
	return chunk;
}

static int check_file(const struct skv_storage *s, uint32_t file, uint64_t length,
		      struct skv_error *err)
{
	if (file == SKV_NO_FILE)
		return skv_fail(err, SKV_E_INVALID, NULL, "%u is not the number of a slab file",
				file);
	if (length <= 2 * skv_storage_edge(s->type, skv_storage_chunk(s)) || length > INT64_MAX)
		return skv_fail(err, SKV_E_INVALID, "file_size",
				"a slab file cannot have %llu bytes", (unsigned long long)length);
	return SKV_OK;
}

int skv_storage_create_file(struct skv_storage *s, uint32_t file, uint64_t length,
			    struct skv_error *err)
{
	struct call call;
	int rc;

	call_begin(&call, s->name, "create_file", err);
	rc = check_file(s, file, length, call.err);
	if (rc == SKV_OK)
		rc = s->ops->create_file(s->self, file, length, call.err);
	return call_end(&call, rc);
}

int skv_storage_check_file(struct skv_storage *s, uint32_t file, uint64_t length,
			   struct skv_error *err)
{
	struct call call;
	int rc;

	call_begin(&call, s->name, "check_file", err);
	rc = check_file(s, file, length, call.err);
	if (rc == SKV_OK)
		rc = s->ops->check_file(s->self, file, length, call.err);
	return call_end(&call, rc);
}

int skv_storage_mend_file(struct skv_storage *s, uint32_t file, uint64_t length,
			  struct skv_error *err)
{
	struct call call;
	int rc;

	call_begin(&call, s->name, "mend_file", err);
	rc = check_file(s, file, length, call.err);
	if (rc == SKV_OK && !s->ops->mend_file)
		rc = skv_fail(call.err, SKV_E_UNSUPPORTED, NULL,
			      "a storage of type '%s' has nothing to repair", s->type->type);
	if (rc == SKV_OK)
		rc = s->ops->mend_file(s->self, file, length, call.err);
	return call_end(&call, rc);
}

int skv_storage_remove_file(struct skv_storage *s, uint32_t file, struct skv_error *err)
{
	struct call call;
	int rc;

	call_begin(&call, s->name, "remove_file", err);
	rc = check_file(s, file, INT64_MAX, call.err);
	if (rc == SKV_OK)
		rc = s->ops->remove_file(s->self, file, call.err);
	return call_end(&call, rc);
}

static int check_ranges(const struct skv_storage *s, uint64_t length,
			const struct skv_storage_range *v, uint32_t n, struct skv_error *err)
{
	const uint64_t edge = skv_storage_edge(s->type, skv_storage_chunk(s));

	if (n == 0 || n > SKV_PUNCH_MAX)
		return skv_fail(err, SKV_E_INVALID, "ranges", "1..%u of them", SKV_PUNCH_MAX);
	for (uint32_t i = 0; i < n; i++)
		if (v[i].begin >= v[i].end || v[i].begin % edge || v[i].end % edge ||
		    v[i].begin < edge || v[i].end > length - edge)
			return skv_fail(
				err, SKV_E_INVALID, "ranges",
				"range %u (%llu to %llu) is not whole chunks of %llu bytes between "
				"header and trailer",
				i, (unsigned long long)v[i].begin, (unsigned long long)v[i].end,
				(unsigned long long)edge);
	return SKV_OK;
}

int skv_storage_punch_file(struct skv_storage *s, uint32_t file, uint64_t length,
			   const struct skv_storage_range *v, uint32_t n, struct skv_error *err)
{
	struct call call;
	int rc;

	call_begin(&call, s->name, "punch_file", err);
	rc = check_file(s, file, length, call.err);
	if (rc == SKV_OK && !s->type->punch_file)
		rc = skv_fail(call.err, SKV_E_UNSUPPORTED, NULL,
			      "slab files of type '%s' keep their space: remove files instead",
			      s->type->type);
	if (rc == SKV_OK)
		rc = check_ranges(s, length, v, n, call.err);
	if (rc == SKV_OK)
		rc = s->ops->punch_file(s->self, file, length, v, n, call.err);
	return call_end(&call, rc);
}

/* ---- owner files ----------------------------------------------------------------------------- */

static int check_owner(const struct skv_storage *s, const struct skv_storage_owner *o,
		       struct skv_error *err)
{
	if (!s->type->owners)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
				"a storage of type '%s' has no owner files", s->type->type);
	if (o->incarnation == 0)
		return skv_fail(err, SKV_E_INVALID, "incarnation", "incarnations begin at 1");
	return SKV_OK;
}

static int by_incarnation(const void *a, const void *b)
{
	const struct skv_storage_owner *x = a, *y = b;

	return x->incarnation < y->incarnation ? 1 : x->incarnation > y->incarnation ? -1 : 0;
}

int skv_storage_owners(struct skv_storage *s, const struct skv_storage_owner *mine,
		       struct skv_storage_owner v[SKV_STORAGE_OWNERS], uint32_t *n,
		       struct skv_error *err)
{
	struct call call;
	uint32_t found = 0;
	int rc;

	call_begin(&call, s->name, "owners", err);
	rc = s->type->owners ? s->ops->owners(s->self, mine, v, &found, call.err)
			     : skv_fail(call.err, SKV_E_UNSUPPORTED, NULL,
					"a storage of type '%s' has no owner files", s->type->type);
	rc = call_end(&call, rc);
	if (rc != SKV_OK)
		return rc;
	assert(found <= SKV_STORAGE_OWNERS);
	qsort(v, found, sizeof *v, by_incarnation);
	*n = found;
	return SKV_OK;
}

int skv_storage_claim(struct skv_storage *s, const struct skv_storage_owner *o,
		      struct skv_error *err)
{
	struct call call;
	int rc;

	call_begin(&call, s->name, "claim", err);
	rc = check_owner(s, o, call.err);
	if (rc == SKV_OK && skv_storage_owner_is_damaged(o))
		rc = skv_fail(call.err, SKV_E_INVALID, "nonce", "a nonce must not be all zeros");
	if (rc == SKV_OK)
		rc = s->ops->claim(s->self, o, call.err);
	return call_end(&call, rc);
}

int skv_storage_disown(struct skv_storage *s, const struct skv_storage_owner *o,
		       struct skv_error *err)
{
	struct call call;
	int rc;

	call_begin(&call, s->name, "disown", err);
	rc = check_owner(s, o, call.err);
	if (rc == SKV_OK)
		rc = s->ops->disown(s->self, o, call.err);
	return call_end(&call, rc);
}

int skv_storage_leave(struct skv_storage *s, struct skv_error *err)
{
	struct call call;
	int rc;

	call_begin(&call, s->name, "leave", err);
	rc = s->type->leave ? s->ops->leave(s->self, call.err)
			    : skv_fail(call.err, SKV_E_UNSUPPORTED, NULL,
				       "a storage of type '%s' has no directory", s->type->type);
	return call_end(&call, rc);
}

int skv_storage_probe(struct skv_storage *s, enum skv_probe what, struct skv_storage_health *out,
		      struct skv_error *err)
{
	static const char *const names[] = { [SKV_PROBE_ROOT] = "probe",
					     [SKV_PROBE_READ] = "probe_read",
					     [SKV_PROBE_WRITE] = "probe_write" };
	struct call call;

	assert(what <= SKV_PROBE_WRITE);
	call_begin(&call, s->name, names[what], err);
	return call_end(&call, s->ops->probe(s->self, what, out, call.err));
}
