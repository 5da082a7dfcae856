/* exact_ghosts.c - see exact_ghosts.h. */
#include "exact_ghosts.h"

#include <skv/mem.h>
#include <skv/status.h>

#define CHUNK 4096u /* nodes, or buckets */
#define MOST (1u << 24)
#define MOST_ENDS \
	8u /* by one new ghost, when far fewer are wanted than before: somebody holds a lock */

struct exact_ghost {
	uint64_t hash;
	uint32_t older, newer; /* 0 = none; of a free one, `older` is the next free one */
	uint32_t next;         /* of the same bucket */
};

void exact_ghosts_destroy(struct exact_ghosts *g)
{
	for (size_t i = 0; i < g->node_chunks; i++)
		skv_free(g->node[i]);
	for (size_t i = 0; i < g->bucket_chunks; i++)
		skv_free(g->bucket[i]);
	skv_free(g->node);
	skv_free(g->bucket);
	*g = (struct exact_ghosts){ 0 };
}

static struct exact_ghost *node(const struct exact_ghosts *g, uint32_t i)
{
	return &g->node[i / CHUNK][i % CHUNK];
}

/* Head of the chain that a hash belongs to. */
static uint32_t *chain_of(const struct exact_ghosts *g, uint64_t hash)
{
	uint32_t mask = (1u << g->level) - 1, b = (uint32_t)(hash >> 16) & mask;

	if (b < g->split)
		b = (uint32_t)(hash >> 16) & (mask << 1 | 1);
	return &g->bucket[b / CHUNK][b % CHUNK];
}

/* Room for element n of an array of chunks of elements of `size` bytes. */
static bool room(void **chunks, size_t *n_chunks, size_t *cap, uint32_t n, size_t size)
{
	void **v = *chunks, *chunk;

	if (n / CHUNK < *n_chunks)
		return true;
	if (skv_grow((void **)&v, cap, *n_chunks + 1, sizeof *v) != SKV_OK)
		return false;
	*chunks = v;
	chunk = skv_calloc(CHUNK, size);
	if (!chunk)
		return false;
	v[(*n_chunks)++] = chunk;
	return true;
}

/* Adds a bucket: ghosts of another bucket that belong there move. */
static void add_bucket(struct exact_ghosts *g)
{
	void *v = g->bucket;
	bool ok = room(&v, &g->bucket_chunks, &g->cap_bucket, g->n_buckets, sizeof **g->bucket);
	uint32_t i, next, *head;

	g->bucket = v;
	if (!ok)
		return; /* longer chains */
	if (g->n_buckets++ == 0)
		return;
	head = &g->bucket[g->split / CHUNK][g->split % CHUNK];
	i = *head;
	*head = 0;
	if (++g->split == 1u << g->level) {
		g->level++;
		g->split = 0;
	}
	for (; i; i = next) {
		next = node(g, i)->next;
		head = chain_of(g, node(g, i)->hash);
		node(g, i)->next = *head;
		*head = i;
	}
}

static void forget(struct exact_ghosts *g, uint32_t i)
{
	struct exact_ghost *n = node(g, i);
	uint32_t *at = chain_of(g, n->hash);

	while (*at != i)
		at = &node(g, *at)->next;
	*at = n->next;
	*(n->older ? &node(g, n->older)->newer : &g->oldest) = n->newer;
	*(n->newer ? &node(g, n->newer)->older : &g->newest) = n->older;
	n->older = g->free;
	g->free = i;
	g->n--;
}

static uint32_t find(const struct exact_ghosts *g, uint64_t hash)
{
	uint32_t i = g->n_buckets ? *chain_of(g, hash) : 0;

	while (i && node(g, i)->hash != hash)
		i = node(g, i)->next;
	return i;
}

bool exact_ghosts_take(struct exact_ghosts *g, uint64_t hash)
{
	uint32_t i = find(g, hash);

	if (i)
		forget(g, i);
	return i != 0;
}

/* 0: out of memory, and there is none that could end. */
static uint32_t new_node(struct exact_ghosts *g)
{
	uint32_t i = g->free;
	void *v = g->node;

	if (!i && room(&v, &g->node_chunks, &g->cap_node, g->n_nodes + 1, sizeof **g->node)) {
		g->node = v;
		return ++g->n_nodes;
	}
	g->node = v;
	if (!i && g->oldest) {
		forget(g, g->oldest);
		i = g->free;
	}
	if (i)
		g->free = node(g, i)->older;
	return i;
}

void exact_ghosts_add(struct exact_ghosts *g, uint64_t hash, uint64_t want)
{
	uint32_t i, *head;

	(void)exact_ghosts_take(g, hash);
	want = want < MOST ? want : MOST;
	for (uint32_t left = MOST_ENDS; left > 0 && g->n && g->n >= want; left--)
		forget(g, g->oldest);
	if (g->n >= g->n_buckets)
		add_bucket(g);
	i = want && g->n_buckets ? new_node(g) : 0;
	if (!i)
		return;
	head = chain_of(g, hash);
	*node(g, i) = (struct exact_ghost){ .hash = hash, .older = g->newest, .next = *head };
	*head = i;
	*(g->newest ? &node(g, g->newest)->newer : &g->oldest) = i;
	g->newest = i;
	g->n++;
}
