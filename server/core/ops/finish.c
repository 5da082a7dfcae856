/*
 * finish.c - sessions ended by their clients: finish (all or some blocks succeeded) and abort.
 *
 * Prepare: the session is marked as ending and the record queued. Apply: written blocks become
 * visible, failed slots are given up (free after the grace, at once if quiesced). A call that
 * repeats one in flight waits for the same record; one that repeats an ended session gets its
 * outcome.
 */
#include <ops/finish.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/device.h>
#include <model/find.h>
#include <model/mark.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/session.h>
#include <model/volume.h>
#include <model/table.h>
#include <journal/change.h>
#include <journal/record.h>
#include <journal/replay.h>
#include <ops/end.h>

struct finish {
	struct change change;
	struct session *session;
	uint8_t *success;    /* bytes, one per written block */
	uint64_t *sums;      /* [n_write * n_specs], or NULL */
	uint64_t hold_until; /* for the slots that failed */
};

static uint64_t failed_hold(const struct partition *p, const struct session *s, bool quiesced)
{
	return quiesced ? 0 : session_grace_end(p, s);
}

/* ---- apply ----------------------------------------------------------------------------------- */

/* The checksum of column `spec` in row i, or NULL. Columns are the session's specs. */
static const uint64_t *sum_of(const struct session *s, const uint64_t *sums, uint32_t i,
			      uint32_t spec)
{
	uint32_t columns = (uint32_t)__builtin_popcount(s->specs);
	uint32_t column = (uint32_t)__builtin_popcount(s->specs & ((1u << spec) - 1));

	return sums ? &sums[(size_t)i * columns + column] : NULL;
}

/* Reports the blocks that the session creates to their policy, in the order of the chain. */
static void report_births(struct partition *p, const struct session *s, const uint8_t *success,
			  uint64_t use)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < s->n_write; i++) {
		struct block *b;

		core_let_read(p->core, i);
		/* No policy is asked then. */
		if (i + 1 < s->n_write && s->write[i + 1].specs && !p->loading)
			evict_expect(block_get(p, s->write[i + 1].block));
		if (!success[i] || !s->write[i].specs)
			continue;
		b = block_get(p, s->write[i].block);
		block_use(b, use);
		if (!block_has_committed(block_instance(b), b))
			evict_born(p, b, session_is_last(s, i));
	}
}

static void commit_block(struct partition *p, const struct session *s, uint32_t i,
			 const uint8_t *success, const uint64_t *sums)
{
	const struct session_write *w = &s->write[i];
	const bool followed = i + 1 < s->n_write && success[i + 1] && s->write[i + 1].specs;
	struct block *b = block_get(p, w->block);

	ASSERT_EXCLUSIVE(p);
	for (uint32_t spec = 0; specs_left(w->specs, spec); spec++)
		if (w->specs >> spec & 1)
			commit_slot(p, b, spec, sum_of(s, sums, i, spec));
	block_update_live(p, b);
	evict_consider_above(p, b, followed ? block_get(p, s->write[i + 1].block) : NULL);
}

/* Never 0. */
static uint64_t hash_outcome(const uint8_t *success, uint32_t n)
{
	uint64_t hash = skv_checksum(success, n);

	return hash ? hash : 1;
}

/* Publishes the written blocks and gives up the others, free after hold_until. */
static void finish_session(struct partition *p, struct session *s, const uint8_t *success,
			   const uint64_t *sums, uint64_t hold_until)
{
	uint64_t use = use_now(p, skv_now_ms(p->core->clock));

	ASSERT_EXCLUSIVE(p);
	assert(s->inst && !s->ending);
	s->finished_as = hash_outcome(success, s->n_write);
	report_births(p, s, success, use);
	for (uint32_t i = s->n_write; i-- > 0;) {
		/* From the end: a reader in between finds no block, or the last ones. */
		core_let_read(p->core, i);
		if (!s->write[i].specs)
			continue; /* deleted */
		if (success[i]) {
			commit_block(p, s, i, success, sums);
			s->committed++;
		} else {
			session_release(p, s, i, hold_until);
			s->failed++;
		}
	}
	COUNT(p->core, committed_blocks, s->committed);
	COUNT(p->core, failed_blocks, s->failed);
	session_end(p, s, SKV_SESSION_FINISHED);
}

