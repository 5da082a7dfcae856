/* gen.h - generator of multi-turn conversations in the trace format (trace.h). */
#ifndef KVB_CLI_GEN_H
#define KVB_CLI_GEN_H

#include <stdint.h>
#include <stdio.h>

struct kvb_gen_options {
	uint32_t conversations; /* 1.. */
	uint32_t turns;         /* at most, per conversation; 1.. */
	uint32_t systems;       /* different system prompts; 1.. */
	uint32_t system_tokens; /* of each, on average */
	uint32_t input_tokens;  /* of one question, on average */
	uint32_t output_tokens; /* of one answer, on average */
	uint32_t gap_ms;        /* between conversations, on average */
	uint32_t think_ms;      /* between the turns of one, on average */
	uint64_t seed;          /* the same options give the same trace */
};

void kvb_gen_options_init(struct kvb_gen_options *o);
/* Writes the trace in the order of time. 0; -1 out of memory, or writing failed. */
int kvb_gen_write(const struct kvb_gen_options *o, FILE *out);

#endif
