/*
 * files.c - cache of open slab files (see files.h).
 *
 * Owns the list of open files; most recently used first, so that files dropped beyond
 * SKV_FILES_KEPT are unused ones. A file that is open for writing is checked at every use to be
 * still the one that its name leads to: bytes written into a deleted or replaced file would be lost
 * at the next open. Readers need no such check: stale bytes fail their checksum. But space that the
 * manager freed becomes available only when no process has the file open: idle files whose names
 * are gone are closed whenever another one of their storage is opened, and once a minute of use.
 */
#include "files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/check.h>
#include <skv/clock.h>
#include <skv/lock.h>
#include <skv/mem.h>

#include "node.h"

#define LOOK_MS 60000u /* between two checks for removed files */

struct skv_files_cache {
	struct skv_engine *engine;
	struct skv_mounts *mounts;
	struct skv_mutex lock; /* protects list, n, and the marked fields of each file */
	struct skv_slab_file *list;
	uint32_t n;
};

int skv_files_create(struct skv_engine *engine, struct skv_mounts *mounts,
		     struct skv_files_cache **out, struct skv_error *err)
{
	struct skv_files_cache *c = skv_calloc(1, sizeof *c);

	if (!c)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	c->engine = engine;
	c->mounts = mounts;
	skv_mutex_init(&c->lock);
	*out = c;
	return SKV_OK;
}

static void close_file(struct skv_files_cache *c, struct skv_slab_file *f)
{
	skv_engine_close(c->engine, f->file);
	skv_free(f);
}

void skv_files_destroy(struct skv_files_cache *c)
{
	if (!c)
		return;
	while (c->list) {
		struct skv_slab_file *f = c->list;

		if (!SKV_CHECK(f->refs == 0))
			break; /* still in use: better leaked than freed */
		c->list = f->next;
		close_file(c, f);
	}
	skv_mutex_destroy(&c->lock);
	skv_free(c);
}

/* Takes `f` out of the list. False when it is out already. */
static bool unlink_locked(struct skv_files_cache *c, struct skv_slab_file *f) SKV_REQUIRES(c->lock)
{
	SKV_CHECK(skv_mutex_held(&c->lock));
	for (struct skv_slab_file **p = &c->list; *p; p = &(*p)->next) {
		if (*p == f) {
			*p = f->next;
			SKV_CHECK(c->n > 0);
			c->n--;
			return true;
		}
	}
	return false;
}

static void push_locked(struct skv_files_cache *c, struct skv_slab_file *f) SKV_REQUIRES(c->lock)
{
	SKV_CHECK(skv_mutex_held(&c->lock));
	SKV_CHECK(!f->forgotten && f->file);
	f->next = c->list;
	c->list = f;
	c->n++;
}

/* Known file with a reference, moved to the front; `fresh` (may be NULL) becomes known if there is
 * none, else it is closed. */
static struct skv_slab_file *take(struct skv_files_cache *c, const uint8_t uuid[16],
				  const char *path, bool write, struct skv_slab_file *fresh)
{
	struct skv_slab_file *f;

	skv_mutex_lock(&c->lock);
	for (f = c->list; f; f = f->next)
		if (f->write == write && memcmp(f->uuid, uuid, 16) == 0 &&
		    strcmp(f->path, path) == 0)
			break;
	if (f) {
		unlink_locked(c, f);
		push_locked(c, f);
	} else if (fresh) {
		push_locked(c, fresh);
		f = fresh;
		fresh = NULL;
	}
	SKV_CHECK(!f || (!f->forgotten && f->write == write));
	if (f)
		f->refs++;
	skv_mutex_unlock(&c->lock);
	if (fresh)
		close_file(c, fresh);
	return f;
}

/* Returns true if the open file is still linked in its directory, at its full length; memory: if it
 * exists. */
