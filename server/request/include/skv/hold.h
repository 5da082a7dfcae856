/*
 * hold.h - memory limits for calls: bodies, decoded requests, and answers until sent.
 *
 * A call that holds more than SKV_HOLD_SMALL bytes is large. Large calls leave a reserve for small
 * ones, and calls of one tenant or address leave room for others. Bodies that would exceed a limit
 * are refused; allocations of a running call are always counted, and then new calls are refused
 * before they run.
 */
#ifndef SKV_HOLD_H
#define SKV_HOLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/lock.h>

#define SKV_HOLD_SMALL (64u * 1024)
#define SKV_ADDRESS_BYTES 16

struct sockaddr;

struct skv_hold_options {
	uint64_t total;          /* bytes of all calls */
	/* A call that holds no more than this exceeds no limit while nothing else is held. */
	uint64_t one;
	unsigned reserve_percent; /* percent of total reserved for small calls */
	/* Percent of total that one tenant's large calls may hold; 100 = no separate limit. */
	unsigned tenant_percent;
	unsigned address_percent; /* the same per address */
};

#define SKV_HOLDERS 256

struct skv_holds {
	uint64_t total, large, tenant, address; /* bounds */
	uint64_t one;                           /* as in the options */
	atomic_uint_fast64_t bytes;             /* of all calls */
	struct skv_mutex lock;
	uint64_t large_bytes;                        /* protected by lock */
	/* Protected by lock: tenants and addresses with large calls. */
	struct skv_holder *holders[SKV_HOLDERS];
};

/* The bytes that a call holds. One thread at a time. */
struct skv_hold {
	uint8_t address[SKV_ADDRESS_BYTES]; /* owner: skv_hold_address */
	const char *tenant;                 /* NULL or "": none; constant until the release */
	uint64_t tenant_max; /* bytes of the tenant's large calls; 0 = no limit of its own */
	uint64_t bytes;
	bool large;
	struct skv_holder *of_tenant, *of_address; /* NULL: none, or no memory for it */
};

void skv_holds_init(struct skv_holds *hs, const struct skv_hold_options *o);
/* Nothing is held. */
void skv_holds_destroy(struct skv_holds *hs);
/* The key of a peer: its IPv4 address, or the first half of its IPv6 address, since one host may
 * use any in it. */
void skv_hold_address(const struct sockaddr *from, uint8_t out[SKV_ADDRESS_BYTES]);

/* NULL: `n` more bytes are counted. Else why not, a static sentence for the client, and nothing
 * changed. Any thread. */
const char *skv_hold_add(struct skv_holds *hs, struct skv_hold *h, uint64_t n);
/* Counts `n` more bytes, regardless of limits. Any thread. */
void skv_hold_force(struct skv_holds *hs, struct skv_hold *h, uint64_t n);
/* NULL: the call may run. Else why not, as above: too much is held already, in total, by its
 * tenant, or by its address. `essential`: an operator's requests are refused only at a quarter
 * above the total limit. Any thread. */
const char *skv_hold_check(struct skv_holds *hs, const struct skv_hold *h, bool essential);
/* Bytes that a tenant's large calls hold. Any thread. */
uint64_t skv_hold_of_tenant(struct skv_holds *hs, const char *tenant);
/* Releases everything; the owner stays. Any thread. */
void skv_hold_release(struct skv_holds *hs, struct skv_hold *h);

#endif
