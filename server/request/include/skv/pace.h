/*
 * pace.h - minimum rate at which a peer must send its request and read its answer.
 *
 * Checked every `after_ms`: the rate's worth of bytes must have moved. One thread each.
 */
#ifndef SKV_PACE_H
#define SKV_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct skv_pace_limit {
	uint64_t bytes_per_s; /* 0 = no bound */
	uint32_t after_ms;    /* > 0 */
};

/* Zeroed: not started. */
struct skv_pace {
	uint64_t since_ms; /* start of the current interval */
	uint64_t bytes;    /* moved until then */
	bool begun;
};

/* When to call skv_pace_keeps: UINT64_MAX without a limit, 0 if not started. */
uint64_t skv_pace_due(const struct skv_pace *p, const struct skv_pace_limit *l);
/* `moved`: total bytes moved. False: too few in the interval that has ended. The first call
 * starts. */
bool skv_pace_keeps(struct skv_pace *p, const struct skv_pace_limit *l, uint64_t now_ms,
		    uint64_t moved);
/* The kernel's counters of a TCP connection: bytes received from the peer, and acknowledged by it.
 * False: unavailable. Any thread. */
bool skv_pace_socket(int fd, uint64_t *received, uint64_t *taken);

#endif
