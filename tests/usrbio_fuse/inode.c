/*
 * inode.c - files and directories that the kernel knows, by number. Directories are open as long as
 * they are known, files while somebody uses them: there may be many more files than descriptors.
 * One lock for the table, the names and the reference counts.
 */
#include "stand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUCKETS 65536u

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct inode *table[BUCKETS];
static struct inode *root;

/* Directories that were given a chunk size, kept even when the kernel forgets them. */
static struct layout {
	struct layout *next;
	uint64_t number;
	uint32_t chunk;
} *layouts;

static struct inode **place_locked(uint64_t number)
{
	struct inode **p = &table[number % BUCKETS];

	while (*p && (*p)->number != number)
		p = &(*p)->next;
	return p;
}

static uint32_t layout_locked(uint64_t number, uint32_t inherited)
{
	for (const struct layout *l = layouts; l; l = l->next)
		if (l->number == number)
			return l->chunk;
	return inherited;
}

static struct inode *make_locked(struct inode *parent, const char *name, uint64_t number,
				 bool is_dir)
{
	struct inode *i = calloc(1, sizeof *i);

	if (!i)
		return NULL;
	i->fd = i->kept = -1;
	i->number = number;
	i->is_dir = is_dir;
	i->chunk = parent ? layout_locked(number, parent->chunk) : opt.chunk;
	pthread_rwlock_init(&i->lock, NULL);
	pthread_mutex_init(&i->buf_lock, NULL);
	if (is_dir)
		i->fd = openat(parent ? parent->fd : AT_FDCWD, name,
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC | (parent ? O_NOFOLLOW : 0));
	i->name = strdup(name);
	if (!i->name || (is_dir && i->fd < 0)) {
		if (i->fd >= 0)
			close(i->fd);
		free(i->name);
		free(i);
		return NULL;
	}
	i->parent = parent;
	if (parent)
		parent->refs++;
	i->next = table[number % BUCKETS];
	table[number % BUCKETS] = i;
	return i;
}

static void unref_locked(struct inode *i)
{
	while (i && --i->refs == 0) {
		struct inode *parent = i->parent, **p = place_locked(i->number);

		*p = i->next;
		if (i->fd >= 0)
			close(i->fd);
		if (i->kept >= 0)
			close(i->kept);
		pthread_rwlock_destroy(&i->lock);
		pthread_mutex_destroy(&i->buf_lock);
		free(i->have);
		free(i->buf);
		free(i->name);
		free(i);
		i = parent;
	}
}

int inodes_open(void)
{
	pthread_mutex_lock(&table_lock);
	root = make_locked(NULL, opt.root, FUSE_ROOT_ID, true);
	if (root) {
		root->refs = 1;
		root->lookups = 1;
	}
	pthread_mutex_unlock(&table_lock);
	return root ? 0 : errno;
}

struct inode *inode_of(fuse_ino_t number)
{
	struct inode *i;

	pthread_mutex_lock(&table_lock);
	i = *place_locked(number);
	pthread_mutex_unlock(&table_lock);
	return i;
}

struct inode *inode_ref(uint64_t number)
{
	struct inode *i;

	pthread_mutex_lock(&table_lock);
	i = *place_locked(number);
	if (i && i->lookups == 0)
		i = NULL;
	if (i)
		i->refs++;
	pthread_mutex_unlock(&table_lock);
	return i;
}

void inode_unref(struct inode *i)
{
	pthread_mutex_lock(&table_lock);
	unref_locked(i);
	pthread_mutex_unlock(&table_lock);
}

/* Names an inode that was found under this name: it is opened under this name from now on. */
static void name_locked(struct inode *i, struct inode *parent, const char *name)
{
	char *copy;

	if (i->parent == parent && i->name && strcmp(i->name, name) == 0)
		return;
	copy = strdup(name);
	if (!copy)
		return;
	free(i->name);
	i->name = copy;
	if (i->parent != parent) {
		struct inode *old = i->parent;

		parent->refs++;
		i->parent = parent;
		unref_locked(old);
	}
}

struct inode *inode_found(struct inode *parent, const char *name, const struct stat *st)
{
	struct inode *i;

	pthread_mutex_lock(&table_lock);
	i = *place_locked(st->st_ino);
	if (i)
		name_locked(i, parent, name);
	else
		i = make_locked(parent, name, st->st_ino, S_ISDIR(st->st_mode));
	if (i && i->lookups++ == 0)
		i->refs++;
	pthread_mutex_unlock(&table_lock);
	return i;
}

void inode_forget(uint64_t number, uint64_t n)
{
	struct inode *i;

	pthread_mutex_lock(&table_lock);
	i = *place_locked(number);
	if (i && i != root && i->lookups >= n && (i->lookups -= n) == 0)
		unref_locked(i);
	pthread_mutex_unlock(&table_lock);
}

