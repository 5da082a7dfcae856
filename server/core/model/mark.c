/* mark.c - the time of a use, as marks store it. */
#include <model/mark.h>

#include <model/block.h>
#include <model/partition.h>

/* Never decreases, never ahead of the clock: beyond the last order of a millisecond uses are
 * equal. */
uint64_t use_now(struct partition *p, uint64_t now)
{
	const uint64_t least = use_make(use_clock(p, now), 0), most = least | USE_ORDER_MAX;
	uint64_t last = atomic_load_explicit(&p->last_use, memory_order_relaxed), use;

	do {
		use = last < least ? least : last + 1;
		if (use > most)
			return last;
	} while (!atomic_compare_exchange_weak_explicit(
		&p->last_use, &last, use, memory_order_relaxed, memory_order_relaxed));
	return use;
}

void use_seen(struct partition *p, uint64_t use)
{
	if (use > atomic_load(&p->last_use))
		atomic_store(&p->last_use, use);
}

void use_clock_set(struct partition *p, uint64_t now, uint64_t ms)
{
	p->use_base = (int64_t)(ms - now);
}

void use_clock_load(struct partition *p, uint64_t now, uint64_t older_by)
{
	const uint64_t newest = use_younger(atomic_load(&p->last_use), older_by);

	atomic_store(&p->last_use, newest);
	p->use_base -= (int64_t)older_by;
	if (use_clock(p, now) < use_ms(newest))
		use_clock_set(p, now, use_ms(newest));
}

void block_use(struct block *b, uint64_t use)
{
	uint64_t mark = atomic_load_explicit(&b->mark, memory_order_relaxed);

	atomic_store_explicit(&b->mark, mark_make(use, mark_freq(mark), mark_lease_end(mark)),
			      memory_order_relaxed);
}
