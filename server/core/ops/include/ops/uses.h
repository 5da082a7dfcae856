/*
 * uses.h - reports recently used blocks to followers of the journal (uses.c).
 */
#ifndef SKV_CORE_OPS_USES_H
#define SKV_CORE_OPS_USES_H

#include <stdint.h>

struct change_ops;
struct partition;

extern const struct change_ops uses_ops;

/* The ticker's, under the read lock: notes the next blocks that were used since it last came by. */
void uses_look(struct partition *p, uint64_t now);
/* Queues a record of recent uses, once a second, or when many are noted. Ticker only. */
void uses_tell(struct partition *p, uint64_t now);

#endif
