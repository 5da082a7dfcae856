/*
 * utf8.c - decodes one character, truncates between characters.
 *
 * Texts come from outside and go into logs and error messages, which must be valid UTF-8 for their
 * parsers. Strict by RFC 3629: forms that decoders might disagree on are invalid. Stateless, no
 * locks, any thread.
 */
#include <skv/utf8.h>

size_t skv_utf8_next(const char *s, size_t n, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint8_t lead = (uint8_t)s[0];
	size_t len = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
	uint32_t v = len == 1 ? lead : lead & (0xffu >> (len + 1));

	if (len == 0 || len > n || lead > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++) {
		uint8_t next = (uint8_t)s[i];

		if ((next & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (next & 0x3f);
	}
	if (v < least[len] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
		return 0;
	*c = v;
	return len;
}

size_t skv_utf8_cut(const char *s, size_t n, size_t max)
{
	size_t at = max;

	if (n <= max)
		return n;
	/* At most three bytes of a character can precede the cut. */
	while (at > 0 && max - at < 3 && ((uint8_t)s[at] & 0xc0) == 0x80)
		at--;
	return ((uint8_t)s[at] & 0xc0) == 0x80 ? max : at;
}
