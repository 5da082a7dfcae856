/*
 * test_faults.c - right bytes or a miss: damaged bytes, swapped slots, short files, storages that
 * go away, leases and deadlines that run out, managers that tell nonsense. Never wrong bytes, never
 * a hang.
 */
#include "engine.h"
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* ---- damage on the storage ------------------------------------------------------------------- */

static int open_slab(struct fixture *f, const struct skv_location *loc)
{
	char path[160];
	int fd;

	standin_path(&f->s, loc->file, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void flip(struct fixture *f, uint64_t key, uint64_t at)
{
	const struct skv_location *loc = standin_find(&f->s, "m", key);
	int fd = open_slab(f, loc);
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, (off_t)(loc->offset + at)), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)(loc->offset + at)), 1);
	close(fd);
}

static void a_flipped_byte_is_a_mismatch(void **state)
{
	struct fixture *f = *state;
	struct set b;

	put_all(f, 1, 3);
	flip(f, 2, FIX_BYTES - 1);
	set_init(&b, 1, 3);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.blocks[0].result, SLABKV_HIT);
	assert_int_equal(b.blocks[1].result, SLABKV_MISMATCH);
	assert_int_equal(b.blocks[2].result, SLABKV_HIT);
	assert_int_equal(b.io.mismatches, 1);
	assert_int_equal(b.io.done, 2);
	assert_int_equal(f->mismatches, 1);
	assert_int_equal(f->last.key, 1);
	assert_int_equal(f->last.offset, standin_find(&f->s, "m", 2)->offset);
	set_free(&b);
}

static void swapped_slots_are_mismatches(void **state)
{
	struct fixture *f = *state;
	const struct skv_location *one, *two;
	uint8_t a[FIX_BYTES], z[FIX_BYTES];
	struct set b;
	int fd;

	put_all(f, 1, 2);
	one = standin_find(&f->s, "m", 1);
	two = standin_find(&f->s, "m", 2);
	fd = open_slab(f, one);
	assert_int_equal(pread(fd, a, sizeof a, (off_t)one->offset), sizeof a);
	assert_int_equal(pread(fd, z, sizeof z, (off_t)two->offset), sizeof z);
	assert_int_equal(pwrite(fd, z, sizeof z, (off_t)one->offset), sizeof z);
	assert_int_equal(pwrite(fd, a, sizeof a, (off_t)two->offset), sizeof a);
	close(fd);
	set_init(&b, 1, 2);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.mismatches, 2);
	set_free(&b);
}

static void verification_can_be_switched_off(void **state)
{
	struct fixture *f = *state;
	struct set b;

	put_all(f, 1, 1);
	flip(f, 1, 0);
	f->o.verify = false;
	fixture_reopen(f, NULL, NULL);
	set_init(&b, 1, 1);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.blocks[0].result, SLABKV_HIT); /* as asked for */
	set_free(&b);
}

static void a_truncated_file_is_a_miss(void **state)
{
	struct fixture *f = *state;
	char path[160];
	struct set b;

	put_all(f, 1, 4);
	set_init(&b, 1, 4);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK); /* the file is open now */
	standin_path(&f->s, 0, path);
	assert_int_equal(truncate(path, STANDIN_HEADER + 2 * FIX_BYTES + 100), 0);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.blocks[1].result, SLABKV_HIT);
	assert_int_equal(b.blocks[2].result, SLABKV_MISS);
	assert_int_equal(b.blocks[3].result, SLABKV_MISS);
	/* the file was forgotten: the next call proves the file anew and finds it too short */
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.blocks[0].result, SLABKV_ERROR);
	assert_int_equal(b.blocks[0].why, SLABKV_E_CORRUPT);
	assert_int_equal(f->mismatches, 0);
	set_free(&b);
}

/* The next read by the engine, if there is a path here: the file of that path goes, all runs fail,
 * and the first may be tried once more, as when a FUSE daemon is restarted. */
static const char *restarted;

void __real_skv_engine_read(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
			    const struct skv_io_call *by);
