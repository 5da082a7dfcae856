/*
 * plan.c - plans what a start still has to write: the plan of an attempt, made before the search
 * for slots.
 *
 * Each (key, spec) has its own slot and state, so each has one writer, and a key may have several
 * at a time. Reads the index only; under the write lock, with allocations in the request's arena.
 */
#include "plan.h"

#include <stdio.h>
#include <string.h>

#include <lock/lock.h>
#include <model/block.h>
#include <model/find.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/probe.h>
#include <model/queue.h>
#include <model/volume.h>

#include <assert.h>
#define MAX_SLOTS 131072u /* of one session: bounds its record */

/* The specs requested for key i. */
static uint32_t asked_of(const struct skv_start_req *req, const struct plan *plan, uint32_t i)
{
	return req->key_specs ? req->key_specs[i] : plan->specs;
}

/* The specs requested for any key. */
static int ask(const struct skv_start_req *req, struct plan *plan, struct skv_error *err)
{
	char field[SKV_FIELD_MAX];

	if (!req->key_specs)
		return specs_resolve(plan->inst, req->specs, req->n_specs, &plan->specs, err);
	if (req->n_specs)
		return skv_fail(err, SKV_E_INVALID, "specs",
				"for all keys, or for each key, not both");
	for (uint32_t i = 0; i < req->n_keys; i++) {
		snprintf(field, sizeof field, "key_specs[%u]", i);
		if (req->key_specs[i] == 0 ||
		    (uint64_t)req->key_specs[i] >> plan->inst->spec.n_specs)
			return skv_fail(err, SKV_E_INVALID, field,
					"1 or more of the %u specs of instance '%s'",
					plan->inst->spec.n_specs, plan->inst->spec.id);
		plan->specs |= req->key_specs[i];
	}
	return SKV_OK;
}

/* Specs that are neither stored nor being written may be written, whatever the state of the block's
 * others: lookups for all specs hit once the last one is committed. But a block with a spec being
 * removed is left alone until that is done, so that it comes back whole. */
static uint8_t classify_key(const struct block *b, uint32_t asked, uint32_t *missing)
{
	bool writing = false;

	*missing = asked;
	for (uint32_t s = 0; b && specs_left(asked, s); s++) {
		if (!(asked >> s & 1) || b->slot[s].state == SLOT_ABSENT)
			continue;
		*missing &= ~(1u << s);
		writing |= b->slot[s].state == SLOT_WRITING;
		if (b->slot[s].state != SLOT_REMOVING)
			continue;
		*missing = 0;
		return SKV_START_BUSY;
	}
	return *missing ? SKV_START_WRITE : writing ? SKV_START_BUSY : SKV_START_EXISTS;
}

void plan_count(struct plan *plan)
{
	plan->n_write = 0;
	plan->bytes = 0;
	memset(plan->need, 0, sizeof plan->need);
	for (uint32_t i = 0; i < plan->n_keys; i++) {
		if (plan->outcome[i] != SKV_START_WRITE)
			continue;
		plan->n_write++;
		for (uint32_t s = 0; specs_left(plan->missing[i], s); s++) {
			if (!(plan->missing[i] >> s & 1))
				continue;
			plan->need[s]++;
			plan->bytes += plan->inst->spec.specs[s].size;
		}
	}
}

static bool any_busy(const struct plan *plan)
{
	uint32_t i = 0;

	while (i < plan->n_keys && plan->outcome[i] != SKV_START_BUSY)
		i++;
	return i < plan->n_keys;
}

void plan_cut(struct plan *plan, uint64_t n, bool whole)
{
	if (whole && (n < plan->n_write || any_busy(plan)))
		n = 0;
	if (plan->n_write <= n)
		return;
	for (uint32_t i = 0; i < plan->n_keys; i++)
		if (plan->outcome[i] == SKV_START_WRITE && (n == 0 || n-- == 0))
			plan->outcome[i] = plan_leaves_out(plan) ? SKV_START_NOT_ADMITTED
								 : SKV_START_NO_ROOM;
	plan_count(plan);
	if (!plan->newcomers.refused && plan->newcomers.n > plan->n_write)
		plan->newcomers.n = plan->n_write;
}

