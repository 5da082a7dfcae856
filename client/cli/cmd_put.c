/*
 * cmd_put.c - slabkv put: a file or stdin becomes a block, or a chain of blocks.
 *
 * Whole files are read into memory first: the size must be known before the instance can be made,
 * and a block is written from one buffer. Chains are written in batches of at most BATCH_BYTES.
 */
#include "cli.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <skv/mem.h>

#define BATCH_BYTES (256u << 20)
#define MAX_FILE (1ull << 36)

struct input {
	const char *spec;
	const char *path;
	uint8_t *data;
	size_t len, cap;
};

struct put {
	struct skv_cli_target target;
	const char *group;
	const char *storage;
	uint64_t block_bytes; /* 0 = one block */
	bool independent;
	struct input in[SLABKV_MAX_SPECS];
	uint32_t n_in;
	uint64_t written, exists, busy, failed, bytes, padded;
};

static int read_input(const struct skv_cli *cli, struct input *in)
{
	bool is_stdin = strcmp(in->path, "-") == 0;
	FILE *f = is_stdin ? stdin : fopen(in->path, "re");
	size_t n = 1;
	int rc = SKV_EXIT_OK;

	if (!f)
		return skv_cli_usage(cli, "%s: %s", in->path, strerror(errno));
	while (rc == SKV_EXIT_OK && n > 0) {
		if (in->len > MAX_FILE ||
		    skv_grow((void **)&in->data, &in->cap, in->len + (1u << 16), 1) != 0) {
			rc = skv_cli_usage(cli, "%s: does not fit into memory", in->path);
			break;
		}
		assert(in->cap - in->len >= 1u << 16);
		n = fread(in->data + in->len, 1, in->cap - in->len, f);
		in->len += n;
	}
	if (rc == SKV_EXIT_OK && ferror(f))
		rc = skv_cli_usage(cli, "%s: %s", in->path, strerror(errno));
	if (!is_stdin)
		fclose(f);
	if (rc == SKV_EXIT_OK && in->len == 0)
		rc = skv_cli_usage(cli, "%s is empty", in->path);
	return rc;
}

static bool add_input(struct put *p, const char *spec, const char *path)
{
	if (p->n_in == SLABKV_MAX_SPECS)
		return false;
	p->in[p->n_in++] = (struct input){ .spec = spec, .path = path };
	return true;
}

/* "NAME=FILE". Changes `text`, which is the process's own argv. */
static bool take_spec(const char *text, void *put)
{
	char *eq = strchr(text, '=');

	if (!eq || eq == text || !eq[1])
		return false;
	*eq = '\0';
	return add_input(put, text, eq + 1);
}

static void count(struct put *p, const struct slabkv_io *io)
{
	p->written += io->done;
	p->exists += io->exists;
	p->busy += io->busy;
	p->failed += io->failed;
	p->bytes += io->bytes;
}

static int put_single(struct skv_cli *cli, struct slabkv *kv, struct put *p)
{
	struct slabkv_buf bufs[SLABKV_MAX_SPECS];
	const char *specs[SLABKV_MAX_SPECS];
	struct slabkv_keys key = skv_args_keys_of(&p->target.keys);
	struct slabkv_block block = { .bufs = bufs, .n_bufs = p->n_in };
	struct slabkv_put_options o = { .size = sizeof(struct slabkv_put_options), .specs = specs,
					.n_specs = p->n_in, .independent = p->independent };
	struct slabkv_io io = { .size = sizeof(struct slabkv_io) };
	struct slabkv_error err;

	assert(p->n_in >= 1 && p->n_in <= SLABKV_MAX_SPECS && key.n == 1);
	for (uint32_t i = 0; i < p->n_in; i++) {
		bufs[i] = (struct slabkv_buf){ p->in[i].data, p->in[i].len };
		specs[i] = p->in[i].spec;
	}
	if (slabkv_put(kv, p->target.instance, &key, &o, &block, sizeof(struct slabkv_block), &io,
		       &err) != SLABKV_OK ||
	    block.result == SLABKV_FAILED)
		return skv_cli_fail(cli, &err);
	count(p, &io);
	return SKV_EXIT_OK;
}

