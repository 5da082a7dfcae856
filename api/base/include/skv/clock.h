/*
 * clock.h - time. Durations and deadlines use CLOCK_BOOTTIME (monotonic, counts suspend); wall time
 * is only for display (create_time, logs).
 *
 * Code that decides by time takes a `const struct skv_clock *`, so that tests can set it.
 */
#ifndef SKV_CLOCK_H
#define SKV_CLOCK_H

#include <stdint.h>

struct skv_clock {
	/* Milliseconds since boot. Any thread. */
	uint64_t (*now_ms)(void *self);
	/* Milliseconds since 1970 UTC. Any thread. */
	uint64_t (*wall_ms)(void *self);
	void *self;
};

extern const struct skv_clock skv_clock_system;

static inline uint64_t skv_now_ms(const struct skv_clock *c) { return c->now_ms(c->self); }
static inline uint64_t skv_wall_ms(const struct skv_clock *c) { return c->wall_ms(c->self); }

/* Microseconds for latency measurement (CLOCK_MONOTONIC). */
uint64_t skv_now_us(void);

/* Identity of this boot of this machine (/proc/sys/kernel/random/boot_id, 36 characters). All zeros
 * if the kernel does not have it. `out` has 37 bytes. */
void skv_boot_id(char out[37]);

/* A manual clock, for tests. */
struct skv_fake_clock {
	_Atomic uint64_t now;
	struct skv_clock clock;
};
void skv_fake_clock_init(struct skv_fake_clock *f, uint64_t start_ms);
void skv_fake_clock_advance(struct skv_fake_clock *f, uint64_t ms);

#endif
