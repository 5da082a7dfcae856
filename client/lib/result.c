/*
 * result.c - memory of results, and conversion of internal errors to public ones.
 *
 * A result is one allocation: an arena, then the public struct. What the struct points to lives in
 * the arena, so that slabkv_free releases everything at once. No shared state.
 */
#include "client.h"

#include <string.h>

#include <skv/hash.h>
#include <skv/mem.h>

struct holder {
	struct skv_arena arena;
	uint64_t mark; /* MARK: it is one of ours, and not released */
	_Alignas(16) unsigned char data[];
};
#define MARK 0x736b76726573756cull

/* Asserts that the public numbers equal the internal ones. */
#define SAME(name, number, code, http, grpc, text)                                                 \
	_Static_assert((int)SLABKV_##name == (int)SKV_##name, "status " #name);
SKV_STATUS_MAP(SAME)
#undef SAME
#define TEXT_OF(type, member) sizeof(((struct type *)NULL)->member)
_Static_assert(TEXT_OF(slabkv_error, field) == TEXT_OF(skv_error, field) &&
		       TEXT_OF(slabkv_error, message) == TEXT_OF(skv_error, message),
	       "error texts have one size");
_Static_assert(SLABKV_MAX_KEYS == SKV_MAX_KEYS && SLABKV_MAX_SPECS == SKV_MAX_SPECS, "limits");

void *skv_result_new(size_t size)
{
	struct holder *h = skv_calloc(1, sizeof *h + size);

	if (!h)
		return NULL;
	skv_arena_init(&h->arena);
	h->mark = MARK;
	return h->data;
}

static struct holder *holder_of(const void *result)
{
	return (struct holder *)((uintptr_t)result - offsetof(struct holder, data));
}

struct skv_arena *skv_result_arena(void *result)
{
	SKV_CHECK(holder_of(result)->mark == MARK);
	return &holder_of(result)->arena;
}

void slabkv_free(const void *result)
{
	struct holder *h;

	if (!result)
		return;
	h = holder_of(result);
	if (!SKV_CHECK(h->mark == MARK))
		return; /* no result of ours, or released twice: rather lost */
	h->mark = 0;
	skv_arena_destroy(&h->arena);
	skv_free(h);
}

/* Only fields that slabkv.h names are returned. */
static int documented(int status)
{
	return SKV_CHECK(status <= SLABKV_OK && status >= SLABKV_E_MISMATCH) ? status
									     : SKV_E_INTERNAL;
}

int skv_result_fail(struct slabkv_error *out, const struct skv_error *err, int status)
{
	const char *text;

	status = documented(status);
	skv_handle_of_thread(NULL);
	if (!out)
		return status;
	text = err->message;
	memset(out, 0, sizeof *out);
	out->code = status;
	if (status == SKV_OK)
		return status;
	if (err->status != status || !text[0])
		text = skv_status_text(status);
	else
		memcpy(out->field, err->field, sizeof out->field);
	memcpy(out->message, text, strnlen(text, sizeof out->message - 1));
	return status;
}

int skv_result_text(const struct skv_buf *from, const char **text, struct skv_error *err)
{
	char *copy = skv_result_new(from->len + 1);

	if (!copy)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (from->len)
		memcpy(copy, from->data, from->len);
	*text = copy;
	return SKV_OK;
}

int skv_blocks_check(const struct slabkv_block *blocks, size_t block_size,
		     const struct slabkv_io *io, struct skv_error *err)
{
	if (!blocks || block_size < sizeof *blocks)
		return skv_fail(err, SKV_E_INVALID, "blocks",
				"block_size is sizeof(struct slabkv_block)");
	return !io || SKV_HAS(io, bytes) ? SKV_OK
					 : skv_size_refuse(err, "sizeof(struct slabkv_io)");
}

void skv_io_tell(struct slabkv_io *io, const struct slabkv_io *counts)
{
	size_t size = io && SKV_HAS(io, bytes) ? io->size : 0;

	if (size == 0)
		return;
	memcpy(io, counts, size < sizeof *counts ? size : sizeof *counts);
	io->size = size;
}

int skv_result_finish(struct slabkv_error *out, const struct skv_error *err, int status)
{
	skv_result_fail(out, err, status != SKV_OK ? status : err->status);
	return status;
}

const char *slabkv_version(void) { return SKV_VERSION; }

uint32_t slabkv_version_number(void) { return SLABKV_VERSION_NUMBER; }

const char *slabkv_code(int status) { return skv_status_name(status); }

const char *slabkv_text(int status) { return skv_status_text(status); }

uint64_t slabkv_checksum(const void *data, size_t size) { return skv_checksum(data, size); }
