/* keys.c - the caller's keys in the form that travels, and names that may stand in a path. No
 * state. */
#include "client.h"

#include <string.h>

int skv_name_check(const char *name, const char *field, struct skv_error *err)
{
	if (name && skv_name_valid(name, strlen(name)))
		return SKV_OK;
	return skv_fail(err, SKV_E_INVALID, field,
			"1..%u of [A-Za-z0-9._:=@+,-], beginning with a letter, digit or '_'", SKV_MAX_NAME);
}

/* JSON numbers end at 2^63 - 1; above, n travels as what it means: the 128-bit key {0, n}. */
static enum skv_key_form form_of_ints(const uint64_t *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (v[i] > INT64_MAX)
			return SKV_KEYS_HEX;
	return SKV_KEYS_INT;
}

static int check_strings(const struct slabkv_keys *keys, const char *field, struct skv_error *err)
{
	for (uint32_t i = 0; i < keys->n; i++) {
		const char *s = keys->v.strings[i];
		size_t n = s ? strnlen(s, SKV_MAX_KEY_STRING + 1) : 0;

		if (n < 1 || n > SKV_MAX_KEY_STRING)
			return skv_fail(err, SKV_E_INVALID, field,
					"key %u: a string of 1..%u bytes", i, SKV_MAX_KEY_STRING);
	}
	return SKV_OK;
}

int skv_keys_input(const struct slabkv_keys *keys, const char *field, struct skv_arena *a,
		   struct skv_key_input *out, struct skv_error *err)
{
	struct skv_key *wide;

	if (!keys || keys->n == 0 || !keys->v.strings)
		return skv_fail(err, SKV_E_INVALID, field, "at least one key");
	if (keys->n > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_TOO_LARGE, field, "at most %u keys in a call",
				SKV_MAX_KEYS);
	*out = (struct skv_key_input){ .n = keys->n };
	if (keys->form == SLABKV_KEYS_STRING) {
		out->form = SKV_KEYS_STRING;
		out->strings = keys->v.strings;
		return check_strings(keys, field, err);
	}
	if (keys->form != SLABKV_KEYS_INT && keys->form != SLABKV_KEYS_WIDE)
		return skv_fail(err, SKV_E_INVALID, field, "unknown form of keys");
	wide = skv_arena_calloc(a, keys->n, sizeof *wide);
	if (!wide)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < keys->n; i++) {
		if (keys->form == SLABKV_KEYS_INT)
			wide[i] = (struct skv_key){ 0, keys->v.ints[i] };
		else
			wide[i] = (struct skv_key){ keys->v.wide[i].hi, keys->v.wide[i].lo };
	}
	out->keys = wide;
	out->form = keys->form == SLABKV_KEYS_WIDE ? SKV_KEYS_HEX
						    : form_of_ints(keys->v.ints, keys->n);
	return SKV_OK;
}
