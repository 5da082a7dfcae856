/*
 * conformance.h - the conformance suite of USRBIO: what a library of that name, on a mount, has to
 * do. One case for each behaviour, in files by subject. See conformance.c for how it is run.
 */
#ifndef SKV_TESTS_USRBIO_CONFORMANCE_H
#define SKV_TESTS_USRBIO_CONFORMANCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "control.h"
#include "usrbio_abi.h"

/* The library's functions, without hf3fs_ in front. */
struct usrbio_table {
#define POINTER(name, type, params) type(*name) params;
	USRBIO_FUNCTIONS(POINTER)
#undef POINTER
};
extern struct usrbio_table lib;

/* Where the suite runs. */
struct suite {
	char mount[256];
	char dir[300]; /* a fresh directory on it */
	size_t chunk;
	bool standin; /* ours: its control file and counters are there */
};
extern struct suite suite;

/* A registered file, memory, and a ring for each direction: what most cases need. */
struct rig {
	char path[400];
	int fd;
	int handle; /* for prep_io */
	struct hf3fs_iov iov;
	struct hf3fs_ior read, write;
};
#define RIG_ENTRIES 64
#define RIG_BYTES (8 * suite.chunk)

/* A new empty file of 16 chunks' length; rings of this depth. */
void rig_open(struct rig *g, int io_depth);
void rig_close(struct rig *g);
/* Opens a fresh file with a name of its own; its path if `path` is not NULL. */
int fresh_file(char path[400], int flags);
/* Makes a request and waits for its result. */
int64_t rig_write(struct rig *g, size_t mem, size_t off, size_t n);
int64_t rig_read(struct rig *g, size_t mem, size_t off, size_t n);
/* Prepares a request with `tag`; fails the case unless it is accepted. */
void rig_prep(struct rig *g, bool read, size_t mem, size_t off, size_t n, uintptr_t tag);
/* Waits for exactly n completions; fails the case when they do not come. */
void wait_all(const struct hf3fs_ior *ior, struct hf3fs_cqe *cqes, int n);
/* Waits up to `ms` for `least` completions. */
int wait_ms(const struct hf3fs_ior *ior, struct hf3fs_cqe *cqes, int most, int least, int ms);
/* Bytes that only this place has. */
void pattern(uint8_t *p, size_t n, uint64_t seed);
bool is_pattern(const uint8_t *p, size_t n, uint64_t seed);
bool is_zero(const uint8_t *p, size_t n);

/* 3fs-virt/iovs/<uuid><suffix> is a link. */
bool has_link(const char id[16], const char *suffix);
/* Path in /dev/shm that the link <uuid><suffix> points to. The library draws its name apart from
 * the id. */
void find_shm(const char id[16], const char *suffix, char path[128]);
bool has_shm(const char *path);
void uuid_of(const char id[16], char out[37]);
int open_fds(void);

/* Runs this program again as `--child name arg`; the status of waitpid(2). */
int run_child(const char *name, const char *arg);
/* The same, started only: its pid, and a descriptor from which one byte comes when it is ready. */
int start_child(const char *name, const char *arg, int *ready);

/* Ends the case when the library is not the stand-in. */
void only_standin(void);
/* The stand-in's control file, over what the suite needs itself. */
void knobs(const char *text);
void restart_daemon(const char *text);

/* The task of a child. */
struct child {
	const char *name;
	int (*run)(const char *arg); /* exit status */
};

extern const struct CMUnitTest fd_cases[], iov_cases[], ring_cases[], chunk_cases[], fault_cases[];
extern const size_t n_fd_cases, n_iov_cases, n_ring_cases, n_chunk_cases, n_fault_cases;
extern const struct child fd_children[], iov_children[]; /* end with a NULL name */

#endif
