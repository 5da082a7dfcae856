/*
 * test_core_modes.c - the modes of a lookup: windows, hybrids, partial hits, disabled storages,
 * times of creation, and looking without being noticed. Searches are compared with ones that are
 * written down plainly here.
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KB 1024ull
#define N 40u

enum { FULL = 1, STATE = 2, EXTRA = 4 };

static int setup(void **state)
{
	static struct env e;
	static const struct skv_spec specs[3] = { { "full", 4 * KB },
						  { "state", 8 * KB },
						  { "extra", 4 * KB } };

	env_init(&e);
	env_open(&e);
	assert_int_equal(env_storage(&e, "s", 8192 * KB, 64 * KB), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", specs, 3), SKV_OK);
	*state = &e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	env_check(e);
	env_destroy(e);
	return 0;
}

/* Blocks with these specs; 0 = none at all. */
static void put(struct env *e, const struct skv_key *keys, const uint32_t *has, uint32_t n)
{
	struct skv_key k[N];
	uint32_t want[N], m = 0;
	struct skv_start_res r;
	struct skv_finish_res f;
	char session[33];

	for (uint32_t i = 0; i < n; i++) {
		k[m] = keys[i];
		want[m] = has[i];
		m += has[i] != 0;
	}
	if (m == 0)
		return;
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = m, .key_specs = want },
				   &r), SKV_OK);
	assert_int_equal(r.n_write, m);
	memcpy(session, r.session, 33);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
}

static struct skv_lookup_req ask(enum skv_lookup_mode mode, const struct skv_key *k, uint32_t n)
{
	return (struct skv_lookup_req){ .tenant = "t", .instance = "i", .mode = mode, .keys = k,
					.n_keys = n };
}

/* ---- what is right, plainly ------------------------------------------------------------------ */

static bool hits(const struct skv_lookup_req *q, uint32_t mask, uint32_t has)
{
	return q->partial ? (has & mask) != 0 : (has & mask) == mask;
}

static uint32_t expect(const struct skv_lookup_req *q, uint32_t mask, const uint32_t *has,
		       bool *hit)
{
	uint32_t n = q->n_keys, first = 0, count = 0;

	memset(hit, 0, n * sizeof *hit);
	switch (q->mode) {
	case SKV_LOOKUP_PREFIX:
		while (count < n && hits(q, mask, has[count]))
			count++;
		break;
	case SKV_LOOKUP_BATCH:
	case SKV_LOOKUP_TRAILING:
		for (uint32_t i = 0; i < n; i++)
			count += hit[i] = hits(q, mask, has[i]);
		return count;
	case SKV_LOOKUP_WINDOW:
		for (uint32_t at = 0; at + q->window <= n; at++) {
			uint32_t run = 0;

			while (run < q->window && hits(q, mask, has[at + run]))
				run++;
			if (run == q->window) {
				first = at;
				count = run;
			}
		}
		break;
	case SKV_LOOKUP_HYBRID: {
		uint32_t prefix = 0;

		while (prefix < n && (has[prefix] & q->full_specs) == q->full_specs)
			prefix++;
		prefix = q->drop < prefix ? prefix - q->drop : 0;
		for (uint32_t i = 0; i < prefix; i++)
			if ((has[i] & q->state_specs) == q->state_specs)
				count = i + 1;
		break;
	}
	}
	for (uint32_t i = 0; i < count; i++)
		hit[first + i] = true;
	return count;
}

