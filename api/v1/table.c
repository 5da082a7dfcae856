/*
 * table.c - a message as a table of its fields: members by their rows, and
 * whether a table is sound.
 *
 * No state; any thread.
 */
#include "table.h"

#include <skv/check.h>

static bool is_text(enum skv_kind kind)
{
	return kind == SKV_KIND_TEXT || kind == SKV_KIND_NAME || kind == SKV_KIND_MODEL_NAME ||
	       kind == SKV_KIND_TENANT;
}

/* ---- soundness ------------------------------------------------------------------------------- */

static bool sound_width(const struct skv_field *f)
{
	if (f->kind == SKV_KIND_BOOL)
		return f->width == sizeof(bool);
	if (f->kind == SKV_KIND_ALL)
		return f->width == sizeof(bool);
	if (f->kind == SKV_KIND_NUMBER)
		return f->width == 4 || f->width == 8;
	if (f->kind == SKV_KIND_WORD)
		return (f->width == 4 || f->width == sizeof(bool)) && f->words;
	if (f->kind == SKV_KIND_UUID)
		return f->width == 37;
	if (f->kind == SKV_KIND_RAW_UUID)
		return f->width == 16;
	if (f->kind == SKV_KIND_PART)
		return f->of && f->width == f->of->size;
	return skv_field_is_chars(f) || f->width == sizeof(void *);
}

static bool sound_row(const struct skv_table *t, const struct skv_field *f)
{
	if (f->at + f->width > t->size || !f->name || f->number >= SKV_TABLE_NUMBERS)
		return false;
	if ((f->number == 0) != (f->kind == SKV_KIND_TENANT) || f->min > skv_field_max(f))
		return false;
	if (skv_field_counted(f) &&
	    (f->count_at + sizeof(uint32_t) > t->size || f->count_at == f->at || f->most == 0))
		return false;
	if (f->kind == SKV_KIND_MESSAGES && !f->of)
		return false;
	if (f->flags & SKV_FIELD_NOT && (f->width != sizeof(bool) || !skv_field_numeric(f)))
		return false;
	if ((f->kind == SKV_KIND_KEYS || f->kind == SKV_KIND_KEY_LIST) && f->number != 1)
		return false;
	return sound_width(f);
}

bool skv_table_sound(const struct skv_table *t)
{
	if (t->n > SKV_TABLE_FIELDS)
		return false;
	for (uint32_t i = 0; i < t->n; i++) {
		if (!sound_row(t, &t->fields[i]))
			return false;
		for (uint32_t j = 0; j < i; j++)
			if (t->fields[i].number &&
			    (t->fields[i].number == t->fields[j].number ||
			     strcmp(t->fields[i].name, t->fields[j].name) == 0))
				return false;
	}
	return true;
}

bool skv_table_all(const struct skv_table *t, const void *message)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->fields[i].kind == SKV_KIND_ALL)
			return skv_field_number(&t->fields[i], message);
	return false;
}

size_t skv_table_values(const struct skv_table *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (skv_field_counted(&t->fields[i]) && !skv_field_repeated(&t->fields[i]))
			return SKV_JMAX_KEYS;
	return SKV_JMAX_OBJECT;
}

/* ---- members --------------------------------------------------------------------------------- */

uint64_t skv_field_max(const struct skv_field *f)
{
	if (f->max)
		return f->max;
	return f->width == 4 && !skv_field_repeated(f) ? UINT32_MAX : UINT64_MAX;
}

uint32_t skv_field_words(const struct skv_field *f)
{
	uint32_t n = 0;

	while (f->words[n])
		n++;
	return n;
}

const char *skv_field_word(const struct skv_field *f, uint64_t v)
{
	if (!SKV_CHECK(f->kind == SKV_KIND_WORD && v < skv_field_words(f)))
		return "";
	return f->words[v];
}

uint64_t skv_field_number(const struct skv_field *f, const void *message)
{
	uint32_t narrow;
	uint64_t v;

	SKV_CHECK(skv_field_numeric(f));
	if (f->width == sizeof(bool))
		return *(const bool *)skv_field_in(f, message);
	if (f->width == sizeof v) {
		memcpy(&v, skv_field_in(f, message), sizeof v);
		return v;
	}
	memcpy(&narrow, skv_field_in(f, message), sizeof narrow);
	return narrow;
}

