/*
 * test_core_birth.c - when blocks were made, for years: what is remembered of times stays small,
 * and tells each of them to a part of its age.
 */
#include "core_env.h"

#include <stdlib.h>

#include <skv/mem.h>

#include <lock/core.h>
#include <model/birth.h>
#include <model/partition.h>

#define SAMPLES 4000u

struct sample {
	uint64_t generation, wall;
};

/* Of a core that does not have it yet: nobody else looks at it. */
static struct partition *own_quota_share(void)
{
	static struct skv_core core;
	struct partition *p = calloc(1, sizeof *p);

	assert_non_null(p);
	p->core = &core;
	return p;
}

/* Starts at random times, `gap` ms apart on average; some of them are remembered here exactly. */
static void years(uint64_t gap, uint64_t starts, unsigned seed)
{
	struct partition *p = own_quota_share();
	struct sample *s = calloc(SAMPLES, sizeof *s);
	uint64_t wall = 1700000000000ull, generation = 1, most = 0;

	assert_non_null(s);
	for (uint64_t i = 0; i < starts; i++) {
		wall += (uint64_t)rand_r(&seed) % (2 * gap + 1);
		birth_note(p, generation, wall);
		s[i % 2 ? i % SAMPLES : (uint32_t)rand_r(&seed) % SAMPLES] =
			(struct sample){ generation, wall };
		generation += 1 + (uint64_t)rand_r(&seed) % 100;
		most = p->n_births > most ? p->n_births : most;
	}
	assert_true(most <= 8192);
	for (uint32_t i = 0; i < SAMPLES; i++) {
		uint64_t told = birth_of(p, s[i].generation), age = wall - s[i].wall;

		if (!s[i].generation)
			continue;
		assert_true(told <= s[i].wall);
		if (s[i].wall - told > age / 150 + gap * 2)
			fail_msg("a block %llu ms old is told to be %llu ms older",
				 (unsigned long long)age, (unsigned long long)(s[i].wall - told));
	}
	skv_free(p->birth);
	free(p);
	free(s);
}

static void times_for_years(void **state)
{
	(void)state;
	years(1, 1000000, 1);       /* a start each ms */
	years(50, 1000000, 2);      /* half a day */
	years(5000, 1000000, 3);    /* two months */
	years(300000, 1000000, 4);  /* ten years */
	years(100000000, 5000, 5);  /* few starts: all are known */
}

/* A clock that was set back, generations that come again, and times that no clock tells. */
static void odd_times(void **state)
{
	struct partition *p = own_quota_share();

	(void)state;
	assert_int_equal(birth_of(p, 5), 0);
	birth_note(p, 10, 1000);
	assert_int_equal(birth_of(p, 9), 0);
	assert_int_equal(birth_of(p, 0), 0);
	birth_note(p, 20, 500); /* set back: no older than the block before */
	assert_int_equal(birth_of(p, 20), 1000);
	assert_int_equal(birth_of(p, 10), 1000);
	birth_note(p, 10, 2000); /* replayed */
	assert_int_equal(p->n_births, 1);
	for (uint64_t i = 1; i <= 100000; i++) /* ever faster */
		birth_note(p, 100 + i, 1000 + i * i * i);
	assert_true(p->n_births <= 8192);
	birth_note(p, UINT64_MAX - 1, UINT64_MAX);
	assert_int_equal(birth_of(p, UINT64_MAX), UINT64_MAX);
	skv_free(p->birth);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_for_years),
		cmocka_unit_test(odd_times),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
