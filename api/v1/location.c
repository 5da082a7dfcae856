/*
 * location.c - files and locations of answers, written by the server, read by the client.
 *
 * A location names its file by a number, the index into the answer's `files`, so that thousands of
 * locations do not repeat one path. A client opens what these say, so the reader lets nothing
 * through that could leave the storage's root or pass the end of an address space.
 *
 * No state; any thread.
 */
#include "parts.h"
#include "pb.h"

#include <skv/superblock.h>

#include <string.h>

#define MAX_FILES 65536u /* of one answer, for the reader */

void skv_jout_files(struct skv_buf *b, const struct skv_files *files)
{
	skv_jout_name(b, "files");
	skv_jout_open(b, '[');
	for (uint32_t i = 0; i < files->n; i++) {
		const struct skv_file_ref *f = &files->v[i];

		skv_jout_open(b, '{');
		skv_jout_field_string(b, "type", f->type);
		skv_jout_field_string(b, "storage", f->storage);
		skv_jout_field_string(b, "uuid", f->uuid);
		skv_jout_field_string(b, "path", f->path);
		skv_jout_close(b, '}');
	}
	skv_jout_close(b, ']');
}

bool skv_path_is_inside(const char *path)
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

static void read_file(struct skv_jdoc *d, const struct skv_jat *at, struct skv_file_ref *out)
{
	struct skv_jat type = skv_jat_get(at, "type"), storage = skv_jat_get(at, "storage"),
		       uuid = skv_jat_get(at, "uuid"), path = skv_jat_get(at, "path");
	uint8_t bytes[16];
	const char *s;

	out->type = skv_jat_name(d, &type);
	out->storage = skv_jat_name(d, &storage);
	s = skv_jat_string(d, &uuid, 36, 36);
	if (skv_jdoc_ok(d) && skv_uuid_from_text(s, bytes) != SKV_OK)
		skv_jdoc_fail(d, &uuid, SKV_E_INVALID, "is not a UUID");
	else
		memcpy(out->uuid, s, strlen(s) + 1);
	s = skv_jat_string(d, &path, 0, sizeof out->path - 1);
	if (skv_jdoc_ok(d) && *s && !skv_path_is_inside(s))
		skv_jdoc_fail(d, &path, SKV_E_INVALID, "is not a path below the storage's root");
	else
		memcpy(out->path, s, strlen(s) + 1);
}

void skv_jat_files(struct skv_jdoc *d, const struct skv_jat *object, struct skv_files *out)
{
	struct skv_jat files = skv_jat_get(object, "files");
	uint32_t n = skv_jat_array(d, &files, 0, MAX_FILES);
	struct skv_jat item = skv_jat_first(&files);

	out->n = 0;
	out->v = skv_jdoc_alloc(d, n, sizeof *out->v);
	for (uint32_t i = 0; out->v && i < n; i++, skv_jat_next(&item)) {
		skv_jat_object(d, &item, NULL);
		read_file(d, &item, &out->v[i]);
	}
	if (skv_jdoc_ok(d))
		out->n = n;
}

static char *raw_location(char *p, const struct skv_location *loc)
{
	if (loc->length == 0)
		return skv_jraw_text(p, "null");
	p = skv_jraw_text(p, "{\"file\":");
	p = skv_jraw_digits(p, loc->file);
	p = skv_jraw_text(p, ",\"offset\":");
	p = skv_jraw_u64(p, loc->offset);
	p = skv_jraw_text(p, ",\"length\":");
	p = skv_jraw_u64(p, loc->length);
	p = skv_jraw_text(p, ",\"generation\":");
	p = skv_jraw_u64_string(p, loc->generation);
	if (loc->has_checksum) {
		p = skv_jraw_text(p, ",\"checksum\":");
		p = skv_jraw_hex64(p, loc->checksum);
	}
	*p++ = '}';
	return p;
}

void skv_jout_location(struct skv_buf *b, const struct skv_location *loc)
{
	char *p = skv_jraw_begin(b, SKV_JRAW_LOCATION);

	if (p)
		skv_jraw_end(b, raw_location(p, loc));
}

char *skv_jraw_locations(char *p, const char *name, const struct skv_location *loc, uint32_t n)
{
	p = skv_jraw_text(p, ",\"");
	p = skv_jraw_bytes(p, name, strlen(name));
	p = skv_jraw_text(p, "\":[");
	for (uint32_t i = 0; i < n; i++) {
		if (i > 0)
			*p++ = ',';
		p = raw_location(p, &loc[i]);
	}
	*p++ = ']';
	return p;
}

static void read_location(struct skv_jdoc *d, const struct skv_jat *at, uint32_t n_files,
			  struct skv_location *out)
{
	struct skv_jat file = skv_jat_get(at, "file"), offset = skv_jat_get(at, "offset"),
		       length = skv_jat_get(at, "length"),
		       generation = skv_jat_get(at, "generation"),
		       checksum = skv_jat_get(at, "checksum");

	skv_jat_object(d, at, NULL);
	out->file = skv_jat_u32(d, &file, 0, UINT32_MAX);
	if (skv_jdoc_ok(d) && out->file >= n_files)
		skv_jdoc_fail(d, &file, SKV_E_INVALID, "must be below %u: there are no more files",
			      n_files);
	out->length = skv_jat_u64(d, &length, 1, INT64_MAX);
	/* File offsets are signed, and so must be the end. */
	out->offset = skv_jat_u64(d, &offset, 0, INT64_MAX - out->length);
	out->generation = skv_jat_u64(d, &generation, 0, UINT64_MAX);
	out->has_checksum = checksum.v != NULL;
	if (checksum.v)
		out->checksum = skv_jat_hex64(d, &checksum);
}

void skv_jat_locations(struct skv_jdoc *d, const struct skv_jat *object, const char *name,
		       uint32_t n_files, struct skv_location *loc, uint32_t n)
{
	struct skv_jat array = skv_jat_get(object, name), item = skv_jat_first(&array);

	skv_jat_array(d, &array, n, n);
	for (uint32_t i = 0; skv_jdoc_ok(d) && i < n; i++, skv_jat_next(&item))
		if (!skv_jat_is(&item, SKV_JSON_NULL))
			read_location(d, &item, n_files, &loc[i]);
}