/* Blocks first..first+n-1 of the file in one session. */
static int put_batch(struct skv_cli *cli, struct slabkv *kv, struct put *p, uint64_t first,
		     uint32_t n)
{
	struct slabkv_block *blocks = skv_calloc(n, sizeof *blocks);
	struct slabkv_buf *bufs = skv_calloc(n, sizeof *bufs);
	const char **names = skv_calloc((size_t)n + 1, sizeof *names);
	char *text = skv_calloc((size_t)n + 1, SKV_CLI_CHAIN_KEY);
	struct slabkv_keys keys, parent;
	struct slabkv_put_options o = { .size = sizeof(struct slabkv_put_options),
					.independent = p->independent };
	struct slabkv_error err;
	struct slabkv_io io = { .size = sizeof(struct slabkv_io) };
	int rc = SKV_EXIT_OK;

	assert(n >= 1 && n <= SLABKV_MAX_KEYS && p->n_in == 1);
	assert((first + n) * p->block_bytes <= p->in[0].cap); /* the last block is filled up */
	if (!blocks || !bufs || !names || !text) {
		rc = skv_cli_usage(cli, "out of memory");
	} else {
		/* names[0] is the block before. */
		for (uint32_t i = 0; i <= n; i++) {
			names[i] = text + (size_t)i * SKV_CLI_CHAIN_KEY;
			skv_cli_chain_key(p->target.texts[0], first + i - 1,
					  text + (size_t)i * SKV_CLI_CHAIN_KEY);
		}
		for (uint32_t i = 0; i < n; i++) {
			bufs[i] =
				(struct slabkv_buf){ p->in[0].data + (first + i) * p->block_bytes,
						      p->block_bytes };
			blocks[i] = (struct slabkv_block){ .bufs = &bufs[i], .n_bufs = 1 };
		}
		keys = slabkv_keys_strings(names + 1, n);
		parent = slabkv_keys_strings(names, 1);
		keys.parent = first > 0 && !p->independent ? &parent : NULL;
		if (slabkv_put(kv, p->target.instance, &keys, &o, blocks,
			       sizeof(struct slabkv_block), &io, &err) != SLABKV_OK)
			rc = skv_cli_fail(cli, &err);
		else
			count(p, &io);
		if (rc == SKV_EXIT_OK && io.failed)
			rc = skv_cli_fail(cli, &err);
	}
	skv_free(blocks);
	skv_free(bufs);
	skv_free(names);
	skv_free(text);
	return rc;
}

static int put_chain(struct skv_cli *cli, struct slabkv *kv, struct put *p)
{
	struct input *in = &p->in[0];
	uint64_t total = (in->len + p->block_bytes - 1) / p->block_bytes;
	uint64_t batch = BATCH_BYTES / p->block_bytes;
	int rc = SKV_EXIT_OK;

	assert(p->block_bytes > 0 && p->block_bytes <= SKV_CLI_MAX_BLOCK); /* no sum here wraps */
	if (skv_grow((void **)&in->data, &in->cap, total * p->block_bytes, 1) != 0)
		return skv_cli_usage(cli, "out of memory");
	p->padded = total * p->block_bytes - in->len;
	memset(in->data + in->len, 0, p->padded);
	if (batch < 1)
		batch = 1;
	if (batch > SLABKV_MAX_KEYS)
		batch = SLABKV_MAX_KEYS;
	for (uint64_t i = 0; i < total && rc == SKV_EXIT_OK; i += batch)
		rc = put_batch(cli, kv, p, i, (uint32_t)(total - i < batch ? total - i : batch));
	return rc;
}

