/*
 * log.h - the log. Code that knows the cause logs it once; main decides where lines go and in which
 * form (text or JSON lines). Any thread. Hot paths do not log.
 */
#ifndef SKV_LOG_H
#define SKV_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum skv_log_level { SKV_LOG_ERROR, SKV_LOG_WARN, SKV_LOG_INFO, SKV_LOG_DEBUG };

/* A key=value pair of a structured line, borrowed for the call. A number is one in JSON, too. */
struct skv_log_field {
	const char *key;
	const char *text; /* NULL: the number */
	uint64_t number;
	bool milli; /* the number counts thousandths */
};
#define SKV_TEXT(key_, text_) { .key = (key_), .text = (text_) }
#define SKV_NUMBER(key_, number_) { .key = (key_), .number = (number_) }
#define SKV_MILLI(key_, number_) { .key = (key_), .number = (number_), .milli = true }

/* Chooses the destination: `fd` is borrowed; `json`: one JSON object per line instead of text. Call
 * once before threads start. By default text on stderr at level info. */
void skv_log_setup(int fd, bool json, enum skv_log_level max);
/* Changes the level only. Any thread, at any time. */
void skv_log_level_set(enum skv_log_level max);
bool skv_log_enabled(enum skv_log_level level);
/* Lines of this thread carry the partition `plus_1` - 1 from now on; 0, as at first: none. Returns
 * the value before, for the end of what concerns that partition. */
uint32_t skv_log_partition(uint32_t plus_1);
void skv_log(enum skv_log_level level, const char *component, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void skv_log_fields(enum skv_log_level level, const char *component, const char *message,
		    const struct skv_log_field *fields, size_t n);
struct skv_buf;
/* The same line, appended to `out` whatever the level: for other destinations. */
void skv_log_line(struct skv_buf *out, enum skv_log_level level, const char *component,
		  const char *message, const struct skv_log_field *fields, size_t n);
/* Appends a JSON line with the time and these fields to `out`, for logs other than this one. */
void skv_log_json(struct skv_buf *out, const struct skv_log_field *fields, size_t n);
/* Returns true if the log writes JSON lines. */
bool skv_log_is_json(void);
/* "error" | "warn" | "info" | "debug"; false for anything else. */
bool skv_log_level_parse(const char *s, enum skv_log_level *out);

#endif
