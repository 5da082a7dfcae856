/*
 * ghosts.c - see ghosts.h. A ring in order, and a table by tag: Robin Hood hashing, so a search
 * ends where the one that it looks for would stand, and what stands behind a gap moves up
 * without looking further.
 *
 * A cell: tag (32 bits), place in the ring + 1 (27), class (5). It has all that moving it takes, so
 * each step costs one cache miss, and that of the ghost that ends is fetched ahead.
 */
#include "ghosts.h"

#include <assert.h>

#include <skv/mem.h>

#define CLASS_BITS 5u
#define PLACE_BITS 27u
#define MIN_RING 64u
#define MAX_RING (1u << 26)
#define RETRY 1024u
#define AHEAD 8u /* ghosts between a prefetch and its use */

_Static_assert(MAX_RING < 1u << PLACE_BITS, "a place fits");

void ghosts_destroy(struct ghosts *g)
{
	skv_free(g->ring);
	skv_free(g->note);
	skv_free(g->cell);
	*g = (struct ghosts){ .notes = g->notes };
}

static uint32_t tag_of(uint64_t hash) { return hash >> 32 ? (uint32_t)(hash >> 32) : 1; }
static uint32_t tag_in(uint64_t cell) { return (uint32_t)(cell >> 32); }
static uint32_t place_in(uint64_t cell) { return ((uint32_t)cell >> CLASS_BITS) - 1; }
static uint32_t class_in(uint64_t cell) { return cell & ((1u << CLASS_BITS) - 1); }

static uint32_t home(const struct ghosts *g, uint32_t tag)
{
	return (uint32_t)((uint64_t)tag * g->n_cells >> 32);
}

static uint32_t after(const struct ghosts *g, uint32_t i) { return i + 1 < g->n_cells ? i + 1 : 0; }

/* Resizes to an eighth more than wanted, if the size is too small or far too large. */
static void fit(struct ghosts *g, uint64_t want)
{
	struct ghosts fresh = { .notes = g->notes };

	want = want < MIN_RING ? MIN_RING : want > MAX_RING / 9 * 8 ? MAX_RING / 9 * 8 : want;
	if (want <= g->cap + g->cap / 8 && g->cap / 4 <= want)
		return;
	if (g->retry_in && --g->retry_in)
		return;
	fresh.cap = (uint32_t)(want + want / 8);
	fresh.n_cells = fresh.cap + fresh.cap / 3;
	fresh.ring = skv_calloc(fresh.cap, sizeof *fresh.ring);
	fresh.cell = skv_calloc(fresh.n_cells, sizeof *fresh.cell);
	if (g->notes)
		fresh.note = skv_calloc(fresh.cap, sizeof *fresh.note);
	if (fresh.ring && fresh.cell && (!g->notes || fresh.note)) {
		ghosts_destroy(g);
		*g = fresh;
		return;
	}
	ghosts_destroy(&fresh);
	g->retry_in = RETRY;
}

/* Distance of cell i's entry from its home cell. */
static uint32_t from_home(const struct ghosts *g, uint32_t i)
{
	uint32_t at = home(g, tag_in(g->cell[i]));

	return i >= at ? i - at : i + g->n_cells - at;
}

/* Empties the cell; the following ones that are not at home move up. */
static void erase(struct ghosts *g, uint32_t gap)
{
	for (uint32_t i = after(g, gap); g->cell[i] && from_home(g, i) > 0; i = after(g, i)) {
		g->cell[gap] = g->cell[i];
		gap = i;
	}
	g->cell[gap] = 0;
}

/* Before the first that is nearer to its home; that one and those behind it make room. */
static void insert(struct ghosts *g, uint64_t cell)
{
	uint32_t i = home(g, tag_in(cell)), far = 0;

	for (; g->cell[i]; i = after(g, i), far++) {
		uint32_t other = from_home(g, i);

		if (other < far) {
			uint64_t moves = g->cell[i];

			g->cell[i] = cell;
			cell = moves;
			far = other;
		}
	}
	g->cell[i] = cell;
}

void ghosts_prefetch(const struct ghosts *g, uint64_t hash)
{
	if (g->cap)
		__builtin_prefetch(&g->cell[home(g, tag_of(hash))], 1);
}

static struct ghost ghost_in(const struct ghosts *g, uint64_t cell)
{
	return (struct ghost){ class_in(cell), g->note ? g->note[place_in(cell)] : 0 };
}

/* Its cell, or n_cells. */
static uint32_t find(const struct ghosts *g, uint64_t hash)
{
	uint32_t tag = tag_of(hash), i = g->cap ? home(g, tag) : 0, far = 0;

	if (!g->cap)
		return g->n_cells;
	for (; tag_in(g->cell[i]) != tag; i = after(g, i), far++)
		if (!g->cell[i] || from_home(g, i) < far)
			return g->n_cells;
	return i;
}

bool ghosts_find(const struct ghosts *g, uint64_t hash, struct ghost *out)
{
	uint32_t i = find(g, hash);

	if (i < g->n_cells)
		*out = ghost_in(g, g->cell[i]);
	return i < g->n_cells;
}

bool ghosts_take(struct ghosts *g, uint64_t hash, struct ghost *out)
{
	uint32_t i = find(g, hash);

	if (i == g->n_cells)
		return false;
	*out = ghost_in(g, g->cell[i]);
	g->ring[place_in(g->cell[i])] = 0;
	erase(g, i);
	return true;
}

/* Returns how many that are (0: it came back), and what it was. */
static uint32_t end_oldest(struct ghosts *g, struct ghost *out)
{
	uint32_t place = g->next >= g->used ? g->next - g->used : g->next + g->cap - g->used;
	uint32_t ahead = place + AHEAD < g->cap ? place + AHEAD : place + AHEAD - g->cap;
	uint32_t tag = g->ring[place], i;

	assert(g->used > 0);
	g->used--;
	__builtin_prefetch(&g->cell[home(g, g->ring[ahead])], 1);
	if (!tag)
		return 0;
	for (i = home(g, tag); !g->cell[i] || place_in(g->cell[i]) != place; i = after(g, i))
		assert(g->cell[i]);
	*out = ghost_in(g, g->cell[i]);
	erase(g, i);
	g->ring[place] = 0;
	return 1;
}

uint32_t ghosts_add(struct ghosts *g, uint64_t hash, struct ghost ghost, uint64_t want,
		    struct ghost ended[GHOSTS_END])
{
	uint32_t n = 0, tag = tag_of(hash);

	fit(g, want);
	if (!g->cap)
		return 0;
	want = want < 1 ? 1 : want > g->cap ? g->cap : want;
	for (uint32_t left = GHOSTS_END; left && g->used >= want; left--)
		n += end_oldest(g, &ended[n]);
	assert(g->used < g->cap && ghost.class < 1u << CLASS_BITS);
	insert(g, (uint64_t)tag << 32 | (g->next + 1) << CLASS_BITS | ghost.class);
	g->ring[g->next] = tag;
	if (g->note)
		g->note[g->next] = ghost.note;
	g->next = g->next + 1 < g->cap ? g->next + 1 : 0;
	g->used++;
	return n;
}
