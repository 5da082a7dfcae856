/*
 * test_core_nth.c - one scenario, run again and again with the n-th store call or the n-th
 * allocation failing, for n = 1, 2, 3... until nothing fails any more. After each failure the
 * client retries as ours does; at the end everything that was acknowledged must be there and
 * everything must add up.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#include <skv/mem.h>

#define CHAIN 12u
#define TRIES 12

static bool transient(int rc)
{
	return rc == SKV_E_STORE_IO || rc == SKV_E_STORE_FULL || rc == SKV_E_UNKNOWN_OUTCOME ||
	       rc == SKV_E_NOT_READY || rc == SKV_E_NOT_OWNER || rc == SKV_E_NOMEM ||
	       rc == SKV_E_JOURNAL_FULL || rc == SKV_E_UNAVAILABLE;
}

/* A manager that cannot start is started again. */
static void open_again(struct env *e)
{
	for (int i = 0; i < TRIES; i++) {
		struct skv_store *below = NULL;
		int rc = skv_store_open(e->ops, &e->store_options, &below, &e->err);

		e->store = below;
		if (rc == SKV_OK && e->faulty) {
			rc = skv_fault_store_open(below, &e->store, &e->err);
			if (rc != SKV_OK)
				skv_store_close(below);
		}
		if (rc != SKV_OK)
			continue;
		env_arm(e);
		e->o.store = e->store;
		rc = skv_cluster_create(&e->o, &e->all, &e->cluster, &e->err);
		e->core = rc == SKV_OK ? skv_cluster_core(e->cluster, 0) : NULL;
		if (rc == SKV_OK && skv_cluster_wait_ready(e->cluster, 5000) == SKV_OK) {
			skv_cluster_tick(e->cluster);
			return;
		}
		if (rc == SKV_OK)
			env_crash(e);
		else
			skv_store_close(e->store);
	}
	fail_msg("the manager does not start: %s", e->err.message);
}

#define INSIST(e, rc, call)                                                                        \
	do {                                                                                       \
		for (int insist_i = 0; insist_i < TRIES; insist_i++) {                             \
			(rc) = (call);                                                             \
			if (!transient(rc))                                                        \
				break;                                                             \
			env_advance(e, 700);                                                       \
		}                                                                                  \
	} while (0)

static void register_all(struct env *e)
{
	struct skv_spec specs[2] = { { "a", 4096 }, { "b", 12288 } };
	int rc;

	INSIST(e, rc, env_storage(e, "s", 4 << 20, 65536));
	assert_int_equal(rc, SKV_OK);
	INSIST(e, rc, env_group(e, "g", 0, "s"));
	assert_int_equal(rc, SKV_OK);
	INSIST(e, rc, env_instance(e, "i", "g", specs, 2));
	assert_int_equal(rc, SKV_OK);
}

static void start(struct env *e, const struct skv_key *keys, const char *id, char session[33],
		  bool *written)
{
	struct skv_start_res r;
	int rc;

	INSIST(e, rc,
	       env_start(e, &(struct env_start){ .request_id = id, .keys = keys, .n = CHAIN }, &r));
	if (rc != SKV_OK)
		fail_msg("start %s: %s %s", id, skv_status_name(rc), e->err.message);
	*written = r.n_write > 0 && r.state == SKV_SESSION_OPEN;
	memcpy(session, r.session, 33);
}

/* True when acknowledged. */
static bool finish(struct env *e, const char *session)
{
	struct skv_finish_res f;
	int rc;

	INSIST(e, rc, env_finish(e, session, NULL, 0, &f));
	if (rc == SKV_E_SESSION_EXPIRED)
		return false;
	if (rc != SKV_OK)
		fail_msg("finish: %s %s", skv_status_name(rc), e->err.message);
	return f.committed > 0;
}

static uint32_t found(struct env *e, const struct skv_key *keys)
{
	struct skv_lookup_res r;
	int rc;

	INSIST(e, rc, env_lookup(e, keys, CHAIN, SKV_LOOKUP_BATCH, 100, &r));
	assert_int_equal(rc, SKV_OK);
	return r.matched;
}

static void drop(struct env *e, const struct skv_key *keys)
{
	uint32_t n;
	int rc;

	INSIST(e, rc, env_delete(e, keys, CHAIN, &n));
	assert_int_equal(rc, SKV_OK);
	assert_int_equal(found(e, keys), 0);
}

