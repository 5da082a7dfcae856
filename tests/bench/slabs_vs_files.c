/*
 * slabs_vs_files.c - the same blocks on the same mount, once as a file each and once as slots of
 * slab files: how fast, and how many metadata operations the mount sees. Run by
 * tests/bench/slabs_vs_files beside hf3fs_fuse_standin.
 *
 * Usage: bench_slabs_vs_files [--check] META_US BYTES THREADS BLOCK... META_US: each metadata
 * operation takes so much longer, for the meta service that a local directory does not have.
 * Four phases for each: write (everything is new), read, replace (each block gives way to
 * another one: what a full cache does all day), delete. Between them the daemon is made anew:
 * each phase is another host's, nothing is cached. All data goes with O_DIRECT, one block at a
 * time and thread. A table of Markdown on stdout. --check: only the counts matter, and those of
 * slabs may not grow with the blocks.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_util.h"

#define THREADS_MAX 64u
#define SLABS_MAX 64u
#define SLAB_BYTES ((uint64_t)64 << 20)
#define WAIT_MS 30000

enum phase { WRITE, READ, REPLACE, DELETE, PHASES };

struct result {
	double seconds[PHASES];
	uint64_t meta[PHASES];
};

struct work {
	const char *dir;
	bool slabs;
	enum phase phase;
	uint64_t block, chunk, n, n_slabs, slab_bytes;
	int fds[SLABS_MAX];
	atomic_ullong turn;
};

static const char *mount_path, *stats_path, *control_path, *meta_us;

static void must(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s: ", what);
		bench_die(strerror(errno));
	}
}

static uint64_t meta_operations(void)
{
	char line[128];
	unsigned long long n = 0;
	FILE *f = fopen(stats_path, "re");

	must(f != NULL, stats_path);
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "meta %llu", &n) == 1)
			break;
	fclose(f);
	return n;
}

static bool control(const char *command)
{
	int fd = open(control_path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, command, strlen(command)) > 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* A daemon that knows nothing yet: with_mount starts another one when this one ends. */
static void another_host(const struct work *w)
{
	char layout[512];
	struct stat st;
	int left = WAIT_MS / 10;

	control("exit\n");
	while (stat(stats_path, &st) != 0 && left-- > 0)
		poll(NULL, 0, 10);
	must(left > 0, "the mount did not come back");
	snprintf(layout, sizeof layout, "layout %s %llu\nmeta %s\n",
		 w->dir + strlen(mount_path) + 1, (unsigned long long)w->chunk, meta_us);
	must(control(layout), layout);
}

/* ---- one block ---- */

static void put_file(const struct work *w, uint64_t i, const void *data)
{
	char path[512];
	int fd;

	snprintf(path, sizeof path, "%s/%016llx", w->dir, (unsigned long long)i);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0644);
	must(fd >= 0, path);
	must(pwrite(fd, data, w->block, 0) == (ssize_t)w->block, path);
	must(close(fd) == 0, path);
}

static void get_file(const struct work *w, uint64_t i, void *data)
{
	char path[512];
	int fd;

	snprintf(path, sizeof path, "%s/%016llx", w->dir, (unsigned long long)i);
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	must(fd >= 0, path);
	must(pread(fd, data, w->block, 0) == (ssize_t)w->block, path);
	close(fd);
}

static void delete_file(const struct work *w, uint64_t i)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%016llx", w->dir, (unsigned long long)i);
	must(unlink(path) == 0, path);
}

static void do_file(const struct work *w, uint64_t i, void *data)
{
	switch (w->phase) {
	case WRITE:
		put_file(w, i, data);
		break;
	case READ:
		get_file(w, i, data);
		break;
	case REPLACE: /* another key, so another name */
		delete_file(w, i);
		put_file(w, i + w->n, data);
		break;
	default:
		delete_file(w, i + w->n);
	}
}

