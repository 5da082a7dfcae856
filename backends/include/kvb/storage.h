/*
 * storage.h - the manager's side of a storage: makes, checks and watches slab files. It never reads
 * or writes block bytes.
 *
 * A backend fills a `struct kvb_storage_ops`; callers use the guarded wrappers kvb_storage_*.
 * Backends: "file" (a directory on any POSIX mount), "hf3fs" (a directory on a mount of 3FS), "null" (addresses only: no directory, no bytes;
 * for metadata benchmarks and tests), "external" (slots are counted, the file is the clients').
 *
 * Threads: any thread may call; calls can block for as long as the file system does, so nobody calls
 * them with a lock held or on a request's thread.
 */
#ifndef KVB_STORAGE_H
#define KVB_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvb/status.h>

struct kvb_storage_config {
	const char *name;
	const char *root;  /* absolute path */
	uint8_t uuid[16];
	uint64_t unit;
	bool may_create; /* false: the registry knows files here, so a missing directory or marker is an
			    error (wrong mount?), never made anew */
};

struct kvb_storage_health {
	uint64_t free_bytes;  /* on the file system, less slack; UINT64_MAX if it has no bound */
	uint64_t total_bytes;
};

struct kvb_storage_ops {
	size_t size;
	const char *type;
	uint64_t header;  /* bytes at the begin of a slab file that are never a slot */
	uint64_t trailer; /* bytes at the end that are never a slot */
	int (*open)(const struct kvb_storage_config *c, void **self, struct kvb_error *err);
	void (*close)(void *self);
	int (*create_file)(void *self, uint32_t file, uint64_t length, struct kvb_error *err);
	int (*check_file)(void *self, uint32_t file, uint64_t length, struct kvb_error *err);
	int (*remove_file)(void *self, uint32_t file, struct kvb_error *err);
	int (*probe)(void *self, struct kvb_storage_health *out, struct kvb_error *err);
	bool steady; /* nothing is behind it that could fail: it is probed now and then only */
	bool counted; /* sizes and offsets are numbers of slots; there are no slab files of ours */
};

extern const struct kvb_storage_ops kvb_storage_file;
extern const struct kvb_storage_ops kvb_storage_hf3fs;
extern const struct kvb_storage_ops kvb_storage_null;
extern const struct kvb_storage_ops kvb_storage_external;

/* NULL when there is no such type. */
const struct kvb_storage_ops *kvb_storage_find(const char *type);

struct kvb_storage;

/* Opens the root: proves by the marker that it is this storage's (KVB_E_FOREIGN: it holds somebody
 * else's files or another storage's marker; never formatted over), makes root and marker if allowed.
 * KVB_E_UNAVAILABLE: missing, read-only, unmounted. Messages here name paths: they go to the
 * administrator's log, not to clients. */
int kvb_storage_open(const struct kvb_storage_ops *ops, const struct kvb_storage_config *c,
		     struct kvb_storage **out, struct kvb_error *err);
void kvb_storage_close(struct kvb_storage *s);
const struct kvb_storage_ops *kvb_storage_ops_of(const struct kvb_storage *s);

/* Makes slab file `file` of `length` bytes: really allocated, superblock and trailer written, synced.
 * Idempotent: a file with this very superblock and length is KVB_OK; another file of that name is
 * KVB_E_FOREIGN and stays untouched. KVB_E_NO_SPACE leaves nothing behind. */
int kvb_storage_create_file(struct kvb_storage *s, uint32_t file, uint64_t length, struct kvb_error *err);
/* KVB_E_NOT_FOUND, KVB_E_FOREIGN, KVB_E_CORRUPT (short, or superblock damaged), KVB_E_UNAVAILABLE. */
int kvb_storage_check_file(struct kvb_storage *s, uint32_t file, uint64_t length, struct kvb_error *err);
/* Only a file that is ours is removed; a missing one is KVB_OK. */
int kvb_storage_remove_file(struct kvb_storage *s, uint32_t file, struct kvb_error *err);
/* Health: the root is there, ours, writable. */
int kvb_storage_probe(struct kvb_storage *s, struct kvb_storage_health *out, struct kvb_error *err);

/* What the wrapper counted since open (the open itself is not counted). */
struct kvb_storage_counters {
	uint64_t calls;
	uint64_t errors;
	uint64_t busy_us; /* summed over calls */
	uint64_t max_us;  /* the slowest call */
};
void kvb_storage_counters_get(const struct kvb_storage *s, struct kvb_storage_counters *out);

#endif
