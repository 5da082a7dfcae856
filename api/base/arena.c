/*
 * arena.c - chunked request memory.
 *
 * Owns the chunks of each arena; an arena belongs to one thread at a time and needs no lock. Pieces
 * are cut from 16 KiB chunks; a large piece gets its own chunk. Reset keeps one ordinary chunk, so
 * that a connection serving small requests allocates nothing after the first.
 *
 * Under AddressSanitizer every piece is a chunk, so that overruns and uses after reset are found.
 */
#include <skv/arena.h>
#include <skv/mem.h>

#include <stdint.h>
#include <string.h>

#define ALIGN 16u
#define CHUNK ((size_t)16 * 1024)

struct skv_arena_chunk {
	struct skv_arena_chunk *next;
	size_t size; /* payload bytes */
};

#if defined(__SANITIZE_ADDRESS__)
#define PIECE_PER_CHUNK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PIECE_PER_CHUNK 1
#endif
#endif
#ifndef PIECE_PER_CHUNK
#define PIECE_PER_CHUNK 0
#endif

#define HEADER ((sizeof(struct skv_arena_chunk) + ALIGN - 1) / ALIGN * ALIGN)

void skv_arena_init(struct skv_arena *a) { memset(a, 0, sizeof *a); }

/* Pieces are cut from the head; a chunk for one piece is inserted after it. */
static struct skv_arena_chunk *add_chunk(struct skv_arena *a, size_t size, bool for_one)
{
	struct skv_arena_chunk *c = skv_malloc(HEADER + size);

	if (!c)
		return NULL;
	c->size = size;
	a->total += size;
	if (a->grown && a->total > CHUNK)
		a->grown(a, a->total - size > CHUNK ? size : a->total - CHUNK);
	if (for_one && a->head) {
		c->next = a->head->next;
		a->head->next = c;
		return c;
	}
	c->next = a->head;
	a->head = c;
	a->used = for_one ? size : 0;
	return c;
}

void *skv_arena_alloc(struct skv_arena *a, size_t size)
{
	size_t need;
	char *p;

	if (size > SIZE_MAX / 4)
		return NULL;
	need = PIECE_PER_CHUNK ? (size ? size : 1) : (size + ALIGN - 1) / ALIGN * ALIGN;
	if (PIECE_PER_CHUNK || !a->head || a->head->size - a->used < need) {
		bool for_one = PIECE_PER_CHUNK || need > CHUNK / 4;
		struct skv_arena_chunk *c = add_chunk(a, for_one ? need : CHUNK, for_one);

		if (!c || for_one)
			return c ? (char *)c + HEADER : NULL;
	}
	p = (char *)a->head + HEADER + a->used;
	a->used += need;
	return p;
}

void *skv_arena_calloc(struct skv_arena *a, size_t n, size_t size)
{
	void *p;

	if (size && n > SIZE_MAX / size)
		return NULL;
	p = skv_arena_alloc(a, n * size);
	return p ? memset(p, 0, n * size) : NULL;
}

char *skv_arena_strndup(struct skv_arena *a, const char *s, size_t n)
{
	char *p = n < SIZE_MAX ? skv_arena_alloc(a, n + 1) : NULL;

	if (!p)
		return NULL;
	memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

static void drop(struct skv_arena *a, struct skv_arena_chunk *keep)
{
	struct skv_arena_chunk *c = a->head;

	while (c) {
		struct skv_arena_chunk *next = c->next;

		if (c != keep)
			skv_free(c);
		c = next;
	}
	a->head = keep;
	a->used = 0;
	a->total = keep ? keep->size : 0;
	if (keep)
		keep->next = NULL;
}

void skv_arena_reset(struct skv_arena *a)
{
	struct skv_arena_chunk *keep = NULL;

	for (struct skv_arena_chunk *c = a->head; c && !PIECE_PER_CHUNK; c = c->next)
		if (c->size == CHUNK)
			keep = c;
	drop(a, keep);
}

void skv_arena_destroy(struct skv_arena *a) { drop(a, NULL); }
