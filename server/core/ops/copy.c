/*
 * copy.c - copies of blocks in the fast tier of their group, made by movers (decision 0060).
 *
 * A *take* of moves that finds nothing draining gives its mover some blocks that are wanted there
 * (want.c), or lack a copy (heal.c). A session is started for the mover in the copy instance, and
 * the move has the session's id and slots. The finish of the move finishes the session, with the
 * checksums of the blocks. So a copy begins, ends, expires and is replayed like every other write;
 * only its session is durable.
 *
 * A block that was removed or moved while it was read is not copied: the read bytes may not be its
 * own. A tier's copy of an earlier content of a block is removed first.
 */
#include "copy.h"
#include "move_find.h"

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/device.h>
#include <model/files.h>
#include <model/find.h>
#include <model/index.h>
#include <model/move.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/session.h>
#include <model/table.h>
#include <model/tier.h>
#include <model/volume.h>
#include <model/wish.h>
#include <storage/device.h>
#include <evict/remove.h>
#include <ops/start.h>

/* ---- choosing blocks to copy ----------------------------------------------------------------- */

/* Whole blocks of one instance, and their outcome. */
struct copying {
	struct skv_core *core;
	uint64_t fence; /* of the partition: not of its next load */
	uint32_t instance, n_specs;
	uint32_t to; /* the only volume that they may be copied to, or WISH_ANYWHERE */
	uint32_t max;  /* slots, */
	uint32_t most; /* and blocks */
	struct skv_key keys[MAX_MOVE_SLOTS];
	struct move_slot source[MAX_MOVE_SLOTS]; /* [n_keys * n_specs] */
	struct skv_start_req start;
	struct skv_start_res started;
	/* The mover's call: */
	struct skv_arena *arena;
	struct skv_move_take_res *res;
	struct skv_error *err;
	struct skv_done done;
};

/* Returns true if a mover can read and verify the whole block. */
static bool can_be_read(const struct partition *p, const struct block *b)
{
	const uint32_t n = block_instance(b)->spec.n_specs;

	for (uint32_t s = 0; s < n; s++)
		if (b->slot[s].state != SLOT_COMMITTED || !b->slot[s].has_checksum ||
		    !slot_serves(p, &b->slot[s]) || move_has(p, b, s))
			return false;
	return true;
}

static enum copy_state state_of(const struct partition *p, const struct block *b,
				const struct block *copy)
{
	const uint32_t n = block_instance(b)->spec.n_specs;
	enum copy_state state = COPY_THERE;

	for (uint32_t s = 0; copy && s < n; s++) {
		const struct slot *c = &copy->slot[s];

		if (c->state == SLOT_WRITING || c->state == SLOT_REMOVING)
			return COPY_BUSY;
		if (c->state == SLOT_ABSENT)
			state = COPY_WANTED;
	}
	for (uint32_t s = 0; copy && s < n; s++) {
		const struct slot *c = &copy->slot[s];

		if (c->state != SLOT_COMMITTED)
			continue;
		if (!c->has_checksum || c->checksum != b->slot[s].checksum)
			return COPY_STALE;
		/* The slot may be readable later, or its file is given up. */
		if (!slot_serves(p, c))
			return COPY_BUSY;
	}
	return copy ? state : COPY_WANTED;
}

bool copies_begin(struct copying *k, const struct instance *inst, const struct instance *copies,
		  uint32_t to)
{
	struct skv_start_req *q = &k->start;

	if (k->start.n_keys)
		return inst->id == k->instance && to == k->to;
	k->to = to;
	if (inst->id == k->instance)
		return true;
	k->instance = inst->id;
	k->n_specs = inst->spec.n_specs;
	k->most = k->max / k->n_specs ? k->max / k->n_specs : 1; /* at least one block */
	q->tenant = skv_arena_strndup(k->arena, copies->spec.tenant, strlen(copies->spec.tenant));
	q->instance = skv_arena_strndup(k->arena, copies->spec.id, strlen(copies->spec.id));
	return q->tenant && q->instance;
}

uint32_t copies_n(const struct copying *k) { return k->start.n_keys; }

bool copies_full(const struct copying *k) { return copies_n(k) && k->start.n_keys == k->most; }

enum copy_state copies_consider(struct partition *p, struct copying *k, const struct block *b,
				const struct instance *copies, struct picks *stale)
{
	struct block *copy = index_find(p, copies, b->key);
	const enum copy_state state = can_be_read(p, b) ? state_of(p, b, copy) : COPY_BUSY;

	ASSERT_EXCLUSIVE(p);
	assert(!copies_full(k) && k->instance == block_instance(b)->id);
	if (state == COPY_WANTED) {
		for (uint32_t s = 0; s < k->n_specs; s++)
			k->source[k->start.n_keys * k->n_specs + s] = move_source_of(b, s);
		k->keys[k->start.n_keys++] = b->key;
	} else if (state == COPY_STALE) {
		(void)remove_mark(p, stale, copy); /* out of memory: the next time */
	}
	return state;
}

