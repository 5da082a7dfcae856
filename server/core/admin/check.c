/*
 * check.c - consistency check of a partition's state in memory. Used by tests on a running core and
 * by `slabkvd fsck` on a store without a running manager.
 */
#include <admin/check.h>

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/one.h>
#include <model/birth.h>
#include <model/block.h>
#include <model/device.h>
#include <model/find.h>
#include <model/index.h>
#include <model/mark.h>
#include <model/move.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/pin.h>
#include <model/queue.h>
#include <model/session.h>
#include <model/volume.h>
#include <model/table.h>
#include <model/tenant.h>
#include <storage/bad_files.h>
#include <storage/claim.h>
#include <storage/device.h>
#include <recovery/recover.h>

/* A group's usage, counted block by block. */
struct group_sum {
	uint64_t used_bytes, blocks;
};

/* Usage of a volume: by one group, or by all. */
struct volume_sum {
	uint64_t used, removing;
};

struct check {
	struct partition *p;
	void (*say)(void *ctx, const char *text);
	void *ctx;
	uint64_t problems;
	uint64_t *slots; /* [n_volume] of blocks */
	struct volume_sum *in, *all; /* [n_volume] */
	struct group_sum sum; /* the group of the current instance */
	uint64_t entries, blocks, used_bytes, writing, pinned;
	struct skv_fsck_report *report;
};

static void problem(struct check *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void problem(struct check *k, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	k->problems++;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (k->say)
		k->say(k->ctx, text);
}

static void count_volume(struct volume_sum *sum, const struct slot *s, uint64_t size)
{
	sum[s->volume].used += size;
	sum[s->volume].removing += s->state == SLOT_REMOVING ? size : 0;
}

static void check_slot(struct check *k, const struct block *b, uint32_t spec)
{
	const struct slot *s = &b->slot[spec];
	char hex[SKV_KEY_HEX + 1];

	skv_key_to_hex(b->key, hex);
	if (s->volume >= k->p->n_volume || !k->p->volume[s->volume].pool) {
		problem(k, "block %s: spec %u lies in no storage", hex, spec);
		return;
	}
	count_volume(k->in, s, block_instance(b)->spec.specs[spec].size);
	count_volume(k->all, s, block_instance(b)->spec.specs[spec].size);
	k->slots[s->volume]++;
	if (!skv_pool_is_used(k->p->volume[s->volume].pool, s->slab, s->index))
		problem(k, "block %s: its slot %u of slab %u is not in use", hex, s->index,
			s->slab);
	else if (skv_pool_owner(k->p->volume[s->volume].pool, s->slab, s->index) != block_id(b))
		problem(k, "block %s: its slot %u of slab %u has another owner", hex, s->index,
			s->slab);
	if (s->generation == 0 || s->generation >= k->p->next_generation)
		problem(k, "block %s: generation %llu was never given", hex,
			(unsigned long long)s->generation);
}

/* Checkpoints and the journal store no lease of a block, only the instance's horizon. */
static void check_mark(struct check *k, const struct instance *inst, const struct block *b)
{
	const uint64_t use = mark_use(atomic_load_explicit(&b->mark, memory_order_relaxed));
	char hex[SKV_KEY_HEX + 1];

	skv_key_to_hex(b->key, hex);
	if (block_own_lease(k->p, b) > inst->horizon + MARK_LEASE_UNIT)
		problem(k, "block %s is leased longer than its instance's horizon tells", hex);
	if (use > atomic_load_explicit(&k->p->last_use, memory_order_relaxed))
		problem(k, "block %s was used later than now", hex);
}

/* Newer generations were given later, and none in the future. */
static void check_births(struct check *k)
{
	const struct birth *v = k->p->birth;

	for (size_t i = 0; i < k->p->n_births; i++)
		if ((i && (v[i].generation <= v[i - 1].generation || v[i].ms <= v[i - 1].ms)) ||
		    (!k->p->loading && v[i].ms > birth_now(k->p)))
			problem(k, "generation %llu: its time is not between its neighbours'",
				(unsigned long long)v[i].generation);
}

static void check_block(void *ctx, struct partition *p, struct block *b)
{
	struct check *k = ctx;
	const struct instance *inst = block_instance(b);
	char hex[SKV_KEY_HEX + 1];

	ASSERT_SHARED(p);
	skv_key_to_hex(b->key, hex);
	k->entries++;
	k->pinned += b->pinned;
	k->blocks += block_has_committed(inst, b);
	check_mark(k, inst, b);
	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		if (b->slot[s].state == SLOT_ABSENT)
			continue;
		check_slot(k, b, s);
		k->used_bytes += inst->spec.specs[s].size;
		k->writing += b->slot[s].state == SLOT_WRITING;
	}
	if (inst->cleared)
		return; /* partly swept: its links are never followed */
	if (index_find(p, inst, b->key) != b)
		problem(k, "block %s is not found by its key", hex);
	if (b->live != (block_has_committed(inst, b) || block_has_writing(inst, b)))
		problem(k, "block %s: liveness is wrong", hex);
	if (b->parent != NO_BLOCK && !block_get(p, b->parent)->used)
		problem(k, "block %s: its parent is gone", hex);
	if (b->parent != NO_BLOCK && block_instance(block_get(p, b->parent)) != inst)
		problem(k, "block %s: its parent belongs to another instance", hex);
	if (b->live_children > b->children)
		problem(k, "block %s: more live children than children", hex);
}