void __wrap_skv_engine_read(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
			    const struct skv_io_call *by);

void __wrap_skv_engine_read(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
			    const struct skv_io_call *by)
{
	if (!restarted) {
		__real_skv_engine_read(e, runs, n, by);
		return;
	}
	assert_true(n > 1);
	assert_int_equal(unlink(restarted), 0);
	restarted = NULL;
	for (uint32_t i = 0; i < n; i++) {
		runs[i].status = SKV_E_IO;
		runs[i].again = i == 0;
	}
}

static void a_file_that_cannot_be_opened_once_more_fails_all_its_blocks(void **state)
{
	struct fixture *f = *state;
	char path[160];
	struct set b;

	put_all(f, 1, 3);
	standin_path(&f->s, 0, path);
	set_init(&b, 1, 3);
	b.ids[1] = 99; /* nobody has it: blocks 1 and 3 are no neighbours, so they are two runs */
	assert_int_equal(set_get(f, &b, SLABKV_BATCH), SLABKV_OK);
	assert_int_equal(b.io.done, 2);
	restarted = path;
	assert_int_equal(set_get(f, &b, SLABKV_BATCH), SLABKV_OK);
	assert_null(restarted);
	assert_int_equal(b.io.done, 0);
	assert_int_equal(b.blocks[0].result, SLABKV_ERROR);
	assert_int_equal(b.blocks[2].result, SLABKV_ERROR);
	set_free(&b);
}

static void a_vanished_root_is_an_error_of_the_blocks(void **state)
{
	struct fixture *f = *state;
	char away[80], path[160];
	struct set b;

	put_all(f, 1, 2);
	snprintf(away, sizeof away, "%s.away", f->s.root);
	assert_int_equal(rename(f->s.root, away), 0);
	fixture_reopen(f, NULL, NULL);
	set_init(&b, 1, 2);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.matched, 2);
	assert_int_equal(b.io.failed, 2);
	assert_int_equal(b.blocks[0].why, SLABKV_E_UNAVAILABLE);
	set_free(&b);
	set_init(&b, 10, 2);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.io.failed, 2);
	assert_int_equal(b.err.code, SLABKV_E_UNAVAILABLE);
	assert_int_equal(f->s.aborts, 1); /* the slots go back at once */
	/* the storage recovers by itself */
	assert_int_equal(rename(away, f->s.root), 0);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.io.done, 2);
	/* files that vanish while they are open for writing are not written to */
	standin_path(&f->s, 0, path);
	assert_int_equal(unlink(path), 0);
	set_free(&b);
	set_init(&b, 20, 1);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.blocks[0].result, SLABKV_FAILED);
	set_free(&b);
}

static void the_wrong_mount_is_not_used(void **state)
{
	struct fixture *f = *state;
	struct standin other;
	const char *mount;
	struct set b;

	put_all(f, 1, 1);
	standin_start(&other);
	mount = other.root;
	f->o.mounts = &mount;
	f->o.n_mounts = 1;
	f->s.storage_gets = 0;
	fixture_reopen(f, NULL, NULL);
	set_init(&b, 1, 1);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.blocks[0].result, SLABKV_ERROR);
	assert_int_equal(b.blocks[0].why, SLABKV_E_FOREIGN);
	/* asked once, whether it is of memory; its root is not tried, for mounts are named */
	assert_int_equal(f->s.storage_gets, 1);
	mount = f->s.root;
	fixture_reopen(f, NULL, NULL);
	f->s.hide_root = true; /* named mounts need no root from the manager */
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.blocks[0].result, SLABKV_HIT);
	set_free(&b);
	standin_stop(&other);
}

static void mounts_are_found_for_people(void **state)
{
	struct fixture *f = *state;
	struct slabkv_error err;
	const char *path;

	assert_int_equal(slabkv_mount_find(f->kv, "default", &path, &err), SLABKV_OK);
	assert_string_equal(path, f->s.root);
	slabkv_free(path);
	f->s.hide_root = true;
	fixture_reopen(f, NULL, NULL);
	assert_int_equal(slabkv_mount_find(f->kv, "default", &path, &err), SLABKV_E_UNAVAILABLE);
	assert_int_equal(slabkv_mount_find(f->kv, "../x", &path, &err), SLABKV_E_INVALID);
}

