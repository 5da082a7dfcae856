/*
 * want.c - blocks that are wanted in another storage (model/wish.h): checks requests, and serves
 * them to takes of movers (decision 0068).
 *
 * A request names a storage of the block's fast tier, which gets a copy (copy.c), or another
 * storage of its group, to which the block is moved (move.c). Both need checksums: a block without
 * one is refused. A request takes the read lock and writes only wishes; serving a wish checks the
 * block again.
 */
#include <assert.h>
#include <string.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/device.h>
#include <model/find.h>
#include <model/index.h>
#include <model/move.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/rules.h>
#include <model/table.h>
#include <model/tier.h>
#include <model/volume.h>
#include <model/wish.h>
#include <storage/device.h>
#include <storage/growth.h>
#include "copy.h"
#include "move_find.h"

#define LOOKS 1024u         /* wishes of a kind looked at by one take */
#define WAIT_MS 60000u      /* the longest that one waits for room, or for what is in its way */
#define SAMPLE_LOOKS 65536u /* entries looked at for a sample; chunks of other instances are one */

/* ---- asking ---------------------------------------------------------------------------------- */

struct wanting {
	const struct partition *p;
	const struct instance *inst;
	const struct instance *copies; /* NULL: they are to move */
	int from; /* volume; -1 = any */
	struct wish wish; /* but for its key */
	uint64_t now;
	struct skv_want_res *res;
};

static bool names(const struct skv_group_spec *g, const char *storage)
{
	for (uint32_t i = 0; i < g->n_storages; i++)
		if (strcmp(g->storages[i], storage) == 0)
			return true;
	return false;
}

static int find_from(struct wanting *k, const char *name, struct skv_error *err)
{
	k->from = *name ? volume_find(k->p, name) : -1;
	return !*name || k->from >= 0
		       ? SKV_OK
		       : skv_fail(err, SKV_E_INVALID, "from", "there is no storage '%s'", name);
}

/* Finds the target that a wanted block needs. */
static int find_to(struct wanting *k, const struct skv_want_req *req, struct skv_error *err)
{
	const struct group *g = k->inst->group;
	const bool moves = req->may_move && *req->to && names(&g->spec, req->to);
	const int at = *req->to ? volume_find(k->p, req->to) : -1;

	k->copies = moves ? NULL : tier_copies(k->p, k->inst);
	if (!moves && !k->copies)
		return skv_fail(err, SKV_E_UNSUPPORTED, "to", "group '%s' has no fast tier",
				g->spec.name);
	if (*req->to && !moves && !names(&g->fast->spec, req->to))
		return skv_fail(err, SKV_E_INVALID, "to",
				"'%s' is no storage of %s'%s', the fast tier of group '%s'",
				req->to, req->may_move ? "their group, nor of " : "",
				g->fast->spec.name, g->spec.name);
	if (*req->to && strcmp(req->from, req->to) == 0)
		return skv_fail(err, SKV_E_INVALID, "to", "'%s' is where they are", req->to);
	if (*req->to && (at < 0 || !volume_takes(&k->p->volume[at]) ||
			 k->p->volume[at].dev->ops->counted))
		return skv_fail(err, SKV_E_UNAVAILABLE, "to",
				"storage '%s' takes no such blocks now", req->to);
	k->wish = (struct wish){ .instance = k->inst->id, .moves = moves,
				 .to = at < 0 ? WISH_ANYWHERE : (uint32_t)at };
	return SKV_OK;
}

/* The states of a block's slots. */
struct seen {
	uint32_t committed, writing, unsummed, unread, moving;
	uint32_t here, there; /* of the committed ones: in `from`; where they are wanted */
	bool coming; /* the copy is being written */
};

static struct seen look(const struct wanting *k, const struct block *b)
{
	const struct partition *p = k->p;
	const struct block *copy = k->copies ? index_find(p, k->copies, b->key) : NULL;
	struct seen n = { 0 };

