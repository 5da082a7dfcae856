/*
 * conformance.c - the conformance suite of USRBIO: usrbio_conformance [FILTER]
 *
 * Loads HF3FS_LIB (default: the stand-in) and works on the mount HF3FS_MOUNT (default, with the
 * stand-in only: a new directory). The chunk size is HF3FS_CHUNK, else what st_blksize says.
 * FILTER is a pattern of case names. Cases that need faults which only the stand-in can make say
 * so and are skipped elsewhere.
 */
#include "conformance.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shell.h"

#define PATIENCE_MS 60000

struct usrbio_table lib;
struct suite suite;

/* ---- helpers of cases ------------------------------------------------------------------------ */

int fresh_file(char path[400], int flags)
{
	static int number;
	char own[400];
	int fd;

	if (!path)
		path = own;
	snprintf(path, 400, "%s/f%d.%d", suite.dir, (int)getpid(), number++);
	fd = open(path, flags | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

void rig_open(struct rig *g, int io_depth)
{
	memset(g, 0, sizeof *g);
	g->fd = fresh_file(g->path, O_RDWR);
	assert_int_equal(ftruncate(g->fd, (off_t)(16 * suite.chunk)), 0);
	g->handle = lib.reg_fd(g->fd, 0);
	assert_true(g->handle <= 0);
	assert_int_equal(lib.iovcreate(&g->iov, suite.mount, RIG_BYTES, 0, -1), 0);
	lib.iovunlink(&g->iov);
	assert_int_equal(lib.iorcreate(&g->read, suite.mount, RIG_ENTRIES, true, io_depth, -1), 0);
	assert_int_equal(lib.iorcreate(&g->write, suite.mount, RIG_ENTRIES, false, io_depth, -1),
			 0);
}

void rig_close(struct rig *g)
{
	int live;

	lib.iordestroy(&g->read);
	lib.iordestroy(&g->write);
	lib.iovdestroy(&g->iov);
	if (!lib.is_hf3fs(g->fd)) {
		/* of a daemon that died: the number must mean a live file to be deregistered */
		live = open(suite.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		dup2(live, g->fd);
		close(live);
	}
	lib.dereg_fd(g->fd);
	close(g->fd);
	unlink(g->path);
}

int wait_ms(const struct hf3fs_ior *ior, struct hf3fs_cqe *cqes, int most, int least, int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return lib.wait_for_ios(ior, cqes, most, least, &until);
}

void wait_all(const struct hf3fs_ior *ior, struct hf3fs_cqe *cqes, int n)
{
	assert_int_equal(wait_ms(ior, cqes, n, n, PATIENCE_MS), n);
}

void rig_prep(struct rig *g, bool read, size_t mem, size_t off, size_t n, uintptr_t tag)
{
	int rc = lib.prep_io(read ? &g->read : &g->write, &g->iov, read, g->iov.base + mem,
			     g->handle, off, n, (const void *)tag);

	assert_true(rc >= 0);
}

static int64_t one(struct rig *g, bool read, size_t mem, size_t off, size_t n)
{
	struct hf3fs_ior *ior = read ? &g->read : &g->write;
	struct hf3fs_cqe cqe;

	rig_prep(g, read, mem, off, n, 4711);
	assert_int_equal(lib.submit_ios(ior), 0);
	wait_all(ior, &cqe, 1);
	assert_int_equal((uintptr_t)cqe.userdata, 4711);
	return cqe.result;
}

int64_t rig_write(struct rig *g, size_t mem, size_t off, size_t n)
{
	return one(g, false, mem, off, n);
}

int64_t rig_read(struct rig *g, size_t mem, size_t off, size_t n)
{
	return one(g, true, mem, off, n);
}

static uint8_t pattern_byte(size_t i, uint64_t seed)
{
	return (uint8_t)((i + 1 + seed * 1000003) * 0x9e3779b97f4a7c15u >> 56) | 1; /* never zero */
}

void pattern(uint8_t *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = pattern_byte(i, seed);
}

bool is_pattern(const uint8_t *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != pattern_byte(i, seed))
			return false;
	return true;
}

bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

void uuid_of(const char id[16], char out[37])
{
	const uint8_t *b = (const uint8_t *)id;

	snprintf(out, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		 b[13], b[14], b[15]);
}

bool has_link(const char id[16], const char *suffix)
{
	char uuid[37], path[512], target[512];

	uuid_of(id, uuid);
	snprintf(path, sizeof path, "%s/3fs-virt/iovs/%s%s", suite.mount, uuid, suffix);
	return readlink(path, target, sizeof target) > 0;
}

void find_shm(const char id[16], const char *suffix, char path[128])
{
	char uuid[37], link[512];
	ssize_t n;

	uuid_of(id, uuid);
	snprintf(link, sizeof link, "%s/3fs-virt/iovs/%s%s", suite.mount, uuid, suffix);
	n = readlink(link, path, 127);
	assert_true(n > 0);
	path[n] = '\0';
	assert_int_equal(strncmp(path, "/dev/shm/hf3fs-iov-", 19), 0);
}

bool has_shm(const char *path) { return access(path, F_OK) == 0; }

int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- stand-in -------------------------------------------------------------------------------- */

void only_standin(void)
{
	if (suite.standin)
		return;
	print_message("skipped: only the stand-in makes this happen on demand\n");
	skip();
}

static int64_t epoch = 1;

void knobs(const char *text)
{
	char all[600];

	snprintf(all, sizeof all, "chunk=%zu epoch=%lld %s", suite.chunk, (long long)epoch, text);
	standin_set(suite.mount, all);
}

void restart_daemon(const char *text)
{
	char all[600];

	snprintf(all, sizeof all, "chunk=%zu %s", suite.chunk, text);
	standin_restart(suite.mount, ++epoch, all);
}

/* ---- children -------------------------------------------------------------------------------- */

int start_child(const char *name, const char *arg, int *ready)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit none = { 0, 0 };

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* never outlive the suite */
		setrlimit(RLIMIT_CORE, &none);
		dup2(ends[1], 3);
		execl("/proc/self/exe", "usrbio_conformance", "--child", name, arg, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	if (ready)
		*ready = ends[0];
	else
		close(ends[0]);
	return pid;
}

int run_child(const char *name, const char *arg)
{
	int pid = start_child(name, arg, NULL), status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int child_main(const char *name, const char *arg)
{
	const struct child *tables[] = { fd_children, iov_children };

	for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
		for (const struct child *c = tables[t]; c->name; c++)
			if (strcmp(c->name, name) == 0)
				return c->run(arg);
	return 126;
}

/* ---- start ----------------------------------------------------------------------------------- */

static int load(const char *path)
{
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!so) {
		fprintf(stderr, "usrbio_conformance: %s\n", dlerror());
		return -1;
	}
#define LOAD(name, type, params) *(void **)&lib.name = dlsym(so, "hf3fs_" #name);
	USRBIO_FUNCTIONS(LOAD)
#undef LOAD
#define CHECK(name, type, params)                                                                \
	if (!lib.name) {                                                                         \
		fprintf(stderr, "usrbio_conformance: %s does not have hf3fs_" #name "\n", path); \
		return -1;                                                                       \
	}
	USRBIO_FUNCTIONS(CHECK)
#undef CHECK
	suite.standin = dlsym(so, "hf3fs_standin") != NULL;
	return 0;
}

/* Children find all of it in the environment. */
static int find_place(bool child)
{
	const char *mount = getenv("HF3FS_MOUNT"), *chunk = getenv("HF3FS_CHUNK");
	char text[64], made[] = "/tmp/skv-usrbio-XXXXXX";
	struct stat st;

	if (!mount && !suite.standin) {
		fputs("usrbio_conformance: HF3FS_LIB is not the stand-in: set HF3FS_MOUNT, too\n",
		      stderr);
		return -1;
	}
	if (!mount) {
		mount = mkdtemp(made);
		if (!mount)
			return -1;
	}
	if (!realpath(mount, suite.mount) || setenv("HF3FS_MOUNT", suite.mount, 1) != 0 ||
	    (suite.standin && setenv("HF3FS_STANDIN_ROOT", suite.mount, 1) != 0))
		return -1;
	suite.chunk = chunk ? strtoul(chunk, NULL, 10) : 65536;
	if (!chunk && !suite.standin)
		suite.chunk = stat(suite.mount, &st) == 0 ? (size_t)st.st_blksize : 0;
	snprintf(text, sizeof text, "%zu", suite.chunk);
	if (suite.chunk < 4096 || (suite.chunk & (suite.chunk - 1)) ||
	    setenv("HF3FS_CHUNK", text, 1) != 0) {
		fprintf(stderr, "usrbio_conformance: a chunk of %zu bytes: set HF3FS_CHUNK\n",
			suite.chunk);
		return -1;
	}
	snprintf(suite.dir, sizeof suite.dir, "%s/conformance", suite.mount);
	if (!child && mkdir(suite.dir, 0700) != 0 && errno != EEXIST)
		return -1;
	if (!child && suite.standin)
		knobs("");
	return 0;
}

static int leave(bool made)
{
	char command[600];

	snprintf(command, sizeof command, "rm -rf '%s'", made ? suite.mount : suite.dir);
	return test_shell(command);
}

#define RUN(subject)                                                                             \
	_cmocka_run_group_tests("USRBIO: " #subject, subject##_cases, n_##subject##_cases, NULL, \
				NULL)

int main(int argc, char **argv)
{
	const char *so = getenv("HF3FS_LIB");
	bool child = argc == 4 && strcmp(argv[1], "--child") == 0, made = !getenv("HF3FS_MOUNT");
	int failed;

	if (load(so ? so : HF3FS_STANDIN) != 0 || find_place(child) != 0)
		return 2;
	if (child)
		return child_main(argv[2], argv[3]);
	if (argc == 2)
		cmocka_set_test_filter(argv[1]);
	print_message("%s on %s, chunks of %zu bytes\n", so ? so : "the stand-in", suite.mount,
		      suite.chunk);
	failed = RUN(fd) + RUN(iov) + RUN(ring) + RUN(chunk) + RUN(fault);
	return leave(made) != 0 || failed ? 1 : 0;
}
