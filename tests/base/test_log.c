/*
 * test_log.c - a call is one line, in text and in JSON, whatever the values hold. Lines are read
 * back from a pipe; JSON lines are parsed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/mem.h>

static int ends[2];
static char said[65536];

static int open_pipe(void **state)
{
	(void)state;
	return pipe2(ends, O_NONBLOCK | O_CLOEXEC);
}

static int close_pipe(void **state)
{
	(void)state;
	skv_log_setup(STDERR_FILENO, false, SKV_LOG_INFO);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

/* Returns the lines logged since the last call. */
static const char *listen_pipe(void)
{
	ssize_t n = read(ends[0], said, sizeof said - 1);

	said[n > 0 ? n : 0] = '\0';
	return said;
}

/* The one line that was logged, without its time "2024-01-31T12:00:00.000Z ". */
static const char *text_line(void)
{
	int y, mo, d, h, mi, s, ms;
	const char *line = listen_pipe();

	assert_int_equal(
		sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &y, &mo, &d, &h, &mi, &s, &ms), 7);
	assert_non_null(strchr(line, '\n'));
	assert_null(strchr(line, '\n')[1] == '\0' ? NULL : line); /* exactly one */
	said[strlen(said) - 1] = '\0';
	return line + 25;
}

static json_t *json_line(void)
{
	json_error_t e;
	const char *line = listen_pipe();
	json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, &e);

	if (!j)
		fail_msg("%s: %s", e.text, line);
	assert_int_equal(line[strlen(line) - 1], '\n');
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	return j;
}

static const char *member(json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	assert_non_null(s);
	return s;
}

static void text_form(void **state)
{
	const struct skv_log_field fields[] = { SKV_TEXT("id", "a1"),
						SKV_TEXT("path", "/v1/x y"),
						SKV_TEXT("empty", ""),
						SKV_NUMBER("status", 503),
						SKV_MILLI("ms", 1002) };

	(void)state;
	skv_log_setup(ends[1], false, SKV_LOG_INFO);
	skv_log(SKV_LOG_INFO, "main", "ready on port %d", 7333);
	assert_string_equal(text_line(), "info  main: ready on port 7333");
	skv_log_fields(SKV_LOG_ERROR, "front", "slow request", fields, 5);
	assert_string_equal(text_line(), "error front: slow request id=a1 path=\"/v1/x y\" "
					 "empty=\"\" status=503 ms=1.002");
}

static void json_form(void **state)
{
	const struct skv_log_field fields[] = { SKV_TEXT("id", "7"), SKV_TEXT("path", "/v1/x y"),
						SKV_NUMBER("status", 503), SKV_MILLI("ms", 1002) };
	json_t *j;

	(void)state;
	skv_log_setup(ends[1], true, SKV_LOG_INFO);
	skv_log_fields(SKV_LOG_WARN, "front", "slow \"request\" \\", fields, 4);
	j = json_line();
	assert_string_equal(member(j, "level"), "warn");
	assert_string_equal(member(j, "component"), "front");
	assert_string_equal(member(j, "message"), "slow \"request\" \\");
	assert_string_equal(member(j, "id"), "7"); /* a text, whatever it looks like */
	assert_string_equal(member(j, "path"), "/v1/x y");
	assert_int_equal(json_integer_value(json_object_get(j, "status")), 503);
	assert_true(json_real_value(json_object_get(j, "ms")) == 1.002);
	assert_int_equal(strlen(member(j, "time")), 24);
	json_decref(j);
}

/* Each thread says once which partition it works for. */
static void lines_carry_their_partition(void **state)
{
	json_t *j;

	(void)state;
	skv_log_setup(ends[1], false, SKV_LOG_INFO);
	assert_int_equal(skv_log_partition(1), 0);
	skv_log(SKV_LOG_INFO, "core", "recovered");
	assert_string_equal(text_line(), "info  core: recovered partition=0");
	assert_int_equal(skv_log_partition(16), 1);
	skv_log_setup(ends[1], true, SKV_LOG_INFO);
	skv_log(SKV_LOG_INFO, "core", "recovered");
	j = json_line();
	assert_int_equal(json_integer_value(json_object_get(j, "partition")), 15);
	json_decref(j);
	assert_int_equal(skv_log_partition(0), 16);
	skv_log(SKV_LOG_INFO, "main", "ready");
	j = json_line();
	assert_null(json_object_get(j, "partition"));
	json_decref(j);
}

