/*
 * lfu.c - least frequently used: fewest uses since birth first (SKV_POLICY_FREQ are counted), among
 * those with as many the least recently used.
 */
#include "policies.h"

static struct skv_policy_place place(void *state, struct skv_policy_block *b)
{
	(void)state;
	return (struct skv_policy_place){ b->freq, b->use };
}

static bool look(void *state, struct skv_policy_block *b, struct skv_policy_place at)
{
	(void)state;
	return at.queue == b->freq && at.key == b->use;
}

static uint64_t rank(void *state, struct skv_policy_place at)
{
	(void)state;
	return (uint64_t)at.queue << 48 | at.key;
}

_Static_assert(SKV_POLICY_FREQ < SKV_POLICY_QUEUES, "a queue for each number of uses");

const struct skv_policy_ops skv_policy_lfu = {
	.name = "lfu", .n_queues = SKV_POLICY_FREQ + 1, .by_use = true, .place = place,
	.look = look, .rank = rank,
};
