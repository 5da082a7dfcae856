/*
 * replay.c - decodes durable records and applies them to a partition that nobody else sees yet.
 *
 * Input is what record.c wrote, but it is treated as foreign: every count is bounded by the bytes that
 * are there, every reference is looked up, every slot must be free to be taken. A record that does
 * not fit is SKV_E_CORRUPT with its type; nothing aborts.
 *
 * Records may repeat what a checkpoint already holds (a start queued while the snapshot was taken), so
 * a known session's start is skipped. Records of an instance that nobody knows are skipped too; that does not
 * happen as long as registrations outlive the records (registry.c), and recover.c distrusts all free slots then.
 */
#include "replay.h"
#include "format.h"

#include <string.h>

/* ---- places ------------------------------------------------------------------------------------- */

static int get_place(struct replay *r, struct skv_rd *in, struct place *out, struct skv_error *err)
{
	uint64_t storage = skv_get_varint(in), file = skv_get_varint(in), unit = skv_get_varint(in);
	uint8_t log2 = skv_get_u8(in);

	if (in->failed || log2 > 31 || file > UINT32_MAX || unit > UINT32_MAX)
		return corrupt(err, "malformed slab place");
	for (out->space = 0; out->space < r->p->n_space; out->space++)
		if (r->p->space[out->space].dev->id == storage)
			break;
	if (out->space == r->p->n_space)
		return SKV_E_NOT_FOUND;
	if (file == r->p->space[out->space].claim.number && file_add_claim(&r->p->space[out->space]) != SKV_OK)
		return corrupt(err, "a file that cannot be");
	out->slab = (struct skv_slab_place){ (uint32_t)file, (uint32_t)unit, 1u << log2 };
	return SKV_OK;
}

/* Slots that are in use lie in a registered storage. */
int replay_place(struct replay *r, struct skv_rd *in, struct place *out, struct skv_error *err)
{
	int rc = get_place(r, in, out, err);

	return rc == SKV_E_NOT_FOUND ? corrupt(err, "unknown storage") : rc;
}

int replay_take(struct replay *r, struct instance *inst, uint32_t spec, const struct place *pl, struct skv_run *run,
		struct skv_error *err)
{
	uint32_t class_id, first = run->first, count = run->count;
	int rc = space_class(r->p, inst, spec, pl->space, &class_id);

	if (rc == SKV_OK)
		rc = evict_reserve(r->p, inst, pl->space, class_id);
	if (rc == SKV_OK)
		rc = skv_pool_take(r->p->space[pl->space].pool, class_id, pl->slab, first, count, run);
	if (rc == SKV_E_CORRUPT || rc == SKV_E_INVALID)
		return corrupt(err, "a slot is taken twice, or lies outside its file");
	return rc;
}

/* ---- sessions ------------------------------------------------------------------------------------ */

static int get_runs(struct replay *r, struct skv_rd *in, struct session *s, uint32_t spec, struct grants *g,
		    struct skv_error *err)
{
	uint32_t need = 0;

	for (uint32_t i = 0; i < s->n_write; i++)
		need += s->write[i].specs >> spec & 1;
	g->v[spec] = skv_malloc(need * sizeof *g->v[spec]);
	if (!g->v[spec])
		return SKV_E_NOMEM;
	while (g->n[spec] < need) {
		struct place pl;
		struct skv_run run;
		int rc = replay_place(r, in, &pl, err);
		uint64_t first = skv_get_varint(in), count = skv_get_varint(in);

		if (rc != SKV_OK)
			return rc;
		if (in->failed || first > UINT32_MAX || count == 0 || count > need - g->n[spec])
			return corrupt(err, "malformed run");
		run.first = (uint32_t)first;
		run.count = (uint32_t)count;
		rc = replay_take(r, s->inst, spec, &pl, &run, err);
		if (rc != SKV_OK)
			return rc;
		for (uint32_t i = 0; i < run.count; i++)
			g->v[spec][g->n[spec]++] = (struct grant){ pl.space, run.slab, run.first + i };
	}
	return SKV_OK;
}