	for (uint32_t s = 0; s < k->inst->spec.n_specs; s++) {
		const struct slot *is = &b->slot[s];
		const struct slot *c = k->copies ? tier_copy(p, k->copies, b, s) : NULL;

		n.writing += is->state == SLOT_WRITING;
		n.coming |= copy && copy->slot[s].state == SLOT_WRITING;
		if (is->state != SLOT_COMMITTED)
			continue;
		n.committed++;
		n.unsummed += !is->has_checksum;
		n.unread += !slot_serves(p, is);
		n.moving += move_has(p, b, s) && !k->copies;
		n.here += k->from < 0 || is->volume == (uint32_t)k->from;
		n.there += k->copies ? c && slot_serves(p, c) : is->volume == k->wish.to;
	}
	return n;
}

/* Returns the outcome of a request for the block. */
static enum skv_want_outcome judge(const struct wanting *k, const struct block *b)
{
	const struct seen n = b ? look(k, b) : (struct seen){ 0 };

	ASSERT_SHARED(k->p);
	if (n.writing)
		return SKV_WANT_BUSY;
	if (!n.committed || (k->copies && n.committed < k->inst->spec.n_specs))
		return SKV_WANT_ABSENT;
	if (n.there == n.committed)
		return k->copies && k->from >= 0 && !n.here ? SKV_WANT_ELSEWHERE : SKV_WANT_THERE;
	if (!n.here)
		return SKV_WANT_ELSEWHERE;
	if (n.unsummed)
		return SKV_WANT_UNSUMMED;
	if (n.unread)
		return SKV_WANT_UNREADABLE;
	return n.moving ? SKV_WANT_BUSY : SKV_WANT_ASKED;
}

static void ask(struct wanting *k, const struct block *b, enum skv_want_outcome *outcome)
{
	if (*outcome == SKV_WANT_ASKED && !look(k, b).coming) {
		k->wish.key = b->key;
		if (!wish_ask(k->p, &k->wish, k->now))
			*outcome = SKV_WANT_FULL;
	}
	k->res->count[*outcome]++;
}

/* From a place of its own each time, so that samples differ. */
static void sample(struct wanting *k, uint32_t n)
{
	const struct partition *p = k->p;
	const size_t chunks = p->n_chunk - 1;
	uint32_t from, looks = SAMPLE_LOOKS, found = 0;

	skv_random(&from, sizeof from);
	for (size_t i = 0; i < chunks && found < n && looks; i++) {
		const struct chunk *c = p->chunk[1 + (from + i) % chunks];

		looks--;
		if (!c || c->inst != k->inst)
			continue;
		for (uint32_t place = 0; place < c->fresh && found < n && looks; place++, looks--) {
			const struct block *b = chunk_place(c, place);
			enum skv_want_outcome is = b->used ? judge(k, b) : SKV_WANT_ABSENT;

			if (is == SKV_WANT_ABSENT || is == SKV_WANT_ELSEWHERE ||
			    is == SKV_WANT_THERE)
				continue;
			ask(k, b, &is);
			found++;
		}
	}
}

static int want_locked(struct partition *p, const struct skv_want_req *req,
		       struct skv_want_res *res, struct skv_arena *a, struct skv_error *err)
{
	struct wanting k = { .p = p, .res = res, .now = skv_now_ms(p->core->clock) };
	struct instance *inst;
	int rc = instance_need(p, req->tenant, req->instance, "instance", &inst, err);

	ASSERT_SHARED(p);
	k.inst = inst;
	if (rc == SKV_OK)
		rc = find_from(&k, req->from, err);
	if (rc == SKV_OK)
		rc = find_to(&k, req, err);
	if (rc != SKV_OK)
		return rc;
	if (req->n_keys == 0) {
		sample(&k, req->sample);
		return SKV_OK;
	}
	res->outcome = skv_arena_alloc(a, req->n_keys);
	if (!res->outcome)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < req->n_keys; i++) {
		const struct block *b = index_find(p, inst, req->keys[i]);
		enum skv_want_outcome is = judge(&k, b);

		ask(&k, b, &is);
		res->outcome[i] = (uint8_t)is;
	}
	return SKV_OK;
}

