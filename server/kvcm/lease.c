/*
 * lease.c - properties of an instance that each call needs: how long a lookup's answer must stay
 * true, and whether the instance's blocks are windows.
 *
 * KVCM's clients verify nothing. So blocks that a query named stay as long as a client may read
 * them: kvcm_transfer_ms, longer than the longest read timeout of these clients (15 s). KVCM keeps
 * deleted blocks for a group's delay_before_delete_ms; if that is longer, it counts.
 *
 * An instance that is asked for sliding windows by default holds nothing else: the last blocks of a
 * prompt are stored and read, and earlier ones are useless to its clients.
 *
 * Reading these documents costs more than the lookup, so a table remembers the answer by a hash of
 * tenant and instance: a word for each entry, replaced by any other instance with the same slot,
 * valid for a second or two. Any thread, no lock.
 */
#include "meta.h"

#include <assert.h>
#include <string.h>

#include <skv/clock.h>

/* Packed into one word: the lease, half an hour at most; a bit for windows; the second it was read;
 * the hash. */
#define LEASE_LIMIT ((1u << 21) - 1) /* ms */
#define WINDOWS (1u << 21)
#define FACT_BITS 22
#define SECOND_BITS 16

_Static_assert(LEASE_LIMIT >= SKV_MAX_LEASE_MS, "every lease fits");

static uint64_t word_of(uint64_t hash, uint64_t second, uint32_t facts)
{
	assert(facts <= (LEASE_LIMIT | WINDOWS));
	return hash >> (FACT_BITS + SECOND_BITS) << (FACT_BITS + SECOND_BITS) |
	       (second & ((1u << SECOND_BITS) - 1)) << FACT_BITS | facts;
}

static bool is_fresh(uint64_t word, uint64_t hash, uint64_t second)
{
	uint64_t age = second - (word >> FACT_BITS);

	return (word ^ hash) >> (FACT_BITS + SECOND_BITS) == 0 &&
	       (age & ((1u << SECOND_BITS) - 1)) <= 1;
}

static uint32_t ask(struct kvcm_request *k, const char *instance)
{
	const struct skv_instance_spec *spec;
	struct skv_group_view *v;
	struct skv_error ignored;
	const KvcmMeta__InstanceInfo *info;
	KvcmAdmin__InstanceGroup *m;
	uint32_t lease, windows, least = kvcm_of(k)->transfer_ms;

	if (kvcm_take_instance(k, instance, &spec) != SKV_OK ||
	    skv_cluster_group(kvcm_cluster(k), spec->group, &k->c->arena, &v, &ignored) !=
		    SKV_OK)
		return least;
	m = kvcm_group_message(&v[0].spec, &k->c->arena);
	lease = m ? kvcm_group_lease_ms(m) : 0;
	info = kvcm_instance_message(spec, &k->c->arena);
	windows =
		info && info->default_query_type == KVCM_META__QUERY_TYPE__QT_REVERSE_ROLL_SW_MATCH
			? WINDOWS
			: 0;
	return windows | (lease < least ? least : lease > LEASE_LIMIT ? LEASE_LIMIT : lease);
}

static uint32_t facts(struct kvcm_request *k, const char *instance)
{
	const size_t n_tenant = strlen(k->c->caller.tenant);
	const size_t n = n_tenant + 1 + strnlen(instance, SKV_MAX_NAME);
	char name[2 * SKV_MAX_NAME + 2];
	uint64_t hash, second, word;
	atomic_uint_fast64_t *at;

	assert(n < sizeof name);
	memcpy(name, k->c->caller.tenant, n_tenant);
	name[n_tenant] = '/';
	memcpy(name + n_tenant + 1, instance, n - n_tenant - 1);
	hash = skv_checksum(name, n);
	second = skv_now_ms(&skv_clock_system) / 1000;
	at = &kvcm_of(k)->leases[hash % KVCM_LEASES];
	word = atomic_load_explicit(at, memory_order_relaxed);

	if (!is_fresh(word, hash, second)) {
		word = word_of(hash, second, ask(k, instance));
		atomic_store_explicit(at, word, memory_order_relaxed);
	}
	return word & (LEASE_LIMIT | WINDOWS);
}

uint32_t kvcm_lease_ms(struct kvcm_request *k, const char *instance)
{
	return facts(k, instance) & LEASE_LIMIT;
}

bool kvcm_has_windows(struct kvcm_request *k, const char *instance)
{
	return facts(k, instance) & WINDOWS;
}
