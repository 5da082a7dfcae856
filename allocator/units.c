/*
 * units.c - free units: a buddy system over all files of a pool.
 *
 * Owns pool_file, pool_unit and the lists of free blocks. A free block is 2^order units, aligned to
 * its length, and as long as it can be. A window is cut from the shortest block that has one, so
 * long windows are not broken while shorter ones serve; giving a window back merges it with its
 * buddies. Finding, claiming and releasing cost O(orders), and O(classes) to update the slots that
 * each class could have in free blocks, for any number of files.
 *
 * Frozen units (skv_pool_freeze_free) are in no slab and in no list either until they thaw. Free
 * blocks of a draining file are in lists of their own.
 *
 * The caller serialises calls.
 */
#include "internal.h"

#include <skv/mem.h>

#include <assert.h>
#include <string.h>

#define THAW_UNITS 65536u /* looked at in one call */

static uint32_t index_of(const struct pool_unit *u) { return (uint32_t)(u - u->file->units); }

static struct pool_unit **list_of(struct skv_pool *p, const struct pool_unit *u, uint32_t order)
{
	return u->file->draining ? &p->parked_blocks[order] : &p->free_blocks[order];
}

/* A free block appears (sign 1) or disappears (-1). */
static void count_block(struct skv_pool *p, const struct pool_unit *u, uint32_t order, int sign)
{
	const struct pool_file *f = u->file;

	if (f->draining || f == p->moving)
		return;
	for (size_t i = 0; i < p->n_classes; i++) {
		struct pool_class *c = p->classes[i];
		uint64_t slots = skv_block_slots(p, c, f->length, index_of(u), order);

		assert(sign > 0 || c->unit_slots >= slots);
		c->unit_slots += (uint64_t)sign * slots;
	}
}

/* Takes the file out of the sums while its blocks move or its length changes. */
static void begin_move(struct skv_pool *p, const struct pool_file *f)
{
	for (uint32_t i = 0; i < f->n_units; i++)
		if (f->units[i].order != NOT_FREE_HEAD)
			count_block(p, &f->units[i], f->units[i].order, -1);
	p->moving = f;
}

static void end_move(struct skv_pool *p, const struct pool_file *f)
{
	p->moving = NULL;
	for (uint32_t i = 0; i < f->n_units; i++)
		if (f->units[i].order != NOT_FREE_HEAD)
			count_block(p, &f->units[i], f->units[i].order, 1);
}

static void block_link(struct skv_pool *p, struct pool_unit *u, uint32_t order)
{
	struct pool_unit **head = list_of(p, u, order);

	assert(u->slab == NO_SLAB && !u->frozen);
	assert(index_of(u) % (UINT32_C(1) << order) == 0 &&
	       UINT32_C(1) << order <= u->file->n_units - index_of(u));
	count_block(p, u, order, 1);

	u->order = (uint8_t)order;
	u->prev = NULL;
	u->next = *head;
	if (*head)
		(*head)->prev = u;
	*head = u;
}

static void block_unlink(struct skv_pool *p, struct pool_unit *u)
{
	assert(u->order < ORDERS && (u->prev || *list_of(p, u, u->order) == u));
	count_block(p, u, u->order, -1);
	if (u->prev)
		u->prev->next = u->next;
	else
		*list_of(p, u, u->order) = u->next;
	if (u->next)
		u->next->prev = u->prev;
	u->order = NOT_FREE_HEAD;
}

/* Adds an aligned block that is in no list, merging it with its buddies. */
static void block_free(struct skv_pool *p, struct pool_file *f, uint32_t first, uint32_t order)
{
	while (order < ORDERS - 1) {
		uint32_t buddy = first ^ (UINT32_C(1) << order);

		if (buddy >= f->n_units || f->units[buddy].order != order)
			break;
		block_unlink(p, &f->units[buddy]);
		first = first < buddy ? first : buddy;
		order++;
	}
	block_link(p, &f->units[first], order);
}

