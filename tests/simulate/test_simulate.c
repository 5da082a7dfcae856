/*
 * test_simulate.c - simulations of small traces: against results worked out by hand, against the
 * plainest possible program, and the optimum against all that could be done.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skv/log.h>
#include <skv/mem.h>
#include <skv/policy.h>

#include "../../server/simulate/run.h"

#define MOST_BLOCKS 64u

/* "1 2 3|1 2 4": requests of ids. */
static void make_refs(const char *text, struct refs *out)
{
	struct skv_trace t = { 0 };
	struct skv_error err = { 0 };
	char *copy = strdup(text), *at = copy, *request;
	int rc;

	assert_non_null(copy);
	while ((request = strsep(&at, "|")) != NULL) {
		struct skv_trace_request *q;

		assert_int_equal(skv_grow((void **)&t.v, &t.cap, t.n + 1, sizeof *t.v), SKV_OK);
		q = &t.v[t.n];
		*q = (struct skv_trace_request){ .timestamp_ms = 10 * t.n, .input_length = 1 };
		t.n++;
		q->ids = skv_calloc(MOST_BLOCKS, sizeof *q->ids);
		for (char *id; (id = strsep(&request, " ")) != NULL;)
			if (*id)
				q->ids[q->n_ids++] = strtoull(id, NULL, 10);
	}
	rc = refs_make(&t, "test", out, &err);
	if (rc != SKV_OK)
		print_error("%s\n", err.message);
	assert_int_equal(rc, SKV_OK);
	skv_trace_free(&t);
	free(copy);
}

/* Adds to a text of `room` bytes, and returns its end. */
static char *add(char *at, const char *begin, size_t room, const char *fmt, unsigned n)
{
	int k = snprintf(at, room - (size_t)(at - begin), fmt, n);

	assert_true(k >= 0 && (size_t)k < room - (size_t)(at - begin));
	return at + k;
}

static struct run run_it(const struct refs *t, const char *policy, uint64_t blocks,
			 struct request_hits *hits)
{
	struct run r = { .refs = t, .policy = policy, .blocks = blocks, .hits = hits,
			 .one_by_one = true };
	int rc = strcmp(policy, "belady") == 0 ? run_belady(&r) : run_policy(&r);

	if (rc != SKV_OK)
		print_error("%s\n", r.err.message);
	assert_int_equal(rc, SKV_OK);
	return r;
}

/* ---- by hand --------------------------------------------------------------------------------- */