static void check_pins(struct check *k, const struct instance *inst)
{
	uint32_t n = 0, hard = 0, timed = 0;

	for (uint32_t i = 0; i < inst->pins.cells; i++) {
		const struct pin *pin = &inst->pins.cell[i];
		const struct block *b = pin->block == NO_BLOCK ? NULL : block_get(k->p, pin->block);

		if (!b)
			continue;
		n++;
		hard += pin->kind == SKV_PIN_HARD;
		timed += pin->until != 0;
		if (!b->used || !b->pinned || block_instance(b) != inst)
			problem(k, "instance %s: a pin of a block that is none of its",
				inst->spec.id);
		else if (pin_kind(b) != pin->kind)
			problem(k, "instance %s: a pin is not found", inst->spec.id);
		for (uint32_t s = 0; pin->kind == SKV_PIN_HARD && s < inst->spec.n_specs; s++)
			if (b->slot[s].queued)
				problem(k, "instance %s: eviction sees a block that is pinned hard",
					inst->spec.id);
	}
	if (n != inst->pins.n || n != k->pinned || hard != inst->pins.hard ||
	    timed != inst->pins.timed)
		problem(k,
			"instance %s: %u pins (%u hard, %u timed), counted %u (%u, %u) "
			"and %llu blocks",
			inst->spec.id, inst->pins.n, inst->pins.hard, inst->pins.timed, n, hard,
			timed, (unsigned long long)k->pinned);
}

static void check_instance_counts(struct check *k, const struct instance *inst)
{
	k->entries = k->blocks = k->used_bytes = k->pinned = 0;
	block_each(k->p, inst, check_block, k);
	check_pins(k, inst);
	if (k->entries != inst->entries)
		problem(k, "instance %s: %llu entries, counted %llu", inst->spec.id,
			(unsigned long long)inst->entries, (unsigned long long)k->entries);
	if (k->blocks != inst->blocks)
		problem(k, "instance %s: %llu blocks, counted %llu", inst->spec.id,
			(unsigned long long)inst->blocks, (unsigned long long)k->blocks);
	if (k->used_bytes != inst->used_bytes)
		problem(k, "instance %s: %llu bytes in use, counted %llu", inst->spec.id,
			(unsigned long long)inst->used_bytes, (unsigned long long)k->used_bytes);
}

/* children and live_children as counted from the children, and how often the block is in queues. */
struct link_count {
	uint32_t *children, *live, *stand;
};

static void count_links(void *ctx, struct partition *p, struct block *b)
{
	struct link_count *l = ctx;

	if (b->parent == NO_BLOCK || block_instance(b)->cleared)
		return;
	l->children[b->parent]++;
	l->live[b->parent] += b->live;
	l->stand[b->parent] += evict_stands_for(b, block_get(p, b->parent));
}

struct link_check {
	struct check *k;
	struct link_count *l;
};

