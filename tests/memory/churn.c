/*
 * churn.c - clients of the library at work on one instance: puts blocks whose bytes follow from
 * their keys, gets earlier ones, and looks at every byte.
 *
 *	churn URL INSTANCE FIRST KEYS SIZE SECONDS THREADS DEADLINE_MS [registered|copies]
 *
 * Keys FIRST to FIRST + KEYS - 1, one put or get of up to 4 blocks at a time, until the seconds are
 * over (and for PATIENCE longer while what was put was not hit: a busy machine) or a SIGTERM comes;
 * `registered`: from and to memory that the handle knows. The token is in CHURN_TOKEN, if there is
 * one. One line of numbers at the end: puts, failed puts, hits, misses,
 * mismatches, errors; with `copies` also copies written and read in a fast tier. Exit 1: a hit with
 * wrong bytes; 3: a call took longer than 20 s.
 */
#include <slabkv.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 4, PATIENCE = 20 };

static struct {
	struct slabkv *kv;
	const char *instance;
	uint64_t first, keys, size;
	double seconds;
	uint32_t deadline_ms;
	bool registered, copies;
	atomic_ulong copied, copy_hit;
	atomic_ulong put, failed, hit, miss, mismatch, error, wrong, slow;
} all;
static atomic_bool stop; /* lock-free: set by a signal handler, read by threads */

static void on_term(int number)
{
	(void)number;
	atomic_store(&stop, true);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t word(uint64_t key, uint64_t i)
{
	uint64_t x = key * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull;

	return x ^ x >> 29;
}

static void fill(uint64_t *p, uint64_t key)
{
	for (uint64_t i = 0; i < all.size / 8; i++)
		p[i] = word(key, i);
}

static bool is_right(const uint64_t *p, uint64_t key)
{
	for (uint64_t i = 0; i < all.size / 8; i++)
		if (p[i] != word(key, i))
			return false;
	return true;
}

static void put(const struct slabkv_keys *keys, const uint64_t *key, struct slabkv_block *b,
		struct slabkv_buf *bufs, uint32_t n)
{
	struct slabkv_io io = { .size = sizeof io };
	const struct slabkv_put_options o = { .size = sizeof o, .deadline_ms = all.deadline_ms,
					      .independent = true };

	for (uint32_t i = 0; i < n; i++)
		fill(bufs[i].data, key[i]);
	if (slabkv_put(all.kv, all.instance, keys, &o, b, sizeof *b, &io, NULL) != SLABKV_OK) {
		all.failed += n;
		return;
	}
	all.copied += io.copies;
	for (uint32_t i = 0; i < n; i++) {
		all.put += b[i].result == SLABKV_WRITTEN;
		all.failed += b[i].result == SLABKV_FAILED;
	}
}

static void get(const struct slabkv_keys *keys, const uint64_t *key, struct slabkv_block *b,
		struct slabkv_buf *bufs, uint32_t n)
{
	struct slabkv_io io = { .size = sizeof io };

	if (slabkv_get(all.kv, all.instance, keys, NULL, b, sizeof *b, &io, NULL) != SLABKV_OK) {
		all.error += n;
		return;
	}
	all.copy_hit += io.copies;
	for (uint32_t i = 0; i < n; i++) {
		all.hit += b[i].result == SLABKV_HIT;
		all.miss += b[i].result == SLABKV_MISS;
		all.mismatch += b[i].result == SLABKV_MISMATCH;
		all.error += b[i].result == SLABKV_ERROR;
		if (b[i].result == SLABKV_HIT && !is_right(bufs[i].data, key[i]))
			all.wrong++;
	}
}

static void *work(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	uint64_t key[MOST];
	struct slabkv_buf bufs[MOST];
	struct slabkv_block b[MOST];
	double end = now() + all.seconds;

	for (int i = 0; i < MOST; i++) {
		bufs[i] = (struct slabkv_buf){ aligned_alloc(4096, all.size), all.size };
		b[i] = (struct slabkv_block){ .bufs = &bufs[i], .n_bufs = 1 };
		if (all.registered && slabkv_memory_register(all.kv, bufs[i].data, all.size,
							     SLABKV_MEMORY_HOST, NULL) != SLABKV_OK)
			all.error++;
	}
	while (!atomic_load(&stop) &&
	       now() < (all.put > 0 && all.hit == 0 ? end + PATIENCE : end)) {
		uint32_t n = 1 + (uint32_t)rand_r(&seed) % MOST;
		uint64_t at = (uint64_t)rand_r(&seed) % all.keys;
		double begin = now();
		struct slabkv_keys keys;

		for (uint32_t i = 0; i < n; i++)
			key[i] = all.first + (at + i) % all.keys;
		keys = slabkv_keys_ints(key, n);
		(rand_r(&seed) % 2 ? put : get)(&keys, key, b, bufs, n);
		all.slow += now() - begin > 20;
	}
	for (int i = 0; i < MOST; i++) {
		if (all.registered)
			slabkv_memory_unregister(all.kv, bufs[i].data);
		free(bufs[i].data);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction term = { .sa_handler = on_term };
	struct slabkv_options o;
	struct slabkv_error err;
	pthread_t id[64];
	unsigned long threads;
	const char *url;

	if (argc != 9 && argc != 10)
		return 2;
	slabkv_options_init(&o, sizeof o);
	url = argv[1];
	o.urls = &url;
	o.n_urls = 1;
	o.rounds = 2;
	o.timeout_ms = 10000;
	o.token = getenv("CHURN_TOKEN");
	all.instance = argv[2];
	all.first = strtoull(argv[3], NULL, 10);
	all.keys = strtoull(argv[4], NULL, 10);
	all.size = strtoull(argv[5], NULL, 10);
	all.registered = argc == 10 && strcmp(argv[9], "registered") == 0;
	all.copies = argc == 10 && strcmp(argv[9], "copies") == 0;
	all.seconds = strtod(argv[6], NULL);
	threads = strtoul(argv[7], NULL, 10);
	all.deadline_ms = (uint32_t)strtoul(argv[8], NULL, 10);
	if (threads > 64 || slabkv_open(&o, &all.kv, &err) != SLABKV_OK) {
		fprintf(stderr, "churn: %s\n", err.message);
		return 2;
	}
	sigaction(SIGTERM, &term, NULL);
	for (unsigned long i = 0; i < threads; i++)
		pthread_create(&id[i], NULL, work, (void *)(uintptr_t)(all.first * 977 + i + 1));
	for (unsigned long i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
	printf("%lu %lu %lu %lu %lu %lu", all.put, all.failed, all.hit, all.miss, all.mismatch,
	       all.error);
	if (all.copies)
		printf(" %lu %lu", all.copied, all.copy_hit);
	putchar('\n');
	slabkv_close(all.kv);
	return all.wrong ? 1 : all.slow ? 3 : 0;
}
