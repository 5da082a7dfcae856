/*
 * cmd_plan.c - slabkv plan: what a model's KV cache of so many tokens takes: bytes of a block,
 * slots, capacity, slab files. Asks no manager. Stateless.
 *
 * Slabs are counted as the manager makes them of a storage of type `file` with default units
 * (allocator/pool.c): a slab is a power of two of 64 MiB of which at most 1 % is no slot, the first
 * and the last of a file also hold its header and trailer.
 */
#include "cli.h"
#include "kv_layout.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define UNIT (UINT64_C(64) << 20)
#define EDGE UINT64_C(4096) /* header, trailer of a file, and what a slot's alignment may cost */
#define MOST_UNITS (1u << 20)
#define FREE_PERCENT 2u /* of the manager: what eviction keeps free */

struct wish {
	const char *model, *dtype;
	uint64_t tp, tokens, block_tokens, file;
};

struct plan {
	struct kv_layout l;
	uint32_t specs;
	uint64_t spec_bytes, block_bytes, blocks, slots;
	uint64_t slab, file_slots, files, capacity;
};

/* ---- arithmetic ------------------------------------------------------------------------------ */

static uint64_t slab_of(uint64_t slot, uint64_t file)
{
	uint64_t slab = UNIT;

	assert(slot > 0 && file >= UNIT);
	while (slab < file && slab - slab / slot * slot > slab / 100)
		slab *= 2;
	return slab;
}

/* Slabs that begin at multiples of their length; what is behind the last one is not counted. */
static uint64_t slots_of_file(uint64_t slot, uint64_t slab, uint64_t file)
{
	const uint64_t n = file / slab;
	uint64_t slots = 0;

	assert(slot > 0 && slab > 0);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t lost = (i == 0 ? EDGE : 0) + ((i + 1) * slab == file ? EDGE : 0);

		slots += lost < slab ? (slab - lost) / slot : 0;
	}
	return slots;
}

/* NULL, or why not. */
static const char *compute(const struct wish *w, struct plan *p)
{
	uint64_t rank = kv_layout_rank_bytes(&p->l, (uint32_t)w->tp);

	if (!rank)
		return "--tp neither divides the KV heads nor is a multiple of them";
	p->specs = p->l.latent ? 1 : (uint32_t)w->tp;
	p->spec_bytes = rank * w->block_tokens;
	p->block_bytes = p->spec_bytes * p->specs;
	p->blocks = (w->tokens + w->block_tokens - 1) / w->block_tokens;
	p->slots = p->blocks * p->specs;
	p->slab = slab_of(p->spec_bytes, w->file);
	p->file_slots = slots_of_file(p->spec_bytes, p->slab, w->file);
	if (!p->file_slots)
		return "a slot does not fit into a slab file: raise --file-size, or lower "
		       "--block-tokens";
	p->files = (p->slots * 100 / (100 - FREE_PERCENT) + p->file_slots) / p->file_slots;
	p->capacity = p->files * w->file;
	assert(p->files * p->file_slots >= p->slots);
	return NULL;
}

/* ---- output ---------------------------------------------------------------------------------- */

static json_t *spec_list(const struct plan *p)
{
	json_t *specs = json_array();
	char name[16];

	assert(p->specs >= 1 && p->specs <= SLABKV_MAX_SPECS);
	for (uint32_t i = 0; i < p->specs; i++) {
		snprintf(name, sizeof name, p->specs == 1 ? "kv" : "tp%u", i);
		json_array_append_new(specs, json_pack("{ss sI}", "name", name, "size",
						       (json_int_t)p->spec_bytes));
	}
	return specs;
}

static int print_json(const struct wish *w, const struct plan *p)
{
	const struct kv_layout *l = &p->l;
	json_t *doc = json_pack("{ss ss si si si si si si si ss}", "model_type", l->model_type,
				"attention", l->latent ? "mla" : "gqa", "layers", l->layers,
				"full_layers", l->full, "sliding_layers", l->sliding,
				"linear_layers", l->linear, "window", l->window, "kv_heads",
				l->kv_heads, "head_dim", l->head_dim, "dtype", l->dtype);
	const struct {
		const char *name;
		uint64_t v;
	} numbers[] = { { "token_bytes", kv_layout_token_bytes(l) }, { "tp", w->tp },
			{ "block_tokens", w->block_tokens }, { "block_bytes", p->block_bytes },
			{ "tokens", w->tokens }, { "blocks", p->blocks }, { "slots", p->slots },
			{ "slot_bytes", p->spec_bytes }, { "slab_bytes", p->slab },
			{ "file_bytes", w->file }, { "slots_of_file", p->file_slots },
			{ "files", p->files }, { "capacity", p->capacity } };

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		json_object_set_new(doc, numbers[i].name, json_integer((json_int_t)numbers[i].v));
	json_object_set_new(doc, "specs", spec_list(p));
	return skv_cli_print_json(doc);
}

static void print_layers(const struct kv_layout *l)
{
	printf("layers      %u: %u with attention over all tokens", l->layers, l->full);
	if (l->sliding)
		printf(", %u over a window of %u", l->sliding, l->window);
	if (l->linear)
		printf(", %u with a state of fixed size", l->linear);
	printf("\n");
	if (l->sliding)
		printf("            the windows' layers are counted in full: less, if the engine "
		       "stores windows alone\n");
	if (l->linear)
		printf("            states are not counted: add a spec for them, if the engine "
		       "stores them\n");
	if (l->indexer)
		printf("            the indexer's keys (%u elements a token and layer) are not "
		       "counted\n", l->indexer);
}

