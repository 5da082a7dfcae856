/*
 * pin.c - pins blocks, unpins them, lists pins, and expires them. model/pin.c stores them.
 *
 * The prepare step of a pin or unpin does everything, the apply step nothing; undo restores the
 * previous pins. The ticker scans the tables in portions for expired pins and unpins those by a
 * record, too: a manager that restarts often would keep them for ever otherwise. Under the write
 * lock; listing under the read lock.
 */
#include <ops/pin.h>

#include <assert.h>
#include <skv/mem.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/find.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/pin.h>
#include <model/quota_share.h>
#include <model/rules.h>
#include <model/table.h>
#include <model/tenant.h>
#include <journal/change.h>
#include <journal/record.h>
#include <journal/replay.h>
#include <journal/snapshot.h>

#define PORTION_PINS 1024u /* expired per call; also bounds those visited, to keep the lock short */
#define TURNS 64u           /* ticks in which a whole table is visited */
#define DEFAULT_PERCENT 50u /* of its capacity that a group may pin hard */

/* ---- the change ------------------------------------------------------------------------------ */

struct repins {
	struct change change;
	struct instance *inst;
	struct repin *v;
	uint32_t n;
};

/* Finds blocks by key: one whose removal was queued before may be gone by now. */
static void repins_undo(struct partition *p, struct change *ch)
{
	const struct repins *t = (struct repins *)ch;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = t->n; i-- > 0;) {
		struct block *b = index_find(p, t->inst, t->v[i].key);

		if (b && pin_keeps_bytes(t->inst, b))
			pin_set(p, b, t->v[i].from);
	}
}

static void repins_destroy(struct change *ch) { skv_free(((struct repins *)ch)->v); }

static int replay_pins(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct instance *inst = instance_by_id(r->p, skv_get_u32(in));
	int rc = SKV_OK;

	if (!inst && r->follows)
		return SKV_E_NOT_FOUND;
	while (inst && rc == SKV_OK && skv_rd_left(in)) {
		struct block *b = index_find(r->p, inst, get_key(in));
		uint8_t kind = skv_get_u8(in);
		uint64_t left = skv_get_varint(in);

		if (in->failed || kind > SKV_PIN_HARD || left > SKV_MAX_PIN_MS)
			return corrupt(err, "pin: malformed");
		if (!b || !pin_keeps_bytes(inst, b)) /* the block is skipped */
			continue;
		rc = pins_reserve(&inst->pins, 1);
		if (rc == SKV_OK)
			pin_set(r->p, b,
				(struct pin){ .kind = kind, .until = left ? r->now + left : 0 });
	}
	return in->failed ? corrupt(err, "pin: too short") : rc;
}

const struct change_ops pin_ops = {
	.record = { "pin", replay_pins },
	.size = sizeof(struct repins),
	.undo = repins_undo,
	.destroy = repins_destroy,
};

static struct repins *make(uint32_t n)
{
	struct repins *t = (struct repins *)change_make(&pin_ops);

	if (!t)
		return NULL;
	t->v = skv_malloc((n + 1) * sizeof *t->v);
	if (t->v)
		return t;
	change_destroy(&t->change);
	return NULL;
}

static void drop(struct repins *t) { change_destroy(t ? &t->change : NULL); }

static void add(struct repins *t, const struct block *b, struct pin to)
{
	t->v[t->n++] = (struct repin){ .key = b->key, .from = pin_get(b), .to = to };
}

/* Applies t and queues its record. SKV_E_NOMEM changes nothing. Takes ownership of t. */
static int queue(struct partition *p, struct instance *inst, struct repins *t)
{
	int rc = pins_reserve(&inst->pins, t->n);

	ASSERT_EXCLUSIVE(p);
	t->inst = inst;
	if (rc == SKV_OK)
		record_pin(&t->change.rec, inst, t->v, t->n, skv_now_ms(p->core->clock));
	if (rc != SKV_OK || t->change.rec.failed) {
		drop(t);
		return SKV_E_NOMEM;
	}
	for (uint32_t i = 0; i < t->n; i++)
		pin_set(p, index_find(p, inst, t->v[i].key), t->v[i].to);
	change_queue(p, &t->change);
	return SKV_OK;
}