#define WELL_OR_GONE(e, call)                                                                     \
	do {                                                                                      \
		int well_rc;                                                                      \
		INSIST(e, well_rc, call);                                                         \
		/* gone: by a try whose answer was lost */                                        \
		if (well_rc != SKV_OK && well_rc != SKV_E_NOT_FOUND)                              \
			fail_msg("%s: %s %s", #call, skv_status_name(well_rc), (e)->err.message); \
	} while (0)

/* Everything that was started until then goes. */
static void trim(struct env *e, uint64_t until)
{
	uint64_t n;
	int rc;

	INSIST(e, rc, env_trim(e, 0, until, &n));
	if (rc != SKV_OK)
		fail_msg("trim: %s %s", skv_status_name(rc), e->err.message);
}

/* A storage, a group and an instance that are used and then deleted. */
static void come_and_go(struct env *e)
{
	struct skv_spec spec = { "c", 8192 };
	struct skv_key k[CHAIN];
	struct skv_start_res r;
	struct skv_finish_res f;
	char session[33];
	int rc;

	INSIST(e, rc, env_storage(e, "s2", 1 << 20, 65536));
	assert_int_equal(rc, SKV_OK);
	INSIST(e, rc, env_group(e, "g2", 0, "s2"));
	assert_int_equal(rc, SKV_OK);
	INSIST(e, rc, env_instance(e, "j", "g2", &spec, 1));
	assert_int_equal(rc, SKV_OK);
	env_keys(k, CHAIN, 77, 1);
	INSIST(e, rc,
	       env_start(e, &(struct env_start){ .instance = "j", .request_id = "j", .keys = k,
						 .n = CHAIN }, &r));
	assert_int_equal(rc, SKV_OK);
	memcpy(session, r.session, 33);
	INSIST(e, rc, env_finish(e, session, NULL, 0, &f));
	WELL_OR_GONE(e, skv_cluster_instance_delete(e->cluster, "t", "j", NULL, &e->err));
	WELL_OR_GONE(e, skv_cluster_group_delete(e->cluster, "g2", &e->err));
	WELL_OR_GONE(e, skv_cluster_storage_delete(e->cluster, "s2", &e->err));
}

/* Pins of one chain that last, and of another that are taken back. Returns whether all
 * of the first are pinned. */
static bool pin(struct env *e, const struct skv_key *lasting, const struct skv_key *brief)
{
	struct skv_pin_res res;
	uint32_t pinned;
	uint64_t n;
	int rc;

	INSIST(e, rc, env_pin(e, lasting, CHAIN, SKV_PIN_HARD, 0, &res));
	assert_int_equal(rc, SKV_OK);
	pinned = res.pinned;
	INSIST(e, rc, env_pin(e, brief, CHAIN, SKV_PIN_SOFT, 1000000, &res));
	assert_int_equal(rc, SKV_OK);
	INSIST(e, rc, env_unpin(e, brief, CHAIN, &n));
	assert_int_equal(rc, SKV_OK);
	return pinned == CHAIN;
}

/* Pins that are told are those of this chain. */
static void pinned_still(struct env *e, const struct skv_key *keys, bool all)
{
	struct skv_pins_req req = { .tenant = "t", .instance = "i", .max = 4 * CHAIN };
	struct skv_pins_res res;
	int rc;

	INSIST(e, rc, skv_core_pins(e->core, &req, &res, &e->arena, &e->err));
	assert_int_equal(rc, SKV_OK);
	if (all)
		assert_int_equal(res.n, CHAIN);
	for (uint32_t i = 0; i < res.n; i++)
		assert_true(res.key[i].hi == keys[0].hi && res.kind[i] == SKV_PIN_HARD &&
			    res.ttl_ms[i] == 0);
}

/* Everything goes, also what is being written, and stays away. */
static void clear(struct env *e, const struct skv_key *before, const struct skv_key *after)
{
	char session[33];
	bool open, acknowledged;
	uint64_t n;
	int rc;

	start(e, after, "open", session, &open);
	INSIST(e, rc, env_clear(e, NULL, &n));
	if (rc != SKV_OK)
		fail_msg("clear: %s %s", skv_status_name(rc), e->err.message);
	assert_int_equal(found(e, before), 0);
	start(e, after, "after", session, &open);
	acknowledged = open && finish(e, session);
	env_crash(e);
	open_again(e);
	assert_int_equal(found(e, before), 0);
	if (acknowledged && found(e, after) != CHAIN)
		fail_msg("what was written after the clear is lost");
}

static void scenario(struct env *e)
{
	struct skv_key k[6][CHAIN], old[CHAIN];
	char session[6][33], id[8];
	bool acknowledged[6] = { false }, open[6], pinned;
	uint64_t long_ago;

	open_again(e);
	register_all(e);
	env_keys(old, CHAIN, 55, 1);
	start(e, old, "old", session[0], &open[0]);
	if (open[0])
		finish(e, session[0]);
	long_ago = skv_wall_ms(e->o.clock);
	env_advance(e, 10);
	for (uint32_t c = 0; c < 6; c++) {
		env_keys(k[c], CHAIN, c + 1, 1);
		snprintf(id, sizeof id, "r%u", c);
		start(e, k[c], id, session[c], &open[c]);
		if (c < 4 && open[c])
			acknowledged[c] = finish(e, session[c]);
	}
	pinned = pin(e, k[0], k[2]);
	come_and_go(e);
	drop(e, k[1]);
	acknowledged[1] = false;
	trim(e, long_ago);
	skv_cluster_tick(e->cluster);
	env_crash(e);
	open_again(e);
	if (open[4])
		acknowledged[4] = finish(e, session[4]);
	env_shutdown(e);
	open_again(e);
	if (open[5])
		acknowledged[5] = finish(e, session[5]);
	for (uint32_t c = 0; c < 6; c++)
		if (acknowledged[c] && found(e, k[c]) != CHAIN)
			fail_msg("acknowledged chain %u is lost", c);
	assert_int_equal(found(e, k[1]), 0);
	assert_int_equal(found(e, old), 0);
	pinned_still(e, k[0], pinned && acknowledged[0]);
	clear(e, k[0], k[1]);
}

static void leaks_nothing(struct env *e)
{
	struct skv_stats st;
	int i = 0;

	env_check(e);
	/* The fault may come only now, and have it load again, and hold what it did before. */
	do {
		env_advance(e, 60000);
		env_stats(e, &st);
	} while (++i < 4 || (i < 12 && st.storages[0].quarantined_bytes));
	env_check(e);
	assert_int_equal(st.sessions, 0);
	assert_int_equal(st.storages[0].quarantined_bytes, 0);
	assert_int_equal(st.storages[0].used_bytes, st.blocks * (4096 + 12288));
}

static uint64_t nth_store_call(enum skv_durability durability, enum skv_fault_kind kind, int status,
			       uint64_t n)
{
	struct skv_fault rule = { .kind = kind, .at = n, .times = 1, .status = status };
	struct env e;
	uint64_t seen;

	env_init(&e);
	e.faulty = true;
	e.store_options.durability = durability;
	e.o.journal_limit = 16384; /* a checkpoint happens on the way */
	e.rule = &rule;
	scenario(&e);
	seen = e.seen + skv_fault_store_seen(e.store);
	leaks_nothing(&e);
	env_destroy(&e);
	return seen;
}

static void sweep_store(enum skv_durability durability)
{
	static const struct {
		enum skv_fault_kind kind;
		int status;
		const char *name;
	} faults[] = {
		{ SKV_FAULT_ERROR, SKV_E_STORE_IO, "failing" },
		{ SKV_FAULT_ERROR, SKV_E_STORE_FULL, "full" },
		{ SKV_FAULT_UNKNOWN_BEFORE, 0, "unknown, not done" },
		{ SKV_FAULT_UNKNOWN_AFTER, 0, "unknown, done" },
	};

	for (size_t f = 0; f < 4; f++) {
		uint64_t n = 1;

		while (nth_store_call(durability, faults[f].kind, faults[f].status, n) >= n)
			n++;
		print_message("%s, store call %s: survived at each of %llu calls\n",
			      durability == SKV_DURABILITY_FULL ? "full" : "normal", faults[f].name,
			      (unsigned long long)n - 1);
		assert_true(n > 20);
	}
}

static void every_store_call_full(void **state)
{
	(void)state;
	sweep_store(SKV_DURABILITY_FULL);
}

static void every_store_call_normal(void **state)
{
	(void)state;
	sweep_store(SKV_DURABILITY_NORMAL);
}

static void every_allocation(void **state)
{
	unsigned long n = 1;
	bool reached = true;

	(void)state;
	for (; reached; n++) {
		struct env e;

		env_init(&e);
		e.store_options.durability = n % 2 ? SKV_DURABILITY_FULL : SKV_DURABILITY_NORMAL;
		e.o.journal_limit = 16384;
		skv_mem_fail_at(n);
		scenario(&e);
		reached = skv_mem_count() >= n;
		skv_mem_fail_at(0);
		leaks_nothing(&e);
		env_destroy(&e);
	}
	print_message("survived each of %lu allocations failing\n", n - 2);
	assert_true(n > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_store_call_full),
		cmocka_unit_test(every_store_call_normal),
		cmocka_unit_test(every_allocation),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
