/*
 * Random operations against a trivial model: which item each byte of each file belongs to.
 *
 * The model knows nothing of slabs. It says: no byte has two items, none is an item's in header or
 * trailer, offsets are multiples of `align`, what is held stays until its time and not longer,
 * `available` slots can be had and not one more, a pool rebuilt with skv_pool_take is the same, and
 * when all is given back nothing is left.
 *
 *   test_alloc_model [seeds]    (default 40 for each geometry)
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#define STEPS 600
#define MAX_COUNT 2000

static const struct geometry geometries[] = {
	{ "pages", 4096, 256, 128, { 16 * 4096, 10 * 4096 + 2000, 3 * 4096 },
	  { 0, 12 * 4096 }, { 64, 1000, 1000, 333 }, { 64, 8, 1000, 1 }, { 0 } },
	{ "counting", 64, 0, 0, { 1000, 333 }, { 0, 400 }, { 1, 3 }, { 1, 1 }, { 0 } },
	{ "slots longer than units", 1024, 1024, 512, { 32 * 1024, 700 + 17 * 1024, 2048 },
	  { 0 }, { 3000, 1500, 700 }, { 8, 1500, 100 }, { 0 } },
	{ "segments", 4096, 256, 128, { 16 * 4096, 10 * 4096 + 2000, 3 * 4096 },
	  { 0, 12 * 4096 }, { 300, 1000, 64, 4096 }, { 0, 0, 64, 0 }, { 1024, 4096, 0, 4096 } },
	{ "one file", 256, 1, 1, { 64 * 256 }, { 64 * 256 + 10 }, { 256, 16, 5000 },
	  { 256, 16, 1000 }, { 0 } },
	{ "four files, one from half-way on", 512, 512, 512, { 9 * 512, 8 * 512, 1, 20 * 512 },
	  { 11 * 512, 0, 33 * 512 }, { 512, 48, 100 }, { 512, 16, 10 }, { 0 } },
};

static unsigned long seeds = 40;

static uint32_t rnd(struct model *m, uint32_t below)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return (uint32_t)((m->random >> 20) % below);
}

static uint64_t stride_of(const struct model *m, uint32_t class) { return m->g->strides[class]; }

/* Room for the longest form of each file, so that growth moves nothing. */
static uint64_t room(const struct geometry *g, int f)
{
	uint64_t len = g->grown[f] > g->lengths[f] ? g->grown[f] : g->lengths[f];

	return (len / g->unit + 1) * g->unit;
}

static void add_file(struct model *m, uint32_t f, uint64_t length)
{
	if (length <= m->g->header + m->g->trailer) {
		assert_int_equal(skv_pool_add_file(m->p, f, length), SKV_E_INVALID);
		return;
	}
	assert_int_equal(skv_pool_add_file(m->p, f, length), SKV_OK);
	m->lengths[f] = length;
}

uint32_t model_class(const struct model *m, struct skv_pool *p, uint32_t class)
{
	uint32_t id = UINT32_MAX;

	if (!m->g->segments[class])
		return make_class(p, m->g->strides[class], m->g->aligns[class]);
	assert_int_equal(
		skv_pool_class_segmented(p, m->g->strides[class], m->g->segments[class], &id),
		SKV_OK);
	return id;
}

static void model_open(struct model *m, const struct geometry *g, uint64_t seed)
{
	*m = (struct model){ .g = g, .random = seed * 0x9e3779b97f4a7c15u + 1, .now = 1000 };
	m->p = make_pool(g->unit, g->header, g->trailer);
	for (uint32_t c = 0; c < MAX_CLASSES && g->strides[c]; c++)
		m->ids[m->n_classes++] = model_class(m, m->p, c);
	for (int f = 0; f < MAX_FILES; f++) {
		m->bytes[f] = skv_calloc(room(g, f), sizeof *m->bytes[f]);
		m->frozen[f] = skv_calloc(room(g, f) / g->unit, sizeof *m->frozen[f]);
		assert_true(m->bytes[f] && m->frozen[f]);
		if (g->lengths[f])
			add_file(m, (uint32_t)f, g->lengths[f]);
	}
}

