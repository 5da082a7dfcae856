/*
 * parse.c - reads the options of a command: its own, by its table, and those of all commands.
 * Stateless; one thread, as getopt's.
 */
#include "cli.h"

#include <assert.h>
#include <string.h>

#define FIRST_OWN 2000 /* after the options of cli.h */
#define MOST_OWN 32u

static int take_value(struct skv_cli *cli, const struct skv_cli_option *o, const char *value)
{
	uint64_t n = 0;
	bool ok = true;

	if (o->value == SKV_CLI_NUMBER || o->value == SKV_CLI_COUNT)
		ok = skv_args_number(value, o->min, o->max, &n);
	else if (o->value == SKV_CLI_SIZE)
		ok = skv_args_size(value, &n) && n >= o->min && n <= o->max;
	else if (o->value == SKV_CLI_TIME)
		ok = skv_args_duration(value, &n);
	else if (o->value == SKV_CLI_PARSED)
		ok = o->parse(value, o->to);
	if (!ok)
		return skv_cli_usage(cli, "--%s: %s", o->name, o->is);
	assert(o->value != SKV_CLI_NUMBER || n <= UINT32_MAX);
	switch (o->value) {
	case SKV_CLI_FLAG: *(bool *)o->to = true; break;
	case SKV_CLI_TEXT: *(const char **)o->to = value; break;
	case SKV_CLI_NUMBER: *(uint32_t *)o->to = (uint32_t)n; break;
	case SKV_CLI_COUNT:
	case SKV_CLI_TIME:
	case SKV_CLI_SIZE: *(uint64_t *)o->to = n; break;
	case SKV_CLI_PARSED: break;
	}
	return SKV_EXIT_OK;
}

int skv_cli_parse(struct skv_cli *cli, int argc, char **argv, const struct skv_cli_option *options,
		  struct skv_cli_target *t)
{
	static const struct option target[] = { SKV_CLI_TARGET_OPTIONS },
				   global[] = { SKV_CLI_GLOBAL_OPTIONS };
	struct option all[MOST_OWN + sizeof target / sizeof *target +
			  sizeof global / sizeof *global];
	size_t own = 0, n;
	int opt, rc = SKV_EXIT_OK;

	for (; options && options[own].name; own++) {
		assert(own < MOST_OWN);
		all[own] = (struct option){ options[own].name,
					    options[own].value == SKV_CLI_FLAG ? no_argument
									       : required_argument,
					    NULL, FIRST_OWN + (int)own };
	}
	n = own;
	if (t) {
		memcpy(all + n, target, sizeof target);
		n += sizeof target / sizeof *target;
	}
	memcpy(all + n, global, sizeof global);
	while (rc == SKV_EXIT_OK &&
	       (opt = getopt_long(argc, argv, SKV_CLI_SHORT, all, NULL)) != -1) {
		if (opt >= FIRST_OWN)
			rc = take_value(cli, &options[opt - FIRST_OWN], optarg);
		else if (t)
			rc = skv_cli_target_option(cli, t, opt, optarg);
		else
			rc = skv_cli_global_option(cli, opt, optarg);
	}
	return rc;
}

int skv_cli_actions(struct skv_cli *cli, int argc, char **argv, const char *usage,
		    int (*run)(struct skv_cli *cli, struct slabkv *kv, int argc, char **argv))
{
	int rc = skv_cli_parse(cli, argc, argv, NULL, NULL);
	struct slabkv *kv;

	if (rc == SKV_EXIT_OK && optind >= argc)
		rc = skv_cli_usage(cli, "%s", usage);
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_open(cli, NULL, &kv);
	if (rc == SKV_EXIT_OK) {
		rc = run(cli, kv, argc - optind, argv + optind);
		slabkv_close(kv);
	}
	return rc;
}
