/*
 * instance.c - administration of instances: register, change, delete.
 *
 * Deleting one is a journal record (its blocks go), then its registration moves from "instance/..."
 * to "dropped/<id>": until a checkpoint replaces the journal's records of it, recovery must be able
 * to interpret them. The name is free at once.
 */
#include <stdio.h>
#include <string.h>

#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <assert.h>
#include <lock/core.h>
#include <lock/lock.h>
#include <lock/one.h>
#include <model/device.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/quota_share.h>
#include <model/rules.h>
#include <model/volume.h>
#include <journal/change.h>
#include <journal/commit.h>
#include <journal/registry.h>
#include <journal/registry_write.h>
#include <evict/clear.h>
#include <ops/purge.h>
#include "admin.h"
#include "idle.h"

static int conflict(struct skv_error *err, const char *field, const char *id)
{
	return skv_fail(err, SKV_E_CONFLICT, field, "instance '%s' is registered with another %s",
			id, field);
}

static int compare_instance(const struct instance *have, const struct skv_instance_spec *i,
			    struct skv_error *err)
{
	if (strcmp(have->spec.group, i->group) != 0)
		return conflict(err, "group", i->id);
	if (have->spec.block_tokens != i->block_tokens)
		return conflict(err, "block_tokens", i->id);
	if (have->spec.numbered != i->numbered)
		return conflict(err, "numbered", i->id);
	if (have->spec.named != i->named)
		return conflict(err, "named", i->id);
	if (have->spec.n_specs != i->n_specs)
		return conflict(err, "specs", i->id);
	for (uint32_t s = 0; s < i->n_specs; s++)
		if (have->spec.specs[s].size != i->specs[s].size ||
		    strcmp(have->spec.specs[s].name, i->specs[s].name) != 0)
			return conflict(err, "specs", i->id);
	return SKV_OK;
}

/* Each spec must fit into one slab file of some storage of the group. */
static int check_fit(const struct partition *p, const struct group *g,
		     const struct skv_instance_spec *i, struct skv_error *err)
{
	ASSERT_SHARED(p);
	for (uint32_t s = 0; s < i->n_specs; s++) {
		bool any = false, fit = false, counted = false;
		char field[SKV_FIELD_MAX];

		for (uint32_t k = 0; k < g->spec.n_storages; k++) {
			int at = volume_find(p, g->spec.storages[k]);

			any |= at >= 0;
			fit |= at >= 0 && volume_fits(&p->volume[at], i, s);
			counted |= at >= 0 && p->volume[at].dev->ops->counted;
		}
		snprintf(field, sizeof field, "specs[%u].size", s);
		if (!fit && counted)
			return skv_fail(err, SKV_E_INVALID, field,
					"1 on storages of type external");
		if (!fit && (any || !g->spec.loose_storages))
			return skv_fail(
				err, SKV_E_INVALID, field,
				"%llu bytes do not fit into a slab file of any storage "
				"of group '%s'",
				(unsigned long long)i->specs[s].size, g->spec.name);
	}
	return SKV_OK;
}

static int check_quota_share(const struct skv_instance_spec *i, struct skv_error *err)
{
	if (i->weight > SKV_MAX_WEIGHT)
		return skv_fail(err, SKV_E_INVALID, "weight", "1 to %u (0 = 1), not %u",
				SKV_MAX_WEIGHT, i->weight);
	if (i->capacity && i->capacity < spec_block_bytes(i))
		return skv_fail(err, SKV_E_INVALID, "capacity", "at least one block: %llu bytes",
				(unsigned long long)spec_block_bytes(i));
	return SKV_OK;
}

static int check_instance(const struct partition *p, const struct skv_instance_spec *i,
			  struct skv_error *err)
{
	const struct group *g = group_find(p, i->group);
	char field[SKV_FIELD_MAX];
	int rc = SKV_OK;

