/*
 * sqlite.c - the SQLite store as a whole: its table of calls and its promises.
 *
 * Two database files, each with its own write-ahead log (WAL):
 *
 *   <path>             registry, owner, journal, checkpoint (one head row a partition)
 *   <path>-checkpoint  slice: the bytes of checkpoints
 *   <path>-reserve     space given up when an urgent append meets a full disk
 *
 * Slices lie apart so that writing a checkpoint never holds the main file's write lock. A crash
 * between the two is harmless by order: slices are synced before the head row that names them is
 * committed (that commit also makes the journal rows up to it dead), and they are deleted only
 * after a synced head has left them. Slices that no head names are waste, deleted by housekeeping;
 * a checkpoint's id is never used twice, so a late writer that lost its partition can only write
 * waste.
 *
 * FULL: a commit syncs the WAL before it is seen or acknowledged. NORMAL, and with
 * SKV_APPEND_LATER: appends are written to the WAL without a sync (they survive kill -9), and
 * skv_store_sync, or a commit with one, syncs the WAL. All else but housekeeping commits with a
 * sync in both modes. A WAL is only reused after its pages are synced in the database file, so
 * the journal that power loss leaves is always a prefix; after a sync that failed it is not
 * reused at all by that process.
 *
 * What it cannot do: a process that is stopped inside a commit keeps SQLite's write lock until it
 * goes on or dies; others open and read meanwhile, and their writes fail after BUSY_MS with nothing
 * changed.
 *
 * Threads and locks: sqlite_store.h.
 */
#include "sqlite_store.h"

const struct skv_store_ops skv_store_sqlite = {
	.size = sizeof skv_store_sqlite,
	.name = "sqlite",
	.open = sqlite_store_open,
	.close = sqlite_store_close,
	.get = sqlite_get,
	.put = sqlite_put,
	.del = sqlite_del,
	.list = sqlite_list,
	.acquire = sqlite_acquire,
	.renew = sqlite_renew,
	.release = sqlite_release,
	.append = sqlite_append,
	.sync = sqlite_sync,
	.checkpoint_begin = sqlite_checkpoint_begin,
	.checkpoint_slice = sqlite_checkpoint_slice,
	.checkpoint_commit = sqlite_checkpoint_commit,
	.checkpoint_abort = sqlite_checkpoint_abort,
	.load = sqlite_load,
	.follow = sqlite_follow,
	.renewed = sqlite_renewed,
	.stats = sqlite_stats,
};
