/*
 * options.c - reads the command line of `slabkvd simulate`. No state but getopt's.
 *
 * Options are one table: name, destination, range. Combinations are checked once all are read.
 */
#include "options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/limits.h>
#include <skv/mem.h>
#include <skv/ops.h>
#include <skv/policy.h>

static const char usage[] =
	"Usage: slabkvd simulate [options] TRACE...\n"
	"       slabkvd simulate [options] --generate KIND\n"
	"       slabkvd simulate --model NAME [--tp N] [--dtype TYPE] [--block-tokens N]\n"
	"What policies and capacities would have made of a trace: JSON lines of timestamp, "
	"input_length,\n"
	"output_length and hash_ids, as the Mooncake project publishes them; - is stdin.\n\n"
	"  --policy LIST         of policies, e.g. reuse,lru (default: all, and the "
	"optimum, belady)\n"
	"  --blocks LIST         capacities in blocks of the trace, e.g. 1000,20000 "
	"(default: 1, 2 and 5\n"
	"                        times each power of ten that the trace can fill)\n"
	"  --capacity LIST       capacities in bytes, e.g. 1TiB: of all ranks of the model; "
	"with --full and\n"
	"                        without a model, of the storage\n"
	"  --tiers FAST,SLOW     capacities in bytes of a fast tier and of the one below it,\n"
	"                        e.g. 64G,2T; repeat it to compare several; with a --model, or\n"
	"                        --block-bytes\n"
	"  --promote-after N     uses of a block after which it is copied to the fast tier,\n"
	"                        1..15, 0 = never (default: 1)\n"
	"  --write-through       what is written goes to both tiers\n"
	"  --requests N          only the first N of each trace\n"
	"  --threads N           (default: one for each processor)\n"
	"  --csv, --json         instead of tables; deploy/plot-hits draws the CSV of one trace\n"
	"  --hits FILE           what each request found, as CSV; one trace, policy "
	"and capacity\n\n"
	"  --generate KIND       instead of a trace: " SKV_GEN_KINDS "\n"
	"  --conversations N     of it (default: the kind's own; of mix, percent)\n"
	"  --seed N              the same seed gives the same trace (default: 1)\n\n"
	"  --one-by-one          each block makes room for itself, as in published "
	"simulations; a manager\n"
	"                        makes room for all that a request writes before it takes them in\n"
	"  --full                the whole manager instead of its policies alone: what "
	"slabkv replay\n"
	"                        --clients 1 --lease 0 finds at one with free_percent 0, "
	"open_percent 100\n"
	"  --ttl-ms N            of policy ttl (default: 3600000); not without --full\n"
	"  --block-bytes SIZE    of its blocks (default: 4K); with --tiers, of the trace's\n"
	"  --instance ID         (default: replay-BYTESx1, as slabkv replay)\n"
	"  --unit SIZE           of its storage (default: 64M)\n"
	"  --file-size SIZE      of its storage's slab files (default: 1G)\n\n"
	"  --model NAME          capacities as bytes, hits as tokens; --list-models tells "
	"which there are\n"
	"  --layers N --kv-heads N --head-dim N, or --layers N --mla-rank N --rope-dim N\n"
	"                        instead: its shape\n"
	"  --tp N                ranks of tensor parallelism (default: 1)\n"
	"  --dtype TYPE          bf16 (default), fp16, fp32, fp8, fp8_ds_mla\n"
	"  --block-tokens N      of a block of the manager (default: 64)\n"
	"  --trace-block-tokens N  of a block of the trace (default: 512)\n\n"
	"Exit status: 0 done, 1 a failure or interrupted, 2 an argument or trace that "
	"is not valid.\n";

enum { EXIT_BAD = 2, FIRST = 1000, DEFAULT_PROMOTE = 1 };

static int bad(const char *name, const char *what, const char *value)
{
	fprintf(stderr, "slabkvd simulate: --%s: %s%s%s%s\nTry: slabkvd simulate --help\n", name,
		what, value ? ", not '" : "", value ? value : "", value ? "'" : "");
	return EXIT_BAD;
}

