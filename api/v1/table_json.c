/*
 * table_json.c - messages that are tables of fields (table.h) as JSON.
 *
 * No state; any thread.
 */
#include "table.h"

#include <skv/check.h>

#include <skv/json_out.h>
#include <skv/superblock.h>

#include "parts.h"

/* ---- reading --------------------------------------------------------------------------------- */

static void read_object(struct skv_jdoc *d, const struct skv_table *t, const struct skv_jat *at,
			void *message);

/* Elements that were read count; the array is made first. */
static void read_elements(struct skv_jdoc *d, const struct skv_field *f, const struct skv_jat *at,
			  void *message)
{
	uint32_t n = skv_jat_array(d, at, skv_field_lax(f, message) ? 0 : f->least, f->most);
	size_t size = f->kind == SKV_KIND_MESSAGES ? f->of->size : sizeof(char *);
	char *all = skv_jdoc_alloc(d, (size_t)n + 1, size);
	struct skv_jat item = skv_jat_first(at);

	memcpy((char *)message + f->at, &all, sizeof all);
	skv_field_set_count(f, message, 0);
	for (uint32_t i = 0; all && i < n && skv_jdoc_ok(d); i++, skv_jat_next(&item)) {
		const char *text = "";

		if (f->kind == SKV_KIND_MESSAGES)
			read_object(d, f->of, &item, all + i * size);
		else
			text = f->kind == SKV_KIND_NAMES
				       ? skv_jat_name(d, &item)
				       : skv_jat_string(d, &item, f->min, skv_field_max(f));
		if (f->kind != SKV_KIND_MESSAGES)
			memcpy(all + i * size, &text, sizeof text);
		skv_field_set_count(f, message, i + 1);
		if (skv_jdoc_ok(d) && skv_field_twice(f, message, i)) {
			struct skv_jat name = item;

			if (f->kind == SKV_KIND_MESSAGES) {
				name = skv_jat_get(&item, f->of->fields[0].name);
				text = skv_field_text(&f->of->fields[0],
						      skv_field_element(f, message, i));
			}
			skv_jdoc_fail(d, &name, SKV_E_INVALID, "'%s' is named twice", text);
		}
	}
}

static void read_keys(struct skv_jdoc *d, const struct skv_table *t, const struct skv_field *f,
		      const struct skv_jat *object, void *message)
{
	const struct skv_key *keys = NULL;
	uint32_t n = 0;

	if (skv_table_all(t, message))
		skv_jat_no_keys(d, object);
	else
		keys = skv_jat_keys(d, object, &n);
	memcpy((char *)message + f->at, &keys, sizeof keys);
	skv_field_set_count(f, message, n);
}

static void read_marks(struct skv_jdoc *d, const struct skv_field *f, const struct skv_jat *at,
		       void *message)
{
	const uint32_t all = skv_field_count(f, message), n = skv_jat_array(d, at, 0, all);
	bool *marks = skv_jdoc_alloc(d, (size_t)all + 1, sizeof *marks);
	struct skv_jat item = skv_jat_first(at);

	for (uint32_t i = 0; skv_jdoc_ok(d) && i < n; i++, skv_jat_next(&item)) {
		uint32_t k = skv_jat_u32(d, &item, 0, all - 1);

		if (skv_jdoc_ok(d))
			marks[k] = true;
	}
	memcpy((char *)message + f->at, &marks, sizeof marks);
}

static void read_all(struct skv_jdoc *d, const struct skv_field *f, const struct skv_jat *at,
		     void *message)
{
	const bool all = skv_jat_bool(d, at);

	if (!all)
		skv_jdoc_fail(d, at, SKV_E_INVALID, "must be true, or absent");
	skv_field_set_number(f, message, all);
}

static void read_uuid(struct skv_jdoc *d, const struct skv_jat *at, uint8_t *uuid)
{
	const char *text = skv_jat_string(d, at, 36, 36);

	if (skv_jdoc_ok(d) && skv_uuid_from_text(text, uuid) != SKV_OK)
		skv_jdoc_fail(d, at, SKV_E_INVALID, "is not a UUID");
}

