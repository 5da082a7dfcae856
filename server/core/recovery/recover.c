/*
 * recover.c - a partition's life cycle: create, load from the store, check, destroy.
 *
 * Loading works on a private partition, without locks. What a recovery must assume:
 *	- every open session gets its full duration and grace again;
 *	- every committed block may be leased until the durable horizon of its instance; after a
 *	  clean stop until its stored lease ends;
 *	- NORMAL durability after a power loss: the end of the journal may be lost, so writers
 *	  may know slots that look free; slots free now are not handed out before the longest
 *	  deadline and grace have passed;
 *	- the same with relaxed starts, which are bounded and only on external storages: free
 *	  slots of those wait that long. Readers may know slots whose commit was lost: those wait
 *	  at least until the lease horizon;
 *	- after a power loss a block without checksum may have lost its bytes in a page cache:
 *	  dropped;
 *	- a store that was rolled back (--adopt) does not know later writes, nor their slots: both
 *	  of the above.
 */
#include <recovery/recover.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/hash.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <model/block.h>
#include <model/device.h>
#include <model/birth.h>
#include <model/files.h>
#include <model/index.h>
#include <model/layouts.h>
#include <model/leases.h>
#include <model/damage.h>
#include <model/move.h>
#include <model/mark.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/tenant.h>
#include <model/queue.h>
#include <model/session.h>
#include <model/volume.h>
#include <model/wish.h>
#include <model/table.h>
#include <journal/end.h>
#include <journal/record.h>
#include <journal/registry_write.h>
#include <journal/snapshot.h>
#include <storage/claim.h>
#include <evict/clear.h>
#include <evict/remove.h>
#include <recovery/load.h>

struct partition *loading_make(struct skv_core *c)
{
	struct partition *p = partition_make(c);

	if (p)
		p->loading = true;
	return p;
}

void partition_destroy(struct partition *p)
{
	if (!p)
		return;
	ASSERT_EXCLUSIVE(p);
	sessions_free(p);
	moves_free(p);
	damages_free(p);
	wishes_free(p->wishes);
	table_destroy(p);
	skv_free(p->birth);
	instances_free(p);
	retired_free(p->retired);
	tenants_free(p);
	for (uint32_t i = 0; i < p->n_volume; i++) {
		evict_free_sets(p, i, NULL);
		skv_pool_destroy(p->volume[i].pool);
		files_free(&p->volume[i]);
		skv_free(p->volume[i].class);
		layouts_free(&p->volume[i]);
	}
	skv_free(p->volume);
	skv_free(p->volume_order);
	for (size_t i = 0; i < p->n_group; i++)
		group_free(p->group[i]);
	skv_free(p->group);
	snapshot_free(p);
	skv_free(p->lost.v);
	skv_free(p->lease);
	skv_free(p);
}

static int on_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	struct loading *l = ctx;
	int rc;

	(void)number;
	l->r.p->checkpoint_bytes += n;
	rc = replay_records(&l->r, bytes, n, l->err);
	l->r.p->checkpoint_blocks = l->r.p->blocks;
	return rc;
}

/* Checks that the batch follows the end of the previous one. */
static int check_link(const struct journal_end *end, const void *bytes, size_t n,
		      struct skv_error *err)
{
	struct journal_end link;

	if (!record_read_link(bytes, n, &link))
		return corrupt(err, "a batch without a link");
	if (link.chain != end->chain || link.number - end->number > 1)
		return skv_fail(err, SKV_E_CORRUPT, "store",
				"the journal is not one history: batch %llu follows batch %llu of "
				"another one (a part of the store was put back?)",
				(unsigned long long)link.number, (unsigned long long)end->number);
	return SKV_OK;
}

/* Replays a record. A load that was interrupted continues after its last record. */
static int on_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct loading *l = ctx;
	const struct journal_end *end = &l->r.p->end;
	int rc;

	if (l->half_seq != seq)
		l->half = 0;
	l->half_seq = seq;
	rc = l->half ? SKV_OK : check_link(end, bytes, n, l->err);
	if (rc == SKV_OK)
		rc = replay_records_from(&l->r, bytes, n, &l->half, l->err);
	if (rc != SKV_OK)
		return rc;
	journal_read(l->r.p, seq, bytes, n);
	l->half_seq = 0;
	return rc;
}

