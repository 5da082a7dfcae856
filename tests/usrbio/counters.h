/*
 * counters.h - the counters of the stand-in for 3FS's client library on a mount, in the shared file
 * <mount>/3fs-virt/standin.stats: an array of struct counter, for anybody who maps or reads it.
 */
#ifndef SKV_TESTS_USRBIO_COUNTERS_H
#define SKV_TESTS_USRBIO_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/* The target of submit-ios links, before the daemon's epoch. */
#define STANDIN_SEM "/dev/shm/sem.hf3fs-submit-ios.standin-"

#define STANDIN_COUNTERS(C)                                                         \
	C(read_ios)      /* requests that were completed */                         \
	C(read_bytes)                                                               \
	C(read_short)    /* of them: fewer bytes than asked for */                  \
	C(read_errors)                                                              \
	C(read_jobs)     /* batches */                                              \
	C(write_ios)                                                                \
	C(write_bytes)                                                              \
	C(write_errors)                                                             \
	C(write_jobs)                                                               \
	C(chunk_reads)   /* pieces of requests, one for each chunk */               \
	C(chunk_writes)                                                             \
	C(cow_writes)    /* of them: over a part of what the chunk held */          \
	C(cow_bytes)     /* that such writes had to read */                         \
	C(lost_ios)      /* requests that died with their daemon */                 \
	C(shared_ios)    /* prepared, while another one used its memory; a read */  \
	C(faults)        /* calls and requests that a rule has befallen */          \
	C(submits)                                                                  \
	C(waits)                                                                    \
	C(fd_checks)     /* of here on: calls that go to the daemon, as metadata */ \
	C(fd_regs)                                                                  \
	C(fd_deregs)                                                                \
	C(iov_creates)                                                              \
	C(iov_opens)                                                                \
	C(iov_wraps)                                                                \
	C(iov_destroys)                                                             \
	C(ring_creates)                                                             \
	C(ring_destroys)                                                            \
	C(punches)       /* chunks */                                               \
	C(swept_links)   /* that dead processes had left */

enum counter_name {
#define C(name) COUNT_##name,
	STANDIN_COUNTERS(C)
#undef C
	N_COUNTERS
};

/* A record of the file; little-endian. */
struct counter {
	char name[24];
	_Atomic uint64_t value;
};

#endif
