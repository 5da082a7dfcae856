/*
 * json_in.c - typed reading on top of jansson: parse, find, check, convert; the first failure sticks.
 *
 * jansson 2.14 cannot stand running out of memory: when its text buffer does not grow it drops the byte,
 * reads on past the string's end, or returns a shorter string: a wrong key. Its allocator is global to
 * the process, so a library leaves it alone; instead the memory that a document can need is asked
 * for, and given back, before jansson sees the document.
 *
 * Owns nothing; any thread.
 */
#include "json_in.h"

#include <skv/mem.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- failures ----------------------------------------------------------------------------------- */

static size_t render(const struct ref_jat *at, char out[SKV_FIELD_MAX])
{
	size_t n = at->up ? render(at->up, out) : 0;
	int more = 0;

	if (!at->up)
		out[0] = '\0';
	else if (at->name)
		more = snprintf(out + n, SKV_FIELD_MAX - n, "%s%s", n ? "." : "", at->name);
	else
		more = snprintf(out + n, SKV_FIELD_MAX - n, "[%zu]", at->index);
	n += more > 0 ? (size_t)more : 0;
	return n < SKV_FIELD_MAX ? n : SKV_FIELD_MAX - 1;
}

void ref_jdoc_fail(struct ref_jdoc *d, const struct ref_jat *at, int status, const char *fmt, ...)
{
	char field[SKV_FIELD_MAX];
	char message[SKV_MESSAGE_MAX];
	va_list ap;

	if (!ref_jdoc_ok(d))
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	render(at, field);
	d->status = skv_fail(d->err, status, field, "%s", message);
}

static void *out_of_memory(struct ref_jdoc *d)
{
	if (ref_jdoc_ok(d))
		d->status = skv_fail(d->err, SKV_E_NOMEM, NULL, "out of memory");
	return NULL;
}

void *ref_jdoc_alloc(struct ref_jdoc *d, size_t n, size_t size)
{
	void *p;

	if (!ref_jdoc_ok(d))
		return NULL;
	p = skv_arena_calloc(d->in->arena, n, size);
	return p ? p : out_of_memory(d);
}

/* ---- the document ------------------------------------------------------------------------------- */

static void fail_parse(struct ref_jdoc *d, const char *text, size_t n, const json_error_t *e)
{
	char field[SKV_FIELD_MAX];
	size_t at = e->position > 0 && (size_t)e->position < n ? (size_t)e->position : n;
	size_t values = SIZE_MAX;

	ref_json_scan(text, at, &values, field);
	switch (json_error_code(e)) {
	case json_error_out_of_memory:
		out_of_memory(d);
		break;
	case json_error_numeric_overflow:
		d->status = skv_fail(d->err, SKV_E_INVALID, field,
				     "a number over 9223372036854775807 is written as a decimal string");
		break;
	case json_error_duplicate_key:
		d->status = skv_fail(d->err, SKV_E_INVALID, field, "the field is given twice");
		break;
	case json_error_invalid_utf8:
		d->status = skv_fail(d->err, SKV_E_INVALID, field, "the text is not valid UTF-8");
		break;
	case json_error_null_character:
	case json_error_null_byte_in_key:
		d->status = skv_fail(d->err, SKV_E_INVALID, field, "the text holds a NUL character");
		break;
	default:
		d->status = skv_fail(d->err, SKV_E_INVALID, field, "not JSON at line %d, column %d: %s",
				     e->line, e->column, e->text);
	}
}

/* True if jansson will find the memory for a tree of this text. */
static bool memory_for(size_t n, size_t values)
{
	/* The text as strings, and once in a buffer of doubling size; a node and its slot per value. */
	void *room = skv_malloc(4 * n + 128 * values);

	skv_free(room);
	return room != NULL;
}