/* ---- time ------------------------------------------------------------------------------------ */

static bool expired(const struct pin *pin, uint64_t now)
{
	return pin->block != NO_BLOCK && pin->until && pin->until <= now;
}

/* Expires one portion of a table. True if more is due. */
static bool expire(struct partition *p, struct instance *inst, uint64_t now)
{
	struct pins *pins = &inst->pins;
	uint32_t n = pins->cells < PORTION_PINS ? pins->cells : PORTION_PINS, due = 0;
	struct repins *t = NULL;

	ASSERT_EXCLUSIVE(p);
	if (pins->cells / TURNS > n)
		n = pins->cells / TURNS;
	for (; n > 0 && due < PORTION_PINS; n--) {
		struct pin *pin = &pins->cell[pins->looked++ & (pins->cells - 1)];

		if (!expired(pin, now) || (!t && !(t = make(PORTION_PINS))))
			continue;
		add(t, block_get(p, pin->block), (struct pin){ .kind = SKV_PIN_NONE });
		due++;
	}
	if (!t)
		return false;
	t->change.urgent = true;
	queue(p, inst, t); /* out of memory: they will be found again */
	return n > 0;
}

bool pins_expire(struct partition *p, struct portion instances)
{
	uint64_t now = skv_now_ms(p->core->clock);
	bool more = false;

	ASSERT_EXCLUSIVE(p);
	for (size_t i = instances.from; i < instances.to; i++)
		if (p->inst[i]->pins.timed)
			more |= expire(p, p->inst[i], now);
	return more;
}

/* ---- by request ------------------------------------------------------------------------------ */

/* The stronger of the current and the requested pin: hard over soft, then the later expiry. */
static struct pin stronger(struct pin have, struct pin want)
{
	if (have.kind != want.kind)
		return have.kind > want.kind ? have : want;
	return have.until == 0 || (want.until && have.until > want.until) ? have : want;
}

/* Checks whether these hard pins fit within the limit. Each tenant has its own part of the limit,
 * because hard-pinned bytes do not return like space. */
static int check_room(struct partition *p, const struct instance *inst, uint64_t blocks,
		      struct skv_error *err)
{
	const struct group *g = inst->group;
	const struct tenant *t = inst->tenant;
	uint32_t percent = g->spec.pin_percent ? g->spec.pin_percent : DEFAULT_PERCENT;
	uint64_t room = group_room(p, g), more = blocks * inst->block_bytes, all = more, part;

	if (blocks == 0)
		return SKV_OK;
	for (const struct instance *i = g->members; i; i = i->next_member)
		all += i->tenant == t ? pinned_bytes(i, true) : 0;
	part = tenant_part(p, g, t, percent_of(room, percent));
	if (all > part)
		return skv_fail(
			err, SKV_E_QUOTA, "pinned_bytes",
			"tenant '%s' would have %llu bytes pinned hard in group '%s'; its part of "
			"the limit is %llu: unpin some, or raise the group's pin_percent (%u)",
			t->name, (unsigned long long)all, g->spec.name, (unsigned long long)part,
			percent);
	room = percent_of(quota_share_of(inst, room), percent);
	more += pinned_bytes(inst, true);
	if (more > room)
		return skv_fail(
			err, SKV_E_QUOTA, "pinned_bytes",
			"instance '%s' would have %llu bytes pinned hard; the limit "
			"of its share is %llu: unpin some, or raise its capacity or weight, or the "
			"group's pin_percent (%u)",
			inst->spec.id, (unsigned long long)more, (unsigned long long)room, percent);
	return SKV_OK;
}

