/*
 * kill9.h - the load of the kill -9 test.
 */
#ifndef SKV_TESTS_KILL9_H
#define SKV_TESTS_KILL9_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <pthread.h>

#include "manager.h"

#define BLOCK 4096u /* bytes */
#define CHAIN 8u    /* blocks of one put */

#define WRITERS 4u
#define READERS 2u
#define WINDOW 150u /* chains that one writer keeps; older ones it deletes */

enum chain_state { UNKNOWN, ACKNOWLEDGED, GOING };

/* A put. Guarded by the writer's lock. */
struct chain {
	uint64_t first; /* the keys are first .. first + CHAIN - 1 */
	enum chain_state state;
};

struct load;

struct writer {
	struct load *load;
	unsigned no;
	uint64_t next;
	struct chain chain[WINDOW];
	pthread_mutex_t lock;
};

struct load {
	struct slabkv *kv;
	bool evicts; /* the storage is too small for all: what was acknowledged may be gone */
	_Atomic bool stop;
	struct writer writer[WRITERS];
	pthread_t thread[WRITERS + READERS];
	_Atomic uint64_t puts, reads, bytes, deletes, hits, mismatches, refused;
};

void load_start(struct load *l, struct slabkv *kv, bool evicts);
void load_stop(struct load *l);
/* Reads everything that was acknowledged; returns the blocks found. */
uint64_t load_check_all(struct load *l);
/* The bytes of a block are a function of its key alone. */
void fill(uint64_t key, uint8_t *bytes);

#endif