/* "100", "4K", "1TiB": powers of 1024. The text is all of it, or ends at `end`. */
static bool parse_size(const char *text, const char *end, uint64_t *out)
{
	static const char units[] = "KMGT";
	unsigned long long v;
	unsigned shift = 0;
	char *at;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoull(text, &at, 10);
	if (at < end && strchr(units, *at)) {
		shift = 10 * (unsigned)(strchr(units, *at) - units + 1);
		at++;
		if (end - at == 2 && at[0] == 'i' && at[1] == 'B')
			at += 2;
	}
	*out = (uint64_t)v << shift;
	return errno == 0 && at == end && *out >> shift == v;
}

static bool parse_number(const char *text, const char *end, uint64_t *out)
{
	return strspn(text, "0123456789") == (size_t)(end - text) && parse_size(text, end, out);
}

static int parse_list(const char *name, const char *text, bool bytes, uint64_t *v, uint32_t *n)
{
	for (;;) {
		const char *end = text + strcspn(text, ",");

		if (*n == MAX_LIST)
			return bad(name, "at most 64 values", NULL);
		if (!(bytes ? parse_size(text, end, &v[*n]) : parse_number(text, end, &v[*n])) ||
		    v[*n] == 0)
			return bad(name,
				   bytes ? "sizes above 0, as 500G,1TiB"
					 : "numbers above 0, as 1000,20000",
				   text);
		(*n)++;
		if (!*end)
			return OPTIONS_RUN;
		text = end + 1;
	}
}

static int set_policies(struct options *o, const char *text)
{
	char *at = skv_strdup(text);

	skv_free(o->policy_text);
	o->policy_text = at;
	o->n_policies = 0;
	if (!at)
		return bad("policy", "out of memory", NULL);
	for (char *end; at; at = end) {
		end = strchr(at, ',');
		if (end)
			*end++ = '\0';
		if (o->n_policies == MAX_LIST)
			return bad("policy", "at most 64", NULL);
		o->policies[o->n_policies++] = at;
	}
	return OPTIONS_RUN;
}

enum kind { NUMBER, SIZE, FLAG, TEXT, OTHER };

struct row {
	const char *name;
	enum kind kind;
	size_t field;
	size_t width; /* of a number: 4 or 8 bytes */
	uint64_t min, max;
	int (*set)(struct options *o, const char *value); /* of OTHER */
};

static int set_number(struct options *o, const struct row *n, const char *text)
{
	const bool size = n->kind == SIZE;
	const char *end = text + strlen(text);
	uint64_t v;
	char range[96];

	snprintf(range, sizeof range, "%s %llu..%llu", size ? "a size," : "a number,",
		 (unsigned long long)n->min, (unsigned long long)n->max);
	if (!(size ? parse_size(text, end, &v) : parse_number(text, end, &v)) || v < n->min ||
	    v > n->max)
		return bad(n->name, range, text);
	assert(n->width == 8 || v <= UINT32_MAX);
	if (n->width == 8)
		*(uint64_t *)((char *)o + n->field) = v;
	else
		*(uint32_t *)((char *)o + n->field) = (uint32_t)v;
	o->sizing |= n->field >= offsetof(struct options, model) &&
		     n->field < offsetof(struct options, tp);
	o->has_block_bytes |= n->field == offsetof(struct options, block_bytes);
	return OPTIONS_RUN;
}

static int set_blocks(struct options *o, const char *text)
{
	return parse_list("blocks", text, false, o->blocks, &o->n_blocks);
}

static int set_capacity(struct options *o, const char *text)
{
	return parse_list("capacity", text, true, o->capacity, &o->n_capacity);
}

static int set_model(struct options *o, const char *name)
{
	const struct skv_model *m = skv_model_find(name);

	if (!m)
		return bad("model", "not in --list-models; give its shape with --layers and so on",
			   name);
	o->model = *m;
	o->sizing = true;
	return OPTIONS_RUN;
}

static int set_kind(struct options *o, const char *name)
{
	enum skv_gen_kind kind;

	if (!skv_gen_kind_parse(name, &kind))
		return bad("generate", "one of " SKV_GEN_KINDS, name);
	o->generate = true;
	o->gen.kind = kind;
	return OPTIONS_RUN;
}