static void compare(struct env *e, const struct skv_lookup_req *q, uint32_t mask,
		    const uint32_t *has)
{
	bool hit[N];
	uint32_t want = expect(q, mask, has, hit), length;
	struct skv_lookup_res r;

	assert_int_equal(skv_core_lookup_length(e->core, q, &length, &e->arena, &e->err), SKV_OK);
	assert_int_equal(length, want);
	assert_int_equal(env_lookup_req(e, q, &r), SKV_OK);
	assert_int_equal(r.matched, want);
	for (uint32_t i = 0; i < q->n_keys; i++) {
		uint32_t column = 0;

		assert_int_equal(r.hit[i], hit[i]);
		for (uint32_t s = 0; hit[i] && s < 3; s++) {
			if (!(mask >> s & 1))
				continue;
			assert_int_equal(r.loc[i * r.n_specs + column].length, !(has[i] >> s & 1)
										       ? 0
									       : s == 1 ? 8 * KB
											: 4 * KB);
			column++;
		}
	}
}

static void modes_against_plain_ones(void **state)
{
	static const char *const names[3] = { "full", "state", "extra" };
	struct env *e = *state;
	unsigned seed = 99;

	for (uint32_t round = 0; round < 120; round++) {
		struct skv_key k[N];
		uint32_t has[N], n = 1 + (uint32_t)rand_r(&seed) % N,
				 gaps = 2 + (uint32_t)rand_r(&seed) % 12;

		env_keys(k, n, 1000 + round, 1);
		for (uint32_t i = 0; i < n; i++)
			has[i] = (uint32_t)rand_r(&seed) % gaps == 0 ? (uint32_t)rand_r(&seed) % 8
				 : (uint32_t)rand_r(&seed) % 2       ? 7
								     : 5;
		put(e, k, has, n);
		for (uint32_t mode = 0; mode < 5; mode++) {
			struct skv_lookup_req q = ask(mode, k, n);
			const char *asked[3];
			uint32_t mask = (uint32_t)rand_r(&seed) % 8;

			for (uint32_t s = 0; s < 3; s++)
				if (mask >> s & 1)
					asked[q.n_specs++] = names[s];
			q.specs = asked;
			mask = mask ? mask : 7;
			q.lease_ms = rand_r(&seed) % 2 ? 100 : 0;
			q.peek = rand_r(&seed) % 2;
			q.partial = mode != SKV_LOOKUP_HYBRID && rand_r(&seed) % 2;
			q.window = 1 + (uint32_t)rand_r(&seed) % n;
			q.full_specs = rand_r(&seed) % 2 ? FULL : FULL | EXTRA;
			q.state_specs = STATE;
			q.drop = (uint32_t)rand_r(&seed) % 3;
			compare(e, &q, mask, has);
		}
	}
}

/* The example of KVCM: full, full, full and state, a miss. */
static void hybrid_ends_at_the_checkpoint(void **state)
{
	struct env *e = *state;
	const uint32_t has[4] = { FULL, FULL, FULL | STATE, 0 };
	struct skv_key k[4];
	struct skv_lookup_req q = ask(SKV_LOOKUP_HYBRID, k, 4);
	uint32_t n;

	env_keys(k, 4, 1, 1);
	put(e, k, has, 4);
	q.full_specs = FULL;
	q.state_specs = STATE;
	assert_int_equal(skv_core_lookup_length(e->core, &q, &n, &e->arena, &e->err), SKV_OK);
	assert_int_equal(n, 3);
	q.drop = 1;
	assert_int_equal(skv_core_lookup_length(e->core, &q, &n, &e->arena, &e->err), SKV_OK);
	assert_int_equal(n, 0);
	q.drop = UINT32_MAX;
	assert_int_equal(skv_core_lookup_length(e->core, &q, &n, &e->arena, &e->err), SKV_OK);
	assert_int_equal(n, 0);
	q.drop = 0;
	assert_int_equal(env_delete(e, &k[1], 1, &n), SKV_OK);
	assert_int_equal(skv_core_lookup_length(e->core, &q, &n, &e->arena, &e->err), SKV_OK);
	assert_int_equal(n, 0);
}