static int get_lists(struct skv_rd *in, struct session *s, struct skv_error *err)
{
	const uint8_t *four;
	uint32_t write = 0;
	bool uniform;

	for (uint32_t i = 0; i < s->n_keys; i++)
		s->keys[i] = get_key(in);
	four = skv_get_bytes(in, (s->n_keys + 3) / 4);
	uniform = skv_get_u8(in) != 0;
	for (uint32_t i = 0; four && i < s->n_keys; i++) {
		s->outcome[i] = four[i / 4] >> 2 * (i % 4) & 3;
		write += s->outcome[i] == SKV_START_WRITE;
	}
	if (in->failed || write != s->n_write)
		return corrupt(err, "start: counts do not match");
	for (uint32_t i = 0; i < s->n_write; i++) {
		s->write[i].specs = uniform ? s->specs : skv_get_u32(in);
		if (s->write[i].specs & ~s->specs)
			return corrupt(err, "start: specs");
		s->n_left += s->write[i].specs != 0;
		for (uint32_t spec = 0; specs_left(s->write[i].specs, spec); spec++)
			if (s->write[i].specs >> spec & 1)
				s->bytes += s->inst->spec.specs[spec].size;
	}
	return in->failed ? corrupt(err, "start: too short") : SKV_OK;
}

static int get_session_head(struct replay *r, struct skv_rd *in, struct session **out, struct skv_error *err)
{
	struct skv_key id = get_key(in), tenant = get_key(in), request = get_key(in), body = get_key(in);
	struct instance *inst = instance_by_id(r->p, skv_get_u32(in));
	uint32_t specs = skv_get_u32(in), deadline_ms = skv_get_u32(in);
	uint64_t created = skv_get_u64(in), generation = skv_get_u64(in);
	bool has_parent = skv_get_u8(in) != 0;
	struct skv_key parent = get_key(in);
	uint64_t n_keys = skv_get_varint(in), n_write = skv_get_varint(in);
	struct session *s;

	*out = NULL;
	if (in->failed || n_keys == 0 || n_keys > SKV_MAX_KEYS || n_write == 0 || n_write > n_keys)
		return corrupt(err, "start: malformed");
	if (!inst) {
		r->orphans = true;
		return SKV_OK;
	}
	if (session_find(r->p, id))
		return SKV_OK;
	if (specs == 0 || (uint64_t)specs >> inst->spec.n_specs || !given(r, generation, n_write))
		return corrupt(err, "start: specs or generation");
	s = session_make((uint32_t)n_keys, (uint32_t)n_write);
	if (!s)
		return SKV_E_NOMEM;
	s->id = id;
	s->tenant = tenant;
	s->request = request;
	s->body = body;
	s->inst = inst;
	s->instance = inst->id;
	s->specs = specs;
	s->deadline_ms = deadline_ms;
	s->deadline_at = r->now + deadline_ms; /* the full duration again */
	s->created_ms = created;
	era_note(r->p, generation, created);
	s->generation = generation;
	s->has_parent = has_parent;
	s->parent = parent;
	*out = s;
	return SKV_OK;
}

/* What follows the runs, where there is anything: *names is [n_keys] then, or NULL. */
static int get_start_tail(struct skv_rd *in, struct session *s, struct skv_bytes **names, struct skv_error *err)
{
	uint8_t flags = skv_rd_left(in) ? skv_get_u8(in) : 0;
	uint64_t grace = flags & START_GRACE ? skv_get_varint(in) : 0;

	if (flags & ~(START_ANONYMOUS | START_GRACE | START_NAMES | START_INDEPENDENT))
		return corrupt(err, "start: written by a newer version?");
	if (in->failed || grace > SKV_MAX_SESSION_MS)
		return corrupt(err, "start: malformed end");
	s->anonymous = flags & START_ANONYMOUS;
	s->independent = flags & START_INDEPENDENT;
	s->grace_ms = (uint32_t)grace;
	if (s->n_left == 0 && s->anonymous) /* it went with its last write */
		return corrupt(err, "start: specs");
	if (!(flags & START_NAMES))
		return SKV_OK;
	*names = skv_calloc(s->n_keys, sizeof **names);
	if (!*names)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < s->n_keys; i++)
		if (s->outcome[i] == SKV_START_WRITE && !get_name(in, &(*names)[i]))
			return corrupt(err, "start: names");
	return SKV_OK;
}

static int keys_are_free(const struct partition *p, const struct session *s)
{
	uint32_t w = 0;

	for (uint32_t i = 0; i < s->n_keys; i++) {
		const struct block *b;

		if (s->outcome[i] != SKV_START_WRITE)
			continue;
		b = index_find(p, s->inst, s->keys[i]);
		for (uint32_t spec = 0; b && specs_left(s->write[w].specs, spec); spec++)
			if ((s->write[w].specs >> spec & 1) && b->slot[spec].state != SLOT_ABSENT)
				return 0;
		w++;
	}
	return 1;
}