static void levels_are_kept(void **state)
{
	enum skv_log_level level = SKV_LOG_ERROR;

	(void)state;
	skv_log_setup(ends[1], false, SKV_LOG_WARN);
	assert_true(skv_log_enabled(SKV_LOG_ERROR));
	assert_true(skv_log_enabled(SKV_LOG_WARN));
	assert_false(skv_log_enabled(SKV_LOG_INFO));
	skv_log(SKV_LOG_INFO, "x", "not said");
	skv_log_fields(SKV_LOG_DEBUG, "x", "not said", NULL, 0);
	assert_string_equal(listen_pipe(), "");
	skv_log_level_set(SKV_LOG_INFO); /* while it runs */
	skv_log(SKV_LOG_INFO, "x", "said");
	assert_string_equal(text_line(), "info  x: said");
	skv_log_level_set(SKV_LOG_ERROR);
	assert_false(skv_log_enabled(SKV_LOG_WARN));
	assert_true(skv_log_level_parse("debug", &level));
	assert_int_equal(level, SKV_LOG_DEBUG);
	assert_true(skv_log_level_parse("error", &level));
	assert_int_equal(level, SKV_LOG_ERROR);
	assert_false(skv_log_level_parse("Debug", &level));
	assert_false(skv_log_level_parse("", &level));
}

/* Everything that could begin a line of its own for some reader. */
static const char *const breaks[] = {
	"a\nb", "a\rb", "a\r\n2024-01-01T00:00:00.000Z error main: forged", "a\vb", "a\fb",
	"a\x1b[2Jb", "a\x7f",
	"a\x01", "a\xc2\x85z" /* NEL */, "a\xc2\x9b[31m" /* CSI */,
	"a\xe2\x80\xa8z" /* line separator */,
	"a\xe2\x80\xa9z" /* paragraph separator */,
};

static void nobody_forges_a_text_line(void **state)
{
	(void)state;
	skv_log_setup(ends[1], false, SKV_LOG_INFO);
	for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
		const struct skv_log_field f = SKV_TEXT("key", breaks[i]);
		const char *line;

		skv_log_fields(SKV_LOG_INFO, "x", breaks[i], &f, 1);
		line = text_line();
		for (const char *p = line; *p; p++)
			assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
		assert_null(strstr(line, "\xc2\x85"));
		assert_null(strstr(line, "\xc2\x9b"));
		assert_null(strstr(line, "\xe2\x80\xa8"));
		assert_non_null(strchr(line, '?'));
	}
}

static void nobody_forges_a_json_line(void **state)
{
	(void)state;
	skv_log_setup(ends[1], true, SKV_LOG_INFO);
	for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
		const struct skv_log_field f = SKV_TEXT("key", breaks[i]);
		json_t *j;

		skv_log_fields(SKV_LOG_INFO, "x", breaks[i], &f, 1);
		j = json_line();
		assert_null(strstr(said, "\xc2\x85"));
		assert_null(strstr(said, "\xe2\x80\xa8"));
		assert_string_equal(member(j, "message"), breaks[i]); /* nothing is lost in JSON */
		assert_string_equal(member(j, "key"), breaks[i]);
		json_decref(j);
	}
}

static void nobody_forges_a_field(void **state)
{
	const struct skv_log_field f[] = { SKV_TEXT("user", "x\" role=\"admin"),
					   SKV_TEXT("path", "a\\ b\\"),
					   SKV_TEXT("q", "a=b") };

	(void)state;
	skv_log_setup(ends[1], false, SKV_LOG_INFO);
	skv_log_fields(SKV_LOG_INFO, "x", "m", f, 3);
	assert_string_equal(
		text_line(),
		"info  x: m user=\"x\\\" role=\\\"admin\" path=\"a\\\\ b\\\\\" q=\"a=b\"");
}