static void model_close(struct model *m)
{
	for (int f = 0; f < MAX_FILES; f++) {
		skv_free(m->bytes[f]);
		skv_free(m->frozen[f]);
	}
	skv_free(m->items);
	skv_pool_destroy(m->p);
}

static void paint(struct model *m, const struct item *it, uint32_t old, uint32_t new)
{
	uint32_t *b = m->bytes[it->file] + it->offset;

	for (uint64_t i = 0; i < stride_of(m, it->class); i++) {
		assert_int_equal(b[i], old);
		b[i] = new;
	}
}

/* A slot that the pool gave out (or froze): a new item. */
static void item_new(struct model *m, uint32_t class, struct skv_run at, enum state state,
		     uint64_t until)
{
	struct skv_slab_info info = slab_info(m->p, at.slab);
	const struct geometry *g = m->g;
	uint32_t slab = at.slab;
	uint32_t slot = at.first;
	struct item it = { .state = state, .class = class, .file = info.place.file, .slab = slab,
			   .slot = slot, .until = until };
	uint64_t end;

	it.offset = skv_slot_offset(&info, slot);
	end = it.offset + info.stride;
	assert_int_equal(info.class_id, m->ids[class]);
	assert_int_equal(info.stride, g->strides[class]);
	if (g->segments[class])
		assert_int_equal(it.offset % g->segments[class] % info.stride, 0);
	else
		assert_int_equal(it.offset % g->aligns[class], 0);
	assert_true(slot < info.slots);
	assert_true(it.offset >= g->header && end <= m->lengths[it.file] - g->trailer);
	assert_true(it.offset >= info.place.unit * g->unit);
	assert_true(end <= (info.place.unit + (uint64_t)info.place.units) * g->unit);
	for (uint32_t u = 0; u < info.place.units; u++)
		assert_false(m->frozen[it.file][info.place.unit + u]);
	assert_int_equal(skv_grow((void **)&m->items, &m->cap_items, m->n_items + 1, sizeof it),
			 SKV_OK);
	m->items[m->n_items] = it;
	paint(m, &it, 0, m->n_items + 1);
	if (state == USED)
		skv_pool_set_owner(m->p, slab, slot, m->n_items);
	m->n_items++;
}

static void item_gone(struct model *m, uint32_t i)
{
	const struct item *it = &m->items[i];
	uint64_t segment = m->g->segments[it->class],
		 begin = segment ? it->offset / segment * segment : 0;
	uint32_t *b = m->bytes[it->file] + begin;
	bool empty = true;

	paint(m, it, i + 1, segment ? DEAD : 0);
	m->items[i].state = GONE;
	for (uint64_t k = 0; k < segment; k++)
		empty &= b[k] == 0 || b[k] == DEAD;
	if (segment && empty)
		memset(b, 0, segment * sizeof *b);
}

/* Drops GONE items, so that random choice finds live ones. */
static void compact(struct model *m)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_items; i++) {
		struct item it = m->items[i];

		if (it.state == GONE)
			continue;
		paint(m, &it, i + 1, n + 1);
		if (it.state == USED) {
			assert_int_equal(skv_pool_owner(m->p, it.slab, it.slot), i);
			skv_pool_set_owner(m->p, it.slab, it.slot, n);
		}
		m->items[n++] = it;
	}
	m->n_items = n;
}

static bool file_draining(const struct model *m, uint32_t slab)
{
	struct skv_file_info info;

	assert_true(skv_pool_file(m->p, slab_info(m->p, slab).place.file, &info));
	return info.draining;
}

