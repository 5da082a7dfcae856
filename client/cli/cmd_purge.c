/*
 * cmd_purge.c - slabkv purge: all that is stored or being written before now is gone. Stateless;
 * one thread.
 */
#include "cli.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int do_purge(struct skv_cli *cli, const struct slabkv_purge *what, const char *text)
{
	struct slabkv_purged res = { .size = sizeof res };
	struct slabkv_error err;
	struct slabkv *kv;
	int rc = skv_cli_confirm(cli, "delete all blocks of %s, also those being written?", text);

	if (rc == SKV_EXIT_OK)
		rc = skv_cli_open(cli, NULL, &kv);
	if (rc != SKV_EXIT_OK)
		return rc;
	if (slabkv_purge(kv, what, &res, &err) != SLABKV_OK)
		rc = skv_cli_fail(cli, &err);
	else if (cli->json)
		rc = skv_cli_print_json(json_pack("{sI sI sI}", "instances",
						  (json_int_t)res.instances, "blocks",
						  (json_int_t)res.blocks, "sessions",
						  (json_int_t)res.sessions));
	else
		printf("%" PRIu32 " instances: %" PRIu64 " blocks and %" PRIu64
		       " open sessions\n", res.instances, res.blocks, res.sessions);
	slabkv_close(kv);
	return rc;
}

int skv_cmd_purge(struct skv_cli *cli, int argc, char **argv)
{
	struct slabkv_purge what = { .size = sizeof what };
	const struct skv_cli_option options[] = {
		{ "prefix", SKV_CLI_TEXT, &what.prefix, 0, 0, NULL, NULL },
		{ "group", SKV_CLI_TEXT, &what.group, 0, 0, NULL, NULL },
		{ "tenant", SKV_CLI_TEXT, &what.tenant, 0, 0, NULL, NULL },
		SKV_CLI_OPTIONS_END
	};
	int n, rc = skv_cli_parse(cli, argc, argv, options, NULL);
	char text[300];

	if (rc != SKV_EXIT_OK)
		return rc;
	what.instances = (const char *const *)argv + optind;
	what.n_instances = (uint32_t)(argc - optind);
	n = (what.n_instances > 0) + !!what.prefix + !!what.group + !!what.tenant;
	if (n != 1)
		return skv_cli_usage(cli, "instances, --prefix, --group or --tenant: one of them");
	if (what.prefix)
		snprintf(text, sizeof text, "instances that begin with %.200s", what.prefix);
	else if (what.group || what.tenant)
		snprintf(text, sizeof text, "%s %.200s", what.group ? "group" : "tenant",
			 what.group ? what.group : what.tenant);
	else
		snprintf(text, sizeof text, "%s%s", what.instances[0],
			 what.n_instances > 1 ? " and the others" : "");
	return do_purge(cli, &what, text);
}