static void finish_apply(struct partition *p, struct change *ch)
{
	const struct finish *f = (struct finish *)ch;

	assert(f->session->pending == ch);
	f->session->pending = NULL;
	if (f->session->inst) /* else its instance was dropped first */
		finish_session(p, f->session, f->success, f->sums, f->hold_until);
}

static void finish_undo(struct partition *p, struct change *ch)
{
	struct session *s = ((struct finish *)ch)->session;

	ASSERT_EXCLUSIVE(p);
	assert(s->pending == ch);
	s->pending = NULL;
}

static bool finish_frees_slots(const struct change *ch)
{
	const struct finish *f = (const struct finish *)ch;

	if (f->session->ending)
		return true; /* ordered after revocations of its writes */
	for (uint32_t i = 0; i < f->session->n_write; i++)
		if (!f->success[i])
			return true;
	return false;
}

static void finish_destroy(struct change *ch)
{
	struct finish *f = (struct finish *)ch;

	skv_free(f->success);
	skv_free(f->sums);
}

static int replay_finish(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct skv_key id = get_key(in);
	uint64_t hold = skv_get_varint(in), n_write = skv_get_varint(in), n_sums;
	struct session *s = NULL;
	uint8_t *success;
	uint64_t *sums;
	const uint8_t *bits;
	int rc = replay_session(r, id, &s, err);

	if (rc != SKV_OK || !s)
		return rc;
	if (in->failed || n_write != s->n_write)
		return corrupt(err, "finish: counts do not match");
	bits = skv_get_bytes(in, (n_write + 7) / 8);
	n_sums = skv_get_varint(in);
	if (in->failed || (n_sums && n_sums != n_write * (uint32_t)__builtin_popcount(s->specs)))
		return corrupt(err, "finish: checksums");
	success = skv_malloc(n_write);
	sums = n_sums ? skv_malloc(n_sums * sizeof *sums) : NULL;
	if (!success || (n_sums && !sums))
		rc = SKV_E_NOMEM;
	for (uint64_t i = 0; rc == SKV_OK && i < n_write; i++)
		success[i] = bits[i / 8] >> (i % 8) & 1;
	for (uint64_t i = 0; rc == SKV_OK && i < n_sums; i++)
		sums[i] = skv_get_u64(in);
	if (rc == SKV_OK && in->failed)
		rc = corrupt(err, "finish: too short");
	if (rc == SKV_OK)
		finish_session(r->p, s, success, sums, hold ? r->now + hold : 0);
	skv_free(success);
	skv_free(sums);
	return rc;
}

const struct change_ops finish_ops = {
	.record = { "finish", replay_finish },
	.size = sizeof(struct finish),
	.apply = finish_apply,
	.undo = finish_undo,
	.destroy = finish_destroy,
	.frees_slots = finish_frees_slots,
};

/* ---- answers --------------------------------------------------------------------------------- */

static int decode_mask(const struct session *s, const struct skv_finish_req *req, uint8_t *success,
		       struct skv_error *err)
{
	uint32_t first;

	if (req->mask_kind == SKV_MASK_COUNT && req->mask_count > s->n_write)
		return skv_fail(err, SKV_E_INVALID, "success.count",
				"%u, but the session writes %u blocks", req->mask_count,
				s->n_write);
	if (req->mask_kind == SKV_MASK_BITS && req->mask_count != s->n_write)
		return skv_fail(err, SKV_E_INVALID, "success.mask",
				"%u values, but the session writes %u blocks", req->mask_count,
				s->n_write);
	for (uint32_t i = 0; req->mask_kind == SKV_MASK_BITS && i < s->n_write; i++)
		success[i] = req->mask[i];
	if (req->mask_kind == SKV_MASK_BITS)
		return SKV_OK;
	first = req->mask_kind == SKV_MASK_ALL ? s->n_write : req->mask_count;
	memset(success, 1, first);
	memset(success + first, 0, s->n_write - first);
	return SKV_OK;
}

