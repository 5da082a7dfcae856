/*
 * private.c - removes directories of storages whose metadata ends with the process, because their
 * bytes are useless afterwards.
 *
 * Beside the directory <root>/<name>.<id> lies a file <root>/.kvcm-<id> that names the process. A
 * process that ends removes its own; a process that starts removes those of processes that are
 * provably dead. Only directories with the mark of slabkv's storages are ever removed. No state;
 * any thread; blocks with the file system.
 */
#include <skv/kvcm_run.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/limits.h>
#include <skv/log.h>
#include <skv/store.h>
#include <skv/superblock.h>

#define MARK ".kvcm-"
#define PATH_ROOM (SKV_MAX_ROOT + 80)
#define ENTRY_ROOM (PATH_ROOM + 260) /* with a directory entry */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	remove(path);
	return 0;
}

static void remove_directory(const char *path)
{
	char marker[ENTRY_ROOM + 32];

	snprintf(marker, sizeof marker, "%s/" SKV_STORAGE_MARKER, path);
	if (access(marker, F_OK) == 0)
		nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* "<root>/.kvcm-<id>" for the storage's directory `root`. */
static void mark_path(const char *root, const char *id, char out[PATH_ROOM])
{
	const char *slash = strrchr(root, '/');

	snprintf(out, PATH_ROOM, "%.*s/" MARK "%.64s", (int)(slash - root), root, id);
}

void kvcm_private_remove(const char *root, const char *id)
{
	char mark[PATH_ROOM];

	remove_directory(root);
	mark_path(root, id, mark);
	unlink(mark);
}

static bool is_of_dead(const char *path)
{
	char owner[192] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, owner, sizeof owner - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 && skv_owner_is_dead(owner);
}

/* All directories in `parent` that end with ".<id>". */
static void sweep_id(const char *parent, const char *id)
{
	DIR *d = opendir(parent);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		const char *dot = strrchr(e->d_name, '.');
		char path[ENTRY_ROOM];

		if (!dot || dot == e->d_name || strcmp(dot + 1, id) != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", parent, e->d_name);
		skv_log(SKV_LOG_INFO, "kvcm", "removing %s, left by a process that is dead", path);
		remove_directory(path);
	}
	if (d)
		closedir(d);
}

static void sweep(const char *parent)
{
	DIR *d = opendir(parent);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[ENTRY_ROOM];

		if (strncmp(e->d_name, MARK, strlen(MARK)) != 0 ||
		    e->d_name[strlen(MARK)] != KVCM_PRIVATE_FIRST)
			continue;
		snprintf(path, sizeof path, "%s/%s", parent, e->d_name);
		if (!is_of_dead(path))
			continue;
		sweep_id(parent, e->d_name + strlen(MARK));
		unlink(path);
	}
	if (d)
		closedir(d);
}

int kvcm_private_mark(const char *root, const char *id, const char *owner, struct skv_error *err)
{
	char path[PATH_ROOM], parent[PATH_ROOM];
	size_t n = strlen(owner);
	bool good;
	int fd;

	assert(root[0] == '/' && id[0] == KVCM_PRIVATE_FIRST);
	snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(root, '/') - root), root);
	sweep(parent);
	mark_path(root, id, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	good = fd >= 0 && write(fd, owner, n) == (ssize_t)n;
	if (fd >= 0 && close(fd) != 0)
		good = false;
	return good ? SKV_OK
		    : skv_fail(err, SKV_E_IO, "storage_spec",
			       "cannot write into the storage's directory: %s", strerror(errno));
}
