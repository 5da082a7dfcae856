/*
 * fs_master.c - the messages of skv/fs_master.h, as tables (table.h). Errors are those of the
 * native API (error.c).
 *
 * Constant data, no state; any thread.
 */
#include "messages.h"

#include <skv/fs_master.h>
#include <skv/superblock.h>

#include <stdio.h>

const char *skv_fs_verb_text(enum skv_fs_verb verb)
{
	static const char *const text[] = {
#define VERB_TEXT(name, s) s,
		SKV_FS_VERBS(VERB_TEXT)
#undef VERB_TEXT
	};

	return text[verb];
}

/* ---- requests -------------------------------------------------------------------------------- */

#define T struct skv_storage_range
static const struct skv_field range_rows[] = {
	SKV_NUMBER(T, begin, 1, .max = INT64_MAX, .flags = REQUIRED),
	SKV_NUMBER(T, end, 2, .max = INT64_MAX, .flags = REQUIRED),
};
static const struct skv_table range_table = SKV_TABLE("Range", T, range_rows, .strict = true);
#undef T

static const char *check_type(const void *message, char text[SKV_MESSAGE_MAX])
{
	const char *type = ((const struct skv_fs_request *)message)->type;

	if (strcmp(type, "file") == 0 || strcmp(type, "hf3fs") == 0 || strcmp(type, "memory") == 0)
		return NULL;
	snprintf(text, SKV_MESSAGE_MAX, "must be one of: file, hf3fs, memory");
	return "type";
}

#define T struct skv_fs_request
static const struct skv_field request_rows[] = {
	SKV_NAME(T, storage, 1, .flags = REQUIRED),
	SKV_TEXT(T, type, 2, .max = 16, .flags = REQUIRED, .check = check_type),
	SKV_ROW(T, uuid, "uuid", RAW_UUID, 3, .flags = REQUIRED),
	SKV_NUMBER(T, unit, 4, .min = 1, .max = 1ull << 40, .flags = SIZE | REQUIRED),
	SKV_ROW(T, chunk, "chunk_size", NUMBER, 5, .max = 1ull << 40, .flags = OPTIONAL),
	SKV_BOOL(T, any_mount, 6, .flags = SHORT),
	SKV_BOOL(T, read_chunk, 7, .flags = SHORT),
	SKV_BOOL(T, may_create, 8, .flags = SHORT),
	SKV_NUMBER(T, file, 9, .max = SKV_NO_FILE - 1, .flags = SHORT),
	SKV_NUMBER(T, length, 10, .max = INT64_MAX, .flags = OPTIONAL),
	SKV_LIST(T, ranges, MESSAGES, 11, .of = &range_table, .most = SKV_PUNCH_MAX,
		 .flags = SHORT),
	SKV_ROW(T, owner.incarnation, "incarnation", NUMBER, 12, .flags = SHORT),
	SKV_ROW(T, owner.nonce, "nonce", RAW_UUID, 13, .flags = SHORT),
	SKV_ROW(T, owner.horizon.epoch, "epoch", NUMBER, 14, .flags = SHORT),
	SKV_ROW(T, owner.horizon.number, "number", NUMBER, 15, .flags = SHORT),
	SKV_ROW(T, owner.horizon.generation, "generation", NUMBER, 16, .flags = SHORT),
};
static const struct skv_table request_table =
	SKV_TABLE("FsRequest", T, request_rows, .strict = true);

static const struct skv_field path_rows[] = {
	SKV_TEXT(T, path, 1, .min = 1, .max = SKV_FILE_PATH_MAX, .flags = REQUIRED),
};
static const struct skv_table path_table = SKV_TABLE("FsPath", T, path_rows, .strict = true);
#undef T

static const struct skv_table *request_of(enum skv_fs_verb verb)
{
	return verb == SKV_FS_LOOK ? &path_table : &request_table;
}

void skv_fs_write_request(struct skv_buf *out, enum skv_fs_verb verb,
			  const struct skv_fs_request *q)
{
	skv_table_write_json(request_of(verb), out, q);
}

