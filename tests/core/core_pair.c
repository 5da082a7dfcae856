/* core_pair.c - an owner and its standby (core_pair.h). */
#include "core_pair.h"

void pair_begin(struct pair *p, uint64_t capacity, uint64_t unit, uint64_t block)
{
	env_init(&p->a);
	p->a.o.owner_lease_ms = 2000;
	env_open(&p->a);
	env_make(&p->a, capacity, unit, block);
	env_init(&p->b);
	p->b.store_options = p->a.store_options;
	skv_fake_clock_advance(&p->b.clock,
			       skv_now_ms(&p->a.clock.clock) - skv_now_ms(&p->b.clock.clock));
	assert_int_equal(skv_store_open(p->b.ops, &p->b.store_options, &p->b.store, &p->b.err),
			 SKV_OK);
	p->b.o.store = p->b.store;
	p->b.o.owner_lease_ms = p->a.o.owner_lease_ms;
	env_create(&p->b);
	skv_cluster_tick(p->b.cluster);
	skv_cluster_tick(p->b.cluster);
}

void pair_end(struct pair *p)
{
	env_destroy(&p->b);
	env_destroy(&p->a);
}

void pair_policy(struct pair *p, const char *policy)
{
	static const char *const storages[] = { "s" };
	const struct skv_group_spec g = { .name = "g", .storages = storages, .n_storages = 1,
					  .policy = policy };

	assert_int_equal(
		skv_cluster_group_put(p->a.cluster, &g, SKV_PUT_ANY, NULL, NULL, &p->a.err),
		SKV_OK);
}

void pair_pass(struct pair *p, uint64_t ms)
{
	env_advance(&p->a, ms);
	skv_fake_clock_advance(&p->b.clock, ms);
	skv_cluster_tick(p->b.cluster);
}

void pair_take_over(struct pair *p)
{
	env_crash(&p->a);
	skv_fake_clock_advance(&p->b.clock, 5000);
	assert_int_equal(skv_cluster_wait_ready(p->b.cluster, 10000), SKV_OK);
	skv_cluster_tick(p->b.cluster);
}

struct skv_core_counters pair_counters(struct env *e)
{
	struct skv_core_counters c;

	skv_cluster_counters_get(e->cluster, &c);
	return c;
}
