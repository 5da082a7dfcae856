/* test_owner_note.c - the header Slabkv-Owner, written and read; what is malformed is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <skv/owner_note.h>

static void reads(const char *text, uint32_t partition, uint64_t epoch, const char *url)
{
	struct skv_owner_note n;

	assert_true(skv_owner_note_read(text, &n));
	assert_int_equal(n.partition, partition);
	assert_int_equal(n.epoch, epoch);
	assert_string_equal(n.url, url);
}

static void what_is_written_is_read(void **state)
{
	struct skv_owner_note self = { .partition = 255, .epoch = UINT64_MAX };
	struct skv_owner_note other = { .partition = 3, .url = "https://[fe80::1]:7333" };
	char text[SKV_NOTE_MAX];

	(void)state;
	skv_owner_note_write(&self, text);
	assert_string_equal(text, "255 18446744073709551615");
	reads(text, 255, UINT64_MAX, "");
	skv_owner_note_write(&other, text);
	assert_string_equal(text, "3 0 https://[fe80::1]:7333");
	reads(text, 3, 0, other.url);
}

static void the_longest_fits(void **state)
{
	struct skv_owner_note n = { .partition = 255 };
	char text[SKV_NOTE_MAX];

	(void)state;
	memset(n.url, 'h', sizeof n.url - 1);
	memcpy(n.url, "http://", 7);
	skv_owner_note_write(&n, text);
	reads(text, 255, 0, n.url);
}

/* A later version may tell more of itself. */
static void what_follows_the_epoch_is_skipped(void **state)
{
	(void)state;
	reads("1 2 http://a:1 ready", 1, 2, "");
}

static void malformed_ones_are_none(void **state)
{
	static const char *const bad[] = {
		"", " ", "1", "1 ", "-1 2", "+1 2", " 1 2", "1  2", "256 1", "4294967296 1",
		"1 18446744073709551616", "1 99999999999999999999999", "1 2x", "x 2", "1 x",
		"1 0", "1 0 ", "1 0 a:7333", "1 0 ftp://a", "1 0 http://", "1 0 https://",
		"1 0 http://a/path", "1 0 http://user@a", "1 0 http://a b", "1 0 http://a?x",
		"1 0 http://a#x", "1 0 http://a\\b", "1 0 http://a\r", "1 0 HTTP://a",
	};
	struct skv_owner_note n;
	char endless[2 * SKV_NOTE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (skv_owner_note_read(bad[i], &n))
			fail_msg("'%s' was taken", bad[i]);
	memset(endless, 'a', sizeof endless);
	memcpy(endless, "1 0 http://", 11);
	endless[sizeof endless - 1] = '\0';
	assert_false(skv_owner_note_read(endless, &n));
	memset(endless, '1', sizeof endless - 1);
	assert_false(skv_owner_note_read(endless, &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(the_longest_fits),
		cmocka_unit_test(what_follows_the_epoch_is_skipped),
		cmocka_unit_test(malformed_ones_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
