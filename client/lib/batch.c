/*
 * batch.c - slabkv_batch: one operation on many blocks, in parallel arrays. Stateless; any thread.
 */
#include "batch.h"

#include <string.h>

static bool moves(const struct slabkv_batch *b)
{
	return b->kind == SLABKV_OP_PUT || b->kind == SLABKV_OP_GET;
}

int skv_batch_check(const struct slabkv_batch *b, struct skv_error *err)
{
	if (!b || !SKV_HAS(b, tag))
		return skv_size_refuse(err, "sizeof(struct slabkv_batch)");
	if ((int)b->kind < SLABKV_OP_PUT || b->kind > SLABKV_OP_DELETE)
		return skv_fail(err, SKV_E_INVALID, "kind", "unknown");
	if (!b->results)
		return skv_fail(err, SKV_E_INVALID, "results", "missing");
	if (!b->keys || b->keys->n < 1)
		return skv_fail(err, SKV_E_INVALID, "keys", "at least one key");
	if (b->keys->n > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_TOO_LARGE, "keys", "at most %u keys in a call",
				SKV_MAX_KEYS);
	if (moves(b) ? b->n_bufs < 1 || b->n_bufs > SKV_MAX_SPECS : b->n_bufs > 0)
		return skv_fail(err, SKV_E_INVALID, "n_bufs",
				"one for each spec; none unless bytes move");
	if (moves(b) && (!b->data || !b->lengths))
		return skv_fail(err, SKV_E_INVALID, b->data ? "lengths" : "data", "missing");
	if (SKV_HAS(b, io) && b->io && !SKV_HAS(b->io, bytes))
		return skv_size_refuse(err, "sizeof(struct slabkv_io)");
	return skv_model_name_check(b->instance, "instance", err);
}

void skv_batch_tell(const struct slabkv_batch *b, enum slabkv_result result, int why)
{
	const struct slabkv_io none = { .size = sizeof none };

	if (SKV_HAS(b, io))
		skv_io_tell(b->io, &none);
	for (uint32_t i = 0; i < b->keys->n; i++) {
		b->results[i] = (uint8_t)result;
		if (b->whys)
			b->whys[i] = why;
	}
}

static struct slabkv_block *blocks_of(const struct slabkv_batch *b, struct skv_arena *a)
{
	size_t n = b->keys->n, n_bufs = b->n_bufs;
	struct slabkv_block *blocks = skv_arena_calloc(a, n, sizeof *blocks);
	struct slabkv_buf *bufs = skv_arena_calloc(a, n * n_bufs, sizeof *bufs);

	SKV_CHECK(n >= 1 && n <= SKV_MAX_KEYS && n_bufs >= 1 && n_bufs <= SKV_MAX_SPECS);
	if (!blocks || !bufs)
		return NULL;
	for (size_t i = 0; i < n * n_bufs; i++)
		bufs[i] = (struct slabkv_buf){ b->data[i], b->lengths[i] };
	for (size_t i = 0; i < n; i++)
		blocks[i] = (struct slabkv_block){ .bufs = bufs + i * n_bufs, .n_bufs = b->n_bufs };
	return blocks;
}

static int move_bytes(struct slabkv *kv, const struct slabkv_batch *b, struct skv_arena *a,
		      struct skv_error *err)
{
	const struct slabkv_lookup_options each = { .size = sizeof each,
						    .mode = SLABKV_BATCH,
						    .lease_ms = SLABKV_LEASE_DEFAULT };
	const struct slabkv_put_options how = { .size = sizeof how, .independent = b->independent };
	struct slabkv_block *blocks = blocks_of(b, a);
	struct slabkv_io io = { .size = sizeof io };
	int rc;

	if (!blocks)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (b->kind == SLABKV_OP_GET)
		rc = skv_get_blocks(kv, b->instance, b->keys, &each, blocks, sizeof *blocks, &io,
				    err);
	else
		rc = skv_put_blocks(kv, b->instance, b->keys, &how, blocks, sizeof *blocks, &io,
				    err);
	if (SKV_HAS(b, io))
		skv_io_tell(b->io, &io);
	if (rc != SKV_OK && b->kind == SLABKV_OP_GET)
		return rc; /* the caller passes all blocks of it */
	for (uint32_t i = 0; i < b->keys->n; i++) {
		b->results[i] = (uint8_t)blocks[i].result;
		if (b->whys)
			b->whys[i] = blocks[i].why;
	}
	return rc;
}

static int look(struct slabkv *kv, const struct slabkv_batch *b, struct skv_arena *a,
		struct skv_error *err)
{
	const bool *hit;
	int rc = skv_blocks_exist(kv, b->instance, b->keys, a, &hit, err);

	for (uint32_t i = 0; rc == SKV_OK && i < b->keys->n; i++) {
		b->results[i] = hit[i] ? SLABKV_HIT : SLABKV_MISS;
		if (b->whys)
			b->whys[i] = SLABKV_OK;
	}
	return rc;
}

