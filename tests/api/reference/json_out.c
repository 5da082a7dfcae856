/*
 * json_out.c - JSON writer over struct skv_buf. No state, no tree, no allocation but the buffer's.
 *
 * Any thread, one at a time per buffer. It never checks that the caller's brackets match: the round
 * trip tests do.
 */
#include "json_out.h"

#include <string.h>

/* A comma, unless this is the first thing after a bracket or the value of a field. */
static void separate(struct skv_buf *b)
{
	uint8_t last = b->len ? b->data[b->len - 1] : '[';

	if (last != '{' && last != '[' && last != ':')
		skv_put_u8(b, ',');
}

void ref_jout_begin(struct skv_buf *b) { skv_put_u8(b, '{'); }

void ref_jout_open(struct skv_buf *b, char bracket)
{
	separate(b);
	skv_put_u8(b, (uint8_t)bracket);
}

void ref_jout_close(struct skv_buf *b, char bracket) { skv_put_u8(b, (uint8_t)bracket); }

void ref_jout_name(struct skv_buf *b, const char *name)
{
	separate(b);
	skv_put_u8(b, '"');
	skv_put_bytes(b, name, strlen(name));
	skv_put_bytes(b, "\":", 2);
}

static void value(struct skv_buf *b, const char *s, size_t n)
{
	separate(b);
	skv_put_bytes(b, s, n);
}

void ref_jout_null(struct skv_buf *b) { value(b, "null", 4); }

void ref_jout_bool(struct skv_buf *b, bool v)
{
	if (v)
		value(b, "true", 4);
	else
		value(b, "false", 5);
}

/* Decimal with or without quotes. */
static void decimal(struct skv_buf *b, uint64_t v, bool quoted)
{
	char text[24];
	size_t at = sizeof text;

	if (quoted)
		text[--at] = '"';
	do {
		text[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	if (quoted)
		text[--at] = '"';
	value(b, text + at, sizeof text - at);
}

void ref_jout_u64(struct skv_buf *b, uint64_t v) { decimal(b, v, v > INT64_MAX); }

void ref_jout_u64_string(struct skv_buf *b, uint64_t v) { decimal(b, v, true); }

void ref_jout_key(struct skv_buf *b, struct skv_key key)
{
	char text[SKV_KEY_HEX + 3];

	skv_key_to_hex(key, text + 1);
	text[0] = '"';
	text[SKV_KEY_HEX + 1] = '"';
	value(b, text, SKV_KEY_HEX + 2);
}

void ref_jout_hex64(struct skv_buf *b, uint64_t v)
{
	char text[SKV_KEY_HEX + 3];

	skv_key_to_hex((struct skv_key){ .lo = v }, text + 1);
	text[16] = '"'; /* the low half is the second one */
	text[SKV_KEY_HEX + 1] = '"';
	value(b, text + 16, 18);
}

/* Length of the UTF-8 character at `s` (RFC 3629: shortest form, no surrogates); 0 if malformed. */
static size_t utf8_length(const uint8_t *s)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
	uint32_t c = n ? s[0] & (0xffu >> (n > 1 ? n + 1 : 1)) : 0;

	for (size_t i = 1; i < n; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	return n && c >= least[n] && c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff) ? n : 0;
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

static void quote(struct skv_buf *b, const char *text, bool mend)
{
	const uint8_t *s = (const uint8_t *)text;
	const uint8_t *plain = s;

	separate(b);
	skv_put_u8(b, '"');
	while (*s) {
		size_t n = mend ? utf8_length(s) : 1;

		if (n && *s >= 0x20 && *s != '"' && *s != '\\') {
			s += n;
			continue;
		}
		skv_put_bytes(b, plain, (size_t)(s - plain));
		if (n)
			escape(b, *s);
		else
			skv_put_u8(b, '?');
		plain = ++s;
	}
	skv_put_bytes(b, plain, (size_t)(s - plain));
	skv_put_u8(b, '"');
}

void ref_jout_string(struct skv_buf *b, const char *s) { quote(b, s, false); }
void ref_jout_text(struct skv_buf *b, const char *s) { quote(b, s, true); }

void ref_jout_field_bool(struct skv_buf *b, const char *name, bool v)
{
	ref_jout_name(b, name);
	ref_jout_bool(b, v);
}

void ref_jout_field_u64(struct skv_buf *b, const char *name, uint64_t v)
{
	ref_jout_name(b, name);
	ref_jout_u64(b, v);
}

void ref_jout_field_string(struct skv_buf *b, const char *name, const char *s)
{
	ref_jout_name(b, name);
	ref_jout_string(b, s);
}

void ref_jout_field_text(struct skv_buf *b, const char *name, const char *s)
{
	ref_jout_name(b, name);
	ref_jout_text(b, s);
}

void ref_jout_field_strings(struct skv_buf *b, const char *name, const char *const *v, uint32_t n)
{
	ref_jout_name(b, name);
	ref_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++)
		ref_jout_string(b, v[i]);
	ref_jout_close(b, ']');
}
