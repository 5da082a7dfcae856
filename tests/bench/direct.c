/*
 * direct.c - the floor of the data path where fio is not installed: threads that read or write
 * whole blocks of a file with O_DIRECT, each at places of its own, one at a time.
 *
 * Usage: direct FILE BLOCK_BYTES THREADS SECONDS read|write [MAX_BYTES]. The file must be there and
 * is overwritten by `write`. A block that is no multiple of 4096 is rounded up to one, since
 * O_DIRECT wants that. One JSON object on stdout: mib_per_s, direct. Not a test.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_util.h"

struct run {
	int fd;
	bool write;
	size_t block;
	uint64_t places, most, end_us;
	atomic_ullong turn, bytes;
};

static void *work(void *ctx)
{
	struct run *r = ctx;
	void *data = bench_memory(r->block);

	while (bench_now_us() < r->end_us && atomic_load(&r->bytes) < r->most) {
		uint64_t turn = atomic_fetch_add(&r->turn, 1);
		/* writes go in order, like slots that are taken; reads anywhere */
		off_t at = (off_t)(r->block * ((r->write ? turn : turn * 7919) % r->places));
		ssize_t n = r->write ? pwrite(r->fd, data, r->block, at)
				     : pread(r->fd, data, r->block, at);

		if (n != (ssize_t)r->block)
			bench_die(n < 0 ? strerror(errno) : "a short read or write");
		atomic_fetch_add(&r->bytes, r->block);
	}
	free(data);
	return NULL;
}

int main(int argc, char **argv)
{
	struct run r = { 0 };
	pthread_t threads[256];
	bool direct = true;
	struct stat st;
	uint64_t begin;
	int n;

	if (argc < 6)
		bench_die("usage: direct FILE BLOCK_BYTES THREADS SECONDS read|write [MAX_BYTES]");
	r.block = (strtoul(argv[2], NULL, 10) + 4095) / 4096 * 4096;
	r.write = strcmp(argv[5], "write") == 0;
	r.most = argc > 6 ? strtoull(argv[6], NULL, 10) : UINT64_MAX;
	n = atoi(argv[3]);
	r.fd = open(argv[1], (r.write ? O_RDWR : O_RDONLY) | O_DIRECT | O_CLOEXEC);
	if (r.fd < 0 && errno == EINVAL) {
		direct = false;
		r.fd = open(argv[1], (r.write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	}
	if (r.fd < 0 || fstat(r.fd, &st) != 0 || r.block == 0 || n < 1 || n > 256)
		bench_die("the file cannot be opened, or a number is wrong");
	r.places = (uint64_t)st.st_size / r.block;
	if (r.places == 0)
		bench_die("the file is smaller than a block");
	begin = bench_now_us();
	r.end_us = begin + (uint64_t)(strtod(argv[4], NULL) * 1e6);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, work, &r) != 0)
			bench_die("pthread_create");
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	if (r.write && fdatasync(r.fd) != 0)
		bench_die("fdatasync");
	printf("{\"mib_per_s\": %.1f, \"direct\": %s}\n",
	       (double)atomic_load(&r.bytes) / 1048576 * 1e6 / (double)(bench_now_us() - begin),
	       direct ? "true" : "false");
	return 0;
}
