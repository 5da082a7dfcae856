/*
 * journal.h - the committer of a core, and the snapshot that it begins. What is queued is in change.h, what is written in
 * record.h, how it comes back in replay.h.
 */
#ifndef SKV_CORE_JOURNAL_H
#define SKV_CORE_JOURNAL_H

#include "change.h"

void commit_init(struct skv_core *c);
void commit_destroy(struct skv_core *c);
int commit_start_thread(struct skv_core *c);
void commit_stop_thread(struct skv_core *c);
/* One round: appends what is queued, applies it, begins a wanted snapshot. True if it did anything. */
bool commit_round(struct skv_core *c);
/* Under the write lock: fails everything queued; in-flight work is failed by its round. */
void commit_drain(struct skv_core *c, int status);
/* Waits until no round runs. No lock held. */
void commit_wait_idle(struct skv_core *c);
/* Has the committer begin a snapshot (threads), or begins it here (manual). */
void commit_ask_snapshot(struct skv_core *c);
uint64_t commit_appended(struct skv_core *c);
/* Under the write lock, when no round runs: what waited for a sync is forgotten with the part. */
void sync_forget(struct skv_core *c, int status);

/* ---- snapshot.c --------------------------------------------------------------------------------------- */

void snapshot_abort(struct partition *p);
void snapshot_end(struct partition *p);

#endif
