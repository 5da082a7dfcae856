/*
 * fs_master.c - the messages of kvb/fs_master.h. Errors are those of the native API (error.c).
 *
 * No state; any thread.
 */
#include "parts.h"

#include <kvb/fs_master.h>
#include <kvb/superblock.h>

#include <string.h>

const char *kvb_fs_verb_text(enum kvb_fs_verb verb)
{
	static const char *const text[] = {
#define VERB_TEXT(name, s) s,
		KVB_FS_VERBS(VERB_TEXT)
#undef VERB_TEXT
	};

	return text[verb];
}

static bool of_file(enum kvb_fs_verb verb) { return verb >= KVB_FS_CREATE; }

void kvb_fs_write_request(struct kvb_buf *out, enum kvb_fs_verb verb, const struct kvb_fs_request *q)
{
	char uuid[37];

	kvb_uuid_to_text(q->uuid, uuid);
	kvb_jout_begin(out);
	kvb_jout_field_string(out, "storage", q->storage);
	kvb_jout_field_string(out, "type", q->type);
	kvb_jout_field_string(out, "uuid", uuid);
	kvb_jout_field_u64(out, "unit", q->unit);
	kvb_jout_field_u64(out, "chunk_size", q->chunk);
	kvb_jout_field_bool(out, "any_mount", q->any_mount);
	if (verb == KVB_FS_OPEN) {
		kvb_jout_field_bool(out, "read_chunk", q->read_chunk);
		kvb_jout_field_bool(out, "may_create", q->may_create);
	}
	if (of_file(verb))
		kvb_jout_field_u64(out, "file", q->file);
	if (of_file(verb) && verb != KVB_FS_DELETE)
		kvb_jout_field_u64(out, "length", q->length);
	if (verb == KVB_FS_PUNCH) {
		kvb_jout_name(out, "ranges");
		kvb_jout_open(out, '[');
		for (uint32_t i = 0; i < q->n_ranges; i++) {
			kvb_jout_open(out, '[');
			kvb_jout_u64(out, q->ranges[i][0]);
			kvb_jout_u64(out, q->ranges[i][1]);
			kvb_jout_close(out, ']');
		}
		kvb_jout_close(out, ']');
	}
	kvb_jout_close(out, '}');
}

static void read_ranges(struct kvb_jdoc *d, const struct kvb_jat *top, struct kvb_fs_request *q)
{
	struct kvb_jat at = kvb_jat_get(top, "ranges"), item;
	uint64_t(*v)[2];

	q->n_ranges = kvb_jat_array(d, &at, 1, KVB_FS_RANGES);
	v = kvb_jdoc_alloc(d, q->n_ranges + 1, sizeof *v);
	item = kvb_jat_first(&at);
	for (uint32_t i = 0; v && i < q->n_ranges && kvb_jdoc_ok(d); i++, kvb_jat_next(&item)) {
		struct kvb_jat end;

		if (kvb_jat_array(d, &item, 2, 2) != 2)
			break;
		end = kvb_jat_first(&item);
		v[i][0] = kvb_jat_u64(d, &end, 0, INT64_MAX);
		kvb_jat_next(&end);
		v[i][1] = kvb_jat_u64(d, &end, 0, INT64_MAX);
	}
	q->ranges = (const uint64_t(*)[2])v;
}

static void read_storage_of(struct kvb_jdoc *d, const struct kvb_jat *top, struct kvb_fs_request *q)
{
	static const char *const types[] = { "file", "hf3fs", NULL };
	struct kvb_jat storage = kvb_jat_get(top, "storage"), type = kvb_jat_get(top, "type"),
		       uuid = kvb_jat_get(top, "uuid"), unit = kvb_jat_get(top, "unit"),
		       chunk = kvb_jat_get(top, "chunk_size"), any = kvb_jat_get(top, "any_mount");
	const char *text;

	q->storage = kvb_jat_name(d, &storage);
	q->type = types[kvb_jat_word(d, &type, types)];
	text = kvb_jat_string(d, &uuid, 36, 36);
	if (kvb_jdoc_ok(d) && kvb_uuid_from_text(text, q->uuid) != KVB_OK)
		kvb_jdoc_fail(d, &uuid, KVB_E_INVALID, "is not a UUID");
	q->unit = kvb_jat_size(d, &unit, 1, 1ull << 40);
	q->chunk = chunk.v ? kvb_jat_size(d, &chunk, 0, 1ull << 40) : 0;
	q->any_mount = any.v && kvb_jat_bool(d, &any);
}

int kvb_fs_read_request(struct kvb_arena *a, enum kvb_fs_verb verb, const char *text, size_t n, struct kvb_fs_request *out,
			struct kvb_error *err)
{
	static const char *const fields[] = { "storage", "type", "uuid", "unit", "chunk_size", "any_mount", "read_chunk",
					      "may_create", "file", "length", "ranges", NULL };
	const struct kvb_v1_in in = { .arena = a };
	struct kvb_fs_request q = { .file = 0 };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, &in, text, n, KVB_JREQUEST, KVB_JMAX_OBJECT, err);
	struct kvb_jat read_chunk = kvb_jat_get(&top, "read_chunk"), may_create = kvb_jat_get(&top, "may_create"),
		       file = kvb_jat_get(&top, "file"), length = kvb_jat_get(&top, "length");

	kvb_jat_object(&d, &top, fields);
	read_storage_of(&d, &top, &q);
	q.read_chunk = read_chunk.v && kvb_jat_bool(&d, &read_chunk);
	q.may_create = may_create.v && kvb_jat_bool(&d, &may_create);
	if (of_file(verb))
		q.file = kvb_jat_u32(&d, &file, 0, KVB_NO_FILE - 1);
	if (of_file(verb) && verb != KVB_FS_DELETE)
		q.length = kvb_jat_size(&d, &length, 1, INT64_MAX);
	if (verb == KVB_FS_PUNCH)
		read_ranges(&d, &top, &q);
	if (kvb_jdoc_ok(&d))
		*out = q;
	return kvb_jdoc_close(&d);
}

void kvb_fs_write_answer(struct kvb_buf *out, const struct kvb_fs_answer *r)
{
	kvb_jout_begin(out);
	kvb_jout_field_u64(out, "chunk_size", r->chunk);
	kvb_jout_field_u64(out, "free_bytes", r->free_bytes);
	kvb_jout_field_u64(out, "total_bytes", r->total_bytes);
	kvb_jout_close(out, '}');
}

int kvb_fs_read_answer(struct kvb_arena *a, const char *text, size_t n, struct kvb_fs_answer *out, struct kvb_error *err)
{
	const struct kvb_v1_in in = { .arena = a };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, &in, text, n, KVB_JANSWER, KVB_JMAX_OBJECT, err);
	struct kvb_jat chunk = kvb_jat_get(&top, "chunk_size"), left = kvb_jat_get(&top, "free_bytes"),
		       total = kvb_jat_get(&top, "total_bytes");
	struct kvb_fs_answer r = { kvb_jat_u64(&d, &chunk, 0, UINT64_MAX), kvb_jat_u64(&d, &left, 0, UINT64_MAX),
				   kvb_jat_u64(&d, &total, 0, UINT64_MAX) };

	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}
