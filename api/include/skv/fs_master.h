/*
 * fs_master.h - what managers and fs-masters say to each other: JSON over HTTP, POST <SKV_FS_PREFIX><dir>/<verb>.
 *
 * An fs-master keeps no state: a call tells which storage the directory must be, and every call may be repeated. `dir` is
 * a name (skv_name_valid) below the fs-master's root. docs/PROTOCOL.md names the calls and points here for their bodies.
 */
#ifndef SKV_FS_MASTER_H
#define SKV_FS_MASTER_H

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/status.h>

#define SKV_FS_PREFIX "/fs/"
#define SKV_FS_RANGES 1000u /* of one punch */

/* open: proves the directory, or makes it if it may; probe: the same, and that it can be written; create, check, delete,
 * punch, mend: a slab file; owners, claim, disown: owner files; leave: takes the marker away (skv/storage.h); look: any file,
 * for what its clients keep there; of no storage. */
#define SKV_FS_VERBS(X) \
	X(OPEN, "open") X(PROBE, "probe") X(CREATE, "create") X(CHECK, "check") X(DELETE, "delete") X(PUNCH, "punch") \
	X(OWNERS, "owners") X(CLAIM, "claim") X(DISOWN, "disown") X(MEND, "mend") \
	X(LEAVE, "leave") X(LOOK, "look")
enum skv_fs_verb {
#define SKV_FS_VERB(name, text) SKV_FS_##name,
	SKV_FS_VERBS(SKV_FS_VERB)
#undef SKV_FS_VERB
};
const char *skv_fs_verb_text(enum skv_fs_verb verb);

struct skv_fs_owner {
	uint64_t incarnation;
	uint8_t nonce[16];
};
#define SKV_FS_OWNERS_MAX 64u /* in one answer */

/* What a look at a file and at the directory that it lies in tells. */
struct skv_file_look {
	char fs[32];      /* type of the file system, as in mountinfo; "?": not told there */
	uint64_t fs_id;   /* its number; 0: it has none that lasts */
	uint64_t dir;     /* inode of the directory */
	uint64_t inode;   /* 0: there is no such file in that directory; then the next two are 0 as well */
	uint64_t born_ns; /* when it was made, for telling it from another one only; 0: nobody knows */
	uint64_t length;
};
#define SKV_FILE_PATH_MAX 1023u /* bytes of a path to look at, below a directory */

/* Which storage it is about, and what. Fields that a verb does not need are not written and not read. */
struct skv_fs_request {
	const char *storage; /* its name, for messages */
	const char *type;    /* "file" or "hf3fs" */
	uint8_t uuid[16];
	uint64_t unit;
	uint64_t chunk;  /* 0 = it has none, or `read_chunk` */
	bool read_chunk; /* open: the directory says it */
	bool any_mount;
	bool may_create; /* open: makes directory and marker where they are missing */
	uint32_t file;   /* create, check, delete, punch */
	uint64_t length; /* create, check, punch */
	const uint64_t (*ranges)[2]; /* punch: bytes [0] to [1], not included */
	uint32_t n_ranges;
	struct skv_fs_owner owner; /* claim, disown */
	const char *path; /* look, which has nothing else */
};
void skv_fs_write_request(struct skv_buf *out, enum skv_fs_verb verb, const struct skv_fs_request *q);
/* Strings and ranges lie in `a`. */
int skv_fs_read_request(struct skv_arena *a, enum skv_fs_verb verb, const char *text, size_t n, struct skv_fs_request *out,
			struct skv_error *err);

/* Of open, probe, owners and look; the others answer {}. */
struct skv_fs_answer {
	uint64_t chunk;
	uint64_t free_bytes; /* UINT64_MAX: without bound, and of an open */
	uint64_t total_bytes;
	struct skv_fs_owner owners[SKV_FS_OWNERS_MAX]; /* of owners, which tells nothing else */
	uint32_t n_owners;
	struct skv_file_look look; /* of look, which tells nothing else */
};
void skv_fs_write_answer(struct skv_buf *out, enum skv_fs_verb verb, const struct skv_fs_answer *r);
int skv_fs_read_answer(struct skv_arena *a, enum skv_fs_verb verb, const char *text, size_t n, struct skv_fs_answer *out,
		       struct skv_error *err);

#endif
