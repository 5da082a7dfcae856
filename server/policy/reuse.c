/*
 * reuse.c - policies `reuse`, `deferred` and `selective`: least recently used, leaves first, with
 * ages weighted by how likely a block is to be used again. The last two also judge new blocks.
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
 * docs/decisions/0016-eviction-policies-behind-an-interface.md.
 *
 * An age is the number of blocks born since the last use, not a time: the result depends only on
 * the order of operations. Uses carry stamps; a list of samples (stamp, births so far), sparser
 * where it is older, maps stamps to births.
 *
 * `deferred` and `selective` evict in the same order, and learn what a new block is worth
 * (worth.h). Where a working set is far larger than the store, a part of it stays and is hit,
 * instead of all of it passing through. `selective` refuses a block that is worth less than the
 * block that would be evicted for it. A refused block becomes a ghost like any other, and counts as
 * a birth for ages.
 *
 * `deferred` stores such a block, in a queue that is evicted before all others until the block is
 * used. Three parts of it need care (docs/decisions/0085-deferred-stores-every-block.md):
 *
 * - The price. A new block is compared with the block that would go next if nothing were deferred,
 *   and not with its victim, which is mostly deferred. Now and then a search begins with the other
 *   queues for this (is_pricing): look() notes the first block that might go, and lets none go.
 * - The debt. An admitted block whose victim was deferred owes an eviction from the other queues.
 *   Later searches pay it, while the deferred blocks are at most a share of the store (pays).
 * - The trial. All starts are judged only while ghosts of deferred blocks come back less often than
 *   those of others (update_trial). Else one start in TRIAL is, so that there are such ghosts.
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
#define DEFERRED CLASSES /* the queue of deferred blocks; of ghosts, this + origin is their class */
#define NOTED_MAX 5u /* uses that count towards the reuse rate */

#define PRIOR 20.0 /* each class starts as if this many of its blocks had the overall reuse rate */
#define FADE 0.95  /* of the counts, at each update */
#define WEIGHT_MAX 32.0
#define UPDATE_SHARE 4u /* births between updates: blocks / this, */
#define UPDATE_MIN 256u /* and no fewer */

/* `selective` admits a new block that is worth 1 / this of its victim: what is learned about it is
 * uncertain, and it was asked for just now. */
#define FAVOUR 1.5

#define PRICE_SHARE 4096u /* births between looks at the price: blocks / this, or each */
#define QUEUE_SHARE 10u   /* debts are paid while at most blocks / this are deferred */
#define PRICE_PART 0.9    /* debts of so large a part of the blocks make the price's age 0 */
#define TRIAL 16u         /* 1 of this many starts is judged at any time; all are judged while */
#define TRIAL_MIN 200.0   /* this many ghosts of deferred blocks are known, and come back */
#define WORSE 0.7         /* less often than this part of the others, in equal time; */
#define THRASHING 0.45    /* or the others come back more often than this in a life of a ghost, */
#define THRASHING_WORSE 9.0 /* and the deferred less often than so many times that */

#define SAMPLES 4096u
#define FINENESS 64u /* a sample gives an age to 1/64 */
#define COST_ONE 65536u

struct sample {
	uint64_t use;
	uint64_t births; /* up to this use */
	uint64_t born;   /* the newest block's, up to this use */
};

/* The decisions about a new block that is worth less than the block that would be evicted for
 * it. */
enum admission { ADMIT, DEFER, REFUSE };

/* Ghosts of one kind: how many came back and did not, and for how long all were ghosts; 1 is a time
 * of as many births as there are blocks. */
struct returns {
	double again, never, time;
};

struct reuse {
	const struct skv_policy_counts *n;
	enum admission admission;
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
	struct worth *worth; /* NULL: all are admitted */
	/* The last age asked for in each queue: a search compares the same tops again and again,
	 * and blocks of a start have one use. */
	struct {
		uint64_t use, as_of, age; /* as_of 0: none yet */
	} aged[CLASSES + 1];
	/* Of `deferred`. A start: the births with one `use`. */
	struct {
		uint64_t use, price; /* age of the block at the price, when it began */
		bool judged, deferred;
	} start;
	struct {
		bool known;
		uint32_t class;
		uint64_t use;
		uint64_t next; /* births at which it is looked for again */
	} price;
	struct returns returns[2]; /* of ghosts that were not deferred, and that were */
	bool judges_all;
	uint64_t starts;
	uint64_t owed;
	uint64_t n_deferred; /* about: removals are not reported (evicted) */
	/* Ghosts made. While there were fewer than may be at a time, only what came back is known,
	 * not what never does. */
	uint64_t gone;
};

