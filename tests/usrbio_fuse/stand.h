/*
 * stand.h - shared by the files of hf3fs_fuse_standin, a stand-in for 3FS's FUSE daemon
 * (hf3fs_fuse_main), for tests only: a local directory behind the kernel's FUSE, with 3FS's chunks,
 * and the real shared memory protocol of USRBIO (wire.h) over it. It is one process on one machine:
 * nothing is replicated, nothing goes over a network.
 *
 * inode.c  inodes, by the number of the kernel    chunk.c  reads and writes by 3FS's rules
 * names.c  operations on names                    files.c  operations on open files, ioctls
 * virt.c   the folder 3fs-virt                    iov.c    shared memory that users registered
 * ring.c   rings, jobs, workers                   faults.c faults that a test requests
 * stats.c  counters                               main.c   options, mount, threads
 *
 * Threads: those of libfuse's loop, three watchers of submit semaphores, the workers. Locks:
 * each file's own, taken in the order iov, ring, inode table, inode, chunk; none is held over a
 * wait for another process.
 */
#ifndef SKV_TEST_HF3FS_STAND_H
#define SKV_TEST_HF3FS_STAND_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "wire.h"

struct options {
	const char *root, *mount;
	char name[32];
	uint32_t chunk; /* of the root directory */
	int workers, jobs_per_ring;
	double attr_timeout;
};
extern struct options opt;

/* ---- counters (stats.c) ---- */

enum counter {
#define COUNTER(name) N_##name,
#include "counters.h"
#undef COUNTER
	N_COUNTERS
};

/* Waits as long as the meta service would, if a test said how long. */
void count(enum counter what, uint64_t n);
/* Returns a line "name value" for each. The caller frees it. */
char *stats_text(size_t *length);

/* ---- inodes (inode.c) ---- */

/* A file or directory of the local directory. Its number is its st_ino there, 1 for the root: what
 * users find with fstat is what the ring protocol names a file by. `name` below `parent` is how it
 * was found last; a file that was unlinked has none and lives as long as it is open. */
struct inode {
	struct inode *next, *parent;
	uint64_t number, lookups;
	uint32_t refs; /* the table's own while lookups > 0, children, open files, jobs */
	char *name;
	bool is_dir;
	int fd;         /* directories: always; files: while users > 0 */
	uint32_t users; /* of the file's fd */
	/* Keeps the number from being given again after the last name went; -1: not needed yet. */
	int kept;
	uint32_t chunk; /* bytes; new files and directories inherit it */

	/* files: chunk.c */
	pthread_rwlock_t lock;
	bool loaded, dirty;
	uint64_t n_have;
	uint32_t *have; /* bytes that each chunk has; 0: there is no such chunk */

	/* bytes written through the kernel and not yet sent to storage: files.c */
	pthread_mutex_t buf_lock;
	char *buf;
	uint64_t buf_off, buf_len;
};

int inodes_open(void); /* 0 or an errno */
/* The one that the kernel asks about: known because the kernel holds it. NULL: not one of ours. */
struct inode *inode_of(fuse_ino_t number);
/* By number, with a reference; NULL when the kernel does not know it. */
struct inode *inode_ref(uint64_t number);
void inode_unref(struct inode *i);
/* Returns the inode of `name` below `parent`; its lookup count grows by one. */
struct inode *inode_found(struct inode *parent, const char *name, const struct stat *st);
void inode_forget(uint64_t number, uint64_t n);
/* Take names away from the local directory and from the inodes. 0 or an errno. */
int remove_name(int dir, const char *name, int flags); /* of unlinkat(2) */
int rename_name(struct inode *from, const char *name, struct inode *to, const char *new_name);
/* A descriptor of the file, open for reading and writing until inode_close. 0 or an errno. */
int inode_open(struct inode *i);
/* The file was just created: here is its descriptor. */
void inode_opened(struct inode *i, int fd);
void inode_close(struct inode *i);
int inode_stat(struct inode *i, struct stat *st);  /* 0 or an errno */
/* number, chunk size, blocks: as 3FS tells them */
void inode_present(const struct inode *i, struct stat *st);
/* New files below `path` (relative to the root) get this chunk size. 0 or an errno:
 * EBUSY when it is not empty. */
int inode_layout(const char *path, uint32_t chunk);

/* ---- chunks (chunk.c); the file is open ---- */

