/*
 * fs.h - file-system primitives of the `file` storage.
 *
 * Every name is one component, relative to an open directory, and never a symbolic link that is
 * followed: nothing here can leave the directory. Private to the component. Any thread.
 *
 * A file is made under a temporary name, locked with flock(2) while its maker lives, and moved to
 * its real name when it is complete and synced. The kernel drops the lock with the process, so an
 * unlocked temporary file is the leftover of a crash and may be swept away.
 */
#ifndef SKV_STORAGE_FS_H
#define SKV_STORAGE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/status.h>
#include <skv/storage.h>

/* Of files that are made here, less what the umask takes (slabkvd sets it, by storage_mode):
 * clients often run as another user of the same group; nobody else may read a prompt's bytes, or
 * write them. */
#define SKV_FILE_MODE 0660

/* Status for an errno: no space, not reachable, foreign (a link where a file belongs), else I/O. */
int skv_fs_status(int error);
/* Sets *err to "<what>: <text of error> (<path>)" with the status for `error`, and returns that. */
int skv_fs_fail(struct skv_error *err, int error, const char *what, const char *path);

/* Returns true if this name is a single path component. */
bool skv_fs_is_component(const char *name);
/* Opens the directory `name` in `below`, whatever the links that lead to it; below -1: `name`
 * is a path. 0 or an errno. */
int skv_fs_open_dir(int below, const char *name, int *dir);
/* Opens an existing file for reading. 0 or an errno (ELOOP: it is a symbolic link). Never waits for
 * the other end of a FIFO. */
int skv_fs_open(int dir, const char *name, int *fd);
/* The same past the page cache, where the file system can: on 3FS a read through it that comes to
 * a hole makes the kernel believe for a while that the file ends there. Reads are then of whole
 * pages into aligned memory. */
int skv_fs_open_direct(int dir, const char *name, int *fd);
/* Reads up to `n` bytes at `at`; *got is less than `n` only at the end of
 * the file. 0 or an errno. */
int skv_fs_read(int fd, uint64_t at, void *out, size_t n, size_t *got);
/* Writes all `n` bytes at `at`. 0 or an errno. */
int skv_fs_write(int fd, uint64_t at, const void *p, size_t n);
/* Really allocates bytes 0..length-1, which read as zeros then. 0 or an errno. */
int skv_fs_allocate(int fd, uint64_t length);
/* Gives the file its length, and allocates nothing. 0 or an errno. */
int skv_fs_set_length(int fd, uint64_t length);

/* The file system of an open file or directory. */
struct skv_fs_mount {
	bool is_3fs;      /* the file system answers 3FS's ioctl, or is mounted as fuse.hf3fs */
	uint64_t chunk;   /* st_blksize: on 3FS the chunk size */
	char type[32];    /* of the file system, as in mountinfo; "?" if it is not told there */
};
/* 0 or an errno. */
int skv_fs_look(int fd, struct skv_fs_mount *out);
/* Gives the space of whole chunks back, and keeps the length. 0 or an errno. */
int skv_fs_punch(int fd, bool is_3fs, const struct skv_storage_range *v, uint32_t n);

/* An unfinished file: open for writing, locked, under a name that nobody else uses. */
struct skv_fs_temp {
	int fd;
	char name[64];
};

/* Returns true for names of unfinished files. */
bool skv_fs_is_temp(const char *name);
/* Makes an unfinished file. 0 or an errno. */
int skv_fs_temp_open(int dir, struct skv_fs_temp *t);
/* Syncs the file, moves it to `name` and syncs the directory. EEXIST when `name` is taken: it stays
 * as it is. On any failure before the move the file is removed. Closes t->fd in every case. */
int skv_fs_temp_publish(int dir, struct skv_fs_temp *t, const char *name);
/* Removes the file and closes t->fd. */
void skv_fs_temp_drop(int dir, struct skv_fs_temp *t);
/* Removes temporary files whose makers are dead. Files that cannot be removed stay for the next
 * sweep. */
void skv_fs_sweep(int dir);

#endif