_Static_assert(DEFERRED + ORIGINS <= GHOSTS_CLASSES, "a class fits");
_Static_assert(CLASSES == WORTH_CLASSES, "the same classes");
_Static_assert(DEFERRED < SKV_POLICY_QUEUES, "a queue for each class, and for deferred blocks");

/* ---- classes --------------------------------------------------------------------------------- */

/* A tag: origin (1 bit), deferred (1 bit), uses noted (3 bits). */
#define TAG_DEFERRED 2u
static uint32_t origin_of(uint32_t tag) { return tag & 1; }
static uint32_t noted_of(uint32_t tag) { return tag >> 2; }
static uint32_t tag_of(uint32_t origin, uint32_t noted) { return noted << 2 | origin; }
static uint32_t most(uint32_t n, uint32_t limit) { return n < limit ? n : limit; }

static uint32_t class_of(uint32_t origin, uint32_t uses)
{
	return origin * USES + most(uses, USES - 1);
}

/* Blocks of the group: a recent maximum, for in the middle of an eviction there are fewer. */
static uint64_t size(const struct reuse *o)
{
	uint64_t n = o->blocks > o->blocks_before ? o->blocks : o->blocks_before;

	return n > o->n->blocks ? n : o->n->blocks;
}

/* ---- reuse rates --------------------------------------------------------------------------- */

static double rate_of(const struct returns *r) { return (r->again + 1) / (r->time + 1); }

static void update_trial(struct reuse *o)
{
	const struct returns *deferred = &o->returns[1];
	const double other = rate_of(&o->returns[0]), rate = rate_of(deferred);

	o->judges_all = deferred->again + deferred->never >= TRIAL_MIN &&
			(rate < other * WORSE ||
			 (other > THRASHING && rate < other * THRASHING_WORSE));
	for (int i = 0; i < 2; i++) {
		o->returns[i].again *= FADE;
		o->returns[i].never *= FADE;
		o->returns[i].time *= FADE;
	}
}

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

/* ---- the policy ------------------------------------------------------------------------------ */

static void *create(const struct skv_policy_counts *n, enum admission admission)
{
	struct reuse *o = skv_calloc(1, sizeof *o);

	if (!o)
		return NULL;
	o->n = n;
	o->admission = admission;
	for (uint32_t c = 0; c < CLASSES; c++)
		o->cost[c] = COST_ONE;
	o->update_at = UPDATE_MIN;
	if (admission == ADMIT)
		return o;
	o->worth = skv_calloc(1, sizeof *o->worth);
	if (!o->worth) {
		skv_free(o);
		return NULL;
	}
	worth_update(o->worth);
	return o;
}

static void *create_reuse(const struct skv_policy_counts *n) { return create(n, ADMIT); }
static void *create_deferred(const struct skv_policy_counts *n) { return create(n, DEFER); }
static void *create_selective(const struct skv_policy_counts *n) { return create(n, REFUSE); }

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

/* Counts what became of `n` ghosts, and makes the class that of a block of what was deferred. */
static void note_return(struct reuse *o, struct ghost *g, double again, double never)
{
	const bool deferred = g->class >= DEFERRED;
	struct returns *r = &o->returns[deferred];

	r->again += again;
	r->never += never;
	r->time += (again + never) * (double)g->stay / (double)(size(o) + 1);
	if (deferred)
		g->class = class_of(g->class - DEFERRED, 0);
	assert(g->class < CLASSES);
}

/* A new block: was it there not long ago? */
static bool take_ghost(struct reuse *o, uint64_t hash)
{
	struct ghost g;

	if (!ghosts_take(&o->ghosts, hash, &g))
		return false;
	note_return(o, &g, 1, 0);
	o->again[g.class]++;
	if (o->worth)
		worth_again(o->worth, g.class, g.age);
	return true;
}