/* ---- leases ---------------------------------------------------------------------------------- */

/* A clock that stands until the data path reads, and an engine that turns it. */
static struct skv_fake_clock fake;
static uint64_t read_takes_ms;
static uint64_t write_takes_ms;

static void slow_read(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		      const struct skv_io_call *by)
{
	for (uint32_t i = 0; i < n; i++) {
		bool submitted = !skv_deadline_passed(by);

		skv_fake_clock_advance(&fake, submitted ? read_takes_ms : 0);
		if (submitted) {
			struct skv_io_call open = { .clock = by->clock, .at_ms = UINT64_MAX };

			skv_engine_posix.read(e, &runs[i], 1, &open);
		} else {
			runs[i].status = SKV_E_TIMEOUT;
		}
	}
}

static void slow_write(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		       const struct skv_io_call *by)
{
	for (uint32_t i = 0; i < n; i++) {
		skv_engine_posix.write(e, &runs[i], 1, by);
		skv_fake_clock_advance(&fake, write_takes_ms);
	}
}

static struct skv_engine_ops slow;

static int slow_create(const struct skv_engine_options *o, struct skv_engine **out,
		       struct skv_error *err)
{
	int rc = skv_engine_posix.create(o, out, err);

	if (rc == SKV_OK)
		(*out)->ops = &slow;
	return rc;
}

static void use_slow_engine(struct fixture *f)
{
	slow = skv_engine_posix;
	slow.create = slow_create;
	slow.read = slow_read;
	slow.write = slow_write;
	read_takes_ms = write_takes_ms = 0;
	skv_fake_clock_init(&fake, 1000);
	fixture_reopen(f, &fake.clock, &slow);
}

static void late_bytes_count_only_with_a_checksum(void **state)
{
	struct fixture *f = *state;
	struct set b;

	put_all(f, 1, 2);
	use_slow_engine(f);
	read_takes_ms = 10001; /* the lease is 10000 */
	set_init(&b, 1, 2);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 2); /* proved by their checksums */
	f->o.verify = false;
	use_slow_engine(f);
	read_takes_ms = 10001;
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 0);
	assert_int_equal(b.blocks[0].result, SLABKV_MISS);
	read_takes_ms = 9999;
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 2);
	set_free(&b);
}

static void without_checksum_or_lease_nothing_can_be_trusted(void **state)
{
	struct fixture *f = *state;
	const struct slabkv_lookup_options o = { .size = sizeof(struct slabkv_lookup_options),
						 .mode = SLABKV_PREFIX,
						 .lease_ms = 0 };
	struct set b;

	f->s.drop_checksums = true;
	put_all(f, 1, 1);
	set_init(&b, 1, 1);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.blocks[0].result, SLABKV_HIT); /* inside the lease */
	assert_int_equal(slabkv_get(f->kv, "m", &b.keys, &o, b.blocks, sizeof(struct slabkv_block),
				    NULL, NULL),
			 SLABKV_OK);
	assert_int_equal(b.blocks[0].result, SLABKV_MISS);
	set_free(&b);
}

static void a_mismatch_after_the_lease_is_a_miss(void **state)
{
	struct fixture *f = *state;
	struct set b;

	put_all(f, 1, 1);
	flip(f, 1, 5);
	use_slow_engine(f);
	read_takes_ms = 10001;
	set_init(&b, 1, 1);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.blocks[0].result, SLABKV_MISS); /* the slot may have been reused */
	assert_int_equal(f->mismatches, 0);
	set_free(&b);
}

/* ---- deadlines, partial writes --------------------------------------------------------------- */

