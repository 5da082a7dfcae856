/*
 * etcd_journal.c - journals of a store on etcd, in variants, beside SQLite: how many bytes a
 * second, how long an append and a start wait, what it costs in processor time and memory.
 *
 *   inside   a batch is one transaction: it compares epoch and end, puts the bytes and the new end
 *   together the same, with the batches of all partitions that wait in one transaction
 *   files    pwrite + fdatasync of a preallocated file (padded to 4 KiB), then one transaction that
 *            compares epoch and end and puts the new end
 *   grouped  files, with the ends of all partitions that wait in one transaction
 *   store    skv_store_append of the store on etcd, which does as "together"
 *   sqlite   skv_store_append, FULL
 *
 * Each partition is a thread that appends. "batch B": batches of B bytes, one after the other.
 * "rate": 5 MB/s of records arrive evenly over the partitions (300,000 started and finished blocks
 * a second), and each append takes what has arrived: the wait of a start is that of a record from
 * its arrival to its acknowledgement. Journals are trimmed and compacted as after checkpoints.
 *
 * Usage: bench_etcd_journal [--rounds N] [--seconds S] [--sync-ms N] [--dir DIR] [--only VARIANT]
 *        bench_etcd_journal --checkpoint MB [--dir DIR]
 * The variants take turns in each round; medians of the rounds, and their span, are printed. With
 * --sync-ms each sync of etcd (by strace), of SQLite and of the files lasts so much longer.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <skv/etcd.h>
#include <skv/lock.h>
#include <skv/store.h>

#include "bench_util.h"
#include "etcd_servers.h"
#include "etcd_upkeep.h"

#define PARTITIONS 16
#define FILE_BYTES ((size_t)64 << 20)
#define KEEP_BYTES ((uint64_t)8 << 20) /* of each partition's journal behind its checkpoint */
#define ROOM ((size_t)256 << 10)
#define TRIM_STEP 64u
#define RATE_BYTES (5u << 20)
#define RATE_MAX 64000u /* of one append: 16 of them fit a request of etcd */

enum variant { INSIDE, TOGETHER, FILES, GROUPED, STORE, SQLITE, VARIANTS };
static const char *const names[] = { "inside", "together", "files", "grouped", "store", "sqlite" };

static unsigned sync_ms;
static const char *dir = ".";
static struct skv_etcd *client;
static struct skv_store *store;
static uint8_t *bytes;

/* ---- slower syncs: also of the SQLite library, which finds these first ----------------------- */