static void never_came_back(void *state, struct ghost g, uint32_t n)
{
	struct reuse *o = state;

	note_return(o, &g, 0, n);
	o->never[g.class] += n;
	if (o->worth)
		worth_never(o->worth, g.class, g.age, n);
}

/* `age`: births since its last use. */
static void add_ghost(struct reuse *o, uint64_t hash, uint32_t class, uint64_t age)
{
	const struct ghost g = { .class = class, .age = age };

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
	update_trial(o);
	if (o->worth)
		worth_update(o->worth);
}

static uint32_t tag_born(bool last) { return tag_of(last, 0); }

/* Returns true if a new block is worth its place, when one of that class and age is evicted for it.
 * While there were fewer ghosts than the limit, all are. Blocks used since the last birth belong to
 * current requests. */
static bool earns_place(const struct reuse *o, uint32_t class, uint32_t victim, uint64_t age)
{
	const double favour = o->admission == REFUSE ? FAVOUR : 1;

	return o->gone < size(o) ||
	       (age > 0 &&
		worth_of(o->worth, class, 0) * favour >= worth_of(o->worth, victim, age));
}

static void begin_start(struct reuse *o, uint64_t use)
{
	o->start.use = use;
	o->start.price = age_of(o, o->price.use);
	o->start.judged = ++o->starts % TRIAL == 0 || o->judges_all;
	o->start.deferred = false;
}

/* Blocks of a start are born head first: each that is admitted makes the price of the next one
 * younger, and below a deferred one all are deferred. */
static bool is_to_be_deferred(struct reuse *o, const struct skv_policy_block *b, uint32_t class)
{
	double left;

	if (o->admission != DEFER || !o->price.known)
		return false;
	if (o->start.use != b->use)
		begin_start(o, b->use);
	if (!o->start.judged || o->start.deferred)
		return o->start.deferred;
	left = 1 - (double)o->owed / ((double)size(o) * PRICE_PART + 1);
	o->start.deferred = !earns_place(o, class, o->price.class,
					 left > 0 ? (uint64_t)((double)o->start.price * left) : 0);
	return o->start.deferred;
}

static bool has_room(const struct reuse *o) { return o->n_deferred <= size(o) / QUEUE_SHARE; }

/* Returns true if the next victim pays for an admitted block. */
static bool pays(const struct reuse *o) { return o->owed > 0 && has_room(o); }

/* Returns true if the next search begins with the queues that are not deferred. */
static bool is_pricing(const struct reuse *o)
{
	return o->n_deferred > 0 && (pays(o) || o->births >= o->price.next);
}

static void born(void *state, struct skv_policy_block *b, bool last)
{
	struct reuse *o = state;

	b->freq = take_ghost(o, b->hash) ? 1 : 0;
	b->tag = tag_of(last, b->freq);
	if (is_to_be_deferred(o, b, class_of(last, b->freq))) {
		b->tag |= TAG_DEFERRED;
		o->n_deferred++;
	} else if (o->admission == DEFER && o->gone >= size(o) && has_room(o)) {
		o->owed++;
	}
	count_birth(o);
	take_sample(o, b->use, b->born);
}

/* Deferred, and not used since? */
static bool is_deferred(const struct reuse *o, const struct skv_policy_block *b)
{
	return o->admission == DEFER && b->tag & TAG_DEFERRED && b->freq <= noted_of(b->tag);
}

static void adopt(void *state, struct skv_policy_block *b, bool own)
{
	struct reuse *o = state;

	if (!own)
		b->tag = tag_of(0, most(b->freq, NOTED_MAX));
	if (o->n_samples && b->born >= o->sample[0].born)
		return; /* a birth that was counted: the state has followed another one */
	o->old_births++;
	o->n_deferred += is_deferred(o, b);
	if (o->n_samples && b->use >= o->sample[0].use)
		return;
	o->old_least = o->old_most == 0 || b->use < o->old_least ? b->use : o->old_least;
	o->old_most = b->use > o->old_most ? b->use : o->old_most;
}

static uint32_t queue_of(const struct reuse *o, const struct skv_policy_block *b)
{
	return is_deferred(o, b) ? DEFERRED : class_of(origin_of(b->tag), b->freq);
}

static struct skv_policy_place place(void *state, struct skv_policy_block *b)
{
	return (struct skv_policy_place){ queue_of(state, b), b->use };
}

