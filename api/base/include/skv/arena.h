/*
 * arena.h - memory of one request: allocated piece by piece, released at once.
 *
 * One thread at a time. Pieces are 16-byte aligned, valid until reset or destroy. Built with
 * AddressSanitizer every piece is a malloc of its own, so that overruns are found.
 */
#ifndef SKV_ARENA_H
#define SKV_ARENA_H

#include <stddef.h>

struct skv_arena {
	struct skv_arena_chunk *head; /* newest chunk first */
	size_t used;                  /* bytes handed out from head */
	size_t total;                 /* bytes held, for limits and statistics */
	/* Called on the allocating thread with the number of bytes held beyond the first 16 KiB, as
	 * it grows; NULL: none. */
	void (*grown)(struct skv_arena *a, size_t bytes);
};

void skv_arena_init(struct skv_arena *a);
/* NULL if out of memory or if `size` overflows. */
void *skv_arena_alloc(struct skv_arena *a, size_t size);
void *skv_arena_calloc(struct skv_arena *a, size_t n, size_t size);
/* Copies `n` bytes and adds a NUL. */
char *skv_arena_strndup(struct skv_arena *a, const char *s, size_t n);
/* Releases every piece; keeps one chunk for the next request. */
void skv_arena_reset(struct skv_arena *a);
void skv_arena_destroy(struct skv_arena *a);

#endif
