/*
 * test_core_reload.c - a checkpoint that is being written while the partition is loaded again.
 *
 * A generator: before each call that the writer makes to the store, and behind the last one, the
 * manager gives the partition up and loads it anew, at the very address that it had: the memory of
 * parts is this program's. What the writer knew was of the partition before: the new one has no
 * checkpoint, and a snapshot of its own goes on.
 */
#include "core_env.h"

#include <string.h>

#include <lock/gate.h>
#include <lock/lock.h>
#include <model/partition.h>
#include <journal/commit.h>
#include <journal/snapshot.h>
#include <recovery/checkpoint.h>

#define N 600u /* blocks: three chunks */

static struct env e;

/* ---- parts have one place -------------------------------------------------------------------- */

static struct partition place;
static bool taken;

void *__real_skv_calloc(size_t n, size_t size);
void __real_skv_free(void *p);
void *__wrap_skv_calloc(size_t n, size_t size);
void __wrap_skv_free(void *p);

void *__wrap_skv_calloc(size_t n, size_t size)
{
	if (n != 1 || size != sizeof place || taken)
		return __real_skv_calloc(n, size);
	taken = true;
	memset(&place, 0, sizeof place);
	return &place;
}

void __wrap_skv_free(void *p)
{
	if (p == &place)
		taken = false;
	else
		__real_skv_free(p);
}

/* ---- the middle of a checkpoint -------------------------------------------------------------- */

static struct {
	/* Behind: not before a call, but after the one that makes it durable. */
	bool reached, snapshot, behind;
	uint64_t fence, journal_bytes;
} mid;

int __real_skv_store_checkpoint_commit(struct skv_store *s, uint32_t partition, uint64_t fence,
				       uint64_t id, uint32_t slices, uint64_t upto_seq,
				       struct skv_error *err);
int __wrap_skv_store_checkpoint_commit(struct skv_store *s, uint32_t partition, uint64_t fence,
				       uint64_t id, uint32_t slices, uint64_t upto_seq,
				       struct skv_error *err);

static void load_again(void *ctx, const char *call)
{
	uint64_t before = owner_fence(e.core);

	(void)ctx;
	(void)call;
	mid.reached = true;
	mid.behind = false;
	skv_fault_store_set(e.store, &(struct skv_fault){ .kind = SKV_FAULT_NONE });
	assert_int_equal(skv_cluster_demote(e.cluster, 0, &e.err), SKV_OK);
	assert_int_equal(skv_cluster_wait_ready(e.cluster, 10000), SKV_OK);
	mid.fence = owner_fence(e.core);
	assert_true(mid.fence != before);
	assert_ptr_equal(e.core->partition, &place);
	core_lock(e.core);
	if (mid.snapshot)
		snapshot_begin(&place, e.core->commit->queued);
	mid.journal_bytes = place.journal_bytes;
	core_unlock(e.core);
	assert_true(mid.journal_bytes > 0);
}

int __wrap_skv_store_checkpoint_commit(struct skv_store *s, uint32_t partition, uint64_t fence,
				       uint64_t id, uint32_t slices, uint64_t upto_seq,
				       struct skv_error *err)
{
	int rc = __real_skv_store_checkpoint_commit(s, partition, fence, id, slices, upto_seq, err);

	if (mid.behind)
		load_again(NULL, "");
	return rc;
}

static void all_is_there(void)
{
	struct skv_key k[N];

	env_keys(k, N, 1, 1);
	assert_int_equal(env_match(&e, k, N), N);
	env_check(&e);
}

/* The partition that was loaded meanwhile knows nothing of that checkpoint. A later one is its
 * own. */
static void nothing_is_told_to_the_new_partition(void)
{
	assert_int_equal(owner_fence(e.core), mid.fence);
	assert_int_equal(place.checkpointed, 0);
	assert_true(place.journal_bytes == mid.journal_bytes);
	assert_int_equal(place.snap.active, mid.snapshot);
	all_is_there();
	assert_int_equal(checkpoint_run(e.core, false, &e.err), SKV_OK);
	assert_int_equal(place.checkpointed, place.snap.number);
	env_crash(&e);
	env_open(&e);
	all_is_there();
}

/* n 0: behind the last call. False: there are fewer than n. */
static bool play(uint64_t n, unsigned earlier, bool snapshot)
{
	struct skv_fault rule = { .kind = SKV_FAULT_CALL, .at = n, .times = 1, .fn = load_again };
	struct skv_key k[N];
	int rc;

	env_init(&e);
	e.faulty = true;
	env_open(&e);
	env_make(&e, 16 << 20, 65536, 4096);
	env_keys(k, N, 1, 1);
	assert_int_equal(env_put(&e, k, N), N);
	for (; earlier > 0; earlier--)
		assert_int_equal(checkpoint_run(e.core, false, &e.err), SKV_OK);
	memset(&mid, 0, sizeof mid);
	mid.snapshot = snapshot;
	mid.behind = n == 0;
	if (n)
		skv_fault_store_set(e.store, &rule);
	rc = checkpoint_run(e.core, false, &e.err);
	assert_int_equal(rc == SKV_OK, n == 0 || !mid.reached);
	if (mid.reached)
		nothing_is_told_to_the_new_partition();
	env_destroy(&e);
	return mid.reached;
}

static void a_checkpoint_is_of_the_part_it_began_with(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		/* the new partition's first snapshot has the same number, or another one */
		unsigned earlier = k < 2 ? 0 : 3;
		uint64_t n = 1;

		while (play(n, earlier, k % 2))
			n++;
		assert_true(n > 3); /* begin, slices, commit */
		assert_true(play(0, earlier, k % 2));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_checkpoint_is_of_the_part_it_began_with),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
