/*
 * bench_core.c - the core alone, in one thread, over SQLite: memory for each block,
 * lookups, writes, restart.
 *
 *      bench_core [BLOCKS [DIRECTORY [NAME]]]  (default: 1000000 /tmp 0: NAME bytes of
 *                                              name for each block)
 *      bench_core partitions [SECONDS [STORE]] two groups, each written by four threads: in one
 *                                              partition, then in 4, by turns (default: 3, and
 *                                              SQLite in /tmp)
 *      bench_core full [BLOCKS [SECONDS]]      what an eviction costs: eight writers in an empty
 *                                              store, and in one with so many blocks that is
 *                                              full, by turns (default: 1000000, 3)
 *      bench_core takeover [BLOCKS [DIRECTORY]]
 *                                              CPU time of a restart after a kill, and of a
 *                                              takeover by a standby that followed (default:
 *                                              1000000, and /tmp)
 *      bench_core beside [SECONDS]             how long a lookup of one key waits for the lock
 *                                              beside four writers of 512 blocks a call (default:
 *                                              3)
 *
 * No part of the tests: it judges nothing. Numbers are of CPU and wall time of this process; the
 * fake clock of the test environment stands still, so nothing expires meanwhile.
 */
#include "core_env.h"

#include <ftw.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH 512u
#define LEASE_MS                                                                                 \
	/* of the ownership; a killed owner's is waited for, outside of the time that is told */ \
	5000u

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
	const struct skv_instance_spec i = { .tenant = "t", .id = "i", .group = "g", .specs = &spec,
					     .n_specs = 1, .extra = "",
					     .named = named };

	assert_int_equal(env_storage(e, "s", capacity, 64 << 20), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(skv_cluster_instance_put(e->cluster, &i, SKV_PUT_ANY, NULL, &e->err),
			 SKV_OK);
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
	assert_int_equal(env_start(e,
				   &(struct env_start){ .keys = k, .n = BATCH,
							.names = name ? names : NULL }, &s),
			 SKV_OK);
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(f.committed, BATCH);
}

static void fill(struct env *e, uint64_t blocks, size_t name)
{
	struct skv_key k[BATCH];
	double empty = resident(), wall = seconds(CLOCK_MONOTONIC),
	       cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), worst = 0;

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
	printf("\rmemory: %.1f bytes a block, at most %.1f in the second half\n",
	       (resident() - empty) / (double)blocks, worst);
	printf("start + finish: %.0f blocks/s, %.2f us CPU a block\n", (double)blocks / wall,
	       cpu * 1e6 / (double)blocks);
}

enum kind { HITS, MISSES, SCATTERED };

static void lookups(struct env *e, uint64_t blocks, enum kind kind)
{
	static const char *const what[] = { "all hits, one chain", "all misses",
					    "all hits, scattered" };
	uint64_t calls = 0, seed = 12345;
	struct skv_key k[BATCH];
	double spent = 0;

	while (spent < 2) {
		struct skv_lookup_res r;
		double t;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		make_keys(k, (seed >> 20) % (blocks / BATCH) * BATCH +
				     (kind == MISSES ? blocks * 2 : 0));
		for (uint32_t i = 0; kind == SCATTERED && i < BATCH; i++) {
			uint64_t n = ((seed >> 20) + i * 7919ull * 104729) % blocks;

			k[i] = skv_hash128(&n, sizeof n);
		}
		t = seconds(CLOCK_PROCESS_CPUTIME_ID);
		assert_int_equal(env_lookup(e, k, BATCH, SKV_LOOKUP_BATCH, 1000, &r), SKV_OK);
		spent += seconds(CLOCK_PROCESS_CPUTIME_ID) - t;
		calls++;
	}
	printf("lookup of %u, %s: %.1f us CPU a call\n", BATCH, what[kind],
	       spent * 1e6 / (double)calls);
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

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	return remove(path);
}

