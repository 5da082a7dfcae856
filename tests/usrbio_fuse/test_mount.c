/*
 * test_mount.c - the mount of hf3fs_fuse_standin through libhf3fs_wire_client: that it behaves as
 * 3FS's sources say of the kernel's side (names, chunk sizes, holes, costs, caches) and of the
 * daemon's (dead clients, restarts, refusals). What a library promises its callers is the
 * conformance suite's. Run by with_mount.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire.h"
#include "wire_api.h"

#define CHUNK 65536u
#define WAIT_MS 20000

static const char *mnt, *stats_path, *control_path;

/* ---- helpers ---- */

static const char *at(const char *name)
{
	static char paths[4][512];
	static int next;

	next = (next + 1) % 4;
	snprintf(paths[next], sizeof paths[next], "%s/%s", mnt, name);
	return paths[next];
}

static uint64_t stat_of(const char *name)
{
	char line[128];
	unsigned long long value = 0;
	bool found = false;
	FILE *f = fopen(stats_path, "re");

	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		char word[64];
		unsigned long long n;

		if (sscanf(line, "%63s %llu", word, &n) == 2 && strcmp(word, name) == 0) {
			value = n;
			found = true;
		}
	}
	fclose(f);
	assert_true(found);
	return value;
}

static int control(const char *command)
{
	int fd = open(control_path, O_WRONLY | O_CLOEXEC), error = 0;

	assert_true(fd >= 0);
	if (write(fd, command, strlen(command)) < 0)
		error = errno;
	close(fd);
	return error;
}

/* Asks again until `want` or for WAIT_MS. */
static void expect_stat(const char *name, uint64_t want)
{
	for (int left = WAIT_MS / 5; stat_of(name) != want && left > 0; left--)
		poll(NULL, 0, 5);
	assert_int_equal(stat_of(name), want);
}

static struct timespec in_ms(int ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

/* A file of chunks of 64 KiB, an iov of 1 MiB, a ring of each kind: what most tests need. */
struct world {
	struct hf3fs_iov iov;
	struct hf3fs_ior in, out;
	int fd;
	char name[64];
};

static void world_rings(struct world *w)
{
	assert_int_equal(hf3fs_iovcreate(&w->iov, mnt, 1u << 20, 0, -1), 0);
	hf3fs_iovunlink(&w->iov);
	assert_int_equal(hf3fs_iorcreate(&w->in, mnt, 16, true, 0, -1), 0);
	assert_int_equal(hf3fs_iorcreate(&w->out, mnt, 16, false, 0, -1), 0);
}

static void world_open(struct world *w)
{
	static int n;

	snprintf(w->name, sizeof w->name, "c64/file-%d", n++);
	w->fd = open(at(w->name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(w->fd >= 0);
	assert_true(hf3fs_reg_fd(w->fd, 0) <= 0);
	world_rings(w);
}

static void world_close(struct world *w)
{
	hf3fs_iordestroy(&w->in);
	hf3fs_iordestroy(&w->out);
	hf3fs_iovdestroy(&w->iov);
	hf3fs_dereg_fd(w->fd);
	close(w->fd);
	unlink(at(w->name));
}

static int64_t move(struct world *w, bool read, uint64_t off, uint64_t len)
{
	struct hf3fs_ior *r = read ? &w->in : &w->out;
	struct timespec by = in_ms(WAIT_MS);
	struct hf3fs_cqe c;

	assert_true(hf3fs_prep_io(r, &w->iov, read, w->iov.base, w->fd, off, len, w) >= 0);
	assert_int_equal(hf3fs_submit_ios(r), 0);
	assert_int_equal(hf3fs_wait_for_ios(r, &c, 1, 1, &by), 1);
	assert_ptr_equal(c.userdata, w);
	return c.result;
}

static int64_t put(struct world *w, char byte, uint64_t off, uint64_t len)
{
	memset(w->iov.base, byte, len);
	return move(w, false, off, len);
}

/* Reads; the result, after a look at the bytes: all of them are `byte`. */
static int64_t got(struct world *w, char byte, uint64_t off, uint64_t len)
{
	int64_t n;

	memset(w->iov.base, ~byte, len);
	n = move(w, true, off, len);
	for (int64_t i = 0; i < n; i++)
		assert_int_equal((char)w->iov.base[i], byte);
	return n;
}

/* Returns the number of links. A process that closes a handle of that folder is taken for dead: not
 * to be called while this thread has registrations. */
static int links_of_iovs(void)
{
	DIR *d = opendir(at("3fs-virt/iovs"));
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)) != NULL)
		n += strlen(e->d_name) >= 36;
	closedir(d);
	return n;
}

