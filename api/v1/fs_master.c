/*
 * fs_master.c - the messages of skv/fs_master.h. Errors are those of the native API (error.c).
 *
 * No state; any thread.
 */
#include "parts.h"

#include <skv/fs_master.h>
#include <skv/superblock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *skv_fs_verb_text(enum skv_fs_verb verb)
{
	static const char *const text[] = {
#define VERB_TEXT(name, s) s,
		SKV_FS_VERBS(VERB_TEXT)
#undef VERB_TEXT
	};

	return text[verb];
}

static bool of_file(enum skv_fs_verb verb)
{
	return (verb >= SKV_FS_CREATE && verb <= SKV_FS_PUNCH) || verb == SKV_FS_MEND;
}

static bool of_owner(enum skv_fs_verb verb)
{
	return verb == SKV_FS_CLAIM || verb == SKV_FS_DISOWN;
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* A nonce has the length of a UUID, and so its text. */
static void write_owner(struct skv_buf *out, const struct skv_fs_owner *o)
{
	char nonce[37];

	skv_uuid_to_text(o->nonce, nonce);
	skv_jout_field_u64(out, "incarnation", o->incarnation);
	skv_jout_field_string(out, "nonce", nonce);
	if (!o->number)
		return;
	skv_jout_field_u64(out, "epoch", o->epoch);
	skv_jout_field_u64(out, "number", o->number);
	skv_jout_field_u64(out, "generation", o->generation);
}

static uint64_t read_number(struct skv_jdoc *d, const struct skv_jat *of, const char *name)
{
	struct skv_jat at = skv_jat_get(of, name);

	return at.v ? skv_jat_u64(d, &at, 0, UINT64_MAX) : 0;
}

static void read_owner(struct skv_jdoc *d, const struct skv_jat *of, struct skv_fs_owner *o)
{
	struct skv_jat incarnation = skv_jat_get(of, "incarnation"),
		       nonce = skv_jat_get(of, "nonce");
	const char *text;

	o->incarnation = skv_jat_u64(d, &incarnation, 1, UINT64_MAX);
	text = skv_jat_string(d, &nonce, 36, 36);
	if (skv_jdoc_ok(d) && skv_uuid_from_text(text, o->nonce) != SKV_OK)
		skv_jdoc_fail(d, &nonce, SKV_E_INVALID, "is not a nonce");
	o->epoch = read_number(d, of, "epoch");
	o->number = read_number(d, of, "number");
	o->generation = read_number(d, of, "generation");
}

/* ---- requests -------------------------------------------------------------------------------- */

void skv_fs_write_request(struct skv_buf *out, enum skv_fs_verb verb,
			  const struct skv_fs_request *q)
{
	char uuid[37];

	if (verb == SKV_FS_LOOK) {
		skv_jout_begin(out);
		skv_jout_field_string(out, "path", q->path);
		skv_jout_close(out, '}');
		return;
	}
	skv_uuid_to_text(q->uuid, uuid);
	skv_jout_begin(out);
	skv_jout_field_string(out, "storage", q->storage);
	skv_jout_field_string(out, "type", q->type);
	skv_jout_field_string(out, "uuid", uuid);
	skv_jout_field_u64(out, "unit", q->unit);
	skv_jout_field_u64(out, "chunk_size", q->chunk);
	skv_jout_field_bool(out, "any_mount", q->any_mount);
	if (verb == SKV_FS_OPEN) {
		skv_jout_field_bool(out, "read_chunk", q->read_chunk);
		skv_jout_field_bool(out, "may_create", q->may_create);
	}
	if (of_file(verb))
		skv_jout_field_u64(out, "file", q->file);
	if (of_file(verb) && verb != SKV_FS_DELETE)
		skv_jout_field_u64(out, "length", q->length);
	if (of_owner(verb))
		write_owner(out, &q->owner);
	if (verb == SKV_FS_PUNCH) {
		skv_jout_name(out, "ranges");
		skv_jout_open(out, '[');
		for (uint32_t i = 0; i < q->n_ranges; i++) {
			skv_jout_open(out, '[');
			skv_jout_u64(out, q->ranges[i][0]);
			skv_jout_u64(out, q->ranges[i][1]);
			skv_jout_close(out, ']');
		}
		skv_jout_close(out, ']');
	}
	skv_jout_close(out, '}');
}

static void read_ranges(struct skv_jdoc *d, const struct skv_jat *top, struct skv_fs_request *q)
{
	struct skv_jat at = skv_jat_get(top, "ranges"), item;
	uint64_t(*v)[2];

	q->n_ranges = skv_jat_array(d, &at, 1, SKV_FS_RANGES);
	v = skv_jdoc_alloc(d, q->n_ranges + 1, sizeof *v);
	item = skv_jat_first(&at);
	for (uint32_t i = 0; v && i < q->n_ranges && skv_jdoc_ok(d); i++, skv_jat_next(&item)) {
		struct skv_jat end;

		if (skv_jat_array(d, &item, 2, 2) != 2)
			break;
		end = skv_jat_first(&item);
		v[i][0] = skv_jat_u64(d, &end, 0, INT64_MAX);
		skv_jat_next(&end);
		v[i][1] = skv_jat_u64(d, &end, 0, INT64_MAX);
	}
	q->ranges = (const uint64_t(*)[2])v;
}

static void read_storage_of(struct skv_jdoc *d, const struct skv_jat *top, struct skv_fs_request *q)
{
	static const char *const types[] = { "file", "hf3fs", "memory", NULL };
	struct skv_jat storage = skv_jat_get(top, "storage"), type = skv_jat_get(top, "type"),
		       uuid = skv_jat_get(top, "uuid"), unit = skv_jat_get(top, "unit"),
		       chunk = skv_jat_get(top, "chunk_size"), any = skv_jat_get(top, "any_mount");
	const char *text;

	q->storage = skv_jat_name(d, &storage);
	q->type = types[skv_jat_word(d, &type, types)];
	text = skv_jat_string(d, &uuid, 36, 36);
	if (skv_jdoc_ok(d) && skv_uuid_from_text(text, q->uuid) != SKV_OK)
		skv_jdoc_fail(d, &uuid, SKV_E_INVALID, "is not a UUID");
	q->unit = skv_jat_size(d, &unit, 1, 1ull << 40);
	q->chunk = chunk.v ? skv_jat_size(d, &chunk, 0, 1ull << 40) : 0;
	q->any_mount = any.v && skv_jat_bool(d, &any);
}

static int read_request(struct skv_arena *a, enum skv_fs_verb verb, const char *text, size_t n,
			struct skv_fs_request *out, struct skv_error *err)
{
	static const char *const fields[] = {
		"storage",    "type", "uuid",   "unit",   "chunk_size",  "any_mount", "read_chunk",
		"may_create", "file", "length", "ranges", "incarnation", "nonce",
		"epoch", "number", "generation", NULL
	};
	const struct skv_v1_in in = { .arena = a };
	struct skv_fs_request q = { .file = 0 };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, &in, text, n, SKV_JMAX_OBJECT, err);
	struct skv_jat read_chunk = skv_jat_get(&top, "read_chunk"),
		       may_create = skv_jat_get(&top, "may_create"),
		       file = skv_jat_get(&top, "file"), length = skv_jat_get(&top, "length");

	skv_jat_object(&d, &top, fields);
	read_storage_of(&d, &top, &q);
	q.read_chunk = read_chunk.v && skv_jat_bool(&d, &read_chunk);
	q.may_create = may_create.v && skv_jat_bool(&d, &may_create);
	if (of_file(verb))
		q.file = skv_jat_u32(&d, &file, 0, SKV_NO_FILE - 1);
	if (of_file(verb) && verb != SKV_FS_DELETE)
		q.length = skv_jat_size(&d, &length, 1, INT64_MAX);
	if (of_owner(verb))
		read_owner(&d, &top, &q.owner);
	if (verb == SKV_FS_PUNCH)
		read_ranges(&d, &top, &q);
	if (skv_jdoc_ok(&d))
		*out = q;
	return skv_jdoc_close(&d);
}

