/* skv_pool_check finds what is damaged: each test breaks one thing inside a sound pool. */
#include "pooltest.h"

#include <internal.h>

/* Two slabs, a hold, a free block, frozen units: something of each. */
static struct skv_pool *sound_pool(struct skv_run *used)
{
	struct skv_pool *p = make_pool(4096, 0, 0);
	uint32_t c = make_class(p, 64, 64);
	struct skv_run a;

	assert_int_equal(skv_pool_add_file(p, 1, 4096 * 2), SKV_OK);
	alloc_run(p, c, 1);
	skv_pool_freeze_free(p, 1000);
	assert_int_equal(skv_pool_add_file(p, 2, 4096 * 9), SKV_OK);
	a = alloc_run(p, c, 60);
	skv_pool_hold(p, sub_run(a, 0, 10), 100);
	skv_pool_hold(p, sub_run(a, 20, 1), 50);
	*used = sub_run(a, 40, 1);
	check(p);
	return p;
}

static void unset_used_bit(struct skv_pool *p, struct slab *s)
{
	(void)p;
	skv_bits_fill(s->busy, 40, 1, false);
}

static void hold_a_free_slot(struct skv_pool *p, struct slab *s)
{
	(void)p;
	skv_bits_fill(s->held_bits, 62, 1, true);
	skv_bits_fill(s->held_bits, 0, 1, false);
}

static void lose_a_unit(struct skv_pool *p, struct slab *s)
{
	(void)p;
	s->at.file->units[s->at.first].slab = NO_SLAB;
}

static void give_a_unit_to_another(struct skv_pool *p, struct slab *s)
{
	s->at.file->units[s->at.first].slab = s->handle ? 0 : 1;
	(void)p;
}

static void freeze_a_slab(struct skv_pool *p, struct slab *s)
{
	(void)p;
	s->at.file->units[s->at.first].frozen = true;
}

static void miscount_frozen(struct skv_pool *p, struct slab *s)
{
	(void)s;
	p->frozen_units++;
}

static void overlap_free_blocks(struct skv_pool *p, struct slab *s)
{
	(void)s;
	skv_file_find(p, 2)->units[5].order = 0;
}

static void drop_a_free_block(struct skv_pool *p, struct slab *s)
{
	(void)s;
	for (int o = 0; o < ORDERS; o++)
		p->free_blocks[o] = NULL;
}

static void split_a_buddy(struct skv_pool *p, struct slab *s)
{
	struct window w = { skv_file_find(p, 2), 4, 4 };

	(void)s;
	skv_units_claim(p, w, 0);
	for (uint32_t i = 4; i < 8; i++)
		w.file->units[i].slab = NO_SLAB;
	w.file->units[4].order = 1;
	w.file->units[6].order = 1;
}

static void bound_too_low(struct skv_pool *p, struct slab *s)
{
	(void)p;
	skv_slab_unlist(s);
	s->longest = 1;
	skv_slab_list(s);
}

static void wrong_list(struct skv_pool *p, struct slab *s)
{
	(void)p;
	s->longest = 64;
}

static void forget_in_lists(struct skv_pool *p, struct slab *s)
{
	(void)p;
	skv_slab_unlist(s);
}

static void miscount_free(struct skv_pool *p, struct slab *s)
{
	(void)p;
	s->class->free++;
}

static void clear_a_mask(struct skv_pool *p, struct slab *s)
{
	(void)p;
	s->class->run_mask = 0;
}

static void slots_beyond_the_window(struct skv_pool *p, struct slab *s)
{
	(void)p;
	s->first_offset += 64;
}

static void strange_hold(struct skv_pool *p, struct slab *s)
{
	(void)p;
	s->owner[0] = 77;
}

static void hold_of_another(struct skv_pool *p, struct slab *s)
{
	(void)p;
	s->owner[0] = s->owner[20];
}

static void miscount_live(struct skv_pool *p, struct slab *s)
{
	p->holds[s->owner[0]].live++;
}

static void hold_for_the_overflow(struct skv_pool *p, struct slab *s)
{
	p->holds[s->owner[20]].live--;
	s->owner[20] = NO_HOLD;
}

static void disorder_the_heap(struct skv_pool *p, struct slab *s)
{
	(void)s;
	p->holds[p->heap[0]].until = 100000;
}

static void lose_a_hold(struct skv_pool *p, struct slab *s)
{
	(void)s;
	p->n_heap--;
}

static void lose_a_handle(struct skv_pool *p, struct slab *s)
{
	(void)s;
	p->n_spare++;
}

static void disorder_files(struct skv_pool *p, struct slab *s)
{
	(void)s;
	p->files[0]->id = 3;
}

static void test_damage_is_found(void **state)
{
	static const struct {
		const char *name;
		void (*damage)(struct skv_pool *p, struct slab *s);
	} rows[] = {
#define ROW(f) { #f, f }
		ROW(unset_used_bit),
		ROW(hold_a_free_slot),
		ROW(lose_a_unit),
		ROW(give_a_unit_to_another),
		ROW(freeze_a_slab),
		ROW(miscount_frozen),
		ROW(overlap_free_blocks),
		ROW(drop_a_free_block),
		ROW(split_a_buddy),
		ROW(bound_too_low),
		ROW(wrong_list),
		ROW(forget_in_lists),
		ROW(miscount_free),
		ROW(clear_a_mask),
		ROW(slots_beyond_the_window),
		ROW(strange_hold),
		ROW(hold_of_another),
		ROW(miscount_live),
		ROW(hold_for_the_overflow),
		ROW(disorder_the_heap),
		ROW(lose_a_hold),
		ROW(lose_a_handle),
		ROW(disorder_files),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct skv_run used;
		struct skv_pool *p = sound_pool(&used);
		struct skv_error err;

		rows[i].damage(p, p->slabs[used.slab]);
		skv_error_clear(&err);
		if (skv_pool_check(p, &err) != SKV_E_CORRUPT)
			fail_msg("%s is not found", rows[i].name);
		assert_int_equal(err.status, SKV_E_CORRUPT);
		assert_true(err.message[0] != '\0');
		assert_int_equal(skv_pool_check(p, NULL), SKV_E_CORRUPT);
		skv_pool_destroy(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damage_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
