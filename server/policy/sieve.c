/*
 * sieve.c - SIEVE (Zhang et al., NSDI 2024): a hand goes from the oldest block to the
 * newest, by birth; a block that was used since the hand was there loses that mark and
 * stays, the first other one goes.
 *
 * Two queues, both by birth: what the hand has before it in this round, and what it
 * has passed. When the first is empty they change roles. Newcomers are before the
 * hand, as on the published list.
 */
#include "policies.h"

#include <skv/mem.h>

struct sieve {
	const struct skv_policy_counts *n;
	uint32_t round; /* queue of this round */
	uint64_t hand;  /* birth of the last block that it was at */
};

static void *create(const struct skv_policy_counts *n)
{
	struct sieve *s = skv_calloc(1, sizeof *s);

	if (s)
		s->n = n;
	return s;
}

static struct skv_policy_place place(void *state, struct skv_policy_block *b)
{
	const struct sieve *s = state;

	return (struct skv_policy_place){ b->born > s->hand ? s->round : !s->round, b->born };
}

static bool look(void *state, struct skv_policy_block *b, struct skv_policy_place at)
{
	struct sieve *s = state;

	if (at.key != b->born || at.queue > 1)
		return false;
	s->round = at.queue; /* the other queue is empty: it ranks first */
	s->hand = b->born;
	if (b->freq == 0)
		return true;
	b->freq = 0;
	return false;
}

static uint64_t rank(void *state, struct skv_policy_place at)
{
	const struct sieve *s = state;

	return (at.queue == s->round ? 0 : SKV_POLICY_INNER) | at.key;
}

/* From the newest it goes back to the oldest, before others come. */
static void evicted(void *state, const struct skv_policy_block *b, struct skv_policy_place at)
{
	struct sieve *s = state;

	(void)b;
	(void)at;
	if (s->n->queued[s->round])
		return;
	s->round = !s->round;
	s->hand = 0;
}

const struct skv_policy_ops skv_policy_sieve = {
	.name = "sieve", .n_queues = 2, .create = create, .destroy = skv_free, .place = place,
	.look = look, .rank = rank,
	.evicted = evicted,
};
