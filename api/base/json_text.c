/*
 * json_text.c - strings and numbers inside JSON text.
 *
 * Strings are scanned eight bytes at a time for a quote, a backslash, a control character, anything
 * not ASCII. Numbers are never rounded: an integer is exact or refused, and whether a fraction fits
 * a double is decided by its digits.
 *
 * Stateless, no allocation; any thread.
 */
#include "json_text.h"

#include <endian.h>

#include <skv/utf8.h>

#define ONES 0x0101010101010101ull
#define HIGHS 0x8080808080808080ull

static bool is_digit(char c) { return (unsigned char)(c - '0') <= 9; }

bool skv_json_stop(struct skv_json_at *a, const char *p, enum skv_json_fault fault,
		   const char *what)
{
	uint32_t c;

	if (p < a->end && (uint8_t)*p >= 0x80 && skv_utf8_next(p, (size_t)(a->end - p), &c) == 0)
		fault = SKV_JSON_UTF8;
	a->p = p;
	a->fault = fault;
	a->what = what;
	return false;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* The next byte that is not a plain ASCII character of a string. */
static const char *plain_end(const char *p, const char *end)
{
	while (end - p >= 8) {
		uint64_t x, hit;

		memcpy(&x, p, 8);
		x = le64toh(x);
		/* A borrow can only fake a match above a true one, and the lowest is taken. */
		hit = (x | (x - 0x20 * ONES) | ((x ^ '"' * ONES) - ONES) |
		       ((x ^ '\\' * ONES) - ONES)) &
		      HIGHS;
		if (hit)
			return p + __builtin_ctzll(hit) / 8;
		p += 8;
	}
	while (p < end && (uint8_t)*p >= 0x20 && (uint8_t)*p < 0x80 && *p != '"' && *p != '\\')
		p++;
	return p;
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte at p is not a valid escape; it counts as read. */
static bool bad_escape(struct skv_json_at *a, const char *p)
{
	skv_json_stop(a, p, SKV_JSON_SYNTAX, "invalid escape");
	if (p < a->end && a->fault == SKV_JSON_SYNTAX)
		a->p++;
	return false;
}

/* p: after the backslash. */
static bool skip_escape(struct skv_json_at *a, const char *p)
{
	if (p == a->end || !*p || !strchr("\"\\/bfnrtu", *p))
		return bad_escape(a, p);
	if (*p++ == 'u')
		for (int i = 0; i < 4; i++, p++)
			if (p == a->end || hex_digit(*p) < 0)
				return bad_escape(a, p);
	a->p = p;
	return true;
}

bool skv_json_skip_string(struct skv_json_at *a, bool *escaped)
{
	*escaped = false;
	for (;;) {
		const char *p = plain_end(a->p, a->end);
		uint32_t c;
		size_t n;

		if (p == a->end)
			return skv_json_stop(a, p, SKV_JSON_SYNTAX, "the string does not end");
		if (*p == '"') {
			a->p = p + 1;
			return true;
		}
		if (*p == '\\') {
			*escaped = true;
			if (!skip_escape(a, p + 1))
				return false;
			continue;
		}
		n = (uint8_t)*p < 0x80 ? 0 : skv_utf8_next(p, (size_t)(a->end - p), &c);
		if (n == 0)
			return skv_json_stop(a, p, SKV_JSON_SYNTAX,
					     "control character in a string");
		a->p = p + n;
	}
}

static uint32_t hex4(const char *s)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v = v << 4 | (uint32_t)hex_digit(s[i]);
	return v;
}

static size_t put_utf8(char *out, uint32_t c)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(lead[n] | c);
	return n;
}

/* The character of \uXXXX, `s` being after the u; UINT32_MAX for half a pair. */
static uint32_t unicode(const char *s, const char *end, size_t *used)
{
	uint32_t c = hex4(s), low;

	*used = 4;
	if (c < 0xd800 || c > 0xdfff)
		return c;
	if (c > 0xdbff || end - s < 10 || s[4] != '\\' || s[5] != 'u')
		return UINT32_MAX;
	low = hex4(s + 6);
	*used = 10;
	return low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) :
						UINT32_MAX;
}

