/*
 * reuse.c - the default: least recently used, leaves first, with ages weighted by how likely a
 * block is to be used again.
 *
 * In real traffic three quarters of the blocks are never used again, and which ones shows early:
 * the tail of a prompt rarely is, a block used twice nearly always. So blocks are put into classes:
 * origin (ORIGIN) x number of uses (0, 1, more). Each class has two counts: `again`, blocks that
 * were used while in it, or were created again while a ghost remembered them, and `never`, ghosts
 * that expired. Both decay. The reuse rate of a class over that of all blocks is its weight; the
 * block with the largest age / weight is evicted. Within a class that is the least recently used
 * one, so each class is a queue by last use, and only the tops are compared.
 *
 * How the constants below were chosen, and how little depends on each, is in
 * docs/decisions/0016-eviction-policies.md.
 *
 * An age is the number of blocks born since the last use, not a time: the result depends only on
 * the order of operations. Uses carry stamps; a list of samples (stamp, births so far), sparser
 * where it is older, maps stamps to births.
 *
 * `selective` evicts in the same order, but learns what a new block is worth (worth.h), and keeps
 * one out that is worth less than what it would replace: where a working set is far larger than the
 * store, part of it stays and is hit, instead of all of it passing through. What is kept out is a
 * ghost like any other, so it is learned from, and a birth that counts for ages.
 */
#include "ghosts.h"
#include "policies.h"
#include "worth.h"

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#define ORIGINS 2u
#define USES 3u /* 0, 1, more */
#define CLASSES (ORIGINS * USES)
#define NOTED_MAX 5u /* uses that count towards the reuse rate */

#define PRIOR 20.0 /* each class starts as if this many of its blocks had the overall reuse rate */
#define FADE 0.95  /* of the counts, at each update */
#define WEIGHT_MAX 32.0
#define UPDATE_SHARE 4u /* births between updates: blocks / this, */
#define UPDATE_MIN 256u /* and no fewer */

#define FAVOUR 1.5 /* a new block is admitted while it is worth more than 1 / this of the other:
		     * what is learned about it is uncertain, and it was asked for just now */

#define SAMPLES 4096u
#define FINENESS 64u /* a sample gives an age to 1/64 */
#define COST_ONE 65536u

struct sample {
	uint64_t use;
	uint64_t births; /* up to this use */
	uint64_t born;   /* the newest block's, up to this use */
};

struct reuse {
	const struct skv_policy_counts *n;
	double again[CLASSES];
	double never[CLASSES];
	uint32_t cost[CLASSES]; /* COST_ONE / weight: the factor of an age */
	uint64_t births;
	uint64_t blocks;        /* the most since the last update, */
	uint64_t blocks_before; /* and in the interval before */
	uint64_t update_at;
	struct sample *sample; /* [SAMPLES], by use */
	uint32_t n_samples;
	/* Blocks adopted: counted as births before the first one, and
	 * assumed to be spread evenly over these uses. */
	uint64_t old_births, old_least, old_most;
	struct ghosts ghosts;
	struct worth *worth; /* of `selective`, else NULL */
	/* The last rank asked for in each queue: a search compares the same tops again and again,
	 * and blocks of a start have one use. */
	struct {
		uint64_t use, as_of, rank; /* 0: none yet */
	} ranked[CLASSES];
	uint64_t gone; /* ghosts made. While there were fewer than may be at a time, only what came
			* back is known, not what never does. */
};

_Static_assert(CLASSES <= GHOSTS_CLASSES, "a class fits");
_Static_assert(CLASSES == WORTH_CLASSES, "the same classes");
_Static_assert(CLASSES <= SKV_POLICY_QUEUES, "a queue for each class");

/* ---- classes --------------------------------------------------------------------------------- */

/* A tag: origin (2 bits), uses noted (3 bits). */
static uint32_t origin_of(uint32_t tag) { return (tag & 3) < ORIGINS ? tag & 3 : 0; }
static uint32_t noted_of(uint32_t tag) { return tag >> 2; }
static uint32_t tag_of(uint32_t origin, uint32_t noted) { return noted << 2 | origin; }
static uint32_t most(uint32_t n, uint32_t limit) { return n < limit ? n : limit; }

static uint32_t class_of(uint32_t origin, uint32_t uses)
{
	return origin * USES + most(uses, USES - 1);
}

