/*
 * tenant_quota.c - what a tenant may have, checked before a start takes slots.
 *
 * A tenant at its max_bytes or max_blocks evicts its own blocks, of all its groups in this
 * partition, the first to go first; it is refused when none of them may go. What it has in other
 * partitions counts, too, and leaves so much less to this one; their blocks are not evicted from
 * here, since that would take their locks. Under the write lock.
 */
#include "tenant_quota.h"

#include <assert.h>
#include <stdio.h>

#include <lock/core.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/rules.h>
#include <model/tenant.h>
#include <evict/clear.h>
#include <evict/evict.h>
#include "placement.h"
#include "plan.h"

static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* What it may have in this partition, now. */
static uint64_t most_of(const struct tenant *t, enum tenant_thing what)
{
	const uint64_t most = rule_most(t->rule, what);

	return most == UINT64_MAX ? most : less(most, tenant_elsewhere(t, what));
}

static uint64_t all_of(const struct tenant *t, enum tenant_thing what)
{
	return tenant_has(t, what) + tenant_elsewhere(t, what);
}

int tenant_check_sessions(const struct partition *p, const struct tenant *t, struct skv_error *err)
{
	const uint64_t most = most_of(t, TENANT_SESSIONS);

	ASSERT_SHARED(p);
	if (t->open_sessions < most)
		return SKV_OK;
	COUNT(p->core, tenant_over_sessions, 1);
	return skv_fail(err, SKV_E_TOO_MANY, "max_sessions",
			"tenant '%s' has %llu of %llu write sessions open: finish some first",
			t->name, (unsigned long long)all_of(t, TENANT_SESSIONS),
			(unsigned long long)rule_most(t->rule, TENANT_SESSIONS));
}

/* Its own, soft-pinned ones when there is nothing else. */
static uint64_t evict_own(struct partition *p, const struct plan *plan, bool bytes, uint64_t need)
{
	uint64_t got = 0;

	placement_hide(p, plan, true);
	for (int soft = 0; got < need && soft < 2; soft++)
		got += bytes ? evict_tenant_bytes(p, plan->inst, need - got, soft)
			     : evict_tenant_blocks(p, plan->inst, need - got, soft);
	placement_hide(p, plan, false);
	return got;
}

static int refuse(const struct tenant *t, const char *field, enum tenant_thing what,
		  struct skv_error *err)
{
	const uint64_t elsewhere = tenant_elsewhere(t, what);
	char others[96] = "";

	if (elsewhere)
		snprintf(others, sizeof others,
			 ", or in another partition (%llu), whose blocks only its own starts evict",
			 (unsigned long long)elsewhere);
	return skv_fail(err, SKV_E_QUOTA, field,
			"tenant '%s' has %llu of the %llu of its %s, and not enough of its own may "
			"be evicted: it is pinned, leased or being written%s",
			t->name, (unsigned long long)all_of(t, what),
			(unsigned long long)rule_most(t->rule, what), field, others);
}

/* Evicted blocks do not count any more. */
static int check_blocks(struct partition *p, const struct plan *plan, struct skv_error *err)
{
	const struct tenant *t = plan->inst->tenant;
	const uint64_t most = most_of(t, TENANT_BLOCKS), writes = t->open_blocks + plan->n_write;
	uint64_t over = less(t->blocks, less(most, writes));

	if (most == UINT64_MAX || t->blocks + writes <= most)
		return SKV_OK;
	if (writes <= most && evict_own(p, plan, false, over) >= over) {
		assert(t->blocks + writes <= most);
		return SKV_OK;
	}
	COUNT(p->core, tenant_over_blocks, 1);
	return refuse(t, "max_blocks", TENANT_BLOCKS, err);
}

/* Evicted blocks count until their slots are free. */
static int check_bytes(struct partition *p, const struct plan *plan, struct skv_error *err)
{
	const struct tenant *t = plan->inst->tenant;
	const uint64_t most = most_of(t, TENANT_BYTES);
	uint64_t staying;

	if (most == UINT64_MAX || t->used_bytes + plan->bytes <= most)
		return SKV_OK;
	retired_sweep(p, plan->inst->group, ANY_VOLUME, plan->n_write);
	if (t->used_bytes + plan->bytes <= most)
		return SKV_OK;
	assert(t->used_bytes >= t->removing_bytes);
	staying = t->used_bytes - t->removing_bytes;
	if (staying + plan->bytes > most &&
	    (plan->bytes > most ||
	     evict_own(p, plan, true, staying + plan->bytes - most) == 0) &&
	    t->removing_bytes == 0) {
		COUNT(p->core, tenant_over_bytes, 1);
		return refuse(t, "max_bytes", TENANT_BYTES, err);
	}
	plan->inst->tenant->turn = p->wait_turn;
	return TRY_WAIT_TENANT;
}

int tenant_quota(struct partition *p, const struct plan *plan, struct skv_error *err)
{
	int rc = check_blocks(p, plan, err);

	ASSERT_EXCLUSIVE(p);
	return rc == SKV_OK ? check_bytes(p, plan, err) : rc;
}

uint64_t tenant_bound(const struct instance *inst)
{
	const struct tenant *t = inst->tenant;
	const uint64_t bytes = most_of(t, TENANT_BYTES);

	return least(less(most_of(t, TENANT_BLOCKS), t->open_blocks), bytes / inst->block_bytes);
}

uint64_t tenant_now(const struct instance *inst)
{
	const struct tenant *t = inst->tenant;
	const uint64_t bytes = less(most_of(t, TENANT_BYTES), t->used_bytes);

	return least(less(most_of(t, TENANT_BLOCKS), t->blocks + t->open_blocks),
		     bytes / inst->block_bytes);
}
