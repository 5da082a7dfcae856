/*
 * options.c - reads the command line of `slabkvd simulate`. No state but getopt's.
 *
 * Numbers are one table: name, where it goes, range. What belongs together is
 * checked once all is read.
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

enum { EXIT_BAD = 2, NUMBERS = 1000, SIZES = 2000, DEFAULT_PROMOTE = 1 };

static const struct number {
	const char *name;
	size_t field;
	uint64_t min, max;
	bool wide; /* 64 bits */
} numbers[] = {
#define NUMBER(name, field, min, max)                           \
	{                                                       \
		name, offsetof(struct options, field), min, max, \
		sizeof(((struct options *)0)->field) == 8       \
	}
	NUMBER("requests", requests, 1, UINT32_MAX),
	NUMBER("promote-after", promote_after, 0, SKV_POLICY_FREQ),
	NUMBER("threads", threads, 1, 1024),
	NUMBER("conversations", gen.conversations, 1, 10000000),
	NUMBER("seed", gen.seed, 0, UINT64_MAX),
	NUMBER("ttl-ms", ttl_ms, 1, 1ull << 53),
	NUMBER("tp", tp, 1, 1024),
	NUMBER("block-tokens", block_tokens, 1, 1u << 20),
	NUMBER("trace-block-tokens", trace_tokens, 1, 1u << 20),
	NUMBER("layers", model.layers, 1, 1u << 20),
	NUMBER("kv-heads", model.kv_heads, 1, 1u << 20),
	NUMBER("head-dim", model.head_dim, 1, 1u << 20),
	NUMBER("mla-rank", model.mla_rank, 1, 1u << 20),
	NUMBER("rope-dim", model.rope_dim, 0, 1u << 20),
#undef NUMBER
};
#define N_NUMBERS (sizeof numbers / sizeof numbers[0])

static const struct number sizes[] = {
	{ "block-bytes", offsetof(struct options, block_bytes), SKV_MIN_SPEC_SIZE,
	  SKV_MAX_SPEC_SIZE, true },
	{ "unit", offsetof(struct options, unit), 4096, 1ull << 40, true },
	{ "file-size", offsetof(struct options, file_size), 4096, 1ull << 50, true },
};
#define N_SIZES (sizeof sizes / sizeof sizes[0])

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

static int parse_policies(struct options *o, const char *text)
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

static int set_number(struct options *o, const struct number *n, bool size, const char *text)
{
	const char *end = text + strlen(text);
	uint64_t v;
	char range[96];

	snprintf(range, sizeof range, "%s %llu..%llu", size ? "a size," : "a number,",
		 (unsigned long long)n->min, (unsigned long long)n->max);
	if (!(size ? parse_size(text, end, &v) : parse_number(text, end, &v)) || v < n->min ||
	    v > n->max)
		return bad(n->name, range, text);
	assert(n->wide || v <= UINT32_MAX);
	if (n->wide)
		*(uint64_t *)((char *)o + n->field) = v;
	else
		*(uint32_t *)((char *)o + n->field) = (uint32_t)v;
	o->sizing |= n->field >= offsetof(struct options, model) &&
		     n->field < offsetof(struct options, tp);
	o->has_block_bytes |= n->field == offsetof(struct options, block_bytes);
	return OPTIONS_RUN;
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

static int parse_tiers(struct options *o, const char *text)
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

static int set_other(struct options *o, int opt, const char *value)
{
	switch (opt) {
	case 'p':
		return parse_policies(o, value);
	case 'b':
		return parse_list("blocks", value, false, o->blocks, &o->n_blocks);
	case 'c':
		return parse_list("capacity", value, true, o->capacity, &o->n_capacity);
	case 'T':
		return parse_tiers(o, value);
	case 'w':
		o->write_through = true;
		return OPTIONS_RUN;
	case 'g':
		return set_kind(o, value);
	case 'm':
		return set_model(o, value);
	case 'd':
		o->dtype = value;
		return OPTIONS_RUN;
	case 'f':
		o->full = true;
		return OPTIONS_RUN;
	case '1':
		o->one_by_one = true;
		return OPTIONS_RUN;
	case 'i':
		o->instance = value;
		return OPTIONS_RUN;
	case 't':
		o->hits = value;
		return OPTIONS_RUN;
	case 'C':
		o->output = OUTPUT_CSV;
		return OPTIONS_RUN;
	case 'J':
		o->output = OUTPUT_JSON;
		return OPTIONS_RUN;
	case 'L':
		o->list_models = true;
		return OPTIONS_RUN;
	case 'h':
		fputs(usage, stdout);
		return 0;
	default: /* getopt has printed the error */
		fputs("Try: slabkvd simulate --help\n", stderr);
		return EXIT_BAD;
	}
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

/* What was not said. Of a generated trace it is the kind's own. */
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

#define TABLE_SIZE (N_NUMBERS + N_SIZES + 18)

static void make_table(struct option table[TABLE_SIZE])
{
	static const struct option others[] = {
		{ "policy", required_argument, NULL, 'p' },
		{ "blocks", required_argument, NULL, 'b' },
		{ "capacity", required_argument, NULL, 'c' },
		{ "tiers", required_argument, NULL, 'T' },
		{ "write-through", no_argument, NULL, 'w' },
		{ "generate", required_argument, NULL, 'g' },
		{ "model", required_argument, NULL, 'm' },
		{ "dtype", required_argument, NULL, 'd' },
		{ "full", no_argument, NULL, 'f' },
		{ "hits", required_argument, NULL, 't' },
		{ "csv", no_argument, NULL, 'C' },
		{ "json", no_argument, NULL, 'J' },
		{ "list-models", no_argument, NULL, 'L' },
		{ "one-by-one", no_argument, NULL, '1' },
		{ "help", no_argument, NULL, 'h' },
		{ "instance", required_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 },
	};
	size_t at = 0;

	for (size_t i = 0; i < N_NUMBERS; i++)
		table[at++] = (struct option){ numbers[i].name, required_argument, NULL,
					       NUMBERS + (int)i };
	for (size_t i = 0; i < N_SIZES; i++)
		table[at++] =
			(struct option){ sizes[i].name, required_argument, NULL, SIZES + (int)i };
	assert(at + sizeof others / sizeof others[0] <= TABLE_SIZE);
	memcpy(&table[at], others, sizeof others);
}

int options_parse(struct options *o, int argc, char **argv)
{
	struct option table[TABLE_SIZE];
	int opt, rc = OPTIONS_RUN;

	*o = (struct options){ .gen.seed = 1, .block_bytes = 4096, .ttl_ms = 3600000,
			       .trace_tokens = SKV_TRACE_BLOCK_TOKENS,
			       .promote_after = DEFAULT_PROMOTE };
	make_table(table);
	while (rc == OPTIONS_RUN && (opt = getopt_long(argc, argv, "h", table, NULL)) != -1) {
		if (opt >= SIZES && opt < SIZES + (int)N_SIZES)
			rc = set_number(o, &sizes[opt - SIZES], true, optarg);
		else if (opt >= NUMBERS && opt < NUMBERS + (int)N_NUMBERS)
			rc = set_number(o, &numbers[opt - NUMBERS], false, optarg);
		else
			rc = set_other(o, opt, optarg);
	}
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
