/*
 * torture.c - usrbio_torture SLABKVD quick|long|prefix
 *
 * Sixteen threads put, get and delete blocks of two sizes through the engine "usrbio" while the
 * stand-in for 3FS is slow, fails, tears writes apart, holds requests back and dies: no wrong byte,
 * no call that does not come back, and when it is over everything can be written and read. Then
 * clients are killed. Nothing may be left of any of them in /dev/shm.
 */
#include "torture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANG_MS 60000
#define PATIENT "20000" /* ms: nothing that waits for so long is given up */
#define IMPATIENT "1000"

struct world {
	struct manager m;
	char mount[128], url[64];
	struct load load;
	int64_t epoch;
	int shm_before; /* objects of 3FS's library */
};

/* ---- what befalls the daemon ----------------------------------------------------------------- */

/* Called every few milliseconds while the load runs. */
struct scenario {
	const char *name;
	const char *calm;  /* knobs */
	const char *storm; /* for `gale` of `gale` + 5 steps; NULL: as ever */
	int gale;
	/* With a handle that gives up what the storm holds back; without the pool, for what is
	 * given up in it stays away permanently. */
	bool impatient;
	/* So many steps the daemon dies, and is another one at the next; 0: never. */
	int restart_every;
};

static const struct scenario scenarios[] = {
	{ .name = "slow", .calm = "delay_us=200 jitter_us=3000" },
	{ .name = "errors",
	  .calm = "jitter_us=1000 fault=read:EIO:0.05 fault=read:EREMOTEIO:0.05 "
		  "fault=read:SHORT:0.03 fault=read:EREMOTEIO:0.01:batch fault=write:EIO:0.05 "
		  "fault=write:EREMOTEIO:0.03:done fault=write:ENOSPC:0.05" },
	{ .name = "torn writes",
	  .calm = "jitter_us=1000 fault=write:EIO:0.2:torn fault=write:ENOSPC:0.1:torn" },
	{ .name = "held back", .calm = "jitter_us=500", .storm = "hold=1", .gale = 1 },
	{ .name = "for long", .calm = "jitter_us=500", .storm = "hold=1", .gale = 15,
	  .impatient = true },
	{ .name = "restarts", .calm = "delay_us=1000 jitter_us=2000", .restart_every = 25 },
	{ .name = "all of it",
	  .calm = "jitter_us=4000 fault=read:EIO:0.03 fault=read:SHORT:0.03 "
		  "fault=write:EREMOTEIO:0.05:torn fault=write:ENOSPC:0.03 fault=iov:ENOENT:0.1 "
		  "fault=ring:EIO:0.1 fault=reg:ENOMEM:0.05",
	  .storm = "hold=1",
	  .gale = 5,
	  .restart_every = 35 },
};
#define N_SCENARIOS (sizeof scenarios / sizeof scenarios[0])

static void knobs(struct world *w, const char *text)
{
	char all[700];

	snprintf(all, sizeof all, "epoch=%lld %s", (long long)w->epoch, text);
	standin_set(w->mount, all);
}

static bool is_down(const struct scenario *s, int step)
{
	return s->restart_every && step % s->restart_every == 3;
}

static void step(struct world *w, const struct scenario *s, int n)
{
	if (is_down(s, n))
		knobs(w, "down=1");
	else if (s->restart_every && n % s->restart_every == 4)
		standin_restart(w->mount, ++w->epoch, s->calm);
	else
		knobs(w, s->storm && n % (s->gale + 5) < s->gale ? s->storm : s->calm);
}

/* ---- load ------------------------------------------------------------------------------------ */

static void watch_for_hangs(struct world *w, const struct scenario *s)
{
	uint64_t now = load_now_ms();

	for (int i = 0; i < THREADS; i++) {
		uint64_t since = atomic_load(&w->load.busy_since[i]);

		MUST(!since || now < since + HANG_MS,
		     "%s: thread %d is in one call for more than %d ms; epoch %lld, %lu requests "
		     "lost so far, seed %lu",
		     s->name, i, HANG_MS, (long long)w->epoch,
		     standin_count(w->mount, COUNT_lost_ios), w->load.seed);
	}
	manager_alive(&w->m);
}

