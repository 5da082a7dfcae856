/*
 * powerloss_vfs.c - see powerloss_vfs.h.
 *
 * Owns one `struct tracked` for each path that was opened: the synced image, and which ranges of
 * the file were written since. One lock guards the world and is held during each call, so a sync
 * saves exactly the writes that came back before it.
 */
#include "powerloss_vfs.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#define SECTOR 512

struct range {
	int64_t at, end;
};

struct tracked {
	struct tracked *next;
	char *path;
	uint8_t *image; /* synced bytes */
	int64_t image_size, image_cap;
	struct range *dirty;
	size_t n_dirty, cap_dirty;
	bool size_dirty;
};

struct shim {
	sqlite3_file base;
	struct tracked *t; /* NULL: a temporary file, not tracked */
	sqlite3_file *real;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct tracked *files;
	uint64_t steps, cut_at, fail_sync_at;
	bool cut;
} world; /* lock */
static sqlite3_vfs *unix_vfs;
static struct {
	powerloss_sync_fn fn;
	void *ctx;
} on_sync; /* set while no store is open */

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

/* Makes a step; false when the power is gone. Caller holds the lock. */
static bool step(void)
{
	world.steps++;
	if (world.cut_at && world.steps >= world.cut_at)
		world.cut = true;
	return !world.cut;
}

static sqlite3_file *real_of(sqlite3_file *f) { return ((struct shim *)f)->real; }

/* ---- images ---------------------------------------------------------------------------------- */

static void mark_dirty(struct tracked *t, int64_t at, int64_t end)
{
	struct range *last = t->n_dirty ? &t->dirty[t->n_dirty - 1] : NULL;

	if (last && at <= last->end && end >= last->at) {
		last->at = at < last->at ? at : last->at;
		last->end = end > last->end ? end : last->end;
		return;
	}
	if (t->n_dirty == t->cap_dirty) {
		t->cap_dirty = t->cap_dirty ? t->cap_dirty * 2 : 64;
		t->dirty = need(realloc(t->dirty, t->cap_dirty * sizeof *t->dirty));
	}
	t->dirty[t->n_dirty++] = (struct range){ at, end };
}

static void resize_image(struct tracked *t, int64_t size)
{
	if (!t->image || size > t->image_cap) {
		t->image_cap = size + size / 2 + 4096;
		t->image = need(realloc(t->image, (size_t)t->image_cap));
	}
	if (size > t->image_size)
		memset(t->image + t->image_size, 0, (size_t)(size - t->image_size));
	t->image_size = size;
}

static int save(struct tracked *t, sqlite3_file *real)
{
	sqlite3_int64 size;
	int rc = real->pMethods->xFileSize(real, &size);

	if (rc != SQLITE_OK)
		return rc;
	resize_image(t, size);
	for (size_t i = 0; i < t->n_dirty; i++) {
		int64_t end = t->dirty[i].end < size ? t->dirty[i].end : size;
		int64_t n = end - t->dirty[i].at;

		if (n > 0)
			rc = real->pMethods->xRead(real, t->image + t->dirty[i].at, (int)n,
						   t->dirty[i].at);
		if (rc != SQLITE_OK)
			return rc;
	}
	t->n_dirty = 0;
	t->size_dirty = false;
	return SQLITE_OK;
}

static struct tracked *track(const char *path, sqlite3_file *real)
{
	struct tracked *t;
	sqlite3_int64 size = 0;

	for (t = world.files; t; t = t->next)
		if (strcmp(t->path, path) == 0)
			return t;
	t = need(calloc(1, sizeof *t));
	t->path = need(strdup(path));
	real->pMethods->xFileSize(real, &size);
	resize_image(t, size);
	if (size > 0 && real->pMethods->xRead(real, t->image, (int)size, 0) != SQLITE_OK)
		abort();
	t->next = world.files;
	world.files = t;
	return t;
}

static void forget(struct tracked **at)
{
	struct tracked *t = *at;

	*at = t->next;
	free(t->path);
	free(t->image);
	free(t->dirty);
	free(t);
}

/* ---- file methods ---------------------------------------------------------------------------- */

static int shim_close(sqlite3_file *f)
{
	sqlite3_file *real = real_of(f);

	return real->pMethods ? real->pMethods->xClose(real) : SQLITE_OK;
}