static void step_alloc(struct model *m)
{
	static struct skv_run runs[MAX_COUNT];
	uint32_t class = rnd(m, m->n_classes);
	uint64_t had = skv_pool_available(m->p, m->ids[class]);
	uint32_t count = 1 + rnd(m, rnd(m, 4) ? 12 : 200);
	uint32_t n = 0;
	uint64_t sum = 0;

	if (rnd(m, 10) == 0 && had < MAX_COUNT) /* all there is, or one more */
		count = (uint32_t)had + rnd(m, 2);
	if (skv_pool_alloc(m->p, m->ids[class], count, runs, &n)) {
		assert_true(count > had);
		assert_int_equal(skv_pool_available(m->p, m->ids[class]), had);
		return;
	}
	assert_true(count <= had && n <= count);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(runs[i].count > 0);
		assert_false(slab_info(m->p, runs[i].slab).draining ||
			     file_draining(m, runs[i].slab));
		for (uint32_t k = 0; k < runs[i].count; k++)
			item_new(m, class, sub_run(runs[i], k, 1), USED, 0);
		sum += runs[i].count;
	}
	assert_int_equal(sum, count);
	assert_true(skv_pool_available(m->p, m->ids[class]) >= had - count); /* longer slabs */
}

/* A random used item and used neighbours behind it. */
static bool pick_run(struct model *m, struct skv_run *run)
{
	uint32_t want = 1 + rnd(m, 8);

	for (uint32_t tries = 0; m->n_items && tries < 8; tries++) {
		struct item it = m->items[rnd(m, m->n_items)];

		if (it.state != USED)
			continue;
		*run = (struct skv_run){ it.slab, it.slot, 1 };
		while (run->count < want && skv_pool_is_used(m->p, it.slab, it.slot + run->count))
			run->count++;
		return true;
	}
	return false;
}

static void step_end(struct model *m, bool hold)
{
	uint64_t until = m->now + rnd(m, 50);
	struct skv_run run;

	if (!pick_run(m, &run))
		return;
	for (uint32_t k = 0; k < run.count; k++) {
		uint32_t i = skv_pool_owner(m->p, run.slab, run.first + k);

		assert_true(i < m->n_items && m->items[i].state == USED);
		assert_true(m->items[i].slab == run.slab && m->items[i].slot == run.first + k);
		if (hold) {
			m->items[i].state = HELD;
			m->items[i].until = until;
		} else {
			item_gone(m, i);
		}
	}
	if (hold)
		skv_pool_hold(m->p, run, until);
	else
		skv_pool_free(m->p, run);
}

static void step_time(struct model *m)
{
	uint64_t due = m->frozen_until ? m->frozen_until : UINT64_MAX;
	uint64_t expect = 0;

	for (uint32_t i = 0; i < m->n_items; i++)
		if (m->items[i].state == HELD && m->items[i].until < due)
			due = m->items[i].until;
	assert_int_equal(skv_pool_next_due(m->p), due);
	m->now += rnd(m, 12);
	for (uint32_t i = 0; i < m->n_items; i++) {
		if (m->items[i].state == HELD && m->items[i].until <= m->now) {
			item_gone(m, i);
			expect++;
		}
	}
	if (m->frozen_until && m->frozen_until <= m->now) {
		for (int f = 0; f < MAX_FILES; f++)
			for (uint64_t u = 0; u < room(m->g, f) / m->g->unit; u++) {
				expect += m->frozen[f][u];
				m->frozen[f][u] = false;
			}
		m->frozen_until = 0;
	}
	assert_int_equal(skv_pool_release_due(m->p, m->now), expect);
}

static void step_freeze(struct model *m)
{
	struct slab_list l = { .n = 0 };
	uint64_t until = m->now + rnd(m, 60);
	bool any = false;

	skv_pool_each_slab(m->p, list_slab, &l);
	/* First what is in no slab: units that no slab covers. */
	for (uint32_t f = 0; f < MAX_FILES; f++)
		for (uint64_t u = 0; u * m->g->unit < m->lengths[f]; u++) {
			bool in_slab = false;

			for (uint32_t i = 0; i < l.n; i++) {
				struct skv_slab_place at = slab_info(m->p, l.v[i]).place;

				in_slab |= at.file == f && u >= at.unit &&
					   u < at.unit + (uint64_t)at.units;
			}
			if (!in_slab)
				any = m->frozen[f][u] = true;
		}
	skv_pool_freeze_free(m->p, until);
	if (any && until > m->frozen_until)
		m->frozen_until = until;
	for (uint32_t i = 0; i < m->n_items; i++)
		if (m->items[i].state == HELD && m->items[i].until < until)
			m->items[i].until = until;
	for (uint32_t i = 0; i < l.n; i++) {
		struct skv_slab_info info = slab_info(m->p, l.v[i]);
		uint32_t class = 0;

		while (m->ids[class] != info.class_id)
			class++;
		for (uint32_t s = 0; s < info.slots; s++)
			if (m->bytes[info.place.file][skv_slot_offset(&info, s)] == 0)
				item_new(m, class, (struct skv_run){ l.v[i], s, 1 }, HELD, until);
	}
	for (uint32_t c = 0; c < m->n_classes; c++)
		assert_int_equal(skv_pool_available(m->p, m->ids[c]), 0);
}