static void bad_modes_are_refused(void **state)
{
	struct env *e = *state;
	struct skv_key k[4];
	struct skv_lookup_req q = ask(SKV_LOOKUP_WINDOW, k, 4);
	struct skv_lookup_res r;
	uint32_t n;

	env_keys(k, 4, 1, 1);
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_E_INVALID);
	assert_string_equal(e->err.field, "window");
	q.window = 5;
	assert_int_equal(skv_core_lookup_length(e->core, &q, &n, &e->arena, &e->err),
			 SKV_E_INVALID);
	q = ask(SKV_LOOKUP_HYBRID, k, 4);
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_E_INVALID);
	assert_string_equal(e->err.field, "full_specs");
	q.full_specs = FULL;
	q.state_specs = 8;
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_E_INVALID);
	assert_string_equal(e->err.field, "state_specs");
	q.instance = "nobody";
	assert_int_equal(skv_core_lookup_length(e->core, &q, &n, &e->arena, &e->err),
			 SKV_E_NOT_FOUND);
	q = ask(SKV_LOOKUP_PREFIX, k, 0);
	assert_int_equal(skv_core_lookup_length(e->core, &q, &n, &e->arena, &e->err), SKV_OK);
	assert_int_equal(n, 0);
}

/* ---- who is noticed -------------------------------------------------------------------------- */

static uint32_t lease_of(struct env *e, struct skv_key k, uint64_t *idle)
{
	struct skv_block_view v;

	assert_int_equal(skv_core_block(e->core, "t", "i", k, &v, &e->arena, &e->err), SKV_OK);
	*idle = v.idle_ms;
	return v.lease_ms;
}

/* Only hits that are returned are leased and count as used. */
static void only_what_is_returned_is_leased(void **state)
{
	struct env *e = *state;
	uint32_t has[8] = { 7, 7, 7, 5, 7, 7, 7, 7 };
	struct skv_key k[8];
	struct skv_lookup_req q = ask(SKV_LOOKUP_WINDOW, k, 8);
	struct skv_lookup_res r;
	uint64_t idle;

	env_keys(k, 8, 1, 1);
	put(e, k, has, 8);
	env_advance(e, 1000);
	q.window = 2;
	q.lease_ms = 3000;
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	assert_true(r.hit[6] && r.hit[7] && !r.hit[5]);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(lease_of(e, k[i], &idle) > 0, i >= 6);
		assert_int_equal(idle < 1000, i >= 6);
	}
	q = ask(SKV_LOOKUP_HYBRID, k, 8);
	q.full_specs = FULL;
	q.state_specs = STATE;
	q.drop = 4;
	q.lease_ms = 3000;
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	assert_int_equal(r.matched, 3);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(lease_of(e, k[i], &idle) > 0, i < 3);
}

static void peeking_is_not_noticed(void **state)
{
	struct env *e = *state;
	uint32_t has[3] = { 7, 7, 7 }, n;
	struct skv_key k[3];
	struct skv_lookup_req q = ask(SKV_LOOKUP_BATCH, k, 3);
	struct skv_lookup_res r;
	uint64_t idle;

	env_keys(k, 3, 1, 1);
	put(e, k, has, 3);
	env_advance(e, 1000);
	q.peek = true;
	q.lease_ms = 3000;
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	assert_int_equal(r.matched, 3);
	assert_int_equal(r.lease_ms, 0);
	q.peek = false;
	assert_int_equal(skv_core_lookup_length(e->core, &q, &n, &e->arena, &e->err), SKV_OK);
	assert_int_equal(n, 3);
	assert_int_equal(lease_of(e, k[0], &idle), 0);
	assert_true(idle >= 1000);
}

