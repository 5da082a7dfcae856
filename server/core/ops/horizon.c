/*
 * horizon.c - lease horizons: the latest possible end of leases, durable so that recovery after a
 * kill -9 knows it.
 *
 * Leases are not journaled one by one. Each instance has a durable *horizon*: no lease on its
 * blocks ends later, and after a recovery all its blocks count as leased until then. It lies a
 * second or two beyond the longest lease requested lately, so blocks become evictable soon after
 * their readers are done. The ticker extends the horizons of all instances in use, in one record
 * per second; the first lookup after a quiet period waits for its own. A clean stop stores the
 * leases themselves (record_leases) and grants none afterwards.
 *
 * Horizons never shrink while the manager owns the partition. Under the write lock; lookups read
 * `horizon` under the read lock.
 */
#include <ops/horizon.h>

#include <assert.h>
#include <skv/mem.h>

#include <model/objects.h>
#include <model/partition.h>
#include <model/tier.h>
#include <journal/change.h>
#include <journal/record.h>
#include <journal/replay.h>

#define LOOK_MS 100u         /* interval of the ticker's checks */
/* A horizon is extended when less than this remains beyond the longest lease, */
#define LEAST_AHEAD_MS 1000u
#define AHEAD_MS 2000u       /* to this much */
#define SPELL_MS 30000u /* an instance is in use if it leased in this period or the previous one */

struct extension {
	struct change change;
	struct horizon *v;
	size_t n;
};

static void horizon_apply(struct partition *p, struct change *ch)
{
	const struct extension *e = (struct extension *)ch;

	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; i < e->n; i++) {
		struct instance *inst = e->v[i].inst;

		if (inst->horizon < e->v[i].until)
			inst->horizon = e->v[i].until;
		if (inst->horizon_change == ch)
			inst->horizon_change = NULL;
	}
}

static void horizon_undo(struct partition *p, struct change *ch)
{
	const struct extension *e = (struct extension *)ch;

	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; i < e->n; i++)
		if (e->v[i].inst->horizon_change == ch)
			e->v[i].inst->horizon_change = NULL;
}

static void horizon_destroy(struct change *ch) { skv_free(((struct extension *)ch)->v); }

static int replay_horizons(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	while (skv_rd_left(in)) {
		struct instance *inst = instance_by_id(r->p, skv_get_u32(in));
		uint64_t until = replay_get_end(r, in);

		if (!in->failed && !inst && r->follows)
			return SKV_E_NOT_FOUND;
		if (!in->failed && inst && inst->horizon < until)
			inst->horizon = until;
	}
	return in->failed ? corrupt(err, "horizons: too short") : SKV_OK;
}

const struct change_ops horizon_ops = {
	.record = { "horizon", replay_horizons },
	.size = sizeof(struct extension),
	.apply = horizon_apply,
	.undo = horizon_undo,
	.destroy = horizon_destroy,
};

static struct change *horizon_queue(struct partition *p, struct horizon *v, size_t n, uint64_t now)
{
	struct change *ch = change_make(&horizon_ops);

	ASSERT_EXCLUSIVE(p);
	if (ch)
		record_horizons(&ch->rec, v, n, now);
	if (!ch || ch->rec.failed) {
		change_destroy(ch);
		skv_free(v);
		return NULL;
	}
	ch->urgent = true;
	((struct extension *)ch)->v = v;
	((struct extension *)ch)->n = n;
	for (size_t i = 0; i < n; i++) {
		v[i].inst->horizon_coming = v[i].until;
		v[i].inst->horizon_change = ch;
	}
	change_queue(p, ch);
	return ch;
}

static bool is_coming(const struct instance *inst, uint64_t until)
{
	return inst->horizon_change && inst->horizon_coming >= until;
}

int horizon_extend(struct partition *p, struct instance *inst, uint64_t now, uint32_t ms,
		   bool again, struct change **out)
{
	struct instance *both[2] = { inst, tier_copies(p, inst) }; /* leased together */
	const size_t n = both[1] ? 2 : 1;
	struct horizon *v;

	ASSERT_EXCLUSIVE(p);
	if (is_coming(inst, now + ms + LEAST_AHEAD_MS) && !again &&
	    (n == 1 || (both[1]->horizon_change == inst->horizon_change &&
			is_coming(both[1], now + ms + LEAST_AHEAD_MS)))) {
		*out = inst->horizon_change;
		return SKV_OK;
	}
	v = skv_calloc(n, sizeof *v);
	if (!v)
		return SKV_E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		v[i] = (struct horizon){ both[i], now + ms +
					 (again ? HORIZON_AHEAD_MS : AHEAD_MS) };
		if (both[i]->horizon_change && v[i].until < both[i]->horizon_coming)
			v[i].until = both[i]->horizon_coming;
	}
	*out = horizon_queue(p, v, n, now);
	return *out ? SKV_OK : SKV_E_NOMEM;
}

/* The longest lease requested lately, ms; 0 = not in use. */
static uint32_t lately(struct instance *inst, bool new_spell)
{
	uint32_t *longest = inst->lease_lately;
	uint32_t asked = atomic_load_explicit(&inst->lease_asked, memory_order_relaxed);

	if (new_spell) {
		longest[1] = longest[0];
		longest[0] = 0;
	}
	if (asked) {
		atomic_store_explicit(&inst->lease_asked, 0, memory_order_relaxed);
		longest[0] = asked > longest[0] ? asked : longest[0];
	}
	return longest[0] > longest[1] ? longest[0] : longest[1];
}

void horizons_keep(struct partition *p, uint64_t now)
{
	bool new_spell = now >= p->horizon_spell;
	struct horizon *v = NULL;
	size_t n = 0;

	ASSERT_EXCLUSIVE(p);
	if (now < p->horizon_at || p->store_full_until > now)
		return;
	p->horizon_at = now + LOOK_MS;
	if (new_spell)
		p->horizon_spell = now + SPELL_MS;
	for (size_t i = 0; i < p->n_inst; i++) {
		struct instance *inst = p->inst[i];
		uint32_t ms = inst->deleting ? 0 : lately(inst, new_spell);

		if (!ms || inst->horizon_change || inst->horizon >= now + ms + LEAST_AHEAD_MS)
			continue;
		if (!v)
			v = skv_malloc(p->n_inst * sizeof *v);
		if (!v)
			return;
		v[n++] = (struct horizon){ inst, now + ms + AHEAD_MS };
	}
	if (v)
		horizon_queue(p, v, n, now);
}
