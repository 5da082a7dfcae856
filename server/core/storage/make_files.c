/*
 * make_files.c - creates the slab files that a storage grows by: an errand (errand.c).
 */
#include "make_files.h"

#include <string.h>

#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/device.h>
#include <model/files.h>
#include <model/partition.h>
#include <model/volume.h>
#include <journal/registry.h>
#include <journal/registry_write.h>
#include <storage/device.h>
#include "device_look.h"

/* Bytes of the first slab file, if creating files allocates their space. */
#define FIRST_FILE (64ull << 20)
/* Slab files that are shortened to what a disk has are multiples of it. */
#define SHORT_GRAIN (1ull << 20)
#define GROW_FULL_MS 5000u /* before a full file system is retried */
#define GROW_RETRY_MS 200u

/* Returns true for files that are allocated when they are made, in units of a file system. */
static bool may_shorten(const struct device *d) { return !d->ops->chunked && !d->ops->steady; }

/* Many short files would be searched and checked for little. */
static uint64_t shortest_file(const struct device *d)
{
	return may_shorten(d) && d->unit / 4 > SHORT_GRAIN ? d->unit / 4 : d->unit;
}

/* Where creating a file allocates its space at once, the first file is small, so that a trial costs
 * little. */
static uint64_t wanted_length(const struct device *d, const struct look *k)
{
	bool first = k->files == 0 && may_shorten(d);
	uint64_t little = d->unit > FIRST_FILE ? d->unit : FIRST_FILE;

	return first && little < d->file_size ? little : d->file_size;
}

static uint64_t next_length(const struct device *d, const struct look *k)
{
	uint64_t room = k->capacity > k->file_bytes ? k->capacity - k->file_bytes : 0;
	uint64_t wanted = wanted_length(d, k), n = wanted < room ? wanted : room;
	uint64_t most = atomic_load(&d->fs_free);

	n -= n % d->unit;
	most = most > k->unwritten ? most - k->unwritten : 0;
	most = most < d->longest ? most : d->longest;
	if (n > most)
		n = most - most % (shortest_file(d) < d->unit ? SHORT_GRAIN : d->unit);
	return n >= shortest_file(d) && n > 2 * d->edge ? n : 0;
}

/* A quota, or blocks of the file system itself, may leave less than it says is free. */
static bool shorten(struct device *d, uint64_t failed)
{
	d->longest = failed / 2 > shortest_file(d) ? failed / 2 : shortest_file(d);
	return d->longest < failed;
}

static void allow_longer(struct device *d)
{
	d->longest = d->longest > UINT64_MAX / 2 ? UINT64_MAX : 2 * d->longest;
}

/* Free space was measured before the file was made, and the next one may begin at once. Chunks are
 * allocated when they are written. */
static void take_space(struct device *d, uint64_t length)
{
	const uint64_t free_bytes = atomic_load(&d->fs_free);

	if (!d->ops->chunked && free_bytes != UINT64_MAX)
		atomic_store(&d->fs_free, free_bytes > length ? free_bytes - length : 0);
}

/* The document of a file claimed by an earlier attempt. */
static int claimed_file(struct device *d, struct volume_file *f, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	char key[64];
	int rc;

	registry_file_key(key, d->id, f->number);
	rc = skv_store_get(d->core->store, key, &b, &f->version, err);
	if (rc == SKV_OK && (!registry_get_file(b.data, b.len, f) || f->state != FILE_IN_USE))
		rc = skv_fail(err, SKV_E_CORRUPT, NULL, "registry: %s", key);
	skv_buf_destroy(&b);
	return rc;
}

/* After a rollback: an existing file was the other copy's, and its clients may still write there
 * while free slots wait. */
static bool was_there(struct device *d, struct skv_storage *s, const struct volume_file *f)
{
	struct skv_error why = { 0 };
	bool resting;

	skv_rwlock_read(&d->core->lock);
	resting =
		d->core->partition && d->core->partition->freeze_until > skv_now_ms(d->core->clock);
	skv_rwlock_read_unlock(&d->core->lock);
	return resting && skv_storage_has_owners(d->ops) &&
	       skv_storage_check_file(s, f->number, f->length, &why) != SKV_E_NOT_FOUND;
}

