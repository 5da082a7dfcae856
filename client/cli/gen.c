/*
 * gen.c - makes conversations that look like those of a chat service: a few system prompts shared
 * by many conversations, each turn's input being everything said before plus a new question.
 *
 * A whole 512-token block keeps its id for ever; the last, partly filled block of an input gets a
 * new one each time, since its content changes with the next turn. No state beside one generation.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <kvb/mem.h>
#include <kvb/status.h>

#define BLOCK_TOKENS 512u
#define MAX_BLOCKS 16384u /* of one input: KVBLOCK_MAX_KEYS */

struct request {
	uint64_t timestamp_ms;
	uint32_t number; /* order of making: ties in time keep it */
	uint32_t n_ids;
	uint64_t input;
	uint64_t output;
	uint64_t *ids;
};

struct gen {
	const struct kvb_gen_options *o;
	uint64_t random;
	uint64_t next_id;
	struct request *v;
	size_t n, cap;
};

/* What one conversation has said so far. */
struct talk {
	uint64_t *ids; /* of its whole blocks */
	size_t n, cap;
	uint64_t tokens;
};

void kvb_gen_options_init(struct kvb_gen_options *o)
{
	*o = (struct kvb_gen_options){ .conversations = 100,
				       .turns = 8,
				       .systems = 4,
				       .system_tokens = 2048,
				       .input_tokens = 1024,
				       .output_tokens = 512,
				       .gap_ms = 400,
				       .think_ms = 10000,
				       .seed = 1 };
}

static uint64_t roll(struct gen *g)
{
	uint64_t x = g->random += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Between half and one and a half of `mean`, at least 1. */
static uint64_t about(struct gen *g, uint64_t mean)
{
	uint64_t v = mean / 2 + roll(g) % (mean + 1);

	return v ? v : 1;
}

/* The conversation grows to `tokens`: new ids for the blocks that became whole. */
static int grow(struct gen *g, struct talk *t, uint64_t tokens)
{
	uint64_t whole = tokens / BLOCK_TOKENS;

	if (whole > MAX_BLOCKS)
		whole = MAX_BLOCKS;
	if (kvb_grow((void **)&t->ids, &t->cap, whole + 1, sizeof *t->ids) != KVB_OK)
		return -1;
	while (t->n < whole)
		t->ids[t->n++] = g->next_id++;
	t->tokens = tokens;
	return 0;
}

static int add_request(struct gen *g, const struct talk *t, uint64_t at, uint64_t output)
{
	struct request r = { .timestamp_ms = at, .number = (uint32_t)g->n, .input = t->tokens,
			     .output = output };
	bool partial = t->tokens % BLOCK_TOKENS != 0 && t->n < MAX_BLOCKS;

	r.n_ids = (uint32_t)t->n + partial;
	r.ids = kvb_calloc(r.n_ids, sizeof *r.ids);
	if (!r.ids || kvb_grow((void **)&g->v, &g->cap, g->n + 1, sizeof *g->v) != KVB_OK) {
		kvb_free(r.ids);
		return -1;
	}
	if (t->n)
		memcpy(r.ids, t->ids, t->n * sizeof *r.ids);
	if (partial)
		r.ids[t->n] = g->next_id++;
	g->v[g->n++] = r;
	return 0;
}

static int converse(struct gen *g, const struct talk *system, uint64_t at)
{
	struct talk t = { 0 };
	uint64_t turns = 1 + roll(g) % g->o->turns;
	int rc = kvb_grow((void **)&t.ids, &t.cap, system->n + 1, sizeof *t.ids) == KVB_OK ? 0 : -1;

	if (rc == 0 && system->n)
		memcpy(t.ids, system->ids, system->n * sizeof *t.ids);
	t.n = system->n;
	t.tokens = system->tokens;
	for (uint64_t i = 0; rc == 0 && i < turns; i++) {
		uint64_t output = about(g, g->o->output_tokens);

		rc = grow(g, &t, t.tokens + about(g, g->o->input_tokens));
		if (rc == 0)
			rc = add_request(g, &t, at, output);
		if (rc == 0)
			rc = grow(g, &t, t.tokens + output);
		at += about(g, g->o->think_ms);
	}
	kvb_free(t.ids);
	return rc;
}

static int by_time(const void *pa, const void *pb)
{
	const struct request *a = pa, *b = pb;

	if (a->timestamp_ms != b->timestamp_ms)
		return a->timestamp_ms < b->timestamp_ms ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static void print_request(const struct request *r, FILE *out)
{
	fprintf(out, "{\"timestamp\": %" PRIu64 ", \"input_length\": %" PRIu64
		     ", \"output_length\": %" PRIu64 ", \"hash_ids\": [",
		r->timestamp_ms, r->input, r->output);
	for (uint32_t i = 0; i < r->n_ids; i++)
		fprintf(out, "%s%" PRIu64, i ? ", " : "", r->ids[i]);
	fputs("]}\n", out);
}

static int make_all(struct gen *g)
{
	struct talk *systems = kvb_calloc(g->o->systems, sizeof *systems);
	uint64_t at = 0;
	int rc = systems ? 0 : -1;

	/* A system prompt ends at a block's end, so that all its blocks are shared. */
	for (uint32_t i = 0; rc == 0 && i < g->o->systems; i++)
		rc = grow(g, &systems[i],
			  (about(g, g->o->system_tokens) + BLOCK_TOKENS - 1) / BLOCK_TOKENS *
				  BLOCK_TOKENS);
	for (uint32_t i = 0; rc == 0 && i < g->o->conversations; i++) {
		rc = converse(g, &systems[roll(g) % g->o->systems], at);
		at += about(g, g->o->gap_ms);
	}
	for (uint32_t i = 0; systems && i < g->o->systems; i++)
		kvb_free(systems[i].ids);
	kvb_free(systems);
	return rc;
}

int kvb_gen_write(const struct kvb_gen_options *o, FILE *out)
{
	struct gen g = { .o = o, .random = o->seed * 0x2545f4914f6cdd1du };
	int rc = make_all(&g);

	if (rc == 0 && g.n)
		qsort(g.v, g.n, sizeof *g.v, by_time);
	for (size_t i = 0; i < g.n; i++) {
		if (rc == 0)
			print_request(&g.v[i], out);
		kvb_free(g.v[i].ids);
	}
	kvb_free(g.v);
	return rc == 0 && !ferror(out) && fflush(out) == 0 ? 0 : -1;
}
