/*
 * pb_in.c - typed reading of protobuf: fields, checks, conversion; the first failure is kept.
 *
 * Nothing here trusts a length: each is compared with the bytes that are left before it is used.
 * Owns nothing; any thread.
 */
#include "pb.h"

#include <skv/check.h>
#include <stdarg.h>
#include <stdio.h>

#include <skv/utf8.h>

/* ---- failures -------------------------------------------------------------------------------- */

static size_t render(const struct skv_pbat *at, char out[SKV_FIELD_MAX])
{
	size_t n = at->up ? render(at->up, out) : 0;
	int more = snprintf(out + n, SKV_FIELD_MAX - n, "%s%s", n ? "." : "", at->name);

	SKV_CHECK(n < SKV_FIELD_MAX);
	n += more > 0 ? (size_t)more : 0;
	if (n < SKV_FIELD_MAX && at->index != PB_NO_INDEX)
		n += (size_t)snprintf(out + n, SKV_FIELD_MAX - n, "[%u]", at->index);
	return n < SKV_FIELD_MAX ? n : SKV_FIELD_MAX - 1;
}

void skv_pb_fail(struct skv_pbdoc *d, const char *name, uint32_t index, int status, const char *fmt,
		 ...)
{
	struct skv_pbat here = { d->at, name, index };
	const struct skv_pbat *at = name ? &here : d->at;
	char field[SKV_FIELD_MAX] = "";
	char message[SKV_MESSAGE_MAX];
	va_list ap;

	if (!skv_pb_ok(d))
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	if (at)
		render(at, field);
	d->status = skv_fail(d->err, status, field, "%s", message);
}

static void *out_of_memory(struct skv_pbdoc *d)
{
	if (skv_pb_ok(d))
		d->status = skv_fail(d->err, SKV_E_NOMEM, NULL, "out of memory");
	return NULL;
}

void *skv_pb_alloc(struct skv_pbdoc *d, size_t n, size_t size)
{
	void *p = skv_pb_ok(d) ? skv_arena_calloc(d->in->arena, n, size) : NULL;

	return p || !skv_pb_ok(d) ? p : out_of_memory(d);
}

struct skv_pbdoc skv_pb_open(const struct skv_v1_in *in, struct skv_error *err)
{
	return (struct skv_pbdoc){ .in = in, .err = err, .status = SKV_OK };
}

/* ---- fields ---------------------------------------------------------------------------------- */

static void bad_bytes(struct skv_pbdoc *d, const char *what)
{
	skv_pb_fail(d, NULL, 0, SKV_E_INVALID, "not a protobuf message: %s", what);
}

bool skv_pb_next_slow(struct skv_pbdoc *d, struct skv_rd *r, struct pb_field *f)
{
	if (r->p == r->end || !skv_pb_ok(d))
		return false;
	if (pb_next(r, f))
		return true;
	SKV_CHECK(r->failed);
	bad_bytes(d, f->number == 0 ? "a field without a number"
		     : f->wire == PB_VARINT || f->wire == PB_FIXED64 || f->wire == PB_BYTES ||
				     f->wire == PB_FIXED32
			     ? "it ends inside a field"
			     : "a field of a wire type that is not used here");
	return false;
}

bool skv_pb_wire(struct skv_pbdoc *d, const struct pb_field *f, const char *name, unsigned wire)
{
	SKV_CHECK(wire == PB_VARINT || wire == PB_BYTES || wire == PB_FIXED64);
	if (skv_pb_ok(d) && f->wire != wire)
		skv_pb_fail(d, name, PB_NO_INDEX, SKV_E_INVALID, "is of wire type %u, not %u",
			    f->wire, wire);
	return skv_pb_ok(d);
}

/* ---- values ---------------------------------------------------------------------------------- */

uint64_t skv_pb_bad_number(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
			   uint64_t max)
{
	if (skv_pb_wire(d, f, name, PB_VARINT))
		skv_pb_fail(d, name, PB_NO_INDEX, SKV_E_INVALID, "must be at most %llu, not %llu",
			    (unsigned long long)max, (unsigned long long)f->v);
	return 0;
}

/* How many bytes from the beginning on are ASCII without NUL: all whole words, or
 * nothing is said. */
static size_t plain(const uint8_t *s, size_t n)
{
	typedef uint64_t words __attribute__((vector_size(32)));
	words all = { 0 };
	uint64_t odd = 0;
	size_t i = 0;

	for (; i + sizeof all <= n; i += sizeof all) {
		words x;

		memcpy(&x, s + i, sizeof x);
		all |= x | (x - 0x0101010101010101u);
	}
	odd = all[0] | all[1] | all[2] | all[3];
	for (; i + 8 <= n; i += 8) {
		const uint64_t x = skv_pb_load64(s + i);

		odd |= x | (x - 0x0101010101010101u);
	}
	return odd & 0x8080808080808080u ? 0 : n - n % 8;
}

bool skv_pb_utf8(const uint8_t *s, size_t n)
{
	uint32_t c;

	for (size_t i = plain(s, n); i < n;) {
		size_t k = 1;

		if (s[i] >= 0x80)
			k = skv_utf8_next((const char *)s + i, n - i, &c);
		else if (s[i] == 0)
			return false;
		if (k == 0)
			return false;
		i += k;
	}
	return true;
}