/* For answers that cannot say that they are not leased: over the cap hits become misses. */
static void only_what_can_be_leased_is_returned(void **state)
{
	static const char *const one[] = { "s" };
	struct skv_group_spec g = { .name = "g", .storages = one, .n_storages = 1 };
	struct env *e = *state;
	struct skv_group_view *v;
	struct skv_key k[20];
	uint32_t has[20];
	struct skv_lookup_req q = ask(SKV_LOOKUP_PREFIX, k, 20);
	struct skv_lookup_res r;

	e->o.leased_percent = 50;
	env_shutdown(e);
	env_open(e);
	for (uint32_t i = 0; i < 20; i++)
		has[i] = 7;
	env_keys(k, 20, 1, 1);
	put(e, k, has, 20);
	assert_int_equal(skv_cluster_group(e->cluster, "g", &e->arena, &v, &e->err), SKV_OK);
	g.capacity = v->used_bytes / 20 * 25; /* of which 12 blocks may be leased */
	assert_int_equal(skv_cluster_group_put(e->cluster, &g, SKV_PUT_ANY, NULL, NULL, &e->err),
			 SKV_OK);
	q.lease_ms = 3000;
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	assert_int_equal(r.matched, 20);
	assert_int_equal(r.lease_ms, 0);
	q.only_leased = true;
	q.mode = SKV_LOOKUP_WINDOW;
	q.window = 13;
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	assert_int_equal(r.matched, 0);
	for (uint32_t i = 0; i < 20; i++)
		assert_false(r.hit[i]);
	q.mode = SKV_LOOKUP_PREFIX;
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	assert_int_equal(r.matched, 12);
	assert_int_equal(r.lease_ms, 3000);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(r.hit[i], i < 12);
	q.mode = SKV_LOOKUP_BATCH; /* blocks that are leased already need no more room */
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	assert_int_equal(r.matched, 12);
	assert_true(r.hit[11] && !r.hit[12]);
	q.keys = k + 12;
	q.n_keys = 8;
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	assert_int_equal(r.matched, 0);
	q.lease_ms = 1000; /* a start waits as long for it: no cap */
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	assert_int_equal(r.matched, 8);
	assert_int_equal(r.lease_ms, 1000);
}

/* Of what is read from its end the last ones are leased, if not all can be. */
static void of_trailing_hits_the_last_are_leased(void **state)
{
	static const char *const one[] = { "s" };
	struct skv_group_spec g = { .name = "g", .storages = one, .n_storages = 1 };
	struct env *e = *state;
	struct skv_group_view *v;
	struct skv_key k[20];
	uint32_t has[20];
	struct skv_lookup_req q = ask(SKV_LOOKUP_TRAILING, k, 20);
	struct skv_lookup_res r;

	e->o.leased_percent = 50;
	env_shutdown(e);
	env_open(e);
	for (uint32_t i = 0; i < 20; i++)
		has[i] = i == 15 ? 0 : 7;
	env_keys(k, 20, 1, 1);
	put(e, k, has, 20);
	assert_int_equal(skv_cluster_group(e->cluster, "g", &e->arena, &v, &e->err), SKV_OK);
	g.capacity = v->used_bytes / 19 * 20; /* of which 10 blocks may be leased */
	assert_int_equal(skv_cluster_group_put(e->cluster, &g, SKV_PUT_ANY, NULL, NULL, &e->err),
			 SKV_OK);
	q.lease_ms = 3000; /* only_leased has no effect */
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	assert_int_equal(r.matched, 10);
	assert_int_equal(r.lease_ms, 3000);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(r.hit[i], i > 8 && i != 15);
}

/* A lease that is no use keeps a block all the same, however long ago it was used. */
static void trailing_hits_are_leased_and_not_used(void **state)
{
	struct env *e = *state;
	static const uint32_t pauses[] = { 1000, 3600u * 1000 };
	uint32_t has[2] = { 7, 7 };
	struct skv_key k[2];
	struct skv_lookup_req q = ask(SKV_LOOKUP_TRAILING, k, 2);
	struct skv_lookup_res r;
	uint64_t idle;

	env_keys(k, 2, 1, 1);
	put(e, k, has, 2);
	q.lease_ms = 3000;
	for (uint32_t i = 0; i < 2; i++) {
		env_advance(e, pauses[i]);
		assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
		assert_int_equal(r.matched, 2);
		assert_int_equal(r.lease_ms, 3000);
		assert_in_range(lease_of(e, k[0], &idle), 3000, 3008);
		assert_true(idle >= (pauses[i] < 900000 ? pauses[i] : 900000));
		env_advance(e, 2900);
		assert_true(lease_of(e, k[1], &idle) >= 100);
		env_advance(e, 200);
		assert_int_equal(lease_of(e, k[1], &idle), 0);
	}
	q.mode = SKV_LOOKUP_BATCH;
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	lease_of(e, k[0], &idle);
	assert_int_equal(idle, 0);
}

