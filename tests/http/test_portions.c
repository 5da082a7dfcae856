/* test_portions.c - a long list is cut into portions, whether the answers come at once or later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <skv/portions.h>

#define MOST 10u

/* A list, and what was asked of it. */
struct list {
	struct skv_portions p;
	bool later;      /* answers come when the test gives them */
	uint32_t fails;  /* number of the portion that fails; UINT32_MAX: none */
	uint32_t stops;  /* ... after which the API wants no more */
	uint32_t asked, at[8], n[8];
	bool waits; /* the newest portion has no answer yet */
	unsigned ended;
	int status;
};

static int result_of(const struct list *l, uint32_t number)
{
	return number == l->fails ? SKV_E_NO_SPACE : SKV_OK;
}

static int ask(void *ctx)
{
	struct list *l = ctx;

	assert_false(l->waits);
	l->at[l->asked] = l->p.at;
	l->n[l->asked++] = l->p.n;
	l->waits = l->later;
	return l->later ? SKV_PENDING : result_of(l, l->asked - 1);
}

static bool take(void *ctx, int *status)
{
	const struct list *l = ctx;

	assert_int_equal(*status, result_of(l, l->asked - 1));
	if (*status != SKV_OK)
		*status = SKV_E_IO; /* an API may tell it differently */
	return *status == SKV_OK && l->asked - 1 != l->stops;
}

static void on_end(void *ctx, int status)
{
	struct list *l = ctx;

	l->ended++;
	l->status = status;
}

/* Runs the list to its end, which comes once. */
static int run(struct list *l, uint32_t total, bool takes)
{
	const struct skv_done end = { on_end, l };
	int rc;

	l->p = (struct skv_portions){ .total = total, .most = MOST, .ask = ask,
				      .take = takes ? take : NULL, .ctx = l, .end = &end };
	rc = skv_portions_run(&l->p);
	assert_int_equal(rc == SKV_PENDING, l->later);
	while (l->waits) {
		assert_int_equal(l->ended, 0);
		l->waits = false;
		l->p.done.fn(l->p.done.ctx, result_of(l, l->asked - 1));
	}
	assert_int_equal(l->ended, l->later);
	return l->later ? l->status : rc;
}

static void every_element_is_in_one_portion(void **state)
{
	(void)state;
	for (uint32_t total = 0; total <= 3 * MOST + 1; total++) {
		for (int kind = 0; kind < 4; kind++) {
			struct list l = { .later = kind & 1, .fails = UINT32_MAX,
					  .stops = UINT32_MAX };
			uint32_t at = 0;

			assert_int_equal(run(&l, total, kind & 2), SKV_OK);
			for (uint32_t i = 0; i < l.asked; i++) {
				assert_int_equal(l.at[i], at);
				assert_true(l.n[i] <= MOST && (l.n[i] > 0 || total == 0));
				at += l.n[i];
			}
			assert_int_equal(at, total);
			assert_int_equal(l.asked, total ? (total + MOST - 1) / MOST : 1);
		}
	}
}

static void a_failure_ends_the_list(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct list l = { .later = kind & 1, .fails = 1, .stops = UINT32_MAX };

		assert_int_equal(run(&l, 3 * MOST, kind & 2),
				 kind & 2 ? SKV_E_IO : SKV_E_NO_SPACE);
		assert_int_equal(l.asked, 2);
	}
}

static void the_api_may_have_enough(void **state)
{
	(void)state;
	for (int later = 0; later < 2; later++) {
		struct list l = { .later = later, .fails = UINT32_MAX, .stops = 1 };

		assert_int_equal(run(&l, 5 * MOST, true), SKV_OK);
		assert_int_equal(l.asked, 2);
		assert_int_equal(l.p.at, MOST); /* the newest portion stays named */
		assert_int_equal(l.p.n, MOST);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_element_is_in_one_portion),
		cmocka_unit_test(a_failure_ends_the_list),
		cmocka_unit_test(the_api_may_have_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