static bool look(void *state, struct skv_policy_block *b, struct skv_policy_place at)
{
	struct reuse *o = state;
	const bool prices = at.queue != DEFERRED && is_pricing(o);

	if (b->tag & TAG_DEFERRED && b->freq > noted_of(b->tag))
		o->n_deferred -= o->n_deferred > 0; /* used since */
	note_uses(o, b);
	if (at.key != b->use || at.queue != queue_of(o, b))
		return false;
	if (at.queue == DEFERRED || o->admission != DEFER)
		return true;
	o->price.known = true;
	o->price.class = at.queue;
	o->price.use = at.key;
	o->price.next = o->births + 1 + size(o) / PRICE_SHARE;
	return !prices || pays(o);
}

/* The age of a block at the top of a queue. Ages change with births and adoptions only. */
static uint64_t age_at(struct reuse *o, struct skv_policy_place at)
{
	uint32_t queue = at.queue <= DEFERRED ? at.queue : 0;
	uint64_t as_of = 1 + o->births + o->old_births;

	if (o->aged[queue].use != at.key || o->aged[queue].as_of != as_of) {
		o->aged[queue].use = at.key;
		o->aged[queue].as_of = as_of;
		o->aged[queue].age = age_of(o, at.key);
	}
	return o->aged[queue].age;
}

static uint64_t rank(void *state, struct skv_policy_place at)
{
	struct reuse *o = state;

	if (at.queue == DEFERRED && o->admission == DEFER)
		return is_pricing(o) ? UINT64_MAX : at.key;
	return UINT64_MAX - (age_at(o, at) + 1) * o->cost[at.queue < CLASSES ? at.queue : 0];
}

/* A deferred block stands for the block at the price, which would go without it: else a group with
 * deferred blocks, which are young, would take the room of all others. */
static uint64_t last_use(void *state, struct skv_policy_place at)
{
	const struct reuse *o = state;

	return at.queue == DEFERRED && o->price.known && o->price.use < at.key ? o->price.use
									       : at.key;
}

/* A block of another queue that goes although a deferred one was to go shows that there is none:
 * those counted were removed by others, or are leased, or inner ones that were used. */
static void evicted(void *state, const struct skv_policy_block *b, struct skv_policy_place at)
{
	struct reuse *o = state;
	const uint32_t origin = origin_of(b->tag);

	if (at.queue == DEFERRED || !is_pricing(o))
		o->n_deferred -= o->n_deferred > 0;
	if (at.queue != DEFERRED)
		o->owed -= o->owed > 0;
	add_ghost(o, b->hash,
		  at.queue == DEFERRED ? DEFERRED + origin
		  : at.queue < CLASSES ? at.queue
				       : class_of(origin, b->freq),
		  o->worth ? age_at(o, at) : 0);
}

static bool admit(void *state, const struct skv_policy_block *b, bool last,
		  struct skv_policy_place at)
{
	struct reuse *o = state;
	struct ghost g;
	uint32_t class = class_of(last, ghosts_find(&o->ghosts, b->hash, &g) ? 1 : 0);

	return earns_place(o, class, at.queue < CLASSES ? at.queue : 0, age_at(o, at));
}

static void refused(void *state, const struct skv_policy_block *b, bool last)
{
	struct reuse *o = state;
	uint32_t class = class_of(last, take_ghost(o, b->hash) ? 1 : 0);

	count_birth(o);
	take_sample(o, b->use, 0);
	add_ghost(o, b->hash, class, 0);
}

#define COMMON                                                                                     \
	.leaf_first = true, .by_use = true, .destroy = destroy, .prefetch = prefetch,              \
	.born = born, .tag_born = tag_born, .adopt = adopt, .place = place, .look = look,          \
	.rank = rank, .evicted = evicted

const struct skv_policy_ops skv_policy_reuse = {
	.name = "reuse", .n_queues = CLASSES, .create = create_reuse, COMMON,
};

const struct skv_policy_ops skv_policy_deferred = {
	.name = "deferred", .n_queues = DEFERRED + 1, .create = create_deferred, COMMON,
	.last_use = last_use,
};

const struct skv_policy_ops skv_policy_selective = {
	.name = "selective", .n_queues = CLASSES, .create = create_selective, COMMON,
	.admit = admit, .refused = refused,
};
