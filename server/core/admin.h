/*
 * admin.h - what the calls of administrators share (admin.c, admin_storage.c, admin_instance.c).
 *
 * The registry document is written first, then the part follows. Calls may block for store and file
 * system I/O; they run one at a time (the turn) and hold no lock while they block. The partition may be
 * loaded again at any moment between: what a call found before it blocked is looked up anew afterwards.
 */
#ifndef SKV_CORE_ADMIN_H
#define SKV_CORE_ADMIN_H

#include "internal.h"

/* Takes the turn and passes the gate; leave() gives the turn back and returns rc. */
int admin_enter(struct skv_core *c, struct skv_error *err);
int admin_leave(struct skv_core *c, int rc);

/* The part under the write lock; NULL with *rc set when there is none. */
struct part *admin_lock(struct skv_core *c, int *rc, struct skv_error *err);
/* The same after a write to the registry. NULL: the partition is being loaded and may have read the
 * registry before that write, so it is loaded once more; the call has succeeded all the same. */
struct part *admin_follow(struct skv_core *c);

/* The registry has changed and the part could not follow (memory): what is in memory is not the truth any
 * more, so the partition is loaded again. Returns rc. */
int admin_out_of_step(struct skv_core *c, int rc);
/* Result of a write to the registry: not knowing it means loading again. */
int admin_written(struct skv_core *c, int rc);

/* Watermarks of a storage or a group: SKV_OK, SKV_E_INVALID. */
int admin_check_marks(uint32_t high, uint32_t low, struct skv_error *err);

#endif