struct finish {
	struct partition *p;
	bool drop_unsummed; /* blocks of storages whose bytes may be in a page cache */
	bool drop_all;      /* or of all */
	int rc;
};

static bool lost_bytes(const struct finish *f, const struct instance *inst, const struct block *b)
{
	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].state == SLOT_COMMITTED && !b->slot[s].has_checksum &&
		    (f->drop_all || strcmp(f->p->volume[b->slot[s].volume].dev->type, "file") == 0))
			return true;
	return false;
}

static void make_younger(void *ctx, struct partition *p, struct block *b)
{
	const uint64_t *ms = ctx;
	uint64_t mark = atomic_load(&b->mark);

	(void)p;
	atomic_store(&b->mark, mark_make(use_younger(mark_use(mark), *ms), mark_freq(mark), 0));
}

static void adopt_block(void *ctx, struct partition *p, struct block *b)
{
	(void)ctx;
	if (block_has_committed(block_instance(b), b))
		evict_adopt(b, true);
	else
		block_maybe_free(p, b); /* of a checkpoint's: its children never became durable */
}

struct chains {
	struct block *first[EVICT_CHAINS];
	uint32_t n;
};

static void queue_chains(struct chains *c, struct partition *p)
{
	evict_load_chains(p, c->first, c->n);
	c->n = 0;
}

static void queue_block(void *ctx, struct partition *p, struct block *b)
{
	struct chains *c = ctx;

	if (b->live_children == 1)
		return;
	c->first[c->n++] = b;
	if (c->n == EVICT_CHAINS)
		queue_chains(c, p);
}

static void drop_block(void *ctx, struct partition *p, struct block *b)
{
	struct finish *f = ctx;

	if (lost_bytes(f, block_instance(b), b) && remove_mark(p, &p->lost, b) != SKV_OK)
		f->rc = SKV_E_NOMEM;
}

static bool is_normal(const struct partition *p)
{
	return skv_store_durability(p->core->store) == SKV_DURABILITY_NORMAL;
}

/* Not only for relaxed changes. */
static bool is_lossy_everywhere(const struct partition *p)
{
	return p->rolled_back || (p->unclean && (p->behind_all || is_normal(p)));
}

static bool is_same_boot(const struct replay *r)
{
	return strcmp(r->boot_id, r->p->core->boot_id) == 0;
}

static void restore_time(struct partition *p, const struct replay *r)
{
	bool same_boot = is_same_boot(r);

	if (r->boot_id[0])
		p->old_horizon = same_boot ? r->horizon_until : r->now + r->horizon_span;
	p->loaded_at = use_clock(p, r->now);
	p->unclean = r->boot_id[0] && !same_boot && !r->clean;
	p->lossy = p->rolled_back || (p->unclean && (p->behind_ms || is_normal(p)));
}

/* Restores a lease that a clean stop stored. */
static void restore_lease(struct partition *p, const struct lease *l, uint64_t now)
{
	struct instance *inst = instance_by_id(p, l->inst);
	struct block *b = inst ? index_find(p, inst, l->key) : NULL;
	uint64_t end = use_clock(p, l->until), mark, use;
	struct lease_tally t;

	if (!b)
		return;
	mark = atomic_load(&b->mark);
	use = mark_use(mark);
	if (use < mark_least_use(end)) /* an older clock's */
		use = mark_least_use(end);
	atomic_store(&b->mark, mark_make(use, mark_freq(mark), end));
	t = lease_tally_begin(p, inst, now);
	lease_note(p, inst, &t, 0, end);
	lease_tally_end(inst, &t);
	if (inst->horizon < l->until) /* the next checkpoint stores nothing else of it */
		inst->horizon = l->until;
	if (atomic_load(&inst->leased_until) < l->until)
		atomic_store(&inst->leased_until, l->until);
	if (atomic_load(&inst->found_until) < l->until)
		atomic_store(&inst->found_until, l->until);
}