/* ---- reuse rates --------------------------------------------------------------------------- */

static void update(struct reuse *o)
{
	double again = 0, never = 0, all;

	for (uint32_t c = 0; c < CLASSES; c++) {
		again += o->again[c];
		never += o->never[c];
	}
	all = (again + 1) / (again + never + 2);
	for (uint32_t c = 0; c < CLASSES; c++) {
		double weight =
			(o->again[c] + PRIOR * all) / (o->again[c] + o->never[c] + PRIOR) / all;

		weight = weight > WEIGHT_MAX       ? WEIGHT_MAX
			 : weight < 1 / WEIGHT_MAX ? 1 / WEIGHT_MAX
						   : weight;
		o->cost[c] = (uint32_t)(COST_ONE / weight);
		o->again[c] *= FADE;
		o->never[c] *= FADE;
	}
}

/* ---- ages ------------------------------------------------------------------------------------ */

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

static void take_sample(struct reuse *o, uint64_t use, uint64_t born)
{
	struct sample *last = o->n_samples ? &o->sample[o->n_samples - 1] : NULL;

	if (!o->sample)
		o->sample = skv_malloc(SAMPLES * sizeof *o->sample);
	if (!o->sample)
		return; /* ages are equal then: LRU in the class of least weight */
	if (last && use <= last->use) {
		last->births = o->births;
		last->born = born > last->born ? born : last->born;
		return;
	}
	if (last && born < last->born)
		born = last->born;
	if (o->n_samples == SAMPLES)
		thin(o);
	o->sample[o->n_samples++] = (struct sample){ use, o->births, born };
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

/* Births from the block's own to its last use. */
static uint64_t life_of(const struct reuse *o, const struct skv_policy_block *b)
{
	uint32_t low = 0, high = o->n_samples;
	uint64_t age = age_of(o, b->use), births;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (o->sample[mid].born < b->born)
			low = mid + 1;
		else
			high = mid;
	}
	births = low < o->n_samples ? o->births - o->sample[low].births : age;
	return births > age ? births - age : 0;
}

/* Only when the block reaches the top of its queue: how often its holder repositioned it in between
 * must not count. When each of its uses was is not known: they are taken as spread evenly over its
 * life. */
static void note_uses(struct reuse *o, struct skv_policy_block *b)
{
	uint32_t origin = origin_of(b->tag), now = most(b->freq, NOTED_MAX);

	for (uint32_t uses = noted_of(b->tag); uses < now; uses++) {
		o->again[class_of(origin, uses)]++;
		if (o->worth)
			worth_again(o->worth, class_of(origin, uses), life_of(o, b) / b->freq);
	}
	if (noted_of(b->tag) < now)
		b->tag = tag_of(origin, now);
}

/* Blocks of the group: a recent maximum, for in the middle of an eviction there are fewer. */
static uint64_t size(const struct reuse *o)
{
	uint64_t n = o->blocks > o->blocks_before ? o->blocks : o->blocks_before;

	return n > o->n->blocks ? n : o->n->blocks;
}

/* ---- the policy ------------------------------------------------------------------------------ */

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

static void *create_selective(const struct skv_policy_counts *n)
{
	struct reuse *o = create(n);

	if (!o)
		return NULL;
	o->worth = skv_calloc(1, sizeof *o->worth);
	if (!o->worth) {
		skv_free(o);
		return NULL;
	}
	worth_update(o->worth);
	return o;
}

static void destroy(void *state)
{
	struct reuse *o = state;

	ghosts_destroy(&o->ghosts);
	skv_free(o->sample);
	skv_free(o->worth);
	skv_free(o);
}

static void prefetch(const void *state, uint64_t hash)
{
	const struct reuse *o = state;

	ghosts_prefetch(&o->ghosts, hash);
}

/* A new block: was it there not long ago? */
static bool take_ghost(struct reuse *o, uint64_t hash)
{
	struct ghost g;

	if (!ghosts_take(&o->ghosts, hash, &g))
		return false;
	o->again[g.class]++;
	if (o->worth)
		worth_again(o->worth, g.class, g.age);
	return true;
}

static void never_came_back(void *state, struct ghost g, uint32_t n)
{
	struct reuse *o = state;

	assert(g.class < CLASSES);
	o->never[g.class] += n;
	if (o->worth)
		worth_never(o->worth, g.class, g.age, n);
}

