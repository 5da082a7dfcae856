/*
 * policy.c - the eviction policy of a group (skv/policy.h): checked, set, changed.
 *
 * A change takes effect at once: the new policy starts with fresh state, and each block that
 * reaches the top of a queue is requeued by the new rules. The ticker also requeues all blocks of
 * the group in portions, so that none stays where the old policy put it. Under the write lock,
 * except policy_check.
 */
#include <model/policy.h>

#include <assert.h>
#include <string.h>

#include <skv/log.h>

#include <model/block.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/table.h>

#define PORTION_BLOCKS 1024u /* bounds the time under the lock */

int policy_check(const struct skv_group_spec *g, struct skv_error *err)
{
	const struct skv_policy_ops *policy = skv_policy_find(g->policy);
	bool ttl = policy && strcmp(policy->name, "ttl") == 0;

	if (!policy)
		return skv_fail(err, SKV_E_INVALID, "policy", "no policy '%s'; there are %s",
				g->policy, skv_policy_names());
	if (ttl && !g->ttl_ms)
		return skv_fail(err, SKV_E_INVALID, "ttl_ms",
				"policy 'ttl' needs the age at which blocks are evicted");
	if (!ttl && g->ttl_ms)
		return skv_fail(err, SKV_E_INVALID, "ttl_ms",
				"only policy 'ttl' goes by age, not '%s'", policy->name);
	if (g->max_idle_ms && !policy->by_use)
		return skv_fail(err, SKV_E_INVALID, "max_idle_ms",
				"policy '%s' does not keep the order of uses; reuse, deferred, "
				"selective and lru do",
				policy->name);
	return SKV_OK;
}

void policy_unset(struct group *g)
{
	if (g->policy && g->policy->destroy)
		g->policy->destroy(g->policy_state);
	g->policy = NULL;
	g->policy_state = NULL;
}

int policy_set(struct partition *p, struct group *g)
{
	const struct skv_policy_ops *to = skv_policy_find(g->spec.policy);
	bool change = g->policy != NULL;
	void *state = NULL;

	ASSERT_EXCLUSIVE(p);
	if (!to) {
		skv_log(SKV_LOG_ERROR, "core",
			"group '%s': this version has no policy '%s': using the default",
			g->spec.name, g->spec.policy);
		to = skv_policy_find("");
	}
	if (g->policy == to)
		return SKV_OK;
	if (change && to->n_queues > g->n_queues && evict_widen(p, g, to->n_queues) != SKV_OK)
		return SKV_E_NOMEM;
	if (to->create && !(state = to->create(&g->count)))
		return SKV_E_NOMEM;
	policy_unset(g);
	g->policy = to;
	g->policy_state = state;
	g->n_queues = to->n_queues > g->n_queues ? to->n_queues : g->n_queues;
	g->requeue = change ? 1 : 0; /* chunk 0 is unused */
	return SKV_OK;
}

/* Returns how many blocks it visited. */
static uint32_t requeue_chunk(struct partition *p, const struct group *g, struct chunk *c)
{
	ASSERT_EXCLUSIVE(p);
	if (!c->inst || c->inst->retired || c->inst->group != g)
		return 1;
	for (uint32_t i = 0; i < c->fresh; i++) {
		struct block *b = chunk_place(c, i);

		if (!b->used || !block_has_committed(c->inst, b))
			continue;
		evict_adopt(b, false);
		evict_consider(p, b);
	}
	return c->capacity;
}

static bool requeue_portion(struct partition *p, struct group *g)
{
	uint32_t done = 0;

	ASSERT_EXCLUSIVE(p);
	while (g->requeue && done < PORTION_BLOCKS) {
		done += requeue_chunk(p, g, p->chunk[g->requeue]);
		if (++g->requeue >= p->n_chunk)
			g->requeue = 0;
	}
	return g->requeue != 0;
}

bool policy_go_on(struct partition *p, struct portion groups)
{
	bool more = false;

	ASSERT_EXCLUSIVE(p);
	for (size_t i = groups.from; i < groups.to; i++)
		if (p->group[i]->requeue && p->group[i]->requeue < p->n_chunk)
			more |= requeue_portion(p, p->group[i]);
	return more;
}
