/*
 * replay.c - decodes and applies records found in checkpoints (HOLD also in the journal), and those
 * of a change of ownership. Records of a change are replayed by its kind.
 */
#include <recovery/replay.h>

#include <string.h>

#include <skv/mem.h>

#include <model/birth.h>
#include <model/leases.h>
#include <model/session.h>
#include <model/volume.h>
#include <journal/change.h>
#include <journal/end.h>
#include <journal/format.h>
#include <journal/replay.h>

/* Which of its writes were deleted, unless all were, or none. */
static int get_deleted(struct skv_rd *in, struct session *s, struct skv_error *err)
{
	const uint64_t n = skv_rd_left(in) ? skv_get_varint(in) : 0;
	const uint8_t *deleted;
	uint64_t set = 0;

	if (in->failed || n > s->n_write || n > SKV_MAX_KEYS)
		return corrupt(err, "ended session: deleted blocks");
	s->n_deleted = (uint32_t)n;
	if (n == 0 || n == s->n_write)
		return SKV_OK;
	deleted = skv_get_bytes(in, s->n_write);
	for (uint32_t i = 0; deleted && i < s->n_write; i++)
		set += deleted[i] == 1;
	if (set != n)
		return corrupt(err, "ended session: deleted blocks");
	s->outcome = skv_malloc(s->n_write);
	if (!s->outcome)
		return SKV_E_NOMEM;
	memcpy(s->outcome, deleted, s->n_write);
	return SKV_OK;
}

static int replay_ended(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct session *s = skv_calloc(1, sizeof *s);
	uint64_t left;
	int rc;

	if (!s)
		return SKV_E_NOMEM;
	s->id = get_key(in);
	s->tenant = get_key(in);
	s->request = get_key(in);
	s->body = get_key(in);
	s->state = skv_get_u8(in);
	s->n_write = skv_get_u32(in);
	s->committed = skv_get_u32(in);
	s->failed = skv_get_u32(in);
	left = skv_get_varint(in);
	s->instance = skv_get_u32(in);
	s->finished_as = skv_rd_left(in) ? skv_get_u64(in) : 0; /* left out if 0 */
	rc = get_deleted(in, s, err);
	if (rc != SKV_OK) {
		session_free(s);
		return rc;
	}
	if (left > SKV_MAX_SESSION_MS + REMEMBER_MS)
		left = SKV_MAX_SESSION_MS + REMEMBER_MS;
	s->deadline_at = r->now + (left > REMEMBER_MS ? left - REMEMBER_MS : 0);
	if (in->failed || s->state == SKV_SESSION_OPEN || s->state > SKV_SESSION_DELETED) {
		session_free(s);
		return corrupt(err, "ended session: malformed");
	}
	rc = session_find(r->p, s->id) ? SKV_E_CORRUPT : session_add(r->p, s);
	if (rc != SKV_OK) {
		session_free(s);
		return rc == SKV_E_CORRUPT ? corrupt(err, "ended session: twice") : rc;
	}
	session_end(r->p, s, s->state);
	return SKV_OK;
}

/* The class of a hold's slots, from its stride and the end of the record. */
static int hold_class(struct skv_pool *pool, uint64_t stride, struct skv_rd *in, uint32_t *class_id,
		      struct skv_error *err)
{
	uint64_t size = stride & ~(HOLD_NUMBERED | HOLD_GEOMETRY),
		 align = stride_align(size, stride & HOLD_NUMBERED);
	bool segmented = false;

	if (stride & HOLD_GEOMETRY) {
		align = skv_get_varint(in);
		segmented = skv_get_u8(in) != 0;
	}
	if (in->failed || size == 0)
		return corrupt(err, "hold: malformed");
	return segmented ? skv_pool_class_segmented(pool, size, align, class_id)
			 : skv_pool_class(pool, size, align, class_id);
}

