/*
 * registry_copy.c - what a partition's registry says, kept in memory beside a store that may lose
 * what it has acknowledged.
 *
 * The owner reads it when it loads, and notes each of its own writes; nobody else writes what the
 * partition's state needs. A standby reads it again as it follows. It goes by the registry's marks
 * (skv_store_marks): a registry that went back in time is not read. Documents that managers publish
 * about themselves, whoever the owner is, are each manager's own to publish again.
 *
 * The lock guards the documents. It is held while they are written to the store.
 */
#include <journal/registry_copy.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <journal/registry_write.h>

#define OTHERS "partition/" /* below the first partition's registry: that of others */
#define TRIES 10            /* of reading it while it changes */

struct registry_copy *registry_copy_make(void)
{
	struct registry_copy *r = skv_calloc(1, sizeof *r);

	if (r)
		skv_mutex_init(&r->lock);
	return r;
}

static void clear(struct registry_copy *r)
{
	for (size_t i = 0; i < r->n; i++) {
		skv_free(r->v[i].key);
		skv_free(r->v[i].bytes);
	}
	skv_free(r->v);
	r->v = NULL;
	r->n = r->cap = 0;
}

void registry_copy_destroy(struct registry_copy *r)
{
	if (!r)
		return;
	clear(r);
	skv_mutex_destroy(&r->lock);
	skv_free(r);
}

