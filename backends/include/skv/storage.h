/*
 * storage.h - the manager's side of a storage: makes, checks and watches slab files. It never reads
 * or writes block bytes.
 *
 * A backend fills a `struct skv_storage_ops`; callers use the guarded wrappers skv_storage_*.
 * Types: "file" (a directory on any POSIX mount), "hf3fs" (a directory on a mount of 3FS), "null" (addresses only: no
 * directory, no bytes; for metadata benchmarks and tests), "external" (slots are counted, the file is the clients').
 *
 * Geometry: a slab file has a header and a trailer of `edge` bytes each that are never a slot. Where the type is
 * `chunked`, the directory's chunk size C (st_blksize, on 3FS a property of the directory) is the edge: chunk 0 holds the
 * superblock, the last chunk repeats it and keeps the file's length.
 *
 * Threads: any thread may call; calls can block for as long as the file system does, so nobody calls
 * them with a lock held or on a request's thread.
 */
#ifndef SKV_STORAGE_H
#define SKV_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/fs_master.h>
#include <skv/status.h>
#include <skv/superblock.h>

struct skv_storage_config {
	const char *name;
	const char *root;  /* absolute path, or with `below` one component */
	const int *below;  /* an open directory that `root` lies in; it is no symbolic link then. NULL = none. Stays the
			      caller's and open as long as the storage is */
	uint8_t uuid[16];
	uint64_t unit;   /* at least a chunk */
	bool may_create; /* false: the registry knows files here, so a missing directory or marker is an
			    error (wrong mount?), never made anew */
	/* Of chunked types only: */
	uint64_t chunk;  /* what the directory's chunk size must be, a power of two; 0 = as read_chunk says */
	bool read_chunk; /* with chunk 0: it is what the directory says; else a storage of before there were chunks, whose
			    edge is 4096 */
	bool any_mount;  /* a mount that is not 3FS will do; there a chunk size that was told is believed */
	/* fs-masters that do everything, in a directory below their root: then `root` is not looked at, and the storage is
	 * there as long as one of them is. */
	const char *const *masters; /* URLs, see skv_storage_check_master */
	uint32_t n_masters;         /* 0 = none: the files are handled here */
	const char *token_file;     /* with the token to show them, read for each call; NULL or "" = none */
};

#define SKV_CHUNK_MIN (64ull << 10) /* physical blocks of 3FS's chunk engine: 64 KiB .. 64 MiB */
#define SKV_CHUNK_MAX (64ull << 20)
#define SKV_PUNCH_MAX 1000u /* ranges of one call: what the ioctl of 3FS holds */

/* Bytes [begin, end) of a slab file. */
struct skv_storage_range {
	uint64_t begin;
	uint64_t end;
};

/* Can the backend ask an fs-master of this URL? SKV_E_INVALID with the form that it must have. */
int skv_storage_check_master(const char *url, struct skv_error *err);

struct skv_storage_health {
	uint64_t free_bytes;  /* on the file system, less slack; UINT64_MAX if it has no bound */
	uint64_t total_bytes;
};

/* Who goes on in a directory: what a file `owner.<incarnation>` there holds. Whoever starts on a store takes a greater
 * incarnation than any that the store has seen, and a nonce of its own; the store remembers both. */
#define SKV_STORAGE_NONCE 16u
struct skv_storage_owner {
	uint64_t incarnation; /* from 1 on */
	uint8_t nonce[SKV_STORAGE_NONCE];
};
#define SKV_STORAGE_OWNERS 64u /* in one directory; more are an error */