struct copying *copies_find(struct found *f, uint32_t deadline_ms, struct skv_arena *a)
{
	struct partition *p = f->p;
	struct copying *k = skv_arena_calloc(a, 1, sizeof *k);
	struct picks stale = { 0 };

	ASSERT_EXCLUSIVE(p);
	_Static_assert(SKV_MAX_SPECS <= MAX_MOVE_SLOTS, "a move has room for a block");
	if (!k)
		return NULL;
	k->arena = a;
	k->core = p->core;
	k->fence = p->fence;
	k->max = f->max;
	k->to = WISH_ANYWHERE;
	wanted_find(f, k, &stale);
	if (!copies_n(k) && !f->n)
		heal_find(f, k, &stale);
	if (stale.n)
		(void)remove_queue(p, &stale, NULL);
	skv_free(stale.v);
	if (k->to < p->n_volume && p->volume[k->to].dev)
		k->start.storage = skv_arena_strndup(a, p->volume[k->to].dev->name,
						     strlen(p->volume[k->to].dev->name));
	k->start.keys = k->keys;
	k->start.request_id = "";
	k->start.independent = true; /* each is evicted by its own use */
	k->start.deadline_ms = deadline_ms;
	assert(!f->n || !copies_n(k));
	return copies_n(k) ? k : NULL;
}

/* ---- take ------------------------------------------------------------------------------------ */

/* Makes the move of the blocks that the session writes. */
static struct move *make_move(struct partition *p, const struct copying *k,
			      const struct session *s)
{
	struct move *m = skv_malloc(sizeof *m + MAX_MOVE_SLOTS * sizeof *m->v);
	uint32_t write = 0;

	ASSERT_EXCLUSIVE(p);
	if (!m)
		return NULL;
	*m = (struct move){ .id = s->id, .copies = true, .deadline_at = s->deadline_at,
			    .deadline_ms = s->deadline_ms };
	for (uint32_t i = 0; i < s->n_keys; i++) {
		const struct session_write *sw = &s->write[write];

		if (s->outcome[i] != SKV_START_WRITE)
			continue;
		assert(write < s->n_write);
		for (uint32_t spec = 0; specs_left(sw->specs, spec); spec++) {
			const struct slot *to = &block_get(p, sw->block)->slot[spec];
			struct move_slot *v = &m->v[m->n];

			if (!(sw->specs >> spec & 1))
				continue;
			assert(m->n < MAX_MOVE_SLOTS && to->state == SLOT_WRITING);
			*v = k->source[i * k->n_specs + spec];
			v->write = write;
			v->to_volume = to->volume;
			v->to_slab = to->slab;
			v->to_index = to->index;
			m->n++;
		}
		write++;
	}
	return m;
}

static int fill(struct partition *p, struct copying *k, struct session *s)
{
	const uint64_t now = skv_now_ms(p->core->clock);
	struct move *m;
	int rc;

	ASSERT_EXCLUSIVE(p);
	if (p->n_moves == MAX_MOVES)
		return SKV_OK; /* the session expires */
	m = make_move(p, k, s);
	if (!m || m->n == 0) {
		skv_free(m);
		return m ? SKV_OK : SKV_E_NOMEM;
	}
	move_add(p, m);
	COUNT(p->core, move_starts, m->n);
	rc = move_tell(p, m, k->arena, k->res);
	k->res->deadline_ms = s->deadline_at > now ? (uint32_t)(s->deadline_at - now) : 0;
	return rc;
}

/* Answers the mover. A missing target, or one without space, becomes SKV_OK without a copy. */
static int answer(struct copying *k, int status)
{
	struct partition *p;
	struct session *s = NULL;
	struct skv_key id;

	if (status != SKV_OK) {
		skv_error_clear(k->err);
		return status == SKV_E_NOMEM || status == SKV_E_NOT_OWNER ||
				       status == SKV_E_NOT_READY
			       ? status
			       : SKV_OK;
	}
	core_lock(k->core);
	p = k->core->partition;
	if (p && p->fence == k->fence && session_id_parse(k->started.session, &id))
		s = session_find(p, id);
	if (s && s->state == SKV_SESSION_OPEN && !s->pending)
		status = fill(p, k, s);
	core_unlock(k->core);
	return status;
}

static void started(void *ctx, int status)
{
	struct copying *k = ctx;
	const struct skv_done done = k->done;

	done.fn(done.ctx, answer(k, status));
}