static int print(const struct wish *w, const struct plan *p)
{
	const struct kv_layout *l = &p->l;
	char block[24], slot[24], slab[24], file[24], capacity[24], *body;
	json_t *specs = spec_list(p);

	skv_args_print_size(p->block_bytes, block);
	skv_args_print_size(p->spec_bytes, slot);
	skv_args_print_size(p->slab, slab);
	skv_args_print_size(w->file, file);
	skv_args_print_size(p->capacity, capacity);
	printf("model       %s, %s, %s\n", l->model_type,
	       l->latent ? "multi-head latent attention" : "grouped-query attention", l->dtype);
	print_layers(l);
	if (l->latent)
		printf("heads       one latent of %u elements; all ranks have the same: one copy\n",
		       l->head_dim);
	else
		printf("heads       %u for keys and values, of %u elements\n", l->kv_heads,
		       l->head_dim);
	printf("token       %" PRIu64 " bytes\n", kv_layout_token_bytes(l));
	printf("block       %" PRIu64 " tokens, %u x %" PRIu64 " bytes (%s)\n", w->block_tokens,
	       p->specs, p->spec_bytes, block);
	printf("slots       %" PRIu64 " of %s for %" PRIu64 " blocks (%" PRIu64 " tokens)\n",
	       p->slots, slot, p->blocks, w->tokens);
	printf("slab files  %" PRIu64 " of %s: slabs of %s, %" PRIu64 " slots a file\n", p->files,
	       file, slab, p->file_slots);
	printf("capacity    %" PRIu64 " (%s), %u %% of it kept free\n", p->capacity, capacity,
	       FREE_PERCENT);
	body = json_dumps(specs, JSON_COMPACT);
	printf("instance    {\"block_tokens\":%" PRIu64 ",\"specs\":%s}\n", w->block_tokens,
	       body ? body : "");
	free(body);
	json_decref(specs);
	return SKV_EXIT_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int plan(const struct skv_cli *cli, const struct wish *w)
{
	json_error_t error;
	json_t *config = json_load_file(w->model, 0, &error);
	struct plan p = { .specs = 0 };
	char text[200];
	const char *why;

	if (!config)
		return skv_cli_usage(cli, "--model %s: line %d: %s", w->model, error.line,
				     error.text);
	why = kv_layout_read(config, w->dtype, &p.l, text);
	json_decref(config);
	if (!why)
		why = compute(w, &p);
	if (why)
		return skv_cli_usage(cli, "%s: %s", w->model, why);
	return cli->json ? print_json(w, &p) : print(w, &p);
}

static int take_option(struct skv_cli *cli, struct wish *w, int opt)
{
	switch (opt) {
	case 'm': w->model = optarg; return SKV_EXIT_OK;
	case 'd': w->dtype = optarg; return SKV_EXIT_OK;
	case 'p':
		return skv_args_number(optarg, 1, SLABKV_MAX_SPECS, &w->tp)
			       ? SKV_EXIT_OK
			       : skv_cli_usage(cli, "--tp: 1..%u, the specs of an instance",
					       SLABKV_MAX_SPECS);
	case 't':
		return skv_args_size(optarg, &w->tokens) && w->tokens && w->tokens <= 1ull << 44
			       ? SKV_EXIT_OK
			       : skv_cli_usage(cli, "--tokens: a number, like 1000000 or 64M");
	case 'b':
		return skv_args_number(optarg, 1, 65536, &w->block_tokens)
			       ? SKV_EXIT_OK
			       : skv_cli_usage(cli, "--block-tokens: 1..65536");
	case 'f':
		return skv_args_size(optarg, &w->file) && w->file >= UNIT && w->file % UNIT == 0 &&
				       w->file / UNIT <= MOST_UNITS
			       ? SKV_EXIT_OK
			       : skv_cli_usage(cli, "--file-size: a multiple of 64M");
	default: return skv_cli_global_option(cli, opt, optarg);
	}
}

int skv_cmd_plan(struct skv_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "model", required_argument, NULL, 'm' },
						 { "tp", required_argument, NULL, 'p' },
						 { "tokens", required_argument, NULL, 't' },
						 { "block-tokens", required_argument, NULL, 'b' },
						 { "dtype", required_argument, NULL, 'd' },
						 { "file-size", required_argument, NULL, 'f' },
						 SKV_CLI_GLOBAL_OPTIONS };
	struct wish w = { .tp = 1, .block_tokens = 64, .file = UINT64_C(1) << 30 };
	int opt, rc = SKV_EXIT_OK;

	while (rc == SKV_EXIT_OK &&
	       (opt = getopt_long(argc, argv, SKV_CLI_SHORT, options, NULL)) != -1)
		rc = take_option(cli, &w, opt);
	if (rc != SKV_EXIT_OK)
		return rc;
	if (!w.model || !w.tokens || optind < argc)
		return skv_cli_usage(cli, "--model config.json --tokens N?");
	return plan(cli, &w);
}