static int classify(const struct partition *p, const struct skv_start_req *req, struct skv_arena *a,
		    struct plan *plan)
{
	struct probe pr;

	ASSERT_SHARED(p);
	plan->n_keys = req->n_keys;
	if (req->has_parent && !req->independent)
		plan->parent = index_find(p, plan->inst, req->parent);
	plan->have = skv_arena_alloc(a, req->n_keys * sizeof(struct block *));
	plan->outcome = skv_arena_calloc(a, req->n_keys, 1);
	plan->missing = skv_arena_calloc(a, req->n_keys, sizeof *plan->missing);
	if (!plan->have || !plan->outcome || !plan->missing)
		return SKV_E_NOMEM;
	probe_begin(&pr, p, plan->inst, req->keys, req->n_keys);
	for (uint32_t i = 0; i < req->n_keys; i++) {
		core_let_read(p->core, i);
		plan->have[i] = probe_block(&pr, i);
		plan->outcome[i] =
			classify_key(plan->have[i], asked_of(req, plan, i), &plan->missing[i]);
	}
	plan_count(plan);
	return SKV_OK;
}

static int list_newcomers(const struct skv_start_req *req, struct skv_arena *a, struct plan *plan)
{
	const struct instance *inst = plan->inst;
	uint64_t *hash;
	uint32_t n = 0;

	if (!req->selective || inst->spec.n_specs > 1 || plan->n_write == 0)
		return SKV_OK;
	hash = skv_arena_alloc(a, plan->n_write * sizeof *hash);
	if (!hash)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < req->n_keys; i++)
		if (plan->outcome[i] == SKV_START_WRITE)
			hash[n++] = evict_hash(inst, req->keys[i]);
	assert(n == plan->n_write);
	plan->newcomers = (struct newcomers){
		.group = inst->group, .hash = hash, .n = n };
	return SKV_OK;
}

static int check_size(const struct partition *p, const struct plan *plan, struct skv_error *err)
{
	uint64_t slots = 0;

	if (p->next_generation + plan->n_write > MAX_GENERATION)
		return skv_fail(err, SKV_E_TOO_MANY, NULL,
				"all generation numbers are used up: begin with a new store");

	for (uint32_t s = 0; s < plan->inst->spec.n_specs; s++)
		slots += plan->need[s];
	if (slots <= MAX_SLOTS)
		return SKV_OK;
	return skv_fail(err, SKV_E_TOO_LARGE, "keys",
			"%llu slots in one session, %u at most: write fewer blocks",
			(unsigned long long)slots, MAX_SLOTS);
}

/* Combinations of request forms and instances that are not allowed. */
static int check_forms(const struct partition *p, const struct skv_start_req *req,
		       const struct instance *inst, struct skv_error *err)
{
	if (req->fit && inst->spec.n_specs > 1)
		return skv_fail(err, SKV_E_UNSUPPORTED, "fit",
				"instance '%s' has more than one spec", inst->spec.id);
	if (req->offsets && volume_of_offsets(p, inst) < 0)
		return skv_fail(err, SKV_E_UNSUPPORTED, "places",
				"instance '%s' does not lie on one external storage",
				inst->spec.id);
	if (req->selective && (req->whole || req->offsets))
		return skv_fail(err, SKV_E_UNSUPPORTED, "selective",
				"not all or nothing, and not for given places");
	return SKV_OK;
}

int plan_make(const struct partition *p, const struct skv_start_req *req, struct skv_arena *a,
	      struct plan *plan, struct skv_error *err)
{
	int rc = check_forms(p, req, plan->inst, err);

	ASSERT_SHARED(p);
	if (rc == SKV_OK)
		rc = ask(req, plan, err);
	if (rc == SKV_OK)
		rc = classify(p, req, a, plan);
	if (rc == SKV_OK)
		rc = list_newcomers(req, a, plan);
	return rc == SKV_OK ? check_size(p, plan, err) : rc;
}
