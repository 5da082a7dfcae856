/*
 * files.h - open slab files, proved by their superblock, kept for the next call.
 *
 * A file name that the manager tells is used only if it is exactly the name of a slab file; the
 * file is opened below the mount's directory without following links, and its superblock must name
 * this storage, this file and this length. Any thread; one mutex inside, never held across file
 * I/O.
 */
#ifndef SKV_CLIENT_FILES_H
#define SKV_CLIENT_FILES_H

#include <skv/ops.h>
#include <skv/superblock.h>

#include "engine.h"
#include "mount.h"

#define SKV_FILES_KEPT 512 /* descriptors that stay open without being in use */

struct skv_slab_file {
	uint8_t uuid[16];
	char path[SKV_SLAB_PATH_MAX];
	bool write;
	struct skv_engine_file *file;
	struct skv_superblock sb;
	uint32_t refs;               /* skv_files.lock */
	bool forgotten;              /* skv_files.lock: not in the list any more */
	struct skv_slab_file *next;  /* skv_files.lock; most recently used first */
};

struct skv_files_cache;

/* `engine` and `mounts` stay the caller's. */
int skv_files_create(struct skv_engine *engine, struct skv_mounts *mounts,
		     struct skv_files_cache **out, struct skv_error *err);
void skv_files_destroy(struct skv_files_cache *c);

/* Already open and still good? With a reference, else NULL. */
struct skv_slab_file *skv_files_find(struct skv_files_cache *c, const uint8_t uuid[16],
				     const char *path, bool write);
/* Opens and proves `path` below `mount`. SKV_E_INVALID (not the name of a slab file),
 * SKV_E_FOREIGN, SKV_E_CORRUPT, SKV_E_UNAVAILABLE, SKV_E_IO, SKV_E_NOMEM. */
int skv_files_open(struct skv_files_cache *c, struct skv_mount *mount, const char *path, bool write,
		   struct skv_slab_file **out, struct skv_error *err);
void skv_files_release(struct skv_files_cache *c, struct skv_slab_file *f);
/* A read came short or failed: open and prove it anew at the next call. */
void skv_files_forget(struct skv_files_cache *c, struct skv_slab_file *f);

/* Does [offset, offset + length) lie where slots may lie? */
bool skv_files_in_bounds(const struct skv_slab_file *f, uint64_t offset, uint64_t length);

#endif
