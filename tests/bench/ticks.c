/*
 * ticks.c - what a tick of the core costs, by the capacity of its storage: TERABYTES.
 *
 * A core by itself, with a clock of its own, on a storage of type null with slab files of 64 GiB
 * that blocks of 1 GiB fill. Prints JSON: microseconds of CPU time a tick, mean and greatest, at
 * rest and while leases run.
 */
#include "../core/core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define GIB (1ull << 30)
#define AT_ONCE 1024u
#define TICKS 200u

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static int storage(struct env *e, uint64_t capacity)
{
	struct skv_storage_spec s = { .name = "s", .type = "null", .root = "", .capacity = capacity,
				      .unit = 4 * GIB,
				      .file_size = 64 * GIB, .enabled = true };

	return skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err);
}

static void fill(struct env *e, uint64_t blocks)
{
	static struct skv_key k[AT_ONCE];

	for (uint64_t done = 0; done < blocks;) {
		uint32_t n = blocks - done < AT_ONCE ? (uint32_t)(blocks - done) : AT_ONCE;

		env_keys(k, n, 1, done);
		done += env_put(e, k, n);
	}
}

static void measure(struct env *e, const char *what, const char *end)
{
	uint64_t sum = 0, most = 0;

	for (unsigned i = 0; i < TICKS; i++) {
		uint64_t begin, ns;

		skv_fake_clock_advance(&e->clock, 20);
		begin = cpu_ns();
		skv_cluster_tick(e->cluster);
		ns = cpu_ns() - begin;
		sum += ns;
		most = ns > most ? ns : most;
	}
	printf("\"%s\": {\"mean_us\": %.2f, \"max_us\": %.2f}%s", what, (double)sum / TICKS / 1000,
	       (double)most / 1000, end);
}

int main(int argc, char **argv)
{
	uint64_t capacity = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) << 40;
	struct skv_spec spec = { "kv", GIB };
	struct skv_lookup_res r;
	struct skv_key k[64];
	struct env e;

	env_quiet();
	env_init(&e);
	e.o.free_percent = 2;
	e.o.owner_lease_ms = 60000;
	env_open(&e);
	if (storage(&e, capacity) != SKV_OK || env_group(&e, "g", 0, "s") != SKV_OK ||
	    env_instance(&e, "i", "g", &spec, 1) != SKV_OK)
		return 1;
	fill(&e, capacity / GIB - capacity / GIB / 32);
	/* what is kept free has been evicted, and nobody wants more */
	for (unsigned i = 0; i < 3200; i++)
		env_advance(&e, 20);
	printf("{");
	measure(&e, "rest", ", ");
	env_keys(k, 64, 1, 100);
	env_lookup(&e, k, 64, SKV_LOOKUP_BATCH, 0, &r);
	measure(&e, "leases", "}\n");
	env_destroy(&e);
	return 0;
}