static int shim_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	int rc = SQLITE_IOERR_READ;

	pthread_mutex_lock(&lock);
	if (!world.cut)
		rc = real_of(f)->pMethods->xRead(real_of(f), p, n, at);
	pthread_mutex_unlock(&lock);
	return rc;
}

static int shim_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	struct shim *s = (struct shim *)f;
	int rc = SQLITE_IOERR_WRITE;

	pthread_mutex_lock(&lock);
	if (step()) {
		rc = s->real->pMethods->xWrite(s->real, p, n, at);
		if (s->t)
			mark_dirty(s->t, at, at + n);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static int shim_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	struct shim *s = (struct shim *)f;
	int rc = SQLITE_IOERR_TRUNCATE;

	pthread_mutex_lock(&lock);
	if (step()) {
		rc = s->real->pMethods->xTruncate(s->real, size);
		if (s->t)
			s->t->size_dirty = true;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

/* Asks the test whether this file may be synced. */
static bool may_sync(const struct tracked *t)
{
	int64_t unsynced = 0;

	if (!on_sync.fn || !t)
		return true;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < t->n_dirty; i++)
		unsynced += t->dirty[i].end - t->dirty[i].at;
	pthread_mutex_unlock(&lock);
	return on_sync.fn(on_sync.ctx, t->path, unsynced);
}

static int shim_sync(sqlite3_file *f, int flags)
{
	struct shim *s = (struct shim *)f;
	int rc = SQLITE_IOERR_FSYNC;
	bool may = may_sync(s->t);

	(void)flags;
	pthread_mutex_lock(&lock);
	if (!may) {
		s->t->n_dirty = 0;
	} else if (step()) {
		bool fails = world.fail_sync_at && --world.fail_sync_at == 0;

		if (!fails)
			rc = s->t ? save(s->t, s->real) : SQLITE_OK;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static int shim_size(sqlite3_file *f, sqlite3_int64 *size)
{
	return real_of(f)->pMethods->xFileSize(real_of(f), size);
}

static int shim_lock(sqlite3_file *f, int level)
{
	return real_of(f)->pMethods->xLock(real_of(f), level);
}
static int shim_unlock(sqlite3_file *f, int level)
{
	return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int shim_reserved(sqlite3_file *f, int *out)
{
	return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}

static int shim_control(sqlite3_file *f, int op, void *arg)
{
	return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int shim_sector(sqlite3_file *f) { return real_of(f)->pMethods->xSectorSize(real_of(f)); }

/* Sectors may be torn here, so the promises of the real one do not hold but this: a write leaves
 * the bytes around it alone. */
static int shim_device(sqlite3_file *f)
{
	(void)f;
	return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int shim_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
	return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, out);
}

static int shim_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
	return real_of(f)->pMethods->xShmLock(real_of(f), at, n, flags);
}

static void shim_shm_barrier(sqlite3_file *f) { real_of(f)->pMethods->xShmBarrier(real_of(f)); }
static int shim_shm_unmap(sqlite3_file *f, int d)
{
	return real_of(f)->pMethods->xShmUnmap(real_of(f), d);
}

static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = shim_close,
	.xRead = shim_read,
	.xWrite = shim_write,
	.xTruncate = shim_truncate,
	.xSync = shim_sync,
	.xFileSize = shim_size,
	.xLock = shim_lock,
	.xUnlock = shim_unlock,
	.xCheckReservedLock = shim_reserved,
	.xFileControl = shim_control,
	.xSectorSize = shim_sector,
	.xDeviceCharacteristics = shim_device,
	.xShmMap = shim_shm_map,
	.xShmLock = shim_shm_lock,
	.xShmBarrier = shim_shm_barrier,
	.xShmUnmap = shim_shm_unmap,
};

/* ---- VFS methods ----------------------------------------------------------------------------- */

static int vfs_open(sqlite3_vfs *v, const char *path, sqlite3_file *f, int flags, int *out)
{
	const int kept = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL;
	struct shim *s = (struct shim *)f;
	int rc = SQLITE_CANTOPEN;

	(void)v;
	s->base.pMethods = NULL;
	s->t = NULL;
	s->real = (sqlite3_file *)(s + 1);
	pthread_mutex_lock(&lock);
	if (!world.cut) {
		rc = unix_vfs->xOpen(unix_vfs, path, s->real, flags, out);
		if (s->real->pMethods)
			s->base.pMethods = &methods;
		if (rc == SQLITE_OK && path && (flags & kept))
			s->t = track(path, s->real);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static int vfs_delete(sqlite3_vfs *v, const char *path, int sync_folder)
{
	int rc = SQLITE_IOERR_DELETE;

	(void)v;
	(void)sync_folder;
	pthread_mutex_lock(&lock);
	if (step()) {
		struct tracked **at = &world.files;

		rc = unix_vfs->xDelete(unix_vfs, path, 0);
		while (*at && strcmp((*at)->path, path) != 0)
			at = &(*at)->next;
		if (*at)
			forget(at);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static void register_vfs(void)
{
	static sqlite3_vfs v;

	if (unix_vfs)
		return;
	unix_vfs = need(sqlite3_vfs_find(NULL));
	v = *unix_vfs; /* everything that names no file of ours goes straight to the unix VFS */
	v.zName = POWERLOSS_VFS;
	v.pNext = NULL;
	v.szOsFile = (int)sizeof(struct shim) + unix_vfs->szOsFile;
	v.xOpen = vfs_open;
	v.xDelete = vfs_delete;
	if (sqlite3_vfs_register(&v, 0) != SQLITE_OK)
		abort();
}

/* ---- direction ------------------------------------------------------------------------------- */

void powerloss_reset(void)
{
	register_vfs();
	pthread_mutex_lock(&lock);
	while (world.files)
		forget(&world.files);
	world.steps = world.cut_at = world.fail_sync_at = 0;
	world.cut = false;
	pthread_mutex_unlock(&lock);
}

void powerloss_cut_at(uint64_t n)
{
	pthread_mutex_lock(&lock);
	world.steps = 0;
	world.cut_at = n;
	pthread_mutex_unlock(&lock);
}

uint64_t powerloss_steps(void)
{
	uint64_t n;

	pthread_mutex_lock(&lock);
	n = world.steps;
	pthread_mutex_unlock(&lock);
	return n;
}

bool powerloss_is_cut(void)
{
	bool cut;

	pthread_mutex_lock(&lock);
	cut = world.cut;
	pthread_mutex_unlock(&lock);
	return cut;
}

void powerloss_on_sync(powerloss_sync_fn fn, void *ctx)
{
	on_sync.fn = fn;
	on_sync.ctx = ctx;
}

void powerloss_fail_sync_at(uint64_t n)
{
	pthread_mutex_lock(&lock);
	world.fail_sync_at = n;
	pthread_mutex_unlock(&lock);
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Puts random sectors of what was written but not synced into the image. */
static void tear(struct tracked *t, FILE *f, uint64_t *seed)
{
	int64_t size, synced = t->image_size;
	uint8_t bytes[SECTOR];

	fseek(f, 0, SEEK_END);
	size = ftell(f);
	for (size_t i = 0; i < t->n_dirty; i++) {
		for (int64_t at = t->dirty[i].at / SECTOR * SECTOR;
		     at < t->dirty[i].end && at < size; at += SECTOR) {
			int64_t n = size - at < SECTOR ? size - at : SECTOR;

			if (next_random(seed) & 1)
				continue;
			fseek(f, at, SEEK_SET);
			if (fread(bytes, 1, (size_t)n, f) != (size_t)n)
				abort();
			if (t->image_size < at + n)
				resize_image(t, at + n);
			memcpy(t->image + at, bytes, (size_t)n);
		}
	}
	if (t->size_dirty && size < synced && (next_random(seed) & 1))
		resize_image(t, size);
}

static void apply_one(struct tracked *t, enum powerloss_kind kind, uint64_t *seed)
{
	FILE *f = fopen(t->path, "r+b");

	if (!f)
		return; /* deleted outside of SQLite */
	if (kind == POWERLOSS_DROP_SOME)
		tear(t, f, seed);
	rewind(f);
	if (fwrite(t->image, 1, (size_t)t->image_size, f) != (size_t)t->image_size ||
	    fflush(f) != 0 || ftruncate(fileno(f), t->image_size) != 0)
		abort();
	fclose(f);
}

void powerloss_apply(enum powerloss_kind kind, uint64_t seed)
{
	uint64_t x = seed * 2 + 1;

	pthread_mutex_lock(&lock);
	for (struct tracked *t = world.files; t; t = t->next)
		apply_one(t, kind, &x);
	pthread_mutex_unlock(&lock);
	powerloss_reset();
}
