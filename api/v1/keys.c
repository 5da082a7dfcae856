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

#include <kvb/key_set.h>

static const char *const forms[] = { "keys", "keys_int", "keys_hex" };
static const char *const parent_forms[] = { "parent", "parent_int", "parent_hex" };

static struct kvb_key read_string_key(struct kvb_jdoc *d, const struct kvb_jat *at)
{
	struct kvb_key none = { 0, 0 };
	size_t n = at->v->n;

	if (!kvb_jat_is(at, KVB_JSON_STRING))
		kvb_jdoc_fail(d, at, KVB_E_INVALID, "must be a string (numbers go into %s)", forms[1]);
	else if (n == 0 || n > KVB_MAX_KEY_STRING)
		kvb_jdoc_fail(d, at, KVB_E_INVALID, "a key has 1 to %u bytes, not %zu",
			      KVB_MAX_KEY_STRING, n);
	else if (!d->in->secret)
		kvb_jdoc_fail(d, at, KVB_E_INVALID, "string keys cannot be hashed here");
	else
		return kvb_key_from_string(d->in->secret, at->v->s, n);
	return none;
}

static struct kvb_key read_key(struct kvb_jdoc *d, const struct kvb_jat *at, enum kvb_key_form form)
{
	switch (form) {
	case KVB_KEYS_STRING:
		return read_string_key(d, at);
	case KVB_KEYS_INT:
		return (struct kvb_key){ .lo = kvb_jat_u64(d, at, 0, UINT64_MAX) };
	case KVB_KEYS_HEX:
		break;
	}
	return kvb_jat_key_hex(d, at);
}

/* The one field of `names` that is there; .v NULL if none is, or (a failure) more than one. */
static struct kvb_jat one_of(struct kvb_jdoc *d, const struct kvb_jat *object,
			     const char *const names[3], enum kvb_key_form *form)
{
	struct kvb_jat found = { .up = object, .name = names[0], .name_n = strlen(names[0]) };

	for (int i = 0; i < 3; i++) {
		struct kvb_jat at = kvb_jat_get(object, names[i]);

		if (!at.v)
			continue;
		if (found.v)
			kvb_jdoc_fail(d, &at, KVB_E_INVALID, "only one of %s, %s and %s may be given",
				      names[0], names[1], names[2]);
		found = at;
		*form = (enum kvb_key_form)i;
	}
	return found;
}

static void refuse_twice(struct kvb_jdoc *d, const struct kvb_jat *array, const struct kvb_key *keys,
			 uint32_t n)
{
	uint32_t *cells = kvb_jdoc_alloc(d, kvb_key_set_cells(n), sizeof *cells);
	struct kvb_key_set set;

	if (!cells)
		return;
	kvb_key_set_init(&set, cells, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *at = kvb_key_set_find(&set, keys, keys[i]);

		if (*at) {
			struct kvb_jat item = { .up = array, .index = i };

			kvb_jdoc_fail(d, &item, KVB_E_INVALID, "the same key as element %u", *at - 1);
			return;
		}
		*at = i + 1;
	}
}

const struct kvb_key *kvb_jat_keys(struct kvb_jdoc *d, const struct kvb_jat *object, uint32_t *n)
{
	enum kvb_key_form form = KVB_KEYS_STRING;
	struct kvb_jat array = one_of(d, object, forms, &form);
	struct kvb_jat item = kvb_jat_first(&array);
	struct kvb_key *keys;
	uint32_t count;

	*n = 0;
	if (!array.v)
		kvb_jdoc_fail(d, &array, KVB_E_INVALID, "one of %s, %s and %s is required", forms[0],
			      forms[1], forms[2]);
	count = kvb_jat_array(d, &array, 1, KVB_MAX_KEYS);
	keys = kvb_jdoc_alloc(d, count, sizeof *keys);
	for (uint32_t i = 0; keys && i < count; i++, kvb_jat_next(&item))
		keys[i] = read_key(d, &item, form);
	if (count > 1 && kvb_jdoc_ok(d))
		refuse_twice(d, &array, keys, count);
	if (kvb_jdoc_ok(d))
		*n = count;
	return keys;
}

bool kvb_jat_parent(struct kvb_jdoc *d, const struct kvb_jat *object, struct kvb_key *out)
{
	enum kvb_key_form form = KVB_KEYS_STRING;
	struct kvb_jat at = one_of(d, object, parent_forms, &form);

	if (!kvb_jdoc_ok(d) || !at.v)
		return false;
	*out = read_key(d, &at, form);
	return kvb_jdoc_ok(d);
}

static void put_key(struct kvb_buf *b, const struct kvb_key_input *keys, uint32_t i)
{
	switch (keys->form) {
	case KVB_KEYS_STRING:
		kvb_jout_string(b, keys->strings[i]);
		break;
	case KVB_KEYS_INT:
		kvb_jout_u64(b, keys->keys[i].lo);
		break;
	case KVB_KEYS_HEX:
		kvb_jout_key(b, keys->keys[i]);
		break;
	}
}

void kvb_jout_keys(struct kvb_buf *b, const struct kvb_key_input *keys)
{
	kvb_jout_name(b, forms[keys->form]);
	kvb_jout_open(b, '[');
	for (uint32_t i = 0; i < keys->n; i++)
		put_key(b, keys, i);
	kvb_jout_close(b, ']');
}

void kvb_jout_parent(struct kvb_buf *b, const struct kvb_key_input *parent)
{
	if (!parent)
		return;
	kvb_jout_name(b, parent_forms[parent->form]);
	put_key(b, parent, 0);
}
