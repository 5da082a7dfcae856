/*
 * fs_master.h - the protocol between managers and fs-masters: JSON over HTTP, POST
 * <SKV_FS_PREFIX><dir>/<verb>.
 *
 * An fs-master keeps no state: each call names the storage that the directory must belong to, and
 * every call may be repeated. `dir` is a name (skv_name_valid) below the fs-master's root. A memory
 * node takes the same calls for storages of type memory, `dir` being its own name, except punch,
 * mend and look. docs/reference/PROTOCOL.md lists the calls and refers here for their bodies.
 */
#ifndef SKV_FS_MASTER_H
#define SKV_FS_MASTER_H

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/status.h>

#define SKV_FS_PREFIX "/fs/"

/* open: checks the directory, or creates it if allowed; probe: the same, and that it is writable;
 * create, check, delete, punch, mend: a slab file; owners, claim, disown: owner files; leave:
 * removes the marker (skv/storage.h); look: stats a client's file, without a storage. */
#define SKV_FS_VERBS(X)       \
	X(OPEN, "open")       \
	X(PROBE, "probe")     \
	X(CREATE, "create")   \
	X(CHECK, "check")     \
	X(DELETE, "delete")   \
	X(PUNCH, "punch")     \
	X(OWNERS, "owners")   \
	X(CLAIM, "claim")     \
	X(DISOWN, "disown")   \
	X(MEND, "mend")       \
	X(LEAVE, "leave")     \
	X(LOOK, "look")
enum skv_fs_verb {
#define SKV_FS_VERB(name, text) SKV_FS_##name,
	SKV_FS_VERBS(SKV_FS_VERB)
#undef SKV_FS_VERB
};
const char *skv_fs_verb_text(enum skv_fs_verb verb);
/* Returns true if the verb's answer has fields. */
static inline bool skv_fs_answers(enum skv_fs_verb verb)
{
	return verb == SKV_FS_OPEN || verb == SKV_FS_PROBE || verb == SKV_FS_OWNERS ||
	       verb == SKV_FS_LOOK;
}

/* The user of a directory: content of a file `owner.<incarnation>` there. A new owner of a store
 * takes a greater incarnation than any that the store has seen, and a nonce of its own; the store
 * remembers both. */
#define SKV_STORAGE_NONCE 16u
/* A position of the owner's journal: a store that ends before this position has lost acknowledged
 * writes. Zeros: no position was noted. */
struct skv_storage_horizon {
	uint64_t epoch;      /* the owner's fence */
	uint64_t number;     /* acknowledged batches */
	uint64_t generation; /* no slot has had a greater one */
};
struct skv_storage_owner {
	uint64_t incarnation; /* from 1 on */
	uint8_t nonce[SKV_STORAGE_NONCE];
	struct skv_storage_horizon horizon;
};
#define SKV_STORAGE_OWNERS 64u /* per directory; more are an error */

#define SKV_PUNCH_MAX 1000u /* ranges per call: the limit of 3FS's ioctl */

/* Bytes [begin, end) of a slab file. */
struct skv_storage_range {
	uint64_t begin;
	uint64_t end;
};

/* State of a file and of its directory. */
struct skv_file_look {
	char fs[32];      /* type of the file system, as in mountinfo; "?": unknown */
	uint64_t fs_id;   /* number of the file system; 0: it has no stable number */
	uint64_t dir;     /* inode of the directory */
	uint64_t inode;   /* 0: the directory has no such file; the next two are 0 then */
	uint64_t born_ns; /* creation time, only to distinguish files; 0: unknown */
	uint64_t length;
};
#define SKV_FILE_PATH_MAX 1023u /* length of a path to stat, below a directory */

/* The request: the storage and the operation. Fields without a value are left out. */
struct skv_fs_request {
	const char *storage; /* name of the storage, for messages */
	const char *type;    /* "file", "hf3fs" or "memory" */
	uint8_t uuid[16];
	uint64_t unit;
	uint64_t chunk;  /* 0 = none, or `read_chunk` */
	bool read_chunk; /* open: take the directory's */
	bool any_mount;
	bool may_create; /* open: creates directory and marker if missing */
	uint32_t file;   /* create, check, delete, punch */
	uint64_t length; /* create, check, punch */
	const struct skv_storage_range *ranges; /* punch */
	uint32_t n_ranges;
	struct skv_storage_owner owner; /* claim, disown */
	const char *path; /* look, which has nothing else */
};
void skv_fs_write_request(struct skv_buf *out, enum skv_fs_verb verb,
			  const struct skv_fs_request *q);
/* Strings and ranges are allocated in `a`. */
int skv_fs_read_request(struct skv_arena *a, enum skv_fs_verb verb, const char *text, size_t n,
			struct skv_fs_request *out, struct skv_error *err);

/* Answer of open, probe, owners and look; the others answer {}. */
struct skv_fs_answer {
	uint64_t chunk;
	uint64_t free_bytes; /* UINT64_MAX: unlimited, and for open */
	uint64_t total_bytes;
	uint64_t epoch;      /* of memory nodes; 0 of others, which do not send it */
	uint64_t writing_ms; /* age of the oldest write that has not ended; 0: there is none */
	struct skv_storage_owner *owners; /* owners: the only field; at most SKV_STORAGE_OWNERS */
	uint32_t n_owners;
	struct skv_file_look look; /* look: the only field */
};
void skv_fs_write_answer(struct skv_buf *out, enum skv_fs_verb verb, const struct skv_fs_answer *r);
/* Owners are allocated in `a`. */
int skv_fs_read_answer(struct skv_arena *a, enum skv_fs_verb verb, const char *text, size_t n,
		       struct skv_fs_answer *out, struct skv_error *err);

#endif