uint64_t skv_field_told(const struct skv_field *f, const void *message)
{
	const uint64_t v = skv_field_number(f, message);

	return f->kind == SKV_KIND_NUMBER && v > skv_field_max(f) ? skv_field_max(f) : v;
}

void skv_field_set_number(const struct skv_field *f, void *message, uint64_t v)
{
	void *at = (char *)message + f->at;
	uint32_t narrow = (uint32_t)v;

	SKV_CHECK(skv_field_numeric(f));
	SKV_CHECK(f->width != sizeof narrow || v <= UINT32_MAX);
	if (f->width == sizeof(bool))
		*(bool *)at = v != 0;
	else if (f->width == sizeof v)
		memcpy(at, &v, sizeof v);
	else
		memcpy(at, &narrow, sizeof narrow);
}

const char *skv_field_text(const struct skv_field *f, const void *message)
{
	const char *s;

	SKV_CHECK(is_text(f->kind) || skv_field_is_chars(f));
	if (skv_field_is_chars(f))
		return skv_field_in(f, message);
	memcpy(&s, skv_field_in(f, message), sizeof s);
	return s ? s : "";
}

void skv_field_set_text(const struct skv_field *f, void *message, const char *s)
{
	char *at = (char *)message + f->at;

	SKV_CHECK(is_text(f->kind) || skv_field_is_chars(f));
	if (!skv_field_is_chars(f)) {
		memcpy(at, &s, sizeof s);
		return;
	}
	if (!SKV_CHECK(strlen(s) < f->width))
		return;
	memcpy(at, s, strlen(s) + 1);
}

uint32_t skv_field_count(const struct skv_field *f, const void *message)
{
	uint32_t n;

	SKV_CHECK(skv_field_counted(f));
	memcpy(&n, (const char *)message + f->count_at, sizeof n);
	return n;
}

void skv_field_set_count(const struct skv_field *f, void *message, uint32_t n)
{
	SKV_CHECK(skv_field_counted(f));
	memcpy((char *)message + f->count_at, &n, sizeof n);
}

const void *skv_field_element(const struct skv_field *f, const void *message, uint32_t i)
{
	const char *all;

	SKV_CHECK(f->kind == SKV_KIND_MESSAGES && i < skv_field_count(f, message));
	memcpy(&all, skv_field_in(f, message), sizeof all);
	return all + i * f->of->size;
}

const char *skv_field_item(const struct skv_field *f, const void *message, uint32_t i)
{
	const char *const *all;

	if (!SKV_CHECK((f->kind == SKV_KIND_TEXTS || f->kind == SKV_KIND_NAMES) &&
		       i < skv_field_count(f, message)))
		return "";
	memcpy(&all, skv_field_in(f, message), sizeof all);
	return all[i] ? all[i] : "";
}

static const char *name_of(const struct skv_field *f, const void *message, uint32_t i)
{
	if (f->kind == SKV_KIND_NAMES)
		return skv_field_item(f, message, i);
	SKV_CHECK(f->of->fields[0].kind == SKV_KIND_NAME);
	return skv_field_text(&f->of->fields[0], skv_field_element(f, message, i));
}

bool skv_field_twice(const struct skv_field *f, const void *message, uint32_t i)
{
	if (f->kind != SKV_KIND_NAMES && !(f->flags & SKV_FIELD_UNIQUE))
		return false;
	for (uint32_t j = 0; j < i; j++)
		if (strcmp(name_of(f, message, i), name_of(f, message, j)) == 0)
			return true;
	return false;
}

void skv_table_defaults(const struct skv_table *t, const struct skv_v1_in *in, void *message)
{
	memset(message, 0, t->size);
	/* Before rows that belong to a part, for example its name. */
	for (uint32_t i = 0; i < t->n; i++)
		if (t->fields[i].kind == SKV_KIND_PART)
			skv_table_defaults(t->fields[i].of, in, (char *)message + t->fields[i].at);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct skv_field *f = &t->fields[i];

		if (skv_field_numeric(f))
			skv_field_set_number(f, message, f->otherwise);
		else if (f->kind == SKV_KIND_TENANT)
			skv_field_set_text(f, message, in->tenant);
		else if (is_text(f->kind))
			skv_field_set_text(f, message, f->text ? f->text : "");
	}
}
