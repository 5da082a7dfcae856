/*
 * bench_core.c - the core alone, in one thread, over SQLite: memory for each block, lookups, writes, restart.
 *
 *	bench_core [BLOCKS [DIRECTORY [NAME]]]	(default: 1000000 /tmp 0: NAME bytes of name for each block)
 *
 * No part of the tests: it judges nothing. Numbers are of CPU and wall time of this process; the fake clock of the
 * test environment stands still, so nothing expires meanwhile.
 */
#include "core_env.h"

#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH 512u
#define LEASE_MS 5000u /* of the ownership; a killed owner's is waited for, outside of the time that is told */

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double resident(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%*s %lu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* Keys as engines make them: hashes. */
static void make_keys(struct skv_key *k, uint64_t first)
{
	for (uint64_t i = 0; i < BATCH; i++) {
		uint64_t n = first + i;

		k[i] = skv_hash128(&n, sizeof n);
	}
}

static void make_instance(struct env *e, uint64_t capacity, bool named)
{
	const struct skv_spec spec = { "kv", 4096 };
	const struct skv_instance_spec i = { .tenant = "t", .id = "i", .group = "g", .specs = &spec, .n_specs = 1, .extra = "",
					     .named = named };

	assert_int_equal(env_storage(e, "s", capacity, 64 << 20), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(skv_core_instance_put(e->core, &i, NULL, &e->err), SKV_OK);
}

static void put(struct env *e, const struct skv_key *k, size_t name)
{
	static uint8_t bytes[SKV_MAX_BLOCK_NAME];
	struct skv_bytes names[BATCH];
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];

	for (uint32_t i = 0; i < BATCH; i++)
		names[i] = (struct skv_bytes){ bytes, name };
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = BATCH, .names = name ? names : NULL }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(f.committed, BATCH);
}

static void fill(struct env *e, uint64_t blocks, size_t name)
{
	struct skv_key k[BATCH];
	double empty = resident(), wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), worst = 0;

	for (uint64_t n = 0; n < blocks; n += BATCH) {
		make_keys(k, n);
		put(e, k, name);
		if (n / BATCH % 1024 == 1023) {
			double each = (resident() - empty) / (double)(n + BATCH);

			worst = each > worst && n > blocks / 2 ? each : worst;
			printf("\r%llu blocks, %.1f bytes each ", (unsigned long long)n, each);
			fflush(stdout);
		}
	}
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	malloc_trim(0);
	printf("\rmemory: %.1f bytes a block, at most %.1f in the second half\n", (resident() - empty) / (double)blocks,
	       worst);
	printf("start + finish: %.0f blocks/s, %.2f us CPU a block\n", (double)blocks / wall, cpu * 1e6 / (double)blocks);
}

enum kind { HITS, MISSES, SCATTERED };

static void lookups(struct env *e, uint64_t blocks, enum kind kind)
{
	static const char *const what[] = { "all hits, one chain", "all misses", "all hits, scattered" };
	uint64_t calls = 0, seed = 12345;
	struct skv_key k[BATCH];
	double spent = 0;

	while (spent < 2) {
		struct skv_lookup_res r;
		double t;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		make_keys(k, (seed >> 20) % (blocks / BATCH) * BATCH + (kind == MISSES ? blocks * 2 : 0));
		for (uint32_t i = 0; kind == SCATTERED && i < BATCH; i++) {
			uint64_t n = ((seed >> 20) + i * 7919ull * 104729) % blocks;

			k[i] = skv_hash128(&n, sizeof n);
		}
		t = seconds(CLOCK_PROCESS_CPUTIME_ID);
		assert_int_equal(env_lookup(e, k, BATCH, SKV_LOOKUP_BATCH, 1000, &r), SKV_OK);
		spent += seconds(CLOCK_PROCESS_CPUTIME_ID) - t;
		calls++;
	}
	printf("lookup of %u, %s: %.1f us CPU a call\n", BATCH, what[kind], spent * 1e6 / (double)calls);
}

static void restart(struct env *e, bool clean)
{
	double wall = seconds(CLOCK_MONOTONIC);

	if (clean)
		env_shutdown(e);
	else
		env_crash(e);
	printf("%s: %.2f s; ", clean ? "clean stop" : "kill", seconds(CLOCK_MONOTONIC) - wall);
	if (!clean)
		poll(NULL, 0, LEASE_MS + 100);
	wall = seconds(CLOCK_MONOTONIC);
	env_open(e);
	printf("ready again after %.2f s\n", seconds(CLOCK_MONOTONIC) - wall);
}

/* The call with its record, then the sweep behind it. */
static void clear(struct env *e)
{
	double wall = seconds(CLOCK_MONOTONIC), longest = 0, sweep;
	struct skv_stats st;
	uint64_t n;

	assert_int_equal(env_clear(e, NULL, &n), SKV_OK);
	wall = seconds(CLOCK_MONOTONIC) - wall;
	sweep = seconds(CLOCK_MONOTONIC);
	for (env_stats(e, &st); st.storages[0].used_bytes; env_stats(e, &st)) {
		double t = seconds(CLOCK_MONOTONIC);

		skv_core_tick(e->core);
		t = seconds(CLOCK_MONOTONIC) - t;
		longest = t > longest ? t : longest;
	}
	printf("clear of %llu blocks: %.2f ms, the sweep %.0f ms, at most %.2f ms in one go\n", (unsigned long long)n, wall * 1e3,
	       (seconds(CLOCK_MONOTONIC) - sweep) * 1e3, longest * 1e3);
}

int main(int argc, char **argv)
{
	uint64_t blocks = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	size_t name = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	char dir[200], path[256];
	struct env e;

	blocks -= blocks % BATCH;
	if (blocks == 0 || name > SKV_MAX_BLOCK_NAME)
		return 2;
	snprintf(dir, sizeof dir, "%s/skv-core-XXXXXX", argc > 2 ? argv[2] : "/tmp");
	if (!mkdtemp(dir))
		return 2;
	snprintf(path, sizeof path, "%s/slabkv.db", dir);
	env_quiet();
	env_init(&e);
	e.ops = &skv_store_sqlite;
	e.store_options = (struct skv_store_options){ .path = path, .durability = SKV_DURABILITY_NORMAL };
	e.o.owner_lease_ms = LEASE_MS;
	env_open(&e);
	make_instance(&e, (blocks + blocks / 8 + 65536) * 4096, name > 0);
	fill(&e, blocks, name);
	lookups(&e, blocks, HITS);
	lookups(&e, blocks, SCATTERED);
	lookups(&e, blocks, MISSES);
	restart(&e, false);
	restart(&e, true);
	restart(&e, false);
	clear(&e);
	env_destroy(&e);
	printf("%s stays behind: remove it\n", dir);
	return 0;
}