struct skv_storage_ops {
	size_t size;
	const char *type;
	uint64_t edge; /* header and trailer of a slab file, each, where nothing else is known of chunks */
	int (*open)(const struct skv_storage_config *c, void **self, struct skv_error *err);
	void (*close)(void *self);
	int (*create_file)(void *self, uint32_t file, uint64_t length, struct skv_error *err);
	int (*check_file)(void *self, uint32_t file, uint64_t length, struct skv_error *err);
	int (*remove_file)(void *self, uint32_t file, struct skv_error *err);
	int (*probe)(void *self, struct skv_storage_health *out, struct skv_error *err);
	bool steady; /* nothing is behind it that could fail: it is probed now and then only */
	bool counted; /* sizes and offsets are numbers of slots; there are no slab files of ours */
	bool chunked; /* files have chunks, and length but no space in advance */
	uint32_t least_grace_ms; /* a write that was begun may land so long after its deadline */
	/* Optional: gives the space of ranges back; they read as holes. Chunked types only. */
	int (*punch_file)(void *self, uint32_t file, uint64_t length, const struct skv_storage_range *v, uint32_t n,
			  struct skv_error *err);
	uint64_t (*chunk)(void *self); /* of chunked types */
	/* All three, or none of them: what is behind it is no directory, or the clients'. */
	int (*owners)(void *self, struct skv_storage_owner v[SKV_STORAGE_OWNERS], uint32_t *n, struct skv_error *err);
	int (*claim)(void *self, const struct skv_storage_owner *o, struct skv_error *err);
	int (*disown)(void *self, const struct skv_storage_owner *o, struct skv_error *err);
	/* Optional: SKV_E_UNSUPPORTED. */
	int (*mend_file)(void *self, uint32_t file, uint64_t length, struct skv_error *err);
	int (*leave)(void *self, struct skv_error *err);
};

extern const struct skv_storage_ops skv_storage_file;
extern const struct skv_storage_ops skv_storage_hf3fs;
extern const struct skv_storage_ops skv_storage_null;
extern const struct skv_storage_ops skv_storage_external;

/* NULL when there is no such type. */
const struct skv_storage_ops *skv_storage_find(const char *type);

struct skv_storage;

/* Opens the root: proves by the marker that it is this storage's (SKV_E_FOREIGN: it holds somebody
 * else's files or another storage's marker; never formatted over), makes root and marker if allowed.
 * SKV_E_UNAVAILABLE: missing, read-only, unmounted. Messages here name paths: they go to the
 * administrator's log, not to clients. */
int skv_storage_open(const struct skv_storage_ops *ops, const struct skv_storage_config *c,
		     struct skv_storage **out, struct skv_error *err);
void skv_storage_close(struct skv_storage *s);
const struct skv_storage_ops *skv_storage_ops_of(const struct skv_storage *s);

/* Makes slab file `file` of `length` bytes: really allocated, superblock and trailer written, synced.
 * Idempotent: a file with this very superblock and length is SKV_OK; another file of that name is
 * SKV_E_FOREIGN and stays untouched. SKV_E_NO_SPACE leaves nothing behind. */
int skv_storage_create_file(struct skv_storage *s, uint32_t file, uint64_t length, struct skv_error *err);
/* SKV_E_NOT_FOUND, SKV_E_FOREIGN, SKV_E_CORRUPT (short, or superblock damaged), SKV_E_UNAVAILABLE. */
int skv_storage_check_file(struct skv_storage *s, uint32_t file, uint64_t length, struct skv_error *err);
/* Superblock and trailer repeat each other: where one of them is this file's and the other is damaged, it is written again.
 * SKV_OK: both are whole now. SKV_E_NOT_FOUND; SKV_E_CORRUPT: neither is good; SKV_E_FOREIGN: it is another file, whole, or it
 * was cut; then nothing was written. */
int skv_storage_mend_file(struct skv_storage *s, uint32_t file, uint64_t length, struct skv_error *err);
/* Only a file that is ours is removed; a missing one is SKV_OK. */
int skv_storage_remove_file(struct skv_storage *s, uint32_t file, struct skv_error *err);
/* Of a chunked storage: gives back the chunks of ranges whose bytes nobody needs, at most SKV_PUNCH_MAX whole chunks each,
 * never header or trailer: SKV_E_INVALID. SKV_E_UNSUPPORTED where files have their space in advance. */
int skv_storage_punch_file(struct skv_storage *s, uint32_t file, uint64_t length, const struct skv_storage_range *v,
			   uint32_t n, struct skv_error *err);
/* Owner files. Does the type have any? */
static inline bool skv_storage_has_owners(const struct skv_storage_ops *ops) { return ops->owners != NULL; }
/* Those in the directory, the greatest incarnation first. One that is not written to its end yet is left out: whoever
 * writes it looks again afterwards. One that cannot be read as what it should be has a nonce of zeros, which nobody has.
 * SKV_E_TOO_MANY. */
int skv_storage_owners(struct skv_storage *s, struct skv_storage_owner v[SKV_STORAGE_OWNERS], uint32_t *n,
		       struct skv_error *err);
