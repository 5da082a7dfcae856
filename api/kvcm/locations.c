/*
 * locations.c - CacheLocations in both forms, straight from the core's arrays.
 *
 * Repeated text is made once: for each file and spec the text up to the block's number, for each
 * spec the text after it. A location is then a few copies and two numbers. These pieces live as
 * long as the call.
 *
 * Stateless; any thread, one buffer each.
 */
#include <skv/kvcm.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/json_out.h>
#include <kvcm/meta.pb-c.h>

#define DIGITS 20u /* of a 64-bit number */

struct piece {
	const char *p;
	size_t n;
};

/* State of writing a struct kvcm_locations. */
struct writer {
	const struct kvcm_locations *l;
	struct skv_buf *out;
	struct skv_arena arena;
	bool json;
	struct piece *uris; /* [files * n_specs], made on first use; up to the block's number */
	int *types;                       /* [files]: StorageType; -1: not looked up yet */
	struct piece sizes[SKV_MAX_SPECS]; /* after the number, for length[] */
	uint64_t length[SKV_MAX_SPECS];
	struct piece names[SKV_MAX_SPECS]; /* binary only */
	struct piece miss;                 /* JSON: a row without a location */
	uint32_t miss_columns;             /* for which `miss` was made */
};

/* The parts of a row that are written. */
struct row {
	uint32_t n;
	uint32_t column[SKV_MAX_SPECS];
	const struct skv_location *loc; /* of all columns */
	const struct skv_location *first; /* the first present location */
	const char *status;
	uint64_t created_us;
};

static void out_of_memory(struct writer *w) { w->out->failed = true; }

static uint32_t row_of(const struct kvcm_locations *l, uint32_t i)
{
	return l->rows ? l->rows[i] : i;
}

static uint32_t columns_of(const struct kvcm_locations *l, uint32_t row)
{
	return l->row_columns ? l->row_columns[row] : l->columns;
}

