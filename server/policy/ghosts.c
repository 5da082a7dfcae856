/* ghosts.c - see ghosts.h. A cell: number of the ghost (32 bits), class (8), tag of its key (24). */
#include "ghosts.h"

#include <string.h>

#include <skv/mem.h>

#define TAG_MASK 0xffffffu
#define MIN_LINES 8u
#define MAX_LINES (1u << 23)
#define LINE_BYTES (GHOSTS_LINE * sizeof(uint64_t))
#define RETRY 1024u

void ghosts_destroy(struct ghosts *g)
{
	skv_free(g->memory);
	*g = (struct ghosts){ 0 };
}

static uint64_t *line_of(const struct ghosts *g, uint64_t hash)
{
	return &g->cell[(size_t)((hash >> 32) * g->n_lines >> 32) * GHOSTS_LINE];
}

static uint32_t number_of(uint64_t cell) { return (uint32_t)(cell >> 32); }
static uint32_t class_of(uint64_t cell) { return cell >> 24 & 0xff; }

static bool is_over(const struct ghosts *g, uint64_t cell) { return g->number - number_of(cell) >= g->want; }

/* Lines for half as many again as are wanted, when what there is does not do. */
static void fit(struct ghosts *g, uint64_t want)
{
	uint64_t lines = want / GHOSTS_LINE * 3 / 2;
	void *memory;

	lines = lines < MIN_LINES ? MIN_LINES : lines > MAX_LINES ? MAX_LINES : lines;
	if (g->n_lines * 7ull >= lines * 5 && g->n_lines <= lines * 4)
		return;
	if (g->retry_at && (int32_t)(g->number - g->retry_at) < 0)
		return;
	memory = skv_calloc(lines + 1, LINE_BYTES); /* one more, to begin at a line */
	g->retry_at = memory ? 0 : g->number + RETRY;
	if (!memory)
		return;
	skv_free(g->memory);
	g->memory = memory;
	g->cell = (uint64_t *)(((uintptr_t)memory + LINE_BYTES - 1) & ~(uintptr_t)(LINE_BYTES - 1));
	g->n_lines = (uint32_t)lines;
}

bool ghosts_take(struct ghosts *g, uint64_t hash, uint32_t *class)
{
	uint64_t *line = g->n_lines ? line_of(g, hash) : NULL;

	for (uint32_t i = 0; line && i < GHOSTS_LINE; i++) {
		if (!line[i] || (line[i] & TAG_MASK) != (hash & TAG_MASK) || is_over(g, line[i]))
			continue;
		*class = class_of(line[i]);
		line[i] = 0;
		return true;
	}
	return false;
}

uint32_t ghosts_add(struct ghosts *g, uint64_t hash, uint32_t class, uint64_t want, uint32_t ended[GHOSTS_LINE])
{
	uint32_t n = 0, oldest = 0;
	uint64_t *line;

	fit(g, want);
	g->want = want;
	if (++g->number == 0)
		g->number = 1; /* no cell is 0 */
	if (!g->n_lines)
		return 0;
	line = line_of(g, hash);
	for (uint32_t i = 0; i < GHOSTS_LINE; i++) {
		if (line[i] && is_over(g, line[i])) {
			ended[n++] = class_of(line[i]);
			line[i] = 0;
		}
		if (!line[oldest])
			continue;
		if (!line[i] || g->number - number_of(line[i]) > g->number - number_of(line[oldest]))
			oldest = i;
	}
	if (line[oldest])
		ended[n++] = class_of(line[oldest]);
	line[oldest] = (uint64_t)g->number << 32 | class << 24 | (hash & TAG_MASK);
	return n;
}