int copies_start(struct skv_core *c, struct copying *k, struct skv_move_take_res *res,
		 struct skv_error *err, const struct skv_done *done)
{
	const struct skv_done then = { started, k };
	int rc;

	assert(k->core == c && k->start.n_keys > 0);
	k->res = res;
	k->err = err;
	k->done = *done;
	rc = start_begin(c, &k->start, &k->started, k->arena, err, &then);
	return rc == SKV_PENDING ? rc : answer(k, rc);
}

/* ---- finish ---------------------------------------------------------------------------------- */

struct copied {
	struct skv_core *core;
	uint32_t n, good; /* slots, and those of blocks that are committed */
	uint32_t blocks;  /* these */
	uint64_t bytes;
	struct skv_finish_req finish;
	struct skv_finish_res finished;
	char session[SKV_SESSION_ID_HEX + 1];
	struct skv_move_finish_res *res;
	struct skv_done done;
};

/* Of each of the session's blocks: are all of its slots copied, of a block that is as it was? */
static void judge(const struct partition *p, const struct move *m,
		  const struct skv_move_finish_req *req, struct copied *k, bool *good,
		  uint64_t *sums, uint32_t columns)
{
	memset(good, true, k->finish.mask_count);
	for (uint32_t i = 0; i < m->n; i++) {
		const struct move_slot *v = &m->v[i];

		assert(v->write < k->finish.mask_count && v->spec < columns);
		good[v->write] &= req->moved[i] && move_source(p, v);
		sums[(size_t)v->write * columns + v->spec] = v->checksum;
	}
	for (uint32_t i = 0; i < k->finish.mask_count; i++)
		k->blocks += good[i];
	for (uint32_t i = 0; i < m->n; i++) {
		k->good += good[m->v[i].write];
		k->bytes += good[m->v[i].write] ? m->v[i].length : 0;
	}
}

static struct copied *make_copied(struct partition *p, struct move *m, const struct session *s,
				  const struct skv_move_finish_req *req, struct skv_arena *a)
{
	const char *tenant = s->inst->spec.tenant;
	const uint32_t columns = (uint32_t)__builtin_popcount(s->specs);
	struct copied *k = skv_arena_calloc(a, 1, sizeof *k);
	uint64_t *sums = skv_arena_calloc(a, (size_t)s->n_write * columns, sizeof *sums);
	bool *good = skv_arena_calloc(a, s->n_write, sizeof *good);

	if (!k || !sums || !good)
		return NULL;
	k->core = p->core;
	k->n = m->n;
	k->finish = (struct skv_finish_req){
		.tenant = skv_arena_strndup(a, tenant, strlen(tenant)),
		.session = k->session, .mask_kind = SKV_MASK_BITS, .mask_count = s->n_write,
		.mask = good, .n_checksums = s->n_write * columns, .checksums = sums,
		.quiesced = req->quiesced,
	};
	session_id_text(m->id, k->session);
	judge(p, m, req, k, good, sums, columns);
	return k->finish.tenant ? k : NULL;
}

int copies_settle(struct partition *p, struct move *m, const struct skv_move_finish_req *req,
		  struct skv_arena *a, struct copied **out, struct skv_error *err)
{
	const struct session *s = session_find(p, m->id);

	ASSERT_EXCLUSIVE(p);
	assert(m->copies && req->n_moved == m->n);
	if (!s || s->state != SKV_SESSION_OPEN || s->inst->retired) {
		move_destroy(p, m);
		return skv_fail(err, SKV_E_NOT_FOUND, "move",
				"what it copied to was cleared or deleted");
	}
	*out = make_copied(p, m, s, req, a);
	if (!*out)
		return SKV_E_NOMEM;
	move_destroy(p, m);
	return SKV_OK;
}

static int tell(struct copied *k, int status)
{
	const bool good = status == SKV_OK && k->finished.committed == k->blocks;

	if (status != SKV_OK)
		return status;
	k->res->moved = good ? k->good : 0;
	k->res->failed = k->n - k->res->moved;
	COUNT(k->core, copied_blocks, k->finished.committed);
	COUNT(k->core, copied_bytes, good ? k->bytes : 0);
	COUNT(k->core, move_failures, k->res->failed);
	return status;
}

static void finished(void *ctx, int status)
{
	struct copied *k = ctx;
	const struct skv_done done = k->done;

	done.fn(done.ctx, tell(k, status));
}

int copies_finish(struct skv_core *c, struct copied *k, struct skv_arena *a,
		  struct skv_move_finish_res *res, struct skv_error *err,
		  const struct skv_done *done)
{
	const struct skv_done then = { finished, k };
	int rc;

	assert(k->core == c);
	k->res = res;
	k->done = *done;
	rc = skv_core_finish(c, &k->finish, &k->finished, a, err, &then);
	return rc == SKV_PENDING ? rc : tell(k, rc);
}
