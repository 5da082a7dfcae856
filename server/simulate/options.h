/* options.h - the command line of `slabkvd simulate`. */
#ifndef SKV_SIMULATE_OPTIONS_H
#define SKV_SIMULATE_OPTIONS_H

#include <stdbool.h>

#include <skv/model.h>
#include <skv/trace_gen.h>

#define MAX_LIST 64u

struct options {
	const char *traces[MAX_LIST]; /* paths, "-" = stdin */
	uint32_t n_traces;
	bool generate;
	struct skv_gen_options gen;
	const char *policies[MAX_LIST];
	uint32_t n_policies; /* 0 = all */
	char *policy_text;   /* memory of the names; skv_free */
	uint64_t blocks[MAX_LIST];
	uint32_t n_blocks; /* 0 = chosen by the trace */
	uint64_t capacity[MAX_LIST]; /* bytes */
	uint32_t n_capacity;
	uint64_t fast[MAX_LIST]; /* with --tiers, of the fast tier: bytes, beside `capacity` */
	bool tiers;
	uint32_t promote_after;
	bool write_through;
	uint64_t requests; /* of each trace, 0 = all */
	bool full;
	bool one_by_one;
	uint64_t ttl_ms;
	const char *instance; /* NULL: as slabkv replay calls it */
	uint64_t block_bytes;
	uint64_t unit;
	uint64_t file_size;
	uint32_t threads; /* 0 = number of processors */
	bool csv, json; /* instead of tables */
	const char *hits;
	bool list_models;
	bool sizing; /* a model, or a shape, was given */
	bool has_block_bytes;
	struct skv_model model;
	uint32_t tp;
	uint32_t block_tokens;
	uint32_t trace_tokens;
	const char *dtype;
};

enum { OPTIONS_RUN = -1 };

/* OPTIONS_RUN, or the exit status: help was printed, or an error. Release with
 * options_free in any case. */
int options_parse(struct options *o, int argc, char **argv);
void options_free(struct options *o);

#endif
