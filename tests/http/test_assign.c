/*
 * test_assign.c - which manager should own which partition: bounds, as few moves as possible, the
 * same for all who look, for 1 to 16 partitions and 1 to 20 members that join, leave and drain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <skv/assign.h>
#include <skv/status.h>

#define PARTITIONS 16u
#define MEMBERS 20u

struct fleet {
	char id[MEMBERS][16];
	struct skv_assign_member v[MEMBERS];
	uint32_t n;
	uint32_t has[PARTITIONS], should[PARTITIONS], n_partitions;
};

static uint64_t rng = 88172645463325252ull;

static uint32_t below(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng % n);
}

static void begin(struct fleet *f, uint32_t partitions)
{
	*f = (struct fleet){ .n_partitions = partitions };
	for (uint32_t p = 0; p < partitions; p++)
		f->has[p] = SKV_NOBODY;
}

static void join(struct fleet *f, uint32_t number)
{
	assert_true(f->n < MEMBERS);
	snprintf(f->id[f->n], sizeof f->id[f->n], "host:%u", (unsigned)number);
	f->v[f->n].leaves = false;
	f->n++;
	for (uint32_t i = 0; i < f->n; i++)
		f->v[i].id = f->id[i];
}

/* Member `at` is gone, and so are its partitions' owners. */
static void leave(struct fleet *f, uint32_t at)
{
	f->n--;
	memmove(f->id[at], f->id[at + 1], (f->n - at) * sizeof f->id[0]);
	for (uint32_t i = at; i < f->n; i++)
		f->v[i].leaves = f->v[i + 1].leaves;
	for (uint32_t p = 0; p < f->n_partitions; p++) {
		if (f->has[p] == at)
			f->has[p] = SKV_NOBODY;
		else if (f->has[p] != SKV_NOBODY && f->has[p] > at)
			f->has[p]--;
	}
}

static void assign(struct fleet *f)
{
	assert_int_equal(skv_assign(f->v, f->n, f->has, f->should, f->n_partitions), SKV_OK);
}

static uint32_t moves(const struct fleet *f)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < f->n_partitions; p++)
		n += f->has[p] != f->should[p];
	return n;
}

static uint32_t staying(const struct fleet *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n; i++)
		n += !f->v[i].leaves;
	return n;
}

/* How many must move whatever one does: nobody keeps more than the floor, but for as many as there
 * are partitions left over, who keep one more. */
static uint32_t least_moves(const struct fleet *f, uint32_t stay)
{
	uint32_t rest = f->n_partitions % stay, kept = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t has = 0, most = f->n_partitions / stay;

		for (uint32_t p = 0; p < f->n_partitions; p++)
			has += f->has[p] == i;
		if (f->v[i].leaves)
			continue;
		if (has > most && rest) {
			rest--;
			most++;
		}
		kept += has < most ? has : most;
	}
	return f->n_partitions - kept;
}

static void check(struct fleet *f)
{
	const uint32_t stay = staying(f);

	assign(f);
	for (uint32_t p = 0; p < f->n_partitions; p++)
		assert_true(stay ? f->should[p] < f->n && !f->v[f->should[p]].leaves
				 : f->should[p] == SKV_NOBODY);
	if (!stay)
		return;
	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t gets = 0;

		for (uint32_t p = 0; p < f->n_partitions; p++)
			gets += f->should[p] == i;
		if (!f->v[i].leaves)
			assert_in_range(gets, f->n_partitions / stay,
					(f->n_partitions + stay - 1) / stay);
	}
	assert_int_equal(moves(f), least_moves(f, stay));
}

/* Whoever lists the members the other way round comes to the same. */
static void check_order(const struct fleet *f)
{
	struct fleet back = *f;

	for (uint32_t i = 0; i < f->n; i++) {
		back.v[i].id = f->id[f->n - 1 - i];
		back.v[i].leaves = f->v[f->n - 1 - i].leaves;
	}
	for (uint32_t p = 0; p < f->n_partitions; p++)
		if (f->has[p] != SKV_NOBODY)
			back.has[p] = f->n - 1 - f->has[p];
	assign(&back);
	for (uint32_t p = 0; p < f->n_partitions; p++)
		assert_true(back.should[p] == SKV_NOBODY
				    ? f->should[p] == SKV_NOBODY
				    : back.should[p] == f->n - 1 - f->should[p]);
}

/* One after the other, in any order, each first given up and then taken: none has to move twice. */
static void carry_out(struct fleet *f)
{
	uint32_t left = moves(f);

	while (left) {
		uint32_t p = below(f->n_partitions);

		if (f->has[p] == f->should[p])
			continue;
		if (f->has[p] != SKV_NOBODY) {
			f->has[p] = SKV_NOBODY;
			check(f);
			assert_int_equal(moves(f), left);
			continue;
		}
		f->has[p] = f->should[p];
		check(f);
		assert_int_equal(moves(f), --left);
	}
	check(f);
	assert_int_equal(moves(f), 0);
}

static void change(struct fleet *f, uint32_t *next)
{
	switch (f->n == MEMBERS ? 1 + below(2) : f->n == 1 ? 2 * below(2) : below(3)) {
	case 0: join(f, (*next)++); break;
	case 1: leave(f, below(f->n)); break;
	default: {
		bool *leaves = &f->v[below(f->n)].leaves;

		*leaves = !*leaves;
	}
	}
}

static void members_come_and_go(void **state)
{
	(void)state;
	for (uint32_t partitions = 1; partitions <= PARTITIONS; partitions++) {
		struct fleet f;
		uint32_t next = 0;

		begin(&f, partitions);
		join(&f, next++);
		for (int i = 0; i < 400; i++) {
			change(&f, &next);
			check(&f);
			check_order(&f);
			if (staying(&f) && below(4)) /* else there is another change first */
				carry_out(&f);
		}
	}
}

/* 16 over three: 6, 5 and 5; a fourth gets 4, which are the only ones to move. */
static void sixteen_over_three(void **state)
{
	struct fleet f;
	uint32_t gets[4] = { 0 };

	(void)state;
	begin(&f, PARTITIONS);
	for (uint32_t i = 0; i < 3; i++)
		join(&f, i);
	check(&f);
	memcpy(f.has, f.should, sizeof f.has);
	join(&f, 3);
	check(&f);
	assert_int_equal(moves(&f), 4);
	for (uint32_t p = 0; p < PARTITIONS; p++)
		gets[f.should[p]]++;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(gets[i], 4);
	for (uint32_t p = 0; p < PARTITIONS; p++)
		assert_true(f.should[p] == f.has[p] || f.should[p] == 3);
}

/* Names decide where things go first: stores do not all begin at the same member. */
static void names_matter(void **state)
{
	uint32_t first[MEMBERS] = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		struct fleet f;

		begin(&f, 1);
		for (uint32_t k = 0; k < 4; k++)
			join(&f, 4 * i + k);
		check(&f);
		first[f.should[0]]++;
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_in_range(first[i], 20, 90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_come_and_go),
		cmocka_unit_test(sixteen_over_three),
		cmocka_unit_test(names_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