/* Returns false for a row without a location. */
static bool look(const struct kvcm_locations *l, uint32_t i, struct row *out)
{
	uint32_t at = row_of(l, i), columns = columns_of(l, at);

	assert(i < l->n && l->n_specs <= SKV_MAX_SPECS);
	out->n = 0;
	out->first = NULL;
	if (l->hit && !l->hit[at])
		return false;
	out->loc = l->loc + (size_t)at * l->n_specs;
	for (uint32_t s = 0; s < l->n_specs; s++) {
		if (out->loc[s].length == 0)
			continue;
		if (!out->first)
			out->first = &out->loc[s];
		if (columns >> s & 1)
			out->column[out->n++] = s;
	}
	if (!out->first)
		return false;
	out->status =
		kvcm_status_name(l->row_status ? (enum kvcm_status)l->row_status[at] : l->status);
	out->created_us = (l->row_created_ms ? l->row_created_ms[at] : l->created_ms) * 1000;
	return true;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Copies the buffer's contents. */
static struct piece keep(struct writer *w, struct skv_buf *text)
{
	struct piece piece = { NULL, text->len };

	if (!text->failed)
		piece.p = skv_arena_strndup(&w->arena, (const char *)text->data, text->len);
	if (!piece.p) {
		out_of_memory(w);
		piece.n = 0;
	}
	skv_buf_destroy(text);
	return piece;
}

static void uri_text(struct skv_buf *out, const char *s) { skv_put_bytes(out, s, strlen(s)); }

static void uri_number(struct skv_buf *out, uint64_t v)
{
	char digits[20];

	skv_put_bytes(out, digits, (size_t)(skv_jraw_digits(digits, v) - digits));
}

static void uri_begin(const struct skv_file_ref *f, const char *root, struct skv_buf *out)
{
	size_t n = strlen(root);

	while (n > 0 && root[n - 1] == '/')
		n--;
	uri_text(out, kvcm_scheme(f->type));
	uri_text(out, "://");
	uri_text(out, f->storage);
	if (n > 0 && root[0] != '/')
		skv_put_u8(out, '/');
	skv_put_bytes(out, root, n);
	skv_put_u8(out, '/');
	uri_text(out, f->path);
	uri_text(out, "?blkid=");
}

void kvcm_uri(const struct skv_file_ref *f, const char *root, const struct skv_location *loc,
	      struct skv_buf *out)
{
	uri_begin(f, root, out);
	uri_number(out, loc->offset / loc->length);
	uri_text(out, "&size=");
	uri_number(out, loc->length);
}

/* JSON: {"name":"tp0","uri":"file://...?blkid= - binary: only the URI. */
static struct piece make_uri(struct writer *w, uint32_t file, uint32_t column)
{
	struct skv_buf uri = { 0 }, text = { 0 };

	uri_begin(&w->l->files->v[file], w->l->roots ? w->l->roots[file] : "", &uri);
	if (!w->json)
		return keep(w, &uri);
	skv_put_u8(&uri, 0);
	skv_jout_begin(&text);
	skv_jout_field_text(&text, "name", w->l->specs[column]);
	skv_jout_name(&text, "uri");
	skv_jout_text(&text, uri.failed ? "" : (const char *)uri.data);
	text.failed = text.failed || uri.failed;
	if (!text.failed)
		text.len--; /* the quote */
	skv_buf_destroy(&uri);
	return keep(w, &text);
}

static inline const struct piece *uri_of(struct writer *w, uint32_t file, uint32_t column)
{
	struct piece *uri = &w->uris[(size_t)file * w->l->n_specs + column];

	assert(file < w->l->files->n && column < w->l->n_specs);
	if (!uri->p)
		*uri = make_uri(w, file, column);
	return uri;
}

static void make_size(struct writer *w, uint32_t column, uint64_t length)
{
	struct skv_buf text = { 0 };

	uri_text(&text, "&size=");
	uri_number(&text, length);
	uri_text(&text, w->json ? "\",\"node_id\":\"\"}" : "");
	w->sizes[column] = keep(w, &text);
	w->length[column] = length;
}

static inline const struct piece *size_of(struct writer *w, uint32_t column, uint64_t length)
{
	if (w->length[column] != length)
		make_size(w, column, length);
	return &w->sizes[column];
}

static inline int type_of(struct writer *w, uint32_t file)
{
	assert(file < w->l->files->n);
	if (w->types[file] < 0)
		w->types[file] = kvcm_storage_type(w->l->files->v[file].type);
	return w->types[file];
}

static bool open_writer(struct writer *w, const struct kvcm_locations *l, struct skv_buf *out,
			bool json)
{
	size_t n = (size_t)l->files->n * l->n_specs;

	memset(w, 0, sizeof *w);
	w->l = l;
	w->out = out;
	w->json = json;
	skv_arena_init(&w->arena);
	w->uris = skv_arena_calloc(&w->arena, n, sizeof *w->uris);
	w->types = skv_arena_alloc(&w->arena, l->files->n * sizeof *w->types);
	if (!w->uris || !w->types) {
		out_of_memory(w);
		skv_arena_destroy(&w->arena);
		return false;
	}
	for (uint32_t i = 0; i < l->files->n; i++)
		w->types[i] = -1;
	return true;
}

/* Columns of a placeholder: those requested, present or not. */
static uint32_t placeholder_columns(const struct kvcm_locations *l, uint32_t i)
{
	uint32_t all = l->n_specs < 32 ? ((uint32_t)1 << l->n_specs) - 1 : UINT32_MAX;

	return l->miss == KVCM_MISS_PLACEHOLDER ? columns_of(l, row_of(l, i)) & all : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *type_name(int type)
{
	return protobuf_c_enum_descriptor_get_value(&kvcm_meta__storage_type__descriptor, type)
		->name;
}

static void make_miss_json(struct writer *w, uint32_t columns)
{
	struct skv_buf text = { 0 };

	skv_jout_begin(&text);
	skv_jout_field_string(&text, "type", type_name(0));
	skv_jout_field_u64(&text, "spec_size", (uint64_t)__builtin_popcount(columns));
	skv_jout_name(&text, "location_specs");
	skv_jout_open(&text, '[');
	for (uint32_t s = 0; s < w->l->n_specs; s++) {
		if (!(columns >> s & 1))
			continue;
		skv_jout_open(&text, '{');
		skv_jout_field_text(&text, "name", w->l->specs[s]);
		skv_jout_field_string(&text, "uri", "");
		skv_jout_field_string(&text, "node_id", "");
		skv_jout_close(&text, '}');
	}
	skv_jout_close(&text, ']');
	skv_jout_field_string(&text, "id", "");
	skv_jout_field_string(&text, "status", "");
	skv_jout_name(&text, "create_time");
	skv_jout_u64_string(&text, 0);
	skv_jout_close(&text, '}');
	w->miss = keep(w, &text);
	w->miss_columns = columns;
}

static void miss_json(struct writer *w, uint32_t i)
{
	uint32_t columns = placeholder_columns(w->l, i);

	if (w->l->vectors)
		return;
	if (!w->miss.p || columns != w->miss_columns)
		make_miss_json(w, columns);
	skv_put_bytes(w->out, w->miss.p, w->miss.n);
}

static void hit_json(struct writer *w, const struct row *row)
{
	const char *type = type_name(type_of(w, row->first->file));
	const struct piece *uri[SKV_MAX_SPECS], *size[SKV_MAX_SPECS];
	size_t need = 256;
	char *p;

	for (uint32_t i = 0; i < row->n; i++) {
		uint32_t s = row->column[i];

		uri[i] = uri_of(w, row->loc[s].file, s);
		size[i] = size_of(w, s, row->loc[s].length);
		need += uri[i]->n + size[i]->n + DIGITS + 1;
	}
	p = skv_jraw_begin(w->out, need);
	if (!p)
		return;
	p = skv_jraw_text(p, "{\"type\":\"");
	p = skv_jraw_bytes(p, type, strlen(type));
	p = skv_jraw_text(p, "\",\"spec_size\":");
	p = skv_jraw_digits(p, row->n);
	p = skv_jraw_text(p, ",\"location_specs\":[");
	for (uint32_t i = 0; i < row->n; i++) {
		const struct skv_location *at = &row->loc[row->column[i]];

		if (i > 0)
			*p++ = ',';
		p = skv_jraw_bytes(p, uri[i]->p, uri[i]->n);
		p = skv_jraw_digits(p, at->offset / at->length);
		p = skv_jraw_bytes(p, size[i]->p, size[i]->n);
	}
	p = skv_jraw_text(p, "],\"id\":\"");
	kvcm_location_id(row->first->generation, p);
	p += KVCM_LOCATION_ID;
	p = skv_jraw_text(p, "\",\"status\":\"");
	p = skv_jraw_bytes(p, row->status, strlen(row->status));
	p = skv_jraw_text(p, "\",\"create_time\":");
	p = skv_jraw_u64_string(p, row->created_us);
	*p++ = '}';
	assert((const uint8_t *)p <= w->out->data + w->out->cap);
	skv_jraw_end(w->out, p);
}

void kvcm_locations_json(const void *locations, struct skv_buf *out)
{
	const struct kvcm_locations *l = locations;
	struct writer w;
	struct row row;

	if (!open_writer(&w, l, out, true))
		return;
	skv_put_u8(out, '[');
	for (uint32_t i = 0; i < l->n && !out->failed; i++) {
		if (i > 0)
			skv_put_u8(out, ',');
		if (l->vectors)
			skv_put_bytes(out, "{\"locations\":[", 14);
		if (look(l, i, &row))
			hit_json(&w, &row);
		else
			miss_json(&w, i);
		if (l->vectors)
			skv_put_bytes(out, "]}", 2);
	}
	skv_put_u8(out, ']');
	skv_arena_destroy(&w.arena);
}

/* ---- binary ---------------------------------------------------------------------------------- */

/* Tags of CacheLocation, LocationSpec and CacheLocationVector. */
enum { TYPE = 1 << 3, SPEC_SIZE = 2 << 3, SPECS = 3 << 3 | 2, ID = 4 << 3 | 2, STATUS = 5 << 3 | 2,
       CREATED = 6 << 3, NAME = 1 << 3 | 2, URI = 2 << 3 | 2, LOCATIONS = 1 << 3 | 2 };

static inline size_t varint_size(uint64_t v)
{
	return (size_t)(63 - __builtin_clzll(v | 1)) / 7 + 1;
}

static inline char *put_varint(char *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (char)(v | 0x80);
	*p++ = (char)v;
	return p;
}

static inline char *put_text(char *p, char tag, const char *s, size_t n)
{
	*p++ = tag;
	return skv_jraw_bytes(put_varint(p, n), s, n);
}

static inline size_t text_size(size_t n) { return 1 + varint_size(n) + n; }

/* Writes the field's tag, then the length of its contents, in its own vector if requested. */
static char *put_head(const struct kvcm_locations *l, char *p, size_t body)
{
	p = put_varint(p, (uint64_t)l->field << 3 | 2);
	if (l->vectors) {
		p = put_varint(p, text_size(body));
		*p++ = LOCATIONS;
	}
	return put_varint(p, body);
}

static void miss_binary(struct writer *w, uint32_t i)
{
	uint32_t columns = placeholder_columns(w->l, i);
	size_t body = columns ? 2 : 0;
	char *p;

	for (uint32_t s = 0; s < w->l->n_specs; s++)
		if (columns >> s & 1)
			body += text_size(text_size(w->names[s].n));
	p = skv_jraw_begin(w->out, body + 40);
	if (!p)
		return;
	if (w->l->vectors) {
		p = put_varint(p, (uint64_t)w->l->field << 3 | 2);
		*p++ = 0;
		skv_jraw_end(w->out, p);
		return;
	}
	p = put_head(w->l, p, body);
	if (columns) {
		*p++ = SPEC_SIZE;
		*p++ = (char)__builtin_popcount(columns);
	}
	for (uint32_t s = 0; s < w->l->n_specs; s++) {
		if (!(columns >> s & 1))
			continue;
		*p++ = SPECS;
		p = put_varint(p, text_size(w->names[s].n));
		p = put_text(p, NAME, w->names[s].p, w->names[s].n);
	}
	skv_jraw_end(w->out, p);
}

static void hit_binary(struct writer *w, const struct row *row)
{
	const struct piece *uri[SKV_MAX_SPECS], *size[SKV_MAX_SPECS];
	size_t status = strlen(row->status), uri_n[SKV_MAX_SPECS], spec_n[SKV_MAX_SPECS],
	       digits[SKV_MAX_SPECS];
	size_t body = text_size(KVCM_LOCATION_ID) + text_size(status);
	int type = type_of(w, row->first->file);
	char number[SKV_MAX_SPECS][DIGITS], *p;

	body += (type ? 2 : 0) + (row->n ? 2 : 0) +
		(row->created_us ? 1 + varint_size(row->created_us) : 0);
	for (uint32_t i = 0; i < row->n; i++) {
		const struct skv_location *at = &row->loc[row->column[i]];

		uri[i] = uri_of(w, at->file, row->column[i]);
		size[i] = size_of(w, row->column[i], at->length);
		digits[i] =
			(size_t)(skv_jraw_digits(number[i], at->offset / at->length) - number[i]);
		uri_n[i] = uri[i]->n + digits[i] + size[i]->n;
		spec_n[i] = text_size(w->names[row->column[i]].n) + text_size(uri_n[i]);
		body += text_size(spec_n[i]);
	}
	p = skv_jraw_begin(w->out, body + 40);
	if (!p)
		return;
	p = put_head(w->l, p, body);
	if (type) {
		*p++ = TYPE;
		*p++ = (char)type;
	}
	if (row->n) {
		*p++ = SPEC_SIZE;
		*p++ = (char)row->n;
	}
	for (uint32_t i = 0; i < row->n; i++) {
		const struct piece *name = &w->names[row->column[i]];

		*p++ = SPECS;
		p = put_varint(p, spec_n[i]);
		p = put_text(p, NAME, name->p, name->n);
		*p++ = URI;
		p = put_varint(p, uri_n[i]);
		p = skv_jraw_bytes(p, uri[i]->p, uri[i]->n);
		p = skv_jraw_bytes(p, number[i], digits[i]);
		p = skv_jraw_bytes(p, size[i]->p, size[i]->n);
	}
	*p++ = ID;
	*p++ = KVCM_LOCATION_ID;
	kvcm_location_id(row->first->generation, p);
	p = put_text(p + KVCM_LOCATION_ID, STATUS, row->status, status);
	if (row->created_us) {
		*p++ = CREATED;
		p = put_varint(p, row->created_us);
	}
	skv_jraw_end(w->out, p);
}

void kvcm_locations_binary(const void *locations, struct skv_buf *out)
{
	const struct kvcm_locations *l = locations;
	struct writer w;
	struct row row;

	if (!open_writer(&w, l, out, false))
		return;
	for (uint32_t s = 0; s < l->n_specs; s++)
		w.names[s] = (struct piece){ l->specs[s], strlen(l->specs[s]) };
	for (uint32_t i = 0; i < l->n && !out->failed; i++) {
		if (look(l, i, &row))
			hit_binary(&w, &row);
		else
			miss_binary(&w, i);
	}
	skv_arena_destroy(&w.arena);
}
