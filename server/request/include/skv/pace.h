/*
 * pace.h - the minimum rate at which a peer sends its request and takes its answer.
 *
 * After each `after_ms` there must have come, or gone, so many bytes as the rate asks for that time. One thread each.
 */
#ifndef SKV_PACE_H
#define SKV_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct skv_pace_limit {
	uint64_t bytes_per_s; /* 0 = no bound */
	uint32_t after_ms;    /* > 0 */
};

/* Zeroed: nothing has been looked at yet. */
struct skv_pace {
	uint64_t since_ms; /* beginning of the time that is looked at */
	uint64_t bytes;    /* moved until then */
	bool begun;
};

/* When skv_pace_keeps has something to say: UINT64_MAX without a bound, 0 for a pace that has not begun. */
uint64_t skv_pace_due(const struct skv_pace *p, const struct skv_pace_limit *l);
/* `moved`: bytes that have moved in all. False: too few in the time that is over now. The first call begins. */
bool skv_pace_keeps(struct skv_pace *p, const struct skv_pace_limit *l, uint64_t now_ms, uint64_t moved);
/* What the kernel knows of a TCP connection: bytes that have come from the peer, and that it has acknowledged. False: it
 * does not tell. Any thread. */
bool skv_pace_socket(int fd, uint64_t *received, uint64_t *taken);

#endif
