/*
 * trace.h - traces of requests: JSON lines {"timestamp": ms, "input_length": tokens,
 * "output_length": tokens, "hash_ids": [one chained id for each 512-token block of the input]}.
 */
#ifndef KVB_CLI_TRACE_H
#define KVB_CLI_TRACE_H

#include <stdint.h>
#include <stdio.h>

struct kvb_trace_request {
	uint64_t timestamp_ms;
	uint64_t input_length;
	uint64_t output_length;
	uint32_t n_ids; /* at most KVBLOCK_MAX_KEYS, no id twice */
	uint64_t *ids;
};

struct kvb_trace {
	struct kvb_trace_request *v;
	size_t n;
	size_t cap;
};

/* Reads at most `limit` requests (0 = all) from `in`. 0, or -1 with a sentence that names the line
 * in `why` (at least 256 bytes); the trace is then empty. Release with kvb_trace_free. */
int kvb_trace_read(FILE *in, size_t limit, struct kvb_trace *out, char *why);
void kvb_trace_free(struct kvb_trace *t);

#endif
