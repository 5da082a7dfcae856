/*
 * files.h - open slab files, proved by their superblock, kept for the next call.
 *
 * A file name that the manager tells is used only if it is exactly the name of a slab file; the
 * file is opened below the mount's directory without following links, and its superblock must name
 * this storage, this file and this length. Any thread; one mutex inside, never held across file
 * I/O.
 */
#ifndef KVB_CLIENT_FILES_H
#define KVB_CLIENT_FILES_H

#include <kvb/ops.h>
#include <kvb/superblock.h>

#include "engine.h"
#include "mount.h"

#define KVB_FILES_KEPT 512 /* descriptors that stay open without being in use */

struct kvb_slab_file {
	uint8_t uuid[16];
	char path[KVB_SLAB_PATH_MAX];
	bool write;
	struct kvb_engine_file *file;
	struct kvb_superblock sb;
	uint32_t refs;               /* kvb_files.lock */
	bool forgotten;              /* kvb_files.lock: not in the list any more */
	struct kvb_slab_file *next;  /* kvb_files.lock; most recently used first */
};

struct kvb_files_cache;

/* `engine` and `mounts` stay the caller's. */
int kvb_files_create(struct kvb_engine *engine, struct kvb_mounts *mounts,
		     struct kvb_files_cache **out, struct kvb_error *err);
void kvb_files_destroy(struct kvb_files_cache *c);

/* Already open and still good? With a reference, else NULL. */
struct kvb_slab_file *kvb_files_find(struct kvb_files_cache *c, const uint8_t uuid[16],
				     const char *path, bool write);
/* Opens and proves `path` below `mount`. KVB_E_INVALID (not the name of a slab file),
 * KVB_E_FOREIGN, KVB_E_CORRUPT, KVB_E_UNAVAILABLE, KVB_E_IO, KVB_E_NOMEM. */
int kvb_files_open(struct kvb_files_cache *c, struct kvb_mount *mount, const char *path, bool write,
		   struct kvb_slab_file **out, struct kvb_error *err);
void kvb_files_release(struct kvb_files_cache *c, struct kvb_slab_file *f);
/* A read came short or failed: open and prove it anew at the next call. */
void kvb_files_forget(struct kvb_files_cache *c, struct kvb_slab_file *f);

/* Does [offset, offset + length) lie where slots may lie? */
bool kvb_files_in_bounds(const struct kvb_slab_file *f, uint64_t offset, uint64_t length);

#endif
