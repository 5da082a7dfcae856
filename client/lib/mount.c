/*
 * mount.c - finds and verifies the directories of storages (see mount.h).
 *
 * Owns the list of proven mounts and their directory descriptors. Opening and reading a marker
 * happens outside the lock; two threads may prove the same directory at a time, the second one then
 * uses what the first has put into the list.
 */
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <skv/check.h>
#include <skv/lock.h>
#include <skv/mem.h>
#include <skv/superblock.h>

#include "engine.h"
#include "node.h"

struct place {
	uint8_t uuid[16];
	enum skv_mount_place place;
	struct place *next;
};

struct skv_mounts {
	char **dirs; /* fixed */
	uint32_t n_dirs;
	struct skv_mutex lock;  /* protects list and the marked fields of each mount */
	struct skv_mount *list;
	struct place *places; /* with the lock; of storages that were ever opened */
};

int skv_mounts_create(const char *const *dirs, uint32_t n, struct skv_mounts **out,
		      struct skv_error *err)
{
	struct skv_mounts *m = skv_calloc(1, sizeof *m);

	if (!m)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_mutex_init(&m->lock);
	m->dirs = skv_calloc(n, sizeof *m->dirs);
	while (m->dirs && m->n_dirs < n) {
		m->dirs[m->n_dirs] = skv_strdup(dirs[m->n_dirs]);
		if (!m->dirs[m->n_dirs])
			break;
		m->n_dirs++;
	}
	if (!m->dirs || m->n_dirs < n) {
		skv_mounts_destroy(m);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	*out = m;
	return SKV_OK;
}

static void close_mount(struct skv_mount *mount)
{
	if (mount->node)
		skv_node_release(mount->node);
	else
		close(mount->dirfd);
	skv_free(mount->path);
	skv_free(mount);
}

void skv_mounts_destroy(struct skv_mounts *m)
{
	if (!m)
		return;
	while (m->list) {
		struct skv_mount *mount = m->list;

		if (!SKV_CHECK(mount->refs == 0))
			break; /* still in use: better leaked than freed */
		m->list = mount->next;
		close_mount(mount);
	}
	while (m->places) {
		struct place *p = m->places;

		m->places = p->next;
		skv_free(p);
	}
	for (uint32_t i = 0; i < m->n_dirs; i++)
		skv_free(m->dirs[i]);
	skv_free(m->dirs);
	skv_mutex_destroy(&m->lock);
	skv_free(m);
}

bool skv_mounts_named(const struct skv_mounts *m) { return m->n_dirs > 0; }

/* SKV_OK when the directory `dirfd` holds the marker of storage `uuid`. */
static int prove(int dirfd, const char *path, const uint8_t uuid[16], struct skv_error *err)
{
	uint8_t raw[SKV_SUPERBLOCK_SIZE];
	struct skv_superblock sb;
	int fd = openat(dirfd, SKV_STORAGE_MARKER, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : pread(fd, raw, sizeof raw, 0);
	int error = errno;
	int rc;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return skv_fail(err, error == ENOENT ? SKV_E_FOREIGN : SKV_E_UNAVAILABLE, NULL,
				"%s: marker %s: %s", path, SKV_STORAGE_MARKER, strerror(error));
	if ((size_t)n < sizeof raw)
		return skv_fail(err, SKV_E_CORRUPT, NULL, "%s: marker %s is cut short", path,
				SKV_STORAGE_MARKER);
	rc = skv_superblock_decode(raw, &sb, err);
	if (rc != SKV_OK)
		return rc;
	if (sb.file != SKV_NO_FILE || memcmp(sb.uuid, uuid, 16) != 0)
		return skv_fail(err, SKV_E_FOREIGN, NULL, "%s belongs to another storage", path);
	return SKV_OK;
}

/* Opens and proves one directory. */
static int open_mount(const char *path, const uint8_t uuid[16], struct skv_mount **out,
		      struct skv_error *err)
{
	int dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct skv_mount *mount;
	int rc;

	if (dirfd < 0)
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "%s: %s%s", path, strerror(errno),
				skv_engine_remedy(errno));
	rc = prove(dirfd, path, uuid, err);
	if (rc != SKV_OK) {
		close(dirfd);
		return rc;
	}
	mount = skv_calloc(1, sizeof *mount);
	if (mount)
		mount->path = skv_strdup(path);
	if (!mount || !mount->path) {
		close(dirfd);
		skv_free(mount);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	mount->dirfd = dirfd;
	memcpy(mount->uuid, uuid, 16);
	*out = mount;
	return SKV_OK;
}

static struct skv_mount *find_locked(struct skv_mounts *m, const uint8_t uuid[16])
	SKV_REQUIRES(m->lock)
{
	SKV_CHECK(skv_mutex_held(&m->lock));
	for (struct skv_mount *mount = m->list; mount; mount = mount->next)
		if (memcmp(mount->uuid, uuid, 16) == 0)
			return mount;
	return NULL;
}

enum skv_mount_place skv_mounts_place(struct skv_mounts *m, const uint8_t uuid[16])
{
	enum skv_mount_place place = SKV_MOUNT_UNKNOWN;

	skv_mutex_lock(&m->lock);
	for (const struct place *p = m->places; p; p = p->next)
		if (memcmp(p->uuid, uuid, 16) == 0)
			place = p->place;
	skv_mutex_unlock(&m->lock);
	return place;
}

/* Without memory for it the place stays unknown. */
static void note_place(struct skv_mounts *m, const struct skv_mount *mount)
{
	const bool network = !mount->node && skv_engine_may_hang(mount->dirfd);
	struct place *fresh = skv_calloc(1, sizeof *fresh), *p;

	skv_mutex_lock(&m->lock);
	for (p = m->places; p && memcmp(p->uuid, mount->uuid, 16) != 0; p = p->next)
		;
	if (!p && fresh) {
		memcpy(fresh->uuid, mount->uuid, 16);
		fresh->next = m->places;
		m->places = p = fresh;
		fresh = NULL;
	}
	if (p)
		p->place = network ? SKV_MOUNT_NETWORK : SKV_MOUNT_LOCAL;
	skv_mutex_unlock(&m->lock);
	skv_free(fresh);
}

/* Known mount, with a reference; puts `fresh` (may be NULL) into the list if there is none. */
static struct skv_mount *take(struct skv_mounts *m, const uint8_t uuid[16], struct skv_mount *fresh)
{
	struct skv_mount *known;

	if (fresh)
		note_place(m, fresh);
	skv_mutex_lock(&m->lock);
	known = find_locked(m, uuid);
	if (!known && fresh) {
		fresh->next = m->list;
		m->list = fresh;
		known = fresh;
		fresh = NULL;
	}
	SKV_CHECK(!known || (!known->forgotten && memcmp(known->uuid, uuid, 16) == 0));
	if (known)
		known->refs++;
	skv_mutex_unlock(&m->lock);
	if (fresh)
		close_mount(fresh);
	return known;
}

int skv_mount_acquire(struct skv_mounts *m, const uint8_t uuid[16], const char *root,
		      struct skv_mount **out, struct skv_error *err)
{
	struct skv_mount *mount = take(m, uuid, NULL);
	struct skv_mount *fresh = NULL;
	int rc;

	if (mount) {
		*out = mount;
		return SKV_OK;
	}
	rc = skv_fail(err, SKV_E_UNAVAILABLE, NULL,
		      "no directory is known for this storage: name one with mounts");
	for (uint32_t i = 0; i < m->n_dirs && !fresh; i++)
		rc = open_mount(m->dirs[i], uuid, &fresh, err);
	if (!fresh && root)
		rc = open_mount(root, uuid, &fresh, err);
	if (!fresh)
		return rc;
	*out = take(m, uuid, fresh);
	return SKV_OK;
}

int skv_mount_acquire_node(struct skv_mounts *m, const uint8_t uuid[16],
			   const struct skv_node_at *at, struct skv_mount **out,
			   struct skv_error *err)
{
	struct skv_mount *mount = take(m, uuid, NULL);
	char text[SKV_NODE_TEXT];
	int rc;

	if (mount && SKV_CHECK(mount->node)) {
		*out = mount;
		return SKV_OK;
	}
	mount = skv_calloc(1, sizeof *mount);
	if (!mount)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	rc = skv_node_open(at, uuid, &mount->node, err);
	if (rc != SKV_OK) {
		skv_free(mount);
		return rc;
	}
	skv_node_describe(mount->node, text);
	mount->path = skv_strdup(text);
	if (!mount->path) {
		close_mount(mount);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	mount->dirfd = -1;
	memcpy(mount->uuid, uuid, 16);
	*out = take(m, uuid, mount);
	return SKV_OK;
}

void skv_mount_release(struct skv_mounts *m, struct skv_mount *mount)
{
	bool last;

	skv_mutex_lock(&m->lock);
	last = SKV_CHECK(mount->refs > 0) && --mount->refs == 0 && mount->forgotten;
	skv_mutex_unlock(&m->lock);
	if (last)
		close_mount(mount);
}

void skv_mount_forget(struct skv_mounts *m, struct skv_mount *mount)
{
	skv_mutex_lock(&m->lock);
	for (struct skv_mount **p = &m->list; *p; p = &(*p)->next) {
		if (*p == mount) {
			SKV_CHECK(!mount->forgotten);
			*p = mount->next;
			mount->forgotten = true;
			break;
		}
	}
	skv_mutex_unlock(&m->lock);
}
