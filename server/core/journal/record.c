/*
 * record.c - encoders of durable records: the journal's and the checkpoint's (ON_DISK.md).
 *
 * A record is: u32 length of what follows before the checksum, u8 type, u8 version, u16 zero,
 * payload, u64 XXH3-64 of type..payload. Little-endian; "varint" is LEB128; keys are hi then
 * lo, 8 bytes each. replay.c decodes. No state; the caller holds the partition's lock.
 * Failures stick in out->failed.
 */
#include <journal/record.h>

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include <skv/json_out.h>

#include <model/block.h>
#include <model/device.h>
#include <model/birth.h>
#include <model/mark.h>
#include <model/move.h>
#include <model/names.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/pin.h>
#include <model/session.h>
#include <model/volume.h>
#include <model/table.h>
#include <journal/format.h>

#include "record_write.h"

#define PINS_PER_RECORD 16384u /* keeps slices of a checkpoint small */

size_t record_begin(struct skv_buf *out, uint8_t type)
{
	size_t at = out->len;

	skv_put_u32(out, 0);
	skv_put_u8(out, type);
	skv_put_u8(out, RECORD_VERSION);
	skv_put_u16(out, 0);
	return at;
}

void record_seal(struct skv_buf *out, size_t at)
{
	size_t n;

	if (out->failed)
		return;
	n = out->len - at - 4;
	if (n > UINT32_MAX) {
		out->failed = true;
		return;
	}
	skv_buf_set_u32(out, at, (uint32_t)n);
	skv_put_u64(out, skv_checksum(out->data + at + 4, n));
}

size_t record_length(const void *bytes, size_t n)
{
	struct skv_rd r = skv_rd_make(bytes, n);
	uint64_t len = skv_get_u32(&r);

	if (r.failed || len < 4 || len + 12 > n)
		return 0;
	return (size_t)len + 12;
}

static void put_key(struct skv_buf *out, struct skv_key k)
{
	skv_put_u64(out, k.hi);
	skv_put_u64(out, k.lo);
}

static void put_keys(struct skv_buf *out, const struct skv_key *k, uint32_t n)
{
	_Static_assert(sizeof *k == 16 && offsetof(struct skv_key, lo) == 8, "hi, then lo");
	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
		skv_put_bytes(out, k, n * sizeof *k);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		put_key(out, k[i]);
}

void record_put_place(struct skv_buf *out, const struct volume *volume, uint32_t slab)
{
	struct skv_slab_info info;

	skv_pool_slab(volume->pool, slab, &info);
	skv_put_varint(out, volume->dev->id);
	skv_put_varint(out, info.place.file);
	skv_put_varint(out, info.place.unit);
	skv_put_u8(out, (uint8_t)__builtin_ctz(info.place.units));
}

/* The slots of one spec over the session's written blocks, as runs of adjacent slots. */
static void put_runs(struct skv_buf *out, const struct partition *p, const struct session *s,
		     uint32_t spec)
{
	const struct slot *run = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i <= s->n_write; i++) {
		const struct slot *slot = NULL;

		if (i < s->n_write) {
			if (!(s->write[i].specs >> spec & 1))
				continue;
			slot = &block_get(p, s->write[i].block)->slot[spec];
			if (run && slot->volume == run->volume && slot->slab == run->slab &&
			    slot->index == run->index + count) {
				count++;
				continue;
			}
		}
		if (run) {
			record_put_place(out, &p->volume[run->volume], run->slab);
			skv_put_varint(out, run->index);
			skv_put_varint(out, count);
		}
		run = slot;
		count = 1;
	}
}

/* An ended write has no name: its block may be gone. */
static void put_name(struct skv_buf *out, const struct block *b)
{
	struct skv_bytes name = b ? block_name(b) : (struct skv_bytes){ "", 0 };

	skv_put_string(out, name.p, name.n);
}

