/*
 * storage.h - the manager's side of a storage: creates, checks and watches slab files. It never
 * reads or writes block bytes.
 *
 * A backend fills a `struct skv_storage_ops`; callers use the guarded wrappers skv_storage_*.
 * Types: "file" (a directory on any POSIX mount), "hf3fs" (a directory on a 3FS mount), "null"
 * (addresses only: no directory, no bytes; for metadata benchmarks and tests), "external" (slots
 * are counted, the file belongs to the clients), "memory" (slabs of a memory node, which is asked
 * like an fs-master).
 *
 * Geometry: a slab file has a header and a trailer of `edge` bytes each, which are never slots. For
 * `chunked` types the edge is the directory's chunk size (st_blksize, on 3FS a property of the
 * directory): chunk 0 holds the superblock, the last chunk repeats it and fixes the file's length.
 *
 * Threads: any thread may call. Calls block for as long as the file system does, so never call with
 * a lock held or on a request's thread.
 */
#ifndef SKV_STORAGE_H
#define SKV_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <skv/fs_master.h>
#include <skv/status.h>
#include <skv/superblock.h>

struct skv_storage_config {
	const char *name;
	const char *root;  /* absolute path, or with `below` one path component */
	/* An open directory that contains `root`, which must not be a symbolic link then. NULL =
	 * none. Borrowed; must stay open as long as the storage. */
	const int *below;
	uint8_t uuid[16];
	uint64_t unit;   /* at least a chunk */
	/* False: the registry has files here, so a missing directory or marker is an error (wrong
	 * mount?) and is never created. */
	bool may_create;
	/* Chunked types only: */
	/* Required chunk size of the directory, a power of two; 0 = see read_chunk. */
	uint64_t chunk;
	/* With chunk 0: take the directory's; else the storage predates chunks, and its edge is
	 * 4096. */
	bool read_chunk;
	/* Accept a mount that is not 3FS; a given chunk size is not checked there. */
	bool any_mount;
	/* fs-masters that do everything, in a directory below their root: `root` is ignored, and
	 * the storage is available while one of them is. Of type memory: its node, exactly one. */
	const char *const *masters; /* URLs, see skv_storage_check_master */
	uint32_t n_masters;         /* 0 = none: files are handled in this process */
	/* File with the token for them, read for each call; NULL or "" = none. */
	const char *token_file;
};

#define SKV_CHUNK_MIN (32ull << 10) /* range of 3FS chunk sizes: 32 KiB .. 64 MiB */
#define SKV_CHUNK_MAX (64ull << 20)
/* Checks the URL of an fs-master. SKV_E_INVALID: the message describes the valid form. */
int skv_storage_check_master(const char *url, struct skv_error *err);

struct skv_storage_health {
	uint64_t free_bytes;  /* on the file system, less a reserve; UINT64_MAX if unlimited */
	uint64_t total_bytes;
	/* Of `forgetful` types: */
	uint64_t epoch;      /* changes when all earlier slab files are gone */
	uint64_t writing_ms; /* age of the oldest write that has not ended; 0: there is none */
};

/* Parts of a storage that a probe may look at. */
enum skv_probe {
	SKV_PROBE_ROOT,  /* metadata only: the root exists and is ours, the file system has room */
	/* The same, and bytes of a small file are read: of the one that was read last, or, while a
	 * call that reads it has not returned, of another. */
	SKV_PROBE_READ,
	/* The same as ROOT, and a small write is synced: in turn to one of several files where
	 * files have chunks, since each may lie on another host. */
	SKV_PROBE_WRITE,
};

/* A nonce of zeros, which no owner has, stands for a file whose record is damaged. */
static inline bool skv_storage_owner_is_damaged(const struct skv_storage_owner *o)
{
	static const uint8_t zero[SKV_STORAGE_NONCE];

	return memcmp(o->nonce, zero, sizeof zero) == 0;
}