/* A standby that followed goes on; then, for comparison, the next owner loads everything. */
static int takeover(uint64_t blocks, const char *where)
{
	char dir[200], path[256];
	struct skv_key k[BATCH];
	struct env a, b;
	double cpu;

	snprintf(dir, sizeof dir, "%s/skv-core-XXXXXX", where);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/slabkv.db", dir);
	env_quiet();
	env_init(&a);
	a.ops = &skv_store_sqlite;
	a.store_options = (struct skv_store_options){ .path = path,
						      .durability = SKV_DURABILITY_NORMAL };
	a.o.owner_lease_ms = LEASE_MS;
	env_open(&a);
	make_instance(&a, (blocks + blocks / 8 + 65536) * 4096, false);
	env_init(&b);
	b.ops = a.ops;
	b.store_options = a.store_options;
	b.o.owner_lease_ms = LEASE_MS;
	assert_int_equal(skv_store_open(b.ops, &b.store_options, &b.store, &b.err), SKV_OK);
	b.o.store = b.store;
	env_create(&b);
	for (uint64_t n = 0; n < blocks; n += BATCH) {
		make_keys(k, n);
		put(&a, k, 0);
		if (n / BATCH % 16 == 0) {
			skv_fake_clock_advance(&b.clock, 20);
			skv_cluster_tick(b.cluster);
		}
	}
	for (int i = 0; i < 100; i++) {
		skv_fake_clock_advance(&b.clock, 20);
		skv_cluster_tick(b.cluster);
	}
	env_crash(&a);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	poll(NULL, 0, LEASE_MS + 100);
	skv_fake_clock_advance(&b.clock, LEASE_MS);
	assert_int_equal(skv_cluster_wait_ready(b.cluster, 60000), SKV_OK);
	skv_cluster_tick(b.cluster);
	printf("takeover of %llu blocks that were followed: %.3f s CPU\n",
	       (unsigned long long)blocks, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	env_crash(&b);
	poll(NULL, 0, LEASE_MS + 100);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	env_open(&b);
	printf("restart after a kill: %.3f s CPU\n", seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	env_destroy(&b);
	env_destroy(&a);
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return 0;
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

		skv_cluster_tick(e->cluster);
		t = seconds(CLOCK_MONOTONIC) - t;
		longest = t > longest ? t : longest;
	}
	printf("clear of %llu blocks: %.2f ms, the sweep %.0f ms, at most %.2f ms in one go\n",
	       (unsigned long long)n, wall * 1e3, (seconds(CLOCK_MONOTONIC) - sweep) * 1e3,
	       longest * 1e3);
}

/* ---- partitions ------------------------------------------------------------------------------ */

#define GROUPS 2u
#define WRITERS (4u * GROUPS)
#define ROUNDS 3u

/* Writes to a group without pause. */
struct writer {
	struct skv_core *core;
	const char *instance;
	double seconds;
	uint32_t batch; /* keys of a call, at most BATCH */
	uint64_t first, blocks; /* of its keys; written */
	pthread_t thread;
	sem_t done;
	int status;
};

static void on_done(void *ctx, int status)
{
	struct writer *w = ctx;

	w->status = status;
	sem_post(&w->done);
}

static int await(struct writer *w, int rc)
{
	if (rc != SKV_PENDING)
		return rc;
	while (sem_wait(&w->done) != 0)
		;
	return w->status;
}

static void *write_blocks(void *arg)
{
	struct writer *w = arg;
	const struct skv_done done = { on_done, w };
	double end = seconds(CLOCK_MONOTONIC) + w->seconds;
	struct skv_arena a;

	skv_arena_init(&a);
	while (seconds(CLOCK_MONOTONIC) < end) {
		struct skv_key k[BATCH];
		struct skv_start_req s = { .tenant = "t", .instance = w->instance,
					   .request_id = "", .keys = k,
					   .n_keys = w->batch };
		struct skv_start_res started = { 0 };
		struct skv_finish_res finished = { 0 };
		struct skv_finish_req f = { .tenant = "t", .session = started.session };
		struct skv_error err = { 0 };

		make_keys(k, w->first + w->blocks);
		assert_int_equal(await(w, skv_core_start(w->core, &s, &started, &a, &err, &done)),
				 SKV_OK);
		assert_int_equal(
			await(w, skv_core_finish(w->core, &f, &finished, &a, &err, &done)), SKV_OK);
		assert_int_equal(finished.committed, w->batch);
		w->blocks += w->batch;
		skv_arena_reset(&a);
	}
	skv_arena_destroy(&a);
	return NULL;
}

static void make_writer(struct writer *w, struct skv_cluster *c, const char *name,
			uint64_t capacity)
{
	const struct skv_spec spec = { "kv", 4096 };
	const struct skv_storage_spec d = { .name = name, .type = "null", .root = "",
					    .capacity = capacity, .unit = 64 << 20,
					    .file_size = 1ull << 34, .enabled = true };
	const struct skv_group_spec g = { .name = name, .storages = &name, .n_storages = 1 };
	const struct skv_instance_spec i = { .tenant = "t", .id = name, .group = name,
					     .specs = &spec, .n_specs = 1, .extra = "" };
	const struct skv_target t = { SKV_TARGET_INSTANCE, "t", name, 0 };
	struct skv_error err = { 0 };
	struct skv_door door;

	*w = (struct writer){ .instance = name };
	sem_init(&w->done, 0, 0);
	assert_int_equal(skv_cluster_storage_put(c, &d, SKV_PUT_ANY, NULL, &err), SKV_OK);
	assert_int_equal(skv_cluster_group_put(c, &g, SKV_PUT_ANY, NULL, NULL, &err), SKV_OK);
	assert_int_equal(skv_cluster_instance_put(c, &i, SKV_PUT_ANY, NULL, &err), SKV_OK);
	assert_int_equal(skv_find(c, &t, &door), SKV_HERE);
	w->core = door.core;
}

/* All at once. Returns how many blocks were written, and adds the seconds of CPU that it took. */
static uint64_t run_writers(struct writer *w, uint32_t batch, double duration, double *cpu)
{
	uint64_t blocks = 0;

	*cpu -= seconds(CLOCK_PROCESS_CPUTIME_ID);
	for (uint32_t i = 0; i < WRITERS; i++) {
		w[i].first = (uint64_t)i << 40 | ((w[i].first + w[i].blocks) & 0xffffffffff);
		w[i].blocks = 0;
		w[i].seconds = duration;
		w[i].batch = batch;
		pthread_create(&w[i].thread, NULL, write_blocks, &w[i]);
	}
	for (uint32_t i = 0; i < WRITERS; i++) {
		pthread_join(w[i].thread, NULL);
		blocks += w[i].blocks;
	}
	*cpu += seconds(CLOCK_PROCESS_CPUTIME_ID);
	return blocks;
}

/* Blocks a second and CPUs used, with groups in as many partitions. */
static double write_in(uint32_t partitions, const char *text, double duration, double *cpus)
{
	static const char *const names[GROUPS] = { "a", "b" };
	const struct skv_store_options so = { .path = text, .durability = SKV_DURABILITY_NORMAL };
	const struct skv_cluster_options all = { .partitions = partitions };
	struct skv_core_options o;
	struct skv_cluster *cluster;
	struct skv_store *store;
	struct writer w[WRITERS];
	struct skv_error err = { 0 };
	uint64_t blocks = 0;

	assert_int_equal(skv_store_open(skv_store_backend(text), &so, &store, &err), SKV_OK);
	skv_core_options_init(&o);
	o.store = store;
	assert_int_equal(skv_cluster_create(&o, &all, &cluster, &err), SKV_OK);
	for (uint32_t i = 0; i < partitions; i++)
		while (skv_cluster_partition_state(cluster, i) != SKV_CORE_READY)
			poll(NULL, 0, 1);
	for (uint32_t i = 0; i < WRITERS; i++)
		make_writer(&w[i], cluster, names[i % GROUPS], 1ull << 38);
	*cpus = 0;
	blocks = run_writers(w, BATCH, duration, cpus);
	*cpus /= duration;
	for (uint32_t i = 0; i < WRITERS; i++)
		sem_destroy(&w[i].done);
	skv_cluster_destroy(cluster);
	skv_store_close(store);
	return (double)blocks / duration;
}

static int partitions(double duration, const char *store)
{
	double sum[2] = { 0 };

	env_quiet();
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (int many = 0; many < 2; many++) {
			char dir[] = "/tmp/skv-core-XXXXXX", path[64];
			double rate, cpus;

			if (!mkdtemp(dir))
				return 2;
			snprintf(path, sizeof path, "%s/slabkv.db", dir);
			rate = write_in(many ? 4 : 1, store ? store : path, duration, &cpus);
			sum[many] += rate;
			printf("two groups, %u partition%s: %.0f blocks/s, %.2f CPUs\n",
			       many ? 4 : 1, many ? "s" : "", rate, cpus);
			nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
		}
	}
	printf("4 partitions: %.2f of one\n", sum[1] / sum[0]);
	return 0;
}

