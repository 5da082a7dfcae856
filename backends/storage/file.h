/*
 * file.h - what the parts of the `file` storage share: root.c (the directory), slab.c (the files in
 * it), file.c (the table of functions). Private to the component.
 */
#ifndef KVB_STORAGE_FILE_H
#define KVB_STORAGE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <kvb/lock.h>
#include <kvb/storage.h>
#include <kvb/superblock.h>

/* Memory that a superblock is read into, also past the page cache. */
#define SUPERBLOCK_BYTES(name) uint8_t name[KVB_SUPERBLOCK_SIZE] __attribute__((aligned(KVB_SUPERBLOCK_SIZE)))

#define FILE_EDGE KVB_SUPERBLOCK_SIZE /* the superblock, and at the end its bytes again */

/* One opened storage. Nothing of the file system is kept open between calls: each call opens the
 * root by its path and proves it by the marker. So an unmounted or replaced root is noticed by every
 * call, a mount that comes back is used again by itself, and unmounting is not blocked by us. */
struct file_storage {
	char *name;
	char *root;
	int below; /* the directory that root is one component of; -1 = root is a whole path */
	uint8_t uuid[16];
	uint64_t unit;
	bool chunked;   /* type hf3fs: files are given their length only, there is no allocation in advance */
	bool any_mount; /* one that is not 3FS will do */
	uint64_t chunk; /* 0 = none, or (chunked, until the root is claimed) to be read */
	uint64_t edge;  /* header and trailer of a slab file, each: the chunk, or FILE_EDGE */
	struct kvb_mutex lock; /* protects dev and ino; no I/O under it */
	dev_t dev;             /* where the root was last seen, to tell of a change; ino 0 = never */
	ino_t ino;
};

/* root.c */

/* Makes the root and its marker where they are missing. KVB_E_FOREIGN: the directory holds other
 * things and no marker. A marker that is there already is left to kvb_root_enter to judge. */
int kvb_root_claim(struct file_storage *s, struct kvb_error *err);
/* Opens the root and finds its chunk size out, where it has none yet: before it is claimed. KVB_E_UNAVAILABLE,
 * KVB_E_INVALID (one that no slab file can have). */
int kvb_root_measure(struct file_storage *s, struct kvb_error *err);
/* Opens the root and checks its marker. The caller closes *dir. */
int kvb_root_enter(struct file_storage *s, int *dir, struct kvb_error *err);
/* A small synced write inside the root. KVB_E_NO_SPACE when it failed for want of room only. */
int kvb_root_try_write(const struct file_storage *s, int dir, struct kvb_error *err);
/* Opens a file in the entered root for reading. 0 or an errno, as kvb_fs_open. */
int kvb_root_open(const struct file_storage *s, int dir, const char *name, int *fd);
/* Reads and decodes the superblock at `at`; texts name `name`. *raw (SUPERBLOCK_BYTES) gets the bytes. KVB_E_CORRUPT
 * when the file ends before it. */
int kvb_superblock_read(int fd, uint64_t at, const char *name, uint8_t raw[KVB_SUPERBLOCK_SIZE],
			struct kvb_superblock *out, struct kvb_error *err);

/* slab.c: the members of kvb_storage_file with the same names; `dir` is the entered root */

int kvb_slab_create(const struct file_storage *s, int dir, uint32_t file, uint64_t length,
		    struct kvb_error *err);
int kvb_slab_check(const struct file_storage *s, int dir, uint32_t file, uint64_t length,
		   struct kvb_error *err);
/* Every range lies on chunks between header and trailer. */
int kvb_slab_punch(const struct file_storage *s, int dir, uint32_t file, uint64_t length,
		   const struct kvb_storage_range *v, uint32_t n, struct kvb_error *err);
int kvb_slab_remove(const struct file_storage *s, int dir, uint32_t file, struct kvb_error *err);

#endif
