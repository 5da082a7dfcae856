/*
 * location.c - files and locations of answers, written by the server, read by the client.
 *
 * A location names its file by a number, the index into the answer's `files`, so that thousands of
 * locations do not repeat one path. A client opens what these say, so the reader lets nothing through
 * that could leave the storage's root or pass the end of an address space.
 *
 * No state; any thread.
 */
#include "parts.h"

#include <skv/superblock.h>

#include <string.h>

#define MAX_FILES 65536u /* of one answer, for the reader */

void ref_jout_files(struct skv_buf *b, const struct skv_files *files)
{
	ref_jout_name(b, "files");
	ref_jout_open(b, '[');
	for (uint32_t i = 0; i < files->n; i++) {
		const struct skv_file_ref *f = &files->v[i];

		ref_jout_open(b, '{');
		ref_jout_field_string(b, "type", f->type);
		ref_jout_field_string(b, "storage", f->storage);
		ref_jout_field_string(b, "uuid", f->uuid);
		ref_jout_field_string(b, "path", f->path);
		ref_jout_close(b, '}');
	}
	ref_jout_close(b, ']');
}

/* Relative, no empty, "." or ".." component. */
static bool path_is_inside(const char *path)
{
	for (const char *p = path;; p++) {
		size_t n = strcspn(p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n;
		if (!*p)
			return true;
	}
}

static void read_file(struct ref_jdoc *d, const struct ref_jat *at, struct skv_file_ref *out)
{
	struct ref_jat type = ref_jat_get(at, "type"), storage = ref_jat_get(at, "storage"),
		       uuid = ref_jat_get(at, "uuid"), path = ref_jat_get(at, "path");
	uint8_t bytes[16];
	const char *s;

	out->type = ref_jat_name(d, &type);
	out->storage = ref_jat_name(d, &storage);
	s = ref_jat_string(d, &uuid, 36, 36);
	if (ref_jdoc_ok(d) && skv_uuid_from_text(s, bytes) != SKV_OK)
		ref_jdoc_fail(d, &uuid, SKV_E_INVALID, "is not a UUID");
	else
		memcpy(out->uuid, s, strlen(s) + 1);
	s = ref_jat_string(d, &path, 0, sizeof out->path - 1);
	if (ref_jdoc_ok(d) && *s && !path_is_inside(s))
		ref_jdoc_fail(d, &path, SKV_E_INVALID, "is not a path below the storage's root");
	else
		memcpy(out->path, s, strlen(s) + 1);
}

void ref_jat_files(struct ref_jdoc *d, const struct ref_jat *object, struct skv_files *out)
{
	struct ref_jat files = ref_jat_get(object, "files");
	uint32_t n = ref_jat_array(d, &files, 0, MAX_FILES);

	out->n = 0;
	out->v = ref_jdoc_alloc(d, n, sizeof *out->v);
	for (uint32_t i = 0; out->v && i < n; i++) {
		struct ref_jat item = ref_jat_item(&files, i);

		ref_jat_object(d, &item, NULL);
		read_file(d, &item, &out->v[i]);
	}
	if (ref_jdoc_ok(d))
		out->n = n;
}

void ref_jout_location(struct skv_buf *b, const struct skv_location *loc)
{
	if (loc->length == 0) {
		ref_jout_null(b);
		return;
	}
	ref_jout_open(b, '{');
	ref_jout_field_u64(b, "file", loc->file);
	ref_jout_field_u64(b, "offset", loc->offset);
	ref_jout_field_u64(b, "length", loc->length);
	ref_jout_name(b, "generation");
	ref_jout_u64_string(b, loc->generation);
	if (loc->has_checksum) {
		ref_jout_name(b, "checksum");
		ref_jout_hex64(b, loc->checksum);
	}
	ref_jout_close(b, '}');
}

void ref_jout_locations(struct skv_buf *b, const struct skv_location *loc, uint32_t n)
{
	ref_jout_name(b, "locations");
	ref_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++)
		ref_jout_location(b, &loc[i]);
	ref_jout_close(b, ']');
}

static void read_location(struct ref_jdoc *d, const struct ref_jat *at, uint32_t n_files,
			  struct skv_location *out)
{
	struct ref_jat file = ref_jat_get(at, "file"), offset = ref_jat_get(at, "offset"),
		       length = ref_jat_get(at, "length"), generation = ref_jat_get(at, "generation"),
		       checksum = ref_jat_get(at, "checksum");

	ref_jat_object(d, at, NULL);
	out->file = ref_jat_u32(d, &file, 0, UINT32_MAX);
	if (ref_jdoc_ok(d) && out->file >= n_files)
		ref_jdoc_fail(d, &file, SKV_E_INVALID, "there are only %u files", n_files);
	out->length = ref_jat_u64(d, &length, 1, INT64_MAX);
	/* File offsets are signed, and so must be the end. */
	out->offset = ref_jat_u64(d, &offset, 0, INT64_MAX - out->length);
	out->generation = ref_jat_u64(d, &generation, 0, UINT64_MAX);
	out->has_checksum = checksum.v != NULL;
	if (checksum.v)
		out->checksum = ref_jat_hex64(d, &checksum);
}

void ref_jat_locations(struct ref_jdoc *d, const struct ref_jat *object, uint32_t n_files,
		       struct skv_location *loc, uint32_t n)
{
	struct ref_jat array = ref_jat_get(object, "locations");

	ref_jat_array(d, &array, n, n);
	for (uint32_t i = 0; ref_jdoc_ok(d) && i < n; i++) {
		struct ref_jat item = ref_jat_item(&array, i);

		if (!json_is_null(item.v))
			read_location(d, &item, n_files, &loc[i]);
	}
}
