/* erase.h - deletes single blocks: committed ones, and those that open sessions are writing. */
#ifndef SKV_CORE_OPS_ERASE_H
#define SKV_CORE_OPS_ERASE_H

#include <stdbool.h>
#include <stdint.h>

#include <model/partition.h>

struct block;
struct change;
struct partial;

/* Blocks that one call deletes together. Starts as zeros, but for `before`. */
struct erasure {
	uint64_t before; /* only slots of older generations: those of starts before the call */
	struct picks picks;
	struct partial *writes; /* NULL: none */
	bool busy; /* a record in flight decides about some: erase them again after it */
};

/* Marks the block: its committed slots are hidden, writes of it will not be published. SKV_E_NOMEM:
 * cancel. */
int erase_block(struct partition *p, struct erasure *e, struct block *b);
/* Queues what is marked. *last: the change to wait for, NULL = there is nothing to do. After it
 * everything in flight has ended, too, if `busy`. On failure nothing is marked any more. */
int erase_queue(struct partition *p, struct erasure *e, struct change **last);
void erase_cancel(struct partition *p, struct erasure *e);
/* Returns the number of writes of open sessions among the marked blocks. */
uint32_t erase_writes(const struct erasure *e);

#endif