static int do_put(struct skv_cli *cli, struct put *p)
{
	struct slabkv_spec specs[SLABKV_MAX_SPECS];
	struct slabkv_instance instance = {
		.size = sizeof(struct slabkv_instance), .id = p->target.instance, .group = p->group,
		.specs = specs, .spec_size = sizeof(struct slabkv_spec), .n_specs = p->n_in
	};
	struct slabkv_error err;
	struct slabkv *kv;
	int rc = SKV_EXIT_OK;

	for (uint32_t i = 0; i < p->n_in && rc == SKV_EXIT_OK; i++) {
		rc = read_input(cli, &p->in[i]);
		specs[i] = (struct slabkv_spec){ p->in[i].spec,
						  p->block_bytes ? p->block_bytes : p->in[i].len };
	}
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_open(cli, NULL, &kv);
	if (rc != SKV_EXIT_OK)
		return rc;
	if (skv_cli_make_instance(kv, &instance, p->storage, &err) != SLABKV_OK)
		rc = skv_cli_fail(cli, &err);
	else
		rc = p->block_bytes ? put_chain(cli, kv, p) : put_single(cli, kv, p);
	slabkv_close(kv);
	return rc;
}

static int report(const struct skv_cli *cli, const struct put *p)
{
	if (cli->json)
		return skv_cli_print_json(json_pack(
			"{ss sI sI sI sI sI sI}", "instance", p->target.instance, "written",
			(json_int_t)p->written, "exists", (json_int_t)p->exists, "busy",
			(json_int_t)p->busy, "failed", (json_int_t)p->failed, "bytes",
			(json_int_t)p->bytes, "padded_bytes", (json_int_t)p->padded));
	printf("%" PRIu64 " written, %" PRIu64 " there already, %" PRIu64 " busy, %" PRIu64
	       " bytes\n",
	       p->written, p->exists, p->busy, p->bytes);
	if (p->padded)
		printf("the last block ends with %" PRIu64
		       " zero bytes: read back with get --length\n",
		       p->padded);
	return SKV_EXIT_OK;
}

static int check(struct skv_cli *cli, struct put *p)
{
	if (p->n_in == 0)
		add_input(p, "kv", "-");
	if (p->target.n != 1)
		return skv_cli_usage(cli, "exactly one --key");
	if (p->block_bytes && (p->n_in != 1 || p->target.form != SLABKV_KEYS_STRING))
		return skv_cli_usage(cli, "--block-bytes: one file and a string key");
	return p->block_bytes ? skv_cli_chain_check(cli, p->target.texts[0]) : SKV_EXIT_OK;
}

static int parse(struct skv_cli *cli, struct put *p, int argc, char **argv)
{
	const struct skv_cli_option options[] = {
		{ "spec", SKV_CLI_PARSED, p, 0, 0, "NAME=FILE, 32 of them at most", take_spec },
		{ "block-bytes", SKV_CLI_SIZE, &p->block_bytes, 1, SKV_CLI_MAX_BLOCK,
		  SKV_CLI_BLOCK_BYTES, NULL },
		{ "independent", SKV_CLI_FLAG, &p->independent, 0, 0, NULL, NULL },
		{ "group", SKV_CLI_TEXT, &p->group, 0, 0, NULL, NULL },
		{ "storage", SKV_CLI_TEXT, &p->storage, 0, 0, NULL, NULL },
		SKV_CLI_OPTIONS_END
	};
	int rc = skv_cli_parse(cli, argc, argv, options, &p->target);

	_Static_assert(SLABKV_MAX_SPECS == 32, "as --spec says");
	for (int i = optind; i < argc && rc == SKV_EXIT_OK; i++)
		if (!add_input(p, "kv", argv[i]))
			rc = skv_cli_usage(cli, "at most %u specs", SLABKV_MAX_SPECS);
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_target_keys(cli, &p->target, 0, NULL, 0);
	return rc == SKV_EXIT_OK ? check(cli, p) : rc;
}

int skv_cmd_put(struct skv_cli *cli, int argc, char **argv)
{
	struct put p = { .group = "default", .storage = "default" };
	int rc;

	skv_cli_target_init(&p.target);
	rc = parse(cli, &p, argc, argv);
	if (rc == SKV_EXIT_OK)
		rc = do_put(cli, &p);
	if (rc == SKV_EXIT_OK)
		rc = report(cli, &p);
	if (rc == SKV_EXIT_OK && p.busy)
		rc = SKV_EXIT_REFUSED; /* nothing was stored here; the other writer may fail */
	for (uint32_t i = 0; i < p.n_in; i++)
		skv_free(p.in[i].data);
	skv_cli_target_free(&p.target);
	return rc;
}
