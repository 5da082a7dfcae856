/*
 * restore.h - a store that went back in time is restored from this manager's memory.
 */
#ifndef SKV_CORE_RECOVERY_RESTORE_H
#define SKV_CORE_RECOVERY_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

struct partition;
struct skv_core;
struct skv_error;

/* What was owned until then, and is not trusted any more: kept until it is known that the store has
 * no less. Takes *p over (may be NULL). Owner thread, or whoever ends the core. */
void restore_keep(struct skv_core *c, struct partition *p, uint64_t until);
void restore_forget(struct skv_core *c);
/* It is kept, and nobody else can have owned it since. Any thread. */
bool restore_knows_all(const struct skv_core *c);
/* Has the store at least what this process knows to be durable? Then what was kept is forgotten;
 * c->rough: it may lack more, for the processes that acknowledged it are gone, and nobody here
 * knows better. SKV_E_CONFLICT: it went back. By the ticker. */
int restore_check(struct skv_core *c, struct skv_error *err);
/* It went back, and is owned by this fence: writes what this manager knows over it. Not SKV_OK: it
 * knows nothing, or others first get the time to do so. By the ticker. */
int restore_lost(struct skv_core *c, uint64_t fence, struct skv_error *err);
/* The registry may have gone back alone. Then it is written back, if this manager knows all of it;
 * else SKV_E_CONFLICT, and others get the time to do so. With --adopt it counts as it is. By the
 * ticker, of a partition that has not gone back, before it is loaded. */
int restore_registry(struct skv_core *c, uint64_t fence, struct skv_error *err);
/* Does it go back while the partition is owned? Then that is loaded again. By one thread. */
void restore_look(struct skv_core *c);
/* Whether the store was restored since it was loaded last: *version is that of the document that
 * says so, for restore_done (SKV_VERSION_NONE: there is none); c->rough is set. By
 * the ticker. */
int restore_found(struct skv_core *c, uint64_t *version, struct skv_error *err);
/* It is loaded. */
int restore_done(struct skv_core *c, uint64_t fence, uint64_t version, struct skv_error *err);

#endif
