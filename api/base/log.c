/*
 * log.c - writes a line per call with a single write(2), so that lines of several threads do not
 * mix.
 *
 * Owns the log's settings, set once before threads start and then only read, except the level, an
 * atomic; no lock. Any thread. Texts may contain anything from outside: control characters (also
 * two-byte ones, and Unicode's line separators) never reach the log, so nobody can forge a line or
 * control a terminal, and a JSON line is valid UTF-8 whatever the text was. Component, field names
 * and formats are our own. A line that cannot be written is lost. Which partition a line concerns
 * is known by the thread, so that no call has to say it.
 */
#include <skv/bytes.h>
#include <skv/log.h>

#include <skv/utf8.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
	int fd;
	bool json;
	atomic_int max;
} sink = { STDERR_FILENO, false, SKV_LOG_INFO };

static _Thread_local uint32_t partition; /* plus 1; 0 = none */

static const char *const names[] = { "error", "warn", "info", "debug" };

void skv_log_setup(int fd, bool json, enum skv_log_level max)
{
	sink.fd = fd;
	sink.json = json;
	skv_log_level_set(max);
}

void skv_log_level_set(enum skv_log_level max)
{
	atomic_store_explicit(&sink.max, (int)max, memory_order_relaxed);
}

bool skv_log_enabled(enum skv_log_level level)
{
	return (int)level <= atomic_load_explicit(&sink.max, memory_order_relaxed);
}

uint32_t skv_log_partition(uint32_t plus_1)
{
	const uint32_t was = partition;

	partition = plus_1;
	return was;
}

bool skv_log_level_parse(const char *s, enum skv_log_level *out)
{
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strcmp(s, names[i]) == 0) {
			*out = (enum skv_log_level)i;
			return true;
		}
	}
	return false;
}

/* Characters that could end a line or control a terminal. */
static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
}

static void put_json_string(struct skv_buf *b, const char *s)
{
	size_t left = strlen(s);

	skv_put_u8(b, '"');
	while (left > 0) {
		uint32_t c;
		size_t n = skv_utf8_next(s, left, &c);

		if (n == 0) {
			skv_buf_printf(b, "\\ufffd"); /* an invalid byte */
			n = 1;
		} else if (is_control(c)) {
			skv_buf_printf(b, "\\u%04x", c);
		} else {
			if (c == '"' || c == '\\')
				skv_put_u8(b, '\\');
			skv_put_bytes(b, s, n);
		}
		s += n;
		left -= n;
	}
	skv_put_u8(b, '"');
}

/* Text form: unprintable characters become '?'. A value is quoted, with its quotes escaped, if its
 * end would be ambiguous. */
static void put_text(struct skv_buf *b, const char *s, bool value)
{
	bool quote = value && (*s == '\0' || strpbrk(s, " \"=") != NULL);
	size_t left = strlen(s);

	if (quote)
		skv_put_u8(b, '"');
	while (left > 0) {
		uint32_t c;
		size_t n = skv_utf8_next(s, left, &c);

		if (n == 0 || is_control(c)) {
			skv_put_u8(b, '?');
			n = n ? n : 1;
		} else {
			if (quote && (c == '"' || c == '\\'))
				skv_put_u8(b, '\\');
			skv_put_bytes(b, s, n);
		}
		s += n;
		left -= n;
	}
	if (quote)
		skv_put_u8(b, '"');
}

static void put_time(char *out, size_t n)
{
	struct timespec t;
	struct tm tm;
	size_t len;

	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	len = strftime(out, n, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + len, n - len, ".%03ldZ", t.tv_nsec / 1000000);
}

static void put_number(struct skv_buf *b, const struct skv_log_field *f)
{
	if (f->milli)
		skv_buf_printf(b, "%" PRIu64 ".%03u", f->number / 1000,
			       (unsigned)(f->number % 1000));
	else
		skv_buf_printf(b, "%" PRIu64, f->number);
}

/* Appends the remaining fields of a begun JSON line. */
static void put_json_fields(struct skv_buf *b, const struct skv_log_field *fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		skv_buf_printf(b, ",\"%s\":", fields[i].key);
		if (fields[i].text)
			put_json_string(b, fields[i].text);
		else
			put_number(b, &fields[i]);
	}
	skv_put_bytes(b, "}\n", 2);
}

void skv_log_json(struct skv_buf *b, const struct skv_log_field *fields, size_t n)
{
	char when[40];

	put_time(when, sizeof when);
	skv_buf_printf(b, "{\"time\":\"%s\"", when);
	put_json_fields(b, fields, n);
}

bool skv_log_is_json(void)
{
	return sink.json;
}

void skv_log_line(struct skv_buf *b, enum skv_log_level level, const char *component,
		  const char *message, const struct skv_log_field *fields, size_t n)
{
	char when[40];

	put_time(when, sizeof when);
	if (sink.json) {
		skv_buf_printf(
			b,
			"{\"time\":\"%s\",\"level\":\"%s\",\"component\":\"%s\",\"message\":", when,
			names[level], component);
		put_json_string(b, message);
		if (partition)
			skv_buf_printf(b, ",\"partition\":%u", (unsigned)partition - 1);
		put_json_fields(b, fields, n);
		return;
	}
	skv_buf_printf(b, "%s %-5s %s: ", when, names[level], component);
	put_text(b, message, false);
	for (size_t i = 0; i < n; i++) {
		skv_buf_printf(b, " %s=", fields[i].key);
		if (fields[i].text)
			put_text(b, fields[i].text, true);
		else
			put_number(b, &fields[i]);
	}
	if (partition)
		skv_buf_printf(b, " partition=%u", (unsigned)partition - 1);
	skv_put_u8(b, '\n');
}

void skv_log_fields(enum skv_log_level level, const char *component, const char *message,
		    const struct skv_log_field *fields, size_t n)
{
	struct skv_buf b = { 0 };

	if (!skv_log_enabled(level))
		return;
	skv_log_line(&b, level, component, message, fields, n);
	if (!b.failed && write(sink.fd, b.data, b.len) < 0) {
		/* No other place to report the failure. */
	}
	skv_buf_destroy(&b);
}

void skv_log(enum skv_log_level level, const char *component, const char *fmt, ...)
{
	char message[1024];
	va_list ap;

	if (!skv_log_enabled(level))
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	skv_log_fields(level, component, message, NULL, 0);
}
