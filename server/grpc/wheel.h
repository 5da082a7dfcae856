/* wheel.h - timers of one event thread: set and cleared in constant time, late by 8 ms at most. */
#ifndef SKV_GRPC_WHEEL_H
#define SKV_GRPC_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define WHEEL_SLOTS 256
#define WHEEL_MS 8

/* Part of what it belongs to. Zero-initialised: not set. */
struct timer {
	struct timer *prev;
	struct timer *next; /* NULL: not set */
	uint64_t at_ms;
	void (*fire)(struct timer *t, uint64_t now_ms);
};

struct wheel {
	struct timer slot[WHEEL_SLOTS]; /* rings */
	uint64_t done;                  /* the last tick that was handled */
	uint32_t n;                     /* timers that are set */
};

void skv_wheel_init(struct wheel *w, uint64_t now_ms);
/* t->fire is set. Moves a timer that is set already. */
void skv_wheel_set(struct wheel *w, struct timer *t, uint64_t at_ms);
void skv_wheel_clear(struct wheel *w, struct timer *t);
/* Fires what is due; timers may be set and cleared meanwhile. */
void skv_wheel_run(struct wheel *w, uint64_t now_ms);
/* Milliseconds until skv_wheel_run may have something to do; -1: nothing is set. */
int skv_wheel_wait(const struct wheel *w, uint64_t now_ms);

#endif
