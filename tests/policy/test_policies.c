/*
 * test_policies.c - each policy against what it is said to be, on random requests: a
 * plain model that searches all blocks for its victim. And scenes: chains, rounds of
 * SIEVE, the two queues of S3-FIFO.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

#include "cache.h"

#define IDS 400u

static struct cache c;

/* ---- models ---------------------------------------------------------------------------------- */

/* An entry of a list in order of birth, oldest first. */
struct item {
	uint32_t id;
	bool visited;
	uint32_t freq;
	uint64_t use;
	uint32_t parent;
};

static struct item list[IDS];
static uint32_t n_list, hand;
static uint64_t clock_now;

static uint32_t at_of(uint32_t id)
{
	for (uint32_t i = 0; i < n_list; i++)
		if (list[i].id == id)
			return i;
	return n_list;
}

static bool has_kids(uint32_t id)
{
	for (uint32_t i = 0; i < n_list; i++)
		if (list[i].parent == id)
			return true;
	return false;
}

static uint32_t model_take(uint32_t at)
{
	uint32_t id = list[at].id;

	memmove(&list[at], &list[at + 1], (n_list - at - 1) * sizeof *list);
	n_list--;
	return id;
}

static bool less(const char *policy, const struct item *a, const struct item *b)
{
	if (strcmp(policy, "lfu") == 0 && a->freq != b->freq)
		return a->freq < b->freq;
	return a->use < b->use;
}

/* As published: a list, a hand from its tail to its head, visited marks. */
static uint32_t sieve_victim(void)
{
	uint32_t id;

	if (hand >= n_list)
		hand = 0;
	while (list[hand].visited) {
		list[hand].visited = false;
		hand = hand + 1 == n_list ? 0 : hand + 1;
	}
	id = model_take(hand);
	/* The newest: start from the oldest again, whichever blocks come meanwhile. */
	if (hand == n_list)
		hand = 0;
	return id;
}

static uint32_t model_evict(const char *policy)
{
	uint32_t best = n_list;

	if (strcmp(policy, "sieve") == 0)
		return sieve_victim();
	if (strcmp(policy, "fifo") == 0 || strcmp(policy, "ttl") == 0)
		return model_take(0);
	for (int inner = 0; inner < 2 && best == n_list; inner++)
		for (uint32_t i = 0; i < n_list; i++)
			if ((inner || strcmp(policy, "lru") != 0 || !has_kids(list[i].id)) &&
			    (best == n_list || less(policy, &list[i], &list[best])))
				best = i;
	return model_take(best);
}

static void model_use(uint32_t id)
{
	struct item *x = &list[at_of(id)];

	x->visited = true;
	x->freq += x->freq < SKV_POLICY_FREQ;
	x->use = ++clock_now;
}

static void model_insert(uint32_t id, uint32_t parent)
{
	list[n_list++] = (struct item){ .id = id, .use = ++clock_now, .parent = parent };
}

/* Random uses, insertions, removals. With `again`, blocks are placed anew at
 * random, as after leases. */
static void compare(const char *policy, unsigned seed, bool again)
{
	const uint32_t cap = 20 + (uint32_t)rand_r(&seed) % 80;

	cache_make(&c, policy, cap, IDS);
	c.stamp_step = 1 + (uint64_t)rand_r(&seed) % 1000; /* time is nothing */
	n_list = hand = 0;
	clock_now = 0;
	for (uint32_t step = 0; step < 4000; step++) {
		uint32_t range = rand_r(&seed) % 3 ? cap + 10 : IDS,
			 id = 1 + (uint32_t)rand_r(&seed) % range;

		if (c.block[id].in) {
			if (rand_r(&seed) % 100 == 0 && strcmp(policy, "sieve") != 0) {
				cache_remove(&c, id);
				model_take(at_of(id));
			} else {
				cache_use(&c, id);
				model_use(id);
			}
			if (again && c.block[id].in && rand_r(&seed) % 4 == 0)
				cache_replace(&c, id);
			continue;
		}
		if (c.n.blocks == cap) {
			uint32_t want = model_evict(policy);

			assert_int_equal(cache_evict(&c), want);
		}
		/* Below a smaller one: no circles. */
		uint32_t parent = id > 1 ? 1 + (uint32_t)rand_r(&seed) % (id - 1) : 0;

		if (parent && !c.block[parent].in)
			parent = 0;
		cache_insert(&c, id, parent, 0);
		model_insert(id, parent);
	}
	assert_true(c.evictions > 500);
	cache_destroy(&c);
}

