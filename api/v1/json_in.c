/*
 * json_in.c - typed reading on top of skv/json.h: parse, find, check, convert; the first failure is
 * kept.
 *
 * Faults of the text are reported before faults of the fields, and these in the order in which the
 * message's reader asks for fields, not in the order of the text: therefore the whole text is
 * parsed first.
 *
 * Owns nothing; any thread.
 */
#include "json_in.h"

#include <skv/check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- failures -------------------------------------------------------------------------------- */

static size_t render(const struct skv_jat *at, char out[SKV_FIELD_MAX])
{
	size_t n = at->up ? render(at->up, out) : 0;
	int more = 0;

	if (!at->up)
		out[0] = '\0';
	else if (at->name)
		more = snprintf(out + n, SKV_FIELD_MAX - n, "%s%.*s", n ? "." : "",
				(int)(at->name_n < SKV_FIELD_MAX ? at->name_n : SKV_FIELD_MAX),
				at->name);
	else
		more = snprintf(out + n, SKV_FIELD_MAX - n, "[%zu]", at->index);
	SKV_CHECK(n < SKV_FIELD_MAX);
	n += more > 0 ? (size_t)more : 0;
	return n < SKV_FIELD_MAX ? n : SKV_FIELD_MAX - 1;
}

void skv_jdoc_fail(struct skv_jdoc *d, const struct skv_jat *at, int status, const char *fmt, ...)
{
	char field[SKV_FIELD_MAX];
	char message[SKV_MESSAGE_MAX];
	va_list ap;

	if (!skv_jdoc_ok(d))
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	render(at, field);
	d->status = skv_fail(d->err, status, field, "%s", message);
}

static void *out_of_memory(struct skv_jdoc *d)
{
	if (skv_jdoc_ok(d))
		d->status = skv_fail(d->err, SKV_E_NOMEM, NULL, "out of memory");
	return NULL;
}

void *skv_jdoc_alloc(struct skv_jdoc *d, size_t n, size_t size)
{
	void *p;

	if (!skv_jdoc_ok(d))
		return NULL;
	p = skv_arena_calloc(d->in->arena, n, size);
	return p ? p : out_of_memory(d);
}

/* ---- the document ---------------------------------------------------------------------------- */

