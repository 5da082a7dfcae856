/*
 * location.c - files, locations and blocks of answers in JSON.
 *
 * A location names its file by a number, the index into the answer's `files`, so that thousands of
 * locations do not repeat one path.
 *
 * No state; any thread.
 */
#include "parts.h"

#include <skv/check.h>
#include <string.h>

#define LOCATION_MAX ((size_t)192) /* bytes, with the framing of a column */

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
	char *p = skv_jraw_begin(b, LOCATION_MAX);

	if (p)
		skv_jraw_end(b, raw_location(p, loc));
}

/* Field `name`: a location for each spec. */
static char *raw_locations(char *p, const char *name, const struct skv_location *loc, uint32_t n)
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

void skv_jout_block(struct skv_buf *b, uint32_t index, const char *outcome,
		    const struct skv_location *loc, const struct skv_location *copy, uint32_t n)
{
	char *p = skv_jraw_begin(b, 96 + ((loc != NULL) + (copy != NULL)) * n * LOCATION_MAX);

	if (!p)
		return;
	SKV_CHECK(b->len > 0 && n <= SKV_MAX_SPECS);
	if (p[-1] != '[')
		*p++ = ',';
	p = skv_jraw_text(p, "{\"index\":");
	p = skv_jraw_digits(p, index);
	if (outcome) {
		p = skv_jraw_text(p, ",\"outcome\":\"");
		p = skv_jraw_bytes(p, outcome, strlen(outcome));
		*p++ = '"';
	}
	if (loc)
		p = raw_locations(p, "locations", loc, n);
	if (copy)
		p = raw_locations(p, "copies", copy, n);
	*p++ = '}';
	SKV_CHECK((const uint8_t *)p <= b->data + b->cap);
	skv_jraw_end(b, p);
}
