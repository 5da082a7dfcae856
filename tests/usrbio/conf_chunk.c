/*
 * conf_chunk.c - see conformance.h: what reads and writes of chunks give. C = suite.chunk.
 */
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define C (suite.chunk)

static void what_was_written_is_read(void **state)
{
	static const size_t lengths[] = { 1, 511, 4096, 65536 };
	struct rig g;
	size_t off = 0;

	(void)state;
	rig_open(&g, 0);
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		pattern(g.iov.base, lengths[i], i);
		assert_int_equal(rig_write(&g, 0, off, lengths[i]), (int64_t)lengths[i]);
		memset(g.iov.base, 0, lengths[i]);
		assert_int_equal(rig_read(&g, 3 * C + 1, off, lengths[i]), (int64_t)lengths[i]);
		assert_true(is_pattern(g.iov.base + 3 * C + 1, lengths[i], i));
		off += lengths[i] + 1000;
	}
	rig_close(&g);
}

static void a_request_may_span_chunks(void **state)
{
	struct rig g;
	size_t n = 2 * C + C / 2;

	(void)state;
	rig_open(&g, 0);
	pattern(g.iov.base, n, 2);
	assert_int_equal(rig_write(&g, 0, C / 2, n), (int64_t)n);
	assert_int_equal(rig_read(&g, 4 * C, C / 2, n), (int64_t)n);
	assert_true(is_pattern(g.iov.base + 4 * C, n, 2));
	rig_close(&g);
}

/* ---- holes ----------------------------------------------------------------------------------- */

static void a_chunk_never_written_reads_as_nothing(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, 0);
	memset(g.iov.base, 0xee, 4096);
	assert_int_equal(rig_read(&g, 0, 5 * C, 4096), 0); /* although the file is longer */
	assert_int_equal(g.iov.base[0], 0xee);
	rig_close(&g);
}

static void a_read_ends_at_a_hole(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, 0);
	pattern(g.iov.base, C, 3);
	assert_int_equal(rig_write(&g, 0, 0, C), (int64_t)C);
	assert_int_equal(rig_read(&g, 2 * C, C / 2, C), (int64_t)(C / 2));
	rig_close(&g);
}

static void a_chunk_ends_where_its_data_ends(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, 0);
	pattern(g.iov.base, 8192, 4);
	assert_int_equal(rig_write(&g, 0, 2 * C, 8192), 8192);
	assert_int_equal(rig_read(&g, C, 2 * C, C), 8192);
	assert_int_equal(rig_read(&g, C, 2 * C + 4096, C), 4096);
	assert_int_equal(rig_read(&g, C, 2 * C + 8192, 4096), 0);
	rig_close(&g);
}

static void a_hole_with_data_behind_it_is_zeros(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, 0);
	pattern(g.iov.base, C, 5);
	assert_int_equal(rig_write(&g, 0, 0, C), (int64_t)C);
	assert_int_equal(rig_write(&g, 0, 2 * C, 4096), 4096);
	memset(g.iov.base + 4 * C, 0xee, 4 * C);
	assert_int_equal(rig_read(&g, 4 * C, 0, 3 * C), (int64_t)(2 * C + 4096));
	assert_true(is_pattern(g.iov.base + 4 * C, C, 5));
	assert_true(is_zero(g.iov.base + 5 * C, C));
	assert_true(is_pattern(g.iov.base + 6 * C, 4096, 5));
	rig_close(&g);
}

