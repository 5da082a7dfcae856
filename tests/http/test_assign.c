/*
 * test_assign.c - which manager should own which partition: bounds, as few moves as possible, the
 * same for all who look, for 1 to 16 partitions and 1 to 20 members that join, leave and drain, and
 * are homes of some.
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
	uint32_t has[PARTITIONS], home[PARTITIONS], should[PARTITIONS], n_partitions;
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
		f->has[p] = f->home[p] = SKV_NOBODY;
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

static void forget(uint32_t *of, uint32_t n, uint32_t at)
{
	for (uint32_t p = 0; p < n; p++) {
		if (of[p] == at)
			of[p] = SKV_NOBODY;
		else if (of[p] != SKV_NOBODY && of[p] > at)
			of[p]--;
	}
}

/* Member `at` is gone, and so are its partitions' owners, and it is nobody's home. */
static void leave(struct fleet *f, uint32_t at)
{
	f->n--;
	memmove(f->id[at], f->id[at + 1], (f->n - at) * sizeof f->id[0]);
	for (uint32_t i = at; i < f->n; i++)
		f->v[i].leaves = f->v[i + 1].leaves;
	forget(f->has, f->n_partitions, at);
	forget(f->home, f->n_partitions, at);
}

static void assign(struct fleet *f, const uint32_t *shuns)
{
	struct skv_assign_partition of[PARTITIONS];

	for (uint32_t p = 0; p < f->n_partitions; p++)
		of[p] = (struct skv_assign_partition){ f->has[p], shuns ? shuns[p] : SKV_NOBODY,
						       f->home[p] };
	assert_int_equal(skv_assign(f->v, f->n, of, f->should, f->n_partitions), SKV_OK);
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

static bool at_home(const struct fleet *f, uint32_t p)
{
	return f->home[p] != SKV_NOBODY && !f->v[f->home[p]].leaves;
}

static uint32_t homes_of(const struct fleet *f, uint32_t i)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < f->n_partitions; p++)
		n += at_home(f, p) && f->home[p] == i;
	return n;
}

/* The level to which shares are filled: the highest one that the partitions without a home reach
 * for all that have fewer; *rest: how many of these get one more. */
static uint32_t level(const struct fleet *f, uint32_t *rest)
{
	for (uint32_t most = f->n_partitions;; most--) {
		uint32_t need = 0, others = 0;

		for (uint32_t i = 0; i < f->n; i++)
			if (!f->v[i].leaves && homes_of(f, i) < most)
				need += most - homes_of(f, i);
		for (uint32_t p = 0; p < f->n_partitions; p++)
			others += !at_home(f, p);
		*rest = others - need;
		if (need <= others)
			return most;
	}
}

/* How many must move whatever one does: those that are not at home, and of the others what nobody
 * may keep: up to the level, but for as many as are left over, where one more is kept. */
static uint32_t least_moves(const struct fleet *f)
{
	uint32_t rest, most = level(f, &rest), kept = 0, more = 0;

	for (uint32_t p = 0; p < f->n_partitions; p++)
		kept += at_home(f, p) && f->has[p] == f->home[p];
	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t has = 0, homes = homes_of(f, i), room = most > homes ? most - homes : 0;

		for (uint32_t p = 0; p < f->n_partitions; p++)
			has += f->has[p] == i && !at_home(f, p);
		if (f->v[i].leaves)
			continue;
		kept += has < room ? has : room;
		more += has > room && homes <= most;
	}
	return f->n_partitions - kept - (more < rest ? more : rest);
}

static void check(struct fleet *f)
{
	const uint32_t stay = staying(f);
	uint32_t rest, most;

	assign(f, NULL);
	for (uint32_t p = 0; p < f->n_partitions; p++)
		assert_true(stay ? f->should[p] < f->n && !f->v[f->should[p]].leaves
				 : f->should[p] == SKV_NOBODY);
	if (!stay)
		return;
	most = level(f, &rest);
	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t gets = 0, homes = homes_of(f, i);

		for (uint32_t p = 0; p < f->n_partitions; p++)
			gets += f->should[p] == i;
		if (f->v[i].leaves)
			continue;
		if (homes > most)
			assert_int_equal(gets, homes);
		else
			assert_in_range(gets, most, most + (rest > 0));
	}
	for (uint32_t p = 0; p < f->n_partitions; p++)
		assert_true(!at_home(f, p) || f->should[p] == f->home[p]);
	assert_int_equal(moves(f), least_moves(f));
}

