/*
 * pb_keys.c - the three forms of keys in protobuf, read and written.
 *
 * keys_raw is the hot one: 16 bytes for each key, no parsing. No state; any thread.
 */
#include "pb.h"

#include <kvb/key_set.h>

enum { KEYS_RAW = 1, KEYS_INT = 2, KEYS_TEXT = 3, PARENT_RAW = 7, PARENT_INT = 8, PARENT_TEXT = 9 };

static const char *const forms[] = { "keys", "keys_int", "keys_raw" };

static void refuse_twice(struct kvb_pbdoc *d, const char *name, const struct kvb_key *keys, uint32_t n)
{
	uint32_t *cells = kvb_pb_alloc(d, kvb_key_set_cells(n), sizeof *cells);
	struct kvb_key_set set;

	if (!cells)
		return;
	kvb_key_set_init(&set, cells, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *at = kvb_key_set_find(&set, keys, keys[i]);

		if (*at) {
			kvb_pb_fail(d, name, i, KVB_E_INVALID, "the same key as element %u", *at - 1);
			return;
		}
		*at = i + 1;
	}
}

void kvb_pb_keys_field(struct kvb_pbdoc *d, struct kvb_pbkeys *k, const struct kvb_pbf *f)
{
	if (f->num == KEYS_RAW && kvb_pb_wire(d, f, forms[KVB_KEYS_HEX], PB_BYTES)) {
		k->raw = f->p;
		k->raw_len = f->n;
	} else if (f->num == KEYS_INT) {
		k->n_ints += kvb_pb_numbers(d, f, forms[KVB_KEYS_INT], PB_FIXED64);
	} else if (f->num == KEYS_TEXT && kvb_pb_wire(d, f, forms[KVB_KEYS_STRING], PB_BYTES)) {
		k->n_strings++;
	}
}

static struct kvb_key raw_key(const uint8_t *p)
{
	return (struct kvb_key){ kvb_pb_load64_be(p), kvb_pb_load64_be(p + 8) };
}

static struct kvb_key text_key(struct kvb_pbdoc *d, const struct kvb_pbf *f, const char *name,
			       uint32_t index)
{
	if (f->n == 0 || f->n > KVB_MAX_KEY_STRING)
		kvb_pb_fail(d, name, index, KVB_E_INVALID, "a key has 1 to %u bytes, not %zu",
			    KVB_MAX_KEY_STRING, f->n);
	else if (!kvb_pb_utf8(f->p, f->n))
		kvb_pb_fail(d, name, index, KVB_E_INVALID, "is not UTF-8 without NUL");
	else if (!d->in->secret)
		kvb_pb_fail(d, name, index, KVB_E_INVALID, "string keys cannot be hashed here");
	if (!kvb_pb_ok(d))
		return (struct kvb_key){ 0, 0 };
	return kvb_key_from_string(d->in->secret, (const char *)f->p, f->n);
}

static void read_texts(struct kvb_pbdoc *d, struct kvb_rd message, struct kvb_key *out)
{
	struct kvb_pbf f;
	uint32_t i = 0;

	while (kvb_pb_next(d, &message, &f)) {
		if (f.num != KEYS_TEXT)
			continue;
		out[i] = text_key(d, &f, forms[KVB_KEYS_STRING], i);
		i++;
	}
}

/* Which of the forms came; fails unless exactly one did. */
static enum kvb_key_form form_of(struct kvb_pbdoc *d, const struct kvb_pbkeys *k, size_t *n)
{
	enum kvb_key_form form = k->raw_len  ? KVB_KEYS_HEX
				 : k->n_ints ? KVB_KEYS_INT
					     : KVB_KEYS_STRING;

	if ((k->raw_len > 0) + (k->n_ints > 0) + (k->n_strings > 0) > 1)
		kvb_pb_fail(d, forms[form], PB_NO_INDEX, KVB_E_INVALID,
			    "only one of %s, %s and %s may be given", forms[0], forms[1], forms[2]);
	if (k->raw_len % 16)
		kvb_pb_fail(d, forms[form], PB_NO_INDEX, KVB_E_INVALID,
			    "has %zu bytes, no multiple of 16", k->raw_len);
	*n = k->raw_len ? k->raw_len / 16 : k->n_ints + k->n_strings;
	if (*n == 0)
		kvb_pb_fail(d, forms[0], PB_NO_INDEX, KVB_E_INVALID, "one of %s, %s and %s is required",
			    forms[0], forms[1], forms[2]);
	kvb_pb_count(d, forms[form], *n, 1, KVB_MAX_KEYS);
	return form;
}

