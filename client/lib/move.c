/*
 * move.c - slabkv_move: takes blocks to move or verify, does the work, reports to the manager. No
 * state; any thread.
 *
 * Law: a block that is finished as moved was read whole, had its writer's checksum, and is synced
 * at its new location; nothing is written after the deadline. A mover never makes a checksum of its
 * own. Portions of PORTION bytes go through one buffer.
 */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORTION (64ull << 20)
#define ALIGN 4096u

struct mover {
	struct slabkv *kv;
	struct skv_arena *a;
	struct skv_move_view view;
	uint64_t submit_until_ms;
	struct skv_files files;
	bool *moved; /* [n_slots]: of a check, right */
	bool *damaged; /* [n_slots] */
	char *buffer;
	uint64_t cap;
	bool in_flight;
	struct slabkv_moved counts;
	struct skv_error first;
};

static void note(struct mover *m, const struct skv_error *err)
{
	if (m->first.status == SKV_OK && err->status != SKV_OK)
		m->first = *err;
}

/* ---- the manager ----------------------------------------------------------------------------- */

/* Returns true if all indexes are in range, and no slot is larger than permitted. */
static bool fits(const struct skv_move_view *v)
{
	struct skv_key k;

	if (v->n_slots == 0)
		return true;
	if (v->n_slots > SKV_MAX_MOVE_SLOTS || !skv_key_from_hex(v->move, strlen(v->move), &k))
		return false;
	for (uint32_t i = 0; i < v->n_slots; i++) {
		const struct skv_move_slot *s = &v->slots[i];
		char *end;

		if (s->length == 0)
			continue;
		strtoull(s->checksum, &end, 16);
		if (s->from_file >= v->n_files || *end ||
		    (!v->checks && s->to_file >= v->n_files) ||
		    strlen(s->checksum) != 16 || s->length > SKV_MAX_SPEC_SIZE)
			return false;
	}
	return true;
}

static int take(struct mover *m, const struct skv_move_take_req *req, struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = m->a };
	struct skv_exchange x;
	int rc;

	skv_exchange_begin(&x, "move_take", "POST", "/v1/moves/take");
	skv_pb_write_move_take(&x.body, req);
	rc = skv_exchange_do(m->kv, &x, err);
	if (rc == SKV_OK)
		rc = skv_pb_read_move_view(&in, SKV_ANSWER(x), &m->view, err);
	if (rc == SKV_OK && !fits(&m->view))
		rc = skv_fail(err, SKV_E_INTERNAL, NULL,
			      "move_take: the manager's answer makes no sense");
	m->submit_until_ms = x.answer.sent_ms + m->view.deadline_ms;
	skv_exchange_end(&x);
	return rc;
}

static int finish(struct mover *m, struct skv_error *err)
{
	const struct skv_move_finish_req req = { .n_moved = m->view.n_slots, .moved = m->moved,
						 .damaged = m->damaged, .quiesced = !m->in_flight };
	struct skv_move_finish_res res = { 0 };
	const struct skv_v1_in in = { .arena = m->a };
	struct skv_exchange x;
	int rc;

	skv_exchange_begin(&x, "move_finish", "POST", "/v1/moves/%s/finish", m->view.move);
	skv_pb_write_move_finish_req(&x.body, &req);
	rc = skv_exchange_do(m->kv, &x, err);
	if (rc == SKV_OK)
		rc = skv_pb_read_move_finish_res(&in, SKV_ANSWER(x), &res, err);
	m->counts.moved = res.moved;
	m->counts.failed = rc == SKV_OK ? res.failed : m->view.n_slots;
	m->counts.hidden = res.hidden;
	if (res.moved == 0)
		m->counts.bytes = 0;
	skv_exchange_end(&x);
	return rc;
}

/* ---- the bytes ------------------------------------------------------------------------------- */

/* Slots from..to-1, which are consecutive in the buffer. */
struct portion {
	uint32_t from, to;
	struct slabkv_buf *buf;     /* [to - from] */
	struct slabkv_block *block; /* of one buffer each */
};