	ASSERT_SHARED(p);
	if (!g)
		return skv_fail(err, SKV_E_NOT_FOUND, "group", "no group '%s': create it first",
				i->group);
	if (i->n_specs == 0 || i->n_specs > SKV_MAX_SPECS)
		return skv_fail(err, SKV_E_INVALID, "specs", "name 1..%u specs", SKV_MAX_SPECS);
	for (uint32_t s = 0; s < i->n_specs; s++) {
		snprintf(field, sizeof field, "specs[%u].name", s);
		for (uint32_t j = 0; j < s; j++)
			if (strcmp(i->specs[j].name, i->specs[s].name) == 0)
				return skv_fail(err, SKV_E_INVALID, field, "'%s' is named twice",
						i->specs[s].name);
	}
	if (skv_mem_level() == SKV_MEM_TIGHT)
		return skv_fail(err, SKV_E_NOMEM, NULL,
				"the manager's memory is used up: give it more (memory_max)");
	if (g->spec.max_instances && g->n_instances >= g->spec.max_instances)
		return skv_fail(err, SKV_E_TOO_MANY, "group",
				"group '%s' has %u instances, as many as its max_instances allow",
				g->spec.name, g->n_instances);
	if (!*g->spec.tier_of) /* no copies */
		rc = rules_room(p->core->rules, i->tenant,
				strncmp(i->group, SKV_SPACES, strlen(SKV_SPACES)) == 0, err);
	return rc == SKV_OK ? check_fit(p, g, i, err) : rc;
}

static int put_instance_doc(struct skv_core *c, const struct skv_instance_spec *i, uint32_t id,
			    uint64_t *version, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	char key[300];
	int rc;

	registry_put_instance(&b, i, id);
	registry_instance_key(key, i->tenant, i->id);
	rc = admin_written(c, registry_put(c, c->turn_fence, key, *version, &b, version, err));
	skv_buf_destroy(&b);
	return rc;
}

/* Compares the details that may change after registration. */
static bool same_details(const struct skv_instance_spec *a, const struct skv_instance_spec *b)
{
	return strcmp(a->extra, b->extra) == 0 && a->weight == b->weight &&
	       a->capacity == b->capacity;
}

static int update_details(struct skv_core *c, const struct skv_instance_spec *i, uint32_t id,
			  uint64_t version, struct skv_error *err)
{
	struct instance *have;
	struct partition *p;
	char *extra;
	int rc = put_instance_doc(c, i, id, &version, err);

	if (rc != SKV_OK)
		return rc;
	p = admin_follow(c);
	if (!p)
		return rc;
	have = instance_find(p, i->tenant, i->id);
	extra = skv_strdup(i->extra);
	if (have && extra) {
		skv_free((char *)have->spec.extra);
		have->spec.extra = extra;
		have->version = version;
		quota_share_change(have, i);
	} else {
		skv_free(extra);
		rc = have ? SKV_E_NOMEM : SKV_OK;
	}
	core_unlock(c);
	return rc == SKV_OK ? rc : admin_out_of_step(c, rc);
}

static int create_instance(struct skv_core *c, const struct skv_instance_spec *i,
			   struct skv_error *err)
{
	uint64_t version = SKV_VERSION_NONE;
	struct partition *p;
	uint32_t id = 0;
	int rc = registry_next_id(c, c->turn_fence, &id, err);

	if (rc == SKV_OK)
		rc = put_instance_doc(c, i, id, &version, err);
	if (rc != SKV_OK)
		return rc;
	p = admin_follow(c);
	if (!p)
		return rc;
	rc = partition_add_instance(p, i, id);
	if (rc == SKV_OK) {
		instance_by_id(p, id)->version = version;
		instance_use(instance_by_id(p, id));
	}
	core_unlock(c);
	return rc == SKV_OK ? rc : admin_out_of_step(c, rc);
}

