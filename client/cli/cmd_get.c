/*
 * cmd_get.c - slabkv get: one block, or the chain that `put --block-bytes` wrote, to a file or
 * stdout.
 *
 * Bytes leave only after the block that holds them proved to be a hit. A mismatch ends with its own
 * exit status and writes nothing of that block. A file takes its place when all of it is there.
 */
#include "cli.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <skv/mem.h>

#include "outfile.h"

#define BATCH 64u
#define AHEAD 1024u /* blocks requested beyond the end of a chain */
_Static_assert(BATCH <= SLABKV_MAX_KEYS && AHEAD <= SLABKV_MAX_KEYS, "one call each");

struct get {
	struct skv_cli_target target;
	const char *spec;
	const char *path;
	uint64_t block_bytes;
	uint64_t length; /* UINT64_MAX = all */
	struct skv_outfile out;
	uint64_t blocks, bytes;
};

/* Exit code of one block that is no hit. */
static int explain(const struct skv_cli *cli, const struct slabkv_block *b, const char *key,
		   const struct slabkv_error *err)
{
	if (b->result == SLABKV_ERROR)
		return skv_cli_fail(cli, err);
	if (b->result == SLABKV_MISMATCH) {
		skv_cli_tell(cli, "mismatch", "%s: the bytes differ from what was written", key);
		return SKV_EXIT_MISMATCH;
	}
	skv_cli_tell(cli, "not_found", "%s: not there", key);
	return SKV_EXIT_MISS;
}

static int emit(const struct skv_cli *cli, struct get *g, const void *data, uint64_t n)
{
	uint64_t left = g->length - g->bytes;

	assert(g->bytes <= g->length);
	if (n > left)
		n = left;
	if (fwrite(data, 1, n, g->out.f) != n)
		return skv_cli_usage(cli, "%s: %s", g->path, strerror(errno));
	g->bytes += n;
	return SKV_EXIT_OK;
}

static int get_single(struct skv_cli *cli, struct slabkv *kv, struct get *g)
{
	struct slabkv_keys key = skv_args_keys_of(&g->target.keys);
	struct slabkv_lookup_options o = { .size = sizeof(struct slabkv_lookup_options),
					   .mode = SLABKV_PREFIX,
					    .lease_ms = SLABKV_LEASE_DEFAULT,
					    .specs = g->spec ? &g->spec : NULL,
					    .n_specs = g->spec != NULL };
	struct slabkv_buf bufs[SLABKV_MAX_SPECS] = { 0 };
	struct slabkv_block block = { .bufs = bufs };
	const struct slabkv_instance *layout;
	struct slabkv_error err;
	int rc = SKV_EXIT_OK;

	if (slabkv_instance_get(kv, g->target.instance, &layout, &err) != SLABKV_OK)
		return skv_cli_fail(cli, &err);
	for (uint32_t i = 0; i < layout->n_specs && rc == SKV_EXIT_OK; i++) {
		const struct slabkv_spec *s = &layout->specs[i];

		if (g->spec && strcmp(s->name, g->spec) != 0)
			continue;
		/* the library takes no instance with more */
		assert(block.n_bufs < SLABKV_MAX_SPECS);
		bufs[block.n_bufs] = (struct slabkv_buf){ skv_malloc(s->size), s->size };
		if (!bufs[block.n_bufs++].data)
			rc = skv_cli_usage(cli, "%" PRIu64 " bytes do not fit into memory",
					   s->size);
	}
	slabkv_free(layout);
	if (rc == SKV_EXIT_OK && slabkv_get(kv, g->target.instance, &key, &o, &block,
					    sizeof(struct slabkv_block), NULL, &err) != SLABKV_OK)
		rc = skv_cli_fail(cli, &err);
	else if (rc == SKV_EXIT_OK && block.result != SLABKV_HIT)
		rc = explain(cli, &block, g->target.texts[0], &err);
	g->blocks += rc == SKV_EXIT_OK;
	for (uint32_t i = 0; i < block.n_bufs; i++) {
		if (rc == SKV_EXIT_OK)
			rc = emit(cli, g, bufs[i].data, bufs[i].size);
		skv_free(bufs[i].data);
	}
	return rc;
}