static void do_slot(const struct work *w, uint64_t i, void *data)
{
	/* the kernel lets one O_DIRECT write into a file at a time */
	int fd = w->fds[i % w->n_slabs];
	off_t at = (off_t)(w->chunk + i / w->n_slabs * w->block);
	ssize_t n =
		w->phase == READ ? pread(fd, data, w->block, at) : pwrite(fd, data, w->block, at);

	must(n == (ssize_t)w->block, "a slot");
}

static void *run_thread(void *arg)
{
	struct work *w = arg;
	void *data = bench_memory(w->block);
	uint64_t i;

	while ((i = atomic_fetch_add(&w->turn, 1)) < w->n)
		(w->slabs ? do_slot : do_file)(w, i, data);
	free(data);
	return NULL;
}

/* ---- slab files: as the storage makes them ---- */

static void make_slab(struct work *w, uint64_t s)
{
	char path[512], temp[512];
	void *edge = bench_memory(4096);
	int fd;

	snprintf(path, sizeof path, "%s/%08llx.slab", w->dir, (unsigned long long)s);
	snprintf(temp, sizeof temp, "%s/.temp-%08llx", w->dir, (unsigned long long)s);
	fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	must(fd >= 0, temp);
	must(ftruncate(fd, (off_t)w->slab_bytes) == 0, temp);
	must(pwrite(fd, edge, 4096, 0) == 4096, temp);
	must(pwrite(fd, edge, 4096, (off_t)w->slab_bytes - 4096) == 4096, temp);
	must(fsync(fd) == 0 && close(fd) == 0 && rename(temp, path) == 0, temp);
	free(edge);
}

static void each_slab(struct work *w, bool begin)
{
	for (uint64_t s = 0; s < w->n_slabs; s++) {
		char path[512];

		snprintf(path, sizeof path, "%s/%08llx.slab", w->dir, (unsigned long long)s);
		if (begin && w->phase == WRITE)
			make_slab(w, s);
		if (begin && w->phase != DELETE) {
			w->fds[s] = open(path, (w->phase == READ ? O_RDONLY : O_RDWR) | O_DIRECT |
						       O_CLOEXEC);
			must(w->fds[s] >= 0, path);
		}
		if (!begin && w->phase != DELETE)
			close(w->fds[s]);
		/* the storage goes; blocks alone need nothing on the mount */
		if (!begin && w->phase == DELETE)
			must(unlink(path) == 0, path);
	}
}

/* ---- phases ---- */

