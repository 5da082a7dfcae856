/*
 * pb_keys.c - the three forms of keys in protobuf, read and written.
 *
 * keys_raw is the hot one: 16 bytes for each key, no parsing. No state; any thread.
 */
#include "pb.h"

#include <skv/check.h>

#include <skv/key_set.h>

enum { KEYS_RAW = 1, KEYS_INT = 2, KEYS_TEXT = 3, PARENT_RAW = 7, PARENT_INT = 8, PARENT_TEXT = 9 };

static const char *const forms[] = { "keys", "keys_int", "keys_raw" };

static void refuse_twice(struct skv_pbdoc *d, const char *name, const struct skv_key *keys,
			 uint32_t n)
{
	uint32_t at = 0, first;
	int rc = skv_keys_duplicate(keys, n, &at, &first);

	SKV_CHECK(n <= SKV_MAX_KEYS && at < n);
	if (rc == SKV_E_CONFLICT)
		skv_pb_fail(d, name, at, SKV_E_INVALID, "the same key as element %u", first);
	else if (rc != SKV_OK)
		skv_pb_fail(d, NULL, 0, rc, "out of memory");
}

void skv_pb_keys_field(struct skv_pbdoc *d, struct skv_pbkeys *k, const struct pb_field *f)
{
	if (f->number == KEYS_RAW && skv_pb_wire(d, f, forms[SKV_KEYS_HEX], PB_BYTES)) {
		k->raw = f->p;
		k->raw_len = f->n;
	} else if (f->number == KEYS_INT) {
		k->n_ints += skv_pb_numbers(d, f, forms[SKV_KEYS_INT], PB_FIXED64);
	} else if (f->number == KEYS_TEXT && skv_pb_wire(d, f, forms[SKV_KEYS_STRING], PB_BYTES)) {
		k->n_strings++;
	}
}

void skv_pb_keys_fields(struct skv_pbdoc *d, struct skv_pbkeys *k, struct skv_rd *r,
			const struct pb_field *f)
{
	skv_pb_keys_field(d, k, f);
	if (f->number == KEYS_TEXT)
		k->n_strings += skv_pb_alike(r, f);
}

/* Returns false for an invalid key; then the document has failed. */
static bool is_text_key(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
			uint32_t index)
{
	if (f->n == 0 || f->n > SKV_MAX_KEY_STRING)
		skv_pb_fail(d, name, index, SKV_E_INVALID, "a key has 1 to %u bytes, not %zu",
			    SKV_MAX_KEY_STRING, f->n);
	else if (!skv_pb_utf8(f->p, f->n))
		skv_pb_fail(d, name, index, SKV_E_INVALID, "is not UTF-8 without NUL");
	else if (!d->in->secret)
		skv_pb_fail(d, name, index, SKV_E_INVALID, "string keys cannot be hashed here");
	return skv_pb_ok(d);
}

static struct skv_key text_key(struct skv_pbdoc *d, const struct pb_field *f, const char *name)
{
	if (!is_text_key(d, f, name, PB_NO_INDEX))
		return (struct skv_key){ 0, 0 };
	return skv_key_from_string(d->in->secret, (const char *)f->p, f->n);
}

/* Texts of equal length, one after the other. The bytes between them are ASCII: all of them are
 * UTF-8 if the whole is. */
static bool are_text_keys(const struct skv_pbdoc *d, const struct pb_field *f, size_t n)
{
	return f->n > 0 && f->n <= SKV_MAX_KEY_STRING && d->in->secret &&
	       skv_pb_utf8(f->p, n * (f->n + 2) - 2);
}

static void read_texts(struct skv_pbdoc *d, struct skv_rd message, struct skv_key *out)
{
	struct skv_key_batch batch = { .secret = d->in->secret };
	struct pb_field f;
	uint32_t i = 0;

	while (skv_pb_next(d, &message, &f)) {
		size_t n;
		bool good;

		if (f.number != KEYS_TEXT)
			continue;
		n = 1 + skv_pb_alike(&message, &f);
		good = are_text_keys(d, &f, n);
		SKV_CHECK(n <= SKV_MAX_KEYS - i);
		for (; n > 0; n--, i++, f.p += f.n + 2)
			if (good || is_text_key(d, &f, forms[SKV_KEYS_STRING], i))
				skv_key_batch_add(&batch, (const char *)f.p, f.n, &out[i]);
	}
	skv_key_batch_end(&batch);
}

/* Returns the form that was sent; fails unless exactly one was. */
static enum skv_key_form form_of(struct skv_pbdoc *d, const struct skv_pbkeys *k, size_t *n)
{
	enum skv_key_form form = k->raw_len  ? SKV_KEYS_HEX
				 : k->n_ints ? SKV_KEYS_INT
					     : SKV_KEYS_STRING;

