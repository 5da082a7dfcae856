/*
 * bench_alloc.c - measures the cost and the waste of the allocator.
 *
 *   bench_alloc [--json] [--seed N]
 *
 * Space: a pool of 64 files of 1 GiB, 64 MiB units, 4096 bytes of header and trailer.
 *   fill   one class until the pool is full: slot bytes / assigned slab bytes.      Bar: 0.99.
 *   churn  64 KiB, 1 MiB and 4,497,408 B blocks, a third of the bytes each, at 95 % of capacity.
 *          Each step puts one block, its class drawn at random, and removes random blocks until the
 *          bytes are at the target again. A put that finds no room empties the slabs that
 *          skv_pool_find_victims names, as the core does. Live bytes / assigned bytes, sampled
 *          while the pool turns over several times.                                 Bar: 0.95.
 *   shift  the same, but the classes take turns in getting 80 % of the bytes put, so that space
 *          must move between them all the time. No bar: nearly every unit is assigned then, and the
 *          price is the share of bytes that had to leave with a victim slab.
 *          "of 4": of four random blocks the one goes whose slab has the smallest part in use.
 * Time and memory: nanoseconds for each pair of calls and bytes for each slot, of a million slots
 * in files and of ten million that are only counted.
 *
 * Exit code 1 when a bar is missed, 2 when something failed.
 */
#include <skv/clock.h>
#include <skv/mem.h>
#include <skv/pool.h>

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define FILES 64u
#define CAPACITY (FILES * GIB)
#define BLOCK UINT64_C(4497408)
#define N_CLASSES 3
#define TURNOVERS 12u /* of all blocks; the first third warms up */
#define MAX_RESULTS 40

struct result {
	char name[64];
	double value;
	double bar; /* 0 = none */
	const char *unit;
};

static struct result results[MAX_RESULTS];
static size_t n_results;
static uint64_t seed = 1;

static void die(const char *what)
{
	fprintf(stderr, "bench_alloc: %s\n", what);
	exit(2);
}

static void report(const char *name, double value, const char *unit, double bar)
{
	struct result *r = &results[n_results];

	if (n_results++ == MAX_RESULTS)
		die("too many results");
	snprintf(r->name, sizeof r->name, "%s", name);
	r->value = value;
	r->unit = unit;
	r->bar = bar;
}

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static struct skv_pool *make_pool(void)
{
	struct skv_pool_options o = { .unit = GIB / 16, .header = 4096, .trailer = 4096 };
	struct skv_pool *p = skv_pool_create(&o);

	for (uint32_t i = 0; p && i < FILES; i++)
		if (skv_pool_add_file(p, i, GIB))
			p = NULL;
	if (!p)
		die("no pool");
	return p;
}

static uint32_t make_class(struct skv_pool *p, uint64_t stride, uint64_t align)
{
	uint32_t id;

	if (skv_pool_class(p, stride, align, &id))
		die("no class");
	return id;
}

/* ---- fill ------------------------------------------------------------------------------------ */

static void fill(const char *name, uint64_t stride, uint64_t align)
{
	struct skv_pool *p = make_pool();
	uint32_t c = make_class(p, stride, align);
	struct skv_pool_stats st;
	struct skv_run run;
	uint32_t n;

	while (skv_pool_alloc(p, c, 1, &run, &n) == SKV_OK)
		;
	skv_pool_stats(p, &st);
	report(name, (double)st.slot_bytes / (double)st.assigned_bytes, "share", 0.99);
	skv_pool_destroy(p);
}

/* ---- churn ----------------------------------------------------------------------------------- */

struct block {
	uint32_t class;
	uint32_t slab;
	uint32_t slot;
};

struct churn {
	struct skv_pool *p;
	uint64_t size[N_CLASSES];
	uint32_t id[N_CLASSES];
	struct block *blocks;
	uint32_t n;
	uint32_t cap;
	uint64_t live;
	uint64_t put;     /* bytes */
	uint64_t victims; /* bytes evicted from victim slabs */
	uint64_t starved; /* puts that needed them */
	bool shift;       /* the mix changes with time */
	/* Of so many blocks drawn the one in the slab with the smallest part in use goes. */
	uint32_t looks;
};

static void add_block(struct churn *x, struct block b)
{
	if (x->n == x->cap)
		die("too many blocks");
	skv_pool_set_owner(x->p, b.slab, b.slot, x->n);
	x->blocks[x->n++] = b;
	x->live += x->size[b.class];
}

static void remove_block(struct churn *x, uint32_t i)
{
	struct block b = x->blocks[i];
	struct block last = x->blocks[--x->n];

	skv_pool_free(x->p, (struct skv_run){ b.slab, b.slot, 1 });
	x->live -= x->size[b.class];
	if (i == x->n)
		return;
	x->blocks[i] = last;
	skv_pool_set_owner(x->p, last.slab, last.slot, i);
}