/* A repeated finish must report the same for each block, in any form. */
static int check_repeated(const struct session *s, const struct skv_finish_req *req,
			  struct skv_arena *a, struct skv_error *err)
{
	uint8_t *success = skv_arena_alloc(a, s->n_write + 1u);
	struct skv_error ignored;
	uint32_t n = 0;
	bool same = false;

	if (!success)
		return SKV_E_NOMEM;
	same = decode_mask(s, req, success, &ignored) == SKV_OK;
	for (uint32_t i = 0; same && i < s->n_write; i++)
		n += success[i];
	if (same)
		same = s->finished_as ? s->finished_as == hash_outcome(success, s->n_write)
				      : n == s->committed;
	return same ? SKV_OK
		    : skv_fail(err, SKV_E_SESSION_ENDED, "session",
			       "it was finished already with another outcome");
}

static int fill_outcome(const struct session *s, struct waiter *w)
{
	struct skv_finish_res *res = w->res;
	uint32_t *deleted = NULL, n = 0;

	if (s->n_deleted)
		deleted = skv_arena_calloc(w->arena, s->n_deleted, sizeof *deleted);
	if (s->n_deleted && !deleted)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; s->n_deleted && i < s->n_write; i++)
		if (session_deleted(s, i))
			deleted[n++] = i;
	assert(n == s->n_deleted);
	*res = (struct skv_finish_res){ .state = s->state, .committed = s->committed,
					.failed = s->failed, .n_deleted = n, .deleted = deleted };
	return SKV_OK;
}

/* `w` is a finish's, or (no req) an abort's. */
static int answer_ended(const struct session *s, struct waiter *w)
{
	int rc = SKV_OK;

	if (s->state == SKV_SESSION_EXPIRED)
		return skv_fail(
			w->err, SKV_E_SESSION_EXPIRED, "session",
			"its deadline has passed; start again (longer deadline_ms, or "
			"fewer blocks)");
	if (w->req && s->state == SKV_SESSION_FINISHED)
		rc = check_repeated(s, w->req, w->arena, w->err);
	return rc == SKV_OK ? fill_outcome(s, w) : rc;
}

/* The finish that ended the session: its results need no comparison. */
static int fill_own_finish(struct waiter *w, struct partition *p, const struct change *ch,
			   int status)
{
	const struct session *s = ((const struct finish *)ch)->session;

	ASSERT_SHARED(p);
	(void)p;
	if (status != SKV_OK)
		return status;
	assert(s->state == SKV_SESSION_FINISHED);
	return fill_outcome(s, w);
}

/* A call that ends a session, or waits for another call that does. */
struct end_call {
	struct waiter w; /* req is a finish's, NULL an abort's */
	const struct session *session;
};

/* For a finish that waits for another call. */
static int fill_finish(struct waiter *w, struct partition *p, const struct change *ch, int status)
{
	const struct session *s = ((const struct end_call *)w)->session;

	(void)p;
	if (status != SKV_OK)
		return status;
	if ((ch->ops == &finish_ops || w->req) && s->state == SKV_SESSION_ABORTED)
		return skv_fail(w->err, SKV_E_SESSION_ENDED, "session", "it was aborted");
	return answer_ended(s, w);
}
/* ---- entry ----------------------------------------------------------------------------------- */

/* The session that a call refers to. */
struct ending {
	const char *tenant;
	const char *instance; /* NULL = whichever */
	const char *session;
};

