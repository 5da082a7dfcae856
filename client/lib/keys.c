/* keys.c - the caller's keys in the form sent on the wire, the order of specs, and names allowed in
 * paths. Stateless. */
#include "client.h"

#include <string.h>

#include <skv/utf8.h>

int skv_name_check(const char *name, const char *field, struct skv_error *err)
{
	if (name && skv_name_valid(name, strlen(name)))
		return SKV_OK;
	return skv_fail(err, SKV_E_INVALID, field,
			"1..%u of [A-Za-z0-9._:=@+,-], beginning with a letter, digit or '_'",
			SKV_MAX_NAME);
}

static bool key_string_valid(const char *s, size_t n)
{
	uint32_t c;

	if (n < 1 || n > SKV_MAX_KEY_STRING || memchr(s, 0, n))
		return false;
	for (size_t i = 0, k; i < n; i += k) {
		k = skv_utf8_next(s + i, n - i, &c);
		if (k == 0)
			return false;
	}
	return true;
}

static bool is_among(const uint32_t *order, uint32_t n, uint32_t which)
{
	for (uint32_t i = 0; i < n; i++)
		if (order[i] == which)
			return true;
	return false;
}

bool skv_specs_order(const char *const *columns, uint32_t n, const char *const *asked,
		     uint32_t n_asked, uint32_t *order, const uint32_t **out)
{
	*out = NULL;
	if (n_asked == 0)
		return true;
	if (n != n_asked)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;

		while (k < n && strcmp(columns[i], asked[k]) != 0)
			k++;
		if (k == n || is_among(order, i, k))
			return false;
		order[i] = k;
	}
	*out = order;
	return true;
}

int skv_model_name_check(const char *name, const char *field, struct skv_error *err)
{
	if (name && skv_model_name_valid(name, strlen(name)))
		return SKV_OK;
	return skv_fail(
		err, SKV_E_INVALID, field,
		"1..%u of [A-Za-z0-9._:=@+,-] in parts with a '/' between them, each beginning "
		"with a letter, digit or '_'",
		SKV_MAX_NAME);
}

const char *skv_path_segment(const char *name, char out[SKV_SEGMENT_MAX])
{
	char *p = out;

	SKV_CHECK(strlen(name) <= SKV_MAX_NAME);
	for (; *name && p < out + SKV_SEGMENT_MAX - 3; name++) {
		if (*name != '/')
			*p++ = *name;
		else
			p = stpcpy(p, "%2F");
	}
	*p = '\0';
	return out;
}

static int bad_string(const char *field, uint32_t i, struct skv_error *err)
{
	return skv_fail(err, SKV_E_INVALID, field, "key %u: a string of 1..%u bytes, UTF-8", i,
			SKV_MAX_KEY_STRING);
}

static int check_strings(const struct slabkv_keys *keys, const char *field, struct skv_error *err)
{
	for (uint32_t i = 0; i < keys->n; i++) {
		const char *s = keys->v.strings[i];

		if (!s || !key_string_valid(s, strnlen(s, SKV_MAX_KEY_STRING + 1)))
			return bad_string(field, i, err);
	}
	return SKV_OK;
}

/* Keys side by side as strings of their own. */
static int cut_text(const struct slabkv_keys *keys, const char *field, struct skv_arena *a,
		    const char *const **out, struct skv_error *err)
{
	const char **v = skv_arena_calloc(a, keys->n, sizeof *v);

	if (!v)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < keys->n; i++) {
		uint64_t from = keys->offsets[i], to = keys->offsets[i + 1];

		if (to < from || !key_string_valid(keys->v.text + from, to - from))
			return bad_string(field, i, err);
		v[i] = skv_arena_strndup(a, keys->v.text + from, to - from);
		if (!v[i])
			return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	*out = v;
	return SKV_OK;
}

static struct skv_key key_of_bytes(const uint8_t *b)
{
	struct skv_key k = { 0, 0 };

	for (int i = 0; i < 8; i++) {
		k.hi = k.hi << 8 | b[i];
		k.lo = k.lo << 8 | b[8 + i];
	}
	return k;
}

static struct skv_key key_at(const struct slabkv_keys *keys, uint32_t i)
{
	if (keys->form == SLABKV_KEYS_INT)
		return (struct skv_key){ 0, keys->v.ints[i] };
	if (keys->form == SLABKV_KEYS_WIDE)
		return (struct skv_key){ keys->v.wide[i].hi, keys->v.wide[i].lo };
	return key_of_bytes(keys->v.bytes + (size_t)16 * i);
}

bool skv_keys_are_text(const struct slabkv_keys *keys)
{
	return keys->form == SLABKV_KEYS_STRING || keys->form == SLABKV_KEYS_TEXT;
}

int skv_keys_input(const struct slabkv_keys *keys, const char *field, struct skv_arena *a,
		   struct skv_key_input *out, struct skv_error *err)
{
	struct skv_key *wide;

	if (!keys || keys->n == 0 || !keys->v.strings)
		return skv_fail(err, SKV_E_INVALID, field, "at least one key");
	if (!SKV_HAS(keys, parent))
		return skv_size_refuse(err, "slabkv_keys_of");
	if (keys->n > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_TOO_LARGE, field, "at most %u keys in a call",
				SKV_MAX_KEYS);
	*out = (struct skv_key_input){ .n = keys->n };
	if (keys->form == SLABKV_KEYS_STRING) {
		out->form = SKV_KEYS_STRING;
		out->strings = keys->v.strings;
		return check_strings(keys, field, err);
	}
	if (keys->form == SLABKV_KEYS_TEXT) {
		if (!keys->offsets)
			return skv_fail(err, SKV_E_INVALID, field, "offsets are missing");
		out->form = SKV_KEYS_STRING;
		return cut_text(keys, field, a, &out->strings, err);
	}
	if (keys->form != SLABKV_KEYS_INT && keys->form != SLABKV_KEYS_WIDE &&
	    keys->form != SLABKV_KEYS_BYTES)
		return skv_fail(err, SKV_E_INVALID, field, "unknown form of keys");
	wide = skv_arena_calloc(a, keys->n, sizeof *wide);
	if (!wide)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < keys->n; i++)
		wide[i] = key_at(keys, i);
	SKV_CHECK(!skv_keys_are_text(keys));
	out->keys = wide;
	out->form = keys->form == SLABKV_KEYS_INT ? SKV_KEYS_INT : SKV_KEYS_HEX;
	return SKV_OK;
}
