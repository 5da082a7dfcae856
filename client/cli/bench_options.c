/* bench_options.c - the command line of `slabkv bench`. No state. */
#include "bench.h"

#include <assert.h>
#include <string.h>

/* "1,512,16384": adds each item to the benchmark; false when one is bad or there are too many. */
static bool read_list(struct skv_bench *b, const char *text,
		      bool (*add)(struct skv_bench *b, const char *item))
{
	char word[32];

	for (;; text++) {
		size_t len = strcspn(text, ",");

		if (len >= sizeof word)
			return false;
		memcpy(word, text, len);
		word[len] = '\0';
		if (!add(b, word))
			return false;
		text += len;
		if (!*text)
			return true;
	}
}

static bool add_keys(struct skv_bench *b, const char *text)
{
	return b->n_sizes < SKV_BENCH_SIZES &&
	       skv_args_number(text, 1, SLABKV_MAX_KEYS, &b->sizes[b->n_sizes++]);
}

static bool add_data(struct skv_bench *b, const char *text)
{
	uint64_t bytes;

	if (b->n_data == SKV_BENCH_SIZES || !skv_args_size(text, &bytes))
		return false;
	b->data[b->n_data++] = bytes;
	return bytes > 0 && bytes <= 1ull << 32;
}

static bool take_keys(const char *text, void *bench)
{
	struct skv_bench *b = bench;

	b->n_sizes = 0;
	return read_list(b, text, add_keys);
}

static bool take_data(const char *text, void *bench)
{
	struct skv_bench *b = bench;

	b->n_data = 0;
	return read_list(b, text, add_data);
}

static bool take_ops(const char *text, void *bench)
{
	struct skv_bench *b = bench;

	b->n_ops = 0;
	return read_list(b, text, skv_bench_op_add);
}

static bool take_ratio(const char *text, void *ratio)
{
	double *out = ratio;

	if (strspn(text, "0.") == strlen(text)) { /* skv_args_factor takes no zero */
		*out = 0;
		return text[0] == '0';
	}
	return skv_args_factor(text, out) && *out <= 1;
}

static bool take_seconds(const char *text, void *seconds)
{
	double *out = seconds;

	return skv_args_factor(text, out) && *out <= 86400;
}

static bool take_capacity(const char *text, void *capacity)
{
	uint64_t *out = capacity;

	return skv_args_size(text, out) && *out >= 1u << 26 && *out % (1u << 26) == 0;
}

static bool take_pid(const char *text, void *pid)
{
	uint64_t v;

	if (!skv_args_number(text, 1, INT32_MAX, &v) || skv_machine_cpu_ns((long)v) == 0)
		return false;
	*(long *)pid = (long)v;
	return true;
}

/* Fills in the options that were not set. */
static void set_defaults(struct skv_bench *b)
{
	const bool any_op = b->n_ops == 0;

	assert(b->api->n_ops <= SKV_BENCH_SIZES);
	if (b->n_sizes == 0 && b->n_data > 0)
		b->sizes[b->n_sizes++] = 16;
	if (b->n_sizes == 0) {
		b->sizes[b->n_sizes++] = 1;
		b->sizes[b->n_sizes++] = 512;
	}
	for (uint32_t i = 0; any_op && i < b->api->n_ops; i++)
		b->ops[b->n_ops++] = &b->api->ops[i];
	if (b->capacity == 0)
		b->capacity = b->full ? 1ull << 30 : 16ull << 40;
	for (uint32_t i = 0; i < b->n_sizes; i++)
		if (b->population < b->sizes[i])
			b->population = b->sizes[i];
}