/* Where it is, or would be. */
static size_t find_locked(const struct registry_copy *r, const char *key, bool *there)
{
	size_t low = 0, high = r->n;

	assert(skv_mutex_held((struct skv_mutex *)&r->lock));
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(r->v[mid].key, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	*there = low < r->n && strcmp(r->v[low].key, key) == 0;
	return low;
}

static void remove_locked(struct registry_copy *r, size_t at)
{
	assert(at < r->n);
	skv_free(r->v[at].key);
	skv_free(r->v[at].bytes);
	memmove(r->v + at, r->v + at + 1, (--r->n - at) * sizeof *r->v);
}

static void put_locked(struct registry_copy *r, const char *key, const void *bytes, size_t n,
		       uint64_t version)
{
	struct copied fresh = { skv_strdup(key), skv_malloc(n + 1), n, version };
	void *v = r->v;
	bool there;
	size_t at = find_locked(r, key, &there);

	if (there && r->v[at].version > version && version > 1) /* 1: it was made anew */
		goto unused;
	if (!fresh.key || !fresh.bytes ||
	    skv_grow(&v, &r->cap, r->n + 1, sizeof *r->v) != SKV_OK) {
		r->incomplete = true;
		goto unused;
	}
	r->v = v;
	if (n)
		memcpy(fresh.bytes, bytes, n);
	if (there)
		remove_locked(r, at);
	memmove(r->v + at + 1, r->v + at, (r->n - at) * sizeof *r->v);
	r->v[at] = fresh;
	r->n++;
	return;
unused:
	skv_free(fresh.key);
	skv_free(fresh.bytes);
}

void registry_copy_put(struct registry_copy *r, const char *key, const void *bytes, size_t n,
		       uint64_t version)
{
	skv_mutex_lock(&r->lock);
	put_locked(r, key, bytes, n, version);
	skv_mutex_unlock(&r->lock);
}

void registry_copy_del(struct registry_copy *r, const char *key, uint64_t version)
{
	bool there;
	size_t at;

	skv_mutex_lock(&r->lock);
	at = find_locked(r, key, &there);
	if (there && r->v[at].version <= version)
		remove_locked(r, at);
	skv_mutex_unlock(&r->lock);
}

bool registry_copy_has(struct registry_copy *r, const char *key)
{
	bool there;

	skv_mutex_lock(&r->lock);
	find_locked(r, key, &there);
	skv_mutex_unlock(&r->lock);
	return there;
}

/* ---- from and to the store ------------------------------------------------------------------- */

static int note(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct registry_copy *r = ctx;

	if (strncmp(key, OTHERS, sizeof OTHERS - 1) == 0 || strcmp(key, SKV_STORE_RESTORING) == 0)
		return SKV_OK;
	registry_copy_put(r, key, bytes, n, version);
	return r->incomplete ? SKV_E_NOMEM : SKV_OK;
}

enum registry_state registry_copy_judge(struct registry_copy *r, const struct skv_registry_marks *m)
{
	char known[SKV_STORE_MARK];

	skv_mutex_lock(&r->lock);
	memcpy(known, skv_mark_older(r->mark, m->mine) ? m->mine : r->mark, sizeof known);
	skv_mutex_unlock(&r->lock);
	if (skv_mark_older(m->is, m->least) || skv_mark_older(m->is, known))
		return skv_mark_older(known, m->least) ? REGISTRY_GONE : REGISTRY_LOST;
	return strcmp(m->is, known) == 0 ? REGISTRY_WHOLE : REGISTRY_NEWER;
}

/* All of it, between two looks at its marks. SKV_E_CONFLICT: it changed. */
static int read_once(struct registry_copy *r, struct registry_copy *now, struct skv_core *c,
		     struct skv_error *err)
{
	struct skv_registry_marks before, after;
	int rc = skv_store_marks(c->store, 0, &before, err);

	clear(now);
	if (rc == SKV_OK)
		rc = skv_store_list(c->store, "", note, now, err);
	if (rc == SKV_OK)
		rc = skv_store_marks(c->store, 0, &after, err);
	if (rc != SKV_OK)
		return rc;
	if (registry_copy_judge(r, &after) >= REGISTRY_LOST)
		return skv_fail(err, SKV_E_STORE_IO, "store", "the registry went back in time");
	memcpy(now->mark, after.is, sizeof now->mark);
	return strcmp(before.is, after.is) == 0
		       ? SKV_OK
		       : skv_fail(err, SKV_E_CONFLICT, "store", "the registry kept changing");
}

int registry_copy_read(struct registry_copy *r, struct skv_core *c, struct skv_error *err)
{
	struct registry_copy *now = registry_copy_make();
	int rc = now ? SKV_E_CONFLICT : SKV_E_NOMEM;

	for (int i = 0; rc == SKV_E_CONFLICT && i < TRIES; i++)
		rc = read_once(r, now, c, err);
	if (rc == SKV_OK) {
		skv_error_clear(err);
		skv_mutex_lock(&r->lock);
		clear(r);
		r->v = now->v;
		r->n = now->n;
		r->cap = now->cap;
		r->incomplete = false;
		memcpy(r->mark, now->mark, sizeof r->mark);
		skv_mutex_unlock(&r->lock);
		now->v = NULL;
		now->n = 0;
	}
	registry_copy_destroy(now);
	return rc;
}

/* A kind of which managers publish documents about themselves: this one does, too. */
static bool is_published(struct skv_core *c, const char *key)
{
	const char *end = strrchr(key, '/');
	bool found = false;

	if (!end)
		return false;
	skv_mutex_lock(&c->published->lock);
	for (size_t i = 0; i < c->published->n && !found; i++)
		found = strncmp(c->published->v[i].key, key, (size_t)(end - key) + 1) == 0;
	skv_mutex_unlock(&c->published->lock);
	return found;
}

/* Those that the store has and the copy has not. */
static int remove_others(struct registry_copy *r, struct registry_copy *now, struct skv_core *c,
			 uint64_t fence, struct skv_error *err)
{
	int rc = SKV_OK;

	for (size_t i = 0; rc == SKV_OK && i < now->n; i++)
		if (!registry_copy_has(r, now->v[i].key) && !is_published(c, now->v[i].key))
			rc = registry_del_lost(c, fence, now->v[i].key, now->v[i].version, err);
	return rc;
}

static int write_one(const struct copied *d, struct registry_copy *now, struct skv_core *c,
		     uint64_t fence, struct skv_error *err)
{
	const struct skv_buf doc = { .data = d->bytes, .len = d->n };
	uint64_t version = SKV_VERSION_NONE;
	bool there, own = is_published(c, d->key);
	size_t at;
	int rc;

	skv_mutex_lock(&now->lock);
	at = find_locked(now, d->key, &there);
	skv_mutex_unlock(&now->lock);
	if (there && now->v[at].n == d->n && memcmp(now->v[at].bytes, d->bytes, d->n) == 0)
		return SKV_OK;
	if (there && own)
		return SKV_OK;
	if (there)
		version = now->v[at].version;
	rc = registry_put_lost(c, fence, d->key, version, &doc, err);
	if (rc == SKV_E_CONFLICT && !own)
		return skv_fail(err, rc, "store", "document '%s' has changed meanwhile", d->key);
	if (rc != SKV_E_CONFLICT)
		return rc;
	skv_error_clear(err); /* it is there again */
	return SKV_OK;
}

int registry_copy_settle(struct registry_copy *r, struct skv_core *c, uint64_t fence,
			  const struct skv_registry_marks *m, struct skv_error *err)
{
	const char *past = skv_mark_older(m->least, m->mine) ? m->mine : m->least;
	char known[SKV_STORE_MARK];

	skv_mutex_lock(&r->lock);
	memcpy(known, skv_mark_older(r->mark, past) ? past : r->mark, sizeof known);
	skv_mutex_unlock(&r->lock);
	return skv_store_restored(c->store, 0, fence, known, err);
}

int registry_copy_write(struct registry_copy *r, struct skv_core *c, uint64_t fence,
			const struct skv_registry_marks *m, struct skv_error *err)
{
	struct registry_copy *now;
	int rc;

	if (r->incomplete)
		return skv_fail(err, SKV_E_NOMEM, NULL, "memory was short for the registry's copy");
	now = registry_copy_make();
	rc = now ? skv_store_list(c->store, "", note, now, err) : SKV_E_NOMEM;
	if (rc == SKV_OK)
		rc = remove_others(r, now, c, fence, err);
	skv_mutex_lock(&r->lock);
	for (size_t i = 0; rc == SKV_OK && i < r->n; i++)
		rc = write_one(&r->v[i], now, c, fence, err);
	skv_mutex_unlock(&r->lock);
	registry_copy_destroy(now);
	return rc == SKV_OK ? registry_copy_settle(r, c, fence, m, err) : rc;
}

int registry_copy_publish(struct registry_copy *r, struct skv_core *c, struct skv_error *err)
{
	int rc = SKV_OK;

	skv_mutex_lock(&r->lock);
	for (size_t i = 0; rc == SKV_OK && i < r->n; i++) {
		uint64_t ignored;

		rc = skv_store_put(c->store, NULL, r->v[i].key, SKV_VERSION_NONE, r->v[i].bytes,
				   r->v[i].n, &ignored, err);
		if (rc == SKV_E_CONFLICT) { /* it is there */
			skv_error_clear(err);
			rc = SKV_OK;
		}
	}
	skv_mutex_unlock(&r->lock);
	return rc;
}
