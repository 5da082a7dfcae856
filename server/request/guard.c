/*
 * guard.c - counts wrong tokens by address. See guard.h.
 *
 * A token that was right from its address before costs one atomic load; everything else takes the
 * lock for a look at four entries. The table has a fixed size: where a set is full, the address
 * that is clear first gives way.
 */
#include <skv/guard.h>

#include <assert.h>
#include <string.h>

#include <skv/hash.h>

void skv_guard_init(struct skv_guard *g, uint32_t burst)
{
	memset(g, 0, sizeof *g);
	g->burst = burst;
	skv_random(&g->seed, sizeof g->seed);
	skv_mutex_init(&g->lock);
}

void skv_guard_destroy(struct skv_guard *g) { skv_mutex_destroy(&g->lock); }

static uint64_t mix(const struct skv_guard *g, const uint8_t *address, uint64_t token)
{
	struct skv_key key;

	_Static_assert(sizeof key == SKV_ADDRESS_BYTES, "an address is mixed as a key");
	memcpy(&key, address, sizeof key);
	return skv_key_mix(key, g->seed ^ token) | 1; /* 0: an empty place */
}

/* The address's entry, or NULL; `make`: in the place of the one that is clear first. */
static struct skv_guard_peer *find_locked(struct skv_guard *g, const uint8_t *address, bool make)
	SKV_REQUIRES(g->lock)
{
	struct skv_guard_peer *set = g->peers[mix(g, address, 0) / 2 % SKV_GUARD_SETS];
	struct skv_guard_peer *first = set;

	assert(skv_mutex_held(&g->lock));
	for (unsigned i = 0; i < SKV_GUARD_WAYS; i++) {
		if (memcmp(set[i].address, address, SKV_ADDRESS_BYTES) == 0)
			return &set[i];
		if (set[i].clear_ms < first->clear_ms)
			first = &set[i];
	}
	if (!make)
		return NULL;
	memcpy(first->address, address, SKV_ADDRESS_BYTES);
	first->clear_ms = 0;
	return first;
}

/* Each failure takes EVERY_MS to be forgotten, and `burst` may be remembered. */
static bool count_locked(struct skv_guard *g, const struct skv_guard_try *t, uint64_t now_ms)
	SKV_REQUIRES(g->lock)
{
	const uint64_t most = (uint64_t)g->burst * SKV_GUARD_EVERY_MS;
	struct skv_guard_peer *p = find_locked(g, t->address, !t->right);
	const uint64_t left = p && p->clear_ms > now_ms ? p->clear_ms - now_ms : 0;

	assert(g->burst > 0 && (p || t->right));
	if (left + SKV_GUARD_EVERY_MS > most)
		return false;
	if (!t->right)
		p->clear_ms = now_ms + left + SKV_GUARD_EVERY_MS;
	return true;
}

bool skv_guard_pass(struct skv_guard *g, const struct skv_guard_try *t, uint64_t now_ms)
{
	const uint64_t m = mix(g, t->address, t->token);
	atomic_uint_fast64_t *known = &g->known[m / 2 % SKV_GUARD_KNOWN];
	bool pass;

	if (g->burst == 0)
		return true;
	if (t->right && atomic_load_explicit(known, memory_order_relaxed) == m)
		return true;
	skv_mutex_lock(&g->lock);
	pass = count_locked(g, t, now_ms);
	skv_mutex_unlock(&g->lock);
	if (pass && t->right)
		atomic_store_explicit(known, m, memory_order_relaxed);
	return pass;
}
