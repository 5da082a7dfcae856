/* keys.c - the caller's keys in the form that travels, and names that may stand in a path. No
 * state. */
#include "client.h"

#include <string.h>

int kvb_name_check(const char *name, const char *field, struct kvb_error *err)
{
	if (name && kvb_name_valid(name, strlen(name)))
		return KVB_OK;
	return kvb_fail(err, KVB_E_INVALID, field,
			"1..%u of [A-Za-z0-9._:=@+,-], beginning with a letter, digit or '_'", KVB_MAX_NAME);
}

/* JSON numbers end at 2^63 - 1; above, n travels as what it means: the 128-bit key {0, n}. */
static enum kvb_key_form form_of_ints(const uint64_t *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (v[i] > INT64_MAX)
			return KVB_KEYS_HEX;
	return KVB_KEYS_INT;
}

static int check_strings(const struct kvblock_keys *keys, const char *field, struct kvb_error *err)
{
	for (uint32_t i = 0; i < keys->n; i++) {
		const char *s = keys->v.strings[i];
		size_t n = s ? strnlen(s, KVB_MAX_KEY_STRING + 1) : 0;

		if (n < 1 || n > KVB_MAX_KEY_STRING)
			return kvb_fail(err, KVB_E_INVALID, field,
					"key %u: a string of 1..%u bytes", i, KVB_MAX_KEY_STRING);
	}
	return KVB_OK;
}

int kvb_keys_input(const struct kvblock_keys *keys, const char *field, struct kvb_arena *a,
		   struct kvb_key_input *out, struct kvb_error *err)
{
	struct kvb_key *wide;

	if (!keys || keys->n == 0 || !keys->v.strings)
		return kvb_fail(err, KVB_E_INVALID, field, "at least one key");
	if (keys->n > KVB_MAX_KEYS)
		return kvb_fail(err, KVB_E_TOO_LARGE, field, "at most %u keys in a call",
				KVB_MAX_KEYS);
	*out = (struct kvb_key_input){ .n = keys->n };
	if (keys->form == KVBLOCK_KEYS_STRING) {
		out->form = KVB_KEYS_STRING;
		out->strings = keys->v.strings;
		return check_strings(keys, field, err);
	}
	if (keys->form != KVBLOCK_KEYS_INT && keys->form != KVBLOCK_KEYS_WIDE)
		return kvb_fail(err, KVB_E_INVALID, field, "unknown form of keys");
	wide = kvb_arena_calloc(a, keys->n, sizeof *wide);
	if (!wide)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < keys->n; i++) {
		if (keys->form == KVBLOCK_KEYS_INT)
			wide[i] = (struct kvb_key){ 0, keys->v.ints[i] };
		else
			wide[i] = (struct kvb_key){ keys->v.wide[i].hi, keys->v.wide[i].lo };
	}
	out->keys = wide;
	out->form = keys->form == KVBLOCK_KEYS_WIDE ? KVB_KEYS_HEX
						    : form_of_ints(keys->v.ints, keys->n);
	return KVB_OK;
}