static void compare_links(void *ctx, struct partition *p, struct block *b)
{
	struct link_check *c = ctx;
	char hex[SKV_KEY_HEX + 1];

	ASSERT_SHARED(p);
	if (!p->loading && !block_instance(b)->retired && evict_held_back(b) &&
	    !c->l->stand[block_id(b)]) {
		skv_key_to_hex(b->key, hex);
		problem(c->k,
			"block %s: eviction does not see it, nor one below that stands for it",
			hex);
	}
	if (block_instance(b)->cleared || (c->l->children[block_id(b)] == b->children &&
					   c->l->live[block_id(b)] == b->live_children))
		return;
	skv_key_to_hex(b->key, hex);
	problem(c->k, "block %s: %u children (%u live), counted %u (%u)", hex, b->children,
		b->live_children, c->l->children[block_id(b)], c->l->live[block_id(b)]);
}

static void check_links(struct check *k)
{
	size_t n = k->p->n_chunk << CHUNK_SHIFT;
	struct link_count l = { skv_calloc(n, sizeof(uint32_t)), skv_calloc(n, sizeof(uint32_t)),
				skv_calloc(n, sizeof(uint32_t)) };
	struct link_check c = { k, &l };

	if (l.children && l.live && l.stand) {
		block_each(k->p, NULL, count_links, &l);
		block_each(k->p, NULL, compare_links, &c);
	} else {
		problem(k, "not enough memory to check the links");
	}
	skv_free(l.children);
	skv_free(l.live);
	skv_free(l.stand);
}

static bool is_writer(const struct session *s, const struct slot *slot)
{
	return slot->state == SLOT_WRITING &&
	       (uint32_t)slot->checksum == s->number + 1;
}

static void check_sessions(struct check *k)
{
	uint64_t open = 0, specs = 0;
	uint32_t left;

	for (size_t i = 0; i < k->p->n_session; i++) {
		const struct session *s = k->p->session[i];

		if (!s || s->state != SKV_SESSION_OPEN)
			continue;
		open++;
		left = 0;
		for (uint32_t w = 0; w < s->n_write; w++) {
			const struct block *b;

			if (!s->write[w].specs)
				continue;
			b = block_get(k->p, s->write[w].block);
			left++;
			specs += (uint32_t)__builtin_popcount(s->write[w].specs);
			for (uint32_t spec = 0; specs_left(s->write[w].specs, spec); spec++)
				if ((s->write[w].specs >> spec & 1) &&
				    !is_writer(s, &b->slot[spec]))
					problem(k,
						"an open session's slot is not being "
						"written, or not by it");
		}
		if (left != s->n_left)
			problem(k, "an open session has %u blocks to write, counted %u", s->n_left,
				left);
	}
	if (open != k->p->open_sessions)
		problem(k, "%llu open sessions, counted %llu",
			(unsigned long long)k->p->open_sessions, (unsigned long long)open);
	if (specs != k->writing)
		problem(k, "%llu slots are being written, open sessions have %llu",
			(unsigned long long)k->writing, (unsigned long long)specs);
}

struct slab_count {
	const struct skv_pool *pool;
	uint64_t used, held;
};

static void count_slab(void *ctx, uint32_t slab)
{
	struct slab_count *n = ctx;
	struct skv_slab_info info;

	if (skv_pool_slab(n->pool, slab, &info)) {
		n->used += info.used;
		n->held += info.held;
	}
}

/* The tenants' sums of a storage add up to all of it. */
static void check_tenants(struct check *k, uint32_t volume)
{
	struct volume_sum sum = { 0 };

	for (size_t i = 0; i < k->p->n_tenant; i++) {
		const struct tenant_volume *in = tenant_in(k->p->tenant[i], volume);

		sum.used += in ? in->used_bytes : 0;
		sum.removing += in ? in->removing_bytes : 0;
	}
	if (sum.used != k->all[volume].used || sum.removing != k->all[volume].removing)
		problem(k, "storage %u: tenants have %llu bytes (%llu on their way out), all %llu",
			volume, (unsigned long long)sum.used, (unsigned long long)sum.removing,
			(unsigned long long)k->all[volume].used);
}

/* Targets of open moves in the volume: in use, of nobody. */
static uint64_t count_targets(struct check *k, uint32_t volume)
{
	uint64_t n = 0;

	for (const struct move *m = k->p->moves; m; m = m->next) {
		for (uint32_t i = 0; i < m->n; i++) {
			const struct move_slot *t = &m->v[i];

			if (t->to_volume != volume)
				continue;
			n++;
			if (!skv_pool_is_used(k->p->volume[volume].pool, t->to_slab, t->to_index) ||
			    skv_pool_owner(k->p->volume[volume].pool, t->to_slab, t->to_index) !=
				    NO_BLOCK)
				problem(k, "a move's target is not in use, or has an owner");
		}
	}
	return n;
}

