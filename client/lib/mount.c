/*
 * mount.c - finds and proves the directories of storages (see mount.h).
 *
 * Owns the list of proven mounts and their directory descriptors. Opening and reading a marker
 * happens outside the lock; two threads may prove the same directory at a time, the second one then
 * uses what the first has put into the list.
 */
#include "mount.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <kvb/lock.h>
#include <kvb/mem.h>
#include <kvb/superblock.h>

#include "engine.h"

struct kvb_mounts {
	char **dirs; /* fixed */
	uint32_t n_dirs;
	struct kvb_mutex lock;  /* protects list and the marked fields of each mount */
	struct kvb_mount *list;
};

int kvb_mounts_create(const char *const *dirs, uint32_t n, struct kvb_mounts **out,
		      struct kvb_error *err)
{
	struct kvb_mounts *m = kvb_calloc(1, sizeof *m);

	if (!m)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	kvb_mutex_init(&m->lock);
	m->dirs = kvb_calloc(n, sizeof *m->dirs);
	while (m->dirs && m->n_dirs < n) {
		m->dirs[m->n_dirs] = kvb_strdup(dirs[m->n_dirs]);
		if (!m->dirs[m->n_dirs])
			break;
		m->n_dirs++;
	}
	if (!m->dirs || m->n_dirs < n) {
		kvb_mounts_destroy(m);
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	}
	*out = m;
	return KVB_OK;
}

static void close_mount(struct kvb_mount *mount)
{
	close(mount->dirfd);
	kvb_free(mount->path);
	kvb_free(mount);
}

void kvb_mounts_destroy(struct kvb_mounts *m)
{
	if (!m)
		return;
	while (m->list) {
		struct kvb_mount *mount = m->list;

		assert(mount->refs == 0);
		m->list = mount->next;
		close_mount(mount);
	}
	for (uint32_t i = 0; i < m->n_dirs; i++)
		kvb_free(m->dirs[i]);
	kvb_free(m->dirs);
	kvb_mutex_destroy(&m->lock);
	kvb_free(m);
}

bool kvb_mounts_named(const struct kvb_mounts *m) { return m->n_dirs > 0; }

/* KVB_OK when the directory `dirfd` holds the marker of storage `uuid`. */
static int prove(int dirfd, const char *path, const uint8_t uuid[16], struct kvb_error *err)
{
	uint8_t raw[KVB_SUPERBLOCK_SIZE];
	struct kvb_superblock sb;
	int fd = openat(dirfd, KVB_STORAGE_MARKER, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : pread(fd, raw, sizeof raw, 0);
	int error = errno;
	int rc;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return kvb_fail(err, error == ENOENT ? KVB_E_FOREIGN : KVB_E_UNAVAILABLE, NULL,
				"%s: marker %s: %s", path, KVB_STORAGE_MARKER, strerror(error));
	if ((size_t)n < sizeof raw)
		return kvb_fail(err, KVB_E_CORRUPT, NULL, "%s: marker %s is cut short", path,
				KVB_STORAGE_MARKER);
	rc = kvb_superblock_decode(raw, &sb, err);
	if (rc != KVB_OK)
		return rc;
	if (sb.file != KVB_NO_FILE || memcmp(sb.uuid, uuid, 16) != 0)
		return kvb_fail(err, KVB_E_FOREIGN, NULL, "%s belongs to another storage", path);
	return KVB_OK;
}

/* Opens and proves one directory. */
static int open_mount(const char *path, const uint8_t uuid[16], struct kvb_mount **out,
		      struct kvb_error *err)
{
	int dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct kvb_mount *mount;
	int rc;

	if (dirfd < 0)
		return kvb_fail(err, KVB_E_UNAVAILABLE, NULL, "%s: %s%s", path, strerror(errno),
				kvb_engine_remedy(errno));
	rc = prove(dirfd, path, uuid, err);
	if (rc != KVB_OK) {
		close(dirfd);
		return rc;
	}
	mount = kvb_calloc(1, sizeof *mount);
	if (mount)
		mount->path = kvb_strdup(path);
	if (!mount || !mount->path) {
		close(dirfd);
		kvb_free(mount);
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	}
	mount->dirfd = dirfd;
	memcpy(mount->uuid, uuid, 16);
	*out = mount;
	return KVB_OK;
}

static struct kvb_mount *find_locked(struct kvb_mounts *m, const uint8_t uuid[16])
{
	assert(kvb_mutex_held(&m->lock));
	for (struct kvb_mount *mount = m->list; mount; mount = mount->next)
		if (memcmp(mount->uuid, uuid, 16) == 0)
			return mount;
	return NULL;
}

/* Known mount, with a reference; puts `fresh` (may be NULL) into the list if there is none. */
static struct kvb_mount *take(struct kvb_mounts *m, const uint8_t uuid[16], struct kvb_mount *fresh)
{
	struct kvb_mount *known;

	kvb_mutex_lock(&m->lock);
	known = find_locked(m, uuid);
	if (!known && fresh) {
		fresh->next = m->list;
		m->list = fresh;
		known = fresh;
		fresh = NULL;
	}
	if (known)
		known->refs++;
	kvb_mutex_unlock(&m->lock);
	if (fresh)
		close_mount(fresh);
	return known;
}

int kvb_mount_acquire(struct kvb_mounts *m, const uint8_t uuid[16], const char *root,
		      struct kvb_mount **out, struct kvb_error *err)
{
	struct kvb_mount *mount = take(m, uuid, NULL);
	struct kvb_mount *fresh = NULL;
	int rc;

	if (mount) {
		*out = mount;
		return KVB_OK;
	}
	rc = kvb_fail(err, KVB_E_UNAVAILABLE, NULL, "no directory is known for this storage");
	for (uint32_t i = 0; i < m->n_dirs && !fresh; i++)
		rc = open_mount(m->dirs[i], uuid, &fresh, err);
	if (!fresh && root)
		rc = open_mount(root, uuid, &fresh, err);
	if (!fresh)
		return rc;
	*out = take(m, uuid, fresh);
	return KVB_OK;
}

void kvb_mount_release(struct kvb_mounts *m, struct kvb_mount *mount)
{
	bool last;

	kvb_mutex_lock(&m->lock);
	assert(mount->refs > 0);
	last = --mount->refs == 0 && mount->forgotten;
	kvb_mutex_unlock(&m->lock);
	if (last)
		close_mount(mount);
}

void kvb_mount_forget(struct kvb_mounts *m, struct kvb_mount *mount)
{
	kvb_mutex_lock(&m->lock);
	for (struct kvb_mount **p = &m->list; *p; p = &(*p)->next) {
		if (*p == mount) {
			*p = mount->next;
			mount->forgotten = true;
			break;
		}
	}
	kvb_mutex_unlock(&m->lock);
}
