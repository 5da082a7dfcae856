/* bench_options.c - the command line of `slabkv bench`. No state. */
#include "bench.h"

#include <assert.h>
#include <string.h>

enum {
	OPT_KEYS = 1,
	OPT_OPS,
	OPT_API,
	OPT_GRPC,
	OPT_DATA,
	OPT_CLIENTS,
	OPT_SECONDS,
	OPT_RATE,
	OPT_HITS,
	OPT_BATCH,
	OPT_SCATTER,
	OPT_TEXT,
	OPT_CHECKSUMS,
	OPT_INDEPENDENT,
	OPT_POLICY,
	OPT_FULL,
	OPT_KEEP,
	OPT_PREPARE,
	OPT_DEPTH,
	OPT_IN_FLIGHT,
	OPT_CAPACITY,
	OPT_SLOT,
	OPT_POPULATION,
	OPT_MAX_BLOCKS,
	OPT_DATA_BYTES,
	OPT_STORAGE,
	OPT_PID,
};
_Static_assert(OPT_PID < '?' && OPT_PID < 'o' && (int)OPT_PID < (int)SKV_OPT_URL,
	       "neither refused nor global");

static const struct option options[] = {
	{ "keys", required_argument, NULL, OPT_KEYS },
	{ "ops", required_argument, NULL, OPT_OPS },
	{ "api", required_argument, NULL, OPT_API },
	{ "grpc", required_argument, NULL, OPT_GRPC },
	{ "data", required_argument, NULL, OPT_DATA },
	{ "clients", required_argument, NULL, OPT_CLIENTS },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "hits", required_argument, NULL, OPT_HITS },
	{ "batch", no_argument, NULL, OPT_BATCH },
	{ "scatter", no_argument, NULL, OPT_SCATTER },
	{ "text", no_argument, NULL, OPT_TEXT },
	{ "checksums", no_argument, NULL, OPT_CHECKSUMS },
	{ "independent", no_argument, NULL, OPT_INDEPENDENT },
	{ "policy", required_argument, NULL, OPT_POLICY },
	{ "full", no_argument, NULL, OPT_FULL },
	{ "keep", no_argument, NULL, OPT_KEEP },
	{ "prepare", no_argument, NULL, OPT_PREPARE },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "in-flight", required_argument, NULL, OPT_IN_FLIGHT },
	{ "capacity", required_argument, NULL, OPT_CAPACITY },
	{ "slot", required_argument, NULL, OPT_SLOT },
	{ "population", required_argument, NULL, OPT_POPULATION },
	{ "max-blocks", required_argument, NULL, OPT_MAX_BLOCKS },
	{ "data-bytes", required_argument, NULL, OPT_DATA_BYTES },
	{ "storage", required_argument, NULL, OPT_STORAGE },
	{ "manager-pid", required_argument, NULL, OPT_PID },
	SKV_CLI_GLOBAL_OPTIONS,
};

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

static bool data_value(const char *text, uint64_t *out)
{
	return skv_args_size(text, out) && *out > 0 && *out <= 1ull << 32;
}

static bool add_data(struct skv_bench *b, const char *text)
{
	return b->n_data < SKV_BENCH_SIZES && data_value(text, &b->data[b->n_data++]);
}

static bool read_api(struct skv_bench *b, const char *text)
{
	b->api = strcmp(text, "kvcm") == 0 ? SKV_BENCH_KVCM : SKV_BENCH_V1;
	return b->api == SKV_BENCH_KVCM || strcmp(text, "v1") == 0;
}

static bool read_ratio(const char *text, double *out)
{
	if (strspn(text, "0.") == strlen(text)) { /* skv_args_factor takes no zero */
		*out = 0;
		return text[0] == '0';
	}
	return skv_args_factor(text, out) && *out <= 1;
}

static bool read_small(const char *text, uint32_t most, uint32_t *out)
{
	uint64_t v;

	if (!skv_args_number(text, 1, most, &v))
		return false;
	*out = (uint32_t)v;
	return true;
}

static bool read_pid(struct skv_bench *b, const char *text)
{
	uint64_t v;

	if (!skv_args_number(text, 1, INT32_MAX, &v) || skv_machine_cpu_ns((long)v) == 0)
		return false;
	b->manager_pid = (long)v;
	return true;
}

/* Checks options: NULL when the value is valid, else the requirement. */
static const char *set_value(struct skv_bench *b, int opt, const char *value)
{
	switch (opt) {
	case OPT_KEYS:
		b->n_sizes = 0;
		return read_list(b, value, add_keys) ? NULL : "--keys: 1..16384, or a list of them";
	case OPT_API:
		return read_api(b, value) ? NULL : "--api: v1 or kvcm";
	case OPT_DATA:
		b->n_data = 0;
		return read_list(b, value, add_data) ? NULL : "--data: sizes, e.g. 1M,4497408";
	case OPT_CLIENTS:
		return read_small(value, 1024, &b->n_clients) ? NULL : "--clients: 1..1024";
	case OPT_SECONDS:
		return skv_args_factor(value, &b->seconds) && b->seconds <= 86400
			       ? NULL
			       : "--seconds: up to 86400, e.g. 0.5";
	case OPT_RATE:
		return skv_args_number(value, 1, UINT32_MAX, &b->rate)
			       ? NULL
			       : "--rate: blocks a second, 1 or more";
	case OPT_HITS:
		return read_ratio(value, &b->hits) ? NULL : "--hits: 0..1, e.g. 0.5";
	case OPT_DEPTH:
		return read_small(value, 1024, &b->depth) ? NULL : "--depth: 1..1024";
	case OPT_IN_FLIGHT:
		return read_small(value, SKV_BENCH_IN_FLIGHT, &b->in_flight) ? NULL
									     : "--in-flight: 1..16";
	case OPT_CAPACITY:
		return skv_args_size(value, &b->capacity) && b->capacity >= 1u << 26 &&
				       b->capacity % (1u << 26) == 0
			       ? NULL
			       : "--capacity: a multiple of 64M";
	case OPT_SLOT:
		return data_value(value, &b->slot_bytes) ? NULL : "--slot: a size";
	case OPT_POPULATION:
		return skv_args_number(value, 1, UINT32_MAX, &b->population)
			       ? NULL
			       : "--population: a number";
	case OPT_MAX_BLOCKS:
		return skv_args_number(value, 1, UINT32_MAX, &b->max_blocks)
			       ? NULL
			       : "--max-blocks: a number";
	case OPT_DATA_BYTES:
		return skv_args_size(value, &b->data_bytes) && b->data_bytes > 0
			       ? NULL
			       : "--data-bytes: a size";
	default:
		return read_pid(b, value) ? NULL : "--manager-pid: no such process here";
	}
}