static struct skv_location location(const struct mover *m, uint32_t i, bool write)
{
	const struct skv_move_slot *s = &m->view.slots[i];

	return (struct skv_location){
		.file = write ? s->to_file : s->from_file,
		.offset = write ? s->to_offset : s->from_offset,
		.length = s->length,
		.generation = s->generation,
		.checksum = strtoull(s->checksum, NULL, 16),
		.has_checksum = true,
	};
}

/* Verifies checksums. arrived[i] is true if slot i was read completely. */
static void prove(struct mover *m, const struct portion *p, struct skv_transfer *t)
{
	for (uint32_t i = 0; i < t->n_pieces; i++) {
		struct skv_piece *piece = &t->pieces[i];
		uint32_t at = p->from + piece->block;

		SKV_CHECK(at < p->to);
		if (piece->status != SKV_OK || piece->done < piece->length) {
			m->counts.unread += m->view.checks;
			continue;
		}
		m->moved[at] = skv_transfer_proves(piece);
		m->damaged[at] = !m->moved[at];
		m->counts.mismatches += m->damaged[at];
	}
}

static void settle_writes(struct mover *m, const struct portion *p, const struct skv_transfer *t)
{
	for (uint32_t i = 0; i < t->n_pieces; i++) {
		const struct skv_piece *piece = &t->pieces[i];

		if (piece->status != SKV_OK || piece->done < piece->length)
			m->moved[p->from + piece->block] = false;
	}
}

/* Reads the slots, or writes the verified ones. */
static int transfer(struct mover *m, const struct portion *p, bool write)
{
	struct skv_io_call by = { .clock = m->kv->clock, .at_ms = m->submit_until_ms };
	struct skv_transfer t;
	int rc = skv_transfer_begin(&t, m->kv, m->a, &m->files, p->to - p->from);

	for (uint32_t i = p->from; rc == SKV_OK && i < p->to; i++) {
		struct skv_location loc = location(m, i, write);

		if (loc.length && (m->moved[i] || !write))
			skv_transfer_add(&t, i - p->from, 0, &loc, &p->block[i - p->from], false,
					 !write);
	}
	if (rc == SKV_OK)
		rc = skv_transfer_plan(&t, write);
	t.past_cache = m->view.checks;
	if (rc == SKV_OK) {
		skv_transfer_run(&t, &by);
		if (write) {
			skv_transfer_sync(&t);
			settle_writes(m, p, &t);
			m->in_flight |= t.in_flight;
		} else {
			prove(m, p, &t);
		}
		note(m, &t.first);
	}
	skv_transfer_end(&t);
	return rc;
}

/* As many slots as fit the buffer: at least one. */
static struct portion next_portion(const struct mover *m, uint32_t from, struct portion p)
{
	uint64_t at = 0;

	p.from = from;
	for (p.to = from; p.to < m->view.n_slots; p.to++) {
		uint64_t length = m->view.slots[p.to].length;
		uint32_t i = p.to - from;

		if (at + length > m->cap)
			break;
		p.buf[i] = (struct slabkv_buf){ .data = m->buffer + at, .size = length };
		p.block[i] = (struct slabkv_block){ .bufs = &p.buf[i], .n_bufs = 1 };
		at += (length + ALIGN - 1) / ALIGN * ALIGN;
		at = at < m->cap ? at : m->cap;
	}
	SKV_CHECK(p.to > p.from);
	return p;
}

static int copy_all(struct mover *m)
{
	struct portion p = {
		.buf = skv_arena_calloc(m->a, m->view.n_slots, sizeof *p.buf),
		.block = skv_arena_calloc(m->a, m->view.n_slots, sizeof *p.block),
	};
	int rc = p.buf && p.block ? SKV_OK : SKV_E_NOMEM;

	while (rc == SKV_OK && p.to < m->view.n_slots) {
		p = next_portion(m, p.to, p);
		if (p.to == p.from)
			return SKV_E_INTERNAL;
		rc = transfer(m, &p, false);
		if (rc == SKV_OK && !m->view.checks)
			rc = transfer(m, &p, true);
	}
	return rc;
}

