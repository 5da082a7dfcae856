/*
 * reuse.c - the default: least recently used, leaves first, with ages divided by the odds that a block is used again.
 *
 * Three quarters of the blocks of real traffic are never used again, and it shows early which: a tail of a prompt
 * hardly ever is, what was used twice nearly always. So blocks are of classes: how they were born (ORIGIN) x how often
 * they were used (0, 1, more). For each class two counts are kept: `again`, blocks that were used while of it, or came
 * back while a ghost remembered them, and `never`, ghosts that ended. Both fade. The odds of a class, by those of all,
 * are its weight; the block with the largest age / weight goes. Within a class that is the least recently used, so each
 * class is a queue by last use, and only the tops are compared.
 *
 * What the numbers below were chosen on, and how little hangs on each, is in docs/decisions/0016-eviction-policies.md.
 *
 * Ages are blocks born since the last use, not time: the outcome is that of the order of operations alone. Uses carry
 * stamps; a list of samples (stamp, births so far), thinner where it is older, tells births from stamps.
 */
#include "ghosts.h"
#include "policies.h"

#include <string.h>

#include <skv/mem.h>

#define ORIGINS 2u
#define USES 3u /* 0, 1, more */
#define CLASSES (ORIGINS * USES)
#define NOTED_MAX 5u /* uses that count for the odds */

#define PRIOR 20.0 /* a class counts as if so many of its blocks had the odds of all */
#define FADE 0.95  /* counts, at each update */
#define WEIGHT_MAX 32.0
#define UPDATE_SHARE 4u /* births between updates: blocks / this, */
#define UPDATE_MIN 256u /* and no fewer */

#define SAMPLES 4096u
#define FINENESS 64u /* a sample tells an age to a 64th */
#define COST_ONE 65536u

struct sample {
	uint64_t use;
	uint64_t births; /* up to this use */
};

struct reuse {
	const struct skv_policy_counts *n;
	double again[CLASSES];
	double never[CLASSES];
	uint32_t cost[CLASSES]; /* COST_ONE / weight: what an age is multiplied by */
	uint64_t births;
	uint64_t blocks;        /* the most that there were since the last update, */
	uint64_t blocks_before; /* and before it */
	uint64_t update_at;
	struct sample *sample; /* [SAMPLES], by use */
	uint32_t n_samples;
	/* Blocks adopted: so many births before the first, taken to be spread evenly over these uses. */
	uint64_t old_births, old_least, old_most;
	struct ghosts ghosts;
};

_Static_assert(CLASSES <= SKV_POLICY_QUEUES, "a queue for each class");

/* ---- classes ----------------------------------------------------------------------------------------- */

/* A tag: origin (2 bits), uses noted (3 bits). */
static uint32_t origin_of(uint32_t tag) { return (tag & 3) < ORIGINS ? tag & 3 : 0; }
static uint32_t noted_of(uint32_t tag) { return tag >> 2; }
static uint32_t tag_of(uint32_t origin, uint32_t noted) { return noted << 2 | origin; }
static uint32_t most(uint32_t n, uint32_t limit) { return n < limit ? n : limit; }
static uint32_t class_of(uint32_t origin, uint32_t uses) { return origin * USES + most(uses, USES - 1); }

/* ---- odds -------------------------------------------------------------------------------------------- */

static void update(struct reuse *o)
{
	double again = 0, never = 0, all;

	for (uint32_t c = 0; c < CLASSES; c++) {
		again += o->again[c];
		never += o->never[c];
	}
	all = (again + 1) / (again + never + 2);
	for (uint32_t c = 0; c < CLASSES; c++) {
		double weight = (o->again[c] + PRIOR * all) / (o->again[c] + o->never[c] + PRIOR) / all;

		weight = weight > WEIGHT_MAX ? WEIGHT_MAX : weight < 1 / WEIGHT_MAX ? 1 / WEIGHT_MAX : weight;
		o->cost[c] = (uint32_t)(COST_ONE / weight);
		o->again[c] *= FADE;
		o->never[c] *= FADE;
	}
}

/* When it comes to the top, and then only: how often its holder placed it in between is to teach nothing. */
static void note_uses(struct reuse *o, struct skv_policy_block *b)
{
	uint32_t origin = origin_of(b->tag), now = most(b->freq, NOTED_MAX);

	for (uint32_t uses = noted_of(b->tag); uses < now; uses++)
		o->again[class_of(origin, uses)]++;
	if (noted_of(b->tag) < now)
		b->tag = tag_of(origin, now);
}

/* ---- ages -------------------------------------------------------------------------------------------- */

static void thin(struct reuse *o)
{
	struct sample *s = o->sample;
	uint32_t n = 1;

	for (uint32_t i = 1; i + 1 < o->n_samples; i++)
		if (s[i + 1].births - s[n - 1].births > (o->births - s[i + 1].births) / FINENESS)
			s[n++] = s[i];
	s[n++] = s[o->n_samples - 1];
	o->n_samples = n;
}