static void nothing_is_written_after_the_deadline(void **state)
{
	struct fixture *f = *state;
	struct set b;

	use_slow_engine(f);
	f->s.gap = 512; /* a run for each block */
	write_takes_ms = 20000; /* the deadline is 30000 */
	set_init(&b, 1, 4);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.blocks[0].result, SLABKV_WRITTEN);
	assert_int_equal(b.blocks[1].result, SLABKV_WRITTEN); /* submitted at 20000 */
	assert_int_equal(b.blocks[2].result, SLABKV_FAILED);
	assert_int_equal(b.blocks[2].why, SLABKV_E_TIMEOUT);
	assert_int_equal(f->s.last_finish.mask_kind, SKV_MASK_BITS);
	assert_true(f->s.last_finish.quiesced);
	assert_null(standin_find(&f->s, "m", 3));
	set_free(&b);
}

/* An engine whose writes or syncs fail for one file offset or always. */
static uint64_t fail_from = UINT64_MAX;
static int sync_result;

static void failing_write(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
			  const struct skv_io_call *by)
{
	for (uint32_t i = 0; i < n; i++) {
		if (runs[i].offset >= fail_from)
			runs[i].status = SKV_E_NO_SPACE;
		else
			skv_engine_posix.write(e, &runs[i], 1, by);
	}
}

static int failing_sync(struct skv_engine *e, struct skv_engine_file *file)
{
	(void)e;
	(void)file;
	return sync_result;
}

static void what_could_not_be_written_is_not_committed(void **state)
{
	struct fixture *f = *state;
	struct set b;

	use_slow_engine(f);
	slow.write = failing_write;
	f->s.gap = 512;
	fail_from = STANDIN_HEADER + FIX_BYTES + 512;
	set_init(&b, 1, 3);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.io.done, 1);
	assert_int_equal(b.io.failed, 2);
	assert_int_equal(b.blocks[1].why, SLABKV_E_NO_SPACE);
	assert_int_equal(b.err.code, SLABKV_E_NO_SPACE);
	fail_from = UINT64_MAX;
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 1);
	set_free(&b);
}

/* Blocks that are deleted while they are written: told of each, and no error. */
static void what_was_deleted_is_not_stored(void **state)
{
	static const uint32_t rows[] = { 0, 2 };
	struct slabkv_finished done = { .size = sizeof done };
	const struct slabkv_session *s;
	struct fixture *f = *state;
	struct slabkv_error err;
	bool gone[4];
	struct set b;

	f->s.gone = rows;
	f->s.n_gone = 2;
	set_init(&b, 1, 4);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(b.blocks[i].result, i % 2 ? SLABKV_WRITTEN : SLABKV_DELETED);
	assert_int_equal(b.io.done, 2);
	assert_int_equal(b.io.failed, 2);
	assert_null(standin_find(&f->s, "m", 1));
	set_free(&b);
	set_init(&b, 11, 4);
	assert_int_equal(slabkv_start(f->kv, "m", &b.keys, NULL, "r", &s, &err), SLABKV_OK);
	done.gone = gone;
	done.n_gone = 4;
	assert_int_equal(slabkv_finish(f->kv, s->id, NULL, &done, &err), SLABKV_OK);
	assert_int_equal(done.committed, 2);
	assert_int_equal(done.deleted, 2);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(gone[i], i % 2 == 0);
	slabkv_free(s);
	set_free(&b);
}

/* Deleted while its start waited for room: nothing was written, and no error. */
static void what_was_deleted_before_there_was_room(void **state)
{
	struct fixture *f = *state;
	struct set b;

	f->s.fail_op = "start";
	f->s.fail_status = SKV_E_SESSION_ENDED;
	f->s.fail_count = 1;
	set_init(&b, 1, 4);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(b.blocks[i].result, SLABKV_DELETED);
		assert_int_equal(b.blocks[i].why, SLABKV_OK);
	}
	assert_int_equal(b.io.failed, 4);
	assert_int_equal(b.err.code, SLABKV_OK);
	set_free(&b);
}

