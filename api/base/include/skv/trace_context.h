/*
 * trace_context.h - W3C trace context (https://www.w3.org/TR/trace-context/): identifies the
 * caller's trace that a call belongs to. slabkv makes no spans of its own: it logs the received
 * context and passes it on.
 */
#ifndef SKV_TRACE_CONTEXT_H
#define SKV_TRACE_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <skv/log.h>

#define SKV_TRACE_SIZE 56 /* "00-" 32 hex digits "-" 16 hex digits "-" 2 hex digits, and NUL */
#define SKV_TRACE_FIELDS 2u

struct skv_trace_ids {
	char trace[33], span[17];
};

/* Takes the value of a header traceparent, n bytes, s may be NULL, as version 00. False, and "" in
 * `out`: it is none, and counts as absent. */
bool skv_trace_take(const char *s, size_t n, char out[SKV_TRACE_SIZE]);
/* Fields trace_id and span_id (the caller's) for a log line; 0 if `trace` is "". They point into
 * `ids`. */
unsigned skv_trace_fields(const char *trace, struct skv_trace_ids *ids,
			  struct skv_log_field out[SKV_TRACE_FIELDS]);

#endif
