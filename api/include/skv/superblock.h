/*
 * superblock.h - the two records that prove what a directory and a slab file are.
 *
 * `slabkv-storage` in a storage's root names the storage; the first SKV_SUPERBLOCK_SIZE bytes of
 * each slab file name the file. The same encoded form serves both (file number SKV_NO_FILE in the
 * directory's). Little-endian, 4096 bytes, XXH3-64 over bytes 0..4087 in the last 8.
 * docs/internals/ON_DISK.md has the byte table; tests hold golden bytes.
 */
#ifndef SKV_SUPERBLOCK_H
#define SKV_SUPERBLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/status.h>

#define SKV_SUPERBLOCK_SIZE 4096u
#define SKV_SUPERBLOCK_VERSION 1u
#define SKV_NO_FILE UINT32_MAX
#define SKV_STORAGE_MARKER "slabkv-storage"
/* A symbolic link in the root of a `file` storage, to the root itself. Paths through the link exist
 * only where the storage is really mounted: clients that create missing directories and files do
 * not create such a link. Locations for KVCM's clients contain the link. */
#define SKV_STORAGE_LINK "mounted"

struct skv_superblock {
	uint8_t uuid[16];  /* of the storage */
	uint32_t file;     /* number of the slab file, or SKV_NO_FILE */
	uint64_t length;   /* bytes of the whole file, 0 in the directory's record */
	uint64_t unit;     /* slab unit */
	uint64_t header;   /* bytes before the first slot can begin */
	uint64_t trailer;  /* bytes at the end that are never a slot */
	uint64_t created_ms; /* wall time */
};

/* The bytes of one, with magic and checksum. Pure. */
void skv_superblock_encode(const struct skv_superblock *sb, uint8_t out[SKV_SUPERBLOCK_SIZE]);

/* SKV_E_FOREIGN: not ours (magic); SKV_E_UNSUPPORTED: newer version; SKV_E_CORRUPT: checksum. */
int skv_superblock_decode(const uint8_t in[SKV_SUPERBLOCK_SIZE], struct skv_superblock *out,
			  struct skv_error *err);

/* Text form 8-4-4-4-12 of 16 bytes and back; SKV_E_INVALID if malformed. */
void skv_uuid_to_text(const uint8_t uuid[16], char out[37]);
int skv_uuid_from_text(const char *text, uint8_t uuid[16]);

/* Name of a slab file below the root of a `file` storage: "slab-00000001.kvs". */
#define SKV_SLAB_PATH_MAX 64
void skv_slab_path(uint32_t file, char out[SKV_SLAB_PATH_MAX]);

#endif
