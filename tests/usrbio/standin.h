/*
 * standin.h - a stand-in for 3FS's client library and its FUSE daemon, over a local directory: for
 * tests, never installed. What is in it:
 *
 *	standin_lib.c    fds, mount points, punching, hard links
 *	standin_iov.c    data memory
 *	standin_ring.c   rings: prepare, submit, wait
 *	standin_jobs.c   the daemon's side of a ring: batches, watchers, workers
 *	standin_chunk.c  a local file seen as chunks that are there, or not
 *	standin_mount.c  mounts, knobs, faults, counters, what dead processes left
 *
 * A mount is a directory named in HF3FS_STANDIN_ROOT (several: separated by ':'). The daemon is a
 * few threads of the process itself; daemons of several processes on one mount share files, links
 * and counters, and read the same control file. control.h is how a test turns the knobs; README.md
 * says what they do and where this differs from the real thing.
 */
#ifndef SKV_TESTS_USRBIO_STANDIN_H
#define SKV_TESTS_USRBIO_STANDIN_H

#include <pthread.h>
#include <stdatomic.h>

#include "counters.h"
#include "usrbio_abi.h"

#define EXPORTED __attribute__((visibility("default")))

/* Name, default, least, most. Read from <mount>/3fs-virt/standin.conf as NAME=VALUE. */
#define STANDIN_KNOBS(K)                                                                     \
	K(chunk, 1 << 20, 4096, 64 << 20)      /* bytes of a chunk, a power of two */        \
	K(delay_us, 0, 0, 60000000)            /* of each job, before it touches anything */ \
	K(jitter_us, 0, 0, 60000000)           /* up to so much more, at random */           \
	K(hold, 0, 0, 1)                       /* jobs wait as long as it is 1 */            \
	K(down, 0, 0, 1)                       /* there is no daemon */                      \
	/* another number: another daemon, which knows nothing */                            \
	K(epoch, 1, 0, INT64_MAX)                                                            \
	/* io_depth < 0 with a timeout waits for a full batch, for ever */                   \
	K(stall, 1, 0, 1)                                                                    \
	/* 0: rings with io_depth < 0 are refused, as some daemons do */                     \
	K(negative_depth, 1, 0, 1)                                                           \
	K(jobs, 32, 1, 1024)                   /* that one look at a ring may begin */       \
	/* reads of a batch into the same memory fail the batch */                           \
	K(overlap_check, 1, 0, 1)                                                            \
	K(readonly, 0, 0, 1)                   /* writes are -EROFS */                       \
	K(seed, 1, 0, INT64_MAX)               /* of chance */

struct knobs {
#define K(name, def, min, max) int64_t name;
	STANDIN_KNOBS(K)
#undef K
};

/* The operation that a rule of the control file applies to: fault=OP:ERROR:WHEN[:HOW]. */
enum fault_op { ON_READ, ON_WRITE, ON_IOV, ON_RING, ON_SEM, ON_SHM, ON_REG, N_FAULT_OPS };
enum fault_how {
	HOW_CLEAN, /* nothing was written */
	HOW_TORN,  /* some chunks were written */
	HOW_DONE,  /* everything was, but nobody says so */
	HOW_BATCH, /* all requests of the job fail */
};

struct fault_rule {
	enum fault_op op;
	int error;     /* errno; 0 = SHORT: a read of less than was asked for */
	double chance; /* of each call; 0: only the nth */
	uint64_t nth;  /* counted from 1, since the control file was read */
	enum fault_how how;
	uint64_t seen;
};
#define MAX_RULES 16

struct ring;
struct iov;

struct mount {
	struct mount *next;
	char path[256]; /* real path */
	int virt;       /* 3fs-virt */
	int iovs;       /* 3fs-virt/iovs */
	struct counter *counters;
	bool joins; /* other processes were there before: what links there are is their business */

	pthread_mutex_t reload_lock; /* conf_stamp; before all other locks */
	int64_t conf_stamp[3]; /* inode, mtime in ns, size of the control file that was read */
	pthread_mutex_t conf_lock;   /* protects the following; inside any other lock */
	struct knobs knobs;
	struct fault_rule rules[MAX_RULES];
	int n_rules;
	uint64_t rng;

	/* Held for reading by whoever moves bytes or completes for the daemon, for writing when one
	 * daemon gives way to the next: afterwards nothing of the old one moves any more. */
	pthread_rwlock_t alive_lock;
	_Atomic int64_t epoch; /* of the daemon; 0 while there is none */

	pthread_mutex_t lock; /* rings, iov list */
	struct ring *rings;
	struct iov *iov_list;
	sem_t submit[3]; /* high, normal, low */
};

/* ---- standin_mount.c ------------------------------------------------------------------------- */

/* The mount that an absolute real path, or a descriptor, lies on; NULL:
 * none. It may have no daemon. */
struct mount *mount_of_path(const char *path);
struct mount *mount_of_fd(int fd);
/* The mount with this mount point. */
struct mount *mount_named(const char *mount_point);
/* Reads the control file if it has changed. Holds no lock of the caller's. */
void mount_reload(struct mount *m);
struct knobs mount_knobs(struct mount *m);
void mount_count(struct mount *m, enum counter_name name, uint64_t n);
/* The error that a rule wants for this call, else -1. 0 is a short read. *how is set with it. */
int mount_fault(struct mount *m, enum fault_op op, enum fault_how *how);
/* 0 .. below - 1. */
uint64_t mount_random(struct mount *m, uint64_t below);
/* Remembers whose a link is (the first's who says so), forgets it: for the day
 * that this process has died. */