/* Finds the session if it belongs to the tenant (and the instance) and is still known. */
static int find(const struct partition *p, const struct ending *e, struct session **out,
		struct skv_error *err)
{
	struct instance *inst = NULL;
	struct skv_key id;
	struct session *s;
	int rc = SKV_OK;

	if (!session_id_parse(e->session, &id))
		return skv_fail(err, SKV_E_INVALID, "session", "%d hex digits", SKV_SESSION_ID_HEX);
	if (e->instance)
		rc = instance_need(p, e->tenant, e->instance, "instance", &inst, err);
	if (rc != SKV_OK)
		return rc;
	s = session_find(p, id);
	if (!s || s->starting || s->anonymous || !skv_key_equal(s->tenant, tenant_hash(e->tenant)))
		return skv_fail(err, SKV_E_NOT_FOUND, "session",
				"no such session (or it ended long ago)");
	if (inst && s->instance && s->instance != inst->id)
		return skv_fail(err, SKV_E_NOT_FOUND, "session", "not a session of instance '%s'",
				e->instance);
	*out = s;
	return SKV_OK;
}

static int check_sums(const struct session *s, const struct skv_finish_req *req,
		      struct skv_error *err)
{
	uint64_t need = (uint64_t)s->n_write * (uint32_t)__builtin_popcount(s->specs);

	if (req->n_checksums && req->n_checksums != need)
		return skv_fail(err, SKV_E_INVALID, "checksums",
				"%u values; %llu are needed (or none)", req->n_checksums,
				(unsigned long long)need);
	return SKV_OK;
}

/* Specs stored with checksums must be given them: a zero instead would make good bytes look
 * damaged. */
static int check_missing(const struct session *s, const struct skv_finish_req *req,
			 const uint8_t *success, struct skv_error *err)
{
	uint32_t at = 0;

	for (uint32_t i = 0; req->no_checksum && i < s->n_write; i++) {
		for (uint32_t spec = 0; specs_left(s->specs, spec); spec++) {
			if (!(s->specs >> spec & 1))
				continue;
			if (req->no_checksum[at] && success[i] && s->write[i].specs >> spec & 1)
				return skv_fail(
					err, SKV_E_INVALID, "checksums",
					"value %u is null, but its bytes were written: give all of "
					"them, or none",
					at);
			at++;
		}
	}
	return SKV_OK;
}

/* Only a checksum proves to a reader that memory still holds the written bytes. */
static int check_memory(const struct partition *p, const struct session *s, const uint8_t *success,
			struct skv_error *err)
{
	for (uint32_t i = 0; i < s->n_write; i++) {
		const struct block *b;

		if (!success[i] || !s->write[i].specs)
			continue;
		b = block_get(p, s->write[i].block);
		for (uint32_t spec = 0; specs_left(s->write[i].specs, spec); spec++) {
			const struct volume *v = &p->volume[b->slot[spec].volume];

			if (s->write[i].specs >> spec & 1 && v->dev->ops->forgetful)
				return skv_fail(err, SKV_E_INVALID, "checksums",
						"storage '%s' is memory: its blocks need checksums",
						v->dev->name);
		}
	}
	return SKV_OK;
}

static struct finish *make_finish(struct partition *p, struct session *s,
				  const struct skv_finish_req *req)
{
	struct finish *f = (struct finish *)change_make(&finish_ops);

	ASSERT_EXCLUSIVE(p);
	if (!f)
		return NULL;
	f->session = s;
	f->change.urgent = true;
	f->hold_until = failed_hold(p, s, req->quiesced);
	f->success = skv_malloc(s->n_write);
	f->sums = req->n_checksums ? skv_malloc(req->n_checksums * sizeof *f->sums) : NULL;
	if (f->success && (f->sums || !req->n_checksums))
		return f;
	change_destroy(&f->change);
	return NULL;
}

static int queue_finish(struct partition *p, struct session *s, const struct skv_finish_req *req,
			struct waiter *w)
{
	struct finish *f;
	int rc = check_sums(s, req, w->err);