/* The same of an operation of a queue. */
static void a_queue_tells_what_was_deleted(void **state)
{
	static const uint32_t rows[] = { 0 };
	struct slabkv_completion c = { .result = SLABKV_HIT };
	struct fixture *f = *state;
	struct slabkv_async *a;
	struct slabkv_op op;
	struct set b;

	f->s.gone = rows;
	f->s.n_gone = 1;
	set_init(&b, 1, 1);
	op = (struct slabkv_op){ .kind = SLABKV_OP_PUT, .instance = "m", .key = &b.keys,
				 .bufs = b.blocks[0].bufs, .n_bufs = b.blocks[0].n_bufs };
	assert_int_equal(slabkv_async_open(f->kv, NULL, &a, NULL), SLABKV_OK);
	assert_int_equal(slabkv_submit(a, &op, sizeof op, 1, NULL, NULL), SLABKV_OK);
	assert_int_equal(poll(&(struct pollfd){ slabkv_async_fd(a), POLLIN, 0 }, 1, 60000), 1);
	assert_int_equal(slabkv_drain(a, &c, sizeof c, 1), 1);
	assert_int_equal(c.result, SLABKV_DELETED);
	slabkv_async_close(a);
	f->s.n_gone = 0;
	assert_int_equal(set_put(f, &b), SLABKV_OK); /* the handle goes on */
	assert_int_equal(b.io.done, 1);
	set_free(&b);
}

static void what_could_not_be_synced_is_not_committed(void **state)
{
	struct fixture *f = *state;
	struct set b;

	use_slow_engine(f);
	slow.sync = failing_sync;
	sync_result = SKV_E_IO;
	set_init(&b, 1, 3);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.io.failed, 3);
	assert_int_equal(f->s.finishes, 0);
	assert_int_equal(f->s.aborts, 1);
	assert_null(standin_find(&f->s, "m", 1));
	set_free(&b);
}

/* An engine whose last run was given up while it may still land. */
static void write_in_flight(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
			    const struct skv_io_call *by)
{
	failing_write(e, runs, n, by);
	runs[n - 1].in_flight = true;
}

/* Slots that a write may still reach are not called quiet, whatever ends the session and whatever
 * the result. */
static void a_write_given_up_is_never_called_quiesced(void **state)
{
	struct fixture *f = *state;
	struct set b;

	use_slow_engine(f);
	slow.write = write_in_flight;
	f->s.gap = 512;
	fail_from = STANDIN_HEADER + FIX_BYTES + 512;
	set_init(&b, 1, 2); /* the first is whole: finish */
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(f->s.finishes, 1);
	assert_false(f->s.last_finish.quiesced);
	set_free(&b);
	fail_from = 0;
	f->s.last_abort_quiesced = true;
	set_init(&b, 11, 2); /* none is: abort */
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(f->s.aborts, 1);
	assert_false(f->s.last_abort_quiesced);
	set_free(&b);
	fail_from = f->s.next_offset + FIX_BYTES + 512;
	f->s.last_abort_quiesced = true;
	f->s.fail_op = "finish"; /* the finish fails: abort */
	f->s.fail_status = SKV_E_NOMEM;
	f->s.fail_count = UINT32_MAX;
	set_init(&b, 21, 2);
	assert_int_equal(set_put(f, &b), SLABKV_E_NOMEM);
	assert_int_equal(f->s.aborts, 2);
	assert_false(f->s.last_abort_quiesced);
	fail_from = UINT64_MAX;
	set_free(&b);
}

/* ---- managers that tell nonsense ------------------------------------------------------------- */

static void places_outside_of_a_file_are_refused(void **state)
{
	struct fixture *f = *state;
	const uint64_t bad[] = { 1, STANDIN_HEADER - 1,
				 (4u << 20) - STANDIN_TRAILER - FIX_BYTES + 1, 1ull << 62 };
	struct set b;

	put_all(f, 1, 1);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		f->s.bad_offset = bad[i];
		set_init(&b, 1, 1);
		assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
		assert_int_equal(b.blocks[0].result, SLABKV_ERROR);
		set_free(&b);
		set_init(&b, 100 + i, 1); /* above all nothing may be written there */
		assert_int_equal(set_put(f, &b), SLABKV_OK);
		assert_int_equal(b.blocks[0].result, SLABKV_FAILED);
		assert_int_equal(b.blocks[0].why, SLABKV_E_CORRUPT);
		set_free(&b);
	}
}

