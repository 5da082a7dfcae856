/*
 * json_write.c - JSON writer over struct skv_buf. Stateless; allocates only the buffer.
 *
 * Any thread, one at a time per buffer. It does not check that the caller's brackets match: the
 * round-trip tests do.
 */
#include <skv/json_out.h>

#include <skv/utf8.h>

/* ---- raw ------------------------------------------------------------------------------------- */

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

char *skv_jraw_digits(char *p, uint64_t v)
{
	char text[20];
	size_t at = sizeof text;

	while (v >= 100) {
		at -= 2;
		memcpy(text + at, pairs + 2 * (v % 100), 2);
		v /= 100;
	}
	if (v >= 10) {
		at -= 2;
		memcpy(text + at, pairs + 2 * v, 2);
	} else {
		text[--at] = (char)('0' + v);
	}
	return skv_jraw_bytes(p, text + at, sizeof text - at);
}

char *skv_jraw_u64_string(char *p, uint64_t v)
{
	*p++ = '"';
	p = skv_jraw_digits(p, v);
	*p++ = '"';
	return p;
}

char *skv_jraw_u64(char *p, uint64_t v)
{
	return v > INT64_MAX ? skv_jraw_u64_string(p, v) : skv_jraw_digits(p, v);
}

char *skv_jraw_hex64(char *p, uint64_t v)
{
	*p = '"';
	skv_hex64(v, p + 1);
	p[17] = '"';
	return p + 18;
}

char *skv_jraw_key(char *p, struct skv_key key)
{
	*p = '"';
	skv_key_to_hex(key, p + 1);
	p[SKV_KEY_HEX + 1] = '"';
	return p + SKV_KEY_HEX + 2;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Stores a comma, unless this is the first thing after a bracket or the value of a field. */
static char *separate(const struct skv_buf *b, char *p)
{
	uint8_t last = b->len ? b->data[b->len - 1] : '[';

	if (last != '{' && last != '[' && last != ':')
		*p++ = ',';
	return p;
}

/* Makes room for a comma and n bytes; NULL if out of memory. */
static char *begin(struct skv_buf *b, size_t n)
{
	char *p = skv_jraw_begin(b, n + 1);

	return p ? separate(b, p) : NULL;
}

static void value(struct skv_buf *b, const char *s, size_t n)
{
	char *p = begin(b, n);

	if (p)
		skv_jraw_end(b, skv_jraw_bytes(p, s, n));
}

void skv_jout_begin(struct skv_buf *b) { skv_put_u8(b, '{'); }
void skv_jout_open(struct skv_buf *b, char bracket) { value(b, &bracket, 1); }
void skv_jout_close(struct skv_buf *b, char bracket) { skv_put_u8(b, (uint8_t)bracket); }

void skv_jout_name(struct skv_buf *b, const char *name)
{
	size_t n = strlen(name);
	char *p = begin(b, n + 3);

	if (!p)
		return;
	*p++ = '"';
	p = skv_jraw_bytes(p, name, n);
	skv_jraw_end(b, skv_jraw_text(p, "\":"));
}

void skv_jout_null(struct skv_buf *b) { value(b, "null", 4); }

void skv_jout_bool(struct skv_buf *b, bool v)
{
	if (v)
		value(b, "true", 4);
	else
		value(b, "false", 5);
}

void skv_jout_u64(struct skv_buf *b, uint64_t v)
{
	char *p = begin(b, SKV_JRAW_U64);

	if (p)
		skv_jraw_end(b, skv_jraw_u64(p, v));
}

void skv_jout_u64_string(struct skv_buf *b, uint64_t v)
{
	char *p = begin(b, SKV_JRAW_U64);

	if (p)
		skv_jraw_end(b, skv_jraw_u64_string(p, v));
}

static char *digits(char *p, int64_t v)
{
	if (v < 0)
		*p++ = '-';
	return skv_jraw_digits(p, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void skv_jout_i64(struct skv_buf *b, int64_t v)
{
	char *p = begin(b, SKV_JRAW_U64);

	if (p)
		skv_jraw_end(b, digits(p, v));
}

void skv_jout_i64_string(struct skv_buf *b, int64_t v)
{
	char *p = begin(b, SKV_JRAW_U64);

	if (!p)
		return;
	*p++ = '"';
	p = digits(p, v);
	*p++ = '"';
	skv_jraw_end(b, p);
}

void skv_jout_plain(struct skv_buf *b, const char *s, size_t n) { value(b, s, n); }

void skv_jout_key(struct skv_buf *b, struct skv_key key)
{
	char *p = begin(b, SKV_JRAW_KEY);

	if (p)
		skv_jraw_end(b, skv_jraw_key(p, key));
}

void skv_jout_hex64(struct skv_buf *b, uint64_t v)
{
	char *p = begin(b, SKV_JRAW_KEY);

	if (p)
		skv_jraw_end(b, skv_jraw_hex64(p, v));
}

static void escape(struct skv_buf *b, uint8_t c)
{
	static const char digits[] = "0123456789abcdef";
	char text[6] = { '\\', 'u', '0', '0', digits[c >> 4], digits[c & 15] };

	if (c == '"' || c == '\\') {
		text[1] = (char)c;
		skv_put_bytes(b, text, 2);
	} else if (c == '\n') {
		skv_put_bytes(b, "\\n", 2);
	} else {
		skv_put_bytes(b, text, 6);
	}
}

static void quote(struct skv_buf *b, const char *text, size_t length, bool mend)
{
	const char *s = text, *end = text + length, *plain = s;

	value(b, "\"", 1);
	while (s < end) {
		uint32_t c;
		size_t n =
			mend && (uint8_t)*s >= 0x80 ? skv_utf8_next(s, (size_t)(end - s), &c) : 1;

		if (n && (uint8_t)*s >= 0x20 && *s != '"' && *s != '\\') {
			s += n;
			continue;
		}
		skv_put_bytes(b, plain, (size_t)(s - plain));
		if (n)
			escape(b, (uint8_t)*s);
		else
			skv_put_u8(b, '?');
		plain = ++s;
	}
	skv_put_bytes(b, plain, (size_t)(s - plain));
	skv_put_u8(b, '"');
}

void skv_jout_string(struct skv_buf *b, const char *s) { quote(b, s, strlen(s), false); }
void skv_jout_string_n(struct skv_buf *b, const char *s, size_t n) { quote(b, s, n, false); }
void skv_jout_text(struct skv_buf *b, const char *s) { quote(b, s, strlen(s), true); }

void skv_jout_field_bool(struct skv_buf *b, const char *name, bool v)
{
	skv_jout_name(b, name);
	skv_jout_bool(b, v);
}

void skv_jout_field_u64(struct skv_buf *b, const char *name, uint64_t v)
{
	skv_jout_name(b, name);
	skv_jout_u64(b, v);
}

void skv_jout_field_string(struct skv_buf *b, const char *name, const char *s)
{
	skv_jout_name(b, name);
	skv_jout_string(b, s);
}

void skv_jout_field_text(struct skv_buf *b, const char *name, const char *s)
{
	skv_jout_name(b, name);
	skv_jout_text(b, s);
}

void skv_jout_field_strings(struct skv_buf *b, const char *name, const char *const *v, uint32_t n)
{
	skv_jout_name(b, name);
	skv_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++)
		skv_jout_string(b, v[i]);
	skv_jout_close(b, ']');
}