static void parse(struct ref_jdoc *d, const char *text, size_t n, size_t max_values)
{
	char field[SKV_FIELD_MAX];
	size_t values = max_values;
	json_error_t e;

	switch (ref_json_scan(text, n, &values, field)) {
	case SKV_JSCAN_DEEP:
		d->status = skv_fail(d->err, SKV_E_INVALID, field, "nested deeper than %u",
				     SKV_JSON_DEPTH);
		return;
	case SKV_JSCAN_MANY:
		d->status = skv_fail(d->err, SKV_E_TOO_LARGE, field,
				     "more than %zu values in one document", max_values);
		return;
	case SKV_JSCAN_END:
		break;
	}
	if (!memory_for(n, values)) {
		out_of_memory(d);
		return;
	}
	d->root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
	if (!d->root)
		fail_parse(d, text, n, &e);
	else if (!json_is_object(d->root))
		d->status = skv_fail(d->err, SKV_E_INVALID, NULL, "the body must be a JSON object");
}

struct ref_jat ref_jdoc_open(struct ref_jdoc *d, const struct skv_v1_in *in, const char *text, size_t n,
			     enum ref_jdir dir, size_t max_values, struct skv_error *err)
{
	memset(d, 0, sizeof *d);
	d->in = in;
	d->err = err;
	d->lenient = dir == SKV_JANSWER;
	if (n == 0)
		d->status = skv_fail(err, SKV_E_INVALID, NULL, "the body is empty, not a JSON object");
	else
		parse(d, text, n, max_values);
	return (struct ref_jat){ .v = ref_jdoc_ok(d) ? d->root : NULL };
}

int ref_jdoc_close(struct ref_jdoc *d)
{
	json_decref(d->root);
	d->root = NULL;
	return d->status;
}

/* ---- structure ---------------------------------------------------------------------------------- */

static const char *type_name(const json_t *v)
{
	static const char *const names[] = { "an object", "an array", "a string", "an integer",
					     "a fraction", "true", "false", "null" };

	return names[json_typeof(v)];
}

/* Fails unless the value is there and of the type. */
static bool is(struct ref_jdoc *d, const struct ref_jat *at, json_type type, const char *wanted)
{
	if (!ref_jdoc_ok(d))
		return false;
	if (!at->v)
		ref_jdoc_fail(d, at, SKV_E_INVALID, "the field is required");
	else if (json_typeof(at->v) != type)
		ref_jdoc_fail(d, at, SKV_E_INVALID, "must be %s, not %s", wanted, type_name(at->v));
	return ref_jdoc_ok(d);
}

static bool listed(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

void ref_jat_object(struct ref_jdoc *d, const struct ref_jat *at, const char *const *names)
{
	const char *name;
	json_t *value;

	if (!is(d, at, JSON_OBJECT, "an object") || d->lenient)
		return;
	json_object_foreach(at->v, name, value) {
		struct ref_jat field = { .up = at, .name = name, .v = value };

		if (!listed(names, name))
			ref_jdoc_fail(d, &field, SKV_E_INVALID, "there is no such field here");
	}
}

struct ref_jat ref_jat_get(const struct ref_jat *object, const char *name)
{
	/* json_object_get of anything but an object is NULL. */
	return (struct ref_jat){ .up = object, .name = name, .v = json_object_get(object->v, name) };
}

uint32_t ref_jat_array(struct ref_jdoc *d, const struct ref_jat *at, uint32_t min, uint32_t max)
{
	size_t n;

	if (!is(d, at, JSON_ARRAY, "an array"))
		return 0;
	n = json_array_size(at->v);
	if (n > max)
		ref_jdoc_fail(d, at, SKV_E_TOO_LARGE, "has %zu elements, at most %u may be", n,
			      max);
	else if (n < min)
		ref_jdoc_fail(d, at, SKV_E_INVALID, "has %zu elements, at least %u are needed", n, min);
	return ref_jdoc_ok(d) ? (uint32_t)n : 0;
}

struct ref_jat ref_jat_item(const struct ref_jat *array, size_t index)
{
	return (struct ref_jat){ .up = array, .index = index, .v = json_array_get(array->v, index) };
}

/* ---- values ------------------------------------------------------------------------------------- */

bool ref_jat_bool(struct ref_jdoc *d, const struct ref_jat *at)
{
	if (ref_jdoc_ok(d) && at->v && json_is_boolean(at->v))
		return json_is_true(at->v);
	is(d, at, JSON_TRUE, "true or false");
	return false;
}

/* Decimal digits, the whole text, nothing else; false also above 2^64-1. */
static bool parse_decimal(const char *s, size_t n, uint64_t *out)
{
	uint64_t v = 0;

	if (n == 0 || n > 20)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned digit = (unsigned)(unsigned char)s[i] - '0';

		if (digit > 9 || v > UINT64_MAX / 10 || v * 10 > UINT64_MAX - digit)
			return false;
		v = v * 10 + digit;
	}
	*out = v;
	return true;
}