struct skv_storage_ops {
	size_t size;
	const char *type;
	/* Size of a slab file's header, and of its trailer, where no chunk size is known. */
	uint64_t edge;
	int (*open)(const struct skv_storage_config *c, void **self, struct skv_error *err);
	void (*close)(void *self);
	int (*create_file)(void *self, uint32_t file, uint64_t length, struct skv_error *err);
	int (*check_file)(void *self, uint32_t file, uint64_t length, struct skv_error *err);
	int (*remove_file)(void *self, uint32_t file, struct skv_error *err);
	int (*probe)(void *self, enum skv_probe what, struct skv_storage_health *out,
		     struct skv_error *err);
	bool steady; /* its backend cannot fail: probed rarely */
	bool counted; /* sizes and offsets are slot numbers; the manager creates no files */
	bool chunked; /* files have chunks, and a length but no space allocated in advance */
	/* Memory: a missing file is lost permanently, blocks need checksums, and `probe` reports
	 * whether earlier writers are still active: time alone does not free the slots of failed
	 * writers. */
	bool forgetful;
	uint32_t least_grace_ms; /* how long after its deadline a started write may still land */
	/* Optional: frees the space of ranges, which then read as zeros. Chunked types only. */
	int (*punch_file)(void *self, uint32_t file, uint64_t length,
			  const struct skv_storage_range *v, uint32_t n, struct skv_error *err);
	uint64_t (*chunk)(void *self); /* of chunked types */
	/* All three or none: types without a directory of the manager's have none. */
	int (*owners)(void *self, const struct skv_storage_owner *mine,
		      struct skv_storage_owner v[SKV_STORAGE_OWNERS], uint32_t *n,
		      struct skv_error *err);
	int (*claim)(void *self, const struct skv_storage_owner *o, struct skv_error *err);
	int (*disown)(void *self, const struct skv_storage_owner *o, struct skv_error *err);
	/* Optional: else SKV_E_UNSUPPORTED. */
	int (*mend_file)(void *self, uint32_t file, uint64_t length, struct skv_error *err);
	int (*leave)(void *self, struct skv_error *err);
};

extern const struct skv_storage_ops skv_storage_file;
extern const struct skv_storage_ops skv_storage_hf3fs;
extern const struct skv_storage_ops skv_storage_null;
extern const struct skv_storage_ops skv_storage_external;
extern const struct skv_storage_ops skv_storage_memory;

/* Returns NULL for an unknown type. */
const struct skv_storage_ops *skv_storage_find(const char *type);

struct skv_storage;

/* Opens the root; writes there only with `may_create`. The marker must prove that it belongs to
 * this storage (SKV_E_FOREIGN: other files, or another storage's marker; never overwritten);
 * creates root and marker if allowed. A
 * marker that is missing or damaged is written again, by any later call as well, if an owner file
 * or slab file proves the directory; else SKV_E_CORRUPT.
 * SKV_E_UNAVAILABLE: missing, read-only, unmounted. Messages contain paths: for the log, not for
 * clients. */
int skv_storage_open(const struct skv_storage_ops *ops, const struct skv_storage_config *c,
		     struct skv_storage **out, struct skv_error *err);
/* Another user of the same handle, who closes it, too. Returns s. */
struct skv_storage *skv_storage_share(struct skv_storage *s);
void skv_storage_close(struct skv_storage *s); /* the call of the last user closes the storage */
const struct skv_storage_ops *skv_storage_ops_of(const struct skv_storage *s);

/* Creates slab file `file` of `length` bytes: space allocated (except chunked types), superblock
 * and trailer written, synced. Idempotent: a file with this very superblock and length is SKV_OK;
 * another file of that name is SKV_E_FOREIGN and stays untouched. SKV_E_NO_SPACE leaves nothing
 * behind. */
int skv_storage_create_file(struct skv_storage *s, uint32_t file, uint64_t length,
			    struct skv_error *err);
/* SKV_E_NOT_FOUND, SKV_E_FOREIGN, SKV_E_CORRUPT (short, or superblock
 * damaged), SKV_E_UNAVAILABLE. */
int skv_storage_check_file(struct skv_storage *s, uint32_t file, uint64_t length,
			   struct skv_error *err);
/* Repairs a superblock from its copy in the trailer, or the reverse. SKV_OK: both are good now.
 * SKV_E_NOT_FOUND; SKV_E_CORRUPT: neither is good; SKV_E_FOREIGN: another file, or truncated.
 * Nothing is written then. */
int skv_storage_mend_file(struct skv_storage *s, uint32_t file, uint64_t length,
			  struct skv_error *err);
/* Removes the file only if it is ours; a missing one is SKV_OK. */
int skv_storage_remove_file(struct skv_storage *s, uint32_t file, struct skv_error *err);
/* Chunked storages: frees the chunks of unused ranges, at most SKV_PUNCH_MAX ranges of whole
 * chunks, never header or trailer: SKV_E_INVALID. SKV_E_UNSUPPORTED where files have their space
 * allocated in advance. */
int skv_storage_punch_file(struct skv_storage *s, uint32_t file, uint64_t length,
			   const struct skv_storage_range *v, uint32_t n, struct skv_error *err);

/* Owner files. Does the type support them? */
static inline bool skv_storage_has_owners(const struct skv_storage_ops *ops)
{
	return ops->owners != NULL;
}

/* Lists the owner files, the greatest incarnation first. Incomplete owner files are left out: their
 * writer reads the list afterwards. Damaged ones get a nonce of zeros. The file of `mine` (NULL:
 * none) is assumed unchanged if its name exists: the bytes of a file, and on 3FS its size, may wait
 * for a lost node, names do not. SKV_E_TOO_MANY. */
int skv_storage_owners(struct skv_storage *s, const struct skv_storage_owner *mine,
		       struct skv_storage_owner v[SKV_STORAGE_OWNERS], uint32_t *n,
		       struct skv_error *err);