static void a_ring_may_forbid_such_holes(void **state)
{
	struct rig g;
	char uuid[37], path[512];

	(void)state;
	rig_open(&g, 0);
	lib.iordestroy(&g.read);
	assert_int_equal(lib.iorcreate4(&g.read, suite.mount, RIG_ENTRIES, true, 0, 0, -1,
					HF3FS_FORBID_HOLES),
			 0);
	assert_int_equal(rig_write(&g, 0, 0, C), (int64_t)C);
	assert_int_equal(rig_write(&g, 0, 2 * C, 4096), 4096);
	assert_int_equal(rig_read(&g, 4 * C, 0, 3 * C), -ENODATA);
	/* nothing behind it: a short read as ever */
	assert_int_equal(rig_read(&g, 4 * C, 0, 2 * C), (int64_t)C);
	assert_int_equal(rig_read(&g, 4 * C, C, 4096), 0);
	uuid_of(g.read.iov.id, uuid);
	rig_close(&g);
	snprintf(path, sizeof path, "%s/3fs-virt/iovs/%s.r0.t0.f10", suite.mount, uuid);
	(void)unlink(path);
}

/* ---- writes ---------------------------------------------------------------------------------- */

static void a_fresh_chunk_is_zeros_up_to_what_is_written(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, 0);
	pattern(g.iov.base, 4096, 6);
	assert_int_equal(rig_write(&g, 0, 3 * C + 8192, 4096), 4096);
	memset(g.iov.base + C, 0xee, C);
	assert_int_equal(rig_read(&g, C, 3 * C, C), 12288);
	assert_true(is_zero(g.iov.base + C, 8192));
	assert_true(is_pattern(g.iov.base + C + 8192, 4096, 6));
	rig_close(&g);
}

/* Reads do not ask how long the file is said to be. */
static void a_write_past_the_end_can_be_read_at_once(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, 0);
	pattern(g.iov.base, C, 7);
	assert_int_equal(rig_write(&g, 0, 20 * C, C), (int64_t)C);
	assert_int_equal(rig_read(&g, 2 * C, 20 * C, C), (int64_t)C);
	assert_true(is_pattern(g.iov.base + 2 * C, C, 7));
	rig_close(&g);
}

static void writes_of_a_batch_may_share_their_source(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqes[8];

	(void)state;
	rig_open(&g, 0);
	pattern(g.iov.base, C, 8);
	for (uintptr_t i = 0; i < 8; i++)
		rig_prep(&g, false, 0, i * C, C, i);
	lib.submit_ios(&g.write);
	wait_all(&g.write, cqes, 8);
	for (int i = 0; i < 8; i++)
		assert_int_equal(cqes[i].result, C);
	assert_int_equal(rig_read(&g, C, 6 * C, 2 * C), (int64_t)(2 * C));
	assert_true(is_pattern(g.iov.base + C, C, 8) && is_pattern(g.iov.base + 2 * C, C, 8));
	rig_close(&g);
}

static void reads_of_a_batch_into_the_same_bytes_fail_it(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqes[3];

	(void)state;
	rig_open(&g, 3); /* a single batch of three, whenever the daemon looks */
	pattern(g.iov.base, C, 9);
	lib.iordestroy(&g.write);
	assert_int_equal(lib.iorcreate(&g.write, suite.mount, RIG_ENTRIES, false, 0, -1), 0);
	assert_int_equal(rig_write(&g, 0, 0, C), (int64_t)C);
	rig_prep(&g, true, C, 0, 4096, 0);
	rig_prep(&g, true, C + 4095, 4096, 4096, 1);
	rig_prep(&g, true, 2 * C, 0, 4096, 2); /* has no part in it, and fails, too */
	lib.submit_ios(&g.read);
	wait_all(&g.read, cqes, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cqes[i].result, -EIO);
	for (uintptr_t i = 0; i < 3; i++)
		rig_prep(&g, true, C + i * 4096, 0, 4096, i);
	lib.submit_ios(&g.read);
	wait_all(&g.read, cqes, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cqes[i].result, 4096);
	rig_close(&g);
}