static void restore_leases(struct partition *p, uint64_t now)
{
	p->loaded_generation = p->next_generation;
	for (size_t i = 0; i < p->n_inst; i++) {
		struct instance *inst = p->inst[i];

		inst->horizon = inst->horizon > p->old_horizon ? inst->horizon : p->old_horizon;
		inst->loaded_lease = inst->horizon;
		atomic_store(&inst->leased_until, inst->loaded_lease);
		/* which of the leases were slots_only is unknown */
		atomic_store(&inst->found_until, inst->loaded_lease);
	}
	for (size_t i = 0; i < p->n_lease; i++)
		if (p->lease[i].until > now)
			restore_lease(p, &p->lease[i], now);
	skv_free(p->lease);
	p->lease = NULL;
	p->n_lease = p->cap_lease = 0;
}

/* Slots free now are not handed out before `until`; on external storages before `counted` (0 = at
 * once). A claimed file may have been created and used by lost sessions, so growth leaves it alone
 * that long. */
static void freeze(struct partition *p, uint64_t until, uint64_t counted)
{
	p->freeze_until = until > counted ? until : counted;
	for (uint32_t i = 0; i < p->n_volume; i++) {
		struct volume *s = &p->volume[i];
		uint64_t end = s->dev->ops->counted ? p->freeze_until : until;

		if (!end)
			continue;
		skv_pool_freeze_free(s->pool, end);
		if (s->claim.length)
			s->grow_again_at = end;
	}
}

/* How long after a deadline writes may still arrive. */
static uint64_t longest_grace(const struct partition *p)
{
	const struct skv_core_options *o = &p->core->o;
	uint64_t most = o->grace_max_ms > o->grace_ms ? o->grace_max_ms : o->grace_ms;

	for (uint32_t i = 0; i < p->n_volume; i++)
		if (p->volume[i].pool && p->volume[i].dev->ops->least_grace_ms > most)
			most = p->volume[i].dev->ops->least_grace_ms;
	return most;
}

static uint64_t later_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void freeze_for_old_writers(struct partition *p, const struct replay *r)
{
	uint64_t all = r->freeze_ms, counted = 0;

	if ((p->unclean && is_normal(p)) || r->orphans || p->rolled_back)
		all = p->core->o.session_max_ms + longest_grace(p);
	if (p->unclean && p->behind_all)
		all = later_of(all, p->behind_ms);
	if (p->lossy)
		counted = r->now + p->behind_ms;
	for (size_t i = 0; p->lossy && i < p->n_inst; i++)
		counted = later_of(counted, p->inst[i]->loaded_lease);
	freeze(p, all ? r->now + all : 0, counted);
}

static int finish_load(struct partition *p, const struct replay *r)
{
	struct finish f = { .p = p };
	struct chains chains = { .n = 0 };
	uint64_t newest = use_ms(atomic_load(&p->last_use));
	/* To be subtracted from all uses, so that they never run out of bits. */
	uint64_t older_by = newest > USE_MS_MAX / 2 ? newest - USE_MS_MAX / 4 : 0;

	use_clock_load(p, r->now, older_by);
	if (older_by)
		block_each(p, NULL, make_younger, &older_by);
	restore_time(p, r);
	if (is_lossy_everywhere(p) && p->old_horizon < r->now + p->core->o.lease_max_ms)
		/* the newest horizons may be lost, or another copy's */
		p->old_horizon = r->now + p->core->o.lease_max_ms;
	restore_leases(p, r->now);
	birth_begin(p, is_same_boot(r) ? r->birth_base : 0, r->birth_lead);
	f.drop_unsummed = p->unclean;
	f.drop_all = p->rolled_back;
	p->loading = p->learning = false;
	block_each(p, NULL, adopt_block, NULL);
	block_each(p, NULL, queue_block, &chains);
	queue_chains(&chains, p);
	if (f.drop_unsummed || f.drop_all)
		block_each(p, NULL, drop_block, &f);
	if (f.rc != SKV_OK)
		return f.rc;
	freeze_for_old_writers(p, r);
	if (p->unclean)
		skv_log(SKV_LOG_WARN, "core",
			"the machine went down without a clean stop, blocks without checksum are "
			"dropped: %zu%s",
			p->lost.n, p->freeze_until ? ", free slots wait for old writers" : "");
	COUNT(p->core, adoptions, p->rolled_back);
	if (p->rolled_back)
		skv_log(SKV_LOG_WARN, "core",
			"adopting the slab directories, blocks without checksum are dropped: %zu, "
			"free slots wait for %llu ms",
			p->lost.n, (unsigned long long)(p->freeze_until - r->now));
	return SKV_OK;
}

