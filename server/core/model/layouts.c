/*
 * layouts.c - see layouts.h. Owns the sorted array `layout` of each volume and the sum of its
 * slabs. Under the partition's lock.
 */
#include <model/layouts.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/mem.h>
#include <skv/pool.h>

#include <model/device.h>
#include <model/find.h>
#include <model/geometry.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/volume.h>

static int compare(const struct layout *a, const struct layout *b)
{
	if (a->stride != b->stride)
		return a->stride < b->stride ? -1 : 1;
	if (a->align != b->align)
		return a->align < b->align ? -1 : 1;
	return a->segment < b->segment ? -1 : a->segment > b->segment;
}

static struct layout layout_of(const struct volume *s, const struct skv_instance_spec *i,
			       uint32_t spec)
{
	const struct geometry g = volume_geometry(s, i, spec);

	return (struct layout){ .stride = g.stride, .align = g.align, .segment = g.segment };
}

/* Where it is, or would be inserted: at most n_layout. */
static size_t place_of(const struct volume *s, const struct layout *l)
{
	size_t first = 0, end = s->n_layout;

	while (first < end) {
		const size_t half = first + (end - first) / 2;

		if (compare(&s->layout[half], l) < 0)
			first = half + 1;
		else
			end = half;
	}
	return first;
}

static void add(struct volume *s, const struct layout *l)
{
	const size_t at = place_of(s, l);
	void *v = s->layout;

	if (at == s->n_layout || compare(&s->layout[at], l) != 0) {
		if (skv_grow(&v, &s->cap_layout, s->n_layout + 1, sizeof *l) != SKV_OK)
			return;
		s->layout = v;
		memmove(s->layout + at + 1, s->layout + at, (s->n_layout - at) * sizeof *l);
		s->layout[at] = *l;
		s->layout[at].slab_bytes =
			skv_pool_slab_lengths(s->pool, l->stride, l->align, l->segment).first;
		s->layout_bytes += s->layout[at].slab_bytes;
		s->n_layout++;
	}
	s->layout[at].specs++;
}

static void take_away(struct volume *s, const struct layout *l)
{
	const size_t at = place_of(s, l);

	if (at == s->n_layout || compare(&s->layout[at], l) != 0)
		return; /* the layout was not counted for lack of memory */
	assert(s->layout[at].specs > 0 && s->layout_bytes >= s->layout[at].slab_bytes);
	if (--s->layout[at].specs)
		return;
	s->layout_bytes -= s->layout[at].slab_bytes;
	s->n_layout--;
	memmove(s->layout + at, s->layout + at + 1, (s->n_layout - at) * sizeof *l);
}

/* Number i of the group's storages, if it has slabs of bytes; else NULL. */
static struct volume *storage_of(const struct partition *p, const struct group *g, uint32_t i)
{
	const int at = volume_find(p, g->spec.storages[i]);

	return at >= 0 && !p->volume[at].dev->ops->counted ? &p->volume[at] : NULL;
}

static void count_in(struct volume *s, const struct instance *inst, int sign)
{
	assert(sign == 1 || sign == -1);
	for (uint32_t k = 0; k < inst->spec.n_specs; k++) {
		const struct layout l = layout_of(s, &inst->spec, k);

		(sign > 0 ? add : take_away)(s, &l);
	}
}

void layouts_count(struct partition *p, const struct instance *inst, int sign)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < inst->group->spec.n_storages; i++) {
		struct volume *s = storage_of(p, inst->group, i);

		if (s)
			count_in(s, inst, sign);
	}
}

void layouts_enter(struct partition *p, const struct group *g, struct volume *s)
{
	ASSERT_EXCLUSIVE(p);
	for (const struct instance *inst = g->members; inst && !s->dev->ops->counted;
	     inst = inst->next_member)
		count_in(s, inst, 1);
}

void layouts_count_group(struct partition *p, const struct group *g, int sign)
{
	ASSERT_EXCLUSIVE(p);
	for (const struct instance *inst = g->members; inst; inst = inst->next_member)
		layouts_count(p, inst, sign);
}

void layouts_free(struct volume *s)
{
	skv_free(s->layout);
	s->layout = NULL;
	s->n_layout = s->cap_layout = 0;
	s->layout_bytes = 0;
}

/* The room for one spec on the storage that has most. */
static struct layouts_room room_of(const struct partition *p, const struct instance *inst,
				   uint32_t spec)
{
	struct layouts_room best = { .volume = NULL };

	for (uint32_t i = 0; i < inst->group->spec.n_storages; i++) {
		const struct volume *s = storage_of(p, inst->group, i);
		struct layouts_room here = { .volume = s };
		struct layout l;
		size_t at;

		if (!s)
			continue;
		l = layout_of(s, &inst->spec, spec);
		at = place_of(s, &l);
		here.layouts = s->n_layout;
		here.needed = s->layout_bytes;
		if (s->capacity > s->layout_bytes && at < s->n_layout)
			here.left = (s->capacity - s->layout_bytes) / s->layout[at].slab_bytes;
		if (!best.volume || here.left > best.left)
			best = here;
	}
	return best;
}

struct layouts_room layouts_room_of(const struct partition *p, const struct instance *inst)
{
	struct layouts_room least = room_of(p, inst, 0);

	ASSERT_SHARED(p);
	for (uint32_t k = 1; least.volume && k < inst->spec.n_specs; k++) {
		const struct layouts_room here = room_of(p, inst, k);

		if (here.left < least.left)
			least = here;
	}
	return least;
}

void layouts_warn(const struct layouts_room *room, char text[SKV_MESSAGE_MAX])
{
	const struct volume *s = room->volume;

	text[0] = '\0';
	if (!s || room->layouts < 2 || room->needed <= s->capacity / 2)
		return;
	snprintf(text, SKV_MESSAGE_MAX,
		 "the %llu layouts on storage %s need %llu bytes of slabs, of %llu: %s",
		 (unsigned long long)room->layouts, s->dev->name, (unsigned long long)room->needed,
		 (unsigned long long)s->capacity,
		 room->needed > s->capacity ? "some of them find no room beside the others"
					    : "few more find room");
}
