/*
 * lfu.c - least frequently used: fewest uses since birth first (KVB_POLICY_FREQ are counted), among those with as many
 * the least recently used.
 */
#include "policies.h"

static struct kvb_policy_place place(void *state, struct kvb_policy_block *b)
{
	(void)state;
	return (struct kvb_policy_place){ b->freq, b->use };
}

static bool look(void *state, struct kvb_policy_block *b, struct kvb_policy_place at)
{
	(void)state;
	return at.queue == b->freq && at.key == b->use;
}

static uint64_t rank(void *state, struct kvb_policy_place at)
{
	(void)state;
	return (uint64_t)at.queue << 48 | at.key;
}

_Static_assert(KVB_POLICY_FREQ < KVB_POLICY_QUEUES, "a queue for each number of uses");

const struct kvb_policy_ops kvb_policy_lfu = {
	.name = "lfu", .n_queues = KVB_POLICY_FREQ + 1, .by_use = true, .place = place, .look = look, .rank = rank,
};