static void results_worked_out_by_hand(void **state)
{
	static const struct {
		const char *trace, *policy;
		uint64_t blocks, block_hits, prefix_hits, evicted;
	} cases[] = {
		/* All fits. */
		{ "1 2 3|1 2 3|1 2 4", "lru", 4, 5, 5, 0 },
		/* 1 is used again, so 2 goes for 3, and 1 for 2. */
		{ "1|2|1|3|1|2", "lru-plain", 2, 2, 2, 2 },
		/* The oldest is 1, whatever its uses: 3 in its place, 1 in that of 2. */
		{ "1|2|1|3|1|2", "fifo", 2, 1, 1, 3 },
		/* 1 and 2 stay; 3 is not taken in. */
		{ "1|2|1|3|1|2", "belady", 2, 3, 3, 0 },
		/* Of the chain 1 2 3 the tail goes first, for 4 and 5: two of it are left. */
		{ "1 2 3|4 5|1 2 3", "lru", 4, 2, 2, 2 },
		/* The head goes first: 2 and 3 are there, behind a miss. */
		{ "1 2 3|4 5|1 2 3", "lru-plain", 4, 2, 0, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct refs t;
		struct run r;

		make_refs(cases[i].trace, &t);
		r = run_it(&t, cases[i].policy, cases[i].blocks, NULL);
		if (r.counts.block_hits != cases[i].block_hits ||
		    r.counts.prefix_hits != cases[i].prefix_hits ||
		    r.counts.evicted != cases[i].evicted)
			fail_msg("case %zu: %d block hits, %d prefix hits, %d evicted", i,
				 (int)r.counts.block_hits, (int)r.counts.prefix_hits,
				 (int)r.counts.evicted);
		refs_free(&t);
	}
}

/* ---- against the plainest program ------------------------------------------------------------ */

struct plain {
	const struct refs *t;
	uint64_t use[MOST_BLOCKS], born[MOST_BLOCKS];
	bool there[MOST_BLOCKS];
	uint64_t n, clock;
};

static bool has_child(const struct plain *p, uint32_t block)
{
	for (uint32_t b = 0; b < p->t->n_blocks; b++)
		if (p->there[b] && p->t->parent[b] == block)
			return true;
	return false;
}

static void plain_evict(struct plain *p, const char *policy)
{
	uint32_t best = NO_BLOCK;

	for (uint32_t b = 0; b < p->t->n_blocks; b++) {
		const uint64_t *age = strcmp(policy, "fifo") == 0 ? p->born : p->use;

		if (!p->there[b] || (strcmp(policy, "lru") == 0 && has_child(p, b)))
			continue;
		if (best == NO_BLOCK || age[b] < age[best])
			best = b;
	}
	assert_true(best != NO_BLOCK);
	p->there[best] = false;
	p->n--;
}

static struct request_hits plain_request(struct plain *p, const char *policy, uint64_t blocks,
					 uint32_t q)
{
	bool suffix_first = strcmp(policy, "lru") == 0, hit[MOST_BLOCKS] = { false },
	     leading = true;
	struct request_hits h = { 0 };

	p->clock++;
	for (uint32_t i = p->t->first[q]; i < p->t->first[q + 1]; i++) {
		uint32_t b = p->t->ref[i];

		hit[b] = p->there[b];
		leading &= hit[b];
		h.prefix += leading;
		h.behind += hit[b] && !leading;
		if (hit[b])
			p->use[b] = suffix_first ? p->clock : ++p->clock;
	}
	p->clock++;
	for (uint32_t i = p->t->first[q]; i < p->t->first[q + 1]; i++) {
		uint32_t b = p->t->ref[i];

		if (hit[b])
			continue;
		if (p->n == blocks)
			plain_evict(p, policy);
		p->there[b] = true;
		p->n++;
		p->use[b] = suffix_first ? p->clock : ++p->clock;
		p->born[b] = ++p->clock;
		h.written++;
	}
	return h;
}

/* Walks in a tree of 40 blocks, each below a smaller one or none, at most eight deep. */
static void random_refs(unsigned *seed, struct refs *out)
{
	uint32_t parent[40], depth[40];
	char text[16384], *at = text;

	for (uint32_t b = 0; b < 40; b++) {
		parent[b] = b && rand_r(seed) % 4 ? (uint32_t)rand_r(seed) % b : NO_BLOCK;
		if (parent[b] != NO_BLOCK && depth[parent[b]] == 8)
			parent[b] = NO_BLOCK;
		depth[b] = parent[b] == NO_BLOCK ? 1 : depth[parent[b]] + 1;
	}
	for (int q = 0; q < 120; q++) {
		uint32_t chain[8], b = (uint32_t)rand_r(seed) % 40, n = depth[b];

		for (uint32_t i = n; i-- > 0; b = parent[b])
			chain[i] = b;
		at = add(at, text, sizeof text, q ? "|" : "", 0);
		for (uint32_t i = 0; i < n; i++)
			at = add(at, text, sizeof text, "%u ", chain[i] + 1);
	}
	make_refs(text, out);
}

static void policies_do_as_the_plainest_program(void **state)
{
	static const char *const policies[] = { "lru", "lru-plain", "fifo" };
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 60; round++) {
		struct refs t;

		random_refs(&seed, &t);
		for (size_t p = 0; p < 3; p++) {
			/* more than a request */
			uint64_t blocks = 12 + (uint64_t)rand_r(&seed) % 20;
			struct request_hits *hits = calloc(t.n_requests, sizeof *hits);
			struct plain plain = { .t = &t };

			assert_non_null(hits);
			run_it(&t, policies[p], blocks, hits);
			for (uint32_t q = 0; q < t.n_requests; q++) {
				struct request_hits want =
					plain_request(&plain, policies[p], blocks, q);

				if (memcmp(&want, &hits[q], sizeof want) != 0)
					fail_msg(
						"%s, %d blocks, request %d: %d + %d "
						"hits, not %d + %d",
						policies[p], (int)blocks, (int)q,
						(int)hits[q].prefix, (int)hits[q].behind,
						(int)want.prefix, (int)want.behind);
			}
			free(hits);
		}
		refs_free(&t);
	}
}

