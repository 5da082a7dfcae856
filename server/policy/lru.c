/*
 * lru.c - least recently used, leaves first: a chain loses its tail before its head, for a block is
 * of no use without those before it.
 */
#include "policies.h"

static struct skv_policy_place place(void *state, struct skv_policy_block *b)
{
	(void)state;
	return (struct skv_policy_place){ 0, b->use };
}

static bool look(void *state, struct skv_policy_block *b, struct skv_policy_place at)
{
	(void)state;
	return at.queue == 0 && at.key == b->use;
}

static uint64_t rank(void *state, struct skv_policy_place at)
{
	(void)state;
	return at.key;
}

const struct skv_policy_ops skv_policy_lru = {
	.name = "lru", .n_queues = 1, .leaf_first = true, .by_use = true, .place = place,
	.look = look, .rank = rank,
};