static int replay_start(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct session *s = NULL;
	struct grants g = { 0 }, arrays;
	struct skv_bytes *names = NULL;
	uint32_t at, first;
	int rc = get_session_head(r, in, &s, err);

	if (rc != SKV_OK || !s)
		return rc;
	rc = get_lists(in, s, err);
	if (rc == SKV_OK)
		rc = keys_duplicate(s->keys, s->n_keys, &at, &first);
	if (rc == SKV_E_CONFLICT || (rc == SKV_OK && !keys_are_free(r->p, s)))
		rc = corrupt(err, "start: a block has two writers");
	for (uint32_t spec = 0; rc == SKV_OK && specs_left(s->specs, spec); spec++)
		if (s->specs >> spec & 1)
			rc = get_runs(r, in, s, spec, &g, err);
	arrays = g;
	if (rc == SKV_OK)
		rc = get_start_tail(in, s, &names, err);
	if (rc == SKV_OK)
		rc = start_link(r->p, s, &g, names, NULL);
	skv_free(names);
	for (uint32_t spec = 0; spec < SKV_MAX_SPECS; spec++)
		skv_free(arrays.v[spec]);
	if (rc == SKV_OK)
		rc = session_add(r->p, s);
	if (rc != SKV_OK) {
		session_free(s);
		return rc; /* the whole part is thrown away */
	}
	return SKV_OK;
}

/* The session a record refers to; *out NULL = skip the record. */
static int known_session(struct replay *r, struct skv_key id, struct session **out, struct skv_error *err)
{
	*out = session_find(r->p, id);
	if (*out && (*out)->state == SKV_SESSION_ABORTED)
		*out = NULL; /* its instance was dropped first, and it with it */
	else if (*out && (*out)->state != SKV_SESSION_OPEN)
		return corrupt(err, "a session ends twice");
	else if (!*out && !r->orphans)
		return corrupt(err, "the end of an unknown session");
	return SKV_OK;
}
static int replay_finish(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct skv_key id = get_key(in);
	uint64_t hold = skv_get_varint(in), n_write = skv_get_varint(in), n_sums;
	struct session *s = NULL;
	uint8_t *success;
	uint64_t *sums;
	const uint8_t *bits;
	int rc = known_session(r, id, &s, err);

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
		session_finish(r->p, s, success, sums, hold ? r->now + hold : 0);
	skv_free(success);
	skv_free(sums);
	return rc;
}

static int replay_end(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct skv_key id = get_key(in);
	uint8_t state = skv_get_u8(in);
	uint64_t hold = skv_get_varint(in);
	struct session *s = NULL;
	int rc = known_session(r, id, &s, err);

	if (rc != SKV_OK || !s)
		return rc;
	if (in->failed || (state != SKV_SESSION_ABORTED && state != SKV_SESSION_EXPIRED))
		return corrupt(err, "end: malformed");
	session_abandon(r->p, s, state, hold ? r->now + hold : 0);
	return SKV_OK;
}

/* Settles a run of a session's writes; *s is NULL once it has ended. */
static int settle_run(struct replay *r, struct session **s, uint64_t first, uint64_t n, bool success, uint64_t use,
		      struct skv_error *err)
{
	for (uint64_t i = first; i < first + n; i++) {
		bool last;

		if (!*s || i >= (*s)->n_write || !(*s)->write[i].specs)
			return corrupt(err, "settle: no such write");
		last = (*s)->n_left == 1 && (*s)->anonymous;
		session_settle(r->p, *s, (uint32_t)i, success, use);
		*s = last ? NULL : *s;
	}
	return SKV_OK;
}

static int replay_settle(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	uint64_t use = use_now(r->p, r->now);
	bool skip = false;
	struct session *s = NULL;
	int rc = SKV_OK;

	while (rc == SKV_OK && skv_rd_left(in)) {
		uint64_t what = skv_get_varint(in), n = skv_get_varint(in);
		bool same = what >> 1 & 1;

		if (!same)
			rc = known_session(r, get_key(in), &s, err);
		if (rc == SKV_OK && (in->failed || n == 0 || n > SKV_MAX_KEYS || what >> 2 > SKV_MAX_KEYS))
			rc = corrupt(err, "settle: malformed");
		if (rc != SKV_OK)
			return rc;
		skip = same ? skip : !s; /* of an instance that is not known */
		if (s && !s->anonymous && what & 1) /* others end write by write only where these are given up */
			return corrupt(err, "settle: not such a session");
		rc = skip ? SKV_OK : settle_run(r, &s, what >> 2, n, what & 1, use, err);
	}
	return rc;
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
	s->instance = skv_rd_left(in) ? skv_get_u32(in) : 0; /* older versions did not tell */
	s->finished_as = skv_rd_left(in) ? skv_get_u64(in) : 0;
	if (left > SKV_MAX_SESSION_MS + REMEMBER_MS)
		left = SKV_MAX_SESSION_MS + REMEMBER_MS;
	s->deadline_at = r->now + (left > REMEMBER_MS ? left - REMEMBER_MS : 0);
	if (in->failed || s->state == SKV_SESSION_OPEN || s->state > SKV_SESSION_EXPIRED) {
		skv_free(s);
		return corrupt(err, "ended session: malformed");
	}
	rc = session_find(r->p, s->id) ? SKV_E_CORRUPT : session_add(r->p, s);
	if (rc != SKV_OK) {
		skv_free(s);
		return rc == SKV_E_CORRUPT ? corrupt(err, "ended session: twice") : rc;
	}
	session_end(r->p, s, s->state);
	return SKV_OK;
}