	ASSERT_EXCLUSIVE(p);
	if (rc != SKV_OK)
		return rc;
	f = make_finish(p, s, req);
	if (!f)
		return SKV_E_NOMEM;
	rc = decode_mask(s, req, f->success, w->err);
	if (rc == SKV_OK && f->sums)
		rc = check_missing(s, req, f->success, w->err);
	else if (rc == SKV_OK)
		rc = check_memory(p, s, f->success, w->err);
	if (rc == SKV_OK) {
		if (f->sums)
			memcpy(f->sums, req->checksums, req->n_checksums * sizeof *f->sums);
		record_finish(&f->change.rec, s, f->success, f->sums, f->hold_until,
			      skv_now_ms(p->core->clock));
		rc = f->change.rec.failed ? SKV_E_NOMEM : SKV_OK;
	}
	if (rc != SKV_OK) {
		change_destroy(&f->change);
		return rc;
	}
	s->pending = &f->change;
	w->fill = fill_own_finish;
	change_wait(&f->change, w);
	change_queue(p, &f->change);
	return SKV_PENDING;
}

/* Shared by finish and abort: has it ended already, or is a change in flight? SKV_OK = continue. */
static int settle(struct partition *p, struct session *s, struct waiter *w, bool *ended)
{
	ASSERT_EXCLUSIVE(p);
	((struct end_call *)w)->session = s;
	*ended = true;
	if (s->state != SKV_SESSION_OPEN)
		return answer_ended(s, w);
	if (s->pending) {
		change_wait(s->pending, w);
		return SKV_PENDING;
	}
	if (s->inst->retired) {
		change_wait(s->inst->retiring, w);
		return SKV_PENDING;
	}
	if (s->deadline_at <= skv_now_ms(p->core->clock))
		return skv_fail(w->err, SKV_E_SESSION_EXPIRED, "session",
				"its deadline has just passed");
	*ended = false;
	return SKV_OK;
}

static struct waiter *make_waiter(struct skv_finish_res *res, struct skv_arena *a,
				  struct skv_error *err, const struct skv_done *done)
{
	struct end_call *call = skv_arena_calloc(a, 1, sizeof *call);

	if (!call)
		return NULL;
	call->w = (struct waiter){ .completion.done = *done, .fill = fill_finish, .res = res,
				   .arena = a, .err = err };
	return &call->w;
}

/* SKV_OK with the lock held and *s set: an open session without changes in flight. Otherwise the
 * call is answered (or waits), the lock is free, and *s is NULL: the analysis of locks follows
 * neither this function nor its callers. */
static int begin_ending(struct skv_core *c, const struct ending *e, struct waiter *w,
			struct session **s, struct skv_error *err) SKV_NO_LOCK_CHECK
{
	bool ended = false;
	int rc = core_gate(c, err);

	*s = NULL;
	if (rc != SKV_OK)
		return rc;
	if (!w)
		return SKV_E_NOMEM;
	core_lock(c);
	rc = c->partition ? find(c->partition, e, s, err)
			  : gate_recovering(err);
	if (rc == SKV_OK)
		rc = settle(c->partition, *s, w, &ended);
	if (rc == SKV_OK && !ended)
		return SKV_OK;
	*s = NULL;
	core_unlock(c);
	return rc;
}

int skv_core_finish(struct skv_core *c, const struct skv_finish_req *req,
		    struct skv_finish_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done) SKV_NO_LOCK_CHECK /* see begin_ending */
{
	struct ending e = { req->tenant, req->instance, req->session };
	struct waiter *w = make_waiter(res, a, err, done);
	struct session *s;
	int rc;

	if (w)
		w->req = req; /* distinguishes a finish from an abort */
	rc = begin_ending(c, &e, w, &s, err);
	if (s) {
		rc = queue_finish(c->partition, s, req, w);
		core_unlock(c);
	} else if (rc == SKV_OK && res->state == SKV_SESSION_ABORTED) {
		rc = skv_fail(err, SKV_E_SESSION_ENDED, "session", "it was aborted");
	}
	return rc;
}

