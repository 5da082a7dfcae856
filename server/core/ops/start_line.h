/* start_line.h - starts that wait for room, in the queue of their group. Under the write lock. */
#ifndef SKV_CORE_OPS_START_LINE_H
#define SKV_CORE_OPS_START_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/hash.h>

#include <journal/change.h>

struct group;
struct partition;

struct start_op {
	struct waiter w; /* req, res, arena, err, done */
	struct start_op *next;
	struct skv_key request;
	struct skv_key body;
	uint64_t since;
	bool own; /* waits for its tenant's own blocks to go: others need not wait behind it */
};

void start_join_line(struct partition *p, struct group *g, struct start_op *op);
/* Removes the start after `before` from the queue; NULL: the first. */
struct start_op *start_leave_line(struct partition *p, struct group *g, struct start_op *before);

#endif
