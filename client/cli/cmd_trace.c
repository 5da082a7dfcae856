/* cmd_trace.c - slabkv gen-trace: options of the trace generator (skv/trace_gen.h). Contacts no
 * manager. Stateless. */
#include "cli.h"

#include <errno.h>
#include <string.h>

#include <skv/trace_gen.h>

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

/* Chooses the kind first, because the other options change its settings. */
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

int skv_cmd_gen_trace(struct skv_cli *cli, int argc, char **argv)
{
	struct skv_gen_options o;
	const char *path = NULL, *kind;
	const struct skv_cli_option options[] = {
#define NUMBER(name, field, min, max)                                                              \
	{ name, SKV_CLI_NUMBER, &o.field, min, max, #min ".." #max, NULL }
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
		{ "seed", SKV_CLI_COUNT, &o.seed, 0, UINT64_MAX, "a number", NULL },
		{ "kind", SKV_CLI_TEXT, &kind, 0, 0, NULL, NULL }, /* choose_kind has read it */
		{ "out", SKV_CLI_TEXT, &path, 0, 0, NULL, NULL },
		SKV_CLI_OPTIONS_END
	};
	int rc = choose_kind(cli, argc, argv, &o);

	if (rc == SKV_EXIT_OK)
		rc = skv_cli_parse(cli, argc, argv, options, NULL);
	if (rc == SKV_EXIT_OK && optind < argc)
		rc = skv_cli_usage(cli, "takes no arguments");
	return rc == SKV_EXIT_OK ? write_trace(cli, &o, path) : rc;
}
