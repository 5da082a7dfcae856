/* test_account.c - accounts over a real core on a memory store: hashes, roles, names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "account.h"
#include "core_env.h"

static struct env env;

static int open_env(void **state)
{
	(void)state;
	env_quiet();
	env_init(&env);
	env_open(&env);
	return 0;
}

static int close_env(void **state)
{
	(void)state;
	env_shutdown(&env);
	env_destroy(&env);
	return 0;
}

static int add(const char *name, const char *password, int role)
{
	return kvcm_account_add(env.cluster, name, password, role, &env.err);
}

static void list(struct kvcm_account **v, uint32_t n)
{
	uint32_t have = 0;

	skv_arena_reset(&env.arena);
	assert_int_equal(kvcm_account_list(env.cluster, &env.arena, v, &have, &env.err), SKV_OK);
	assert_int_equal(have, n);
}

static void passwords_are_kept_as_salted_hashes(void **state)
{
	struct kvcm_account *v;

	(void)state;
	assert_int_equal(add("bob", "the password", 0), SKV_OK);
	assert_int_equal(add("alice", "the password", 1), SKV_OK);
	list(&v, 2);
	assert_string_equal(v[0].name, "alice");
	assert_int_equal(v[0].role, 1);
	assert_string_equal(v[1].name, "bob");
	assert_int_equal(v[1].role, 0);
	assert_string_not_equal(v[0].hash, v[1].hash);
	assert_null(strstr(v[0].hash, "password"));
	assert_int_equal(crypto_pwhash_str_verify(v[1].hash, "the password", 12), 0);
	assert_int_not_equal(crypto_pwhash_str_verify(v[1].hash, "The password", 12), 0);
}

static void what_is_no_account_is_refused(void **state)
{
	char *long_one = test_malloc(KVCM_PASSWORD_MAX + 2);
	struct kvcm_account *v;

	(void)state;
	memset(long_one, 'x', KVCM_PASSWORD_MAX + 1);
	long_one[KVCM_PASSWORD_MAX + 1] = '\0';
	assert_int_equal(add("bob", "another", 1), SKV_E_CONFLICT);
	assert_int_equal(add("", "p", 1), SKV_E_INVALID);
	assert_string_equal(env.err.field, "user_name");
	assert_int_equal(add("../x", "p", 1), SKV_E_INVALID);
	assert_int_equal(add("carol", "", 1), SKV_E_INVALID);
	assert_string_equal(env.err.field, "password");
	assert_int_equal(add("carol", long_one, 1), SKV_E_INVALID);
	assert_int_equal(add("carol", "p", 2), SKV_E_INVALID);
	assert_string_equal(env.err.field, "role");
	assert_int_equal(add("carol", "p", -1), SKV_E_INVALID);
	list(&v, 2);
	test_free(long_one);
}

static void they_survive_and_go(void **state)
{
	struct kvcm_account *v;

	(void)state;
	env_crash(&env);
	env_open(&env);
	list(&v, 2);
	assert_int_equal(kvcm_account_delete(env.cluster, "bob", &env.err), SKV_OK);
	assert_int_equal(kvcm_account_delete(env.cluster, "bob", &env.err), SKV_E_NOT_FOUND);
	assert_int_equal(kvcm_account_delete(env.cluster, "alice", &env.err), SKV_OK);
	list(&v, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passwords_are_kept_as_salted_hashes),
		cmocka_unit_test(what_is_no_account_is_refused),
		cmocka_unit_test(they_survive_and_go),
	};

	return cmocka_run_group_tests(tests, open_env, close_env);
}
