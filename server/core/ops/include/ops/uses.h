/*
 * uses.h - which blocks were used lately, told to whoever follows the journal (uses.c).
 */
#ifndef SKV_CORE_OPS_USES_H
#define SKV_CORE_OPS_USES_H

#include <stdint.h>

struct change_ops;
struct partition;

extern const struct change_ops uses_ops;

/* The ticker's, under the read lock: notes the next blocks that were used since it last came by. */
void uses_look(struct partition *p, uint64_t now);
/* The ticker's: queues a record of those, once a second, or when there are many. */
void uses_tell(struct partition *p, uint64_t now);

#endif
