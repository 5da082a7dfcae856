/*
 * kill9.h - parts of the kill -9 test: the manager as a process, and the load on it.
 */
#ifndef KVB_TESTS_KILL9_H
#define KVB_TESTS_KILL9_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include <pthread.h>

#include <kvblock.h>

#define BLOCK 4096u /* bytes */
#define CHAIN 8u    /* blocks of one put */

/* A failure ends the test at once: the manager is killed, its directory kept for a look. */
#define MUST(cond, ...)                                                                            \
	do {                                                                                       \
		if (!(cond))                                                                       \
			give_up(__FILE__, __LINE__, #cond, __VA_ARGS__);                           \
	} while (0)
void give_up(const char *file, int line, const char *what, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 4, 5)));

/* ---- manager.c: kvblockd as a child ----------------------------------------------------------- */

struct manager {
	const char *program, *durability;
	char dir[64], port[16];
	pid_t pid;
};

void manager_init(struct manager *m, const char *program, const char *durability, const char *capacity);
void manager_start(struct manager *m); /* returns when it answers /readyz */
void manager_kill(struct manager *m);  /* -9, and reaped */
void manager_stop(struct manager *m);  /* SIGTERM; must end with 0 */
void manager_fsck(struct manager *m);  /* must be clean */
void manager_remove(struct manager *m);
struct kvblock *manager_connect(const struct manager *m);

/* ---- load.c: writers and readers ------------------------------------------------------------------ */

#define WRITERS 4u
#define READERS 2u
#define WINDOW 150u /* chains that one writer keeps; older ones it deletes */

enum chain_state { UNKNOWN, ACKNOWLEDGED, GOING };

/* One put. Guarded by the writer's lock. */
struct chain {
	uint64_t first; /* its keys are first .. first + CHAIN - 1 */
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
	struct kvblock *kv;
	bool evicts; /* the storage is too small for all: what was acknowledged may be gone */
	_Atomic bool stop;
	struct writer writer[WRITERS];
	pthread_t thread[WRITERS + READERS];
	_Atomic uint64_t puts, reads, bytes, deletes, hits, mismatches, refused;
};

void load_start(struct load *l, struct kvblock *kv, bool evicts);
void load_stop(struct load *l);
/* Reads everything that was acknowledged; returns the blocks found. */
uint64_t load_check_all(struct load *l);
/* The bytes of a block are a function of its key alone. */
void fill(uint64_t key, uint8_t *bytes);

#endif