/* ---- a full store ---------------------------------------------------------------------------- */

#define FULL_BATCH 128u

struct cost {
	double rate, cpu_us; /* blocks a second; of a block */
	uint64_t evicted;
};

/* Of writers of which each has an instance in one storage, after it is full; 0 `blocks`: that has
 * room. */
/* A core on a store in a new directory; `dir` as for mkdtemp. */
static struct skv_cluster *open_in(char *dir, struct skv_store **store)
{
	char path[64];
	struct skv_store_options so = { .path = path, .durability = SKV_DURABILITY_NORMAL };
	struct skv_core_options o;
	struct skv_error err = { 0 };
	struct skv_cluster *cluster;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/slabkv.db", dir);
	assert_int_equal(skv_store_open(&skv_store_sqlite, &so, store, &err), SKV_OK);
	skv_core_options_init(&o);
	o.store = *store;
	assert_int_equal(skv_cluster_create(&o, NULL, &cluster, &err), SKV_OK);
	assert_int_equal(skv_cluster_wait_ready(cluster, 10000), SKV_OK);
	return cluster;
}

static struct cost write_full(uint64_t blocks, double duration)
{
	static const char *const name = "a";
	struct skv_cluster *cluster;
	struct skv_store *store;
	char dir[] = "/tmp/skv-core-XXXXXX";
	struct skv_core_counters before, after;
	struct writer w[WRITERS];
	struct cost cost;
	double cpu = 0;
	uint64_t n;

