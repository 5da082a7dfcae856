/*
 * conf_ring.c - see conformance.h: rings: what prep_io refuses, when batches
 * begin, what waiting returns.
 */
#include "conformance.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How long a case watches that nothing comes. */
#define QUIET_MS 50

/* ---- create ---------------------------------------------------------------------------------- */

static void ior_size_follows_the_layout(void **state)
{
	static const struct {
		int entries;
		size_t bytes;
	} known[] = { { 128, 16528 }, { 256, 28816 }, { 1024, 102544 }, { 4096, 397456 } };

	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		assert_int_equal(lib.ior_size(known[i].entries), known[i].bytes);
		assert_int_equal(RING_BYTES(known[i].entries), known[i].bytes);
	}
}

static void io_entries_gives_the_entries_back(void **state)
{
	static const int entries[] = { 1, 7, 64, 128, 1024 };
	struct hf3fs_ior ior;

	(void)state;
	for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
		assert_int_equal(lib.iorcreate(&ior, suite.mount, entries[i], true, 0, -1), 0);
		assert_int_equal(lib.io_entries(&ior), entries[i]);
		lib.iordestroy(&ior);
	}
}

/* The link's name tells the daemon what kind of ring it is; the shared
 * memory has no name any more. */
static void a_rings_link_tells_what_it_is(void **state)
{
	struct hf3fs_ior ior;
	char shm[128];

	(void)state;
	assert_int_equal(lib.iorcreate(&ior, suite.mount, 16, true, 4, -1), 0);
	assert_true(has_link(ior.iov.id, ".r4.t0"));
	find_shm(ior.iov.id, ".r4.t0", shm);
	assert_false(has_shm(shm));
	assert_true(ior.for_read && ior.io_depth == 4 && ior.priority == 0 && ior.timeout == 0 &&
		    ior.flags == 0);
	lib.iordestroy(&ior);
	assert_false(has_link(ior.iov.id, ".r4.t0"));

	assert_int_equal(lib.iorcreate2(&ior, suite.mount, 16, false, 0, -1, -1), 0);
	assert_true(has_link(ior.iov.id, ".w0.ph.t0"));
	lib.iordestroy(&ior);
	assert_false(has_link(ior.iov.id, ".w0.ph.t0"));

	assert_int_equal(lib.iorcreate3(&ior, suite.mount, 16, false, 0, 1, 30, -1), 0);
	assert_true(has_link(ior.iov.id, ".w0.pl.t30"));
	lib.iordestroy(&ior);

	assert_int_equal(
		lib.iorcreate4(&ior, suite.mount, 16, true, 0, 0, -1, HF3FS_ALLOW_UNCOMMITTED), 0);
	assert_true(has_link(ior.iov.id, ".r0.t0.f1"));
	lib.iordestroy(&ior);
	assert_false(has_link(ior.iov.id, ".r0.t0.f1"));
}

/* Flags are binary in the name that is made, decimal in the one that is removed. */
static void a_ring_that_forbids_holes_leaves_its_link(void **state)
{
	struct hf3fs_ior ior;
	char uuid[37], path[512];

	(void)state;
	assert_int_equal(lib.iorcreate4(&ior, suite.mount, 16, true, 0, 0, -1, HF3FS_FORBID_HOLES),
			 0);
	assert_true(has_link(ior.iov.id, ".r0.t0.f10"));
	uuid_of(ior.iov.id, uuid);
	lib.iordestroy(&ior);
	assert_true(has_link(ior.iov.id, ".r0.t0.f10"));
	snprintf(path, sizeof path, "%s/3fs-virt/iovs/%s.r0.t0.f10", suite.mount, uuid);
	assert_int_equal(unlink(path), 0);
}

static void iorcreate_fails_with_a_negative_errno(void **state)
{
	struct hf3fs_ior ior;

	(void)state;
	assert_int_equal(lib.iorcreate(NULL, suite.mount, 16, true, 0, -1), -EINVAL);
	assert_int_equal(lib.iorcreate(&ior, NULL, 16, true, 0, -1), -EINVAL);
	assert_int_equal(lib.iorcreate(&ior, "", 16, true, 0, -1), -EINVAL);
	assert_int_equal(lib.iorcreate(&ior, suite.mount, 16, true, 17, -1), -EINVAL);
	assert_int_equal(lib.iorcreate3(&ior, suite.mount, 16, true, 0, 0, -1, -1), -EINVAL);
	assert_int_equal(lib.iorcreate(&ior, "/no/such/mount", 16, true, 0, -1), -ENOENT);
}

