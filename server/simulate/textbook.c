/*
 * textbook.c - policies as published, for comparison with the product's. Stateless but for `sieve`.
 *
 * `lru-plain` is the least recently used, `fifo` the oldest, `lfu` what has fewest uses since birth
 * (SKV_POLICY_FREQ are counted), among those with as many the least recently used.
 *
 * `sieve` is SIEVE (Zhang et al., NSDI 2024): a hand goes from the oldest block to the newest, by
 * birth; a block used since the hand's last visit loses that mark and stays, the first other one is
 * evicted. Two queues, both by birth: blocks before the hand in this round, and blocks that it has
 * passed. When the first is empty they change roles. Newcomers are before the hand, as on the
 * published list.
 */
#include "textbook.h"

#include <string.h>

#include <skv/mem.h>

static struct skv_policy_place place_by_use(void *state, struct skv_policy_block *b)
{
	(void)state;
	return (struct skv_policy_place){ 0, b->use };
}

static bool look_at_use(void *state, struct skv_policy_block *b, struct skv_policy_place at)
{
	(void)state;
	return at.queue == 0 && at.key == b->use;
}

static struct skv_policy_place place_by_birth(void *state, struct skv_policy_block *b)
{
	(void)state;
	return (struct skv_policy_place){ 0, b->born };
}

static bool look_at_birth(void *state, struct skv_policy_block *b, struct skv_policy_place at)
{
	(void)state;
	return at.queue == 0 && at.key == b->born;
}

static struct skv_policy_place place_by_uses(void *state, struct skv_policy_block *b)
{
	(void)state;
	return (struct skv_policy_place){ b->freq, b->use };
}

static bool look_at_uses(void *state, struct skv_policy_block *b, struct skv_policy_place at)
{
	(void)state;
	return at.queue == b->freq && at.key == b->use;
}

/* Lower queues first, each in the order of its keys. */
static uint64_t rank_queues(void *state, struct skv_policy_place at)
{
	(void)state;
	return (uint64_t)at.queue << 48 | at.key;
}

/* ---- sieve ----------------------------------------------------------------------------------- */

struct sieve {
	const struct skv_policy_counts *n;
	uint32_t round; /* queue of this round */
	uint64_t hand;  /* birth of the last block that it was at */
};

static void *create_sieve(const struct skv_policy_counts *n)
{
	struct sieve *s = skv_calloc(1, sizeof *s);

	if (s)
		s->n = n;
	return s;
}

static struct skv_policy_place place_sieve(void *state, struct skv_policy_block *b)
{
	const struct sieve *s = state;

	return (struct skv_policy_place){ b->born > s->hand ? s->round : !s->round, b->born };
}

static bool look_sieve(void *state, struct skv_policy_block *b, struct skv_policy_place at)
{
	struct sieve *s = state;

	if (at.key != b->born || at.queue > 1)
		return false;
	s->round = at.queue; /* the other queue is empty: this one ranks first */
	s->hand = b->born;
	if (b->freq == 0)
		return true;
	b->freq = 0;
	return false;
}

static uint64_t rank_sieve(void *state, struct skv_policy_place at)
{
	const struct sieve *s = state;

	return (at.queue == s->round ? 0 : SKV_POLICY_INNER) | at.key;
}

/* Moves the hand from the newest back to the oldest, before new blocks come. */
static void evicted_sieve(void *state, const struct skv_policy_block *b, struct skv_policy_place at)
{
	struct sieve *s = state;

	(void)b;
	(void)at;
	if (s->n->queued[s->round])
		return;
	s->round = !s->round;
	s->hand = 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

_Static_assert(SKV_POLICY_FREQ < SKV_POLICY_QUEUES, "a queue for each number of uses");

static const struct skv_policy_ops textbook[] = {
	{ .name = "lru-plain", .n_queues = 1, .by_use = true, .place = place_by_use,
	  .look = look_at_use, .rank = rank_queues },
	{ .name = "lfu", .n_queues = SKV_POLICY_FREQ + 1, .by_use = true, .place = place_by_uses,
	  .look = look_at_uses, .rank = rank_queues },
	{ .name = "fifo", .n_queues = 1, .by_birth = true, .place = place_by_birth,
	  .look = look_at_birth, .rank = rank_queues },
	{ .name = "sieve", .n_queues = 2, .create = create_sieve, .destroy = skv_free,
	  .place = place_sieve, .look = look_sieve, .rank = rank_sieve, .evicted = evicted_sieve },
};
_Static_assert(sizeof textbook / sizeof textbook[0] == TEXTBOOK_POLICIES, "as declared");

const struct skv_policy_ops *textbook_policy(uint32_t i)
{
	return i < TEXTBOOK_POLICIES ? &textbook[i] : NULL;
}

const struct skv_policy_ops *simulated_policy(const char *name)
{
	for (uint32_t i = 0; i < TEXTBOOK_POLICIES; i++)
		if (strcmp(textbook[i].name, name) == 0)
			return &textbook[i];
	return skv_policy_find(name);
}
