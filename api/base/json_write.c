/*
 * json_write.c - JSON writer over struct kvb_buf. No state, no tree, no allocation but the buffer's.
 *
 * Any thread, one at a time per buffer. It never checks that the caller's brackets match: the round
 * trip tests do.
 */
#include <kvb/json_out.h>

#include <kvb/utf8.h>

/* ---- raw ---------------------------------------------------------------------------------------- */

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

char *kvb_jraw_digits(char *p, uint64_t v)
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
	return kvb_jraw_bytes(p, text + at, sizeof text - at);
}

char *kvb_jraw_u64_string(char *p, uint64_t v)
{
	*p++ = '"';
	p = kvb_jraw_digits(p, v);
	*p++ = '"';
	return p;
}

char *kvb_jraw_u64(char *p, uint64_t v)
{
	return v > INT64_MAX ? kvb_jraw_u64_string(p, v) : kvb_jraw_digits(p, v);
}

static char *hex(char *p, uint64_t v)
{
	static const char digit[] = "0123456789abcdef";

	for (int shift = 60; shift >= 0; shift -= 4)
		*p++ = digit[v >> shift & 15];
	return p;
}

char *kvb_jraw_hex64(char *p, uint64_t v)
{
	*p++ = '"';
	p = hex(p, v);
	*p++ = '"';
	return p;
}

char *kvb_jraw_key(char *p, struct kvb_key key)
{
	*p++ = '"';
	p = hex(hex(p, key.hi), key.lo);
	*p++ = '"';
	return p;
}

/* ---- values ------------------------------------------------------------------------------------- */

/* Stores a comma, unless this is the first thing after a bracket or the value of a field. */
static char *separate(const struct kvb_buf *b, char *p)
{
	uint8_t last = b->len ? b->data[b->len - 1] : '[';

	if (last != '{' && last != '[' && last != ':')
		*p++ = ',';
	return p;
}

/* Room for a comma and n bytes; NULL when there is none. */
static char *begin(struct kvb_buf *b, size_t n)
{
	char *p = kvb_jraw_begin(b, n + 1);

	return p ? separate(b, p) : NULL;
}

static void value(struct kvb_buf *b, const char *s, size_t n)
{
	char *p = begin(b, n);

	if (p)
		kvb_jraw_end(b, kvb_jraw_bytes(p, s, n));
}

void kvb_jout_begin(struct kvb_buf *b) { kvb_put_u8(b, '{'); }
void kvb_jout_open(struct kvb_buf *b, char bracket) { value(b, &bracket, 1); }
void kvb_jout_close(struct kvb_buf *b, char bracket) { kvb_put_u8(b, (uint8_t)bracket); }

void kvb_jout_name(struct kvb_buf *b, const char *name)
{
	size_t n = strlen(name);
	char *p = begin(b, n + 3);

	if (!p)
		return;
	*p++ = '"';
	p = kvb_jraw_bytes(p, name, n);
	kvb_jraw_end(b, kvb_jraw_text(p, "\":"));
}

void kvb_jout_null(struct kvb_buf *b) { value(b, "null", 4); }

void kvb_jout_bool(struct kvb_buf *b, bool v)
{
	if (v)
		value(b, "true", 4);
	else
		value(b, "false", 5);
}

void kvb_jout_u64(struct kvb_buf *b, uint64_t v)
{
	char *p = begin(b, KVB_JRAW_U64);

	if (p)
		kvb_jraw_end(b, kvb_jraw_u64(p, v));
}

void kvb_jout_u64_string(struct kvb_buf *b, uint64_t v)
{
	char *p = begin(b, KVB_JRAW_U64);

	if (p)
		kvb_jraw_end(b, kvb_jraw_u64_string(p, v));
}

static char *digits(char *p, int64_t v)
{
	if (v < 0)
		*p++ = '-';
	return kvb_jraw_digits(p, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void kvb_jout_i64(struct kvb_buf *b, int64_t v)
{
	char *p = begin(b, KVB_JRAW_U64);

	if (p)
		kvb_jraw_end(b, digits(p, v));
}

void kvb_jout_i64_string(struct kvb_buf *b, int64_t v)
{
	char *p = begin(b, KVB_JRAW_U64);

	if (!p)
		return;
	*p++ = '"';
	p = digits(p, v);
	*p++ = '"';
	kvb_jraw_end(b, p);
}

void kvb_jout_plain(struct kvb_buf *b, const char *s, size_t n) { value(b, s, n); }

void kvb_jout_key(struct kvb_buf *b, struct kvb_key key)
{
	char *p = begin(b, KVB_JRAW_KEY);

	if (p)
		kvb_jraw_end(b, kvb_jraw_key(p, key));
}

void kvb_jout_hex64(struct kvb_buf *b, uint64_t v)
{
	char *p = begin(b, KVB_JRAW_KEY);

	if (p)
		kvb_jraw_end(b, kvb_jraw_hex64(p, v));
}

static void escape(struct kvb_buf *b, uint8_t c)
{
	static const char digits[] = "0123456789abcdef";
	char text[6] = { '\\', 'u', '0', '0', digits[c >> 4], digits[c & 15] };

	if (c == '"' || c == '\\') {
		text[1] = (char)c;
		kvb_put_bytes(b, text, 2);
	} else if (c == '\n') {
		kvb_put_bytes(b, "\\n", 2);
	} else {
		kvb_put_bytes(b, text, 6);
	}
}

static void quote(struct kvb_buf *b, const char *text, size_t length, bool mend)
{
	const char *s = text, *end = text + length, *plain = s;

	value(b, "\"", 1);
	while (s < end) {
		uint32_t c;
		size_t n = mend && (uint8_t)*s >= 0x80 ? kvb_utf8_next(s, (size_t)(end - s), &c) : 1;

		if (n && (uint8_t)*s >= 0x20 && *s != '"' && *s != '\\') {
			s += n;
			continue;
		}
		kvb_put_bytes(b, plain, (size_t)(s - plain));
		if (n)
			escape(b, (uint8_t)*s);
		else
			kvb_put_u8(b, '?');
		plain = ++s;
	}
	kvb_put_bytes(b, plain, (size_t)(s - plain));
	kvb_put_u8(b, '"');
}

void kvb_jout_string(struct kvb_buf *b, const char *s) { quote(b, s, strlen(s), false); }
void kvb_jout_string_n(struct kvb_buf *b, const char *s, size_t n) { quote(b, s, n, false); }
void kvb_jout_text(struct kvb_buf *b, const char *s) { quote(b, s, strlen(s), true); }

void kvb_jout_field_bool(struct kvb_buf *b, const char *name, bool v)
{
	kvb_jout_name(b, name);
	kvb_jout_bool(b, v);
}

void kvb_jout_field_u64(struct kvb_buf *b, const char *name, uint64_t v)
{
	kvb_jout_name(b, name);
	kvb_jout_u64(b, v);
}

void kvb_jout_field_string(struct kvb_buf *b, const char *name, const char *s)
{
	kvb_jout_name(b, name);
	kvb_jout_string(b, s);
}

void kvb_jout_field_text(struct kvb_buf *b, const char *name, const char *s)
{
	kvb_jout_name(b, name);
	kvb_jout_text(b, s);
}

void kvb_jout_field_strings(struct kvb_buf *b, const char *name, const char *const *v, uint32_t n)
{
	kvb_jout_name(b, name);
	kvb_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++)
		kvb_jout_string(b, v[i]);
	kvb_jout_close(b, ']');
}
