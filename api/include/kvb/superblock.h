/*
 * superblock.h - the two records that prove what a directory and a slab file are.
 *
 * `kvblock-storage` in a storage's root names the storage; the first KVB_SUPERBLOCK_SIZE bytes of
 * each slab file name the file. The same encoded form serves both (file number KVB_NO_FILE in the
 * directory's). Little-endian, 4096 bytes, XXH3-64 over bytes 0..4087 in the last 8. docs/ON_DISK.md
 * has the byte table; tests hold golden bytes.
 */
#ifndef KVB_SUPERBLOCK_H
#define KVB_SUPERBLOCK_H

#include <stdint.h>

#include <kvb/status.h>

#define KVB_SUPERBLOCK_SIZE 4096u
#define KVB_SUPERBLOCK_VERSION 1u
#define KVB_NO_FILE UINT32_MAX
#define KVB_STORAGE_MARKER "kvblock-storage"

struct kvb_superblock {
	uint8_t uuid[16];  /* of the storage */
	uint32_t file;     /* number of the slab file, or KVB_NO_FILE */
	uint64_t length;   /* bytes of the whole file, 0 in the directory's record */
	uint64_t unit;     /* slab unit */
	uint64_t header;   /* bytes before the first slot can begin */
	uint64_t trailer;  /* bytes at the end that are never a slot */
	uint64_t created_ms; /* wall time */
};

void kvb_superblock_encode(const struct kvb_superblock *sb, uint8_t out[KVB_SUPERBLOCK_SIZE]);
/* KVB_E_FOREIGN: not ours (magic); KVB_E_UNSUPPORTED: newer version; KVB_E_CORRUPT: checksum. */
int kvb_superblock_decode(const uint8_t in[KVB_SUPERBLOCK_SIZE], struct kvb_superblock *out,
			  struct kvb_error *err);

/* Text form 8-4-4-4-12 of 16 bytes and back; KVB_E_INVALID if malformed. */
void kvb_uuid_to_text(const uint8_t uuid[16], char out[37]);
int kvb_uuid_from_text(const char *text, uint8_t uuid[16]);

/* Name of a slab file below the root of a `file` storage: "slab-00000001.kvs". */
#define KVB_SLAB_PATH_MAX 64
void kvb_slab_path(uint32_t file, char out[KVB_SLAB_PATH_MAX]);

#endif