static bool still_there(const struct skv_slab_file *f, bool write)
{
	struct skv_engine *own = f->file->engine;
	struct stat st;

	if (own)
		return own->ops->still_there(own, f->file);
	return !write || (fstat(f->file->fd, &st) == 0 && st.st_nlink > 0 &&
			  (uint64_t)st.st_size == f->sb.length);
}

/* References to the idle files of storage `uuid` that have names; none if the last look at them was
 * less than `every_ms` ago. */
static uint32_t take_idle(struct skv_files_cache *c, const uint8_t uuid[16], uint32_t every_ms,
			  struct skv_slab_file *idle[SKV_FILES_KEPT])
{
	uint64_t now = skv_now_ms(&skv_clock_system);
	uint32_t n = 0;

	skv_mutex_lock(&c->lock);
	for (struct skv_slab_file *f = c->list; f && n < SKV_FILES_KEPT; f = f->next) {
		if (f->file->engine || memcmp(f->uuid, uuid, 16) != 0 ||
		    now - f->looked_ms < every_ms)
			continue;
		f->looked_ms = now;
		if (f->refs == 0) {
			f->refs++;
			idle[n++] = f;
		}
	}
	skv_mutex_unlock(&c->lock);
	return n;
}

/* Closes idle files of storage `uuid` that the manager has removed. Only that storage's: another
 * one may hang. */
static void close_gone(struct skv_files_cache *c, const uint8_t uuid[16], uint32_t every_ms)
{
	struct skv_slab_file *idle[SKV_FILES_KEPT];
	uint32_t n = take_idle(c, uuid, every_ms, idle);
	struct stat st;

	for (uint32_t i = 0; i < n; i++) {
		if (fstat(idle[i]->file->fd, &st) == 0 && st.st_nlink == 0)
			skv_files_forget(c, idle[i]);
		skv_files_release(c, idle[i]);
	}
}

struct skv_slab_file *skv_files_find(struct skv_files_cache *c, const uint8_t uuid[16],
				     const char *path, bool write)
{
	struct skv_slab_file *f = take(c, uuid, path, write, NULL);

	if (f)
		close_gone(c, uuid, LOOK_MS);
	if (f && !still_there(f, write)) {
		skv_files_forget(c, f);
		skv_files_release(c, f);
		return NULL;
	}
	return f;
}

/* Accepts the only form of path that is ever opened: skv_slab_path of some number. */
static int parse_path(const char *path, uint32_t *file, struct skv_error *err)
{
	char same[SKV_SLAB_PATH_MAX];
	unsigned long n;

	if (strncmp(path, "slab-", 5) == 0) {
		n = strtoul(path + 5, NULL, 10);
		if (n < SKV_NO_FILE) {
			skv_slab_path((uint32_t)n, same);
			if (strcmp(path, same) == 0) {
				*file = (uint32_t)n;
				return SKV_OK;
			}
		}
	}
	return skv_fail(err, SKV_E_INVALID, "files",
			"the manager named a path that is not a slab file");
}