/* bytes or -errno */
int64_t chunk_read(struct inode *i, uint64_t off, uint64_t len, char *to, bool forbid_holes);
/* len or -errno */
int64_t chunk_write(struct inode *i, uint64_t off, uint64_t len, const char *from);
/* 0 or an errno */
int chunk_truncate(struct inode *i, uint64_t length);
int chunk_punch(struct inode *i, const struct wire_punch *p);
/* settles the length as fsync does: it becomes the end of the last chunk */
int chunk_settle(struct inode *i, bool force);

/* ---- operations ---- */

void name_operations(struct fuse_lowlevel_ops *o);
void file_operations(struct fuse_lowlevel_ops *o);
int remove_tree(int dir, const char *name); /* 0 or an errno */

/* ---- 3fs-virt (virt.c): each answers the request and returns true when it
 * is about that folder ---- */

#define VIRT_FIRST (UINT64_C(0xf) << 60)
static inline bool is_virt(fuse_ino_t n) { return n >= VIRT_FIRST; }
bool virt_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
bool virt_getattr(fuse_req_t req, fuse_ino_t n);
bool virt_readlink(fuse_req_t req, fuse_ino_t n);
bool virt_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
bool virt_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
bool virt_open(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi);
bool virt_read(fuse_req_t req, fuse_ino_t n, size_t size, off_t off, struct fuse_file_info *fi);
bool virt_write(fuse_req_t req, fuse_ino_t n, const char *text, size_t size);
bool virt_release(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi);
bool virt_opendir(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi);
bool virt_readdir(fuse_req_t req, fuse_ino_t n, size_t size, off_t off);
bool virt_releasedir(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi);
/* Adds a name to a listing; false when it is full. */
bool add_name(fuse_req_t req, char *to, size_t size, size_t *used, const char *name,
	      uint64_t number, mode_t type, off_t next);

/* ---- shared memory (iov.c) ---- */

struct iov {
	struct iov *next;
	uint32_t refs;
	bool gone; /* the link is removed; jobs may still use the memory */
	uint64_t number; /* of the link */
	char key[256], target[256];
	uint8_t id[16];
	uid_t uid;
	gid_t gid;
	pid_t pid;
	char *base;
	uint64_t size, block;
	/* rings only */
	bool is_ring, for_read;
	int depth, priority /* 0 high, 1, 2 low */, timeout_ms;
	uint64_t flags;
	struct ring *ring;
};

/* 0 or an errno */
int iov_add(const char *key, const char *target, const struct fuse_ctx *who, struct iov *out);
int iov_remove(const char *key, uid_t uid);
void iov_remove_of(pid_t pid);
/* A copy of what a key or number names, without its memory. 0, ENOENT, or
 * EPERM for another user's. */
int iov_by_key(const char *key, uid_t uid, struct iov *out);
int iov_by_number(uint64_t number, uid_t uid, struct iov *out);
bool iov_nth(int n, uid_t uid, struct iov *out);
/* The memory of one I/O, referenced. 0, EINVAL (unknown, outside, across a block), EPERM. */
int iov_memory(const uint8_t id[16], uid_t uid, uint64_t off, uint64_t len, struct iov **iov,
	       char **memory);
void iov_unref(struct iov *v);

/* ---- rings (ring.c) ---- */

int rings_open(void); /* semaphores, watchers, workers; 0 or an errno */
void rings_close(void);
const char *ring_semaphore(int priority); /* path below /dev/shm */
/* the iov is its memory, referenced by the ring; 0 or an errno */
int ring_add(struct iov *v);
void ring_remove(struct iov *v);

/* ---- faults (faults.c) ---- */

int fault_command(char *text); /* lines of the control file; 0 or an errno */
int fault_of_io(bool read);    /* 0, or the errno that this request ends with */
int fault_of_chunk(uint64_t nth); /* of a write: 0 or an errno for each of its chunks */
/* Waits while chunks [from, to) of the file lie on a node that is lost. */
void fault_of_chain(uint64_t file, uint64_t from, uint64_t to, bool read);
void fault_before_job(void);	/* delays and holds */
void fault_meta(void);		/* the delay of a metadata operation */
int fault_of_ring(bool is_ring, int depth);
int fault_of_create(void);	     /* of a file: 0 or an errno */
int fault_of_targets(uint32_t chunk); /* of a write to chunks of this size: 0 or an errno */
bool fault_readonly(void);
bool fault_stall(void); /* io_depth < 0 with a timeout waits for more requests, as 3FS does */
bool fault_space(struct statvfs *vfs);

#endif