/* ---- storages and times ---------------------------------------------------------------------- */

static void set_enabled(struct env *e, const char *name, bool enabled)
{
	struct skv_storage_spec s = { .name = name, .type = "null", .root = "",
				      .capacity = 8192 * KB, .unit = 64 * KB,
				      .file_size = 64 * KB * 16, .enabled = enabled };

	assert_int_equal(skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err),
			 SKV_OK);
}

static void specs_on_disabled_storages_may_be_skipped(void **state)
{
	struct env *e = *state;
	static const char *const both[2] = { "s", "s2" };
	struct skv_group_spec g = { .name = "g", .storages = both, .n_storages = 2 };
	uint32_t full[2] = { FULL, FULL }, rest[2] = { STATE | EXTRA, STATE | EXTRA }, n;
	struct skv_key k[2];
	struct skv_lookup_req q = ask(SKV_LOOKUP_PREFIX, k, 2);
	struct skv_lookup_res r;

	env_keys(k, 2, 1, 1);
	put(e, k, full, 2);
	assert_int_equal(env_storage(e, "s2", 8192 * KB, 64 * KB), SKV_OK);
	assert_int_equal(skv_cluster_group_put(e->cluster, &g, SKV_PUT_ANY, NULL, NULL, &e->err),
			 SKV_OK);
	skv_cluster_tick(e->cluster);
	set_enabled(e, "s", false);
	put(e, k, rest, 2); /* goes to the other one */
	assert_int_equal(skv_core_lookup_length(e->core, &q, &n, &e->arena, &e->err), SKV_OK);
	assert_int_equal(n, 2); /* existing blocks stay readable */
	q.skip_disabled = true;
	assert_int_equal(skv_core_lookup_length(e->core, &q, &n, &e->arena, &e->err), SKV_OK);
	assert_int_equal(n, 0);
	q.partial = true;
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	assert_int_equal(r.matched, 2);
	assert_int_equal(r.loc[0].length, 0);
	assert_int_equal(r.loc[1].length, 8 * KB);
	set_enabled(e, "s", true);
	q.partial = false;
	assert_int_equal(skv_core_lookup_length(e->core, &q, &n, &e->arena, &e->err), SKV_OK);
	assert_int_equal(n, 2);
}

static void lookups_tell_when_blocks_were_made(void **state)
{
	struct env *e = *state;
	uint32_t has = 7;
	struct skv_key k[3];
	struct skv_lookup_req q = ask(SKV_LOOKUP_BATCH, k, 3);
	struct skv_lookup_res r;
	uint64_t first = skv_wall_ms(e->o.clock), second;

	env_keys(k, 3, 1, 1);
	put(e, &k[0], &has, 1);
	env_advance(e, 5000);
	second = skv_wall_ms(e->o.clock);
	put(e, &k[2], &has, 1);
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	assert_null(r.created_ms);
	q.want_created = true;
	for (int restart = 0; restart < 3; restart++) {
		assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
		assert_int_equal(r.created_ms[0], first);
		assert_int_equal(r.created_ms[1], 0);
		assert_int_equal(r.created_ms[2], second);
		if (restart == 0)
			env_crash(e);
		else
			env_shutdown(e);
		env_open(e);
	}
}

/* ---- what goes ------------------------------------------------------------------------------- */

#define PROMPTS 16u
#define LONG 16u /* blocks of a prompt */

