/* start_replay.c - decodes and applies the record of a start. See replay.h. */
#include "start_replay.h"

#include <skv/key_set.h>
#include <skv/mem.h>

#include <model/block.h>
#include <model/birth.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/probe.h>
#include <model/session.h>
#include <journal/format.h>
#include <journal/replay.h>
#include <ops/start.h>

static int get_runs(struct replay *r, struct skv_rd *in, struct session *s, uint32_t spec,
		    struct grants *g, struct skv_error *err)
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
			g->v[spec][g->n[spec]++] =
				(struct grant){ pl.volume, run.slab, run.first + i };
	}
	return SKV_OK;
}

static int get_lists(const struct partition *p, struct skv_rd *in, struct session *s,
		     struct skv_error *err)
{
	const uint8_t *four;
	uint32_t write = 0;
	bool uniform;

	for (uint32_t i = 0; i < s->n_keys; i++)
		s->keys[i] = get_key(in);
	index_expect(p, s->inst, s->keys, s->n_keys);
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
		s->n_deleted += s->write[i].specs == 0; /* unless it is anonymous */
		for (uint32_t spec = 0; specs_left(s->write[i].specs, spec); spec++)
			if (s->write[i].specs >> spec & 1)
				s->bytes += s->inst->spec.specs[spec].size;
	}
	return in->failed ? corrupt(err, "start: too short") : SKV_OK;
}

static int get_session_head(struct replay *r, struct skv_rd *in, struct session **out,
			    struct skv_error *err)
{
	struct skv_key id = get_key(in), tenant = get_key(in), request = get_key(in),
		       body = get_key(in);
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
	if (!inst)
		return replay_orphan(r);
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
	s->restored = true;
	s->created_ms = created;
	birth_note(r->p, generation, created);
	s->generation = generation;
	s->has_parent = has_parent;
	s->parent = parent;
	*out = s;
	return SKV_OK;
}

/* The optional members after the runs: *names is [n_keys], or NULL. */
static int get_start_tail(struct skv_rd *in, struct session *s, struct skv_bytes **names,
			  struct skv_error *err)
{
	uint8_t flags = skv_rd_left(in) ? skv_get_u8(in) : 0;
	uint64_t grace = flags & START_GRACE ? skv_get_varint(in) : 0;

	if (flags & ~(START_ANONYMOUS | START_GRACE | START_NAMES | START_INDEPENDENT))
		return corrupt(err, "start: written by a newer version?");
	if (in->failed || grace > SKV_MAX_SESSION_MS)
		return corrupt(err, "start: malformed end");
	s->anonymous = flags & START_ANONYMOUS;
	if (s->anonymous)
		s->n_deleted = 0;
	s->independent = flags & START_INDEPENDENT;
	s->grace_ms = (uint32_t)grace;
	if (s->n_left == 0 && s->anonymous) /* the session ended with its last write */
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

/* Finds the entries of the keys. */
static bool keys_are_free(const struct partition *p, const struct session *s, struct block **have)
{
	struct probe pr;
	uint32_t w = 0;

	probe_begin(&pr, p, s->inst, s->keys, s->n_keys);
	for (uint32_t i = 0; i < s->n_keys; i++) {
		const struct block *b = have[i] = probe_block(&pr, i);

		if (s->outcome[i] != SKV_START_WRITE)
			continue;
		for (uint32_t spec = 0; b && specs_left(s->write[w].specs, spec); spec++)
			if ((s->write[w].specs >> spec & 1) && b->slot[spec].state != SLOT_ABSENT)
				return false;
		w++;
	}
	return true;
}

/* A later place is not known yet: the record comes again. */
static void give_back(struct replay *r, struct grants *g)
{
	for (uint32_t spec = 0; spec < SKV_MAX_SPECS; spec++)
		for (uint32_t i = 0; i < g->n[spec]; i++)
			skv_pool_free(r->p->volume[g->v[spec][i].volume].pool,
				      (struct skv_run){ .slab = g->v[spec][i].slab,
							.first = g->v[spec][i].index,
							.count = 1 });
}

int replay_start(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct session *s = NULL;
	struct grants g = { 0 }, arrays;
	struct skv_bytes *names = NULL;
	struct block **have;
	uint32_t at, first;
	int rc = get_session_head(r, in, &s, err);

	if (rc != SKV_OK || !s)
		return rc;
	have = skv_malloc(s->n_keys * sizeof(struct block *));
	rc = have ? get_lists(r->p, in, s, err) : SKV_E_NOMEM;
	if (rc == SKV_OK)
		rc = skv_keys_duplicate(s->keys, s->n_keys, &at, &first);
	if (rc == SKV_E_CONFLICT || (rc == SKV_OK && !keys_are_free(r->p, s, have)))
		rc = corrupt(err, "start: a block has two writers");
	for (uint32_t spec = 0; rc == SKV_OK && specs_left(s->specs, spec); spec++)
		if (s->specs >> spec & 1)
			rc = get_runs(r, in, s, spec, &g, err);
	arrays = g;
	if (rc == SKV_E_NOT_FOUND)
		give_back(r, &g);
	if (rc == SKV_OK)
		rc = get_start_tail(in, s, &names, err);
	if (rc == SKV_OK)
		rc = start_link(r->p, s, &g, names, have);
	skv_free(names);
	skv_free(have);
	for (uint32_t spec = 0; spec < SKV_MAX_SPECS; spec++)
		skv_free(arrays.v[spec]);
	if (rc == SKV_OK)
		rc = session_add(r->p, s);
	if (rc != SKV_OK) {
		session_free(s);
		return rc; /* the whole partition is discarded */
	}
	return SKV_OK;
}
