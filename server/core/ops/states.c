/*
 * states.c - views of blocks, for display and for APIs: one block, or the states of many.
 *
 * Runs under the read lock; takes no lease and does not count as use. Everything with a slot is
 * listed with its location, even if it is still being written or is being removed; those must not
 * be read.
 */
#include <string.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <model/block.h>
#include <model/birth.h>
#include <model/find.h>
#include <model/index.h>
#include <model/mark.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/rules.h>
#include <model/volume.h>
#include <model/table.h>

#include <assert.h>
/* ---- one block ------------------------------------------------------------------------------- */

static int view_block(struct partition *p, const struct instance *inst, const struct block *b,
		      struct skv_block_view *out, struct skv_arena *a)
{
	static const char *const states[] = { "absent", "writing", "committed", "deleting" };
	struct file_table files = { .arena = a, .files = &out->files };
	uint64_t now = skv_now_ms(p->core->clock);
	uint64_t lease = block_lease(p, inst, b), use = use_ms(mark_use(atomic_load(&b->mark)));
	uint64_t use_now = use_clock(p, now);
	int rc = specs_names(inst, UINT32_MAX, a, &out->specs, &out->n_specs);

	ASSERT_SHARED(p);
	out->state = skv_arena_calloc(a, inst->spec.n_specs, sizeof *out->state);
	out->loc = skv_arena_calloc(a, inst->spec.n_specs, sizeof *out->loc);
	if (rc != SKV_OK || !out->state || !out->loc)
		return SKV_E_NOMEM;
	out->key = b->key;
	out->has_parent = b->parent != NO_BLOCK;
	out->parent = out->has_parent ? block_get(p, b->parent)->key : (struct skv_key){ 0, 0 };
	out->children = b->children;
	out->created_ms = birth_of(p, block_generation(inst, b));
	out->idle_ms = use && use < use_now ? use_now - use : 0;
	out->lease_ms = lease > now ? (uint32_t)(lease - now) : 0;
	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		out->state[s] = states[b->slot[s].state];
		if (b->slot[s].state != SLOT_ABSENT &&
		    location_fill(&files, p, inst, b, s, &out->loc[s]) != SKV_OK)
			return SKV_E_NOMEM;
	}
	return SKV_OK;
}

int skv_core_block(struct skv_core *c, const char *tenant, const char *instance, struct skv_key key,
		   struct skv_block_view *out, struct skv_arena *a, struct skv_error *err)
{
	struct instance *inst = NULL;
	const struct block *b = NULL;
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	memset(out, 0, sizeof *out);
	skv_rwlock_read(&c->lock);
	rc = c->partition ? instance_need(c->partition, tenant, instance, "instance", &inst, err)
		     : gate_recovering(err);
	if (rc == SKV_OK)
		b = index_find(c->partition, inst, key);
	if (rc == SKV_OK && (!b || !b->live))
		rc = skv_fail(err, SKV_E_NOT_FOUND, "key", "no such block in instance '%s'",
			      instance);
	if (rc == SKV_OK)
		rc = view_block(c->partition, inst, b, out, a);
	skv_rwlock_read_unlock(&c->lock);
	return rc;
}

/* ---- the states of many ---------------------------------------------------------------------- */

_Static_assert(SKV_SLOT_ABSENT == (int)SLOT_ABSENT && SKV_SLOT_WRITING == (int)SLOT_WRITING &&
		       SKV_SLOT_COMMITTED == (int)SLOT_COMMITTED &&
		       SKV_SLOT_REMOVING == (int)SLOT_REMOVING,
	       "states are told as they are");

static int fill_parents(struct partition *p, const struct instance *inst,
			const struct skv_states_req *req, struct skv_states_res *res,
			struct skv_arena *a)
{
	res->parent = skv_arena_calloc(a, req->n_keys + 1u, sizeof *res->parent);
	for (uint32_t i = 0; res->parent && i < req->n_keys; i++) {
		const struct block *b = index_find(p, inst, req->keys[i]);
		struct skv_key *key;

		if (!b || b->parent == NO_BLOCK)
			continue;
		key = skv_arena_alloc(a, sizeof *key);
		if (!key)
			return SKV_E_NOMEM;
		*key = block_get(p, b->parent)->key;
		res->parent[i] = key;
	}
	return res->parent ? SKV_OK : SKV_E_NOMEM;
}

static int fill_states(struct partition *p, const struct instance *inst,
		       const struct skv_states_req *req, struct skv_states_res *res,
		       struct skv_arena *a)
{
	struct file_table files = { .arena = a, .files = &res->files };
	size_t n = (size_t)req->n_keys * inst->spec.n_specs;

	ASSERT_SHARED(p);
	*res = (struct skv_states_res){ .n_keys = req->n_keys };
	res->state = skv_arena_calloc(a, n, sizeof *res->state);
	res->loc = skv_arena_calloc(a, n, sizeof *res->loc);
	res->created_ms = skv_arena_calloc(a, req->n_keys, sizeof *res->created_ms);
	if (!res->state || !res->loc || !res->created_ms ||
	    specs_names(inst, UINT32_MAX, a, &res->specs, &res->n_specs) != SKV_OK)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < req->n_keys; i++) {
		const struct block *b = index_find(p, inst, req->keys[i]);
		size_t row = (size_t)i * res->n_specs;

		for (uint32_t s = 0; b && s < res->n_specs; s++) {
			res->state[row + s] = b->slot[s].state;
			if (b->slot[s].state != SLOT_ABSENT &&
			    location_fill(&files, p, inst, b, s, &res->loc[row + s]) != SKV_OK)
				return SKV_E_NOMEM;
		}
		res->created_ms[i] = b ? birth_of(p, block_generation(inst, b)) : 0;
	}
	return req->want_parents ? fill_parents(p, inst, req, res, a) : SKV_OK;
}

int skv_core_states(struct skv_core *c, const struct skv_states_req *req,
		    struct skv_states_res *res, struct skv_arena *a, struct skv_error *err)
{
	struct instance *inst = NULL;
	int rc = rules_gate(c, req->tenant, req->n_keys, err);

	if (rc != SKV_OK)
		return rc;
	if (req->n_keys > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_TOO_LARGE, "keys", "at most %u keys", SKV_MAX_KEYS);
	skv_rwlock_read(&c->lock);
	rc = c->partition ? instance_need(c->partition, req->tenant, req->instance, "instance",
					  &inst, err)
			  : gate_recovering(err);
	if (rc == SKV_OK)
		rc = fill_states(c->partition, inst, req, res, a);
	skv_rwlock_read_unlock(&c->lock);
	return rc;
}