void owner_record(struct mount *m, const char *uuid, const char *link);
void owner_forget(struct mount *m, const char *uuid);
/* Says why a test is broken, and ends the process: as the vendor's library does, or because the
 * control file cannot be understood. */
_Noreturn void standin_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- standin_lib.c --------------------------------------------------------------------------- */

/* A registered descriptor. */
struct reg {
	_Atomic int refs;
	struct mount *mount;
	int64_t epoch;
	int fd;       /* the caller's number */
	int dupfd;    /* the number that the caller may use as well */
	int io;       /* an open file of our own: no O_DIRECT, no read-ahead */
	int status;   /* F_GETFL of then */
	uint64_t dev, ino;
	atomic_bool gone; /* deregistered */
};

/* NULL: not registered. A reference to put back. */
struct reg *reg_get(int fd);
void reg_put(struct reg *r);
/* Descriptors that can be registered at all. */
int reg_limit(void);
/* The daemon knows the file: it is registered, or open in this process. */
bool reg_is_known(const struct reg *r);

/* ---- standin_iov.c --------------------------------------------------------------------------- */

struct iov {
	struct iov *next;
	_Atomic int refs;
	struct mount *mount;
	int64_t epoch;
	uint8_t id[16];
	uint8_t *base;
	size_t size;
	size_t block_size;
	bool ours; /* mapped by this library */
	bool made; /* by this process: the name in /dev/shm is its own */
	/* mount.lock; where the daemon has mapped it, while requests use it: a caller may unmap
	 * its memory while one is under way, and have something else at that address. */
	uint8_t *view;
	struct slot *lent; /* mount.lock: to these requests */
	char shm[64];
	char link[128]; /* name in 3fs-virt/iovs */
};

/* The memory that a struct of the caller's means; NULL: never heard of. A reference to put back. */
struct iov *iov_get(struct mount *m, const struct hf3fs_iov *iov);
void iov_put(struct iov *v);
/* From here until it is returned a request uses [at, at + length) of `s->iov`, if there is any: the
 * view stands. Counts if another one uses some of it, and one of them is a read. Holds no lock of
 * the caller's. */
void iov_lend(struct slot *s, uint64_t at, uint64_t length, bool read);
void iov_return(struct slot *s);
/* Returns true if the link still exists. */
bool iov_is_linked(const struct iov *v);
/* For rings: memory with a link of this suffix. 0 or -errno. */
int iov_make(struct hf3fs_iov *iov, const char *mount_point, size_t size, size_t block_size,
	     const char *suffix, enum fault_op op);
/* Ends it; the link has this suffix. Its shared memory keeps its name unless `unlink`. */
void iov_end(struct hf3fs_iov *iov, const char *suffix, bool unlink_shm);

/* ---- standin_ring.c -------------------------------------------------------------------------- */

struct slot {
	struct iov *iov;
	struct reg *reg;
	bool busy;
	struct slot *next; /* mount.lock: of what iov is lent to; it has */
	uint64_t at, length;
	bool read;
};

/* Batches of a ring in the order in which they were begun; those at the end may be over already. */
struct job {
	struct job *next;  /* in the ring */
	struct job *after; /* in the queue */
	struct ring *ring;
	int from, n; /* sqes */
	bool over;
};

struct ring {
	struct ring *next; /* of the mount */
	_Atomic int refs;
	struct mount *mount;
	int64_t epoch;
	bool for_read;
	int io_depth;
	int priority; /* 0 high, 1 normal, 2 low */
	int timeout;
	uint64_t flags;
	int places; /* entries + 1 */

	/* In the ring's memory. */
	struct iov *memory;
	_Atomic int32_t *sqe_head, *sqe_tail, *cqe_head, *cqe_tail;
	struct ring_args *args;
	struct ring_cqe *cqe;
	struct ring_sqe *sqe;
	sem_t *done;

	pthread_mutex_t lock; /* protects the following, and the writing of completions */
	struct slot *slots;
	int taken;      /* sqe up to which batches were made */
	int processing; /* requests in batches */
	struct job *first, *last;
	bool waiting; /* a batch is not full; since: */
	int64_t waiting_since_ms;
};

void ring_put(struct ring *r);
int ring_cqe_count(const struct ring *r);

/* ---- standin_jobs.c -------------------------------------------------------------------------- */

/* Starts the daemon's threads for a mount, once. */
void jobs_start(struct mount *m);
int64_t standin_now_ms(void);

/* ---- standin_chunk.c ------------------------------------------------------------------------- */

/* Bytes that the chunk at `start` holds, 0: it is not there. Known to the page. */
size_t chunk_length(int fd, uint64_t start, size_t chunk);
/* Reads from one chunk: bytes, or -errno. Fewer than n: the chunk is not there, or ends. */
ssize_t chunk_read(struct mount *m, const struct reg *r, size_t chunk, uint64_t off, void *buf,
		   size_t n);
/* Writes into one chunk: n or -errno. What lies before `off` and was never written becomes
 * zeros. */
ssize_t chunk_write(struct mount *m, const struct reg *r, size_t chunk, uint64_t off,
		    const void *buf, size_t n);
/* Removes whole chunks. 0 or an errno. */
int chunk_punch(struct mount *m, int fd, uint64_t start, uint64_t end, size_t chunk);

#endif