	if ((k->raw_len > 0) + (k->n_ints > 0) + (k->n_strings > 0) > 1)
		skv_pb_fail(d, forms[form], PB_NO_INDEX, SKV_E_INVALID,
			    "only one of %s, %s and %s may be given", forms[0], forms[1], forms[2]);
	if (k->raw_len % 16)
		skv_pb_fail(d, forms[form], PB_NO_INDEX, SKV_E_INVALID,
			    "has %zu bytes, no multiple of 16", k->raw_len);
	*n = k->raw_len ? k->raw_len / 16 : k->n_ints + k->n_strings;
	if (*n == 0)
		skv_pb_fail(d, forms[0], PB_NO_INDEX, SKV_E_INVALID,
			    "one of %s, %s and %s is required", forms[0], forms[1], forms[2]);
	skv_pb_count(d, forms[form], *n, 1, SKV_MAX_KEYS);
	return form;
}

const struct skv_key *skv_pb_keys(struct skv_pbdoc *d, const struct skv_pbkeys *k,
				  struct skv_rd message, uint32_t *n)
{
	size_t count;
	enum skv_key_form form = form_of(d, k, &count);
	struct skv_key *keys = skv_pb_alloc(d, skv_pb_ok(d) ? count : 0, sizeof *keys);
	uint64_t *ints;

	*n = 0;
	if (!keys)
		return NULL;
	SKV_CHECK(count > 0 && count <= SKV_MAX_KEYS);
	if (form == SKV_KEYS_HEX) {
		SKV_CHECK(k->raw_len == 16 * count);
		for (size_t i = 0; i < count; i++)
			keys[i] = skv_pb_load_key(k->raw + 16 * i);
	} else if (form == SKV_KEYS_INT) {
		ints = skv_pb_all_numbers(d, message, KEYS_INT, forms[form], PB_FIXED64, count);
		for (size_t i = 0; ints && i < count; i++)
			keys[i] = (struct skv_key){ 0, ints[i] };
	} else {
		read_texts(d, message, keys);
	}
	if (count > 1 && skv_pb_ok(d))
		refuse_twice(d, forms[form], keys, (uint32_t)count);
	if (skv_pb_ok(d))
		*n = (uint32_t)count;
	return keys;
}

struct skv_key skv_pb_parent(struct skv_pbdoc *d, const struct pb_field *f)
{
	struct skv_key none = { 0, 0 };

	if (f->number == PARENT_INT)
		return skv_pb_wire(d, f, "parent_int", PB_FIXED64) ? (struct skv_key){ 0, f->v }
								   : none;
	if (f->number == PARENT_TEXT)
		return skv_pb_wire(d, f, "parent", PB_BYTES) ? text_key(d, f, "parent") : none;
	if (!skv_pb_wire(d, f, "parent_raw", PB_BYTES))
		return none;
	if (f->n == 16)
		return skv_pb_load_key(f->p);
	skv_pb_fail(d, "parent_raw", PB_NO_INDEX, SKV_E_INVALID, "must be 16 bytes, not %zu", f->n);
	return none;
}

/* ---- writing --------------------------------------------------------------------------------- */

static uint8_t *put_raw(uint8_t *p, struct skv_key k)
{
	p = skv_pb_raw_64(p, __builtin_bswap64(k.hi));
	return skv_pb_raw_64(p, __builtin_bswap64(k.lo));
}

void skv_pb_put_keys(struct skv_buf *b, const struct skv_key_input *keys)
{
	size_t size = keys->form == SKV_KEYS_INT ? 8 : 16;
	uint8_t *p;

	if (keys->form == SKV_KEYS_STRING) {
		skv_pb_put_texts(b, KEYS_TEXT, keys->strings, keys->n);
		return;
	}
	skv_put_varint(b, (keys->form == SKV_KEYS_INT ? KEYS_INT : KEYS_RAW) << 3 | PB_BYTES);
	skv_put_varint(b, keys->n * size);
	if (!skv_buf_reserve(b, keys->n * size))
		return;
	p = b->data + b->len;
	for (uint32_t i = 0; i < keys->n; i++)
		p = size == 8 ? skv_pb_raw_64(p, keys->keys[i].lo) : put_raw(p, keys->keys[i]);
	SKV_CHECK((size_t)(p - b->data) <= b->cap);
	b->len = (size_t)(p - b->data);
}

void skv_pb_put_key(struct skv_buf *b, uint32_t num, struct skv_key key)
{
	uint8_t raw[16];

	put_raw(raw, key);
	skv_pb_put_bytes(b, num, raw, sizeof raw);
}

void skv_pb_put_parent(struct skv_buf *b, const struct skv_key_input *parent)
{
	if (!parent)
		return;
	SKV_CHECK(parent->n == 1);
	if (parent->form == SKV_KEYS_STRING) {
		skv_pb_put_bytes(b, PARENT_TEXT, parent->strings[0], strlen(parent->strings[0]));
	} else if (parent->form == SKV_KEYS_INT) {
		skv_put_varint(b, PARENT_INT << 3 | PB_FIXED64);
		skv_put_u64(b, parent->keys[0].lo);
	} else {
		skv_pb_put_key(b, PARENT_RAW, parent->keys[0]);
	}
}
