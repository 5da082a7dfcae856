/* cmd_trace.c - kvblock gen-trace: options of the generator (gen.h). Contacts nobody. No state. */
#include "cli.h"

#include <errno.h>
#include <string.h>

#include "gen.h"

struct number {
	const char *name;
	uint64_t min, max;
};

static const struct number numbers[] = {
	{ "conversations", 1, 10000000 }, { "turns", 1, 10000 },
	{ "systems", 1, 100000 },	  { "system-tokens", 1, 1000000 },
	{ "input-tokens", 1, 1000000 },	  { "output-tokens", 1, 1000000 },
	{ "gap-ms", 0, 3600000 },	  { "think-ms", 0, 86400000 },
};

static int write_trace(struct kvb_cli *cli, const struct kvb_gen_options *o, const char *path)
{
	FILE *f = path ? fopen(path, "we") : stdout;
	int rc = KVB_EXIT_OK;

	if (!f)
		return kvb_cli_usage(cli, "%s: %s", path, strerror(errno));
	if (kvb_gen_write(o, f) != 0)
		rc = kvb_cli_usage(cli, "%s: cannot be written, or out of memory",
				   path ? path : "stdout");
	if (path && fclose(f) != 0 && rc == KVB_EXIT_OK)
		rc = kvb_cli_usage(cli, "%s: %s", path, strerror(errno));
	return rc;
}

int kvb_cmd_gen_trace(struct kvb_cli *cli, int argc, char **argv)
{
	static const struct option options[] = {
		{ "conversations", required_argument, NULL, 0 },
		{ "turns", required_argument, NULL, 1 },
		{ "systems", required_argument, NULL, 2 },
		{ "system-tokens", required_argument, NULL, 3 },
		{ "input-tokens", required_argument, NULL, 4 },
		{ "output-tokens", required_argument, NULL, 5 },
		{ "gap-ms", required_argument, NULL, 6 },
		{ "think-ms", required_argument, NULL, 7 },
		{ "seed", required_argument, NULL, 's' },
		{ "out", required_argument, NULL, 'o' },
		KVB_CLI_GLOBAL_OPTIONS,
	};
	struct kvb_gen_options o;
	uint32_t *const fields[] = { &o.conversations, &o.turns,	&o.systems,
				     &o.system_tokens, &o.input_tokens, &o.output_tokens,
				     &o.gap_ms,	       &o.think_ms };
	const char *path = NULL;
	uint64_t v;
	int opt, rc = KVB_EXIT_OK;

	kvb_gen_options_init(&o);
	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt >= 0 && opt < 8) {
			if (kvb_args_number(optarg, numbers[opt].min, numbers[opt].max, &v))
				*fields[opt] = (uint32_t)v;
			else
				rc = kvb_cli_usage(cli, "--%s: %llu..%llu", numbers[opt].name,
						   (unsigned long long)numbers[opt].min,
						   (unsigned long long)numbers[opt].max);
		} else if (opt == 's' && !kvb_args_number(optarg, 0, UINT64_MAX, &o.seed)) {
			rc = kvb_cli_usage(cli, "--seed: a number");
		} else if (opt == 'o') {
			path = optarg;
		} else if (opt != 's') {
			rc = kvb_cli_global_option(cli, opt, optarg);
		}
	}
	if (rc == KVB_EXIT_OK && optind < argc)
		rc = kvb_cli_usage(cli, "takes no arguments");
	return rc == KVB_EXIT_OK ? write_trace(cli, &o, path) : rc;
}
