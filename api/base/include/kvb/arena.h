/*
 * arena.h - memory of one request: allocated piece by piece, released at once.
 *
 * One thread at a time. Pieces are 16-byte aligned, valid until reset or destroy. When the code is
 * built with AddressSanitizer every piece is a malloc of its own, so that overruns are found.
 */
#ifndef KVB_ARENA_H
#define KVB_ARENA_H

#include <stddef.h>

struct kvb_arena {
	struct kvb_arena_chunk *head; /* newest chunk first */
	size_t used;                  /* bytes handed out from head */
	size_t total;                 /* bytes held, for limits and statistics */
};

void kvb_arena_init(struct kvb_arena *a);
/* NULL when out of memory or when `size` overflows. */
void *kvb_arena_alloc(struct kvb_arena *a, size_t size);
void *kvb_arena_calloc(struct kvb_arena *a, size_t n, size_t size);
/* Copies `n` bytes and adds a NUL. */
char *kvb_arena_strndup(struct kvb_arena *a, const char *s, size_t n);
/* Releases every piece; keeps one chunk for the next request. */
void kvb_arena_reset(struct kvb_arena *a);
void kvb_arena_destroy(struct kvb_arena *a);

#endif
