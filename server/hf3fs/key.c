/*
 * key.c - JSON scalars as keys and names. No state.
 */
#include "key.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/json_out.h>

#define DIGEST_HEX 64u /* digits of a SHA-256 */
#define NUMBER_MAX 400u /* bytes of a fraction that is read as a number */

enum { NAME_STRING, NAME_DIGEST, NAME_JSON };

/* ---- keys ------------------------------------------------------------------------------------ */

/* A text shared by equal numbers. */
static int number_text(const struct skv_json_node *v, char *out, size_t size)
{
	char text[NUMBER_MAX];
	double d;

	if (v->n >= sizeof text)
		return snprintf(out, size, "%.*s", (int)v->n, v->s);
	memcpy(text, v->s, v->n);
	text[v->n] = '\0';
	d = strtod(text, NULL);
	if (d > -0x1p63 && d < 0x1p63 && (double)(int64_t)d == d)
		return snprintf(out, size, "%" PRId64, (int64_t)d);
	return snprintf(out, size, "%.17g", d);
}

static int scalar_text(const struct skv_json_node *v, char *out, size_t size)
{
	switch (v->type) {
	case SKV_JSON_INTEGER:
		return snprintf(out, size, "%" PRId64, v->i);
	case SKV_JSON_UNSIGNED:
		return snprintf(out, size, "%" PRIu64, v->u);
	case SKV_JSON_REAL:
		return number_text(v, out, size);
	case SKV_JSON_TRUE:
		return snprintf(out, size, "1");
	case SKV_JSON_FALSE:
		return snprintf(out, size, "0");
	default:
		return snprintf(out, size, "null");
	}
}

bool hf3fs_key(const struct skv_secret *secret, const struct skv_json_node *v, struct skv_key *out)
{
	char text[64] = "\xff";
	int n;

	if (v->type == SKV_JSON_STRING) {
		*out = skv_key_from_string(secret, v->s, v->n);
		return true;
	}
	if (v->type == SKV_JSON_ARRAY || v->type == SKV_JSON_OBJECT)
		return false;
	n = scalar_text(v, text + 1, sizeof text - 1);
	*out = skv_key_from_string(secret, text,
				   1 + (n < (int)sizeof text - 1 ? (size_t)n : sizeof text - 2));
	return true;
}

bool hf3fs_key_set(struct skv_key_set *s, struct skv_arena *a, uint32_t n)
{
	uint32_t *cells = skv_arena_calloc(a, skv_key_set_cells(n), sizeof *cells);

	if (cells)
		skv_key_set_init(s, cells, n);
	return cells != NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

#define EACH(byte) (0x0101010101010101ull * (byte))

/* Packs eight hex digits into four bytes at once. False, with undefined output, if they are not
 * lower-case digits. */
static bool pack8(const char *s, uint8_t *out)
{
	uint64_t x, v, back;
	uint32_t packed;
	bool good;

	memcpy(&x, s, 8);
	x = le64toh(x);
	v = (x & EACH(0x0f)) + (x >> 6 & EACH(1)) * 9;
	good = !(v & EACH(0xf0));
	/* Re-encodes: equal only if every byte was a digit. */
	back = v + EACH('0') + ((v + EACH(6)) >> 4 & EACH(1)) * ('a' - 10 - '0');
	v = (v << 4 | v >> 8) & 0x00ff00ff00ff00ffull;
	v = (v | v >> 8) & 0x0000ffff0000ffffull;
	packed = htole32((uint32_t)(v | v >> 16));
	memcpy(out, &packed, 4);
	return good && back == x;
}

/* Returns false, with some bytes stored, if not all are digits. */
static bool pack_digest(const char *s, uint8_t *out)
{
	bool good = true;

	for (unsigned i = 0; i < DIGEST_HEX; i += 8)
		good &= pack8(s + i, out + i / 2);
	return good;
}

static size_t string_name(const struct skv_json_node *v, uint8_t *out)
{
	const size_t packed = DIGEST_HEX / 2;

	if (v->n >= DIGEST_HEX && pack_digest(v->s, out + 1)) {
		out[0] = NAME_DIGEST;
		memcpy(out + 1 + packed, v->s + DIGEST_HEX, v->n - DIGEST_HEX);
		return 1 + v->n - packed;
	}
	out[0] = NAME_STRING;
	memcpy(out + 1, v->s, v->n);
	return 1 + v->n;
}

size_t hf3fs_name(const struct skv_json_node *v, uint8_t *out)
{
	char text[24];
	int n;

	if (v->type == SKV_JSON_STRING)
		return string_name(v, out);
	assert(v->type != SKV_JSON_ARRAY && v->type != SKV_JSON_OBJECT);
	out[0] = NAME_JSON;
	if (v->type == SKV_JSON_REAL) {
		memcpy(out + 1, v->s, v->n);
		return 1 + v->n;
	}
	if (v->type == SKV_JSON_TRUE || v->type == SKV_JSON_FALSE)
		n = snprintf(text, sizeof text, v->type == SKV_JSON_TRUE ? "true" : "false");
	else
		n = scalar_text(v, text, sizeof text);
	assert(n > 0 && (size_t)n < sizeof text);
	memcpy(out + 1, text, (size_t)n);
	return 1 + (size_t)n;
}

bool hf3fs_name_put(struct skv_buf *b, const struct skv_bytes *name)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *p = name->p;
	char text[DIGEST_HEX + SKV_MAX_BLOCK_NAME];
	size_t n = 0;

	if (name->n == 0 || name->n > SKV_MAX_BLOCK_NAME || p[0] > NAME_JSON)
		return false;
	if (p[0] == NAME_JSON) {
		skv_jout_plain(b, (const char *)p + 1, name->n - 1);
		return name->n > 1;
	}
	p++;
	if (p[-1] == NAME_DIGEST) {
		if (name->n < 1 + DIGEST_HEX / 2)
			return false;
		for (; n < DIGEST_HEX; n += 2, p++) {
			text[n] = hex[*p >> 4];
			text[n + 1] = hex[*p & 15];
		}
	}
	const size_t rest = (size_t)((const uint8_t *)name->p + name->n - p);

	assert(rest <= sizeof text - n);
	memcpy(text + n, p, rest);
	skv_jout_string_n(b, text, n + rest);
	return true;
}