static void paths_that_lead_elsewhere_are_refused(void **state)
{
	static const char *const bad[] = { "../../etc/passwd", "/etc/passwd", "slabkv-storage" };
	struct fixture *f = *state;
	struct set b;

	put_all(f, 1, 1);
	fixture_reopen(f, NULL, NULL);
	set_init(&b, 1, 1);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		f->s.bad_path = bad[i];
		(void)set_get(f, &b, SLABKV_PREFIX);
		assert_int_not_equal(b.blocks[0].result, SLABKV_HIT);
	}
	set_free(&b);
}

static void columns_that_nobody_asked_for_are_refused(void **state)
{
	static const struct slabkv_spec specs[] = { { "tp0", 512 }, { "tp1", 512 } };
	static const struct slabkv_instance two = { .size = sizeof(struct slabkv_instance),
						    .id = "two",
						    .group = "g",
						    .specs = specs,
						    .spec_size = sizeof(struct slabkv_spec),
						    .n_specs = 2 };
	static const char *const asked[] = { "tp1", "tp0" };
	const struct slabkv_put_options put = { .size = sizeof(struct slabkv_put_options),
						.specs = asked,
						.n_specs = 2 };
	const struct slabkv_lookup_options get = { .size = sizeof(struct slabkv_lookup_options),
						   .specs = asked,
						   .n_specs = 2,
						   .lease_ms = SLABKV_LEASE_DEFAULT };
	struct fixture *f = *state;
	struct set b;

	assert_int_equal(slabkv_instance_put(f->kv, &two, NULL), SLABKV_OK);
	set_init(&b, 1, 1);
	f->s.bad_spec = "tp2"; /* instead of tp0 */
	assert_int_equal(slabkv_put(f->kv, "two", &b.keys, &put, b.blocks,
				    sizeof(struct slabkv_block), NULL, NULL),
			 SLABKV_E_INTERNAL);
	assert_int_equal(slabkv_get(f->kv, "two", &b.keys, &get, b.blocks,
				    sizeof(struct slabkv_block), NULL, NULL),
			 SLABKV_E_INTERNAL);
	assert_int_equal(f->s.finishes, 0);
	set_free(&b);
}

static void two_blocks_at_one_place_are_refused(void **state)
{
	struct fixture *f = *state;
	struct set b;

	f->s.bad_offset = STANDIN_HEADER; /* the same for every block */
	set_init(&b, 1, 2);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.io.done, 1);
	assert_int_equal(b.io.failed, 1);
	set_free(&b);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(a_flipped_byte_is_a_mismatch),
		T(swapped_slots_are_mismatches),
		T(verification_can_be_switched_off),
		T(a_truncated_file_is_a_miss),
		T(a_file_that_cannot_be_opened_once_more_fails_all_its_blocks),
		T(a_vanished_root_is_an_error_of_the_blocks),
		T(the_wrong_mount_is_not_used),
		T(mounts_are_found_for_people),
		T(late_bytes_count_only_with_a_checksum),
		T(without_checksum_or_lease_nothing_can_be_trusted),
		T(a_mismatch_after_the_lease_is_a_miss),
		T(nothing_is_written_after_the_deadline),
		T(what_could_not_be_written_is_not_committed),
		T(what_could_not_be_synced_is_not_committed),
		T(what_was_deleted_is_not_stored),
		T(what_was_deleted_before_there_was_room),
		T(a_queue_tells_what_was_deleted),
		T(a_write_given_up_is_never_called_quiesced),
		T(columns_that_nobody_asked_for_are_refused),
		T(places_outside_of_a_file_are_refused),
		T(paths_that_lead_elsewhere_are_refused),
		T(two_blocks_at_one_place_are_refused),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
