/* log.c - writes one line per call with a single write(2). State: sink settings, set before threads. */
#include <kvb/bytes.h>
#include <kvb/log.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
	int fd;
	bool json;
	enum kvb_log_level max;
} sink = { STDERR_FILENO, false, KVB_LOG_INFO };

static const char *const names[] = { "error", "warn", "info", "debug" };

void kvb_log_setup(int fd, bool json, enum kvb_log_level max)
{
	sink.fd = fd;
	sink.json = json;
	sink.max = max;
}

bool kvb_log_enabled(enum kvb_log_level level) { return level <= sink.max; }

bool kvb_log_level_parse(const char *s, enum kvb_log_level *out)
{
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strcmp(s, names[i]) == 0) {
			*out = (enum kvb_log_level)i;
			return true;
		}
	}
	return false;
}

static void put_json_string(struct kvb_buf *b, const char *s)
{
	kvb_put_u8(b, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			kvb_buf_printf(b, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			kvb_buf_printf(b, "\\u%04x", c);
		else
			kvb_put_u8(b, c);
	}
	kvb_put_u8(b, '"');
}

/* Values from outside must not be able to forge a line: control characters become '?'. */
static void put_text(struct kvb_buf *b, const char *s, bool quote)
{
	quote = quote && (*s == '\0' || strpbrk(s, " \"=") != NULL);
	if (quote)
		kvb_put_u8(b, '"');
	for (; *s; s++)
		kvb_put_u8(b, (unsigned char)*s < 0x20 || *s == 0x7f ? '?' : (uint8_t)*s);
	if (quote)
		kvb_put_u8(b, '"');
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

static void put_line(struct kvb_buf *b, enum kvb_log_level level, const char *component,
		     const char *message, const struct kvb_log_field *fields, size_t n)
{
	char when[40];

	put_time(when, sizeof when);
	if (sink.json) {
		kvb_buf_printf(b, "{\"time\":\"%s\",\"level\":\"%s\",\"component\":\"%s\",\"message\":", when,
			       names[level], component);
		put_json_string(b, message);
		for (size_t i = 0; i < n; i++) {
			kvb_buf_printf(b, ",\"%s\":", fields[i].key);
			put_json_string(b, fields[i].value);
		}
		kvb_put_bytes(b, "}\n", 2);
		return;
	}
	kvb_buf_printf(b, "%s %-5s %s: ", when, names[level], component);
	put_text(b, message, false);
	for (size_t i = 0; i < n; i++) {
		kvb_buf_printf(b, " %s=", fields[i].key);
		put_text(b, fields[i].value, true);
	}
	kvb_put_u8(b, '\n');
}

void kvb_log_fields(enum kvb_log_level level, const char *component, const char *message,
		    const struct kvb_log_field *fields, size_t n)
{
	struct kvb_buf b = { 0 };

	if (!kvb_log_enabled(level))
		return;
	put_line(&b, level, component, message, fields, n);
	if (!b.failed && write(sink.fd, b.data, b.len) < 0) {
		/* Nowhere left to say it. */
	}
	kvb_buf_destroy(&b);
}

void kvb_log(enum kvb_log_level level, const char *component, const char *fmt, ...)
{
	char message[1024];
	va_list ap;

	if (!kvb_log_enabled(level))
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	kvb_log_fields(level, component, message, NULL, 0);
}