/* Reads the superblock of an open file, and its length. */
static int read_superblock(struct skv_slab_file *f, uint8_t raw[SKV_SUPERBLOCK_SIZE],
			   uint64_t *length, struct skv_error *err)
{
	struct skv_engine *own = f->file->engine;
	struct stat st;
	ssize_t n;

	if (own)
		return own->ops->superblock(own, f->file, raw, length);
	n = pread(f->file->fd, raw, SKV_SUPERBLOCK_SIZE, 0);
	if (n < 0 || fstat(f->file->fd, &st) != 0)
		return skv_fail(err, SKV_E_IO, NULL, "slab file %s: %s", f->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return skv_fail(err, SKV_E_FOREIGN, NULL, "slab file %s is not a regular file",
				f->path);
	if ((size_t)n < SKV_SUPERBLOCK_SIZE)
		return skv_fail(err, SKV_E_CORRUPT, NULL, "slab file %s has no complete superblock",
				f->path);
	*length = (uint64_t)st.st_size;
	return SKV_OK;
}

/* Verifies an open file. */
static int prove(struct skv_slab_file *f, uint32_t number, struct skv_error *err)
{
	/* the file may be open with O_DIRECT */
	_Alignas(SKV_SUPERBLOCK_SIZE) uint8_t raw[SKV_SUPERBLOCK_SIZE];
	uint64_t length = 0;
	int rc = read_superblock(f, raw, &length, err);

	if (rc == SKV_OK)
		rc = skv_superblock_decode(raw, &f->sb, err);
	if (rc != SKV_OK)
		return rc;
	if (memcmp(f->sb.uuid, f->uuid, 16) != 0 || f->sb.file != number)
		return skv_fail(err, SKV_E_FOREIGN, NULL,
				"slab file %s is another file by its superblock", f->path);
	if (length != f->sb.length)
		return skv_fail(err, SKV_E_CORRUPT, NULL,
				"slab file %s has %llu bytes instead of %llu", f->path,
				(unsigned long long)length, (unsigned long long)f->sb.length);
	return SKV_OK;
}

/* Closes the least recently used idle files, down to the bound. */
static void trim(struct skv_files_cache *c)
{
	struct skv_slab_file *gone = NULL;

	skv_mutex_lock(&c->lock);
	while (c->n > SKV_FILES_KEPT) {
		struct skv_slab_file *idle = NULL;

		for (struct skv_slab_file *f = c->list; f; f = f->next)
			if (f->refs == 0)
				idle = f;
		if (!idle)
			break;
		unlink_locked(c, idle);
		idle->next = gone;
		gone = idle;
	}
	skv_mutex_unlock(&c->lock);
	while (gone) {
		struct skv_slab_file *f = gone;

		gone = f->next;
		close_file(c, f);
	}
}

int skv_files_open(struct skv_files_cache *c, struct skv_mount *mount, const char *path, bool write,
		   struct skv_slab_file **out, struct skv_error *err)
{
	struct skv_slab_file *f;
	uint32_t number = 0;
	int rc = parse_path(path, &number, err);

	if (rc != SKV_OK)
		return rc;
	f = skv_calloc(1, sizeof *f);
	if (!f)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	memcpy(f->uuid, mount->uuid, 16);
	memcpy(f->path, path, strlen(path) + 1);
	f->write = write;
	rc = skv_engine_open(mount->node ? &mount->node->engine : c->engine, mount->dirfd, path,
			     write, &f->file, err);
	if (rc == SKV_OK)
		rc = prove(f, number, err);
	if (rc != SKV_OK) {
		/* The directory may have been unmounted or moved: find it again. */
		skv_mount_forget(c->mounts, mount);
		close_file(c, f);
		return rc;
	}
	f->looked_ms = skv_now_ms(&skv_clock_system);
	*out = take(c, f->uuid, f->path, write, f);
	close_gone(c, mount->uuid, 0);
	trim(c);
	return SKV_OK;
}

void skv_files_release(struct skv_files_cache *c, struct skv_slab_file *f)
{
	bool last;

	skv_mutex_lock(&c->lock);
	last = SKV_CHECK(f->refs > 0) && --f->refs == 0 && f->forgotten;
	skv_mutex_unlock(&c->lock);
	if (last)
		close_file(c, f);
}

void skv_files_forget(struct skv_files_cache *c, struct skv_slab_file *f)
{
	skv_mutex_lock(&c->lock);
	SKV_CHECK(f->refs > 0); /* the last release closes it */
	if (unlink_locked(c, f))
		f->forgotten = true;
	skv_mutex_unlock(&c->lock);
}

bool skv_files_in_bounds(const struct skv_slab_file *f, uint64_t offset, uint64_t length)
{
	uint64_t end = f->sb.length - f->sb.trailer;

	return f->sb.trailer <= f->sb.length && offset >= f->sb.header && offset <= end &&
	       length <= end - offset;
}
