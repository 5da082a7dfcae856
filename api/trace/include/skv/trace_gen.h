/*
 * trace_gen.h - generated workloads in the trace format (trace.h). The same options give the same
 * trace.
 *
 * All kinds are settings of one process: conversations begin one after another, each with one of a
 * few shared system prompts; a turn's input is everything said before, retrieved documents, and a
 * new question. A whole 512-token block keeps its id for ever; the last, partial block of an input
 * gets a new one each time:
 *
 *	chat    several turns with some seconds between them, short system prompts
 *	agents  long shared prompts, many short turns in quick succession, then never again
 *	rag     a few popular documents before each question, hardly a second turn
 *	scan    long inputs that come once
 *	mix     all four at a time
 */
#ifndef SKV_TRACE_GEN_H
#define SKV_TRACE_GEN_H

#include <stdbool.h>

#include <skv/trace.h>

#define SKV_GEN_KINDS "chat, agents, rag, scan, mix"

enum skv_gen_kind { SKV_GEN_CHAT, SKV_GEN_AGENTS, SKV_GEN_RAG, SKV_GEN_SCAN, SKV_GEN_MIX };

struct skv_gen_options {
	enum skv_gen_kind kind;
	/* 1..10,000,000; of MIX: percent of what each of the four has by itself. */
	uint32_t conversations;
	/* All but MIX: */
	uint32_t turns;           /* at most, per conversation; 1.. */
	uint32_t systems;         /* different system prompts; 1.. */
	uint32_t system_tokens;   /* of each, on average */
	uint32_t input_tokens;    /* of one question, on average */
	uint32_t output_tokens;   /* of one answer, on average */
	uint32_t gap_ms;          /* between conversations, on average */
	uint32_t think_ms;        /* between the turns of one, on average */
	/* Different ones; 0 = none. The n-th is retrieved about n^(-2/3) times as often as the
	 * first. */
	uint32_t documents;
	uint32_t document_tokens; /* of each, on average */
	uint32_t documents_each;  /* retrieved per turn */
	uint64_t seed;
};

/* Returns false for an unknown kind. */
bool skv_gen_kind_parse(const char *text, enum skv_gen_kind *out);
const char *skv_gen_kind_name(enum skv_gen_kind kind);
/* Default settings of a kind, for a hundred conversations; seed 1. */
void skv_gen_options_init(struct skv_gen_options *o, enum skv_gen_kind kind);
/* Requests in order of time. 0; -1 out of memory, *out is then empty. Release with
 * skv_trace_free. */
int skv_gen_make(const struct skv_gen_options *o, struct skv_trace *out);

#endif