static int replay_hold(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct place pl;
	struct skv_run run;
	uint32_t class_id;
	/* A standby sees those of moves, to files that it may not know yet. */
	int rc = r->follows ? replay_place(r, in, &pl, err) : replay_get_place(r, in, &pl, err);
	uint64_t stride = skv_get_u64(in), first = skv_get_varint(in), count = skv_get_varint(in);
	uint64_t left = skv_get_varint(in);
	struct skv_pool *pool;

	if (rc == SKV_E_NOT_FOUND && !r->follows)
		return SKV_OK; /* the storage was deleted, with its files */
	if (rc == SKV_OK && (in->failed || first > UINT32_MAX || count > UINT32_MAX))
		rc = corrupt(err, "hold: malformed");
	if (rc != SKV_OK)
		return rc;
	pool = r->p->volume[pl.volume].pool;
	rc = hold_class(pool, stride, in, &class_id, err);
	if (rc == SKV_OK)
		rc = skv_pool_take(pool, class_id, pl.slab, (uint32_t)first, (uint32_t)count, &run);
	if (rc == SKV_E_CORRUPT || rc == SKV_E_INVALID)
		return corrupt(err, "hold: the slots are taken, or lie outside their file");
	if (rc == SKV_OK)
		skv_pool_hold(pool, run, r->now + left);
	return rc;
}

static int replay_horizon(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	const uint8_t *boot = skv_get_bytes(in, 36);
	uint64_t until = skv_get_u64(in);
	uint32_t span = skv_get_u32(in);
	uint8_t clean = skv_get_u8(in);
	uint64_t freeze = skv_get_varint(in);
	uint64_t base = skv_get_u64(in), lead = skv_get_varint(in);

	if (in->failed)
		return corrupt(err, "horizon: too short");
	r->birth_base = (int64_t)base;
	r->birth_lead = lead;
	memcpy(r->boot_id, boot, 36);
	r->boot_id[36] = '\0';
	r->horizon_until = until;
	r->horizon_span = span;
	r->clean = clean != 0;
	r->freeze_ms = freeze > SKV_MAX_SESSION_MS * 2ull ? SKV_MAX_SESSION_MS * 2ull : freeze;
	return SKV_OK;
}

/* Replays leases. They enter the marks once the clock of uses is known. */
static int replay_leases(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	uint32_t inst = skv_get_u32(in);

	while (skv_rd_left(in)) {
		struct lease l = { .inst = inst, .key = get_key(in),
				   .until = replay_get_end(r, in) };
		void *v = r->p->lease;

		if (skv_grow(&v, &r->p->cap_lease, r->p->n_lease + 1, sizeof *r->p->lease) !=
		    SKV_OK)
			return SKV_E_NOMEM;
		r->p->lease = v;
		r->p->lease[r->p->n_lease++] = l;
	}
	return in->failed ? corrupt(err, "leases: too short") : SKV_OK;
}

static int replay_births(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	uint64_t n = skv_get_varint(in);

	for (uint64_t i = 0; i < n && !in->failed; i++) {
		uint64_t generation = skv_get_varint(in), ms = skv_get_varint(in);

		if (!in->failed)
			birth_note(r->p, generation, ms);
	}
	return in->failed ? corrupt(err, "eras: too short") : SKV_OK;
}

const struct record_ops ended_record = { "ended", replay_ended };
const struct record_ops hold_record = { "hold", replay_hold };
const struct record_ops horizon_record = { "horizon", replay_horizon };
const struct record_ops leases_record = { "leases", replay_leases };
const struct record_ops eras_record = { "eras", replay_births };

/* In a checkpoint: the end of the journal that it covers. At the begin of a batch: that one's
 * number; recover.c has checked it, and takes the batch's checksum when all of it is read. */
static int replay_link(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct journal_end end = { .epoch = skv_get_varint(in) };

	end.number = skv_get_varint(in);
	end.chain = skv_get_u64(in);
	if (in->failed)
		return corrupt(err, "link: malformed");
	journal_link(r->p, &end);
	return SKV_OK;
}

const struct record_ops link_record = { "link", replay_link };