const char *skv_pb_text(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
			uint32_t index, size_t min, size_t max)
{
	const char *copy;

	if (!skv_pb_wire(d, f, name, PB_BYTES))
		return "";
	if (f->n < min || f->n > max) {
		skv_pb_fail(d, name, index, SKV_E_INVALID,
			    "must be a string of %zu to %zu bytes, not %zu", min, max, f->n);
		return "";
	}
	if (!skv_pb_utf8(f->p, f->n)) {
		skv_pb_fail(d, name, index, SKV_E_INVALID, "is not UTF-8 without NUL");
		return "";
	}
	copy = skv_arena_strndup(d->in->arena, (const char *)f->p, f->n);
	return copy ? copy : (out_of_memory(d), "");
}

static const char *read_name(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
			     uint32_t index, bool (*valid)(const char *s, size_t n))
{
	if (!skv_pb_wire(d, f, name, PB_BYTES))
		return "";
	if (!valid((const char *)f->p, f->n))
		skv_pb_fail(
			d, name, index, SKV_E_INVALID,
			"a name is 1 to %u of A-Z a-z 0-9 . _ - : = @ + , and begins with a "
			"letter, digit or _%s",
			SKV_MAX_NAME,
			valid == skv_model_name_valid
				? "; parts of that form may have a / between them"
				: "");
	return skv_pb_ok(d) ? skv_pb_text(d, f, name, index, 1, SKV_MAX_NAME) : "";
}

const char *skv_pb_name(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
			uint32_t index)
{
	return read_name(d, f, name, index, skv_name_valid);
}

/* ---- repeated fields ------------------------------------------------------------------------- */

void skv_pb_count(struct skv_pbdoc *d, const char *name, size_t n, uint32_t min, uint32_t max)
{
	if (n > max)
		skv_pb_fail(d, name, PB_NO_INDEX, SKV_E_TOO_LARGE,
			    "has %zu elements, at most %u are allowed", n, max);
	else if (n < min)
		skv_pb_fail(d, name, PB_NO_INDEX, SKV_E_INVALID,
			    "has %zu elements, at least %u are needed", n, min);
}

static const char *const *read_names(struct skv_pbdoc *d, struct skv_rd message, uint32_t num,
				     const char *name, uint32_t n,
				     bool (*valid)(const char *s, size_t n))
{
	const char **names = skv_pb_alloc(d, n, sizeof *names);
	struct pb_field f;
	uint32_t i = 0;

	while (names && i < n && skv_pb_next(d, &message, &f)) {
		if (f.number != num)
			continue;
		SKV_CHECK(i < n);
		names[i] = read_name(d, &f, name, i, valid);
		for (uint32_t j = 0; j < i && skv_pb_ok(d); j++)
			if (strcmp(names[i], names[j]) == 0)
				skv_pb_fail(d, name, i, SKV_E_INVALID, "'%s' is named twice",
					    names[i]);
		i++;
	}
	return names;
}

const char *const *skv_pb_names(struct skv_pbdoc *d, struct skv_rd message, uint32_t num,
				const char *name, uint32_t n)
{
	return read_names(d, message, num, name, n, skv_name_valid);
}

const char *const *skv_pb_model_names(struct skv_pbdoc *d, struct skv_rd message, uint32_t num,
				      const char *name, uint32_t n)
{
	return read_names(d, message, num, name, n, skv_model_name_valid);
}

size_t skv_pb_numbers(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
		      unsigned wire)
{
	size_t n = 0;

	if (f->wire == wire)
		return 1;
	if (!skv_pb_wire(d, f, name, PB_BYTES))
		return 0;
	if (wire == PB_FIXED64) {
		if (f->n % 8)
			skv_pb_fail(d, name, PB_NO_INDEX, SKV_E_INVALID,
				    "packed numbers of 8 bytes have %zu bytes", f->n);
		return f->n / 8;
	}
	for (size_t i = 0; i < f->n; i++)
		n += f->p[i] < 0x80;
	if (f->n && f->p[f->n - 1] >= 0x80)
		skv_pb_fail(d, name, PB_NO_INDEX, SKV_E_INVALID, "the last number is truncated");
	return n;
}

/* The numbers of one field, of which there are at most `max`. */
static size_t take_numbers(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
			   unsigned wire, uint64_t *out, size_t max)
{
	struct skv_rd r = skv_rd_make(f->p, f->n);
	size_t n = 0;

	SKV_CHECK(max > 0);
	if (f->wire == wire) {
		out[0] = f->v;
		return 1;
	}
	if (wire == PB_FIXED64) {
		for (n = 0; n < f->n / 8 && n < max; n++)
			out[n] = skv_pb_load64(f->p + 8 * n);
		return n;
	}
	while (r.p < r.end && n < max && !r.failed)
		out[n++] = pb_varint(&r);
	if (r.failed)
		skv_pb_fail(d, name, PB_NO_INDEX, SKV_E_INVALID, "a number of more than 64 bits");
	return n;
}

uint64_t *skv_pb_all_numbers(struct skv_pbdoc *d, struct skv_rd message, uint32_t num,
			     const char *name, unsigned wire, size_t n)
{
	uint64_t *all = NULL;
	struct pb_field f;
	size_t i = 0;

	if (skv_pb_ok(d) && n <= SIZE_MAX / 16)
		all = skv_arena_alloc(d->in->arena, n * sizeof *all);
	if (!all)
		return out_of_memory(d);
	while (i < n && skv_pb_next(d, &message, &f))
		if (f.number == num)
			i += take_numbers(d, &f, name, wire, all + i, n - i);
	SKV_CHECK(i <= n);
	for (; i < n; i++)
		all[i] = 0; /* after a failure */
	return all;
}
