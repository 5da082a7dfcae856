/*
 * memory_path.c - what the library's path to a memory node costs beside the bare work.
 *
 *	memory_path NODE_URL STORAGE_UUID SLAB LENGTH SIZE SECONDS
 *
 * Moves SIZE bytes at a time between a buffer and places all over the slab, through the engine and,
 * in turns, without it: mapped, by memcpy between the same pages; with
 * SLABKV_MEMORY_TRANSPORT=tcp, by send and recv on loopback from and to an equal region of another
 * process, one stream each. Mapped rows count the thread's CPU time, those over TCP the time. Rows
 * are read and write, without and with the checksum of the bytes; a line has the name, both rates
 * (MB/s, the median of the rounds) and the median of the rounds' ratios. memory_path.py starts the
 * node.
 */
#include "node.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <skv/hash.h>
#include <skv/http.h>

enum { ROUNDS = 9 };

static struct {
	struct skv_node *node;
	struct skv_engine_file *file;
	uint64_t length, size, places;
	double seconds;
	uint8_t *buffer, *mapped; /* the slab's own pages, if they are here */
	int peer;                 /* the other process */
	uint64_t at, sums;
} b;

static void die(const char *why)
{
	fprintf(stderr, "memory_path: %s\n", why);
	exit(1);
}

static uint64_t next_place(void)
{
	b.at = (b.at + 7) % b.places;
	return SKV_SUPERBLOCK_SIZE + b.at * b.size;
}

/* ---- through the engine ---------------------------------------------------------------------- */

static void by_engine(bool write)
{
	struct iovec iov = { b.buffer, b.size };
	struct skv_io_run run = { .file = b.file, .offset = next_place(), .iov = &iov, .n_iov = 1,
				  .length = b.size };
	const struct skv_io_call by = { .clock = &skv_clock_system,
					.at_ms = skv_now_ms(&skv_clock_system) + 60000 };

	(write ? skv_engine_write : skv_engine_read)(&b.node->engine, &run, 1, &by);
	if (run.done != b.size)
		die("the engine failed");
}

/* ---- without it ------------------------------------------------------------------------------ */

static void all_of(int fd, bool out, void *p, size_t n)
{
	while (n > 0) {
		ssize_t k = out ? send(fd, p, n, MSG_NOSIGNAL) : recv(fd, p, n, MSG_WAITALL);

		if (k <= 0)
			die("the other process is gone");
		p = (char *)p + k;
		n -= (size_t)k;
	}
}

struct order {
	uint64_t write, at, n;
};

static void by_hand(bool write)
{
	uint64_t at = next_place();
	struct order o = { write, at, b.size };
	char done;

	if (b.mapped) {
		memcpy(write ? b.mapped + at : b.buffer, write ? b.buffer : b.mapped + at, b.size);
		__asm__ volatile("" : : : "memory");
		return;
	}
	all_of(b.peer, true, &o, sizeof o);
	all_of(b.peer, write, b.buffer, b.size);
	if (write)
		all_of(b.peer, false, &done, 1); /* END has an answer, too */
}

static void serve(int fd, uint8_t *region)
{
	struct order o;

	while (recv(fd, &o, sizeof o, MSG_WAITALL) == sizeof o) {
		all_of(fd, !o.write, region + o.at, o.n);
		if (o.write)
			all_of(fd, true, "", 1);
	}
	_exit(0);
}

static void start_peer(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t n = sizeof at;

	if (bind(listening, (struct sockaddr *)&at, n) != 0 || listen(listening, 1) != 0 ||
	    getsockname(listening, (struct sockaddr *)&at, &n) != 0)
		die("no loopback port");
	if (fork() == 0) {
		uint8_t *region = mmap(NULL, b.length, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		int fd = accept(listening, NULL, NULL);

		if (region == MAP_FAILED)
			die("no memory");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		serve(fd, region);
	}
	b.peer = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(b.peer, (struct sockaddr *)&at, sizeof at) != 0)
		die("cannot connect to the other process");
	setsockopt(b.peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	close(listening);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Mapped, only this thread works: its own time, whatever else the machine does. Over TCP two
 * processes do. */
static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(b.mapped ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

/* MB/s */
static double rate(void (*move)(bool), bool write, bool sum)
{
	uint64_t begin = now_us(), now = begin, moved = 0;

	while (now - begin < (uint64_t)(b.seconds * 1e6)) {
		if (sum && write)
			b.sums ^= skv_checksum(b.buffer, b.size);
		move(write);
		if (sum && !write)
			b.sums ^= skv_checksum(b.buffer, b.size);
		moved += b.size;
		now = now_us();
	}
	return (double)moved / (double)(now - begin);
}

static int by_value(const void *x, const void *y)
{
	double p = *(const double *)x, q = *(const double *)y;

	return p < q ? -1 : p > q;
}

static double median(double v[ROUNDS])
{
	qsort(v, ROUNDS, sizeof *v, by_value);
	return v[ROUNDS / 2];
}

static void row(bool write, bool sum)
{
	double engine[ROUNDS], hand[ROUNDS], ratio[ROUNDS], e, h;

	for (int i = 0; i < ROUNDS; i++) {
		hand[i] = rate(by_hand, write, sum);
		engine[i] = rate(by_engine, write, sum);
		ratio[i] = engine[i] / hand[i];
	}
	e = median(engine);
	h = median(hand);
	printf("%s_%s%s %.0f %.0f %.3f\n", b.mapped ? "mapped" : "tcp", write ? "write" : "read",
	       sum ? "_summed" : "", e, h, median(ratio));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct skv_error err;
	uint8_t uuid[16];
	char path[SKV_SLAB_PATH_MAX];
	struct skv_node_at at = { .url = argc > 1 ? argv[1] : "" };

	if (argc != 7 || skv_uuid_from_text(argv[2], uuid) != SKV_OK)
		return 2;
	b.length = strtoull(argv[4], NULL, 10);
	b.size = strtoull(argv[5], NULL, 10);
	b.seconds = strtod(argv[6], NULL);
	b.places = (b.length - 2 * SKV_SUPERBLOCK_SIZE) / b.size;
	skv_slab_path((uint32_t)strtoul(argv[3], NULL, 10), path);
	if (skv_http_create(NULL, NULL, &at.http, &err) != SKV_OK ||
	    skv_node_open(&at, uuid, &b.node, &err) != SKV_OK ||
	    skv_engine_open(&b.node->engine, -1, path, true, &b.file, &err) != SKV_OK)
		die(err.message);
	b.buffer = aligned_alloc(4096, (b.size + 4095) / 4096 * 4096);
	memset(b.buffer, 7, b.size);
	if (b.node->local) {
		b.mapped = mmap(NULL, b.length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
				b.file->fd, 0);
		if (b.mapped == MAP_FAILED)
			die("the slab cannot be mapped");
	} else {
		start_peer();
	}
	for (int i = 0; i < 4; i++)
		row(i & 1, i & 2);
	if (b.peer > 0) {
		close(b.peer);
		wait(NULL);
	}
	skv_engine_close(&b.node->engine, b.file);
	skv_node_release(b.node);
	skv_http_destroy(at.http);
	free(b.buffer);
	return 0;
}