	cluster = open_in(dir, &store);
	for (uint32_t i = 0; i < WRITERS; i++)
		make_writer(&w[i], cluster, name, blocks ? blocks * 4096 : 1ull << 38);
	do {
		run_writers(w, FULL_BATCH, 0.5, &cpu);
		skv_cluster_counters_get(cluster, &before);
	} while (blocks && before.evicted_blocks < blocks / 16);
	cpu = 0;
	n = run_writers(w, FULL_BATCH, duration, &cpu);
	skv_cluster_counters_get(cluster, &after);
	cost = (struct cost){ (double)n / duration, cpu * 1e6 / (double)n,
			      after.evicted_blocks - before.evicted_blocks };
	for (uint32_t i = 0; i < WRITERS; i++)
		sem_destroy(&w[i].done);
	skv_cluster_destroy(cluster);
	skv_store_close(store);
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return cost;
}

static int full(uint64_t blocks, double duration)
{
	env_quiet();
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct cost room = write_full(0, duration), none = write_full(blocks, duration);

		printf("{\"empty_blocks_per_s\":%.0f,\"full_blocks_per_s\":%.0f,"
		       "\"empty_us\":%.3f,\"full_us\":%.3f,\"evicted\":%llu}\n",
		       room.rate, none.rate, room.cpu_us, none.cpu_us,
		       (unsigned long long)none.evicted);
		fflush(stdout);
	}
	return 0;
}

/* ---- lookups beside writers ------------------------------------------------------------------ */

