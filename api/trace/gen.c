/* gen.c - generates conversations, documents and scans. See skv/trace_gen.h. No state beyond one
 * generation. */
#include <skv/trace_gen.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <skv/limits.h>
#include <skv/mem.h>
#include <skv/status.h>

#define BLOCK_TOKENS ((uint64_t)SKV_TRACE_BLOCK_TOKENS)
/* Marks ids that are hashes, to keep them apart from counted ones. */
#define DOCUMENT_ID (1ull << 62)

struct request {
	struct skv_trace_request r;
	size_t number; /* order of creation, for equal times */
};

struct gen {
	const struct skv_gen_options *o;
	uint64_t random;
	uint64_t next_id;
	struct request *v;
	size_t n, cap;
};

/* A conversation so far. */
struct talk {
	uint64_t *ids; /* of its whole blocks */
	size_t n, cap;
	uint64_t tokens;
};

static const char *const kind_names[] = { "chat", "agents", "rag", "scan", "mix" };

bool skv_gen_kind_parse(const char *text, enum skv_gen_kind *out)
{
	for (size_t i = 0; i < sizeof kind_names / sizeof kind_names[0]; i++) {
		if (strcmp(text, kind_names[i]) == 0) {
			*out = (enum skv_gen_kind)i;
			return true;
		}
	}
	return false;
}

const char *skv_gen_kind_name(enum skv_gen_kind kind)
{
	assert((unsigned)kind < sizeof kind_names / sizeof kind_names[0]);
	return kind_names[kind];
}

void skv_gen_options_init(struct skv_gen_options *o, enum skv_gen_kind kind)
{
	static const struct skv_gen_options settings[] = {
		[SKV_GEN_CHAT] = { .conversations = 100, .turns = 8, .systems = 4,
				   .system_tokens = 2048, .input_tokens = 1024,
				   .output_tokens = 512, .gap_ms = 400, .think_ms = 10000 },
		[SKV_GEN_AGENTS] = { .conversations = 8, .turns = 40, .systems = 3,
				     .system_tokens = 12288,
				     .input_tokens = 768, .output_tokens = 256, .gap_ms = 5000,
				     .think_ms = 2000 },
		[SKV_GEN_RAG] = { .conversations = 100, .turns = 2, .systems = 2,
				  .system_tokens = 1024, .input_tokens = 256,
				  .output_tokens = 512, .gap_ms = 400, .think_ms = 20000,
				  .documents = 2000,
				  .document_tokens = 2048, .documents_each = 3 },
		[SKV_GEN_SCAN] = { .conversations = 40, .turns = 1, .systems = 1,
				   .system_tokens = 512, .input_tokens = 16384,
				   .output_tokens = 1024, .gap_ms = 1000, .think_ms = 0 },
		[SKV_GEN_MIX] = { .conversations = 100, .turns = 1, .systems = 1 },
	};

	assert((unsigned)kind < sizeof settings / sizeof settings[0]);
	*o = settings[kind];
	o->kind = kind;
	o->seed = 1;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t roll(struct gen *g) { return mix(g->random += 0x9e3779b97f4a7c15u); }

/* Between half and one and a half of `mean`, at least 1. */
static uint64_t about(struct gen *g, uint64_t mean)
{
	uint64_t v = mean / 2 + roll(g) % (mean + 1);

	return v ? v : 1;
}

static int room_for(struct talk *t, uint64_t blocks)
{
	return skv_grow((void **)&t->ids, &t->cap, blocks + 1, sizeof *t->ids) == SKV_OK ? 0 : -1;
}

/* Grows the conversation to `tokens`: new ids for the blocks that became whole. */
static int grow(struct gen *g, struct talk *t, uint64_t tokens)
{
	uint64_t whole = tokens / BLOCK_TOKENS;

	if (whole > SKV_MAX_KEYS)
		whole = SKV_MAX_KEYS;
	if (room_for(t, whole) != 0)
		return -1;
	assert(t->n <= SKV_MAX_KEYS && whole < t->cap);
	while (t->n < whole)
		t->ids[t->n++] = g->next_id++;
	t->tokens = tokens;
	return 0;
}

/* Prefers popular documents: the cube of u in [0, 1). */
static uint64_t choose_document(struct gen *g)
{
	uint64_t u = roll(g) >> 32;

	return (u * u >> 32) * u / (1ull << 32) * g->o->documents >> 32;
}

/* A document is whole blocks, whose ids depend on the document and on what precedes it. A partial
 * block before it is filled up. */
static int add_document(struct gen *g, struct talk *t)
{
	uint64_t document = choose_document(g), seed = mix(document + 1), blocks;

	blocks =
		(g->o->document_tokens / 2 + seed % (g->o->document_tokens + 1)) / BLOCK_TOKENS + 1;
	if (grow(g, t, (t->tokens + BLOCK_TOKENS - 1) / BLOCK_TOKENS * BLOCK_TOKENS) != 0 ||
	    room_for(t, t->n + blocks) != 0)
		return -1;
	for (uint64_t i = 0; i < blocks && t->n < SKV_MAX_KEYS; i++) {
		uint64_t before = t->n ? t->ids[t->n - 1] : 0;

		assert(t->n < t->cap);
		t->ids[t->n++] = DOCUMENT_ID |
				 (mix(3 * mix(before + g->o->seed) + seed + i) & (DOCUMENT_ID - 1));
	}
	t->tokens += blocks * BLOCK_TOKENS;
	return 0;
}

static int add_request(struct gen *g, const struct talk *t, uint64_t at, uint64_t output)
{
	struct request q =
		{ .r = { .timestamp_ms = at, .input_length = t->tokens, .output_length = output },
			     .number = g->n };
	bool partial = t->tokens % BLOCK_TOKENS != 0 && t->n < SKV_MAX_KEYS;

	assert(t->n + partial <= SKV_MAX_KEYS);
	q.r.n_ids = (uint32_t)t->n + partial;
	q.r.ids = skv_calloc(q.r.n_ids, sizeof *q.r.ids);
	if (!q.r.ids || skv_grow((void **)&g->v, &g->cap, g->n + 1, sizeof *g->v) != SKV_OK) {
		skv_free(q.r.ids);
		return -1;
	}
	if (t->n)
		memcpy(q.r.ids, t->ids, t->n * sizeof *q.r.ids);
	if (partial)
		q.r.ids[t->n] = g->next_id++;
	g->v[g->n++] = q;
	return 0;
}

static int turn(struct gen *g, struct talk *t, uint64_t at)
{
	uint64_t output = about(g, g->o->output_tokens);
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && g->o->documents && i < g->o->documents_each; i++)
		rc = add_document(g, t);
	if (rc == 0)
		rc = grow(g, t, t->tokens + about(g, g->o->input_tokens));
	if (rc == 0)
		rc = add_request(g, t, at, output);
	return rc == 0 ? grow(g, t, t->tokens + output) : rc;
}

