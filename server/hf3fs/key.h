/*
 * key.h - clients' keys: JSON scalars to keys of the core, and to the names that blocks keep for an
 * export.
 *
 * A string is hashed as its bytes. Other scalars, which upstream accepts too, are equal if Python
 * calls them equal (1, 1.0 and true); they are hashed as the byte 0xff, which starts no UTF-8
 * string, and a text.
 *
 * A name: byte 0, then the string; byte 1, then 32 bytes that are its first 64 characters,
 * lower-case hex digits, then the rest; or byte 2, then the JSON text of another scalar.
 */
#ifndef SKV_HF3FS_KEY_H
#define SKV_HF3FS_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/hash.h>
#include <skv/json.h>
#include <skv/key_set.h>
#include <skv/limits.h>
#include <skv/ops.h>

#define HF3FS_KEY_MAX (SKV_MAX_BLOCK_NAME - 1) /* longer keys are never found */

/* Returns false if the value is not a scalar. */
bool hf3fs_key(const struct skv_secret *secret, const struct skv_json_node *v, struct skv_key *out);
/* The same for one of a batch: *out is set when the batch ends. */
static inline bool hf3fs_key_add(struct skv_key_batch *b, const struct skv_json_node *v,
				 struct skv_key *out)
{
	if (v->type != SKV_JSON_STRING)
		return hf3fs_key(b->secret, v, out);
	skv_key_batch_add(b, v->s, v->n, out);
	return true;
}
/* An empty set for n keys, in the arena. False: out of memory. */
bool hf3fs_key_set(struct skv_key_set *s, struct skv_arena *a, uint32_t n);
/* Stores the name of a scalar at `out`, with room for one byte more than its JSON text; returns its
 * length. */
size_t hf3fs_name(const struct skv_json_node *v, uint8_t *out);
/* Appends the scalar of a name as a JSON value. False: not one of our names. */
bool hf3fs_name_put(struct skv_buf *b, const struct skv_bytes *name);

#endif
