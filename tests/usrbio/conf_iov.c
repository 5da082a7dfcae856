/*
 * conf_iov.c - see conformance.h: data memory, its names, and what is left of it.
 */
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void iovcreate_makes_memory_a_name_and_a_link(void **state)
{
	struct hf3fs_iov iov;
	char shm[128], uuid[37];

	(void)state;
	assert_int_equal(lib.iovcreate(&iov, suite.mount, 1 << 20, 0, -1), 0);
	assert_non_null(iov.base);
	assert_non_null(iov.iovh);
	assert_string_equal(iov.mount_point, suite.mount);
	assert_int_equal(iov.size, 1 << 20);
	assert_int_equal(iov.block_size, 0);
	assert_true(is_zero(iov.base, 1 << 20));
	memset(iov.base, 1, 1 << 20);
	find_shm(iov.id, "", shm);
	uuid_of(iov.id, uuid);
	assert_null(strstr(shm, uuid));
	assert_true(has_shm(shm));
	lib.iovdestroy(&iov);
	assert_false(has_shm(shm));
	assert_false(has_link(iov.id, ""));
	assert_null(iov.iovh);
}

static void a_block_size_is_part_of_the_link(void **state)
{
	struct hf3fs_iov iov;

	(void)state;
	assert_int_equal(lib.iovcreate(&iov, suite.mount, 1 << 20, 65536, -1), 0);
	assert_true(has_link(iov.id, ".b65536"));
	lib.iovdestroy(&iov);
	assert_false(has_link(iov.id, ".b65536"));
}

static void iovcreate_fails_with_a_negative_errno(void **state)
{
	struct hf3fs_iov iov, before;
	char longer[300];

	(void)state;
	memset(&iov, 0xab, sizeof iov);
	before = iov;
	memset(longer, 'x', sizeof longer - 1);
	longer[0] = '/';
	longer[sizeof longer - 1] = 0;
	assert_int_equal(lib.iovcreate(NULL, suite.mount, 1 << 20, 0, -1), -EINVAL);
	assert_int_equal(lib.iovcreate(&iov, "", 1 << 20, 0, -1), -ENOENT);
	assert_int_equal(lib.iovcreate(&iov, longer, 1 << 20, 0, -1), -EINVAL);
	assert_int_equal(lib.iovcreate(&iov, "/no/such/mount", 1 << 20, 0, -1), -ENOENT);
	assert_memory_equal(&iov, &before, sizeof iov); /* nothing to destroy */
}

static int child_block(const char *arg)
{
	struct hf3fs_iov iov;

	(void)arg;
	return lib.iovcreate(&iov, suite.mount, 65536, 131072, -1) == 0 ? 1 : 0;
}

static int child_null_mount(const char *arg)
{
	struct hf3fs_iov iov;

	(void)arg;
	return lib.iovcreate(&iov, NULL, 1 << 20, 0, -1) == 0 ? 1 : 0;
}

static int child_no_bytes(const char *arg)
{
	struct hf3fs_iov iov;

	(void)arg;
	return lib.iovcreate(&iov, suite.mount, 0, 0, -1) == 0 ? 1 : 0;
}

static int child_unlink_wrapped(const char *arg)
{
	static uint8_t page[4096];
	struct hf3fs_iov iov;

	(void)arg;
	if (lib.iovwrap(&iov, page, page, suite.mount, sizeof page, 0, -1) == 0)
		lib.iovunlink(&iov);
	return 0;
}

/* A null pointer is read, the number of blocks is a division by zero, an exception leaves the
 * library through C. */
static void arguments_that_end_the_process(void **state)
{
	static const char *const children[] = { "null_mount", "no_bytes", "block",
						"unlink_wrapped" };

	(void)state;
	for (size_t i = 0; i < sizeof children / sizeof *children; i++)
		assert_true(WIFSIGNALED(run_child(children[i], "")));
}

static void iovunlink_drops_the_name_only(void **state)
{
	struct hf3fs_iov iov;
	struct rig g;
	struct hf3fs_cqe cqe;
	char shm[128];

	(void)state;
	rig_open(&g, 0);
	assert_int_equal(lib.iovcreate(&iov, suite.mount, 1 << 20, 0, -1), 0);
	find_shm(iov.id, "", shm);
	assert_true(has_shm(shm));
	lib.iovunlink(&iov);
	assert_false(has_shm(shm));
	assert_true(has_link(iov.id, ""));
	pattern(iov.base, 8192, 3);
	assert_true(lib.prep_io(&g.write, &iov, false, iov.base, g.handle, 0, 8192, NULL) >= 0);
	lib.submit_ios(&g.write);
	wait_all(&g.write, &cqe, 1);
	assert_int_equal(cqe.result, 8192);
	lib.iovdestroy(&iov);
	assert_false(has_link(iov.id, ""));
	assert_int_equal(rig_read(&g, 0, 0, 8192), 8192);
	assert_true(is_pattern(g.iov.base, 8192, 3));
	rig_close(&g);
}

