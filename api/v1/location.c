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

#include <kvb/superblock.h>

#include <string.h>

#define MAX_FILES 65536u /* of one answer, for the reader */

void kvb_jout_files(struct kvb_buf *b, const struct kvb_files *files)
{
	kvb_jout_name(b, "files");
	kvb_jout_open(b, '[');
	for (uint32_t i = 0; i < files->n; i++) {
		const struct kvb_file_ref *f = &files->v[i];

		kvb_jout_open(b, '{');
		kvb_jout_field_string(b, "type", f->type);
		kvb_jout_field_string(b, "storage", f->storage);
		kvb_jout_field_string(b, "uuid", f->uuid);
		kvb_jout_field_string(b, "path", f->path);
		kvb_jout_close(b, '}');
	}
	kvb_jout_close(b, ']');
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

static void read_file(struct kvb_jdoc *d, const struct kvb_jat *at, struct kvb_file_ref *out)
{
	struct kvb_jat type = kvb_jat_get(at, "type"), storage = kvb_jat_get(at, "storage"),
		       uuid = kvb_jat_get(at, "uuid"), path = kvb_jat_get(at, "path");
	uint8_t bytes[16];
	const char *s;

	out->type = kvb_jat_name(d, &type);
	out->storage = kvb_jat_name(d, &storage);
	s = kvb_jat_string(d, &uuid, 36, 36);
	if (kvb_jdoc_ok(d) && kvb_uuid_from_text(s, bytes) != KVB_OK)
		kvb_jdoc_fail(d, &uuid, KVB_E_INVALID, "is not a UUID");
	else
		memcpy(out->uuid, s, strlen(s) + 1);
	s = kvb_jat_string(d, &path, 0, sizeof out->path - 1);
	if (kvb_jdoc_ok(d) && *s && !path_is_inside(s))
		kvb_jdoc_fail(d, &path, KVB_E_INVALID, "is not a path below the storage's root");
	else
		memcpy(out->path, s, strlen(s) + 1);
}

void kvb_jat_files(struct kvb_jdoc *d, const struct kvb_jat *object, struct kvb_files *out)
{
	struct kvb_jat files = kvb_jat_get(object, "files");
	uint32_t n = kvb_jat_array(d, &files, 0, MAX_FILES);
	struct kvb_jat item = kvb_jat_first(&files);

	out->n = 0;
	out->v = kvb_jdoc_alloc(d, n, sizeof *out->v);
	for (uint32_t i = 0; out->v && i < n; i++, kvb_jat_next(&item)) {
		kvb_jat_object(d, &item, NULL);
		read_file(d, &item, &out->v[i]);
	}
	if (kvb_jdoc_ok(d))
		out->n = n;
}

static char *raw_location(char *p, const struct kvb_location *loc)
{
	if (loc->length == 0)
		return kvb_jraw_text(p, "null");
	p = kvb_jraw_text(p, "{\"file\":");
	p = kvb_jraw_digits(p, loc->file);
	p = kvb_jraw_text(p, ",\"offset\":");
	p = kvb_jraw_u64(p, loc->offset);
	p = kvb_jraw_text(p, ",\"length\":");
	p = kvb_jraw_u64(p, loc->length);
	p = kvb_jraw_text(p, ",\"generation\":");
	p = kvb_jraw_u64_string(p, loc->generation);
	if (loc->has_checksum) {
		p = kvb_jraw_text(p, ",\"checksum\":");
		p = kvb_jraw_hex64(p, loc->checksum);
	}
	*p++ = '}';
	return p;
}

void kvb_jout_location(struct kvb_buf *b, const struct kvb_location *loc)
{
	char *p = kvb_jraw_begin(b, KVB_JRAW_LOCATION);

	if (p)
		kvb_jraw_end(b, raw_location(p, loc));
}

char *kvb_jraw_locations(char *p, const struct kvb_location *loc, uint32_t n)
{
	p = kvb_jraw_text(p, ",\"locations\":[");
	for (uint32_t i = 0; i < n; i++) {
		if (i > 0)
			*p++ = ',';
		p = raw_location(p, &loc[i]);
	}
	*p++ = ']';
	return p;
}

static void read_location(struct kvb_jdoc *d, const struct kvb_jat *at, uint32_t n_files,
			  struct kvb_location *out)
{
	struct kvb_jat file = kvb_jat_get(at, "file"), offset = kvb_jat_get(at, "offset"),
		       length = kvb_jat_get(at, "length"), generation = kvb_jat_get(at, "generation"),
		       checksum = kvb_jat_get(at, "checksum");

	kvb_jat_object(d, at, NULL);
	out->file = kvb_jat_u32(d, &file, 0, UINT32_MAX);
	if (kvb_jdoc_ok(d) && out->file >= n_files)
		kvb_jdoc_fail(d, &file, KVB_E_INVALID, "there are only %u files", n_files);
	out->length = kvb_jat_u64(d, &length, 1, INT64_MAX);
	/* File offsets are signed, and so must be the end. */
	out->offset = kvb_jat_u64(d, &offset, 0, INT64_MAX - out->length);
	out->generation = kvb_jat_u64(d, &generation, 0, UINT64_MAX);
	out->has_checksum = checksum.v != NULL;
	if (checksum.v)
		out->checksum = kvb_jat_hex64(d, &checksum);
}

void kvb_jat_locations(struct kvb_jdoc *d, const struct kvb_jat *object, uint32_t n_files,
		       struct kvb_location *loc, uint32_t n)
{
	struct kvb_jat array = kvb_jat_get(object, "locations"), item = kvb_jat_first(&array);

	kvb_jat_array(d, &array, n, n);
	for (uint32_t i = 0; kvb_jdoc_ok(d) && i < n; i++, kvb_jat_next(&item))
		if (!kvb_jat_is(&item, KVB_JSON_NULL))
			read_location(d, &item, n_files, &loc[i]);
}