static uint32_t any_slab(void *ctx, uint32_t slab)
{
	(void)ctx;
	(void)slab;
	return 0;
}

static void empty_victims(struct churn *x, uint32_t class)
{
	struct skv_slab_info info;
	uint32_t *slabs;
	size_t n;

	if (skv_pool_find_victims(x->p, x->id[class],
				  &(struct skv_victims){ .waits = any_slab }, &slabs, &n))
		die("no victims");
	x->starved++;
	for (size_t i = 0; i < n; i++) {
		if (!skv_pool_slab(x->p, slabs[i], &info))
			die("a victim is no slab");
		for (uint32_t slot = 0; info.used && slot < info.slots; slot++) {
			if (!skv_pool_is_used(x->p, slabs[i], slot))
				continue;
			x->victims += info.stride;
			info.used--;
			remove_block(x, skv_pool_owner(x->p, slabs[i], slot));
		}
	}
	skv_free(slabs);
}

static void put_block(struct churn *x, uint32_t class)
{
	struct skv_run run;
	uint32_t n;

	while (skv_pool_alloc(x->p, x->id[class], 1, &run, &n))
		empty_victims(x, class);
	x->put += x->size[class];
	add_block(x, (struct block){ class, run.slab, run.first });
}

/* Draws the class of the next block so that all get the same bytes, i.e. with probability 1/size;
 * with `shift` one of them 80 % for two turnovers of the pool, then the next. */
static uint32_t draw(const struct churn *x)
{
	uint64_t favoured = x->put / (2 * CAPACITY) % N_CLASSES;
	double w[N_CLASSES];
	double sum = 0;
	double at;

	for (uint32_t i = 0; i < N_CLASSES; i++)
		sum += w[i] = (x->shift && i == favoured ? 8.0 : 1.0) / (double)x->size[i];
	at = (double)(rnd() >> 11) / 9007199254740992.0 * sum;
	for (uint32_t i = 0; i < N_CLASSES - 1; i++) {
		if (at < w[i])
			return i;
		at -= w[i];
	}
	return N_CLASSES - 1;
}

static uint32_t draw_victim(const struct churn *x)
{
	double least = 2;
	uint32_t best = 0;

	for (uint32_t k = 0; k < x->looks; k++) {
		uint32_t i = (uint32_t)(rnd() % x->n);
		struct skv_slab_info info;

		if (x->looks == 1 || !skv_pool_slab(x->p, x->blocks[i].slab, &info))
			return i;
		if ((double)info.used / info.slots >= least)
			continue;
		least = (double)info.used / info.slots;
		best = i;
	}
	return best;
}

static void churn_run(struct churn *x, const char *name)
{
	uint64_t target = CAPACITY / 100 * 95;
	uint64_t samples = 0;
	double sum = 0;
	double min = 1;
	char label[64];

	while (x->live < target)
		put_block(x, draw(x));
	x->put = x->victims = x->starved = 0;
	for (uint64_t step = 0; x->put < TURNOVERS * target; step++) {
		struct skv_pool_stats st;

		put_block(x, draw(x));
		while (x->live > target)
			remove_block(x, draw_victim(x));
		if (step % 8192 != 0 || x->put < TURNOVERS / 3 * target)
			continue;
		skv_pool_stats(x->p, &st);
		if (st.used_bytes != x->live)
			die("used bytes are not the live bytes");
		double share = (double)x->live / (double)st.assigned_bytes;

		sum += share;
		min = share < min ? share : min;
		samples++;
	}
	snprintf(label, sizeof label, "%s: live / assigned, mean", name);
	report(label, sum / (double)samples, "share", x->shift ? 0 : 0.95);
	snprintf(label, sizeof label, "%s: live / assigned, lowest", name);
	report(label, min, "share", x->shift ? 0 : 0.95);
	snprintf(label, sizeof label, "%s: puts that needed victims", name);
	report(label, (double)x->starved, "calls", 0);
	snprintf(label, sizeof label, "%s: victims / bytes put", name);
	report(label, (double)x->victims / (double)x->put, "share", 0);
}

static void churn(const char *name, uint64_t align_of_big, bool shift, uint32_t looks)
{
	struct churn x = { .p = make_pool(), .size = { 65536, 1 << 20, BLOCK }, .cap = 1u << 20,
			   .shift = shift, .looks = looks };
	struct skv_error err;

	x.blocks = skv_malloc(x.cap * sizeof *x.blocks);
	if (!x.blocks)
		die("out of memory");
	x.id[0] = make_class(x.p, x.size[0], 4096);
	x.id[1] = make_class(x.p, x.size[1], 4096);
	x.id[2] = make_class(x.p, x.size[2], align_of_big);
	churn_run(&x, name);
	if (skv_pool_check(x.p, &err))
		die(err.message);
	skv_free(x.blocks);
	skv_pool_destroy(x.p);
}

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Fills a pool to 95 % with runs of `count` slots, then frees one at random for each alloc. Ends
 * the pool. */
