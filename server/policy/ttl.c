/*
 * ttl.c - first in, first out, by birth, with a maximum age: the holder of the queues knows the age
 * and removes older blocks, which come first.
 */
#include "policies.h"

static struct skv_policy_place place(void *state, struct skv_policy_block *b)
{
	(void)state;
	return (struct skv_policy_place){ 0, b->born };
}

static bool look(void *state, struct skv_policy_block *b, struct skv_policy_place at)
{
	(void)state;
	return at.queue == 0 && at.key == b->born;
}

static uint64_t rank(void *state, struct skv_policy_place at)
{
	(void)state;
	return at.key;
}

const struct skv_policy_ops skv_policy_ttl = {
	.name = "ttl", .n_queues = 1, .by_birth = true, .place = place, .look = look, .rank = rank,
};