static int slow_sync(long number, int fd)
{
	int rc = (int)syscall(number, fd);

	if (sync_ms)
		poll(NULL, 0, (int)sync_ms);
	return rc;
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	return slow_sync(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int fsync(int fd) { return slow_sync(SYS_fsync, fd); }

/* ---- a partition ----------------------------------------------------------------------------- */

struct part {
	uint32_t number;
	enum variant variant;
	uint64_t seq, end_mod; /* of its end's key */
	uint64_t written;
	_Atomic uint64_t upto; /* covered by a checkpoint */
	uint64_t trimmed;      /* records removed; keep_house's */
	int fd;
	size_t at;
	uint64_t fence;
	pthread_t thread;
	struct bench_times append, start;
	uint64_t sum, n;
};

static struct part parts[PARTITIONS];
static uint32_t n_parts, batch; /* 0: by rate */
static _Atomic uint64_t end_us;

static void die(const char *what, const struct skv_error *err)
{
	fprintf(stderr, "etcd_journal: %s: %s\n", what, err ? err->message : strerror(errno));
	exit(1);
}

static struct skv_etcd_bytes name(char *out, const char *format, uint32_t number, uint64_t seq)
{
	return (struct skv_etcd_bytes){ out, (size_t)snprintf(out, 48, format, number,
							      (unsigned long long)seq) };
}

/* ---- ends in etcd ---------------------------------------------------------------------------- */

#define OPS (2 * PARTITIONS)

static bool has_store(enum variant v) { return v == STORE || v == SQLITE; }

static bool is_inside(const struct part *p)
{
	return p->variant == INSIDE || p->variant == TOGETHER;
}

/* One transaction: the ends (and bytes, if any) of these partitions, if all are as they were. */
static void commit(struct part **p, uint32_t n, const size_t *len)
{
	struct skv_etcd_compare compare[OPS];
	struct skv_etcd_op op[OPS];
	struct skv_etcd_txn txn = { .compare = compare, .then = op };
	const struct skv_etcd_op all = { .kind = SKV_ETCD_TXN, .txn = &txn };
	struct skv_etcd_answer a = { 0 };
	char key[PARTITIONS][3][48], end[PARTITIONS][48];
	struct skv_error err;

	for (uint32_t i = 0; i < n; i++) {
		const struct skv_etcd_bytes at = name(key[i][0], "s/%05u/end", p[i]->number, 0);

		compare[txn.n_compare++] = (struct skv_etcd_compare){
			.target = SKV_ETCD_CREATE, .relation = SKV_ETCD_NOT_EQUAL,
			.key = name(key[i][1], "s/%05u/owner", p[i]->number, 0) };
		compare[txn.n_compare++] = (struct skv_etcd_compare){
			.target = SKV_ETCD_MOD, .relation = SKV_ETCD_EQUAL, .key = at,
			.number = p[i]->end_mod };
		if (is_inside(p[i]))
			op[txn.n_then++] = (struct skv_etcd_op){
				.kind = SKV_ETCD_PUT, .value = { bytes, len[i] },
				.key = name(key[i][2], "s/%05u/j/%016llx", p[i]->number,
					    p[i]->seq + 1) };
		op[txn.n_then++] = (struct skv_etcd_op){
			.kind = SKV_ETCD_PUT, .key = at,
			.value = name(end[i], "%05u %016llx checksum........", p[i]->number,
				      p[i]->seq + 1) };
	}
	if (skv_etcd_run(client, &all, &a, &err) != SKV_OK)
		die("append", &err);
	if (!a.result.succeeded)
		die("append", &(struct skv_error){ .message = "another writer" });
	for (uint32_t i = 0; i < n; i++)
		p[i]->end_mod = a.revision;
	skv_etcd_answer_free(&a);
}

/* What waits for a transaction that others' ends go into, too. */
static struct {
	struct skv_mutex lock;
	struct skv_cond done;
	struct part *waiting[PARTITIONS];
	size_t len[PARTITIONS];
	uint32_t n;
	bool busy;
	uint64_t turn, finished; /* those that wait are in `turn`; all up to `finished` are done */
} group;

static void commit_grouped(struct part *p, size_t len)
{
	struct part *all[PARTITIONS];
	size_t lens[PARTITIONS];
	uint64_t mine;
	uint32_t n;

	skv_mutex_lock(&group.lock);
	group.len[group.n] = len;
	group.waiting[group.n++] = p;
	mine = group.turn;
	while (group.finished <= mine && group.busy)
		skv_cond_wait(&group.done, &group.lock);
	if (group.finished <= mine) { /* this thread does it for all of its turn */
		n = group.n;
		memcpy(all, group.waiting, sizeof all);
		memcpy(lens, group.len, sizeof lens);
		group.n = 0;
		group.busy = true;
		group.turn++;
		skv_mutex_unlock(&group.lock);
		commit(all, n, lens);
		skv_mutex_lock(&group.lock);
		group.busy = false;
		group.finished = mine + 1;
		skv_cond_broadcast(&group.done);
	}
	skv_mutex_unlock(&group.lock);
}

/* ---- one append ------------------------------------------------------------------------------ */

static void write_file(struct part *p, size_t len)
{
	const size_t padded = (len + 4095) & ~(size_t)4095;

	if (p->at + padded > FILE_BYTES)
		p->at = 0; /* a file that was trimmed is used again */
	if (pwrite(p->fd, bytes, padded, (off_t)p->at) != (ssize_t)padded || fdatasync(p->fd) != 0)
		die("journal file", NULL);
	p->at += padded;
}

/* An empty one: the store removes the records that it covers. */
static void checkpoint(struct part *p, uint64_t upto)
{
	struct skv_error err;
	uint64_t id;

	if (skv_store_checkpoint_begin(store, p->number, p->fence, &id, &err) != SKV_OK ||
	    skv_store_checkpoint_commit(store, p->number, p->fence, id, 0, upto, &err) != SKV_OK)
		die("checkpoint", &err);
	p->trimmed = upto;
}

/* Removes records as if a checkpoint had come, in steps, and compacts; beside the appends. */
static void *keep_house(void *ctx)
{
	(void)ctx;
	while (bench_now_us() < end_us) {
		uint64_t revision = 0;

		for (uint32_t i = 0; i < n_parts; i++) {
			struct part *p = &parts[i];
			const uint64_t upto = atomic_load(&p->upto);
			char from[48], to[48];

			if (p->variant == STORE && p->trimmed < upto)
				checkpoint(p, upto);
			for (; is_inside(p) && p->trimmed < upto; p->trimmed += TRIM_STEP) {
				const struct skv_etcd_op del = {
					.kind = SKV_ETCD_DELETE,
					.key = name(from, "s/%05u/j/%016llx", p->number, 0),
					.end = name(to, "s/%05u/j/%016llx", p->number,
						    p->trimmed + TRIM_STEP) };
				struct skv_etcd_answer a = { 0 };

				if (skv_etcd_run(client, &del, &a, NULL) == SKV_OK)
					revision = a.revision;
				skv_etcd_answer_free(&a);
			}
		}
		if (revision)
			skv_etcd_compact(client, revision, NULL);
		poll(NULL, 0, 100);
	}
	return NULL;
}

static void append(struct part *p, size_t len)
{
	struct skv_error err;

	if (p->variant == FILES || p->variant == GROUPED)
		write_file(p, len);
	if (p->variant == GROUPED || p->variant == TOGETHER)
		commit_grouped(p, len);
	else if (has_store(p->variant)) {
		if (skv_store_append(store, p->number, p->fence, p->seq + 1, bytes, len, 0, &err) !=
		    SKV_OK)
			die(names[p->variant], &err);
	} else
		commit(&p, 1, &len);
	p->seq++;
	p->written += len;
	p->sum += len;
	p->n++;
	if (p->written >= KEEP_BYTES) {
		p->written = 0;
		atomic_store(&p->upto, p->seq - TRIM_STEP);
	}
}

static void *run_part(void *ctx)
{
	const uint64_t rate = RATE_BYTES / n_parts, begin = bench_now_us();
	struct part *p = ctx;
	uint64_t taken = begin, now = begin;

	while (now < end_us) {
		size_t len = batch;
		uint64_t first = taken;

		if (batch == 0) { /* what has arrived since */
			len = (size_t)((now - taken) * rate / 1000000);
			if (len < 300) {
				poll(NULL, 0, 1);
				now = bench_now_us();
				continue;
			}
			len = len < RATE_MAX ? len : RATE_MAX;
			taken += len * 1000000 / rate;
		}
		append(p, len);
		bench_times_add(&p->append, bench_now_us() - now);
		now = bench_now_us();
		for (; batch == 0 && first < taken; first += 500)
			bench_times_add(&p->start, now - first);
	}
	return NULL;
}

/* ---- the servers ----------------------------------------------------------------------------- */

static struct etcd_servers servers;

/* Few entries of the raft log stay in memory: by default 100,000, which is gigabytes of journal. */
static void start_servers(void)
{
	static char wrapper[200];

	if (sync_ms)
		snprintf(wrapper, sizeof wrapper,
			 "strace -D -f --seccomp-bpf -qqq -o /dev/null -e trace=fdatasync,fsync "
			 "-e inject=fdatasync,fsync:delay_exit=%u", sync_ms * 1000);
	etcd_start_in(&servers, dir, 3, wrapper, "--snapshot-count 1000 --quota-backend-bytes "
		      "8589934592 --log-level error --logger zap");
}

/* The sum of a number that follows `label` in a file of each server's /proc folder. */
static uint64_t sum_proc(const char *file, const char *label)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < servers.n; i++) {
		char path[64], text[4096], *at;
		FILE *f;
		size_t n;

		snprintf(path, sizeof path, "/proc/%d/%s", (int)servers.pid[i], file);
		f = fopen(path, "r");
		n = f ? fread(text, 1, sizeof text - 1, f) : 0;
		text[n] = '\0';
		at = strstr(text, label);
		sum += at ? strtoull(at + strlen(label), NULL, 10) : 0;
		if (f)
			fclose(f);
	}
	return sum;
}