static void step_drain(struct model *m)
{
	struct slab_list l = { .n = 0 };

	skv_pool_each_slab(m->p, list_slab, &l);
	if (l.n)
		skv_pool_drain(m->p, l.v[rnd(m, l.n)], rnd(m, 3) == 0);
}

/* Is anything of the file used, held or frozen? */
static bool file_busy(const struct model *m, uint32_t f)
{
	for (uint64_t u = 0; u < room(m->g, (int)f) / m->g->unit; u++)
		if (m->frozen[f][u])
			return true;
	for (uint32_t i = 0; i < m->n_items; i++)
		if (m->items[i].state != GONE && m->items[i].file == f)
			return true;
	return false;
}

static void step_file(struct model *m)
{
	uint32_t f = rnd(m, MAX_FILES);
	struct skv_file_info info;
	uint64_t used = 0, held = 0;

	if (!m->lengths[f]) {
		assert_int_equal(skv_pool_drain_file(m->p, f, true), SKV_E_NOT_FOUND);
		assert_int_equal(skv_pool_remove_file(m->p, f), SKV_E_NOT_FOUND);
		assert_false(skv_pool_file(m->p, f, &info));
		if (m->g->lengths[f])
			add_file(m, f, m->g->lengths[f]);
		return;
	}
	assert_int_equal(skv_pool_drain_file(m->p, f, rnd(m, 3) != 0), SKV_OK);
	assert_true(skv_pool_file(m->p, f, &info));
	for (uint32_t i = 0; i < m->n_items; i++) {
		used += m->items[i].file == f && m->items[i].state == USED
				? stride_of(m, m->items[i].class)
				: 0;
		held += m->items[i].file == f && m->items[i].state == HELD
				? stride_of(m, m->items[i].class)
				: 0;
	}
	assert_int_equal(info.length, m->lengths[f]);
	assert_int_equal(info.used_bytes, used);
	assert_int_equal(info.held_bytes, held);
	if (rnd(m, 2) == 0)
		return;
	if (file_busy(m, f)) {
		assert_int_equal(skv_pool_remove_file(m->p, f), SKV_E_IN_USE);
	} else {
		assert_int_equal(skv_pool_remove_file(m->p, f), SKV_OK);
		m->lengths[f] = 0;
	}
}

static uint32_t waits(void *ctx, uint32_t slab)
{
	struct model *m = ctx;

	return (slab + m->now) % 5 && !slab_info(m->p, slab).held ? 0 : SKV_SLAB_STAYS;
}

static uint64_t cost(void *ctx, uint32_t slab)
{
	struct model *m = ctx;

	return slab_info(m->p, slab).used * (slab % 3);
}

static void step_victims(struct model *m)
{
	uint32_t class = rnd(m, m->n_classes);
	uint64_t had = skv_pool_available(m->p, m->ids[class]);
	uint32_t *slabs;
	size_t n;

	if (skv_pool_find_victims(m->p, m->ids[class],
				  &(struct skv_victims){ waits, rnd(m, 2) ? cost : NULL, m },
				  &slabs, &n))
		return;
	assert_true(n > 0);
	for (size_t i = 0; i < n; i++) {
		struct skv_slab_info info = slab_info(m->p, slabs[i]);

		assert_int_not_equal(info.class_id, m->ids[class]);
		assert_int_equal(waits(m, slabs[i]), 0);
		for (uint32_t s = 0; s < info.slots; s++) {
			if (!skv_pool_is_used(m->p, slabs[i], s))
				continue;
			item_gone(m, skv_pool_owner(m->p, slabs[i], s));
			skv_pool_free(m->p, (struct skv_run){ slabs[i], s, 1 });
		}
	}
	skv_free(slabs);
	assert_true(skv_pool_available(m->p, m->ids[class]) > had);
}

