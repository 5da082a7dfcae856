/*
 * load.c - load URL,URL... THREADS [GROUPS]: writers and readers with a ledger of what managers
 * acknowledged, while managers and servers of the store die. Every few milliseconds each thread
 * puts a block and reads one of its ledger, and deletes every DELETE_EACH-th of its blocks. With
 * GROUPS each thread writes into one of so many groups, which partitions share.
 * At the end of standard input each thread reads its whole ledger, and the program prints:
 *	puts N gets N deletes N errors N stale N missing N wrong N longest MS
 * errors: calls that failed. missing: acknowledged blocks that are not found at the end. wrong:
 * other bytes than were put; blocks that are found at the end and whose delete was acknowledged.
 * stale: the same two cases while writers run. longest: a thread's longest time without an answer.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <slabkv.h>

#define BLOCK 4096u
#define MAX_THREADS 16u
#define MAX_KEYS 200000u
#define MAKE_MS 60000u
#define PAUSE_MS 5
#define MAX_GROUPS 16u
#define DELETE_EACH 4u

enum { STORED, DELETED, UNKNOWN }; /* UNKNOWN: its delete failed */

struct worker {
	pthread_t thread;
	struct slabkv *kv;
	const char *instance;
	uint64_t first; /* key */
	uint32_t n;     /* acknowledged: first .. first + n - 1 */
	uint64_t puts, gets, deletes, errors, stale, missing, wrong, longest_us;
	uint64_t since; /* begin of the first call that failed since one succeeded; 0: none */
	bool last;      /* writers have ended */
	uint8_t bytes[BLOCK], expected[BLOCK];
	uint8_t state[MAX_KEYS];
};

static atomic_bool stop;

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void fill(uint64_t key, uint8_t *bytes)
{
	uint64_t x = key * 0x9e3779b97f4a7c15u + 1;

	for (size_t i = 0; i < BLOCK; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(bytes + i, &x, 8);
	}
}

static void note(struct worker *w, uint64_t begin, int rc, const char *what,
		 const struct slabkv_error *err)
{
	uint64_t us = now_us() - begin, pause;

	if (!w->since)
		w->since = begin;
	pause = now_us() - w->since;
	if (rc == SLABKV_OK)
		w->since = 0;
	if (pause > w->longest_us)
		w->longest_us = pause;
	if (rc != SLABKV_OK) {
		w->errors++;
		fprintf(stderr, "load: %s after %llu ms: %s\n", what, (unsigned long long)us / 1000,
			err->message);
	}
}

static void put(struct worker *w)
{
	const uint64_t key = w->first + w->n, begin = now_us();
	struct slabkv_keys keys = slabkv_keys_ints(&key, 1);
	struct slabkv_buf buf = { w->bytes, BLOCK };
	struct slabkv_block block = { .bufs = &buf, .n_bufs = 1 };
	struct slabkv_error err;
	int rc;

	fill(key, w->bytes);
	rc = slabkv_put(w->kv, w->instance, &keys, NULL, &block, sizeof block, NULL, &err);
	note(w, begin, rc, "put", &err);
	w->puts++;
	if (rc != SLABKV_OK)
		return;
	if (block.result == SLABKV_WRITTEN || block.result == SLABKV_EXISTS) {
		w->n++;
	} else if (block.result != SLABKV_BUSY) { /* by its own put that failed */
		w->errors++;
		fprintf(stderr, "load: put of key %llu: %d (%d)\n", (unsigned long long)key,
			block.result, block.why);
	}
}

/* Compares what a read of block i returned with the ledger. */
static void judge(struct worker *w, uint32_t i, enum slabkv_result result)
{
	const char *what;

	fill(w->first + i, w->expected);
	if (result == SLABKV_MISMATCH ||
	    (result == SLABKV_HIT && memcmp(w->bytes, w->expected, BLOCK) != 0)) {
		what = "has other bytes";
		w->wrong++;
	} else if (result == SLABKV_HIT && w->state[i] == DELETED) {
		what = "was deleted, and is found";
		(*(w->last ? &w->wrong : &w->stale))++;
	} else if (result != SLABKV_HIT && w->state[i] == STORED) {
		what = "is not found";
		(*(w->last ? &w->missing : &w->stale))++;
	} else {
		return;
	}
	fprintf(stderr, "load: key %llu of %s %s: %d\n", (unsigned long long)(w->first + i),
		w->instance, what, result);
}

static void get(struct worker *w, uint32_t i)
{
	const uint64_t key = w->first + i, begin = now_us();
	struct slabkv_keys keys = slabkv_keys_ints(&key, 1);
	struct slabkv_buf buf = { w->bytes, BLOCK };
	struct slabkv_block block = { .bufs = &buf, .n_bufs = 1 };
	struct slabkv_error err;
	int rc;

	rc = slabkv_get(w->kv, w->instance, &keys, NULL, &block, sizeof block, NULL, &err);
	note(w, begin, rc, "get", &err);
	w->gets++;
	if (rc == SLABKV_OK)
		judge(w, i, block.result);
}

