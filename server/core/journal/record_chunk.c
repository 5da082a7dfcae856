/*
 * record_chunk.c - the encoder of a checkpoint's blocks: the entries of a chunk, keys first.
 *
 * Entries name their parents by id, so a loader needs no lookup; what follows from the entry before
 * (place, parent, slab, slot, generation) takes a bit. recovery/replay_chunk.c decodes.
 */
#include <journal/record.h>

#include <assert.h>

#include <skv/bytes.h>

#include <model/block.h>
#include <model/mark.h>
#include <model/names.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/table.h>
#include <journal/format.h>

#include "record_write.h"

struct writer {
	struct skv_buf *out;
	const struct partition *p;
	const struct chunk *c;
	uint64_t least_use;
	uint64_t leased_until; /* clock of uses: horizons, which are stored beside it, cover that */
	uint32_t place;                          /* the place after the previous entry */
	const struct slot *before[SKV_MAX_SPECS]; /* the newest of each spec */
};

static bool stored(const struct slot *s)
{
	return s->state == SLOT_COMMITTED || s->state == SLOT_REMOVING;
}

static uint32_t stored_specs(const struct chunk *c, const struct block *b)
{
	uint32_t mask = 0;

	for (uint32_t s = 0; s < c->inst->spec.n_specs; s++)
		mask |= stored(&b->slot[s]) ? 1u << s : 0;
	return mask;
}

/* Returns true for stored blocks; open sessions record the blocks being written themselves. */
static bool is_stored(const struct chunk *c, const struct block *b)
{
	return b->used && (b->children || stored_specs(c, b));
}

static void put_slot(struct writer *w, const struct slot *s, uint32_t spec)
{
	const struct slot *before = w->before[spec];
	bool same_slab = before && before->volume == s->volume && before->slab == s->slab;
	bool next = same_slab && s->index == before->index + 1;
	bool next_generation = before && s->generation == before->generation + 1u;

	skv_put_u8(w->out,
		   (uint8_t)((same_slab ? CHUNK_SAME_SLAB : 0) | (next ? CHUNK_NEXT_SLOT : 0) |
			     (next_generation ? CHUNK_NEXT_GENERATION : 0) |
			     (s->has_checksum ? CHUNK_CHECKSUM : 0)));
	if (!same_slab)
		record_put_place(w->out, &w->p->volume[s->volume], s->slab);
	if (!next)
		skv_put_varint(w->out, s->index);
	if (!next_generation)
		skv_put_varint(w->out, s->generation);
	if (s->has_checksum)
		skv_put_u64(w->out, s->checksum);
	w->before[spec] = s;
}

static void put_entry(struct writer *w, const struct block *b, uint32_t place)
{
	const struct instance *inst = w->c->inst;
	uint64_t mark = atomic_load_explicit(&b->mark, memory_order_relaxed);
	uint32_t mask = stored_specs(w->c, b), all = (uint32_t)((1ull << inst->spec.n_specs) - 1);
	bool next = place == w->place;

	skv_put_u8(w->out,
		   (uint8_t)((next ? CHUNK_NEXT_PLACE : 0) |
			     (b->parent != NO_BLOCK ? CHUNK_PARENT : 0) | (mask ? CHUNK_SLOTS : 0) |
			     (mask == all ? CHUNK_ALL_SPECS : 0)));
	if (!next)
		skv_put_varint(w->out, place);
	if (b->parent != NO_BLOCK)
		skv_put_u32(w->out, b->parent);
	w->place = place + 1;
	assert(mark_lease_end(mark) <= w->leased_until);
	if (!mask)
		return;
	if (mask != all)
		skv_put_varint(w->out, mask);
	skv_put_varint(w->out, (mark_use(mark) - w->least_use) << CHUNK_USE_SHIFT |
				       (uint64_t)mark_freq(mark) << STORED_TAG_BITS |
				       b->slot[0].tag);
	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (mask >> s & 1)
			put_slot(w, &b->slot[s], s);
	if (inst->spec.named) {
		struct skv_bytes name = block_name(b);

		skv_put_string(w->out, name.p, name.n);
	}
}

void record_chunk(struct skv_buf *out, const struct partition *p, const struct chunk *c)
{
	struct writer w = { .out = out, .p = p, .c = c, .least_use = UINT64_MAX,
			    .leased_until = use_clock(p, c->inst->horizon) + MARK_LEASE_UNIT };
	uint32_t n = 0;
	size_t at;

	ASSERT_SHARED(p);
	for (uint32_t i = 0; i < c->fresh; i++) {
		const struct block *b = chunk_place(c, i);
		uint64_t use;

		if (!is_stored(c, b))
			continue;
		use = mark_use(atomic_load_explicit(&b->mark, memory_order_relaxed));
		w.least_use = use < w.least_use ? use : w.least_use;
		n++;
	}
	if (!n)
		return;
	skv_buf_reserve(out, 64 + (size_t)n * 56);
	at = record_begin(out, RECORD_CHUNK);
	skv_put_u32(out, c->inst->id);
	skv_put_u32(out, c->number);
	skv_put_varint(out, n);
	skv_put_varint(out, w.least_use);
	for (uint32_t i = 0; i < c->fresh; i++)
		if (is_stored(c, chunk_place(c, i))) {
			skv_put_u64(out, chunk_place(c, i)->key.hi);
			skv_put_u64(out, chunk_place(c, i)->key.lo);
		}
	for (uint32_t i = 0; i < c->fresh; i++)
		if (is_stored(c, chunk_place(c, i)))
			put_entry(&w, chunk_place(c, i), i);
	record_seal(out, at);
}