/* The result does not depend on the order of the members. */
static void check_order(const struct fleet *f)
{
	struct fleet back = *f;

	for (uint32_t i = 0; i < f->n; i++) {
		back.v[i].id = f->id[f->n - 1 - i];
		back.v[i].leaves = f->v[f->n - 1 - i].leaves;
	}
	for (uint32_t p = 0; p < f->n_partitions; p++) {
		if (f->has[p] != SKV_NOBODY)
			back.has[p] = f->n - 1 - f->has[p];
		if (f->home[p] != SKV_NOBODY)
			back.home[p] = f->n - 1 - f->home[p];
	}
	assign(&back, NULL);
	for (uint32_t p = 0; p < f->n_partitions; p++)
		assert_true(back.should[p] == SKV_NOBODY
				    ? f->should[p] == SKV_NOBODY
				    : back.should[p] == f->n - 1 - f->should[p]);
}

/* Carries out the moves one after the other, in any order, each first given up and then taken: no
 * partition has to move twice. */
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

static void come_and_go(uint32_t partitions, bool homes)
{
	struct fleet f;
	uint32_t next = 0;

	begin(&f, partitions);
	join(&f, next++);
	for (int i = 0; i < 400; i++) {
		if (homes && below(2))
			f.home[below(partitions)] = below(3) ? below(f.n) : SKV_NOBODY;
		else
			change(&f, &next);
		check(&f);
		check_order(&f);
		if (staying(&f) && below(4)) /* else there is another change first */
			carry_out(&f);
	}
}

static void members_come_and_go(void **state)
{
	(void)state;
	for (uint32_t partitions = 1; partitions <= PARTITIONS; partitions++) {
		come_and_go(partitions, false);
		come_and_go(partitions, true);
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

/* A partition that a member has just lost or given up goes to another one, though that member has
 * its share. */
static void lost_goes_elsewhere(void **state)
{
	uint32_t shuns[PARTITIONS], gets[3] = { 0 };
	struct fleet f;

	(void)state;
	begin(&f, PARTITIONS);
	for (uint32_t i = 0; i < 3; i++)
		join(&f, i);
	check(&f);
	memcpy(f.has, f.should, sizeof f.has);
	for (uint32_t p = 0; p < PARTITIONS; p++) {
		shuns[p] = f.has[p] == 1 ? 1 : SKV_NOBODY;
		if (f.has[p] == 1)
			f.has[p] = SKV_NOBODY;
	}
	assign(&f, shuns);
	for (uint32_t p = 0; p < PARTITIONS; p++) {
		assert_true(f.has[p] == SKV_NOBODY || f.should[p] == f.has[p]);
		gets[f.should[p]]++;
	}
	assert_true(gets[1] == 0 && gets[0] == 8 && gets[2] == 8);
	/* unless there is no other */
	f.v[0].leaves = f.v[2].leaves = true;
	assign(&f, shuns);
	for (uint32_t p = 0; p < PARTITIONS; p++)
		assert_int_equal(f.should[p], 1);
}

/* A home is one as long as it stays, and has not just lost the partition. */
static void home_while_it_is_there(void **state)
{
	uint32_t shuns[PARTITIONS];
	struct fleet f;

	(void)state;
	begin(&f, PARTITIONS);
	for (uint32_t i = 0; i < 3; i++)
		join(&f, i);
	for (uint32_t p = 0; p < 10; p++)
		f.home[p] = 2;
	check(&f);
	memcpy(f.has, f.should, sizeof f.has);
	check(&f);
	assert_int_equal(moves(&f), 0);
	f.v[2].leaves = true;
	check(&f);
	f.v[2].leaves = false;
	for (uint32_t p = 0; p < PARTITIONS; p++) {
		shuns[p] = f.has[p] == 2 ? 2 : SKV_NOBODY;
		if (f.has[p] == 2)
			f.has[p] = SKV_NOBODY;
	}
	assign(&f, shuns);
	for (uint32_t p = 0; p < PARTITIONS; p++)
		assert_int_not_equal(f.should[p], 2);
	memcpy(f.has, f.should, sizeof f.has);
	check(&f); /* nobody shuns it any more */
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
		cmocka_unit_test(lost_goes_elsewhere),
		cmocka_unit_test(home_while_it_is_there),
		cmocka_unit_test(names_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