/* The pool's counts and holds against the model's items. */
static void compare(struct model *m)
{
	struct skv_pool_stats st = pool_stats(m->p);
	struct slab_list l = { .n = 0 };
	uint64_t used = 0;
	uint64_t held = 0;

	check(m->p);
	for (uint32_t i = 0; i < m->n_items; i++) {
		const struct item *it = &m->items[i];

		if (it->state == GONE)
			continue;
		*(it->state == USED ? &used : &held) += stride_of(m, it->class);
		assert_int_equal(skv_pool_is_used(m->p, it->slab, it->slot), it->state == USED);
	}
	assert_int_equal(st.used_bytes, used);
	assert_int_equal(st.held_bytes, held);
	assert_int_equal(st.assigned_bytes + st.free_unit_bytes, st.file_bytes);
	skv_pool_each_slab(m->p, list_slab, &l);
	assert_int_equal(l.n, st.slabs);
	for (uint32_t i = 0; i < l.n; i++) {
		struct skv_slab_info info = slab_info(m->p, l.v[i]);

		assert_true(info.used + info.held > 0);
	}
}

static void step(struct model *m)
{
	uint32_t r = rnd(m, 1000);

	if (r < 400)
		step_alloc(m);
	else if (r < 640)
		step_end(m, false);
	else if (r < 820)
		step_end(m, true);
	else if (r < 950)
		step_time(m);
	else if (r < 970)
		step_drain(m);
	else if (r < 985)
		step_file(m);
	else if (r < 995)
		step_victims(m);
	else
		step_freeze(m);
}

/* Gives everything back: nothing may be left, and what an empty pool offers must be there again. */
static void give_back(struct model *m)
{
	compact(m);
	for (uint32_t f = 0; f < MAX_FILES; f++)
		if (m->lengths[f])
			assert_int_equal(skv_pool_drain_file(m->p, f, false), SKV_OK);
	for (uint32_t i = 0; i < m->n_items; i++) {
		struct item it = m->items[i];

		if (it.state == USED)
			skv_pool_free(m->p, (struct skv_run){ it.slab, it.slot, 1 });
	}
	skv_pool_release_due(m->p, UINT64_MAX - 1);
	check(m->p);
	assert_int_equal(pool_stats(m->p).slabs, 0);
	assert_int_equal(pool_stats(m->p).free_unit_bytes, pool_stats(m->p).file_bytes);
	for (uint32_t c = 0; c < m->n_classes; c++) {
		uint64_t all = 0;

		for (int f = 0; f < MAX_FILES; f++)
			all += skv_pool_slots_in_file(m->p, m->ids[c], m->lengths[f]);
		assert_int_equal(skv_pool_available(m->p, m->ids[c]), all);
	}
}

static void run(const struct geometry *g, uint64_t seed)
{
	struct model m;

	model_open(&m, g, seed);
	for (uint32_t i = 0; i < STEPS; i++) {
		step(&m);
		compare(&m);
		if (i % 16 == 0)
			compact(&m);
		if (i % 50 == 0)
			model_rebuild(&m);
		for (uint32_t f = 0; i == STEPS / 2 && f < MAX_FILES; f++)
			if (g->grown[f])
				add_file(&m, f, g->grown[f]);
	}
	give_back(&m);
	model_close(&m);
}

static void test_random_operations(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++) {
		for (unsigned long seed = 1; seed <= seeds; seed++) {
			print_message("geometry \"%s\", seed %lu\n", geometries[i].name, seed);
			run(&geometries[i], seed);
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_operations),
	};

	if (argc > 1)
		seeds = strtoul(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