/* Creates the file, exclusively; durable when it returns. Again is SKV_OK. SKV_E_CONFLICT: the name is there with other
 * content; SKV_E_IN_USE: it is there and was not written to its end. It proves nothing before a look at all owners that
 * began after it. */
int skv_storage_claim(struct skv_storage *s, const struct skv_storage_owner *o, struct skv_error *err);
/* Removes the file, if it holds this. SKV_OK when there is none, or another's. */
int skv_storage_disown(struct skv_storage *s, const struct skv_storage_owner *o, struct skv_error *err);
/* The storage is over: takes the marker out of its directory, which is nobody's then, and the next storage's that is made in it.
 * Only where nothing else is left, neither a slab file nor an owner file: SKV_E_IN_USE. SKV_E_UNAVAILABLE: the marker is
 * not there, any more perhaps. SKV_E_UNSUPPORTED: it has no directory. */
int skv_storage_leave(struct skv_storage *s, struct skv_error *err);
/* Bytes of a chunk; 0 = it has none. */
uint64_t skv_storage_chunk(const struct skv_storage *s);
/* Header and trailer of slab files, each, in a storage of this type with chunks of so many bytes (0 = none, or not known). */
static inline uint64_t skv_storage_edge(const struct skv_storage_ops *ops, uint64_t chunk)
{
	return chunk ? chunk : ops->edge;
}
/* Health: the root is there, ours, writable. */
int skv_storage_probe(struct skv_storage *s, struct skv_storage_health *out, struct skv_error *err);

/* ---- files of the clients ------------------------------------------------------------------------ */

/* Looks at a file that is none of ours, at `path` below the directory `dir`: components of names, no symbolic link followed
 * from `dir` on. `below`: an open directory that `dir` is one component of; -1: `dir` is an absolute path. The directory that
 * the file lies in is held open meanwhile, so what is told of both is told of the same mount. Asks the file system, not only
 * its cache. SKV_OK, too, when there is no such file in that directory; SKV_E_UNAVAILABLE: the directory cannot be seen;
 * SKV_E_FOREIGN: it is no regular file; SKV_E_INVALID: no such path can be. */
int skv_file_look(int below, const char *dir, const char *path, struct skv_file_look *out, struct skv_error *err);

/* The same through whoever can see them. */
struct skv_file_looker;
/* `masters`: as in struct skv_storage_config; n_masters 0: mounts here. SKV_E_INVALID. */
int skv_file_looker_open(const char *const *masters, uint32_t n_masters, const char *token_file, struct skv_file_looker **out,
			 struct skv_error *err);
void skv_file_looker_close(struct skv_file_looker *l); /* NULL is allowed */
/* With fs-masters `dir` is not looked at: theirs is. SKV_E_NETWORK and others: nobody could tell. */
int skv_file_looker_look(struct skv_file_looker *l, const char *dir, const char *path, struct skv_file_look *out,
			 struct skv_error *err);

/* ---- for people -------------------------------------------------------------------------------- */

/* What a directory or a slab file is, whosever it is; opened below an open directory, no symbolic link followed. */
struct skv_storage_stat {
	struct skv_superblock superblock;
	uint64_t length;     /* of the slab file; 0 of a directory */
	uint64_t block_size; /* st_blksize */
	bool is_3fs;
	uint64_t free_bytes; /* of the file system */
	uint64_t total_bytes;
};
/* `file` SKV_NO_FILE: of the directory. SKV_E_NOT_FOUND, SKV_E_FOREIGN, SKV_E_CORRUPT, SKV_E_UNAVAILABLE. */
int skv_storage_stat(int below, const char *dir, uint32_t file, struct skv_storage_stat *out, struct skv_error *err);
/* Numbers of the slab files in the directory, in order; skv_free(*files). */
int skv_storage_list(int below, const char *dir, uint32_t **files, size_t *n, struct skv_error *err);

/* What the wrapper counted since open (the open itself is not counted). */
struct skv_storage_counters {
	uint64_t calls;
	uint64_t errors;
	uint64_t busy_us; /* summed over calls */
	uint64_t max_us;  /* the slowest call */
};
void skv_storage_counters_get(const struct skv_storage *s, struct skv_storage_counters *out);

#endif