/* log2 of the unit that a size ends with; 0 = none. */
static unsigned suffix_shift(const char *s, size_t n)
{
	static const char suffixes[] = "KMGT";
	const char *at = n > 1 ? memchr(suffixes, s[n - 1], sizeof suffixes - 1) : NULL;

	return at ? 10 * (unsigned)(at - suffixes + 1) : 0;
}

static bool parse_number(const json_t *v, bool suffix, uint64_t *out)
{
	const char *s;
	size_t n;
	unsigned shift;

	if (json_is_integer(v)) {
		*out = (uint64_t)json_integer_value(v);
		return json_integer_value(v) >= 0;
	}
	if (!json_is_string(v))
		return false;
	s = json_string_value(v);
	n = json_string_length(v);
	shift = suffix ? suffix_shift(s, n) : 0;
	if (!parse_decimal(s, shift ? n - 1 : n, out) || *out > UINT64_MAX >> shift)
		return false;
	*out <<= shift;
	return true;
}

static uint64_t number(struct ref_jdoc *d, const struct ref_jat *at, uint64_t min, uint64_t max,
		       bool suffix)
{
	uint64_t v = 0;

	if (!ref_jdoc_ok(d))
		return 0;
	if (!at->v)
		ref_jdoc_fail(d, at, SKV_E_INVALID, "the field is required");
	else if (!parse_number(at->v, suffix, &v))
		ref_jdoc_fail(d, at, SKV_E_INVALID, "must be %s", suffix ?
			      "an integer of bytes, or a string like \"64M\" (suffix K, M, G or T)" :
			      "an integer from 0 to 2^63-1, or a decimal string up to 2^64-1");
	else if (v < min || v > max)
		ref_jdoc_fail(d, at, SKV_E_INVALID, "must be from %llu to %llu, not %llu",
			      (unsigned long long)min, (unsigned long long)max, (unsigned long long)v);
	return ref_jdoc_ok(d) ? v : 0;
}

uint64_t ref_jat_u64(struct ref_jdoc *d, const struct ref_jat *at, uint64_t min, uint64_t max)
{
	return number(d, at, min, max, false);
}

uint32_t ref_jat_u32(struct ref_jdoc *d, const struct ref_jat *at, uint32_t min, uint32_t max)
{
	return (uint32_t)number(d, at, min, max, false);
}

uint64_t ref_jat_size(struct ref_jdoc *d, const struct ref_jat *at, uint64_t min, uint64_t max)
{
	return number(d, at, min, max, true);
}

const char *ref_jat_string(struct ref_jdoc *d, const struct ref_jat *at, size_t min, size_t max)
{
	const char *copy;
	size_t n;

	if (!is(d, at, JSON_STRING, "a string"))
		return "";
	n = json_string_length(at->v);
	if (n < min || n > max) {
		ref_jdoc_fail(d, at, SKV_E_INVALID, "must be a string of %zu to %zu bytes, not %zu", min,
			      max, n);
		return "";
	}
	copy = skv_arena_strndup(d->in->arena, json_string_value(at->v), n);
	return copy ? copy : (out_of_memory(d), "");
}