static uint64_t written(void) { return sum_proc("io", "\nwrite_bytes: "); }

static uint64_t etcd_cpu_us(void)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < servers.n; i++)
		ns += bench_cpu_ns(servers.pid[i]);
	return ns / 1000;
}

static void print_servers(void)
{
	struct skv_etcd_status status;

	if (skv_etcd_status_get(client, &status, NULL) == SKV_OK)
		printf("etcd %s: database %.0f MB, used %.0f MB; memory of three %.0f MB, at most "
		       "%.0f MB\n", status.version, (double)status.db_bytes / 1e6,
		       (double)status.db_bytes_used / 1e6,
		       (double)sum_proc("status", "VmRSS:") / 1e3,
		       (double)sum_proc("status", "VmHWM:") / 1e3);
}

/* ---- one run --------------------------------------------------------------------------------- */

struct result {
	double mb_s, append_50, append_99, start_50, start_99, client_us, etcd_us, disk_mb_s;
};

static void prepare(enum variant v)
{
	static uint64_t run;
	struct skv_error err;
	char path[300], key[48];

	for (uint32_t i = 0; i < n_parts; i++) {
		struct part *p = &parts[i];
		const struct skv_etcd_op own = {
			.kind = SKV_ETCD_PUT, .value = skv_etcd_text("epoch"),
			.key = name(key, "s/%05u/owner", (uint32_t)(run * PARTITIONS + i), 0) };

		*p = (struct part){ .number = (uint32_t)(run * PARTITIONS + i), .variant = v,
				    .fd = -1 };
		if (has_store(v)) {
			p->number = i;
			if (skv_store_acquire(store, i, "bench", 600000, &p->fence, NULL, 0,
					      &err) != SKV_OK)
				die("acquire", &err);
			p->seq = 0;
			continue;
		}
		if (skv_etcd_run_within(client, 60000, &own, NULL, &err) != SKV_OK)
			die("etcd", &err);
		if (is_inside(p))
			continue;
		snprintf(path, sizeof path, "%s/journal.%u", dir, i);
		p->fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
		unlink(path); /* gone with its descriptor */
		for (size_t at = 0; at < FILE_BYTES; at += ROOM)
			if (pwrite(p->fd, bytes, ROOM, (off_t)at) != (ssize_t)ROOM)
				die("journal file", NULL);
		if (syscall(SYS_fsync, p->fd) != 0)
			die("journal file", NULL);
	}
	run++;
}