static void take_sample(struct reuse *o, uint64_t use)
{
	struct sample *last = o->n_samples ? &o->sample[o->n_samples - 1] : NULL;

	if (!o->sample)
		o->sample = skv_malloc(SAMPLES * sizeof *o->sample);
	if (!o->sample)
		return; /* all are of one age: least recently used, by class */
	if (last && use <= last->use) {
		last->births = o->births;
		return;
	}
	if (o->n_samples == SAMPLES)
		thin(o);
	o->sample[o->n_samples++] = (struct sample){ use, o->births };
}

/* Births since a use. */
static uint64_t age_of(const struct reuse *o, uint64_t use)
{
	uint32_t low = 0, high = o->n_samples;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (o->sample[mid].use <= use)
			low = mid + 1;
		else
			high = mid;
	}
	if (low)
		return o->births - o->sample[low - 1].births;
	if (use >= o->old_most)
		return o->births;
	if (use <= o->old_least)
		return o->births + o->old_births;
	return o->births + (uint64_t)((double)o->old_births * (double)(o->old_most - use) /
				      (double)(o->old_most - o->old_least));
}

/* Blocks of the group, not as few as in the middle of making room. */
static uint64_t size(const struct reuse *o)
{
	uint64_t n = o->blocks > o->blocks_before ? o->blocks : o->blocks_before;

	return n > o->n->blocks ? n : o->n->blocks;
}

/* ---- the policy -------------------------------------------------------------------------------------- */

static void *create(const struct skv_policy_counts *n)
{
	struct reuse *o = skv_calloc(1, sizeof *o);

	if (!o)
		return NULL;
	o->n = n;
	for (uint32_t c = 0; c < CLASSES; c++)
		o->cost[c] = COST_ONE;
	o->update_at = UPDATE_MIN;
	return o;
}

static void destroy(void *state)
{
	struct reuse *o = state;

	ghosts_destroy(&o->ghosts);
	skv_free(o->sample);
	skv_free(o);
}

static void prefetch(const void *state, uint64_t hash)
{
	const struct reuse *o = state;

	ghosts_prefetch(&o->ghosts, hash);
}

static void born(void *state, struct skv_policy_block *b, uint32_t how)
{
	struct reuse *o = state;
	uint32_t class, origin = how & SKV_BORN_LAST ? 1 : 0;
	uint64_t pause;

	b->freq = 0;
	if (ghosts_take(&o->ghosts, b->hash, &class)) {
		o->again[class < CLASSES ? class : 0]++;
		b->freq = 1;
	}
	b->tag = tag_of(origin, b->freq);
	o->births++;
	take_sample(o, b->use);
	if (o->n->blocks > o->blocks)
		o->blocks = o->n->blocks;
	if (o->births < o->update_at)
		return;
	pause = size(o) / UPDATE_SHARE;
	o->blocks_before = o->blocks;
	o->blocks = 0;
	o->update_at = o->births + (pause > UPDATE_MIN ? pause : UPDATE_MIN);
	update(o);
}

static void adopt(void *state, struct skv_policy_block *b, bool own)
{
	struct reuse *o = state;

	if (!own)
		b->tag = tag_of(0, most(b->freq, NOTED_MAX));
	o->old_births++;
	if (o->n_samples && b->use >= o->sample[0].use)
		return;
	o->old_least = o->old_most == 0 || b->use < o->old_least ? b->use : o->old_least;
	o->old_most = b->use > o->old_most ? b->use : o->old_most;
}

static struct skv_policy_place place(void *state, struct skv_policy_block *b)
{
	(void)state;
	return (struct skv_policy_place){ class_of(origin_of(b->tag), b->freq), b->use };
}

static bool look(void *state, struct skv_policy_block *b, struct skv_policy_place at)
{
	note_uses(state, b);
	return at.key == b->use && at.queue == class_of(origin_of(b->tag), b->freq);
}

static uint64_t rank(void *state, struct skv_policy_place at)
{
	const struct reuse *o = state;
	return UINT64_MAX - (age_of(o, at.key) + 1) * o->cost[at.queue < CLASSES ? at.queue : 0];
}

static void evicted(void *state, const struct skv_policy_block *b, struct skv_policy_place at)
{
	struct reuse *o = state;
	uint32_t ended[GHOSTS_END];
	uint32_t n = ghosts_add(&o->ghosts, b->hash, at.queue, size(o), ended);

	for (uint32_t i = 0; i < n; i++)
		o->never[ended[i] < CLASSES ? ended[i] : 0]++;
}

const struct skv_policy_ops skv_policy_reuse = {
	.name = "reuse", .n_queues = CLASSES, .leaf_first = true, .by_use = true, .create = create, .destroy = destroy,
	.prefetch = prefetch, .born = born, .adopt = adopt, .place = place, .look = look, .rank = rank, .evicted = evicted,
};
