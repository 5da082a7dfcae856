/* test_given_tokens.c - tokens that an administrator gives while the manager runs, beside
 * the file and without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <skv/auth.h>

#define FILE_TOKEN "0123456789abcdef-file"

static struct auth auth;
static struct caller caller;
static struct skv_error err;

static int open_auth(void **state)
{
	(void)state;
	return skv_auth_init(&auth, "", &err);
}

static int close_auth(void **state)
{
	(void)state;
	skv_auth_destroy(&auth);
	return 0;
}

static void give(const char *one, const char *two)
{
	const char *const tokens[] = { one, two };

	assert_int_equal(skv_auth_give(&auth, "acme", tokens, one ? two ? 2 : 1 : 0, &err), SKV_OK);
}

static void expect(const char *header, int rc, enum role role, enum credentials credentials)
{
	memset(&caller, 0, sizeof caller);
	assert_int_equal(skv_auth_check(&auth, header, NULL, &caller, &err), rc);
	assert_int_equal(caller.credentials, credentials);
	if (rc == SKV_OK)
		assert_int_equal(caller.role, role);
}

static size_t count(bool enforcing)
{
	const uint32_t *prints;
	struct skv_arena a;
	size_t n;

	skv_arena_init(&a);
	assert_int_equal(skv_auth_given(&auth, &a, &prints, &n), enforcing);
	skv_arena_destroy(&a);
	return n;
}

static void without_tokens_all_are_admins(void **state)
{
	(void)state;
	expect(NULL, SKV_OK, ROLE_ADMIN, CREDENTIALS_GOOD);
	expect("Bearer nonsense", SKV_OK, ROLE_ADMIN, CREDENTIALS_GOOD);
	assert_int_equal(count(false), 0);
}

static void given_ones_protect_administration(void **state)
{
	(void)state;
	give("one", "two");
	assert_int_equal(count(true), 2);
	expect(NULL, SKV_OK, ROLE_WRITE, CREDENTIALS_NONE);
	assert_string_equal(caller.tenant, "default");
	expect("Basic one", SKV_OK, ROLE_WRITE, CREDENTIALS_MALFORMED);
	expect("Bearer", SKV_OK, ROLE_WRITE, CREDENTIALS_MALFORMED);
	expect("Bearer  ", SKV_OK, ROLE_WRITE, CREDENTIALS_MALFORMED);
	expect("Bearer one two", SKV_OK, ROLE_WRITE, CREDENTIALS_MALFORMED);
	expect("Bearer three", SKV_OK, ROLE_WRITE, CREDENTIALS_UNKNOWN);
	expect("Bearer one", SKV_OK, ROLE_ADMIN, CREDENTIALS_GOOD);
	expect("bearer \t two", SKV_OK, ROLE_ADMIN, CREDENTIALS_GOOD);
	assert_string_equal(caller.tenant, "acme");
	give(NULL, NULL);
	expect(NULL, SKV_OK, ROLE_ADMIN, CREDENTIALS_GOOD);
}

static void one_is_replaced(void **state)
{
	(void)state;
	give("one", "two");
	assert_int_equal(skv_auth_rotate(&auth, "three", "four", &err), SKV_E_INVALID);
	assert_string_equal(err.field, "old_token");
	assert_int_equal(skv_auth_rotate(&auth, "one", "", &err), SKV_E_INVALID);
	assert_string_equal(err.field, "new_token");
	assert_int_equal(skv_auth_rotate(&auth, "one", "four", &err), SKV_OK);
	expect("Bearer one", SKV_OK, ROLE_WRITE, CREDENTIALS_UNKNOWN);
	expect("Bearer two", SKV_OK, ROLE_ADMIN, CREDENTIALS_GOOD);
	expect("Bearer four", SKV_OK, ROLE_ADMIN, CREDENTIALS_GOOD);
	assert_string_equal(caller.tenant, "acme");
	give(NULL, NULL);
}

static void bad_ones_change_nothing(void **state)
{
	static const char *const bad[] = { "good", "with blank", NULL };
	const char *many[AUTH_GIVEN_MAX + 1];

	(void)state;
	give("one", NULL);
	assert_int_equal(skv_auth_give(&auth, "acme", bad, 2, &err), SKV_E_INVALID);
	assert_string_equal(err.field, "tokens[1]");
	assert_null(strstr(err.message, "blank"));
	for (size_t i = 0; i <= AUTH_GIVEN_MAX; i++)
		many[i] = "x";
	assert_int_equal(skv_auth_give(&auth, "acme", many, AUTH_GIVEN_MAX + 1, &err),
			 SKV_E_INVALID);
	expect("Bearer one", SKV_OK, ROLE_ADMIN, CREDENTIALS_GOOD);
	expect("Bearer good", SKV_OK, ROLE_WRITE, CREDENTIALS_UNKNOWN);
	give(NULL, NULL);
}

/* FNV-1a of "a" and "foobar", from its authors' page. */
static void fingerprints_are_fnv(void **state)
{
	const uint32_t *prints;
	struct skv_arena a;
	size_t n;

	(void)state;
	give("a", "foobar");
	skv_arena_init(&a);
	skv_auth_given(&auth, &a, &prints, &n);
	assert_int_equal(prints[0], 0xe40c292c);
	assert_int_equal(prints[1], 0xbf9cf968);
	skv_arena_destroy(&a);
	give(NULL, NULL);
}

static void beside_a_file(void **state)
{
	char path[] = "/tmp/skv-given-XXXXXX";
	int fd = mkstemp(path);
	static const char line[] = "read acme " FILE_TOKEN "\n";

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, line, sizeof line - 1), sizeof line - 1);
	close(fd);
	skv_auth_destroy(&auth);
	assert_int_equal(skv_auth_init(&auth, path, &err), SKV_OK);
	assert_int_equal(count(true), 0);
	give("one", NULL);
	expect(NULL, SKV_E_UNAUTHENTICATED, ROLE_OPEN, CREDENTIALS_NONE);
	expect("Basic x", SKV_E_UNAUTHENTICATED, ROLE_OPEN, CREDENTIALS_MALFORMED);
	expect("Bearer two", SKV_E_UNAUTHENTICATED, ROLE_OPEN, CREDENTIALS_UNKNOWN);
	expect("Bearer one", SKV_OK, ROLE_ADMIN, CREDENTIALS_GOOD);
	expect("Bearer " FILE_TOKEN, SKV_OK, ROLE_READ, CREDENTIALS_GOOD);
	give(NULL, NULL);
	expect("Bearer one", SKV_E_UNAUTHENTICATED, ROLE_OPEN, CREDENTIALS_UNKNOWN);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_tokens_all_are_admins),
		cmocka_unit_test(given_ones_protect_administration),
		cmocka_unit_test(one_is_replaced),
		cmocka_unit_test(bad_ones_change_nothing),
		cmocka_unit_test(fingerprints_are_fnv),
		cmocka_unit_test(beside_a_file),
	};

	return cmocka_run_group_tests(tests, open_auth, close_auth);
}