static uint64_t n_ios(const struct world *w)
{
	return standin_count(w->mount, COUNT_read_ios) + standin_count(w->mount, COUNT_write_ios);
}

/* Threads work, and the scenario's steps befall them, for at least `ms`, and until what it is for
 * has happened. It never ends while the daemon is down: that one does not come back. */
static void run_load(struct world *w, const struct scenario *s, uint64_t ms)
{
	struct load *l = &w->load;
	uint64_t begin = load_now_ms(), hits = l->hits, written = l->written,
		 faults = standin_count(w->mount, COUNT_faults);
	bool faulty = strstr(s->calm, "fault=") != NULL;
	pthread_t threads[THREADS];
	int n = 0, least = s->gale + 5;

	knobs(w, s->calm);
	atomic_store(&l->stop, false);
	l->seed++;
	load_start(l, threads, THREADS);
	while (load_now_ms() < begin + ms || n < least || is_down(s, n) || l->hits - hits < 10 ||
	       l->written - written < 10 ||
	       (faulty && standin_count(w->mount, COUNT_faults) == faults)) {
		poll(NULL, 0, 100);
		watch_for_hangs(w, s);
		step(w, s, ++n);
		MUST(load_now_ms() < begin + ms + HANG_MS,
		     "%s: hardly anything is written or read, or befallen by a fault", s->name);
	}
	atomic_store(&l->stop, true);
	knobs(w, s->calm); /* nothing is held back any more */
	for (int i = 0; i < THREADS; i++) {
		uint64_t until = load_now_ms() + HANG_MS;

		while (atomic_load(&l->busy_since[i]) && load_now_ms() < until)
			poll(NULL, 0, 10);
		watch_for_hangs(w, s);
		pthread_join(threads[i], NULL);
	}
	knobs(w, "");
}

static void run_scenario(struct world *w, const struct scenario *s, uint64_t ms)
{
	uint64_t begin = load_now_ms(), faults = standin_count(w->mount, COUNT_faults),
		 ios = n_ios(w), lost = standin_count(w->mount, COUNT_lost_ios),
		 n_restarts = (uint64_t)w->epoch;
	struct load *l = &w->load, was = *l;

	if (s->impatient) {
		l->kv = load_open(w->mount, w->url, IMPATIENT);
		l->pool = NULL;
	}
	run_load(w, s, ms);
	load_settle(l);
	if (s->impatient) {
		load_close(l);
		l->kv = was.kv;
		l->pool = was.pool;
	}
	ios = n_ios(w) - ios;
	faults = standin_count(w->mount, COUNT_faults) - faults;
	lost = standin_count(w->mount, COUNT_lost_ios) - lost;
	printf("%-12s %5lu ms: %6lu hits %5lu misses %4lu errors, %5lu written %5lu there %4lu "
	       "busy %4lu failed; %lu reads and writes, %lu faults, %lu restarts, %lu "
	       "requests lost\n",
	       s->name, load_now_ms() - begin, l->hits - was.hits, l->misses - was.misses,
	       l->errors - was.errors, l->written - was.written, l->exists - was.exists,
	       l->busy - was.busy, l->failed - was.failed, ios, faults,
	       (uint64_t)w->epoch - n_restarts, lost);
	fflush(stdout);
	MUST(standin_count(w->mount, COUNT_shared_ios) == 0,
	     "%s: memory that a request still used was given to another one", s->name);
	MUST(!s->restart_every || w->epoch > (int64_t)n_restarts, "the daemon was not restarted");
}

/* ---- what may not be left -------------------------------------------------------------------- */

/* Shared memory of the client library that belongs to a process:
 * slabkv-NAME-NAMESPACE-PID-START. */
static int shm_of(pid_t pid)
{
	DIR *dir = opendir("/dev/shm");
	struct dirent *d;
	char part[32];
	int n = 0;

	MUST(dir, "/dev/shm: %s", strerror(errno));
	snprintf(part, sizeof part, "-%d-", (int)pid);
	while ((d = readdir(dir)))
		n += strncmp(d->d_name, "slabkv-", 7) == 0 && strstr(d->d_name, part);
	closedir(dir);
	return n;
}

