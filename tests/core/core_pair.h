/*
 * core_pair.h - an owner and its standby on one store, ticked in turn, with clocks that go alike.
 */
#ifndef SKV_TESTS_CORE_PAIR_H
#define SKV_TESTS_CORE_PAIR_H

#include "core_env.h"

struct pair {
	struct env a, b; /* owner, standby */
};

/* With what env_make makes; the standby has loaded it. */
void pair_begin(struct pair *p, uint64_t capacity, uint64_t unit, uint64_t block);
void pair_end(struct pair *p);
/* Of group "g". */
void pair_policy(struct pair *p, const char *policy);
/* Time goes by for both. (The owner's clock is that of its calls.) */
void pair_pass(struct pair *p, uint64_t ms);
/* The owner is killed; the standby waits its lease out and goes on. */
void pair_take_over(struct pair *p);
struct skv_core_counters pair_counters(struct env *e);

#endif