/* Prompts of LONG blocks with `has` each, the last two with `end`, in an instance of its own with
 * this policy and room for just these. */
static void fill(struct env *e, const char *policy, uint32_t has, uint32_t end,
		 struct skv_key k[PROMPTS][LONG])
{
	static const char *const one[] = { "s" };
	struct skv_group_spec g = { .name = "g", .storages = one, .n_storages = 1,
				    .policy = policy };
	uint32_t specs[LONG];
	struct skv_group_view *v;

	for (uint32_t i = 0; i < LONG; i++)
		specs[i] = i + 2 < LONG ? has : end;
	assert_int_equal(skv_cluster_group_put(e->cluster, &g, SKV_PUT_ANY, NULL, NULL, &e->err),
			 SKV_OK);
	for (uint32_t p = 0; p < PROMPTS; p++) {
		env_keys(k[p], LONG, 100 + p, 1);
		put(e, k[p], specs, LONG);
		env_advance(e, 10);
	}
	assert_int_equal(skv_cluster_group(e->cluster, "g", &e->arena, &v, &e->err), SKV_OK);
	g.capacity = v->used_bytes;
	assert_int_equal(skv_cluster_group_put(e->cluster, &g, SKV_PUT_ANY, NULL, NULL, &e->err),
			 SKV_OK);
}

/* Makes room for n blocks with these specs, each in a chain of its own. */
static void displace(struct env *e, uint32_t n, uint32_t has)
{
	for (uint32_t i = 0; i < n; i++) {
		struct skv_key k = { 7777, i };

		put(e, &k, &has, 1);
		env_advance(e, 10);
	}
}

/* States at the end of a prompt's blocks: the prompts that were not used for longest go as a whole,
 * and of the others none loses its state. */
static void states_of(struct env *e, const char *policy)
{
	struct skv_key k[PROMPTS][LONG];
	uint32_t torn = 0, whole = 0;
	struct skv_lookup_res r;

	fill(e, policy, FULL, FULL | STATE, k);
	for (uint32_t p = PROMPTS; p-- > 0; env_advance(e, 10)) {
		struct skv_lookup_req q = ask(SKV_LOOKUP_HYBRID, k[p], LONG);

		q.full_specs = FULL;
		q.state_specs = STATE;
		assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
		assert_int_equal(r.matched, LONG);
	}
	displace(e, PROMPTS * LONG / 4, FULL | STATE);
	for (uint32_t p = 0; p < PROMPTS; p++) {
		struct skv_lookup_req q = ask(SKV_LOOKUP_HYBRID, k[p], LONG);
		uint32_t hit;

		q.full_specs = FULL;
		q.state_specs = STATE;
		q.peek = true;
		assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
		hit = r.matched;
		whole += hit == LONG;
		q.state_specs = FULL; /* finds every spec that exists */
		assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
		torn += hit < LONG && r.matched > 0;
	}
	assert_true(torn <= 1);
	assert_in_range(whole, PROMPTS / 4, PROMPTS - 1);
}

static void states_go_with_their_prompts_by_lru(void **state) { states_of(*state, "lru"); }
static void states_go_with_their_prompts_by_reuse(void **state) { states_of(*state, "reuse"); }

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(modes_against_plain_ones),
		SCENE(hybrid_ends_at_the_checkpoint),
		SCENE(bad_modes_are_refused),
		SCENE(only_what_is_returned_is_leased),
		SCENE(only_what_can_be_leased_is_returned),
		SCENE(of_trailing_hits_the_last_are_leased),
		SCENE(trailing_hits_are_leased_and_not_used),
		SCENE(peeking_is_not_noticed),
		SCENE(specs_on_disabled_storages_may_be_skipped),
		SCENE(lookups_tell_when_blocks_were_made),
		SCENE(states_go_with_their_prompts_by_lru),
		SCENE(states_go_with_their_prompts_by_reuse),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