size_t skv_file_position(const struct skv_pool *p, uint32_t id)
{
	size_t lo = 0;
	size_t hi = p->n_files;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (p->files[mid]->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct pool_file *skv_file_find(const struct skv_pool *p, uint32_t id)
{
	size_t i = skv_file_position(p, id);

	return i < p->n_files && p->files[i]->id == id ? p->files[i] : NULL;
}

void skv_files_destroy(struct skv_pool *p)
{
	for (size_t i = 0; i < p->n_files; i++) {
		skv_free(p->files[i]->units);
		skv_free(p->files[i]);
	}
	skv_free(p->files);
}

void skv_file_park(struct skv_pool *p, struct pool_file *f, bool on)
{
	assert(f->draining != on);
	for (uint32_t i = 0; i < f->n_units; i++) {
		uint8_t order = f->units[i].order;

		if (order == NOT_FREE_HEAD)
			continue;
		f->draining = !on;
		block_unlink(p, &f->units[i]);
		f->draining = on;
		block_link(p, &f->units[i], order);
	}
	f->draining = on;
}

void skv_file_forget(struct skv_pool *p, struct pool_file *f)
{
	size_t at = skv_file_position(p, f->id);

	assert(at < p->n_files && p->files[at] == f);
	assert(f->n_slabs == 0 && f->n_frozen == 0);
	for (uint32_t i = 0; i < f->n_units; i++)
		if (f->units[i].order != NOT_FREE_HEAD)
			block_unlink(p, &f->units[i]);
	p->n_files--;
	memmove(p->files + at, p->files + at + 1, (p->n_files - at) * sizeof *p->files);
	p->thaw_at = 0;
	skv_free(f->units);
	skv_free(f);
}

struct slab *skv_file_next_slab(const struct skv_pool *p, const struct pool_file *f, uint32_t end,
				uint32_t *unit)
{
	while (*unit < end) {
		uint32_t handle = f->units[*unit].slab;

		if (handle != NO_SLAB) {
			*unit = p->slabs[handle]->at.first + p->slabs[handle]->at.units;
			return p->slabs[handle];
		}
		++*unit;
	}
	return NULL;
}

/* Moves the units to a longer array. The lists point into the old one and are relinked. The last
 * unit, if it was short, counts as whole from now on. */
static void move_units(struct skv_pool *p, struct pool_file *f, struct pool_unit *to, uint32_t n)
{
	struct pool_unit *old = f->units;
	uint32_t had = f->n_units;

	assert(n > had && p->moving == f);
	if (had)
		memcpy(to, old, had * sizeof *to);
	f->units = to;
	f->n_units = n;
	for (uint32_t i = 0; i < had; i++) {
		uint8_t order = old[i].order;

		if (order != NOT_FREE_HEAD) {
			block_unlink(p, &old[i]);
			block_link(p, &to[i], order);
		}
	}
	for (uint32_t i = had; i < n; i++)
		to[i] = (struct pool_unit){ .file = f, .slab = NO_SLAB, .order = NOT_FREE_HEAD };
	for (uint32_t i = had; i < n; i++)
		block_free(p, f, i, 0);
	skv_free(old);
}

static int file_insert(struct skv_pool *p, uint32_t id, struct pool_file **out)
{
	size_t at = skv_file_position(p, id);
	struct pool_file *f;

	if (skv_grow((void **)&p->files, &p->cap_files, p->n_files + 1, sizeof *p->files))
		return SKV_E_NOMEM;
	f = skv_calloc(1, sizeof *f);
	if (!f)
		return SKV_E_NOMEM;
	f->id = id;
	assert(at == p->n_files || p->files[at]->id > id);
	memmove(p->files + at + 1, p->files + at, (p->n_files - at) * sizeof *p->files);
	p->files[at] = f;
	p->n_files++;
	p->thaw_at = 0;
	*out = f;
	return SKV_OK;
}

int skv_file_add(struct skv_pool *p, uint32_t id, uint64_t length)
{
	uint64_t unit = p->options.unit;
	uint32_t n = (uint32_t)(length / unit + (length % unit != 0));
	struct pool_file *f = skv_file_find(p, id);
	struct pool_unit *units = NULL;
	struct slab *longer = NULL;
	int status = SKV_OK;

	if (f && length < f->length)
		return SKV_E_INVALID;
	if (f)
		status = skv_slabs_longer(p, f, length, &longer);
	if (!status && (!f || n > f->n_units) && !(units = skv_malloc(n * sizeof *units)))
		status = SKV_E_NOMEM;
	if (!status && !f)
		status = file_insert(p, id, &f);
	if (status) {
		skv_free(units);
		skv_slabs_forget(longer);
		return status;
	}
	begin_move(p, f);
	f->length = length;
	skv_slabs_replace(p, longer);
	if (units)
		move_units(p, f, units, n);
	end_move(p, f);
	return SKV_OK;
}

uint64_t skv_window_slots(const struct skv_pool *p, const struct pool_class *c, uint64_t length,
			  uint32_t first, uint32_t units, uint64_t *first_offset)
{
	const struct skv_pool_options *o = &p->options;
	uint64_t begin = u64_max(first * o->unit, o->header);
	uint64_t end = u64_min((first + (uint64_t)units) * o->unit, length - o->trailer);
	uint64_t gap = begin % c->align ? c->align - begin % c->align : 0;

	assert(length > o->header + o->trailer && units > 0);
	if (first_offset)
		*first_offset = begin + gap;
	return begin + gap < end ? skv_class_slots(c, end - begin - gap) : 0;
}

uint64_t skv_block_slots(const struct skv_pool *p, const struct pool_class *c, uint64_t length,
			 uint32_t first, uint32_t order)
{
	const struct skv_pool_options *o = &p->options;
	uint32_t units = UINT32_C(1) << (order < c->order ? order : c->order);
	uint64_t bytes = units * o->unit;
	uint64_t end = first + (UINT64_C(1) << order);
	uint64_t slots = 0;

	for (uint64_t at = first; at < end; at += units) {
		uint64_t clear = u64_min(end, (length - o->trailer) / bytes * units);

		slots += skv_window_slots(p, c, length, (uint32_t)at, units, NULL);
		/* Windows that begin at multiples of `align`, clear of header and trailer, are
		 * alike: count them together. */
		if (bytes % c->align != 0 || at * o->unit < o->header || at + units >= clear)
			continue;
		slots += (clear - at - units) / units * skv_class_slots(c, bytes);
		at = clear - units;
	}
	return slots;
}

/* First window of `units` units with a slot in a free block of 2^order units. Only windows at an
 * end of the file, or of about one slot, can have none. */
static bool find_in_block(const struct skv_pool *p, const struct pool_class *c,
			  const struct pool_unit *block, uint32_t units, struct window *out)
{
	struct pool_file *f = block->file;
	uint32_t first = index_of(block);
	uint64_t end = first + (UINT64_C(1) << block->order);

	for (uint64_t at = first; at < end; at += units) {
		if (skv_window_slots(p, c, f->length, (uint32_t)at, units, NULL) > 0) {
			*out = (struct window){ f, (uint32_t)at, units };
			return true;
		}
	}
	return false;
}

bool skv_units_find(const struct skv_pool *p, const struct pool_class *c, uint32_t order,
		    struct window *out)
{
	for (uint32_t o = order; o < ORDERS; o++)
		for (const struct pool_unit *u = p->free_blocks[o]; u; u = u->next)
			if (find_in_block(p, c, u, UINT32_C(1) << order, out))
				return true;
	return false;
}

uint64_t skv_units_slots(const struct skv_pool *p, const struct pool_class *c)
{
	const struct pool_unit *u;
	uint64_t slots = 0;

	for (uint32_t o = ORDERS; o-- > 0;)
		for (u = p->free_blocks[o]; u; u = u->next)
			slots += skv_block_slots(p, c, u->file->length, index_of(u), o);
	return slots;
}

/* A new slab is at most as long as all slabs together, and no shorter before half of these are
 * gone: few blocks change the length, since that counts all free blocks anew. */
void skv_class_resize(const struct skv_pool *p, struct pool_class *c, int64_t units)
{
	uint32_t order = c->order;

	assert(units >= 0 || c->units >= (uint64_t)-units);
	c->units += (uint64_t)units;
	while (order < c->most && c->units >> (order + 1))
		order++;
	while (order > c->least && !(c->units >> (order - 1)))
		order--;
	if (order == c->order)
		return;
	c->order = order;
	c->unit_slots = skv_units_slots(p, c);
}

void skv_units_claim(struct skv_pool *p, struct window w, uint32_t slab)
{
	struct pool_unit *units = w.file->units;
	uint32_t want = log2_floor(w.units);
	uint32_t order = want;

	assert(w.units == UINT32_C(1) << want && w.first % w.units == 0);
	/* The one free block that contains the window begins at the window's first unit, rounded
	 * down to the block's length. */
	while (units[w.first >> order << order].order != order) {
		order++;
		assert(order < ORDERS);
	}
	block_unlink(p, &units[w.first >> order << order]);
	while (order > want) {
		order--;
		block_link(p, &units[(w.first >> order ^ 1) << order], order);
	}
	for (uint32_t i = 0; i < w.units; i++)
		units[w.first + i].slab = slab;
	w.file->n_slabs++;
}

void skv_units_release(struct skv_pool *p, struct window w)
{
	assert(w.file->n_slabs > 0);
	for (uint32_t i = 0; i < w.units; i++)
		w.file->units[w.first + i].slab = NO_SLAB;
	w.file->n_slabs--;
	block_free(p, w.file, w.first, log2_floor(w.units));
}

void skv_units_freeze(struct skv_pool *p, uint64_t until)
{
	for (uint32_t o = 0; o < ORDERS; o++) {
		struct pool_unit *u;

		while ((u = p->free_blocks[o] ? p->free_blocks[o] : p->parked_blocks[o]) != NULL) {
			block_unlink(p, u);
			for (uint64_t i = 0; i < UINT64_C(1) << o; i++)
				u[i].frozen = true;
			u->file->n_frozen += UINT32_C(1) << o;
			p->frozen_units += UINT64_C(1) << o;
		}
	}
	if (p->frozen_units)
		p->frozen_until = u64_max(p->frozen_until, until);
}

uint64_t skv_units_thaw(struct skv_pool *p, struct window w)
{
	uint64_t n = 0;

	for (uint32_t i = w.first; i < w.first + w.units; i++) {
		if (!w.file->units[i].frozen)
			continue;
		w.file->units[i].frozen = false;
		block_free(p, w.file, i, 0);
		n++;
	}
	assert(n <= w.file->n_frozen && n <= p->frozen_units);
	w.file->n_frozen -= (uint32_t)n;
	p->frozen_units -= n;
	if (p->frozen_units == 0)
		p->frozen_until = 0;
	return n;
}

/* At least one file, so that thawing makes progress. */
uint64_t skv_units_thaw_some(struct skv_pool *p)
{
	uint64_t looked = 0, n = 0;

	for (size_t left = p->n_files; left > 0 && p->frozen_units && looked < THAW_UNITS; left--) {
		struct pool_file *f = p->files[p->thaw_at];

		p->thaw_at = (p->thaw_at + 1) % p->n_files;
		looked += 1 + (f->n_frozen ? f->n_units : 0);
		n += f->n_frozen ? skv_units_thaw(p, (struct window){ f, 0, f->n_units }) : 0;
	}
	return n;
}