/* ---- the optimum ----------------------------------------------------------------------------- */

/* Most hits from reference `at` on with the blocks of `there`: tries all. */
static int most_hits(const uint8_t *ref, int n, int at, unsigned there, int blocks,
		     int8_t memo[][64])
{
	int best, hit;
	unsigned bit;

	if (at == n)
		return 0;
	if (memo[at][there] >= 0)
		return memo[at][there];
	bit = 1u << ref[at];
	hit = (there & bit) != 0;
	best = hit + most_hits(ref, n, at + 1, there, blocks, memo);
	if (!hit && __builtin_popcount(there) < blocks) {
		int with = most_hits(ref, n, at + 1, there | bit, blocks, memo);

		best = with > best ? with : best;
	} else if (!hit) {
		for (unsigned b = 0; b < 6; b++) {
			int with = there >> b & 1
					   ? most_hits(ref, n, at + 1, (there & ~(1u << b)) | bit,
						       blocks, memo)
					   : 0;

			best = with > best ? with : best;
		}
	}
	return memo[at][there] = (int8_t)best;
}

static void the_optimum_is_one(void **state)
{
	unsigned seed = 3;

	(void)state;
	for (int round = 0; round < 200; round++) {
		int8_t memo[40][64];
		uint8_t ref[40];
		char text[200], *at = text;
		int blocks = 1 + rand_r(&seed) % 4, n = 10 + rand_r(&seed) % 30;
		struct refs t;
		struct run r;

		for (int i = 0; i < n; i++) {
			ref[i] = (uint8_t)((unsigned)rand_r(&seed) % 6);
			at = add(at, text, sizeof text, i ? "|%u" : "%u", ref[i]);
		}
		memset(memo, 0xff, sizeof memo);
		make_refs(text, &t);
		r = run_it(&t, "belady", (uint64_t)blocks, NULL);
		assert_int_equal(r.counts.block_hits, most_hits(ref, n, 0, 0, blocks, memo));
		refs_free(&t);
	}
}

/* ---- full mode ------------------------------------------------------------------------------- */

/* Chains that grow, are read again, and part from each other at any block. */
static void random_chains(char *text, size_t size, unsigned *seed)
{
	uint32_t length[64] = { 0 };
	char *at = text;

	for (int q = 0; q < 1000; q++) {
		uint32_t chain = (uint32_t)rand_r(seed) % 64, shared = chain % 4;

		length[chain] = 1 + (length[chain] + (uint32_t)rand_r(seed) % 5) % 24;
		at = add(at, text, size, q ? "|" : "", 0);
		for (uint32_t i = 0; i < length[chain]; i++)
			at = add(at, text, size, "%u ",
				 i < 3 * shared ? 1 + shared * 100 + i : 1000 + chain * 100 + i);
	}
}

/* The policy alone, asked as the core is, foretells the core, with every policy. (Where a
 * request is larger than the capacity, blocks with equal uses may be leaves at a time, and
 * their order is not said.) */
static void the_whole_core_does_the_same(void **state)
{
	static const uint64_t capacities[] = { 24, 90, 300, 2000 };
	unsigned seed = 11;

	(void)state;
	for (int round = 0; round < 3; round++) {
		char text[131072];
		struct refs t;

		random_chains(text, sizeof text, &seed);
		make_refs(text, &t);
		for (const struct skv_policy_ops *const *p = skv_policy_all(); *p; p++) {
			for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
				struct run alone = { .refs = &t, .policy = (*p)->name,
						     .blocks = capacities[i],
						     .block_bytes = 4096, .ttl_ms = 3600000 };
				struct run whole = alone;

				whole.full = true;
				assert_int_equal(run_policy(&alone), SKV_OK);
				assert_int_equal(run_full(&whole), SKV_OK);
				if (alone.counts.prefix_hits != whole.counts.prefix_hits ||
				    alone.counts.inserted != whole.counts.inserted)
					fail_msg(
						"round %d, %s, %u blocks: %u hits and %u written, "
						"the core %u and %u",
						round, alone.policy, (unsigned)alone.blocks,
						(unsigned)alone.counts.prefix_hits,
						(unsigned)alone.counts.inserted,
						(unsigned)whole.counts.prefix_hits,
						(unsigned)whole.counts.inserted);
			}
		}
		refs_free(&t);
	}
}

