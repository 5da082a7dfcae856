/* ghosts.c - see ghosts.h. A ring in order, and a table by hash: open addressing, linear probing, no tombstones. */
#include "ghosts.h"

#include <assert.h>

#include <skv/mem.h>

#define CLASS_MASK 0xffull
#define MIN_RING 64u
#define MAX_RING (1u << 26)
#define RETRY 1024u

void ghosts_destroy(struct ghosts *g)
{
	skv_free(g->ring);
	skv_free(g->cell);
	*g = (struct ghosts){ 0 };
}

static uint32_t home(const struct ghosts *g, uint64_t hash) { return (uint32_t)((hash >> 32) * g->n_cells >> 32); }
static uint32_t after(const struct ghosts *g, uint32_t i) { return i + 1 < g->n_cells ? i + 1 : 0; }

/* Room for an eighth more than is wanted, when what there is does not nearly do or is far too much. */
static void fit(struct ghosts *g, uint64_t want)
{
	struct ghosts fresh = { 0 };

	want = want < MIN_RING ? MIN_RING : want > MAX_RING / 9 * 8 ? MAX_RING / 9 * 8 : want;
	if (want <= g->cap + g->cap / 8 && g->cap / 4 <= want)
		return;
	if (g->retry_in && --g->retry_in)
		return;
	fresh.cap = (uint32_t)(want + want / 8);
	fresh.n_cells = fresh.cap + fresh.cap / 2;
	fresh.ring = skv_calloc(fresh.cap, sizeof *fresh.ring);
	fresh.cell = skv_calloc(fresh.n_cells, sizeof *fresh.cell);
	if (fresh.ring && fresh.cell) {
		ghosts_destroy(g);
		*g = fresh;
		return;
	}
	ghosts_destroy(&fresh);
	g->retry_in = RETRY;
}

/* The cell becomes empty; later ones of the same cluster move up, so that none stands behind a gap. */
static void erase(struct ghosts *g, uint32_t gap)
{
	for (uint32_t i = after(g, gap); g->cell[i]; i = after(g, i)) {
		uint32_t from = home(g, g->ring[g->cell[i] - 1]);

		/* does its home lie behind the gap, up to where it stands? */
		if (gap < i ? gap < from && from <= i : gap < from || from <= i)
			continue;
		g->cell[gap] = g->cell[i];
		gap = i;
	}
	g->cell[gap] = 0;
}

bool ghosts_take(struct ghosts *g, uint64_t hash, uint32_t *class)
{
	for (uint32_t i = g->cap ? home(g, hash) : 0; g->cap && g->cell[i]; i = after(g, i)) {
		uint64_t *at = &g->ring[g->cell[i] - 1];

		if ((*at ^ hash) & ~CLASS_MASK)
			continue;
		*class = (uint32_t)(*at & CLASS_MASK) - 1;
		erase(g, i);
		*at = 0;
		return true;
	}
	return false;
}

/* Returns how many that are (0: it came back), and its class. */
static uint32_t end_oldest(struct ghosts *g, uint32_t *class)
{
	uint32_t place = (g->next + g->cap - g->used) % g->cap, i;
	uint64_t ghost = g->ring[place];

	assert(g->used > 0);
	g->used--;
	if (!ghost)
		return 0;
	*class = (uint32_t)(ghost & CLASS_MASK) - 1;
	for (i = home(g, ghost); g->cell[i] != place + 1; i = after(g, i))
		assert(g->cell[i]);
	erase(g, i);
	g->ring[place] = 0;
	return 1;
}

uint32_t ghosts_add(struct ghosts *g, uint64_t hash, uint32_t class, uint64_t want, uint32_t ended[GHOSTS_END])
{
	uint32_t n = 0, i;

	fit(g, want);
	if (!g->cap)
		return 0;
	want = want < 1 ? 1 : want > g->cap ? g->cap : want;
	for (uint32_t left = GHOSTS_END; left && g->used >= want; left--)
		n += end_oldest(g, &ended[n]);
	for (i = home(g, hash); g->cell[i]; i = after(g, i))
		;
	g->cell[i] = g->next + 1;
	g->ring[g->next] = (hash & ~CLASS_MASK) | (class + 1);
	g->next = g->next + 1 < g->cap ? g->next + 1 : 0;
	g->used++;
	return n;
}
