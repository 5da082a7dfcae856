/*
 * lease.c - how long a lookup's answer must stay true.
 *
 * Its clients verify nothing, so what a query named stays as long as one of them may read it: a connector of vLLM loads
 * up to a second after its query, SGLang's gets take up to 5 s. The peer keeps what it deletes for a group's
 * delay_before_delete_ms; where that is longer, it counts. Reading a group's document costs more than the lookup, so a
 * table remembers the answer by a hash of tenant and instance:
 * one word for each entry, replaced by whoever comes, true for a second or two. Any thread, no lock.
 */
#include "meta.h"

#include <stdio.h>

#include <skv/clock.h>

#define LEASE_BITS 22 /* of a word: milliseconds, an hour at most; then the second it was read; then the hash */
#define SECOND_BITS 16
#define LEASE_LIMIT ((1u << LEASE_BITS) - 1)

static uint64_t word_of(uint64_t hash, uint64_t second, uint32_t lease_ms)
{
	return hash >> (LEASE_BITS + SECOND_BITS) << (LEASE_BITS + SECOND_BITS) |
	       (second & ((1u << SECOND_BITS) - 1)) << LEASE_BITS | lease_ms;
}

static bool is_fresh(uint64_t word, uint64_t hash, uint64_t second)
{
	uint64_t age = second - (word >> LEASE_BITS);

	return (word ^ hash) >> (LEASE_BITS + SECOND_BITS) == 0 && (age & ((1u << SECOND_BITS) - 1)) <= 1;
}

static uint32_t ask(struct kvcm_call *k, const char *instance)
{
	const struct skv_instance_spec *spec;
	struct skv_group_view *v;
	struct skv_error ignored;
	KvcmAdmin__InstanceGroup *m;
	uint32_t n, lease, least = kvcm_of(k)->transfer_ms;

	if (kvcm_take_instance(k, instance, &spec) != SKV_OK ||
	    skv_core_groups(kvcm_core(k), spec->group, &k->c->arena, &v, &n, &ignored) != SKV_OK)
		return least;
	m = kvcm_group_message(&v[0].spec, &k->c->arena);
	lease = m ? kvcm_group_lease_ms(m) : 0;
	return lease < least ? least : lease > LEASE_LIMIT ? LEASE_LIMIT : lease;
}

uint32_t kvcm_lease_ms(struct kvcm_call *k, const char *instance)
{
	char name[2 * SKV_MAX_NAME + 2];
	int n = snprintf(name, sizeof name, "%s/%.*s", k->c->caller.tenant, (int)SKV_MAX_NAME, instance);
	uint64_t hash = skv_checksum(name, (size_t)n);
	uint64_t second = skv_now_ms(&skv_clock_system) / 1000;
	atomic_uint_fast64_t *at = &kvcm_of(k)->leases[hash % KVCM_LEASES];
	uint64_t word = atomic_load_explicit(at, memory_order_relaxed);

	if (!is_fresh(word, hash, second)) {
		word = word_of(hash, second, ask(k, instance));
		atomic_store_explicit(at, word, memory_order_relaxed);
	}
	return word & LEASE_LIMIT;
}
