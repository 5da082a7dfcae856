/*
 * cmd_plan.c - slabkv plan: computes the size of a model's KV cache for a number of tokens: bytes
 * of a block, slots, capacity, slab files. Asks no manager. Stateless.
 *
 * The manager's allocator counts the slots: of a storage of type `file` with the default unit,
 * whose first slabs are shorter than the others.
 */
#include "cli.h"
#include "kv_layout.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <skv/pool.h>

#define EDGE UINT64_C(4096) /* header and trailer of a file, and the alignment of whole pages */
#define FILE_MAX (UINT64_C(1) << 46)
#define FREE_PERCENT 2u /* the manager's eviction keeps this part free */

struct wish {
	const char *model, *dtype;
	uint64_t tp, tokens, block_tokens, file;
};

struct plan {
	struct kv_layout l;
	uint32_t specs;
	uint64_t spec_bytes, block_bytes, blocks, slots;
	uint64_t unit, first_slab, slab, file_slots, files, capacity;
};

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* Counts the slots of two files of a storage with this unit: the first, in which the slabs grow to
 * their full length, and a later one. False: out of memory. */
static bool count_slots(struct plan *p, uint64_t file, uint64_t *first)
{
	const struct skv_pool_options o = { .unit = p->unit, .header = EDGE, .trailer = EDGE };
	const uint64_t align = p->spec_bytes % EDGE ? 1 : EDGE;
	struct skv_pool *pool = skv_pool_create(&o);
	struct skv_slab_lengths lengths;
	struct skv_run run;
	uint32_t id, n;
	bool counted = pool && skv_pool_class(pool, p->spec_bytes, align, &id) == SKV_OK &&
		       skv_pool_add_file(pool, 0, file) == SKV_OK;

	*first = 0;
	if (counted) {
		lengths = skv_pool_slab_lengths(pool, p->spec_bytes, align, 0);
		p->first_slab = lengths.first;
		p->slab = lengths.full;
		while (skv_pool_slab_bytes(pool, id) < lengths.full &&
		       skv_pool_alloc(pool, id, 1, &run, &n) == SKV_OK)
			++*first;
		*first += skv_pool_available(pool, id);
		p->file_slots = skv_pool_slots_in_file(pool, id, file);
		assert(p->first_slab <= p->slab);
	}
	skv_pool_destroy(pool);
	return counted;
}

/* Sets unit, slabs, files and capacity. The unit depends on the capacity: tries each. NULL, or why
 * not. */
static const char *count_files(struct plan *p, uint64_t file)
{
	const uint64_t wanted = p->slots * 100 / (100 - FREE_PERCENT) + 1;
	uint64_t first;

	assert(p->slots > 0 && p->spec_bytes > 0);
	for (p->unit = SKV_UNIT_MIN;; p->unit *= 2) {
		if (!count_slots(p, file, &first))
			return "out of memory";
		if (!first || !p->file_slots)
			return "a slot does not fit into a slab file: raise --file-size, or lower "
			       "--block-tokens";
		p->files = 1 + (wanted > first ? (wanted - first + p->file_slots - 1) /
							 p->file_slots
					       : 0);
		p->capacity = p->files * file;
		if (skv_pool_default_unit(p->capacity) <= p->unit)
			return NULL;
	}
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
	return count_files(p, w->file);
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
			{ "slot_bytes", p->spec_bytes }, { "unit", p->unit },
			{ "first_slab_bytes", p->first_slab }, { "slab_bytes", p->slab },
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
	char block[24], slot[24], least[24], slab[24], file[24], capacity[24], *body;
	json_t *specs = spec_list(p);

	skv_args_print_size(p->block_bytes, block);
	skv_args_print_size(p->spec_bytes, slot);
	skv_args_print_size(p->first_slab, least);
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
	printf("slab files  %" PRIu64 " of %s: slabs of %s to %s, %" PRIu64 " slots a file\n",
	       p->files, file, least, slab, p->file_slots);
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

int skv_cmd_plan(struct skv_cli *cli, int argc, char **argv)
{
	struct wish w = { .tp = 1, .block_tokens = 64, .file = UINT64_C(1) << 30 };
	const struct skv_cli_option options[] = {
		{ "model", SKV_CLI_TEXT, &w.model, 0, 0, NULL, NULL },
		{ "dtype", SKV_CLI_TEXT, &w.dtype, 0, 0, NULL, NULL },
		{ "tp", SKV_CLI_COUNT, &w.tp, 1, SLABKV_MAX_SPECS,
		  "1..32, the specs of an instance", NULL },
		{ "tokens", SKV_CLI_SIZE, &w.tokens, 1, 1ull << 44,
		  "a number, like 1000000 or 64M", NULL },
		{ "block-tokens", SKV_CLI_COUNT, &w.block_tokens, 1, 65536, "1..65536", NULL },
		{ "file-size", SKV_CLI_SIZE, &w.file, SKV_UNIT_MAX, FILE_MAX,
		  "a multiple of 64M", NULL },
		SKV_CLI_OPTIONS_END
	};
	int rc = skv_cli_parse(cli, argc, argv, options, NULL);

	if (rc == SKV_EXIT_OK && w.file % SKV_UNIT_MAX != 0)
		rc = skv_cli_usage(cli, "--file-size: a multiple of 64M");
	if (rc != SKV_EXIT_OK)
		return rc;
	if (!w.model || !w.tokens || optind < argc)
		return skv_cli_usage(cli, "--model config.json --tokens N?");
	return plan(cli, &w);
}