/* The field that the verb needs and the request lacks; NULL: none. */
static const char *lacks(enum skv_fs_verb verb, const struct skv_fs_request *q)
{
	static const uint8_t none[SKV_STORAGE_NONCE];

	switch (verb) {
	case SKV_FS_CREATE:
	case SKV_FS_CHECK:
	case SKV_FS_MEND:
		return q->length ? NULL : "length";
	case SKV_FS_PUNCH:
		return !q->length ? "length" : q->n_ranges ? NULL : "ranges";
	case SKV_FS_CLAIM:
		if (memcmp(q->owner.nonce, none, sizeof none) == 0)
			return "nonce"; /* none: a damaged file, which may be disowned */
		return q->owner.incarnation ? NULL : "incarnation";
	case SKV_FS_DISOWN:
		return q->owner.incarnation ? NULL : "incarnation";
	default:
		return NULL;
	}
}

int skv_fs_read_request(struct skv_arena *a, enum skv_fs_verb verb, const char *text, size_t n,
			struct skv_fs_request *out, struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	int rc = skv_table_read_json(request_of(verb), &in, text, n, out, err);
	const char *field = rc == SKV_OK ? lacks(verb, out) : NULL;

	return field ? skv_fail(err, SKV_E_INVALID, field, "the field is required") : rc;
}

/* ---- answers --------------------------------------------------------------------------------- */

#define T struct skv_storage_owner
static const struct skv_field owner_rows[] = {
	SKV_NUMBER(T, incarnation, 1, .min = 1, .flags = REQUIRED),
	SKV_ROW(T, nonce, "nonce", RAW_UUID, 2, .flags = REQUIRED),
	SKV_ROW(T, horizon.epoch, "epoch", NUMBER, 3, .flags = SHORT),
	SKV_ROW(T, horizon.number, "number", NUMBER, 4, .flags = SHORT),
	SKV_ROW(T, horizon.generation, "generation", NUMBER, 5, .flags = SHORT),
};
static const struct skv_table owner_table = SKV_TABLE("FsOwner", T, owner_rows, .open = true);
#undef T

#define T struct skv_fs_answer
static const struct skv_field owners_rows[] = {
	SKV_LIST(T, owners, MESSAGES, 1, .of = &owner_table, .most = SKV_STORAGE_OWNERS,
		 .flags = REQUIRED),
};
static const struct skv_table owners_table = SKV_TABLE("FsOwners", T, owners_rows, .open = true);

static const struct skv_field measure_rows[] = {
	SKV_ROW(T, chunk, "chunk_size", NUMBER, 1, .flags = REQUIRED),
	SKV_NUMBER(T, free_bytes, 2, .flags = REQUIRED),
	SKV_NUMBER(T, total_bytes, 3, .flags = REQUIRED),
	SKV_ROW(T, epoch, "epoch", HEX, 4, .flags = SHORT),
	SKV_NUMBER(T, writing_ms, 5),
};
static const struct skv_table measure_table = SKV_TABLE("FsMeasure", T, measure_rows, .open = true);

static const struct skv_field look_rows[] = {
	SKV_ROW(T, look.fs, "fs", CHARS, 1, .min = 1, .flags = REQUIRED),
	SKV_ROW(T, look.fs_id, "fs_id", NUMBER, 2, .flags = REQUIRED),
	SKV_ROW(T, look.dir, "directory", NUMBER, 3, .flags = REQUIRED),
	SKV_ROW(T, look.inode, "inode", NUMBER, 4, .flags = REQUIRED),
	SKV_ROW(T, look.born_ns, "born_ns", NUMBER, 5, .flags = REQUIRED),
	SKV_ROW(T, look.length, "length", NUMBER, 6, .flags = REQUIRED),
};
static const struct skv_table look_table = SKV_TABLE("FsLook", T, look_rows, .open = true);
#undef T

static const struct skv_table *answer_of(enum skv_fs_verb verb)
{
	return verb == SKV_FS_OWNERS ? &owners_table
	       : verb == SKV_FS_LOOK ? &look_table
				     : &measure_table;
}

void skv_fs_write_answer(struct skv_buf *out, enum skv_fs_verb verb, const struct skv_fs_answer *r)
{
	skv_table_write_json(answer_of(verb), out, r);
}

int skv_fs_read_answer(struct skv_arena *a, enum skv_fs_verb verb, const char *text, size_t n,
		       struct skv_fs_answer *out, struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };

	return skv_table_read_json(answer_of(verb), &in, text, n, out, err);
}