/* `age`: births since its last use. */
static void add_ghost(struct reuse *o, uint64_t hash, uint32_t class, uint64_t age)
{
	const struct ghost g = { class < CLASSES ? class : 0, age };

	o->gone++;
	ghosts_add(&o->ghosts, hash, g, size(o), never_came_back, o);
}

/* Counts a block that was born, or refused. */
static void count_birth(struct reuse *o)
{
	uint64_t pause;

	o->births++;
	if (o->n->blocks > o->blocks)
		o->blocks = o->n->blocks;
	if (o->births < o->update_at)
		return;
	pause = size(o) / UPDATE_SHARE;
	o->blocks_before = o->blocks;
	o->blocks = 0;
	o->update_at = o->births + (pause > UPDATE_MIN ? pause : UPDATE_MIN);
	update(o);
	if (o->worth)
		worth_update(o->worth);
}

static uint32_t tag_born(bool last) { return tag_of(last, 0); }

static void born(void *state, struct skv_policy_block *b, bool last)
{
	struct reuse *o = state;

	b->freq = take_ghost(o, b->hash) ? 1 : 0;
	b->tag = tag_of(last, b->freq);
	count_birth(o);
	take_sample(o, b->use, b->born);
}

static void adopt(void *state, struct skv_policy_block *b, bool own)
{
	struct reuse *o = state;

	if (!own)
		b->tag = tag_of(0, most(b->freq, NOTED_MAX));
	if (o->n_samples && b->born >= o->sample[0].born)
		return; /* a birth that was counted: the state has followed another one */
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

/* Ages and costs change with births and adoptions only. */
static uint64_t rank(void *state, struct skv_policy_place at)
{
	struct reuse *o = state;
	uint32_t class = at.queue < CLASSES ? at.queue : 0;
	uint64_t as_of = o->births + o->old_births;

	if (o->ranked[class].use != at.key || o->ranked[class].as_of != as_of ||
	    !o->ranked[class].rank) {
		o->ranked[class].use = at.key;
		o->ranked[class].as_of = as_of;
		o->ranked[class].rank = UINT64_MAX - (age_of(o, at.key) + 1) * o->cost[class];
	}
	return o->ranked[class].rank;
}

static void evicted(void *state, const struct skv_policy_block *b, struct skv_policy_place at)
{
	struct reuse *o = state;

	add_ghost(o, b->hash, at.queue, o->worth ? age_of(o, at.key) : 0);
}

static bool admit(void *state, const struct skv_policy_block *b, bool last,
		  struct skv_policy_place at)
{
	const struct reuse *o = state;
	uint64_t age = age_of(o, at.key);
	struct ghost g;
	bool back = ghosts_find(&o->ghosts, b->hash, &g);
	uint32_t class = class_of(last, back ? 1 : 0);

	/* What was used since the last birth belongs to requests at hand. */
	return o->gone < size(o) ||
	       (age > 0 && worth_of(o->worth, class, 0) * FAVOUR >=
				   worth_of(o->worth, at.queue < CLASSES ? at.queue : 0, age));
}

static void refused(void *state, const struct skv_policy_block *b, bool last)
{
	struct reuse *o = state;
	uint32_t class = class_of(last, take_ghost(o, b->hash) ? 1 : 0);

	count_birth(o);
	take_sample(o, b->use, 0);
	add_ghost(o, b->hash, class, 0);
}

const struct skv_policy_ops skv_policy_reuse = {
	.name = "reuse", .n_queues = CLASSES, .leaf_first = true, .by_use = true, .create = create,
	.destroy = destroy,
	.prefetch = prefetch, .born = born, .tag_born = tag_born, .adopt = adopt, .place = place,
	.look = look,
	.rank = rank, .evicted = evicted,
};

const struct skv_policy_ops skv_policy_selective = {
	.name = "selective", .n_queues = CLASSES, .leaf_first = true, .by_use = true,
	.create = create_selective,
	.destroy = destroy,
	.prefetch = prefetch, .born = born, .tag_born = tag_born, .adopt = adopt, .place = place,
	.look = look,
	.rank = rank, .evicted = evicted, .admit = admit, .refused = refused,
};
