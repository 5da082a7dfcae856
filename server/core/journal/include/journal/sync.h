/* sync.h - deferred syncs of records appended without one (NORMAL durability, relaxed changes). */
#ifndef SKV_CORE_JOURNAL_SYNC_H
#define SKV_CORE_JOURNAL_SYNC_H

#include <stdbool.h>

struct change;
struct skv_core;

#define SYNC_BEHIND_MS 50u /* delay of the sync after an append without one */

int sync_start_thread(struct skv_core *c);
void sync_stop_thread(struct skv_core *c);
/* Something was appended without a sync; or with one, which covers everything before it. */
void sync_is_behind(struct skv_core *c);
void sync_covers_all(struct skv_core *c);
/* The change's apply waits for a sync. */
void sync_defer(struct skv_core *c, struct change *ch);
/* `hurry`: a start waits for slots. */
bool sync_is_due(const struct skv_core *c, bool hurry);
/* Requests a sync from the thread (manual mode: syncs here). */
bool sync_ask(struct skv_core *c);
/* Syncs here. False: it failed, and the partition is stopped. */
bool sync_now(struct skv_core *c);
/* Collects a finished sync of the thread, if any. False: it failed. */
bool sync_collect(struct skv_core *c);
/* Applies the changes that a sync covers: a portion, releasing the lock between portions; or all.
 * No lock held. */
void sync_apply(struct skv_core *c, bool all);
/* Under the write lock, while no round runs: drops what waited for a sync, together with the
 * partition. */
void sync_forget(struct skv_core *c, int status);

#endif