/* Prefix hits of a list in order of use: each request moves its blocks to the front or inserts them
 * there, last one first; at the back goes what is too much. */
static uint64_t list_hits(const struct refs *t, uint32_t blocks)
{
	uint32_t *list = calloc(t->n_blocks + 1, sizeof *list), n = 0, at;
	uint64_t hits = 0;

	assert_non_null(list);
	for (uint32_t q = 0; q < t->n_requests; q++) {
		for (uint32_t i = t->first[q]; i < t->first[q + 1]; i++) {
			for (at = 0; at < n && list[at] != t->ref[i]; at++)
				;
			if (at == n)
				break;
			hits++;
		}
		for (uint32_t i = t->first[q + 1]; i-- > t->first[q];) {
			for (at = 0; at < n && list[at] != t->ref[i]; at++)
				;
			n += at == n;
			memmove(list + 1, list, at * sizeof *list);
			list[0] = t->ref[i];
			n = n > blocks ? blocks : n;
		}
	}
	free(list);
	return hits;
}

/* Requests as large as the store and larger, half of them below a part of another: no block goes
 * for a later one of its own request, so its first ones are found again. */
static void a_request_does_not_evict_itself(void **state)
{
	static const uint32_t capacities[] = { 1, 2, 5, 9, 16, 23, 24, 45, 100 };
	unsigned seed = 29;
	char text[131072];
	struct refs t;

	(void)state;
	random_chains(text, sizeof text, &seed);
	make_refs(text, &t);
	for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
		const uint64_t want = list_hits(&t, capacities[i]);

		assert_true(want > 0);
		for (int full = 0; full < 2; full++) {
			struct run r = { .refs = &t, .policy = "lru", .blocks = capacities[i],
					 .block_bytes = 4096, .full = full };

			assert_int_equal(full ? run_full(&r) : run_policy(&r), SKV_OK);
			if (r.counts.prefix_hits != want)
				fail_msg("%s, %u blocks: %u hits, not %u", full ? "full" : "policy",
					 (unsigned)capacities[i], (unsigned)r.counts.prefix_hits,
					 (unsigned)want);
		}
	}
	refs_free(&t);
}

/* Of what is larger than the capacity the first blocks are written, and the trace goes on. */
static void what_does_not_fit_is_left_out(void **state)
{
	struct request_hits hits[4];
	struct refs t;

	(void)state;
	make_refs("1|2 3 4|2 3|1 5", &t);
	for (int full = 0; full < 2; full++) {
		struct run r = { .refs = &t, .policy = "lru", .blocks = 2, .block_bytes = 4096,
				 .full = full, .hits = hits };

		assert_int_equal(full ? run_full(&r) : run_policy(&r), SKV_OK);
		assert_int_equal(hits[1].written, 2);
		assert_int_equal(hits[2].prefix, 2);
		assert_int_equal(hits[3].prefix, 0);
		assert_int_equal(hits[3].written, 2);
		assert_int_equal(r.counts.inserted, 5);
	}
	refs_free(&t);
}

/* ---- traces ---------------------------------------------------------------------------------- */

