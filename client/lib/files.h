/*
 * files.h - cache of open slab files, each verified by its superblock.
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

#define SKV_FILES_KEPT 512 /* unused descriptors kept open */

struct skv_slab_file {
	uint8_t uuid[16];
	char path[SKV_SLAB_PATH_MAX];
	bool write;
	struct skv_engine_file *file;
	struct skv_superblock sb;
	uint32_t refs;               /* skv_files.lock */
	bool forgotten;              /* skv_files.lock: removed from the list */
	uint64_t looked_ms;          /* skv_files.lock: when its name was last looked for */
	struct skv_slab_file *next;  /* skv_files.lock; most recently used first */
};

struct skv_files_cache;

/* `engine` and `mounts` are borrowed. */
int skv_files_create(struct skv_engine *engine, struct skv_mounts *mounts,
		     struct skv_files_cache **out, struct skv_error *err);
void skv_files_destroy(struct skv_files_cache *c);

/* Returns the file with a reference if it is open and still valid, else NULL. */
struct skv_slab_file *skv_files_find(struct skv_files_cache *c, const uint8_t uuid[16],
				     const char *path, bool write);
/* Opens and verifies `path` below `mount`. SKV_E_INVALID (not the name of a slab file),
 * SKV_E_FOREIGN, SKV_E_CORRUPT, SKV_E_UNAVAILABLE, SKV_E_IO, SKV_E_NOMEM. */
int skv_files_open(struct skv_files_cache *c, struct skv_mount *mount, const char *path, bool write,
		   struct skv_slab_file **out, struct skv_error *err);
void skv_files_release(struct skv_files_cache *c, struct skv_slab_file *f);
/* After a short or failed read: reopen and verify it at the next call. The caller holds it. */
void skv_files_forget(struct skv_files_cache *c, struct skv_slab_file *f);

/* Returns true if [offset, offset + length) is within the range of slots. */
bool skv_files_in_bounds(const struct skv_slab_file *f, uint64_t offset, uint64_t length);

#endif
