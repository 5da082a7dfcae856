/*
 * slots.h - parts of the load that watches who owns which bytes (see slots.c).
 */
#ifndef KVB_TESTS_SLOTS_H
#define KVB_TESTS_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pthread.h>

#include <kvblock.h>

#define CHAIN 8u	/* blocks of one session */
#define UNIT 4096u	/* every slot is a multiple of it; the ledger counts in it */
#define MAX_BLOCK (3u * UNIT)
#define WRITERS 5u	/* the last one is the survivor */
#define READERS 2u
#define WINDOW 60u  /* chains that a writer remembers */

/* Says what is wrong and ends the program with status 1. */
#define MUST(cond, ...)                                                                            \
	do {                                                                                       \
		if (!(cond))                                                                       \
			give_up(__LINE__, #cond, __VA_ARGS__);                                     \
	} while (0)
void give_up(int line, const char *what, const char *fmt, ...) __attribute__((noreturn, format(printf, 3, 4)));

uint64_t now_ms(void); /* CLOCK_BOOTTIME, as the library's deadlines */

/* ---- ledger.c: who was given which bytes, and until when nobody else may be ----------------------- */

enum claim_state {
	CLAIM_OPEN,      /* a session that was not ended yet: ours until `until` */
	CLAIM_COMMITTED, /* acknowledged: ours until it is deleted or (phase with eviction) evicted */
	CLAIM_LOOSE,     /* deleted, ended, given up: may be handed out again at any time */
};

void ledger_init(bool evicts);
/* A start named these bytes for `key`; nobody else may be given them before `until`. */
void ledger_claim(const struct kvblock_file *f, const struct kvblock_location *l, uint64_t key, uint64_t until);
/* The claim changes its state. Before the call that loosens it is sent, for it may act at any time. */
void ledger_set(const struct kvblock_file *f, const struct kvblock_location *l, enum claim_state state);
/* A lookup named these bytes for `key` under a lease that lasts until `until`. */
void ledger_lease(const struct kvblock_file *f, const struct kvblock_location *l, uint64_t key, uint64_t until);
/* How many claims and leases were compared with others. */
uint64_t ledger_checks(void);

/* ---- load.c: writers and readers ---------------------------------------------------------------------- */

struct counts {
	_Atomic uint64_t puts, reads, bytes, deletes, aborts, partial, abandoned, survived, repeated, refused, no_space;
};

struct load {
	struct kvblock *kv;
	const char *root; /* of the storage */
	bool evicts;
	_Atomic bool stop;
	_Atomic unsigned epoch; /* kills so far */
	struct counts n;
	pthread_t thread[WRITERS + READERS];
};

void load_start(struct load *l, struct kvblock *kv, const char *root, bool evicts);
/* Ends all threads; open sessions are finished first, those of the careless are not. */
void load_stop(struct load *l);
/* Looks up every chain that is remembered: nothing lost, nothing back, no two with the same byte. Returns the
 * blocks that were read and found right. */
uint64_t load_check(struct load *l);

#endif