int skv_batch_do(struct slabkv *kv, const struct slabkv_batch *b, struct skv_error *err)
{
	bool asks = b->kind == SLABKV_OP_GET || b->kind == SLABKV_OP_EXISTS;
	struct skv_arena a;
	int rc;

	SKV_CHECK(b->kind <= SLABKV_OP_DELETE && b->results && b->keys->n >= 1);
	skv_batch_tell(b, asks ? SLABKV_ERROR : SLABKV_FAILED, SKV_E_NOMEM);
	skv_arena_init(&a);
	if (moves(b)) {
		rc = move_bytes(kv, b, &a, err);
	} else if (b->kind == SLABKV_OP_EXISTS) {
		rc = look(kv, b, &a, err);
	} else {
		rc = skv_delete_blocks(kv, b->instance, b->keys, NULL, err);
		if (rc == SKV_OK)
			skv_batch_tell(b, SLABKV_GONE, SLABKV_OK);
	}
	if (rc != SKV_OK && b->kind != SLABKV_OP_PUT)
		skv_batch_tell(b, asks ? SLABKV_ERROR : SLABKV_FAILED, rc);
	skv_arena_destroy(&a);
	return rc;
}

int slabkv_batch(struct slabkv *kv, const struct slabkv_batch *b, struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	int rc = skv_batch_check(b, &e);
	bool sound = rc == SKV_OK;

	if (rc == SKV_OK)
		rc = skv_enter(kv, &e);
	if (rc == SKV_OK)
		rc = skv_batch_do(kv, b, &e);
	else if (sound)
		skv_batch_tell(b,
			       b->kind == SLABKV_OP_PUT || b->kind == SLABKV_OP_DELETE
				       ? SLABKV_FAILED
				       : SLABKV_ERROR,
			       rc);
	return skv_result_finish(err, &e, rc);
}

/* ---- copies, for the asynchronous queue ------------------------------------------------------ */

static int copy_strings(const struct skv_key_input *from, struct skv_arena *a,
			struct slabkv_keys *to, struct skv_error *err)
{
	const char **v = skv_arena_calloc(a, from->n, sizeof *v);

	for (uint32_t i = 0; v && i < from->n; i++) {
		v[i] = skv_arena_strndup(a, from->strings[i], strlen(from->strings[i]));
		if (!v[i])
			v = NULL;
	}
	*to = slabkv_keys_strings(v, from->n);
	return v ? SKV_OK : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

static int copy_numbers(const struct skv_key_input *from, struct skv_arena *a,
			struct slabkv_keys *to, struct skv_error *err)
{
	struct slabkv_key *v = skv_arena_calloc(a, from->n, sizeof *v);

	for (uint32_t i = 0; v && i < from->n; i++)
		v[i] = (struct slabkv_key){ from->keys[i].hi, from->keys[i].lo };
	*to = slabkv_keys_wide(v, from->n);
	return v ? SKV_OK : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

static int copy_keys(const struct slabkv_keys *from, const char *field, struct skv_arena *a,
		     struct slabkv_keys *to, struct skv_error *err)
{
	struct skv_key_input input;
	int rc = skv_keys_input(from, field, a, &input, err);

	if (rc != SKV_OK)
		return rc;
	return input.form == SKV_KEYS_STRING ? copy_strings(&input, a, to, err)
					     : copy_numbers(&input, a, to, err);
}

int skv_keys_copy(const struct slabkv_keys *from, struct skv_arena *a, struct slabkv_keys *to,
		  struct skv_error *err)
{
	struct slabkv_keys *parent;
	int rc = copy_keys(from, "keys", a, to, err);

	if (rc != SKV_OK || !from->parent)
		return rc;
	if (from->parent->n != 1 || skv_keys_are_text(from->parent) != skv_keys_are_text(from))
		return skv_fail(err, SKV_E_INVALID, "parent",
				"exactly one key, in the form of the others");
	parent = skv_arena_calloc(a, 1, sizeof *parent);
	to->parent = parent;
	return parent ? copy_keys(from->parent, "parent", a, parent, err)
		      : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

static void *copy(struct skv_arena *a, const void *from, size_t n)
{
	void *to = skv_arena_calloc(a, n + 1, 1);

	if (to && n)
		memcpy(to, from, n);
	return to;
}

int skv_batch_copy(const struct slabkv_batch *from, struct skv_arena *a, struct slabkv_batch *to,
		   struct skv_error *err)
{
	size_t n = (size_t)from->keys->n * from->n_bufs;
	struct slabkv_keys *keys = skv_arena_calloc(a, 1, sizeof *keys);
	int rc = keys ? skv_keys_copy(from->keys, a, keys, err)
		      : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");

	if (rc != SKV_OK)
		return rc;
	memset(to, 0, sizeof *to);
	memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
	to->keys = keys;
	to->instance = copy(a, from->instance, strlen(from->instance));
	to->data = copy(a, from->data, n * sizeof *from->data);
	to->lengths = copy(a, from->lengths, n * sizeof *from->lengths);
	return to->instance && to->data && to->lengths
		       ? SKV_OK
		       : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}
