/*
 * moves.c - the library's engine on a memory node over RDMA, by hand.
 *
 *	moves URL UUID SLAB LENGTH TOKEN bytes|stopped|broken
 *	moves URL UUID SLAB LENGTH TOKEN loop SECONDS
 *	moves URL UUID SLAB LENGTH TOKEN read|write TIMES
 *	moves URL UUID SLAB LENGTH TOKEN many CONNECTIONS
 *
 * bytes: three sizes from and to registered, other and mixed memory, read back. stopped: a writer
 * is stopped at each look at its clock in turn, after its deadline others get its place when the
 * node says that nobody is writing, it wakes with what the clock said before: the place has the
 * others' bytes. broken: queue pairs in state error, deadlines. loop: 16 threads until the time is
 * over, whatever happens to the node; the last line counts. read, write: MiB/s of so many MiB in
 * pieces of 1 MiB from or to registered memory, at the full depth, without checksums. many: so many
 * connections, each with its queue pair; says so, and ends with its input. Exit 1: a wrong byte, or
 * a hang.
 */
#include "node.h"
#include "rdma_qp.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <skv/hash.h>
#include <skv/http.h>
#include <skv/mem.h>

#define MOST (4497408u)
#define AT SKV_SUPERBLOCK_SIZE
#define DEADLINE_MS 1000u /* of a writer that is stopped */
#define LOOPS 16
#define HANG_MS 30000u

static struct {
	char **argv;
	struct skv_http *http;
	struct skv_rdma *rdma;
	struct skv_node *node;
	struct skv_engine_file *file;
	uint64_t length;
	atomic_uint good, failed;
} b;

static void die(const char *why)
{
	fprintf(stderr, "moves %s: %s\n", b.argv[6], why);
	exit(1);
}

static void open_all(void)
{
	struct skv_node_at at = { .url = b.argv[1], .token = b.argv[5] };
	char path[SKV_SLAB_PATH_MAX];
	struct skv_error err;
	uint8_t uuid[16];

	skv_uuid_from_text(b.argv[2], uuid);
	skv_slab_path((uint32_t)strtoul(b.argv[3], NULL, 10), path);
	b.length = strtoull(b.argv[4], NULL, 10);
	if (skv_http_create(at.token, NULL, &b.http, &err) != SKV_OK ||
	    skv_rdma_create(&b.rdma, &err) != SKV_OK)
		die(err.message);
	at.http = b.http;
	at.rdma = b.rdma;
	if (skv_node_open(&at, uuid, &b.node, &err) != SKV_OK ||
	    skv_engine_open(&b.node->engine, -1, path, true, &b.file, &err) != SKV_OK)
		die(err.message);
	if (!b.node->idle || !b.node->idle->qp)
		die("bytes do not go by RDMA");
}

static void close_all(void)
{
	skv_engine_close(&b.node->engine, b.file);
	skv_node_release(b.node);
	skv_rdma_destroy(b.rdma);
	skv_http_destroy(b.http);
}

static uint8_t *room(size_t n, uint8_t with)
{
	uint8_t *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096);

	if (!p)
		die("no memory");
	memset(p, with, n);
	return p;
}

/* Returns a run from `offset` on, of buffers that are given in parts of `part` bytes. */
static struct skv_io_run move(bool write, uint64_t offset, uint8_t *data, size_t n, size_t part,
			      const struct skv_clock *clock, uint64_t deadline_ms)
{
	struct iovec iov[SKV_RUN_IOV];
	struct skv_io_run r = { .file = b.file, .offset = offset, .iov = iov, .length = n };
	const struct skv_io_call by = { .clock = clock,
					.at_ms = skv_now_ms(&skv_clock_system) + deadline_ms };

	for (size_t at = 0; at < n; at += part)
		iov[r.n_iov++] = (struct iovec){ data + at, n - at < part ? n - at : part };
	(write ? skv_engine_write : skv_engine_read)(&b.node->engine, &r, 1, &by);
	return r;
}

static struct skv_io_run plain(bool write, uint64_t offset, uint8_t *data, size_t n)
{
	return move(write, offset, data, n, n, &skv_clock_system, 60000);
}

static void must(const struct skv_io_run *r)
{
	if (r->status != SKV_OK || r->done != r->length) {
		fprintf(stderr, "status %d, %llu of %llu bytes\n", r->status,
			(unsigned long long)r->done, (unsigned long long)r->length);
		die("a run failed");
	}
}