const char *ref_jat_name(struct ref_jdoc *d, const struct ref_jat *at)
{
	if (!is(d, at, JSON_STRING, "a string"))
		return "";
	if (!skv_name_valid(json_string_value(at->v), json_string_length(at->v)))
		ref_jdoc_fail(d, at, SKV_E_INVALID,
			      "a name is 1 to %u of A-Z a-z 0-9 . _ - : = @ + , and begins with a letter, digit or _",
			      SKV_MAX_NAME);
	return ref_jat_string(d, at, 1, SKV_MAX_NAME);
}

const char *ref_jat_model_name(struct ref_jdoc *d, const struct ref_jat *at)
{
	if (!is(d, at, JSON_STRING, "a string"))
		return "";
	if (!skv_model_name_valid(json_string_value(at->v), json_string_length(at->v)))
		ref_jdoc_fail(d, at, SKV_E_INVALID,
			      "a name is 1 to %u of A-Z a-z 0-9 . _ - : = @ + , in parts with a / between them that begin with a letter, "
			      "digit or _",
			      SKV_MAX_NAME);
	return ref_jat_string(d, at, 1, SKV_MAX_NAME);
}

static const char *const *read_names(struct ref_jdoc *d, const struct ref_jat *at, uint32_t min, uint32_t max, uint32_t *n,
				     const char *(*read)(struct ref_jdoc *d, const struct ref_jat *at))
{
	uint32_t count = ref_jat_array(d, at, min, max);
	const char **names = ref_jdoc_alloc(d, count, sizeof *names);

	for (uint32_t i = 0; names && i < count; i++) {
		struct ref_jat item = ref_jat_item(at, i);

		names[i] = read(d, &item);
		for (uint32_t j = 0; j < i && ref_jdoc_ok(d); j++)
			if (strcmp(names[i], names[j]) == 0)
				ref_jdoc_fail(d, &item, SKV_E_INVALID, "'%s' is named twice", names[i]);
	}
	*n = ref_jdoc_ok(d) ? count : 0;
	return names;
}

const char *const *ref_jat_names(struct ref_jdoc *d, const struct ref_jat *at, uint32_t min,
				 uint32_t max, uint32_t *n)
{
	return read_names(d, at, min, max, n, ref_jat_name);
}

const char *const *ref_jat_model_names(struct ref_jdoc *d, const struct ref_jat *at, uint32_t min, uint32_t max, uint32_t *n)
{
	return read_names(d, at, min, max, n, ref_jat_model_name);
}

struct skv_key ref_jat_key_hex(struct ref_jdoc *d, const struct ref_jat *at)
{
	struct skv_key key = { 0, 0 };

	if (is(d, at, JSON_STRING, "a string") &&
	    !skv_key_from_hex(json_string_value(at->v), json_string_length(at->v), &key))
		ref_jdoc_fail(d, at, SKV_E_INVALID, "must be exactly 32 hex digits");
	return key;
}

uint64_t ref_jat_hex64(struct ref_jdoc *d, const struct ref_jat *at)
{
	char both[SKV_KEY_HEX];
	struct skv_key key = { 0, 0 };

	if (!is(d, at, JSON_STRING, "a string"))
		return 0;
	memset(both, '0', sizeof both);
	if (json_string_length(at->v) == 16)
		memcpy(both + 16, json_string_value(at->v), 16);
	if (json_string_length(at->v) != 16 || !skv_key_from_hex(both, sizeof both, &key))
		ref_jdoc_fail(d, at, SKV_E_INVALID, "must be exactly 16 hex digits");
	return key.lo;
}

uint32_t ref_jat_word(struct ref_jdoc *d, const struct ref_jat *at, const char *const *words)
{
	char list[128] = "";
	size_t n = 0;

	if (!is(d, at, JSON_STRING, "a string"))
		return 0;
	for (uint32_t i = 0; words[i]; i++) {
		if (strcmp(words[i], json_string_value(at->v)) == 0)
			return i;
		n += (size_t)snprintf(list + n, n < sizeof list ? sizeof list - n : 0, "%s%s",
				      n ? ", " : "", words[i]);
		if (n > sizeof list)
			n = sizeof list;
	}
	ref_jdoc_fail(d, at, SKV_E_INVALID, "must be one of: %s", list);
	return 0;
}
