/*
 * powerloss_vfs.h - a SQLite VFS named "powerloss" that remembers what a disk would still have.
 *
 * It passes everything through to SQLite's unix VFS, so processes and connections share files as
 * ever, and keeps for each database, log and journal file an image of what was synced. After the
 * power is cut every call fails; powerloss_apply then rewrites the files to what the disk held.
 * Syncs are not passed on: only the image counts, and tests are fast.
 *
 * Model: a write that was not synced may be lost, or any of its 512-byte sectors may; a sync of a
 * file saves all of that file; creating and deleting a file are durable at once (SQLite syncs the
 * folder where that matters). Open stores with skv_store_options.vfs = POWERLOSS_VFS.
 *
 * Any thread may use the files; the functions below are for the one that directs the test. One
 * world per process.
 */
#ifndef POWERLOSS_VFS_H
#define POWERLOSS_VFS_H

#include <stdbool.h>
#include <stdint.h>

#define POWERLOSS_VFS "powerloss"

enum powerloss_kind {
	POWERLOSS_DROP_ALL,  /* nothing that was not synced is left */
	POWERLOSS_DROP_SOME, /* of what was not synced, random sectors are left: torn writes */
};

/* Registers the VFS (the first time), turns the power on and forgets all files. No store may be
 * open. */
void powerloss_reset(void);
/* The n-th step from now on (1 = the next) and everything after it fails; 0 = no cut. A step is a
 * write, a sync, a truncation or a deletion. */
void powerloss_cut_at(uint64_t n);
/* Steps since the last powerloss_reset or powerloss_cut_at. */
uint64_t powerloss_steps(void);
bool powerloss_is_cut(void);
/* The n-th sync from now on fails once and saves nothing, while the power stays on; 0 = none. */
void powerloss_fail_sync_at(uint64_t n);
/* Called by each sync, before it, without a lock: the file and about how many bytes of it were
 * written since its last one. False: the sync fails, and what it should have saved is
 * forgotten, as Linux does it: a later sync succeeds and saves nothing of it. NULL = none. Set
 * it while no store is open. */
typedef bool (*powerloss_sync_fn)(void *ctx, const char *path, int64_t unsynced);
void powerloss_on_sync(powerloss_sync_fn fn, void *ctx);
/* Writes the disk's content back into the files and turns the power on again. No store may be open.
 */
void powerloss_apply(enum powerloss_kind kind, uint64_t seed);

#endif