static void read_value(struct skv_jdoc *d, const struct skv_field *f, const struct skv_jat *at,
		       void *message)
{
	const uint64_t min = skv_field_lax(f, message) ? 0 : f->min, max = skv_field_max(f);

	switch (f->kind) {
	case SKV_KIND_BOOL:
		skv_field_set_number(f, message, skv_jat_bool(d, at));
		break;
	case SKV_KIND_NUMBER:
		skv_field_set_number(f, message,
				     f->flags & SKV_FIELD_SIZE ? skv_jat_size(d, at, min, max)
							       : skv_jat_u64(d, at, min, max));
		break;
	case SKV_KIND_WORD:
		skv_field_set_number(f, message, skv_jat_word(d, at, f->words));
		break;
	case SKV_KIND_TEXT:
		skv_field_set_text(f, message, skv_jat_string(d, at, min, max));
		break;
	case SKV_KIND_CHARS:
		skv_field_set_text(f, message, skv_jat_string(d, at, min, f->width - 1));
		break;
	case SKV_KIND_RAW_UUID:
		read_uuid(d, at, (uint8_t *)message + f->at);
		break;
	case SKV_KIND_HEX:
		memcpy((char *)message + f->at, &(uint64_t){ skv_jat_hex64(d, at) },
		       sizeof(uint64_t));
		break;
	case SKV_KIND_NAME:
		skv_field_set_text(f, message, skv_jat_name(d, at));
		break;
	case SKV_KIND_MODEL_NAME:
		skv_field_set_text(f, message, skv_jat_model_name(d, at));
		break;
	case SKV_KIND_TEXTS:
	case SKV_KIND_NAMES:
	case SKV_KIND_MESSAGES:
		read_elements(d, f, at, message);
		break;
	case SKV_KIND_ALL:
		read_all(d, f, at, message);
		break;
	case SKV_KIND_MARKS:
		read_marks(d, f, at, message);
		break;
	default:
		SKV_CHECK(!"a kind that is not read");
	}
}

static void read_field(struct skv_jdoc *d, const struct skv_field *f, const struct skv_jat *object,
		       void *message)
{
	struct skv_jat at = { .up = object, .name = f->name, .name_n = strlen(f->name) };
	bool needed =
		f->flags & SKV_FIELD_REQUIRED || (f->may_be_empty && !f->may_be_empty(message));
	char why[SKV_MESSAGE_MAX];
	const char *wrong;

	at.v = skv_json_get(object->v, at.name, at.name_n);
	if (at.v || (needed && message != d->over))
		read_value(d, f, &at, message);
	wrong = f->check && skv_jdoc_ok(d) ? f->check(message, why) : NULL;
	if (wrong) {
		at = skv_jat_get(object, wrong);
		skv_jdoc_fail(d, &at, SKV_E_INVALID, "%s", why);
	}
}

/* The message has its defaults. */
static void read_fields(struct skv_jdoc *d, const struct skv_table *t, const struct skv_jat *at,
			void *message)
{
	for (unsigned turn = 0; turn < SKV_TABLE_TURNS; turn++)
		for (uint32_t i = 0; i < t->n && skv_jdoc_ok(d); i++) {
			const struct skv_field *f = &t->fields[i];

			if (skv_field_turn(f) != turn || f->kind == SKV_KIND_TENANT)
				continue;
			if (f->kind == SKV_KIND_KEYS)
				read_keys(d, t, f, at, message);
			else
				read_field(d, f, at, message);
		}
}

/* Refuses fields that the table does not have. */
static void check_names(struct skv_jdoc *d, const struct skv_table *t, const struct skv_jat *at)
{
	const char *names[SKV_TABLE_FIELDS + 3];
	uint32_t n = 0;

	SKV_CHECK(t->n <= SKV_TABLE_FIELDS);
	if (t->open && skv_jat_is(at, SKV_JSON_OBJECT))
		return;
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->fields[i].kind == SKV_KIND_KEYS)
			for (int form = 1; form < 3; form++)
				names[n++] = skv_key_forms[form];
		if (t->fields[i].kind != SKV_KIND_TENANT)
			names[n++] = t->fields[i].name;
	}
	names[n] = NULL;
	skv_jat_object(d, at, names);
}

static void read_object(struct skv_jdoc *d, const struct skv_table *t, const struct skv_jat *at,
			void *message)
{
	check_names(d, t, at);
	skv_table_defaults(t, d->in, message);
	read_fields(d, t, at, message);
}

int skv_table_read_json(const struct skv_table *t, const struct skv_v1_in *in, const char *text,
			size_t n, void *out, struct skv_error *err)
{
	struct skv_jdoc d;
	struct skv_jat top;
	void *message;

	SKV_CHECK(skv_table_sound(t) && (t->strict || t->open));
	if (n == 0 && t->no_body) {
		text = "{}";
		n = 2;
	}
	top = skv_jdoc_open(&d, in, text, n, skv_table_values(t), err);
	message = skv_jdoc_alloc(&d, 1, t->size);
	if (message)
		read_object(&d, t, &top, message);
	if (skv_jdoc_ok(&d))
		memcpy(out, message, t->size);
	return skv_jdoc_close(&d);
}

int skv_table_lay_json(const struct skv_table *t, const struct skv_v1_in *in, const char *text,
		       size_t n, void *message, struct skv_error *err)
{
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, skv_table_values(t), err);

	SKV_CHECK(skv_table_sound(t) && t->strict);
	d.over = message;
	check_names(&d, t, &top);
	read_fields(&d, t, &top, message);
	return skv_jdoc_close(&d);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_fields(struct skv_buf *b, const struct skv_table *t, const void *message);

