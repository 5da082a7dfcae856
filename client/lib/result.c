/*
 * result.c - memory of results, and the translation of errors at the edge of the library.
 *
 * A result is one allocation: an arena, then the public struct. What the struct points to lives in
 * the arena, so that kvblock_free releases everything at once. No shared state.
 */
#include "client.h"

#include <string.h>

#include <kvb/hash.h>
#include <kvb/mem.h>

struct holder {
	struct kvb_arena arena;
	_Alignas(16) unsigned char data[];
};

/* The public numbers are the internal ones. */
#define SAME(name, number, code, http, grpc, text)                                                 \
	_Static_assert((int)KVBLOCK_##name == (int)KVB_##name, "status " #name);
KVB_STATUS_MAP(SAME)
#undef SAME
_Static_assert(sizeof(struct kvblock_error) == sizeof(struct kvb_error),
	       "error texts have one size");
_Static_assert(KVBLOCK_MAX_KEYS == KVB_MAX_KEYS && KVBLOCK_MAX_SPECS == KVB_MAX_SPECS, "limits");

void *kvb_result_new(size_t size)
{
	struct holder *h = kvb_calloc(1, sizeof *h + size);

	if (!h)
		return NULL;
	kvb_arena_init(&h->arena);
	return h->data;
}

static struct holder *holder_of(const void *result)
{
	return (struct holder *)((uintptr_t)result - offsetof(struct holder, data));
}

struct kvb_arena *kvb_result_arena(void *result) { return &holder_of(result)->arena; }

void kvblock_free(const void *result)
{
	struct holder *h;

	if (!result)
		return;
	h = holder_of(result);
	kvb_arena_destroy(&h->arena);
	kvb_free(h);
}

int kvb_result_fail(struct kvblock_error *out, const struct kvb_error *err, int status)
{
	const char *text = err->message;

	if (!out)
		return status;
	memset(out, 0, sizeof *out);
	out->code = status;
	if (status == KVB_OK)
		return status;
	if (err->status != status || !text[0])
		text = kvb_status_text(status);
	else
		memcpy(out->field, err->field, sizeof out->field);
	memcpy(out->message, text, strnlen(text, sizeof out->message - 1));
	return status;
}

int kvb_result_finish(struct kvblock_error *out, const struct kvb_error *err, int status)
{
	kvb_result_fail(out, err, status != KVB_OK ? status : err->status);
	return status;
}

const char *kvblock_version(void) { return KVB_VERSION; }

const char *kvblock_code(int status) { return kvb_status_name(status); }

const char *kvblock_text(int status) { return kvb_status_text(status); }

uint64_t kvblock_checksum(const void *data, size_t size) { return kvb_checksum(data, size); }