#define BESIDE 4u
#define LOOKS (1u << 24) /* of which the time is kept */

static int by_size(const void *a, const void *b)
{
	return (*(const uint32_t *)a > *(const uint32_t *)b) -
	       (*(const uint32_t *)a < *(const uint32_t *)b);
}

/* Asks until the time is over; returns how often, and how many ns each took. */
static uint32_t ask(struct skv_cluster *cluster, const char *name, double duration, uint32_t *ns)
{
	double end = seconds(CLOCK_MONOTONIC) + duration;
	struct skv_key k[BATCH];
	struct skv_match_req req = {
		.tenant = "t", .instances = &name, .n_instances = 1, .keys = k, .n_keys = 1
	};
	struct skv_match_res res;
	struct skv_error err = { 0 };
	struct skv_arena a;
	uint32_t n = 0;

	make_keys(k, 0);
	skv_arena_init(&a);
	for (double now = 0, then = seconds(CLOCK_MONOTONIC); now < end && n < LOOKS; then = now) {
		assert_int_equal(skv_cluster_match(cluster, &req, &res, &a, &err), SKV_OK);
		skv_arena_reset(&a);
		now = seconds(CLOCK_MONOTONIC);
		ns[n++] = (uint32_t)((now - then) * 1e9);
	}
	skv_arena_destroy(&a);
	return n;
}

static int beside(double duration)
{
	char dir[] = "/tmp/skv-core-XXXXXX";
	uint32_t *ns = calloc(LOOKS, sizeof *ns), n, waited;
	struct skv_core_counters c;
	struct skv_store *store;
	struct skv_cluster *cluster;
	struct writer w[BESIDE];
	uint64_t blocks = 0;

	env_quiet();
	assert_non_null(ns);
	cluster = open_in(dir, &store);
	for (uint32_t i = 0; i < BESIDE; i++) {
		make_writer(&w[i], cluster, "a", 1ull << 38);
		w[i].first = (uint64_t)i << 40;
		w[i].seconds = duration;
		w[i].batch = BATCH;
		pthread_create(&w[i].thread, NULL, write_blocks, &w[i]);
	}
	n = ask(cluster, "a", duration, ns);
	for (uint32_t i = 0; i < BESIDE; i++) {
		pthread_join(w[i].thread, NULL);
		sem_destroy(&w[i].done);
		blocks += w[i].blocks;
	}
	skv_cluster_counters_get(cluster, &c);
	qsort(ns, n, sizeof *ns, by_size);
	/* The slowest lookups are those that waited. */
	waited = c.lock_waits < n ? (uint32_t)c.lock_waits : n - 1;
	printf("%.0f blocks/s, %.0f lookups/s, of which %u waited: %.1f us each, half of them less "
	       "than %.1f us, one in ten more than %.1f us\n",
	       (double)blocks / duration, n / duration, waited,
	       (double)c.lock_wait_us / (waited + !waited), ns[n - 1 - waited / 2] / 1e3,
	       ns[n - 1 - waited / 10] / 1e3);
	skv_cluster_destroy(cluster);
	skv_store_close(store);
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(ns);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t blocks = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	size_t name = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	char dir[200], path[256];
	struct env e;

	if (argc > 1 && strcmp(argv[1], "partitions") == 0)
		return partitions(argc > 2 ? strtod(argv[2], NULL) : 3, argc > 3 ? argv[3] : NULL);
	if (argc > 1 && strcmp(argv[1], "takeover") == 0)
		return takeover(argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000,
				argc > 3 ? argv[3] : "/tmp");
	if (argc > 1 && strcmp(argv[1], "beside") == 0)
		return beside(argc > 2 ? strtod(argv[2], NULL) : 3);
	if (argc > 1 && strcmp(argv[1], "full") == 0)
		return full(argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000,
			    argc > 3 ? strtod(argv[3], NULL) : 3);
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
	e.store_options = (struct skv_store_options){ .path = path,
						      .durability = SKV_DURABILITY_NORMAL };
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