static void write_number(struct skv_buf *b, const struct skv_field *f, uint64_t v)
{
	if (v == 0 && f->flags & SKV_FIELD_SHORT)
		return;
	if (f->kind == SKV_KIND_BOOL || f->kind == SKV_KIND_ALL)
		skv_jout_field_bool(b, f->name, v);
	else if (f->kind == SKV_KIND_NUMBER)
		skv_jout_field_u64(b, f->name, v);
	else
		skv_jout_field_string(b, f->name, skv_field_word(f, v));
}

static void write_elements(struct skv_buf *b, const struct skv_field *f, const void *message)
{
	const uint32_t n = skv_field_count(f, message);

	if (n == 0 && f->flags & SKV_FIELD_SHORT)
		return;
	skv_jout_name(b, f->name);
	skv_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++) {
		if (f->kind != SKV_KIND_MESSAGES) {
			skv_jout_string(b, skv_field_item(f, message, i));
			continue;
		}
		skv_jout_open(b, '{');
		write_fields(b, f->of, skv_field_element(f, message, i));
		skv_jout_close(b, '}');
	}
	skv_jout_close(b, ']');
}

static void write_text(struct skv_buf *b, const struct skv_field *f, const char *s)
{
	if (!*s && f->flags & SKV_FIELD_SHORT)
		return;
	(f->flags & SKV_FIELD_MEND ? skv_jout_field_text : skv_jout_field_string)(b, f->name, s);
}

static void write_uuid(struct skv_buf *b, const struct skv_field *f, const uint8_t *uuid)
{
	static const uint8_t none[16];
	char text[37];

	if (f->flags & SKV_FIELD_SHORT && memcmp(uuid, none, sizeof none) == 0)
		return;
	skv_uuid_to_text(uuid, text);
	skv_jout_field_string(b, f->name, text);
}

static void write_hex(struct skv_buf *b, const struct skv_field *f, const void *message)
{
	uint64_t v;

	memcpy(&v, skv_field_in(f, message), sizeof v);
	if (v == 0 && f->flags & SKV_FIELD_SHORT)
		return;
	skv_jout_name(b, f->name);
	skv_jout_hex64(b, v);
}

static bool any_mark(const bool *marks, uint32_t n)
{
	return marks && memchr(marks, true, n);
}

static void write_marks(struct skv_buf *b, const struct skv_field *f, const void *message)
{
	const bool *marks;

	memcpy(&marks, skv_field_in(f, message), sizeof marks);
	if (f->flags & SKV_FIELD_SHORT && !any_mark(marks, skv_field_count(f, message)))
		return;
	skv_jout_name(b, f->name);
	skv_jout_open(b, '[');
	for (uint32_t i = 0; i < skv_field_count(f, message); i++)
		if (marks[i])
			skv_jout_u64(b, i);
	skv_jout_close(b, ']');
}

static void write_key_list(struct skv_buf *b, const struct skv_field *f, const void *message)
{
	const uint32_t n = skv_field_count(f, message);
	const struct skv_key *keys;

	memcpy(&keys, skv_field_in(f, message), sizeof keys);
	SKV_CHECK(n <= f->most);
	skv_buf_reserve(b, 64 + (size_t)n * 36);
	skv_jout_name(b, f->name);
	skv_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++)
		skv_jout_key(b, keys[i]);
	skv_jout_close(b, ']');
}

static void write_fields(struct skv_buf *b, const struct skv_table *t, const void *message)
{
	for (uint32_t i = 0; i < t->n; i++) {
		const struct skv_field *f = &t->fields[i];

		if (f->kind == SKV_KIND_PART)
			write_fields(b, f->of, skv_field_in(f, message));
		else if (skv_field_repeated(f))
			write_elements(b, f, message);
		else if (skv_field_numeric(f))
			write_number(b, f, skv_field_told(f, message));
		else if (f->kind == SKV_KIND_MARKS)
			write_marks(b, f, message);
		else if (f->kind == SKV_KIND_KEY_LIST)
			write_key_list(b, f, message);
		else if (f->kind == SKV_KIND_RAW_UUID)
			write_uuid(b, f, skv_field_in(f, message));
		else if (f->kind == SKV_KIND_HEX)
			write_hex(b, f, message);
		else if (f->kind != SKV_KIND_TENANT)
			write_text(b, f, skv_field_text(f, message));
	}
}

void skv_table_write_json(const struct skv_table *t, struct skv_buf *out, const void *message)
{
	SKV_CHECK(skv_table_sound(t));
	skv_jout_begin(out);
	write_fields(out, t, message);
	skv_jout_close(out, '}');
}
