/*
 * table_schema.c - messages that are tables of fields (table.h) as schemas of the OpenAPI document.
 *
 * No state; any thread.
 */
#include "table.h"

#include <skv/check.h>
#include <stdio.h>

#include <skv/json_out.h>

#include "parts.h"

#define SCHEMAS "#/components/schemas/"

static void put_ref(struct skv_buf *b, const char *name)
{
	char ref[128];
	int n = snprintf(ref, sizeof ref, SCHEMAS "%s", name);

	SKV_CHECK(n > 0 && (size_t)n < sizeof ref);
	skv_jout_field_string(b, "$ref", ref);
}

/* A reference to a schema elsewhere. Anything next to a reference is ignored, so additions are put
 * around it. */
static void put_shared(struct skv_buf *b, const struct skv_field *f, const char *name)
{
	if (!f->doc && !f->text) {
		put_ref(b, name);
		return;
	}
	skv_jout_name(b, "allOf");
	skv_jout_open(b, '[');
	skv_jout_open(b, '{');
	put_ref(b, name);
	skv_jout_close(b, '}');
	skv_jout_close(b, ']');
	if (f->text)
		skv_jout_field_string(b, "default", f->text);
}

static void put_number(struct skv_buf *b, const struct skv_field *f)
{
	const uint64_t max = skv_field_max(f);

	if (f->flags & SKV_FIELD_BYTES) {
		put_shared(b, f, "Size");
	} else if (max == UINT64_MAX) {
		put_shared(b, f, "U64");
	} else {
		skv_jout_field_string(b, "type", "integer");
		skv_jout_field_string(b, "format", "int64");
		skv_jout_field_u64(b, "minimum", f->min);
		skv_jout_field_u64(b, "maximum", max);
	}
}

static void put_text(struct skv_buf *b, const struct skv_field *f)
{
	skv_jout_field_string(b, "type", "string");
	if (f->kind == SKV_KIND_UUID)
		skv_jout_field_string(b, "format", "uuid");
	if (f->max)
		skv_jout_field_u64(b, "maxLength", f->max);
	for (uint32_t i = 0; f->texts && f->texts[i]; i++) {
		if (i == 0) {
			skv_jout_name(b, "enum");
			skv_jout_open(b, '[');
		}
		skv_jout_string(b, f->texts[i]);
		if (!f->texts[i + 1])
			skv_jout_close(b, ']');
	}
}

static void put_word(struct skv_buf *b, const struct skv_field *f)
{
	skv_jout_field_string(b, "type", "string");
	skv_jout_field_strings(b, "enum", f->words, skv_field_words(f));
	skv_jout_field_string(b, "default", skv_field_word(f, f->otherwise));
}

static void put_array(struct skv_buf *b, const struct skv_field *f)
{
	skv_jout_field_string(b, "type", "array");
	skv_jout_name(b, "items");
	skv_jout_open(b, '{');
	if (f->kind == SKV_KIND_MESSAGES) {
		put_ref(b, f->of->name);
	} else if (f->kind == SKV_KIND_NAMES) {
		put_ref(b, "Name");
	} else {
		skv_jout_field_string(b, "type", "string");
		if (f->min)
			skv_jout_field_u64(b, "minLength", f->min);
		if (f->max)
			skv_jout_field_u64(b, "maxLength", f->max);
	}
	skv_jout_close(b, '}');
	if (f->least && !f->may_be_empty)
		skv_jout_field_u64(b, "minItems", f->least);
	if (f->most < UINT32_MAX)
		skv_jout_field_u64(b, "maxItems", f->most);
	if (f->kind == SKV_KIND_NAMES)
		skv_jout_field_bool(b, "uniqueItems", true);
}

static void put_items(struct skv_buf *b, const char *name)
{
	skv_jout_field_string(b, "type", "array");
	skv_jout_name(b, "items");
	skv_jout_open(b, '{');
	put_ref(b, name);
	skv_jout_close(b, '}');
}

static void put_all(struct skv_buf *b)
{
	skv_jout_field_string(b, "type", "boolean");
	skv_jout_name(b, "enum");
	skv_jout_open(b, '[');
	skv_jout_bool(b, true);
	skv_jout_close(b, ']');
}

static void put_marks(struct skv_buf *b, const struct skv_field *f)
{
	skv_jout_field_string(b, "type", "array");
	skv_jout_name(b, "items");
	skv_jout_open(b, '{');
	skv_jout_field_string(b, "type", "integer");
	skv_jout_field_string(b, "format", "int64");
	skv_jout_field_u64(b, "minimum", 0);
	skv_jout_field_u64(b, "maximum", f->most - 1);
	skv_jout_field_string(b, "description", "Index of a key.");
	skv_jout_close(b, '}');
}

/* ---- keys: exactly one of three fields ------------------------------------------------------- */

static const struct {
	const char *schema, *doc;
} key_forms[3] = {
	{ "KeyString", "Any text." },
	{ "KeyInt", "64-bit numbers; n is the 128-bit key {0, n}." },
	{ "KeyHex", "128-bit keys." },
};

static void put_keys(struct skv_buf *b, const struct skv_field *f)
{
	for (int i = 0; i < 3; i++) {
		skv_jout_name(b, skv_key_forms[i]);
		skv_jout_open(b, '{');
		put_items(b, key_forms[i].schema);
		skv_jout_field_u64(b, "minItems", 1);
		skv_jout_field_u64(b, "maxItems", f->most);
		skv_jout_field_string(b, "description", key_forms[i].doc);
		skv_jout_close(b, '}');
	}
}