static void speed(const char *name, struct skv_pool *p, uint32_t c, uint32_t count, uint32_t calls)
{
	uint32_t n = (uint32_t)(skv_pool_available(p, c) / 100 * 95 / count);
	struct skv_run *runs = skv_malloc((size_t)n * count * sizeof *runs);
	uint32_t *n_runs = skv_malloc(n * sizeof *n_runs);
	uint64_t before = heap_bytes();
	uint64_t pieces = 0;
	uint64_t began;
	char label[64];

	if (!runs || !n_runs)
		die("out of memory");
	for (uint32_t i = 0; i < n; i++)
		if (skv_pool_alloc(p, c, count, runs + (size_t)i * count, &n_runs[i]))
			die("no room");
	snprintf(label, sizeof label, "%s: memory of each slot", name);
	report(label, (double)(heap_bytes() - before) / ((double)n * count), "bytes", 0);
	began = skv_now_us();
	for (uint32_t i = 0; i < calls; i++) {
		uint32_t at = (uint32_t)(rnd() % n);
		struct skv_run *r = runs + (size_t)at * count;

		for (uint32_t k = 0; k < n_runs[at]; k++)
			skv_pool_free(p, r[k]);
		if (skv_pool_alloc(p, c, count, r, &n_runs[at]))
			die("no room");
		pieces += n_runs[at];
	}
	snprintf(label, sizeof label, "%s: free + alloc", name);
	report(label, (double)(skv_now_us() - began) * 1000 / calls, "ns", 0);
	snprintf(label, sizeof label, "%s: runs of each alloc", name);
	report(label, (double)pieces / calls, "runs", 0);
	skv_free(runs);
	skv_free(n_runs);
	skv_pool_destroy(p);
}

/* 64 KiB slots in files: a million of them. */
static void speed_of_runs(const char *name, uint32_t count, uint32_t calls)
{
	struct skv_pool *p = make_pool();

	speed(name, p, make_class(p, 65536, 4096), count, calls);
}

/* Slots of unknown size, only counted: ten million. */
static void speed_of_counting(uint32_t calls)
{
	struct skv_pool_options o = { .unit = 4096 };
	struct skv_pool *p = skv_pool_create(&o);

	if (!p || skv_pool_add_file(p, 0, 10 * 1000 * 1000))
		die("no pool");
	speed("10 million counted slots", p, make_class(p, 1, 1), 1, calls);
}

/* ---- output ---------------------------------------------------------------------------------- */

static int print(bool json)
{
	int missed = 0;

	printf(json ? "{\"results\": [" : "%-48s %12s  %-6s %s\n", "what", "value", "unit", "bar");
	for (size_t i = 0; i < n_results; i++) {
		const struct result *r = &results[i];
		const char *verdict = r->bar == 0 ? "" : r->value >= r->bar ? "pass" : "FAIL";

		missed += r->bar != 0 && r->value < r->bar;
		if (json)
			printf("%s\n  {\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", "
			       "\"bar\": %g}",
			       i ? "," : "", r->name, r->value, r->unit, r->bar);
		else if (r->bar != 0)
			printf("%-48s %12.4f  %-6s >= %.2f %s\n", r->name, r->value,
			       r->unit, r->bar, verdict);
		else
			printf("%-48s %12.4g  %-6s\n", r->name, r->value, r->unit);
	}
	if (json)
		printf("\n], \"missed\": %d}\n", missed);
	return missed ? 1 : 0;
}

int main(int argc, char **argv)
{
	bool json = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0) {
			json = true;
		} else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
			seed = strtoull(argv[++i], NULL, 10) * 2 + 1;
		} else {
			fprintf(stderr, "usage: bench_alloc [--json] [--seed N]\n");
			return 2;
		}
	}
	fill("fill 4497408 B, pages", BLOCK, 4096);
	fill("fill 4497408 B, multiples of itself", BLOCK, BLOCK);
	fill("fill 1 MiB, pages", 1 << 20, 4096);
	fill("fill 1 MiB, multiples of itself", 1 << 20, 1 << 20);
	churn("churn, pages", 4096, false, 1);
	churn("churn, multiples", BLOCK, false, 1);
	churn("shift, pages", 4096, true, 1);
	churn("shift, multiples", BLOCK, true, 1);
	churn("shift, pages, of 4", 4096, true, 4);
	speed_of_runs("1 slot of a million", 1, 2000000);
	speed_of_runs("16 slots of a million", 16, 500000);
	speed_of_runs("128 slots of a million", 128, 100000);
	speed_of_counting(2000000);
	return print(json);
}