static void test_models(void **state)
{
	static const char *const policies[] = { "lru", "lru-plain", "lfu", "fifo", "ttl", "sieve" };

	(void)state;
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
		for (unsigned seed = 1; seed <= 4; seed++)
			compare(policies[i], seed, seed % 2 && strcmp(policies[i], "sieve") != 0);
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static void insert(uint32_t first, uint32_t last)
{
	for (uint32_t id = first; id <= last; id++)
		cache_insert(&c, id, 0, 0);
}

static void evicts(uint32_t first, uint32_t last)
{
	for (uint32_t id = first; id <= last; id++)
		assert_int_equal(cache_evict(&c), id);
}

/* A chain loses its tail before its head, with policies that go for leaves, whatever was used. */
static void test_suffix_first(void **state)
{
	static const char *const policies[] = { "reuse", "lru" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		unsigned seed = 5;
		uint32_t ids[40], prefix;

		cache_make(&c, policies[i], 200, IDS);
		for (uint32_t round = 0; round < 2000; round++) {
			uint32_t chain = (uint32_t)rand_r(&seed) % 10,
				 n = 1 + (uint32_t)rand_r(&seed) % 40;

			for (uint32_t k = 0; k < n; k++)
				ids[k] = 1 + chain * 40 + k;
			cache_request(&c, ids, n, &prefix);
			/* no block is there without those before it */
			for (uint32_t k = 0; k < 10; k++)
				for (uint32_t j = 1; j < 40; j++)
					assert_true(!c.block[1 + k * 40 + j].in ||
						    c.block[k * 40 + j].in);
		}
		assert_true(c.evictions > 1000);
		cache_destroy(&c);
	}
}

/* Only inner blocks are left: they go all the same. */
static void test_never_stuck(void **state)
{
	const struct skv_policy_ops *const *p = skv_policy_all();

	(void)state;
	for (; *p; p++) {
		cache_make(&c, (*p)->name, 10, 20);
		for (uint32_t id = 1; id <= 10; id++)
			cache_insert(&c, id, id - 1, 0);
		c.block[10].kids = 1; /* a block being written hangs below the last */
		cache_replace(&c, 10);
		for (uint32_t i = 0; i < 10; i++)
			assert_true(cache_evict(&c) != 0);
		assert_int_equal(cache_evict(&c), 0);
		cache_destroy(&c);
	}
}

static void test_sieve(void **state)
{
	(void)state;
	cache_make(&c, "sieve", 10, 100);
	insert(1, 7);
	cache_use(&c, 1);
	cache_use(&c, 3);
	evicts(2, 2); /* 1 is spared */
	cache_use(&c, 1); /* behind the hand */
	evicts(4, 5); /* 3 is spared, too */
	insert(8, 9);
	evicts(6, 9); /* the new blocks are before the hand */
	/* the hand is at the oldest again: 1 was used, 3 not */
	assert_int_equal(cache_evict(&c), 3);
	insert(10, 10);
	evicts(1, 1); /* 3 was the newest, so it is at the oldest again, whoever came */
	evicts(10, 10);
	cache_destroy(&c);
}

static void test_s3fifo(void **state)
{
	(void)state;
	cache_make(&c, "s3fifo", 100, IDS);
	insert(1, 100);
	cache_use(&c, 1);
	cache_use(&c, 2);
	cache_use(&c, 2);
	evicts(1, 1); /* once is not enough */
	evicts(3, 3); /* 2 is in the main queue */
	assert_int_equal(c.n.queued[1], 1);
	cache_insert(&c, 1, 0, 0); /* a ghost: into the main queue */
	assert_int_equal(c.n.queued[1], 2);
	cache_insert(&c, 200, 0, 0);
	assert_int_equal(c.n.queued[1], 2);
	cache_use(&c, 2);
	evicts(4, 100); /* while the small queue has a tenth or more */
	evicts(200, 200);
	evicts(1, 1); /* 2 is older, but goes round once more, with one use less */
	assert_int_equal(c.block[2].facts.freq, 0);
	cache_destroy(&c);

	cache_make(&c, "s3fifo", 100, IDS);
	insert(1, 100);
	for (uint32_t id = 1; id <= 95; id++) {
		cache_use(&c, id);
		cache_use(&c, id);
	}
	evicts(1, 1); /* 9 are left in the small queue: the oldest of the main one goes */
	assert_int_equal(c.n.queued[0], 9);
	cache_destroy(&c);
}

/* Prefix hits of conversations that begin with one of a few system prompts; most end after a turn
 * or two, and each turn ends with blocks that nobody asks for again. */
static uint64_t chat(const char *policy, uint32_t cap, uint64_t *refs)
{
	enum { SYSTEMS = 5, SYSTEM = 8, TURN = 6, LIVE = 40, CHATS = 1500 };
	static uint32_t turns[CHATS], left[CHATS], ids[SYSTEM + 64 * TURN];
	uint32_t next = 0, live[LIVE], at = SYSTEMS * SYSTEM + 1, prefix;
	static uint32_t first[CHATS][64]; /* blocks of a turn begin here */
	unsigned seed = 21;
	uint64_t hits = 0;

	*refs = 0;
	cache_make(&c, policy, cap, 100000);
	for (uint32_t i = 0; i < LIVE; i++)
		live[i] = UINT32_MAX;
	while (next < CHATS) {
		uint32_t slot = (uint32_t)rand_r(&seed) % LIVE, id = live[slot], n = 0;

		if (id == UINT32_MAX || left[id] == 0) {
			id = live[slot] = next++;
			turns[id] = 0;
			left[id] = rand_r(&seed) % 4 ? 1 + (uint32_t)rand_r(&seed) % 2
						     : 4 + (uint32_t)rand_r(&seed) % 20;
		}
		left[id]--;
		first[id][turns[id]++] = at;
		at += TURN;
		for (uint32_t k = 0; k < SYSTEM; k++)
			ids[n++] = 1 + id % SYSTEMS * SYSTEM + k;
		/* the last two blocks of a turn are of it alone */
		for (uint32_t t = 0; t < turns[id]; t++)
			for (uint32_t k = 0; k < (t + 1 == turns[id] ? TURN : TURN - 2); k++)
				ids[n++] = first[id][t] + k;
		cache_request(&c, ids, n, &prefix);
		hits += prefix;
		*refs += n;
	}
	cache_destroy(&c);
	return hits;
}

/* Policy reuse serves its purpose, and never costs much. */
static void test_reuse_pays(void **state)
{
	(void)state;
	for (uint32_t cap = 100; cap <= 1600; cap *= 2) {
		uint64_t refs, reuse = chat("reuse", cap, &refs), lru = chat("lru", cap, &refs);

		assert_true(reuse + refs / 1000 >= lru);
		if (cap <= 200)
			assert_true(reuse > lru + refs / 100);
	}
}

/* Blocks come round and round, and the cache has room for a part of them. Returns the hits of the
 * last quarter, and leaves the cache. */
static uint32_t rounds(const char *policy)
{
	enum { ROUNDS = 80 };
	uint32_t hits = 0;

	cache_make(&c, policy, IDS / 2, IDS);
	for (uint32_t i = 0; i < ROUNDS * IDS; i++) {
		const uint32_t id = 1 + i % IDS;

		hits += c.block[id].in && i >= ROUNDS * IDS / 4 * 3;
		if (c.block[id].in)
			cache_use(&c, id);
		else
			cache_insert(&c, id, 0, 0);
		assert_true(c.block[id].in);
	}
	return hits;
}

/* All blocks of a working set that does not fit are stored, and a part of them stays. */
static void test_deferred_keeps_a_part(void **state)
{
	(void)state;
	assert_int_equal(rounds("lru"), 0);
	cache_destroy(&c);
	assert_true(rounds("reuse") < IDS);
	cache_destroy(&c);
	assert_true(rounds("deferred") > 5 * IDS);
	cache_destroy(&c);
}

static bool is_deferred(uint32_t id)
{
	return c.block[id].in && skv_heap_which(c.block[id].place) == c.ops->n_queues - 1;
}

/* A start of twelve blocks. Returns the first of them, or 0 if not all of them are deferred. */
static uint32_t start_defers(void)
{
	uint32_t ids[12], n = 0, n_deferred = 0;

	for (uint32_t i = 0; i < 12; i++)
		cache_evict(&c);
	for (uint32_t id = 1; n < 12; id++)
		if (!c.block[id].in)
			ids[n++] = id;
	c.stamp++;
	c.stamp_step = 0; /* a single call */
	for (uint32_t i = 0; i < 12; i++)
		cache_insert(&c, ids[i], 0, false);
	c.stamp_step = 1;
	for (uint32_t i = 0; i < 12; i++)
		n_deferred += is_deferred(ids[i]);
	return n_deferred == 12 ? ids[0] : 0;
}

/* A deferred block goes before all others, but not once it was used. A restart keeps both. (It also
 * ends debts, which are paid first.) */
static void test_deferred_goes_first(void **state)
{
	uint32_t used = 0, n = 0;

	(void)state;
	rounds("deferred");
	for (uint32_t i = 0; !used && i < 64; i++)
		used = start_defers();
	assert_true(used);
	assert_true(c.ops->last_use(c.state, c.ops->place(c.state, &c.block[used].facts)) <
		    c.block[used].facts.use); /* as old as a block that is not deferred */
	cache_change(&c, "deferred", true);
	assert_true(is_deferred(used));
	cache_use(&c, used);
	for (uint32_t id = 1; id <= IDS; id++)
		n += is_deferred(id) && id != used;
	assert_true(n > 2);
	while (n--) {
		bool was[IDS + 1] = { false };

		for (uint32_t id = 1; id <= IDS; id++)
			was[id] = is_deferred(id) && id != used;
		assert_true(was[cache_evict(&c)]);
	}
	assert_true(c.block[used].in && c.n.blocks > 1);
	assert_true(cache_evict(&c) != used && c.block[used].in && !is_deferred(used));
	cache_destroy(&c);
}

/* Without memory for what it remembers, reuse is least recently used. */
static void test_reuse_without_memory(void **state)
{
	(void)state;
	cache_make(&c, "reuse", 50, IDS);
	for (uint32_t id = 1; id <= 300; id++) {
		skv_mem_fail_at(1);
		if (id > 50)
			assert_int_equal(cache_evict(&c), id - 50);
		skv_mem_fail_at(1);
		cache_insert(&c, id, 0, 0);
	}
	skv_mem_fail_at(0);
	cache_destroy(&c);
}

/* ---- for all --------------------------------------------------------------------------------- */

/* Victims depend on the order of calls alone: not on time, not on addresses. */
static void test_same_order_same_victims(void **state)
{
	const struct skv_policy_ops *const *p = skv_policy_all();
	static uint32_t went[2][1500];

	(void)state;
	for (; *p; p++) {
		uint64_t n[2];

		for (int run = 0; run < 2; run++) {
			unsigned seed = 11;
			uint32_t ids[30], prefix;

			cache_make(&c, (*p)->name, 150, IDS);
			c.stamp_step = run ? 7919 : 1;
			for (uint32_t round = 0; round < 1500; round++) {
				uint32_t chain = (uint32_t)rand_r(&seed) % 13,
					 len = 1 + (uint32_t)rand_r(&seed) % 30;

				for (uint32_t k = 0; k < len; k++)
					ids[k] = 1 + chain * 30 + k;
				cache_request(&c, ids, len, &prefix);
				went[run][round] = c.last_evicted;
			}
			n[run] = c.evictions;
			cache_destroy(&c);
		}
		assert_true(n[0] == n[1] && n[0] > 1000);
		assert_memory_equal(went[0], went[1], 1500 * sizeof went[0][0]);
	}
}

/* From any policy to any other, in the middle of it all: whatever tags and
 * counts the old one has left. */
static void test_change(void **state)
{
	const struct skv_policy_ops *const *from = skv_policy_all(), *const *to;
	unsigned seed = 3;

	(void)state;
	for (; *from; from++) {
		for (to = skv_policy_all(); *to; to++) {
			uint32_t ids[30], prefix;

			cache_make(&c, (*from)->name, 150, IDS);
			for (uint32_t round = 0; round < 300; round++) {
				uint32_t chain = (uint32_t)rand_r(&seed) % 13,
					 n = 1 + (uint32_t)rand_r(&seed) % 30;

				for (uint32_t k = 0; k < n; k++)
					ids[k] = 1 + chain * 30 + k;
				cache_request(&c, ids, n, &prefix);
				if (round == 150)
					cache_change(&c, (*to)->name, *to == *from);
			}
			while (c.n.blocks)
				assert_true(cache_evict(&c) != 0);
			assert_true(c.looks < 4 * c.evictions);
			cache_destroy(&c);
		}
	}
}

/* A place may be another policy's, a tag may be anything: nothing breaks, and
 * nothing goes round for ever. */
static void test_foreign_places(void **state)
{
	const struct skv_policy_ops *const *p = skv_policy_all();
	unsigned seed = 17;

	(void)state;
	for (; *p; p++) {
		struct skv_policy_counts n = { 0 };
		void *policy = (*p)->create ? (*p)->create(&n) : NULL;

		for (uint32_t i = 0; i < 5000; i++) {
			struct skv_policy_block b =
				{ .hash = (uint64_t)rand_r(&seed) * 0x9e3779b97f4a7c15ull,
						      .use = (uint64_t)rand_r(&seed),
						      .born = 1 + (uint64_t)rand_r(&seed),
						      .freq = (uint32_t)rand_r(&seed) % 16,
						      .tag = (uint32_t)rand_r(&seed) % 32 };
			struct skv_policy_place at = { (uint32_t)rand_r(&seed) % SKV_POLICY_QUEUES,
						       (uint64_t)rand_r(&seed) };
			uint32_t rounds = 0;

			(void)(*p)->rank(policy, at);
			while (!(*p)->look(policy, &b, at)) {
				at = (*p)->place(policy, &b);
				assert_true(at.queue < (*p)->n_queues && at.key < SKV_POLICY_INNER);
				assert_true(b.tag < SKV_POLICY_TAGS && b.freq <= SKV_POLICY_FREQ);
				assert_true(++rounds < 30);
			}
			if ((*p)->evicted)
				(*p)->evicted(policy, &b, at);
		}
		if ((*p)->destroy)
			(*p)->destroy(policy);
	}
}

static void test_names(void **state)
{
	const struct skv_policy_ops *const *p = skv_policy_all();
	size_t length = 0;

	(void)state;
	assert_ptr_equal(skv_policy_find(""), *p);
	assert_string_equal((*p)->name, SKV_POLICY_DEFAULT);
	assert_null(skv_policy_find("lruu"));
	assert_null(skv_policy_find("LRU"));
	for (; *p; p++) {
		assert_ptr_equal(skv_policy_find((*p)->name), *p);
		assert_true((*p)->n_queues >= 1 && (*p)->n_queues <= SKV_POLICY_QUEUES);
		assert_int_equal(!(*p)->create, !(*p)->destroy);
		assert_non_null(strstr(skv_policy_names(), (*p)->name));
		length += strlen((*p)->name) + 2;
	}
	assert_int_equal(strlen(skv_policy_names()), length - 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models),
		cmocka_unit_test(test_suffix_first),
		cmocka_unit_test(test_never_stuck),
		cmocka_unit_test(test_sieve),
		cmocka_unit_test(test_s3fifo),
		cmocka_unit_test(test_reuse_pays),
		cmocka_unit_test(test_deferred_keeps_a_part),
		cmocka_unit_test(test_deferred_goes_first),
		cmocka_unit_test(test_reuse_without_memory),
		cmocka_unit_test(test_same_order_same_victims),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_foreign_places),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