static void check_volume(struct check *k, uint32_t i)
{
	const struct volume *s = &k->p->volume[i];
	struct slab_count n = { .pool = s->pool };
	struct skv_error err = { 0 };

	if (skv_pool_check(s->pool, &err) != SKV_OK)
		problem(k, "storage %s: allocator: %s", s->dev->name, err.message);
	skv_pool_each_slab(s->pool, count_slab, &n);
	if (n.used != k->slots[i] + count_targets(k, i))
		problem(k, "storage %s: %llu slots in use, blocks and moves have others",
			s->dev->name, (unsigned long long)n.used);
	if (s->used_bytes != k->all[i].used || s->removing_bytes != k->all[i].removing)
		problem(k, "storage %s: %llu bytes (%llu on their way out), counted %llu (%llu)",
			s->dev->name, (unsigned long long)s->used_bytes,
			(unsigned long long)s->removing_bytes, (unsigned long long)k->all[i].used,
			(unsigned long long)k->all[i].removing);
	check_tenants(k, i);
	if (k->report) {
		k->report->used_slots += n.used;
		k->report->held_slots += n.held;
	}
}

/* Returns its bytes being removed. k->in is all zeros again. */
static uint64_t check_group_volumes(struct check *k, const struct group *g, const char *name)
{
	uint64_t removing = 0;

	for (uint32_t i = 0; i < k->p->n_volume; i++) {
		const struct group_volume *in = group_in(g, i);
		const struct volume_sum sum = k->in[i];

		k->in[i] = (struct volume_sum){ 0 };
		removing += sum.removing;
		if (g != &k->p->detached && (sum.used != (in ? in->used_bytes : 0) ||
					     sum.removing != (in ? in->removing_bytes : 0)))
			problem(k,
				"group %s: %llu bytes (%llu on their way out) in storage %u, "
				"counted %llu (%llu)",
				name, (unsigned long long)(in ? in->used_bytes : 0),
				(unsigned long long)(in ? in->removing_bytes : 0), i,
				(unsigned long long)sum.used, (unsigned long long)sum.removing);
	}
	return removing;
}

static void check_group(struct check *k, const struct group *g, const struct group_sum *sum)
{
	uint64_t open = 0, removing;
	const char *name = g->spec.name ? g->spec.name : "(deleted instances)";

	for (size_t i = 0; i < k->p->n_session; i++) {
		const struct session *s = k->p->session[i];

		open += s && s->state == SKV_SESSION_OPEN && s->inst && s->inst->group == g
				? s->n_left
				: 0;
	}
	if (sum->used_bytes != g->used_bytes)
		problem(k, "group %s: %llu bytes, counted %llu", name,
			(unsigned long long)g->used_bytes, (unsigned long long)sum->used_bytes);
	if (sum->blocks != g->count.blocks || open != g->open_blocks)
		problem(k, "group %s: %llu blocks and %llu being written, counted %llu and %llu",
			name, (unsigned long long)g->count.blocks,
			(unsigned long long)g->open_blocks, (unsigned long long)sum->blocks,
			(unsigned long long)open);
	removing = check_group_volumes(k, g, name);
	if (removing != g->removing_bytes)
		problem(k, "group %s: %llu bytes on their way out, counted %llu", name,
			(unsigned long long)g->removing_bytes, (unsigned long long)removing);
}

/* Returns the number of blocks in its instances. */
static uint64_t check_members(struct check *k, const struct group *g)
{
	uint32_t n = 0;

	k->sum = (struct group_sum){ 0 };
	for (const struct instance *inst = g->members; inst; inst = inst->next_member, n++) {
		if (inst->group != g)
			problem(k, "instance %u: not of the group that has it", inst->id);
		check_instance_counts(k, inst);
		k->sum.blocks += k->blocks;
		k->sum.used_bytes += k->used_bytes;
	}
	if (n != g->n_instances)
		problem(k, "group %s: %u instances, counted %u", g->spec.name ? g->spec.name : "",
			g->n_instances, n);
	for (const struct instance *retired = k->p->retired; retired;
	     retired = retired->next_retired) {
		if (retired->group != g)
			continue;
		/* Blocks of a retired instance no longer count. */
		check_instance_counts(k, retired);
		k->sum.used_bytes += k->used_bytes;
	}
	check_group(k, g, &k->sum);
	return k->sum.blocks;
}