static int set_option(struct skv_bench *b, int opt, const char *value)
{
	const char *wrong;

	switch (opt) {
	case OPT_BATCH:
		b->mode = SLABKV_BATCH;
		return SKV_EXIT_OK;
	case OPT_SCATTER:
		b->scatter = true;
		return SKV_EXIT_OK;
	case OPT_TEXT:
		b->text = true;
		return SKV_EXIT_OK;
	case OPT_CHECKSUMS:
		b->checksums = true;
		return SKV_EXIT_OK;
	case OPT_INDEPENDENT:
		b->independent = true;
		return SKV_EXIT_OK;
	case OPT_POLICY: /* the manager knows which there are */
		b->policy = value;
		return SKV_EXIT_OK;
	case OPT_FULL:
		b->full = true;
		return SKV_EXIT_OK;
	case OPT_KEEP:
		b->keep = true;
		return SKV_EXIT_OK;
	case OPT_PREPARE:
		return SKV_EXIT_OK; /* it always does */
	case OPT_STORAGE:
		b->storage = value;
		return SKV_EXIT_OK;
	case OPT_OPS: /* understood when the API is known */
		b->op_list = value;
		return SKV_EXIT_OK;
	case OPT_GRPC:
		b->grpc = value;
		return SKV_EXIT_OK;
	default:
		if (opt < OPT_KEYS || opt > OPT_PID)
			return skv_cli_global_option(b->cli, opt, value);
		wrong = set_value(b, opt, value);
		return wrong ? skv_cli_usage(b->cli, "%s", wrong) : SKV_EXIT_OK;
	}
}

static int set_ops(struct skv_bench *b)
{
	if (!b->op_list)
		skv_bench_op_add(b, NULL);
	else if (!read_list(b, b->op_list, skv_bench_op_add))
		return skv_cli_usage(b->cli, "%s",
				     b->api == SKV_BENCH_KVCM
					     ? "--ops: a list of get-json,get-grpc,write-json,"
					       "write-grpc"
					     : "--ops: a list of lookup,match,start,delete");
	if (b->api == SKV_BENCH_KVCM && b->n_data > 0)
		return skv_cli_usage(b->cli, "--data goes with --api v1");
	assert(b->n_ops > 0 && b->ops[0]->api == b->api);
	return SKV_EXIT_OK;
}

/* Fills in what no option set. */
static void set_defaults(struct skv_bench *b)
{
	if (b->n_sizes == 0 && b->n_data > 0)
		b->sizes[b->n_sizes++] = 16;
	if (b->n_sizes == 0) {
		b->sizes[b->n_sizes++] = b->api == SKV_BENCH_KVCM ? 512 : 1;
		b->sizes[b->n_sizes++] = b->api == SKV_BENCH_KVCM ? 1000 : 512;
	}
	if (b->capacity == 0)
		b->capacity = b->full ? 1ull << 30 : 16ull << 40;
	for (uint32_t i = 0; i < b->n_sizes; i++)
		if (b->population < b->sizes[i])
			b->population = b->sizes[i];
}

int skv_bench_options(struct skv_bench *b, int argc, char **argv)
{
	int opt, rc = SKV_EXIT_OK;

	b->n_clients = 4;
	b->seconds = 5;
	b->hits = 1;
	b->slot_bytes = 4096;
	b->population = 65536;
	b->max_blocks = 1000000;
	b->data_bytes = 1ull << 30;
	b->in_flight = 2;
	b->storage = "default";
	b->grpc = "127.0.0.1:7334";
	while (rc == SKV_EXIT_OK &&
	       (opt = getopt_long(argc, argv, SKV_CLI_SHORT, options, NULL)) != -1)
		rc = set_option(b, opt, optarg);
	if (rc != SKV_EXIT_OK)
		return rc;
	if (optind < argc)
		return skv_cli_usage(b->cli, "takes no arguments");
	set_defaults(b);
	assert(b->n_sizes >= 1 && b->n_sizes <= SKV_BENCH_SIZES && b->n_data <= SKV_BENCH_SIZES);
	assert(b->n_clients >= 1 && b->n_clients <= 1024 && b->seconds > 0);
	assert(b->in_flight >= 1 && b->in_flight <= SKV_BENCH_IN_FLIGHT);
	assert(b->hits >= 0 && b->hits <= 1 && b->slot_bytes > 0);
	return set_ops(b);
}