static void remove_sqlite(void)
{
	static const char *const tails[] = { "", "-wal", "-shm", "-checkpoint", "-checkpoint-wal",
					     "-checkpoint-shm", "-reserve" };
	char path[300];

	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
		snprintf(path, sizeof path, "%s/store.db%s", dir, tails[i]);
		unlink(path);
	}
}

static void open_store(enum variant v)
{
	static char path[300];
	static unsigned runs;
	const struct skv_store_options o = { .path = path };
	struct skv_error err;

	remove_sqlite();
	if (v == SQLITE)
		snprintf(path, sizeof path, "%s/store.db", dir);
	else
		snprintf(path, sizeof path, "etcd://%s/run%u", etcd_endpoints(&servers, 0), runs++);
	if (skv_store_open(v == SQLITE ? &skv_store_sqlite : &skv_store_etcd, &o, &store, &err) !=
	    SKV_OK)
		die(names[v], &err);
}

static uint64_t own_cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static struct result run(enum variant v, double seconds)
{
	struct bench_times append_all = { 0 }, start_all = { 0 };
	uint64_t begin, cpu, etcd_cpu, disk, n = 0, sum = 0;
	struct result r;
	pthread_t house;

	if (has_store(v))
		open_store(v);
	prepare(v);
	cpu = own_cpu_us();
	etcd_cpu = etcd_cpu_us();
	disk = written();
	begin = bench_now_us();
	end_us = begin + (uint64_t)(seconds * 1e6);
	for (uint32_t i = 0; i < n_parts; i++)
		pthread_create(&parts[i].thread, NULL, run_part, &parts[i]);
	pthread_create(&house, NULL, keep_house, NULL);
	for (uint32_t i = 0; i < n_parts; i++) {
		pthread_join(parts[i].thread, NULL);
		bench_times_merge(&append_all, &parts[i].append);
		bench_times_merge(&start_all, &parts[i].start);
		bench_times_free(&parts[i].append);
		bench_times_free(&parts[i].start);
		n += parts[i].n;
		sum += parts[i].sum;
	}
	pthread_join(house, NULL);
	seconds = (double)(bench_now_us() - begin) / 1e6;
	r = (struct result){ (double)sum / 1e6 / seconds,
			     (double)bench_quantile(&append_all, .5) / 1e3,
			     (double)bench_quantile(&append_all, .99) / 1e3,
			     (double)bench_quantile(&start_all, .5) / 1e3,
			     (double)bench_quantile(&start_all, .99) / 1e3,
			     (double)(own_cpu_us() - cpu) / (double)n,
			     (double)(etcd_cpu_us() - etcd_cpu) / (double)n,
			     (double)(written() - disk) / 1e6 / seconds };
	bench_times_free(&append_all);
	bench_times_free(&start_all);
	for (uint32_t i = 0; i < n_parts; i++)
		if (parts[i].fd >= 0)
			close(parts[i].fd);
	if (has_store(v)) {
		skv_store_close(store);
		remove_sqlite();
	}
	return r;
}