/* Optional members: left out if all are empty. */
static void put_start_tail(struct skv_buf *out, const struct partition *p, const struct session *s)
{
	uint8_t flags =
		(uint8_t)((s->anonymous ? START_ANONYMOUS : 0) | (s->grace_ms ? START_GRACE : 0) |
			  (s->inst->spec.named ? START_NAMES : 0) |
			  (s->independent ? START_INDEPENDENT : 0));

	if (!flags)
		return;
	skv_put_u8(out, flags);
	if (flags & START_GRACE)
		skv_put_varint(out, s->grace_ms);
	for (uint32_t i = 0; i < s->n_write && (flags & START_NAMES); i++)
		put_name(out, s->write[i].specs ? block_get(p, s->write[i].block) : NULL);
}

void record_start(struct skv_buf *out, const struct partition *p, const struct session *s)
{
	size_t at = record_begin(out, RECORD_START);
	bool uniform = true;

	ASSERT_SHARED(p);
	skv_buf_reserve(out, 256 + (size_t)s->n_keys * (sizeof *s->keys + 1) +
				     (s->inst->spec.named ? s->n_write * 64u : 0));
	put_key(out, s->id);
	put_key(out, s->tenant);
	put_key(out, s->request);
	put_key(out, s->body);
	skv_put_u32(out, s->inst->id);
	skv_put_u32(out, s->specs);
	skv_put_u32(out, s->deadline_ms);
	skv_put_u64(out, s->created_ms);
	skv_put_u64(out, s->generation);
	skv_put_u8(out, s->has_parent);
	put_key(out, s->parent);
	skv_put_varint(out, s->n_keys);
	skv_put_varint(out, s->n_write);
	put_keys(out, s->keys, s->n_keys);
	for (uint32_t i = 0; i < s->n_keys; i += 4) {
		uint8_t four = 0;

		for (uint32_t j = i; j < i + 4 && j < s->n_keys; j++)
			four |= (uint8_t)((s->outcome[j] < 3 ? s->outcome[j] : 3) << 2 * (j - i));
		skv_put_u8(out, four);
	}
	for (uint32_t i = 0; i < s->n_write; i++)
		uniform &= s->write[i].specs == s->specs;
	skv_put_u8(out, uniform);
	for (uint32_t i = 0; i < s->n_write && !uniform; i++)
		skv_put_u32(out, s->write[i].specs);
	for (uint32_t spec = 0; specs_left(s->specs, spec); spec++)
		if (s->specs >> spec & 1)
			put_runs(out, p, s, spec);
	put_start_tail(out, p, s);
	record_seal(out, at);
}

/* Returns 0 without a hold. A hold whose time is over may still wait for its storage to confirm
 * that no writer is left (slots_free_by). */
static uint64_t left(uint64_t until, uint64_t now)
{
	return until > now ? until - now : until != 0;
}

void record_finish(struct skv_buf *out, const struct session *s, const uint8_t *success,
		   const uint64_t *sums, uint64_t hold_until, uint64_t now)
{
	size_t at = record_begin(out, RECORD_FINISH);
	uint64_t n_sums = sums ? (uint64_t)s->n_write * (uint32_t)__builtin_popcount(s->specs) : 0;

	put_key(out, s->id);
	skv_put_varint(out, left(hold_until, now));
	skv_put_varint(out, s->n_write);
	for (uint32_t i = 0; i < s->n_write; i += 8) {
		uint8_t bits = 0;

		for (uint32_t j = i; j < i + 8 && j < s->n_write; j++)
			bits |= (uint8_t)((success[j] ? 1 : 0) << (j - i));
		skv_put_u8(out, bits);
	}
	skv_put_varint(out, n_sums);
	for (uint64_t i = 0; i < n_sums; i++)
		skv_put_u64(out, sums[i]);
	record_seal(out, at);
}

void record_end(struct skv_buf *out, const struct session *s, enum skv_session_state state,
		uint64_t hold_until, uint64_t now)
{
	size_t at = record_begin(out, RECORD_END);

	put_key(out, s->id);
	skv_put_u8(out, (uint8_t)state);
	skv_put_varint(out, left(hold_until, now));
	record_seal(out, at);
}

/* Returns true if slot b continues the run of `count` slots from a. *step: +1 or -1, 0 while the
 * run has one slot. */