/* Counted again from its instances, sessions and volumes. */
static void check_tenant_sums(struct check *k, const struct tenant *t)
{
	uint64_t blocks = 0, bytes = 0, sessions = 0, writes = 0, pins = 0;

	for (size_t i = 0; i < k->p->n_inst; i++) {
		blocks += k->p->inst[i]->tenant == t ? k->p->inst[i]->blocks : 0;
		pins += k->p->inst[i]->tenant == t ? k->p->inst[i]->pins.n : 0;
	}
	for (uint32_t i = 0; i < t->n_in; i++)
		bytes += t->in[i].used_bytes;
	for (size_t i = 0; i < k->p->n_session; i++) {
		const struct session *s = k->p->session[i];
		const bool own = s && s->state == SKV_SESSION_OPEN && s->inst &&
				 s->inst->tenant == t;

		sessions += own;
		writes += own ? s->n_left : 0;
	}
	if (blocks != t->blocks || bytes != t->used_bytes)
		problem(k, "tenant %s: %llu blocks, %llu bytes, counted %llu and %llu", t->name,
			(unsigned long long)t->blocks, (unsigned long long)t->used_bytes,
			(unsigned long long)blocks, (unsigned long long)bytes);
	if (sessions != t->open_sessions || writes != t->open_blocks)
		problem(k, "tenant %s: %llu sessions writing %llu blocks, counted %llu and %llu",
			t->name, (unsigned long long)t->open_sessions,
			(unsigned long long)t->open_blocks, (unsigned long long)sessions,
			(unsigned long long)writes);
	if (pins != t->pins)
		problem(k, "tenant %s: %llu pins, counted %llu", t->name,
			(unsigned long long)t->pins, (unsigned long long)pins);
	for (int i = 0; i < TENANT_THINGS; i++)
		if (!t->touched && t->told[i] != tenant_has(t, i))
			problem(k, "tenant %s: told %llu, has %llu (%d)", t->name,
				(unsigned long long)t->told[i],
				(unsigned long long)tenant_has(t, i), i);
}

static void check_volume_groups(struct check *k, const struct volume *v)
{
	const struct partition *p = k->p;
	uint32_t n = 0;

	for (size_t g = 0; g < p->n_group; g++)
		for (uint32_t i = 0; i < p->group[g]->spec.n_storages; i++)
			n += strcmp(p->group[g]->spec.storages[i], v->dev->name) == 0;
	if (n != v->n_groups)
		problem(k, "storage %s: %u groups, counted %u", v->dev->name, v->n_groups, n);
}

/* Each object is where its name and its number are looked for. */
static void check_order(struct check *k)
{
	const struct partition *p = k->p;
	uint32_t n = 0;

	for (size_t i = 0; i < p->n_inst; i++) {
		const struct instance *inst = p->inst[i];

		if (instance_place(p, inst->spec.tenant, inst->spec.id, inst->id) != i ||
		    instance_by_id(p, inst->id) != inst)
			problem(k, "instance %u: out of order", inst->id);
	}
	for (size_t i = 0; i < p->n_group; i++)
		if (group_find(p, p->group[i]->spec.name) != p->group[i])
			problem(k, "group %s: out of order", p->group[i]->spec.name);
	for (uint32_t i = 0; i < p->n_volume; i++) {
		const struct volume *v = &p->volume[i];

		n += v->pool != NULL;
		if (v->pool && volume_find(p, v->dev->name) != (int)i)
			problem(k, "storage %s: out of order", v->dev->name);
		if (v->pool)
			check_volume_groups(k, v);
	}
	if (n != p->n_named)
		problem(k, "%u storages, counted %u", p->n_named, n);
}

static void check_objects(struct check *k)
{
	const struct group *none = &k->p->detached;
	uint64_t blocks = check_members(k, none);

	for (size_t i = 0; i < k->p->n_tenant; i++)
		check_tenant_sums(k, k->p->tenant[i]);
	for (size_t g = 0; g < k->p->n_group; g++)
		blocks += check_members(k, k->p->group[g]);
	if (blocks != k->p->blocks)
		problem(k, "%llu blocks, counted %llu", (unsigned long long)k->p->blocks,
			(unsigned long long)blocks);
	check_order(k);
	check_links(k);
	check_births(k);
	check_sessions(k);
	for (uint32_t i = 0; i < k->p->n_volume; i++)
		if (k->p->volume[i].pool)
			check_volume(k, i);
}

