/*
 * file.h - shared by the parts of the `file` storage: root.c (the directory), probe.c and slab.c
 * (files in it), owner.c (owner files), file.c (the table of functions). Private to the component.
 */
#ifndef SKV_STORAGE_FILE_H
#define SKV_STORAGE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <skv/lock.h>
#include <skv/storage.h>
#include <skv/superblock.h>

/* Memory that a superblock is read into, also past the page cache. */
#define SUPERBLOCK_BYTES(name) \
	uint8_t name[SKV_SUPERBLOCK_SIZE] __attribute__((aligned(SKV_SUPERBLOCK_SIZE)))

#define FILE_EDGE SKV_SUPERBLOCK_SIZE /* the superblock, and at the end its bytes again */

/* An opened storage. Nothing of the file system is kept open between calls: each call opens the
 * root by its path and proves it by the marker. So every call detects an unmounted or replaced
 * root, a mount that comes back is used again by itself, and unmounting is not blocked by us. */
struct file_storage {
	char *name;
	char *root;
	int below; /* the directory that root is one component of; -1 = root is a whole path */
	uint8_t uuid[16];
	uint64_t unit;
	/* Type hf3fs: files are given their length only, there is no allocation in advance. */
	bool chunked;
	bool any_mount; /* accept a root that is not on 3FS */
	uint64_t chunk; /* 0 = none, or (chunked, until the root is claimed) to be read */
	uint64_t edge;  /* header and trailer of a slab file, each: the chunk, or FILE_EDGE */
	struct skv_mutex lock; /* protects the following members; no I/O under it */
	dev_t dev; /* where the root was last seen, to tell of a change; ino 0 = never */
	ino_t ino;
	struct stat marker; /* as it was when its bytes were found good; st_ino 0: not yet */
	unsigned write_turn; /* of the next probe that writes */
	unsigned read_turn;  /* of the next one that reads: 0 the marker, else a probe file */
};

/* root.c */

/* Makes the root and its marker where they are missing. SKV_E_FOREIGN: the directory holds other
 * things and no marker. A marker that is there already is left to skv_root_enter to judge. */
int skv_root_claim(struct file_storage *s, struct skv_error *err);
/* Opens the root and finds its chunk size out, where it has none yet: before it is claimed.
 * SKV_E_UNAVAILABLE, SKV_E_INVALID (one that no slab file can have). */
int skv_root_measure(struct file_storage *s, struct skv_error *err);
/* Opens the root and checks its marker, whose bytes are read only if it has changed: they may lie
 * on a storage node that hangs. The caller closes *dir. */
int skv_root_enter(struct file_storage *s, int *dir, struct skv_error *err);
/* The same, and reads the marker in any case. */
int skv_root_prove(struct file_storage *s, int *dir, struct skv_error *err);
/* Takes marker and probe files out of the entered root. SKV_E_IN_USE: it holds more than these. */
int skv_root_leave(const struct file_storage *s, int dir, struct skv_error *err);
/* The name of the n-th of the SKV_PROBE_FILES small files that are written and read to see whether
 * that works. */
#define SKV_PROBE_FILES 4u
#define SKV_PROBE_NAME 16u
const char *skv_root_probe_name(unsigned n, char out[SKV_PROBE_NAME]);
/* Makes SKV_STORAGE_LINK where it is missing. 0 or an errno; EEXIST: something else has its
 * name. */
int skv_root_make_link(int dir);
/* Opens a file in the entered root for reading. 0 or an errno, as skv_fs_open. */
int skv_root_open(const struct file_storage *s, int dir, const char *name, int *fd);
/* Reads and decodes the superblock at `at`; texts name `name`. *raw (SUPERBLOCK_BYTES) gets the
 * bytes. SKV_E_CORRUPT when the file ends before it. */
int skv_superblock_read(int fd, uint64_t at, const char *name, uint8_t raw[SKV_SUPERBLOCK_SIZE],
			struct skv_superblock *out, struct skv_error *err);

/* probe.c */

/* A small synced write inside the root, and its link, where that is missing. SKV_E_NO_SPACE when it
 * failed for lack of room only. Chunked storages have several files for it, used in `turn`. */
int skv_probe_write(const struct file_storage *s, int dir, unsigned turn, struct skv_error *err);
/* Enters the root and reads a small file: the marker, or another of chunked storages. */
int skv_probe_read(struct file_storage *s, int *dir, struct skv_error *err);

/* slab.c: the members of skv_storage_file with the same names; `dir` is the entered root */

int skv_slab_create(const struct file_storage *s, int dir, uint32_t file, uint64_t length,
		    struct skv_error *err);
int skv_slab_check(const struct file_storage *s, int dir, uint32_t file, uint64_t length,
		   struct skv_error *err);
int skv_slab_mend(const struct file_storage *s, int dir, uint32_t file, uint64_t length,
		  struct skv_error *err);
/* Every range lies on chunks between header and trailer. */
int skv_slab_punch(const struct file_storage *s, int dir, uint32_t file, uint64_t length,
		   const struct skv_storage_range *v, uint32_t n, struct skv_error *err);
/* Returns true if the directory holds a whole slab file of this very storage. */
bool skv_slab_proves(const struct file_storage *s, int dir);
/* The number in a name of skv_slab_path; false: it is not such a name. */
bool skv_slab_number(const char *name, uint32_t *file);
int skv_slab_remove(const struct file_storage *s, int dir, uint32_t file, struct skv_error *err);

/* owner.c: the members of skv_storage_file with the same names; `dir` is the entered root */

int skv_owner_list(const struct file_storage *s, int dir, const struct skv_storage_owner *mine,
		   struct skv_storage_owner v[SKV_STORAGE_OWNERS], uint32_t *n,
		   struct skv_error *err);
int skv_owner_claim(const struct file_storage *s, int dir, const struct skv_storage_owner *o,
		    struct skv_error *err);
int skv_owner_disown(const struct file_storage *s, int dir, const struct skv_storage_owner *o,
		     struct skv_error *err);

#endif