static bool extends(const struct slot *a, const struct slot *b, uint32_t count, int *step)
{
	int64_t by = (int64_t)b->index - a->index;

	if (a->volume != b->volume || a->slab != b->slab)
		return false;
	if (count == 1 && (by == 1 || by == -1))
		*step = (int)by;
	return *step && by == *step * (int64_t)count;
}

/* Writes blocks of one spec whose slots are free at once by their slots: an evicted chain, last
 * block first, is mostly one run. */
static void put_removed_slots(struct skv_buf *out, const struct partition *p,
			      const struct removal *r, size_t n)
{
	const struct slot *before = NULL;

	for (size_t i = 0; i < n;) {
		const struct slot *first = &block_get(p, r[i].block)->slot[0];
		bool same = before && before->volume == first->volume &&
			    before->slab == first->slab;
		uint32_t count = 1;
		int step = 0;

		while (i + count < n && extends(first, &block_get(p, r[i + count].block)->slot[0],
						count, &step))
			count++;
		skv_put_varint(out, (uint64_t)(count - 1) << REMOVE_COUNT_SHIFT |
					    (step < 0 ? REMOVE_DOWN : 0) |
					    (same ? REMOVE_SAME_SLAB : 0));
		if (!same)
			record_put_place(out, &p->volume[first->volume], first->slab);
		skv_put_varint(out, first->index);
		before = first;
		i += count;
	}
}

size_t record_remove(struct skv_buf *out, const struct partition *p, const struct removal *r,
		     size_t n, uint64_t now)
{
	const struct instance *inst = block_instance(block_get(p, r[0].block));
	bool by_slot = inst->spec.n_specs == 1 && !p->swapping;
	size_t same = 0, at;

	ASSERT_SHARED(p);
	for (; same < n && block_instance(block_get(p, r[same].block)) == inst; same++)
		by_slot &= r[same].specs == 1 && !r[same].hold_until;
	at = record_begin(out, by_slot ? RECORD_REMOVE_SLOTS : RECORD_REMOVE);
	if (by_slot) {
		skv_put_u32(out, inst->id);
		put_removed_slots(out, p, r, same);
		record_seal(out, at);
		return same;
	}
	skv_put_u32(out, inst->id);
	skv_put_varint(out, same);
	for (size_t i = 0; i < same; i++) {
		put_key(out, block_get(p, r[i].block)->key);
		skv_put_varint(out, r[i].specs);
		skv_put_varint(out, left(r[i].hold_until, now));
	}
	record_seal(out, at);
	return same;
}

size_t record_moved(struct skv_buf *out, const struct partition *p, const struct move_slot *v,
		    size_t n, uint64_t leased_ms)
{
	size_t same = 0, at = record_begin(out, RECORD_MOVED);

	ASSERT_SHARED(p);
	skv_put_u32(out, v[0].instance);
	skv_put_varint(out, leased_ms);
	for (; same < n && v[same].instance == v[0].instance; same++) {
		put_key(out, v[same].key);
		skv_put_varint(out, v[same].spec);
		record_put_place(out, &p->volume[v[same].to_volume], v[same].to_slab);
		skv_put_varint(out, v[same].to_index);
	}
	record_seal(out, at);
	return same;
}

void record_checked(struct skv_buf *out, const struct partition *p, const struct volume *v,
		    const struct volume_file *f)
{
	const struct file_check *c = &f->check;
	uint32_t unit = c->unit, slot = c->slot;
	size_t at;

	ASSERT_SHARED(p);
	if (!c->checked_ms && !c->began_ms)
		return;
	for (const struct move *m = p->moves; m; m = m->next)
		if (move_checks_file(p, m) == f &&
		    (m->portion.unit < unit ||
		     (m->portion.unit == unit && m->portion.slot < slot))) {
			unit = m->portion.unit;
			slot = m->portion.slot;
		}
	at = record_begin(out, RECORD_CHECKED);
	skv_put_varint(out, v->dev->id);
	skv_put_varint(out, f->number);
	skv_put_varint(out, c->checked_ms);
	skv_put_varint(out, c->began_ms);
	skv_put_varint(out, unit);
	skv_put_varint(out, slot);
	skv_put_varint(out, c->slots);
	skv_put_varint(out, c->unsummed);
	skv_put_varint(out, c->saw_slots);
	skv_put_varint(out, c->saw_unsummed);
	record_seal(out, at);
}