static int read_look_request(struct skv_arena *a, const char *text, size_t n,
			     struct skv_fs_request *out, struct skv_error *err)
{
	static const char *const fields[] = { "path", NULL };
	const struct skv_v1_in in = { .arena = a };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, &in, text, n, SKV_JMAX_OBJECT, err),
		       path = skv_jat_get(&top, "path");
	const char *s;

	skv_jat_object(&d, &top, fields);
	s = skv_jat_string(&d, &path, 1, SKV_FILE_PATH_MAX);
	if (skv_jdoc_ok(&d))
		*out = (struct skv_fs_request){ .path = s };
	return skv_jdoc_close(&d);
}

int skv_fs_read_request(struct skv_arena *a, enum skv_fs_verb verb, const char *text, size_t n,
			struct skv_fs_request *out, struct skv_error *err)
{
	return verb == SKV_FS_LOOK ? read_look_request(a, text, n, out, err)
				   : read_request(a, verb, text, n, out, err);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void write_owners(struct skv_buf *out, const struct skv_fs_answer *r)
{
	skv_jout_name(out, "owners");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < r->n_owners; i++) {
		skv_jout_open(out, '{');
		write_owner(out, &r->owners[i]);
		skv_jout_close(out, '}');
	}
	skv_jout_close(out, ']');
}

