/*
 * torture.h - the engine "usrbio" between a real manager and the stand-in for 3FS: what the
 * parts of the torture test share. torture.c tells the story, torture_load.c has the
 * threads that put and get.
 */
#ifndef SKV_TESTS_USRBIO_TORTURE_H
#define SKV_TESTS_USRBIO_TORTURE_H

#include <stdatomic.h>
#include <stdint.h>

#include "control.h"
#include "manager.h"

#define THREADS 16
#define CHAIN 4 /* keys that are put together */

/* Block sizes: a whole number of chunks, and one that is not. */
enum model { ONE, BIG, N_MODELS };
extern const char *const model_name[N_MODELS];
extern const uint64_t model_bytes[N_MODELS];

struct load {
	struct slabkv *kv;
	/* Shared memory, attached: the engine moves bytes from and to it without a copy. */
	struct slabkv_pool *pool;
	atomic_bool stop;
	_Atomic uint64_t hits, misses, errors;    /* blocks of gets */
	/* Blocks of puts; refused calls count all of theirs. */
	_Atomic uint64_t written, exists, busy, failed;
	_Atomic uint64_t busy_since[THREADS];     /* ms; 0: between two calls */
	uint64_t seed;
	uint32_t chains; /* of each model */
	/* Descriptor that gets a byte for each block that was written or read; -1: none. */
	int progress;
};

/* A handle with the engine on `mount`, which gives requests up after `timeout_ms`.
 * Mismatches end the test. */
struct slabkv *load_open(const char *mount, const char *url, const char *timeout_ms);
uint64_t load_now_ms(void);
/* A pool for a quarter of the threads; load_close gives it back, and closes the handle. */
void load_attach(struct load *l);
void load_close(struct load *l);
/* Threads that put, get and delete chains until l->stop; every byte of a hit is compared. */
void load_start(struct load *l, pthread_t threads[THREADS], int n);
/* Puts and gets every chain until all of it is there and right. Gives up after a minute or so. */
void load_settle(struct load *l);
/* Puts a prefix of n blocks of an instance, then reads it in one call. Requests that the reads
 * took. */
uint64_t load_prefix(struct load *l, const char *mount, const char *instance, uint64_t bytes,
		     uint32_t n);

#endif