/* Writes an alternative: the form of the keys, or (NULL) `all`. */
static void put_alternative(struct skv_buf *b, const char *name, const char *schema)
{
	skv_jout_open(b, '{');
	skv_jout_field_string(b, "type", "object");
	skv_jout_field_strings(b, "required", &name, 1);
	skv_jout_name(b, "properties");
	skv_jout_open(b, '{');
	skv_jout_name(b, name);
	skv_jout_open(b, '{');
	if (schema)
		put_items(b, schema);
	else
		put_all(b);
	skv_jout_close(b, '}');
	skv_jout_close(b, '}');
	skv_jout_close(b, '}');
}

static void put_alternatives(struct skv_buf *b, const struct skv_table *t)
{
	const struct skv_field *keys = NULL, *all = NULL;

	for (uint32_t i = 0; i < t->n; i++) {
		keys = t->fields[i].kind == SKV_KIND_KEYS ? &t->fields[i] : keys;
		all = t->fields[i].kind == SKV_KIND_ALL ? &t->fields[i] : all;
	}
	if (!keys)
		return;
	skv_jout_name(b, "oneOf");
	skv_jout_open(b, '[');
	for (int i = 0; i < 3; i++)
		put_alternative(b, skv_key_forms[i], key_forms[i].schema);
	if (all)
		put_alternative(b, all->name, NULL);
	skv_jout_close(b, ']');
}

/* ---- objects --------------------------------------------------------------------------------- */

static void put_row(struct skv_buf *b, const struct skv_field *f)
{
	if (f->kind == SKV_KIND_KEYS) {
		put_keys(b, f);
		return;
	}
	skv_jout_name(b, f->name);
	skv_jout_open(b, '{');
	if (f->kind == SKV_KIND_BOOL) {
		skv_jout_field_string(b, "type", "boolean");
		if (f->flags & SKV_FIELD_SHORT || f->otherwise)
			skv_jout_field_bool(b, "default", f->otherwise);
	} else if (f->kind == SKV_KIND_NUMBER) {
		put_number(b, f);
	} else if (f->kind == SKV_KIND_WORD) {
		put_word(b, f);
	} else if (skv_field_repeated(f)) {
		put_array(b, f);
	} else if (f->kind == SKV_KIND_ALL) {
		put_all(b);
	} else if (f->kind == SKV_KIND_KEY_LIST) {
		put_items(b, "KeyHex");
	} else if (f->kind == SKV_KIND_MARKS) {
		put_marks(b, f);
	} else if (f->kind == SKV_KIND_NAME || f->kind == SKV_KIND_MODEL_NAME) {
		put_shared(b, f, f->kind == SKV_KIND_NAME ? "Name" : "ModelName");
	} else {
		put_text(b, f);
	}
	if (f->doc)
		skv_jout_field_string(b, "description", f->doc);
	skv_jout_close(b, '}');
}

static bool told(const struct skv_field *f)
{
	return f->kind != SKV_KIND_TENANT && f->kind != SKV_KIND_PART;
}

/* Returns true for a field that a request must have, or that an answer always has. */
static bool needed(const struct skv_table *t, const struct skv_field *f)
{
	return t->strict ? f->flags & SKV_FIELD_REQUIRED : !(f->flags & SKV_FIELD_SHORT);
}

/* The rows of the table itself, not those of its part. */
static void put_object(struct skv_buf *b, const struct skv_table *t, bool required)
{
	uint32_t n = 0;

	skv_jout_field_string(b, "type", "object");
	skv_jout_name(b, "properties");
	skv_jout_open(b, '{');
	for (uint32_t i = 0; i < t->n; i++)
		if (told(&t->fields[i]))
			put_row(b, &t->fields[i]);
	skv_jout_close(b, '}');
	for (uint32_t i = 0; required && i < t->n; i++) {
		if (!told(&t->fields[i]) || !needed(t, &t->fields[i]))
			continue;
		if (n++ == 0) {
			skv_jout_name(b, "required");
			skv_jout_open(b, '[');
		}
		skv_jout_string(b, t->fields[i].name);
	}
	if (n)
		skv_jout_close(b, ']');
}

void skv_table_write_schema(const struct skv_table *t, struct skv_buf *out)
{
	const struct skv_table *part = NULL;

	SKV_CHECK(skv_table_sound(t));
	for (uint32_t i = 0; i < t->n; i++)
		if (t->fields[i].kind == SKV_KIND_PART)
			part = t->fields[i].of;
	skv_jout_name(out, t->name);
	skv_jout_open(out, '{');
	if (part) { /* of an answer here: there may be other fields */
		skv_jout_name(out, "allOf");
		skv_jout_open(out, '[');
		skv_jout_open(out, '{');
		put_object(out, part, false);
		skv_jout_close(out, '}');
		skv_jout_open(out, '{');
	}
	put_object(out, t, true);
	if (part) {
		skv_jout_close(out, '}');
		skv_jout_close(out, ']');
	}
	if (t->doc)
		skv_jout_field_string(out, "description", t->doc);
	if (t->strict)
		skv_jout_field_bool(out, "additionalProperties", false);
	put_alternatives(out, t);
	skv_jout_close(out, '}');
}