/* ---- tables ---------------------------------------------------------------------------------- */

#define ROUNDS_MAX 15

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median of one column of the rounds, and its span. */
static void print_column(const struct result *all, unsigned rounds, size_t offset,
			 const char *format)
{
	double v[ROUNDS_MAX];

	for (unsigned i = 0; i < rounds; i++)
		v[i] = *(const double *)((const char *)&all[i] + offset);
	qsort(v, rounds, sizeof v[0], by_value);
	printf(" ");
	printf(format, v[rounds / 2]);
	printf(" (");
	printf(format, v[0]);
	printf("-");
	printf(format, v[rounds - 1]);
	printf(") |");
}

static void measure(uint32_t partitions, uint32_t bytes_each, unsigned rounds, double seconds,
		    unsigned chosen)
{
	static struct result all[VARIANTS][ROUNDS_MAX];

	n_parts = partitions;
	batch = bytes_each;
	for (unsigned i = 0; i < rounds; i++)
		for (unsigned v = 0; v < VARIANTS; v++)
			if (chosen & 1u << v)
				all[v][i] = run(v, seconds);
	for (unsigned v = 0; v < VARIANTS; v++) {
		if (!(chosen & 1u << v))
			continue;
		if (batch)
			printf("| %s | %u x %u KB |", names[v], partitions, batch / 1000);
		else
			printf("| %s | %u, 5 MB/s |", names[v], partitions);
		print_column(all[v], rounds, offsetof(struct result, mb_s), "%.1f");
		print_column(all[v], rounds, offsetof(struct result, append_50), "%.1f");
		print_column(all[v], rounds, offsetof(struct result, append_99), "%.1f");
		print_column(all[v], rounds, offsetof(struct result, start_50), "%.1f");
		print_column(all[v], rounds, offsetof(struct result, start_99), "%.1f");
		print_column(all[v], rounds, offsetof(struct result, client_us), "%.0f");
		print_column(all[v], rounds, offsetof(struct result, etcd_us), "%.0f");
		print_column(all[v], rounds, offsetof(struct result, disk_mb_s), "%.0f");
		printf("\n");
		fflush(stdout);
	}
}

/* ---- checkpoints in etcd --------------------------------------------------------------------- */

#define CHUNK ((size_t)1 << 20) /* below the limit of a request */

static double since(uint64_t begin) { return (double)(bench_now_us() - begin) / 1e6; }

static void put_chunks(uint32_t id, uint32_t n)
{
	static uint8_t chunk[CHUNK];
	struct skv_error err;
	char key[48];

	memset(chunk, (int)id, sizeof chunk);
	for (uint32_t i = 0; i < n; i++) {
		const struct skv_etcd_op op = { .kind = SKV_ETCD_PUT, .value = { chunk, CHUNK },
						.key = name(key, "c/%05u/%016llx", id, i) };

		if (skv_etcd_run(client, &op, NULL, &err) != SKV_OK)
			die("checkpoint", &err);
	}
}

static void remove_chunks(uint32_t id)
{
	char from[48], to[48];
	const struct skv_etcd_op op = { .kind = SKV_ETCD_DELETE,
					.key = name(from, "c/%05u/", id, 0),
					.end = name(to, "c/%05u0", id, 0) };
	struct skv_etcd_answer a = { 0 };
	struct skv_error err;

	if (skv_etcd_run(client, &op, &a, &err) != SKV_OK)
		die("delete", &err);
	skv_etcd_compact(client, a.revision, NULL);
	skv_etcd_answer_free(&a);
}