static void pattern(uint8_t *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull;

		memcpy(p + i, &x, 8);
	}
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void bytes_of(size_t n, size_t known, size_t part, uint64_t seed)
{
	uint8_t *out = room(n, 0), *in = room(n, 1);
	struct skv_io_run r;

	if (known > 0) {
		skv_rdma_map(b.rdma, out, known);
		skv_rdma_map(b.rdma, in, known);
	}
	pattern(out, n, seed);
	r = move(true, AT + 4096 * seed, out, n, part, &skv_clock_system, 60000);
	must(&r);
	r = move(false, AT + 4096 * seed, in, n, part, &skv_clock_system, 60000);
	must(&r);
	if (memcmp(in, out, n) != 0)
		die("wrong bytes");
	skv_rdma_unmap(b.rdma, out);
	skv_rdma_unmap(b.rdma, in);
	free(out);
	free(in);
}

static void test_bytes(void)
{
	static const size_t sizes[] = { 65536, 1u << 20, MOST };
	uint64_t seed = 0;

	for (int i = 0; i < 3; i++) {
		bytes_of(sizes[i], 0, sizes[i], seed++);
		bytes_of(sizes[i], sizes[i], sizes[i], seed++);
		bytes_of(sizes[i], sizes[i], 31337, seed++);
		bytes_of(sizes[i], sizes[i] / 3, 49152, seed++);
	}
}

/* ---- stopped writers ------------------------------------------------------------------------- */

static struct {
	int left; /* looks until it stops; 0: it has */
	uint64_t then;
} stop;

static uint64_t stopping_now(void *self)
{
	(void)self;
	if (stop.left == 0)
		return skv_now_ms(&skv_clock_system);
	stop.then = skv_now_ms(&skv_clock_system);
	if (--stop.left == 0)
		raise(SIGSTOP);
	return stop.then;
}

/* Exit 3: it was not stopped. */
static void be_writer(int looks)
{
	const struct skv_clock clock = { .now_ms = stopping_now };
	uint8_t *p = room(MOST, 0xAA);
	struct skv_io_run r;

	open_all();
	stop.left = looks;
	r = move(true, AT, p, MOST, 65536, &clock, DEADLINE_MS);
	_exit(stop.left > 0 ? 3 : r.status == SKV_OK ? 4 : r.touched && !r.in_flight ? 5 : 0);
}

static bool somebody_writes(void)
{
	char url[256];
	const struct skv_http_request q = { .method = "GET", .url = url, .form = SKV_HTTP_JSON,
					    .timeout_ms = 60000, .connect_ms = 10000,
					    .answer_max = 65536 };
	struct skv_memory_node about;
	struct skv_buf text = { 0 };
	struct skv_error err;
	struct skv_arena a;
	long status;
	bool yes;

	snprintf(url, sizeof url, "%.*s", (int)(strrchr(b.argv[1], '/') - b.argv[1] + 1),
		 b.argv[1]);
	skv_arena_init(&a);
	if (skv_http_do(b.http, &q, &text, &status, &err) != SKV_OK ||
	    skv_mn_read_about(&a, (const char *)text.data, text.len, &about, &err) != SKV_OK)
		die(err.message);
	yes = about.writing_ms > 0;
	skv_buf_destroy(&text);
	skv_arena_destroy(&a);
	return yes;
}

/* False: the writer was through before. */
static bool stop_at(int looks)
{
	uint8_t *ours = room(MOST, 0x55), *back = room(MOST, 0);
	char text[12];
	struct skv_io_run r;
	int status;
	pid_t pid;

	snprintf(text, sizeof text, "%d", looks);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", b.argv[0], b.argv[1], b.argv[2], b.argv[3], b.argv[4],
		      b.argv[5], "writer", text, (char *)NULL);
		_exit(2);
	}
	waitpid(pid, &status, WUNTRACED);
	if (WIFSTOPPED(status)) {
		uint64_t late = skv_now_ms(&skv_clock_system) + DEADLINE_MS;

		while (skv_now_ms(&skv_clock_system) <= late || somebody_writes())
			poll(NULL, 0, 50);
		r = plain(true, AT, ours, MOST);
		must(&r);
		kill(pid, SIGCONT);
		waitpid(pid, &status, 0);
		r = plain(false, AT, back, MOST);
		must(&r);
		if (memcmp(ours, back, MOST) != 0)
			die("a stopped writer damaged the bytes of the next");
	}
	free(ours);
	free(back);
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 99;
	if (status == 1 || status == 2 || status == 5 || status == 99)
		die("the writer failed in another way");
	return status != 3;
}

static void test_stopped(void)
{
	int looks = 1;

	while (looks < 12 && stop_at(looks))
		looks++;
	printf("  stopped at %d places\n", looks - 1);
	if (looks < 4)
		die("a writer looks at its clock more often");
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void test_broken(void)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	uint8_t *p = room(MOST, 3);
	struct skv_io_run r = plain(true, AT, p, MOST);

	must(&r);
	for (int i = 0; i < 4; i++) {
		const struct skv_qp *q = b.node->idle->qp;

		q->lib->ibv_modify_qp(q->id->qp, &error, IBV_QP_STATE);
		r = plain(i & 1, AT, p, MOST);
		if (r.status == SKV_OK || r.in_flight != (i & 1))
			die("a queue pair in state error moved bytes");
		r = plain(i & 1, AT, p, MOST);
		must(&r);
	}
	r = move(true, AT, p, MOST, MOST, &skv_clock_system, 0);
	if (r.status != SKV_E_TIMEOUT || r.in_flight || r.touched)
		die("something was posted after the deadline");
	free(p);
}