/* Deletes a block. Whoever reads it afterwards must miss it. */
static void delete(struct worker *w, uint32_t i)
{
	const uint64_t key = w->first + i, begin = now_us();
	struct slabkv_keys keys = slabkv_keys_ints(&key, 1);
	struct slabkv_error err;
	int rc = slabkv_delete(w->kv, w->instance, &keys, NULL, &err);

	note(w, begin, rc, "delete", &err);
	w->deletes++;
	w->state[i] = rc == SLABKV_OK ? DELETED : UNKNOWN;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint32_t turn = 0;

	while (!stop && w->n < MAX_KEYS) {
		put(w);
		if (w->n)
			get(w, turn++ * 7919u % w->n);
		if (w->n && w->n % DELETE_EACH == 0 && w->state[w->n - 1] == STORED)
			delete(w, w->n - 1);
		poll(NULL, 0, PAUSE_MS);
	}
	w->last = true;
	for (uint32_t i = 0; i < w->n; i++)
		get(w, i);
	return NULL;
}

/* Instance "load-I" in the group of that name; without groups "load" in the default one. */
static int make(struct slabkv *kv, const char *name, bool grouped, struct slabkv_error *err)
{
	struct slabkv_spec spec = { "kv", BLOCK };
	struct slabkv_instance model = { .size = sizeof model, .id = name, .specs = &spec,
					 .spec_size = sizeof spec,
					 .n_specs = 1,
					 .group = grouped ? name : NULL };
	int rc = grouped ? slabkv_object_set(kv, SLABKV_GROUP, name,
						 "{\"storages\":[\"default\"]}", NULL, err)
			 : SLABKV_OK;

	return rc == SLABKV_OK ? slabkv_instance_put(kv, &model, err) : rc;
}

/* Partitions may be on their way to other managers: then it is asked again. */
static int make_soon(struct slabkv *kv, const char *name, bool grouped, struct slabkv_error *err)
{
	const uint64_t end = now_us() + MAKE_MS * 1000ull;
	int rc;

	while ((rc = make(kv, name, grouped, err)) != SLABKV_OK && now_us() < end)
		poll(NULL, 0, PAUSE_MS);
	return rc;
}

/* Waits for all threads and prints their sums. Returns the exit status. */
static int report(struct worker *worker, unsigned n)
{
	static struct worker sum;

	for (unsigned i = 0; i < n; i++) {
		pthread_join(worker[i].thread, NULL);
		sum.puts += worker[i].puts;
		sum.gets += worker[i].gets;
		sum.deletes += worker[i].deletes;
		sum.errors += worker[i].errors;
		sum.stale += worker[i].stale;
		sum.missing += worker[i].missing;
		sum.wrong += worker[i].wrong;
		if (worker[i].longest_us > sum.longest_us)
			sum.longest_us = worker[i].longest_us;
	}
	printf("puts %llu gets %llu deletes %llu errors %llu stale %llu missing %llu wrong %llu "
	       "longest %llu\n",
	       (unsigned long long)sum.puts, (unsigned long long)sum.gets,
	       (unsigned long long)sum.deletes, (unsigned long long)sum.errors,
	       (unsigned long long)sum.stale, (unsigned long long)sum.missing,
	       (unsigned long long)sum.wrong,
	       (unsigned long long)sum.longest_us / 1000);
	return sum.errors || sum.stale || sum.missing || sum.wrong;
}

int main(int argc, char **argv)
{
	static struct worker worker[MAX_THREADS];
	static char name[MAX_GROUPS][16];
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 4;
	unsigned groups = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	struct slabkv_options o;
	struct slabkv_error err;
	struct slabkv *kv;
	const char *urls[16];
	char c;
	int rc;

	slabkv_options_init(&o, sizeof o);
	o.token = getenv("SLABKV_TOKEN");
	o.urls = urls;
	for (char *url = argc > 1 ? strtok(argv[1], ",") : NULL; url && o.n_urls < 16;
	     url = strtok(NULL, ","))
		urls[o.n_urls++] = url;
	if (n < 1 || n > MAX_THREADS || groups > MAX_GROUPS ||
	    slabkv_open(&o, &kv, &err) != SLABKV_OK) {
		fprintf(stderr, "load: %s\n", err.message);
		return 1;
	}
	for (unsigned i = 0; i < (groups ? groups : 1); i++) {
		snprintf(name[i], sizeof name[i], groups ? "load-%u" : "load", i);
		if (make_soon(kv, name[i], groups > 0, &err) == SLABKV_OK)
			continue;
		fprintf(stderr, "load: %s: %s\n", name[i], err.message);
		return 1;
	}
	printf("begun\n");
	fflush(stdout);
	for (unsigned i = 0; i < n; i++) {
		worker[i].kv = kv;
		worker[i].instance = name[groups ? i % groups : 0];
		worker[i].first = (uint64_t)(i + 1) << 40;
		if (pthread_create(&worker[i].thread, NULL, work, &worker[i]) != 0)
			return 1;
	}
	while (read(0, &c, 1) > 0)
		;
	stop = true;
	rc = report(worker, n);
	slabkv_close(kv);
	return rc;
}
