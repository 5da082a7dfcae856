/*
 * cmd_get.c - kvblock get: one block, or the chain that `put --block-bytes` wrote, to a file or
 * stdout.
 *
 * Bytes leave only after the block that holds them proved to be a hit. A mismatch ends with its own
 * exit status and writes nothing of that block.
 */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <kvb/mem.h>

#define BATCH 64u

struct get {
	struct kvb_cli_target target;
	const char *spec;
	const char *path;
	uint64_t block_bytes;
	uint64_t length; /* UINT64_MAX = all */
	FILE *out;
	uint64_t blocks, bytes;
};

/* Exit code of one block that is no hit. */
static int explain(const struct kvb_cli *cli, const struct kvblock_block *b, const char *key,
		   const struct kvblock_error *err)
{
	if (b->result == KVBLOCK_ERROR)
		return kvb_cli_fail(cli, err);
	if (b->result == KVBLOCK_MISMATCH) {
		fprintf(stderr, "kvblock get: %s: the bytes differ from what was written\n", key);
		return KVB_EXIT_MISMATCH;
	}
	fprintf(stderr, "kvblock get: %s: not there\n", key);
	return KVB_EXIT_MISS;
}

static int emit(const struct kvb_cli *cli, struct get *g, const void *data, uint64_t n)
{
	uint64_t left = g->length - g->bytes;

	if (n > left)
		n = left;
	if (fwrite(data, 1, n, g->out) != n)
		return kvb_cli_usage(cli, "%s: %s", g->path, strerror(errno));
	g->bytes += n;
	return KVB_EXIT_OK;
}

static int get_single(struct kvb_cli *cli, struct kvblock *kv, struct get *g)
{
	struct kvblock_keys key = kvb_args_keys_of(&g->target.keys);
	struct kvblock_lookup_options o = { .mode = KVBLOCK_PREFIX,
					    .lease_ms = KVBLOCK_LEASE_DEFAULT,
					    .specs = g->spec ? &g->spec : NULL,
					    .n_specs = g->spec != NULL };
	struct kvblock_buf bufs[KVBLOCK_MAX_SPECS] = { 0 };
	struct kvblock_block block = { .bufs = bufs };
	const struct kvblock_instance_info *info;
	struct kvblock_error err;
	int rc = KVB_EXIT_OK;

	if (kvblock_instance_get(kv, g->target.instance, &info, &err) != KVBLOCK_OK)
		return kvb_cli_fail(cli, &err);
	for (uint32_t i = 0; i < info->spec.n_specs && rc == KVB_EXIT_OK; i++) {
		const struct kvblock_spec *s = &info->spec.specs[i];

		if (g->spec && strcmp(s->name, g->spec) != 0)
			continue;
		bufs[block.n_bufs] = (struct kvblock_buf){ kvb_malloc(s->size), s->size };
		if (!bufs[block.n_bufs++].data)
			rc = kvb_cli_usage(cli, "%" PRIu64 " bytes do not fit into memory",
					   s->size);
	}
	kvblock_free(info);
	if (rc == KVB_EXIT_OK &&
	    kvblock_get(kv, g->target.instance, &key, &o, &block, NULL, &err) != KVBLOCK_OK)
		rc = kvb_cli_fail(cli, &err);
	else if (rc == KVB_EXIT_OK && block.result != KVBLOCK_HIT)
		rc = explain(cli, &block, g->target.texts[0], &err);
	g->blocks += rc == KVB_EXIT_OK;
	for (uint32_t i = 0; i < block.n_bufs; i++) {
		if (rc == KVB_EXIT_OK)
			rc = emit(cli, g, bufs[i].data, bufs[i].size);
		kvb_free(bufs[i].data);
	}
	return rc;
}

/* One batch of the chain. *end: the chain (or the length) ended in it. */
static int get_batch(struct kvb_cli *cli, struct kvblock *kv, struct get *g, uint8_t *memory,
		     bool *end)
{
	static char text[BATCH][1100];
	const char *names[BATCH];
	struct kvblock_buf bufs[BATCH];
	struct kvblock_block blocks[BATCH];
	struct kvblock_keys keys = kvblock_keys_strings(names, BATCH);
	struct kvblock_error err;
	int rc = KVB_EXIT_OK;

	for (uint32_t i = 0; i < BATCH; i++) {
		snprintf(text[i], sizeof text[i], "%.1000s/%" PRIu64, g->target.texts[0],
			 g->blocks + i);
		names[i] = text[i];
		bufs[i] = (struct kvblock_buf){ memory + i * g->block_bytes, g->block_bytes };
		blocks[i] = (struct kvblock_block){ .bufs = &bufs[i], .n_bufs = 1 };
	}
	if (kvblock_get(kv, g->target.instance, &keys, NULL, blocks, NULL, &err) != KVBLOCK_OK)
		return kvb_cli_fail(cli, &err);
	for (uint32_t i = 0; i < BATCH && rc == KVB_EXIT_OK && !*end; i++) {
		*end = g->bytes >= g->length;
		if (*end)
			break;
		if (blocks[i].result == KVBLOCK_HIT) {
			rc = emit(cli, g, bufs[i].data, bufs[i].size);
			g->blocks++;
		} else if (blocks[i].result == KVBLOCK_MISS && g->blocks > 0 &&
			   g->length == UINT64_MAX) {
			*end = true;
		} else {
			rc = explain(cli, &blocks[i], text[i], &err);
		}
	}
	return rc;
}