static void drop_link(const struct hf3fs_ior *r, const char *suffix)
{
	const uint8_t *u = r->iov.id;
	char path[512];

	snprintf(path, sizeof path,
		 "%s/3fs-virt/iovs/%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
		 "%02x%02x%02x%02x%02x%02x%s",
		 mnt, u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
		 u[12], u[13], u[14], u[15], suffix);
	assert_int_equal(unlink(path), 0);
}

/* ---- the mount ---- */

static void tells_that_it_is_3fs(void **state)
{
	char found[256];
	struct wire_mount_name name;
	uint32_t n = 0;
	int fd = open(mnt, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    other = open("/tmp", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(hf3fs_is_hf3fs(fd));
	assert_false(hf3fs_is_hf3fs(other));
	assert_int_equal(ioctl(fd, WIRE_IOC_VERSION, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(ioctl(fd, WIRE_IOC_PATH_OFFSET, &n), 0);
	assert_int_equal(n, strlen(mnt));
	assert_int_equal(ioctl(fd, WIRE_IOC_MOUNT_NAME, &name), 0);
	assert_string_equal(name.name, "stage");
	assert_int_equal(hf3fs_extract_mount_point(found, sizeof found, at("c64")),
			 (int)strlen(mnt) + 1);
	assert_string_equal(found, mnt);
	assert_int_equal(hf3fs_extract_mount_point(found, sizeof found, "/tmp"), -1);
	close(fd);
	close(other);
}

static uint64_t chunk_size_of(const char *name)
{
	struct stat st;

	assert_int_equal(stat(at(name), &st), 0);
	return (uint64_t)st.st_blksize;
}

static void chunk_sizes_are_inherited(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(chunk_size_of("."), 1u << 20);
	assert_int_equal(chunk_size_of("c64"), CHUNK);
	assert_int_equal(mkdir(at("c64/below"), 0700), 0);
	fd = open(at("c64/below/file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(chunk_size_of("c64/below/file"), CHUNK);
	assert_int_equal(control("layout c4m 4194304\n"), 0);
	assert_int_equal(chunk_size_of("c4m"), 4u << 20);
	assert_int_equal(control("layout odd 65537\n"), EINVAL);
	assert_int_equal(unlink(at("c64/below/file")), 0);
	assert_int_equal(rmdir(at("c64/below")), 0);
}

static void refuses_what_3fs_refuses(void **state)
{
	int fd = open(at("a"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fallocate(fd, 0, 0, 4096), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(renameat2(AT_FDCWD, at("a"), AT_FDCWD, at("b"), RENAME_NOREPLACE), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mkdir(at("3fs-virt/x"), 0700), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(symlink("/dev/shm/none", at("3fs-virt/iovs/not-a-uuid")), -1);
	assert_int_equal(errno, EINVAL);
	close(fd);
	unlink(at("a"));
}

static void removes_trees_and_makes_links(void **state)
{
	char path[512];
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(mkdir(at("t"), 0700), 0);
	assert_int_equal(mkdir(at("t/u"), 0700), 0);
	fd = open(at("t/u/f"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(hf3fs_hardlink(at("t/u/f"), at("kept")), 0);
	snprintf(path, sizeof path, "%s/t", mnt);
	assert_int_equal(symlink(path, at("3fs-virt/rm-rf/t")), 0);
	assert_int_equal(stat(at("kept"), &st), 0);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(symlink("/etc", at("3fs-virt/rm-rf/e")), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(unlink(at("kept")), 0);
}

#define MANY 3000

/* More than one answer of the kernel holds, each name once. */
static void lists_long_folders(void **state)
{
	static bool seen[MANY];
	struct dirent *e;
	int n = 0, fd;
	DIR *d;

	(void)state;
	assert_int_equal(mkdir(at("many"), 0700), 0);
	for (int i = 0; i < MANY; i++) {
		char name[64];

		snprintf(name, sizeof name, "many/%d", i);
		fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		close(fd);
	}
	d = opendir(at("many"));
	assert_non_null(d);
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		assert_false(seen[atoi(e->d_name)]);
		seen[atoi(e->d_name)] = true;
		n++;
	}
	closedir(d);
	assert_int_equal(n, MANY);
	assert_int_equal(hf3fs_is_hf3fs(fd = open(at("many"), O_RDONLY | O_CLOEXEC)), true);
	assert_int_equal(ioctl(fd, WIRE_IOC_RECURSIVE_RM, &n), 0);
	close(fd);
}

static void tells_the_space_that_it_is_told_to(void **state)
{
	struct statvfs v;

	(void)state;
	assert_int_equal(control("space 1073741824 2097152\n"), 0);
	assert_int_equal(statvfs(mnt, &v), 0);
	assert_int_equal(v.f_blocks * v.f_frsize, 1073741824);
	assert_int_equal(v.f_bavail * v.f_frsize, 2097152);
	assert_int_equal(control("clear\n"), 0);
}

/* ---- chunks ---- */

static void holes_read_short(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	assert_int_equal(ftruncate(w.fd, 8 * CHUNK), 0);
	assert_int_equal(got(&w, 0, 0, CHUNK), 0);
	/* a length is kept by its last chunk */
	assert_int_equal(got(&w, 0, 7 * CHUNK, CHUNK), CHUNK);
	assert_int_equal(put(&w, 'x', 2 * CHUNK, 100), 100);
	assert_int_equal(got(&w, 'x', 2 * CHUNK, CHUNK), 100);
	assert_int_equal(got(&w, 'x', 2 * CHUNK, 3 * CHUNK), 100);
	/* zeros before later bytes */
	assert_int_equal(move(&w, true, CHUNK, 2 * CHUNK), CHUNK + 100);
	for (unsigned i = 0; i < CHUNK + 100; i++)
		assert_int_equal(w.iov.base[i], i < CHUNK ? 0 : 'x');
	hf3fs_iordestroy(&w.in);
	assert_int_equal(hf3fs_iorcreate4(&w.in, mnt, 16, true, 0, 0, -1, 2), 0);
	assert_int_equal(move(&w, true, CHUNK, 2 * CHUNK), -ENODATA);
	assert_int_equal(got(&w, 'x', 2 * CHUNK, 3 * CHUNK), 100);
	drop_link(&w.in, ".r0.t0.f10"); /* the library does not find it again */
	world_close(&w);
}

static void punching_makes_holes(void **state)
{
	const size_t from[2] = { 0, 3 * CHUNK }, to[2] = { CHUNK, 4 * CHUNK }, odd[1] = { 100 };
	struct world w;

	(void)state;
	world_open(&w);
	assert_int_equal(put(&w, 'x', 0, 4 * CHUNK), 4 * CHUNK);
	assert_int_equal(hf3fs_punchhole(w.fd, 1, odd, to, 0), EINVAL);
	assert_int_equal(hf3fs_punchhole(w.fd, 2, from, to, 0), 0);
	assert_int_equal(got(&w, 'x', 0, CHUNK), 0);
	assert_int_equal(got(&w, 'x', CHUNK, 3 * CHUNK), 2 * CHUNK);
	world_close(&w);
}

/* The local file below: what the daemon takes for the length, without the kernel's memory of it. */
static off_t length_of(const struct world *w)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s", getenv("HF3FS_ROOT"), w->name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* Punching the last chunk is not for those who want to keep the length. */
static void fsync_shortens_after_the_last_chunk_went(void **state)
{
	const size_t from[1] = { 3 * CHUNK }, to[1] = { 4 * CHUNK };
	struct world w;

	(void)state;
	world_open(&w);
	assert_int_equal(ftruncate(w.fd, 4 * CHUNK), 0);
	assert_int_equal(put(&w, 'x', 0, CHUNK), CHUNK);
	assert_int_equal(fsync(w.fd), 0);
	assert_int_equal(length_of(&w), 4 * CHUNK); /* the last chunk keeps the length */
	assert_int_equal(hf3fs_punchhole(w.fd, 1, from, to, 0), 0);
	assert_int_equal(length_of(&w), 4 * CHUNK);
	assert_int_equal(put(&w, 'y', CHUNK, CHUNK), CHUNK);
	assert_int_equal(fsync(w.fd), 0);
	assert_int_equal(length_of(&w), 2 * CHUNK);
	world_close(&w);
}

static void costs_are_counted(void **state)
{
	struct world w;
	uint64_t fresh = stat_of("chunk_fresh"), whole = stat_of("chunk_whole"),
		 append = stat_of("chunk_append");
	uint64_t copied = stat_of("chunk_copied"), bytes = stat_of("chunk_copied_bytes");

	(void)state;
	world_open(&w);
	assert_int_equal(put(&w, 'a', 0, 4096), 4096);
	assert_int_equal(put(&w, 'b', 4096, 4096), 4096);
	assert_int_equal(put(&w, 'c', 100, 100), 100);
	assert_int_equal(put(&w, 'd', 0, 3 * CHUNK), 3 * CHUNK);
	assert_int_equal(got(&w, 'd', 0, 3 * CHUNK), 3 * CHUNK);
	assert_int_equal(stat_of("chunk_fresh") - fresh, 3);
	assert_int_equal(stat_of("chunk_append") - append, 1);
	assert_int_equal(stat_of("chunk_copied") - copied, 1);
	assert_int_equal(stat_of("chunk_copied_bytes") - bytes, 8192);
	assert_int_equal(stat_of("chunk_whole") - whole, 1);
	world_close(&w);
}

/* ---- caches between the kernel and the rings ---- */

static void buffered_writes_wait_in_the_daemon(void **state)
{
	struct world w;
	char byte;

	(void)state;
	world_open(&w);
	assert_int_equal(pwrite(w.fd, "hello", 5, 0), 5);
	assert_int_equal(got(&w, 0, 0, 5), 0); /* rings, and other hosts, see a hole */
	assert_int_equal(fdatasync(w.fd), 0);
	assert_int_equal(move(&w, true, 0, 5), 5);
	assert_memory_equal(w.iov.base, "hello", 5);
	assert_int_equal(pread(w.fd, &byte, 1, 0), 1);
	assert_int_equal(put(&w, 'X', 0, CHUNK), CHUNK);
	assert_int_equal(pread(w.fd, &byte, 1, 0), 1);
	assert_int_equal(byte, 'h'); /* the kernel's page, though the file has other bytes */
	world_close(&w);
}

/* The kernel's read-ahead of a buffered read is answered short at a hole; the kernel takes that for
 * the end of the file and forgets the rest until it asks for the attributes again. O_DIRECT never
 * does that. */
static void a_buffered_read_before_a_hole_loses_the_end(void **state)
{
	char *page = aligned_alloc(4096, 4096);
	struct world w;
	struct stat st;
	int direct;

	(void)state;
	world_open(&w);
	assert_int_equal(ftruncate(w.fd, 8 * CHUNK), 0);
	assert_int_equal(put(&w, 's', 0, 4096), 4096);
	assert_int_equal(fsync(w.fd), 0);
	direct = open(at(w.name), O_RDONLY | O_DIRECT | O_CLOEXEC);
	assert_true(direct >= 0);
	assert_int_equal(fstat(direct, &st), 0);
	assert_int_equal(pread(direct, page, 4096, 0), 4096);
	assert_int_equal(pread(direct, page, 4096, CHUNK), 0);
	assert_int_equal(pread(direct, page, 4096, 8 * CHUNK - 4096), 4096);
	assert_int_equal(pread(w.fd, page, 4096, 0), 4096);
	/* the kernel's doing: not every version's */
	if (pread(w.fd, page, 4096, 8 * CHUNK - 4096) == 0)
		print_message("the end of the file is not there for a buffered read\n");
	assert_int_equal(pread(direct, page, 4096, 8 * CHUNK - 4096), 4096);
	close(direct);
	free(page);
	world_close(&w);
}

static void direct_io_goes_through(void **state)
{
	struct world w;
	char *page = aligned_alloc(4096, 4096);
	int fd;

	(void)state;
	world_open(&w);
	fd = open(at(w.name), O_RDWR | O_DIRECT | O_CLOEXEC);
	assert_true(fd >= 0);
	memset(page, 'p', 4096);
	assert_int_equal(pwrite(fd, page, 4096, 0), 4096);
	assert_int_equal(got(&w, 'p', 0, 4096), 4096);
	assert_int_equal(put(&w, 'q', 0, 4096), 4096);
	assert_int_equal(pread(fd, page, 4096, 0), 4096);
	assert_int_equal(page[0], 'q');
	close(fd);
	free(page);
	world_close(&w);
}

/* ---- rings ---- */

static void a_job_is_answered_at_once(void **state)
{
	struct hf3fs_ior two;
	struct hf3fs_cqe c[4];
	struct timespec by;
	struct world w;

	(void)state;
	world_open(&w);
	assert_int_equal(put(&w, 'x', 0, 4 * CHUNK), 4 * CHUNK);
	assert_int_equal(hf3fs_iorcreate(&two, mnt, 8, true, 2, -1), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_true(hf3fs_prep_io(&two, &w.iov, true, w.iov.base + i * CHUNK, w.fd,
					  i * CHUNK, CHUNK, (void *)(uintptr_t)(i + 1)) >= 0);
	assert_int_equal(hf3fs_submit_ios(&two), 0);
	by = in_ms(WAIT_MS);
	/* the third waits for a fourth */
	assert_int_equal(hf3fs_wait_for_ios(&two, c, 4, 2, &by), 2);
	assert_true(hf3fs_prep_io(&two, &w.iov, true, w.iov.base + 3 * CHUNK, w.fd, 0, CHUNK,
				  NULL) >= 0);
	assert_int_equal(hf3fs_submit_ios(&two), 0);
	assert_int_equal(hf3fs_wait_for_ios(&two, c, 4, 2, &by), 2);
	hf3fs_iordestroy(&two);
	world_close(&w);
}

static void bad_buffers_fail(void **state)
{
	struct hf3fs_iov blocks;
	struct hf3fs_ior two;
	struct hf3fs_cqe c[2];
	struct timespec by = in_ms(WAIT_MS);
	struct world w;

	(void)state;
	world_open(&w);
	assert_int_equal(put(&w, 'x', 0, CHUNK), CHUNK);
	assert_int_equal(hf3fs_iorcreate(&two, mnt, 8, true, 2, -1), 0);
	for (int i = 0; i < 2; i++) /* two reads of one batch into the same bytes */
		assert_true(hf3fs_prep_io(&two, &w.iov, true, w.iov.base + i, w.fd, 0, 100, NULL) >=
			    0);
	hf3fs_submit_ios(&two);
	assert_int_equal(hf3fs_wait_for_ios(&two, c, 2, 2, &by), 2);
	hf3fs_iordestroy(&two);
	assert_int_equal(c[0].result, -EIO);
	assert_int_equal(c[1].result, -EIO);
	assert_int_equal(hf3fs_iovcreate(&blocks, mnt, 2 * CHUNK, CHUNK, -1), 0);
	assert_true(hf3fs_prep_io(&w.in, &blocks, true, blocks.base + CHUNK - 1, w.fd, 0, 2,
				  NULL) >= 0);
	hf3fs_submit_ios(&w.in);
	assert_int_equal(hf3fs_wait_for_ios(&w.in, c, 1, 1, &by), 1);
	assert_int_equal(c[0].result, -EINVAL);
	hf3fs_iovdestroy(&blocks);
	world_close(&w);
}

static void faults_happen_when_told(void **state)
{
	struct hf3fs_ior r;
	struct hf3fs_cqe c;
	struct timespec by;
	struct world w;

	(void)state;
	world_open(&w);
	assert_int_equal(control("fail write ENOSPC 2\nfail read EREMOTEIO every 2\n"), 0);
	assert_int_equal(put(&w, 'a', 0, CHUNK), CHUNK);
	assert_int_equal(put(&w, 'b', 0, CHUNK), -ENOSPC);
	assert_int_equal(put(&w, 'c', 0, CHUNK), CHUNK);
	assert_int_equal(got(&w, 'c', 0, CHUNK), CHUNK);
	assert_int_equal(move(&w, true, 0, CHUNK), -EREMOTEIO);
	assert_int_equal(got(&w, 'c', 0, CHUNK), CHUNK);
	assert_int_equal(control("clear\ntorn 1\n"), 0);
	assert_int_equal(put(&w, 'd', 0, 2 * CHUNK), -EIO);
	/* the first chunk was written, the second was not */
	assert_int_equal(got(&w, 'd', 0, 2 * CHUNK), CHUNK);
	assert_int_equal(control("hold\n"), 0);
	assert_true(hf3fs_prep_io(&w.in, &w.iov, true, w.iov.base, w.fd, 0, 100, NULL) >= 0);
	hf3fs_submit_ios(&w.in);
	by = in_ms(100);
	assert_int_equal(hf3fs_wait_for_ios(&w.in, &c, 1, 1, &by), 0);
	assert_int_equal(control("go\n"), 0);
	by = in_ms(WAIT_MS);
	assert_int_equal(hf3fs_wait_for_ios(&w.in, &c, 1, 1, &by), 1);
	assert_int_equal(control("refuse rings EMFILE\n"), 0);
	assert_int_equal(hf3fs_iorcreate(&r, mnt, 8, true, -4, -1), -EMFILE);
	assert_int_equal(control("clear\ndepth nonneg\n"), 0);
	assert_int_equal(hf3fs_iorcreate(&r, mnt, 8, true, -4, -1), -EINVAL);
	assert_int_equal(control("clear\n"), 0);
	assert_int_equal(control("nonsense\n"), EINVAL);
	world_close(&w);
}

/* ---- clients and daemons that die ---- */

static void *make_iov(void *arg)
{
	struct hf3fs_iov iov;

	if (hf3fs_iovcreate(&iov, arg, CHUNK, 0, -1) != 0)
		_exit(3);
	hf3fs_iovunlink(&iov);
	return NULL;
}

/* Registers an iov and a ring, and another iov from a second thread; then dies without a word. */
static void die_with_registrations(void)
{
	struct hf3fs_ior r;
	pthread_t other;

	make_iov((void *)mnt);
	if (hf3fs_iorcreate(&r, mnt, 8, true, 0, -1) != 0)
		_exit(4);
	if (pthread_create(&other, NULL, make_iov, (void *)mnt) != 0)
		_exit(5);
	pthread_join(other, NULL);
	raise(SIGKILL);
}

static void a_dead_clients_memory_is_given_up(void **state)
{
	uint64_t dead = stat_of("dead_clients");
	int before = links_of_iovs(), status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		/* anew: a forked client would share the handle that stands for its parent */
		execl("/proc/self/exe", "test_hf3fs_mount", "die", NULL);
		_exit(6);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	expect_stat("dead_clients", dead + 1);
	/* The daemon knows clients by the thread that opened the folder: what other
	 * threads made stays with it. */
	assert_int_equal(links_of_iovs(), before + 1);
}

static void a_restarted_daemon_knows_nobody(void **state)
{
	struct timespec by;
	struct hf3fs_cqe c;
	struct world w;
	struct stat st;
	int left;

	(void)state;
	world_open(&w);
	assert_int_equal(put(&w, 'k', 0, CHUNK), CHUNK);
	control("exit\n"); /* with_mount starts another one */
	for (left = WAIT_MS / 20; stat(stats_path, &st) != 0 && left > 0; left--)
		poll(NULL, 0, 20);
	assert_true(left > 0);
	assert_true(hf3fs_prep_io(&w.in, &w.iov, true, w.iov.base, w.fd, 0, 100, NULL) >= 0);
	hf3fs_submit_ios(&w.in);
	by = in_ms(200);
	/* nobody there: it never comes */
	assert_int_equal(hf3fs_wait_for_ios(&w.in, &c, 1, 1, &by), 0);
	hf3fs_iordestroy(&w.in);
	hf3fs_iordestroy(&w.out);
	hf3fs_iovdestroy(&w.iov);
	close(w.fd);
	/* the number may be the old one: registered for the old mount */
	w.fd = open(at(w.name), O_RDWR | O_CLOEXEC);
	assert_true(w.fd >= 0);
	hf3fs_dereg_fd(w.fd);
	assert_true(hf3fs_reg_fd(w.fd, 0) <= 0);
	world_rings(&w);
	assert_int_equal(got(&w, 'k', 0, CHUNK), CHUNK);
	world_close(&w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_that_it_is_3fs),
		cmocka_unit_test(chunk_sizes_are_inherited),
		cmocka_unit_test(refuses_what_3fs_refuses),
		cmocka_unit_test(removes_trees_and_makes_links),
		cmocka_unit_test(lists_long_folders),
		cmocka_unit_test(tells_the_space_that_it_is_told_to),
		cmocka_unit_test(holes_read_short),
		cmocka_unit_test(punching_makes_holes),
		cmocka_unit_test(fsync_shortens_after_the_last_chunk_went),
		cmocka_unit_test(costs_are_counted),
		cmocka_unit_test(buffered_writes_wait_in_the_daemon),
		cmocka_unit_test(a_buffered_read_before_a_hole_loses_the_end),
		cmocka_unit_test(direct_io_goes_through),
		cmocka_unit_test(a_job_is_answered_at_once),
		cmocka_unit_test(bad_buffers_fail),
		cmocka_unit_test(faults_happen_when_told),
		cmocka_unit_test(a_dead_clients_memory_is_given_up),
		cmocka_unit_test(a_restarted_daemon_knows_nobody),
	};

	mnt = getenv("HF3FS_MOUNT");
	stats_path = getenv("HF3FS_STATS");
	control_path = getenv("HF3FS_CONTROL");
	if (!mnt || !stats_path || !control_path) {
		fprintf(stderr, "run by with_mount\n");
		return 2;
	}
	if (argc > 1 && strcmp(argv[1], "die") == 0)
		die_with_registrations();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
