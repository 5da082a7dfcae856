/*
 * guard.h - slows down clients that guess tokens.
 *
 * Each address may show `burst` wrong tokens at once and one more a second. Beyond that no answer
 * reveals whether a token is right, except for a token that was right from this address before:
 * other workers of the same address continue.
 */
#ifndef SKV_GUARD_H
#define SKV_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/hold.h>
#include <skv/lock.h>

#define SKV_GUARD_EVERY_MS 1000u /* time that permits another wrong token */
#define SKV_GUARD_SETS 256u
#define SKV_GUARD_WAYS 4u
#define SKV_GUARD_KNOWN 8192u

struct skv_guard {
	uint32_t burst; /* wrong tokens of one address at once; 0: no limit */
	uint64_t seed;
	/* Mixes of an address and a token that was right; one is forgotten when another takes its
	 * place. */
	atomic_uint_fast64_t known[SKV_GUARD_KNOWN];
	struct skv_mutex lock;
	/* Addresses that failed, all protected by lock. */
	struct skv_guard_peer {
		uint8_t address[SKV_ADDRESS_BYTES];
		uint64_t clear_ms; /* when all its failures are forgotten */
	} peers[SKV_GUARD_SETS][SKV_GUARD_WAYS];
};

/* A token that was shown. */
struct skv_guard_try {
	const uint8_t *address; /* of skv_hold_address */
	uint64_t token;         /* a part of its hash */
	bool right;
};

void skv_guard_init(struct skv_guard *g, uint32_t burst);
void skv_guard_destroy(struct skv_guard *g);
/* Counts a wrong token. Returns false if the answer must not reveal whether the token is right. Any
 * thread. */
bool skv_guard_pass(struct skv_guard *g, const struct skv_guard_try *t, uint64_t now_ms);

#endif