/* The ring's memory is registered before its entries are checked, and is unregistered by the name
 * of data memory. */
static void a_ring_without_entries_leaves_its_link(void **state)
{
	struct hf3fs_ior ior;
	char uuid[37], path[512];

	(void)state;
	memset(&ior, 0, sizeof ior);
	assert_int_equal(lib.iorcreate(&ior, suite.mount, 0, true, 0, -1), -EINVAL);
	assert_null(ior.iov.iovh);
	assert_true(has_link(ior.iov.id, ".r0.t0"));
	uuid_of(ior.iov.id, uuid);
	snprintf(path, sizeof path, "%s/3fs-virt/iovs/%s.r0.t0", suite.mount, uuid);
	assert_int_equal(unlink(path), 0);
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void prep_refuses_what_cannot_be(void **state)
{
	struct rig g;
	uint8_t *base;

	(void)state;
	rig_open(&g, 0);
	base = g.iov.base;
	assert_int_equal(lib.prep_io(NULL, &g.iov, true, base, g.handle, 0, 4096, NULL), -EINVAL);
	assert_int_equal(lib.prep_io(&g.read, NULL, true, base, g.handle, 0, 4096, NULL), -EINVAL);
	assert_int_equal(lib.prep_io(&g.read, &g.iov, true, NULL, g.handle, 0, 4096, NULL),
			 -EINVAL);
	assert_int_equal(lib.prep_io(&g.read, &g.iov, false, base, g.handle, 0, 4096, NULL),
			 -EINVAL);
	assert_int_equal(lib.prep_io(&g.write, &g.iov, true, base, g.handle, 0, 4096, NULL),
			 -EINVAL);
	assert_int_equal(lib.prep_io(&g.read, &g.iov, true, base - 1, g.handle, 0, 4096, NULL),
			 -EINVAL);
	assert_int_equal(
		lib.prep_io(&g.read, &g.iov, true, base + g.iov.size - 1, g.handle, 0, 2, NULL),
		-EINVAL);
	assert_true(lib.prep_io(&g.read, &g.iov, true, base + g.iov.size - 4096, g.handle, 0, 4096,
				NULL) >= 0);
	rig_close(&g); /* with a request that was never submitted */
}

static void a_ring_is_full_at_its_entries(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqes[RIG_ENTRIES];
	bool seen[RIG_ENTRIES] = { false };

	(void)state;
	rig_open(&g, 0);
	for (int i = 0; i < RIG_ENTRIES; i++) {
		int slot =
			lib.prep_io(&g.write, &g.iov, false, g.iov.base, g.handle, 0, 4096, NULL);

		assert_true(slot >= 0 && slot < RIG_ENTRIES && !seen[slot]);
		seen[slot] = true;
	}
	assert_int_equal(lib.prep_io(&g.write, &g.iov, false, g.iov.base, g.handle, 0, 4096, NULL),
			 -EAGAIN);
	lib.submit_ios(&g.write);
	/* Only waiting makes room: it is full as long as nobody has asked. */
	wait_all(&g.write, cqes, 1);
	assert_true(lib.prep_io(&g.write, &g.iov, false, g.iov.base, g.handle, 0, 4096, NULL) >= 0);
	lib.submit_ios(&g.write);
	wait_all(&g.write, cqes, RIG_ENTRIES);
	rig_close(&g);
}

/* ---- wait ------------------------------------------------------------------------------------ */

static void waiting_too_long_is_no_error(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqe[4];
	struct timespec past = { 1, 0 };

	(void)state;
	rig_open(&g, 0);
	assert_int_equal(lib.wait_for_ios(&g.read, cqe, 4, 0, NULL), 0); /* only looks */
	assert_int_equal(lib.wait_for_ios(&g.read, cqe, 4, 1, &past), 0);
	assert_int_equal(wait_ms(&g.read, cqe, 4, 1, QUIET_MS), 0);
	assert_int_equal(lib.wait_for_ios(&g.read, cqe, 0, 0, NULL), -EINVAL);
	assert_int_equal(lib.wait_for_ios(NULL, cqe, 4, 0, NULL), -EINVAL);
	rig_prep(&g, true, 0, 0, 4096, 0);
	lib.submit_ios(&g.read);
	/* min is at most what fits */
	assert_int_equal(lib.wait_for_ios(&g.read, cqe, 1, 4, NULL), 1);
	rig_close(&g);
}

/* An earlier submit, or the one that waiting itself posts, may still be on its way to the daemon:
 * once in a few times none is. */
static void nothing_begins_before_a_submit(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqe;
	int came = 1;

	(void)state;
	rig_open(&g, 0);
	for (int i = 0; i < 10 && came; i++) {
		assert_int_equal(wait_ms(&g.read, &cqe, 1, 1, QUIET_MS), 0);
		rig_prep(&g, true, 0, 0, 4096, 7);
		came = wait_ms(&g.read, &cqe, 1, 1, QUIET_MS);
	}
	assert_int_equal(came, 0);
	assert_int_equal(lib.submit_ios(&g.read), 0);
	wait_all(&g.read, &cqe, 1);
	assert_int_equal((uintptr_t)cqe.userdata, 7);
	assert_int_equal(lib.submit_ios(NULL), -EINVAL);
	rig_close(&g);
}

/* Batches of one ring run side by side: only userdata tells which result is whose. */
static void results_belong_to_their_userdata(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqes[RIG_ENTRIES];
	bool seen[RIG_ENTRIES];

	(void)state;
	if (suite.standin)
		knobs("jitter_us=2000");
	rig_open(&g, -2);
	pattern(g.iov.base, RIG_BYTES / 2, 9);
	for (int round = 0; round < 5; round++) {
		memset(seen, 0, sizeof seen);
		for (uintptr_t i = 0; i < RIG_ENTRIES; i++) /* each has a length of its own */
			rig_prep(&g, false, i * 64, i * 4096, i + 1, i);
		lib.submit_ios(&g.write);
		wait_all(&g.write, cqes, RIG_ENTRIES);
		for (int i = 0; i < RIG_ENTRIES; i++) {
			uintptr_t tag = (uintptr_t)cqes[i].userdata;

			assert_true(tag < RIG_ENTRIES && !seen[tag]);
			seen[tag] = true;
			assert_int_equal(cqes[i].result, tag + 1);
		}
	}
	rig_close(&g);
	if (suite.standin)
		knobs("");
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Batches so far; 0 where nobody counts. */
static uint64_t batches(void)
{
	return suite.standin ? standin_count(suite.mount, COUNT_read_jobs) : 0;
}

static void prep_reads(struct rig *g, int first, int n)
{
	for (int i = first; i < first + n; i++)
		rig_prep(g, true, (size_t)i * 4096, 0, 4096, (uintptr_t)i);
}

static void depth_0_takes_all_that_is_queued(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqes[20];
	uint64_t before = batches();

	(void)state;
	rig_open(&g, 0);
	prep_reads(&g, 0, 20);
	lib.submit_ios(&g.read);
	wait_all(&g.read, cqes, 20);
	assert_int_equal(batches() - before, suite.standin ? 1 : 0);
	rig_close(&g);
}

static void a_positive_depth_waits_for_so_many(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqes[8];
	uint64_t before = batches();

	(void)state;
	rig_open(&g, 4);
	prep_reads(&g, 0, 6);
	lib.submit_ios(&g.read);
	wait_all(&g.read, cqes, 4);
	/* a part of a batch never runs */
	assert_int_equal(wait_ms(&g.read, cqes, 4, 1, QUIET_MS), 0);
	prep_reads(&g, 6, 2);
	lib.submit_ios(&g.read);
	wait_all(&g.read, cqes, 4);
	assert_int_equal(batches() - before, suite.standin ? 2 : 0);
	rig_close(&g);
}

static void a_negative_depth_is_the_most_of_a_batch(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqes[11];
	uint64_t before = batches();

	(void)state;
	rig_open(&g, -4);
	prep_reads(&g, 0, 11);
	lib.submit_ios(&g.read);
	wait_all(&g.read, cqes, 11);
	assert_int_equal(batches() - before, suite.standin ? 3 : 0);
	rig_close(&g);
}

/* The daemon means to wait `timeout` for more, and waits for more. */
static void a_negative_depth_with_a_timeout_stalls(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqes[4];

	(void)state;
	rig_open(&g, 0);
	lib.iordestroy(&g.read);
	assert_int_equal(lib.iorcreate3(&g.read, suite.mount, RIG_ENTRIES, true, -4, 0, 1, -1), 0);
	prep_reads(&g, 0, 2);
	lib.submit_ios(&g.read);
	assert_int_equal(wait_ms(&g.read, cqes, 4, 1, QUIET_MS), 0);
	prep_reads(&g, 2, 2);
	lib.submit_ios(&g.read);
	wait_all(&g.read, cqes, 4);
	rig_close(&g);
}

static void the_documented_timeout_ends_the_wait(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqes[4];

	(void)state;
	only_standin();
	knobs("stall=0");
	rig_open(&g, 0);
	lib.iordestroy(&g.read);
	assert_int_equal(lib.iorcreate3(&g.read, suite.mount, RIG_ENTRIES, true, -4, 0, 20, -1), 0);
	prep_reads(&g, 0, 2);
	lib.submit_ios(&g.read);
	wait_all(&g.read, cqes, 2);
	rig_close(&g);
	knobs("");
}

static void priorities_have_rings_of_their_own(void **state)
{
	static const int priorities[] = { -1, 0, 1 };
	struct rig g;
	struct hf3fs_cqe cqe;

	(void)state;
	rig_open(&g, 0);
	for (int i = 0; i < 3; i++) {
		lib.iordestroy(&g.read);
		assert_int_equal(lib.iorcreate2(&g.read, suite.mount, RIG_ENTRIES, true, 0,
						priorities[i], -1),
				 0);
		rig_prep(&g, true, 0, 0, 4096, 0);
		lib.submit_ios(&g.read);
		wait_all(&g.read, &cqe, 1);
	}
	rig_close(&g);
}

/* A request that was queued when another ring was submitted begins, too: the
 * daemon looks at all of them. */
static void a_submit_wakes_the_other_rings_of_its_priority(void **state)
{
	struct rig a, b;
	struct hf3fs_cqe cqe;

	(void)state;
	rig_open(&a, 0);
	rig_open(&b, 0);
	rig_prep(&a, true, 0, 0, 4096, 0);
	lib.submit_ios(&b.read);
	wait_all(&a.read, &cqe, 1);
	rig_close(&a);
	rig_close(&b);
}

const struct CMUnitTest ring_cases[] = {
	cmocka_unit_test(ior_size_follows_the_layout),
	cmocka_unit_test(io_entries_gives_the_entries_back),
	cmocka_unit_test(a_rings_link_tells_what_it_is),
	cmocka_unit_test(a_ring_that_forbids_holes_leaves_its_link),
	cmocka_unit_test(iorcreate_fails_with_a_negative_errno),
	cmocka_unit_test(a_ring_without_entries_leaves_its_link),
	cmocka_unit_test(prep_refuses_what_cannot_be),
	cmocka_unit_test(a_ring_is_full_at_its_entries),
	cmocka_unit_test(waiting_too_long_is_no_error),
	cmocka_unit_test(nothing_begins_before_a_submit),
	cmocka_unit_test(results_belong_to_their_userdata),
	cmocka_unit_test(depth_0_takes_all_that_is_queued),
	cmocka_unit_test(a_positive_depth_waits_for_so_many),
	cmocka_unit_test(a_negative_depth_is_the_most_of_a_batch),
	cmocka_unit_test(a_negative_depth_with_a_timeout_stalls),
	cmocka_unit_test(the_documented_timeout_ends_the_wait),
	cmocka_unit_test(priorities_have_rings_of_their_own),
	cmocka_unit_test(a_submit_wakes_the_other_rings_of_its_priority),
};
const size_t n_ring_cases = sizeof ring_cases / sizeof ring_cases[0];
