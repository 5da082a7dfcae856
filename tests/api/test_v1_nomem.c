/*
 * test_v1_nomem.c - the n-th allocation fails, for n = 1, 2, ... until none does:
 * reading and writing any message gives SKV_E_NOMEM, a failed buffer, or exactly what it
 * gives without the failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

#include "messages.h"

struct result {
	int status;
	bool failed; /* the output buffer */
	char *text;
};

/* Echo with the `n`-th allocation failing; the caller frees .text. */
static struct result echo(const struct message *m, unsigned long n, unsigned long *asked)
{
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena, .secret = &test_secret, .tenant = "default" };
	struct skv_error err;
	struct skv_buf out;
	struct result r;

	skv_arena_init(&arena);
	skv_buf_init(&out);
	skv_error_clear(&err);
	skv_mem_fail_at(n);
	r.status = m->echo(&in, m->sample, m->n_sample, &out, &err);
	*asked = skv_mem_count();
	skv_mem_fail_at(0);
	assert_int_equal(r.status, err.status);
	r.failed = out.failed;
	r.text = strndup(out.data ? (char *)out.data : "", out.len);
	skv_buf_destroy(&out);
	skv_arena_destroy(&arena);
	return r;
}

static void every_allocation_of(const struct message *m)
{
	unsigned long n = 0, asked, failures = 0;
	struct result good = echo(m, 0, &asked);

	do {
		struct result r = echo(m, ++n, &asked);

		if (r.status == SKV_E_NOMEM || r.failed) {
			failures++;
		} else {
			assert_int_equal(r.status, good.status);
			assert_string_equal(r.text, good.text);
		}
		free(r.text);
	} while (asked >= n);
	assert_true(failures > 0);
	free(good.text);
}

static void test_samples(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_messages; i++)
		every_allocation_of(&messages[i]);
}

/* Answers that only people read have no reader: their writers alone. */
static void test_writers(void **state)
{
	struct skv_storage_view storage = { .spec = { .name = "s", .type = "file", .root = "/r" },
					    .problem = "" };
	struct skv_group_view group = { .spec = { .name = "g" } };
	struct skv_instance_view instance = {
		.spec = { .tenant = "t", .id = "i", .group = "g", .extra = "" } };
	struct skv_stats stats = { .state = "ready", .storages = &storage, .n_storages = 1,
				   .groups = &group, .n_groups = 1, .instances = &instance,
				   .n_instances = 1 };
	unsigned long n = 0, asked;

	(void)state;
	do {
		struct skv_buf out;

		skv_buf_init(&out);
		skv_mem_fail_at(++n);
		skv_v1_write_named("Stats", &out, &stats);
		asked = skv_mem_count();
		skv_mem_fail_at(0);
		assert_int_equal(out.failed, asked >= n);
		skv_buf_destroy(&out);
	} while (asked >= n);
	assert_true(n > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_writers),
	};

	return cmocka_run_group_tests_name("v1_nomem", tests, NULL, NULL);
}
