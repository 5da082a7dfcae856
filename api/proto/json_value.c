/*
 * json_value.c - numbers, enums, strings and bytes of proto3 JSON.
 *
 * Integers never pass through a double. Stateless; any thread.
 */
#include "message.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include <skv/json.h>

/* ---- numbers --------------------------------------------------------------------------------- */

enum whole { WHOLE, NO_NUMBER, NO_INTEGER, TOO_LARGE };

struct decimal {
	bool minus;
	uint64_t v;     /* the digits up to the last that is not 0 */
	bool over;      /* the digits exceed 64 bits */
	/* Followed by this many zeros; negative: this many of the digits are decimals. */
	int64_t zeros;
};

static bool digit(char c) { return (unsigned char)(c - '0') <= 9; }

static void take_digit(struct decimal *out, char c)
{
	if (c == '0') {
		out->zeros++;
		return;
	}
	for (; out->zeros >= 0 && !out->over; out->zeros--)
		out->over = __builtin_mul_overflow(out->v, 10u, &out->v);
	out->over = out->over || __builtin_add_overflow(out->v, (unsigned)(c - '0'), &out->v);
	out->zeros = 0;
}

static bool exponent(const char *s, const char *end, int64_t *out)
{
	const int64_t limit = (int64_t)1 << 40; /* more than any text has digits */
	bool minus = s < end && *s == '-';
	int64_t e = 0;

	s += minus || (s < end && *s == '+');
	if (s == end)
		return false;
	for (; s < end && digit(*s); s++)
		if (e < limit)
			e = e * 10 + (*s - '0');
	*out = minus ? -e : e;
	return s == end;
}

/* Parses -digits.digits e digits; false if it is anything else. Leading zeros are accepted. */
static bool decimal(const char *s, size_t n, struct decimal *out)
{
	const char *end = s + n, *first;
	int64_t fraction = 0, e = 0;

	*out = (struct decimal){ .minus = n > 0 && *s == '-' };
	s += out->minus;
	first = s;
	for (; s < end && digit(*s); s++)
		take_digit(out, *s);
	if (s == first)
		return false;
	if (s < end && *s == '.') {
		first = ++s;
		for (; s < end && digit(*s); s++)
			take_digit(out, *s);
		fraction = s - first;
		if (fraction == 0)
			return false;
	}
	if (s < end && (*s == 'e' || *s == 'E')) {
		if (!exponent(s + 1, end, &e))
			return false;
		s = end;
	}
	assert(fraction >= 0 && (size_t)fraction <= n);
	out->zeros += e - fraction;
	return s == end;
}

/* The integer of a number, or of a string with one. */
static enum whole whole(const struct skv_json_node *v, bool *minus, uint64_t *out)
{
	struct decimal d;

	switch (v->type) {
	case SKV_JSON_INTEGER:
		*minus = v->i < 0;
		*out = *minus ? 0 - (uint64_t)v->i : (uint64_t)v->i;
		return WHOLE;
	case SKV_JSON_UNSIGNED:
		*minus = false;
		*out = v->u;
		return WHOLE;
	case SKV_JSON_REAL:
	case SKV_JSON_STRING:
		break;
	default:
		return NO_NUMBER;
	}
	if (!decimal(v->s, v->n, &d))
		return NO_NUMBER;
	*minus = d.minus;
	*out = d.v;
	if (d.over)
		return TOO_LARGE;
	if (d.v == 0)
		return WHOLE;
	if (d.zeros < 0)
		return NO_INTEGER;
	for (; d.zeros > 0; d.zeros--)
		if (__builtin_mul_overflow(*out, 10u, out))
			return TOO_LARGE;
	return WHOLE;
}

static bool not_whole(struct skv_proto_in *in, enum whole w)
{
	return skv_proto_fail(in, SKV_E_INVALID, "%s",
			      w == NO_NUMBER  ? "must be an integer, or a string with one" :
			      w == NO_INTEGER ? "has a fraction, must be an integer" :
						"is out of range");
}