static int set_tiers(struct options *o, const char *text)
{
	uint64_t pair[MAX_LIST];
	uint32_t n = 0;
	int rc = parse_list("tiers", text, true, pair, &n);

	if (rc != OPTIONS_RUN)
		return rc;
	if (n != 2)
		return bad("tiers", "two sizes, the fast tier's first, as 64G,2T", text);
	if (pair[0] >= pair[1])
		return bad("tiers",
			   "the fast tier has copies of what is in the other: it must be smaller",
			   text);
	if (o->n_capacity == MAX_LIST)
		return bad("tiers", "at most 64 values", NULL);
	assert(pair[0] > 0 && pair[0] < pair[1]);
	o->fast[o->n_capacity] = pair[0];
	o->capacity[o->n_capacity++] = pair[1];
	o->tiers = true;
	return OPTIONS_RUN;
}

static const struct row rows[] = {
#define AT(field) offsetof(struct options, field), sizeof(((struct options *)0)->field)
#define VALUE(name, kind, field, min, max) { name, kind, AT(field), min, max, NULL }
	VALUE("requests", NUMBER, requests, 1, UINT32_MAX),
	VALUE("promote-after", NUMBER, promote_after, 0, SKV_POLICY_FREQ),
	VALUE("threads", NUMBER, threads, 1, 1024),
	VALUE("conversations", NUMBER, gen.conversations, 1, 10000000),
	VALUE("seed", NUMBER, gen.seed, 0, UINT64_MAX),
	VALUE("ttl-ms", NUMBER, ttl_ms, 1, 1ull << 53),
	VALUE("tp", NUMBER, tp, 1, 1024),
	VALUE("block-tokens", NUMBER, block_tokens, 1, 1u << 20),
	VALUE("trace-block-tokens", NUMBER, trace_tokens, 1, 1u << 20),
	VALUE("layers", NUMBER, model.layers, 1, 1u << 20),
	VALUE("kv-heads", NUMBER, model.kv_heads, 1, 1u << 20),
	VALUE("head-dim", NUMBER, model.head_dim, 1, 1u << 20),
	VALUE("mla-rank", NUMBER, model.mla_rank, 1, 1u << 20),
	VALUE("rope-dim", NUMBER, model.rope_dim, 0, 1u << 20),
	VALUE("block-bytes", SIZE, block_bytes, SKV_MIN_SPEC_SIZE, SKV_MAX_SPEC_SIZE),
	VALUE("unit", SIZE, unit, 4096, 1ull << 40),
	VALUE("file-size", SIZE, file_size, 4096, 1ull << 50),
	VALUE("write-through", FLAG, write_through, 0, 0),
	VALUE("full", FLAG, full, 0, 0),
	VALUE("one-by-one", FLAG, one_by_one, 0, 0),
	VALUE("list-models", FLAG, list_models, 0, 0),
	VALUE("csv", FLAG, csv, 0, 0),
	VALUE("json", FLAG, json, 0, 0),
	VALUE("dtype", TEXT, dtype, 0, 0),
	VALUE("instance", TEXT, instance, 0, 0),
	VALUE("hits", TEXT, hits, 0, 0),
#undef VALUE
#undef AT
	{ "policy", OTHER, 0, 0, 0, 0, set_policies },
	{ "blocks", OTHER, 0, 0, 0, 0, set_blocks },
	{ "capacity", OTHER, 0, 0, 0, 0, set_capacity },
	{ "tiers", OTHER, 0, 0, 0, 0, set_tiers },
	{ "generate", OTHER, 0, 0, 0, 0, set_kind },
	{ "model", OTHER, 0, 0, 0, 0, set_model },
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static int set(struct options *o, const struct row *r, const char *value)
{
	void *to = (char *)o + r->field;

	switch (r->kind) {
	case NUMBER:
	case SIZE:
		return set_number(o, r, value);
	case FLAG:
		*(bool *)to = true;
		return OPTIONS_RUN;
	case TEXT:
		*(const char **)to = value;
		return OPTIONS_RUN;
	case OTHER:
		break;
	}
	return r->set(o, value);
}

/* Of no row. */
static int help(int opt)
{
	fputs(opt == 'h' ? usage : "Try: slabkvd simulate --help\n", opt == 'h' ? stdout : stderr);
	return opt == 'h' ? 0 : EXIT_BAD; /* getopt has printed the error */
}

static int check_tiers(const struct options *o)
{
	if (!o->tiers && (o->write_through || o->promote_after != DEFAULT_PROMOTE))
		return bad("tiers", "for --promote-after, --write-through", NULL);
	if (!o->tiers)
		return OPTIONS_RUN;
	for (uint32_t i = 0; i < o->n_capacity; i++)
		if (!o->fast[i])
			return bad("tiers", "either this or --capacity", NULL);
	if (o->full || o->n_blocks)
		return bad("tiers", "without --full, --blocks", NULL);
	if (o->sizing == o->has_block_bytes)
		return bad("tiers", "bytes need either a --model (or its shape) or --block-bytes",
			   NULL);
	if (!o->promote_after && !o->write_through)
		return bad("promote-after", "0 only with --write-through: else the fast tier stays "
			   "empty", NULL);
	return OPTIONS_RUN;
}

static int check(const struct options *o)
{
	uint32_t inputs = o->n_traces + o->generate;

	if (o->generate && o->n_traces)
		return bad("generate", "either this or traces", NULL);
	if (!o->generate && (o->gen.conversations || o->gen.seed != 1))
		return bad("conversations", "and --seed: of a trace that is generated (--generate)",
			   NULL);
	if (inputs == 0 && !o->list_models && !o->sizing) {
		fputs("slabkvd simulate: name a trace, or --generate one\nTry: slabkvd "
		      "simulate --help\n",
		      stderr);
		return EXIT_BAD;
	}
	if (o->full && o->one_by_one)
		return bad("one-by-one", "no manager does that (--full)", NULL);
	if (o->n_capacity && o->n_blocks)
		return bad("capacity", "either this or --blocks", NULL);
	if (!o->sizing && (o->tp || o->block_tokens || o->dtype))
		return bad("model", "or its shape: for --tp, --dtype, --block-tokens", NULL);
	if (check_tiers(o) != OPTIONS_RUN)
		return EXIT_BAD;
	if (o->n_capacity && !o->sizing && !o->full && !o->tiers)
		return bad("capacity",
			   "bytes need a --model (or its shape), or --full; use --blocks", NULL);
	if (o->hits && inputs != 1)
		return bad("hits", "of one trace", NULL);
	if (!o->full && ((o->has_block_bytes && !o->tiers) || o->instance || o->unit ||
			 o->file_size))
		return bad("block-bytes",
			   "and --instance, --unit, --file-size: of the manager (--full)", NULL);
	if (o->instance && !skv_model_name_valid(o->instance, strlen(o->instance)))
		return bad("instance", "1 to 127 characters of A-Za-z0-9._:=@+,-", o->instance);
	return OPTIONS_RUN;
}

/* Completes the options that were not given. A generated trace has the defaults of its kind. */
static void complete(struct options *o)
{
	struct skv_gen_options given = o->gen;

	o->tp = o->tp ? o->tp : 1;
	o->block_tokens = o->block_tokens ? o->block_tokens : 64;
	o->dtype = o->dtype ? o->dtype : "bf16";

	skv_gen_options_init(&o->gen, given.kind);
	o->gen.seed = given.seed;
	if (given.conversations)
		o->gen.conversations = given.conversations;
}

int options_parse(struct options *o, int argc, char **argv)
{
	struct option table[N_ROWS + 2] = { [N_ROWS] = { "help", no_argument, NULL, 'h' } };
	int opt, rc = OPTIONS_RUN;

	*o = (struct options){ .gen.seed = 1, .block_bytes = 4096, .ttl_ms = 3600000,
			       .trace_tokens = SKV_TRACE_BLOCK_TOKENS,
			       .promote_after = DEFAULT_PROMOTE };
	for (int i = 0; i < (int)N_ROWS; i++)
		table[i] = (struct option){ rows[i].name,
					    rows[i].kind == FLAG ? no_argument : required_argument,
					    NULL, FIRST + i };
	while (rc == OPTIONS_RUN && (opt = getopt_long(argc, argv, "h", table, NULL)) != -1)
		rc = opt >= FIRST ? set(o, &rows[opt - FIRST], optarg) : help(opt);
	for (; rc == OPTIONS_RUN && optind < argc; optind++) {
		if (o->n_traces == MAX_LIST)
			return bad("TRACE", "at most 64", NULL);
		o->traces[o->n_traces++] = argv[optind];
	}
	if (rc == OPTIONS_RUN)
		rc = check(o);
	complete(o);
	return rc;
}

void options_free(struct options *o)
{
	skv_free(o->policy_text);
	o->policy_text = NULL;
}