static int get_chain(struct kvb_cli *cli, struct kvblock *kv, struct get *g)
{
	uint8_t *memory =
		g->block_bytes < SIZE_MAX / BATCH ? kvb_malloc(BATCH * g->block_bytes) : NULL;
	bool end = false;
	int rc = memory ? KVB_EXIT_OK : kvb_cli_usage(cli, "out of memory");

	while (rc == KVB_EXIT_OK && !end)
		rc = get_batch(cli, kv, g, memory, &end);
	kvb_free(memory);
	return rc;
}

static int do_get(struct kvb_cli *cli, struct get *g)
{
	bool is_stdout = strcmp(g->path, "-") == 0;
	struct kvblock *kv;
	int rc;

	if (cli->json && is_stdout)
		return kvb_cli_usage(cli, "--json: name a FILE, stdout is taken");
	rc = kvb_cli_open(cli, NULL, &kv);
	if (rc != KVB_EXIT_OK)
		return rc;
	g->out = is_stdout ? stdout : fopen(g->path, "we");
	if (!g->out)
		rc = kvb_cli_usage(cli, "%s: %s", g->path, strerror(errno));
	if (rc == KVB_EXIT_OK)
		rc = g->block_bytes ? get_chain(cli, kv, g) : get_single(cli, kv, g);
	if (g->out && !is_stdout && fclose(g->out) != 0 && rc == KVB_EXIT_OK)
		rc = kvb_cli_usage(cli, "%s: %s", g->path, strerror(errno));
	kvblock_close(kv);
	if (rc == KVB_EXIT_OK && cli->json)
		rc = kvb_cli_print_json(json_pack("{sI sI}", "blocks", (json_int_t)g->blocks,
						  "bytes", (json_int_t)g->bytes));
	return rc;
}

static int parse(struct kvb_cli *cli, struct get *g, int argc, char **argv)
{
	static const struct option options[] = {
		{ "spec", required_argument, NULL, 's' },
		{ "block-bytes", required_argument, NULL, 'b' },
		{ "length", required_argument, NULL, 'n' },
		KVB_CLI_TARGET_OPTIONS,
		KVB_CLI_GLOBAL_OPTIONS,
	};
	int opt, rc = KVB_EXIT_OK;

	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, KVB_CLI_SHORT, options, NULL)) != -1) {
		if (opt == 's')
			g->spec = optarg;
		else if (opt == 'b' && (!kvb_args_size(optarg, &g->block_bytes) || !g->block_bytes))
			rc = kvb_cli_usage(cli, "--block-bytes: a size, e.g. 64K");
		else if (opt == 'n' && !kvb_args_size(optarg, &g->length))
			rc = kvb_cli_usage(cli, "--length: a size");
		else if (opt != 'b' && opt != 'n')
			rc = kvb_cli_target_option(cli, &g->target, opt, optarg);
	}
	if (rc == KVB_EXIT_OK && argc - optind > 1)
		rc = kvb_cli_usage(cli, "one FILE");
	if (rc == KVB_EXIT_OK && optind < argc)
		g->path = argv[optind];
	if (rc == KVB_EXIT_OK && g->target.n != 1)
		rc = kvb_cli_usage(cli, "exactly one --key");
	if (rc == KVB_EXIT_OK && g->block_bytes && g->target.form != KVBLOCK_KEYS_STRING)
		rc = kvb_cli_usage(cli, "--block-bytes: a string key");
	return rc == KVB_EXIT_OK ? kvb_cli_target_keys(cli, &g->target, 0, NULL, 0) : rc;
}

int kvb_cmd_get(struct kvb_cli *cli, int argc, char **argv)
{
	struct get g = { .path = "-", .length = UINT64_MAX };
	int rc;

	kvb_cli_target_init(&g.target);
	rc = parse(cli, &g, argc, argv);
	if (rc == KVB_EXIT_OK)
		rc = do_get(cli, &g);
	kvb_cli_target_free(&g.target);
	return rc;
}
