/*
 * bench_usrbio.c - measures the engine "usrbio": CPU time of the calling thread for each request,
 * on the stand-in for 3FS's client library. All of the engine runs on that thread (with the
 * library's part of it: preparing, submitting, waiting); the stand-in copies on threads of its own.
 *
 * usage: bench_usrbio LIBRARY [REQUESTS]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "control.h"
#include "support/shell.h"
#include "usrbio.h"

#define FILE_BYTES (1ull << 30)
#define BUFFER_BYTES (256ull << 20)

static char root[64];

static void stop(const char *what, const char *why)
{
	fprintf(stderr, "bench_usrbio: %s: %s\n", what, why);
	exit(1);
}

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

struct shape {
	const char *what;
	uint64_t bytes; /* of a request */
	uint32_t runs;  /* of a call; they are no neighbours: a request each */
	bool write;
	bool mapped;
};

static void measure(struct skv_engine *e, struct skv_engine_file *f, const struct shape *s,
		    uint8_t *data, uint64_t requests)
{
	const struct skv_io_call by = { .clock = &skv_clock_system, .at_ms = UINT64_MAX };
	struct skv_io_run *runs = calloc(s->runs, sizeof *runs);
	struct iovec *iov = calloc(s->runs, sizeof *iov);
	uint64_t done = 0, begin_us;
	double cpu;

	if (!runs || !iov)
		stop(s->what, "no memory");
	begin_us = skv_now_us();
	cpu = cpu_us();
	while (done < requests) {
		for (uint32_t i = 0; i < s->runs; i++) {
			iov[i] = (struct iovec){ data + i * s->bytes, s->bytes };
			runs[i] = (struct skv_io_run){ .file = f, .offset = i * (s->bytes + 4096),
						       .iov = &iov[i],
						       .n_iov = 1, .length = s->bytes };
		}
		if (s->write)
			skv_engine_write(e, runs, s->runs, &by);
		else
			skv_engine_read(e, runs, s->runs, &by);
		for (uint32_t i = 0; i < s->runs; i++) {
			if (runs[i].status != SKV_OK || runs[i].done != s->bytes)
				stop(s->what, skv_status_text(runs[i].status));
			done += runs[i].ios;
		}
	}
	printf("%-34s %8llu B  %4u at once  %8.2f us of CPU a request  %10.0f requests/s\n",
	       s->what, (unsigned long long)s->bytes, s->runs, (cpu_us() - cpu) / (double)done,
	       (double)done * 1e6 / (double)(skv_now_us() - begin_us));
	free(runs);
	free(iov);
}

int main(int argc, char **argv)
{
	static const struct shape shapes[] = {
		{ "write, copied", 4096, 1, true, false },
		{ "write, copied", 4096, 128, true, false },
		{ "read, copied", 4096, 1, false, false },
		{ "read, copied", 4096, 128, false, false },
		{ "write, mapped", 1 << 20, 32, true, true },
		{ "read, mapped", 1 << 20, 1, false, true },
		{ "read, mapped", 1 << 20, 32, false, true },
		{ "read, copied", 1 << 20, 32, false, false },
	};
	uint64_t requests = argc > 2 ? strtoull(argv[2], NULL, 10) : 20000;
	struct slabkv_pool_options po;
	struct slabkv_pool_info info = { .size = sizeof(struct slabkv_pool_info) };
	struct skv_hf3fs_options o;
	const struct skv_engine_options with = { .hf3fs = &o };
	struct skv_engine_file *f;
	struct slabkv_pool *pool = NULL;
	struct skv_engine *e;
	struct skv_error err;
	char command[96];
	uint8_t *plain;
	int dirfd, fd;

	if (argc < 2)
		stop("usage", "bench_usrbio LIBRARY [REQUESTS]");
	snprintf(root, sizeof root, "/dev/shm/bench-3fs-XXXXXX");
	if (!mkdtemp(root))
		stop(root, "cannot be made");
	setenv("HF3FS_STANDIN_ROOT", root, 1);
	setenv("HF3FS_LIB", argv[1], 1);
	dirfd = open(root, O_DIRECTORY | O_CLOEXEC);
	fd = openat(dirfd, "slab", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)FILE_BYTES) != 0)
		stop(root, "no file");
	close(fd);
	skv_hf3fs_init(&o);
	o.mount_point = root;
	slabkv_pool_options_init(&po, sizeof po);
	po.bytes = po.buffer_bytes = BUFFER_BYTES;
	po.kind = SLABKV_MEMORY_SHARED;
	po.shm_name = "bench";
	plain = calloc(1, BUFFER_BYTES);
	if (skv_engine_usrbio.create(&with, &e, &err) != SKV_OK ||
	    skv_engine_open(e, dirfd, "slab", true, &f, &err) != SKV_OK)
		stop("engine", err.message);
	if (!plain || slabkv_pool_create(&po, &pool, NULL) != SLABKV_OK)
		stop("pool", "no memory");
	slabkv_pool_info(pool, &info);
	if (skv_engine_map(e, info.base, info.bytes, &err) != SKV_OK)
		stop("pool", err.message);
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		measure(e, f, &shapes[i], shapes[i].mapped ? info.base : plain,
			shapes[i].bytes > 65536 ? requests / 20 : requests);
	skv_engine_close(e, f);
	skv_engine_unmap(e, info.base);
	e->ops->destroy(e);
	slabkv_pool_destroy(pool);
	free(plain);
	close(dirfd);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return test_shell(command) == 0 ? 0 : 1;
}
