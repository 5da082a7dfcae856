/*
 * states.c - what the core knows of blocks, for people and for APIs that show it: one block, or the states of many.
 *
 * Runs under the read lock and changes nothing: no lease, no use. Whatever has a slot is told with its place, also what
 * is still being written or on its way out; nobody may read those.
 */
#include "internal.h"
#include "mark.h"

#include <string.h>

/* ---- one block, for a person --------------------------------------------------------------------------- */

static int view_block(struct part *p, const struct instance *inst, const struct block *b,
		      struct kvb_block_view *out, struct kvb_arena *a)
{
	static const char *const states[] = { "absent", "writing", "committed", "deleting" };
	struct file_table files = { .arena = a, .files = &out->files };
	uint64_t now = kvb_now_ms(p->core->clock);
	uint64_t lease = block_lease(p, inst, b), use = use_ms(mark_use(atomic_load(&b->mark)));
	uint64_t use_now = now + p->use_base;
	int rc = specs_names(inst, UINT32_MAX, a, &out->specs, &out->n_specs);

	out->state = kvb_arena_calloc(a, inst->spec.n_specs, sizeof *out->state);
	out->loc = kvb_arena_calloc(a, inst->spec.n_specs, sizeof *out->loc);
	if (rc != KVB_OK || !out->state || !out->loc)
		return KVB_E_NOMEM;
	out->key = b->key;
	out->has_parent = b->parent != NO_BLOCK;
	out->parent = out->has_parent ? block_get(p, b->parent)->key : (struct kvb_key){ 0, 0 };
	out->children = b->children;
	out->created_ms = era_of(p, block_generation(inst, b));
	out->idle_ms = use && use < use_now ? use_now - use : 0;
	out->lease_ms = lease > now ? (uint32_t)(lease - now) : 0;
	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		out->state[s] = states[b->slot[s].state];
		if (b->slot[s].state != SLOT_ABSENT &&
		    location_fill(&files, p, inst, b, s, &out->loc[s]) != KVB_OK)
			return KVB_E_NOMEM;
	}
	return KVB_OK;
}

int kvb_core_block(struct kvb_core *c, const char *tenant, const char *instance, struct kvb_key key,
		   struct kvb_block_view *out, struct kvb_arena *a, struct kvb_error *err)
{
	struct instance *inst = NULL;
	const struct block *b = NULL;
	int rc = core_gate(c, err);

	if (rc != KVB_OK)
		return rc;
	memset(out, 0, sizeof *out);
	kvb_rwlock_read(&c->lock);
	rc = c->part ? instance_need(c->part, tenant, instance, "instance", &inst, err)
		     : kvb_fail(err, KVB_E_NOT_READY, NULL, "recovering");
	if (rc == KVB_OK)
		b = index_find(c->part, inst, key);
	if (rc == KVB_OK && (!b || !b->live))
		rc = kvb_fail(err, KVB_E_NOT_FOUND, "key", "no such block in instance '%s'", instance);
	if (rc == KVB_OK)
		rc = view_block(c->part, inst, b, out, a);
	kvb_rwlock_read_unlock(&c->lock);
	return rc;
}