static void text_of_other_languages_stays(void **state)
{
	static const char text[] =
		"gr\xc3\xbc\xc3\x9f, \xe4\xbd\xa0\xe5\xa5\xbd, \xf0\x9f\x98\x80, \xef\xbf\xbf";
	json_t *j;

	(void)state;
	skv_log_setup(ends[1], true, SKV_LOG_INFO);
	skv_log(SKV_LOG_INFO, "x", "%s", text);
	j = json_line();
	assert_string_equal(member(j, "message"), text);
	json_decref(j);
	skv_log_setup(ends[1], false, SKV_LOG_INFO);
	skv_log(SKV_LOG_INFO, "x", "%s", text);
	assert_non_null(strstr(text_line(), text));
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
	static const char *const bad[] = {
		"\x80", "\xff", "\xc3", "\xc3(", "\xe2\x82", "\xf0\x9f\x98",
		"\xc0\xaf" /* overlong slash */,
		"\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xed\xa0\x80" /* surrogate */,
		"\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		json_t *j;

		skv_log_setup(ends[1], true, SKV_LOG_INFO);
		skv_log(SKV_LOG_INFO, "x", "<%s>", bad[i]);
		j = json_line(); /* jansson refuses what is not UTF-8 */
		assert_non_null(strstr(member(j, "message"), "\xef\xbf\xbd"));
		assert_int_equal(member(j, "message")[0], '<');
		json_decref(j);
		skv_log_setup(ends[1], false, SKV_LOG_INFO);
		skv_log(SKV_LOG_INFO, "x", "<%s>", bad[i]);
		assert_non_null(strstr(text_line(), "<?"));
	}
}

static void random_bytes_make_valid_lines(void **state)
{
	uint64_t seed = 1;

	(void)state;
	skv_log_setup(ends[1], true, SKV_LOG_INFO);
	for (int round = 0; round < 2000; round++) {
		char text[40];
		const struct skv_log_field f = SKV_TEXT("key", text);

		for (size_t i = 0; i < sizeof text; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			text[i] = (char)(seed >> 56);
		}
		text[(seed >> 32) % sizeof text] = '\0';
		text[sizeof text - 1] = '\0';
		skv_log_fields(SKV_LOG_INFO, "x", "m", &f, 1);
		json_decref(json_line());
	}
}

static void long_messages_are_cut_to_valid_text(void **state)
{
	char text[3000];
	json_t *j;

	(void)state;
	skv_log_setup(ends[1], true, SKV_LOG_INFO);
	for (size_t shift = 0; shift < 3; shift++) {
		memset(text, 'a', shift);
		for (size_t i = shift; i + 3 < sizeof text; i += 3)
			memcpy(text + i, "\xe4\xbd\xa0", 3);
		text[sizeof text - 4] = '\0';
		skv_log(SKV_LOG_INFO, "x", "%s", text);
		j = json_line();
		assert_in_range(strlen(member(j, "message")), 1000, 1100);
		json_decref(j);
	}
}

static void no_memory_loses_the_line_only(void **state)
{
	(void)state;
	skv_log_setup(ends[1], false, SKV_LOG_INFO);
	skv_mem_fail_at(1);
	skv_log(SKV_LOG_INFO, "x", "lost");
	skv_mem_fail_at(0);
	assert_string_equal(listen_pipe(), "");
	skv_log(SKV_LOG_INFO, "x", "next");
	assert_string_equal(text_line(), "info  x: next");
}

static void a_closed_sink_is_no_failure(void **state)
{
	(void)state;
	skv_log_setup(-1, false, SKV_LOG_INFO);
	skv_log(SKV_LOG_INFO, "x", "nowhere");
}

static void *chatter(void *name)
{
	for (int i = 0; i < 100; i++)
		skv_log(SKV_LOG_INFO, name, "one two three four five");
	return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
	pthread_t t[4];
	char names[4][2] = { "a", "b", "c", "d" };
	unsigned lines = 0;

	(void)state;
	skv_log_setup(ends[1], false, SKV_LOG_INFO);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, chatter, names[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	listen_pipe();
	for (char *line = said, *end; (end = strchr(line, '\n')) != NULL; line = end + 1, lines++) {
		*end = '\0';
		assert_string_equal(line + 25 + 7, ": one two three four five");
	}
	assert_int_equal(lines, 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_form),
		cmocka_unit_test(json_form),
		cmocka_unit_test(lines_carry_their_partition),
		cmocka_unit_test(levels_are_kept),
		cmocka_unit_test(nobody_forges_a_text_line),
		cmocka_unit_test(nobody_forges_a_json_line),
		cmocka_unit_test(nobody_forges_a_field),
		cmocka_unit_test(text_of_other_languages_stays),
		cmocka_unit_test(bytes_that_are_no_text_are_replaced),
		cmocka_unit_test(random_bytes_make_valid_lines),
		cmocka_unit_test(long_messages_are_cut_to_valid_text),
		cmocka_unit_test(no_memory_loses_the_line_only),
		cmocka_unit_test(a_closed_sink_is_no_failure),
		cmocka_unit_test(lines_of_threads_do_not_mix),
	};

	return cmocka_run_group_tests(tests, open_pipe, close_pipe);
}