/* The other thread has just checked the directory's owner, and does so every second. */
static int create_file(struct device *d, struct volume_file *f, struct skv_error *err)
{
	struct skv_storage *s = device_use(d);
	int rc;

	if (!s)
		rc = device_not_open(d, err);
	else if (!device_healthy(d))
		rc = skv_fail(err, SKV_E_UNAVAILABLE, NULL, "the storage is not healthy");
	else {
		f->rests = was_there(d, s, f);
		rc = skv_storage_create_file(s, f->number, f->length, err);
	}
	skv_storage_close(s);
	return rc;
}

/* Claims the number in the registry first, so that no other manager creates the same file. */
static int make_file(struct device *d, uint64_t fence, struct volume_file *f, struct skv_error *err)
{
	struct skv_buf doc = { 0 };
	char key[64];
	int rc;

	registry_file_key(key, d->id, f->number);
	registry_put_file(&doc, f);
	rc = registry_put(d->core, fence, key, SKV_VERSION_NONE, &doc, &f->version, err);
	skv_buf_destroy(&doc);
	if (rc == SKV_E_CONFLICT) /* claimed by an earlier attempt that could not create it */
		rc = claimed_file(d, f, err);
	if (rc != SKV_OK)
		return rc;
	rc = create_file(d, f, err);
	if (rc == SKV_E_NO_SPACE)
		registry_del(d->core, fence, key, f->version, NULL);
	return rc;
}

/* Work done for a partition that is gone does not count: the registry's state of the file may have
 * changed meanwhile. */
static void grow_over(struct device *d, uint64_t fence, const struct volume_file *f, int rc,
		      const char *why)
{
	struct skv_core *c = d->core;
	uint64_t now = skv_now_ms(c->clock);
	bool full = rc == SKV_E_NO_SPACE && !(f->length && shorten(d, f->length));
	bool news = true;
	struct volume *s;

	core_lock(c);
	s = c->partition && c->partition->fence == fence ? device_volume(c->partition, d) : NULL;
	if (s) {
		if (rc == SKV_OK)
			rc = file_add(s, f);
		if (rc == SKV_OK && f->rests)
			skv_pool_freeze_free(s->pool, c->partition->freeze_until);
		s->growing = false;
		news = rc == SKV_OK || s->grow_full != full || !s->grow_failing_since;
		s->grow_full = full;
		s->grow_again_at = rc == SKV_OK ? 0 : now + (full ? GROW_FULL_MS : GROW_RETRY_MS);
		s->grow_failing_since = rc == SKV_OK            ? 0
					: s->grow_failing_since ? s->grow_failing_since
								: now;
		c->events->volume_freed(c->partition);
	}
	core_unlock(c);
	if (rc != SKV_OK && news)
		skv_log(SKV_LOG_WARN, "storage", "'%s' cannot grow now: %s", d->name, why);
	else if (rc == SKV_OK)
		skv_log(SKV_LOG_INFO, "storage", "'%s' has a new slab file %u of %llu bytes",
			d->name, f->number, (unsigned long long)f->length);
}

void make_next_file(struct device *d)
{
	struct look k = device_look(d);
	struct volume_file f = { .number = k.next };
	struct skv_error err = { 0 };
	int rc;

	if (!k.loaded || !k.growing)
		return;
	if (!file_is_of(f.number, d->core->number)) {
		grow_over(d, k.fence, &f, SKV_E_NO_SPACE, "its file numbers are used up");
		return;
	}
	f.length = next_length(d, &k);
	if (!device_healthy(d) || f.length == 0) {
		grow_over(d, k.fence, &f, device_healthy(d) ? SKV_E_NO_SPACE : SKV_E_UNAVAILABLE,
			  device_healthy(d) ? "the file system is full"
					    : "the storage is not healthy");
		return;
	}
	rc = make_file(d, k.fence, &f, &err);
	if (rc == SKV_OK) {
		allow_longer(d);
		take_space(d, f.length);
	}
	grow_over(d, k.fence, &f, rc, err.message[0] ? err.message : skv_status_text(rc));
}