/* Bytes that 3FS writes for each byte written. It reads as many, but none for whole chunks
 * (measured: 4.00 and 4.00 where quarters of chunks are overwritten). */
static double cost_of_copies(const struct skv_placement *p)
{
	return (double)(p->slot_bytes + p->copied_bytes) / (double)p->slot_bytes;
}

/* Logs, at registration, how its blocks are laid out on storages with chunks if that has a cost,
 * and that layouts may find no room. */
static void tell_placements(struct skv_core *c, const struct skv_instance_spec *i)
{
	struct skv_instance_view *v;
	struct skv_error ignored;
	struct skv_arena a;
	bool there;

	skv_arena_init(&a);
	there = one_instance(c, i->tenant, i->id, &a, &v, &ignored) == SKV_OK;
	if (there && *v->warning)
		skv_log(SKV_LOG_WARN, "core", "instance %s: %s", i->id, v->warning);
	for (uint32_t k = 0; there && k < v->n_placements; k++) {
		const struct skv_placement *p = &v->placements[k];

		if (p->wasted_bytes || p->copied_bytes)
			skv_log(SKV_LOG_WARN, "core",
				"instance %s: slots of spec %s on storage %s are %s: %llu bytes "
				"each, %llu wasted; 3FS reads %.2f and writes %.2f bytes for each "
				"byte written",
				i->id, p->spec, p->storage, p->fit,
				(unsigned long long)p->slot_bytes,
				(unsigned long long)p->wasted_bytes,
				p->copied_bytes ? cost_of_copies(p) : 0, cost_of_copies(p));
	}
	skv_arena_destroy(&a);
}

int one_instance_put(struct skv_core *c, const struct skv_instance_spec *spec, enum skv_put how,
		     bool *created, struct skv_error *err)
{
	struct skv_instance_spec copy = *spec, *i = &copy;
	struct instance *have;
	struct partition *p;
	bool changed = false;
	uint64_t version = 0;
	uint32_t id = 0;
	int rc = admin_enter(c, err);

	if (rc != SKV_OK)
		return rc;
	p = admin_lock(c, &rc, err);
	if (!p)
		return admin_leave(c, rc);
	have = instance_find(p, i->tenant, i->id);
	/* a client that registers it again does not know these */
	if (have && !i->weight && !i->capacity) {
		i->weight = have->spec.weight;
		i->capacity = have->spec.capacity;
	}
	if (have && have->deleting)
		rc = skv_fail(err, SKV_E_IN_USE, "id", "it is being deleted");
	else
		rc = admin_check_put(how, have != NULL, "instance", "id", i->id, err);
	if (rc == SKV_OK)
		rc = have ? compare_instance(have, i, err) : check_instance(p, i, err);
	if (rc == SKV_OK)
		rc = check_quota_share(i, err);
	if (have && rc == SKV_OK)
		instance_use(have);
	if (have) {
		id = have->id;
		version = have->version;
		changed = !same_details(&have->spec, i);
	}
	core_unlock(c);
	if (rc == SKV_OK && !have)
		rc = create_instance(c, i, err);
	else if (rc == SKV_OK && changed)
		rc = update_details(c, i, id, version, err);
	if (created)
		*created = rc == SKV_OK && !have;
	if (rc == SKV_OK && !have)
		tell_placements(c, i);
	return admin_leave(c, rc);
}

void latch_init(struct latch *l)
{
	*l = (struct latch){ .over = false };
	skv_mutex_init(&l->lock);
	skv_cond_init(&l->cond);
}

void latch_destroy(struct latch *l)
{
	skv_mutex_destroy(&l->lock);
	skv_cond_destroy(&l->cond);
}

void latch_open(void *ctx, int status)
{
	struct latch *l = ctx;

	skv_mutex_lock(&l->lock);
	l->over = true;
	l->status = status;
	skv_cond_signal(&l->cond);
	skv_mutex_unlock(&l->lock);
}