/* A signed integer of `bits` bits. */
static bool read_signed(struct skv_proto_in *in, const struct skv_json_node *v, unsigned bits,
			int64_t *out)
{
	uint64_t max = ((uint64_t)1 << (bits - 1)) - 1, u;
	bool minus;
	enum whole w = whole(v, &minus, &u);

	assert(bits == 32 || bits == 64);
	if (w == WHOLE && u > max + minus)
		w = TOO_LARGE;
	if (w != WHOLE)
		return not_whole(in, w);
	*out = (int64_t)(minus ? 0 - u : u);
	return true;
}

static bool read_unsigned(struct skv_proto_in *in, const struct skv_json_node *v, uint64_t max,
			  uint64_t *out)
{
	bool minus;
	enum whole w = whole(v, &minus, out);

	if (w == WHOLE && (*out > max || (minus && *out > 0)))
		w = TOO_LARGE;
	return w == WHOLE || not_whole(in, w);
}

static bool is_text(const struct skv_json_node *v, const char *s)
{
	return skv_json_is(v, s, strlen(s));
}

/* Parses the text of a number or string. The locale is "C": no program of ours sets another. */
static bool read_real_text(struct skv_proto_in *in, const struct skv_json_node *v, bool single,
			   double *out)
{
	struct decimal d;
	char *copy;

	if (v->type == SKV_JSON_STRING) {
		if (is_text(v, "NaN"))
			*out = NAN;
		else if (is_text(v, "Infinity"))
			*out = INFINITY;
		else if (is_text(v, "-Infinity"))
			*out = -INFINITY;
		else if (!decimal(v->s, v->n, &d))
			return skv_proto_fail(in, SKV_E_INVALID, "must be a number");
		else
			goto number;
		return true;
	}
number:
	copy = skv_proto_text(in, v->s, v->n);
	if (!copy)
		return false;
	*out = single ? (double)strtof(copy, NULL) : strtod(copy, NULL);
	return isfinite(*out) || skv_proto_fail(in, SKV_E_INVALID, "is out of range");
}

static bool read_real(struct skv_proto_in *in, const struct skv_json_node *v, bool single,
		      double *out)
{
	switch (v->type) {
	case SKV_JSON_INTEGER:
		*out = single ? (double)(float)v->i : (double)v->i;
		return true;
	case SKV_JSON_UNSIGNED:
		*out = single ? (double)(float)v->u : (double)v->u;
		return true;
	case SKV_JSON_REAL:
	case SKV_JSON_STRING:
		return read_real_text(in, v, single, out);
	default:
		return skv_proto_fail(in, SKV_E_INVALID, "must be a number");
	}
}

/* ---- enums ----------------------------------------------------------------------------------- */

static enum skv_proto_got read_enum(struct skv_proto_in *in, const ProtobufCEnumDescriptor *d,
				    const struct skv_json_node *v, int32_t *out)
{
	const ProtobufCEnumValue *value;
	struct decimal number;
	char name[128];
	int64_t i = 0;

	if (v->type == SKV_JSON_STRING && !decimal(v->s, v->n, &number)) {
		if (v->n >= sizeof name)
			return GOT_NOTHING;
		memcpy(name, v->s, v->n);
		name[v->n] = '\0';
		value = protobuf_c_enum_descriptor_get_value_by_name(d, name);
		if (!value)
			return GOT_NOTHING;
		*out = value->value;
		return GOT;
	}
	if (v->type != SKV_JSON_STRING && v->type != SKV_JSON_INTEGER &&
	    v->type != SKV_JSON_UNSIGNED && v->type != SKV_JSON_REAL) {
		skv_proto_fail(in, SKV_E_INVALID, "must be a name or number of an enum");
		return GOT_FAILED;
	}
	if (!read_signed(in, v, 32, &i))
		return GOT_FAILED;
	*out = (int32_t)i;
	return GOT;
}

/* ---- texts and bytes ------------------------------------------------------------------------- */

