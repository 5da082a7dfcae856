/*
 * trace.h - traces of requests in the Mooncake project's format: JSON lines {"timestamp": ms,
 * "input_length": tokens, "output_length": tokens, "hash_ids": [one id for each 512-token block of
 * the input]}. An id identifies its block and all blocks before it; other fields are ignored.
 *
 * Strict: a line that is not a request is an error with its number, never skipped, because half a
 * trace would give misleading numbers. Stateless; any thread.
 */
#ifndef SKV_TRACE_H
#define SKV_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SKV_TRACE_BLOCK_TOKENS 512u /* of one id, in the published traces */

struct skv_trace_request {
	uint64_t timestamp_ms; /* fractions are truncated */
	uint64_t input_length;
	uint64_t output_length;
	uint32_t n_ids; /* at most SKV_MAX_KEYS, no id twice */
	uint64_t *ids;
};

/* Initialise with { 0 }. */
struct skv_trace {
	struct skv_trace_request *v;
	size_t n;
	size_t cap;
};

/* Reads at most `limit` requests (0 = all) from `in`. 0, or -1 with a sentence that names line and
 * field in `why` (at least 256 bytes); the trace is then empty. Release with skv_trace_free. */
int skv_trace_read(FILE *in, size_t limit, struct skv_trace *out, char *why);
/* Writes a line for each request. Returns 0, or -1 when writing failed. */
int skv_trace_write(const struct skv_trace *t, FILE *out);
void skv_trace_free(struct skv_trace *t);

#endif