static uint64_t run_check(struct check *k)
{
	const size_t n = k->p->n_volume + 1;

	k->slots = skv_calloc(n, sizeof *k->slots);
	k->in = skv_calloc(n, sizeof *k->in);
	k->all = skv_calloc(n, sizeof *k->all);
	if (k->slots && k->in && k->all)
		check_objects(k);
	else
		problem(k, "not enough memory to check");
	skv_free(k->slots);
	skv_free(k->in);
	skv_free(k->all);
	return k->problems;
}

uint64_t partition_check(struct partition *p, void (*say)(void *ctx, const char *text), void *ctx)
{
	struct check k = { .p = p, .say = say, .ctx = ctx };

	ASSERT_EXCLUSIVE(p);
	return run_check(&k);
}

static void keep_first(void *ctx, const char *text)
{
	struct skv_error *err = ctx;

	if (err && err->status == SKV_OK)
		skv_fail(err, SKV_E_CORRUPT, NULL, "%s", text);
}

int one_check(struct skv_core *c, struct skv_error *err)
{
	uint64_t problems = 0;

	skv_error_clear(err);
	core_lock(c);
	if (c->partition)
		problems = partition_check(c->partition, keep_first, err);
	core_unlock(c);
	return problems ? SKV_E_CORRUPT : SKV_OK;
}

/* ---- offline --------------------------------------------------------------------------------- */

static void fsck_files(struct check *k, struct skv_core *c)
{
	const struct journal_end *end = &k->p->end;

	for (uint32_t i = 0; i < c->n_device; i++) {
		struct skv_error err = { 0 };
		int rc = device_open(c->device[i], false, &err);

		if (rc == SKV_OK)
			rc = claim_check(c->device[i], end, &err);
		if (rc == SKV_OK)
			rc = device_check_files(c->device[i], volume_by_id(k->p, c->device[i]->id),
						&err);
		if (rc != SKV_OK)
			problem(k, "storage %s: %s", c->device[i]->name,
				err.message[0] ? err.message : skv_status_text(rc));
	}
}

static int fsck_partition(struct skv_core *c, bool files, struct check *k, struct skv_error *err)
{
	struct partition *p = NULL;
	int rc = partition_load(c, owner_fence(c), &p, err);

	if (rc == SKV_E_CORRUPT) {
		problem(k, "%s", err->message);
		return SKV_OK;
	}
	if (rc != SKV_OK)
		return rc;
	k->p = p;
	k->report->blocks = p->blocks;
	k->report->sessions = p->open_sessions;
	run_check(k);
	if (files)
		fsck_files(k, c);
	partition_destroy(p);
	return SKV_OK;
}

int fsck_one(struct skv_store *store, const struct one_place *at, bool files,
	     const char *fs_master_token_file, void (*say)(void *ctx, const char *text), void *ctx,
	     struct skv_fsck_report *out, struct skv_error *err)
{
	struct skv_core_options o;
	struct skv_core *c = NULL;
	struct check k = { .say = say, .ctx = ctx, .report = out };
	char holder[192] = "";
	uint64_t fence = 0;
	int rc;

	memset(out, 0, sizeof *out);
	skv_core_options_init(&o);
	o.store = store;
	o.fs_master_token_file = fs_master_token_file;
	o.manual = true;
	rc = one_create(&o, at, &c, err);
	if (rc != SKV_OK)
		return rc;
	rc = skv_store_acquire(store, 0, c->owner, o.owner_lease_ms, &fence, holder, sizeof holder,
			       err);
	if (rc == SKV_E_NOT_OWNER)
		rc = skv_fail(err, SKV_E_IN_USE, "store", "'%s' runs on this store: stop it first",
			      holder);
	if (rc == SKV_OK) {
		owner_event(c, OWN_ON_ACQUIRED, fence);
		rc = fsck_partition(c, files, &k, err);
		skv_store_release(store, 0, fence, NULL);
	}
	out->problems = k.problems;
	one_destroy(c);
	return rc;
}