void record_horizon(struct skv_buf *out, const struct partition *p, bool clean)
{
	uint64_t now = skv_now_ms(p->core->clock);
	size_t at = record_begin(out, RECORD_HORIZON);

	ASSERT_SHARED(p);
	skv_put_bytes(out, p->core->boot_id, 36);
	skv_put_u64(out, p->old_horizon);
	skv_put_u32(out, (uint32_t)left(p->old_horizon, now));
	skv_put_u8(out, clean);
	skv_put_varint(out, left(p->freeze_until, now));
	skv_put_u64(out, (uint64_t)p->birth_base);
	skv_put_varint(out, p->birth_most_lead);
	record_seal(out, at);
}

void record_link(struct skv_buf *out, const struct partition *p, uint64_t number)
{
	size_t at = record_begin(out, RECORD_LINK);

	skv_put_varint(out, p->fence);
	skv_put_varint(out, number);
	skv_put_u64(out, p->end.chain);
	record_seal(out, at);
}

bool record_read_link(const void *bytes, size_t n, struct journal_end *out)
{
	const uint8_t *b = bytes;
	size_t len = record_length(bytes, n);
	struct skv_rd in = skv_rd_make(b + 8, len < 16 ? 0 : len - 16);

	if (len < 16 || b[4] != RECORD_LINK)
		return false;
	out->epoch = skv_get_varint(&in);
	out->number = skv_get_varint(&in);
	out->chain = skv_get_u64(&in);
	return !in.failed;
}

/* An end time: on this boot's clock, and as the remaining time for other boots. */
static void put_end(struct skv_buf *out, uint64_t until, uint64_t now)
{
	skv_put_u64(out, until);
	skv_put_varint(out, left(until, now));
}

void record_horizons(struct skv_buf *out, const struct horizon *v, size_t n, uint64_t now)
{
	size_t at = record_begin(out, RECORD_HORIZONS);

	for (size_t i = 0; i < n; i++) {
		skv_put_u32(out, v[i].inst->id);
		put_end(out, v[i].until, now);
	}
	record_seal(out, at);
}

void record_leases(struct skv_buf *out, const struct partition *p, const struct chunk *c,
		   uint64_t now)
{
	size_t at = 0;
	bool any = false;

	ASSERT_SHARED(p);
	for (uint32_t i = 0; i < c->fresh; i++) {
		const struct block *b = chunk_place(c, i);
		uint64_t until = b->used ? block_own_lease(p, b) : 0;

		if (until <= now)
			continue;
		if (!any) {
			at = record_begin(out, RECORD_LEASES);
			skv_put_u32(out, c->inst->id);
		}
		any = true;
		put_key(out, b->key);
		put_end(out, until, now);
	}
	if (any)
		record_seal(out, at);
}

void record_clear(struct skv_buf *out, const struct instance *inst, bool drop, uint64_t now)
{
	uint64_t until = atomic_load_explicit(&inst->leased_until, memory_order_relaxed);
	size_t at = record_begin(out, drop ? RECORD_DROP : RECORD_CLEAR);

	skv_put_u32(out, inst->id);
	put_end(out, until, now);
	record_seal(out, at);
}

/* Returns true if two writes are consecutive, with the same outcome. */
static bool continues(const struct ended *a, const struct ended *b)
{
	return b->session == a->session && b->write == a->write + 1 && b->success == a->success;
}

/* Runs of writes: session, first write (and whether they are committed), how many. The session is
 * left out where it is the previous one's. */
void record_partial(struct skv_buf *out, const struct ended *v, uint32_t n_ended)
{
	size_t at = record_begin(out, RECORD_PARTIAL);

	for (uint32_t i = 0, n; i < n_ended; i += n) {
		const struct ended *e = &v[i];
		bool same = i > 0 && e->session == e[-1].session;

		for (n = 1; i + n < n_ended && continues(&e[n - 1], &e[n]); n++)
			;
		skv_put_varint(out, (uint64_t)e->write << 2 | (uint64_t)same << 1 | e->success);
		skv_put_varint(out, n);
		if (!same)
			put_key(out, e->session->id);
	}
	record_seal(out, at);
}

