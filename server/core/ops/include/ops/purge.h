/* purge.h - all that an instance has, or is being written for it, is gone. */
#ifndef SKV_CORE_OPS_PURGE_H
#define SKV_CORE_OPS_PURGE_H

#include <stdbool.h>

struct change;
struct instance;
struct partition;

/* Clears the instance, or drops it, and its copies in a fast tier; ends its starts that wait for
 * room. *last: the change after which nothing from before the call can be found, or published; NULL
 * = that is so already. SKV_E_NOMEM: not all of it is done. Under the write lock. */
int purge_queue(struct partition *p, struct instance *inst, bool drop, struct change **last);

#endif
