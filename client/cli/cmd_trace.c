/* cmd_trace.c - slabkv gen-trace: options of the trace generator (skv/trace_gen.h). Contacts no
 * manager. Stateless. */
#include "cli.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <skv/trace_gen.h>

static const struct number {
	const char *name;
	size_t field; /* of skv_gen_options */
	uint64_t min, max;
} numbers[] = {
#define NUMBER(name, field, min, max) { name, offsetof(struct skv_gen_options, field), min, max }
	NUMBER("conversations", conversations, 1, 10000000),
	NUMBER("turns", turns, 1, 10000),
	NUMBER("systems", systems, 1, 100000),
	NUMBER("system-tokens", system_tokens, 1, 1000000),
	NUMBER("input-tokens", input_tokens, 1, 1000000),
	NUMBER("output-tokens", output_tokens, 1, 1000000),
	NUMBER("gap-ms", gap_ms, 0, 3600000),
	NUMBER("think-ms", think_ms, 0, 86400000),
	NUMBER("documents", documents, 0, 1000000),
	NUMBER("document-tokens", document_tokens, 1, 1000000),
	NUMBER("documents-each", documents_each, 1, 1000),
#undef NUMBER
};
#define N_NUMBERS (sizeof numbers / sizeof numbers[0])

enum { NUMBERS = 2000 }; /* getopt's value for the first of them */
_Static_assert((int)NUMBERS > (int)SKV_OPT_HELP && (int)NUMBERS > (int)SKV_OPT_KEY_FORM,
	       "no option that is shared");

static int write_trace(struct skv_cli *cli, const struct skv_gen_options *o, const char *path)
{
	struct skv_trace t;
	FILE *f;
	int rc = SKV_EXIT_OK;

	if (skv_gen_make(o, &t) != 0)
		return skv_cli_usage(cli, "out of memory");
	f = path ? fopen(path, "we") : stdout;
	if (!f) {
		rc = skv_cli_usage(cli, "%s: %s", path, strerror(errno));
	} else {
		if (skv_trace_write(&t, f) != 0)
			rc = skv_cli_usage(cli, "%s: cannot be written", path ? path : "stdout");
		if (path && fclose(f) != 0 && rc == SKV_EXIT_OK)
			rc = skv_cli_usage(cli, "%s: %s", path, strerror(errno));
	}
	skv_trace_free(&t);
	return rc;
}

/* The kind comes first: the others change what it sets. */
static int choose_kind(struct skv_cli *cli, int argc, char **argv, struct skv_gen_options *o)
{
	enum skv_gen_kind kind = SKV_GEN_CHAT;

	for (int i = 1; i < argc; i++) {
		const char *value = strncmp(argv[i], "--kind=", 7) == 0              ? argv[i] + 7
				    : strcmp(argv[i], "--kind") == 0 && i + 1 < argc ? argv[i + 1]
										     : NULL;

		if (value && !skv_gen_kind_parse(value, &kind))
			return skv_cli_usage(cli, "--kind: one of " SKV_GEN_KINDS);
	}
	skv_gen_options_init(o, kind);
	return SKV_EXIT_OK;
}

static int set_number(struct skv_cli *cli, struct skv_gen_options *o, const struct number *n,
		      const char *value)
{
	uint64_t v;

	assert(n->max <= UINT32_MAX && n->field % sizeof(uint32_t) == 0 &&
	       n->field + sizeof(uint32_t) <= sizeof *o);
	if (!skv_args_number(value, n->min, n->max, &v))
		return skv_cli_usage(cli, "--%s: %llu..%llu", n->name, (unsigned long long)n->min,
				     (unsigned long long)n->max);
	*(uint32_t *)((char *)o + n->field) = (uint32_t)v;
	return SKV_EXIT_OK;
}

int skv_cmd_gen_trace(struct skv_cli *cli, int argc, char **argv)
{
	struct option options[N_NUMBERS + 16] = { { NULL, 0, NULL, 0 } };
	static const struct option others[] = {
		{ "kind", required_argument, NULL, 'k' },
		{ "seed", required_argument, NULL, 's' },
		{ "out", required_argument, NULL, 'w' },
		SKV_CLI_GLOBAL_OPTIONS,
	};
	struct skv_gen_options o;
	const char *path = NULL;
	int opt, rc = choose_kind(cli, argc, argv, &o);

	_Static_assert(sizeof others / sizeof others[0] <= 16, "room in options");
	for (size_t i = 0; i < N_NUMBERS; i++)
		options[i] = (struct option){ numbers[i].name, required_argument, NULL,
					      NUMBERS + (int)i };
	memcpy(&options[N_NUMBERS], others, sizeof others);
	while (rc == SKV_EXIT_OK &&
	       (opt = getopt_long(argc, argv, SKV_CLI_SHORT, options, NULL)) != -1) {
		if (opt >= NUMBERS && opt < NUMBERS + (int)N_NUMBERS)
			rc = set_number(cli, &o, &numbers[opt - NUMBERS], optarg);
		else if (opt == 's' && !skv_args_number(optarg, 0, UINT64_MAX, &o.seed))
			rc = skv_cli_usage(cli, "--seed: a number");
		else if (opt == 'w')
			path = optarg;
		else if (opt != 's' && opt != 'k')
			rc = skv_cli_global_option(cli, opt, optarg);
	}
	if (rc == SKV_EXIT_OK && optind < argc)
		rc = skv_cli_usage(cli, "takes no arguments");
	return rc == SKV_EXIT_OK ? write_trace(cli, &o, path) : rc;
}