static void a_request_across_a_block_of_memory_is_einval(void **state)
{
	struct rig g;
	struct hf3fs_iov iov;
	struct hf3fs_cqe cqes[3];

	(void)state;
	rig_open(&g, 0);
	assert_int_equal(lib.iovcreate(&iov, suite.mount, 65536, 16384, -1), 0);
	lib.iovunlink(&iov);
	memset(iov.base, 1, 65536);
	assert_true(lib.prep_io(&g.write, &iov, false, iov.base, g.handle, 0, 16384, (void *)0) >=
		    0);
	assert_true(lib.prep_io(&g.write, &iov, false, iov.base + 8192, g.handle, 0, 16384,
				(void *)1) >= 0);
	assert_true(lib.prep_io(&g.write, &iov, false, iov.base + 16384, g.handle, 0, 16384,
				(void *)2) >= 0);
	lib.submit_ios(&g.write);
	wait_all(&g.write, cqes, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cqes[i].result, cqes[i].userdata == (void *)1 ? -EINVAL : 16384);
	lib.iovdestroy(&iov);
	rig_close(&g);
}

/* ---- punch ----------------------------------------------------------------------------------- */

static void punched_chunks_are_holes(void **state)
{
	struct rig g;
	size_t start[2] = { 0, 2 * C }, end[2] = { C, 4 * C };
	struct stat st;

	(void)state;
	rig_open(&g, 0);
	pattern(g.iov.base, 5 * C, 10);
	assert_int_equal(rig_write(&g, 0, 0, 5 * C), (int64_t)(5 * C));
	assert_int_equal(lib.punchhole(g.fd, 2, start, end, 0), 0);
	assert_int_equal(rig_read(&g, 5 * C, 0, C), 0);
	assert_int_equal(rig_read(&g, 5 * C, C, 2 * C), (int64_t)C);
	assert_int_equal(rig_read(&g, 5 * C, 4 * C, C), (int64_t)C);
	assert_int_equal(fstat(g.fd, &st), 0);
	assert_int_equal(st.st_size, 16 * C); /* not shorter */
	rig_close(&g);
}

static void punchhole_fails_with_a_positive_errno(void **state)
{
	struct rig g;
	size_t start = 0, end = C, odd = C / 2;
	int elsewhere = open("/proc/self/stat", O_RDONLY | O_CLOEXEC), reads;

	(void)state;
	rig_open(&g, 0);
	assert_int_equal(lib.punchhole(g.fd, 1, &odd, &end, 0), EINVAL);
	assert_int_equal(lib.punchhole(g.fd, 1, &start, &odd, 0), EINVAL);
	assert_true(lib.punchhole(elsewhere, 1, &start, &end, 0) > 0);
	assert_true(lib.punchhole(-1, 1, &start, &end, 0) > 0);
	reads = open(g.path, O_RDONLY | O_CLOEXEC);
	/* nobody asks how it was opened */
	assert_int_equal(lib.punchhole(reads, 1, &start, &end, 0), 0);
	close(reads);
	close(elsewhere);
	rig_close(&g);
}

const struct CMUnitTest chunk_cases[] = {
	cmocka_unit_test(what_was_written_is_read),
	cmocka_unit_test(a_request_may_span_chunks),
	cmocka_unit_test(a_chunk_never_written_reads_as_nothing),
	cmocka_unit_test(a_read_ends_at_a_hole),
	cmocka_unit_test(a_chunk_ends_where_its_data_ends),
	cmocka_unit_test(a_hole_with_data_behind_it_is_zeros),
	cmocka_unit_test(a_ring_may_forbid_such_holes),
	cmocka_unit_test(a_fresh_chunk_is_zeros_up_to_what_is_written),
	cmocka_unit_test(a_write_past_the_end_can_be_read_at_once),
	cmocka_unit_test(writes_of_a_batch_may_share_their_source),
	cmocka_unit_test(reads_of_a_batch_into_the_same_bytes_fail_it),
	cmocka_unit_test(a_request_across_a_block_of_memory_is_einval),
	cmocka_unit_test(punched_chunks_are_holes),
	cmocka_unit_test(punchhole_fails_with_a_positive_errno),
};
const size_t n_chunk_cases = sizeof chunk_cases / sizeof chunk_cases[0];
