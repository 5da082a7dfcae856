/*
 * admin.h - helpers of the administrative calls (admin.c, storage.c, instance.c, files.c).
 *
 * The registry document is written first, then the partition in memory is changed. Calls may block
 * on store and file system I/O; they run one at a time (the turn) and hold no lock while they
 * block. The partition may be reloaded at any moment in between, so whatever was found before
 * blocking is looked up again afterwards. Writes carry the fence that was current when the turn
 * began (turn_fence): after a demotion or a reload they change nothing.
 */
#ifndef SKV_CORE_ADMIN_ADMIN_H
#define SKV_CORE_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/core.h>
#include <skv/lock.h>

#include <lock/core.h>

struct partition;
struct skv_storage_spec;
struct skv_error;

/* instance.c: skv_cluster_instance_delete. `wait`: for the turn; else SKV_E_TIMEOUT if somebody has
 * it. */
int instance_end(struct skv_core *c, const char *tenant, const char *id,
		 const struct skv_unused *unused, bool wait, struct skv_error *err);

/* As admin_enter, but SKV_E_TIMEOUT where that would wait. */
int admin_try(struct skv_core *c, struct skv_error *err);
/* instance.c: waits for a journaled change; only on threads that may block. */
struct latch {
	struct skv_mutex lock;
	struct skv_cond cond;
	bool over;
	int status;
};
void latch_init(struct latch *l);
void latch_destroy(struct latch *l);
void latch_open(void *ctx, int status); /* of a struct skv_done; ctx: the latch */
int latch_wait(struct skv_core *c, struct latch *l);

/* Takes the turn and checks the gate; leave() gives the turn back and returns rc. */
int admin_enter(struct skv_core *c, struct skv_error *err);
int admin_leave(struct skv_core *c, int rc);

/* The partition as of the beginning of the turn, under the write lock; NULL with *rc set if it has
 * been replaced. */
struct partition *admin_lock(struct skv_core *c, int *rc, struct skv_error *err)
	SKV_TRY_ACQUIRES(true, c->lock);
/* The same after a write to the registry. NULL: the partition is being reloaded; since that starts
 * with a new fence it will read what was written, so the call has succeeded anyway. */
struct partition *admin_follow(struct skv_core *c) SKV_TRY_ACQUIRES(true, c->lock);

/* The registry has changed but memory could not follow (out of memory): has the partition reloaded.
 * Returns rc. */
int admin_out_of_step(struct skv_core *c, int rc);
/* Result of a write to the registry. An unknown outcome, or a version that the partition does not
 * know, causes a reload. */
int admin_written(struct skv_core *c, int rc);

/* Checks the put against the object's existence: SKV_E_CONFLICT, SKV_E_NOT_FOUND, with `field`. */
int admin_check_put(enum skv_put how, bool exists, const char *what, const char *field,
		    const char *name, struct skv_error *err);

/* node.c: has a storage of type memory exactly one node? SKV_E_INVALID. */
int admin_check_node(const struct skv_storage_spec *s, struct skv_error *err);
/* Checks that no other storage has a node of that name. SKV_E_CONFLICT. */
int admin_check_node_free(const struct partition *p, const struct skv_storage_spec *s,
			  struct skv_error *err);
/* Checks the watermarks of a storage or group: SKV_OK, SKV_E_INVALID. */
int admin_check_marks(uint32_t high, uint32_t low, struct skv_error *err);

#endif