/* ---- checking written blocks ----------------------------------------------------------------- */

/* Adds the slots of a block, of those specs that `res` has none of. */
static void add_places(const struct partition *p, const struct session_write *w, uint32_t *specs,
		       struct skv_written_res *res)
{
	const struct block *b = block_get(p, w->block);
	const uint32_t wanted = w->specs & ~*specs;
	struct skv_slab_info slab;

	ASSERT_SHARED(p);
	for (uint32_t spec = 0; specs_left(wanted, spec); spec++) {
		const struct slot *slot = &b->slot[spec];
		const struct device *d = p->volume[slot->volume].dev;
		struct skv_written_place *at = &res->v[res->n];

		if (!(wanted >> spec & 1) || d->n_masters || d->ops != &skv_storage_file ||
		    !skv_pool_slab(p->volume[slot->volume].pool, slot->slab, &slab))
			continue;
		assert(res->n < SKV_MAX_SPECS);
		at->root = d->root; /* as long as the storage; copied below */
		skv_slab_path(slab.place.file, at->path);
		at->offset = skv_slot_offset(&slab, slot->index);
		at->length = block_instance(b)->spec.specs[spec].size;
		res->n++;
	}
	*specs |= w->specs;
}

static int find_places(const struct partition *p, const struct session *s,
		       const struct skv_finish_req *req, struct skv_written_res *res,
		       struct skv_arena *a, struct skv_error *err)
{
	uint8_t *success = skv_arena_alloc(a, s->n_write + 1u);
	uint32_t specs = 0;
	int rc = success ? decode_mask(s, req, success, err) : SKV_E_NOMEM;

	for (uint32_t i = 0; rc == SKV_OK && i < s->n_write && specs != s->specs; i++)
		if (success[i])
			add_places(p, &s->write[i], &specs, res);
	for (uint32_t i = 0; rc == SKV_OK && i < res->n; i++) {
		res->v[i].root = skv_arena_strndup(a, res->v[i].root, strlen(res->v[i].root));
		rc = res->v[i].root ? SKV_OK : SKV_E_NOMEM;
	}
	return rc;
}

int skv_core_written(struct skv_core *c, const struct skv_finish_req *req,
		     struct skv_written_res *res, struct skv_arena *a, struct skv_error *err)
{
	struct ending e = { req->tenant, req->instance, req->session };
	struct session *s;
	int rc = core_gate(c, err);

	res->n = 0;
	if (rc != SKV_OK)
		return rc;
	skv_rwlock_read(&c->lock);
	rc = c->partition ? find(c->partition, &e, &s, err) : SKV_E_NOT_READY;
	if (rc == SKV_OK && s->state == SKV_SESSION_OPEN && !s->pending) {
		res->since_ms = s->restored ? 0 : s->deadline_at - s->deadline_ms;
		rc = find_places(c->partition, s, req, res, a, err);
	}
	skv_rwlock_read_unlock(&c->lock);
	if (rc != SKV_OK)
		res->n = 0;
	return rc;
}

static int queue_abort(struct partition *p, struct session *s, bool quiesced, struct waiter *w)
{
	struct change *end = session_queue_end(p, s, SKV_SESSION_ABORTED, quiesced);

	if (!end)
		return SKV_E_NOMEM;
	change_wait(end, w);
	return SKV_PENDING;
}

int skv_core_abort(struct skv_core *c, const struct skv_abort_req *req, struct skv_finish_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
	SKV_NO_LOCK_CHECK /* see begin_ending */
{
	struct ending e = { req->tenant, req->instance, req->session };
	struct waiter *w = make_waiter(res, a, err, done);
	struct session *s;
	int rc = begin_ending(c, &e, w, &s, err);

	if (s) {
		rc = queue_abort(c->partition, s, req->quiesced, w);
		core_unlock(c);
	}
	return rc;
}