/* ---- other processes ------------------------------------------------------------------------- */

/* arg: the id in hex. */
static int child_open(const char *arg)
{
	struct hf3fs_iov iov;
	uint8_t id[16];

	for (int i = 0; i < 16; i++)
		if (sscanf(arg + 2 * i, "%2hhx", &id[i]) != 1)
			return 90;
	if (lib.iovopen(&iov, id, suite.mount, 1 << 20, 0, -1) != 0)
		return 91;
	if (!is_pattern(iov.base, 4096, 5))
		return 92;
	pattern(iov.base, 4096, 6);
	return 0; /* without destroying: that would take the link away from its maker */
}

static void iovopen_maps_the_memory_of_another_process(void **state)
{
	struct hf3fs_iov iov;
	char hex[33];

	(void)state;
	assert_int_equal(lib.iovcreate(&iov, suite.mount, 1 << 20, 0, -1), 0);
	for (int i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", (uint8_t)iov.id[i]);
	pattern(iov.base, 4096, 5);
	assert_int_equal(run_child("open", hex), 0);
	assert_true(is_pattern(iov.base, 4096, 6));
	lib.iovdestroy(&iov);
}

static void iovopen_after_unlink_is_enoent(void **state)
{
	struct hf3fs_iov iov, other;
	uint8_t nobody[16] = { 1, 2, 3 };

	(void)state;
	assert_int_equal(lib.iovcreate(&iov, suite.mount, 1 << 20, 0, -1), 0);
	lib.iovunlink(&iov);
	assert_int_equal(lib.iovopen(&other, (uint8_t *)iov.id, suite.mount, 1 << 20, 0, -1),
			 -ENOENT);
	assert_int_equal(lib.iovopen(&other, nobody, suite.mount, 1 << 20, 0, -1), -ENOENT);
	lib.iovdestroy(&iov);
}

/* Opened memory is not the opener's: its name stays, only the link goes. Nobody compares sizes. */
static void opened_memory_keeps_its_name(void **state)
{
	struct hf3fs_iov iov, other;
	char shm[128];

	(void)state;
	assert_int_equal(lib.iovcreate(&iov, suite.mount, 65536, 0, -1), 0);
	find_shm(iov.id, "", shm);
	assert_int_equal(lib.iovopen(&other, (uint8_t *)iov.id, suite.mount, 1 << 20, 0, -1), 0);
	assert_int_equal(other.size, 1 << 20);
	lib.iovunlink(&other);
	assert_true(has_shm(shm));
	lib.iovdestroy(&other);
	assert_true(has_shm(shm));
	assert_false(has_link(iov.id, ""));
	lib.iovdestroy(&iov);
	assert_false(has_shm(shm));
}

/* ---- memory of the caller's ------------------------------------------------------------------ */

/* Shared memory of our own with a link, as iovwrap wants it. */
static void *own_memory(uint8_t id[16], char shm[64], char link[512], size_t size)
{
	char uuid[37], target[128];
	void *base;
	int fd;

	assert_int_equal(getrandom(id, 16, 0), 16);
	uuid_of((char *)id, uuid);
	snprintf(shm, 64, "/skv-own-%s", uuid);
	snprintf(target, sizeof target, "/dev/shm%s", shm);
	snprintf(link, 512, "%s/3fs-virt/iovs/%s", suite.mount, uuid);
	fd = shm_open(shm, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(base, MAP_FAILED);
	close(fd);
	assert_int_equal(symlink(target, link), 0);
	return base;
}

static void iovwrap_takes_memory_of_the_callers(void **state)
{
	struct rig g;
	struct hf3fs_iov iov;
	struct hf3fs_cqe cqe;
	uint8_t id[16], *base;
	char shm[64], link[512];

	(void)state;
	rig_open(&g, 0);
	base = own_memory(id, shm, link, 1 << 20);
	assert_int_equal(lib.iovwrap(&iov, base, id, suite.mount, 1 << 20, 0, -1), 0);
	assert_null(iov.iovh);
	shm_unlink(shm);
	pattern(base, 8192, 8);
	assert_true(lib.prep_io(&g.write, &iov, false, base, g.handle, 0, 8192, NULL) >= 0);
	lib.submit_ios(&g.write);
	wait_all(&g.write, &cqe, 1);
	assert_int_equal(cqe.result, 8192);
	lib.iovdestroy(&iov); /* only complains */
	assert_true(is_pattern(base, 8192, 8));
	assert_int_equal(rig_read(&g, 0, 0, 8192), 8192);
	assert_true(is_pattern(g.iov.base, 8192, 8));
	assert_int_equal(unlink(link), 0);
	munmap(base, 1 << 20);
	rig_close(&g);
}

/* The daemon has mapped the memory itself: what the caller has at that address meanwhile is none of
 * its business. */
static void memory_may_be_unmapped_while_the_daemon_reads_into_it(void **state)
{
	struct rig g;
	struct hf3fs_iov iov;
	struct hf3fs_cqe cqe;
	uint8_t id[16], *base, *same;
	char shm[64], link[512];
	int fd;

	(void)state;
	only_standin();
	rig_open(&g, 0);
	pattern(g.iov.base, 8192, 9);
	assert_int_equal(rig_write(&g, 0, 0, 8192), 8192);
	base = own_memory(id, shm, link, 1 << 20);
	assert_int_equal(lib.iovwrap(&iov, base, id, suite.mount, 1 << 20, 0, -1), 0);
	fd = shm_open(shm, O_RDWR, 0);
	assert_true(fd >= 0);
	knobs("hold=1");
	assert_true(lib.prep_io(&g.read, &iov, true, base, g.handle, 0, 8192, NULL) >= 0);
	lib.submit_ios(&g.read);
	assert_ptr_equal(mmap(base, 1 << 20, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 base);
	knobs("");
	wait_all(&g.read, &cqe, 1);
	assert_int_equal(cqe.result, 8192);
	assert_true(is_zero(base, 1 << 20));
	same = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(same, MAP_FAILED);
	assert_true(is_pattern(same, 8192, 9));
	munmap(same, 1 << 20);
	munmap(base, 1 << 20);
	close(fd);
	shm_unlink(shm);
	assert_int_equal(unlink(link), 0);
	rig_close(&g);
}

/* Requests of one file into memory, under way at once: how many were counted. */
static uint64_t shared(struct rig *g, bool read, size_t second)
{
	uint64_t before = standin_count(suite.mount, COUNT_shared_ios);
	struct hf3fs_cqe cqes[2];

	knobs("hold=1 overlap_check=0");
	rig_prep(g, read, 0, 0, 8192, 1);
	rig_prep(g, read, second, 8192, 8192, 2);
	lib.submit_ios(read ? &g->read : &g->write);
	knobs("");
	wait_all(read ? &g->read : &g->write, cqes, 2);
	return standin_count(suite.mount, COUNT_shared_ios) - before;
}

static void requests_that_share_memory_are_counted(void **state)
{
	struct rig g;

	(void)state;
	only_standin();
	rig_open(&g, 0);
	assert_int_equal(shared(&g, false, 0), 0);
	assert_int_equal(shared(&g, true, 8192), 0);
	assert_int_equal(shared(&g, true, 8191), 1);
	assert_int_equal(rig_read(&g, 0, 0, 8192), 8192); /* of what is over nothing is left */
	assert_int_equal(shared(&g, true, 0), 1);
	rig_close(&g);
}

static void memory_without_a_link_is_einval(void **state)
{
	struct rig g;
	struct hf3fs_iov iov;
	struct hf3fs_cqe cqe;
	uint8_t id[16], *base;
	char shm[64], link[512];

	(void)state;
	rig_open(&g, 0);
	base = own_memory(id, shm, link, 1 << 20);
	assert_int_equal(lib.iovwrap(&iov, base, id, suite.mount, 1 << 20, 0, -1), 0);
	assert_int_equal(unlink(link), 0);
	assert_true(lib.prep_io(&g.write, &iov, false, base, g.handle, 0, 8192, NULL) >= 0);
	lib.submit_ios(&g.write);
	wait_all(&g.write, &cqe, 1);
	assert_int_equal(cqe.result, -EINVAL);
	shm_unlink(shm);
	munmap(base, 1 << 20);
	rig_close(&g);
}

/* ---- processes that die ---------------------------------------------------------------------- */

/* Makes memory and a ring, reports the memory's id and path in /dev/shm, and waits to be killed.
 * arg: "unlink" or "keep". */
static int child_die(const char *arg)
{
	struct hf3fs_iov iov;
	struct hf3fs_ior ior;
	char shm[128] = "";

	if (lib.iovcreate(&iov, suite.mount, 1 << 20, 0, -1) != 0 ||
	    lib.iorcreate(&ior, suite.mount, 16, true, 0, -1) != 0)
		return 1;
	find_shm(iov.id, "", shm);
	if (strcmp(arg, "unlink") == 0)
		lib.iovunlink(&iov);
	if (write(3, iov.id, 16) != 16 || write(3, shm, sizeof shm) != sizeof shm)
		return 2;
	poll(NULL, 0, 60000);
	return 3;
}

static void kill_child(const char *arg, char id[16], char shm[128])
{
	int ready, status, pid = start_child("die", arg, &ready);

	assert_int_equal(read(ready, id, 16), 16);
	assert_int_equal(read(ready, shm, 128), 128);
	assert_true(has_link(id, ""));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ready);
}

/* The daemon notices in its own time; the stand-in's when the next process comes. */
static void wait_until_forgotten(const char id[16])
{
	for (int i = 0; i < 500 && has_link(id, ""); i++) {
		if (suite.standin)
			assert_int_equal(run_child("block0", ""), 0);
		poll(NULL, 0, 20);
	}
	assert_false(has_link(id, ""));
}

static int child_block0(const char *arg)
{
	struct hf3fs_iov iov;

	(void)arg;
	if (lib.iovcreate(&iov, suite.mount, 4096, 0, -1) != 0)
		return 1;
	lib.iovdestroy(&iov);
	return 0;
}

static void a_killed_process_leaves_its_memory_behind(void **state)
{
	char id[16], shm[128];

	(void)state;
	kill_child("keep", id, shm);
	assert_true(has_shm(shm)); /* nobody gives it back */
	wait_until_forgotten(id);
	assert_int_equal(unlink(shm), 0);
}

static void a_killed_process_that_unlinked_early_leaves_nothing(void **state)
{
	char id[16], shm[128];

	(void)state;
	kill_child("unlink", id, shm);
	assert_false(has_shm(shm));
	wait_until_forgotten(id);
}

static void nothing_is_left_of_a_rig(void **state)
{
	struct rig g;
	int fds, shm;

	(void)state;
	rig_open(&g, 0); /* files that the library keeps are open by now */
	rig_close(&g);
	fds = open_fds();
	shm = shm_count(suite.mount);
	for (int i = 0; i < 20; i++) {
		rig_open(&g, 0);
		assert_int_equal(rig_write(&g, 0, 0, 4096), 4096);
		rig_close(&g);
		assert_false(has_link(g.iov.id, ""));
		assert_false(has_link(g.read.iov.id, ".r0.t0"));
	}
	assert_int_equal(open_fds(), fds);
	assert_int_equal(shm_count(suite.mount), shm);
}

const struct CMUnitTest iov_cases[] = {
	cmocka_unit_test(iovcreate_makes_memory_a_name_and_a_link),
	cmocka_unit_test(a_block_size_is_part_of_the_link),
	cmocka_unit_test(iovcreate_fails_with_a_negative_errno),
	cmocka_unit_test(arguments_that_end_the_process),
	cmocka_unit_test(iovunlink_drops_the_name_only),
	cmocka_unit_test(iovopen_maps_the_memory_of_another_process),
	cmocka_unit_test(iovopen_after_unlink_is_enoent),
	cmocka_unit_test(opened_memory_keeps_its_name),
	cmocka_unit_test(iovwrap_takes_memory_of_the_callers),
	cmocka_unit_test(memory_may_be_unmapped_while_the_daemon_reads_into_it),
	cmocka_unit_test(requests_that_share_memory_are_counted),
	cmocka_unit_test(memory_without_a_link_is_einval),
	cmocka_unit_test(a_killed_process_leaves_its_memory_behind),
	cmocka_unit_test(a_killed_process_that_unlinked_early_leaves_nothing),
	cmocka_unit_test(nothing_is_left_of_a_rig),
};
const size_t n_iov_cases = sizeof iov_cases / sizeof iov_cases[0];

const struct child iov_children[] = { { "null_mount", child_null_mount },
				      { "no_bytes", child_no_bytes },
				      { "block", child_block },
				      { "unlink_wrapped", child_unlink_wrapped },
				      { "block0", child_block0 },
				      { "open", child_open },
				      { "die", child_die },
				      { NULL, NULL } };