static void *loop(void *arg)
{
	const uint64_t number = (uint64_t)(uintptr_t)arg, n = 1u << 20;
	uint8_t *out = room(n, 0), *in = room(n, 0);
	uint64_t now = skv_now_ms(&skv_clock_system);
	const uint64_t end = now + strtoull(b.argv[7], NULL, 10) * 1000, place = AT + number * n;

	if (number & 1)
		skv_rdma_map(b.rdma, out, n);
	for (uint64_t i = 0; now < end; i++) {
		struct skv_io_run r;
		uint64_t begin = now;
		bool good;

		pattern(out, n, number + 100 * i);
		r = move(true, place, out, n, n, &skv_clock_system, 5000);
		good = r.status == SKV_OK;
		if (good) {
			r = move(false, place, in, n, n, &skv_clock_system, 5000);
			good = r.status == SKV_OK;
			if (good && memcmp(in, out, n) != 0)
				die("wrong bytes");
		}
		atomic_fetch_add(good ? &b.good : &b.failed, 1);
		if (!good)
			poll(NULL, 0, 100);
		now = skv_now_ms(&skv_clock_system);
		if (now - begin > HANG_MS)
			die("a call hung");
	}
	skv_rdma_unmap(b.rdma, out);
	free(out);
	free(in);
	return NULL;
}

static void test_loop(void)
{
	pthread_t id[LOOPS];

	for (uintptr_t i = 0; i < LOOPS; i++)
		pthread_create(&id[i], NULL, loop, (void *)i);
	for (int i = 0; i < LOOPS; i++)
		pthread_join(id[i], NULL);
	printf("%u %u\n", b.good, b.failed);
}

/* ---- speed and cost -------------------------------------------------------------------------- */

/* The same 16 MiB again and again, all in one call: requests of many runs are on their way. */
static void move_many(bool write)
{
	const uint32_t n = 16u << 20, times = (uint32_t)atoi(b.argv[7]) / 16;
	struct skv_io_run *runs = skv_calloc(times, sizeof *runs);
	uint64_t began = skv_now_ms(&skv_clock_system);
	const struct skv_io_call by = { .clock = &skv_clock_system, .at_ms = began + 300000 };
	uint8_t *data = room(n, 7);
	struct iovec iov = { data, n };

	if (!runs || times == 0)
		die("at least 16 MiB");
	skv_rdma_map(b.rdma, data, n);
	for (uint32_t i = 0; i < times; i++)
		runs[i] = (struct skv_io_run){ .file = b.file, .offset = AT, .iov = &iov,
					       .n_iov = 1, .length = n };
	began = skv_now_ms(&skv_clock_system);
	(write ? skv_engine_write : skv_engine_read)(&b.node->engine, runs, times, &by);
	began = skv_now_ms(&skv_clock_system) - began;
	for (uint32_t i = 0; i < times; i++)
		must(&runs[i]);
	printf("%.1f\n", times * 16 * 1000.0 / (double)(began ? began : 1));
	skv_rdma_unmap(b.rdma, data);
	skv_free(runs);
	free(data);
}

static void test_read(void) { move_many(false); }
static void test_write(void) { move_many(true); }

static void test_many(void)
{
	uint32_t n = (uint32_t)atoi(b.argv[7]), made = 0;
	struct skv_node_conn **conn = skv_calloc(n, sizeof *conn);
	struct skv_error err;

	for (; conn && made < n; made++)
		if (skv_node_take(b.node, &conn[made], &err) != SKV_OK || !conn[made]->qp)
			die("a connection without a queue pair");
	printf("%u\n", made);
	fflush(stdout);
	while (getchar() != EOF)
		;
	while (made > 0)
		skv_node_give(b.node, conn[--made], false);
	skv_free(conn);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = { { "bytes", test_bytes },	 { "stopped", test_stopped },
		      { "broken", test_broken }, { "loop", test_loop },
		      { "read", test_read },	 { "write", test_write },
		      { "many", test_many } };

	b.argv = argv;
	if (argc < 7)
		return 2;
	if (strcmp(argv[6], "writer") == 0)
		be_writer(atoi(argv[7]));
	open_all();
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		if (strcmp(argv[6], tests[i].name) == 0)
			tests[i].run();
	close_all();
	return 0;
}
