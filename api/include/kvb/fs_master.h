/*
 * fs_master.h - what managers and fs-masters say to each other: JSON over HTTP, POST <KVB_FS_PREFIX><dir>/<verb>.
 *
 * An fs-master keeps no state: a call tells which storage the directory must be, and every call may be repeated. `dir` is
 * a name (kvb_name_valid) below the fs-master's root. docs/PROTOCOL.md has it for people.
 */
#ifndef KVB_FS_MASTER_H
#define KVB_FS_MASTER_H

#include <kvb/arena.h>
#include <kvb/bytes.h>
#include <kvb/status.h>

#define KVB_FS_PREFIX "/fs/"
#define KVB_FS_RANGES 1000u /* of one punch */

/* open: proves the directory, or makes it if it may; probe: the same, and that it can be written; create, check, delete,
 * punch: a slab file. */
#define KVB_FS_VERBS(X) X(OPEN, "open") X(PROBE, "probe") X(CREATE, "create") X(CHECK, "check") X(DELETE, "delete") X(PUNCH, "punch")
enum kvb_fs_verb {
#define KVB_FS_VERB(name, text) KVB_FS_##name,
	KVB_FS_VERBS(KVB_FS_VERB)
#undef KVB_FS_VERB
};
const char *kvb_fs_verb_text(enum kvb_fs_verb verb);

/* Which storage it is about, and what. Fields that a verb does not need are not written and not read. */
struct kvb_fs_request {
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
};
void kvb_fs_write_request(struct kvb_buf *out, enum kvb_fs_verb verb, const struct kvb_fs_request *q);
/* Strings and ranges lie in `a`. */
int kvb_fs_read_request(struct kvb_arena *a, enum kvb_fs_verb verb, const char *text, size_t n, struct kvb_fs_request *out,
			struct kvb_error *err);

/* Of open and probe; the others answer {}. */
struct kvb_fs_answer {
	uint64_t chunk;
	uint64_t free_bytes; /* UINT64_MAX: without bound, and of an open */
	uint64_t total_bytes;
};
void kvb_fs_write_answer(struct kvb_buf *out, const struct kvb_fs_answer *r);
int kvb_fs_read_answer(struct kvb_arena *a, const char *text, size_t n, struct kvb_fs_answer *out, struct kvb_error *err);

#endif