/* A file of several links that is known by this name only is lost for later
 * opens: nobody here does that. */
static void unname_locked(struct inode *i, const char *name)
{
	if (i && i->name && strcmp(i->name, name) == 0) {
		free(i->name);
		i->name = NULL;
	}
}

/* 3FS never gives an inode number twice; the local file system does, once
 * nothing has the file open. */
static void keep_number(int dir, const char *name)
{
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct inode *i = NULL;
	struct stat st;

	if (fd < 0)
		return;
	pthread_mutex_lock(&table_lock);
	if (fstat(fd, &st) == 0)
		i = *place_locked(st.st_ino);
	if (i && i->kept < 0)
		i->kept = fd;
	else
		close(fd);
	pthread_mutex_unlock(&table_lock);
}

int remove_name(int dir, const char *name, int flags)
{
	struct stat st;

	keep_number(dir, name);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || unlinkat(dir, name, flags) != 0)
		return errno;
	pthread_mutex_lock(&table_lock);
	unname_locked(*place_locked(st.st_ino), name);
	pthread_mutex_unlock(&table_lock);
	return 0;
}

int rename_name(struct inode *from, const char *name, struct inode *to, const char *new_name)
{
	struct stat st, replaced = { 0 };
	struct inode *i;

	keep_number(to->fd, new_name);
	fstatat(to->fd, new_name, &replaced, AT_SYMLINK_NOFOLLOW);
	if (fstatat(from->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    renameat(from->fd, name, to->fd, new_name) != 0)
		return errno;
	pthread_mutex_lock(&table_lock);
	if (replaced.st_ino != st.st_ino)
		unname_locked(*place_locked(replaced.st_ino), new_name);
	i = *place_locked(st.st_ino);
	if (i)
		name_locked(i, to, new_name);
	pthread_mutex_unlock(&table_lock);
	return 0;
}

int inode_open(struct inode *i)
{
	int error = 0;

	pthread_mutex_lock(&table_lock);
	if (i->is_dir)
		error = EISDIR;
	else if (i->fd < 0 && !i->name)
		error = ESTALE;
	else if (i->fd < 0 && (i->fd = openat(i->parent->fd, i->name,
					      O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) < 0)
		error = errno;
	if (error == 0) {
		i->users++;
		i->refs++;
	}
	pthread_mutex_unlock(&table_lock);
	return error;
}

void inode_opened(struct inode *i, int fd)
{
	pthread_mutex_lock(&table_lock);
	if (i->fd < 0)
		i->fd = fd;
	else
		close(fd);
	i->users++;
	i->refs++;
	pthread_mutex_unlock(&table_lock);
}

void inode_close(struct inode *i)
{
	pthread_mutex_lock(&table_lock);
	if (--i->users == 0) {
		close(i->fd);
		i->fd = -1;
	}
	unref_locked(i);
	pthread_mutex_unlock(&table_lock);
}

int inode_stat(struct inode *i, struct stat *st)
{
	int error = 0;

	pthread_mutex_lock(&table_lock);
	if (i->fd >= 0)
		error = fstat(i->fd, st) == 0 ? 0 : errno;
	else if (!i->name)
		error = ESTALE;
	else if (fstatat(i->parent->fd, i->name, st, AT_SYMLINK_NOFOLLOW) != 0)
		error = errno;
	pthread_mutex_unlock(&table_lock);
	if (error == 0)
		inode_present(i, st);
	return error;
}

void inode_present(const struct inode *i, struct stat *st)
{
	st->st_ino = i->number;
	st->st_blksize = S_ISLNK(st->st_mode) ? 0 : i->chunk;
	st->st_blocks = S_ISREG(st->st_mode) ? (st->st_size + 511) / 512 : 0;
	if (S_ISDIR(st->st_mode))
		st->st_size = 0;
}

static int set_layout(const struct stat *st, uint32_t chunk)
{
	struct layout *l = calloc(1, sizeof *l);
	struct inode *known;

	if (!l)
		return ENOMEM;
	pthread_mutex_lock(&table_lock);
	*l = (struct layout){ .next = layouts, .number = st->st_ino, .chunk = chunk };
	layouts = l;
	known = *place_locked(st->st_ino);
	if (known)
		known->chunk = chunk;
	pthread_mutex_unlock(&table_lock);
	return 0;
}

int inode_layout(const char *path, uint32_t chunk)
{
	struct stat st;

	if (chunk < 65536 || chunk > (64u << 20) || (chunk & (chunk - 1)) != 0 || *path == '/' ||
	    strstr(path, ".."))
		return EINVAL;
	if (fstatat(root->fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT &&
	    (mkdirat(root->fd, path, 0777) != 0 ||
	     fstatat(root->fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0))
		return errno;
	return S_ISDIR(st.st_mode) ? set_layout(&st, chunk) : ENOTDIR;
}