int skv_bench_options(struct skv_bench *b, int argc, char **argv)
{
	bool batch = false;
	const struct skv_cli_option options[] = {
		{ "keys", SKV_CLI_PARSED, b, 0, 0, "1..16384, or a list of them", take_keys },
		{ "ops", SKV_CLI_PARSED, b, 0, 0, b->api->op_names, take_ops },
		{ "data", SKV_CLI_PARSED, b, 0, 0, "sizes, e.g. 1M,4497408", take_data },
		{ "clients", SKV_CLI_NUMBER, &b->n_clients, 1, 1024, "1..1024", NULL },
		{ "seconds", SKV_CLI_PARSED, &b->seconds, 0, 0, "up to 86400, e.g. 0.5",
		  take_seconds },
		{ "rate", SKV_CLI_COUNT, &b->rate, 1, UINT32_MAX, "blocks a second, 1 or more",
		  NULL },
		{ "hits", SKV_CLI_PARSED, &b->hits, 0, 0, "0..1, e.g. 0.5", take_ratio },
		{ "batch", SKV_CLI_FLAG, &batch, 0, 0, NULL, NULL },
		{ "scatter", SKV_CLI_FLAG, &b->scatter, 0, 0, NULL, NULL },
		{ "text", SKV_CLI_FLAG, &b->text, 0, 0, NULL, NULL },
		{ "checksums", SKV_CLI_FLAG, &b->checksums, 0, 0, NULL, NULL },
		{ "independent", SKV_CLI_FLAG, &b->independent, 0, 0, NULL, NULL },
		/* the manager knows the policies */
		{ "policy", SKV_CLI_TEXT, &b->policy, 0, 0, NULL, NULL },
		{ "full", SKV_CLI_FLAG, &b->full, 0, 0, NULL, NULL },
		{ "keep", SKV_CLI_FLAG, &b->keep, 0, 0, NULL, NULL },
		{ "depth", SKV_CLI_NUMBER, &b->depth, 1, 1024, "1..1024", NULL },
		{ "in-flight", SKV_CLI_NUMBER, &b->in_flight, 1, SKV_BENCH_IN_FLIGHT, "1..16",
		  NULL },
		{ "capacity", SKV_CLI_PARSED, &b->capacity, 0, 0, "a multiple of 64M",
		  take_capacity },
		{ "slot", SKV_CLI_SIZE, &b->slot_bytes, 1, 1ull << 32, "a size", NULL },
		{ "population", SKV_CLI_COUNT, &b->population, 1, UINT32_MAX, "a number", NULL },
		{ "max-blocks", SKV_CLI_COUNT, &b->max_blocks, 1, UINT32_MAX, "a number", NULL },
		{ "data-bytes", SKV_CLI_SIZE, &b->data_bytes, 1, UINT64_MAX, "a size", NULL },
		{ "storage", SKV_CLI_TEXT, &b->storage, 0, 0, NULL, NULL },
		{ "manager-pid", SKV_CLI_PARSED, &b->manager_pid, 0, 0, "no such process here",
		  take_pid },
		SKV_CLI_OPTIONS_END
	};
	int rc;

	_Static_assert(SKV_BENCH_IN_FLIGHT == 16, "as --in-flight says");
	b->n_clients = 4;
	b->seconds = 5;
	b->hits = 1;
	b->slot_bytes = 4096;
	b->population = 65536;
	b->max_blocks = 1000000;
	b->data_bytes = 1ull << 30;
	b->in_flight = 2;
	b->storage = "default";
	rc = skv_cli_parse(b->cli, argc, argv, options, NULL);
	if (rc == SKV_EXIT_OK && optind < argc)
		rc = skv_cli_usage(b->cli, "takes no arguments");
	if (rc != SKV_EXIT_OK)
		return rc;
	b->mode = batch ? SLABKV_BATCH : SLABKV_PREFIX;
	set_defaults(b);
	assert(b->n_sizes >= 1 && b->n_sizes <= SKV_BENCH_SIZES && b->n_data <= SKV_BENCH_SIZES);
	assert(b->n_ops > 0 && b->n_ops <= SKV_BENCH_SIZES);
	return SKV_EXIT_OK;
}
