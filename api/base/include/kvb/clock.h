/*
 * clock.h - time. Durations and deadlines run on CLOCK_BOOTTIME (monotonic, counts suspend);
 * wall time is for people only (create_time, logs).
 *
 * Code that decides on time takes a `const struct kvb_clock *`, so that tests turn it by hand.
 */
#ifndef KVB_CLOCK_H
#define KVB_CLOCK_H

#include <stdint.h>

struct kvb_clock {
	/* Milliseconds since boot. Any thread. */
	uint64_t (*now_ms)(void *self);
	/* Milliseconds since 1970 UTC. Any thread. */
	uint64_t (*wall_ms)(void *self);
	void *self;
};

extern const struct kvb_clock kvb_clock_system;

static inline uint64_t kvb_now_ms(const struct kvb_clock *c) { return c->now_ms(c->self); }
static inline uint64_t kvb_wall_ms(const struct kvb_clock *c) { return c->wall_ms(c->self); }

/* Microseconds for latency measurement (CLOCK_MONOTONIC). */
uint64_t kvb_now_us(void);

/* Identity of this boot of this machine (/proc/sys/kernel/random/boot_id, 36 characters). All zeros
 * if the kernel does not tell. `out` holds 37 bytes. */
void kvb_boot_id(char out[37]);

/* A clock turned by hand, for tests. */
struct kvb_fake_clock {
	_Atomic uint64_t now;
	struct kvb_clock clock;
};
void kvb_fake_clock_init(struct kvb_fake_clock *f, uint64_t start_ms);
void kvb_fake_clock_advance(struct kvb_fake_clock *f, uint64_t ms);

#endif