/* ---- the rest -------------------------------------------------------------------------------------- */

/* The class of the slots of a hold, by its stride and what the record ends with. */
static int hold_class(struct skv_pool *pool, uint64_t stride, struct skv_rd *in, uint32_t *class_id, struct skv_error *err)
{
	uint64_t size = stride & ~(HOLD_NUMBERED | HOLD_GEOMETRY), align = stride_align(size, stride & HOLD_NUMBERED);
	bool segmented = false;

	if (stride & HOLD_GEOMETRY) {
		align = skv_get_varint(in);
		segmented = skv_get_u8(in) != 0;
	}
	if (in->failed || size == 0)
		return corrupt(err, "hold: malformed");
	return segmented ? skv_pool_class_segmented(pool, size, align, class_id) : skv_pool_class(pool, size, align, class_id);
}

static int replay_hold(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct place pl;
	struct skv_run run;
	uint32_t class_id;
	int rc = get_place(r, in, &pl, err);
	uint64_t stride = skv_get_u64(in), first = skv_get_varint(in), count = skv_get_varint(in);
	uint64_t left = skv_get_varint(in);
	struct skv_pool *pool;

	if (rc == SKV_E_NOT_FOUND)
		return SKV_OK; /* the storage was deleted, and the files with it */
	if (rc == SKV_OK && (in->failed || first > UINT32_MAX || count > UINT32_MAX))
		rc = corrupt(err, "hold: malformed");
	if (rc != SKV_OK)
		return rc;
	pool = r->p->space[pl.space].pool;
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

	if (in->failed)
		return corrupt(err, "horizon: too short");
	memcpy(r->boot_id, boot, 36);
	r->boot_id[36] = '\0';
	r->horizon_until = until;
	r->horizon_span = span;
	r->clean = clean != 0;
	r->freeze_ms = freeze > SKV_MAX_SESSION_MS * 2ull ? SKV_MAX_SESSION_MS * 2ull : freeze;
	return SKV_OK;
}

/* A time that this boot's clock tells, or that lies so far ahead again. Nothing is leased for longer than any lease. */
static uint64_t get_end(const struct replay *r, struct skv_rd *in)
{
	uint64_t until = skv_get_u64(in), left = skv_get_varint(in);

	if (left > SKV_MAX_LEASE_MS + HORIZON_AHEAD_MS)
		left = SKV_MAX_LEASE_MS + HORIZON_AHEAD_MS;
	if (strcmp(r->boot_id, r->p->core->boot_id) != 0 || until > r->now + left)
		until = r->now + left;
	return until;
}

/* Until when blocks that go with this record may be leased. */
static uint64_t get_leased_until(const struct replay *r, struct skv_rd *in)
{
	bool same_boot = strcmp(r->boot_id, r->p->core->boot_id) == 0;
	uint32_t span = 2 * r->p->core->o.lease_max_ms;

	if (!skv_rd_left(in)) { /* older versions did not tell: as long as any lease may run */
		span = span > r->horizon_span ? span : r->horizon_span;
		return same_boot ? r->horizon_until : r->now + span;
	}
	return get_end(r, in);
}

static int replay_horizons(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	while (skv_rd_left(in)) {
		struct instance *inst = instance_by_id(r->p, skv_get_u32(in));
		uint64_t until = get_end(r, in);

		if (!in->failed && inst && inst->horizon < until)
			inst->horizon = until;
	}
	return in->failed ? corrupt(err, "horizons: too short") : SKV_OK;
}

/* Marks have them once the time is known by which they are written there. */
static int replay_leases(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	uint32_t inst = skv_get_u32(in);

	while (skv_rd_left(in)) {
		struct lease l = { .inst = inst, .key = get_key(in), .until = get_end(r, in) };
		void *v = r->p->lease;

		if (skv_grow(&v, &r->p->cap_lease, r->p->n_lease + 1, sizeof *r->p->lease) != SKV_OK)
			return SKV_E_NOMEM;
		r->p->lease = v;
		r->p->lease[r->p->n_lease++] = l;
	}
	return in->failed ? corrupt(err, "leases: too short") : SKV_OK;
}