/* ---- losses of a power failure --------------------------------------------------------------- */

static int load_behind(struct partition *p, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	int rc = skv_store_get(p->core->store, "behind", &b, &p->behind_version, err);

	if (rc == SKV_OK) {
		struct skv_rd in = skv_rd_make(b.data, b.len);
		unsigned format = skv_get_u8(&in);

		p->behind_ms = skv_get_u32(&in);
		p->behind_all = skv_get_u8(&in) != 0;
		if (format != 1 || in.failed)
			rc = skv_fail(
				err, SKV_E_CORRUPT, NULL,
				"registry document 'behind' is malformed, or of a newer "
				"slabkvd: use that one");
	} else if (rc == SKV_E_NOT_FOUND) { /* no syncs are deferred, or it was never recorded */
		skv_error_clear(err);
		p->behind_version = SKV_VERSION_NONE;
		rc = SKV_OK;
	}
	skv_buf_destroy(&b);
	return rc;
}

int partition_put_behind(struct partition *p, struct skv_error *err)
{
	const struct skv_core_options *o = &p->core->o;
	bool all = is_normal(p);
	uint32_t ms = all ? o->session_max_ms + (uint32_t)longest_grace(p) : o->relaxed_ms;
	struct skv_buf b = { 0 };
	int rc = SKV_OK;

	ASSERT_EXCLUSIVE(p);
	if (p->behind_ms != ms || p->behind_all != all) {
		skv_put_u8(&b, 1);
		skv_put_u32(&b, ms);
		skv_put_u8(&b, all);
		rc = registry_put(p->core, p->fence, "behind", p->behind_version, &b,
				  &p->behind_version, err);
	}
	p->behind_ms = ms;
	p->behind_all = all;
	skv_buf_destroy(&b);
	return rc;
}

struct skv_load_sink loading_sink(struct loading *l, struct skv_error *err)
{
	l->err = err;
	return (struct skv_load_sink){ on_slice, on_record, l };
}

/* The first owner's first record comes before any storage or instance, so this is no new store. */
static int check_not_emptied(const struct partition *p, struct skv_error *err)
{
	const size_t n = p->n_volume - p->n_gap + p->n_inst;

	if (p->seq || p->checkpoint_bytes || n == 0 || p->rolled_back)
		return SKV_OK;
	return skv_fail(err, SKV_E_CORRUPT, "store",
			"the journal of partition %u is empty beside %zu storages and instances: "
			"bring it back; or, if no manager goes on with it, start this one once "
			"with --adopt",
			(unsigned)p->core->number, n);
}

int partition_finish(struct loading *l, uint64_t fence, struct partition **out,
		     struct skv_error *err)
{
	struct partition *p = l->r.p;
	int rc;

	ASSERT_EXCLUSIVE(p);
	assert(p->loading && fence);
	p->fence = fence;
	p->rolled_back = claims_roll_back(p->core);
	l->r.now = skv_now_ms(p->core->clock);
	p->loaded = p->end;
	rc = check_not_emptied(p, err);
	if (rc == SKV_OK)
		rc = load_behind(p, err);
	if (rc == SKV_OK)
		rc = finish_load(p, &l->r);
	if (rc == SKV_OK) {
		*out = p;
		l->r.p = NULL;
	}
	return rc;
}

int partition_load(struct skv_core *c, uint64_t fence, struct partition **out,
		   struct skv_error *err)
{
	struct partition *p = loading_make(c);
	struct loading l = { .r = { .p = p, .now = skv_now_ms(c->clock) } };
	struct skv_load_sink sink = loading_sink(&l, err);
	uint64_t base = 0;
	int rc;

	if (!p)
		return SKV_E_NOMEM;
	p->rolled_back = claims_roll_back(c);
	rc = registry_load(p, err);
	if (rc == SKV_OK)
		rc = skv_store_load(c->store, 0, &base, &sink, err);
	rc = replay_close(&l.r, rc, err);
	journal_seq_least(p, base);
	if (rc == SKV_OK)
		rc = partition_finish(&l, fence, out, err);
	partition_destroy(l.r.p);
	return rc;
}
