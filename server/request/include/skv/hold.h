/*
 * hold.h - the memory that calls hold: bodies, what they decode to, answers until they are sent; and its bounds.
 *
 * A call that holds more than SKV_HOLD_SMALL bytes is large. Large calls leave a reserve to the small ones, and those of
 * one tenant or from one address leave something to others. Bodies are refused where they would pass a bound; what a
 * running call allocates is counted in any case, and then new calls are refused before they run.
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
	uint64_t one;            /* a call that holds no more than this passes no bound while nobody else holds anything */
	unsigned reserve_percent; /* of total: for small calls alone */
	unsigned tenant_percent;  /* of total: most of one tenant's large calls; 100 = no bound of its own */
	unsigned address_percent; /* the same of one address */
};

#define SKV_HOLDERS 256

struct skv_holds {
	uint64_t total, large, tenant, address; /* bounds */
	atomic_uint_fast64_t bytes;             /* of all calls */
	struct skv_mutex lock;
	uint64_t large_bytes;                        /* protected by lock */
	struct skv_holder *holders[SKV_HOLDERS];     /* protected by lock: tenants and addresses with large calls */
};

/* What one call holds. One thread at a time. */
struct skv_hold {
	uint8_t address[SKV_ADDRESS_BYTES]; /* whose: skv_hold_address */
	const char *tenant;                 /* NULL or "": nobody's; the same until the release */
	uint64_t bytes;
	bool large;
	struct skv_holder *of_tenant, *of_address; /* NULL: none, or no memory for it */
};

void skv_holds_init(struct skv_holds *hs, const struct skv_hold_options *o);
/* Nothing is held. */
void skv_holds_destroy(struct skv_holds *hs);
/* Whose a peer's calls are: its IPv4 address, or the first half of its IPv6 address, which is one host's to choose from. */
void skv_hold_address(const struct sockaddr *from, uint8_t out[SKV_ADDRESS_BYTES]);

/* NULL: `n` more bytes are counted. Else why not, a static sentence for the client, and nothing changed. Any thread. */
const char *skv_hold_add(struct skv_holds *hs, struct skv_hold *h, uint64_t n);
/* Counts `n` more bytes, whatever the bounds. Any thread. */
void skv_hold_force(struct skv_holds *hs, struct skv_hold *h, uint64_t n);
/* NULL: the call may run. Else why not, as above: too much is held already, by all, by its tenant, or by its address.
 * `essential`: what an operator looks at is refused only when all hold a quarter more than the bound. Any thread. */
const char *skv_hold_check(struct skv_holds *hs, const struct skv_hold *h, bool essential);
/* Nothing is held any more; whose it is stays. Any thread. */
void skv_hold_release(struct skv_holds *hs, struct skv_hold *h);

#endif