static void fail_parse(struct skv_jdoc *d, const struct skv_json_doc *j, const char *text, size_t n,
		       size_t max_values)
{
	char field[SKV_FIELD_MAX];
	size_t values = max_values;
	unsigned line, column;

	/* Limits count for the whole text, before anything else that is wrong with it. */
	switch (skv_json_scan(text, n, &values, field)) {
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
	values = SIZE_MAX;
	skv_json_scan(text, j->at > 0 ? j->at : n, &values, field);
	switch (j->fault) {
	case SKV_JSON_NOMEM:
		out_of_memory(d);
		break;
	case SKV_JSON_NUMBER:
		d->status = skv_fail(
			d->err, SKV_E_INVALID, field,
			"write a number over 9223372036854775807 as a decimal string");
		break;
	case SKV_JSON_TWICE:
		d->status = skv_fail(d->err, SKV_E_INVALID, field, "the field is given twice");
		break;
	case SKV_JSON_UTF8:
		d->status = skv_fail(d->err, SKV_E_INVALID, field, "the text is not valid UTF-8");
		break;
	case SKV_JSON_NUL:
		d->status =
			skv_fail(d->err, SKV_E_INVALID, field, "the text holds a NUL character");
		break;
	case SKV_JSON_LIMIT:
		d->status = skv_fail(d->err, SKV_E_TOO_LARGE, NULL, "the text is too long");
		break;
	default:
		skv_json_line(text, j->at, &line, &column);
		d->status = skv_fail(d->err, SKV_E_INVALID, field,
				     "not JSON at line %u, column %u: %s", line, column, j->what);
	}
}

struct skv_jat skv_jdoc_open(struct skv_jdoc *d, const struct skv_v1_in *in, const char *text,
			     size_t n, size_t max_values, struct skv_error *err)
{
	const struct skv_json_limits limits = { .depth = SKV_JSON_DEPTH, .values = max_values };
	struct skv_json_doc j = { .root = NULL };

	*d = (struct skv_jdoc){ .in = in, .err = err };
	if (n == 0)
		d->status =
			skv_fail(err, SKV_E_INVALID, NULL, "the body is empty, not a JSON object");
	else if (!skv_json_parse(&j, in->arena, text, n, &limits))
		fail_parse(d, &j, text, n, max_values);
	else if (j.root->type != SKV_JSON_OBJECT)
		d->status = skv_fail(err, SKV_E_INVALID, NULL, "the body must be a JSON object");
	return (struct skv_jat){ .v = skv_jdoc_ok(d) ? j.root : NULL };
}

/* ---- structure ------------------------------------------------------------------------------- */

static const char *type_name(const struct skv_json_node *v)
{
	static const char *const names[] = { "an object", "an array", "a string", "an integer",
					     "a fraction", "true", "false", "null" };

	return names[v->type];
}

static bool wrong_type(struct skv_jdoc *d, const struct skv_jat *at, const char *wanted)
{
	if (!at->v)
		skv_jdoc_fail(d, at, SKV_E_INVALID, "the field is required");
	else
		skv_jdoc_fail(d, at, SKV_E_INVALID, "must be %s, not %s", wanted, type_name(at->v));
	return false;
}

/* Fails unless the value exists and has the type. */
static inline bool is(struct skv_jdoc *d, const struct skv_jat *at, enum skv_json_type type,
		      const char *wanted)
{
	return skv_jdoc_ok(d) && (skv_jat_is(at, type) || wrong_type(d, at, wanted));
}

static bool listed(const char *const *names, const struct skv_json_node *name)
{
	for (; *names; names++)
		if (skv_json_is(name, *names, strlen(*names)))
			return true;
	return false;
}

void skv_jat_object(struct skv_jdoc *d, const struct skv_jat *at, const char *const *names)
{
	const struct skv_json_node *name;

	if (!is(d, at, SKV_JSON_OBJECT, "an object"))
		return;
	name = skv_json_first(at->v);
	for (uint32_t i = 0; i < at->v->n; i++) {
		struct skv_jat field = { .up = at, .name = name->s, .name_n = name->n };

		if (!listed(names, name))
			skv_jdoc_fail(d, &field, SKV_E_INVALID, "unknown field");
		name = skv_json_next(name + 1);
	}
}

uint32_t skv_jat_array(struct skv_jdoc *d, const struct skv_jat *at, uint32_t min, uint32_t max)
{
	uint32_t n;

	SKV_CHECK(min <= max);
	if (!is(d, at, SKV_JSON_ARRAY, "an array"))
		return 0;
	n = at->v->n;
	if (n > max)
		skv_jdoc_fail(d, at, SKV_E_TOO_LARGE, "has %u elements, at most %u are allowed", n,
			      max);
	else if (n < min)
		skv_jdoc_fail(d, at, SKV_E_INVALID, "has %u elements, at least %u are needed", n,
			      min);
	return skv_jdoc_ok(d) ? n : 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

bool skv_jat_bool(struct skv_jdoc *d, const struct skv_jat *at)
{
	if (skv_jat_is(at, SKV_JSON_FALSE))
		return false;
	return is(d, at, SKV_JSON_TRUE, "true or false");
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

static bool parse_number(const struct skv_json_node *v, bool suffix, uint64_t *out)
{
	unsigned shift;

	if (v->type == SKV_JSON_INTEGER) {
		*out = v->u;
		return v->i >= 0;
	}
	if (v->type != SKV_JSON_STRING)
		return false;
	shift = suffix ? suffix_shift(v->s, v->n) : 0;
	if (!parse_decimal(v->s, shift ? v->n - 1 : v->n, out) || *out > UINT64_MAX >> shift)
		return false;
	SKV_CHECK(shift <= 40 && *out <= UINT64_MAX >> shift);
	*out <<= shift;
	return true;
}

static uint64_t number(struct skv_jdoc *d, const struct skv_jat *at, uint64_t min, uint64_t max,
		       bool suffix)
{
	uint64_t v = 0;

	if (!skv_jdoc_ok(d))
		return 0;
	if (!at->v)
		skv_jdoc_fail(d, at, SKV_E_INVALID, "the field is required");
	else if (!parse_number(at->v, suffix, &v))
		skv_jdoc_fail(
			d, at, SKV_E_INVALID, "must be %s",
			suffix ? "an integer of bytes, or a string like \"64M\" (suffix "
				 "K, M, G or T)"
			       : "an integer from 0 to 2^63-1, or a decimal string up to 2^64-1");
	else if (v < min || v > max)
		skv_jdoc_fail(d, at, SKV_E_INVALID, "must be from %llu to %llu, not %llu",
			      (unsigned long long)min, (unsigned long long)max,
			      (unsigned long long)v);
	return skv_jdoc_ok(d) ? v : 0;
}

uint64_t skv_jat_u64(struct skv_jdoc *d, const struct skv_jat *at, uint64_t min, uint64_t max)
{
	return number(d, at, min, max, false);
}

uint32_t skv_jat_u32(struct skv_jdoc *d, const struct skv_jat *at, uint32_t min, uint32_t max)
{
	return (uint32_t)number(d, at, min, max, false);
}

bool skv_jat_flag(struct skv_jdoc *d, const struct skv_jat *object, const char *name)
{
	struct skv_jat at = skv_jat_get(object, name);

	return at.v && skv_jat_bool(d, &at);
}

uint32_t skv_jat_number(struct skv_jdoc *d, const struct skv_jat *object, const char *name,
			uint32_t max, uint32_t otherwise)
{
	struct skv_jat at = skv_jat_get(object, name);

	return at.v ? skv_jat_u32(d, &at, 0, max) : otherwise;
}

uint64_t skv_jat_size(struct skv_jdoc *d, const struct skv_jat *at, uint64_t min, uint64_t max)
{
	return number(d, at, min, max, true);
}

const char *skv_jat_string(struct skv_jdoc *d, const struct skv_jat *at, size_t min, size_t max)
{
	const char *copy;
	size_t n;

	if (!is(d, at, SKV_JSON_STRING, "a string"))
		return "";
	n = at->v->n;
	if (n < min || n > max) {
		skv_jdoc_fail(d, at, SKV_E_INVALID, "must be a string of %zu to %zu bytes, not %zu",
			      min, max, n);
		return "";
	}
	copy = skv_arena_strndup(d->in->arena, at->v->s, n);
	return copy ? copy : (out_of_memory(d), "");
}

const char *skv_jat_name(struct skv_jdoc *d, const struct skv_jat *at)
{
	if (!is(d, at, SKV_JSON_STRING, "a string"))
		return "";
	if (!skv_name_valid(at->v->s, at->v->n))
		skv_jdoc_fail(d, at, SKV_E_INVALID,
			      SKV_NAME_RULE,
			      SKV_MAX_NAME);
	return skv_jat_string(d, at, 1, SKV_MAX_NAME);
}

const char *skv_jat_model_name(struct skv_jdoc *d, const struct skv_jat *at)
{
	if (!is(d, at, SKV_JSON_STRING, "a string"))
		return "";
	if (!skv_model_name_valid(at->v->s, at->v->n))
		skv_jdoc_fail(d, at, SKV_E_INVALID,
			      SKV_MODEL_NAME_RULE,
			      SKV_MAX_NAME);
	return skv_jat_string(d, at, 1, SKV_MAX_NAME);
}

static const char *const *read_names(struct skv_jdoc *d, const struct skv_jat *at, uint32_t min,
				     uint32_t max, uint32_t *n,
				     const char *(*read)(struct skv_jdoc *d,
							 const struct skv_jat *at))
{
	uint32_t count = skv_jat_array(d, at, min, max);
	const char **names = skv_jdoc_alloc(d, count, sizeof *names);
	struct skv_jat item = skv_jat_first(at);

	for (uint32_t i = 0; names && i < count; i++, skv_jat_next(&item)) {
		SKV_CHECK(skv_jat_is(at, SKV_JSON_ARRAY) && i < at->v->n);
		names[i] = read(d, &item);
		for (uint32_t j = 0; j < i && skv_jdoc_ok(d); j++)
			if (strcmp(names[i], names[j]) == 0)
				skv_jdoc_fail(d, &item, SKV_E_INVALID, "'%s' is named twice",
					      names[i]);
	}
	*n = skv_jdoc_ok(d) ? count : 0;
	return names;
}

const char *const *skv_jat_names(struct skv_jdoc *d, const struct skv_jat *at, uint32_t min,
				 uint32_t max, uint32_t *n)
{
	return read_names(d, at, min, max, n, skv_jat_name);
}

const char *const *skv_jat_model_names(struct skv_jdoc *d, const struct skv_jat *at, uint32_t min,
				       uint32_t max, uint32_t *n)
{
	return read_names(d, at, min, max, n, skv_jat_model_name);
}

struct skv_key skv_jat_key_hex(struct skv_jdoc *d, const struct skv_jat *at)
{
	struct skv_key key = { 0, 0 };

	if (is(d, at, SKV_JSON_STRING, "a string") &&
	    !skv_key_from_hex(at->v->s, at->v->n, &key))
		skv_jdoc_fail(d, at, SKV_E_INVALID, "must be exactly 32 hex digits");
	return key;
}

uint64_t skv_jat_hex64(struct skv_jdoc *d, const struct skv_jat *at)
{
	char both[SKV_KEY_HEX];
	struct skv_key key = { 0, 0 };

	if (!is(d, at, SKV_JSON_STRING, "a string"))
		return 0;
	memset(both, '0', sizeof both);
	if (at->v->n == 16)
		memcpy(both + 16, at->v->s, 16);
	if (at->v->n != 16 || !skv_key_from_hex(both, sizeof both, &key))
		skv_jdoc_fail(d, at, SKV_E_INVALID, "must be exactly 16 hex digits");
	return key.lo;
}

uint32_t skv_jat_word(struct skv_jdoc *d, const struct skv_jat *at, const char *const *words)
{
	char list[128] = "";
	size_t n = 0;

	if (!is(d, at, SKV_JSON_STRING, "a string"))
		return 0;
	for (uint32_t i = 0; words[i]; i++) {
		if (skv_json_is(at->v, words[i], strlen(words[i])))
			return i;
		n += (size_t)snprintf(list + n, n < sizeof list ? sizeof list - n : 0, "%s%s",
				      n ? ", " : "", words[i]);
		if (n > sizeof list)
			n = sizeof list;
	}
	skv_jdoc_fail(d, at, SKV_E_INVALID, "must be one of: %s", list);
	return 0;
}