/* A pin set or (none) removed, with its remaining time, 0 = until unpinned. */
static void put_pin(struct skv_buf *out, struct skv_key key, const struct pin *pin, uint64_t now)
{
	uint64_t ms = left(pin->until, now);

	put_key(out, key);
	skv_put_u8(out, (uint8_t)pin->kind);
	skv_put_varint(out, pin->until && !ms ? 1 : ms);
}

void record_pin(struct skv_buf *out, const struct instance *inst, const struct repin *v, uint32_t n,
		uint64_t now)
{
	size_t at = record_begin(out, RECORD_PIN);

	skv_put_u32(out, inst->id);
	for (uint32_t i = 0; i < n; i++)
		put_pin(out, v[i].key, &v[i].to, now);
	record_seal(out, at);
}

void record_pins(struct skv_buf *out, const struct partition *p, const struct instance *inst,
		 uint64_t now)
{
	ASSERT_SHARED(p);
	for (uint32_t i = 0; i < inst->pins.cells; i += PINS_PER_RECORD) {
		size_t at = record_begin(out, RECORD_PIN);

		skv_put_u32(out, inst->id);
		for (uint32_t j = i; j < inst->pins.cells && j < i + PINS_PER_RECORD; j++)
			if (inst->pins.cell[j].block != NO_BLOCK)
				put_pin(out, block_get(p, inst->pins.cell[j].block)->key,
					&inst->pins.cell[j], now);
		record_seal(out, at);
	}
}

void record_ended(struct skv_buf *out, const struct session *s, uint64_t now)
{
	size_t at = record_begin(out, RECORD_ENDED);

	put_key(out, s->id);
	put_key(out, s->tenant);
	put_key(out, s->request);
	put_key(out, s->body);
	skv_put_u8(out, (uint8_t)s->state);
	skv_put_u32(out, s->n_write);
	skv_put_u32(out, s->committed);
	skv_put_u32(out, s->failed);
	skv_put_varint(out, left(s->forget_at, now));
	skv_put_u32(out, s->instance);
	if (s->finished_as || s->n_deleted)
		skv_put_u64(out, s->finished_as);
	if (s->n_deleted)
		skv_put_varint(out, s->n_deleted);
	for (uint32_t i = 0; s->outcome && i < s->n_write; i++)
		skv_put_u8(out, s->outcome[i]);
	record_seal(out, at);
}

void record_hold(struct skv_buf *out, const struct volume *volume, struct skv_run run,
		 uint64_t left_ms)
{
	struct skv_slab_info info;
	size_t at = record_begin(out, RECORD_HOLD);
	uint64_t flag = 0;

	skv_pool_slab(volume->pool, run.slab, &info);
	if (info.per_segment ||
	    (info.align != info.stride && info.align != stride_align(info.stride, false)))
		flag = HOLD_GEOMETRY;
	else if (info.align == info.stride)
		flag = HOLD_NUMBERED;
	record_put_place(out, volume, run.slab);
	skv_put_u64(out, info.stride | flag);
	skv_put_varint(out, run.first);
	skv_put_varint(out, run.count);
	skv_put_varint(out, left_ms);
	if (flag == HOLD_GEOMETRY) {
		skv_put_varint(out, info.align);
		skv_put_u8(out, info.per_segment != 0);
	}
	record_seal(out, at);
}

void record_chunk_leases(struct skv_buf *out, const struct partition *p, const struct chunk *c,
			 uint64_t now)
{
	ASSERT_SHARED(p);
	for (uint32_t i = 0; i < c->fresh; i++) {
		const struct block *b = chunk_place(c, i);
		uint64_t lease = b->used ? left(block_lease(p, c->inst, b), now) : 0;

		for (uint32_t s = 0; lease && s < c->inst->spec.n_specs; s++) {
			const struct slot *slot = &b->slot[s];

			if (slot->state != SLOT_ABSENT)
				record_hold(out, &p->volume[slot->volume],
					    (struct skv_run){ slot->slab, slot->index, 1 }, lease);
		}
	}
}

