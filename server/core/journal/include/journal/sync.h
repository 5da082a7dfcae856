/*
 * sync.h - syncs behind the committer: of what was appended without one (NORMAL durability, relaxed changes).
 */
#ifndef SKV_CORE_JOURNAL_SYNC_H
#define SKV_CORE_JOURNAL_SYNC_H

#include <stdbool.h>

struct change;
struct skv_core;

#define SYNC_BEHIND_MS 50u /* what was appended without a sync gets one after this */

int sync_start_thread(struct skv_core *c);
void sync_stop_thread(struct skv_core *c);
/* Something was appended without a sync; or with one, which covers all before it. */
void sync_is_behind(struct skv_core *c);
void sync_covers_all(struct skv_core *c);
/* Its apply waits for a sync. */
void sync_defer(struct skv_core *c, struct change *ch);
/* `hurry`: somebody waits for slots. */
bool sync_is_due(const struct skv_core *c, bool hurry);
/* Has the thread sync (manual: does it here). */
bool sync_ask(struct skv_core *c);
/* Syncs here. False: it has failed, and the partition is stopped. */
bool sync_now(struct skv_core *c);
/* Takes in what the thread has done, if it has: true, unless it has failed. */
bool sync_collect(struct skv_core *c);
/* What is applied that a sync covers: a portion of them, in between others have the lock; or all. No lock held. */
void sync_apply(struct skv_core *c, bool all);
/* Under the write lock, when no round runs: what waited for a sync is forgotten with the partition. */
void sync_forget(struct skv_core *c, int status);

#endif
