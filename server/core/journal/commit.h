/*
 * commit.h - what the committer (commit.c), its syncs (sync.c) and the snapshot that it begins (snapshot.c) call of each other.
 */
#ifndef SKV_CORE_COMMIT_H
#define SKV_CORE_COMMIT_H

#include "journal.h"

/* Under the write lock: the late half, then its waiters. */
void commit_apply(struct skv_core *c, struct change *ch);
/* Completes those who wait for it; `fill`: with what it has come to. */
void commit_complete(struct skv_core *c, struct change *ch, int status, bool fill);
/* Under the write lock: what is in memory is no longer the truth: everybody is refused until it is loaded again. `batch`
 * (may be NULL) and all that is queued fail. */
void commit_stop_part(struct skv_core *c, struct change *batch, int status);

/* ---- sync.c ------------------------------------------------------------------------------------------- */

#define SYNC_BEHIND_MS 50u /* what was appended without a sync gets one after this */

int sync_start_thread(struct skv_core *c);
void sync_stop_thread(struct skv_core *c);
/* Something was appended without a sync; or with one, which covers all before it. */
void sync_is_behind(struct skv_core *c);
void sync_covers_all(struct skv_core *c);
/* Its late half waits for a sync. */
void sync_defer(struct skv_core *c, struct change *ch);
/* `hurry`: somebody waits for slots. */
bool sync_is_due(const struct skv_core *c, bool hurry);
/* Has the thread sync (manual: does it here). */
bool sync_ask(struct skv_core *c);
/* Syncs here. False: it has failed, and the part is stopped. */
bool sync_now(struct skv_core *c);
/* Takes in what the thread has done, if it has: true, unless it has failed. */
bool sync_collect(struct skv_core *c);
/* Late halves that a sync covers: a portion of them, in between others have the lock; or all. No lock held. */
void sync_apply(struct skv_core *c, bool all);

/* ---- snapshot.c --------------------------------------------------------------------------------------- */

/* Under the write lock, by the committer between two batches. */
void snapshot_begin(struct partition *p, uint64_t barrier);

#endif