static void run_phase(struct work *w, uint32_t threads, struct result *r)
{
	pthread_t t[THREADS_MAX];
	uint64_t begin, before;

	another_host(w);
	before = meta_operations();
	atomic_store(&w->turn, w->slabs && w->phase == DELETE ? w->n : 0);
	begin = bench_now_us();
	if (w->slabs)
		each_slab(w, true);
	for (uint32_t i = 0; i < threads; i++)
		must(pthread_create(&t[i], NULL, run_thread, w) == 0, "a thread");
	for (uint32_t i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	if (w->slabs)
		each_slab(w, false);
	r->seconds[w->phase] = (double)(bench_now_us() - begin + 1) / 1e6;
	r->meta[w->phase] = meta_operations() - before;
}

static struct result run_layout(uint64_t block, uint64_t n, uint32_t threads, bool slabs)
{
	char dir[256];
	struct work w = { .dir = dir, .slabs = slabs, .block = block, .chunk = 65536, .n = n };
	struct result r = { { 0 }, { 0 } };

	while (w.chunk < block && w.chunk < 1u << 20) /* 3FS's default is 1 MiB */
		w.chunk *= 2;
	w.n_slabs = n * block / SLAB_BYTES + 1;
	if (w.n_slabs > SLABS_MAX)
		bench_die("too many bytes: at most 63 slab files of 64 MiB");
	w.slab_bytes = 2 * w.chunk + (n + w.n_slabs - 1) / w.n_slabs * block;
	snprintf(dir, sizeof dir, "%s/%s-%llu", mount_path, slabs ? "slabs" : "files",
		 (unsigned long long)block);
	for (w.phase = WRITE; w.phase < PHASES; w.phase++)
		run_phase(&w, threads, &r);
	must(rmdir(dir) == 0, dir);
	return r;
}

static void print_row(uint64_t block, uint64_t n, bool slabs, const struct result *r)
{
	double mb = (double)(block * n) / 1e6;

	printf("| %llu of %llu KiB | %s | %.0f | %.0f | %.0f | %.0f | %.0f | ",
	       (unsigned long long)n, (unsigned long long)block >> 10,
	       slabs ? "slots of slab files" : "a file each", (double)n / r->seconds[WRITE],
	       mb / r->seconds[WRITE], (double)n / r->seconds[READ], mb / r->seconds[READ],
	       (double)n / r->seconds[REPLACE]);
	if (slabs)
		printf("- | ");
	else
		printf("%.0f | ", (double)n / r->seconds[DELETE]);
	for (enum phase p = WRITE; p < PHASES; p++)
		printf("%llu%s", (unsigned long long)r->meta[p], p == DELETE ? " |\n" : " / ");
	fflush(stdout);
}

/* A file is looked up, made and closed for writing; looked up for reading; looked up and unlinked.
 * A slab file costs a few operations, whatever is in it. */
static void check(uint64_t n, uint64_t slabs_n, const struct result *files,
		  const struct result *slabs)
{
	const uint64_t least[PHASES] = { 3, 1, 5, 2 };
	char why[128];

	for (enum phase p = WRITE; p < PHASES; p++) {
		snprintf(why, sizeof why,
			 "phase %d: %llu operations for %llu files, %llu for %llu slab files",
			 (int)p, (unsigned long long)files->meta[p], (unsigned long long)n,
			 (unsigned long long)slabs->meta[p], (unsigned long long)slabs_n);
		if (files->meta[p] < least[p] * n || slabs->meta[p] > 16 * slabs_n + 16)
			bench_die(why);
	}
}

int main(int argc, char **argv)
{
	bool checks = argc > 1 && strcmp(argv[1], "--check") == 0;
	uint64_t bytes;
	uint32_t threads;

	argv += 1 + checks;
	argc -= 1 + checks;
	if (argc < 4)
		bench_die("usage: bench_slabs_vs_files [--check] META_US BYTES THREADS BLOCK...");
	meta_us = argv[0];
	bytes = strtoull(argv[1], NULL, 10);
	threads = (uint32_t)strtoul(argv[2], NULL, 10);
	mount_path = getenv("HF3FS_MOUNT");
	stats_path = getenv("HF3FS_STATS");
	control_path = getenv("HF3FS_CONTROL");
	if (!mount_path || !stats_path || !control_path || threads < 1 || threads > THREADS_MAX)
		bench_die("run by tests/bench/slabs_vs_files, with 1 to 64 threads");
	puts("| blocks | kept as | blocks/s written | MB/s | blocks/s read | MB/s | blocks/s "
	     "replaced | deletes/s | metadata operations: write / read / replace / delete |\n"
	     "|---|---|---|---|---|---|---|---|---|");
	for (int a = 3; a < argc; a++) {
		uint64_t block = strtoull(argv[a], NULL, 10), n = block ? bytes / block : 0;
		struct result files, slabs;

		if (n == 0 || block % 65536 != 0)
			bench_die("BLOCK is a multiple of 65536 and at most BYTES");
		files = run_layout(block, n, threads, false);
		print_row(block, n, false, &files);
		slabs = run_layout(block, n, threads, true);
		print_row(block, n, true, &slabs);
		if (checks)
			check(n, n * block / SLAB_BYTES + 1, &files, &slabs);
	}
	return 0;
}