int latch_wait(struct skv_core *c, struct latch *l)
{
	while (c->o.manual && !l->over && commit_round(c))
		;
	skv_mutex_lock(&l->lock);
	while (!l->over)
		skv_cond_wait(&l->cond, &l->lock);
	skv_mutex_unlock(&l->lock);
	return l->status;
}

static int queue_drop(struct partition *p, struct instance *inst, struct waiter *w)
{
	struct change *ch;
	int rc = purge_queue(p, inst, true, &ch);

	if (rc != SKV_OK)
		return rc;
	change_wait(ch, w);
	return SKV_PENDING;
}

static int check_unused(const struct partition *p, const struct instance *inst,
			const struct skv_unused *limit, struct skv_error *err)
{
	if (inst->deleting) /* by an earlier call that failed afterwards */
		return SKV_OK;
	if (idle_ms(p, inst) < limit->ms)
		return skv_fail(err, SKV_E_IN_USE, "unused_s", "it was used %llu seconds ago",
				(unsigned long long)(idle_ms(p, inst) / 1000));
	if (!limit->with_blocks && !idle_is_empty(inst))
		return skv_fail(err, SKV_E_IN_USE, "with_blocks",
				"it holds blocks, pins or sessions");
	return SKV_OK;
}

/* Journals the removal of its blocks, and waits for it. *id, *version and *doc are set from its
 * registration. */
static int drop(struct skv_core *c, const char *tenant, const char *name,
		const struct skv_unused *limit, uint32_t *id, uint64_t *version,
		struct skv_buf *doc, struct skv_error *err)
{
	struct latch latch;
	struct waiter w = { .completion.done = { latch_open, &latch }, .err = err };
	struct instance *inst;
	int rc = SKV_OK;
	struct partition *p = admin_lock(c, &rc, err);

	if (!p)
		return rc;
	latch_init(&latch);
	inst = instance_find(p, tenant, name);
	if (!inst)
		rc = skv_fail(err, SKV_E_NOT_FOUND, "id", "no instance '%s'", name);
	else if (limit)
		rc = check_unused(p, inst, limit, err);
	if (rc == SKV_OK) {
		*id = inst->id;
		*version = inst->version;
		registry_put_instance(doc, &inst->spec, inst->id);
		if (doc->failed)
			rc = SKV_E_NOMEM;
		else if (!inst->deleting)
			/* else journaled by an earlier call that failed afterwards */
			rc = queue_drop(p, inst, &w);
	}
	core_unlock(c);
	if (rc == SKV_PENDING)
		rc = latch_wait(c, &latch);
	if (rc == SKV_OK)
		retired_finish(c);
	latch_destroy(&latch);
	return rc;
}

int instance_end(struct skv_core *c, const char *tenant, const char *id,
		 const struct skv_unused *limit, bool wait, struct skv_error *err)
{
	struct skv_buf doc = { 0 };
	uint64_t version = 0;
	uint32_t number = 0;
	struct partition *p;
	char key[300];
	int rc = wait ? admin_enter(c, err) : admin_try(c, err);

	if (rc != SKV_OK)
		return rc;
	rc = drop(c, tenant, id, limit, &number, &version, &doc, err);
	registry_instance_key(key, tenant, id);
	if (rc == SKV_OK)
		rc = admin_written(c, registry_move_to_dropped(c, c->turn_fence, key, number, &doc,
							       &version, err));
	skv_buf_destroy(&doc);
	if (rc == SKV_OK) {
		p = admin_follow(c);
		if (p) {
			instance_by_id(p, number)->version = version;
			partition_set_dropped(p, number);
			core_unlock(c);
		}
	}
	return admin_leave(c, rc);
}

int one_instance_delete(struct skv_core *c, const char *tenant, const char *id,
			const struct skv_unused *unused, struct skv_error *err)
{
	return instance_end(c, tenant, id, unused, true, err);
}
