/*
 * keys.c - the three forms of keys, read from JSON.
 *
 * Distinct fields, so that the number 1 and the string "1" are never mixed up: `keys` are strings,
 * hashed under the store's secret; `keys_int` numbers, the key {0, n}; `keys_hex` 128 bits as they
 * are. Integers never pass through a double. A key twice in one request is refused by its position.
 *
 * No state; any thread.
 */
#include "parts.h"

#include <skv/check.h>

#include <skv/key_set.h>

const char *const skv_key_forms[3] = { "keys", "keys_int", "keys_hex" };
static const char *const parent_forms[] = { "parent", "parent_int", "parent_hex" };

/* Into *out, at the latest when the batch ends. */
static void read_string_key(struct skv_jdoc *d, const struct skv_jat *at, struct skv_key_batch *b,
			    struct skv_key *out)
{
	size_t n = at->v->n;

	if (!skv_jat_is(at, SKV_JSON_STRING))
		skv_jdoc_fail(d, at, SKV_E_INVALID, "must be a string (numbers go into %s)",
			      skv_key_forms[1]);
	else if (n == 0 || n > SKV_MAX_KEY_STRING)
		skv_jdoc_fail(d, at, SKV_E_INVALID, "a key has 1 to %u bytes, not %zu",
			      SKV_MAX_KEY_STRING, n);
	else if (!d->in->secret)
		skv_jdoc_fail(d, at, SKV_E_INVALID, "string keys cannot be hashed here");
	else
		skv_key_batch_add(b, at->v->s, n, out);
}

static void read_key(struct skv_jdoc *d, const struct skv_jat *at, enum skv_key_form form,
		     struct skv_key_batch *b, struct skv_key *out)
{
	if (form == SKV_KEYS_STRING)
		read_string_key(d, at, b, out);
	else if (form == SKV_KEYS_INT)
		*out = (struct skv_key){ .lo = skv_jat_u64(d, at, 0, UINT64_MAX) };
	else
		*out = skv_jat_key_hex(d, at);
}

/* Returns the field of `names` that is present; .v NULL if none is, or (a failure) more than
 * one. */
static struct skv_jat one_of(struct skv_jdoc *d, const struct skv_jat *object,
			     const char *const names[3], enum skv_key_form *form)
{
	struct skv_jat found = { .up = object, .name = names[0], .name_n = strlen(names[0]) };

	for (int i = 0; i < 3; i++) {
		struct skv_jat at = skv_jat_get(object, names[i]);

		if (!at.v)
			continue;
		if (found.v)
			skv_jdoc_fail(d, &at, SKV_E_INVALID,
				      "only one of %s, %s and %s may be given", names[0], names[1],
				      names[2]);
		found = at;
		*form = (enum skv_key_form)i;
	}
	return found;
}

static void refuse_twice(struct skv_jdoc *d, const struct skv_jat *array,
			 const struct skv_key *keys, uint32_t n)
{
	uint32_t at = 0, first;
	int rc = skv_keys_duplicate(keys, n, &at, &first);
	struct skv_jat item = { .up = array, .index = at };

	SKV_CHECK(n <= SKV_MAX_KEYS && at < n);
	if (rc == SKV_E_CONFLICT)
		skv_jdoc_fail(d, &item, SKV_E_INVALID, "the same key as element %u", first);
	else if (rc != SKV_OK)
		skv_jdoc_fail(d, &(struct skv_jat){ .up = NULL }, rc, "out of memory");
}

const struct skv_key *skv_jat_keys(struct skv_jdoc *d, const struct skv_jat *object, uint32_t *n)
{
	enum skv_key_form form = SKV_KEYS_STRING;
	struct skv_jat array = one_of(d, object, skv_key_forms, &form);
	struct skv_jat item = skv_jat_first(&array);
	struct skv_key_batch batch = { .secret = d->in->secret };
	struct skv_key *keys;
	uint32_t count;

	*n = 0;
	if (!array.v)
		skv_jdoc_fail(d, &array, SKV_E_INVALID, "one of %s, %s and %s is required",
			      skv_key_forms[0], skv_key_forms[1], skv_key_forms[2]);
	count = skv_jat_array(d, &array, 1, SKV_MAX_KEYS);
	SKV_CHECK(count <= SKV_MAX_KEYS && (count > 0 || !skv_jdoc_ok(d)));
	keys = skv_jdoc_alloc(d, count, sizeof *keys);
	for (uint32_t i = 0; keys && i < count; i++, skv_jat_next(&item))
		read_key(d, &item, form, &batch, &keys[i]);
	skv_key_batch_end(&batch);
	if (count > 1 && skv_jdoc_ok(d))
		refuse_twice(d, &array, keys, count);
	if (skv_jdoc_ok(d))
		*n = count;
	return keys;
}

void skv_jat_no_keys(struct skv_jdoc *d, const struct skv_jat *object)
{
	enum skv_key_form form;
	struct skv_jat array = one_of(d, object, skv_key_forms, &form);

	if (array.v)
		skv_jdoc_fail(d, &array, SKV_E_INVALID, "all, or keys: not both");
}

bool skv_jat_parent(struct skv_jdoc *d, const struct skv_jat *object, struct skv_key *out)
{
	enum skv_key_form form = SKV_KEYS_STRING;
	struct skv_jat at = one_of(d, object, parent_forms, &form);
	struct skv_key_batch batch = { .secret = d->in->secret };

	if (!skv_jdoc_ok(d) || !at.v)
		return false;
	read_key(d, &at, form, &batch, out);
	skv_key_batch_end(&batch);
	return skv_jdoc_ok(d);
}