static int mapped_shm(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	MUST(f, "/proc/self/maps: %s", strerror(errno));
	while (fgets(line, sizeof line, f))
		n += strstr(line, " /dev/shm/") != NULL;
	fclose(f);
	return n;
}

/* Descriptors on files of blocks. */
static int open_slabs(const struct world *w)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;
	char slabs[160], target[512];
	int n = 0;

	MUST(dir, "/proc/self/fd: %s", strerror(errno));
	snprintf(slabs, sizeof slabs, "%s/slabs/", w->mount);
	while ((d = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), d->d_name, target, sizeof target - 1);

		target[len > 0 ? len : 0] = 0;
		n += strncmp(target, slabs, strlen(slabs)) == 0;
	}
	closedir(dir);
	return n;
}

/* The handle is closed: so is all that it had. The daemon's last batches may take a moment. */
static void nothing_is_left(struct world *w)
{
	uint64_t until = load_now_ms() + 10000;

	while ((mapped_shm() || shm_count(w->mount) > w->shm_before) &&
	       load_now_ms() < until)
		poll(NULL, 0, 10);
	MUST(shm_of(getpid()) == 0, "shared memory of this process is left in /dev/shm");
	MUST(shm_count(w->mount) <= w->shm_before,
	     "shared memory of 3FS's library is left in /dev/shm");
	MUST(mapped_shm() == 0, "%d pieces of shared memory are still mapped", mapped_shm());
	MUST(standin_links(w->mount) == 0, "%d links are left below 3fs-virt/iovs",
	     standin_links(w->mount));
	MUST(open_slabs(w) == 0, "%d slab files are still open", open_slabs(w));
}

/* ---- killed clients -------------------------------------------------------------------------- */

/* usrbio_torture --victim MOUNT URL: puts and gets, tells so on descriptor 3, until it is
 * killed. */
static int victim(const char *mount, const char *url)
{
	struct load l = { .progress = 3, .chains = 4, .seed = (uint64_t)getpid() };
	pthread_t threads[THREADS];

	l.kv = load_open(mount, url, PATIENT);
	load_attach(&l);
	load_start(&l, threads, 8);
	pthread_join(threads[0], NULL); /* never: nobody stops them */
	return 1;
}

/* usrbio_torture --visitor MOUNT URL: comes and goes. The daemon gets to see who has died
 * meanwhile. */
static int visitor(const char *mount, const char *url)
{
	slabkv_close(load_open(mount, url, PATIENT));
	return 0;
}

static pid_t start_client(const struct world *w, const char *what, int tell)
{
	pid_t pid = fork();

	MUST(pid >= 0, "%s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* never outlive the test */
		if (tell < 0 || dup2(tell, 3) == 3)
			execl("/proc/self/exe", "usrbio_torture", what, w->mount, w->url,
			      (char *)NULL);
		_exit(127);
	}
	return pid;
}

/* kill -9 in the midst of the work. */
static void kill_one(struct world *w, int after)
{
	struct pollfd pfd = { .events = POLLIN };
	int ends[2], status;
	char byte;
	pid_t pid;

	MUST(pipe2(ends, O_CLOEXEC) == 0, "%s", strerror(errno));
	pid = start_client(w, "--victim", ends[1]);
	close(ends[1]);
	pfd.fd = ends[0];
	for (int i = 0; i < after; i++) {
		MUST(poll(&pfd, 1, HANG_MS) == 1 && read(ends[0], &byte, 1) == 1,
		     "a client does nothing");
	}
	kill(pid, SIGKILL);
	MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "a client ended by itself");
	close(ends[0]);
	(void)slabkv_pool_sweep();
	MUST(shm_of(pid) == 0, "shared memory of a killed client is left in /dev/shm");
}

static void kill_clients(struct world *w, int n)
{
	int status;
	pid_t pid;

	for (int i = 0; i < n; i++)
		kill_one(w, 1 + i * 7 % 40);
	pid = start_client(w, "--visitor", -1);
	MUST(waitpid(pid, &status, 0) == pid && status == 0, "a client ended with %d", status);
	printf("%d clients killed\n", n);
	/* Both acknowledged and unacknowledged writes of killed processes can be there again. */
	w->load.kv = load_open(w->mount, w->url, PATIENT);
	load_settle(&w->load);
	slabkv_close(w->load.kv);
}