/* ---- a round --------------------------------------------------------------------------------- */

static int make_room(struct mover *m)
{
	const struct skv_move_view *v = &m->view;
	uint64_t all = 0, most = 0;

	m->files.n = v->n_files;
	m->files.v = skv_arena_calloc(m->a, v->n_files + 1u, sizeof *m->files.v);
	m->moved = skv_arena_calloc(m->a, v->n_slots, sizeof *m->moved);
	m->damaged = skv_arena_calloc(m->a, v->n_slots, sizeof *m->damaged);
	if (!m->files.v || !m->moved || !m->damaged)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < v->n_files; i++) {
		struct skv_file_ref *f = &m->files.v[i];

		f->storage = v->files[i].storage;
		f->type = v->files[i].type;
		snprintf(f->uuid, sizeof f->uuid, "%s", v->files[i].uuid);
		snprintf(f->path, sizeof f->path, "%s", v->files[i].path);
	}
	for (uint32_t i = 0; i < v->n_slots; i++) {
		uint64_t length = (v->slots[i].length + ALIGN - 1) / ALIGN * ALIGN;

		all += length;
		most = length > most ? length : most;
	}
	m->cap = all < PORTION ? all : PORTION;
	m->cap = most > m->cap ? most : m->cap;
	if (m->cap == 0)
		m->cap = ALIGN;
	m->buffer = aligned_alloc(ALIGN, m->cap);
	return m->buffer ? SKV_OK : SKV_E_NOMEM;
}

static int move(struct mover *m, const struct skv_move_take_req *req, struct skv_error *err)
{
	int rc = take(m, req, err);

	if (rc != SKV_OK)
		return rc;
	m->counts.checks = m->view.checks;
	m->counts.more = m->view.scrub.more;
	m->counts.left_bytes = m->view.scrub.left_bytes;
	m->counts.now_ms = m->view.scrub.now_ms;
	m->counts.taken = m->view.n_slots;
	if (m->view.n_slots == 0)
		return rc;
	rc = make_room(m);
	if (rc == SKV_OK)
		rc = copy_all(m);
	if (rc != SKV_OK && m->moved)
		memset(m->moved, 0, m->view.n_slots * sizeof *m->moved);
	if (skv_is_broken(m->kv, err))
		return SKV_E_INTERNAL; /* the written bytes are unknown: the move's targets rest */
	for (uint32_t i = 0; m->moved && i < m->view.n_slots; i++)
		m->counts.bytes += m->moved[i] ? m->view.slots[i].length : 0;
	if (rc == SKV_OK || m->moved) {
		int ended = finish(m, err);

		rc = rc == SKV_OK ? ended : rc;
	}
	if (rc == SKV_OK)
		*err = m->first; /* for information */
	return rc;
}

int slabkv_move(struct slabkv *kv, const struct slabkv_move_options *o, struct slabkv_moved *out,
		struct slabkv_error *err)
{
	static const struct slabkv_move_options none = { .size = sizeof none };
	struct skv_error e = { 0 };
	struct skv_arena a;
	struct mover m = { .kv = kv, .a = &a };
	int rc = skv_enter(kv, &e);

	o = o ? o : &none;
	skv_arena_init(&a);
	if (rc == SKV_OK && (!SKV_HAS(o, check_before_ms) || !out || !SKV_HAS(out, now_ms)))
		rc = skv_size_refuse(&e, "sizeof");
	if (rc == SKV_OK)
		rc = move(&m, &(struct skv_move_take_req){ o->max, o->deadline_ms, o->check,
							    o->check_before_ms },
			  &e);
	if (out && SKV_HAS(out, now_ms)) {
		m.counts.size = out->size;
		*out = m.counts;
	}
	free(m.buffer);
	skv_arena_destroy(&a);
	return skv_result_finish(err, &e, rc);
}