size_t skv_json_unescape(const char *s, size_t n, char *out, bool *nul)
{
	static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
	const char *end = s + n;
	char *o = out;

	*nul = false;
	while (s < end) {
		const char *back = memchr(s, '\\', (size_t)(end - s));
		size_t plain = (size_t)((back ? back : end) - s), used;
		uint32_t c;

		memcpy(o, s, plain);
		o += plain;
		if (!back)
			break;
		s = back + 2;
		if (back[1] != 'u') {
			*o++ = means[strchr(names, back[1]) - names];
			continue;
		}
		c = unicode(s, end, &used);
		if (c == UINT32_MAX)
			return SIZE_MAX;
		*nul |= c == 0;
		o += put_utf8(o, c);
		s += used;
	}
	return (size_t)(o - out);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The smallest number that a double rounds to infinity: 2^1024 - 2^970. */
static const char too_large[] =
	"179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017"
	"977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273"
	"854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704"
	"342711559699508093042880177904174497792";

/* Compares .d1d2d3... with .too_large, both as fractions. */
static bool digits_too_large(const char *s, const char *end)
{
	const char *t = too_large;

	for (; s < end && (is_digit(*s) || *s == '.'); s++) {
		if (*s == '.')
			continue;
		if (!*t)
			return true;
		if (*s != *t)
			return *s > *t;
		t++;
	}
	/* The text has ended first: less, unless only zeros were to come; and the last digit is not
	 * zero. */
	return !*t;
}

/* For a checked fraction, from after the sign. */
static bool real_too_large(const char *s, const char *end)
{
	const int64_t limit = (int64_t)1 << 40; /* more than any text has digits */
	const char *first = NULL, *point = NULL, *p = s;
	int64_t exponent = 0;
	bool minus;

	for (; p < end && (is_digit(*p) || *p == '.'); p++) {
		if (*p == '.')
			point = p;
		else if (!first && *p != '0')
			first = p;
	}
	if (!first)
		return false;
	if (!point)
		point = p;
	if (p < end) { /* e */
		minus = *++p == '-';
		p += minus || *p == '+';
		for (; p < end; p++)
			if (exponent < limit)
				exponent = exponent * 10 + (*p - '0');
		if (minus)
			exponent = -exponent;
	}
	/* The number is .first... * 10^exponent */
	exponent += first < point ? point - first : point - first + 1;
	if (exponent != (int64_t)sizeof too_large - 1)
		return exponent > (int64_t)sizeof too_large - 1;
	return digits_too_large(first, end);
}

static const char *digits(const char *p, const char *end)
{
	while (p < end && is_digit(*p))
		p++;
	return p;
}

/* p: at the point or e after the digits of a number that begins at `start`. */
static bool fraction(struct skv_json_at *a, const char *start, const char *p,
		     struct skv_json_node *out)
{
	static const char what[] = "a digit is missing";
	bool minus = *start == '-';

	if (*p == '.') {
		p++;
		if (p == a->end || !is_digit(*p))
			return skv_json_stop(a, p, SKV_JSON_SYNTAX, what);
		p = digits(p, a->end);
	}
	if (p < a->end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < a->end && (*p == '+' || *p == '-'))
			p++;
		if (p == a->end || !is_digit(*p))
			return skv_json_stop(a, p, SKV_JSON_SYNTAX, what);
		p = digits(p, a->end);
	}
	if (real_too_large(start + minus, p))
		return skv_json_stop(a, p, SKV_JSON_NUMBER, NULL);
	out->type = SKV_JSON_REAL;
	out->s = start;
	out->n = (uint32_t)(p - start);
	a->p = p;
	return true;
}

/* The number formed by eight digits at p; false if they are not eight digits. */
static inline bool eight_digits(const char *p, uint64_t *out)
{
	uint64_t x;

	memcpy(&x, p, 8);
	x = le64toh(x);
	if (((x & 0xf0 * ONES) | ((x + 0x06 * ONES) & 0xf0 * ONES) >> 4) != 0x33 * ONES)
		return false;
	x -= '0' * ONES;
	x = x * 10 + (x >> 8); /* pairs, in every other byte */
	*out = ((x & 0x000000ff000000ffu) * (100 + (1000000ull << 32)) +
		(x >> 16 & 0x000000ff000000ffu) * (1 + (10000ull << 32))) >> 32;
	return true;
}

bool skv_json_number(struct skv_json_at *a, bool wide, struct skv_json_node *out)
{
	const char *start = a->p, *p = start, *end = a->end;
	bool minus = *p == '-', over = false;
	uint64_t v = 0, eight;

	p += minus;
	if (p == end || !is_digit(*p))
		return skv_json_stop(a, p, SKV_JSON_SYNTAX, "a digit is missing");
	if (*p == '0') {
		if (++p < end && is_digit(*p))
			return skv_json_stop(a, p, SKV_JSON_SYNTAX, "a number begins with 0");
	} else {
		/* Sixteen digits always fit: no overflow check. */
		for (const char *most = p + 16; p < most && end - p >= 8 && eight_digits(p, &eight);
		     p += 8)
			v = v * 100000000 + eight;
		for (; p < end && is_digit(*p); p++)
			if (__builtin_mul_overflow(v, 10u, &v) ||
			    __builtin_add_overflow(v, (unsigned)(*p - '0'), &v))
				over = true;
	}
	if (p < end && (*p == '.' || *p == 'e' || *p == 'E'))
		return fraction(a, start, p, out);
	if (over || v > (minus ? (uint64_t)1 << 63 : wide ? UINT64_MAX : INT64_MAX))
		return skv_json_stop(a, p, SKV_JSON_NUMBER, NULL);
	out->type = v > INT64_MAX && !minus ? SKV_JSON_UNSIGNED : SKV_JSON_INTEGER;
	out->u = minus ? 0 - v : v;
	out->n = 0;
	a->p = p;
	return true;
}