int skv_core_want(struct skv_core *c, const struct skv_want_req *req, struct skv_want_res *res,
		  struct skv_arena *a, struct skv_error *err)
{
	int rc = rules_gate(c, req->tenant, req->n_keys ? req->n_keys : req->sample, err);

	*res = (struct skv_want_res){ 0 };
	if (rc != SKV_OK)
		return rc;
	if (req->n_keys > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_TOO_LARGE, "keys", "at most %u keys", SKV_MAX_KEYS);
	skv_rwlock_read(&c->lock);
	rc = c->partition ? want_locked(c->partition, req, res, a, err) : gate_recovering(err);
	skv_rwlock_read_unlock(&c->lock);
	return rc;
}

/* ---- serving --------------------------------------------------------------------------------- */

/* Requeues an examined wish behind the others (later), or ends it. */
static void settle(struct found *f, enum wish_kind kind, struct wish *w, bool later)
{
	ASSERT_EXCLUSIVE(f->p);
	if (!w->until)
		w->until = f->now + WAIT_MS;
	if (kind == WISH_ASKED && later && f->now < w->until)
		wish_again(f->p, w);
	else
		wish_taken(f->p, kind);
}

/* Returns true if the storage is still one of the group's. */
static bool takes_part(const struct partition *p, const struct group *g, uint32_t volume)
{
	for (uint32_t i = 0; i < g->spec.n_storages; i++)
		if (volume_find(p, g->spec.storages[i]) == (int)volume)
			return true;
	return false;
}

/* A block that is to lie in another storage of its group. False: it stays the next one. */
static bool serve_move(struct found *f, struct wish *w)
{
	struct partition *p = f->p;
	const struct instance *inst = instance_by_id(p, w->instance);
	const struct block *b = inst && !inst->dropped && !inst->deleting
					? index_find(p, inst, w->key) : NULL;
	const enum room room = b && takes_part(p, inst->group, w->to) ? move_to(f, b, w->to)
								      : NO_ROOM;

	ASSERT_EXCLUSIVE(p);
	if (room == MORE)
		return false;
	settle(f, WISH_ASKED, w, room == LATER);
	return true;
}

/* The same, of one that is to have a copy. */
static bool serve_copy(struct found *f, struct copying *k, enum wish_kind kind, struct wish *w,
		       struct picks *stale)
{
	struct partition *p = f->p;
	struct instance *inst = instance_by_id(p, w->instance);
	struct instance *copies =
		inst && !inst->dropped && !inst->deleting ? tier_copies(p, inst) : NULL;
	const struct block *b = copies ? index_find(p, inst, w->key) : NULL;
	enum copy_state state = COPY_THERE;

	ASSERT_EXCLUSIVE(p);
	if (b && (copies_full(k) || !copies_begin(k, inst, copies, w->to)))
		return false;
	if (b)
		state = copies_consider(p, k, b, copies, stale);
	settle(f, kind, w, state == COPY_STALE || state == COPY_BUSY);
	return true;
}

/* Moves, or copies of one instance's blocks, the oldest wishes first. Each is looked at once. */
static void find(struct found *f, struct copying *k, enum wish_kind kind, struct picks *stale)
{
	struct partition *p = f->p;
	uint32_t looks = wishes_waiting(p, kind);
	struct wish w;
	bool goes_on = true;

	ASSERT_EXCLUSIVE(p);
	for (looks = looks < LOOKS ? looks : LOOKS; looks && goes_on; looks--) {
		if (!wish_next(p, kind, &w) || (w.moves ? copies_n(k) : f->n) > 0)
			return; /* for the next take */
		goes_on = w.moves ? serve_move(f, &w) : serve_copy(f, k, kind, &w, stale);
	}
}

void wanted_find(struct found *f, struct copying *k, struct picks *stale)
{
	ASSERT_EXCLUSIVE(f->p);
	assert(f->n == 0 && copies_n(k) == 0);
	for (enum wish_kind kind = 0; kind < WISH_KINDS; kind++)
		find(f, k, kind, stale);
}