/* A chain ends where nothing follows. A block that is missing before others is a hole. */
static int check_end(const struct skv_cli *cli, struct slabkv *kv, const struct get *g)
{
	static const struct slabkv_lookup_options each =
		{ .size = sizeof(struct slabkv_lookup_options), .mode = SLABKV_BATCH };
	static char text[AHEAD][SKV_CLI_CHAIN_KEY];
	const struct slabkv_locations *found;
	const char *names[AHEAD];
	struct slabkv_keys keys = slabkv_keys_strings(names, AHEAD);
	struct slabkv_error err;
	int rc = SKV_EXIT_OK;

	for (uint32_t i = 0; i < AHEAD; i++) {
		skv_cli_chain_key(g->target.texts[0], g->blocks + 1 + i, text[i]);
		names[i] = text[i];
	}
	if (slabkv_lookup(kv, g->target.instance, &keys, &each, &found, &err) != SLABKV_OK)
		return skv_cli_fail(cli, &err);
	for (uint32_t i = 0; i < AHEAD && rc == SKV_EXIT_OK; i++) {
		if (!found->hit[i])
			continue;
		skv_cli_tell(cli, "not_found",
			     "%s/%" PRIu64 ": not there, but %s is: the chain has a hole",
			     g->target.texts[0], g->blocks, text[i]);
		rc = SKV_EXIT_MISS;
	}
	slabkv_free(found);
	return rc;
}

/* Reads a batch of the chain. Sets *end if the chain (or the length) ended in the batch. */
static int get_batch(struct skv_cli *cli, struct slabkv *kv, struct get *g, uint8_t *memory,
		     bool *end)
{
	static char text[BATCH][SKV_CLI_CHAIN_KEY];
	const char *names[BATCH];
	struct slabkv_buf bufs[BATCH];
	struct slabkv_block blocks[BATCH];
	struct slabkv_keys keys = slabkv_keys_strings(names, BATCH);
	struct slabkv_error err;
	int rc = SKV_EXIT_OK;

	for (uint32_t i = 0; i < BATCH; i++) {
		skv_cli_chain_key(g->target.texts[0], g->blocks + i, text[i]);
		names[i] = text[i];
		bufs[i] = (struct slabkv_buf){ memory + i * g->block_bytes, g->block_bytes };
		blocks[i] = (struct slabkv_block){ .bufs = &bufs[i], .n_bufs = 1 };
	}
	if (slabkv_get(kv, g->target.instance, &keys, NULL, blocks, sizeof(struct slabkv_block),
		       NULL, &err) != SLABKV_OK)
		return skv_cli_fail(cli, &err);
	for (uint32_t i = 0; i < BATCH && rc == SKV_EXIT_OK && !*end; i++) {
		*end = g->bytes >= g->length;
		if (*end)
			break;
		if (blocks[i].result == SLABKV_HIT) {
			rc = emit(cli, g, bufs[i].data, bufs[i].size);
			g->blocks++;
		} else if (blocks[i].result == SLABKV_MISS && g->blocks > 0 &&
			   g->length == UINT64_MAX) {
			*end = true;
			rc = check_end(cli, kv, g);
		} else {
			rc = explain(cli, &blocks[i], text[i], &err);
		}
	}
	assert(rc != SKV_EXIT_OK || g->bytes == g->length ||
	       g->bytes == g->blocks * g->block_bytes);
	return rc;
}

/* Checks blocks against the buffers that were put, byte by byte. */
static int check_layout(const struct skv_cli *cli, struct slabkv *kv, const struct get *g)
{
	const struct slabkv_instance *layout;
	struct slabkv_error err;
	int rc = SKV_EXIT_OK;

	if (slabkv_instance_get(kv, g->target.instance, &layout, &err) != SLABKV_OK)
		return skv_cli_fail(cli, &err);
	if (layout->n_specs != 1)
		rc = skv_cli_usage(cli, "--block-bytes: blocks of instance %s have %u specs",
				   g->target.instance, layout->n_specs);
	else if (layout->specs[0].size != g->block_bytes)
		rc = skv_cli_usage(cli,
				   "--block-bytes: blocks of instance %s have %" PRIu64 " bytes",
				   g->target.instance, layout->specs[0].size);
	slabkv_free(layout);
	return rc;
}