/* Creates the file exclusively; durable on return. Repeating it is SKV_OK, and writes a horizon of
 * a greater number. SKV_E_CONFLICT: the name exists with another nonce; SKV_E_IN_USE: it exists,
 * incompletely written. Proves nothing until all owners have been listed afterwards. */
int skv_storage_claim(struct skv_storage *s, const struct skv_storage_owner *o,
		      struct skv_error *err);
/* Removes the file if it has this nonce; with a nonce of zeros, if it is damaged or incomplete.
 * SKV_OK if there is none, or another's. */
int skv_storage_disown(struct skv_storage *s, const struct skv_storage_owner *o,
		       struct skv_error *err);
/* Removes the marker from the directory, which is free for another storage then. Only if it has no
 * slab or owner file: SKV_E_IN_USE. SKV_E_UNAVAILABLE: there is no marker (any more).
 * SKV_E_UNSUPPORTED: no directory. */
int skv_storage_leave(struct skv_storage *s, struct skv_error *err);
/* Chunk size in bytes; 0 = none. */
uint64_t skv_storage_chunk(const struct skv_storage *s);
/* Size of a slab file's header, and of its trailer, for this type and chunk size (0 = none or
 * unknown). */
static inline uint64_t skv_storage_edge(const struct skv_storage_ops *ops, uint64_t chunk)
{
	return chunk ? chunk : ops->edge;
}
/* Health check. free_bytes is 0 if a write found no room. Through fs-masters, and of types without
 * a directory, every kind is the same. */
int skv_storage_probe(struct skv_storage *s, enum skv_probe what, struct skv_storage_health *out,
		      struct skv_error *err);

/* ---- client files ---------------------------------------------------------------------------- */

/* Stats a client's file at `path` below the directory `dir`; from `dir` on no symbolic link is
 * followed. `below`: an open directory that contains `dir`; -1: `dir` is an absolute path. The
 * file's directory is kept open meanwhile, so that both results are from the same mount.
 * Bypasses the file system's cache. Also SKV_OK if the directory has no such file;
 * SKV_E_UNAVAILABLE: the directory is not visible; SKV_E_FOREIGN: not a regular file;
 * SKV_E_INVALID: an impossible path. */
int skv_file_look(int below, const char *dir, const char *path, struct skv_file_look *out,
		  struct skv_error *err);

/* Reads the bytes of slab file `path` below the absolute path `root`, past the attribute cache of
 * the file system. SKV_E_UNSUPPORTED: on FUSE, whose daemons report any times of a change, and may
 * keep old pages. */
struct skv_file_bytes {
	bool zero;           /* all `length` bytes at `offset` are 0 */
	bool local;          /* the file system is a kernel's own, on this machine */
	uint64_t changed_ns; /* when the file was changed last, on the file system's clock */
};
int skv_file_look_at(const char *root, const char *path, uint64_t offset, uint64_t length,
		     struct skv_file_bytes *out, struct skv_error *err);
/* The same on a file system that was local at an earlier look, without waiting for a disk.
 * SKV_E_UNAVAILABLE: the bytes are not in memory. */
int skv_file_glance_at(const char *root, const char *path, uint64_t offset, uint64_t length,
		       struct skv_file_bytes *out, struct skv_error *err);

/* The same here or through fs-masters. */
struct skv_file_looker;
/* `masters`: as in struct skv_storage_config; n_masters 0: on this machine's mounts.
 * SKV_E_INVALID. */
int skv_file_looker_open(const char *const *masters, uint32_t n_masters, const char *token_file,
			 struct skv_file_looker **out, struct skv_error *err);
void skv_file_looker_close(struct skv_file_looker *l); /* NULL is allowed */
/* With fs-masters `dir` is ignored in favour of theirs. SKV_E_NETWORK and others: no answer. */
int skv_file_looker_look(struct skv_file_looker *l, const char *dir, const char *path,
			 struct skv_file_look *out, struct skv_error *err);

/* ---- for display ----------------------------------------------------------------------------- */

/* Superblock of any directory or slab file; opened below an open directory, following no symbolic
 * link. */
struct skv_storage_stat {
	struct skv_superblock superblock;
	uint64_t length;     /* of the slab file; 0 of a directory */
	uint64_t block_size; /* st_blksize */
	bool is_3fs;
	uint64_t free_bytes; /* of the file system */
	uint64_t total_bytes;
};
/* `file` SKV_NO_FILE: the directory's. SKV_E_NOT_FOUND, SKV_E_FOREIGN, SKV_E_CORRUPT,
 * SKV_E_UNAVAILABLE. */
int skv_storage_stat(int below, const char *dir, uint32_t file, struct skv_storage_stat *out,
		     struct skv_error *err);
/* Numbers of the slab files in the directory, sorted; free *files with skv_free. */
int skv_storage_list(int below, const char *dir, uint32_t **files, size_t *n,
		     struct skv_error *err);

#endif
