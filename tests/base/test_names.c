/* test_names.c - names from outside are safe in URLs, paths and logs, or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <skv/limits.h>
#include <skv/ops.h>

static bool valid(const char *s) { return skv_name_valid(s, strlen(s)); }

static void good_names(void **state)
{
	(void)state;
	assert_true(valid("a"));
	assert_true(valid("default"));
	assert_true(valid("Qwen3-8B_tp8.v2"));
	assert_true(valid("0"));
	assert_true(valid("_x"));
	assert_true(valid("a..b")); /* a single path component, whatever it contains */
	assert_true(valid("a-"));
	assert_true(valid("full:group=0")); /* as KVCM's clients name specs */
	assert_true(valid("qwen3@v2+lora,b"));
}

static void bad_names(void **state)
{
	static const char *const bad[] = {
		"", ".", "..", ".hidden", "-rf", "a/b", "../x", "a b", "a\n", "a%2f", "a\\b",
		"\xc3\xa4", ":a", "=", "@a", "+", ",a", "a?", "a#",
		"a\"", "a'", "a$", "a;", "a{", "~", "a*", "a\x7f",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (valid(bad[i]))
			fail_msg("'%s' is accepted", bad[i]);
	assert_false(skv_name_valid("a\0b", 3));
}

static void every_character(void **state)
{
	static const char fine[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:=@+,";

	(void)state;
	for (int c = 0; c < 256; c++) {
		const char s[2] = { 'x', (char)c };

		assert_int_equal(skv_name_valid(s, 2), c != 0 && strchr(fine, c) != NULL);
	}
}

static void the_longest_name(void **state)
{
	char s[SKV_MAX_NAME + 1];

	(void)state;
	memset(s, 'n', sizeof s);
	assert_true(skv_name_valid(s, SKV_MAX_NAME));
	assert_false(skv_name_valid(s, SKV_MAX_NAME + 1));
	assert_false(skv_name_valid(s, SIZE_MAX));
}

/* Hugging Face's form: names with a slash between. Nothing that a path could be. */
static void models_have_slashes(void **state)
{
	static const char *const good[] = { "m", "Qwen/Qwen3-32B", "a/b/c",
					    "meta-llama/Llama-3.1-8B", "a/b=1" };
	static const char *const bad[] = { "",     "/",    "/a",    "a/",   "a//b", "a/../b",
					   "a/.b", "../a", "a/b c", "a\\b", "a/%2F" };
	char s[SKV_MAX_NAME + 2];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_true(skv_model_name_valid(good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(skv_model_name_valid(bad[i], strlen(bad[i])));
	assert_false(skv_model_name_valid("a/b\0c", 5));
	memset(s, 'x', sizeof s);
	s[5] = '/';
	assert_true(skv_model_name_valid(s, SKV_MAX_NAME));
	assert_false(skv_model_name_valid(s, SKV_MAX_NAME + 1));
	assert_false(skv_model_name_valid(s, SIZE_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_names),
		cmocka_unit_test(bad_names),
		cmocka_unit_test(every_character),
		cmocka_unit_test(the_longest_name),
		cmocka_unit_test(models_have_slashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