static void write_look(struct skv_buf *out, const struct skv_file_look *l)
{
	skv_jout_field_string(out, "fs", l->fs);
	skv_jout_field_u64(out, "fs_id", l->fs_id);
	skv_jout_field_u64(out, "directory", l->dir);
	skv_jout_field_u64(out, "inode", l->inode);
	skv_jout_field_u64(out, "born_ns", l->born_ns);
	skv_jout_field_u64(out, "length", l->length);
}

void skv_fs_write_answer(struct skv_buf *out, enum skv_fs_verb verb, const struct skv_fs_answer *r)
{
	skv_jout_begin(out);
	if (verb == SKV_FS_OWNERS) {
		write_owners(out, r);
	} else if (verb == SKV_FS_LOOK) {
		write_look(out, &r->look);
	} else {
		skv_jout_field_u64(out, "chunk_size", r->chunk);
		skv_jout_field_u64(out, "free_bytes", r->free_bytes);
		skv_jout_field_u64(out, "total_bytes", r->total_bytes);
		if (r->epoch) {
			skv_jout_name(out, "epoch");
			skv_jout_hex64(out, r->epoch);
			skv_jout_field_u64(out, "writing_ms", r->writing_ms);
		}
	}
	skv_jout_close(out, '}');
}

static void read_owners(struct skv_jdoc *d, const struct skv_jat *top, struct skv_fs_answer *r)
{
	struct skv_jat at = skv_jat_get(top, "owners"), item;
	uint32_t n = skv_jat_array(d, &at, 0, SKV_FS_OWNERS_MAX);

	item = skv_jat_first(&at);
	for (; r->n_owners < n && skv_jdoc_ok(d); r->n_owners++, skv_jat_next(&item))
		read_owner(d, &item, &r->owners[r->n_owners]);
}

static void read_look(struct skv_jdoc *d, const struct skv_jat *top, struct skv_file_look *l)
{
	struct skv_jat fs = skv_jat_get(top, "fs"), fs_id = skv_jat_get(top, "fs_id"),
		       dir = skv_jat_get(top, "directory"), inode = skv_jat_get(top, "inode"),
		       born = skv_jat_get(top, "born_ns"), length = skv_jat_get(top, "length");
	const char *text = skv_jat_string(d, &fs, 1, sizeof l->fs - 1);

	l->fs_id = skv_jat_u64(d, &fs_id, 0, UINT64_MAX);
	l->dir = skv_jat_u64(d, &dir, 0, UINT64_MAX);
	l->inode = skv_jat_u64(d, &inode, 0, UINT64_MAX);
	l->born_ns = skv_jat_u64(d, &born, 0, UINT64_MAX);
	l->length = skv_jat_u64(d, &length, 0, UINT64_MAX);
	if (skv_jdoc_ok(d))
		snprintf(l->fs, sizeof l->fs, "%s", text);
}

static void read_measure(struct skv_jdoc *d, const struct skv_jat *top, struct skv_fs_answer *r)
{
	struct skv_jat chunk = skv_jat_get(top, "chunk_size"),
		       left = skv_jat_get(top, "free_bytes"),
		       total = skv_jat_get(top, "total_bytes"),
		       epoch = skv_jat_get(top, "epoch"), writing = skv_jat_get(top, "writing_ms");

	r->chunk = skv_jat_u64(d, &chunk, 0, UINT64_MAX);
	r->free_bytes = skv_jat_u64(d, &left, 0, UINT64_MAX);
	r->total_bytes = skv_jat_u64(d, &total, 0, UINT64_MAX);
	if (!epoch.v)
		return;
	r->epoch = strtoull(skv_jat_string(d, &epoch, 16, 16), NULL, 16);
	r->writing_ms = skv_jat_u64(d, &writing, 0, UINT64_MAX);
}

int skv_fs_read_answer(struct skv_arena *a, enum skv_fs_verb verb, const char *text, size_t n,
		       struct skv_fs_answer *out, struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	struct skv_fs_answer r = { 0 };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, &in, text, n, SKV_JMAX_OBJECT, err);

	if (verb == SKV_FS_OWNERS)
		read_owners(&d, &top, &r);
	else if (verb == SKV_FS_LOOK)
		read_look(&d, &top, &r.look);
	else
		read_measure(&d, &top, &r);
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}
