/*
 * empty.c - ids of sessions with nothing to write.
 *
 * The peer gives one even then, clients finish it, and it lives for ten seconds. Nothing needs to
 * be remembered for that: the first half of an id is the second it was made and a number, the other
 * half a hash of it, tenant and instance under the store's secret. A restart and another owner know
 * it as well. No state but a counter.
 */
#include "meta.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>

#define EMPTY_S 10u

static uint64_t proof(struct kvcm_request *k, const char *instance, uint64_t first)
{
	char text[2 * SKV_MAX_NAME + 64];
	int n = snprintf(text, sizeof text, "kvcm session/%s/%.*s/%016llx", k->c->caller.tenant,
			 (int)SKV_MAX_NAME, instance, (unsigned long long)first);

	assert(n > 0 && (size_t)n < sizeof text);
	return skv_key_from_string(skv_cluster_secret(kvcm_cluster(k)), text, (size_t)n).lo;
}

static uint32_t seconds(void) { return (uint32_t)(skv_wall_ms(&skv_clock_system) / 1000); }

void kvcm_empty_make(struct kvcm_request *k, const char *instance, char out[SKV_SESSION_ID_HEX + 1])
{
	static atomic_uint_fast32_t number;
	uint64_t first = (uint64_t)seconds() << 32 | (uint32_t)atomic_fetch_add(&number, 1);

	skv_key_to_hex((struct skv_key){ first, proof(k, instance, first) }, out);
}

enum kvcm_empty kvcm_empty_check(struct kvcm_request *k, const char *instance, const char *id)
{
	struct skv_key key;
	uint64_t expected;

	if (!skv_key_from_hex(id, strlen(id), &key))
		return KVCM_EMPTY_NONE;
	expected = proof(k, instance, key.hi);
	if (!skv_equal_secret(&expected, &key.lo, sizeof expected))
		return KVCM_EMPTY_NONE;
	return seconds() - (uint32_t)(key.hi >> 32) <= EMPTY_S ? KVCM_EMPTY_OPEN : KVCM_EMPTY_OVER;
}