static int get_chain(struct skv_cli *cli, struct slabkv *kv, struct get *g)
{
	uint8_t *memory = NULL;
	bool end = false;
	int rc = check_layout(cli, kv, g);

	if (rc == SKV_EXIT_OK) {
		memory = g->block_bytes < SIZE_MAX / BATCH ? skv_malloc(BATCH * g->block_bytes)
							   : NULL;
		rc = memory ? SKV_EXIT_OK : skv_cli_usage(cli, "out of memory");
	}
	while (rc == SKV_EXIT_OK && !end)
		rc = get_batch(cli, kv, g, memory, &end);
	skv_free(memory);
	return rc;
}

static int do_get(struct skv_cli *cli, struct get *g)
{
	bool is_stdout = strcmp(g->path, "-") == 0;
	struct slabkv *kv;
	int rc;

	assert(g->target.keys.n == 1 &&
	       (g->block_bytes == 0 || g->target.form == SLABKV_KEYS_STRING));
	if (cli->json && is_stdout)
		return skv_cli_usage(cli, "--json: name a FILE, stdout is taken");
	rc = skv_cli_open(cli, NULL, &kv);
	if (rc != SKV_EXIT_OK)
		return rc;
	rc = skv_outfile_begin(cli, g->path, &g->out);
	if (rc == SKV_EXIT_OK)
		rc = g->block_bytes ? get_chain(cli, kv, g) : get_single(cli, kv, g);
	rc = skv_outfile_end(cli, &g->out, rc);
	slabkv_close(kv);
	if (rc == SKV_EXIT_OK && cli->json)
		rc = skv_cli_print_json(json_pack("{sI sI}", "blocks", (json_int_t)g->blocks,
						  "bytes", (json_int_t)g->bytes));
	return rc;
}

static int parse(struct skv_cli *cli, struct get *g, int argc, char **argv)
{
	const struct skv_cli_option options[] = {
		{ "spec", SKV_CLI_TEXT, &g->spec, 0, 0, NULL, NULL },
		{ "block-bytes", SKV_CLI_SIZE, &g->block_bytes, 1, SKV_CLI_MAX_BLOCK,
		  SKV_CLI_BLOCK_BYTES, NULL },
		{ "length", SKV_CLI_SIZE, &g->length, 0, UINT64_MAX, "a size", NULL },
		SKV_CLI_OPTIONS_END
	};
	int rc = skv_cli_parse(cli, argc, argv, options, &g->target);

	if (rc == SKV_EXIT_OK && argc - optind > 1)
		rc = skv_cli_usage(cli, "one FILE");
	if (rc == SKV_EXIT_OK && optind < argc)
		g->path = argv[optind];
	if (rc == SKV_EXIT_OK && g->target.n != 1)
		rc = skv_cli_usage(cli, "exactly one --key");
	if (rc == SKV_EXIT_OK && g->block_bytes && g->target.form != SLABKV_KEYS_STRING)
		rc = skv_cli_usage(cli, "--block-bytes: a string key");
	if (rc == SKV_EXIT_OK && g->block_bytes)
		rc = skv_cli_chain_check(cli, g->target.texts[0]);
	return rc == SKV_EXIT_OK ? skv_cli_target_keys(cli, &g->target, 0, NULL, 0) : rc;
}

int skv_cmd_get(struct skv_cli *cli, int argc, char **argv)
{
	struct get g = { .path = "-", .length = UINT64_MAX };
	int rc;

	skv_cli_target_init(&g.target);
	rc = parse(cli, &g, argc, argv);
	if (rc == SKV_EXIT_OK)
		rc = do_get(cli, &g);
	skv_cli_target_free(&g.target);
	return rc;
}