void record_births(struct skv_buf *out, const struct partition *p)
{
	size_t at = record_begin(out, RECORD_BIRTHS);

	ASSERT_SHARED(p);
	skv_put_varint(out, p->n_births);
	for (size_t i = 0; i < p->n_births; i++) {
		skv_put_varint(out, p->birth[i].generation);
		skv_put_varint(out, p->birth[i].ms);
	}
	record_seal(out, at);
}

static uint64_t put_counters(struct skv_buf *out, const struct partition *p)
{
	uint64_t clock = use_clock(p, skv_now_ms(p->core->clock));

	skv_put_u64(out, p->next_generation);
	skv_put_varint(out, clock);
	return clock;
}

void record_counters(struct skv_buf *out, const struct partition *p)
{
	size_t at = record_begin(out, RECORD_COUNTERS);

	ASSERT_SHARED(p);
	put_counters(out, p);
	record_seal(out, at);
}

/* A run of blocks in neighbouring slots that were used alike. */
struct used_run {
	const struct slot *first, *last;
	uint64_t what; /* age, frequency, tag */
	uint32_t count;
};

static void put_used(struct skv_buf *out, const struct partition *p, const struct used_run *run,
		     const struct used_run *before)
{
	bool same_slab = before->count && before->first->volume == run->first->volume &&
			 before->first->slab == run->first->slab;
	bool same = before->count && before->what == run->what;

	skv_put_varint(out, (uint64_t)(run->count - 1) << USES_COUNT_SHIFT |
				    (same ? USES_SAME : 0) | (same_slab ? USES_SAME_SLAB : 0));
	if (!same_slab)
		record_put_place(out, &p->volume[run->first->volume], run->first->slab);
	skv_put_varint(out, run->first->index);
	if (!same)
		skv_put_varint(out, run->what);
}

/* The entry was noted a moment ago: its chunk may be unowned by now, or have entries of another
 * length. NULL: it has no committed slot. */
static const struct slot *committed_slot(const struct partition *p, uint32_t id)
{
	const struct chunk *c = p->chunk[id >> CHUNK_SHIFT];
	const uint32_t place = id & (CHUNK_CAPACITY - 1);
	const struct block *b;

	if (!c->inst || place >= c->fresh)
		return NULL;
	assert(c->fresh <= c->capacity);
	b = chunk_place(c, place);
	for (uint32_t s = 0; b->used && s < c->inst->spec.n_specs; s++)
		if (b->slot[s].state == SLOT_COMMITTED)
			return &b->slot[s];
	return NULL;
}

void record_uses(struct skv_buf *out, const struct partition *p, const uint32_t *ids, uint32_t n)
{
	size_t at = record_begin(out, RECORD_COUNTERS);
	const uint64_t clock = put_counters(out, p);
	struct used_run run = { 0 }, before = { 0 };

	ASSERT_SHARED(p);
	for (uint32_t i = 0; i < n; i++) {
		const struct slot *s = committed_slot(p, ids[i]);
		const struct block *b;
		uint64_t mark, use, what;

		if (!s)
			continue;
		b = block_get(p, ids[i]);
		mark = atomic_load_explicit(&b->mark, memory_order_relaxed);
		use = use_ms(mark_use(mark));
		what = (use < clock ? clock - use : 0) << USES_AGE_SHIFT |
		       (uint64_t)mark_freq(mark) << STORED_TAG_BITS | b->slot[0].tag;
		if (run.count && s->volume == run.last->volume && s->slab == run.last->slab &&
		    s->index == run.last->index + 1 && what == run.what) {
			run.last = s;
			run.count++;
			continue;
		}
		if (run.count)
			put_used(out, p, &run, &before);
		before = run.count ? run : before;
		run = (struct used_run){ s, s, what, 1 };
	}
	if (run.count)
		put_used(out, p, &run, &before);
	record_seal(out, at);
}
