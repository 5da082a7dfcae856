/* args.h - values of command-line options: sizes, numbers, keys. No state. */
#ifndef SKV_CLI_ARGS_H
#define SKV_CLI_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include <slabkv.h>

/* "4096", "64K", "1M", "2G", "1T" (powers of 1024). False unless the whole text is a size. */
bool skv_args_size(const char *text, uint64_t *out);
/* A decimal number in [min, max]. */
bool skv_args_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* "90d", "12h", "30m", "45s", in seconds. */
bool skv_args_duration(const char *text, uint64_t *s);
/* A positive decimal fraction, e.g. "0.5". */
bool skv_args_factor(const char *text, double *out);

/* Keys as given by --key, in one form. */
struct skv_args_keys {
	enum slabkv_key_form form;
	uint32_t n;
	const char **strings; /* as given; borrowed from argv */
	uint64_t *ints;
	struct slabkv_key *wide;
};

/* "string" | "int" | "hex". */
bool skv_args_key_form(const char *text, enum slabkv_key_form *out);
/* Parses `n` texts (at most SLABKV_MAX_KEYS). NULL when fine, else a sentence (static). Release
 * with skv_args_keys_free, also after a failure. */
const char *skv_args_keys_parse(struct skv_args_keys *k, enum slabkv_key_form form,
				const char *const *texts, uint32_t n);
void skv_args_keys_free(struct skv_args_keys *k);
struct slabkv_keys skv_args_keys_of(const struct skv_args_keys *k);

/* "1.5 GiB" into `out` (at least 24 bytes). */
void skv_args_print_size(uint64_t bytes, char out[24]);

#endif