static void tiers_worked_out_by_hand(void **state)
{
	static const struct {
		const char *trace;
		uint64_t blocks, fast;
		uint32_t promote_after;
		bool write_through;
		uint64_t prefix_hits;
		struct tier_counts tier;
	} cases[] = {
		/* Copied up by their second use, found there by the third. */
		{ "1 2|1 2|1 2|3 4|1 2", 4, 2, 2, false, 6, { 2, 2, 0, 0 } },
		/* Written to both; 3 and 4 go for 1 and 2 in the fast tier only. */
		{ "1 2|1 2|1 2|3 4|1 2", 4, 2, 0, true, 6, { 4, 0, 4, 2 } },
		/* The same, and 1 and 2 come back for 3 and 4. */
		{ "1 2|1 2|1 2|3 4|1 2", 4, 2, 1, true, 6, { 4, 2, 4, 4 } },
		/* 1 is in the fast tier alone when it is asked for: a miss. Then both have it. */
		{ "1|1|2|3|1|1", 2, 1, 1, false, 2, { 1, 1, 0, 0 } },
		/* Three do not fit into the fast tier of two: the first two come. */
		{ "1 2 3|1 2 3|1 2|1 2", 4, 2, 1, true, 7, { 6, 0, 2, 0 } },
		/* 3, and 3 and 2 of the fast tier, go for 4 and 5; 2 comes up with the new 3, for
		 * 5 and 4. */
		{ "1 2 3|4 5|1 2 3|1", 4, 3, 1, true, 3, { 2, 1, 6, 4 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct refs t;
		struct run r = { .refs = &t, .policy = "lru", .blocks = cases[i].blocks,
				 .fast_blocks = cases[i].fast,
				 .promote_after = cases[i].promote_after,
				 .write_through = cases[i].write_through };
		const struct tier_counts *want = &cases[i].tier;

		make_refs(cases[i].trace, &t);
		assert_int_equal(run_policy(&r), SKV_OK);
		if (r.counts.prefix_hits != cases[i].prefix_hits || r.tier.hits != want->hits ||
		    r.tier.promoted != want->promoted || r.tier.written != want->written ||
		    r.tier.evicted != want->evicted)
			fail_msg("case %zu: %d hits, %d fast, %d promoted, %d written, %d evicted",
				 i, (int)r.counts.prefix_hits, (int)r.tier.hits,
				 (int)r.tier.promoted, (int)r.tier.written, (int)r.tier.evicted);
		refs_free(&t);
	}
}

static void ids_that_are_no_chain_are_refused(void **state)
{
	uint64_t one[] = { 5, 6 }, two[] = { 7, 6 };
	struct skv_trace_request q[] = { { .n_ids = 2, .ids = one }, { .n_ids = 2, .ids = two } };
	const struct skv_trace t = { .v = q, .n = 2 };
	struct skv_error err = { 0 };
	struct refs r;

	(void)state;
	assert_int_equal(refs_make(&t, "x", &r, &err), SKV_E_INVALID);
	assert_non_null(strstr(err.message, "line 2: hash_ids[1]: 6"));
	refs_free(&r);
}

static void memory_may_end_anywhere(void **state)
{
	struct refs t;

	(void)state;
	make_refs("1 2 3|4 5|1 2 3|6", &t);
	for (int mode = 0; mode < 2; mode++) {
		int rc = -1;

		for (unsigned long n = 1; n < 100 && rc != SKV_OK; n++) {
			struct run r = { .refs = &t, .policy = "lru", .blocks = 2 };

			skv_mem_fail_at(n);
			rc = mode ? run_belady(&r) : run_policy(&r);
			skv_mem_fail_at(0);
			assert_true(rc == SKV_OK ||
				    (rc == SKV_E_NOMEM && strstr(r.err.message, "memory")));
		}
		assert_int_equal(rc, SKV_OK);
	}
	refs_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_worked_out_by_hand),
		cmocka_unit_test(policies_do_as_the_plainest_program),
		cmocka_unit_test(the_optimum_is_one),
		cmocka_unit_test(the_whole_core_does_the_same),
		cmocka_unit_test(a_request_does_not_evict_itself),
		cmocka_unit_test(what_does_not_fit_is_left_out),
		cmocka_unit_test(tiers_worked_out_by_hand),
		cmocka_unit_test(ids_that_are_no_chain_are_refused),
		cmocka_unit_test(memory_may_end_anywhere),
	};

	skv_log_level_set(SKV_LOG_ERROR); /* of the cores of full mode */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
