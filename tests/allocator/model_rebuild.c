/* model_rebuild.c - recovery of the model's pool: a second pool that must be like the first. */
#include "model.h"

struct rebuild {
	const struct model *m;
	struct skv_pool *p;
};

static void take_run(struct rebuild *r, struct skv_run run, bool held, uint64_t until)
{
	struct skv_slab_info info = slab_info(r->m->p, run.slab);
	struct skv_run out;

	assert_int_equal(skv_pool_take(r->p, info.class_id, info.place, run.first, run.count, &out),
			 SKV_OK);
	if (held)
		skv_pool_hold(r->p, out, until);
}

static void take_hold(void *ctx, struct skv_run run, uint64_t until_ms)
{
	take_run(ctx, run, true, until_ms);
}

static void take_used(void *ctx, uint32_t slab)
{
	struct rebuild *r = ctx;
	struct skv_slab_info info = slab_info(r->m->p, slab);

	for (uint32_t s = 0; s < info.slots; s++)
		if (skv_pool_is_used(r->m->p, slab, s))
			take_run(r, (struct skv_run){ slab, s, 1 }, false, 0);
}

static void compare_slab(void *ctx, uint32_t slab)
{
	struct rebuild *r = ctx;
	struct skv_slab_info a = slab_info(r->m->p, slab);
	struct slab_list l = { .n = 0 };
	uint32_t same = 0;

	skv_pool_each_slab(r->p, list_slab, &l);
	for (uint32_t i = 0; i < l.n; i++) {
		struct skv_slab_info b = slab_info(r->p, l.v[i]);

		if (b.place.file != a.place.file || b.place.unit != a.place.unit)
			continue;
		same++;
		assert_int_equal(b.place.units, a.place.units);
		assert_int_equal(b.class_id, a.class_id);
		assert_int_equal(b.first_offset, a.first_offset);
		assert_true(b.slots >= a.slots); /* more when the file has grown meanwhile */
		assert_int_equal(b.used, a.used);
		assert_int_equal(b.held, a.held);
		for (uint32_t s = 0; s < a.slots; s++)
			assert_int_equal(skv_pool_is_used(r->p, l.v[i], s),
					 skv_pool_is_used(r->m->p, slab, s));
	}
	assert_int_equal(same, 1);
}

void model_rebuild(const struct model *m)
{
	struct rebuild r = { m, make_pool(m->g->unit, m->g->header, m->g->trailer) };
	uint64_t soon = 0;

	for (uint32_t f = 0; f < MAX_FILES; f++)
		if (m->lengths[f])
			assert_int_equal(skv_pool_add_file(r.p, f, m->lengths[f]), SKV_OK);
	for (uint32_t c = 0; c < m->n_classes; c++)
		assert_int_equal(model_class(m, r.p, c), m->ids[c]);
	skv_pool_each_hold(m->p, take_hold, &r);
	skv_pool_each_slab(m->p, take_used, &r);
	check(r.p);
	assert_int_equal(pool_stats(r.p).slabs, pool_stats(m->p).slabs);
	skv_pool_each_slab(m->p, compare_slab, &r);
	for (uint32_t i = 0; i < m->n_items; i++)
		soon += m->items[i].state == HELD && m->items[i].until <= m->now + 20;
	assert_int_equal(skv_pool_release_due(r.p, m->now + 20), soon);
	check(r.p);
	skv_pool_destroy(r.p);
}
