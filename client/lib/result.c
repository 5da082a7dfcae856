/*
 * result.c - memory of results, and the translation of errors at the edge of the library.
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
	_Alignas(16) unsigned char data[];
};

/* The public numbers are the internal ones. */
#define SAME(name, number, code, http, grpc, text)                                                 \
	_Static_assert((int)SLABKV_##name == (int)SKV_##name, "status " #name);
SKV_STATUS_MAP(SAME)
#undef SAME
_Static_assert(sizeof(struct slabkv_error) == sizeof(struct skv_error),
	       "error texts have one size");
_Static_assert(SLABKV_MAX_KEYS == SKV_MAX_KEYS && SLABKV_MAX_SPECS == SKV_MAX_SPECS, "limits");

void *skv_result_new(size_t size)
{
	struct holder *h = skv_calloc(1, sizeof *h + size);

	if (!h)
		return NULL;
	skv_arena_init(&h->arena);
	return h->data;
}

static struct holder *holder_of(const void *result)
{
	return (struct holder *)((uintptr_t)result - offsetof(struct holder, data));
}

struct skv_arena *skv_result_arena(void *result) { return &holder_of(result)->arena; }

void slabkv_free(const void *result)
{
	struct holder *h;

	if (!result)
		return;
	h = holder_of(result);
	skv_arena_destroy(&h->arena);
	skv_free(h);
}

int skv_result_fail(struct slabkv_error *out, const struct skv_error *err, int status)
{
	const char *text = err->message;

	if (!out)
		return status;
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

int skv_result_finish(struct slabkv_error *out, const struct skv_error *err, int status)
{
	skv_result_fail(out, err, status != SKV_OK ? status : err->status);
	return status;
}

const char *slabkv_version(void) { return SKV_VERSION; }

const char *slabkv_code(int status) { return skv_status_name(status); }

const char *slabkv_text(int status) { return skv_status_text(status); }

uint64_t slabkv_checksum(const void *data, size_t size) { return skv_checksum(data, size); }