static int replay_clear(struct replay *r, struct skv_rd *in, bool drop, struct skv_error *err)
{
	struct instance *inst = instance_by_id(r->p, skv_get_u32(in));
	uint64_t until = get_leased_until(r, in);

	if (in->failed)
		return corrupt(err, "clear: too short");
	if (!inst) {
		r->orphans = true;
		return SKV_OK;
	}
	inst->deleting |= drop; /* its registration goes next: registry_finish_drops */
	clear_replay(r->p, inst, until);
	return SKV_OK;
}

static int replay_pins(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct instance *inst = instance_by_id(r->p, skv_get_u32(in));
	int rc = SKV_OK;

	while (inst && rc == SKV_OK && skv_rd_left(in)) {
		struct block *b = index_find(r->p, inst, get_key(in));
		uint8_t kind = skv_get_u8(in);
		uint64_t left = skv_get_varint(in);

		if (in->failed || kind > SKV_PIN_HARD || left > SKV_MAX_PIN_MS)
			return corrupt(err, "pin: malformed");
		if (!b || !pin_keeps_bytes(inst, b)) /* it is passed over */
			continue;
		rc = pins_reserve(&inst->pins, 1);
		if (rc == SKV_OK)
			pin_set(r->p, b, (struct pin){ .kind = kind, .until = left ? r->now + left : 0 });
	}
	return in->failed ? corrupt(err, "pin: too short") : rc;
}

static int replay_counters(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	uint64_t generation = skv_get_u64(in);

	if (in->failed || !given(r, generation, 0))
		return corrupt(err, "counters: malformed");
	return SKV_OK;
}

static int replay_eras(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	uint64_t n = skv_get_varint(in);

	for (uint64_t i = 0; i < n && !in->failed; i++) {
		uint64_t generation = skv_get_varint(in), wall_ms = skv_get_varint(in);

		if (!in->failed)
			era_note(r->p, generation, wall_ms);
	}
	return in->failed ? corrupt(err, "eras: too short") : SKV_OK;
}

static int replay_one(struct replay *r, uint8_t type, struct skv_rd *in, struct skv_error *err)
{
	switch (type) {
	case RECORD_START: return replay_start(r, in, err);
	case RECORD_FINISH: return replay_finish(r, in, err);
	case RECORD_END: return replay_end(r, in, err);
	case RECORD_REMOVE: return replay_remove(r, in, err);
	case RECORD_HORIZON: return replay_horizon(r, in, err);
	case RECORD_DROP: return replay_clear(r, in, true, err);
	case RECORD_CLEAR: return replay_clear(r, in, false, err);
	case RECORD_SETTLE: return replay_settle(r, in, err);
	case RECORD_PIN: return replay_pins(r, in, err);
	case RECORD_HORIZONS: return replay_horizons(r, in, err);
	case RECORD_LEASES: return replay_leases(r, in, err);
	case RECORD_BLOCKS: return replay_blocks(r, in, false, err);
	case RECORD_NAMED_BLOCKS: return replay_blocks(r, in, true, err);
	case RECORD_ENDED: return replay_ended(r, in, err);
	case RECORD_HOLD: return replay_hold(r, in, err);
	case RECORD_COUNTERS: return replay_counters(r, in, err);
	case RECORD_ERAS: return replay_eras(r, in, err);
	default: return corrupt(err, "unknown type: written by a newer version?");
	}
}

int replay_records(struct replay *r, const void *bytes, size_t n, struct skv_error *err)
{
	const uint8_t *at = bytes;

	while (n > 0) {
		size_t len = record_length(at, n);
		struct skv_rd in, sum;
		uint8_t type, version;
		int rc;

		if (len == 0)
			return corrupt(err, "malformed length");
		in = skv_rd_make(at + 4, len - 12);
		sum = skv_rd_make(at + len - 8, 8);
		if (skv_get_u64(&sum) != skv_checksum(at + 4, len - 12))
			return corrupt(err, "wrong checksum");
		type = skv_get_u8(&in);
		version = skv_get_u8(&in);
		skv_get_u16(&in);
		if (version != RECORD_VERSION)
			return skv_fail(err, SKV_E_UNSUPPORTED, NULL, "record version %u: use a newer slabkvd", version);
		rc = replay_one(r, type, &in, err);
		if (rc != SKV_OK)
			return rc;
		at += len;
		n -= len;
	}
	return SKV_OK;
}