static bool read_text(struct skv_proto_in *in, const struct skv_json_node *v, char **out)
{
	if (v->type != SKV_JSON_STRING)
		return skv_proto_fail(in, SKV_E_INVALID, "must be a string");
	*out = skv_proto_text(in, v->s, v->n);
	return *out != NULL;
}

static int sextet(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (digit(c))
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* Base64, standard or URL-safe, padded or not. */
static bool read_bytes(struct skv_proto_in *in, const struct skv_json_node *v,
		       ProtobufCBinaryData *out)
{
	size_t n = v->n, full;
	uint32_t bits = 0;
	unsigned have = 0;

	if (v->type != SKV_JSON_STRING)
		return skv_proto_fail(in, SKV_E_INVALID, "must be a string of base64");
	full = n;
	while (n > 0 && full - n < 2 && v->s[n - 1] == '=')
		n--;
	out->len = 0;
	out->data = skv_proto_alloc(in, n, 1);
	if (!out->data)
		return false;
	for (size_t i = 0; i < n; i++) {
		int c = sextet(v->s[i]);

		if (c < 0)
			return skv_proto_fail(in, SKV_E_INVALID, "is not base64");
		bits = bits << 6 | (uint32_t)c;
		have += 6;
		if (have >= 8) {
			have -= 8;
			assert(have < 8 && out->len < n);
			out->data[out->len++] = (uint8_t)(bits >> have);
		}
	}
	if (n % 4 == 1 || (full != n && full % 4 != 0))
		return skv_proto_fail(in, SKV_E_INVALID, "is not base64");
	return true;
}

void skv_proto_base64_write(struct skv_buf *out, const uint8_t *p, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	skv_put_u8(out, '"');
	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
			     (left > 2 ? p[i + 2] : 0);
		char text[4] = { digits[v >> 18], digits[v >> 12 & 63],
				 left > 1 ? digits[v >> 6 & 63] : '=',
				 left > 2 ? digits[v & 63] : '=' };

		skv_put_bytes(out, text, sizeof text);
	}
	skv_put_u8(out, '"');
}

static bool read_bool(struct skv_proto_in *in, const struct skv_json_node *v,
		      protobuf_c_boolean *out)
{
	bool text = v->type == SKV_JSON_STRING;

	*out = v->type == SKV_JSON_TRUE || (text && is_text(v, "true"));
	return *out || v->type == SKV_JSON_FALSE || (text && is_text(v, "false")) ||
	       skv_proto_fail(in, SKV_E_INVALID, "must be true or false");
}

/* ---- all of them ----------------------------------------------------------------------------- */

enum skv_proto_got skv_proto_scalar(struct skv_proto_in *in, const ProtobufCFieldDescriptor *f,
				    const struct skv_json_node *v, void *out)
{
	int64_t i = 0;
	uint64_t u = 0;
	double real = 0;
	bool ok;

	switch (f->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		ok = read_signed(in, v, 32, &i);
		*(int32_t *)out = (int32_t)i;
		break;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		ok = read_signed(in, v, 64, out);
		break;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		ok = read_unsigned(in, v, UINT32_MAX, &u);
		*(uint32_t *)out = (uint32_t)u;
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		ok = read_unsigned(in, v, UINT64_MAX, out);
		break;
	case PROTOBUF_C_TYPE_FLOAT:
		ok = read_real(in, v, true, &real);
		*(float *)out = (float)real;
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		ok = read_real(in, v, false, out);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		ok = read_bool(in, v, out);
		break;
	case PROTOBUF_C_TYPE_ENUM:
		return read_enum(in, f->descriptor, v, out);
	case PROTOBUF_C_TYPE_STRING:
		ok = read_text(in, v, out);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		ok = read_bytes(in, v, out);
		break;
	default: /* messages are read elsewhere */
		ok = skv_proto_fail(in, SKV_E_INTERNAL, "of no type that can be here");
	}
	return ok ? GOT : GOT_FAILED;
}