/* `blocks`: that were not pinned before. */
static int check_tenant(const struct partition *p, const struct tenant *t, uint64_t blocks,
			struct skv_error *err)
{
	const uint64_t most = rule_most(t->rule, TENANT_PINS),
		       have = t->pins + tenant_elsewhere(t, TENANT_PINS);

	if (blocks == 0 || most == UINT64_MAX || have + blocks <= most)
		return SKV_OK;
	COUNT(p->core, tenant_over_pins, 1);
	return skv_fail(err, SKV_E_QUOTA, "max_pins",
			"tenant '%s' has %llu of %llu blocks pinned: unpin some", t->name,
			(unsigned long long)have, (unsigned long long)most);
}

static int pin_locked(struct partition *p, const struct skv_pin_req *req, struct waiter *w)
{
	struct skv_pin_res *res = w->res;
	struct pin want = { .kind = req->hard ? SKV_PIN_HARD : SKV_PIN_SOFT };
	struct instance *inst;
	struct repins *t = make(req->n_keys);
	uint64_t hard = 0, more = 0;
	int rc = instance_need(p, req->tenant, req->instance, "instance", &inst, w->err);

	ASSERT_EXCLUSIVE(p);
	if (rc == SKV_OK && p->journal_bytes >= journal_bound(p))
		rc = skv_fail(w->err, SKV_E_JOURNAL_FULL, NULL,
			      "the journal is full: retry when the checkpoint is written");
	if (rc == SKV_OK && !t)
		rc = SKV_E_NOMEM;
	want.until = req->ttl_ms ? skv_now_ms(p->core->clock) + req->ttl_ms : 0;
	for (uint32_t i = 0; rc == SKV_OK && i < req->n_keys; i++) {
		const struct block *b = index_find(p, inst, req->keys[i]);

		res->missing[i] = !b || !block_has_committed(inst, b);
		if (res->missing[i])
			continue;
		add(t, b, stronger(pin_get(b), want));
		more += !b->pinned;
		hard += want.kind == SKV_PIN_HARD && pin_kind(b) != SKV_PIN_HARD;
	}
	if (rc == SKV_OK)
		rc = check_room(p, inst, hard, w->err);
	if (rc == SKV_OK)
		rc = check_tenant(p, inst->tenant, more, w->err);
	if (rc != SKV_OK) {
		drop(t);
		return rc;
	}
	res->n_keys = req->n_keys;
	res->pinned = t->n;
	COUNT(p->core, pinned_blocks, t->n);
	change_wait(&t->change, w);
	rc = queue(p, inst, t); /* even if empty: it makes earlier calls durable */
	return rc == SKV_OK ? SKV_PENDING : rc;
}

static int unpin_locked(struct partition *p, const struct skv_unpin_req *req, struct waiter *w)
{
	static const struct pin none = { .kind = SKV_PIN_NONE };
	struct skv_unpin_res *res = w->res;
	struct instance *inst;
	struct repins *t;
	int rc = instance_need(p, req->tenant, req->instance, "instance", &inst, w->err);

	ASSERT_EXCLUSIVE(p);
	if (rc != SKV_OK)
		return rc;
	t = make(req->all ? inst->pins.n : req->n_keys);
	if (!t)
		return SKV_E_NOMEM;
	t->change.urgent = true;
	for (uint32_t i = 0; i < req->n_keys; i++) {
		const struct block *b = index_find(p, inst, req->keys[i]);

		if (b && b->pinned)
			add(t, b, none);
	}
	for (uint32_t i = 0; req->all && i < inst->pins.cells; i++)
		if (inst->pins.cell[i].block != NO_BLOCK)
			add(t, block_get(p, inst->pins.cell[i].block), none);
	res->unpinned = t->n;
	change_wait(&t->change, w);
	rc = queue(p, inst, t);
	return rc == SKV_OK ? SKV_PENDING : rc;
}

