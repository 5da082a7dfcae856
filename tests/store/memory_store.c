/*
 * memory_store.c - a metadata store in this process's memory: named stores, registry, ownership.
 *
 * Owns the list of named stores. One that has a name outlives its handles until it is forgotten, so
 * that a test can "restart" a manager on it; two handles see the same data like two processes on
 * one database. Every call behaves as the SQLite store's would, durability aside.
 *
 * Any thread. `stores_lock` guards the list, `memory.lock` one store; neither is taken inside the
 * other and both are held for copying only, never while a caller's function runs.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

#include "memory_internal.h"

static pthread_mutex_t stores_lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory *stores; /* stores_lock */

static int no_memory(struct skv_error *err)
{
	return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

/* ---- bytes ----------------------------------------------------------------------------------- */

struct blob *blob_make(const void *bytes, size_t n)
{
	struct blob *b = skv_malloc(sizeof *b + n);

	if (!b)
		return NULL;
	atomic_init(&b->refs, 1);
	b->n = n;
	memcpy(b->bytes, bytes, n);
	return b;
}

struct blob *blob_ref(struct blob *b)
{
	const unsigned before = atomic_fetch_add(&b->refs, 1);

	assert(before > 0);
	return b;
}

void blob_unref(struct blob *b)
{
	if (b && atomic_fetch_sub(&b->refs, 1) == 1)
		skv_free(b);
}

void blobs_clear(struct blobs *b)
{
	for (size_t i = 0; i < b->n; i++)
		blob_unref(b->at[i]);
	skv_free(b->at);
	*b = (struct blobs){ 0 };
}

/* ---- stores ---------------------------------------------------------------------------------- */

static struct memory *memory_make(const char *name)
{
	struct memory *m = skv_calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->name = skv_strdup(name);
	if (!m->name) {
		skv_free(m);
		return NULL;
	}
	skv_mutex_init(&m->lock);
	return m;
}

static void memory_destroy(struct memory *m)
{
	assert(m->refs == 0);
	for (size_t i = 0; i < m->n_entries; i++) {
		skv_free(m->entries[i].key);
		blob_unref(m->entries[i].value);
	}
	for (size_t i = 0; i < m->n_parts; i++) {
		blobs_clear(&m->parts[i]->journal);
		blobs_clear(&m->parts[i]->slices);
		blobs_clear(&m->parts[i]->draft);
		skv_free(m->parts[i]);
	}
	skv_free(m->entries);
	skv_free(m->parts);
	skv_free(m->name);
	skv_mutex_destroy(&m->lock);
	skv_free(m);
}

/* The list itself holds one reference to a named store. */
static struct memory *memory_get(const char *name)
{
	struct memory *m = NULL;

	pthread_mutex_lock(&stores_lock);
	if (*name)
		for (m = stores; m && strcmp(m->name, name) != 0; m = m->next)
			;
	if (!m) {
		m = memory_make(name);
		if (m && *name) {
			m->refs = 1;
			m->next = stores;
			stores = m;
		}
	}
	if (m)
		m->refs++;
	pthread_mutex_unlock(&stores_lock);
	return m;
}

static void memory_put_back(struct memory *m)
{
	bool last;

	pthread_mutex_lock(&stores_lock);
	assert(m->refs > 0);
	last = --m->refs == 0;
	pthread_mutex_unlock(&stores_lock);
	if (last)
		memory_destroy(m);
}

void skv_memory_store_forget(const char *name)
{
	struct memory **at, *m;

	pthread_mutex_lock(&stores_lock);
	for (at = &stores; *at && strcmp((*at)->name, name) != 0; at = &(*at)->next)
		;
	m = *at;
	if (m)
		*at = m->next;
	pthread_mutex_unlock(&stores_lock);
	if (m)
		memory_put_back(m);
}

static int memory_open(const struct skv_store_options *o, void **self, struct skv_error *err)
{
	struct handle *h = skv_calloc(1, sizeof *h);

	if (!h)
		return no_memory(err);
	h->clock = o->clock ? o->clock : &skv_clock_system;
	h->memory = memory_get(o->path);
	if (!h->memory) {
		skv_free(h);
		return no_memory(err);
	}
	*self = h;
	return SKV_OK;
}

static void memory_close(void *self)
{
	struct handle *h = self;

	memory_put_back(h->memory);
	skv_free(h);
}

/* ---- registry -------------------------------------------------------------------------------- */

/* Where `key` is or would be. */
static size_t entry_place_locked(const struct memory *m, const char *key, bool *found)
{
	size_t low = 0, high = m->n_entries;

	assert(skv_mutex_held(&m->lock));
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(m->entries[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*found = low < m->n_entries && strcmp(m->entries[low].key, key) == 0;
	return low;
}

static int check_version(bool found, uint64_t is, uint64_t expect, struct skv_error *err)
{
	if (expect == (found ? is : SKV_VERSION_NONE))
		return SKV_OK;
	return skv_fail(err, SKV_E_CONFLICT, NULL,
			found ? "the entry has version %llu" : "there is no such entry",
			(unsigned long long)is);
}

static int get_locked(const struct memory *m, const char *key, struct skv_buf *value,
		      uint64_t *version, struct skv_error *err)
{
	bool found;
	size_t at = entry_place_locked(m, key, &found);

	if (!found)
		return skv_fail(err, SKV_E_NOT_FOUND, NULL, "there is no such entry");
	skv_put_bytes(value, m->entries[at].value->bytes, m->entries[at].value->n);
	if (value->failed)
		return no_memory(err);
	*version = m->entries[at].version;
	return SKV_OK;
}

static int memory_registry_get(void *self, const char *key, struct skv_buf *value,
			       uint64_t *version, struct skv_error *err)
{
	struct memory *m = ((struct handle *)self)->memory;
	int rc;

	skv_mutex_lock(&m->lock);
	rc = get_locked(m, key, value, version, err);
	skv_mutex_unlock(&m->lock);
	return rc;
}

static int insert_locked(struct memory *m, size_t at, const char *key, struct blob *value,
			 struct skv_error *err)
{
	char *copy = skv_strdup(key);

	if (!copy || skv_grow((void **)&m->entries, &m->cap_entries, m->n_entries + 1,
			      sizeof m->entries[0]) != SKV_OK) {
		skv_free(copy);
		return no_memory(err);
	}
	assert(at <= m->n_entries);
	assert(at == 0 || strcmp(m->entries[at - 1].key, key) < 0);
	assert(at == m->n_entries || strcmp(key, m->entries[at].key) < 0);
	memmove(&m->entries[at + 1], &m->entries[at], (m->n_entries - at) * sizeof m->entries[0]);
	m->n_entries++;
	m->entries[at] = (struct entry){ copy, value, 1 };
	return SKV_OK;
}

static int check_writer_locked(struct memory *m, const struct skv_fence *fence,
			       struct skv_error *err)
{
	struct part *ignored;

	return fence ? part_fenced_locked(m, fence->partition, fence->number, &ignored, err)
		     : SKV_OK;
}

static int memory_registry_put(void *self, const struct skv_fence *fence, const char *key,
			       uint64_t expect, const void *bytes, size_t n, uint64_t *version,
			       struct skv_error *err)
{
	struct memory *m = ((struct handle *)self)->memory;
	struct blob *value = blob_make(bytes, n), *old = NULL;
	bool found;
	size_t at;
	int rc;

	if (!value)
		return no_memory(err);
	skv_mutex_lock(&m->lock);
	at = entry_place_locked(m, key, &found);
	rc = check_writer_locked(m, fence, err);
	if (rc == SKV_OK)
		rc = check_version(found, found ? m->entries[at].version : 0, expect, err);
	if (rc == SKV_OK && found) {
		old = m->entries[at].value;
		m->entries[at].value = value;
		m->entries[at].version++;
	} else if (rc == SKV_OK) {
		rc = insert_locked(m, at, key, value, err);
	}
	if (rc == SKV_OK)
		*version = m->entries[at].version;
	else
		old = value;
	skv_mutex_unlock(&m->lock);
	blob_unref(old);
	return rc;
}

static int memory_registry_del(void *self, const struct skv_fence *fence, const char *key,
			       uint64_t expect, struct skv_error *err)
{
	struct memory *m = ((struct handle *)self)->memory;
	bool found;
	size_t at;
	int rc;

	skv_mutex_lock(&m->lock);
	at = entry_place_locked(m, key, &found);
	rc = check_writer_locked(m, fence, err);
	if (rc == SKV_OK)
		rc = found ? check_version(true, m->entries[at].version, expect, err)
			   : skv_fail(err, SKV_E_NOT_FOUND, NULL, "there is no such entry");
	if (rc == SKV_OK) {
		assert(at < m->n_entries);
		skv_free(m->entries[at].key);
		blob_unref(m->entries[at].value);
		m->n_entries--;
		memmove(&m->entries[at], &m->entries[at + 1],
			(m->n_entries - at) * sizeof m->entries[0]);
	}
	skv_mutex_unlock(&m->lock);
	return rc;
}

static int memory_registry_list(void *self, const char *prefix, skv_registry_fn fn, void *ctx,
				struct skv_error *err)
{
	struct memory *m = ((struct handle *)self)->memory;
	struct skv_buf b;
	bool found;

	skv_buf_init(&b);
	skv_mutex_lock(&m->lock);
	for (size_t i = entry_place_locked(m, prefix, &found); i < m->n_entries; i++) {
		const struct entry *e = &m->entries[i];

		if (strncmp(e->key, prefix, strlen(prefix)) != 0)
			break;
		listing_add(&b, e->key, e->value->bytes, e->value->n, e->version);
	}
	skv_mutex_unlock(&m->lock);
	return listing_deliver(&b, fn, ctx, err);
}

/* ---- ownership ------------------------------------------------------------------------------- */

struct part *part_find_locked(struct memory *m, uint32_t number)
{
	struct part *p;

	assert(skv_mutex_held(&m->lock));
	for (size_t i = 0; i < m->n_parts; i++)
		if (m->parts[i]->number == number)
			return m->parts[i];
	if (skv_grow((void **)&m->parts, &m->cap_parts, m->n_parts + 1, sizeof m->parts[0]) !=
	    SKV_OK)
		return NULL;
	p = skv_calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->number = number;
	m->parts[m->n_parts++] = p;
	return p;
}

int part_fenced_locked(struct memory *m, uint32_t number, uint64_t fence, struct part **out,
		       struct skv_error *err)
{
	*out = part_find_locked(m, number);
	if (!*out)
		return no_memory(err);
	if ((*out)->owner[0] == '\0' || (*out)->fence != fence)
		return skv_fail(err, SKV_E_FENCED, NULL, "partition %u has a newer owner", number);
	return SKV_OK;
}

static int memory_acquire(void *self, uint32_t partition, const char *owner, uint32_t ttl_ms,
			  uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err)
{
	const struct handle *h = self;
	struct memory *m = h->memory;
	uint64_t now = skv_now_ms(h->clock);
	struct part *p;
	int rc = SKV_OK;

	skv_mutex_lock(&m->lock);
	p = part_find_locked(m, partition);
	if (!p) {
		rc = no_memory(err);
	} else if (p->owner[0] && strcmp(p->owner, owner) != 0 && now < p->expires_ms &&
		   !skv_owner_is_dead(p->owner)) {
		snprintf(holder, holder_size, "%s", p->owner);
		rc = skv_fail(err, SKV_E_NOT_OWNER, NULL, "partition %u belongs to %s", partition,
			      p->owner);
	} else if (ttl_ms > 0) {
		snprintf(p->owner, sizeof p->owner, "%s", owner);
		*fence = ++p->fence;
		p->expires_ms = now + ttl_ms;
		p->building = 0;
		blobs_clear(&p->draft);
	}
	skv_mutex_unlock(&m->lock);
	return rc;
}

static int memory_renew(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
			struct skv_error *err)
{
	const struct handle *h = self;
	uint64_t now = skv_now_ms(h->clock);
	struct part *p;
	int rc;

	skv_mutex_lock(&h->memory->lock);
	rc = part_fenced_locked(h->memory, partition, fence, &p, err);
	if (rc == SKV_OK)
		p->expires_ms = now + ttl_ms;
	skv_mutex_unlock(&h->memory->lock);
	return rc;
}

static int memory_release(void *self, uint32_t partition, uint64_t fence, struct skv_error *err)
{
	const struct handle *h = self;
	struct part *p;
	int rc;

	skv_mutex_lock(&h->memory->lock);
	rc = part_fenced_locked(h->memory, partition, fence, &p, err);
	if (rc == SKV_OK) {
		p->owner[0] = '\0';
		p->fence++;
	}
	skv_mutex_unlock(&h->memory->lock);
	return rc;
}

static int memory_sync(void *self, uint32_t partition, struct skv_error *err)
{
	(void)self;
	(void)partition;
	(void)err;
	return SKV_OK;
}

const struct skv_store_ops skv_store_memory = {
	.size = sizeof skv_store_memory,
	.name = "memory",
	.open = memory_open,
	.close = memory_close,
	.get = memory_registry_get,
	.put = memory_registry_put,
	.del = memory_registry_del,
	.list = memory_registry_list,
	.acquire = memory_acquire,
	.renew = memory_renew,
	.release = memory_release,
	.append = memory_append,
	.sync = memory_sync,
	.checkpoint_begin = memory_checkpoint_begin,
	.checkpoint_slice = memory_checkpoint_slice,
	.checkpoint_commit = memory_checkpoint_commit,
	.checkpoint_abort = memory_checkpoint_abort,
	.load = memory_load,
	.follow = memory_follow,
	.stats = memory_stats,
};