/* ---- start ----------------------------------------------------------------------------------- */

static void make_objects(struct world *w)
{
	struct slabkv *kv = manager_connect(&w->m);
	struct slabkv_error err;
	char storage[320];

	snprintf(storage, sizeof storage,
		 "{\"type\":\"hf3fs\",\"root\":\"%s/slabs\",\"capacity\":\"16G\",\"unit\":\"16M\","
		 "\"file_size\":\"512M\",\"chunk_size\":\"1M\",\"any_mount\":true}",
		 w->mount);
	MUST(slabkv_object_set(kv, SLABKV_STORAGE, "slabs", storage, NULL, &err) == SLABKV_OK,
	     "%s: %s", err.field, err.message);
	MUST(slabkv_object_set(kv, SLABKV_GROUP, "g", "{\"storages\":[\"slabs\"]}", NULL, &err) ==
		     SLABKV_OK,
	     "%s", err.message);
	for (int i = 0; i < N_MODELS; i++) {
		struct slabkv_spec spec = { "kv", model_bytes[i] };
		const struct slabkv_instance m = { .size = sizeof(struct slabkv_instance),
						   .id = model_name[i],
						   .group = "g",
						   .specs = &spec,
						   .spec_size = sizeof(struct slabkv_spec),
						   .n_specs = 1 };

		MUST(slabkv_instance_put(kv, &m, &err) == SLABKV_OK, "%s", err.message);
	}
	slabkv_close(kv);
}

static void start(struct world *w, const char *program)
{
	memset(w, 0, sizeof *w);
	manager_init(&w->m, program, "normal", "64M");
	snprintf(w->mount, sizeof w->mount, "%s/3fs", w->m.dir);
	MUST(mkdir(w->mount, 0700) == 0, "%s", strerror(errno));
	setenv("HF3FS_LIB", HF3FS_STANDIN, 1);
	setenv("HF3FS_STANDIN_ROOT", w->mount, 1);
	w->epoch = 1;
	knobs(w, "");
	manager_start(&w->m);
	snprintf(w->url, sizeof w->url, "http://127.0.0.1:%s", w->m.port);
	make_objects(w);
	w->shm_before = shm_count(w->mount);
	w->load.progress = -1;
}

/* A fresh prefix is read with an eighth as many requests as it has blocks, at most. */
static void prefix(struct world *w, uint64_t bytes)
{
	const char *why = "";
	uint64_t ios = load_prefix(&w->load, w->mount, "prefix", bytes, 512);

	printf("512 blocks of %llu bytes: %llu reads; engine %s %s\n", (unsigned long long)bytes,
	       (unsigned long long)ios, slabkv_engine(w->load.kv, &why), why);
	MUST(strcmp(slabkv_engine(w->load.kv, NULL), "usrbio") == 0, "%s", why);
	MUST(ios > 0 && ios * 8 <= 512, "%llu reads", (unsigned long long)ios);
}

int main(int argc, char **argv)
{
	bool lasting = argc == 3 && strcmp(argv[2], "long") == 0;
	struct world w;

	if (argc == 4 && strcmp(argv[1], "--victim") == 0)
		return victim(argv[2], argv[3]);
	if (argc == 4 && strcmp(argv[1], "--visitor") == 0)
		return visitor(argv[2], argv[3]);
	if (argc != 3) {
		fputs("usage: usrbio_torture SLABKVD quick|long|prefix\n", stderr);
		return 2;
	}
	start(&w, argv[1]);
	w.load.chains = lasting ? 12 : 4;
	w.load.kv = load_open(w.mount, w.url, PATIENT);
	load_attach(&w.load);
	prefix(&w, 65536);
	if (lasting)
		prefix(&w, 1 << 20);
	for (size_t i = 0; i < N_SCENARIOS && strcmp(argv[2], "prefix") != 0; i++)
		run_scenario(&w, &scenarios[i], lasting ? 20000 : 400);
	load_close(&w.load);
	nothing_is_left(&w);
	if (strcmp(argv[2], "prefix") != 0)
		kill_clients(&w, lasting ? 60 : 3);
	nothing_is_left(&w);
	manager_stop(&w.m);
	manager_remove(&w.m);
	return 0;
}
