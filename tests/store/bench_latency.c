/*
 * bench_latency.c - how long single appends take while the store keeps its house: one
 * thread appends as fast as it can (or so many a second), one syncs, one writes
 * checkpoints, like a busy manager.
 *
 * Usage: bench_latency [folder [seconds [bytes [appends a second, 0 = all [full]]]]]. The folder
 * should lie on the disk that is meant. Prints percentiles and the slowest append of each kind of
 * moment. Not a test: it prints numbers.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/store.h>

#include "bench_store.h"

#define CHECKPOINT_BYTES (64u << 20) /* of journal, between two checkpoints */
#define SLICE (256u << 10)
#define SLICES 32
#define SYNC_MS 100
#define SAMPLES_MAX (1u << 22)
#define SLOW_US 50000

struct load {
	struct skv_store *s;
	uint64_t fence;
	_Atomic uint64_t seq; /* appended */
	_Atomic bool stop;
	uint32_t bytes;
	uint64_t syncs, sync_max_us, checkpoints;
};

static char path[512];
static uint8_t *batch;
static uint32_t samples[SAMPLES_MAX];

static void die(const char *what)
{
	fprintf(stderr, "bench_latency: %s\n", what);
	exit(1);
}

static void remove_files(void)
{
	static const char *const tails[] = {
		"", "-wal", "-shm", "-checkpoint", "-checkpoint-wal", "-checkpoint-shm", "-reserve"
	};
	char name[600];

	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
		snprintf(name, sizeof name, "%s%s", path, tails[i]);
		unlink(name);
	}
}

static double file_mib(const char *tail)
{
	char name[600];
	struct stat st;

	snprintf(name, sizeof name, "%s%s", path, tail);
	return stat(name, &st) == 0 ? (double)st.st_size / (1 << 20) : 0;
}

static void *sync_main(void *ctx)
{
	struct load *l = ctx;

	while (!atomic_load(&l->stop)) {
		uint64_t begin = skv_now_us(), us;

		if (skv_store_sync(l->s, 0, NULL) != SKV_OK)
			die("sync");
		us = skv_now_us() - begin;
		l->sync_max_us = us > l->sync_max_us ? us : l->sync_max_us;
		l->syncs++;
		poll(NULL, 0, SYNC_MS);
	}
	return NULL;
}

static void checkpoint(struct load *l, const uint8_t *slice, uint64_t upto)
{
	uint64_t id;

	if (skv_store_checkpoint_begin(l->s, 0, l->fence, &id, NULL) != SKV_OK)
		die("checkpoint begin");
	for (uint32_t i = 0; i < SLICES; i++)
		if (skv_store_checkpoint_slice(l->s, 0, l->fence, id, i, slice, SLICE, NULL) !=
		    SKV_OK)
			die("checkpoint slice");
	if (skv_store_checkpoint_commit(l->s, 0, l->fence, id, SLICES, upto, NULL) != SKV_OK)
		die("checkpoint commit");
	l->checkpoints++;
}

static void *checkpoint_main(void *ctx)
{
	struct load *l = ctx;
	uint8_t *slice = malloc(SLICE);
	uint64_t last = 0;

	if (!slice)
		die("out of memory");
	bench_fill(2, slice, SLICE);
	while (!atomic_load(&l->stop)) {
		uint64_t seq = atomic_load(&l->seq);

		if ((seq - last) * l->bytes >= CHECKPOINT_BYTES) {
			checkpoint(l, slice, seq);
			last = seq;
		}
		poll(NULL, 0, 5);
	}
	free(slice);
	return NULL;
}

/* The appends, and their times; the number of them. */
static size_t append_all(struct load *l, uint64_t us, uint64_t rate)
{
	uint64_t begin = skv_now_us(), now = begin, due;
	struct skv_error err;
	size_t n = 0;

	while (now - begin < us && n < SAMPLES_MAX) {
		due = rate ? begin + n * 1000000 / rate : 0;
		if (due > now + 1000)
			poll(NULL, 0, (int)((due - now) / 1000));
		bench_fill(n, batch, 64);
		now = skv_now_us();
		if (skv_store_append(l->s, 0, l->fence, n + 1, batch, l->bytes, 0, &err) != SKV_OK)
			die(err.message);
		samples[n] = (uint32_t)(skv_now_us() - now);
		now += samples[n];
		if (samples[n] >= SLOW_US)
			printf("  at %6.2f s: %4u ms (log %.0f MiB)\n", (double)(now - begin) / 1e6,
			       samples[n] / 1000, file_mib("-wal"));
		n++;
		atomic_store(&l->seq, n);
	}
	return n;
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static double at(size_t n, double share)
{
	return samples[(size_t)((double)(n - 1) * share)] / 1e3;
}

static void report(const struct load *l, size_t n, double seconds)
{
	size_t slow[3] = { 0 };

	for (size_t i = 0; i < n; i++) {
		slow[0] += samples[i] >= 20000;
		slow[1] += samples[i] >= 50000;
		slow[2] += samples[i] >= 100000;
	}
	qsort(samples, n, sizeof samples[0], by_size);
	printf("%zu appends of %u bytes, %.1f MiB/s; %llu checkpoints; %llu syncs, slowest %.1f "
	       "ms; log %.0f MiB, database %.0f MiB\n",
	       n, l->bytes, (double)n * l->bytes / (1 << 20) / seconds,
	       (unsigned long long)l->checkpoints, (unsigned long long)l->syncs,
	       (double)l->sync_max_us / 1e3, file_mib("-wal"), file_mib(""));
	printf("ms: p50 %.2f  p90 %.2f  p99 %.2f  p99.9 %.2f  max %.1f; over 20 ms: %zu, 50: %zu, "
	       "100: %zu\n",
	       at(n, .5), at(n, .9), at(n, .99), at(n, .999), at(n, 1), slow[0], slow[1], slow[2]);
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[2]) : 20;
	uint64_t rate = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
	struct skv_store_options o = { .path = path, .durability = SKV_DURABILITY_NORMAL };
	struct load l = { .bytes = argc > 3 ? (uint32_t)atoi(argv[3]) : 65536 };
	struct skv_error err;
	pthread_t syncer, checkpointer;
	size_t n;

	if (argc > 5)
		o.durability = SKV_DURABILITY_FULL;
	snprintf(path, sizeof path, "%s/latency-%ld.db", argc > 1 ? argv[1] : "/tmp",
		 (long)getpid());
	batch = malloc(l.bytes + 64);
	if (!batch)
		die("out of memory");
	bench_fill(1, batch, l.bytes);
	if (skv_store_open(&skv_store_sqlite, &o, &l.s, &err) != SKV_OK ||
	    skv_store_acquire(l.s, 0, "bench", 600000, &l.fence, NULL, 0, &err) != SKV_OK)
		die(err.message);
	pthread_create(&syncer, NULL, sync_main, &l);
	pthread_create(&checkpointer, NULL, checkpoint_main, &l);
	n = append_all(&l, (uint64_t)(seconds * 1e6), rate);
	atomic_store(&l.stop, true);
	pthread_join(syncer, NULL);
	pthread_join(checkpointer, NULL);
	report(&l, n, seconds);
	skv_store_close(l.s);
	remove_files();
	free(batch);
	return 0;
}
