/*
 * log.h - log sink. Libraries say what happened once, at the place that knows; main decides where
 * it goes and in which form (text or JSON lines). Any thread. Hot paths do not log.
 */
#ifndef KVB_LOG_H
#define KVB_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum kvb_log_level { KVB_LOG_ERROR, KVB_LOG_WARN, KVB_LOG_INFO, KVB_LOG_DEBUG };

/* One key=value of a structured line. Both borrowed for the call. */
struct kvb_log_field {
	const char *key;
	const char *value;
};

/* Chooses the sink: `fd` stays the caller's; `json` one JSON object a line instead of text. Call
 * once before threads start. Without it: text to stderr at level info. */
void kvb_log_setup(int fd, bool json, enum kvb_log_level max);
/* Another level from now on; the rest of the sink stays. Any thread, at any time. */
void kvb_log_level_set(enum kvb_log_level max);
bool kvb_log_enabled(enum kvb_log_level level);
void kvb_log(enum kvb_log_level level, const char *component, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void kvb_log_fields(enum kvb_log_level level, const char *component, const char *message,
		    const struct kvb_log_field *fields, size_t n);
/* "error" | "warn" | "info" | "debug"; false for anything else. */
bool kvb_log_level_parse(const char *s, enum kvb_log_level *out);

#endif
