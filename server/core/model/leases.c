/*
 * leases.c - leased bytes per instance, for the limit on them.
 *
 * Each leased block is counted in the time window in which its lease ends, according to its mark;
 * extending the mark moves the bytes to another window. When a window has passed, its bytes leave
 * the sum. So the sum is the leased bytes, plus those whose lease ended within the last window.
 * Windows form a ring twice as long as the longest lease.
 *
 * Under the read lock, by many threads: every addition to the sum is also added to a window, and
 * later subtracted from both. A thread suspended in between may find its window gone: then the sum
 * is off by that much until the lease ends. leases_copy under the write lock.
 */
#include <model/leases.h>

#include <model/objects.h>
#include <model/partition.h>

uint32_t lease_shift(uint32_t longest_ms)
{
	uint32_t shift = 0;

	while (longest_ms >> shift > LEASE_WINDOWS / 2)
		shift++;
	return shift;
}

static uint64_t window_of(const struct partition *p, uint64_t end) { return end >> p->lease_shift; }

static _Atomic int64_t *window(struct instance *inst, uint64_t no)
{
	return &inst->lease_window[no % LEASE_WINDOWS];
}

static void add(_Atomic int64_t *to, int64_t bytes)
{
	atomic_fetch_add_explicit(to, bytes, memory_order_relaxed);
}

bool lease_counts(const struct partition *p, uint64_t end, uint64_t now)
{
	ASSERT_SHARED(p);
	return window_of(p, end) >= window_of(p, use_clock(p, now));
}

/* Windows before `no` leave the sum. Nothing was added since the last call, so later windows are
 * unchanged. */
static void pass(struct instance *inst, uint64_t no)
{
	uint64_t seen = atomic_load_explicit(&inst->lease_window_no, memory_order_relaxed), end;

	if (seen >= no || !atomic_compare_exchange_strong(&inst->lease_window_no, &seen, no))
		return;
	end = no - seen < LEASE_WINDOWS / 2 + 2 ? no : seen + LEASE_WINDOWS / 2 + 2;
	for (; seen < end; seen++)
		add(&inst->leased_bytes,
		    -atomic_exchange_explicit(window(inst, seen), 0, memory_order_relaxed));
}

struct lease_tally lease_tally_begin(const struct partition *p, struct instance *inst, uint64_t now)
{
	struct lease_tally t = { .now = window_of(p, use_clock(p, now)) };

	ASSERT_SHARED(p);
	pass(inst, t.now);
	return t;
}

/* Moves blocks from one window to another; the sum stays. */
static void move(struct instance *inst, struct lease_tally *t)
{
	if (!t->moved_from)
		return;
	add(window(inst, t->from), -(int64_t)(t->moved_from * inst->block_bytes));
	t->moved += t->moved_from;
	t->moved_from = 0;
}

void lease_moves(struct instance *inst, struct lease_tally *t, uint64_t from, uint64_t to)
{
	if (to != t->to) {
		lease_tally_end(inst, t);
		*t = (struct lease_tally){ .now = t->now, .to = to };
	}
	if (from < t->now) {
		t->added++;
		return;
	}
	if (from != t->from)
		move(inst, t);
	t->from = from;
	t->moved_from++;
}

void lease_tally_end(struct instance *inst, const struct lease_tally *tally)
{
	struct lease_tally t = *tally;
	int64_t added = (int64_t)(t.added * inst->block_bytes);

	move(inst, &t);
	if (added)
		add(&inst->leased_bytes, added);
	if (t.added + t.moved)
		add(window(inst, t.to), added + (int64_t)(t.moved * inst->block_bytes));
}

uint64_t leased_bytes(const struct partition *p, struct instance *inst, uint64_t now)
{
	int64_t sum;

	ASSERT_SHARED(p);
	pass(inst, window_of(p, use_clock(p, now)));
	sum = atomic_load_explicit(&inst->leased_bytes, memory_order_relaxed);
	return sum > 0 ? (uint64_t)sum : 0;
}

void leases_copy(struct instance *to, const struct instance *from)
{
	for (size_t i = 0; i < LEASE_WINDOWS; i++)
		atomic_init(&to->lease_window[i], atomic_load(&from->lease_window[i]));
	atomic_init(&to->leased_bytes, atomic_load(&from->leased_bytes));
	atomic_init(&to->lease_window_no, atomic_load(&from->lease_window_no));
}
