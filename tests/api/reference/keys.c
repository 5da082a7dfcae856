/*
 * keys.c - the three forms of keys, read and written.
 *
 * Distinct fields, so that the number 1 and the string "1" are never mixed up: `keys` are strings,
 * hashed under the store's secret; `keys_int` numbers, the key {0, n}; `keys_hex` 128 bits as they are.
 * Integers never pass through a double. A key twice in one request is refused by its position.
 *
 * No state; any thread.
 */
#include "parts.h"

static const char *const forms[] = { "keys", "keys_int", "keys_hex" };
static const char *const parent_forms[] = { "parent", "parent_int", "parent_hex" };

static struct skv_key read_string_key(struct ref_jdoc *d, const struct ref_jat *at)
{
	struct skv_key none = { 0, 0 };
	size_t n = json_string_length(at->v);

	if (!json_is_string(at->v))
		ref_jdoc_fail(d, at, SKV_E_INVALID, "must be a string (numbers go into %s)", forms[1]);
	else if (n == 0 || n > SKV_MAX_KEY_STRING)
		ref_jdoc_fail(d, at, SKV_E_INVALID, "a key has 1 to %u bytes, not %zu",
			      SKV_MAX_KEY_STRING, n);
	else if (!d->in->secret)
		ref_jdoc_fail(d, at, SKV_E_INVALID, "string keys cannot be hashed here");
	else
		return skv_key_from_string(d->in->secret, json_string_value(at->v), n);
	return none;
}

static struct skv_key read_key(struct ref_jdoc *d, const struct ref_jat *at, enum skv_key_form form)
{
	switch (form) {
	case SKV_KEYS_STRING:
		return read_string_key(d, at);
	case SKV_KEYS_INT:
		return (struct skv_key){ .lo = ref_jat_u64(d, at, 0, UINT64_MAX) };
	case SKV_KEYS_HEX:
		break;
	}
	return ref_jat_key_hex(d, at);
}

/* The one field of `names` that is there; .v NULL if none is, or (a failure) more than one. */
static struct ref_jat one_of(struct ref_jdoc *d, const struct ref_jat *object,
			     const char *const names[3], enum skv_key_form *form)
{
	struct ref_jat found = { .up = object, .name = names[0] };

	for (int i = 0; i < 3; i++) {
		struct ref_jat at = ref_jat_get(object, names[i]);

		if (!at.v)
			continue;
		if (found.v)
			ref_jdoc_fail(d, &at, SKV_E_INVALID, "only one of %s, %s and %s may be given",
				      names[0], names[1], names[2]);
		found = at;
		*form = (enum skv_key_form)i;
	}
	return found;
}

/* Open addressing over positions; at most half full. The seed keeps strangers from making chains. */
static void refuse_twice(struct ref_jdoc *d, const struct ref_jat *array, const struct skv_key *keys,
			 uint32_t n)
{
	uint32_t size = 2;
	uint32_t *slots; /* position + 1, 0 = empty */
	uint64_t seed;

	while (size < 2 * n)
		size *= 2;
	slots = ref_jdoc_alloc(d, size, sizeof *slots);
	if (!slots)
		return;
	skv_random(&seed, sizeof seed);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = (uint32_t)skv_key_mix(keys[i], seed) & (size - 1);

		while (slots[at] && !skv_key_equal(keys[slots[at] - 1], keys[i]))
			at = (at + 1) & (size - 1);
		if (slots[at]) {
			struct ref_jat item = ref_jat_item(array, i);

			ref_jdoc_fail(d, &item, SKV_E_INVALID, "the same key as element %u",
				      slots[at] - 1);
			return;
		}
		slots[at] = i + 1;
	}
}

const struct skv_key *ref_jat_keys(struct ref_jdoc *d, const struct ref_jat *object, uint32_t *n)
{
	enum skv_key_form form = SKV_KEYS_STRING;
	struct ref_jat array = one_of(d, object, forms, &form);
	struct skv_key *keys;
	uint32_t count;

	*n = 0;
	if (!array.v)
		ref_jdoc_fail(d, &array, SKV_E_INVALID, "one of %s, %s and %s is required", forms[0],
			      forms[1], forms[2]);
	count = ref_jat_array(d, &array, 1, SKV_MAX_KEYS);
	keys = ref_jdoc_alloc(d, count, sizeof *keys);
	for (uint32_t i = 0; keys && i < count; i++) {
		struct ref_jat item = ref_jat_item(&array, i);

		keys[i] = read_key(d, &item, form);
	}
	if (count > 1 && ref_jdoc_ok(d))
		refuse_twice(d, &array, keys, count);
	if (ref_jdoc_ok(d))
		*n = count;
	return keys;
}

bool ref_jat_parent(struct ref_jdoc *d, const struct ref_jat *object, struct skv_key *out)
{
	enum skv_key_form form = SKV_KEYS_STRING;
	struct ref_jat at = one_of(d, object, parent_forms, &form);

	if (!ref_jdoc_ok(d) || !at.v)
		return false;
	*out = read_key(d, &at, form);
	return ref_jdoc_ok(d);
}

static void put_key(struct skv_buf *b, const struct skv_key_input *keys, uint32_t i)
{
	switch (keys->form) {
	case SKV_KEYS_STRING:
		ref_jout_string(b, keys->strings[i]);
		break;
	case SKV_KEYS_INT:
		ref_jout_u64(b, keys->keys[i].lo);
		break;
	case SKV_KEYS_HEX:
		ref_jout_key(b, keys->keys[i]);
		break;
	}
}

void ref_jout_keys(struct skv_buf *b, const struct skv_key_input *keys)
{
	ref_jout_name(b, forms[keys->form]);
	ref_jout_open(b, '[');
	for (uint32_t i = 0; i < keys->n; i++)
		put_key(b, keys, i);
	ref_jout_close(b, ']');
}

void ref_jout_parent(struct skv_buf *b, const struct skv_key_input *parent)
{
	if (!parent)
		return;
	ref_jout_name(b, parent_forms[parent->form]);
	put_key(b, parent, 0);
}