const struct kvb_key *kvb_pb_keys(struct kvb_pbdoc *d, const struct kvb_pbkeys *k,
				  struct kvb_rd message, uint32_t *n)
{
	size_t count;
	enum kvb_key_form form = form_of(d, k, &count);
	struct kvb_key *keys = kvb_pb_alloc(d, kvb_pb_ok(d) ? count : 0, sizeof *keys);
	uint64_t *ints;

	*n = 0;
	if (!keys)
		return NULL;
	if (form == KVB_KEYS_HEX) {
		for (size_t i = 0; i < count; i++)
			keys[i] = raw_key(k->raw + 16 * i);
	} else if (form == KVB_KEYS_INT) {
		ints = kvb_pb_all_numbers(d, message, KEYS_INT, forms[form], PB_FIXED64, count);
		for (size_t i = 0; ints && i < count; i++)
			keys[i] = (struct kvb_key){ 0, ints[i] };
	} else {
		read_texts(d, message, keys);
	}
	if (count > 1 && kvb_pb_ok(d))
		refuse_twice(d, forms[form], keys, (uint32_t)count);
	if (kvb_pb_ok(d))
		*n = (uint32_t)count;
	return keys;
}

struct kvb_key kvb_pb_parent(struct kvb_pbdoc *d, const struct kvb_pbf *f)
{
	struct kvb_key none = { 0, 0 };

	if (f->num == PARENT_INT)
		return kvb_pb_wire(d, f, "parent_int", PB_FIXED64) ? (struct kvb_key){ 0, f->v } : none;
	if (f->num == PARENT_TEXT)
		return kvb_pb_wire(d, f, "parent", PB_BYTES) ? text_key(d, f, "parent", PB_NO_INDEX)
							     : none;
	if (!kvb_pb_wire(d, f, "parent_raw", PB_BYTES))
		return none;
	if (f->n == 16)
		return raw_key(f->p);
	kvb_pb_fail(d, "parent_raw", PB_NO_INDEX, KVB_E_INVALID, "must be 16 bytes, not %zu", f->n);
	return none;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static uint8_t *put_raw(uint8_t *p, struct kvb_key k)
{
	p = kvb_pb_raw_64(p, __builtin_bswap64(k.hi));
	return kvb_pb_raw_64(p, __builtin_bswap64(k.lo));
}

void kvb_pb_put_keys(struct kvb_buf *b, const struct kvb_key_input *keys)
{
	size_t size = keys->form == KVB_KEYS_INT ? 8 : 16;
	uint8_t *p;

	if (keys->form == KVB_KEYS_STRING) {
		kvb_pb_put_texts(b, KEYS_TEXT, keys->strings, keys->n);
		return;
	}
	kvb_put_varint(b, (keys->form == KVB_KEYS_INT ? KEYS_INT : KEYS_RAW) << 3 | PB_BYTES);
	kvb_put_varint(b, keys->n * size);
	if (!kvb_buf_reserve(b, keys->n * size))
		return;
	p = b->data + b->len;
	for (uint32_t i = 0; i < keys->n; i++)
		p = size == 8 ? kvb_pb_raw_64(p, keys->keys[i].lo) : put_raw(p, keys->keys[i]);
	b->len = (size_t)(p - b->data);
}

void kvb_pb_put_parent(struct kvb_buf *b, const struct kvb_key_input *parent)
{
	uint8_t raw[16];

	if (!parent)
		return;
	if (parent->form == KVB_KEYS_STRING) {
		kvb_pb_put_bytes(b, PARENT_TEXT, parent->strings[0], strlen(parent->strings[0]));
	} else if (parent->form == KVB_KEYS_INT) {
		kvb_put_varint(b, PARENT_INT << 3 | PB_FIXED64);
		kvb_put_u64(b, parent->keys[0].lo);
	} else {
		put_raw(raw, parent->keys[0]);
		kvb_pb_put_bytes(b, PARENT_RAW, raw, sizeof raw);
	}
}