static int converse(struct gen *g, const struct talk *system, uint64_t at)
{
	struct talk t = { 0 };
	uint64_t turns = 1 + roll(g) % g->o->turns;
	int rc = room_for(&t, system->n);

	if (rc == 0 && system->n)
		memcpy(t.ids, system->ids, system->n * sizeof *t.ids);
	t.n = system->n;
	t.tokens = system->tokens;
	for (uint64_t i = 0; rc == 0 && i < turns; i++) {
		rc = turn(g, &t, at);
		at += about(g, g->o->think_ms);
	}
	skv_free(t.ids);
	return rc;
}

static int make_all(struct gen *g)
{
	struct talk *systems = skv_calloc(g->o->systems, sizeof *systems);
	uint64_t at = 0;
	int rc = systems ? 0 : -1;

	/* A system prompt ends at a block boundary, so that all its blocks are shared. */
	for (uint32_t i = 0; rc == 0 && i < g->o->systems; i++)
		rc = grow(g, &systems[i],
			  (about(g, g->o->system_tokens) + BLOCK_TOKENS - 1) / BLOCK_TOKENS *
				  BLOCK_TOKENS);
	for (uint32_t i = 0; rc == 0 && i < g->o->conversations; i++) {
		rc = converse(g, &systems[roll(g) % g->o->systems], at);
		at += about(g, g->o->gap_ms);
	}
	for (uint32_t i = 0; systems && i < g->o->systems; i++)
		skv_free(systems[i].ids);
	skv_free(systems);
	return rc;
}

static int make_kind(struct gen *g, const struct skv_gen_options *o)
{
	g->o = o;
	g->random = o->seed * 0x2545f4914f6cdd1du;
	return make_all(g);
}

static int make_mix(struct gen *g, const struct skv_gen_options *all)
{
	int rc = 0;

	for (int kind = SKV_GEN_CHAT; rc == 0 && kind < SKV_GEN_MIX; kind++) {
		struct skv_gen_options o;
		uint64_t n;

		skv_gen_options_init(&o, (enum skv_gen_kind)kind);
		n = (uint64_t)o.conversations * all->conversations / 100;
		o.conversations = n ? (uint32_t)n : 1;
		o.seed = mix(all->seed + (uint64_t)kind);
		rc = make_kind(g, &o);
	}
	return rc;
}

static int by_time(const void *pa, const void *pb)
{
	const struct request *a = pa, *b = pb;

	if (a->r.timestamp_ms != b->r.timestamp_ms)
		return a->r.timestamp_ms < b->r.timestamp_ms ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

int skv_gen_make(const struct skv_gen_options *o, struct skv_trace *out)
{
	struct gen g = { 0 };
	int rc = o->kind == SKV_GEN_MIX ? make_mix(&g, o) : make_kind(&g, o);

	*out = (struct skv_trace){ 0 };
	if (rc == 0 && g.n)
		qsort(g.v, g.n, sizeof *g.v, by_time);
	if (rc == 0 && skv_grow((void **)&out->v, &out->cap, g.n + 1, sizeof *out->v) != SKV_OK)
		rc = -1;
	assert(rc != 0 || out->cap >= g.n);
	for (size_t i = 0; i < g.n; i++) {
		if (rc == 0)
			out->v[out->n++] = g.v[i].r;
		else
			skv_free(g.v[i].r.ids);
	}
	skv_free(g.v);
	return rc;
}