static int check_pin(const struct skv_pin_req *req, struct skv_error *err)
{
	if (req->n_keys == 0 || req->n_keys > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_INVALID, "keys", "1..%u keys, not %u", SKV_MAX_KEYS,
				req->n_keys);
	if (!req->hard && req->ttl_ms == 0)
		return skv_fail(err, SKV_E_INVALID, "ttl_ms", "a soft pin ends by itself: 1..%llu",
				SKV_MAX_PIN_MS);
	if (req->ttl_ms > SKV_MAX_PIN_MS)
		return skv_fail(err, SKV_E_INVALID, "ttl_ms", "%llu at most", SKV_MAX_PIN_MS);
	return SKV_OK;
}

int skv_core_pin(struct skv_core *c, const struct skv_pin_req *req, struct skv_pin_res *res,
		 struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	struct waiter *w = skv_arena_calloc(a, 1, sizeof *w);
	int rc = rules_gate(c, req->tenant, req->n_keys, err);

	if (rc == SKV_OK)
		rc = check_pin(req, err);
	if (rc != SKV_OK)
		return rc;
	*res =
		(struct skv_pin_res){ .missing = skv_arena_calloc(a, req->n_keys,
					  sizeof *res->missing) };
	if (!w || !res->missing)
		return SKV_E_NOMEM;
	*w = (struct waiter){ .completion.done = *done, .res = res, .arena = a, .err = err };
	core_lock(c);
	rc = c->partition ? pin_locked(c->partition, req, w)
			  : gate_recovering(err);
	COUNT(c, quota_refused, rc == SKV_E_QUOTA);
	core_unlock(c);
	return rc;
}

int skv_core_unpin(struct skv_core *c, const struct skv_unpin_req *req, struct skv_unpin_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	struct waiter *w = skv_arena_calloc(a, 1, sizeof *w);
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	if (req->n_keys > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_INVALID, "keys", "%u at most", SKV_MAX_KEYS);
	if (!w)
		return SKV_E_NOMEM;
	*w = (struct waiter){ .completion.done = *done, .res = res, .arena = a, .err = err };
	core_lock(c);
	rc = c->partition ? unpin_locked(c->partition, req, w)
			  : gate_recovering(err);
	core_unlock(c);
	return rc;
}

static void list(const struct partition *p, const struct instance *inst,
		 const struct skv_pins_req *req, struct skv_pins_res *res)
{
	uint64_t now = skv_now_ms(p->core->clock), i = req->cursor;

	for (; i < inst->pins.cells && res->n < req->max; i++) {
		const struct pin *pin = &inst->pins.cell[i];

		if (pin->block == NO_BLOCK)
			continue;
		res->key[res->n] = block_get(p, pin->block)->key;
		res->kind[res->n] = (uint8_t)pin->kind;
		res->ttl_ms[res->n++] = !pin->until ? 0 : pin->until > now ? pin->until - now : 1;
	}
	res->next = i < inst->pins.cells ? i : 0;
}

int skv_core_pins(struct skv_core *c, const struct skv_pins_req *req, struct skv_pins_res *res,
		  struct skv_arena *a, struct skv_error *err)
{
	struct instance *inst;
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	if (req->max == 0 || req->max > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_INVALID, "max", "1..%u", SKV_MAX_KEYS);
	*res = (struct skv_pins_res){ .key = skv_arena_alloc(a, req->max * sizeof *res->key),
				      .kind = skv_arena_alloc(a, req->max),
				      .ttl_ms =
					      skv_arena_alloc(a, req->max * sizeof *res->ttl_ms) };
	if (!res->key || !res->kind || !res->ttl_ms)
		return SKV_E_NOMEM;
	skv_rwlock_read(&c->lock);
	if (!c->partition)
		rc = gate_recovering(err);
	else
		rc = instance_need(c->partition, req->tenant, req->instance, "instance", &inst,
				   err);
	if (rc == SKV_OK)
		list(c->partition, inst, req, res);
	skv_rwlock_read_unlock(&c->lock);
	return rc;
}
