/*
 * admin.h - what the calls of administrators share (admin.c, storage.c, instance.c, files.c).
 *
 * The registry document is written first, then the partition follows. Calls may block for store and file
 * system I/O; they run one at a time (the turn) and hold no lock while they block. The partition may be
 * loaded again at any moment between: what a call found before it blocked is looked up anew afterwards. What it writes
 * bears the fence that was there when its turn began (turn_fence), so after a demotion or a reload it writes nothing more.
 */
#ifndef SKV_CORE_ADMIN_ADMIN_H
#define SKV_CORE_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

struct partition;
struct skv_core;
struct skv_error;

/* Takes the turn and passes the gate; leave() gives the turn back and returns rc. */
int admin_enter(struct skv_core *c, struct skv_error *err);
int admin_leave(struct skv_core *c, int rc);

/* The partition that the turn began with, under the write lock; NULL with *rc set when it is gone. */
struct partition *admin_lock(struct skv_core *c, int *rc, struct skv_error *err);
/* The same after a write to the registry. NULL: the partition is loaded again, and as that begins with a new fence, it
 * reads what was written before; the call has succeeded all the same. */
struct partition *admin_follow(struct skv_core *c);

/* The registry has changed and the partition could not follow (memory): what is in memory is not the truth any
 * more, so the partition is loaded again. Returns rc. */
int admin_out_of_step(struct skv_core *c, int rc);
/* Result of a write to the registry: not knowing it means loading again, and so does that something else was there than
 * the partition knows. */
int admin_written(struct skv_core *c, int rc);

/* Which objects a put is for. */
enum admin_put { PUT_ANY, PUT_NEW, PUT_THERE };
/* Is one that exists, or does not, meant? SKV_E_CONFLICT, SKV_E_NOT_FOUND, with `field`. */
int admin_check_put(enum admin_put how, bool exists, const char *what, const char *field, const char *name,
		    struct skv_error *err);

/* Watermarks of a storage or a group: SKV_OK, SKV_E_INVALID. */
int admin_check_marks(uint32_t high, uint32_t low, struct skv_error *err);

#endif
