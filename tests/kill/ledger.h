/*
 * ledger.h - parts of the test that keeps a ledger of who owns which bytes (see ledger.c).
 */
#ifndef SKV_TESTS_LEDGER_H
#define SKV_TESTS_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pthread.h>

#include "manager.h"

#define CHAIN 8u    /* blocks of one session */
#define UNIT 4096u  /* every slot is a multiple of it; the ledger counts in it */
#define WRITERS 5u  /* the last one is the survivor */
#define READERS 2u
#define WINDOW 60u  /* chains that a writer remembers */
#define GRACE_MS 300u /* as manager.c tells the manager */

uint64_t now_ms(void); /* CLOCK_BOOTTIME, as the library's deadlines */

/* ---- owners.c: who was given which bytes, and until when nobody else may be ------------------ */

enum claim_state {
	CLAIM_OPEN,      /* a session that was not ended yet: ours until `until` */
	/* Acknowledged: ours until it is deleted or (phase with eviction) evicted. */
	CLAIM_COMMITTED,
	CLAIM_LOOSE,     /* deleted, ended, given up: may be handed out again at any time */
};

/* Forgets everything: a new storage. No thread may be in here. */
void owners_reset(bool evicts);
/* A start named these bytes for `key`; nobody else may be given them before `until`. */
void owners_claim(const struct slabkv_file *f, const struct slabkv_location *l, uint64_t key,
		  uint64_t until);
/* The claim changes its state. Before the call that loosens it is sent, for it may act at any
 * time. */
void owners_set(const struct slabkv_file *f, const struct slabkv_location *l,
		enum claim_state state);
/* A lookup named these bytes for `key` under a lease that lasts until `until`, 0 = without one. */
void owners_lease(const struct slabkv_file *f, const struct slabkv_location *l, uint64_t key,
		  uint64_t until);
/* How many claims and leases were compared with others. */
uint64_t owners_checks(void);

/* ---- ledger_load.c: writers and readers ------------------------------------------------------ */

struct counts {
	_Atomic uint64_t puts, reads, bytes, deletes, aborts, partial, abandoned, survived,
		repeated, refused, no_space;
};

/* The instance of each slot size, which exists before the load starts. */
#define MODELS 2u
#define MAX_SPECS 2u
extern const struct model {
	const char *id;
	uint32_t n_specs;
	struct slabkv_spec spec[MAX_SPECS];
	uint64_t block_bytes;
} models[MODELS];

struct load {
	struct slabkv *kv;
	const char *root; /* of the storage */
	bool evicts;      /* the storage is too small for all: what was acknowledged may be gone */
	_Atomic bool stop;
	_Atomic unsigned epoch; /* kills so far */
	_Atomic bool waiting; /* the survivor's session is open, and goes on after the next kill */
	struct counts n;
	pthread_t thread[WRITERS + READERS];
};

/* Starts a load; one at a time. */
void load_start(struct load *l, struct slabkv *kv, const char *root, bool evicts);
/* Ends all threads; open sessions are finished first, those of the careless are not. */
void load_stop(struct load *l);
/* After load_stop: looks up every chain that is remembered; nothing lost, nothing back. Returns the
 * blocks that were read and found right. */
uint64_t load_check(struct load *l);

#endif