/* How long member 2, which was away, needs to have what the others have. */
static double catch_up(void)
{
	struct skv_etcd_status ours, its;
	struct skv_etcd_options o = { .timeout_ms = 60000 };
	const uint64_t begin = bench_now_us();
	char endpoint[40];
	struct skv_etcd *c;
	int rc;

	snprintf(endpoint, sizeof endpoint, "127.0.0.1:%u", servers.client[2]);
	o.endpoints = endpoint;
	etcd_start_one(&servers, 2);
	if (skv_etcd_status_get(client, &ours, NULL) != SKV_OK ||
	    skv_etcd_open(&o, &c, NULL) != SKV_OK)
		die("status", NULL);
	do
		rc = skv_etcd_status_get(c, &its, NULL);
	while (rc != SKV_OK || its.raft_applied < ours.raft_applied);
	skv_etcd_close(c);
	return since(begin);
}

/* Two checkpoints of so many MB, one after the other, beside a journal of 5 MB/s; the first is then
 * removed. A member misses both. */
static void measure_checkpoints(uint32_t mb)
{
	struct skv_error err;
	uint64_t begin;

	n_parts = 1;
	prepare(INSIDE);
	end_us = bench_now_us() + 3000000;
	run_part(&parts[0]);
	printf("before: start p50 %.1f ms, p99 %.1f ms\n",
	       (double)bench_quantile(&parts[0].start, .5) / 1e3,
	       (double)bench_quantile(&parts[0].start, .99) / 1e3);
	print_servers();
	etcd_kill(&servers, 2);
	for (uint32_t id = 1; id <= 2; id++) {
		bench_times_free(&parts[0].start);
		end_us = UINT64_MAX;
		pthread_create(&parts[0].thread, NULL, run_part, &parts[0]);
		begin = bench_now_us();
		put_chunks(id, mb);
		printf("checkpoint %u: %u MB in %.1f s; ", id, mb, since(begin));
		end_us = 0;
		pthread_join(parts[0].thread, NULL);
		printf("start p50 %.1f ms, p99 %.1f ms\n",
		       (double)bench_quantile(&parts[0].start, .5) / 1e3,
		       (double)bench_quantile(&parts[0].start, .99) / 1e3);
		print_servers();
	}
	remove_chunks(1);
	print_servers();
	printf("the member that was away has caught up after %.1f s\n", catch_up());
	print_servers();
	begin = bench_now_us();
	if (skv_etcd_defragment(client, 120000, &err) != SKV_OK)
		die("defragment", &err);
	printf("defragmented one member in %.1f s\n", since(begin));
	print_servers();
}

int main(int argc, char **argv)
{
	static const uint32_t partitions[] = { 1, 4, 16 }, batches[] = { 0, 20000, 64000 };
	size_t n_batches = 3;
	unsigned rounds = 3, chosen = (1u << VARIANTS) - 1;
	struct skv_etcd_options o = { .timeout_ms = 30000 };
	double seconds = 3;
	uint32_t checkpoint = 0;
	struct skv_error err;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--rounds"))
			rounds = (unsigned)atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--seconds"))
			seconds = atof(argv[i + 1]);
		else if (!strcmp(argv[i], "--sync-ms"))
			sync_ms = (unsigned)atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--dir"))
			dir = argv[i + 1];
		else if (!strcmp(argv[i], "--batches")) /* 1: by rate alone */
			n_batches = (size_t)atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--checkpoint"))
			checkpoint = (uint32_t)atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--only"))
			for (unsigned v = 0; v < VARIANTS; v++)
				chosen = !strcmp(argv[i + 1], names[v]) ? 1u << v : chosen;
	}
	rounds = rounds < ROUNDS_MAX ? rounds : ROUNDS_MAX;
	skv_mutex_init(&group.lock);
	skv_cond_init(&group.done);
	bytes = bench_memory(ROOM);
	start_servers();
	o.endpoints = etcd_endpoints(&servers, 0);
	if (skv_etcd_open(&o, &client, &err) != SKV_OK)
		die("etcd", &err);
	if (checkpoint) {
		measure_checkpoints(checkpoint);
		skv_etcd_close(client);
		etcd_stop(&servers);
		return 0;
	}
	printf("| variant | partitions | MB/s | append p50 ms | p99 | start p50 ms | p99 | client "
	       "CPU us/batch | etcd CPU us/batch (three) | etcd writes MB/s (three) |\n");
	for (size_t b = 0; b < n_batches && b < 3; b++)
		for (size_t i = 0; i < 3; i++)
			measure(partitions[i], batches[b], rounds, seconds, chosen);
	print_servers();
	skv_etcd_close(client);
	etcd_stop(&servers);
	return 0;
}
